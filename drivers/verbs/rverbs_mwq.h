/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The quirk of windows: what is known of them before a request reaches the device.
 *
 * The kernel's rdma_rxe (6.1 and 7.2 were tried) dies of a LOCAL_INV or an incoming SEND_WITH_INV
 * that names the key of a type 2 window which is not bound, and waits 50 s before it destroys a QP
 * that one is bound on. So a window has a state here: what it will be when all that was posted is
 * done. A request that does not suit it is not handed over; the device gets one in its place that
 * it refuses safely, an invalidation of key 0.
 *
 * Requests that were posted may be flushed: then it is not known whether they were executed, as a
 * local operation is before the completion of those that precede it. Such a window is UNKNOWN. It
 * is allocated again at the device, which is possible in any state, before it is bound again,
 * before its QP is reset or destroyed, and when a deregistration fails. Of a QP that is known to
 * have failed the state does not follow what is posted.
 *
 * Invariant: a window's fields are written under the lock of its device's table, and so are the
 * table and the list. life counts the bindings posted, and a request notes the one that it is
 * about, so that its end does nothing to a later one. mr is held while it is set. busy counts
 * requests that name the window and have not completed: until then it is not released.
 */

#ifndef RVERBS_MWQ_H
#define RVERBS_MWQ_H

#include "rverbs_mwq_table.h"

enum rverbs_mwq_state {
	RVERBS_MWQ_FREE = 0, /* type 2: not bound */
	RVERBS_MWQ_BOUND,    /* type 1: may be bound, whether it is or not */
	RVERBS_MWQ_TAKEN,    /* a SEND_WITH_INV of this process to it is in flight */
	RVERBS_MWQ_UNKNOWN,
	RVERBS_MWQ_RENEWED, /* being allocated again, or released */
	RVERBS_MWQ_GONE,    /* the device has none */
};

/* rverbs_mwq.c: the driver's ops, of a device that has the quirk. */
int rverbs_mwq_alloc(struct rverbs_mw *mw);
int rverbs_mwq_dealloc(struct rverbs_mw *mw);
/*
 * Before a type 1 window is bound, to nothing with an MR of NULL: on success the lock is held over
 * the call, as that makes the key, which a completion that another thread polls concurrently needs.
 */
int rverbs_mwq_bind_begin(struct rverbs_qp *qp, struct rverbs_mw *mw, struct rmem_mr *mr,
		struct rverbs_mw_op *op);
void rverbs_mwq_bind_end(struct rverbs_mw_op *op, int ret);
/* Allocate a window again at the device, not bound. It is RENEWED, and counted in busy. */
int rverbs_mwq_renew(struct rverbs_mw *mw);
/* The windows of a QP whose requests are forgotten: none stays UNKNOWN. */
int rverbs_mwq_settle_qp(struct rverbs_qp *qp);
/* Those that may keep an MR, though they do not count as bound. */
int rverbs_mwq_settle_mr(const struct rmem_mr *mr);
/* Whether a binding on the QP completed and stands. */
bool rverbs_mwq_is_bound_on(const struct rverbs_qp *qp);

/* rverbs_mwq_wr.c */
/*
 * Note a request that passed its checks; what to hand over is in the note. *locked as above: the
 * burst is handed over without.
 */
struct rverbs_mw_op *rverbs_mwq_accept(
		struct rverbs_qp *qp, const struct rmem_send_wr *wr, uint32_t pos, int *locked);
/* A chain that ends with a binding was handed over; the window was counted in busy till then. */
void rverbs_mwq_sent(struct rverbs_mw *mw, uint32_t key, bool is_taken);
/* The device did not take the requests from pos on. */
void rverbs_mwq_undo(struct rverbs_qp *qp, uint32_t pos);
/* A noted request has completed, or is dropped. */
void rverbs_mwq_end(struct rverbs_mw_op *op, uint8_t status, int *locked);
/* A peer invalidated the key. */
void rverbs_mwq_invalidated(struct rverbs_qp *qp, uint32_t key);

#endif /* RVERBS_MWQ_H */
