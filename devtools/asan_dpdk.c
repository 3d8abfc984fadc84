/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Preloaded by check-asan.sh: puts rte_malloc() and its kin on the sanitizer's heap, which sees
 * overflows, uses after a free and leaks there. Memzones stay where they are.
 *
 * Each block has a twin of its size in DPDK's heap, so that limits and statistics are the same.
 * RMEM_ASAN_DPDK=off leaves all blocks in DPDK's heap, for programs whose processes share it.
 *
 * Invariant: as many bytes in front of a block as it is aligned to are poisoned until it is
 * freed; the last of them are its head.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_malloc.h>

#define MIN_ALIGN 64u

struct head {
	const void *block; /* what it is the head of: memzones come to rte_free() too */
	void *twin;
	size_t size;
	size_t align;
};

/* Of the sanitizer, in programs that have it. */
void __asan_poison_memory_region(void const volatile *addr, size_t size) __attribute__((weak));
void __asan_unpoison_memory_region(void const volatile *addr, size_t size) __attribute__((weak));

static void *(*real_malloc)(const char *type, size_t size, unsigned int align, int socket);
static void *(*real_realloc)(void *addr, size_t size, unsigned int align, int socket);
static void (*real_free)(void *addr);
static int is_off;

__attribute__((constructor)) static void
find_real(void)
{
	*(void **)&real_malloc = dlsym(RTLD_NEXT, "rte_malloc_socket");
	*(void **)&real_realloc = dlsym(RTLD_NEXT, "rte_realloc_socket");
	*(void **)&real_free = dlsym(RTLD_NEXT, "rte_free");
	is_off = getenv("RMEM_ASAN_DPDK") != NULL && strcmp(getenv("RMEM_ASAN_DPDK"), "off") == 0;
}

static struct head *
head_of(void *addr)
{
	return (struct head *)addr - 1;
}

void *
rte_malloc_socket(const char *type, size_t size, unsigned int align, int socket)
{
	const size_t room = align < MIN_ALIGN ? MIN_ALIGN : align;
	void *twin = real_malloc(type, size, align, socket);
	void *base = NULL;

	if (is_off)
		return twin;
	if (twin == NULL || posix_memalign(&base, room, room + size) != 0) {
		if (twin != NULL)
			real_free(twin);
		return NULL;
	}
	*head_of((uint8_t *)base + room) = (struct head){(uint8_t *)base + room, twin, size, room};
	if (__asan_poison_memory_region != NULL)
		__asan_poison_memory_region(base, room);
	return (uint8_t *)base + room;
}

void
rte_free(void *addr)
{
	struct head head;
	uint8_t *base;

	if (addr == NULL)
		return;
	if (is_off) {
		real_free(addr);
		return;
	}
	head = *head_of(addr);
	if (head.block != addr) {
		real_free(addr);
		return;
	}
	base = (uint8_t *)addr - head.align;
	if (__asan_unpoison_memory_region != NULL)
		__asan_unpoison_memory_region(base, head.align);
	free(base);
	real_free(head.twin);
}

void *
rte_zmalloc_socket(const char *type, size_t size, unsigned int align, int socket)
{
	void *addr = rte_malloc_socket(type, size, align, socket);

	return addr != NULL ? memset(addr, 0, size) : NULL;
}

void *
rte_calloc_socket(const char *type, size_t num, size_t size, unsigned int align, int socket)
{
	return rte_zmalloc_socket(type, num * size, align, socket);
}

void *
rte_malloc(const char *type, size_t size, unsigned int align)
{
	return rte_malloc_socket(type, size, align, SOCKET_ID_ANY);
}

void *
rte_zmalloc(const char *type, size_t size, unsigned int align)
{
	return rte_zmalloc_socket(type, size, align, SOCKET_ID_ANY);
}

void *
rte_calloc(const char *type, size_t num, size_t size, unsigned int align)
{
	return rte_calloc_socket(type, num, size, align, SOCKET_ID_ANY);
}

void *
rte_realloc_socket(void *addr, size_t size, unsigned int align, int socket)
{
	void *moved;

	if (is_off)
		return real_realloc(addr, size, align, socket);
	moved = size != 0 ? rte_malloc_socket(NULL, size, align, socket) : NULL;
	if (size != 0 && moved == NULL)
		return NULL;
	if (addr != NULL && moved != NULL)
		memcpy(moved, addr, size < head_of(addr)->size ? size : head_of(addr)->size);
	rte_free(addr);
	return moved;
}

void *
rte_realloc(void *addr, size_t size, unsigned int align)
{
	return rte_realloc_socket(addr, size, align, SOCKET_ID_ANY);
}

rte_iova_t
rte_malloc_virt2iova(const void *addr)
{
	return rte_eal_iova_mode() == RTE_IOVA_VA ? (uintptr_t)addr : RTE_BAD_IOVA;
}
