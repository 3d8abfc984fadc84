/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * MRs over several ranges of memory. The MR has its own copy of the ranges; a single range is
 * stored as an address.
 */

#include <errno.h>
#include <string.h>

#include <rte_malloc.h>

#include "rmem_mr_priv.h"
#include "rmem_priv.h"

int
rmem_mr_copy_iov(struct rmem_mr *mr, const struct iovec *iov, uint32_t iov_count)
{
	struct iovec *copy;

	if (iov_count == 0)
		return 0;
	if (iov_count == 1) {
		mr->addr = iov->iov_base;
		return 0;
	}
	copy = rte_malloc("rmem_iov", iov_count * sizeof(*copy), 0);
	if (copy == NULL)
		return RMEM_FAIL(ENOMEM, "MR: no memory: %u ranges", iov_count);
	memcpy(copy, iov, iov_count * sizeof(*copy));
	rmem_mr_drv(mr)->iov = copy;
	rmem_mr_drv(mr)->iov_count = iov_count;
	return 0;
}

void
rmem_mr_free_iov(struct rmem_mr *mr)
{
	rte_free((void *)(uintptr_t)rmem_mr_drv(mr)->iov);
	rmem_mr_drv(mr)->iov = NULL;
	rmem_mr_drv(mr)->iov_count = 0;
}

uint32_t
rmem_mr_ranges(const struct rmem_mr *mr, struct iovec *one, const struct iovec **iov)
{
	if (rmem_mr_drv(mr)->iov != NULL) {
		*iov = rmem_mr_drv(mr)->iov;
		return rmem_mr_drv(mr)->iov_count;
	}
	one->iov_base = mr->addr;
	one->iov_len = mr->length;
	*iov = one;
	return 1;
}
