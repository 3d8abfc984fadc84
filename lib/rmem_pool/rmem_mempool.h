/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Registration of existing mempools with a PD.
 *
 * A registration covers the memory of all objects of a mempool, with one MR for each
 * contiguous extent, and returns the keys of an address. A mempool is registered once
 * with each PD. With several devices, use the registration of the respective device.
 *
 * The keys of an address do not depend on the registration used: an address outside of the largest
 * extent of the registration is searched in all memory that this library registered with the same
 * PD. So clones and external buffers have the keys of the memory that they refer to.
 */

#ifndef RMEM_MEMPOOL_H
#define RMEM_MEMPOOL_H

#include <stddef.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_mempool.h>

#include <rmem_obj.h>
#include <rmem_pool.h>
#include <rmem_pool_check.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_map;
struct rmem_mr;
struct rmem_pd;

/** Tag of a registration, in addition to enum rmem_obj_type. */
#define RMEM_MEMPOOL_TAG UINT32_C(0x726d0100)

/** Key returned by lookups of memory that is not registered; it is never valid. */
#define RMEM_KEY_NONE 0

/**
 * Registration of a mempool with a PD.
 *
 * Lookups read only the private fields, which are in the first cache line.
 */
struct rmem_mempool {
	struct rmem_obj obj;        /**< Private head. */
	uint32_t nb_mrs;            /**< Number of MRs. */
	uintptr_t base;             /**< Private: first address of the largest extent. */
	size_t length;              /**< Private: bytes of the largest extent. */
	struct rmem_pool_keys keys; /**< Private: keys of the largest extent. */
	struct rmem_map *map;       /**< Private: all memory registered with the PD. */
	struct rte_mempool *mp;     /**< The mempool; rte_mempool_* calls work on it. */
	struct rmem_pd *pd;         /**< PD of the registration. */
	struct rmem_mr **mrs;       /**< The nb_mrs MRs, sorted by address. */
	uint64_t registered;        /**< Bytes registered. */
	uint32_t access;            /**< Bitwise OR of RMEM_ACCESS_*. */
} __rte_cache_aligned;

/** Statistics of a registered mempool. Not an atomic snapshot: sums may be off by a few objects. */
struct rmem_mempool_stats {
	uint32_t nb_objs;     /**< Objects of the mempool. */
	uint32_t nb_avail;    /**< Free objects, including cached ones. */
	uint32_t nb_cached;   /**< Objects in the caches of lcores. */
	uint32_t nb_in_use;   /**< Objects in use. */
	uint32_t nb_chunks;   /**< Memory chunks of the mempool. */
	uint32_t nb_mrs;      /**< MRs. */
	uint64_t registered;  /**< Bytes registered. */
	uint64_t largest_mr;  /**< Bytes of the largest MR. */
	uint64_t reserved[4]; /**< Zero. */
};

/**
 * Register the memory of a mempool with a PD.
 *
 * Chunks are registered as a whole, adjacent chunks as one MR. Chunks larger than
 * rmem_dev_info::max_mr_size are split between objects, and only objects are covered. For an mbuf
 * pool with pinned external buffers (rte_pktmbuf_pool_create_extbuf()) the buffers are registered
 * and not the mbufs; buffers less than a system page apart share an MR. All objects are covered, or
 * the call fails.
 *
 * The mempool must not be freed before rmem_mempool_unregister().
 *
 * Control path: touches and registers memory. Safe to call from any thread. No other thread may
 * populate or free the mempool during the call.
 *
 * @param mp
 *   Fully populated mempool.
 * @param pd
 *   Protection domain. A mempool can be registered once with each PD.
 * @param access
 *   Bitwise OR of RMEM_ACCESS_*, without ALLOCATE_MR and ZERO_BASED.
 * @param[out] reg
 *   The new registration. Written only on success. Release it with
 *   rmem_mempool_unregister().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL mp or reg, NULL or not a PD, an unknown access bit, ALLOCATE_MR or
 *     ZERO_BASED, a remote right to modify without LOCAL_WRITE, or an object larger than
 *     rmem_dev_info::max_mr_size.
 *   - -EBUSY: the mempool is not fully populated.
 *   - -EEXIST: this library has already registered memory of the mempool with the PD.
 *   - -EOPNOTSUPP: the device lacks the capability for a requested access bit.
 *   - -EFAULT: part of the memory is not mapped, or not writable although access requires it.
 *   - -ENOSPC: the device has too few of its rmem_dev_info::max_mr regions left.
 *   - -ENOMEM: no memory for the registration, or the pages could not be pinned.
 *   - -ENODEV: the device is being closed.
 *   - -EIO: the device failed.
 */
int rmem_mempool_register(struct rte_mempool *mp, struct rmem_pd *pd, uint32_t access,
		struct rmem_mempool **reg);

/**
 * Deregister the memory of a mempool.
 *
 * Objects may be in use; the mempool itself is not affected.
 *
 * Control path. Once for each registration. No other thread may use the registration, or look up an
 * address of its memory with another registration.
 *
 * @param reg
 *   Registration to release; no longer valid on success, unchanged on failure except -EIO.
 *   NULL is allowed and has no effect.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not a registration, or made by rmem_pktmbuf_pool_create().
 *   - -EBUSY: one of its MRs has references; if only the device detects a reference, the effect is
 *     as for -EIO.
 *   - -EIO: the device failed to deregister an MR, and may still access the memory, which must not
 *     be freed. The only valid use of the registration is another call of this function.
 */
int rmem_mempool_unregister(struct rmem_mempool *reg);

/**
 * Check the resources for rmem_mempool_register(), and report limits exceeded.
 *
 * Control path. Safe to call from any thread; see rmem_pool_check().
 *
 * @param mp
 *   Fully populated mempool.
 * @param pd
 *   Protection domain, as for rmem_mempool_register().
 * @param[out] report
 *   Written on success, and if a limit is exceeded.
 *
 * @return
 *   0 if the resources suffice, otherwise:
 *   - -EINVAL: NULL mp or report, NULL or not a PD, or an object larger than
 *     rmem_dev_info::max_mr_size.
 *   - -EBUSY: the mempool is not fully populated.
 *   - -ENOSPC: the device has too few MRs left.
 *   - -ENOMEM: no memory to walk the objects.
 *   - -ENODEV: the device is being closed.
 */
int rmem_mempool_check(
		struct rte_mempool *mp, const struct rmem_pd *pd, struct rmem_pool_report *report);

/**
 * Get the statistics of a registered mempool.
 *
 * Control path: visits all lcores. Safe to call from any thread.
 *
 * @param reg
 *   Registration.
 * @param[out] stats
 *   Filled on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a registration, or NULL stats.
 *   - -ENOENT: the mempool was freed.
 */
int rmem_mempool_stats_get(const struct rmem_mempool *reg, struct rmem_mempool_stats *stats);

/**
 * Verify the consistency of a registered mempool.
 *
 * Checks that it was not freed, that every object is in an MR of the PD, that every MR is valid
 * and has the keys that lookups return, and that no lcore cache exceeds its capacity.
 *
 * Control path: visits all objects. Safe to call from any thread.
 *
 * @param reg
 *   Registration.
 *
 * @return
 *   0 if no error was found, otherwise:
 *   - -EINVAL: NULL or not a registration.
 *   - -ENOENT: the mempool was freed while it was registered.
 *   - -EFAULT: an object is not in registered memory; the log has its address.
 *   - -EIO: an MR is no longer valid, has other keys, a cache exceeds its capacity, or the owners
 *     of a tracked pool are inconsistent.
 */
int rmem_mempool_audit(const struct rmem_mempool *reg);

/**
 * Look up an address in all memory registered with the PD of a registration.
 *
 * Called by rmem_mempool_keys() for memory outside of the largest extent.
 *
 * Fast path: a binary search, no lock. Safe to call from any thread.
 *
 * @param reg
 *   Registration.
 * @param addr
 *   First byte.
 * @param length
 *   Bytes, at least 1; one MR must cover all of them.
 *
 * @return
 *   The keys, both RMEM_KEY_NONE if the memory is not registered.
 */
struct rmem_pool_keys rmem_mempool_keys_lookup(
		const struct rmem_mempool *reg, const void *addr, size_t length);

/**
 * Get the keys of memory.
 *
 * Fast path: compares and reads one cache line of the registration if the memory is in its
 * largest extent, else rmem_mempool_keys_lookup(). Safe to call from any thread.
 *
 * @param reg
 *   Registration with the PD of the QP. Any registration with that PD returns the same keys; the
 *   registration of the pool that has the memory is the fastest.
 * @param addr
 *   First byte.
 * @param length
 *   Bytes, at least 1.
 *
 * @return
 *   The keys, both RMEM_KEY_NONE if the memory is not registered.
 */
static inline struct rmem_pool_keys
rmem_mempool_keys(const struct rmem_mempool *reg, const void *addr, size_t length)
{
	uintptr_t offset = (uintptr_t)addr - reg->base;

	/* A constant length of 1 (lookup of one address) needs no second comparison. */
	if (likely(offset < reg->length &&
			    ((__builtin_constant_p(length) && length == 1) ||
					    length <= reg->length - offset)))
		return reg->keys;
	return rmem_mempool_keys_lookup(reg, addr, length);
}

/**
 * Get the MR of memory, for leases, windows and indirect keys over single objects.
 *
 * Fast path: a binary search in the MRs of the registration, which has one MR if its memory is one
 * extent of up to rmem_dev_info::max_mr_size. Safe to call from any thread.
 *
 * @param reg
 *   Registration with the PD of the lease or window.
 * @param addr
 *   First byte; for an mbuf, a byte of the buffer that it refers to.
 * @param length
 *   Bytes, at least 1.
 *
 * @return
 *   The MR of the registration that covers all bytes, or NULL.
 */
struct rmem_mr *rmem_mempool_mr(const struct rmem_mempool *reg, const void *addr, size_t length);

/**
 * Get the lkey of an object.
 *
 * Fast path; see rmem_mempool_keys().
 *
 * @param reg
 *   Registration with the PD of the QP.
 * @param obj
 *   Any byte of the object.
 *
 * @return
 *   Key for the SGEs of local requests, or RMEM_KEY_NONE.
 */
static inline uint32_t
rmem_mempool_lkey(const struct rmem_mempool *reg, const void *obj)
{
	return rmem_mempool_keys(reg, obj, 1).lkey;
}

/**
 * Get the rkey of an object.
 *
 * Fast path; see rmem_mempool_keys().
 *
 * @param reg
 *   Registration with the PD of the QP that peers use.
 * @param obj
 *   Any byte of the object.
 *
 * @return
 *   Key for the requests of peers, or RMEM_KEY_NONE.
 */
static inline uint32_t
rmem_mempool_rkey(const struct rmem_mempool *reg, const void *obj)
{
	return rmem_mempool_keys(reg, obj, 1).rkey;
}

/**
 * Get the IO virtual address of a byte of an object.
 *
 * Fast path. Safe to call from any thread.
 *
 * @param reg
 *   Registration.
 * @param obj
 *   Any byte of the object.
 *
 * @return
 *   Address for rmem_sge::addr and for the remote_addr of peers.
 */
static inline uint64_t
rmem_mempool_iova(const struct rmem_mempool *reg, const void *obj)
{
	RTE_SET_USED(reg);
	return (uintptr_t)obj;
}

#ifdef __cplusplus
}
#endif

#endif /* RMEM_MEMPOOL_H */
