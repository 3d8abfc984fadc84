/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Requests between soft and rdma_rxe transfer their bytes, in both directions. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define GUARD 64
#define IMM   0x5a5b5c5d

static uint32_t seed;

/* Different bytes in each call. */
static void
fill(uint8_t *to, size_t n)
{
	size_t i;

	seed++;
	for (i = 0; i < n; i++)
		to[i] = (uint8_t)((i * 7 + i / 251 + seed * 31) ^ seed >> 3);
}

static bool
has_receive(uint8_t opcode)
{
	return opcode != RMEM_WR_RDMA_WRITE && opcode != RMEM_WR_RDMA_READ;
}

static bool
has_imm(uint8_t opcode)
{
	return opcode == RMEM_WR_SEND_WITH_IMM || opcode == RMEM_WR_RDMA_WRITE_WITH_IMM;
}

static void
check_receive(struct pair_end *peer, const struct rmem_send_wr *wr, uint32_t length)
{
	bool is_write = wr->opcode == RMEM_WR_RDMA_WRITE_WITH_IMM;
	struct rmem_wc wc;

	pair_wait(peer, true, &wc);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	TEST_EQ(wc.opcode, is_write ? RMEM_WC_RECV_RDMA_WITH_IMM : RMEM_WC_RECV);
	TEST_EQ(wc.byte_len, length);
	TEST_EQ((wc.flags & RMEM_WC_WITH_IMM) != 0, has_imm(wr->opcode));
	if (has_imm(wr->opcode))
		TEST_EQ(wc.imm_data, IMM);
	/* The flag of rdma_rxe is that of the kernel, which has another value in verbs. */
	if (peer == &pair_soft)
		TEST_EQ((wc.flags & RMEM_WC_WITH_INV) != 0, wr->opcode == RMEM_WR_SEND_WITH_INV);
}

/* One request, its completions and its bytes, and the bytes that follow these. */
static void
transfer(struct pair_end *end, uint8_t opcode, uint32_t length, uint32_t inv_rkey)
{
	struct pair_end *peer = pair_peer(end);
	uint8_t *from = end->memory + PAIR_LOCAL, *to = peer->memory + PAIR_TARGET;
	uint8_t guard[GUARD];
	struct rmem_send_wr wr;
	struct rmem_sge sge;
	struct rmem_wc wc;

	wr = pair_wr(end, opcode, 0, length, &sge);
	wr.imm_data = opcode == RMEM_WR_SEND_WITH_INV ? inv_rkey : IMM;
	if (opcode == RMEM_WR_RDMA_READ) {
		from = peer->memory + PAIR_TARGET;
		to = end->memory + PAIR_LOCAL;
	} else if (has_receive(opcode) && opcode != RMEM_WR_RDMA_WRITE_WITH_IMM) {
		to = peer->memory + PAIR_RECV;
	}
	fill(from, length);
	memset(to, 0xcd, length + GUARD);
	memset(guard, 0xcd, GUARD);
	if (has_receive(opcode))
		TEST_RUN(pair_post_recv(peer, 1, 0, PAIR_AREA));
	TEST_RUN(end->post_send(&wr));
	pair_wait(end, false, &wc);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	if (has_receive(opcode))
		check_receive(peer, &wr, length);
	TEST_MEM(to, from, length);
	TEST_MEM(to + length, guard, GUARD);
}

static void
transfer_all(struct pair_end *end, uint32_t mtu)
{
	static const uint8_t opcodes[] = {RMEM_WR_SEND, RMEM_WR_SEND_WITH_IMM, RMEM_WR_RDMA_WRITE,
			RMEM_WR_RDMA_WRITE_WITH_IMM, RMEM_WR_RDMA_READ};
	const uint32_t lengths[] = {0, 1, mtu - 1, mtu, mtu + 1, 5 * mtu + 3, 65536 + 5};
	unsigned int i, j;

	for (i = 0; i < RTE_DIM(opcodes); i++) {
		for (j = 0; j < RTE_DIM(lengths); j++) {
			if (TEST_TRY(transfer(end, opcodes[i], lengths[j], 0)) == TEST_SUCCESS)
				continue;
			test_note("from %s, opcode %u, %u bytes, MTU %u", end->name, opcodes[i],
					lengths[j], mtu);
			test_stop(TEST_FAILED);
		}
	}
}

static void
transfer_mtus(struct pair_end *end)
{
	struct pair_conf conf = PAIR_CONF;
	uint32_t mtu;

	pair_open(&conf);
	for (mtu = 256; mtu <= 4096; mtu *= 4) {
		conf.mtu = mtu;
		pair_connect(&conf);
		transfer_all(end, mtu);
	}
}

TEST_CALL(interop, soft_executes_send_write_and_read_on_rxe, transfer_mtus(&pair_soft));
TEST_CALL(interop, rxe_executes_send_write_and_read_on_soft, transfer_mtus(&pair_rxe));

/* One atomic; the value before and after. */
static void
atomic(struct pair_end *end, uint8_t opcode, uint64_t compare_add, uint64_t swap, uint64_t before,
		uint64_t after)
{
	struct pair_end *peer = pair_peer(end);
	struct rmem_send_wr wr;
	struct rmem_sge sge;
	struct rmem_wc wc;

	wr = pair_wr(end, opcode, 8, 8, &sge);
	wr.atomic.compare_add = compare_add;
	wr.atomic.swap = swap;
	memset(end->memory + PAIR_LOCAL, 0xcd, 24);
	memcpy(peer->memory + PAIR_TARGET + 8, &before, 8);
	TEST_RUN(end->post_send(&wr));
	pair_wait(end, false, &wc);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	TEST_MEM(end->memory + PAIR_LOCAL + 8, &before, 8);
	TEST_MEM(peer->memory + PAIR_TARGET + 8, &after, 8);
}

static void
atomics(struct pair_end *end)
{
	const uint64_t big = UINT64_C(0xfedcba9876543210), other = UINT64_C(0x0123456789abcdef);
	const struct pair_conf conf = PAIR_CONF;

	pair_open(&conf);
	atomic(end, RMEM_WR_ATOMIC_FETCH_AND_ADD, 1, 0, UINT64_MAX, 0);
	atomic(end, RMEM_WR_ATOMIC_FETCH_AND_ADD, other, 0, big, big + other);
	atomic(end, RMEM_WR_ATOMIC_CMP_AND_SWP, big, other, big, other);
	atomic(end, RMEM_WR_ATOMIC_CMP_AND_SWP, big, 1, other, other);
}

TEST_CALL(interop, soft_executes_atomics_on_rxe, atomics(&pair_soft));
TEST_CALL(interop, rxe_executes_atomics_on_soft, atomics(&pair_rxe));

/* SEND_WITH_INV of length bytes invalidates a window of the peer: its key is refused. */
static void
invalidate(struct pair_end *end, uint32_t length)
{
	struct rmem_send_wr wr;
	struct rmem_sge sge;
	struct rmem_wc wc;
	uint32_t rkey = 0;

	TEST_RUN(pair_peer(end)->bind(&rkey));
	wr = pair_wr(end, RMEM_WR_RDMA_WRITE, 0, 100, &sge);
	wr.rdma.rkey = rkey;
	TEST_RUN(end->post_send(&wr));
	pair_wait(end, false, &wc);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	transfer(end, RMEM_WR_SEND_WITH_INV, length, rkey);
	TEST_RUN(end->post_send(&wr));
	pair_wait(end, false, &wc);
	TEST_STATUS(wc.status, RMEM_WC_REM_ACCESS_ERR);
}

static void
invalidate_both(struct pair_end *end)
{
	struct pair_conf conf = PAIR_CONF;

	conf.mtu = 256;
	pair_open(&conf);
	invalidate(end, 30); /* one packet */
	pair_connect(&conf);
	invalidate(end, 300);
	return; /* two */
}

TEST_CALL(interop, soft_invalidates_a_window_of_rxe, invalidate_both(&pair_soft));
TEST_CALL(interop, rxe_invalidates_a_window_of_soft, invalidate_both(&pair_rxe));

static void
setup(void)
{
}

TEST_SUITE(interop, setup, pair_close);
