/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The engine's part of a QP, from connect to reset. */

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include <rte_cycles.h>

#include "../queue/rsoft_addr.h"
#include "../mem/rsoft_key.h"
#include "rwire.h"
#include "rwire_xrc.h"

/* Longest wait for space in the port when a QP ends, and the time after it without another one. */
#define QP_ANSWER_MS 50
#define QP_PAUSE_MS  1000

/* Path MTU for an enum of verbs (1: 256 to 5: 4096; else unknown), at most the port's. */
static uint32_t
qp_mtu(const struct rwire *wire, uint8_t code)
{
	uint32_t mtu = code >= 1 && code <= 5 ? UINT32_C(128) << code : wire->dev->address.mtu;

	return RTE_MIN(mtu, wire->dev->address.mtu);
}

/* IBTA 11.2.5.2: 4.096 us * 2^timeout; 0: infinite. */
static uint64_t
qp_timeout(uint8_t timeout)
{
	if (timeout == 0)
		return 0;
	return (uint64_t)((double)rte_get_tsc_hz() * 4.096e-6 * (double)(UINT64_C(1) << timeout));
}

static void
qp_init_req(struct rwire_qp *q, uint32_t psn, const struct rmem_qp_conn *conn)
{
	struct rwire_req *req = &q->req;

	req->psn = req->next_psn = req->end_psn = req->una = req->asked_psn = psn;
	rwire_set_window(q, q->window);
	req->sq_pos = req->begun = q->qp->sq.cons;
	req->retry_left = conn->retry_cnt;
	req->rnr_left = conn->rnr_retry;
	req->timeout = rwire_service_is_reliable(q->service) ? qp_timeout(conn->timeout) : 0;
}

static uint8_t
qp_service(const struct rsoft_qp *qp)
{
	if (rsoft_qp_is_xrc(qp))
		return RWIRE_XRC;
	return qp->qp.type == RMEM_QPT_RC ? RWIRE_RC : RWIRE_UC;
}

uint16_t
rwire_qp_pkey(const struct rsoft_qp *qp)
{
	const uint16_t *entry = &qp->dev->tables.pkey[qp->pkey_slot];

	/* None, which matches no packet: QP 1 has the P_Keys of all ports. */
	if (qp->qp.qp_num == RSOFT_GSI_QP)
		return RWIRE_PKEY;
	return __atomic_load_n(entry, __ATOMIC_RELAXED) ^ RWIRE_PKEY;
}

void
rwire_qp_set_pkey(struct rsoft_qp *qp)
{
	struct rwire_qp *q = __atomic_load_n(&qp->wire, __ATOMIC_ACQUIRE);

	if (q != NULL)
		__atomic_store_n(&q->pkey, rwire_qp_pkey(qp), __ATOMIC_RELAXED);
}

void
rwire_qp_note_xrc(struct rwire *wire)
{
	rsoft_lock(&wire->rx_lock);
	__atomic_store_n(&wire->has_xrc, true, __ATOMIC_RELAXED);
	rte_ticketlock_unlock(&wire->rx_lock);
}

int
rwire_qp_connect(struct rsoft_qp *qp, const struct rmem_qp_conn *conn)
{
	struct rwire *wire = qp->dev->wire;
	char text[RWIRE_ADDR_TEXT];
	struct rwire_addr addr;
	struct rwire_qp *q;

	memcpy(addr.gid, conn->remote.gid, sizeof(addr.gid));
	if (wire == NULL || !rsoft_addr_can_reach(qp->dev, qp->gid_slot, addr.gid))
		return -EINVAL;
	if (!rwire_allow_has(&wire->allow, &addr)) {
		RSOFT_LOG(ERR, "QP 0x%06x%s: peer %s is not in allow=%s", qp->qp.qp_num,
				RSOFT_QP_NAME(&qp->qp), rwire_addr_text(&addr, text),
				qp->dev->args.allow);
		return -EINVAL;
	}
	q = calloc(1, sizeof(*q));
	if (q == NULL)
		return -ENOMEM;
	q->req.wqe = calloc(qp->sq.mask + 1, sizeof(*q->req.wqe));
	if (q->req.wqe == NULL || rwire_owners_hold(&wire->owners, &addr) != 0) {
		free(q->req.wqe);
		free(q);
		return -ENOMEM;
	}
	STAILQ_INIT(&q->held);
	q->qp = qp;
	q->wire = wire;
	q->addr = addr;
	q->qpn = conn->remote.qp_num;
	q->service = qp_service(qp);
	q->pkey = rwire_qp_pkey(qp);
	q->grh.traffic_class = conn->traffic_class;
	q->grh.gid_slot = qp->gid_slot;
	q->mtu = qp_mtu(wire, conn->remote.mtu);
	q->window = RTE_MIN(RWIRE_WINDOW_BYTES / q->mtu, (uint32_t)RWIRE_MAX_WINDOW);
	qp_init_req(q, qp->psn, conn);
	q->rsp.psn = conn->remote.psn & RWIRE_PSN_MASK;
	q->rsp.done_psn = rwire_psn_add(q->rsp.psn, RWIRE_PSN_MASK);
	__atomic_store_n(&qp->wire, q, __ATOMIC_RELEASE);
	return 0;
}

void
rwire_qp_start(struct rsoft_qp *qp)
{
	if (qp->wire != NULL)
		qp_init_req(qp->wire, qp->psn, &qp->conn);
}

void
rwire_qp_restart(struct rsoft_qp *qp)
{
	if (qp->wire != NULL)
		qp_init_req(qp->wire, qp->wire->req.psn, &qp->conn);
}

void
rwire_qp_set_retries(struct rsoft_qp *qp)
{
	struct rwire_req *req;

	if (qp->wire == NULL)
		return;
	req = &qp->wire->req;
	if (!rwire_service_is_reliable(qp->wire->service))
		return;
	req->timeout = qp_timeout(qp->conn.timeout);
	req->retry_left = qp->conn.retry_cnt;
	req->rnr_left = qp->conn.rnr_retry;
	/* Restart or stop the timer of packets in flight. */
	req->deadline = 0;
	if (req->timeout != 0 && req->una != req->end_psn && req->rnr_until == 0)
		req->deadline = rwire_clock() + req->timeout;
}

void
rwire_qp_set_rate(struct rsoft_qp *qp, uint32_t kbps)
{
	struct rwire_req *req;

	if (qp->wire == NULL)
		return;
	req = &qp->wire->req;
	req->pace = kbps != 0 ? rte_get_tsc_hz() / 1000 * 1024 * 8 / kbps : 0;
	req->pace_at = rwire_clock();
	req->pace_cost = 0;
	/* The next request finds out again whether it can be copied. */
	req->direct = kbps == 0 ? RWIRE_DIRECT_UNKNOWN : RWIRE_DIRECT_FAILED;
}

bool
rwire_qp_is_draining(const struct rsoft_qp *qp)
{
	if (qp->sq.wait == RSOFT_WAIT_GRACE)
		return true;
	return qp->wire != NULL &&
			(qp->wire->req.begun != qp->sq.cons || qp->wire->req.direct_done != 0);
}

bool
rwire_qp_has_more(const struct rsoft_qp *qp)
{
	return qp->wire != NULL && qp->wire->req.has_more;
}

bool
rwire_qp_is_quiet(const struct rsoft_qp *qp)
{
	return qp->wire != NULL && qp->wire->req.is_quiet && qp->chaos == NULL &&
			!rsoft_qp_is_claimed(qp);
}

uint64_t
rwire_qp_copied(const struct rsoft_qp *qp)
{
	return qp->wire != NULL ? qp->wire->req.copied : 0;
}

/* Whether an ending QP may still wait for space; a peer that reads nothing must not delay many. */
static bool
qp_may_wait(struct rwire *wire, uint64_t start)
{
	uint64_t ms = rte_get_tsc_hz() / 1000, now = rwire_clock();

	if (wire->full_at != 0 && now - wire->full_at < QP_PAUSE_MS * ms)
		return false;
	wire->full_at = now - start < QP_ANSWER_MS * ms ? 0 : now;
	return wire->full_at == 0;
}

/*
 * Acknowledge what the QP has executed: nothing answers when the peer sends it again. Under
 * rx_lock, which is released while the port is full.
 */
static void
qp_answer(struct rwire_qp *q)
{
	struct rwire *wire = q->wire;
	uint64_t start = rwire_clock();

	while (q->is_listed && !q->rsp.is_inv_waiting && !rwire_reply_run(q) &&
			qp_may_wait(wire, start)) {
		rte_ticketlock_unlock(&wire->rx_lock);
		sched_yield();
		rsoft_lock(&wire->rx_lock);
	}
	rsoft_lock(&wire->tx_lock);
	wire->port->ops->tx_flush(wire->port);
	rte_ticketlock_unlock(&wire->tx_lock);
}

void
rwire_qp_stop(struct rsoft_qp *qp)
{
	struct rwire_qp *q = qp->wire;
	struct rwire_xrc_out *away;
	int state;

	if (q == NULL)
		return;
	/* A thread cancelled in a system call would keep the lock. */
	state = rsoft_cancel_disable();
	rsoft_lock(&q->wire->rx_lock);
	if (q->is_listed)
		qp_answer(q);
	if (q->is_listed)
		TAILQ_REMOVE(&q->wire->reply_list, q, next);
	q->is_listed = false;
	rwire_reply_end_late(q);
	while ((away = LIST_FIRST(&q->away)) != NULL)
		rwire_xrc_out_close(away);
	rwire_xrc_drop_held(q);
	rte_ticketlock_unlock(&q->wire->rx_lock);
	rsoft_cancel_restore(state);
}

void
rwire_qp_free(struct rsoft_qp *qp)
{
	struct rwire_qp *q = qp->wire;

	if (q == NULL)
		return;
	__atomic_store_n(&qp->wire, NULL, __ATOMIC_RELAXED);
	rwire_owners_put(&q->wire->owners, &q->addr);
	if (q->rsp.is_inv_waiting)
		rsoft_key_release(q->rsp.inv_key);
	free(q->req.wqe);
	free(q);
}
