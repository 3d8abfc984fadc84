/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Fast path: post and poll.
 *
 * Each function is one indirect call through a table of the process, indexed by the number of the
 * device; handles are checked only if RMEM_DEBUG is defined.
 *
 * One thread at a time may use a QP or a CQ; different QPs and CQs may be used in parallel. Threads
 * that post or poll must be lcores, or registered with rte_thread_register().
 */

#ifndef RMEM_FP_H
#define RMEM_FP_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_common.h>

#include <rmem_cq.h>
#include <rmem_dev.h>
#include <rmem_qp.h>
#include <rmem_srq.h>
#include <rmem_wc.h>
#include <rmem_wr.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Post send requests; see rmem_post_send(). */
typedef int (*rmem_post_send_t)(struct rmem_qp *qp, const struct rmem_send_wr *wr, uint16_t nb_wr);
/** Post receives; see rmem_post_recv(). */
typedef int (*rmem_post_recv_t)(struct rmem_qp *qp, const struct rmem_recv_wr *wr, uint16_t nb_wr);
/** Post receives to an SRQ; see rmem_srq_post_recv(). */
typedef int (*rmem_srq_post_recv_t)(
		struct rmem_srq *srq, const struct rmem_recv_wr *wr, uint16_t nb_wr);
/** Poll completions; see rmem_poll_cq(). */
typedef int (*rmem_poll_cq_t)(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc);

/** Fast-path functions of a device in this process. */
struct rmem_fp_ops {
	rmem_post_send_t post_send; /**< rmem_post_send(). */
	rmem_post_recv_t post_recv; /**< rmem_post_recv(). */
	rmem_poll_cq_t poll_cq;     /**< rmem_poll_cq(). */
	/** rmem_srq_post_recv(); with RMEM_DEV_CAPA_SRQ. */
	rmem_srq_post_recv_t srq_post_recv;
	void (*reserved[4])(void); /**< NULL. */
} __rte_cache_aligned;

/**
 * Fast-path functions by device number.
 *
 * The functions of a number without a device return -ENODEV. Loads are atomic, because the
 * functions of a device that fails are replaced while other threads call them.
 */
extern struct rmem_fp_ops rmem_fp[RMEM_MAX_DEVS];

/**
 * Post requests to the send queue of a QP.
 *
 * Requests are executed in the order posted. The post stops at the first one that is
 * malformed or finds the queue full; preceding requests are accepted. A request occupies its
 * entry of the queue until its completion, or a later signaled one, was polled
 * (ibv_post_send(3)).
 *
 * Fast path, for the thread that uses the QP.
 *
 * @param qp
 *   QP in the RTS, SQD, SQE or ERR state.
 * @param wr
 *   nb_wr requests; not needed after the call.
 * @param nb_wr
 *   Number of requests; 0 is allowed.
 *
 * @return
 *   Number of requests accepted, or if the first one is refused:
 *   - -EINVAL: unknown opcode or flag, RMEM_SEND_INLINE with an opcode that sends no data, more
 *     SGEs or inline bytes than the limits of the QP, 4 GiB or more in total on a verbs device, a
 *     REG_MR without MR or page list, a UMR without MR or entries, a BIND_MW without MR or type 2
 *     window, or on a verbs device with an MR that is not in RMEM_MR_STATE_VALID, an MR, page list
 *     or window of another device, an atomic or ATOMIC_WRITE without exactly one SGE of 8 bytes, on
 *     a UD QP no AH, an AH of another device or a QP number over 24 bits, or a calling thread not
 *     registered with EAL; in debug builds a NULL or wrong handle.
 *   - -EPERM: an AH of another PD than the QP.
 *   - -EOPNOTSUPP: the device or the type of the QP lacks the opcode, or this is a secondary
 *     process.
 *   - -EBUSY: the QP is in the RESET, INIT or RTR state.
 *   - -ENOSPC: the send queue is full.
 *   - -ENODEV: the device was closed, has failed or was removed.
 */
static inline int
rmem_post_send(struct rmem_qp *qp, const struct rmem_send_wr *wr, uint16_t nb_wr)
{
#ifdef RMEM_DEBUG
	if (qp == NULL || qp->obj.type != RMEM_OBJ_QP || (wr == NULL && nb_wr != 0))
		return -EINVAL;
#endif
	return __atomic_load_n(&rmem_fp[qp->obj.dev_id].post_send, __ATOMIC_RELAXED)(qp, wr, nb_wr);
}

/**
 * Post receives to the receive queue of a QP.
 *
 * Fast path, for the thread that uses the QP.
 *
 * @param qp
 *   QP in any state except RESET.
 * @param wr
 *   nb_wr receives; not needed after the call.
 * @param nb_wr
 *   Number of receives; 0 is allowed.
 *
 * @return
 *   Number of receives accepted, or if the first one is refused:
 *   - -EINVAL: the QP uses an SRQ, more SGEs than the limit of the QP, a reserved field that is not
 *     zero, or a calling thread not registered with EAL; in debug builds a NULL or wrong handle.
 *   - -EBUSY: the QP is in the RESET state.
 *   - -ENOSPC: the receive queue is full.
 *   - -EOPNOTSUPP: this is a secondary process.
 *   - -ENODEV: the device was closed, has failed or was removed.
 */
static inline int
rmem_post_recv(struct rmem_qp *qp, const struct rmem_recv_wr *wr, uint16_t nb_wr)
{
#ifdef RMEM_DEBUG
	if (qp == NULL || qp->obj.type != RMEM_OBJ_QP || (wr == NULL && nb_wr != 0))
		return -EINVAL;
#endif
	return __atomic_load_n(&rmem_fp[qp->obj.dev_id].post_recv, __ATOMIC_RELAXED)(qp, wr, nb_wr);
}

/**
 * Post receives to a shared receive queue.
 *
 * The QPs of the SRQ consume them in the order posted.
 *
 * Fast path. Safe to call from any thread, concurrently.
 *
 * @param srq
 *   SRQ.
 * @param wr
 *   nb_wr receives; not needed after the call.
 * @param nb_wr
 *   Number of receives; 0 is allowed.
 *
 * @return
 *   Number of receives accepted, or if the first one is refused:
 *   - -EINVAL: more SGEs than the limit of the SRQ, or a reserved field that is not zero; in debug
 *     builds a NULL or wrong handle.
 *   - -ENOSPC: the SRQ is full.
 *   - -EOPNOTSUPP: this is a secondary process.
 *   - -ENODEV: the device was closed, has failed or was removed.
 */
static inline int
rmem_srq_post_recv(struct rmem_srq *srq, const struct rmem_recv_wr *wr, uint16_t nb_wr)
{
#ifdef RMEM_DEBUG
	if (srq == NULL || srq->obj.type != RMEM_OBJ_SRQ || (wr == NULL && nb_wr != 0))
		return -EINVAL;
#endif
	return __atomic_load_n(&rmem_fp[srq->obj.dev_id].srq_post_recv, __ATOMIC_RELAXED)(
			srq, wr, nb_wr);
}

/**
 * Poll completions from a CQ, oldest first.
 *
 * On the software device the call also retries requests that could not execute when posted. A
 * failed request is not a failed poll.
 *
 * Fast path, for the thread that uses the CQ.
 *
 * @param cq
 *   CQ to poll.
 * @param[out] wc
 *   Array of nb_wc completions.
 * @param nb_wc
 *   Maximum number; 0 is allowed and only makes progress.
 *
 * @return
 *   Number of completions written, or:
 *   - -EIO: the CQ overran, or the device failed, and the saved completions are drained.
 *   - -EINVAL: the calling thread is not registered with EAL; in debug builds a NULL or wrong
 *     handle.
 *   - -EOPNOTSUPP: this is a secondary process.
 *   - -ENODEV: the device was closed.
 */
static inline int
rmem_poll_cq(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc)
{
#ifdef RMEM_DEBUG
	if (cq == NULL || cq->obj.type != RMEM_OBJ_CQ || (wc == NULL && nb_wc != 0))
		return -EINVAL;
#endif
	return __atomic_load_n(&rmem_fp[cq->obj.dev_id].poll_cq, __ATOMIC_RELAXED)(cq, wc, nb_wc);
}

#ifdef __cplusplus
}
#endif

#endif /* RMEM_FP_H */
