/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Windows of a device with the quirk, by the index of their key; see rverbs_mwq.h. */

#ifndef RVERBS_MWQ_TABLE_H
#define RVERBS_MWQ_TABLE_H

#include "rverbs_mw_op.h"

#define RVERBS_MWQ_PAGES 4096u
#define RVERBS_MWQ_SLOTS 4096u

TAILQ_HEAD(rverbs_mwq_list, rverbs_mw);

struct rverbs_mwq_table {
	rte_ticketlock_t lock;
	struct rverbs_mw ***pages; /* NULL: no device */
	struct rverbs_mwq_list list;
};

extern struct rverbs_mwq_table rverbs_mwq_tables[RMEM_MAX_DEVS];

int rverbs_mwq_table_open(uint16_t dev_id);
void rverbs_mwq_table_close(uint16_t dev_id);

static inline void
rverbs_mwq_lock(uint16_t dev_id)
{
	rte_ticketlock_lock(&rverbs_mwq_tables[dev_id].lock);
}

static inline void
rverbs_mwq_unlock(uint16_t dev_id)
{
	rte_ticketlock_unlock(&rverbs_mwq_tables[dev_id].lock);
}

/*
 * A thread that processes requests keeps the lock between them, because most refer to windows of
 * one device. *locked is that device, or -1; at most one lock is held.
 */
static inline void
rverbs_mwq_lock_next(int *locked, uint16_t dev_id)
{
	if (likely(*locked == dev_id))
		return;
	if (*locked >= 0)
		rverbs_mwq_unlock((uint16_t)*locked);
	rverbs_mwq_lock(dev_id);
	*locked = dev_id;
}

static inline void
rverbs_mwq_unlock_last(int locked)
{
	if (locked >= 0)
		rverbs_mwq_unlock((uint16_t)locked);
}

/* With the lock held. */
int rverbs_mwq_insert(struct rverbs_mw *mw);
void rverbs_mwq_remove(struct rverbs_mw *mw);
struct rverbs_mw *rverbs_mwq_first(uint16_t dev_id);

static inline struct rverbs_mw *
rverbs_mwq_find(uint16_t dev_id, uint32_t key)
{
	struct rverbs_mw ***pages = rverbs_mwq_tables[dev_id].pages;
	struct rverbs_mw **page;

	if (pages == NULL)
		return NULL;
	page = pages[(key >> 8) / RVERBS_MWQ_SLOTS];
	return page != NULL ? page[(key >> 8) % RVERBS_MWQ_SLOTS] : NULL;
}

#endif /* RVERBS_MWQ_TABLE_H */
