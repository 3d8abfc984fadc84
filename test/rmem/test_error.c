/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The table of doc/driver_soft.md, "Checks and the resulting errors": each mistake
 * gives its status to the sender and to the peer, and leaves the QPs in their states.
 * Those here take every opcode or a limit of the device; the others are cases of conformance.
 */

#include <string.h>

#include "fixture.h"

static uint64_t
b_addr(size_t offset)
{
	return fx_addr(fx.b.buf + offset);
}

/* A request of each opcode that reads or writes local memory by its SGE. */
static const uint8_t local_opcodes[] = {RMEM_WR_RDMA_WRITE, RMEM_WR_RDMA_WRITE_WITH_IMM,
		RMEM_WR_SEND, RMEM_WR_SEND_WITH_IMM, RMEM_WR_SEND_WITH_INV, RMEM_WR_RDMA_READ,
		RMEM_WR_RDMA_READ_WITH_INV, RMEM_WR_ATOMIC_CMP_AND_SWP,
		RMEM_WR_ATOMIC_FETCH_AND_ADD};

static bool
is_atomic(uint8_t opcode)
{
	return opcode == RMEM_WR_ATOMIC_CMP_AND_SWP || opcode == RMEM_WR_ATOMIC_FETCH_AND_ADD;
}

/* There is a key to invalidate, so that the mistake to come is the only one. */
static void
setup(void)
{
	fx_setup_fast();
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
}

static struct rmem_send_wr
request(uint8_t opcode, const struct rmem_sge *sge)
{
	struct rmem_send_wr wr = fx_rdma(opcode, sge, b_addr(0), fx.b.mr->rkey);

	if (is_atomic(opcode))
		wr = fx_atomic(opcode, sge, b_addr(0), fx.b.mr->rkey, 0);
	wr.invalidate_rkey = fx.fast.mr->rkey;
	return wr;
}

/* Eight bytes by each opcode: refused, nothing moved, no receive consumed. */
static void
expect_local_refusals(const struct rmem_sge *sge)
{
	const struct rmem_sge to = fx_sge(fx.b.mr, 64, 64);
	unsigned int i;

	memset(fx.b.buf, 0x11, 128);
	for (i = 0; i < RTE_DIM(local_opcodes); i++) {
		struct rmem_send_wr wr = request(local_opcodes[i], sge);

		TEST_EQ(fx_post_recv(fx.b.qp, 1, &to, 1), 1);
		fx_expect(&wr, RMEM_WC_LOC_PROT_ERR, RMEM_QPS_ERR, RMEM_QPS_RTS);
		TEST_ASSERT(fx_is_idle(fx.b.cq));
		fx_reconnect();
	}
	for (i = 0; i < 128; i++)
		TEST_EQ(fx.b.buf[i], 0x11);
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_VALID);
}

TEST(error, sge_outside_the_region_is_loc_prot_err)
{
	const uint64_t base = fx_addr(fx.a.buf + 64);
	const uint64_t addrs[] = {base - 1, base + 57, base + 64, UINT64_MAX - 6, UINT64_MAX, 0};
	struct rmem_sge sge = fx_sge(fx_mr(fx.a.pd, fx.a.buf + 64, 64, FX_ACCESS), 0, 8);
	unsigned int i;

	for (i = 0; i < RTE_DIM(addrs); i++) {
		sge.addr = addrs[i];
		expect_local_refusals(&sge);
	}
}

/* Of 2^32 - 1 bytes the end wraps in 32 bits, and so it must not be counted in those. */
TEST(error, longest_sge_is_refused)
{
	struct rmem_sge sges[2] = {fx_sge(fx.a.mr, 1, UINT32_MAX), fx_sge(fx.a.mr, 0, 8)};
	struct rmem_send_wr wr = fx_rdma(RMEM_WR_RDMA_WRITE, sges, b_addr(0), fx.b.mr->rkey);
	struct rmem_dev_info info = fx_dev_info(fx.a.dev);
	int status;

	for (wr.num_sge = 1; wr.num_sge <= 2; wr.num_sge++) {
		status = fx_send(fx.a.qp, &wr);
		TEST_ASSERT(status == RMEM_WC_LOC_PROT_ERR || status == RMEM_WC_LOC_LEN_ERR);
		fx_reconnect();
	}
	sges[0].length = (uint32_t)RTE_MIN(info.max_msg_size, UINT32_MAX);
	wr.num_sge = 1;
	fx_expect_refusal(&wr, RMEM_WC_LOC_PROT_ERR, RMEM_QPS_RTS);
	TEST_ASSERT(fx_is_zero(fx.b.buf, FX_BUF_SIZE));
}

TEST(error, second_sge_is_checked_as_the_first)
{
	struct rmem_sge sges[] = {fx_sge(fx.a.mr, 0, 8), fx_sge(fx.a.mr, FX_BUF_SIZE - 7, 8)};
	struct rmem_send_wr wr = fx_rdma(RMEM_WR_RDMA_WRITE, sges, b_addr(0), fx.b.mr->rkey);

	fx_fill(fx.a.buf, 16, 1);
	wr.num_sge = 2;
	fx_expect_refusal(&wr, RMEM_WC_LOC_PROT_ERR, RMEM_QPS_RTS);
	TEST_ASSERT(fx_is_zero(fx.b.buf, 64));
	fx_fill(fx.b.buf, 16, 2);
	wr.opcode = RMEM_WR_RDMA_READ;
	memset(fx.a.buf, 0, 64);
	fx_expect_refusal(&wr, RMEM_WC_LOC_PROT_ERR, RMEM_QPS_RTS);
	TEST_ASSERT(fx_is_zero(fx.a.buf, 64));
}

/* As many SGEs over one large region as make the message too long. */
TEST(error, message_over_the_limit_is_loc_len_err)
{
	struct rmem_qp_conf conf = fx_qp_conf(fx.a.cq, 4);
	struct rmem_sge sges[16];
	struct rmem_dev_info info = fx_dev_info(fx.a.dev);
	struct rmem_send_wr wr;
	struct rmem_mr *mr;
	uint32_t size;
	void *mem;
	int i;

	TEST_ASSERT(info.max_msg_size >= FX_BUF_SIZE && info.max_send_sge >= 16);
	TEST_SKIP_IF(info.max_msg_size > UINT32_MAX, "the device takes messages of 4 GiB");
	size = (uint32_t)(info.max_msg_size / 16 + FX_PAGE);
	mem = fx_map(size);
	mr = fx_mr(fx.a.pd, mem, size, 0);
	for (i = 0; i < 16; i++)
		sges[i] = fx_sge(mr, 0, size);
	conf.max_send_sge = 16;
	TEST_OK(fx_release(fx.a.qp));
	fx.a.qp = fx_qp_by(fx.a.pd, &conf);
	fx_reconnect();
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, sges, b_addr(0), fx.b.mr->rkey);
	wr.num_sge = 16;
	fx_expect_refusal(&wr, RMEM_WC_LOC_LEN_ERR, RMEM_QPS_RTS);
	TEST_ASSERT(fx_is_zero(fx.b.buf, FX_BUF_SIZE));
}

TEST(error, statuses_and_opcodes_have_names)
{
	TEST_EQ(strcmp(rmem_wc_status_str(RMEM_WC_SUCCESS), "SUCCESS"), 0);
	TEST_EQ(strcmp(rmem_wc_status_str(RMEM_WC_REM_ACCESS_ERR), "REM_ACCESS_ERR"), 0);
	TEST_EQ(strcmp(rmem_wc_status_str(RMEM_WC_GENERAL_ERR), "GENERAL_ERR"), 0);
	TEST_EQ(strcmp(rmem_wc_status_str(RMEM_WC_GENERAL_ERR + 1), "unknown"), 0);
	TEST_EQ(strcmp(rmem_wc_status_str(-1), "unknown"), 0);
	TEST_EQ(strcmp(rmem_wc_opcode_str(RMEM_WC_RDMA_WRITE), "RDMA_WRITE"), 0);
	TEST_EQ(strcmp(rmem_wc_opcode_str(RMEM_WC_REG_MR), "REG_MR"), 0);
	TEST_EQ(strcmp(rmem_wc_opcode_str(RMEM_WC_BIND_MW), "BIND_MW"), 0);
	TEST_EQ(strcmp(rmem_wc_opcode_str(RMEM_WC_UMR), "UMR"), 0);
	TEST_EQ(strcmp(rmem_wc_opcode_str(RMEM_WC_RECV), "RECV"), 0);
	TEST_EQ(strcmp(rmem_wc_opcode_str(7), "unknown"), 0);
	TEST_EQ(strcmp(rmem_wc_opcode_str(-1), "unknown"), 0);
}

TEST_SUITE(error, setup, fx_teardown);
