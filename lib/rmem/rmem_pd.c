/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Protection domains. A PD refers to its device; MRs and QPs refer to the PD.
 */

#include <errno.h>

#include <rmem_priv.h>
#include <rmem_trace_priv.h>

static int
pd_alloc(struct rmem_dev *dev, struct rmem_pd **pd)
{
	struct rmem_pd *new_pd;
	int ret;

	ret = rmem_obj_check(dev, RMEM_OBJ_DEV, "rmem_pd_alloc");
	if (ret != 0)
		return ret;
	if (pd == NULL) {
		RMEM_LOG(ERR, "%s: got NULL for the PD pointer", dev->name);
		return -EINVAL;
	}
	ret = rmem_obj_get(&dev->obj, "rmem_pd_alloc");
	if (ret != 0)
		return ret;
	new_pd = rmem_obj_alloc(dev, RMEM_OBJ_PD, rmem_dev_driver(dev)->pd_size);
	if (new_pd == NULL) {
		ret = -ENOMEM;
		goto put_dev;
	}
	ret = rmem_dev_ops(dev)->pd_alloc(new_pd);
	if (ret != 0)
		goto free_pd;
	*pd = new_pd;
	rmem_trace_pd_alloc(dev->name, new_pd);
	return 0;

free_pd:
	rmem_obj_free(&new_pd->obj);
put_dev:
	rmem_obj_put(&dev->obj);
	return ret;
}

int
rmem_pd_alloc(struct rmem_dev *dev, struct rmem_pd **pd)
{
	return rmem_trace_call(__func__, dev, pd_alloc(dev, pd));
}

static int
pd_dealloc(struct rmem_pd *pd)
{
	struct rmem_dev *dev;
	int ret;

	if (pd == NULL)
		return 0;
	ret = rmem_obj_check(pd, RMEM_OBJ_PD, "rmem_pd_dealloc");
	if (ret != 0)
		return ret;
	ret = rmem_obj_kill(&pd->obj, "rmem_pd_dealloc");
	if (ret != 0)
		return ret;
	dev = rmem_obj_dev(&pd->obj);
	ret = rmem_dev_ops(dev)->pd_dealloc(pd);
	if (ret != 0) {
		rmem_obj_revive(&pd->obj);
		return ret;
	}
	rmem_trace_pd_dealloc(pd);
	rmem_obj_free(&pd->obj);
	rmem_obj_put(&dev->obj);
	return 0;
}

int
rmem_pd_dealloc(struct rmem_pd *pd)
{
	return rmem_trace_call(__func__, pd, pd_dealloc(pd));
}

struct rmem_dev *
rmem_pd_dev(const struct rmem_pd *pd)
{
	return pd != NULL && pd->obj.type == RMEM_OBJ_PD ? rmem_obj_dev(&pd->obj) : NULL;
}
