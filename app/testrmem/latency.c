/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

#include <rte_common.h>

#include "latency.h"

/* The last duration of a bucket. */
static uint64_t
bucket_end(uint32_t bucket)
{
	uint32_t shift;

	if (bucket < 2u << LATENCY_SUB_BITS)
		return bucket;
	shift = (bucket >> LATENCY_SUB_BITS) - 1;
	return ((uint64_t)(bucket - (shift << LATENCY_SUB_BITS) + 1) << shift) - 1;
}

void
latency_merge(struct latency *sum, const struct latency *part)
{
	uint32_t i;

	if (part->nb == 0)
		return;
	sum->min = sum->nb == 0 ? part->min : RTE_MIN(sum->min, part->min);
	sum->max = RTE_MAX(sum->max, part->max);
	sum->nb += part->nb;
	for (i = 0; i < LATENCY_BUCKETS; i++)
		sum->count[i] += part->count[i];
}

uint64_t
latency_at(const struct latency *latency, double part)
{
	uint64_t rank = (uint64_t)(part * (double)latency->nb), nb = 0;
	uint32_t i;

	if (latency->nb == 0)
		return 0;
	rank = RTE_MIN(rank, latency->nb - 1);
	for (i = 0; i < LATENCY_BUCKETS - 1; i++) {
		nb += latency->count[i];
		if (nb > rank)
			break;
	}
	return RTE_MIN(RTE_MAX(bucket_end(i), latency->min), latency->max);
}

uint64_t
latency_upto(const struct latency *latency, uint64_t cycles)
{
	uint64_t nb = 0;
	uint32_t i;

	if (cycles >= latency->max)
		return latency->nb;
	for (i = 0; i < LATENCY_BUCKETS - 1 && bucket_end(i) <= cycles; i++)
		nb += latency->count[i];
	return nb;
}
