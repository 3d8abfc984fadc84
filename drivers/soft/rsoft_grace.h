/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * No access outlives its invalidation.
 *
 * An lcore is between rsoft_grace_enter() and rsoft_grace_leave() while it executes
 * requests, and only then may it use what a key or a peer pointer led it to. Who takes a
 * key or a QP away stores that first, then waits until every lcore that was inside has left
 * (or passed a point where it holds nothing). Between bursts an lcore is outside, so that
 * one which does other work keeps nobody waiting.
 *
 * The full fences that order "store, then look who is inside" against "go inside, then
 * look at the key" are in rte_rcu_qsbr_thread_online() for the lcore, and in the
 * compare-and-swap of the key or rte_rcu_qsbr_start() for the invalidator. With one lcore
 * registered there is nobody to wait for, and the token is not touched.
 */

#ifndef RSOFT_GRACE_H
#define RSOFT_GRACE_H

#include <stdbool.h>

#include <rte_lcore.h>
#include <rte_rcu_qsbr.h>

#include "rsoft.h"

/* Make the domain of this process known, creating it when it is the first. */
int rsoft_domain_get(void);

/* Register the calling lcore; slow path of enter. */
void rsoft_grace_register(unsigned int lcore);

/* Wait until no lcore holds what was taken away before the call. Not from inside. */
void rsoft_grace_wait(void);

/* Go inside. Returns the lcore, or LCORE_ID_ANY for a thread that EAL does not know. */
static inline unsigned int
rsoft_grace_enter(void)
{
	unsigned int lcore = rte_lcore_id();

	if (unlikely(lcore >= RTE_MAX_LCORE))
		return LCORE_ID_ANY;
	if (unlikely(!rsoft_domain->is_registered[lcore]))
		rsoft_grace_register(lcore);
	rte_rcu_qsbr_thread_online(rsoft_domain->qsbr, lcore);
	return lcore;
}

static inline void
rsoft_grace_leave(unsigned int lcore)
{
	rte_rcu_qsbr_thread_offline(rsoft_domain->qsbr, lcore);
}

/*
 * Start a grace period from inside, after a key was taken away by a full-fence atomic.
 * The caller holds nothing that a key or peer led it to. Returns true when it is over.
 */
static inline bool
rsoft_grace_start(unsigned int lcore, uint64_t *token)
{
	struct rte_rcu_qsbr *v = rsoft_domain->qsbr;

	if (__atomic_load_n(&v->num_threads, __ATOMIC_SEQ_CST) == 1)
		return true;
	*token = rte_rcu_qsbr_start(v);
	rte_rcu_qsbr_quiescent(v, lcore);
	return rte_rcu_qsbr_check(v, *token, false) == 1;
}

/* Ask again, from inside, holding nothing. */
static inline bool
rsoft_grace_over(unsigned int lcore, uint64_t token)
{
	rte_rcu_qsbr_quiescent(rsoft_domain->qsbr, lcore);
	return rte_rcu_qsbr_check(rsoft_domain->qsbr, token, false) == 1;
}

#endif /* RSOFT_GRACE_H */
