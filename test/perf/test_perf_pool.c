/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Cost of a registered pool compared with an rte_mempool of the same geometry: getting and
 * putting buffers with their SGEs filled, and creating 256 MiB of it.
 */

#include <sys/mman.h>

#include <rte_mempool.h>

#include <rmem_pool.h>

#include "perf_row.h"
#include "test.h"

#define NB_BUFS     8192u
#define BUF_SIZE    2048u
#define CACHE_SIZE  256u
#define NB_OPS      4000000u
#define CREATE_BUFS (120u * 1024) /* with their headers, 256 MiB */

struct pool_job {
	struct perf_pair pair;
	struct rmem_pool *pool;
	struct rte_mempool *mp;
	struct rmem_sge sge[PERF_BURST];
	void *obj[PERF_BURST];
};

/* The burst is a constant for the compiler, as in an application. */
static __rte_always_inline int
use_mempool(struct pool_job *job, struct rte_mempool *mp, unsigned int burst)
{
	if (unlikely(rte_mempool_get_bulk(mp, job->obj, burst) != 0))
		return -1;
	rte_compiler_barrier();
	rte_mempool_put_bulk(mp, job->obj, burst);
	return 0;
}

static __rte_always_inline int
use_pool(struct pool_job *job, unsigned int burst)
{
	if (unlikely(rmem_pool_get_sges(job->pool, job->sge, burst) != 0))
		return -1;
	rte_compiler_barrier();
	rmem_pool_put_sges(job->pool, job->sge, burst);
	return 0;
}

PERF_LOOP(run_mempool_32, NB_OPS / PERF_BURST, PERF_BURST)
{
	return use_mempool(arg, ((struct pool_job *)arg)->mp, PERF_BURST);
}

PERF_LOOP(run_pool_32, NB_OPS / PERF_BURST, PERF_BURST)
{
	return use_pool(arg, PERF_BURST);
}

PERF_LOOP(run_tracked_32, NB_OPS / PERF_BURST, PERF_BURST)
{
	return use_mempool(arg, ((struct pool_job *)arg)->pool->mp, PERF_BURST);
}

PERF_LOOP(run_mempool_1, NB_OPS, 1)
{
	return use_mempool(arg, ((struct pool_job *)arg)->mp, 1);
}

PERF_LOOP(run_pool_1, NB_OPS, 1)
{
	return use_pool(arg, 1);
}

static void
compare(const char *name, perf_func_t yardstick, perf_func_t value)
{
	struct rmem_pool_conf conf = {.name = "perf",
			.nb_bufs = NB_BUFS,
			.buf_size = BUF_SIZE,
			.cache_size = CACHE_SIZE,
			.access = PERF_ACCESS,
			.socket_id = SOCKET_ID_ANY};
	struct perf_row row = PERF_ROW(name, "ns/buffer", "rte_mempool", "ratio <= 1.05");
	struct pool_job job;

	perf_pair_open(&job.pair, NULL);
	TEST_OK(rmem_pool_create(job.pair.pd, &conf, &job.pool));
	job.mp = rte_mempool_create("perf_plain", NB_BUFS, BUF_SIZE, CACHE_SIZE, 0, NULL, NULL,
			NULL, NULL, SOCKET_ID_ANY, 0);
	TEST_ASSERT(job.mp != NULL);
	perf_measure(&row, yardstick, value, &job);
	rte_mempool_free(job.mp);
	TEST_OK(rmem_pool_destroy(job.pool));
	perf_pair_close(&job.pair);
}

PERF_CALL(pool_sge_bulk32, compare, run_mempool_32, run_pool_32);
PERF_CALL(pool_sge_bulk1, compare, run_mempool_1, run_pool_1);

/* Without caches: a tracked pool, and the mempool ops given. */
static void
compare_tracked(const char *name, const char *ops_name)
{
	struct rmem_pool_conf conf = {.name = "perf",
			.nb_bufs = NB_BUFS,
			.buf_size = BUF_SIZE,
			.access = PERF_ACCESS,
			.socket_id = SOCKET_ID_ANY,
			.flags = RMEM_POOL_TRACKED};
	struct rmem_pool_conf plain_conf = conf;
	struct perf_row row = PERF_ROW(name, "ns/buffer", ops_name, "ratio <= 2");
	struct rmem_pool *plain = NULL;
	struct pool_job job;

	perf_pair_open(&job.pair, NULL);
	plain_conf.name = "perf_plain";
	plain_conf.ops_name = ops_name;
	plain_conf.flags = 0;
	TEST_OK(rmem_pool_create(job.pair.pd, &conf, &job.pool));
	TEST_OK(rmem_pool_create(job.pair.pd, &plain_conf, &plain));
	job.mp = plain->mp;
	perf_measure(&row, run_mempool_32, run_tracked_32, &job);
	TEST_OK(rmem_pool_destroy(plain));
	TEST_OK(rmem_pool_destroy(job.pool));
	perf_pair_close(&job.pair);
}

PERF_CALL(tracked_ring_bulk32, compare_tracked, "ring_mp_mc");
PERF_CALL(tracked_stack_bulk32, compare_tracked, "stack");

static void
lock_chunk(struct rte_mempool *mp, void *opaque, struct rte_mempool_memhdr *chunk, unsigned int i)
{
	RTE_SET_USED(mp);
	RTE_SET_USED(opaque);
	RTE_SET_USED(i);
	/* If the limit of pinned memory forbids it, the baseline is without mlock(). */
	if (mlock(chunk->addr, chunk->len) == 0)
		munlock(chunk->addr, chunk->len);
}

static double
run_create_mempool(void *arg)
{
	uint64_t took, start = rte_rdtsc_precise();
	struct rte_mempool *mp;

	RTE_SET_USED(arg);
	mp = rte_mempool_create("perf_plain", CREATE_BUFS, BUF_SIZE, 0, 0, NULL, NULL, NULL, NULL,
			SOCKET_ID_ANY, RTE_MEMPOOL_F_NO_IOVA_CONTIG);
	if (mp == NULL)
		return -1.0;
	rte_mempool_mem_iter(mp, lock_chunk, NULL);
	took = rte_rdtsc_precise() - start;
	rte_mempool_free(mp);
	return perf_ns(took, 1e6);
}

static double
run_create_pool(void *arg)
{
	struct pool_job *job = arg;
	struct rmem_pool_conf conf = {.name = "perf",
			.nb_bufs = CREATE_BUFS,
			.buf_size = BUF_SIZE,
			.access = PERF_ACCESS,
			.socket_id = SOCKET_ID_ANY};
	uint64_t took, start = rte_rdtsc_precise();

	if (rmem_pool_create(job->pair.pd, &conf, &job->pool) != 0)
		return -1.0;
	took = rte_rdtsc_precise() - start;
	return rmem_pool_destroy(job->pool) == 0 ? perf_ns(took, 1e6) : -1.0;
}

PERF_TEST(pool_create_256m)
{
	struct perf_row row =
			PERF_ROW("pool_create_256m", "ms", "rte_mempool + mlock", "ratio <= 1.10");
	struct pool_job job;

	perf_pair_open(&job.pair, NULL);
	if (run_create_mempool(&job) < 0.0) {
		perf_pair_close(&job.pair);
		test_skip("less than 256 MiB of EAL memory");
	}
	perf_measure(&row, run_create_mempool, run_create_pool, &job);
	perf_pair_close(&job.pair);
}
