/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Timers, started, changed and stopped at random: the earliest one is found. */

#include <stdlib.h>

#include "../test.h"

#include "ibcm_heap.h"

#define NB    200
#define STEPS 20000
#define TIMES 500 /* so few that some are equal */

static struct ibcm_timer timers[NB];

/* The earliest deadline, and how many run. */
static uint64_t
scan(uint32_t *nb)
{
	uint64_t first = IBCM_NEVER;
	uint32_t i;

	*nb = 0;
	for (i = 0; i < NB; i++) {
		if (timers[i].at == 0)
			continue;
		++*nb;
		first = timers[i].deadline < first ? timers[i].deadline : first;
	}
	return first;
}

static void
test_ibcm_heap(void)
{
	struct ibcm_heap heap = {0};
	struct ibcm_timer *first;
	unsigned int seed = 1;
	uint64_t deadline;
	uint32_t nb;
	int i;

	TEST_ASSERT(ibcm_heap_first(&heap) == NULL);
	TEST_ASSERT(ibcm_heap_reserve(&heap, NB) && heap.max >= NB);
	for (i = 0; i < STEPS; i++) {
		deadline = rand_r(&seed) % 3 == 0 ? IBCM_NEVER : (uint64_t)rand_r(&seed) % TIMES;
		ibcm_heap_set(&heap, &timers[rand_r(&seed) % NB], deadline);
		first = ibcm_heap_first(&heap);
		deadline = scan(&nb);
		TEST_EQ(heap.nb, nb);
		TEST_ASSERT(first == NULL ? deadline == IBCM_NEVER : first->deadline == deadline);
	}
	/* All in order. */
	for (deadline = 0; (first = ibcm_heap_first(&heap)) != NULL;) {
		TEST_ASSERT(first->deadline >= deadline);
		deadline = first->deadline;
		ibcm_heap_set(&heap, first, IBCM_NEVER);
	}
	TEST_EQ(heap.nb, 0);
	ibcm_heap_free(&heap);
}

REGISTER_RMEM_TEST(ibcm_heap_autotest, test_ibcm_heap);
