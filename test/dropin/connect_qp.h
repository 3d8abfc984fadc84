/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Connecting QPs of port 1 on an InfiniBand link. */

#ifndef CONNECT_QP_H
#define CONNECT_QP_H

#include <infiniband/verbs.h>

#include "../holds.h"

/*
 * Move a QP from RESET to RTS. Its peer is a QP of the process with that LID: attr has dest_qp_num,
 * and what else should not be 0. By LID, no address handle needs a GID.
 */
static inline void
connect_qp_at(struct ibv_qp *qp, struct ibv_qp_attr attr, uint16_t dlid)
{
	attr.port_num = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.dlid = dlid;
	attr.qp_state = IBV_QPS_INIT;
	HOLDS(ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					      IBV_QP_ACCESS_FLAGS) == 0);
	attr.qp_state = IBV_QPS_RTR;
	HOLDS(ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					      IBV_QP_MIN_RNR_TIMER) == 0);
	attr.qp_state = IBV_QPS_RTS;
	HOLDS(ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

/* The same with a peer of this process. */
static inline void
connect_qp(struct ibv_qp *qp, struct ibv_qp_attr attr)
{
	struct ibv_port_attr port;

	HOLDS(ibv_query_port(qp->context, 1, &port) == 0);
	connect_qp_at(qp, attr, port.lid);
}

/* Connect a QP with itself, for WRITEs. */
static inline void
connect_own(struct ibv_qp *qp)
{
	const struct ibv_qp_attr attr = {.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
			.path_mtu = IBV_MTU_1024,
			.dest_qp_num = qp->qp_num,
			.max_rd_atomic = 1,
			.max_dest_rd_atomic = 1};

	connect_qp(qp, attr);
}

/* The same after an error. */
static inline void
reconnect_own(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	HOLDS(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
	connect_own(qp);
}

#endif
