/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A poll that yields the CPU finds what the peer sends concurrently. */

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sides.h"

static __thread bool is_waiting; /* a packet arrives when this thread yields */

int
sched_yield(void)
{
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

	TEST_RUN(open_sides(1024));
	TEST_RUN(post_write(&sides[0], 8));
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
	return close_sides();
}
