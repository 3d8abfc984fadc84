/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Allocations that fail: the linker sends what librmem and this program call here (--wrap). It
 * does so for a static librmem only; with a shared one nothing fails.
 */

#include <errno.h>
#include <sys/mman.h>

#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_memzone.h>

#include "chaos.h"

static __thread uint32_t fails_one_in;
static __thread uint64_t state;
static __thread uint64_t nb_failed;

void
ch_fail_allocs(uint32_t one_in, uint64_t seed)
{
	fails_one_in = one_in;
	state = seed;
}

uint64_t
ch_failed_allocs(void)
{
	return nb_failed;
}

static bool
fails(void)
{
	if (fails_one_in == 0)
		return false;
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	if ((state >> 33) % fails_one_in != 0)
		return false;
	nb_failed++;
	errno = ENOMEM;
	rte_errno = ENOMEM;
	return true;
}

/* The linker's names for the function itself and for what is called in its place. */
#define WRAP(type, none, name, parameters, arguments)                                              \
	type __real_##name parameters;                                                             \
	type __wrap_##name parameters;                                                             \
	type __wrap_##name parameters                                                              \
	{                                                                                          \
		return fails() ? (none) : __real_##name arguments;                                 \
	}

WRAP(void *, NULL, rte_malloc, (const char *type, size_t size, unsigned int align),
		(type, size, align))
WRAP(void *, NULL, rte_zmalloc, (const char *type, size_t size, unsigned int align),
		(type, size, align))
WRAP(void *, NULL, rte_malloc_socket,
		(const char *type, size_t size, unsigned int align, int socket),
		(type, size, align, socket))
WRAP(void *, NULL, rte_zmalloc_socket,
		(const char *type, size_t size, unsigned int align, int socket),
		(type, size, align, socket))
WRAP(void *, NULL, calloc, (size_t nb, size_t size), (nb, size))
WRAP(void *, NULL, realloc, (void *old, size_t size), (old, size))
WRAP(void *, MAP_FAILED, mmap,
		(void *addr, size_t length, int prot, int flags, int fd, off_t offset),
		(addr, length, prot, flags, fd, offset))
WRAP(const struct rte_memzone *, NULL, rte_memzone_reserve,
		(const char *name, size_t size, int socket, unsigned int flags),
		(name, size, socket, flags))
WRAP(const struct rte_memzone *, NULL, rte_memzone_reserve_aligned,
		(const char *name, size_t size, int socket, unsigned int flags, unsigned int align),
		(name, size, socket, flags, align))
