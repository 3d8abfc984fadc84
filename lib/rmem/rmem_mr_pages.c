/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Pages of an MR; see rmem_mr_pages_priv.h.
 *
 * A page of the device maps 2^n bytes of iova to as many IO addresses, both aligned to 2^n.
 * So 2^n fits if iova and IO address agree in the lower n bits everywhere, and each boundary
 * between extents is at a multiple of 2^n: one word collects the bits that differ. The rules
 * are those of the kernel's ib_umem_find_best_pgsz().
 */

#include <string.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_eal.h>
#include <rte_memory.h>

#include <rmem_mr.h>

#include "rmem_mr_pages_priv.h"

void
rmem_mr_pages_start(struct rmem_mr_pages *pages, uint64_t iova)
{
	memset(pages, 0, sizeof(*pages));
	pages->iova = iova;
}

void
rmem_mr_pages_add(struct rmem_mr_pages *pages, uint64_t io_addr, uint64_t length, bool is_known)
{
	uint64_t iova = pages->iova + pages->length;

	if (!is_known || !pages->is_open || io_addr != pages->next) {
		if (pages->nb_extents != 0)
			pages->diff |= iova;
		pages->diff |= iova ^ io_addr;
		pages->nb_extents++;
	}
	pages->length += length;
	pages->next = io_addr + length;
	pages->is_open = is_known;
}

static uint64_t
count_pages(uint64_t first, uint64_t length, uint64_t page_size)
{
	return (first + length - 1) / page_size - first / page_size + 1;
}

static uint32_t
count_levels(uint64_t nb_pages)
{
	uint32_t levels = 0;

	for (; nb_pages > 1; nb_pages = 1 + (nb_pages - 1) / RMEM_MR_PAGES_ENTRIES)
		levels++;
	return levels;
}

void
rmem_mr_pages_end(struct rmem_mr_pages *pages, uint64_t page_size_cap, uint64_t max_page)
{
	uint64_t size, nb;
	int bit;

	for (bit = 62; bit >= 0; bit--) {
		size = UINT64_C(1) << bit;
		if ((page_size_cap & size) == 0 || size > max_page ||
				(pages->diff & (size - 1)) != 0)
			continue;
		nb = count_pages(pages->iova, pages->length, size);
		if (pages->page_size != 0 && nb > pages->nb_pages)
			break;
		pages->page_size = size;
		pages->nb_pages = nb;
	}
	pages->nb_levels = count_levels(pages->nb_pages);
}

/* IO address of a byte; RTE_BAD_IOVA if it is not known to EAL. */
static rte_iova_t
io_addr_of(const void *addr, const struct rte_memseg_list *msl)
{
	const struct rte_memseg *ms = NULL;

	if (msl != NULL)
		ms = rte_mem_virt2memseg(addr, msl);
	if (ms == NULL)
		return rte_mem_virt2iova(addr);
	if (ms->iova == RTE_BAD_IOVA)
		return RTE_BAD_IOVA;
	return ms->iova + RTE_PTR_DIFF(addr, ms->addr);
}

/* Add a range page by page, with physical addresses. Return whether all of them are known. */
static bool
add_physical(struct rmem_mr_pages *pages, const struct iovec *range, uint64_t page_size)
{
	const struct rte_memseg_list *msl = rte_mem_virt2memseg_list(range->iov_base);
	uintptr_t at = (uintptr_t)range->iov_base;
	uint64_t left, length;
	bool is_known = true;
	rte_iova_t io_addr;

	for (left = range->iov_len; left != 0; left -= length) {
		length = RTE_MIN(page_size - (at & (page_size - 1)), left);
		io_addr = io_addr_of((const void *)at, msl);
		if (io_addr == RTE_BAD_IOVA)
			is_known = false;
		rmem_mr_pages_add(pages, io_addr == RTE_BAD_IOVA ? at : io_addr, length,
				io_addr != RTE_BAD_IOVA);
		at += length;
	}
	return is_known;
}

/* Smallest known page size of the ranges. */
static uint64_t
own_page_size(const struct iovec *iov, uint32_t nb_iov)
{
	const struct rte_memseg_list *msl;
	uint64_t size = UINT64_MAX;
	uint32_t i;

	for (i = 0; i < nb_iov; i++) {
		msl = rte_mem_virt2memseg_list(iov[i].iov_base);
		size = RTE_MIN(size, msl != NULL ? msl->page_sz : (uint64_t)sysconf(_SC_PAGESIZE));
	}
	return size;
}

void
rmem_mr_pages_fill(const struct iovec *iov, uint32_t nb_iov, uint64_t iova, uint64_t own,
		uint64_t page_size_cap, struct rmem_mr_info *info)
{
	/*
	 * Consecutive virtual addresses do not imply contiguous memory, so no page is larger than
	 * the pages of the memory. Consecutive physical addresses imply contiguous memory.
	 */
	bool is_physical = rte_eal_iova_mode() != RTE_IOVA_VA;
	uint64_t nb_own = 0;
	struct rmem_mr_pages pages;
	uint32_t i;

	if (own == 0)
		own = own_page_size(iov, nb_iov);
	rmem_mr_pages_start(&pages, iova);
	for (i = 0; i < nb_iov; i++) {
		uintptr_t addr = (uintptr_t)iov[i].iov_base;

		nb_own += count_pages(addr, iov[i].iov_len, own);
		if (rte_eal_iova_mode() == RTE_IOVA_VA)
			rmem_mr_pages_add(&pages, addr, iov[i].iov_len, true);
		else if (!add_physical(&pages, &iov[i], own))
			is_physical = false;
	}
	rmem_mr_pages_end(&pages, page_size_cap, is_physical ? UINT64_MAX : own);
	if (pages.page_size == 0) {
		pages.page_size = own;
		pages.nb_pages = nb_own;
		pages.nb_levels = count_levels(nb_own);
	}
	info->page_size = pages.page_size;
	info->nb_pages = pages.nb_pages;
	info->nb_levels = pages.nb_levels;
	info->nb_extents = pages.nb_extents;
}
