/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The last error of a QP; see rsoft_error.h. Called only for failures. */

#include <stdio.h>
#include <string.h>

#include "../mem/rsoft_access.h"
#include "rsoft_error.h"
#include "../mem/rsoft_fault_page.h"
#include "../mem/rsoft_history.h"
#include "rsoft_rq.h"

/* Whether an SGE was refused for a given cause. */
static bool
is_refused(const struct rsoft_qp *qp, const struct rmem_sge *sge, uint32_t need,
		uint32_t vendor_err)
{
	if (sge->length == 0)
		return false;
	if (vendor_err == RMEM_VENDOR_ERR_PAGE_FAULT &&
			rsoft_fault_page_find(qp, qp->dev->lkey_xor, sge->lkey, sge->addr,
					sge->length) != 0)
		return true;
	return rsoft_access_vendor_err(qp, qp->dev->lkey_xor, sge->lkey, sge->addr, sge->length,
			       need) == vendor_err;
}

/* Record the SGE that was refused for a cause, or else the first one. */
static void
set_sge(struct rmem_qp_error *error, const struct rsoft_qp *qp, const struct rmem_sge *sge,
		uint32_t nb, uint32_t need)
{
	uint32_t i = 0;

	while (i < nb && !is_refused(qp, &sge[i], need, error->vendor_err))
		i++;
	if (nb == 0)
		return;
	sge += i < nb ? i : 0;
	error->key = sge->lkey;
	error->addr = sge->addr;
}

/* Record the key that a bind or an invalidation names. */
static void
set_bound(struct rmem_qp_error *error, const struct rmem_send_wr *wr)
{
	switch (wr->opcode) {
	case RMEM_WR_REG_MR:
		error->key = rmem_rkey_of_tag(wr->reg_mr.mr->rkey, wr->reg_mr.key_tag);
		error->addr = wr->reg_mr.iova;
		break;
	case RMEM_WR_UMR:
		error->key = rmem_rkey_of_tag(wr->umr.mr->rkey, wr->umr.key_tag);
		error->addr = wr->umr.iova;
		break;
	case RMEM_WR_BIND_MW:
		error->key = rmem_rkey_of_tag(wr->bind_mw.mw->rkey, wr->bind_mw.key_tag);
		error->addr = wr->bind_mw.addr;
		break;
	default:
		error->key = wr->invalidate_rkey;
		break;
	}
}

/* Record the remote side of a request. */
static void
set_remote(struct rmem_qp_error *error, const struct rmem_send_wr *wr)
{
	uint32_t right = rmem_wr_info[wr->opcode].remote_access;

	if (right & RMEM_ACCESS_REMOTE_ATOMIC) {
		error->key = wr->atomic.rkey;
		error->addr = wr->atomic.remote_addr;
	} else if (right != 0) {
		error->key = wr->rdma.rkey;
		error->addr = wr->rdma.remote_addr;
	}
}

static void
set_peer(struct rmem_qp_error *error, const struct rmem_qp_addr *addr)
{
	error->peer_qp_num = addr->qp_num;
	memcpy(error->peer_gid, addr->gid, sizeof(error->peer_gid));
}

/* With sanitize=1: text for the log about the unreadable byte of a key. */
static void
missing_text(const struct rsoft_qp *qp, const struct rmem_qp_error *error, char *text, size_t size)
{
	uint32_t key_xor = error->status == RMEM_WC_LOC_PROT_ERR ? qp->dev->lkey_xor : 0;
	uintptr_t at = 0;

	if (error->side == RMEM_QP_ERROR_RECV)
		qp = rsoft_rq_owner(qp);
	text[0] = '\0';
	if (qp->dev->history != NULL && error->vendor_err == RMEM_VENDOR_ERR_PAGE_FAULT)
		at = rsoft_fault_page_find(qp, key_xor, error->key, error->addr, 0);
	if (at != 0)
		snprintf(text, size, "; its memory at 0x%" PRIxPTR " is %s", at,
				rsoft_fault_page_str(at));
}

static void
note(struct rsoft_qp *qp, const struct rmem_qp_error *error)
{
	char memory[96];

	missing_text(qp, error, memory, sizeof(memory));
	rmem_qp_note_error(&qp->qp, error);
	rsoft_history_report(&qp->qp, error, memory);
}

void
rsoft_error_send(
		struct rsoft_qp *qp, const struct rmem_send_wr *wr, int status, uint32_t vendor_err)
{
	struct rmem_qp_error error = {.side = RMEM_QP_ERROR_SEND,
			.wr_id = wr->wr_id,
			.opcode = wr->opcode,
			.status = (uint8_t)status,
			.vendor_err = vendor_err};
	const uint32_t writes = RMEM_ACCESS_REMOTE_READ | RMEM_ACCESS_REMOTE_ATOMIC;

	if (status == RMEM_WC_LOC_PROT_ERR)
		set_sge(&error, qp, wr->sg_list, wr->num_sge,
				rmem_wr_info[wr->opcode].remote_access & writes ? RSOFT_NEED_WRITE
										: RSOFT_NEED_READ);
	else if (status == RMEM_WC_MW_BIND_ERR)
		set_bound(&error, wr);
	else
		set_remote(&error, wr);
	set_peer(&error, &qp->conn.remote);
	note(qp, &error);
}

void
rsoft_error_peer(
		struct rsoft_qp *qp, const struct rmem_send_wr *wr, int status, uint32_t vendor_err)
{
	struct rmem_qp_error error = {.side = RMEM_QP_ERROR_PEER,
			.opcode = wr->opcode,
			.status = (uint8_t)status,
			.vendor_err = vendor_err};

	set_remote(&error, wr);
	set_peer(&error, &qp->conn.remote);
	note(qp, &error);
}

void
rsoft_error_recv(struct rsoft_qp *qp, const struct rmem_sge *sge, uint32_t nb, uint64_t wr_id,
		int status, uint32_t vendor_err, uint32_t key)
{
	struct rmem_qp_error error = {.side = RMEM_QP_ERROR_RECV,
			.wr_id = wr_id,
			.status = (uint8_t)status,
			.vendor_err = vendor_err,
			.key = key};

	if (key == 0)
		set_sge(&error, rsoft_rq_owner(qp), sge, nb, RSOFT_NEED_WRITE);
	set_peer(&error, &qp->conn.remote);
	note(qp, &error);
}
