/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Cost of a registered mbuf pool compared with a plain one: allocating and freeing mbufs, and the
 * lkey of an mbuf beyond reading where its data is.
 */

#include <rte_mbuf.h>

#include <rmem_mbuf.h>

#include "perf_row.h"
#include "test.h"

#define NB_MBUFS   8192u
#define CACHE_SIZE 256u
#define NB_BURSTS  125000u

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

static __rte_always_inline int
alloc_free(struct mbuf_job *job, struct rte_mempool *mp)
{
	if (unlikely(rte_pktmbuf_alloc_bulk(mp, job->mbufs, PERF_BURST) != 0))
		return -1;
	rte_compiler_barrier();
	rte_pktmbuf_free_bulk(job->mbufs, PERF_BURST);
	return 0;
}

PERF_LOOP(run_plain, NB_BURSTS, PERF_BURST)
{
	return alloc_free(arg, ((struct mbuf_job *)arg)->plain);
}

PERF_LOOP(run_registered, NB_BURSTS, PERF_BURST)
{
	return alloc_free(arg, ((struct mbuf_job *)arg)->pool->mp);
}

/* Where the data is: what an SGE takes without a key. */
PERF_LOOP(run_addr, NB_BURSTS, PERF_BURST)
{
	struct mbuf_job *job = arg;
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < PERF_BURST; i++)
		sum += rmem_mbuf_iova(job->pool, job->mbufs[i]);
	job->sum = sum;
	return 0;
}

static __rte_always_inline int
sum_keys(struct mbuf_job *job, const struct rmem_mempool *reg)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < PERF_BURST; i++) {
		sum += rmem_mbuf_iova(reg, job->mbufs[i]);
		sum += rmem_mbuf_lkey(reg, job->mbufs[i]);
	}
	job->sum = sum;
	return 0;
}

PERF_LOOP(run_key_of_pool, NB_BURSTS, PERF_BURST)
{
	return sum_keys(arg, ((struct mbuf_job *)arg)->pool);
}

/* Asked of another pool's registration: the binary search. */
PERF_LOOP(run_key_of_other, NB_BURSTS, PERF_BURST)
{
	return sum_keys(arg, ((struct mbuf_job *)arg)->other);
}

/* The address, one comparison and one key. */
PERF_LOOP(run_floor, NB_BURSTS, PERF_BURST)
{
	struct mbuf_job *job = arg;
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < PERF_BURST; i++) {
		sum += rmem_mbuf_iova(job->pool, job->mbufs[i]);
		if ((uintptr_t)job->mbufs[i]->buf_addr - job->base < job->length)
			sum += job->lkey;
	}
	job->sum = sum;
	return 0;
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

PERF_TEST(mbuf_alloc_free_bulk32)
{
	struct perf_row row = PERF_ROW(
			"mbuf_alloc_free_bulk32", "ns/mbuf", "a plain mbuf pool", "ratio <= 1.02");
	struct mbuf_job job;

	open_job(&job);
	perf_measure(&row, run_plain, run_registered, &job);
	close_job(&job);
}

PERF_TEST(lkey_of_mbuf)
{
	static const char yardstick[] = "the address of the data alone";
	struct perf_row row = PERF_ROW("lkey_of_mbuf", "ns/mbuf", yardstick, "ratio <= 1.5");
	struct perf_row foreign = PERF_ROW("lkey_of_foreign_mbuf", "ns/mbuf", yardstick, "none");
	struct mbuf_job job;

	open_job(&job);
	TEST_OK(rte_pktmbuf_alloc_bulk(job.pool->mp, job.mbufs, PERF_BURST));
	job.lkey = rmem_mbuf_lkey(job.pool, job.mbufs[0]);
	job.base = (uintptr_t)job.mbufs[0]->buf_addr & ~(uintptr_t)UINT32_MAX;
	job.length = (size_t)2 << 32;
	perf_measure(&row, run_addr, run_key_of_pool, &job);
	perf_floor(&row, run_addr, run_floor, &job);
	perf_measure(&foreign, run_addr, run_key_of_other, &job);
	rte_pktmbuf_free_bulk(job.mbufs, PERF_BURST);
	close_job(&job);
}
