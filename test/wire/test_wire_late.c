/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Over shared memory, the acknowledgement of a message for whose completion nothing waits follows
 * later. Cases read private structures of the software device, on a virtual clock.
 */

#include <rte_cycles.h>

#include "../../drivers/soft/wire/port/rwire_ring.h"
#include "../../drivers/soft/wire/rwire.h"

#include "../perf/perf_row.h"
#include "../rc.h"
#include "clock.h"

#define NB_RECVS 64u
#define MESSAGE  64u

static struct perf_pair pair;
static struct rmem_mr *from, *to;

static struct rmem_dev_stats
stats_of(const struct rmem_dev *dev)
{
	struct rmem_dev_stats stats = {0};

	TEST_OK(rmem_dev_stats_get(dev, &stats));
	return stats;
}

/* Whether all packets of a QP are acknowledged. */
static bool
is_acknowledged(const struct rmem_qp *qp)
{
	const struct rwire_req *req = &((const struct rsoft_qp *)qp)->wire->req;

	return req->una == req->psn;
}

/* Poll until a completion has arrived, at most a number of times. */
static int
poll_cq(struct rmem_cq *cq, uint32_t nb_polls)
{
	struct rmem_wc wc;
	int n = 0;

	for (; nb_polls != 0 && n == 0; nb_polls--)
		n = rmem_poll_cq(cq, &wc, 1);
	if (n == 1)
		TEST_EQ(wc.status, RMEM_WC_SUCCESS);
	return n;
}

static int
post_send(uint8_t flags)
{
	struct rmem_sge sge = {from->iova, MESSAGE, from->lkey};
	const struct rmem_send_wr wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = RMEM_WR_SEND, .flags = flags};

	return rmem_post_send(pair.a, &wr, 1);
}

/* Send a message, and receive it. */
static void
pass_message(uint8_t flags)
{
	TEST_EQ(post_send(flags), 1);
	TEST_EQ(poll_cq(pair.cq_b, 100), 1);
}

static void
open_pair(const char *args_b)
{
	struct rmem_sge sge;
	const struct rmem_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
	uint32_t i;

	perf_pair_open_two(&pair, "ip=127.0.17.8,port=shm:late,loop=1,progress=poll", args_b);
	from = perf_mr(pair.pd, MESSAGE);
	to = perf_mr(pair.pd_b, MESSAGE);
	TEST_ASSERT(from != NULL && to != NULL);
	sge = (struct rmem_sge){to->iova, MESSAGE, to->lkey};
	for (i = 0; i < NB_RECVS; i++)
		TEST_EQ(rmem_post_recv(pair.b, &wr, 1), 1);
	/* The first packets open the channels. */
	TEST_EQ(post_send(RMEM_SEND_SIGNALED), 1);
	while (poll_cq(pair.cq_b, 1) == 0)
		;
	while (poll_cq(pair.cq_a, 1) == 0)
		;
	clock_stop();
	/* A poll that finds nothing reads the clock. */
	TEST_EQ(poll_cq(pair.cq_a, 1), 0);
	TEST_EQ(poll_cq(pair.cq_b, 1), 0);
}

static void
setup(void)
{
	open_pair("ip=127.0.17.9,port=shm:late,loop=1,progress=poll");
}

static void
teardown(void)
{
	clock_run();
	TEST_OK(rmem_mr_dereg(from));
	TEST_OK(rmem_mr_dereg(to));
	perf_pair_close(&pair);
}

TEST(wire_late, signaled_send_is_acknowledged_at_once)
{
	pass_message(RMEM_SEND_SIGNALED);
	TEST_EQ(poll_cq(pair.cq_a, 1), 1);
}

/* A received message is acknowledged later; before: packets that its receiver had sent. */
static void
expect_late(uint64_t before)
{
	TEST_EQ(poll_cq(pair.cq_b, 10), 0);
	TEST_EQ(stats_of(pair.dev_b).wire_tx_packets, before);
	clock_pass(100);
	TEST_EQ(poll_cq(pair.cq_b, 2), 0);
	TEST_EQ(stats_of(pair.dev_b).wire_tx_packets, before + 1);
	TEST_EQ(poll_cq(pair.cq_a, 1), 0);
	TEST_ASSERT(is_acknowledged(pair.a));
}

TEST(wire_late, unsignaled_send_is_acknowledged_by_a_later_poll)
{
	const uint64_t before = stats_of(pair.dev_b).wire_tx_packets;

	pass_message(0);
	expect_late(before);
}

TEST(wire_late, unsignaled_write_is_acknowledged_by_a_later_poll)
{
	struct rmem_sge sge = {from->iova, MESSAGE, from->lkey};
	const uint64_t before = stats_of(pair.dev_b).wire_tx_packets;
	struct rmem_send_wr wr = rc_rdma(RMEM_WR_RDMA_WRITE, &sge, to->iova, to->rkey);

	wr.flags = 0;
	memset(from->addr, 'w', MESSAGE);
	TEST_EQ(rmem_post_send(pair.a, &wr, 1), 1);
	TEST_EQ(poll_cq(pair.cq_b, 10), 0);
	TEST_MEM(to->addr, from->addr, MESSAGE);
	expect_late(before);
}

TEST(wire_late, one_of_16_unsignaled_sends_is_acknowledged_at_once)
{
	const uint64_t before = stats_of(pair.dev_b).wire_tx_packets;
	uint32_t i;

	for (i = 0; i < 2 * RWIRE_ACK_EVERY; i++)
		pass_message(0);
	TEST_EQ(stats_of(pair.dev_b).wire_tx_packets, before + 2);
}

TEST(wire_late, next_requested_acknowledgement_replaces_a_late_one)
{
	const uint64_t before = stats_of(pair.dev_b).wire_tx_packets;

	pass_message(0);
	pass_message(RMEM_SEND_SIGNALED);
	TEST_EQ(poll_cq(pair.cq_a, 1), 1);
	clock_pass(100);
	TEST_EQ(poll_cq(pair.cq_b, 2), 0);
	TEST_EQ(stats_of(pair.dev_b).wire_tx_packets, before + 1);
}

/* Both arrive in one burst, and the first one's acknowledgement is sent after the second one. */
TEST(wire_late, acknowledgement_of_an_earlier_message_replaces_none)
{
	TEST_EQ(post_send(RMEM_SEND_SIGNALED), 1);
	TEST_EQ(post_send(0), 1);
	TEST_EQ(poll_cq(pair.cq_b, 100), 1);
	TEST_EQ(poll_cq(pair.cq_b, 1), 1);
	TEST_EQ(poll_cq(pair.cq_a, 1), 1);
	clock_pass(100);
	TEST_EQ(poll_cq(pair.cq_b, 2), 0);
	TEST_EQ(poll_cq(pair.cq_a, 1), 0);
	TEST_ASSERT(is_acknowledged(pair.a));
}

/* Two more QPs; one completes its receives to a CQ with a channel. */
static struct {
	struct rmem_comp_channel *channel;
	struct rmem_cq *cq;
	struct rmem_qp *a, *b;
} woken;

static void
open_woken(void)
{
	const struct rmem_qp_conn conn = {
			.timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 1};
	struct rmem_sge sge = {to->iova, MESSAGE, to->lkey};
	const struct rmem_recv_wr recv = {.sg_list = &sge, .num_sge = 1};
	struct rmem_cq_conf cq_conf = {.nb_cqe = 4};
	struct rmem_qp_conf conf = rc_conf(pair.cq_a, 2, 1);

	TEST_OK(rmem_comp_channel_create(pair.dev_b, &woken.channel));
	cq_conf.channel = woken.channel;
	TEST_OK(rmem_cq_create(pair.dev_b, &cq_conf, &woken.cq));
	TEST_OK(rmem_qp_create(pair.pd, &conf, &woken.a));
	conf = rc_conf(woken.cq, 1, 1);
	TEST_OK(rmem_qp_create(pair.pd_b, &conf, &woken.b));
	rc_connect(woken.a, woken.b, conn);
	rc_connect(woken.b, woken.a, conn);
	TEST_EQ(rmem_post_recv(woken.b, &recv, 1), 1);
}

static void
close_woken(void)
{
	TEST_OK(rmem_qp_destroy(woken.a));
	TEST_OK(rmem_qp_destroy(woken.b));
	TEST_OK(rmem_cq_destroy(woken.cq));
	TEST_OK(rmem_comp_channel_destroy(woken.channel));
}

/*
 * The program that the event of the second message wakes may answer at once, so the first one must
 * be acknowledged before: then both are. They are received together.
 */
static void
check_woken(uint8_t opcode)
{
	struct rmem_send_wr wr[2];
	rte_ticketlock_t *rx_lock;
	struct rmem_sge sge;

	teardown();
	open_pair("ip=127.0.17.9,port=shm:late,loop=1");
	open_woken();
	rx_lock = &((const struct rsoft_qp *)woken.b)->wire->wire->rx_lock;
	sge = (struct rmem_sge){from->iova, MESSAGE, from->lkey};
	wr[0] = rc_rdma(RMEM_WR_RDMA_WRITE, &sge, to->iova, to->rkey);
	wr[1] = rc_rdma(opcode, &sge, to->iova, to->rkey);
	wr[1].flags = 0;
	rte_ticketlock_lock(rx_lock);
	TEST_EQ(rmem_post_send(woken.a, wr, 2), 2);
	rte_ticketlock_unlock(rx_lock);
	while (poll_cq(woken.cq, 1) == 0)
		sched_yield();
	TEST_EQ(poll_cq(pair.cq_a, 1), 1);
	TEST_ASSERT(is_acknowledged(woken.a));
	close_woken();
}

TEST_CALL(wire_late, event_follows_the_acknowledgement_of_an_earlier_message,
		check_woken(RMEM_WR_RDMA_WRITE_WITH_IMM));
TEST_CALL(wire_late, event_of_a_short_message_follows_the_acknowledgement_of_an_earlier_one,
		check_woken(RMEM_WR_SEND));

/* Only the packets that such a device itself sends can be lost. */
TEST(wire_late, device_with_faults_acknowledges_later)
{
	uint32_t i;

	teardown();
	open_pair("ip=127.0.17.9,port=shm:late,loop=1,progress=poll,fault=seed:1");
	pass_message(0);
	for (i = 0; i < 20; i++) {
		clock_pass(1000 * 1000);
		TEST_EQ(poll_cq(pair.cq_a, 2), 0);
	}
	TEST_EQ(stats_of(pair.dev).wire_timeouts, 0);
	TEST_EQ(poll_cq(pair.cq_b, 2), 0);
	TEST_EQ(poll_cq(pair.cq_a, 1), 0);
	TEST_ASSERT(is_acknowledged(pair.a));
}

TEST(wire_late, qp_that_is_reset_acknowledges_what_it_has_received)
{
	const struct rmem_qp_attr attr = {.state = RMEM_QPS_RESET};

	pass_message(0);
	TEST_OK(rmem_qp_modify(pair.b, &attr, RMEM_QP_STATE));
	TEST_EQ(poll_cq(pair.cq_a, 1), 0);
	TEST_ASSERT(is_acknowledged(pair.a));
}

/* More QPs of both devices, without a channel. */
struct more {
	struct rmem_qp *a, *b;
};

static struct more
open_more(uint8_t type)
{
	const struct rmem_qp_conn conn = {.timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
	const struct rmem_recv_wr recv = {.num_sge = 0};
	struct rmem_qp_conf conf = rc_conf(pair.cq_a, 2 * RWIRE_RING_SLOTS, 1);
	struct more more;

	conf.type = type;
	TEST_OK(rmem_qp_create(pair.pd, &conf, &more.a));
	conf.send_cq = conf.recv_cq = pair.cq_b;
	TEST_OK(rmem_qp_create(pair.pd_b, &conf, &more.b));
	rc_connect(more.a, more.b, conn);
	rc_connect(more.b, more.a, conn);
	TEST_EQ(rmem_post_recv(more.b, &recv, 1), 1);
	return more;
}

static void
close_more(struct more more)
{
	TEST_OK(rmem_qp_destroy(more.a));
	TEST_OK(rmem_qp_destroy(more.b));
}

/* Send messages, and receive them while the ring of the acknowledgements is full. */
static void
pass_to_full(struct more full, struct more more)
{
	struct rmem_sge sge = {to->iova, 1, to->lkey};
	struct rmem_send_wr wr = rc_rdma(RMEM_WR_RDMA_WRITE, &sge, from->iova, from->rkey);
	const struct rmem_send_wr send = {.opcode = RMEM_WR_SEND, .flags = RMEM_SEND_SIGNALED};
	const uint64_t before = stats_of(pair.dev_b).wire_tx_packets;
	uint32_t i;

	wr.flags = 0;
	TEST_EQ(poll_cq(pair.cq_a, 2), 0); /* releases the slots of packets that were read */
	for (i = 0; i < RWIRE_RING_SLOTS; i++)
		TEST_EQ(rmem_post_send(full.b, &wr, 1), 1);
	TEST_EQ(post_send(RMEM_SEND_SIGNALED), 1);
	TEST_EQ(rmem_post_send(more.a, &send, 1), 1);
	TEST_EQ(poll_cq(pair.cq_b, 100), 1);
	TEST_EQ(poll_cq(pair.cq_b, 100), 1);
	TEST_EQ(stats_of(pair.dev_b).wire_tx_packets, before + RWIRE_RING_SLOTS);
}

static uint32_t nb_clock_calls;

/* The peer reads its ring after a while. */
static uint64_t
get_clock_of_reader(void)
{
	if (++nb_clock_calls == 10) {
		rwire_clock = clock_read;
		TEST_EQ(poll_cq(pair.cq_a, 20), 0);
	}
	return clock_read();
}

TEST(wire_late, qp_that_is_reset_waits_for_space_for_its_acknowledgement)
{
	const struct rmem_qp_attr attr = {.state = RMEM_QPS_RESET};
	struct more full = open_more(RMEM_QPT_UC), more = open_more(RMEM_QPT_RC);

	pass_to_full(full, more);
	nb_clock_calls = 0;
	rwire_clock = get_clock_of_reader;
	TEST_OK(rmem_qp_modify(pair.b, &attr, RMEM_QP_STATE));
	TEST_OK(rmem_qp_modify(more.b, &attr, RMEM_QP_STATE));
	TEST_EQ(poll_cq(pair.cq_a, 20), 1);
	TEST_EQ(poll_cq(pair.cq_a, 20), 1);
	close_more(full);
	close_more(more);
}

/* The peer reads nothing. */
static uint64_t
get_clock_of_ms(void)
{
	nb_clock_calls++;
	clock_pass(1000);
	return clock_read();
}

TEST(wire_late, one_qp_that_is_reset_waits_in_vain)
{
	const struct rmem_qp_attr attr = {.state = RMEM_QPS_RESET};
	struct more full = open_more(RMEM_QPT_UC), more = open_more(RMEM_QPT_RC);
	uint32_t nb_first;

	pass_to_full(full, more);
	nb_clock_calls = 0;
	rwire_clock = get_clock_of_ms;
	TEST_OK(rmem_qp_modify(pair.b, &attr, RMEM_QP_STATE));
	nb_first = nb_clock_calls;
	TEST_OK(rmem_qp_modify(more.b, &attr, RMEM_QP_STATE));
	rwire_clock = clock_read;
	printf("calls of the clock: %u, then %u\n", nb_first, nb_clock_calls - nb_first);
	TEST_ASSERT(nb_first >= 20 && nb_first <= 200);
	TEST_ASSERT(nb_clock_calls - nb_first <= 4);
	close_more(full);
	close_more(more);
}

/* A local request waits for its completion. */
TEST(wire_late, send_before_a_local_request_is_acknowledged_at_once)
{
	struct rmem_sge sge = {from->iova, MESSAGE, from->lkey};
	const struct rmem_send_wr wr[2] = {{.sg_list = &sge, .num_sge = 1, .opcode = RMEM_WR_SEND},
			{.opcode = RMEM_WR_LOCAL_INV,
					.flags = RMEM_SEND_SIGNALED,
					.invalidate_rkey = from->rkey}};
	struct rmem_wc wc;

	TEST_EQ(rmem_post_send(pair.a, wr, 2), 2);
	TEST_EQ(poll_cq(pair.cq_b, 100), 1);
	/* The MR is not one that a request invalidates, which does not matter here. */
	TEST_EQ(rmem_poll_cq(pair.cq_a, &wc, 1), 1);
}

/* The peer has read the message: it is not lost, and only its acknowledgement is late. */
TEST(wire_late, timer_only_requests_the_acknowledgement_of_a_message_that_was_read)
{
	uint32_t i;

	pass_message(0);
	for (i = 0; i < 20; i++) {
		clock_pass(1000 * 1000);
		TEST_EQ(poll_cq(pair.cq_a, 2), 0);
	}
	TEST_EQ(stats_of(pair.dev).wire_timeouts, 0);
	TEST_EQ(stats_of(pair.dev).wire_retransmits, 1);
	TEST_EQ(poll_cq(pair.cq_b, 2), 0);
	TEST_EQ(poll_cq(pair.cq_a, 1), 0);
	TEST_ASSERT(is_acknowledged(pair.a));
}

/* Its previous message was read, and is still to be acknowledged: the peer has stopped since. */
TEST(wire_late, timer_sends_a_later_message_again_that_is_never_read)
{
	uint32_t i;

	pass_message(0);
	clock_pass(1000 * 1000);
	TEST_EQ(poll_cq(pair.cq_a, 2), 0);
	TEST_EQ(stats_of(pair.dev).wire_timeouts, 0);
	TEST_EQ(post_send(0), 1);
	for (i = 0; i < 5; i++) {
		clock_pass(1000 * 1000);
		TEST_EQ(poll_cq(pair.cq_a, 2), 0);
	}
	TEST_ASSERT(stats_of(pair.dev).wire_timeouts > 1);
}

/* The peer's device reads the message, and drops it. */
TEST(wire_late, timer_finds_that_the_qp_of_the_peer_is_reset)
{
	const struct rmem_qp_attr attr = {.state = RMEM_QPS_RESET};
	uint32_t i;

	TEST_OK(rmem_qp_modify(pair.b, &attr, RMEM_QP_STATE));
	TEST_EQ(post_send(0), 1);
	for (i = 0; i < 5; i++) {
		TEST_EQ(poll_cq(pair.cq_b, 2), 0);
		clock_pass(1000 * 1000);
		TEST_EQ(poll_cq(pair.cq_a, 2), 0);
	}
	TEST_ASSERT(stats_of(pair.dev).wire_timeouts > 1);
}

TEST(wire_late, timer_sends_a_message_again_that_is_never_read)
{
	uint32_t i;

	TEST_EQ(post_send(0), 1);
	for (i = 0; i < 5; i++) {
		clock_pass(1000 * 1000);
		TEST_EQ(poll_cq(pair.cq_a, 2), 0);
	}
	TEST_ASSERT(stats_of(pair.dev).wire_timeouts > 1);
}

TEST_SUITE(wire_late, setup, teardown);
