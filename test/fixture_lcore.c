/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Work on several lcores at a time, in a way that a thread sanitizer can follow. */

#include <sched.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_pause.h>

#include "fixture.h"

/* How long a wait polls before it sleeps, so that those that it waits for have the processor. */
#define RELAX_SPINS 4096u
#define RELAX_US    50

struct job {
	void (*func)(void *arg);
	void *arg;
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
	if (++*spins % 16 != 0)
		rte_pause();
	else if (*spins < RELAX_SPINS)
		sched_yield();
	else
		rte_delay_us_sleep(RELAX_US);
}

void
fx_wait_until(const uint32_t *value, uint32_t want)
{
	uint64_t deadline = fx_deadline();
	unsigned int spins = 0;

	while (__atomic_load_n(value, __ATOMIC_ACQUIRE) < want) {
		TEST_ASSERT(!fx_is_late(deadline));
		fx_relax(&spins);
	}
}

static int
run_job(void *arg)
{
	struct job *job = arg;

	job->result = TEST_TRY(job->func(job->arg));
	__atomic_store_n(&job->is_done, 1, __ATOMIC_RELEASE);
	return 0;
}

void
fx_need_workers(unsigned int nb)
{
	if (fx_nb_workers() < nb)
		test_skip(nb == 1 ? "it takes a worker lcore" : "it takes two worker lcores");
}

void
fx_launch(void (*func)(void *arg), void *args, size_t arg_size, unsigned int nb)
{
	unsigned int lcore, i = 0;

	RTE_LCORE_FOREACH_WORKER(lcore) {
		if (i == nb)
			break;
		jobs[i].func = func;
		jobs[i].arg = args != NULL ? (uint8_t *)args + i * arg_size : NULL;
		jobs[i].is_done = 0;
		TEST_OK(rte_eal_remote_launch(run_job, &jobs[i], lcore));
		i++;
	}
	TEST_EQ(i, nb);
}

void
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
	TEST_RUN(result);
}
