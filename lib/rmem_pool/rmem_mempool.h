/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Mempools of any maker, registered with a PD.
 *
 * A registration covers the memory of all objects of a mempool, with one MR for each
 * contiguous extent. It answers with the keys of an address. A mempool is registered once
 * for each PD that shall reach it: with several devices the registration tells them apart.
 *
 * The keys of an address are those of the memory there, whichever registration is asked:
 * what does not lie in the largest extent of the one that is asked is looked for in
 * everything that this library registered with the same PD. So clones and external
 * buffers have the keys of the memory they point to.
 */

#ifndef RMEM_MEMPOOL_H
#define RMEM_MEMPOOL_H

#include <stddef.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
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

/** Tag of a registration, beside those of enum rmem_obj_type. */
#define RMEM_MEMPOOL_TAG UINT32_C(0x726d0100)

/** What a lookup gives for memory that is not registered: a key that opens nothing. */
#define RMEM_KEY_NONE 0

/**
 * A mempool registered with a PD. What a lookup reads is its first cache line.
 * Applications read mp, pd, nb_mrs, mrs, access and registered.
 */
struct rmem_mempool {
	struct rmem_obj obj;          /**< Private head. */
	uint32_t nb_mrs;              /**< MRs it took. */
	uintptr_t base;               /**< Private: where the largest extent begins. */
	size_t length;                /**< Private: bytes of it. */
	struct rmem_pool_keys keys;   /**< Private: keys of it. */
	struct rmem_map *map;         /**< Private: all that is registered with the PD. */
	struct rte_mempool *mp;       /**< The mempool; rte_mempool_* calls work on it. */
	struct rmem_pd *pd;           /**< PD its memory is registered with. */
	struct rmem_mr **mrs;         /**< The MRs, nb_mrs of them, by address. */
	const struct rte_memzone *mz; /**< Private: memory made for it, else NULL. */
	struct rmem_mempool *next;    /**< Private: another registration. */
	uint64_t registered;          /**< Bytes registered. */
	uint32_t access;              /**< Bitwise OR of RMEM_ACCESS_*. */
} __rte_cache_aligned;

/** What rmem_mempool_stats_get() tells. Lcores go on: sums may be a few objects apart. */
struct rmem_mempool_stats {
	uint32_t nb_objs;    /**< Objects of the mempool. */
	uint32_t nb_avail;   /**< Objects that are free, cached ones included. */
	uint32_t nb_cached;  /**< Objects in the caches of lcores. */
	uint32_t nb_in_use;  /**< Objects that are out. */
	uint32_t nb_chunks;  /**< Pieces of memory that the mempool was given. */
	uint32_t nb_mrs;     /**< MRs. */
	uint64_t registered; /**< Bytes registered. */
	uint64_t largest_mr; /**< Bytes of the largest MR. */
};

/**
 * Register the memory of a mempool with a PD.
 *
 * All chunks are registered whole, those that touch as one MR; beyond
 * rmem_dev_info::max_mr_size they are cut between objects, and only objects are covered.
 * For an mbuf pool with pinned external buffers (rte_pktmbuf_pool_create_extbuf()) it is
 * the buffers that are registered and not the mbufs: neighbours less than a system page
 * apart as one MR. Nothing is truncated: all objects are covered or the call fails.
 *
 * The mempool must not be freed before rmem_mempool_unregister().
 *
 * Control path: touches and registers memory. Safe to call from any thread, not while
 * another thread populates or frees the mempool.
 *
 * @param mp
 *   Mempool with all of its objects.
 * @param pd
 *   Protection domain. A mempool is registered once with each.
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
 *   - -EEXIST: memory of the mempool is registered with that PD by this library already.
 *   - -EOPNOTSUPP: the device lacks the capability for a requested access bit.
 *   - -EFAULT: part of the memory is not mapped, or not writable while access needs it.
 *   - -ENOSPC: the device has too few of its rmem_dev_info::max_mr regions left.
 *   - -ENOMEM: no memory for the registration, or the pages could not be pinned.
 *   - -ENODEV: the device is being closed.
 *   - -EIO: the device failed.
 */
int rmem_mempool_register(struct rte_mempool *mp, struct rmem_pd *pd, uint32_t access,
		struct rmem_mempool **reg);

/**
 * Deregister the memory of a mempool. Objects may be out; the mempool itself goes on.
 *
 * Control path. Not while another thread uses the registration, nor looks up an address of
 * its memory through another one; once for each registration.
 *
 * @param reg
 *   Registration to release; not valid any more on success, unchanged on failure but -EIO.
 *   NULL is allowed and does nothing.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not a registration, or that of rmem_pktmbuf_pool_create().
 *   - -EBUSY: something refers to one of its MRs; where only the device knows of that, as with
 *     -EIO.
 *   - -EIO: the device failed to deregister an MR, and may still reach the memory: it must not be
 *     freed. The registration is good for nothing but another call of this.
 */
int rmem_mempool_unregister(struct rmem_mempool *reg);

/**
 * Tell whether rmem_mempool_register() finds what it needs, and what is short if not.
 *
 * Control path. Safe to call from any thread; see rmem_pool_check().
 *
 * @param mp
 *   Mempool with all of its objects.
 * @param pd
 *   Protection domain to register it with.
 * @param[out] report
 *   Written on success, and when a limit is short.
 *
 * @return
 *   0 when it fits, otherwise:
 *   - -EINVAL: NULL mp or report, NULL or not a PD, or an object larger than
 *     rmem_dev_info::max_mr_size.
 *   - -EBUSY: the mempool is not fully populated.
 *   - -ENOSPC: the device has too few MRs left.
 *   - -ENOMEM: no memory to walk the objects.
 *   - -ENODEV: the device is being closed.
 */
int rmem_mempool_check(struct rte_mempool *mp, struct rmem_pd *pd, struct rmem_pool_report *report);

/**
 * Tell how full a registered mempool is and what its registration took.
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
 * Audit a registered mempool: it was not freed, every object lies in an MR of the PD, every MR is
 * valid and has the keys that lookups give, and no lcore's cache holds more than it can.
 *
 * Control path: visits all objects. Safe to call from any thread.
 *
 * @param reg
 *   Registration.
 *
 * @return
 *   0 when all is well, otherwise:
 *   - -EINVAL: NULL or not a registration.
 *   - -ENOENT: the mempool was freed while it was registered.
 *   - -EFAULT: an object is not in registered memory; the log names it.
 *   - -EIO: an MR is not valid any more, its keys are others, or a cache is overfull.
 */
int rmem_mempool_audit(const struct rmem_mempool *reg);

/**
 * Look an address up in all that this library registered with the PD of a registration:
 * what rmem_mempool_keys() does for memory outside its largest extent.
 *
 * Fast path: a binary search, no lock. Safe to call from any thread.
 *
 * @param reg
 *   Registration.
 * @param addr
 *   First byte.
 * @param length
 *   Bytes, at least 1; one MR has to hold them all.
 *
 * @return
 *   The keys, both RMEM_KEY_NONE when that memory is not registered.
 */
struct rmem_pool_keys rmem_mempool_find(
		const struct rmem_mempool *reg, const void *addr, size_t length);

/**
 * The keys of memory.
 *
 * Fast path: compares and reads one cache line of the registration when the memory lies in
 * its largest extent, else rmem_mempool_find(). Safe to call from any thread.
 *
 * @param reg
 *   Registration with the PD of the QP. Any of that PD gives the right keys; that of the
 *   pool the memory is from is the quickest.
 * @param addr
 *   First byte.
 * @param length
 *   Bytes, at least 1.
 *
 * @return
 *   The keys, both RMEM_KEY_NONE when that memory is not registered.
 */
static inline struct rmem_pool_keys
rmem_mempool_keys(const struct rmem_mempool *reg, const void *addr, size_t length)
{
	uintptr_t offset = (uintptr_t)addr - reg->base;

	if (likely(offset < reg->length && length <= reg->length - offset))
		return reg->keys;
	return rmem_mempool_find(reg, addr, length);
}

/**
 * The MR that memory lies in: for leases, windows and indirect keys over single objects.
 *
 * Fast path: a binary search in the MRs of the registration, which has one when its memory is one
 * extent of up to rmem_dev_info::max_mr_size. Safe to call from any thread.
 *
 * @param reg
 *   Registration with the PD of the lease or window.
 * @param addr
 *   First byte; of an mbuf, in the buffer that it points to.
 * @param length
 *   Bytes, at least 1.
 *
 * @return
 *   The MR, which holds them all and belongs to the registration, or NULL when none of this
 *   registration does.
 */
struct rmem_mr *rmem_mempool_mr(const struct rmem_mempool *reg, const void *addr, size_t length);

/**
 * The lkey of an object.
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
 * The rkey of an object.
 *
 * Fast path; see rmem_mempool_keys().
 *
 * @param reg
 *   Registration with the PD that peers reach.
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
 * The address of a byte of an object as requests name it.
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
	(void)reg;
	return (uintptr_t)obj;
}

#ifdef __cplusplus
}
#endif

#endif /* RMEM_MEMPOOL_H */
