/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Cost of on-demand paging on the software device: a WRITE to pages that the device has
 * had, against a plain MR; and one to a page that it has not, against a bare first touch.
 */

#include <string.h>
#include <sys/mman.h>

#include "perf_row.h"
#include "test.h"

#define WRITE_SIZE 64u
#define NB_BUFS    1024u
#define NB_BURSTS  10000u
#define PAGE       4096u
#define NB_PAGES   8192u

struct odp_job {
	struct perf_pair pair;
	struct rmem_mr *src;
	struct rmem_mr *plain; /* over the same memory as on_demand */
	struct rmem_mr *on_demand;
	uint8_t *mem;
	size_t size;
	struct perf_wrs wrs;
	uint32_t at;                                     /* buffer of the next WRITE */
	uint8_t is_present[NB_BUFS * WRITE_SIZE / PAGE]; /* of the floor */
};

/* A burst to an MR; is_floor: with a lookup in a table of pages for each WRITE. */
static __rte_always_inline int
write_burst(struct odp_job *job, const struct rmem_mr *dst, bool is_floor)
{
	uint32_t i, at = job->at, missing = 0;

	for (i = 0; i < PERF_BURST; i++) {
		uint64_t offset = (uint64_t)at * WRITE_SIZE;

		job->wrs.sge[i].addr = job->src->iova + offset;
		job->wrs.wr[i].rdma.remote_addr = dst->iova + offset;
		job->wrs.wr[i].rdma.rkey = dst->rkey;
		if (is_floor &&
				__atomic_load_n(&job->is_present[offset / PAGE],
						__ATOMIC_ACQUIRE) == 0)
			missing++;
		at = (at + 1) & (NB_BUFS - 1);
	}
	job->at = at;
	return perf_burst(&job->pair, job->wrs.wr, PERF_BURST) != RMEM_WC_SUCCESS || missing != 0;
}

PERF_LOOP(run_plain, NB_BURSTS, PERF_BURST)
{
	return write_burst(arg, ((struct odp_job *)arg)->plain, false);
}

PERF_LOOP(run_warm, NB_BURSTS, PERF_BURST)
{
	return write_burst(arg, ((struct odp_job *)arg)->on_demand, false);
}

PERF_LOOP(run_floor, NB_BURSTS, PERF_BURST)
{
	return write_burst(arg, ((struct odp_job *)arg)->plain, true);
}

/* Cost of page faults of the CPU. */
static double
run_touch(void *arg)
{
	struct odp_job *job = arg;
	volatile uint8_t *mem = job->mem;
	uint64_t start;
	uint32_t i;

	if (madvise(job->mem, job->size, MADV_DONTNEED) != 0)
		return -1.0;
	start = rte_rdtsc_precise();
	for (i = 0; i < NB_PAGES; i++)
		mem[(size_t)i * PAGE] = 1;
	return perf_ns(rte_rdtsc_precise() - start, NB_PAGES);
}

static double
run_faults(void *arg)
{
	struct odp_job *job = arg;
	struct rmem_mr_stats before, after;
	uint64_t start, cycles;
	uint32_t page, i;

	if (madvise(job->mem, job->size, MADV_DONTNEED) != 0 ||
			rmem_mr_stats_get(job->on_demand, &before) != 0)
		return -1.0;
	start = rte_rdtsc_precise();
	for (page = 0; page < NB_PAGES; page += PERF_BURST) {
		for (i = 0; i < PERF_BURST; i++) {
			job->wrs.wr[i].rdma.remote_addr =
					job->on_demand->iova + (uint64_t)(page + i) * PAGE;
			job->wrs.wr[i].rdma.rkey = job->on_demand->rkey;
		}
		if (perf_burst(&job->pair, job->wrs.wr, PERF_BURST) != RMEM_WC_SUCCESS)
			return -1.0;
	}
	cycles = rte_rdtsc_precise() - start;
	if (rmem_mr_stats_get(job->on_demand, &after) != 0 ||
			after.page_faults - before.page_faults != NB_PAGES)
		return -1.0;
	return perf_ns(cycles, NB_PAGES);
}

static void
job_open(struct odp_job *job, size_t size, bool has_plain)
{
	memset(job, 0, sizeof(*job));
	memset(job->is_present, 1, sizeof(job->is_present));
	perf_pair_open(&job->pair, NULL);
	job->src = perf_mr(job->pair.pd, NB_BUFS * WRITE_SIZE);
	job->size = size;
	job->mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT(job->mem != MAP_FAILED);
	madvise(job->mem, size, MADV_NOHUGEPAGE);
	if (has_plain)
		TEST_OK(rmem_mr_reg(job->pair.pd, job->mem, size, 0, PERF_ACCESS, &job->plain));
	TEST_OK(rmem_mr_reg(job->pair.pd, job->mem, size, 0, PERF_ACCESS | RMEM_ACCESS_ON_DEMAND,
			&job->on_demand));
	perf_wrs_init(&job->wrs, RMEM_WR_RDMA_WRITE, WRITE_SIZE, job->src, NULL);
}

static void
job_close(struct odp_job *job)
{
	TEST_OK(rmem_mr_dereg(job->on_demand));
	TEST_OK(rmem_mr_dereg(job->plain));
	TEST_OK(rmem_mr_dereg(job->src));
	munmap(job->mem, job->size);
	perf_pair_close(&job->pair);
}

PERF_TEST(odp_warm_write64)
{
	struct perf_row row = PERF_ROW(
			"odp_warm_write64", "ns/op", "the same by a plain MR", "ratio <= 1.15");
	struct odp_job job;

	job_open(&job, NB_BUFS * WRITE_SIZE, true);
	perf_measure(&row, run_plain, run_warm, &job);
	perf_floor(&row, run_plain, run_floor, &job);
	job_close(&job);
}

PERF_TEST(odp_fault_4k)
{
	struct perf_row row = PERF_ROW("odp_fault_4k", "ns/page", "a bare first touch", "none");
	struct odp_job job;

	job_open(&job, (size_t)NB_PAGES * PAGE, false);
	perf_measure(&row, run_touch, run_faults, &job);
	job_close(&job);
}
