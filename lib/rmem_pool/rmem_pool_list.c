/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * The pools and the registered mempools of the process.
 *
 * Invariant: a pool or registration in a list is complete. This file calls no other file of the
 * library, so that audit and telemetry, which every program links, need nothing else.
 */

#include <pthread.h>
#include <stdbool.h>

#include "rmem_pool_priv.h"

static pthread_mutex_t pools_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rmem_pool_priv *pools;

static pthread_mutex_t regs_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rmem_mempool_priv *regs;

void
rmem_pool_list_add(struct rmem_pool *pool)
{
	pthread_mutex_lock(&pools_lock);
	rmem_pool_priv(pool)->next = pools;
	pools = rmem_pool_priv(pool);
	pthread_mutex_unlock(&pools_lock);
}

void
rmem_pool_list_del(struct rmem_pool *pool)
{
	struct rmem_pool_priv **at = &pools;

	pthread_mutex_lock(&pools_lock);
	while (*at != NULL && &(*at)->pool != pool)
		at = &(*at)->next;
	if (*at != NULL)
		*at = (*at)->next;
	pthread_mutex_unlock(&pools_lock);
}

/* A search for a mempool. */
struct search {
	const struct rte_mempool *mp;
	bool is_found;
};

static void
compare(struct rte_mempool *mp, void *arg)
{
	struct search *search = arg;

	search->is_found |= mp == search->mp;
}

bool
rmem_mempool_exists(const struct rte_mempool *mp)
{
	struct search search = {.mp = mp};

	rte_mempool_walk(compare, &search);
	return search.is_found;
}

int
rmem_pool_visit(int (*func)(struct rmem_pool *pool, void *arg), void *arg)
{
	struct rmem_pool_priv *pool;
	int ret = 0;

	pthread_mutex_lock(&pools_lock);
	for (pool = pools; pool != NULL && ret == 0; pool = pool->next) {
		if (rmem_mempool_exists(pool->pool.mp))
			ret = func(&pool->pool, arg);
	}
	pthread_mutex_unlock(&pools_lock);
	return ret;
}

void
rmem_pool_list_add_mempool(struct rmem_mempool *reg)
{
	pthread_mutex_lock(&regs_lock);
	rmem_mempool_priv(reg)->next = regs;
	regs = rmem_mempool_priv(reg);
	pthread_mutex_unlock(&regs_lock);
}

void
rmem_pool_list_del_mempool(struct rmem_mempool *reg)
{
	struct rmem_mempool_priv **at = &regs;

	pthread_mutex_lock(&regs_lock);
	while (&(*at)->reg != reg)
		at = &(*at)->next;
	*at = (*at)->next;
	pthread_mutex_unlock(&regs_lock);
}

int
rmem_mempool_visit(int (*func)(struct rmem_mempool *reg, void *arg), void *arg)
{
	struct rmem_mempool_priv *reg;
	int ret = 0;

	pthread_mutex_lock(&regs_lock);
	for (reg = regs; reg != NULL && ret == 0; reg = reg->next) {
		if (rmem_mempool_exists(reg->reg.mp))
			ret = func(&reg->reg, arg);
	}
	pthread_mutex_unlock(&regs_lock);
	return ret;
}

unsigned int
rmem_mempool_nb_regs(const struct rte_mempool *mp)
{
	const struct rmem_mempool_priv *reg;
	unsigned int nb = 0;

	pthread_mutex_lock(&regs_lock);
	for (reg = regs; reg != NULL; reg = reg->next)
		nb += reg->reg.mp == mp;
	pthread_mutex_unlock(&regs_lock);
	return nb;
}
