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
static __rte_always_inline bool
mw_is_inside(const struct rsoft_key *key, const struct rmem_send_wr *wr)
{
	uint64_t offset = wr->bind_mw.addr - key->iova;

	return offset < key->length && wr->bind_mw.length <= key->length - offset;
}

/* Check a bind to an MR, and take nb references to it. */
static __rte_always_inline bool
mw_hold_mr(const struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint32_t nb)
{
	const struct rmem_mw_bind_info info = {
			.mr = wr->bind_mw.mr,
			.addr = wr->bind_mw.addr,
			.length = wr->bind_mw.length,
			.access = wr->bind_mw.access,
	};
	const struct rsoft_key *key;
	uint32_t *refs = &info.mr->obj.refs;

	if (likely((__atomic_fetch_add(refs, nb, __ATOMIC_ACQUIRE) & RMEM_OBJ_REFS_DEAD) == 0 &&
			    rmem_mw_check_bind(&qp->qp, wr->bind_mw.mw, &info) == 0)) {
		key = rsoft_mr_of(info.mr)->key;
		if (likely((rsoft_word_rights(__atomic_load_n(&key->word, __ATOMIC_ACQUIRE)) &
					   RSOFT_VALID) != 0))
			return true;
	}
	__atomic_fetch_sub(refs, nb, __ATOMIC_RELEASE);
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

/* Copy what a window takes from the key of its MR, which does not change while the MR is held. */
static __rte_always_inline struct rsoft_key
mw_copy_key(const struct rsoft_mr *mr)
{
	return (struct rsoft_key){
			.word = __atomic_load_n(&mr->key->word, __ATOMIC_RELAXED),
			.iova = mr->key->iova,
			.length = mr->key->length,
			.map_offset = mr->key->map_offset,
			.pages = mr->key->pages,
			.kind = mr->key->kind,
			.log2_page_size = mr->key->log2_page_size,
	};
}

/* Fill the BUSY key of a window of an MR by mw_copy_key(); return the rights of either type. */
static __rte_always_inline uint32_t
mw_fill(struct rsoft_key *key, struct rsoft_mr *mr, const struct rsoft_key *from,
		uint64_t qp_serial, const struct rmem_send_wr *wr)
{
	uint64_t offset = wr->bind_mw.addr - mr->mr.iova;
	uint8_t kind = from->kind;

	key->mr = mr;
	key->qp_serial = qp_serial;
	key->iova = wr->bind_mw.access & RMEM_ACCESS_ZERO_BASED ? 0 : wr->bind_mw.addr;
	key->length = wr->bind_mw.length;
	key->kind = kind;
	key->log2_page_size = from->log2_page_size;
	key->pages = from->pages;
	if (kind == RSOFT_KIND_BASE || kind == RSOFT_KIND_ODP)
		key->base = (uint8_t *)((uintptr_t)from->base + offset);
	else
		key->map_offset = from->map_offset + offset;
	return RSOFT_VALID | (wr->bind_mw.access & RMEM_ACCESS_REMOTE) |
			(rsoft_word_rights(from->word) & RSOFT_SLOW);
}

/* Bind or unbind the key of a type 1 window, which is BUSY; the MR, if any, is held. */
static void
mw_bind_one(struct rsoft_qp *qp, const struct rmem_send_wr *wr)
{
	struct rsoft_key *key = rsoft_mw_of(wr->bind_mw.mw)->key;
	struct rsoft_mr *mr = rsoft_mr_of(wr->bind_mw.mr), *old = key->mr;
	uint32_t rights = 0, rkey;
	struct rsoft_key from;

	key->mr = NULL;
	if (mr != NULL) {
		from = mw_copy_key(mr);
		rights = mw_fill(key, mr, &from, 0, wr);
	}
	rkey = rsoft_word_rkey(__atomic_load_n(&key->word, __ATOMIC_RELAXED));
	rsoft_key_bind(qp, key, rkey, wr->bind_mw.key_tag, rights, wr);
	/* The MR of the previous binding, whose grace period is over. */
	if (old != NULL)
		rmem_obj_unhold(&old->mr.obj);
	RSOFT_COUNT(qp->stats.mw_binds, 1);
}

void
rsoft_mw_bind_end(struct rsoft_qp *qp, const struct rmem_send_wr *wr)
{
	mw_bind_one(qp, wr);
}

/* Take the MR of a type 1 window, if any. */
static bool
mw_take_mr(const struct rsoft_qp *qp, const struct rmem_send_wr *wr)
{
	if (wr->bind_mw.mr == NULL) /* unbind by rmem_mw_bind() */
		return wr->bind_mw.mw->pd == qp->qp.pd;
	if (!mw_hold_mr(qp, wr, 1))
		return false;
	if (mw_is_inside(rsoft_mr_of(wr->bind_mw.mr)->key, wr))
		return true;
	rmem_obj_unhold(&wr->bind_mw.mr->obj);
	return false;
}

int
rsoft_mw_bind_start(struct rsoft_qp *qp, const struct rmem_send_wr *wr)
{
	struct rsoft_key *key = rsoft_mw_of(wr->bind_mw.mw)->key;
	uint64_t word = __atomic_load_n(&key->word, __ATOMIC_RELAXED);
	uint32_t rights = rsoft_word_rights(word);

	if (unlikely((rights & RSOFT_BUSY) != 0 || !mw_take_mr(qp, wr)))
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
	mw_bind_one(qp, wr);
	return RMEM_WC_SUCCESS;
}

void
rsoft_mw_bind_drop(const struct rmem_send_wr *wr)
{
	if (wr->bind_mw.mr != NULL)
		rmem_obj_unhold(&wr->bind_mw.mr->obj);
	rsoft_key_release(rsoft_mw_of(wr->bind_mw.mw)->key);
}

/* Number of consecutive binds to the MR of the first, up to n, until one is signaled. */
static __rte_always_inline uint32_t
mw_nb_of_mr(const uint8_t *wrs, size_t stride, uint32_t n, uint8_t always)
{
	const struct rmem_send_wr *wr = (const void *)wrs;
	const struct rmem_mr *mr = wr->bind_mw.mr;
	uint32_t i;

	for (i = 1; i < n && ((wr->flags | always) & RMEM_SEND_SIGNALED) == 0; i++) {
		wr = (const void *)(wrs + i * stride);
		if (wr->opcode != RMEM_WR_BIND_MW || wr->bind_mw.mr != mr)
			break;
	}
	return i;
}

/*
 * Bind type 2 windows to an MR that is held, and that mw_hold_mr() has checked for another bind of
 * the QP: what it has not checked depends on the window, and on range and rights of each bind.
 * Return the number before the first that is refused. Without a history the loop calls no function,
 * so its variables are in registers.
 */
static __rte_always_inline uint32_t
mw_bind_two(struct rsoft_qp *qp, const uint8_t *wrs, size_t stride, uint32_t n, struct rsoft_mr *mr,
		bool has_history)
{
	const bool is_writable = (mr->mr.access & RMEM_ACCESS_LOCAL_WRITE) != 0;
	const uint32_t bad = ~(RMEM_ACCESS_REMOTE | RMEM_ACCESS_ZERO_BASED) |
			(is_writable ? 0 : RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_ATOMIC);
	const struct rsoft_key from = mw_copy_key(mr);
	const struct rmem_pd *pd = qp->qp.pd;
	const uint64_t serial = qp->serial;
	uint32_t i;

	for (i = 0; i < n; i++, wrs += stride) {
		const struct rmem_send_wr *wr = (const void *)wrs;
		const struct rmem_mw *mw = wr->bind_mw.mw;
		struct rsoft_key *key = rsoft_mw_of(wr->bind_mw.mw)->key;
		uint32_t rights, rkey;

		if (unlikely(mw->pd != pd || (wr->bind_mw.access & bad) != 0 ||
				    wr->bind_mw.length == 0 || !mw_is_inside(&from, wr)))
			break;
		/* IBTA o10-37.2.30: from FREE only. Only one of concurrent binds proceeds. */
		if (unlikely(!rsoft_key_take(key, &rkey)))
			break;
		rights = mw_fill(key, mr, &from, serial, wr) | RSOFT_SLOW | RSOFT_INV;
		if (has_history)
			rsoft_key_bind(qp, key, rkey, wr->bind_mw.key_tag, rights, wr);
		else
			rsoft_key_publish(key, rkey, wr->bind_mw.key_tag, rights);
	}
	return i;
}

static __rte_noinline uint32_t
mw_bind_run(struct rsoft_qp *qp, const uint8_t *wrs, size_t stride, uint32_t n, struct rsoft_mr *mr)
{
	return mw_bind_two(qp, wrs, stride, n, mr, false);
}

/*
 * Invariant: while the references are held, the checked fields of the MR and of its key do not
 * change, so they are checked, and the references taken, once for consecutive binds to one MR.
 */
uint32_t
rsoft_mw_binds(struct rsoft_qp *qp, const uint8_t *wrs, size_t stride, uint32_t n, int *status,
		uint32_t *vendor_err)
{
	const struct rmem_send_wr *wr = (const void *)wrs;
	uint32_t nb = mw_nb_of_mr(wrs, stride, n, qp->sig_all ? RMEM_SEND_SIGNALED : 0);
	struct rsoft_mr *mr = rsoft_mr_of(wr->bind_mw.mr);
	uint32_t i = 0;

	if (unlikely(!qp->has_bound))
		__atomic_store_n(&qp->has_bound, 1, __ATOMIC_RELAXED);
	if (likely(mw_hold_mr(qp, wr, nb))) {
		if (likely(qp->dev->history == NULL))
			i = mw_bind_run(qp, wrs, stride, nb, mr);
		else
			i = mw_bind_two(qp, wrs, stride, nb, mr, true);
		if (unlikely(i < nb))
			__atomic_fetch_sub(&mr->mr.obj.refs, nb - i, __ATOMIC_RELEASE);
	}
	RSOFT_COUNT(qp->stats.mw_binds, i);
	if (likely(i == nb)) {
		*status = RMEM_WC_SUCCESS;
		return nb;
	}
	*vendor_err = rsoft_mw_bind_vendor_err(qp, (const void *)(wrs + i * stride));
	*status = RMEM_WC_MW_BIND_ERR;
	return i + 1;
}
