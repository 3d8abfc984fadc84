/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A sorted array of the ranges of a PD; see rverbs_range.h.
 *
 * Invariant: under the lock, the array is sorted by the first byte, and no range is longer than
 * max_length. So the search for an address starts at the last range that does not start after it,
 * and ends max_length before the address.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rverbs_range.h"

struct rverbs_range {
	uintptr_t addr;
	size_t length;
	uint64_t iova;
	uint32_t lkey;
	uint32_t access;
	const struct rverbs_mr *mr;
};

void
rverbs_range_init(struct rverbs_pd *pd)
{
	rte_rwlock_init(&pd->ranges.lock);
}

void
rverbs_range_fini(struct rverbs_pd *pd)
{
	free(pd->ranges.array);
}

/* Index of the first range that starts after an address. */
static uint32_t
range_after(const struct rverbs_ranges *ranges, uintptr_t addr)
{
	uint32_t low = 0, high = ranges->nb, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (ranges->array[mid].addr <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Ensure space for one more range. */
static bool
range_grow(struct rverbs_ranges *ranges)
{
	uint32_t max = RTE_MAX(16u, 2 * ranges->max);
	struct rverbs_range *array;

	if (ranges->nb < ranges->max)
		return true;
	array = realloc(ranges->array, max * sizeof(*array));
	if (array == NULL)
		return false;
	ranges->array = array;
	ranges->max = max;
	return true;
}

int
rverbs_range_add(struct rverbs_pd *pd, const struct rverbs_mr *mr, uint64_t iova, uint32_t access)
{
	const struct rverbs_range range = {.addr = (uintptr_t)mr->ibv->addr,
			.length = mr->ibv->length,
			.iova = iova,
			.lkey = mr->ibv->lkey,
			.access = access,
			.mr = mr};
	struct rverbs_ranges *ranges = &pd->ranges;
	struct rverbs_range *at;
	bool is_room;

	if ((rverbs_dev_of(&pd->pd.obj)->capa & RMEM_DEV_CAPA_FAST_REG) == 0)
		return 0;
	rte_rwlock_write_lock(&ranges->lock);
	is_room = range_grow(ranges);
	if (is_room) {
		at = &ranges->array[range_after(ranges, range.addr)];
		memmove(at + 1, at, (size_t)(&ranges->array[ranges->nb] - at) * sizeof(*at));
		*at = range;
		ranges->nb++;
		ranges->max_length = RTE_MAX(ranges->max_length, range.length);
	}
	rte_rwlock_write_unlock(&ranges->lock);
	if (is_room)
		return 0;
	RVERBS_LOG(ERR, "PD: no memory: %u MRs", ranges->nb);
	return -ENOMEM;
}

void
rverbs_range_remove(struct rverbs_pd *pd, const struct rverbs_mr *mr)
{
	struct rverbs_ranges *ranges = &pd->ranges;
	uint32_t i;

	rte_rwlock_write_lock(&ranges->lock);
	for (i = 0; i < ranges->nb && ranges->array[i].mr != mr; i++)
		;
	if (i < ranges->nb) {
		ranges->nb--;
		memmove(&ranges->array[i], &ranges->array[i + 1],
				(ranges->nb - i) * sizeof(ranges->array[0]));
	}
	rte_rwlock_write_unlock(&ranges->lock);
}

/* Under the lock. */
static const struct rverbs_range *
range_find(const struct rverbs_ranges *ranges, const struct ibv_sge *sge, uint32_t access)
{
	const struct rverbs_range *range;
	uint32_t i = range_after(ranges, sge->addr);
	uint64_t offset;

	while (i-- != 0) {
		range = &ranges->array[i];
		offset = sge->addr - range->addr;
		if (offset >= ranges->max_length)
			break;
		if (offset < range->length && sge->length <= range->length - offset &&
				(access & ~range->access) == 0)
			return range;
	}
	return NULL;
}

bool
rverbs_range_map(struct rverbs_pd *pd, uint32_t access, struct ibv_sge *sges, uint16_t nb)
{
	struct rverbs_ranges *ranges = &pd->ranges;
	const struct rverbs_range *range = NULL;
	uint16_t i;

	rte_rwlock_read_lock(&ranges->lock);
	for (i = 0; i < nb; i++) {
		range = range_find(ranges, &sges[i], access);
		if (range == NULL)
			break;
		sges[i].addr = range->iova + (sges[i].addr - range->addr);
		sges[i].lkey = range->lkey;
	}
	rte_rwlock_read_unlock(&ranges->lock);
	return i == nb;
}
