/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Packets of Linux's rdma_rxe have our ICRC, and are decoded and encoded without a change. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soft/wire/codec/rwire_icrc.h"

#include "../test.h"
#include "rxe_packets.h"

#define IPV4_LEN 20
#define IPV6_LEN 40
#define UDP_LEN  8

static uint8_t bytes[RWIRE_HEADROOM + 512];

/* Store a packet at bytes; its length. */
static uint32_t
load(const char *hex)
{
	char byte[3] = {0};
	uint32_t n = 0;

	for (; hex[0] != '\0' && hex[1] != '\0' && n < sizeof(bytes); hex += 2) {
		memcpy(byte, hex, 2);
		bytes[n++] = (uint8_t)strtoul(byte, NULL, 16);
	}
	return n;
}

/* The flow of the headers at bytes; their length. */
static uint32_t
get_flow(struct rwire_flow *flow)
{
	static const uint8_t ipv4_prefix[12] = {[10] = 0xff, [11] = 0xff};
	const uint8_t *udp = bytes + (bytes[0] >> 4 == 4 ? IPV4_LEN : IPV6_LEN);

	memset(flow, 0, sizeof(*flow));
	if (bytes[0] >> 4 == 4) {
		memcpy(flow->src.gid, ipv4_prefix, sizeof(ipv4_prefix));
		memcpy(flow->dst.gid, ipv4_prefix, sizeof(ipv4_prefix));
		memcpy(flow->src.gid + 12, bytes + 12, 4);
		memcpy(flow->dst.gid + 12, bytes + 16, 4);
		flow->ip_id = (uint16_t)(bytes[4] << 8 | bytes[5]);
	} else {
		memcpy(flow->src.gid, bytes + 8, 16);
		memcpy(flow->dst.gid, bytes + 24, 16);
	}
	flow->src_port = (uint16_t)(udp[0] << 8 | udp[1]);
	return (uint32_t)(udp - bytes) + UDP_LEN;
}

static void
check_packet(const char *hex)
{
	static uint8_t frame[RWIRE_HEADROOM + 512], built[512];
	uint8_t *bth = frame + RWIRE_HEADROOM;
	uint32_t total = load(hex), hdr, len;
	struct rwire_flow flow;
	struct rwire_pkt pkt;

	hdr = get_flow(&flow);
	TEST_ASSERT(total > hdr);
	len = total - hdr;
	memcpy(bth, bytes + hdr, len);
	TEST_ASSERT(rwire_icrc_is_good(bth, len, &flow, true));
	TEST_MEM(bth, bytes + hdr, len);
	flow.ip_id = 0;
	TEST_ASSERT(rwire_icrc_is_good(bth, len, &flow, false));
	TEST_ASSERT(rwire_pkt_parse(bth, len, &pkt));
	memcpy(built + rwire_hdr_len(pkt.info), pkt.payload, pkt.payload_len);
	TEST_EQ(rwire_pkt_build(built, &pkt), len);
	built[1] &= 0xbf; /* MigReq, which rdma_rxe does not set */
	TEST_MEM(built, bytes + hdr, len - RWIRE_ICRC_LEN);
}

TEST(wire_golden, packets_of_rdma_rxe_are_accepted)
{
	bool is_seen[RWIRE_OPCODE_NB] = {false};
	unsigned int i, nb = 0;
	struct rwire_flow flow;

	for (i = 0; i < RTE_DIM(rxe_packets); i++) {
		if (TEST_TRY(check_packet(rxe_packets[i])) != TEST_SUCCESS) {
			test_note("packet %u", i);
			test_stop(TEST_FAILED);
		}
		is_seen[bytes[get_flow(&flow)]] = true;
	}
	for (i = 0; i < RWIRE_OPCODE_NB; i++)
		nb += is_seen[i];
	TEST_EQ(nb, 23);
}

static void
setup(void)
{
}

TEST_SUITE(wire_golden, setup, setup);
