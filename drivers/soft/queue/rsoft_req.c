/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The requester: executes the requests of a send queue in order, one at a time.
 *
 * Each request ends before the next starts, so a fence is always satisfied.
 */

#include <rte_cycles.h>

#include "../chaos/rsoft_chaos.h"
#include "../mem/rsoft_grace.h"
#include "../mem/rsoft_mr.h"
#include "../mem/rsoft_mw.h"
#include "rsoft_addr.h"
#include "rsoft_req.h"
#include "rsoft_resp.h"
#include "rsoft_batch.h"
#include "rsoft_rq.h"
#include "rsoft_send_burst.h"
#include "rsoft_ud.h"
#include "rsoft_xrc.h"
#include "rsoft_write_burst.h"

/* In rsoft_sq::token: the grace period is over. */
#define REQ_GRACE_OVER UINT64_MAX

/* Results, in addition to enum rsoft_wait. */
#define REQ_NEXT (-16) /* execute the next request */
#define REQ_SENT (-17) /* complete a burst of SENDs, and execute the next request */

/* The peer is not ready: wait for it, or fail. */
static int
req_no_peer(struct rsoft_qp *qp)
{
	struct rsoft_sq *sq = &qp->sq;
	uint64_t now = rte_rdtsc();

	if (sq->wait != RSOFT_WAIT_PEER) {
		sq->wait = RSOFT_WAIT_PEER;
		sq->deadline = 0;
		if (qp->conn.timeout != 0) /* IBTA 11.2.5.2: 4.096 us * 2^timeout each */
			sq->deadline = now +
					(uint64_t)((double)rte_get_tsc_hz() * 4.096e-6 *
							(double)(UINT64_C(1) << qp->conn.timeout) *
							(qp->conn.retry_cnt + 1));
		return RSOFT_WAIT_PEER;
	}
	if (sq->deadline == 0 || now < sq->deadline)
		return RSOFT_WAIT_PEER;
	return RMEM_WC_RETRY_EXC_ERR;
}

/* The peer has no receive: wait for its RNR timer, or fail. */
static int
req_no_recv(struct rsoft_qp *qp)
{
	const struct rsoft_qp *peer = rsoft_resp_peer(qp);
	struct rsoft_sq *sq = &qp->sq;
	uint64_t pause, now = rte_rdtsc();

	if (peer == NULL)
		return req_no_peer(qp);
	pause = rte_get_tsc_hz() / 1000 * rsoft_resp_rnr_ns(peer) / 1000000;
	if (sq->wait != RSOFT_WAIT_RNR) {
		RSOFT_COUNT(qp->stats.rnr_retries, 1);
		if (qp->conn.rnr_retry == 0)
			return RMEM_WC_RNR_RETRY_EXC_ERR;
		sq->wait = RSOFT_WAIT_RNR;
		sq->rnr_left = qp->conn.rnr_retry;
		sq->deadline = now + pause;
		return RSOFT_WAIT_RNR;
	}
	if (now < sq->deadline)
		return RSOFT_WAIT_RNR;
	RSOFT_COUNT(qp->stats.rnr_retries, 1);
	sq->deadline = now + pause;
	if (qp->conn.rnr_retry != 7 && --sq->rnr_left == 0) /* 7: unlimited */
		return RMEM_WC_RNR_RETRY_EXC_ERR;
	return RSOFT_WAIT_RNR;
}

/* Let nb requests at the head wait for the grace period of their invalidations; see req_grace(). */
static int
req_wait_inv(struct rsoft_qp *qp, uint32_t nb, struct rsoft_key *key, uint32_t rq_pos)
{
	qp->sq.wait = RSOFT_WAIT_GRACE;
	qp->sq.token = 0;
	qp->sq.nb_inv = nb;
	qp->sq.inv_key = key;
	qp->sq.rq_pos = rq_pos;
	return RSOFT_WAIT_GRACE;
}

/* Translate the local side of a request. Inline data needs no key. */
static __rte_always_inline int
req_local(struct rsoft_batch *batch, const struct rmem_send_wr *wr, uint32_t need,
		struct rsoft_span *spans, uint64_t *length)
{
	const struct rsoft_qp *qp = batch->qp;
	uint32_t i;

	if (unlikely(wr->flags & RMEM_SEND_INLINE)) {
		*length = 0;
		for (i = 0; i < wr->num_sge; i++) {
			spans[i].ptr = (uint8_t *)(uintptr_t)wr->sg_list[i].addr;
			spans[i].length = wr->sg_list[i].length;
			spans[i].kind = RSOFT_SPAN_FLAT;
			*length += spans[i].length;
		}
		return RMEM_WC_SUCCESS;
	}
	/* Check the length before the translation, which populates on-demand pages. */
	if (unlikely(rsoft_sges_length(wr->sg_list, wr->num_sge, qp->max_msg_size + 1) >
			    qp->max_msg_size))
		return RMEM_WC_LOC_LEN_ERR;
	if (unlikely(!rsoft_access_sges(qp, wr->sg_list, wr->num_sge, need, UINT64_MAX, spans,
			    length, &batch->vendor_err)))
		return RMEM_WC_LOC_PROT_ERR;
	return RMEM_WC_SUCCESS;
}

static int
req_write(struct rsoft_batch *batch, const struct rmem_send_wr *wr, uint64_t *length)
{
	struct rsoft_span from[RSOFT_MAX_SGE];
	int status = req_local(batch, wr, RSOFT_NEED_READ, from, length);
	struct rsoft_qp *peer;

	if (unlikely(status != RMEM_WC_SUCCESS))
		return status;
	peer = rsoft_resp_peer(batch->qp);
	if (unlikely(peer == NULL))
		return RSOFT_WAIT_PEER;
	return rsoft_resp_write(peer, wr, from, *length, &batch->vendor_err);
}

/* Execute a SEND of a QP without a peer: a UD QP, or one that is not connected. */
static __rte_noinline int
req_no_connection(struct rsoft_batch *batch, const struct rmem_send_wr *wr,
		const struct rsoft_span *from, uint64_t length)
{
	return batch->qp->qp.type == RMEM_QPT_UD ? rsoft_ud_send(batch, wr, from, length)
						 : RSOFT_WAIT_PEER;
}

/* Execute a SEND of any kind, or a WRITE_WITH_IMM; both consume a receive. */
static int
req_send(struct rsoft_batch *batch, const struct rmem_send_wr *wr, uint64_t *length)
{
	struct rsoft_span from[RSOFT_MAX_SGE];
	struct rsoft_key *inv_key = NULL;
	struct rsoft_qp *peer;
	int status = req_local(batch, wr, RSOFT_NEED_READ, from, length);
	uint32_t rq_pos = 0;

	if (unlikely(status != RMEM_WC_SUCCESS))
		return status;
	peer = rsoft_resp_peer(batch->qp);
	if (unlikely(peer == NULL))
		return req_no_connection(batch, wr, from, *length);
	/* While the request waits, check this first, instead of repeating all checks. */
	if (batch->qp->sq.wait == RSOFT_WAIT_RNR && !rsoft_resp_has_recv(peer))
		return RSOFT_WAIT_RNR;
	if (wr->opcode == RMEM_WR_RDMA_WRITE_WITH_IMM)
		status = rsoft_resp_write_imm(peer, wr, from, *length, &batch->vendor_err);
	else
		status = rsoft_resp_send(peer, wr, from, *length, &inv_key, &rq_pos);
	if (status == RSOFT_WAIT_GRACE)
		return req_wait_inv(batch->qp, 1, inv_key, rq_pos);
	if (unlikely(status == RMEM_WC_LOC_PROT_ERR))
		batch->vendor_err = RMEM_VENDOR_ERR_PAGE_FAULT;
	return status;
}

/*
 * Execute a READ. The peer is checked first, because the local side is checked with the response:
 * if both keys are bad, the status is the remote one. Nothing is copied before both checks.
 */
static int
req_read(struct rsoft_batch *batch, const struct rmem_send_wr *wr, uint64_t *length)
{
	struct rsoft_qp *qp = batch->qp;
	struct rsoft_span to[RSOFT_MAX_SGE], from;
	struct rsoft_key *key;
	struct rsoft_qp *peer;
	int status;

	*length = rsoft_sges_length(wr->sg_list, wr->num_sge, qp->max_msg_size + 1);
	if (unlikely(*length > qp->max_msg_size))
		return RMEM_WC_LOC_LEN_ERR;
	peer = rsoft_resp_peer(qp);
	if (unlikely(peer == NULL))
		return RSOFT_WAIT_PEER;
	status = rsoft_resp_open(peer, RMEM_ACCESS_REMOTE_READ, wr->rdma.remote_addr, wr->rdma.rkey,
			*length, &from, &batch->vendor_err);
	if (likely(status == RMEM_WC_SUCCESS))
		status = req_local(batch, wr, RSOFT_NEED_WRITE, to, length);
	if (likely(status == RMEM_WC_SUCCESS && *length != 0))
		status = rsoft_copy_status(rsoft_copy_all(to, &from, *length), RSOFT_SIDE_TO,
				&batch->vendor_err);
	if (likely(status == RMEM_WC_SUCCESS))
		rsoft_resp_count(peer, wr->opcode, *length);
	if (status != RMEM_WC_SUCCESS || wr->opcode == RMEM_WR_RDMA_READ)
		return status;
	key = rsoft_key_invalidate(qp, wr->invalidate_rkey, wr);
	if (key == NULL) {
		batch->vendor_err = rsoft_key_inv_vendor_err(qp, wr->invalidate_rkey);
		return RMEM_WC_MW_BIND_ERR;
	}
	return req_wait_inv(qp, 1, key, 0);
}

/* Execute an atomic; checks are in the order of a READ. */
static int
req_atomic(struct rsoft_batch *batch, const struct rmem_send_wr *wr, uint64_t *length)
{
	struct rsoft_span to[RSOFT_MAX_SGE];
	struct rsoft_span from = {.length = sizeof(uint64_t)}, word;
	struct rsoft_qp *peer;
	uint64_t before = 0;
	int status;

	if (unlikely(!rsoft_req_is_word(wr))) {
		batch->vendor_err = RMEM_VENDOR_ERR_ALIGNMENT;
		return RMEM_WC_LOC_LEN_ERR;
	}
	peer = rsoft_resp_peer(batch->qp);
	if (unlikely(peer == NULL))
		return RSOFT_WAIT_PEER;
	/* Only for static analyzers. */
	to[0] = (struct rsoft_span){.ptr = NULL};
	status = rsoft_resp_atomic_open(peer, wr, &word, &batch->vendor_err);
	if (likely(status == RMEM_WC_SUCCESS))
		status = req_local(batch, wr, RSOFT_NEED_WRITE, to, length);
	if (likely(status == RMEM_WC_SUCCESS))
		status = rsoft_resp_atomic(wr, &word, &before, &batch->vendor_err);
	if (status != RMEM_WC_SUCCESS)
		return status;
	from.ptr = (uint8_t *)&before;
	return rsoft_copy_status(rsoft_copy_all(to, &from, sizeof(before)), RSOFT_SIDE_TO,
			&batch->vendor_err);
}

/* Execute an ATOMIC_WRITE in the order of a WRITE: the payload is read before the peer is looked
 * up. */
static int
req_atomic_write(struct rsoft_batch *batch, const struct rmem_send_wr *wr, uint64_t *length)
{
	struct rsoft_span from[RSOFT_MAX_SGE];
	struct rsoft_span to = {.length = sizeof(uint64_t)};
	struct rsoft_qp *peer;
	uint64_t value = 0;
	int status;

	if (unlikely(!rsoft_req_is_word(wr))) {
		batch->vendor_err = RMEM_VENDOR_ERR_ALIGNMENT;
		return RMEM_WC_LOC_LEN_ERR;
	}
	to.ptr = (uint8_t *)&value;
	status = req_local(batch, wr, RSOFT_NEED_READ, from, length);
	if (likely(status == RMEM_WC_SUCCESS))
		status = rsoft_copy_status(rsoft_copy_all(&to, from, sizeof(value)),
				RSOFT_SIDE_FROM, &batch->vendor_err);
	if (unlikely(status != RMEM_WC_SUCCESS))
		return status;
	peer = rsoft_resp_peer(batch->qp);
	if (unlikely(peer == NULL))
		return RSOFT_WAIT_PEER;
	return rsoft_resp_atomic_write(peer, wr, value, &batch->vendor_err);
}

static int
req_place(struct rsoft_batch *batch, const struct rmem_send_wr *wr, uint64_t *length)
{
	struct rsoft_qp *peer = rsoft_resp_peer(batch->qp);

	*length = 0;
	return peer != NULL ? rsoft_resp_flush(peer, wr, &batch->vendor_err) : RSOFT_WAIT_PEER;
}

/* Whether the grace period for the head is over; the first call starts it. */
static bool
req_grace(struct rsoft_batch *batch)
{
	struct rsoft_sq *sq = &batch->qp->sq;

	if (sq->token == REQ_GRACE_OVER)
		return true;
	if (sq->token != 0) {
		if (!rsoft_grace_over(batch->lcore, sq->token))
			return false;
	} else if (!rsoft_grace_start(batch->lcore, &sq->token)) {
		RSOFT_COUNT(batch->qp->stats.grace_waits, 1);
		return false;
	}
	sq->token = REQ_GRACE_OVER;
	return true;
}

/* End the first of the waiting requests at the head, with following LOCAL_INVs; see req_next(). */
static int
req_end_inv(struct rsoft_batch *batch, const uint8_t *wrs, size_t stride, uint32_t n,
		uint32_t *passed, uint64_t *length)
{
	const struct rmem_send_wr *wr = (const void *)wrs;
	struct rsoft_qp *qp = batch->qp;
	struct rsoft_sq *sq = &qp->sq;
	int status = RMEM_WC_SUCCESS;
	uint32_t nb = 1;

	if (wr->opcode == RMEM_WR_LOCAL_INV) {
		/* Queued requests release their objects one by one. */
		n = batch->is_queued ? 1 : RTE_MIN(sq->nb_inv, n);
		nb = rsoft_local_invs_end(qp, wrs, stride, n);
	} else if (wr->opcode == RMEM_WR_BIND_MW) {
		rsoft_mw_bind_end(qp, wr);
	} else {
		*length = rsoft_sges_length(wr->sg_list, wr->num_sge, UINT64_MAX);
		if (wr->opcode == RMEM_WR_SEND_WITH_INV)
			status = rsoft_resp_send_end(
					rsoft_resp_peer(qp), wr, *length, sq->inv_key, sq->rq_pos);
		else
			rsoft_key_release(sq->inv_key);
	}
	if (wr->opcode != RMEM_WR_BIND_MW)
		RSOFT_COUNT(qp->stats.invalidates, nb);
	*passed = nb - 1;
	batch->done += *passed;
	/* The remaining ones may be at the start of the ring; their wait has ended too. */
	sq->nb_inv -= nb;
	if (sq->nb_inv == 0)
		sq->wait = RSOFT_WAIT_NONE;
	return status;
}

void
rsoft_req_end_send(struct rsoft_qp *qp, const struct rmem_qp_addr *remote)
{
	struct rsoft_sq *sq = &qp->sq;
	const struct rmem_send_wr *wr = rsoft_sq_slot(sq, sq->cons);
	struct rsoft_qp *peer;
	uint64_t length;

	if (sq->wait != RSOFT_WAIT_GRACE || !rsoft_sq_is_sound(qp, sq->cons, 1) ||
			wr->opcode != RMEM_WR_SEND_WITH_INV)
		return;
	/* With the lock held, the peer is not freed. Its receive is the one at rq_pos if it was not
	 * flushed or reset since. */
	rsoft_lock(&rsoft_domain->lock);
	peer = rsoft_addr_qp(remote);
	length = rsoft_sges_length(wr->sg_list, wr->num_sge, UINT64_MAX);
	(void)rsoft_resp_send_end(peer, wr, length, sq->inv_key, sq->rq_pos);
	rte_ticketlock_unlock(&rsoft_domain->lock);
	sq->wait = RSOFT_WAIT_NONE;
	sq->nb_inv = 0;
}

static int
req_umr(struct rsoft_batch *batch, const struct rmem_send_wr *wr, uint64_t *length)
{
	*length = 0;
	return rsoft_umr(batch->qp, wr, &batch->vendor_err);
}

static int
req_bind_mw(struct rsoft_batch *batch, const struct rmem_send_wr *wr, uint64_t *length)
{
	int status = rsoft_mw_bind_start(batch->qp, wr);

	*length = 0;
	if (status == RSOFT_WAIT_GRACE)
		return req_wait_inv(batch->qp, 1, NULL, 0);
	if (status != RMEM_WC_SUCCESS)
		batch->vendor_err = rsoft_mw_bind_vendor_err(batch->qp, wr);
	return status;
}

/* Execute consecutive requests that make keys valid: rsoft_reg_mrs(), rsoft_mw_binds(). */
typedef uint32_t (*rsoft_bind_t)(struct rsoft_qp *qp, const uint8_t *wrs, size_t stride, uint32_t n,
		int *status, uint32_t *vendor_err);

static const rsoft_bind_t rsoft_bind[] = {
		[RMEM_WR_REG_MR] = rsoft_reg_mrs,
		[RMEM_WR_BIND_MW] = rsoft_mw_binds,
};

/* Whether rsoft_bind has the request; the previous binding of a type 1 window may need a grace
 * period. */
static inline bool
req_is_bind(const struct rmem_send_wr *wr)
{
	return wr->opcode == RMEM_WR_REG_MR ||
			(wr->opcode == RMEM_WR_BIND_MW && wr->bind_mw.mw->type == RMEM_MW_TYPE_2);
}

/*
 * Execute one request, not a LOCAL_INV or one of rsoft_bind; return an enum rmem_wc_status or
 * rsoft_wait, and the bytes transferred.
 */
typedef int (*rsoft_exec_t)(
		struct rsoft_batch *batch, const struct rmem_send_wr *wr, uint64_t *length);

static const rsoft_exec_t rsoft_exec[RMEM_WR_OPCODE_NB] = {
		[RMEM_WR_RDMA_WRITE] = req_write,
		[RMEM_WR_RDMA_WRITE_WITH_IMM] = req_send,
		[RMEM_WR_SEND] = req_send,
		[RMEM_WR_SEND_WITH_IMM] = req_send,
		[RMEM_WR_RDMA_READ] = req_read,
		[RMEM_WR_ATOMIC_CMP_AND_SWP] = req_atomic,
		[RMEM_WR_ATOMIC_FETCH_AND_ADD] = req_atomic,
		[RMEM_WR_SEND_WITH_INV] = req_send,
		[RMEM_WR_RDMA_READ_WITH_INV] = req_read,
		[RMEM_WR_BIND_MW] = req_bind_mw,
		[RMEM_WR_UMR] = req_umr,
		[RMEM_WR_ATOMIC_WRITE] = req_atomic_write,
		[RMEM_WR_FLUSH] = req_place,
};

/*
 * A message of an unreliable service succeeds even if its responder drops it (IBTA 9.8.3); other
 * results are returned unchanged.
 */
static int
req_dropped(struct rsoft_batch *batch, const struct rmem_send_wr *wr, int status)
{
	struct rmem_dev_stats *stats = &batch->qp->stats;

	if (batch->qp->qp.type == RMEM_QPT_UD && rmem_wr_info[wr->opcode].remote_access != 0) {
		batch->vendor_err = RMEM_VENDOR_ERR_SERVICE;
		return RMEM_WC_LOC_QP_OP_ERR;
	}
	if (status == RSOFT_WAIT_PEER)
		RSOFT_COUNT(stats->drop_no_peer, 1);
	else if (status == RSOFT_WAIT_RNR)
		RSOFT_COUNT(stats->drop_no_recv, 1);
	else if (status == RMEM_WC_REM_INV_REQ_ERR && batch->vendor_err == RMEM_VENDOR_ERR_NONE)
		RSOFT_COUNT(stats->drop_length, 1);
	else if (status == RMEM_WC_REM_ACCESS_ERR || status == RMEM_WC_REM_INV_REQ_ERR ||
			status == RMEM_WC_REM_OP_ERR)
		RSOFT_COUNT(stats->drop_access, 1);
	else
		return status;
	batch->vendor_err = RMEM_VENDOR_ERR_NONE;
	return RMEM_WC_SUCCESS;
}

/* Result of a request that did not succeed immediately. */
static int
req_outcome(struct rsoft_batch *batch, const struct rmem_send_wr *wr, int status)
{
	struct rsoft_qp *qp = batch->qp;

	if (!rsoft_qp_is_reliable(qp))
		return req_dropped(batch, wr, status);
	if (status == RSOFT_WAIT_PEER)
		return req_no_peer(qp);
	return status == RSOFT_WAIT_RNR ? req_no_recv(qp) : status;
}

/*
 * Execute the first of n requests, with following ones of its kind. *passed requests have
 * succeeded; the result is that of the next one, an enum rmem_wc_status or rsoft_wait; or REQ_NEXT
 * or REQ_SENT if that one has not begun.
 */
static int
req_next(struct rsoft_batch *batch, const uint8_t *wrs, size_t stride, uint32_t n, uint32_t *passed,
		uint64_t *length)
{
	const struct rmem_send_wr *wr = (const void *)wrs;
	struct rsoft_qp *qp = batch->qp;
	int status = RMEM_WC_SUCCESS;
	uint32_t nb;

	if (wr->opcode == RMEM_WR_RDMA_WRITE || wr->opcode == RMEM_WR_ATOMIC_WRITE) {
		*passed = rsoft_write_burst(batch, wrs, stride, n, &status);
		if (likely(status == RMEM_WC_SUCCESS && *passed != 0)) {
			qp->sq.wait = RSOFT_WAIT_NONE;
			return REQ_NEXT;
		}
	}
	if (wr->opcode == RMEM_WR_SEND && qp->qp.type != RMEM_QPT_XRC_SEND) {
		*passed = rsoft_send_burst(qp, wrs, stride, n);
		if (likely(*passed != 0)) {
			qp->sq.wait = RSOFT_WAIT_NONE;
			return REQ_SENT;
		}
	}
	if (unlikely(status != RMEM_WC_SUCCESS)) {
		wr = (const void *)(wrs + *passed * stride);
		*length = wr->sg_list[0].length;
	} else if (req_is_bind(wr)) {
		/* Queued requests release their objects one by one. */
		nb = rsoft_bind[wr->opcode](qp, wrs, stride, batch->is_queued ? 1 : n, &status,
				&batch->vendor_err);
		*passed = nb - 1;
		batch->done += *passed;
	} else if (wr->opcode == RMEM_WR_LOCAL_INV) {
		nb = rsoft_local_invs(qp, wrs, stride, n);
		if (likely(nb != 0))
			return req_wait_inv(qp, nb, NULL, 0);
		batch->vendor_err = rsoft_key_inv_vendor_err(qp, wr->invalidate_rkey);
		status = RMEM_WC_MW_BIND_ERR;
	} else {
		status = rsoft_exec[wr->opcode](batch, wr, length);
	}
	if (unlikely(status != RMEM_WC_SUCCESS))
		return req_outcome(batch, wr, status);
	qp->sq.wait = RSOFT_WAIT_NONE;
	return status;
}

/* Whether a QP flushes its requests in that state. In SQD they wait, in RESET they are dropped. */
static bool
req_is_flushed(uint32_t state)
{
	return state == RMEM_QPS_ERR || state == RMEM_QPS_SQE;
}

/* Body of rsoft_req_exec(). */
static uint32_t
req_run(struct rsoft_batch *batch, const uint8_t *wrs, size_t stride, uint32_t n)
{
	struct rsoft_qp *qp = batch->qp;
	uint32_t state, i = 0;
	int status;

	while (i < n) {
		const uint8_t *at = wrs + i * stride;
		const struct rmem_send_wr *wr;
		uint64_t length = 0;
		uint32_t passed = 0;

		batch->vendor_err = RMEM_VENDOR_ERR_NONE;
		state = __atomic_load_n(&qp->state, __ATOMIC_ACQUIRE);
		if (unlikely(qp->sq.wait == RSOFT_WAIT_GRACE)) {
			if (!req_grace(batch))
				break;
			status = req_end_inv(batch, at, stride, n - i, &passed, &length);
		} else if (likely(state == RMEM_QPS_RTS)) {
			status = req_next(batch, at, stride, n - i, &passed, &length);
		} else if (req_is_flushed(state)) {
			status = RMEM_WC_WR_FLUSH_ERR;
		} else {
			break;
		}
		i += passed;
		for (; status == REQ_SENT && passed != 0; passed--, at += stride) {
			wr = (const void *)at;
			rsoft_batch_succeed(batch, wr, wr->sg_list->length);
		}
		if (status == REQ_NEXT || status == REQ_SENT || status == RSOFT_WAIT_GRACE)
			continue;
		if (status < 0)
			break;
		wr = (const void *)(at + passed * stride);
		if (likely(status == RMEM_WC_SUCCESS))
			rsoft_batch_succeed(batch, wr, length);
		else
			rsoft_batch_fail(batch, wr, status);
		i++;
	}
	return i;
}

/* Select the SRQ of a request to an XRC peer. False: the domain has no such SRQ, and the request
 * fails. */
static bool
req_select_srq(struct rsoft_qp *qp, const struct rmem_send_wr *wr)
{
	const struct rmem_wr_info *info = &rmem_wr_info[wr->opcode];
	struct rsoft_qp *peer;

	/* The request executes only on this side. */
	if (info->recv_opcode == 0 && info->remote_access == 0)
		return true;
	/* A request that waits for a grace period has selected its SRQ; outside of RTS none
	 * begins. */
	if (qp->sq.wait == RSOFT_WAIT_GRACE ||
			__atomic_load_n(&qp->state, __ATOMIC_ACQUIRE) != RMEM_QPS_RTS)
		return true;
	peer = rsoft_resp_peer(qp);
	return peer == NULL || rsoft_xrc_select(peer, wr->xrc.remote_srqn);
}

/* req_run() for XRC, where each request names its SRQ. */
static __rte_noinline uint32_t
req_run_xrc(struct rsoft_batch *batch, const uint8_t *wrs, size_t stride, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		const uint8_t *at = wrs + i * stride;

		if (likely(req_select_srq(batch->qp, (const void *)at))) {
			if (req_run(batch, at, stride, 1) == 0)
				break;
			continue;
		}
		batch->vendor_err = RMEM_VENDOR_ERR_XRC_SRQ;
		rsoft_batch_fail(batch, (const void *)at, RMEM_WC_REM_INV_REQ_ERR);
	}
	return i;
}

/* Execute requests to which no rule of chaos= applies. */
static uint32_t
req_run_any(struct rsoft_batch *batch, const uint8_t *wrs, size_t stride, uint32_t n)
{
	if (unlikely(batch->qp->qp.type == RMEM_QPT_XRC_SEND))
		return req_run_xrc(batch, wrs, stride, n);
	return req_run(batch, wrs, stride, n);
}

/* Number of requests, up to n, before the first that must fail. */
static uint32_t
req_nb_unplanned(const struct rsoft_batch *batch, uint32_t n)
{
	uint32_t i = 0;

	if (likely(!rsoft_chaos_has_planned(batch->qp->chaos)))
		return n;
	while (i < n && !rsoft_chaos_is_planned(batch->qp->chaos, batch->done + i))
		i++;
	return i;
}

/*
 * Apply the rule of a request that must fail: 1 if it has ended, 0 if it will be flushed, or
 * RSOFT_WAIT_PEER if it waits in this state of the QP.
 */
static int
req_inject(struct rsoft_batch *batch, const struct rmem_send_wr *wr)
{
	struct rsoft_qp *qp = batch->qp;
	uint32_t state = __atomic_load_n(&qp->state, __ATOMIC_ACQUIRE);
	int status;

	if (state != RMEM_QPS_RTS) {
		if (!req_is_flushed(state))
			return RSOFT_WAIT_PEER;
		rsoft_chaos_unplan(qp->chaos, batch->done);
		return 0;
	}
	status = rsoft_chaos_inject(qp->chaos, batch->done, wr);
	if (status == RSOFT_CHAOS_EVENTS + RMEM_ASYNC_QP_FATAL) {
		rsoft_batch_flush(batch);
		rsoft_rq_fail_event(qp, RMEM_ASYNC_QP_FATAL);
		return 0;
	}
	if (status == RSOFT_CHAOS_EVENTS + RMEM_ASYNC_CQ_ERR) {
		rsoft_batch_lose(batch, wr);
		return 1;
	}
	batch->vendor_err = RMEM_VENDOR_ERR_CHAOS;
	rsoft_batch_fail(batch, wr, status);
	return 1;
}

/* req_run() for a QP with rules of chaos=. */
static __rte_noinline uint32_t
req_run_chaos(struct rsoft_batch *batch, const uint8_t *wrs, size_t stride, uint32_t n)
{
	uint32_t part, done, i = 0;
	int ended;

	while (i < n) {
		const uint8_t *at = wrs + i * stride;

		part = req_nb_unplanned(batch, n - i);
		if (part != 0) {
			done = req_run_any(batch, at, stride, part);
			i += done;
			if (done < part)
				break;
			continue;
		}
		ended = req_inject(batch, (const void *)at);
		if (ended < 0)
			break;
		i += (uint32_t)ended;
	}
	return i;
}

/* In parts for whose completions the CQ has space: none is executed after a lost completion. */
static __rte_noinline uint32_t
req_run_parts(struct rsoft_batch *batch, const uint8_t *wrs, size_t stride, uint32_t n)
{
	struct rsoft_cq *cq = rsoft_cq_of(batch->qp->qp.send_cq);
	uint32_t part, done, i = 0;

	do {
		part = rsoft_cq_part(cq, n - i);
		done = batch->qp->chaos == NULL
				? req_run_any(batch, wrs + i * stride, stride, part)
				: req_run_chaos(batch, wrs + i * stride, stride, part);
		rsoft_batch_end(batch);
		i += done;
	} while (i < n && done == part);
	return i;
}

uint32_t
rsoft_req_exec(struct rsoft_qp *qp, unsigned int lcore, bool is_queued, const void *wrs,
		size_t stride, uint32_t n)
{
	struct rsoft_batch batch;

	if (unlikely(rsoft_cq_is_overrun(qp->qp.send_cq) || rsoft_cq_is_overrun(qp->qp.recv_cq)))
		rsoft_rq_fail_event(qp, RMEM_ASYNC_QP_FATAL);
	rsoft_batch_begin(&batch, qp, lcore, is_queued);
	if (likely(qp->chaos == NULL && qp->qp.type != RMEM_QPT_XRC_SEND &&
			    rsoft_cq_part(rsoft_cq_of(qp->qp.send_cq), n) == n)) {
		n = req_run(&batch, wrs, stride, n);
		rsoft_batch_end(&batch);
		return n;
	}
	return req_run_parts(&batch, wrs, stride, n);
}

void
rsoft_req_drain(struct rsoft_qp *qp, unsigned int lcore)
{
	struct rsoft_sq *sq = &qp->sq;
	uint32_t prod = __atomic_load_n(&sq->prod, __ATOMIC_ACQUIRE);
	uint32_t n, done;

	do {
		n = RTE_MIN(prod - sq->cons, sq->mask + 1 - (sq->cons & sq->mask));
		/* Another process wrote invalid data: execute nothing until a reset. */
		if (unlikely(prod - sq->cons > sq->mask + 1 ||
				    !rsoft_sq_is_sound(qp, sq->cons, n))) {
			rsoft_rq_fail_event(qp, RMEM_ASYNC_QP_FATAL);
			return;
		}
		done = rsoft_req_exec(qp, lcore, true, rsoft_sq_slot(sq, sq->cons), sq->stride, n);
		rsoft_sq_pop(sq, done);
	} while (done == n && sq->cons != prod);
}

bool
rsoft_req_start_inv(struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint32_t *vendor_err)
{
	struct rsoft_key *key = rsoft_key_invalidate(qp, wr->invalidate_rkey, wr);

	if (key == NULL)
		*vendor_err = rsoft_key_inv_vendor_err(qp, wr->invalidate_rkey);
	else
		req_wait_inv(qp, 1, key, 0);
	return key != NULL;
}
