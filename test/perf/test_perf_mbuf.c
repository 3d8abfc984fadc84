/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Cost of a registered mbuf pool compared with a plain one: allocating and freeing mbufs, and the
 * lkey of an mbuf beyond reading where its data is.
 */

#include <rte_cycles.h>
#include <rte_mbuf.h>

#include <rmem_mbuf.h>

#include "perf.h"
#include "test.h"

#define NB_MBUFS   8192u
#define CACHE_SIZE 256u
#define NB_OPS     4000000u

struct mbuf_job {
	struct perf_pair pair;
	struct rmem_mempool *pool;
	struct rmem_mempool *other;
	struct rte_mempool *plain;
	struct rte_mbuf *mbufs[PERF_BURST];
	volatile uint64_t sum;
	/* The memory of the pool and its key. */
	uintptr_t base;
	size_t length;
	uint32_t lkey;
};

static double
run_alloc_free(struct mbuf_job *job, struct rte_mempool *mp)
{
	uint64_t start = rte_rdtsc_precise();
	uint32_t i;

	for (i = 0; i < NB_OPS; i += PERF_BURST) {
		if (unlikely(rte_pktmbuf_alloc_bulk(mp, job->mbufs, PERF_BURST) != 0))
			return -1.0;
		rte_compiler_barrier();
		rte_pktmbuf_free_bulk(job->mbufs, PERF_BURST);
	}
	return perf_ns(rte_rdtsc_precise() - start, NB_OPS);
}

static double
run_plain(void *arg)
{
	struct mbuf_job *job = arg;

	return run_alloc_free(job, job->plain);
}

static double
run_registered(void *arg)
{
	struct mbuf_job *job = arg;

	return run_alloc_free(job, job->pool->mp);
}

/* Where the data is: what an SGE takes without a key. */
static double
run_addr(void *arg)
{
	struct mbuf_job *job = arg;
	uint64_t start = rte_rdtsc_precise(), sum = 0;
	uint32_t i, k;

	for (i = 0; i < NB_OPS; i += PERF_BURST) {
		for (k = 0; k < PERF_BURST; k++)
			sum += rmem_mbuf_iova(job->pool, job->mbufs[k]);
		rte_compiler_barrier();
	}
	job->sum = sum;
	return perf_ns(rte_rdtsc_precise() - start, NB_OPS);
}

static __rte_always_inline double
run_key(struct mbuf_job *job, const struct rmem_mempool *reg)
{
	uint64_t start = rte_rdtsc_precise(), sum = 0;
	uint32_t i, k;

	for (i = 0; i < NB_OPS; i += PERF_BURST) {
		for (k = 0; k < PERF_BURST; k++) {
			sum += rmem_mbuf_iova(reg, job->mbufs[k]);
			sum += rmem_mbuf_lkey(reg, job->mbufs[k]);
		}
		rte_compiler_barrier();
	}
	job->sum = sum;
	return perf_ns(rte_rdtsc_precise() - start, NB_OPS);
}

static double
run_key_of_pool(void *arg)
{
	struct mbuf_job *job = arg;

	return run_key(job, job->pool);
}

/* The address, one comparison and one key. */
static double
run_floor(void *arg)
{
	struct mbuf_job *job = arg;
	uint64_t start = rte_rdtsc_precise(), sum = 0;
	uint32_t i, k;

	for (i = 0; i < NB_OPS; i += PERF_BURST) {
		for (k = 0; k < PERF_BURST; k++) {
			sum += rmem_mbuf_iova(job->pool, job->mbufs[k]);
			if ((uintptr_t)job->mbufs[k]->buf_addr - job->base < job->length)
				sum += job->lkey;
		}
		rte_compiler_barrier();
	}
	job->sum = sum;
	return perf_ns(rte_rdtsc_precise() - start, NB_OPS);
}

/* Asked of another pool's registration: the binary search. */
static double
run_key_of_other(void *arg)
{
	struct mbuf_job *job = arg;

	return run_key(job, job->other);
}

static void
open_job(struct mbuf_job *job)
{
	struct rmem_pktmbuf_pool_conf conf = {.name = "perf",
			.nb_mbufs = NB_MBUFS,
			.cache_size = CACHE_SIZE,
			.data_room_size = RTE_MBUF_DEFAULT_BUF_SIZE,
			.access = PERF_ACCESS,
			.socket_id = SOCKET_ID_ANY};

	perf_pair_open(&job->pair, NULL);
	TEST_OK(rmem_pktmbuf_pool_create(job->pair.pd, &conf, &job->pool));
	conf.name = "perf_other";
	conf.nb_mbufs = 1024;
	TEST_OK(rmem_pktmbuf_pool_create(job->pair.pd, &conf, &job->other));
	job->plain = rte_pktmbuf_pool_create("perf_plain", NB_MBUFS, CACHE_SIZE, 0,
			RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	TEST_ASSERT(job->plain != NULL);
}

static void
close_job(struct mbuf_job *job)
{
	rte_mempool_free(job->plain);
	TEST_OK(rmem_pktmbuf_pool_destroy(job->other));
	TEST_OK(rmem_pktmbuf_pool_destroy(job->pool));
	perf_pair_close(&job->pair);
}

static void
report(struct mbuf_job *job, struct perf_row *row, perf_func_t yardstick, perf_func_t value)
{
	perf_measure(row, yardstick, value, job);
}

static void
test_mbuf_alloc_free_bulk32(void)
{
	struct perf_row row = {.name = "mbuf_alloc_free_bulk32",
			.unit = "ns/mbuf",
			.yardstick = "a plain mbuf pool",
			.bar = "ratio <= 1.02"};
	struct mbuf_job job;

	open_job(&job);
	report(&job, &row, run_plain, run_registered);
	close_job(&job);
}

static void
test_lkey_of_mbuf(void)
{
	struct perf_row rows[] = {{.name = "lkey_of_mbuf",
						  .unit = "ns/mbuf",
						  .yardstick = "the address of the data alone",
						  .bar = "ratio <= 1.5"},
			{.name = "lkey_of_foreign_mbuf",
					.unit = "ns/mbuf",
					.yardstick = "the address of the data alone",
					.bar = "none"}};
	struct mbuf_job job;

	open_job(&job);
	TEST_OK(rte_pktmbuf_alloc_bulk(job.pool->mp, job.mbufs, PERF_BURST));
	job.lkey = rmem_mbuf_lkey(job.pool, job.mbufs[0]);
	job.base = (uintptr_t)job.mbufs[0]->buf_addr & ~(uintptr_t)UINT32_MAX;
	job.length = (size_t)2 << 32;
	report(&job, &rows[0], run_addr, run_key_of_pool);
	perf_floor(&rows[0], run_addr, run_floor, &job);
	report(&job, &rows[1], run_addr, run_key_of_other);
	rte_pktmbuf_free_bulk(job.mbufs, PERF_BURST);
	close_job(&job);
}

REGISTER_RMEM_TEST(mbuf_alloc_free_bulk32_perf_autotest, test_mbuf_alloc_free_bulk32);
REGISTER_RMEM_TEST(lkey_of_mbuf_perf_autotest, test_lkey_of_mbuf);
