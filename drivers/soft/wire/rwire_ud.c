/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * UD: each request is sent as one packet to the address of its destination, and each packet is
 * placed in a receive. A message to a QP of this process sends no packet, unless loop=1.
 *
 * Invariant: a request completes when its packet is sent, so sq_pos and begun of struct rwire_req
 * are the head of the send queue.
 */

#include <errno.h>
#include <stdlib.h>

#include <rte_cycles.h>

#include "../queue/rsoft_addr.h"
#include "../queue/rsoft_req.h"
#include "../queue/rsoft_sq.h"
#include "../queue/rsoft_ud.h"
#include "rwire.h"

#define UD_BURST 64 /* messages that one call sends, at most */
/* A peer, or a port, that takes no message for longer: further ones are dropped. */
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
	q->mtu = q->wire->dev->address.mtu;
	__atomic_store_n(&qp->wire, q, __ATOMIC_RELEASE);
	return 0;
}

/* Whether the destination is a device of this process that needs no packet. */
static bool
ud_is_here(const struct rwire_qp *q, const struct rsoft_ud_dest *dest)
{
	bool is_here;

	/* A multicast group, or an AH of another PD. */
	if (unlikely(dest->qpn >> 24 != 0))
		return true;
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
	struct rwire_port *port = q->wire->port;
	uint64_t wait = rte_get_tsc_hz() / 1000 * UD_WAIT_MS;
	uint64_t now = rwire_clock();

	if (q->req.deadline == 0)
		q->req.deadline = now + wait;
	if (!port->ops->tx_is_late(port, now, wait, q->req.deadline))
		return RSOFT_WAIT_WIRE;
	RSOFT_COUNT(q->qp->stats.drop_no_peer, 1);
	return RMEM_WC_SUCCESS;
}

/* Send a request as a packet: an enum rmem_wc_status, or RSOFT_WAIT_WIRE. Under tx_lock. */
static int
ud_send_packet(struct rwire_qp *q, const struct rmem_send_wr *wr, const struct rsoft_ud_dest *dest,
		uint32_t length, uint32_t *vendor_err)
{
	bool is_imm = wr->opcode == RMEM_WR_SEND_WITH_IMM;
	struct rwire_pkt pkt = {.service = RWIRE_UD,
			.opcode = is_imm ? RWIRE_SEND_ONLY_WITH_IMM : RWIRE_SEND_ONLY,
			.is_solicited = (wr->flags & RMEM_SEND_SOLICITED) != 0,
			.qpn = dest->qpn,
			.psn = q->req.psn,
			.qkey = rsoft_ud_qkey(q->qp, dest),
			.src_qp = q->qp->qp.qp_num,
			.imm = is_imm ? wr->imm_data : 0,
			.payload_len = length};
	struct rwire_port *port = q->wire->port;
	struct rwire_frame *frame;
	struct rwire_addr addr;
	int status;

	memcpy(addr.gid, dest->gid, sizeof(addr.gid));
	frame = port->ops->tx_get(port, &addr);
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

/* Send the request at the head as a packet, and complete it. False: it must wait. */
static bool
ud_send(struct rwire_qp *q, unsigned int lcore, const struct rmem_send_wr *wr,
		const struct rsoft_ud_dest *dest)
{
	struct rsoft_batch batch;
	uint64_t length = 0;
	uint32_t i;
	int status = RMEM_WC_LOC_QP_OP_ERR;

	for (i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	rsoft_batch_begin(&batch, q->qp, lcore, true);
	batch.vendor_err = rsoft_ud_vendor_err(wr, dest);
	if (batch.vendor_err == RMEM_VENDOR_ERR_NONE && length > q->qp->max_msg_size) {
		status = RMEM_WC_LOC_LEN_ERR;
	} else if (batch.vendor_err == RMEM_VENDOR_ERR_NONE) {
		rsoft_lock(&q->wire->tx_lock);
		status = ud_send_packet(q, wr, dest, (uint32_t)length, &batch.vendor_err);
		rte_ticketlock_unlock(&q->wire->tx_lock);
	}
	if (status == RSOFT_WAIT_WIRE)
		return false;
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
		if (ud_is_here(q, &dest))
			is_done = rsoft_req_exec(qp, lcore, true, wr, sq->stride, 1) == 1;
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

void
rwire_ud_pkt(struct rwire_qp *q, const struct rwire_frame *frame, const struct rwire_pkt *pkt)
{
	const struct rsoft_span from = {
			.ptr = pkt->payload, .length = pkt->payload_len, .kind = RSOFT_SPAN_FLAT};
	struct rwire_stats *stats = &q->wire->stats;
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
	if (pkt->payload_len > q->mtu) {
		RWIRE_COUNT(stats->drop_length);
		return;
	}
	switch (rsoft_ud_deliver(q->qp, &msg, &from)) {
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
