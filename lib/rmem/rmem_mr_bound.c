/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * MRs that requests bind, of either kind: how they are allocated.
 */

#include <errno.h>

#include <rmem_mr_priv.h>
#include <rmem_trace_priv.h>

int
rmem_mr_check_bound(struct rmem_dev *dev, const struct rmem_mr_bound *kind, uint32_t size)
{
	struct rmem_dev_info info;
	uint32_t max;
	int ret;

	if (size == 0) {
		RMEM_LOG(ERR, "%s: %s is 0", dev->name, kind->size_name);
		return -EINVAL;
	}
	ret = rmem_dev_info_fill(dev, &info);
	if (ret != 0)
		return ret;
	if ((info.capa & kind->capa) == 0) {
		RMEM_LOG(ERR, "%s: no %s on this device", dev->name, kind->name);
		return -EOPNOTSUPP;
	}
	max = kind->max_size(&info);
	if (size > max) {
		RMEM_LOG(ERR, "%s: %s %u is not 1 to %u", dev->name, kind->size_name, size, max);
		return -EINVAL;
	}
	return 0;
}

/* Call with a reference to the PD. */
static int
do_alloc(struct rmem_pd *pd, const struct rmem_mr_bound *kind, uint32_t size, struct rmem_mr **mr)
{
	struct rmem_dev *dev = rmem_obj_dev(&pd->obj);
	struct rmem_mr *new_mr;
	int ret;

	new_mr = rmem_obj_alloc(dev, RMEM_OBJ_MR, rmem_dev_driver(dev)->mr_size);
	if (new_mr == NULL)
		return -ENOMEM;
	new_mr->pd = pd;
	new_mr->type = kind->type;
	ret = kind->alloc(new_mr, size);
	if (ret != 0) {
		rmem_obj_free(&new_mr->obj);
		return ret;
	}
	*mr = new_mr;
	return 0;
}

int
rmem_mr_alloc_bound(struct rmem_pd *pd, const struct rmem_mr_bound *kind, uint32_t size,
		struct rmem_mr **mr, const char *func)
{
	struct rmem_dev *dev;
	int ret;

	ret = rmem_obj_check(pd, RMEM_OBJ_PD, func);
	if (ret != 0)
		return ret;
	dev = rmem_obj_dev(&pd->obj);
	if (mr == NULL) {
		RMEM_LOG(ERR, "%s: got NULL for the MR pointer", dev->name);
		return -EINVAL;
	}
	ret = rmem_mr_check_bound(dev, kind, size);
	if (ret == 0)
		ret = rmem_obj_get(&pd->obj, func);
	if (ret != 0)
		return ret;
	ret = do_alloc(pd, kind, size, mr);
	if (ret == 0)
		rmem_trace_mr_alloc(pd, *mr, (*mr)->type, size, (*mr)->lkey, (*mr)->rkey);
	else
		rmem_obj_put(&pd->obj);
	return ret;
}
