/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Packets of the responder: READ data, results of atomics, responses without data, and
 * acknowledgements.
 *
 * Replies are sent in the order of the requests, followed by at most one acknowledgement, which
 * covers all preceding packets.
 *
 * Over shared memory, an acknowledgement that no packet has requested is sent later, after the
 * answer of the program; often one that is requested precedes it.
 */

#include "../mem/rsoft_access.h"
#include "../queue/rsoft_resp.h"
#include "rwire.h"
#include "rwire_xrc.h"

void
rwire_reply_schedule(struct rwire_qp *q)
{
	if (q->is_listed)
		return;
	q->is_listed = true;
	TAILQ_INSERT_TAIL(&q->wire->reply_list, q, next);
}

void
rwire_reply_ack(struct rwire_qp *q, uint32_t psn, uint8_t syndrome)
{
	struct rwire_rsp *rsp = &q->rsp;

	rsp->has_ack = true;
	rsp->ack_psn = psn;
	rsp->syndrome = syndrome;
	rwire_reply_schedule(q);
}

void
rwire_reply_dup(struct rwire_qp *q, const struct rwire_reply *reply)
{
	q->rsp.dup_reply = *reply;
	q->rsp.dup_reply.sent = 0;
	q->rsp.has_dup_reply = true;
	rwire_reply_schedule(q);
}

bool
rwire_reply_data(struct rwire_qp *q, const struct rwire_reply *reply, uint8_t *data, uint32_t n)
{
	struct rsoft_span from, to = {.ptr = data, .length = n};
	uint64_t addr = reply->addr + (uint64_t)reply->sent * q->mtu;
	const uint32_t pd = q->qp->pd, need = RSOFT_VALID | RMEM_ACCESS_REMOTE_READ;
	int status;

	if (n == 0)
		return true;
	if (unlikely(reply->is_away)) {
		rwire_xrc_fetched(q, reply, data, n);
		return true;
	}
	/* The SRQ of the current message may have another PD. */
	if (unlikely(q->service == RWIRE_XRC))
		q->qp->pd = reply->pd;
	status = RMEM_WC_SUCCESS;
	if (unlikely(!rsoft_access(q->qp, 0, reply->rkey, addr, n, need, &from))) {
		q->rsp.vendor_err = rsoft_access_vendor_err(q->qp, 0, reply->rkey, addr, n, need);
		status = RMEM_WC_REM_ACCESS_ERR;
	}
	if (unlikely(q->service == RWIRE_XRC))
		q->qp->pd = pd;
	if (likely(status == RMEM_WC_SUCCESS))
		status = rsoft_copy_status(
				rsoft_copy_all(&to, &from, n), RSOFT_SIDE_TO, &q->rsp.vendor_err);
	return status == RMEM_WC_SUCCESS;
}

void
rwire_reply_later(struct rwire_qp *q)
{
	struct rwire *wire = q->wire;

	if (q->is_late)
		return;
	q->is_late = true;
	q->late_at = wire->now;
	TAILQ_INSERT_TAIL(&wire->late_list, q, next_late);
}

static void
reply_unlist_late(struct rwire_qp *q)
{
	if (!q->is_late)
		return;
	q->is_late = false;
	TAILQ_REMOVE(&q->wire->late_list, q, next_late);
}

void
rwire_reply_late(struct rwire *wire, uint64_t now)
{
	struct rwire_qp *q;

	/* The difference is also large if the clock was set back. */
	while ((q = TAILQ_FIRST(&wire->late_list)) != NULL &&
			now - q->late_at >= wire->late_cycles) {
		reply_unlist_late(q);
		/* After a pending NAK the peer sends again; an acknowledgement may be older. */
		if (!q->rsp.has_failed &&
				(!q->rsp.has_ack || RWIRE_AETH_KIND(q->rsp.syndrome) == 0))
			rwire_reply_ack(q, q->rsp.done_psn, RWIRE_AETH_ACK);
	}
}

static uint8_t
reply_opcode(const struct rwire_reply *reply)
{
	bool is_last = reply->sent + 1 == reply->nb_psn;

	if (reply->opcode == RWIRE_ATOMIC_WRITE || reply->opcode == RWIRE_FLUSH)
		return RWIRE_READ_RESPONSE_ONLY;
	if (reply->opcode != RWIRE_READ_REQUEST)
		return RWIRE_ATOMIC_ACKNOWLEDGE;
	if (reply->sent == 0)
		return is_last ? RWIRE_READ_RESPONSE_ONLY : RWIRE_READ_RESPONSE_FIRST;
	return is_last ? RWIRE_READ_RESPONSE_LAST : RWIRE_READ_RESPONSE_MIDDLE;
}

/* Send one response. False: the port is full, or the reply has failed. */
static bool
reply_send(struct rwire_qp *q, struct rwire_reply *reply)
{
	struct rwire_pkt pkt = {.opcode = reply_opcode(reply),
			.syndrome = RWIRE_AETH_ACK,
			.msn = q->rsp.msn,
			.psn = rwire_psn_add(reply->psn, reply->sent),
			.swap_add = reply->value};
	struct rwire_frame *frame = rwire_tx_get(q);
	uint64_t done = (uint64_t)reply->sent * q->mtu;

	if (frame == NULL)
		return false;
	if (reply->opcode == RWIRE_READ_REQUEST) {
		pkt.payload_len = (uint32_t)RTE_MIN(reply->length - done, (uint64_t)q->mtu);
		if (!rwire_reply_data(q, reply,
				    frame->bth + rwire_hdr_len(rwire_opcode_info[pkt.opcode]),
				    pkt.payload_len)) {
			reply->has_failed = true;
			return false;
		}
	}
	rwire_tx_put(q, frame, &pkt);
	reply->sent++;
	return true;
}

/* Send the rest of a reply, at most *budget packets. False: some are left. */
static bool
reply_finish(struct rwire_qp *q, struct rwire_reply *reply, uint32_t *budget)
{
	for (; reply->sent != reply->nb_psn; --*budget) {
		if (*budget == 0 || (unlikely(reply->is_away) && !rwire_xrc_fetch(q, reply)) ||
				!reply_send(q, reply))
			break;
	}
	if (reply->sent != reply->nb_psn)
		return false;
	if (unlikely(reply->is_away))
		rwire_xrc_fetch_end(q);
	return true;
}

/* Answer the rest of a reply that has failed with a NAK. */
static void
reply_refuse(struct rwire_rsp *rsp, const struct rwire_reply *reply)
{
	rsp->has_ack = true;
	rsp->syndrome = RWIRE_AETH_NAK_ACC;
	rsp->ack_psn = rwire_psn_add(reply->psn, reply->sent);
}

/*
 * Send the reply to a duplicate; false: a part of it is left. If the first reply has arrived, the
 * memory and its key may change, and the requester drops this data, or this NAK. So the QP does not
 * fail.
 */
static bool
reply_again(struct rwire_qp *q, uint32_t *budget)
{
	struct rwire_rsp *rsp = &q->rsp;

	rsoft_guard_ignore_begin();
	rsp->has_dup_reply =
			!reply_finish(q, &rsp->dup_reply, budget) && !rsp->dup_reply.has_failed;
	rsoft_guard_ignore_end();
	if (rsp->has_dup_reply)
		return false;
	/* A pending acknowledgement precedes a NAK, which the requester can request again. */
	if (rsp->dup_reply.has_failed && !rsp->has_ack)
		reply_refuse(rsp, &rsp->dup_reply);
	return true;
}

static bool
reply_all(struct rwire_qp *q)
{
	/* A long READ must not delay packets of other QPs for long. */
	uint32_t budget = RWIRE_REPLY_BURST;
	struct rwire_rsp *rsp = &q->rsp;

	if (rsp->has_dup_reply && !reply_again(q, &budget))
		return false;
	for (; rsp->reply_head != rsp->reply_tail; rsp->reply_head++) {
		struct rwire_reply *reply = &rsp->reply[rsp->reply_head % RWIRE_MAX_RD_ATOMIC];

		if (!reply_finish(q, reply, &budget)) {
			if (reply->has_failed) {
				rsp->has_failed = true;
				rsp->dup_reply = *reply;
			}
			return false;
		}
		if (reply->opcode == RWIRE_READ_REQUEST)
			rsoft_resp_count(q->qp, RMEM_WR_RDMA_READ, reply->length);
	}
	return true;
}

/* Send an acknowledgement. False: the port is full. */
static bool
reply_put_ack(struct rwire_qp *q, uint32_t psn, uint8_t syndrome, uint32_t msn)
{
	struct rwire_frame *frame = rwire_tx_get(q);

	if (frame == NULL)
		return false;
	frame->len = rwire_ack_put(
			frame->bth, q->service, q->pkey ^ RWIRE_PKEY, q->qpn, psn, syndrome, msn);
	rwire_tx_frame(q->wire, frame);
	return true;
}

static bool
reply_send_ack(struct rwire_qp *q)
{
	struct rwire_rsp *rsp = &q->rsp;

	if (!reply_put_ack(q, rsp->ack_psn, rsp->syndrome, rsp->msn))
		return false;
	rsp->has_ack = false;
	/* Messages after the one that requested it may have been executed. */
	if (rwire_psn_diff(rsp->done_psn, rsp->ack_psn) <= 0)
		reply_unlist_late(q);
	if (RWIRE_AETH_KIND(rsp->syndrome) == RWIRE_AETH_RNR)
		RWIRE_COUNT(q->wire->stats.rnr_sent);
	else if (RWIRE_AETH_KIND(rsp->syndrome) == RWIRE_AETH_KIND_NAK)
		RWIRE_COUNT(q->wire->stats.naks_sent);
	return true;
}

void
rwire_reply_drop(struct rwire_qp *q)
{
	struct rwire_rsp *rsp = &q->rsp;

	rsp->has_dup_reply = false;
	rsp->reply_head = rsp->reply_tail;
	if (unlikely(rsp->fetch != NULL) && !rsp->is_fetching)
		rwire_xrc_fetch_end(q);
}

bool
rwire_reply_ack_now(struct rwire_qp *q, uint32_t psn)
{
	bool is_sent;

	rsoft_lock(&q->wire->tx_lock);
	is_sent = reply_put_ack(q, psn, RWIRE_AETH_ACK, rwire_psn_add(q->rsp.msn, 1));
	q->wire->has_unflushed = true;
	rte_ticketlock_unlock(&q->wire->tx_lock);
	/* It also acknowledges the preceding packets. */
	if (!is_sent)
		return false;
	q->rsp.has_ack = false;
	reply_unlist_late(q);
	return true;
}

void
rwire_reply_end_late(struct rwire_qp *q)
{
	struct rwire_rsp *rsp = &q->rsp;
	bool is_wanted = q->is_late && !rsp->has_failed && !rsp->is_inv_waiting;

	reply_unlist_late(q);
	if (!is_wanted)
		return;
	rsp->ack_psn = rsp->done_psn;
	rsp->syndrome = RWIRE_AETH_ACK;
	rsoft_lock(&q->wire->tx_lock);
	(void)reply_send_ack(q);
	q->wire->port->ops->tx_flush(q->wire->port);
	rte_ticketlock_unlock(&q->wire->tx_lock);
}

/* Send all pending packets, in order. Under tx_lock. */
static bool
reply_flush(struct rwire_qp *q)
{
	struct rwire_rsp *rsp = &q->rsp;

	if (!reply_all(q)) {
		if (!rsp->has_failed)
			return false;
		rwire_reply_drop(q);
		reply_refuse(rsp, &rsp->dup_reply);
	}
	return !rsp->has_ack || reply_send_ack(q);
}

/* The memory of a READ that was accepted is no longer readable. */
static void
reply_fail(struct rwire_qp *q)
{
	const struct rwire_rsp *rsp = &q->rsp;
	const struct rmem_send_wr wr = {.opcode = RMEM_WR_RDMA_READ,
			.rdma.remote_addr = rsp->dup_reply.addr,
			.rdma.rkey = rsp->dup_reply.rkey};

	rwire_resp_note(q, &wr, RMEM_WC_REM_ACCESS_ERR, rsp->vendor_err);
	rsoft_count_remote(q->qp, RMEM_WR_RDMA_READ, false, 0);
	rsoft_rq_fail_event(q->qp, RMEM_ASYNC_QP_ACCESS_ERR);
}

bool
rwire_reply_run(struct rwire_qp *q)
{
	struct rwire_rsp *rsp = &q->rsp;
	bool is_done, had_failed = rsp->has_failed;

	/* A QP in ERR acknowledges what it has executed, and reads no more memory. */
	if (!rsoft_state_is_responding(__atomic_load_n(&q->qp->state, __ATOMIC_ACQUIRE)))
		rwire_reply_drop(q);
	rsoft_lock(&q->wire->tx_lock);
	is_done = reply_flush(q);
	/* Request the dropped packets, instead of waiting for the peer's timer. */
	if (is_done && rsp->has_dropped && !rsp->has_failed && rsp->nb_away + rsp->nb_held == 0) {
		rsp->has_dropped = false;
		rsp->is_nak_sent = true;
		rwire_reply_ack(q, rsp->psn, RWIRE_AETH_NAK_PSN);
		is_done = reply_send_ack(q);
	}
	/* The last QP of the list flushes for all, so that the lock is not taken again. */
	q->wire->has_unflushed = true;
	if (q->is_listed && TAILQ_NEXT(q, next) == NULL) {
		q->wire->has_unflushed = false;
		q->wire->port->ops->tx_flush(q->wire->port);
	}
	rte_ticketlock_unlock(&q->wire->tx_lock);
	q->is_busy = !is_done || rsp->nb_away != 0 || rsp->is_fetching;
	/* The answer of another process schedules it. */
	is_done |= rsp->is_fetching;
	if (!is_done)
		rwire_reply_schedule(q);
	if (rsp->has_failed && !had_failed)
		reply_fail(q);
	return is_done;
}
