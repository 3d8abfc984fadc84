/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The next definitions of functions that librmem_ibv.so defines, and system calls.
 *
 * Invariant: an element of functions[] is NULL or the final value. Threads may store it at the same
 * time, but always the same address, so relaxed accesses suffice.
 * Invariant: a lookup never calls itself: during a lookup (nb_lookups), find() returns the system
 * call instead, without storing it. */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ribv_libc.h"

int
kernel_open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = ribv_mode_of(flags, args);
	va_end(args);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int
kernel_openat(int dirfd, const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = ribv_mode_of(flags, args);
	va_end(args);
	return (int)syscall(SYS_openat, dirfd, path, flags, mode);
}

int
kernel_close(int fd)
{
	return (int)syscall(SYS_close, fd);
}

static ssize_t
kernel_write(int fd, const void *data, size_t size)
{
	return syscall(SYS_write, fd, data, size);
}

/* Kernel and libc have the same struct. */
int
kernel_fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	return (int)syscall(SYS_newfstatat, dirfd, path, st, flags);
}

static int
kernel_stat(const char *path, struct stat *st)
{
	return kernel_fstatat(AT_FDCWD, path, st, 0);
}

static int
kernel_lstat(const char *path, struct stat *st)
{
	return kernel_fstatat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

static int
kernel_fstat(int fd, struct stat *st)
{
	return (int)syscall(SYS_fstat, fd, st);
}

/* Use the system calls that libc uses, since a seccomp filter may permit no others. */
#ifdef SYS_access
#define ACCESS(path, mode)        syscall(SYS_access, path, mode)
#define READLINK(path, buf, size) syscall(SYS_readlink, path, buf, size)
#else
#define ACCESS(path, mode)        syscall(SYS_faccessat, AT_FDCWD, path, mode)
#define READLINK(path, buf, size) syscall(SYS_readlinkat, AT_FDCWD, path, buf, size)
#endif

static int
kernel_access(const char *path, int mode)
{
	return (int)ACCESS(path, mode);
}

static ssize_t
kernel_readlinkat(int dirfd, const char *path, char *buf, size_t size)
{
	return syscall(SYS_readlinkat, dirfd, path, buf, size);
}

ssize_t
kernel_readlink(const char *path, char *buf, size_t size)
{
	return READLINK(path, buf, size);
}

/* Call dlopen() of libc during a lookup. */
static void *
dlopen_of_libc(const char *name, int flags)
{
	return dlmopen(LM_ID_BASE, name, flags);
}

/* Substitutes for functions that are not a plain system call. */
static void *
no_pointer(void)
{
	errno = ENOSYS;
	return NULL;
}

static int
no_number(void)
{
	errno = ENOSYS;
	return -1;
}

typedef void *(*dlsym_t)(void *library, const char *name);

union symbol {
	void *object;
	ribv_function_t function;
	dlsym_t dlsym;
};

#define NEXT_ENTRY(name, other) {#name, (ribv_function_t)other},
static const struct {
	const char *name;
	ribv_function_t other;
} names[] = {RIBV_FUNCTIONS(NEXT_ENTRY)};

static ribv_function_t functions[RIBV_NB_LIBC]; /* atomic */

/* Number of lookups in progress in this thread. */
static __thread int nb_lookups __attribute__((tls_model("initial-exec")));

/*
 * Find dlsym() of libc. If another library replaces dlsym(), its RTLD_NEXT would search after that
 * library, and could find this library's own functions.
 */
static dlsym_t
find_dlsym(void)
{
	static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
	union symbol found = {.object = NULL};
	size_t i;

	for (i = 0; i < sizeof(versions) / sizeof(versions[0]) && found.object == NULL; i++)
		found.object = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
	return found.object != NULL ? found.dlsym : dlsym;
}

void *
ribv_dlsym(void *library, const char *name)
{
	static dlsym_t get; /* atomic */
	dlsym_t used = __atomic_load_n(&get, __ATOMIC_RELAXED);

	if (used == NULL) {
		used = find_dlsym();
		__atomic_store_n(&get, used, __ATOMIC_RELAXED);
	}
	return used(library, name);
}

static ribv_function_t
find(enum ribv_libc index)
{
	union symbol found;
	int err = errno;

	if (nb_lookups != 0)
		return names[index].other;
	nb_lookups++;
	found.object = ribv_dlsym(RTLD_NEXT, names[index].name);
	if (found.object == NULL) {
		(void)dlerror(); /* don't leave an error for the program */
		found.function = names[index].other;
	}
	nb_lookups--;
	__atomic_store_n(&functions[index], found.function, __ATOMIC_RELAXED);
	errno = err;
	return found.function;
}

ribv_function_t
ribv_libc(enum ribv_libc index)
{
	ribv_function_t function = __atomic_load_n(&functions[index], __ATOMIC_RELAXED);

	return __builtin_expect(function != NULL, 1) ? function : find(index);
}

void
ribv_libc_find(void)
{
	int i;

	for (i = 0; i < RIBV_NB_LIBC; i++)
		(void)ribv_libc((enum ribv_libc)i);
}
