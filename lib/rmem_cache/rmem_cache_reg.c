/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Registration of a buffer that no entry covers: limits, merges, and what replaces what. */

#include <errno.h>

#include "rmem_cache_priv.h"

/* Evict until an MR of some bytes fits; 0, or -ENOSPC and a line. */
static int
make_space(struct rmem_cache *cache, uint64_t size)
{
	const struct rmem_cache_stats *stats = &cache->stats;

	if (size > stats->max_size)
		return CACHE_FAIL(ENOSPC, "%s: buffer too large: %" PRIu64 " bytes (%" PRIu64 ")",
				cache->name, size, stats->max_size);
	while (stats->nb_mrs == cache->max_mrs || size > stats->max_size - stats->size) {
		if (!rmem_cache_evict(cache))
			return CACHE_FAIL(ENOSPC,
					"%s: all MRs are held: %u of %" PRIu64
					" bytes (%u of %" PRIu64 ")",
					cache->name, stats->nb_mrs, stats->size, cache->max_mrs,
					stats->max_size);
	}
	return 0;
}

/* Register the range of an entry; while resources are short, evict others. */
static int
register_mr(struct rmem_cache *cache, struct cache_entry *entry)
{
	struct rmem_mr *mr;
	int ret;

	do {
		ret = rmem_mr_reg(cache->pd, (void *)(uintptr_t)entry->start, cache_length(entry),
				0, entry->access, &mr);
	} while ((ret == -ENOMEM || ret == -ENOSPC) && rmem_cache_evict(cache));
	if (ret != 0)
		return ret;
	__atomic_store_n(&entry->mr, mr, __ATOMIC_RELAXED);
	cache->stats.size += cache_length(entry);
	cache->stats.peak_size = RTE_MAX(cache->stats.peak_size, cache->stats.size);
	cache->stats.nb_mrs++;
	return 0;
}

static int
register_range(struct rmem_cache *cache, const struct cache_range *range,
		struct cache_entry **entry)
{
	struct cache_entry *new_entry;
	bool is_watched;
	int ret = make_space(cache, range->end - range->start);

	if (ret != 0)
		return ret;
	new_entry = rmem_cache_alloc(cache);
	if (new_entry == NULL)
		return CACHE_FAIL(ENOSPC, "%s: no entry is free (%u)", cache->name, cache->max_mrs);
	rmem_cache_publish(new_entry, range);
	is_watched = rmem_cache_watch(cache, new_entry);
	ret = register_mr(cache, new_entry);
	if (ret != 0) {
		(void)rmem_cache_release(cache, new_entry);
		return ret;
	}
	cache->stats.misses++;
	__atomic_fetch_add(&cache->clock, 1, __ATOMIC_RELAXED);
	cache_use(cache, new_entry);
	if (!is_watched || !rmem_cache_enter(cache, new_entry)) {
		/* The holder's alone. */
		__atomic_fetch_add(&new_entry->refs, 1, __ATOMIC_RELAXED);
		new_entry->state = CACHE_LEFT;
		cache->nb_left++;
		cache->stats.single_use++;
	}
	*entry = new_entry;
	return 0;
}

/* Add to a range those of live entries that overlap it, and their rights; false: none is added. */
static bool
merge(const struct rmem_cache *cache, struct cache_range *range)
{
	const struct cache_range want = *range;
	const struct cache_entry *entry;
	uint32_t i;

	for (i = rmem_cache_position(cache, want.start); i < cache->index->nb; i++) {
		entry = &cache->entries[cache->slots[i]];
		if (entry->start >= want.end)
			break;
		range->start = RTE_MIN(range->start, entry->start);
		range->end = RTE_MAX(range->end, entry->end);
		range->access |= entry->access;
	}
	return range->start != want.start || range->end != want.end || range->access != want.access;
}

int
rmem_cache_register(struct rmem_cache *cache, const struct cache_range *want,
		struct cache_entry **entry)
{
	struct cache_range all = *want;

	/*
	 * The memory of another entry may have been unmapped or protected concurrently, or exceed a
	 * limit together with this: then the buffer alone replaces the entries.
	 */
	if (merge(cache, &all) && all.end - all.start <= cache->stats.max_size &&
			register_range(cache, &all, entry) == 0) {
		cache->stats.merges++;
		return 0;
	}
	return register_range(cache, want, entry);
}
