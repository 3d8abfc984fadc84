/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* With sanitize=2: what is in a buffer, and whether it is mapped. */

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ribv.h"

#define SUM_ODD UINT64_C(0x9e3779b97f4a7c15)

typedef uint64_t sum_lanes __attribute__((vector_size(16)));

/*
 * Of the bytes of a buffer: in each of eight lanes of words their sum, and the sum of its values,
 * which depends on their order. Without a multiplication, as fast as the words are loaded.
 */
uint64_t
ribv_sum(const uint8_t *bytes, uint64_t n)
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

/*
 * One system call, of any length: since Linux 2.6.19 it writes nothing. Not msync(), at which a
 * thread may be cancelled.
 */
bool
ribv_is_mapped(const struct rmem_sge *sge)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = sge->addr & ~(page - 1);

	return syscall(SYS_msync, first, sge->addr + sge->length - first, MS_ASYNC) == 0 ||
			errno != ENOMEM;
}
