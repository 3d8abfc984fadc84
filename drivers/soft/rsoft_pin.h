/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Pinned memory: which pages of the process are locked, and for how many MRs.
 *
 * The kernel counts no locks: one munlock() ends any number of mlock(). So the pages that MRs of
 * all software devices pin are kept as segments, which neither overlap nor share a page, each with
 * the number of MRs that pin it. Every live pin begins and ends at the edge of a segment, so that
 * taking one back never has to split, and can't fail for lack of memory. Pages that the program
 * had locked before are noted as its own, and left as they are.
 *
 * Locks are a process's own, and so is all of this: it lies in its heap, under one mutex, which is
 * held during mlock() too, since a thread that finds a page counted relies on the lock.
 */

#ifndef RSOFT_PIN_H
#define RSOFT_PIN_H

#include <stdio.h>
#include <sys/uio.h>

#include "rsoft.h"

/*
 * Pin what an MR of this access covers, whose pages were populated, if the device does that at
 * all; *pin is 0 when it is not pinned. -ENOMEM and a line: with pin=require only.
 */
int rsoft_pin(struct rsoft_dev *dev, uint32_t access, const struct iovec *iov, uint32_t nb_iov,
		uint8_t *pin);

/*
 * Undo rsoft_pin() for the same ranges; -EFAULT if part of the memory is not
 * mapped any more.
 */
int rsoft_unpin(uint8_t pin, const struct iovec *iov, uint32_t nb_iov);

/* Print the memory pinned by this process, and its limit. */
void rsoft_pin_dump(const struct rsoft_dev *dev, FILE *f);

#endif /* RSOFT_PIN_H */
