/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Directory streams. The stream of a directory of the view has the names of the view and, if the
 * kernel has a directory of this path too, the kernel's names. They are read when the stream is
 * opened.
 *
 * Invariant: a stream of the view is an element of streams[]; any other pointer belongs to libc.
 * Invariant: is_used, exchanged with acquire and stored with release, gives an element to one
 * thread; its other fields are not shared. There is no lock, which a child of fork() could find
 * locked.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ribv_file.h"

#define MAX_STREAMS 64

struct stream {
	bool is_used; /* atomic */
	int fd;       /* -1: not opened yet */
	size_t count, at;
	struct dirent *entries;
	struct ribv_node *node;
};

static struct stream streams[MAX_STREAMS];

/* Return the stream of the view, or NULL. Only the address is compared, because libc's memory has
 * an unknown layout. */
static struct stream *
own(DIR *dir)
{
	uintptr_t at = (uintptr_t)dir - (uintptr_t)streams;

	return at < sizeof(streams) ? (struct stream *)(void *)dir : NULL;
}

static bool
has(const struct stream *stream, const char *name)
{
	size_t i;

	for (i = 0; i < stream->count; i++) {
		if (strcmp(stream->entries[i].d_name, name) == 0)
			return true;
	}
	return false;
}

/* Add a name, unless it is there; false: no memory. */
static bool
add(struct stream *stream, const char *name, uint8_t type, ino_t ino)
{
	struct dirent *entries, *entry;

	if (has(stream, name))
		return true;
	entries = realloc(stream->entries, (stream->count + 1) * sizeof(*entries));
	if (entries == NULL)
		return false;
	stream->entries = entries;
	entry = &entries[stream->count++];
	memset(entry, 0, sizeof(*entry));
	entry->d_ino = ino;
	entry->d_off = (off_t)stream->count;
	entry->d_reclen = sizeof(*entry);
	entry->d_type = type;
	snprintf(entry->d_name, sizeof(entry->d_name), "%s", name);
	return true;
}

/*
 * Add the names of the view first, so that equal names of the kernel are dropped. All are read now,
 * so readdir() allocates nothing.
 */
static bool
fill(struct stream *stream)
{
	const struct ribv_node *node = stream->node;
	const uint32_t below = ribv_ino(node->ino, "/");
	char parent[RIBV_PATH + 4];
	const struct dirent *entry;
	struct stat st = {0};
	bool has_memory;
	DIR *dir;
	size_t i;

	snprintf(parent, sizeof(parent), "%s/..", node->path);
	has_memory = add(stream, ".", DT_DIR, node->ino);
	has_memory = has_memory &&
			add(stream, "..", DT_DIR,
					fstatat(AT_FDCWD, parent, &st, 0) == 0 ? st.st_ino : 1);
	for (i = 0; i < node->size && has_memory; i += strlen(node->text + i) + 1)
		has_memory = add(stream, node->text + i, DT_UNKNOWN,
				ribv_ino(below, node->text + i));
	dir = REAL(opendir)(node->path);
	while (has_memory && dir != NULL && (entry = REAL(readdir)(dir)) != NULL)
		has_memory = add(stream, entry->d_name, entry->d_type, entry->d_ino);
	if (dir != NULL)
		REAL(closedir)(dir);
	return has_memory;
}

/* Release: the fields are freed before open_node() acquires the element again. */
static void
release(struct stream *stream)
{
	free(stream->entries);
	free(stream->node);
	__atomic_store_n(&stream->is_used, false, __ATOMIC_RELEASE);
}

/* Open a stream for the node, and take ownership of the node. */
static DIR *
open_node(struct ribv_node *node, int fd)
{
	struct stream *stream = streams;
	int err = errno;

	/* No lock: opendir() may be called in a child of fork(). */
	while (stream < streams + MAX_STREAMS &&
			__atomic_exchange_n(&stream->is_used, true, __ATOMIC_ACQUIRE))
		stream++;
	if (!S_ISDIR(node->mode) || stream == streams + MAX_STREAMS) {
		err = S_ISDIR(node->mode) ? EMFILE : ENOTDIR;
		if (stream != streams + MAX_STREAMS)
			__atomic_store_n(&stream->is_used, false, __ATOMIC_RELEASE);
		free(node);
		errno = err;
		return NULL;
	}
	stream->node = node;
	stream->fd = fd;
	stream->count = stream->at = 0;
	stream->entries = NULL;
	if (!fill(stream)) {
		release(stream);
		errno = ENOMEM;
		return NULL;
	}
	errno = err;
	return (DIR *)(void *)stream;
}

/*
 * Find the node of an open directory, or of the working directory (AT_FDCWD). Other directories
 * have links, and cost only one system call.
 */
static struct ribv_node *
find_open(int fd)
{
	int err = errno;
	struct stat st;
	bool is_removed = kernel_fstatat(fd, fd == AT_FDCWD ? "." : "", &st, AT_EMPTY_PATH) == 0 &&
			st.st_nlink == 0;

	errno = err;
	return is_removed ? ribv_find_open(fd, ".", st.st_mode) : NULL;
}

DIR *
opendir(const char *path)
{
	struct ribv_at at;
	bool is_again;
	DIR *dir;

	ribv_at_set(&at, AT_FDCWD, path);
	do {
		dir = REAL(opendir)(at.path);
		is_again = ribv_at_next(&at, dir == NULL ? errno : 0);
		/* "." of a working directory of the view */
		if (dir != NULL && !is_again && at.node == NULL && at.path[0] == '.' &&
				ribv_may_be_in_view(AT_FDCWD))
			at.node = find_open(REAL(dirfd)(dir));
		if (dir != NULL && (is_again || at.node != NULL))
			REAL(closedir)(dir);
	} while (is_again);
	return at.node != NULL ? open_node(at.node, -1) : dir;
}

DIR *
fdopendir(int fd)
{
	struct ribv_node *node = find_open(fd);

	return node != NULL ? open_node(node, fd) : REAL(fdopendir)(fd);
}

/* Return the next entry of a stream of the view. */
static struct dirent *
read_entry(struct stream *stream)
{
	return stream->at < stream->count ? &stream->entries[stream->at++] : NULL;
}

#define DEFINE_READDIR(type, name)                                                                 \
	struct dirent *RIBV_OWN(name)(DIR * dir) RIBV_SYMBOL(name);                                \
	struct dirent *RIBV_OWN(name)(DIR * dir)                                                   \
	{                                                                                          \
		struct stream *stream = own(dir);                                                  \
                                                                                                   \
		return stream != NULL ? read_entry(stream) : REAL_AS(type, name)(dir);             \
	}

RIBV_BOTH(DEFINE_READDIR, readdir)

/* Deprecated, but a stream of the view must not reach libc. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static int
read_entry_r(struct stream *stream, struct dirent *entry, struct dirent **result)
{
	const struct dirent *next = read_entry(stream);

	*result = next != NULL ? memcpy(entry, next, sizeof(*entry)) : NULL;
	return 0;
}

#define DEFINE_READDIR_R(type, name)                                                               \
	int RIBV_OWN(name)(DIR * dir, struct dirent * entry, struct dirent * *result)              \
			RIBV_SYMBOL(name);                                                         \
	int RIBV_OWN(name)(DIR * dir, struct dirent * entry, struct dirent * *result)              \
	{                                                                                          \
		struct stream *stream = own(dir);                                                  \
                                                                                                   \
		return stream != NULL ? read_entry_r(stream, entry, result)                        \
				      : REAL_AS(type, name)(dir, entry, result);                   \
	}

DEFINE_READDIR_R(readdir_r, readdir_r)
DEFINE_READDIR_R(readdir_r, readdir64_r)

int
closedir(DIR *dir)
{
	struct stream *stream = own(dir);

	if (stream == NULL)
		return REAL(closedir)(dir);
	if (stream->fd >= 0)
		kernel_close(stream->fd);
	release(stream);
	return 0;
}

int
dirfd(DIR *dir)
{
	struct stream *stream = own(dir);

	if (stream == NULL)
		return REAL(dirfd)(dir);
	/*
	 * Open the descriptor on demand, since few programs need it. The stream owns it as
	 * fdopendir() does: closedir() closes it.
	 */
	if (stream->fd < 0)
		stream->fd = ribv_dir_open(stream->node, O_CLOEXEC);
	return stream->fd;
}

void
rewinddir(DIR *dir)
{
	struct stream *stream = own(dir);

	if (stream == NULL)
		REAL(rewinddir)(dir);
	else
		stream->at = 0;
}

long
telldir(DIR *dir)
{
	struct stream *stream = own(dir);

	return stream == NULL ? REAL(telldir)(dir) : (long)stream->at;
}

void
seekdir(DIR *dir, long at)
{
	struct stream *stream = own(dir);

	if (stream == NULL)
		REAL(seekdir)(dir, at);
	else
		stream->at = (size_t)at;
}

typedef int (*compare_t)(const struct dirent **, const struct dirent **);

static int
compare(const void *a, const void *b, void *arg)
{
	union {
		const void *bytes;
		const struct dirent **entry;
	} left = {.bytes = a}, right = {.bytes = b};

	return (*(compare_t *)arg)(left.entry, right.entry);
}

/*
 * Return the entries of a stream of the view as scandir() does, and close the stream. Each entry is
 * allocated separately, because the program frees them so. An entry without memory is left out,
 * because the filter has already been called for it.
 */
static int
scan(DIR *dir, struct dirent ***list, int (*filter)(const struct dirent *), compare_t order)
{
	struct stream *stream = own(dir);
	struct dirent **found = calloc(stream->count, sizeof(struct dirent *));
	const struct dirent *entry;
	int n = 0;

	while (found != NULL && (entry = read_entry(stream)) != NULL) {
		if (filter != NULL && filter(entry) == 0)
			continue;
		found[n] = malloc(sizeof(*entry));
		if (found[n] != NULL)
			memcpy(found[n++], entry, sizeof(*entry));
	}
	release(stream);
	if (found == NULL)
		return -1;
	if (order != NULL)
		qsort_r(found, (size_t)n, sizeof(struct dirent *), compare, &order);
	*list = found;
	return n;
}

/* Find the node of a path as opendir() does. This calls the kernel, not the next definition, so
 * that the filter sees each entry once. */
static void
find_dir(struct ribv_at *at, const char *path)
{
	bool is_again;
	int fd;

	ribv_at_set(at, AT_FDCWD, path);
	do {
		fd = kernel_open(at->path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
		is_again = ribv_at_next(at, fd < 0 ? errno : 0);
		if (fd >= 0 && !is_again && at->node == NULL && at->path[0] == '.' &&
				ribv_may_be_in_view(AT_FDCWD))
			at->node = find_open(fd);
		if (fd >= 0)
			kernel_close(fd);
	} while (is_again);
}

#define DEFINE_SCANDIR(type, name)                                                                 \
	int RIBV_OWN(name)(const char *path, struct dirent ***list,                                \
			int (*filter)(const struct dirent *), compare_t order) RIBV_SYMBOL(name);  \
	int RIBV_OWN(name)(const char *path, struct dirent ***list,                                \
			int (*filter)(const struct dirent *), compare_t order)                     \
	{                                                                                          \
		struct ribv_at at;                                                                 \
		DIR *dir;                                                                          \
                                                                                                   \
		find_dir(&at, path);                                                               \
		if (at.node == NULL)                                                               \
			return REAL_AS(type, name)(at.path, list, filter, order);                  \
		dir = open_node(at.node, -1);                                                      \
		return dir != NULL ? scan(dir, list, filter, order) : -1;                          \
	}

RIBV_BOTH(DEFINE_SCANDIR, scandir)
