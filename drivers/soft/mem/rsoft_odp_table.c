/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Tables of pages; see rsoft_odp_table.h. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* MAP_NORESERVE */
#endif
#include <errno.h>
#include <sys/mman.h>

#include "rsoft_odp_table.h"

/* Read bits of all pages of a word. */
#define ALL_READ UINT64_C(0x5555555555555555)
/* Words of a table per bit of rsoft_odp::used. */
#define USED_WORDS 512u

struct rsoft_odp rsoft_odp_raw;

void
rsoft_odp_count(struct rsoft_odp *odp, size_t counter, uint64_t n)
{
	__atomic_fetch_add((uint64_t *)RTE_PTR_ADD(&odp->stats, counter), n, __ATOMIC_RELAXED);
	__atomic_fetch_add((uint64_t *)RTE_PTR_ADD(&odp->dev->odp_stats, counter), n,
			__ATOMIC_RELAXED);
}

/* Zeroed memory that is allocated when it is first written. */
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

int
rsoft_odp_table_alloc(struct rsoft_odp *odp)
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

void
rsoft_odp_table_free(struct rsoft_odp *odp)
{
	munmap(odp->used, odp->used_size);
	munmap(odp->table, odp->table_size);
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

/* The pages of [first, first + nb) in the word of the first page, as its read bits. */
static uint64_t
word_mask(uint64_t first, uint64_t nb, uint64_t *nb_in_word)
{
	uint64_t at = first % RSOFT_ODP_WORD;
	uint64_t n = RTE_MIN(nb, RSOFT_ODP_WORD - at);

	*nb_in_word = n;
	return ALL_READ >> (2 * (RSOFT_ODP_WORD - n)) << (2 * at);
}

/* Clear the bits of a mask in a word, and count them. */
static void
clear_word(struct rsoft_odp *odp, uint64_t word, uint64_t mask)
{
	uint64_t before = __atomic_fetch_and(
			&odp->table[word], ~(mask | mask << 1), __ATOMIC_ACQ_REL);
	uint64_t gone = (uint64_t)__builtin_popcountll(before & mask);

	if (gone == 0)
		return;
	RSOFT_ODP_COUNT(odp, invalidations, gone);
	RSOFT_ODP_COUNT(odp, pages, 0 - gone);
}

uint64_t
rsoft_odp_table_set(struct rsoft_odp *odp, uint64_t first, uint64_t nb, unsigned int bits)
{
	uint64_t n, mask, before, word, new_pages = 0, lacked = 0;
	uint64_t bit;

	for (; nb != 0; nb -= n, first += n) {
		mask = word_mask(first, nb, &n);
		word = first / RSOFT_ODP_WORD;
		/* Set it before the bits, so that a scan finds them. */
		bit = UINT64_C(1) << (word / USED_WORDS % 64);
		if ((__atomic_load_n(&odp->used[word / USED_WORDS / 64], __ATOMIC_RELAXED) & bit) ==
				0)
			__atomic_fetch_or(
					&odp->used[word / USED_WORDS / 64], bit, __ATOMIC_RELEASE);
		/* A page for writing is also a page for reading. */
		before = __atomic_fetch_or(&odp->table[word],
				bits & RSOFT_ODP_WRITE ? mask | mask << 1 : mask, __ATOMIC_ACQ_REL);
		new_pages += (uint64_t)__builtin_popcountll(~before & mask);
		if (bits & RSOFT_ODP_WRITE)
			lacked += (uint64_t)__builtin_popcountll(~(before >> 1) & mask);
		else
			lacked += (uint64_t)__builtin_popcountll(~before & mask);
	}
	if (new_pages != 0)
		RSOFT_ODP_COUNT(odp, pages, new_pages);
	return lacked;
}

bool
rsoft_odp_table_has(const struct rsoft_odp *odp, uint64_t first, uint64_t nb, bool is_write)
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

/* Next word after `word` that ever had a bit; UINT64_MAX: none. */
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
rsoft_odp_table_clear(struct rsoft_odp *odp, uint64_t first, uint64_t nb)
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

/* Clear the bits of pages in a word that are no longer resident. */
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

void
rsoft_odp_access_failed(struct rsoft_odp *odp, uintptr_t addr)
{
	uint64_t first, nb;

	if (odp == NULL || odp == &rsoft_odp_raw)
		return; /* the table does not cover it */
	if (rsoft_odp_pages(odp, addr, 1, &first, &nb))
		rsoft_odp_table_clear(odp, first, nb);
	RSOFT_ODP_COUNT(odp, failed_faults, 1);
}
