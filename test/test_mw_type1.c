/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Type 1 windows: bound by rmem_mw_bind(), for all QPs of the PD, again and again. */

#include <string.h>

#include "fixture.h"
#include "test.h"

#define ALL RMEM_ACCESS_REMOTE

TEST(mw_type1, window_opens_its_range)
{
	uint32_t before = fx.mw.one->rkey;

	TEST_STATUS(fx_mw_bind_1(100, 200, ALL), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_BIND_MW);
	TEST_EQ(fx.wc.wr_id, 0xb0b0);
	TEST_EQ(fx.mw.one->rkey, rmem_rkey_of_tag(before, rmem_rkey_next_tag(before)));
	TEST_RUN(fx_mw_expect_write(fx_addr(fx.a.buf) + 100, 200, fx.mw.one->rkey, fx.a.buf + 100));
	TEST_RUN(fx_mw_expect_refusal(fx_addr(fx.a.buf) + 99, 2, fx.mw.one->rkey, 6));
	TEST_RUN(fx_mw_expect_refusal(fx_addr(fx.a.buf) + 299, 2, fx.mw.one->rkey, 6));
	return TEST_SUCCESS;
}

/* IBTA 10.6.7.2.2: no invalidation in between; the key before ends. */
TEST(mw_type1, next_binding_ends_the_one_before)
{
	uint32_t i, before;

	TEST_STATUS(fx_mw_bind_1(0, 64, ALL), RMEM_WC_SUCCESS);
	for (i = 1; i < 300; i++) {
		before = fx.mw.one->rkey;
		TEST_STATUS(fx_mw_bind_1(i * 64, 64, ALL), RMEM_WC_SUCCESS);
		TEST_RUN(fx_mw_expect_write(fx_addr(fx.a.buf) + i * 64, 64, fx.mw.one->rkey,
				fx.a.buf + i * 64));
		if (i % 50 == 0)
			TEST_RUN(fx_mw_expect_refusal(
					fx_addr(fx.a.buf) + (i - 1) * 64, 8, before, 2));
	}
	return TEST_SUCCESS;
}

TEST(mw_type1, binding_to_another_mr_lets_go_of_the_first)
{
	struct rmem_mr *first = fx.mw.mr;

	TEST_STATUS(fx_mw_bind_1(0, 64, ALL), RMEM_WC_SUCCESS);
	fx.mw.mr = fx_mr(fx.a.pd, fx.a.buf + 4096, 4096, FX_ACCESS | RMEM_ACCESS_MW_BIND);
	TEST_ASSERT(fx.mw.mr != NULL);
	TEST_STATUS(fx_mw_bind_1(0, 64, ALL), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(first));
	TEST_ERR(rmem_mr_dereg(fx.mw.mr), EBUSY);
	TEST_RUN(fx_mw_expect_write(fx_addr(fx.a.buf) + 4096, 8, fx.mw.one->rkey, fx.a.buf + 4096));
	TEST_OK(fx_release(fx.mw.one));
	return TEST_SUCCESS;
}

TEST(mw_type1, length_0_unbinds)
{
	struct rmem_mw_bind bind = fx_mw_bind(0, 0, 0);
	uint32_t before;

	TEST_STATUS(fx_mw_bind_1(0, 64, ALL), RMEM_WC_SUCCESS);
	before = fx.mw.one->rkey;
	bind.bind_info.mr = NULL;
	TEST_OK(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_ASSERT(fx.mw.one->rkey != before);
	TEST_RUN(fx_mw_expect_refusal(fx_addr(fx.a.buf), 8, before, 2));
	TEST_RUN(fx_mw_expect_refusal(fx_addr(fx.a.buf), 8, fx.mw.one->rkey, 3));
	/* Again, when nothing is bound. */
	TEST_OK(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(fx.mw.mr));
	return TEST_SUCCESS;
}

TEST(mw_type1, any_qp_of_the_pd_may_use_it)
{
	struct rmem_qp *mine = fx_qp(fx.a.pd, fx.a.cq, 8);
	struct rmem_qp *peer = fx_qp(fx.a.pd, fx.b.cq, 8);
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr;

	TEST_ASSERT(mine != NULL && peer != NULL);
	TEST_OK(fx_connect_pair(mine, peer));
	TEST_STATUS(fx_mw_bind_1(0, 64, ALL), RMEM_WC_SUCCESS);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.a.buf), fx.mw.one->rkey);
	TEST_STATUS(fx_send(peer, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

/* IBTA 10.6.7: requests invalidate type 2 windows only. */
TEST(mw_type1, requests_do_not_invalidate_it)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND_WITH_INV, NULL, 0);

	TEST_STATUS(fx_mw_bind_1(0, 64, ALL), RMEM_WC_SUCCESS);
	TEST_EQ(fx_post_recv(fx.a.qp, 9, NULL, 0), 1);
	wr.invalidate_rkey = fx.mw.one->rkey;
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_REM_INV_REQ_ERR);
	TEST_RUN(fx_reconnect());
	wr = fx_inv(fx.mw.one->rkey);
	TEST_RUN(fx_expect_refusal(&wr, RMEM_WC_MW_BIND_ERR, RMEM_QPS_RTS));
	TEST_RUN(fx_mw_expect_write(fx_addr(fx.a.buf), 8, fx.mw.one->rkey, fx.a.buf));
	return TEST_SUCCESS;
}

/* Bindings that are flushed leave the one before in force, and the handle names that. */
TEST(mw_type1, binding_that_fails_keeps_the_key)
{
	const struct rmem_mw_bind bind = fx_mw_bind(64, 64, ALL);
	uint32_t rkey;

	TEST_STATUS(fx_mw_bind_1(0, 64, ALL), RMEM_WC_SUCCESS);
	rkey = fx.mw.one->rkey;
	TEST_OK(rmem_qp_set_error(fx.a.qp));
	TEST_OK(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind));
	TEST_OK(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_WR_FLUSH_ERR);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_WR_FLUSH_ERR);
	TEST_EQ(fx.mw.one->rkey, rkey);
	TEST_RUN(fx_reconnect());
	TEST_RUN(fx_mw_expect_write(fx_addr(fx.a.buf), 8, rkey, fx.a.buf));
	TEST_STATUS(fx_mw_bind_1(64, 64, ALL), RMEM_WC_SUCCESS);
	TEST_RUN(fx_mw_expect_write(fx_addr(fx.a.buf) + 64, 8, fx.mw.one->rkey, fx.a.buf + 64));
	return TEST_SUCCESS;
}

/* Queued behind a WRITE whose peer is not there, then dropped with it. */
TEST(mw_type1, queued_binding_that_is_dropped_keeps_the_key)
{
	struct rmem_qp *qp = fx_qp(fx.a.pd, fx.a.cq, 8);
	const struct rmem_mw_bind bind = fx_mw_bind(64, 64, ALL);
	const struct rmem_qp_conn conn = fx_conn();
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	const struct rmem_send_wr wr =
			fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.b.buf), fx.b.mr->rkey);
	uint32_t rkey;

	TEST_ASSERT(qp != NULL);
	TEST_STATUS(fx_mw_bind_1(0, 64, ALL), RMEM_WC_SUCCESS);
	rkey = fx.mw.one->rkey;
	TEST_OK(fx_connect_by(qp, fx_qp(fx.a.pd, fx.a.cq, 8), &conn));
	TEST_EQ(fx_post(qp, &wr), 1);
	TEST_OK(rmem_mw_bind(qp, fx.mw.one, &bind));
	TEST_ASSERT(fx.mw.one->rkey != rkey);
	TEST_ERR(rmem_mw_dealloc(fx.mw.one), EBUSY);
	TEST_OK(rmem_qp_reset(qp));
	TEST_EQ(fx.mw.one->rkey, rkey);
	TEST_RUN(fx_mw_expect_write(fx_addr(fx.a.buf), 8, rkey, fx.a.buf));
	return TEST_SUCCESS;
}

TEST(mw_type1, refused_calls_keep_the_key)
{
	struct rmem_qp *fresh = fx_qp(fx.a.pd, fx.a.cq, 8);
	struct rmem_mw_bind bind = fx_mw_bind(0, 64, ALL);
	uint32_t rkey = fx.mw.one->rkey;
	uint32_t i;

	TEST_ASSERT(fresh != NULL);
	TEST_ERR(rmem_mw_bind(fresh, fx.mw.one, &bind), EBUSY); /* in RESET */
	bind.bind_info.length = FX_BUF_SIZE + 1;
	TEST_ERR(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind), EINVAL);
	bind = fx_mw_bind(0, 64, ALL);
	bind.bind_info.mr = fx.a.mr;
	TEST_ERR(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind), EPERM);
	bind = fx_mw_bind(0, 64, ALL | RMEM_ACCESS_ZERO_BASED);
	TEST_ERR(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind), EINVAL);
	TEST_EQ(fx.mw.one->rkey, rkey);
	/* Completions that nobody polls fill the queue. */
	bind = fx_mw_bind(0, 64, ALL);
	for (i = 0; i < FX_DEPTH; i++)
		TEST_OK(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind));
	rkey = fx.mw.one->rkey;
	TEST_ERR(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind), ENOSPC);
	TEST_EQ(fx.mw.one->rkey, rkey);
	for (i = 0; i < FX_DEPTH; i++)
		TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_RUN(fx_mw_expect_write(fx_addr(fx.a.buf), 8, rkey, fx.a.buf));
	return TEST_SUCCESS;
}

TEST(mw_type1, unsignaled_binding_makes_no_completion)
{
	struct rmem_mw_bind bind = fx_mw_bind(0, 64, ALL);

	bind.flags = RMEM_SEND_FENCE;
	TEST_OK(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind));
	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS); /* behind it */
	TEST_EQ(fx.wc.wr_id, 0xa0a0);
	TEST_RUN(fx_mw_expect_write(fx_addr(fx.a.buf), 8, fx.mw.one->rkey, fx.a.buf));
	return TEST_SUCCESS;
}

/* ALLOCATE_MR and zero-based MRs: a window's addresses are in terms of the MR's. */
TEST(mw_type1, zero_based_mr_can_be_bound_to)
{
	fx.mw.mr = fx_mr(fx.a.pd, fx.a.buf + 4096, 4096,
			FX_ACCESS | RMEM_ACCESS_MW_BIND | RMEM_ACCESS_ZERO_BASED);
	TEST_ASSERT(fx.mw.mr != NULL && fx.mw.mr->iova == 0);
	TEST_STATUS(fx_mw_bind_1(64, 64, ALL), RMEM_WC_SUCCESS);
	TEST_RUN(fx_mw_expect_write(64, 64, fx.mw.one->rkey, fx.a.buf + 4096 + 64));
	TEST_RUN(fx_mw_expect_refusal(63, 2, fx.mw.one->rkey, 6));
	TEST_OK(fx_release(fx.mw.one));
	return TEST_SUCCESS;
}

/* The only index of a device: first of a window that one QP binds, then of one for all QPs. */
TEST(mw_type1, window_in_the_place_of_a_type_2_one_is_for_all_qps)
{
	struct rmem_dev *dev = fx_dev("soft1", "max_mw=1");
	struct rmem_pd *pd = fx_pd(dev);
	struct iovec iov[2] = {{fx.a.buf, 64}, {fx.a.buf + 4096, 64}};
	const struct rmem_mr_attr attr = {
			.iov = iov, .iov_count = 2, .access = FX_ACCESS | RMEM_ACCESS_MW_BIND};
	struct fx_side c = {0}, d = {0};
	struct rmem_send_wr wr;
	struct rmem_mw *mw;
	struct rmem_sge sge;

	TEST_ASSERT(pd != NULL);
	TEST_RUN(fx_side_open(&c, dev, pd));
	TEST_RUN(fx_side_open(&d, dev, pd));
	TEST_OK(fx_connect_pair(c.qp, d.qp));
	TEST_OK(rmem_mr_reg_attr(pd, &attr, &fx.mw.mr));
	fx_track(fx.mw.mr);
	mw = fx_mw(pd, RMEM_MW_TYPE_2);
	wr = fx_mw_wr(mw, 0, 128, ALL);
	TEST_STATUS(fx_send(d.qp, &wr), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(mw));
	fx.mw.one = fx_mw(pd, RMEM_MW_TYPE_1);
	TEST_ASSERT(fx.mw.one != NULL);
	fx.a.qp = c.qp;
	fx.a.cq = c.cq;
	TEST_STATUS(fx_mw_bind_1(0, 128, ALL), RMEM_WC_SUCCESS);
	sge = fx_sge(d.mr, 0, 8);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx.mw.mr->iova + 64, fx.mw.one->rkey);
	TEST_STATUS(fx_send(d.qp, &wr), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

TEST_SUITE(mw_type1, fx_setup_mw, fx_teardown);
