/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * No access outlives its invalidation.
 *
 * An lcore is between rsoft_grace_enter() and rsoft_grace_leave() while it executes
 * requests, and only then may it use the memory of a key or a peer pointer. A thread that revokes a
 * key or a QP stores that first, then waits until every lcore that was inside has left
 * (or passed a point where it holds nothing). Between bursts an lcore is outside, so that
 * one which does other work delays no other thread.
 *
 * Invariant: an lcore that loads a key as VALID inside is waited for by the thread that invalidates
 * that key afterwards. Each side stores and then loads what the other stores, with a full fence in
 * between:
 *
 *   the lcore:       store that it is inside; fence; load the key (or peer, counter, producers)
 *   the invalidator: store the key;           fence; load which lcores are inside
 *
 * Either the lcore loads the new key, or the invalidator loads that the lcore is inside. The
 * fence of the lcore is in rte_rcu_qsbr_thread_online(), that of the invalidator here, since
 * rte_rcu_qsbr_start() only releases. rsoft_grace_start() also loads the number of registered
 * lcores after it: with one there is no wait, and the token is not used.
 */

#ifndef RSOFT_GRACE_H
#define RSOFT_GRACE_H

#include <stdbool.h>

#include <rte_lcore.h>
#include <rte_rcu_qsbr.h>

#include "rsoft.h"

/*
 * A full fence after an atomic read-modify-write of the same thread; on x86 each locked
 * instruction is one already.
 */
#ifdef RTE_ARCH_X86
#define RSOFT_FENCE_AFTER_ATOMIC() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#else
#define RSOFT_FENCE_AFTER_ATOMIC() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif

/* Make the domain of this process known, creating it when it is the first. */
int rsoft_domain_get(void);

/* The lcore that the calling thread is registered as; LCORE_ID_ANY: none yet. */
extern __thread unsigned int rsoft_grace_lcore;

/* Register the calling thread; slow path of enter. */
void rsoft_grace_register(unsigned int lcore);

/* Wait until no lcore uses objects revoked before the call. Not from inside. */
void rsoft_grace_wait(void);

/* Go inside; for the thread of that lcore. */
static inline void
rsoft_grace_enter_lcore(unsigned int lcore)
{
	if (unlikely(rsoft_grace_lcore != lcore))
		rsoft_grace_register(lcore);
	rte_rcu_qsbr_thread_online(rsoft_domain->qsbr, lcore);
}

/* Go inside. Returns the lcore, or LCORE_ID_ANY for a thread that EAL does not know. */
static inline unsigned int
rsoft_grace_enter(void)
{
	unsigned int lcore = rte_lcore_id();

	if (unlikely(lcore >= RTE_MAX_LCORE))
		return LCORE_ID_ANY;
	rsoft_grace_enter_lcore(lcore);
	return lcore;
}

static inline void
rsoft_grace_leave(unsigned int lcore)
{
	rte_rcu_qsbr_thread_offline(rsoft_domain->qsbr, lcore);
}

/*
 * Whether a grace period is over. One that another thread saw the end of is known by a relaxed
 * load: the fence orders what the caller does next after the accesses that ended.
 */
static inline bool
rsoft_grace_check(uint64_t token)
{
	if (rte_rcu_qsbr_check(rsoft_domain->qsbr, token, false) != 1)
		return false;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return true;
}

/*
 * Start a grace period from inside, after an atomic read-modify-write of this thread invalidated
 * a key. The caller holds nothing that a key or peer led it to. Returns true when it is over.
 */
static inline bool
rsoft_grace_start(unsigned int lcore, uint64_t *token)
{
	struct rte_rcu_qsbr *v = rsoft_domain->qsbr;

	RSOFT_FENCE_AFTER_ATOMIC();
	if (__atomic_load_n(&v->num_threads, __ATOMIC_SEQ_CST) == 1)
		return true;
	*token = rte_rcu_qsbr_start(v);
	rte_rcu_qsbr_quiescent(v, lcore);
	return rsoft_grace_check(*token);
}

/* Ask again, from inside, holding nothing. */
static inline bool
rsoft_grace_over(unsigned int lcore, uint64_t token)
{
	rte_rcu_qsbr_quiescent(rsoft_domain->qsbr, lcore);
	return rsoft_grace_check(token);
}

#endif /* RSOFT_GRACE_H */
