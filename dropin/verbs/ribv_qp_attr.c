/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* QP attributes that the class does not have: rate limit, ECE, order of data. */

#include <errno.h>

#include "ribv.h"

/* Attributes of verbs that the class does not have. */
#define LACKING (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_CAP)

/* Attributes that the kernel ignores for XRC and perftest sets: they belong to the half that the QP
 * does not have. */
static int
lacking_of_xrc(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_XRC_SEND:
		return IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	case IBV_QPT_XRC_RECV:
		return IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
	default:
		return 0;
	}
}

/* As the kernel: alternate paths only on InfiniBand, EINVAL on RoCE. */
int
ribv_qp_attr_check(const struct ribv_qp *qp, const struct ibv_qp_attr *attr, int *mask)
{
	const enum ibv_qp_state state = *mask & IBV_QP_STATE ? attr->qp_state : qp->ibv.state;

	if ((*mask & (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)) != 0)
		return (*mask & IBV_QP_ALT_PATH) != 0 && qp->send_cq->roce_header != 0 ? EINVAL
										       : EOPNOTSUPP;
	if ((*mask & LACKING) != 0)
		return EINVAL;
	*mask &= ~lacking_of_xrc(qp->ibv.qp_type);
	if ((*mask & IBV_QP_RATE_LIMIT) == 0)
		return 0;
	*mask &= ~IBV_QP_RATE_LIMIT;
	return state == IBV_QPS_RTS &&
					(qp->ibv.state == IBV_QPS_RTR ||
							qp->ibv.state == IBV_QPS_RTS) &&
					attr->rate_limit <= RIBV_MAX_RATE
			? 0
			: EINVAL;
}

int
ribv_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr)
{
	if (!ribv_is_qp(qp))
		return ENOENT;
	if (attr == NULL || attr->comp_mask != 0 || attr->rate_limit > RIBV_MAX_RATE ||
			qp->state != IBV_QPS_RTS)
		return EINVAL;
	((struct ribv_qp *)qp)->rate_limit = attr->rate_limit;
	return 0;
}

/*
 * Report no enhancements, as providers without them do. Fails, because rdma_set_local_ece() of
 * librdmacm refuses an ECE without a vendor.
 */
int
ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (ribv_is_real(qp))
		return RIBV_NEXT(ibv_query_ece)(qp, ece);
	return ribv_is_qp(qp) ? EOPNOTSUPP : ENOENT;
}

int
ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (ribv_is_real(qp))
		return RIBV_NEXT(ibv_set_ece)(qp, ece);
	return ribv_is_qp(qp) ? EOPNOTSUPP : ENOENT;
}

/*
 * memcpy() or the kernel copies the bytes of a message, and neither guarantees an order. The 8
 * bytes of an atomic are one access. With the flag of verbs.h 56 the result is a bit mask: whole
 * message, and blocks of 128 bytes.
 */
int
ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	const uint32_t return_caps = 1u << 0, all_caps = 1u << 0 | 1u << 1;

	if (ribv_is_real(qp))
		return RIBV_NEXT(ibv_query_qp_data_in_order)(qp, op, flags);
	if (!ribv_is_qp(qp) || qp->qp_type != IBV_QPT_RC || (flags & ~return_caps) != 0)
		return 0;
	switch ((int)op) {
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
	case IBV_WR_ATOMIC_WRITE:
		return flags == 0 ? 1 : (int)all_caps;
	default:
		return 0;
	}
}
