/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Posts and polls of a device with chaos=: they decide which of the posted requests fail, and call
 * the ordinary functions. Other devices execute no code of this file.
 */

#include "chaos/rsoft_chaos.h"
#include "queue/rsoft_srq.h"
#include "rsoft_dev.h"
#include "rsoft_post.h"

/* Inverting a bit of the tag gives a value that is neither an rkey nor an lkey of any MR or
 * window. */
#define OTHER_TAG UINT32_C(0x40)

static int
post(struct rmem_qp *base, const struct rmem_send_wr *wr, uint16_t n)
{
	if (unlikely(((struct rsoft_qp *)base)->dev->args.sanitize != 0))
		return rsoft_thread_check_fp.post_send(base, wr, n);
	return rsoft_post_send(base, wr, n);
}

/*
 * Whether the request may end with the status: not if retries are unlimited, and a zero-length
 * request does not check its rkey (IBTA C9-88), except a FLUSH.
 */
static bool
is_possible(const struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint32_t status)
{
	uint64_t length = 0;
	uint32_t i;

	/* Only a signaled request can lose its completion, and a CQ may ignore that. */
	if (status == RSOFT_CHAOS_EVENTS + RMEM_ASYNC_CQ_ERR)
		return ((wr->flags & RMEM_SEND_SIGNALED) != 0 || qp->sig_all) &&
				!rsoft_cq_ignores_overrun(rsoft_cq_of(qp->qp.send_cq));
	if (status == RMEM_WC_RNR_RETRY_EXC_ERR)
		return qp->conn.rnr_retry != 7;
	if (status != RMEM_WC_REM_ACCESS_ERR || wr->opcode == RMEM_WR_FLUSH)
		return true;
	/* The post refuses a request with too many SGEs. */
	if (wr->num_sge > qp->limits.max_send_sge)
		return false;
	for (i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	return length != 0;
}

/* Post a request with an rkey that the peer refuses, so that the peer's QP also fails. */
static int
post_bad_rkey(struct rsoft_qp *qp, const struct rmem_send_wr *wr, const struct rsoft_chaos_hit *hit)
{
	struct rmem_send_wr bad = *wr;
	int ret;

	if (rmem_wr_info[wr->opcode].remote_access == RMEM_ACCESS_REMOTE_ATOMIC)
		bad.atomic.rkey ^= OTHER_TAG;
	else
		bad.rdma.rkey ^= OTHER_TAG;
	ret = post(&qp->qp, &bad, 1);
	if (ret == 1)
		rsoft_chaos_log_hit(qp->chaos, hit, wr);
	return ret;
}

/* Post a request that a rule hits. */
static int
post_hit(struct rsoft_qp *qp, const struct rmem_send_wr *wr, const struct rsoft_chaos_hit *hit)
{
	uint32_t pos = qp->sq.posted;
	int ret;

	if (!is_possible(qp, wr, hit->status))
		return post(&qp->qp, wr, 1);
	if (hit->status == RMEM_WC_REM_ACCESS_ERR)
		return post_bad_rkey(qp, wr, hit);
	rsoft_chaos_plan(qp->chaos, pos, hit);
	ret = post(&qp->qp, wr, 1);
	if (ret != 1)
		rsoft_chaos_unplan(qp->chaos, pos);
	return ret;
}

/* Post requests, some of which rules match. */
static int
post_matched(struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint32_t nb_wr)
{
	struct rsoft_chaos_hit hit;
	uint32_t n, nb_posted, done = 0;
	int ret = 0;

	while (done < nb_wr) {
		n = rsoft_chaos_next(qp->chaos, wr + done, nb_wr - done, &hit);
		ret = n == 0 ? 0 : post(&qp->qp, wr + done, (uint16_t)n);
		nb_posted = ret < 0 ? 0 : (uint32_t)ret;
		if (nb_posted == n && hit.use != NULL && hit.status == 0) {
			ret = rsoft_chaos_refuse(qp->chaos, &hit, wr + done + n);
			done += n;
			break;
		}
		if (nb_posted == n && hit.use != NULL) {
			ret = post_hit(qp, wr + done + n, &hit);
			nb_posted += ret == 1;
		}
		n += hit.use != NULL;
		done += nb_posted;
		if (nb_posted < n) {
			rsoft_chaos_uncount(qp->chaos, &hit, wr + done, n - nb_posted);
			break;
		}
	}
	return done != 0 ? (int)done : ret;
}

/* Whether a rule matches one of the requests; most bursts have one opcode. */
static inline bool
is_matched(const struct rsoft_chaos_qp *qp, const struct rmem_send_wr *wr, uint32_t n)
{
	uint32_t i, others = 0;

	for (i = 1; i < n; i++)
		others |= wr[i].opcode ^ wr[0].opcode;
	if (likely(others == 0))
		return n != 0 && (qp->opcodes & rsoft_chaos_opcode(wr)) != 0;
	for (i = 0; i < n && (qp->opcodes & rsoft_chaos_opcode(&wr[i])) == 0; i++)
		;
	return i != n;
}

static int
chaos_post_send(struct rmem_qp *base, const struct rmem_send_wr *wr, uint16_t nb_wr)
{
	struct rsoft_qp *qp = (struct rsoft_qp *)base;

	if (qp->chaos == NULL || !is_matched(qp->chaos, wr, nb_wr))
		return post(base, wr, nb_wr);
	return post_matched(qp, wr, nb_wr);
}

static int
post_recv(struct rmem_qp *base, const struct rmem_recv_wr *wr, uint16_t n)
{
	if (unlikely(((struct rsoft_qp *)base)->dev->args.sanitize != 0))
		return rsoft_thread_check_fp.post_recv(base, wr, n);
	return rsoft_post_recv(base, wr, n);
}

static int
chaos_post_recv(struct rmem_qp *base, const struct rmem_recv_wr *wr, uint16_t nb_wr)
{
	struct rsoft_chaos_qp *chaos = ((struct rsoft_qp *)base)->chaos;
	int i, ret = 0;

	if (chaos == NULL)
		return post_recv(base, wr, nb_wr);
	for (i = 0; i < nb_wr; i++) {
		ret = rsoft_chaos_recv(chaos, &wr[i]);
		if (ret == 0)
			ret = post_recv(base, &wr[i], 1);
		if (ret != 1)
			break;
	}
	return i != 0 ? i : ret;
}

static int
chaos_srq_post_recv(struct rmem_srq *srq, const struct rmem_recv_wr *wr, uint16_t nb_wr)
{
	struct rsoft_chaos *chaos = rsoft_dev_of(&srq->obj)->chaos;
	int i, ret = 0;

	for (i = 0; i < nb_wr; i++) {
		ret = rsoft_chaos_call(chaos, RSOFT_CHAOS_SRQ_POST_RECV);
		if (ret == 0)
			ret = rsoft_srq_post_recv(srq, &wr[i], 1);
		if (ret != 1)
			break;
	}
	return i != 0 ? i : ret;
}

static int
poll_cq(struct rmem_cq *base, struct rmem_wc *wc, uint16_t n)
{
	if (unlikely(rsoft_dev_of(&base->obj)->args.sanitize != 0))
		return rsoft_thread_check_fp.poll_cq(base, wc, n);
	return rsoft_poll_cq(base, wc, n);
}

/* Exchange the timestamps of this poll's completion and of the held one. */
static void
swap_time(struct rsoft_cq *cq)
{
	if (cq->times != NULL)
		RTE_SWAP(cq->times[cq->mask + 1], cq->chaos->held_time);
}

/* Return the completion that others have overtaken. */
static int
return_held(struct rsoft_cq *cq, struct rmem_wc *wc)
{
	cq->chaos->is_held = false;
	*wc = cq->chaos->held;
	swap_time(cq);
	return 1;
}

static bool
is_recv(const struct rsoft_cqe *cqe)
{
	return (cqe->info >> RSOFT_WC_SHIFT(opcode) & RMEM_WC_RECV) != 0;
}

/*
 * Number of completions, n at most, that can be returned now; *use: the rule that delays the one
 * after them, or NULL.
 */
static uint16_t
count_passed(struct rsoft_cq *cq, uint16_t n, struct rsoft_chaos_use **use)
{
	const struct rsoft_cqe *cqe;
	uint32_t pos = cq->cons;
	uint16_t nb = 0;

	*use = NULL;
	for (; nb < n && (cqe = rsoft_cq_entry(cq, pos)) != NULL; pos++) {
		if (rsoft_cqe_is_void(cqe))
			continue;
		*use = rsoft_chaos_cq_next(cq->chaos, pos, is_recv(cqe));
		if (*use != NULL)
			break;
		nb++;
	}
	return nb;
}

/*
 * While a completion is held, return completions of other QPs one by one, and, if a receive is
 * held, those of its own QP's send queue. The held one is returned before those that follow it in
 * its queue, before one that a rule hits, and at the latest after the number of polls of its rule.
 * Receives that follow one that is late wait until then.
 */
static int
poll_around(struct rsoft_cq *cq, struct rmem_wc *wc)
{
	struct rsoft_chaos_cq *chaos = cq->chaos;
	const struct rsoft_cqe *next;
	bool is_next_recv;

	if (!rsoft_chaos_cq_waits(chaos))
		return return_held(cq, wc);
	next = rsoft_cq_peek(cq);
	if (next == NULL)
		return 0;
	is_next_recv = is_recv(next);
	if ((uint32_t)(next->info >> RSOFT_WC_SHIFT(qp_num)) == chaos->held.qp_num) {
		if (!chaos->is_recv)
			return return_held(cq, wc);
		if (is_next_recv)
			return 0;
	}
	if (rsoft_chaos_cq_next(chaos, cq->cons, is_next_recv) != NULL)
		return return_held(cq, wc);
	return poll_cq(&cq->cq, wc, 1);
}

/* Delay the next completion, which may be of a receive, by a rule. */
static int
delay(struct rsoft_cq *cq, struct rsoft_chaos_use *use, bool is_next_recv, struct rmem_wc *wc)
{
	int ret;

	if (!rsoft_chaos_cq_begin(cq->chaos, use, cq->cons, is_next_recv)) {
		(void)rsoft_chaos_cq_waits(cq->chaos);
		return 0;
	}
	ret = poll_cq(&cq->cq, &cq->chaos->held, 1);
	cq->chaos->is_held = ret == 1;
	if (ret != 1)
		return ret;
	swap_time(cq);
	return poll_around(cq, wc);
}

/*
 * Poll up to a completion that is late, or that others overtake. Rules do not apply to a CQ with a
 * channel, because the event would have to be late too.
 */
static int
chaos_poll_cq(struct rmem_cq *base, struct rmem_wc *wc, uint16_t nb_wc)
{
	struct rsoft_cq *cq = rsoft_cq_of(base);
	struct rsoft_chaos_cq *chaos = cq->chaos;
	const struct rsoft_cqe *next;
	struct rsoft_chaos_use *use;
	int ret;

	if (chaos == NULL || base->channel != NULL || nb_wc == 0)
		return poll_cq(base, wc, nb_wc);
	/* A poll of 0 completions only makes progress. */
	ret = poll_cq(base, wc, 0);
	if (ret < 0)
		return chaos->is_held ? return_held(cq, wc) : ret;
	if (chaos->is_held)
		return poll_around(cq, wc);
	if (rsoft_chaos_cq_waits(chaos))
		return 0;
	next = rsoft_cq_peek(cq);
	if (next == NULL)
		return rsoft_cq_is_overrun(base) ? -EIO : 0;
	nb_wc = count_passed(cq, nb_wc, &use);
	return nb_wc != 0 ? poll_cq(base, wc, nb_wc) : delay(cq, use, is_recv(next), wc);
}

const struct rmem_fp_ops rsoft_chaos_fp = {
		.post_send = chaos_post_send,
		.post_recv = chaos_post_recv,
		.poll_cq = chaos_poll_cq,
		.srq_post_recv = chaos_srq_post_recv,
};
