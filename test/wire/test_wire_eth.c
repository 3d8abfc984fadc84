/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The port over an ethdev port, whose two rings are the network: what it answers, asks, sends and
 * drops. Its driver has no flow rules, so those functions are replaced.
 */

#include <stdlib.h>
#include <string.h>

#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_flow.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "soft/wire/port/rwire_neigh.h"
#include "soft/wire/port/rwire_port.h"

#include "../test.h"

#define PEER4 "192.0.2.2"
#define PEER6 "2001:db8::2"
#define DATA  20 /* bytes of a packet from its BTH */

static const struct rte_ether_addr peer_mac = {{2, 0, 0, 0, 0, 0xbb}};
static struct rte_ring *to_port, *from_port; /* the network */
static struct rte_mempool *pool;
static char number[8]; /* of the ethdev port */
static struct rwire_port *port;
static struct rwire_addr own, peer;
static struct rwire_neighs neighs; /* of the peer */
static uint16_t words[128], reply_words[128];
static uint8_t *const frame = (uint8_t *)words, *const reply = (uint8_t *)reply_words;

/* The flow rule, as the fake driver got it. */
static struct {
	bool is_accepted;
	unsigned int nb_rules;
	enum rte_flow_item_type ip_type;
	uint8_t ip[16];
	uint16_t udp_port;
	uint16_t queue;
} flow;

struct rte_flow *
rte_flow_create(uint16_t port_id, const struct rte_flow_attr *attr,
		const struct rte_flow_item pattern[], const struct rte_flow_action actions[],
		struct rte_flow_error *error)
{
	const struct rte_flow_action_queue *queue = actions[0].conf;
	const struct rte_flow_item_udp *udp = pattern[2].spec;

	RTE_SET_USED(port_id);
	flow.ip_type = pattern[1].type;
	if (flow.ip_type == RTE_FLOW_ITEM_TYPE_IPV4) {
		const struct rte_flow_item_ipv4 *ip = pattern[1].spec;

		memcpy(flow.ip, &ip->hdr.dst_addr, 4);
	} else {
		const struct rte_flow_item_ipv6 *ip = pattern[1].spec;

		memcpy(flow.ip, &ip->hdr.dst_addr, 16);
	}
	flow.udp_port = rte_be_to_cpu_16(udp->hdr.dst_port);
	flow.queue = queue->index;
	if (!flow.is_accepted || attr->ingress == 0) {
		error->message = "refused by the test";
		return NULL;
	}
	flow.nb_rules++;
	return (struct rte_flow *)&flow;
}

int
rte_flow_destroy(uint16_t port_id, struct rte_flow *rule, struct rte_flow_error *error)
{
	RTE_SET_USED(port_id);
	RTE_SET_USED(error);
	flow.nb_rules -= rule == (struct rte_flow *)&flow;
	return 0;
}

static struct {
	uint16_t mtu;
	int rc;
} set_mtu;

int
rte_eth_dev_set_mtu(uint16_t port_id, uint16_t mtu)
{
	RTE_SET_USED(port_id);
	set_mtu.mtu = mtu;
	return set_mtu.rc;
}

static int
open_port(const char *ip, const char *peer_ip, const char *text)
{
	TEST_ASSERT(rwire_addr_parse(ip, &own) && rwire_addr_parse(peer_ip, &peer));
	TEST_OK(rwire_neighs_init(&neighs, &peer, &peer_mac, ""));
	return rwire_port_eth_open(&own, number, text, 0, &port);
}

/* The network delivers a frame; the packets that the engine gets. */
static int
deliver(const uint8_t *bytes, uint32_t len, struct rwire_frame *frames[])
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);

	if (mbuf == NULL)
		return -1;
	memcpy(rte_pktmbuf_append(mbuf, (uint16_t)len), bytes, len);
	if (rte_ring_enqueue(to_port, mbuf) != 0)
		return -1;
	return (int)port->ops->rx_burst(port, frames, RWIRE_RX_BURST);
}

/* Take the next frame that was sent; its length, 0: none. */
static uint32_t
take(uint8_t *bytes)
{
	struct rte_mbuf *mbuf;
	uint32_t len;

	if (rte_ring_dequeue(from_port, (void **)&mbuf) != 0)
		return 0;
	len = mbuf->data_len;
	memcpy(bytes, rte_pktmbuf_mtod(mbuf, const void *), len);
	rte_pktmbuf_free(mbuf);
	return len;
}

/* Send DATA bytes to the peer. */
static void
send_data(void)
{
	struct rwire_frame *out = port->ops->tx_get(port, &peer);

	TEST_ASSERT(out != NULL);
	memset(out->bth, 0x5a, DATA);
	out->len = DATA;
	out->grh.traffic_class = 0xfd;
	out->grh.flow_label = 0xabcde;
	port->ops->tx_put(port, out);
	port->ops->tx_flush(port);
}

/* The first packet requests the MAC address of the peer; after the reply packets are sent there. */
static void
resolve(void)
{
	struct rwire_frame *frames[RWIRE_RX_BURST];
	uint32_t len;

	send_data();
	TEST_EQ(port->stats.tx_dropped, 1);
	len = take(frame);
	TEST_ASSERT(len != 0);
	len = rwire_neigh_receive(&neighs, frame, len, 1, reply);
	TEST_ASSERT(len != 0);
	TEST_EQ(deliver(reply, len, frames), 0);
	send_data();
	len = take(frame);
	TEST_ASSERT(len > DATA);
	TEST_MEM(frame, &peer_mac, sizeof(peer_mac));
	TEST_EQ(frame[len - DATA], 0x5a);
	TEST_EQ(port->stats.tx_dropped, 1);
}

/* The peer requests this address. */
static void
answer(void)
{
	struct rwire_frame *frames[RWIRE_RX_BURST];
	struct rte_ether_addr mac;
	uint32_t len;

	TEST_ASSERT(!rwire_neigh_resolve(&neighs, &own, 1, &mac, frame, &len));
	TEST_EQ(deliver(frame, len, frames), 0);
	len = take(reply);
	TEST_ASSERT(len != 0);
	TEST_EQ(rwire_neigh_receive(&neighs, reply, len, 1, frame), 0);
	TEST_ASSERT(rwire_neigh_resolve(&neighs, &own, 1, &mac, frame, &len));
	/* Its request had the MAC address of the peer. */
	send_data();
	TEST_EQ(port->stats.tx_dropped, 0);
}

TEST(wire_eth, peer_is_resolved_with_arp)
{
	TEST_RUN(open_port("192.0.2.1", PEER4, ""));
	resolve();
}

TEST(wire_eth, peer_is_resolved_with_neighbour_discovery)
{
	TEST_RUN(open_port("2001:db8::1", PEER6, ""));
	resolve();
}

TEST(wire_eth, arp_requests_are_answered)
{
	TEST_RUN(open_port("192.0.2.1", PEER4, ""));
	answer();
}

TEST(wire_eth, neighbour_solicitations_are_answered)
{
	TEST_RUN(open_port("2001:db8::1", PEER6, ""));
	answer();
}

TEST(wire_eth, static_neighbour_needs_no_request)
{
	TEST_RUN(open_port("2001:db8::1", PEER6, PEER6 "@02:00:00:00:00:bb"));
	send_data();
	TEST_ASSERT(take(frame) > DATA);
	TEST_MEM(frame, &peer_mac, sizeof(peer_mac));
	TEST_EQ(port->stats.tx_dropped, 0);
}

TEST(wire_eth, neighbours_that_are_malformed_are_refused)
{
	TEST_EQ(open_port("2001:db8::1", PEER6, PEER4 "@02:00:00:00:00:bb"), -EINVAL);
}

/* A packet of the peer: the one that was sent there, with its addresses exchanged. */
static uint32_t
packet_of_peer(uint32_t ip_len)
{
	uint8_t *ip = frame + RTE_ETHER_HDR_LEN, *at = ip + (ip_len == 20 ? 12 : 8);
	uint32_t n = ip_len == 20 ? 4 : 16, len;
	uint8_t copy[16];

	if (TEST_TRY(send_data()) != TEST_SUCCESS)
		return 0;
	len = take(frame);
	memcpy(copy, at, n);
	memmove(at, at + n, n);
	memcpy(at + n, copy, n);
	return len;
}

static void
receive(uint32_t ip_len)
{
	struct rwire_frame *frames[RWIRE_RX_BURST];
	uint32_t len = packet_of_peer(ip_len);

	TEST_EQ(len, RTE_ETHER_HDR_LEN + ip_len + sizeof(struct rte_udp_hdr) + DATA);
	TEST_EQ(deliver(frame, len, frames), 1);
	TEST_EQ(frames[0]->len, DATA);
	TEST_MEM(frames[0]->flow.src.gid, peer.gid, sizeof(peer.gid));
	TEST_MEM(frames[0]->flow.dst.gid, own.gid, sizeof(own.gid));
	TEST_EQ(frames[0]->bth[0], 0x5a);
	TEST_EQ(frames[0]->grh.traffic_class, 0xfd);
	TEST_EQ(frames[0]->grh.flow_label, ip_len == 20 ? 0u : 0xabcdeu);
	TEST_EQ(frames[0]->grh.hop_limit, 64);
	/* Bytes that follow the packet, such as the padding of short frames, are not of it. */
	TEST_EQ(deliver(frame, len + 3, frames), 1);
	TEST_EQ(frames[0]->len, DATA);
}

TEST(wire_eth, packets_over_ipv4_are_received)
{
	TEST_RUN(open_port("192.0.2.1", PEER4, PEER4 "@02:00:00:00:00:bb"));
	receive(20);
}

TEST(wire_eth, packets_over_ipv6_are_received)
{
	TEST_RUN(open_port("2001:db8::1", PEER6, PEER6 "@02:00:00:00:00:bb"));
	receive(40);
}

/* A byte of a packet, from the IP header, and a value that makes it one to drop. */
struct change {
	uint8_t at;
	uint8_t value;
};

static void
drop(uint32_t ip_len, const struct change *changes, size_t n)
{
	struct rwire_frame *frames[RWIRE_RX_BURST];
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(frame + RTE_ETHER_HDR_LEN);
	uint32_t len, short_len;
	size_t i;

	for (i = 0; i < n; i++) {
		len = packet_of_peer(ip_len);
		frame[RTE_ETHER_HDR_LEN + changes[i].at] = changes[i].value;
		if (ip_len == 20 && changes[i].at != 10) {
			ip->hdr_checksum = 0;
			ip->hdr_checksum = rte_ipv4_cksum(ip);
		}
		if (deliver(frame, len, frames) == 0)
			continue;
		test_note("with byte %u as %u", changes[i].at, changes[i].value);
		test_stop(TEST_FAILED);
	}
	len = packet_of_peer(ip_len);
	for (short_len = 1; short_len < len; short_len++)
		TEST_EQ(deliver(frame, short_len, frames), 0);
	TEST_EQ(take(reply), 0);
}

/* Version, header length, total length, fragments, protocol, checksum, destination, UDP. */
TEST(wire_eth, malformed_ipv4_packets_are_dropped)
{
	static const struct change changes[] = {{0, 0x46}, {0, 0x65}, {3, 49}, {3, 47}, {2, 1},
			{6, 0x20}, {7, 1}, {9, 6}, {10, 0x55}, {19, 9}, {22, 0x13}, {25, 27},
			{25, 29}, {24, 1}, {25, 7}};

	TEST_RUN(open_port("192.0.2.1", PEER4, PEER4 "@02:00:00:00:00:bb"));
	drop(20, changes, RTE_DIM(changes));
}

/* Version, payload length, a fragment, another protocol, destination, UDP. */
TEST(wire_eth, malformed_ipv6_packets_are_dropped)
{
	static const struct change changes[] = {{0, 0x40}, {5, 27}, {5, 29}, {4, 1}, {6, 44},
			{6, 6}, {6, 58}, {39, 9}, {42, 0x13}, {45, 27}, {45, 29}, {44, 1}, {45, 7}};

	TEST_RUN(open_port("2001:db8::1", PEER6, PEER6 "@02:00:00:00:00:bb"));
	drop(40, changes, RTE_DIM(changes));
}

TEST(wire_eth, flow_rule_selects_the_packets_of_the_wire)
{
	flow.is_accepted = true;
	TEST_RUN(open_port("192.0.2.1", PEER4, ""));
	TEST_EQ(flow.nb_rules, 1);
	TEST_EQ(flow.ip_type, RTE_FLOW_ITEM_TYPE_IPV4);
	TEST_MEM(flow.ip, own.gid + 12, 4);
	TEST_EQ(flow.udp_port, RWIRE_UDP_PORT);
	TEST_EQ(flow.queue, 0);
	port->ops->close(port);
	port = NULL;
	TEST_EQ(flow.nb_rules, 0);
	TEST_RUN(open_port("2001:db8::1", PEER6, ""));
	TEST_EQ(flow.nb_rules, 1);
	TEST_EQ(flow.ip_type, RTE_FLOW_ITEM_TYPE_IPV6);
	TEST_MEM(flow.ip, own.gid, 16);
}

TEST(wire_eth, driver_without_flow_rules_is_used)
{
	TEST_RUN(open_port("192.0.2.1", PEER4, ""));
	TEST_EQ(flow.nb_rules, 0);
	resolve();
}

/* The port keeps its MTU, up to what mbufs hold: the largest packet over IPv6. 1099 is the least of
 * packets of 1024 bytes over IPv4, and 1119 over IPv6. */
TEST(wire_eth, mtu_of_the_ethdev_port_is_kept)
{
	const uint16_t largest = 40 + sizeof(struct rte_udp_hdr) + RWIRE_MAX_PKT;
	const uint16_t mtus[][3] = {{1098, 1098, 512}, {1119, 1119, 1024}, {1400, 1400, 1024},
			{2000, 2000, 1024}, {4191, largest, 4096}, {9000, largest, 4096}};
	struct rte_eth_conf conf = {0};
	uint16_t id = (uint16_t)strtoul(number, NULL, 10), mtu;
	size_t i, j;

	for (i = 0; i < RTE_DIM(mtus); i++) {
		conf.rxmode.mtu = mtus[i][0];
		TEST_EQ(rte_eth_dev_configure(id, 1, 1, &conf), 0);
		for (j = 0; j < 2; j++) {
			if (j == 0)
				TEST_RUN(open_port("192.0.2.1", PEER4, ""));
			else
				TEST_RUN(open_port("2001:db8::1", PEER6, ""));
			TEST_EQ(port->max_mtu, mtus[i][2]);
			TEST_EQ(rte_eth_dev_get_mtu(id, &mtu), 0);
			TEST_EQ(mtu, mtus[i][1]);
			port->ops->close(port);
			port = NULL;
		}
	}
}

TEST(wire_eth, mtu_of_the_ethdev_port_is_raised_on_request)
{
	const struct {
		uint32_t path_mtu;
		uint16_t mtu;
		int rc;
		uint32_t max_mtu;
	} cases[] = {{4096, 4171, 0, 4096}, {2048, 2123, 0, 2048}, {2048, 2123, -EINVAL, 1024},
			{1024, 0, 0, 1024}, {0, 0, 0, 1024}};
	const struct rte_eth_conf conf = {.rxmode.mtu = 1500};
	size_t i;

	TEST_ASSERT(rwire_addr_parse("192.0.2.1", &own));
	for (i = 0; i < RTE_DIM(cases); i++) {
		TEST_EQ(rte_eth_dev_configure((uint16_t)strtoul(number, NULL, 10), 1, 1, &conf), 0);
		set_mtu.mtu = 0;
		set_mtu.rc = cases[i].rc;
		TEST_OK(rwire_port_eth_open(&own, number, "", cases[i].path_mtu, &port));
		TEST_EQ(set_mtu.mtu, cases[i].mtu);
		TEST_EQ(port->max_mtu, cases[i].max_mtu);
		port->ops->close(port);
		port = NULL;
	}
}

TEST(wire_eth, link_is_that_of_the_ethdev_port)
{
	const uint16_t id = (uint16_t)strtoul(number, NULL, 10);

	TEST_ASSERT(rwire_addr_parse("192.0.2.1", &own));
	TEST_OK(rwire_port_eth_open(&own, number, "", 0, &port));
	TEST_ASSERT(port->ops->link_is_up(port));
	TEST_OK(rte_eth_dev_set_link_down(id));
	TEST_ASSERT(!port->ops->link_is_up(port));
	TEST_OK(rte_eth_dev_set_link_up(id));
	TEST_ASSERT(port->ops->link_is_up(port));
}

static void
create_network(void)
{
	int id;

	to_port = rte_ring_create("to_port", 256, -1, RING_F_SP_ENQ | RING_F_SC_DEQ);
	from_port = rte_ring_create("from_port", 256, -1, RING_F_SP_ENQ | RING_F_SC_DEQ);
	TEST_ASSERT(to_port != NULL && from_port != NULL);
	id = rte_eth_from_rings("wire_eth", &to_port, 1, &from_port, 1, 0);
	TEST_ASSERT(id >= 0);
	snprintf(number, sizeof(number), "%d", id);
}

static void
setup(void)
{
	if (to_port == NULL)
		create_network();
	pool = rte_pktmbuf_pool_create("wire_eth", 511, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, -1);
	TEST_ASSERT(pool != NULL);
	memset(&flow, 0, sizeof(flow));
	memset(&neighs, 0, sizeof(neighs));
	port = NULL;
}

static void
teardown(void)
{
	if (port != NULL)
		port->ops->close(port);
	port = NULL;
	while (take(reply) != 0)
		;
	TEST_EQ(flow.nb_rules, 0);
	TEST_EQ(rte_mempool_avail_count(pool), 511);
	rte_mempool_free(pool);
}

TEST_SUITE(wire_eth, setup, teardown);
