/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * MRs over several ranges of memory. The MR has its own copy of the ranges; a single range is
 * stored as an address.
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_malloc.h>

#include "rmem_mr_priv.h"
#include "rmem_priv.h"

/* Check the attributes permitted with ranges. */
static int
check_form(const struct rmem_dev *dev, const struct rmem_mr_attr *attr)
{
	if (attr->iov == NULL || attr->iov_count == 0)
		return RMEM_FAIL(EINVAL, "%s: iov without iov_count, or the reverse: %p, %u",
				dev->name, (const void *)attr->iov, attr->iov_count);
	if (attr->addr != NULL || (attr->access & RMEM_ACCESS_ALLOCATE_MR) != 0)
		return RMEM_FAIL(EINVAL, "%s: iov cannot be combined with %s", dev->name,
				attr->addr != NULL ? "addr" : "ALLOCATE_MR");
	return 0;
}

static int
check_one(const struct rmem_dev *dev, const struct iovec *range, uint32_t i)
{
	if (range->iov_base == NULL || range->iov_len == 0 ||
			range->iov_len - 1 > UINTPTR_MAX - (uintptr_t)range->iov_base)
		return RMEM_FAIL(EINVAL,
				"%s: range %u is NULL, empty or wraps around: %zu bytes at %p",
				dev->name, i, range->iov_len, range->iov_base);
	return 0;
}

int
rmem_mr_check_iov(const struct rmem_dev *dev, const struct rmem_mr_attr *attr, size_t *length)
{
	const struct rmem_dev_info *info = rmem_obj_info(&dev->obj);
	size_t sum = 0;
	uint32_t i;
	int ret;

	ret = check_form(dev, attr);
	if (ret != 0)
		return ret;
	if ((info->capa & RMEM_DEV_CAPA_MR_IOV) == 0)
		return RMEM_FAIL(EOPNOTSUPP,
				"%s: not supported by the device: MRs over several ranges",
				dev->name);
	if (attr->iov_count > info->max_iov)
		return RMEM_FAIL(EINVAL, "%s: iov_count out of range: %u (1 to %u)", dev->name,
				attr->iov_count, info->max_iov);
	for (i = 0; i < attr->iov_count; i++) {
		ret = check_one(dev, &attr->iov[i], i);
		if (ret != 0)
			return ret;
		if (__builtin_add_overflow(sum, attr->iov[i].iov_len, &sum))
			sum = SIZE_MAX; /* saturated: over every limit */
	}
	if (attr->length != 0 && attr->length != sum)
		return RMEM_FAIL(EINVAL,
				"%s: length is not the sum of the ranges: %zu (0 or %zu, %u ranges)",
				dev->name, attr->length, sum, attr->iov_count);
	*length = sum;
	return 0;
}

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
