/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The ICRC is that of the specification, and an unknown IPv4 id weakens it by 16 bits only. */

#include <stdlib.h>
#include <string.h>

#include "soft/wire/codec/rwire_crc.h"
#include "soft/wire/codec/rwire_icrc.h"

#include "../test.h"

#define BUFFER (RWIRE_HEADROOM + RWIRE_MAX_PKT)

static uint8_t buffer[BUFFER];

static struct rwire_flow
make_flow(const char *src, const char *dst, uint16_t ip_id)
{
	struct rwire_flow flow = {.src_port = 0xc123, .ip_id = ip_id};

	if (!rwire_addr_parse(src, &flow.src) || !rwire_addr_parse(dst, &flow.dst))
		abort();
	return flow;
}

/* A WRITE of random bytes with its ICRC, at buffer + RWIRE_HEADROOM; its length. */
static uint32_t
make_packet(const struct rwire_flow *flow, uint32_t payload_len)
{
	struct rwire_pkt pkt = {.opcode = RWIRE_WRITE_ONLY,
			.qpn = (uint32_t)rand() & RWIRE_QPN_MASK,
			.psn = (uint32_t)rand() & RWIRE_PSN_MASK,
			.dma_len = payload_len,
			.payload_len = payload_len};
	uint8_t *bth = buffer + RWIRE_HEADROOM;
	uint8_t *data = bth + rwire_hdr_len(rwire_opcode_info[pkt.opcode]);
	uint32_t i, len;

	for (i = 0; i < payload_len; i++)
		data[i] = (uint8_t)rand();
	len = rwire_pkt_build(bth, &pkt);
	rwire_icrc_set(bth, len, flow);
	return len;
}

/* CRC-32, bit by bit. */
static uint32_t
crc_by_bits(const uint8_t *data, size_t len)
{
	uint32_t crc = UINT32_MAX;
	unsigned int bit;

	for (; len != 0; len--, data++) {
		crc ^= *data;
		for (bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ UINT32_C(0xedb88320) : crc >> 1;
	}
	return ~crc;
}

/* The bytes of IBTA annex A17.3.2, written out for IPv4. */
TEST(wire_icrc, icrc_is_the_crc_of_the_masked_headers)
{
	const struct rwire_flow flow = make_flow("192.0.2.1", "198.51.100.7", 0xbeef);
	uint8_t *bth = buffer + RWIRE_HEADROOM, bytes[256], *p = bytes;
	uint32_t len = make_packet(&flow, 21), total = 20 + 8 + len, crc;
	const uint8_t ip[20] = {0x45, 0xff, (uint8_t)(total >> 8), (uint8_t)total, 0xbe, 0xef, 0x40,
			0, 0xff, 17, 0xff, 0xff, 192, 0, 2, 1, 198, 51, 100, 7};
	const uint8_t udp[8] = {0xc1, 0x23, 0x12, 0xb7, (uint8_t)((8 + len) >> 8),
			(uint8_t)(8 + len), 0xff, 0xff};

	memset(p, 0xff, 8);
	memcpy(p + 8, ip, sizeof(ip));
	memcpy(p + 28, udp, sizeof(udp));
	memcpy(p + 36, bth, len - 4);
	p[36 + 4] = 0xff;
	crc = crc_by_bits(bytes, 36 + len - 4);
	p = bth + len - 4;
	TEST_EQ(p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24, crc);
	TEST_EQ(bth[4], 0);
}

/* Both CRCs, aligned and not. */
TEST(wire_icrc, crc_is_right_for_every_length)
{
	unsigned int i, from, len;

	for (i = 0; i < sizeof(buffer); i++)
		buffer[i] = (uint8_t)rand();
	for (from = 0; from < 3; from++) {
		for (len = 0; len < 400; len++) {
			TEST_EQ(rwire_crc(buffer + from, len), crc_by_bits(buffer + from, len));
			TEST_EQ(rwire_crc_scalar(buffer + from, len),
					crc_by_bits(buffer + from, len));
		}
	}
	TEST_EQ(rwire_crc(buffer, BUFFER), crc_by_bits(buffer, BUFFER));
}

/* A packet of ConnectX-4 Lx (CNP), and one of UC with data; the tests of scapy's roce have both. */
TEST(wire_icrc, icrc_of_other_implementations_is_accepted)
{
	static const uint8_t cnp[32] = {
			0x81, 0, 0xff, 0xff, 0x40, 0, 0x01, 0x18, [28] = 0x82, 0xfd, 0, 0x2a};
	static const uint8_t uc[36] = {0x24, 0x60, 0xff, 0xff, 0, 0, 0, 0xd3, 0, 0xcf, 0x17, 0x10,
			'F', '0', 0x81, 0x8b, 0xe2, 0x89, '5', 0xd9, 0x0e, 0x9a, 0x95, 'P', 'T',
			0x01, 0xbe, 0x88, '^', 'P', 0, 0, 0x78, 0xf3, 0x53, 0xf3};
	struct rwire_flow flow = make_flow("10.0.17.1", "10.0.18.1", 0x718c);
	uint8_t *bth = buffer + RWIRE_HEADROOM;

	flow.src_port = 0;
	memcpy(bth, cnp, sizeof(cnp));
	TEST_ASSERT(rwire_icrc_is_good(bth, sizeof(cnp), &flow, true));
	flow = make_flow("192.168.0.7", "192.168.0.7", 1144);
	flow.src_port = 49152;
	memcpy(bth, uc, sizeof(uc));
	TEST_ASSERT(rwire_icrc_is_good(bth, sizeof(uc), &flow, true));
}

TEST(wire_icrc, icrc_with_any_ip_id_is_accepted)
{
	static const uint32_t lengths[] = {0, 1, 64, 1023, RWIRE_MAX_MTU};
	unsigned int i, id;

	for (i = 0; i < RTE_DIM(lengths); i++) {
		for (id = 0; id < 65536; id += 257) {
			struct rwire_flow flow = make_flow("10.1.2.3", "10.3.2.1", (uint16_t)id);
			uint32_t len = make_packet(&flow, lengths[i]);

			TEST_ASSERT(rwire_icrc_is_good(buffer + RWIRE_HEADROOM, len, &flow, true));
			flow.ip_id = 0;
			TEST_ASSERT(rwire_icrc_is_good(buffer + RWIRE_HEADROOM, len, &flow, false));
			TEST_EQ(rwire_icrc_is_good(buffer + RWIRE_HEADROOM, len, &flow, true),
					id == 0);
		}
	}
}

/* Routers may change FECN, BECN and the reserved bits of the BTH, and nothing else. */
TEST(wire_icrc, inverted_bits_of_the_ip_id_give_the_icrc_of_the_other_id)
{
	struct rwire_icrc_ids ids;
	uint32_t i, len;

	for (i = 0; i < 1000; i++) {
		uint16_t from = (uint16_t)rand(), to = (uint16_t)rand();
		struct rwire_flow flow = make_flow("192.0.2.1", "192.0.2.2", from);

		len = make_packet(&flow, (uint32_t)rand() % 4097);
		rwire_icrc_ids_init(&ids, len);
		rwire_icrc_change_id(buffer + RWIRE_HEADROOM, &ids, from ^ to);
		flow.ip_id = to;
		TEST_ASSERT(rwire_icrc_is_good(buffer + RWIRE_HEADROOM, len, &flow, true));
	}
}

TEST(wire_icrc, one_wrong_bit_is_refused)
{
	static const char *const ends[2][2] = {
			{"10.1.2.3", "10.3.2.1"}, {"2001:db8::1", "2001:db8::2"}};
	unsigned int i, bit;

	for (i = 0; i < RTE_DIM(ends); i++) {
		const struct rwire_flow flow = make_flow(ends[i][0], ends[i][1], 0);
		uint32_t len = make_packet(&flow, 100);
		uint8_t *bth = buffer + RWIRE_HEADROOM;

		TEST_ASSERT(rwire_icrc_is_good(bth, len, &flow, false));
		for (bit = 0; bit < 8 * len; bit++) {
			bth[bit / 8] ^= (uint8_t)(1u << bit % 8);
			TEST_EQ(rwire_icrc_is_good(bth, len, &flow, false), bit / 8 == 4);
			bth[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
}

TEST(wire_icrc, icrc_of_another_flow_is_refused)
{
	struct rwire_flow flow = make_flow("2001:db8::1", "2001:db8::2", 0);
	uint32_t len = make_packet(&flow, 64);
	uint8_t *bth = buffer + RWIRE_HEADROOM;

	flow.src_port++;
	TEST_ASSERT(!rwire_icrc_is_good(bth, len, &flow, false));
	flow.src_port--;
	TEST_ASSERT(rwire_icrc_is_good(bth, len, &flow, false));
	flow.src.gid[15]++;
	TEST_ASSERT(!rwire_icrc_is_good(bth, len, &flow, false));
}

static void
setup(void)
{
	srand(1);
}

TEST_SUITE(wire_icrc, setup, setup);
