/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Counters. Requests are counted when their completion is polled. */

#include <string.h>

#include "rverbs.h"

static void
stats_add(struct rverbs_done_stats *sum, const struct rverbs_done_stats *stats)
{
	sum->bytes_failed += stats->bytes_failed;
	sum->errors += stats->errors;
	sum->flushed += stats->flushed;
	sum->invalidates += stats->invalidates;
	sum->mw_binds += stats->mw_binds;
	sum->reg_mrs += stats->reg_mrs;
	sum->umrs += stats->umrs;
	sum->local_prot_errors += stats->local_prot_errors;
	sum->rem_access_errors += stats->rem_access_errors;
	sum->recv_wrs += stats->recv_wrs;
	sum->send_wrs += stats->send_wrs;
}

void
rverbs_stats_keep(struct rverbs_dev *dev, const struct rverbs_qp *qp)
{
	stats_add(&dev->destroyed, &qp->send_done);
	stats_add(&dev->destroyed, &qp->recv_done);
	dev->destroyed_bytes += qp->posted.bytes_posted;
}

static void
stats_fill(struct rmem_dev_stats *stats, const struct rverbs_done_stats *sum, uint64_t bytes)
{
	stats->send_wrs = sum->send_wrs;
	stats->recv_wrs = sum->recv_wrs;
	stats->bytes = bytes - sum->bytes_failed;
	stats->errors = sum->errors;
	stats->flushed = sum->flushed;
	stats->invalidates = sum->invalidates;
	stats->mw_binds = sum->mw_binds;
	stats->reg_mrs = sum->reg_mrs;
	stats->umrs = sum->umrs;
	stats->local_prot_errors = sum->local_prot_errors;
	stats->rem_access_errors = sum->rem_access_errors;
}

int
rverbs_qp_stats_get(struct rmem_qp *base, struct rmem_dev_stats *stats)
{
	const struct rverbs_qp *qp = (const struct rverbs_qp *)base;
	struct rverbs_done_stats sum = qp->send_done;

	stats_add(&sum, &qp->recv_done);
	stats_fill(stats, &sum, qp->posted.bytes_posted);
	return 0;
}

/* Sum since the device was created. Under dev->lock. */
static void
stats_sum(const struct rverbs_dev *dev, struct rmem_dev_stats *stats)
{
	struct rverbs_done_stats sum = dev->destroyed;
	uint64_t bytes = dev->destroyed_bytes;
	uint32_t i;

	for (i = 0; i < RVERBS_MAX_QP; i++) {
		const struct rverbs_qp *qp = dev->slots[i].qp;

		if (qp == NULL)
			continue;
		stats_add(&sum, &qp->send_done);
		stats_add(&sum, &qp->recv_done);
		bytes += qp->posted.bytes_posted;
	}
	for (i = 0; i < RVERBS_MAX_SRQ; i++) {
		if (dev->srqs[i] != NULL)
			sum.recv_wrs += dev->srqs[i]->recv_wrs;
	}
	memset(stats, 0, sizeof(*stats));
	stats_fill(stats, &sum, bytes);
}

int
rverbs_stats_get(struct rmem_dev *base, struct rmem_dev_stats *stats)
{
	struct rverbs_dev *dev = rmem_dev_drv(base)->priv;

	rte_ticketlock_lock(&dev->lock);
	stats_sum(dev, stats);
	stats->send_wrs -= dev->base.send_wrs;
	stats->recv_wrs -= dev->base.recv_wrs;
	stats->bytes -= dev->base.bytes;
	stats->errors -= dev->base.errors;
	stats->flushed -= dev->base.flushed;
	stats->invalidates -= dev->base.invalidates;
	stats->mw_binds -= dev->base.mw_binds;
	stats->reg_mrs -= dev->base.reg_mrs;
	stats->umrs -= dev->base.umrs;
	stats->local_prot_errors -= dev->base.local_prot_errors;
	stats->rem_access_errors -= dev->base.rem_access_errors;
	rte_ticketlock_unlock(&dev->lock);
	return 0;
}

int
rverbs_stats_reset(struct rmem_dev *base)
{
	struct rverbs_dev *dev = rmem_dev_drv(base)->priv;

	rte_ticketlock_lock(&dev->lock);
	stats_sum(dev, &dev->base);
	rte_ticketlock_unlock(&dev->lock);
	return 0;
}
