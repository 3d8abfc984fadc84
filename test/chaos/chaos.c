/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * usage: [RMEM_TEST_CHAOS_SECONDS=n] [RMEM_SEED=n] [RMEM_TEST_ARGS=args] dpdk-test-rmem-chaos
 *        [EAL options]
 *
 * Runs until the time is over or something is not as it must be, and exits with 0 or 1. A thread
 * draws all that it does from the seed and its number; how threads interleave does not repeat.
 */

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_pause.h>

#include "../test.h"
#include "chaos.h"

#define DEFAULT_SECONDS 3u

struct chaos ch;

uint32_t
ch_below(struct ch_thread *t, uint32_t limit)
{
	t->random = t->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(((t->random >> 33) * limit) >> 31);
}

bool
ch_one_in(struct ch_thread *t, uint32_t n)
{
	return ch_below(t, n) == 0;
}

bool
ch_is_stopped(void)
{
	return __atomic_load_n(&ch.is_stopped, __ATOMIC_ACQUIRE) != 0;
}

void
ch_lock(uint32_t *lock)
{
	unsigned int spins = 0;

	while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) != 0) {
		if (++spins % 64 == 0)
			sched_yield();
		else
			rte_pause();
	}
}

void
ch_unlock(uint32_t *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

void
ch_note(struct ch_thread *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(t->last[t->nb_ops++ % CH_NB_LAST], sizeof(t->last[0]), format, args);
	va_end(args);
}

static void
print_last(const struct ch_thread *t)
{
	uint64_t i = t->nb_ops > CH_NB_LAST ? t->nb_ops - CH_NB_LAST : 0;

	printf("  last operations of %s:\n", t->name);
	for (; i < t->nb_ops; i++)
		printf("    %" PRIu64 " %s\n", i, t->last[i % CH_NB_LAST]);
}

bool
ch_fail(struct ch_thread *t, const char *file, int line, const char *format, ...)
{
	va_list args;
	unsigned int i;

	if (__atomic_exchange_n(&ch.is_failed, 1, __ATOMIC_ACQ_REL) == 0) {
		printf("%s:%d: %s, operation %" PRIu64 ": ", file, line, t->name, t->nb_ops);
		va_start(args, format);
		vprintf(format, args);
		va_end(args);
		printf("\n  replay with RMEM_SEED=0x%" PRIx64 "\n", ch.seed);
		print_last(t);
		/* The others go on: a line of theirs may be half written. */
		for (i = 0; i < ch.nb_threads; i++) {
			if (&ch.threads[i] != t)
				print_last(&ch.threads[i]);
		}
		fflush(stdout);
	}
	__atomic_store_n(&ch.is_stopped, 1, __ATOMIC_RELEASE);
	return false;
}

bool
ch_allowed(struct ch_thread *t, const char *file, int line, int ret, const int *errnos)
{
	if (ret >= 0)
		return true;
	for (; *errnos != 0; errnos++) {
		if (ret == -*errnos)
			return true;
	}
	return ch_fail(t, file, line, "%d (%s) is not among the errnos that the call has here", ret,
			strerror(-ret));
}

uint64_t
ch_deadline(void)
{
	return rte_get_timer_cycles() + CH_DEADLINE_S * rte_get_timer_hz();
}

bool
ch_is_late(uint64_t deadline)
{
	return rte_get_timer_cycles() > deadline;
}

static uint64_t
number_of(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text != NULL ? strtoull(text, NULL, 0) : otherwise;
}

static bool
tick_lcore(struct ch_thread *t)
{
	unsigned int i;

	for (i = 0; i < CH_NB_QPS; i++) {
		if (!ch_qp_tick(t, t->qps[i]) || !ch_poll(t))
			return false;
	}
	return ch_binds_tick(t) && ch_leases_tick(t);
}

/* Its objects are released here, since its CQ and QPs belong to this thread. */
static bool
drain_lcore(struct ch_thread *t)
{
	bool is_ok = true;
	unsigned int i;

	for (i = 0; i < CH_NB_QPS; i++)
		is_ok = is_ok && ch_qp_drain(t, t->qps[i]);
	is_ok = is_ok && ch_leases_close(t) && ch_binds_close(t);
	for (i = 0; i < CH_NB_QPS; i++)
		is_ok = is_ok && ch_qp_close(t, t->qps[i]);
	return is_ok;
}

static int
run_lcore(void *arg)
{
	struct ch_thread *t = arg;

	while (!ch_is_stopped()) {
		if (!tick_lcore(t))
			return -1;
		/* There may be fewer processors than threads. */
		if (ch_one_in(t, 16))
			sched_yield();
	}
	return 0;
}

/* After all have stopped, so that no thread sends to a destroyed QP. */
static int
end_lcore(void *arg)
{
	return drain_lcore(arg) ? 0 : -1;
}

static bool
open_thread(struct ch_thread *t, unsigned int index, bool is_lcore)
{
	unsigned int i;

	t->index = index;
	t->is_lcore = is_lcore;
	t->random = ch.seed + index * UINT64_C(0x9e3779b97f4a7c15);
	snprintf(t->name, sizeof(t->name), "%s %u", is_lcore ? "lcore" : "control", index);
	if (!ch_slots_open(t))
		return false;
	if (!is_lcore)
		return true;
	for (i = 0; i < CH_NB_QPS; i++) {
		t->qps[i] = &ch.qps[i * ch.nb_lcores + index];
		t->qps[i]->index = i * ch.nb_lcores + index;
		/* One QP is of the other PD, its peer is not. */
		t->qps[i]->pd = t->qps[i]->index == ch.nb_qps - 1;
		t->qps[i]->owner = t;
	}
	t->local_size = CH_NB_QPS * (CH_NB_PENDING * CH_SCRATCH_SIZE + 4 * CH_PAGE);
	t->local_mem = aligned_alloc(CH_PAGE, t->local_size);
	if (t->local_mem == NULL)
		return CH_FAIL(t, "no memory");
	memset(t->local_mem, 0, t->local_size);
	return true;
}

/* Without those that serve. */
static unsigned int
count_workers(void)
{
	unsigned int lcore, nb = 0;

	RTE_LCORE_FOREACH_WORKER(lcore)
		nb++;
	return nb;
}

static bool
open_all(void)
{
	const char *more = getenv("RMEM_TEST_ARGS");
	struct ch_thread *t = &ch.threads[0];
	char args[128];
	unsigned int i;
	int ret;

	ch.nb_lcores = RTE_MIN(count_workers(), CH_MAX_LCORES);
	ch.nb_threads = ch.nb_lcores + CH_NB_CONTROLS;
	ch.nb_qps = ch.nb_lcores * CH_NB_QPS;
	snprintf(t->name, sizeof(t->name), "main");
	/* In small tables keys come back soon. */
	snprintf(args, sizeof(args), "%s%s", ch.seed % 2 == 0 ? "max_mr=400,max_mw=120," : "",
			more != NULL ? more : "max_pd=256");
	ret = rmem_dev_create("soft0", args, &ch.dev);
	if (ret != 0)
		return CH_FAIL(t, "rmem_dev_create: %s", strerror(-ret));
	for (i = 0; i < CH_NB_PDS; i++) {
		if (rmem_pd_alloc(ch.dev, &ch.pds[i]) != 0)
			return CH_FAIL(t, "no PD");
	}
	ch.sum = aligned_alloc(CH_PAGE, CH_PAGE);
	if (ch.sum == NULL)
		return CH_FAIL(t, "no memory");
	memset(ch.sum, 0, CH_PAGE);
	ret = rmem_mr_reg(ch.pds[0], ch.sum, sizeof(*ch.sum), 0, CH_ACCESS, &ch.sum_mr);
	if (ret != 0)
		return CH_FAIL(t, "rmem_mr_reg: %s", strerror(-ret));
	for (i = 0; i < ch.nb_threads; i++) {
		if (!open_thread(&ch.threads[i], i, i < ch.nb_lcores))
			return false;
	}
	return true;
}

/* QPs, once all threads are there. */
static bool
open_lcores(void)
{
	unsigned int i, j;

	for (i = 0; i < ch.nb_lcores; i++) {
		struct ch_thread *t = &ch.threads[i];
		const struct rmem_cq_conf conf = {.nb_cqe = 4096};
		int ret = rmem_cq_create(ch.dev, &conf, &t->cq);

		if (ret != 0)
			return CH_FAIL(t, "rmem_cq_create: %s", strerror(-ret));
		for (j = 0; j < CH_NB_QPS; j++) {
			t->qps[j]->scratch = t->local_mem + j * (t->local_size / CH_NB_QPS);
			t->qps[j]->recv_bufs = t->qps[j]->scratch + CH_NB_PENDING * CH_SCRATCH_SIZE;
			if (!ch_qp_open(t, t->qps[j]))
				return false;
		}
		if (!ch_binds_open(t) || !ch_leases_open(t))
			return false;
	}
	return true;
}

static bool
on_lcores(int (*func)(void *arg))
{
	unsigned int lcore, i = 0;

	RTE_LCORE_FOREACH_WORKER(lcore) {
		if (i < ch.nb_lcores && rte_eal_remote_launch(func, &ch.threads[i++], lcore) != 0)
			return CH_FAIL(&ch.threads[0], "no lcore");
	}
	return true;
}

/* No thread uses the device any more: no invariant of it or its objects is broken. */
static bool
is_audited(void)
{
	int ret = rmem_dev_audit(ch.dev);

	return CH_CHECK(&ch.threads[0], ret == 0, "rmem_dev_audit: %s", strerror(-ret));
}

static bool
run_all(uint64_t seconds)
{
	const uint64_t end = rte_get_timer_cycles() + seconds * rte_get_timer_hz();
	pthread_t controls[CH_NB_CONTROLS];
	unsigned int i;

	for (i = 0; i < CH_NB_CONTROLS; i++) {
		if (pthread_create(&controls[i], NULL, ch_control, &ch.threads[ch.nb_lcores + i]) !=
				0)
			return CH_FAIL(&ch.threads[0], "no thread");
	}
	on_lcores(run_lcore);
	while (!ch_is_stopped() && rte_get_timer_cycles() < end)
		usleep(10000);
	__atomic_store_n(&ch.is_stopped, 1, __ATOMIC_RELEASE);
	rte_eal_mp_wait_lcore();
	for (i = 0; i < CH_NB_CONTROLS; i++)
		pthread_join(controls[i], NULL);
	return !ch.is_failed && is_audited() && on_lcores(end_lcore) &&
			(rte_eal_mp_wait_lcore(), !ch.is_failed);
}

static bool
is_all_released(void)
{
	struct ch_thread *t = &ch.threads[0];
	struct rmem_dev_info info;
	unsigned int i;
	int ret;

	for (i = 0; i < ch.nb_lcores; i++) {
		ret = rmem_mr_dereg(ch.threads[i].local);
		if (ret == 0)
			ret = rmem_cq_destroy(ch.threads[i].cq);
		if (ret != 0)
			return CH_FAIL(&ch.threads[i], "CQ or MR: %s", strerror(-ret));
	}
	if (*ch.sum < ch.nb_added || *ch.sum > ch.nb_added + ch.nb_lost)
		return CH_FAIL(t,
				"%" PRIu64 " additions succeeded, %" PRIu64 " were dropped, and "
				"%" PRIu64 " were made",
				ch.nb_added, ch.nb_lost, *ch.sum);
	ret = rmem_mr_dereg(ch.sum_mr);
	for (i = 0; i < CH_NB_PDS && ret == 0; i++)
		ret = rmem_pd_dealloc(ch.pds[i]);
	if (ret != 0 || rmem_dev_info_get(ch.dev, &info) != 0)
		return CH_FAIL(t, "the last MR or a PD: %s", strerror(-ret));
	if (info.nb_pd + info.nb_mr + info.nb_mw + info.nb_cq + info.nb_qp != 0)
		return CH_FAIL(t, "left: %u PDs, %u MRs, %u windows, %u CQs, %u QPs", info.nb_pd,
				info.nb_mr, info.nb_mw, info.nb_cq, info.nb_qp);
	ret = rmem_dev_close(ch.dev);
	return CH_CHECK(t, ret == 0, "rmem_dev_close: %s", strerror(-ret));
}

static void
print_figures(void)
{
	unsigned int i;

	for (i = 0; i < ch.nb_threads; i++) {
		const struct ch_thread *t = &ch.threads[i];

		printf("  %s: %" PRIu64 " operations, %" PRIu64 " grants, %" PRIu64
		       " requests succeeded, %" PRIu64 " refused, %" PRIu64 " allocations failed\n",
				t->name, t->nb_ops, t->nb_grants, t->nb_succeeded, t->nb_refused,
				t->nb_failed_allocs);
	}
}

int
main(int argc, char **argv)
{
	const uint64_t seconds = number_of("RMEM_TEST_CHAOS_SECONDS", DEFAULT_SECONDS);
	uint32_t before;
	unsigned int i;
	bool is_ok;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (test_start_eal(argc, argv) < 0 || test_serve_lcore(getenv("RMEM_TEST_ARGS")) != 0)
		return EXIT_FAILURE;
	if (count_workers() < 2)
		return TEST_SKIPPED;
	ch.seed = number_of("RMEM_SEED", rte_rdtsc());
	printf("chaos: %" PRIu64 " s, RMEM_SEED=0x%" PRIx64 "\n", seconds, ch.seed);
	/* Memory that the first device shares with others is not freed. */
	if (rmem_dev_create("soft0", NULL, &ch.dev) != 0 || rmem_dev_close(ch.dev) != 0)
		return EXIT_FAILURE;
	before = test_heap().alloc_count;
	is_ok = open_all() && open_lcores() && run_all(seconds) && is_audited() &&
			is_all_released();
	print_figures();
	is_ok = is_ok &&
			CH_CHECK(&ch.threads[0], test_heap().alloc_count == before,
					"%u allocations are left",
					test_heap().alloc_count - before);
	for (i = 0; i < ch.nb_threads; i++) {
		ch_slots_close(&ch.threads[i]);
		free(ch.threads[i].local_mem);
	}
	free(ch.sum);
	rte_eal_cleanup();
	printf("Test %s\n", is_ok ? "OK" : "Failed");
	return is_ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
