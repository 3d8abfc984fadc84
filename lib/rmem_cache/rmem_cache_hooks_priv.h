/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Between librmem_cache and librmem_cache_hooks.so, a preloaded object with functions of libc that
 * unmap, move or discard memory. The object works without librmem_cache, which finds it with
 * dlsym().
 *
 * Invariant: a call counts itself in nb_changing, then invalidates the memory, then changes it, and
 * leaves nb_changing. A registration publishes its range, then reads nb_changing, then pins pages.
 * All of these are sequentially consistent. So, if a registration has read 0:
 *
 * - a call that had left nb_changing has already changed the memory: the new pages are pinned;
 * - any other call invalidates after the range was published: the entry is stale before the memory
 *   changes.
 *
 * If it has read another number, its MR is for a single use. So there is no race: before the memory
 * changes, rmem_cache_get() has stopped returning the old MR, on any thread.
 *
 * nb_changing is written by threads in such calls, and set to 0 in a child of fork(), which does
 * not have these threads. A call that never returns, because a signal handler leaves it with
 * longjmp(), makes all later MRs single-use.
 */

#ifndef RMEM_CACHE_HOOKS_PRIV_H
#define RMEM_CACHE_HOOKS_PRIV_H

#include <stddef.h>
#include <stdint.h>

/** Name of the object's variable; the number changes with the structure. */
#define CACHE_HOOKS_SYMBOL "rmem_cache_hooks_1"

struct cache_hooks {
	uint64_t nb_changing; /**< Calls in progress; atomic. */
	/** rmem_cache_invalidate() once a cache exists, else NULL; atomic. */
	void (*invalidate)(const void *addr, size_t length);
};

#endif /* RMEM_CACHE_HOOKS_PRIV_H */
