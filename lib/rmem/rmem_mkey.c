/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Indirect keys: MRs over ranges of other keys.
 */

#include <rmem_mr_priv.h>
#include <rmem_trace_priv.h>

static uint32_t
max_entries_of(const struct rmem_dev_info *info)
{
	return info->max_mkey_entries;
}

static int
alloc(struct rmem_mr *mr, uint32_t max_entries)
{
	mr->max_entries = max_entries;
	return rmem_dev_ops(rmem_obj_dev(&mr->obj))->mkey_alloc(mr);
}

static const struct rmem_mr_bound indirect = {
		.name = "indirect keys",
		.size_name = "max_entries",
		.capa = RMEM_DEV_CAPA_UMR,
		.type = RMEM_MR_TYPE_INDIRECT,
		.max_size = max_entries_of,
		.alloc = alloc,
};

static int
mkey_alloc(struct rmem_pd *pd, uint32_t max_entries, struct rmem_mr **mr)
{
	return rmem_mr_alloc_bound(pd, &indirect, max_entries, mr, "rmem_mkey_alloc");
}

int
rmem_mkey_alloc(struct rmem_pd *pd, uint32_t max_entries, struct rmem_mr **mr)
{
	return rmem_trace_call(__func__, pd, mkey_alloc(pd, max_entries, mr));
}
