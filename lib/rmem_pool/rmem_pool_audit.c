/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * The audit of pools, as a part of rmem_dev_audit().
 */

#include <errno.h>

#include <rte_mempool.h>

#include "rmem_pool_priv.h"
#include "rmem_tracked_priv.h"

/* Check that all slices have the keys of an MR of the pool, and the mempool has all buffers. */
static const char *
pool_find_error(const struct rmem_pool *pool)
{
	const struct rmem_tracked *td;
	uint32_t i;

	if (pool->obj.type != RMEM_OBJ_POOL || pool->pd->obj.type != RMEM_OBJ_PD)
		return "tag";
	if (pool->nb_mrs == 0 || rmem_pool_priv(pool)->nb_slices < pool->nb_mrs)
		return "number of MRs";
	if (pool->mp->size != pool->nb_bufs || pool->mp->populated_size != pool->nb_bufs)
		return "number of buffers";
	if (rte_mempool_avail_count(pool->mp) > pool->nb_bufs)
		return "number of free buffers";
	td = rmem_tracked_of(pool->mp);
	if (td != NULL && rmem_tracked_find_error(td) != NULL)
		return rmem_tracked_find_error(td);
	for (i = 0; i < pool->nb_mrs; i++) {
		if (pool->mrs[i]->obj.type != RMEM_OBJ_MR || pool->mrs[i]->pd != pool->pd)
			return "MR";
	}
	if (pool->keys[0].lkey != pool->mrs[0]->lkey || pool->keys[0].rkey != pool->mrs[0]->rkey)
		return "keys";
	return NULL;
}

static int
pool_is_valid(struct rmem_pool *pool, void *arg)
{
	const struct rmem_dev *dev = arg;
	const char *error;

	if (pool->obj.dev_id != dev->obj.dev_id)
		return 0;
	error = pool_find_error(pool);
	if (error == NULL)
		return 0;
	return POOL_FAIL(EIO, "audit: %s: pool %s: wrong %s", dev->name, pool->mp->name, error);
}

static int
audit(struct rmem_dev *dev)
{
	return rmem_pool_visit(pool_is_valid, dev);
}

void
rmem_pool_audit_init(void)
{
	(void)rmem_audit_add(audit);
}
