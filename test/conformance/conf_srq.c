/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Shared receive queues: messages of several QPs consume receives in the order posted, a QP in
 * error consumes none, and keys are of the PD of the queue.
 */

#include <string.h>
#include <sys/mman.h>

#include "conf.h"

#define DEPTH 32u

/* fx.a.qp and qp use srq; their peers are fx.b.qp and peer. */
static struct {
	struct rmem_srq *srq;
	struct rmem_qp *qp;
	struct rmem_qp *peer;
} cs;

static struct rmem_srq *
make_srq(struct rmem_pd *pd, uint32_t max_wr)
{
	const struct rmem_srq_conf conf_srq = {
			.max_wr = RTE_MIN(max_wr, conf.info.max_srq_wr),
			.max_sge = RTE_MIN(4u, conf.info.max_srq_sge),
	};
	struct rmem_srq *srq = NULL;

	if (rmem_srq_create(pd, &conf_srq, &srq) != 0)
		return NULL;
	fx_track(srq);
	return srq;
}

static struct rmem_qp *
make_qp(struct rmem_srq *srq, uint16_t flags)
{
	struct rmem_qp_conf qp = fx_qp_conf(fx.a.cq, RTE_MIN(64u, conf.info.max_send_wr));

	qp.max_send_sge = (uint16_t)RTE_MIN(qp.max_send_sge, conf.info.max_send_sge);
	qp.max_inline_data = 0;
	qp.access &= conf.info.access;
	qp.flags = flags;
	qp.srq = srq;
	return fx_qp_by(fx.a.pd, &qp);
}

/* Replace a's QP with one that uses the SRQ. */
static void
use_srq(struct rmem_srq *srq, uint16_t flags)
{
	TEST_OK(fx_release(fx.a.qp));
	fx.a.qp = make_qp(srq, flags);
	conf_reconnect();
}

static void
setup(void)
{
	conf_setup();
	if ((conf.info.capa & RMEM_DEV_CAPA_SRQ) == 0)
		return;
	cs.srq = make_srq(fx.a.pd, DEPTH);
	TEST_ASSERT(cs.srq != NULL);
	use_srq(cs.srq, 0);
	cs.qp = make_qp(cs.srq, 0);
	cs.peer = conf_qp(fx.a.pd, fx.b.cq, RMEM_ACCESS_REMOTE);
	TEST_OK(conf_connect(cs.qp, cs.peer));
}

static int
post(struct rmem_srq *srq, uint64_t wr_id, const struct rmem_sge *sge, uint16_t num_sge)
{
	const struct rmem_recv_wr wr = {.wr_id = wr_id, .sg_list = sge, .num_sge = num_sge};

	return rmem_srq_post_recv(srq, &wr, 1);
}

static struct rmem_srq_attr
query(const struct rmem_srq *srq)
{
	struct rmem_srq_attr attr = {0};

	if (rmem_srq_query(srq, &attr) != 0)
		attr.max_wr = UINT32_MAX;
	return attr;
}

static int
send_empty(struct rmem_qp *qp)
{
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);

	return fx_send(qp, &wr);
}

/* The next completion of a's CQ is of this receive and QP. */
static void
expect_recv(uint64_t wr_id, const struct rmem_qp *qp)
{
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, wr_id);
	TEST_EQ(fx.wc.qp_num, qp->qp_num);
}

CONF_TEST(srq, two_qps_consume_receives_in_order, RMEM_DEV_CAPA_SRQ, 0,
		"IBTA 10.2.9: receives are consumed in the order posted, by any QP of the SRQ")
{
	const struct rmem_sge to = fx_sge(fx.a.mr, 0, 64), from = fx_sge(fx.b.mr, 0, 64);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);
	unsigned int i;

	fx_fill(fx.b.buf, 64, 1);
	for (i = 0; i < 20; i++)
		TEST_EQ(post(cs.srq, 100 + i, &to, 1), 1);
	for (i = 0; i < 20; i++) {
		TEST_STATUS(fx_send(i % 3 == 0 ? cs.peer : fx.b.qp, &wr), RMEM_WC_SUCCESS);
		expect_recv(100 + i, i % 3 == 0 ? cs.qp : fx.a.qp);
		TEST_EQ(fx.wc.byte_len, 64);
		TEST_MEM(fx.a.buf, fx.b.buf, 64);
	}
	TEST_ASSERT(fx_is_idle(fx.a.cq));
}

CONF_TEST(srq, receive_posted_to_qp_is_refused, RMEM_DEV_CAPA_SRQ, 0,
		"IBTA 11.4.1.2: the QP is associated with an SRQ")
{
	const struct rmem_sge to = fx_sge(fx.a.mr, 0, 64);

	TEST_EQ(fx_post_recv(fx.a.qp, 1, &to, 1), -EINVAL);
	TEST_EQ(fx_post_recv(fx.a.qp, 1, NULL, 0), -EINVAL);
	TEST_EQ(post(cs.srq, 7, NULL, 0), 1);
	TEST_STATUS(send_empty(fx.b.qp), RMEM_WC_SUCCESS);
	expect_recv(7, fx.a.qp);
	TEST_EQ(fx_post_recv(fx.a.qp, 1, NULL, 0), -EINVAL);
}

CONF_TEST(srq, post_stops_at_first_bad_or_full, RMEM_DEV_CAPA_SRQ, 0,
		"ibv_post_srq_recv(3): stops at the first failure")
{
	struct rmem_recv_wr wrs[DEPTH + 2] = {0};
	const uint32_t max_wr = query(cs.srq).max_wr;
	struct rmem_sge sges[64] = {0};
	uint32_t nb = 0;
	int ret;

	wrs[2].num_sge = (uint16_t)(query(cs.srq).max_sge + 1);
	wrs[2].sg_list = sges;
	TEST_ASSERT(wrs[2].num_sge <= RTE_DIM(sges));
	TEST_EQ(rmem_srq_post_recv(cs.srq, wrs + 2, 1), -EINVAL);
	TEST_EQ(rmem_srq_post_recv(cs.srq, wrs, 0), 0);
	TEST_EQ(rmem_srq_post_recv(cs.srq, wrs, 4), 2);
	wrs[2].num_sge = 0;
	for (nb = 2; nb <= max_wr; nb += (uint32_t)ret) {
		ret = rmem_srq_post_recv(cs.srq, wrs, RTE_DIM(wrs));
		if (ret < 0)
			break;
	}
	TEST_EQ(rmem_srq_post_recv(cs.srq, wrs, 1), -ENOSPC);
	TEST_ASSERT(nb >= DEPTH);
	TEST_STATUS(send_empty(fx.b.qp), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(rmem_srq_post_recv(cs.srq, wrs, 2), 1);
}

/* The message waits for a receive, or its retries end. */
CONF_TEST(srq, message_without_receive_is_retried, RMEM_DEV_CAPA_SRQ, 0,
		"IBTA 9.7.5.2.8: receiver not ready")
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	struct rmem_qp_conn conn = fx_conn();

	wr.flags = RMEM_SEND_SIGNALED;
	TEST_EQ(fx_post(fx.b.qp, &wr), 1);
	TEST_ASSERT(fx_is_idle(fx.b.cq));
	TEST_EQ(post(cs.srq, 5, NULL, 0), 1);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	expect_recv(5, fx.a.qp);

	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(rmem_qp_reset(fx.b.qp));
	conn.rnr_retry = 1;
	conn.min_rnr_timer = 1;
	conn.timeout = 18;
	TEST_OK(fx_connect_by(fx.a.qp, fx.b.qp, &conn));
	TEST_OK(fx_connect_by(fx.b.qp, fx.a.qp, &conn));
	conf_status(CONF_NO_RECV, send_empty(fx.b.qp));
}

/* All but those of the QPs that failed. */
CONF_TEST(srq, receives_remain_when_a_qp_fails, RMEM_DEV_CAPA_SRQ, 0,
		"IBTA 10.2.9.4: a QP in Error consumes no receives; they remain in the SRQ")
{
	unsigned int i;

	for (i = 0; i < 6; i++)
		TEST_EQ(post(cs.srq, i, NULL, 0), 1);
	TEST_STATUS(send_empty(fx.b.qp), RMEM_WC_SUCCESS);
	expect_recv(0, fx.a.qp);
	TEST_OK(rmem_qp_set_error(fx.a.qp));
	TEST_ASSERT(fx_is_idle(fx.a.cq));
	TEST_STATUS(send_empty(cs.peer), RMEM_WC_SUCCESS);
	expect_recv(1, cs.qp);
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_STATUS(send_empty(cs.peer), RMEM_WC_SUCCESS);
	expect_recv(2, cs.qp);
	conf_reconnect();
	TEST_STATUS(send_empty(fx.b.qp), RMEM_WC_SUCCESS);
	expect_recv(3, fx.a.qp);
	TEST_OK(fx_release(fx.a.qp));
	TEST_STATUS(send_empty(cs.peer), RMEM_WC_SUCCESS);
	expect_recv(4, cs.qp);
}

CONF_TEST(srq, receive_with_an_invalid_lkey_fails_one_qp, RMEM_DEV_CAPA_SRQ, 0,
		"IBTA 10.6.3: a receive's memory is checked when the message arrives")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 64), good = fx_sge(fx.a.mr, 0, 64);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);
	struct rmem_sge bad[] = {good, good, good};
	unsigned int i;

	bad[0].lkey = 0;
	bad[1].lkey ^= 0x5500;
	bad[2].addr = fx_addr(fx.a.buf) + FX_BUF_SIZE - 63;
	fx_fill(fx.b.buf, 64, 1);
	for (i = 0; i < RTE_DIM(bad); i++) {
		TEST_EQ(post(cs.srq, 1, &bad[i], 1), 1);
		TEST_EQ(post(cs.srq, 2, &good, 1), 1);
		conf_status(CONF_PEER_MEMORY, fx_send(fx.b.qp, &wr));
		conf_status(CONF_RECV_KEY, fx_wait(fx.a.cq));
		TEST_EQ(fx.wc.wr_id, 1);
		TEST_EQ(fx.wc.qp_num, fx.a.qp->qp_num);
		conf_expect_err(fx.a.qp);
		TEST_STATUS(fx_send(cs.peer, &wr), RMEM_WC_SUCCESS);
		expect_recv(2, cs.qp);
		conf_reconnect();
	}
}

CONF_TEST(srq, message_too_long_fails_one_qp, RMEM_DEV_CAPA_SRQ, 0, "IBTA 11.6.2: length errors")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 600), to = fx_sge(fx.a.mr, 0, 599);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);

	TEST_EQ(post(cs.srq, 1, &to, 1), 1);
	TEST_EQ(post(cs.srq, 2, NULL, 0), 1);
	conf_status(CONF_TOO_LONG, fx_send(fx.b.qp, &wr));
	conf_status(CONF_RECV_LENGTH, fx_wait(fx.a.cq));
	TEST_EQ(fx.wc.wr_id, 1);
	TEST_STATUS(send_empty(cs.peer), RMEM_WC_SUCCESS);
	expect_recv(2, cs.qp);
}

/* b's message of this length fills the receive and no other byte. */
static void
try_message(uint32_t length)
{
	const struct rmem_sge to[] = {fx_sge(fx.a.mr, 0, 5), fx_sge(fx.a.mr, 16, 8192)};
	const struct rmem_sge from = fx_sge(fx.b.mr, 1, length);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);
	uint32_t first = RTE_MIN(length, 5u);

	memset(fx.a.buf, 0, FX_BUF_SIZE);
	TEST_EQ(post(cs.srq, length, to, RTE_DIM(to)), 1);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	expect_recv(length, fx.a.qp);
	TEST_EQ(fx.wc.byte_len, length);
	TEST_MEM(fx.a.buf, fx.b.buf + 1, first);
	TEST_ASSERT(fx_is_zero(fx.a.buf + first, 16 - first));
	TEST_MEM(fx.a.buf + 16, fx.b.buf + 1 + first, length - first);
	TEST_ASSERT(fx_is_zero(fx.a.buf + 16 + length - first, 64));
}

static void
try_lengths(void)
{
	uint32_t length;

	TEST_SKIP_IF(conf.info.max_srq_sge < 2, "the device supports fewer than 2 SGEs");
	fx_fill(fx.b.buf, FX_BUF_SIZE, 1);
	for (length = 0; length <= 70; length++)
		try_message(length);
	for (length = 1000; length <= 8000; length += 1000)
		try_message(length);
}

CONF_TEST(srq, messages_of_any_length_arrive, RMEM_DEV_CAPA_SRQ, 0,
		"ibv_post_srq_recv(3): sg_list in order")
{
	try_lengths();
}

CONF_TEST(srq, messages_arrive_without_inline_receive, RMEM_DEV_CAPA_SRQ, 0,
		"mlx5dv_create_qp(3): MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE")
{
	use_srq(cs.srq, RMEM_QP_NO_INLINE_RECV);
	try_lengths();
}

/* Messages of both QPs before the first poll, in one CQ. */
CONF_TEST(srq, inline_received_messages_wait_in_their_completions, RMEM_DEV_CAPA_SRQ, 0,
		"mlx5dv_create_qp(3): a message is its own until it is polled")
{
	unsigned int i;

	fx_fill(fx.b.buf, 1024, 3);
	for (i = 0; i < 16; i++) {
		const struct rmem_sge to = fx_sge(fx.a.mr, 64 * i, 64);
		const struct rmem_sge from = fx_sge(fx.b.mr, 64 * i, 1 + 4 * i);
		const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);

		TEST_EQ(post(cs.srq, i, &to, 1), 1);
		TEST_STATUS(fx_send(i % 2 == 0 ? fx.b.qp : cs.peer, &wr), RMEM_WC_SUCCESS);
	}
	for (i = 0; i < 16; i++) {
		expect_recv(i, i % 2 == 0 ? fx.a.qp : cs.qp);
		TEST_MEM(fx.a.buf + 64 * i, fx.b.buf + 64 * i, 1 + 4 * i);
		TEST_ASSERT(fx_is_zero(fx.a.buf + 64 * i + 1 + 4 * i, 64 - 1 - 4 * i));
	}
}

CONF_TEST(srq, write_with_immediate_consumes_a_receive, RMEM_DEV_CAPA_SRQ, 0,
		"IBTA 9.4.3: RDMA WRITE with Immediate consumes a receive")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 32), to = fx_sge(fx.a.mr, 4096, 64);
	struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE_WITH_IMM, &from, &fx.a);

	fx_fill(fx.b.buf, 32, 1);
	wr.imm_data = 0xdeadbeef;
	TEST_EQ(post(cs.srq, 5, &to, 1), 1);
	TEST_EQ(post(cs.srq, 6, NULL, 0), 1);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	expect_recv(5, fx.a.qp);
	TEST_EQ(fx.wc.opcode, RMEM_WC_RECV_RDMA_WITH_IMM);
	TEST_EQ(fx.wc.imm_data, 0xdeadbeef);
	TEST_MEM(fx.a.buf, fx.b.buf, 32);
	TEST_ASSERT(fx_is_zero(fx.a.buf + 4096, 64));
	TEST_STATUS(send_empty(cs.peer), RMEM_WC_SUCCESS);
	expect_recv(6, cs.qp);
}

CONF_TEST(srq, send_with_invalidate_consumes_a_receive,
		RMEM_DEV_CAPA_SRQ | RMEM_DEV_CAPA_SEND_WITH_INV | RMEM_DEV_CAPA_MW_TYPE_2B, 0,
		"IBTA 9.4.1.1.3: SEND with Invalidate")
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND_WITH_INV, NULL, 0);
	struct rmem_send_wr bind;

	fx.mw.mr = fx_mr(fx.a.pd, fx.a.buf, FX_BUF_SIZE, conf_access());
	fx.mw.two = fx_mw(fx.a.pd, RMEM_MW_TYPE_2);
	bind = fx_mw_wr(fx.mw.two, 0, 64, RMEM_ACCESS_REMOTE_WRITE);
	TEST_STATUS(fx_send(fx.a.qp, &bind), RMEM_WC_SUCCESS);
	wr.invalidate_rkey = fx.mw.two->rkey;
	TEST_EQ(post(cs.srq, 5, NULL, 0), 1);
	TEST_EQ(post(cs.srq, 6, NULL, 0), 1);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	expect_recv(5, fx.a.qp);
	TEST_ASSERT((fx.wc.flags & RMEM_WC_WITH_INV) != 0);
	TEST_EQ(fx.wc.invalidated_rkey, wr.invalidate_rkey);
	/* The key is no longer valid: only the receive fails, and the next one remains. */
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	conf_status(CONF_RECV_INV, fx_wait(fx.a.cq));
	TEST_EQ(fx.wc.wr_id, 6);
}

CONF_TEST(srq, keys_of_receives_are_checked_with_the_pd_of_the_srq, RMEM_DEV_CAPA_SRQ, 0,
		"IBTA 10.2.9.1: the L_Keys of an SRQ are validated by its PD")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 64);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);
	struct rmem_pd *pd = fx_pd(conf.dev);
	struct rmem_sge good, bad;
	struct rmem_srq *srq;
	struct rmem_mr *mr;
	uint8_t *mem;
	int status;

	mem = fx_mem(64, 64);
	mr = fx_mr(pd, mem, 64, RMEM_ACCESS_LOCAL_WRITE);
	srq = make_srq(pd, 4);
	TEST_ASSERT(srq != NULL);
	use_srq(srq, 0);
	fx_fill(fx.b.buf, 64, 1);
	good = fx_sge(mr, 0, 64);
	bad = fx_sge(fx.a.mr, 0, 64);
	TEST_EQ(post(srq, 1, &good, 1), 1);
	status = fx_send(fx.b.qp, &wr);
	if (status == RMEM_WC_REM_OP_ERR && conf_deviates("srq_pd"))
		return;
	TEST_STATUS(status, RMEM_WC_SUCCESS);
	expect_recv(1, fx.a.qp);
	TEST_MEM(mem, fx.b.buf, 64);
	TEST_EQ(post(srq, 2, &bad, 1), 1);
	conf_status(CONF_PEER_MEMORY, fx_send(fx.b.qp, &wr));
	conf_status(CONF_RECV_KEY, fx_wait(fx.a.cq));
	TEST_EQ(fx.wc.wr_id, 2);
}

/* Pages are faulted in when the message arrives; an unmapped one fails the receive. */
CONF_TEST(srq, receives_use_on_demand_memory, RMEM_DEV_CAPA_SRQ, RMEM_ACCESS_ON_DEMAND,
		"ibv_query_device_ex(3): IBV_ODP_SUPPORT_SRQ_RECV")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 8192);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);
	struct rmem_sge to;
	struct rmem_mr *mr;
	uint8_t *mem;

	if ((conf.info.odp.rc & RMEM_ODP_SRQ_RECV) == 0)
		test_skip("the device lacks on-demand receives of SRQs");
	mem = mmap(NULL, FX_BUF_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mr = fx_mr(fx.a.pd, mem, FX_BUF_SIZE, RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_ON_DEMAND);
	TEST_ASSERT(mem != MAP_FAILED);
	fx_fill(fx.b.buf, 8192, 1);
	to = fx_sge(mr, 100, 8192);
	TEST_EQ(post(cs.srq, 1, &to, 1), 1);
	TEST_EQ(post(cs.srq, 2, &to, 1), 1);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	expect_recv(1, fx.a.qp);
	TEST_MEM(mem + 100, fx.b.buf, 8192);
	TEST_OK(munmap(mem, FX_BUF_SIZE));
	conf_status(CONF_PEER_MEMORY, fx_send(fx.b.qp, &wr));
	conf_status(CONF_RECV_KEY, fx_wait(fx.a.cq));
	TEST_EQ(fx.wc.wr_id, 2);
}

CONF_TEST(srq, srq_in_use_is_not_destroyed, RMEM_DEV_CAPA_SRQ, 0,
		"IBTA 11.2.3.4: QPs are still associated with the SRQ")
{
	TEST_EQ(rmem_srq_destroy(cs.srq), -EBUSY);
	TEST_EQ(post(cs.srq, 1, NULL, 0), 1);
	TEST_STATUS(send_empty(fx.b.qp), RMEM_WC_SUCCESS);
	expect_recv(1, fx.a.qp);
	TEST_OK(fx_release(fx.a.qp));
	TEST_EQ(rmem_srq_destroy(cs.srq), -EBUSY);
	TEST_OK(fx_release(cs.qp));
	TEST_OK(fx_release(cs.srq));
	TEST_OK(rmem_srq_destroy(NULL));
}

static int
set_limit(uint32_t limit)
{
	const struct rmem_srq_attr attr = {.srq_limit = limit};

	return rmem_srq_modify(cs.srq, &attr, RMEM_SRQ_LIMIT);
}

CONF_TEST(srq, limit_generates_one_event, RMEM_DEV_CAPA_SRQ, 0,
		"IBTA 10.2.9.3: fewer receives than the limit disarm it")
{
	unsigned int i;

	TEST_EQ(query(cs.srq).srq_limit, 0);
	for (i = 0; i < 8; i++)
		TEST_EQ(post(cs.srq, i, NULL, 0), 1);
	TEST_OK(set_limit(6));
	for (i = 0; i < 2; i++) {
		TEST_EQ(query(cs.srq).srq_limit, 6);
		TEST_STATUS(send_empty(i == 0 ? fx.b.qp : cs.peer), RMEM_WC_SUCCESS);
		TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	}
	TEST_EQ(query(cs.srq).srq_limit, 6); /* 6 are posted */
	TEST_STATUS(send_empty(fx.b.qp), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(query(cs.srq).srq_limit, 0);
	TEST_OK(set_limit(3));
	TEST_EQ(query(cs.srq).srq_limit, 3);
	TEST_OK(set_limit(0));
	TEST_EQ(query(cs.srq).srq_limit, 0);
}

CONF_TEST(srq, resize_keeps_receives_in_order, RMEM_DEV_CAPA_SRQ | RMEM_DEV_CAPA_SRQ_RESIZE, 0,
		"IBTA 11.2.3.3: Modify Shared Receive Queue")
{
	static const uint32_t sizes[] = {64, 10, 33, 9};
	struct rmem_srq_attr attr = {.max_wr = 8};
	unsigned int i, wr_id = 0, next = 0;

	for (i = 0; i < 9; i++)
		TEST_EQ(post(cs.srq, wr_id++, NULL, 0), 1);
	/* Too small for the receives posted, unless the device rounds it up. */
	if (rmem_srq_modify(cs.srq, &attr, RMEM_SRQ_MAX_WR) != -EINVAL)
		TEST_ASSERT(query(cs.srq).max_wr >= 9);
	for (i = 0; i < RTE_DIM(sizes); i++) {
		attr.max_wr = RTE_MIN(sizes[i], conf.info.max_srq_wr);
		TEST_OK(rmem_srq_modify(cs.srq, &attr, RMEM_SRQ_MAX_WR));
		TEST_ASSERT(query(cs.srq).max_wr >= attr.max_wr);
		for (; next < 3 * (i + 1); next++) {
			TEST_STATUS(send_empty(next % 2 == 0 ? fx.b.qp : cs.peer), RMEM_WC_SUCCESS);
			expect_recv(next, next % 2 == 0 ? fx.a.qp : cs.qp);
			TEST_EQ(post(cs.srq, wr_id++, NULL, 0), 1);
		}
	}
	attr.max_wr = RTE_MIN(4 * DEPTH, conf.info.max_srq_wr);
	TEST_OK(rmem_srq_modify(cs.srq, &attr, RMEM_SRQ_MAX_WR));
	for (i = wr_id - next; i < attr.max_wr; i++)
		TEST_EQ(post(cs.srq, wr_id++, NULL, 0), 1);
	/* Also above what the device rounds it up to. */
	attr.srq_limit = conf.info.max_srq_wr;
	TEST_ERR(rmem_srq_modify(cs.srq, &attr, RMEM_SRQ_MAX_WR | RMEM_SRQ_LIMIT), EINVAL);
}

static int
create(const void *bad)
{
	struct rmem_srq *srq = NULL;

	return rmem_srq_create(fx.a.pd, bad, &srq);
}

CONF_TEST(srq, bad_configurations_are_refused, RMEM_DEV_CAPA_SRQ, 0, "ibv_create_srq(3)")
{
	const struct rmem_srq_conf good = {.max_wr = 1};
	const struct fx_bad_field rows[] = {
			FX_BAD(rmem_srq_conf, max_wr, 0, EINVAL),
			FX_BAD(rmem_srq_conf, max_wr, conf.info.max_srq_wr + 1, EINVAL),
			FX_BAD(rmem_srq_conf, max_sge, conf.info.max_srq_sge + 1, EINVAL),
	};
	struct rmem_srq *srq;

	fx_expect_bad_fields(&good, sizeof(good), rows, RTE_DIM(rows), create);
	TEST_ERR(rmem_srq_create(NULL, &good, &srq), EINVAL);
	TEST_ERR(rmem_srq_create(fx.a.pd, NULL, &srq), EINVAL);
	TEST_ERR(rmem_srq_create(fx.a.pd, &good, NULL), EINVAL);
}

CONF_TEST(srq, bad_modifications_are_refused, RMEM_DEV_CAPA_SRQ, 0, "ibv_modify_srq(3)")
{
	struct rmem_srq_attr attr = {.reserved = {1}};

	TEST_ERR(rmem_srq_modify(cs.srq, &attr, RMEM_SRQ_LIMIT), EINVAL);
	attr.reserved[0] = 0;
	TEST_ERR(rmem_srq_modify(cs.srq, &attr, 4), EINVAL);
	TEST_ERR(rmem_srq_modify(NULL, &attr, RMEM_SRQ_LIMIT), EINVAL);
	TEST_ERR(rmem_srq_modify((void *)fx.a.qp, &attr, RMEM_SRQ_LIMIT), EINVAL);
	TEST_ERR(rmem_srq_modify(cs.srq, NULL, RMEM_SRQ_LIMIT), EINVAL);
	TEST_ERR(rmem_srq_query(NULL, &attr), EINVAL);
	TEST_ERR(rmem_srq_query(cs.srq, NULL), EINVAL);
	TEST_ERR(set_limit(query(cs.srq).max_wr + 1), EINVAL);
	TEST_OK(rmem_srq_modify(cs.srq, &attr, 0));
	if ((conf.info.capa & RMEM_DEV_CAPA_SRQ_RESIZE) == 0) {
		TEST_ERR(rmem_srq_modify(cs.srq, &attr, RMEM_SRQ_MAX_WR), EOPNOTSUPP);
		return;
	}
	TEST_ERR(rmem_srq_modify(cs.srq, &attr, RMEM_SRQ_MAX_WR), EINVAL);
	attr.max_wr = conf.info.max_srq_wr + 1;
	TEST_ERR(rmem_srq_modify(cs.srq, &attr, RMEM_SRQ_MAX_WR), EINVAL);
}

CONF_TEST(srq, qp_create_refuses_wrong_srq_handles, RMEM_DEV_CAPA_SRQ, 0, "ibv_create_qp(3): srq")
{
	struct rmem_qp_conf qp_conf = fx_qp_conf(fx.a.cq, 1);
	struct rmem_qp *qp;

	qp_conf.max_recv_wr = UINT32_MAX; /* ignored with an SRQ */
	qp_conf.max_recv_sge = UINT16_MAX;
	qp_conf.max_send_sge = 1;
	qp_conf.srq = (void *)fx.a.cq;
	TEST_ERR(rmem_qp_create(fx.a.pd, &qp_conf, &qp), EINVAL);
	qp_conf.srq = cs.srq;
	qp_conf.max_inline_data = 0;
	qp_conf.access &= conf.info.access;
	qp = fx_qp_by(fx.a.pd, &qp_conf);
	TEST_ASSERT(qp->srq == cs.srq);
}

TEST_SUITE(srq, setup, conf_teardown);
