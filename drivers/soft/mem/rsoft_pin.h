/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Pinned memory, with the semantics of a NIC: registration populates the pages, and counts them
 * against RLIMIT_MEMLOCK, each MR in full (ib_umem_get() in Linux). The program may still unmap,
 * move, discard or fork the pages. soft accesses virtual addresses, so no page has to stay in
 * place, and the kernel holds none, except with pin=lock (rsoft_mlock.h).
 *
 * mlock() differs from the driver of a NIC: on locked memory madvise() fails (EINVAL with
 * MADV_DONTNEED, MADV_FREE and MADV_REMOVE), so allocators can't purge it.
 *
 * The limit applies to a process, so the count is per process too.
 */

#ifndef RSOFT_PIN_H
#define RSOFT_PIN_H

#include <stdio.h>
#include <sys/uio.h>

#include "../base/rsoft.h"

extern const char *const rsoft_pin_arg_words[RSOFT_PIN_ARG_NB];

/*
 * Pin the populated pages of an MR with this access, unless pin=off; *pin is 0 if they are not
 * pinned. Fails with -ENOMEM and a log line only with pin=require and pin=lock.
 */
int rsoft_pin(struct rsoft_dev *dev, uint32_t access, const struct iovec *iov, uint32_t nb_iov,
		uint8_t *pin);

/* Undo rsoft_pin() for the same ranges; -EFAULT if locked memory is no longer mapped. */
int rsoft_unpin(uint8_t pin, const struct iovec *iov, uint32_t nb_iov);

/* Print the memory pinned by this process, and its limit. */
void rsoft_pin_dump(const struct rsoft_dev *dev, FILE *f);

#endif /* RSOFT_PIN_H */
