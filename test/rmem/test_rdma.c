/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* WRITE and READ transfer exactly the bytes of their range, for all sizes and SGEs. */

#include <string.h>

#include "fixture.h"

#define MAX_MSG    (UINT32_C(1) << 31)
#define NB_ENTRIES 512u

static uint64_t
b_addr(size_t offset)
{
	return fx_addr(fx.b.buf + offset);
}

TEST(rdma, messages_over_one_mib_arrive_whole)
{
	static const uint32_t sizes[] = {1u << 20, (1u << 20) + 1, 5u << 20};
	const uint32_t max = 5u << 20;
	uint8_t *from = fx_mem(64, max);
	uint8_t *to = fx_mem(64, max);
	struct rmem_mr *from_mr = fx_mr(fx.a.pd, from, max, FX_ACCESS);
	struct rmem_mr *to_mr = fx_mr(fx.b.pd, to, max, FX_ACCESS);
	unsigned int i;

	for (i = 0; i < RTE_DIM(sizes); i++) {
		const struct rmem_sge sge = fx_sge(from_mr, 0, sizes[i]);
		const struct rmem_sge to_sge = fx_sge(to_mr, 0, sizes[i]);
		struct rmem_send_wr wr =
				fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(to), to_mr->rkey);

		fx_fill(from, sizes[i], i);
		TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
		TEST_MEM(to, from, sizes[i]);
		fx_fill(to, sizes[i], i + 100);
		wr.opcode = RMEM_WR_RDMA_READ;
		TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
		TEST_MEM(from, to, sizes[i]);
		fx_fill(from, sizes[i], i + 200);
		wr = fx_wr(RMEM_WR_SEND, &sge, 1);
		TEST_EQ(fx_post_recv(fx.b.qp, 1, &to_sge, 1), 1);
		fx_deliver(&fx.a, &fx.b, &wr);
		TEST_EQ(fx.wc.byte_len, sizes[i]);
		TEST_MEM(to, from, sizes[i]);
	}
}

/* The bytes are placed at the WRITE's address; the SGEs of the receive are ignored. */
TEST(rdma, write_with_immediate_leaves_the_memory_of_the_receive)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 16);
	const struct rmem_sge to = {.addr = b_addr(4096), .length = 16, .lkey = 0xbad};
	struct rmem_send_wr wr =
			fx_rdma(RMEM_WR_RDMA_WRITE_WITH_IMM, &sge, b_addr(0), fx.b.mr->rkey);

	fx_fill(fx.a.buf, 16, 6);
	wr.flags = RMEM_SEND_SOLICITED;
	TEST_EQ(fx_post_recv(fx.b.qp, 44, &to, 1), 1);
	fx_deliver(&fx.a, &fx.b, &wr);
	TEST_EQ(fx.wc.flags, RMEM_WC_WITH_IMM | RMEM_WC_SOLICITED);
	TEST_ASSERT(fx_is_zero(fx.b.buf + 4096, 16));
}

TEST(rdma, max_send_sge_entries_are_gathered)
{
	struct rmem_qp_conf conf = fx_qp_conf(fx.a.cq, 4);
	struct rmem_sge sges[64];
	struct rmem_dev_info info = fx_dev_info(fx.a.dev);
	struct rmem_send_wr wr;
	struct rmem_qp *qp;
	uint16_t i, n;

	n = (uint16_t)RTE_MIN(info.max_send_sge, RTE_DIM(sges));
	conf.max_send_sge = n;
	qp = fx_qp_by(fx.a.pd, &conf);
	TEST_OK(fx_connect(qp, qp));
	fx_fill(fx.a.buf, FX_BUF_SIZE, 9);
	for (i = 0; i < n; i++)
		sges[i] = fx_sge(fx.a.mr, 100u * (n - i), 10);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, sges, b_addr(0), fx.b.mr->rkey);
	wr.num_sge = n;
	TEST_STATUS(fx_send(qp, &wr), RMEM_WC_SUCCESS);
	for (i = 0; i < n; i++)
		TEST_MEM(fx.b.buf + 10u * i, fx.a.buf + 100u * (n - i), 10);
}

TEST(rdma, requests_of_a_burst_run_in_order)
{
	enum {
		NB = 32
	};
	struct rmem_send_wr wrs[NB];
	struct rmem_sge sges[NB];
	uint32_t i;

	for (i = 0; i < NB; i++) {
		fx.a.buf[i] = (uint8_t)(i + 1);
		sges[i] = fx_sge(fx.a.mr, i, 1);
		wrs[i] = fx_rdma(RMEM_WR_RDMA_WRITE, &sges[i], b_addr(i % 2), fx.b.mr->rkey);
	}
	wrs[NB - 1].flags = RMEM_SEND_SIGNALED;
	TEST_EQ(rmem_post_send(fx.a.qp, wrs, NB), NB);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.b.buf[0], NB - 1);
	TEST_EQ(fx.b.buf[1], NB);
}

/* In a burst the second of three WRITEs has the right keys, the third has others: a status. */
static void
check_third(const struct rmem_sge *sge, uint64_t addr, uint32_t rkey, int status)
{
	const struct rmem_sge good = fx_sge(fx.a.mr, 0, 8);
	struct rmem_send_wr wrs[3];
	uint32_t i;

	memset(fx.b.buf, 0, FX_BUF_SIZE);
	fx_fill(fx.a.buf, 16, 3);
	for (i = 0; i < RTE_DIM(wrs); i++)
		wrs[i] = fx_rdma(RMEM_WR_RDMA_WRITE, &good, b_addr(8 * i), fx.b.mr->rkey);
	wrs[2] = fx_rdma(RMEM_WR_RDMA_WRITE, sge, addr, rkey);
	TEST_EQ(rmem_post_send(fx.a.qp, wrs, RTE_DIM(wrs)), RTE_DIM(wrs));
	TEST_STATUS(fx_wait(fx.a.cq), status);
	TEST_MEM(fx.b.buf, fx.a.buf, 8);
	TEST_MEM(fx.b.buf + 8, fx.a.buf, 8);
	TEST_ASSERT(fx_is_zero(fx.b.buf + 16, FX_BUF_SIZE - 16));
	fx_reconnect();
}

TEST(rdma, each_rkey_of_a_burst_is_checked)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_pd *pd = fx_pd(fx.b.dev);
	const struct rmem_mr *foreign = fx_mr(pd, fx.b.buf, FX_BUF_SIZE, FX_ACCESS);
	const struct rmem_mr *reads =
			fx_mr(fx.b.pd, fx.b.buf, FX_BUF_SIZE, RMEM_ACCESS_REMOTE_READ);
	const uint32_t rkey = fx.b.mr->rkey;

	check_third(&sge, b_addr(16), rkey ^ 1, RMEM_WC_REM_ACCESS_ERR);
	check_third(&sge, b_addr(16), fx.b.mr->lkey, RMEM_WC_REM_ACCESS_ERR);
	check_third(&sge, b_addr(16), rkey ^ 0x100, RMEM_WC_REM_ACCESS_ERR);
	check_third(&sge, b_addr(16), foreign->rkey, RMEM_WC_REM_ACCESS_ERR);
	check_third(&sge, b_addr(16), reads->rkey, RMEM_WC_REM_ACCESS_ERR);
	check_third(&sge, b_addr(FX_BUF_SIZE - 7), rkey, RMEM_WC_REM_ACCESS_ERR);
	check_third(&sge, b_addr(0) - 1, rkey, RMEM_WC_REM_ACCESS_ERR);
}

TEST(rdma, each_lkey_of_a_burst_is_checked)
{
	const struct rmem_mr *foreign = fx_mr(fx_pd(fx.a.dev), fx.a.buf, FX_BUF_SIZE, FX_ACCESS);
	struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);

	sge.lkey = fx.a.mr->lkey ^ 1;
	check_third(&sge, b_addr(16), fx.b.mr->rkey, RMEM_WC_LOC_PROT_ERR);
	sge.lkey = fx.a.mr->rkey;
	check_third(&sge, b_addr(16), fx.b.mr->rkey, RMEM_WC_LOC_PROT_ERR);
	sge.lkey = foreign->lkey;
	check_third(&sge, b_addr(16), fx.b.mr->rkey, RMEM_WC_LOC_PROT_ERR);
	sge = fx_sge(fx.a.mr, FX_BUF_SIZE - 7, 8);
	check_third(&sge, b_addr(16), fx.b.mr->rkey, RMEM_WC_LOC_PROT_ERR);
}

/* A fenced request starts only when the READ before it completed. */
TEST(rdma, fence_makes_a_write_see_what_was_read)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 1000);
	struct rmem_send_wr wrs[3];
	uint32_t i;

	for (i = 0; i < 100; i++) {
		fx_fill(fx.b.buf, 1000, i);
		wrs[0] = fx_wr(RMEM_WR_SEND, NULL, 0);
		wrs[1] = fx_rdma(RMEM_WR_RDMA_READ, &sge, b_addr(0), fx.b.mr->rkey);
		wrs[2] = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, b_addr(2000), fx.b.mr->rkey);
		wrs[2].flags = RMEM_SEND_FENCE | RMEM_SEND_SIGNALED;
		TEST_EQ(rmem_post_send(fx.a.qp, wrs, 3), 3);
		/* All three wait for this. */
		TEST_EQ(fx_post_recv(fx.b.qp, i, NULL, 0), 1);
		TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
		TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
		TEST_MEM(fx.b.buf + 2000, fx.b.buf, 1000);
	}
}

/* Keys of soft0 and soft1 are their own: each side names memory of its own device. */
TEST(rdma, two_devices_are_connected_to_each_other)
{
	struct rmem_dev *dev = fx_dev("soft1", NULL);
	struct rmem_send_wr wr;
	struct fx_side c = {0};
	struct rmem_sge sge;

	fx_side_open(&c, dev, fx_pd(dev));
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(fx_connect_pair(fx.a.qp, c.qp));
	fx_fill(fx.a.buf, 500, 3);
	sge = fx_sge(fx.a.mr, 0, 500);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(c.buf), c.mr->rkey);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(c.buf, fx.a.buf, 500);
	sge = fx_sge(c.mr, 0, 500);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.a.buf + 1000), fx.a.mr->rkey);
	TEST_STATUS(fx_send(c.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf + 1000, c.buf, 500);
	TEST_EQ(fx_post_recv(c.qp, 1, &sge, 1), 1);
	sge = fx_sge(fx.a.mr, 0, 500);
	wr = fx_wr(RMEM_WR_SEND, &sge, 1);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(c.cq), RMEM_WC_SUCCESS);
	/* The key of b is one of soft0, for any key of soft1 with that number. */
	wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_REM_ACCESS_ERR);
}

/*
 * One SGE of more than 2^31 bytes, by a key over the same memory again and again, between WRITEs
 * that are good.
 */
TEST(rdma, sge_longer_than_a_message_ends_a_burst)
{
	const uint32_t length = (MAX_MSG / NB_ENTRIES) + 1;
	uint8_t *mem = fx_mem(FX_PAGE, length);
	struct rmem_mr *mr = fx_mr(fx.a.pd, mem, length, FX_ACCESS);
	struct rmem_mr *mkey = fx_mkey(fx.a.pd, NB_ENTRIES);
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_mkey_entry entries[NB_ENTRIES];
	struct rmem_sge far = {.length = MAX_MSG + 1};
	struct rmem_send_wr wrs[3], wr;
	unsigned int i;

	for (i = 0; i < NB_ENTRIES; i++)
		entries[i] = fx_entry(mr, 0, length);
	wr = fx_umr(mkey, entries, NB_ENTRIES, 0);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	far.lkey = mkey->lkey;
	for (i = 0; i < RTE_DIM(wrs); i++) {
		wrs[i] = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
		wrs[i].flags = RMEM_SEND_SIGNALED;
	}
	wrs[1] = fx_rdma(RMEM_WR_RDMA_WRITE, &far, 0, mkey->rkey);
	TEST_EQ(rmem_post_send(fx.a.qp, wrs, RTE_DIM(wrs)), RTE_DIM(wrs));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_LOC_LEN_ERR);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_WR_FLUSH_ERR);
	TEST_EQ(fx_state(fx.b.qp), RMEM_QPS_RTS);
}

TEST_SUITE(rdma, fx_setup, fx_teardown);
