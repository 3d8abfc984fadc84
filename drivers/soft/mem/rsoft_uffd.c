/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Tables that watch their memory; see rsoft_uffd.h. */

#include <sys/mman.h>

#include "rsoft_uffd.h"

static struct rsoft_odp *
odp_of(const struct rmem_uffd_watch *watch)
{
	return (struct rsoft_odp *)((uintptr_t)watch - offsetof(struct rsoft_odp, watch));
}

/* Clear what a table has of [start, end). */
static void
uffd_invalidate(struct rmem_uffd_watch *watch, uint64_t start, uint64_t end, bool is_unmapped)
{
	struct rsoft_odp *odp = odp_of(watch);
	uint64_t first = odp->first_word * RSOFT_ODP_WORD;
	uint64_t last = first + odp->nb_words * RSOFT_ODP_WORD;

	start = RTE_MAX(start >> odp->log2_page, first);
	end = RTE_MIN(end >> odp->log2_page, last);
	if (start >= end)
		return;
	/* Before the bits: a thread that finds them clear then checks has_holes. */
	if (is_unmapped)
		__atomic_store_n(&odp->has_holes, 1, __ATOMIC_SEQ_CST);
	rsoft_odp_invalidate(odp, start - first, end - start);
}

static bool
uffd_needs(const struct rmem_uffd_watch *watch, uint64_t start, uint64_t end)
{
	const struct rsoft_odp *odp = odp_of(watch);

	return start < odp->end && odp->start < end;
}

void
rsoft_uffd_renew(struct rsoft_odp *odp)
{
	/* Cleared first: a concurrent event sets it again. */
	__atomic_store_n(&odp->has_holes, 0, __ATOMIC_SEQ_CST);
	(void)rmem_uffd_add(odp->start, odp->end);
	/* Only checks whether all of it is mapped. */
	if (msync((void *)(uintptr_t)odp->start, odp->end - odp->start, MS_ASYNC) != 0)
		__atomic_store_n(&odp->has_holes, 1, __ATOMIC_SEQ_CST);
}

void
rsoft_uffd_watch(struct rsoft_odp *odp)
{
	odp->watch.event = uffd_invalidate;
	odp->watch.needs = uffd_needs;
	if (rmem_uffd_watch(&odp->watch) != 0)
		return;
	odp->is_watched = 1;
	rsoft_uffd_renew(odp);
}

void
rsoft_uffd_unwatch(struct rsoft_odp *odp)
{
	rmem_uffd_unwatch(&odp->watch, odp->start, odp->end);
}
