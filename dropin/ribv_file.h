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
 * removed, and whose former name has the path: so the kernel returns the path for each copy of the
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

/* All paths of the view begin with one of these. */
#define RIBV_SYSFS       "/sys/class/infiniband"
#define RIBV_SYSFS_VERBS "/sys/class/infiniband_verbs"
#define RIBV_DEV         "/dev/infiniband"

#define RIBV_PATH      512
#define RIBV_NODE_TEXT 4096

#define RIBV_HIDDEN __attribute__((visibility("hidden")))

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

/* Of the core: fill in the rest of the node with that path; return whether there is one. */
bool ribv_view_find(struct ribv_node *node);

/* Functions of libc that the preloaded library defines as well. */
/* clang-format off */
#define RIBV_FUNCTIONS(X) \
	X(openat) X(fopen) X(opendir) X(fdopendir) X(readdir) X(readdir_r) X(closedir) \
	X(dirfd) X(rewinddir) X(telldir) X(seekdir) X(scandir) X(fstatat) X(statx) \
	X(faccessat) X(readlinkat) X(realpath) X(chdir) X(getcwd) X(getxattr) X(lgetxattr) \
	X(listxattr) X(llistxattr)
/* clang-format on */

#define RIBV_INDEX(name) RIBV_REAL_##name,
enum ribv_real {
	RIBV_FUNCTIONS(RIBV_INDEX) RIBV_NB_REAL
};

/* The name that programs compiled with _FILE_OFFSET_BITS=64 call; the types are the same. */
#define RIBV_SAME(name, other) __asm__(".globl " #name "\n.set " #name ", " #other)

typedef void (*ribv_function_t)(void);

/* That of libc, or of a library preloaded after this one. */
#define REAL(name) ((__typeof__(&name))ribv_real(RIBV_REAL_##name))

RIBV_HIDDEN ribv_function_t ribv_real(enum ribv_real index);

/* The function of the core, which it loads; NULL: there is none (ribv_preload.c). */
RIBV_HIDDEN ribv_function_t ribv_core_function(const char *name);

/* Calls of this thread that see the files of the kernel alone. */
RIBV_HIDDEN extern __thread int ribv_nb_inside;

/*
 * Return the node of a path, to be freed, or NULL. Before the kernel was asked this finds absolute
 * paths; otherwise, if it returned ENOENT, relative ones. Preserves errno.
 */
RIBV_HIDDEN struct ribv_node *ribv_find_before(int dirfd, const char *path);
RIBV_HIDDEN struct ribv_node *ribv_find_after(int dirfd, const char *path);

/* Return the node of an open directory of the view, or of the working directory (AT_FDCWD). */
RIBV_HIDDEN struct ribv_node *ribv_find_open(int dirfd);

/* Write the path of the directory of the view that is open; return whether it is one. */
RIBV_HIDDEN bool ribv_path_of(int dirfd, char path[RIBV_PATH]);

/* Open a directory; return its descriptor, or -1 and errno. */
RIBV_HIDDEN int ribv_dir_open(const struct ribv_node *node, int flags);

#endif /* RIBV_FILE_H */
