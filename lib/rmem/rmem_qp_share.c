/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Calls of XRC_RECV QPs by other processes that have opened them.
 */

#include <errno.h>

#include "rmem_priv.h"

int
rmem_qp_execute(struct rmem_qp *qp, struct rmem_qp_call *call)
{
	switch (call->op) {
	case RMEM_QP_CALL_QUERY:
		return rmem_qp_query(qp, &call->attr);
	case RMEM_QP_CALL_MODIFY:
		return rmem_qp_modify(qp, &call->attr, call->mask);
	case RMEM_QP_CALL_CONNECT:
		return rmem_qp_connect(qp, &call->conn);
	case RMEM_QP_CALL_RESET:
		return rmem_qp_reset(qp);
	case RMEM_QP_CALL_SET_ERROR:
		return rmem_qp_set_error(qp);
	default:
		return RMEM_FAIL(EINVAL, "QP %u: unknown call of another process: %u", qp->qp_num,
				call->op);
	}
}
