/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Owners of the buffers of a tracked mempool. Not installed.
 *
 * Each buffer has one byte: the number of the process that owns it, or 0 while it is free. The
 * bytes are the only list of free buffers, and there is no lock.
 *
 * Invariant: a buffer changes hands in one atomic access of its byte. A process that is killed at
 * any instruction leaves each buffer free or owned, and leaves nothing that others wait for.
 *
 * | byte   | changed by                        | access                                    |
 * | ------ | --------------------------------- | ----------------------------------------- |
 * | 0 -> P | a get in process P                | compare-and-swap of the word, acquire     |
 * | P -> 0 | a put in process P                | store of the byte, or of a word whose     |
 * |        |                                   | bytes are all P, release                  |
 * | P -> 0 | a put in process Q                | compare-and-swap of the word, acquire and |
 * | P -> 0 | the reaper, after the death of P; | release                                   |
 * | or 1   | 1 while it resets an mbuf         |                                           |
 * | P -> Q | rmem_tracked_own() in process Q   |                                           |
 *
 * A put in P stores without a compare-and-swap: no other process changes a byte of P while the
 * application keeps the rule that one thread at a time uses a buffer. A compare-and-swap of a word
 * fails if another byte of the word has changed, and is repeated.
 *
 * The acquire of a get synchronizes with the release of the put that made the buffer free: accesses
 * of the former owner precede accesses of the new owner. A dead process makes no accesses.
 *
 * The hints are indexes at which searches begin. Any value is valid; a stale hint only costs time.
 */

#ifndef RMEM_TRACKED_PRIV_H
#define RMEM_TRACKED_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_common.h>
#include <rte_config.h>

struct rte_mempool;

/** Name of the mempool ops. */
#define TRACKED_OPS_NAME "rmem_tracked"

/** Number of the primary process. */
#define TRACKED_PRIMARY 1 /* RMEM_PROCESS_PRIMARY */

/** Highest number of a process. */
#define TRACKED_MAX_OWNER 254 /* RMEM_PROCESS_MAX */

/** Value of the bytes after the byte of the last buffer. */
#define TRACKED_NO_BUF 255

/** Buffers of a word of owners. */
#define TRACKED_PER_WORD 8

/** Index of an address that is not a buffer. */
#define TRACKED_NO_INDEX UINT32_MAX

/** Where the searches of an lcore begin: indexes of words, atomic. */
struct rmem_tracked_hint {
	uint32_t recent; /**< Word of the buffer put back last. */
	uint32_t next;   /**< Word at which the last search ended. */
} __rte_cache_aligned;

/** Buffers and owners of a mempool, in memory shared by all processes. */
struct rmem_tracked {
	uint32_t size;       /**< Buffers. */
	uint32_t nb_words;   /**< Words of owners. */
	uint32_t nb_objs;    /**< Buffers added; functions other than add() need all. */
	uint32_t per_page;   /**< Buffers of a page. */
	uintptr_t base;      /**< Address of the first buffer. */
	uint64_t page_mask;  /**< Bytes of a page, minus 1. */
	uint64_t reciprocal; /**< 2^64 / distance of two buffers, rounded up. */
	uint32_t log2_page;  /**< log2 of the page size; 63 if buffers may cross pages. */
	uint32_t pad;        /**< Zero. */
	void **objs;         /**< Buffers, by index, sorted by address. */
	uint64_t *words;     /**< Owners of 8 buffers each; atomic. */
	uint64_t bad_puts __rte_cache_aligned; /**< Buffers whose put was refused; atomic. */
	struct rmem_tracked *next;             /**< Next in the list of the primary process. */
	struct rte_mempool *mp;                /**< The mempool. */
	bool is_mbufs;                         /**< The buffers are mbufs. */
	struct rmem_tracked_hint
			hints[RTE_MAX_LCORE + 1]; /**< The last one is for other threads. */
};

/** Bytes of memory for size buffers. */
size_t rmem_tracked_mem_size(uint32_t size);

/** Initialize zeroed memory, aligned to a cache line, for size buffers. */
void rmem_tracked_init(struct rmem_tracked *td, uint32_t size);

/**
 * Add a free buffer; no other thread may use td. The functions below need all size buffers. Return
 * false if all of them were added.
 */
bool rmem_tracked_add(struct rmem_tracked *td, void *obj);

/** Whether all buffers were added. */
static inline bool
rmem_tracked_is_full(const struct rmem_tracked *td)
{
	return td->nb_objs == td->size;
}

/** Get n buffers for a process, or none. Return 0, or -ENOBUFS. */
int rmem_tracked_get(struct rmem_tracked *td, void **objs, unsigned int n, uint8_t process,
		unsigned int lcore_id);

/** Put back n buffers. Return the number of addresses refused: free, or not a buffer. */
unsigned int rmem_tracked_put(struct rmem_tracked *td, void *const *objs, unsigned int n,
		uint8_t process, unsigned int lcore_id);

/** Change the owner of a buffer from `from` (0: any process). Return whether it was changed. */
bool rmem_tracked_take(struct rmem_tracked *td, const void *obj, uint8_t process, uint8_t from);

/** Reset a buffer of a dead process to the state of a free buffer. */
typedef void (*rmem_tracked_reset_t)(struct rmem_tracked *td, void *obj);

/** Free all buffers of a dead process, after resets (NULL: none). Return their number. */
uint32_t rmem_tracked_reap_from(
		struct rmem_tracked *td, uint8_t process, rmem_tracked_reset_t reset);

/** Get the owner of a buffer, 0 if it is free, or -1 if obj is not a buffer. */
int rmem_tracked_owner_of(const struct rmem_tracked *td, const void *obj);

/** Number of free buffers. */
uint32_t rmem_tracked_count_free(const struct rmem_tracked *td);

/** Count buffers by owner, in nb[TRACKED_MAX_OWNER + 1]. */
void rmem_tracked_count(const struct rmem_tracked *td, uint32_t *nb);

/** Check the invariants. Return the inconsistent part, or NULL. */
const char *rmem_tracked_find_error(const struct rmem_tracked *td);

/* With the mempool library (rmem_tracked.c). */

/** Get the index of the ops in this process; -ENOSPC with a log line if DPDK's table is full. */
int rmem_tracked_ops_index(void);

/** Get the buffers and owners of a mempool, or NULL if it is not tracked. */
struct rmem_tracked *rmem_tracked_of(const struct rte_mempool *mp);

/** Note that the buffers are mbufs: a reap initializes them before it frees them. */
void rmem_tracked_set_mbufs(const struct rte_mempool *mp);

/** Log the owners of the buffers of a mempool, if it is tracked. */
void rmem_tracked_log_owners(const struct rte_mempool *mp);

#endif /* RMEM_TRACKED_PRIV_H */
