/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Mode mbuf: the equivalent of testpmd's mode io. Packets are forwarded between two QPs: one sends
 * the mbufs that the other received, unmodified. The QPs that they are connected to send and
 * receive the packets:
 *
 *  end 0 == forwarder 0 <-> forwarder 1 == end 1
 *
 * Flow number f passes from end f through forwarders f and !f to end !f. At most depth packets of
 * it are in flight, and each port has as many receives posted: the receiver is always ready. A
 * forwarder receives no more packets than its other side can send, so that none is dropped.
 *
 * A packet begins with a tag, its number in its flow; packets to be compared in full are
 * a pattern of that number.
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_malloc.h>

#include "mbuf_port.h"

#define NB_FLOWS 2
/* One of this many packets is not a chain. */
#define CHAIN_PERIOD 4

struct mbuf_flow {
	uint64_t sent;
	uint64_t received;
};

struct mbuf_pair {
	struct testrmem_pair link; /* Of end 1 (a) and forwarder 1 (b). */
	struct mbuf_port end[NB_FLOWS];
	struct mbuf_port fwd[NB_FLOWS];
	struct mbuf_flow flow[NB_FLOWS];
	struct rte_mbuf **pkts; /* A burst of them, in flight from port to port. */
	uint64_t chains;        /* Received. */
	bool is_checking;       /* Compare packets in full. */
};

/* Bytes of a packet, all of them if they fit an mbuf. */
static uint32_t
length_of(const struct testrmem_pair *pair, uint64_t number)
{
	if (pair->size > TESTRMEM_DATA_ROOM && number % CHAIN_PERIOD == CHAIN_PERIOD - 1)
		return TESTRMEM_DATA_ROOM;
	return pair->size;
}

static uint64_t
tag_of(const struct testrmem_pair *pair, uint32_t flow, uint64_t number)
{
	return number ^ ((uint64_t)(NB_FLOWS * pair->id + flow) << 48);
}

/* The pattern of a segment. */
static void
fill_pattern(void *addr, size_t length, uint64_t tag, uint32_t segment)
{
	testrmem_fill(addr, length, ~(tag ^ ((uint64_t)segment << 40)));
}

static int
mbuf_setup(struct testrmem_pair *pair)
{
	struct mbuf_pair *mp = testrmem_alloc(1, sizeof(*mp));
	struct testrmem_pair *link;
	uint32_t i;
	int ret;

	if (mp == NULL)
		return -ENOMEM;
	pair->priv = mp;
	link = &mp->link;
	link->worker = pair->worker;
	link->dev = pair->dev;
	link->id = pair->id;
	mp->pkts = testrmem_alloc(pair->burst, sizeof(void *));
	if (mp->pkts == NULL)
		return -ENOMEM;
	ret = testrmem_pair_open(link, pair->worker->session);
	for (i = 0; i < NB_FLOWS && ret == 0; i++) {
		struct testrmem_pair *side = i == 0 ? pair : link;

		ret = mbuf_port_open(&mp->end[i], side, side->qp_a, side->cq_a);
		if (ret == 0)
			ret = mbuf_port_open(&mp->fwd[i], side, side->qp_b, side->cq_b);
	}
	return ret;
}

static void
mbuf_disconnect(struct testrmem_pair *pair)
{
	struct mbuf_pair *mp = pair->priv;

	if (mp != NULL)
		testrmem_pair_close(&mp->link);
}

static void
close_ports(struct mbuf_pair *mp)
{
	uint32_t i;

	for (i = 0; i < NB_FLOWS; i++) {
		mbuf_port_close(&mp->end[i]);
		mbuf_port_close(&mp->fwd[i]);
	}
}

static void
mbuf_teardown(struct testrmem_pair *pair)
{
	struct mbuf_pair *mp = pair->priv;

	if (mp == NULL)
		return;
	close_ports(mp);
	rte_free(mp->pkts);
	rte_free(mp);
	pair->priv = NULL;
}

static void
write_packet(const struct mbuf_pair *mp, struct rte_mbuf *m, uint64_t tag)
{
	uint32_t i = 0;

	if (unlikely(mp->is_checking)) {
		for (; m != NULL; m = m->next)
			fill_pattern(rte_pktmbuf_mtod(m, void *), m->data_len, tag, i++);
		return;
	}
	memcpy(rte_pktmbuf_mtod(m, void *), &tag, RTE_MIN(sizeof(tag), (size_t)m->data_len));
}

/* Send up to n packets of a flow. */
static int
source(struct testrmem_pair *pair, uint32_t f, uint64_t n)
{
	struct mbuf_pair *mp = pair->priv;
	struct mbuf_flow *flow = &mp->flow[f];
	uint32_t i, length;
	int ret;

	n = RTE_MIN(n, (uint64_t)pair->burst);
	n = RTE_MIN(n, (uint64_t)mbuf_port_nb_free(&mp->end[f]));
	n = RTE_MIN(n, pair->depth - (flow->sent - flow->received));
	for (i = 0; i < n; i++) {
		length = length_of(pair, flow->sent + i);
		mp->pkts[i] = mbuf_port_alloc(&mp->end[f], testrmem_nb_segs(length));
		if (unlikely(mp->pkts[i] == NULL)) {
			rte_pktmbuf_free_bulk(mp->pkts, i);
			return -ENOENT;
		}
		mbuf_set_length(mp->pkts[i], length);
		write_packet(mp, mp->pkts[i], tag_of(pair, f, flow->sent + i));
	}
	ret = mbuf_port_tx(&mp->end[f], mp->pkts, (uint32_t)n);
	if (unlikely(ret != 0))
		return ret;
	flow->sent += n;
	pair->posted += n;
	return 0;
}

/* testpmd's mode io. */
static int
forward(struct testrmem_pair *pair, uint32_t f)
{
	struct mbuf_pair *mp = pair->priv;
	uint32_t room = mbuf_port_nb_free(&mp->fwd[!f]);
	int n;

	n = mbuf_port_rx(&mp->fwd[f], mp->pkts, RTE_MIN(room, pair->burst));
	return n <= 0 ? n : mbuf_port_tx(&mp->fwd[!f], mp->pkts, (uint32_t)n);
}

static bool
is_pattern(const struct rte_mbuf *m, uint64_t tag)
{
	uint8_t pattern[TESTRMEM_DATA_ROOM];
	uint32_t i;

	for (i = 0; m != NULL; m = m->next, i++) {
		fill_pattern(pattern, m->data_len, tag, i);
		if (memcmp(rte_pktmbuf_mtod(m, void *), pattern, m->data_len) != 0)
			return false;
	}
	return true;
}

static int
check_packet(struct testrmem_pair *pair, uint32_t f, const struct rte_mbuf *m)
{
	struct mbuf_pair *mp = pair->priv;
	uint64_t number = mp->flow[f].received;
	uint64_t tag = tag_of(pair, f, number);
	uint32_t length = length_of(pair, number);
	bool is_right;

	if (unlikely(mp->is_checking))
		is_right = is_pattern(m, tag);
	else
		is_right = memcmp(rte_pktmbuf_mtod(m, void *), &tag,
					   RTE_MIN(sizeof(tag), (size_t)length)) == 0;
	if (likely(is_right && m->pkt_len == length))
		return 0;
	testrmem_count(&pair->worker->cnt.errors, 1);
	testrmem_fail(pair->worker->session,
			"QP pair %" PRIu32 ": packet %" PRIu64 " of %" PRIu32 " bytes %s", pair->id,
			number + 1, length,
			is_right ? "arrived with another length" : "differs from the data sent");
	return -EIO;
}

/* Receive the packets of flow f at its other end. */
static int
sink(struct testrmem_pair *pair, uint32_t f)
{
	struct mbuf_pair *mp = pair->priv;
	struct testrmem_counters *cnt = &pair->worker->cnt;
	uint64_t bytes = 0;
	int i, n, ret = 0;

	n = mbuf_port_rx(&mp->end[!f], mp->pkts, pair->burst);
	if (n <= 0)
		return n;
	for (i = 0; i < n && ret == 0; i++) {
		ret = check_packet(pair, f, mp->pkts[i]);
		mp->flow[f].received++;
		mp->chains += mp->pkts[i]->nb_segs > 1;
		bytes += mp->pkts[i]->pkt_len;
	}
	rte_pktmbuf_free_bulk(mp->pkts, (unsigned int)n);
	if (unlikely(ret != 0))
		return ret;
	pair->completed += (uint64_t)n;
	testrmem_count(&cnt->ops, (uint64_t)n);
	testrmem_count(&cnt->bytes, bytes);
	return 0;
}

/* Packets in flight, and mbufs still owned by the device. */
static int
count_in_flight(const struct mbuf_pair *mp)
{
	uint64_t nb = 0;
	uint32_t f;

	for (f = 0; f < NB_FLOWS; f++) {
		nb += mp->flow[f].sent - mp->flow[f].received;
		nb += mp->end[f].tx_posted - mp->end[f].tx_done;
		nb += mp->fwd[f].tx_posted - mp->fwd[f].tx_done;
	}
	return (int)nb;
}

static int
mbuf_burst(struct testrmem_pair *pair, bool is_draining)
{
	struct mbuf_pair *mp = pair->priv;
	int ret = 0;
	uint32_t f;

	for (f = 0; f < NB_FLOWS && ret == 0; f++) {
		if (!is_draining)
			ret = source(pair, f, pair->ops_limit - pair->posted);
		if (ret == 0)
			ret = mbuf_port_poll(&mp->fwd[f]);
		if (ret == 0)
			ret = forward(pair, f);
		if (ret == 0)
			ret = mbuf_port_poll(&mp->end[!f]);
		if (ret == 0)
			ret = sink(pair, f);
	}
	if (unlikely(ret != 0))
		return ret;
	if (pair->posted == pair->ops_limit)
		pair->is_done = true;
	return count_in_flight(mp);
}

/* No packet is in flight: all sent packets have passed all ports, and are free again. */
static int
check_counts(struct testrmem_pair *pair)
{
	const struct mbuf_pair *mp = pair->priv;
	uint32_t f;

	for (f = 0; f < NB_FLOWS; f++) {
		uint64_t sent = mp->flow[f].sent;

		if (mp->flow[f].received == sent && mp->end[f].tx_done == sent &&
				mp->fwd[f].rx_taken == sent && mp->fwd[!f].tx_done == sent &&
				mp->end[!f].rx_taken == sent)
			continue;
		testrmem_count(&pair->worker->cnt.errors, 1);
		testrmem_fail(pair->worker->session,
				"QP pair %" PRIu32 ": of %" PRIu64 " packets sent %" PRIu64
				" were taken by the forwarder, %" PRIu64 " sent on and %" PRIu64
				" received",
				pair->id, sent, mp->fwd[f].rx_taken, mp->fwd[!f].tx_done,
				mp->flow[f].received);
		return -EIO;
	}
	return 0;
}

/* A last burst each way. */
static int
mbuf_verify(struct testrmem_pair *pair)
{
	struct mbuf_pair *mp = pair->priv;
	uint64_t chains = mp->chains;
	int ret = 0;
	uint32_t f;

	mp->is_checking = true;
	for (f = 0; f < NB_FLOWS && ret == 0; f++)
		ret = source(pair, f, pair->burst);
	if (ret == 0)
		ret = testrmem_pair_drain(pair);
	mp->chains = chains;
	return ret != 0 ? ret : check_counts(pair);
}

/* Reclaim the posted receives: every mbuf must be in its pool then. */
static int
check_pool(struct testrmem_session *session, const struct testrmem_dev *dev)
{
	const struct rte_mempool *mp = dev->mbufs->mp;
	unsigned int nb_avail = rte_mempool_avail_count(mp);

	printf("%s: %u of %" PRIu32 " mbufs are free again\n", mp->name, nb_avail, mp->size);
	if (nb_avail == mp->size)
		return 0;
	testrmem_fail(session, "%u of the %" PRIu32 " mbufs of %s are lost", mp->size - nb_avail,
			mp->size, mp->name);
	return -EIO;
}

static int
mbuf_finish(struct testrmem_session *session)
{
	uint64_t chains = 0, pkts = 0;
	uint32_t i, j;
	int ret = 0;

	for (i = 0; i < session->nb_workers; i++) {
		const struct testrmem_worker *worker = &session->workers[i];

		pkts += worker->cnt.ops;
		for (j = 0; j < worker->nb_pairs; j++) {
			struct mbuf_pair *mp = worker->pairs[j].priv;

			chains += mp->chains;
			mbuf_disconnect(&worker->pairs[j]);
			testrmem_pair_close(&worker->pairs[j]);
			close_ports(mp);
		}
	}
	printf("chains of mbufs: %" PRIu64 " of %" PRIu64 " packets\n", chains, pkts);
	for (i = 0; i < session->nb_devs && ret == 0; i++)
		ret = check_pool(session, &session->devs[i]);
	return ret;
}

const struct testrmem_engine testrmem_engine_mbuf = {
		.name = "mbuf",
		.help = "forward mbufs between two QPs, as testpmd's mode io does",
		.verified = "a last burst each way arrived, and every mbuf is free again",
		.unit = "packets",
		.default_size = 64,
		.max_size = UINT32_MAX,
		.bufs_per_op = 8,
		.flags = ENGINE_RECV | ENGINE_MBUF,
		.setup = mbuf_setup,
		.burst = mbuf_burst,
		.verify = mbuf_verify,
		.finish = mbuf_finish,
		.disconnect = mbuf_disconnect,
		.teardown = mbuf_teardown,
};
