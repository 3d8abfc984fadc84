/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The receive queue: posted by its QP, consumed by messages of the peer, or flushed. */

#ifndef RSOFT_RQ_H
#define RSOFT_RQ_H

#include <errno.h>

#include "rsoft_cq.h"
#include "rsoft_srq.h"

int rsoft_rq_init(struct rsoft_rq *rq, const struct rmem_qp_conf *conf, int socket_id);

/* Complete all receives with WR_FLUSH_ERR, after the QP's state became ERR. */
void rsoft_rq_flush(struct rsoft_qp *qp);

/*
 * Flush receives that another process posted in ERR, and that it can't flush itself (rsoft_mp.c).
 * From inside of rsoft_grace_enter(), without rq.lock.
 */
void rsoft_rq_flush_late(struct rsoft_qp *qp);

/* Drop all receives; a receive of an SRQ is returned to it. Under rq.lock; no message is in
 * progress. */
void rsoft_rq_drop(struct rsoft_qp *qp);

/* Move a QP to ERR, except from RESET, and flush its receives. The caller holds no rq.lock. */
void rsoft_rq_fail(struct rsoft_qp *qp);

/* The same with an event, an enum rmem_async_event_type. False: it was in RESET or ERR. */
bool rsoft_rq_fail_event(struct rsoft_qp *qp, uint32_t event);

/* A completion was lost: move the QP to ERR, where a flush then generates none. Under rq.lock. */
void rsoft_rq_overrun(struct rsoft_qp *qp);

/* Load the number of posted receives; an invalid value of another process counts as no receive.
 * Under rq.lock. */
static inline void
rsoft_rq_cache_prod(struct rsoft_rq *rq, uint32_t prod)
{
	rq->prod_cached = likely(prod - rq->cons <= rq->mask + 1) ? prod : rq->cons;
}

/* Slot of the receive at a position. */
static inline struct rsoft_rqe *
rsoft_rq_at(const struct rsoft_rq *rq, uint32_t pos)
{
	return (struct rsoft_rqe *)(rq->ring + (size_t)(pos & rq->mask) * rq->stride);
}

/* The receive at the head; NULL if there is none. Under rq.lock. */
static inline struct rsoft_rqe *
rsoft_rq_head(struct rsoft_rq *rq)
{
	if (rq->cons == rq->prod_cached) {
		rsoft_rq_cache_prod(rq, __atomic_load_n(&rq->prod, __ATOMIC_ACQUIRE));
		if (rq->cons == rq->prod_cached)
			return NULL;
	}
	return rsoft_rq_at(rq, rq->cons);
}

/* Slow path of rsoft_rq_take(), for a claimed QP or one with rules of chaos=: the receive, or
 * NULL. */
struct rsoft_rqe *rsoft_rq_take_slow(struct rsoft_qp *qp, struct rsoft_rqe *rqe, uint64_t length);

/* The length for a message that has already begun, to which no rule applies. */
#define RSOFT_RQ_CONTINUED UINT64_MAX

/* Take the receive for a message: the one at the head, or one of the SRQ. Under rq.lock. */
static inline struct rsoft_rqe *
rsoft_rq_take(struct rsoft_qp *qp, uint64_t length)
{
	struct rsoft_rqe *rqe = rsoft_rq_head(&qp->rq);

	if (unlikely(rqe == NULL) && qp->rq.srq != NULL)
		rqe = rsoft_srq_take(qp, length);
	if (unlikely((rsoft_qp_is_claimed(qp) | qp->has_late_recv) != 0) && rqe != NULL)
		return rsoft_rq_take_slow(qp, rqe, length);
	return rqe;
}

/* An unreliable service dropped a message: its receive stays posted. Under rq.lock. */
static inline void
rsoft_rq_keep(struct rsoft_qp *qp)
{
	if (qp->rq.srq != NULL && !rsoft_qp_is_reliable(qp))
		rsoft_srq_return(&qp->rq);
}

/* The same for the message in progress. The caller holds no rq.lock. */
void rsoft_rq_abandon(struct rsoft_qp *qp);

/* Owner of the keys of receives: the QP, or its SRQ, whose PD they belong to. */
static inline const struct rsoft_qp *
rsoft_rq_owner(const struct rsoft_qp *qp)
{
	return likely(qp->rq.srq == NULL) ? qp : &qp->rq.srq->owner;
}

/* Prefetch the receive at the head, which another core wrote. Under rq.lock. */
static inline void
rsoft_rq_prefetch(const struct rsoft_rq *rq)
{
	__builtin_prefetch(rsoft_rq_at(rq, rq->cons));
}

/* Reserve an entry of the CQ for the receive at the head. Under rq.lock. */
static inline uint32_t
rsoft_rq_reserve(struct rsoft_qp *qp)
{
	return rsoft_cq_reserve(rsoft_cq_of(qp->qp.recv_cq), 1);
}

/* Release a reserved entry; the receive stays at the head. Under rq.lock. */
static inline void
rsoft_rq_unreserve(struct rsoft_qp *qp, uint32_t cq_pos)
{
	const struct rsoft_cqe cqe = {.info = rsoft_cqe_info(0, 0, RSOFT_WC_VOID, 0)};

	if (unlikely(!rsoft_cq_write(rsoft_cq_of(qp->qp.recv_cq), cq_pos, &cqe)))
		rsoft_rq_overrun(qp);
}

/* Count a completed receive of a QP with counters. */
void rsoft_rq_count(const struct rsoft_qp *qp, const struct rsoft_cqe *cqe);

/* Complete the receive at the head in the reserved entry. Under rq.lock. */
static inline void
rsoft_rq_complete(struct rsoft_qp *qp, uint32_t cq_pos, const struct rsoft_cqe *cqe)
{
	if (unlikely(qp->counts != 0))
		rsoft_rq_count(qp, cqe);
	/* Store cons first: the consumer of the completion may post another receive. */
	__atomic_store_n(&qp->rq.cons, qp->rq.cons + 1, __ATOMIC_RELEASE);
	if (unlikely(!rsoft_cq_write(rsoft_cq_of(qp->qp.recv_cq), cq_pos, cqe)))
		rsoft_rq_overrun(qp);
}

/* Complete the n receives at the head of a QP without counters, in their order. Under rq.lock. */
static inline void
rsoft_rq_complete_all(struct rsoft_qp *qp, const struct rsoft_cqe *cqe, uint32_t n)
{
	struct rsoft_cq *cq = rsoft_cq_of(qp->qp.recv_cq);
	uint32_t i, at = rsoft_cq_reserve(cq, n);

	/* Store cons first: the consumer of a completion may post another receive. */
	__atomic_store_n(&qp->rq.cons, qp->rq.cons + n, __ATOMIC_RELEASE);
	for (i = 0; i < n; i++) {
		if (unlikely(!rsoft_cq_write(cq, at + i, &cqe[i])))
			rsoft_rq_overrun(qp);
	}
}

/* Number of free entries; exact if less than wanted. For the posting thread. */
static inline uint32_t
rsoft_rq_nb_free(struct rsoft_rq *rq, uint32_t wanted)
{
	uint32_t room = rq->depth - (rq->prod - rq->cons_cached);

	if (unlikely(room < wanted)) {
		rq->cons_cached = __atomic_load_n(&rq->cons, __ATOMIC_ACQUIRE);
		room = rq->depth - (rq->prod - rq->cons_cached);
	}
	return room;
}

/* Maximum number of slots that are prefetched for a post. */
#define RSOFT_RQ_PREFETCH 32u

/*
 * Prefetch n free slots from a position on. The peer's lcore has read them: without this, the
 * stores to their lines wait for it one after the other.
 */
static inline void
rsoft_rq_prefetch_free(const struct rsoft_rq *rq, uint32_t pos, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < RTE_MIN(n, RSOFT_RQ_PREFETCH); i++)
		rsoft_prefetch_write(rsoft_rq_at(rq, pos + i));
}

/*
 * Post receives; return the number accepted, or -errno. The caller then loads the state of the QP
 * with SEQ_CST, and flushes the receives if it is ERR (rsoft.h).
 */
static __rte_always_inline int
rsoft_rq_post(struct rsoft_qp *qp, const struct rmem_recv_wr *wr, uint16_t nb_wr)
{
	struct rsoft_rq *rq = &qp->rq;
	uint32_t room, i, prod = rq->prod;
	int ret = 0;

	if (unlikely(__atomic_load_n(&qp->state, __ATOMIC_RELAXED) == RMEM_QPS_RESET))
		return -EBUSY;
	if (unlikely(rte_lcore_id() == LCORE_ID_ANY))
		return -EINVAL;
	room = rsoft_rq_nb_free(rq, nb_wr);
	if (nb_wr > 1)
		rsoft_rq_prefetch_free(rq, prod, RTE_MIN(room, (uint32_t)nb_wr));
	for (i = 0; i < nb_wr; i++) {
		struct rsoft_rqe *rqe;

		if (unlikely(wr[i].num_sge > qp->max_recv_sge || wr[i].reserved != 0)) {
			ret = -EINVAL;
			break;
		}
		if (unlikely(i == room)) {
			ret = rq->srq != NULL || rsoft_qp_is_xrc(qp) ? -EINVAL : -ENOSPC;
			break;
		}
		rqe = rsoft_rq_at(rq, prod);
		rsoft_rqe_fill(rqe, &wr[i]);
		prod++;
	}
	if (i == 0)
		return ret;
	__atomic_exchange_n(&rq->prod, prod, __ATOMIC_SEQ_CST);
	return (int)i;
}

#endif /* RSOFT_RQ_H */
