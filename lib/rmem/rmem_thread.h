/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Control threads, started with the call of this DPDK version.
 */

#ifndef RMEM_THREAD_H
#define RMEM_THREAD_H

#include <pthread.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A control thread. The struct must not move until the thread is joined. */
struct rmem_thread {
	void (*run)(void *arg); /**< Function of the thread. */
	void *arg;              /**< Argument of the function. */
	pthread_t id;           /**< For pthread_join(), after the start. */
	uint64_t reserved[1];   /**< Zero. */
};

/**
 * Start a control thread, on the processors of EAL's control threads.
 *
 * Control path. Safe to call from any thread.
 *
 * @param thread
 *   Thread, with its function and argument set.
 * @param name
 *   Name, at most 15 bytes.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EAGAIN: the system has no thread left.
 */
int rmem_thread_start(struct rmem_thread *thread, const char *name);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_THREAD_H */
