/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Allocator of ids: an array of free ids, from which a random one is swapped to the end and taken.
 *
 * Invariant: with an index, ids->free[ids->at[id - 1]] is id for each free id.
 */

#include <errno.h>
#include <sys/random.h>

#include <rte_malloc.h>
#include <rte_random.h>

#include "rsoft_ids.h"
#include "rsoft_lock.h"

int
rsoft_ids_init(struct rsoft_ids *ids, uint32_t max, bool is_full, int socket_id)
{
	uint32_t i;

	ids->free = rte_malloc_socket("rsoft_ids", (size_t)max * sizeof(*ids->free), 0, socket_id);
	if (ids->free == NULL)
		return -ENOMEM;
	ids->at = NULL;
	ids->max = max;
	ids->nb_free = is_full ? max : 0;
	for (i = 0; i < ids->nb_free; i++)
		ids->free[i] = i + 1;
	return 0;
}

void
rsoft_ids_fini(struct rsoft_ids *ids)
{
	rte_free(ids->at);
	rte_free(ids->free);
	ids->at = NULL;
	ids->free = NULL;
}

/* Put an id in an entry. */
static inline void
ids_set(struct rsoft_ids *ids, uint32_t at, uint32_t id)
{
	ids->free[at] = id;
	if (unlikely(ids->at != NULL))
		ids->at[id - 1] = at;
}

void
rsoft_ids_index(struct rsoft_ids *ids, uint32_t *at)
{
	uint32_t i;

	ids->at = at;
	for (i = 0; i < ids->nb_free; i++)
		at[ids->free[i] - 1] = i;
}

uint32_t
rsoft_ids_get(struct rsoft_ids *ids)
{
	uint32_t at, id;

	if (ids->nb_free == 0)
		return 0;
	at = (uint32_t)(((uint64_t)rsoft_random() * ids->nb_free) >> 32);
	id = ids->free[at];
	ids_set(ids, at, ids->free[--ids->nb_free]);
	return id;
}

bool
rsoft_ids_take(struct rsoft_ids *ids, uint32_t id)
{
	uint32_t at = ids->at[id - 1];

	if (at >= ids->nb_free || ids->free[at] != id)
		return false;
	ids_set(ids, at, ids->free[--ids->nb_free]);
	return true;
}

void
rsoft_ids_put(struct rsoft_ids *ids, uint32_t id)
{
	ids_set(ids, ids->nb_free++, id);
}

/* Callers hold locks, which a thread cancelled in the system call would keep. */
static bool
draw(uint32_t *pool, size_t size)
{
	ssize_t n;
	int state;

	state = rsoft_cancel_disable();
	n = getrandom(pool, size, 0);
	rsoft_cancel_restore(state);
	return n == (ssize_t)size;
}

uint32_t
rsoft_random(void)
{
	/* One system call for many numbers, because applications may register millions of MRs. */
	static __thread uint32_t pool[64];
	static __thread unsigned int left;

	if (left == 0) {
		if (!draw(pool, sizeof(pool)))
			return (uint32_t)rte_rand();
		left = RTE_DIM(pool);
	}
	return pool[--left];
}
