/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Finding the page that caused a failed access; see rsoft_fault_page.h. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* process_vm_readv() */
#endif
#include <errno.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rsoft_access.h"
#include "rsoft_fault_page.h"

#define PROBES 512u /* pages per call; at most IOV_MAX */

/*
 * The kernel reads one byte per page, until it can't read a page; in the first page, the byte at
 * the address itself.
 */
static uintptr_t
first_missing(uintptr_t at, uint64_t length)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), end = at + length;
	struct iovec theirs[PROBES], own;
	uint8_t bytes[PROBES];
	size_t nb;
	ssize_t n;

	own.iov_base = bytes;
	while (at < end) {
		for (nb = 0; nb < PROBES && at < end; nb++) {
			theirs[nb].iov_base = (void *)at;
			theirs[nb].iov_len = 1;
			at = (at & ~(page - 1)) + page;
		}
		own.iov_len = nb;
		n = process_vm_readv(getpid(), &own, 1, theirs, nb, 0);
		if (n < 0 && errno != EFAULT)
			return 0; /* not permitted */
		if (n != (ssize_t)nb)
			return (uintptr_t)theirs[RTE_MAX(n, 0)].iov_base;
	}
	return 0;
}

uintptr_t
rsoft_fault_page_find(const struct rsoft_qp *qp, uint32_t key_xor, uint32_t key_num, uint64_t addr,
		uint64_t length)
{
	const struct rsoft_key *key;
	uint64_t offset;
	uint32_t rights;

	key = rsoft_access_key(qp, key_xor, key_num, addr, length, RSOFT_VALID, &offset, &rights);
	if (key == NULL || key->kind != RSOFT_KIND_BASE)
		return 0;
	if (length == 0)
		length = RTE_MIN(key->length - offset, RSOFT_MAX_MSG_SIZE);
	return first_missing((uintptr_t)key->base + offset, length);
}

const char *
rsoft_fault_page_str(uintptr_t at)
{
	const uintptr_t page = at & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
	unsigned char resident;

	if (mincore((void *)page, 1, &resident) != 0)
		return "not mapped";
	return "protected, or beyond the end of its file";
}
