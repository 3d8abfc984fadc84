/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Functions of libc that librdmacm calls for descriptors of /dev/infiniband/rdma_cm. For others
 * they cost a lookup in a bitmap, and remain async-signal-safe. A write() to a duplicate of
 * such a descriptor fails with EINVAL in the kernel, and so is found.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "rcm_preload.h"
#include "ribv_file.h"

/* Names that libc has for them as well. */
int __close(int fd);
ssize_t __write(int fd, const void *data, size_t size);
int __fxstat(int version, int fd, struct stat *st);

static const struct rcm_ops *ops; /* atomic; NULL: the core is not loaded */

void
rcm_preload_init(const struct rcm_ops *core)
{
	__atomic_store_n(&ops, core, __ATOMIC_RELEASE);
}

/* The core, if it answers for the descriptor; NULL: the kernel does. */
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
		return core->write(fd, data, size);
	ret = __write(fd, data, size);
	if (ret < 0 && errno == EINVAL) {
		core = __atomic_load_n(&ops, __ATOMIC_ACQUIRE);
		if (core != NULL && core->adopt(fd) != 0)
			return core->write(fd, data, size);
		errno = EINVAL;
	}
	return ret;
}

int
close(int fd)
{
	const struct rcm_ops *core = ops_of(fd);

	return core != NULL ? core->close(fd) : __close(fd);
}

/* A character device, as librdmacm requires: that of the kernel if there is one. */
static int
stat_device(struct stat *st)
{
	struct stat device;

	memset(st, 0, sizeof(*st));
	st->st_mode = S_IFCHR | 0666;
	st->st_nlink = 1;
	st->st_rdev = makedev(RCM_MAJOR, RCM_MINOR);
	if (REAL(fstatat)(AT_FDCWD, RCM_DEVICE, &device, 0) == 0 && S_ISCHR(device.st_mode))
		st->st_rdev = device.st_rdev;
	return 0;
}

int
fstat(int fd, struct stat *st)
{
	const struct rcm_ops *core = ops_of(fd);
	int ret;

	if (core != NULL && core->is_channel(fd) != 0)
		return stat_device(st);
	if (fd < 0) {
		errno = EBADF;
		return -1;
	}
	/* Libc has it since 2.33. */
	ret = REAL(fstat) != NULL ? REAL(fstat)(fd, st) : REAL(fstatat)(fd, "", st, AT_EMPTY_PATH);
	return ret == 0 ? ribv_stat_open(fd, "", st) : ret;
}

/* That of programs linked before glibc 2.33. */
int
__fxstat(int version, int fd, struct stat *st)
{
	if (version < 0) {
		errno = EINVAL;
		return -1;
	}
	return fstat(fd, st);
}

RIBV_SAME(fstat64, fstat);
RIBV_SAME(__fxstat64, __fxstat);
