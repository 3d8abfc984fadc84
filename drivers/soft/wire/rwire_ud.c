/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * UD: each request is sent as one packet to the address of its destination, and each received
 * packet is placed in a receive. A message to a QP of this process is delivered without a packet,
 * unless loop=1.
 *
 * Invariant: a request completes when its packet is sent, so sq_pos and begun of struct rwire_req
 * are the head of the send queue.
 */

#include <errno.h>
#include <stdlib.h>

#include "../chaos/rsoft_chaos.h"
#include "../queue/rsoft_addr.h"
#include "../queue/rsoft_group.h"
#include "../queue/rsoft_req.h"
#include "../queue/rsoft_sq.h"
#include "../queue/rsoft_ud.h"
#include "rwire.h"

#define UD_BURST 64 /* messages sent per call */
/* Messages are dropped if a peer or port accepts none for longer than this. */
#define UD_WAIT_MS 500

int
rwire_ud_start(struct rsoft_qp *qp)
{
	struct rwire_qp *q = calloc(1, sizeof(*q));

	if (q == NULL)
		return -ENOMEM;
	q->qp = qp;
	q->wire = qp->dev->wire;
	q->service = RWIRE_UD;
	q->pkey = rwire_qp_pkey(qp);
	q->grh.gid_slot = qp->gid_slot;
	q->mtu = q->wire->dev->address.mtu;
	__atomic_store_n(&qp->wire, q, __ATOMIC_RELEASE);
	return 0;
}

/* Whether the destination is a device of this process, so that no packet is needed. */
static bool
ud_is_here(const struct rwire_qp *q, const struct rsoft_ud_dest *dest)
{
	bool is_here;

	/* A multicast group; or an AH of another PD, or of a group without its QP number. */
	if (unlikely(dest->qpn >> 24 != 0))
		return dest->qpn != RSOFT_UD_GROUP;
	if (rsoft_gid_is_local(dest->gid))
		return true;
	if (q->qp->dev->args.loop != 0)
		return false;
	rsoft_lock(&rsoft_domain->lock);
	is_here = rsoft_addr_wire_dev(dest->gid) != NULL;
	rte_ticketlock_unlock(&rsoft_domain->lock);
	return is_here;
}

/* The port is full: wait, or drop the message. */
static int
ud_wait(struct rwire_qp *q)
{
	return rwire_tx_is_late(q, UD_WAIT_MS) ? RMEM_WC_SUCCESS : RSOFT_WAIT_WIRE;
}

/* The P_Key of a message; for QP 1, the first one of the port that sends it. */
static uint16_t
ud_pkey(const struct rwire_qp *q, const struct rsoft_ud_dest *dest)
{
	const struct rsoft_tables *tables = &q->qp->dev->tables;
	const uint32_t first = rsoft_pkey_slot(rsoft_gid_port(dest->grh.gid_slot), 0);
	uint16_t pkey = 0;
	uint32_t i;

	if (likely(q->qp->qp.qp_num != RSOFT_GSI_QP))
		return q->pkey;
	for (i = first; i < first + tables->nb_pkeys && pkey == 0; i++)
		pkey = __atomic_load_n(&tables->pkey[i], __ATOMIC_RELAXED);
	return pkey ^ RWIRE_PKEY;
}

/* Headers of the packet of a request. */
static struct rwire_pkt
ud_packet(const struct rwire_qp *q, const struct rmem_send_wr *wr, const struct rsoft_ud_dest *dest,
		uint32_t length)
{
	bool is_imm = wr->opcode == RMEM_WR_SEND_WITH_IMM;

	return (struct rwire_pkt){.service = RWIRE_UD,
			.opcode = is_imm ? RWIRE_SEND_ONLY_WITH_IMM : RWIRE_SEND_ONLY,
			.is_solicited = (wr->flags & RMEM_SEND_SOLICITED) != 0,
			.qpn = dest->qpn,
			.pkey = ud_pkey(q, dest),
			.psn = q->req.psn,
			.qkey = rsoft_ud_qkey(q->qp, dest),
			.src_qp = q->qp->qp.qp_num,
			.imm = is_imm ? wr->imm_data : 0,
			.payload_len = length};
}

/* Send a request as a packet; return an enum rmem_wc_status, or RSOFT_WAIT_WIRE. Under tx_lock. */
static int
ud_send_packet(struct rwire_qp *q, const struct rmem_send_wr *wr, const struct rsoft_ud_dest *dest,
		uint32_t length, uint32_t *vendor_err)
{
	struct rwire_pkt pkt = ud_packet(q, wr, dest, length);
	struct rwire_port *port = q->wire->port;
	struct rwire_frame *frame;
	struct rwire_addr addr;
	int status;

	memcpy(addr.gid, dest->gid, sizeof(addr.gid));
	frame = rwire_port_tx_get(port, dest->grh.gid_slot, &addr);
	if (frame == NULL)
		return ud_wait(q);
	q->req.deadline = 0;
	frame->grh = dest->grh;
	status = rwire_sge_copy(q->qp, wr, 0, frame->bth + rwire_hdr_len(rwire_pkt_info(&pkt)),
			length, false, vendor_err);
	if (status != RMEM_WC_SUCCESS)
		return status;
	rwire_tx_send(q->wire, frame, &pkt);
	q->req.psn = rwire_psn_add(q->req.psn, 1);
	return RMEM_WC_SUCCESS;
}

/* Deliver a message to the QPs of this process, unless packets do so (loop=1). */
static int
ud_loop(struct rwire_qp *q, const struct rmem_send_wr *wr, const struct rsoft_ud_dest *dest,
		uint8_t *data, uint32_t length, uint32_t *vendor_err)
{
	const struct rsoft_span from = {.ptr = data, .length = length, .kind = RSOFT_SPAN_FLAT};
	bool is_imm = wr->opcode == RMEM_WR_SEND_WITH_IMM;
	struct rsoft_qp *qp = q->qp;
	/* Multicast groups belong to the first GID. */
	const struct rsoft_ud_msg msg = {.src_gid = qp->dev->address.gid,
			.dst_gid = dest->gid,
			.src_qp = qp->qp.qp_num,
			.qkey = rsoft_ud_qkey(qp, dest),
			.imm_data = is_imm ? wr->imm_data : 0,
			.flags = (uint16_t)((is_imm ? RMEM_WC_WITH_IMM : 0) |
					(wr->flags & RMEM_SEND_SOLICITED ? RMEM_WC_SOLICITED : 0)),
			.grh = dest->grh,
			.length = length};
	uint32_t nb;
	int status;

	if (q->req.looped == qp->sq.cons + 1)
		return RMEM_WC_SUCCESS;
	status = rsoft_ud_deliver_group(qp, &msg, &from, qp->dev->args.loop == 0, &nb);
	if (status != RMEM_WC_SUCCESS)
		*vendor_err = RMEM_VENDOR_ERR_PAGE_FAULT;
	q->req.looped = qp->sq.cons + 1;
	return status;
}

/* Whether the address is of a device of this process, which gets messages without packets. */
static bool
ud_is_own(const struct rwire *wire, const struct rwire_addr *addr)
{
	bool is_own;

	if (wire->dev->args.loop != 0)
		return false;
	rsoft_lock(&rsoft_domain->lock);
	is_own = rsoft_addr_wire_dev(addr->gid) != NULL;
	rte_ticketlock_unlock(&rsoft_domain->lock);
	return is_own;
}

/*
 * Whether packets can be sent to all members. Return RMEM_WC_SUCCESS, after clearing the GID of
 * members that get no packet, or RSOFT_WAIT_WIRE.
 */
static int
ud_check_members(struct rwire_qp *q, struct rwire_addr *members, int nb)
{
	struct rwire_port *port = q->wire->port;
	bool is_own;
	int i;

	for (i = 0; i < nb; i++) {
		is_own = ud_is_own(q->wire, &members[i]);
		if (!is_own && rwire_port_tx_get(port, 0, &members[i]) != NULL)
			continue;
		if (!is_own && ud_wait(q) == RSOFT_WAIT_WIRE)
			return RSOFT_WAIT_WIRE;
		memset(&members[i], 0, sizeof(members[i]));
	}
	return RMEM_WC_SUCCESS;
}

static void
ud_send_member(struct rwire_qp *q, const struct rsoft_ud_dest *dest, const struct rwire_addr *hop,
		struct rwire_pkt *pkt, const uint8_t *data)
{
	struct rwire_port *port = q->wire->port;
	struct rwire_frame *frame = rwire_port_tx_get(port, 0, hop);

	if (frame == NULL)
		return;
	frame->is_mcast = true;
	frame->hop = *hop;
	memcpy(frame->flow.dst.gid, dest->gid, sizeof(dest->gid));
	frame->grh = dest->grh;
	memcpy(frame->bth + rwire_hdr_len(rwire_pkt_info(pkt)), data, pkt->payload_len);
	rwire_tx_send(q->wire, frame, pkt);
	frame->is_mcast = false;
}

/*
 * Send a message to a group: to QPs of this process, and as packets. Return an enum rmem_wc_status,
 * or RSOFT_WAIT_WIRE.
 */
static int
ud_send_group(struct rwire_qp *q, const struct rmem_send_wr *wr, const struct rsoft_ud_dest *dest,
		uint32_t length, uint32_t *vendor_err)
{
	struct rwire_port *inner = q->wire->inner;
	struct rwire_addr group, members[RWIRE_MAX_MEMBERS];
	struct rwire_pkt pkt = ud_packet(q, wr, dest, length);
	uint8_t data[RWIRE_MAX_MTU];
	int i, nb, status;

	status = rwire_sge_copy(q->qp, wr, 0, data, length, false, vendor_err);
	if (status == RMEM_WC_SUCCESS)
		status = ud_loop(q, wr, dest, data, length, vendor_err);
	if (status != RMEM_WC_SUCCESS)
		return status;
	memcpy(group.gid, dest->gid, sizeof(group.gid));
	pkt.qpn = RMEM_MCAST_QPN;
	rsoft_lock(&q->wire->tx_lock);
	nb = inner->ops->mcast_members(inner, &group, members);
	if (nb < 0) {
		members[0] = group;
		nb = 1;
	}
	status = ud_check_members(q, members, nb);
	for (i = 0; i < nb && status == RMEM_WC_SUCCESS; i++) {
		if (rwire_addr_is_unicast(&members[i]) || rwire_addr_is_mcast(&members[i]))
			ud_send_member(q, dest, &members[i], &pkt, data);
	}
	rte_ticketlock_unlock(&q->wire->tx_lock);
	if (status != RMEM_WC_SUCCESS)
		return status;
	q->req.deadline = 0;
	q->req.looped = 0;
	q->req.psn = rwire_psn_add(q->req.psn, 1);
	return RMEM_WC_SUCCESS;
}

/* Send the request at the head as a packet, and complete it. False: it must wait. */
static bool
ud_send(struct rwire_qp *q, unsigned int lcore, const struct rmem_send_wr *wr,
		const struct rsoft_ud_dest *dest)
{
	struct rsoft_batch batch;
	uint64_t length = 0;
	uint32_t i;
	int status;

	for (i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	rsoft_batch_begin(&batch, q->qp, lcore, true);
	batch.vendor_err = rsoft_ud_vendor_err(wr, dest);
	if (unlikely(batch.vendor_err != RMEM_VENDOR_ERR_NONE)) {
		status = RMEM_WC_LOC_QP_OP_ERR;
	} else if (length > q->qp->max_msg_size) {
		status = RMEM_WC_LOC_LEN_ERR;
	} else if (unlikely(dest->qpn == RSOFT_UD_GROUP)) {
		status = ud_send_group(q, wr, dest, (uint32_t)length, &batch.vendor_err);
	} else {
		rsoft_lock(&q->wire->tx_lock);
		status = ud_send_packet(q, wr, dest, (uint32_t)length, &batch.vendor_err);
		rte_ticketlock_unlock(&q->wire->tx_lock);
	}
	if (status == RSOFT_WAIT_WIRE)
		return false;
	if (unlikely(q->req.pace != 0))
		rwire_pace_count(q, length);
	if (status == RMEM_WC_SUCCESS)
		rsoft_batch_succeed(&batch, wr, length);
	else
		rsoft_batch_fail(&batch, wr, status);
	rsoft_batch_end(&batch);
	return true;
}

void
rwire_ud_run(struct rwire_qp *q, unsigned int lcore)
{
	struct rsoft_qp *qp = q->qp;
	struct rsoft_sq *sq = &qp->sq;
	struct rsoft_ud_dest dest;
	uint32_t n = 0;
	bool is_done = true;

	while (is_done && n < UD_BURST && !rsoft_sq_is_empty(sq) &&
			__atomic_load_n(&qp->state, __ATOMIC_ACQUIRE) == RMEM_QPS_RTS) {
		const struct rmem_send_wr *wr = rsoft_sq_slot(sq, sq->cons);

		rsoft_ud_dest_of(qp, wr, true, &dest);
		if (ud_is_here(q, &dest) || rsoft_chaos_is_planned_at(qp, sq->cons))
			is_done = rsoft_req_exec(qp, lcore, true, wr, sq->stride, 1) == 1;
		else if (unlikely(q->req.pace != 0) && rwire_pace_is_waiting(q))
			is_done = false;
		else
			is_done = ud_send(q, lcore, wr, &dest);
		if (is_done) {
			rsoft_sq_pop(sq, 1);
			q->req.begun = q->req.sq_pos = sq->cons;
			n++;
		}
	}
	q->req.has_more = n == UD_BURST;
	if (n != 0) {
		rsoft_lock(&q->wire->tx_lock);
		q->wire->port->ops->tx_flush(q->wire->port);
		rte_ticketlock_unlock(&q->wire->tx_lock);
	}
	if (!rwire_state_is_requesting(__atomic_load_n(&qp->state, __ATOMIC_ACQUIRE)))
		rsoft_req_drain(qp, lcore);
}

/* Count a message that a QP has dropped. */
static void
ud_count(struct rwire_stats *stats, int status)
{
	switch (status) {
	case RMEM_WC_SUCCESS:
		break;
	case RSOFT_WAIT_PEER: /* not in RTR yet, or in ERR */
		RWIRE_COUNT(stats->no_qp);
		break;
	case RSOFT_WAIT_RNR:
		RWIRE_COUNT(stats->drop_no_recv);
		break;
	case RMEM_WC_REM_INV_REQ_ERR:
		RWIRE_COUNT(stats->drop_length);
		break;
	case RMEM_WC_REM_ACCESS_ERR:
		RWIRE_COUNT(stats->drop_qkey);
		break;
	default:
		RWIRE_COUNT(stats->drop_access);
		break;
	}
}

static struct rsoft_ud_msg
ud_message(const struct rwire_frame *frame, const struct rwire_pkt *pkt)
{
	struct rsoft_ud_msg msg = {.src_gid = frame->flow.src.gid,
			.dst_gid = frame->flow.dst.gid,
			.src_qp = pkt->src_qp,
			.qkey = pkt->qkey,
			.imm_data = pkt->imm,
			.grh = frame->grh,
			.flags = pkt->is_solicited ? RMEM_WC_SOLICITED : 0,
			.length = pkt->payload_len};

	if (pkt->info & RWIRE_HAS_IMM)
		msg.flags |= RMEM_WC_WITH_IMM;
	return msg;
}

void
rwire_ud_pkt(struct rwire_qp *q, const struct rwire_frame *frame, const struct rwire_pkt *pkt)
{
	const struct rsoft_span from = {
			.ptr = pkt->payload, .length = pkt->payload_len, .kind = RSOFT_SPAN_FLAT};
	const struct rsoft_ud_msg msg = ud_message(frame, pkt);
	struct rwire_stats *stats = &q->wire->stats;

	if (pkt->payload_len > q->mtu) {
		RWIRE_COUNT(stats->drop_length);
		return;
	}
	ud_count(stats, rsoft_ud_deliver(q->qp, &msg, &from));
}

void
rwire_ud_group_pkt(struct rwire *wire, const struct rwire_frame *frame, const struct rwire_pkt *pkt)
{
	const struct rsoft_span from = {
			.ptr = pkt->payload, .length = pkt->payload_len, .kind = RSOFT_SPAN_FLAT};
	const struct rsoft_ud_msg msg = ud_message(frame, pkt);
	struct rsoft_qp *qps[RSOFT_MAX_GROUP_QPS];
	uint32_t i, n;

	/* A group has a fixed QP number and service (IBTA 9.6.1.1.1). */
	if (!frame->is_mcast || pkt->qpn != RMEM_MCAST_QPN || pkt->service != RWIRE_UD) {
		RWIRE_COUNT(wire->stats.malformed);
		return;
	}
	if (!rwire_allow_has(&wire->allow, &frame->flow.src)) {
		RWIRE_COUNT(wire->stats.wrong_peer);
		return;
	}
	if (ud_is_own(wire, &frame->flow.src)) /* already delivered by the sender */
		return;
	n = rsoft_group_qps(wire->dev, frame->flow.dst.gid, qps);
	if (n == 0)
		RWIRE_COUNT(wire->stats.no_qp);
	for (i = 0; i < n; i++)
		ud_count(&wire->stats, rsoft_ud_deliver(qps[i], &msg, &from));
}

int
rwire_ud_join(struct rwire *wire, const uint8_t gid[16])
{
	struct rwire_addr group;
	int ret, state;

	memcpy(group.gid, gid, sizeof(group.gid));
	/* A thread cancelled in a system call would keep the locks. */
	state = rsoft_cancel_disable();
	rsoft_lock(&wire->rx_lock);
	ret = wire->inner->ops->mcast_join(wire->inner, &group);
	rte_ticketlock_unlock(&wire->rx_lock);
	rsoft_cancel_restore(state);
	return ret;
}

void
rwire_ud_leave(struct rwire *wire, const uint8_t gid[16])
{
	struct rwire_addr group;
	int state;

	memcpy(group.gid, gid, sizeof(group.gid));
	state = rsoft_cancel_disable();
	rsoft_lock(&wire->rx_lock);
	wire->inner->ops->mcast_leave(wire->inner, &group);
	rte_ticketlock_unlock(&wire->rx_lock);
	rsoft_cancel_restore(state);
}
