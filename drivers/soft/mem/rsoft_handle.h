/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The handles of MRs and windows, and the keys that applications read there: rmem_mr::lkey,
 * rmem_mr::rkey and rmem_mw::rkey. The post of a REG_MR, UMR or BIND_MW sets the tag that the
 * request chooses.
 */

#ifndef RSOFT_HANDLE_H
#define RSOFT_HANDLE_H

#include "rsoft_key.h"

static inline struct rsoft_mr *
rsoft_mr_of(struct rmem_mr *mr)
{
	return (struct rsoft_mr *)mr;
}

static inline struct rsoft_mw *
rsoft_mw_of(struct rmem_mw *mw)
{
	return (struct rsoft_mw *)mw;
}

/*
 * Set the tag that an accepted request chooses in its handle; most requests choose none. Record the
 * process first: if it is killed afterwards, mp_revoke() in rsoft_mp.c sets the lkey again.
 */
static inline void
rsoft_handle_set_tag(const struct rsoft_qp *qp, const struct rmem_send_wr *wr)
{
	struct rmem_mr *mr;
	struct rmem_mw *mw;
	uint32_t rkey;
	uint8_t tag;

	switch (wr->opcode) {
	case RMEM_WR_REG_MR:
		mr = wr->reg_mr.mr;
		tag = wr->reg_mr.key_tag;
		if (unlikely(mr->type != RMEM_MR_TYPE_FAST_REG))
			return;
		break;
	case RMEM_WR_UMR:
		mr = wr->umr.mr;
		tag = wr->umr.key_tag;
		if (unlikely(mr->type != RMEM_MR_TYPE_INDIRECT))
			return;
		break;
	case RMEM_WR_BIND_MW:
		mw = wr->bind_mw.mw;
		rkey = rmem_rkey_of_tag(mw->rkey, wr->bind_mw.key_tag);
		__atomic_store_n(&mw->obj.process, qp->qp.obj.process, __ATOMIC_RELAXED);
		__atomic_store_n(&mw->rkey, rkey, __ATOMIC_RELAXED);
		return;
	default:
		return;
	}
	rkey = rmem_rkey_of_tag(mr->rkey, tag);
	__atomic_store_n(&mr->obj.process, qp->qp.obj.process, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	/* Atomic, because the compiler would otherwise merge both stores into one, which is
	 * slower. */
	__atomic_store_n(&mr->rkey, rkey, __ATOMIC_RELAXED);
	__atomic_store_n(&mr->lkey, rkey ^ qp->dev->lkey_xor, __ATOMIC_RELAXED);
}

/* A BIND_MW was refused or dropped: restore the key of a type 1 window in its handle. */
static inline void
rsoft_handle_undo_tag(const struct rmem_send_wr *wr)
{
	struct rmem_mw *mw = wr->bind_mw.mw;
	uint64_t word;

	if (wr->opcode != RMEM_WR_BIND_MW || mw->type != RMEM_MW_TYPE_1)
		return;
	word = __atomic_load_n(&rsoft_mw_of(mw)->key->word, __ATOMIC_RELAXED);
	__atomic_store_n(&mw->rkey, rsoft_word_rkey(word), __ATOMIC_RELAXED);
}

#endif /* RSOFT_HANDLE_H */
