/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The send queue: acceptance of requests, and the queue of waiting requests.
 *
 * A request occupies the queue from its post until its completion, or the completion of a later
 * signaled request, was polled (ibv_post_send(3)). So the executor stores the CQ entry of each
 * signaled request in sig[], and the poster reads it when the queue seems full.
 */

#ifndef RSOFT_SQ_H
#define RSOFT_SQ_H

#include "rsoft_cq.h"

int rsoft_sq_init(struct rsoft_sq *sq, const struct rmem_qp_conf *conf, int socket_id);
void rsoft_sq_fini(struct rsoft_sq *sq);

/*
 * Number of requests that can be accepted: the ones of nb_wr before the first that is malformed or
 * has no free entry. If that is the first request, *ret is the errno.
 */
uint32_t rsoft_sq_accept(
		struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint32_t nb_wr, int *ret);

/* Accept a bind that rmem_mw_bind() has checked: 0 or -ENOSPC. */
int rsoft_sq_accept_bind(struct rsoft_qp *qp, const struct rmem_send_wr *wr);

/*
 * Copy accepted requests to the queue, with their SGEs and inline data. The objects of a REG_MR,
 * UMR or BIND_MW are referenced until rsoft_sq_unhold(), unless the QP is claimed (rsoft_mp.c).
 */
void rsoft_sq_push(struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint32_t nb_wr);

/*
 * Add the QP to the pending list, where its requests are retried until the queue is empty. Under
 * sq.lock, or while no other thread uses the queue.
 */
void rsoft_sq_add_pending(struct rsoft_qp *qp);

/* Remove the QP from the pending list. Under pending_lock. */
void rsoft_sq_remove_pending(struct rsoft_qp *qp);

/* Take a QP from the list if it is in it: no poll executes its queue then. Without these locks. */
void rsoft_sq_leave_pending(struct rsoft_qp *qp);

/* Rotate a list so that it begins with `first`. Under the lock of the list. */
void rsoft_sq_begin_with(struct rsoft_qp_list *list, struct rsoft_qp *first);

/*
 * Whether n requests from a position on are valid, as rsoft_sq_push() writes them: their opcodes,
 * and the place of their SGEs and inline data. For a claimed QP, whose queue another process
 * writes.
 */
bool rsoft_sq_is_sound(const struct rsoft_qp *qp, uint32_t pos, uint32_t n);

/* Drop queued requests, and the wait of the head. No other thread uses the queue. */
void rsoft_sq_drop(struct rsoft_qp *qp);

/*
 * With sq.has_to_report, and no begun requests in progress in SQD: generate the event at the end of
 * draining. Under sq.lock and the lock of the engine.
 */
void rsoft_sq_report_drained(struct rsoft_qp *qp, bool is_draining);

/* Release the objects of a queued request that was executed, flushed or dropped. */
static inline void
rsoft_sq_unhold(const struct rsoft_qp *qp, const struct rmem_send_wr *wr)
{
	if (likely(!rsoft_qp_is_claimed(qp)))
		rmem_wr_unhold(wr);
}

/* Remove n requests from the head. */
static inline void
rsoft_sq_pop(struct rsoft_sq *sq, uint32_t n)
{
	__atomic_store_n(&sq->cons, sq->cons + n, __ATOMIC_RELEASE);
}

static inline bool
rsoft_sq_is_empty(const struct rsoft_sq *sq)
{
	return __atomic_load_n(&sq->prod, __ATOMIC_ACQUIRE) ==
			__atomic_load_n(&sq->cons, __ATOMIC_ACQUIRE);
}

static inline struct rmem_send_wr *
rsoft_sq_slot(const struct rsoft_sq *sq, uint32_t pos)
{
	return (struct rmem_send_wr *)(void *)(sq->ring + (size_t)(pos & sq->mask) * sq->stride);
}

/* Number of requests from a position on; at most the size of the ring, even if prod is invalid. */
static inline uint32_t
rsoft_sq_nb_readable(const struct rsoft_sq *sq, uint32_t pos)
{
	uint32_t nb = __atomic_load_n(&sq->prod, __ATOMIC_ACQUIRE) - pos;

	return RTE_MIN(nb, sq->mask + 1);
}

#endif /* RSOFT_SQ_H */
