/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The environment below class and drivers, without EAL: memory, threads, clock and log.
 *
 * Class and drivers are written for DPDK. They call few of its functions, and the inline functions
 * of its headers. The files of this directory define these functions by libc and pthreads, under
 * the names and with the contracts of DPDK's headers. The objects of librmem, unchanged, linked
 * with them (librmem_plain) need no library of DPDK, start no EAL and leave a program as it is: no
 * thread is pinned, no hugepage, file or descriptor is taken. A program of DPDK uses librmem.
 *
 * What is linked with librmem_plain must export none of these functions: in the same process may
 * be a DPDK with its own.
 *
 * Threads. rte_lcore_id() of a thread is LCORE_ID_ANY, or an id that rte_thread_register() took.
 * `soft` has an entry for each id, in which the thread stores whether it executes requests.
 *
 * - An id in use belongs to one thread, which alone stores in its entries.
 * - An id is returned when its thread unregisters or ends, outside of a post or poll. So its
 *   entries are those of a thread that executes nothing, and delay no grace period: neither while
 *   the id is free, nor if it is never taken again.
 * - Returning is a release and taking an acquire: the next thread of an id continues after the
 *   stores of the last one.
 * - A thread that posts in its last destructors takes an id once more, and returns it in the next
 *   round of destructors. After the last round the id remains in use, without a thread.
 * - The lowest free id is taken: the work of a grace period depends on the number of threads at a
 *   time, not on how many there ever were.
 *
 * Posts and polls are not async-signal-safe, as those of libibverbs.
 */

#ifndef RMEM_ENV_H
#define RMEM_ENV_H

/* Threads that are registered at a time. */
#define RMEM_ENV_MAX_THREADS 4096

/* Variables that a child of fork() keeps; the drop-in resets others (dropin/ribv_env.c). */
#define RMEM_ENV_KEPT __attribute__((section("rmem_kept")))

/*
 * In a child of fork(), before its data is reset: close the ports of devices, which the child must
 * not keep open when its parent ends. Locks are not taken.
 */
void rmem_env_forked(void);

#endif /* RMEM_ENV_H */
