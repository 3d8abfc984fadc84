/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Errors: the first one moves the QP to ERR, later requests are flushed, a reset recovers it. */

#include <string.h>

#include "conf.h"

static struct rmem_send_wr
good_write(const struct rmem_sge *sge)
{
	return fx_rdma_to(RMEM_WR_RDMA_WRITE, sge, &fx.a);
}

CONF_TEST(error, first_error_flushes_the_rest, 0, 0,
		"IBTA 10.3.1.5: requests after the first error are flushed")
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wrs[6];
	struct rmem_wc wcs[6];
	unsigned int i;

	fx_fill(fx.b.buf, 8, 1);
	for (i = 0; i < RTE_DIM(wrs); i++) {
		wrs[i] = good_write(&sge);
		wrs[i].rdma.remote_addr += i * 64;
		wrs[i].wr_id = i;
		wrs[i].flags = RMEM_SEND_SIGNALED;
	}
	wrs[2].rdma.rkey ^= 0x5500;
	TEST_EQ(rmem_post_send(fx.b.qp, wrs, RTE_DIM(wrs)), RTE_DIM(wrs));
	TEST_EQ(fx_poll(fx.b.cq, wcs, RTE_DIM(wcs)), RTE_DIM(wcs));
	for (i = 0; i < RTE_DIM(wcs); i++) {
		TEST_EQ(wcs[i].wr_id, i);
		TEST_EQ(wcs[i].qp_num, fx.b.qp->qp_num);
	}
	TEST_STATUS(wcs[0].status, RMEM_WC_SUCCESS);
	TEST_STATUS(wcs[1].status, RMEM_WC_SUCCESS);
	conf_status(CONF_REMOTE_KEY, wcs[2].status);
	for (i = 3; i < RTE_DIM(wcs); i++)
		TEST_STATUS(wcs[i].status, RMEM_WC_WR_FLUSH_ERR);
	TEST_MEM(fx.a.buf + 64, fx.b.buf, 8);
	TEST_ASSERT(fx_is_zero(fx.a.buf + 128, 4096));
}

CONF_TEST(error, unsignaled_failure_generates_a_completion, 0, 0,
		"ibv_post_send(3): a failed request always completes")
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr = good_write(&sge);

	wr.rdma.rkey ^= 0x5500;
	wr.wr_id = 99;
	TEST_EQ(fx_post(fx.b.qp, &wr), 1);
	conf_status(CONF_REMOTE_KEY, fx_wait(fx.b.cq));
	TEST_EQ(fx.wc.wr_id, 99);
}

/* A signaled one covers those before it; they generate no completions. */
CONF_TEST(error, only_signaled_success_generates_a_completion, 0, 0,
		"ibv_post_send(3): IBV_SEND_SIGNALED")
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wrs[8];
	unsigned int i;

	for (i = 0; i < RTE_DIM(wrs); i++) {
		wrs[i] = good_write(&sge);
		wrs[i].wr_id = i;
		wrs[i].flags = i % 4 == 3 ? RMEM_SEND_SIGNALED : 0;
	}
	TEST_EQ(rmem_post_send(fx.b.qp, wrs, RTE_DIM(wrs)), RTE_DIM(wrs));
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 3);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 7);
	TEST_ASSERT(fx_is_idle(fx.b.cq));
}

/* The refusing side moves to ERR too; both flush their receives. */
CONF_TEST(error, receives_of_both_sides_are_flushed, 0, 0,
		"IBTA 9.9.3: class C errors put the responder's QP into Error")
{
	unsigned int i;

	for (i = 0; i < 5; i++) {
		TEST_EQ(fx_post_recv(fx.a.qp, 50 + i, NULL, 0), 1);
		TEST_EQ(fx_post_recv(fx.b.qp, 60 + i, NULL, 0), 1);
	}
	conf_status(CONF_REMOTE_KEY,
			conf_do(RMEM_WR_RDMA_WRITE, fx_addr(fx.a.buf), 8, fx.a.mr->rkey ^ 0x5500));
	fx_expect_flush(fx.a.cq, 50, 5);
	fx_expect_flush(fx.b.cq, 60, 5);
	conf_expect_err(fx.a.qp);
}

CONF_TEST(error, write_with_imm_that_is_refused_fails_a_receive, 0, 0,
		"IBTA 11.6.2: Local Access Error of a WRITE with immediate data")
{
	unsigned int i;
	int status;

	for (i = 0; i < 3; i++)
		TEST_EQ(fx_post_recv(fx.a.qp, 50 + i, NULL, 0), 1);
	conf_status(CONF_REMOTE_KEY,
			conf_do(RMEM_WR_RDMA_WRITE_WITH_IMM, fx_addr(fx.a.buf), 8,
					fx.a.mr->rkey ^ 0x5500));
	status = fx_wait(fx.a.cq);
	TEST_EQ(fx.wc.wr_id, 50);
	if (status != RMEM_WC_LOC_ACCESS_ERR) {
		TEST_STATUS(status, RMEM_WC_REM_ACCESS_ERR);
		TEST_ASSERT(conf_deviates("imm_recv"));
	}
	fx_expect_flush(fx.a.cq, 51, 2);
	TEST_ASSERT(fx_is_zero(fx.a.buf, 64));
}

/* The peer responds first; the response is written to local memory afterwards. */
CONF_TEST(error, remote_error_precedes_the_local_one, 0, 0,
		"IBTA 9.9.2: a response is checked against local memory when it arrives")
{
	static const uint8_t opcodes[] = {RMEM_WR_RDMA_READ, RMEM_WR_ATOMIC_FETCH_AND_ADD,
			RMEM_WR_ATOMIC_CMP_AND_SWP};
	struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr;
	unsigned int i;

	sge.lkey ^= 0x5500;
	for (i = 0; i < RTE_DIM(opcodes); i++) {
		if (i != 0 && (conf.info.capa & RMEM_DEV_CAPA_ATOMIC) == 0)
			break;
		wr = conf_request(opcodes[i], &sge, fx_addr(fx.a.buf), fx.a.mr->rkey ^ 0x5500);
		conf_refused(CONF_REMOTE_KEY, fx.b.qp, &wr);
	}
	wr = good_write(&sge);
	wr.rdma.rkey ^= 0x5500;
	conf_refused(CONF_LOCAL_KEY, fx.b.qp, &wr);
}

/* One that only receives, and one that does neither. */
CONF_TEST(error, qp_needs_no_send_queue, 0, 0, "ibv_create_qp(3): max_send_wr may be 0")
{
	struct rmem_qp_conf qp = fx_qp_conf(fx.a.cq, RTE_MIN(8u, conf.info.max_recv_wr));
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 8), to = fx_sge(fx.a.mr, 0, 8);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);

	qp.max_send_wr = 0;
	qp.max_send_sge = 0;
	qp.max_inline_data = 0;
	qp.max_recv_sge = 1;
	qp.access &= conf.info.access;
	TEST_OK(fx_release(fx.a.qp));
	fx.a.qp = fx_qp_by(fx.a.pd, &qp);
	conf_reconnect();
	TEST_ERR(fx_post(fx.a.qp, &(struct rmem_send_wr){.opcode = RMEM_WR_SEND}), ENOSPC);
	TEST_EQ(fx_post_recv(fx.a.qp, 3, &to, 1), 1);
	fx_fill(fx.b.buf, 8, 1);
	fx_deliver(&fx.b, &fx.a, &wr);
	TEST_MEM(fx.a.buf, fx.b.buf, 8);
	qp.max_recv_wr = 0;
	fx_qp_by(fx.a.pd, &qp);
}

CONF_TEST(error, qp_in_err_flushes_posted_requests, 0, 0,
		"IBTA 10.3.1.5: requests posted in Error are flushed")
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr = good_write(&sge);
	unsigned int i;

	fx_fill(fx.b.buf, 8, 1);
	for (i = 0; i < 3; i++)
		TEST_EQ(fx_post_recv(fx.b.qp, 10 + i, NULL, 0), 1);
	TEST_OK(rmem_qp_set_error(fx.b.qp));
	conf_expect_err(fx.b.qp);
	fx_expect_flush(fx.b.cq, 10, 3);
	for (i = 0; i < 3; i++) {
		wr.wr_id = 20 + i;
		TEST_EQ(fx_post(fx.b.qp, &wr), 1);
	}
	fx_expect_flush(fx.b.cq, 20, 3);
	TEST_ASSERT(fx_is_zero(fx.a.buf, 64));
}

CONF_TEST(error, completed_requests_precede_flushed_ones, 0, 0,
		"IBTA 10.3.1.5: requests in progress complete or are flushed, in order")
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr = good_write(&sge);
	struct rmem_wc wcs[4];
	bool has_flush = false;
	unsigned int i;

	fx_fill(fx.b.buf, 8, 1);
	wr.flags = RMEM_SEND_SIGNALED;
	for (i = 0; i < RTE_DIM(wcs); i++) {
		wr.wr_id = i;
		wr.rdma.remote_addr = fx_addr(fx.a.buf) + i * 64;
		TEST_EQ(fx_post(fx.b.qp, &wr), 1);
	}
	TEST_OK(rmem_qp_set_error(fx.b.qp));
	TEST_EQ(fx_poll(fx.b.cq, wcs, RTE_DIM(wcs)), RTE_DIM(wcs));
	for (i = 0; i < RTE_DIM(wcs); i++) {
		TEST_EQ(wcs[i].wr_id, i);
		has_flush |= wcs[i].status != RMEM_WC_SUCCESS;
		TEST_STATUS(wcs[i].status, has_flush ? RMEM_WC_WR_FLUSH_ERR : RMEM_WC_SUCCESS);
		if (!has_flush)
			TEST_MEM(fx.a.buf + i * 64, fx.b.buf, 8);
	}
}

CONF_TEST(error, qp_in_err_flushes_posted_receives, 0, 0,
		"IBTA 10.3.1.5: receives posted in Error are flushed")
{
	TEST_OK(rmem_qp_set_error(fx.b.qp));
	TEST_EQ(fx_post_recv(fx.b.qp, 30, NULL, 0), 1);
	if (!conf_is_known_deviation("recv_in_err")) {
		fx_expect_flush(fx.b.cq, 30, 1);
		return;
	}
	if (fx_is_idle(fx.b.cq)) {
		TEST_ASSERT(conf_deviates("recv_in_err"));
		return;
	}
	TEST_STATUS(fx.wc.status, RMEM_WC_WR_FLUSH_ERR);
	TEST_EQ(fx.wc.wr_id, 30);
}

CONF_TEST(error, qp_is_usable_after_a_reset, 0, 0,
		"ibv_modify_qp(3): RESET from any state; no posts in RESET")
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	const struct rmem_send_wr wr = good_write(&sge);
	unsigned int i;

	for (i = 0; i < 20; i++) {
		conf_denied(fx_addr(fx.a.buf), 8, fx.a.mr->rkey ^ 0x5500);
		conf_granted(fx_addr(fx.a.buf), 100, fx.a.mr->rkey, fx.a.buf);
	}
	TEST_OK(rmem_qp_set_error(fx.b.qp));
	TEST_OK(rmem_qp_set_error(fx.b.qp));
	TEST_OK(rmem_qp_reset(fx.b.qp));
	TEST_OK(rmem_qp_reset(fx.b.qp));
	TEST_EQ(fx_state(fx.b.qp), RMEM_QPS_RESET);
	TEST_ERR(fx_post(fx.b.qp, &wr), EBUSY);
	TEST_ERR(fx_post_recv(fx.b.qp, 1, NULL, 0), EBUSY);
	TEST_ERR(rmem_qp_set_error(fx.b.qp), EBUSY);
}

/* Posted receives are dropped, without a completion. */
CONF_TEST(error, reset_drops_posted_requests, 0, 0,
		"IBTA 10.3.1.1: outstanding requests are removed without completing")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 8), to = fx_sge(fx.a.mr, 0, 8);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);
	unsigned int i;

	for (i = 0; i < 4; i++)
		TEST_EQ(fx_post_recv(fx.a.qp, i, &to, 1), 1);
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_ASSERT(fx_is_idle(fx.a.cq));
	conf_reconnect();
	TEST_EQ(fx_post_recv(fx.a.qp, 70, &to, 1), 1);
	fx_deliver(&fx.b, &fx.a, &wr);
	TEST_EQ(fx.wc.wr_id, 70);
}

/* A separate pair, with retries. */
static int
connect_with(struct rmem_qp *qp, struct rmem_qp *peer, uint8_t timeout, uint8_t rnr_retry)
{
	struct rmem_qp_conn conn = fx_conn();

	conn.timeout = timeout;
	conn.retry_cnt = 2;
	conn.rnr_retry = rnr_retry;
	return fx_connect_by(qp, peer, &conn);
}

CONF_TEST(error, message_without_receive_fails_after_its_retries, 0, 0,
		"ibv_modify_qp(3): rnr_retry")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 8);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);

	TEST_OK(rmem_qp_reset(fx.b.qp));
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(connect_with(fx.b.qp, fx.a.qp, 18, 2));
	TEST_OK(connect_with(fx.a.qp, fx.b.qp, 18, 2));
	conf_status(CONF_NO_RECV, fx_send(fx.b.qp, &wr));
	conf_expect_err(fx.b.qp);
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_RTS);
}

CONF_TEST(error, message_waits_for_its_receive, 0, 0, "ibv_modify_qp(3): rnr_retry 7 is unlimited")
{
	static const uint8_t opcodes[] = {RMEM_WR_SEND, RMEM_WR_RDMA_WRITE_WITH_IMM};
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 8), to = fx_sge(fx.a.mr, 0, 8);
	unsigned int i;

	for (i = 0; i < RTE_DIM(opcodes); i++) {
		struct rmem_send_wr wr = fx_rdma_to(opcodes[i], &from, &fx.a);

		fx_fill(fx.b.buf, 8, i);
		wr.flags = RMEM_SEND_SIGNALED;
		TEST_EQ(fx_post(fx.b.qp, &wr), 1);
		TEST_ASSERT(fx_is_idle(fx.b.cq) && fx_is_idle(fx.a.cq));
		TEST_EQ(fx_post_recv(fx.a.qp, 1, &to, 1), 1);
		TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
		TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
		TEST_MEM(fx.a.buf, fx.b.buf, 8);
	}
}

CONF_TEST(error, request_to_missing_peer_fails, 0, 0, "ibv_modify_qp(3): timeout and retry_cnt")
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	const struct rmem_send_wr wr = good_write(&sge);

	TEST_OK(rmem_qp_reset(fx.b.qp));
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(connect_with(fx.b.qp, fx.a.qp, 14, 2));
	conf_status(CONF_NO_PEER, fx_send(fx.b.qp, &wr));
	conf_expect_err(fx.b.qp);
}

CONF_TEST(error, post_to_a_full_queue_is_enospc, 0, 0,
		"ibv_post_send(3): an entry is free when its completion was polled")
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr = good_write(&sge);
	struct rmem_qp_attr attr;
	unsigned int i;

	TEST_OK(rmem_qp_query(fx.b.qp, &attr));
	wr.flags = RMEM_SEND_SIGNALED;
	for (i = 0; i < attr.max_send_wr; i++) {
		wr.wr_id = i;
		TEST_EQ(fx_post(fx.b.qp, &wr), 1);
	}
	TEST_ERR(fx_post(fx.b.qp, &wr), ENOSPC);
	fx_expect_done(fx.b.cq, 0, attr.max_send_wr);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	for (i = 0; i < attr.max_recv_wr; i++)
		TEST_EQ(fx_post_recv(fx.b.qp, i, NULL, 0), 1);
	TEST_ERR(fx_post_recv(fx.b.qp, i, NULL, 0), ENOSPC);
}

/* The post stops there; preceding requests are executed. */
CONF_TEST(error, malformed_request_ends_the_burst, 0, 0, "ibv_post_send(3): bad_wr")
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_recv_wr recv = {.num_sge = conf.info.max_recv_sge + 1};
	struct rmem_send_wr wrs[4];
	unsigned int i;

	TEST_ERR(rmem_post_recv(fx.b.qp, &recv, 1), EINVAL);
	recv = (struct rmem_recv_wr){.reserved = 1};
	TEST_ERR(rmem_post_recv(fx.b.qp, &recv, 1), EINVAL);
	fx_fill(fx.b.buf, 8, 3);
	for (i = 0; i < RTE_DIM(wrs); i++) {
		wrs[i] = good_write(&sge);
		wrs[i].rdma.remote_addr += 8 * i;
	}
	wrs[1].flags = RMEM_SEND_SIGNALED;
	wrs[2].opcode = 200;
	TEST_EQ(rmem_post_send(fx.b.qp, wrs, RTE_DIM(wrs)), 2);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf, fx.b.buf, 8);
	TEST_MEM(fx.a.buf + 8, fx.b.buf, 8);
	TEST_ASSERT(fx_is_zero(fx.a.buf + 16, 16));
	TEST_ERR(fx_post(fx.b.qp, &wrs[2]), EINVAL);
	wrs[2] = good_write(&sge);
	wrs[2].flags = 1 << 7;
	TEST_ERR(fx_post(fx.b.qp, &wrs[2]), EINVAL);
	wrs[2].flags = 0;
	wrs[2].num_sge = 1000;
	TEST_ERR(fx_post(fx.b.qp, &wrs[2]), EINVAL);
	TEST_STATUS(fx_send(fx.b.qp, &wrs[0]), RMEM_WC_SUCCESS);
}

CONF_TEST(error, opcodes_without_capability_are_refused, 0, 0,
		"rmem_fp.h: -EOPNOTSUPP without the capability")
{
	static const struct {
		uint8_t opcode;
		uint64_t capa;
	} rows[] = {
			{RMEM_WR_LOCAL_INV, RMEM_DEV_CAPA_LOCAL_INV},
			{RMEM_WR_SEND_WITH_INV, RMEM_DEV_CAPA_SEND_WITH_INV},
			{RMEM_WR_RDMA_READ_WITH_INV, RMEM_DEV_CAPA_READ_WITH_INV},
			{RMEM_WR_REG_MR, RMEM_DEV_CAPA_FAST_REG},
			{RMEM_WR_BIND_MW, RMEM_DEV_CAPA_MW_TYPE_2B},
			{RMEM_WR_UMR, RMEM_DEV_CAPA_UMR},
			{RMEM_WR_ATOMIC_FETCH_AND_ADD, RMEM_DEV_CAPA_ATOMIC},
	};
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	unsigned int i, nb = 0;

	for (i = 0; i < RTE_DIM(rows); i++) {
		struct rmem_send_wr wr = fx_wr(rows[i].opcode, NULL, 0);

		if ((conf.info.capa & rows[i].capa) != 0)
			continue;
		if (rows[i].opcode == RMEM_WR_ATOMIC_FETCH_AND_ADD)
			wr = conf_request(rows[i].opcode, &sge, fx_addr(fx.a.buf), fx.a.mr->rkey);
		TEST_ERR(fx_post(fx.b.qp, &wr), EOPNOTSUPP);
		nb++;
	}
	TEST_SKIP_IF(!(nb != 0), "the device has the capability for each opcode");
}

CONF_TEST(error, unaligned_atomic_is_refused, RMEM_DEV_CAPA_ATOMIC, 0,
		"IBTA 9.4.5: the address is a multiple of 8")
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	unsigned int i;

	for (i = 1; i < 8; i++) {
		const struct rmem_send_wr wr =
				conf_request(i % 2 == 0 ? RMEM_WR_ATOMIC_FETCH_AND_ADD
							: RMEM_WR_ATOMIC_CMP_AND_SWP,
						&sge, fx_addr(fx.a.buf) + i, fx.a.mr->rkey);

		conf_refused(CONF_UNALIGNED, fx.b.qp, &wr);
	}
	TEST_ASSERT(fx_is_zero(fx.a.buf, 64));
}

/* a receives nothing. */
CONF_TEST(error, local_error_leaves_the_peer_in_rts, 0, 0,
		"IBTA 9.9.2: a requester's local error sends nothing")
{
	struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr = good_write(&sge);

	sge.addr += FX_BUF_SIZE;
	TEST_EQ(fx_post_recv(fx.a.qp, 1, NULL, 0), 1);
	conf_status(CONF_LOCAL_KEY, fx_send(fx.b.qp, &wr));
	conf_expect_err(fx.b.qp);
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_RTS);
	TEST_ASSERT(fx_is_idle(fx.a.cq));
}

TEST_SUITE(error, conf_setup, conf_teardown);
