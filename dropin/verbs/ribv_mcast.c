/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Multicast groups of UD QPs. */

#include <errno.h>

#include "ribv.h"

int
ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	if (ribv_is_real(qp))
		return RIBV_NEXT(ibv_attach_mcast)(qp, gid, lid);
	if (!ribv_is_qp(qp))
		return ENOENT;
	if (gid == NULL)
		return EINVAL;
	return ribv_errno(rmem_qp_attach_mcast(((struct ribv_qp *)qp)->qp, gid->raw, lid));
}

int
ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	if (ribv_is_real(qp))
		return RIBV_NEXT(ibv_detach_mcast)(qp, gid, lid);
	if (!ribv_is_qp(qp))
		return ENOENT;
	if (gid == NULL)
		return EINVAL;
	return ribv_errno(rmem_qp_detach_mcast(((struct ribv_qp *)qp)->qp, gid->raw, lid));
}
