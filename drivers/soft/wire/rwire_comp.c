/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The completer: acknowledgements and responses complete requests.
 *
 * Invariant: una is the oldest unacknowledged PSN. If packets are in flight, it belongs to the
 * request at the head of the send queue. Requests complete in order, each when una passes its last
 * PSN.
 */

#include <rte_cycles.h>

#include "../mem/rsoft_key.h"
#include "../queue/rsoft_req.h"
#include "../queue/rsoft_resp.h"
#include "../queue/rsoft_sq.h"
#include "rwire.h"

struct comp {
	struct rwire_qp *q;
	struct rsoft_batch *batch;
	uint64_t now; /* the clock; 0: not read yet */
};

static const struct rmem_send_wr *
comp_head(const struct rwire_qp *q)
{
	return rsoft_sq_slot(&q->qp->sq, q->qp->sq.cons);
}

static struct rwire_wqe *
comp_wqe(const struct rwire_qp *q)
{
	return &q->req.wqe[q->qp->sq.cons & q->qp->sq.mask];
}

/* Whether the request at the head waits for the peer, not for a grace period. */
static bool
comp_has_head(const struct rwire_qp *q)
{
	return q->qp->sq.cons != q->req.begun && q->qp->sq.wait != RSOFT_WAIT_GRACE;
}

/* nb PSNs are acknowledged after others were lost: increase the window. */
static void
comp_grow(struct rwire_qp *q, uint32_t nb)
{
	struct rwire_req *req = &q->req;

	if (req->window < req->threshold) {
		rwire_set_window(q, RTE_MIN(req->window + nb, req->threshold));
		return;
	}
	req->grown += nb;
	if (req->grown < req->window)
		return;
	req->grown -= req->window;
	rwire_set_window(q, req->window + 1);
}

/* Advance una to psn, and restart the retry counts and the timer. */
static void
comp_move(struct comp *comp, uint32_t psn)
{
	const struct rmem_qp_conn *conn = &comp->q->qp->conn;
	struct rwire_req *req = &comp->q->req;

	if (unlikely(req->window < comp->q->window))
		comp_grow(comp->q, (uint32_t)rwire_psn_diff(psn, req->una));
	req->una = psn;
	if (rwire_psn_diff(req->psn, psn) < 0)
		req->psn = psn;
	req->is_rewound = false;
	req->retry_left = conn->retry_cnt;
	req->rnr_left = conn->rnr_retry;
	req->rnr_until = 0; /* an RNR NAK sets it after this */
	req->deadline = 0;
	if (req->timeout == 0 || psn == req->end_psn)
		return;
	/* One reading for all requests of a packet: it takes as long as to complete one. */
	if (comp->now == 0)
		comp->now = rwire_clock();
	req->deadline = comp->now + req->timeout;
}

/* Complete the acknowledged request at the head. */
static void
comp_succeed(struct comp *comp)
{
	struct rwire_qp *q = comp->q;
	struct rwire_req *req = &q->req;
	const struct rmem_send_wr *wr = comp_head(q);
	const struct rwire_wqe *wqe = comp_wqe(q);

	comp_move(comp, rwire_psn_add(wqe->first_psn, wqe->nb_psn));
	req->nb_rd -= rwire_wr_has_response(wr);
	/* The answer arrived after a rewind to this request. */
	if (req->sq_pos == q->qp->sq.cons)
		req->sq_pos++;
	if (wr->opcode == RMEM_WR_RDMA_READ_WITH_INV) {
		if (!rsoft_req_start_inv(q->qp, wr, &comp->batch->vendor_err)) {
			rsoft_batch_fail(comp->batch, wr, RMEM_WC_MW_BIND_ERR);
			rsoft_sq_pop(&q->qp->sq, 1);
		}
		return;
	}
	rsoft_batch_succeed(comp->batch, wr, wqe->length);
	rsoft_sq_pop(&q->qp->sq, 1);
}

static void
comp_fail(struct comp *comp, int status, uint32_t vendor_err)
{
	if (!comp_has_head(comp->q))
		return;
	comp->batch->vendor_err = vendor_err;
	rsoft_batch_fail(comp->batch, comp_head(comp->q), status);
	rsoft_sq_pop(&comp->q->qp->sq, 1);
}

/*
 * Acknowledge all packets before psn. False: the response to one of their requests, such as a READ,
 * is missing.
 */
static bool
comp_ack(struct comp *comp, uint32_t psn)
{
	struct rwire_qp *q = comp->q;

	while (comp_has_head(q) && rwire_psn_diff(psn, q->req.una) > 0) {
		const struct rwire_wqe *wqe = comp_wqe(q);

		if (rwire_wr_has_response(comp_head(q)))
			return false;
		if (rwire_psn_diff(psn, rwire_psn_add(wqe->first_psn, wqe->nb_psn)) < 0) {
			comp_move(comp, psn);
			break;
		}
		comp_succeed(comp);
	}
	return true;
}

/* A response is missing: rewind, once until una advances or the timer expires. */
static void
comp_lost(struct comp *comp)
{
	if (comp->q->req.is_rewound)
		return;
	rwire_shrink(comp->q, comp->q->req.window / 2);
	rwire_rewind(comp->q);
}

static void
comp_rnr(struct comp *comp, uint8_t code)
{
	struct rwire_qp *q = comp->q;
	struct rwire_req *req = &q->req;

	RSOFT_COUNT(q->qp->stats.rnr_retries, 1);
	if (req->rnr_until != 0)
		return;
	if (req->rnr_left == 0) {
		comp_fail(comp, RMEM_WC_RNR_RETRY_EXC_ERR, RMEM_VENDOR_ERR_NO_RECV);
		return;
	}
	if (q->qp->conn.rnr_retry != 7) /* 7: no limit */
		req->rnr_left--;
	req->rnr_until = rwire_clock() + rte_get_tsc_hz() / 1000 * rsoft_rnr_ns(code) / 1000000;
	req->deadline = 0;
	rwire_rewind(q);
}

static void
comp_nak(struct comp *comp, const struct rwire_pkt *pkt)
{
	RWIRE_COUNT(comp->q->wire->stats.naks_received);
	switch (pkt->syndrome) {
	case RWIRE_AETH_NAK_PSN:
		if (comp->q->req.is_rewound)
			break; /* for a gap that the last NAK already reported */
		rwire_shrink(comp->q, comp->q->req.window / 2);
		if (rwire_retry(comp->q) != RMEM_WC_SUCCESS)
			comp_fail(comp, RMEM_WC_RETRY_EXC_ERR, RMEM_VENDOR_ERR_NO_PEER);
		break;
	case RWIRE_AETH_NAK_INV:
		comp_fail(comp, RMEM_WC_REM_INV_REQ_ERR, RMEM_VENDOR_ERR_NAK);
		break;
	case RWIRE_AETH_NAK_ACC:
		comp_fail(comp, RMEM_WC_REM_ACCESS_ERR, RMEM_VENDOR_ERR_NAK);
		break;
	case RWIRE_AETH_NAK_OP:
		comp_fail(comp, RMEM_WC_REM_OP_ERR, RMEM_VENDOR_ERR_NAK);
		break;
	default:
		break;
	}
}

/* Handle an ACK, NAK or RNR NAK. */
static void
comp_aeth(struct comp *comp, const struct rwire_pkt *pkt)
{
	bool is_ack = RWIRE_AETH_KIND(pkt->syndrome) == 0;

	if (!comp_ack(comp, is_ack ? rwire_psn_add(pkt->psn, 1) : pkt->psn)) {
		comp_lost(comp);
		return;
	}
	if (!comp_has_head(comp->q))
		return;
	if (RWIRE_AETH_KIND(pkt->syndrome) == RWIRE_AETH_RNR)
		comp_rnr(comp, pkt->syndrome & 0x1f);
	else if (RWIRE_AETH_KIND(pkt->syndrome) == RWIRE_AETH_KIND_NAK)
		comp_nak(comp, pkt);
}

/* Copy n bytes of a response to the SGEs of the request at the head, from byte offset on. */
static void
comp_data(struct comp *comp, uint64_t offset, uint8_t *data, uint32_t n)
{
	struct rwire_qp *q = comp->q;
	const struct rwire_wqe *wqe = comp_wqe(q);
	int status = rwire_sge_copy(
			q->qp, comp_head(q), offset, data, n, true, &comp->batch->vendor_err);

	if (status != RMEM_WC_SUCCESS) {
		comp_fail(comp, status, comp->batch->vendor_err);
		return;
	}
	comp_move(comp, rwire_psn_add(q->req.una, 1));
	if (q->req.una == rwire_psn_add(wqe->first_psn, wqe->nb_psn))
		comp_succeed(comp);
}

/* Handle a response without data, for a request that returns none. */
static void
comp_empty(struct comp *comp, const struct rwire_pkt *pkt)
{
	if (pkt->opcode == RWIRE_READ_RESPONSE_ONLY && pkt->payload_len == 0)
		comp_succeed(comp);
	else
		comp_fail(comp, RMEM_WC_BAD_RESP_ERR, RMEM_VENDOR_ERR_NAK);
}

static void
comp_response(struct comp *comp, const struct rwire_pkt *pkt)
{
	struct rwire_qp *q = comp->q;
	uint64_t value = pkt->swap_add, offset;
	const struct rwire_wqe *wqe;
	bool is_atomic;

	if (!comp_ack(comp, pkt->psn)) {
		comp_lost(comp);
		return;
	}
	if (!comp_has_head(q) || q->req.una != pkt->psn)
		return;
	wqe = comp_wqe(q);
	is_atomic = rwire_wr_is_atomic(comp_head(q));
	if (!rwire_wr_has_response(comp_head(q)))
		return;
	if (is_atomic != ((pkt->info & RWIRE_HAS_RESULT) != 0)) {
		comp_fail(comp, RMEM_WC_BAD_RESP_ERR, RMEM_VENDOR_ERR_NAK);
		return;
	}
	if (comp_head(q)->opcode == RMEM_WR_ATOMIC_WRITE || comp_head(q)->opcode == RMEM_WR_FLUSH) {
		comp_empty(comp, pkt);
		return;
	}
	if (is_atomic) {
		comp_data(comp, 0, (uint8_t *)&value, sizeof(value));
		return;
	}
	offset = (uint64_t)(uint32_t)rwire_psn_diff(pkt->psn, wqe->first_psn) * q->mtu;
	if (pkt->payload_len != RTE_MIN(wqe->length - offset, (uint64_t)q->mtu)) {
		comp_fail(comp, RMEM_WC_BAD_RESP_ERR, RMEM_VENDOR_ERR_NAK);
		return;
	}
	comp_data(comp, offset, pkt->payload, pkt->payload_len);
}

void
rwire_comp_pkt(struct rwire_qp *q, unsigned int lcore, const struct rwire_pkt *pkt)
{
	struct rsoft_batch batch;
	struct comp comp = {.q = q, .batch = &batch};

	/* Ignore packets with a PSN that was not sent, or is already acknowledged: late or
	 * forged. */
	if (rwire_psn_diff(pkt->psn, q->req.end_psn) >= 0 ||
			rwire_psn_diff(pkt->psn, q->req.una) < 0)
		return;
	rsoft_batch_begin(&batch, q->qp, lcore, true);
	batch.vendor_err = 0;
	if (pkt->opcode == RWIRE_ACKNOWLEDGE)
		comp_aeth(&comp, pkt);
	else
		comp_response(&comp, pkt);
	rsoft_batch_end(&batch);
}

bool
rwire_comp_sent(struct rwire_qp *q, unsigned int lcore)
{
	struct rsoft_batch batch;
	struct comp comp = {.q = q, .batch = &batch};

	if (q->req.una == q->req.psn)
		return false;
	rsoft_batch_begin(&batch, q->qp, lcore, true);
	batch.vendor_err = 0;
	comp_ack(&comp, q->req.psn);
	rsoft_batch_end(&batch);
	return true;
}
