/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The environment below class and drivers, without EAL: memory, threads, clock and log.
 *
 * Inside: DPDK's functions that class and soft call, by libc and pthreads.
 * Callers: dropin, which links class and soft with it instead of EAL.
 * Not known here: dropin, verbs objects and rdma_cm.
 *
 * Class and drivers are written for DPDK. They call few of its functions, and the inline functions
 * of its headers. The files of this directory implement these functions with libc and pthreads,
 * with the names and contracts of DPDK's headers. Linked with them (librmem_plain), the objects of
 * librmem, unchanged, need no library of DPDK and start no EAL: they pin no thread, and use no
 * hugepage, file or descriptor. A program of DPDK uses librmem.
 *
 * A library linked with librmem_plain must not export these functions, since the process may also
 * contain DPDK.
 *
 * Threads. rte_lcore_id() of a thread is LCORE_ID_ANY, or the id that rte_thread_register()
 * assigned. `soft` has an entry for each id, in which the thread stores whether it executes
 * requests.
 *
 * - An id in use belongs to one thread. Only this thread stores in its entries.
 * - An id is freed when its thread unregisters or ends, outside of a post or poll. A free id
 *   therefore delays no grace period.
 * - Freeing is a release, assignment an acquire: the next thread of an id sees all stores of the
 *   previous one.
 * - A thread that posts in its last destructors gets an id again, which is freed in the next round
 *   of destructors. After the last round the id remains in use, without a thread.
 * - The lowest free id is assigned: the work of a grace period depends on the number of threads at
 *   a time, not on the number of threads ever registered.
 *
 * Posts and polls are not async-signal-safe, as those of libibverbs.
 */

#ifndef RMEM_ENV_H
#define RMEM_ENV_H

/* Threads that are registered at a time. */
#define RMEM_ENV_MAX_THREADS 4096

/* Variables that a child of fork() keeps; the drop-in resets others (dropin/ribv_env.c). */
#define RMEM_ENV_KEPT __attribute__((section("rmem_kept")))

/* In a thread that calls fork(): before, after all other locks are taken; and after. */
void rmem_env_fork_prepare(void);
void rmem_env_fork_parent(void);

/*
 * In a child of fork(), before its data is reset: close the ports of devices, which the child must
 * not keep open when its parent ends. Locks are not taken.
 */
void rmem_env_forked(void);

/*
 * The main thread ends by pthread_exit(). When all other threads of the program have ended, end the
 * process, as libc would do without control threads.
 */
void rmem_env_main_ended(void);

#endif /* RMEM_ENV_H */
