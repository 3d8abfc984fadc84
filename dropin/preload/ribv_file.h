/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Paths and open files of the view (../ribv_view.h), for the interposed functions of libc.
 *
 * Invariant: state of a call is in struct ribv_at on the stack and in thread-local variables, so no
 * lock is needed, which a child of fork() could find locked. */

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

#include "../ribv_view.h"
#include "ribv_libc.h"

/* Depth of calls of this thread that must find only files of the kernel. */
RIBV_HIDDEN extern __thread int ribv_nb_inside;

/*
 * A path that a program has passed. The kernel gets it first, through the function of libc, and
 * checks the pointer; only then is the path read.
 */
struct ribv_at {
	int dirfd;
	const char *path;       /* path for the next call */
	struct ribv_node *node; /* instead of a file of the kernel; to be freed; or NULL */
	char text[RIBV_PATH];   /* an absolute path, for `path` */
};

RIBV_HIDDEN void ribv_at_set(struct ribv_at *at, int dirfd, const char *path);

/*
 * Handle the kernel's result for at->path, 0 or an errno. Return true if the call must be repeated
 * with at->path, which is then the absolute path of a file outside of the view; otherwise at->node
 * is set if the path is of the view. Preserve errno, except that ENOENT may become ENOTDIR.
 */
RIBV_HIDDEN bool ribv_at_next(struct ribv_at *at, int err);

/*
 * Do the same before a call that creates a file or changes the working directory. A system call
 * checks the pointer first.
 */
RIBV_HIDDEN void ribv_at_before(struct ribv_at *at);

/*
 * Return the node of an open file of the view, or of the working directory (AT_FDCWD); both have no
 * link. The path is "" or relative to a directory of the view.
 */
RIBV_HIDDEN struct ribv_node *ribv_find_open(int fd, const char *path, mode_t mode);

/* Replace the attributes of an open file of the view; 0, or -1 with errno. */
RIBV_HIDDEN int ribv_stat_open(int fd, const char *path, struct stat *st);

/* Record a change of the working directory. */
RIBV_HIDDEN void ribv_cwd_set(int fd);

/* Whether a relative path may be of the view. If not, no system call is needed. */
RIBV_HIDDEN bool ribv_may_be_in_view(int dirfd);

/* Write the path of an open file of the view; false if it is not of the view. */
RIBV_HIDDEN bool ribv_path_of(int fd, char path[RIBV_PATH]);

/* Write the file name for an open file with that path, which begins with a slash. */
RIBV_HIDDEN void ribv_name_of(const char *path, char name[RIBV_PATH + 64]);

/* Open a directory of the view; return a descriptor, or -1 with errno. */
RIBV_HIDDEN int ribv_dir_open(const struct ribv_node *node, int flags);

#endif /* RIBV_FILE_H */
