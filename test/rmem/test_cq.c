/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Completion queues hold completions, oldest first, and report an overrun. */

#include <pthread.h>
#include <string.h>

#include <rte_lcore.h>

#include "fixture.h"

TEST(cq, create_refuses_bad_configurations)
{
	struct rmem_cq_conf conf = {.nb_cqe = 0};
	struct rmem_cq *cq = NULL;
	struct rmem_dev_info info = fx_dev_info(fx.a.dev);

	TEST_ERR(rmem_cq_create(fx.a.dev, NULL, &cq), EINVAL);
	TEST_ERR(rmem_cq_create(fx.a.dev, &conf, &cq), EINVAL);
	conf.nb_cqe = info.max_cqe + 1;
	TEST_ERR(rmem_cq_create(fx.a.dev, &conf, &cq), EINVAL);
	conf.nb_cqe = UINT32_MAX;
	TEST_ERR(rmem_cq_create(fx.a.dev, &conf, &cq), EINVAL);
	conf.nb_cqe = 1;
	conf.flags = 1u << 2;
	TEST_ERR(rmem_cq_create(fx.a.dev, &conf, &cq), EINVAL);
	conf.flags = 1u << 31;
	TEST_ERR(rmem_cq_create(fx.a.dev, &conf, &cq), EINVAL);
	conf.flags = 0;
	conf.reserved[1] = 1;
	TEST_ERR(rmem_cq_create(fx.a.dev, &conf, &cq), EINVAL);
	TEST_ASSERT(cq == NULL);
}

TEST(cq, destroy_while_a_qp_is_attached_is_ebusy)
{
	struct rmem_cq *cqs[] = {fx_cq(fx.a.dev, 4), fx_cq(fx.a.dev, 4)};
	struct rmem_qp_conf conf = fx_qp_conf(cqs[0], 4);
	struct rmem_qp *qp;

	conf.recv_cq = cqs[1];
	qp = fx_qp_by(fx.a.pd, &conf);
	TEST_ERR(rmem_cq_destroy(cqs[0]), EBUSY);
	TEST_ERR(rmem_cq_destroy(cqs[1]), EBUSY);
	TEST_OK(fx_release(qp));
	TEST_OK(fx_release(cqs[0]));
	TEST_OK(fx_release(cqs[1]));
}

TEST(cq, destroy_loses_completions_not_polled)
{
	fx_post_writes(fx.a.qp, 0, 4);
	TEST_OK(fx_release(fx.a.qp));
	TEST_OK(fx_release(fx.a.cq));
}

TEST(cq, poll_writes_at_most_nb_wc)
{
	static const struct rmem_wc untouched = {.wr_id = 0x5555, .status = 77};
	struct rmem_wc wc[3] = {untouched, untouched, untouched};

	fx_post_writes(fx.a.qp, 0, 8);
	TEST_EQ(fx_poll(fx.a.cq, wc, 2), 2);
	TEST_MEM(&wc[2], &untouched, sizeof(untouched));
}

TEST(cq, sends_and_receives_use_their_own_queue)
{
	struct rmem_cq *cqs[] = {fx_cq(fx.a.dev, 4), fx_cq(fx.a.dev, 4)};
	struct rmem_qp_conf conf = fx_qp_conf(cqs[0], 4);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	struct rmem_qp *qp;

	conf.recv_cq = cqs[1];
	qp = fx_qp_by(fx.a.pd, &conf);
	TEST_OK(fx_connect(qp, qp));
	TEST_EQ(fx_post_recv(qp, 3, NULL, 0), 1);
	TEST_STATUS(fx_send(qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(cqs[1]), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 3);
	TEST_ASSERT(fx_is_idle(cqs[0]) && fx_is_idle(cqs[1]));
}

/* IBTA C11-39: saved completions are returned, then -EIO permanently; the QPs move to ERR. */
TEST(cq, overrun_returns_saved_completions_then_eio)
{
	struct rmem_cq *cq = fx_cq(fx.a.dev, 3);
	struct rmem_qp *qps[2];
	uint32_t n;

	n = cq->nb_cqe;
	TEST_ASSERT(n >= 3);
	qps[0] = fx_qp(fx.a.pd, cq, n + 8);
	qps[1] = fx_qp(fx.a.pd, cq, 8);
	TEST_OK(fx_connect_pair(qps[0], qps[1]));
	fx_post_writes(qps[0], 0, n);
	TEST_EQ(fx_state(qps[0]), RMEM_QPS_RTS);
	fx_post_writes(qps[0], n, 1);
	fx_expect_done(cq, 0, n);
	TEST_EQ(fx_wait(cq), -EIO);
	fx_post_writes(qps[0], n + 1, 1);
	fx_post_writes(qps[1], 0, 1);
	TEST_EQ(fx_wait(cq), -EIO);
	TEST_EQ(fx_state(qps[0]), RMEM_QPS_ERR);
	TEST_EQ(fx_state(qps[1]), RMEM_QPS_ERR);
}

/* The peer counts how many of a burst, twice as long as the CQ, were executed. */
static void
expect_no_request_after_overrun(uint8_t flags)
{
	struct rmem_cq *cq = fx_cq(fx.a.dev, 4);
	uint32_t i, n = cq->nb_cqe;
	struct rmem_qp *qp = fx_qp(fx.a.pd, cq, 4 * n);
	struct rmem_send_wr *wr = fx_mem(8, 4 * n * sizeof(*wr));
	struct rmem_sge *sge = fx_mem(8, 4 * n * sizeof(*sge));

	TEST_OK(rmem_qp_reset(fx.b.qp));
	TEST_OK(fx_connect_pair(qp, fx.b.qp));
	memset(fx.a.buf, 1, 8);
	memset(fx.b.buf, 0, 4 * n * 8);
	for (i = 0; i < 4 * n; i++) {
		sge[i] = fx_sge(fx.a.mr, 0, 8);
		wr[i] = fx_rdma(RMEM_WR_RDMA_WRITE, &sge[i], fx_addr(fx.b.buf) + 8 * i,
				fx.b.mr->rkey);
		wr[i].flags = i % 2 == 0 ? RMEM_SEND_SIGNALED : flags;
		wr[i].wr_id = i;
	}
	TEST_EQ(rmem_post_send(qp, wr, (uint16_t)(4 * n)), 4 * n);
	for (i = 0; i < n; i++) {
		TEST_STATUS(fx_wait(cq), RMEM_WC_SUCCESS);
		TEST_EQ(fx.wc.wr_id, flags != 0 ? i : 2 * i);
	}
	TEST_EQ(fx_wait(cq), -EIO);
	TEST_EQ(fx_state(qp), RMEM_QPS_ERR);
	/* The request whose completion is lost is the last one that was executed. */
	n = flags != 0 ? n + 1 : 2 * n + 1;
	for (i = 0; i < n; i++)
		TEST_EQ(fx.b.buf[8 * i], 1);
	TEST_ASSERT(fx_is_zero(fx.b.buf + 8 * n, 8 * (4 * cq->nb_cqe - n)));
}

TEST_CALL(cq, no_request_of_a_burst_is_executed_after_an_overrun,
		expect_no_request_after_overrun(RMEM_SEND_SIGNALED));
TEST_CALL(cq, no_request_of_a_burst_is_executed_after_an_overrun_by_fewer_completions,
		expect_no_request_after_overrun(0));

TEST(cq, overrun_of_receives_is_reported_to_their_owner)
{
	struct rmem_cq *cqs[] = {fx_cq(fx.b.dev, 64), fx_cq(fx.b.dev, 1)};
	struct rmem_qp_conf conf = fx_qp_conf(cqs[0], 16);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	struct rmem_qp *qp;
	uint32_t i, n;

	n = cqs[1]->nb_cqe;
	conf.recv_cq = cqs[1];
	conf.max_recv_wr = n + 1;
	qp = fx_qp_by(fx.b.pd, &conf);
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(fx_connect_pair(fx.a.qp, qp));
	for (i = 0; i <= n; i++)
		TEST_EQ(fx_post_recv(qp, i, NULL, 0), 1);
	for (i = 0; i <= n; i++)
		TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	TEST_ASSERT(fx_is_idle(fx.a.cq));
	for (i = 0; i < n; i++)
		TEST_STATUS(fx_wait(cqs[1]), RMEM_WC_SUCCESS);
	TEST_EQ(fx_wait(cqs[1]), -EIO);
}

static void *
use_fast_path(void *arg)
{
	static const struct rmem_send_wr send_wr = {.opcode = RMEM_WR_RDMA_WRITE};
	static const struct rmem_recv_wr recv_wr = {.wr_id = 1};
	int *results = arg;
	struct rmem_wc wc;

	results[0] = rmem_post_send(fx.a.qp, &send_wr, 1);
	results[1] = rmem_post_recv(fx.a.qp, &recv_wr, 1);
	results[2] = rmem_poll_cq(fx.a.cq, &wc, 1);
	return NULL;
}

static void *
register_and_use_fast_path(void *arg)
{
	if (rte_thread_register() == 0) {
		use_fast_path(arg);
		rte_thread_unregister();
	}
	return NULL;
}

TEST(cq, thread_that_eal_does_not_know_is_einval)
{
	int results[3] = {0, 0, 0};
	pthread_t thread;

	TEST_OK(pthread_create(&thread, NULL, use_fast_path, results));
	TEST_OK(pthread_join(thread, NULL));
	TEST_ERR(results[0], EINVAL);
	TEST_ERR(results[1], EINVAL);
	TEST_ERR(results[2], EINVAL);
}

TEST(cq, thread_registered_with_eal_posts_and_polls)
{
	int results[3] = {-1, -1, -1};
	pthread_t thread;

	TEST_OK(pthread_create(&thread, NULL, register_and_use_fast_path, results));
	TEST_OK(pthread_join(thread, NULL));
	TEST_EQ(results[0], 1);
	TEST_EQ(results[1], 1);
	TEST_EQ(results[2], 0);
}

TEST(cq, statuses_and_opcodes_have_names)
{
	TEST_EQ(strcmp(rmem_wc_status_str(RMEM_WC_SUCCESS), "SUCCESS"), 0);
	TEST_EQ(strcmp(rmem_wc_status_str(RMEM_WC_REM_ACCESS_ERR), "REM_ACCESS_ERR"), 0);
	TEST_EQ(strcmp(rmem_wc_status_str(RMEM_WC_GENERAL_ERR), "GENERAL_ERR"), 0);
	TEST_EQ(strcmp(rmem_wc_status_str(RMEM_WC_GENERAL_ERR + 1), "unknown"), 0);
	TEST_EQ(strcmp(rmem_wc_status_str(-1), "unknown"), 0);
	TEST_EQ(strcmp(rmem_wc_opcode_str(RMEM_WC_RDMA_WRITE), "RDMA_WRITE"), 0);
	TEST_EQ(strcmp(rmem_wc_opcode_str(RMEM_WC_REG_MR), "REG_MR"), 0);
	TEST_EQ(strcmp(rmem_wc_opcode_str(RMEM_WC_BIND_MW), "BIND_MW"), 0);
	TEST_EQ(strcmp(rmem_wc_opcode_str(RMEM_WC_UMR), "UMR"), 0);
	TEST_EQ(strcmp(rmem_wc_opcode_str(RMEM_WC_RECV), "RECV"), 0);
	TEST_EQ(strcmp(rmem_wc_opcode_str(7), "unknown"), 0);
	TEST_EQ(strcmp(rmem_wc_opcode_str(-1), "unknown"), 0);
}

TEST_SUITE(cq, fx_setup, fx_teardown);
