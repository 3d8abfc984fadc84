/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Indirect keys: MRs over ranges of other keys.
 */

#include "rmem_mr_priv.h"

static uint32_t
max_entries_of(const struct rmem_dev_info *info)
{
	return info->max_mkey_entries;
}

static int
alloc(struct rmem_mr *mr)
{
	return RMEM_OP(mr, mkey_alloc, mr);
}

static const struct rmem_mr_bound indirect = {
		.name = "indirect keys",
		.size_name = "max_entries",
		.capa = RMEM_DEV_CAPA_UMR,
		.type = RMEM_MR_TYPE_INDIRECT,
		.max_size = max_entries_of,
		.alloc = alloc,
};

int
rmem_mkey_alloc(struct rmem_pd *pd, uint32_t max_entries, struct rmem_mr **mr)
{
	RMEM_CALL(pd);

	return rmem_mr_alloc_bound(pd, &indirect, max_entries, mr);
}
