/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Work on several lcores at a time, in a way that a thread sanitizer can follow. */

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_pause.h>

#include "fixture.h"
#include "test.h"

#define SLICE_NS     200000
#define SLICE_SIGNAL (SIGRTMIN + 3)

struct job {
	int (*func)(void *arg);
	void *arg;
	bool is_sliced;
	int result;
	int is_done; /* atomic */
};

static struct job jobs[RTE_MAX_LCORE];

unsigned int
fx_nb_workers(void)
{
	unsigned int lcore, nb = 0;

	/* Not those that serve. */
	RTE_LCORE_FOREACH_WORKER(lcore)
		nb++;
	return nb;
}

void
fx_relax(unsigned int *spins)
{
	if (++*spins % 16 == 0)
		sched_yield();
	else
		rte_pause();
}

int
fx_wait_until(const uint32_t *value, uint32_t want)
{
	uint64_t deadline = fx_deadline();
	unsigned int spins = 0;

	while (__atomic_load_n(value, __ATOMIC_ACQUIRE) < want) {
		TEST_ASSERT(!fx_is_late(deadline));
		fx_relax(&spins);
	}
	return TEST_SUCCESS;
}

static void
end_slice(int signum)
{
	RTE_SET_USED(signum);
	sched_yield();
}

/* Until the timer is deleted, the signal interrupts this thread alone. */
static int
start_slices(timer_t *timer)
{
	const struct itimerspec spec = {{0, SLICE_NS}, {0, SLICE_NS}};
	struct sigaction action = {.sa_handler = end_slice, .sa_flags = SA_RESTART};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SLICE_SIGNAL};

	event._sigev_un._tid = gettid();
	TEST_OK(sigaction(SLICE_SIGNAL, &action, NULL));
	TEST_OK(timer_create(CLOCK_MONOTONIC, &event, timer));
	TEST_OK(timer_settime(*timer, 0, &spec, NULL));
	return TEST_SUCCESS;
}

static int
run_sliced(struct job *job)
{
	timer_t timer;
	int result;

	TEST_RUN(start_slices(&timer));
	result = job->func(job->arg);
	TEST_OK(timer_delete(timer));
	return result;
}

static int
run_job(void *arg)
{
	struct job *job = arg;

	job->result = job->is_sliced ? run_sliced(job) : job->func(job->arg);
	__atomic_store_n(&job->is_done, 1, __ATOMIC_RELEASE);
	return 0;
}

static int
launch(int (*func)(void *arg), void *args, size_t arg_size, unsigned int nb, bool is_sliced)
{
	unsigned int lcore, i = 0;

	RTE_LCORE_FOREACH_WORKER(lcore) {
		if (i == nb)
			break;
		jobs[i].func = func;
		jobs[i].arg = (uint8_t *)args + i * arg_size;
		jobs[i].is_sliced = is_sliced;
		jobs[i].is_done = 0;
		TEST_OK(rte_eal_remote_launch(run_job, &jobs[i], lcore));
		i++;
	}
	TEST_EQ(i, nb);
	return TEST_SUCCESS;
}

int
fx_launch(int (*func)(void *arg), void *args, size_t arg_size, unsigned int nb)
{
	return launch(func, args, arg_size, nb, false);
}

int
fx_launch_sliced(int (*func)(void *arg), void *args, size_t arg_size, unsigned int nb)
{
	return launch(func, args, arg_size, nb, true);
}

int
fx_join(unsigned int nb)
{
	int result = TEST_SUCCESS;
	unsigned int spins = 0;
	unsigned int i;

	for (i = 0; i < nb; i++) {
		while (!__atomic_load_n(&jobs[i].is_done, __ATOMIC_ACQUIRE))
			fx_relax(&spins);
		if (jobs[i].result != TEST_SUCCESS)
			result = jobs[i].result;
	}
	rte_eal_mp_wait_lcore();
	return result;
}
