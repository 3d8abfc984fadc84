/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Shared receive queues.
 *
 * Receives complete in the order of the messages of several QPs, so each has its own entry from
 * post to completion. Its wr_id of the driver has RVERBS_ID_SRQ, the number of the SRQ and the
 * number of the entry.
 *
 * Invariants:
 * - An entry is in the list of free entries, or its receive is posted and not polled. Both change
 *   under the lock of the SRQ, which is taken inside the lock of a CQ.
 * - An SRQ exists while a poll may find one of its receives: QPs refer to it, and a QP is destroyed
 *   after its completions were removed from the CQ of the device (rverbs_cq_save()). So is an SRQ
 *   of XRC, to which QPs do not refer.
 *
 * If a QP is reset or destroyed while it has a receive, the receive does not complete (IBTA
 * 10.2.9.4: move the QP to Error first), and its entry is not used again.
 */

#include <string.h>

#include <rte_malloc.h>

#include "rverbs.h"

#define RVERBS_SRQ_CHAIN 32

/* Add free entries up to nb. Under the lock, or before the SRQ is in use. */
static int
srq_grow(struct rverbs_srq *srq, uint32_t nb)
{
	uint64_t *wr_ids = rte_realloc(srq->wr_ids, nb * sizeof(*wr_ids), 0);
	uint16_t *free_list;

	if (wr_ids != NULL)
		srq->wr_ids = wr_ids;
	free_list = rte_realloc(srq->free, nb * sizeof(*free_list), 0);
	if (free_list != NULL)
		srq->free = free_list;
	if (wr_ids == NULL || free_list == NULL) {
		RVERBS_LOG(ERR, "SRQ: no memory: %u entries", nb);
		return -ENOMEM;
	}
	while (srq->nb < nb)
		srq->free[srq->nb_free++] = (uint16_t)srq->nb++;
	return 0;
}

/* Entries for posted receives, and as many for receives that wait to be polled. */
static uint32_t
srq_entries(uint32_t max_wr)
{
	return RTE_MIN(2 * max_wr, RVERBS_SRQ_ENTRIES);
}

static int
srq_enter(struct rverbs_dev *dev, struct rverbs_srq *srq)
{
	uint32_t i;

	rte_ticketlock_lock(&dev->lock);
	for (i = 0; i < RVERBS_MAX_SRQ && dev->srqs[i] != NULL; i++)
		;
	if (i < RVERBS_MAX_SRQ)
		dev->srqs[i] = srq;
	rte_ticketlock_unlock(&dev->lock);
	srq->index = i;
	if (i < RVERBS_MAX_SRQ)
		return 0;
	RVERBS_LOG(ERR, "SRQ: all entries are in use (%u)", RVERBS_MAX_SRQ);
	return -ENOSPC;
}

int
rverbs_srq_create(struct rmem_srq *base, const struct rmem_srq_conf *conf)
{
	struct rverbs_dev *dev = rverbs_dev_of(&base->obj);
	struct rverbs_srq *srq = rverbs_srq_of(base);
	struct ibv_srq_init_attr attr;
	int ret;

	srq->dev = dev;
	srq->wc_flags = dev->inv_flag;
	srq->max_sge = conf->max_sge;
	rte_ticketlock_init(&srq->lock);
	ret = srq_grow(srq, srq_entries(conf->max_wr));
	if (ret != 0)
		goto free;
	memset(&attr, 0, sizeof(attr));
	attr.srq_context = srq;
	attr.attr.max_wr = conf->max_wr;
	attr.attr.max_sge = conf->max_sge;
	if (conf->ext != NULL && conf->ext->xrcd != NULL) {
		srq->cq = rverbs_cq_of(conf->ext->cq);
		srq->ibv = rverbs_xrc_srq(rverbs_pd_of(base->pd)->ibv, conf->ext, &attr);
	} else {
		srq->ibv = ibv_create_srq(rverbs_pd_of(base->pd)->ibv, &attr);
	}
	ret = rverbs_err_null(srq->ibv, "ibv_create_srq");
	if (ret != 0)
		goto free;
	ret = srq_enter(dev, srq);
	if (ret == 0)
		return 0;
	ibv_destroy_srq(srq->ibv);
free:
	rte_free(srq->free);
	rte_free(srq->wr_ids);
	return ret;
}

int
rverbs_srq_destroy(struct rmem_srq *base)
{
	struct rverbs_srq *srq = rverbs_srq_of(base);
	struct rverbs_dev *dev = srq->dev;
	int ret;

	/* Providers drop the completions of an SRQ of XRC that is destroyed. */
	if (srq->cq != NULL)
		rverbs_cq_save(srq->cq);
	ret = rverbs_err_code(ibv_destroy_srq(srq->ibv), RVERBS_ERR_RELEASE, "ibv_destroy_srq");
	if (ret != 0)
		return ret;
	if (srq->cq != NULL)
		rverbs_cq_save(srq->cq);
	rte_ticketlock_lock(&dev->lock);
	dev->srqs[srq->index] = NULL;
	dev->destroyed.recv_wrs += srq->recv_wrs;
	rte_ticketlock_unlock(&dev->lock);
	rte_free(srq->free);
	rte_free(srq->wr_ids);
	return 0;
}

int
rverbs_srq_modify(struct rmem_srq *base, const struct rmem_srq_attr *attr, uint32_t mask)
{
	struct rverbs_srq *srq = rverbs_srq_of(base);
	struct ibv_srq_attr ibv = {.max_wr = attr->max_wr, .srq_limit = attr->srq_limit};
	int ret = 0;

	if ((mask & RMEM_SRQ_MAX_WR) != 0 && srq_entries(attr->max_wr) > srq->nb) {
		rte_ticketlock_lock(&srq->lock);
		ret = srq_grow(srq, srq_entries(attr->max_wr));
		rte_ticketlock_unlock(&srq->lock);
	}
	if (ret != 0)
		return ret;
	/* Errnos of RESIZE: the device may lack memory. */
	return rverbs_err_code(ibv_modify_srq(srq->ibv, &ibv, (int)mask), RVERBS_ERR_RESIZE,
			"ibv_modify_srq");
}

int
rverbs_srq_query(struct rmem_srq *base, struct rmem_srq_attr *attr)
{
	struct rverbs_srq *srq = rverbs_srq_of(base);
	struct ibv_srq_attr ibv;
	int ret;

	memset(&ibv, 0, sizeof(ibv));
	ret = rverbs_err_code(ibv_query_srq(srq->ibv, &ibv), RVERBS_ERR_CHANGE, "ibv_query_srq");
	if (ret != 0)
		return ret;
	attr->max_wr = ibv.max_wr;
	attr->max_sge = ibv.max_sge;
	attr->srq_limit = ibv.srq_limit;
	return 0;
}

/* Free the entries of receives from the first one on. Under the lock. */
static void
srq_free(struct rverbs_srq *srq, const struct ibv_recv_wr *wr, uint32_t n)
{
	while (n != 0)
		srq->free[srq->nb_free++] = (uint16_t)wr[--n].wr_id;
}

/* Post a chain of receives; return their number, and in *ret the cause if not all. Under the
 * lock. */
static uint32_t
srq_chain(struct rverbs_srq *srq, const struct rmem_recv_wr *wr, uint32_t nb_wr, int *ret)
{
	struct ibv_recv_wr chain[RVERBS_SRQ_CHAIN], *bad = NULL;
	uint32_t i, n;
	int err;

	for (i = 0; i < nb_wr; i++) {
		if (wr[i].num_sge > srq->max_sge || wr[i].reserved != 0)
			*ret = -EINVAL;
		else if (srq->nb_free == 0)
			*ret = -ENOSPC;
		if (*ret != 0)
			break;
		n = srq->free[--srq->nb_free];
		srq->wr_ids[n] = wr[i].wr_id;
		chain[i].wr_id = RVERBS_ID_SRQ | (uint64_t)srq->index << 16 | n;
		chain[i].sg_list = (struct ibv_sge *)(uintptr_t)wr[i].sg_list;
		chain[i].num_sge = (int)wr[i].num_sge;
		chain[i].next = i + 1 < RVERBS_SRQ_CHAIN ? &chain[i + 1] : NULL;
	}
	if (i == 0)
		return 0;
	chain[i - 1].next = NULL;
	err = ibv_post_srq_recv(srq->ibv, chain, &bad);
	if (err == 0)
		return i;
	n = bad >= chain && bad < chain + i ? (uint32_t)(bad - chain) : 0;
	srq_free(srq, chain + n, i - n);
	*ret = rverbs_err_post(err == -1 ? errno : err);
	return n;
}

int
rverbs_srq_post_recv(struct rmem_srq *base, const struct rmem_recv_wr *wr, uint16_t nb_wr)
{
	struct rverbs_srq *srq = rverbs_srq_of(base);
	uint32_t n, done = 0;
	int ret = 0;

	if (unlikely(__atomic_load_n(&srq->dev->is_removed, __ATOMIC_RELAXED)))
		return -ENODEV;
	rte_ticketlock_lock(&srq->lock);
	while (done < nb_wr && ret == 0) {
		n = RTE_MIN(nb_wr - done, (uint32_t)RVERBS_SRQ_CHAIN);
		done += srq_chain(srq, wr + done, n, &ret);
	}
	rte_ticketlock_unlock(&srq->lock);
	return done != 0 ? (int)done : ret;
}

void
rverbs_srq_probe(struct rverbs_dev *dev, struct ibv_pd *pd)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_srq *srq;

	if (dev->attr.orig_attr.max_srq <= 0 || dev->attr.orig_attr.max_srq_wr <= 0)
		return;
	srq = ibv_create_srq(pd, &attr);
	if (srq == NULL || ibv_destroy_srq(srq) != 0)
		return;
	dev->capa |= RMEM_DEV_CAPA_SRQ;
	if ((dev->attr.orig_attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE) != 0)
		dev->capa |= RMEM_DEV_CAPA_SRQ_RESIZE;
}
