/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Locked memory (pin=lock): the locked pages of the process, and the number of MRs that lock them.
 *
 * The kernel does not count locks: one munlock() undoes any number of mlock(). So the pages locked
 * by MRs of all software devices are stored as segments, which neither overlap nor share a page,
 * each with the number of MRs that lock it.
 * Invariant: every lock starts and ends at the edge of a segment, so removing it needs no split and
 * no memory. Pages that the program locked itself are marked, and remain locked.
 * Invariant: a mutex protects the state, also during mlock(), because a thread that finds a page
 * counted relies on its lock. The state is in the heap: locks belong to the process.
 */

#ifndef RSOFT_MLOCK_H
#define RSOFT_MLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct rsoft_mlock_stats {
	uint64_t nb_bytes; /* locked by all devices */
	uint64_t nb_runs;  /* separate ranges of them */
	uint64_t max_runs; /* limit of the ranges */
	uint64_t used;     /* bytes locked by the process */
};

/*
 * Lock the populated pages of an MR with this access, except hugepages of EAL. 0, or a positive
 * errno with no change: EMFILE for too many separate ranges, or the errno of mlock2().
 */
int rsoft_mlock(uint32_t access, const struct iovec *iov, uint32_t nb_iov);

/* Undo rsoft_mlock() for the same ranges; false if part of the memory is no longer mapped. */
bool rsoft_munlock(const struct iovec *iov, uint32_t nb_iov);

void rsoft_mlock_stats_get(struct rsoft_mlock_stats *stats);

/*
 * Whether a range consists of hugepages of EAL, which are never swapped. The result does not depend
 * on free pages.
 */
bool rsoft_mlock_is_huge(const struct iovec *range);

#endif /* RSOFT_MLOCK_H */
