/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * MRs over the memory of a file descriptor: the class maps it for every driver. The mapping belongs
 * to the MR that it was created for; MRs that share it refer to that one.
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include <rte_bitops.h>

#include "rmem_mr_priv.h"
#include "rmem_priv.h"

/* Size of the hugepages of a file on hugetlbfs, else of the system's pages. */
static uint64_t
page_size_of(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) == 0 && (uint64_t)fs.f_type == HUGETLBFS_MAGIC)
		return (uint64_t)fs.f_bsize;
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Convert the errno of mmap(). */
static int
errno_of_mmap(int error)
{
	switch (error) {
	case EACCES:
	case EPERM:
		return EPERM;
	case ENOMEM:
	case EAGAIN:
		return ENOMEM;
	default:
		return EINVAL;
	}
}

int
rmem_mr_map_fd(struct rmem_mr *mr, const struct rmem_mr_attr *attr)
{
	bool is_write = (attr->access & RMEM_ACCESS_LOCAL_WRITE) != 0;
	off_t offset = (off_t)attr->fd_offset;
	void *addr;

	/* Writable if possible, for rights that rmem_mr_rereg() may add later. */
	addr = mmap(NULL, attr->length, PROT_READ | PROT_WRITE, MAP_SHARED, attr->fd, offset);
	if (addr == MAP_FAILED && !is_write && (errno == EACCES || errno == EPERM)) {
		addr = mmap(NULL, attr->length, PROT_READ, MAP_SHARED, attr->fd, offset);
		rmem_mr_drv(mr)->flags |= RMEM_MR_FD_READ_ONLY;
	}
	if (addr == MAP_FAILED)
		return RMEM_FAIL(errno_of_mmap(errno),
				"fd %d: cannot be mapped%s: %zu bytes at offset %" PRIu64 ": %s",
				attr->fd, is_write ? " for writing" : "", attr->length,
				attr->fd_offset, strerror(errno));
	mr->addr = addr;
	rmem_mr_drv(mr)->flags |= RMEM_MR_FD |
			rte_log2_u64(page_size_of(attr->fd)) << RMEM_MR_LOG2_PAGE_SHIFT;
	return 0;
}

int
rmem_mr_check_fd_access(const struct rmem_mr *mr, uint32_t access)
{
	if ((rmem_mr_drv(mr)->flags & RMEM_MR_FD) != 0 && (access & RMEM_ACCESS_ON_DEMAND) != 0)
		return RMEM_FAIL(EINVAL, "MR: RMEM_MR_FD cannot be combined with ON_DEMAND");
	if ((rmem_mr_drv(mr)->flags & RMEM_MR_FD_READ_ONLY) == 0 ||
			(access & RMEM_ACCESS_LOCAL_WRITE) == 0)
		return 0;
	return RMEM_FAIL(EFAULT, "MR %p: file mapped read-only", (const void *)mr);
}

void
rmem_mr_unmap_fd(const struct rmem_mr *mr)
{
	uint64_t page = UINT64_C(1) << (rmem_mr_drv(mr)->flags >> RMEM_MR_LOG2_PAGE_SHIFT);

	if ((rmem_mr_drv(mr)->flags & RMEM_MR_FD) != 0 &&
			(rmem_mr_drv(mr)->flags & RMEM_MR_SHARED) == 0)
		munmap(mr->addr, RTE_ALIGN_CEIL(mr->length, page));
}
