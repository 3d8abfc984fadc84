/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A device that has many requests to copy directly receives packets in between. Counted, without a
 * clock: bytes that a call copies, and attempts to copy while the device receives.
 */

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rmem_driver.h>

#include "soft/mem/rsoft_grace.h"

#include "../rc.h"
#include "sides.h"

#define LENGTH (120u << 10)
#define BUDGET (1u << 20)

static struct rsoft_grant_peer *peer;
static int connection[2];

static void
open_direct(void)
{
	struct rsoft_qp *target;
	unsigned int lcore;

	open_sides(1024);
	target = (struct rsoft_qp *)sides[1].qp;
	memset(&sim_direct, 0, sizeof(sim_direct));
	rwire_copy_connect(&sim_direct.link, getpid(), geteuid());
	TEST_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, connection), 0);
	peer = rsoft_grant_open(target->dev, &sim_direct.shared, connection[0]);
	TEST_ASSERT(peer != NULL);
	lcore = rsoft_grace_enter();
	rsoft_grant_add(peer, target, sides[1].mr->rkey);
	rsoft_grace_leave(lcore);
	memset(sides[0].local, 5, LENGTH);
	sim_direct.is_on = true;
}

static void
close_direct(void)
{
	sim_direct.is_on = false;
	rsoft_grant_close(peer);
	close(connection[0]);
	close(connection[1]);
	close_sides();
}

/* Post WRITEs by one call. */
static void
post_burst(uint32_t nb)
{
	struct rmem_sge sge = {.addr = (uintptr_t)sides[0].local,
			.length = LENGTH,
			.lkey = sides[0].mr->lkey};
	struct rmem_send_wr wr[SLOTS];
	uint32_t i;

	for (i = 0; i < nb; i++)
		wr[i] = rc_rdma(RMEM_WR_RDMA_WRITE, &sge, (uintptr_t)sides[1].target,
				sides[1].mr->rkey);
	TEST_EQ(rmem_post_send(sides[0].qp, wr, (uint16_t)nb), (int)nb);
}

/* Where the kernel permits direct access: begin it by the posts of post(). */
static void
open_granted(void (*post)(uint32_t nb), uint32_t nb)
{
	open_direct();
	sim_direct.has_grant = true;
	post(nb);
	if (!sim_direct.link.is_refused)
		return;
	close_direct();
	test_skip("direct access is refused");
}

static void
post_pages(uint32_t nb)
{
	for (; nb != 0; nb--)
		post_write(&sides[0], 4096);
}

static uint32_t
nb_queued(void)
{
	struct rmem_qp_attr attr = {0};

	if (rmem_qp_query(sides[0].qp, &attr) != 0)
		return UINT32_MAX;
	return attr.send_queued;
}

TEST(wire_sim, call_copies_no_more_than_its_budget)
{
	uint32_t queued, nb_done = 0, i;
	struct rmem_wc wc[SLOTS];
	int n;

	open_granted(post_burst, SLOTS);
	queued = nb_queued();
	TEST_EQ(queued, SLOTS - BUDGET / LENGTH);
	while (nb_done < SLOTS) {
		n = rmem_poll_cq(sides[0].send_cq, wc, SLOTS);
		TEST_ASSERT(n >= 0 && queued - nb_queued() <= BUDGET / LENGTH + 1);
		queued = nb_queued();
		for (i = 0; i < (uint32_t)n; i++)
			TEST_STATUS(wc[i].status, RMEM_WC_SUCCESS);
		nb_done += (uint32_t)n;
	}
	TEST_MEM(sides[1].target, sides[0].local, LENGTH);
	close_direct();
}

/* Poll side 0 once for each of nb requests that have been executed, and for no more. */
static void
poll_done(uint32_t nb)
{
	struct rmem_wc wc;

	for (; nb != 0; nb--) {
		TEST_EQ(rmem_poll_cq(sides[0].send_cq, &wc, 1), 1);
		TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	}
	TEST_EQ(rmem_poll_cq(sides[0].send_cq, &wc, 1), 0);
}

static void
to_state(uint32_t state, struct rmem_qp_attr *attr)
{
	*attr = (struct rmem_qp_attr){.state = state};
	TEST_OK(rmem_qp_modify(sides[0].qp, attr, RMEM_QP_STATE));
	TEST_OK(rmem_qp_query(sides[0].qp, attr));
}

/* A part of one request is copied: it ends in SQD, and no other begins. */
TEST(wire_sim, draining_ends_with_a_request_that_is_partly_copied)
{
	const uint32_t nb_begun = BUDGET / LENGTH + 1;
	struct rmem_qp_attr attr;

	open_granted(post_burst, SLOTS);
	to_state(RMEM_QPS_SQD, &attr);
	TEST_EQ(attr.sq_draining, 1);
	poll_done(nb_begun);
	TEST_OK(rmem_qp_query(sides[0].qp, &attr));
	TEST_EQ(attr.sq_draining, 0);
	TEST_EQ(attr.send_queued, SLOTS - nb_begun);
	to_state(RMEM_QPS_RTS, &attr);
	poll_done(SLOTS - nb_begun);
	TEST_MEM(sides[1].target, sides[0].local, LENGTH);
	close_direct();
}

/* A program that has left 16 completions: one call copies the requests of 16 posts. */
TEST(wire_sim, post_of_a_stream_waits_for_later_ones)
{
	uint32_t i;

	open_granted(post_pages, SLOTS);
	TEST_EQ(nb_queued(), 0);
	for (i = 0; i < SLOTS; i++) {
		TEST_EQ(nb_queued(), i);
		post_write(&sides[0], 4096);
	}
	TEST_EQ(nb_queued(), 0);
	poll_done(2 * SLOTS);
	close_direct();
}

TEST(wire_sim, poll_executes_the_posts_of_a_stream)
{
	open_granted(post_pages, SLOTS + 3);
	TEST_EQ(nb_queued(), 3);
	poll_done(SLOTS + 3);
	TEST_MEM(sides[1].target, sides[0].local, 4096);
	close_direct();
}

/* A program that does not post or poll soon waits for its peer: it must not wait for the thread. */
TEST(wire_sim, posts_after_one_that_waited_long_do_not_wait)
{
	open_granted(post_pages, SLOTS + 1);
	TEST_EQ(nb_queued(), 1);
	sim_jump(1);
	poll_done(SLOTS + 1);
	post_pages(SLOTS + 1);
	TEST_EQ(nb_queued(), 0);
	poll_done(SLOTS + 1);
	close_direct();
}

/* The first request is a packet that requests the grant; its answer lets the others begin. */
TEST(wire_sim, receiver_copies_nothing)
{
	uint32_t nb_done = 0;
	struct rmem_wc wc;
	int n;

	open_direct();
	post_burst(SLOTS);
	sim_direct.has_grant = true;
	while (nb_done < SLOTS) {
		TEST_EQ(rmem_poll_cq(sides[1].send_cq, &wc, 1), 0);
		n = rmem_poll_cq(sides[0].send_cq, &wc, 1);
		if (n == 1)
			TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
		nb_done += (uint32_t)n;
		sim_step(false);
	}
	TEST_EQ(sim_direct.nb_received, 0);
	TEST_MEM(sides[1].target, sides[0].local, LENGTH);
	close_direct();
}
