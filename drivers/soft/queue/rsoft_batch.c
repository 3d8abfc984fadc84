/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Completions of a batch, and failed requests; see rsoft_batch.h. */

#include "rsoft_error.h"
#include "../mem/rsoft_handle.h"
#include "rsoft_resp.h"
#include "rsoft_batch.h"

/* Causes of failures with only one possible cause. */
static const uint32_t rsoft_batch_vendor_err[] = {
		[RMEM_WC_LOC_LEN_ERR] = RMEM_VENDOR_ERR_MSG_SIZE,
		[RMEM_WC_REM_INV_REQ_ERR] = RMEM_VENDOR_ERR_RECV_SIZE,
		[RMEM_WC_REM_OP_ERR] = RMEM_VENDOR_ERR_RECV,
		[RMEM_WC_RETRY_EXC_ERR] = RMEM_VENDOR_ERR_NO_PEER,
		[RMEM_WC_RNR_RETRY_EXC_ERR] = RMEM_VENDOR_ERR_NO_RECV,
};

/* rsoft_batch_flush() to a CQ that ignores an overrun, and takes as many as it has space for. */
static __rte_noinline void
flush_each(struct rsoft_batch *batch, struct rsoft_cq *cq)
{
	struct rsoft_sq *sq = &batch->qp->sq;
	uint32_t i, pos, tail = sq->sig_tail;

	for (i = 0; i < batch->nb_wc; i++) {
		pos = rsoft_cq_reserve(cq, 1);
		sq->sig[tail & sq->sig_mask].cq_pos = pos;
		sq->sig[tail & sq->sig_mask].sq_pos = batch->sq_pos[i];
		__atomic_store_n(&sq->sig_tail, ++tail, __ATOMIC_RELEASE);
		rsoft_cq_write(cq, pos, &batch->cqe[i]);
	}
	batch->nb_wc = 0;
}

void
rsoft_batch_flush(struct rsoft_batch *batch)
{
	struct rsoft_cq *cq = rsoft_cq_of(batch->qp->qp.send_cq);
	struct rsoft_sq *sq = &batch->qp->sq;
	uint32_t tail = sq->sig_tail;
	uint32_t i, pos;
	bool is_ok = true;

	if (batch->nb_wc == 0)
		return;
	if (unlikely(rsoft_cq_ignores_overrun(cq))) {
		flush_each(batch, cq);
		return;
	}
	pos = rsoft_cq_reserve(cq, batch->nb_wc);
	for (i = 0; i < batch->nb_wc; i++, tail++) {
		sq->sig[tail & sq->sig_mask].cq_pos = pos + i;
		sq->sig[tail & sq->sig_mask].sq_pos = batch->sq_pos[i];
	}
	/* Store it before the completions: their consumer may post to the freed entries. */
	__atomic_store_n(&sq->sig_tail, tail, __ATOMIC_RELEASE);
	for (i = 0; i < batch->nb_wc; i++)
		is_ok &= rsoft_cq_write(cq, pos + i, &batch->cqe[i]);
	batch->nb_wc = 0;
	if (unlikely(!is_ok))
		rsoft_rq_fail_event(batch->qp, RMEM_ASYNC_QP_FATAL);
}

static void
batch_note_error(struct rsoft_batch *batch, const struct rmem_send_wr *wr, int status)
{
	struct rsoft_qp *qp = batch->qp;

	rmem_wc_trace_error(qp->qp.obj.dev_id, qp->qp.qp_num, wr->wr_id, (uint8_t)status,
			batch->vendor_err);
	if (status == RMEM_WC_WR_FLUSH_ERR) {
		RSOFT_COUNT(qp->stats.flushed, 1);
		return;
	}
	RSOFT_COUNT(qp->stats.errors, 1);
	if (status == RMEM_WC_LOC_PROT_ERR)
		RSOFT_COUNT(qp->stats.local_prot_errors, 1);
	if (status == RMEM_WC_REM_ACCESS_ERR)
		RSOFT_COUNT(qp->stats.rem_access_errors, 1);
	if (batch->vendor_err == RMEM_VENDOR_ERR_PAGE_FAULT)
		RSOFT_COUNT(qp->stats.mem_faults, 1);
}

/*
 * Stop the QP of a failed request: RC moves to ERR, other services to SQE, where receives are still
 * consumed (IBTA 10.3.1.6). True: the receives must be flushed.
 */
static bool
run_stop(struct rsoft_qp *qp)
{
	uint32_t state = __atomic_load_n(&qp->state, __ATOMIC_RELAXED);

	if (rsoft_qp_is_reliable(qp))
		return rsoft_qp_to_err(qp);
	while (state == RMEM_QPS_RTS || state == RMEM_QPS_SQD) {
		if (__atomic_compare_exchange_n(&qp->state, &state, RMEM_QPS_SQE, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			break;
	}
	return false;
}

/* Record the error on the side that refused the request, unless a consumed receive reports it. */
static void
batch_fail_peer(const struct rsoft_batch *batch, const struct rmem_send_wr *wr, int status)
{
	struct rsoft_qp *peer = rsoft_resp_peer(batch->qp);

	if (peer == NULL)
		return;
	rsoft_count_remote(peer, wr->opcode, false, 0);
	if (batch->vendor_err != RMEM_VENDOR_ERR_RECV &&
			batch->vendor_err != RMEM_VENDOR_ERR_RECV_SIZE)
		rsoft_error_peer(peer, wr, status, batch->vendor_err);
	if (status == RMEM_WC_REM_ACCESS_ERR && wr->opcode == RMEM_WR_RDMA_WRITE_WITH_IMM)
		rsoft_resp_fail_imm(peer, batch->vendor_err);
	else
		rsoft_resp_fail(peer, status);
}

void
rsoft_batch_fail(struct rsoft_batch *batch, const struct rmem_send_wr *wr, int status)
{
	struct rsoft_qp *qp = batch->qp;
	bool is_first;

	if (batch->vendor_err == RMEM_VENDOR_ERR_NONE &&
			status < (int)RTE_DIM(rsoft_batch_vendor_err))
		batch->vendor_err = rsoft_batch_vendor_err[status];
	if (status == RMEM_WC_REM_ACCESS_ERR || status == RMEM_WC_REM_INV_REQ_ERR ||
			status == RMEM_WC_REM_OP_ERR)
		batch_fail_peer(batch, wr, status);
	if (status != RMEM_WC_WR_FLUSH_ERR)
		rsoft_error_send(qp, wr, status, batch->vendor_err);
	rsoft_handle_undo_tag(wr);
	if (batch->is_queued)
		rsoft_sq_unhold(qp, wr);
	is_first = run_stop(qp);
	qp->sq.wait = RSOFT_WAIT_NONE;
	batch->done++;
	batch_note_error(batch, wr, status); /* before the completion is visible */
	if (batch->is_counted)
		rsoft_count_send(qp, wr, false, 0);
	rsoft_batch_add_wc(batch, wr, status, 0);
	rsoft_batch_flush(batch);
	if (is_first)
		rsoft_rq_flush(qp);
}

void
rsoft_batch_lose(struct rsoft_batch *batch, const struct rmem_send_wr *wr)
{
	struct rsoft_cq *cq = rsoft_cq_of(batch->qp->qp.send_cq);

	rsoft_batch_flush(batch);
	rsoft_handle_undo_tag(wr);
	if (batch->is_queued)
		rsoft_sq_unhold(batch->qp, wr);
	batch->qp->sq.wait = RSOFT_WAIT_NONE;
	batch->done++;
	rsoft_cq_reserve(cq, 1);
	rsoft_cq_lose(cq);
	rsoft_rq_fail_event(batch->qp, RMEM_ASYNC_QP_FATAL);
}
