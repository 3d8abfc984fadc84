/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Parts of the ports that replace a device's own in tests, and their random numbers. */

#ifndef STUB_PORT_H
#define STUB_PORT_H

#include "soft/wire/rwire.h"

/* One packet, from the BTH on. */
struct stub_frame {
	struct rwire_frame frame;
	uint8_t data[RWIRE_HEADROOM + RWIRE_MAX_PKT];
};

/* Replace the port of a device; its own is returned, and closed by ops->close(). */
static inline struct rwire_port *
stub_attach(struct rsoft_dev *dev, struct rwire_port *port, const struct rwire_port_ops *ops)
{
	struct rwire_port *inner = dev->wire->port;

	*port = (struct rwire_port){.ops = ops,
			.addr = inner->addr,
			.max_mtu = inner->max_mtu,
			.has_icrc = true,
			.fd = -1};
	dev->wire->port = port;
	return inner;
}

static inline struct rwire_frame *
stub_tx_get(struct rwire_port *port, struct stub_frame *tx, const struct rwire_addr *dst)
{
	tx->frame.bth = tx->data + RWIRE_HEADROOM;
	tx->frame.flow.src = port->addr;
	tx->frame.flow.dst = *dst;
	tx->frame.flow.src_port = RWIRE_UDP_PORT;
	tx->frame.flow.ip_id = 0;
	return &tx->frame;
}

static inline void
stub_tx_flush(struct rwire_port *port)
{
	RTE_SET_USED(port);
}

/* A packet of len bytes is in rx->data. */
static inline struct rwire_frame *
stub_rx(struct stub_frame *rx, uint32_t len, bool is_id_known, const struct rwire_flow *flow)
{
	rx->frame.bth = rx->frame.data = rx->data + RWIRE_HEADROOM;
	rx->frame.len = len;
	rx->frame.is_id_known = is_id_known;
	rx->frame.has_icrc = true;
	rx->frame.flow = *flow;
	return &rx->frame;
}

#endif /* STUB_PORT_H */
