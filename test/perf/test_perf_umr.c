/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Cost of a WRITE through an indirect key on the software device, in bursts of 32 on one
 * lcore. The baseline is a WRITE of as many bytes through the MR below.
 */

#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "perf_floor.h"
#include "test.h"

#define NB_BURSTS 10000u
#define BUF_SIZE  (1u << 20)

struct umr_job {
	struct perf_pair pair;
	struct rmem_mr *src;
	struct rmem_mr *dst;
	struct rmem_mr *mkey;
	uint32_t size;
	uint32_t nb_entries;
	struct rmem_mkey_entry *entries;
	struct rmem_sge sge[PERF_BURST];
	struct rmem_send_wr wr[PERF_BURST];
};

static double
run_key(struct umr_job *job, uint64_t addr, uint32_t rkey)
{
	uint64_t start = rte_rdtsc_precise();
	uint32_t burst, i;

	for (burst = 0; burst < NB_BURSTS; burst++) {
		for (i = 0; i < PERF_BURST; i++) {
			job->sge[i].addr = job->src->iova + (uint64_t)(i & 7) * job->size;
			job->wr[i].rdma.remote_addr = addr;
			job->wr[i].rdma.rkey = rkey;
		}
		if (perf_burst(&job->pair, job->wr, PERF_BURST) != RMEM_WC_SUCCESS)
			return -1.0;
	}
	return perf_ns(rte_rdtsc_precise() - start, (double)NB_BURSTS * PERF_BURST);
}

static double
run_plain(void *arg)
{
	struct umr_job *job = arg;

	return run_key(job, job->dst->iova, job->dst->rkey);
}

static double
run_indirect(void *arg)
{
	struct umr_job *job = arg;

	return run_key(job, 0, job->mkey->rkey);
}

static struct perf_floor_key floor_keys[PERF_FLOOR_KEYS];

/* WRITEs of the first piece by a plain key; the others are only checked and copied. */
static double
run_floor(void *arg)
{
	struct umr_job *job = arg;
	const struct rmem_mkey_entry *entry = job->entries;
	uint64_t start = rte_rdtsc_precise();
	uint32_t burst, i, k;

	perf_floor_key_set(floor_keys, job->dst, job->dst->lkey);
	for (i = 0; i < PERF_BURST; i++)
		job->sge[i].length = (uint32_t)entry[0].length;
	for (burst = 0; burst < NB_BURSTS; burst++) {
		for (i = 0; i < PERF_BURST; i++) {
			uint64_t offset = (uint64_t)(i & 7) * job->size;

			job->sge[i].addr = job->src->iova + offset;
			job->wr[i].rdma.remote_addr = entry[0].addr;
			job->wr[i].rdma.rkey = job->dst->rkey;
			for (k = 1; k < job->nb_entries; k++) {
				uint8_t *to = perf_floor_access(floor_keys, entry[k].lkey,
						entry[k].addr, entry[k].length, 1);

				if (unlikely(to == NULL))
					return -1.0;
				offset += entry[k - 1].length;
				perf_floor_copy(to, (uint8_t *)job->src->addr + offset,
						entry[k].length);
			}
		}
		if (perf_burst(&job->pair, job->wr, PERF_BURST) != RMEM_WC_SUCCESS)
			return -1.0;
	}
	start = rte_rdtsc_precise() - start;
	for (i = 0; i < PERF_BURST; i++)
		job->sge[i].length = job->size;
	return perf_ns(start, (double)NB_BURSTS * PERF_BURST);
}

static void
job_open(struct umr_job *job, struct rmem_mkey_entry *entries, uint32_t nb_entries,
		uint32_t repeat_count)
{
	struct rmem_send_wr wr;
	uint32_t i;

	memset(job, 0, sizeof(*job));
	perf_pair_open(&job->pair, NULL);
	job->src = perf_mr(job->pair.pd, BUF_SIZE);
	job->dst = perf_mr(job->pair.pd, BUF_SIZE);
	TEST_ASSERT(job->src != NULL && job->dst != NULL);
	TEST_OK(rmem_mkey_alloc(job->pair.pd, nb_entries, &job->mkey));
	for (i = 0; i < nb_entries; i++) {
		entries[i].addr += job->dst->iova;
		entries[i].lkey = job->dst->lkey;
		job->size += (uint32_t)entries[i].length * repeat_count;
	}
	job->entries = entries;
	job->nb_entries = nb_entries;
	memset(&wr, 0, sizeof(wr));
	wr.opcode = RMEM_WR_UMR;
	wr.flags = RMEM_SEND_SIGNALED;
	wr.umr.mr = job->mkey;
	wr.umr.entries = entries;
	wr.umr.nb_entries = nb_entries;
	wr.umr.repeat_count = repeat_count;
	wr.umr.access = PERF_ACCESS;
	TEST_STATUS(perf_burst(&job->pair, &wr, 1), RMEM_WC_SUCCESS);
	for (i = 0; i < PERF_BURST; i++) {
		job->sge[i].length = job->size;
		job->sge[i].lkey = job->src->lkey;
		job->wr[i].sg_list = &job->sge[i];
		job->wr[i].num_sge = 1;
		job->wr[i].opcode = RMEM_WR_RDMA_WRITE;
	}
	job->wr[PERF_BURST - 1].flags = RMEM_SEND_SIGNALED;
}

static void
compare(struct perf_row *row, struct rmem_mkey_entry *entries, uint32_t nb_entries,
		uint32_t repeat_count)
{
	struct umr_job job;

	row->unit = "ns/op";
	row->yardstick = "the same by a plain key";
	job_open(&job, entries, nb_entries, repeat_count);
	perf_measure(row, run_plain, run_indirect, &job);
	if (nb_entries != 1)
		perf_floor(row, run_plain, run_floor, &job);
	TEST_OK(rmem_mr_dereg(job.mkey));
	TEST_OK(rmem_mr_dereg(job.src));
	TEST_OK(rmem_mr_dereg(job.dst));
	perf_pair_close(&job.pair);
}

/* Four pieces of 64 bytes. */
static void
test_umr_list4_write256(void)
{
	struct rmem_mkey_entry entries[] = {{.addr = 4096, .length = 64},
			{.addr = 1024, .length = 64}, {.addr = 16384, .length = 64},
			{.addr = 8256, .length = 64}};
	struct perf_row row = {.name = "umr_list4_write256", .bar = "ratio <= 2"};

	compare(&row, entries, RTE_DIM(entries), 1);
}

/* A column of 64 bytes of 64 rows. */
static void
test_umr_strided_write4k(void)
{
	struct rmem_mkey_entry entry = {.length = 64, .skip = 448};
	struct perf_row row = {.name = "umr_strided_write4k", .bar = "none"};

	compare(&row, &entry, 1, 64);
}

REGISTER_RMEM_TEST(umr_list4_write256_perf_autotest, test_umr_list4_write256);
REGISTER_RMEM_TEST(umr_strided_write4k_perf_autotest, test_umr_strided_write4k);
