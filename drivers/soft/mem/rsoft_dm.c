/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Device memory; see rsoft_dm.h. */

#define _GNU_SOURCE /* memfd_create() */

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rsoft_dm.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static size_t
map_size(const struct rmem_dm *dm)
{
	return RTE_ALIGN_CEIL(dm->length, (size_t)sysconf(_SC_PAGESIZE));
}

/* Add the memory to the list and its bytes to the sum; false if too few bytes are left. */
static bool
dm_enter(struct rsoft_dev *dev, struct rsoft_dm *dm)
{
	size_t bytes = dm->is_imported ? 0 : dm->dm.length;
	bool is_left;

	rsoft_lock(&dev->lock);
	is_left = bytes <= dev->args.max_dm_size - dev->dm_bytes;
	if (is_left) {
		dev->dm_bytes += bytes;
		LIST_INSERT_HEAD(&dev->dms, dm, entry);
	}
	rte_ticketlock_unlock(&dev->lock);
	return is_left;
}

static void
dm_leave(struct rsoft_dev *dev, struct rsoft_dm *dm)
{
	rsoft_lock(&dev->lock);
	LIST_REMOVE(dm, entry);
	dev->dm_bytes -= dm->is_imported ? 0 : dm->dm.length;
	rte_ticketlock_unlock(&dev->lock);
}

/* Whether the descriptor still refers to the memfd. */
static bool
dm_has_file(const struct rsoft_dm *dm)
{
	struct stat st;

	return dm->fd >= 0 && fstat(dm->fd, &st) == 0 && st.st_dev == dm->dev &&
			st.st_ino == dm->ino;
}

static int
dm_free(struct rmem_dm *base)
{
	struct rsoft_dm *dm = rsoft_dm_of(base);

	dm_leave(rsoft_dev_of(&base->obj), dm);
	munmap(dm->bytes, map_size(base));
	if (dm_has_file(dm))
		close(dm->fd);
	return 0;
}

/* Create a memfd of that size; -1: the process can't. */
static int
file_create(size_t size)
{
	struct rlimit limit;
	int fd;

	/* A larger file would raise SIGXFSZ. */
	if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur < size)
		return -1;
	fd = memfd_create("rmem-dm", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -1;
	if (ftruncate(fd, (off_t)size) == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0)
		return fd;
	close(fd);
	return -1;
}

/* Duplicate a descriptor; 0 or -ENOMEM. */
static int
file_dup(int fd, int *copy)
{
	int ret = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (ret < 0) {
		RSOFT_LOG(ERR, "device memory: no descriptor: %s", strerror(errno));
		return -ENOMEM;
	}
	*copy = ret;
	return 0;
}

/* Take the memfd of exported memory, which can't shrink. */
static int
file_import(struct rsoft_dm *dm, int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd, &st) != 0) {
		RSOFT_LOG(ERR, "device memory: fd %d: not exported by a device", fd);
		return -EINVAL;
	}
	if ((uint64_t)st.st_size < map_size(&dm->dm)) {
		RSOFT_LOG(ERR, "device memory: fd %d: length out of range: %zu (1 to %lld)", fd,
				dm->dm.length, (long long)st.st_size);
		return -EINVAL;
	}
	return file_dup(fd, &dm->fd);
}

/*
 * Place pages that the memory does not have yet on the device's NUMA socket, if they fit there. A
 * kernel without NUMA refuses the call.
 */
static void
place(const struct rsoft_dev *dev, void *bytes, size_t size)
{
	unsigned long mask[(RTE_MAX_NUMA_NODES + 63) / 64] = {0};
	uint64_t socket = dev->args.socket;

	if (socket >= RTE_MAX_NUMA_NODES)
		return;
	mask[socket / 64] = 1ul << socket % 64;
	(void)syscall(SYS_mbind, bytes, size, MPOL_PREFERRED, mask, RTE_MAX_NUMA_NODES + 1ul, 0);
}

/* Map the file, or private memory without one. */
static int
dm_map(struct rsoft_dm *dm)
{
	const int flags = dm->fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	const size_t size = map_size(&dm->dm);
	struct stat st = {0};
	void *bytes;
	int ret = 0;

	bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, dm->fd, 0);
	if (bytes == MAP_FAILED) {
		ret = errno;
		RSOFT_LOG(ERR, "device memory: %zu bytes: mmap: %s", size, strerror(ret));
		return ret == ENOMEM ? -ENOMEM : -EINVAL;
	}
	if (!dm->is_imported)
		place(rsoft_dev_of(&dm->dm.obj), bytes, size);
	/* Take all pages now: later, a lack of memory would raise a signal. */
	if (dm->fd >= 0)
		ret = fstat(dm->fd, &st) != 0 || posix_fallocate(dm->fd, 0, (off_t)size) != 0;
	if (ret != 0) {
		RSOFT_LOG(ERR, "device memory: no memory: %zu bytes", size);
		munmap(bytes, size);
		return -ENOMEM;
	}
	dm->bytes = bytes;
	dm->dev = st.st_dev;
	dm->ino = st.st_ino;
	return 0;
}

static int
dm_alloc(struct rmem_dm *base, const struct rmem_dm_conf *conf)
{
	struct rsoft_dev *dev = rsoft_dev_of(&base->obj);
	struct rsoft_dm *dm = rsoft_dm_of(base);
	int ret = 0;

	dm->is_imported = (conf->flags & RMEM_DM_FD) != 0;
	if (dm->is_imported)
		ret = file_import(dm, conf->fd);
	else
		dm->fd = file_create(map_size(base));
	if (ret != 0)
		return ret;
	ret = dm_map(dm);
	if (ret == 0 && !dm_enter(dev, dm)) {
		RSOFT_LOG(ERR,
				"device memory: too little is free: %zu bytes (max_dm_size=%" PRIu64
				")",
				base->length, dev->args.max_dm_size);
		munmap(dm->bytes, map_size(base));
		ret = -ENOMEM;
	}
	if (ret != 0 && dm->fd >= 0)
		close(dm->fd);
	return ret;
}

static int
dm_export_fd(struct rmem_dm *base, int *fd)
{
	const struct rsoft_dm *dm = rsoft_dm_of(base);

	if (!dm_has_file(dm)) {
		RSOFT_LOG(ERR, "device memory: it has no file to export");
		return -EOPNOTSUPP;
	}
	return file_dup(dm->fd, fd);
}

static int
dm_copy_to(struct rmem_dm *dm, uint64_t offset, const void *src, size_t length)
{
	memcpy(rsoft_dm_of(dm)->bytes + offset, src, length);
	return 0;
}

static int
dm_copy_from(struct rmem_dm *dm, uint64_t offset, void *dst, size_t length)
{
	memcpy(dst, rsoft_dm_of(dm)->bytes + offset, length);
	return 0;
}

const struct rmem_dm_ops rsoft_dm_ops = {
		.dm_size = sizeof(struct rsoft_dm),
		.dm_alloc = dm_alloc,
		.dm_copy_from = dm_copy_from,
		.dm_copy_to = dm_copy_to,
		.dm_export_fd = dm_export_fd,
		.dm_free = dm_free,
};
