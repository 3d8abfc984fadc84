/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Memory windows; see rsoft_mw.h. */

#include <errno.h>

#include "rsoft_grace.h"
#include "rsoft_key_table.h"
#include "rsoft_mr.h"
#include "rsoft_mw.h"

int
rsoft_mw_alloc(struct rmem_mw *base)
{
	struct rsoft_dev *dev = rsoft_dev_of(&base->obj);
	struct rsoft_mw *mw = rsoft_mw_of(base);

	mw->key = rsoft_key_alloc(dev, NULL);
	if (mw->key == NULL) {
		RSOFT_LOG(ERR, "MW: all entries are in use (max_mw=%" PRIu64 ")", dev->args.max_mw);
		return -ENOSPC;
	}
	mw->key->pd = base->pd->handle;
	base->rkey = rsoft_word_rkey(mw->key->word);
	return 0;
}

int
rsoft_mw_dealloc(struct rmem_mw *base)
{
	struct rsoft_dev *dev = rsoft_dev_of(&base->obj);
	struct rsoft_key *key = rsoft_mw_of(base)->key;
	uint64_t word = __atomic_load_n(&key->word, __ATOMIC_RELAXED);

	do {
		if (rsoft_word_rights(word) & RSOFT_BUSY) {
			RSOFT_LOG(ERR, "MW of rkey 0x%08x: in use: a request that binds or invalidates it has not completed",
					rsoft_word_rkey(word));
			return -EBUSY;
		}
	} while (!__atomic_compare_exchange_n(&key->word, &word,
			rsoft_key_word(rsoft_word_rkey(word), RSOFT_BUSY), false, __ATOMIC_SEQ_CST,
			__ATOMIC_RELAXED));
	rsoft_grace_wait();
	rsoft_key_release(key);
	rsoft_key_free(dev, key);
	return 0;
}

bool
rsoft_mw_is_bound_by(const struct rsoft_qp *qp)
{
	const struct rsoft_dev *dev = qp->dev;
	uint32_t i;

	if (!__atomic_load_n(&qp->has_bound, __ATOMIC_RELAXED))
		return false;
	for (i = dev->mw_keys.first; i < dev->nb_keys; i++) {
		const struct rsoft_key *key = &dev->keys[i];
		uint64_t word = __atomic_load_n(&key->word, __ATOMIC_ACQUIRE);

		if ((rsoft_word_rights(word) & RSOFT_VALID) && key->qp_serial == qp->serial)
			return true;
	}
	return false;
}

/* Whether the range is in the MR; an implicit MR is longer than the length in its key. */
static bool
mw_is_inside(const struct rsoft_key *key, const struct rmem_mw_bind_info *info)
{
	uint64_t offset = info->addr - key->iova;

	return offset < key->length && info->length <= key->length - offset;
}

/* Check a bind, and take a reference to its MR, if any. */
static bool
mw_take_mr(const struct rsoft_qp *qp, const struct rmem_send_wr *wr)
{
	const struct rmem_mw_bind_info info = {
			.mr = wr->bind_mw.mr,
			.addr = wr->bind_mw.addr,
			.length = wr->bind_mw.length,
			.access = wr->bind_mw.access,
	};
	const struct rsoft_key *key;

	if (unlikely(info.mr == NULL)) /* unbind by rmem_mw_bind() */
		return wr->bind_mw.mw->pd == qp->qp.pd;
	if (unlikely(!rmem_obj_hold(&info.mr->obj)))
		return false;
	if (likely(rmem_mw_check_bind(&qp->qp, wr->bind_mw.mw, &info) == 0)) {
		key = rsoft_mr_of(info.mr)->key;
		if (likely((rsoft_word_rights(__atomic_load_n(&key->word, __ATOMIC_ACQUIRE)) &
					   RSOFT_VALID) &&
				    mw_is_inside(key, &info)))
			return true;
	}
	rmem_obj_unhold(&info.mr->obj);
	return false;
}

uint32_t
rsoft_mw_bind_vendor_err(const struct rsoft_qp *qp, const struct rmem_send_wr *wr)
{
	const struct rmem_mw *mw = wr->bind_mw.mw;
	const struct rmem_mr *mr = wr->bind_mw.mr;
	uint32_t rights = rsoft_word_rights(
			__atomic_load_n(&rsoft_mw_of(wr->bind_mw.mw)->key->word, __ATOMIC_RELAXED));
	uint32_t known = RMEM_ACCESS_REMOTE |
			(mw->type == RMEM_MW_TYPE_2 ? RMEM_ACCESS_ZERO_BASED : 0);
	uint64_t offset;

	if ((rights & RSOFT_BUSY) || (mw->type == RMEM_MW_TYPE_2 && (rights & RSOFT_VALID)))
		return RMEM_VENDOR_ERR_NOT_FREE;
	if (mw->pd != qp->qp.pd || (mr != NULL && mr->pd != mw->pd))
		return RMEM_VENDOR_ERR_KEY_PD;
	if (mr == NULL)
		return RMEM_VENDOR_ERR_NOT_FREE; /* not FREE at the time of the refusal */
	if (mr->type != RMEM_MR_TYPE_USER || (rmem_mr_drv(mr)->flags & RMEM_MR_FD) != 0)
		return RMEM_VENDOR_ERR_MR_TYPE;
	if ((wr->bind_mw.access & ~known) != 0)
		return RMEM_VENDOR_ERR_ACCESS;
	if ((mr->access & RMEM_ACCESS_MW_BIND) == 0 ||
			((mr->access & RMEM_ACCESS_LOCAL_WRITE) == 0 &&
					(wr->bind_mw.access &
							(RMEM_ACCESS_REMOTE_WRITE |
									RMEM_ACCESS_REMOTE_ATOMIC))))
		return RMEM_VENDOR_ERR_KEY_RIGHT;
	if (wr->bind_mw.length == 0)
		return RMEM_VENDOR_ERR_LENGTH;
	offset = wr->bind_mw.addr - mr->iova;
	if (offset >= mr->length || wr->bind_mw.length > mr->length - offset)
		return RMEM_VENDOR_ERR_KEY_RANGE;
	return RMEM_VENDOR_ERR_KEY_STATE; /* the MR is disabled or being released */
}

/* Bind or unbind the key of a window, which is BUSY; the MR, if any, is held. */
static __rte_always_inline void
mw_bind(struct rsoft_qp *qp, const struct rmem_send_wr *wr)
{
	const bool is_two = wr->bind_mw.mw->type == RMEM_MW_TYPE_2;
	struct rsoft_key *key = rsoft_mw_of(wr->bind_mw.mw)->key;
	struct rsoft_mr *mr = rsoft_mr_of(wr->bind_mw.mr), *old = key->mr;
	uint32_t rights = 0, rkey;

	if (unlikely(!qp->has_bound))
		__atomic_store_n(&qp->has_bound, 1, __ATOMIC_RELAXED);
	key->mr = mr;
	if (likely(mr != NULL)) {
		const struct rsoft_key *from = mr->key;
		uint64_t word = __atomic_load_n(&from->word, __ATOMIC_RELAXED);
		uint64_t offset = wr->bind_mw.addr - mr->mr.iova;
		uint8_t kind = from->kind;

		key->iova = wr->bind_mw.access & RMEM_ACCESS_ZERO_BASED ? 0 : wr->bind_mw.addr;
		key->length = wr->bind_mw.length;
		key->kind = kind;
		key->log2_page_size = from->log2_page_size;
		key->pages = from->pages;
		if (kind == RSOFT_KIND_BASE || kind == RSOFT_KIND_ODP)
			key->base = (uint8_t *)((uintptr_t)from->base + offset);
		else
			key->map_offset = from->map_offset + offset;
		key->qp_serial = is_two ? qp->serial : 0;
		rights = RSOFT_VALID | (wr->bind_mw.access & RMEM_ACCESS_REMOTE) |
				(rsoft_word_rights(word) & RSOFT_SLOW) |
				(is_two ? RSOFT_SLOW | RSOFT_INV : 0);
	}
	rkey = rsoft_word_rkey(__atomic_load_n(&key->word, __ATOMIC_RELAXED));
	rsoft_key_bind(qp, key, rkey, wr->bind_mw.key_tag, rights, wr);
	/* The MR of the previous binding, whose grace period is over. */
	if (unlikely(old != NULL))
		rmem_obj_unhold(&old->mr.obj);
	RSOFT_COUNT(qp->stats.mw_binds, 1);
}

void
rsoft_mw_bind_end(struct rsoft_qp *qp, const struct rmem_send_wr *wr)
{
	mw_bind(qp, wr);
}

int
rsoft_mw_bind_start(struct rsoft_qp *qp, const struct rmem_send_wr *wr)
{
	struct rsoft_key *key = rsoft_mw_of(wr->bind_mw.mw)->key;
	uint64_t word = __atomic_load_n(&key->word, __ATOMIC_RELAXED);
	uint32_t rights = rsoft_word_rights(word);
	uint32_t bad = RSOFT_BUSY;

	if (wr->bind_mw.mw->type == RMEM_MW_TYPE_2)
		bad |= RSOFT_VALID; /* IBTA o10-37.2.30: from FREE only */
	if (unlikely((rights & bad) != 0 || !mw_take_mr(qp, wr)))
		return RMEM_WC_MW_BIND_ERR;
	/*
	 * Only one of concurrent binds proceeds; this is also the full fence before the grace
	 * period.
	 */
	if (unlikely(!__atomic_compare_exchange_n(&key->word, &word,
			    rsoft_key_word(rsoft_word_rkey(word), RSOFT_BUSY), false,
			    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))) {
		if (wr->bind_mw.mr != NULL)
			rmem_obj_unhold(&wr->bind_mw.mr->obj);
		return RMEM_WC_MW_BIND_ERR;
	}
	if (rights & RSOFT_VALID)
		return RSOFT_WAIT_GRACE;
	mw_bind(qp, wr);
	return RMEM_WC_SUCCESS;
}

void
rsoft_mw_bind_drop(const struct rmem_send_wr *wr)
{
	if (wr->bind_mw.mr != NULL)
		rmem_obj_unhold(&wr->bind_mw.mr->obj);
	rsoft_key_release(rsoft_mw_of(wr->bind_mw.mw)->key);
}
