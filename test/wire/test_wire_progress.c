/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A thread serves a target, also while an lcore polls periodically; an audit waits for it. Cases
 * write private structures of the software device.
 */

#include <pthread.h>
#include <sched.h>

#include <rte_cycles.h>

#include "../../drivers/soft/wire/rwire.h"

#include "../perf.h"
#include "../test.h"

#define NB_POLLS 100u
#define ENOUGH   (3 * NB_POLLS) /* READs in as many intervals */
#define NB_TURNS 1000u

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

/* A thread in the midst of a change to a QP, for which it holds a lock. */
struct changer {
	rte_ticketlock_t *lock;
	struct rsoft_qp *qp;
	bool is_changing, is_audited; /* atomic */
};

/* For many turns of the thread that audits, unless it has not waited. */
static void *
change(void *arg)
{
	struct changer *changer = arg;
	struct rsoft_rq *rq = &changer->qp->rq;
	uint32_t i;

	rte_ticketlock_lock(changer->lock);
	rq->prod_seen++;
	__atomic_store_n(&changer->is_changing, true, __ATOMIC_RELEASE);
	for (i = 0; i < NB_TURNS && !__atomic_load_n(&changer->is_audited, __ATOMIC_ACQUIRE); i++)
		sched_yield();
	rq->prod_seen--;
	rte_ticketlock_unlock(changer->lock);
	return NULL;
}

static int
audit_during_change(rte_ticketlock_t *lock)
{
	struct changer changer = {.lock = lock, .qp = (struct rsoft_qp *)pair.b};
	pthread_t thread;
	int ret;

	TEST_OK(pthread_create(&thread, NULL, change, &changer));
	while (!__atomic_load_n(&changer.is_changing, __ATOMIC_ACQUIRE))
		sched_yield();
	ret = rmem_dev_audit(pair.dev_b);
	__atomic_store_n(&changer.is_audited, true, __ATOMIC_RELEASE);
	TEST_OK(pthread_join(thread, NULL));
	TEST_OK(ret);
	return TEST_SUCCESS;
}

/* A late packet or an expired timer may change a QP while no lcore uses the device. */
TEST(wire_progress, an_audit_waits_for_the_thread)
{
	struct rsoft_dev *dev = rmem_dev_drv(pair.dev_b)->priv;

	TEST_RUN(audit_during_change(&dev->wire->rx_lock));
	TEST_RUN(audit_during_change(&dev->pending_lock));
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
