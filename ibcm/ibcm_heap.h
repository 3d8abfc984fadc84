/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A heap of timers, the earliest first. A timer is a member of the object that it belongs to.
 *
 * Invariant: ibcm_timer::at is the entry of the heap that has the timer, or 0.
 */

#ifndef IBCM_HEAP_H
#define IBCM_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#define IBCM_NEVER UINT64_MAX

struct ibcm_timer {
	uint64_t deadline;
	uint32_t at; /* index in ibcm_heap::timers, from 1; 0: not running */
};

struct ibcm_heap {
	struct ibcm_timer **timers; /* by deadline; timers[0] is not used */
	uint32_t nb;                /* that run */
	uint32_t max;
};

/* Have memory for that many timers; false: there is none. */
bool ibcm_heap_reserve(struct ibcm_heap *heap, uint32_t nb);
void ibcm_heap_free(struct ibcm_heap *heap);
/* Start a timer, for which memory is reserved, or change it, or stop it with IBCM_NEVER. */
void ibcm_heap_set(struct ibcm_heap *heap, struct ibcm_timer *timer, uint64_t deadline);
/* The earliest one; NULL: none runs. */
struct ibcm_timer *ibcm_heap_first(const struct ibcm_heap *heap);

#endif /* IBCM_HEAP_H */
