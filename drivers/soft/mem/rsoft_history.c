/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The history of keys; see rsoft_history.h. */

#include <errno.h>
#include <stdio.h>

#include <rte_cycles.h>
#include <rte_lcore.h>
#include <rte_malloc.h>

#include "rsoft_history.h"

int
rsoft_history_init(struct rsoft_dev *dev, int socket_id)
{
	size_t size = (size_t)dev->nb_keys * sizeof(*dev->history);

	if (dev->args.sanitize == 0)
		return 0;
	dev->history = rte_zmalloc_socket("rsoft_history", size, RTE_CACHE_LINE_SIZE, socket_id);
	if (dev->history == NULL) {
		RSOFT_LOG(ERR, "sanitize=1: no memory: %zu bytes for %u keys", size, dev->nb_keys);
		return -ENOMEM;
	}
	return 0;
}

void
rsoft_history_fini(struct rsoft_dev *dev)
{
	rte_free(dev->history);
	dev->history = NULL;
}

void
rsoft_history_store(struct rsoft_dev *dev, const struct rsoft_key *key, uint32_t rkey,
		enum rsoft_history_event event, const struct rmem_qp *qp,
		const struct rmem_send_wr *wr)
{
	struct rsoft_history *history = &dev->history[key - dev->keys];
	struct rsoft_history_note *note = event == RSOFT_HISTORY_REG || event == RSOFT_HISTORY_WR
			? &history->made
			: &history->ended;
	uint64_t lcore = rte_lcore_id() & 0xffff;

	__atomic_store_n(&note->tsc, rte_rdtsc(), __ATOMIC_RELAXED);
	__atomic_store_n(&note->info, rkey | lcore << 32 | (uint64_t)event << 48, __ATOMIC_RELAXED);
	__atomic_store_n(&note->qp_num,
			(qp != NULL ? qp->qp_num : 0) | (wr != NULL ? RSOFT_HISTORY_HAS_WR : 0),
			__ATOMIC_RELAXED);
	__atomic_store_n(&note->wr_id, wr != NULL ? wr->wr_id : 0, __ATOMIC_RELAXED);
	if (event == RSOFT_HISTORY_WR && key->is_window)
		__atomic_store_n(&history->below, key->mr->mr.rkey, __ATOMIC_RELAXED);
}

void
rsoft_history_name(struct rsoft_dev *dev, const struct rmem_mr *mr, const struct rsoft_key *key)
{
	if (dev->history == NULL)
		return;
	rte_ticketlock_lock(&dev->lock);
	snprintf(dev->history[key - dev->keys].name, RMEM_NAME_SIZE, "%s", rmem_mr_name(mr));
	rte_ticketlock_unlock(&dev->lock);
}
