/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The receive queue: posting and flushing; rsoft_resp.c consumes it. */

#include <errno.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_malloc.h>

#include "rsoft_inline.h"
#include "rsoft_rq.h"

int
rsoft_rq_init(struct rsoft_rq *rq, const struct rmem_qp_conf *conf, int socket_id)
{
	uint32_t size = rte_align32pow2(RTE_MAX(conf->max_recv_wr, 1u));

	rte_ticketlock_init(&rq->lock);
	rq->depth = conf->max_recv_wr;
	rq->mask = size - 1;
	rq->stride = (uint32_t)(sizeof(struct rsoft_rqe) +
			conf->max_recv_sge * sizeof(struct rmem_sge));
	rq->ring = rte_zmalloc_socket(
			"rsoft_rq", (size_t)size * rq->stride, RTE_CACHE_LINE_SIZE, socket_id);
	return rq->ring == NULL ? -ENOMEM : 0;
}

void
rsoft_rq_flush(struct rsoft_qp *qp)
{
	struct rsoft_cqe cqe = {.what = rsoft_cqe_what(RMEM_WC_WR_FLUSH_ERR, RMEM_WC_RECV, 0,
						qp->qp.qp_num)};
	struct rsoft_cq *cq = rsoft_cq_of(qp->qp.recv_cq);
	const struct rsoft_rqe *rqe;

	rte_ticketlock_lock(&qp->rq.lock);
	/* Stored the state, now load what was posted; see rsoft.h. */
	qp->rq.prod_seen = __atomic_load_n(&qp->rq.prod, __ATOMIC_SEQ_CST);
	while ((rqe = rsoft_rq_head(&qp->rq)) != NULL) {
		cqe.wr_id = rqe->wr_id;
		rmem_wc_trace_error(qp->qp.obj.dev_id, qp->qp.qp_num, rqe->wr_id,
				RMEM_WC_WR_FLUSH_ERR, 0);
		rsoft_rq_complete(qp, rsoft_cq_reserve_shared(cq, 1), &cqe);
	}
	rte_ticketlock_unlock(&qp->rq.lock);
}

void
rsoft_rq_drop(struct rsoft_qp *qp)
{
	rte_ticketlock_lock(&qp->rq.lock);
	qp->rq.prod_seen = qp->rq.prod;
	__atomic_store_n(&qp->rq.cons, qp->rq.prod, __ATOMIC_RELEASE);
	rsoft_inline_cancel(qp);
	rte_ticketlock_unlock(&qp->rq.lock);
}

/* How many more receives fit. */
static uint32_t
rsoft_rq_room(struct rsoft_rq *rq, uint32_t wanted)
{
	uint32_t room = rq->depth - (rq->prod - rq->cons_seen);

	if (unlikely(room < wanted)) {
		rq->cons_seen = __atomic_load_n(&rq->cons, __ATOMIC_ACQUIRE);
		room = rq->depth - (rq->prod - rq->cons_seen);
	}
	return room;
}

int
rsoft_post_recv(struct rmem_qp *base, const struct rmem_recv_wr *wr, uint16_t nb_wr)
{
	struct rsoft_qp *qp = (struct rsoft_qp *)base;
	struct rsoft_rq *rq = &qp->rq;
	uint32_t room, i, prod = rq->prod;
	int rc = 0;

	if (unlikely(__atomic_load_n(&qp->state, __ATOMIC_RELAXED) == RMEM_QPS_RESET))
		return -EBUSY;
	if (unlikely(rte_lcore_id() >= RTE_MAX_LCORE))
		return -EINVAL;
	room = rsoft_rq_room(rq, nb_wr);
	for (i = 0; i < nb_wr; i++) {
		struct rsoft_rqe *rqe;

		if (unlikely(wr[i].num_sge > qp->max_recv_sge || wr[i].reserved != 0)) {
			rc = -EINVAL;
			break;
		}
		if (unlikely(i == room)) {
			rc = -ENOSPC;
			break;
		}
		rqe = (struct rsoft_rqe *)(rq->ring + (size_t)(prod & rq->mask) * rq->stride);
		rqe->wr_id = wr[i].wr_id;
		rqe->num_sge = wr[i].num_sge;
		if (likely(wr[i].num_sge == 1))
			rqe->sge[0] = wr[i].sg_list[0];
		else if (wr[i].num_sge != 0)
			memcpy(rqe->sge, wr[i].sg_list, wr[i].num_sge * sizeof(rqe->sge[0]));
		prod++;
	}
	if (i == 0)
		return rc;
	/* Store what was posted, then load the state; see rsoft.h. */
	__atomic_exchange_n(&rq->prod, prod, __ATOMIC_SEQ_CST);
	if (unlikely(__atomic_load_n(&qp->state, __ATOMIC_SEQ_CST) == RMEM_QPS_ERR))
		rsoft_rq_flush(qp);
	return (int)i;
}
