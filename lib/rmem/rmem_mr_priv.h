/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Shared by the files of MRs. Not installed.
 */

#ifndef RMEM_MR_PRIV_H
#define RMEM_MR_PRIV_H

#include <stdbool.h>
#include <sys/uio.h>

#include "rmem_priv.h"

/* Bits of rmem_mr_drv::flags, above RMEM_MR_FD. */
/** The memzone of ALLOCATE_MR has the second of its two names. */
#define RMEM_MR_SECOND_NAME (UINT32_C(1) << 16)
/** In RMEM_MR_STATE_ERROR: the driver still has resources of the MR. */
#define RMEM_MR_HELD (UINT32_C(1) << 17)
/** Created by rmem_mr_reg_shared(). */
#define RMEM_MR_SHARED (UINT32_C(1) << 18)
/** Its fd could be mapped for reading only. */
#define RMEM_MR_FD_READ_ONLY (UINT32_C(1) << 19)
/** Upper bits: log2 of its page size, known from HUGETLB or an fd, or 0. */
#define RMEM_MR_LOG2_PAGE_SHIFT 24

/** Whether a registration covers the whole address space. */
static inline bool
rmem_mr_is_implicit(const void *addr, size_t length, uint32_t access)
{
	return (access & RMEM_ACCESS_ON_DEMAND) != 0 && addr == NULL && length == SIZE_MAX;
}

/** Get the device memory of a registration; NULL: it is of memory of the process. */
static inline struct rmem_dm *
rmem_mr_dm(const struct rmem_mr_attr *attr)
{
	return attr->ext != NULL ? attr->ext->dm : NULL;
}

/** Fill the page fields of info for an on-demand MR, whose IO addresses are not permanent. */
void rmem_mr_odp_pages_fill(
		const struct rmem_mr *mr, uint64_t page_size_cap, struct rmem_mr_info *info);

/** Check the attributes of a registration, except its memory. */
int rmem_mr_check_attr(const struct rmem_dev *dev, const struct rmem_mr_attr *attr);

/** Return 0 for a user MR, -EINVAL for an MR that requests bind. */
int rmem_mr_check_user(const struct rmem_mr *mr);

/** Return 0 if a user MR is registered, enabled or not; else -EBUSY. */
int rmem_mr_check_registered(const struct rmem_mr *mr);

/** Allocate of->length bytes for ALLOCATE_MR, named after mr; set of->addr and of->length. */
int rmem_mr_alloc_chunk(struct rmem_mr *of, const struct rmem_mr *mr, int socket_id);

/** Free the memory of rmem_mr_alloc_chunk(), if there is any. */
void rmem_mr_free_chunk(const struct rmem_mr *of, const struct rmem_mr *mr);

/** With RMEM_ACCESS_HUGETLB: check the memory of an MR whose fields are set, and store its page
 * size. */
int rmem_mr_check_hugetlb(struct rmem_mr *mr);

/** Copy the ranges for an MR, if there are any. Return 0, or -ENOMEM with a log line. */
int rmem_mr_copy_iov(struct rmem_mr *mr, const struct iovec *iov, uint32_t iov_count);

/** Free the ranges of rmem_mr_copy_iov(). */
void rmem_mr_free_iov(struct rmem_mr *mr);

/** Map mr->length bytes of the fd of attr; -EINVAL, -EPERM or -ENOMEM with a log line. */
int rmem_mr_map_fd(struct rmem_mr *mr, const struct rmem_mr_attr *attr);

/** Return 0 if the MR has no fd, or its fd permits the access; else -EFAULT or -EINVAL. */
int rmem_mr_check_fd_access(const struct rmem_mr *mr, uint32_t access);

/** Unmap the memory, if the MR owns a mapping. */
void rmem_mr_unmap_fd(const struct rmem_mr *mr);

/** Address of the first byte of a user MR. */
static inline uintptr_t
rmem_mr_first(const struct rmem_mr *mr)
{
	return (uintptr_t)(rmem_mr_drv(mr)->iov != NULL ? rmem_mr_drv(mr)->iov[0].iov_base
							: mr->addr);
}

/** Release the reference to the owner of the memory, if there is one. */
static inline void
rmem_mr_put_owner(const struct rmem_mr *of)
{
	if (rmem_mr_drv(of)->owner != NULL)
		rmem_obj_unhold(rmem_mr_drv(of)->owner);
}

/** A kind of MR that requests bind: fast-register or indirect. */
struct rmem_mr_bound {
	const char *name;      /**< For messages: name of the capability. */
	const char *size_name; /**< For messages: name of the size. */
	uint64_t capa;         /**< RMEM_DEV_CAPA_* that the kind needs. */
	uint16_t type;         /**< One of enum rmem_mr_type. */
	/** Get the device's limit of the size. */
	uint32_t (*max_size)(const struct rmem_dev_info *info);
	/** Call the operation of the driver. */
	int (*alloc)(struct rmem_mr *mr);
};

/** Return 0 if the device supports the kind in that size, else -EINVAL or -EOPNOTSUPP. */
int rmem_mr_check_bound(struct rmem_dev *dev, const struct rmem_mr_bound *kind, uint32_t size);

/** Allocate an MR of a kind: rmem_fast_reg_mr_alloc(), rmem_mkey_alloc(). */
int rmem_mr_alloc_bound(struct rmem_pd *pd, const struct rmem_mr_bound *kind, uint32_t size,
		struct rmem_mr **mr);

#endif /* RMEM_MR_PRIV_H */
