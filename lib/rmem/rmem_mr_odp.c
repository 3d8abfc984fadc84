/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * On-demand paging: advice, and the pages and counters of an MR.
 */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "rmem_mr_pages_priv.h"
#include "rmem_mr_priv.h"

void
rmem_mr_odp_pages_fill(const struct rmem_mr *mr, uint64_t page_size_cap, struct rmem_mr_info *info)
{
	uint64_t own = (uint64_t)sysconf(_SC_PAGESIZE);
	struct rmem_mr_pages pages;

	rmem_mr_pages_start(&pages, mr->iova);
	rmem_mr_pages_add(&pages, (uintptr_t)mr->addr, mr->length, true);
	rmem_mr_pages_end(&pages, page_size_cap, own);
	info->page_size = pages.page_size != 0 ? pages.page_size : own;
	info->nb_pages = pages.nb_pages;
	info->nb_levels = pages.nb_levels;
	info->nb_extents = 1;
}

static int
check_advice(const struct rmem_pd *pd, int advice, uint32_t flags, const struct rmem_sge *sg_list,
		uint32_t num_sge)
{
	int ret = rmem_obj_check(pd, RMEM_OBJ_PD);

	if (ret != 0)
		return ret;
	if (advice < RMEM_ADVISE_PREFETCH || advice > RMEM_ADVISE_PREFETCH_NO_FAULT)
		return RMEM_FAIL(EINVAL, "advice: out of range: %d (%d to %d)", advice,
				RMEM_ADVISE_PREFETCH, RMEM_ADVISE_PREFETCH_NO_FAULT);
	if ((flags & ~RMEM_ADVISE_FLUSH) != 0)
		return RMEM_FAIL(EINVAL, "flags: unknown bits: 0x%x", flags & ~RMEM_ADVISE_FLUSH);
	if (sg_list == NULL || num_sge == 0)
		return RMEM_FAIL(EINVAL, "SGE list: NULL or empty: %u SGEs at %p", num_sge,
				(const void *)sg_list);
	if ((rmem_obj_info(&pd->obj)->odp.general & RMEM_ODP_SUPPORT) == 0)
		return RMEM_FAIL(EOPNOTSUPP, "%s: not supported by the device: on-demand paging",
				rmem_obj_dev(&pd->obj)->name);
	return 0;
}

int
rmem_mr_advise(struct rmem_pd *pd, int advice, uint32_t flags, const struct rmem_sge *sg_list,
		uint32_t num_sge)
{
	RMEM_CALL(pd);
	int ret;

	ret = check_advice(pd, advice, flags, sg_list, num_sge);
	if (ret == 0)
		ret = rmem_obj_get(&pd->obj);
	if (ret != 0)
		return ret;
	ret = RMEM_OP(pd, mr_advise, pd, advice, flags, sg_list, num_sge);
	rmem_obj_unhold(&pd->obj);
	return ret;
}

int
rmem_mr_stats_get(const struct rmem_mr *mr, struct rmem_mr_stats *stats)
{
	RMEM_CALL(mr);
	struct rmem_mr_stats tmp;
	int ret;

	ret = rmem_obj_check(mr, RMEM_OBJ_MR);
	if (ret == 0)
		ret = rmem_check_arg(stats, "result");
	if (ret == 0)
		ret = rmem_mr_check_user(mr);
	if (ret == 0)
		ret = rmem_mr_check_registered(mr);
	if (ret != 0)
		return ret;
	memset(&tmp, 0, sizeof(tmp));
	ret = RMEM_OP(mr, mr_stats_get, (struct rmem_mr *)(uintptr_t)mr, &tmp);
	if (ret == 0)
		*stats = tmp;
	return ret;
}
