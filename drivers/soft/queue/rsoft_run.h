/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * One run of the requester over consecutive requests: their results, and the completions that are
 * written to the CQ together.
 */

#ifndef RSOFT_RUN_H
#define RSOFT_RUN_H

#include <stdbool.h>

#include "rsoft_cq.h"
#include "rsoft_sq.h"

/* Maximum number of completions that are written to the CQ together. */
#define RSOFT_RUN_WCS 32

/* The state of a run. */
struct rsoft_run {
	struct rsoft_qp *qp;
	unsigned int lcore;
	bool is_queued; /* the requests are in the queue, and hold references to their objects */
	uint32_t done;  /* sq.done, kept here during the run */
	uint32_t nb_wc;
	uint32_t why; /* of the request that failed */
	uint64_t bytes;
	struct rsoft_cqe cqe[RSOFT_RUN_WCS];
	uint32_t sq_pos[RSOFT_RUN_WCS];
};

/* Write the gathered completions to the CQ. */
void rsoft_run_flush(struct rsoft_run *run);

/* Complete a failed request. The QP is in ERR before the completion can be polled. */
void rsoft_run_fail(struct rsoft_run *run, const struct rmem_send_wr *wr, int status);

/* Begin a run over the send queue of a QP. Under sq.lock. */
static __rte_always_inline void
rsoft_run_begin(struct rsoft_run *run, struct rsoft_qp *qp, unsigned int lcore, bool is_queued)
{
	run->qp = qp;
	run->lcore = lcore;
	run->is_queued = is_queued;
	run->done = qp->sq.done;
	run->nb_wc = 0;
	run->bytes = 0;
}

/* End a run: write its completions, and count. */
static __rte_always_inline void
rsoft_run_end(struct rsoft_run *run)
{
	struct rsoft_qp *qp = run->qp;

	rsoft_run_flush(run);
	RSOFT_COUNT(qp->stats.send_wrs, run->done - qp->sq.done);
	RSOFT_COUNT(qp->stats.bytes, run->bytes);
	qp->sq.done = run->done;
}

/* Complete a request. */
static __rte_always_inline void
rsoft_run_add_wc(
		struct rsoft_run *run, const struct rmem_send_wr *wr, int status, uint32_t byte_len)
{
	struct rsoft_cqe *cqe = &run->cqe[run->nb_wc];

	cqe->wr_id = wr->wr_id;
	cqe->what = rsoft_cqe_what(
			(uint8_t)status, rmem_wr_info[wr->opcode].wc_opcode, 0, run->qp->qp.qp_num);
	cqe->data = rsoft_cqe_data(byte_len, 0);
	cqe->vendor_err = run->why;
	run->sq_pos[run->nb_wc] = run->done;
	if (++run->nb_wc == RSOFT_RUN_WCS)
		rsoft_run_flush(run);
}

/* A request succeeded. */
static __rte_always_inline void
rsoft_run_succeed(struct rsoft_run *run, const struct rmem_send_wr *wr, uint64_t length)
{
	/* Before the completion: the MR may be released once that is polled. */
	if (unlikely(run->is_queued))
		rsoft_sq_unhold(run->qp, wr);
	run->done++;
	run->bytes += length;
	if ((wr->flags & RMEM_SEND_SIGNALED) || run->qp->sig_all)
		rsoft_run_add_wc(run, wr, RMEM_WC_SUCCESS, (uint32_t)length);
}

#endif /* RSOFT_RUN_H */
