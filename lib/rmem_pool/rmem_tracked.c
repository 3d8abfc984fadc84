/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Tracked mempools: the mempool ops, and calls on the owners of buffers.
 *
 * DPDK has 16 slots for mempool ops, most of which its drivers take. The ops of this file take a
 * slot when a process uses its first tracked pool: after all drivers, so that no index of a driver
 * changes, and not in processes without such pools.
 */

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <rmem_tracked.h>

#include "rmem_pool_priv.h"
#include "rmem_tracked_priv.h"

static_assert(TRACKED_MAX_OWNER == RMEM_PROCESS_MAX && TRACKED_PRIMARY == RMEM_PROCESS_PRIMARY,
		"an owner is a process");

/* Size of a line with all owners. */
#define OWNERS_SIZE 256

/* Protects the list, and the registration of the ops. Private to the process. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rmem_tracked *all;

static int
tracked_alloc(struct rte_mempool *mp)
{
	struct rmem_tracked *td;
	int ret = rmem_process_check();

	if (ret != 0)
		return ret;
	if (mp->cache_size != 0)
		return POOL_FAIL(EINVAL, "%s: a tracked mempool has no caches: cache_size %u (0)",
				mp->name, mp->cache_size);
	td = rte_zmalloc_socket("rmem_tracked", rmem_tracked_mem_size(mp->size),
			RTE_CACHE_LINE_SIZE, mp->socket_id);
	if (td == NULL)
		return POOL_FAIL(ENOMEM, "%s: no memory: owners of %u buffers, %zu bytes", mp->name,
				mp->size, rmem_tracked_mem_size(mp->size));
	rmem_tracked_init(td, mp->size);
	td->mp = mp;
	mp->pool_data = td;
	pthread_mutex_lock(&lock);
	td->next = all;
	all = td;
	pthread_mutex_unlock(&lock);
	return 0;
}

static void
tracked_free(struct rte_mempool *mp)
{
	struct rmem_tracked *td = mp->pool_data, **at = &all;

	pthread_mutex_lock(&lock);
	while (*at != NULL && *at != td)
		at = &(*at)->next;
	if (*at != NULL)
		*at = td->next;
	pthread_mutex_unlock(&lock);
	rte_free(td);
}

/* Refuse a put. The first refusal is logged, all are counted. */
static __rte_noinline int
refuse_put(const struct rte_mempool *mp, struct rmem_tracked *td, unsigned int nb)
{
	if (__atomic_fetch_add(&td->bad_puts, nb, __ATOMIC_RELAXED) == 0)
		POOL_LOG(ERR,
				"%s: put refused: %u buffers that are free, or not of the mempool "
				"(further refusals are only counted)",
				mp->name, nb);
	return -EINVAL;
}

/*
 * Refuse a call of an unattached process. Logged once per process, because gets and puts are fast
 * path calls.
 */
static __rte_noinline int
refuse_unattached(const struct rte_mempool *mp, const char *call)
{
	static bool is_logged;

	if (!__atomic_exchange_n(&is_logged, true, __ATOMIC_RELAXED))
		POOL_LOG(ERR, "%s: %s refused: this secondary process is not attached to a device",
				mp->name, call);
	return -EOPNOTSUPP;
}

static int
tracked_enqueue(struct rte_mempool *mp, void *const *objs, unsigned int n)
{
	struct rmem_tracked *td = mp->pool_data;
	uint16_t process = rmem_process_number();
	unsigned int nb_bad = 0;

	/* The buffers of an unattached process were freed, and may belong to another. */
	if (unlikely(process == 0))
		return refuse_unattached(mp, "put");
	if (unlikely(!rmem_tracked_is_full(td))) {
		while (n-- > 0)
			nb_bad += !rmem_tracked_add(td, *objs++);
	} else {
		nb_bad = rmem_tracked_put(td, objs, n, (uint8_t)process, rte_lcore_id());
	}
	return likely(nb_bad == 0) ? 0 : refuse_put(mp, td, nb_bad);
}

static int
tracked_dequeue(struct rte_mempool *mp, void **objs, unsigned int n)
{
	struct rmem_tracked *td = mp->pool_data;
	uint16_t process = rmem_process_number();

	if (unlikely(process == 0))
		return refuse_unattached(mp, "get");
	if (unlikely(!rmem_tracked_is_full(td)))
		return -ENOBUFS;
	return rmem_tracked_get(td, objs, n, (uint8_t)process, rte_lcore_id());
}

static unsigned int
tracked_get_count(const struct rte_mempool *mp)
{
	const struct rmem_tracked *td = mp->pool_data;

	return rmem_tracked_is_full(td) ? rmem_tracked_count_free(td) : td->nb_objs;
}

static const struct rte_mempool_ops tracked_ops = {
		.name = TRACKED_OPS_NAME,
		.alloc = tracked_alloc,
		.dequeue = tracked_dequeue,
		.enqueue = tracked_enqueue,
		.free = tracked_free,
		.get_count = tracked_get_count,
};

/* Find the index of the ops in the table of this process, or -ENOENT. */
static int
find_ops(void)
{
	uint32_t i;

	for (i = 0; i < rte_mempool_ops_table.num_ops; i++) {
		if (strcmp(rte_mempool_ops_table.ops[i].name, TRACKED_OPS_NAME) == 0)
			return (int)i;
	}
	return -ENOENT;
}

/* Ops that fill the slots of mempool drivers that only the primary process loaded. */
static int
missing_alloc(struct rte_mempool *mp)
{
	return POOL_FAIL(EOPNOTSUPP, "%s: mempool ops: not loaded in this process", mp->name);
}

static int
missing_enqueue(struct rte_mempool *mp, void *const *objs, unsigned int n)
{
	RTE_SET_USED(mp);
	RTE_SET_USED(objs);
	RTE_SET_USED(n);
	return -EOPNOTSUPP;
}

static int
missing_dequeue(struct rte_mempool *mp, void **objs, unsigned int n)
{
	RTE_SET_USED(mp);
	RTE_SET_USED(objs);
	RTE_SET_USED(n);
	return -EOPNOTSUPP;
}

static unsigned int
missing_get_count(const struct rte_mempool *mp)
{
	RTE_SET_USED(mp);
	return 0;
}

static const struct rte_mempool_ops missing_ops = {
		.name = "rmem_missing",
		.alloc = missing_alloc,
		.dequeue = missing_dequeue,
		.enqueue = missing_enqueue,
		.get_count = missing_get_count,
};

/*
 * Get the index of the ops in this process; the first call registers them, at index `at` or above.
 */
static int
register_at(int at)
{
	int index;

	pthread_mutex_lock(&lock);
	index = find_ops();
	if (index < 0) {
		while ((int)rte_mempool_ops_table.num_ops < at &&
				rte_mempool_register_ops(&missing_ops) >= 0)
			;
		index = rte_mempool_register_ops(&tracked_ops);
	}
	pthread_mutex_unlock(&lock);
	if (index >= 0)
		return index;
	return POOL_FAIL(ENOSPC,
			"mempool ops: no free slot for %s: all %d of DPDK are in use (load fewer "
			"mempool drivers)",
			TRACKED_OPS_NAME, RTE_MEMPOOL_MAX_OPS_IDX);
}

int
rmem_tracked_ops_index(void)
{
	return register_at(0);
}

int
rmem_tracked_ops_set(const struct rte_mempool *mp)
{
	int index;

	if (mp == NULL)
		return POOL_FAIL(EINVAL, "mempool: NULL");
	index = register_at(mp->ops_index);
	if (index < 0)
		return index;
	if (index == mp->ops_index)
		return 0;
	return POOL_FAIL(EOPNOTSUPP,
			"%s: mempool ops %s have index %d in this process and %d in the primary process "
			"(load the same mempool drivers in both)",
			mp->name, TRACKED_OPS_NAME, index, mp->ops_index);
}

struct rmem_tracked *
rmem_tracked_of(const struct rte_mempool *mp)
{
	if (rte_mempool_get_ops(mp->ops_index)->dequeue != tracked_dequeue)
		return NULL;
	return mp->pool_data;
}

/* As rmem_tracked_of(), for calls of applications, which may pass any mempool. */
static struct rmem_tracked *
full_of(const struct rte_mempool *mp)
{
	struct rmem_tracked *td = mp == NULL ? NULL : rmem_tracked_of(mp);

	return td != NULL && rmem_tracked_is_full(td) ? td : NULL;
}

int
rmem_tracked_own(struct rte_mempool *mp, void **objs, unsigned int n, uint16_t from)
{
	struct rmem_tracked *td = full_of(mp);
	uint16_t process = rmem_process_number();
	unsigned int i, nb = 0;

	if (td == NULL)
		return POOL_FAIL(EINVAL, "mempool %p: not tracked", (const void *)mp);
	if (from > TRACKED_MAX_OWNER)
		return POOL_FAIL(EINVAL, "%s: process out of range: %u (0 to %d)", mp->name, from,
				TRACKED_MAX_OWNER);
	if (process == 0)
		return refuse_unattached(mp, "rmem_tracked_own");
	for (i = 0; i < n; i++) {
		if (rmem_tracked_take(td, objs[i], (uint8_t)process, (uint8_t)from))
			objs[nb++] = objs[i];
	}
	return (int)nb;
}

int
rmem_tracked_owner(const struct rte_mempool *mp, const void *obj)
{
	const struct rmem_tracked *td = full_of(mp);
	int owner;

	if (td == NULL)
		return POOL_FAIL(EINVAL, "mempool %p: not tracked", (const void *)mp);
	owner = rmem_tracked_owner_of(td, obj);
	if (owner < 0)
		return POOL_FAIL(EINVAL, "%s: %p is not a buffer", mp->name, obj);
	return owner;
}

/* The dead process may have had the mbuf in a chain, attached or with references. */
static void
reset_mbuf(struct rmem_tracked *td, void *obj)
{
	rte_pktmbuf_init(td->mp, NULL, obj, 0);
}

void
rmem_tracked_set_mbufs(const struct rte_mempool *mp)
{
	rmem_tracked_of(mp)->is_mbufs = true;
}

int
rmem_tracked_reap(uint16_t process)
{
	struct rmem_tracked *td;
	int ret = rmem_process_check();
	uint32_t nb = 0;

	if (ret != 0)
		return ret;
	if (process < 2 || process > TRACKED_MAX_OWNER)
		return POOL_FAIL(EINVAL, "process out of range: %u (2 to %d)", process,
				TRACKED_MAX_OWNER);
	pthread_mutex_lock(&lock);
	for (td = all; td != NULL; td = td->next)
		nb += rmem_tracked_reap_from(
				td, (uint8_t)process, td->is_mbufs ? reset_mbuf : NULL);
	pthread_mutex_unlock(&lock);
	return (int)nb;
}

/* Free the buffers of a secondary process that has ended. */
static void
reap_ended(uint16_t process)
{
	int nb = rmem_tracked_reap(process);

	if (nb > 0)
		POOL_LOG(INFO, "process %u: %d buffers of tracked pools freed", process, nb);
}

RTE_INIT(rmem_tracked_add_end)
{
	rmem_mp_end_add(reap_ended);
}

void
rmem_tracked_log_owners(const struct rte_mempool *mp)
{
	const struct rmem_tracked *td = full_of(mp);
	uint32_t nb[TRACKED_MAX_OWNER + 1];
	char text[OWNERS_SIZE] = "";
	size_t used = 0;
	uint32_t i;

	if (td == NULL)
		return;
	rmem_tracked_count(td, nb);
	for (i = 1; i < RTE_DIM(nb) && used < sizeof(text); i++) {
		if (nb[i] != 0)
			used += (size_t)snprintf(text + used, sizeof(text) - used,
					"%s%u of process %u", used == 0 ? "" : ", ", nb[i], i);
	}
	POOL_LOG(ERR, "%s: buffers not put back: %s", mp->name, text);
}
