/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Bursts of SENDs; see rsoft_send_burst.h.
 *
 * Cost: the peer's lcore has the lines of the receives and of the entries of its CQ. One lock of
 * the receive queue for the burst, and no locked instruction between messages, so that the stores
 * to these lines overlap; two receives, and two entries, are in a line of 64 bytes. The completions
 * are written together: a line that the peer polls does not return to it after each of them.
 *
 * The states of both QPs, and the keys cached by rsoft_key_cache.h, are loaded once per burst: a
 * burst is short, and a thread that changes them waits for its end. rq.lock is held for copies of
 * at most SEND_MAX bytes each.
 */

#include "rsoft_resp.h"
#include "rsoft_send_burst.h"

#define SEND_MAX 1024u

/* A burst. */
struct send_burst {
	struct rsoft_key_cache from, to; /* of the sender, and of the receives */
	uint8_t *src, *dst;              /* of the message that was checked last, */
	uint32_t length;                 /* and its length */
	uint32_t nb;                     /* messages placed */
	struct rsoft_cqe cqe[RSOFT_BATCH_WCS];
};

/*
 * Whether messages are copied to receives of the QP itself, without rules or counters. The answer
 * may change until rq.lock is taken.
 */
static bool
send_may_burst(const struct rsoft_qp *peer)
{
	return peer->rq.srq == NULL && peer->counts == 0 && !peer->has_late_recv &&
			!rsoft_inline_is_used(peer);
}

/* Whether they still are, and the CQ has space for n completions. Under rq.lock. */
static bool
send_is_plain(const struct rsoft_qp *peer, uint32_t n)
{
	struct rsoft_cq *cq = rsoft_cq_of(peer->qp.recv_cq);

	return rsoft_state_is_responding(__atomic_load_n(&peer->state, __ATOMIC_ACQUIRE)) &&
			!rsoft_qp_is_claimed(peer) && !rsoft_inline_is_used(peer) &&
			!rsoft_cq_ignores_overrun(cq) && rsoft_cq_part(cq, n) == n;
}

/*
 * Check the receive for a message, and both keys, and find the addresses; false: rsoft_resp_send()
 * decides.
 */
static __rte_always_inline bool
send_check(struct send_burst *burst, const struct rsoft_qp *qp, const struct rsoft_qp *peer,
		const struct rsoft_rqe *rqe, const struct rmem_sge *from)
{
	/* Once: another process may change a request that is queued. */
	const uint32_t length = __atomic_load_n(&from->length, __ATOMIC_RELAXED);
	uint64_t from_offset, to_offset;

	if (unlikely(rqe->num_sge != 1 || rqe->sge[0].length < length ||
			    !rsoft_key_cache_check(&burst->from, qp, qp->dev->lkey_xor, from->lkey,
					    from->addr, length, RSOFT_NEED_READ, &from_offset) ||
			    !rsoft_key_cache_check(&burst->to, peer, peer->dev->lkey_xor,
					    rqe->sge[0].lkey, rqe->sge[0].addr, length,
					    RSOFT_NEED_WRITE, &to_offset)))
		return false;
	/* A key with other rules may have no base. */
	if (unlikely(burst->from.is_slow || burst->to.is_slow))
		return false;
	burst->length = length;
	burst->src = burst->from.key->base + from_offset;
	burst->dst = burst->to.key->base + to_offset;
	return true;
}

/* Copy a checked message, and make the completion of its receive. */
static __rte_always_inline bool
send_copy(struct send_burst *burst, const struct rsoft_qp *peer, const struct rsoft_rqe *rqe,
		const struct rmem_send_wr *wr)
{
	struct rsoft_cqe *cqe;

	/* After a copy that failed, rsoft_resp_send() repeats it, and reports the failure. */
	if (unlikely(rsoft_copy(burst->dst, burst->src, burst->length) != RSOFT_SIDE_NONE))
		return false;
	cqe = &burst->cqe[burst->nb++];
	cqe->wr_id = rqe->wr_id;
	cqe->info = rsoft_cqe_info(RMEM_WC_SUCCESS, RMEM_WC_RECV,
			(wr->flags & RMEM_SEND_SOLICITED) != 0 ? RMEM_WC_SOLICITED : 0,
			peer->qp.qp_num);
	cqe->data = rsoft_cqe_data(burst->length, 0);
	cqe->vendor_err = RMEM_VENDOR_ERR_NONE;
	return true;
}

/* Whether a request is a SEND of one SGE, without inline data. */
static __rte_always_inline bool
send_is_simple(const struct rmem_send_wr *wr)
{
	const uint8_t plain =
			(uint8_t) ~(RMEM_SEND_SIGNALED | RMEM_SEND_FENCE | RMEM_SEND_SOLICITED);

	return wr->opcode == RMEM_WR_SEND && wr->num_sge == 1 && (wr->flags & plain) == 0 &&
			wr->sg_list->length - 1u < SEND_MAX;
}

/* Prefetch the next n entries of a CQ, whose lines another lcore polls. */
static __rte_always_inline void
send_prefetch(const struct rsoft_cq *cq, uint32_t n)
{
	uint32_t i, at = __atomic_load_n(&cq->prod, __ATOMIC_RELAXED);

	/* It is 0 while the ring may be replaced; see rsoft_cq.h. */
	if (unlikely(__atomic_load_n(&cq->nb_fast, __ATOMIC_ACQUIRE) == 0))
		n = 0;
	for (i = 0; i < n; i += 2)
		rsoft_prefetch_write(&cq->ring[(at + i) & cq->mask]);
}

/* Place messages in the receives of a peer, and complete these. Under its rq.lock. */
static void
send_place(struct send_burst *burst, const struct rsoft_qp *qp, struct rsoft_qp *peer,
		const uint8_t *wrs, size_t stride, uint32_t n)
{
	struct rsoft_rq *rq = &peer->rq;
	uint32_t i;

	if (rq->prod_cached - rq->cons < n)
		rsoft_rq_cache_prod(rq, __atomic_load_n(&rq->prod, __ATOMIC_ACQUIRE));
	n = RTE_MIN(n, rq->prod_cached - rq->cons);
	if (unlikely(n == 0 || !send_is_plain(peer, n)))
		return;
	rsoft_prefetch_write(&rq->cons);
	for (i = 0; i < n; i += 2)
		__builtin_prefetch(rsoft_rq_at(rq, rq->cons + i));
	send_prefetch(rsoft_cq_of(peer->qp.recv_cq), n);
	for (i = 0; i < n; i++, wrs += stride) {
		const struct rmem_send_wr *wr = (const void *)wrs;
		const struct rsoft_rqe *rqe = rsoft_rq_at(rq, rq->cons + i);

		if (!send_is_simple(wr) || !send_check(burst, qp, peer, rqe, wr->sg_list) ||
				!send_copy(burst, peer, rqe, wr))
			break;
	}
	if (likely(burst->nb != 0)) {
		RSOFT_COUNT(rq->consumed, burst->nb);
		rsoft_rq_complete_all(peer, burst->cqe, burst->nb);
	}
}

/*
 * The same for one message. The entry of the CQ is reserved before the copy, as in
 * rsoft_resp_send().
 */
static __rte_always_inline void
send_place_one(struct send_burst *burst, const struct rsoft_qp *qp, struct rsoft_qp *peer,
		const struct rmem_send_wr *wr)
{
	struct rsoft_rq *rq = &peer->rq;
	const struct rsoft_rqe *rqe = rsoft_rq_head(rq);
	uint32_t at;

	if (unlikely(rqe == NULL || !send_is_plain(peer, 1) || !send_is_simple(wr) ||
			    !send_check(burst, qp, peer, rqe, wr->sg_list)))
		return;
	at = rsoft_rq_reserve(peer);
	if (unlikely(!send_copy(burst, peer, rqe, wr))) {
		rsoft_rq_unreserve(peer, at);
		return;
	}
	RSOFT_COUNT(rq->consumed, 1);
	rsoft_rq_complete(peer, at, burst->cqe);
	rsoft_rq_prefetch(rq);
}

uint32_t
rsoft_send_burst(struct rsoft_qp *qp, const uint8_t *wrs, size_t stride, uint32_t n)
{
	struct rsoft_qp *peer = rsoft_resp_peek_peer(qp);
	struct send_burst burst;

	if (peer == NULL || qp->max_msg_size < SEND_MAX || !send_may_burst(peer))
		return 0;
	burst.nb = 0;
	burst.from.num = burst.to.num = RSOFT_KEY_CACHE_NONE;
	if (n == 1)
		send_prefetch(rsoft_cq_of(peer->qp.recv_cq), 1);
	rte_ticketlock_lock(&peer->rq.lock);
	if (n == 1)
		send_place_one(&burst, qp, peer, (const void *)wrs);
	else
		send_place(&burst, qp, peer, wrs, stride, RTE_MIN(n, (uint32_t)RSOFT_BATCH_WCS));
	rte_ticketlock_unlock(&peer->rq.lock);
	return burst.nb;
}
