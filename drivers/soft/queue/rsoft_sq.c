/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The send queue: acceptance and queueing; see rsoft_sq.h. */

#include <errno.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_malloc.h>

#include "../chaos/rsoft_chaos.h"
#include "../mem/rsoft_handle.h"
#include "../mem/rsoft_mw.h"
#include "rsoft_sq.h"
#include "rsoft_ud.h"

int
rsoft_sq_init(struct rsoft_sq *sq, const struct rmem_qp_conf *conf, int socket_id)
{
	/* Twice the limit: completed requests stay in the ring until the executor removes them. */
	uint32_t size = rte_align32pow2(RTE_MAX(2 * conf->max_send_wr, 1u));

	rte_ticketlock_init(&sq->lock);
	sq->depth = conf->max_send_wr;
	sq->mask = size - 1;
	sq->sig_mask = size - 1;
	sq->stride = RTE_ALIGN_CEIL((uint32_t)(sizeof(struct rmem_send_wr) +
						    conf->max_send_sge * sizeof(struct rmem_sge)) +
					conf->max_inline_data,
			RTE_CACHE_LINE_SIZE);
	sq->ring = rte_zmalloc_socket(
			"rsoft_sq", (size_t)size * sq->stride, RTE_CACHE_LINE_SIZE, socket_id);
	sq->sig = rte_zmalloc_socket(
			"rsoft_sig", size * sizeof(*sq->sig), RTE_CACHE_LINE_SIZE, socket_id);
	if (sq->ring == NULL || sq->sig == NULL) {
		rsoft_sq_fini(sq);
		return -ENOMEM;
	}
	return 0;
}

void
rsoft_sq_fini(struct rsoft_sq *sq)
{
	rte_free(sq->sig);
	rte_free(sq->ring);
	sq->sig = NULL;
	sq->ring = NULL;
}

/* Free the entries of requests whose completion was polled. */
static void
sq_reclaim(struct rsoft_qp *qp)
{
	struct rsoft_cq *cq = rsoft_cq_of(qp->qp.send_cq);
	uint32_t tail = __atomic_load_n(&qp->sq.sig_tail, __ATOMIC_ACQUIRE);

	while (qp->sq.sig_head != tail) {
		const struct rsoft_sig *sig = &qp->sq.sig[qp->sq.sig_head & qp->sq.sig_mask];

		if (!rsoft_cq_is_polled(cq, sig->cq_pos))
			break;
		qp->sq.retired = sig->sq_pos;
		qp->sq.sig_head++;
	}
}

/* Number of free entries; exact if less than wanted. */
static inline uint32_t
sq_nb_free(struct rsoft_qp *qp, uint32_t wanted)
{
	struct rsoft_sq *sq = &qp->sq;

	if (unlikely(sq->depth - (sq->posted - sq->retired) < wanted))
		sq_reclaim(qp);
	return sq->depth - (sq->posted - sq->retired);
}

/*
 * Accept consecutive requests of an opcode that rmem_wr_is_bind() finds valid, and return their
 * number. The opcode is a constant, and the loop calls no function, so that it is short.
 */
static __rte_always_inline uint32_t
sq_accept_run(const struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint32_t n, uint8_t opcode)
{
	uint32_t i;

	for (i = 0; i < n && wr[i].opcode == opcode &&
			likely(rmem_wr_is_bind(&qp->qp, &qp->limits, &wr[i]));
			i++)
		rsoft_handle_set_tag(qp, &wr[i]);
	return i;
}

/* Whether sq_accept_binds() has the opcode: other requests need no call of it. */
static inline bool
sq_is_bind(const struct rmem_send_wr *wr)
{
	return wr->opcode == RMEM_WR_REG_MR || wr->opcode == RMEM_WR_BIND_MW ||
			wr->opcode == RMEM_WR_UMR;
}

static __rte_noinline uint32_t
sq_accept_binds(const struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint32_t n)
{
	switch (wr->opcode) {
	case RMEM_WR_REG_MR:
		return sq_accept_run(qp, wr, n, RMEM_WR_REG_MR);
	case RMEM_WR_BIND_MW:
		return sq_accept_run(qp, wr, n, RMEM_WR_BIND_MW);
	case RMEM_WR_UMR:
		return sq_accept_run(qp, wr, n, RMEM_WR_UMR);
	default:
		return 0;
	}
}

uint32_t
rsoft_sq_accept(struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint32_t nb_wr, int *ret)
{
	int err;
	uint32_t i, done, n = RTE_MIN(nb_wr, sq_nb_free(qp, nb_wr));

	*ret = n == nb_wr ? 0 : -ENOSPC;
	if (unlikely(n == 0 && nb_wr != 0)) {
		/* A malformed request is -EINVAL, even if the queue is full. */
		err = rmem_wr_check_full(&qp->qp, &qp->limits, wr);
		*ret = err != 0 ? err : -ENOSPC;
		return 0;
	}
	for (i = rmem_wr_nb_simple(&qp->limits, wr, n); i < n; i += done) {
		done = sq_is_bind(&wr[i]) ? sq_accept_binds(qp, &wr[i], n - i) : 0;
		if (likely(done != 0))
			continue;
		done = 1;
		err = rmem_wr_check(&qp->qp, &qp->limits, &wr[i]);
		if (unlikely(err != 0)) {
			*ret = err;
			break;
		}
		rsoft_handle_set_tag(qp, &wr[i]);
	}
	qp->sq.posted += i;
	return i;
}

int
rsoft_sq_accept_bind(struct rsoft_qp *qp, const struct rmem_send_wr *wr)
{
	if (unlikely(sq_nb_free(qp, 1) == 0))
		return -ENOSPC;
	rsoft_handle_set_tag(qp, wr);
	qp->sq.posted++;
	return 0;
}

static void
sq_push_one(struct rsoft_qp *qp, struct rmem_send_wr *slot, const struct rmem_send_wr *wr)
{
	struct rmem_sge *sge = (struct rmem_sge *)(void *)(slot + 1);
	uint8_t *data = (uint8_t *)(sge + qp->limits.max_send_sge);
	uint32_t i;

	*slot = *wr;
	slot->sg_list = sge;
	if (unlikely(qp->qp.type == RMEM_QPT_UD))
		rsoft_ud_keep(qp, slot);
	if (!rmem_wr_has_sges(wr)) {
		slot->num_sge = 0;
		/* No request has both SGEs and objects. */
		if (likely(!rsoft_qp_is_claimed(qp)))
			rmem_wr_hold(wr);
		return;
	}
	for (i = 0; i < wr->num_sge; i++) {
		sge[i] = wr->sg_list[i];
		if (wr->flags & RMEM_SEND_INLINE) {
			memcpy(data, (const void *)(uintptr_t)sge[i].addr, sge[i].length);
			sge[i].addr = (uintptr_t)data;
			data += sge[i].length;
		}
	}
}

void
rsoft_sq_push(struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint32_t nb_wr)
{
	uint32_t i;

	for (i = 0; i < nb_wr; i++)
		sq_push_one(qp, rsoft_sq_slot(&qp->sq, qp->sq.prod + i), &wr[i]);
	__atomic_store_n(&qp->sq.prod, qp->sq.prod + nb_wr, __ATOMIC_RELEASE);
}

static bool
sq_is_sound_one(const struct rsoft_qp *qp, const struct rmem_send_wr *wr)
{
	const struct rmem_sge *sge = (const struct rmem_sge *)(const void *)(wr + 1);
	const uint8_t *data = (const uint8_t *)(sge + qp->limits.max_send_sge);
	uint64_t left = qp->limits.max_inline_data;
	uint32_t i;

	if (wr->opcode >= RMEM_WR_OPCODE_NB || wr->sg_list != sge ||
			wr->num_sge > qp->limits.max_send_sge ||
			(wr->num_sge != 0 && !rmem_wr_has_sges(wr)))
		return false;
	if ((rmem_wr_info[wr->opcode].props & RMEM_WR_WORD) != 0 && wr->num_sge != 1 &&
			!qp->limits.is_late)
		return false;
	if (!(wr->flags & RMEM_SEND_INLINE))
		return true;
	for (i = 0; i < wr->num_sge; i++) {
		if (sge[i].addr != (uintptr_t)data || sge[i].length > left)
			return false;
		data += sge[i].length;
		left -= sge[i].length;
	}
	return true;
}

bool
rsoft_sq_is_sound(const struct rsoft_qp *qp, uint32_t pos, uint32_t n)
{
	uint32_t i, nb = likely(!rsoft_qp_is_claimed(qp)) ? 0 : n;

	for (i = 0; i < nb; i++) {
		if (unlikely(!sq_is_sound_one(qp, rsoft_sq_slot(&qp->sq, pos + i))))
			return false;
	}
	return true;
}

void
rsoft_sq_add_pending(struct rsoft_qp *qp)
{
	struct rsoft_dev *dev = qp->dev;

	/* Another lcore may hold the lock for a copy of 1 MiB; sq.lock keeps the QP in the list. */
	if (qp->sq.is_pending)
		return;
	rsoft_lock(&dev->pending_lock);
	if (!qp->sq.is_pending) {
		qp->sq.is_pending = 1;
		TAILQ_INSERT_TAIL(&dev->pending, qp, next);
		__atomic_store_n(&dev->nb_pending, dev->nb_pending + 1, __ATOMIC_RELAXED);
	}
	rte_ticketlock_unlock(&dev->pending_lock);
}

void
rsoft_sq_remove_pending(struct rsoft_qp *qp)
{
	qp->sq.is_pending = 0;
	TAILQ_REMOVE(&qp->dev->pending, qp, next);
	__atomic_store_n(&qp->dev->nb_pending, qp->dev->nb_pending - 1, __ATOMIC_RELAXED);
}

void
rsoft_sq_leave_pending(struct rsoft_qp *qp)
{
	rsoft_lock(&qp->dev->pending_lock);
	if (qp->sq.is_pending)
		rsoft_sq_remove_pending(qp);
	rte_ticketlock_unlock(&qp->dev->pending_lock);
}

void
rsoft_sq_begin_with(struct rsoft_qp_list *list, struct rsoft_qp *first)
{
	struct rsoft_qp *qp;

	while ((qp = TAILQ_FIRST(list)) != first) {
		TAILQ_REMOVE(list, qp, next);
		TAILQ_INSERT_TAIL(list, qp, next);
	}
}

void
rsoft_sq_drop(struct rsoft_qp *qp)
{
	struct rsoft_sq *sq = &qp->sq;
	uint32_t i, nb;

	/* Invalidated keys stay invalid, and the grace period has ended. */
	if (sq->wait == RSOFT_WAIT_GRACE) {
		for (i = 0; i < sq->nb_inv; i++) {
			const struct rmem_send_wr *wr = rsoft_sq_slot(sq, sq->cons + i);

			if (wr->opcode == RMEM_WR_BIND_MW)
				rsoft_mw_bind_drop(wr);
			else
				rsoft_key_release(wr->opcode == RMEM_WR_LOCAL_INV
								? rsoft_key_at(qp->dev,
										  wr->invalidate_rkey)
								: sq->inv_key);
		}
	}
	sq->wait = RSOFT_WAIT_NONE;
	nb = rsoft_sq_nb_readable(sq, sq->cons);
	/* Stop at an invalid request: requests of a claimed QP hold no references. */
	for (i = 0; i < nb && rsoft_sq_is_sound(qp, sq->cons + i, 1); i++) {
		const struct rmem_send_wr *wr = rsoft_sq_slot(sq, sq->cons + i);

		rsoft_handle_undo_tag(wr);
		rsoft_sq_unhold(qp, wr);
	}
	rsoft_sq_pop(sq, __atomic_load_n(&sq->prod, __ATOMIC_ACQUIRE) - sq->cons);
	sq->posted = sq->done = sq->retired = 0;
	sq->sig_head = sq->sig_tail = 0;
	if (qp->chaos != NULL)
		rsoft_chaos_qp_reset(qp->chaos, sq->cons);
	if (rsoft_qp_is_claimed(qp) && qp->dev->nb_engines == 0)
		rsoft_sq_add_pending(qp);
}

void
rsoft_sq_report_drained(struct rsoft_qp *qp, bool is_draining)
{
	bool is_sqd = __atomic_load_n(&qp->state, __ATOMIC_RELAXED) == RMEM_QPS_SQD;

	if (is_sqd && is_draining)
		return;
	qp->sq.has_to_report = false;
	if (is_sqd)
		rmem_qp_async_event(&qp->qp, RMEM_ASYNC_SQ_DRAINED);
}
