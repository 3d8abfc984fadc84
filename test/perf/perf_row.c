/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Shared by perf tests; see perf.h. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_lcore.h>

#include "perf_row.h"
#include "rc.h"

#define PERF_DEPTH 256u

double
perf_ns(uint64_t cycles, double n)
{
	return (double)cycles * 1e9 / (double)rte_get_tsc_hz() / n;
}

void
perf_qp_connect(struct rmem_qp *qp, const struct rmem_qp_addr *remote)
{
	const struct rmem_qp_conn conn = {.remote = *remote,
			.timeout = 16,
			.retry_cnt = 7,
			.rnr_retry = 7,
			.min_rnr_timer = 1};

	TEST_OK(rmem_qp_connect(qp, &conn));
}

void
perf_qp_connect_pair(struct rmem_qp *a, struct rmem_qp *b)
{
	struct rmem_qp_attr attr;

	TEST_OK(rmem_qp_query(b, &attr));
	perf_qp_connect(a, &attr.addr);
	TEST_OK(rmem_qp_query(a, &attr));
	perf_qp_connect(b, &attr.addr);
}

void
perf_dev_open(const char *args, struct rmem_dev **dev)
{
	char name[RMEM_NAME_SIZE];
	unsigned int number = 30;
	int ret;

	/* A pair may be there already. */
	do {
		snprintf(name, sizeof(name), "soft%u", number++);
		ret = rmem_dev_create(name, args, dev);
	} while (ret == -EEXIST && number < 40);
	TEST_OK(ret);
}

void
perf_qp_open(struct rmem_dev *dev, struct rmem_pd *pd, struct rmem_cq **cq, struct rmem_qp **qp)
{
	const struct rmem_cq_conf cq_conf = {.nb_cqe = 4 * PERF_DEPTH};
	struct rmem_qp_conf conf;

	TEST_OK(rmem_cq_create(dev, &cq_conf, cq));
	conf = rc_conf(*cq, PERF_DEPTH, PERF_DEPTH);
	conf.access |= RMEM_ACCESS_FLUSH_GLOBAL;
	TEST_OK(rmem_qp_create(pd, &conf, qp));
}

void
perf_pair_connect(struct perf_pair *pair)
{
	perf_qp_open(pair->dev, pair->pd, &pair->cq_a, &pair->a);
	perf_qp_open(pair->dev_b, pair->pd_b, &pair->cq_b, &pair->b);
	perf_qp_connect_pair(pair->a, pair->b);
}

void
perf_pair_open(struct perf_pair *pair, const char *args)
{
	perf_dev_open(args, &pair->dev);
	TEST_OK(rmem_pd_alloc(pair->dev, &pair->pd));
	pair->dev_b = pair->dev;
	pair->pd_b = pair->pd;
	perf_pair_connect(pair);
}

void
perf_pair_open_two(struct perf_pair *pair, const char *args, const char *args_b)
{
	perf_dev_open(args, &pair->dev);
	perf_dev_open(args_b, &pair->dev_b);
	TEST_OK(rmem_pd_alloc(pair->dev, &pair->pd));
	TEST_OK(rmem_pd_alloc(pair->dev_b, &pair->pd_b));
	perf_pair_connect(pair);
}

void
perf_pair_disconnect(struct perf_pair *pair)
{
	TEST_OK(rmem_qp_destroy(pair->a));
	TEST_OK(rmem_qp_destroy(pair->b));
	TEST_OK(rmem_cq_destroy(pair->cq_a));
	TEST_OK(rmem_cq_destroy(pair->cq_b));
}

void
perf_pair_close(struct perf_pair *pair)
{
	perf_pair_disconnect(pair);
	TEST_OK(rmem_pd_dealloc(pair->pd));
	if (pair->dev_b != pair->dev) {
		TEST_OK(rmem_pd_dealloc(pair->pd_b));
		TEST_OK(rmem_dev_close(pair->dev_b));
	}
	TEST_OK(rmem_dev_close(pair->dev));
}

struct rmem_mr *
perf_mr(struct rmem_pd *pd, size_t size)
{
	struct rmem_mr *mr;

	TEST_OK(rmem_mr_reg(pd, NULL, size, 0,
			PERF_ACCESS | RMEM_ACCESS_FLUSH_GLOBAL | RMEM_ACCESS_ALLOCATE_MR, &mr));
	memset(mr->addr, 0x5a, mr->length);
	return mr;
}

void
perf_wrs_init(struct perf_wrs *wrs, uint8_t opcode, uint32_t size, const struct rmem_mr *src,
		const struct rmem_mr *dst)
{
	uint32_t i;

	memset(wrs, 0, sizeof(*wrs));
	for (i = 0; i < PERF_BURST; i++) {
		wrs->sge[i] = (struct rmem_sge){src->iova, size, src->lkey};
		wrs->wr[i].sg_list = &wrs->sge[i];
		wrs->wr[i].num_sge = 1;
		wrs->wr[i].opcode = opcode;
		wrs->wr[i].rdma.rkey = dst != NULL ? dst->rkey : 0;
	}
	wrs->wr[PERF_BURST - 1].flags = RMEM_SEND_SIGNALED;
}

unsigned int
perf_peer_lcore(void)
{
	unsigned int lcore = rte_get_next_lcore(-1, 1, 0);

	TEST_SKIP_IF(lcore >= RTE_MAX_LCORE, "two lcores are needed");
	return lcore;
}

int
perf_burst(struct perf_pair *pair, const struct rmem_send_wr *wr, uint16_t nb_wr)
{
	struct rmem_wc wc;
	int n;

	n = rmem_post_send(pair->a, wr, nb_wr);
	if (unlikely(n != nb_wr))
		return n < 0 ? n : -ENOSPC;
	do {
		n = rmem_poll_cq(pair->cq_a, &wc, 1);
	} while (n == 0);
	return n < 0 ? n : wc.status;
}

/* Measure, and keep the best time. */
static void
measure_once(perf_func_t run, void *arg, double *best)
{
	double took = run(arg);

	TEST_ASSERT(took > 0.0);
	if (*best < 0.0 || took < *best)
		*best = took;
}

void
perf_compare(struct perf_row *row, perf_func_t yardstick, void *yardstick_arg, perf_func_t value,
		void *arg)
{
	int i;

	row->baseline = row->value = -1.0;
	for (i = 0; i < PERF_ROUNDS; i++) {
		measure_once(yardstick, yardstick_arg, &row->baseline);
		measure_once(value, arg, &row->value);
	}
	row->ratio = row->value / row->baseline;
}

void
perf_report(const struct perf_row *row)
{
	const char *path = getenv("RMEM_PERF_JSON");
	FILE *f;

	printf("%-18s %10.2f %s, %s %.2f %s, ratio %.3f (bar: %s)\n", row->name, row->value,
			row->unit, row->yardstick, row->baseline, row->unit, row->ratio, row->bar);
	if (path == NULL)
		return;
	f = fopen(path, "a");
	if (f == NULL) {
		printf("RMEM_PERF_JSON=%s: %s\n", path, strerror(errno));
		test_stop(TEST_FAILED);
	}
	fprintf(f,
			"{\"name\": \"%s\", \"value\": %.4f, \"unit\": \"%s\", \"baseline\": %.4f, "
			"\"ratio\": %.4f, \"yardstick\": \"%s\", \"bar\": \"%s\"}\n",
			row->name, row->value, row->unit, row->baseline, row->ratio, row->yardstick,
			row->bar);
	if (fclose(f) != 0) {
		printf("RMEM_PERF_JSON=%s: %s\n", path, strerror(errno));
		test_stop(TEST_FAILED);
	}
}

void
perf_measure(struct perf_row *row, perf_func_t yardstick, perf_func_t value, void *arg)
{
	perf_compare(row, yardstick, arg, value, arg);
	perf_report(row);
}

void
perf_measure_args(struct perf_row *row, perf_func_t run, void *yardstick, void *value)
{
	perf_compare(row, run, yardstick, run, value);
	perf_report(row);
}

void
perf_floor(const struct perf_row *row, perf_func_t yardstick, perf_func_t floor, void *arg)
{
	struct perf_row of = *row;
	char name[64];

	snprintf(name, sizeof(name), "%s_floor", row->name);
	of.name = name;
	of.bar = "none";
	perf_measure(&of, yardstick, floor, arg);
}
