/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * What REG_MR and LOCAL_INV cost on the software device, in bursts of 32 on one lcore. The
 * yardstick is what each cannot do without: one compare-and-swap on one cache line.
 */

#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "perf.h"
#include "test.h"

#define NB_BURSTS 20000u

struct line {
	uint64_t word;
} __rte_cache_aligned;

struct reg_job {
	struct perf_pair pair;
	struct rmem_mr *memory;
	struct rmem_mr *mr[PERF_BURST];
	struct rmem_fast_reg_page_list *list[PERF_BURST];
	struct rmem_send_wr reg[PERF_BURST];
	struct rmem_send_wr inv[PERF_BURST];
	struct line line[PERF_BURST];
};

static double
run_cas(void *arg)
{
	struct reg_job *job = arg;
	uint64_t start = rte_rdtsc_precise();
	uint32_t burst, i;

	for (burst = 0; burst < NB_BURSTS; burst++) {
		for (i = 0; i < PERF_BURST; i++) {
			uint64_t word = burst;

			__atomic_compare_exchange_n(&job->line[i].word, &word, burst + 1, false,
					__ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
		}
	}
	for (i = 0; i < PERF_BURST; i++)
		job->line[i].word = 0;
	return perf_ns(rte_rdtsc_precise() - start, (double)NB_BURSTS * PERF_BURST);
}

/* Bind all, take all away, again and again; the time of the one half or of the other. */
static double
run_cycle(struct reg_job *job, bool is_reg)
{
	uint64_t start, took_reg = 0, took_inv = 0;
	uint32_t burst, i;

	for (burst = 0; burst < NB_BURSTS; burst++) {
		start = rte_rdtsc();
		for (i = 0; i < PERF_BURST; i++)
			job->reg[i].reg_mr.key_tag = rmem_rkey_next_tag(job->mr[i]->rkey);
		if (perf_burst(&job->pair, job->reg, PERF_BURST) != RMEM_WC_SUCCESS)
			return -1.0;
		took_reg += rte_rdtsc() - start;
		start = rte_rdtsc();
		for (i = 0; i < PERF_BURST; i++)
			job->inv[i].invalidate_rkey = job->mr[i]->rkey;
		if (perf_burst(&job->pair, job->inv, PERF_BURST) != RMEM_WC_SUCCESS)
			return -1.0;
		took_inv += rte_rdtsc() - start;
	}
	return perf_ns(is_reg ? took_reg : took_inv, (double)NB_BURSTS * PERF_BURST);
}

static double
run_reg(void *arg)
{
	return run_cycle(arg, true);
}

static double
run_inv(void *arg)
{
	return run_cycle(arg, false);
}

static int
job_open_one(struct reg_job *job, uint32_t i)
{
	uint64_t page = job->memory->iova + i * 4096;

	TEST_OK(rmem_fast_reg_mr_alloc(job->pair.pd, 1, &job->mr[i]));
	TEST_OK(rmem_fast_reg_page_list_alloc(job->pair.dev, 1, &job->list[i]));
	job->list[i]->page_list[0] = page;
	job->reg[i].opcode = RMEM_WR_REG_MR;
	job->reg[i].reg_mr.mr = job->mr[i];
	job->reg[i].reg_mr.page_list = job->list[i];
	job->reg[i].reg_mr.iova = page;
	job->reg[i].reg_mr.length = 4096;
	job->reg[i].reg_mr.access = PERF_ACCESS;
	job->reg[i].reg_mr.page_list_len = 1;
	job->reg[i].reg_mr.log2_page_size = 12;
	job->inv[i].opcode = RMEM_WR_LOCAL_INV;
	return TEST_SUCCESS;
}

static int
job_open(struct reg_job *job)
{
	uint32_t i;

	memset(job, 0, sizeof(*job));
	TEST_RUN(perf_pair_open(&job->pair, NULL));
	job->memory = perf_mr(job->pair.pd, PERF_BURST * 4096);
	TEST_ASSERT(job->memory != NULL);
	for (i = 0; i < PERF_BURST; i++)
		TEST_RUN(job_open_one(job, i));
	job->reg[PERF_BURST - 1].flags = RMEM_SEND_SIGNALED;
	job->inv[PERF_BURST - 1].flags = RMEM_SEND_SIGNALED;
	return TEST_SUCCESS;
}

static int
job_close(struct reg_job *job)
{
	uint32_t i;

	for (i = 0; i < PERF_BURST; i++) {
		TEST_OK(rmem_fast_reg_page_list_free(job->list[i]));
		TEST_OK(rmem_mr_dereg(job->mr[i]));
	}
	TEST_OK(rmem_mr_dereg(job->memory));
	return perf_pair_close(&job->pair);
}

static int
compare(const char *name, perf_func_t func)
{
	struct perf_row row = {.name = name,
			.unit = "ns/op",
			.yardstick = "a compare-and-swap",
			.bar = "value <= 15 ns"};
	static struct reg_job job;

	TEST_RUN(job_open(&job));
	TEST_RUN(perf_compare(run_cas, func, &job, &row.baseline, &row.value));
	row.ratio = row.value / row.baseline;
	TEST_RUN(perf_report(&row));
	return job_close(&job);
}

static int
test_reg_mr_burst32(void)
{
	return compare("reg_mr_burst32", run_reg);
}

static int
test_local_inv_burst32(void)
{
	return compare("local_inv_burst32", run_inv);
}

REGISTER_RMEM_TEST(reg_mr_burst32_perf_autotest, test_reg_mr_burst32);
REGISTER_RMEM_TEST(local_inv_burst32_perf_autotest, test_local_inv_burst32);
