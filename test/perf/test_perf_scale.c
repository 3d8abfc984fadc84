/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The cost of each step in the life of an object as the number of objects grows: doc/scale.md. The
 * baseline is that of the first, the smallest number. RMEM_SCALE_MAX is the largest number.
 */

#include <stdio.h>
#include <stdlib.h>

#include <rte_random.h>

#include "perf_row.h"
#include "rc.h"

#define SIZE      64u
#define CQ_DEPTH  65536u
#define FIRST     1024u
#define FACTOR    4u
#define NB_POLLS  100000u
#define NB_WRITES 200000u

enum step {
	CREATE,
	CONNECT,
	IDLE,    /* poll of an empty CQ, while all are idle */
	USE,     /* WRITE on one of them at random, until its completion */
	USE_ALL, /* the same, with a WRITE on each before the first poll */
	DESTROY, /* in random order */
	BYTES,   /* of DPDK memory, of each */
	NB_STEPS,
};

static const char *const step_names[NB_STEPS] = {
		"create", "connect", "idle", "use", "use_all", "destroy", "bytes"};

static struct {
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_cq *cq;
	struct rmem_mr *mr;
	struct rmem_qp **qps;
	struct rmem_mr **mrs;
	uint32_t nb;
	double cost[NB_STEPS];
	double first[NB_STEPS];
} sc;

static size_t
allocated(void)
{
	struct rte_malloc_socket_stats stats;

	return rte_malloc_get_socket_stats(0, &stats) == 0 ? stats.heap_allocsz_bytes : 0;
}

static void
set_cost(enum step step, uint64_t start, uint32_t nb)
{
	sc.cost[step] = perf_ns(rte_rdtsc_precise() - start, nb);
}

static void
report(const char *what, uint32_t nb)
{
	enum step step;
	char name[64];

	for (step = CREATE; step < NB_STEPS; step++) {
		struct perf_row row = PERF_ROW(name, "ns/op", "the same of 1024", "none");

		if (sc.cost[step] == 0)
			continue;
		if (nb == FIRST)
			sc.first[step] = sc.cost[step];
		if (step == BYTES)
			row.unit = "bytes";
		snprintf(name, sizeof(name), "scale_%s_%s_%u", step_names[step], what, nb);
		row.value = sc.cost[step];
		row.baseline = sc.first[step];
		row.ratio = row.value / row.baseline;
		perf_report(&row);
	}
}

static void
shuffle(void **objects, uint32_t nb)
{
	uint32_t i, j;
	void *object;

	for (i = nb - 1; i > 0; i--) {
		j = (uint32_t)rte_rand_max(i + 1);
		object = objects[i];
		objects[i] = objects[j];
		objects[j] = object;
	}
}

static void
open_dev(const char *args)
{
	const struct rmem_cq_conf conf = {.nb_cqe = CQ_DEPTH};

	perf_dev_open(args, &sc.dev);
	TEST_OK(rmem_pd_alloc(sc.dev, &sc.pd));
	TEST_OK(rmem_cq_create(sc.dev, &conf, &sc.cq));
	sc.mr = perf_mr(sc.pd, 2 * SIZE);
}

static void
close_dev(void)
{
	TEST_OK(rmem_mr_dereg(sc.mr));
	TEST_OK(rmem_cq_destroy(sc.cq));
	TEST_OK(rmem_pd_dealloc(sc.pd));
	TEST_OK(rmem_dev_close(sc.dev));
}

/* Poll, and check the completions that there are. */
static uint32_t
poll_some(void)
{
	struct rmem_wc wc[PERF_BURST];
	int i, n = rmem_poll_cq(sc.cq, wc, PERF_BURST);

	TEST_ASSERT(n >= 0);
	for (i = 0; i < n; i++)
		TEST_STATUS(wc[i].status, RMEM_WC_SUCCESS);
	return (uint32_t)n;
}

static void
post(struct rmem_qp *qp, const struct rmem_mr *to)
{
	const struct rmem_sge sge = {sc.mr->iova, SIZE, sc.mr->lkey};
	const struct rmem_send_wr wr = {.opcode = RMEM_WR_RDMA_WRITE,
			.flags = RMEM_SEND_SIGNALED,
			.sg_list = &sge,
			.num_sge = 1,
			.rdma = {.remote_addr = to->iova + to->length - SIZE, .rkey = to->rkey}};

	TEST_EQ(rmem_post_send(qp, &wr, 1), 1);
}

static void
measure_idle(void)
{
	uint64_t start = rte_rdtsc_precise();
	uint32_t i;

	for (i = 0; i < NB_POLLS; i++)
		TEST_EQ(poll_some(), 0);
	set_cost(IDLE, start, NB_POLLS);
}

static void
create_qps(void)
{
	struct rmem_qp_conf conf = rc_conf(sc.cq, 2, 2);
	size_t before = allocated();
	uint64_t start;
	uint32_t i;

	/* The CQ would have messages of its own, the same for all. */
	conf.flags |= RMEM_QP_NO_INLINE_RECV;
	start = rte_rdtsc_precise();
	for (i = 0; i < sc.nb; i++)
		TEST_OK(rmem_qp_create(sc.pd, &conf, &sc.qps[i]));
	set_cost(CREATE, start, sc.nb);
	start = rte_rdtsc_precise();
	for (i = 0; i < sc.nb; i += 2)
		perf_qp_connect_pair(sc.qps[i], sc.qps[i + 1]);
	set_cost(CONNECT, start, sc.nb);
	sc.cost[BYTES] = (double)(allocated() - before) / sc.nb;
}

static void
use_qps(uint32_t nb_writes)
{
	uint64_t start = rte_rdtsc_precise();
	uint32_t i, done;

	for (i = 0; i < nb_writes; i++) {
		post(sc.qps[rte_rand_max(sc.nb)], sc.mr);
		while (poll_some() == 0)
			;
	}
	set_cost(USE, start, nb_writes);
	start = rte_rdtsc_precise();
	for (i = 0; i < sc.nb; i++)
		post(sc.qps[i], sc.mr);
	for (done = 0; done < sc.nb;)
		done += poll_some();
	set_cost(USE_ALL, start, sc.nb);
}

static void
destroy_qps(void)
{
	uint64_t start;
	uint32_t i;

	shuffle((void **)sc.qps, sc.nb);
	start = rte_rdtsc_precise();
	for (i = 0; i < sc.nb; i++)
		TEST_OK(rmem_qp_destroy(sc.qps[i]));
	set_cost(DESTROY, start, sc.nb);
}

/* Up to a number, unless RMEM_SCALE_MAX is another one. */
static uint32_t
largest(uint32_t max)
{
	const char *text = getenv("RMEM_SCALE_MAX");

	return text != NULL ? (uint32_t)strtoul(text, NULL, 0) : max;
}

static void
measure_qps(const char *args, const char *what, uint32_t max, uint32_t nb_writes)
{
	max = RTE_MIN(largest(max), 65536u);
	sc.qps = calloc(max, sizeof(struct rmem_qp *));
	TEST_ASSERT(sc.qps != NULL);
	for (sc.nb = FIRST; sc.nb <= max; sc.nb *= FACTOR) {
		open_dev(args);
		create_qps();
		measure_idle();
		use_qps(nb_writes);
		destroy_qps();
		close_dev();
		report(what, sc.nb);
	}
	free(sc.qps);
}

PERF_TEST(scale_qps)
{
	measure_qps("max_qp=65536", "qps", 65536, NB_WRITES);
}

PERF_TEST(scale_wire_qps)
{
	measure_qps("max_qp=65536,ip=192.0.2.1,port=shm:scale,loop=1", "wire_qps", 65536, 10000);
}

static void
register_mrs(void)
{
	static uint8_t bytes[SIZE];
	size_t before = allocated();
	uint64_t start = rte_rdtsc_precise();
	uint32_t i;

	for (i = 0; i < sc.nb; i++)
		TEST_OK(rmem_mr_reg(sc.pd, bytes, SIZE, (uintptr_t)bytes, PERF_ACCESS, &sc.mrs[i]));
	set_cost(CREATE, start, sc.nb);
	sc.cost[BYTES] = (double)(allocated() - before) / sc.nb;
}

static void
use_mrs(void)
{
	struct rmem_qp_conf conf = rc_conf(sc.cq, 2, 2);
	struct rmem_qp *qps[2];
	uint64_t start;
	uint32_t i;

	TEST_OK(rmem_qp_create(sc.pd, &conf, &qps[0]));
	TEST_OK(rmem_qp_create(sc.pd, &conf, &qps[1]));
	perf_qp_connect_pair(qps[0], qps[1]);
	start = rte_rdtsc_precise();
	for (i = 0; i < NB_WRITES; i++) {
		post(qps[0], sc.mrs[rte_rand_max(sc.nb)]);
		TEST_EQ(poll_some(), 1);
	}
	set_cost(USE, start, NB_WRITES);
	TEST_OK(rmem_qp_destroy(qps[0]));
	TEST_OK(rmem_qp_destroy(qps[1]));
}

static void
deregister_mrs(void)
{
	uint64_t start;
	uint32_t i;

	shuffle((void **)sc.mrs, sc.nb);
	start = rte_rdtsc_precise();
	for (i = 0; i < sc.nb; i++)
		TEST_OK(rmem_mr_dereg(sc.mrs[i]));
	set_cost(DESTROY, start, sc.nb);
}

PERF_TEST(scale_mrs)
{
	uint32_t max = RTE_MIN(largest(1u << 20), 15u << 20);
	char args[64];

	sc.mrs = calloc(max, sizeof(struct rmem_mr *));
	TEST_ASSERT(sc.mrs != NULL);
	for (sc.nb = FIRST; sc.nb <= max; sc.nb *= FACTOR) {
		snprintf(args, sizeof(args), "max_mw=1,max_mr=%u", sc.nb + 1);
		open_dev(args);
		register_mrs();
		measure_idle();
		use_mrs();
		deregister_mrs();
		close_dev();
		report("mrs", sc.nb);
	}
	free(sc.mrs);
}
