/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The doorbell: where send requests are executed, and when.
 *
 * Without engines a post executes straight from the caller's array while nothing is queued.
 * A request that cannot execute (no receive at the peer, no peer, an invalidation that waits for
 * other lcores) is copied to the queue with all following ones, and the QP to the device's pending
 * list, which every poll of a CQ of the device works on. With engines a post only queues.
 */

#include <errno.h>

#include <rte_prefetch.h>

#include "rsoft_grace.h"
#include "rsoft_key.h"
#include "rsoft_mw.h"
#include "rsoft_post.h"
#include "rsoft_req.h"
#include "rsoft_sq.h"
#include "wire/rwire.h"

/* More MRs than this do not stay in a core's cache: fetch ahead over a burst. */
#define RSOFT_PREFETCH_MRS 4096

void
rsoft_post_drain(struct rsoft_qp *qp, unsigned int lcore)
{
	struct rwire_qp *wire = __atomic_load_n(&qp->wire, __ATOMIC_ACQUIRE);

	if (wire != NULL)
		rwire_req_run(wire, lcore);
	else
		rsoft_req_drain(qp, lcore);
}

/* Have the pending list try the QP until its queue is empty. Under sq.lock. */
static void
rsoft_post_pend(struct rsoft_qp *qp)
{
	struct rsoft_dev *dev = qp->dev;

	rte_ticketlock_lock(&dev->pending_lock);
	if (!qp->sq.is_pending) {
		qp->sq.is_pending = 1;
		TAILQ_INSERT_TAIL(&dev->pending, qp, next);
		__atomic_store_n(&dev->nb_pending, dev->nb_pending + 1, __ATOMIC_RELAXED);
	}
	rte_ticketlock_unlock(&dev->pending_lock);
}

/* Under pending_lock. */
static void
rsoft_post_unpend(struct rsoft_qp *qp)
{
	qp->sq.is_pending = 0;
	TAILQ_REMOVE(&qp->dev->pending, qp, next);
	__atomic_store_n(&qp->dev->nb_pending, qp->dev->nb_pending - 1, __ATOMIC_RELAXED);
}

bool
rsoft_post_progress(struct rsoft_dev *dev)
{
	unsigned int lcore = rsoft_grace_enter();
	struct rsoft_qp *qp, *next;
	bool is_owing = false;

	if (lcore == LCORE_ID_ANY)
		return false;
	if (dev->wire != NULL)
		is_owing = rwire_progress(dev->wire, lcore);
	/* Another lcore at it is as good. */
	if (rte_ticketlock_trylock(&dev->pending_lock)) {
		for (qp = TAILQ_FIRST(&dev->pending); qp != NULL; qp = next) {
			next = TAILQ_NEXT(qp, next);
			/* Only try: a post takes sq.lock first, pending_lock second. */
			if (!rte_ticketlock_trylock(&qp->sq.lock))
				continue;
			rsoft_post_drain(qp, lcore);
			if (rsoft_sq_is_empty(&qp->sq))
				rsoft_post_unpend(qp);
			rte_ticketlock_unlock(&qp->sq.lock);
		}
		rte_ticketlock_unlock(&dev->pending_lock);
	}
	rsoft_grace_leave(lcore);
	return is_owing;
}

void
rsoft_post_drop(struct rsoft_qp *qp)
{
	struct rsoft_sq *sq = &qp->sq;
	uint32_t i;

	rte_ticketlock_lock(&qp->dev->pending_lock);
	if (sq->is_pending)
		rsoft_post_unpend(qp);
	rte_ticketlock_unlock(&qp->dev->pending_lock);
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
	for (; sq->cons != sq->prod; rsoft_sq_pop(sq, 1))
		rsoft_sq_cancel(rsoft_sq_slot(sq, sq->cons), true);
	sq->posted = sq->done = sq->retired = 0;
	sq->sig_head = sq->sig_tail = 0;
}

/*
 * With many MRs, fetch over the burst: first the keys, then what the rkeys open. Only what
 * is valid is followed, and nothing is decided here.
 */
static void
rsoft_post_prefetch(const struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint32_t n)
{
	const struct rsoft_qp *peer = __atomic_load_n(&qp->peer, __ATOMIC_ACQUIRE);
	const uint32_t rdma = RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_READ;
	const struct rsoft_dev *dev = qp->dev;
	uint32_t i;

	if (peer == NULL)
		return;
	for (i = 0; i < n; i++) {
		if (!(rmem_wr_info[wr[i].opcode].remote_access & rdma) || wr[i].num_sge == 0)
			continue;
		rte_prefetch0(rsoft_key_at(dev, wr[i].sg_list[0].lkey));
		rte_prefetch0(rsoft_key_at(peer->dev, wr[i].rdma.rkey));
	}
	for (i = 0; i < n; i++) {
		const struct rsoft_key *key;

		if (!(rmem_wr_info[wr[i].opcode].remote_access & rdma))
			continue;
		key = rsoft_key_at(peer->dev, wr[i].rdma.rkey);
		if ((rsoft_word_rights(__atomic_load_n(&key->word, __ATOMIC_ACQUIRE)) &
				    (RSOFT_VALID | RSOFT_SLOW)) == RSOFT_VALID)
			__builtin_prefetch((const void *)((uintptr_t)key->base +
							   (wr[i].rdma.remote_addr - key->iova)),
					1);
	}
}

/* Queue accepted requests for the engine, or for the wire, and send as the window allows. */
static void
rsoft_post_queued(
		struct rsoft_qp *qp, unsigned int lcore, const struct rmem_send_wr *wr, uint32_t n)
{
	if (qp->dev->nb_engines != 0) {
		rsoft_sq_push(qp, wr, n);
		return;
	}
	rsoft_grace_enter_lcore(lcore);
	rte_ticketlock_lock(&qp->sq.lock);
	rsoft_sq_push(qp, wr, n);
	rsoft_post_pend(qp);
	rsoft_post_drain(qp, lcore);
	rte_ticketlock_unlock(&qp->sq.lock);
	rsoft_grace_leave(lcore);
}

/* Queue accepted requests, or execute them and queue those that can't run. */
static __rte_always_inline void
rsoft_post_accepted(
		struct rsoft_qp *qp, unsigned int lcore, const struct rmem_send_wr *wr, uint32_t n)
{
	uint32_t done = 0;

	if (unlikely(qp->is_queued)) {
		rsoft_post_queued(qp, lcore, wr, n);
		return;
	}
	rsoft_grace_enter_lcore(lcore);
	rte_ticketlock_lock(&qp->sq.lock);
	if (unlikely(n > 1 &&
			    __atomic_load_n(&qp->dev->nb_mr, __ATOMIC_RELAXED) >
					    RSOFT_PREFETCH_MRS))
		rsoft_post_prefetch(qp, wr, n);
	if (likely(rsoft_sq_is_empty(&qp->sq)))
		done = rsoft_req_exec(qp, lcore, false, wr, sizeof(*wr), n);
	if (unlikely(done < n)) {
		rsoft_sq_push(qp, wr + done, n - done);
		RSOFT_COUNT(qp->stats.queued, n - done);
		rsoft_post_pend(qp);
	}
	rte_ticketlock_unlock(&qp->sq.lock);
	rsoft_grace_leave(lcore);
}

int
rsoft_post_send(struct rmem_qp *base, const struct rmem_send_wr *wr, uint16_t nb_wr)
{
	struct rsoft_qp *qp = (struct rsoft_qp *)base;
	unsigned int lcore = rte_lcore_id();
	uint32_t n;
	int rc;

	if (unlikely(__atomic_load_n(&qp->state, __ATOMIC_RELAXED) == RMEM_QPS_RESET))
		return -EBUSY;
	if (unlikely(lcore >= RTE_MAX_LCORE))
		return -EINVAL;
	n = rsoft_sq_accept(qp, wr, nb_wr, &rc);
	if (unlikely(n == 0))
		return rc;
	rsoft_post_accepted(qp, lcore, wr, n);
	return (int)n;
}

int
rsoft_post_bind_mw(struct rmem_qp *base, struct rmem_mw *mw, const struct rmem_mw_bind *bind)
{
	struct rsoft_qp *qp = (struct rsoft_qp *)base;
	unsigned int lcore = rte_lcore_id();
	struct rmem_send_wr wr = {
			.wr_id = bind->wr_id,
			.opcode = RMEM_WR_BIND_MW,
			.flags = (uint8_t)bind->flags,
			.bind_mw.mw = mw,
			.bind_mw.key_tag = rmem_rkey_next_tag(mw->rkey),
	};
	int rc;

	if (bind->bind_info.length != 0) {
		wr.bind_mw.mr = bind->bind_info.mr;
		wr.bind_mw.addr = bind->bind_info.addr;
		wr.bind_mw.length = bind->bind_info.length;
		wr.bind_mw.access = bind->bind_info.access;
	}
	if (__atomic_load_n(&qp->state, __ATOMIC_RELAXED) == RMEM_QPS_RESET)
		return -EBUSY;
	if (lcore >= RTE_MAX_LCORE)
		return -EINVAL;
	rc = rsoft_sq_accept_bind(qp, &wr);
	if (rc == 0)
		rsoft_post_accepted(qp, lcore, &wr, 1);
	return rc;
}
