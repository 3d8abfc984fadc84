/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The histogram of dpdk-testrmem: percentiles of known durations are exact to 1/32. */

#include <stdio.h>
#include <stdlib.h>

#include "latency.h"

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("line %d: %s\n", __LINE__, #condition);                             \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* Durations of step, 2 * step ... nb * step, the even ones in one histogram, the odd in another. */
static void
check_steps(uint64_t nb, uint64_t step)
{
	static const double parts[] = {0.0, 0.01, 0.5, 0.9, 0.99, 0.999};
	static struct latency halves[2];
	uint64_t i, at, exact;

	for (i = 0; i < 2; i++)
		halves[i] = (struct latency){0};
	for (i = nb; i > 0; i--)
		latency_add(&halves[i % 2], i * step);
	latency_merge(&halves[0], &halves[1]);
	CHECK(halves[0].nb == nb && halves[0].min == step && halves[0].max == nb * step);
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		exact = ((uint64_t)(parts[i] * (double)nb) + 1) * step;
		at = latency_at(&halves[0], parts[i]);
		CHECK(at >= exact && at <= exact + exact / 32);
	}
	CHECK(latency_at(&halves[0], 1.0) == nb * step);
	CHECK(latency_upto(&halves[0], step - 1) == 0);
	CHECK(latency_upto(&halves[0], nb * step) == nb);
	for (i = 1; i < nb; i++) {
		at = latency_upto(&halves[0], i * step);
		CHECK(at <= i && at >= i - i / 32 - 1);
	}
}

int
main(void)
{
	static struct latency latency;
	uint64_t cycles;

	CHECK(latency_at(&latency, 0.5) == 0);
	latency_add(&latency, 12345);
	CHECK(latency_at(&latency, 0.5) == 12345 && latency_at(&latency, 0.999) == 12345);
	for (cycles = 0; cycles < 1000000; cycles++)
		CHECK(latency_bucket(cycles + 1) - latency_bucket(cycles) <= 1);
	CHECK(latency_bucket((UINT64_C(1) << LATENCY_MAX_BITS) - 1) == LATENCY_BUCKETS - 1);
	CHECK(latency_bucket(UINT64_MAX) == LATENCY_BUCKETS - 1);
	check_steps(31, 1);
	check_steps(1000, 1);
	check_steps(100000, 7);
	check_steps(1000, UINT64_C(1) << 30);
	return 0;
}
