/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Memory windows.
 *
 * The key of a window gets a copy of the mapping of its MR's key when it is bound. It lacks
 * RSOFT_LOCAL, so it is not valid as lkey. The key of a type 2 window is valid only on the QP that
 * bound it, and requests may invalidate it.
 *
 * Invariant: from the bind until the end of the grace period after the unbind, key->mr is the MR
 * and holds a reference to it, so neither its key nor its memory is released earlier. Only the
 * thread that has set the key to BUSY writes key->mr.
 */

#ifndef RSOFT_MW_H
#define RSOFT_MW_H

#include "rsoft_handle.h"

int rsoft_mw_alloc(struct rmem_mw *mw);
int rsoft_mw_dealloc(struct rmem_mw *mw);

/* Whether the QP has bound a type 2 window; searches all keys. */
bool rsoft_mw_is_bound_by(const struct rsoft_qp *qp);

/*
 * Execute consecutive BIND_MWs of type 2 windows of a QP: the first of n requests, and following
 * ones of the same MR until one is signaled or fails. Return how many have ended; *status is the
 * status of the last one, an enum rmem_wc_status, and all others have succeeded.
 */
uint32_t rsoft_mw_binds(struct rsoft_qp *qp, const uint8_t *wrs, size_t stride, uint32_t n,
		int *status, uint32_t *vendor_err);

/*
 * Execute a BIND_MW request of a type 1 window. Return RMEM_WC_SUCCESS; RMEM_WC_MW_BIND_ERR with
 * nothing changed; or RSOFT_WAIT_GRACE: the previous binding is invalidated, and
 * rsoft_mw_bind_end() or rsoft_mw_bind_drop() must be called after the grace period.
 */
int rsoft_mw_bind_start(struct rsoft_qp *qp, const struct rmem_send_wr *wr);

/* Cause of a refused bind; an enum rmem_vendor_err. */
uint32_t rsoft_mw_bind_vendor_err(const struct rsoft_qp *qp, const struct rmem_send_wr *wr);
void rsoft_mw_bind_end(struct rsoft_qp *qp, const struct rmem_send_wr *wr);
void rsoft_mw_bind_drop(const struct rmem_send_wr *wr);

#endif /* RSOFT_MW_H */
