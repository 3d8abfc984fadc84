/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * On-demand paging: advice, and checks of MRs and advice that the driver refuses.
 *
 * rdma_rxe (7.2) crashes on advice about an MR that is not on demand, and on requests to an
 * on-demand MR whose iova is not its address. So the driver keeps a list of the MRs of a device, to
 * look up the MR of an lkey before advice is passed on, and refuses other iovas.
 *
 * Invariant: the list, and key and is_on_demand of its MRs, are written under dev->lock. On-demand
 * MRs are at the front. An MR is removed before it is deregistered, so keys in the list are unique.
 * The other fields of an MR do not change during an advice, because the caller must not deregister
 * or change the MR.
 */

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "rverbs.h"

static_assert((int)RMEM_ADVISE_PREFETCH == IBV_ADVISE_MR_ADVICE_PREFETCH &&
				(int)RMEM_ADVISE_PREFETCH_WRITE ==
						IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE &&
				(int)RMEM_ADVISE_PREFETCH_NO_FAULT ==
						IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT &&
				RMEM_ADVISE_FLUSH == IBV_ADVISE_MR_FLAG_FLUSH,
		"advice is passed on as it is");

int
rverbs_odp_check(const struct rmem_mr *mr)
{
	if ((mr->access & RMEM_ACCESS_ON_DEMAND) == 0 || mr->iova == (uintptr_t)mr->addr)
		return 0;
	RVERBS_LOG(ERR, "on-demand MR: iova is not the address: 0x%" PRIx64 " for %p", mr->iova,
			mr->addr);
	return -EOPNOTSUPP;
}

void
rverbs_odp_add(struct rverbs_dev *dev, struct rverbs_mr *mr)
{
	rte_ticketlock_lock(&dev->lock);
	mr->key = mr->ibv->lkey;
	mr->is_on_demand = (mr->mr.access & RMEM_ACCESS_ON_DEMAND) != 0;
	if (mr->is_on_demand)
		TAILQ_INSERT_HEAD(&dev->mrs, mr, next);
	else
		TAILQ_INSERT_TAIL(&dev->mrs, mr, next);
	rte_ticketlock_unlock(&dev->lock);
}

void
rverbs_odp_remove(struct rverbs_dev *dev, struct rverbs_mr *mr)
{
	rte_ticketlock_lock(&dev->lock);
	TAILQ_REMOVE(&dev->mrs, mr, next);
	rte_ticketlock_unlock(&dev->lock);
}

/* Under dev->lock. */
static int
odp_check_sge(const struct rverbs_dev *dev, const struct rmem_pd *pd, int advice,
		const struct rmem_sge *sge)
{
	const struct rverbs_mr *mr;
	const struct rmem_mr *base;
	uint64_t offset;

	TAILQ_FOREACH(mr, &dev->mrs, next) {
		if (mr->key == sge->lkey)
			break;
	}
	if (mr == NULL)
		return -ENOENT;
	base = &mr->mr;
	if (base->pd != pd)
		return -EPERM;
	if (!mr->is_on_demand)
		return -EINVAL;
	if (advice == RMEM_ADVISE_PREFETCH_WRITE && (base->access & RMEM_ACCESS_LOCAL_WRITE) == 0)
		return -EPERM;
	offset = sge->addr - base->iova;
	if (sge->addr < base->iova || offset > base->length || base->length - offset < sge->length)
		return -EFAULT;
	return 0;
}

int
rverbs_mr_advise(struct rmem_pd *pd, int advice, uint32_t flags, const struct rmem_sge *sg_list,
		uint32_t num_sge)
{
	struct rverbs_dev *dev = rverbs_dev_of(&pd->obj);
	uint32_t i;
	int ret = 0;

	for (i = 0; i < num_sge && ret == 0; i++) {
		rte_ticketlock_lock(&dev->lock);
		ret = odp_check_sge(dev, pd, advice, &sg_list[i]);
		rte_ticketlock_unlock(&dev->lock);
	}
	if (ret != 0) {
		i--;
		RVERBS_LOG(ERR, "advice %d: SGE %u, lkey 0x%08x, 0x%" PRIx64 " + %u: %s", advice, i,
				sg_list[i].lkey, sg_list[i].addr, sg_list[i].length,
				strerror(-ret));
		return ret;
	}
	/* libibverbs does not write to the list. */
	return rverbs_err_code(
			ibv_advise_mr(rverbs_pd_of(pd)->ibv, (enum ibv_advise_mr_advice)advice,
					flags, (struct ibv_sge *)(uintptr_t)sg_list, num_sge),
			RVERBS_ERR_ADVISE, "ibv_advise_mr");
}
