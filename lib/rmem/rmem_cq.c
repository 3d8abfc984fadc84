/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Completion queues. A CQ refers to its device; QPs refer to the CQ.
 */

#include <errno.h>

#include <rmem_priv.h>
#include <rmem_trace_priv.h>

static int
check_conf(struct rmem_dev *dev, const struct rmem_cq_conf *conf)
{
	struct rmem_dev_info info;
	int ret;

	if (conf->flags != 0) {
		RMEM_LOG(ERR, "%s: unknown CQ flags 0x%x", dev->name, conf->flags);
		return -EINVAL;
	}
	ret = rmem_check_reserved(conf->reserved, sizeof(conf->reserved), "rmem_cq_create");
	if (ret != 0)
		return ret;
	ret = rmem_dev_info_fill(dev, &info);
	if (ret != 0)
		return ret;
	if (conf->nb_cqe == 0 || conf->nb_cqe > info.max_cqe) {
		RMEM_LOG(ERR, "%s: nb_cqe %u is not 1 to %u", dev->name, conf->nb_cqe,
				info.max_cqe);
		return -EINVAL;
	}
	return 0;
}

static int
cq_create(struct rmem_dev *dev, const struct rmem_cq_conf *conf, struct rmem_cq **cq)
{
	struct rmem_cq *new_cq;
	int ret;

	ret = rmem_obj_check(dev, RMEM_OBJ_DEV, "rmem_cq_create");
	if (ret != 0)
		return ret;
	if (conf == NULL || cq == NULL) {
		RMEM_LOG(ERR, "%s: got NULL for the %s", dev->name,
				conf == NULL ? "configuration" : "CQ pointer");
		return -EINVAL;
	}
	ret = check_conf(dev, conf);
	if (ret != 0)
		return ret;
	ret = rmem_obj_get(&dev->obj, "rmem_cq_create");
	if (ret != 0)
		return ret;
	new_cq = rmem_obj_alloc(dev, RMEM_OBJ_CQ, rmem_dev_driver(dev)->cq_size);
	if (new_cq == NULL) {
		ret = -ENOMEM;
		goto put_dev;
	}
	new_cq->nb_cqe = conf->nb_cqe;
	ret = rmem_dev_ops(dev)->cq_create(new_cq, conf);
	if (ret != 0)
		goto free_cq;
	*cq = new_cq;
	rmem_trace_cq_create(dev->name, new_cq, new_cq->nb_cqe);
	return 0;

free_cq:
	rmem_obj_free(&new_cq->obj);
put_dev:
	rmem_obj_put(&dev->obj);
	return ret;
}

int
rmem_cq_create(struct rmem_dev *dev, const struct rmem_cq_conf *conf, struct rmem_cq **cq)
{
	return rmem_trace_call(__func__, dev, cq_create(dev, conf, cq));
}

static int
cq_destroy(struct rmem_cq *cq)
{
	struct rmem_dev *dev;
	int ret;

	if (cq == NULL)
		return 0;
	ret = rmem_obj_check(cq, RMEM_OBJ_CQ, "rmem_cq_destroy");
	if (ret != 0)
		return ret;
	ret = rmem_obj_kill(&cq->obj, "rmem_cq_destroy");
	if (ret != 0)
		return ret;
	dev = rmem_obj_dev(&cq->obj);
	ret = rmem_dev_ops(dev)->cq_destroy(cq);
	if (ret != 0) {
		rmem_obj_revive(&cq->obj);
		return ret;
	}
	rmem_trace_cq_destroy(cq);
	rmem_obj_free(&cq->obj);
	rmem_obj_put(&dev->obj);
	return 0;
}

int
rmem_cq_destroy(struct rmem_cq *cq)
{
	return rmem_trace_call(__func__, cq, cq_destroy(cq));
}
