/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Completion queues. A CQ refers to its device; QPs refer to the CQ.
 */

#include <errno.h>
#include <string.h>

#include "rmem_obj_priv.h"
#include "rmem_priv.h"
#include "rmem_trace_priv.h"

static int
check_nb_cqe(const struct rmem_dev *dev, uint32_t nb_cqe)
{
	uint32_t max = rmem_obj_info(&dev->obj)->max_cqe;

	if (nb_cqe == 0 || nb_cqe > max)
		return RMEM_FAIL(EINVAL, "%s: nb_cqe out of range: %u (1 to %u)", dev->name, nb_cqe,
				max);
	return 0;
}

static int
check_conf(const struct rmem_dev *dev, const struct rmem_cq_conf *conf)
{
	int ret;

	if ((conf->flags & ~(uint32_t)(RMEM_CQ_TIMESTAMP | RMEM_CQ_IGNORE_OVERRUN)) != 0)
		return RMEM_FAIL(EINVAL, "%s: unknown CQ flags: 0x%x", dev->name, conf->flags);
	ret = check_nb_cqe(dev, conf->nb_cqe);
	if (ret == 0 && conf->channel != NULL)
		ret = rmem_obj_check_of(conf->channel, RMEM_OBJ_COMP_CHANNEL, &dev->obj);
	if (ret == 0)
		ret = rmem_async_channel_check(conf->async_channel, dev);
	if (ret != 0)
		return ret;
	ret = rmem_check_reserved(conf->reserved, sizeof(conf->reserved));
	if (ret == 0)
		ret = rmem_name_check(conf->name);
	if (ret == 0 && (conf->flags & RMEM_CQ_TIMESTAMP) != 0 &&
			(rmem_obj_info(&dev->obj)->capa & RMEM_DEV_CAPA_CQ_TIMESTAMP) == 0)
		ret = RMEM_FAIL(EOPNOTSUPP, "%s: CQ: no timestamps", dev->name);
	return ret;
}

/* Release the resources that the class holds for a CQ, and the CQ. */
static void
drop(struct rmem_cq *cq)
{
	struct rmem_comp_channel *channel = cq->channel;

	if (cq->events != NULL)
		rmem_cq_moder_free(cq->events->moder);
	if (channel != NULL)
		rmem_comp_channel_remove(channel, cq->events);
	rmem_cq_events_free(cq);
	rmem_obj_drop(&cq->obj, &rmem_obj_dev(&cq->obj)->obj);
	if (channel != NULL)
		rmem_obj_unhold(&channel->obj);
}

static void
revive(struct rmem_cq *cq)
{
	if (cq->channel != NULL)
		rmem_comp_channel_revive(cq->channel, cq->events);
	else
		rmem_async_channel_revive(cq->events != NULL ? cq->events->async : NULL, &cq->obj);
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
	if (conf->channel != NULL)
		ret = rmem_obj_get(&conf->channel->obj);
	if (ret != 0)
		return ret;
	new_cq = rmem_obj_create(&dev->obj, RMEM_OBJ_CQ, rmem_obj_driver(&dev->obj)->cq_size, &ret);
	if (new_cq == NULL)
		goto put_channel;
	new_cq->nb_cqe = conf->nb_cqe;
	ret = rmem_cq_events_create(new_cq, conf);
	if (ret == 0)
		ret = RMEM_OP(dev, cq_create, new_cq, conf);
	if (ret != 0)
		goto drop_cq;
	rmem_obj_set_name(&new_cq->obj, conf->name);
	rmem_obj_list(&new_cq->obj);
	*cq = new_cq;
	rmem_trace_cq_create(dev->name, new_cq, new_cq->nb_cqe);
	return 0;

drop_cq:
	rmem_cq_events_free(new_cq);
	rmem_obj_drop(&new_cq->obj, &dev->obj);
put_channel:
	if (conf->channel != NULL)
		rmem_obj_unhold(&conf->channel->obj);
	return ret;
}

int
rmem_cq_resize(struct rmem_cq *cq, uint32_t nb_cqe)
{
	RMEM_CALL(cq);
	const struct rmem_dev *dev;
	int ret;

	ret = rmem_obj_check(cq, RMEM_OBJ_CQ);
	if (ret != 0)
		return ret;
	dev = rmem_obj_dev(&cq->obj);
	ret = check_nb_cqe(dev, nb_cqe);
	if (ret == 0 && (rmem_obj_info(&dev->obj)->capa & RMEM_DEV_CAPA_CQ_RESIZE) == 0)
		ret = RMEM_FAIL(EOPNOTSUPP, "%s: CQ: nb_cqe can't change", dev->name);
	if (ret == 0)
		ret = rmem_check_live(&cq->obj);
	if (ret == 0)
		ret = RMEM_OP(cq, cq_resize, cq, nb_cqe);
	if (ret == 0)
		rmem_trace_cq_resize(cq, cq->nb_cqe);
	return ret;
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
	if (ret != 0) {
		revive(cq);
		return ret;
	}
	rmem_trace_cq_destroy(cq);
	drop(cq);
	return 0;
}

int
rmem_cq_stats_get(const struct rmem_cq *cq, struct rmem_cq_stats *stats)
{
	RMEM_CALL(cq);
	struct rmem_cq_stats tmp;
	int ret;

	ret = rmem_obj_check(cq, RMEM_OBJ_CQ);
	if (ret == 0)
		ret = rmem_check_arg(stats, "result");
	if (ret != 0)
		return ret;
	memset(&tmp, 0, sizeof(tmp));
	tmp.nb_cqe = cq->nb_cqe;
	ret = RMEM_OP(cq, cq_stats_get, (struct rmem_cq *)(uintptr_t)cq, &tmp);
	if (ret == 0)
		*stats = tmp;
	return ret;
}

const char *
rmem_cq_name(const struct rmem_cq *cq)
{
	return cq != NULL ? rmem_obj_name(&cq->obj, RMEM_OBJ_CQ) : "";
}
