/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Memory regions. rmem uses the keys of verbs. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "rverbs_mlx5.h"
#include "rverbs_mwq.h"
#include "rverbs_range.h"

/*
 * Whether a whole range is mapped. libibverbs returns ENOMEM for unmapped memory after
 * ibv_fork_init(), which DPDK's drivers call.
 */
static bool
mr_is_mapped(void *addr, size_t length)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = RTE_ALIGN_FLOOR((uintptr_t)addr, page);
	uintptr_t end = (uintptr_t)addr + length;

	return msync((void *)start, end - start, MS_ASYNC) == 0 || errno != ENOMEM;
}

/*
 * Log the limit and how to raise it: ENOMEM usually means the limit of locked memory, and EPERM is
 * the kernel's errno for a limit of 0.
 */
int
rverbs_mr_refused(int err, const char *what, void *addr, size_t length, uint64_t iova,
		uint32_t access)
{
	bool is_on_demand = (access & RMEM_ACCESS_ON_DEMAND) != 0;
	struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
	char hint[256] = "";

	(void)getrlimit(RLIMIT_MEMLOCK, &limit);
	if (err == ENOMEM && !is_on_demand && !mr_is_mapped(addr, length))
		err = EFAULT;
	if (err == EPERM && limit.rlim_cur == 0)
		err = ENOMEM;
	if (rverbs_err_fold(err, RVERBS_ERR_REG) == -ENOMEM && !is_on_demand &&
			limit.rlim_cur != RLIM_INFINITY)
		snprintf(hint, sizeof(hint),
				" (RLIMIT_MEMLOCK allows %" PRIu64
				" bytes, other MRs included: raise it with ulimit -l or in /etc/security/limits.conf, or give the process CAP_IPC_LOCK)",
				(uint64_t)limit.rlim_cur);
	RVERBS_LOG(ERR, "%s: %zu bytes at %p, iova 0x%" PRIx64 ", access 0x%x: %s%s", what, length,
			addr, iova, access, strerror(err), hint);
	return rverbs_err_fold(err, RVERBS_ERR_REG);
}

static int
mr_reg_null(struct rmem_mr *base)
{
	struct rverbs_mr *mr = rverbs_mr_of(base);

	mr->ibv = ibv_alloc_null_mr(rverbs_pd_of(base->pd)->ibv);
	if (mr->ibv == NULL)
		return rverbs_err_null(NULL, "ibv_alloc_null_mr");
	base->lkey = mr->ibv->lkey;
	base->rkey = mr->ibv->rkey;
	return 0;
}

/*
 * Register the dma-buf of a device's memory, because the kernel can't pin a mapping of it; the
 * mapping remains for the process. Not for a registration in the background, before which the
 * descriptor may be closed and reused. If this fails, errno is that of the first call.
 */
static void
mr_reg_dmabuf(struct rverbs_mr *mr, const struct rmem_mr_attr *attr, unsigned int access)
{
	int err = errno;

	if ((attr->flags & RMEM_MR_FD) == 0 || attr->eq != NULL)
		return;
	mr->ibv = ibv_reg_dmabuf_mr(rverbs_pd_of(mr->mr.pd)->ibv, attr->fd_offset, mr->mr.length,
			mr->mr.iova, attr->fd, (int)(access & ~RMEM_ACCESS_MW_BIND));
	mr->is_dmabuf = mr->ibv != NULL;
	errno = err;
}

int
rverbs_mr_reg(struct rmem_mr *base, const struct rmem_mr_attr *attr)
{
	struct rverbs_dev *dev = rverbs_dev_of(&base->obj);
	struct rverbs_mr *mr = rverbs_mr_of(base);
	struct ibv_pd *pd = rverbs_pd_of(base->pd)->ibv;
	unsigned int access = base->access & dev->access;
	int ret;

	if (base->type == RMEM_MR_TYPE_NULL)
		return mr_reg_null(base);
	if (base->type == RMEM_MR_TYPE_DM)
		return rverbs_dm_reg(base, attr->ext);
	ret = rverbs_odp_check(base);
	if (ret != 0)
		return ret;
	mr->ibv = ibv_reg_mr_iova2(pd, base->addr, base->length, base->iova, access);
	if (mr->ibv == NULL)
		mr_reg_dmabuf(mr, attr, access);
	if (mr->ibv == NULL)
		return rverbs_mr_refused(
				errno, "ibv_reg_mr", base->addr, base->length, base->iova, access);
	ret = rverbs_range_add(rverbs_pd_of(base->pd), mr, base->iova, access);
	if (ret != 0) {
		(void)ibv_dereg_mr(mr->ibv);
		return ret;
	}
	base->lkey = mr->ibv->lkey;
	base->rkey = mr->ibv->rkey;
	rverbs_odp_add(dev, mr);
	return 0;
}

/* Update the range of a changed MR, so that REG_MR finds its new memory, PD and rights. */
static void
mr_move_range(const struct rmem_mr *base, struct rmem_pd *pd, uint64_t iova, uint32_t access)
{
	const struct rverbs_mr *mr = (const struct rverbs_mr *)base;

	rverbs_range_remove(rverbs_pd_of(base->pd), mr);
	(void)rverbs_range_add(rverbs_pd_of(pd), mr, iova, access);
}

/*
 * For an unsupported change a provider returns ERR_CMD with EOPNOTSUPP and changes nothing, so the
 * MR remains valid. After any other ERR_CMD the MR is not usable. On-demand MRs are always
 * registered again, because their re-registration is not probed.
 */
int
rverbs_mr_rereg(struct rmem_mr *base, uint32_t flags, struct rmem_pd *pd, void *addr, size_t length,
		uint32_t access, enum rmem_rereg_result *result)
{
	struct rverbs_dev *dev = rverbs_dev_of(&base->obj);
	struct ibv_mr *ibv = rverbs_mr_of(base)->ibv;
	bool is_moved = (flags & RMEM_REREG_CHANGE_TRANSLATION) != 0;
	int ret;

	if (rverbs_mr_of(base)->is_dmabuf) {
		RVERBS_LOG(ERR, "MR %p: of a dma-buf: cannot be changed", (void *)base);
		return -EINVAL;
	}
	if ((flags & ~dev->rereg) != 0 || ((base->access | access) & RMEM_ACCESS_ON_DEMAND) != 0)
		return -EOPNOTSUPP;
	access &= dev->access;
	errno = 0;
	ret = ibv_rereg_mr(ibv, (int)flags,
			(flags & RMEM_REREG_CHANGE_PD) != 0 ? rverbs_pd_of(pd)->ibv : NULL,
			is_moved ? addr : NULL, is_moved ? length : 0,
			(flags & RMEM_REREG_CHANGE_ACCESS) != 0 ? (int)access : 0);
	if (ret <= IBV_REREG_MR_ERR_CMD && errno == EOPNOTSUPP)
		return -EOPNOTSUPP;
	if (ret == 0 && (ibv->lkey != base->lkey || ibv->rkey != base->rkey))
		*result = RMEM_REREG_NEW_KEYS;
	if (ret == 0 || ret == IBV_REREG_MR_ERR_DO_FORK_OLD) {
		base->lkey = ibv->lkey;
		base->rkey = ibv->rkey;
		rverbs_odp_remove(dev, rverbs_mr_of(base));
		rverbs_odp_add(dev, rverbs_mr_of(base));
	}
	if (ret == 0) {
		mr_move_range(base, pd, is_moved ? (uintptr_t)addr : base->iova, access);
		return 0;
	}
	*result = ret < IBV_REREG_MR_ERR_CMD_AND_DO_FORK_NEW ? RMEM_REREG_ERR_CMD
							     : (enum rmem_rereg_result)ret;
	return rverbs_mr_refused(errno != 0 ? errno : EIO, "ibv_rereg_mr", addr, length,
			(uintptr_t)addr, access);
}

int
rverbs_mr_dereg(struct rmem_mr *base)
{
	struct rverbs_dev *dev = rverbs_dev_of(&base->obj);
	struct ibv_mr *ibv = rverbs_mr_of(base)->ibv;
	int ret = 0;

	if (base->type == RMEM_MR_TYPE_NULL || base->type == RMEM_MR_TYPE_DM)
		return rverbs_err_code(ibv_dereg_mr(ibv), RVERBS_ERR_RELEASE, "ibv_dereg_mr");
	if (base->type != RMEM_MR_TYPE_USER)
		return rverbs_mlx5_mr_release(base);
	rverbs_range_remove(rverbs_pd_of(base->pd), rverbs_mr_of(base));
	rverbs_odp_remove(dev, rverbs_mr_of(base));
	/* A window may still be bound to it without being counted: its bind was flushed. */
	if (ibv_dereg_mr(ibv) != 0) {
		if (dev->has_mw_quirk)
			(void)rverbs_mwq_renew_mr(base);
		ret = rverbs_err_code(ibv_dereg_mr(ibv), RVERBS_ERR_RELEASE, "ibv_dereg_mr");
	}
	if (ret == -EINVAL) /* rdma_rxe: requests of the window are in flight */
		ret = -EBUSY;
	if (ret != 0) {
		(void)rverbs_range_add(rverbs_pd_of(base->pd), rverbs_mr_of(base), base->iova,
				base->access);
		rverbs_odp_add(dev, rverbs_mr_of(base));
	}
	return ret;
}

/* The kernel pins registered memory, except on-demand memory. */
int
rverbs_mr_query(struct rmem_mr *base, struct rmem_mr_info *info)
{
	if (base->type == RMEM_MR_TYPE_NULL || base->type == RMEM_MR_TYPE_DM)
		return 0;
	if (base->type != RMEM_MR_TYPE_USER) {
		rverbs_mlx5_mr_query(base, info);
		return 0;
	}
	info->is_pinned = (base->access & RMEM_ACCESS_ON_DEMAND) == 0;
	return 0;
}
