/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * The memory of an MR: ranges of the program, the mapping of a file descriptor, or a memzone.
 *
 * The MR has its own copy of the ranges; a single range is stored as an address. The class maps a
 * file descriptor for every driver; the mapping belongs to the MR that it was created for, and MRs
 * that share the mapping refer to that MR. A memzone is named after the address of the MR.
 *
 * EAL knows the page size of its own memory. For other memory the kernel reports it only in
 * /proc/self/smaps, per mapping, which is slow: it is read only with RMEM_ACCESS_HUGETLB.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include <rte_bitops.h>
#include <rte_common.h>
#include <rte_malloc.h>
#include <rte_memory.h>
#include <rte_memzone.h>

#include <rmem_chunk.h>
#include <rmem_pages.h>

#include "rmem_mr_priv.h"
#include "rmem_priv.h"

int
rmem_mr_copy_iov(struct rmem_mr *mr, const struct iovec *iov, uint32_t iov_count)
{
	struct iovec *copy;

	if (iov_count == 0)
		return 0;
	if (iov_count == 1) {
		mr->addr = iov->iov_base;
		return 0;
	}
	copy = rte_malloc("rmem_iov", iov_count * sizeof(*copy), 0);
	if (copy == NULL)
		return RMEM_FAIL(ENOMEM, "MR: no memory: %u ranges", iov_count);
	memcpy(copy, iov, iov_count * sizeof(*copy));
	rmem_mr_drv(mr)->iov = copy;
	rmem_mr_drv(mr)->iov_count = iov_count;
	return 0;
}

void
rmem_mr_free_iov(struct rmem_mr *mr)
{
	rte_free((void *)(uintptr_t)rmem_mr_drv(mr)->iov);
	rmem_mr_drv(mr)->iov = NULL;
	rmem_mr_drv(mr)->iov_count = 0;
}

uint32_t
rmem_mr_ranges(const struct rmem_mr *mr, struct iovec *one, const struct iovec **iov)
{
	if (rmem_mr_drv(mr)->iov != NULL) {
		*iov = rmem_mr_drv(mr)->iov;
		return rmem_mr_drv(mr)->iov_count;
	}
	one->iov_base = mr->addr;
	one->iov_len = mr->length;
	*iov = one;
	return 1;
}

/* Size of a hugepage of a file on hugetlbfs, else of a system page. */
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
	uint64_t page = page_size_of(attr->fd);
	size_t in_page = attr->fd_offset & (page - 1), length;
	off_t offset = (off_t)(attr->fd_offset - in_page);
	void *addr = MAP_FAILED;

	/* Writable if possible, for rights that rmem_mr_rereg() may add later. */
	errno = EINVAL;
	if (!__builtin_add_overflow(attr->length, in_page, &length))
		addr = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, attr->fd, offset);
	if (addr == MAP_FAILED && !is_write && (errno == EACCES || errno == EPERM)) {
		addr = mmap(NULL, length, PROT_READ, MAP_SHARED, attr->fd, offset);
		rmem_mr_drv(mr)->flags |= RMEM_MR_FD_READ_ONLY;
	}
	if (addr == MAP_FAILED)
		return RMEM_FAIL(errno_of_mmap(errno),
				"fd %d: cannot be mapped%s: %zu bytes at offset %" PRIu64 ": %s",
				attr->fd, is_write ? " for writing" : "", attr->length,
				attr->fd_offset, strerror(errno));
	mr->addr = RTE_PTR_ADD(addr, in_page);
	rmem_mr_drv(mr)->flags |= RMEM_MR_FD | rte_log2_u64(page) << RMEM_MR_LOG2_PAGE_SHIFT;
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
	uintptr_t first = (uintptr_t)mr->addr & ~(uintptr_t)(page - 1);

	if ((rmem_mr_drv(mr)->flags & RMEM_MR_FD) != 0 &&
			(rmem_mr_drv(mr)->flags & RMEM_MR_SHARED) == 0)
		munmap((void *)first,
				RTE_ALIGN_CEIL((uintptr_t)mr->addr + mr->length, page) - first);
}

/* A mapping of the process. */
struct mapping {
	uintptr_t first;
	uintptr_t end;
	uint64_t page_size;
};

/* Read the next mapping. Return false after the last one. */
static bool
next_mapping(FILE *f, struct mapping *mapping)
{
	static const char word[] = "KernelPageSize:";
	char line[4096];

	while (fgets(line, sizeof(line), f) != NULL) {
		/* The line that begins a mapping has no word before its first colon. */
		if (rmem_pages_parse(line, &mapping->first, &mapping->end))
			continue;
		if (strncmp(line, word, sizeof(word) - 1) == 0) {
			mapping->page_size = strtoull(line + sizeof(word) - 1, NULL, 10) * 1024;
			return true;
		}
	}
	return false;
}

/* Bytes of a range in a mapping. */
static size_t
overlap(const struct iovec *range, const struct mapping *mapping)
{
	uintptr_t first = RTE_MAX((uintptr_t)range->iov_base, mapping->first);
	uintptr_t last = RTE_MIN((uintptr_t)range->iov_base + range->iov_len - 1, mapping->end - 1);

	return first <= last ? last - first + 1 : 0;
}

/* Smallest page size of the ranges in smaps; 0: not known. */
static uint64_t
kernel_page_size(const struct iovec *iov, uint32_t nb_iov)
{
	uint64_t size = UINT64_MAX, left = 0;
	struct mapping mapping = {0, 0, 0};
	uint32_t i;
	FILE *f;

	f = fopen("/proc/self/smaps", "r");
	if (f == NULL)
		return 0;
	for (i = 0; i < nb_iov; i++)
		left += iov[i].iov_len;
	while (left != 0 && next_mapping(f, &mapping)) {
		for (i = 0; i < nb_iov; i++) {
			size_t length = overlap(&iov[i], &mapping);

			left -= length;
			if (length != 0)
				size = RTE_MIN(size, mapping.page_size);
		}
	}
	fclose(f);
	return left == 0 ? size : 0;
}

/*
 * Check that all ranges are in hugepages, and store the smallest page size. Return -EINVAL with a
 * log line if they are not, or if the kernel does not report it.
 */
static int
check_hugepages(const struct iovec *iov, uint32_t nb_iov, uint64_t *page_size)
{
	uint64_t size = UINT64_MAX;
	uint32_t i;

	for (i = 0; i < nb_iov && size != 0; i++)
		size = RTE_MIN(size, rmem_pages_eal_size(&iov[i]));
	if (size == 0)
		size = kernel_page_size(iov, nb_iov);
	if (size > (uint64_t)sysconf(_SC_PAGESIZE)) {
		*page_size = size;
		return 0;
	}
	if (size == 0)
		return RMEM_FAIL(EINVAL, "HUGETLB: page size not known: [%p, +%zu)%s",
				iov[0].iov_base, iov[0].iov_len, nb_iov > 1 ? " and the rest" : "");
	return RMEM_FAIL(EINVAL, "HUGETLB: no hugepages: [%p, +%zu)%s, pages of %" PRIu64 " bytes",
			iov[0].iov_base, iov[0].iov_len, nb_iov > 1 ? " or the rest" : "", size);
}

/*
 * Name the memzone of an MR. There are two names, because the old and the new memory of a changed
 * MR exist at the same time.
 */
static void
chunk_name(const struct rmem_mr *of, const struct rmem_mr *mr, char *name)
{
	snprintf(name, RTE_MEMZONE_NAMESIZE, "rmem_mr_%p%s", (const void *)mr,
			(rmem_mr_drv(of)->flags & RMEM_MR_SECOND_NAME) != 0 ? "b" : "a");
}

/* Bytes beyond max_mr_size that rounding adds are allocated, but not registered. */
int
rmem_mr_alloc_chunk(struct rmem_mr *of, const struct rmem_mr *mr, int socket_id)
{
	char name[RTE_MEMZONE_NAMESIZE];
	const struct rte_memzone *mz;
	int ret;

	chunk_name(of, mr, name);
	ret = (of->access & RMEM_ACCESS_HUGETLB) != 0
			? rmem_chunk_alloc(name, of->length, socket_id, &mz)
			: rmem_chunk_alloc_part(name, of->length, socket_id, &mz);
	if (ret != 0)
		return ret;
	of->addr = mz->addr;
	of->length = RTE_MIN(mz->len, rmem_obj_info(&mr->obj)->max_mr_size);
	if (of->iova != 0 && of->length - 1 > UINT64_MAX - of->iova) {
		rte_memzone_free(mz);
		return RMEM_FAIL(EINVAL, "MR: range wraps around: %zu bytes at iova 0x%" PRIx64,
				of->length, of->iova);
	}
	return 0;
}

void
rmem_mr_free_chunk(const struct rmem_mr *of, const struct rmem_mr *mr)
{
	char name[RTE_MEMZONE_NAMESIZE];

	if ((of->access & RMEM_ACCESS_ALLOCATE_MR) == 0)
		return;
	chunk_name(of, mr, name);
	rte_memzone_free(rte_memzone_lookup(name));
}

int
rmem_mr_check_hugetlb(struct rmem_mr *mr)
{
	const struct iovec *iov;
	uint64_t page_size = 0;
	struct iovec one;
	uint32_t nb_iov;
	int ret;

	if ((rmem_mr_drv(mr)->flags & RMEM_MR_FD) == 0)
		rmem_mr_drv(mr)->flags &= ~(UINT32_MAX << RMEM_MR_LOG2_PAGE_SHIFT);
	if ((mr->access & RMEM_ACCESS_HUGETLB) == 0 || mr->length == 0)
		return 0;
	nb_iov = rmem_mr_ranges(mr, &one, &iov);
	ret = check_hugepages(iov, nb_iov, &page_size);
	if (ret == 0)
		rmem_mr_drv(mr)->flags |= rte_log2_u64(page_size) << RMEM_MR_LOG2_PAGE_SHIFT;
	return ret;
}
