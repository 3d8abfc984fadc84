/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The last error of a QP, of a request of the peer. */

#include "../mem/rsoft_access.h"
#include "../queue/rsoft_error.h"
#include "rwire.h"

uint32_t
rwire_error_note(const struct rwire_qp *q, const struct rwire_pkt *pkt, int status)
{
	bool is_write = (pkt->info & RWIRE_IS_WRITE) != 0;
	struct rmem_send_wr wr = {.opcode = RMEM_WR_RDMA_READ};
	uint32_t right, vendor_err = RMEM_VENDOR_ERR_MSG_SIZE;
	uint32_t length = pkt->dma_len;

	if (pkt->info & RWIRE_IS_SEND)
		return RMEM_VENDOR_ERR_NONE;
	if (is_write)
		wr.opcode = RMEM_WR_RDMA_WRITE;
	else if (pkt->opcode != RWIRE_READ_REQUEST)
		wr.opcode = pkt->opcode == RWIRE_FETCH_ADD ? RMEM_WR_ATOMIC_FETCH_AND_ADD
							   : RMEM_WR_ATOMIC_CMP_AND_SWP;
	right = rmem_wr_info[wr.opcode].remote_access;
	wr.rdma.remote_addr = pkt->addr;
	wr.rdma.rkey = pkt->rkey;
	/* Only the first packet of a WRITE has them; there may have been none. */
	if (is_write && (pkt->info & RWIRE_IS_FIRST) == 0) {
		length = q->rsp.left;
		wr.rdma.remote_addr = q->rsp.message != 0 ? q->rsp.addr : 0;
		wr.rdma.rkey = q->rsp.message != 0 ? q->rsp.rkey : 0;
	}
	if (status == RMEM_WC_REM_ACCESS_ERR)
		vendor_err = rsoft_access_vendor_err(q->qp, 0, wr.rdma.rkey, wr.rdma.remote_addr,
				length, RSOFT_VALID | right);
	else if ((q->qp->access & right) == 0)
		vendor_err = RMEM_VENDOR_ERR_QP_RIGHT;
	else if (right == RMEM_ACCESS_REMOTE_ATOMIC)
		vendor_err = RMEM_VENDOR_ERR_ALIGNMENT;
	if (right == RMEM_ACCESS_REMOTE_ATOMIC) {
		wr.atomic.remote_addr = pkt->addr;
		wr.atomic.rkey = pkt->rkey;
	}
	rsoft_error_peer(q->qp, &wr, status, vendor_err);
	return vendor_err;
}
