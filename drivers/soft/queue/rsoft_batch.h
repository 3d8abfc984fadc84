/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A batch: consecutive requests that the requester executes in one call, their results, and the
 * completions that are written to the CQ together.
 *
 * Inside: send and receive queues, CQs, SRQs, and the execution of requests within the
 *   process.
 * Callers: wire and drivers/soft.
 * Not known here: packets, ports, engines and the operations of the driver.
 */

#ifndef RSOFT_BATCH_H
#define RSOFT_BATCH_H

#include <stdbool.h>

#include "rsoft_count.h"
#include "rsoft_cq.h"
#include "rsoft_sq.h"

/* Maximum number of completions that are written to the CQ together. */
#define RSOFT_BATCH_WCS 32

/* State of a batch. */
struct rsoft_batch {
	struct rsoft_qp *qp;
	unsigned int lcore;
	bool is_queued;  /* the requests are in the queue, and hold references to their objects */
	bool is_counted; /* some requests of the QP are counted: rsoft_count.h */
	uint32_t done;   /* copy of sq.done during the batch */
	uint32_t nb_wc;
	uint32_t vendor_err; /* of the failed request */
	uint64_t bytes;
	struct rsoft_cqe cqe[RSOFT_BATCH_WCS];
	uint32_t sq_pos[RSOFT_BATCH_WCS];
};

/* Write the gathered completions to the CQ. */
void rsoft_batch_flush(struct rsoft_batch *batch);

/* Complete a failed request. The QP is in ERR before the completion is visible. */
void rsoft_batch_fail(struct rsoft_batch *batch, const struct rmem_send_wr *wr, int status);

/* Lose the completion of a request, as if the CQ were full: CQ and QP fail. */
void rsoft_batch_lose(struct rsoft_batch *batch, const struct rmem_send_wr *wr);

/* Begin a batch over the send queue of a QP. Under sq.lock. */
static __rte_always_inline void
rsoft_batch_begin(
		struct rsoft_batch *batch, struct rsoft_qp *qp, unsigned int lcore, bool is_queued)
{
	batch->qp = qp;
	batch->lcore = lcore;
	batch->is_queued = is_queued;
	batch->is_counted = (qp->counts & RSOFT_COUNT_SENDS) != 0;
	batch->done = qp->sq.done;
	batch->nb_wc = 0;
	batch->bytes = 0;
}

/* End a batch: write its completions, and count. */
static __rte_always_inline void
rsoft_batch_end(struct rsoft_batch *batch)
{
	struct rsoft_qp *qp = batch->qp;

	rsoft_batch_flush(batch);
	RSOFT_COUNT(qp->stats.send_wrs, batch->done - qp->sq.done);
	RSOFT_COUNT(qp->stats.bytes, batch->bytes);
	qp->sq.done = batch->done;
}

/* Complete a request. */
static __rte_always_inline void
rsoft_batch_add_wc(struct rsoft_batch *batch, const struct rmem_send_wr *wr, int status,
		uint32_t byte_len)
{
	struct rsoft_cqe *cqe = &batch->cqe[batch->nb_wc];

	cqe->wr_id = wr->wr_id;
	cqe->info = rsoft_cqe_info((uint8_t)status, rmem_wr_info[wr->opcode].wc_opcode, 0,
			batch->qp->qp.qp_num);
	cqe->data = rsoft_cqe_data(byte_len, 0);
	cqe->vendor_err = batch->vendor_err;
	batch->sq_pos[batch->nb_wc] = batch->done;
	if (++batch->nb_wc == RSOFT_BATCH_WCS)
		rsoft_batch_flush(batch);
}

/* A request succeeded. */
static __rte_always_inline void
rsoft_batch_succeed(struct rsoft_batch *batch, const struct rmem_send_wr *wr, uint64_t length)
{
	/* Release references before the completion: the MR may be released once it is polled. */
	if (unlikely(batch->is_queued))
		rsoft_sq_unhold(batch->qp, wr);
	if (unlikely(batch->is_counted))
		rsoft_count_send(batch->qp, wr, true, length);
	batch->done++;
	batch->bytes += length;
	if ((wr->flags & RMEM_SEND_SIGNALED) || batch->qp->sig_all)
		rsoft_batch_add_wc(batch, wr, RMEM_WC_SUCCESS, (uint32_t)length);
}

#endif /* RSOFT_BATCH_H */
