/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A request whose peer is not ready waits, continues, or fails after its retries. */

#include <string.h>

#include "fixture.h"

/* a connected to b by conn, b back to a. */
static void
reconnect_by(const struct rmem_qp_conn *conn)
{
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(rmem_qp_reset(fx.b.qp));
	TEST_OK(fx_connect_by(fx.a.qp, fx.b.qp, conn));
	TEST_OK(fx_connect_by(fx.b.qp, fx.a.qp, conn));
}

/* Few tries, after fractions of a millisecond. */
static struct rmem_qp_conn
impatient(void)
{
	struct rmem_qp_conn conn = fx_conn();

	conn.timeout = 5;
	conn.retry_cnt = 2;
	conn.rnr_retry = 3;
	conn.min_rnr_timer = 5;
	return conn;
}

/* Waits without limit for a peer, and for a receive of it. */
static struct rmem_qp_conn
patient(void)
{
	struct rmem_qp_conn conn = fx_conn();

	conn.timeout = 0;
	conn.rnr_retry = 7;
	return conn;
}

/* After 0 to 3 retries. */
TEST(retry, send_without_receive_ends_with_rnr_retry_exc_err)
{
	static const uint8_t opcodes[] = {RMEM_WR_SEND, RMEM_WR_SEND_WITH_IMM,
			RMEM_WR_SEND_WITH_INV, RMEM_WR_RDMA_WRITE_WITH_IMM};
	struct rmem_qp_conn conn = impatient();
	struct rmem_dev_stats stats;
	unsigned int i;

	for (i = 0; i < RTE_DIM(opcodes); i++) {
		const struct rmem_send_wr wr = fx_wr(opcodes[i], NULL, 0);

		conn.rnr_retry = (uint8_t)i;
		reconnect_by(&conn);
		TEST_OK(rmem_dev_stats_reset(fx.a.dev));
		fx_expect(&wr, RMEM_WC_RNR_RETRY_EXC_ERR, RMEM_QPS_ERR, RMEM_QPS_RTS);
		TEST_OK(rmem_dev_stats_get(fx.a.dev, &stats));
		TEST_EQ(stats.rnr_retries, 1 + conn.rnr_retry);
		TEST_EQ(stats.errors, 1);
	}
}

/* Each opcode that asks the peer something, with a's QP connected as it is. */
static void
expect_retry_exceeded(int state_b)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	static const uint8_t opcodes[] = {RMEM_WR_RDMA_WRITE, RMEM_WR_RDMA_WRITE_WITH_IMM,
			RMEM_WR_SEND, RMEM_WR_SEND_WITH_INV, RMEM_WR_RDMA_READ};
	const struct rmem_qp_conn conn = impatient();
	struct rmem_send_wr wr;
	unsigned int i;

	for (i = 0; i <= RTE_DIM(opcodes); i++) {
		if (i < RTE_DIM(opcodes))
			wr = fx_rdma_to(opcodes[i], &sge, &fx.b);
		else
			wr = fx_atomic(RMEM_WR_ATOMIC_FETCH_AND_ADD, &sge, fx_addr(fx.b.buf),
					fx.b.mr->rkey, 1);
		TEST_OK(rmem_qp_reset(fx.a.qp));
		TEST_OK(fx_connect_by(fx.a.qp, fx.b.qp, &conn));
		fx_expect(&wr, RMEM_WC_RETRY_EXC_ERR, RMEM_QPS_ERR, state_b);
	}
	TEST_ASSERT(fx_is_zero(fx.b.buf, 64));
}

/* In RESET, in RTS to another QP, and in ERR. */
TEST(retry, peer_that_is_not_ready_is_retry_exc_err)
{
	struct fx_side c = {0};

	fx_side_open(&c, fx.a.dev, fx.a.pd);
	TEST_OK(rmem_qp_reset(fx.b.qp));
	expect_retry_exceeded(RMEM_QPS_RESET);
	TEST_OK(fx_connect(fx.b.qp, c.qp));
	expect_retry_exceeded(RMEM_QPS_RTS);
	TEST_OK(rmem_qp_set_error(fx.b.qp));
	expect_retry_exceeded(RMEM_QPS_ERR);
}

/* After messages: no state of the previous peer remains. */
TEST(retry, peer_reconnected_to_another_is_retry_exc_err)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
	const struct rmem_qp_conn conn = impatient();
	struct fx_side c = {0};

	reconnect_by(&conn);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	fx_side_open(&c, fx.a.dev, fx.a.pd);
	TEST_OK(rmem_qp_reset(fx.b.qp));
	TEST_OK(fx_connect_pair(fx.b.qp, c.qp));
	fx_fill(fx.a.buf, 8, 1);
	fx_expect(&wr, RMEM_WC_RETRY_EXC_ERR, RMEM_QPS_ERR, RMEM_QPS_RTS);
	TEST_ASSERT(fx_is_zero(fx.b.buf, 8));
}

TEST(retry, destroyed_peer_is_retry_exc_err)
{
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_RDMA_WRITE, NULL, 0);
	const struct rmem_qp_conn conn = impatient();
	int i;

	reconnect_by(&conn);
	TEST_OK(fx_release(fx.b.qp));
	/* Others in its place are not it. */
	for (i = 0; i < 8; i++)
		TEST_ASSERT(fx_qp(fx.b.pd, fx.b.cq, 4) != NULL);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_RETRY_EXC_ERR);
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_ERR);
}

TEST(retry, peer_of_a_closed_device_is_retry_exc_err)
{
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_RDMA_WRITE, NULL, 0);
	const struct rmem_qp_conn conn = impatient();
	struct rmem_dev *dev = fx_dev("soft1", NULL);
	struct rmem_pd *pd = fx_pd(dev);
	struct rmem_cq *cq = fx_cq(dev, 4);
	struct rmem_qp *qp = fx_qp(pd, cq, 4);

	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(fx_connect_by(fx.a.qp, qp, &conn));
	TEST_OK(fx_connect(qp, fx.a.qp));
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(qp));
	TEST_OK(fx_release(cq));
	TEST_OK(fx_release(pd));
	TEST_OK(fx_release(dev));
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_RETRY_EXC_ERR);
}

/* Posted before the peer has connected back, executed when it has. */
TEST(retry, requests_continue_when_the_peer_connects_later)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 64);
	struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
	const struct rmem_qp_conn conn = patient();

	wr.flags = RMEM_SEND_SIGNALED;
	fx_fill(fx.a.buf, 64, 7);
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(rmem_qp_reset(fx.b.qp));
	TEST_OK(fx_connect_by(fx.a.qp, fx.b.qp, &conn));
	TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	TEST_ASSERT(fx_is_idle(fx.a.cq));
	TEST_ASSERT(fx_is_zero(fx.b.buf, 64));
	TEST_OK(fx_connect(fx.b.qp, fx.a.qp));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf, fx.a.buf, 64);
}

TEST(retry, waiting_send_survives_reset_and_connect_of_the_peer)
{
	const struct rmem_qp_conn conn = patient();
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);

	reconnect_by(&conn);
	wr.flags = RMEM_SEND_SIGNALED;
	TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	TEST_ASSERT(fx_is_idle(fx.a.cq));
	TEST_OK(rmem_qp_reset(fx.b.qp));
	TEST_ASSERT(fx_is_idle(fx.a.cq));
	TEST_OK(fx_connect(fx.b.qp, fx.a.qp));
	TEST_EQ(fx_post_recv(fx.b.qp, 6, NULL, 0), 1);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 6);
}

/* REG_MR and LOCAL_INV do not depend on the peer. */
TEST(retry, local_requests_need_no_peer)
{
	TEST_OK(rmem_qp_reset(fx.b.qp));
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_RTS);
}

TEST(retry, local_requests_wait_after_one_that_waits)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);

	TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	wr = fx_reg(fx.fast.mr, fx.fast.list, 1, 0, FX_PAGE);
	wr.flags = RMEM_SEND_SIGNALED;
	TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	TEST_ASSERT(fx_is_idle(fx.a.cq));
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_FREE);
	TEST_EQ(fx_post_recv(fx.b.qp, 6, NULL, 0), 1);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_REG_MR);
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_VALID);
}

TEST(retry, waiting_request_delays_no_other_qp)
{
	const struct rmem_send_wr send = fx_wr(RMEM_WR_SEND, NULL, 0);
	const struct rmem_send_wr write = fx_wr(RMEM_WR_RDMA_WRITE, NULL, 0);
	struct rmem_qp *qp = fx_qp(fx.a.pd, fx.a.cq, 4);

	TEST_OK(fx_connect(qp, qp));
	TEST_EQ(fx_post(fx.a.qp, &send), 1);
	TEST_STATUS(fx_send(qp, &write), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_send(qp, &write), RMEM_WC_SUCCESS);
}

/* Both sides have sent, neither has a receive yet. */
TEST(retry, both_sides_wait_for_each_other)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);

	wr.flags = RMEM_SEND_SIGNALED;
	TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	TEST_EQ(fx_post(fx.b.qp, &wr), 1);
	TEST_ASSERT(fx_is_idle(fx.a.cq) && fx_is_idle(fx.b.cq));
	TEST_EQ(fx_post_recv(fx.a.qp, 1, NULL, 0), 1);
	TEST_EQ(fx_post_recv(fx.b.qp, 2, NULL, 0), 1);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
}

TEST_SUITE(retry, fx_setup_fast, fx_teardown);
