/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Descriptors of a process that calls fork().
 *
 * In a verbs program, a child of fork() closes the connections of its parent, which it finds in
 * their lists (env/rmem_env_fork.c). Otherwise they would end only with the child.
 *
 * Invariant: without the lock, each descriptor of a connection is in a list or field that the child
 * visits, and the lists are consistent. Written by the threads of the parent, in sections: one
 * creates a descriptor and lists it, another one unlists and closes it, or moves it. Read by the
 * child, which begins between two sections, because the thread that calls fork() holds the lock.
 *
 * A section takes no lock that a thread may hold around a section, and does not wait. It logs only
 * if no memory or descriptor is left. It may contain others.
 */

#ifndef RSOFT_FORK_H
#define RSOFT_FORK_H

#include "rsoft_lock.h"

/* For handlers of pthread_atfork(): in the thread that calls fork(), also afterwards. */
void rsoft_fork_lock(void);
void rsoft_fork_unlock(void);
/* In the child, whose thread does not own the lock of its parent. */
void rsoft_fork_unlock_child(void);

/* Begin a section, in which the thread is not cancelled. Return the argument of the end. */
static inline int
rsoft_fork_begin(void)
{
	int state = rsoft_cancel_disable();

	rsoft_fork_lock();
	return state;
}

static inline void
rsoft_fork_end(int state)
{
	rsoft_fork_unlock();
	rsoft_cancel_restore(state);
}

#endif /* RSOFT_FORK_H */
