/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Tables of pages: made, filled by faults, emptied when pages go; see rsoft_odp.h. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* MAP_NORESERVE */
#endif
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_bitops.h>
#include <rte_malloc.h>

#include <rmem_pages_priv.h>

#include "rsoft_odp.h"
#include "rsoft_uffd.h"

/* Every page of a word for reading. */
#define ALL_READ UINT64_C(0x5555555555555555)
/* Words of the table behind a bit of rsoft_odp::used. */
#define USED_WORDS 512u

struct rsoft_odp rsoft_odp_raw;
uint32_t rsoft_odp_nb_unguarded;

TAILQ_HEAD(rsoft_odp_list, rsoft_odp);

/* Tables that the kernel copies for: pages of page lists are looked for in them. */
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

static void
count(struct rsoft_odp *odp, size_t counter, uint64_t n)
{
	__atomic_fetch_add((uint64_t *)RTE_PTR_ADD(&odp->stats, counter), n, __ATOMIC_RELAXED);
	__atomic_fetch_add((uint64_t *)RTE_PTR_ADD(&odp->dev->odp_stats, counter), n,
			__ATOMIC_RELAXED);
}

/* In the MR's counters and in the device's. */
#define COUNT(odp, counter, n) count(odp, offsetof(struct rsoft_odp_stats, counter), n)

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
	caps->rc = RMEM_ODP_SEND | RMEM_ODP_RECV | RMEM_ODP_WRITE | RMEM_ODP_READ;
	if (dev->args.odp_guard != 0 && rsoft_guard_has_fast())
		caps->rc |= RMEM_ODP_ATOMIC;
}

/* Zeroed memory that takes room where it is written only. */
static void *
map_sparse(size_t size)
{
	void *map = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (map == MAP_FAILED)
		return NULL;
	madvise(map, size, MADV_DONTDUMP);
	return map;
}

static int
alloc_tables(struct rsoft_odp *odp)
{
	odp->table_size = RTE_ALIGN_CEIL(odp->nb_words * sizeof(uint64_t), (size_t)4096);
	odp->used_size = RTE_ALIGN_CEIL(odp->nb_words / USED_WORDS / 8 + 8, (size_t)4096);
	odp->table = map_sparse(odp->table_size);
	if (odp->table == NULL)
		return -ENOMEM;
	odp->used = map_sparse(odp->used_size);
	if (odp->used == NULL) {
		munmap(odp->table, odp->table_size);
		return -ENOMEM;
	}
	return 0;
}

int
rsoft_odp_check_access(const struct rsoft_odp *odp, uint32_t access)
{
	if (!odp->is_guarded && (access & RMEM_ACCESS_REMOTE_ATOMIC)) {
		RSOFT_LOG(ERR,
				"no atomics on demand while another handler of SIGSEGV or SIGBUS "
				"stands before ours");
		return -EBUSY;
	}
	return 0;
}

/* How the copies of an MR are guarded. */
static int
choose_guard(struct rsoft_odp *odp, uint32_t access)
{
	if (odp->dev->args.odp_guard != 0 && rsoft_guard_get()) {
		odp->is_guarded = 1;
		return 0;
	}
	if (odp->dev->args.odp_guard != 0 && rsoft_guard_has_fast())
		RSOFT_LOG(WARNING,
				"a handler of SIGSEGV or SIGBUS was installed after ours: this "
				"on-demand MR is copied by the kernel, which is slow");
	if (!rsoft_guard_has_slow()) {
		RSOFT_LOG(ERR, "and this system forbids process_vm_readv()");
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
	int rc;

	odp = rte_zmalloc_socket("rsoft_odp", sizeof(*odp), RTE_CACHE_LINE_SIZE,
			(int)(int64_t)dev->args.socket);
	if (odp == NULL) {
		RSOFT_LOG(ERR, "no memory for the %zu bytes of an on-demand MR", sizeof(*odp));
		return -ENOMEM;
	}
	odp->dev = dev;
	odp->log2_page = (uint8_t)rte_log2_u32((uint32_t)sysconf(_SC_PAGESIZE));
	odp->first_word = (uintptr_t)addr >> (odp->log2_page + RSOFT_ODP_LOG2_WORD);
	odp->nb_words = ((end - 1) >> (odp->log2_page + RSOFT_ODP_LOG2_WORD)) - odp->first_word + 1;
	rc = alloc_tables(odp);
	if (rc != 0) {
		RSOFT_LOG(ERR, "no address space for the %zu bytes of a table of pages",
				odp->table_size);
		goto free_odp;
	}
	rc = choose_guard(odp, access);
	if (rc != 0)
		goto free_tables;
	odp->start = (uintptr_t)addr >> odp->log2_page << odp->log2_page;
	odp->end = RTE_ALIGN_CEIL(end, UINT64_C(1) << odp->log2_page);
	if (!odp->is_guarded)
		unguarded_add(odp);
	/* What an implicit MR covers is not to be touched as a whole. */
	if (!is_implicit && dev->args.odp_uffd != 0)
		rsoft_uffd_watch(odp);
	*new_odp = odp;
	return 0;

free_tables:
	munmap(odp->used, odp->used_size);
	munmap(odp->table, odp->table_size);
free_odp:
	rte_free(odp);
	return rc;
}

void
rsoft_odp_free(struct rsoft_odp *odp)
{
	if (odp == NULL || odp == &rsoft_odp_raw)
		return;
	if (!odp->is_guarded)
		unguarded_remove(odp);
	/* Advice first: a prefetch under way watches what it brought. */
	rsoft_advise_cancel(odp);
	if (odp->is_watched)
		rsoft_uffd_unwatch(odp);
	__atomic_fetch_sub(&odp->dev->odp_stats.pages, odp->stats.pages, __ATOMIC_RELAXED);
	if (odp->is_guarded)
		rsoft_guard_put();
	munmap(odp->used, odp->used_size);
	munmap(odp->table, odp->table_size);
	rte_free(odp);
}

bool
rsoft_odp_pages(const struct rsoft_odp *odp, uint64_t addr, uint64_t length, uint64_t *first,
		uint64_t *nb)
{
	uint64_t start = odp->first_word * RSOFT_ODP_WORD;
	uint64_t page = (addr >> odp->log2_page) - start;
	uint64_t last = ((addr + length - 1) >> odp->log2_page) - start;

	*first = page;
	*nb = last - page + 1;
	return page <= last && last < odp->nb_words * RSOFT_ODP_WORD;
}

/* Of nb pages from first on, those in the word of the first, as its bits for reading. */
static uint64_t
word_mask(uint64_t first, uint64_t nb, uint64_t *nb_in_word)
{
	uint64_t at = first % RSOFT_ODP_WORD;
	uint64_t n = RTE_MIN(nb, RSOFT_ODP_WORD - at);

	*nb_in_word = n;
	return ALL_READ >> (2 * (RSOFT_ODP_WORD - n)) << (2 * at);
}

/* Clear the bits of a mask in a word, and count. */
static void
clear_word(struct rsoft_odp *odp, uint64_t word, uint64_t mask)
{
	uint64_t before = __atomic_fetch_and(
			&odp->table[word], ~(mask | mask << 1), __ATOMIC_ACQ_REL);
	uint64_t gone = (uint64_t)__builtin_popcountll(before & mask);

	if (gone == 0)
		return;
	COUNT(odp, invalidations, gone);
	COUNT(odp, pages, 0 - gone);
}

uint64_t
rsoft_odp_set(struct rsoft_odp *odp, uint64_t first, uint64_t nb, unsigned int bits)
{
	uint64_t n, mask, before, word, new_pages = 0, lacked = 0;
	uint64_t bit;

	for (; nb != 0; nb -= n, first += n) {
		mask = word_mask(first, nb, &n);
		word = first / RSOFT_ODP_WORD;
		/* Before the bits, so that who looks through all of them finds these. */
		bit = UINT64_C(1) << (word / USED_WORDS % 64);
		if ((__atomic_load_n(&odp->used[word / USED_WORDS / 64], __ATOMIC_RELAXED) & bit) ==
				0)
			__atomic_fetch_or(
					&odp->used[word / USED_WORDS / 64], bit, __ATOMIC_RELEASE);
		/* A page for writing is one for reading too. */
		before = __atomic_fetch_or(&odp->table[word],
				bits & RSOFT_ODP_WRITE ? mask | mask << 1 : mask, __ATOMIC_ACQ_REL);
		new_pages += (uint64_t)__builtin_popcountll(~before & mask);
		if (bits & RSOFT_ODP_WRITE)
			lacked += (uint64_t)__builtin_popcountll(~(before >> 1) & mask);
		else
			lacked += (uint64_t)__builtin_popcountll(~before & mask);
	}
	if (new_pages != 0)
		COUNT(odp, pages, new_pages);
	return lacked;
}

/* Whether the table has a bit of each page. */
static bool
is_known(const struct rsoft_odp *odp, uint64_t first, uint64_t nb, bool is_write)
{
	uint64_t n, mask, word;

	for (; nb != 0; nb -= n, first += n) {
		mask = word_mask(first, nb, &n) << is_write;
		word = __atomic_load_n(&odp->table[first / RSOFT_ODP_WORD], __ATOMIC_RELAXED);
		if ((word & mask) != mask)
			return false;
	}
	return true;
}

/* The word behind one, of those that ever had a bit; UINT64_MAX: none. */
static uint64_t
next_used(const struct rsoft_odp *odp, uint64_t word, uint64_t end)
{
	while (word < end) {
		uint64_t group = word / USED_WORDS;
		uint64_t bits = __atomic_load_n(&odp->used[group / 64], __ATOMIC_ACQUIRE) >>
				(group % 64);

		if (bits & 1)
			return word;
		if (bits == 0)
			word = (group / 64 + 1) * 64 * USED_WORDS;
		else
			word = (group + (uint64_t)__builtin_ctzll(bits)) * USED_WORDS;
	}
	return UINT64_MAX;
}

void
rsoft_odp_invalidate(struct rsoft_odp *odp, uint64_t first, uint64_t nb)
{
	uint64_t end = (first + nb - 1) / RSOFT_ODP_WORD + 1;
	uint64_t word, from, n;

	for (word = next_used(odp, first / RSOFT_ODP_WORD, end); word < end;
			word = next_used(odp, word + 1, end)) {
		if (__atomic_load_n(&odp->table[word], __ATOMIC_RELAXED) == 0)
			continue;
		from = RTE_MAX(first, word * RSOFT_ODP_WORD);
		clear_word(odp, word, word_mask(from, first + nb - from, &n));
	}
}

bool
rsoft_odp_populate(const struct rsoft_odp *odp, uint64_t first, uint64_t nb, bool is_write)
{
	uint64_t page = odp->first_word * RSOFT_ODP_WORD + first;
	uintptr_t at = (uintptr_t)(page << odp->log2_page);

	return rmem_pages_populate(at, at + (nb << odp->log2_page), is_write) == 0;
}

/* Pages are there that may have been mapped since: hear when they go. */
static void
watch_anew(struct rsoft_odp *odp)
{
	if (odp->is_watched && __atomic_load_n(&odp->has_holes, __ATOMIC_SEQ_CST))
		rsoft_uffd_renew(odp);
}

bool
rsoft_odp_fault(struct rsoft_odp *odp, uint64_t addr, uint64_t length, bool is_write)
{
	uint64_t first, nb, lacked;

	if (rsoft_odp_pages(odp, addr, length, &first, &nb)) {
		if (is_known(odp, first, nb, is_write))
			return true;
		if (rsoft_odp_populate(odp, first, nb, is_write)) {
			watch_anew(odp);
			lacked = rsoft_odp_set(odp, first, nb,
					is_write ? RSOFT_ODP_WRITE : RSOFT_ODP_READ);
			COUNT(odp, page_faults, lacked);
			return true;
		}
	}
	COUNT(odp, failed_faults, 1);
	return false;
}

/* Know the pages that are resident. */
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
				*nb_new += rsoft_odp_set(odp, first + i, 1, RSOFT_ODP_READ);
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
		is_there = rsoft_odp_populate(odp, first, nb, is_write);
		if (is_there) {
			watch_anew(odp);
			nb_new = rsoft_odp_set(odp, first, nb,
					is_write ? RSOFT_ODP_WRITE : RSOFT_ODP_READ);
		}
	}
	COUNT(odp, prefetches, nb_new);
	return is_there;
}

void
rsoft_odp_access_failed(struct rsoft_odp *odp, uintptr_t addr)
{
	uint64_t first, nb;

	if (odp == NULL || odp == &rsoft_odp_raw)
		return; /* there is no table */
	if (rsoft_odp_pages(odp, addr, 1, &first, &nb))
		rsoft_odp_invalidate(odp, first, nb);
	COUNT(odp, failed_faults, 1);
}

unsigned int
rsoft_odp_copy_failed(struct rsoft_guarded end, struct rsoft_odp *to, struct rsoft_odp *from)
{
	rsoft_odp_access_failed(end.side == RSOFT_SIDE_TO ? to : from, end.addr);
	return (unsigned int)end.side;
}

/* Take back the bits of pages that are not resident any more, in a word of the table. */
static void
check_word(struct rsoft_odp *odp, uint64_t word)
{
	uint64_t bits = __atomic_load_n(&odp->table[word], __ATOMIC_ACQUIRE) & ALL_READ;
	uint64_t page = (odp->first_word + word) * RSOFT_ODP_WORD;
	unsigned char resident[RSOFT_ODP_WORD];
	size_t size = (size_t)RSOFT_ODP_WORD << odp->log2_page;
	bool is_all_mapped;
	uint64_t gone = 0;
	unsigned int i;

	if (bits == 0)
		return;
	is_all_mapped = mincore((void *)(uintptr_t)(page << odp->log2_page), size, resident) == 0;
	for (; bits != 0; bits &= bits - 1) {
		i = (unsigned int)__builtin_ctzll(bits) / 2;
		if ((!is_all_mapped &&
				    mincore((void *)(uintptr_t)((page + i) << odp->log2_page), 1,
						    &resident[i]) != 0) ||
				(resident[i] & 1) == 0)
			gone |= UINT64_C(1) << (2 * i);
	}
	if (gone != 0)
		clear_word(odp, word, gone);
}

void
rsoft_odp_stats_get(struct rsoft_odp *odp, struct rmem_mr_stats *stats)
{
	uint64_t word, end = odp->nb_words;

	for (word = next_used(odp, 0, end); word < end; word = next_used(odp, word + 1, end))
		check_word(odp, word);
	stats->page_faults = __atomic_load_n(&odp->stats.page_faults, __ATOMIC_RELAXED);
	stats->invalidations = __atomic_load_n(&odp->stats.invalidations, __ATOMIC_RELAXED);
	stats->prefetches = __atomic_load_n(&odp->stats.prefetches, __ATOMIC_RELAXED);
	stats->failed_faults = __atomic_load_n(&odp->stats.failed_faults, __ATOMIC_RELAXED);
	stats->pages = (uint64_t)__atomic_load_n(&odp->stats.pages, __ATOMIC_RELAXED);
}
