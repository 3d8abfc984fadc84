/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Requests to two SRQs of an XRC domain, in turn: of two PDs of a device, or of two devices of a
 * process, which requests reach by a link as between two processes.
 */

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../rc.h"
#include "xrc_link.h"

#define LEN   (2 * MTU + 88)
#define OPS   600u
#define DEPTH 8u
#define WORD  (SIZE - 2 * SLOT_SIZE) /* offset of the word of atomics */
#define CONST (SIZE - SLOT_SIZE)     /* and of the bytes that READs return */

/* An SRQ, and the memory of its requests. */
struct dest {
	struct rmem_srq *srq;
	uint32_t number;
	struct rmem_cq *cq;
	const struct rmem_mr *mr;
	uint8_t *target;
	uint64_t nb_recv, received; /* messages */
};

static struct {
	int file;
	struct rmem_xrcd *domain[2];
	struct dest dest[2];
	struct rmem_qp *send, *recv;
	uint64_t posted, done;
	uint8_t constant[LEN];
} two;

/* An SRQ on each device; side 0 has the XRC_SEND QP, side 1 the XRC_RECV QP. */
static void
open_two(void)
{
	struct rmem_xrcd_conf conf = {.flags = RMEM_XRCD_FILE | RMEM_XRCD_CREATE | RMEM_XRCD_EXCL};
	unsigned int i;

	memset(&two, 0, sizeof(two));
	conf.fd = two.file = memfd_create("xrcd", MFD_CLOEXEC);
	for (i = 0; i < 2; i++) {
		two.dest[i] = (struct dest){.cq = sides[i].recv_cq,
				.mr = sides[i].mr,
				.target = sides[i].target};
		TEST_OK(rmem_xrcd_alloc(sides[i].dev, &conf, &two.domain[i]));
		xrc_make_srq(&sides[i], sides[i].pd, two.domain[i], &two.dest[i].srq,
				&two.dest[i].number);
	}
	xrc_make_qps(two.domain[1], &two.send, &two.recv);
}

static void
close_two(void)
{
	unsigned int i;

	TEST_OK(rmem_qp_destroy(two.send));
	TEST_OK(rmem_qp_destroy(two.recv));
	for (i = 0; i < 2; i++) {
		TEST_OK(rmem_srq_destroy(two.dest[i].srq));
		TEST_OK(rmem_xrcd_dealloc(two.domain[i]));
	}
	close(two.file);
	close_sides();
}

/* Both SRQs on side 1. */
static void
open_one(void)
{
	link_open_two();
	memset(&two, 0, sizeof(two));
	two.send = link_.send;
	two.recv = link_.recv;
	two.dest[0] = (struct dest){.srq = link_.srq,
			.number = link_.number,
			.cq = sides[1].recv_cq,
			.mr = sides[1].mr,
			.target = sides[1].target};
	two.dest[1] = (struct dest){.srq = link_.other.srq,
			.number = link_.other.number,
			.cq = sides[1].recv_cq,
			.mr = link_.other.mr,
			.target = sides[1].target + SLOT_SIZE / 2};
}

/* Opcode and destination of request i. */
static uint8_t
opcode_of(uint64_t i)
{
	static const uint8_t opcodes[] = {RMEM_WR_RDMA_READ, RMEM_WR_SEND, RMEM_WR_RDMA_WRITE,
			RMEM_WR_ATOMIC_FETCH_AND_ADD};

	return opcodes[i % 4];
}

/* A READ precedes the message to the other one. */
static struct dest *
dest_of(uint64_t i)
{
	return &two.dest[(i / 4 + (i % 4 == 0)) % 2];
}

static void
post_next(void)
{
	const uint64_t i = two.posted++, at = i % DEPTH * SLOT_SIZE;
	const struct dest *to = dest_of(i);
	const struct rmem_sge sge = {.addr = (uintptr_t)sides[0].local + at,
			.length = opcode_of(i) == RMEM_WR_ATOMIC_FETCH_AND_ADD ? 8 : LEN,
			.lkey = sides[0].mr->lkey};
	struct rmem_send_wr wr = rc_wr(opcode_of(i), &sge);

	memset(sides[0].local + at, (int)i, LEN);
	memcpy(sides[0].local + at, &i, sizeof(i));
	wr.wr_id = i;
	wr.xrc.remote_srqn = to->number;
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

/* The receive of message m, in a slot of its own; its number is 2 * m, or 2 * m + 1. */
static uint8_t *
slot_of(const struct dest *dest, uint64_t m)
{
	return dest->target + (DEPTH + m % 4) * SLOT_SIZE;
}

static void
post_recv_of(struct dest *dest)
{
	const uint64_t m = dest->nb_recv++;

	xrc_post(dest->srq, dest->mr, slot_of(dest, m), 2 * m + (dest == &two.dest[1]), LEN);
}

/* Messages to an SRQ arrive in order, and, if both have one CQ, to both in turn. */
static void
check_received(const struct rmem_wc *wc)
{
	struct dest *dest = &two.dest[wc->wr_id % 2];
	uint64_t i;

	TEST_STATUS(wc->status, RMEM_WC_SUCCESS);
	TEST_EQ(wc->wr_id / 2, dest->received);
	TEST_EQ(wc->byte_len, LEN);
	TEST_EQ(wc->qp_num, two.recv->qp_num);
	memcpy(&i, slot_of(dest, dest->received), sizeof(i));
	TEST_EQ(i, 4 * wc->wr_id + 1);
	dest->received++;
	if (two.dest[0].cq == two.dest[1].cq)
		TEST_ASSERT(two.dest[0].received - two.dest[1].received <= 1);
	post_recv_of(dest);
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
		TEST_MEM(dest_of(i)->target + at, sides[0].local + at, LEN);
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
		while (rmem_poll_cq(two.dest[i].cq, &wc, 1) == 1)
			check_received(&wc);
	}
	TEST_EQ(rmem_poll_cq(sides[1].send_cq, &wc, 1), 0);
	while (rmem_poll_cq(sides[0].send_cq, &wc, 1) == 1)
		check_done(&wc);
}

/* The bytes of READs, words of 0, and four receives of each SRQ. */
static void
prepare(void)
{
	uint32_t i;

	for (i = 0; i < LEN; i++)
		two.constant[i] = (uint8_t)(i * 7);
	for (i = 0; i < 8; i++) {
		post_recv_of(&two.dest[i % 2]);
		memset(two.dest[i % 2].target + WORD, 0, 8);
		memcpy(two.dest[i % 2].target + CONST, two.constant, LEN);
	}
}

/* Execute all requests; progress(true) after many polls without a completion; max_idle fail. */
static void
exchange(void (*progress)(bool is_idle), uint32_t max_idle)
{
	uint32_t idle = 0;
	uint64_t before;

	prepare();
	while (two.done != OPS) {
		before = two.done;
		while (two.posted != OPS && two.posted - two.done < DEPTH)
			post_next();
		poll_all();
		idle = two.done == before ? idle + 1 : 0;
		TEST_ASSERT(idle < max_idle);
		progress(idle > 100);
	}
	poll_all();
	TEST_EQ(two.dest[0].received + two.dest[1].received, OPS / 4);
}

/* Each atomic is executed once, and a READ returns the memory. */
static void
exchange_lossy(void)
{
	const uint32_t percent = UINT32_MAX / 100;
	const struct sim_faults faults = {.loss = 5 * percent, .dup = 5 * percent, .delay_us = 30};
	struct rmem_dev_stats stats;

	sim_start(7, &faults);
	exchange(sim_step, 200000);
	TEST_OK(rmem_dev_stats_get(sides[1].dev, &stats));
	TEST_ASSERT(stats.wire_duplicates != 0 && stats.wire_malformed == 0);
}

TEST(wire_sim, loss_changes_no_result_of_xrc)
{
	open_one();
	exchange_lossy();
	link_close();
}

TEST(wire_sim, loss_changes_no_result_of_xrc_on_two_devices)
{
	open_sides(MTU);
	open_two();
	exchange_lossy();
	close_two();
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

static void
yield(bool is_idle)
{
	RTE_SET_USED(is_idle);
	sched_yield();
}

/* The requester of one device reaches the SRQs of both, by packets, and from there by the link. */
static void
exchange_of(const char *first, const char *second)
{
	open_device(0, first);
	open_device(1, second);
	open_two();
	exchange(yield, UINT32_MAX);
	close_two();
}

TEST_CALL(wire_udp, xrc_qps_of_two_devices_reach_srqs_of_both,
		exchange_of("ip=127.0.17.3,progress=poll", "ip=127.0.17.4,progress=poll"));
TEST_CALL(wire_udp, xrc_qps_of_two_devices_of_one_host_reach_srqs_of_both,
		exchange_of("ip=host,progress=poll", "ip=host,progress=poll"));
