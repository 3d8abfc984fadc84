/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Protection domains. A PD refers to its device; MRs and QPs refer to the PD.
 */

#include "rmem_obj_priv.h"
#include "rmem_priv.h"
#include "rmem_report_priv.h"
#include "rmem_trace_priv.h"

int
rmem_pd_alloc_attr(struct rmem_dev *dev, const struct rmem_pd_attr *attr, struct rmem_pd **pd)
{
	RMEM_CALL(dev);
	struct rmem_pd *new_pd;
	int ret;

	ret = rmem_obj_check(dev, RMEM_OBJ_DEV);
	if (ret == 0)
		ret = rmem_check_arg(attr, "attributes");
	if (ret == 0)
		ret = rmem_check_arg(pd, "PD pointer");
	if (ret == 0)
		ret = rmem_check_reserved(attr->reserved, sizeof(attr->reserved));
	if (ret == 0)
		ret = rmem_name_check(attr->name);
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
	rmem_obj_set_name(&new_pd->obj, attr->name);
	rmem_obj_list(&new_pd->obj);
	*pd = new_pd;
	rmem_trace_pd_alloc(dev->name, new_pd);
	return 0;
}

int
rmem_pd_alloc(struct rmem_dev *dev, struct rmem_pd **pd)
{
	RMEM_CALL(dev);
	const struct rmem_pd_attr attr = {.name = NULL};

	return rmem_pd_alloc_attr(dev, &attr, pd);
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

const char *
rmem_pd_name(const struct rmem_pd *pd)
{
	return pd != NULL ? rmem_obj_name(&pd->obj, RMEM_OBJ_PD) : "";
}

/* In this file, because each program with objects links it, also from a static library. */
RTE_INIT_PRIO(rmem_pd_telemetry_init, LAST)
{
	rmem_telemetry_obj_init();
}
