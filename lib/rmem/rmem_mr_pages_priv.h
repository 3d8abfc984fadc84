/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * The page table that a NIC needs for an MR: page size, pages, levels. Not installed.
 *
 * start, add each stretch of IO addresses in order, end.
 */

#ifndef RMEM_MR_PAGES_PRIV_H
#define RMEM_MR_PAGES_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct rmem_mr_info;

/** Entries of one table. */
#define RMEM_MR_PAGES_ENTRIES 512

/** Pages of an MR while they are being found out, and then the result. */
struct rmem_mr_pages {
	uint64_t iova;       /**< Of the first byte. */
	uint64_t length;     /**< Bytes of the stretches added. */
	uint64_t next;       /**< Address that would go on with the last stretch. */
	uint64_t diff;       /**< Bits that differ between addresses and iova, or at a seam. */
	uint64_t page_size;  /**< Result: best page size; 0 when none fits. */
	uint64_t nb_pages;   /**< Result: pages of that size. */
	uint32_t nb_levels;  /**< Result: levels of tables; 0 when one page needs none. */
	uint32_t nb_extents; /**< Result: stretches of contiguous IO addresses. */
	bool is_open;        /**< The last stretch may go on. */
};

/** Begin with an MR that requests name by iova. */
void rmem_mr_pages_start(struct rmem_mr_pages *pages, uint64_t iova);

/**
 * The next length bytes of it are at an IO address. Where that is not known, the virtual one
 * stands for it, and is no part of a larger stretch.
 */
void rmem_mr_pages_add(
		struct rmem_mr_pages *pages, uint64_t io_addr, uint64_t length, bool is_known);

/**
 * Choose the page size: of those in page_size_cap (bit n for 2^n bytes) up to max_page, and
 * that every stretch and every seam between two is aligned to, the smallest that needs the
 * fewest pages.
 */
void rmem_mr_pages_end(struct rmem_mr_pages *pages, uint64_t page_size_cap, uint64_t max_page);

/**
 * Fill the page fields of info for a user MR of these ranges. own is the page size of the memory
 * if it is known, or 0.
 */
void rmem_mr_pages_fill(const struct iovec *iov, uint32_t nb_iov, uint64_t iova, uint64_t own,
		uint64_t page_size_cap, struct rmem_mr_info *info);

#endif /* RMEM_MR_PAGES_PRIV_H */
