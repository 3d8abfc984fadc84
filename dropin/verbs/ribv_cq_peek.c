/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Whether a CQ has completions; they stay in it. */

#include "ribv.h"

#define MAX_SPINS 256 /* for a lock that a program may hold for long */

/* A thread has the lock from ibv_start_poll() to ibv_end_poll(), and may wait for the caller's. */
bool
ribv_cq_has_wc(struct ribv_cq *cq)
{
	unsigned int spins = 0;
	bool has_wc;

	while (!ribv_trylock(&cq->lock)) {
		if (++spins == MAX_SPINS)
			return true;
		if (spins % 64 == 0)
			sched_yield();
		rte_pause();
	}
	if (cq->first_kept == cq->last_kept) {
		cq->first_kept = 0;
		cq->last_kept = rmem_poll_cq(cq->cq, cq->kept, 1) == 1;
		if (cq->kept_times != NULL)
			cq->kept_times[0] = cq->cq->timestamps[0];
	}
	has_wc = cq->first_kept != cq->last_kept;
	ribv_unlock(&cq->lock);
	return has_wc;
}
