/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Memory windows as objects, and the binding of type 1 windows; see rverbs_mw.h. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "rverbs_mw.h"

static inline void
rverbs_mw_let_go(struct rmem_mr *mr)
{
	if (mr != NULL)
		rmem_obj_unhold(&mr->obj);
}

static inline void
rverbs_mw_set_handle(struct rverbs_mw *mw, uint32_t key)
{
	__atomic_store_n(&mw->mw.rkey, key, __ATOMIC_RELAXED);
}

/* At the start of a window at the device. With the lock held. */
static void
rverbs_mw_start(struct rverbs_mw *mw)
{
	mw->key = mw->key_in_force = mw->ibv->rkey;
	mw->life++;
	mw->maybe = NULL;
	mw->is_made = false;
	mw->state = mw->mw.type == RMEM_MW_TYPE_2 ? RVERBS_MW_FREE : RVERBS_MW_BOUND;
	rverbs_mw_set_handle(mw, mw->key);
}

/* One at the device for a handle that has none, into the table. */
static int
rverbs_mw_make(struct rverbs_mw *mw)
{
	struct ibv_pd *pd = rverbs_pd_of(mw->mw.pd)->ibv;
	uint16_t dev_id = mw->mw.obj.dev_id;
	struct ibv_mw *ibv;
	int rc;

	ibv = ibv_alloc_mw(pd, mw->mw.type == RMEM_MW_TYPE_1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
	rc = rverbs_err_null(ibv, "ibv_alloc_mw");
	if (rc != 0)
		return rc;
	rverbs_mw_lock(dev_id);
	mw->ibv = ibv;
	rc = rverbs_mw_insert(mw);
	if (rc == 0)
		rverbs_mw_start(mw);
	else
		mw->ibv = NULL;
	rverbs_mw_unlock(dev_id);
	if (rc != 0) {
		RVERBS_LOG(ERR, "no memory for a place of a window");
		(void)rverbs_err_code(ibv_dealloc_mw(ibv), RVERBS_ERR_RELEASE, "ibv_dealloc_mw");
	}
	return rc;
}

/* The other way round: on success the handle has none, and lets go of its MR. */
static int
rverbs_mw_unmake(struct rverbs_mw *mw)
{
	uint16_t dev_id = mw->mw.obj.dev_id;
	struct rmem_mr *mr;
	int rc;

	/* First out of the table: the device may give the index out again. */
	rverbs_mw_lock(dev_id);
	rverbs_mw_remove(mw);
	rverbs_mw_unlock(dev_id);
	rc = rverbs_err_code(ibv_dealloc_mw(mw->ibv), RVERBS_ERR_RELEASE, "ibv_dealloc_mw");
	rverbs_mw_lock(dev_id);
	if (rc == 0) {
		mr = mw->mr;
		mw->mr = NULL;
		mw->ibv = NULL;
		rverbs_mw_let_go(mr);
	} else {
		(void)rverbs_mw_insert(mw); /* its place is there */
	}
	rverbs_mw_unlock(dev_id);
	return rc;
}

int
rverbs_mw_alloc(struct rmem_mw *base)
{
	struct rverbs_mw *mw = rverbs_mw_of(base);
	int rc = 0;

	mw->state = RVERBS_MW_GONE;
	if (base->type == RMEM_MW_TYPE_1)
		rc = rverbs_pd_park(base->pd);
	return rc == 0 ? rverbs_mw_make(mw) : rc;
}

int
rverbs_mw_dealloc(struct rmem_mw *base)
{
	struct rverbs_mw *mw = rverbs_mw_of(base);
	uint8_t state;
	uint32_t busy;
	int rc = 0;

	rverbs_mw_lock(base->obj.dev_id);
	state = mw->state;
	busy = mw->busy;
	if (busy == 0)
		mw->state = RVERBS_MW_RENEWED;
	rverbs_mw_unlock(base->obj.dev_id);
	if (busy != 0) {
		RVERBS_LOG(ERR,
				"MW of rkey 0x%08x: %u requests that bind or invalidate it have "
				"not completed",
				base->rkey, busy);
		return -EBUSY;
	}
	if (mw->ibv != NULL)
		rc = rverbs_mw_unmake(mw);
	if (rc != 0) {
		rverbs_mw_lock(base->obj.dev_id);
		mw->state = state;
		rverbs_mw_unlock(base->obj.dev_id);
	}
	return rc;
}

int
rverbs_mw_renew(struct rverbs_mw *mw)
{
	uint16_t dev_id = mw->mw.obj.dev_id;
	bool is_unmade = mw->ibv == NULL;
	int rc = 0;

	if (!is_unmade) {
		rc = rverbs_mw_unmake(mw);
		is_unmade = rc == 0;
	}
	if (is_unmade)
		rc = rverbs_mw_make(mw);
	rverbs_mw_lock(dev_id);
	if (rc != 0)
		mw->state = is_unmade ? RVERBS_MW_GONE : RVERBS_MW_UNKNOWN;
	mw->busy--;
	rverbs_mw_unlock(dev_id);
	return rc;
}

/* Either of a QP, or by the MR. With the lock held. */
static bool
rverbs_mw_is_to_settle(
		const struct rverbs_mw *mw, const struct rverbs_qp *qp, const struct rmem_mr *mr)
{
	if (mw->state != RVERBS_MW_UNKNOWN)
		return false;
	if (qp != NULL)
		return mw->mw.type == RMEM_MW_TYPE_2 && mw->qp == qp;
	return mw->busy == 0 && (mw->mw.type == RMEM_MW_TYPE_2 || mw->maybe == mr);
}

static int
rverbs_mw_settle(uint16_t dev_id, const struct rverbs_qp *qp, const struct rmem_mr *mr)
{
	struct rverbs_mw *mw;
	int rc = 0;

	while (rc == 0) {
		rverbs_mw_lock(dev_id);
		mw = rverbs_mw_first(dev_id);
		while (mw != NULL && !rverbs_mw_is_to_settle(mw, qp, mr))
			mw = TAILQ_NEXT(mw, next);
		if (mw != NULL) {
			mw->state = RVERBS_MW_RENEWED;
			mw->busy++;
		}
		rverbs_mw_unlock(dev_id);
		if (mw == NULL)
			break;
		rc = rverbs_mw_renew(mw);
	}
	return rc == 0 ? 0 : -EIO; /* of calls that make nothing */
}

int
rverbs_mw_settle_qp(struct rverbs_qp *qp)
{
	return rverbs_mw_settle(qp->qp.obj.dev_id, qp, NULL);
}

int
rverbs_mw_settle_mr(const struct rmem_mr *mr)
{
	return rverbs_mw_settle(mr->obj.dev_id, NULL, mr);
}

bool
rverbs_mw_is_bound_on(const struct rverbs_qp *qp)
{
	uint16_t dev_id = qp->qp.obj.dev_id;
	const struct rverbs_mw *mw;

	rverbs_mw_lock(dev_id);
	for (mw = rverbs_mw_first(dev_id); mw != NULL; mw = TAILQ_NEXT(mw, next)) {
		if (mw->mw.type == RMEM_MW_TYPE_2 && mw->qp == qp && mw->is_made &&
				(mw->state == RVERBS_MW_BOUND || mw->state == RVERBS_MW_TAKEN))
			break;
	}
	rverbs_mw_unlock(dev_id);
	return mw != NULL;
}

/* Have the device bind, with the lock held; all is as it was when it refuses. */
static int
rverbs_mw_call(struct rverbs_qp *qp, struct rverbs_mw *mw, const struct rmem_mw_bind *bind,
		struct rmem_mr *mr)
{
	struct ibv_mr *park = rverbs_pd_of(mw->mw.pd)->park;
	uint32_t prod = qp->sq.prod;
	struct rverbs_mw_op *op = rverbs_mw_ops_next(qp, prod);
	struct rverbs_wqe *wqe = &qp->sq.wqe[prod & qp->sq.mask];
	struct ibv_mw_bind ibv;
	int rc;

	memset(&ibv, 0, sizeof(ibv));
	ibv.wr_id = qp->id | (uint16_t)prod;
	ibv.send_flags = bind->flags;
	/* Never without an MR, which rdma_rxe's provider reads: length 0 takes one of ours. */
	ibv.bind_info.mr = mr != NULL ? rverbs_mr_of(mr)->ibv : park;
	ibv.bind_info.addr = mr != NULL ? bind->bind_info.addr : (uintptr_t)park->addr;
	ibv.bind_info.length = bind->bind_info.length;
	ibv.bind_info.mw_access_flags = mr != NULL ? bind->bind_info.access : 0;
	wqe->wr_id = bind->wr_id;
	wqe->bytes = 0;
	op->kind = rverbs_qp_has_failed(qp) ? RVERBS_MW_DEAD : RVERBS_MW_BIND_1;
	op->mw = mw;
	op->mr = mr;
	op->life = mw->life;
	mw->busy++;
	rverbs_mw_ops_push(qp);
	__atomic_store_n(&qp->sq.prod, prod + 1, __ATOMIC_RELEASE);
	rc = ibv_bind_mw(qp->ibv, mw->ibv, &ibv);
	if (rc != 0) {
		__atomic_store_n(&qp->sq.prod, prod, __ATOMIC_RELEASE);
		__atomic_store_n(&qp->mw_ops.prod, qp->mw_ops.prod - 1, __ATOMIC_RELEASE);
		mw->busy--;
		mw->ibv->rkey = mw->key;
		return rverbs_err_post(rc == -1 ? errno : rc);
	}
	op->key = mw->ibv->rkey;
	rverbs_mw_set_handle(mw, op->key);
	if (op->kind == RVERBS_MW_BIND_1)
		mw->key = op->key;
	else
		mw->ibv->rkey = mw->key; /* it will be flushed */
	return 0;
}

/* What was flushed may have been executed: start anew. */
static int
rverbs_mw_ready(struct rverbs_mw *mw)
{
	uint16_t dev_id = mw->mw.obj.dev_id;
	uint8_t state;

	rverbs_mw_lock(dev_id);
	state = mw->state;
	if (state == RVERBS_MW_UNKNOWN || state == RVERBS_MW_GONE) {
		mw->state = RVERBS_MW_RENEWED;
		mw->busy++;
	}
	rverbs_mw_unlock(dev_id);
	if (state == RVERBS_MW_RENEWED) /* by another thread */
		return -EBUSY;
	return state == RVERBS_MW_BOUND ? 0 : rverbs_mw_renew(mw);
}

/*
 * The lock is held over the call: it makes the key, which a completion that another thread polls
 * meanwhile needs.
 */
int
rverbs_mw_bind(struct rmem_qp *base, struct rmem_mw *base_mw, const struct rmem_mw_bind *bind)
{
	struct rverbs_qp *qp = rverbs_qp_of(base);
	struct rverbs_mw *mw = rverbs_mw_of(base_mw);
	struct rmem_mr *mr = bind->bind_info.length != 0 ? bind->bind_info.mr : NULL;
	int rc;

	rc = rverbs_qp_check_gate(qp);
	if (rc == 0 && rverbs_room(&qp->sq, 1) == 0)
		rc = -ENOSPC;
	if (rc != 0)
		return rc;
	if (mr != NULL && !rmem_obj_hold(&mr->obj))
		return -EINVAL;
	if (mr != NULL && __atomic_load_n(&mr->state, __ATOMIC_ACQUIRE) != RMEM_MR_STATE_VALID)
		rc = -EBUSY;
	if (rc == 0)
		rc = rverbs_mw_ready(mw);
	if (rc == 0) {
		rverbs_mw_lock(base_mw->obj.dev_id);
		rc = rverbs_mw_call(qp, mw, bind, mr);
		rverbs_mw_unlock(base_mw->obj.dev_id);
	}
	if (rc != 0)
		rverbs_mw_let_go(mr);
	return rc;
}
