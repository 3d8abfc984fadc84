/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Inline receive; see rsoft_inline.h. */

#include "../mem/rsoft_grace.h"
#include "rsoft_error.h"
#include "rsoft_inline.h"
#include "rsoft_rq.h"

bool
rsoft_inline_put(struct rsoft_qp *qp, const struct rsoft_rqe *rqe, const struct rsoft_span *to,
		const struct rsoft_span *from, uint64_t length, uint32_t cq_pos, unsigned int *side)
{
	struct rsoft_span data = {.length = length};
	struct rsoft_rq *rq = &qp->rq;
	struct rsoft_inline *message;

	/* The message must be contiguous, and fit in the first SGE. */
	if (rsoft_inline_is_slower(qp) || length == 0 || length > RSOFT_MAX_INLINE_RECV ||
			to->kind != RSOFT_SPAN_FLAT || rqe->sge[0].length < length)
		return false;
	message = rsoft_cq_message(rsoft_cq_of(qp->qp.recv_cq), cq_pos);
	if (unlikely(message == NULL))
		return false;
	data.ptr = message->data;
	*side = rsoft_copy_all(&data, from, length);
	if (unlikely(*side != RSOFT_SIDE_NONE))
		return false;
	message->addr = rqe->sge[0].addr;
	message->lkey = rqe->sge[0].lkey;
	message->length = (uint32_t)length;
	message->vendor_err = RMEM_VENDOR_ERR_NONE;
	message->is_flushed = 0;
	__atomic_store_n(&message->qp, qp, __ATOMIC_RELEASE);
	if (rq->nb_inline == 0)
		rq->inline_first = cq_pos;
	rq->inline_last = cq_pos;
	__atomic_store_n(&rq->nb_inline, rq->nb_inline + 1, __ATOMIC_RELAXED);
	if (!(qp->access & RSOFT_QP_INLINE))
		__atomic_fetch_or(&qp->access, RSOFT_QP_INLINE, __ATOMIC_RELAXED);
	RSOFT_COUNT(rq->inlined, 1);
	return true;
}

/* The message is no longer pending. */
static void
inline_end(struct rsoft_qp *qp, struct rsoft_inline *message)
{
	__atomic_store_n(&message->qp, NULL, __ATOMIC_RELEASE);
	/* Release after the copy, for rsoft_inline_flush(). */
	__atomic_store_n(&qp->rq.nb_inline, qp->rq.nb_inline - 1, __ATOMIC_RELEASE);
}

/*
 * Copy a message to the memory of its receive. The key was valid for this memory when the message
 * arrived; if it no longer is, the receive fails as if it had never been.
 */
static bool
inline_deliver_one(struct rsoft_qp *qp, struct rsoft_inline *message)
{
	const struct rsoft_span from = {.ptr = message->data, .length = message->length};
	const struct rsoft_qp *owner = rsoft_rq_owner(qp);
	struct rsoft_span to;
	bool is_first = false;

	if (unlikely(!rsoft_access(owner, owner->dev->lkey_xor, message->lkey, message->addr,
			    message->length, RSOFT_NEED_WRITE, &to))) {
		message->vendor_err = rsoft_access_vendor_err(owner, owner->dev->lkey_xor,
				message->lkey, message->addr, message->length, RSOFT_NEED_WRITE);
		if (message->vendor_err == RMEM_VENDOR_ERR_NONE) /* the key has changed */
			message->vendor_err = RMEM_VENDOR_ERR_KEY_STATE;
	} else if (unlikely(rsoft_copy_all(&to, &from, message->length) != RSOFT_SIDE_NONE)) {
		message->vendor_err = RMEM_VENDOR_ERR_PAGE_FAULT;
		RSOFT_COUNT(qp->rq.faults, 1);
	}
	if (unlikely(message->vendor_err != RMEM_VENDOR_ERR_NONE)) {
		const struct rmem_sge sge = {message->addr, message->length, message->lkey};

		rsoft_error_recv(qp, &sge, 1, 0, RMEM_WC_LOC_PROT_ERR, message->vendor_err, 0);
		is_first = rsoft_qp_to_err(qp);
	}
	inline_end(qp, message);
	return is_first;
}

/* Entry of the next pending message from a position of the CQ on; there is one. */
static struct rsoft_inline *
inline_next(const struct rsoft_qp *qp, uint32_t *pos)
{
	struct rsoft_cq *cq = rsoft_cq_of(qp->qp.recv_cq);
	struct rsoft_inline *messages = __atomic_load_n(&cq->messages, __ATOMIC_ACQUIRE);
	struct rsoft_inline *message;

	do {
		message = &messages[(*pos)++ & (cq->nb_messages - 1)];
	} while (__atomic_load_n(&message->qp, __ATOMIC_RELAXED) != qp);
	return message;
}

/* Position of the CQ before which no message is pending. */
static uint32_t
inline_first(const struct rsoft_qp *qp)
{
	const struct rsoft_cq *cq = rsoft_cq_of(qp->qp.recv_cq);
	uint32_t cons = __atomic_load_n(&cq->cons, __ATOMIC_ACQUIRE);
	uint32_t first = qp->rq.inline_first;

	/* Polled positions may be any number of completions back. */
	return first - cons < cq->nb_messages ? first : cons;
}

bool
rsoft_inline_deliver(struct rsoft_qp *qp)
{
	uint32_t pos = inline_first(qp);
	bool is_first = false;

	while (qp->rq.nb_inline != 0)
		is_first |= inline_deliver_one(qp, inline_next(qp, &pos));
	return is_first;
}

void
rsoft_inline_flush(struct rsoft_qp *qp)
{
	bool is_first;

	__atomic_fetch_and(&qp->access, ~RSOFT_QP_INLINE, __ATOMIC_RELAXED);
	if (__atomic_load_n(&qp->rq.nb_inline, __ATOMIC_ACQUIRE) == 0)
		return;
	rte_ticketlock_lock(&qp->rq.lock);
	is_first = rsoft_inline_deliver(qp);
	rte_ticketlock_unlock(&qp->rq.lock);
	if (unlikely(is_first))
		rsoft_rq_flush(qp);
}

void
rsoft_inline_drop(struct rsoft_qp *qp)
{
	struct rsoft_inline *message;
	uint32_t pos;

	rte_ticketlock_lock(&qp->rq.lock);
	rsoft_rq_drop(qp);
	/* An XRC_RECV QP has no CQ, and so no messages. */
	pos = qp->rq.nb_inline != 0 ? inline_first(qp) : 0;
	__atomic_fetch_and(&qp->access, ~RSOFT_QP_INLINE, __ATOMIC_RELAXED);
	while (qp->rq.nb_inline != 0) {
		message = inline_next(qp, &pos);
		message->is_flushed = 1;
		inline_end(qp, message);
	}
	rte_ticketlock_unlock(&qp->rq.lock);
}

void
rsoft_inline_take(struct rsoft_cq *cq, uint32_t pos, struct rmem_wc *wc)
{
	struct rsoft_inline *message = &cq->messages[pos & (cq->nb_messages - 1)];
	unsigned int lcore = rsoft_grace_enter();
	struct rsoft_qp *qp = __atomic_load_n(&message->qp, __ATOMIC_ACQUIRE);
	bool is_first = false;

	__atomic_store_n(&cq->inline_lcore, rte_lcore_id(), __ATOMIC_RELAXED);
	/* The QP can't be freed before this lcore leaves. */
	if (likely(qp != NULL)) {
		rte_ticketlock_lock(&qp->rq.lock);
		if (likely(message->qp != NULL))
			is_first = inline_deliver_one(qp, message);
		rte_ticketlock_unlock(&qp->rq.lock);
		if (unlikely(is_first))
			rsoft_rq_flush(qp);
	}
	rsoft_grace_leave(lcore);
	wc->flags &= (uint16_t)~RSOFT_WC_INLINE;
	if (likely(message->vendor_err == RMEM_VENDOR_ERR_NONE && !message->is_flushed))
		return;
	wc->status = message->is_flushed ? RMEM_WC_WR_FLUSH_ERR : RMEM_WC_LOC_PROT_ERR;
	wc->vendor_err = message->vendor_err;
	rmem_wc_trace_error(cq->cq.obj.dev_id, wc->qp_num, wc->wr_id, wc->status, wc->vendor_err);
}
