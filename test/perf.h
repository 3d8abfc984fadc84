/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Shared by perf tests: a pair of connected QPs, a clock, and the report.
 *
 * Each test times its yardstick and its value in turn, several times, and takes the best of
 * both: other work on the machine only ever adds. Tests report; they do not judge.
 */

#ifndef PERF_H
#define PERF_H

#include <stdint.h>

#include <rmem.h>

#define PERF_BURST  32u
#define PERF_ROUNDS 7
#define PERF_ACCESS (RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE)

/* A device with a pair of QPs: requests of a are for b, which may have a device of its own. */
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

/* One timing: does its work and returns what one operation took, in the row's unit. */
typedef double (*perf_func_t)(void *arg);

int perf_dev_open(const char *args, struct rmem_dev **dev);
int perf_qp_open(
		struct rmem_dev *dev, struct rmem_pd *pd, struct rmem_cq **cq, struct rmem_qp **qp);
int perf_qp_connect(struct rmem_qp *qp, const struct rmem_qp_addr *remote);

int perf_pair_open(struct perf_pair *pair, const char *args);
int perf_pair_open_two(struct perf_pair *pair, const char *args, const char *args_b);
int perf_pair_close(struct perf_pair *pair);

/* Memory of the library, registered with all rights; NULL with a message on failure. */
struct rmem_mr *perf_mr(struct rmem_pd *pd, size_t size);

/* Post a burst whose last request is signaled, and wait for that one; a status. */
int perf_burst(struct perf_pair *pair, const struct rmem_send_wr *wr, uint16_t nb_wr);

/* Best of several rounds of both, in turn. A negative value is a failure. */
int perf_compare(perf_func_t yardstick, perf_func_t value, void *arg, double *baseline,
		double *best);

/* Print a result, and append it to the file that RMEM_PERF_JSON names. */
int perf_report(const struct perf_row *row);

/* Nanoseconds of a number of TSC cycles, for one of n. */
double perf_ns(uint64_t cycles, double n);

#endif /* PERF_H */
