/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Inline receive (seed-0): a short message travels in its completion and reaches the memory of
 * its receive at the poll; nothing else of it shows, and it can be switched off.
 */

#include <stdlib.h>
#include <string.h>

#include "../../drivers/soft/queue/rsoft_cq.h"

#include "fixture.h"

#define MAX_INLINE 64u

/* A message of a's to a receive of b's, which is not polled yet. */
static void
send_unpolled(const struct rmem_sge *to, uint32_t num_sge, uint32_t length)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 1, length);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &sge, 1);

	fx_fill(fx.a.buf, FX_BUF_SIZE, length);
	memset(fx.b.buf, 0, FX_BUF_SIZE);
	TEST_EQ(fx_post_recv(fx.b.qp, 1, to, num_sge), 1);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
}

/* It reaches the memory now, with no sign of how. */
static void
expect_message(uint32_t length)
{
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.flags, 0);
	TEST_EQ(fx.wc.opcode, RMEM_WC_RECV);
	TEST_EQ(fx.wc.byte_len, length);
	TEST_MEM(fx.b.buf, fx.a.buf + 1, length);
	TEST_ASSERT(fx_is_zero(fx.b.buf + length, 256));
}

TEST(inline_recv, message_reaches_the_memory_at_the_poll)
{
	static const uint32_t lengths[] = {1, 8, 63, MAX_INLINE};
	const struct rmem_sge to = fx_sge(fx.b.mr, 0, 1024);
	struct rmem_dev_info info = fx_dev_info(fx.b.dev);
	unsigned int i;

	TEST_ASSERT((info.capa & RMEM_DEV_CAPA_INLINE_RECV) != 0);
	TEST_EQ(info.max_inline_recv, MAX_INLINE);
	for (i = 0; i < RTE_DIM(lengths); i++) {
		send_unpolled(&to, 1, lengths[i]);
		TEST_EQ(fx_dev_stats(fx.b.dev).inline_recvs, i + 1);
		TEST_ASSERT(fx_is_zero(fx.b.buf, MAX_INLINE));
		expect_message(lengths[i]);
	}
}

TEST(inline_recv, longer_message_is_not_received_inline)
{
	const struct rmem_sge to = fx_sge(fx.b.mr, 0, 1024);

	send_unpolled(&to, 1, MAX_INLINE + 1);
	TEST_EQ(fx_dev_stats(fx.b.dev).inline_recvs, 0);
	TEST_MEM(fx.b.buf, fx.a.buf + 1, MAX_INLINE + 1);
	expect_message(MAX_INLINE + 1);
}

TEST(inline_recv, inline_receive_keeps_immediate_data_and_flags)
{
	const struct rmem_sge to = fx_sge(fx.b.mr, 0, 64);
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND_WITH_IMM, &sge, 1);

	wr.imm_data = 0x89abcdef;
	wr.flags = RMEM_SEND_SOLICITED | RMEM_SEND_SIGNALED;
	TEST_EQ(fx_post_recv(fx.b.qp, 1, &to, 1), 1);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx_dev_stats(fx.b.dev).inline_recvs, 1);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.flags, RMEM_WC_WITH_IMM | RMEM_WC_SOLICITED);
	TEST_EQ(fx.wc.imm_data, 0x89abcdef);
}

/* Replace the QP of b by one created with conf. */
static void
replace_qp(const struct rmem_qp_conf *conf)
{
	fx.b.qp = fx_qp_by(fx.b.pd, conf);
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(fx_connect_pair(fx.a.qp, fx.b.qp));
}

TEST(inline_recv, qp_flag_switches_it_off)
{
	const struct rmem_sge to = fx_sge(fx.b.mr, 0, 1024);
	struct rmem_qp_conf conf = fx_qp_conf(fx.b.cq, FX_DEPTH);

	conf.flags = RMEM_QP_NO_INLINE_RECV;
	replace_qp(&conf);
	send_unpolled(&to, 1, 32);
	TEST_EQ(fx_dev_stats(fx.b.dev).inline_recvs, 0);
	TEST_MEM(fx.b.buf, fx.a.buf + 1, 32);
	expect_message(32);
}

static void
poll_message(void *arg)
{
	RTE_SET_USED(arg);
	expect_message(32);
}

/* A second copy there would take longer than the first. */
TEST(inline_recv, messages_to_another_lcore_are_not_inline_after_the_first)
{
	const struct rmem_sge to = fx_sge(fx.b.mr, 0, 1024);
	const struct rmem_qp_conf conf = fx_qp_conf(fx.b.cq, FX_DEPTH);
	uint64_t i;

	fx_need_workers(1);
	TEST_EQ(unsetenv("RMEM_SCATTER_TO_CQE"), 0);
	replace_qp(&conf);
	for (i = 0; i < 3; i++) {
		send_unpolled(&to, 1, 32);
		TEST_EQ(fx_dev_stats(fx.b.dev).inline_recvs, 1);
		fx_launch(poll_message, NULL, 0, 1);
		fx_join(1);
	}
	TEST_EQ(setenv("RMEM_SCATTER_TO_CQE", "1", 1), 0);
	replace_qp(&conf);
	send_unpolled(&to, 1, 32);
	TEST_EQ(fx_dev_stats(fx.b.dev).inline_recvs, 2);
	expect_message(32);
}

/* As MLX5_SCATTER_TO_CQE, read when a QP is created. */
TEST(inline_recv, environment_switches_it_off)
{
	const struct rmem_sge to = fx_sge(fx.b.mr, 0, 1024);
	const struct rmem_qp_conf conf = fx_qp_conf(fx.b.cq, FX_DEPTH);

	TEST_EQ(setenv("RMEM_SCATTER_TO_CQE", "0", 1), 0);
	replace_qp(&conf);
	send_unpolled(&to, 1, 32);
	TEST_EQ(fx_dev_stats(fx.b.dev).inline_recvs, 0);
	TEST_MEM(fx.b.buf, fx.a.buf + 1, 32);
	expect_message(32);
	TEST_EQ(setenv("RMEM_SCATTER_TO_CQE", "1", 1), 0);
	replace_qp(&conf);
	send_unpolled(&to, 1, 32);
	TEST_EQ(fx_dev_stats(fx.b.dev).inline_recvs, 1);
	expect_message(32);
}

/* It is not written, has a reason, and its QP is in ERR with the next receive flushed. */
static void
expect_refused_at_poll(uint32_t why)
{
	TEST_EQ(fx_state(fx.b.qp), RMEM_QPS_RTS);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_LOC_PROT_ERR);
	TEST_EQ(fx.wc.vendor_err, why);
	TEST_EQ(fx.wc.flags, 0);
	TEST_ASSERT(fx_is_zero(fx.b.buf, 64));
	TEST_EQ(fx_state(fx.b.qp), RMEM_QPS_ERR);
	fx_expect_flush(fx.b.cq, 2, 1);
}

/*
 * Rights, PD and range are checked when the message is copied to memory, not only the key. In the
 * last round the MR is deregistered: no access outlives its key.
 */
TEST(inline_recv, message_polled_after_its_mr_changed_is_refused)
{
	static const struct {
		uint32_t flags;
		uint32_t access;
		uint32_t why;
	} rows[] = {
			{RMEM_REREG_CHANGE_ACCESS, RMEM_ACCESS_REMOTE_READ, 5},
			{RMEM_REREG_CHANGE_PD, RMEM_ACCESS_LOCAL_WRITE, 4},
			{RMEM_REREG_CHANGE_TRANSLATION, RMEM_ACCESS_LOCAL_WRITE, 6},
	};
	struct rmem_pd *pd = fx_pd(fx.b.dev);
	unsigned int i;

	for (i = 0; i <= RTE_DIM(rows); i++) {
		struct rmem_mr *mr = fx_mr(fx.b.pd, fx.b.buf, 4096, RMEM_ACCESS_LOCAL_WRITE);
		const struct rmem_sge to = fx_sge(mr, 0, 64);

		send_unpolled(&to, 1, 32);
		TEST_EQ(fx_dev_stats(fx.b.dev).inline_recvs, i + 1);
		TEST_EQ(fx_post_recv(fx.b.qp, 2, &to, 1), 1);
		if (i == RTE_DIM(rows)) {
			TEST_OK(fx_release(mr));
			expect_refused_at_poll(3);
			break;
		}
		TEST_OK(rmem_mr_rereg(mr, rows[i].flags, pd, fx.b.buf + 8192, 4096, rows[i].access,
				NULL));
		expect_refused_at_poll(rows[i].why);
		fx_reconnect();
		TEST_OK(fx_release(mr));
	}
}

TEST_WITH(inline_recv, message_polled_after_its_key_was_invalidated_is_refused, fx_setup_fast)
{
	struct rmem_sge to = {.addr = fx_addr(fx.fast.pages), .length = 64};
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 32);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &sge, 1);
	uint64_t deadline = fx_deadline();
	int status;

	memset(fx.b.buf, 1, 32);
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	to.lkey = fx.fast.mr->lkey;
	TEST_EQ(fx_post_recv(fx.a.qp, 1, &to, 1), 1);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx_dev_stats(fx.b.dev).inline_recvs, 1);
	wr = fx_inv(fx.fast.mr->rkey);
	wr.flags = RMEM_SEND_SIGNALED;
	TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	while (fx_mr_state(fx.fast.mr) != RMEM_MR_STATE_FREE && !fx_is_late(deadline))
		(void)rmem_poll_cq(fx.b.cq, NULL, 0); /* any poll continues it */
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_LOC_PROT_ERR);
	TEST_EQ(fx.wc.vendor_err, 3);
	TEST_ASSERT(fx_is_zero(fx.fast.pages, 64));
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_ERR);
	/* The LOCAL_INV may have met that while it waited for other lcores. */
	status = fx_wait(fx.a.cq);
	TEST_ASSERT(status == RMEM_WC_SUCCESS || status == RMEM_WC_WR_FLUSH_ERR);
}

/* The pages of a fast-register MR need not follow each other: within one page it is inline. */
TEST_WITH(inline_recv, message_to_scattered_pages_is_right, fx_setup_fast)
{
	const uint64_t iova = fx_addr(fx.fast.pages);
	struct rmem_send_wr wr = fx_rdma(RMEM_WR_SEND, NULL, 0, 0);
	struct rmem_sge to = {.length = 64}, sge = fx_sge(fx.b.mr, 0, 48);
	unsigned int i;

	fx.fast.list->page_list[1] = iova + 3 * FX_PAGE;
	fx.fast.list->page_list[3] = iova + FX_PAGE;
	fx_fill(fx.b.buf, FX_BUF_SIZE, 7);
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	wr.sg_list = &sge;
	wr.num_sge = 1;
	to.lkey = fx.fast.mr->lkey;
	for (i = 0; i < 2; i++) { /* inside page 1, then over its end */
		to.addr = iova + FX_PAGE + (i == 0 ? 8 : FX_PAGE - 24);
		TEST_EQ(fx_post_recv(fx.a.qp, 1, &to, 1), 1);
		fx_deliver(&fx.b, &fx.a, &wr);
	}
	TEST_MEM(fx.fast.pages + 3 * FX_PAGE + 8, fx.b.buf, 48);
	TEST_MEM(fx.fast.pages + 4 * FX_PAGE - 24, fx.b.buf, 24);
	TEST_MEM(fx.fast.pages + 2 * FX_PAGE, fx.b.buf + 24, 24);
}

/*
 * Two messages to one receive buffer, and a READ of it: the later message is there. The first of
 * the messages that were pending since then arrived 2^31 and more completions ago.
 */
TEST(inline_recv, pending_messages_reach_memory_in_order_after_any_time)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8), to = fx_sge(fx.b.mr, 0, 8);
	struct rsoft_qp *qp = (struct rsoft_qp *)fx.b.qp;
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &sge, 1);
	uint32_t i;

	for (i = 0; i < 2; i++) {
		memset(fx.a.buf, (int)i + 1, 8);
		TEST_EQ(fx_post_recv(fx.b.qp, i, &to, 1), 1);
		TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	}
	TEST_EQ(fx_dev_stats(fx.b.dev).inline_recvs, 2);
	qp->rq.inline_first += 1 - (UINT32_C(1) << 31) - rsoft_cq_of(fx.b.cq)->nb_messages;
	wr = fx_rdma(RMEM_WR_RDMA_READ, &sge, fx_addr(fx.b.buf), fx.b.mr->rkey);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx.a.buf[0], 2);
	fx_expect_done(fx.b.cq, 0, 2);
}

/* A CQ that overflows loses completions, not the messages of those it has. */
TEST(inline_recv, overrun_keeps_inline_messages)
{
	struct rmem_cq *cq = fx_cq(fx.b.dev, 4);
	struct rmem_qp_conf conf = fx_qp_conf(fx.b.cq, FX_DEPTH);
	struct rmem_wc wc[8];
	unsigned int i;

	conf.recv_cq = cq;
	replace_qp(&conf);
	for (i = 0; i < 6; i++) {
		const struct rmem_sge to = fx_sge(fx.b.mr, i * 64, 64);

		TEST_EQ(fx_post_recv(fx.b.qp, i, &to, 1), 1);
	}
	for (i = 0; i < 5; i++) {
		const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 64);
		const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &sge, 1);

		memset(fx.a.buf, (int)i + 1, 64);
		TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	}
	TEST_EQ(rmem_poll_cq(cq, wc, 8), 4);
	for (i = 0; i < 4; i++) {
		TEST_STATUS(wc[i].status, RMEM_WC_SUCCESS);
		TEST_EQ(fx.b.buf[i * 64], i + 1);
		TEST_EQ(fx.b.buf[i * 64 + 63], i + 1);
	}
	TEST_EQ(rmem_poll_cq(cq, wc, 8), -EIO);
}

TEST_SUITE(inline_recv, fx_setup_inline, fx_teardown_inline);
