/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Functions of libc that librmem_ibv.so defines. Each passes the call of the program exactly once
 * to the next definition of its name, in a library preloaded after this one or in libc. A library
 * preloaded before this one gets the call first. So all of them receive every call of the program.
 *
 * Invariant: calls that librmem_ibv.so and its core make for their own descriptors (files of the
 * view, sockets of rdma_cm) bypass the interposed functions, so that no other library counts or
 * replaces them. They use system calls (kernel_close() etc.) or names of libc that are not replaced
 * (rcm.h).
 */

#ifndef RIBV_LIBC_H
#define RIBV_LIBC_H

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#define RIBV_HIDDEN __attribute__((visibility("hidden")))

/*
 * All functions, each with the function to call if no next definition is found: in another version
 * of libc, or while dlsym() or malloc() of another library calls it during a lookup.
 */
/* clang-format off */
#define RIBV_FUNCTIONS(X) \
	X(access, kernel_access) X(canonicalize_file_name, no_pointer) X(chdir, no_number) \
	X(close, kernel_close) X(closedir, no_number) X(dirfd, no_number) X(dlopen, dlopen_of_libc) \
	X(eaccess, no_number) X(euidaccess, no_number) X(faccessat, no_number) X(fchdir, no_number) \
	X(fdopendir, no_pointer) X(fopen, no_pointer) X(fopen64, no_pointer) \
	X(fstat, kernel_fstat) X(fstat64, kernel_fstat) X(fstatat, kernel_fstatat) \
	X(fstatat64, kernel_fstatat) X(getcwd, no_pointer) X(getxattr, no_number) \
	X(lgetxattr, no_number) X(__fxstat, no_number) X(__fxstat64, no_number) \
	X(__fxstatat, no_number) X(__fxstatat64, no_number) X(listxattr, no_number) \
	X(llistxattr, no_number) X(__getcwd_chk, no_pointer) X(lstat, kernel_lstat) \
	X(lstat64, kernel_lstat) X(__lxstat, no_number) X(__lxstat64, no_number) \
	X(open, kernel_open) X(open64, kernel_open) X(__open64_2, kernel_open) \
	X(__open_2, kernel_open) X(openat, kernel_openat) X(openat64, kernel_openat) \
	X(__openat64_2, kernel_openat) X(__openat_2, kernel_openat) X(opendir, no_pointer) \
	X(readdir, no_pointer) X(readdir64, no_pointer) X(readdir64_r, no_number) \
	X(readdir_r, no_number) X(readlink, kernel_readlink) X(__readlink_chk, no_number) \
	X(readlinkat, kernel_readlinkat) X(__readlinkat_chk, no_number) X(realpath, no_pointer) \
	X(__realpath_chk, no_pointer) X(rewinddir, no_number) X(scandir, no_number) \
	X(scandir64, no_number) X(seekdir, no_number) X(stat, kernel_stat) \
	X(stat64, kernel_stat) X(statx, no_number) X(telldir, no_number) X(write, kernel_write) \
	X(__xstat, no_number) X(__xstat64, no_number)
/* clang-format on */

#define RIBV_INDEX(name, other) RIBV_LIBC_##name,
enum ribv_libc {
	RIBV_FUNCTIONS(RIBV_INDEX) RIBV_NB_LIBC
};

typedef void (*ribv_function_t)(void);

/*
 * Return the next definition. The first call looks it up, also before constructors have run; later
 * calls are async-signal-safe. Threads, and a child of vfork(), store the same address.
 */
RIBV_HIDDEN ribv_function_t ribv_libc(enum ribv_libc index);

/* dlsym() of libc, which no library can replace. */
RIBV_HIDDEN void *ribv_dlsym(void *library, const char *name);

/* Look up all functions when the library is loaded. */
RIBV_HIDDEN void ribv_libc_find(void);

/* The next definition of a name, with its own type or the type of another function. */
#define REAL(name)          ((__typeof__(&name))ribv_libc(RIBV_LIBC_##name))
#define REAL_AS(type, name) ((__typeof__(&type))ribv_libc(RIBV_LIBC_##name))

/*
 * Define a function and its variant with suffix 64, for programs compiled with
 * _FILE_OFFSET_BITS=64; both have the same types. DEFINE(type, name) defines name, which has the
 * type of the first, as RIBV_OWN(name).
 */
#define RIBV_BOTH(DEFINE, name) DEFINE(name, name) DEFINE(name, name##64)
#define RIBV_OWN(name)          own_##name
#define RIBV_SYMBOL(name)       __asm__(#name)

/* Whether an open() may create a file. */
static inline bool
ribv_is_creating(int flags)
{
	return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

/* The mode argument, which follows the flags if the call may create a file. */
static inline mode_t
ribv_mode_of(int flags, va_list args)
{
	return ribv_is_creating(flags) ? va_arg(args, mode_t) : 0;
}

RIBV_HIDDEN int kernel_open(const char *path, int flags, ...);
RIBV_HIDDEN int kernel_openat(int dirfd, const char *path, int flags, ...);
RIBV_HIDDEN int kernel_close(int fd);
RIBV_HIDDEN int kernel_fstatat(int dirfd, const char *path, struct stat *st, int flags);
RIBV_HIDDEN ssize_t kernel_readlink(const char *path, char *buf, size_t size);

#endif /* RIBV_LIBC_H */
