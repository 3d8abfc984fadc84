/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The page that caused a failed access (RMEM_VENDOR_ERR_PAGE_FAULT), for the last error of a QP and
 * for sanitize=1. It is found after the failure, so the memory may have changed since.
 *
 * Only between rsoft_grace_enter() and rsoft_grace_leave().
 */

#ifndef RSOFT_FAULT_PAGE_H
#define RSOFT_FAULT_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/rsoft.h"

/*
 * First unreadable byte of [addr, addr + length) of a key. 0 if all bytes are readable, or it is
 * unknown, as for indirect keys, and for on-demand pages, which a read would fault in. Arguments as
 * of rsoft_access(); length 0 means the rest of the key's range.
 */
uintptr_t rsoft_fault_page_find(const struct rsoft_qp *qp, uint32_t key_xor, uint32_t key_num,
		uint64_t addr, uint64_t length);

/* The reason why the byte can't be read, for a log line. */
const char *rsoft_fault_page_str(uintptr_t at);

#endif /* RSOFT_FAULT_PAGE_H */
