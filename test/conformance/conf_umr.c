/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Indirect keys: one key over ranges of others, as a list or as blocks that repeat. */

#include <string.h>

#include "conf.h"

#define CAPA (RMEM_DEV_CAPA_UMR | RMEM_DEV_CAPA_LOCAL_INV)
#define IOVA UINT64_C(0x7000000)

static struct rmem_mr *mkey;
static struct rmem_mkey_entry entries[8];

static int
setup(void)
{
	TEST_RUN(conf_setup());
	memset(entries, 0, sizeof(entries));
	mkey = NULL;
	if ((conf.info.capa & RMEM_DEV_CAPA_UMR) == 0)
		return TEST_SUCCESS;
	mkey = fx_mkey(fx.a.pd, RTE_MIN(conf.info.max_mkey_entries, (uint32_t)RTE_DIM(entries)));
	TEST_ASSERT(mkey != NULL);
	return TEST_SUCCESS;
}

static int
bind(uint32_t nb_entries, uint32_t repeat_count)
{
	struct rmem_send_wr wr = fx_umr(mkey, entries, nb_entries, IOVA);

	wr.umr.repeat_count = repeat_count;
	wr.umr.access &= conf.info.access;
	return fx_send(fx.a.qp, &wr);
}

CONF_TEST(umr, new_key_is_closed, CAPA, 0, "mlx5dv_create_mkey(3): bound by requests")
{
	TEST_EQ(fx_mr_state(mkey), RMEM_MR_STATE_FREE);
	return conf_closed(IOVA, 8, mkey->rkey);
}

/* Unaligned pieces of two MRs, in another order than they lie in memory. */
CONF_TEST(umr, list_is_one_range, CAPA, 0, "mlx5dv_wr_post(3): mlx5dv_wr_mr_list")
{
	struct rmem_mr *other =
			fx_mr(fx.a.pd, fx.a.buf + 20000, 3000, FX_ACCESS & conf.info.access);

	TEST_ASSERT(other != NULL);
	entries[0] = fx_entry(fx.a.mr, 5001, 100);
	entries[1] = fx_entry(other, 7, 2001);
	entries[2] = fx_entry(fx.a.mr, 3, 1);
	TEST_STATUS(bind(3, 1), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_UMR);
	fx_fill(fx.b.buf, 2102, 1);
	TEST_STATUS(conf_do(RMEM_WR_RDMA_WRITE, IOVA, 2102, mkey->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf + 5001, fx.b.buf, 100);
	TEST_MEM(fx.a.buf + 20007, fx.b.buf + 100, 2001);
	TEST_MEM(fx.a.buf + 3, fx.b.buf + 2101, 1);
	TEST_ASSERT(fx_is_zero(fx.a.buf + 5101, 20007 - 5101));
	memset(fx.b.buf, 0, FX_BUF_SIZE);
	TEST_STATUS(conf_do(RMEM_WR_RDMA_READ, IOVA + 99, 3, mkey->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf, fx.a.buf + 5100, 1);
	TEST_MEM(fx.b.buf + 1, fx.a.buf + 20007, 2);
	TEST_RUN(conf_closed(IOVA - 1, 2, mkey->rkey));
	TEST_RUN(conf_closed(IOVA + 2101, 2, mkey->rkey));
	TEST_RUN(conf_closed(UINT64_MAX - 3, 8, mkey->rkey));
	return TEST_SUCCESS;
}

/* Two columns of a matrix: 10 rounds of 16 bytes of each row of 100, then 4. */
CONF_TEST(umr, blocks_repeat_at_their_distance, CAPA, 0,
		"mlx5dv_wr_post(3): mlx5dv_wr_mr_interleaved")
{
	unsigned int i;

	entries[0] = fx_entry(fx.a.mr, 1000, 16);
	entries[0].skip = 84;
	entries[1] = fx_entry(fx.a.mr, 1050, 4);
	entries[1].skip = 96;
	TEST_STATUS(bind(2, 10), RMEM_WC_SUCCESS);
	fx_fill(fx.b.buf, 200, 1);
	TEST_STATUS(conf_do(RMEM_WR_RDMA_WRITE, IOVA, 200, mkey->rkey), RMEM_WC_SUCCESS);
	for (i = 0; i < 10; i++) {
		TEST_MEM(fx.a.buf + 1000 + 100 * i, fx.b.buf + 20 * i, 16);
		TEST_ASSERT(fx_is_zero(fx.a.buf + 1016 + 100 * i, 34));
		TEST_MEM(fx.a.buf + 1050 + 100 * i, fx.b.buf + 20 * i + 16, 4);
		TEST_ASSERT(fx_is_zero(fx.a.buf + 1054 + 100 * i, 46));
	}
	TEST_RUN(conf_closed(IOVA + 199, 2, mkey->rkey));
	return TEST_SUCCESS;
}

/* a's requests gather from it, and scatter into it. */
CONF_TEST(umr, lkey_opens_it_for_local_requests, CAPA, 0,
		"mlx5dv_wr_post(3): the key is used as any other")
{
	struct rmem_sge sge = {.addr = IOVA, .length = 150};
	struct rmem_send_wr wr;

	entries[0] = fx_entry(fx.a.mr, 100, 50);
	entries[1] = fx_entry(fx.a.mr, 9000, 100);
	TEST_STATUS(bind(2, 1), RMEM_WC_SUCCESS);
	sge.lkey = mkey->lkey;
	fx_fill(fx.a.buf, FX_BUF_SIZE, 1);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.b.buf), fx.b.mr->rkey);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf, fx.a.buf + 100, 50);
	TEST_MEM(fx.b.buf + 50, fx.a.buf + 9000, 100);
	memset(fx.a.buf, 0, FX_BUF_SIZE);
	wr.opcode = RMEM_WR_RDMA_READ;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf + 100, fx.b.buf, 50);
	TEST_MEM(fx.a.buf + 9000, fx.b.buf + 50, 100);
	TEST_ASSERT(fx_is_zero(fx.a.buf + 150, 8850));
	return TEST_SUCCESS;
}

CONF_TEST(umr, messages_use_it, CAPA, 0, "mlx5dv_wr_post(3): the key is used as any other")
{
	struct rmem_sge from = fx_sge(fx.b.mr, 0, 100), to = {.addr = IOVA, .length = 150};
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);

	entries[0] = fx_entry(fx.a.mr, 1, 50);
	entries[1] = fx_entry(fx.a.mr, 8000, 100);
	TEST_STATUS(bind(2, 1), RMEM_WC_SUCCESS);
	to.lkey = mkey->lkey;
	fx_fill(fx.b.buf, 100, 1);
	TEST_EQ(fx_post_recv(fx.a.qp, 1, &to, 1), 1);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf + 1, fx.b.buf, 50);
	TEST_MEM(fx.a.buf + 8000, fx.b.buf + 50, 50);
	return TEST_SUCCESS;
}

/* The right must be the key's own; LOCAL_WRITE of what lies below is needed to modify. */
CONF_TEST(umr, rights_are_the_keys, CAPA, 0, "mlx5dv_wr_post(3): access_flags")
{
	struct rmem_mr *fixed = fx_mr(fx.a.pd, fx.a.buf, 4096, 0);
	struct rmem_send_wr wr;

	TEST_ASSERT(fixed != NULL);
	entries[0] = fx_entry(fixed, 0, 64);
	wr = fx_umr(mkey, entries, 1, IOVA);
	wr.umr.access &= conf.info.access;
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	wr.umr.access = RMEM_ACCESS_REMOTE_READ;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(conf_do(RMEM_WR_RDMA_READ, IOVA, 64, mkey->rkey), RMEM_WC_SUCCESS);
	TEST_RUN(conf_closed(IOVA, 64, mkey->rkey));
	return TEST_SUCCESS;
}

CONF_TEST(umr, invalidated_key_is_closed, CAPA, 0,
		"Optimized Memory Access: UMR, invalidated by LOCAL_INV")
{
	struct rmem_send_wr wr;
	uint32_t rkey;

	entries[0] = fx_entry(fx.a.mr, 0, 64);
	TEST_STATUS(bind(1, 1), RMEM_WC_SUCCESS);
	rkey = mkey->rkey;
	wr = fx_umr(mkey, entries, 1, IOVA);
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	wr = fx_inv(rkey);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_RUN(conf_closed(IOVA, 8, rkey));
	TEST_RUN(conf_refused(CONF_INVALIDATE, fx.a.qp, &wr));
	TEST_STATUS(bind(1, 1), RMEM_WC_SUCCESS);
	TEST_ASSERT(mkey->rkey != rkey);
	TEST_RUN(conf_closed(IOVA, 8, rkey));
	TEST_RUN(conf_open(IOVA, 64, mkey->rkey, fx.a.buf));
	return TEST_SUCCESS;
}

/* An access through what is gone fails, and moves nothing. */
CONF_TEST(umr, key_below_may_go, CAPA, 0, "IBTA 10.6.3: each access needs keys that are valid then")
{
	struct rmem_mr *below = fx_mr(fx.a.pd, fx.a.buf + 4096, 4096, FX_ACCESS & conf.info.access);

	TEST_ASSERT(below != NULL);
	entries[0] = fx_entry(fx.a.mr, 0, 64);
	entries[1] = fx_entry(below, 0, 64);
	TEST_STATUS(bind(2, 1), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(below));
	TEST_RUN(conf_closed(IOVA, 128, mkey->rkey));
	TEST_RUN(conf_closed(IOVA + 64, 1, mkey->rkey));
	TEST_RUN(conf_open(IOVA, 64, mkey->rkey, fx.a.buf));
	return TEST_SUCCESS;
}

CONF_TEST(umr, keys_lie_over_keys, CAPA, 0, "Optimized Memory Access: UMR, keys over keys")
{
	struct rmem_mr *upper = fx_mkey(fx.a.pd, 2);
	struct rmem_mkey_entry both[2];
	struct rmem_send_wr wr;

	if (conf.info.max_mkey_depth < 2)
		return test_skip("the device has no keys over indirect keys");
	TEST_ASSERT(upper != NULL);
	entries[0] = fx_entry(fx.a.mr, 100, 10);
	entries[0].skip = 90;
	TEST_STATUS(bind(1, 8), RMEM_WC_SUCCESS);
	both[0] = (struct rmem_mkey_entry){.addr = IOVA + 5, .length = 20, .lkey = mkey->lkey};
	both[1] = fx_entry(fx.a.mr, 30000, 7);
	wr = fx_umr(upper, both, 2, 0);
	wr.umr.access &= conf.info.access;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	fx_fill(fx.b.buf, 27, 1);
	TEST_STATUS(conf_do(RMEM_WR_RDMA_WRITE, 0, 27, upper->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf + 105, fx.b.buf, 5);
	TEST_MEM(fx.a.buf + 200, fx.b.buf + 5, 10);
	TEST_MEM(fx.a.buf + 300, fx.b.buf + 15, 5);
	TEST_MEM(fx.a.buf + 30000, fx.b.buf + 20, 7);
	TEST_ASSERT(fx_is_zero(fx.a.buf + 210, 90));
	wr = fx_inv(mkey->rkey);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_RUN(conf_closed(0, 20, upper->rkey));
	return TEST_SUCCESS;
}

CONF_TEST(umr, bad_requests_are_refused, CAPA, 0, "mlx5dv_wr_post(3): what a UMR must be")
{
	const struct rmem_mkey_entry good = fx_entry(fx.a.mr, 0, 64);
	struct rmem_send_wr wr = fx_umr(mkey, entries, 1, IOVA);

	wr.umr.access &= conf.info.access;
	entries[0] = good;
	entries[0].length = 0;
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	entries[0].length = FX_BUF_SIZE + 1;
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	entries[0] = good;
	entries[0].lkey ^= 0x5500;
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	entries[0] = good;
	wr.umr.repeat_count = 0;
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	wr.umr.repeat_count = 1;
	wr.umr.nb_entries = 0;
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	wr.umr.nb_entries = 1;
	wr.umr.iova = UINT64_MAX - 62;
	TEST_RUN(conf_refused(CONF_BIND, fx.a.qp, &wr));
	wr.umr.iova = IOVA;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_RUN(conf_open(IOVA, 64, mkey->rkey, fx.a.buf));
	return TEST_SUCCESS;
}

TEST_SUITE(umr, setup, conf_teardown);
