/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Control threads, for the class and for the drivers that are part of the library. Not installed.
 */

#ifndef RMEM_THREAD_PRIV_H
#define RMEM_THREAD_PRIV_H

#include <pthread.h>

/** A control thread. It stays where it is until the thread was joined. */
struct rmem_thread {
	void (*run)(void); /**< What it does. */
	pthread_t id;      /**< To join it, once it was started. */
};

/** Start thread->run() on a processor for control threads; not 0: it was not started. */
int rmem_thread_start(struct rmem_thread *thread, const char *name);

#endif /* RMEM_THREAD_PRIV_H */
