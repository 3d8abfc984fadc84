/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Copies from and to the program's memory, at addresses that its commands have. The kernel makes
 * the copies: a command whose memory is not mapped, or not writable, fails with EFAULT.
 */

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rcm.h"

typedef ssize_t (*copy_t)(pid_t pid, const struct iovec *own, unsigned long nb_own,
		const struct iovec *user, unsigned long nb_user, unsigned long flags);

/* Number of bytes that were copied. */
static size_t
copy(copy_t by_kernel, void *own, uint64_t at, size_t size, bool *is_refused)
{
	struct iovec from = {own, size};
	struct iovec to = {(void *)(uintptr_t)at, size};
	ssize_t n = by_kernel(getpid(), &from, 1, &to, 1, 0);

	/* A filter of system calls may refuse these two; nothing is checked then. */
	*is_refused = n < 0 && errno != EFAULT && errno != EINVAL;
	return n < 0 ? 0 : (size_t)n;
}

size_t
rcm_user_read(void *to, uint64_t from, size_t size)
{
	bool is_refused;
	size_t n = copy(process_vm_readv, to, from, size, &is_refused);

	if (!is_refused || from == 0)
		return n;
	memcpy(to, (const void *)(uintptr_t)from, size);
	return size;
}

int
rcm_user_write(uint64_t to, const void *from, size_t size)
{
	union {
		const void *constant;
		void *pointer; /* process_vm_writev() does not change its bytes */
	} own = {.constant = from};
	bool is_refused;
	size_t n = copy(process_vm_writev, own.pointer, to, size, &is_refused);

	if (!is_refused || to == 0)
		return n == size ? 0 : -EFAULT;
	memcpy((void *)(uintptr_t)to, from, size);
	return 0;
}
