/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Cost of a WRITE through an indirect key on the software device, in bursts of 32 on one
 * lcore. The baseline is a WRITE of as many bytes through the MR below.
 */

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
	struct perf_wrs wrs;
};

static __rte_always_inline int
write_by_key(struct umr_job *job, uint64_t addr, uint32_t rkey)
{
	uint32_t i;

	for (i = 0; i < PERF_BURST; i++) {
		job->wrs.sge[i].addr = job->src->iova + (uint64_t)(i & 7) * job->size;
		job->wrs.sge[i].length = job->size;
		job->wrs.wr[i].rdma.remote_addr = addr;
		job->wrs.wr[i].rdma.rkey = rkey;
	}
	return perf_burst(&job->pair, job->wrs.wr, PERF_BURST) != RMEM_WC_SUCCESS;
}

PERF_LOOP(run_plain, NB_BURSTS, PERF_BURST)
{
	struct umr_job *job = arg;

	return write_by_key(job, job->dst->iova, job->dst->rkey);
}

PERF_LOOP(run_indirect, NB_BURSTS, PERF_BURST)
{
	return write_by_key(arg, 0, ((struct umr_job *)arg)->mkey->rkey);
}

static struct perf_floor_key floor_keys[PERF_FLOOR_KEYS];

/* WRITEs of the first piece by a plain key; the others are only checked and copied. */
PERF_LOOP(run_floor, NB_BURSTS, PERF_BURST)
{
	struct umr_job *job = arg;
	const struct rmem_mkey_entry *entry = job->entries;
	uint32_t i, k;

	for (i = 0; i < PERF_BURST; i++) {
		uint64_t offset = (uint64_t)(i & 7) * job->size;

		job->wrs.sge[i].addr = job->src->iova + offset;
		job->wrs.sge[i].length = (uint32_t)entry[0].length;
		job->wrs.wr[i].rdma.remote_addr = entry[0].addr;
		job->wrs.wr[i].rdma.rkey = job->dst->rkey;
		for (k = 1; k < job->nb_entries; k++) {
			uint8_t *to = perf_floor_access(floor_keys, entry[k].lkey, entry[k].addr,
					entry[k].length, 1);

			if (unlikely(to == NULL))
				return -1;
			offset += entry[k - 1].length;
			perf_floor_copy(to, (uint8_t *)job->src->addr + offset, entry[k].length);
		}
	}
	return perf_burst(&job->pair, job->wrs.wr, PERF_BURST) != RMEM_WC_SUCCESS;
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
	perf_floor_key_set(floor_keys, job->dst, job->dst->lkey);
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
	perf_wrs_init(&job->wrs, RMEM_WR_RDMA_WRITE, job->size, job->src, NULL);
}

static void
compare(const char *name, const char *bar, struct rmem_mkey_entry *entries, uint32_t nb_entries,
		uint32_t repeat_count)
{
	struct perf_row row = PERF_ROW(name, "ns/op", "the same by a plain key", bar);
	struct umr_job job;

	job_open(&job, entries, nb_entries, repeat_count);
	perf_measure(&row, run_plain, run_indirect, &job);
	if (nb_entries != 1)
		perf_floor(&row, run_plain, run_floor, &job);
	TEST_OK(rmem_mr_dereg(job.mkey));
	TEST_OK(rmem_mr_dereg(job.src));
	TEST_OK(rmem_mr_dereg(job.dst));
	perf_pair_close(&job.pair);
}

/* Four pieces of 64 bytes. */
PERF_TEST(umr_list4_write256)
{
	struct rmem_mkey_entry entries[] = {{.addr = 4096, .length = 64},
			{.addr = 1024, .length = 64}, {.addr = 16384, .length = 64},
			{.addr = 8256, .length = 64}};

	compare("umr_list4_write256", "ratio <= 2", entries, RTE_DIM(entries), 1);
}

/* A column of 64 bytes of 64 rows. */
PERF_TEST(umr_strided_write4k)
{
	struct rmem_mkey_entry entry = {.length = 64, .skip = 448};

	compare("umr_strided_write4k", "none", &entry, 1, 64);
}
