/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Entry points of the fast path: post_send, post_recv and poll_cq.
 *
 * Without engines a post executes requests from the caller's array if nothing is queued. A request
 * that can't execute (no receive at the peer, no peer, an invalidation that waits for other lcores)
 * is copied to the queue with all following ones, and the QP is added to the device's pending list,
 * which every poll of a CQ of the device retries. With engines a post only queues.
 */

#include <errno.h>

#include "mem/rsoft_grace.h"
#include "queue/rsoft_inline.h"
#include "rsoft_post.h"
#include "queue/rsoft_req.h"
#include "queue/rsoft_resp.h"
#include "queue/rsoft_rq.h"
#include "queue/rsoft_sq.h"
#include "wire/rwire.h"

/* The keys of more MRs do not fit in the cache of a core: prefetch them for a burst. */
#define RSOFT_PREFETCH_MRS 4096

/* Maximum number of QPs of the pending list that a poll retries. */
#define POST_MAX_VISITS 64

/* Maximum number of consecutive polls that find a completion without making progress. */
#define POST_MAX_FOUND 16

void
rsoft_post_drain(struct rsoft_qp *qp, unsigned int lcore)
{
	struct rwire_qp *wire = __atomic_load_n(&qp->wire, __ATOMIC_ACQUIRE);

	if (wire != NULL)
		rwire_req_run(wire, lcore, true);
	else
		rsoft_req_drain(qp, lcore);
	if (unlikely(qp->sq.has_to_report))
		rsoft_sq_report_drained(qp, rwire_qp_is_draining(qp));
	if (unlikely(rsoft_qp_is_claimed(qp)))
		rsoft_rq_flush_late(qp);
}

/*
 * So many QPs of the pending list were retried, and next is the following one. Returns whether
 * others are left of the round, in which each QP has its turn.
 */
static bool
post_end_visits(struct rsoft_dev *dev, uint32_t nb, struct rsoft_qp *next)
{
	if (next == NULL) {
		dev->nb_unvisited = 0;
		return false;
	}
	rsoft_sq_begin_with(&dev->pending, next);
	if (dev->nb_unvisited == 0)
		dev->nb_unvisited = dev->nb_pending;
	dev->nb_unvisited -= RTE_MIN(dev->nb_unvisited, nb);
	return dev->nb_unvisited != 0;
}

/*
 * Retry QPs of the pending list: a poll costs no more if many wait for their peers, which complete
 * requests without it. Returns whether some can go on; *is_quiet: no QP can, until a packet arrives
 * or a timer expires. Under pending_lock.
 */
static bool
post_drain_pending(struct rsoft_dev *dev, unsigned int lcore, bool *is_quiet)
{
	struct rsoft_qp *qp, *next;
	bool is_busy = false;
	uint64_t copied = 0;
	uint32_t nb = 0;

	for (qp = TAILQ_FIRST(&dev->pending); qp != NULL && nb < POST_MAX_VISITS; qp = next, nb++) {
		next = TAILQ_NEXT(qp, next);
		/* Only try the lock: a post takes sq.lock before pending_lock. */
		if (!rte_ticketlock_trylock(&qp->sq.lock)) {
			*is_quiet = false;
			continue;
		}
		rsoft_post_drain(qp, lcore);
		*is_quiet &= rwire_qp_is_quiet(qp);
		copied += rwire_qp_copied(qp);
		if (rsoft_sq_is_empty(&qp->sq) && !rsoft_qp_is_claimed(qp))
			rsoft_sq_remove_pending(qp);
		else
			is_busy |= rwire_qp_has_more(qp);
		rte_ticketlock_unlock(&qp->sq.lock);
		/* Receive first, then continue with the next QPs. */
		if (copied >= RWIRE_DIRECT_BUDGET && next != NULL) {
			*is_quiet = false;
			(void)post_end_visits(dev, nb + 1, next);
			return true;
		}
	}
	*is_quiet &= qp == NULL;
	return post_end_visits(dev, nb, qp) || is_busy;
}

static uint64_t
post_now(const struct rsoft_dev *dev)
{
	return __atomic_load_n(&dev->wire->now, __ATOMIC_RELAXED);
}

/*
 * Whether a poll of the CQ found a moment ago that no pending QP could go on. This poll then only
 * receives, at half the cost.
 */
static bool
post_is_quiet(const struct rsoft_dev *dev, const struct rsoft_cq *cq)
{
	/* The difference is also large if the clock was set back, and if quiet_at is 0. */
	return post_now(dev) - cq->quiet_at < dev->wire->quiet_cycles;
}

/*
 * Body of rsoft_post_progress(). With a CQ, for its consumer: if the CQ has a completion then, the
 * pending QPs are left to the next call, and nb_found is incremented.
 */
static bool
post_progress(struct rsoft_dev *dev, struct rsoft_cq *cq)
{
	bool is_busy = false, is_quiet = true;
	unsigned int lcore;

	/* Yield before receiving, so that this call receives packets sent by the peer during it. */
	if (dev->wire != NULL)
		rwire_yield(dev->wire);
	lcore = rsoft_grace_enter();
	if (lcore == LCORE_ID_ANY)
		return false;
	if (dev->wire != NULL)
		is_busy = rwire_progress(dev->wire, lcore);
	if (cq != NULL && rsoft_cq_entry(cq, cq->cons) != NULL) {
		rsoft_grace_leave(lcore);
		cq->nb_found++;
		return is_busy;
	}
	if (cq != NULL)
		cq->nb_found = 0;
	/* If another lcore holds the lock, it does the same work. */
	if ((is_busy || cq == NULL || !post_is_quiet(dev, cq)) &&
			rte_ticketlock_trylock(&dev->pending_lock)) {
		is_busy |= post_drain_pending(dev, lcore, &is_quiet);
		rte_ticketlock_unlock(&dev->pending_lock);
		if (cq != NULL)
			cq->quiet_at = is_quiet && !is_busy ? post_now(dev) : 0;
	}
	rsoft_grace_leave(lcore);
	if (dev->wire != NULL && !is_busy)
		rwire_idle(dev->wire);
	return is_busy;
}

bool
rsoft_post_progress(struct rsoft_dev *dev)
{
	return post_progress(dev, NULL);
}

/* Queue accepted requests for the engine, or for the wire, and send as far as the window
 * permits. */
static void
post_queued(struct rsoft_qp *qp, unsigned int lcore, const struct rmem_send_wr *wr, uint32_t n)
{
	const bool has_engine = qp->dev->nb_engines != 0;
	bool has_left = false;

	if (!has_engine) {
		rsoft_grace_enter_lcore(lcore);
		rsoft_lock(&qp->sq.lock);
	}
	rsoft_sq_push(qp, wr, n);
	if (has_engine)
		return;
	rsoft_sq_add_pending(qp);
	if (qp->wire == NULL || !rwire_req_copy_defer(qp->wire)) {
		rsoft_post_drain(qp, lcore);
		has_left = rwire_qp_has_more(qp) && rwire_qp_copied(qp) != 0;
	}
	rte_ticketlock_unlock(&qp->sq.lock);
	rsoft_grace_leave(lcore);
	if (unlikely(has_left))
		rwire_wake(qp->dev->wire);
}

/* Queue accepted requests, or execute them and queue those that can't execute. */
static __rte_always_inline void
post_accepted(struct rsoft_qp *qp, unsigned int lcore, const struct rmem_send_wr *wr, uint32_t n)
{
	uint32_t done = 0;

	if (unlikely(qp->is_queued)) {
		post_queued(qp, lcore, wr, n);
		return;
	}
	rsoft_grace_enter_lock(lcore, &qp->sq.lock);
	if (unlikely(n > 1 &&
			    __atomic_load_n(&qp->dev->nb_mr, __ATOMIC_RELAXED) >
					    RSOFT_PREFETCH_MRS))
		rsoft_resp_prefetch(qp, wr, n);
	if (likely(rsoft_sq_is_empty(&qp->sq)))
		done = rsoft_req_exec(qp, lcore, false, wr, sizeof(*wr), n);
	if (unlikely(done < n)) {
		rsoft_sq_push(qp, wr + done, n - done);
		RSOFT_COUNT(qp->stats.queued, n - done);
		rsoft_sq_add_pending(qp);
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
	int ret;

	if (unlikely(__atomic_load_n(&qp->state, __ATOMIC_RELAXED) < RMEM_QPS_RTS))
		return -EBUSY;
	if (unlikely(lcore == LCORE_ID_ANY))
		return -EINVAL;
	n = rsoft_sq_accept(qp, wr, nb_wr, &ret);
	if (unlikely(n == 0))
		return ret;
	post_accepted(qp, lcore, wr, n);
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
	int ret;

	if (bind->bind_info.length != 0) {
		wr.bind_mw.mr = bind->bind_info.mr;
		wr.bind_mw.addr = bind->bind_info.addr;
		wr.bind_mw.length = bind->bind_info.length;
		wr.bind_mw.access = bind->bind_info.access;
	}
	if (__atomic_load_n(&qp->state, __ATOMIC_RELAXED) < RMEM_QPS_RTS)
		return -EBUSY;
	if (lcore == LCORE_ID_ANY)
		return -EINVAL;
	ret = rsoft_sq_accept_bind(qp, &wr);
	if (ret == 0)
		post_accepted(qp, lcore, &wr, 1);
	return ret;
}

int
rsoft_post_recv(struct rmem_qp *base, const struct rmem_recv_wr *wr, uint16_t nb_wr)
{
	struct rsoft_qp *qp = (struct rsoft_qp *)base;
	int n = rsoft_rq_post(qp, wr, nb_wr);

	if (unlikely(n > 0 && __atomic_load_n(&qp->state, __ATOMIC_SEQ_CST) == RMEM_QPS_ERR))
		rsoft_rq_flush(qp);
	return n;
}

/*
 * Make progress. Over shared memory, a poll that finds a completion leaves packets in the ring, and
 * one that receives a completion leaves the pending QPs, for up to POST_MAX_FOUND consecutive
 * polls: a program that polls two CQs in turn then makes progress once for both, and a message is
 * returned before other work is done.
 */
static void
post_poll(struct rsoft_dev *dev, struct rsoft_cq *cq, uint16_t nb_wc)
{
	if (dev->wire == NULL || !rwire_is_lossless(dev->wire) || nb_wc == 0 ||
			cq->nb_found >= POST_MAX_FOUND) {
		cq->nb_found = 0;
		post_progress(dev, NULL);
	} else if (rsoft_cq_entry(cq, cq->cons) != NULL) {
		cq->nb_found++;
	} else {
		post_progress(dev, cq);
	}
}

int
rsoft_poll_cq(struct rmem_cq *base, struct rmem_wc *wc, uint16_t nb_wc)
{
	struct rsoft_cq *cq = rsoft_cq_of(base);
	struct rsoft_dev *dev = rsoft_dev_of(&base->obj);

	if (unlikely(rte_lcore_id() == LCORE_ID_ANY))
		return -EINVAL;
	if (unlikely(__atomic_load_n(&dev->nb_pending, __ATOMIC_RELAXED) != 0))
		post_poll(dev, cq, nb_wc);
	return rsoft_post_poll(cq, wc, nb_wc);
}
