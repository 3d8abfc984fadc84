/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Each combination of rights of an MR with each opcode that needs one, and the rights of QPs. */

#include <string.h>

#include <rmem_driver.h>

#include "conf.h"

#define NB_SUMS 16u

/* All valid combinations of LOCAL_WRITE and the remote rights; false for others. */
static bool
is_sum(uint32_t access)
{
	if ((access & ~conf.info.access) != 0)
		return false;
	return (access & (RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_ATOMIC)) == 0 ||
			(access & RMEM_ACCESS_LOCAL_WRITE) != 0;
}

static bool
is_atomic(uint8_t opcode)
{
	return opcode == RMEM_WR_ATOMIC_CMP_AND_SWP || opcode == RMEM_WR_ATOMIC_FETCH_AND_ADD;
}

/* Requests of b to MRs of a with each combination succeed if it has that right. */
static void
try_remote(const uint8_t *opcodes, unsigned int nb, uint32_t right)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	static uint8_t before[64];
	uint32_t access;
	unsigned int i;

	for (access = 0; access < NB_SUMS; access++) {
		struct rmem_mr *mr;

		if (!is_sum(access))
			continue;
		mr = fx_mr(fx.a.pd, fx.a.buf, 64, access);
		for (i = 0; i < nb; i++) {
			const struct rmem_send_wr wr =
					conf_request(opcodes[i], &sge, fx_addr(fx.a.buf), mr->rkey);

			fx_fill(fx.a.buf, 64, access);
			memcpy(before, fx.a.buf, 64);
			fx_fill(fx.b.buf, 64, 77);
			TEST_EQ(fx_post_recv(fx.a.qp, 1, NULL, 0), 1);
			if ((access & right) != 0) {
				TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
				conf_reconnect();
			} else {
				conf_refused(CONF_REMOTE_KEY, fx.b.qp, &wr);
				TEST_MEM(fx.a.buf, before, 64);
			}
		}
		TEST_OK(fx_release(mr));
	}
}

CONF_TEST(right, remote_write_permits_writes, 0, 0,
		"IBTA 10.6.3: remote write by the MR's right, of 10 sums")
{
	static const uint8_t opcodes[] = {RMEM_WR_RDMA_WRITE, RMEM_WR_RDMA_WRITE_WITH_IMM};

	try_remote(opcodes, RTE_DIM(opcodes), RMEM_ACCESS_REMOTE_WRITE);
}

CONF_TEST(right, remote_write_permits_atomic_writes, RMEM_DEV_CAPA_ATOMIC_WRITE, 0,
		"IBTA A19.4.2: ATOMIC_WRITE by the MR's right REMOTE_WRITE, of 10 sums")
{
	static const uint8_t opcodes[] = {RMEM_WR_ATOMIC_WRITE};

	try_remote(opcodes, RTE_DIM(opcodes), RMEM_ACCESS_REMOTE_WRITE);
}

CONF_TEST(right, remote_read_permits_reads, 0, 0,
		"IBTA 10.6.3: remote read by the MR's right, of 10 sums")
{
	static const uint8_t opcodes[] = {RMEM_WR_RDMA_READ};

	try_remote(opcodes, RTE_DIM(opcodes), RMEM_ACCESS_REMOTE_READ);
}

CONF_TEST(right, remote_atomic_permits_atomics, RMEM_DEV_CAPA_ATOMIC, RMEM_ACCESS_REMOTE_ATOMIC,
		"IBTA 10.6.3: remote atomics by the MR's right, of 10 sums")
{
	static const uint8_t opcodes[] = {RMEM_WR_ATOMIC_CMP_AND_SWP, RMEM_WR_ATOMIC_FETCH_AND_ADD};

	try_remote(opcodes, RTE_DIM(opcodes), RMEM_ACCESS_REMOTE_ATOMIC);
}

/* Requests of a from and into MRs with each combination. */
static void
try_local(const uint8_t *opcodes, unsigned int nb, uint32_t right)
{
	uint32_t access;
	unsigned int i;

	for (access = 0; access < NB_SUMS; access++) {
		struct rmem_mr *mr;
		struct rmem_sge sge;

		if (!is_sum(access))
			continue;
		mr = fx_mr(fx.a.pd, fx.a.buf, 64, access);
		sge = fx_sge(mr, 0, 8);
		for (i = 0; i < nb; i++) {
			const struct rmem_send_wr wr = conf_request(
					opcodes[i], &sge, fx_addr(fx.b.buf), fx.b.mr->rkey);

			if (is_atomic(opcodes[i]) && (conf.info.capa & RMEM_DEV_CAPA_ATOMIC) == 0)
				continue;
			memset(fx.a.buf, 0, 64);
			memset(fx.b.buf, 1, 64);
			TEST_EQ(fx_post_recv(fx.b.qp, 1, NULL, 0), 1);
			if ((access & right) == right) {
				TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
				conf_reconnect();
			} else {
				conf_refused(CONF_LOCAL_KEY, fx.a.qp, &wr);
				TEST_ASSERT(fx_is_zero(fx.a.buf, 64));
			}
		}
		TEST_OK(fx_release(mr));
	}
}

CONF_TEST(right, any_mr_can_be_read_locally, 0, 0, "IBTA 10.6.3: local read is always allowed")
{
	static const uint8_t opcodes[] = {RMEM_WR_RDMA_WRITE, RMEM_WR_RDMA_WRITE_WITH_IMM};

	try_local(opcodes, RTE_DIM(opcodes), 0);
}

CONF_TEST(right, local_write_permits_results, 0, 0,
		"ibv_reg_mr(3): results of READ and atomics need LOCAL_WRITE")
{
	static const uint8_t opcodes[] = {RMEM_WR_RDMA_READ, RMEM_WR_ATOMIC_CMP_AND_SWP,
			RMEM_WR_ATOMIC_FETCH_AND_ADD};

	try_local(opcodes, RTE_DIM(opcodes), RMEM_ACCESS_LOCAL_WRITE);
}

CONF_TEST(right, local_write_permits_receives, 0, 0, "ibv_reg_mr(3): receives need LOCAL_WRITE")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 8);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);
	uint32_t access;

	fx_fill(fx.b.buf, 8, 1);
	for (access = 0; access < NB_SUMS; access++) {
		struct rmem_sge to;
		struct rmem_mr *mr;

		if (!is_sum(access))
			continue;
		mr = fx_mr(fx.a.pd, fx.a.buf, 64, access);
		to = fx_sge(mr, 0, 64);
		memset(fx.a.buf, 0, 64);
		TEST_EQ(fx_post_recv(fx.a.qp, 1, &to, 1), 1);
		if ((access & RMEM_ACCESS_LOCAL_WRITE) != 0) {
			fx_deliver(&fx.b, &fx.a, &wr);
			TEST_MEM(fx.a.buf, fx.b.buf, 8);
		} else {
			conf_status(CONF_PEER_MEMORY, fx_send(fx.b.qp, &wr));
			conf_status(CONF_RECV_KEY, fx_wait(fx.a.cq));
			TEST_ASSERT(fx_is_zero(fx.a.buf, 64));
			conf_reconnect();
		}
		TEST_OK(fx_release(mr));
	}
}

/* The QP of a has the other rights; SENDs need none. */
CONF_TEST(right, qp_without_the_right_refuses_the_opcode, 0, 0,
		"ibv_modify_qp(3): qp_access_flags; IBTA 11.6.2")
{
	static const struct {
		uint32_t right;
		uint8_t opcode;
	} rows[] = {
			{RMEM_ACCESS_REMOTE_WRITE, RMEM_WR_RDMA_WRITE},
			{RMEM_ACCESS_REMOTE_WRITE, RMEM_WR_RDMA_WRITE_WITH_IMM},
			{RMEM_ACCESS_REMOTE_READ, RMEM_WR_RDMA_READ},
			{RMEM_ACCESS_REMOTE_ATOMIC, RMEM_WR_ATOMIC_CMP_AND_SWP},
			{RMEM_ACCESS_REMOTE_ATOMIC, RMEM_WR_ATOMIC_FETCH_AND_ADD},
			{RMEM_ACCESS_REMOTE_WRITE, RMEM_WR_ATOMIC_WRITE},
	};
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	unsigned int i, j;

	for (i = 0; i < RTE_DIM(rows); i++) {
		TEST_OK(fx_release(fx.a.qp));
		fx.a.qp = conf_qp(fx.a.pd, fx.a.cq, RMEM_ACCESS_REMOTE & ~rows[i].right);
		conf_reconnect();
		for (j = 0; j < RTE_DIM(rows); j++) {
			const struct rmem_send_wr wr = conf_request(
					rows[j].opcode, &sge, fx_addr(fx.a.buf), fx.a.mr->rkey);

			if ((rmem_wr_info[rows[j].opcode].capa & ~conf.info.capa) != 0)
				continue;
			TEST_EQ(fx_post_recv(fx.a.qp, 1, NULL, 0), 1);
			if (rows[i].right == rows[j].right)
				conf_refused(CONF_QP_RIGHT, fx.b.qp, &wr);
			else
				TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
		}
	}
}

CONF_TEST(right, qp_without_rights_receives_messages, 0, 0,
		"IBTA 9.4.1: a SEND needs no remote right")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 8), to = fx_sge(fx.a.mr, 0, 8);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);

	TEST_OK(fx_release(fx.a.qp));
	fx.a.qp = conf_qp(fx.a.pd, fx.a.cq, 0);
	conf_reconnect();
	fx_fill(fx.b.buf, 8, 1);
	TEST_EQ(fx_post_recv(fx.a.qp, 1, &to, 1), 1);
	fx_deliver(&fx.b, &fx.a, &wr);
	TEST_MEM(fx.a.buf, fx.b.buf, 8);
}

/* Inline data may be in any memory. */
CONF_TEST(right, inline_data_needs_no_key, 0, 0,
		"ibv_post_send(3): IBV_SEND_INLINE, lkeys are not checked")
{
	uint8_t stack[16] = {0};
	struct rmem_sge sge = {.addr = fx_addr(stack), .length = sizeof(stack)};
	struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.a);

	if (conf.info.max_inline_data < sizeof(stack))
		test_skip("the device supports less inline data");
	fx_fill(stack, sizeof(stack), 5);
	sge.lkey = UINT32_MAX;
	wr.flags = RMEM_SEND_INLINE;
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf, stack, sizeof(stack));
}

TEST_SUITE(right, conf_setup, conf_teardown);
