/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Cost of registering new memory in the background, on several threads. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_pause.h>

#include "perf_row.h"
#include "test.h"

#define SIZE (UINT64_C(1) << 30)

struct async_job {
	struct perf_pair pair;
	struct rmem_eq *eq;
};

/* Memory available without swapping, in bytes. */
static uint64_t
available(void)
{
	static const char name[] = "MemAvailable:";
	uint64_t kib = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "r");

	if (f == NULL)
		return 0;
	while (fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, name, sizeof(name) - 1) == 0)
			kib = strtoull(line + sizeof(name) - 1, NULL, 10);
	}
	fclose(f);
	return kib * 1024;
}

static void
reg_and_wait(struct async_job *job, const struct rmem_mr_attr *attr, struct rmem_mr **mr)
{
	struct rmem_event event;

	TEST_OK(rmem_mr_reg_attr(job->pair.pd, attr, mr));
	if (attr->eq == NULL)
		return;
	while (rmem_eq_read(attr->eq, &event, 1) == 0)
		rte_delay_us_sleep(100);
	TEST_OK(event.status);
}

/* Milliseconds to register memory never touched. */
static double
run_reg(struct async_job *job, struct rmem_eq *eq)
{
	struct rmem_mr_attr attr = {.length = SIZE, .access = PERF_ACCESS, .eq = eq};
	struct rmem_mr *mr = NULL;
	uint64_t start, took;
	int ret;

	attr.addr = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (attr.addr == MAP_FAILED)
		return -1.0;
	start = rte_rdtsc_precise();
	ret = TEST_TRY(reg_and_wait(job, &attr, &mr));
	took = rte_rdtsc_precise() - start;
	if (ret == TEST_SUCCESS)
		ret = rmem_mr_dereg(mr);
	munmap(attr.addr, SIZE);
	return ret == 0 ? perf_ns(took, 1e6) : -1.0;
}

static double
run_serial(void *arg)
{
	return run_reg(arg, NULL);
}

static double
run_parallel(void *arg)
{
	struct async_job *job = arg;

	return run_reg(job, job->eq);
}

static void *
populate(void *arg)
{
	return madvise(arg, SIZE / 2, MADV_POPULATE_WRITE) == 0 ? arg : NULL;
}

/* Two threads that make the kernel fault in half of the memory each. */
static double
run_floor(void *arg)
{
	uint64_t start, took;
	void *half[2] = {NULL, NULL};
	pthread_t thread[2];
	uint8_t *mem;
	int i;

	RTE_SET_USED(arg);
	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return -1.0;
	start = rte_rdtsc_precise();
	for (i = 0; i < 2; i++) {
		if (pthread_create(&thread[i], NULL, populate, mem + i * (SIZE / 2)) != 0)
			return -1.0;
	}
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], &half[i]);
	took = rte_rdtsc_precise() - start;
	munmap(mem, SIZE);
	return half[0] != NULL && half[1] != NULL ? perf_ns(took, 1e6) : -1.0;
}

PERF_TEST(reg_parallel_1g)
{
	struct perf_row row =
			PERF_ROW("reg_parallel_1g", "ms", "in the calling thread", "ratio <= 0.6");
	struct async_job job;

	TEST_SKIP_IF(available() < 2 * SIZE, "it takes 2 GiB of available memory");
	perf_pair_open(&job.pair, NULL);
	TEST_OK(rmem_eq_create(job.pair.dev, &(struct rmem_eq_conf){.nb_events = 1}, &job.eq));
	perf_measure(&row, run_serial, run_parallel, &job);
	perf_floor(&row, run_serial, run_floor, &job);
	TEST_OK(rmem_eq_destroy(job.eq));
	perf_pair_close(&job.pair);
}
