/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A memory window, and notes of requests that refer to windows; see rverbs_mw.h, rverbs_mwq.h.
 */

#ifndef RVERBS_MW_OP_H
#define RVERBS_MW_OP_H

#include "rverbs.h"

struct rverbs_mw {
	struct rmem_mw mw;
	struct ibv_mw *ibv;    /* with the quirk: NULL while the device has no window */
	rte_ticketlock_t lock; /* protects a type 1 window */
	uint32_t busy;         /* requests that refer to the window and have not completed */
	uint32_t key_in_force; /* type 1: key of the last completed bind */
	/* Only with the quirk; under the lock of the device's table. */
	uint8_t state; /* enum rverbs_mwq_state */
	bool is_made;  /* the bind has completed */
	bool is_fresh; /* bound with a new key while no other request was in flight */
	uint32_t key;  /* key of the last posted bind */
	uint32_t life; /* number of posted binds */
	struct rverbs_qp *qp;
	struct rmem_mr *mr;                /* held */
	const struct rmem_mr *possible_mr; /* type 1, UNKNOWN: other MR to which it may be bound */
	TAILQ_ENTRY(rverbs_mw) next;
};

/* Kind of a noted request: its effect at the device. */
enum rverbs_mw_kind {
	RVERBS_MW_BIND_1, /* type 1 */
	/* Without the quirk: REG_MR and UMR. */
	RVERBS_MW_REG_MR,
	RVERBS_MW_UMR,
	/* Only with the quirk. */
	RVERBS_MW_BIND,     /* type 2 */
	RVERBS_MW_INV,      /* LOCAL_INV */
	RVERBS_MW_SEND_INV, /* SEND_WITH_INV of a window of this process */
	RVERBS_MW_PASS,     /* SEND_WITH_INV to another process */
	RVERBS_MW_BAD,      /* refused: RMEM_WC_MW_BIND_ERR */
	RVERBS_MW_DEAD,     /* posted to a QP that has failed */
};

/* A note. */
struct rverbs_mw_op {
	uint32_t pos; /* position in the ring of requests */
	uint8_t kind;
	uint32_t key;     /* passed to the device; type 1: key of the bind */
	uint32_t old_key; /* previous key of the window or MR */
	struct rverbs_mw *mw;
	/* Only with the quirk. */
	uint32_t life;
	uint32_t old_handle; /* previous key of the handle */
	/* With the quirk: a held MR, or NULL; without: the MR of a REG_MR or UMR, until the post
	 * returns. */
	struct rmem_mr *mr;
};

static inline struct rverbs_mw *
rverbs_mw_of(struct rmem_mw *mw)
{
	return (struct rverbs_mw *)mw;
}

static inline void
rverbs_mw_set_handle(struct rverbs_mw *mw, uint32_t key)
{
	__atomic_store_n(&mw->mw.rkey, key, __ATOMIC_RELAXED);
}

/* Return 0, or -EBUSY with a log line if the window can't be released yet. */
static inline int
rverbs_mw_check_busy(const struct rverbs_mw *mw, uint32_t busy)
{
	if (busy == 0)
		return 0;
	RVERBS_LOG(ERR, "MW of rkey 0x%08x: in use: %u requests that bind or invalidate it have not completed",
			mw->mw.rkey, busy);
	return -EBUSY;
}

static inline struct rverbs_mw_op *
rverbs_mw_ops_next(struct rverbs_qp *qp, uint32_t pos)
{
	struct rverbs_mw_op *op = &qp->mw_ops.ops[qp->mw_ops.prod & qp->mw_ops.mask];

	op->pos = pos;
	op->mw = NULL;
	return op;
}

/* Publish a complete note. */
static inline void
rverbs_mw_ops_push(struct rverbs_qp *qp)
{
	__atomic_store_n(&qp->mw_ops.prod, qp->mw_ops.prod + 1, __ATOMIC_RELEASE);
}

#endif /* RVERBS_MW_OP_H */
