/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * QPs of UC: SEND and WRITE to one peer, which refuses messages silently. A message may be
 * lost in flight, so a case that waits for one sends it until it arrives.
 */

#include <string.h>

#include "conf.h"

static struct rmem_qp *mine, *peer;
static uint32_t several; /* bytes of a message of four packets */

/* Two QPs of UC: mine completes to b's CQ, its peer to a's. */
static void
setup(void)
{
	struct rmem_qp_attr attr;

	conf_setup();
	if ((conf.info.capa & RMEM_DEV_CAPA_UC) == 0)
		return;
	peer = conf_qp_of(fx.a.pd, fx.a.cq, RMEM_ACCESS_REMOTE, RMEM_QPT_UC);
	mine = conf_qp_of(fx.b.pd, fx.b.cq, RMEM_ACCESS_REMOTE, RMEM_QPT_UC);
	TEST_OK(conf_connect(mine, peer));
	TEST_OK(rmem_qp_query(mine, &attr));
	several = 3 * (UINT32_C(128) << attr.path_mtu) + 100;
	TEST_ASSERT(several < FX_BUF_SIZE);
}

static int
deliver(const struct rmem_send_wr *wr)
{
	return conf_deliver(mine, wr, fx.a.cq);
}

static struct rmem_send_wr
write_of(uint8_t opcode, const struct rmem_sge *sge, uint64_t offset, uint32_t rkey)
{
	struct rmem_send_wr wr = fx_rdma(opcode, sge, fx_addr(fx.a.buf) + offset, rkey);

	wr.imm_data = 7;
	return wr;
}

CONF_TEST(uc, send_reaches_the_receive, RMEM_DEV_CAPA_UC, 0, "IBTA 9.8.3; ibv_create_qp(3)")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, several), to = fx_sge(fx.a.mr, 0, several);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);

	fx_fill(fx.b.buf, several, 3);
	TEST_EQ(fx_post_recv(peer, 1, &to, 1), 1);
	TEST_STATUS(deliver(&wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 1);
	TEST_EQ(fx.wc.opcode, RMEM_WC_RECV);
	TEST_EQ(fx.wc.byte_len, several);
	TEST_EQ(fx.wc.qp_num, peer->qp_num);
	TEST_MEM(fx.a.buf, fx.b.buf, several);
	wr.opcode = RMEM_WR_SEND_WITH_IMM;
	wr.imm_data = 42;
	TEST_EQ(fx_post_recv(peer, 2, &to, 1), 1);
	TEST_STATUS(deliver(&wr), RMEM_WC_SUCCESS);
	while (fx.wc.imm_data != 42) { /* the first one, which was late */
		TEST_EQ(fx_post_recv(peer, 2, &to, 1), 1);
		TEST_STATUS(deliver(&wr), RMEM_WC_SUCCESS);
	}
	TEST_EQ(fx.wc.flags & RMEM_WC_WITH_IMM, RMEM_WC_WITH_IMM);
}

CONF_TEST(uc, write_with_imm_reaches_the_memory, RMEM_DEV_CAPA_UC, RMEM_ACCESS_REMOTE_WRITE,
		"IBTA 9.8.3; IBTA 9.4.3: RDMA WRITE")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, several);
	struct rmem_send_wr wr = write_of(RMEM_WR_RDMA_WRITE_WITH_IMM, &from, 16, fx.a.mr->rkey);

	fx_fill(fx.b.buf, several, 5);
	TEST_EQ(fx_post_recv(peer, 1, NULL, 0), 1);
	TEST_STATUS(deliver(&wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_RECV_RDMA_WITH_IMM);
	TEST_EQ(fx.wc.imm_data, 7);
	TEST_MEM(fx.a.buf + 16, fx.b.buf, several);
}

CONF_TEST(uc, write_reaches_the_memory, RMEM_DEV_CAPA_UC, RMEM_ACCESS_REMOTE_WRITE,
		"IBTA 9.4.3: RDMA WRITE")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 64);
	struct rmem_send_wr wr = write_of(RMEM_WR_RDMA_WRITE, &from, 0, fx.a.mr->rkey);
	const struct rmem_send_wr behind = fx_wr(RMEM_WR_SEND, NULL, 0);
	uint64_t deadline = fx_deadline();

	memset(fx.a.buf, 0, 64);
	memset(fx.b.buf, 0x55, 64);
	do {
		TEST_EQ(fx_post_recv(peer, 1, NULL, 0), 1);
		TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
		TEST_STATUS(deliver(&behind), RMEM_WC_SUCCESS);
	} while (fx.a.buf[63] != 0x55 && !fx_is_late(deadline));
	TEST_EQ(fx.a.buf[63], 0x55);
}

CONF_TEST(uc, requests_with_a_response_are_refused, RMEM_DEV_CAPA_UC, 0,
		"IBTA 9.2.1, table 38: opcodes of UC; ibv_post_send(3)")
{
	static const uint8_t opcodes[] = {RMEM_WR_RDMA_READ, RMEM_WR_ATOMIC_CMP_AND_SWP,
			RMEM_WR_ATOMIC_FETCH_AND_ADD, RMEM_WR_SEND_WITH_INV,
			RMEM_WR_RDMA_READ_WITH_INV};
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr;
	size_t i;

	for (i = 0; i < RTE_DIM(opcodes); i++) {
		wr = conf_request(opcodes[i], &sge, fx_addr(fx.a.buf), fx.a.mr->rkey);
		TEST_ERR(rmem_post_send(mine, &wr, 1), EOPNOTSUPP);
	}
}

CONF_TEST(uc, message_without_a_receive_is_dropped, RMEM_DEV_CAPA_UC, 0,
		"IBTA 9.8.3: no acknowledgement; IBTA 9.9.3")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 64), to = fx_sge(fx.a.mr, 0, 64);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND_WITH_IMM, &from, 1);

	wr.imm_data = 1;
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	wr = write_of(RMEM_WR_RDMA_WRITE_WITH_IMM, &from, 0, fx.a.mr->rkey);
	wr.imm_data = 1;
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx_state(mine), RMEM_QPS_RTS);
	TEST_EQ(fx_state(peer), RMEM_QPS_RTS);
	TEST_EQ(fx_post_recv(peer, 1, &to, 1), 1);
	wr = fx_wr(RMEM_WR_SEND, &from, 1);
	TEST_ASSERT(deliver(&wr) == RMEM_WC_SUCCESS);
}

/* The receive is not consumed (class D of IBTA 9.9.3). */
CONF_TEST(uc, message_longer_than_the_receive_is_dropped, RMEM_DEV_CAPA_UC, 0, "IBTA 9.8.3, 9.9.3")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, several), to = fx_sge(fx.a.mr, 0, 64);
	const struct rmem_sge less = fx_sge(fx.b.mr, 0, 64);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);
	int status;

	TEST_EQ(fx_post_recv(peer, 9, &to, 1), 1);
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	wr = fx_wr(RMEM_WR_SEND, &less, 1);
	status = deliver(&wr);
	if (status == RMEM_WC_LOC_QP_OP_ERR && conf_deviates("uc_long"))
		return;
	TEST_STATUS(status, RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 9);
	TEST_EQ(fx.wc.byte_len, 64);
}

CONF_TEST(uc, refused_write_is_silent, RMEM_DEV_CAPA_UC, RMEM_ACCESS_REMOTE_WRITE,
		"IBTA 9.8.3, 9.9.3: an R_Key violation drops the message")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 64), to = fx_sge(fx.a.mr, 4096, 64);
	struct rmem_send_wr wr = write_of(RMEM_WR_RDMA_WRITE, &from, 0, fx.a.mr->rkey ^ 1);

	memset(fx.a.buf, 0, 64);
	memset(fx.b.buf, 0x66, 64);
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	wr = write_of(RMEM_WR_RDMA_WRITE, &from, FX_BUF_SIZE - 8, fx.a.mr->rkey);
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	/* A message that follows shows that these have been processed. */
	TEST_EQ(fx_post_recv(peer, 1, &to, 1), 1);
	wr = fx_wr(RMEM_WR_SEND, &from, 1);
	TEST_STATUS(deliver(&wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx.a.buf[0], 0);
	TEST_EQ(fx.a.buf[FX_BUF_SIZE - 8], 0);
	TEST_EQ(fx_state(peer), RMEM_QPS_RTS);
}

/* In SQE sends are flushed and receives consumed, until the QP moves to RTS again. */
CONF_TEST(uc, failed_request_moves_to_sqe, RMEM_DEV_CAPA_UC, 0, "IBTA 10.3.1.6: Send Queue Error")
{
	const struct rmem_sge good = fx_sge(fx.b.mr, 0, 64), to = fx_sge(fx.a.mr, 0, 64);
	const struct rmem_sge bad = {.addr = fx_addr(fx.b.buf), .length = 8, .lkey = 1};
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &bad, 1);
	struct rmem_qp_attr attr = {.state = RMEM_QPS_RTS};

	conf_status(CONF_LOCAL_KEY, fx_send(mine, &wr));
	if (fx_state(mine) == RMEM_QPS_ERR && conf_deviates("uc_sqe"))
		return;
	TEST_EQ(fx_state(mine), RMEM_QPS_SQE);
	wr = fx_wr(RMEM_WR_SEND, &good, 1);
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_WR_FLUSH_ERR);
	TEST_OK(rmem_qp_modify(mine, &attr, RMEM_QP_STATE));
	TEST_EQ(fx_state(mine), RMEM_QPS_RTS);
	TEST_EQ(fx_post_recv(peer, 1, &to, 1), 1);
	TEST_STATUS(deliver(&wr), RMEM_WC_SUCCESS);
}

/* Of a message that lost a packet nothing is delivered. */
CONF_TEST(uc, messages_arrive_whole_and_in_order, RMEM_DEV_CAPA_UC, 0,
		"IBTA 9.8.2: a missing packet drops the message")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, several), to = fx_sge(fx.a.mr, 0, several);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND_WITH_IMM, &from, 1);
	uint32_t i, last = 0;

	for (i = 1; i <= 32; i++) {
		memset(fx.b.buf, (int)i, several);
		wr.imm_data = i;
		TEST_EQ(fx_post_recv(peer, i, &to, 1), 1);
		TEST_STATUS(deliver(&wr), RMEM_WC_SUCCESS);
		TEST_EQ(fx.wc.byte_len, several);
		TEST_ASSERT(fx.wc.imm_data >= last && fx.wc.imm_data <= i);
		last = fx.wc.imm_data;
		TEST_EQ(fx.a.buf[0], last);
		TEST_ASSERT(memcmp(fx.a.buf, fx.a.buf + 1, several - 1) == 0);
	}
}

CONF_TEST(uc, attributes_of_rc_are_refused, RMEM_DEV_CAPA_UC, 0,
		"ibv_modify_qp(3): attributes required and permitted for UC")
{
	static const uint32_t bits[] = {RMEM_QP_TIMEOUT, RMEM_QP_RETRY_CNT, RMEM_QP_RNR_RETRY,
			RMEM_QP_MAX_QP_RD_ATOMIC};
	const uint32_t init =
			RMEM_QP_STATE | RMEM_QP_PKEY_INDEX | RMEM_QP_PORT | RMEM_QP_ACCESS_FLAGS;
	const uint32_t rtr = RMEM_QP_STATE | RMEM_QP_AV | RMEM_QP_PATH_MTU | RMEM_QP_DEST_QPN |
			RMEM_QP_RQ_PSN;
	struct rmem_qp_attr attr;
	size_t i;

	TEST_OK(rmem_qp_query(mine, &attr));
	TEST_OK(rmem_qp_reset(mine));
	attr.state = RMEM_QPS_INIT;
	TEST_OK(rmem_qp_modify(mine, &attr, init));
	attr.state = RMEM_QPS_RTR;
	TEST_ERR(rmem_qp_modify(mine, &attr, rtr | RMEM_QP_MIN_RNR_TIMER), EINVAL);
	TEST_ERR(rmem_qp_modify(mine, &attr, rtr | RMEM_QP_MAX_DEST_RD_ATOMIC), EINVAL);
	TEST_ERR(rmem_qp_modify(mine, &attr, rtr & ~RMEM_QP_RQ_PSN), EINVAL);
	TEST_OK(rmem_qp_modify(mine, &attr, rtr));
	attr.state = RMEM_QPS_RTS;
	for (i = 0; i < RTE_DIM(bits); i++)
		TEST_ERR(rmem_qp_modify(mine, &attr, RMEM_QP_STATE | RMEM_QP_SQ_PSN | bits[i]),
				EINVAL);
	TEST_ERR(rmem_qp_modify(mine, &attr, RMEM_QP_STATE), EINVAL);
	TEST_OK(rmem_qp_modify(mine, &attr, RMEM_QP_STATE | RMEM_QP_SQ_PSN));
	TEST_EQ(fx_state(mine), RMEM_QPS_RTS);
}

CONF_TEST(uc, message_to_a_reset_peer_is_lost, RMEM_DEV_CAPA_UC, 0, "IBTA 9.8.3")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 64);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);

	TEST_OK(rmem_qp_reset(peer));
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx_state(mine), RMEM_QPS_RTS);
}

TEST_SUITE(uc, setup, conf_teardown);
