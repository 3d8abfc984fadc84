/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * MRs of external buffers, which the application registered and added to the lookups of their PD.
 *
 * Invariant: each MR in the list has its extent in the map of its PD and is held once, so that it
 * can't be deregistered or re-registered (-EBUSY) before it is removed. This file never removes
 * other MRs, such as the MRs of pools, from a map.
 */

#include <inttypes.h>
#include <pthread.h>

#include <rte_malloc.h>

#include <rmem_obj_ref.h>
#include <rmem_mbuf.h>

#include "rmem_pool_priv.h"
#include "rmem_pool_trace_priv.h"

struct extbuf {
	struct rmem_mr *mr;
	struct extbuf *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct extbuf *extbufs;

/* Check that an MR can be looked up by its address. */
static int
check_mr(const struct rmem_mr *mr)
{
	int ret = rmem_process_check();

	if (ret != 0)
		return ret;
	if (mr == NULL || mr->obj.type != RMEM_OBJ_MR)
		return POOL_FAIL(EINVAL, "handle: %p (tag 0x%x), expected an MR", (const void *)mr,
				mr == NULL ? 0 : mr->obj.type);
	/* The extents of a map are sorted: an empty one has no place among them. */
	if (mr->type != RMEM_MR_TYPE_USER || mr->addr == NULL || mr->length == 0 ||
			mr->iova != (uintptr_t)mr->addr)
		return POOL_FAIL(EINVAL,
				"MR %p: empty, iova is not the address, or no MR of rmem_mr_reg(): type %u, %zu bytes at %p, iova 0x%" PRIx64,
				(const void *)mr, mr->type, mr->length, mr->addr, mr->iova);
	return 0;
}

/*
 * Find the pointer to the entry of an MR; it points to NULL without an entry. Call with the lock
 * held.
 */
static struct extbuf **
find(const struct rmem_mr *mr)
{
	struct extbuf **at = &extbufs;

	while (*at != NULL && (*at)->mr != mr)
		at = &(*at)->next;
	return at;
}

/* Add an MR that is held; call with the lock held. */
static int
do_add(struct rmem_mr *mr)
{
	struct extbuf *extbuf = rte_zmalloc("rmem_extbuf", sizeof(*extbuf), 0);
	struct rmem_map *map;
	int ret;

	if (extbuf == NULL)
		return POOL_FAIL(
				ENOMEM, "MR %p: no memory: %zu bytes", (void *)mr, sizeof(*extbuf));
	ret = rmem_map_add(&mr, 1, &map);
	if (ret != 0) {
		rte_free(extbuf);
		return ret;
	}
	extbuf->mr = mr;
	extbuf->next = extbufs;
	extbufs = extbuf;
	return 0;
}

int
rmem_extbuf_mr_add(struct rmem_mr *mr)
{
	RMEM_CALL(mr);
	int ret = check_mr(mr);

	if (ret != 0)
		return ret;
	if (!rmem_obj_hold(&mr->obj))
		return POOL_FAIL(EINVAL, "MR %p: is being deregistered or re-registered",
				(void *)mr);
	ret = check_mr(mr); /* a re-registration may have ended since */
	pthread_mutex_lock(&lock);
	if (ret == 0)
		ret = do_add(mr);
	pthread_mutex_unlock(&lock);
	if (ret != 0)
		rmem_obj_unhold(&mr->obj);
	else
		rmem_pool_trace_extbuf_add(mr, mr->addr, mr->length);
	return ret;
}

/* Remove an MR. Return its entry, or NULL if the MR was not added. */
static struct extbuf *
do_del(struct rmem_mr *mr)
{
	struct extbuf **at, *extbuf;

	pthread_mutex_lock(&lock);
	at = find(mr);
	extbuf = *at;
	if (extbuf != NULL) {
		*at = extbuf->next;
		rmem_map_del(&mr, 1);
	}
	pthread_mutex_unlock(&lock);
	return extbuf;
}

int
rmem_extbuf_mr_del(struct rmem_mr *mr)
{
	RMEM_CALL(mr);
	struct extbuf *extbuf;
	int ret = check_mr(mr);

	if (ret != 0)
		return ret;
	extbuf = do_del(mr);
	if (extbuf == NULL)
		return POOL_FAIL(ENOENT, "MR %p: not added before", (void *)mr);
	rte_free(extbuf);
	rmem_pool_trace_extbuf_del(mr);
	rmem_obj_unhold(&mr->obj);
	return 0;
}
