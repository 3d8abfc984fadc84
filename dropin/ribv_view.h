/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The view: files of the devices below /sys/class/infiniband, /sys/class/infiniband_verbs and
 * /dev/infiniband that do not exist in the file system. The core provides names and contents
 * (ribv_view.c). The preloaded library defines the functions that take a path (preload/).
 *
 * Inside: headers that the folders below share: the view of files, verbs.h, operations of
 *   rdma_cm.
 * Callers: verbs, cm and preload; ribv_core.c and ribv_view.c join verbs and cm.
 * Not known here: lib/rmem, drivers, and objects of verbs and rdma_cm.
 *
 * A regular file is opened as a sealed memfd, and a directory as a removed directory. The name of
 * either contains the path, which the kernel returns for each copy of the descriptor and for a
 * working directory, also after dup(), fork() and exec(). Nothing remains in the file system.
 */

#ifndef RIBV_VIEW_H
#define RIBV_VIEW_H

#include <stdbool.h>
#include <stdint.h>

/* Each path of the view begins with one of these. */
#define RIBV_SYSFS       "/sys/class/infiniband"
#define RIBV_SYSFS_VERBS "/sys/class/infiniband_verbs"
#define RIBV_DEV         "/dev/infiniband"

#define RIBV_PATH      512
#define RIBV_NODE_TEXT 4096

/* A file of the view. */
struct ribv_node {
	char path[RIBV_PATH]; /* absolute, without ".", ".." and repeated slashes */
	uint32_t mode;        /* type and permissions, as st_mode */
	uint32_t rdev;        /* of a character device */
	uint32_t size;        /* bytes of text */
	uint32_t ino;
	int (*open)(int flags); /* of a character device: returns a descriptor, or -1 and errno */
	char text[RIBV_NODE_TEXT]; /* content; of a directory: names, each with its zero */
};

/*
 * Defined by the core: fill in the node with that path; false if there is none. is_starting: create
 * the devices if needed.
 */
bool ribv_view_find(struct ribv_node *node, bool is_starting);

typedef bool (*ribv_view_t)(struct ribv_node *node, bool is_starting);

/* Inode number of a path, by FNV-1a; starts with RIBV_INO. */
#define RIBV_INO 2166136261u
static inline uint32_t
ribv_ino(uint32_t ino, const char *path)
{
	for (; *path != '\0'; path++)
		ino = (ino ^ (uint8_t)*path) * 16777619u;
	return ino;
}

#endif /* RIBV_VIEW_H */
