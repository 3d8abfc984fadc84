/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The check of a cache handle, and statistics of a cache. */

#include <string.h>

#include "rmem_cache_priv.h"

RTE_LOG_REGISTER(rmem_cache_logtype, lib.rmem.cache, NOTICE)

uint32_t rmem_cache_tag;

int
rmem_cache_check(const struct rmem_cache *cache)
{
	int ret = rmem_process_check();

	if (ret != 0)
		return ret;
	if (cache == NULL || cache->obj.type != __atomic_load_n(&rmem_cache_tag, __ATOMIC_RELAXED))
		return CACHE_FAIL(EINVAL, "cache: not a cache: %p", (const void *)cache);
	if (cache->index->is_owner == 0)
		return CACHE_FAIL(EPERM, "%s: child of fork() (create another cache)", cache->name);
	return 0;
}

int
rmem_cache_stats_get(const struct rmem_cache *cache, struct rmem_cache_stats *stats)
{
	RMEM_CALL(cache);
	int ret = rmem_cache_check(cache);
	uint32_t i;

	if (ret != 0)
		return ret;
	if (stats == NULL)
		return CACHE_FAIL(EINVAL, "statistics: NULL");
	rmem_uffd_settle();
	cache_lock(cache);
	*stats = cache->stats;
	stats->nb_stale = cache->nb_left;
	cache_unlock(cache);
	for (i = 0; i < RTE_DIM(cache->hits); i++)
		stats->hits += __atomic_load_n(&cache->hits[i].nb, __ATOMIC_RELAXED);
	stats->invalidations = __atomic_load_n(&cache->nb_invalid, __ATOMIC_RELAXED);
	return 0;
}
