/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Type 2 windows: bound by BIND_MW, for one QP, invalidated before they are bound again. */

#include <string.h>

#include "fixture.h"
#include "test.h"

#define ALL RMEM_ACCESS_REMOTE

static int
expect_bind_refusal(const struct rmem_send_wr *wr)
{
	TEST_RUN(fx_expect_refusal(wr, RMEM_WC_MW_BIND_ERR, RMEM_QPS_RTS));
	return TEST_SUCCESS;
}

TEST(mw_bind, window_opens_its_range)
{
	struct rmem_dev_stats before, stats;

	TEST_OK(rmem_dev_stats_get(fx.a.dev, &before));
	TEST_STATUS(fx_mw_bind_2(100, 200, ALL), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_BIND_MW);
	TEST_OK(rmem_dev_stats_get(fx.a.dev, &stats));
	TEST_EQ(stats.mw_binds, before.mw_binds + 1);
	TEST_RUN(fx_mw_expect_write(fx_addr(fx.a.buf) + 100, 200, fx.mw.two->rkey, fx.a.buf + 100));
	TEST_RUN(fx_mw_expect_write(fx_addr(fx.a.buf) + 299, 1, fx.mw.two->rkey, fx.a.buf + 299));
	return TEST_SUCCESS;
}

/* IBTA C10-75: the window's bounds count, not those of its MR; no sum wraps. */
TEST(mw_bind, outside_the_window_is_refused)
{
	const uint64_t at = fx_addr(fx.a.buf) + 100;

	TEST_STATUS(fx_mw_bind_2(100, 200, ALL), RMEM_WC_SUCCESS);
	TEST_RUN(fx_mw_expect_refusal(at - 1, 1, fx.mw.two->rkey, 6));
	TEST_RUN(fx_mw_expect_refusal(at - 1, 2, fx.mw.two->rkey, 6));
	TEST_RUN(fx_mw_expect_refusal(at + 200, 1, fx.mw.two->rkey, 6));
	TEST_RUN(fx_mw_expect_refusal(at + 199, 2, fx.mw.two->rkey, 6));
	TEST_RUN(fx_mw_expect_refusal(at, 201, fx.mw.two->rkey, 6));
	TEST_RUN(fx_mw_expect_refusal(UINT64_MAX, 2, fx.mw.two->rkey, 6));
	TEST_RUN(fx_mw_expect_refusal(0, 1, fx.mw.two->rkey, 6));
	return TEST_SUCCESS;
}

TEST(mw_bind, zero_based_window_starts_at_0)
{
	TEST_STATUS(fx_mw_bind_2(100, 200, ALL | RMEM_ACCESS_ZERO_BASED), RMEM_WC_SUCCESS);
	TEST_RUN(fx_mw_expect_write(0, 200, fx.mw.two->rkey, fx.a.buf + 100));
	TEST_RUN(fx_mw_expect_write(199, 1, fx.mw.two->rkey, fx.a.buf + 299));
	TEST_RUN(fx_mw_expect_refusal(199, 2, fx.mw.two->rkey, 6));
	TEST_RUN(fx_mw_expect_refusal(UINT64_MAX, 1, fx.mw.two->rkey, 6));
	TEST_RUN(fx_mw_expect_refusal(fx_addr(fx.a.buf) + 100, 1, fx.mw.two->rkey, 6));
	return TEST_SUCCESS;
}

/* Each right by itself: a request that needs another is refused. */
TEST(mw_bind, rights_are_the_windows)
{
	static const struct {
		uint8_t opcode;
		uint32_t access;
	} rows[] = {
			{RMEM_WR_RDMA_WRITE, RMEM_ACCESS_REMOTE_WRITE},
			{RMEM_WR_RDMA_READ, RMEM_ACCESS_REMOTE_READ},
			{RMEM_WR_ATOMIC_FETCH_AND_ADD, RMEM_ACCESS_REMOTE_ATOMIC},
	};
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	uint32_t access, i;

	for (access = 0; access <= ALL; access += RMEM_ACCESS_REMOTE_WRITE) {
		TEST_STATUS(fx_mw_bind_2(0, 64, access), RMEM_WC_SUCCESS);
		for (i = 0; i < RTE_DIM(rows); i++) {
			struct rmem_send_wr wr = fx_rdma(
					rows[i].opcode, &sge, fx_addr(fx.a.buf), fx.mw.two->rkey);
			int want = access & rows[i].access ? RMEM_WC_SUCCESS
							   : RMEM_WC_REM_ACCESS_ERR;

			if (rows[i].opcode == RMEM_WR_ATOMIC_FETCH_AND_ADD)
				wr = fx_atomic(rows[i].opcode, &sge, fx_addr(fx.a.buf),
						fx.mw.two->rkey, 1);
			TEST_STATUS(fx_send(fx.b.qp, &wr), want);
			if (want != RMEM_WC_SUCCESS)
				TEST_RUN(fx_reconnect());
		}
		{
			const struct rmem_send_wr inv = fx_inv(fx.mw.two->rkey);

			TEST_STATUS(fx_send(fx.a.qp, &inv), RMEM_WC_SUCCESS);
		}
	}
	return TEST_SUCCESS;
}

/* IBTA 10.6.7.2: the consumer chooses the tag; the handle follows what was posted last. */
TEST(mw_bind, tag_is_the_programs)
{
	static const uint8_t tags[] = {7, 8, 200, 199, 199, 0, 255};
	uint32_t i, before;

	for (i = 0; i < RTE_DIM(tags); i++) {
		struct rmem_send_wr wr = fx_mw_wr(fx.mw.two, 0, 64, ALL);

		before = fx.mw.two->rkey;
		wr.bind_mw.key_tag = tags[i];
		TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
		TEST_EQ(fx.mw.two->rkey, rmem_rkey_of_tag(before, tags[i]));
		TEST_RUN(fx_mw_expect_write(fx_addr(fx.a.buf), 64, fx.mw.two->rkey, fx.a.buf));
		if ((before & 0xff) != tags[i])
			TEST_RUN(fx_mw_expect_refusal(fx_addr(fx.a.buf), 8, before, 2));
		wr = fx_inv(fx.mw.two->rkey);
		TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	}
	return TEST_SUCCESS;
}

/* IBTA o10-37.2.30 */
TEST(mw_bind, bound_window_is_not_bound_again)
{
	struct rmem_send_wr wr;
	uint32_t rkey;

	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
	rkey = fx.mw.two->rkey;
	wr = fx_mw_wr(fx.mw.two, 64, 64, ALL);
	TEST_RUN(expect_bind_refusal(&wr));
	/* The first binding stays. */
	TEST_RUN(fx_mw_expect_write(fx_addr(fx.a.buf), 64, rkey, fx.a.buf));
	wr = fx_inv(rkey);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_RUN(fx_mw_expect_refusal(fx_addr(fx.a.buf), 8, rkey, 3));
	TEST_STATUS(fx_mw_bind_2(64, 64, ALL), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

TEST(mw_bind, many_lives_wrap_the_tag)
{
	uint32_t i;

	for (i = 0; i < 600; i++) {
		struct rmem_send_wr wrs[2];

		wrs[0] = fx_mw_wr(fx.mw.two, i, 64, ALL);
		wrs[1] = fx_inv(rmem_rkey_of_tag(fx.mw.two->rkey, wrs[0].bind_mw.key_tag));
		wrs[1].flags = RMEM_SEND_SIGNALED;
		TEST_EQ(rmem_post_send(fx.a.qp, wrs, 2), 2);
		TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	}
	/* Nothing holds the MR any more. */
	TEST_OK(fx_release(fx.mw.mr));
	return TEST_SUCCESS;
}

/* A window that is not bound can't be invalidated, nor by a key with another tag. */
TEST(mw_bind, only_what_is_bound_is_invalidated)
{
	struct rmem_send_wr wr = fx_inv(fx.mw.two->rkey);

	TEST_RUN(expect_bind_refusal(&wr));
	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
	wr = fx_inv(fx.mw.two->rkey + 1);
	TEST_RUN(expect_bind_refusal(&wr));
	TEST_RUN(fx_mw_expect_write(fx_addr(fx.a.buf), 64, fx.mw.two->rkey, fx.a.buf));
	return TEST_SUCCESS;
}

/* IBTA C10-77, for 2B: through the QP that bound it, and no other. */
TEST(mw_bind, another_qp_of_the_pd_is_refused)
{
	struct rmem_qp *mine = fx_qp(fx.a.pd, fx.a.cq, 8);
	struct rmem_qp *peer = fx_qp(fx.a.pd, fx.b.cq, 8);
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr;

	TEST_ASSERT(mine != NULL && peer != NULL);
	TEST_OK(fx_connect_pair(mine, peer));
	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.a.buf), fx.mw.two->rkey);
	TEST_STATUS(fx_send(peer, &wr), RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(fx.wc.vendor_err, 7);
	TEST_OK(rmem_qp_reset(mine));
	TEST_OK(rmem_qp_reset(peer));
	TEST_OK(fx_connect_pair(mine, peer));
	wr = fx_inv(fx.mw.two->rkey);
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_MW_BIND_ERR);
	TEST_RUN(fx_mw_expect_write(fx_addr(fx.a.buf), 8, fx.mw.two->rkey, fx.a.buf));
	return TEST_SUCCESS;
}

TEST(mw_bind, send_with_inv_reaches_the_windows_qp)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND_WITH_INV, NULL, 0);

	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
	TEST_EQ(fx_post_recv(fx.a.qp, 9, NULL, 0), 1);
	wr.invalidate_rkey = fx.mw.two->rkey;
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.invalidated_rkey, fx.mw.two->rkey);
	TEST_RUN(fx_mw_expect_refusal(fx_addr(fx.a.buf), 8, fx.mw.two->rkey, 3));
	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

/* The message arrives, the receive fails (IBTA class J), the window stays. */
TEST(mw_bind, send_with_inv_to_another_qp_is_refused)
{
	struct rmem_qp *mine = fx_qp(fx.a.pd, fx.a.cq, 8);
	struct rmem_qp *peer = fx_qp(fx.a.pd, fx.b.cq, 8);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND_WITH_INV, NULL, 0);

	TEST_ASSERT(mine != NULL && peer != NULL);
	TEST_OK(fx_connect_pair(mine, peer));
	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
	TEST_EQ(fx_post_recv(mine, 9, NULL, 0), 1);
	wr.invalidate_rkey = fx.mw.two->rkey;
	TEST_STATUS(fx_send(peer, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_REM_INV_REQ_ERR);
	TEST_RUN(fx_mw_expect_write(fx_addr(fx.a.buf), 8, fx.mw.two->rkey, fx.a.buf));
	return TEST_SUCCESS;
}

/* fx_mw_expect_refusal() resets the QPs: the binding outlives that. */
TEST(mw_bind, window_outlives_a_reset_of_its_qp)
{
	TEST_STATUS(fx_mw_bind_2(0, 64, ALL), RMEM_WC_SUCCESS);
	TEST_RUN(fx_reconnect());
	TEST_RUN(fx_mw_expect_write(fx_addr(fx.a.buf), 8, fx.mw.two->rkey, fx.a.buf));
	return TEST_SUCCESS;
}

/* It is of no use to others then, but stays, with its MR, until it is released. */
TEST(mw_bind, window_of_a_destroyed_qp_is_useless)
{
	struct rmem_qp *mine = fx_qp(fx.a.pd, fx.a.cq, 8);
	struct rmem_qp *peer = fx_qp(fx.a.pd, fx.b.cq, 8);
	struct rmem_send_wr wr = fx_mw_wr(fx.mw.two, 0, 64, ALL);

	TEST_ASSERT(mine != NULL && peer != NULL);
	TEST_OK(fx_connect_pair(mine, peer));
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(mine));
	TEST_RUN(fx_mw_expect_refusal(fx_addr(fx.a.buf), 8, fx.mw.two->rkey, 7));
	wr = fx_inv(fx.mw.two->rkey);
	TEST_RUN(expect_bind_refusal(&wr));
	TEST_ERR(rmem_mr_dereg(fx.mw.mr), EBUSY);
	TEST_OK(fx_release(fx.mw.two));
	TEST_OK(fx_release(fx.mw.mr));
	return TEST_SUCCESS;
}

/* One field of the request wrong at a time; afterwards the window can still be bound. */
TEST(mw_bind, bad_bindings_are_refused)
{
	const struct rmem_send_wr good = fx_mw_wr(fx.mw.two, 0, 64, ALL);
	struct rmem_send_wr wr = good;

	wr.bind_mw.length = 0; /* IBTA o10-37.2.40 */
	TEST_RUN(expect_bind_refusal(&wr));
	wr = good;
	wr.bind_mw.length = FX_BUF_SIZE + 1;
	TEST_RUN(expect_bind_refusal(&wr));
	wr.bind_mw.length = UINT64_MAX;
	TEST_RUN(expect_bind_refusal(&wr));
	wr = good;
	wr.bind_mw.addr--;
	TEST_RUN(expect_bind_refusal(&wr));
	wr.bind_mw.addr = UINT64_MAX - 8;
	TEST_RUN(expect_bind_refusal(&wr));
	wr = good;
	wr.bind_mw.access = RMEM_ACCESS_LOCAL_WRITE;
	TEST_RUN(expect_bind_refusal(&wr));
	TEST_STATUS(fx_send(fx.a.qp, &good), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

/* IBTA C10-73, C10-74; what requests bind takes no window either. */
TEST(mw_bind, mr_must_allow_it)
{
	struct rmem_mr *fixed = fx_mr(fx.a.pd, fx.a.buf, 64, RMEM_ACCESS_MW_BIND);
	struct rmem_send_wr wr = fx_mw_wr(fx.mw.two, 0, 64, RMEM_ACCESS_REMOTE_READ);

	TEST_ASSERT(fixed != NULL);
	wr.bind_mw.mr = fx.a.mr;
	TEST_RUN(expect_bind_refusal(&wr));
	wr.bind_mw.mr = fx_fast_mr(fx.a.pd, 1);
	TEST_RUN(expect_bind_refusal(&wr));
	wr.bind_mw.mr = fixed;
	wr.bind_mw.access = RMEM_ACCESS_REMOTE_WRITE;
	TEST_RUN(expect_bind_refusal(&wr));
	wr.bind_mw.access = RMEM_ACCESS_REMOTE_ATOMIC;
	TEST_RUN(expect_bind_refusal(&wr));
	wr.bind_mw.access = RMEM_ACCESS_REMOTE_READ;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(fx.mw.two));
	return TEST_SUCCESS;
}

/* An MR whose keys open nothing yet lends nothing to a window. */
TEST(mw_bind, disabled_mr_is_refused)
{
	const struct rmem_mr_attr attr = {.addr = fx.a.buf,
			.length = 64,
			.access = FX_ACCESS | RMEM_ACCESS_MW_BIND,
			.flags = RMEM_MR_DISABLED};
	struct rmem_send_wr wr = fx_mw_wr(fx.mw.two, 0, 64, ALL);

	TEST_OK(rmem_mr_reg_attr(fx.a.pd, &attr, &wr.bind_mw.mr));
	fx_track(wr.bind_mw.mr);
	TEST_RUN(expect_bind_refusal(&wr));
	TEST_OK(rmem_mr_enable(wr.bind_mw.mr));
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(fx.mw.two));
	return TEST_SUCCESS;
}

/* IBTA C10-72: window, MR and QP are of one PD. */
TEST(mw_bind, pds_must_be_the_same)
{
	struct rmem_pd *pd = fx_pd(fx.a.dev);
	struct rmem_send_wr wr = fx_mw_wr(fx.mw.two, 0, 64, ALL);

	wr.bind_mw.mr = fx_mr(pd, fx.a.buf, 64, FX_ACCESS | RMEM_ACCESS_MW_BIND);
	TEST_ASSERT(wr.bind_mw.mr != NULL);
	TEST_RUN(expect_bind_refusal(&wr));
	wr.bind_mw.mw = fx_mw(pd, RMEM_MW_TYPE_2);
	TEST_RUN(expect_bind_refusal(&wr));
	wr.bind_mw.mr = fx.mw.mr;
	TEST_RUN(expect_bind_refusal(&wr));
	return TEST_SUCCESS;
}

TEST(mw_bind, malformed_requests_are_not_accepted)
{
	struct rmem_send_wr wr = fx_mw_wr(fx.mw.two, 0, 64, ALL);

	wr.bind_mw.mw = NULL;
	TEST_ERR(fx_post(fx.a.qp, &wr), EINVAL);
	wr.bind_mw.mw = (struct rmem_mw *)fx.mw.mr;
	TEST_ERR(fx_post(fx.a.qp, &wr), EINVAL);
	wr.bind_mw.mw = fx.mw.one; /* type 1 is bound by call */
	TEST_ERR(fx_post(fx.a.qp, &wr), EINVAL);
	wr.bind_mw.mw = fx.mw.two;
	wr.bind_mw.mr = NULL;
	TEST_ERR(fx_post(fx.a.qp, &wr), EINVAL);
	wr.bind_mw.mr = (struct rmem_mr *)fx.mw.two;
	TEST_ERR(fx_post(fx.a.qp, &wr), EINVAL);
	wr.bind_mw.mr = fx.mw.mr;
	wr.flags = RMEM_SEND_INLINE;
	TEST_ERR(fx_post(fx.a.qp, &wr), EINVAL);
	return TEST_SUCCESS;
}

/* A window and a WRITE through it in bursts: the fast loop of WRITEs takes it too. */
TEST(mw_bind, bursts_through_a_window)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 64);
	struct rmem_send_wr wrs[32];
	unsigned int i;

	fx_fill(fx.b.buf, 64, 3);
	TEST_STATUS(fx_mw_bind_2(4096, 32 * 64, ALL | RMEM_ACCESS_ZERO_BASED), RMEM_WC_SUCCESS);
	for (i = 0; i < RTE_DIM(wrs); i++)
		wrs[i] = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, i * 64, fx.mw.two->rkey);
	wrs[31].flags = RMEM_SEND_SIGNALED;
	TEST_EQ(rmem_post_send(fx.b.qp, wrs, 32), 32);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	for (i = 0; i < RTE_DIM(wrs); i++)
		TEST_MEM(fx.a.buf + 4096 + i * 64, fx.b.buf, 64);
	TEST_ASSERT(fx_is_zero(fx.a.buf, 4096));
	TEST_ASSERT(fx_is_zero(fx.a.buf + 4096 + 32 * 64, 4096));
	return TEST_SUCCESS;
}

TEST_SUITE(mw_bind, fx_setup_mw, fx_teardown);
