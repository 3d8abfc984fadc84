/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Audit of a device: checks of the class, of the driver, and of the libraries above the class.
 */

#include <errno.h>

#include "rmem_obj_priv.h"
#include "rmem_priv.h"

#define AUDITS_MAX 4

/* Audits of the libraries above the class; added by their constructors, which run sequentially. */
static rmem_audit_t audits[AUDITS_MAX];
static unsigned int nb_audits;

int
rmem_audit_add(rmem_audit_t audit)
{
	RMEM_CALL(NULL);
	int ret = rmem_check_arg((const void *)(uintptr_t)audit, "function");

	if (ret != 0)
		return ret;
	if (nb_audits == AUDITS_MAX)
		return RMEM_FAIL(ENOSPC, "audit functions: table full (%d)", AUDITS_MAX);
	audits[nb_audits++] = audit;
	return 0;
}

/* Check that a QP refers to a PD and CQs of its device. An XRC_RECV QP has none. */
static int
qp_is_valid(struct rmem_obj *obj, void *arg)
{
	const struct rmem_qp *qp = (const struct rmem_qp *)obj;
	const struct rmem_dev *dev = arg;

	if (qp->obj.dev_id != dev->obj.dev_id || qp->type == RMEM_QPT_XRC_RECV)
		return 0;
	if (qp->obj.type == RMEM_OBJ_QP && qp->pd->obj.type == RMEM_OBJ_PD &&
			qp->pd->obj.dev_id == dev->obj.dev_id &&
			(qp->pd->obj.refs & ~RMEM_OBJ_REFS_DEAD) != 0 &&
			qp->send_cq->obj.type == RMEM_OBJ_CQ &&
			qp->recv_cq->obj.type == RMEM_OBJ_CQ && qp->send_cq->obj.refs != 0 &&
			qp->recv_cq->obj.refs != 0)
		return 0;
	return RMEM_FAIL(EIO, "audit: %s: QP 0x%06x (tag 0x%x): PD or CQ does not exist", dev->name,
			qp->qp_num, qp->obj.type);
}

int
rmem_dev_audit(struct rmem_dev *dev)
{
	RMEM_CALL(dev);
	unsigned int i;
	int ret;

	ret = rmem_obj_check(dev, RMEM_OBJ_DEV);
	if (ret == 0)
		ret = rmem_obj_visit(RMEM_OBJ_QP, qp_is_valid, dev);
	if (ret == 0)
		ret = rmem_obj_counts_check(dev);
	if (ret == 0)
		ret = RMEM_OP(dev, dev_audit, dev);
	for (i = 0; i < nb_audits && (ret == 0 || ret == -EOPNOTSUPP); i++) {
		int audit = audits[i](dev);

		if (audit != 0)
			ret = audit;
	}
	return ret;
}
