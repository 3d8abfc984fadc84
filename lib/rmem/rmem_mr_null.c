/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Null MRs, which discard written data and are read as zeros. They are VALID until their
 * release.
 */

#include <stdint.h>
#include <string.h>

#include "rmem_mr_priv.h"

static uint32_t
max_of(const struct rmem_dev_info *info)
{
	RTE_SET_USED(info);
	return 1;
}

static int
alloc(struct rmem_mr *mr)
{
	struct rmem_mr_attr attr;
	int ret;

	memset(&attr, 0, sizeof(attr));
	mr->access = RMEM_ACCESS_LOCAL_WRITE;
	mr->length = SIZE_MAX;
	ret = RMEM_OP(mr, mr_reg, mr, &attr);
	if (ret == 0)
		rmem_mr_set_state(mr, RMEM_MR_STATE_VALID);
	return ret;
}

static const struct rmem_mr_bound null = {
		.name = "null MRs",
		.size_name = "number",
		.capa = RMEM_DEV_CAPA_NULL_MR,
		.type = RMEM_MR_TYPE_NULL,
		.max_size = max_of,
		.alloc = alloc,
};

int
rmem_null_mr_alloc(struct rmem_pd *pd, struct rmem_mr **mr)
{
	RMEM_CALL(pd);

	return rmem_mr_alloc_bound(pd, &null, 1, mr);
}
