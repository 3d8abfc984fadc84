/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A poll that yields the CPU finds what the peer sends concurrently. A thread that waits for a lock
 * yields the CPU, which the holder may need: with as many threads as CPUs no other one would run.
 */

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sides.h"

static __thread bool is_waiting;        /* a packet arrives when this thread yields */
static __thread rte_ticketlock_t *held; /* by another thread, which runs when this one yields */

int
sched_yield(void)
{
	if (held != NULL) {
		rte_ticketlock_unlock(held);
		held = NULL;
		return 0;
	}
	if (!is_waiting)
		return (int)syscall(SYS_sched_yield);
	is_waiting = false;
	sim_step(true);
	return 0;
}

TEST(wire_sim, poll_that_yields_finds_what_arrives_concurrently)
{
	struct rmem_wc wc;
	int n;

	open_sides(1024);
	post_write(&sides[0], 8);
	sim_step(true);
	TEST_EQ(rmem_poll_cq(sides[1].send_cq, &wc, 1), 0);
	/* The acknowledgement is in flight. */
	is_waiting = true;
	do
		n = rmem_poll_cq(sides[0].send_cq, &wc, 1);
	while (is_waiting && n == 0);
	TEST_ASSERT(!is_waiting);
	TEST_EQ(n, 1);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	close_sides();
}

static void
hold_lock(struct side *side)
{
	held = &((struct rsoft_qp *)side->qp)->sq.lock;
	rte_ticketlock_lock(held);
}

TEST(wire_sim, thread_that_waits_for_a_send_queue_yields)
{
	struct rmem_wc wc;

	open_sides(1024);
	hold_lock(&sides[0]);
	post_write(&sides[0], 8);
	TEST_ASSERT(held == NULL);
	sim_step(true);
	TEST_EQ(rmem_poll_cq(sides[1].send_cq, &wc, 1), 0);
	sim_step(true);
	/* The acknowledgement is received. */
	hold_lock(&sides[0]);
	TEST_EQ(rmem_poll_cq(sides[0].send_cq, &wc, 1), 1);
	TEST_ASSERT(held == NULL);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	close_sides();
}
