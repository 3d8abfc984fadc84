/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The fakes of the execution of requests, but of windows and mkeys; see fake.h. */

#include <string.h>

#include "fake.h"

/* That of the memory which requests to a QP access. */
static const struct ibv_pd *
fake_pd(const struct fake_qp *qp)
{
	return qp->init.srq != NULL && qp->init.xrcd != NULL ? qp->init.srq->pd : qp->ex.qp_base.pd;
}

/* The memory of a key, for a request to that QP or a local one; or NULL. */
static void *
fake_access(const struct fake_qp *qp, uint32_t key, uint64_t addr, uint64_t length,
		unsigned int right)
{
	struct fake_mr *mr = fake_mr_find(key);
	uint8_t *at;

	if (mr == NULL && qp != NULL)
		return fake_mw_access(qp, key, addr, length, right);
	if (mr != NULL && qp != NULL && mr->ibv.pd != fake_pd(qp))
		return NULL;
	if (mr == NULL || (mr->access & right) != right || addr < mr->iova ||
			addr - mr->iova + length > mr->ibv.length)
		return NULL;
	at = (uint8_t *)((uintptr_t)mr->ibv.addr + (addr - mr->iova));
	return (mr->access & IBV_ACCESS_ON_DEMAND) != 0 ? fake_odp_place(mr, at, right) : at;
}

void *
fake_local(uint32_t lkey, uint64_t addr, uint64_t length, unsigned int right)
{
	return fake_access(NULL, lkey, addr, length, right);
}

/* Between an SGE and straight bytes. */
static bool
fake_copy_sge(const struct ibv_sge *sge, uint8_t *bytes, uint64_t length, bool is_to_sge)
{
	unsigned int right = is_to_sge ? IBV_ACCESS_LOCAL_WRITE : 0;
	uint8_t *local = fake_local(sge->lkey, sge->addr, length, right);

	if (local != NULL)
		memcpy(is_to_sge ? local : bytes, is_to_sge ? bytes : local, length);
	return local != NULL ||
			(fake.mkeys != NULL &&
					fake.mkeys->copy(sge->lkey, sge->addr, bytes, length,
							right) > 0);
}

bool
fake_copy(struct fake_wqe *wqe, uint8_t *bytes, uint64_t room, bool is_to_sges, uint32_t *length)
{
	int i;

	*length = 0;
	if (wqe->data_len != 0) {
		memcpy(bytes, wqe->data, wqe->data_len);
		*length = wqe->data_len;
		return true;
	}
	for (i = 0; i < wqe->wr.num_sge && room != 0; i++) {
		const struct ibv_sge *sge = &wqe->sge[i];
		uint64_t n = sge->length < room ? sge->length : room;

		if (!fake_copy_sge(sge, bytes, n, is_to_sges))
			return false;
		bytes += n;
		room -= n;
		*length += (uint32_t)n;
	}
	return true;
}

uint64_t
fake_total(const struct fake_wqe *wqe)
{
	uint64_t total = wqe->data_len;
	int i;

	for (i = 0; i < wqe->wr.num_sge; i++)
		total += wqe->sge[i].length;
	return total;
}

/* A status, or -1 if the rkey is not that of an mkey. */
static int
fake_run_mkey(struct fake_wqe *wqe, uint64_t total, bool is_read, struct ibv_wc *wc)
{
	unsigned int right = is_read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
	const struct ibv_send_wr *wr = &wqe->wr;
	uint8_t bytes[65536];
	int ret;

	if (fake.mkeys == NULL)
		return -1;
	if (!is_read && !fake_copy(wqe, bytes, total, false, &wc->byte_len))
		return IBV_WC_LOC_PROT_ERR;
	ret = fake.mkeys->copy(wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, bytes, total, right);
	if (ret <= 0)
		return ret < 0 ? -1 : IBV_WC_REM_ACCESS_ERR;
	if (is_read && !fake_copy(wqe, bytes, total, true, &wc->byte_len))
		return IBV_WC_LOC_PROT_ERR;
	return IBV_WC_SUCCESS;
}

static int
fake_run_rdma(struct fake_qp *peer, struct fake_wqe *wqe, bool is_read, struct ibv_wc *wc)
{
	const struct ibv_send_wr *wr = &wqe->wr;
	uint64_t total = fake_total(wqe);
	uint8_t *remote = fake_access(peer, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, total,
			is_read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE);

	int status;

	wc->opcode = is_read ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE;
	status = remote == NULL ? fake_run_mkey(wqe, total, is_read, wc) : -1;
	if (status >= 0)
		return status;
	if (remote == NULL && total != 0)
		return IBV_WC_REM_ACCESS_ERR;
	if (!fake_copy(wqe, remote, total, is_read, &wc->byte_len))
		return IBV_WC_LOC_PROT_ERR;
	return IBV_WC_SUCCESS;
}

static int
fake_run_atomic(struct fake_qp *peer, struct fake_wqe *wqe, struct ibv_wc *wc)
{
	const struct ibv_send_wr *wr = &wqe->wr;
	bool is_cas = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
	uint64_t old,
			*remote = fake_access(peer, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
					8, IBV_ACCESS_REMOTE_ATOMIC);
	uint32_t length;

	wc->opcode = is_cas ? IBV_WC_COMP_SWAP : IBV_WC_FETCH_ADD;
	if (remote == NULL)
		return IBV_WC_REM_ACCESS_ERR;
	old = *remote;
	if (!is_cas)
		*remote += wr->wr.atomic.compare_add;
	else if (old == wr->wr.atomic.compare_add)
		*remote = wr->wr.atomic.swap;
	if (fake.is_atomic_bad)
		old++;
	return fake_copy(wqe, (uint8_t *)&old, 8, true, &length) ? IBV_WC_SUCCESS
								 : IBV_WC_LOC_PROT_ERR;
}

/* Invalidate a key of an mkey or window; false: refused. */
static bool
fake_run_inv(const struct fake_qp *qp, uint32_t key, bool is_remote)
{
	int ret = fake.mkeys != NULL ? fake.mkeys->invalidate(key, is_remote) : -1;

	return ret < 0 ? fake_invalidate(qp, key) : ret != 0;
}

/* SEND, or the end of a WRITE_WITH_IMM: a receive of the peer. */
static int
fake_run_recv(struct fake_qp *peer, struct fake_wqe *wqe, struct ibv_wc *wc)
{
	uint8_t bytes[65536];
	struct ibv_wc recv = {.opcode = IBV_WC_RECV};
	struct fake_wqe *to = &peer->recv[peer->recv_cons % FAKE_QUEUE];
	uint32_t got;

	wc->opcode = IBV_WC_SEND;
	fake_srq_take(peer);
	if (peer->recv_cons == peer->recv_prod)
		return IBV_WC_RNR_RETRY_EXC_ERR;
	if (wqe->wr.opcode == IBV_WR_SEND_WITH_IMM ||
			wqe->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
		recv.wc_flags = IBV_WC_WITH_IMM;
		recv.imm_data = wqe->wr.imm_data;
	}
	if (wqe->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
		wc->opcode = IBV_WC_RDMA_WRITE;
		recv.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
	} else {
		if (!fake_copy(wqe, bytes, sizeof(bytes), false, &recv.byte_len))
			return IBV_WC_LOC_PROT_ERR;
		if (recv.byte_len > fake_total(to))
			return IBV_WC_REM_INV_REQ_ERR;
		if (!fake_copy(to, bytes, recv.byte_len, true, &got))
			return IBV_WC_REM_OP_ERR;
	}
	if (wqe->wr.opcode == IBV_WR_SEND_WITH_INV) {
		recv.wc_flags = fake.has_kernel_inv ? 5 : IBV_WC_WITH_INV;
		recv.invalidated_rkey = wqe->wr.invalidate_rkey;
		if (!fake_run_inv(peer, wqe->wr.invalidate_rkey, true))
			recv.status = IBV_WC_REM_INV_REQ_ERR;
	}
	fake_complete_recv(peer, recv, (wqe->wr.send_flags & IBV_SEND_SOLICITED) != 0);
	if (recv.status != IBV_WC_SUCCESS)
		fake_qp_error(peer);
	return IBV_WC_SUCCESS;
}

/* Requests that need no peer: a status, or -1. */
int
fake_run_local(struct fake_qp *qp, struct fake_wqe *wqe, struct ibv_wc *wc)
{
	if (wqe->wr.opcode == IBV_WR_BIND_MW)
		return fake_run_bind(qp, wqe, wc);
	if (wqe->wr.opcode == IBV_WR_DRIVER1)
		return fake.mkeys->run(wqe->umr, wc);
	if (wqe->wr.opcode != IBV_WR_LOCAL_INV)
		return -1;
	wc->opcode = IBV_WC_LOCAL_INV;
	return fake_run_inv(qp, wqe->wr.invalidate_rkey, false) ? IBV_WC_SUCCESS
								: IBV_WC_LOC_QP_OP_ERR;
}

int
fake_run(struct fake_qp *qp, struct fake_wqe *wqe, struct ibv_wc *wc)
{
	struct fake_qp *peer = fake_qp_find(qp->dest);
	int status = fake_run_local(qp, wqe, wc);

	if (status >= 0)
		return status;
	if (qp->ex.qp_base.qp_type == IBV_QPT_UD)
		return fake_run_ud(qp, wqe, wc);
	if (peer == NULL || peer->ex.qp_base.state != IBV_QPS_RTS)
		return IBV_WC_RETRY_EXC_ERR;
	if (qp->ex.qp_base.qp_type == IBV_QPT_XRC_SEND &&
			!fake_srq_select(peer, wqe->wr.qp_type.xrc.remote_srqn))
		return IBV_WC_REM_INV_REQ_ERR;
	switch (wqe->wr.opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
		return fake_run_rdma(peer, wqe, wqe->wr.opcode == IBV_WR_RDMA_READ, wc);
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		status = fake_run_rdma(peer, wqe, false, wc);
		return status != IBV_WC_SUCCESS ? status : fake_run_recv(peer, wqe, wc);
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
		return fake_run_recv(peer, wqe, wc);
	default:
		return fake_run_atomic(peer, wqe, wc);
	}
}
