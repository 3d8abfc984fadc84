/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* XRC; see rsoft_xrc.h. */

#include <errno.h>

#include <rte_bitops.h>
#include <rte_malloc.h>

#include "../base/rsoft_ids.h"
#include "../mem/rsoft_grace.h"
#include "rsoft_xrc.h"

#define XRC_TRIES 64 /* numbers tried for an SRQ */

int
rsoft_xrc_init(struct rsoft_dev *dev, int socket_id)
{
	/* One entry more than SRQs, because no SRQ has the number 0. */
	dev->xrc_mask = rte_align32pow2((uint32_t)dev->args.max_srq + 1) - 1;
	dev->xrc_generation = rsoft_random();
	dev->xrc_srqs = rte_zmalloc_socket("rsoft_xrc_srqs",
			(dev->xrc_mask + 1) * sizeof(struct rsoft_srq *), 0, socket_id);
	if (dev->xrc_srqs != NULL)
		return 0;
	RSOFT_LOG(ERR, "max_srq=%" PRIu64 ": no memory for the table", dev->args.max_srq);
	return -ENOMEM;
}

void
rsoft_xrc_fini(struct rsoft_dev *dev)
{
	rte_free(dev->xrc_srqs);
}

/* A number whose entry is free, or 0. It differs from that of the previous SRQ in this entry. */
static uint32_t
xrc_new_number(struct rsoft_dev *dev)
{
	uint32_t index = rsoft_random() & dev->xrc_mask, number;

	rsoft_lock(&rsoft_domain->lock);
	while (index == 0 || dev->xrc_srqs[index] != NULL)
		index = (index + 1) & dev->xrc_mask;
	dev->xrc_generation += dev->xrc_mask + 1;
	number = ((dev->xrc_generation & ~dev->xrc_mask) | index) & RSOFT_XRC_MASK;
	rte_ticketlock_unlock(&rsoft_domain->lock);
	return number;
}

/* Add an SRQ to the table, unless another one has got the entry. */
static bool
xrc_enter(struct rsoft_srq *srq)
{
	struct rsoft_srq **entry =
			&srq->owner.dev->xrc_srqs[srq->number & srq->owner.dev->xrc_mask];
	bool is_free;

	rsoft_lock(&rsoft_domain->lock);
	is_free = *entry == NULL;
	if (is_free)
		__atomic_store_n(entry, srq, __ATOMIC_RELEASE);
	rte_ticketlock_unlock(&rsoft_domain->lock);
	return is_free;
}

/* Give a new SRQ a number that is free in its domain. */
static int
xrc_number(struct rsoft_srq *srq, const struct rsoft_xrc_claim *claim)
{
	unsigned int i;
	int ret;

	for (i = 0; i < XRC_TRIES; i++) {
		srq->number = xrc_new_number(srq->owner.dev);
		ret = claim->open(srq);
		if (ret == 0 && xrc_enter(srq))
			return 0;
		if (ret == 0)
			claim->close(srq);
		else if (ret != -EADDRINUSE)
			return ret;
	}
	RSOFT_LOG(ERR, "SRQ: no free number in its XRC domain: the last one tried is 0x%x",
			srq->number);
	return -ENOMEM;
}

/* Remove the SRQ from a QP; a message that has not ended will be refused. */
static void
xrc_forget(struct rsoft_qp *qp, const struct rsoft_srq *srq)
{
	if (qp->xrcd != srq->xrcd)
		return;
	rte_ticketlock_lock(&qp->rq.lock);
	if (qp->rq.srq == srq) {
		rsoft_rq_drop(qp);
		__atomic_store_n(&qp->rq.srq, NULL, __ATOMIC_RELAXED);
		qp->qp.recv_cq = NULL;
	}
	rte_ticketlock_unlock(&qp->rq.lock);
}

/* Ensure that no request can use the SRQ any more. */
static void
xrc_leave(struct rsoft_srq *srq)
{
	struct rsoft_dev *dev = srq->owner.dev;
	struct rsoft_qp *qp;
	uint32_t i;

	rsoft_lock(&rsoft_domain->lock);
	__atomic_store_n(&dev->xrc_srqs[srq->number & dev->xrc_mask], NULL, __ATOMIC_SEQ_CST);
	rte_ticketlock_unlock(&rsoft_domain->lock);
	rsoft_grace_wait();
	rsoft_lock(&rsoft_domain->lock);
	for (i = 0; i <= dev->qp_mask; i++) {
		if (dev->qps[i] != NULL)
			xrc_forget(dev->qps[i], srq);
	}
	/* One that has left the table may still have a receive to return. */
	LIST_FOREACH(qp, &dev->dying_qps, dying)
		xrc_forget(qp, srq);
	rte_ticketlock_unlock(&rsoft_domain->lock);
	rsoft_grace_wait();
	rsoft_cq_detach(srq->cq);
	rsoft_cq_detach(srq->cq);
}

int
rsoft_xrc_srq_create(struct rmem_srq *base, const struct rmem_srq_conf *conf,
		const struct rsoft_xrc_claim *claim)
{
	struct rsoft_srq *srq = rsoft_srq_of(base);
	int ret = rsoft_srq_create(base, conf);

	if (ret != 0 || conf->ext == NULL || conf->ext->xrcd == NULL)
		return ret;
	srq->domain = conf->ext->xrcd;
	srq->xrcd = srq->domain->handle;
	srq->cq = rsoft_cq_of(conf->ext->cq);
	/* Attach it twice, because several QPs may complete to it at the same time. */
	rsoft_cq_attach(srq->cq);
	rsoft_cq_attach(srq->cq);
	ret = xrc_number(srq, claim);
	if (ret == 0)
		return 0;
	rsoft_cq_detach(srq->cq);
	rsoft_cq_detach(srq->cq);
	(void)rsoft_srq_destroy(base);
	return ret;
}

int
rsoft_xrc_srq_destroy(struct rmem_srq *base)
{
	if (rsoft_srq_of(base)->xrcd != 0)
		xrc_leave(rsoft_srq_of(base));
	return rsoft_srq_destroy(base);
}

bool
rsoft_xrc_switch(struct rsoft_qp *qp, struct rsoft_srq *srq)
{
	bool is_empty;

	rte_ticketlock_lock(&qp->rq.lock);
	is_empty = qp->rq.cons == qp->rq.prod;
	if (is_empty) {
		__atomic_store_n(&qp->rq.srq, srq, __ATOMIC_RELAXED);
		qp->qp.recv_cq = &srq->cq->cq;
		qp->pd = srq->owner.pd;
	}
	rte_ticketlock_unlock(&qp->rq.lock);
	return is_empty;
}

int
rsoft_xrc_srq_num_get(struct rmem_srq *srq, uint32_t *srq_num)
{
	*srq_num = rsoft_srq_of(srq)->number;
	return 0;
}
