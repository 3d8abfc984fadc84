/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Random operations that create, modify and release objects with keys; see random_ops.h. */

#include <stdio.h>
#include <string.h>

#include <rmem_driver.h>

#include "random_ops.h"

uint32_t
random_access(struct random_run *run)
{
	static const uint32_t access[] = {0, 1, 3, 4, 5, 7, 9, 11, 13, 15};
	uint32_t rights = access[random_below(run, RTE_DIM(access))];

	return random_one_in(run, 2) ? rights : rights | RMEM_ACCESS_MW_BIND;
}

int
random_note_key(struct random_run *run, const struct model_region *region)
{
	bool is_new;

	rte_ticketlock_lock(&run->keys->lock);
	is_new = key_log_add(&run->keys->log, region->rkey, region->owner);
	rte_ticketlock_unlock(&run->keys->lock);
	if (!is_new)
		snprintf(run->what, sizeof(run->what), "key 0x%08x, which was another owner's",
				region->rkey);
	return is_new ? 0 : -1;
}

bool
random_is_full(struct random_run *run, bool is_window)
{
	struct rmem_dev_info info;

	if (rmem_dev_info_get(run->pairs[0].a.dev, &info) != 0)
		return false;
	/* Another lcore may have released one since. */
	return is_window ? info.nb_mw + NB_OTHERS >= info.max_mw
			 : info.nb_mr + NB_OTHERS >= info.max_mr;
}

static struct model_region *
start_region(struct random_run *run, enum model_kind kind, unsigned int pd)
{
	struct model_region *region = random_place(run);

	if (region == NULL)
		return NULL;
	memset(region, 0, sizeof(*region));
	rte_ticketlock_lock(&run->keys->lock);
	region->owner = ++run->keys->nb_owners;
	rte_ticketlock_unlock(&run->keys->lock);
	region->pd = pd;
	region->counter = -1;
	region->kind = kind;
	return region;
}

/* As one range, as two that follow each other, or on demand: it is the same to requests. */
static void
choose_memory(struct random_run *run, struct rmem_mr_attr *attr, struct iovec iov[2])
{
	uintptr_t first = (uintptr_t)attr->addr;
	/* No 8 bytes that an atomic may name lie in both. */
	size_t half = RTE_ALIGN_CEIL(first + attr->length / 2, sizeof(uint64_t)) - first;

	if (random_one_in(run, 4)) {
		attr->access |= run->on_demand;
		return;
	}
	if (half == 0 || half >= attr->length || !random_one_in(run, 4))
		return;
	iov[0].iov_base = attr->addr;
	iov[0].iov_len = half;
	iov[1].iov_base = (void *)(first + half);
	iov[1].iov_len = attr->length - half;
	attr->addr = NULL;
	attr->length = 0;
	attr->iov = iov;
	attr->iov_count = 2;
}

/* Any number, an earlier key, or one next to the key of a region. */
static void
request_key(struct random_run *run, struct rmem_mr_attr *attr)
{
	attr->flags |= RMEM_MR_REQUESTED_KEY;
	switch (random_below(run, 3)) {
	case 0:
		attr->requested_key = random_below(run, UINT32_MAX);
		break;
	case 1:
		attr->requested_key = run->former[random_below(run, NB_FORMER)];
		break;
	default:
		attr->requested_key = random_region(run)->rkey ^ random_below(run, 256);
		break;
	}
}

int
random_reg(struct random_run *run)
{
	unsigned int pd = random_below(run, NB_DOMAINS);
	uint32_t start = random_below(run, MODEL_BYTES - 1);
	uint32_t length = 1 + random_below(run, RTE_MIN(MODEL_BYTES - start, 3 * MODEL_PAGE));
	uint64_t iova = (uint64_t)random_below(run, UINT32_MAX) << random_below(run, 24);
	struct model_region *region = start_region(run, MODEL_USER, pd);
	struct rmem_mr_attr attr = {.addr = run->arena + start, .length = length};

	struct iovec iov[2];
	int ret;

	if (region == NULL)
		return 0;
	region->is_zero_based = random_one_in(run, 4);
	region->is_disabled = random_one_in(run, 6);
	region->access = random_access(run);
	if (!region->is_zero_based && random_one_in(run, 2))
		attr.iova = iova;
	attr.access = region->access | (region->is_zero_based ? RMEM_ACCESS_ZERO_BASED : 0);
	attr.flags = region->is_disabled ? RMEM_MR_DISABLED : 0;
	choose_memory(run, &attr, iov);
	if (random_one_in(run, 8))
		request_key(run, &attr);
	snprintf(run->what, sizeof(run->what), "reg of %u bytes, access 0x%x", length, attr.access);
	ret = rmem_mr_reg_attr(run->pds[pd], &attr, &region->mr);
	if (ret != 0) {
		region->kind = MODEL_NONE;
		if (ret == -ENOSPC)
			return random_is_full(run, false) ? 0 : -1;
		return ret == -EEXIST && attr.flags & RMEM_MR_REQUESTED_KEY ? 0 : -1;
	}
	region->is_valid = true;
	region->lkey = region->mr->lkey;
	region->rkey = region->mr->rkey;
	region->iova = attr.iova != 0 ? attr.iova : fx_addr(run->arena + start);
	if (region->is_zero_based)
		region->iova = 0;
	region->length = length;
	region->start = start;
	ret = random_note_key(run, region);
	if ((attr.flags & RMEM_MR_REQUESTED_KEY) != 0)
		return region->rkey == attr.requested_key ? 0 : -1;
	return ret;
}

/* Something that requests bind, or a window of type 1. */
int
random_alloc(struct random_run *run)
{
	static const enum model_kind kinds[] = {MODEL_FAST, MODEL_LIST, MODEL_MW1, MODEL_MW2};
	enum model_kind kind = kinds[random_below(run, RTE_DIM(kinds))];
	unsigned int pd = random_below(run, NB_DOMAINS);
	struct model_region *region = start_region(run, kind, pd);
	struct rmem_pd *where = run->pds[pd];
	int ret;

	if (region == NULL)
		return 0;
	snprintf(run->what, sizeof(run->what), "alloc of kind %d", (int)kind);
	if (kind == MODEL_FAST)
		ret = rmem_fast_reg_mr_alloc(where, MODEL_MR_PAGES, &region->mr);
	else if (kind == MODEL_LIST)
		ret = rmem_mkey_alloc(where, MODEL_ENTRIES, &region->mr);
	else
		ret = rmem_mw_alloc(where, kind == MODEL_MW1 ? RMEM_MW_TYPE_1 : RMEM_MW_TYPE_2,
				&region->mw);
	if (ret != 0) {
		region->kind = MODEL_NONE;
		return ret == -ENOSPC && random_is_full(run, kind >= MODEL_MW1) ? 0 : -1;
	}
	region->lkey = region->mr != NULL ? region->mr->lkey : 0;
	region->rkey = region->mr != NULL ? region->mr->rkey : region->mw->rkey;
	return 0;
}

/* A bound window or counter holds an MR. */
int
random_release(struct random_run *run)
{
	struct model_region *region = random_region(run);
	bool is_kept = region->nb_windows != 0 || region->counter >= 0;
	int ret;

	if (region->kind == MODEL_NONE || !random_one_in(run, 8))
		return 0;
	snprintf(run->what, sizeof(run->what), "release of key 0x%x, kind %d", region->rkey,
			(int)region->kind);
	random_remember(run, region->rkey);
	random_remember(run, region->lkey);
	if (region->mw != NULL)
		ret = rmem_mw_dealloc(region->mw);
	else
		ret = rmem_mr_dereg(region->mr);
	if (ret == 0) { /* the key has ended, also if the model expects an error */
		model_unbind(region);
		region->kind = MODEL_NONE;
	}
	return ret == (is_kept ? -EBUSY : 0) ? 0 : -1;
}

/* Some of memory, PD and rights; the keys remain. */
int
random_rereg(struct random_run *run)
{
	struct model_region *region = random_region(run);
	uint32_t flags = 1 + random_below(run, 7), access = random_access(run);
	uint32_t on_demand = random_one_in(run, 4) ? run->on_demand : 0;
	unsigned int pd = random_below(run, NB_DOMAINS);
	uint32_t start = random_below(run, MODEL_BYTES - 1);
	uint32_t length = 1 + random_below(run, RTE_MIN(MODEL_BYTES - start, 3 * MODEL_PAGE));
	enum rmem_rereg_result result = RMEM_REREG_ERR_CMD;
	int ret;

	if (region->kind != MODEL_USER)
		return 0;
	if (rmem_mr_drv(region->mr)->iov_count != 0)
		on_demand = 0; /* refused, unless it gets other memory */
	snprintf(run->what, sizeof(run->what), "rereg of key 0x%x, flags %u", region->rkey, flags);
	ret = rmem_mr_rereg(region->mr, flags, run->pds[pd], run->arena + start, length,
			access | on_demand, &result);
	if (region->nb_windows != 0 || region->counter >= 0)
		return ret == -EBUSY && result == RMEM_REREG_ERR_INPUT ? 0 : -1;
	if (ret != 0 || result != RMEM_REREG_OK || region->mr->rkey != region->rkey)
		return -1;
	if ((flags & RMEM_REREG_CHANGE_PD) != 0)
		region->pd = pd;
	if ((flags & RMEM_REREG_CHANGE_ACCESS) != 0)
		region->access = access;
	if ((flags & RMEM_REREG_CHANGE_TRANSLATION) != 0) {
		region->start = start;
		region->length = length;
		region->iova = region->is_zero_based ? 0 : fx_addr(run->arena + start);
	}
	return 0;
}

int
random_enable(struct random_run *run)
{
	struct model_region *region = random_region(run);
	int ret;

	if (region->mr == NULL || region->kind == MODEL_NONE)
		return 0;
	snprintf(run->what, sizeof(run->what), "enable of key 0x%x", region->rkey);
	ret = rmem_mr_enable(region->mr);
	if (region->kind != MODEL_USER)
		return ret == -EINVAL ? 0 : -1;
	region->is_disabled = false;
	return ret;
}

/* Windows that were bound before the counter need not count: so there is none. */
int
random_count(struct random_run *run)
{
	struct model_region *region = random_region(run);
	uint32_t n = random_below(run, NB_COUNTERS);
	struct rmem_counter *counter = run->counters[n];
	int ret;

	if (region->kind != MODEL_USER || region->nb_windows != 0)
		return 0;
	if (random_one_in(run, 2))
		counter = NULL;
	snprintf(run->what, sizeof(run->what), "counter for key 0x%x", region->rkey);
	ret = rmem_mr_bind_counter(region->mr, counter, RMEM_COUNTER_REMOTE_WRITE);
	if (counter != NULL && region->counter >= 0)
		return ret == -EBUSY ? 0 : -1;
	region->counter = counter != NULL ? (int)n : -1;
	return ret;
}

/* Windows first: they keep their MRs. */
int
random_end(struct random_run *run)
{
	int ret = 0;
	unsigned int i;

	for (i = 0; i < MODEL_REGIONS; i++) {
		struct model_region *region = &run->model.regions[i];

		if (region->kind == MODEL_NONE)
			continue;
		if (region->mw != NULL && rmem_mw_dealloc(region->mw) != 0)
			ret = -1;
		if (region->counter >= 0 &&
				rmem_mr_bind_counter(region->mr, NULL, RMEM_COUNTER_REMOTE_WRITE) !=
						0)
			ret = -1;
	}
	for (i = 0; i < MODEL_REGIONS; i++) {
		struct model_region *region = &run->model.regions[i];

		if (region->kind != MODEL_NONE && region->mw == NULL &&
				rmem_mr_dereg(region->mr) != 0)
			ret = -1;
		region->kind = MODEL_NONE;
	}
	return ret;
}
