/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The page table of an on-demand MR, with its counters; see rsoft_odp.h. */

#ifndef RSOFT_ODP_TABLE_H
#define RSOFT_ODP_TABLE_H

#include <stdbool.h>

#include <rmem_uffd.h>

#include "../base/rsoft.h"

/* Bits of a page. */
#define RSOFT_ODP_READ  1u
#define RSOFT_ODP_WRITE 2u

/* Pages per word of the table. */
#define RSOFT_ODP_WORD      32u
#define RSOFT_ODP_LOG2_WORD 5

struct rsoft_odp {
	uint64_t *table;
	uint64_t first_word; /* address of the table's first page, in words */
	uint64_t nb_words;
	uint8_t is_guarded; /* copies are guarded by the signal handler, not by the kernel */
	uint8_t log2_page;
	uint8_t is_advised; /* advice jobs may refer to it; atomic */
	uint8_t is_watched; /* memory is watched with userfaultfd */
	uint32_t has_holes; /* with is_watched: memory mapped since is not watched; atomic */
	uint64_t start;     /* address range */
	uint64_t end;
	/* A bit for each 512 words of the table that ever had a bit set; atomic. */
	uint64_t *used;
	size_t table_size;
	size_t used_size;
	struct rsoft_dev *dev;
	struct rmem_uffd_watch watch; /* with is_watched */
	TAILQ_ENTRY(rsoft_odp) next;  /* unless is_guarded */
	struct rsoft_odp_stats stats; /* of this MR */
};

/*
 * Table of fast-register MRs whose pages are in tables that are not is_guarded: the kernel copies,
 * and pages are not tracked.
 */
extern struct rsoft_odp rsoft_odp_raw;

/* Add to the counters of the MR and of the device. */
#define RSOFT_ODP_COUNT(odp, counter, n)                                                           \
	rsoft_odp_count(odp, offsetof(struct rsoft_odp_stats, counter), n)
void rsoft_odp_count(struct rsoft_odp *odp, size_t counter, uint64_t n);

/* Allocate the words of the table; 0 or -ENOMEM. */
int rsoft_odp_table_alloc(struct rsoft_odp *odp);
void rsoft_odp_table_free(struct rsoft_odp *odp);

/* Convert [addr, addr + length) to page numbers of the table; false if it is not all in the
 * table. */
bool rsoft_odp_pages(const struct rsoft_odp *odp, uint64_t addr, uint64_t length, uint64_t *first,
		uint64_t *nb);

/* Set the bits of populated pages; return how many lacked one. */
uint64_t rsoft_odp_table_set(struct rsoft_odp *odp, uint64_t first, uint64_t nb, unsigned int bits);

/* Whether all pages have the bit. */
bool rsoft_odp_table_has(const struct rsoft_odp *odp, uint64_t first, uint64_t nb, bool is_write);

/* Clear the bits of pages that were, or may have been, evicted. */
void rsoft_odp_table_clear(struct rsoft_odp *odp, uint64_t first, uint64_t nb);

/* Clear the bits of a page that an access found missing; the table may be NULL. */
void rsoft_odp_access_failed(struct rsoft_odp *odp, uintptr_t addr);

/* Get the counters of an MR, after a scan for pages evicted without an event. */
void rsoft_odp_stats_get(struct rsoft_odp *odp, struct rmem_mr_stats *stats);

#endif /* RSOFT_ODP_TABLE_H */
