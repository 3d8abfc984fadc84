/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* With sanitize=2: checksum of a buffer, and whether it is mapped. */

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../drivers/soft/mem/rsoft_guard.h"
#include "ribv.h"

#define SUM_ODD UINT64_C(0x9e3779b97f4a7c15)

typedef uint64_t sum_lanes __attribute__((vector_size(16)));

/*
 * Checksum: in each of eight lanes of words, the sum of the words, and the sum of these sums, which
 * depends on the order. Without multiplications it is as fast as loading the words.
 */
static uint64_t
sum_bytes(const uint8_t *bytes, uint64_t n)
{
	sum_lanes words[4] = {{0}}, values[4] = {{0}}, lanes;
	uint64_t sum = n, word, i;
	uint32_t j;

	for (i = 0; i + sizeof(words) <= n; i += sizeof(words)) {
		for (j = 0; j < RTE_DIM(words); j++) {
			memcpy(&lanes, bytes + i + j * sizeof(lanes), sizeof(lanes));
			words[j] += lanes;
			values[j] += words[j];
		}
	}
	for (j = 0; j < 2 * RTE_DIM(words) && i != 0; j++) {
		sum = (sum ^ words[j / 2][j % 2]) * SUM_ODD;
		sum = (sum ^ sum >> 32 ^ values[j / 2][j % 2]) * SUM_ODD;
	}
	for (; i + sizeof(word) <= n; i += sizeof(word)) {
		memcpy(&word, bytes + i, sizeof(word));
		sum = (sum ^ sum >> 32 ^ word) * SUM_ODD;
	}
	for (; i < n; i++)
		sum = (sum ^ sum >> 32 ^ bytes[i]) * SUM_ODD;
	return sum;
}

uint64_t
ribv_sum(const struct rmem_sge *sges, uint32_t n)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		sum = sum * 31 ^
				sum_bytes((const uint8_t *)(uintptr_t)sges[i].addr, sges[i].length);
	return sum;
}

/*
 * Whether an SGE is mapped, by one system call for any length; since Linux 2.6.19 it writes nothing
 * back. msync() of libc is not used because it is a cancellation point.
 */
bool
ribv_is_mapped(const struct rmem_sge *sge)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = sge->addr & ~(page - 1);

	return syscall(SYS_msync, first, sge->addr + sge->length - first, MS_ASYNC) == 0 ||
			errno != ENOMEM;
}

static bool
is_readable(const struct rmem_sge *sge, bool has_guard)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t at = sge->addr, end = at + sge->length;
	uint8_t byte;

	if (end < at || !has_guard)
		return end >= at && ribv_is_mapped(sge);
	for (; at < end; at = (at & ~(page - 1)) + page) {
		if (rsoft_guard_copy_fast(&byte, (const void *)at, 1).side != RSOFT_SIDE_NONE)
			return false;
	}
	return true;
}

/*
 * Whether a checksum can be computed. Reads a byte of each page with the driver's guard, whose
 * signal handler ends an invalid access; if it can't be installed, uses system calls.
 */
bool
ribv_are_readable(const struct rmem_sge *sges, uint32_t n)
{
	static bool has_guard, is_asked; /* under the lock of the watches */
	uint32_t i;

	if (!is_asked)
		has_guard = rsoft_guard_get();
	is_asked = true;
	for (i = 0; i < n && likely(is_readable(&sges[i], has_guard)); i++)
		;
	return i == n;
}
