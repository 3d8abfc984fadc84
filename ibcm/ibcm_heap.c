/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A binary heap: each operation visits one path between the root and a leaf. */

#include <stdlib.h>

#include "ibcm_heap.h"

#define MIN_TIMERS 64

bool
ibcm_heap_reserve(struct ibcm_heap *heap, uint32_t nb)
{
	uint32_t max = heap->max < MIN_TIMERS ? MIN_TIMERS : heap->max;
	struct ibcm_timer **timers;

	if (nb <= heap->max)
		return true;
	while (max < nb)
		max *= 2;
	timers = realloc(heap->timers, ((size_t)max + 1) * sizeof(struct ibcm_timer *));
	if (timers == NULL)
		return false;
	heap->timers = timers;
	heap->max = max;
	return true;
}

void
ibcm_heap_free(struct ibcm_heap *heap)
{
	free(heap->timers);
}

static void
put(struct ibcm_heap *heap, uint32_t at, struct ibcm_timer *timer)
{
	heap->timers[at] = timer;
	timer->at = at;
}

/* Store a timer at the position of its deadline. The entry at must be free. */
static void
place(struct ibcm_heap *heap, uint32_t at, struct ibcm_timer *timer)
{
	uint32_t child;

	for (; at > 1 && heap->timers[at / 2]->deadline > timer->deadline; at /= 2)
		put(heap, at, heap->timers[at / 2]);
	while ((child = at * 2) <= heap->nb) {
		if (child < heap->nb &&
				heap->timers[child + 1]->deadline < heap->timers[child]->deadline)
			child++;
		if (heap->timers[child]->deadline >= timer->deadline)
			break;
		put(heap, at, heap->timers[child]);
		at = child;
	}
	put(heap, at, timer);
}

void
ibcm_heap_set(struct ibcm_heap *heap, struct ibcm_timer *timer, uint64_t deadline)
{
	uint32_t at = timer->at;
	struct ibcm_timer *last;

	timer->deadline = deadline;
	if (deadline != IBCM_NEVER) {
		place(heap, at != 0 ? at : ++heap->nb, timer);
		return;
	}
	if (at == 0)
		return;
	timer->at = 0;
	last = heap->timers[heap->nb--];
	if (last != timer)
		place(heap, at, last);
}

struct ibcm_timer *
ibcm_heap_first(const struct ibcm_heap *heap)
{
	return heap->nb != 0 ? heap->timers[1] : NULL;
}
