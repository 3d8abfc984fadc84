/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * With the item poison: a pattern in receive buffers, from the post until the device writes there.
 * The kernel writes the pattern, so an invalid address is an error and not a fault.
 */

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rte_common.h>

#include "ribv.h"

#define CHUNK  4096
#define MAX_UD (4096 + 40)

static uint8_t pattern[CHUNK + 8]; /* 8 bytes, repeated */

static void
fill_pattern(void)
{
	static const uint8_t word[8] = {0xde, 0x5a, 0xd1, 0xe5, 0xba, 0xdb, 0x0f, 0xf3};
	size_t i;

	if (pattern[0] == word[0])
		return;
	for (i = sizeof(pattern); i-- > 0;)
		pattern[i] = word[i % 8];
}

void
ribv_ud_clip(struct rmem_sge *sges, uint32_t n)
{
	uint32_t i, left = MAX_UD;

	for (i = 0; i < n; i++) {
		sges[i].length = RTE_MIN(sges[i].length, left);
		left -= sges[i].length;
	}
}

bool
ribv_poison_set(const struct rmem_sge *sges, uint32_t n)
{
	struct iovec from, to;
	uint64_t done;
	uint32_t i;

	fill_pattern();
	for (i = 0; i < n; i++) {
		for (done = 0; done < sges[i].length; done += to.iov_len) {
			to.iov_base = (void *)(uintptr_t)(sges[i].addr + done);
			to.iov_len = RTE_MIN(sges[i].length - done, (uint64_t)CHUNK);
			from = (struct iovec){.iov_base = pattern, .iov_len = to.iov_len};
			if (process_vm_writev(getpid(), &from, 1, &to, 1, 0) != (ssize_t)to.iov_len)
				return false;
		}
	}
	return true;
}

/* Offset in [from, length) of the first byte of an SGE that differs from the pattern; length:
 * none. */
static uint64_t
find_written(const struct rmem_sge *sge, uint64_t from)
{
	const uint8_t *bytes = (const uint8_t *)(uintptr_t)sge->addr;
	uint64_t n;

	for (; from < sge->length; from += n) {
		n = RTE_MIN(sge->length - from, (uint64_t)CHUNK);
		if (memcmp(bytes + from, &pattern[from % 8], n) == 0)
			continue;
		while (bytes[from] == pattern[from % 8])
			from++;
		return from;
	}
	return sge->length;
}

uint64_t
ribv_poison_written(const struct rmem_sge *sges, uint32_t n, uint64_t nb_received)
{
	uint64_t from;
	uint32_t i;

	for (i = 0; i < n; i++) {
		from = find_written(&sges[i], RTE_MIN(nb_received, (uint64_t)sges[i].length));
		if (from < sges[i].length)
			return sges[i].addr + from;
		nb_received -= RTE_MIN(nb_received, (uint64_t)sges[i].length);
	}
	return 0;
}

bool
ribv_poison_received(const struct rmem_sge *sges, uint32_t n, uint64_t nb_received)
{
	return n != 0 && nb_received >= RIBV_POISON && sges[0].length >= RIBV_POISON &&
			memcmp((const void *)(uintptr_t)sges[0].addr, pattern, RIBV_POISON) == 0;
}
