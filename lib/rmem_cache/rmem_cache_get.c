/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The calls of the fast path, and their slow parts: registration of a buffer that no entry covers,
 * with its limits and merges.
 */

#include <errno.h>

#include "rmem_cache_priv.h"

/* Evict entries until an MR of size bytes fits. Return 0, or -ENOSPC with a log line. */
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

/* Register the range of an entry; while resources are short, evict other entries. */
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
		/* Not kept: only this holder uses it. */
		__atomic_fetch_add(&new_entry->refs, 1, __ATOMIC_RELAXED);
		new_entry->state = CACHE_LEFT;
		cache->nb_left++;
		cache->stats.single_use++;
	}
	*entry = new_entry;
	return 0;
}

/* Extend a range by live entries that overlap it, and their rights. Return whether it changed. */
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

/*
 * Register a range, in an entry with one holder. With the lock held. Return 0, or -errno with a log
 * line.
 */
static int
register_buffer(struct rmem_cache *cache, const struct cache_range *want,
		struct cache_entry **entry)
{
	struct cache_range all = *want;

	/*
	 * The memory of an overlapping entry may have been unmapped or protected concurrently, or
	 * exceed a limit together with the buffer. Then the buffer alone is registered, and
	 * replaces the entries.
	 */
	if (merge(cache, &all) && all.end - all.start <= cache->stats.max_size &&
			register_range(cache, &all, entry) == 0) {
		cache->stats.merges++;
		return 0;
	}
	return register_range(cache, want, entry);
}

/* Name the call in log lines; RMEM_CALL() of a slow part. */
#define CACHE_CALL(name, cache)                                                                    \
	__attribute__((cleanup(rmem_call_end), unused)) const bool is_outer =                      \
			rmem_call_begin(name, cache)

static int
check_buffer(const struct rmem_cache *cache, const void *addr, size_t length, uint32_t access)
{
	const uint32_t known = RMEM_CACHE_ACCESS | RMEM_ACCESS_OPTIONAL_RANGE;

	if (length == 0 || (uintptr_t)addr + length < length)
		return CACHE_FAIL(EINVAL, "%s: buffer empty or wraps around: %p, %zu bytes",
				cache->name, addr, length);
	if (access & ~known)
		return CACHE_FAIL(EINVAL,
				"%s: access 0x%x: rights not supported by a cache: 0x%x (0x%x)",
				cache->name, access, access & ~known, known);
	return 0;
}

/* The slow part of rmem_cache_get(): the buffer was not found without the lock. */
static __rte_noinline int
get_slow(struct rmem_cache *cache, void *addr, size_t length, uint32_t access, struct rmem_mr **mr)
{
	CACHE_CALL("rmem_cache_get", cache);
	const struct cache_range range = {(uintptr_t)addr, (uintptr_t)addr + length, access};
	struct cache_entry *entry;
	int ret = rmem_cache_check(cache);

	if (ret == 0 && mr == NULL)
		ret = CACHE_FAIL(EINVAL, "%s: MR: NULL", cache->name);
	if (ret == 0)
		ret = check_buffer(cache, addr, length, access);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&cache->lock);
	rmem_cache_reap(cache);
	entry = cache_search(cache, range.start);
	if (entry != NULL && cache_hold(entry, range.start, length, access)) {
		cache_use(cache, entry);
		__atomic_fetch_add(&cache->hits[RTE_MAX_LCORE].nb, 1, __ATOMIC_RELAXED);
	} else {
		ret = register_buffer(cache, &range, &entry);
		cache->stats.failures += ret != 0;
	}
	if (ret == 0)
		*mr = entry->mr;
	pthread_mutex_unlock(&cache->lock);
	return ret;
}

int
rmem_cache_get(struct rmem_cache *cache, void *addr, size_t length, uint32_t access,
		struct rmem_mr **mr)
{
	unsigned int lcore = rte_lcore_id();
	struct cache_entry *entry;
	uint64_t *hits;

	if (unlikely(cache == NULL || cache->obj.type != rmem_cache_tag || mr == NULL))
		return get_slow(cache, addr, length, access, mr);
	rmem_uffd_settle();
	entry = cache_search(cache, (uintptr_t)addr);
	if (unlikely(entry == NULL || !cache_hold(entry, (uintptr_t)addr, length, access)))
		return get_slow(cache, addr, length, access, mr);
	cache_use(cache, entry);
	if (likely(lcore < RTE_MAX_LCORE)) {
		hits = &cache->hits[lcore].nb;
		__atomic_store_n(hits, __atomic_load_n(hits, __ATOMIC_RELAXED) + 1,
				__ATOMIC_RELAXED);
	} else {
		__atomic_fetch_add(&cache->hits[RTE_MAX_LCORE].nb, 1, __ATOMIC_RELAXED);
	}
	*mr = entry->mr;
	return 0;
}

/* Release a holder; false if there is none. *is_left: the entry is dead and has no holder left. */
static inline bool
drop(struct cache_entry *entry, bool *is_left)
{
	uint32_t refs = __atomic_load_n(&entry->refs, __ATOMIC_RELAXED);

	do {
		if (unlikely((refs & CACHE_HOLDERS) == 0))
			return false;
	} while (!__atomic_compare_exchange_n(
			&entry->refs, &refs, refs - 1, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
	*is_left = ((refs - 1) & (CACHE_DEAD | CACHE_HOLDERS)) == CACHE_DEAD;
	return true;
}

/* The slow part of rmem_cache_put(): the MR is not of a live entry, or must be deregistered. */
static __rte_noinline int
put_slow(struct rmem_cache *cache, const struct rmem_mr *mr, bool is_dropped)
{
	CACHE_CALL("rmem_cache_put", cache);
	bool is_left;
	uint32_t i;
	int ret = rmem_cache_check(cache);

	if (ret != 0)
		return ret;
	pthread_mutex_lock(&cache->lock);
	for (i = 0; i < cache->nb_slots && !is_dropped && mr != NULL; i++) {
		if (cache->entries[i].mr == mr)
			is_dropped = drop(&cache->entries[i], &is_left);
	}
	rmem_cache_reap(cache);
	pthread_mutex_unlock(&cache->lock);
	return is_dropped ? 0
			  : CACHE_FAIL(EINVAL, "%s: not an MR that is held: %p", cache->name,
					    (const void *)mr);
}

int
rmem_cache_put(struct rmem_cache *cache, struct rmem_mr *mr)
{
	struct cache_entry *entry;
	bool is_left;

	if (unlikely(cache == NULL || cache->obj.type != rmem_cache_tag || mr == NULL))
		return put_slow(cache, mr, false);
	entry = cache_search(cache, (uintptr_t)mr->addr);
	if (unlikely(entry == NULL || __atomic_load_n(&entry->mr, __ATOMIC_RELAXED) != mr ||
			    !drop(entry, &is_left)))
		return put_slow(cache, mr, false);
	return likely(!is_left) ? 0 : put_slow(cache, mr, true);
}

int
rmem_cache_flush(struct rmem_cache *cache, void *addr, size_t length)
{
	RMEM_CALL(cache);
	uint64_t start = (uintptr_t)addr, end = start + length;
	struct cache_entry *entry;
	int ret = rmem_cache_check(cache);
	uint32_t i;

	if (ret != 0)
		return ret;
	if (length == 0 || end < start)
		return CACHE_FAIL(EINVAL, "%s: range empty or wraps around: %p, %zu bytes",
				cache->name, addr, length);
	rmem_uffd_settle();
	pthread_mutex_lock(&cache->lock);
	rmem_cache_reap(cache);
	for (i = 0; i < cache->nb_slots; i++) {
		entry = &cache->entries[i];
		if (entry->state != CACHE_FREE && cache_overlaps(entry, start, end)) {
			if (entry->state == CACHE_LIVE)
				rmem_cache_leave(cache, entry);
			ret += entry->state != CACHE_FREE;
		}
	}
	pthread_mutex_unlock(&cache->lock);
	return ret;
}
