/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Mempools of any origin, registered with a PD: an MR for each range of rmem_ranges.c. All these
 * MRs are in the map of the PD.
 */

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include <rte_malloc.h>

#include <rmem_mbuf.h>

#include "rmem_pool_priv.h"
#include "rmem_pool_trace_priv.h"

static_assert(offsetof(struct rmem_mempool, pd) + sizeof(void *) <= RTE_CACHE_LINE_MIN_SIZE,
		"a lookup reads one line of the registration");

int
rmem_mempool_check_mp(const struct rmem_mempool *reg)
{
	if (rmem_mempool_exists(reg->mp))
		return 0;
	return POOL_FAIL(ENOENT, "registration %p: its mempool %p was freed", (const void *)reg,
			(const void *)reg->mp);
}

int
rmem_mempool_check_reg(const struct rmem_mempool *reg)
{
	int ret = rmem_process_check();

	if (ret != 0)
		return ret;
	if (reg != NULL && reg->obj.type == RMEM_MEMPOOL_TAG)
		return 0;
	return POOL_FAIL(EINVAL, "handle: %p (tag 0x%x), expected a registration of a mempool",
			(const void *)reg, reg == NULL ? 0 : reg->obj.type);
}

static int
check_mempool(const struct rte_mempool *mp, const struct rmem_pd *pd, const void *out)
{
	int ret;

	ret = rmem_pool_check_pd(pd);
	if (ret != 0)
		return ret;
	if (mp == NULL || out == NULL)
		return POOL_FAIL(EINVAL, "%s: NULL", mp == NULL ? "mempool" : "result");
	if (mp->size == 0 || mp->populated_size < mp->size)
		return POOL_FAIL(EBUSY, "%s: not fully populated: %u of %u objects", mp->name,
				mp->populated_size, mp->size);
	return 0;
}

/* Compute the resources that the ranges of a mempool need. */
static void
fill_need(const struct rte_mempool *mp, const struct rmem_ranges *ranges, struct rmem_need *need)
{
	uint32_t i;

	*need = (struct rmem_need){
			.name = mp->name, .buf_size = ranges->buf_size, .nb_mrs = ranges->nb};
	for (i = 0; i < ranges->nb; i++)
		need->length += (uint64_t)(ranges->range[i].end - ranges->range[i].begin);
}

/*
 * Deregister all MRs. The class has no references to them, but the device may have some, or fail.
 */
static int
dereg_all(struct rmem_mempool *reg)
{
	int ret = 0;

	while (reg->nb_mrs > 0 && ret == 0) {
		ret = rmem_mr_dereg(reg->mrs[reg->nb_mrs - 1]);
		if (ret == 0)
			reg->nb_mrs--;
	}
	return ret;
}

static int
reg_all(struct rmem_mempool *reg, const struct rmem_ranges *ranges)
{
	const struct rmem_range *range;
	struct rmem_mr *mr;
	size_t length;
	uint32_t i;
	int ret;

	for (i = 0; i < ranges->nb; i++) {
		range = &ranges->range[i];
		length = (size_t)(range->end - range->begin);
		ret = rmem_mr_reg(reg->pd, range->begin, length, 0, reg->access, &mr);
		if (ret != 0)
			return ret;
		reg->mrs[reg->nb_mrs++] = mr;
		reg->registered += length;
		if (length > reg->length) {
			reg->base = (uintptr_t)range->begin;
			reg->length = length;
			reg->keys.lkey = mr->lkey;
			reg->keys.rkey = mr->rkey;
		}
	}
	return rmem_map_add(reg->mrs, reg->nb_mrs, &reg->map);
}

static int
reg_ranges(struct rte_mempool *mp, struct rmem_pd *pd, uint32_t access,
		const struct rmem_ranges *ranges, struct rmem_mempool **reg)
{
	size_t size = sizeof(struct rmem_mempool_priv) + ranges->nb * sizeof(struct rmem_mr *);
	struct rmem_mempool *new_reg;
	int ret;

	new_reg = rte_zmalloc_socket("rmem_mempool", size, RTE_CACHE_LINE_SIZE, mp->socket_id);
	if (new_reg == NULL)
		return POOL_FAIL(ENOMEM, "%s: no memory: %u MRs, %zu bytes", mp->name, ranges->nb,
				size);
	new_reg->obj.type = RMEM_MEMPOOL_TAG;
	new_reg->obj.dev_id = pd->obj.dev_id;
	new_reg->mp = mp;
	new_reg->pd = pd;
	new_reg->access = access;
	new_reg->mrs = (struct rmem_mr **)(rmem_mempool_priv(new_reg) + 1);
	ret = reg_all(new_reg, ranges);
	if (ret != 0 && dereg_all(new_reg) == 0) {
		rte_free(new_reg);
		return ret;
	}
	*reg = new_reg;
	if (ret == 0)
		rmem_pool_list_add_mempool(new_reg);
	return ret;
}

int
rmem_mempool_do_register(struct rte_mempool *mp, struct rmem_pd *pd, uint32_t access,
		struct rmem_mempool **reg)
{
	struct rmem_dev_info info;
	struct rmem_ranges ranges;
	struct rmem_need need;
	int ret;

	ret = rmem_pool_dev_info(pd, &info);
	if (ret != 0)
		return ret;
	ret = rmem_ranges_get(mp, info.max_mr_size, &ranges);
	if (ret == 0) {
		fill_need(mp, &ranges, &need);
		ret = rmem_pool_report_mrs(&need, &info);
		if (ret == 0)
			ret = reg_ranges(mp, pd, access, &ranges, reg);
	}
	rmem_ranges_free(&ranges);
	return ret;
}

int
rmem_mempool_register(struct rte_mempool *mp, struct rmem_pd *pd, uint32_t access,
		struct rmem_mempool **reg)
{
	RMEM_CALL(pd);
	struct rmem_mempool *new_reg = NULL;
	int ret;

	ret = check_mempool(mp, pd, reg);
	if (ret != 0)
		return ret;
	if ((access & RMEM_ACCESS_ALLOCATE_MR) != 0)
		return POOL_FAIL(EINVAL, "%s: ALLOCATE_MR not supported: access 0x%x", mp->name,
				access);
	if ((access & RMEM_ACCESS_ZERO_BASED) != 0)
		return POOL_FAIL(EINVAL, "%s: ZERO_BASED not supported: access 0x%x", mp->name,
				access);
	ret = rmem_mempool_do_register(mp, pd, access, &new_reg);
	if (ret == 0) {
		*reg = new_reg;
		rmem_pool_trace_mempool_register(mp->name, pd, new_reg, access, new_reg->nb_mrs,
				new_reg->registered);
	} else if (new_reg != NULL) {
		POOL_LOG(ERR, "%s: cannot be deregistered: %u MRs (the mempool must not be freed)",
				mp->name, new_reg->nb_mrs);
		rte_free(new_reg);
	}
	return ret;
}

int
rmem_mempool_check_idle(const struct rmem_mempool *reg)
{
	uint32_t i, refs = 0;

	for (i = 0; i < reg->nb_mrs; i++)
		refs += __atomic_load_n(&reg->mrs[i]->obj.refs, __ATOMIC_RELAXED);
	if (refs == 0)
		return 0;
	return POOL_FAIL(EBUSY, "registration %p: in use: %u references to its MRs",
			(const void *)reg, refs);
}

int
rmem_mempool_do_unregister(struct rmem_mempool *reg)
{
	int ret;

	rmem_map_del(reg->mrs, reg->nb_mrs);
	ret = dereg_all(reg);
	if (ret == 0)
		rmem_pool_list_del_mempool(reg);
	return ret;
}

void
rmem_mempool_free_reg(struct rmem_mempool *reg)
{
	__atomic_store_n(&reg->obj.type, RMEM_OBJ_NONE, __ATOMIC_RELEASE);
	rte_free(reg);
}

int
rmem_mempool_unregister(struct rmem_mempool *reg)
{
	RMEM_CALL(reg);
	int ret;

	if (reg == NULL)
		return 0;
	ret = rmem_mempool_check_reg(reg);
	if (ret != 0)
		return ret;
	if (rmem_mempool_priv(reg)->mz != NULL)
		return POOL_FAIL(EINVAL,
				"registration %p: belongs to an mbuf pool (destroy the pool)",
				(void *)reg);
	ret = rmem_mempool_check_idle(reg);
	if (ret == 0)
		ret = rmem_mempool_do_unregister(reg);
	if (ret != 0)
		return ret;
	rmem_pool_trace_mempool_unregister(reg);
	rmem_mempool_free_reg(reg);
	return 0;
}

int
rmem_mempool_check(
		struct rte_mempool *mp, const struct rmem_pd *pd, struct rmem_pool_report *report)
{
	struct rmem_dev_info info;
	struct rmem_ranges ranges;
	struct rmem_need need;
	int ret;

	ret = check_mempool(mp, pd, report);
	if (ret == 0)
		ret = rmem_pool_dev_info(pd, &info);
	if (ret != 0)
		return ret;
	ret = rmem_ranges_get(mp, info.max_mr_size, &ranges);
	if (ret == 0) {
		fill_need(mp, &ranges, &need);
		ret = rmem_pool_report_fill(&need, &info, report);
	}
	rmem_ranges_free(&ranges);
	return ret;
}

struct rmem_mr *
rmem_mempool_mr(const struct rmem_mempool *reg, const void *addr, size_t length)
{
	uint32_t low = 0, high = reg->nb_mrs;
	struct rmem_mr *mr;
	uintptr_t offset;

	/* Find the last extent that does not begin after addr. */
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if ((uintptr_t)reg->mrs[mid]->addr <= (uintptr_t)addr)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == 0)
		return NULL;
	mr = reg->mrs[low - 1];
	offset = (uintptr_t)addr - (uintptr_t)mr->addr;
	return offset < mr->length && length <= mr->length - offset ? mr : NULL;
}
