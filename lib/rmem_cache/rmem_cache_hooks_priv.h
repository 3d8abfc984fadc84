/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Between librmem_cache and librmem_cache_hooks.so, a preloaded object with functions of libc that
 * unmap, move or discard memory. The object works without librmem_cache; that finds it with
 * dlsym().
 *
 * Invariant: a call counts itself in nb_changing, then invalidates the memory, then changes it, and
 * leaves nb_changing. A registration publishes its range, then reads nb_changing, then pins pages.
 * All of these are sequentially consistent. So of a registration that has read 0:
 *
 * - a call that had left changed the memory before: the pages are the new ones;
 * - any other call invalidates after the range was published: the entry is stale before the memory
 *   changes.
 *
 * If it has read another number, its MR is for a single use. There is no window: from before the
 * memory changes, rmem_cache_get() on any thread returns no MR of before.
 *
 * nb_changing is written by threads in such calls, and by the child of a fork(), which has none of
 * them; a call that never returns, left by longjmp() from a signal handler, makes all later MRs
 * single-use ones.
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
