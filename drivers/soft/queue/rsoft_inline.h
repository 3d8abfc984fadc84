/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Inline receive: a short message is delivered in its completion, and the poll that returns the
 * completion copies the message to the memory of the receive. Until then it is pending.
 *
 * Invariant: rsoft_inline::qp is the QP whose pending message is in the slot, or NULL. It is set
 * and cleared under rq.lock of that QP, so a message is delivered or cancelled exactly once.
 * rq.nb_inline is the number of pending messages of a QP; they are in the slots from
 * rq.inline_first to rq.inline_last of its CQ.
 *
 * Invariant: memory changes in the order of the peer's requests. While messages may be pending,
 * rsoft_qp::access has RSOFT_QP_INLINE, so no WRITE, READ or atomic takes the fast path:
 * rsoft_resp_open() delivers the messages first. So does a message that is copied to memory at
 * once.
 *
 * Invariant: no message is copied to memory after rmem_qp_reset() or rmem_qp_destroy() has
 * returned. These calls cancel pending messages: the receive completes with WR_FLUSH_ERR. Its
 * completion stays in the CQ (rmem_qp_reset()), before completions of later receives. These calls
 * can't deliver, because a control thread can't be inside (rsoft_grace.h), where alone keys may be
 * used.
 */

#ifndef RSOFT_INLINE_H
#define RSOFT_INLINE_H

#include "../mem/rsoft_access.h"
#include "rsoft_cq.h"

/*
 * Store a message for the poll to copy, in the completion at a reserved slot. False: the caller
 * copies it to memory now, unless *side reports a failed copy. Under rq.lock.
 *
 * If another lcore polls, the copy and rq.lock would move three more cache lines between the
 * lcores: with RSOFT_INLINE_OWN such messages are copied immediately.
 */
bool rsoft_inline_put(struct rsoft_qp *qp, const struct rsoft_rqe *rqe, const struct rsoft_span *to,
		const struct rsoft_span *from, uint64_t length, uint32_t cq_pos,
		unsigned int *side);

/* Whether a message from this lcore is delivered faster if it is copied immediately. */
static inline bool
rsoft_inline_is_slower(const struct rsoft_qp *qp)
{
	const struct rsoft_cq *cq = rsoft_cq_of(qp->qp.recv_cq);
	unsigned int lcore = __atomic_load_n(&cq->inline_lcore, __ATOMIC_RELAXED);

	return qp->inline_recv == RSOFT_INLINE_OWN && lcore != LCORE_ID_ANY &&
			lcore != rte_lcore_id();
}

/* Whether short messages to the QP from this lcore are delivered inline, or one is pending; the
 * latter may change while rq.lock is free. */
static inline bool
rsoft_inline_is_used(const struct rsoft_qp *qp)
{
	return __atomic_load_n(&qp->rq.nb_inline, __ATOMIC_RELAXED) != 0 ||
			(qp->inline_recv != RSOFT_INLINE_NONE && !rsoft_inline_is_slower(qp));
}

/*
 * Deliver all pending messages. True: one was refused, which moved the QP to ERR, and the caller
 * must flush the receives after unlocking. Under rq.lock, from inside of rsoft_grace_enter().
 */
bool rsoft_inline_deliver(struct rsoft_qp *qp);

/* The same for the executor of the peer's send queue, which does not hold rq.lock. */
void rsoft_inline_flush(struct rsoft_qp *qp);

/* Drop all receives, and flush the receives of pending messages; no message is in progress. */
void rsoft_inline_drop(struct rsoft_qp *qp);

/* Deliver the message of the completion at a position, or report its receive as failed. */
void rsoft_inline_take(struct rsoft_cq *cq, uint32_t pos, struct rmem_wc *wc);

#endif /* RSOFT_INLINE_H */
