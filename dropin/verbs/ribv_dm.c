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
	const struct ribv_dm *own = (const struct ribv_dm *)dm;

	return ribv_slot(dm, RIBV_DM) != 0 && own->shared != NULL && dm->handle == own->handle &&
			dm->context == own->context;
}

static bool
is_within(const struct ribv_dm *dm, uint64_t offset, uint64_t length)
{
	return offset <= dm->shared->length && length <= dm->shared->length - offset;
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
	memcpy(own->shared->bytes + offset, from, length);
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
	memcpy(to, own->shared->bytes + offset, length);
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

struct ibv_dm *
ribv_dm_handle(struct ibv_context *context, struct ribv_dm_memory *memory, uint32_t handle)
{
	struct ribv_dm *dm = ribv_new();
	uint32_t slot;

	if (dm == NULL)
		return NULL;
	dm->shared = memory;
	dm->ibv.context = dm->context = context;
	dm->ibv.memcpy_to_dm = copy_to;
	dm->ibv.memcpy_from_dm = copy_from;
	dm->ibv.comp_mask = IBV_DM_MASK_HANDLE;
	dm->is_imported = handle != 0;
	slot = ribv_enter(dm, RIBV_DM);
	dm->ibv.handle = dm->handle = handle != 0 ? handle : slot;
	return &dm->ibv;
}

static void
memory_free(struct ribv_dm_memory *memory)
{
	__atomic_fetch_sub(&nb_bytes, memory->length, __ATOMIC_RELAXED);
	free(memory->bytes);
	free(memory);
}

/* Memory whose bytes are counted; NULL: none is left. */
static struct ribv_dm_memory *
memory_new(size_t length, uint32_t log_align)
{
	struct ribv_dm_memory *memory;
	void *bytes;

	if (!take(length))
		return NULL;
	memory = calloc(1, sizeof(*memory));
	if (memory == NULL || posix_memalign(&bytes, (size_t)1 << log_align, length) != 0) {
		__atomic_fetch_sub(&nb_bytes, length, __ATOMIC_RELAXED);
		free(memory);
		return NULL;
	}
	memset(bytes, 0, length);
	memory->bytes = bytes;
	memory->length = length;
	return memory;
}

struct ibv_dm *
ribv_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct ribv_dm_memory *memory;
	struct ibv_dm *dm;

	if (!ribv_has_device(context))
		return ribv_fail(ENOENT);
	if (attr == NULL || attr->comp_mask != 0 || attr->length == 0 ||
			attr->length > RIBV_DM_SIZE || attr->log_align_req > MAX_LOG)
		return ribv_fail(EINVAL);
	memory = memory_new(attr->length, RTE_MAX(attr->log_align_req, MIN_LOG));
	if (memory == NULL)
		return ribv_fail(ENOMEM);
	dm = ribv_dm_handle(context, memory, 0);
	if (dm == NULL)
		memory_free(memory);
	return dm;
}

int
ribv_free_dm(struct ibv_dm *dm)
{
	struct ribv_dm *own = (struct ribv_dm *)dm;

	if (!is_dm(dm))
		return ribv_leave_inherited(dm, RIBV_DM);
	if (__atomic_load_n(&own->shared->refs, __ATOMIC_ACQUIRE) != 0)
		return EBUSY;
	ribv_handle_dm_ended(own);
	memory_free(own->shared);
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
	mr = ribv_mr_reg(pd, own->shared->bytes + offset, length, 0, access, 0);
	if (mr == NULL)
		return NULL;
	mr->addr = NULL;
	mr->length = length;
	((struct ribv_mr *)mr)->dm = own->shared;
	((struct ribv_mr *)mr)->is_plain = false;
	__atomic_fetch_add(&own->shared->refs, 1, __ATOMIC_RELAXED);
	return mr;
}
