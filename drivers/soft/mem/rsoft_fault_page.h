/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The page that an access failed for (RMEM_VENDOR_ERR_PAGE_FAULT), for the last error of a QP and
 * for sanitize=1. Found after the failure, so the memory may have changed since.
 *
 * Between rsoft_grace_enter() and rsoft_grace_leave() only.
 */

#ifndef RSOFT_FAULT_PAGE_H
#define RSOFT_FAULT_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/rsoft.h"

/*
 * The first byte of [addr, addr + length) of a key that cannot be read; 0: all can be, or it is not
 * known, as of keys over other keys, and of pages on demand, which a read would fault in. The
 * arguments are those of rsoft_access(); a length of 0 stands for the rest of the range of the key.
 */
uintptr_t rsoft_fault_page_find(const struct rsoft_qp *qp, uint32_t key_xor, uint32_t key_num,
		uint64_t addr, uint64_t length);

/* Why that byte cannot be read, for a log line. */
const char *rsoft_fault_page_str(uintptr_t at);

#endif /* RSOFT_FAULT_PAGE_H */
