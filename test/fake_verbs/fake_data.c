/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The fakes of posts and polls: requests run inside the post; see fake.h. */

#include <errno.h>
#include <string.h>

#include "fake.h"

static void fake_execute(struct fake_qp *qp, struct fake_wqe *wqe);

static void
fake_complete(struct ibv_cq *ibv, const struct ibv_wc *wc, bool is_solicited)
{
	struct fake_cq *cq = (struct fake_cq *)ibv;

	if (cq->prod - cq->cons == (uint32_t)ibv->cqe) {
		cq->is_overrun = !cq->is_overrun_ignored;
		return;
	}
	cq->ring[cq->prod++ % (uint32_t)ibv->cqe] = *wc;
	fake_notify(ibv, is_solicited || wc->status != IBV_WC_SUCCESS);
}

void
fake_complete_recv(struct fake_qp *qp, struct ibv_wc wc, bool is_solicited)
{
	wc.wr_id = qp->recv[qp->recv_cons++ % FAKE_QUEUE].wr.wr_id;
	wc.qp_num = qp->ex.qp_base.qp_num;
	fake_complete(qp->ex.qp_base.recv_cq, &wc, is_solicited);
}

void
fake_qp_error(struct fake_qp *qp)
{
	struct ibv_wc wc = {.status = IBV_WC_WR_FLUSH_ERR};

	if (qp->ex.qp_base.state != IBV_QPS_RESET)
		qp->ex.qp_base.state = IBV_QPS_ERR;
	while (qp->recv_cons != qp->recv_prod)
		fake_complete_recv(qp, wc, true);
	qp->is_run_flushed = fake.is_flush_run;
	while (qp->held_cons != qp->held_prod)
		fake_execute(qp, &qp->held[qp->held_cons++ % FAKE_QUEUE]);
	qp->is_run_flushed = false;
}

/* To RESET: posted requests are dropped, but a local operation may have been executed. */
void
fake_qp_drop(struct fake_qp *qp)
{
	struct ibv_wc wc;

	qp->recv_cons = qp->recv_prod = 0;
	for (; qp->held_cons != qp->held_prod; qp->held_cons++) {
		if (fake.is_flush_run)
			fake_run_local(qp, &qp->held[qp->held_cons % FAKE_QUEUE], &wc);
	}
}

void
fake_run_held(uint32_t qp_num, unsigned int nb)
{
	struct fake_qp *qp = fake_qp_find(qp_num);

	for (; nb != 0 && qp->held_cons != qp->held_prod; nb--)
		fake_execute(qp, &qp->held[qp->held_cons++ % FAKE_QUEUE]);
}

static int
fake_poll_cq(struct ibv_cq *ibv, int nb, struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)ibv;
	int n;

	if (fake.is_poll_bad)
		return -1;
	for (n = 0; n < nb && cq->cons != cq->prod; n++)
		wc[n] = cq->ring[cq->cons++ % (uint32_t)ibv->cqe];
	return n == 0 && cq->is_overrun ? -1 : n;
}

static void
fake_execute(struct fake_qp *qp, struct fake_wqe *wqe)
{
	struct ibv_wc wc = {.wr_id = wqe->wr.wr_id, .qp_num = qp->ex.qp_base.qp_num};
	bool is_signaled = qp->init.sq_sig_all || (wqe->wr.send_flags & IBV_SEND_SIGNALED) != 0;

	if (qp->ex.qp_base.state == IBV_QPS_ERR) {
		/* Up to the first that fails; -1 is none of these. */
		if (qp->is_run_flushed)
			qp->is_run_flushed = fake_run_local(qp, wqe, &wc) <= 0;
		wc.status = IBV_WC_WR_FLUSH_ERR;
	} else if (!fake.is_quick)
		wc.status = (enum ibv_wc_status)fake_run(qp, wqe, &wc);
	if (wc.status != IBV_WC_SUCCESS && fake.is_told_flushed)
		wc.status = IBV_WC_WR_FLUSH_ERR;
	if (wc.status != IBV_WC_SUCCESS && fake.failure_status != 0)
		wc.status = (enum ibv_wc_status)fake.failure_status;
	wc.vendor_err = wc.status != IBV_WC_SUCCESS ? FAKE_VENDOR_ERR : 0;
	if (wc.status != IBV_WC_SUCCESS || is_signaled)
		fake_complete(qp->ex.qp_base.send_cq, &wc, false);
	if (wc.status != IBV_WC_SUCCESS)
		fake_qp_error(qp);
}

static void
fake_see(const struct fake_wqe *wqe)
{
	struct fake_seen *seen = &fake.seen[fake.nb_seen++ % FAKE_NB_SEEN];
	const struct ibv_send_wr *wr = &wqe->wr;

	seen->opcode = wr->opcode;
	seen->key = wr->opcode == IBV_WR_BIND_MW ? wr->bind_mw.rkey : wr->invalidate_rkey;
	seen->old_key = wqe->mw_rkey;
	seen->info = wr->bind_mw.bind_info;
}

/* Execute, or let it wait. */
static void
fake_take(struct fake_qp *qp, struct fake_wqe *wqe)
{
	if (fake.is_quick) {
		fake_execute(qp, wqe);
		return;
	}
	fake_see(wqe);
	if (fake.is_held && qp->ex.qp_base.state == IBV_QPS_RTS) {
		qp->held[qp->held_prod++ % FAKE_QUEUE] = *wqe;
		return;
	}
	while (qp->held_cons != qp->held_prod) /* in order */
		fake_execute(qp, &qp->held[qp->held_cons++ % FAKE_QUEUE]);
	fake_execute(qp, wqe);
}

static void
fake_inline(struct fake_wqe *wqe, const void *addr, size_t length)
{
	memcpy(wqe->data + wqe->data_len, addr, length);
	wqe->data_len += (uint32_t)length;
}

static int
fake_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)ibv;
	unsigned int n;
	int i;

	fake.nb_classic++;
	for (n = 0; wr != NULL; wr = wr->next, n++) {
		struct fake_wqe *wqe = &qp->batch[0];

		if (fake.post_errno != 0 && n == fake.post_take) {
			*bad = wr;
			return fake.post_errno;
		}
		wqe->wr = *wr;
		wqe->data_len = 0;
		for (i = 0; i < wr->num_sge; i++) {
			wqe->sge[i] = wr->sg_list[i];
			if ((wr->send_flags & IBV_SEND_INLINE) != 0)
				fake_inline(wqe, (const void *)(uintptr_t)wr->sg_list[i].addr,
						wr->sg_list[i].length);
		}
		if ((wr->send_flags & IBV_SEND_INLINE) != 0)
			wqe->wr.num_sge = 0;
		if (wr->opcode == IBV_WR_BIND_MW)
			wqe->mw_rkey = wr->bind_mw.mw->rkey;
		fake_take(qp, wqe);
	}
	return 0;
}

void
fake_fill_recv(struct fake_wqe *wqe, const struct ibv_recv_wr *wr)
{
	memset(&wqe->wr, 0, sizeof(wqe->wr));
	wqe->wr.wr_id = wr->wr_id;
	wqe->wr.num_sge = wr->num_sge;
	wqe->data_len = 0;
	if (wr->num_sge != 0)
		memcpy(wqe->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(*wr->sg_list));
}

static int
fake_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)ibv;
	unsigned int n;

	for (n = 0; wr != NULL; wr = wr->next, n++) {
		if (fake.post_errno != 0 && n == fake.post_take) {
			*bad = wr;
			return fake.post_errno;
		}
		fake_fill_recv(&qp->recv[qp->recv_prod++ % FAKE_QUEUE], wr);
	}
	if (ibv->state == IBV_QPS_ERR)
		fake_qp_error(qp);
	return 0;
}

void
fake_data_ops(struct ibv_context *context)
{
	context->ops.poll_cq = fake_poll_cq;
	context->ops.post_send = fake_post_send;
	context->ops.post_recv = fake_post_recv;
}

/* Extended QPs: a batch is written, then run. */
static struct fake_wqe *
fake_ex_new(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
	struct fake_qp *qp = (struct fake_qp *)ex;
	struct fake_wqe *wqe = &qp->batch[qp->nb_batch++ % FAKE_QUEUE];

	wqe->wr.wr_id = ex->wr_id;
	wqe->wr.send_flags = ex->wr_flags;
	wqe->wr.opcode = opcode;
	wqe->wr.num_sge = 0;
	wqe->data_len = 0;
	return wqe;
}

static struct fake_wqe *
fake_ex_last(struct ibv_qp_ex *ex)
{
	struct fake_qp *qp = (struct fake_qp *)ex;

	return &qp->batch[(qp->nb_batch - 1) % FAKE_QUEUE];
}

static void
fake_ex_rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr)
{
	struct fake_wqe *wqe = fake_ex_new(ex, opcode);

	wqe->wr.wr.rdma.rkey = rkey;
	wqe->wr.wr.rdma.remote_addr = addr;
}

static void
fake_ex_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	fake_ex_rdma(ex, IBV_WR_RDMA_WRITE, rkey, addr);
}

static void
fake_ex_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	fake_ex_rdma(ex, IBV_WR_RDMA_READ, rkey, addr);
}

static void
fake_ex_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 imm)
{
	fake_ex_rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr);
	fake_ex_last(ex)->wr.imm_data = imm;
}

static void
fake_ex_send(struct ibv_qp_ex *ex)
{
	fake_ex_new(ex, IBV_WR_SEND);
}

static void
fake_ex_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	fake_ex_new(ex, IBV_WR_SEND_WITH_IMM)->wr.imm_data = imm;
}

static void
fake_ex_send_inv(struct ibv_qp_ex *ex, uint32_t key)
{
	fake_ex_new(ex, IBV_WR_SEND_WITH_INV)->wr.invalidate_rkey = key;
}

void
fake_ex_umr(struct ibv_qp_ex *ex, const struct fake_umr *umr, uint32_t key)
{
	struct fake_wqe *wqe = fake_ex_new(ex, IBV_WR_DRIVER1);

	wqe->umr = umr;
	wqe->wr.invalidate_rkey = key;
}

static void
fake_ex_local_inv(struct ibv_qp_ex *ex, uint32_t key)
{
	fake_ex_new(ex, IBV_WR_LOCAL_INV)->wr.invalidate_rkey = key;
}

static void
fake_ex_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		const struct ibv_mw_bind_info *info)
{
	struct fake_wqe *wqe = fake_ex_new(ex, IBV_WR_BIND_MW);

	wqe->mw_rkey = mw->rkey;
	wqe->wr.bind_mw.mw = mw;
	wqe->wr.bind_mw.rkey = rkey;
	/* Field by field, as providers read it. */
	wqe->wr.bind_mw.bind_info.mr = __atomic_load_n(&info->mr, __ATOMIC_RELAXED);
	wqe->wr.bind_mw.bind_info.addr = __atomic_load_n(&info->addr, __ATOMIC_RELAXED);
	wqe->wr.bind_mw.bind_info.length = __atomic_load_n(&info->length, __ATOMIC_RELAXED);
	wqe->wr.bind_mw.bind_info.mw_access_flags =
			__atomic_load_n(&info->mw_access_flags, __ATOMIC_RELAXED);
}

static void
fake_ex_cas(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t compare, uint64_t swap)
{
	struct fake_wqe *wqe = fake_ex_new(ex, IBV_WR_ATOMIC_CMP_AND_SWP);

	wqe->wr.wr.atomic.rkey = rkey;
	wqe->wr.wr.atomic.remote_addr = addr;
	wqe->wr.wr.atomic.compare_add = compare;
	wqe->wr.wr.atomic.swap = swap;
}

static void
fake_ex_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t add)
{
	struct fake_wqe *wqe = fake_ex_new(ex, IBV_WR_ATOMIC_FETCH_AND_ADD);

	wqe->wr.wr.atomic.rkey = rkey;
	wqe->wr.wr.atomic.remote_addr = addr;
	wqe->wr.wr.atomic.compare_add = add;
}

static void
fake_ex_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct fake_wqe *wqe = fake_ex_last(ex);

	wqe->wr.num_sge = 1;
	wqe->sge[0].lkey = lkey;
	wqe->sge[0].addr = addr;
	wqe->sge[0].length = length;
}

static void
fake_ex_sge_list(struct ibv_qp_ex *ex, size_t nb, const struct ibv_sge *list)
{
	struct fake_wqe *wqe = fake_ex_last(ex);

	size_t i;

	wqe->wr.num_sge = (int)nb;
	for (i = 0; i < nb; i++) {
		wqe->sge[i] = list[i];
		if (fake.is_list_bad)
			wqe->sge[i].length = list[0].length;
	}
}

static void
fake_ex_inline(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	fake_inline(fake_ex_last(ex), addr, length);
}

static void
fake_ex_start(struct ibv_qp_ex *ex)
{
	((struct fake_qp *)ex)->nb_batch = 0;
	((struct fake_qp *)ex)->ex_err = 0;
}

static void
fake_ex_abort(struct ibv_qp_ex *ex)
{
	((struct fake_qp *)ex)->nb_batch = 0;
	fake.nb_aborts++;
}

static int
fake_ex_complete(struct ibv_qp_ex *ex)
{
	struct fake_qp *qp = (struct fake_qp *)ex;
	uint32_t i;

	fake.nb_ex++;
	if (qp->ex_err != 0)
		return qp->ex_err;
	if (fake.post_errno != 0 && qp->nb_batch > fake.post_take)
		return fake.post_errno;
	if (fake.post_errno != 0)
		fake.post_take -= qp->nb_batch;
	for (i = 0; i < qp->nb_batch; i++)
		fake_take(qp, &qp->batch[i]);
	return 0;
}

void
fake_ex_ops(struct ibv_qp_ex *ex)
{
	ex->wr_start = fake_ex_start;
	ex->wr_abort = fake_ex_abort;
	ex->wr_complete = fake_ex_complete;
	ex->wr_rdma_write = fake_ex_write;
	ex->wr_rdma_write_imm = fake_ex_write_imm;
	ex->wr_rdma_read = fake_ex_read;
	ex->wr_send = fake_ex_send;
	ex->wr_send_imm = fake_ex_send_imm;
	ex->wr_send_inv = fake_ex_send_inv;
	ex->wr_local_inv = fake_ex_local_inv;
	ex->wr_bind_mw = fake_ex_bind_mw;
	ex->wr_atomic_cmp_swp = fake_ex_cas;
	ex->wr_atomic_fetch_add = fake_ex_add;
	ex->wr_set_sge = fake_ex_sge;
	ex->wr_set_sge_list = fake_ex_sge_list;
	ex->wr_set_inline_data = fake_ex_inline;
}
