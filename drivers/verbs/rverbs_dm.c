/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Device memory, and MRs of it. */

#include <errno.h>

#include "rverbs_probe.h"

static int
dm_alloc(struct rmem_dm *base, const struct rmem_dm_conf *conf)
{
	struct ibv_alloc_dm_attr attr = {.length = base->length, .log_align_req = conf->log2_align};
	struct rverbs_dm *dm = rverbs_dm_of(base);

	/* libibverbs imports device memory by handle only, into a context of the same device. */
	if ((conf->flags & RMEM_DM_FD) != 0)
		return -EOPNOTSUPP;
	dm->ibv = ibv_alloc_dm(rverbs_dev_of(&base->obj)->context, &attr);
	return rverbs_err_null(dm->ibv, "ibv_alloc_dm");
}

static int
dm_export_fd(struct rmem_dm *base, int *fd)
{
#ifdef RVERBS_HAS_DM_EXPORT
	int ret = ibv_dm_export_dmabuf_fd(rverbs_dm_of(base)->ibv);

	if (ret < 0)
		return rverbs_err_code(-1, RVERBS_ERR_RESIZE, "ibv_dm_export_dmabuf_fd");
	*fd = ret;
	return 0;
#else
	RTE_SET_USED(base);
	RTE_SET_USED(fd);
	return -EOPNOTSUPP;
#endif
}

static int
dm_free(struct rmem_dm *base)
{
	return rverbs_err_code(
			ibv_free_dm(rverbs_dm_of(base)->ibv), RVERBS_ERR_RELEASE, "ibv_free_dm");
}

static int
dm_copy_to(struct rmem_dm *base, uint64_t offset, const void *src, size_t length)
{
	return rverbs_err_code(ibv_memcpy_to_dm(rverbs_dm_of(base)->ibv, offset, src, length),
			RVERBS_ERR_CHANGE, "ibv_memcpy_to_dm");
}

static int
dm_copy_from(struct rmem_dm *base, uint64_t offset, void *dst, size_t length)
{
	return rverbs_err_code(ibv_memcpy_from_dm(dst, rverbs_dm_of(base)->ibv, offset, length),
			RVERBS_ERR_CHANGE, "ibv_memcpy_from_dm");
}

int
rverbs_dm_reg(struct rmem_mr *base, const struct rmem_mr_ext *ext)
{
	struct rverbs_dev *dev = rverbs_dev_of(&base->obj);
	struct rverbs_mr *mr = rverbs_mr_of(base);

	mr->ibv = ibv_reg_dm_mr(rverbs_pd_of(base->pd)->ibv, rverbs_dm_of(ext->dm)->ibv,
			ext->dm_offset, base->length,
			(base->access & dev->access) | IBV_ACCESS_ZERO_BASED);
	if (mr->ibv == NULL)
		return rverbs_err_null(NULL, "ibv_reg_dm_mr");
	base->lkey = mr->ibv->lkey;
	base->rkey = mr->ibv->rkey;
	return 0;
}

/* Probe by allocating memory, and registering an MR of it. */
bool
rverbs_dm_probe(struct rverbs_dev *dev, struct ibv_pd *pd)
{
	struct ibv_alloc_dm_attr attr = {.length = 64};
	bool is_released = true;
	struct ibv_dm *dm;
	struct ibv_mr *mr;

	if (dev->attr.max_dm_size < attr.length)
		return true;
	dm = ibv_alloc_dm(dev->context, &attr);
	if (dm == NULL)
		return true;
	mr = ibv_reg_dm_mr(pd, dm, 0, attr.length, RVERBS_BASIC_ACCESS | IBV_ACCESS_ZERO_BASED);
	if (mr != NULL) {
		dev->capa |= RMEM_DEV_CAPA_DM;
		is_released = ibv_dereg_mr(mr) == 0;
	}
	return ibv_free_dm(dm) == 0 && is_released;
}

const struct rmem_dm_ops rverbs_dm_ops = {
		.dm_size = sizeof(struct rverbs_dm),
		.dm_alloc = dm_alloc,
		.dm_copy_from = dm_copy_from,
		.dm_copy_to = dm_copy_to,
		.dm_export_fd = dm_export_fd,
		.dm_free = dm_free,
};
