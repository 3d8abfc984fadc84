/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The view: files of the device below /sys/class/infiniband, /sys/class/infiniband_verbs and
 * /dev/infiniband, which have no file in the file system. The core knows the names and contents
 * (ribv_view.c). The preloaded library defines the functions that take a path (ribv_file.c,
 * ribv_dir.c, ribv_path.c).
 *
 * A regular file is opened as a sealed memfd. A directory is opened as a directory that has been
 * removed. The name of either has the path: so the kernel returns the path for each copy of the
 * descriptor, and for a working directory, after dup(), fork() and exec(). No file remains.
 */

#ifndef RIBV_FILE_H
#define RIBV_FILE_H

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "ribv_libc.h"

/* All paths of the view begin with one of these. */
#define RIBV_SYSFS       "/sys/class/infiniband"
#define RIBV_SYSFS_VERBS "/sys/class/infiniband_verbs"
#define RIBV_DEV         "/dev/infiniband"

#define RIBV_PATH      512
#define RIBV_NODE_TEXT 4096

/* A file of the view. */
struct ribv_node {
	char path[RIBV_PATH]; /* absolute, without ".", ".." and repeated slashes */
	uint32_t mode;        /* type and rights, as st_mode */
	uint32_t rdev;        /* of a character device */
	uint32_t size;        /* bytes of text */
	uint32_t ino;
	int (*open)(int flags); /* of a character device: returns a descriptor, or -1 and errno */
	char text[RIBV_NODE_TEXT]; /* content; of a directory: names, each with its zero */
};

/*
 * Of the core: fill in the rest of the node with that path; return whether there is one. The device
 * is created if it may be.
 */
bool ribv_view_find(struct ribv_node *node, bool is_starting);

/* ribv_view_find() of the core, which it loads; NULL: there is none (ribv_preload.c). */
typedef bool (*ribv_view_t)(struct ribv_node *node, bool is_starting);
RIBV_HIDDEN ribv_view_t ribv_core_view(void);

/* False in a child of vfork(): the memory is that of its parent. */
RIBV_HIDDEN bool ribv_is_owner(void);

/* Calls of this thread that see the files of the kernel alone. */
RIBV_HIDDEN extern __thread int ribv_nb_inside;

/*
 * A path that a program has passed. The kernel gets it first, by the function of libc: it checks
 * the pointer, so that the path may be read afterwards.
 */
struct ribv_at {
	int dirfd;
	const char *path;       /* to ask the kernel for */
	struct ribv_node *node; /* the file instead of the kernel's, to be freed; or NULL */
	char text[RIBV_PATH];   /* an absolute path */
};

RIBV_HIDDEN void ribv_at_set(struct ribv_at *at, int dirfd, const char *path);

/*
 * The kernel has answered, with 0 or an errno. Return whether it must be asked again: for the
 * absolute path of a file out of the view. If not, the node is set if there is one.
 * Preserves errno, except that ENOENT may become ENOTDIR.
 */
RIBV_HIDDEN bool ribv_at_next(struct ribv_at *at, int err);

/*
 * Do so before a call that creates a file or changes the working directory. The pointer is checked
 * by a system call.
 */
RIBV_HIDDEN void ribv_at_before(struct ribv_at *at);

/*
 * Return the node of an open file of the view, or of the working directory (AT_FDCWD): those
 * without a link. The path is "" or that of a directory.
 */
RIBV_HIDDEN struct ribv_node *ribv_find_open(int fd, const char *path, mode_t mode);

/* Replace the attributes of an open file, if it is of the view; 0, or -1 and errno. */
RIBV_HIDDEN int ribv_stat_open(int fd, const char *path, struct stat *st);

/* The working directory is that one from now on. */
RIBV_HIDDEN void ribv_cwd_set(int fd);

/* Whether a relative path may be of the view: otherwise it costs no system call. */
RIBV_HIDDEN bool ribv_may_be_in_view(int dirfd);

/* The number of a file, by its path: begins with RIBV_INO. */
#define RIBV_INO 2166136261u
static inline uint32_t
ribv_ino(uint32_t ino, const char *path)
{
	for (; *path != '\0'; path++)
		ino = (ino ^ (uint8_t)*path) * 16777619u;
	return ino;
}

/* Write the path of the file of the view that is open; return whether it is one. */
RIBV_HIDDEN bool ribv_path_of(int fd, char path[RIBV_PATH]);

/* Write the name of an open file with that path, which begins with a slash. */
RIBV_HIDDEN void ribv_name_of(const char *path, char name[RIBV_PATH + 64]);

/* Open a directory; return its descriptor, or -1 and errno. */
RIBV_HIDDEN int ribv_dir_open(const struct ribv_node *node, int flags);

#endif /* RIBV_FILE_H */
