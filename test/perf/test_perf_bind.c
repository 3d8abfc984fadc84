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

/* Rights that need LOCAL_WRITE. */
#define FLOOR_MODIFY (RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_ATOMIC)

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

/* Change the rights of a key, if its word is as expected. */
static __rte_always_inline bool
floor_take(struct perf_floor_key *key, uint64_t word, uint32_t next)
{
	return __atomic_load_n(&key->word, __ATOMIC_RELAXED) == word &&
			__atomic_compare_exchange_n(&key->word, &word,
					(uint32_t)word | (uint64_t)next << 32, false,
					__ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* Whether a handle is an object of a type and of the device of the QP. */
static __rte_always_inline bool
floor_is_of(const struct bind_job *job, const struct rmem_obj *obj, uint32_t type)
{
	return obj != NULL && obj->type == type && obj->dev_id == job->pair.a->obj.dev_id;
}

/* The rules of a REG_MR of one page. */
static __rte_always_inline bool
floor_check_reg(const struct bind_job *job, const struct rmem_send_wr *wr)
{
	const struct rmem_mr *mr = wr->reg_mr.mr;
	const struct rmem_fast_reg_page_list *list = wr->reg_mr.page_list;
	uint64_t size = UINT64_C(1) << (wr->reg_mr.log2_page_size & 63);
	uint64_t length = wr->reg_mr.length, page;

	if (unlikely(!floor_is_of(job, &mr->obj, RMEM_OBJ_MR) ||
			    !floor_is_of(job, &list->obj, RMEM_OBJ_PAGE_LIST) ||
			    mr->type != RMEM_MR_TYPE_FAST_REG || mr->pd != job->pair.pd ||
			    wr->reg_mr.page_list_len != 1 || list->max_page_list_len == 0))
		return false;
	page = list->page_list[0];
	return (wr->reg_mr.access & ~PERF_ACCESS) == 0 &&
			((wr->reg_mr.access & RMEM_ACCESS_LOCAL_WRITE) != 0 ||
					(wr->reg_mr.access & FLOOR_MODIFY) == 0) &&
			(size & UINT64_C(0x7ffff000)) != 0 && wr->reg_mr.log2_page_size < 64 &&
			length != 0 && wr->reg_mr.first_byte_offset + length <= size &&
			length - 1 <= UINT64_MAX - wr->reg_mr.iova && page != 0 &&
			(page & (size - 1)) == 0;
}

/* The rules of a BIND_MW to the MR of the burst. */
static __rte_always_inline bool
floor_check_bind(const struct bind_job *job, const struct rmem_send_wr *wr)
{
	const struct rmem_mw *mw = wr->bind_mw.mw;
	const struct rmem_mr *mr = wr->bind_mw.mr;
	uint64_t offset = wr->bind_mw.addr - mr->iova;

	return likely(floor_is_of(job, &mw->obj, RMEM_OBJ_MW) &&
			floor_is_of(job, &mr->obj, RMEM_OBJ_MR) && mw->type == RMEM_MW_TYPE_2 &&
			mw->pd == job->pair.pd && mr == job->memory &&
			(wr->bind_mw.access & ~RMEM_ACCESS_REMOTE) == 0 &&
			wr->bind_mw.length != 0 && offset < mr->length &&
			wr->bind_mw.length <= mr->length - offset);
}

/* The rules of an MR for windows. */
static __rte_always_inline bool
floor_check_mr(const struct bind_job *job, const struct rmem_mr *mr)
{
	return mr->type == RMEM_MR_TYPE_USER && mr->pd == job->pair.pd &&
			(mr->access & RMEM_ACCESS_MW_BIND) != 0 &&
			(mr->access & RMEM_ACCESS_LOCAL_WRITE) != 0;
}

/* Check a request, and fill a key from it. */
static __rte_always_inline int
floor_bind(struct bind_job *job, uint32_t i)
{
	struct perf_floor_key *key = &job->key[i];
	const struct rmem_send_wr *wr = &job->bind[i];
	const bool is_reg = wr->opcode == RMEM_WR_REG_MR;
	uint64_t word = (uint32_t)key->word | (uint64_t)FREE << 32, length, tag;

	if (unlikely(!(is_reg ? floor_check_reg(job, wr) : floor_check_bind(job, wr)) ||
			    !floor_take(key, word, BUSY)))
		return -1;
	if (is_reg) {
		key->base = (uint8_t *)(uintptr_t)wr->reg_mr.page_list->page_list[0] +
				wr->reg_mr.first_byte_offset;
		key->iova = wr->reg_mr.iova;
		length = wr->reg_mr.length;
		tag = wr->reg_mr.key_tag;
	} else {
		key->base = (uint8_t *)wr->bind_mw.mr->addr +
				(wr->bind_mw.addr - wr->bind_mw.mr->iova);
		key->iova = wr->bind_mw.addr;
		length = wr->bind_mw.length;
		tag = wr->bind_mw.key_tag;
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
	/* The windows of the burst take their references to the MR together. */
	if (job->bind[0].opcode == RMEM_WR_BIND_MW) {
		__atomic_fetch_add(&job->references.word, PERF_BURST, __ATOMIC_ACQUIRE);
		if (unlikely(!floor_check_mr(job, job->bind[0].bind_mw.mr)))
			return -1;
	}
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
		if (unlikely(job->key[i].pd != PERF_FLOOR_PD ||
				    !floor_take(&job->key[i],
						    job->inv[i].invalidate_rkey | UINT64_C(1) << 32,
						    BUSY)))
			return -1;
	}
	/* No access that started before is in progress on this lcore. */
	if (job->bind[0].opcode == RMEM_WR_BIND_MW)
		__atomic_fetch_sub(&job->references.word, PERF_BURST, __ATOMIC_RELEASE);
	for (i = 0; i < PERF_BURST; i++) {
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
