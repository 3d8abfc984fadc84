/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The retransmission timer, the retry count, the rewind to the oldest unacknowledged packet, and
 * the window, which is reduced when packets are lost.
 *
 * The window is as TCP's: a NAK halves it, a timeout reduces it to one PSN. It then doubles in
 * each round trip up to half of its previous size, and grows by one PSN in each of the next ones.
 * READs and shared payloads are sent in pieces, which may exceed a small window. Shared memory
 * loses none, so the window stays.
 *
 * Invariant: req.deadline is 0 unless packets wait for an acknowledgement. It is set when the first
 * such packet is sent (rwire_req.c), by an acknowledgement that leaves other packets
 * (rwire_comp.c), and when a QP resumes (rwire_qp.c). Each run of the requester checks it. All of
 * this is under sq.lock. For UC and UD, it is the end of a wait for the port: rwire_tx_is_late().
 */

#include <rte_cycles.h>

#include "../queue/rsoft_sq.h"
#include "rwire.h"

#define TIMER_MAX_UNREAD 255

void
rwire_shrink(struct rwire_qp *q, uint32_t window)
{
	struct rwire_req *req = &q->req;

	if (rwire_is_lossless(q->wire))
		return; /* dropped by a responder that was busy */
	req->threshold = RTE_MAX(req->window / 2, UINT32_C(2));
	req->grown = 0;
	rwire_set_window(q, RTE_MAX(window, UINT32_C(1)));
}

void
rwire_rewind(struct rwire_qp *q)
{
	struct rwire_req *req = &q->req;

	req->sq_pos = q->qp->sq.cons;
	req->psn = req->una;
	req->is_rewound = true;
	RWIRE_COUNT(q->wire->stats.retransmits);
}

int
rwire_retry(struct rwire_qp *q)
{
	if (q->req.retry_left == 0)
		return RMEM_WC_RETRY_EXC_ERR;
	q->req.retry_left--;
	rwire_rewind(q);
	return RMEM_WC_SUCCESS;
}

/* The peer has read packets, but acknowledges them late: request it. Returns whether to wait. */
static bool
timer_ask(struct rwire_qp *q, const struct rwire_unread *now)
{
	struct rwire_unread *unread = &q->req.unread;

	/* Packets sent since the last expiry must be read, too. */
	unread->sent = now->sent;
	unread->taken = now->taken;
	if (now->sent == now->taken) {
		/* Each is one PSN. If the peer reads none of them, it is busy, but alive. */
		unread->sent += (uint32_t)rwire_psn_diff(q->req.psn, q->req.una);
		unread->is_asked = true;
		rwire_rewind(q);
	}
	return --unread->left != 0;
}

/*
 * Whether the timer is restarted without a retry: the peer's device, on this host, is receiving
 * packets but has not reached the ones of this QP, or they wait for space. A NIC is never as late
 * as a process without CPU time. Or it has received all of them, and none has requested an
 * acknowledgement, which is only late: then it is requested, without a retry, since a device whose
 * QP does not exist has received them, too. At most TIMER_MAX_UNREAD times per packet, because the
 * peer itself reports what it has received.
 */
static bool
timer_is_unread(struct rwire_qp *q)
{
	struct rwire_port *port = q->wire->port;
	struct rwire_unread *unread = &q->req.unread, now = {.una = q->req.una};
	bool is_known, is_late, is_first = unread->left == 0 || unread->una != q->req.una;

	rsoft_lock(&q->wire->tx_lock);
	rwire_port_set_tx_slot(port, q->grh.gid_slot);
	is_known = port->ops->tx_count(port, &q->addr, &now.sent, &now.taken);
	rte_ticketlock_unlock(&q->wire->tx_lock);
	is_late = rwire_psn_diff(q->req.una, q->req.asked_psn) >= 0 && q->req.psn != q->req.una &&
			(int32_t)((is_first ? now.sent : unread->sent) - now.taken) <= 0;
	if (is_known && is_first && (now.sent != now.taken || is_late)) {
		*unread = now;
		unread->left = TIMER_MAX_UNREAD;
		return true;
	}
	if (is_known && is_late)
		return timer_ask(q, &now);
	if (is_known && !is_first && unread->is_asked && now.sent == unread->sent &&
			now.sent != now.taken)
		return --unread->left != 0;
	if (!is_known || is_first || now.taken == unread->taken ||
			(q->req.psn != q->req.una && (int32_t)(unread->sent - now.taken) <= 0)) {
		unread->left = 0;
		return false;
	}
	unread->taken = now.taken;
	return --unread->left != 0;
}

bool
rwire_timer_is_early(const struct rwire_qp *q)
{
	const struct rwire_req *req = &q->req;
	uint64_t left = req->deadline - __atomic_load_n(&q->wire->now, __ATOMIC_RELAXED);

	/* The difference is larger if the clock was set back, or was read long before the timer
	 * started; usually it was read a moment before. */
	return req->deadline == 0 || (left != 0 && left <= 2 * req->timeout);
}

/*
 * A random part of a quarter of the timeout. QPs that lost packets together would otherwise send,
 * and lose, them together again. IBTA 9.9.2.2.1 permits four times the timeout.
 */
static uint64_t
timer_jitter(const struct rwire_qp *q, uint64_t now)
{
	uint64_t hash = (now ^ ((uint64_t)q->req.una << 32)) * UINT64_C(0x9e3779b97f4a7c15);

	return RTE_MIN(q->req.timeout, rte_get_tsc_hz()) * (hash >> 48) >> 18;
}

int
rwire_timer_check(struct rwire_qp *q)
{
	struct rwire_req *req = &q->req;
	uint64_t now;

	/* A poll, or the thread, follows soon; reading the clock costs as much as four fences. */
	if (!rwire_service_is_reliable(q->service) || rwire_timer_is_early(q))
		return RMEM_WC_SUCCESS;
	now = rwire_clock();
	/* No deadline is later than this, unless the clock was set back. */
	if (req->deadline > now + req->timeout)
		req->deadline = now + req->timeout;
	if (now < req->deadline)
		return RMEM_WC_SUCCESS;
	/* The answer may wait in the port after other packets, but not if these are a flood. */
	if (__atomic_load_n(&q->wire->quiet_at, __ATOMIC_RELAXED) < req->deadline &&
			now < req->deadline + req->timeout)
		return RMEM_WC_SUCCESS;
	if (timer_is_unread(q)) {
		req->deadline = now + req->timeout;
		return RMEM_WC_SUCCESS;
	}
	RWIRE_COUNT(q->wire->stats.timeouts);
	req->deadline = 0; /* restarted by the next packet */
	rwire_shrink(q, 1);
	if (req->is_rewound && !rwire_is_lossless(q->wire)) /* the packet was lost again */
		req->rnr_until = now + timer_jitter(q, now);
	return rwire_retry(q);
}
