/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Cost of an MR from the registration cache: get and put of a registered buffer, of one and of
 * many at random, compared with the mutex that other caches take.
 */

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_random.h>

#include <rmem_cache.h>

#include "perf_row.h"
#include "test.h"

#define NB_OPS   4096u /* of a run */
#define NB_RUNS  500u
#define NB_BUFS  1024u
#define BUF_SIZE 4096u

struct cache_job {
	struct perf_pair pair;
	struct rmem_cache *cache;
	pthread_mutex_t mutex;
	uint8_t *mem;
	uint32_t nb_bufs;
	uint32_t nb_gets;
	uint8_t *order[NB_BUFS]; /* buffers */
};

PERF_LOOP(mutexes, NB_OPS, 1)
{
	struct cache_job *job = arg;

	return pthread_mutex_lock(&job->mutex) != 0 || pthread_mutex_unlock(&job->mutex) != 0;
}

PERF_LOOP(hits, NB_OPS, 1)
{
	struct cache_job *job = arg;
	void *buf = job->order[job->nb_gets++ % job->nb_bufs];
	struct rmem_mr *mr;

	return rmem_cache_get(job->cache, buf, BUF_SIZE, PERF_ACCESS, &mr) != 0 ||
			rmem_cache_put(job->cache, mr) != 0;
}

/* The best of short runs: other load interrupts most of the long ones. */
static double
best_of(perf_func_t run, void *job)
{
	double ns, best = run(job);
	uint32_t i;

	for (i = 1; i < NB_RUNS && best >= 0; i++) {
		ns = run(job);
		best = RTE_MIN(best, ns);
	}
	return best;
}

static double
run_mutex(void *arg)
{
	return best_of(mutexes, arg);
}

static double
run_hits(void *arg)
{
	return best_of(hits, arg);
}

/* Buffers that are not adjacent, in random order. */
static void
open_job(struct cache_job *job)
{
	const struct rmem_cache_conf conf = {.max_size = UINT64_MAX, .socket_id = SOCKET_ID_ANY};
	uint32_t i, k;
	uint8_t *swap;

	memset(job, 0, sizeof(*job));
	perf_pair_open(&job->pair, "pin=off");
	TEST_OK(pthread_mutex_init(&job->mutex, NULL));
	TEST_OK(rmem_cache_create(job->pair.pd, &conf, &job->cache));
	job->mem = mmap(NULL, (size_t)NB_BUFS * 2 * BUF_SIZE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT(job->mem != MAP_FAILED);
	for (i = 0; i < NB_BUFS; i++) {
		k = (uint32_t)rte_rand_max(i + 1);
		swap = job->mem + (size_t)i * 2 * BUF_SIZE;
		job->order[i] = job->order[k];
		job->order[k] = swap;
	}
}

PERF_TEST(cache_hit)
{
	struct perf_row row =
			PERF_ROW("cache_hit", "ns", "a mutex locked and unlocked", "<= 60 ns");
	struct cache_job job;

	open_job(&job);
	job.nb_bufs = 1;
	perf_measure(&row, run_mutex, run_hits, &job);
	job.nb_bufs = NB_BUFS;
	row.name = "cache_hit_1024";
	perf_measure(&row, run_mutex, run_hits, &job);
	TEST_OK(rmem_cache_destroy(job.cache));
	munmap(job.mem, (size_t)NB_BUFS * 2 * BUF_SIZE);
	perf_pair_close(&job.pair);
}
