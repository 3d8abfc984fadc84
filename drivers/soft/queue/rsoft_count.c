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
	static const uint32_t kinds[] = {
			[RMEM_WC_SEND] = RMEM_QP_COUNT_SEND,
			[RMEM_WC_RDMA_READ] = RMEM_QP_COUNT_RDMA_READ,
			[RMEM_WC_RDMA_WRITE] = RMEM_QP_COUNT_RDMA_WRITE,
	};
	uint32_t opcode = rmem_wr_info[wr->opcode].wc_opcode;

	if (opcode < RTE_DIM(kinds))
		rsoft_count(qp, kinds[opcode], is_ok, length);
}

void
rsoft_count_remote(const struct rsoft_qp *qp, uint8_t opcode, bool is_ok, uint64_t length)
{
	static const uint32_t kinds[] = {
			[RMEM_WC_RDMA_READ] = RMEM_QP_COUNT_REMOTE_RDMA_READ,
			[RMEM_WC_RDMA_WRITE] = RMEM_QP_COUNT_REMOTE_RDMA_WRITE,
	};

	opcode = rmem_wr_info[opcode].wc_opcode;
	if (opcode < RTE_DIM(kinds))
		rsoft_count(qp, kinds[opcode], is_ok, length);
}
