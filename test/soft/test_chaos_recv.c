/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Rules of chaos= about receives that fail or are late, completions that others overtake, and
 * requests of one thread.
 */

#include "chaos_rules.h"

/* The second of two SENDs finds a receive that fails; both QPs do. */
static void
expect_failure(const char *rules, int status, int of_sender)
{
	struct rmem_sge from, into;
	struct rmem_send_wr wr;
	uint32_t i;

	chaos_sides_open(rules);
	from = fx_sge(fx.a.mr, 0, 8);
	into = fx_sge(fx.b.mr, 64, 8);
	for (i = 0; i < 4; i++)
		TEST_EQ(fx_post_recv(fx.b.qp, i, &into, 1), 1);
	/* One without data is no event. */
	wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	fx_deliver(&fx.a, &fx.b, &wr);
	wr = fx_wr(RMEM_WR_SEND, &from, 1);
	fx_deliver(&fx.a, &fx.b, &wr);
	TEST_STATUS(fx_send(fx.a.qp, &wr), of_sender);
	TEST_STATUS(fx_wait(fx.b.cq), status);
	TEST_EQ(fx.wc.wr_id, 2);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_WR_FLUSH_ERR);
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_ERR);
	TEST_EQ(fx_state(fx.b.qp), RMEM_QPS_ERR);
}

/* IBTA 11.6.2, 9.9.3. */
TEST_CALL(chaos_recv, receive_fails_with_a_protection_error,
		expect_failure("recv:LOC_PROT_ERR@qp:2@nth:2", RMEM_WC_LOC_PROT_ERR,
				RMEM_WC_REM_OP_ERR));
TEST_CALL(chaos_recv, receive_fails_as_too_short,
		expect_failure("recv:LOC_LEN_ERR@qp:2@nth:2", RMEM_WC_LOC_LEN_ERR,
				RMEM_WC_REM_INV_REQ_ERR));

/* The requests before these have completed when the second message has arrived. */
static void
send_twice(struct rmem_qp *qp, struct rmem_qp *peer)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	unsigned int i;

	for (i = 0; i < 2; i++) {
		TEST_EQ(fx_post_recv(peer, i, NULL, 0), 1);
		TEST_EQ(fx_post(qp, &wr), 1);
		TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	}
}

/* IBTA 10.8.3: the first completion is returned after that of another QP, in order of its own. */
TEST(chaos_recv, completion_is_overtaken_by_those_of_other_qps)
{
	static const uint64_t wanted[] = {20, 21, 10, 11};
	struct rmem_qp *qp, *peer;
	unsigned int i;

	chaos_sides_open("cq:REORDER@cq:1@nth:1@polls:1000000");
	chaos_pair(&qp, &peer);
	chaos_write(fx.a.qp, 10);
	send_twice(fx.a.qp, fx.b.qp);
	chaos_write(qp, 20);
	chaos_write(qp, 21);
	send_twice(qp, peer);
	chaos_write(fx.a.qp, 11);
	send_twice(fx.a.qp, fx.b.qp);
	for (i = 0; i < RTE_DIM(wanted); i++) {
		TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
		TEST_EQ(fx.wc.wr_id, wanted[i]);
	}
	TEST_ASSERT(fx_is_idle(fx.a.cq));
}

/* It is returned without others too, after the polls of the rule. */
TEST(chaos_recv, completion_that_is_held_is_returned)
{
	chaos_sides_open("cq:REORDER@cq:1@nth:2@polls:9");
	chaos_write(fx.a.qp, 1);
	chaos_write(fx.a.qp, 2);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_ASSERT(chaos_polls_before(fx.a.cq, 2) >= 9);
}

/* IBTA 10.8: completions of other queues overtake the receive, but not those of its own. */
TEST(chaos_recv, late_receive_is_overtaken_by_other_queues)
{
	struct rmem_qp *qp, *peer;
	struct rmem_send_wr wr;
	struct rmem_sge sge;

	chaos_sides_open("recv:LATE@cq:2@nth:1@polls:100000000");
	chaos_pair(&qp, &peer);
	chaos_send(fx.a.qp, fx.b.qp, 1);
	sge = fx_sge(fx.b.mr, 0, 8);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, (uintptr_t)fx.a.buf + 64, fx.a.mr->rkey);
	wr.wr_id = 20;
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 20);
	chaos_send(qp, peer, 30);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 30);
	chaos_send(fx.a.qp, fx.b.qp, 2);
	TEST_ASSERT(fx_is_idle(fx.b.cq));
}

TEST(chaos_recv, late_receive_is_returned_in_order_of_its_queue)
{
	chaos_sides_open("recv:LATE@cq:2@nth:2@polls:9");
	chaos_send(fx.a.qp, fx.b.qp, 1);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 1);
	chaos_send(fx.a.qp, fx.b.qp, 2);
	chaos_send(fx.a.qp, fx.b.qp, 3);
	TEST_ASSERT(chaos_polls_before(fx.b.cq, 2) >= 9);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 3);
}

/* The next message is another event: IBTA 9.8.2.2.2, it is lost, and not sent again. */
TEST(chaos_recv, unreliable_message_is_lost_alone)
{
	struct rmem_qp_conf conf;
	struct rmem_qp *qp, *peer;
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND_WITH_IMM, NULL, 0);
	uint32_t i;

	chaos_sides_open("recv:RNR_NAK@qp:4@every:2@naks:3");
	conf = fx_qp_conf(fx.a.cq, 8);
	conf.type = RMEM_QPT_UC;
	qp = fx_qp_by(fx.a.pd, &conf);
	conf.send_cq = conf.recv_cq = fx.b.cq;
	peer = fx_qp_by(fx.a.pd, &conf);
	TEST_OK(fx_connect_pair(qp, peer));
	for (i = 1; i <= 5; i++) {
		TEST_EQ(fx_post_recv(peer, i, NULL, 0), 1);
		wr.imm_data = i;
		TEST_STATUS(fx_send(qp, &wr), RMEM_WC_SUCCESS);
	}
	for (i = 1; i <= 5; i += 2) {
		TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
		TEST_EQ(fx.wc.imm_data, i);
	}
	TEST_ASSERT(fx_is_idle(fx.b.cq));
}

static void
connect_again(uint8_t rnr_retry)
{
	struct rmem_qp_conn conn = fx_conn();

	conn.rnr_retry = rnr_retry;
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(rmem_qp_reset(fx.b.qp));
	TEST_OK(fx_connect_by(fx.a.qp, fx.b.qp, &conn));
	TEST_OK(fx_connect_by(fx.b.qp, fx.a.qp, &conn));
}

/* The first message of the next connection is the second event, and the third one has no fault. */
TEST(chaos_recv, reset_ends_the_attempts_of_a_message)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	struct rmem_dev_stats before, after;

	chaos_sides_open("recv:RNR_NAK@qp:2@nth:1@naks:3+recv:RNR_NAK@qp:2@nth:2");
	connect_again(0);
	TEST_EQ(fx_post_recv(fx.b.qp, 1, NULL, 0), 1);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_RNR_RETRY_EXC_ERR);
	connect_again(7);
	chaos_send(fx.a.qp, fx.b.qp, 2);
	TEST_OK(rmem_dev_stats_get(fx.a.dev, &before));
	TEST_ASSERT(before.rnr_retries != 0);
	chaos_send(fx.a.qp, fx.b.qp, 3);
	TEST_OK(rmem_dev_stats_get(fx.a.dev, &after));
	TEST_EQ(after.rnr_retries, before.rnr_retries);
}

static void
post_on_lcore(void *arg)
{
	RTE_SET_USED(arg);
	chaos_write(fx.a.qp, 7);
}

/* The thread that meets rules of threads first is number 1. */
TEST(chaos_recv, rule_of_a_thread_is_about_its_requests)
{
	fx_need_workers(1);
	chaos_sides_open("RDMA_WRITE:RETRY_EXC_ERR@thread:2@nth:1");
	chaos_write(fx.a.qp, 5);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	fx_launch(post_on_lcore, NULL, 0, 1);
	fx_join(1);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_RETRY_EXC_ERR);
	TEST_EQ(fx.wc.wr_id, 7);
}

TEST_SUITE(chaos_recv, fx_setup_none, fx_teardown);
