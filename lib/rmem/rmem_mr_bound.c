/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Allocation of fast-register MRs and indirect keys.
 */

#include <errno.h>

#include "rmem_mr_priv.h"
#include "rmem_obj_priv.h"
#include "rmem_trace_priv.h"

int
rmem_mr_check_bound(struct rmem_dev *dev, const struct rmem_mr_bound *kind, uint32_t size)
{
	const struct rmem_dev_info *info = rmem_obj_info(&dev->obj);
	uint32_t max = kind->max_size(info);

	if (size == 0)
		return RMEM_FAIL(EINVAL, "%s: %s out of range: 0", dev->name, kind->size_name);
	if ((info->capa & kind->capa) == 0)
		return RMEM_FAIL(EOPNOTSUPP, "%s: not supported by the device: %s", dev->name,
				kind->name);
	if (size > max)
		return RMEM_FAIL(EINVAL, "%s: %s out of range: %u (1 to %u)", dev->name,
				kind->size_name, size, max);
	return 0;
}

int
rmem_mr_alloc_bound(struct rmem_pd *pd, const struct rmem_mr_bound *kind, uint32_t size,
		struct rmem_mr **mr)
{
	struct rmem_mr *new_mr;
	int ret;

	ret = rmem_obj_check(pd, RMEM_OBJ_PD);
	if (ret == 0)
		ret = rmem_check_arg(mr, "MR pointer");
	if (ret == 0)
		ret = rmem_mr_check_bound(rmem_obj_dev(&pd->obj), kind, size);
	if (ret != 0)
		return ret;
	new_mr = rmem_obj_create(&pd->obj, RMEM_OBJ_MR, rmem_obj_driver(&pd->obj)->mr_size, &ret);
	if (new_mr == NULL)
		return ret;
	new_mr->pd = pd;
	new_mr->type = kind->type;
	rmem_mr_drv(new_mr)->max_size = size;
	ret = kind->alloc(new_mr);
	if (ret != 0) {
		rmem_obj_drop(&new_mr->obj, &pd->obj);
		return ret;
	}
	rmem_obj_list(&new_mr->obj);
	*mr = new_mr;
	rmem_trace_mr_alloc(pd, new_mr, new_mr->type, size, new_mr->lkey, new_mr->rkey);
	return 0;
}
