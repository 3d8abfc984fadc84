/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * QPs claimed by secondary processes of DPDK.
 *
 * A secondary process writes requests and receives to the queues of its QPs, and reads completions.
 * The primary process executes them, by its engines, or when it polls any CQ of the device.
 *
 * Invariant: a secondary process takes no lock, holds no reference, and is in no grace section. In
 * shared memory it only writes data that one store publishes, and of which it is the only writer:
 *   sq.prod, after the requests    rq.prod, after the receives    cq.cons, after its copies
 * and fields that only the posting thread reads: sq.posted, sq.retired, sq.sig_head,
 * rq.cons_cached. So a process that is killed at any instruction leaves valid queues, and delays no
 * other thread. Requests that it had not published are lost.
 *
 * Without engines a claimed QP is in the pending list of its device until the claim ends.
 *
 * A killed process can't release the references that a queued request of the primary would hold. So
 * requests of a claimed QP hold none; instead, releasing an object searches the queues of claimed
 * QPs for it.
 */

#include <errno.h>

#include "mem/rsoft_grace.h"
#include "mem/rsoft_key.h"
#include "rsoft_dev.h"
#include "rsoft_engine.h"
#include "mem/rsoft_mr.h"
#include "mem/rsoft_mw.h"
#include "rsoft_post.h"
#include "rsoft_qp.h"
#include "queue/rsoft_rq.h"
#include "queue/rsoft_sq.h"

/* Whether the primary can read the entries of a UMR: they must be in memory that it has mapped at
 * the same address. */
static bool
mp_is_readable(const struct rmem_send_wr *wr)
{
	return wr->opcode != RMEM_WR_UMR || rmem_mp_is_shared(wr->umr.entries);
}

static int
mp_post_send(struct rmem_qp *base, const struct rmem_send_wr *wr, uint16_t nb_wr)
{
	struct rsoft_qp *qp = (struct rsoft_qp *)base;
	uint16_t nb = 0;
	uint32_t n;
	int ret;

	if (unlikely(base->obj.process != rmem_process_number()))
		return -EPERM;
	if (unlikely(__atomic_load_n(&qp->state, __ATOMIC_ACQUIRE) < RMEM_QPS_RTS))
		return -EBUSY;
	if (unlikely(rte_lcore_id() == LCORE_ID_ANY))
		return -EINVAL;
	while (nb < nb_wr && likely(mp_is_readable(&wr[nb])))
		nb++;
	if (unlikely(nb == 0 && nb_wr != 0))
		return -EFAULT;
	n = rsoft_sq_accept(qp, wr, nb, &ret);
	if (unlikely(n == 0))
		return ret;
	rsoft_sq_push(qp, wr, n);
	return (int)n;
}

static int
mp_post_recv(struct rmem_qp *base, const struct rmem_recv_wr *wr, uint16_t nb_wr)
{
	if (unlikely(base->obj.process != rmem_process_number()))
		return -EPERM;
	return rsoft_rq_post((struct rsoft_qp *)base, wr, nb_wr);
}

static int
mp_srq_post_recv(struct rmem_srq *srq, const struct rmem_recv_wr *wr, uint16_t nb_wr)
{
	RTE_SET_USED(srq);
	RTE_SET_USED(wr);
	RTE_SET_USED(nb_wr);
	return -EOPNOTSUPP;
}

static int
mp_poll_cq(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc)
{
	if (unlikely(rte_lcore_id() == LCORE_ID_ANY))
		return -EINVAL;
	return rsoft_post_poll(rsoft_cq_of(cq), wc, nb_wc);
}

/*
 * Claim the CQs of a QP. The poll of an inline message copies it with keys and locks of the
 * primary, so the CQs must have none, also of other QPs.
 */
static int
mp_take_cqs(struct rsoft_qp *qp, uint16_t process)
{
	struct rsoft_cq *send_cq = rsoft_cq_of(qp->qp.send_cq);

	if (rsoft_cq_claim(send_cq, process)) {
		if (rsoft_cq_claim(rsoft_cq_of(qp->qp.recv_cq), process))
			return 0;
		rsoft_cq_unclaim(send_cq);
	}
	RSOFT_LOG(ERR, "QP 0x%06x%s: not claimed: its CQs are in use", qp->qp.qp_num,
			RSOFT_QP_NAME(&qp->qp));
	return -EBUSY;
}

/* Wait until requests whose completions are visible have left the send queue. */
static void
mp_settle(struct rsoft_qp *qp)
{
	rsoft_engine_lock_sq(qp);
	rsoft_engine_unlock_sq(qp);
}

static int
mp_take(struct rsoft_qp *qp, uint16_t process)
{
	int ret;

	if (qp->dev->wire != NULL) {
		RSOFT_LOG(ERR, "QP 0x%06x%s: not claimed: the device has ip=", qp->qp.qp_num,
				RSOFT_QP_NAME(&qp->qp));
		return -EOPNOTSUPP;
	}
	if (rsoft_qp_is_xrc(qp)) {
		RSOFT_LOG(ERR, "QP 0x%06x%s: not claimed: XRC is not supported", qp->qp.qp_num,
				RSOFT_QP_NAME(&qp->qp));
		return -EOPNOTSUPP;
	}
	mp_settle(qp);
	if (!rsoft_sq_is_empty(&qp->sq) || qp->sq.posted != qp->sq.done) {
		RSOFT_LOG(ERR, "QP 0x%06x%s: not claimed: its send queue is not empty",
				qp->qp.qp_num, RSOFT_QP_NAME(&qp->qp));
		return -EBUSY;
	}
	ret = mp_take_cqs(qp, process);
	if (ret != 0)
		return ret;
	rsoft_lock(&qp->rq.lock);
	qp->inline_recv = RSOFT_INLINE_NONE;
	rte_ticketlock_unlock(&qp->rq.lock);
	/* A poll that has found the QP unclaimed has removed it from the list before. */
	rsoft_lock(&qp->sq.lock);
	__atomic_store_n(&qp->is_claimed, true, __ATOMIC_RELEASE);
	if (qp->dev->nb_engines == 0)
		rsoft_sq_add_pending(qp);
	rte_ticketlock_unlock(&qp->sq.lock);
	return 0;
}

static void
mp_release(struct rsoft_qp *qp)
{
	struct rsoft_dev *dev = qp->dev;

	rsoft_qp_reset(&qp->qp);
	rsoft_lock(&dev->pending_lock);
	__atomic_store_n(&qp->is_claimed, false, __ATOMIC_RELEASE);
	if (qp->sq.is_pending)
		rsoft_sq_remove_pending(qp);
	rte_ticketlock_unlock(&dev->pending_lock);
	rsoft_cq_unclaim(rsoft_cq_of(qp->qp.send_cq));
	rsoft_cq_unclaim(rsoft_cq_of(qp->qp.recv_cq));
}

static int
mp_claim(struct rmem_qp *base, uint16_t process)
{
	struct rsoft_qp *qp = (struct rsoft_qp *)base;

	if (process != 0)
		return mp_take(qp, process);
	mp_release(qp);
	return 0;
}

static bool
mp_has_posted(const struct rmem_qp *base, const struct rmem_obj *obj)
{
	struct rsoft_qp *qp = (struct rsoft_qp *)(uintptr_t)base;
	uint32_t pos, nb;
	unsigned int i;

	mp_settle(qp);
	pos = __atomic_load_n(&qp->sq.cons, __ATOMIC_ACQUIRE);
	nb = rsoft_sq_nb_readable(&qp->sq, pos);
	for (; nb != 0; nb--, pos++) {
		const struct rmem_send_wr *wr = rsoft_sq_slot(&qp->sq, pos);

		if (wr->opcode >= RMEM_WR_OPCODE_NB)
			continue;
		for (i = 0; i < RMEM_WR_MAX_HANDLES; i++) {
			if (rmem_wr_obj(wr, i) == obj)
				return true;
		}
	}
	return false;
}

static bool
mp_revoke(struct rmem_obj *obj)
{
	struct rmem_mr *mr = obj->type == RMEM_OBJ_MR ? (struct rmem_mr *)obj : NULL;
	struct rsoft_key *key =
			mr != NULL ? rsoft_mr_of(mr)->key : rsoft_mw_of((struct rmem_mw *)obj)->key;
	uint64_t word = __atomic_load_n(&key->word, __ATOMIC_ACQUIRE);

	/* The process may have been killed between the stores of both keys. */
	if (mr != NULL)
		__atomic_store_n(&mr->lkey, mr->rkey ^ rsoft_dev_of(obj)->lkey_xor,
				__ATOMIC_RELAXED);
	/* A BUSY key is being bound or invalidated by another QP. */
	do {
		if (!(rsoft_word_rights(word) & RSOFT_VALID))
			return false;
	} while (!__atomic_compare_exchange_n(&key->word, &word,
			rsoft_key_word(rsoft_word_rkey(word), RSOFT_BUSY), false, __ATOMIC_SEQ_CST,
			__ATOMIC_RELAXED));
	rsoft_key_note(rsoft_dev_of(obj), key, rsoft_word_rkey(word), RSOFT_HISTORY_INV, NULL,
			NULL);
	rsoft_grace_wait();
	rsoft_key_release(key);
	return true;
}

const struct rmem_mp_ops rsoft_mp_ops = {
		.claim = mp_claim,
		.has_posted = mp_has_posted,
		.revoke = mp_revoke,
		.fp =
				{
						.post_send = mp_post_send,
						.post_recv = mp_post_recv,
						.poll_cq = mp_poll_cq,
						.srq_post_recv = mp_srq_post_recv,
				},
};
