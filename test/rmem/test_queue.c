/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Requests accepted by a post, full queues, and the release of entries. */

#include <string.h>

#include "../../drivers/soft/queue/rsoft_cq.h"

#include "fixture.h"

#define DEPTH 8u

/* The sides' QPs have send and receive queues of this depth. */
static void
use_depth(uint32_t depth)
{
	struct fx_side *const sides[] = {&fx.a, &fx.b};
	unsigned int i;

	for (i = 0; i < 2; i++) {
		TEST_OK(fx_release(sides[i]->qp));
		sides[i]->qp = fx_qp(sides[i]->pd, sides[i]->cq, depth);
	}
	TEST_OK(fx_connect_pair(fx.a.qp, fx.b.qp));
}

static void
setup(void)
{
	fx_setup();
	use_depth(DEPTH);
}

/* n zero-length writes of which the last is signaled if asked. */
static void
post_writes(uint32_t n, bool is_last_signaled)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_RDMA_WRITE, NULL, 0);
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (i == n - 1 && is_last_signaled)
			wr.flags = RMEM_SEND_SIGNALED;
		TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	}
}

static void
expect_full(void)
{
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_RDMA_WRITE, NULL, 0);

	TEST_ERR(fx_post(fx.a.qp, &wr), ENOSPC);
}

TEST(queue, sig_all_completes_every_request)
{
	struct rmem_qp_conf conf = fx_qp_conf(fx.a.cq, DEPTH);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_RDMA_WRITE, NULL, 0);
	struct rmem_qp *qp;

	conf.flags = RMEM_QP_SIG_ALL;
	qp = fx_qp_by(fx.a.pd, &conf);
	TEST_OK(fx_connect(qp, qp));
	for (wr.wr_id = 0; wr.wr_id < DEPTH; wr.wr_id++)
		TEST_EQ(fx_post(qp, &wr), 1);
	for (wr.wr_id = 0; wr.wr_id < DEPTH; wr.wr_id++) {
		TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
		TEST_EQ(fx.wc.wr_id, wr.wr_id);
	}
	TEST_ASSERT(fx_is_idle(fx.a.cq));
}

/* ibv_post_send(3): executed is not enough, the completion must have been polled. */
TEST(queue, entry_is_freed_by_polling_its_completion)
{
	uint32_t i;

	for (i = 0; i < DEPTH; i++)
		post_writes(1, true);
	expect_full();
	for (i = 0; i < 3 * DEPTH; i++) {
		TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
		post_writes(1, true);
		expect_full();
	}
}

/* Advance a CQ as nb completions of other QPs do, when all of them were polled. */
static void
pass_completions(struct rmem_cq *base, uint32_t nb)
{
	struct rsoft_cq *cq = rsoft_cq_of(base);
	uint32_t i, at;

	TEST_EQ(cq->prod, cq->cons);
	cq->prod += nb;
	cq->cons += nb;
	cq->cons_cached = cq->cons;
	for (i = 0, at = cq->cons; i <= cq->mask; i++, at++)
		cq->ring[at & cq->mask].number = at - cq->mask;
}

/* The positions of a CQ wrap around while a QP posts nothing. */
TEST(queue, entry_is_free_long_after_its_completion_was_polled)
{
	static const uint32_t passed[] = {
			UINT32_C(1) << 31, UINT32_C(3) << 30, UINT32_MAX - 8 * DEPTH + 1};
	unsigned int i, n;

	for (i = 0; i < RTE_DIM(passed); i++) {
		use_depth(DEPTH);
		for (n = 0; n < DEPTH / 2; n++)
			post_writes(1, true);
		for (n = 0; n < DEPTH / 2; n++)
			TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
		pass_completions(fx.a.cq, passed[i]);
		for (n = 0; n < DEPTH; n++)
			post_writes(1, true);
		expect_full();
		for (n = 0; n < DEPTH; n++)
			TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	}
}

TEST(queue, queue_of_unsignaled_requests_stays_full)
{
	post_writes(DEPTH, false);
	expect_full();
	TEST_ASSERT(fx_is_idle(fx.a.cq));
	expect_full();
}

TEST(queue, later_signaled_completion_frees_those_before_it)
{
	uint32_t i;

	for (i = 0; i < 5; i++) {
		post_writes(DEPTH, true);
		expect_full();
		TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	}
}

TEST(queue, earlier_signaled_completion_frees_none_after_it)
{
	post_writes(1, true);
	post_writes(DEPTH - 1, false);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	post_writes(1, false);
	expect_full();
}

TEST(queue, queue_of_an_odd_depth_holds_that_many)
{
	static const uint32_t depths[] = {1, 3, 5};
	unsigned int i;
	uint32_t n;

	for (i = 0; i < RTE_DIM(depths); i++) {
		use_depth(depths[i]);
		post_writes(depths[i], true);
		expect_full();
		for (n = 0; n < depths[i]; n++)
			TEST_EQ(fx_post_recv(fx.a.qp, n, NULL, 0), 1);
		TEST_ERR(fx_post_recv(fx.a.qp, n, NULL, 0), ENOSPC);
	}
}

TEST(queue, burst_is_accepted_up_to_the_full_queue)
{
	struct rmem_send_wr sends[DEPTH + 4];
	struct rmem_recv_wr recvs[DEPTH + 4];
	uint32_t i;

	memset(recvs, 0, sizeof(recvs));
	for (i = 0; i < RTE_DIM(sends); i++) {
		sends[i] = fx_wr(RMEM_WR_RDMA_WRITE, NULL, 0);
		sends[i].wr_id = i;
		sends[i].flags = RMEM_SEND_SIGNALED;
	}
	TEST_EQ(rmem_post_send(fx.a.qp, sends, RTE_DIM(sends)), DEPTH);
	TEST_EQ(rmem_post_recv(fx.a.qp, recvs, RTE_DIM(recvs)), DEPTH);
	fx_expect_done(fx.a.cq, 0, DEPTH);
	TEST_ASSERT(fx_is_idle(fx.a.cq));
	TEST_EQ(rmem_post_send(fx.a.qp, &sends[DEPTH], 4), 4);
}

TEST(queue, qp_without_sges_takes_no_atomic)
{
	static const uint8_t opcodes[] = {RMEM_WR_ATOMIC_CMP_AND_SWP, RMEM_WR_ATOMIC_FETCH_AND_ADD,
			RMEM_WR_ATOMIC_WRITE};
	const struct rmem_sge sge = {(uintptr_t)fx.a.buf, 8, fx.a.mr->lkey};
	struct rmem_qp_conf conf = fx_qp_conf(fx.a.cq, DEPTH);
	struct rmem_send_wr wr;
	unsigned int i;

	conf.max_send_sge = 0;
	TEST_OK(fx_release(fx.a.qp));
	fx.a.qp = fx_qp_by(fx.a.pd, &conf);
	TEST_OK(fx_connect(fx.a.qp, fx.a.qp));
	for (i = 0; i < 2 * RTE_DIM(opcodes); i++) {
		wr = fx_wr(opcodes[i % RTE_DIM(opcodes)], &sge, 1);
		TEST_ERR(fx_post(fx.a.qp, &wr), EINVAL);
		if (i == RTE_DIM(opcodes) - 1)
			post_writes(DEPTH, true); /* the queue is full */
	}
	expect_full();
}

TEST(queue, receive_entry_is_freed_by_polling_its_completion)
{
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	uint32_t i;

	for (i = 0; i < DEPTH; i++)
		TEST_EQ(fx_post_recv(fx.b.qp, i, NULL, 0), 1);
	TEST_ERR(fx_post_recv(fx.b.qp, i, NULL, 0), ENOSPC);
	for (i = 0; i < 3 * DEPTH; i++) {
		fx_deliver(&fx.a, &fx.b, &wr);
		TEST_EQ(fx.wc.wr_id, i);
		TEST_EQ(fx_post_recv(fx.b.qp, DEPTH + i, NULL, 0), 1);
		TEST_ERR(fx_post_recv(fx.b.qp, 0, NULL, 0), ENOSPC);
	}
}

TEST(queue, qp_without_a_receive_queue_takes_no_receive)
{
	struct rmem_qp_conf conf = fx_qp_conf(fx.a.cq, DEPTH);
	struct rmem_qp *qp;

	conf.max_recv_wr = 0;
	qp = fx_qp_by(fx.a.pd, &conf);
	TEST_OK(fx_connect(qp, fx.b.qp));
	TEST_ERR(fx_post_recv(qp, 1, NULL, 0), ENOSPC);
}

TEST(queue, post_recv_stops_at_the_malformed_request)
{
	struct rmem_recv_wr wrs[3] = {{.wr_id = 1}, {.wr_id = 2}, {.wr_id = 3}};
	struct rmem_sge sges[5];

	memset(sges, 0, sizeof(sges));
	wrs[1].sg_list = sges;
	wrs[1].num_sge = 5;
	TEST_EQ(rmem_post_recv(fx.a.qp, wrs, 3), 1);
	TEST_ERR(rmem_post_recv(fx.a.qp, &wrs[1], 2), EINVAL);
	wrs[1].num_sge = UINT32_MAX;
	TEST_ERR(rmem_post_recv(fx.a.qp, &wrs[1], 2), EINVAL);
	wrs[1].num_sge = 4;
	wrs[1].reserved = 1;
	TEST_ERR(rmem_post_recv(fx.a.qp, &wrs[1], 2), EINVAL);
	wrs[1].reserved = 0;
	TEST_EQ(rmem_post_recv(fx.a.qp, &wrs[1], 2), 2);
}

/* The arrays belong to the caller when the post returns, also for requests that wait. */
TEST(queue, posted_requests_need_neither_array_nor_sges)
{
	struct rmem_sge sges[] = {fx_sge(fx.a.mr, 0, 10), fx_sge(fx.a.mr, 100, 10)};
	struct rmem_sge to = fx_sge(fx.b.mr, 0, 64);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, sges, 2);

	fx_fill(fx.a.buf, 200, 5);
	wr.flags = RMEM_SEND_SIGNALED;
	TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	memset(sges, 0xff, sizeof(sges));
	memset(&wr, 0xff, sizeof(wr));
	TEST_EQ(fx_post_recv(fx.b.qp, 1, &to, 1), 1);
	memset(&to, 0xff, sizeof(to));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.byte_len, 20);
	TEST_MEM(fx.b.buf, fx.a.buf, 10);
	TEST_MEM(fx.b.buf + 10, fx.a.buf + 100, 10);
}

TEST_SUITE(queue, setup, fx_teardown);
