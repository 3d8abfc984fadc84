/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Detection of hugepages. EAL has the page size of its own memory. For other memory the kernel
 * reports it only in /proc/self/smaps, per mapping, which is slow: it is read only on request.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>

#include <rmem_pages.h>

#include "rmem_mr_priv.h"
#include "rmem_priv.h"

/* A mapping of the process. */
struct mapping {
	uintptr_t first;
	uintptr_t end;
	uint64_t page_size;
};

/* The next mapping; false after the last. */
static bool
next_mapping(FILE *f, struct mapping *mapping)
{
	static const char word[] = "KernelPageSize:";
	char line[4096];

	while (fgets(line, sizeof(line), f) != NULL) {
		/* The line that begins a mapping has no word before its first colon. */
		if (rmem_pages_parse(line, &mapping->first, &mapping->end))
			continue;
		if (strncmp(line, word, sizeof(word) - 1) == 0) {
			mapping->page_size = strtoull(line + sizeof(word) - 1, NULL, 10) * 1024;
			return true;
		}
	}
	return false;
}

/* Bytes of a range in a mapping. */
static size_t
overlap(const struct iovec *range, const struct mapping *mapping)
{
	uintptr_t first = RTE_MAX((uintptr_t)range->iov_base, mapping->first);
	uintptr_t last = RTE_MIN((uintptr_t)range->iov_base + range->iov_len - 1, mapping->end - 1);

	return first <= last ? last - first + 1 : 0;
}

/* Smallest pages of the ranges by smaps; 0: not known. */
static uint64_t
kernel_page_size(const struct iovec *iov, uint32_t nb_iov)
{
	uint64_t size = UINT64_MAX, left = 0;
	struct mapping mapping = {0, 0, 0};
	uint32_t i;
	FILE *f;

	f = fopen("/proc/self/smaps", "r");
	if (f == NULL)
		return 0;
	for (i = 0; i < nb_iov; i++)
		left += iov[i].iov_len;
	while (left != 0 && next_mapping(f, &mapping)) {
		for (i = 0; i < nb_iov; i++) {
			size_t length = overlap(&iov[i], &mapping);

			left -= length;
			if (length != 0)
				size = RTE_MIN(size, mapping.page_size);
		}
	}
	fclose(f);
	return left == 0 ? size : 0;
}

int
rmem_hugetlb_check(const struct iovec *iov, uint32_t nb_iov, uint64_t *page_size)
{
	uint64_t size = UINT64_MAX;
	uint32_t i;

	for (i = 0; i < nb_iov && size != 0; i++)
		size = RTE_MIN(size, rmem_pages_eal_size(&iov[i]));
	if (size == 0)
		size = kernel_page_size(iov, nb_iov);
	if (size > (uint64_t)sysconf(_SC_PAGESIZE)) {
		*page_size = size;
		return 0;
	}
	if (size == 0)
		return RMEM_FAIL(EINVAL, "HUGETLB: page size not known: [%p, +%zu)%s",
				iov[0].iov_base, iov[0].iov_len, nb_iov > 1 ? " and the rest" : "");
	return RMEM_FAIL(EINVAL, "HUGETLB: no hugepages: [%p, +%zu)%s, pages of %" PRIu64 " bytes",
			iov[0].iov_base, iov[0].iov_len, nb_iov > 1 ? " or the rest" : "", size);
}
