/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * For builds with ThreadSanitizer only. EAL's heap is not instrumented, and its lock is not
 * seen: memory freed by one lcore and allocated by the next looks like a race. These stand
 * before EAL's functions, call them, and tell the sanitizer of the order that the lock makes.
 */

#include <dlfcn.h>
#include <stddef.h>

#include <rte_malloc.h>
#include <rte_memzone.h>

void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);

/* Stands for the lock. */
static int heap;

static void
enter(void)
{
	__tsan_release(&heap);
	AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
	AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}

static void
leave(void)
{
	AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
	AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
	__tsan_acquire(&heap);
}

/* EAL's function of a name, into a pointer of whatever function type. */
static void
find(const char *name, void *function)
{
	*(void **)function = dlsym(RTLD_NEXT, name);
}

void *
rte_malloc_socket(const char *type, size_t size, unsigned int align, int socket)
{
	void *(*real)(const char *, size_t, unsigned int, int);
	void *mem;

	find("rte_malloc_socket", &real);
	enter();
	mem = real(type, size, align, socket);
	leave();
	return mem;
}

void *
rte_zmalloc_socket(const char *type, size_t size, unsigned int align, int socket)
{
	void *(*real)(const char *, size_t, unsigned int, int);
	void *mem;

	find("rte_zmalloc_socket", &real);
	enter();
	mem = real(type, size, align, socket);
	leave();
	return mem;
}

void
rte_free(void *mem)
{
	void (*real)(void *);

	find("rte_free", &real);
	enter();
	real(mem);
	leave();
}

const struct rte_memzone *
rte_memzone_reserve_aligned(
		const char *name, size_t len, int socket_id, unsigned int flags, unsigned int align)
{
	const struct rte_memzone *(*real)(const char *, size_t, int, unsigned int, unsigned int);
	const struct rte_memzone *mz;

	find("rte_memzone_reserve_aligned", &real);
	enter();
	mz = real(name, len, socket_id, flags, align);
	leave();
	return mz;
}

int
rte_memzone_free(const struct rte_memzone *mz)
{
	int (*real)(const struct rte_memzone *);
	int ret;

	find("rte_memzone_free", &real);
	enter();
	ret = real(mz);
	leave();
	return ret;
}
