/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * The lcore caches of a mempool, accessed in place. Not installed. Only this file depends on their
 * layout: size, len and objs.
 *
 * Invariant: this file never fills a cache above its size. Puts of older DPDK releases fill it up
 * to 1.5 times its size.
 */

#ifndef RMEM_POOL_CACHE_PRIV_H
#define RMEM_POOL_CACHE_PRIV_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_lcore.h>
#include <rte_mempool.h>

#include <rmem_pool.h>

/* The cache is accessed in place unless the mempool counts, checks or traces each call. */
#if defined(RTE_LIBRTE_MEMPOOL_STATS) || defined(RTE_LIBRTE_MEMPOOL_DEBUG) ||                      \
		defined(RTE_ENABLE_TRACE_FP)
#define POOL_CACHE_IS_DIRECT 0
#else
#define POOL_CACHE_IS_DIRECT 1
#endif

/* Offset of the number of objects. */
#define CACHE_LEN offsetof(struct rte_mempool_cache, len)

static_assert(sizeof(((struct rte_mempool_cache *)0)->len) == sizeof(uint32_t) &&
				CACHE_LEN < offsetof(struct rte_mempool_cache, objs) &&
				offsetof(struct rte_mempool_cache, objs) <= UINT8_MAX &&
				RTE_MEMPOOL_CACHE_MAX_SIZE <= UINT16_MAX &&
				RTE_MAX_LCORE * sizeof(struct rte_mempool_cache) <= UINT32_MAX,
		"inline functions find these by rmem_pool::cache_layout");

/**
 * Store the caches of a pool's mempool and their layout, for inline functions. A pool of several
 * slices, or whose mempool has no caches, gets a cache that is always empty: *none, which must be
 * 0.
 */
static inline void
pool_cache_set(struct rmem_pool *pool, uint32_t *none)
{
	pool->caches = (uint8_t *)none;
	if (!POOL_CACHE_IS_DIRECT || pool->mp->cache_size == 0 ||
			pool->log2_slice != RMEM_POOL_ONE_SLICE)
		return;
	pool->caches = (uint8_t *)pool->mp->local_cache + CACHE_LEN;
	pool->cache_layout = sizeof(struct rte_mempool_cache) |
			(uint64_t)pool->mp->cache_size << 32 |
			(uint64_t)(offsetof(struct rte_mempool_cache, objs) - CACHE_LEN) << 56;
}

/** Get the cache of the calling lcore in a pool of one slice, or NULL. */
static inline struct rte_mempool_cache *
pool_cache(const struct rmem_pool *pool)
{
	unsigned int lcore_id = rte_lcore_id();
	void *first;

	if (unlikely(pool->cache_layout == 0 || lcore_id >= RTE_MAX_LCORE))
		return NULL;
	first = pool->caches - CACHE_LEN;
	return (struct rte_mempool_cache *)first + lcore_id;
}

/** Get the cache of the calling lcore in any pool, or NULL. */
static inline struct rte_mempool_cache *
pool_cache_any(const struct rmem_pool *pool)
{
	if (!POOL_CACHE_IS_DIRECT)
		return NULL;
	return rte_mempool_default_cache(pool->mp, rte_lcore_id());
}

/** Take n objects out of a cache; NULL when it has fewer. */
static inline void *const *
pool_cache_take(struct rte_mempool_cache *cache, uint32_t n)
{
	if (unlikely(n > cache->len))
		return NULL;
	cache->len -= n;
	return &cache->objs[cache->len];
}

/** Add n objects to a cache. Return where to store them, or NULL if they do not fit. */
static inline void **
pool_cache_add(struct rte_mempool_cache *cache, uint32_t n)
{
	void **objs;

	if (unlikely((uint64_t)cache->len + n > cache->size))
		return NULL;
	objs = &cache->objs[cache->len];
	cache->len += n;
	return objs;
}

/** Flush a cache, which n objects did not fit, to half of its size. Return whether n fit then. */
static inline bool
pool_cache_flush(struct rte_mempool *mp, struct rte_mempool_cache *cache, uint32_t n)
{
	uint32_t keep = cache->size / 2;

	/* There are more than keep, because n did not fit before. */
	if (n > cache->size - keep)
		return false;
	if (rte_mempool_ops_enqueue_bulk(mp, &cache->objs[keep], cache->len - keep) != 0)
		return false;
	cache->len = keep;
	return true;
}

/** Count the objects in the cache of an lcore. *max is the maximum of any DPDK release. */
static inline uint32_t
pool_cache_len(const struct rte_mempool *mp, unsigned int lcore_id, uint32_t *max)
{
	const struct rte_mempool_cache *cache = &mp->local_cache[lcore_id];

	*max = cache->size + cache->size / 2;
	return cache->len;
}

/** Count the objects in the caches of all lcores. */
static inline uint32_t
pool_cache_count(const struct rte_mempool *mp)
{
	uint32_t max, nb = 0;
	unsigned int i;

	for (i = 0; mp->cache_size != 0 && i < RTE_MAX_LCORE; i++)
		nb += pool_cache_len(mp, i, &max);
	return nb;
}

#endif /* RMEM_POOL_CACHE_PRIV_H */
