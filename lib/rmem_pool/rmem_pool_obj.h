/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * A registered mempool, and the keys of its buffers. rmem_pool.h includes it.
 */

#ifndef RMEM_POOL_OBJ_H
#define RMEM_POOL_OBJ_H

#include <stddef.h>
#include <stdint.h>

#include <rte_common.h>
#include <rte_mempool.h>

#include <rmem_obj.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_map;
struct rmem_mr;
struct rmem_pd;

/** Keys of a slice of pool memory. */
struct rmem_pool_keys {
	uint32_t lkey; /**< Key for SGEs. */
	uint32_t rkey; /**< Key for peers. */
};

/**
 * Registered mempool.
 *
 * Private fields are those that get and put read, in the first cache line.
 */
struct rmem_pool {
	struct rmem_obj obj;               /**< Private head. */
	uint32_t log2_slice;               /**< Private: bytes of a slice. */
	struct rte_mempool *mp;            /**< The mempool; rte_mempool_* calls work on it. */
	uint8_t *caches;                   /**< Private: number of buffers in the first cache. */
	uintptr_t base;                    /**< Private: first address of slice 0. */
	const struct rmem_pool_keys *keys; /**< Private: by slice. */
	uint64_t tail;         /**< Private: length and lkey of the SGEs of one slice. */
	uint64_t cache_layout; /**< Private: see rmem_pool_cache(). */
	struct rmem_pd *pd;    /**< PD of the registration. */
	uint32_t buf_size;     /**< Bytes of a buffer. */
	uint32_t nb_bufs;      /**< Buffers. */
	uint32_t nb_mrs;       /**< Number of MRs: 1 unless larger than max_mr_size. */
	struct rmem_mr **mrs;  /**< The nb_mrs MRs, sorted by address. */
} __rte_cache_aligned;

/** rmem_pool::log2_slice of a pool with one slice: any offset shifted by it is 0. */
#define RMEM_POOL_ONE_SLICE 63

/** @cond private */

/** Keys of a buffer. */
static inline struct rmem_pool_keys
rmem_pool_keys_of(const struct rmem_pool *pool, const void *obj)
{
	return pool->keys[((uintptr_t)obj - pool->base) >> pool->log2_slice];
}

/** @endcond */

/**
 * Get the lkey of a buffer.
 *
 * Fast path: one load. Safe to call from any thread.
 *
 * @param pool
 *   Pool the buffer is from.
 * @param obj
 *   First byte of the buffer.
 *
 * @return
 *   Key for the SGEs of local requests.
 */
static inline uint32_t
rmem_pool_lkey(const struct rmem_pool *pool, const void *obj)
{
	return rmem_pool_keys_of(pool, obj).lkey;
}

/**
 * Get the rkey of a buffer.
 *
 * Fast path: one load. Safe to call from any thread.
 *
 * @param pool
 *   Pool the buffer is from.
 * @param obj
 *   First byte of the buffer.
 *
 * @return
 *   Key for the requests of peers.
 */
static inline uint32_t
rmem_pool_rkey(const struct rmem_pool *pool, const void *obj)
{
	return rmem_pool_keys_of(pool, obj).rkey;
}

/**
 * Get the IO virtual address of a byte of a buffer.
 *
 * Fast path. Safe to call from any thread.
 *
 * @param pool
 *   Pool the buffer is from.
 * @param obj
 *   Byte of the buffer.
 *
 * @return
 *   Address for rmem_sge::addr and for the remote_addr of peers.
 */
static inline uint64_t
rmem_pool_iova(const struct rmem_pool *pool, const void *obj)
{
	RTE_SET_USED(pool);
	return (uintptr_t)obj;
}

#ifdef __cplusplus
}
#endif

#endif /* RMEM_POOL_OBJ_H */
