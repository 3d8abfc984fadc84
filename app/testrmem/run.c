/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Running the workers. The main lcore ticks during a run: it waits, prints and reads commands. When
 * it is the only lcore it works itself and ticks in between.
 */

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_malloc.h>

#include "latency.h"
#include "remote.h"

#define TICK_MS       10
#define TICKS_PER_SEC (1000 / TICK_MS)

struct work {
	struct testrmem_worker *worker;
	testrmem_tick_t tick; /* NULL when another lcore ticks. */
	void *arg;
};

/*
 * A burst, and its duration: from the call that posts one until no request is in flight.
 * Depth is that of one burst.
 */
static int
time_burst(struct testrmem_pair *pair, struct latency *latency)
{
	const struct testrmem_engine *engine = pair->worker->session->engine;
	const uint64_t ops = pair->worker->cnt.ops;
	int ret;

	if (!pair->is_in_flight)
		pair->burst_tsc = rte_rdtsc();
	ret = engine->burst(pair, pair->is_done);
	pair->is_in_flight = ret > 0;
	if (ret == 0 && pair->worker->cnt.ops != ops &&
			__atomic_load_n(&pair->worker->session->is_warm, __ATOMIC_RELAXED) != 0)
		latency_add(latency, rte_rdtsc() - pair->burst_tsc);
	return ret;
}

/* Run a burst on each pair; returns the number of pairs that continue, or -errno. */
static int
work_once(struct testrmem_worker *worker)
{
	const struct testrmem_engine *engine = worker->session->engine;
	int nb_active = 0;
	uint32_t i;
	int ret;

	for (i = 0; i < worker->nb_pairs; i++) {
		struct testrmem_pair *pair = &worker->pairs[i];

		ret = pair->remote != NULL ? testrmem_remote_watch(pair) : 0;
		if (likely(ret == 0))
			ret = worker->latency != NULL ? time_burst(pair, worker->latency)
						      : engine->burst(pair, pair->is_done);
		if (unlikely(ret < 0))
			return ret;
		nb_active += !pair->is_done || ret > 0;
	}
	return nb_active;
}

static int
work_until_stop(struct work *work)
{
	uint64_t period = rte_get_tsc_hz() / TICKS_PER_SEC;
	struct testrmem_worker *worker = work->worker;
	uint64_t next = rte_rdtsc() + period;
	int ret;

	do {
		ret = work_once(worker);
		if (work->tick != NULL && rte_rdtsc() >= next) {
			work->tick(work->arg, 0);
			next = rte_rdtsc() + period;
		}
	} while (ret > 0 && !testrmem_session_is_stopped(worker->session));
	return ret;
}

static int
work_main(void *arg)
{
	struct work *work = arg;
	struct testrmem_worker *worker = work->worker;
	uint32_t i;
	int ret;

	__atomic_store_n(&worker->start_tsc, rte_rdtsc(), __ATOMIC_RELAXED);
	ret = work_until_stop(work);
	for (i = 0; i < worker->nb_pairs && ret >= 0; i++)
		ret = testrmem_pair_drain(&worker->pairs[i]);
	if (ret < 0)
		testrmem_session_stop(worker->session);
	worker->result = ret < 0 ? ret : 0;
	__atomic_store_n(&worker->end_tsc, rte_rdtsc(), __ATOMIC_RELEASE);
	return worker->result;
}

static bool
is_running(const struct testrmem_session *session)
{
	uint32_t i;

	for (i = 0; i < session->nb_workers; i++) {
		if (__atomic_load_n(&session->workers[i].end_tsc, __ATOMIC_ACQUIRE) == 0)
			return true;
	}
	return false;
}

static int
run_workers(struct testrmem_session *session, testrmem_tick_t tick, void *arg)
{
	struct work *works = testrmem_alloc(session->nb_workers, sizeof(*works));
	uint32_t i;
	int ret = 0;

	if (works == NULL)
		return -ENOMEM;
	for (i = 0; i < session->nb_workers && ret == 0; i++) {
		works[i].worker = &session->workers[i];
		ret = rte_eal_remote_launch(work_main, &works[i], session->workers[i].lcore_id);
		if (ret != 0) {
			testrmem_fail(session, "lcore %u does not start: %s",
					session->workers[i].lcore_id, rte_strerror(-ret));
		}
	}
	while (ret == 0 && is_running(session))
		tick(arg, TICK_MS);
	rte_eal_mp_wait_lcore();
	rte_free(works);
	return ret;
}

int
testrmem_run(struct testrmem_session *session, testrmem_tick_t tick, void *arg)
{
	struct work work = {.worker = &session->workers[0], .tick = tick, .arg = arg};
	uint32_t i;
	int ret = 0;

	if (session->workers[0].lcore_id == rte_get_main_lcore())
		ret = work_main(&work);
	else
		ret = run_workers(session, tick, arg);
	for (i = 0; i < session->nb_workers && ret == 0; i++)
		ret = session->workers[i].result;
	return ret;
}
