/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The quirk of windows: the driver tracks their state before requests reach the device.
 *
 * rdma_rxe (tested: Linux 6.1 and 7.2) crashes on a LOCAL_INV or an incoming SEND_WITH_INV with the
 * key of a type 2 window that is not bound, and waits 50 s before it destroys a QP with a bound
 * window. So the driver has a state for each window: its state after all posted requests. A request
 * that does not fit the state is not passed to the device. Instead the device gets a request that
 * it refuses safely, an invalidation of key 0.
 *
 * A flushed request may have been executed, because a local operation can be executed before
 * preceding requests complete. The state of such a window is UNKNOWN. The window is then allocated
 * again at the device, which is possible in any state: before it is bound again, before its QP is
 * reset or destroyed, and when a deregistration fails. Requests posted to a QP that is known to
 * have failed do not change the state.
 *
 * Invariant: the fields of a window are written under the lock of its device's table, which also
 * protects the table and the list. life counts the posted binds; a request stores the life that it
 * refers to, so its end does not affect a later bind. mr is held while it is set. busy counts the
 * requests that refer to the window and have not completed; the window is not released before they
 * have.
 */

#ifndef RVERBS_MWQ_H
#define RVERBS_MWQ_H

#include "rverbs_mwq_table.h"

enum rverbs_mwq_state {
	RVERBS_MWQ_FREE = 0, /* type 2: not bound */
	RVERBS_MWQ_BOUND,    /* type 1: always possible */
	RVERBS_MWQ_TAKEN,    /* a SEND_WITH_INV of this process for it is in flight */
	RVERBS_MWQ_UNKNOWN,
	RVERBS_MWQ_RENEWED, /* being allocated again, or released */
	RVERBS_MWQ_GONE,    /* the device has no window for it */
};

/* rverbs_mwq.c: the operations of a device with the quirk. */
int rverbs_mwq_alloc(struct rverbs_mw *mw);
int rverbs_mwq_dealloc(struct rverbs_mw *mw);
/*
 * Begin the bind of a type 1 window; mr NULL unbinds. On success the lock is held over the call of
 * libibverbs, which determines the key, because a thread that polls the completion concurrently
 * needs the key.
 */
int rverbs_mwq_bind_begin(struct rverbs_qp *qp, struct rverbs_mw *mw, struct rmem_mr *mr,
		struct rverbs_mw_op *op);
void rverbs_mwq_bind_end(struct rverbs_mw_op *op, int ret);
/*
 * Allocate an unbound window of the device again. Its state is RENEWED, and busy counts the caller.
 */
int rverbs_mwq_renew(struct rverbs_mw *mw);
/* Allocate the UNKNOWN windows of a QP again, after its requests were dropped. */
int rverbs_mwq_renew_qp(struct rverbs_qp *qp);
/* Allocate windows again that may be bound to an MR without being counted as bound. */
int rverbs_mwq_renew_mr(const struct rmem_mr *mr);
/* Whether a window is bound on the QP, by a completed bind. */
bool rverbs_mwq_is_bound_on(const struct rverbs_qp *qp);

/* rverbs_mwq_wr.c */
/*
 * Note a request that passed its checks; the note describes the request for the device. *locked is
 * as above; the lock is released before the burst is posted.
 */
struct rverbs_mw_op *rverbs_mwq_accept(
		struct rverbs_qp *qp, const struct rmem_send_wr *wr, uint32_t pos, int *locked);
/* A chain that ends with a bind was posted; until then busy counted the window. */
void rverbs_mwq_sent(struct rverbs_mw *mw, uint32_t key, bool is_taken);
/* Undo the requests from pos on, which the device did not accept. */
void rverbs_mwq_undo(struct rverbs_qp *qp, uint32_t pos);
/* End a noted request that has completed or is dropped. */
void rverbs_mwq_end(struct rverbs_mw_op *op, uint8_t status, int *locked);
/* Record that a peer invalidated the key. */
void rverbs_mwq_invalidated(struct rverbs_qp *qp, uint32_t key);

#endif /* RVERBS_MWQ_H */
