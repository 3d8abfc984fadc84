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
	int fd = memfd_create(strrchr(node->path, '/') + 1,
			MFD_ALLOW_SEALING | ((flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0));

	if (fd < 0)
		return -1;
	if (pwrite(fd, node->text, node->size, 0) != (ssize_t)node->size ||
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
		fd = node->open(flags);
	} else if ((flags & O_ACCMODE) != O_RDONLY) {
		return fail(node, EACCES);
	} else {
		fd = open_text(node, flags);
	}
	free(node);
	return fd;
}

static int
open_at(int dirfd, const char *path, int flags, mode_t mode)
{
	struct ribv_node *node = ribv_find_before(dirfd, path);
	int fd;

	if (node != NULL)
		return open_node(node, flags);
	fd = REAL(openat)(dirfd, path, flags, mode);
	if (fd >= 0 || (node = ribv_find_after(dirfd, path)) == NULL)
		return fd;
	return open_node(node, flags);
}

/* The mode follows the flags if a file may be created. */
static mode_t
mode_of(int flags, va_list args)
{
	return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(args, mode_t)
									  : 0;
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
	struct ribv_node *node = ribv_find_before(AT_FDCWD, path);
	FILE *file;

	if (node != NULL)
		return open_stream(node, mode);
	file = REAL(fopen)(path, mode);
	if (file != NULL || (node = ribv_find_after(AT_FDCWD, path)) == NULL)
		return file;
	return open_stream(node, mode);
}

/* The attributes of a node, which is freed; the others are those of the root directory. */
static int
stat_node(struct ribv_node *node, struct stat *st)
{
	if (REAL(fstatat)(AT_FDCWD, "/", st, 0) != 0)
		return fail(node, errno);
	st->st_mode = node->mode;
	st->st_ino = node->ino;
	st->st_nlink = S_ISDIR(node->mode) ? 2 : 1;
	st->st_size = S_ISCHR(node->mode) ? 0 : RIBV_NODE_TEXT;
	st->st_rdev = node->rdev;
	free(node);
	return 0;
}

int
fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	struct ribv_node *node = ribv_find_before(dirfd, path);
	int ret;

	if (node != NULL)
		return stat_node(node, st);
	ret = REAL(fstatat)(dirfd, path, st, flags);
	if (ret == 0 || (node = ribv_find_after(dirfd, path)) == NULL)
		return ret;
	return stat_node(node, st);
}

int
stat(const char *path, struct stat *st)
{
	return fstatat(AT_FDCWD, path, st, 0);
}

int
lstat(const char *path, struct stat *st)
{
	return fstatat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

static int
statx_node(struct ribv_node *node, unsigned int mask, struct statx *st)
{
	if (REAL(statx)(AT_FDCWD, "/", 0, mask, st) != 0)
		return fail(node, errno);
	st->stx_mode = (uint16_t)node->mode;
	st->stx_ino = node->ino;
	st->stx_nlink = S_ISDIR(node->mode) ? 2 : 1;
	st->stx_size = S_ISCHR(node->mode) ? 0 : RIBV_NODE_TEXT;
	st->stx_rdev_major = major(node->rdev);
	st->stx_rdev_minor = minor(node->rdev);
	free(node);
	return 0;
}

int
statx(int dirfd, const char *path, int flags, unsigned int mask, struct statx *st)
{
	struct ribv_node *node = ribv_find_before(dirfd, path);
	int ret;

	if (node != NULL)
		return statx_node(node, mask, st);
	ret = REAL(statx)(dirfd, path, flags, mask, st);
	if (ret == 0 || (node = ribv_find_after(dirfd, path)) == NULL)
		return ret;
	return statx_node(node, mask, st);
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
	struct ribv_node *node = ribv_find_before(dirfd, path);
	int ret;

	if (node != NULL)
		return access_node(node, mode);
	ret = REAL(faccessat)(dirfd, path, mode, flags);
	if (ret == 0 || (node = ribv_find_after(dirfd, path)) == NULL)
		return ret;
	return access_node(node, mode);
}

int
access(const char *path, int mode)
{
	return faccessat(AT_FDCWD, path, mode, 0);
}

int
euidaccess(const char *path, int mode)
{
	return faccessat(AT_FDCWD, path, mode, AT_EACCESS);
}

/* No node is a link. */
ssize_t
readlinkat(int dirfd, const char *path, char *buf, size_t size)
{
	struct ribv_node *node = ribv_find_before(dirfd, path);
	ssize_t ret;

	if (node != NULL)
		return fail(node, EINVAL);
	ret = REAL(readlinkat)(dirfd, path, buf, size);
	if (ret >= 0 || (node = ribv_find_after(dirfd, path)) == NULL)
		return ret;
	return fail(node, EINVAL);
}

ssize_t
readlink(const char *path, char *buf, size_t size)
{
	return readlinkat(AT_FDCWD, path, buf, size);
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
	return __readlinkat_chk(AT_FDCWD, path, buf, size, buf_size);
}

/* No node has extended attributes, which ls -l requests. */
#define NO_ATTRIBUTES(name, own, params, args)                                                     \
	ssize_t name params                                                                        \
	{                                                                                          \
		struct ribv_node *node = ribv_find_before(AT_FDCWD, path);                         \
		ssize_t ret;                                                                       \
                                                                                                   \
		if (node != NULL)                                                                  \
			return own;                                                                \
		ret = REAL(name) args;                                                             \
		if (ret >= 0 || (node = ribv_find_after(AT_FDCWD, path)) == NULL)                  \
			return ret;                                                                \
		return own;                                                                        \
	}

/* clang-format off */
NO_ATTRIBUTES(getxattr, fail(node, EOPNOTSUPP),
		(const char *path, const char *name, void *value, size_t size),
		(path, name, value, size))
NO_ATTRIBUTES(lgetxattr, fail(node, EOPNOTSUPP),
		(const char *path, const char *name, void *value, size_t size),
		(path, name, value, size))
NO_ATTRIBUTES(listxattr, (free(node), 0), (const char *path, char *list, size_t size),
		(path, list, size))
NO_ATTRIBUTES(llistxattr, (free(node), 0), (const char *path, char *list, size_t size),
		(path, list, size))
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
	struct ribv_node *node = ribv_find_before(AT_FDCWD, path);
	char *ret;

	if (node != NULL)
		return resolve_node(node, resolved);
	ret = REAL(realpath)(path, resolved);
	if (ret != NULL || path == NULL || (node = ribv_find_after(AT_FDCWD, path)) == NULL)
		return ret;
	return resolve_node(node, resolved);
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
	ret = fchdir(fd);
	close(fd);
	return ret;
}

int
chdir(const char *path)
{
	struct ribv_node *node = ribv_find_before(AT_FDCWD, path);
	int ret;

	if (node != NULL)
		return change_dir(node);
	ret = REAL(chdir)(path);
	if (ret == 0 || (node = ribv_find_after(AT_FDCWD, path)) == NULL)
		return ret;
	return change_dir(node);
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
RIBV_SAME(eaccess, euidaccess);
