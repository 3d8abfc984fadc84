/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Cost of changing the rights of an MR of 1 MiB in place. The baseline is what one does
 * without: deregister and register.
 */

#include <string.h>

#include <rte_cycles.h>

#include "perf.h"
#include "test.h"

#define NB_CHANGES 2000u
#define SIZE       (UINT32_C(1) << 20)

struct rereg_job {
	struct perf_pair pair;
	struct rmem_mr *memory;
	struct rmem_mr *mr;
};

static double
run_dereg_reg(void *arg)
{
	uint64_t start = rte_rdtsc_precise();
	struct rereg_job *job = arg;
	uint32_t i;

	for (i = 0; i < NB_CHANGES; i++) {
		if (rmem_mr_dereg(job->mr) != 0 ||
				rmem_mr_reg(job->pair.pd, job->memory->addr, SIZE, 0,
						i % 2 ? PERF_ACCESS : RMEM_ACCESS_LOCAL_WRITE,
						&job->mr) != 0)
			return -1.0;
	}
	return perf_ns(rte_rdtsc_precise() - start, NB_CHANGES);
}

static double
run_rereg(void *arg)
{
	uint64_t start = rte_rdtsc_precise();
	struct rereg_job *job = arg;
	uint32_t i;

	for (i = 0; i < NB_CHANGES; i++) {
		if (rmem_mr_rereg(job->mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0,
				    i % 2 ? PERF_ACCESS : RMEM_ACCESS_LOCAL_WRITE, NULL) != 0)
			return -1.0;
	}
	return perf_ns(rte_rdtsc_precise() - start, NB_CHANGES);
}

static void
test_rereg_access(void)
{
	struct perf_row row = {.name = "rereg_access",
			.unit = "ns/op",
			.yardstick = "deregister and register",
			.bar = "ratio <= 0.5"};
	static struct rereg_job job;

	memset(&job, 0, sizeof(job));
	perf_pair_open(&job.pair, NULL);
	job.memory = perf_mr(job.pair.pd, SIZE);
	TEST_ASSERT(job.memory != NULL);
	TEST_OK(rmem_mr_reg(job.pair.pd, job.memory->addr, SIZE, 0, PERF_ACCESS, &job.mr));
	perf_measure(&row, run_dereg_reg, run_rereg, &job);
	TEST_OK(rmem_mr_dereg(job.mr));
	TEST_OK(rmem_mr_dereg(job.memory));
	perf_pair_close(&job.pair);
}

REGISTER_RMEM_TEST(rereg_access_perf_autotest, test_rereg_access);
