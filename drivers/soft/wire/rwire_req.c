/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The requester: sends the requests of the send queue as packets, go-back-N.
 *
 * Requests get PSNs in the order of their posts. Local requests (REG_MR, LOCAL_INV, BIND_MW, UMR)
 * are executed when all preceding requests have completed. A request that fails here, because of a
 * key or a length, also waits for these, so that the first error is reported by the oldest request.
 */

#include <rte_cycles.h>

#include "../chaos/rsoft_chaos.h"
#include "../mem/rsoft_key_cache.h"
#include "../queue/rsoft_req.h"
#include "../queue/rsoft_sq.h"
#include "rwire.h"

/* Messages of UC are dropped if a peer or port accepts none for longer than this. */
#define UC_WAIT_MS 2000

#define REQ_SEND  0
#define REQ_WRITE 1

/* Opcodes of the first, middle, last and only packet of a message. */
static const uint8_t req_opcode[2][4] = {
		{RWIRE_SEND_FIRST, RWIRE_SEND_MIDDLE, RWIRE_SEND_LAST, RWIRE_SEND_ONLY},
		{RWIRE_WRITE_FIRST, RWIRE_WRITE_MIDDLE, RWIRE_WRITE_LAST, RWIRE_WRITE_ONLY},
};

/* Whether a request sends no packet. */
static bool
req_is_local(const struct rmem_send_wr *wr)
{
	return wr->opcode == RMEM_WR_LOCAL_INV || wr->opcode == RMEM_WR_REG_MR ||
			wr->opcode == RMEM_WR_BIND_MW || wr->opcode == RMEM_WR_UMR;
}

/* Assign PSNs to the request at sq_pos. */
static int
req_begin(struct rwire_qp *q, const struct rmem_send_wr *wr, uint32_t *vendor_err)
{
	struct rwire_req *req = &q->req;
	struct rwire_wqe *wqe = &req->wqe[req->sq_pos & q->qp->sq.mask];
	bool is_rd = rwire_wr_has_response(wr);
	uint64_t length = 0;
	uint32_t i;

	if ((wr->flags & RMEM_SEND_FENCE) && req->nb_rd != 0)
		return RSOFT_WAIT_WIRE;
	/* It stays at the head for a grace period, during which no later request may complete. */
	if (req->begun != q->qp->sq.cons &&
			rsoft_sq_slot(&q->qp->sq, req->begun - 1)->opcode ==
					RMEM_WR_RDMA_READ_WITH_INV)
		return RSOFT_WAIT_WIRE;
	if (is_rd && req->nb_rd == RWIRE_MAX_RD_WRS)
		return RSOFT_WAIT_WIRE;
	for (i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	if (length > q->qp->max_msg_size)
		return RMEM_WC_LOC_LEN_ERR;
	if (unlikely((rmem_wr_info[wr->opcode].props & RMEM_WR_WORD) != 0 &&
			    !rsoft_req_is_word(wr))) {
		*vendor_err = RMEM_VENDOR_ERR_ALIGNMENT;
		return RMEM_WC_LOC_LEN_ERR;
	}
	wqe->length = length;
	wqe->first_psn = req->next_psn;
	wqe->nb_psn = rwire_wr_is_atomic(wr) ? 1 : rwire_nb_pkts(length, q->mtu);
	req->next_psn = rwire_psn_add(req->next_psn, wqe->nb_psn);
	req->begun++;
	req->nb_rd += is_rd;
	return RMEM_WC_SUCCESS;
}

/* Set the opcode of a packet of a SEND or WRITE, and the fields that only the last packet has. */
static void
req_fill_message(const struct rmem_send_wr *wr, bool is_first, bool is_last, struct rwire_pkt *pkt)
{
	bool is_write = wr->opcode == RMEM_WR_RDMA_WRITE ||
			wr->opcode == RMEM_WR_RDMA_WRITE_WITH_IMM;
	unsigned int at = is_last ? (is_first ? 3 : 2) : (is_first ? 0 : 1);

	pkt->opcode = req_opcode[is_write ? REQ_WRITE : REQ_SEND][at];
	if (is_write) {
		pkt->addr = wr->rdma.remote_addr;
		pkt->rkey = wr->rdma.rkey;
	}
	if (!is_last)
		return;
	pkt->is_solicited = (wr->flags & RMEM_SEND_SOLICITED) != 0;
	if (wr->opcode == RMEM_WR_SEND_WITH_IMM || wr->opcode == RMEM_WR_RDMA_WRITE_WITH_IMM) {
		pkt->opcode++; /* the next opcode is the same with ImmDt */
		pkt->imm = wr->imm_data;
	} else if (wr->opcode == RMEM_WR_SEND_WITH_INV) {
		pkt->opcode = is_first ? RWIRE_SEND_ONLY_WITH_INV : RWIRE_SEND_LAST_WITH_INV;
		pkt->imm = wr->invalidate_rkey;
	}
}

static void
req_fill_atomic(const struct rmem_send_wr *wr, struct rwire_pkt *pkt)
{
	pkt->addr = wr->atomic.remote_addr;
	pkt->rkey = wr->atomic.rkey;
	if (wr->opcode == RMEM_WR_ATOMIC_FETCH_AND_ADD) {
		pkt->opcode = RWIRE_FETCH_ADD;
		pkt->swap_add = wr->atomic.compare_add;
	} else {
		pkt->opcode = RWIRE_COMPARE_SWAP;
		pkt->swap_add = wr->atomic.swap;
		pkt->compare = wr->atomic.compare_add;
	}
}

static int
req_fill_atomic_write(const struct rwire_qp *q, const struct rmem_send_wr *wr,
		struct rwire_frame *frame, struct rwire_pkt *pkt, uint32_t *vendor_err)
{
	pkt->opcode = RWIRE_ATOMIC_WRITE;
	pkt->addr = wr->rdma.remote_addr;
	pkt->rkey = wr->rdma.rkey;
	pkt->dma_len = sizeof(uint64_t);
	pkt->payload_len = sizeof(uint64_t);
	return rwire_sge_copy(q->qp, wr, 0, frame->bth + rwire_hdr_len(rwire_pkt_info(pkt)),
			pkt->payload_len, false, vendor_err);
}

static void
req_fill_flush(const struct rmem_send_wr *wr, struct rwire_pkt *pkt)
{
	pkt->opcode = RWIRE_FLUSH;
	pkt->addr = wr->flush.remote_addr;
	pkt->rkey = wr->flush.rkey;
	pkt->dma_len = wr->flush.length;
	pkt->type = wr->flush.type;
	pkt->level = wr->flush.level;
}

/*
 * Whether nothing waits for the acknowledgement of the message at sq_pos, over shared memory, where
 * the peer then sends it later. A direct copy and a local request wait until nothing is in flight.
 */
static bool
req_may_ack_late(const struct rwire_qp *q, const struct rmem_send_wr *wr)
{
	const struct rsoft_sq *sq = &q->qp->sq;
	const struct rwire_req *req = &q->req;

	if ((wr->flags & RMEM_SEND_SIGNALED) != 0 || q->qp->sig_all || q->service != RWIRE_RC ||
			!rwire_is_lossless(q->wire) || req->is_rewound)
		return false;
	if (wr->opcode == RMEM_WR_SEND_WITH_INV)
		return false;
	if (req->direct == RWIRE_DIRECT_ASKED || req->direct == RWIRE_DIRECT_WORKS)
		return false;
	return req->sq_pos + 1 == __atomic_load_n(&sq->prod, __ATOMIC_ACQUIRE) ||
			!req_is_local(rsoft_sq_slot(sq, req->sq_pos + 1));
}

/* Whether the peer must acknowledge this packet at once; with it, nb_psn are in flight. */
static bool
req_needs_ack(struct rwire_qp *q, const struct rmem_send_wr *wr, bool is_last, uint32_t nb_psn)
{
	struct rwire_req *req = &q->req;

	if (!rwire_service_is_reliable(q->service))
		return false;
	/* For the last packet of most messages: a later request may wait for its completion. */
	if ((!is_last || req_may_ack_late(q, wr)) && ++req->since_ack < req->ack_every &&
			nb_psn < req->window)
		return false;
	req->since_ack = 0;
	return true;
}

/*
 * Number of PSNs of the READ request, or of the shared payload, that starts with packet `at` of a
 * request; 0: the window is too full. It ends where a piece ends, a fraction of the window, so that
 * a retransmission is a part of what was sent before.
 */
static uint32_t
req_piece_psns(const struct rwire_qp *q, const struct rwire_wqe *wqe, uint32_t at, uint32_t pieces)
{
	uint32_t in_flight = (uint32_t)rwire_psn_diff(q->req.psn, q->req.una);
	uint32_t piece = q->window / pieces;
	uint32_t nb_psn = RTE_MIN(piece - at % piece, wqe->nb_psn - at);

	return q->window - in_flight < nb_psn ? 0 : nb_psn;
}

/*
 * Let the peer copy the payload from packet `at` on, whose bytes start at offset. Return an enum
 * rmem_wc_status or rsoft_wait; *nb_psn is 0 if that is not possible.
 */
static int
req_share(struct rwire_qp *q, const struct rmem_send_wr *wr, const struct rwire_wqe *wqe,
		uint32_t at, uint64_t offset, uint32_t *nb_psn, uint32_t *vendor_err)
{
	struct rwire_port *port = q->wire->port;
	uint32_t nb = req_piece_psns(q, wqe, at, RWIRE_SHARED_PIECES), len;
	struct rsoft_span span;
	int status;

	*nb_psn = 0;
	/* These packets, and the ones before them, request an acknowledgement, so the wait will
	 * end. */
	if (nb == 0)
		return RSOFT_WAIT_WIRE;
	len = (uint32_t)RTE_MIN(wqe->length - offset, (uint64_t)nb * q->mtu);
	status = rwire_sge_span(q->qp, wr, offset, len, &span, vendor_err);
	if (status != RMEM_WC_SUCCESS)
		return status;
	if (span.length == len && port->ops->tx_share(port, span.ptr, len))
		*nb_psn = nb;
	return RMEM_WC_SUCCESS;
}

/* Fill the payload at req->psn into the packet; return an enum rmem_wc_status or rsoft_wait. */
static int
req_fill_payload(struct rwire_qp *q, const struct rmem_send_wr *wr, struct rwire_frame *frame,
		struct rwire_pkt *pkt, uint32_t *nb_psn, uint32_t *vendor_err)
{
	struct rwire_req *req = &q->req;
	const struct rwire_wqe *wqe = &req->wqe[req->sq_pos & q->qp->sq.mask];
	uint32_t at = (uint32_t)rwire_psn_diff(req->psn, wqe->first_psn);
	uint32_t in_flight = (uint32_t)rwire_psn_diff(req->psn, req->una);
	uint64_t offset = (uint64_t)at * q->mtu, left = wqe->length - offset;
	int status;

	*nb_psn = 0;
	/* The memory is shared until the acknowledgement, so only with a reliable service. */
	if (q->wire->port->has_share && left >= RWIRE_MIN_SHARED &&
			rwire_service_is_reliable(q->service)) {
		status = req_share(q, wr, wqe, at, offset, nb_psn, vendor_err);
		if (status != RMEM_WC_SUCCESS)
			return status;
	}
	if (*nb_psn != 0) {
		req_fill_message(wr, at == 0, at + *nb_psn == wqe->nb_psn, pkt);
		req->since_ack = 0;
		return RMEM_WC_SUCCESS;
	}
	*nb_psn = 1;
	req_fill_message(wr, at == 0, at + 1 == wqe->nb_psn, pkt);
	pkt->payload_len = (uint32_t)RTE_MIN(left, (uint64_t)q->mtu);
	pkt->is_ack_req = req_needs_ack(q, wr, at + 1 == wqe->nb_psn, in_flight + 1);
	return rwire_sge_copy(q->qp, wr, offset, frame->bth + rwire_hdr_len(rwire_pkt_info(pkt)),
			pkt->payload_len, false, vendor_err);
}

/* Fill the packet at req->psn, and copy its payload; return an enum rmem_wc_status. */
static int
req_fill(struct rwire_qp *q, const struct rmem_send_wr *wr, struct rwire_frame *frame,
		struct rwire_pkt *pkt, uint32_t *nb_psn, uint32_t *vendor_err)
{
	struct rwire_req *req = &q->req;
	const struct rwire_wqe *wqe = &req->wqe[req->sq_pos & q->qp->sq.mask];
	uint32_t at = (uint32_t)rwire_psn_diff(req->psn, wqe->first_psn);
	uint64_t offset = (uint64_t)at * q->mtu, left = wqe->length - offset;

	*nb_psn = 1;
	pkt->is_ack_req = true;
	if (rwire_wr_is_read(wr)) {
		*nb_psn = req_piece_psns(q, wqe, at, RWIRE_READ_PIECES);
		if (*nb_psn == 0)
			return RSOFT_WAIT_WIRE;
		pkt->opcode = RWIRE_READ_REQUEST;
		pkt->addr = wr->rdma.remote_addr + offset;
		pkt->rkey = wr->rdma.rkey;
		pkt->dma_len = (uint32_t)RTE_MIN(left, (uint64_t)*nb_psn * q->mtu);
		return RMEM_WC_SUCCESS;
	}
	if (rwire_wr_is_atomic(wr)) {
		req_fill_atomic(wr, pkt);
		return RMEM_WC_SUCCESS;
	}
	if (wr->opcode == RMEM_WR_FLUSH) {
		req_fill_flush(wr, pkt);
		return RMEM_WC_SUCCESS;
	}
	if (wr->opcode == RMEM_WR_ATOMIC_WRITE)
		return req_fill_atomic_write(q, wr, frame, pkt, vendor_err);
	pkt->dma_len = (uint32_t)wqe->length;
	return req_fill_payload(q, wr, frame, pkt, nb_psn, vendor_err);
}

static void
req_start_timer(struct rwire_req *req)
{
	if (req->deadline == 0 && req->timeout != 0)
		req->deadline = rwire_clock() + req->timeout;
}

/*
 * The port is full. If the peer has stopped reading, the timer ends the wait of a reliable service;
 * a message of UC is dropped, also if some of its packets were sent.
 */
static int
req_wait(struct rwire_qp *q)
{
	struct rwire_req *req = &q->req;
	const struct rwire_wqe *wqe = &req->wqe[req->sq_pos & q->qp->sq.mask];

	if (rwire_service_is_reliable(q->service)) {
		req_start_timer(req);
		return RSOFT_WAIT_WIRE;
	}
	if (!rwire_tx_is_late(q, UC_WAIT_MS))
		return RSOFT_WAIT_WIRE;
	req->psn = req->end_psn = rwire_psn_add(wqe->first_psn, wqe->nb_psn);
	req->sq_pos++;
	return RMEM_WC_SUCCESS;
}

/* Bytes of the request in the packet, or the shared payload, at req->psn. */
static uint64_t
req_payload(const struct rwire_qp *q, const struct rmem_send_wr *wr, uint32_t nb_psn)
{
	const struct rwire_wqe *wqe = &q->req.wqe[q->req.sq_pos & q->qp->sq.mask];
	uint64_t at = (uint64_t)rwire_psn_diff(q->req.psn, wqe->first_psn) * q->mtu;

	return rwire_wr_has_response(wr) ? 0 : RTE_MIN(wqe->length - at, (uint64_t)nb_psn * q->mtu);
}

/* Send the next packet of the request at sq_pos. Under tx_lock. */
static int
req_send(struct rwire_qp *q, const struct rmem_send_wr *wr, uint32_t *vendor_err)
{
	struct rwire_req *req = &q->req;
	const struct rwire_wqe *wqe = &req->wqe[req->sq_pos & q->qp->sq.mask];
	struct rwire_pkt pkt = {
			.service = q->service, .psn = req->psn, .srqn = wr->xrc.remote_srqn};
	struct rwire_frame *frame;
	uint32_t nb_psn;
	int status;

	if (rwire_psn_diff(req->psn, req->una) >= (int32_t)req->window)
		return RSOFT_WAIT_WIRE;
	if (unlikely(req->pace != 0) && rwire_pace_is_waiting(q))
		return RSOFT_WAIT_WIRE;
	frame = rwire_tx_get(q);
	if (frame == NULL)
		return req_wait(q);
	if (unlikely(!rwire_service_is_reliable(q->service)))
		req->deadline = 0;
	status = req_fill(q, wr, frame, &pkt, &nb_psn, vendor_err);
	if (status != RMEM_WC_SUCCESS)
		return status;
	/* Only the first packet has the rkey. */
	frame->is_grant_requested = req->is_grant_requested;
	req->is_grant_requested = false;
	rwire_tx_put(q, frame, &pkt);
	if (unlikely(req->pace != 0))
		rwire_pace_count(q, req_payload(q, wr, nb_psn));
	req->psn = rwire_psn_add(req->psn, nb_psn);
	if (pkt.is_ack_req)
		req->asked_psn = req->psn;
	if (rwire_psn_diff(req->psn, req->end_psn) > 0)
		req->end_psn = req->psn;
	if (req->psn == rwire_psn_add(wqe->first_psn, wqe->nb_psn))
		req->sq_pos++;
	req_start_timer(req);
	return RMEM_WC_SUCCESS;
}

/* Send one packet; return RMEM_WC_SUCCESS, an enum rsoft_wait, or the error of the request. */
static int
req_step(struct rwire_qp *q, uint32_t *vendor_err)
{
	struct rwire_req *req = &q->req;
	struct rsoft_sq *sq = &q->qp->sq;
	const struct rmem_send_wr *wr;
	int status;

	if (req->sq_pos == __atomic_load_n(&sq->prod, __ATOMIC_ACQUIRE))
		return RSOFT_WAIT_WIRE;
	/* In SQD no request begins. */
	if (req->sq_pos == req->begun &&
			unlikely(__atomic_load_n(&q->qp->state, __ATOMIC_RELAXED) != RMEM_QPS_RTS))
		return RSOFT_WAIT_WIRE;
	wr = rsoft_sq_slot(sq, req->sq_pos);
	if (req_is_local(wr) || rsoft_chaos_is_planned_at(q->qp, req->sq_pos))
		return req->sq_pos == sq->cons ? RSOFT_WAIT_LOCAL : RSOFT_WAIT_WIRE;
	if (req->sq_pos == req->begun) {
		if (rwire_req_copy_is_near(q, req->sq_pos))
			return RSOFT_WAIT_WIRE;
		status = req_begin(q, wr, vendor_err);
		if (status != RMEM_WC_SUCCESS)
			return status;
	}
	return req_send(q, wr, vendor_err);
}

/* Whether the delay of an RNR NAK is not over. No delay is as long as a second: then the clock was
 * set back. */
static bool
req_is_waiting(const struct rwire_req *req)
{
	uint64_t left;

	if (req->rnr_until == 0)
		return false;
	left = req->rnr_until - rwire_clock();
	return left != 0 && left < rte_get_tsc_hz();
}

/* Send as many packets as possible; return the result of the step that sent none. */
static int
req_send_all(struct rwire_qp *q, uint32_t *vendor_err)
{
	int status;

	if (req_is_waiting(&q->req))
		return RSOFT_WAIT_WIRE;
	q->req.rnr_until = 0;
	rsoft_lock(&q->wire->tx_lock);
	do
		status = req_step(q, vendor_err);
	while (status == RMEM_WC_SUCCESS);
	q->wire->port->ops->tx_flush(q->wire->port);
	rte_ticketlock_unlock(&q->wire->tx_lock);
	return status;
}

/* Execute the local request at the head, or the end of a READ_WITH_INV. False: it must wait. */
static bool
req_local(struct rwire_qp *q, unsigned int lcore)
{
	struct rwire_req *req = &q->req;
	struct rsoft_sq *sq = &q->qp->sq;
	bool is_at_head = req->sq_pos == sq->cons; /* else it is a READ_WITH_INV */

	if (rsoft_req_exec(q->qp, lcore, true, rsoft_sq_slot(sq, sq->cons), sq->stride, 1) == 0)
		return false;
	rsoft_sq_pop(sq, 1);
	if (is_at_head)
		req->begun = ++req->sq_pos;
	return true;
}

/* Fail the oldest request. */
static void
req_fail(struct rwire_qp *q, unsigned int lcore, int status, uint32_t vendor_err)
{
	struct rsoft_sq *sq = &q->qp->sq;
	struct rsoft_batch batch;

	if (status == RMEM_WC_RETRY_EXC_ERR)
		vendor_err = RMEM_VENDOR_ERR_NO_PEER;
	else if (status == RMEM_WC_LOC_LEN_ERR && vendor_err == RMEM_VENDOR_ERR_NONE)
		vendor_err = RMEM_VENDOR_ERR_MSG_SIZE;
	rsoft_batch_begin(&batch, q->qp, lcore, true);
	batch.vendor_err = vendor_err;
	rsoft_batch_fail(&batch, rsoft_sq_slot(sq, sq->cons), status);
	rsoft_batch_end(&batch);
	rsoft_sq_pop(sq, 1);
}

static void
req_run(struct rwire_qp *q, unsigned int lcore, bool is_copying)
{
	struct rsoft_qp *qp = q->qp;
	uint32_t vendor_err = 0, first = q->req.psn;
	int status;

	if (q->service == RWIRE_UD) {
		rwire_ud_run(q, lcore);
		return;
	}
	q->req.has_more = false;
	q->req.copied = 0;
	while (rwire_state_is_requesting(__atomic_load_n(&qp->state, __ATOMIC_ACQUIRE))) {
		if (qp->sq.wait == RSOFT_WAIT_GRACE) {
			if (!req_local(q, lcore))
				return;
			continue;
		}
		status = rwire_timer_check(q);
		if (status == RMEM_WC_SUCCESS) {
			q->req.has_more = is_copying ? !rwire_req_copy_run(q, lcore)
						     : rwire_req_copy_is_possible(q);
			if (q->req.has_more)
				return;
			status = req_send_all(q, &vendor_err);
		}
		if (!rwire_service_is_reliable(q->service) && rwire_comp_sent(q, lcore) &&
				status <= 0) {
			/* No acknowledgement limits the work of a call: leave the rest to the next
			 * call. */
			q->req.has_more = rwire_psn_diff(q->req.psn, first) >= (int32_t)q->window;
			if (q->req.has_more)
				return;
			continue;
		}
		if (status == RSOFT_WAIT_LOCAL) {
			if (!req_local(q, lcore))
				return;
			continue;
		}
		/* A request fails only when it is the oldest. */
		if (status <= RMEM_WC_SUCCESS ||
				(status != RMEM_WC_RETRY_EXC_ERR && q->req.sq_pos != qp->sq.cons))
			return;
		req_fail(q, lcore, status, vendor_err);
	}
	rsoft_req_drain(qp, lcore);
}

/* Whether the next requests may be sent by req_send_shorts(), if they are short. */
static bool
req_may_send_shorts(const struct rwire_qp *q)
{
	const struct rwire_req *req = &q->req;
	const struct rsoft_qp *qp = q->qp;

	/* After a rewind, as for an RNR NAK, requests that have begun are sent again first. */
	return q->service == RWIRE_RC && rwire_is_lossless(q->wire) && req->sq_pos == req->begun &&
			(req->nb_rd | req->pace) == 0 && qp->sq.wait == RSOFT_WAIT_NONE &&
			qp->chaos == NULL && !rsoft_qp_is_claimed(qp) &&
			__atomic_load_n(&qp->state, __ATOMIC_ACQUIRE) == RMEM_QPS_RTS &&
			rwire_timer_is_early(q);
}

/* Whether a request is a SEND of one packet, from one SGE. */
static bool
req_is_short(const struct rwire_qp *q, const struct rmem_send_wr *wr)
{
	return (wr->opcode == RMEM_WR_SEND || wr->opcode == RMEM_WR_SEND_WITH_IMM) &&
			wr->num_sge == 1 && wr->sg_list->length - 1 < RWIRE_MIN_SHARED - 1 &&
			wr->sg_list->length <= q->mtu && wr->sg_list->length <= q->qp->max_msg_size;
}

/* Copy the payload of a short request; false: req_send() repeats it, and finds the error. */
static bool
req_copy_short(const struct rwire_qp *q, const struct rmem_send_wr *wr,
		struct rsoft_key_cache *local, uint8_t *data)
{
	const struct rmem_sge *sge = wr->sg_list;
	const uint8_t *from = (const uint8_t *)(uintptr_t)sge->addr;
	uint64_t offset;

	if ((wr->flags & RMEM_SEND_INLINE) == 0) {
		if (unlikely(!rsoft_key_cache_check(local, q->qp, q->qp->dev->lkey_xor, sge->lkey,
					     sge->addr, sge->length, RSOFT_NEED_READ, &offset) ||
				    local->is_slow))
			return false;
		from = local->key->base + offset;
	}
	return likely(rsoft_copy(data, from, sge->length) == RSOFT_SIDE_NONE);
}

/* Send the short request at sq_pos; false: req_send() must decide, and nothing has changed. Under
 * tx_lock. */
static bool
req_send_short(struct rwire_qp *q, struct rsoft_key_cache *local)
{
	struct rwire_req *req = &q->req;
	const struct rmem_send_wr *wr = rsoft_sq_slot(&q->qp->sq, req->sq_pos);
	uint32_t in_flight = (uint32_t)rwire_psn_diff(req->psn, req->una), psn = req->psn;
	uint32_t length = wr->sg_list->length, pad = -length & 3, hdr = RWIRE_BTH_LEN;
	struct rwire_frame *frame;
	bool has_imm = wr->opcode == RMEM_WR_SEND_WITH_IMM, is_ack_req;

	if (in_flight >= req->window)
		return false;
	frame = rwire_tx_get(q);
	if (unlikely(frame == NULL))
		return false;
	if (has_imm) {
		memcpy(frame->bth + hdr, &wr->imm_data, sizeof(wr->imm_data));
		hdr += sizeof(wr->imm_data);
	}
	if (unlikely(!req_copy_short(q, wr, local, frame->bth + hdr)))
		return false;
	if (pad != 0)
		memset(frame->bth + hdr + length, 0, pad);
	is_ack_req = req_needs_ack(q, wr, true, in_flight + 1);
	rwire_bth_put(frame->bth,
			RWIRE_BTH_WORD(RWIRE_SEND_ONLY + has_imm, wr->flags & RMEM_SEND_SOLICITED,
					pad, q->pkey ^ RWIRE_PKEY),
			q->qpn, psn, is_ack_req);
	frame->len = hdr + length + pad + RWIRE_ICRC_LEN;
	q->wire->port->ops->tx_put(q->wire->port, frame);
	req->wqe[req->sq_pos & q->qp->sq.mask] =
			(struct rwire_wqe){.length = length, .first_psn = psn, .nb_psn = 1};
	req->psn = req->next_psn = req->end_psn = rwire_psn_add(psn, 1);
	if (is_ack_req)
		req->asked_psn = req->psn;
	req->begun = ++req->sq_pos;
	req_start_timer(req);
	return true;
}

/*
 * Send the next requests, up to the first that is not short, with one lock, and without the checks
 * for longer requests and other opcodes. False: some are left.
 */
static bool
req_send_shorts(struct rwire_qp *q)
{
	struct rsoft_key_cache local = {.num = RSOFT_KEY_CACHE_NONE};
	const struct rsoft_sq *sq = &q->qp->sq;
	const uint32_t prod = __atomic_load_n(&sq->prod, __ATOMIC_ACQUIRE);

	if (q->req.sq_pos == prod || !req_is_short(q, rsoft_sq_slot(sq, q->req.sq_pos)) ||
			!req_may_send_shorts(q))
		return false;
	rsoft_lock(&q->wire->tx_lock);
	while (req_send_short(q, &local) && q->req.sq_pos != prod &&
			req_is_short(q, rsoft_sq_slot(sq, q->req.sq_pos)))
		;
	q->wire->port->ops->tx_flush(q->wire->port);
	rte_ticketlock_unlock(&q->wire->tx_lock);
	return q->req.sq_pos == prod;
}

/*
 * Whether all packets are sent, and no timer has expired, so that a poll only waits for the peer.
 * Ports that are not lossless may hold packets until the next flush.
 */
static bool
req_is_idle(const struct rwire_qp *q)
{
	const struct rsoft_qp *qp = q->qp;

	return rwire_service_is_reliable(q->service) && rwire_is_lossless(q->wire) &&
			q->req.sq_pos == __atomic_load_n(&qp->sq.prod, __ATOMIC_ACQUIRE) &&
			qp->sq.wait == RSOFT_WAIT_NONE && q->req.rnr_until == 0 &&
			rwire_state_is_requesting(__atomic_load_n(&qp->state, __ATOMIC_ACQUIRE)) &&
			rwire_timer_is_early(q);
}

void
rwire_req_run(struct rwire_qp *q, unsigned int lcore, bool is_copying)
{
	int state;

	q->req.is_quiet = req_is_idle(q);
	if (q->req.is_quiet || req_send_shorts(q)) {
		q->req.has_more = false;
		q->req.copied = 0;
		return;
	}
	if (rwire_is_uncancellable(q->wire)) {
		req_run(q, lcore, is_copying);
		return;
	}
	/* The port makes system calls, and the caller holds locks: see rwire_progress(). */
	state = rsoft_cancel_disable();
	req_run(q, lcore, is_copying);
	rsoft_cancel_restore(state);
}
