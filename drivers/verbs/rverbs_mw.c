/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Memory windows, notes of requests, and type 1 binds; see rverbs_mw.h. */

#include <errno.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_malloc.h>

#include "rverbs_mlx5.h"
#include "rverbs_mw.h"
#include "rverbs_mwq.h"

static int
mw_make(struct rverbs_mw *mw)
{
	struct ibv_pd *pd = rverbs_pd_of(mw->mw.pd)->ibv;
	int ret;

	rte_ticketlock_init(&mw->lock);
	mw->ibv = ibv_alloc_mw(pd, mw->mw.type == RMEM_MW_TYPE_1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
	ret = rverbs_err_null(mw->ibv, "ibv_alloc_mw");
	if (ret == 0)
		mw->mw.rkey = mw->key_in_force = mw->ibv->rkey;
	return ret;
}

int
rverbs_mw_alloc(struct rmem_mw *base)
{
	struct rverbs_mw *mw = rverbs_mw_of(base);

	return rverbs_dev_of(&base->obj)->has_mw_quirk ? rverbs_mwq_alloc(mw) : mw_make(mw);
}

static int
mw_unmake(struct rverbs_mw *mw)
{
	uint32_t busy;
	int ret;

	rte_ticketlock_lock(&mw->lock);
	busy = mw->busy;
	rte_ticketlock_unlock(&mw->lock);
	ret = rverbs_mw_check_busy(mw, busy);
	if (ret != 0)
		return ret;
	return rverbs_err_code(ibv_dealloc_mw(mw->ibv), RVERBS_ERR_RELEASE, "ibv_dealloc_mw");
}

int
rverbs_mw_dealloc(struct rmem_mw *base)
{
	struct rverbs_mw *mw = rverbs_mw_of(base);

	return rverbs_dev_of(&base->obj)->has_mw_quirk ? rverbs_mwq_dealloc(mw) : mw_unmake(mw);
}

/* Begin the bind of a type 1 window; on success its lock is held. */
static int
mw_bind_begin(struct rverbs_qp *qp, struct rverbs_mw *mw, struct rmem_mr *mr,
		struct rverbs_mw_op *op)
{
	if (qp->has_mw_quirk)
		return rverbs_mwq_bind_begin(qp, mw, mr, op);
	rte_ticketlock_lock(&mw->lock);
	op->kind = RVERBS_MW_BIND_1;
	return 0;
}

static void
mw_bind_end(const struct rverbs_qp *qp, struct rverbs_mw_op *op, int ret)
{
	if (qp->has_mw_quirk)
		rverbs_mwq_bind_end(op, ret);
	else
		rte_ticketlock_unlock(&op->mw->lock);
}

/*
 * Length 0 unbinds, for which no MR is needed. But rdma_rxe's provider always reads the MR: with
 * the quirk, bind the window to 0 bytes of a page of the driver.
 */
static void
mw_bind_fill(const struct rverbs_mw *mw, const struct rmem_mw_bind *bind, uint64_t id,
		struct ibv_mw_bind *ibv)
{
	struct ibv_mr *park = rverbs_pd_of(mw->mw.pd)->park;
	const struct rmem_mw_bind_info *info = &bind->bind_info;

	memset(ibv, 0, sizeof(*ibv));
	ibv->wr_id = id;
	ibv->send_flags = bind->flags;
	if (info->length != 0) {
		ibv->bind_info.mr = rverbs_mr_of(info->mr)->ibv;
		ibv->bind_info.addr = info->addr;
		ibv->bind_info.length = info->length;
		ibv->bind_info.mw_access_flags = info->access;
	} else if (park != NULL) {
		ibv->bind_info.mr = park;
		ibv->bind_info.addr = (uintptr_t)park->addr;
	}
}

/* Pass a bind to the device; if the device refuses it, nothing changes. */
static int
mw_call(struct rverbs_qp *qp, struct rverbs_mw_op *op, const struct rmem_mw_bind *bind)
{
	uint32_t prod = qp->sq.prod, before = op->mw->ibv->rkey;
	struct rverbs_wqe *wqe = &qp->sq.wqe[prod & qp->sq.mask];
	uint64_t windows = qp->windows;
	struct rverbs_mw *mw = op->mw;
	struct ibv_mw_bind ibv;
	int ret;

	mw_bind_fill(mw, bind, qp->id | (uint16_t)prod, &ibv);
	wqe->wr_id = bind->wr_id;
	wqe->note = qp->windows = windows + RVERBS_NOTE_BIND;
	mw->busy++;
	rverbs_mw_ops_push(qp);
	__atomic_store_n(&qp->sq.prod, prod + 1, __ATOMIC_RELEASE);
	ret = ibv_bind_mw(qp->ibv, mw->ibv, &ibv);
	if (ret != 0) {
		__atomic_store_n(&qp->sq.prod, prod, __ATOMIC_RELEASE);
		__atomic_store_n(&qp->mw_ops.prod, qp->mw_ops.prod - 1, __ATOMIC_RELEASE);
		mw->busy--;
		qp->windows = windows;
		mw->ibv->rkey = before;
		return rverbs_err_post(ret == -1 ? errno : ret);
	}
	op->key = mw->ibv->rkey;
	rverbs_mw_set_handle(mw, op->key);
	return 0;
}

/*
 * The lock is held during the call, which determines the key, because a thread that polls the
 * completion concurrently needs the key.
 */
int
rverbs_mw_bind(struct rmem_qp *base, struct rmem_mw *mw, const struct rmem_mw_bind *bind)
{
	struct rmem_mr *mr = bind->bind_info.length != 0 ? bind->bind_info.mr : NULL;
	struct rverbs_qp *qp = rverbs_qp_of(base);
	struct rverbs_mw_op *op;
	int ret;

	ret = rverbs_qp_check_gate(qp);
	if (ret == 0 && rverbs_nb_free(&qp->sq, 1) == 0)
		ret = -ENOSPC;
	if (ret != 0)
		return ret;
	op = rverbs_mw_ops_next(qp, qp->sq.prod);
	op->mw = rverbs_mw_of(mw);
	ret = mw_bind_begin(qp, op->mw, mr, op);
	if (ret != 0)
		return ret;
	ret = mw_call(qp, op, bind);
	mw_bind_end(qp, op, ret);
	return ret;
}

/* End a type 1 bind; if it failed, the previous bind is in effect. */
static void
mw_end_1(const struct rverbs_mw_op *op, bool is_well)
{
	struct rverbs_mw *mw = op->mw;

	rte_ticketlock_lock(&mw->lock);
	mw->busy--;
	if (is_well) {
		mw->key_in_force = op->key;
	} else {
		mw->ibv->rkey = mw->key_in_force;
		rverbs_mw_set_handle(mw, mw->key_in_force);
	}
	rte_ticketlock_unlock(&mw->lock);
}

int
rverbs_mw_ops_init(struct rverbs_mw_ops *ops, uint32_t depth)
{
	uint32_t size = rte_align32pow2(RTE_MAX(depth, 1u));

	ops->mask = size - 1;
	ops->ops = rte_zmalloc("rverbs_mw_ops", size * sizeof(*ops->ops), RTE_CACHE_LINE_SIZE);
	if (ops->ops != NULL)
		return 0;
	RVERBS_LOG(ERR, "queue: no memory: %u entries", depth);
	return -ENOMEM;
}

void
rverbs_mw_write_chain(
		struct ibv_send_wr *to, const struct rmem_send_wr *wr, uint32_t key, bool is_bind)
{
	if (is_bind) {
		to->opcode = IBV_WR_BIND_MW;
		to->bind_mw.mw = rverbs_mw_of(wr->bind_mw.mw)->ibv;
		to->bind_mw.rkey = key;
		to->bind_mw.bind_info = rverbs_mw_bind_info(wr);
	} else {
		to->opcode = wr->opcode == RMEM_WR_SEND_WITH_INV ? IBV_WR_SEND_WITH_INV
								 : IBV_WR_LOCAL_INV;
		to->invalidate_rkey = key;
	}
	if (wr->opcode != RMEM_WR_SEND_WITH_INV)
		to->num_sge = 0;
}

/* Remove the last note, of a REG_MR or UMR. */
static void
mw_undo_mkey(struct rverbs_qp *qp)
{
	struct rverbs_mw_ops *ops = &qp->mw_ops;

	__atomic_store_n(&ops->prod, ops->prod - 1, __ATOMIC_RELEASE);
	rverbs_mlx5_undo(&ops->ops[ops->prod & ops->mask]);
}

void
rverbs_mw_undo(struct rverbs_qp *qp, const struct rmem_send_wr *wr, uint32_t pos, uint32_t end)
{
	struct rverbs_mw *mw;

	if (qp->has_mw_quirk) {
		rverbs_mwq_undo(qp, pos);
		return;
	}
	while (end-- != pos) {
		if (rverbs_is_mkey_wr(&wr[end - pos]))
			mw_undo_mkey(qp);
		if (wr[end - pos].opcode != RMEM_WR_BIND_MW)
			continue;
		mw = rverbs_mw_of(wr[end - pos].bind_mw.mw);
		mw->ibv->rkey = RVERBS_NOTE_LOW(qp->sq.wqe[end & qp->sq.mask].note);
		rverbs_mw_set_handle(mw, mw->ibv->rkey);
	}
}

/* Count the successful requests before `end`; nb_mkeys of the binds were not binds of windows. */
static void
mw_count_done(struct rverbs_qp *qp, uint32_t end, bool is_last_well, uint32_t nb_mkeys)
{
	const struct rverbs_ring *sq = &qp->sq;
	uint64_t done = qp->windows_done, windows = sq->wqe[(end - 1) & sq->mask].note;

	qp->windows_done = RVERBS_NOTE_WINDOWS(windows);
	if (!is_last_well)
		windows = end - 1 != sq->cons ? sq->wqe[(end - 2) & sq->mask].note : done;
	qp->send_done.mw_binds += (windows - done) / RVERBS_NOTE_BIND - nb_mkeys;
	qp->send_done.invalidates += (uint16_t)((windows - done) / RVERBS_NOTE_INV);
}

/* End a noted request; return whether it was a successful REG_MR or UMR. */
static bool
mw_end(struct rverbs_qp *qp, struct rverbs_mw_op *op, uint8_t status, int *locked)
{
	bool is_well = status == RMEM_WC_SUCCESS;

	if (qp->has_mw_quirk) {
		rverbs_mwq_end(op, status, locked);
	} else if (op->kind == RVERBS_MW_REG_MR) {
		qp->send_done.reg_mrs += is_well;
		return is_well;
	} else if (op->kind == RVERBS_MW_UMR) {
		qp->send_done.umrs += is_well;
		return is_well;
	} else {
		mw_end_1(op, is_well);
	}
	return false;
}

/*
 * Remove the notes of requests before `end`, up to the note at prod; return the number of
 * successful REG_MRs and UMRs. The device reports both with one opcode.
 */
static uint32_t
mw_end_all(struct rverbs_qp *qp, uint32_t prod, uint32_t end, struct rmem_wc *wc)
{
	struct rverbs_mw_ops *ops = &qp->mw_ops;
	struct rverbs_mw_op *op;
	uint32_t cons, nb = 0;
	bool is_last;
	int locked = -1;

	for (cons = ops->cons; cons != prod; cons++) {
		op = &ops->ops[cons & ops->mask];
		if ((int32_t)(op->pos - end) >= 0)
			break;
		is_last = op->pos == end - 1;
		/* The status depends on the kernel; with 7.2 it is flushed. */
		if (is_last && op->kind == RVERBS_MW_BAD &&
				(wc->status != RMEM_WC_WR_FLUSH_ERR || !rverbs_qp_has_failed(qp)))
			wc->status = RMEM_WC_MW_BIND_ERR;
		if (is_last && op->kind == RVERBS_MW_REG_MR && wc->status == RMEM_WC_SUCCESS)
			wc->opcode = RMEM_WC_REG_MR;
		nb += mw_end(qp, op, is_last ? wc->status : RMEM_WC_SUCCESS, &locked);
	}
	rverbs_mwq_unlock_last(locked);
	__atomic_store_n(&ops->cons, cons, __ATOMIC_RELEASE);
	return nb;
}

/* Under the lock of the send CQ. */
void
rverbs_mw_done(struct rverbs_qp *qp, uint32_t end, struct rmem_wc *wc)
{
	uint32_t prod = __atomic_load_n(&qp->mw_ops.prod, __ATOMIC_ACQUIRE), nb_mkeys = 0;

	if (prod != qp->mw_ops.cons)
		nb_mkeys = mw_end_all(qp, prod, end, wc);
	mw_count_done(qp, end, wc->status == RMEM_WC_SUCCESS, nb_mkeys);
}

void
rverbs_mw_forget(struct rverbs_qp *qp)
{
	struct rverbs_cq *cq = rverbs_cq_of(qp->qp.send_cq);
	struct rverbs_mw_ops *ops = &qp->mw_ops;
	int locked = -1;

	if (cq == NULL) /* XRC_RECV: it has no requests */
		return;
	rte_ticketlock_lock(&cq->lock);
	while (ops->cons != __atomic_load_n(&ops->prod, __ATOMIC_ACQUIRE)) {
		(void)mw_end(qp, &ops->ops[ops->cons & ops->mask], RMEM_WC_WR_FLUSH_ERR, &locked);
		__atomic_store_n(&ops->cons, ops->cons + 1, __ATOMIC_RELEASE);
	}
	rverbs_mwq_unlock_last(locked);
	rte_ticketlock_unlock(&cq->lock);
}
