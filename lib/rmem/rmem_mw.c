/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Memory windows. A window refers to its PD; what it is bound to, the driver knows.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>

#include <rmem_priv.h>
#include <rmem_trace_priv.h>

#define BIND_FLAGS   (RMEM_SEND_SIGNALED | RMEM_SEND_FENCE)
#define RIGHT_MODIFY (RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_ATOMIC)

int
rmem_mw_check_bind(const struct rmem_qp *qp, const struct rmem_mw *mw,
		const struct rmem_mw_bind_info *info)
{
	uint32_t known = RMEM_ACCESS_REMOTE | RMEM_ACCESS_ZERO_BASED;
	const struct rmem_mr *mr = info->mr;
	uint64_t offset;

	if (mw->type == RMEM_MW_TYPE_1) /* IBTA o10-36.2.2 */
		known = RMEM_ACCESS_REMOTE;
	if ((info->access & ~known) != 0 || mr->type != RMEM_MR_TYPE_USER)
		return -EINVAL;
	/* Until then the MR has no keys, and a control thread may write its fields. */
	if (rmem_mr_state(mr) != RMEM_MR_STATE_VALID)
		return -EBUSY;
	if ((mr->flags & RMEM_MR_FD) != 0)
		return -EOPNOTSUPP;
	if (qp->pd != mw->pd || mr->pd != mw->pd) /* IBTA C10-72 */
		return -EPERM;
	if ((mr->access & RMEM_ACCESS_MW_BIND) == 0) /* IBTA C10-73 */
		return -EPERM;
	/* IBTA C10-74 */
	if ((info->access & RIGHT_MODIFY) != 0 && (mr->access & RMEM_ACCESS_LOCAL_WRITE) == 0)
		return -EPERM;
	/* IBTA C10-75 */
	offset = info->addr - mr->iova;
	if (info->length == 0 || offset >= mr->length || info->length > mr->length - offset)
		return -EINVAL;
	return 0;
}

static int
check_alloc(struct rmem_dev *dev, int type, struct rmem_mw **mw)
{
	struct rmem_dev_info info;
	uint64_t capa;
	int ret;

	if (mw == NULL) {
		RMEM_LOG(ERR, "%s: got NULL for the MW pointer", dev->name);
		return -EINVAL;
	}
	if (type != RMEM_MW_TYPE_1 && type != RMEM_MW_TYPE_2) {
		RMEM_LOG(ERR, "%s: MW type %d is not 1 or 2", dev->name, type);
		return -EINVAL;
	}
	ret = rmem_dev_info_fill(dev, &info);
	if (ret != 0)
		return ret;
	capa = type == RMEM_MW_TYPE_1 ? RMEM_DEV_CAPA_MW_TYPE_1 : RMEM_DEV_CAPA_MW_TYPE_2B;
	if ((info.capa & capa) == 0) {
		RMEM_LOG(ERR, "%s: no memory windows of type %d on this device", dev->name, type);
		return -EOPNOTSUPP;
	}
	return 0;
}

static int
mw_alloc(struct rmem_pd *pd, enum rmem_mw_type type, struct rmem_mw **mw)
{
	struct rmem_mw *new_mw;
	struct rmem_dev *dev;
	int ret;

	ret = rmem_obj_check(pd, RMEM_OBJ_PD, "rmem_mw_alloc");
	if (ret != 0)
		return ret;
	dev = rmem_obj_dev(&pd->obj);
	ret = check_alloc(dev, (int)type, mw);
	if (ret != 0)
		return ret;
	ret = rmem_obj_get(&pd->obj, "rmem_mw_alloc");
	if (ret != 0)
		return ret;
	/* A driver without windows need not say how large they are; its op then refuses. */
	new_mw = rmem_obj_alloc(dev, RMEM_OBJ_MW,
			RTE_MAX(rmem_dev_driver(dev)->mw_size, sizeof(struct rmem_mw)));
	if (new_mw == NULL) {
		ret = -ENOMEM;
		goto put_pd;
	}
	new_mw->pd = pd;
	new_mw->type = (uint16_t)type;
	ret = rmem_dev_ops(dev)->mw_alloc(new_mw);
	if (ret != 0)
		goto free_mw;
	*mw = new_mw;
	rmem_trace_mw_alloc(pd, new_mw, new_mw->type, new_mw->rkey);
	return 0;

free_mw:
	rmem_obj_free(&new_mw->obj);
put_pd:
	rmem_obj_put(&pd->obj);
	return ret;
}

int
rmem_mw_alloc(struct rmem_pd *pd, enum rmem_mw_type type, struct rmem_mw **mw)
{
	return rmem_trace_call(__func__, pd, mw_alloc(pd, type, mw));
}

/* The arguments of a binding in themselves. */
static int
check_bind_args(const struct rmem_qp *qp, const struct rmem_mw *mw, const struct rmem_mw_bind *bind)
{
	int ret;

	ret = rmem_obj_check(qp, RMEM_OBJ_QP, "rmem_mw_bind");
	if (ret == 0)
		ret = rmem_obj_check(mw, RMEM_OBJ_MW, "rmem_mw_bind");
	if (ret != 0)
		return ret;
	if (bind == NULL) {
		RMEM_LOG(ERR, "rmem_mw_bind: got NULL, expected a binding");
		return -EINVAL;
	}
	if (mw->type != RMEM_MW_TYPE_1) {
		RMEM_LOG(ERR, "rmem_mw_bind: a window of type %u is bound by RMEM_WR_BIND_MW",
				mw->type);
		return -EINVAL;
	}
	if ((bind->flags & ~BIND_FLAGS) != 0) {
		RMEM_LOG(ERR, "rmem_mw_bind: unknown flags 0x%x", bind->flags & ~BIND_FLAGS);
		return -EINVAL;
	}
	ret = rmem_check_reserved(&bind->reserved, sizeof(bind->reserved), "rmem_mw_bind");
	if (ret != 0)
		return ret;
	return rmem_check_reserved(&bind->bind_info.reserved, sizeof(bind->bind_info.reserved),
			"rmem_mw_bind");
}

static const char *
bind_error_str(int ret)
{
	switch (ret) {
	case -EPERM:
		return "PD or rights forbid it";
	case -EOPNOTSUPP:
		return "it is memory of an fd";
	case -EBUSY:
		return "it is not registered, or not enabled";
	default:
		return "bad range or access";
	}
}

static int
mw_bind(struct rmem_qp *qp, struct rmem_mw *mw, const struct rmem_mw_bind *bind)
{
	const struct rmem_mw_bind_info *info;
	int ret;

	ret = check_bind_args(qp, mw, bind);
	if (ret != 0)
		return ret;
	info = &bind->bind_info;
	if (info->length != 0) {
		ret = rmem_obj_check(info->mr, RMEM_OBJ_MR, "rmem_mw_bind");
		if (ret == 0)
			ret = rmem_mw_check_bind(qp, mw, info);
		else
			return ret;
	} else if (qp->pd != mw->pd) {
		ret = -EPERM;
	}
	if (ret != 0) {
		RMEM_LOG(ERR,
				"%s: a window can't be bound to %" PRIu64 " bytes at 0x%" PRIx64
				" of that MR with access 0x%x: %s",
				"rmem_mw_bind", info->length, info->addr, info->access,
				bind_error_str(ret));
		return ret;
	}
	return rmem_dev_ops(rmem_obj_dev(&mw->obj))->mw_bind(qp, mw, bind);
}

int
rmem_mw_bind(struct rmem_qp *qp, struct rmem_mw *mw, const struct rmem_mw_bind *bind)
{
	return rmem_trace_call(__func__, mw, mw_bind(qp, mw, bind));
}

static int
mw_dealloc(struct rmem_mw *mw)
{
	struct rmem_pd *pd;
	int ret;

	if (mw == NULL)
		return 0;
	ret = rmem_obj_check(mw, RMEM_OBJ_MW, "rmem_mw_dealloc");
	if (ret != 0)
		return ret;
	ret = rmem_obj_kill(&mw->obj, "rmem_mw_dealloc");
	if (ret != 0)
		return ret;
	pd = mw->pd;
	ret = rmem_dev_ops(rmem_obj_dev(&mw->obj))->mw_dealloc(mw);
	if (ret != 0) {
		rmem_obj_revive(&mw->obj);
		return ret;
	}
	rmem_trace_mw_dealloc(mw, mw->rkey);
	rmem_obj_free(&mw->obj);
	rmem_obj_put(&pd->obj);
	return 0;
}

int
rmem_mw_dealloc(struct rmem_mw *mw)
{
	return rmem_trace_call(__func__, mw, mw_dealloc(mw));
}
