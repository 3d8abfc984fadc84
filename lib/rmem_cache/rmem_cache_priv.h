/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Entries of a cache, and the order of their states.
 *
 * Inside: registration cache: MRs found by address, and the watch for unmapped memory.
 * Callers: applications, by rmem_cache.h.
 * Not known here: drivers, and the libraries for pools, leases and connections.
 *
 * An entry is free, or has a range, and later an MR. Its refs count holders; CACHE_DEAD excludes
 * new holders. A live entry is in the index, which is sorted by address; live entries do not
 * overlap.
 *
 * - cache->lock protects the index, and changes of entries other than refs. It is held during a
 *   registration, so neither the thread of events nor rmem_cache_invalidate() takes it.
 * - A reader searches the index without the lock, and may find any entry: it counts itself in refs
 *   and then compares the range, which does not change while an entry without CACHE_DEAD has a
 *   holder. If the entry does not fit, the reader takes the lock and searches again. Hints save the
 *   search: a hint is the entry last found for an address with this hash.
 * - The range of a new entry is published before its memory is watched, the memory is watched
 *   before it is registered, and the entry becomes live only if no event set CACHE_STALE. So an MR
 *   of pages that have been replaced is not returned again.
 * - The thread of events sets CACHE_DEAD while rmem_uffd_pass is odd, and rmem_cache_get() waits
 *   until it is even: so a thread whose munmap() has returned does not find the entry.
 * - An entry with CACHE_DEAD and without holders is deregistered by the first thread that takes the
 *   lock: the control thread of the cache, which the event wakes, or a caller.
 * - The index is memory that the kernel clears in a child of fork(): the child finds no entry, and
 *   is refused before it takes the lock. Entries may be in memory shared with the child.
 */

#ifndef RMEM_CACHE_PRIV_H
#define RMEM_CACHE_PRIV_H

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_lcore.h>
#include <rte_log.h>

#include <rmem_cache.h>
#include <rmem_log.h>
#include <rmem_obj_ref.h>
#include <rmem_thread.h>
#include <rmem_uffd.h>

#define CACHE_LOGTYPE rmem_cache_logtype
extern int rmem_cache_logtype;

/** Refuse a call: return CACHE_FAIL(EINVAL, "format", ...). */
#define CACHE_FAIL(error, ...) RMEM_FAIL_AS(rmem_cache_logtype, "rmem_cache", error, __VA_ARGS__)

/** Tag of a cache, in addition to those of enum rmem_obj_type. */
#define CACHE_TAG UINT32_C(0x726d0102)

/* Bits of cache_entry::refs. */
#define CACHE_DEAD    (UINT32_C(1) << 31) /**< No new holder. */
#define CACHE_STALE   (UINT32_C(1) << 30) /**< Its memory was changed. */
#define CACHE_HOLDERS (CACHE_STALE - 1)

/** States of an entry, under the lock. */
enum cache_state {
	CACHE_FREE = 0,
	CACHE_NEW = 1,  /**< Being registered; dead. */
	CACHE_LIVE = 2, /**< Entry in the index. */
	CACHE_LEFT = 3, /**< Dead, waits for its holders. */
};

struct cache_entry {
	uint32_t refs;   /**< Holders, CACHE_DEAD and CACHE_STALE; atomic. */
	uint32_t access; /**< Rights of the MR. */
	uint64_t start;  /**< Range of the MR; 0 and 0 for a free entry. Atomic. */
	uint64_t end;
	struct rmem_mr *mr; /**< Atomic. */
	uint64_t used;      /**< cache->clock when it was last returned; atomic. */
	uint8_t state;      /**< One of enum cache_state. */
	uint8_t log2_watch; /**< log2 of the alignment of the watched range; 0: none. */
} __rte_cache_aligned;

struct cache_index {
	uint32_t is_owner; /**< 1: not a child of fork(). */
	uint32_t nb;       /**< Live entries; atomic. */
	uint64_t start[];  /**< First bytes of the live entries; atomic. */
};

/** Hits of an lcore; the last element counts the hits of all other threads. */
struct cache_hits {
	uint64_t nb; /**< Atomic. */
} __rte_cache_aligned;

struct rmem_cache {
	struct rmem_obj obj;
	uint32_t max_mrs;
	uint32_t monitor;
	struct cache_entry *entries;
	struct cache_index *index;
	uint32_t *slots;               /**< Entries of the index, by position; atomic. */
	uint32_t *hints;               /**< Entries plus 1, by cache_hint(); atomic. */
	uint32_t hint_shift;           /**< Bits of a hash that are not used. */
	uint64_t clock;                /**< Number of registrations; atomic. */
	uint32_t has_stale;            /**< A live entry may be dead; atomic. */
	uint32_t nb_slots;             /**< Number of entries that were ever used; atomic. */
	uint64_t nb_invalid;           /**< Entries that became stale; atomic. */
	pthread_mutex_t lock;          /**< Protects all that follows, and entries but refs. */
	uint32_t nb_left;              /**< Entries in CACHE_LEFT. */
	struct rmem_cache_stats stats; /**< Without hits, nb_stale, invalidations. */
	struct rmem_pd *pd;
	struct rmem_uffd_watch watch;
	struct rmem_thread thread;
	int wake;        /**< eventfd of the thread, or -1. */
	uint32_t is_end; /**< The thread must end; atomic. */
	size_t index_size;
	char name[RMEM_NAME_SIZE];
	TAILQ_ENTRY(rmem_cache) next; /**< List of all caches. */
	struct cache_hits hits[RTE_MAX_LCORE + 1];
};

/** A range to register. */
struct cache_range {
	uint64_t start;
	uint64_t end;
	uint32_t access;
};

/* rmem_cache_check.c */

/** CACHE_TAG once this process has created a cache, else 0. */
extern uint32_t rmem_cache_tag;
/** Start listening to memory events. Return 0, or -errno with a log line. */
int rmem_cache_check(const struct rmem_cache *cache);

/* rmem_cache_entry.c: entries and the index; with the lock, except for rmem_cache_stale(). */

/** Position in the index of the first live entry that ends after an address. */
uint32_t rmem_cache_position(const struct rmem_cache *cache, uint64_t at);
/** Find a free entry; NULL: none. */
struct cache_entry *rmem_cache_alloc(struct rmem_cache *cache);
/** Publish the range of a free entry. */
void rmem_cache_publish(struct cache_entry *entry, const struct cache_range *range);
/** Make a new entry live, with one holder; false: its memory was changed. */
bool rmem_cache_enter(struct rmem_cache *cache, struct cache_entry *entry);
/** Remove a live entry, and deregister it if it has no holder. */
void rmem_cache_leave(struct rmem_cache *cache, struct cache_entry *entry);
/** Deregister and free an entry that is not live; false: windows or leases use it. */
bool rmem_cache_release(struct rmem_cache *cache, struct cache_entry *entry);
/** Release dead entries without holders. */
void rmem_cache_reap(struct rmem_cache *cache);
/** Evict the least recently used entry without holders; false if there is none. */
bool rmem_cache_evict(struct rmem_cache *cache);
/**
 * Mark entries of changed memory as stale and dead. Takes no lock. Return whether one was alive.
 */
bool rmem_cache_stale(struct rmem_cache *cache, uint64_t start, uint64_t end);

/* rmem_cache_monitor.c */

/** Start the monitor. Return 0, or -errno with a log line. */
int rmem_cache_monitor_start(struct rmem_cache *cache, uint32_t monitor);
void rmem_cache_monitor_stop(struct rmem_cache *cache);
/** Watch the memory of a published entry. Return false if that is not possible. */
bool rmem_cache_watch(struct rmem_cache *cache, struct cache_entry *entry);

/* rmem_cache_telemetry.c */

/** Add a cache to the list; false: another one has its name. */
bool rmem_cache_list_add(struct rmem_cache *cache);
void rmem_cache_list_del(struct rmem_cache *cache);
/** Names of enum rmem_cache_monitor. */
extern const char *const rmem_cache_monitor_names[];

/** Lock a cache for a query. */
static inline void
cache_lock(const struct rmem_cache *cache)
{
	pthread_mutex_lock((pthread_mutex_t *)(uintptr_t)&cache->lock);
}

static inline void
cache_unlock(const struct rmem_cache *cache)
{
	pthread_mutex_unlock((pthread_mutex_t *)(uintptr_t)&cache->lock);
}

static inline uint64_t
cache_length(const struct cache_entry *entry)
{
	return entry->end - entry->start;
}

/** Whether an entry has bytes of [start, end); on any thread. */
static inline bool
cache_overlaps(const struct cache_entry *entry, uint64_t start, uint64_t end)
{
	return __atomic_load_n(&entry->start, __ATOMIC_RELAXED) < end &&
			start < __atomic_load_n(&entry->end, __ATOMIC_RELAXED);
}

/** Hint of the page of an address; the multiplier is 2^64 divided by the golden ratio. */
static inline uint32_t *
cache_hint(const struct rmem_cache *cache, uint64_t at)
{
	return &cache->hints[(at >> 12) * UINT64_C(0x9e3779b97f4a7c15) >> cache->hint_shift];
}

static inline struct cache_entry *
cache_search_index(const struct rmem_cache *cache, uint64_t at, uint32_t *hint)
{
	const struct cache_index *index = cache->index;
	uint32_t nb = __atomic_load_n(&index->nb, __ATOMIC_RELAXED);
	const uint64_t *start = index->start;
	uint32_t half;

	if (unlikely(nb == 0))
		return NULL;
	for (; nb > 1; nb -= half) {
		half = nb / 2;
		start += __atomic_load_n(&start[half], __ATOMIC_RELAXED) <= at ? half : 0;
	}
	nb = __atomic_load_n(&cache->slots[start - index->start], __ATOMIC_RELAXED);
	__atomic_store_n(hint, nb + 1, __ATOMIC_RELAXED);
	return &cache->entries[nb];
}

/** The live entry that may contain an address, or NULL. Without the lock it may be any entry. */
static inline struct cache_entry *
cache_search(const struct rmem_cache *cache, uint64_t at)
{
	uint32_t *hint = cache_hint(cache, at);
	uint32_t slot = __atomic_load_n(hint, __ATOMIC_RELAXED);
	struct cache_entry *entry;

	if (likely(slot != 0)) {
		entry = &cache->entries[slot - 1];
		if (likely(cache_overlaps(entry, at, at + 1) &&
				    (__atomic_load_n(&entry->refs, __ATOMIC_RELAXED) &
						    CACHE_DEAD) == 0))
			return entry;
	}
	return cache_search_index(cache, at, hint);
}

/** Hold an entry if it covers a buffer and has the rights. */
static inline bool
cache_hold(struct cache_entry *entry, uint64_t at, size_t length, uint32_t access)
{
	uint32_t refs = __atomic_fetch_add(&entry->refs, 1, __ATOMIC_ACQUIRE);

	if (likely((refs & CACHE_DEAD) == 0 && entry->start <= at && at < entry->end &&
			    length - 1 < entry->end - at && (access & ~entry->access) == 0))
		return true;
	__atomic_fetch_sub(&entry->refs, 1, __ATOMIC_RELEASE);
	return false;
}

/** Note that an entry was returned. */
static inline void
cache_use(struct rmem_cache *cache, struct cache_entry *entry)
{
	uint64_t clock = __atomic_load_n(&cache->clock, __ATOMIC_RELAXED);

	if (unlikely(__atomic_load_n(&entry->used, __ATOMIC_RELAXED) != clock))
		__atomic_store_n(&entry->used, clock, __ATOMIC_RELAXED);
}

#endif /* RMEM_CACHE_PRIV_H */
