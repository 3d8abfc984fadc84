/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The retransmission timer, the retry count, and the rewind to the oldest unacknowledged packet.
 *
 * Invariant: req.deadline is 0 unless packets wait for an acknowledgement. It is set when the first
 * such packet is sent (rwire_req.c), by an acknowledgement that leaves other packets
 * (rwire_comp.c), and when a QP resumes (rwire_qp.c). Each run of the requester checks it. All of
 * this is under sq.lock.
 */

#include "../queue/rsoft_sq.h"
#include "rwire.h"

#define TIMER_MAX_UNREAD 255

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

/*
 * Whether the timer is restarted without a retry: the peer's device, on this host, is receiving
 * packets but has not reached the ones of this QP, or they wait for space. A NIC is never as late
 * as a process without CPU time. At most TIMER_MAX_UNREAD times per packet, because the peer itself
 * reports what it has received.
 */
static bool
timer_is_unread(struct rwire_qp *q)
{
	const struct rwire_port *port = q->wire->port;
	struct rwire_unread *unread = &q->req.unread, now = {.una = q->req.una};
	bool is_known, is_first = unread->left == 0 || unread->una != q->req.una;

	rsoft_lock(&q->wire->tx_lock);
	is_known = port->ops->tx_count(port, &q->addr, &now.sent, &now.taken);
	rte_ticketlock_unlock(&q->wire->tx_lock);
	if (is_known && is_first && now.sent != now.taken) {
		*unread = now;
		unread->left = TIMER_MAX_UNREAD;
		return true;
	}
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
	 * started. */
	return req->deadline == 0 || (left != 0 && left <= req->timeout);
}

int
rwire_timer_check(struct rwire_qp *q)
{
	struct rwire_req *req = &q->req;
	uint64_t now;

	/* A poll, or the thread, follows soon; reading the clock costs as much as four fences. */
	if (rwire_timer_is_early(q))
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
	return rwire_retry(q);
}
