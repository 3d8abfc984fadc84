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

/* Give a new SRQ a number. */
static void
xrc_enter(struct rsoft_srq *srq, const struct rmem_srq_ext *ext)
{
	struct rsoft_dev *dev = srq->owner.dev;
	uint32_t index = rsoft_random() & dev->xrc_mask;

	srq->xrcd = ext->xrcd->handle;
	srq->cq = rsoft_cq_of(ext->cq);
	/* Attach it twice, because several QPs may complete to it at the same time. */
	rsoft_cq_attach(srq->cq);
	rsoft_cq_attach(srq->cq);
	rsoft_lock(&rsoft_domain->lock);
	while (index == 0 || dev->xrc_srqs[index] != NULL)
		index = (index + 1) & dev->xrc_mask;
	/* The number differs from that of the previous SRQ in this entry. */
	dev->xrc_generation += dev->xrc_mask + 1;
	srq->number = ((dev->xrc_generation & ~dev->xrc_mask) | index) & RSOFT_XRC_MASK;
	__atomic_store_n(&dev->xrc_srqs[index], srq, __ATOMIC_RELEASE);
	rte_ticketlock_unlock(&rsoft_domain->lock);
}

/* Remove the SRQ from a QP; a message that has not ended will be refused. */
static void
xrc_forget(struct rsoft_qp *qp, const struct rsoft_srq *srq)
{
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
	uint32_t i;

	rsoft_lock(&rsoft_domain->lock);
	__atomic_store_n(&dev->xrc_srqs[srq->number & dev->xrc_mask], NULL, __ATOMIC_SEQ_CST);
	rte_ticketlock_unlock(&rsoft_domain->lock);
	rsoft_grace_wait();
	rsoft_lock(&rsoft_domain->lock);
	for (i = 0; i <= dev->qp_mask; i++) {
		if (dev->qps[i] != NULL && dev->qps[i]->xrcd == srq->xrcd)
			xrc_forget(dev->qps[i], srq);
	}
	rte_ticketlock_unlock(&rsoft_domain->lock);
	rsoft_grace_wait();
	rsoft_cq_detach(srq->cq);
	rsoft_cq_detach(srq->cq);
}

int
rsoft_xrc_srq_create(struct rmem_srq *base, const struct rmem_srq_conf *conf)
{
	int ret = rsoft_srq_create(base, conf);

	if (ret == 0 && conf->ext != NULL && conf->ext->xrcd != NULL)
		xrc_enter(rsoft_srq_of(base), conf->ext);
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

static int
xrc_srq_num_get(struct rmem_srq *srq, uint32_t *srq_num)
{
	*srq_num = rsoft_srq_of(srq)->number;
	return 0;
}

/* The class does everything for domains. */
static int
xrc_xrcd_alloc(struct rmem_xrcd *xrcd, const struct rmem_xrcd_conf *conf)
{
	RTE_SET_USED(xrcd);
	RTE_SET_USED(conf);
	return 0;
}

static int
xrc_xrcd_dealloc(struct rmem_xrcd *xrcd)
{
	RTE_SET_USED(xrcd);
	return 0;
}

const struct rmem_xrc_ops rsoft_xrc_ops = {
		.xrcd_size = sizeof(struct rmem_xrcd),
		.srq_num_get = xrc_srq_num_get,
		.xrcd_dealloc = xrc_xrcd_dealloc,
		.xrcd_alloc = xrc_xrcd_alloc,
};
