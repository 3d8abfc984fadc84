/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Cost of REG_MR and BIND_MW and the LOCAL_INV of each on the software device, in bursts of 32
 * on one lcore. The baseline is the minimum for each: one compare-and-swap on one cache line.
 */

#include "perf_floor.h"
#include "test.h"

#define NB_BURSTS 20000u

#define FREE UINT32_MAX /* rights of the word of a key */
#define BUSY UINT32_C(0)

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
	/* Of the floor. */
	struct perf_floor_key key[PERF_BURST];
	struct line references;
	struct rmem_wc wc;
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

/* Bind and invalidate repeatedly, all at once; the time of one of the two. */
static __rte_always_inline double
run_cycle(struct bind_job *job, bool is_bind, int (*bind)(struct bind_job *job),
		int (*invalidate)(struct bind_job *job))
{
	uint64_t start, took_bind = 0, took_inv = 0;
	uint32_t burst;

	for (burst = 0; burst < NB_BURSTS; burst++) {
		start = rte_rdtsc();
		if (bind(job) != 0)
			return -1.0;
		took_bind += rte_rdtsc() - start;
		start = rte_rdtsc();
		if (invalidate(job) != 0)
			return -1.0;
		took_inv += rte_rdtsc() - start;
	}
	return perf_ns(is_bind ? took_bind : took_inv, (double)NB_BURSTS * PERF_BURST);
}

static int
bind_all(struct bind_job *job)
{
	uint32_t i;

	for (i = 0; i < PERF_BURST; i++)
		*job->tag[i] = rmem_rkey_next_tag(*job->rkey[i]);
	return perf_burst(&job->pair, job->bind, PERF_BURST);
}

static int
invalidate_all(struct bind_job *job)
{
	uint32_t i;

	for (i = 0; i < PERF_BURST; i++)
		job->inv[i].invalidate_rkey = *job->rkey[i];
	return perf_burst(&job->pair, job->inv, PERF_BURST);
}

static double
run_bind(void *arg)
{
	return run_cycle(arg, true, bind_all, invalidate_all);
}

static double
run_inv(void *arg)
{
	return run_cycle(arg, false, bind_all, invalidate_all);
}

/* Change the rights of a key, if they are as expected. */
static __rte_always_inline bool
floor_take(struct perf_floor_key *key, uint32_t rights, uint32_t next)
{
	uint64_t word = __atomic_load_n(&key->word, __ATOMIC_RELAXED);

	return word >> 32 == rights &&
			__atomic_compare_exchange_n(&key->word, &word,
					(uint32_t)word | (uint64_t)next << 32, false,
					__ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* Fill a key from its request: of an MR, or of a window, which holds a reference to its MR. */
static __rte_always_inline int
floor_bind(struct bind_job *job, uint32_t i)
{
	struct perf_floor_key *key = &job->key[i];
	const struct rmem_send_wr *wr = &job->bind[i];
	uint64_t length, tag;

	if (unlikely(!floor_take(key, FREE, BUSY)))
		return -1;
	if (wr->opcode == RMEM_WR_REG_MR) {
		key->base = (uint8_t *)(uintptr_t)wr->reg_mr.page_list->page_list[0];
		key->iova = wr->reg_mr.iova;
		length = wr->reg_mr.length;
		tag = wr->reg_mr.key_tag;
	} else {
		const struct rmem_mr *mr = wr->bind_mw.mr;
		uint64_t offset = wr->bind_mw.addr - mr->iova;

		__atomic_fetch_add(&job->references.word, 1, __ATOMIC_RELAXED);
		length = wr->bind_mw.length;
		tag = wr->bind_mw.key_tag;
		if (unlikely(offset > mr->length || length > mr->length - offset))
			return -1;
		key->base = (uint8_t *)mr->addr + offset;
		key->iova = wr->bind_mw.addr;
	}
	key->length = length;
	key->pd = PERF_FLOOR_PD;
	__atomic_store_n(&key->word, (key->word & 0xffffff00) | tag | UINT64_C(1) << 32,
			__ATOMIC_RELEASE);
	return 0;
}

/* Each half ends with one completion. */
static int
floor_complete(struct bind_job *job)
{
	job->wc = (struct rmem_wc){.wr_id = 1, .status = RMEM_WC_SUCCESS};
	rte_compiler_barrier();
	return 0;
}

static int
floor_bind_all(struct bind_job *job)
{
	uint32_t i;

	for (i = 0; i < PERF_BURST; i++)
		*job->tag[i] = rmem_rkey_next_tag((uint32_t)job->key[i].word);
	for (i = 0; i < PERF_BURST; i++) {
		if (unlikely(floor_bind(job, i) != 0))
			return -1;
	}
	return floor_complete(job);
}

static int
floor_invalidate_all(struct bind_job *job)
{
	uint32_t i;

	for (i = 0; i < PERF_BURST; i++)
		job->inv[i].invalidate_rkey = (uint32_t)job->key[i].word;
	for (i = 0; i < PERF_BURST; i++) {
		if (unlikely(!floor_take(&job->key[i], 1, BUSY)))
			return -1;
	}
	/* No access that started before is in progress on this lcore. */
	for (i = 0; i < PERF_BURST; i++) {
		if (job->bind[i].opcode == RMEM_WR_BIND_MW)
			__atomic_fetch_sub(&job->references.word, 1, __ATOMIC_RELEASE);
		__atomic_store_n(&job->key[i].word,
				(uint32_t)job->key[i].word | (uint64_t)FREE << 32,
				__ATOMIC_RELEASE);
	}
	return floor_complete(job);
}

static double
run_floor_bind(void *arg)
{
	return run_cycle(arg, true, floor_bind_all, floor_invalidate_all);
}

static double
run_floor_inv(void *arg)
{
	return run_cycle(arg, false, floor_bind_all, floor_invalidate_all);
}

static void
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
}

static void
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
}

static void
job_open(struct bind_job *job, bool is_mw)
{
	uint32_t i;

	memset(job, 0, sizeof(*job));
	perf_pair_open(&job->pair, NULL);
	TEST_OK(rmem_mr_reg(job->pair.pd, NULL, PERF_BURST * 4096, 0,
			PERF_ACCESS | RMEM_ACCESS_MW_BIND | RMEM_ACCESS_ALLOCATE_MR, &job->memory));
	for (i = 0; i < PERF_BURST; i++) {
		if (is_mw)
			open_mw(job, i);
		else
			open_mr(job, i);
		job->inv[i].opcode = RMEM_WR_LOCAL_INV;
		job->key[i].word = (uint64_t)FREE << 32;
	}
	job->bind[PERF_BURST - 1].flags = RMEM_SEND_SIGNALED;
	job->inv[PERF_BURST - 1].flags = RMEM_SEND_SIGNALED;
}

static void
job_close(struct bind_job *job)
{
	uint32_t i;

	for (i = 0; i < PERF_BURST; i++) {
		TEST_OK(rmem_fast_reg_page_list_free(job->list[i]));
		TEST_OK(rmem_mr_dereg(job->mr[i]));
		TEST_OK(rmem_mw_dealloc(job->mw[i]));
	}
	TEST_OK(rmem_mr_dereg(job->memory));
	perf_pair_close(&job->pair);
}

static void
compare(const char *name, const char *bar, bool is_mw, perf_func_t func, perf_func_t floor)
{
	struct perf_row row = PERF_ROW(name, "ns/op", "a compare-and-swap", bar);
	static struct bind_job job;

	job_open(&job, is_mw);
	perf_measure(&row, run_cas, func, &job);
	perf_floor(&row, run_cas, floor, &job);
	job_close(&job);
}

PERF_CALL(reg_mr_burst32, compare, "ratio <= 3", false, run_bind, run_floor_bind);
PERF_CALL(local_inv_burst32, compare, "ratio <= 3", false, run_inv, run_floor_inv);
PERF_CALL(mw_bind_burst32, compare, "ratio <= 5", true, run_bind, run_floor_bind);
PERF_CALL(mw_inv_burst32, compare, "ratio <= 3", true, run_inv, run_floor_inv);
