/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The requester: execution of the send queue. */

#ifndef RSOFT_REQ_H
#define RSOFT_REQ_H

#include <stdbool.h>

#include "../base/rsoft.h"

/* Whether an atomic has one SGE of a word; with RMEM_QP_LATE_ERRORS its execution checks that. */
static inline bool
rsoft_req_is_word(const struct rmem_send_wr *wr)
{
	return wr->num_sge == 1 && wr->sg_list[0].length == sizeof(uint64_t);
}

/*
 * Execute n requests, stride bytes apart, in the queue or in the caller's array, until one must
 * wait. Return the number that have ended; the next request, if any, is the head that waits. Under
 * sq.lock or by the engine, between rsoft_grace_enter() and rsoft_grace_leave().
 */
uint32_t rsoft_req_exec(struct rsoft_qp *qp, unsigned int lcore, bool is_queued, const void *wrs,
		size_t stride, uint32_t n);

/* Execute queued requests until one must wait; under the same conditions. */
void rsoft_req_drain(struct rsoft_qp *qp, unsigned int lcore);

/*
 * End a SEND_WITH_INV that waits for its grace period, whose QP is reset: the message has arrived,
 * so the QP at remote, to which qp was connected, completes its receive. After the grace period;
 * no thread executes the queue.
 */
void rsoft_req_end_send(struct rsoft_qp *qp, const struct rmem_qp_addr *remote);

/* Start the invalidation of a READ_WITH_INV after its data was copied. False: refused. */
bool rsoft_req_start_inv(struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint32_t *vendor_err);

#endif /* RSOFT_REQ_H */
