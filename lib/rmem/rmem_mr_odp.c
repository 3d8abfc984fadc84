/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * On-demand paging: what goes together with it, advice, and the counters of an MR.
 */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <rmem_mr_pages_priv.h>
#include <rmem_mr_priv.h>
#include <rmem_trace_priv.h>

int
rmem_mr_check_odp(const struct rmem_dev *dev, const struct rmem_mr_attr *attr)
{
	const uint32_t others = RMEM_ACCESS_ALLOCATE_MR | RMEM_ACCESS_HUGETLB;

	if ((attr->access & RMEM_ACCESS_ON_DEMAND) == 0)
		return 0;
	if ((attr->access & others) != 0 || attr->iov != NULL) {
		RMEM_LOG(ERR, "%s: ON_DEMAND together with %s", dev->name,
				attr->iov != NULL ? "iov" : "ALLOCATE_MR or HUGETLB");
		return -EINVAL;
	}
	if (rmem_mr_is_implicit(attr->addr, attr->length, attr->access) &&
			(attr->iova != 0 || (attr->access & RMEM_ACCESS_ZERO_BASED) != 0)) {
		RMEM_LOG(ERR, "%s: an implicit MR has no iova but the address", dev->name);
		return -EINVAL;
	}
	return 0;
}

int
rmem_mr_check_odp_capa(const struct rmem_dev *dev, const struct rmem_mr_attr *attr,
		const struct rmem_odp_caps *odp)
{
	if ((attr->access & RMEM_ACCESS_ON_DEMAND) == 0)
		return 0;
	if (rmem_mr_is_implicit(attr->addr, attr->length, attr->access) &&
			(odp->general & RMEM_ODP_SUPPORT_IMPLICIT) == 0) {
		RMEM_LOG(ERR, "%s: the device has no implicit on-demand MRs", dev->name);
		return -EOPNOTSUPP;
	}
	if ((attr->access & RMEM_ACCESS_REMOTE_ATOMIC) != 0 &&
			((odp->rc | odp->uc | odp->ud) & RMEM_ODP_ATOMIC) == 0) {
		RMEM_LOG(ERR, "%s: the device has no atomics on demand", dev->name);
		return -EOPNOTSUPP;
	}
	return 0;
}

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
		uint32_t num_sge, const char *func)
{
	int ret = rmem_obj_check(pd, RMEM_OBJ_PD, func);

	if (ret != 0)
		return ret;
	if (advice < RMEM_ADVISE_PREFETCH || advice > RMEM_ADVISE_PREFETCH_NO_FAULT) {
		RMEM_LOG(ERR, "%s: advice %d is not %d to %d", func, advice, RMEM_ADVISE_PREFETCH,
				RMEM_ADVISE_PREFETCH_NO_FAULT);
		return -EINVAL;
	}
	if ((flags & ~RMEM_ADVISE_FLUSH) != 0) {
		RMEM_LOG(ERR, "%s: unknown flags 0x%x", func, flags & ~RMEM_ADVISE_FLUSH);
		return -EINVAL;
	}
	if (sg_list == NULL || num_sge == 0) {
		RMEM_LOG(ERR, "%s: %u SGEs at %p", func, num_sge, (const void *)sg_list);
		return -EINVAL;
	}
	return 0;
}

static int
mr_advise(struct rmem_pd *pd, int advice, uint32_t flags, const struct rmem_sge *sg_list,
		uint32_t num_sge)
{
	struct rmem_dev_info info;
	struct rmem_dev *dev;
	int ret;

	ret = check_advice(pd, advice, flags, sg_list, num_sge, "rmem_mr_advise");
	if (ret != 0)
		return ret;
	dev = rmem_obj_dev(&pd->obj);
	ret = rmem_dev_info_fill(dev, &info);
	if (ret != 0)
		return ret;
	if ((info.odp.general & RMEM_ODP_SUPPORT) == 0) {
		RMEM_LOG(ERR, "%s: the device has no on-demand paging", dev->name);
		return -EOPNOTSUPP;
	}
	ret = rmem_obj_get(&pd->obj, "rmem_mr_advise");
	if (ret != 0)
		return ret;
	ret = rmem_dev_ops(dev)->mr_advise(pd, advice, flags, sg_list, num_sge);
	rmem_obj_put(&pd->obj);
	return ret;
}

int
rmem_mr_advise(struct rmem_pd *pd, int advice, uint32_t flags, const struct rmem_sge *sg_list,
		uint32_t num_sge)
{
	return rmem_trace_call(__func__, pd, mr_advise(pd, advice, flags, sg_list, num_sge));
}

static int
check_stats(const struct rmem_mr *mr, const struct rmem_mr_stats *stats, const char *func)
{
	int ret = rmem_obj_check(mr, RMEM_OBJ_MR, func);

	if (ret != 0)
		return ret;
	if (stats == NULL) {
		RMEM_LOG(ERR, "%s: got NULL for the answer", func);
		return -EINVAL;
	}
	if (mr->type != RMEM_MR_TYPE_USER) {
		RMEM_LOG(ERR, "%s: MR type %u has no counters, only %u", func, mr->type,
				RMEM_MR_TYPE_USER);
		return -EINVAL;
	}
	if (!rmem_mr_is_registered(mr)) {
		RMEM_LOG(ERR, "%s: the MR %p has failed, or its registration is under way", func,
				(const void *)mr);
		return -EBUSY;
	}
	return 0;
}

static int
mr_stats_get(struct rmem_mr *mr, struct rmem_mr_stats *stats)
{
	struct rmem_mr_stats tmp;
	int ret;

	ret = check_stats(mr, stats, "rmem_mr_stats_get");
	if (ret != 0)
		return ret;
	memset(&tmp, 0, sizeof(tmp));
	ret = rmem_dev_ops(rmem_obj_dev(&mr->obj))->mr_stats_get(mr, &tmp);
	if (ret == 0)
		*stats = tmp;
	return ret;
}

int
rmem_mr_stats_get(struct rmem_mr *mr, struct rmem_mr_stats *stats)
{
	return rmem_trace_call(__func__, mr, mr_stats_get(mr, stats));
}
