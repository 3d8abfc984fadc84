/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Functions of libc that librdmacm calls for descriptors of /dev/infiniband/rdma_cm. For other
 * descriptors they cost a lookup in a bitmap, and stay async-signal-safe.
 *
 * Invariant: `ops` is stored with release when the core is complete, and loaded with acquire; it
 * never changes again.
 * Invariant: a bit in ops->fds is only a hint, read without a lock: the core decides under its
 * lock, and calls the next definition if the descriptor is not a channel. A duplicate of a channel
 * has no bit at first. write() to it fails with EINVAL in the kernel, because it is an epoll
 * descriptor, and the core then sets its bit.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "ribv_file.h"
#include "ribv_load.h"

/* Of programs linked with glibc before 2.33. */
int __fxstat(int version, int fd, struct stat *st);

static const struct rcm_ops *ops; /* atomic; NULL: the core is not loaded */

void
rcm_preload_init(const struct rcm_ops *core)
{
	__atomic_store_n(&ops, core, __ATOMIC_RELEASE);
}

/* Return the core if the descriptor is marked as a channel; NULL: call the kernel. */
static const struct rcm_ops *
ops_of(int fd)
{
	const struct rcm_ops *core = __atomic_load_n(&ops, __ATOMIC_ACQUIRE);

	if (__builtin_expect(core == NULL, 1) || fd < 0 || fd >= RCM_MAX_FDS)
		return NULL;
	return (__atomic_load_n(&core->fds[fd / 64], __ATOMIC_RELAXED) >> (fd % 64) & 1) != 0
			? core
			: NULL;
}

ssize_t
write(int fd, const void *data, size_t size)
{
	const struct rcm_ops *core = ops_of(fd);
	ssize_t ret;

	if (core != NULL)
		return core->write(fd, data, size, REAL(write));
	ret = REAL(write)(fd, data, size);
	if (ret < 0 && errno == EINVAL) {
		core = __atomic_load_n(&ops, __ATOMIC_ACQUIRE);
		if (core != NULL && core->adopt(fd) != 0)
			return core->write(fd, data, size, REAL(write));
		errno = EINVAL;
	}
	return ret;
}

int
close(int fd)
{
	const struct rcm_ops *core = ops_of(fd);

	return core != NULL ? core->close(fd, REAL(close)) : REAL(close)(fd);
}

/* Report a character device, as librdmacm requires: the kernel's device if it exists. */
static int
stat_device(struct stat *st)
{
	struct stat device;

	memset(st, 0, sizeof(*st));
	st->st_mode = S_IFCHR | 0666;
	st->st_nlink = 1;
	st->st_rdev = makedev(RCM_MAJOR, RCM_MINOR);
	if (kernel_fstatat(AT_FDCWD, RCM_DEVICE, &device, 0) == 0 && S_ISCHR(device.st_mode))
		st->st_rdev = device.st_rdev;
	return 0;
}

/* Report the attributes of a channel's descriptor, or call the next definition. */
#define FSTAT(fd, st, call)                                                                        \
	do {                                                                                       \
		const struct rcm_ops *core = ops_of(fd);                                           \
		int ret;                                                                           \
                                                                                                   \
		if (core != NULL && core->is_channel(fd) != 0)                                     \
			return stat_device(st);                                                    \
		ret = (call);                                                                      \
		return ret == 0 ? ribv_stat_open(fd, "", st) : ret;                                \
	} while (0)

#define DEFINE_FSTAT(type, name)                                                                   \
	int RIBV_OWN(name)(int fd, struct stat *st) RIBV_SYMBOL(name);                             \
	int RIBV_OWN(name)(int fd, struct stat *st)                                                \
	{                                                                                          \
		FSTAT(fd, st, REAL_AS(type, name)(fd, st));                                        \
	}

/* glibc uses this struct stat for all versions that are not negative. */
#define DEFINE_FXSTAT(type, name)                                                                  \
	int RIBV_OWN(name)(int version, int fd, struct stat *st) RIBV_SYMBOL(name);                \
	int RIBV_OWN(name)(int version, int fd, struct stat *st)                                   \
	{                                                                                          \
		if (version < 0)                                                                   \
			return REAL_AS(type, name)(version, fd, st);                               \
		FSTAT(fd, st, REAL_AS(type, name)(version, fd, st));                               \
	}

RIBV_BOTH(DEFINE_FSTAT, fstat)
RIBV_BOTH(DEFINE_FXSTAT, __fxstat)
