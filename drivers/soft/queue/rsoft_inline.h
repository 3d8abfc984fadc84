/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Inline receive: a short message is delivered in its completion, and the poll that returns this
 * copies it to the memory of the receive. Until then it is pending.
 *
 * Invariant: rsoft_inline::qp is the QP whose pending message is in the slot, else NULL. It is set
 * and cleared under rq.lock of that QP, so that a message is delivered once, or cancelled. Pending
 * messages of a QP are rq.nb_inline, in slots from rq.inline_first to rq.inline_last of its CQ.
 *
 * Invariant: memory changes in the order of the peer's requests. While messages may be pending,
 * rsoft_qp::access has RSOFT_QP_INLINE, with which no WRITE, READ or atomic takes the fast path:
 * rsoft_resp_open() delivers first. A message that is written to memory at once first delivers the
 * pending ones.
 *
 * Invariant: no message reaches memory after rmem_qp_reset() or rmem_qp_destroy() returned. These
 * cancel what is pending: the receive completes with WR_FLUSH_ERR. Its completion remains in the CQ
 * (rmem_qp_reset()), in order with those of later receives. They do not deliver, since a control
 * thread cannot be inside (rsoft_grace.h), and keys may be used only there.
 */

#ifndef RSOFT_INLINE_H
#define RSOFT_INLINE_H

#include "../mem/rsoft_access.h"
#include "rsoft_cq.h"

/*
 * Put a message in the completion at its reserved slot, for the poll to copy. False: it is copied
 * to memory immediately, unless *side reports a failed copy. Under rq.lock.
 *
 * If another lcore polls, the copy and rq.lock would take three more cache lines from one lcore to
 * the other: with RSOFT_INLINE_OWN such messages are copied immediately.
 */
bool rsoft_inline_put(struct rsoft_qp *qp, const struct rsoft_rqe *rqe, const struct rsoft_span *to,
		const struct rsoft_span *from, uint64_t length, uint32_t cq_pos,
		unsigned int *side);

/*
 * Deliver all pending messages. True: one was refused, and that moved the QP to ERR; the caller
 * flushes the receives after it has unlocked. Under rq.lock, from inside of rsoft_grace_enter().
 */
bool rsoft_inline_deliver(struct rsoft_qp *qp);

/* The same for the executor of the peer's send queue, which holds no rq.lock. */
void rsoft_inline_flush(struct rsoft_qp *qp);

/* Drop all receives, flush the receives of pending messages; no message is in progress. */
void rsoft_inline_drop(struct rsoft_qp *qp);

/* Deliver the message of the completion at a position, or report the failure of its receive. */
void rsoft_inline_take(struct rsoft_cq *cq, uint32_t pos, struct rmem_wc *wc);

#endif /* RSOFT_INLINE_H */
