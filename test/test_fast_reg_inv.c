/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* What becomes of a key: bound, taken away by each of the three ways, bound again. */

#include <string.h>

#include "fixture.h"
#include "test.h"

#define ALL (FX_FAST_PAGES * FX_PAGE)

static uint64_t
start(void)
{
	return fx_addr(fx.fast.pages);
}

/* The key opens nothing for peers; the QPs are connected again. */
static int
expect_stale(uint32_t rkey)
{
	TEST_STATUS(fx_peer_write(start(), 8, rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_RUN(fx_reconnect());
	return TEST_SUCCESS;
}

TEST(fastreg_inv, local_inv_takes_both_keys_away)
{
	struct rmem_sge sge;
	struct rmem_send_wr wr;
	uint32_t rkey;

	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	rkey = fx.fast.mr->rkey;
	sge = (struct rmem_sge){.addr = start(), .length = 8, .lkey = fx.fast.mr->lkey};
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.b.buf), fx.b.mr->rkey);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(start(), 8, rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_LOCAL_INV);
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_FREE);
	TEST_RUN(expect_stale(rkey));
	TEST_RUN(fx_expect_refusal(&wr, RMEM_WC_LOC_PROT_ERR, RMEM_QPS_RTS));
	return TEST_SUCCESS;
}

TEST(fastreg_inv, former_key_stays_refused_when_bound_again)
{
	uint32_t former;

	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	former = fx.fast.mr->rkey;
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	TEST_ASSERT(fx.fast.mr->rkey != former);
	TEST_RUN(expect_stale(former));
	TEST_STATUS(fx_peer_write(start(), 8, fx.fast.mr->rkey), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

/* The tag wraps twice; the key of the round before is refused in each. */
TEST(fastreg_inv, tags_wrap_over_600_rounds)
{
	uint32_t former = fx.fast.mr->rkey;
	uint32_t index = former >> 8;
	uint32_t i;

	for (i = 0; i < 600; i++) {
		TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
		TEST_EQ(fx.fast.mr->rkey, rmem_rkey_of_tag(former, (uint8_t)(former + 1)));
		TEST_EQ(fx.fast.mr->rkey >> 8, index);
		fx.b.buf[0] = (uint8_t)i;
		TEST_STATUS(fx_peer_write(start(), 1, fx.fast.mr->rkey), RMEM_WC_SUCCESS);
		TEST_EQ(fx.fast.pages[0], (uint8_t)i);
		TEST_RUN(expect_stale(former));
		former = fx.fast.mr->rkey;
		TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	}
	return TEST_SUCCESS;
}

TEST(fastreg_inv, same_tag_may_be_bound_again)
{
	struct rmem_send_wr wr = fx_reg(fx.fast.mr, fx.fast.list, 1, 0, FX_PAGE);
	uint32_t rkey;

	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	rkey = fx.fast.mr->rkey;
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx.fast.mr->rkey, rkey);
	TEST_STATUS(fx_peer_write(0, 8, rkey), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

TEST(fastreg_inv, lkey_follows_the_tag_and_the_former_one_is_refused)
{
	struct rmem_sge sge = {.addr = start(), .length = 8};
	struct rmem_send_wr wr = fx_rdma(RMEM_WR_RDMA_READ, &sge, fx_addr(fx.b.buf), fx.b.mr->rkey);

	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	sge.lkey = fx.fast.mr->lkey;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	TEST_RUN(fx_expect_refusal(&wr, RMEM_WC_LOC_PROT_ERR, RMEM_QPS_RTS));
	sge.lkey = fx.fast.mr->lkey;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

/* The rkey is known before the REG_MR is posted: register, write and revoke in one post. */
TEST(fastreg_inv, reg_write_and_inv_are_posted_at_once)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, ALL);
	struct rmem_send_wr wrs[3];
	uint32_t i, rkey;

	for (i = 0; i < 300; i++) {
		fx_fill(fx.a.buf, ALL, i);
		wrs[0] = fx_reg(fx.fast.mr, fx.fast.list, FX_FAST_PAGES, start(), ALL);
		rkey = rmem_rkey_of_tag(fx.fast.mr->rkey, wrs[0].reg_mr.key_tag);
		wrs[1] = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, start(), rkey);
		wrs[2] = fx_inv(rkey);
		wrs[2].flags = RMEM_SEND_SIGNALED;
		TEST_EQ(rmem_post_send(fx.a.qp, wrs, 3), 3);
		TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
		TEST_EQ(fx.wc.opcode, RMEM_WC_LOCAL_INV);
		TEST_EQ(fx.fast.mr->rkey, rkey);
		TEST_MEM(fx.fast.pages, fx.a.buf, ALL);
	}
	TEST_ASSERT(fx_is_idle(fx.a.cq));
	return TEST_SUCCESS;
}

/* 32 MRs a burst: all registered, then all written, then all revoked, the last signaled. */
TEST(fastreg_inv, bursts_of_32_are_posted_at_once)
{
	enum {
		NB = 32
	};
	static struct rmem_fast_reg_page_list *lists[NB];
	static struct rmem_send_wr wrs[2 * NB];
	static struct rmem_mr *mrs[NB];
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr;
	uint32_t i;

	for (i = 0; i < NB; i++) {
		mrs[i] = fx_fast_mr(fx.a.pd, 1);
		lists[i] = fx_page_list(fx.a.dev, 1);
		TEST_ASSERT(mrs[i] != NULL && lists[i] != NULL);
		fx_list_pages(lists[i], fx.a.buf + (i % 16) * FX_PAGE, 1);
		wrs[i] = fx_reg(mrs[i], lists[i], 1, 64 * i, 64);
		wr = fx_inv(rmem_rkey_of_tag(mrs[i]->rkey, wrs[i].reg_mr.key_tag));
		wrs[NB + i] = wr;
	}
	wrs[NB - 1].flags = RMEM_SEND_SIGNALED;
	TEST_EQ(rmem_post_send(fx.a.qp, wrs, NB), NB);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	for (i = 0; i < NB; i++) {
		wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, 64 * i, mrs[i]->rkey);
		TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	}
	wrs[2 * NB - 1].flags = RMEM_SEND_SIGNALED;
	TEST_EQ(rmem_post_send(fx.a.qp, &wrs[NB], NB), NB);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	for (i = 0; i < NB; i++)
		TEST_EQ(fx_mr_state(mrs[i]), RMEM_MR_STATE_FREE);
	return TEST_SUCCESS;
}

/* One MR bound, revoked and bound to other pages by one post. */
TEST(fastreg_inv, mr_is_bound_twice_by_one_post)
{
	struct rmem_fast_reg_page_list *list = fx_page_list(fx.a.dev, 1);
	struct rmem_send_wr wrs[3];

	TEST_ASSERT(list != NULL);
	fx_list_pages(list, fx.fast.pages + FX_PAGE, 1);
	wrs[0] = fx_reg(fx.fast.mr, fx.fast.list, 1, 0, FX_PAGE);
	wrs[1] = fx_inv(rmem_rkey_of_tag(fx.fast.mr->rkey, wrs[0].reg_mr.key_tag));
	wrs[2] = fx_reg(fx.fast.mr, list, 1, 0, FX_PAGE);
	wrs[2].reg_mr.key_tag = (uint8_t)(wrs[0].reg_mr.key_tag + 1);
	wrs[2].flags = RMEM_SEND_SIGNALED;
	TEST_EQ(rmem_post_send(fx.a.qp, wrs, 3), 3);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	fx.b.buf[0] = 0x42;
	TEST_STATUS(fx_peer_write(0, 1, fx.fast.mr->rkey), RMEM_WC_SUCCESS);
	TEST_EQ(fx.fast.pages[FX_PAGE], 0x42);
	TEST_EQ(fx.fast.pages[0], 0);
	return TEST_SUCCESS;
}

TEST(fastreg_inv, another_qp_of_the_domain_may_invalidate)
{
	const struct rmem_send_wr *wr;
	struct rmem_send_wr inv;

	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	inv = fx_inv(fx.fast.mr->rkey);
	wr = &inv;
	TEST_STATUS(fx_send(fx.b.qp, wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_FREE);
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

TEST(fastreg_inv, read_with_inv_reads_and_then_invalidates)
{
	struct rmem_sge sge = {.addr = start(), .length = ALL};
	struct rmem_send_wr wr;
	uint32_t rkey;

	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	rkey = fx.fast.mr->rkey;
	sge.lkey = fx.fast.mr->lkey;
	fx_fill(fx.b.buf, ALL, 21);
	wr = fx_rdma(RMEM_WR_RDMA_READ_WITH_INV, &sge, fx_addr(fx.b.buf), fx.b.mr->rkey);
	wr.invalidate_rkey = rkey;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_RDMA_READ);
	TEST_EQ(fx.wc.byte_len, ALL);
	TEST_MEM(fx.fast.pages, fx.b.buf, ALL);
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_FREE);
	TEST_RUN(expect_stale(rkey));
	return TEST_SUCCESS;
}

TEST(fastreg_inv, read_with_inv_of_a_bad_key_is_refused)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 64);
	struct rmem_send_wr wr =
			fx_rdma(RMEM_WR_RDMA_READ_WITH_INV, &sge, fx_addr(fx.b.buf), fx.b.mr->rkey);
	uint32_t bad[5];
	unsigned int i;

	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	bad[0] = 0;
	bad[1] = fx.fast.mr->rkey ^ 1;
	bad[2] = fx.fast.mr->lkey;
	bad[3] = fx.a.mr->rkey;
	bad[4] = UINT32_MAX;
	for (i = 0; i < RTE_DIM(bad); i++) {
		wr.invalidate_rkey = bad[i];
		TEST_RUN(fx_expect_refusal(&wr, RMEM_WC_MW_BIND_ERR, RMEM_QPS_RTS));
	}
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_VALID);
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	wr.invalidate_rkey = fx.fast.mr->rkey;
	TEST_RUN(fx_expect_refusal(&wr, RMEM_WC_MW_BIND_ERR, RMEM_QPS_RTS));
	return TEST_SUCCESS;
}

TEST(fastreg_inv, read_with_inv_that_fails_to_read_invalidates_nothing)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 64);
	struct rmem_send_wr wr = fx_rdma(
			RMEM_WR_RDMA_READ_WITH_INV, &sge, fx_addr(fx.b.buf), fx.b.mr->rkey ^ 1);

	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	wr.invalidate_rkey = fx.fast.mr->rkey;
	TEST_RUN(fx_expect_refusal(&wr, RMEM_WC_REM_ACCESS_ERR, RMEM_QPS_ERR));
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_VALID);
	return TEST_SUCCESS;
}

TEST(fastreg_inv, send_with_inv_invalidates_and_tells_the_receiver)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 32);
	const struct rmem_sge to = fx_sge(fx.a.mr, 0, 64);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND_WITH_INV, &sge, 1);
	uint32_t rkey;

	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	rkey = fx.fast.mr->rkey;
	fx_fill(fx.b.buf, 32, 22);
	TEST_EQ(fx_post_recv(fx.a.qp, 9, &to, 1), 1);
	wr.invalidate_rkey = rkey;
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_SEND);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 9);
	TEST_EQ(fx.wc.opcode, RMEM_WC_RECV);
	TEST_EQ(fx.wc.flags, RMEM_WC_WITH_INV);
	TEST_EQ(fx.wc.invalidated_rkey, rkey);
	TEST_EQ(fx.wc.byte_len, 32);
	TEST_MEM(fx.a.buf, fx.b.buf, 32);
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_FREE);
	TEST_RUN(expect_stale(rkey));
	return TEST_SUCCESS;
}

/* The data arrived, so the sender succeeds; the receive and its QP fail. */
static int
expect_remote_inv_refused(uint32_t rkey)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 32);
	const struct rmem_sge to = fx_sge(fx.a.mr, 0, 64);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND_WITH_INV, &sge, 1);

	wr.invalidate_rkey = rkey;
	TEST_EQ(fx_post_recv(fx.a.qp, 9, &to, 1), 1);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_REM_INV_REQ_ERR);
	TEST_EQ(fx.wc.wr_id, 9);
	TEST_EQ(fx_state(fx.b.qp), RMEM_QPS_RTS);
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_ERR);
	TEST_RUN(fx_reconnect());
	return TEST_SUCCESS;
}

/* The kernel's rxe panics on a window invalidated twice or never bound. */
TEST(fastreg_inv, send_with_inv_of_a_bad_key_fails_the_receive)
{
	TEST_RUN(expect_remote_inv_refused(fx.fast.mr->rkey));
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	TEST_RUN(expect_remote_inv_refused(0));
	TEST_RUN(expect_remote_inv_refused(UINT32_MAX));
	TEST_RUN(expect_remote_inv_refused(fx.fast.mr->rkey ^ 2));
	TEST_RUN(expect_remote_inv_refused(fx.fast.mr->lkey));
	TEST_RUN(expect_remote_inv_refused(fx.a.mr->rkey));
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_VALID);
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	TEST_RUN(expect_remote_inv_refused(fx.fast.mr->rkey));
	TEST_STATUS(fx_peer_write(fx_addr(fx.a.buf), 8, fx.a.mr->rkey), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

/* It is the domain of the receiving QP that counts. */
TEST(fastreg_inv, send_with_inv_into_another_domain_fails_the_receive)
{
	struct fx_side other = {0};
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND_WITH_INV, NULL, 0);

	TEST_RUN(fx_side_open(&other, fx.a.dev, fx_pd(fx.a.dev)));
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(fx_connect_pair(fx.a.qp, other.qp));
	TEST_EQ(fx_post_recv(other.qp, 9, NULL, 0), 1);
	wr.invalidate_rkey = fx.fast.mr->rkey;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(other.cq), RMEM_WC_REM_INV_REQ_ERR);
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_VALID);
	return TEST_SUCCESS;
}

TEST(fastreg_inv, flushed_reg_mr_binds_nothing_and_flushed_inv_takes_nothing)
{
	struct rmem_mr *mr = fx_fast_mr(fx.a.pd, 1);
	struct rmem_send_wr wr;

	TEST_ASSERT(mr != NULL);
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	TEST_OK(rmem_qp_set_error(fx.a.qp));
	wr = fx_reg(mr, fx.fast.list, 1, 0, FX_PAGE);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_WR_FLUSH_ERR);
	TEST_STATUS(fx_unbind(), RMEM_WC_WR_FLUSH_ERR);
	TEST_EQ(fx_mr_state(mr), RMEM_MR_STATE_FREE);
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_VALID);
	return TEST_SUCCESS;
}

/* A key belongs to its domain, not to the QP that bound it. */
TEST(fastreg_inv, key_outlives_error_and_reset_of_the_qp_that_bound_it)
{
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	TEST_OK(rmem_qp_set_error(fx.a.qp));
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_VALID);
	TEST_RUN(fx_reconnect());
	TEST_STATUS(fx_peer_write(start(), 8, fx.fast.mr->rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

TEST(fastreg_inv, dereg_of_a_bound_mr_takes_its_key_away)
{
	uint32_t rkey;

	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	rkey = fx.fast.mr->rkey;
	TEST_OK(fx_release(fx.fast.mr));
	TEST_RUN(expect_stale(rkey));
	TEST_ASSERT(fx_is_zero(fx.fast.pages, ALL));
	return TEST_SUCCESS;
}

TEST_SUITE(fastreg_inv, fx_setup_fast, fx_teardown);
