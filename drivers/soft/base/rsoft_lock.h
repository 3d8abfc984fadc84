/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Waiting for other threads, of which there may be more than processors. */

#ifndef RSOFT_LOCK_H
#define RSOFT_LOCK_H

#include <sched.h>

#include <rte_branch_prediction.h>
#include <rte_pause.h>
#include <rte_ticketlock.h>

/* In a loop that waits for another thread, which may need this processor. */
static inline void
rsoft_relax(unsigned int *spins)
{
	if (++*spins % 256 == 0)
		sched_yield();
	rte_pause();
}

/*
 * Lock what all threads of a program use. Not by rte_ticketlock_lock(): with more threads than
 * processors, each turn would wait until the scheduler runs the thread whose turn it is.
 */
static inline void
rsoft_lock(rte_ticketlock_t *lock)
{
	unsigned int spins = 0;

	while (unlikely(rte_ticketlock_trylock(lock) == 0))
		rsoft_relax(&spins);
}

#endif /* RSOFT_LOCK_H */
