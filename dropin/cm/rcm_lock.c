/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The lock of all objects of the folder, and the clock of their timers.
 *
 * Invariant: when the lock is released, each channel's eventfd matches its queue.
 * Invariant: the lock is not recursive, and it is taken before locks of the class and driver. A
 * thread that may hold one of these never waits for it (rcm_agent_wake()).
 */

#include <pthread.h>
#include <time.h>

#include "rcm.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t nb_locked;

uint64_t
rcm_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void
rcm_lock(void)
{
	pthread_mutex_lock(&lock);
	nb_locked++;
}

bool
rcm_trylock(void)
{
	if (pthread_mutex_trylock(&lock) != 0)
		return false;
	nb_locked++;
	return true;
}

void
rcm_unlock(void)
{
	/* Signal last: a thread that this wakes needs the lock. */
	rcm_channels_signal();
	pthread_mutex_unlock(&lock);
}

void
rcm_wait(pthread_cond_t *cond, uint64_t ns)
{
	uint64_t at_ns = rcm_now() + ns;
	const struct timespec at = {.tv_sec = (time_t)(at_ns / 1000000000),
			.tv_nsec = (long)(at_ns % 1000000000)};

	rcm_channels_signal();
	pthread_cond_timedwait(cond, &lock, &at);
	nb_locked++;
}

uint64_t
rcm_nb_locked(void)
{
	return nb_locked;
}
