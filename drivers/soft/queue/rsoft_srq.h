/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Shared receive queues.
 *
 * A message takes a receive by moving it to the receive queue of its QP, which has one slot for
 * this. There it is placed, completed or flushed like any other receive. If an unreliable service
 * drops the message, or the QP is reset, the receive is returned to the SRQ. So the SRQ is locked
 * only while receives are copied to or from its ring; a QP handles a receive under its own rq.lock.
 *
 * Invariants:
 * - All fields of struct rsoft_srq except the constant ones change only under its lock; prod and
 *   cons are also read without it. The lock is taken inside rq.lock, and no other lock inside it.
 * - A receive is in the ring of the SRQ, between cons and prod, or in the slot of one QP, or is
 *   completed. Messages take receives in the order of their posts. If the SRQ was filled after a
 *   receive was taken, that receive can't be returned: it stays in its slot, and a reset drops it.
 * - The receive queue of a QP with an SRQ has at most one receive: rq.cons is rq.prod or rq.prod -
 *   1. rq.prod and rq.cons_cached are equal, and the depth is 0, so a post finds no free entry.
 *   Both advance when a receive is dropped, so that the receive of a waiting SEND_WITH_INV is not
 *   mistaken for a later one (rsoft_sq::rq_pos).
 * - A QP in ERR or RESET takes no receive: it takes them under rq.lock, after a check of the state,
 *   and the flush that follows the transition to ERR also takes rq.lock.
 */

#ifndef RSOFT_SRQ_H
#define RSOFT_SRQ_H

#include "../base/rsoft.h"

struct rsoft_srq {
	struct rmem_srq srq;
	rte_ticketlock_t lock;
	uint32_t prod; /* receives posted so far; written under lock, atomic */
	uint32_t cons; /* receives taken so far; written under lock, atomic */
	uint32_t mask;
	uint32_t depth;
	uint32_t limit; /* 0: not armed */
	uint32_t max_sge;
	uint32_t stride;
	uint8_t *ring;
	uint32_t xrcd;                  /* XRC: number of its domain; else 0 */
	const struct rmem_xrcd *domain; /* XRC: the handle that it was created with */
	uint32_t number;                /* XRC: its number, 24 bits */
	struct rsoft_cq *cq;            /* XRC: CQ of its receives */
	struct rsoft_qp owner;          /* only device and PD, for rsoft_access() */
	LIST_ENTRY(rsoft_srq) entry;    /* in rsoft_dev::srqs */
};

int rsoft_srq_create(struct rmem_srq *srq, const struct rmem_srq_conf *conf);
int rsoft_srq_destroy(struct rmem_srq *srq);
int rsoft_srq_modify(struct rmem_srq *srq, const struct rmem_srq_attr *attr, uint32_t mask);
int rsoft_srq_query(struct rmem_srq *srq, struct rmem_srq_attr *attr);
int rsoft_srq_post_recv(struct rmem_srq *srq, const struct rmem_recv_wr *wr, uint16_t nb_wr);

/*
 * Move the oldest receive of the SRQ to the empty receive queue of a QP; NULL if there is none. A
 * receive that is too short for a message of an unreliable service stays in the SRQ: then the
 * result is a copy of it, with which the caller finds that out and drops the message. Under
 * rq.lock.
 */
struct rsoft_rqe *rsoft_srq_take(struct rsoft_qp *qp, uint64_t length);

/* Return a taken receive to the head of the SRQ, unless that is full. Under rq.lock. */
void rsoft_srq_return(struct rsoft_rq *rq);

static inline struct rsoft_srq *
rsoft_srq_of(struct rmem_srq *srq)
{
	return (struct rsoft_srq *)srq;
}

/* Whether a receive is posted. */
static inline bool
rsoft_srq_has_recv(const struct rsoft_srq *srq)
{
	return __atomic_load_n(&srq->prod, __ATOMIC_ACQUIRE) !=
			__atomic_load_n(&srq->cons, __ATOMIC_ACQUIRE);
}

/* Bytes per slot. */
static inline uint32_t
rsoft_rqe_stride(uint32_t max_sge)
{
	return (uint32_t)(sizeof(struct rsoft_rqe) + max_sge * sizeof(struct rmem_sge));
}

/* Fill a slot. */
static __rte_always_inline void
rsoft_rqe_fill(struct rsoft_rqe *rqe, const struct rmem_recv_wr *wr)
{
	rqe->wr_id = wr->wr_id;
	rqe->num_sge = wr->num_sge;
	if (likely(wr->num_sge == 1))
		rqe->sge[0] = wr->sg_list[0];
	else if (wr->num_sge != 0)
		memcpy(rqe->sge, wr->sg_list, wr->num_sge * sizeof(rqe->sge[0]));
}

#endif /* RSOFT_SRQ_H */
