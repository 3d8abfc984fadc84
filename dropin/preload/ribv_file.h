/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Paths and open files of the view (../ribv_view.h), in the functions of libc that take them. */

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

/* Write the path of the file of the view that is open; return whether it is one. */
RIBV_HIDDEN bool ribv_path_of(int fd, char path[RIBV_PATH]);

/* Write the name of an open file with that path, which begins with a slash. */
RIBV_HIDDEN void ribv_name_of(const char *path, char name[RIBV_PATH + 64]);

/* Open a directory; return its descriptor, or -1 and errno. */
RIBV_HIDDEN int ribv_dir_open(const struct ribv_node *node, int flags);

#endif /* RIBV_FILE_H */
