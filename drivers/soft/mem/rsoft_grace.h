/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Grace periods: no access with a key continues after the key was invalidated.
 *
 * An lcore is inside, between rsoft_grace_enter() and rsoft_grace_leave(), while it executes
 * requests. Only then may it use the memory of a key, or a peer pointer. A thread that revokes a
 * key or a QP first stores the revocation, then waits until every lcore that was inside has left
 * (or passed a point where it holds nothing). An lcore between bursts is outside, and delays no
 * other thread.
 *
 * Invariant: if an lcore inside loads a key as VALID, the thread that invalidates this key
 * afterwards waits for the lcore. Each side stores, and then loads what the other side stores, with
 * a full fence in between:
 *
 *   the lcore:       store that it is inside; fence; load the key (or peer, counter, producers)
 *   the invalidator: store the key;           fence; load which lcores are inside
 *
 * If the lcore takes a lock after its store, and a locked instruction is a fence, the lock is the
 * fence. Either the lcore loads the new key, or the invalidator finds the lcore inside. The same
 * holds for the store that registers the lcore. rsoft_grace_start() also loads the number of
 * registered lcores: if there is only one, it does not wait, and does not use the token.
 *
 * Peers in other processes that access memory directly count as lcores (rsoft_grant.h).
 *
 * Tokens number the grace periods. An lcore inside has stored the token that it loaded when it held
 * nothing, so it delays only grace periods with later tokens. Each wait loads the tokens of all
 * lcores itself: the result of another wait is not valid for a later token.
 */

#ifndef RSOFT_GRACE_H
#define RSOFT_GRACE_H

#include <stdbool.h>

#include <rte_atomic.h>
#include <rte_lcore.h>

#include "../base/rsoft.h"

/*
 * A full fence after an atomic read-modify-write of the same thread; on x86 each locked instruction
 * is one.
 */
#ifdef RTE_ARCH_X86
#define RSOFT_FENCE_AFTER_ATOMIC() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#else
#define RSOFT_FENCE_AFTER_ATOMIC() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif

/* Look up the domain of this process, or create it. */
int rsoft_domain_get(void);

/* The lcore id that the calling thread registered with; LCORE_ID_ANY: not registered. */
extern __thread unsigned int rsoft_grace_lcore;

/*
 * Whether the peers of other processes that were inside before the grace period of a token have all
 * left. Set before rsoft_grace::nb_peers.
 */
extern bool (*rsoft_grace_peers_are_over)(uint64_t token);

/* Register the calling thread; slow path of rsoft_grace_enter(). */
void rsoft_grace_register(unsigned int lcore);

/* Wait until no lcore uses objects that were revoked before the call. Not from inside. */
void rsoft_grace_wait(void);

/* Whether the grace period of a token is over. */
bool rsoft_grace_check(uint64_t token);

/* Store that the thread of an lcore is inside; the caller must execute a full fence afterwards. */
static inline void
rsoft_grace_announce(unsigned int lcore)
{
	struct rsoft_grace *grace = &rsoft_domain->grace;

	if (unlikely(rsoft_grace_lcore != lcore))
		rsoft_grace_register(lcore);
	/* Release: a wait that loads this value may not have seen that the previous section has
	 * ended. */
	__atomic_store_n(&grace->lcore[lcore].token,
			__atomic_load_n(&grace->token, __ATOMIC_RELAXED), __ATOMIC_RELEASE);
}

/* Enter the section; called by the thread of that lcore. */
static inline void
rsoft_grace_enter_lcore(unsigned int lcore)
{
	rsoft_grace_announce(lcore);
	rte_smp_mb();
}

/* Enter the section and take a lock, which is an atomic read-modify-write. */
static inline void
rsoft_grace_enter_lock(unsigned int lcore, rte_ticketlock_t *lock)
{
	rsoft_grace_announce(lcore);
	/* Otherwise the compiler might move the store after a relaxed read-modify-write. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	rte_ticketlock_lock(lock);
	RSOFT_FENCE_AFTER_ATOMIC();
}

/* Enter the section. Returns the lcore, or LCORE_ID_ANY for a thread not registered with EAL. */
static inline unsigned int
rsoft_grace_enter(void)
{
	unsigned int lcore = rte_lcore_id();

	if (unlikely(lcore == LCORE_ID_ANY))
		return LCORE_ID_ANY;
	rsoft_grace_enter_lcore(lcore);
	return lcore;
}

static inline void
rsoft_grace_leave(unsigned int lcore)
{
	__atomic_store_n(&rsoft_domain->grace.lcore[lcore].token, 0, __ATOMIC_RELEASE);
}

/*
 * Pass a point inside at which the lcore holds nothing: previous accesses have ended, and keys will
 * be loaded again.
 */
static inline void
rsoft_grace_quiescent(unsigned int lcore)
{
	struct rsoft_grace *grace = &rsoft_domain->grace;
	uint64_t token = __atomic_load_n(&grace->token, __ATOMIC_ACQUIRE);

	if (token != __atomic_load_n(&grace->lcore[lcore].token, __ATOMIC_RELAXED))
		__atomic_store_n(&grace->lcore[lcore].token, token, __ATOMIC_RELEASE);
}

/*
 * Start a grace period from inside, after an atomic read-modify-write of this thread invalidated a
 * key. The caller must not hold anything reached by a key or peer. Return true if the grace period
 * is already over.
 */
static inline bool
rsoft_grace_start(unsigned int lcore, uint64_t *token)
{
	struct rsoft_grace *grace = &rsoft_domain->grace;

	RSOFT_FENCE_AFTER_ATOMIC();
	if (__atomic_load_n(&grace->nb_lcores, __ATOMIC_RELAXED) == 1)
		return true;
	*token = __atomic_add_fetch(&grace->token, 1, __ATOMIC_RELEASE);
	rsoft_grace_quiescent(lcore);
	return rsoft_grace_check(*token);
}

/* Check again whether the grace period is over; from inside, holding nothing. */
static inline bool
rsoft_grace_over(unsigned int lcore, uint64_t token)
{
	rsoft_grace_quiescent(lcore);
	return rsoft_grace_check(token);
}

#endif /* RSOFT_GRACE_H */
