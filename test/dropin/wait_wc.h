/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Waiting for a completion. */

#ifndef WAIT_WC_H
#define WAIT_WC_H

#include <sched.h>

#include <infiniband/verbs.h>

#include "../holds.h"

/* The next completion of a CQ. */
static inline struct ibv_wc
wait_wc(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		sched_yield();
	HOLDS(n == 1);
	return wc;
}

#endif /* WAIT_WC_H */
