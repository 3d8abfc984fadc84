/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Shared by perf tests: a pair of connected QPs, a clock, and the report.
 *
 * Each test measures its baseline and its value alternately, several times, and reports the best
 * of each, since other load on the machine only adds time. There are no limits.
 */

#ifndef PERF_H
#define PERF_H

#include <stdint.h>

#include <rmem.h>

#define PERF_BURST  32u
#define PERF_ROUNDS 7
#define PERF_ACCESS (RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE)

/* Two connected QPs. a posts requests to b, which is on the same device unless dev_b is set. */
struct perf_pair {
	struct rmem_dev *dev;
	struct rmem_dev *dev_b;
	struct rmem_pd *pd;
	struct rmem_pd *pd_b;
	struct rmem_cq *cq_a;
	struct rmem_cq *cq_b;
	struct rmem_qp *a;
	struct rmem_qp *b;
};

/* A result. */
struct perf_row {
	const char *name; /* of the JSON line */
	const char *unit;
	const char *yardstick; /* what the baseline is */
	const char *bar;       /* of the ratio, or of the value; see doc/performance.md */
	double value;
	double baseline;
	double ratio;
};

/* One measurement: the time of one operation, in the unit of the row. */
typedef double (*perf_func_t)(void *arg);

void perf_dev_open(const char *args, struct rmem_dev **dev);
void perf_qp_open(
		struct rmem_dev *dev, struct rmem_pd *pd, struct rmem_cq **cq, struct rmem_qp **qp);
void perf_qp_connect(struct rmem_qp *qp, const struct rmem_qp_addr *remote);
void perf_qp_connect_pair(struct rmem_qp *a, struct rmem_qp *b);

void perf_pair_open(struct perf_pair *pair, const char *args);
void perf_pair_open_two(struct perf_pair *pair, const char *args, const char *args_b);
void perf_pair_close(struct perf_pair *pair);

/* Allocated memory, registered with all rights; NULL after printing an error. */
struct rmem_mr *perf_mr(struct rmem_pd *pd, size_t size);

/* Post a burst whose last request is signaled, and wait for its completion; a status. */
int perf_burst(struct perf_pair *pair, const struct rmem_send_wr *wr, uint16_t nb_wr);

/* Measure both alternately, and return the best of each; negative values are failures. */
void perf_compare(perf_func_t yardstick, perf_func_t value, void *arg, double *baseline,
		double *best);

/* Measure both alternately, and report the ratio of the times. */
void perf_measure(struct perf_row *row, perf_func_t yardstick, perf_func_t value, void *arg);

/* The same for the floor of a row, whose name it has with _floor. */
void perf_floor(const struct perf_row *row, perf_func_t yardstick, perf_func_t floor, void *arg);

/* Print a result, and append it to the file that RMEM_PERF_JSON names. */
void perf_report(const struct perf_row *row);

/* TSC cycles of n operations as nanoseconds of one. */
double perf_ns(uint64_t cycles, double n);

#endif /* PERF_H */
