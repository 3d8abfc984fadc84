/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Memory windows: remote access to part of an MR, with rights and an rkey of their own.
 *
 * A window has only an rkey; local requests use the lkey of the MR. A window can be bound to MRs
 * registered with RMEM_ACCESS_MW_BIND.
 *
 * Type 1 is bound by rmem_mw_bind() and is valid on all QPs of its PD; a new binding ends the
 * previous one. Type 2 (2B of the standard) is bound by RMEM_WR_BIND_MW, is valid on the QP it
 * was bound on, and must be invalidated (RMEM_WR_LOCAL_INV, or the peer's
 * RMEM_WR_SEND_WITH_INV) before it is bound again.
 *
 * A verbs device may have executed a BIND_MW or an invalidation that completed as flushed. After
 * such a completion, release the window and allocate another.
 */

#ifndef RMEM_MW_H
#define RMEM_MW_H

#include <stdint.h>

#include <rmem_obj.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_mr;
struct rmem_pd;
struct rmem_qp;

/** Types of windows; the values equal enum ibv_mw_type. */
enum rmem_mw_type {
	RMEM_MW_TYPE_1 = 1, /**< Bound by rmem_mw_bind(). */
	RMEM_MW_TYPE_2 = 2, /**< Bound by RMEM_WR_BIND_MW; type 2B of the standard. */
};

/**
 * Memory window (MW). Drivers append their own fields.
 *
 * rkey is the key of the last binding posted; for a type 1 window whose binding failed, the key
 * of the binding in force.
 */
struct rmem_mw {
	struct rmem_obj obj; /**< Private head. */
	uint32_t rkey;       /**< Key for the requests of peers. */
	uint16_t type;       /**< One of enum rmem_mw_type. */
	uint16_t pad;        /**< Zero. */
	struct rmem_pd *pd;  /**< PD that the window belongs to. */
};

/** Range and rights of a binding; as struct ibv_mw_bind_info. */
struct rmem_mw_bind_info {
	struct rmem_mr *mr; /**< MR with RMEM_ACCESS_MW_BIND; ignored if length is 0. */
	uint64_t addr;      /**< First byte, relative to the iova of the MR. */
	uint64_t length;    /**< Length in bytes; 0 unbinds. */
	uint32_t access;    /**< Bitwise OR of the rights in RMEM_ACCESS_REMOTE. */
	uint32_t reserved;  /**< Zero. */
};

/** Binding of a type 1 window; as struct ibv_mw_bind. The caller zeroes it first. */
struct rmem_mw_bind {
	uint64_t wr_id;                     /**< Returned in rmem_wc::wr_id. */
	uint32_t flags;                     /**< RMEM_SEND_SIGNALED, RMEM_SEND_FENCE. */
	uint32_t reserved;                  /**< Zero. */
	struct rmem_mw_bind_info bind_info; /**< Range and rights. */
};

/**
 * Allocate a memory window, not bound.
 *
 * Control path: allocates memory. Safe to call from any thread.
 *
 * @param pd
 *   Protection domain the window belongs to.
 * @param type
 *   One of enum rmem_mw_type.
 * @param[out] mw
 *   The new window. Written only on success. Release it with rmem_mw_dealloc().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL or not a PD, NULL mw, or an unknown type.
 *   - -EOPNOTSUPP: the device lacks RMEM_DEV_CAPA_MW_TYPE_1 or RMEM_DEV_CAPA_MW_TYPE_2B.
 *   - -ENOSPC: the device already has rmem_dev_info::max_mw windows.
 *   - -ENOMEM: no memory for the window.
 *   - -ENODEV: the device is being closed.
 *   - -EIO: the device failed.
 */
int rmem_mw_alloc(struct rmem_pd *pd, enum rmem_mw_type type, struct rmem_mw **mw);

/**
 * Bind a type 1 window to part of an MR, or unbind it (ibv_bind_mw(3)).
 *
 * The bind is queued in the send queue of the QP, in order with other requests, and completes with
 * RMEM_WC_BIND_MW if it is signaled. When it has completed, the previous key of the window is no
 * longer valid, and no lcore accesses the memory through it. An MR cannot be deregistered while a
 * window is bound to it. If a bind fails (RMEM_WC_MW_BIND_ERR) or is flushed, the window remains
 * bound as before, and mw->rkey is its previous key again.
 *
 * For the thread that uses the QP. A bind of a window must have completed before the window is
 * bound on another QP.
 *
 * @param qp
 *   QP of the window's PD, in the RTS or ERR state.
 * @param mw
 *   Type 1 window; on success mw->rkey is its new key, also after unbinding.
 * @param bind
 *   Range and rights of the window; not needed after the call. REMOTE_WRITE and REMOTE_ATOMIC
 *   need LOCAL_WRITE of the MR (IBTA C10-74).
 *
 * @return
 *   0 if the bind was accepted, otherwise:
 *   - -EINVAL: NULL or wrong handle, NULL bind, a type 2 window, an unknown flag or access
 *     bit, ZERO_BASED (IBTA o10-36.2.2), a reserved field that is not zero, an MR that was
 *     not registered by rmem_mr_reg(), or a range that is not inside the MR (IBTA C10-75);
 *     on the software device also a calling thread that is not registered with EAL.
 *   - -EPERM: window, MR and QP are not of one PD (IBTA C10-72), the MR lacks
 *     RMEM_ACCESS_MW_BIND (IBTA C10-73), or LOCAL_WRITE for rights to modify.
 *   - -EOPNOTSUPP: the MR is of RMEM_MR_FD, or the QP of UD or XRC_RECV.
 *   - -EBUSY: the QP is in the RESET state, or the MR is not in RMEM_MR_STATE_VALID: its
 *     registration is in progress or failed, or it is not enabled.
 *   - -ENOSPC: the send queue is full.
 *   - -ENOMEM: a previous bind was lost, and there is no memory to allocate the window again.
 *   - -ENODEV: the device has failed or was removed.
 *   - -EIO: the device failed.
 */
int rmem_mw_bind(struct rmem_qp *qp, struct rmem_mw *mw, const struct rmem_mw_bind *bind);

/**
 * Free a memory window, bound or not.
 *
 * When it returns, no lcore accesses the memory through the window any more, and the MR it was
 * bound to can be deregistered.
 *
 * Control path: waits for lcores that are executing a request. Safe to call from any thread,
 * once for each window.
 *
 * @param mw
 *   Window to release; no longer valid on success. NULL is allowed and has no effect.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: not a window.
 *   - -EBUSY: a request that binds the window waits in a send queue; or, if the device tracks this,
 *     a request that binds or invalidates it has not completed. A verbs device tracks type 2
 *     windows only with mw_quirk=on.
 *   - -EIO: the device failed.
 */
int rmem_mw_dealloc(struct rmem_mw *mw);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_MW_H */
