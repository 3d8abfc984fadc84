/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Cost of changing the rights of an MR of 1 MiB in place. The baseline is what one does
 * without: deregister and register.
 */

#include "perf_row.h"
#include "test.h"

#define NB_CHANGES 2000u
#define SIZE       (UINT32_C(1) << 20)

struct rereg_job {
	struct perf_pair pair;
	struct rmem_mr *memory;
	struct rmem_mr *mr;
	uint32_t nb_changes;
};

/* The rights of the next change. */
static uint32_t
next_access(struct rereg_job *job)
{
	return job->nb_changes++ % 2 ? PERF_ACCESS : RMEM_ACCESS_LOCAL_WRITE;
}

PERF_LOOP(run_dereg_reg, NB_CHANGES, 1)
{
	struct rereg_job *job = arg;

	return rmem_mr_dereg(job->mr) != 0 ||
			rmem_mr_reg(job->pair.pd, job->memory->addr, SIZE, 0, next_access(job),
					&job->mr) != 0;
}

PERF_LOOP(run_rereg, NB_CHANGES, 1)
{
	struct rereg_job *job = arg;

	return rmem_mr_rereg(
			job->mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, next_access(job), NULL);
}

PERF_TEST(rereg_access)
{
	struct perf_row row = PERF_ROW(
			"rereg_access", "ns/op", "deregister and register", "ratio <= 0.5");
	struct rereg_job job = {.nb_changes = 0};

	perf_pair_open(&job.pair, NULL);
	job.memory = perf_mr(job.pair.pd, SIZE);
	TEST_OK(rmem_mr_reg(job.pair.pd, job.memory->addr, SIZE, 0, PERF_ACCESS, &job.mr));
	perf_measure(&row, run_dereg_reg, run_rereg, &job);
	TEST_OK(rmem_mr_dereg(job.mr));
	TEST_OK(rmem_mr_dereg(job.memory));
	perf_pair_close(&job.pair);
}
