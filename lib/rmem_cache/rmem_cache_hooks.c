/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * librmem_cache_hooks.so: functions of libc that unmap, move or discard memory, each of which first
 * invalidates the MRs of the memory. See rmem_cache_hooks_priv.h.
 *
 * They are called by allocators, in signal handlers, in children of fork(), and before constructors
 * have run: they take no lock and allocate nothing.
 *
 * Calls within libc bypass them. The constructor prevents such calls by malloc() and free(): freed
 * memory stays mapped.
 */

#include <dlfcn.h>
#include <malloc.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "rmem_cache_hooks_priv.h"

/* Not defined by older kernel headers. */
#define ADVICE_DONTNEED_LOCKED 24
#define ADVICE_GUARD_INSTALL   102

#define MAX_PAGE ((uintptr_t)1 << 30)

extern struct cache_hooks rmem_cache_hooks_1;
struct cache_hooks rmem_cache_hooks_1;

/* The replaced functions: of libc, or of another object that replaces them, too. */
static struct {
	int (*brk)(void *addr);
	int (*madvise)(void *addr, size_t length, int advice);
	int (*malloc_trim)(size_t pad);
	void *(*mmap)(void *addr, size_t length, int prot, int flags, int fd, off_t offset);
	void *(*mremap)(void *addr, size_t old_length, size_t length, int flags, ...);
	int (*munmap)(void *addr, size_t length);
	void *(*sbrk)(intptr_t increment);
	void *(*shmat)(int id, const void *addr, int flags);
	int (*shmdt)(const void *addr);
} next;

/* Found in the constructor; before it has run, in the first call. */
#define FIND(name) find(#name, &next.name)
#define NEXT(name) (next.name != NULL ? (void)0 : FIND(name), next.name)

static void
find(const char *name, void *function)
{
	void *found = dlsym(RTLD_NEXT, name);

	memcpy(function, &found, sizeof(found));
}

__attribute__((constructor)) static void
start(void)
{
	FIND(brk);
	FIND(madvise);
	FIND(malloc_trim);
	FIND(mmap);
	FIND(mremap);
	FIND(munmap);
	FIND(sbrk);
	FIND(shmat);
	FIND(shmdt);
	/*
	 * No mappings for large blocks, no trimming, and no arenas of threads, whose heaps are
	 * unmapped when they are empty, regardless of the threshold.
	 */
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, -1);
	mallopt(M_ARENA_MAX, 1);
}

static void
invalidate(const void *addr, size_t length)
{
	void (*function)(const void *, size_t) =
			__atomic_load_n(&rmem_cache_hooks_1.invalidate, __ATOMIC_SEQ_CST);

	if (function != NULL)
		function(addr, length);
}

static void
begin(void)
{
	__atomic_fetch_add(&rmem_cache_hooks_1.nb_changing, 1, __ATOMIC_SEQ_CST);
}

/*
 * Begin to change a range. The kernel rounds the length up to pages; their size divides the
 * address.
 */
static void
begin_range(const void *addr, size_t length)
{
	uintptr_t at = (uintptr_t)addr, page = at & -at;

	if (page > MAX_PAGE)
		page = MAX_PAGE;
	begin();
	if (length != 0 && page != 0)
		length = length - 1 > SIZE_MAX - page ? SIZE_MAX : ((length - 1) | (page - 1)) + 1;
	invalidate(addr, length);
}

static void
end(void)
{
	__atomic_fetch_sub(&rmem_cache_hooks_1.nb_changing, 1, __ATOMIC_SEQ_CST);
}

int
munmap(void *addr, size_t length)
{
	int ret;

	begin_range(addr, length);
	ret = NEXT(munmap)(addr, length);
	end();
	return ret;
}

void *
mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
{
	void *ret;

	if ((flags & MAP_FIXED) == 0)
		return NEXT(mmap)(addr, length, prot, flags, fd, offset);
	begin_range(addr, length);
	ret = NEXT(mmap)(addr, length, prot, flags, fd, offset);
	end();
	return ret;
}

void *mmap64(void *addr, size_t length, int prot, int flags, int fd, off64_t offset)
		__attribute__((alias("mmap")));

void *
mremap(void *addr, size_t old_length, size_t length, int flags, ...)
{
	void *to = NULL, *ret;
	va_list args;

	/* As libc. */
	if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) {
		va_start(args, flags);
		to = va_arg(args, void *);
		va_end(args);
	}
	begin_range(addr, old_length);
	if (flags & MREMAP_FIXED)
		begin_range(to, length);
	ret = NEXT(mremap)(addr, old_length, length, flags, to);
	if (flags & MREMAP_FIXED)
		end();
	end();
	return ret;
}

int
madvise(void *addr, size_t length, int advice)
{
	int ret;

	if (advice != MADV_DONTNEED && advice != MADV_FREE && advice != MADV_REMOVE &&
			advice != ADVICE_DONTNEED_LOCKED && advice != ADVICE_GUARD_INSTALL)
		return NEXT(madvise)(addr, length, advice);
	begin_range(addr, length);
	ret = NEXT(madvise)(addr, length, advice);
	end();
	return ret;
}

/* Begin a call that may move the end of the heap down to an address. */
static void
begin_heap(const char *at)
{
	const char *top = NEXT(sbrk)(0);

	begin();
	if (at < top)
		invalidate(at, (size_t)(top - at));
}

int
brk(void *addr)
{
	int ret;

	begin_heap(addr);
	ret = NEXT(brk)(addr);
	end();
	return ret;
}

void *
sbrk(intptr_t increment)
{
	void *ret;

	if (increment >= 0)
		return NEXT(sbrk)(increment);
	begin_heap((char *)NEXT(sbrk)(0) + increment);
	ret = NEXT(sbrk)(increment);
	end();
	return ret;
}

int
malloc_trim(size_t pad)
{
	int ret;

	begin();
	invalidate(NULL, SIZE_MAX);
	ret = NEXT(malloc_trim)(pad);
	end();
	return ret;
}

/* The size of the segment is not known here, so all memory from its address on is invalidated. */
int
shmdt(const void *addr)
{
	int ret;

	begin();
	invalidate(addr, SIZE_MAX);
	ret = NEXT(shmdt)(addr);
	end();
	return ret;
}

void *
shmat(int id, const void *addr, int flags)
{
	void *ret;

	if ((flags & SHM_REMAP) == 0)
		return NEXT(shmat)(id, addr, flags);
	begin();
	invalidate(addr, SIZE_MAX);
	ret = NEXT(shmat)(id, addr, flags);
	end();
	return ret;
}
