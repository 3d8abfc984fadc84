/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Rate limits of QPs (IBV_QP_RATE_LIMIT): the payload of requests is sent at most at a rate.
 *
 * Each packet moves req.pace_at, the time of the next one, by the time that its payload takes at
 * the rate. After a pause of the QP, or if it was called late, this time is at most PACE_BURST_MS
 * in the past. So n bytes take at least n / rate - PACE_BURST_MS, without the last packet.
 *
 * A paced QP sends packets also where requests could be copied directly, which has no rate.
 */

#include <rte_cycles.h>

#include "rwire.h"

/* The longest sleep of the thread (rwire_dev.c), so that it can keep up with the rate. */
#define PACE_BURST_MS 10

bool
rwire_pace_is_waiting(struct rwire_qp *q)
{
	struct rwire_req *req = &q->req;
	uint64_t left = req->pace_at - rwire_clock();

	/* It is later than that only if the clock was set back. */
	if ((int64_t)left <= 0 || left > req->pace_cost)
		return false;
	/* The thread sends the next packet unless a poll does. */
	if (!__atomic_load_n(&q->wire->has_waiting, __ATOMIC_RELAXED))
		__atomic_store_n(&q->wire->has_waiting, true, __ATOMIC_RELAXED);
	return true;
}

void
rwire_pace_count(struct rwire_qp *q, uint64_t bytes)
{
	uint64_t earliest = rwire_clock() - rte_get_tsc_hz() / 1000 * PACE_BURST_MS;
	struct rwire_req *req = &q->req;

	req->pace_cost = bytes * req->pace / 1024;
	if ((int64_t)(req->pace_at - earliest) < 0 ||
			req->pace_at - earliest > rte_get_tsc_hz() + req->pace_cost)
		req->pace_at = earliest;
	req->pace_at += req->pace_cost;
}
