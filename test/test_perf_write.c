/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Cost of an RDMA WRITE on the software device: compared with memcpy over the same buffers in
 * the same order, and with a million MRs against one.
 */

#include <string.h>

#include <rte_cycles.h>

#include "perf.h"
#include "test.h"

#define MANY_MRS    1000000u
#define MANY_STRIDE 64u
#define MANY_BURSTS 20000u

/* Writes of one size over buffers that follow each other. */
struct write_job {
	struct perf_pair pair;
	struct rmem_mr *src;
	struct rmem_mr *dst;
	uint32_t size;
	uint32_t nb_bufs; /* a power of two */
	uint32_t nb_bursts;
	const uint32_t *place; /* many MRs: buffer of each write, at random; then its key */
	struct rmem_sge sge[PERF_BURST];
	struct rmem_send_wr wr[PERF_BURST];
};

static void
job_fill(struct write_job *job)
{
	uint32_t i;

	memset(job->wr, 0, sizeof(job->wr));
	for (i = 0; i < PERF_BURST; i++) {
		job->sge[i].length = job->size;
		job->sge[i].lkey = job->src->lkey;
		job->wr[i].sg_list = &job->sge[i];
		job->wr[i].num_sge = 1;
		job->wr[i].opcode = RMEM_WR_RDMA_WRITE;
		job->wr[i].rdma.rkey = job->dst->rkey;
	}
	job->wr[PERF_BURST - 1].flags = RMEM_SEND_SIGNALED;
}

static double
run_memcpy(void *arg)
{
	const struct write_job *job = arg;
	const uint8_t *src = job->src->addr;
	uint8_t *dst = job->dst->addr;
	uint32_t burst, i, at = 0;
	uint64_t start = rte_rdtsc_precise();

	for (burst = 0; burst < job->nb_bursts; burst++) {
		for (i = 0; i < PERF_BURST; i++) {
			size_t offset = (size_t)at * job->size;

			memcpy(dst + offset, src + offset, job->size);
			at = (at + 1) & (job->nb_bufs - 1);
		}
		rte_compiler_barrier();
	}
	return perf_ns(rte_rdtsc_precise() - start, (double)job->nb_bursts * PERF_BURST);
}

static double
run_write(void *arg)
{
	struct write_job *job = arg;
	uint64_t src = job->src->iova, dst = job->dst->iova;
	uint32_t burst, i, at = 0;
	uint64_t start = rte_rdtsc_precise();

	for (burst = 0; burst < job->nb_bursts; burst++) {
		for (i = 0; i < PERF_BURST; i++) {
			uint64_t offset = (uint64_t)at * job->size;

			job->sge[i].addr = src + offset;
			job->wr[i].rdma.remote_addr = dst + offset;
			at = (at + 1) & (job->nb_bufs - 1);
		}
		if (perf_burst(&job->pair, job->wr, PERF_BURST) != RMEM_WC_SUCCESS)
			return -1.0;
	}
	return perf_ns(rte_rdtsc_precise() - start, (double)job->nb_bursts * PERF_BURST);
}

/* Random places of the same memory: by one key, or each place by its own. */
static double
run_places(struct write_job *job, bool is_many)
{
	uint64_t src = job->src->iova, dst = job->dst->iova;
	uint32_t burst, i, at = 0;
	uint64_t start = rte_rdtsc_precise();

	for (burst = 0; burst < job->nb_bursts; burst++) {
		for (i = 0; i < PERF_BURST; i++, at++) {
			uint32_t place = job->place[at];

			job->sge[i].addr = src + (at & (job->nb_bufs - 1)) * job->size;
			job->wr[i].rdma.remote_addr = dst + (uint64_t)place * MANY_STRIDE;
			/* An application stores the key with the address. */
			job->wr[i].rdma.rkey = is_many
					? job->place[job->nb_bursts * PERF_BURST + at]
					: job->dst->rkey;
		}
		if (perf_burst(&job->pair, job->wr, PERF_BURST) != RMEM_WC_SUCCESS)
			return -1.0;
	}
	return perf_ns(rte_rdtsc_precise() - start, (double)job->nb_bursts * PERF_BURST);
}

static double
run_one_mr(void *arg)
{
	return run_places(arg, false);
}

static double
run_many_mrs(void *arg)
{
	return run_places(arg, true);
}

static int
job_open(struct write_job *job, uint32_t size, uint32_t nb_bufs, uint32_t nb_bursts, size_t dst)
{
	memset(job, 0, sizeof(*job));
	job->size = size;
	job->nb_bufs = nb_bufs;
	job->nb_bursts = nb_bursts;
	TEST_RUN(perf_pair_open(&job->pair, "max_mr=1048576"));
	job->src = perf_mr(job->pair.pd, (size_t)size * nb_bufs);
	job->dst = perf_mr(job->pair.pd, dst != 0 ? dst : (size_t)size * nb_bufs);
	TEST_ASSERT(job->src != NULL && job->dst != NULL);
	job_fill(job);
	return TEST_SUCCESS;
}

static int
job_close(struct write_job *job)
{
	TEST_OK(rmem_mr_dereg(job->src));
	TEST_OK(rmem_mr_dereg(job->dst));
	return perf_pair_close(&job->pair);
}

static int
compare_write(const char *name, uint32_t size, uint32_t nb_bufs, uint32_t nb_bursts)
{
	struct perf_row row = {.name = name, .yardstick = "memcpy"};
	struct write_job job;

	TEST_RUN(job_open(&job, size, nb_bufs, nb_bursts, 0));
	TEST_RUN(perf_compare(run_memcpy, run_write, &job, &row.baseline, &row.value));
	if (size >= 4096) { /* as bandwidths */
		row.unit = "GB/s";
		row.value = size / row.value;
		row.baseline = size / row.baseline;
		row.bar = size == 4096 ? "ratio >= 0.85" : "ratio >= 0.97";
	} else {
		row.unit = "ns/op";
		row.bar = "value <= 10 ns";
	}
	row.ratio = row.value / row.baseline;
	TEST_RUN(perf_report(&row));
	return job_close(&job);
}

static int
test_write64_burst32(void)
{
	return compare_write("write64_burst32", 64, 1024, 20000);
}

static int
test_write4k(void)
{
	return compare_write("write4k", 4096, 32, 5000);
}

static int
test_write64k(void)
{
	return compare_write("write64k", 65536, 16, 500);
}

/* One MR for each buffer; the addresses, followed by their keys. */
static struct rmem_mr *many[MANY_MRS];
static uint32_t places[2 * MANY_BURSTS * PERF_BURST];

static int
many_open(struct write_job *job)
{
	const uint32_t nb = MANY_BURSTS * PERF_BURST;
	uint64_t x = 88172645463325252u;
	uint32_t i;

	for (i = 0; i < MANY_MRS; i++)
		TEST_OK(rmem_mr_reg(job->pair.pd, (uint8_t *)job->dst->addr + i * MANY_STRIDE,
				MANY_STRIDE, 0, PERF_ACCESS, &many[i]));
	for (i = 0; i < nb; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		places[i] = (uint32_t)(x % MANY_MRS);
		places[nb + i] = many[places[i]]->rkey;
	}
	job->place = places;
	return TEST_SUCCESS;
}

static int
test_write64_1m_mrs(void)
{
	struct perf_row row = {.name = "write64_1m_mrs",
			.unit = "ns/op",
			.yardstick = "the same places by 1 MR",
			.bar = "ratio <= 3.5"};
	struct write_job job;
	uint32_t i;

	TEST_RUN(job_open(&job, 64, 1024, MANY_BURSTS, (size_t)MANY_MRS * MANY_STRIDE));
	TEST_RUN(many_open(&job));
	TEST_RUN(perf_compare(run_one_mr, run_many_mrs, &job, &row.baseline, &row.value));
	row.ratio = row.value / row.baseline;
	TEST_RUN(perf_report(&row));
	for (i = 0; i < MANY_MRS; i++)
		TEST_OK(rmem_mr_dereg(many[i]));
	return job_close(&job);
}

REGISTER_RMEM_TEST(write64_burst32_perf_autotest, test_write64_burst32);
REGISTER_RMEM_TEST(write64_1m_mrs_perf_autotest, test_write64_1m_mrs);
REGISTER_RMEM_TEST(write4k_perf_autotest, test_write4k);
REGISTER_RMEM_TEST(write64k_perf_autotest, test_write64k);
