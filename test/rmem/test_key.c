/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Assignment and check of keys by the software device; access by keys is tested in conformance.
 */

#include <stdlib.h>
#include <string.h>

#include "fixture.h"

static uint64_t
b_addr(size_t offset)
{
	return fx_addr(fx.b.buf + offset);
}

/* A new domain in the slot of a released one is another. */
TEST(key, pd_in_a_reused_slot_does_not_accept_former_keys)
{
	struct rmem_pd *pd = fx_pd(fx.a.dev);
	struct fx_side c = {0};
	struct rmem_send_wr wr;
	struct rmem_sge sge;

	TEST_OK(fx_release(pd));
	pd = fx_pd(fx.a.dev);
	fx_side_open(&c, fx.a.dev, pd);
	TEST_OK(fx_connect(c.qp, c.qp));
	sge = fx_sge(c.mr, 0, 8);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, b_addr(0), fx.b.mr->rkey);
	TEST_STATUS(fx_send(c.qp, &wr), RMEM_WC_REM_ACCESS_ERR);
}

/* Of a key nothing can be foreseen: neither from the one before, nor from another device. */
TEST(key, indexes_are_random)
{
	enum {
		NB = 64
	};
	struct rmem_pd *pd = fx_pd(fx_dev("soft1", NULL));
	uint32_t keys[2][NB];
	unsigned int i, nb_next = 0, nb_same = 0;

	for (i = 0; i < NB; i++) {
		struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, 8, 0);
		struct rmem_mr *other = fx_mr(pd, fx.a.buf, 8, 0);

		keys[0][i] = mr->rkey;
		keys[1][i] = other->rkey;
	}
	for (i = 1; i < NB; i++) {
		nb_next += labs((long)(keys[0][i] >> 8) - (long)(keys[0][i - 1] >> 8)) == 1;
		nb_same += keys[0][i] >> 8 == keys[1][i] >> 8;
	}
	/* Of 2^24 indexes: five by chance in no run. */
	TEST_ASSERT(nb_next < 5);
	TEST_ASSERT(nb_same < 5);
}

/* Bits of an index that its slot does not decide differ from owner to owner too. */
TEST(key, indexes_use_all_24_bits)
{
	struct rmem_pd *pd = fx_pd(fx_dev("soft1", "max_mr=1,max_mw=1"));
	uint32_t i, ones = 0, zeros = 0;

	for (i = 0; i < 64; i++) {
		struct rmem_mr *mr = fx_mr(pd, fx.a.buf, 8, 0);

		ones |= mr->rkey >> 8;
		zeros |= ~mr->rkey >> 8;
		TEST_OK(fx_release(mr));
	}
	/* All but the bit of the slot; by chance one is missing in a run of 2^58. */
	TEST_EQ(ones & zeros & 0xfffffe, 0xfffffe);
}

/*
 * Every index of a device that has few for each slot: 2^24 / 2^16 of them, and in slot 0 one less,
 * since index 0 is not used. None is reused before the slot has used all.
 */
TEST(key, index_is_reused_after_all_others_of_its_slot)
{
	enum {
		NB = 255
	};
	struct rmem_pd *pd = fx_pd(fx_dev("soft1", "max_mr=1,max_mw=65535"));
	uint32_t i, j, seen[4 * NB];

	for (i = 0; i < RTE_DIM(seen); i++) {
		struct rmem_mr *mr = fx_mr(pd, fx.a.buf, 8, 0);

		seen[i] = mr->rkey >> 8;
		TEST_ASSERT(seen[i] != 0);
		for (j = i < NB ? 0 : i - (NB - 1); j < i; j++)
			TEST_ASSERT(seen[i] != seen[j]);
		TEST_OK(fx_release(mr));
	}
}

/* Requests with rkeys not valid for b; -1: the count of the device differs. */
static int
bad_rkeys(void)
{
	struct rmem_dev_stats stats;
	struct rmem_qp_attr attr;

	if (rmem_qp_query(fx.b.qp, &attr) != 0 || rmem_dev_stats_get(fx.a.dev, &stats) != 0 ||
			stats.bad_rkeys != attr.bad_rkeys)
		return -1;
	return (int)attr.bad_rkeys;
}

/* Requests of a guessing peer; not of one that has the key for other uses. */
TEST(key, invalid_rkeys_are_counted)
{
	struct rmem_pd *pd = fx_pd(fx.a.dev);
	struct rmem_mr *other = fx_mr(pd, fx.b.buf, 64, FX_ACCESS);
	struct rmem_mr *gone = fx_mr(fx.b.pd, fx.b.buf, 64, FX_ACCESS);
	struct rmem_mr *local = fx_mr(fx.b.pd, fx.b.buf, 64, RMEM_ACCESS_LOCAL_WRITE);
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	uint32_t rkey = fx.b.mr->rkey, bad[4] = {rkey ^ 1, rkey ^ 0x80000000}, i;
	struct rmem_send_wr wr;

	bad[2] = other->rkey;
	bad[3] = gone->rkey;
	TEST_OK(fx_release(gone));
	TEST_EQ(bad_rkeys(), 0);
	for (i = 0; i < RTE_DIM(bad); i++) {
		wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, b_addr(0), bad[i]);
		fx_expect_refusal(&wr, RMEM_WC_REM_ACCESS_ERR, RMEM_QPS_ERR);
		TEST_EQ(bad_rkeys(), i + 1);
	}
	wr = fx_rdma(RMEM_WR_RDMA_READ, &sge, b_addr(0), local->rkey);
	fx_expect_refusal(&wr, RMEM_WC_REM_ACCESS_ERR, RMEM_QPS_ERR);
	wr = fx_rdma(RMEM_WR_RDMA_READ, &sge, b_addr(FX_BUF_SIZE), rkey);
	fx_expect_refusal(&wr, RMEM_WC_REM_ACCESS_ERR, RMEM_QPS_ERR);
	TEST_EQ(bad_rkeys(), RTE_DIM(bad));
	TEST_EQ(fx_post_recv(fx.b.qp, 1, NULL, 0), 1);
	wr = fx_wr(RMEM_WR_SEND_WITH_INV, NULL, 0);
	wr.invalidate_rkey = rkey;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(bad_rkeys(), RTE_DIM(bad) + 1);
	TEST_OK(rmem_dev_stats_reset(fx.a.dev));
	TEST_EQ(bad_rkeys(), -1);
}

/* The first, the second, the fourth, the eighth. */
TEST(key, invalid_rkeys_are_logged_at_powers_of_two)
{
	const char *line;
	unsigned int i, nb = 0;
	int ret = TEST_SUCCESS;

	fx_log_begin();
	for (i = 0; i < 15 && ret == TEST_SUCCESS; i++) {
		if (fx_peer_write(fx_addr(fx.a.buf), 8, fx.a.mr->rkey ^ 1) !=
				RMEM_WC_REM_ACCESS_ERR)
			ret = TEST_FAILED;
		fx_reconnect();
	}
	line = fx_log_end();
	for (; (line = strstr(line, "is not valid")) != NULL; line++)
		nb++;
	TEST_EQ(ret, TEST_SUCCESS);
	TEST_EQ(nb, 4);
}

TEST_SUITE(key, fx_setup, fx_teardown);
