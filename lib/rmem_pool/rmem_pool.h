/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Registered mempools: pools of buffers with keys.
 *
 * A pool is an rte_mempool over memory that is registered once (ALLOCATE_MR) and divided
 * into buffers of equal size. A buffer is an object of the mempool, with the usual lcore
 * caches. Its keys are the keys of the registration, without a search.
 *
 * A pool larger than rmem_dev_info::max_mr_size is registered in slices of a power of two,
 * each as one MR; a key lookup then takes one shift and one load.
 */

#ifndef RMEM_POOL_H
#define RMEM_POOL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <rte_atomic.h>
#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_lcore.h>
#include <rte_mempool.h>

#include <rmem_pool_obj.h>
#include <rmem_wr.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Maximum size of a buffer, in bytes. */
#define RMEM_POOL_MAX_BUF_SIZE (UINT32_C(1) << 30)

/**
 * Flag of a pool that is shared with secondary processes, without lcore caches.
 *
 * Each buffer has an owner, so that the buffers of a process that is killed can be freed: see
 * rmem_tracked.h.
 */
#define RMEM_POOL_TRACKED (UINT32_C(1) << 0)
/**
 * Flag of rmem_pool_conf: check puts.
 *
 * Invalid puts are logged and ignored, also by rte_mempool_put(): of a buffer that is free already,
 * of an address within a buffer, or of memory outside of the pool. The mempool then has no caches:
 * gets and puts are slower. Implied on a device with RMEM_DEV_CAPA_SANITIZE. Tracked pools check
 * puts in any case.
 */
#define RMEM_POOL_CHECK_PUTS (UINT32_C(1) << 1)

/** Configuration of a pool. The caller zeroes it first. */
struct rmem_pool_conf {
	const char *name;     /**< Unique name, 1 to 25 bytes (RTE_MEMPOOL_NAMESIZE - 1). */
	const char *ops_name; /**< Mempool ops such as "stack"; NULL for "ring_mp_mc", and with
				*  RMEM_POOL_TRACKED, which has its own.
				*/
	uint32_t nb_bufs;     /**< Buffers, at least 1. */
	uint32_t buf_size;    /**< Bytes of a buffer, 1 to RMEM_POOL_MAX_BUF_SIZE. */
	uint32_t cache_size;  /**< Buffers cached by each lcore, 0 to
				*  RTE_MEMPOOL_CACHE_MAX_SIZE and to nb_bufs / 1.5; 0 with
				*  RMEM_POOL_TRACKED.
				*/
	uint32_t access; /**< Bitwise OR of RMEM_ACCESS_*, without ALLOCATE_MR and ZERO_BASED. */
	int socket_id;   /**< NUMA socket, SOCKET_ID_ANY for any. */
	uint32_t flags;  /**< Bitwise OR of RMEM_POOL_*. */
	uint64_t reserved[2]; /**< Zero. */
};

/**
 * Create a registered mempool.
 *
 * Control path: allocates, touches and registers memory. Safe to call from any thread.
 *
 * @param pd
 *   Protection domain to register the memory with.
 * @param conf
 *   Configuration; not needed after the call.
 * @param[out] pool
 *   The new pool. Written only on success. Release it with rmem_pool_destroy().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a PD, NULL conf, name or pool, a name that is empty or too long,
 *     a number out of range, a buffer larger than rmem_dev_info::max_mr_size, unknown
 *     mempool ops, an unknown access bit or flag, a remote right to modify without
 *     LOCAL_WRITE, a reserved field that is not zero, or no such NUMA socket; RMEM_POOL_TRACKED
 *     with a cache or with mempool ops.
 *   - -EEXIST: a mempool of that name exists.
 *   - -EOPNOTSUPP: the device lacks the capability for a requested access bit.
 *   - -ENOSPC: the device has too few of its rmem_dev_info::max_mr regions left; or, with
 *     RMEM_POOL_TRACKED, DPDK has no free slot for mempool ops, or there are 128 such pools.
 *   - -ENOMEM: too little memory; the log has the amount missing.
 *   - -ENODEV: the device is being closed.
 *   - -EIO: the device failed.
 */
int rmem_pool_create(
		struct rmem_pd *pd, const struct rmem_pool_conf *conf, struct rmem_pool **pool);

/**
 * Destroy a pool, deregister and free its memory.
 *
 * Control path. Once for each pool; no other thread may use it.
 *
 * @param pool
 *   Pool to release; no longer valid on success, unchanged on failure except -EIO. NULL is
 *   allowed and has no effect.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not a pool.
 *   - -EBUSY: buffers are in use, the mempool has another registration, or an MR has references;
 *     the log has the numbers. If only the device detects a reference, the effect is as for -EIO.
 *   - -EIO: the device failed to deregister an MR. The memory is kept, since the device may still
 *     access it. The only valid use of the pool is another call of this function.
 */
int rmem_pool_destroy(struct rmem_pool *pool);

/**
 * Find a tracked pool by its name, in any process.
 *
 * In a secondary process the pool can be used by the fast path calls of this file and of
 * rmem_mempool: get, put and keys. All other calls need the primary process. Buffers can be got
 * once the process has a number (rmem_process_number()).
 *
 * Control path: takes no lock that another process could hold, except that the first call in a
 * process searches EAL's memzones. Safe to call from any thread. The primary process must not
 * destroy the pool during the call.
 *
 * @param name
 *   Name of the pool.
 * @param[out] pool
 *   The pool. Written only on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL name or pool.
 *   - -ENOENT: there is no tracked pool of that name.
 *   - -EOPNOTSUPP: the mempool ops of tracked pools cannot have the same index as in the primary
 *     process, because this process has loaded more mempool drivers. The log has both indexes.
 *   - -ENOSPC: DPDK has no free slot for mempool ops in this process.
 */
int rmem_pool_lookup(const char *name, struct rmem_pool **pool);

/**
 * Print the counts and the registration of a pool.
 *
 * Includes the low-water mark and the failed gets, as telemetry reports them.
 *
 * Control path. Safe to call from any thread. No other thread may destroy the pool during the call.
 *
 * @param pool
 *   Pool to print.
 * @param f
 *   File to print to.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a pool, or NULL f.
 *   - -ENOMEM: no memory for the text.
 */
int rmem_pool_dump(const struct rmem_pool *pool, FILE *f);

/**
 * Get the MR of a buffer, for leases, windows and indirect keys over it.
 *
 * Fast path: one load in a pool of one MR, else a short search. Safe to call from any thread.
 *
 * @param pool
 *   Pool the buffer is from.
 * @param obj
 *   First byte of the buffer.
 *
 * @return
 *   The MR, which covers the whole buffer and belongs to the pool. NULL if obj is not in memory of
 *   the pool.
 */
struct rmem_mr *rmem_pool_mr(const struct rmem_pool *pool, const void *obj);

/**
 * Get any number of buffers.
 *
 * Called by rmem_pool_get_sges() if n is large or the cache of the lcore is not sufficient.
 *
 * Fast path. Safe to call from any thread.
 *
 * @param pool
 *   Pool to get from.
 * @param[out] sge
 *   Array of n SGEs; undefined on failure.
 * @param n
 *   Number of buffers; 0 is allowed.
 *
 * @return
 *   0 on success, otherwise:
 *   - -ENOENT: fewer than n buffers are free; none was taken.
 *   - -EOPNOTSUPP: the pool is tracked, and this process has no number.
 */
int rmem_pool_get_sges_bulk(struct rmem_pool *pool, struct rmem_sge *sge, unsigned int n);

/**
 * Put back any number of buffers.
 *
 * Called by rmem_pool_put_sges() if n is large or the cache of the lcore is full.
 *
 * Fast path. Safe to call from any thread.
 *
 * @param pool
 *   Pool of the buffers.
 * @param sge
 *   n SGEs with addr as set by the get.
 * @param n
 *   Number of buffers; 0 is allowed.
 */
void rmem_pool_put_sges_bulk(struct rmem_pool *pool, const struct rmem_sge *sge, unsigned int n);

/** @cond private */

/** Minimum number of buffers for which a call into the library is faster. */
#define RMEM_POOL_BULK 8

/** Whether a call is needed: for many buffers, for 0, and for a thread without a cache. */
static inline bool
rmem_pool_is_bulk(unsigned int n, uint32_t lcore_id)
{
	return n - 1 >= RMEM_POOL_BULK - 1 || unlikely(lcore_id >= RTE_MAX_LCORE);
}

/**
 * Number of buffers in the cache of an lcore.
 *
 * Inline functions know a cache only by its layout. The low 32 bits of the layout are the distance
 * between the caches of two lcores, the next 16 bits the maximum number of buffers, and the high 8
 * bits the offset of the buffers from their number. The layout is one word, because the number of
 * loads limits the speed. It is 0 without caches: then the number and the maximum are 0.
 */
static inline uint32_t *
rmem_pool_cache(const struct rmem_pool *pool, uint64_t layout, uint32_t lcore_id)
{
	return (uint32_t *)(void *)(pool->caches + (size_t)lcore_id * (uint32_t)layout);
}

/** Maximum number of buffers in a cache. */
static inline uint32_t
rmem_pool_cache_max(uint64_t layout)
{
	return (uint16_t)(layout >> 32);
}

/** The buffers in a cache. */
static inline void **
rmem_pool_cache_objs(uint32_t *len, uint64_t layout)
{
	return (void **)(void *)((uint8_t *)len + (layout >> 56)) + *len;
}

/** @endcond */

/**
 * Get buffers as SGEs that can be posted.
 *
 * The addr of an SGE is the first byte of a buffer, its length the size of a buffer. Gets all n
 * buffers or none.
 *
 * Fast path: lcores use their cache. Safe to call from any thread.
 *
 * @param pool
 *   Pool to get from.
 * @param[out] sge
 *   Array of n SGEs; undefined on failure.
 * @param n
 *   Number of buffers; 0 is allowed.
 *
 * @return
 *   0 on success, otherwise:
 *   - -ENOENT: fewer than n buffers are free, not counting the caches of other lcores; none was
 *     taken.
 *   - -EOPNOTSUPP: the pool is tracked, and this process has no number.
 *   - -EINVAL: in debug builds, a NULL or wrong handle.
 */
static inline int
rmem_pool_get_sges(struct rmem_pool *pool, struct rmem_sge *sge, unsigned int n)
{
	uint32_t lcore_id = rte_lcore_id();
	uint64_t tail, layout;
	void *const *objs;
	uint32_t *len;
	unsigned int i;

#ifdef RMEM_DEBUG
	if (pool == NULL || pool->obj.type != RMEM_OBJ_POOL || (sge == NULL && n != 0))
		return -EINVAL;
#endif
	if (rmem_pool_is_bulk(n, lcore_id))
		return rmem_pool_get_sges_bulk(pool, sge, n);
	layout = pool->cache_layout;
	len = rmem_pool_cache(pool, layout, lcore_id);
	if (unlikely(n > *len))
		return rmem_pool_get_sges_bulk(pool, sge, n);
	*len -= n;
	objs = rmem_pool_cache_objs(len, layout);
	tail = pool->tail;
	for (i = 0; i < n; i++) {
		sge[i].addr = (uintptr_t)objs[i];
		/* Two stores: a store of both words would wait for the move of the address. */
		rte_compiler_barrier();
		memcpy(&sge[i].length, &tail, sizeof(tail));
	}
	return 0;
}

/**
 * Put back buffers.
 *
 * Fast path: lcores use their cache. Safe to call from any thread.
 *
 * @param pool
 *   Pool of the buffers.
 * @param sge
 *   n SGEs with addr as set by the get; length and lkey are ignored.
 * @param n
 *   Number of buffers; 0 is allowed.
 */
static inline void
rmem_pool_put_sges(struct rmem_pool *pool, const struct rmem_sge *sge, unsigned int n)
{
	uint32_t lcore_id = rte_lcore_id();
	uint64_t layout;
	uint32_t *len;
	void **objs;
	unsigned int i;

	if (rmem_pool_is_bulk(n, lcore_id)) {
		rmem_pool_put_sges_bulk(pool, sge, n);
		return;
	}
	layout = pool->cache_layout;
	len = rmem_pool_cache(pool, layout, lcore_id);
	if (unlikely(*len + n > rmem_pool_cache_max(layout))) {
		rmem_pool_put_sges_bulk(pool, sge, n);
		return;
	}
	objs = rmem_pool_cache_objs(len, layout);
	*len += n;
	for (i = 0; i < n; i++)
		objs[i] = (void *)(uintptr_t)sge[i].addr;
}

#ifdef __cplusplus
}
#endif

#endif /* RMEM_POOL_H */
