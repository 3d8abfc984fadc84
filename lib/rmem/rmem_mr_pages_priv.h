/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * The page table that a NIC needs for an MR: page size, pages, levels. Not installed.
 *
 * Call start, add each extent of IO addresses in order, then end.
 */

#ifndef RMEM_MR_PAGES_PRIV_H
#define RMEM_MR_PAGES_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct rmem_mr_info;

/** Entries of one table. */
#define RMEM_MR_PAGES_ENTRIES 512

/** State of the calculation, and its result. */
struct rmem_mr_pages {
	uint64_t iova;       /**< IO address of the first byte. */
	uint64_t length;     /**< Bytes of the extents added. */
	uint64_t next;       /**< Address that would continue the last extent. */
	uint64_t diff;       /**< Bits that differ between addresses and iova, or at a boundary. */
	uint64_t page_size;  /**< Result: best page size; 0 when none fits. */
	uint64_t nb_pages;   /**< Result: pages of that size. */
	uint32_t nb_levels;  /**< Result: levels of tables; 0 when one page needs none. */
	uint32_t nb_extents; /**< Result: extents of contiguous IO addresses. */
	bool is_open;        /**< The last extent may be continued. */
};

/** Start with the iova of an MR. */
void rmem_mr_pages_start(struct rmem_mr_pages *pages, uint64_t iova);

/**
 * Add the next length bytes, at an IO address. If it is not known, io_addr is the virtual address,
 * and the extent is not joined with others.
 */
void rmem_mr_pages_add(
		struct rmem_mr_pages *pages, uint64_t io_addr, uint64_t length, bool is_known);

/**
 * Choose the page size. Candidates are the sizes in page_size_cap (bit n for 2^n bytes) up to
 * max_page to which every extent, and every boundary between two extents, is aligned. The result is
 * the smallest of the candidates that need the fewest pages.
 */
void rmem_mr_pages_end(struct rmem_mr_pages *pages, uint64_t page_size_cap, uint64_t max_page);

/**
 * Fill the page fields of info for a user MR of these ranges. own is the page size of the memory
 * if it is known, or 0.
 */
void rmem_mr_pages_fill(const struct iovec *iov, uint32_t nb_iov, uint64_t iova, uint64_t own,
		uint64_t page_size_cap, struct rmem_mr_info *info);

#endif /* RMEM_MR_PAGES_PRIV_H */
