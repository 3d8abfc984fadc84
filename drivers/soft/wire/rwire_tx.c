/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Sending packets: headers and ICRC; and the clock of timers. */

#include <rte_branch_prediction.h>
#include <rte_cycles.h>

#include "rwire.h"

static uint64_t
tx_tsc(void)
{
	return rte_rdtsc();
}

uint64_t (*rwire_clock)(void) = tx_tsc;

struct rwire_frame *
rwire_tx_get(struct rwire_qp *q)
{
	struct rwire_frame *frame = rwire_port_tx_get(q->wire->port, q->grh.gid_slot, &q->addr);

	if (likely(frame != NULL))
		frame->grh = q->grh;
	return frame;
}

bool
rwire_tx_is_late(struct rwire_qp *q, uint32_t wait_ms)
{
	struct rwire_port *port = q->wire->port;
	uint64_t wait = rte_get_tsc_hz() / 1000 * wait_ms, now = rwire_clock();

	if (q->req.deadline == 0)
		q->req.deadline = now + wait;
	if (!port->ops->tx_is_late(port, now, wait, q->req.deadline))
		return false;
	RSOFT_COUNT(q->qp->stats.drop_no_peer, 1);
	return true;
}

void
rwire_tx_put(struct rwire_qp *q, struct rwire_frame *frame, struct rwire_pkt *pkt)
{
	pkt->service = q->service;
	pkt->qpn = q->qpn;
	pkt->pkey = q->pkey;
	rwire_tx_send(q->wire, frame, pkt);
}

void
rwire_tx_send(struct rwire *wire, struct rwire_frame *frame, struct rwire_pkt *pkt)
{
	frame->len = rwire_pkt_build(frame->bth, pkt);
	rwire_tx_frame(wire, frame);
}

void
rwire_tx_frame(struct rwire *wire, struct rwire_frame *frame)
{
	struct rwire_port *port = wire->port;

	if (port->has_icrc) {
		if (unlikely(wire->inner->srcs != NULL))
			frame->flow.src = wire->inner->srcs[frame->grh.gid_slot];
		rwire_icrc_set(frame->bth, frame->len, &frame->flow);
	}
	port->ops->tx_put(port, frame);
}
