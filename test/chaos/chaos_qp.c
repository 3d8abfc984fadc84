/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * QPs: made, connected, reset and destroyed; and the account of their completions. Requests of a
 * queue complete in order, each at most once; one that is passed over was either not signaled or
 * dropped by a reset.
 */

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "chaos.h"

int
ch_state_of(const struct ch_qp *q)
{
	struct rmem_qp_attr attr;

	return rmem_qp_query(q->qp, &attr) == 0 ? (int)attr.state : -1;
}

bool
ch_is_connected(const struct ch_qp *q)
{
	return q->is_connected && !q->has_failed;
}

struct ch_qp *
ch_peer(const struct ch_qp *q)
{
	return &ch.qps[q->index ^ 1];
}

uint8_t *
ch_scratch(const struct ch_qp *q, uint64_t seq)
{
	return q->scratch + seq % CH_NB_PENDING * CH_SCRATCH_SIZE;
}

static bool
create(struct ch_thread *t, struct ch_qp *q)
{
	const struct rmem_qp_conf conf = {
			.send_cq = t->cq,
			.recv_cq = t->cq,
			.max_send_wr = CH_DEPTH,
			.max_recv_wr = CH_NB_RECVS,
			.max_send_sge = 2,
			.max_recv_sge = 2,
			.max_inline_data = 64,
			.type = RMEM_QPT_RC,
			.flags = ch_one_in(t, 2) ? RMEM_QP_NO_INLINE_RECV : 0,
			.access = RMEM_ACCESS_REMOTE,
	};
	struct rmem_qp_attr attr;
	struct rmem_qp *qp;
	int ret = rmem_qp_create(ch.pds[q->pd], &conf, &qp);

	if (ret != 0 || rmem_qp_query(qp, &attr) != 0)
		return CH_FAIL(t, "rmem_qp_create: %s", strerror(-ret));
	ch_lock(&q->lock);
	q->qp = qp;
	q->addr = attr.addr;
	ch_unlock(&q->lock);
	return true;
}

bool
ch_qp_open(struct ch_thread *t, struct ch_qp *q)
{
	int ret;

	if (t->local == NULL) {
		ret = rmem_mr_reg(ch.pds[0], t->local_mem, t->local_size, 0, CH_ACCESS, &t->local);
		if (ret != 0)
			return CH_FAIL(t, "rmem_mr_reg: %s", strerror(-ret));
	}
	q->is_fresh = true;
	return create(t, q);
}

/* The thread's own MR is of PD 0: QPs of the other one use inline data and no receives. */
static bool
connect_to_peer(struct ch_thread *t, struct ch_qp *q)
{
	struct ch_qp *peer = ch_peer(q);
	struct rmem_qp_conn conn = {
			.timeout = (uint8_t)(4 + ch_below(t, 8)),
			.retry_cnt = (uint8_t)ch_below(t, 3),
			.rnr_retry = (uint8_t)ch_below(t, 7),
			.min_rnr_timer = (uint8_t)(1 + ch_below(t, 8)),
	};
	int ret;

	ch_lock(&peer->lock);
	conn.remote = peer->addr;
	ch_unlock(&peer->lock);
	if (conn.remote.qp_num == 0)
		return true;
	ch_note(t, "connect QP %u epoch %u to 0x%x", q->index, q->epoch, conn.remote.qp_num);
	ret = rmem_qp_connect(q->qp, &conn);
	q->is_connected = true;
	q->has_failed = false;
	return CH_CHECK(t, ret == 0, "rmem_qp_connect: %s", strerror(-ret));
}

/* Destroy it and create another: its windows are then valid for no QP. */
static bool
recreate(struct ch_thread *t, struct ch_qp *q)
{
	struct rmem_qp *old = q->qp;
	int ret;

	ch_note(t, "destroy QP %u", q->index);
	ch_bind_lost(t, q, true);
	/* Control threads call rmem_qp_set_error() under the lock. */
	ch_lock(&q->lock);
	q->qp = NULL;
	q->addr.qp_num = 0;
	ch_unlock(&q->lock);
	ret = rmem_qp_destroy(old);
	if (ret != 0)
		return CH_FAIL(t, "rmem_qp_destroy: %s", strerror(-ret));
	return create(t, q);
}

bool
ch_qp_reset(struct ch_thread *t, struct ch_qp *q)
{
	int ret;

	ch_note(t, "reset QP %u epoch %u", q->index, q->epoch);
	ret = rmem_qp_reset(q->qp);
	q->is_connected = false;
	if (ret != 0)
		return CH_FAIL(t, "rmem_qp_reset: %s", strerror(-ret));
	/* Earlier completions remain in the CQ. */
	if (!ch_poll(t))
		return false;
	ch_bind_lost(t, q, false);
	if (!ch_recvs_drop(t, q) || !ch_leases_recover(t, q))
		return false;
	q->epoch++;
	q->nb_messages = 0;
	q->is_fresh = true;
	/* The QP of the leases is not replaced, since its context exists. */
	if (q != t->qps[1] && ch_one_in(t, 8))
		return recreate(t, q);
	return true;
}

bool
ch_qp_tick(struct ch_thread *t, struct ch_qp *q)
{
	unsigned int nb = 1 + ch_below(t, 6);

	if (q->is_connected &&
			(q->has_failed || ch_one_in(t, 500) ||
					(ch_one_in(t, 50) && ch_state_of(q) == RMEM_QPS_ERR))) {
		if (!ch_qp_reset(t, q))
			return false;
	}
	if (!q->is_connected)
		return connect_to_peer(t, q);
	if (q->pd == 0 && !ch_post_recvs(t, q))
		return false;
	while (nb-- > 0) {
		if (!ch_request(t, q))
			return false;
	}
	return true;
}

bool
ch_post(struct ch_thread *t, struct ch_qp *q, struct rmem_send_wr *wr, const struct ch_pending *p,
		bool *is_ok)
{
	struct ch_queue *queue = &q->sends;
	struct ch_pending *to = &queue->pending[queue->tail % CH_NB_PENDING];
	int ret;

	*is_ok = true;
	/* Those of earlier epochs that never completed make way. */
	if (queue->tail - queue->head == CH_NB_PENDING) {
		const struct ch_pending *first = &queue->pending[queue->head % CH_NB_PENDING];

		if (first->epoch == q->epoch)
			return false;
		*is_ok = ch_done(t, q, first, -1);
		queue->head++;
		if (!*is_ok)
			return false;
	}
	*to = *p;
	to->seq = queue->tail;
	to->epoch = q->epoch;
	to->opcode = wr->opcode;
	to->is_signaled = (wr->flags & RMEM_SEND_SIGNALED) != 0;
	wr->wr_id = (uint64_t)q->index << 48 | to->seq;
	ret = rmem_post_send(q->qp, wr, 1);
	if (ret == 1) {
		queue->tail++;
		return true;
	}
	*is_ok = CH_CHECK(t, ret == -ENOSPC || ret == -EBUSY, "rmem_post_send of %u: %d",
			wr->opcode, ret);
	return false;
}

/* Requests before a completion of this epoch have succeeded, unless a reset dropped them. */
static bool
pass_over(struct ch_thread *t, struct ch_qp *q, struct ch_queue *queue, uint64_t seq)
{
	for (; queue->head < seq; queue->head++) {
		const struct ch_pending *p = &queue->pending[queue->head % CH_NB_PENDING];

		if (p->is_signaled && p->epoch == q->epoch)
			return CH_FAIL(t,
					"QP %u: %s %" PRIu64 " of opcode %u did not complete "
					"before %" PRIu64,
					q->index, queue == &q->recvs ? "receive" : "request",
					p->seq, p->opcode, seq);
		if (p->epoch == q->epoch && !ch_done(t, q, p, RMEM_WC_SUCCESS))
			return false;
		if (p->epoch != q->epoch && !ch_done(t, q, p, -1))
			return false;
	}
	return true;
}

static bool
account(struct ch_thread *t, const struct rmem_wc *wc)
{
	struct ch_qp *q = &ch.qps[wc->wr_id >> 48];
	const bool is_recv = (wc->wr_id & CH_RECV_BIT) != 0;
	struct ch_queue *queue = is_recv ? &q->recvs : &q->sends;
	const uint64_t seq = wc->wr_id & (CH_RECV_BIT - 1);
	struct ch_pending p;

	if (wc->wr_id >> 48 >= ch.nb_qps || q->owner != t)
		return CH_FAIL(t, "a completion of wr_id 0x%" PRIx64 " has no owner", wc->wr_id);
	if (seq < queue->head || seq >= queue->tail)
		return CH_FAIL(t,
				"QP %u: %s %" PRIu64 " of %" PRIu64 " to %" PRIu64
				" completes twice or was never posted; status %s",
				q->index, is_recv ? "receive" : "request", seq, queue->head,
				queue->tail, rmem_wc_status_str(wc->status));
	if (!pass_over(t, q, queue, seq))
		return false;
	p = queue->pending[seq % CH_NB_PENDING];
	queue->head = seq + 1;
	q->vendor_err = wc->vendor_err;
	if (p.epoch == q->epoch && wc->status != RMEM_WC_SUCCESS)
		q->has_failed = true;
	if (is_recv)
		return ch_received(t, q, &p, wc);
	if (wc->status == RMEM_WC_SUCCESS && !p.is_signaled)
		return CH_FAIL(t, "QP %u: a request that is not signaled completes", q->index);
	return ch_done(t, q, &p, wc->status);
}

bool
ch_poll(struct ch_thread *t)
{
	struct rmem_wc wc[16];
	int n, i;

	do {
		n = rmem_poll_cq(t->cq, wc, (uint16_t)(1 + ch_below(t, 16)));
		if (n < 0)
			return CH_FAIL(t, "rmem_poll_cq: %s", strerror(-n));
		if (n == 0)
			return true;
		n = ch_leases_take(t, wc, (unsigned int)n);
		for (i = 0; i < n; i++) {
			if (!account(t, &wc[i]))
				return false;
		}
	} while (n >= 0);
	return false;
}

/* With an error everything completes; a last request shows when. */
bool
ch_qp_drain(struct ch_thread *t, struct ch_qp *q)
{
	struct rmem_send_wr wr = {.opcode = RMEM_WR_RDMA_WRITE, .flags = RMEM_SEND_SIGNALED};
	const struct ch_pending none = {.bind = -1};
	const uint64_t deadline = ch_deadline();
	bool is_ok;
	int ret;

	if (q->qp == NULL || !q->is_connected)
		return true;
	ch_note(t, "drain QP %u", q->index);
	ret = rmem_qp_set_error(q->qp);
	if (ret != 0)
		return CH_FAIL(t, "rmem_qp_set_error: %s", strerror(-ret));
	while (!ch_post(t, q, &wr, &none, &is_ok)) {
		if (!is_ok || !ch_poll(t))
			return false;
		if (ch_is_late(deadline))
			return CH_FAIL(t, "QP %u: its send queue remains full", q->index);
	}
	while (q->sends.head != q->sends.tail) {
		if (!ch_poll(t))
			return false;
		if (ch_is_late(deadline))
			return CH_FAIL(t, "QP %u: %" PRIu64 " requests never complete", q->index,
					q->sends.tail - q->sends.head);
		sched_yield();
	}
	while (q->recvs.head != q->recvs.tail) {
		if (q->recvs.pending[q->recvs.head % CH_NB_PENDING].epoch != q->epoch) {
			q->recvs.head++;
			continue;
		}
		if (!ch_poll(t))
			return false;
		if (ch_is_late(deadline))
			return CH_FAIL(t, "QP %u: receives never complete", q->index);
		sched_yield();
	}
	return true;
}

bool
ch_qp_close(struct ch_thread *t, struct ch_qp *q)
{
	struct rmem_qp *old = q->qp;
	int ret;

	q->qp = NULL;
	ret = rmem_qp_destroy(old);
	for (; q->sends.head != q->sends.tail; q->sends.head++) {
		if (!ch_done(t, q, &q->sends.pending[q->sends.head % CH_NB_PENDING], -1))
			return false;
	}
	return CH_CHECK(t, ret == 0, "rmem_qp_destroy: %s", strerror(-ret));
}
