/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Inline receive keeps the order of the peer's requests: what follows a message that was not polled
 * finds it in memory and is not overwritten by it. After a reset or destroy of the QP no poll
 * writes what was not polled before: its receive was flushed, in its place among the others.
 */

#include <string.h>

#include "fixture.h"

#define LENGTH 32u
#define OLD    0x11 /* the message */
#define NEW    0x22 /* what follows it */
#define MINE   0x33 /* what the owner writes */
#define ROUNDS 300u

/* A poller of b's CQ on another lcore. */
static struct {
	uint32_t nb_polled;    /* receives; atomic */
	uint32_t nb_looks;     /* atomic */
	uint32_t is_stopped;   /* atomic */
	bool is_flush_allowed; /* the QP may end before a message is polled */
} poller;

static int
send_from(uint8_t opcode, uint8_t value, uint32_t length)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, length);
	struct rmem_send_wr wr = fx_rdma_to(opcode, &sge, &fx.b);

	memset(fx.a.buf, value, length);
	return fx_send(fx.a.qp, &wr);
}

/* A message that travels in its completion to the start of b's buffer, which is zero. */
static void
send_unpolled(void)
{
	const struct rmem_sge to = fx_sge(fx.b.mr, 0, LENGTH);
	uint64_t before = fx_dev_stats(fx.b.dev).inline_recvs;

	memset(fx.b.buf, 0, FX_BUF_SIZE);
	TEST_EQ(fx_post_recv(fx.b.qp, 1, &to, 1), 1);
	TEST_STATUS(send_from(RMEM_WR_SEND, OLD, LENGTH), RMEM_WC_SUCCESS);
	TEST_EQ(fx_dev_stats(fx.b.dev).inline_recvs, before + 1);
	TEST_ASSERT(fx_is_zero(fx.b.buf, LENGTH));
}

static bool
is_all(const uint8_t *buf, uint8_t value, uint32_t length)
{
	return buf[0] == value && memcmp(buf, buf + 1, length - 1) == 0;
}

/* The poll of the message changes nothing any more. */
static void
expect_polled(uint64_t wr_id, uint8_t value)
{
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, wr_id);
	TEST_EQ(fx.wc.flags & ~(RMEM_WC_WITH_IMM | RMEM_WC_WITH_INV), 0);
	TEST_ASSERT(is_all(fx.b.buf, value, LENGTH));
}

TEST(inline_order, write_after_a_message_is_not_overwritten)
{
	unsigned int i;

	for (i = 0; i < 3; i++) {
		send_unpolled();
		TEST_STATUS(send_from(RMEM_WR_RDMA_WRITE, NEW, LENGTH), RMEM_WC_SUCCESS);
		TEST_ASSERT(is_all(fx.b.buf, NEW, LENGTH));
		expect_polled(1, NEW);
		TEST_STATUS(send_from(RMEM_WR_RDMA_WRITE, MINE, LENGTH), RMEM_WC_SUCCESS);
	}
}

/* In one post, of which the WRITEs alone would go together. */
TEST(inline_order, burst_after_a_message_keeps_the_order)
{
	const struct rmem_sge to = fx_sge(fx.b.mr, 0, LENGTH);
	const struct rmem_sge sges[] = {fx_sge(fx.a.mr, 0, LENGTH), fx_sge(fx.a.mr, 64, LENGTH)};
	struct rmem_send_wr wrs[4];
	unsigned int i;

	memset(fx.a.buf, OLD, LENGTH);
	memset(fx.a.buf + 64, NEW, LENGTH);
	for (i = 0; i < RTE_DIM(wrs); i++)
		wrs[i] = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sges[i % 2], &fx.b);
	wrs[0].opcode = RMEM_WR_SEND;
	wrs[2].opcode = RMEM_WR_SEND;
	wrs[3].flags = RMEM_SEND_SIGNALED;
	for (i = 1; i <= 2; i++)
		TEST_EQ(fx_post_recv(fx.b.qp, i, &to, 1), 1);
	TEST_EQ(rmem_post_send(fx.a.qp, wrs, RTE_DIM(wrs)), RTE_DIM(wrs));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_ASSERT(is_all(fx.b.buf, NEW, LENGTH));
	expect_polled(1, NEW);
	expect_polled(2, NEW);
}

TEST(inline_order, read_after_a_message_sees_it)
{
	send_unpolled();
	TEST_STATUS(send_from(RMEM_WR_RDMA_READ, 0, LENGTH), RMEM_WC_SUCCESS);
	TEST_ASSERT(is_all(fx.a.buf, OLD, LENGTH));
	expect_polled(1, OLD);
}

TEST(inline_order, atomic_after_a_message_sees_it)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 128, 8);
	const struct rmem_send_wr wr = fx_atomic(RMEM_WR_ATOMIC_FETCH_AND_ADD, &sge,
			fx_addr(fx.b.buf), fx.b.mr->rkey, UINT64_C(0x1111111111111111));

	send_unpolled();
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_ASSERT(is_all(fx.a.buf + 128, OLD, 8));
	TEST_ASSERT(is_all(fx.b.buf, NEW, 8));
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	TEST_ASSERT(is_all(fx.b.buf, NEW, 8));
	TEST_ASSERT(is_all(fx.b.buf + 8, OLD, LENGTH - 8));
}

TEST(inline_order, write_with_imm_after_a_message_is_not_overwritten)
{
	send_unpolled();
	TEST_EQ(fx_post_recv(fx.b.qp, 2, NULL, 0), 1);
	TEST_STATUS(send_from(RMEM_WR_RDMA_WRITE_WITH_IMM, NEW, LENGTH), RMEM_WC_SUCCESS);
	expect_polled(1, NEW);
	expect_polled(2, NEW);
}

/* One that is too long for its completion, to the same memory. */
TEST(inline_order, long_message_after_a_message_is_not_overwritten)
{
	const struct rmem_sge to = fx_sge(fx.b.mr, 0, 4096);

	send_unpolled();
	TEST_EQ(fx_post_recv(fx.b.qp, 2, &to, 1), 1);
	TEST_STATUS(send_from(RMEM_WR_SEND, NEW, 2048), RMEM_WC_SUCCESS);
	expect_polled(1, NEW);
	expect_polled(2, NEW);
}

/* The message arrived before the invalidation of the key. */
TEST_WITH(inline_order, send_with_inv_of_its_key_delivers_a_message, fx_setup_fast)
{
	struct rmem_sge to = {.addr = fx_addr(fx.fast.pages), .length = LENGTH};
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, LENGTH);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &sge, 1);

	memset(fx.b.buf, OLD, LENGTH);
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	to.lkey = fx.fast.mr->lkey;
	TEST_EQ(fx_post_recv(fx.a.qp, 1, &to, 1), 1);
	TEST_EQ(fx_post_recv(fx.a.qp, 2, NULL, 0), 1);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx_dev_stats(fx.b.dev).inline_recvs, 1);
	wr = fx_wr(RMEM_WR_SEND_WITH_INV, NULL, 0);
	wr.invalidate_rkey = fx.fast.mr->rkey;
	fx_deliver(&fx.b, &fx.a, &wr);
	TEST_ASSERT(is_all(fx.fast.pages, OLD, LENGTH));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
}

/* Refused where a WRITE delivers it: as at the poll. */
TEST(inline_order, message_of_an_invalidated_key_fails_before_a_write)
{
	struct rmem_mr *mr = fx_mr(fx.b.pd, fx.b.buf, 4096, RMEM_ACCESS_LOCAL_WRITE);
	const struct rmem_sge to = fx_sge(mr, 0, LENGTH);

	memset(fx.b.buf, MINE, LENGTH);
	TEST_EQ(fx_post_recv(fx.b.qp, 1, &to, 1), 1);
	TEST_EQ(fx_post_recv(fx.b.qp, 2, &to, 1), 1);
	TEST_STATUS(send_from(RMEM_WR_SEND, OLD, LENGTH), RMEM_WC_SUCCESS);
	TEST_EQ(fx_dev_stats(fx.b.dev).inline_recvs, 1);
	TEST_OK(fx_release(mr));
	(void)send_from(RMEM_WR_RDMA_WRITE, NEW, 0);
	TEST_EQ(fx_state(fx.b.qp), RMEM_QPS_ERR);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_LOC_PROT_ERR);
	TEST_EQ(fx.wc.vendor_err, 3);
	TEST_ASSERT(is_all(fx.b.buf, MINE, LENGTH));
	fx_expect_flush(fx.b.cq, 2, 1);
}

TEST(inline_order, reset_flushes_what_was_not_polled)
{
	send_unpolled();
	TEST_OK(rmem_qp_reset(fx.b.qp));
	memset(fx.b.buf, MINE, LENGTH);
	fx_expect_flush(fx.b.cq, 1, 1);
	TEST_ASSERT(fx_is_idle(fx.b.cq));
	TEST_ASSERT(is_all(fx.b.buf, MINE, LENGTH));
	fx_reconnect();
	send_unpolled();
	expect_polled(1, OLD);
}

/* Completions remain in the CQ (IBTA C10-97): no receive completes without preceding ones. */
TEST(inline_order, reset_leaves_no_gap_before_flushed_receives)
{
	const struct rmem_sge to = fx_sge(fx.b.mr, 4096, LENGTH);
	unsigned int i;

	send_unpolled();
	for (i = 2; i <= 3; i++)
		TEST_EQ(fx_post_recv(fx.b.qp, i, &to, 1), 1);
	TEST_OK(rmem_qp_set_error(fx.b.qp));
	TEST_OK(rmem_qp_reset(fx.b.qp));
	memset(fx.b.buf, MINE, LENGTH);
	fx_expect_flush(fx.b.cq, 1, 3);
	TEST_ASSERT(is_all(fx.b.buf, MINE, LENGTH));
}

TEST(inline_order, destroy_flushes_what_was_not_polled)
{
	const struct rmem_sge to = fx_sge(fx.b.mr, 4096, LENGTH);

	send_unpolled();
	TEST_OK(fx_release(fx.b.qp));
	fx.b.qp = fx_qp(fx.b.pd, fx.b.cq, FX_DEPTH);
	memset(fx.b.buf, MINE, LENGTH);
	fx_expect_flush(fx.b.cq, 1, 1);
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(fx_connect_pair(fx.a.qp, fx.b.qp));
	TEST_EQ(fx_post_recv(fx.b.qp, 7, &to, 1), 1);
	TEST_STATUS(send_from(RMEM_WR_SEND, NEW, LENGTH), RMEM_WC_SUCCESS);
	expect_polled(7, MINE);
	TEST_ASSERT(is_all(fx.b.buf + 4096, NEW, LENGTH));
}

static void
run_poller(void *arg)
{
	unsigned int spins = 0;
	struct rmem_wc wc;
	int ret;

	RTE_SET_USED(arg);
	while (!__atomic_load_n(&poller.is_stopped, __ATOMIC_ACQUIRE)) {
		ret = rmem_poll_cq(fx.b.cq, &wc, 1);
		TEST_ASSERT(ret >= 0);
		if (ret == 1) {
			if (!poller.is_flush_allowed || wc.status != RMEM_WC_WR_FLUSH_ERR)
				TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
			__atomic_fetch_add(&poller.nb_polled, 1, __ATOMIC_RELEASE);
		}
		__atomic_fetch_add(&poller.nb_looks, 1, __ATOMIC_RELEASE);
		fx_relax(&spins);
	}
}

static void
with_poller(void (*rounds)(void), bool is_flush_allowed)
{
	int result;

	fx_need_workers(1);
	memset(&poller, 0, sizeof(poller));
	poller.is_flush_allowed = is_flush_allowed;
	fx_launch(run_poller, &poller, sizeof(poller), 1);
	result = TEST_TRY(rounds());
	__atomic_store_n(&poller.is_stopped, 1, __ATOMIC_RELEASE);
	TEST_RUN(TEST_TRY(fx_join(1)) != TEST_SUCCESS ? TEST_FAILED : result);
}

/* The poll and the WRITE race to deliver the message; the WRITE lands last. */
static void
write_rounds(void)
{
	const struct rmem_sge to = fx_sge(fx.b.mr, 0, LENGTH);
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		TEST_EQ(fx_post_recv(fx.b.qp, i, &to, 1), 1);
		TEST_STATUS(send_from(RMEM_WR_SEND, OLD, LENGTH), RMEM_WC_SUCCESS);
		TEST_STATUS(send_from(RMEM_WR_RDMA_WRITE, NEW, LENGTH), RMEM_WC_SUCCESS);
		fx_wait_until(&poller.nb_polled, i + 1);
		TEST_ASSERT(is_all(fx.b.buf, NEW, LENGTH));
	}
}

TEST_CALL(inline_order, write_that_races_the_poll_is_not_overwritten,
		with_poller(write_rounds, false));

/* The poll and the destruction of the QP race; later writes are not overwritten. */
static void
end_rounds(void)
{
	const struct rmem_sge to = fx_sge(fx.b.mr, 0, LENGTH);
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		TEST_EQ(fx_post_recv(fx.b.qp, i, &to, 1), 1);
		TEST_STATUS(send_from(RMEM_WR_SEND, OLD, LENGTH), RMEM_WC_SUCCESS);
		TEST_OK(rmem_qp_reset(fx.a.qp));
		if (i % 2 == 0) {
			TEST_OK(rmem_qp_reset(fx.b.qp));
		} else {
			TEST_OK(fx_release(fx.b.qp));
			fx.b.qp = fx_qp(fx.b.pd, fx.b.cq, FX_DEPTH);
		}
		memset(fx.b.buf, MINE, LENGTH);
		fx_wait_until(&poller.nb_looks,
				__atomic_load_n(&poller.nb_looks, __ATOMIC_ACQUIRE) + 2);
		TEST_ASSERT(is_all(fx.b.buf, MINE, LENGTH));
		TEST_OK(fx_connect_pair(fx.a.qp, fx.b.qp));
	}
}

TEST_CALL(inline_order, no_poll_writes_after_the_end_of_the_qp, with_poller(end_rounds, true));

TEST_SUITE(inline_order, fx_setup_inline, fx_teardown_inline);
