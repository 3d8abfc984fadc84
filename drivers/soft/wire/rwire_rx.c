/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Received packets: each is checked, and passed to the responder or the completer of its QP. */

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "../mem/rsoft_access.h"
#include "../mem/rsoft_grace.h"
#include "../queue/rsoft_sq.h"
#include "../queue/rsoft_resp.h"
#include "../queue/rsoft_rq.h"
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
/* Maximum number of attempts to receive without a reading of the clock. */
#define RX_MAX_UNTIMED 8
/* Length of the shortest SEND with a payload, and its pad. */
#define RX_MIN_SEND   (RWIRE_BTH_LEN + 4 + RWIRE_ICRC_LEN)
#define RX_CNPS_PER_S 20000 /* limit per QP: one per 50 us, as in DCQCN */

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
rx_has_pkey(const struct rwire_qp *q, const struct rwire_frame *frame, uint16_t pkey)
{
	const struct rsoft_tables *tables = &q->qp->dev->tables;
	const uint32_t first = rsoft_pkey_slot(rsoft_gid_port(frame->grh.gid_slot), 0);
	uint16_t own;
	uint32_t i;

	if (likely(q->qp->qp.qp_num != RSOFT_GSI_QP))
		return rx_is_same_pkey(__atomic_load_n(&q->pkey, __ATOMIC_RELAXED), pkey);
	for (i = first; i < first + tables->nb_pkeys; i++) {
		own = __atomic_load_n(&tables->pkey[i], __ATOMIC_RELAXED);
		if (own != 0 && rx_is_same_pkey(own ^ RWIRE_PKEY, pkey))
			return true;
	}
	return false;
}

/*
 * Find the QP of a packet, in RTR to ERR; NULL: the packet is dropped. pkey has the bits that
 * differ from RWIRE_PKEY.
 */
static inline struct rwire_qp *
rx_qp_of(struct rwire *wire, const struct rwire_frame *frame, uint32_t qpn, uint16_t pkey)
{
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
	if (unlikely((pkey | q->pkey) != 0 && !rx_has_pkey(q, frame, pkey))) {
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

/* Short messages: SENDs of one packet over shared memory, to receives of one SGE. */

/* Whether the packet is the next one, and no reply or error precedes it. */
static bool
rx_short_is_next(const struct rwire_qp *q, uint32_t psn)
{
	const struct rwire_rsp *rsp = &q->rsp;

	return rsp->psn == psn && rsp->reply_head == rsp->reply_tail &&
			(q->is_busy | rsp->has_dup_reply | rsp->has_failed | rsp->is_inv_waiting |
					rsp->message) == 0;
}

/* Place the message in the receive at the head, and complete it. Under rq.lock. */
static bool
rx_short_place(struct rsoft_qp *qp, const uint8_t *data, uint32_t length, uint16_t flags,
		uint32_t imm)
{
	const struct rsoft_qp *owner = rsoft_rq_owner(qp);
	const struct rsoft_key *key;
	const struct rsoft_rqe *rqe;
	struct rsoft_cqe cqe;
	uint64_t offset;
	uint32_t rights;

	/* Checked under the lock: after a flush, no receive may be consumed. */
	if (unlikely(__atomic_load_n(&qp->state, __ATOMIC_ACQUIRE) != RMEM_QPS_RTS ||
			    (rsoft_qp_is_claimed(qp) | qp->has_late_recv) != 0))
		return false;
	rqe = rsoft_rq_take(qp, length);
	if (unlikely(rqe == NULL || rqe->num_sge != 1 || rqe->sge[0].length < length))
		return false;
	key = rsoft_access_key(owner, owner->dev->lkey_xor, rqe->sge[0].lkey, rqe->sge[0].addr,
			length, RSOFT_NEED_WRITE, &offset, &rights);
	if (unlikely(key == NULL || (rights & RSOFT_SLOW) != 0))
		return false;
	if (unlikely(rsoft_copy(key->base + offset, data, length) != RSOFT_SIDE_NONE))
		return false;
	cqe.wr_id = rqe->wr_id;
	cqe.info = rsoft_cqe_info(RMEM_WC_SUCCESS, RMEM_WC_RECV, flags, qp->qp.qp_num);
	cqe.data = rsoft_cqe_data(length, imm);
	cqe.vendor_err = RMEM_VENDOR_ERR_NONE;
	RSOFT_COUNT(qp->rq.consumed, 1);
	rsoft_rq_complete(qp, rsoft_rq_reserve(qp), &cqe);
	return true;
}

/*
 * Execute a short message, and acknowledge it: the effect of rwire_resp_pkt(), without the checks
 * for other packets. False: nothing has changed, and rwire_resp_pkt() decides.
 */
static bool
rx_short_exec(struct rwire_qp *q, const struct rwire_frame *frame, const struct rwire_bth *bth)
{
	bool has_imm = RWIRE_BTH_OPCODE(bth) == RWIRE_SEND_ONLY_WITH_IMM, is_done;
	const uint32_t hdr = RWIRE_BTH_LEN + (has_imm ? 4 : 0);
	const uint32_t length = frame->len - hdr - RWIRE_ICRC_LEN - RWIRE_BTH_PAD(bth);
	uint16_t flags = RWIRE_BTH_IS_SOLICITED(bth) ? RMEM_WC_SOLICITED : 0;
	struct rsoft_qp *qp = q->qp;
	struct rwire_rsp *rsp = &q->rsp;
	uint32_t imm = 0;

	/* Before a completion with an event, rwire_resp_pkt() sends the acknowledgement. The length
	 * wraps around if the packet is too short. */
	if (unlikely(!rx_short_is_next(q, bth->psn & RWIRE_PSN_MASK) || length - 1 >= q->mtu ||
			    length > qp->max_msg_size || qp->qp.recv_cq->channel != NULL))
		return false;
	if (has_imm) {
		flags |= RMEM_WC_WITH_IMM;
		memcpy(&imm, frame->bth + RWIRE_BTH_LEN, sizeof(imm));
	}
	rte_ticketlock_lock(&qp->rq.lock);
	is_done = rx_short_place(qp, frame->data + hdr, length, flags, imm);
	rte_ticketlock_unlock(&qp->rq.lock);
	if (unlikely(!is_done))
		return false;
	rsp->done_psn = rsp->psn;
	rsp->psn = rwire_psn_add(rsp->psn, 1);
	rsp->msn = rwire_psn_add(rsp->msn, 1);
	rsp->done = length;
	rsp->is_nak_sent = rsp->is_acked = false;
	rsp->vendor_err = RMEM_VENDOR_ERR_NONE;
	if (RWIRE_BTH_IS_ACK_REQ(bth))
		rwire_reply_ack(q, rsp->done_psn, RWIRE_AETH_ACK);
	else
		rwire_reply_later(q);
	return true;
}

/* Receive a packet if it is a short message that can be executed; false: rx_frame() does. */
static bool
rx_short(struct rwire *wire, const struct rwire_frame *frame)
{
	const struct rwire_bth bth = rwire_bth_get(frame->bth);
	struct rwire_qp *q;

	if ((RWIRE_BTH_OPCODE(&bth) & ~1u) != RWIRE_SEND_ONLY || RWIRE_BTH_VERSION(&bth) != 0 ||
			frame->len < RX_MIN_SEND || frame->len > RWIRE_MAX_PKT ||
			frame->len % 4 != 0 || frame->shared != NULL ||
			(bth.qpn & RWIRE_QPN_MASK) == RMEM_MCAST_QPN ||
			(frame->has_icrc | frame->is_mcast | frame->is_grant_requested) ||
			(frame->grh.traffic_class & RSOFT_GRH_CE) == RSOFT_GRH_CE)
		return false;
	q = rx_qp_of(wire, frame, bth.qpn & RWIRE_QPN_MASK, RWIRE_BTH_PKEY(&bth) ^ RWIRE_PKEY);
	return q == NULL || (q->service == RWIRE_RC && rx_short_exec(q, frame, &bth));
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
	q = rx_qp_of(wire, frame, pkt.qpn, pkt.pkey);
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

/* Called when no packet that had arrived at a time is left. */
static void
rx_idle(struct rwire *wire, uint64_t since)
{
	const uint64_t now = wire->now;

	__atomic_store_n(&wire->quiet_at, since, __ATOMIC_RELAXED);
	/* The difference is also large if the clock was set back. */
	if (now - wire->idle_at < wire->idle_cycles)
		return;
	wire->idle_at = now;
	rsoft_lock(&wire->tx_lock);
	wire->port->ops->tx_idle(wire->port);
	rte_ticketlock_unlock(&wire->tx_lock);
	rwire_netif_poll(wire);
}

static void
rx_read_clock(struct rwire *wire)
{
	uint64_t now = rwire_clock();

	wire->nb_untimed = 0;
	__atomic_store_n(&wire->now, now, __ATOMIC_RELAXED);
	__atomic_store_n(&wire->inner->now, now, __ATOMIC_RELAXED);
}

/*
 * Get received packets, and read the clock. That takes longer than to find a packet in shared
 * memory, which does not wait for it. *since: a time before the packets were looked for.
 */
static uint32_t
rx_frames(struct rwire *wire, struct rwire_frame *frames[], uint64_t *since)
{
	struct rwire_port *port = wire->port;
	bool is_first = !rwire_is_lossless(wire) || ++wire->nb_untimed > RX_MAX_UNTIMED;
	uint32_t n;

	if (is_first)
		rx_read_clock(wire);
	*since = wire->now;
	n = port->ops->rx_burst(port, frames, RWIRE_RX_BURST);
	if (n != 0 || is_first)
		return n;
	rx_read_clock(wire);
	if (wire->now - *since < wire->rare_cycles)
		return 0;
	/* The program polls rarely, and the port has relied on a time long ago. */
	*since = wire->now;
	return port->ops->rx_burst(port, frames, RWIRE_RX_BURST);
}

/* Receive and answer once; return the number of packets. Under rx_lock. */
static uint32_t
rx_burst(struct rwire *wire, unsigned int lcore)
{
	struct rwire_frame *frames[RWIRE_RX_BURST];
	uint64_t since;
	uint32_t i, n = rx_frames(wire, frames, &since);

	for (i = 0; i < n; i++) {
		if (!rx_short(wire, frames[i]))
			rx_frame(wire, lcore, frames[i]);
	}
	if (n == 0)
		rx_idle(wire, since);
	if (unlikely(wire->xrc != NULL))
		n += rwire_xrc_poll(wire, lcore);
	if (!TAILQ_EMPTY(&wire->late_list)) {
		/* Until then the timers of peers rely on their report (rwire_timer.c). */
		if (n != 0)
			wire->port->ops->rx_release(wire->port);
		rwire_reply_late(wire, wire->now);
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
