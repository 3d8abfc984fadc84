/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* RESET, RTS and ERR: what moves a QP between them, what is flushed, dropped and kept. */

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "fixture.h"

static void
post_waiting_sends(struct rmem_qp *qp, uint64_t first, uint32_t n)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	uint32_t i;

	for (i = 0; i < n; i++) {
		wr.wr_id = first + i;
		TEST_EQ(fx_post(qp, &wr), 1);
	}
}

static void
post_receives(struct rmem_qp *qp, uint64_t first, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		TEST_EQ(fx_post_recv(qp, first + i, NULL, 0), 1);
}

TEST(qp_state, connect_requires_reset)
{
	TEST_ERR(fx_connect(fx.a.qp, fx.b.qp), EBUSY);
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_RTS);
	TEST_OK(rmem_qp_set_error(fx.a.qp));
	TEST_ERR(fx_connect(fx.a.qp, fx.b.qp), EBUSY);
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_ERR);
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(fx_connect(fx.a.qp, fx.b.qp));
}

/* IBTA C10-97 */
TEST(qp_state, reset_drops_requests_and_keeps_completions)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_RDMA_WRITE, NULL, 0);
	struct rmem_qp_attr attr;

	wr.wr_id = 77;
	wr.flags = RMEM_SEND_SIGNALED;
	TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	post_waiting_sends(fx.a.qp, 1, 3);
	post_receives(fx.a.qp, 10, 3);
	/* The WRITE has completed when the SEND after it waits. */
	do {
		TEST_EQ(rmem_poll_cq(fx.a.cq, NULL, 0), 0);
		TEST_OK(rmem_qp_query(fx.a.qp, &attr));
	} while (attr.send_queued > 3);
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 77);
	TEST_ASSERT(fx_is_idle(fx.a.cq));
	TEST_OK(rmem_qp_query(fx.a.qp, &attr));
	TEST_EQ(attr.send_queued, 0);
	TEST_EQ(attr.recv_queued, 0);
}

TEST(qp_state, reset_empties_the_queues)
{
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_RDMA_WRITE, NULL, 0);
	uint32_t round, i;

	for (round = 0; round < 3; round++) {
		/* Never signaled: their places come back by the reset only. */
		for (i = 0; i < FX_DEPTH; i++)
			TEST_EQ(fx_post(fx.a.qp, &wr), 1);
		TEST_ERR(fx_post(fx.a.qp, &wr), ENOSPC);
		post_receives(fx.a.qp, 0, FX_DEPTH);
		TEST_ERR(fx_post_recv(fx.a.qp, 0, NULL, 0), ENOSPC);
		fx_reconnect();
	}
}

TEST(qp_state, destroy_drops_queued_requests_without_completions)
{
	post_waiting_sends(fx.a.qp, 1, 3);
	post_receives(fx.a.qp, 1, 3);
	TEST_OK(fx_release(fx.a.qp));
	TEST_ASSERT(fx_is_idle(fx.a.cq));
	TEST_EQ(fx_state(fx.b.qp), RMEM_QPS_RTS);
}

static bool has_reset;

/* The PSN of the QP is the first random number of the thread. */
static void *
reset_cancelled(void *qp)
{
	pthread_cancel(pthread_self());
	has_reset = rmem_qp_reset(qp) == 0;
	pthread_testcancel();
	return NULL;
}

TEST(qp_state, thread_that_is_cancelled_in_a_reset_keeps_no_lock)
{
	pthread_t thread;
	void *result;

	has_reset = false;
	TEST_EQ(pthread_create(&thread, NULL, reset_cancelled, fx.a.qp), 0);
	TEST_EQ(pthread_join(thread, &result), 0);
	TEST_ASSERT(has_reset && result == PTHREAD_CANCELED);
	fx_reconnect();
}

TEST_SUITE(qp_state, fx_setup, fx_teardown);
