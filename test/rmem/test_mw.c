/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Memory windows of the software device: limits, counts, what waits in a queue, and keys whose slot
 * or QP has another owner. The rules of windows are cases of conformance.
 */

#include <string.h>

#include "fixture.h"

#define TYPE_1 RMEM_MW_TYPE_1
#define TYPE_2 RMEM_MW_TYPE_2

/* With any tag: a reused slot has another index. */
TEST(mw, key_of_a_freed_window_is_not_given_out_again)
{
	struct rmem_pd *pd = fx_pd(fx_dev("soft1", "max_mw=1"));
	uint32_t former[300] = {0}, i, j;

	for (i = 0; i < RTE_DIM(former); i++) {
		struct rmem_mw *mw = fx_mw(pd, TYPE_1);

		for (j = 0; j < i; j++)
			TEST_ASSERT(mw->rkey >> 8 != former[j] >> 8);
		former[i] = mw->rkey;
		TEST_OK(fx_release(mw));
	}
}

/* Objects of a queued binding are held: here the QP waits for a missing peer. */
TEST(mw, queued_binding_keeps_window_and_mr)
{
	struct rmem_qp *qp = fx_qp(fx.a.pd, fx.a.cq, 8);
	const struct rmem_qp_conn conn = fx_conn();
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_send_wr wrs[2];

	TEST_OK(fx_connect_by(qp, fx_qp(fx.a.pd, fx.a.cq, 8), &conn));
	wrs[0] = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
	wrs[1] = fx_mw_wr(fx.mw.two, 0, 8, RMEM_ACCESS_REMOTE);
	TEST_EQ(rmem_post_send(qp, wrs, 2), 2);
	TEST_ERR(rmem_mw_dealloc(fx.mw.two), EBUSY);
	TEST_ERR(rmem_mr_dereg(fx.mw.mr), EBUSY);
	TEST_OK(rmem_qp_reset(qp));
	TEST_OK(fx_release(fx.mw.two));
	TEST_OK(fx_release(fx.mw.mr));
}

/* As a BIND_MW; with late errors, too, and when the request would only be flushed. */
TEST(mw, datagram_qp_binds_no_window)
{
	static const uint16_t flags[] = {0, RMEM_QP_LATE_ERRORS};
	struct rmem_qp_conf conf = fx_qp_conf(fx.a.cq, 4);
	const struct rmem_qp_attr init = {.state = RMEM_QPS_INIT, .port_num = 1},
				  rtr = {.state = RMEM_QPS_RTR}, rts = {.state = RMEM_QPS_RTS};
	const struct rmem_mw_bind bind = {.bind_info.mr = fx.mw.mr,
			.bind_info.addr = fx.mw.mr->iova,
			.bind_info.length = 8};
	struct rmem_qp *qp;
	unsigned int i;

	conf.type = RMEM_QPT_UD;
	for (i = 0; i < RTE_DIM(flags); i++) {
		conf.flags = flags[i];
		qp = fx_qp_by(fx.a.pd, &conf);
		TEST_OK(rmem_qp_modify(qp, &init,
				RMEM_QP_STATE | RMEM_QP_PKEY_INDEX | RMEM_QP_PORT | RMEM_QP_QKEY));
		TEST_OK(rmem_qp_modify(qp, &rtr, RMEM_QP_STATE));
		TEST_OK(rmem_qp_modify(qp, &rts, RMEM_QP_STATE | RMEM_QP_SQ_PSN));
		TEST_ERR(rmem_mw_bind(qp, fx.mw.one, &bind), EOPNOTSUPP);
		TEST_OK(rmem_qp_set_error(qp));
		TEST_ERR(rmem_mw_bind(qp, fx.mw.one, &bind), EOPNOTSUPP);
	}
	TEST_OK(fx_release(fx.mw.one));
}

/* Windows of several MRs, in turn and in a row; MRs are released before the completion. */
TEST(mw, burst_of_invalidations_releases_each_mr)
{
	static const uint8_t of[] = {0, 0, 1, 0, 1, 1};
	struct rmem_mr *mrs[2] = {
			fx.mw.mr, fx_mr(fx.a.pd, fx.a.buf, 4096, FX_ACCESS | RMEM_ACCESS_MW_BIND)};
	struct rmem_send_wr wrs[RTE_DIM(of)];
	uint32_t i;

	for (i = 0; i < RTE_DIM(of); i++) {
		struct rmem_mw *mw = fx_mw(fx.a.pd, TYPE_2);

		wrs[i] = fx_mw_wr(mw, 0, 64, RMEM_ACCESS_REMOTE);
		wrs[i].bind_mw.mr = mrs[of[i]];
		wrs[i].bind_mw.addr = mrs[of[i]]->iova;
		TEST_STATUS(fx_send(fx.a.qp, &wrs[i]), RMEM_WC_SUCCESS);
		wrs[i] = fx_inv(mw->rkey);
		wrs[i].flags = i == 3 || i == 5 ? RMEM_SEND_SIGNALED : 0;
		wrs[i].wr_id = i;
	}
	TEST_ERR(rmem_mr_dereg(mrs[0]), EBUSY);
	TEST_ERR(rmem_mr_dereg(mrs[1]), EBUSY);
	TEST_EQ(rmem_post_send(fx.a.qp, wrs, RTE_DIM(of)), (int)RTE_DIM(of));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 3);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 5);
	TEST_OK(fx_release(mrs[0]));
	TEST_OK(fx_release(mrs[1]));
}

TEST(mw, thousand_windows_cover_the_same_bytes)
{
	const uint32_t nb = 1000;
	struct rmem_mw *mws[1000];
	uint32_t i;

	for (i = 0; i < nb; i++) {
		struct rmem_send_wr wr;

		mws[i] = fx_mw(fx.a.pd, TYPE_2);
		wr = fx_mw_wr(mws[i], i, 8, RMEM_ACCESS_REMOTE);
		TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	}
	for (i = 0; i < nb; i += 100)
		fx_mw_expect_write(fx_addr(fx.a.buf) + i, 8, mws[i]->rkey, fx.a.buf + i);
	fx_mw_expect_refusal(fx_addr(fx.a.buf) + 500, 8, mws[499]->rkey, 6);
}

/* No other QP can use it then; it exists, with its MR, until it is released. */
TEST(mw, window_of_a_destroyed_qp_grants_no_access)
{
	struct rmem_qp *mine = fx_qp(fx.a.pd, fx.a.cq, 8);
	struct rmem_qp *peer = fx_qp(fx.a.pd, fx.b.cq, 8);
	struct rmem_send_wr wr = fx_mw_wr(fx.mw.two, 0, 64, RMEM_ACCESS_REMOTE);

	TEST_OK(fx_connect_pair(mine, peer));
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(mine));
	fx_mw_expect_refusal(fx_addr(fx.a.buf), 8, fx.mw.two->rkey, 7);
	wr = fx_inv(fx.mw.two->rkey);
	fx_expect_refusal(&wr, RMEM_WC_MW_BIND_ERR, RMEM_QPS_RTS);
	TEST_ERR(rmem_mr_dereg(fx.mw.mr), EBUSY);
	TEST_OK(fx_release(fx.mw.two));
	TEST_OK(fx_release(fx.mw.mr));
}

/* A window and a WRITE through it in bursts: the fast loop of WRITEs takes it too. */
TEST(mw, burst_of_writes_uses_a_window)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 64);
	struct rmem_send_wr wrs[32];
	unsigned int i;

	fx_fill(fx.b.buf, 64, 3);
	TEST_STATUS(fx_mw_bind_2(4096, 32 * 64, RMEM_ACCESS_REMOTE | RMEM_ACCESS_ZERO_BASED),
			RMEM_WC_SUCCESS);
	for (i = 0; i < RTE_DIM(wrs); i++)
		wrs[i] = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, i * 64, fx.mw.two->rkey);
	wrs[31].flags = RMEM_SEND_SIGNALED;
	TEST_EQ(rmem_post_send(fx.b.qp, wrs, 32), 32);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	for (i = 0; i < RTE_DIM(wrs); i++)
		TEST_MEM(fx.a.buf + 4096 + i * 64, fx.b.buf, 64);
	TEST_ASSERT(fx_is_zero(fx.a.buf, 4096));
	TEST_ASSERT(fx_is_zero(fx.a.buf + 4096 + 32 * 64, 4096));
}

/* Queued after a WRITE whose peer is missing, then dropped with it. */
TEST(mw, queued_binding_that_is_dropped_keeps_the_key)
{
	struct rmem_qp *qp = fx_qp(fx.a.pd, fx.a.cq, 8);
	const struct rmem_mw_bind bind = fx_mw_bind(64, 64, RMEM_ACCESS_REMOTE);
	const struct rmem_qp_conn conn = fx_conn();
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	const struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
	uint32_t rkey;

	TEST_STATUS(fx_mw_bind_1(0, 64, RMEM_ACCESS_REMOTE), RMEM_WC_SUCCESS);
	rkey = fx.mw.one->rkey;
	TEST_OK(fx_connect_by(qp, fx_qp(fx.a.pd, fx.a.cq, 8), &conn));
	TEST_EQ(fx_post(qp, &wr), 1);
	TEST_OK(rmem_mw_bind(qp, fx.mw.one, &bind));
	TEST_ASSERT(fx.mw.one->rkey != rkey);
	TEST_ERR(rmem_mw_dealloc(fx.mw.one), EBUSY);
	TEST_OK(rmem_qp_reset(qp));
	TEST_EQ(fx.mw.one->rkey, rkey);
	fx_mw_expect_write(fx_addr(fx.a.buf), 8, rkey, fx.a.buf);
}

/* Completions not polled fill the queue. */
TEST(mw, binding_that_finds_the_queue_full_keeps_the_key)
{
	struct rmem_mw_bind bind = fx_mw_bind(0, 64, RMEM_ACCESS_REMOTE);
	struct rmem_dev_stats before;
	uint32_t rkey, i;

	TEST_OK(rmem_dev_stats_get(fx.a.dev, &before));
	for (i = 0; i < FX_DEPTH; i++)
		TEST_OK(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind));
	rkey = fx.mw.one->rkey;
	TEST_ERR(rmem_mw_bind(fx.a.qp, fx.mw.one, &bind), ENOSPC);
	TEST_EQ(fx.mw.one->rkey, rkey);
	for (i = 0; i < FX_DEPTH; i++)
		TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	fx_mw_expect_write(fx_addr(fx.a.buf), 8, rkey, fx.a.buf);
	TEST_EQ(fx_dev_stats(fx.a.dev).mw_binds, before.mw_binds + FX_DEPTH);
}

/* The only index of a device: first of a window that one QP binds, then of one for all QPs. */
TEST(mw, window_in_a_slot_reused_from_type_2_serves_all_qps)
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

	fx_side_open(&c, dev, pd);
	fx_side_open(&d, dev, pd);
	TEST_OK(fx_connect_pair(c.qp, d.qp));
	TEST_OK(fx_reg_attr(pd, &attr, &fx.mw.mr));
	mw = fx_mw(pd, RMEM_MW_TYPE_2);
	wr = fx_mw_wr(mw, 0, 128, RMEM_ACCESS_REMOTE);
	TEST_STATUS(fx_send(d.qp, &wr), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(mw));
	fx.mw.one = fx_mw(pd, RMEM_MW_TYPE_1);
	fx.a.qp = c.qp;
	fx.a.cq = c.cq;
	TEST_STATUS(fx_mw_bind_1(0, 128, RMEM_ACCESS_REMOTE), RMEM_WC_SUCCESS);
	sge = fx_sge(d.mr, 0, 8);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx.mw.mr->iova + 64, fx.mw.one->rkey);
	TEST_STATUS(fx_send(d.qp, &wr), RMEM_WC_SUCCESS);
}

#define MANY_QPS 16384u /* so that numbers of 32 bits come again after 2^17 QPs */

static struct rmem_qp *many[MANY_QPS];

/* All QPs of a device but for that many, then so many more, one at a time. */
static void
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
}

/* The one index that is left gets all the numbers that its QPs can have, and the first again. */
static void
expect_tied(struct rmem_pd *pd, struct rmem_qp *peer)
{
	struct rmem_qp *qp = fx_qp(pd, fx.a.cq, 8);
	struct rmem_sge sge = fx_sge(fx.mw.mr, 0, 8);
	struct rmem_send_wr wr;

	fx.mw.two = fx_mw(pd, TYPE_2);
	TEST_OK(fx_connect_pair(qp, peer));
	wr = fx_mw_wr(fx.mw.two, 64, 8, RMEM_ACCESS_REMOTE);
	TEST_STATUS(fx_send(qp, &wr), RMEM_WC_SUCCESS);
	TEST_OK(rmem_qp_reset(peer));
	TEST_OK(fx_release(qp));
	use_up_qps(pd, 2, 131071);
	qp = fx_qp(pd, fx.a.cq, 8);
	TEST_OK(fx_connect_pair(qp, peer));
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx.mw.mr->iova + 64, fx.mw.two->rkey);
	TEST_STATUS(fx_send(peer, &wr), RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(fx.wc.vendor_err, 7);
	TEST_OK(fx_release(qp));
}

TEST(mw, later_qp_does_not_use_a_window_of_a_destroyed_qp)
{
	struct rmem_dev *dev = fx_dev("soft1", "max_qp=16384");
	struct rmem_pd *pd = fx_pd(dev);
	struct rmem_qp *peer;
	uint32_t i;
	int result;

	fx.a.cq = fx_cq(dev, 64);
	fx.mw.mr = fx_mr(pd, fx.a.buf, 4096, FX_ACCESS | RMEM_ACCESS_MW_BIND);
	peer = fx_qp(pd, fx.a.cq, 8);
	memset(many, 0, sizeof(many));
	result = TEST_TRY(use_up_qps(pd, 2, 0));
	if (result == TEST_SUCCESS)
		result = TEST_TRY(expect_tied(pd, peer));
	for (i = 0; i < MANY_QPS && many[i] != NULL; i++)
		TEST_OK(rmem_qp_destroy(many[i]));
	TEST_RUN(result);
}

TEST_SUITE(mw, fx_setup_mw, fx_teardown);
