/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Multicast groups of UD QPs. The driver stores the attachments.
 */

#include <errno.h>

#include "rmem_priv.h"
#include "rmem_trace_priv.h"

/* As in the kernel: only UD QPs, and only multicast GIDs. */
static int
check_mcast(const struct rmem_qp *qp, const uint8_t *gid)
{
	const struct rmem_dev *dev;
	int ret;

	ret = rmem_obj_check(qp, RMEM_OBJ_QP);
	if (ret == 0)
		ret = rmem_check_arg(gid, "GID");
	if (ret != 0)
		return ret;
	dev = rmem_obj_dev(&qp->obj);
	if (qp->type != RMEM_QPT_UD)
		return RMEM_FAIL(EINVAL, "%s: QP %u: multicast: type %u (must be UD)", dev->name,
				qp->qp_num, qp->type);
	if (!rmem_gid_is_mcast(gid))
		return RMEM_FAIL(EINVAL,
				"%s: QP %u: not the GID of a multicast group (ff00::/8, or IPv4 224.0.0.0/4)",
				dev->name, qp->qp_num);
	if ((rmem_obj_info(&qp->obj)->capa & RMEM_DEV_CAPA_MCAST) == 0)
		return RMEM_FAIL(EOPNOTSUPP, "%s: no multicast", dev->name);
	return 0;
}

int
rmem_qp_attach_mcast(struct rmem_qp *qp, const uint8_t gid[16], uint16_t lid)
{
	RMEM_CALL(qp);
	int ret;

	ret = check_mcast(qp, gid);
	if (ret == 0)
		ret = rmem_check_live(&qp->obj);
	if (ret == 0)
		ret = RMEM_OP(qp, qp_attach_mcast, qp, gid, lid);
	if (ret == 0)
		rmem_trace_qp_mcast(qp, qp->qp_num, true);
	return ret;
}

int
rmem_qp_detach_mcast(struct rmem_qp *qp, const uint8_t gid[16], uint16_t lid)
{
	RMEM_CALL(qp);
	int ret;

	ret = check_mcast(qp, gid);
	if (ret == 0)
		ret = RMEM_OP(qp, qp_detach_mcast, qp, gid, lid);
	if (ret == 0)
		rmem_trace_qp_mcast(qp, qp->qp_num, false);
	return ret;
}
