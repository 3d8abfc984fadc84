/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Counters; see rsoft_stats.h. struct rmem_dev_stats is accessed as an array of 64-bit counters. */

#include <errno.h>
#include <string.h>

#include "mem/rsoft_grace.h"
#include "queue/rsoft_count.h"
#include "queue/rsoft_inline.h"
#include "rsoft_stats.h"
#include "wire/rwire.h"

#define RSOFT_NB_STATS (offsetof(struct rmem_dev_stats, reserved) / sizeof(uint64_t))

static_assert(RSOFT_NB_STATS == 47, "all of struct rmem_dev_stats are 64-bit counters");

void
rsoft_stats_add(struct rmem_dev_stats *sum, const struct rsoft_qp *qp)
{
	const uint64_t *from = (const uint64_t *)&qp->stats;
	uint64_t *to = (uint64_t *)sum;
	size_t i;

	for (i = 0; i < RSOFT_NB_STATS; i++)
		to[i] += __atomic_load_n(&from[i], __ATOMIC_RELAXED);
	sum->inline_recvs += __atomic_load_n(&qp->rq.inlined, __ATOMIC_RELAXED);
	sum->bad_rkeys += __atomic_load_n(&qp->bad_rkeys, __ATOMIC_RELAXED);
	sum->mem_faults += __atomic_load_n(&qp->rq.faults, __ATOMIC_RELAXED);
	sum->recv_wrs += __atomic_load_n(&qp->rq.consumed, __ATOMIC_RELAXED);
}

/* Sum of all QPs since the device was created. Under the domain's lock. */
static void
stats_sum(const struct rsoft_dev *dev, struct rmem_dev_stats *sum)
{
	const struct rsoft_qp *qp;
	uint32_t i;

	*sum = dev->stats_destroyed;
	sum->odp_page_faults = __atomic_load_n(&dev->odp_stats.page_faults, __ATOMIC_RELAXED);
	sum->odp_invalidations = __atomic_load_n(&dev->odp_stats.invalidations, __ATOMIC_RELAXED);
	sum->odp_prefetches = __atomic_load_n(&dev->odp_stats.prefetches, __ATOMIC_RELAXED);
	sum->odp_failed_faults = __atomic_load_n(&dev->odp_stats.failed_faults, __ATOMIC_RELAXED);
	for (i = 0; i <= dev->qp_mask; i++) {
		if (dev->qps[i] != NULL)
			rsoft_stats_add(sum, dev->qps[i]);
	}
	/* QPs that have left the table and are not among the destroyed ones yet. */
	LIST_FOREACH(qp, &dev->dying_qps, dying) {
		if (dev->qps[qp->qp.qp_num & dev->qp_mask] != qp)
			rsoft_stats_add(sum, qp);
	}
	if (dev->wire != NULL)
		rwire_stats_get(dev->wire, sum);
}

int
rsoft_stats_get(struct rmem_dev *base, struct rmem_dev_stats *stats)
{
	struct rsoft_dev *dev = rmem_dev_drv(base)->priv;
	const uint64_t *from = (const uint64_t *)&dev->stats_base;
	uint64_t *to = (uint64_t *)stats;
	size_t i;

	rsoft_lock(&rsoft_domain->lock);
	stats_sum(dev, stats);
	for (i = 0; i < RSOFT_NB_STATS; i++)
		to[i] -= from[i];
	/* The number of current pages is not reset. */
	stats->odp_pages = (uint64_t)__atomic_load_n(&dev->odp_stats.pages, __ATOMIC_RELAXED);
	rte_ticketlock_unlock(&rsoft_domain->lock);
	return 0;
}

int
rsoft_stats_reset(struct rmem_dev *base)
{
	struct rsoft_dev *dev = rmem_dev_drv(base)->priv;

	rsoft_lock(&rsoft_domain->lock);
	stats_sum(dev, &dev->stats_base);
	rte_ticketlock_unlock(&rsoft_domain->lock);
	return 0;
}

int
rsoft_qp_stats_get(struct rmem_qp *qp, struct rmem_dev_stats *stats)
{
	rsoft_stats_add(stats, (const struct rsoft_qp *)qp);
	return 0;
}

int
rsoft_qp_attach_counter(struct rmem_qp *base, struct rmem_counter *counter, uint32_t counts)
{
	struct rsoft_qp *qp = (struct rsoft_qp *)base;
	unsigned int i;
	uint32_t state;

	rte_ticketlock_lock(&qp->ctl_lock);
	state = __atomic_load_n(&qp->state, __ATOMIC_ACQUIRE);
	if (state != RMEM_QPS_RESET && state != RMEM_QPS_INIT) {
		rte_ticketlock_unlock(&qp->ctl_lock);
		RSOFT_LOG(ERR, "QP 0x%06x%s: no counter attached: no longer in RESET or INIT",
				base->qp_num, RSOFT_QP_NAME(base));
		return -EBUSY;
	}
	for (i = 0; i < RMEM_QP_NB_COUNTS; i++) {
		if ((counts & UINT32_C(1) << i) != 0)
			qp->counters[i] = counter;
	}
	qp->counts |= (uint8_t)counts;
	if ((counts & RSOFT_COUNT_REMOTE) != 0)
		__atomic_fetch_or(&qp->access, RSOFT_QP_COUNTED, __ATOMIC_RELAXED);
	/* The memory of a counted receive has its data. */
	if ((counts & RMEM_QP_COUNT_RECV) != 0 && qp->inline_recv != RSOFT_INLINE_NONE) {
		rsoft_grace_wait(); /* as qp_quiesce() */
		qp->inline_recv = RSOFT_INLINE_NONE;
	}
	rte_ticketlock_unlock(&qp->ctl_lock);
	return 0;
}
