/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Cost of REG_MR and BIND_MW and the LOCAL_INV of each on the software device, in bursts of 32
 * on one lcore. The yardstick is what each cannot do without: one compare-and-swap on one cache
 * line.
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

struct bind_job {
	struct perf_pair pair;
	struct rmem_mr *memory;
	struct rmem_fast_reg_page_list *list[PERF_BURST];
	struct rmem_mr *mr[PERF_BURST];
	struct rmem_mw *mw[PERF_BURST];
	struct rmem_send_wr bind[PERF_BURST];
	struct rmem_send_wr inv[PERF_BURST];
	/* In these: the rkey of object i, and the field for its next tag. */
	const uint32_t *rkey[PERF_BURST];
	uint8_t *tag[PERF_BURST];
	struct line line[PERF_BURST];
};

static double
run_cas(void *arg)
{
	struct bind_job *job = arg;
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

/* Bind all and invalidate all, repeatedly; the time of one of the two. */
static double
run_cycle(struct bind_job *job, bool is_bind)
{
	uint64_t start, took_bind = 0, took_inv = 0;
	uint32_t burst, i;

	for (burst = 0; burst < NB_BURSTS; burst++) {
		start = rte_rdtsc();
		for (i = 0; i < PERF_BURST; i++)
			*job->tag[i] = rmem_rkey_next_tag(*job->rkey[i]);
		if (perf_burst(&job->pair, job->bind, PERF_BURST) != RMEM_WC_SUCCESS)
			return -1.0;
		took_bind += rte_rdtsc() - start;
		start = rte_rdtsc();
		for (i = 0; i < PERF_BURST; i++)
			job->inv[i].invalidate_rkey = *job->rkey[i];
		if (perf_burst(&job->pair, job->inv, PERF_BURST) != RMEM_WC_SUCCESS)
			return -1.0;
		took_inv += rte_rdtsc() - start;
	}
	return perf_ns(is_bind ? took_bind : took_inv, (double)NB_BURSTS * PERF_BURST);
}

static double
run_bind(void *arg)
{
	return run_cycle(arg, true);
}

static double
run_inv(void *arg)
{
	return run_cycle(arg, false);
}

static int
open_mr(struct bind_job *job, uint32_t i)
{
	struct rmem_send_wr *wr = &job->bind[i];
	uint64_t page = job->memory->iova + i * 4096;

	TEST_OK(rmem_fast_reg_mr_alloc(job->pair.pd, 1, &job->mr[i]));
	TEST_OK(rmem_fast_reg_page_list_alloc(job->pair.dev, 1, &job->list[i]));
	job->list[i]->page_list[0] = page;
	wr->opcode = RMEM_WR_REG_MR;
	wr->reg_mr.mr = job->mr[i];
	wr->reg_mr.page_list = job->list[i];
	wr->reg_mr.iova = page;
	wr->reg_mr.length = 4096;
	wr->reg_mr.access = PERF_ACCESS;
	wr->reg_mr.page_list_len = 1;
	wr->reg_mr.log2_page_size = 12;
	job->rkey[i] = &job->mr[i]->rkey;
	job->tag[i] = &wr->reg_mr.key_tag;
	return TEST_SUCCESS;
}

static int
open_mw(struct bind_job *job, uint32_t i)
{
	struct rmem_send_wr *wr = &job->bind[i];

	TEST_OK(rmem_mw_alloc(job->pair.pd, RMEM_MW_TYPE_2, &job->mw[i]));
	wr->opcode = RMEM_WR_BIND_MW;
	wr->bind_mw.mw = job->mw[i];
	wr->bind_mw.mr = job->memory;
	wr->bind_mw.addr = job->memory->iova + i * 4096;
	wr->bind_mw.length = 4096;
	wr->bind_mw.access = RMEM_ACCESS_REMOTE;
	job->rkey[i] = &job->mw[i]->rkey;
	job->tag[i] = &wr->bind_mw.key_tag;
	return TEST_SUCCESS;
}

static int
job_open(struct bind_job *job, bool is_mw)
{
	uint32_t i;

	memset(job, 0, sizeof(*job));
	TEST_RUN(perf_pair_open(&job->pair, NULL));
	TEST_OK(rmem_mr_reg(job->pair.pd, NULL, PERF_BURST * 4096, 0,
			PERF_ACCESS | RMEM_ACCESS_MW_BIND | RMEM_ACCESS_ALLOCATE_MR, &job->memory));
	for (i = 0; i < PERF_BURST; i++) {
		TEST_RUN(is_mw ? open_mw(job, i) : open_mr(job, i));
		job->inv[i].opcode = RMEM_WR_LOCAL_INV;
	}
	job->bind[PERF_BURST - 1].flags = RMEM_SEND_SIGNALED;
	job->inv[PERF_BURST - 1].flags = RMEM_SEND_SIGNALED;
	return TEST_SUCCESS;
}

static int
job_close(struct bind_job *job)
{
	uint32_t i;

	for (i = 0; i < PERF_BURST; i++) {
		TEST_OK(rmem_fast_reg_page_list_free(job->list[i]));
		TEST_OK(rmem_mr_dereg(job->mr[i]));
		TEST_OK(rmem_mw_dealloc(job->mw[i]));
	}
	TEST_OK(rmem_mr_dereg(job->memory));
	return perf_pair_close(&job->pair);
}

static int
compare(struct perf_row *row, bool is_mw, perf_func_t func)
{
	static struct bind_job job;

	row->unit = "ns/op";
	row->yardstick = "a compare-and-swap";
	TEST_RUN(job_open(&job, is_mw));
	TEST_RUN(perf_compare(run_cas, func, &job, &row->baseline, &row->value));
	row->ratio = row->value / row->baseline;
	TEST_RUN(perf_report(row));
	return job_close(&job);
}

static int
test_reg_mr_burst32(void)
{
	struct perf_row row = {.name = "reg_mr_burst32", .bar = "value <= 15 ns"};

	return compare(&row, false, run_bind);
}

static int
test_local_inv_burst32(void)
{
	struct perf_row row = {.name = "local_inv_burst32", .bar = "value <= 15 ns"};

	return compare(&row, false, run_inv);
}

static int
test_mw_bind_burst32(void)
{
	struct perf_row row = {.name = "mw_bind_burst32", .bar = "value <= 20 ns"};

	return compare(&row, true, run_bind);
}

static int
test_mw_inv_burst32(void)
{
	struct perf_row row = {.name = "mw_inv_burst32", .bar = "value <= 20 ns"};

	return compare(&row, true, run_inv);
}

REGISTER_RMEM_TEST(reg_mr_burst32_perf_autotest, test_reg_mr_burst32);
REGISTER_RMEM_TEST(local_inv_burst32_perf_autotest, test_local_inv_burst32);
REGISTER_RMEM_TEST(mw_bind_burst32_perf_autotest, test_mw_bind_burst32);
REGISTER_RMEM_TEST(mw_inv_burst32_perf_autotest, test_mw_inv_burst32);
