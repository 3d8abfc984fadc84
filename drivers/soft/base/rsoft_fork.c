/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The lock of descriptors and fork(); see rsoft_fork.h. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP */
#endif
#include <pthread.h>

#include "rsoft_fork.h"

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void
rsoft_fork_lock(void)
{
	pthread_mutex_lock(&lock);
}

void
rsoft_fork_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void
rsoft_fork_unlock_child(void)
{
	lock = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
}
