/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A library that is preloaded before or after librmem_ibv.so, and counts the calls of each function
 * that librmem_ibv.so defines. As libraries that replace dlsym() do, it calls such functions when
 * one is looked for.
 */

#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "count_calls.h"
#include "preload/ribv_libc.h"

/* None has more arguments, and none has one of floating point. */
typedef long (*function_t)(long, long, long, long, long, long);

union symbol {
	void *object;
	function_t function;
};

#define COUNT_NAME(name, other) #name,
static const char *const names[] = {RIBV_FUNCTIONS(COUNT_NAME)};
void *count_caller;
static unsigned int counts[RIBV_NB_LIBC];
static __thread int nb_lookups __attribute__((tls_model("initial-exec")));

unsigned int
count_of(const char *name)
{
	size_t i;

	for (i = 0; i < RIBV_NB_LIBC; i++) {
		if (strcmp(names[i], name) == 0)
			return __atomic_load_n(&counts[i], __ATOMIC_RELAXED);
	}
	return 0;
}

unsigned int
count_all(void)
{
	unsigned int sum = 0;
	size_t i;

	for (i = 0; i < RIBV_NB_LIBC; i++)
		sum += __atomic_load_n(&counts[i], __ATOMIC_RELAXED);
	return sum;
}

void
count_reset(void)
{
	memset(counts, 0, sizeof(counts));
}

static union symbol
find(const char *name)
{
	union symbol next;

	nb_lookups++;
	next.object = dlsym(RTLD_NEXT, name);
	nb_lookups--;
	return next;
}

static long
call(size_t index, long a, long b, long c, long d, long e, long f)
{
	static function_t next[RIBV_NB_LIBC];

	if (next[index] == NULL)
		next[index] = find(names[index]).function;
	__atomic_add_fetch(&counts[index], 1, __ATOMIC_RELAXED);
	return next[index](a, b, c, d, e, f);
}

#define COUNT(name, other)                                                                         \
	long count_##name(long, long, long, long, long, long) __asm__(#name);                      \
	long count_##name(long a, long b, long c, long d, long e, long f)                          \
	{                                                                                          \
		if (RIBV_LIBC_##name == RIBV_LIBC_dlopen)                                          \
			count_caller = __builtin_return_address(0);                                \
		return call(RIBV_LIBC_##name, a, b, c, d, e, f);                                   \
	}

RIBV_FUNCTIONS(COUNT)

/* librmem_ibv.so calls it when it looks for the first function. */
void *
dlvsym(void *restrict library, const char *restrict name, const char *restrict version)
{
	static __typeof__(&dlvsym) next;
	struct stat st;

	if (next == NULL)
		*(void **)&next = dlsym(RTLD_NEXT, "dlvsym");
	if (nb_lookups++ == 0) {
		(void)!write(STDERR_FILENO, "", 0);
		(void)stat("/", &st);
		close(open("/", O_RDONLY));
	}
	nb_lookups--;
	return next(library, name, version);
}
