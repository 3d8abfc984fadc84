/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The fakes of device memory: bytes on the heap, copied by multiples of 4, as mlx5 requires. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

struct fake_dm {
	struct ibv_dm ibv;
	uint8_t *bytes;
};

static int
fake_copy_to_dm(struct ibv_dm *ibv, uint64_t offset, const void *src, size_t length)
{
	if (fake_fails("memcpy_to_dm"))
		return errno;
	if (offset % 4 != 0 || length % 4 != 0)
		return EINVAL;
	memcpy(((struct fake_dm *)ibv)->bytes + offset, src, length);
	return 0;
}

static int
fake_copy_from_dm(void *dst, struct ibv_dm *ibv, uint64_t offset, size_t length)
{
	if (fake_fails("memcpy_from_dm"))
		return errno;
	if (offset % 4 != 0 || length % 4 != 0)
		return EINVAL;
	memcpy(dst, ((struct fake_dm *)ibv)->bytes + offset, length);
	return 0;
}

static struct ibv_dm *
fake_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct fake_dm *dm = fake_new("alloc_dm", sizeof(*dm));

	if (dm == NULL)
		return NULL;
	dm->bytes = calloc(1, attr->length);
	dm->ibv.context = context;
	dm->ibv.memcpy_to_dm = fake_copy_to_dm;
	dm->ibv.memcpy_from_dm = fake_copy_from_dm;
	fake.dm_log_align = attr->log_align_req;
	return &dm->ibv;
}

static int
fake_free_dm(struct ibv_dm *ibv)
{
	struct fake_dm *dm = (struct fake_dm *)ibv;

	if (fake_keeps("free_dm", dm))
		return errno;
	free(dm->bytes);
	return fake_delete(dm);
}

static struct ibv_mr *
fake_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibv, uint64_t offset, size_t length,
		unsigned int access)
{
	if (fake_fails("reg_dm_mr"))
		return NULL;
	if ((access & IBV_ACCESS_ZERO_BASED) == 0) {
		errno = EINVAL;
		return NULL;
	}
	return ibv_reg_mr_iova2(pd, ((struct fake_dm *)ibv)->bytes + offset, length, 0, access);
}

void
fake_dm_ops(struct verbs_context *context)
{
	if (fake.max_dm_size == 0)
		return;
	context->alloc_dm = fake_alloc_dm;
	context->free_dm = fake_free_dm;
	context->reg_dm_mr = fake_reg_dm_mr;
}
