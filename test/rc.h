/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/** @file Shared by tests without fixture.h: QPs of RC, and signaled requests of one SGE. */

#ifndef RC_H
#define RC_H

#include <sched.h>

#include <rmem.h>

#include "test.h"

/* One CQ, one SGE for each request, and all rights of peers. */
static inline struct rmem_qp_conf
rc_conf(struct rmem_cq *cq, uint32_t max_send_wr, uint32_t max_recv_wr)
{
	return (struct rmem_qp_conf){.send_cq = cq,
			.recv_cq = cq,
			.max_send_wr = max_send_wr,
			.max_recv_wr = max_recv_wr,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.type = RMEM_QPT_RC,
			.access = RMEM_ACCESS_REMOTE};
}

/* Connect a QP to another, by conn without its remote. */
static inline void
rc_connect(struct rmem_qp *qp, struct rmem_qp *remote, struct rmem_qp_conn conn)
{
	struct rmem_qp_attr attr;

	TEST_OK(rmem_qp_query(remote, &attr));
	conn.remote = attr.addr;
	TEST_OK(rmem_qp_connect(qp, &conn));
}

static inline struct rmem_send_wr
rc_wr(uint8_t opcode, const struct rmem_sge *sge)
{
	return (struct rmem_send_wr){.opcode = opcode,
			.flags = RMEM_SEND_SIGNALED,
			.sg_list = sge,
			.num_sge = 1};
}

static inline struct rmem_send_wr
rc_rdma(uint8_t opcode, const struct rmem_sge *sge, uint64_t remote_addr, uint32_t rkey)
{
	struct rmem_send_wr wr = rc_wr(opcode, sge);

	wr.rdma.remote_addr = remote_addr;
	wr.rdma.rkey = rkey;
	return wr;
}

/* Wait for a completion; what rmem_poll_cq() returned. */
static inline int
rc_wait(struct rmem_cq *cq, struct rmem_wc *wc)
{
	int n;

	while ((n = rmem_poll_cq(cq, wc, 1)) == 0)
		sched_yield();
	return n;
}

#endif /* RC_H */
