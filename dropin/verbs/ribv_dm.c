/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Device memory of the class, and MRs of it. */

#include <errno.h>

#include "ribv.h"

#define ALIGN 4 /* of offsets and lengths of copies */

static bool
is_dm(const struct ibv_dm *dm)
{
	const struct ribv_dm *own = (const struct ribv_dm *)dm;

	return ribv_slot(dm, RIBV_DM) != 0 && own->dm != NULL && dm->handle == own->handle &&
			dm->context == own->context;
}

/* Return the errnos of mlx5. */
static int
check_copy(const struct ibv_dm *dm, uint64_t offset, size_t length)
{
	uint64_t size;

	if (!is_dm(dm))
		return ENOENT;
	size = ((const struct ribv_dm *)dm)->dm->length;
	if (offset > size || length > size - offset)
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
	return ribv_post_fail(-rmem_dm_copy_to(own->dm, offset, from, length));
}

static int
copy_from(void *to, struct ibv_dm *dm, uint64_t offset, size_t length)
{
	struct ribv_dm *own = (struct ribv_dm *)dm;
	int ret;

	ret = check_copy(dm, offset, length);
	if (ret != 0)
		return ribv_post_fail(ret);
	return ribv_post_fail(-rmem_dm_copy_from(own->dm, offset, to, length));
}

struct ibv_dm *
ribv_dm_handle(struct ibv_context *context, struct rmem_dm *memory, uint32_t handle,
		const struct ribv_context *foreign)
{
	struct ribv_dm *dm = ribv_new();
	uint32_t slot;

	if (dm == NULL)
		return NULL;
	dm->dm = memory;
	dm->ibv.context = dm->context = context;
	dm->ibv.memcpy_to_dm = copy_to;
	dm->ibv.memcpy_from_dm = copy_from;
	dm->ibv.comp_mask = IBV_DM_MASK_HANDLE;
	dm->is_imported = handle != 0;
	dm->foreign = foreign;
	slot = ribv_enter(dm, RIBV_DM);
	dm->ibv.handle = dm->handle = handle != 0 ? handle : slot;
	return &dm->ibv;
}

struct ibv_dm *
ribv_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct rmem_dm_conf conf = {.length = 0};
	struct rmem_dm *memory;
	struct ibv_dm *dm;
	int ret;

	if (!ribv_has_device(context))
		return ribv_fail(ENOENT);
	if (attr == NULL || attr->comp_mask != 0)
		return ribv_fail(EINVAL);
	conf.length = attr->length;
	conf.log2_align = attr->log_align_req;
	ret = rmem_dm_alloc(ribv_dev_of(context), &conf, &memory);
	if (ret != 0)
		return ribv_fail(ribv_errno(ret));
	dm = ribv_dm_handle(context, memory, 0, NULL);
	if (dm == NULL)
		rmem_dm_free(memory);
	else
		ribv_handle_publish_dm((struct ribv_dm *)dm);
	return dm;
}

int
ribv_free_dm(struct ibv_dm *dm)
{
	struct ribv_dm *own = (struct ribv_dm *)dm;
	int ret;

	if (!is_dm(dm))
		return ribv_leave_inherited(dm, RIBV_DM);
	ret = own->foreign != NULL ? EBUSY : ribv_handle_withdraw(own->context, own->handle);
	if (ret != 0)
		return ret;
	ret = rmem_dm_free(own->dm);
	if (ret != 0) {
		ribv_handle_publish_dm(own);
		return -ret;
	}
	ribv_handle_dm_ended(own);
	ribv_leave(own);
	return 0;
}

#ifdef RIBV_HAS_DM_EXPORT

/* The descriptor is of a memfd, which ibv_reg_dmabuf_mr() accepts, and not of a dma-buf. */
int
ibv_dm_export_dmabuf_fd(struct ibv_dm *dm)
{
	int ret, fd;

	if (ribv_is_real(dm))
		return RIBV_NEXT(ibv_dm_export_dmabuf_fd)(dm);
	if (!is_dm(dm))
		return ribv_minus_one(ENOENT);
	ret = rmem_dm_export_fd(((struct ribv_dm *)dm)->dm, &fd);
	return ret != 0 ? ribv_minus_one(ribv_errno(ret)) : fd;
}

#endif /* RIBV_HAS_DM_EXPORT */

struct ibv_mr *
ribv_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
		unsigned int access)
{
	struct rmem_mr_ext ext = {.dm_offset = offset};
	const struct rmem_mr_attr attr = {.length = length,
			.access = access & ~IBV_ACCESS_OPTIONAL_RANGE,
			.ext = &ext};
	struct ibv_mr *mr;

	if (!is_dm(dm) || !ribv_is_pd(pd))
		return ribv_fail(ENOENT);
	if (pd->context != dm->context)
		return ribv_fail(EINVAL);
	ext.dm = ((struct ribv_dm *)dm)->dm;
	mr = ribv_mr_reg(pd, &attr, (struct ribv_dm *)dm);
	if (mr != NULL)
		mr->length = length;
	return mr;
}
