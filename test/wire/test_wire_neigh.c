/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Neighbours are resolved with ARP and neighbour discovery between two hosts; malformed frames
 * change nothing.
 */

#include <stdlib.h>
#include <string.h>

#include <rte_ip.h>

#include "soft/wire/port/rwire_neigh.h"

#include "../test.h"

#define AT_ETHER_TYPE 12
#define AT_IP         14
#define AT_ND         54

static const struct rte_ether_addr macs[2] = {{{2, 0, 0, 0, 0, 0xa}}, {{2, 0, 0, 0, 0, 0xb}}};
static struct rwire_neighs hosts[2];
static struct rwire_addr addrs[2];
/* An even address. */
static uint16_t frame_words[RWIRE_NEIGH_FRAME / 2], reply_words[RWIRE_NEIGH_FRAME / 2];
static uint8_t *const frame = (uint8_t *)frame_words, *const reply = (uint8_t *)reply_words;
static uint64_t now;

static void
open_hosts(const char *a, const char *b)
{
	now = 1000;
	memset(hosts, 0, sizeof(hosts));
	TEST_ASSERT(rwire_addr_parse(a, &addrs[0]) && rwire_addr_parse(b, &addrs[1]));
	TEST_OK(rwire_neighs_init(&hosts[0], &addrs[0], &macs[0], ""));
	TEST_OK(rwire_neighs_init(&hosts[1], &addrs[1], &macs[1], ""));
}

/* Whether host 0 has the MAC of host 1; the request that it sends is in frame, *len bytes. */
static bool
resolve(uint32_t *len)
{
	struct rte_ether_addr mac;

	return rwire_neigh_resolve(&hosts[0], &addrs[1], now, &mac, frame, len) &&
			memcmp(&mac, &macs[1], sizeof(mac)) == 0;
}

/* Both hosts have an entry for the other after a request and its reply. */
static void
exchange(uint32_t size)
{
	struct rte_ether_addr mac;
	uint32_t len;

	TEST_ASSERT(!resolve(&len));
	TEST_EQ(len, size);
	TEST_EQ(rwire_neigh_receive(&hosts[1], frame, len, now, reply), size);
	TEST_ASSERT(rwire_neigh_resolve(&hosts[1], &addrs[0], now, &mac, frame, &len));
	TEST_ASSERT(memcmp(&mac, &macs[0], sizeof(mac)) == 0);
	TEST_EQ(len, 0);
	TEST_MEM(reply, macs[0].addr_bytes, sizeof(macs[0]));
	TEST_EQ(rwire_neigh_receive(&hosts[0], reply, size, now, frame), 0);
	TEST_ASSERT(resolve(&len));
	TEST_EQ(len, 0);
}

TEST(wire_neigh, arp_resolves_both_hosts)
{
	open_hosts("192.0.2.1", "192.0.2.2");
	exchange(42);
}

TEST(wire_neigh, nd_resolves_both_hosts)
{
	open_hosts("2001:db8::1", "2001:db8::2:3");
	exchange(86);
}

/* As Linux 6.1 sends it. */
TEST(wire_neigh, solicitation_has_the_bytes_of_the_rfc)
{
	static const uint8_t expected[] = {0x33, 0x33, 0xff, 0x02, 0x00, 0x03, 2, 0, 0, 0, 0, 0xa,
			0x86, 0xdd, 0x60, 0, 0, 0, 0, 32, 58, 255, 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0,
			0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 2,
			0, 3, 135, 0, 0, 0, 0, 0, 0, 0, 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0,
			0, 0, 2, 0, 3, 1, 1, 2, 0, 0, 0, 0, 0xa};
	uint32_t len;

	open_hosts("2001:db8::1", "2001:db8::2:3");
	TEST_ASSERT(!resolve(&len));
	TEST_EQ(rte_ipv6_udptcp_cksum((const struct rte_ipv6_hdr *)(frame + AT_IP), frame + AT_ND),
			0);
	frame[AT_ND + 2] = frame[AT_ND + 3] = 0;
	TEST_MEM(frame, expected, sizeof(expected));
}

/* Duplicate address detection: the sender has no address yet. */
TEST(wire_neigh, solicitation_without_a_source_is_answered_to_all_nodes)
{
	const struct rte_ipv6_hdr *ip = (const struct rte_ipv6_hdr *)(reply + AT_IP);
	static const uint8_t mac[] = {0x33, 0x33, 0, 0, 0, 1};
	struct rte_ipv6_hdr *from = (struct rte_ipv6_hdr *)(frame + AT_IP);
	uint32_t len;

	open_hosts("2001:db8::1", "2001:db8::2");
	TEST_ASSERT(!resolve(&len));
	memset(&from->src_addr, 0, sizeof(from->src_addr));
	from->payload_len = RTE_BE16(24);
	frame[AT_ND + 2] = frame[AT_ND + 3] = 0;
	memcpy(frame + AT_ND + 2, &(rte_be16_t){rte_ipv6_udptcp_cksum(from, frame + AT_ND)}, 2);
	TEST_EQ(rwire_neigh_receive(&hosts[1], frame, AT_ND + 24, now, reply), RWIRE_NEIGH_FRAME);
	TEST_MEM(reply, mac, sizeof(mac));
	TEST_EQ(*(const uint8_t *)&ip->dst_addr, 0xff);
	TEST_EQ(reply[AT_ND], 136);
	TEST_EQ(reply[AT_ND + 4], 0x20); /* not solicited */
	TEST_EQ(rte_ipv6_udptcp_cksum(ip, reply + AT_ND), 0);
}

/* Each byte changed so that the frame is not valid; the checksum is right except for its own. */
TEST(wire_neigh, malformed_solicitations_have_no_effect)
{
	static const struct {
		uint8_t at;
		uint8_t value;
	} changes[] = {{AT_IP + 7, 254}, {AT_ND + 1, 1}, {AT_ND + 2, 0x55}, {AT_ND + 8, 0x21},
			{AT_ND + 25, 0}, {AT_ND + 25, 2}, {AT_IP + 6, 17}, {AT_IP + 5, 23},
			{AT_IP + 5, 33}, {AT_ETHER_TYPE, 8}};
	struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)(frame + AT_IP);
	struct rte_ether_addr mac;
	uint32_t len;
	size_t i;

	open_hosts("2001:db8::1", "2001:db8::2");
	for (i = 0; i < RTE_DIM(changes); i++, now += hosts[0].request_cycles + 1) {
		TEST_ASSERT(!resolve(&len));
		TEST_EQ(len, RWIRE_NEIGH_FRAME);
		frame[AT_ND + 2] = frame[AT_ND + 3] = 0;
		frame[changes[i].at] = changes[i].value;
		if (changes[i].at != AT_ND + 2 && ip->payload_len <= RTE_BE16(32))
			memcpy(frame + AT_ND + 2,
					&(rte_be16_t){rte_ipv6_udptcp_cksum(ip, frame + AT_ND)}, 2);
		TEST_EQ(rwire_neigh_receive(&hosts[1], frame, len, now, reply), 0);
		TEST_ASSERT(!rwire_neigh_resolve(&hosts[1], &addrs[0], now, &mac, reply, &len));
	}
}

/* However short: no byte past the end is read. */
TEST(wire_neigh, truncated_frames_have_no_effect)
{
	static const char *const pairs[][2] = {
			{"192.0.2.1", "192.0.2.2"}, {"2001:db8::1", "2001:db8::2"}};
	uint32_t len, full;
	uint8_t *copy;
	size_t i;

	for (i = 0; i < RTE_DIM(pairs); i++) {
		open_hosts(pairs[i][0], pairs[i][1]);
		TEST_ASSERT(!resolve(&full));
		for (len = RTE_ETHER_HDR_LEN; len < full; len++) {
			copy = malloc(len);
			TEST_ASSERT(copy != NULL);
			memcpy(copy, frame, len);
			TEST_EQ(rwire_neigh_receive(&hosts[1], copy, len, now, reply), 0);
			free(copy);
		}
	}
}

/* No host can announce a MAC address that was not requested. */
TEST(wire_neigh, unsolicited_replies_are_not_learned)
{
	static const char *const pairs[][2] = {
			{"192.0.2.1", "192.0.2.2"}, {"2001:db8::1", "2001:db8::2"}};
	uint32_t len;
	size_t i;

	for (i = 0; i < RTE_DIM(pairs); i++) {
		open_hosts(pairs[i][0], pairs[i][1]);
		TEST_ASSERT(!resolve(&len));
		len = rwire_neigh_receive(&hosts[1], frame, len, now, reply);
		TEST_ASSERT(len != 0);
		memset(hosts[0].learned, 0, sizeof(hosts[0].learned));
		TEST_EQ(rwire_neigh_receive(&hosts[0], reply, len, now, frame), 0);
		TEST_ASSERT(!resolve(&len));
	}
}

TEST(wire_neigh, requests_are_repeated_after_an_interval)
{
	uint32_t len;

	open_hosts("192.0.2.1", "192.0.2.2");
	TEST_ASSERT(!resolve(&len));
	TEST_EQ(len, 42);
	now += hosts[0].request_cycles;
	TEST_ASSERT(!resolve(&len));
	TEST_EQ(len, 0);
	now++;
	TEST_ASSERT(!resolve(&len));
	TEST_EQ(len, 42);
}

/* A clock that jumps, in either direction, costs a request. */
TEST(wire_neigh, stale_neighbour_is_used_and_requested)
{
	uint32_t len;

	open_hosts("2001:db8::1", "2001:db8::2");
	now = hosts[0].stale_cycles * 10;
	exchange(86);
	now += hosts[0].stale_cycles;
	TEST_ASSERT(resolve(&len));
	TEST_EQ(len, 0);
	now++;
	TEST_ASSERT(resolve(&len));
	TEST_EQ(len, 86);
	now -= hosts[0].stale_cycles * 5;
	TEST_ASSERT(resolve(&len));
	TEST_EQ(len, 86);
}

/* More than there are slots: each is resolved after its own request and reply. */
TEST(wire_neigh, many_neighbours_share_the_table)
{
	struct rwire_addr addr;
	struct rte_ether_addr mac;
	uint32_t i, len;

	open_hosts("10.0.0.1", "10.0.0.2");
	for (i = 0; i < 2000; i++, now++) {
		addr = addrs[0];
		addr.gid[13] = (uint8_t)(1 + i / 250);
		addr.gid[15] = (uint8_t)(i % 250);
		TEST_ASSERT(!rwire_neigh_resolve(&hosts[0], &addr, now, &mac, frame, &len));
		TEST_EQ(len, 42);
		hosts[1].addr = addr;
		len = rwire_neigh_receive(&hosts[1], frame, len, now, reply);
		TEST_EQ(len, 42);
		rwire_neigh_receive(&hosts[0], reply, len, now, frame);
		TEST_ASSERT(rwire_neigh_resolve(&hosts[0], &addr, now, &mac, frame, &len));
	}
}

TEST(wire_neigh, static_neighbour_is_neither_requested_nor_replaced)
{
	static const struct rte_ether_addr fixed = {{2, 0, 0, 0, 0, 0xcc}};
	struct rte_ether_addr mac;
	uint32_t len;

	open_hosts("192.0.2.1", "192.0.2.2");
	TEST_OK(rwire_neighs_init(&hosts[1], &addrs[1], &macs[1],
			"192.0.2.9@02:00:00:00:00:09;192.0.2.1@02:00:00:00:00:cc"));
	TEST_ASSERT(!resolve(&len));
	TEST_EQ(rwire_neigh_receive(&hosts[1], frame, len, now, reply), 42);
	TEST_ASSERT(rwire_neigh_resolve(&hosts[1], &addrs[0], now, &mac, frame, &len));
	TEST_EQ(len, 0);
	TEST_MEM(&mac, &fixed, sizeof(mac));
}

TEST(wire_neigh, static_neighbours_that_are_malformed_are_refused)
{
	static const char *const texts[] = {"192.0.2.9", "192.0.2.9@", "@02:00:00:00:00:09",
			"192.0.2@02:00:00:00:00:09", "192.0.2.9@02:00:00:00:09",
			"192.0.2.9@03:00:00:00:00:09", "224.0.0.1@02:00:00:00:00:09",
			"2001:db8::1@02:00:00:00:00:09", ";", "192.0.2.9@02:00:00:00:00:09;;",
			"192.0.2.9@02:00:00:00:00:09;192.0.2.9@02:00:00:00:00:0a",
			"0000000000000000000000000000000000000000000000@02:00:00:00:00:00:00:00:09"};
	char many[20 * 32] = "";
	size_t i, n = 0;

	open_hosts("192.0.2.1", "192.0.2.2");
	for (i = 0; i < RTE_DIM(texts); i++) {
		hosts[0].nb_static = 0;
		TEST_EQ(rwire_neighs_init(&hosts[0], &addrs[0], &macs[0], texts[i]), -EINVAL);
	}
	for (i = 0; i <= RWIRE_NEIGH_STATIC; i++)
		n += (size_t)snprintf(many + n, sizeof(many) - n, "192.0.2.%zu@02:00:00:00:00:01;",
				10 + i);
	hosts[0].nb_static = 0;
	TEST_EQ(rwire_neighs_init(&hosts[0], &addrs[0], &macs[0], many), -EINVAL);
}

/* RFC 5227, 2.1.1: a host that is about to use the address. */
TEST(wire_neigh, arp_probe_is_answered)
{
	uint32_t len;

	open_hosts("192.0.2.1", "192.0.2.2");
	TEST_ASSERT(!resolve(&len));
	memset(frame + 28, 0, 4); /* the address of the sender */
	TEST_EQ(rwire_neigh_receive(&hosts[1], frame, len, now, reply), 42);
	TEST_MEM(reply, macs[0].addr_bytes, sizeof(macs[0]));
}

/* Requests with any address of a sender replace no neighbour that packets are sent to. */
TEST(wire_neigh, neighbour_in_use_is_not_replaced_by_senders_of_requests)
{
	uint8_t request[RWIRE_NEIGH_FRAME] __rte_aligned(2);
	uint32_t len, i;

	open_hosts("192.0.2.1", "192.0.2.2");
	TEST_ASSERT(!resolve(&len));
	TEST_EQ(rwire_neigh_receive(&hosts[1], frame, len, now, reply), 42);
	TEST_EQ(rwire_neigh_receive(&hosts[0], reply, 42, now, frame), 0);
	TEST_ASSERT(resolve(&len));
	for (i = 0; i < 4096; i++) {
		now++;
		memset(&hosts[1].learned, 0, sizeof(hosts[1].learned));
		TEST_ASSERT(!rwire_neigh_resolve(&hosts[1], &addrs[0], now,
				&(struct rte_ether_addr){{0}}, request, &len));
		request[28] = 10; /* the address of the sender */
		request[30] = (uint8_t)(i >> 8);
		request[31] = (uint8_t)i;
		TEST_EQ(rwire_neigh_receive(&hosts[0], request, 42, now, reply), 42);
	}
	TEST_ASSERT(resolve(&len));
}

static void
setup(void)
{
}

static void
teardown(void)
{
}

TEST_SUITE(wire_neigh, setup, teardown);
