/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Device memory: memory of the process, as the device has none. Its MRs are zero-based.
 *
 * Invariant: nb_bytes is the length of all device memory, at most RIBV_DM_SIZE.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ribv.h"

#define ALIGN   4 /* of offsets and lengths that are copied */
#define MIN_LOG 6
#define MAX_LOG 12

static uint64_t nb_bytes; /* atomic */

static bool
is_dm(const struct ibv_dm *dm)
{
	uint32_t slot = ribv_slot(dm, RIBV_DM);

	return slot != 0 && dm->handle == slot &&
			dm->context == ((const struct ribv_dm *)dm)->context;
}

static bool
is_within(const struct ribv_dm *dm, uint64_t offset, uint64_t length)
{
	return offset <= dm->length && length <= dm->length - offset;
}

/* The errnos of mlx5. */
static int
check_copy(const struct ibv_dm *dm, uint64_t offset, size_t length)
{
	if (!is_dm(dm))
		return ENOENT;
	if (!is_within((const struct ribv_dm *)dm, offset, length))
		return EFAULT;
	return offset % ALIGN != 0 || length % ALIGN != 0 ? EINVAL : 0;
}

static int
copy_to(struct ibv_dm *dm, uint64_t offset, const void *from, size_t length)
{
	struct ribv_dm *own = (struct ribv_dm *)dm;
	int ret;

	ret = check_copy(dm, offset, length);
	if (ret != 0)
		return ribv_post_fail(ret);
	memcpy(own->memory + offset, from, length);
	return 0;
}

static int
copy_from(void *to, struct ibv_dm *dm, uint64_t offset, size_t length)
{
	struct ribv_dm *own = (struct ribv_dm *)dm;
	int ret;

	ret = check_copy(dm, offset, length);
	if (ret != 0)
		return ribv_post_fail(ret);
	memcpy(to, own->memory + offset, length);
	return 0;
}

/* Count bytes; return whether they are left. */
static bool
take(uint64_t length)
{
	if (__atomic_add_fetch(&nb_bytes, length, __ATOMIC_RELAXED) <= RIBV_DM_SIZE)
		return true;
	__atomic_fetch_sub(&nb_bytes, length, __ATOMIC_RELAXED);
	return false;
}

static struct ibv_dm *
dm_new(struct ibv_context *context, size_t length, uint32_t log_align)
{
	struct ribv_dm *dm = ribv_new();
	void *memory;

	if (dm == NULL)
		return NULL;
	if (posix_memalign(&memory, (size_t)1 << log_align, length) != 0) {
		ribv_leave(dm);
		return ribv_fail(ENOMEM);
	}
	memset(memory, 0, length);
	dm->memory = memory;
	dm->length = length;
	dm->ibv.context = dm->context = context;
	dm->ibv.memcpy_to_dm = copy_to;
	dm->ibv.memcpy_from_dm = copy_from;
	dm->ibv.comp_mask = IBV_DM_MASK_HANDLE;
	dm->ibv.handle = ribv_enter(dm, RIBV_DM);
	return &dm->ibv;
}

struct ibv_dm *
ribv_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct ibv_dm *dm;

	if (!ribv_has_device(context))
		return ribv_fail(ENOENT);
	if (attr == NULL || attr->comp_mask != 0 || attr->length == 0 ||
			attr->length > RIBV_DM_SIZE || attr->log_align_req > MAX_LOG)
		return ribv_fail(EINVAL);
	if (!take(attr->length))
		return ribv_fail(ENOMEM);
	dm = dm_new(context, attr->length, RTE_MAX(attr->log_align_req, MIN_LOG));
	if (dm == NULL)
		__atomic_fetch_sub(&nb_bytes, attr->length, __ATOMIC_RELAXED);
	return dm;
}

int
ribv_free_dm(struct ibv_dm *dm)
{
	struct ribv_dm *own = (struct ribv_dm *)dm;

	if (!is_dm(dm))
		return ribv_leave_inherited(dm, RIBV_DM);
	if (__atomic_load_n(&own->refs, __ATOMIC_ACQUIRE) != 0)
		return EBUSY;
	__atomic_fetch_sub(&nb_bytes, own->length, __ATOMIC_RELAXED);
	free(own->memory);
	ribv_leave(own);
	return 0;
}

struct ibv_mr *
ribv_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
		unsigned int access)
{
	struct ribv_dm *own = (struct ribv_dm *)dm;
	struct ibv_mr *mr;

	if (!is_dm(dm))
		return ribv_fail(ENOENT);
	if ((access & IBV_ACCESS_ZERO_BASED) == 0 || !is_within(own, offset, length) ||
			(ribv_is_pd(pd) && pd->context != dm->context))
		return ribv_fail(EINVAL);
	mr = ribv_mr_reg(pd, own->memory + offset, length, 0, access, 0);
	if (mr == NULL)
		return NULL;
	mr->addr = NULL;
	mr->length = length;
	((struct ribv_mr *)mr)->dm = own;
	((struct ribv_mr *)mr)->is_plain = false;
	__atomic_fetch_add(&own->refs, 1, __ATOMIC_RELAXED);
	return mr;
}
