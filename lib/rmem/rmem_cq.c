/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Completion queues. A CQ refers to its device; QPs refer to the CQ.
 */

#include <errno.h>

#include "rmem_priv.h"
#include "rmem_trace_priv.h"

static int
check_conf(const struct rmem_dev *dev, const struct rmem_cq_conf *conf)
{
	uint32_t max = rmem_obj_info(&dev->obj)->max_cqe;

	if (conf->flags != 0)
		return RMEM_FAIL(EINVAL, "%s: unknown CQ flags: 0x%x", dev->name, conf->flags);
	if (conf->nb_cqe == 0 || conf->nb_cqe > max)
		return RMEM_FAIL(EINVAL, "%s: nb_cqe out of range: %u (1 to %u)", dev->name,
				conf->nb_cqe, max);
	return rmem_check_reserved(conf->reserved, sizeof(conf->reserved));
}

int
rmem_cq_create(struct rmem_dev *dev, const struct rmem_cq_conf *conf, struct rmem_cq **cq)
{
	RMEM_CALL(dev);
	struct rmem_cq *new_cq;
	int ret;

	ret = rmem_obj_check(dev, RMEM_OBJ_DEV);
	if (ret == 0)
		ret = rmem_check_arg(conf, "configuration");
	if (ret == 0)
		ret = rmem_check_arg(cq, "CQ pointer");
	if (ret == 0)
		ret = check_conf(dev, conf);
	if (ret != 0)
		return ret;
	new_cq = rmem_obj_create(&dev->obj, RMEM_OBJ_CQ, rmem_obj_driver(&dev->obj)->cq_size, &ret);
	if (new_cq == NULL)
		return ret;
	new_cq->nb_cqe = conf->nb_cqe;
	ret = RMEM_OP(dev, cq_create, new_cq, conf);
	if (ret != 0) {
		rmem_obj_drop(&new_cq->obj, &dev->obj);
		return ret;
	}
	*cq = new_cq;
	rmem_trace_cq_create(dev->name, new_cq, new_cq->nb_cqe);
	return 0;
}

int
rmem_cq_destroy(struct rmem_cq *cq)
{
	RMEM_CALL(cq);
	int ret;

	if (cq == NULL)
		return 0;
	ret = rmem_obj_check(cq, RMEM_OBJ_CQ);
	if (ret == 0)
		ret = rmem_obj_kill(&cq->obj);
	if (ret != 0)
		return ret;
	ret = RMEM_OP(cq, cq_destroy, cq);
	if (ret == 0)
		rmem_trace_cq_destroy(cq);
	return rmem_obj_end(&cq->obj, &rmem_obj_dev(&cq->obj)->obj, ret);
}
