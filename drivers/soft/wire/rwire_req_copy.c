/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Requests executed by a copy between processes (port/rwire_copy.h), without packets.
 *
 * - Such a request is one of the oldest, and no packet of the QP is in flight, so requests are
 *   executed in the order of their posts. It has no PSN.
 * - A call copies up to RWIRE_DIRECT_BUDGET bytes, of several requests and a part of the last one,
 *   and never under rwire::rx_lock, so that other QPs are served.
 * - The packet of a request that only lacks a grant for direct execution requests that grant.
 */

#include <rte_cycles.h>

#include "../chaos/rsoft_chaos.h"
#include "../mem/rsoft_key_cache.h"
#include "../queue/rsoft_sq.h"
#include "rwire.h"

/*
 * A program that leaves so many completions in the CQ, or posts so many unsignaled requests, sends
 * a stream of requests. Packets of one message each are then faster, and need no system call each.
 */
#define DIRECT_MAX_BEHIND 16u
#define DIRECT_MIN_STREAM 4096u /* requests of this size and longer are always copied directly */

/*
 * Requests shorter than DIRECT_MIN_STREAM wait for direct access, like longer ones, as long as few
 * of the previous ones had no grant or needed a system call.
 */
#define DIRECT_UNMAPPED     4u
#define DIRECT_MAX_UNMAPPED 16u

/*
 * If no post or poll follows within this time, the program waits for the data of the requests. Then
 * this number of posts is not deferred; twice as many after each further such wait.
 */
#define DIRECT_MAX_WAIT_US    200
#define DIRECT_MIN_UNDEFERRED 64u
#define DIRECT_MAX_LONG_WAITS 8

/* The oldest requests of a QP, as one copy. */
struct direct_burst {
	struct rwire_copy copy;
	uint64_t length[RWIRE_COPY_WRS]; /* of each request */
	struct rsoft_key_cache local;
};

static enum rwire_copy_result
direct_begin(struct rwire_qp *q, struct rwire_copy_link *direct)
{
	struct rwire_port *port = q->wire->port;
	enum rwire_copy_result result;
	unsigned int spins = 0;

	for (;;) {
		rsoft_lock(&q->wire->tx_lock);
		rwire_port_set_tx_slot(port, q->grh.gid_slot);
		result = port->ops->tx_direct(port, &q->addr, direct);
		rte_ticketlock_unlock(&q->wire->tx_lock);
		if (result != RWIRE_COPY_RETRY)
			return result;
		rsoft_relax(&spins);
	}
}

/* Whether the program leaves completions in the CQ; `done` requests have been executed. */
static bool
direct_is_behind(const struct rsoft_qp *qp, uint32_t done)
{
	const struct rsoft_sq *sq = &qp->sq;
	uint32_t behind = RTE_MIN(DIRECT_MAX_BEHIND, sq->sig_mask + 1), tail = sq->sig_tail;
	uint32_t last = tail == 0 ? 0 : sq->sig[(tail - 1) & sq->sig_mask].sq_pos;

	if (done - last >= behind)
		return true;
	return tail >= behind &&
			!rsoft_cq_is_polled(rsoft_cq_of(qp->qp.send_cq),
					sq->sig[(tail - behind) & sq->sig_mask].cq_pos);
}

static bool
direct_is_stream(const struct rsoft_batch *batch)
{
	if (batch->nb_wc != 0)
		return batch->nb_wc >= RTE_MIN(DIRECT_MAX_BEHIND, batch->qp->sq.sig_mask + 1);
	return direct_is_behind(batch->qp, batch->done);
}

/* Length of a request that needs no packet if there is a grant; 0: it needs packets. */
static uint64_t
direct_length(const struct rwire_qp *q, uint32_t pos)
{
	const struct rmem_send_wr *wr = rsoft_sq_slot(&q->qp->sq, pos);
	uint64_t length;

	if (rsoft_chaos_is_planned_at(q->qp, pos))
		return 0;
	if (wr->opcode != RMEM_WR_RDMA_WRITE && wr->opcode != RMEM_WR_RDMA_READ)
		return 0;
	length = rsoft_sges_length(wr->sg_list, wr->num_sge, UINT64_MAX);
	return length <= q->qp->max_msg_size ? length : 0;
}

/* Add the local memory of n bytes of a request, from offset on, as direct_add(). */
static bool
direct_add_local(struct rwire_qp *q, struct direct_burst *burst, const struct rmem_send_wr *wr,
		uint64_t offset, uint64_t n)
{
	struct rwire_copy *copy = &burst->copy;
	struct iovec *iov = &copy->local[copy->nb_local];
	bool is_read = copy->right == RMEM_ACCESS_REMOTE_READ;
	const struct rmem_sge *sge = wr->sg_list;
	uint32_t nb;
	uint64_t at;

	if (likely(wr->num_sge == 1 && (wr->flags & RMEM_SEND_INLINE) == 0 &&
			    copy->nb_local < RTE_DIM(copy->local) &&
			    rsoft_key_cache_check(&burst->local, q->qp, q->qp->dev->lkey_xor,
					    sge->lkey, sge->addr + offset, n,
					    is_read ? RSOFT_NEED_WRITE : RSOFT_NEED_READ, &at) &&
			    !burst->local.is_slow)) {
		iov->iov_base = (uint8_t *)burst->local.key->base + at;
		iov->iov_len = n;
		copy->nb_local++;
		return true;
	}
	if (copy->nb_local + wr->num_sge > RTE_DIM(copy->local))
		return false;
	nb = rwire_sge_iov(q->qp, wr, offset, (uint32_t)n, is_read, iov);
	copy->nb_local += nb;
	return nb != 0;
}

/* Add n bytes of a request, from offset on. False: they are left to packets, or to a later call. */
static bool
direct_add(struct rwire_qp *q, struct direct_burst *burst, const struct rmem_send_wr *wr,
		uint64_t offset, uint64_t n)
{
	struct rwire_copy *copy = &burst->copy;
	struct rwire_range *range = &copy->range[copy->nb];

	if (copy->nb == RWIRE_COPY_WRS || !direct_add_local(q, burst, wr, offset, n))
		return false;
	range->rkey = wr->rdma.rkey;
	range->addr = wr->rdma.remote_addr + offset;
	range->length = n;
	copy->nb++;
	return true;
}

/* Gather the oldest requests, up to n bytes; in SQD only the request in progress. */
static void
direct_gather(struct rwire_qp *q, struct direct_burst *burst, uint64_t n)
{
	const struct rsoft_sq *sq = &q->qp->sq;
	const struct rmem_send_wr *wr = rsoft_sq_slot(sq, sq->cons);
	uint32_t pos = sq->cons, prod = __atomic_load_n(&sq->prod, __ATOMIC_ACQUIRE);
	uint64_t offset = q->req.direct_done, length, part;
	struct rwire_copy *copy = &burst->copy;
	uint8_t opcode = wr->opcode;

	copy->qp_num = q->qpn;
	copy->right = opcode == RMEM_WR_RDMA_READ ? RMEM_ACCESS_REMOTE_READ
						  : RMEM_ACCESS_REMOTE_WRITE;
	copy->nb = 0;
	copy->nb_local = 1;
	burst->local.num = RSOFT_KEY_CACHE_NONE;
	if (__atomic_load_n(&q->qp->state, __ATOMIC_RELAXED) != RMEM_QPS_RTS)
		prod = pos + 1;
	for (; pos != prod && n != 0; pos++, offset = 0) {
		wr = rsoft_sq_slot(sq, pos);
		length = direct_length(q, pos);
		if (wr->opcode != opcode || length == 0)
			break;
		part = RTE_MIN(length - offset, n);
		if (!direct_add(q, burst, wr, offset, part))
			break;
		burst->length[copy->nb - 1] = length;
		n -= part;
	}
}

/* Complete the requests whose bytes are all copied. */
static void
direct_complete(struct rwire_qp *q, struct rsoft_batch *batch, const struct direct_burst *burst)
{
	uint64_t copied = burst->copy.copied, left;
	struct rsoft_sq *sq = &q->qp->sq;
	uint32_t i;

	for (i = 0; copied != 0; i++) {
		left = burst->length[i] - q->req.direct_done;
		if (copied < left) {
			q->req.direct_done += copied;
			break;
		}
		copied -= left;
		q->req.direct_done = 0;
		rsoft_batch_succeed(batch, rsoft_sq_slot(sq, sq->cons + i), burst->length[i]);
	}
	rsoft_sq_pop(sq, i);
	q->req.sq_pos += i;
	q->req.begun = q->req.sq_pos;
}

/* Whether requests of this length are faster as packets if the program sends a stream of them. */
static bool
direct_is_short(const struct rwire_qp *q, uint64_t length)
{
	return length < DIRECT_MIN_STREAM && q->req.nb_unmapped >= DIRECT_MAX_UNMAPPED;
}

/* Note how a copy of nb requests ended. */
static void
direct_note(struct rwire_req *req, enum rwire_copy_result result, bool is_mapped, uint32_t nb)
{
	req->is_mapped = is_mapped;
	if (is_mapped)
		req->nb_unmapped -= (uint8_t)RTE_MIN((uint32_t)req->nb_unmapped, nb);
	if ((!is_mapped || result == RWIRE_COPY_ASK) && req->nb_unmapped < DIRECT_MAX_UNMAPPED)
		req->nb_unmapped += DIRECT_UNMAPPED;
}

/* Copy up to *n bytes of the oldest requests, and subtract the copied bytes from *n. */
static enum rwire_copy_result
direct_requests(struct rwire_qp *q, struct rsoft_batch *batch, uint64_t *n)
{
	uint64_t length = direct_length(q, q->qp->sq.cons);
	enum rwire_copy_result result = RWIRE_COPY_NO;
	struct rwire_copy_link direct;
	struct direct_burst burst;

	if (length == 0 || (direct_is_short(q, length) && direct_is_stream(batch)))
		return RWIRE_COPY_NO;
	burst.copy.is_mapped = false;
	direct_gather(q, &burst, *n);
	if (burst.copy.nb != 0)
		result = direct_begin(q, &direct);
	if (result == RWIRE_COPY_DONE) {
		result = rwire_copy_run(&direct, &burst.copy);
		rwire_copy_end(&direct);
		direct_complete(q, batch, &burst);
		*n -= burst.copy.copied;
	}
	direct_note(&q->req, result, burst.copy.is_mapped, burst.copy.nb);
	if (result == RWIRE_COPY_DONE)
		q->req.direct = RWIRE_DIRECT_WORKS;
	else if (result == RWIRE_COPY_ASK &&
			(q->req.direct == RWIRE_DIRECT_UNKNOWN ||
					q->req.direct == RWIRE_DIRECT_WORKS))
		q->req.direct = RWIRE_DIRECT_ASKED;
	else
		q->req.direct = RWIRE_DIRECT_FAILED;
	return result;
}

bool
rwire_req_copy_is_near(const struct rwire_qp *q, uint32_t pos)
{
	return (q->req.direct == RWIRE_DIRECT_ASKED || q->req.direct == RWIRE_DIRECT_WORKS) &&
			q->req.begun != q->qp->sq.cons && direct_length(q, pos) != 0 &&
			!direct_is_short(q, direct_length(q, pos));
}

/* Whether a request may begin or continue, and all preceding ones have completed. */
static bool
direct_is_next(const struct rwire_qp *q)
{
	const struct rsoft_sq *sq = &q->qp->sq;
	uint32_t state = __atomic_load_n(&q->qp->state, __ATOMIC_RELAXED);

	return !rsoft_sq_is_empty(sq) && q->req.begun == sq->cons && q->req.sq_pos == sq->cons &&
			q->req.rnr_until == 0 &&
			(state == RMEM_QPS_RTS ||
					(state == RMEM_QPS_SQD && q->req.direct_done != 0));
}

static bool
direct_is_possible(const struct rwire_qp *q)
{
	return q->wire->port->has_direct && q->service == RWIRE_RC && q->req.pace == 0 &&
			direct_is_next(q);
}

bool
rwire_req_copy_is_possible(const struct rwire_qp *q)
{
	return q->req.direct != RWIRE_DIRECT_FAILED && direct_is_possible(q) &&
			direct_length(q, q->qp->sq.cons) != 0;
}

/* End the deferral. */
static void
direct_resume(struct rwire_req *req)
{
	uint64_t waited = rwire_clock() - req->deferred_at;

	req->deferred_at = 0;
	if (waited < rte_get_tsc_hz() / US_PER_S * DIRECT_MAX_WAIT_US) {
		req->nb_long_waits = 0;
		return;
	}
	req->nb_undeferred_posts = DIRECT_MIN_UNDEFERRED << req->nb_long_waits;
	req->nb_long_waits += req->nb_long_waits < DIRECT_MAX_LONG_WAITS;
}

bool
rwire_req_copy_run(struct rwire_qp *q, unsigned int lcore)
{
	enum rwire_copy_result result = RWIRE_COPY_DONE;
	uint64_t left = RWIRE_DIRECT_BUDGET;
	struct rsoft_batch batch;

	if (q->req.deferred_at != 0)
		direct_resume(&q->req);
	if (!direct_is_possible(q)) {
		q->req.direct_done = 0;
		return true;
	}
	if (direct_length(q, q->qp->sq.cons) == 0) {
		q->req.direct_done = 0;
		q->req.is_grant_requested = false;
		return true;
	}
	rsoft_batch_begin(&batch, q->qp, lcore, true);
	batch.vendor_err = 0;
	while (result == RWIRE_COPY_DONE && left != 0 && direct_is_next(q))
		result = direct_requests(q, &batch, &left);
	q->req.is_grant_requested = result == RWIRE_COPY_ASK;
	rsoft_batch_end(&batch);
	q->req.copied = RWIRE_DIRECT_BUDGET - left;
	if (result == RWIRE_COPY_DONE && direct_is_next(q))
		return false;
	/* The request at the head starts again, with packets. */
	q->req.direct_done = 0;
	return true;
}

bool
rwire_req_copy_defer(struct rwire_qp *q)
{
	const struct rsoft_sq *sq = &q->qp->sq;
	uint64_t length, total = 0;
	uint32_t pos;

	if (q->req.direct != RWIRE_DIRECT_WORKS || q->req.is_mapped || !direct_is_possible(q) ||
			q->qp->qp.send_cq->channel != NULL ||
			sq->prod - sq->cons >= RWIRE_COPY_WRS || !direct_is_behind(q->qp, sq->done))
		return false;
	for (pos = sq->cons; pos != sq->prod; pos++) {
		length = direct_length(q, pos);
		total += length;
		if (length < DIRECT_MIN_STREAM || total >= RWIRE_DIRECT_BUDGET)
			return false;
	}
	if (q->req.nb_undeferred_posts != 0) {
		q->req.nb_undeferred_posts--;
		return false;
	}
	if (q->req.deferred_at == 0)
		q->req.deferred_at = rwire_clock();
	if (!__atomic_load_n(&q->wire->has_waiting, __ATOMIC_RELAXED))
		__atomic_store_n(&q->wire->has_waiting, true, __ATOMIC_RELAXED);
	return true;
}
