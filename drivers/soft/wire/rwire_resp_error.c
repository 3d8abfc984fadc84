/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The responder: the cause of an error of a request. */

#include "../mem/rsoft_access.h"
#include "../queue/rsoft_error.h"
#include "../queue/rsoft_resp.h"
#include "../queue/rsoft_xrc.h"
#include "rwire.h"

uint8_t
rwire_resp_opcode(const struct rwire_pkt *pkt)
{
	if (pkt->info & RWIRE_IS_SEND)
		return RMEM_WR_SEND;
	switch (pkt->opcode) {
	case RWIRE_READ_REQUEST:
		return RMEM_WR_RDMA_READ;
	case RWIRE_COMPARE_SWAP:
		return RMEM_WR_ATOMIC_CMP_AND_SWP;
	case RWIRE_FETCH_ADD:
		return RMEM_WR_ATOMIC_FETCH_AND_ADD;
	case RWIRE_ATOMIC_WRITE:
		return RMEM_WR_ATOMIC_WRITE;
	case RWIRE_FLUSH:
		return RMEM_WR_FLUSH;
	default:
		return RMEM_WR_RDMA_WRITE;
	}
}

void
rwire_resp_note(const struct rwire_qp *q, const struct rmem_send_wr *wr, int status,
		uint32_t vendor_err)
{
	if (vendor_err == RMEM_VENDOR_ERR_PAGE_FAULT) {
		rsoft_lock(&q->qp->rq.lock);
		RSOFT_COUNT(q->qp->rq.faults, 1);
		rte_ticketlock_unlock(&q->qp->rq.lock);
	}
	rsoft_error_peer(q->qp, wr, status, vendor_err);
}

uint32_t
rwire_resp_note_error(const struct rwire_qp *q, const struct rwire_pkt *pkt, int status)
{
	bool is_write = (pkt->info & RWIRE_IS_WRITE) != 0;
	struct rmem_send_wr wr = {0};
	bool has_srq = true;
	uint32_t right, vendor_err = RMEM_VENDOR_ERR_MSG_SIZE;

	/* Gives the same result as in resp_exec(). */
	if (q->service == RWIRE_XRC && status == RMEM_WC_REM_INV_REQ_ERR)
		has_srq = rsoft_xrc_select(q->qp, pkt->srqn);
	if ((pkt->info & RWIRE_IS_SEND) && has_srq)
		return RMEM_VENDOR_ERR_NONE;
	wr.opcode = rwire_resp_opcode(pkt);
	right = rmem_wr_info[wr.opcode].remote_access;
	if (pkt->opcode == RWIRE_FLUSH)
		right = rsoft_flush_rights(pkt->type);
	wr.rdma.remote_addr = pkt->addr;
	wr.rdma.rkey = pkt->rkey;
	/* Only the first packet of a WRITE has these fields; it may be missing. */
	if (is_write && (pkt->info & RWIRE_IS_FIRST) == 0) {
		wr.rdma.remote_addr = q->rsp.message != 0 ? q->rsp.addr : 0;
		wr.rdma.rkey = q->rsp.message != 0 ? q->rsp.rkey : 0;
	}
	if (!has_srq)
		vendor_err = RMEM_VENDOR_ERR_XRC_SRQ;
	else if (status == RMEM_WC_REM_ACCESS_ERR)
		vendor_err = q->rsp.vendor_err;
	else if (status == RMEM_WC_REM_OP_ERR)
		vendor_err = RMEM_VENDOR_ERR_PAGE_FAULT;
	else if ((q->qp->access & right) != right)
		vendor_err = RMEM_VENDOR_ERR_QP_RIGHT;
	else if (right == RMEM_ACCESS_REMOTE_ATOMIC || rwire_pkt_is_word(pkt))
		vendor_err = RMEM_VENDOR_ERR_ALIGNMENT;
	if (right == RMEM_ACCESS_REMOTE_ATOMIC) {
		wr.atomic.remote_addr = pkt->addr;
		wr.atomic.rkey = pkt->rkey;
	}
	rwire_resp_note(q, &wr, status, vendor_err);
	return vendor_err;
}
