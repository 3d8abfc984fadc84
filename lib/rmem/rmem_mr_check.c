/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Checks of the attributes of a registration, and of the kind and state of an MR.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "rmem_mr_priv.h"

/* MW_BIND, ZERO_BASED, ON_DEMAND, HUGETLB and FLUSH_*: known bits, which a device may lack. */
#define ACCESS_VERBS UINT32_C(0x3f0)

/* Rights of MRs of device memory (ibv_reg_dm_mr(3)); a device may ignore the optional ones. */
#define ACCESS_DM                                                                                  \
	(RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE | RMEM_ACCESS_ZERO_BASED |                   \
			RMEM_ACCESS_OPTIONAL_RANGE)

/* A registration to check. */
struct request {
	const char *name;                 /* name of the device */
	const struct rmem_dev_info *info; /* limits and capabilities of the device */
	const struct rmem_mr_attr *attr;
	size_t length;    /* with iov: sum of the ranges */
	bool is_implicit; /* the whole address space */
	bool is_dm;       /* MR of device memory */
};

static int
check_access(const struct request *req)
{
	uint32_t access = req->attr->access;
	uint32_t known = req->info->access | RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE |
			ACCESS_VERBS | RMEM_ACCESS_OPTIONAL_RANGE | RMEM_ACCESS_ALLOCATE_MR;

	if ((access & ~known) != 0)
		return RMEM_FAIL(EINVAL, "%s: unknown access bits: 0x%x in 0x%x", req->name,
				access & ~known, access);
	/* ibv_reg_mr(3) */
	if ((access & (RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_ATOMIC)) != 0 &&
			(access & RMEM_ACCESS_LOCAL_WRITE) == 0)
		return RMEM_FAIL(EINVAL,
				"%s: remote right to modify without LOCAL_WRITE: access 0x%x",
				req->name, access);
	return 0;
}

static int
check_iova(const struct request *req)
{
	const struct rmem_mr_attr *attr = req->attr;

	if ((attr->access & RMEM_ACCESS_ZERO_BASED) == 0 || attr->iova == 0)
		return 0;
	return RMEM_FAIL(EINVAL, "%s: iova with ZERO_BASED: 0x%" PRIx64, req->name, attr->iova);
}

/* Check only the range; with ALLOCATE_MR the address is not known yet. */
static int
check_range(const struct request *req)
{
	const struct rmem_mr_attr *attr = req->attr;
	bool is_allocated = (attr->access & RMEM_ACCESS_ALLOCATE_MR) != 0;
	uint64_t max_mr_size = req->info->max_mr_size;

	if (req->is_implicit)
		return 0;
	/* An empty MR needs no address, but memory to allocate or to map must not be empty. */
	if (req->length == 0 && attr->iov_count == 0 && !is_allocated &&
			(attr->flags & RMEM_MR_FD) == 0)
		return check_iova(req);
	if (attr->iov_count == 0 && (attr->flags & RMEM_MR_FD) == 0 &&
			is_allocated != (attr->addr == NULL))
		return RMEM_FAIL(EINVAL, "%s: addr %p %s ALLOCATE_MR", req->name, attr->addr,
				is_allocated ? "with" : "without");
	if (req->length == 0 || req->length > max_mr_size)
		return RMEM_FAIL(EINVAL, "%s: MR length out of range: %zu (1 to %" PRIu64 ")",
				req->name, req->length, max_mr_size);
	if (check_iova(req) != 0)
		return -EINVAL;
	if ((attr->iov_count == 0 && req->length - 1 > UINTPTR_MAX - (uintptr_t)attr->addr) ||
			req->length - 1 > UINT64_MAX - attr->iova)
		return RMEM_FAIL(EINVAL, "%s: range wraps around: %zu bytes at %p, iova 0x%" PRIx64,
				req->name, req->length, attr->addr, attr->iova);
	return 0;
}

/* Check the flags of a registration, and the capabilities that they need. */
static int
check_flags(const struct request *req)
{
	const struct rmem_mr_attr *attr = req->attr;
	static const struct {
		uint32_t flag;
		uint64_t capa;
	} flags[] = {
			{RMEM_MR_REQUESTED_KEY, RMEM_DEV_CAPA_REQUESTED_KEY},
			{RMEM_MR_DISABLED, RMEM_DEV_CAPA_MR_ENABLE},
			{RMEM_MR_FD, RMEM_DEV_CAPA_MR_FD},
			{RMEM_MR_IOVA, 0},
	};
	uint64_t capa = req->info->capa;
	uint32_t unknown = attr->flags;
	size_t i;

	for (i = 0; i < RTE_DIM(flags); i++)
		unknown &= ~flags[i].flag;
	if (unknown != 0)
		return RMEM_FAIL(EINVAL, "%s: unknown MR flags: 0x%x in 0x%x", req->name, unknown,
				attr->flags);
	if ((attr->flags & RMEM_MR_REQUESTED_KEY) == 0 && attr->requested_key != 0)
		return RMEM_FAIL(EINVAL, "%s: requested_key without RMEM_MR_REQUESTED_KEY: 0x%08x",
				req->name, attr->requested_key);
	for (i = 0; i < RTE_DIM(flags); i++) {
		if ((attr->flags & flags[i].flag) != 0 && (capa & flags[i].capa) != flags[i].capa)
			return RMEM_FAIL(EOPNOTSUPP,
					"%s: not supported by the device: MR flag 0x%x", req->name,
					flags[i].flag);
	}
	return 0;
}

/* Check the attributes permitted with ON_DEMAND, if it is requested. */
static int
check_odp(const struct request *req)
{
	const struct rmem_mr_attr *attr = req->attr;
	const uint32_t others = RMEM_ACCESS_ALLOCATE_MR | RMEM_ACCESS_HUGETLB;

	if ((attr->access & RMEM_ACCESS_ON_DEMAND) == 0)
		return 0;
	if ((attr->access & others) != 0 || attr->iov != NULL)
		return RMEM_FAIL(EINVAL, "%s: ON_DEMAND cannot be combined with %s", req->name,
				attr->iov != NULL ? "iov" : "ALLOCATE_MR or HUGETLB");
	if (req->is_implicit && (attr->iova != 0 || (attr->access & RMEM_ACCESS_ZERO_BASED) != 0))
		return RMEM_FAIL(EINVAL, "%s: implicit MR with an iova or ZERO_BASED", req->name);
	return 0;
}

static int
check_access_capa(const struct request *req)
{
	uint32_t lacking = req->attr->access &
			~(req->info->access | RMEM_ACCESS_OPTIONAL_RANGE | RMEM_ACCESS_ALLOCATE_MR);

	/* MRs of device memory are ZERO_BASED on every device. */
	if (req->is_dm)
		lacking &= ~RMEM_ACCESS_ZERO_BASED;
	if (lacking == 0)
		return 0;
	return RMEM_FAIL(EOPNOTSUPP, "%s: not supported by the device: access bits 0x%x of 0x%x",
			req->name, lacking, req->attr->access);
}

/* Check the capabilities that ON_DEMAND needs. */
static int
check_odp_capa(const struct request *req)
{
	const struct rmem_mr_attr *attr = req->attr;
	const struct rmem_odp_caps *odp = &req->info->odp;

	if ((attr->access & RMEM_ACCESS_ON_DEMAND) == 0)
		return 0;
	if (req->is_implicit && (odp->general & RMEM_ODP_SUPPORT_IMPLICIT) == 0)
		return RMEM_FAIL(EOPNOTSUPP,
				"%s: not supported by the device: implicit on-demand MRs",
				req->name);
	if ((attr->access & RMEM_ACCESS_REMOTE_ATOMIC) != 0 &&
			((odp->rc | odp->uc | odp->ud) & RMEM_ODP_ATOMIC) == 0)
		return RMEM_FAIL(EOPNOTSUPP,
				"%s: not supported by the device: REMOTE_ATOMIC with ON_DEMAND",
				req->name);
	return 0;
}

/* Check the attributes permitted with ranges. */
static int
check_iov_form(const struct request *req)
{
	const struct rmem_mr_attr *attr = req->attr;

	if (attr->iov == NULL || attr->iov_count == 0)
		return RMEM_FAIL(EINVAL, "%s: iov without iov_count, or the reverse: %p, %u",
				req->name, (const void *)attr->iov, attr->iov_count);
	if (attr->addr != NULL || (attr->access & RMEM_ACCESS_ALLOCATE_MR) != 0)
		return RMEM_FAIL(EINVAL, "%s: iov cannot be combined with %s", req->name,
				attr->addr != NULL ? "addr" : "ALLOCATE_MR");
	return 0;
}

static int
check_piece(const struct request *req, uint32_t i)
{
	const struct iovec *range = &req->attr->iov[i];

	if (range->iov_base == NULL || range->iov_len == 0 ||
			range->iov_len - 1 > UINTPTR_MAX - (uintptr_t)range->iov_base)
		return RMEM_FAIL(EINVAL,
				"%s: range %u is NULL, empty or wraps around: %zu bytes at %p",
				req->name, i, range->iov_len, range->iov_base);
	return 0;
}

/* Check the ranges, at least one, and set the length to their sum. */
static int
check_iov(struct request *req)
{
	const struct rmem_mr_attr *attr = req->attr;
	const struct rmem_dev_info *info = req->info;
	size_t sum = 0;
	uint32_t i;
	int ret;

	ret = check_iov_form(req);
	if (ret != 0)
		return ret;
	if ((info->capa & RMEM_DEV_CAPA_MR_IOV) == 0)
		return RMEM_FAIL(EOPNOTSUPP,
				"%s: not supported by the device: MRs over several ranges",
				req->name);
	if (attr->iov_count > info->max_iov)
		return RMEM_FAIL(EINVAL, "%s: iov_count out of range: %u (1 to %u)", req->name,
				attr->iov_count, info->max_iov);
	for (i = 0; i < attr->iov_count; i++) {
		ret = check_piece(req, i);
		if (ret != 0)
			return ret;
		if (__builtin_add_overflow(sum, attr->iov[i].iov_len, &sum))
			sum = SIZE_MAX; /* saturated: over every limit */
	}
	if (attr->length != 0 && attr->length != sum)
		return RMEM_FAIL(EINVAL,
				"%s: length is not the sum of the ranges: %zu (0 or %zu, %u ranges)",
				req->name, attr->length, sum, attr->iov_count);
	req->length = sum;
	return 0;
}

static int
check_dm(const struct rmem_dev *dev, const struct request *req)
{
	const struct rmem_mr_attr *attr = req->attr;
	int ret = rmem_obj_check_of(attr->ext->dm, RMEM_OBJ_DM, &dev->obj);

	if (ret != 0)
		return ret;
	if ((attr->access & RMEM_ACCESS_ZERO_BASED) == 0 || (attr->access & ~ACCESS_DM) != 0)
		return RMEM_FAIL(EINVAL,
				"%s: MR of device memory: access not ZERO_BASED, or more than 0x%x: 0x%x",
				dev->name, ACCESS_DM, attr->access);
	if (attr->addr != NULL || attr->iov != NULL || attr->iov_count != 0 || attr->iova != 0 ||
			attr->eq != NULL || (attr->flags & ~RMEM_MR_REQUESTED_KEY) != 0)
		return RMEM_FAIL(EINVAL,
				"%s: MR of device memory: cannot be combined with addr, iov, iova, eq, or flags 0x%x",
				dev->name, attr->flags & ~RMEM_MR_REQUESTED_KEY);
	return rmem_dm_check_range(attr->ext->dm, attr->ext->dm_offset, attr->length);
}

static int
check_ext(const struct request *req)
{
	const struct rmem_mr_ext *ext = req->attr->ext;
	int ret;

	if (ext == NULL)
		return 0;
	ret = rmem_check_reserved(ext->reserved, sizeof(ext->reserved));
	if (ret == 0 && ext->dm == NULL && ext->dm_offset != 0)
		ret = RMEM_FAIL(EINVAL, "%s: dm_offset without dm: %" PRIu64, req->name,
				ext->dm_offset);
	return ret;
}

/* Check the memory of a registration: device memory, ranges or one range. */
static int
check_memory(const struct rmem_dev *dev, struct request *req)
{
	int ret = check_ext(req);

	if (ret == 0)
		ret = check_odp(req);
	if (ret != 0)
		return ret;
	if (req->is_dm)
		return check_dm(dev, req);
	if (req->attr->iov != NULL || req->attr->iov_count != 0)
		ret = check_iov(req);
	return ret != 0 ? ret : check_range(req);
}

/* Check the attributes permitted with an fd. */
static int
check_fd_form(const struct request *req)
{
	const struct rmem_mr_attr *attr = req->attr;
	const uint32_t bad = RMEM_ACCESS_ALLOCATE_MR | RMEM_ACCESS_ON_DEMAND;

	if (attr->addr != NULL || attr->iov_count != 0 || (attr->access & bad) != 0)
		return RMEM_FAIL(EINVAL,
				"%s: RMEM_MR_FD cannot be combined with addr, iov, ALLOCATE_MR or ON_DEMAND",
				req->name);
	return 0;
}

/* Check the fd attributes, or that they are not set. */
static int
check_fd(const struct request *req)
{
	const struct rmem_mr_attr *attr = req->attr;
	struct stat st;
	int ret;

	if ((attr->flags & RMEM_MR_FD) == 0) {
		if (attr->fd == 0 && attr->fd_offset == 0)
			return 0;
		return RMEM_FAIL(EINVAL, "%s: fd or fd_offset without RMEM_MR_FD: %d, %" PRIu64,
				req->name, attr->fd, attr->fd_offset);
	}
	ret = check_fd_form(req);
	if (ret != 0)
		return ret;
	if (fstat(attr->fd, &st) != 0)
		return RMEM_FAIL(EINVAL, "%s: fd %d: %s", req->name, attr->fd, strerror(errno));
	/* Device files have no size; their drivers check the range. */
	if (!S_ISREG(st.st_mode) && st.st_size == 0)
		return 0;
	if (attr->fd_offset > (uint64_t)st.st_size ||
			attr->length > (uint64_t)st.st_size - attr->fd_offset)
		return RMEM_FAIL(EINVAL,
				"%s: range beyond the end of the file: %zu bytes at offset %" PRIu64
				" (%" PRIu64 " bytes, fd %d)",
				req->name, attr->length, attr->fd_offset, (uint64_t)st.st_size,
				attr->fd);
	return 0;
}

/* Whether a file survives a power failure: its file system is not only in memory. */
static bool
is_stored(int fd)
{
	struct statfs fs;
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && fstatfs(fd, &fs) == 0 &&
			fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC &&
			fs.f_type != HUGETLBFS_MAGIC;
}

static int
check_persistent(const struct request *req)
{
	if ((req->attr->access & RMEM_ACCESS_FLUSH_PERSISTENT) == 0 ||
			((req->attr->flags & RMEM_MR_FD) != 0 && is_stored(req->attr->fd)))
		return 0;
	return RMEM_FAIL(EOPNOTSUPP, "%s: FLUSH_PERSISTENT without RMEM_MR_FD of a stored file",
			req->name);
}

int
rmem_mr_check_attr(const struct rmem_dev *dev, const struct rmem_mr_attr *attr)
{
	struct request req = {
			.name = dev->name,
			.info = rmem_obj_info(&dev->obj),
			.attr = attr,
			.length = attr->length,
			.is_implicit = rmem_mr_is_implicit(attr->addr, attr->length, attr->access),
			.is_dm = rmem_mr_dm(attr) != NULL,
	};
	int ret;

	ret = rmem_name_check(attr->name);
	if (ret == 0 && (attr->access & RMEM_ACCESS_ALLOCATE_MR) != 0)
		ret = rmem_socket_check(attr->socket_id);
	if (ret == 0)
		ret = check_access(&req);
	if (ret == 0)
		ret = check_memory(dev, &req);
	if (ret == 0)
		ret = check_access_capa(&req);
	if (ret == 0)
		ret = check_odp_capa(&req);
	if (ret == 0)
		ret = check_flags(&req);
	if (ret == 0)
		ret = check_fd(&req);
	if (ret == 0)
		ret = check_persistent(&req);
	if (ret == 0 && attr->eq != NULL)
		ret = rmem_obj_check_of(attr->eq, RMEM_OBJ_EQ, &dev->obj);
	return ret;
}

int
rmem_mr_check_user(const struct rmem_mr *mr)
{
	if (mr->type == RMEM_MR_TYPE_USER)
		return 0;
	return RMEM_FAIL(EINVAL, "MR %p: not of registered memory: type %u (expected %u)",
			(const void *)mr, mr->type, RMEM_MR_TYPE_USER);
}

int
rmem_mr_check_registered(const struct rmem_mr *mr)
{
	if (rmem_mr_is_registered(mr))
		return 0;
	return RMEM_FAIL(EBUSY, "MR %p: registration %s", (const void *)mr,
			rmem_mr_state(mr) == RMEM_MR_STATE_ERROR ? "failed: deregister it"
								 : "is in progress");
}
