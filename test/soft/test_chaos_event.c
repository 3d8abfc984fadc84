/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Rules of chaos= beyond statuses: QPs and CQs that fail with an asynchronous event, receives and
 * completions that are late.
 */

#include "chaos_rules.h"

#define NB_WRS 5u

static struct rmem_async_channel *channel;

/* Two connected sides with events; a has the first QP and CQ, b the second QP. */
static void
open_sides(const char *rules)
{
	struct rmem_cq_conf cq_conf = {.nb_cqe = 64};
	struct rmem_qp_conf conf;

	chaos_open(rules);
	channel = fx_async_channel(fx.a.dev);
	fx.a.pd = fx_pd(fx.a.dev);
	cq_conf.async_channel = channel;
	fx.a.cq = fx_cq_by(fx.a.dev, &cq_conf);
	conf = fx_qp_conf(fx.a.cq, 8);
	conf.async_channel = channel;
	fx.a.qp = fx_qp_by(fx.a.pd, &conf);
	fx_side_open(&fx.b, fx.a.dev, fx.a.pd);
	fx.a.mr = fx.b.mr;
	TEST_OK(fx_connect_pair(fx.a.qp, fx.b.qp));
}

/* NB_WRS signaled WRITEs, with wr_id from 10 on. */
static void
post_writes(void)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_send_wr wr[NB_WRS];
	unsigned int i;

	for (i = 0; i < NB_WRS; i++) {
		wr[i] = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, (uintptr_t)fx.b.buf + 64, fx.b.mr->rkey);
		wr[i].flags = RMEM_SEND_SIGNALED;
		wr[i].wr_id = 10 + i;
	}
	TEST_EQ(rmem_post_send(fx.a.qp, wr, NB_WRS), NB_WRS);
}

/* IBTA 11.6.3.2. */
TEST(chaos_event, qp_fails_in_place_of_a_request)
{
	open_sides("RDMA_WRITE:QP_FATAL@qp:1@nth:3");
	TEST_EQ(fx_post_recv(fx.a.qp, 1, NULL, 0), 1);
	post_writes();
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	fx_await_async(channel, RMEM_ASYNC_QP_FATAL, fx.a.qp);
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_ERR);
	TEST_EQ(fx_state(fx.b.qp), RMEM_QPS_RTS);
	/* Three requests and a receive, in the order of their queues. */
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_WR_FLUSH_ERR);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_WR_FLUSH_ERR);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_WR_FLUSH_ERR);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_WR_FLUSH_ERR);
	TEST_ASSERT(fx_is_idle(fx.a.cq));
}

/* IBTA 11.6.3.2: a completion is lost. */
TEST(chaos_event, cq_fails_in_place_of_a_completion)
{
	struct rmem_wc wc;
	int polled;

	open_sides("RDMA_WRITE:CQ_ERR@qp:1@nth:3");
	post_writes();
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	fx_await_async(channel, RMEM_ASYNC_CQ_ERR, fx.a.cq);
	fx_await_async(channel, RMEM_ASYNC_QP_FATAL, fx.a.qp);
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_ERR);
	do
		polled = rmem_poll_cq(fx.a.cq, &wc, 1);
	while (polled == 0);
	TEST_EQ(polled, -EIO);
}

/* IBTA 11.6.3.1: with an SRQ, the failure ends with this event. */
TEST(chaos_event, last_receive_of_an_srq_is_reported)
{
	const struct rmem_srq_conf srq_conf = {.max_wr = 4};
	struct rmem_qp_conf conf;
	struct rmem_send_wr wr;
	struct rmem_sge sge;
	struct rmem_srq *srq;
	struct rmem_qp *qp;

	open_sides("RDMA_WRITE:RETRY_EXC_ERR@qp:3");
	TEST_OK(rmem_srq_create(fx.a.pd, &srq_conf, &srq));
	fx_track(srq);
	conf = fx_qp_conf(fx.a.cq, 8);
	conf.async_channel = channel;
	conf.srq = srq;
	conf.max_recv_wr = 0;
	conf.max_recv_sge = 0;
	qp = fx_qp_by(fx.a.pd, &conf);
	TEST_OK(rmem_qp_reset(fx.b.qp));
	TEST_OK(fx_connect_pair(qp, fx.b.qp));
	sge = fx_sge(fx.a.mr, 0, 8);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, (uintptr_t)fx.b.buf + 64, fx.b.mr->rkey);
	TEST_STATUS(fx_send(qp, &wr), RMEM_WC_RETRY_EXC_ERR);
	fx_await_async(channel, RMEM_ASYNC_QP_LAST_WQE_REACHED, qp);
}

/* A message that waits for its receive, and one whose requester does not. */
TEST(chaos_event, receive_is_late)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	struct rmem_qp_conn conn = fx_conn();
	struct rmem_dev_stats stats;
	uint32_t i;

	open_sides("recv:RNR_NAK@qp:2@nth:2@naks:3+recv:RNR_NAK@qp:2@nth:4");
	for (i = 0; i < 4; i++)
		TEST_EQ(fx_post_recv(fx.b.qp, i, NULL, 0), 1);
	for (i = 0; i < 3; i++) {
		fx_deliver(&fx.a, &fx.b, &wr);
		TEST_EQ(fx.wc.wr_id, i);
		TEST_OK(rmem_dev_stats_get(fx.a.dev, &stats));
		TEST_ASSERT((stats.rnr_retries != 0) == (i != 0));
	}
	conn.rnr_retry = 0;
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(rmem_qp_reset(fx.b.qp));
	TEST_OK(fx_connect_by(fx.a.qp, fx.b.qp, &conn));
	TEST_OK(fx_connect_by(fx.b.qp, fx.a.qp, &conn));
	TEST_EQ(fx_post_recv(fx.b.qp, 9, NULL, 0), 1);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_RNR_RETRY_EXC_ERR);
	TEST_EQ(fx_state(fx.b.qp), RMEM_QPS_RTS);
}

/* Poll for 8 until nb completions have arrived, not more; the number of polls without any. */
static unsigned int
poll_for(uint64_t wr_id, unsigned int nb)
{
	uint64_t deadline = fx_deadline();
	unsigned int nb_empty = 0, n = 0;
	struct rmem_wc wc[8];
	int ret, i;

	while (n < nb && !fx_is_late(deadline)) {
		ret = rmem_poll_cq(fx.a.cq, wc, 8);
		TEST_ASSERT(ret >= 0 && n + (unsigned int)ret <= nb);
		for (i = 0; i < ret; i++, n++)
			TEST_EQ(wc[i].wr_id, wr_id + n);
		nb_empty += ret == 0;
	}
	TEST_EQ(n, nb);
	return nb_empty;
}

/* Neither the third completion nor those after it are returned for 7 polls; then all are. */
TEST(chaos_event, completion_is_late_with_all_that_follow)
{
	open_sides("cq:LATE@cq:1@nth:3@polls:7+cq:LATE@cq:1@nth:5");
	post_writes();
	poll_for(10, 2);
	TEST_ASSERT(poll_for(12, 2) >= 7);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 14);
}

/* A CQ with a channel has no late completions: the event would be too early. */
TEST(chaos_event, completion_with_an_event_is_not_late)
{
	struct rmem_comp_channel *comp;
	struct rmem_cq_conf conf = {.nb_cqe = 16};
	struct rmem_send_wr wr;
	struct rmem_sge sge;
	struct rmem_wc wc;
	struct rmem_cq *cq;
	void *context;

	open_sides("cq:LATE@cq:3@polls:1000");
	comp = fx_channel(fx.a.dev);
	conf.channel = comp;
	cq = fx_cq_by(fx.a.dev, &conf);
	fx.a.qp = fx_qp(fx.a.pd, cq, 8);
	fx.b.qp = fx_qp(fx.a.pd, fx.b.cq, 8);
	TEST_OK(fx_connect_pair(fx.a.qp, fx.b.qp));
	TEST_OK(rmem_cq_req_notify(cq, false));
	sge = fx_sge(fx.a.mr, 0, 8);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, (uintptr_t)fx.b.buf + 64, fx.b.mr->rkey);
	wr.flags = RMEM_SEND_SIGNALED;
	TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	TEST_OK(rmem_comp_channel_get_event(comp, &cq, &context));
	TEST_EQ(rmem_poll_cq(cq, &wc, 1), 1);
	TEST_OK(rmem_cq_ack_events(cq, 1));
}

/* A log has what is needed to repeat a delay. */
TEST(chaos_event, log_of_delays_replays)
{
	char path[] = "/tmp/rmem-chaos.XXXXXX", rules[128], line[160] = "";
	int fd = mkstemp(path);
	FILE *f;

	TEST_ASSERT(fd >= 0);
	snprintf(rules, sizeof(rules), "cq:LATE@polls:7@every:3+log:%s", path);
	open_sides(rules);
	post_writes();
	poll_for(10, 2);
	TEST_ASSERT(poll_for(12, 3) >= 7);
	f = fdopen(fd, "r");
	TEST_ASSERT(f != NULL && fgets(line, sizeof(line), f) != NULL &&
			fgets(line, sizeof(line), f) != NULL);
	fclose(f);
	TEST_TEXT(line, " cq:LATE@polls:7@cq:1@nth:3 # completion (ibv_poll_cq(3))");
	fx_teardown();
	fx_setup_none();
	snprintf(rules, sizeof(rules), "replay:%s", path);
	open_sides(rules);
	post_writes();
	poll_for(10, 2);
	TEST_ASSERT(poll_for(12, 3) >= 7);
	unlink(path);
}

TEST(chaos_event, illegal_rules_are_refused)
{
	static const char *const bad[][2] = {
			{"RDMA_WRITE:QP_REQ_ERR", "QP_FATAL, CQ_ERR"},
			{"recv:REM_OP_ERR", "RNR_NAK, LOC_LEN_ERR, LOC_PROT_ERR, LATE"},
			{"recv:LATE@qp:1", "cq:N, polls:N"},
			{"cq:LATE@qp:1", "cq:N, polls:N"},
			{"cq:EARLY", "LATE"},
			{"recv:RNR_NAK@polls:1", "qp:N, naks:N"},
			{"recv:RNR_NAK@naks:0", "naks:N"},
	};

	chaos_expect_illegal(bad, RTE_DIM(bad));
}

TEST_SUITE(chaos_event, fx_setup_none, fx_teardown);
