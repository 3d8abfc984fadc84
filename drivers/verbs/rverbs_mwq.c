/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The quirk of windows: allocation, release, and type 1 binds; see rverbs_mwq.h. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "rverbs_mwq.h"

static inline void
mwq_put_mr(struct rmem_mr *mr)
{
	if (mr != NULL)
		rmem_obj_unhold(&mr->obj);
}

/* Initialize the state of a window allocated by the device. With the lock held. */
static void
mwq_start(struct rverbs_mw *mw)
{
	mw->key = mw->key_in_force = mw->ibv->rkey;
	mw->life++;
	mw->possible_mr = NULL;
	mw->is_made = false;
	mw->state = mw->mw.type == RMEM_MW_TYPE_2 ? RVERBS_MWQ_FREE : RVERBS_MWQ_BOUND;
	rverbs_mw_set_handle(mw, mw->key);
}

/* Allocate a window of the device for a handle without one, and add it to the table. */
static int
mwq_make(struct rverbs_mw *mw)
{
	struct ibv_pd *pd = rverbs_pd_of(mw->mw.pd)->ibv;
	uint16_t dev_id = mw->mw.obj.dev_id;
	struct ibv_mw *ibv;
	int ret;

	ibv = ibv_alloc_mw(pd, mw->mw.type == RMEM_MW_TYPE_1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
	ret = rverbs_err_null(ibv, "ibv_alloc_mw");
	if (ret != 0)
		return ret;
	rverbs_mwq_lock(dev_id);
	mw->ibv = ibv;
	ret = rverbs_mwq_insert(mw);
	if (ret == 0)
		mwq_start(mw);
	else
		mw->ibv = NULL;
	rverbs_mwq_unlock(dev_id);
	if (ret != 0) {
		RVERBS_LOG(ERR, "MW: no memory");
		(void)rverbs_err_code(ibv_dealloc_mw(ibv), RVERBS_ERR_RELEASE, "ibv_dealloc_mw");
	}
	return ret;
}

/* Free the window of the device, and release its MR; on failure nothing changes. */
static int
mwq_unmake(struct rverbs_mw *mw)
{
	uint16_t dev_id = mw->mw.obj.dev_id;
	struct rmem_mr *mr;
	int ret;

	/* Remove it from the table first, because the device may reuse the index. */
	rverbs_mwq_lock(dev_id);
	rverbs_mwq_remove(mw);
	rverbs_mwq_unlock(dev_id);
	ret = rverbs_err_code(ibv_dealloc_mw(mw->ibv), RVERBS_ERR_RELEASE, "ibv_dealloc_mw");
	rverbs_mwq_lock(dev_id);
	if (ret == 0) {
		mr = mw->mr;
		mw->mr = NULL;
		mw->ibv = NULL;
		mwq_put_mr(mr);
	} else {
		(void)rverbs_mwq_insert(mw); /* cannot fail: the page of the table exists */
	}
	rverbs_mwq_unlock(dev_id);
	return ret;
}

int
rverbs_mwq_alloc(struct rverbs_mw *mw)
{
	int ret = 0;

	mw->state = RVERBS_MWQ_GONE;
	if (mw->mw.type == RMEM_MW_TYPE_1)
		ret = rverbs_pd_park(mw->mw.pd);
	return ret == 0 ? mwq_make(mw) : ret;
}

int
rverbs_mwq_dealloc(struct rverbs_mw *mw)
{
	uint16_t dev_id = mw->mw.obj.dev_id;
	uint8_t state;
	uint32_t busy;
	int ret = 0;

	rverbs_mwq_lock(dev_id);
	state = mw->state;
	busy = mw->busy;
	if (busy == 0)
		mw->state = RVERBS_MWQ_RENEWED;
	rverbs_mwq_unlock(dev_id);
	if (busy != 0)
		return rverbs_mw_check_busy(mw, busy);
	if (mw->ibv != NULL)
		ret = mwq_unmake(mw);
	if (ret != 0) {
		rverbs_mwq_lock(dev_id);
		mw->state = state;
		rverbs_mwq_unlock(dev_id);
	}
	return ret;
}

int
rverbs_mwq_renew(struct rverbs_mw *mw)
{
	uint16_t dev_id = mw->mw.obj.dev_id;
	bool is_unmade = mw->ibv == NULL;
	int ret = 0;

	if (!is_unmade) {
		ret = mwq_unmake(mw);
		is_unmade = ret == 0;
	}
	if (is_unmade)
		ret = mwq_make(mw);
	rverbs_mwq_lock(dev_id);
	if (ret != 0)
		mw->state = is_unmade ? RVERBS_MWQ_GONE : RVERBS_MWQ_UNKNOWN;
	mw->busy--;
	rverbs_mwq_unlock(dev_id);
	return ret;
}

/* Whether a window is UNKNOWN and belongs to the QP, or the MR. With the lock held. */
static bool
mwq_must_renew(const struct rverbs_mw *mw, const struct rverbs_qp *qp, const struct rmem_mr *mr)
{
	if (mw->state != RVERBS_MWQ_UNKNOWN)
		return false;
	if (qp != NULL)
		return mw->mw.type == RMEM_MW_TYPE_2 && mw->qp == qp;
	return mw->busy == 0 && (mw->mw.type == RMEM_MW_TYPE_2 || mw->possible_mr == mr);
}

static int
mwq_renew_all(uint16_t dev_id, const struct rverbs_qp *qp, const struct rmem_mr *mr)
{
	struct rverbs_mw *mw;
	int ret = 0;

	while (ret == 0) {
		rverbs_mwq_lock(dev_id);
		mw = rverbs_mwq_first(dev_id);
		while (mw != NULL && !mwq_must_renew(mw, qp, mr))
			mw = TAILQ_NEXT(mw, next);
		if (mw != NULL) {
			mw->state = RVERBS_MWQ_RENEWED;
			mw->busy++;
		}
		rverbs_mwq_unlock(dev_id);
		if (mw == NULL)
			break;
		ret = rverbs_mwq_renew(mw);
	}
	return ret == 0 ? 0 : -EIO; /* errnos for calls that create no object */
}

int
rverbs_mwq_renew_qp(struct rverbs_qp *qp)
{
	return mwq_renew_all(qp->qp.obj.dev_id, qp, NULL);
}

int
rverbs_mwq_renew_mr(const struct rmem_mr *mr)
{
	return mwq_renew_all(mr->obj.dev_id, NULL, mr);
}

bool
rverbs_mwq_is_bound_on(const struct rverbs_qp *qp)
{
	uint16_t dev_id = qp->qp.obj.dev_id;
	const struct rverbs_mw *mw;

	rverbs_mwq_lock(dev_id);
	for (mw = rverbs_mwq_first(dev_id); mw != NULL; mw = TAILQ_NEXT(mw, next)) {
		if (mw->mw.type == RMEM_MW_TYPE_2 && mw->qp == qp && mw->is_made &&
				(mw->state == RVERBS_MWQ_BOUND || mw->state == RVERBS_MWQ_TAKEN))
			break;
	}
	rverbs_mwq_unlock(dev_id);
	return mw != NULL;
}

/* Prepare a window for a bind: a flushed request may have been executed, so allocate it again. */
static int
mwq_ready(struct rverbs_mw *mw)
{
	uint16_t dev_id = mw->mw.obj.dev_id;
	uint8_t state;

	rverbs_mwq_lock(dev_id);
	state = mw->state;
	if (state == RVERBS_MWQ_UNKNOWN || state == RVERBS_MWQ_GONE) {
		mw->state = RVERBS_MWQ_RENEWED;
		mw->busy++;
	}
	rverbs_mwq_unlock(dev_id);
	if (state == RVERBS_MWQ_RENEWED) /* another thread does so */
		return -EBUSY;
	return state == RVERBS_MWQ_BOUND ? 0 : rverbs_mwq_renew(mw);
}

int
rverbs_mwq_bind_begin(struct rverbs_qp *qp, struct rverbs_mw *mw, struct rmem_mr *mr,
		struct rverbs_mw_op *op)
{
	int ret = 0;

	if (mr != NULL && !rmem_obj_hold(&mr->obj))
		return -EINVAL;
	if (mr != NULL && rmem_mr_state(mr) != RMEM_MR_STATE_VALID)
		ret = -EBUSY;
	if (ret == 0)
		ret = mwq_ready(mw);
	if (ret != 0) {
		mwq_put_mr(mr);
		return ret;
	}
	rverbs_mwq_lock(mw->mw.obj.dev_id);
	op->kind = rverbs_qp_has_failed(qp) ? RVERBS_MW_DEAD : RVERBS_MW_BIND_1;
	op->mr = mr;
	op->life = mw->life;
	return 0;
}

void
rverbs_mwq_bind_end(struct rverbs_mw_op *op, int ret)
{
	struct rverbs_mw *mw = op->mw;
	struct rmem_mr *mr = op->mr;

	if (ret == 0 && op->kind == RVERBS_MW_BIND_1)
		mw->key = op->key;
	else if (ret == 0)
		mw->ibv->rkey = mw->key; /* the request will be flushed */
	rverbs_mwq_unlock(mw->mw.obj.dev_id);
	if (ret != 0)
		mwq_put_mr(mr);
}
