/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A heap of timers, earliest first. A timer is a member of the object to which it belongs.
 *
 * Invariant: ibcm_timer::at is the index of the timer in the heap, or 0.
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
	uint32_t nb;                /* running timers */
	uint32_t max;
};

/* Allocate memory for nb timers; false: no memory. */
bool ibcm_heap_reserve(struct ibcm_heap *heap, uint32_t nb);
void ibcm_heap_free(struct ibcm_heap *heap);
/* Start or change a timer; IBCM_NEVER stops it. Memory for it must be reserved. */
void ibcm_heap_set(struct ibcm_heap *heap, struct ibcm_timer *timer, uint64_t deadline);
/* The earliest timer; NULL if none runs. */
struct ibcm_timer *ibcm_heap_first(const struct ibcm_heap *heap);

#endif /* IBCM_HEAP_H */
