/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Shared receive queues. An SRQ refers to its PD; QPs refer to the SRQ. An SRQ of XRC also refers
 * to its domain and its CQ, and no QP refers to it.
 */

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "rmem_obj_priv.h"
#include "rmem_priv.h"
#include "rmem_trace_priv.h"

static int
check_max_wr(const struct rmem_dev *dev, uint32_t max_wr)
{
	uint32_t max = rmem_obj_info(&dev->obj)->max_srq_wr;

	if (max_wr == 0 || max_wr > max)
		return RMEM_FAIL(EINVAL, "%s: SRQ: max_wr out of range: %u (1 to %u)", dev->name,
				max_wr, max);
	return 0;
}

static int
check_ext(const struct rmem_dev *dev, const struct rmem_srq_ext *ext)
{
	int ret = rmem_check_reserved(ext->reserved, sizeof(ext->reserved));

	if (ret != 0 || (ext->xrcd == NULL && ext->cq == NULL))
		return ret;
	ret = rmem_xrcd_check(ext->xrcd, dev);
	return ret != 0 ? ret : rmem_obj_check_of(ext->cq, RMEM_OBJ_CQ, &dev->obj);
}

static int
check_conf(const struct rmem_dev *dev, const struct rmem_srq_conf *conf)
{
	const struct rmem_dev_info *info = rmem_obj_info(&dev->obj);
	int ret;

	ret = rmem_name_check(conf->name);
	if (ret == 0)
		ret = rmem_async_channel_check(conf->async_channel, dev);
	if (ret == 0 && conf->ext != NULL)
		ret = check_ext(dev, conf->ext);
	if (ret != 0)
		return ret;
	if ((info->capa & RMEM_DEV_CAPA_SRQ) == 0)
		return RMEM_FAIL(EOPNOTSUPP, "%s: no shared receive queues", dev->name);
	if (conf->max_sge > info->max_srq_sge)
		return RMEM_FAIL(EINVAL, "%s: SRQ: max_sge out of range: %u (0 to %u)", dev->name,
				conf->max_sge, info->max_srq_sge);
	return check_max_wr(dev, conf->max_wr);
}

/* A copy of the further configuration follows the driver's part. */
static struct rmem_srq_ext *
ext_of(const struct rmem_srq *srq)
{
	size_t size = RTE_CACHE_LINE_ROUNDUP(rmem_obj_driver(&srq->obj)->srq_size);

	return RTE_PTR_ADD(srq, size);
}

/* Take references to the domain and the CQ of an SRQ of XRC. */
static int
get_ext(const struct rmem_srq_ext *ext)
{
	int ret;

	if (ext == NULL || ext->xrcd == NULL)
		return 0;
	ret = rmem_obj_get(&ext->xrcd->obj);
	if (ret != 0)
		return ret;
	ret = rmem_obj_get(&ext->cq->obj);
	if (ret != 0)
		rmem_obj_unhold(&ext->xrcd->obj);
	return ret;
}

static void
put_ext(const struct rmem_srq_ext *ext)
{
	if (ext == NULL || ext->xrcd == NULL)
		return;
	rmem_obj_unhold(&ext->cq->obj);
	rmem_obj_unhold(&ext->xrcd->obj);
}

static struct rmem_srq *
alloc(struct rmem_pd *pd, int *ret)
{
	size_t size = RTE_CACHE_LINE_ROUNDUP(rmem_obj_driver(&pd->obj)->srq_size);
	struct rmem_srq *srq;

	srq = rmem_obj_create(&pd->obj, RMEM_OBJ_SRQ, size + sizeof(struct rmem_srq_ext), ret);
	if (srq != NULL)
		srq->pd = pd;
	return srq;
}

bool
rmem_srq_is_xrc(const struct rmem_srq *srq)
{
	return ext_of(srq)->xrcd != NULL;
}

int
rmem_srq_create(struct rmem_pd *pd, const struct rmem_srq_conf *conf, struct rmem_srq **srq)
{
	RMEM_CALL(pd);
	struct rmem_srq *new_srq;
	int ret;

	ret = rmem_obj_check(pd, RMEM_OBJ_PD);
	if (ret == 0)
		ret = rmem_check_arg(conf, "configuration");
	if (ret == 0)
		ret = rmem_check_arg(srq, "SRQ pointer");
	if (ret == 0)
		ret = check_conf(rmem_obj_dev(&pd->obj), conf);
	if (ret == 0)
		ret = get_ext(conf->ext);
	if (ret != 0)
		return ret;
	new_srq = alloc(pd, &ret);
	if (new_srq == NULL)
		goto put_ext;
	if (conf->ext != NULL)
		*ext_of(new_srq) = *conf->ext;
	ret = rmem_async_channel_bind(
			conf->async_channel, &new_srq->obj, conf->context, &new_srq->async);
	if (ret != 0)
		goto drop_srq;
	ret = RMEM_OP(pd, srq_create, new_srq, conf);
	if (ret != 0)
		goto unbind;
	rmem_obj_set_name(&new_srq->obj, conf->name);
	rmem_obj_list(&new_srq->obj);
	*srq = new_srq;
	rmem_trace_srq_create(pd, new_srq, conf->max_wr, conf->max_sge);
	return 0;

unbind:
	rmem_async_channel_unbind(new_srq->async);
drop_srq:
	rmem_obj_drop(&new_srq->obj, &pd->obj);
put_ext:
	put_ext(conf->ext);
	return ret;
}

static int
check_modify(const struct rmem_srq *srq, const struct rmem_srq_attr *attr, uint32_t mask)
{
	const struct rmem_dev *dev = rmem_obj_dev(&srq->obj);
	const struct rmem_dev_info *info = rmem_obj_info(&srq->obj);
	int ret;

	ret = rmem_check_reserved(attr->reserved, sizeof(attr->reserved));
	if (ret != 0)
		return ret;
	if ((mask & ~(RMEM_SRQ_MAX_WR | RMEM_SRQ_LIMIT)) != 0)
		return RMEM_FAIL(EINVAL, "%s: SRQ: unknown attributes 0x%x", dev->name,
				mask & ~(RMEM_SRQ_MAX_WR | RMEM_SRQ_LIMIT));
	if ((mask & RMEM_SRQ_MAX_WR) == 0)
		return 0;
	if ((info->capa & RMEM_DEV_CAPA_SRQ_RESIZE) == 0)
		return RMEM_FAIL(EOPNOTSUPP, "%s: SRQ: max_wr can't change", dev->name);
	return check_max_wr(dev, attr->max_wr);
}

int
rmem_srq_modify(struct rmem_srq *srq, const struct rmem_srq_attr *attr, uint32_t mask)
{
	RMEM_CALL(srq);
	int ret;

	ret = rmem_obj_check(srq, RMEM_OBJ_SRQ);
	if (ret == 0)
		ret = rmem_check_arg(attr, "attributes");
	if (ret == 0)
		ret = check_modify(srq, attr, mask);
	if (ret == 0)
		ret = rmem_check_live(&srq->obj);
	if (ret == 0 && mask != 0)
		ret = RMEM_OP(srq, srq_modify, srq, attr, mask);
	if (ret == 0)
		rmem_trace_srq_modify(srq, mask, attr->max_wr, attr->srq_limit);
	return ret;
}

int
rmem_srq_query(const struct rmem_srq *srq, struct rmem_srq_attr *attr)
{
	RMEM_CALL(srq);
	struct rmem_srq_attr tmp;
	int ret;

	ret = rmem_obj_check(srq, RMEM_OBJ_SRQ);
	if (ret == 0)
		ret = rmem_check_arg(attr, "result");
	if (ret != 0)
		return ret;
	memset(&tmp, 0, sizeof(tmp));
	ret = RMEM_OP(srq, srq_query, (struct rmem_srq *)(uintptr_t)srq, &tmp);
	if (ret == 0)
		*attr = tmp;
	return ret;
}

int
rmem_srq_num_get(const struct rmem_srq *srq, uint32_t *srq_num)
{
	RMEM_CALL(srq);
	uint32_t num;
	int ret;

	ret = rmem_obj_check(srq, RMEM_OBJ_SRQ);
	if (ret == 0)
		ret = rmem_check_arg(srq_num, "number");
	if (ret == 0 && !rmem_srq_is_xrc(srq))
		ret = RMEM_FAIL(EINVAL, "%s: SRQ: no number: not an XRC SRQ",
				rmem_obj_dev(&srq->obj)->name);
	if (ret != 0)
		return ret;
	ret = RMEM_OP(srq, xrc->srq_num_get, (struct rmem_srq *)(uintptr_t)srq, &num);
	if (ret == 0)
		*srq_num = num;
	return ret;
}

int
rmem_srq_destroy(struct rmem_srq *srq)
{
	RMEM_CALL(srq);
	int ret;

	if (srq == NULL)
		return 0;
	ret = rmem_obj_check(srq, RMEM_OBJ_SRQ);
	if (ret == 0)
		ret = rmem_obj_kill(&srq->obj);
	if (ret != 0)
		return ret;
	ret = RMEM_OP(srq, srq_destroy, srq);
	if (ret == 0) {
		rmem_trace_srq_destroy(srq);
		rmem_async_channel_unbind(srq->async);
		put_ext(ext_of(srq));
		rmem_obj_drop(&srq->obj, &srq->pd->obj);
	} else {
		rmem_async_channel_revive(srq->async, &srq->obj);
	}
	return ret;
}

const char *
rmem_srq_name(const struct rmem_srq *srq)
{
	return srq != NULL ? rmem_obj_name(&srq->obj, RMEM_OBJ_SRQ) : "";
}
