/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A CQ with RMEM_CQ_IGNORE_OVERRUN loses completions without an entry, and nothing else fails; also
 * where service lcores or packets complete the requests, after the post.
 */

#include <pthread.h>
#include <sched.h>

#include <rte_lcore.h>

#include "fixture.h"

#define NB_CQE 4u
#define DEPTH  16u

static struct {
	struct rmem_async_channel *events;
	struct rmem_cq *cq; /* of both QPs */
	struct rmem_qp *qp;
	struct rmem_qp *peer;
} ig;

static struct rmem_qp *
create_qp(void)
{
	struct rmem_qp_conf conf = fx_qp_conf(ig.cq, DEPTH);

	conf.async_channel = ig.events;
	return fx_qp_by(fx.a.pd, &conf);
}

static void
create(struct rmem_cq_conf conf)
{
	conf.async_channel = ig.events;
	conf.flags |= RMEM_CQ_IGNORE_OVERRUN;
	ig.cq = fx_cq_by(fx.a.dev, &conf);
	TEST_EQ(ig.cq->nb_cqe, NB_CQE);
	ig.qp = create_qp();
	ig.peer = create_qp();
	TEST_OK(fx_connect_pair(ig.qp, ig.peer));
}

static void
setup(void)
{
	const struct rmem_cq_conf conf = {.nb_cqe = NB_CQE};

	fx_setup();
	ig.events = fx_async_channel(fx.a.dev);
	create(conf);
}

/* n requests of one post, numbered from first on. */
static void
post(uint64_t first, uint16_t n)
{
	struct rmem_send_wr wr[DEPTH];
	uint16_t i;

	for (i = 0; i < n; i++) {
		wr[i] = fx_wr(RMEM_WR_RDMA_WRITE, NULL, 0);
		wr[i].flags = RMEM_SEND_SIGNALED;
		wr[i].wr_id = first + i;
	}
	TEST_EQ(rmem_post_send(ig.qp, wr, n), n);
}

static void
expect(uint64_t first, uint32_t n)
{
	fx_expect_done(ig.cq, first, n);
	TEST_EQ(rmem_poll_cq(ig.cq, &fx.wc, 1), 0);
}

/* Wait until that many completions were lost, without a poll, which would free entries. */
static void
await_lost(uint64_t nb)
{
	uint64_t deadline = fx_deadline();
	struct rmem_cq_stats stats;
	unsigned int spins = 0;

	for (;;) {
		TEST_OK(rmem_cq_stats_get(ig.cq, &stats));
		if (stats.overruns >= nb)
			return;
		TEST_ASSERT(!fx_is_late(deadline));
		fx_relax(&spins);
	}
}

/* No event, no state of an error, and as many completions were lost. */
static void
expect_lost(uint64_t nb)
{
	struct rmem_cq_stats stats;

	TEST_OK(rmem_cq_stats_get(ig.cq, &stats));
	TEST_EQ(stats.overruns, nb);
	TEST_EQ(stats.outstanding, 0);
	TEST_ASSERT(!fx_is_readable(ig.events->fd, 0));
	TEST_EQ(fx_state(ig.qp), RMEM_QPS_RTS);
	TEST_EQ(fx_state(ig.peer), RMEM_QPS_RTS);
	TEST_OK(rmem_dev_audit(fx.a.dev));
}

/* The send queue has DEPTH entries: those of lost completions are free again. */
TEST(cq_ignore, completions_of_requests_are_lost_without_an_error)
{
	uint64_t nb = 0;
	unsigned int i;

	for (i = 0; i < 20; i++) {
		post(100 * i, DEPTH - i % 3);
		nb += DEPTH - i % 3 - NB_CQE;
		await_lost(nb);
		expect(100 * i, NB_CQE);
	}
	expect_lost(20 * (DEPTH - NB_CQE) - 19);
	post(0, NB_CQE);
	expect(0, NB_CQE);
}

TEST(cq_ignore, completions_of_receives_are_lost_without_an_error)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	uint32_t round, i;

	wr.flags = 0;
	for (round = 0; round < 3; round++) {
		for (i = 0; i < DEPTH; i++)
			TEST_EQ(fx_post_recv(ig.peer, i, NULL, 0), 1);
		for (i = 0; i < NB_CQE + 2; i++)
			TEST_EQ(fx_post(ig.qp, &wr), 1);
		await_lost(2 * (round + 1));
		expect(0, NB_CQE);
		for (; i < DEPTH - 1; i++) {
			TEST_EQ(fx_post(ig.qp, &wr), 1);
			expect(i, 1);
		}
		wr.flags = RMEM_SEND_SIGNALED;
		TEST_EQ(fx_post(ig.qp, &wr), 1);
		TEST_STATUS(fx_wait(ig.cq), RMEM_WC_SUCCESS);
		TEST_STATUS(fx_wait(ig.cq), RMEM_WC_SUCCESS);
		wr.flags = 0;
	}
	expect_lost(3 * 2);
}

TEST(cq_ignore, flushed_requests_are_lost_without_an_error)
{
	struct rmem_cq_stats stats;
	uint32_t i;

	for (i = 0; i < DEPTH; i++)
		TEST_EQ(fx_post_recv(ig.peer, i, NULL, 0), 1);
	TEST_OK(rmem_qp_set_error(ig.peer));
	await_lost(DEPTH - NB_CQE);
	for (i = 0; i < NB_CQE; i++) {
		TEST_STATUS(fx_wait(ig.cq), RMEM_WC_WR_FLUSH_ERR);
		TEST_EQ(fx.wc.wr_id, i);
	}
	TEST_EQ(rmem_poll_cq(ig.cq, &fx.wc, 1), 0);
	TEST_OK(rmem_cq_stats_get(ig.cq, &stats));
	TEST_EQ(stats.overruns, DEPTH - NB_CQE);
	TEST_ASSERT(!fx_is_readable(ig.events->fd, 0));
	TEST_OK(rmem_dev_audit(fx.a.dev));
}

TEST(cq_ignore, resize_of_a_full_queue_keeps_its_completions)
{
	post(0, NB_CQE + 1);
	await_lost(1);
	TEST_ERR(rmem_cq_resize(ig.cq, NB_CQE - 1), EINVAL);
	TEST_OK(rmem_cq_resize(ig.cq, 2 * NB_CQE));
	post(NB_CQE, NB_CQE + 3);
	await_lost(1 + 3);
	expect(0, 2 * NB_CQE);
	TEST_OK(rmem_cq_resize(ig.cq, 2));
	post(0, 3);
	await_lost(1 + 3 + 1);
	expect(0, 2);
	expect_lost(1 + 3 + 1);
}

TEST(cq_ignore, channel_and_timestamps_are_those_of_kept_completions)
{
	struct rmem_comp_channel *channel = fx_channel(fx.a.dev);
	const struct rmem_cq_conf conf = {
			.nb_cqe = NB_CQE, .channel = channel, .flags = RMEM_CQ_TIMESTAMP};
	struct rmem_cq *found = NULL;
	uint64_t before, after;

	create(conf);
	TEST_OK(rmem_cq_req_notify(ig.cq, false));
	TEST_OK(rmem_dev_clock_get(fx.a.dev, &before));
	post(0, DEPTH);
	await_lost(DEPTH - NB_CQE);
	TEST_OK(rmem_dev_clock_get(fx.a.dev, &after));
	TEST_OK(rmem_comp_channel_get_event(channel, &found, NULL));
	TEST_ASSERT(found == ig.cq);
	TEST_OK(rmem_cq_ack_events(ig.cq, 1));
	TEST_STATUS(fx_wait(ig.cq), RMEM_WC_SUCCESS);
	TEST_ASSERT(ig.cq->timestamps[0] >= before && ig.cq->timestamps[0] <= after);
	expect(1, NB_CQE - 1);
	expect_lost(DEPTH - NB_CQE);
}

#define RACE_WRITES 6000u

struct writer {
	struct rmem_qp *qp;
	uint32_t is_done;    /* atomic */
	uint32_t is_stopped; /* atomic: nothing polls */
};

/* Unsignaled requests are freed by the next signaled one, also by one whose completion is lost. */
static void *
run_writer(void *arg)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_RDMA_WRITE, NULL, 0);
	struct writer *w = arg;

	if (rte_thread_register() == 0) {
		for (wr.wr_id = 1; wr.wr_id <= RACE_WRITES; wr.wr_id++) {
			wr.flags = wr.wr_id % 3 != 0 ? RMEM_SEND_SIGNALED : 0;
			while (rmem_post_send(w->qp, &wr, 1) == -ENOSPC &&
					!__atomic_load_n(&w->is_stopped, __ATOMIC_RELAXED))
				sched_yield();
		}
		rte_thread_unregister();
	}
	__atomic_store_n(&w->is_done, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Signaled requests of both writers. */
#define RACE_SIGNALED (2 * (RACE_WRITES - RACE_WRITES / 3))

/* Whether all signaled requests have completed, of which nb were polled. */
static bool
is_race_done(const struct writer w[2], uint64_t nb)
{
	struct rmem_cq_stats stats;

	return __atomic_load_n(&w[0].is_done, __ATOMIC_ACQUIRE) != 0 &&
			__atomic_load_n(&w[1].is_done, __ATOMIC_ACQUIRE) != 0 &&
			rmem_cq_stats_get(ig.cq, &stats) == 0 &&
			nb + stats.overruns >= RACE_SIGNALED;
}

/* Poll until all have completed: the completions of each QP are in order. Set *total. */
static void
poll_race(const struct writer w[2], uint64_t *total)
{
	uint64_t last[2] = {0, 0}, nb = 0, deadline = fx_deadline();
	struct rmem_wc wc[3];
	unsigned int spins = 0;
	int i, ret, n = 0;

	while (!is_race_done(w, nb)) {
		if (n == 0)
			fx_relax(&spins);
		TEST_ASSERT(!fx_is_late(deadline));
		n = rmem_poll_cq(ig.cq, wc, RTE_DIM(wc));
		TEST_ASSERT(n >= 0);
		for (i = 0; i < n; i++) {
			uint64_t *of = &last[wc[i].qp_num != w[0].qp->qp_num];

			TEST_STATUS(wc[i].status, RMEM_WC_SUCCESS);
			TEST_ASSERT(wc[i].wr_id > *of);
			*of = wc[i].wr_id;
		}
		nb += (uint64_t)n;
		if (nb % 64 != 0)
			continue;
		ret = rmem_cq_resize(ig.cq, NB_CQE << (nb / 64 % 2));
		TEST_ASSERT(ret == 0 || ret == -EINVAL); /* it is too full */
	}
	*total = nb;
}

TEST(cq_ignore, completions_of_threads_are_polled_in_order_or_lost)
{
	struct writer w[2] = {{.qp = ig.qp}, {.qp = ig.peer}};
	struct rmem_cq_stats stats;
	pthread_t threads[2];
	uint64_t nb = 0;
	unsigned int i;
	int ret;

	for (i = 0; i < 2; i++)
		TEST_EQ(pthread_create(&threads[i], NULL, run_writer, &w[i]), 0);
	ret = TEST_TRY(poll_race(w, &nb));
	for (i = 0; i < 2; i++)
		__atomic_store_n(&w[i].is_stopped, ret != TEST_SUCCESS, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++)
		TEST_EQ(pthread_join(threads[i], NULL), 0);
	TEST_RUN(ret);
	TEST_OK(rmem_cq_stats_get(ig.cq, &stats));
	TEST_EQ(nb + stats.overruns, RACE_SIGNALED);
	expect_lost(stats.overruns);
}

TEST_SUITE(cq_ignore, setup, fx_teardown);
