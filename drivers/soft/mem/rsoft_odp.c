/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * On-demand MRs: creation, page faults and prefetches; see rsoft_odp.h.
 *
 * If the kernel permits it, events of userfaultfd (rmem_uffd.h) report evicted pages; each table of
 * an explicit MR is a watcher.
 */

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_bitops.h>
#include <rte_malloc.h>

#include "rsoft_odp.h"

static struct rsoft_odp *
odp_of(const struct rmem_uffd_watch *watch)
{
	return (struct rsoft_odp *)((uintptr_t)watch - offsetof(struct rsoft_odp, watch));
}

/* Clear the bits of the pages of [start, end) in a table. */
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
	/* Set before the bits are cleared: a thread that finds them clear then checks has_holes. */
	if (is_unmapped)
		__atomic_store_n(&odp->has_holes, 1, __ATOMIC_SEQ_CST);
	rsoft_odp_table_clear(odp, start - first, end - start);
}

static bool
uffd_needs(const struct rmem_uffd_watch *watch, uint64_t start, uint64_t end)
{
	const struct rsoft_odp *odp = odp_of(watch);

	return start < odp->end && odp->start < end;
}

/* Called after pages of a watched table were populated: watch memory that was mapped since. */
static void
uffd_renew(struct rsoft_odp *odp)
{
	/* Clear it first: a concurrent event sets it again. */
	__atomic_store_n(&odp->has_holes, 0, __ATOMIC_SEQ_CST);
	(void)rmem_uffd_add(odp->start, odp->end);
	/* msync() here only checks whether the whole range is mapped. */
	if (msync((void *)(uintptr_t)odp->start, odp->end - odp->start, MS_ASYNC) != 0)
		__atomic_store_n(&odp->has_holes, 1, __ATOMIC_SEQ_CST);
}

/* Report evicted pages to the table, if possible. */
static void
uffd_watch(struct rsoft_odp *odp)
{
	odp->watch.event = uffd_invalidate;
	odp->watch.needs = uffd_needs;
	if (rmem_uffd_watch(&odp->watch) != 0)
		return;
	odp->is_watched = 1;
	uffd_renew(odp);
}

static void
uffd_unwatch(struct rsoft_odp *odp)
{
	rmem_uffd_unwatch(&odp->watch, odp->start, odp->end);
}

uint32_t rsoft_odp_nb_unguarded;

TAILQ_HEAD(rsoft_odp_list, rsoft_odp);

/* Tables whose pages the kernel copies; page lists are checked against them. */
static struct {
	rte_ticketlock_t lock;
	struct rsoft_odp_list list;
} unguarded = {.list = TAILQ_HEAD_INITIALIZER(unguarded.list)};

static void
unguarded_add(struct rsoft_odp *odp)
{
	rte_ticketlock_lock(&unguarded.lock);
	TAILQ_INSERT_TAIL(&unguarded.list, odp, next);
	__atomic_fetch_add(&rsoft_odp_nb_unguarded, 1, __ATOMIC_RELEASE);
	rte_ticketlock_unlock(&unguarded.lock);
}

static void
unguarded_remove(struct rsoft_odp *odp)
{
	rte_ticketlock_lock(&unguarded.lock);
	TAILQ_REMOVE(&unguarded.list, odp, next);
	__atomic_fetch_sub(&rsoft_odp_nb_unguarded, 1, __ATOMIC_RELEASE);
	rte_ticketlock_unlock(&unguarded.lock);
}

bool
rsoft_odp_is_unguarded(uint64_t addr, uint64_t length)
{
	const struct rsoft_odp *odp;

	rte_ticketlock_lock(&unguarded.lock);
	TAILQ_FOREACH(odp, &unguarded.list, next) {
		if (addr < odp->end && odp->start < addr + length)
			break;
	}
	rte_ticketlock_unlock(&unguarded.lock);
	return odp != NULL;
}

bool
rsoft_odp_is_supported(const struct rsoft_dev *dev)
{
	if (!rmem_pages_can_populate())
		return false;
	return (dev->args.odp_guard != 0 && rsoft_guard_has_fast()) || rsoft_guard_has_slow();
}

void
rsoft_odp_caps(const struct rsoft_dev *dev, struct rmem_odp_caps *caps)
{
	if (!dev->is_odp_supported)
		return;
	caps->general = RMEM_ODP_SUPPORT | RMEM_ODP_SUPPORT_IMPLICIT;
	caps->rc = RMEM_ODP_SEND | RMEM_ODP_RECV | RMEM_ODP_WRITE | RMEM_ODP_READ |
			RMEM_ODP_SRQ_RECV;
	caps->uc = RMEM_ODP_SEND | RMEM_ODP_RECV | RMEM_ODP_WRITE;
	caps->ud = RMEM_ODP_SEND | RMEM_ODP_RECV;
	if (dev->args.odp_guard != 0 && rsoft_guard_has_fast())
		caps->rc |= RMEM_ODP_ATOMIC | RMEM_ODP_ATOMIC_WRITE;
}

int
rsoft_odp_check_access(const struct rsoft_odp *odp, uint32_t access)
{
	if (!odp->is_guarded && (access & RMEM_ACCESS_REMOTE_ATOMIC)) {
		RSOFT_LOG(ERR, "on-demand MR: no atomics: a handler of SIGSEGV or SIGBUS was installed after rmem's handler");
		return -EBUSY;
	}
	return 0;
}

/* Choose how copies of an MR are guarded. */
static int
choose_guard(struct rsoft_odp *odp, uint32_t access)
{
	if (odp->dev->args.odp_guard != 0 && rsoft_guard_get()) {
		odp->is_guarded = 1;
		return 0;
	}
	if (odp->dev->args.odp_guard != 0 && rsoft_guard_has_fast())
		RSOFT_LOG(WARNING,
				"on-demand MR: slow, copied by the kernel: a handler of SIGSEGV or SIGBUS was installed after rmem's handler");
	if (!rsoft_guard_has_slow()) {
		RSOFT_LOG(ERR, "on-demand MR: process_vm_readv() is not permitted");
		return -EBUSY;
	}
	return rsoft_odp_check_access(odp, access);
}

int
rsoft_odp_alloc(struct rsoft_dev *dev, void *addr, size_t length, uint32_t access,
		struct rsoft_odp **new_odp)
{
	bool is_implicit = addr == NULL && length == SIZE_MAX;
	uint64_t end = is_implicit ? RSOFT_ODP_SPACE : (uintptr_t)addr + length;
	struct rsoft_odp *odp;
	int ret;

	odp = rte_zmalloc_socket("rsoft_odp", sizeof(*odp), RTE_CACHE_LINE_SIZE,
			(int)(int64_t)dev->args.socket);
	if (odp == NULL) {
		RSOFT_LOG(ERR, "on-demand MR: no memory: %zu bytes", sizeof(*odp));
		return -ENOMEM;
	}
	odp->dev = dev;
	odp->log2_page = (uint8_t)rte_log2_u32((uint32_t)sysconf(_SC_PAGESIZE));
	odp->first_word = (uintptr_t)addr >> (odp->log2_page + RSOFT_ODP_LOG2_WORD);
	odp->nb_words = ((end - 1) >> (odp->log2_page + RSOFT_ODP_LOG2_WORD)) - odp->first_word + 1;
	ret = rsoft_odp_table_alloc(odp);
	if (ret != 0) {
		RSOFT_LOG(ERR, "on-demand MR: no address space for the page table: %zu bytes",
				odp->table_size);
		goto free_odp;
	}
	ret = choose_guard(odp, access);
	if (ret != 0)
		goto free_tables;
	odp->start = (uintptr_t)addr >> odp->log2_page << odp->log2_page;
	odp->end = RTE_ALIGN_CEIL(end, UINT64_C(1) << odp->log2_page);
	if (!odp->is_guarded)
		unguarded_add(odp);
	/* Don't touch the whole range of an implicit MR. */
	if (!is_implicit && dev->args.odp_uffd != 0)
		uffd_watch(odp);
	*new_odp = odp;
	return 0;

free_tables:
	rsoft_odp_table_free(odp);
free_odp:
	rte_free(odp);
	return ret;
}

void
rsoft_odp_free(struct rsoft_odp *odp)
{
	if (odp == NULL || odp == &rsoft_odp_raw)
		return;
	if (!odp->is_guarded)
		unguarded_remove(odp);
	if (odp->is_watched)
		uffd_unwatch(odp);
	__atomic_fetch_sub(&odp->dev->odp_stats.pages, odp->stats.pages, __ATOMIC_RELAXED);
	if (odp->is_guarded)
		rsoft_guard_put();
	rsoft_odp_table_free(odp);
	rte_free(odp);
}

/* Populate pages that are not in the table; false on failure. */
static bool
odp_populate(const struct rsoft_odp *odp, uint64_t first, uint64_t nb, bool is_write)
{
	uint64_t page = odp->first_word * RSOFT_ODP_WORD + first;
	uintptr_t at = (uintptr_t)(page << odp->log2_page);

	return rmem_pages_populate(at, at + (nb << odp->log2_page), is_write) == 0;
}

/* Watch populated pages that may have been mapped since the last time. */
static void
watch_again(struct rsoft_odp *odp)
{
	if (odp->is_watched && __atomic_load_n(&odp->has_holes, __ATOMIC_SEQ_CST))
		uffd_renew(odp);
}

bool
rsoft_odp_fault(struct rsoft_odp *odp, uint64_t addr, uint64_t length, bool is_write)
{
	uint64_t first, nb, lacked;

	if (rsoft_odp_pages(odp, addr, length, &first, &nb)) {
		if (rsoft_odp_table_has(odp, first, nb, is_write))
			return true;
		if (odp_populate(odp, first, nb, is_write)) {
			watch_again(odp);
			lacked = rsoft_odp_table_set(odp, first, nb,
					is_write ? RSOFT_ODP_WRITE : RSOFT_ODP_READ);
			RSOFT_ODP_COUNT(odp, page_faults, lacked);
			return true;
		}
	}
	RSOFT_ODP_COUNT(odp, failed_faults, 1);
	return false;
}

/* Add resident pages to the table. */
static bool
prefetch_resident(struct rsoft_odp *odp, uint64_t first, uint64_t nb, uint64_t *nb_new)
{
	unsigned char resident[RSOFT_ODP_WORD];
	uint64_t page = odp->first_word * RSOFT_ODP_WORD + first;
	uint64_t i, n;

	for (; nb != 0; nb -= n, first += n, page += n) {
		n = RTE_MIN(nb, RSOFT_ODP_WORD);
		if (mincore((void *)(uintptr_t)(page << odp->log2_page), n << odp->log2_page,
				    resident) != 0)
			return false;
		for (i = 0; i < n; i++) {
			if (resident[i] & 1)
				*nb_new += rsoft_odp_table_set(odp, first + i, 1, RSOFT_ODP_READ);
		}
	}
	return true;
}

bool
rsoft_odp_prefetch(struct rsoft_odp *odp, uint64_t first, uint64_t nb, int advice)
{
	bool is_write = advice == RMEM_ADVISE_PREFETCH_WRITE;
	uint64_t nb_new = 0;
	bool is_there;

	if (advice == RMEM_ADVISE_PREFETCH_NO_FAULT) {
		is_there = prefetch_resident(odp, first, nb, &nb_new);
	} else {
		is_there = odp_populate(odp, first, nb, is_write);
		if (is_there) {
			watch_again(odp);
			nb_new = rsoft_odp_table_set(odp, first, nb,
					is_write ? RSOFT_ODP_WRITE : RSOFT_ODP_READ);
		}
	}
	RSOFT_ODP_COUNT(odp, prefetches, nb_new);
	return is_there;
}

unsigned int
rsoft_odp_copy_failed(struct rsoft_guarded end, struct rsoft_odp *to, struct rsoft_odp *from)
{
	rsoft_odp_access_failed(end.side == RSOFT_SIDE_TO ? to : from, end.addr);
	return (unsigned int)end.side;
}
