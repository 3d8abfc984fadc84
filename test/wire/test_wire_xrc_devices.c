/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * SRQs of one XRC domain on two devices of a process: requests to the XRC_RECV QP of one device
 * reach the SRQ of the other one, by a link as between two processes.
 */

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rmem_srq.h>
#include <rmem_xrcd.h>

#include "../rc.h"
#include "sides.h"

#define MTU   256u
#define LEN   (2 * MTU + 88)
#define OPS   600u
#define DEPTH 8u
#define WORD  (SIZE - 2 * SLOT_SIZE) /* offset of the word of atomics */
#define CONST (SIZE - SLOT_SIZE)     /* and of the bytes that READs return */

/* Side 0 has the XRC_SEND QP, side 1 the XRC_RECV QP; each has an SRQ of the domain. */
static struct {
	int file;
	struct rmem_xrcd *domain[2];
	struct rmem_srq *srq[2];
	uint32_t number[2];
	struct rmem_qp *send, *recv;
	uint64_t posted, done;
	uint64_t nb_recv[2], received[2]; /* messages */
	uint8_t constant[LEN];
} two;

static void
open_domain(unsigned int i)
{
	const struct rmem_xrcd_conf domain = {
			.flags = RMEM_XRCD_FILE | RMEM_XRCD_CREATE | RMEM_XRCD_EXCL,
			.fd = two.file};
	struct rmem_srq_ext ext = {.cq = sides[i].recv_cq};
	const struct rmem_srq_conf conf = {.max_wr = 4, .max_sge = 1, .ext = &ext};

	TEST_OK(rmem_xrcd_alloc(sides[i].dev, &domain, &two.domain[i]));
	ext.xrcd = two.domain[i];
	TEST_OK(rmem_srq_create(sides[i].pd, &conf, &two.srq[i]));
	TEST_OK(rmem_srq_num_get(two.srq[i], &two.number[i]));
}

static void
open_two(void)
{
	const struct rmem_qp_conn conn = {
			.timeout = 8, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 1};
	struct rmem_qp_conf send = {
			.type = RMEM_QPT_XRC_SEND, .max_send_wr = SLOTS, .max_send_sge = 1};
	struct rmem_qp_ext ext = {.xrcd = NULL};
	const struct rmem_qp_conf recv = {
			.type = RMEM_QPT_XRC_RECV, .access = RMEM_ACCESS_REMOTE, .ext = &ext};
	unsigned int i;

	memset(&two, 0, sizeof(two));
	two.file = memfd_create("xrcd", MFD_CLOEXEC);
	for (i = 0; i < 2; i++)
		open_domain(i);
	ext.xrcd = two.domain[1];
	send.send_cq = send.recv_cq = sides[0].send_cq;
	TEST_OK(rmem_qp_create(NULL, &recv, &two.recv));
	TEST_OK(rmem_qp_create(sides[0].pd, &send, &two.send));
	rc_connect(two.recv, two.send, conn);
	rc_connect(two.send, two.recv, conn);
}

static void
close_two(void)
{
	unsigned int i;

	TEST_OK(rmem_qp_destroy(two.send));
	TEST_OK(rmem_qp_destroy(two.recv));
	for (i = 0; i < 2; i++) {
		TEST_OK(rmem_srq_destroy(two.srq[i]));
		TEST_OK(rmem_xrcd_dealloc(two.domain[i]));
	}
	close(two.file);
}

/* Opcode and destination of request i. */
static uint8_t
opcode_of(uint64_t i)
{
	static const uint8_t opcodes[] = {RMEM_WR_RDMA_READ, RMEM_WR_SEND, RMEM_WR_RDMA_WRITE,
			RMEM_WR_ATOMIC_FETCH_AND_ADD};

	return opcodes[i % 4];
}

static unsigned int
side_of(uint64_t i)
{
	return i / 4 % 2;
}

static void
post_next(void)
{
	const uint64_t i = two.posted++, at = i % DEPTH * SLOT_SIZE;
	const struct side *to = &sides[side_of(i)];
	const struct rmem_sge sge = {.addr = (uintptr_t)sides[0].local + at,
			.length = opcode_of(i) == RMEM_WR_ATOMIC_FETCH_AND_ADD ? 8 : LEN,
			.lkey = sides[0].mr->lkey};
	struct rmem_send_wr wr = rc_wr(opcode_of(i), &sge);

	memset(sides[0].local + at, (int)i, LEN);
	wr.wr_id = i;
	wr.xrc.remote_srqn = two.number[side_of(i)];
	if (wr.opcode == RMEM_WR_ATOMIC_FETCH_AND_ADD) {
		wr.atomic.remote_addr = (uintptr_t)to->target + WORD;
		wr.atomic.rkey = to->mr->rkey;
		wr.atomic.compare_add = 1;
	} else {
		wr.rdma.remote_addr = (uintptr_t)to->target +
				(wr.opcode == RMEM_WR_RDMA_READ ? CONST : at);
		wr.rdma.rkey = to->mr->rkey;
	}
	TEST_EQ(rmem_post_send(two.send, &wr, 1), 1);
}

/* The next receive of a side, in a slot of its own. */
static void
post_recv_of(unsigned int i)
{
	const uint64_t m = two.nb_recv[i]++;
	const struct rmem_sge sge = {
			.addr = (uintptr_t)sides[i].target + (DEPTH + m % 4) * SLOT_SIZE,
			.length = LEN,
			.lkey = sides[i].mr->lkey};
	const struct rmem_recv_wr wr = {.wr_id = m, .sg_list = &sge, .num_sge = 1};

	TEST_EQ(rmem_srq_post_recv(two.srq[i], &wr, 1), 1);
}

/* Check what the request of a completion has done. */
static void
check_done(const struct rmem_wc *wc)
{
	const uint64_t i = two.done++, at = i % DEPTH * SLOT_SIZE;
	uint64_t value;

	TEST_STATUS(wc->status, RMEM_WC_SUCCESS);
	TEST_EQ(wc->wr_id, i);
	if (opcode_of(i) == RMEM_WR_RDMA_READ)
		TEST_MEM(sides[0].local + at, two.constant, LEN);
	if (opcode_of(i) == RMEM_WR_RDMA_WRITE)
		TEST_MEM(sides[side_of(i)].target + at, sides[0].local + at, LEN);
	if (opcode_of(i) != RMEM_WR_ATOMIC_FETCH_AND_ADD)
		return;
	memcpy(&value, sides[0].local + at, sizeof(value));
	TEST_EQ(value, i / 8);
}

static void
poll_all(void)
{
	struct rmem_wc wc;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		while (rmem_poll_cq(sides[i].recv_cq, &wc, 1) == 1) {
			TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
			TEST_EQ(wc.wr_id, two.received[i]);
			TEST_EQ(wc.byte_len, LEN);
			TEST_EQ(wc.qp_num, two.recv->qp_num);
			two.received[i]++;
			post_recv_of(i);
		}
	}
	TEST_EQ(rmem_poll_cq(sides[1].send_cq, &wc, 1), 0);
	while (rmem_poll_cq(sides[0].send_cq, &wc, 1) == 1)
		check_done(&wc);
}

/* The bytes of READs, words of 0, and four receives on each side. */
static void
prepare(void)
{
	uint32_t i;

	for (i = 0; i < LEN; i++)
		two.constant[i] = (uint8_t)(i * 7);
	for (i = 0; i < 8; i++) {
		post_recv_of(i % 2);
		memset(sides[i % 2].target + WORD, 0, 8);
		memcpy(sides[i % 2].target + CONST, two.constant, LEN);
	}
}

/* Each atomic is executed once, and a READ returns the memory. */
TEST(wire_sim, loss_changes_no_result_of_xrc_on_two_devices)
{
	const uint32_t percent = UINT32_MAX / 100;
	const struct sim_faults faults = {.loss = 5 * percent, .dup = 5 * percent, .delay_us = 30};
	struct rmem_dev_stats stats;
	uint32_t idle = 0;
	uint64_t before;

	open_sides(MTU);
	open_two();
	sim_start(7, &faults);
	prepare();
	while (two.done != OPS) {
		before = two.done;
		while (two.posted != OPS && two.posted - two.done < DEPTH)
			post_next();
		poll_all();
		idle = two.done == before ? idle + 1 : 0;
		TEST_ASSERT(idle < 200000);
		sim_step(idle > 100);
	}
	poll_all();
	TEST_EQ(two.received[0] + two.received[1], OPS / 4);
	TEST_OK(rmem_dev_stats_get(sides[1].dev, &stats));
	TEST_ASSERT(stats.wire_duplicates != 0 && stats.wire_malformed == 0);
	close_two();
	close_sides();
}

/* A device with the port of its arguments, and the objects used above, but without a QP. */
static void
open_device(unsigned int i, const char *args)
{
	const struct rmem_cq_conf cq_conf = {.nb_cqe = 2 * SLOTS};
	struct side *side = &sides[i];
	char name[] = "soft0";

	memset(side, 0, sizeof(*side));
	name[4] = (char)('0' + i);
	TEST_OK(rmem_dev_create(name, args, &side->dev));
	TEST_OK(rmem_pd_alloc(side->dev, &side->pd));
	TEST_OK(rmem_cq_create(side->dev, &cq_conf, &side->send_cq));
	TEST_OK(rmem_cq_create(side->dev, &cq_conf, &side->recv_cq));
	side->target = calloc(2, SIZE);
	TEST_ASSERT(side->target != NULL);
	side->local = side->target + SIZE;
	TEST_OK(rmem_mr_reg(side->pd, side->target, 2 * SIZE, 0,
			RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE, &side->mr));
}

/* The requester of one device reaches the SRQs of both, by packets, and from there by the link. */
static void
exchange(const char *first, const char *second)
{
	open_device(0, first);
	open_device(1, second);
	open_two();
	prepare();
	while (two.done != OPS) {
		while (two.posted != OPS && two.posted - two.done < DEPTH)
			post_next();
		poll_all();
		sched_yield();
	}
	close_two();
	close_sides();
}

TEST_CALL(wire_udp, xrc_qps_of_two_devices_reach_srqs_of_both,
		exchange("ip=127.0.17.3,progress=poll", "ip=127.0.17.4,progress=poll"));
TEST_CALL(wire_udp, xrc_qps_of_two_devices_of_one_host_reach_srqs_of_both,
		exchange("ip=host,progress=poll", "ip=host,progress=poll"));
