/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Ports: a connected QP that sends and receives mbufs in bursts, as an Ethernet port does. Receives
 * are posted again when their packets are received, so that depth of them are always posted.
 *
 * Ring slots are counted over all time. Of the receive ring, [rx_taken, rx_arrived) are packets and
 * [rx_arrived, rx_posted) are empty; of the send ring, [tx_done, tx_posted) are with the device.
 * Mbufs in neither are owned by the caller.
 */

#ifndef MBUF_PORT_H
#define MBUF_PORT_H

#include <rte_mbuf.h>

#include <rmem_mbuf.h>

#include "testrmem.h"

struct mbuf_port {
	struct testrmem_pair *pair; /**< Of which qp is one side; errors name it. */
	const struct rmem_mempool *pool;
	struct rmem_qp *qp;
	struct rmem_cq *cq;
	uint32_t depth;
	uint32_t nb_segs; /**< Segments of a receive, and of a packet at most. */
	uint32_t mask;    /**< Of the rings. */
	struct rte_mbuf **rx;
	struct rte_mbuf **tx;
	struct rmem_recv_wr *recv; /**< Of a burst. */
	struct rmem_send_wr *send; /**< Of a burst. */
	struct rmem_sge *sge;      /**< Of a burst. */
	uint64_t rx_posted;
	uint64_t rx_arrived;
	uint64_t rx_taken;
	uint64_t tx_posted;
	uint64_t tx_done;
};

/**
 * Post all receives of a side of a connected pair; the port is zeroed before. Created objects
 * stay for close on failure.
 */
int mbuf_port_open(struct mbuf_port *port, struct testrmem_pair *pair, struct rmem_qp *qp,
		struct rmem_cq *cq);
/** Free all mbufs in the rings, and the rings, after the QP was destroyed. May be repeated. */
void mbuf_port_close(struct mbuf_port *port);
/** Poll: receive packets, and free those that were sent. 0 or -errno with a message. */
int mbuf_port_poll(struct mbuf_port *port);
/** Take up to n received packets, at most a burst: number, or -errno with a message. */
int mbuf_port_rx(struct mbuf_port *port, struct rte_mbuf **pkts, uint32_t n);
/**
 * Send n packets, at most a burst and the free entries. The port owns them after any
 * result: 0, or -errno with a message.
 */
int mbuf_port_tx(struct mbuf_port *port, struct rte_mbuf **pkts, uint32_t n);
/** Get a chain of empty mbufs; NULL with a message if the pool is empty. */
struct rte_mbuf *mbuf_port_alloc(struct mbuf_port *port, uint32_t nb_segs);
/** Set the length of a packet over its segments; the remaining segments are freed. */
void mbuf_set_length(struct rte_mbuf *m, uint32_t length);

/** Number of packets that can be sent. */
static inline uint32_t
mbuf_port_nb_free(const struct mbuf_port *port)
{
	return port->depth - (uint32_t)(port->tx_posted - port->tx_done);
}

#endif /* MBUF_PORT_H */
