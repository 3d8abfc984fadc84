/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Pinned memory: the locked pages of the process, and the number of MRs that pin them.
 *
 * The kernel does not count locks: one munlock() ends any number of mlock(). So the pages that MRs
 * of all software devices pin are stored as segments, which neither overlap nor share a page, each
 * with the number of MRs that pin it. Invariant: every pin begins and ends at the edge of a
 * segment, so that its removal needs no split and no memory. Pages that the program had locked
 * before are marked, and remain locked.
 *
 * Locks belong to a process, and so does this state, in its heap. One mutex protects it, also
 * during mlock(), since a thread that finds a page counted relies on its lock.
 */

#ifndef RSOFT_PIN_H
#define RSOFT_PIN_H

#include <stdio.h>
#include <sys/uio.h>

#include "rsoft.h"

/*
 * Pin the populated pages of an MR with this access, unless pin=off; *pin is 0 when they are not
 * pinned. -ENOMEM and a log line: with pin=require only.
 */
int rsoft_pin(struct rsoft_dev *dev, uint32_t access, const struct iovec *iov, uint32_t nb_iov,
		uint8_t *pin);

/* Undo rsoft_pin() for the same ranges; -EFAULT if part of the memory is no longer mapped. */
int rsoft_unpin(uint8_t pin, const struct iovec *iov, uint32_t nb_iov);

/* Print the memory pinned by this process, and its limit. */
void rsoft_pin_dump(const struct rsoft_dev *dev, FILE *f);

#endif /* RSOFT_PIN_H */
