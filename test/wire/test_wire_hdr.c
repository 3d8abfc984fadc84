/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Packets are decoded as they were encoded, and malformed ones are refused. */

#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>

#include "soft/wire/codec/rwire_hdr.h"

#include "../test.h"

#define BUFFER (RWIRE_MAX_PKT + 64)

static struct rwire_pkt
make_pkt(uint8_t opcode, uint32_t payload_len)
{
	return (struct rwire_pkt){
			.opcode = (uint8_t)opcode,
			.syndrome = RWIRE_AETH_NAK_ACC,
			.is_solicited = true,
			.is_ack_req = true,
			.qpn = 0xabcdef,
			.psn = 0x123456,
			.msn = 0x654321,
			.type = 2,
			.level = 1,
			.rkey = 0x89abcdef,
			.dma_len = 0x10203,
			.srqn = 0xfedcba,
			.imm = 0x5a5b5c5d,
			.payload_len = payload_len,
			.addr = UINT64_C(0x1122334455667788),
			.compare = UINT64_C(0x99aabbccddeeff00),
			.swap_add = UINT64_C(0x0f1e2d3c4b5a6978),
	};
}

static void
check_fields(const struct rwire_pkt *got, const struct rwire_pkt *want)
{
	TEST_EQ(got->opcode, want->opcode);
	TEST_EQ(got->is_solicited, want->is_solicited);
	TEST_EQ(got->is_ack_req, want->is_ack_req);
	TEST_EQ(got->qpn, want->qpn);
	TEST_EQ(got->psn, want->psn);
	TEST_EQ(got->payload_len, want->payload_len);
	if (got->info & RWIRE_HAS_XETH)
		TEST_EQ(got->srqn, want->srqn);
	if (got->info & RWIRE_HAS_AETH) {
		TEST_EQ(got->syndrome, want->syndrome);
		TEST_EQ(got->msn, want->msn);
	}
	if (got->info & (RWIRE_HAS_RETH | RWIRE_HAS_ATOMIC)) {
		TEST_EQ(got->addr, want->addr);
		TEST_EQ(got->rkey, want->rkey);
	}
	if (got->info & RWIRE_HAS_RETH)
		TEST_EQ(got->dma_len, want->dma_len);
	if (got->info & RWIRE_HAS_FETH) {
		TEST_EQ(got->type, want->type);
		TEST_EQ(got->level, want->level);
	}
	if (got->info & RWIRE_HAS_ATOMIC)
		TEST_EQ(got->compare, want->compare);
	if (got->info & (RWIRE_HAS_ATOMIC | RWIRE_HAS_RESULT))
		TEST_EQ(got->swap_add, want->swap_add);
	if (got->info & (RWIRE_HAS_IMM | RWIRE_HAS_INV))
		TEST_EQ(got->imm, want->imm);
}

/* The opcodes of RC up to last, with a service that has them; their number. */
static unsigned int
check_opcodes(uint8_t service, unsigned int last)
{
	static const uint32_t lengths[] = {0, 1, 2, 3, 4, 255, 1024, RWIRE_MAX_MTU};
	uint8_t bth[BUFFER];
	unsigned int opcode, i, nb = 0;

	for (opcode = 0; opcode <= last; opcode++) {
		const struct rwire_pkt pkt = {.service = service, .opcode = (uint8_t)opcode};
		const uint32_t info = rwire_pkt_info(&pkt);

		if (info == 0)
			continue;
		nb++;
		for (i = 0; i < RTE_DIM(lengths); i++) {
			struct rwire_pkt got, want = make_pkt(opcode, lengths[i]);
			uint32_t len;

			want.service = service;
			if (lengths[i] != 0 && (info & RWIRE_HAS_PAYLOAD) == 0)
				continue;
			len = rwire_pkt_build(bth, &want);
			TEST_EQ(len,
					rwire_hdr_len(info) + RTE_ALIGN_CEIL(lengths[i], 4) +
							RWIRE_ICRC_LEN);
			TEST_ASSERT(rwire_pkt_parse(bth, len, &got));
			TEST_ASSERT(got.payload == bth + rwire_hdr_len(info));
			TEST_EQ(got.service, service);
			TEST_EQ(got.info, info);
			check_fields(&got, &want);
		}
	}
	return nb;
}

TEST(wire_hdr, every_opcode_decodes_to_what_was_encoded)
{
	TEST_EQ(check_opcodes(RWIRE_RC, RWIRE_ATOMIC_WRITE), 25);
	TEST_EQ(check_opcodes(RWIRE_XRC, RWIRE_ATOMIC_WRITE), 25);
}

/* Whether XRC has a packet with an opcode from 0x15 on, and that many bytes after the BTH. */
static bool
xrc_has(unsigned int opcode, uint32_t length)
{
	switch (opcode) {
	case RWIRE_SEND_LAST_WITH_INV:
	case RWIRE_SEND_ONLY_WITH_INV:
		return length >= RWIRE_XETH_LEN + 4;
	case RWIRE_FLUSH:
		return length == RWIRE_XETH_LEN + 4 + 16;
	case RWIRE_ATOMIC_WRITE:
		return length >= RWIRE_XETH_LEN + 16;
	default:
		return false;
	}
}

/* IBTA A14.3.1: it follows the BTH of each request, and of no response. */
TEST(wire_hdr, requests_of_xrc_have_an_xeth)
{
	static const uint8_t want[] = {0xaa, 0x70, 0xff, 0xff, 0x00, 0x00, 0x00, 0x11, 0x80, 0x12,
			0x34, 0x56, 0x00, 0xab, 0xcd, 0xef, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
			0x10, 0x00, 0x00, 0x00, 0x02, 0x03, 0x00, 0x00, 0x00, 0x01, 0xee, 0x00,
			0x00, 0x00};
	struct rwire_pkt got,
			pkt = {.service = RWIRE_XRC,
					.opcode = RWIRE_WRITE_ONLY,
					.is_ack_req = true,
					.qpn = 0x11,
					.psn = 0x123456,
					.srqn = 0xabcdef,
					.rkey = 0x203,
					.dma_len = 1,
					.addr = 0x1000,
					.payload_len = 1};
	const uint32_t len = sizeof(want) + RWIRE_ICRC_LEN;
	uint8_t bth[BUFFER];
	unsigned int opcode;
	uint32_t i;

	bth[32] = 0xee;
	TEST_EQ(rwire_pkt_build(bth, &pkt), len);
	TEST_MEM(bth, want, sizeof(want));
	bth[12] = 0xff; /* reserved */
	TEST_ASSERT(rwire_pkt_parse(bth, len, &got));
	TEST_EQ(got.srqn, pkt.srqn);
	TEST_ASSERT(!rwire_pkt_parse(bth, RWIRE_BTH_LEN + 3 + RWIRE_ICRC_LEN, &got));
	for (opcode = 0; opcode < RWIRE_OPCODE_NB; opcode++) {
		pkt.opcode = (uint8_t)opcode;
		TEST_EQ(rwire_hdr_len(rwire_pkt_info(&pkt)) -
						rwire_hdr_len(rwire_opcode_info[opcode]),
				rwire_opcode_info[opcode] & RWIRE_IS_REQUEST ? RWIRE_XETH_LEN : 0);
		TEST_ASSERT(rwire_hdr_len(rwire_pkt_info(&pkt)) <= RWIRE_MAX_HDR);
	}
	/* Opcodes that RC lacks: with the length of any of them. */
	for (opcode = 0x15; opcode < 0x20; opcode++) {
		memset(bth, 0, sizeof(bth));
		bth[0] = (uint8_t)(RWIRE_XRC | opcode);
		for (i = RWIRE_BTH_LEN; i <= RWIRE_MAX_HDR; i += 4)
			TEST_EQ(rwire_pkt_parse(bth, i + RWIRE_ICRC_LEN, &got),
					xrc_has(opcode, i - RWIRE_BTH_LEN));
	}
}

/* As rdma_rxe of Linux sends it. */
TEST(wire_hdr, atomic_write_has_a_reth_and_eight_bytes)
{
	static const uint8_t want[] = {0x1d, 0x40, 0xff, 0xff, 0x00, 0x00, 0x00, 0x11, 0x80, 0x12,
			0x34, 0x56, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00,
			0x02, 0x03, 0x00, 0x00, 0x00, 0x08};
	struct rwire_pkt pkt = {.opcode = RWIRE_ATOMIC_WRITE,
			.is_ack_req = true,
			.qpn = 0x11,
			.psn = 0x123456,
			.rkey = 0x203,
			.dma_len = 8,
			.addr = 0x1000,
			.payload_len = 8};
	uint8_t bth[BUFFER];

	TEST_EQ(rwire_pkt_build(bth, &pkt), sizeof(want) + 8 + RWIRE_ICRC_LEN);
	TEST_MEM(bth, want, sizeof(want));
}

/* IBTA table 38 and the layouts of 9.3, as bytes. */
TEST(wire_hdr, headers_have_the_layout_of_the_specification)
{
	static const uint8_t want[] = {0x0a, 0x70, 0xff, 0xff, 0x00, 0x00, 0x00, 0x11, 0x80, 0x12,
			0x34, 0x56, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00,
			0x02, 0x03, 0x00, 0x00, 0x00, 0x01, 0xee, 0x00, 0x00, 0x00};
	struct rwire_pkt pkt = {.opcode = RWIRE_WRITE_ONLY,
			.is_ack_req = true,
			.qpn = 0x11,
			.psn = 0x123456,
			.rkey = 0x203,
			.dma_len = 1,
			.addr = 0x1000,
			.payload_len = 1};
	uint8_t bth[BUFFER];

	bth[rwire_hdr_len(rwire_opcode_info[RWIRE_WRITE_ONLY])] = 0xee;
	TEST_EQ(rwire_pkt_build(bth, &pkt), sizeof(want) + RWIRE_ICRC_LEN);
	TEST_MEM(bth, want, sizeof(want));
}

/* IBTA 9.3.2: the DETH; opcodes 0x64 and 0x65. */
TEST(wire_hdr, datagrams_have_a_deth)
{
	static const uint8_t want[] = {0x65, 0xe0, 0xff, 0xff, 0x00, 0x00, 0x00, 0x11, 0x00, 0x12,
			0x34, 0x56, 0x80, 0x01, 0x00, 0x02, 0x00, 0xab, 0xcd, 0xef, 0x01, 0x02,
			0x03, 0x04, 0xee, 0xdd, 0x00, 0x00};
	struct rwire_pkt got,
			pkt = {.service = RWIRE_UD,
					.opcode = RWIRE_SEND_ONLY_WITH_IMM,
					.is_solicited = true,
					.qpn = 0x11,
					.psn = 0x123456,
					.qkey = 0x80010002,
					.src_qp = 0xabcdef,
					.imm = rte_cpu_to_be_32(0x01020304),
					.payload_len = 2};
	uint32_t opcode, len = sizeof(want) + RWIRE_ICRC_LEN;
	uint8_t bth[BUFFER];

	bth[24] = 0xee;
	bth[25] = 0xdd;
	TEST_EQ(rwire_pkt_build(bth, &pkt), len);
	TEST_MEM(bth, want, sizeof(want));
	TEST_ASSERT(rwire_pkt_parse(bth, len, &got));
	TEST_EQ(got.service, RWIRE_UD);
	TEST_EQ(got.qkey, pkt.qkey);
	TEST_EQ(got.src_qp, pkt.src_qp);
	TEST_EQ(got.payload_len, 2);
	TEST_ASSERT(got.payload == bth + 24);
	check_fields(&got, &pkt);
	/* A DETH that is cut short, and opcodes that UD lacks. */
	TEST_ASSERT(!rwire_pkt_parse(bth, RWIRE_BTH_LEN + RWIRE_DETH_LEN + 3, &got));
	for (opcode = RWIRE_UD; opcode < RWIRE_UD + 0x20; opcode++) {
		bth[0] = (uint8_t)opcode;
		TEST_EQ(rwire_pkt_parse(bth, len, &got), opcode == 0x64 || opcode == 0x65);
	}
}

TEST(wire_hdr, malformed_packets_are_refused)
{
	static const struct {
		uint8_t at;
		uint8_t value;
	} damage[] = {{0, 0x15}, {0, 0x18}, {0, 0xb5}, {0, 0xbe}, {0, 0xff}, {1, 0x41}};
	struct rwire_pkt pkt = make_pkt(RWIRE_READ_REQUEST, 0), got;
	uint8_t bth[BUFFER], good[BUFFER];
	uint32_t i, len = rwire_pkt_build(good, &pkt);

	for (i = 0; i < len; i++) {
		memcpy(bth, good, len);
		TEST_ASSERT(!rwire_pkt_parse(bth, i, &got));
	}
	TEST_ASSERT(!rwire_pkt_parse(bth, len + 4, &got)); /* a READ request with a payload */
	for (i = 0; i < RTE_DIM(damage); i++) {
		memcpy(bth, good, len);
		bth[damage[i].at] = damage[i].value;
		TEST_ASSERT(!rwire_pkt_parse(bth, len, &got));
	}
}

/* Its bits that differ from the default one: the receiver compares them with its QP's. */
TEST(wire_hdr, pkey_is_that_of_the_packet)
{
	struct rwire_pkt pkt = make_pkt(RWIRE_READ_REQUEST, 0), got;
	uint8_t bth[BUFFER];
	uint32_t len;

	pkt.pkey = 0x8001 ^ RWIRE_PKEY;
	len = rwire_pkt_build(bth, &pkt);
	TEST_EQ(bth[2], 0x80);
	TEST_EQ(bth[3], 0x01);
	TEST_ASSERT(rwire_pkt_parse(bth, len, &got));
	TEST_EQ(got.pkey, pkt.pkey);
}

/* Each packet in an allocation of its size, for the address sanitizer. */
TEST(wire_hdr, decoding_random_bytes_reads_no_byte_beyond_them)
{
	unsigned int i, j, nb_good = 0;

	for (i = 0; i < 100000; i++) {
		uint32_t len = (uint32_t)rand() % 80;
		uint8_t *bth = malloc(len + 1);
		struct rwire_pkt pkt;

		TEST_ASSERT(bth != NULL);
		for (j = 0; j < len; j++)
			bth[j] = (uint8_t)rand();
		if (len > 3) {
			bth[0] %= RWIRE_OPCODE_NB + 1;
			bth[0] |= i % 4 == 0 ? RWIRE_XRC : 0;
			bth[1] &= 0xf0;
			bth[2] = bth[3] = 0xff;
		}
		if (rwire_pkt_parse(bth, len, &pkt)) {
			nb_good++;
			TEST_ASSERT(pkt.payload >= bth);
			TEST_ASSERT(pkt.payload + pkt.payload_len + pkt.pad + RWIRE_ICRC_LEN ==
					bth + len);
		}
		free(bth);
	}
	TEST_ASSERT(nb_good > 1000);
}

TEST(wire_hdr, psns_wrap)
{
	TEST_EQ(rwire_psn_add(0xffffff, 1), 0);
	TEST_EQ(rwire_psn_diff(0, 0xffffff), 1);
	TEST_EQ(rwire_psn_diff(0xffffff, 0), -1);
	TEST_EQ(rwire_psn_diff(0x800000, 0), -0x800000);
	TEST_EQ(rwire_psn_diff(0x7fffff, 0), 0x7fffff);
	TEST_EQ(rwire_nb_pkts(0, 256), 1);
	TEST_EQ(rwire_nb_pkts(256, 256), 1);
	TEST_EQ(rwire_nb_pkts(257, 256), 2);
}

static void
setup(void)
{
	srand(1);
}

TEST_SUITE(wire_hdr, setup, setup);
