/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Functions that librmem_ibv.so calls for descriptors of /dev/infiniband/rdma_cm. */

#ifndef RCM_OPS_H
#define RCM_OPS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RCM_DEVICE "/dev/infiniband/rdma_cm"
/* Its number, if the kernel has no such device. */
#define RCM_MAJOR   10
#define RCM_MINOR   58
#define RCM_MAX_FDS 65536

struct rcm_ops {
	/* A new channel: its descriptor, or -1 with errno set. */
	int (*open)(int flags);
	ssize_t (*write)(int fd, const void *data, size_t size);
	int (*close)(int fd);
	/* Whether an unmarked descriptor is a duplicate of a channel's; it is marked then. */
	int (*adopt)(int fd);
	/* Whether a marked one still is a channel's. */
	int (*is_channel)(int fd);
	/* Bitmap of the descriptors that are channels; atomic. */
	const uint64_t *fds;
};

/* Of librmem_ibv_core.so. */
extern const struct rcm_ops rcm_core_ops;

#endif /* RCM_OPS_H */
