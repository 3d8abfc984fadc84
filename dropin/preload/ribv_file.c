/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Functions that take a path: for files of the view they return the file of the view, for others
 * they call the next definition.
 *
 * Invariant: a call whose path does not involve the view is passed on once, unchanged, and keeps
 * the errno of the next definition. It takes no lock and allocates nothing.
 * Invariant: the kernel checks the program's path pointer before this library reads it: by the next
 * definition, or by ribv_at_before() if the call could create a file. */

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "ribv_file.h"
#include "ribv_load.h"

/* Functions used by programs compiled with _FORTIFY_SOURCE. */
int __open_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t buf_size);
ssize_t __readlinkat_chk(int dirfd, const char *path, char *buf, size_t size, size_t buf_size);
char *__realpath_chk(const char *path, char *resolved, size_t size);
char *__getcwd_chk(char *buf, size_t size, size_t buf_size);

/* Functions used by programs linked with glibc before 2.33. */
int __xstat(int version, const char *path, struct stat *st);
int __lxstat(int version, const char *path, struct stat *st);
int __fxstatat(int version, int dirfd, const char *path, struct stat *st, int flags);

/* Repeat a call for at.path until the kernel has the file, or a node is found. */
#define ASK(at, ret, is_failed, call)                                                              \
	do                                                                                         \
		(ret) = (call);                                                                    \
	while (ribv_at_next(&(at), (is_failed) ? errno : 0))

/* Free the node and fail. */
static int
fail(struct ribv_node *node, int err)
{
	free(node);
	errno = err;
	return -1;
}

/*
 * Open a memfd with the content of the node. It is sealed, so that each open returns the content of
 * its time, as in sysfs, and has the mode of a read-only file for fstat().
 */
static int
open_text(const struct ribv_node *node, int flags)
{
	char name[RIBV_PATH + 64];
	int fd;

	ribv_name_of(node->path, name);
	fd = memfd_create(name, MFD_ALLOW_SEALING | ((flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0));
	if (fd < 0)
		return -1;
	if (pwrite(fd, node->text, node->size, 0) != (ssize_t)node->size ||
			fchmod(fd, S_IRUSR | S_IRGRP | S_IROTH) != 0 ||
			fcntl(fd, F_ADD_SEALS,
					F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) !=
					0) {
		kernel_close(fd);
		errno = EIO;
		return -1;
	}
	return fd;
}

/* Open a node and free it. */
static int
open_node(struct ribv_node *node, int flags)
{
	int fd;

	if ((flags & O_CREAT) != 0 && (flags & O_EXCL) != 0)
		return fail(node, EEXIST);
	if (S_ISDIR(node->mode)) {
		if ((flags & (O_ACCMODE | O_CREAT)) != 0)
			return fail(node, EISDIR);
		fd = ribv_dir_open(node, flags);
	} else if ((flags & O_DIRECTORY) != 0) {
		return fail(node, ENOTDIR);
	} else if (S_ISCHR(node->mode)) {
		/* A child of vfork() would share the parent's state, but not its descriptors. */
		if (!ribv_is_owner())
			return fail(node, ENXIO);
		fd = node->open(flags);
	} else if ((flags & O_ACCMODE) != O_RDONLY) {
		return fail(node, EACCES);
	} else {
		fd = open_text(node, flags);
	}
	free(node);
	return fd;
}

/*
 * Prepare an open call; false if the node is already found. A call that may create a file must not
 * reach the kernel first, where it would create it. For other calls the kernel checks the path
 * first (struct ribv_at).
 */
static bool
open_begin(struct ribv_at *at, int dirfd, const char *path, int flags)
{
	ribv_at_set(at, dirfd, path);
	if (ribv_is_creating(flags))
		ribv_at_before(at);
	return at->node == NULL;
}

/*
 * Handle the result of the next definition; true if it must be called again. The kernel may have a
 * file at a path of the view too, on a host with a NIC. It is closed by the system call: no other
 * code knows the descriptor yet.
 */
static bool
open_again(struct ribv_at *at, int fd)
{
	bool is_again = ribv_at_next(at, fd < 0 ? errno : 0);

	if (fd >= 0 && (is_again || at->node != NULL))
		kernel_close(fd);
	return is_again;
}

#define OPEN(dirfd, path, flags, call)                                                             \
	do {                                                                                       \
		struct ribv_at at;                                                                 \
		bool is_again = open_begin(&at, dirfd, path, flags);                               \
		int fd = -1;                                                                       \
                                                                                                   \
		while (is_again) {                                                                 \
			fd = (call);                                                               \
			is_again = open_again(&at, fd);                                            \
		}                                                                                  \
		return at.node != NULL ? open_node(at.node, flags) : fd;                           \
	} while (0)

#define DEFINE_OPEN(type, name)                                                                    \
	int RIBV_OWN(name)(const char *path, int flags, ...) RIBV_SYMBOL(name);                    \
	int RIBV_OWN(name)(const char *path, int flags, ...)                                       \
	{                                                                                          \
		va_list args;                                                                      \
		mode_t mode;                                                                       \
                                                                                                   \
		va_start(args, flags);                                                             \
		mode = ribv_mode_of(flags, args);                                                  \
		va_end(args);                                                                      \
		OPEN(AT_FDCWD, path, flags, REAL_AS(type, name)(at.path, flags, mode));            \
	}

#define DEFINE_OPENAT(type, name)                                                                  \
	int RIBV_OWN(name)(int dirfd, const char *path, int flags, ...) RIBV_SYMBOL(name);         \
	int RIBV_OWN(name)(int dirfd, const char *path, int flags, ...)                            \
	{                                                                                          \
		va_list args;                                                                      \
		mode_t mode;                                                                       \
                                                                                                   \
		va_start(args, flags);                                                             \
		mode = ribv_mode_of(flags, args);                                                  \
		va_end(args);                                                                      \
		OPEN(dirfd, path, flags, REAL_AS(type, name)(at.dirfd, at.path, flags, mode));     \
	}

#define DEFINE_OPEN_2(type, name)                                                                  \
	int RIBV_OWN(name)(const char *path, int flags) RIBV_SYMBOL(name);                         \
	int RIBV_OWN(name)(const char *path, int flags)                                            \
	{                                                                                          \
		OPEN(AT_FDCWD, path, flags, REAL_AS(type, name)(at.path, flags));                  \
	}

#define DEFINE_OPENAT_2(type, name)                                                                \
	int RIBV_OWN(name)(int dirfd, const char *path, int flags) RIBV_SYMBOL(name);              \
	int RIBV_OWN(name)(int dirfd, const char *path, int flags)                                 \
	{                                                                                          \
		OPEN(dirfd, path, flags, REAL_AS(type, name)(at.dirfd, at.path, flags));           \
	}

RIBV_BOTH(DEFINE_OPEN, open)
RIBV_BOTH(DEFINE_OPENAT, openat)
DEFINE_OPEN_2(__open_2, __open_2)
DEFINE_OPEN_2(__open_2, __open64_2)
DEFINE_OPENAT_2(__openat_2, __openat_2)
DEFINE_OPENAT_2(__openat_2, __openat64_2)

/* Open a node with a mode of fopen(), and free the node. */
static FILE *
open_stream(struct ribv_node *node, const char *mode)
{
	int flags = strchr(mode, '+') != NULL ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
	FILE *file;
	int fd;

	fd = open_node(node, flags | (strchr(mode, 'e') != NULL ? O_CLOEXEC : 0));
	if (fd < 0)
		return NULL;
	file = fdopen(fd, mode);
	if (file == NULL)
		kernel_close(fd);
	return file;
}

typedef FILE *(*fopen_t)(const char *path, const char *mode);

static FILE *
open_file(const char *path, const char *mode, fopen_t next)
{
	struct ribv_at at;
	bool is_again;
	FILE *file;

	ribv_at_set(&at, AT_FDCWD, path);
	if (mode[0] != 'r')
		ribv_at_before(&at);
	if (at.node != NULL)
		return open_stream(at.node, mode);
	do {
		file = next(at.path, mode);
		is_again = ribv_at_next(&at, file == NULL ? errno : 0);
		if (file != NULL && (is_again || at.node != NULL))
			fclose(file);
	} while (is_again);
	return at.node != NULL ? open_stream(at.node, mode) : file;
}

#define DEFINE_FOPEN(type, name)                                                                   \
	FILE *RIBV_OWN(name)(const char *path, const char *mode) RIBV_SYMBOL(name);                \
	FILE *RIBV_OWN(name)(const char *path, const char *mode)                                   \
	{                                                                                          \
		return open_file(path, mode, REAL_AS(type, name));                                 \
	}

RIBV_BOTH(DEFINE_FOPEN, fopen)

/*
 * Report the attributes of a node and free it. Device number, times and owner are copied from the
 * root directory, so they are plausible and equal for all nodes; programs identify files by device
 * and inode.
 */
static int
stat_node(struct ribv_node *node, struct stat *st)
{
	if (kernel_fstatat(AT_FDCWD, "/", st, 0) != 0)
		return fail(node, errno);
	st->st_mode = node->mode;
	st->st_ino = node->ino;
	st->st_nlink = 1; /* subdirectories are not counted */
	st->st_size = S_ISCHR(node->mode) ? 0 : RIBV_NODE_TEXT;
	st->st_rdev = node->rdev;
	free(node);
	return 0;
}

/* Open files of the view have no link (st_nlink is 0), as all memfds and removed files: other files
 * cost no lookup. */
int
ribv_stat_open(int fd, const char *path, struct stat *st)
{
	struct ribv_node *node = st->st_nlink == 0 ? ribv_find_open(fd, path, st->st_mode) : NULL;

	return node != NULL ? stat_node(node, st) : 0;
}

/* Report the attributes of the file that the kernel found, or of the node. */
static int
stat_end(struct ribv_at *at, struct stat *st, int ret)
{
	if (at->node != NULL)
		return stat_node(at->node, st);
	return ret == 0 ? ribv_stat_open(at->dirfd, at->path != NULL ? at->path : "", st) : ret;
}

#define STAT(dirfd, path, st, call)                                                                \
	do {                                                                                       \
		struct ribv_at at;                                                                 \
		int ret;                                                                           \
                                                                                                   \
		ribv_at_set(&at, dirfd, path);                                                     \
		ASK(at, ret, ret != 0, call);                                                      \
		return stat_end(&at, st, ret);                                                     \
	} while (0)

/* Define stat() or lstat(). */
#define DEFINE_STAT(type, name)                                                                    \
	int RIBV_OWN(name)(const char *path, struct stat *st) RIBV_SYMBOL(name);                   \
	int RIBV_OWN(name)(const char *path, struct stat *st)                                      \
	{                                                                                          \
		STAT(AT_FDCWD, path, st, REAL_AS(type, name)(at.path, st));                        \
	}

#define DEFINE_FSTATAT(type, name)                                                                 \
	int RIBV_OWN(name)(int dirfd, const char *path, struct stat *st, int flags)                \
			RIBV_SYMBOL(name);                                                         \
	int RIBV_OWN(name)(int dirfd, const char *path, struct stat *st, int flags)                \
	{                                                                                          \
		STAT(dirfd, path, st, REAL_AS(type, name)(at.dirfd, at.path, st, flags));          \
	}

/* Define __xstat() or __lxstat(). libc refuses versions with another struct stat. */
#define DEFINE_XSTAT(type, name)                                                                   \
	int RIBV_OWN(name)(int version, const char *path, struct stat *st) RIBV_SYMBOL(name);      \
	int RIBV_OWN(name)(int version, const char *path, struct stat *st)                         \
	{                                                                                          \
		STAT(AT_FDCWD, path, st, REAL_AS(type, name)(version, at.path, st));               \
	}

#define DEFINE_FXSTATAT(type, name)                                                                \
	int RIBV_OWN(name)(int version, int dirfd, const char *path, struct stat *st, int flags)   \
			RIBV_SYMBOL(name);                                                         \
	int RIBV_OWN(name)(int version, int dirfd, const char *path, struct stat *st, int flags)   \
	{                                                                                          \
		STAT(dirfd, path, st, REAL_AS(type, name)(version, at.dirfd, at.path, st, flags)); \
	}

RIBV_BOTH(DEFINE_STAT, stat)
RIBV_BOTH(DEFINE_STAT, lstat)
RIBV_BOTH(DEFINE_FSTATAT, fstatat)
RIBV_BOTH(DEFINE_XSTAT, __xstat)
RIBV_BOTH(DEFINE_XSTAT, __lxstat)
RIBV_BOTH(DEFINE_FXSTATAT, __fxstatat)

static int
statx_node(struct ribv_node *node, unsigned int mask, struct statx *st)
{
	if (REAL(statx)(AT_FDCWD, "/", 0, mask, st) != 0)
		return fail(node, errno);
	st->stx_mode = (uint16_t)node->mode;
	st->stx_ino = node->ino;
	st->stx_nlink = 1;
	st->stx_size = S_ISCHR(node->mode) ? 0 : RIBV_NODE_TEXT;
	st->stx_rdev_major = major(node->rdev);
	st->stx_rdev_minor = minor(node->rdev);
	free(node);
	return 0;
}

int
statx(int dirfd, const char *path, int flags, unsigned int mask, struct statx *st)
{
	struct ribv_at at;
	int ret;

	ribv_at_set(&at, dirfd, path);
	ASK(at, ret, ret != 0, REAL(statx)(at.dirfd, at.path, flags, mask, st));
	if (ret == 0 && at.node == NULL && at.path != NULL && st->stx_nlink == 0 &&
			(st->stx_mask & STATX_NLINK) != 0)
		at.node = ribv_find_open(at.dirfd, at.path, st->stx_mode);
	return at.node != NULL ? statx_node(at.node, mask, st) : ret;
}

static int
access_node(struct ribv_node *node, int mode)
{
	if (((mode & W_OK) != 0 && !S_ISCHR(node->mode)) ||
			((mode & X_OK) != 0 && !S_ISDIR(node->mode)))
		return fail(node, EACCES);
	free(node);
	return 0;
}

int
faccessat(int dirfd, const char *path, int mode, int flags)
{
	struct ribv_at at;
	int ret;

	ribv_at_set(&at, dirfd, path);
	ASK(at, ret, ret != 0, REAL(faccessat)(at.dirfd, at.path, mode, flags));
	return at.node != NULL ? access_node(at.node, mode) : ret;
}

#define DEFINE_ACCESS(type, name)                                                                  \
	int RIBV_OWN(name)(const char *path, int mode) RIBV_SYMBOL(name);                          \
	int RIBV_OWN(name)(const char *path, int mode)                                             \
	{                                                                                          \
		struct ribv_at at;                                                                 \
		int ret;                                                                           \
                                                                                                   \
		ribv_at_set(&at, AT_FDCWD, path);                                                  \
		ASK(at, ret, ret != 0, REAL_AS(type, name)(at.path, mode));                        \
		return at.node != NULL ? access_node(at.node, mode) : ret;                         \
	}

DEFINE_ACCESS(access, access)
DEFINE_ACCESS(access, eaccess)
DEFINE_ACCESS(access, euidaccess)

/*
 * No node is a symbolic link: fail with EINVAL, as the kernel does. Programs probe paths with
 * readlink().
 */
#define READLINK(dirfd, path, call)                                                                \
	do {                                                                                       \
		struct ribv_at at;                                                                 \
		ssize_t ret;                                                                       \
                                                                                                   \
		ribv_at_set(&at, dirfd, path);                                                     \
		ASK(at, ret, ret < 0, call);                                                       \
		return at.node != NULL ? fail(at.node, EINVAL) : ret;                              \
	} while (0)

ssize_t
readlinkat(int dirfd, const char *path, char *buf, size_t size)
{
	READLINK(dirfd, path, REAL(readlinkat)(at.dirfd, at.path, buf, size));
}

ssize_t
readlink(const char *path, char *buf, size_t size)
{
	READLINK(AT_FDCWD, path, REAL(readlink)(at.path, buf, size));
}

ssize_t
__readlinkat_chk(int dirfd, const char *path, char *buf, size_t size, size_t buf_size)
{
	READLINK(dirfd, path, REAL(__readlinkat_chk)(at.dirfd, at.path, buf, size, buf_size));
}

ssize_t
__readlink_chk(const char *path, char *buf, size_t size, size_t buf_size)
{
	READLINK(AT_FDCWD, path, REAL(__readlink_chk)(at.path, buf, size, buf_size));
}

/* No node has extended attributes, which ls -l queries. */
#define NO_ATTRIBUTES(name, own, params, args)                                                     \
	ssize_t name params                                                                        \
	{                                                                                          \
		struct ribv_at at;                                                                 \
		ssize_t ret;                                                                       \
                                                                                                   \
		ribv_at_set(&at, AT_FDCWD, path);                                                  \
		ASK(at, ret, ret < 0, REAL(name) args);                                            \
		return at.node != NULL ? own : ret;                                                \
	}

/* clang-format off */
NO_ATTRIBUTES(getxattr, fail(at.node, EOPNOTSUPP),
		(const char *path, const char *name, void *value, size_t size),
		(at.path, name, value, size))
NO_ATTRIBUTES(lgetxattr, fail(at.node, EOPNOTSUPP),
		(const char *path, const char *name, void *value, size_t size),
		(at.path, name, value, size))
NO_ATTRIBUTES(listxattr, (free(at.node), 0), (const char *path, char *list, size_t size),
		(at.path, list, size))
NO_ATTRIBUTES(llistxattr, (free(at.node), 0), (const char *path, char *list, size_t size),
		(at.path, list, size))
/* clang-format on */

static char *
resolve_node(struct ribv_node *node, char *resolved)
{
	if (resolved == NULL)
		resolved = strdup(node->path);
	else
		memcpy(resolved, node->path, strlen(node->path) + 1);
	free(node);
	return resolved;
}

#define REALPATH(path, resolved, call)                                                             \
	do {                                                                                       \
		struct ribv_at at;                                                                 \
		char *ret;                                                                         \
                                                                                                   \
		ribv_at_set(&at, AT_FDCWD, path);                                                  \
		ASK(at, ret, ret == NULL, call);                                                   \
		if (at.node == NULL)                                                               \
			return ret;                                                                \
		if ((resolved) == NULL)                                                            \
			free(ret);                                                                 \
		return resolve_node(at.node, resolved);                                            \
	} while (0)

char *
realpath(const char *path, char *resolved)
{
	REALPATH(path, resolved, REAL(realpath)(at.path, resolved));
}

char *
__realpath_chk(const char *path, char *resolved, size_t size)
{
	REALPATH(path, resolved, REAL(__realpath_chk)(at.path, resolved, size));
}

char *
canonicalize_file_name(const char *path)
{
	REALPATH(path, NULL, REAL(canonicalize_file_name)(at.path));
}

static int
change_dir(struct ribv_node *node)
{
	int fd, ret;

	if (!S_ISDIR(node->mode))
		return fail(node, ENOTDIR);
	fd = ribv_dir_open(node, O_PATH | O_CLOEXEC);
	free(node);
	if (fd < 0)
		return -1;
	ribv_cwd_set(fd);
	ret = REAL(fchdir)(fd);
	kernel_close(fd);
	return ret;
}

int
chdir(const char *path)
{
	struct ribv_at at;
	int ret = 0;

	ribv_at_set(&at, AT_FDCWD, path);
	ribv_at_before(&at);
	if (at.node == NULL) {
		do
			ret = REAL(chdir)(at.path);
		while (ret != 0 && ribv_at_next(&at, errno));
	}
	return at.node != NULL ? change_dir(at.node) : ret;
}

/*
 * A directory of the view has no link, which is recorded before the call; that is harmless if the
 * call fails.
 */
int
fchdir(int fd)
{
	ribv_cwd_set(fd);
	return REAL(fchdir)(fd);
}

/*
 * Finish getcwd(): return the path of a directory of the view. It has no link, so the kernel fails
 * with ENOENT. A buffer that is too small gives ERANGE, as in the kernel.
 */
static char *
getcwd_end(char *ret, char *buf, size_t size)
{
	char path[RIBV_PATH];

	if (ret != NULL || errno != ENOENT)
		return ret;
	if (!ribv_path_of(AT_FDCWD, path)) {
		errno = ENOENT;
		return NULL;
	}
	if (buf == NULL && size == 0)
		return strdup(path);
	if (strlen(path) >= size) {
		errno = ERANGE;
		return NULL;
	}
	if (buf == NULL)
		buf = malloc(size);
	return buf != NULL ? memcpy(buf, path, strlen(path) + 1) : NULL;
}

char *
getcwd(char *buf, size_t size)
{
	return getcwd_end(REAL(getcwd)(buf, size), buf, size);
}

char *
__getcwd_chk(char *buf, size_t size, size_t buf_size)
{
	return getcwd_end(REAL(__getcwd_chk)(buf, size, buf_size), buf, size);
}
