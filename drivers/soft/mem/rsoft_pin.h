/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Pinned memory, as it is with a NIC: registration populates the pages, and counts them against
 * RLIMIT_MEMLOCK, each MR in full (ib_umem_get() of Linux). The pages stay the program's: it may
 * unmap, move, discard or fork them. soft needs no page to stay in place, since it accesses
 * virtual addresses, so the kernel does not hold any, except with pin=lock (rsoft_mlock.h).
 *
 * mlock() is not what a NIC's driver does: madvise() fails on locked memory (EINVAL with
 * MADV_DONTNEED, MADV_FREE and MADV_REMOVE), and so allocators cannot purge it.
 *
 * The limit belongs to a process, and so does the count.
 */

#ifndef RSOFT_PIN_H
#define RSOFT_PIN_H

#include <stdio.h>
#include <sys/uio.h>

#include "../base/rsoft.h"

extern const char *const rsoft_pin_arg_words[RSOFT_PIN_ARG_NB];

/*
 * Pin the populated pages of an MR with this access, unless pin=off; *pin is 0 when they are not
 * pinned. -ENOMEM and a log line: with pin=require and pin=lock only.
 */
int rsoft_pin(struct rsoft_dev *dev, uint32_t access, const struct iovec *iov, uint32_t nb_iov,
		uint8_t *pin);

/* Undo rsoft_pin() for the same ranges; -EFAULT if locked memory is no longer mapped. */
int rsoft_unpin(uint8_t pin, const struct iovec *iov, uint32_t nb_iov);

/* Print the memory pinned by this process, and its limit. */
void rsoft_pin_dump(const struct rsoft_dev *dev, FILE *f);

#endif /* RSOFT_PIN_H */
