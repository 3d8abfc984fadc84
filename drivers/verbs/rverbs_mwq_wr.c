/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The quirk of windows: requests from the post to the completion; see rverbs_mwq.h. */

#include "rverbs_mwq.h"

/* No window has this key, so the device refuses a request with it, without another effect. */
#define RVERBS_MWQ_NO_KEY 0

/* Release the MR that a window is bound to. With the lock held. */
static void
mwq_release(struct rverbs_mw *mw)
{
	if (mw->mr != NULL)
		rmem_obj_unhold(&mw->mr->obj);
	mw->mr = NULL;
}

/* Set the state to UNKNOWN. A bind in flight needs its MR until it ends. */
static void
mwq_set_unknown(struct rverbs_mw *mw, bool is_binding)
{
	if (!is_binding)
		mwq_release(mw);
	mw->state = RVERBS_MWQ_UNKNOWN;
}

static void
mwq_free(struct rverbs_mw *mw)
{
	mwq_release(mw);
	mw->state = RVERBS_MWQ_FREE;
}

/* Find the window that a request of the QP may invalidate; with the lock held. */
static struct rverbs_mw *
mwq_find_bound(uint16_t dev_id, uint32_t key, uint32_t qp_num)
{
	struct rverbs_mw *mw = rverbs_mwq_find(dev_id, key);

	if (mw == NULL || mw->state != RVERBS_MWQ_BOUND || mw->key != key ||
			mw->qp->qp.qp_num != qp_num)
		return NULL;
	return mw;
}

/*
 * rdma_rxe dereferences NULL if the window is not bound (6.1 and 7.2), and accepts a window of any
 * QP. So invalidations of windows that are not bound on this QP are not passed on.
 */
static void
mwq_accept_inv(struct rverbs_qp *qp, uint32_t key, struct rverbs_mw_op *op, int *locked)
{
	uint16_t dev_id = qp->qp.obj.dev_id;
	struct rverbs_mw *mw;

	op->kind = RVERBS_MW_BAD;
	op->key = RVERBS_MWQ_NO_KEY;
	rverbs_mwq_lock_next(locked, dev_id);
	mw = mwq_find_bound(dev_id, key, qp->qp.qp_num);
	if (mw != NULL) {
		op->kind = RVERBS_MW_INV;
		op->key = key;
		op->mw = mw;
		op->life = mw->life;
		op->mr = mw->mr;
		mw->mr = NULL;
		mw->state = RVERBS_MWQ_FREE;
		mw->busy++;
	}
}

/*
 * The same for the peer, whose kernel would crash. Its binds are known if the peer is in this
 * process. A bind that has not completed may not have been executed yet; the window then still has
 * its previous key, which must differ.
 */
static void
mwq_accept_send_inv(struct rverbs_qp *qp, uint32_t key, struct rverbs_mw_op *op, int *locked)
{
	struct rverbs_mw *mw;

	op->kind = RVERBS_MW_PASS;
	op->key = key;
	if (qp->peer_dev_id < 0)
		return;
	rverbs_mwq_lock_next(locked, (uint16_t)qp->peer_dev_id);
	mw = mwq_find_bound((uint16_t)qp->peer_dev_id, key, qp->remote.qp_num);
	if (mw != NULL && (mw->is_made || mw->is_fresh)) {
		op->kind = RVERBS_MW_SEND_INV;
		op->mw = mw;
		op->life = mw->life;
		mw->state = RVERBS_MWQ_TAKEN;
		mw->busy++;
	} else {
		op->key = RVERBS_MWQ_NO_KEY;
	}
}

/* Check whether the bind may be posted; on success the MR is held. */
static bool
mwq_take_mr(const struct rverbs_qp *qp, const struct rmem_send_wr *wr)
{
	const struct rmem_mw_bind_info info = {
			.mr = wr->bind_mw.mr,
			.addr = wr->bind_mw.addr,
			.length = wr->bind_mw.length,
			.access = wr->bind_mw.access,
	};

	if (!rmem_obj_hold(&info.mr->obj))
		return false;
	if (rmem_mw_check_bind(&qp->qp, wr->bind_mw.mw, &info) == 0)
		return true;
	rmem_obj_unhold(&info.mr->obj);
	return false;
}

/*
 * Allocate an UNKNOWN window without requests in flight again. The lock is held before and after,
 * but not during the call.
 */
static void
mwq_find_unknown(struct rverbs_mw *mw)
{
	if (mw->busy != 0 || (mw->state != RVERBS_MWQ_UNKNOWN && mw->state != RVERBS_MWQ_GONE))
		return;
	mw->state = RVERBS_MWQ_RENEWED;
	mw->busy++;
	rverbs_mwq_unlock(mw->mw.obj.dev_id);
	(void)rverbs_mwq_renew(mw);
	rverbs_mwq_lock(mw->mw.obj.dev_id);
}

/*
 * Whether requests of another QP for the window are in flight. Requests of two QPs execute in any
 * order: the device would refuse this bind if it executed first, and the next request here might
 * invalidate, with the same key, the bind that the LOCAL_INV of the other QP expects. busy does not
 * count this request.
 */
static inline bool
mwq_is_on_other_qp(const struct rverbs_mw *mw, const struct rverbs_qp *qp)
{
	return mw->busy != 0 && mw->qp != NULL && mw->qp != qp;
}

static void
mwq_accept_bind(struct rverbs_qp *qp, const struct rmem_send_wr *wr, struct rverbs_mw_op *op,
		int *locked)
{
	struct rverbs_mw *mw = rverbs_mw_of(wr->bind_mw.mw);
	bool has_mr = mwq_take_mr(qp, wr);
	uint32_t handle;

	op->kind = RVERBS_MW_BAD;
	op->key = RVERBS_MWQ_NO_KEY;
	rverbs_mwq_lock_next(locked, mw->mw.obj.dev_id);
	if (unlikely(has_mr && mw->state != RVERBS_MWQ_FREE))
		mwq_find_unknown(mw);
	handle = mw->mw.rkey;
	op->old_handle = handle;
	/* The handle gets the key of the last posted bind, even if the bind is refused. */
	rverbs_mw_set_handle(mw, rmem_rkey_of_tag(handle, wr->bind_mw.key_tag));
	op->mw = mw;
	if (has_mr && mw->state == RVERBS_MWQ_FREE && likely(!mwq_is_on_other_qp(mw, qp))) {
		op->kind = RVERBS_MW_BIND;
		op->key = rmem_rkey_of_tag(mw->key, wr->bind_mw.key_tag);
		op->old_key = mw->key;
		op->life = ++mw->life;
		mw->is_fresh = mw->busy == 0 && op->key != mw->key;
		mw->is_made = false;
		mw->key = op->key;
		mw->qp = qp;
		mw->mr = wr->bind_mw.mr;
		mw->state = RVERBS_MWQ_BOUND;
		has_mr = false;
	}
	mw->busy++;
	if (unlikely(has_mr))
		rmem_obj_unhold(&wr->bind_mw.mr->obj);
}

/* The QP has failed and flushes posted requests: no state changes. */
static void
mwq_accept_dead(const struct rmem_send_wr *wr, struct rverbs_mw_op *op, int *locked)
{
	struct rmem_mw *mw = wr->bind_mw.mw;

	op->kind = RVERBS_MW_DEAD;
	op->key = RVERBS_MWQ_NO_KEY;
	if (wr->opcode != RMEM_WR_BIND_MW)
		return;
	rverbs_mwq_lock_next(locked, mw->obj.dev_id);
	op->old_handle = mw->rkey;
	op->mw = rverbs_mw_of(mw);
	op->mw->busy++;
	rverbs_mw_set_handle(op->mw, rmem_rkey_of_tag(mw->rkey, wr->bind_mw.key_tag));
}

struct rverbs_mw_op *
rverbs_mwq_accept(struct rverbs_qp *qp, const struct rmem_send_wr *wr, uint32_t pos, int *locked)
{
	struct rverbs_mw_op *op = rverbs_mw_ops_next(qp, pos);

	op->mr = NULL;
	if (unlikely(rverbs_qp_has_failed(qp)))
		mwq_accept_dead(wr, op, locked);
	else if (wr->opcode == RMEM_WR_LOCAL_INV)
		mwq_accept_inv(qp, wr->invalidate_rkey, op, locked);
	else if (wr->opcode == RMEM_WR_SEND_WITH_INV)
		mwq_accept_send_inv(qp, wr->invalidate_rkey, op, locked);
	else
		mwq_accept_bind(qp, wr, op, locked);
	rverbs_mw_ops_push(qp);
	return op;
}

void
rverbs_mwq_sent(struct rverbs_mw *mw, uint32_t key, bool is_taken)
{
	rverbs_mwq_lock(mw->mw.obj.dev_id);
	if (is_taken)
		mw->ibv->rkey = key;
	mw->busy--;
	rverbs_mwq_unlock(mw->mw.obj.dev_id);
}

/* Undo a request; called in reverse order of the posts. */
static void
mwq_undo_one(struct rverbs_mw_op *op)
{
	struct rverbs_mw *mw = op->mw;
	bool is_same;

	rverbs_mwq_lock(mw->mw.obj.dev_id);
	is_same = mw->life == op->life;
	mw->busy--;
	switch (op->kind) {
	case RVERBS_MW_BIND:
		rverbs_mw_set_handle(mw, op->old_handle);
		if (!is_same) /* bound by another QP since; the device will refuse that */
			break;
		mw->ibv->rkey = mw->key = op->old_key;
		/* Other requests with this life must not match it again. */
		mw->life += mw->state == RVERBS_MWQ_TAKEN ? 1 : UINT32_MAX;
		mwq_free(mw);
		break;
	case RVERBS_MW_INV:
		if (is_same && mw->state == RVERBS_MWQ_FREE) {
			mw->state = RVERBS_MWQ_BOUND;
			mw->mr = op->mr;
		} else {
			rmem_obj_unhold(&op->mr->obj);
		}
		break;
	case RVERBS_MW_SEND_INV:
		if (is_same && mw->state == RVERBS_MWQ_TAKEN)
			mw->state = RVERBS_MWQ_BOUND;
		break;
	default: /* BAD, DEAD: bindings */
		rverbs_mw_set_handle(mw, op->old_handle);
		break;
	}
	rverbs_mwq_unlock(mw->mw.obj.dev_id);
}

void
rverbs_mwq_undo(struct rverbs_qp *qp, uint32_t pos)
{
	struct rverbs_mw_ops *ops = &qp->mw_ops;
	struct rverbs_mw_op *op;

	while (ops->prod != __atomic_load_n(&ops->cons, __ATOMIC_ACQUIRE)) {
		op = &ops->ops[(ops->prod - 1) & ops->mask];
		if ((int32_t)(op->pos - pos) < 0)
			break;
		if (op->mw != NULL)
			mwq_undo_one(op);
		__atomic_store_n(&ops->prod, ops->prod - 1, __ATOMIC_RELEASE);
	}
}

static void
mwq_end_bind_1(struct rverbs_mw *mw, struct rverbs_mw_op *op, bool is_well)
{
	if (is_well && mw->life == op->life) {
		mwq_release(mw);
		mw->mr = op->mr;
		mw->key_in_force = op->key;
		return;
	}
	if (op->mr != NULL)
		rmem_obj_unhold(&op->mr->obj);
	if (mw->life != op->life)
		return;
	/* The previous bind is in effect, as far as is known. */
	rverbs_mw_set_handle(mw, mw->key_in_force);
	if (op->kind == RVERBS_MW_BIND_1) {
		mw->possible_mr = op->mr;
		mw->state = RVERBS_MWQ_UNKNOWN;
	}
}

static void
mwq_end_send_inv(struct rverbs_mw *mw, uint8_t status)
{
	if (mw->state != RVERBS_MWQ_TAKEN)
		return; /* already handled for the receive */
	if (status == RMEM_WC_SUCCESS)
		mwq_free(mw);
	else if (status == RMEM_WC_RNR_RETRY_EXC_ERR) /* the peer had no receive */
		mw->state = RVERBS_MWQ_BOUND;
	else
		mwq_set_unknown(mw, !mw->is_made);
}

void
rverbs_mwq_end(struct rverbs_mw_op *op, uint8_t status, int *locked)
{
	struct rverbs_mw *mw = op->mw;
	bool is_well = status == RMEM_WC_SUCCESS;
	bool is_same;

	if (mw == NULL)
		return;
	rverbs_mwq_lock_next(locked, mw->mw.obj.dev_id);
	is_same = mw->life == op->life;
	mw->busy--;
	switch (op->kind) {
	case RVERBS_MW_BIND:
		if (is_same && is_well && mw->state != RVERBS_MWQ_UNKNOWN)
			mw->is_made = true;
		else if (is_same)
			mwq_set_unknown(mw, false);
		break;
	case RVERBS_MW_INV:
		rmem_obj_unhold(&op->mr->obj);
		if (is_same && !is_well)
			mwq_set_unknown(mw, false);
		break;
	case RVERBS_MW_SEND_INV:
		if (is_same)
			mwq_end_send_inv(mw, status);
		break;
	default:
		if (mw->mw.type == RMEM_MW_TYPE_1)
			mwq_end_bind_1(mw, op, is_well);
		break;
	}
}

void
rverbs_mwq_invalidated(struct rverbs_qp *qp, uint32_t key)
{
	uint16_t dev_id = qp->qp.obj.dev_id;
	struct rverbs_mw *mw;

	rverbs_mwq_lock(dev_id);
	mw = rverbs_mwq_find(dev_id, key);
	if (mw != NULL && mw->key == key &&
			(mw->state == RVERBS_MWQ_BOUND || mw->state == RVERBS_MWQ_TAKEN))
		mwq_free(mw);
	rverbs_mwq_unlock(dev_id);
}
