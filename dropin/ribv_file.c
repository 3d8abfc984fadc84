/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Functions that take the path of a file: those of libc, except for files of the view. */

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "ribv_file.h"

/* The functions of programs that are compiled with _FORTIFY_SOURCE. */
int __open_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t buf_size);
ssize_t __readlinkat_chk(int dirfd, const char *path, char *buf, size_t size, size_t buf_size);
char *__realpath_chk(const char *path, char *resolved, size_t size);
char *__getcwd_chk(char *buf, size_t size, size_t buf_size);

/* Those of programs linked before glibc 2.33. */
int __xstat(int version, const char *path, struct stat *st);
int __lxstat(int version, const char *path, struct stat *st);
int __fxstatat(int version, int dirfd, const char *path, struct stat *st, int flags);
int __close(int fd);

/* Call a function for at.path, until it is that of the kernel's file or there is a node. */
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

/* A file with the content of the node, which is immutable. */
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
		close(fd);
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
		/* Its state would be that of the parent, and its descriptor not. */
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

/* Whether the kernel may create a file. */
static bool
is_creating(int flags)
{
	return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

static int
open_at(int dirfd, const char *path, int flags, mode_t mode)
{
	struct ribv_at at;
	bool is_again;
	int fd;

	ribv_at_set(&at, dirfd, path);
	if (is_creating(flags))
		ribv_at_before(&at);
	if (at.node != NULL)
		return open_node(at.node, flags);
	do {
		fd = REAL(openat)(at.dirfd, at.path, flags, mode);
		is_again = ribv_at_next(&at, fd < 0 ? errno : 0);
		if (fd >= 0 && (is_again || at.node != NULL))
			__close(fd);
	} while (is_again);
	return at.node != NULL ? open_node(at.node, flags) : fd;
}

/* The mode follows the flags if a file may be created. */
static mode_t
mode_of(int flags, va_list args)
{
	return is_creating(flags) ? va_arg(args, mode_t) : 0;
}

int
open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = mode_of(flags, args);
	va_end(args);
	return open_at(AT_FDCWD, path, flags, mode);
}

int
openat(int dirfd, const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = mode_of(flags, args);
	va_end(args);
	return open_at(dirfd, path, flags, mode);
}

int
__open_2(const char *path, int flags)
{
	return open_at(AT_FDCWD, path, flags, 0);
}

int
__openat_2(int dirfd, const char *path, int flags)
{
	return open_at(dirfd, path, flags, 0);
}

/* Open a node by a mode of fopen(), and free it. */
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
		close(fd);
	return file;
}

FILE *
fopen(const char *path, const char *mode)
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
		file = REAL(fopen)(at.path, mode);
		is_again = ribv_at_next(&at, file == NULL ? errno : 0);
		if (file != NULL && (is_again || at.node != NULL))
			fclose(file);
	} while (is_again);
	return at.node != NULL ? open_stream(at.node, mode) : file;
}

/* The attributes of a node, which is freed; the others are those of the root directory. */
static int
stat_node(struct ribv_node *node, struct stat *st)
{
	if (REAL(fstatat)(AT_FDCWD, "/", st, 0) != 0)
		return fail(node, errno);
	st->st_mode = node->mode;
	st->st_ino = node->ino;
	st->st_nlink = 1; /* of a directory: not counted */
	st->st_size = S_ISCHR(node->mode) ? 0 : RIBV_NODE_TEXT;
	st->st_rdev = node->rdev;
	free(node);
	return 0;
}

int
ribv_stat_open(int fd, const char *path, struct stat *st)
{
	struct ribv_node *node = st->st_nlink == 0 ? ribv_find_open(fd, path, st->st_mode) : NULL;

	return node != NULL ? stat_node(node, st) : 0;
}

/* Those of the file that the kernel found, or of the node. */
static int
stat_end(struct ribv_at *at, struct stat *st, int ret)
{
	if (at->node != NULL)
		return stat_node(at->node, st);
	return ret == 0 ? ribv_stat_open(at->dirfd, at->path != NULL ? at->path : "", st) : ret;
}

int
fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	struct ribv_at at;
	int ret;

	ribv_at_set(&at, dirfd, path);
	ASK(at, ret, ret != 0, REAL(fstatat)(at.dirfd, at.path, st, flags));
	return stat_end(&at, st, ret);
}

/* Libc has stat() and lstat() since 2.33. */
int
stat(const char *path, struct stat *st)
{
	struct ribv_at at;
	int ret;

	if (REAL(stat) == NULL)
		return fstatat(AT_FDCWD, path, st, 0);
	ribv_at_set(&at, AT_FDCWD, path);
	ASK(at, ret, ret != 0, REAL(stat)(at.path, st));
	return stat_end(&at, st, ret);
}

int
lstat(const char *path, struct stat *st)
{
	struct ribv_at at;
	int ret;

	if (REAL(lstat) == NULL)
		return fstatat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
	ribv_at_set(&at, AT_FDCWD, path);
	ASK(at, ret, ret != 0, REAL(lstat)(at.path, st));
	return stat_end(&at, st, ret);
}

/* Versions of struct stat that are not negative are this one. */
int
__xstat(int version, const char *path, struct stat *st)
{
	return version >= 0 ? stat(path, st) : fail(NULL, EINVAL);
}

int
__lxstat(int version, const char *path, struct stat *st)
{
	return version >= 0 ? lstat(path, st) : fail(NULL, EINVAL);
}

int
__fxstatat(int version, int dirfd, const char *path, struct stat *st, int flags)
{
	return version >= 0 ? fstatat(dirfd, path, st, flags) : fail(NULL, EINVAL);
}

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

int
access(const char *path, int mode)
{
	struct ribv_at at;
	int ret;

	ribv_at_set(&at, AT_FDCWD, path);
	ASK(at, ret, ret != 0, REAL(access)(at.path, mode));
	return at.node != NULL ? access_node(at.node, mode) : ret;
}

int
euidaccess(const char *path, int mode)
{
	struct ribv_at at;
	int ret;

	ribv_at_set(&at, AT_FDCWD, path);
	ASK(at, ret, ret != 0, REAL(euidaccess)(at.path, mode));
	return at.node != NULL ? access_node(at.node, mode) : ret;
}

/* No node is a link. */
ssize_t
readlinkat(int dirfd, const char *path, char *buf, size_t size)
{
	struct ribv_at at;
	ssize_t ret;

	ribv_at_set(&at, dirfd, path);
	ASK(at, ret, ret < 0, REAL(readlinkat)(at.dirfd, at.path, buf, size));
	return at.node != NULL ? fail(at.node, EINVAL) : ret;
}

ssize_t
readlink(const char *path, char *buf, size_t size)
{
	struct ribv_at at;
	ssize_t ret;

	ribv_at_set(&at, AT_FDCWD, path);
	ASK(at, ret, ret < 0, REAL(readlink)(at.path, buf, size));
	return at.node != NULL ? fail(at.node, EINVAL) : ret;
}

ssize_t
__readlinkat_chk(int dirfd, const char *path, char *buf, size_t size, size_t buf_size)
{
	if (size > buf_size)
		abort();
	return readlinkat(dirfd, path, buf, size);
}

ssize_t
__readlink_chk(const char *path, char *buf, size_t size, size_t buf_size)
{
	if (size > buf_size)
		abort();
	return readlink(path, buf, size);
}

/* No node has extended attributes, which ls -l requests. */
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

char *
realpath(const char *path, char *resolved)
{
	struct ribv_at at;
	char *ret;

	ribv_at_set(&at, AT_FDCWD, path);
	ASK(at, ret, ret == NULL, REAL(realpath)(at.path, resolved));
	if (at.node == NULL)
		return ret;
	if (resolved == NULL)
		free(ret);
	return resolve_node(at.node, resolved);
}

char *
__realpath_chk(const char *path, char *resolved, size_t size)
{
	if (size < PATH_MAX)
		abort();
	return realpath(path, resolved);
}

char *
canonicalize_file_name(const char *path)
{
	return realpath(path, NULL);
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
	close(fd);
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

int
fchdir(int fd)
{
	ribv_cwd_set(fd);
	return REAL(fchdir)(fd);
}

char *
getcwd(char *buf, size_t size)
{
	char *ret = REAL(getcwd)(buf, size);
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
__getcwd_chk(char *buf, size_t size, size_t buf_size)
{
	if (size > buf_size)
		abort();
	return getcwd(buf, size);
}

RIBV_SAME(open64, open);
RIBV_SAME(openat64, openat);
RIBV_SAME(__open64_2, __open_2);
RIBV_SAME(__openat64_2, __openat_2);
RIBV_SAME(fopen64, fopen);
RIBV_SAME(stat64, stat);
RIBV_SAME(lstat64, lstat);
RIBV_SAME(fstatat64, fstatat);
RIBV_SAME(__xstat64, __xstat);
RIBV_SAME(__lxstat64, __lxstat);
RIBV_SAME(__fxstatat64, __fxstatat);
RIBV_SAME(eaccess, euidaccess);
