/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Counters of completed requests; see rsoft_count.h. */

#include "rsoft_count.h"

void
rsoft_count(const struct rsoft_qp *qp, uint32_t kind, bool is_ok, uint64_t length)
{
	struct rmem_counter *counter;

	if ((qp->counts & kind) == 0)
		return;
	counter = qp->counters[__builtin_ctz(kind)];
	if (!is_ok)
		rmem_counter_inc_errors(counter, 1);
	else
		rmem_counter_inc(counter, (counter->flags & RMEM_COUNTER_BYTES) != 0 ? length : 1);
}

void
rsoft_count_send(const struct rsoft_qp *qp, const struct rmem_send_wr *wr, bool is_ok,
		uint64_t length)
{
	switch (rmem_wr_info[wr->opcode].wc_opcode) {
	case RMEM_WC_SEND:
		rsoft_count(qp, RMEM_QP_COUNT_SEND, is_ok, length);
		break;
	case RMEM_WC_RDMA_READ:
		rsoft_count(qp, RMEM_QP_COUNT_RDMA_READ, is_ok, length);
		break;
	case RMEM_WC_RDMA_WRITE:
		rsoft_count(qp, RMEM_QP_COUNT_RDMA_WRITE, is_ok, length);
		break;
	default:
		break;
	}
}

void
rsoft_count_remote(const struct rsoft_qp *qp, uint8_t opcode, bool is_ok, uint64_t length)
{
	switch (rmem_wr_info[opcode].wc_opcode) {
	case RMEM_WC_RDMA_READ:
		rsoft_count(qp, RMEM_QP_COUNT_REMOTE_RDMA_READ, is_ok, length);
		break;
	case RMEM_WC_RDMA_WRITE:
		rsoft_count(qp, RMEM_QP_COUNT_REMOTE_RDMA_WRITE, is_ok, length);
		break;
	default:
		break;
	}
}
