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

#ifndef PERF_ROW_H
#define PERF_ROW_H

#include <stdint.h>

#include <rte_cycles.h>

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

/* A burst of requests with one SGE each; the last one is signaled. */
struct perf_wrs {
	struct rmem_sge sge[PERF_BURST];
	struct rmem_send_wr wr[PERF_BURST];
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

#define PERF_ROW(name_, unit_, yardstick_, bar_)                                                   \
	{                                                                                          \
		.name = name_, .unit = unit_, .yardstick = yardstick_, .bar = bar_                 \
	}

/* One measurement: the time of one operation, in the unit of the row. */
typedef double (*perf_func_t)(void *arg);

/* Define the autotest of a row, or of several: PERF_TEST(name) { ... } */
#define PERF_TEST(name)                                                                            \
	static void test_##name(void);                                                             \
	REGISTER_RMEM_TEST(name##_perf_autotest, test_##name);                                     \
	static void test_##name(void)

/* The autotest of a row that a function measures: func("name", ...). */
#define PERF_CALL(name, func, ...)                                                                 \
	PERF_TEST(name)                                                                            \
	{                                                                                          \
		func(#name, __VA_ARGS__);                                                          \
	}                                                                                          \
	static void test_##name(void)

void perf_dev_open(const char *args, struct rmem_dev **dev);
void perf_qp_open(
		struct rmem_dev *dev, struct rmem_pd *pd, struct rmem_cq **cq, struct rmem_qp **qp);
void perf_qp_connect(struct rmem_qp *qp, const struct rmem_qp_addr *remote);
void perf_qp_connect_pair(struct rmem_qp *a, struct rmem_qp *b);

void perf_pair_open(struct perf_pair *pair, const char *args);
void perf_pair_open_two(struct perf_pair *pair, const char *args, const char *args_b);
/* More QPs of a device and PD that are open. */
void perf_pair_connect(struct perf_pair *pair);
void perf_pair_disconnect(struct perf_pair *pair);
void perf_pair_close(struct perf_pair *pair);

/* Allocated memory, registered with all rights. */
struct rmem_mr *perf_mr(struct rmem_pd *pd, size_t size);

/* Requests of that size from the start of src, with the rkey of dst unless that is NULL. */
void perf_wrs_init(struct perf_wrs *wrs, uint8_t opcode, uint32_t size, const struct rmem_mr *src,
		const struct rmem_mr *dst);

/* Post a burst whose last request is signaled, and wait for its completion; a status. */
int perf_burst(struct perf_pair *pair, const struct rmem_send_wr *wr, uint16_t nb_wr);

/* Measure both alternately, and fill the figures of the row with the best of each. */
void perf_compare(struct perf_row *row, perf_func_t yardstick, void *yardstick_arg,
		perf_func_t value, void *arg);

/* Measure both alternately, and report the ratio of the times. */
void perf_measure(struct perf_row *row, perf_func_t yardstick, perf_func_t value, void *arg);

/* The same by one function, with two arguments. */
void perf_measure_args(struct perf_row *row, perf_func_t run, void *yardstick, void *value);

/* The same for the floor of a row, whose name it has with _floor. */
void perf_floor(const struct perf_row *row, perf_func_t yardstick, perf_func_t floor, void *arg);

/* Print a result, and append it to the file that RMEM_PERF_JSON names. */
void perf_report(const struct perf_row *row);

/* TSC cycles of n operations as nanoseconds of one. */
double perf_ns(uint64_t cycles, double n);

/* Call a function that executes nb_ops operations nb times; the time of one of them, in ns. */
static __rte_always_inline double
perf_loop(int (*func)(void *arg), void *arg, uint32_t nb, double nb_ops)
{
	uint64_t start = rte_rdtsc_precise();
	uint32_t i;

	for (i = 0; i < nb; i++) {
		if (unlikely(func(arg) != 0))
			return -1.0;
	}
	return perf_ns(rte_rdtsc_precise() - start, nb * nb_ops);
}

/*
 * Define a measurement by what it repeats nb times, of nb_ops operations each; 0 is success:
 *
 *	PERF_LOOP(run_calls, 1000, 1)
 *	{
 *		struct job *job = arg;
 *
 *		return call(job);
 *	}
 */
#define PERF_LOOP(run, nb, nb_ops)                                                                 \
	static int run##_once(void *arg);                                                          \
	static double run(void *arg)                                                               \
	{                                                                                          \
		return perf_loop(run##_once, arg, nb, nb_ops);                                     \
	}                                                                                          \
	static int run##_once(void *arg)

/* The lcore of the peer, on a CPU of its own; without one, the test is skipped. */
unsigned int perf_peer_lcore(void);

#endif /* PERF_ROW_H */
