/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Shared receive queues; see rsoft_srq.h. */

#include <errno.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_malloc.h>

#include "../mem/rsoft_access.h"
#include "rsoft_srq.h"

static uint8_t *
ring_alloc(const struct rsoft_srq *srq, uint32_t depth)
{
	const struct rsoft_dev *dev = srq->owner.dev;
	uint8_t *ring = rte_zmalloc_socket("rsoft_srq",
			(size_t)rte_align32pow2(depth) * srq->stride, RTE_CACHE_LINE_SIZE,
			(int)(int64_t)dev->args.socket);

	if (ring == NULL)
		RSOFT_LOG(ERR, "SRQ: no memory for %u receives of %u SGEs", depth, srq->max_sge);
	return ring;
}

static struct rsoft_rqe *
slot(uint8_t *ring, uint32_t stride, uint32_t at)
{
	return (struct rsoft_rqe *)(ring + (size_t)at * stride);
}

int
rsoft_srq_create(struct rmem_srq *base, const struct rmem_srq_conf *conf)
{
	struct rsoft_dev *dev = rsoft_dev_of(&base->obj);
	struct rsoft_srq *srq = rsoft_srq_of(base);

	rte_ticketlock_init(&srq->lock);
	srq->depth = conf->max_wr;
	srq->mask = rte_align32pow2(conf->max_wr) - 1;
	srq->max_sge = conf->max_sge;
	srq->stride = rsoft_rqe_stride(conf->max_sge);
	srq->owner.dev = dev;
	srq->owner.pd = base->pd->handle;
	srq->ring = ring_alloc(srq, conf->max_wr);
	if (srq->ring == NULL)
		return -ENOMEM;
	rsoft_lock(&rsoft_domain->lock);
	LIST_INSERT_HEAD(&dev->srqs, srq, entry);
	rte_ticketlock_unlock(&rsoft_domain->lock);
	return 0;
}

int
rsoft_srq_destroy(struct rmem_srq *base)
{
	struct rsoft_srq *srq = rsoft_srq_of(base);

	rsoft_lock(&rsoft_domain->lock);
	LIST_REMOVE(srq, entry);
	rte_ticketlock_unlock(&rsoft_domain->lock);
	rte_free(srq->ring);
	return 0;
}

/* If fewer receives are posted than an armed limit, report that and disarm it. Under the lock. */
static void
check_limit(struct rsoft_srq *srq)
{
	if (likely(srq->prod - srq->cons >= srq->limit))
		return;
	srq->limit = 0;
	rmem_srq_async_event(&srq->srq, RMEM_ASYNC_SRQ_LIMIT_REACHED);
}

/* Move the receives to another ring, if it is not NULL; return the ring that is not used. Under the
 * lock. */
static uint8_t *
use_ring(struct rsoft_srq *srq, uint8_t *ring, uint32_t depth)
{
	uint32_t mask = rte_align32pow2(depth) - 1, at;
	uint8_t *old = srq->ring;

	if (ring == NULL)
		return NULL;

	for (at = srq->cons; at != srq->prod; at++)
		memcpy(slot(ring, srq->stride, at & mask), slot(old, srq->stride, at & srq->mask),
				srq->stride);
	srq->ring = ring;
	srq->mask = mask;
	srq->depth = depth;
	return old;
}

int
rsoft_srq_modify(struct rmem_srq *base, const struct rmem_srq_attr *attr, uint32_t mask)
{
	struct rsoft_srq *srq = rsoft_srq_of(base);
	uint32_t nb_wr, depth, limit;
	uint8_t *ring = NULL;
	bool is_valid;

	if ((mask & RMEM_SRQ_MAX_WR) != 0) {
		ring = ring_alloc(srq, attr->max_wr);
		if (ring == NULL)
			return -ENOMEM;
	}
	rsoft_lock(&srq->lock);
	nb_wr = srq->prod - srq->cons;
	depth = (mask & RMEM_SRQ_MAX_WR) != 0 ? attr->max_wr : srq->depth;
	limit = (mask & RMEM_SRQ_LIMIT) != 0 ? attr->srq_limit : srq->limit;
	is_valid = nb_wr <= depth && limit <= depth;
	if (is_valid) {
		ring = use_ring(srq, ring, depth);
		srq->limit = limit;
		check_limit(srq);
	}
	rte_ticketlock_unlock(&srq->lock);
	rte_free(ring);
	if (is_valid)
		return 0;
	RSOFT_LOG(ERR, "SRQ: max_wr %u is less than the %u receives posted, or than the limit: %u",
			depth, nb_wr, limit);
	return -EINVAL;
}

int
rsoft_srq_query(struct rmem_srq *base, struct rmem_srq_attr *attr)
{
	struct rsoft_srq *srq = rsoft_srq_of(base);

	rsoft_lock(&srq->lock);
	attr->max_wr = srq->depth;
	attr->max_sge = srq->max_sge;
	attr->srq_limit = srq->limit;
	attr->nb_wr = srq->prod - srq->cons;
	rte_ticketlock_unlock(&srq->lock);
	return 0;
}

int
rsoft_srq_post_recv(struct rmem_srq *base, const struct rmem_recv_wr *wr, uint16_t nb_wr)
{
	struct rsoft_srq *srq = rsoft_srq_of(base);
	uint32_t i, room, prod;
	int ret = 0;

	rsoft_lock(&srq->lock);
	prod = srq->prod;
	room = srq->depth - (prod - srq->cons);
	for (i = 0; i < nb_wr; i++) {
		if (unlikely(wr[i].num_sge > srq->max_sge || wr[i].reserved != 0)) {
			ret = -EINVAL;
			break;
		}
		if (unlikely(i == room)) {
			ret = -ENOSPC;
			break;
		}
		rsoft_rqe_fill(slot(srq->ring, srq->stride, prod++ & srq->mask), &wr[i]);
	}
	__atomic_store_n(&srq->prod, prod, __ATOMIC_RELEASE);
	rte_ticketlock_unlock(&srq->lock);
	return i == 0 ? ret : (int)i;
}

struct rsoft_rqe *
rsoft_srq_take(struct rsoft_qp *qp, uint64_t length)
{
	struct rsoft_rq *rq = &qp->rq;
	struct rsoft_rqe *rqe = (struct rsoft_rqe *)rq->ring, *from;
	struct rsoft_srq *srq = rq->srq;

	rsoft_lock(&srq->lock);
	if (srq->cons == srq->prod) {
		rte_ticketlock_unlock(&srq->lock);
		return NULL;
	}
	from = slot(srq->ring, srq->stride, srq->cons & srq->mask);
	memcpy(rqe, from, rsoft_rqe_stride(from->num_sge));
	if (!rsoft_qp_is_reliable(qp) &&
			rsoft_sges_length(rqe->sge, rqe->num_sge, length) < length) {
		rte_ticketlock_unlock(&srq->lock);
		return rqe;
	}
	__atomic_store_n(&srq->cons, srq->cons + 1, __ATOMIC_RELEASE);
	check_limit(srq);
	rte_ticketlock_unlock(&srq->lock);
	__atomic_store_n(&rq->cons, rq->prod - 1, __ATOMIC_RELEASE);
	return rqe;
}

void
rsoft_srq_return(struct rsoft_rq *rq)
{
	const struct rsoft_rqe *rqe = (const struct rsoft_rqe *)rq->ring;
	struct rsoft_srq *srq = rq->srq;
	uint32_t at;

	if (rq->cons == rq->prod)
		return;
	rsoft_lock(&srq->lock);
	if (srq->prod - srq->cons < srq->depth) {
		at = srq->cons - 1;
		memcpy(slot(srq->ring, srq->stride, at & srq->mask), rqe,
				rsoft_rqe_stride(rqe->num_sge));
		__atomic_store_n(&srq->cons, at, __ATOMIC_RELEASE);
		__atomic_store_n(&rq->cons, rq->prod, __ATOMIC_RELEASE);
	}
	rte_ticketlock_unlock(&srq->lock);
}
