/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The time that requests take when the peer has ended, and when the clock is set forward or back.
 */

#include <inttypes.h>

#include <rte_cycles.h>

#include "../rc.h"
#include "sides.h"

#define HOUR 3600

/* Connect side 0 again. */
static void
connect_with(uint8_t timeout, uint8_t retry_cnt)
{
	const struct rmem_qp_conn conn = {
			.timeout = timeout, .retry_cnt = retry_cnt, .rnr_retry = 7};

	TEST_OK(rmem_qp_reset(sides[0].qp));
	rc_connect(sides[0].qp, sides[1].qp, conn);
}

/*
 * Run until side 0 has a completion; its status. The microseconds that took are in *us. Side 1 runs
 * too unless its process has ended.
 */
static int
wait_status(bool is_ended, uint64_t *us)
{
	uint64_t start = rwire_clock(), limit = 100 * rte_get_tsc_hz();
	struct rmem_wc wc;
	int n;

	while ((n = rmem_poll_cq(sides[0].send_cq, &wc, 1)) == 0) {
		TEST_ASSERT(rwire_clock() - start < limit);
		if (!is_ended)
			TEST_EQ(rmem_poll_cq(sides[1].send_cq, &wc, 1), 0);
		sim_step(false);
	}
	*us = (rwire_clock() - start) / (rte_get_tsc_hz() / 1000000);
	return n == 1 ? wc.status : -1;
}

/* IBTA 9.9.2.2.1: a timeout is between T and 4 T, T being 4.096 us * 2^timeout. */
static void
lose_peer(bool is_ended)
{
	static const struct {
		uint8_t timeout;
		uint8_t retry_cnt;
	} confs[] = {{8, 7}, {8, 0}, {12, 1}, {1, 7}};
	uint64_t us = 0, least;
	size_t i;

	for (i = 0; i < RTE_DIM(confs); i++) {
		connect_with(confs[i].timeout, confs[i].retry_cnt);
		if (!is_ended)
			TEST_OK(rmem_qp_reset(sides[1].qp));
		post_write(&sides[0], 3000);
		TEST_STATUS(wait_status(is_ended, &us), RMEM_WC_RETRY_EXC_ERR);
		least = ((UINT64_C(4096) << confs[i].timeout) * (confs[i].retry_cnt + 1u)) / 1000;
		test_note("timeout %u, retry_cnt %u: %" PRIu64 " us of %" PRIu64 " to %" PRIu64,
				confs[i].timeout, confs[i].retry_cnt, us, least, 4 * least);
		TEST_ASSERT(us >= least);
		/* A step of the clock for each packet. */
		TEST_ASSERT(us <= 4 * least + 100);
	}
}

TEST(wire_sim, ended_peer_is_reported_within_the_timeouts)
{
	open_sides(1024);
	lose_peer(true);
	close_sides();
}

TEST(wire_sim, destroyed_qp_is_reported_within_the_timeouts)
{
	struct rmem_dev_stats stats;

	open_sides(1024);
	lose_peer(false);
	TEST_OK(rmem_dev_stats_get(sides[1].dev, &stats));
	TEST_ASSERT(stats.wire_unknown_qps != 0);
	close_sides();
}

/* As after the suspension of a virtual machine: one timeout has expired, not all of them. */
TEST(wire_sim, clock_set_forward_costs_one_retry)
{
	struct rmem_dev_stats stats;
	uint64_t us = 0;

	open_sides(1024);
	post_write(&sides[0], SLOT_SIZE);
	sim_clear();
	sim_jump(24 * HOUR);
	TEST_STATUS(wait_status(false, &us), RMEM_WC_SUCCESS);
	TEST_OK(rmem_dev_stats_get(sides[0].dev, &stats));
	TEST_EQ(stats.wire_timeouts, 1);
	close_sides();
}

/* The lost packet is sent again after a timeout, not when the clock is back where it was. */
TEST(wire_sim, clock_set_back_delays_no_retransmission)
{
	uint64_t us = 0;

	open_sides(1024);
	post_write(&sides[0], SLOT_SIZE);
	sim_clear();
	sim_jump(-100);
	TEST_STATUS(wait_status(false, &us), RMEM_WC_SUCCESS);
	TEST_ASSERT(us < 4 * (UINT64_C(4096) << 8) / 1000);
	close_sides();
}

/* More SENDs than receives are posted: the last one waits for the time of an RNR NAK. */
TEST(wire_sim, clock_set_back_ends_an_rnr_wait)
{
	struct rmem_sge sge = {.length = 8};
	struct rmem_send_wr wr = rc_wr(RMEM_WR_SEND, &sge);
	struct rmem_dev_stats stats;
	uint64_t us = 0;
	unsigned int i;

	open_sides(1024);
	sge.addr = (uintptr_t)sides[0].local;
	sge.lkey = sides[0].mr->lkey;
	for (i = 0; i <= NB_RECV; i++)
		TEST_EQ(rmem_post_send(sides[0].qp, &wr, 1), 1);
	for (i = 0; i < NB_RECV; i++)
		TEST_STATUS(wait_status(false, &us), RMEM_WC_SUCCESS);
	do {
		sim_step(false);
		TEST_EQ(rmem_poll_cq(sides[0].send_cq, &(struct rmem_wc){0}, 1), 0);
		TEST_EQ(rmem_poll_cq(sides[1].send_cq, &(struct rmem_wc){0}, 1), 0);
		TEST_OK(rmem_dev_stats_get(sides[1].dev, &stats));
	} while (stats.wire_rnr_naks_sent == 0);
	TEST_EQ(rmem_poll_cq(sides[0].send_cq, &(struct rmem_wc){0}, 1), 0);
	TEST_RUN(post_recv(&sides[1], NB_RECV));
	sim_jump(-100);
	TEST_STATUS(wait_status(false, &us), RMEM_WC_SUCCESS);
	TEST_ASSERT(us < 1000000);
	close_sides();
}

static void
set_in_sqd(const struct rmem_qp_attr *attr, uint32_t mask)
{
	struct rmem_qp_attr state = {.state = RMEM_QPS_SQD};

	TEST_OK(rmem_qp_modify(sides[0].qp, &state, RMEM_QP_STATE));
	TEST_OK(rmem_qp_modify(sides[0].qp, attr, mask));
	state.state = RMEM_QPS_RTS;
	TEST_OK(rmem_qp_modify(sides[0].qp, &state, RMEM_QP_STATE));
}

/* No retry of a lost packet, or after an RNR NAK. */
TEST(wire_sim, retries_set_in_sqd_apply)
{
	struct rmem_send_wr wr = {.opcode = RMEM_WR_SEND, .flags = RMEM_SEND_SIGNALED};
	const struct rmem_qp_attr attr = {.retry_cnt = 0, .rnr_retry = 0};
	uint64_t us = 0;
	unsigned int i;

	open_sides(1024);
	set_in_sqd(&attr, RMEM_QP_RETRY_CNT);
	post_write(&sides[0], 8);
	sim_clear();
	TEST_STATUS(wait_status(false, &us), RMEM_WC_RETRY_EXC_ERR);
	connect_sides();
	for (i = 0; i < NB_RECV; i++) {
		TEST_EQ(rmem_post_send(sides[0].qp, &wr, 1), 1);
		TEST_STATUS(wait_status(false, &us), RMEM_WC_SUCCESS);
	}
	set_in_sqd(&attr, RMEM_QP_RNR_RETRY);
	TEST_EQ(rmem_post_send(sides[0].qp, &wr, 1), 1);
	TEST_STATUS(wait_status(false, &us), RMEM_WC_RNR_RETRY_EXC_ERR);
	close_sides();
}

/* 0 ends the timer of packets in flight, another value starts it. */
TEST(wire_sim, timeout_set_in_sqd_applies_to_packets_in_flight)
{
	struct rmem_qp_attr attr = {.state = RMEM_QPS_SQD, .timeout = 0};
	struct rmem_dev_stats stats;
	uint64_t us = 0;
	unsigned int i;

	open_sides(1024);
	post_write(&sides[0], 8);
	sim_clear();
	TEST_OK(rmem_qp_modify(sides[0].qp, &attr, RMEM_QP_STATE));
	TEST_OK(rmem_qp_modify(sides[0].qp, &attr, RMEM_QP_TIMEOUT));
	for (i = 0; i < 1000; i++) {
		sim_step(true);
		TEST_EQ(rmem_poll_cq(sides[0].send_cq, &(struct rmem_wc){0}, 1), 0);
	}
	TEST_OK(rmem_dev_stats_get(sides[0].dev, &stats));
	TEST_EQ(stats.wire_timeouts, 0);
	TEST_OK(rmem_qp_query(sides[0].qp, &attr));
	TEST_EQ(attr.sq_draining, 1);
	attr = (struct rmem_qp_attr){.timeout = 8};
	TEST_OK(rmem_qp_modify(sides[0].qp, &attr, RMEM_QP_TIMEOUT));
	TEST_STATUS(wait_status(false, &us), RMEM_WC_SUCCESS);
	TEST_OK(rmem_qp_query(sides[0].qp, &attr));
	TEST_EQ(attr.sq_draining, 0);
	close_sides();
}
