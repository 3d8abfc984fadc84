/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Memory windows as objects of the software device: counted, limited, kept and released. */

#include <string.h>

#include "fixture.h"
#include "test.h"

#define TYPE_1 RMEM_MW_TYPE_1
#define TYPE_2 RMEM_MW_TYPE_2

TEST(mw, windows_are_counted)
{
	struct rmem_dev_info before, info;
	struct rmem_mw *mw;

	TEST_OK(rmem_dev_info_get(fx.a.dev, &before));
	mw = fx_mw(fx.a.pd, TYPE_1);
	TEST_ASSERT(mw != NULL);
	TEST_EQ(mw->type, TYPE_1);
	TEST_ASSERT(mw->pd == fx.a.pd);
	TEST_OK(rmem_dev_info_get(fx.a.dev, &info));
	TEST_EQ(info.nb_mw, before.nb_mw + 1);
	TEST_EQ(info.nb_mr, before.nb_mr);
	TEST_OK(fx_release(mw));
	TEST_OK(rmem_dev_info_get(fx.a.dev, &info));
	TEST_EQ(info.nb_mw, before.nb_mw);
	return TEST_SUCCESS;
}

TEST(mw, one_window_too_many_is_enospc)
{
	struct rmem_pd *pd = fx_pd(fx_dev("soft1", "max_mw=2,max_mr=1"));
	struct rmem_mw *mw = NULL;

	TEST_ASSERT(fx_mw(pd, TYPE_1) != NULL && fx_mw(pd, TYPE_2) != NULL);
	TEST_ERR(rmem_mw_alloc(pd, TYPE_1, &mw), ENOSPC);
	TEST_ASSERT(mw == NULL);
	/* MRs have keys of their own. */
	TEST_ASSERT(fx_mr(pd, fx.a.buf, 8, 0) != NULL);
	return TEST_SUCCESS;
}

/* Whatever its tag: a slot that comes back has another index. */
TEST(mw, key_of_a_freed_window_is_not_given_out_again)
{
	struct rmem_pd *pd = fx_pd(fx_dev("soft1", "max_mw=1"));
	uint32_t former[300] = {0}, i, j;

	for (i = 0; i < RTE_DIM(former); i++) {
		struct rmem_mw *mw = fx_mw(pd, TYPE_1);

		TEST_ASSERT(mw != NULL);
		for (j = 0; j < i; j++)
			TEST_ASSERT(mw->rkey >> 8 != former[j] >> 8);
		former[i] = mw->rkey;
		TEST_OK(fx_release(mw));
	}
	return TEST_SUCCESS;
}

TEST(mw, window_that_was_never_bound_opens_nothing)
{
	TEST_RUN(fx_mw_expect_refusal(fx_addr(fx.a.buf), 8, fx.mw.one->rkey, 3));
	TEST_RUN(fx_mw_expect_refusal(fx_addr(fx.a.buf), 8, fx.mw.two->rkey, 3));
	return TEST_SUCCESS;
}

/* A window has no lkey, whichever way its key is written. */
TEST(mw, no_lkey_opens_a_window)
{
	struct rmem_mw *mws[] = {fx.mw.one, fx.mw.two};
	unsigned int i;

	TEST_STATUS(fx_mw_bind_1(0, 4096, RMEM_ACCESS_REMOTE), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_mw_bind_2(0, 4096, RMEM_ACCESS_REMOTE), RMEM_WC_SUCCESS);
	for (i = 0; i < 2 * RTE_DIM(mws); i++) {
		struct rmem_sge sge = fx_sge(fx.mw.mr, 0, 8);
		struct rmem_send_wr wr;

		sge.lkey = mws[i / 2]->rkey ^ (i % 2 == 0 ? 0xff : 0);
		wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.b.buf), fx.b.mr->rkey);
		TEST_RUN(fx_expect_refusal(&wr, RMEM_WC_LOC_PROT_ERR, RMEM_QPS_RTS));
		wr.opcode = RMEM_WR_RDMA_READ;
		TEST_RUN(fx_expect_refusal(&wr, RMEM_WC_LOC_PROT_ERR, RMEM_QPS_RTS));
	}
	return TEST_SUCCESS;
}

/* IBTA 10.6.7: an MR stays while a window is bound to it. */
TEST(mw, bound_window_keeps_its_mr)
{
	TEST_STATUS(fx_mw_bind_1(0, 4096, RMEM_ACCESS_REMOTE), RMEM_WC_SUCCESS);
	TEST_ERR(rmem_mr_dereg(fx.mw.mr), EBUSY);
	TEST_STATUS(fx_mw_bind_2(0, 4096, RMEM_ACCESS_REMOTE), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(fx.mw.one));
	TEST_ERR(rmem_mr_dereg(fx.mw.mr), EBUSY);
	TEST_RUN(fx_mw_expect_write(fx_addr(fx.a.buf), 8, fx.mw.two->rkey, fx.a.buf));
	TEST_OK(fx_release(fx.mw.two));
	TEST_OK(fx_release(fx.mw.mr));
	return TEST_SUCCESS;
}

/* IBTA 10.6.7: release of a bound window ends its binding. */
TEST(mw, released_window_opens_nothing)
{
	uint32_t one, two;

	TEST_STATUS(fx_mw_bind_1(0, 4096, RMEM_ACCESS_REMOTE), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_mw_bind_2(0, 4096, RMEM_ACCESS_REMOTE), RMEM_WC_SUCCESS);
	one = fx.mw.one->rkey;
	two = fx.mw.two->rkey;
	TEST_OK(fx_release(fx.mw.one));
	TEST_OK(fx_release(fx.mw.two));
	TEST_RUN(fx_mw_expect_refusal(fx_addr(fx.a.buf), 8, one, 3));
	TEST_RUN(fx_mw_expect_refusal(fx_addr(fx.a.buf), 8, two, 3));
	return TEST_SUCCESS;
}

/* What a queued binding names stays: here the QP waits for a peer that is not there. */
TEST(mw, queued_binding_keeps_window_and_mr)
{
	struct rmem_qp *qp = fx_qp(fx.a.pd, fx.a.cq, 8);
	const struct rmem_qp_conn conn = fx_conn();
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_send_wr wrs[2];

	TEST_ASSERT(qp != NULL);
	TEST_OK(fx_connect_by(qp, fx_qp(fx.a.pd, fx.a.cq, 8), &conn));
	wrs[0] = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.b.buf), fx.b.mr->rkey);
	wrs[1] = fx_mw_wr(fx.mw.two, 0, 8, RMEM_ACCESS_REMOTE);
	TEST_EQ(rmem_post_send(qp, wrs, 2), 2);
	TEST_ERR(rmem_mw_dealloc(fx.mw.two), EBUSY);
	TEST_ERR(rmem_mr_dereg(fx.mw.mr), EBUSY);
	TEST_OK(rmem_qp_reset(qp));
	TEST_OK(fx_release(fx.mw.two));
	TEST_OK(fx_release(fx.mw.mr));
	return TEST_SUCCESS;
}

TEST(mw, thousand_windows_over_the_same_bytes)
{
	const uint32_t nb = 1000;
	struct rmem_mw *mws[1000];
	uint32_t i;

	for (i = 0; i < nb; i++) {
		struct rmem_send_wr wr;

		mws[i] = fx_mw(fx.a.pd, TYPE_2);
		TEST_ASSERT(mws[i] != NULL);
		wr = fx_mw_wr(mws[i], i, 8, RMEM_ACCESS_REMOTE);
		TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	}
	for (i = 0; i < nb; i += 100)
		TEST_RUN(fx_mw_expect_write(fx_addr(fx.a.buf) + i, 8, mws[i]->rkey, fx.a.buf + i));
	TEST_RUN(fx_mw_expect_refusal(fx_addr(fx.a.buf) + 500, 8, mws[499]->rkey, 6));
	return TEST_SUCCESS;
}

#define MANY_QPS 16384u /* so that numbers of 32 bits come again after 2^17 QPs */

static struct rmem_qp *many[MANY_QPS];

/* All QPs of a device but for that many, then so many more, one at a time. */
static int
use_up_qps(struct rmem_pd *pd, uint32_t nb_free, uint32_t nb_more)
{
	struct rmem_qp_conf conf = fx_qp_conf(fx.a.cq, 1);
	struct rmem_qp *qp;
	uint32_t i;

	conf.max_recv_wr = 0;
	conf.max_recv_sge = 0;
	for (i = 0; i < MANY_QPS - nb_free && many[i] != NULL; i++)
		;
	for (; i < MANY_QPS - nb_free; i++)
		TEST_OK(rmem_qp_create(pd, &conf, &many[i]));
	for (i = 0; i < nb_more; i++) {
		TEST_OK(rmem_qp_create(pd, &conf, &qp));
		TEST_OK(rmem_qp_destroy(qp));
	}
	return TEST_SUCCESS;
}

/* The one index that is left gets all the numbers that its QPs can have, and the first again. */
static int
expect_tied(struct rmem_pd *pd, struct rmem_qp *peer)
{
	struct rmem_qp *qp = fx_qp(pd, fx.a.cq, 8);
	struct rmem_sge sge = fx_sge(fx.mw.mr, 0, 8);
	struct rmem_send_wr wr;

	fx.mw.two = fx_mw(pd, TYPE_2);
	TEST_ASSERT(qp != NULL && fx.mw.two != NULL);
	TEST_OK(fx_connect_pair(qp, peer));
	wr = fx_mw_wr(fx.mw.two, 64, 8, RMEM_ACCESS_REMOTE);
	TEST_STATUS(fx_send(qp, &wr), RMEM_WC_SUCCESS);
	TEST_OK(rmem_qp_reset(peer));
	TEST_OK(fx_release(qp));
	TEST_RUN(use_up_qps(pd, 2, 131071));
	qp = fx_qp(pd, fx.a.cq, 8);
	TEST_ASSERT(qp != NULL);
	TEST_OK(fx_connect_pair(qp, peer));
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx.mw.mr->iova + 64, fx.mw.two->rkey);
	TEST_STATUS(fx_send(peer, &wr), RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(fx.wc.vendor_err, 7);
	TEST_OK(fx_release(qp));
	return TEST_SUCCESS;
}

TEST(mw, window_of_a_qp_that_is_gone_is_for_no_later_one)
{
	struct rmem_dev *dev = fx_dev("soft1", "max_qp=16384");
	struct rmem_pd *pd = fx_pd(dev);
	struct rmem_qp *peer;
	uint32_t i;
	int result;

	TEST_ASSERT(pd != NULL);
	fx.a.cq = fx_cq(dev, 64);
	fx.mw.mr = fx_mr(pd, fx.a.buf, 4096, FX_ACCESS | RMEM_ACCESS_MW_BIND);
	peer = fx_qp(pd, fx.a.cq, 8);
	TEST_ASSERT(fx.mw.mr != NULL && peer != NULL);
	memset(many, 0, sizeof(many));
	result = use_up_qps(pd, 2, 0);
	if (result == TEST_SUCCESS)
		result = expect_tied(pd, peer);
	for (i = 0; i < MANY_QPS && many[i] != NULL; i++)
		TEST_OK(rmem_qp_destroy(many[i]));
	return result;
}

TEST_SUITE(mw, fx_setup_mw, fx_teardown);
