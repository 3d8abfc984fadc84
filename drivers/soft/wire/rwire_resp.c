/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The responder: executes each request of the peer once, in the order of PSNs.
 *
 * The key is checked for every packet. While a reply waits for the port, or a SEND_WITH_INV for its
 * grace period, no later request may be executed: requests are dropped, and requested again
 * afterwards.
 */

#include "../mem/rsoft_access.h"
#include "../queue/rsoft_error.h"
#include "../mem/rsoft_grace.h"
#include "../mem/rsoft_key.h"
#include "../queue/rsoft_rq.h"
#include "../queue/rsoft_resp.h"
#include "../queue/rsoft_xrc.h"
#include "rwire.h"
#include "rwire_xrc.h"

/* Build the completion of the receive that a message consumes. */
static void
resp_cqe(const struct rwire_qp *q, const struct rsoft_rqe *rqe, const struct rwire_pkt *pkt,
		uint8_t status, uint32_t vendor_err, struct rsoft_cqe *cqe)
{
	bool is_write = (pkt->info & RWIRE_IS_WRITE) != 0;
	uint16_t flags = pkt->is_solicited ? RMEM_WC_SOLICITED : 0;
	uint64_t length = q->rsp.done + pkt->payload_len;

	if (pkt->info & RWIRE_HAS_IMM)
		flags |= RMEM_WC_WITH_IMM;
	if (pkt->info & RWIRE_HAS_INV)
		flags |= RMEM_WC_WITH_INV;
	cqe->wr_id = rqe->wr_id;
	cqe->info = rsoft_cqe_info(status, is_write ? RMEM_WC_RECV_RDMA_WITH_IMM : RMEM_WC_RECV,
			flags, q->qp->qp.qp_num);
	cqe->data = rsoft_cqe_data((uint32_t)length, pkt->imm);
	cqe->vendor_err = vendor_err;
}

/* Complete the receive at the head, and unlock. A failed receive moves the QP to ERR first. */
static void
resp_complete(struct rwire_qp *q, const struct rsoft_cqe *cqe, bool is_failed)
{
	struct rsoft_qp *qp = q->qp;
	bool is_first = false;

	if (is_failed) {
		uint8_t status = (uint8_t)(cqe->info >> RSOFT_WC_SHIFT(status));
		const struct rsoft_rqe *rqe = rsoft_rq_head(&qp->rq);

		rmem_wc_trace_error(qp->qp.obj.dev_id, qp->qp.qp_num, cqe->wr_id, status,
				cqe->vendor_err);
		rsoft_error_recv(qp, rqe->sge, rqe->num_sge, cqe->wr_id, status, cqe->vendor_err,
				status == RMEM_WC_REM_INV_REQ_ERR ? RWIRE_CQE_RKEY(cqe) : 0);
		if (cqe->vendor_err == RMEM_VENDOR_ERR_PAGE_FAULT)
			RSOFT_COUNT(qp->rq.faults, 1);
		is_first = rsoft_qp_to_err(qp);
	}
	RSOFT_COUNT(qp->rq.consumed, 1);
	rsoft_rq_complete(qp, rsoft_rq_reserve(qp), cqe);
	rte_ticketlock_unlock(&qp->rq.lock);
	if (is_first)
		rsoft_rq_flush(qp);
}

/* Whether the peer may wait for an acknowledgement of this packet, or of those before it. */
static bool
resp_owes_ack(const struct rwire_qp *q, const struct rwire_pkt *pkt)
{
	return pkt->is_ack_req || (q->rsp.has_ack && RWIRE_AETH_KIND(q->rsp.syndrome) == 0);
}

/*
 * Complete the receive of a message, and unlock. If it generates an event, the message and those
 * before it are acknowledged first: a program woken by the event answers concurrently, and its peer
 * must get the completions of its requests, with their events, before those of the answer. Programs
 * with one channel for both CQs (perftest) rely on this order.
 */
static int
resp_succeed(struct rwire_qp *q, const struct rsoft_rqe *rqe, const struct rwire_pkt *pkt)
{
	struct rsoft_cqe cqe = {0};

	resp_cqe(q, rqe, pkt, RMEM_WC_SUCCESS, 0, &cqe);
	if (resp_owes_ack(q, pkt) && rwire_service_is_reliable(q->service) &&
			q->qp->qp.recv_cq->channel != NULL)
		q->rsp.is_acked = rwire_reply_ack_now(
				q, rwire_psn_add(pkt->psn, rwire_pkt_nb_psn(q, pkt) - 1));
	resp_complete(q, &cqe, false);
	return RMEM_WC_SUCCESS;
}

/* Lock the receive queue if it has a receive; return an enum rmem_wc_status or rsoft_wait. */
static int
resp_take(struct rwire_qp *q, uint64_t length, struct rsoft_rqe **rqe)
{
	struct rsoft_qp *qp = q->qp;

	rte_ticketlock_lock(&qp->rq.lock);
	*rqe = NULL;
	/* Checked under the lock: after a flush, no receive may be consumed. */
	if (rsoft_state_is_responding(__atomic_load_n(&qp->state, __ATOMIC_ACQUIRE))) {
		/* A packet in the middle of a message gets no RNR NAK (IBTA 9.7.5.2.8). */
		*rqe = rsoft_rq_take(qp, q->rsp.done != 0 ? RSOFT_RQ_CONTINUED : length);
		if (*rqe != NULL)
			return RMEM_WC_SUCCESS;
		rte_ticketlock_unlock(&qp->rq.lock);
		return RSOFT_WAIT_RNR;
	}
	rte_ticketlock_unlock(&qp->rq.lock);
	return RSOFT_WAIT_PEER;
}

/* The peer unmapped a shared payload: handle the packet as lost. */
static int
resp_lose(struct rwire_qp *q)
{
	RWIRE_COUNT(q->wire->stats.malformed);
	return RSOFT_WAIT_PEER;
}

/* Copy the payload of a packet to a receive; return the status of the receive, or
 * RSOFT_WAIT_PEER. */
static int
resp_place(struct rwire_qp *q, const struct rsoft_rqe *rqe, const struct rwire_pkt *pkt,
		uint32_t *vendor_err)
{
	struct rsoft_span to[RSOFT_MAX_SGE];
	struct rsoft_span from = {.ptr = pkt->payload, .length = pkt->payload_len};
	struct rmem_sge sge[RSOFT_MAX_SGE];
	unsigned int side;
	uint64_t total;
	uint32_t nb;

	if (pkt->payload_len == 0)
		return RMEM_WC_SUCCESS;
	nb = rwire_sge_trim(rqe->sge, rqe->num_sge, q->rsp.done, pkt->payload_len, sge);
	if (nb == 0 || q->rsp.done + pkt->payload_len > q->qp->max_msg_size) {
		*vendor_err = RMEM_VENDOR_ERR_RECV_SIZE;
		return RMEM_WC_LOC_LEN_ERR;
	}
	if (!rsoft_access_sges(rsoft_rq_owner(q->qp), sge, nb, RSOFT_NEED_WRITE, pkt->payload_len,
			    to, &total, vendor_err))
		return RMEM_WC_LOC_PROT_ERR;
	side = rsoft_copy_all(to, &from, pkt->payload_len);
	if (side == RSOFT_SIDE_NONE)
		return RMEM_WC_SUCCESS;
	if (side == RSOFT_SIDE_FROM)
		return resp_lose(q);
	*vendor_err = RMEM_VENDOR_ERR_PAGE_FAULT;
	return RMEM_WC_LOC_PROT_ERR;
}

/* End the grace period of a SEND_WITH_INV. False: the receive was flushed. */
static bool
resp_inv_end(struct rwire_qp *q)
{
	struct rsoft_rqe *rqe;

	rsoft_key_release(q->rsp.inv_key);
	q->rsp.is_inv_waiting = false;
	if (resp_take(q, 0, &rqe) != RMEM_WC_SUCCESS)
		return false; /* the peer gets no acknowledgement */
	resp_complete(q, &q->rsp.inv_cqe, false);
	return true;
}

/* Invalidate the key of a SEND_WITH_INV, and complete the receive after a grace period. */
static int
resp_send_inv(struct rwire_qp *q, unsigned int lcore, const struct rsoft_rqe *rqe,
		const struct rwire_pkt *pkt)
{
	struct rwire_rsp *rsp = &q->rsp;

	rsp->inv_key = rsoft_key_invalidate(q->qp, pkt->imm, NULL);
	if (rsp->inv_key == NULL) {
		rsoft_resp_note_rkey(q->qp, pkt->imm, RMEM_VENDOR_ERR_KEY_STATE);
		/* IBTA class J: the data arrived, only the receive fails. */
		resp_cqe(q, rqe, pkt, RMEM_WC_REM_INV_REQ_ERR,
				rsoft_key_inv_vendor_err(q->qp, pkt->imm), &rsp->inv_cqe);
		resp_complete(q, &rsp->inv_cqe, true);
		return RMEM_WC_SUCCESS;
	}
	resp_cqe(q, rqe, pkt, RMEM_WC_SUCCESS, 0, &rsp->inv_cqe);
	rte_ticketlock_unlock(&q->qp->rq.lock);
	if (!rsoft_grace_start(lcore, &rsp->inv_token)) {
		rsp->is_inv_waiting = true;
		return RSOFT_WAIT_GRACE;
	}
	return resp_inv_end(q) ? RMEM_WC_SUCCESS : RSOFT_WAIT_PEER;
}

static int
resp_send(struct rwire_qp *q, unsigned int lcore, const struct rwire_pkt *pkt)
{
	struct rsoft_cqe cqe = {0};
	struct rsoft_rqe *rqe;
	uint32_t vendor_err = 0;
	int status;

	status = resp_take(q, pkt->payload_len, &rqe);
	if (status != RMEM_WC_SUCCESS)
		return status;
	status = resp_place(q, rqe, pkt, &vendor_err);
	/* An unreliable service drops a message that is too long (IBTA 9.8.3). */
	if (status == RSOFT_WAIT_PEER ||
			(status == RMEM_WC_LOC_LEN_ERR && !rwire_service_is_reliable(q->service))) {
		rsoft_rq_keep(q->qp);
		rte_ticketlock_unlock(&q->qp->rq.lock);
		return status;
	}
	if (status != RMEM_WC_SUCCESS) {
		resp_cqe(q, rqe, pkt, (uint8_t)status, vendor_err, &cqe);
		resp_complete(q, &cqe, true);
		return status == RMEM_WC_LOC_LEN_ERR ? RMEM_WC_REM_INV_REQ_ERR : RMEM_WC_REM_OP_ERR;
	}
	if ((pkt->info & RWIRE_IS_LAST) == 0) {
		rte_ticketlock_unlock(&q->qp->rq.lock);
		return RMEM_WC_SUCCESS;
	}
	if (pkt->info & RWIRE_HAS_INV)
		return resp_send_inv(q, lcore, rqe, pkt);
	return resp_succeed(q, rqe, pkt);
}

/* Translate a remote range; return an enum rmem_wc_status or rsoft_wait. */
static int
resp_open(struct rwire_qp *q, uint32_t right, uint64_t addr, uint32_t rkey, uint64_t n,
		struct rsoft_span *span)
{
	return rsoft_resp_open(q->qp, right, addr, rkey, n, span, &q->rsp.vendor_err);
}

/* Check the RETH of a WRITE: its whole range, before the first byte is placed. */
static int
resp_write_begin(struct rwire_qp *q, const struct rwire_pkt *pkt)
{
	struct rwire_rsp *rsp = &q->rsp;
	struct rsoft_span span;
	bool is_only = (pkt->info & RWIRE_IS_LAST) != 0;

	if (pkt->dma_len > q->qp->max_msg_size ||
			(is_only ? pkt->dma_len != pkt->payload_len
				 : pkt->dma_len <= pkt->payload_len))
		return RMEM_WC_REM_INV_REQ_ERR;
	rsp->addr = pkt->addr;
	rsp->rkey = pkt->rkey;
	rsp->left = pkt->dma_len;
	return resp_open(q, RMEM_ACCESS_REMOTE_WRITE, pkt->addr, pkt->rkey, pkt->dma_len, &span);
}

/* Place the payload of one packet of a WRITE. */
static int
resp_write_place(struct rwire_qp *q, const struct rwire_pkt *pkt)
{
	struct rsoft_span from = {.ptr = pkt->payload, .length = pkt->payload_len};
	struct rwire_rsp *rsp = &q->rsp;
	struct rsoft_span to;
	unsigned int side;
	int status;

	status = resp_open(
			q, RMEM_ACCESS_REMOTE_WRITE, rsp->addr, rsp->rkey, pkt->payload_len, &to);
	if (status != RMEM_WC_SUCCESS || pkt->payload_len == 0)
		return status;
	side = rsoft_copy_all(&to, &from, pkt->payload_len);
	if (side == RSOFT_SIDE_FROM)
		return resp_lose(q);
	status = rsoft_copy_status(side, RSOFT_SIDE_FROM, &rsp->vendor_err);
	if (status != RMEM_WC_SUCCESS)
		return status;
	if (to.kind != RSOFT_SPAN_FLAT && (pkt->info & RWIRE_IS_LAST))
		rsoft_access_count(&to);
	rsp->addr += pkt->payload_len;
	rsp->left -= pkt->payload_len;
	return RMEM_WC_SUCCESS;
}

/* The last packet of a WRITE was placed. */
static void
resp_count_write(const struct rwire_qp *q, const struct rwire_pkt *pkt)
{
	if (pkt->info & RWIRE_IS_LAST)
		rsoft_resp_count(q->qp, RMEM_WR_RDMA_WRITE, q->rsp.done + pkt->payload_len);
}

static int
resp_write(struct rwire_qp *q, const struct rwire_pkt *pkt)
{
	struct rsoft_rqe *rqe;
	int status = RMEM_WC_SUCCESS;

	if (pkt->info & RWIRE_IS_FIRST)
		status = resp_write_begin(q, pkt);
	else if ((pkt->info & RWIRE_IS_LAST) ? q->rsp.left != pkt->payload_len
					     : q->rsp.left <= pkt->payload_len)
		status = RMEM_WC_REM_INV_REQ_ERR;
	if (status != RMEM_WC_SUCCESS)
		return status;
	if ((pkt->info & RWIRE_HAS_IMM) == 0) {
		status = resp_write_place(q, pkt);
		if (status == RMEM_WC_SUCCESS)
			resp_count_write(q, pkt);
		return status;
	}
	status = resp_take(q, 0, &rqe);
	if (status != RMEM_WC_SUCCESS)
		return status;
	status = resp_write_place(q, pkt);
	if (status != RMEM_WC_SUCCESS) {
		rte_ticketlock_unlock(&q->qp->rq.lock);
		return status;
	}
	resp_count_write(q, pkt);
	return resp_succeed(q, rqe, pkt);
}

/* Queue a reply. An entry is free, because the ring is empty while requests are executed. */
static struct rwire_reply *
resp_reply(struct rwire_qp *q, const struct rwire_pkt *pkt, uint32_t nb_psn)
{
	struct rwire_reply *reply = &q->rsp.reply[q->rsp.reply_tail++ % RWIRE_MAX_RD_ATOMIC];

	memset(reply, 0, sizeof(*reply));
	reply->opcode = pkt->opcode;
	reply->psn = pkt->psn;
	reply->nb_psn = nb_psn;
	reply->rkey = pkt->rkey;
	reply->length = pkt->dma_len;
	reply->pd = q->qp->pd;
	reply->addr = pkt->addr;
	return reply;
}

static int
resp_read(struct rwire_qp *q, const struct rwire_pkt *pkt)
{
	struct rsoft_span span;
	int status;

	if (pkt->dma_len > q->qp->max_msg_size)
		return RMEM_WC_REM_INV_REQ_ERR;
	status = resp_open(q, RMEM_ACCESS_REMOTE_READ, pkt->addr, pkt->rkey, pkt->dma_len, &span);
	if (status == RMEM_WC_SUCCESS)
		resp_reply(q, pkt, rwire_nb_pkts(pkt->dma_len, q->mtu));
	return status;
}

static int
resp_atomic(struct rwire_qp *q, const struct rwire_pkt *pkt)
{
	bool is_add = pkt->opcode == RWIRE_FETCH_ADD;
	const struct rmem_send_wr wr = {
			.opcode = is_add ? RMEM_WR_ATOMIC_FETCH_AND_ADD
					 : RMEM_WR_ATOMIC_CMP_AND_SWP,
			.atomic.remote_addr = pkt->addr,
			.atomic.rkey = pkt->rkey,
			.atomic.compare_add = is_add ? pkt->swap_add : pkt->compare,
			.atomic.swap = pkt->swap_add,
	};
	struct rsoft_span span;
	uint64_t before = 0;
	int status;

	status = rsoft_resp_atomic_open(q->qp, &wr, &span, &q->rsp.vendor_err);
	if (status == RMEM_WC_SUCCESS)
		status = rsoft_resp_atomic(&wr, &span, &before, &q->rsp.vendor_err);
	if (status != RMEM_WC_SUCCESS)
		return status;
	resp_reply(q, pkt, 1)->value = before;
	return RMEM_WC_SUCCESS;
}

static int
resp_atomic_write(struct rwire_qp *q, const struct rwire_pkt *pkt)
{
	const struct rmem_send_wr wr = {.opcode = RMEM_WR_ATOMIC_WRITE,
			.rdma.remote_addr = pkt->addr,
			.rdma.rkey = pkt->rkey};
	uint64_t value;
	int status;

	if (!rwire_pkt_is_word(pkt))
		return RMEM_WC_REM_INV_REQ_ERR;
	memcpy(&value, pkt->payload, sizeof(value));
	status = rsoft_resp_atomic_write(q->qp, &wr, value, &q->rsp.vendor_err);
	if (status == RMEM_WC_SUCCESS)
		resp_reply(q, pkt, 1);
	return status;
}

static int
resp_flush(struct rwire_qp *q, const struct rwire_pkt *pkt)
{
	const struct rmem_send_wr wr = {.opcode = RMEM_WR_FLUSH,
			.flush.remote_addr = pkt->addr,
			.flush.rkey = pkt->rkey,
			.flush.length = pkt->dma_len,
			.flush.type = pkt->type,
			.flush.level = pkt->level};
	int status;

	if (!rmem_wr_objs_fit(&q->qp->qp, &wr))
		return RMEM_WC_REM_INV_REQ_ERR;
	status = rsoft_resp_flush(q->qp, &wr, &q->rsp.vendor_err);
	if (status == RMEM_WC_SUCCESS)
		resp_reply(q, pkt, 1);
	return status;
}

/* Whether the packet continues its message, or starts one, and has a length that its opcode
 * allows. */
static bool
resp_is_in_order(const struct rwire_qp *q, const struct rwire_pkt *pkt)
{
	uint8_t message = pkt->info & (RWIRE_IS_SEND | RWIRE_IS_WRITE);

	if (pkt->info & RWIRE_IS_FIRST) {
		if (q->rsp.message != 0)
			return false;
	} else if (q->rsp.message != message) {
		return false;
	}
	if (message == 0)
		return true;
	if ((pkt->info & RWIRE_IS_LAST) == 0)
		return pkt->is_shared ? pkt->payload_len % q->mtu == 0 : pkt->payload_len == q->mtu;
	return (pkt->payload_len <= q->mtu || pkt->is_shared) &&
			((pkt->info & RWIRE_IS_FIRST) != 0 || pkt->payload_len != 0);
}

/* Whether the SRQ of a request may be one of another process, which executes it. */
static bool
resp_may_forward(const struct rwire_qp *q, const struct rwire_pkt *pkt)
{
	return rsoft_xrc_is_shared(q->qp) &&
			(pkt->opcode != RWIRE_READ_REQUEST || pkt->dma_len <= q->qp->max_msg_size);
}

static int
resp_exec(struct rwire_qp *q, unsigned int lcore, const struct rwire_pkt *pkt)
{
	struct rwire_rsp *rsp = &q->rsp;

	rsp->vendor_err = RMEM_VENDOR_ERR_NONE;
	if (unlikely(q->service == RWIRE_XRC)) {
		if (rsp->message == 0)
			rsp->is_away = !rsoft_xrc_select(q->qp, pkt->srqn);
		else if (!rsp->is_away && !rsoft_xrc_select(q->qp, pkt->srqn))
			return RMEM_WC_REM_INV_REQ_ERR;
		if (rsp->is_away && !resp_may_forward(q, pkt))
			return RMEM_WC_REM_INV_REQ_ERR;
	}
	if (!resp_is_in_order(q, pkt))
		return RMEM_WC_REM_INV_REQ_ERR;
	if (pkt->info & RWIRE_IS_FIRST)
		rsp->done = 0;
	if (unlikely(rsp->is_away))
		return rwire_xrc_forward(q, pkt);
	if (pkt->info & RWIRE_IS_SEND)
		return resp_send(q, lcore, pkt);
	if (pkt->info & RWIRE_IS_WRITE)
		return resp_write(q, pkt);
	switch (pkt->opcode) {
	case RWIRE_READ_REQUEST:
		return resp_read(q, pkt);
	case RWIRE_ATOMIC_WRITE:
		return resp_atomic_write(q, pkt);
	case RWIRE_FLUSH:
		return resp_flush(q, pkt);
	default:
		return resp_atomic(q, pkt);
	}
}

/* The packet was executed: expect the next one. */
static void
resp_advance(struct rwire_qp *q, const struct rwire_pkt *pkt)
{
	struct rwire_rsp *rsp = &q->rsp;

	rsp->psn = rwire_psn_add(rsp->psn, rwire_pkt_nb_psn(q, pkt));
	if (pkt->info & RWIRE_IS_MESSAGE)
		rsp->done_psn = rwire_psn_add(rsp->psn, RWIRE_PSN_MASK);
	rsp->is_nak_sent = false;
	rsp->done += pkt->payload_len;
	rsp->message = 0;
	if (pkt->info & RWIRE_IS_LAST)
		rsp->msn = rwire_psn_add(rsp->msn, 1);
	else
		rsp->message = pkt->info & (RWIRE_IS_SEND | RWIRE_IS_WRITE);
}

/* Count a message that an unreliable service drops. */
static void
resp_count_drop(struct rwire_stats *stats, int status)
{
	switch (status) {
	case RSOFT_WAIT_RNR:
		RWIRE_COUNT(stats->drop_no_recv);
		break;
	case RMEM_WC_LOC_LEN_ERR:
		RWIRE_COUNT(stats->drop_length);
		break;
	case RSOFT_WAIT_PEER:
		break;
	default:
		RWIRE_COUNT(stats->drop_access);
		break;
	}
}

/*
 * Handle a UC packet (IBTA 9.8.2). A packet out of order ends the current message; then all packets
 * are dropped until the first packet of a message. A partly filled receive stays posted.
 */
static void
resp_unreliable(struct rwire_qp *q, unsigned int lcore, const struct rwire_pkt *pkt)
{
	struct rwire_rsp *rsp = &q->rsp;
	int status;

	if (pkt->psn != rsp->psn) {
		RWIRE_COUNT(q->wire->stats.gaps);
		rsp->message = 0;
		rsoft_rq_abandon(q->qp);
		rsp->psn = pkt->psn;
	}
	if (pkt->info & RWIRE_IS_FIRST) {
		if (rsp->message != 0)
			rsoft_rq_abandon(q->qp);
		rsp->message = 0;
	} else if (rsp->message == 0) {
		rsp->psn = rwire_psn_add(pkt->psn, 1);
		return;
	}
	status = resp_exec(q, lcore, pkt);
	resp_advance(q, pkt);
	if (status == RMEM_WC_SUCCESS)
		return;
	rsp->message = 0;
	rsoft_rq_abandon(q->qp);
	resp_count_drop(&q->wire->stats, status);
}

/* Syndrome of the NAK for a failed request. */
static uint8_t
resp_syndrome(int status)
{
	switch (status) {
	case RMEM_WC_REM_INV_REQ_ERR:
		return RWIRE_AETH_NAK_INV;
	case RMEM_WC_REM_OP_ERR:
		return RWIRE_AETH_NAK_OP;
	default:
		return RWIRE_AETH_NAK_ACC;
	}
}

/* Refuse a request, for a reason that is recorded. */
static void
resp_refuse(struct rwire_qp *q, const struct rwire_pkt *pkt, int status, uint32_t vendor_err)
{
	q->rsp.has_failed = true;
	rsoft_count_remote(q->qp, rwire_resp_opcode(pkt), false, 0);
	rwire_reply_ack(q, pkt->psn, resp_syndrome(status));
	if (status == RMEM_WC_REM_ACCESS_ERR && (pkt->info & RWIRE_HAS_IMM) && !q->rsp.is_away)
		rsoft_resp_fail_imm(q->qp, vendor_err);
	else
		rsoft_resp_fail(q->qp, status);
}

/* Acknowledge a message, at once if the peer requests it. */
static void
resp_acknowledge(struct rwire_qp *q, const struct rwire_pkt *pkt)
{
	if (pkt->is_ack_req)
		rwire_reply_ack(q, q->rsp.done_psn, RWIRE_AETH_ACK);
	else if ((pkt->info & RWIRE_IS_LAST) && (!pkt->has_icrc || rwire_is_lossless(q->wire)))
		rwire_reply_later(q);
}

/* Answer a request that was executed or not, except for one that is refused. */
static void
resp_answer(struct rwire_qp *q, const struct rwire_pkt *pkt, int status)
{
	struct rwire_rsp *rsp = &q->rsp;

	switch (status) {
	case RMEM_WC_SUCCESS:
	case RSOFT_WAIT_GRACE:
		resp_advance(q, pkt);
		if ((pkt->info & RWIRE_IS_MESSAGE) && !rsp->is_acked)
			resp_acknowledge(q, pkt);
		break;
	case RSOFT_WAIT_RNR:
		/* The peer sends the request again, so the packets after it need no NAK. */
		rsp->is_nak_sent = true;
		rwire_reply_ack(q, pkt->psn, RWIRE_AETH_RNR | (q->qp->conn.min_rnr_timer & 0x1f));
		break;
	case RSOFT_WAIT_AWAY:
		q->is_busy = true;
		rsp->nb_away = rwire_pkt_nb_psn(q, pkt);
		break;
	default:
		break;
	}
}

void
rwire_resp_pkt(struct rwire_qp *q, unsigned int lcore, const struct rwire_pkt *pkt)
{
	struct rwire_rsp *rsp = &q->rsp;
	int32_t ahead = rwire_psn_diff(pkt->psn, rsp->psn);
	int status;

	if (unlikely(!rwire_service_is_reliable(q->service))) {
		resp_unreliable(q, lcore, pkt);
		return;
	}
	if (q->is_busy) {
		RWIRE_COUNT(q->wire->stats.busy_drops);
		/* Those that wait for an answer, or are held until then, may arrive again. */
		rsp->has_dropped |= ahead >= (int32_t)(rsp->nb_away + rsp->nb_held);
		return;
	}
	if (ahead < 0) {
		rwire_resp_duplicate(q, pkt);
		return;
	}
	if (ahead > 0) {
		RWIRE_COUNT(q->wire->stats.gaps);
		if (!rsp->is_nak_sent)
			rwire_reply_ack(q, rsp->psn, RWIRE_AETH_NAK_PSN);
		rsp->is_nak_sent = true;
		return;
	}
	rsp->is_acked = false;
	status = resp_exec(q, lcore, pkt);
	if (unlikely(status > RMEM_WC_SUCCESS))
		resp_refuse(q, pkt, status, rwire_resp_note_error(q, pkt, status));
	else
		resp_answer(q, pkt, status);
}

bool
rwire_resp_run(struct rwire_qp *q, unsigned int lcore)
{
	struct rwire_rsp *rsp = &q->rsp;

	if (rsp->is_inv_waiting) {
		if (!rsoft_grace_over(lcore, rsp->inv_token)) {
			q->is_busy = true;
			rwire_reply_schedule(q);
			return false;
		}
		if (!resp_inv_end(q))
			rsp->has_ack = false;
	}
	return rwire_reply_run(q);
}

/* Queue the reply to a request that is no message, and that another process has executed. */
static void
resp_reply_away(struct rwire_qp *q, const struct rwire_pkt *pkt)
{
	struct rwire_reply *reply = resp_reply(q, pkt, rwire_pkt_nb_psn(q, pkt));

	reply->is_away = pkt->opcode == RWIRE_READ_REQUEST;
	reply->srqn = pkt->srqn;
	q->rsp.fetch = q->rsp.away;
	if (reply->is_away)
		return;
	if (pkt->info & RWIRE_HAS_ATOMIC)
		rwire_xrc_fetched(q, reply, (uint8_t *)&reply->value, sizeof(reply->value));
	rwire_xrc_fetch_end(q);
}

void
rwire_resp_answered(
		struct rwire_qp *q, const struct rwire_pkt *pkt, int status, uint32_t vendor_err)
{
	struct rwire_rsp *rsp = &q->rsp;
	const struct rmem_send_wr wr = {.opcode = rwire_resp_opcode(pkt)};

	rsp->nb_away = 0;
	rsp->is_acked = false;
	/* Clear the wait, and request the packets that were dropped. */
	rwire_reply_schedule(q);
	if (status > RMEM_WC_SUCCESS) {
		rsoft_error_peer(q->qp, &wr, status, vendor_err);
		resp_refuse(q, pkt, status, vendor_err);
	} else {
		if (status == RMEM_WC_SUCCESS && (pkt->info & RWIRE_IS_MESSAGE) == 0)
			resp_reply_away(q, pkt);
		resp_answer(q, pkt, status);
	}
	if (rsp->message == 0)
		rsp->away = NULL;
}

void
rwire_resp_fetched(struct rwire_qp *q, int status, uint32_t vendor_err)
{
	const struct rmem_send_wr wr = {.opcode = RMEM_WR_RDMA_READ};
	struct rwire_rsp *rsp = &q->rsp;
	const struct rwire_reply *reply = &rsp->reply[rsp->reply_head % RWIRE_MAX_RD_ATOMIC];
	const struct rwire_pkt pkt = {.opcode = RWIRE_READ_REQUEST,
			.psn = rwire_psn_add(reply->psn, reply->sent)};
	bool is_first = rsp->reply_head != rsp->reply_tail;

	rsp->is_fetching = false;
	rwire_reply_schedule(q);
	if (status == RMEM_WC_SUCCESS && (is_first || rsp->has_dup_reply))
		return;
	/* A duplicate that fails has no effect. */
	rwire_reply_drop(q);
	if (!is_first)
		return;
	status = status < 0 ? RMEM_WC_REM_OP_ERR : status;
	rsoft_error_peer(q->qp, &wr, status, vendor_err);
	resp_refuse(q, &pkt, status, vendor_err);
}

int
rwire_resp_serve(struct rwire_qp *q, unsigned int lcore, const struct rwire_pkt *pkt,
		uint32_t *vendor_err, struct rwire_reply *reply)
{
	int status = resp_exec(q, lcore, pkt);

	if (status == RMEM_WC_SUCCESS || status == RSOFT_WAIT_GRACE)
		resp_advance(q, pkt);
	if (q->rsp.reply_head != q->rsp.reply_tail)
		*reply = q->rsp.reply[q->rsp.reply_head++ % RWIRE_MAX_RD_ATOMIC];
	if (status <= RMEM_WC_SUCCESS)
		return status;
	*vendor_err = rwire_resp_note_error(q, pkt, status);
	if (status == RMEM_WC_REM_ACCESS_ERR && (pkt->info & RWIRE_HAS_IMM))
		rsoft_resp_fail_imm(q->qp, *vendor_err);
	else
		rsoft_rq_fail(q->qp);
	return status;
}

int
rwire_resp_serve_end(struct rwire_qp *q, unsigned int lcore)
{
	if (!rsoft_grace_over(lcore, q->rsp.inv_token))
		return RSOFT_WAIT_GRACE;
	return resp_inv_end(q) ? RMEM_WC_SUCCESS : RMEM_WC_REM_OP_ERR;
}
