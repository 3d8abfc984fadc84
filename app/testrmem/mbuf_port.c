/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The wr_id of a receive is its number with RECV_BIT, that of a signaled send the number of
 * packets sent up to it.
 */

#include <errno.h>
#include <inttypes.h>

#include <rte_bitops.h>
#include <rte_malloc.h>

#include "mbuf_port.h"

#define POLL_BURST 32
#define RECV_BIT   (UINT64_C(1) << 63)

static int
log_pool_empty(const struct mbuf_port *port)
{
	const struct rte_mempool *mp = port->pool->mp;

	testrmem_count(&port->pair->worker->cnt.errors, 1);
	testrmem_fail(port->pair->worker->session, "none of the %" PRIu32 " mbufs of %s is free",
			mp->size, mp->name);
	return -ENOENT;
}

struct rte_mbuf *
mbuf_port_alloc(struct mbuf_port *port, uint32_t nb_segs)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(port->pool->mp);
	struct rte_mbuf *last = m;
	uint32_t i;

	for (i = 1; i < nb_segs && last != NULL; i++) {
		last->next = rte_pktmbuf_alloc(port->pool->mp);
		last = last->next;
		m->nb_segs += last != NULL;
	}
	if (likely(last != NULL))
		return m;
	rte_pktmbuf_free(m);
	log_pool_empty(port);
	return NULL;
}

void
mbuf_set_length(struct rte_mbuf *m, uint32_t length)
{
	struct rte_mbuf *seg = m;
	uint16_t nb_segs = 1;

	m->pkt_len = length;
	for (;;) {
		seg->data_len = (uint16_t)RTE_MIN(length, (uint32_t)seg->buf_len - seg->data_off);
		length -= seg->data_len;
		if (length == 0 || seg->next == NULL)
			break;
		seg = seg->next;
		nb_segs++;
	}
	if (unlikely(seg->next != NULL)) {
		rte_pktmbuf_free(seg->next);
		seg->next = NULL;
	}
	m->nb_segs = nb_segs;
}

/* New mbufs for n slots of the ring that do not wrap. */
static int
fill_slots(struct mbuf_port *port, struct rte_mbuf **slots, uint32_t n)
{
	uint32_t i;

	if (port->nb_segs == 1)
		return rte_pktmbuf_alloc_bulk(port->pool->mp, slots, n) == 0 ? 0
									     : log_pool_empty(port);
	for (i = 0; i < n; i++) {
		slots[i] = mbuf_port_alloc(port, port->nb_segs);
		if (slots[i] == NULL) {
			rte_pktmbuf_free_bulk(slots, i);
			return -ENOENT;
		}
	}
	return 0;
}

/* Number of n slots up to the end of a ring. */
static uint32_t
until_wrap(const struct mbuf_port *port, uint64_t at, uint64_t n)
{
	return (uint32_t)RTE_MIN(n, port->mask + 1 - (at & port->mask));
}

static int
fill_ring(struct mbuf_port *port, uint32_t n)
{
	uint32_t first = until_wrap(port, port->rx_posted, n);
	int ret;

	ret = fill_slots(port, &port->rx[port->rx_posted & port->mask], first);
	if (ret != 0 || first == n)
		return ret;
	ret = fill_slots(port, port->rx, n - first);
	if (ret != 0)
		rte_pktmbuf_free_bulk(&port->rx[port->rx_posted & port->mask], first);
	return ret;
}

/* Post n receives, at most a burst. */
static int
post_recv(struct mbuf_port *port, uint32_t n)
{
	struct rmem_sge *sge = port->sge;
	uint32_t i;
	int ret;

	ret = fill_ring(port, n);
	if (unlikely(ret != 0))
		return ret;
	for (i = 0; i < n; i++, sge += port->nb_segs) {
		ret = rmem_mbuf_tailroom_sges(port->pool,
				port->rx[(port->rx_posted + i) & port->mask], sge, port->nb_segs);
		port->recv[i].wr_id = RECV_BIT | (port->rx_posted + i);
		port->recv[i].sg_list = sge;
		port->recv[i].num_sge = (uint16_t)ret;
	}
	port->rx_posted += n;
	ret = rmem_post_recv(port->qp, port->recv, (uint16_t)n);
	if (unlikely(ret != (int)n))
		return testrmem_pair_refused(port->pair, "post of receives", ret);
	return 0;
}

static int
alloc_rings(struct mbuf_port *port, uint32_t burst)
{
	uint32_t size = rte_align32pow2(port->depth);

	port->mask = size - 1;
	port->rx = testrmem_alloc(size, sizeof(void *));
	port->tx = testrmem_alloc(size, sizeof(void *));
	port->recv = testrmem_alloc(burst, sizeof(*port->recv));
	port->send = testrmem_alloc(burst, sizeof(*port->send));
	port->sge = testrmem_alloc((size_t)burst * port->nb_segs, sizeof(*port->sge));
	if (port->rx == NULL || port->tx == NULL || port->recv == NULL || port->send == NULL ||
			port->sge == NULL)
		return -ENOMEM;
	return 0;
}

int
mbuf_port_open(struct mbuf_port *port, struct testrmem_pair *pair, struct rmem_qp *qp,
		struct rmem_cq *cq)
{
	uint32_t n, left = pair->depth;
	int ret;

	port->pair = pair;
	port->pool = pair->dev->mbufs;
	port->qp = qp;
	port->cq = cq;
	port->depth = pair->depth;
	port->nb_segs = testrmem_nb_segs(pair->size);
	ret = alloc_rings(port, pair->burst);
	while (ret == 0 && left > 0) {
		n = RTE_MIN(pair->burst, left);
		ret = post_recv(port, n);
		left -= n;
	}
	return ret;
}

void
mbuf_port_close(struct mbuf_port *port)
{
	for (; port->rx_taken < port->rx_posted; port->rx_taken++)
		rte_pktmbuf_free(port->rx[port->rx_taken & port->mask]);
	for (; port->tx_done < port->tx_posted; port->tx_done++)
		rte_pktmbuf_free(port->tx[port->tx_done & port->mask]);
	rte_free(port->sge);
	rte_free(port->send);
	rte_free(port->recv);
	rte_free(port->tx);
	rte_free(port->rx);
	port->sge = NULL;
	port->send = NULL;
	port->recv = NULL;
	port->tx = NULL;
	port->rx = NULL;
}

/* Packets arrive in the order of the receives. */
static int
arrive(struct mbuf_port *port, const struct rmem_wc *wc)
{
	uint64_t number = wc->wr_id & ~RECV_BIT;

	if (unlikely(number != port->rx_arrived)) {
		testrmem_count(&port->pair->worker->cnt.errors, 1);
		testrmem_fail(port->pair->worker->session,
				"QP pair %" PRIu32 ": receive %" PRIu64
				" completed, not receive %" PRIu64,
				port->pair->id, number, port->rx_arrived);
		return -EIO;
	}
	mbuf_set_length(port->rx[number & port->mask], wc->byte_len);
	port->rx_arrived++;
	return 0;
}

static void
free_sent(struct mbuf_port *port, uint64_t done)
{
	uint32_t n;

	while (port->tx_done < done) {
		n = until_wrap(port, port->tx_done, done - port->tx_done);
		rte_pktmbuf_free_bulk(&port->tx[port->tx_done & port->mask], n);
		port->tx_done += n;
	}
}

int
mbuf_port_poll(struct mbuf_port *port)
{
	uint64_t done = port->tx_done;
	struct rmem_wc wc[POLL_BURST];
	int i, n, ret = 0;

	n = rmem_poll_cq(port->cq, wc, POLL_BURST);
	if (unlikely(n < 0))
		return testrmem_pair_refused(port->pair, "poll", n);
	for (i = 0; i < n && ret == 0; i++) {
		bool is_recv = (wc[i].wr_id & RECV_BIT) != 0;

		if (unlikely(wc[i].status != RMEM_WC_SUCCESS))
			ret = testrmem_pair_failed(
					port->pair, is_recv ? "receive" : "SEND", &wc[i]);
		else if (is_recv)
			ret = arrive(port, &wc[i]);
		else
			done = wc[i].wr_id;
	}
	free_sent(port, done);
	return ret;
}

int
mbuf_port_rx(struct mbuf_port *port, struct rte_mbuf **pkts, uint32_t n)
{
	uint32_t i;
	int ret;

	n = (uint32_t)RTE_MIN((uint64_t)n, port->rx_arrived - port->rx_taken);
	if (n == 0)
		return 0;
	for (i = 0; i < n; i++)
		pkts[i] = port->rx[(port->rx_taken + i) & port->mask];
	port->rx_taken += n;
	ret = post_recv(port, n);
	if (likely(ret == 0))
		return (int)n;
	rte_pktmbuf_free_bulk(pkts, n);
	return ret;
}

/* The packet as a request; -ENOENT would be a segment that is not the pool's. */
static int
fill_send(struct mbuf_port *port, const struct rte_mbuf *m, uint32_t i)
{
	struct rmem_sge *sge = &port->sge[(size_t)i * port->nb_segs];
	int nb = rmem_mbuf_sges(port->pool, m, sge, port->nb_segs);

	port->send[i] = (struct rmem_send_wr){
			.opcode = RMEM_WR_SEND,
			.sg_list = sge,
			.num_sge = (uint16_t)nb,
	};
	return nb < 0 ? nb : 0;
}

int
mbuf_port_tx(struct mbuf_port *port, struct rte_mbuf **pkts, uint32_t n)
{
	int ret = 0;
	uint32_t i;

	if (n == 0)
		return 0;
	for (i = 0; i < n; i++) {
		port->tx[(port->tx_posted + i) & port->mask] = pkts[i];
		ret |= fill_send(port, pkts[i], i);
	}
	port->tx_posted += n;
	if (unlikely(ret != 0))
		return testrmem_pair_refused(port->pair, "an mbuf as SGEs", -ENOENT);
	port->send[n - 1].wr_id = port->tx_posted;
	port->send[n - 1].flags = RMEM_SEND_SIGNALED;
	ret = rmem_post_send(port->qp, port->send, (uint16_t)n);
	if (unlikely(ret != (int)n))
		return testrmem_pair_refused(port->pair, "post", ret);
	return 0;
}
