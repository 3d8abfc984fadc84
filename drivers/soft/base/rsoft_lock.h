/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Waiting for other threads when there may be more threads than processors. */

#ifndef RSOFT_LOCK_H
#define RSOFT_LOCK_H

#include <pthread.h>
#include <sched.h>

#include <rte_branch_prediction.h>
#include <rte_pause.h>
#include <rte_ticketlock.h>

/* Called in loops that wait for another thread, which may need this processor. */
static inline void
rsoft_relax(unsigned int *spins)
{
	if (++*spins % 256 == 0)
		sched_yield();
	rte_pause();
}

/*
 * Take a lock that all threads of a program use. rte_ticketlock_lock() is unsuitable: with more
 * threads than processors, each waiter would depend on the scheduler to run the thread whose turn
 * is next.
 */
static inline void
rsoft_lock(rte_ticketlock_t *lock)
{
	unsigned int spins = 0;

	while (unlikely(rte_ticketlock_trylock(lock) == 0))
		rsoft_relax(&spins);
}

/*
 * Disable the cancellation of the calling thread before a system call, in which a cancelled thread
 * would keep its locks. Return the state for rsoft_cancel_restore().
 */
static inline int
rsoft_cancel_disable(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

static inline void
rsoft_cancel_restore(int state)
{
	pthread_setcancelstate(state, NULL);
}

#endif /* RSOFT_LOCK_H */
