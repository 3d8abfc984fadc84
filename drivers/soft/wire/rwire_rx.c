/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Received packets: each is checked, and passed to the responder or the completer of its QP. */

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "../mem/rsoft_grace.h"
#include "../queue/rsoft_sq.h"
#include "../queue/rsoft_resp.h"
#include "rwire.h"
#include "rwire_xrc.h"

/* Number of attempts to receive without packets between two calls of sched_yield(). */
#define RX_CALLS_PER_YIELD 2 /* if receiving needs a system call */
#define RX_POLLS_PER_YIELD 4096
/* Number of bursts that rwire_catch_up() receives: more than a ring or a socket holds, but
 * limited. */
#define RX_MAX_BURSTS 64
/* Maximum number of responders that answer in one call, if they wait for space in the ring. */
#define RX_MAX_ANSWERS 64
#define RX_CNPS_PER_S  20000 /* limit per QP: one per 50 us, as in DCQCN */

/*
 * Whether two P_Keys match: same partition, and one of the two is a full member (IBTA 10.9.3).
 * Both are XORed with RWIRE_PKEY.
 */
static bool
rx_is_same_pkey(uint16_t own, uint16_t pkey)
{
	return ((own ^ pkey) & 0x7fff) == 0 && (own & pkey & 0x8000) == 0;
}

/* Whether the P_Key of a packet is that of its QP or, for QP 1, in the table of its port. */
static bool
rx_has_pkey(const struct rwire_qp *q, const struct rwire_frame *frame, const struct rwire_pkt *pkt)
{
	const struct rsoft_tables *tables = &q->qp->dev->tables;
	const uint32_t first = rsoft_pkey_slot(rsoft_gid_port(frame->grh.gid_slot), 0);
	uint16_t own;
	uint32_t i;

	if (likely(q->qp->qp.qp_num != RSOFT_GSI_QP))
		return rx_is_same_pkey(__atomic_load_n(&q->pkey, __ATOMIC_RELAXED), pkt->pkey);
	for (i = first; i < first + tables->nb_pkeys; i++) {
		own = __atomic_load_n(&tables->pkey[i], __ATOMIC_RELAXED);
		if (own != 0 && rx_is_same_pkey(own ^ RWIRE_PKEY, pkt->pkey))
			return true;
	}
	return false;
}

/* Find the QP of a packet, in RTR to ERR; NULL: the packet is dropped. */
static struct rwire_qp *
rx_qp_of(struct rwire *wire, const struct rwire_frame *frame, const struct rwire_pkt *pkt)
{
	const uint32_t qpn = pkt->qpn;
	struct rsoft_qp *qp = __atomic_load_n(
			&wire->dev->qps[qpn & wire->dev->qp_mask], __ATOMIC_ACQUIRE);
	struct rwire_qp *q = NULL;

	if (qp != NULL && qp->qp.qp_num == qpn &&
			__atomic_load_n(&qp->state, __ATOMIC_ACQUIRE) != RMEM_QPS_RESET)
		q = __atomic_load_n(&qp->wire, __ATOMIC_ACQUIRE);
	if (q == NULL) {
		RWIRE_COUNT(wire->stats.no_qp);
		return NULL;
	}
	if (q->service != RWIRE_UD ? !rwire_addr_is_equal(&q->addr, &frame->flow.src)
				   : !rwire_allow_has(&wire->allow, &frame->flow.src)) {
		RWIRE_COUNT(wire->stats.wrong_peer);
		return NULL;
	}
	/* QP 1 belongs to all ports. */
	if (unlikely(rsoft_gid_port(q->grh.gid_slot) != rsoft_gid_port(frame->grh.gid_slot)) &&
			qpn != RSOFT_GSI_QP) {
		RWIRE_COUNT(wire->stats.no_qp);
		return NULL;
	}
	if (unlikely((pkt->pkey | q->pkey) != 0 && !rx_has_pkey(q, frame, pkt))) {
		RWIRE_COUNT(wire->stats.drop_pkey);
		return NULL;
	}
	return q;
}

static void
rx_execute(struct rwire_qp *q, unsigned int lcore, const struct rwire_pkt *pkt)
{
	struct rwire_rsp *rsp = &q->rsp;

	if (unlikely(!rsoft_resp_is_ready(q->qp, false))) {
		if (!rwire_service_is_reliable(q->service))
			return;
		/* The NAK, or the acknowledgement of an executed request, may have been lost. */
		if (rsp->has_failed)
			rwire_reply_ack(q, rsp->ack_psn, rsp->syndrome);
		else if ((pkt->info & RWIRE_IS_MESSAGE) && rwire_psn_diff(pkt->psn, rsp->psn) < 0)
			rwire_reply_ack(q, rsp->done_psn, RWIRE_AETH_ACK);
		return;
	}
	rwire_resp_pkt(q, lcore, pkt);
	/* Read the memory before the next request can write it. */
	if (rsp->reply_head != rsp->reply_tail || rsp->has_dup_reply || rsp->is_inv_waiting)
		rwire_resp_run(q, lcore);
}

static void
rx_request(struct rwire_qp *q, unsigned int lcore, const struct rwire_pkt *pkt)
{
	if (unlikely((q->rsp.nb_away | q->rsp.nb_held) != 0 || q->rsp.fetch != NULL) &&
			rwire_xrc_hold(q, pkt))
		return;
	rx_execute(q, lcore, pkt);
}

/*
 * A packet of a connected QP has the ECN mark Congestion Experienced: send a CNP (IBTA A17.9). If
 * the peer is a NIC, it then reduces its rate.
 */
static void
rx_mark(struct rwire_qp *q)
{
	static const uint8_t reserved[RWIRE_CNP_LEN];
	struct rwire_pkt pkt = {.service = RWIRE_CN,
			.opcode = RWIRE_CNP,
			.qpn = q->qpn,
			.pkey = q->pkey,
			.payload_len = RWIRE_CNP_LEN};
	struct rwire *wire = q->wire;
	struct rwire_frame *frame;

	RWIRE_COUNT(wire->stats.ecn_marked);
	/* The difference is also large if the clock was set back. */
	if (q->cnp_at != 0 && wire->now - q->cnp_at < rte_get_tsc_hz() / RX_CNPS_PER_S)
		return;
	rsoft_lock(&wire->tx_lock);
	frame = rwire_tx_get(q);
	if (frame != NULL) {
		frame->grh.traffic_class &= (uint8_t)~RSOFT_GRH_CE;
		memcpy(frame->bth + RWIRE_BTH_LEN, reserved, sizeof(reserved));
		rwire_tx_send(wire, frame, &pkt);
		wire->has_unflushed = true;
		RWIRE_COUNT(wire->stats.cnps_sent);
		q->cnp_at = wire->now;
	}
	rte_ticketlock_unlock(&wire->tx_lock);
}

/* Handle a packet whose service differs from its QP's: a CNP; others are dropped. */
static void
rx_cnp(struct rwire_qp *q, const struct rwire_pkt *pkt)
{
	if (pkt->service == RWIRE_CN && pkt->payload_len == RWIRE_CNP_LEN)
		RWIRE_COUNT(q->wire->stats.cnps_received);
	else
		RWIRE_COUNT(q->wire->stats.malformed);
}

/* Use the payload in the memory of the peer. False: the packet has no payload, or its own. */
static bool
rx_share(const struct rwire_frame *frame, struct rwire_pkt *pkt)
{
	if (!rwire_service_is_reliable(pkt->service) || (pkt->info & RWIRE_IS_REQUEST) == 0 ||
			(pkt->info & RWIRE_IS_MESSAGE) == 0 || pkt->payload_len != 0)
		return false;
	pkt->is_shared = true;
	pkt->payload = frame->shared;
	pkt->payload_len = frame->shared_len;
	return true;
}

static void
rx_response(struct rwire_qp *q, unsigned int lcore, const struct rwire_pkt *pkt)
{
	rsoft_lock(&q->qp->sq.lock);
	if (rwire_state_is_requesting(__atomic_load_n(&q->qp->state, __ATOMIC_ACQUIRE))) {
		rwire_comp_pkt(q, lcore, pkt);
		rwire_req_run(q, lcore, false);
		if (unlikely(q->qp->sq.has_to_report))
			rsoft_sq_report_drained(q->qp, rwire_qp_is_draining(q->qp));
	}
	rte_ticketlock_unlock(&q->qp->sq.lock);
}

/* Whether an XRC QP processes the packet: an XRC_RECV QP is only a responder. */
static bool
rx_has_half(const struct rwire_qp *q, const struct rwire_pkt *pkt)
{
	return ((pkt->info & RWIRE_IS_REQUEST) != 0) == (q->qp->xrcd != 0);
}

static void
rx_frame(struct rwire *wire, unsigned int lcore, struct rwire_frame *frame)
{
	struct rwire_pkt pkt;
	struct rwire_qp *q;

	if (!rwire_pkt_parse(frame->bth, frame->len, &pkt)) {
		RWIRE_COUNT(wire->stats.malformed);
		return;
	}
	if (frame->has_icrc &&
			!rwire_icrc_is_good(
					frame->bth, frame->len, &frame->flow, frame->is_id_known)) {
		RWIRE_COUNT(wire->stats.icrc_errors);
		return;
	}
	pkt.has_icrc = frame->has_icrc;
	if (frame->shared == NULL) {
		pkt.payload = frame->data + (pkt.payload - frame->bth);
	} else if (!rx_share(frame, &pkt)) {
		RWIRE_COUNT(wire->stats.malformed);
		return;
	}
	if (unlikely(frame->is_mcast || pkt.qpn == RMEM_MCAST_QPN)) {
		rwire_ud_group_pkt(wire, frame, &pkt);
		return;
	}
	q = rx_qp_of(wire, frame, &pkt);
	if (q == NULL)
		return;
	if (unlikely(pkt.service != q->service)) {
		rx_cnp(q, &pkt);
		return;
	}
	if (pkt.service == RWIRE_UD) {
		rwire_ud_pkt(q, frame, &pkt);
		return;
	}
	if (unlikely(pkt.service == RWIRE_XRC) && !rx_has_half(q, &pkt)) {
		RWIRE_COUNT(wire->stats.malformed);
		return;
	}
	if (unlikely((frame->grh.traffic_class & RSOFT_GRH_CE) == RSOFT_GRH_CE))
		rx_mark(q);
	if (pkt.info & RWIRE_IS_REQUEST) {
		rx_request(q, lcore, &pkt);
		/* A grant depends on the PD of a QP, which an XRC QP does not have. */
		if (unlikely(frame->is_grant_requested) && q->service != RWIRE_XRC)
			wire->port->ops->rx_grant(wire->port, frame, q->qp, pkt.rkey);
		return;
	}
	rx_response(q, lcore, &pkt);
}

/* Send pending packets of a responder, and execute packets that were held; true if all are sent. */
static bool
rx_run(struct rwire_qp *q, unsigned int lcore)
{
	struct rwire_xrc_held *held;
	bool is_done = rwire_resp_run(q, lcore);

	while (is_done && unlikely(q->rsp.nb_held != 0) && q->rsp.nb_away == 0 &&
			q->rsp.fetch == NULL) {
		held = rwire_xrc_take_held(q);
		rx_execute(q, lcore, &held->pkt);
		free(held);
		is_done = rwire_resp_run(q, lcore);
	}
	return is_done;
}

/* Send pending packets of responders. Those that fail have their turn after all others. */
static void
rx_answer(struct rwire *wire, unsigned int lcore)
{
	struct rwire_qp *q, *left = NULL;
	uint32_t nb;

	for (nb = 0; nb < RX_MAX_ANSWERS; nb++) {
		q = TAILQ_FIRST(&wire->reply_list);
		if (q == left)
			break;
		q->is_listed = !rx_run(q, lcore);
		TAILQ_REMOVE(&wire->reply_list, q, next);
		if (!q->is_listed)
			continue;
		TAILQ_INSERT_TAIL(&wire->reply_list, q, next);
		if (left == NULL)
			left = q;
	}
	/* Other ports may hold packets until the next flush. */
	if (!wire->has_unflushed && rwire_is_lossless(wire))
		return;
	wire->has_unflushed = false;
	rsoft_lock(&wire->tx_lock);
	wire->port->ops->tx_flush(wire->port);
	rte_ticketlock_unlock(&wire->tx_lock);
}

/* Called when no packet has arrived. */
static void
rx_idle(struct rwire *wire, uint64_t now)
{
	__atomic_store_n(&wire->quiet_at, now, __ATOMIC_RELAXED);
	/* The difference is also large if the clock was set back. */
	if (now - wire->idle_at < wire->idle_cycles)
		return;
	wire->idle_at = now;
	rsoft_lock(&wire->tx_lock);
	wire->port->ops->tx_idle(wire->port);
	rte_ticketlock_unlock(&wire->tx_lock);
	rwire_netif_poll(wire);
}

/* Receive and answer once; return the number of packets. Under rx_lock. */
static uint32_t
rx_burst(struct rwire *wire, unsigned int lcore)
{
	struct rwire_frame *frames[RWIRE_RX_BURST];
	uint64_t now = rwire_clock();
	uint32_t i, n;

	__atomic_store_n(&wire->now, now, __ATOMIC_RELAXED);
	__atomic_store_n(&wire->inner->now, now, __ATOMIC_RELAXED);
	n = wire->port->ops->rx_burst(wire->port, frames, RWIRE_RX_BURST);
	for (i = 0; i < n; i++)
		rx_frame(wire, lcore, frames[i]);
	if (n == 0)
		rx_idle(wire, now);
	if (unlikely(wire->xrc != NULL))
		n += rwire_xrc_poll(wire, lcore);
	if (!TAILQ_EMPTY(&wire->late_list)) {
		/* Until then the timers of peers rely on this report (rwire_timer.c). */
		wire->port->ops->rx_release(wire->port);
		rwire_reply_late(wire, now);
	}
	if (n != 0 || !TAILQ_EMPTY(&wire->reply_list))
		rx_answer(wire, lcore);
	return n;
}

bool
rwire_progress(struct rwire *wire, unsigned int lcore)
{
	bool is_busy, is_safe;
	int state = 0;

	if (!rte_ticketlock_trylock(&wire->rx_lock))
		return false;
	is_safe = rwire_is_uncancellable(wire);
	/* The port makes system calls: a thread cancelled in one would keep the locks. */
	if (!is_safe)
		state = rsoft_cancel_disable();
	RSOFT_COUNT(wire->nb_polls, 1);
	is_busy = rx_burst(wire, lcore) != 0 || !TAILQ_EMPTY(&wire->reply_list);
	rte_ticketlock_unlock(&wire->rx_lock);
	if (!is_safe)
		rsoft_cancel_restore(state);
	return is_busy;
}

void
rwire_catch_up(struct rwire *wire)
{
	unsigned int lcore = rsoft_grace_enter(), i;
	int state;

	if (lcore == LCORE_ID_ANY)
		return;
	state = rsoft_cancel_disable();
	rsoft_lock(&wire->rx_lock);
	for (i = 0; i < RX_MAX_BURSTS && rx_burst(wire, lcore) != 0; i++)
		;
	rte_ticketlock_unlock(&wire->rx_lock);
	rsoft_cancel_restore(state);
	rsoft_grace_leave(lcore);
}

void
rwire_yield(struct rwire *wire)
{
	uint32_t nb = __atomic_load_n(&wire->nb_idle, __ATOMIC_RELAXED);

	if (likely(nb < (wire->port->has_syscall ? RX_CALLS_PER_YIELD : RX_POLLS_PER_YIELD)))
		return;
	__atomic_store_n(&wire->nb_idle, 0, __ATOMIC_RELAXED);
	sched_yield();
}

void
rwire_wake(struct rwire *wire)
{
	uint64_t one = 1;
	int state;

	if (wire->dev->args.progress != RSOFT_PROGRESS_THREAD)
		return;
	/* A post is not a cancellation point. The write would block only after 2^64 - 2 values. */
	state = rsoft_cancel_disable();
	(void)!write(wire->wake_fd, &one, sizeof(one));
	rsoft_cancel_restore(state);
}

void
rwire_idle(struct rwire *wire)
{
	uint32_t nb = __atomic_load_n(&wire->nb_idle, __ATOMIC_RELAXED) + 1;

	__atomic_store_n(&wire->nb_idle, nb, __ATOMIC_RELAXED);
}
