/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Entries of a cache and its index; see rmem_cache_priv.h. */

#include <string.h>

#include "rmem_cache_priv.h"

static struct cache_entry *
entry_at(const struct rmem_cache *cache, uint32_t position)
{
	return &cache->entries[cache->slots[position]];
}

uint32_t
rmem_cache_position(const struct rmem_cache *cache, uint64_t at)
{
	uint32_t low = 0, high = cache->index->nb, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (entry_at(cache, middle)->end > at)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Store a slot in the index. While entries move, a reader may find one twice, or not at all. */
static void
index_set(struct rmem_cache *cache, uint32_t position, uint32_t slot)
{
	__atomic_store_n(&cache->index->start[position], cache->entries[slot].start,
			__ATOMIC_RELAXED);
	__atomic_store_n(&cache->slots[position], slot, __ATOMIC_RELAXED);
}

static void
index_add(struct rmem_cache *cache, const struct cache_entry *entry)
{
	uint32_t position = rmem_cache_position(cache, entry->start);
	uint32_t i = cache->index->nb;

	for (; i > position; i--)
		index_set(cache, i, cache->slots[i - 1]);
	index_set(cache, position, (uint32_t)(entry - cache->entries));
	__atomic_store_n(&cache->index->nb, cache->index->nb + 1, __ATOMIC_RELEASE);
}

static void
index_del(struct rmem_cache *cache, const struct cache_entry *entry)
{
	uint32_t nb = cache->index->nb - 1;
	uint32_t i = rmem_cache_position(cache, entry->start);

	__atomic_store_n(&cache->index->nb, nb, __ATOMIC_RELEASE);
	for (; i < nb; i++)
		index_set(cache, i, cache->slots[i + 1]);
}

struct cache_entry *
rmem_cache_alloc(struct rmem_cache *cache)
{
	uint32_t i = 0;

	if (cache->stats.nb_mrs == cache->nb_slots && cache->nb_slots < cache->max_mrs) {
		__atomic_store_n(&cache->nb_slots, cache->nb_slots + 1, __ATOMIC_SEQ_CST);
		return &cache->entries[cache->nb_slots - 1];
	}
	while (i < cache->nb_slots && cache->entries[i].state != CACHE_FREE)
		i++;
	return i < cache->nb_slots ? &cache->entries[i] : NULL;
}

void
rmem_cache_publish(struct cache_entry *entry, const struct cache_range *range)
{
	__atomic_fetch_and(&entry->refs, ~CACHE_STALE, __ATOMIC_SEQ_CST);
	__atomic_store_n(&entry->start, range->start, __ATOMIC_SEQ_CST);
	__atomic_store_n(&entry->end, range->end, __ATOMIC_SEQ_CST);
	entry->access = range->access;
	entry->state = CACHE_NEW;
}

bool
rmem_cache_enter(struct rmem_cache *cache, struct cache_entry *entry)
{
	uint32_t refs = __atomic_load_n(&entry->refs, __ATOMIC_RELAXED);
	uint32_t i;

	do {
		if (refs & CACHE_STALE)
			return false;
	} while (!__atomic_compare_exchange_n(&entry->refs, &refs, (refs & ~CACHE_DEAD) + 1, false,
			__ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	for (i = rmem_cache_position(cache, entry->start);
			i < cache->index->nb && cache->index->start[i] < entry->end;)
		rmem_cache_leave(cache, entry_at(cache, i));
	entry->state = CACHE_LIVE;
	index_add(cache, entry);
	return true;
}

bool
rmem_cache_release(struct rmem_cache *cache, struct cache_entry *entry)
{
	uint64_t start = entry->start, end = entry->end, page;

	if (entry->mr != NULL) {
		if (rmem_mr_dereg(entry->mr) != 0)
			return false;
		cache->stats.size -= cache_length(entry);
		cache->stats.nb_mrs--;
	}
	__atomic_store_n(&entry->mr, NULL, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->end, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&entry->start, 0, __ATOMIC_SEQ_CST);
	if (entry->log2_watch != 0) {
		page = UINT64_C(1) << entry->log2_watch;
		rmem_uffd_del(RTE_ALIGN_FLOOR(start, page), RTE_ALIGN_CEIL(end, page));
	}
	entry->log2_watch = 0;
	entry->state = CACHE_FREE;
	return true;
}

void
rmem_cache_leave(struct rmem_cache *cache, struct cache_entry *entry)
{
	uint32_t refs = __atomic_fetch_or(&entry->refs, CACHE_DEAD, __ATOMIC_ACQ_REL);

	index_del(cache, entry);
	if ((refs & CACHE_HOLDERS) == 0 && rmem_cache_release(cache, entry))
		return;
	entry->state = CACHE_LEFT;
	cache->nb_left++;
}

static void
reap_live(struct rmem_cache *cache)
{
	struct cache_entry *entry;
	uint32_t i;

	for (i = 0; i < cache->nb_slots; i++) {
		entry = &cache->entries[i];
		if (entry->state == CACHE_LIVE &&
				(__atomic_load_n(&entry->refs, __ATOMIC_ACQUIRE) & CACHE_DEAD))
			rmem_cache_leave(cache, entry);
	}
}

void
rmem_cache_reap(struct rmem_cache *cache)
{
	struct cache_entry *entry;
	uint32_t i;

	if (__atomic_load_n(&cache->has_stale, __ATOMIC_RELAXED) &&
			__atomic_exchange_n(&cache->has_stale, 0, __ATOMIC_SEQ_CST))
		reap_live(cache);
	for (i = 0; i < cache->nb_slots && cache->nb_left != 0; i++) {
		entry = &cache->entries[i];
		if (entry->state == CACHE_LEFT &&
				(__atomic_load_n(&entry->refs, __ATOMIC_ACQUIRE) & CACHE_HOLDERS) ==
						0 &&
				rmem_cache_release(cache, entry))
			cache->nb_left--;
	}
}

bool
rmem_cache_evict(struct rmem_cache *cache)
{
	struct cache_entry *entry, *oldest;
	uint64_t used, oldest_used;
	uint32_t i, refs;

	do {
		oldest = NULL;
		oldest_used = UINT64_MAX;
		for (i = 0; i < cache->nb_slots; i++) {
			entry = &cache->entries[i];
			used = __atomic_load_n(&entry->used, __ATOMIC_RELAXED);
			if (entry->state == CACHE_LIVE && used < oldest_used &&
					__atomic_load_n(&entry->refs, __ATOMIC_RELAXED) == 0) {
				oldest = entry;
				oldest_used = used;
			}
		}
		refs = 0;
	} while (oldest != NULL &&
			!__atomic_compare_exchange_n(&oldest->refs, &refs, CACHE_DEAD, false,
					__ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	if (oldest == NULL)
		return false;
	rmem_cache_leave(cache, oldest);
	cache->stats.evictions++;
	return true;
}

bool
rmem_cache_stale(struct rmem_cache *cache, uint64_t start, uint64_t end)
{
	uint32_t nb_slots = __atomic_load_n(&cache->nb_slots, __ATOMIC_SEQ_CST);
	uint32_t i, refs, nb = 0;

	for (i = 0; i < nb_slots; i++) {
		if (!cache_overlaps(&cache->entries[i], start, end))
			continue;
		refs = __atomic_fetch_or(&cache->entries[i].refs, CACHE_DEAD | CACHE_STALE,
				__ATOMIC_SEQ_CST);
		nb += (refs & CACHE_DEAD) == 0;
	}
	if (nb == 0)
		return false;
	__atomic_fetch_add(&cache->nb_invalid, nb, __ATOMIC_RELAXED);
	__atomic_store_n(&cache->has_stale, 1, __ATOMIC_SEQ_CST);
	return true;
}
