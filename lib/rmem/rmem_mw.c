/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Memory windows. A window refers to its PD. The driver stores its binding.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>

#include "rmem_obj_priv.h"
#include "rmem_priv.h"
#include "rmem_trace_priv.h"

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
	/* Before it is VALID, an MR may have no keys, and a control thread may write its fields. */
	if (rmem_mr_state(mr) != RMEM_MR_STATE_VALID)
		return -EBUSY;
	if ((rmem_mr_drv(mr)->flags & RMEM_MR_FD) != 0)
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
check_type(const struct rmem_dev *dev, int type)
{
	uint64_t capa = type == RMEM_MW_TYPE_1 ? RMEM_DEV_CAPA_MW_TYPE_1 : RMEM_DEV_CAPA_MW_TYPE_2B;

	if (type != RMEM_MW_TYPE_1 && type != RMEM_MW_TYPE_2)
		return RMEM_FAIL(EINVAL, "%s: unknown MW type: %d (1 or 2)", dev->name, type);
	if ((rmem_obj_info(&dev->obj)->capa & capa) == 0)
		return RMEM_FAIL(EOPNOTSUPP,
				"%s: not supported by the device: memory windows of type %d",
				dev->name, type);
	return 0;
}

int
rmem_mw_alloc(struct rmem_pd *pd, enum rmem_mw_type type, struct rmem_mw **mw)
{
	RMEM_CALL(pd);
	struct rmem_mw *new_mw;
	int ret;

	ret = rmem_obj_check(pd, RMEM_OBJ_PD);
	if (ret == 0)
		ret = rmem_check_arg(mw, "MW pointer");
	if (ret == 0)
		ret = check_type(rmem_obj_dev(&pd->obj), (int)type);
	if (ret != 0)
		return ret;
	/* mw_size may be 0 in a driver without windows, whose op refuses the call. */
	new_mw = rmem_obj_create(&pd->obj, RMEM_OBJ_MW,
			RTE_MAX(rmem_obj_driver(&pd->obj)->mw_size, sizeof(struct rmem_mw)), &ret);
	if (new_mw == NULL)
		return ret;
	new_mw->pd = pd;
	new_mw->type = (uint16_t)type;
	ret = RMEM_OP(pd, mw_alloc, new_mw);
	if (ret != 0) {
		rmem_obj_drop(&new_mw->obj, &pd->obj);
		return ret;
	}
	rmem_obj_list(&new_mw->obj);
	*mw = new_mw;
	rmem_trace_mw_alloc(pd, new_mw, new_mw->type, new_mw->rkey);
	return 0;
}

/* Check only the arguments of a bind. */
static int
check_bind_args(const struct rmem_qp *qp, const struct rmem_mw *mw, const struct rmem_mw_bind *bind)
{
	int ret;

	ret = rmem_obj_check(qp, RMEM_OBJ_QP);
	if (ret == 0)
		ret = rmem_obj_check(mw, RMEM_OBJ_MW);
	if (ret == 0)
		ret = rmem_check_arg(bind, "binding");
	if (ret != 0)
		return ret;
	if (mw->type != RMEM_MW_TYPE_1)
		return RMEM_FAIL(EINVAL, "MW: not of type 1, bound by RMEM_WR_BIND_MW: type %u",
				mw->type);
	/* As posts of BIND_MW, which UD does not have. */
	if (qp->type == RMEM_QPT_UD || qp->type == RMEM_QPT_XRC_RECV)
		return RMEM_FAIL(EOPNOTSUPP, "QP 0x%06x: binds no windows: type %u", qp->qp_num,
				qp->type);
	if ((bind->flags & ~BIND_FLAGS) != 0)
		return RMEM_FAIL(EINVAL, "flags: unknown bits: 0x%x", bind->flags & ~BIND_FLAGS);
	ret = rmem_check_reserved(&bind->reserved, sizeof(bind->reserved));
	if (ret == 0)
		ret = rmem_check_reserved(
				&bind->bind_info.reserved, sizeof(bind->bind_info.reserved));
	if (ret == 0 && bind->bind_info.length != 0)
		ret = rmem_obj_check(bind->bind_info.mr, RMEM_OBJ_MR);
	return ret;
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

int
rmem_mw_bind(struct rmem_qp *qp, struct rmem_mw *mw, const struct rmem_mw_bind *bind)
{
	RMEM_CALL(mw);
	const struct rmem_mw_bind_info *info;
	int ret;

	ret = check_bind_args(qp, mw, bind);
	if (ret != 0)
		return ret;
	info = &bind->bind_info;
	if (info->length != 0)
		ret = rmem_mw_check_bind(qp, mw, info);
	else if (qp->pd != mw->pd)
		ret = -EPERM;
	/* The driver checks the binding again when it executes the request. */
	if (ret != 0 && (((const struct rmem_qp_drv *)qp)->flags & RMEM_QP_LATE_ERRORS) == 0)
		return RMEM_FAIL(-ret,
				"MW: cannot be bound: %" PRIu64 " bytes at 0x%" PRIx64
				", access 0x%x: %s",
				info->length, info->addr, info->access, bind_error_str(ret));
	if (rmem_check_live(&mw->obj) != 0)
		return -ENODEV; /* as a post returns */
	return RMEM_OP(mw, mw_bind, qp, mw, bind);
}

int
rmem_mw_dealloc(struct rmem_mw *mw)
{
	RMEM_CALL(mw);
	int ret;

	if (mw == NULL)
		return 0;
	ret = rmem_obj_check(mw, RMEM_OBJ_MW);
	if (ret == 0)
		ret = rmem_obj_kill(&mw->obj);
	if (ret != 0)
		return ret;
	ret = RMEM_OP(mw, mw_dealloc, mw);
	if (ret == 0)
		rmem_trace_mw_dealloc(mw, mw->rkey);
	return rmem_obj_end(&mw->obj, &mw->pd->obj, ret);
}
