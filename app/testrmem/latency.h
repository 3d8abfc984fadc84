/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Histogram of durations, in TSC cycles. Its buckets are at most 1/32 of their value wide, so that
 * percentiles are exact to 3 %.
 */

#ifndef LATENCY_H
#define LATENCY_H

#include <stdint.h>

#define LATENCY_SUB_BITS 5
#define LATENCY_MAX_BITS 44 /* of a duration, more than an hour */
#define LATENCY_BUCKETS  ((LATENCY_MAX_BITS - LATENCY_SUB_BITS + 1) << LATENCY_SUB_BITS)

/** Of one lcore: written by it alone, read when it has ended. */
struct latency {
	uint64_t nb;
	uint64_t min;
	uint64_t max;
	uint64_t count[LATENCY_BUCKETS];
};

/** Bucket of a duration. */
static inline uint32_t
latency_bucket(uint64_t cycles)
{
	uint32_t shift;

	if (cycles < 1u << LATENCY_SUB_BITS)
		return (uint32_t)cycles;
	if (cycles >> LATENCY_MAX_BITS != 0)
		return LATENCY_BUCKETS - 1;
	/* The highest bit selects 32 buckets, the next five one of them. */
	shift = 63 - (uint32_t)__builtin_clzll(cycles) - LATENCY_SUB_BITS;
	return (shift << LATENCY_SUB_BITS) + (uint32_t)(cycles >> shift);
}

static inline void
latency_add(struct latency *latency, uint64_t cycles)
{
	latency->count[latency_bucket(cycles)]++;
	latency->min = latency->nb == 0 || cycles < latency->min ? cycles : latency->min;
	latency->max = cycles > latency->max ? cycles : latency->max;
	latency->nb++;
}

/** Add all of another one. */
void latency_merge(struct latency *sum, const struct latency *part);
/** Cycles that a part of the durations, 0 to 1, does not exceed; 0 without any. */
uint64_t latency_at(const struct latency *latency, double part);
/** Number of durations of at most that many cycles, exact to a bucket. */
uint64_t latency_upto(const struct latency *latency, uint64_t cycles);

#endif /* LATENCY_H */
