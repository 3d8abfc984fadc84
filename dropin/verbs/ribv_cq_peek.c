/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Check whether a CQ has completions, without removing them. */

#include "ribv.h"

#define MAX_SPINS 256 /* the program may hold the lock for long */

/* Doesn't wait: a thread holds the lock from ibv_start_poll() to ibv_end_poll(), and may itself
 * wait for a lock of the caller. */
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
