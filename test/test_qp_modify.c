/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* rmem_qp_modify(): SQD, and what it refuses of values. */

#include "fixture.h"
#include "test.h"

static int
move(struct rmem_qp *qp, uint32_t state)
{
	struct rmem_qp_attr attr = {.state = state};

	return rmem_qp_modify(qp, &attr, RMEM_QP_STATE);
}

/* IBTA 10.3.1.5 */
TEST(qp_modify, requests_posted_in_sqd_wait_for_rts)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 64);
	struct rmem_send_wr wr =
			fx_rdma(RMEM_WR_RDMA_WRITE, &sge, (uintptr_t)fx.b.buf, fx.b.mr->rkey);
	struct rmem_qp_attr attr;

	wr.flags = RMEM_SEND_SIGNALED;
	wr.wr_id = 3;
	TEST_OK(move(fx.a.qp, RMEM_QPS_SQD));
	TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	TEST_ASSERT(fx_is_idle(fx.a.cq));
	TEST_OK(rmem_qp_query(fx.a.qp, &attr));
	TEST_EQ(attr.state, RMEM_QPS_SQD);
	TEST_EQ(attr.sq_draining, 0);
	TEST_EQ(attr.send_queued, 1);
	TEST_OK(move(fx.a.qp, RMEM_QPS_RTS));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 3);
	return TEST_SUCCESS;
}

TEST(qp_modify, qp_in_sqd_executes_requests_of_its_peer)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 64);
	struct rmem_send_wr wr =
			fx_rdma(RMEM_WR_RDMA_WRITE, &sge, (uintptr_t)fx.a.buf, fx.a.mr->rkey);

	TEST_OK(move(fx.a.qp, RMEM_QPS_SQD));
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	TEST_EQ(fx_post_recv(fx.a.qp, 9, NULL, 0), 1);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_SQD);
	return TEST_SUCCESS;
}

TEST(qp_modify, error_in_sqd_flushes_both_queues)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);

	wr.wr_id = 1;
	TEST_OK(move(fx.a.qp, RMEM_QPS_SQD));
	TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	TEST_OK(move(fx.a.qp, RMEM_QPS_ERR));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_WR_FLUSH_ERR);
	TEST_EQ(fx.wc.wr_id, 1);
	TEST_OK(move(fx.a.qp, RMEM_QPS_RESET));
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_RESET);
	return TEST_SUCCESS;
}

TEST(qp_modify, timeouts_change_in_sqd)
{
	struct rmem_qp_attr attr = {.timeout = 12, .retry_cnt = 3, .rnr_retry = 2};
	const uint32_t mask = RMEM_QP_TIMEOUT | RMEM_QP_RETRY_CNT | RMEM_QP_RNR_RETRY;

	TEST_ERR(rmem_qp_modify(fx.a.qp, &attr, mask), EINVAL);
	TEST_OK(move(fx.a.qp, RMEM_QPS_SQD));
	TEST_OK(rmem_qp_modify(fx.a.qp, &attr, mask));
	TEST_OK(rmem_qp_query(fx.a.qp, &attr));
	TEST_EQ(attr.timeout, 12);
	TEST_EQ(attr.retry_cnt, 3);
	TEST_EQ(attr.rnr_retry, 2);
	return TEST_SUCCESS;
}

TEST(qp_modify, bad_arguments_are_refused)
{
	struct rmem_qp_attr attr = {.state = RMEM_QPS_INIT, .port_num = 1};
	const uint32_t mask =
			RMEM_QP_STATE | RMEM_QP_PKEY_INDEX | RMEM_QP_PORT | RMEM_QP_ACCESS_FLAGS;

	TEST_ERR(rmem_qp_modify(NULL, &attr, mask), EINVAL);
	TEST_ERR(rmem_qp_modify(fx.a.qp, NULL, mask), EINVAL);
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_ERR(rmem_qp_modify(fx.a.qp, &attr, mask | RMEM_QP_DEST_QPN << 4), EINVAL);
	attr.reserved[0] = 1;
	TEST_ERR(rmem_qp_modify(fx.a.qp, &attr, mask), EINVAL);
	attr.reserved[0] = 0;
	attr.reserved_byte[0] = 1;
	TEST_ERR(rmem_qp_modify(fx.a.qp, &attr, mask), EINVAL);
	attr.reserved_byte[0] = 0;
	attr.access = RMEM_ACCESS_LOCAL_WRITE;
	TEST_ERR(rmem_qp_modify(fx.a.qp, &attr, mask), EINVAL);
	attr.access = 0;
	attr.port_num = 2;
	TEST_ERR(rmem_qp_modify(fx.a.qp, &attr, mask), EINVAL);
	attr.port_num = 0;
	TEST_ERR(rmem_qp_modify(fx.a.qp, &attr, mask), EINVAL);
	attr.port_num = 1;
	attr.pkey_index = 1;
	TEST_ERR(rmem_qp_modify(fx.a.qp, &attr, mask), EINVAL);
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_RESET);
	return TEST_SUCCESS;
}

TEST_SUITE(qp_modify, fx_setup, fx_teardown);
