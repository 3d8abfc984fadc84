/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Packets of XRC: each request names its SRQ, and what a hostile peer makes of that. */

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include <rmem_driver.h>

#include "soft/mem/rsoft_grace.h"

#include "../rc.h"
#include "xrc_link.h"

static const struct rwire_qp *
wire_of(const struct rmem_qp *qp)
{
	return ((const struct rsoft_qp *)qp)->wire;
}

/* The next packet of the peer, for the SRQ of the connected QPs' PD or the other one. */
static struct rwire_pkt
request(uint8_t opcode, uint32_t payload_len, bool is_other)
{
	struct rwire_pkt pkt =
			link_packet(opcode, is_other ? link_.other.number : link_.number, false);

	pkt.addr = (uintptr_t)sides[1].target;
	pkt.rkey = is_other ? link_.other.mr->rkey : sides[1].mr->rkey;
	pkt.dma_len = RTE_MAX(payload_len, 8u);
	pkt.payload_len = payload_len;
	return pkt;
}

static void
expect_ack(uint8_t syndrome)
{
	xrc_expect(RWIRE_ACKNOWLEDGE, syndrome);
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

	link_open_two();
	sge.addr = (uintptr_t)sides[0].local;
	sge.lkey = sides[0].mr->lkey;
	for (i = 0; i < RTE_DIM(rows); i++) {
		sge.length = rows[i].length;
		wr = rc_wr(rows[i].opcode, &sge);
		wr.num_sge = sge.length != 0;
		wr.xrc.remote_srqn = 0xff123400 + i; /* 24 bits are used */
		TEST_EQ(rmem_post_send(link_.send, &wr, 1), 1);
		for (j = 0; j < rows[i].nb; j++) {
			TEST_ASSERT(sim_take(1, &pkt));
			TEST_EQ(pkt.service, RWIRE_XRC);
			TEST_EQ(pkt.opcode, rows[i].sent[j]);
			TEST_EQ(pkt.qpn, link_.recv->qp_num);
			TEST_EQ(pkt.srqn, 0x123400 + i);
		}
		TEST_ASSERT(!sim_take(1, &pkt));
	}
	link_close();
}

TEST(wire_sim, answers_to_xrc_requests_are_of_xrc)
{
	struct rwire_pkt pkt;
	struct rmem_wc wc;

	link_open_two();
	pkt = request(RWIRE_SEND_ONLY, 8, true);
	link_deliver(pkt);
	expect_ack(RWIRE_AETH_RNR | 1);
	xrc_post(link_.other.srq, link_.other.mr, sides[1].target, 7, 8);
	link_deliver(pkt);
	expect_ack(RWIRE_AETH_ACK);
	TEST_EQ(rmem_poll_cq(sides[1].recv_cq, &wc, 1), 1);
	TEST_EQ(wc.wr_id, 7);
	TEST_EQ(wc.qp_num, link_.recv->qp_num);
	pkt = request(RWIRE_READ_REQUEST, 0, false);
	link_deliver(pkt);
	xrc_expect(RWIRE_READ_RESPONSE_ONLY, RWIRE_AETH_ACK);
	pkt = request(RWIRE_FETCH_ADD, 0, true);
	link_deliver(pkt);
	xrc_expect(RWIRE_ATOMIC_ACKNOWLEDGE, RWIRE_AETH_ACK);
	link_close();
}

/* A service, a direction and an SRQ that the QP does not have. */
TEST(wire_sim, packets_that_no_xrc_qp_sends_are_dropped)
{
	struct rwire_pkt pkt;

	link_open_two();
	link_post(1, 8);
	pkt = request(RWIRE_SEND_ONLY, 8, false);
	pkt.service = RWIRE_RC;
	link_deliver(pkt);
	pkt.service = RWIRE_XRC;
	pkt.qpn = sides[1].qp->qp_num;
	pkt.psn = wire_of(sides[1].qp)->rsp.psn;
	link_deliver(pkt);
	TEST_EQ(nb_malformed(1), 2);
	/* A response to a QP without requests, and without CQs. */
	pkt = request(RWIRE_ACKNOWLEDGE, 0, false);
	pkt.psn = wire_of(link_.recv)->req.una;
	link_deliver(pkt);
	pkt.opcode = RWIRE_READ_RESPONSE_ONLY;
	link_deliver(pkt);
	TEST_EQ(nb_malformed(1), 4);
	xrc_expect_nothing();
	TEST_EQ(link_nb_posted(), 1);
	TEST_EQ(state_of(link_.recv), RMEM_QPS_RTS);
	TEST_EQ(state_of(sides[1].qp), RMEM_QPS_RTS);
	link_close();
}

TEST(wire_sim, xrc_send_qp_executes_no_request)
{
	struct rwire_addr addr;
	struct rwire_pkt pkt = {.service = RWIRE_XRC,
			.opcode = RWIRE_READ_REQUEST,
			.dma_len = 8,
			.is_ack_req = true};
	struct rmem_wc wc;

	link_open_two();
	TEST_ASSERT(rwire_addr_parse("127.0.7.2", &addr));
	pkt.qpn = link_.send->qp_num;
	pkt.psn = wire_of(link_.send)->rsp.psn;
	pkt.srqn = link_.number;
	pkt.addr = (uintptr_t)sides[0].target;
	pkt.rkey = sides[0].mr->rkey;
	sim_inject(0, &addr, &pkt, NULL, true);
	TEST_EQ(rmem_poll_cq(sides[0].send_cq, &wc, 1), 0);
	TEST_EQ(nb_malformed(0), 1);
	TEST_ASSERT(!sim_take(1, &pkt));
	TEST_EQ(state_of(link_.send), RMEM_QPS_RTS);
	link_close();
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
		link_open_two();
		link_post(1, 8);
		pkt = request(opcodes[i], opcodes[i] == RWIRE_SEND_ONLY ? 8 : 0, false);
		pkt.srqn ^= 1u << (8 * i % 24);
		link_deliver(pkt);
		expect_ack(RWIRE_AETH_NAK_INV);
		TEST_EQ(state_of(link_.recv), RMEM_QPS_ERR);
		TEST_EQ(link_nb_posted(), 1);
		TEST_OK(rmem_qp_stats_get(link_.recv, &stats));
		TEST_EQ(stats.last_error.vendor_err, RMEM_VENDOR_ERR_XRC_SRQ);
		TEST_STATUS(stats.last_error.status, RMEM_WC_REM_INV_REQ_ERR);
		/* In ERR it repeats the answer, and executes nothing. */
		pkt.srqn = link_.number;
		link_deliver(pkt);
		expect_ack(RWIRE_AETH_NAK_INV);
		TEST_EQ(link_nb_posted(), 1);
		link_close();
	}
}

TEST(wire_sim, xrc_message_has_one_srq)
{
	struct rmem_srq_attr attr;
	struct rwire_pkt pkt;
	struct rmem_wc wc;

	link_open_two();
	link_post(1, 3 * MTU);
	xrc_post(link_.other.srq, link_.other.mr, sides[1].target, 2, 3 * MTU);
	pkt = request(RWIRE_SEND_FIRST, MTU, false);
	link_deliver(pkt);
	expect_ack(RWIRE_AETH_ACK);
	pkt = request(RWIRE_SEND_LAST, 8, true);
	link_deliver(pkt);
	expect_ack(RWIRE_AETH_NAK_INV);
	TEST_OK(rmem_srq_query(link_.other.srq, &attr));
	TEST_EQ(attr.nb_wr, 1);
	TEST_EQ(rmem_poll_cq(sides[1].recv_cq, &wc, 1), 1);
	TEST_EQ(wc.wr_id, 1);
	TEST_STATUS(wc.status, RMEM_WC_WR_FLUSH_ERR);
	link_close();
}

TEST(wire_sim, rest_of_an_xrc_message_to_a_destroyed_srq_is_refused)
{
	struct rwire_pkt pkt;
	struct rmem_wc wc;

	link_open_two();
	link_post(1, 3 * MTU);
	pkt = request(RWIRE_SEND_FIRST, MTU, false);
	link_deliver(pkt);
	expect_ack(RWIRE_AETH_ACK);
	pkt = request(RWIRE_SEND_LAST, 8, false);
	TEST_OK(rmem_srq_destroy(link_.srq));
	link_deliver(pkt);
	expect_ack(RWIRE_AETH_NAK_INV);
	TEST_EQ(state_of(link_.recv), RMEM_QPS_ERR);
	TEST_EQ(rmem_poll_cq(sides[1].recv_cq, &wc, 1), 0);
	xrc_make_srq(&sides[1], sides[1].pd, link_.domain, &link_.srq, &link_.number);
	link_close();
}

static void *
destroy_recv(void *arg)
{
	int *ret = arg;

	*ret = rmem_qp_destroy(link_.recv);
	return NULL;
}

/* It is held when it has left the table of QPs, before it returns the receive of the message. */
TEST(wire_sim, xrc_srq_is_destroyed_while_its_qp_is_being_destroyed)
{
	const struct rsoft_qp *qp;
	pthread_t thread;
	struct rsoft_qp **entry;
	bool is_used;
	int ret = -1;

	link_open_two();
	qp = (const struct rsoft_qp *)link_.recv;
	entry = &qp->dev->qps[link_.recv->qp_num & qp->dev->qp_mask];
	link_post(1, 3 * MTU);
	link_deliver(request(RWIRE_SEND_FIRST, MTU, false));
	expect_ack(RWIRE_AETH_ACK);
	TEST_ASSERT(qp->rq.srq != NULL && qp->rq.cons != qp->rq.prod);
	rte_ticketlock_lock(&qp->dev->wire->rx_lock);
	TEST_OK(pthread_create(&thread, NULL, destroy_recv, &ret));
	while (__atomic_load_n(entry, __ATOMIC_ACQUIRE) != NULL)
		sched_yield();
	TEST_OK(rmem_srq_destroy(link_.srq));
	is_used = qp->rq.srq != NULL;
	rte_ticketlock_unlock(&qp->dev->wire->rx_lock);
	TEST_OK(pthread_join(thread, NULL));
	TEST_OK(ret);
	TEST_ASSERT(!is_used);
	link_.recv = NULL;
	link_.srq = NULL;
	link_close();
}

/* A requester that misses its data sends the READ again, while a later message is in progress. */
TEST(wire_sim, duplicate_xrc_read_has_the_pd_of_its_srq)
{
	struct rwire_pkt read, pkt;
	struct rmem_wc wc;

	link_open_two();
	xrc_post(link_.other.srq, link_.other.mr, sides[1].target, 2, 3 * MTU);
	read = request(RWIRE_READ_REQUEST, 0, false);
	link_deliver(read);
	xrc_expect(RWIRE_READ_RESPONSE_ONLY, RWIRE_AETH_ACK);
	pkt = request(RWIRE_SEND_FIRST, MTU, true);
	link_deliver(pkt);
	expect_ack(RWIRE_AETH_ACK);
	link_deliver(read);
	xrc_expect(RWIRE_READ_RESPONSE_ONLY, RWIRE_AETH_ACK);
	/* Of the other PD, or of no SRQ: a duplicate that fails has no effect. */
	read.rkey = link_.other.mr->rkey;
	read.srqn = link_.number ^ 1;
	link_deliver(read);
	xrc_expect_nothing();
	pkt = request(RWIRE_SEND_LAST, 8, true);
	link_deliver(pkt);
	expect_ack(RWIRE_AETH_ACK);
	TEST_EQ(rmem_poll_cq(sides[1].recv_cq, &wc, 1), 1);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	TEST_EQ(wc.byte_len, MTU + 8);
	link_close();
}

/* It has no CQ, and no requests. */
TEST(wire_sim, xrc_recv_qp_fails_with_its_device)
{
	unsigned int lcore;

	link_open_two();
	lcore = rsoft_grace_enter();
	rwire_fail_qp((struct rsoft_qp *)link_.recv, lcore);
	rsoft_grace_leave(lcore);
	TEST_EQ(state_of(link_.recv), RMEM_QPS_ERR);
	link_close();
}
