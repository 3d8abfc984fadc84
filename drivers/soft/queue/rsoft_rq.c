/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Flush and drop of the receive queue, which rsoft_post.c fills and rsoft_resp.c consumes. */

#include <errno.h>

#include <rte_bitops.h>
#include <rte_malloc.h>

#include "../chaos/rsoft_chaos.h"
#include "rsoft_count.h"
#include "rsoft_rq.h"

int
rsoft_rq_init(struct rsoft_rq *rq, const struct rmem_qp_conf *conf, int socket_id)
{
	uint32_t size = rte_align32pow2(RTE_MAX(conf->max_recv_wr, 1u));
	uint32_t max_sge = conf->max_recv_sge;

	if (conf->srq != NULL) {
		rq->srq = rsoft_srq_of(conf->srq);
		max_sge = rq->srq->max_sge;
	} else if (conf->type == RMEM_QPT_XRC_RECV) {
		max_sge = RSOFT_MAX_SGE; /* fits any SRQ */
	}
	rte_ticketlock_init(&rq->lock);
	rq->depth = conf->max_recv_wr;
	rq->mask = size - 1;
	rq->stride = rsoft_rqe_stride(max_sge);
	rq->ring = rte_zmalloc_socket(
			"rsoft_rq", (size_t)size * rq->stride, RTE_CACHE_LINE_SIZE, socket_id);
	return rq->ring == NULL ? -ENOMEM : 0;
}

struct rsoft_rqe *
rsoft_rq_take_slow(struct rsoft_qp *qp, struct rsoft_rqe *rqe, uint64_t length)
{
	/* Another process writes the SGEs of a claimed QP. */
	if (rsoft_qp_is_claimed(qp) && qp->rq.srq == NULL && rqe->num_sge > qp->max_recv_sge)
		return NULL;
	if (!qp->has_late_recv || length == RSOFT_RQ_CONTINUED)
		return rqe;
	if (rsoft_chaos_no_recv(qp->chaos)) {
		rsoft_rq_keep(qp);
		return NULL;
	}
	if (length != 0)
		rsoft_chaos_break_recv(qp->chaos, rqe);
	return rqe;
}

void
rsoft_rq_count(const struct rsoft_qp *qp, const struct rsoft_cqe *cqe)
{
	uint8_t status = (uint8_t)(cqe->info >> RSOFT_WC_SHIFT(status));

	rsoft_count(qp, RMEM_QP_COUNT_RECV, status == RMEM_WC_SUCCESS,
			(uint32_t)(cqe->data >> RSOFT_WC_SHIFT(byte_len)));
}

/* Report that a QP in ERR has no receive of its SRQ, and takes none. */
static void
report_last(struct rsoft_qp *qp)
{
	if (qp->qp.srq != NULL)
		rmem_qp_async_event(&qp->qp, RMEM_ASYNC_QP_LAST_WQE_REACHED);
}

void
rsoft_rq_flush(struct rsoft_qp *qp)
{
	struct rsoft_cqe cqe = {.info = rsoft_cqe_info(RMEM_WC_WR_FLUSH_ERR, RMEM_WC_RECV, 0,
						qp->qp.qp_num)};
	const struct rsoft_rqe *rqe;
	struct rsoft_cq *cq;
	uint32_t at;

	rte_ticketlock_lock(&qp->rq.lock);
	cq = rsoft_cq_of(qp->qp.recv_cq);
	/* The state is stored; now load what was posted (rsoft.h). */
	rsoft_rq_cache_prod(&qp->rq, __atomic_load_n(&qp->rq.prod, __ATOMIC_SEQ_CST));
	while ((rqe = rsoft_rq_head(&qp->rq)) != NULL) {
		cqe.wr_id = rqe->wr_id;
		rmem_wc_trace_error(qp->qp.obj.dev_id, qp->qp.qp_num, rqe->wr_id,
				RMEM_WC_WR_FLUSH_ERR, 0);
		at = rsoft_cq_reserve_shared(cq, 1);
		rsoft_rq_count(qp, &cqe);
		__atomic_store_n(&qp->rq.cons, qp->rq.cons + 1, __ATOMIC_RELEASE);
		if (unlikely(!rsoft_cq_write_locked(cq, at, &cqe)))
			rsoft_qp_to_err(qp);
	}
	rte_ticketlock_unlock(&qp->rq.lock);
	report_last(qp);
}

void
rsoft_rq_flush_late(struct rsoft_qp *qp)
{
	if (qp->rq.srq == NULL && __atomic_load_n(&qp->state, __ATOMIC_SEQ_CST) == RMEM_QPS_ERR &&
			__atomic_load_n(&qp->rq.prod, __ATOMIC_SEQ_CST) !=
					__atomic_load_n(&qp->rq.cons, __ATOMIC_RELAXED))
		rsoft_rq_flush(qp);
}

void
rsoft_rq_fail(struct rsoft_qp *qp)
{
	if (rsoft_qp_to_err(qp))
		rsoft_rq_flush(qp);
}

bool
rsoft_rq_fail_event(struct rsoft_qp *qp, uint32_t event)
{
	if (!rsoft_qp_to_err(qp))
		return false;
	rmem_qp_async_event(&qp->qp, event);
	rsoft_rq_flush(qp);
	return true;
}

void
rsoft_rq_overrun(struct rsoft_qp *qp)
{
	if (!rsoft_qp_to_err(qp))
		return;
	rmem_qp_async_event(&qp->qp, RMEM_ASYNC_QP_FATAL);
	report_last(qp);
}

void
rsoft_rq_abandon(struct rsoft_qp *qp)
{
	rte_ticketlock_lock(&qp->rq.lock);
	rsoft_rq_keep(qp);
	rte_ticketlock_unlock(&qp->rq.lock);
}

void
rsoft_rq_drop(struct rsoft_qp *qp)
{
	struct rsoft_rq *rq = &qp->rq;

	if (rq->srq != NULL) {
		rsoft_srq_return(rq);
		rq->cons_cached = ++rq->prod; /* see rsoft_srq.h */
	}
	rq->prod_cached = rq->prod;
	__atomic_store_n(&rq->cons, rq->prod, __ATOMIC_RELEASE);
}
