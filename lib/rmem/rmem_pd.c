/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Protection domains. A PD refers to its device; MRs and QPs refer to the PD.
 */

#include "rmem_priv.h"
#include "rmem_trace_priv.h"

int
rmem_pd_alloc(struct rmem_dev *dev, struct rmem_pd **pd)
{
	RMEM_CALL(dev);
	struct rmem_pd *new_pd;
	int ret;

	ret = rmem_obj_check(dev, RMEM_OBJ_DEV);
	if (ret == 0)
		ret = rmem_check_arg(pd, "PD pointer");
	if (ret != 0)
		return ret;
	new_pd = rmem_obj_create(&dev->obj, RMEM_OBJ_PD, rmem_obj_driver(&dev->obj)->pd_size, &ret);
	if (new_pd == NULL)
		return ret;
	ret = RMEM_OP(dev, pd_alloc, new_pd);
	if (ret != 0) {
		rmem_obj_drop(&new_pd->obj, &dev->obj);
		return ret;
	}
	*pd = new_pd;
	rmem_trace_pd_alloc(dev->name, new_pd);
	return 0;
}

int
rmem_pd_dealloc(struct rmem_pd *pd)
{
	RMEM_CALL(pd);
	int ret;

	if (pd == NULL)
		return 0;
	ret = rmem_obj_check(pd, RMEM_OBJ_PD);
	if (ret == 0)
		ret = rmem_obj_kill(&pd->obj);
	if (ret != 0)
		return ret;
	ret = RMEM_OP(pd, pd_dealloc, pd);
	if (ret == 0)
		rmem_trace_pd_dealloc(pd);
	return rmem_obj_end(&pd->obj, &rmem_obj_dev(&pd->obj)->obj, ret);
}

struct rmem_dev *
rmem_pd_dev(const struct rmem_pd *pd)
{
	return pd != NULL && pd->obj.type == RMEM_OBJ_PD ? rmem_obj_dev(&pd->obj) : NULL;
}
