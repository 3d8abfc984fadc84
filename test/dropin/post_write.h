/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A WRITE. */

#ifndef POST_WRITE_H
#define POST_WRITE_H

#include <stdint.h>

#include <infiniband/verbs.h>

/* WRITE the first half of an MR to its second half; the result of ibv_post_send(). */
static inline int
post_write(struct ibv_qp *qp, const struct ibv_mr *mr, uint64_t wr_id)
{
	const uint32_t length = (uint32_t)mr->length / 2;
	struct ibv_sge sge = {.addr = (uintptr_t)mr->addr, .length = length, .lkey = mr->lkey};
	struct ibv_send_wr *bad,
			wr = {.wr_id = wr_id,
					.opcode = IBV_WR_RDMA_WRITE,
					.sg_list = &sge,
					.num_sge = 1,
					.send_flags = IBV_SEND_SIGNALED,
					.wr.rdma = {.remote_addr = sge.addr + length,
							.rkey = mr->rkey}};

	return ibv_post_send(qp, &wr, &bad);
}

#endif /* POST_WRITE_H */
