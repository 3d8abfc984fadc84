/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Lcores for test programs that are linked with librmem_plain: threads, of which one is the main
 * thread, which run until the program ends, as those of EAL. In place of eal.c.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_malloc.h>

#include "../test.h"

#define NB_LCORES 4u

/* A worker; its state and function are under its lock. */
static struct worker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	lcore_function_t *func; /* NULL: it waits */
	void *arg;
	bool is_ending;
} workers[NB_LCORES];

static void *
worker_main(void *arg)
{
	struct worker *worker = arg;

	if (rte_thread_register() != 0)
		return NULL;
	pthread_mutex_lock(&worker->lock);
	for (;;) {
		while (worker->func == NULL && !worker->is_ending)
			pthread_cond_wait(&worker->changed, &worker->lock);
		if (worker->func == NULL)
			break;
		pthread_mutex_unlock(&worker->lock);
		worker->func(worker->arg);
		pthread_mutex_lock(&worker->lock);
		worker->func = NULL;
		pthread_cond_broadcast(&worker->changed);
	}
	pthread_mutex_unlock(&worker->lock);
	return NULL;
}

/* Options of EAL end at "--". */
int
test_start_eal(int argc, char **argv)
{
	unsigned int i;
	int last = 1;

	if (rte_thread_register() != 0)
		return -1;
	for (i = 1; i < NB_LCORES; i++) {
		pthread_mutex_init(&workers[i].lock, NULL);
		pthread_cond_init(&workers[i].changed, NULL);
		if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) != 0)
			return -1;
	}
	while (last < argc && strcmp(argv[last], "--") != 0)
		last++;
	return last < argc ? last : argc - 1;
}

int
rte_eal_cleanup(void)
{
	unsigned int i;

	for (i = 1; i < NB_LCORES; i++) {
		pthread_mutex_lock(&workers[i].lock);
		workers[i].is_ending = true;
		pthread_cond_broadcast(&workers[i].changed);
		pthread_mutex_unlock(&workers[i].lock);
		pthread_join(workers[i].thread, NULL);
	}
	return 0;
}

/* The prompt is of a library of DPDK. */
int
test_prompt(void)
{
	fprintf(stderr, "DPDK_TEST: names no test\n");
	return EXIT_FAILURE;
}

int
test_serve_lcore(const char *args)
{
	if (args == NULL || strstr(args, "engine=") == NULL)
		return 0;
	fprintf(stderr, "%s: there are no service lcores\n", args);
	return -1;
}

struct rte_malloc_socket_stats
test_heap(void)
{
	struct rte_malloc_socket_stats stats;

	rte_malloc_get_socket_stats(0, &stats);
	return stats;
}

void
rte_delay_us_sleep(unsigned int us)
{
	const struct timespec time = {us / US_PER_S, us % US_PER_S * (NS_PER_S / US_PER_S)};

	nanosleep(&time, NULL);
}

unsigned int
rte_get_next_lcore(unsigned int i, int skip_main, int wrap)
{
	RTE_SET_USED(wrap);
	i++;
	if (i == 0 && skip_main)
		i = 1;
	return i < NB_LCORES ? i : RTE_MAX_LCORE;
}

int
rte_eal_remote_launch(lcore_function_t *f, void *arg, unsigned int worker_id)
{
	struct worker *worker = &workers[worker_id];

	pthread_mutex_lock(&worker->lock);
	worker->arg = arg;
	worker->func = f;
	pthread_cond_broadcast(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
	return 0;
}

void
rte_eal_mp_wait_lcore(void)
{
	unsigned int i;

	for (i = 1; i < NB_LCORES; i++) {
		pthread_mutex_lock(&workers[i].lock);
		while (workers[i].func != NULL)
			pthread_cond_wait(&workers[i].changed, &workers[i].lock);
		pthread_mutex_unlock(&workers[i].lock);
	}
}
