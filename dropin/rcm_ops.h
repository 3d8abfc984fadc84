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
/* Device number, if the kernel has no such device. */
#define RCM_MAJOR   10
#define RCM_MINOR   58
#define RCM_MAX_FDS 65536

typedef ssize_t (*rcm_write_t)(int fd, const void *data, size_t size);
typedef int (*rcm_close_t)(int fd);

struct rcm_ops {
	/* Open a new channel; return its descriptor, or -1 with errno set. */
	int (*open)(int flags);
	/* Call next() if the descriptor is not a channel any more; close() always calls it. */
	ssize_t (*write)(int fd, const void *data, size_t size, rcm_write_t next);
	int (*close)(int fd, rcm_close_t next);
	/* Whether an unmarked descriptor is a duplicate of a channel's; if so, mark it. */
	int (*adopt)(int fd);
	/* Whether a marked descriptor still is a channel's. */
	int (*is_channel)(int fd);
	/* Bitmap of the marked descriptors; atomic. */
	const uint64_t *fds;
};

/* Defined by librmem_ibv_core.so. */
extern const struct rcm_ops rcm_core_ops;

#endif /* RCM_OPS_H */
