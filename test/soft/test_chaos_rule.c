/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Rules of chaos=: each legal status ends a request as the standard demands, decisions repeat with
 * the seed, a log replays, and illegal rules are refused.
 */

#include "chaos_rules.h"

#define NB_WRS 40u

static struct rmem_async_channel *channel;

/* The device, and a channel of its events. */
static void
open_dev(const char *rules)
{
	chaos_open(rules);
	channel = fx_async_channel(fx.a.dev);
}

/* Two connected sides, of which a has the first QP; retries end. */
static void
open_sides(const char *rules)
{
	struct rmem_qp_conn conn = fx_conn();
	struct rmem_qp_conf conf;

	open_dev(rules);
	fx_side_open(&fx.a, fx.a.dev, fx_pd(fx.a.dev));
	fx_side_open(&fx.b, fx.a.dev, fx.a.pd);
	conf = fx_qp_conf(fx.b.cq, FX_DEPTH);
	conf.async_channel = channel;
	fx.b.qp = fx_qp_by(fx.a.pd, &conf);
	conn.rnr_retry = 3;
	TEST_OK(fx_connect_by(fx.a.qp, fx.b.qp, &conn));
	TEST_OK(fx_connect_by(fx.b.qp, fx.a.qp, &conn));
}

static bool
has_wire(void)
{
	const char *more = getenv("RMEM_TEST_ARGS");

	return more != NULL && strstr(more, "ip=") != NULL;
}

/* A request of an opcode that succeeds without a rule; receives are posted for it. */
static struct rmem_send_wr
make_wr(uint8_t opcode, struct rmem_sge *sge)
{
	uint64_t addr = (uintptr_t)fx.b.buf;

	*sge = fx_sge(fx.a.mr, 0, 8);
	switch (opcode) {
	case RMEM_WR_RDMA_WRITE:
	case RMEM_WR_RDMA_WRITE_WITH_IMM:
	case RMEM_WR_RDMA_READ:
		return fx_rdma(opcode, sge, addr, fx.b.mr->rkey);
	case RMEM_WR_ATOMIC_CMP_AND_SWP:
	case RMEM_WR_ATOMIC_FETCH_AND_ADD:
		return fx_atomic(opcode, sge, addr, fx.b.mr->rkey, 0);
	default:
		return fx_wr(opcode, sge, 1);
	}
}

struct legal {
	uint8_t opcode;
	const char *name;
	uint8_t status;
	uint32_t event; /* of the peer, whose QP is then in ERR; RMEM_ASYNC_CQ_ERR: none */
};

#define NONE RMEM_ASYNC_CQ_ERR

static const struct legal legal[] = {
		{RMEM_WR_SEND, "SEND", RMEM_WC_LOC_LEN_ERR, NONE},
		{RMEM_WR_SEND, "SEND", RMEM_WC_LOC_PROT_ERR, NONE},
		{RMEM_WR_SEND, "SEND", RMEM_WC_LOC_QP_OP_ERR, NONE},
		{RMEM_WR_SEND, "SEND", RMEM_WC_RETRY_EXC_ERR, NONE},
		{RMEM_WR_SEND, "SEND", RMEM_WC_RNR_RETRY_EXC_ERR, NONE},
		{RMEM_WR_SEND, "SEND", RMEM_WC_REM_OP_ERR, RMEM_ASYNC_QP_FATAL},
		{RMEM_WR_RDMA_WRITE, "RDMA_WRITE", RMEM_WC_RETRY_EXC_ERR, NONE},
		{RMEM_WR_RDMA_WRITE, "RDMA_WRITE", RMEM_WC_REM_ACCESS_ERR,
				RMEM_ASYNC_QP_ACCESS_ERR},
		{RMEM_WR_RDMA_WRITE, "RDMA_WRITE", RMEM_WC_REM_INV_REQ_ERR, RMEM_ASYNC_QP_REQ_ERR},
		{RMEM_WR_RDMA_WRITE_WITH_IMM, "RDMA_WRITE_WITH_IMM", RMEM_WC_RNR_RETRY_EXC_ERR,
				NONE},
		{RMEM_WR_RDMA_READ, "RDMA_READ", RMEM_WC_BAD_RESP_ERR, NONE},
		{RMEM_WR_RDMA_READ, "RDMA_READ", RMEM_WC_REM_ACCESS_ERR, RMEM_ASYNC_QP_ACCESS_ERR},
		{RMEM_WR_ATOMIC_FETCH_AND_ADD, "ATOMIC_FETCH_AND_ADD", RMEM_WC_REM_ACCESS_ERR,
				RMEM_ASYNC_QP_ACCESS_ERR},
		{RMEM_WR_ATOMIC_CMP_AND_SWP, "ATOMIC_CMP_AND_SWP", RMEM_WC_LOC_PROT_ERR, NONE},
};

/* The third request of the opcode fails; requests after it are flushed. */
static void
expect_third_fails(const struct legal *row)
{
	struct rmem_send_wr wr[5];
	struct rmem_sge sge, to;
	char rules[96];
	unsigned int i;

	snprintf(rules, sizeof(rules), "%s:%s@qp:1@nth:3", row->name,
			rmem_wc_status_str(row->status));
	open_sides(rules);
	to = fx_sge(fx.b.mr, 0, 8);
	for (i = 0; i < RTE_DIM(wr); i++) {
		TEST_EQ(fx_post_recv(fx.b.qp, i, &to, 1), 1);
		wr[i] = make_wr(row->opcode, &sge);
		wr[i].wr_id = 10 + i;
		wr[i].flags = RMEM_SEND_SIGNALED;
	}
	TEST_EQ(rmem_post_send(fx.a.qp, wr, RTE_DIM(wr)), RTE_DIM(wr));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.a.cq), row->status);
	TEST_EQ(fx.wc.wr_id, 12);
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_ERR);
	fx_expect_flush(fx.a.cq, 13, 2);
	if (row->event == NONE) {
		TEST_EQ(fx_state(fx.b.qp), RMEM_QPS_RTS);
		TEST_ASSERT(!fx_is_readable(channel->fd, 0));
		return;
	}
	TEST_ASSERT(fx_is_readable(channel->fd, FX_EVENT_MS));
	fx_expect_async(channel, row->event, fx.b.qp);
	TEST_EQ(fx_state(fx.b.qp), RMEM_QPS_ERR);
}

static bool
is_of_one_process(const struct legal *row)
{
	return row->status == RMEM_WC_REM_OP_ERR || row->status == RMEM_WC_REM_INV_REQ_ERR;
}

/* IBTA 11.6.2 and 9.9. */
TEST(chaos_rule, request_ends_with_each_legal_status)
{
	unsigned int i;

	for (i = 0; i < RTE_DIM(legal); i++) {
		if (has_wire() && is_of_one_process(&legal[i]))
			continue;
		printf("%s %s\n", legal[i].name, rmem_wc_status_str(legal[i].status));
		expect_third_fails(&legal[i]);
		fx_teardown();
		fx_setup_none();
	}
}

/* A QP that was reset and connected again works; the events are counted further. */
TEST(chaos_rule, qp_works_after_reset)
{
	struct rmem_sge sge;
	struct rmem_send_wr wr;
	unsigned int i;

	open_sides("RDMA_WRITE:RETRY_EXC_ERR@qp:1@every:4");
	wr = make_wr(RMEM_WR_RDMA_WRITE, &sge);
	for (i = 1; i <= 12; i++) {
		TEST_STATUS(fx_send(fx.a.qp, &wr),
				i % 4 == 0 ? RMEM_WC_RETRY_EXC_ERR : RMEM_WC_SUCCESS);
		if (i % 4 == 0)
			fx_reconnect();
	}
}

TEST(chaos_rule, times_limits_the_hits_of_a_qp)
{
	struct rmem_send_wr wr;
	struct rmem_sge sge;

	open_sides("any:LOC_QP_OP_ERR@times:2");
	wr = make_wr(RMEM_WR_RDMA_WRITE, &sge);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_LOC_QP_OP_ERR);
	fx_reconnect();
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_LOC_QP_OP_ERR);
	fx_reconnect();
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
}

/* Which of NB_WRS requests of a fail, as bits. */
static uint64_t
failures_of(const char *rules)
{
	struct rmem_send_wr wr;
	struct rmem_sge sge;
	uint64_t failed = 0;
	unsigned int i;
	int status;

	open_sides(rules);
	wr = make_wr(RMEM_WR_RDMA_WRITE, &sge);
	for (i = 0; i < NB_WRS; i++) {
		status = fx_send(fx.a.qp, &wr);
		TEST_ASSERT(status == RMEM_WC_SUCCESS || status == RMEM_WC_RETRY_EXC_ERR);
		if (status == RMEM_WC_SUCCESS)
			continue;
		failed |= UINT64_C(1) << i;
		fx_reconnect();
	}
	fx_teardown();
	fx_setup_none();
	return failed;
}

TEST(chaos_rule, seed_decides)
{
	uint64_t first = failures_of("RDMA_WRITE:RETRY_EXC_ERR@p:0.3+seed:7");

	TEST_ASSERT(first != 0 && first != (UINT64_C(1) << NB_WRS) - 1);
	TEST_EQ(failures_of("RDMA_WRITE:RETRY_EXC_ERR@p:0.3+seed:7"), first);
	TEST_ASSERT(failures_of("RDMA_WRITE:RETRY_EXC_ERR@p:0.3+seed:8") != first);
	TEST_EQ(failures_of("RDMA_WRITE:RETRY_EXC_ERR@p:1"), (UINT64_C(1) << NB_WRS) - 1);
}

/* The QP of another number, another opcode and a later request are not hit. */
TEST(chaos_rule, rule_that_does_not_match_changes_nothing)
{
	TEST_EQ(failures_of("RDMA_READ:RETRY_EXC_ERR+any:RETRY_EXC_ERR@qp:3+"
			    "RDMA_WRITE:RETRY_EXC_ERR@nth:1000"),
			0);
}

TEST_CALL(chaos_rule, log_replays,
		chaos_expect_replay(failures_of, "RDMA_WRITE:RETRY_EXC_ERR@p:0.2+seed:9"));

/* A request that finds the queue full is not an event of its rule. */
TEST(chaos_rule, refused_post_is_not_counted)
{
	struct rmem_qp_conf conf;
	struct rmem_send_wr wr[8];
	struct rmem_sge sge;
	struct rmem_qp *qp;
	unsigned int i;

	open_dev("RDMA_WRITE:LOC_QP_OP_ERR@qp:1@nth:7");
	fx.a.pd = fx_pd(fx.a.dev);
	fx.a.cq = fx_cq(fx.a.dev, 64);
	conf = fx_qp_conf(fx.a.cq, 4);
	qp = fx_qp_by(fx.a.pd, &conf);
	fx.a.qp = qp;
	fx_side_open(&fx.b, fx.a.dev, fx.a.pd);
	TEST_OK(fx_connect_pair(qp, fx.b.qp));
	fx.a.mr = fx.b.mr;
	for (i = 0; i < RTE_DIM(wr); i++) {
		wr[i] = make_wr(RMEM_WR_RDMA_WRITE, &sge);
		wr[i].flags = RMEM_SEND_SIGNALED;
	}
	TEST_EQ(rmem_post_send(qp, wr, RTE_DIM(wr)), 4);
	TEST_EQ(rmem_post_send(qp, wr, RTE_DIM(wr)), -ENOSPC);
	for (i = 0; i < 4; i++)
		TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(rmem_post_send(qp, wr, 4), 4);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_LOC_QP_OP_ERR);
	fx_expect_flush(fx.a.cq, wr[0].wr_id, 1);
}

/* IBTA 10.3.1.6: of UC the QP is in SQE. */
TEST(chaos_rule, unreliable_service_fails_to_sqe)
{
	struct rmem_qp_conf conf;
	struct rmem_send_wr wr;
	struct rmem_sge sge;

	open_dev("any:RETRY_EXC_ERR+any:LOC_PROT_ERR@nth:2");
	fx.a.pd = fx_pd(fx.a.dev);
	fx_side_open(&fx.b, fx.a.dev, fx.a.pd);
	fx.a.cq = fx_cq(fx.a.dev, 64);
	conf = fx_qp_conf(fx.a.cq, 8);
	conf.type = RMEM_QPT_UC;
	fx.a.qp = fx_qp_by(fx.a.pd, &conf);
	conf = fx_qp_conf(fx.b.cq, 8);
	conf.type = RMEM_QPT_UC;
	fx.b.qp = fx_qp_by(fx.a.pd, &conf);
	TEST_OK(fx_connect_pair(fx.a.qp, fx.b.qp));
	fx.a.mr = fx.b.mr;
	wr = make_wr(RMEM_WR_RDMA_WRITE, &sge);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	fx_expect(&wr, RMEM_WC_LOC_PROT_ERR, RMEM_QPS_SQE, RMEM_QPS_RTS);
}

/* An infinite number of retries never ends. */
TEST(chaos_rule, rnr_retry_seven_is_not_exceeded)
{
	struct rmem_send_wr wr;
	struct rmem_sge sge;

	open_dev("SEND:RNR_RETRY_EXC_ERR@qp:1");
	fx_sides_open(fx.a.dev);
	sge = fx_sge(fx.b.mr, 0, 8);
	TEST_EQ(fx_post_recv(fx.b.qp, 1, &sge, 1), 1);
	wr = make_wr(RMEM_WR_SEND, &sge);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
}

/* An rkey is not checked for a request of no bytes (IBTA C9-88). */
TEST(chaos_rule, request_of_no_bytes_has_no_bad_rkey)
{
	struct rmem_send_wr wr;

	open_sides("RDMA_WRITE:REM_ACCESS_ERR@qp:1");
	wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, NULL, &fx.b);
	wr.num_sge = 0;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
}

/* The peer checks the rkey of each FLUSH. */
TEST(chaos_rule, flush_has_a_bad_rkey)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_FLUSH, NULL, 0);
	struct rmem_qp_conf conf;

	open_sides("FLUSH:REM_ACCESS_ERR@nth:2");
	conf = fx_qp_conf(fx.b.cq, FX_DEPTH);
	conf.access |= RMEM_ACCESS_FLUSH_GLOBAL;
	fx.a.qp = fx_qp_by(fx.a.pd, &conf);
	fx.a.cq = fx.b.cq;
	fx.b.qp = fx_qp_by(fx.a.pd, &conf);
	TEST_OK(fx_connect_pair(fx.a.qp, fx.b.qp));
	fx.b.mr = fx_mr(fx.a.pd, fx.b.buf, 64, FX_ACCESS | RMEM_ACCESS_FLUSH_GLOBAL);
	wr.flush.remote_addr = fx_addr(fx.b.buf);
	wr.flush.length = 64;
	wr.flush.rkey = fx.b.mr->rkey;
	wr.flush.type = RMEM_FLUSH_GLOBAL;
	wr.flush.level = RMEM_FLUSH_RANGE;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_REM_ACCESS_ERR);
}

/* A request that the post refuses is not examined. */
TEST(chaos_rule, malformed_request_is_refused)
{
	struct rmem_send_wr wr;
	struct rmem_sge sge;

	open_sides("RDMA_WRITE:REM_ACCESS_ERR@qp:1+RDMA_WRITE:LOC_LEN_ERR@qp:1");
	wr = make_wr(RMEM_WR_RDMA_WRITE, &sge);
	wr.num_sge = 60000;
	TEST_EQ(fx_post(fx.a.qp, &wr), -EINVAL);
	wr.num_sge = 1;
	wr.opcode = 200;
	TEST_EQ(fx_post(fx.a.qp, &wr), -EINVAL);
	wr.opcode = RMEM_WR_RDMA_WRITE;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_REM_ACCESS_ERR);
}

/* The line of a refusal has the value, and what is permitted. */
TEST(chaos_rule, illegal_rules_are_refused)
{
	static const char *const bad[][2] = {
			{"SEND:REM_ACCESS_ERR", "LOC_LEN_ERR"},
			{"SEND:WR_FLUSH_ERR", "RETRY_EXC_ERR"},
			{"REG_MR:RETRY_EXC_ERR", "MW_BIND_ERR"},
			{"SEND:SUCCESS", "RETRY_EXC_ERR"},
			{"SENDING:RETRY_EXC_ERR", "RDMA_WRITE_WITH_IMM"},
			{"SEND", "SITE:WHAT"},
			{"SEND:RETRY_EXC_ERR@p:1.1", "up to 1"},
			{"SEND:RETRY_EXC_ERR@p:0", "over 0"},
			{"SEND:RETRY_EXC_ERR@p:nan", "over 0"},
			{"SEND:RETRY_EXC_ERR@nth:0", "from 1 on"},
			{"SEND:RETRY_EXC_ERR@qp:-1", "from 1 on"},
			{"SEND:RETRY_EXC_ERR@soon:1", "every:N"},
			{"SEND:RETRY_EXC_ERR@nth:1@p:0.5", "one of"},
			{"SEND:RETRY_EXC_ERR@nth:1@nth:2", "each once"},
			{"SEND:RETRY_EXC_ERR@p:1@p:1", "each once"},
			{"SEND:RETRY_EXC_ERR@p:1@nth:1", "one of"},
			{"SEND:RETRY_EXC_ERR@qp:1@qp:2", "each once"},
			{"SEND:RETRY_EXC_ERR@at:5", "each once"},
			{"recv:RNR_NAK@thread:1", "qp:N, naks:N"},
			{"seed:1+seed:2", "a second seed"},
			{"seed:x", "2^64 - 1"},
			{"seed:1++seed:2", "SITE:WHAT"},
			{"file:/nonexistent", "No such file"},
			{"file:/", "Is a directory"},
			{"replay:/dev/null", "# rmem chaos log 1"},
			{"log:/nonexistent/log", "No such file"},
	};

	chaos_expect_illegal(bad, RTE_DIM(bad));
}

TEST_SUITE(chaos_rule, fx_setup_none, fx_teardown);
