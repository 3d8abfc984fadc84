/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A thread serves a target, also while an lcore polls periodically. */

#include <sched.h>

#include <rte_cycles.h>

#include "../perf.h"
#include "../test.h"

#define NB_POLLS 100u
#define ENOUGH   (3 * NB_POLLS) /* READs in as many intervals */

static struct perf_pair pair;
static struct rmem_mr *local, *target;

/* Polls of the target's CQ, two in a millisecond. */
struct slow_poller {
	uint64_t next; /* TSC */
	uint32_t nb_polls;
	uint32_t nb_reads;
};

static void
poll_slowly(struct slow_poller *slow)
{
	struct rmem_wc wc;

	if (rte_rdtsc() < slow->next)
		return;
	slow->next = rte_rdtsc() + rte_get_tsc_hz() / 2000;
	if (++slow->nb_polls == NB_POLLS)
		slow->nb_polls = slow->nb_reads = 0;
	(void)rmem_poll_cq(pair.cq_b, &wc, 1);
}

static int
read_once(struct slow_poller *slow)
{
	struct rmem_sge sge = {local->iova, 64, local->lkey};
	const struct rmem_send_wr wr = {.sg_list = &sge,
			.num_sge = 1,
			.opcode = RMEM_WR_RDMA_READ,
			.flags = RMEM_SEND_SIGNALED,
			.rdma = {.remote_addr = target->iova, .rkey = target->rkey}};
	struct rmem_wc wc;
	int n;

	TEST_EQ(rmem_post_send(pair.a, &wr, 1), 1);
	do {
		poll_slowly(slow);
		sched_yield();
		n = rmem_poll_cq(pair.cq_a, &wc, 1);
	} while (n == 0);
	TEST_EQ(n, 1);
	TEST_EQ(wc.status, RMEM_WC_SUCCESS);
	slow->nb_reads++;
	return TEST_SUCCESS;
}

/* Each poll answers one READ, the thread all others. */
TEST(wire_progress, a_target_that_polls_rarely_is_served_in_between)
{
	struct slow_poller slow = {0};

	while (slow.nb_reads < ENOUGH)
		TEST_RUN(read_once(&slow));
	return TEST_SUCCESS;
}

static int
setup(void)
{
	TEST_RUN(perf_pair_open_two(&pair, "ip=127.0.17.4,loop=1", "ip=127.0.17.5,loop=1"));
	local = perf_mr(pair.pd, 4096);
	target = perf_mr(pair.pd_b, 4096);
	TEST_ASSERT(local != NULL && target != NULL);
	return TEST_SUCCESS;
}

static int
teardown(void)
{
	TEST_OK(rmem_mr_dereg(local));
	TEST_OK(rmem_mr_dereg(target));
	return perf_pair_close(&pair);
}

TEST_SUITE(wire_progress, setup, teardown);
