/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Packets of XRC: each request names its SRQ, and what a hostile peer makes of that. */

#include <string.h>

#include <rmem_driver.h>
#include <rmem_srq.h>
#include <rmem_xrcd.h>

#include "soft/mem/rsoft_grace.h"

#include "../rc.h"
#include "sides.h"

#define MTU 256u

/* Side 0 has the XRC_SEND QP, side 1 the XRC_RECV QP of domain, with two SRQs of two PDs. */
static struct {
	struct rmem_xrcd *domain;
	struct rmem_pd *pd; /* of srq[1] */
	struct rmem_mr *mr; /* of pd: the memory of side 1 */
	struct rmem_srq *srq[2];
	uint32_t number[2];
	struct rmem_qp *send, *recv;
	struct rwire_addr peer;
} xrc;

static void
make_srq(unsigned int i, struct rmem_pd *pd)
{
	const struct rmem_srq_ext ext = {.xrcd = xrc.domain, .cq = sides[1].recv_cq};
	const struct rmem_srq_conf conf = {.max_wr = 4, .max_sge = 1, .ext = &ext};

	TEST_OK(rmem_srq_create(pd, &conf, &xrc.srq[i]));
	TEST_OK(rmem_srq_num_get(xrc.srq[i], &xrc.number[i]));
}

static void
open_xrc(void)
{
	const struct rmem_xrcd_conf domain_conf = {0};
	struct rmem_qp_conf send = {.type = RMEM_QPT_XRC_SEND,
			.max_send_wr = SLOTS,
			.max_send_sge = 1,
			.access = RMEM_ACCESS_REMOTE};
	struct rmem_qp_ext ext = {0};
	struct rmem_qp_conf recv = {
			.type = RMEM_QPT_XRC_RECV, .access = RMEM_ACCESS_REMOTE, .ext = &ext};
	const struct rmem_qp_conn conn = {
			.timeout = 8, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 1};

	open_sides(MTU);
	send.send_cq = sides[0].send_cq;
	send.recv_cq = sides[0].recv_cq;
	TEST_ASSERT(rwire_addr_parse("127.0.7.1", &xrc.peer));
	TEST_OK(rmem_xrcd_alloc(sides[1].dev, &domain_conf, &xrc.domain));
	TEST_OK(rmem_pd_alloc(sides[1].dev, &xrc.pd));
	TEST_OK(rmem_mr_reg(xrc.pd, sides[1].target, SIZE, 0,
			RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE, &xrc.mr));
	make_srq(0, sides[1].pd);
	make_srq(1, xrc.pd);
	ext.xrcd = xrc.domain;
	TEST_OK(rmem_qp_create(NULL, &recv, &xrc.recv));
	TEST_OK(rmem_qp_create(sides[0].pd, &send, &xrc.send));
	rc_connect(xrc.recv, xrc.send, conn);
	rc_connect(xrc.send, xrc.recv, conn);
}

static void
close_xrc(void)
{
	unsigned int i;

	TEST_OK(rmem_qp_destroy(xrc.send));
	TEST_OK(rmem_qp_destroy(xrc.recv));
	for (i = 0; i < 2; i++)
		TEST_OK(rmem_srq_destroy(xrc.srq[i]));
	TEST_OK(rmem_mr_dereg(xrc.mr));
	TEST_OK(rmem_pd_dealloc(xrc.pd));
	TEST_OK(rmem_xrcd_dealloc(xrc.domain));
	close_sides();
}

static void
post(unsigned int i, uint64_t wr_id, uint32_t length)
{
	const struct rmem_mr *mr = i == 0 ? sides[1].mr : xrc.mr;
	const struct rmem_sge sge = {.addr = (uintptr_t)sides[1].target + (uintptr_t)i * SLOT_SIZE,
			.length = length,
			.lkey = mr->lkey};
	const struct rmem_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};

	TEST_EQ(rmem_srq_post_recv(xrc.srq[i], &wr, 1), 1);
}

static uint32_t
nb_posted(unsigned int i)
{
	struct rmem_srq_attr attr;

	return rmem_srq_query(xrc.srq[i], &attr) == 0 ? attr.nb_wr : UINT32_MAX;
}

static const struct rwire_qp *
wire_of(const struct rmem_qp *qp)
{
	return ((const struct rsoft_qp *)qp)->wire;
}

/* The next packet of the peer, for an SRQ; PSNs advance with those executed. */
static struct rwire_pkt
request(uint8_t opcode, uint32_t payload_len, unsigned int srq)
{
	return (struct rwire_pkt){.service = RWIRE_XRC,
			.opcode = opcode,
			.qpn = xrc.recv->qp_num,
			.psn = wire_of(xrc.recv)->rsp.psn,
			.srqn = xrc.number[srq],
			.addr = (uintptr_t)sides[1].target,
			.rkey = srq == 0 ? sides[1].mr->rkey : xrc.mr->rkey,
			.dma_len = RTE_MAX(payload_len, 8u),
			.payload_len = payload_len,
			.is_ack_req = true};
}

/* Deliver a packet to side 1, whose completions are those of receives. */
static void
deliver(struct rwire_pkt *pkt)
{
	static const uint8_t payload[RWIRE_MAX_MTU] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct rmem_wc wc;

	sim_inject(1, &xrc.peer, pkt, payload, true);
	TEST_EQ(rmem_poll_cq(sides[1].send_cq, &wc, 1), 0);
}

static int
expect_answer(uint8_t opcode, uint8_t syndrome)
{
	struct rwire_pkt got;

	TEST_ASSERT(sim_take(0, &got));
	TEST_EQ(got.service, RWIRE_XRC);
	TEST_EQ(got.opcode, opcode);
	TEST_EQ(got.qpn, xrc.send->qp_num);
	TEST_EQ(got.syndrome, syndrome);
	TEST_ASSERT(!sim_take(0, &got));
	return TEST_SUCCESS;
}

static int
expect_no_answer(void)
{
	struct rwire_pkt got;

	TEST_ASSERT(!sim_take(0, &got));
	return TEST_SUCCESS;
}

static uint32_t
state_of(const struct rmem_qp *qp)
{
	return ((const struct rsoft_qp *)qp)->state;
}

static uint64_t
nb_malformed(unsigned int i)
{
	struct rmem_dev_stats stats;

	return rmem_dev_stats_get(sides[i].dev, &stats) == 0 ? stats.wire_malformed : UINT64_MAX;
}

/* All requests, as they are sent; those of several packets in each. */
TEST(wire_sim, packets_of_xrc_requests_name_their_srq)
{
	static const struct {
		uint8_t opcode;
		uint8_t sent[3];
		uint32_t length;
		unsigned int nb;
	} rows[] = {
			{RMEM_WR_SEND, {RWIRE_SEND_ONLY}, 8, 1},
			{RMEM_WR_SEND, {RWIRE_SEND_FIRST, RWIRE_SEND_MIDDLE, RWIRE_SEND_LAST},
					2 * MTU + 1, 3},
			{RMEM_WR_SEND_WITH_IMM, {RWIRE_SEND_ONLY_WITH_IMM}, 0, 1},
			{RMEM_WR_SEND_WITH_INV, {RWIRE_SEND_ONLY_WITH_INV}, 0, 1},
			{RMEM_WR_RDMA_WRITE, {RWIRE_WRITE_FIRST, RWIRE_WRITE_LAST}, 2 * MTU, 2},
			{RMEM_WR_RDMA_WRITE_WITH_IMM, {RWIRE_WRITE_ONLY_WITH_IMM}, 3, 1},
			{RMEM_WR_RDMA_READ, {RWIRE_READ_REQUEST}, 8, 1},
			{RMEM_WR_ATOMIC_FETCH_AND_ADD, {RWIRE_FETCH_ADD}, 8, 1},
			{RMEM_WR_ATOMIC_CMP_AND_SWP, {RWIRE_COMPARE_SWAP}, 8, 1},
			{RMEM_WR_ATOMIC_WRITE, {RWIRE_ATOMIC_WRITE}, 8, 1},
	};
	struct rmem_sge sge = {0};
	struct rmem_send_wr wr;
	struct rwire_pkt pkt;
	unsigned int i, j;

	open_xrc();
	sge.addr = (uintptr_t)sides[0].local;
	sge.lkey = sides[0].mr->lkey;
	for (i = 0; i < RTE_DIM(rows); i++) {
		sge.length = rows[i].length;
		wr = rc_wr(rows[i].opcode, &sge);
		wr.num_sge = sge.length != 0;
		wr.xrc.remote_srqn = 0xff123400 + i; /* 24 bits are used */
		TEST_EQ(rmem_post_send(xrc.send, &wr, 1), 1);
		for (j = 0; j < rows[i].nb; j++) {
			TEST_ASSERT(sim_take(1, &pkt));
			TEST_EQ(pkt.service, RWIRE_XRC);
			TEST_EQ(pkt.opcode, rows[i].sent[j]);
			TEST_EQ(pkt.qpn, xrc.recv->qp_num);
			TEST_EQ(pkt.srqn, 0x123400 + i);
		}
		TEST_ASSERT(!sim_take(1, &pkt));
	}
	close_xrc();
}

TEST(wire_sim, answers_to_xrc_requests_are_of_xrc)
{
	struct rwire_pkt pkt;
	struct rmem_wc wc;

	open_xrc();
	pkt = request(RWIRE_SEND_ONLY, 8, 1);
	deliver(&pkt);
	TEST_RUN(expect_answer(RWIRE_ACKNOWLEDGE, RWIRE_AETH_RNR | 1));
	post(1, 7, 8);
	deliver(&pkt);
	TEST_RUN(expect_answer(RWIRE_ACKNOWLEDGE, RWIRE_AETH_ACK));
	TEST_EQ(rmem_poll_cq(sides[1].recv_cq, &wc, 1), 1);
	TEST_EQ(wc.wr_id, 7);
	TEST_EQ(wc.qp_num, xrc.recv->qp_num);
	pkt = request(RWIRE_READ_REQUEST, 0, 0);
	deliver(&pkt);
	TEST_RUN(expect_answer(RWIRE_READ_RESPONSE_ONLY, RWIRE_AETH_ACK));
	pkt = request(RWIRE_FETCH_ADD, 0, 1);
	deliver(&pkt);
	TEST_RUN(expect_answer(RWIRE_ATOMIC_ACKNOWLEDGE, RWIRE_AETH_ACK));
	close_xrc();
}

/* A service, a direction and an SRQ that the QP does not have. */
TEST(wire_sim, packets_that_no_xrc_qp_sends_are_dropped)
{
	struct rwire_pkt pkt;

	open_xrc();
	post(0, 1, 8);
	pkt = request(RWIRE_SEND_ONLY, 8, 0);
	pkt.service = RWIRE_RC;
	deliver(&pkt);
	pkt.service = RWIRE_XRC;
	pkt.qpn = sides[1].qp->qp_num;
	pkt.psn = wire_of(sides[1].qp)->rsp.psn;
	deliver(&pkt);
	TEST_EQ(nb_malformed(1), 2);
	/* A response to a QP without requests, and without CQs. */
	pkt = request(RWIRE_ACKNOWLEDGE, 0, 0);
	pkt.psn = wire_of(xrc.recv)->req.una;
	deliver(&pkt);
	pkt.opcode = RWIRE_READ_RESPONSE_ONLY;
	deliver(&pkt);
	TEST_EQ(nb_malformed(1), 4);
	TEST_RUN(expect_no_answer());
	TEST_EQ(nb_posted(0), 1);
	TEST_EQ(state_of(xrc.recv), RMEM_QPS_RTS);
	TEST_EQ(state_of(sides[1].qp), RMEM_QPS_RTS);
	close_xrc();
}

TEST(wire_sim, xrc_send_qp_executes_no_request)
{
	struct rwire_addr addr;
	struct rwire_pkt pkt = {.service = RWIRE_XRC,
			.opcode = RWIRE_READ_REQUEST,
			.dma_len = 8,
			.is_ack_req = true};
	struct rmem_wc wc;

	open_xrc();
	TEST_ASSERT(rwire_addr_parse("127.0.7.2", &addr));
	pkt.qpn = xrc.send->qp_num;
	pkt.psn = wire_of(xrc.send)->rsp.psn;
	pkt.srqn = xrc.number[0];
	pkt.addr = (uintptr_t)sides[0].target;
	pkt.rkey = sides[0].mr->rkey;
	sim_inject(0, &addr, &pkt, NULL, true);
	TEST_EQ(rmem_poll_cq(sides[0].send_cq, &wc, 1), 0);
	TEST_EQ(nb_malformed(0), 1);
	TEST_ASSERT(!sim_take(1, &pkt));
	TEST_EQ(state_of(xrc.send), RMEM_QPS_RTS);
	close_xrc();
}

/* Another number, and those of SRQs that are not of the domain. */
TEST(wire_sim, xrc_request_for_an_srq_outside_of_the_domain_is_refused)
{
	static const uint8_t opcodes[] = {
			RWIRE_SEND_ONLY, RWIRE_WRITE_ONLY, RWIRE_READ_REQUEST, RWIRE_FETCH_ADD};
	struct rmem_qp_stats stats;
	struct rwire_pkt pkt;
	unsigned int i;

	for (i = 0; i < RTE_DIM(opcodes); i++) {
		open_xrc();
		post(0, 1, 8);
		pkt = request(opcodes[i], opcodes[i] == RWIRE_SEND_ONLY ? 8 : 0, 0);
		pkt.srqn ^= 1u << (8 * i % 24);
		deliver(&pkt);
		TEST_RUN(expect_answer(RWIRE_ACKNOWLEDGE, RWIRE_AETH_NAK_INV));
		TEST_EQ(state_of(xrc.recv), RMEM_QPS_ERR);
		TEST_EQ(nb_posted(0), 1);
		TEST_OK(rmem_qp_stats_get(xrc.recv, &stats));
		TEST_EQ(stats.last_error.vendor_err, RMEM_VENDOR_ERR_XRC_SRQ);
		TEST_STATUS(stats.last_error.status, RMEM_WC_REM_INV_REQ_ERR);
		/* In ERR it repeats the answer, and executes nothing. */
		pkt.srqn = xrc.number[0];
		deliver(&pkt);
		TEST_RUN(expect_answer(RWIRE_ACKNOWLEDGE, RWIRE_AETH_NAK_INV));
		TEST_EQ(nb_posted(0), 1);
		close_xrc();
	}
}

TEST(wire_sim, xrc_message_has_one_srq)
{
	struct rwire_pkt pkt;
	struct rmem_wc wc;

	open_xrc();
	post(0, 1, 3 * MTU);
	post(1, 2, 3 * MTU);
	pkt = request(RWIRE_SEND_FIRST, MTU, 0);
	deliver(&pkt);
	TEST_RUN(expect_answer(RWIRE_ACKNOWLEDGE, RWIRE_AETH_ACK));
	pkt = request(RWIRE_SEND_LAST, 8, 1);
	deliver(&pkt);
	TEST_RUN(expect_answer(RWIRE_ACKNOWLEDGE, RWIRE_AETH_NAK_INV));
	TEST_EQ(nb_posted(1), 1);
	TEST_EQ(rmem_poll_cq(sides[1].recv_cq, &wc, 1), 1);
	TEST_EQ(wc.wr_id, 1);
	TEST_STATUS(wc.status, RMEM_WC_WR_FLUSH_ERR);
	close_xrc();
}

TEST(wire_sim, rest_of_an_xrc_message_to_a_destroyed_srq_is_refused)
{
	struct rwire_pkt pkt;
	struct rmem_wc wc;

	open_xrc();
	post(0, 1, 3 * MTU);
	pkt = request(RWIRE_SEND_FIRST, MTU, 0);
	deliver(&pkt);
	TEST_RUN(expect_answer(RWIRE_ACKNOWLEDGE, RWIRE_AETH_ACK));
	pkt = request(RWIRE_SEND_LAST, 8, 0);
	TEST_OK(rmem_srq_destroy(xrc.srq[0]));
	deliver(&pkt);
	TEST_RUN(expect_answer(RWIRE_ACKNOWLEDGE, RWIRE_AETH_NAK_INV));
	TEST_EQ(state_of(xrc.recv), RMEM_QPS_ERR);
	TEST_EQ(rmem_poll_cq(sides[1].recv_cq, &wc, 1), 0);
	make_srq(0, sides[1].pd);
	close_xrc();
}

/* A requester that misses its data sends the READ again, while a later message is in progress. */
TEST(wire_sim, duplicate_xrc_read_has_the_pd_of_its_srq)
{
	struct rwire_pkt read, pkt;
	struct rmem_wc wc;

	open_xrc();
	post(1, 2, 3 * MTU);
	read = request(RWIRE_READ_REQUEST, 0, 0);
	deliver(&read);
	TEST_RUN(expect_answer(RWIRE_READ_RESPONSE_ONLY, RWIRE_AETH_ACK));
	pkt = request(RWIRE_SEND_FIRST, MTU, 1);
	deliver(&pkt);
	TEST_RUN(expect_answer(RWIRE_ACKNOWLEDGE, RWIRE_AETH_ACK));
	deliver(&read);
	TEST_RUN(expect_answer(RWIRE_READ_RESPONSE_ONLY, RWIRE_AETH_ACK));
	/* Of the other PD, or of no SRQ: a duplicate that fails has no effect. */
	read.rkey = xrc.mr->rkey;
	read.srqn = xrc.number[0] ^ 1;
	deliver(&read);
	TEST_RUN(expect_no_answer());
	pkt = request(RWIRE_SEND_LAST, 8, 1);
	deliver(&pkt);
	TEST_RUN(expect_answer(RWIRE_ACKNOWLEDGE, RWIRE_AETH_ACK));
	TEST_EQ(rmem_poll_cq(sides[1].recv_cq, &wc, 1), 1);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	TEST_EQ(wc.byte_len, MTU + 8);
	close_xrc();
}

#define LOSSY_OPS   300u
#define LOSSY_DEPTH 8u
#define LOSSY_LEN   (2 * MTU + 88)

/* Requests and messages so far; the SRQ of message m is m % 2, and posts follow that order. */
static struct {
	uint64_t posted, done, sent, received, nb_recv;
	uint8_t constant[LOSSY_LEN]; /* what READs return */
} lossy;

/* Each request in flight has a slot of its own on both sides; the last slots are those of READs. */
static void
lossy_post(void)
{
	static const uint8_t opcodes[] = {
			RMEM_WR_RDMA_READ, RMEM_WR_SEND, RMEM_WR_RDMA_WRITE, RMEM_WR_SEND};
	const uint64_t i = lossy.posted++, at = i % LOSSY_DEPTH * SLOT_SIZE;
	const unsigned int srq = lossy.sent % 2;
	const struct rmem_sge sge = {.addr = (uintptr_t)sides[0].local + at,
			.length = LOSSY_LEN,
			.lkey = sides[0].mr->lkey};
	struct rmem_send_wr wr = rc_wr(opcodes[i % RTE_DIM(opcodes)], &sge);

	memset(sides[0].local + at, (uint8_t)i, LOSSY_LEN);
	wr.wr_id = i;
	wr.xrc.remote_srqn = xrc.number[srq];
	wr.rdma.rkey = srq == 0 ? sides[1].mr->rkey : xrc.mr->rkey;
	wr.rdma.remote_addr = (uintptr_t)sides[1].target + at;
	if (wr.opcode == RMEM_WR_RDMA_READ)
		wr.rdma.remote_addr = (uintptr_t)sides[1].target + SIZE - SLOT_SIZE;
	if (wr.opcode == RMEM_WR_SEND)
		memcpy(sides[0].local + at, &lossy.sent, sizeof(lossy.sent));
	lossy.sent += wr.opcode == RMEM_WR_SEND;
	TEST_EQ(rmem_post_send(xrc.send, &wr, 1), 1);
}

/* The receive of message m, in a slot of its own. */
static void
lossy_recv(void)
{
	const uint64_t m = lossy.nb_recv++;
	const struct rmem_mr *mr = m % 2 == 0 ? sides[1].mr : xrc.mr;
	const struct rmem_sge sge = {
			.addr = (uintptr_t)sides[1].target + (LOSSY_DEPTH + m % 4) * SLOT_SIZE,
			.length = LOSSY_LEN,
			.lkey = mr->lkey};
	const struct rmem_recv_wr wr = {.wr_id = m, .sg_list = &sge, .num_sge = 1};

	TEST_EQ(rmem_srq_post_recv(xrc.srq[m % 2], &wr, 1), 1);
}

static void
lossy_poll(void)
{
	struct rmem_wc wc;
	uint64_t number;

	while (rmem_poll_cq(sides[1].recv_cq, &wc, 1) == 1) {
		TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
		TEST_EQ(wc.wr_id, lossy.received);
		TEST_EQ(wc.byte_len, LOSSY_LEN);
		memcpy(&number, sides[1].target + (LOSSY_DEPTH + lossy.received % 4) * SLOT_SIZE,
				sizeof(number));
		TEST_EQ(number, lossy.received);
		lossy.received++;
		lossy_recv();
	}
	while (rmem_poll_cq(sides[0].send_cq, &wc, 1) == 1) {
		const uint64_t at = lossy.done % LOSSY_DEPTH * SLOT_SIZE;

		TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
		TEST_EQ(wc.wr_id, lossy.done);
		if (lossy.done % 4 == 0)
			TEST_MEM(sides[0].local + at, lossy.constant, LOSSY_LEN);
		if (lossy.done % 4 == 2)
			TEST_MEM(sides[1].target + at, sides[0].local + at, LOSSY_LEN);
		lossy.done++;
	}
}

/* To two SRQs in turn, of two PDs: a READ is repeated while a message to the other one arrives. */
TEST(wire_sim, loss_changes_no_result_of_xrc)
{
	const uint32_t percent = UINT32_MAX / 100;
	const struct sim_faults faults = {.loss = 5 * percent, .dup = 5 * percent, .delay_us = 30};
	struct rmem_dev_stats stats;
	uint32_t i, idle = 0;

	open_xrc();
	sim_start(7, &faults);
	memset(&lossy, 0, sizeof(lossy));
	for (i = 0; i < LOSSY_LEN; i++)
		sides[1].target[SIZE - SLOT_SIZE + i] = lossy.constant[i] = (uint8_t)(i * 7);
	for (i = 0; i < 3; i++)
		lossy_recv();
	while (lossy.done != LOSSY_OPS) {
		const uint64_t done = lossy.done + lossy.received;

		while (lossy.posted != LOSSY_OPS && lossy.posted - lossy.done < LOSSY_DEPTH)
			lossy_post();
		lossy_poll();
		idle = lossy.done + lossy.received == done ? idle + 1 : 0;
		TEST_ASSERT(idle < 200000);
		sim_step(idle > 100);
	}
	TEST_EQ(lossy.received, lossy.sent);
	TEST_OK(rmem_dev_stats_get(sides[1].dev, &stats));
	TEST_ASSERT(stats.wire_duplicates != 0 && stats.wire_malformed == 0);
	close_xrc();
}

/* It has no CQ, and no requests. */
TEST(wire_sim, xrc_recv_qp_fails_with_its_device)
{
	unsigned int lcore;

	open_xrc();
	lcore = rsoft_grace_enter();
	rwire_fail_qp((struct rsoft_qp *)xrc.recv, lcore);
	rsoft_grace_leave(lcore);
	TEST_EQ(state_of(xrc.recv), RMEM_QPS_ERR);
	close_xrc();
}
