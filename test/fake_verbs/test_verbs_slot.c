/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The number of a completion identifies its QP, or none, whichever QPs use the entries. */

#include <rte_launch.h>
#include <rte_lcore.h>

#include "../../drivers/verbs/rverbs.h"
#include "setup.h"

#define CHANGES     500000u    /* that the two threads are to meet in */
#define MAX_LOOKUPS 400000000u /* where one processor has to do */

static struct rverbs_slot slot;
static uint32_t is_done;

/* As of QPs that come and go; only compared, never looked into. */
static struct rverbs_qp *
qp_of_generation(uint32_t gen)
{
	return (struct rverbs_qp *)((uintptr_t)gen << 4);
}

static int
fill_and_empty(void *arg)
{
	RTE_SET_USED(arg);
	while (!__atomic_load_n(&is_done, __ATOMIC_RELAXED)) {
		rverbs_slot_fill(&slot, qp_of_generation(slot.gen + 1));
		rverbs_slot_empty(&slot);
	}
	return 0;
}

TEST(verbs_slot, slot_returns_the_qp_of_its_generation)
{
	slot.gen = 0;
	TEST_ASSERT(rverbs_slot_qp(&slot, 1) == NULL);
	rverbs_slot_fill(&slot, qp_of_generation(1));
	TEST_ASSERT(rverbs_slot_qp(&slot, 1) == qp_of_generation(1));
	TEST_ASSERT(rverbs_slot_qp(&slot, 0) == NULL);
	rverbs_slot_empty(&slot);
	TEST_ASSERT(rverbs_slot_qp(&slot, 1) == NULL);
	TEST_ASSERT(rverbs_slot_qp(&slot, 2) == NULL);
}

TEST(verbs_slot, reused_slot_returns_no_other_qp)
{
	unsigned int lcore = rte_get_next_lcore(UINT32_MAX, 1, 0);
	uint32_t i, gen, last = 0, nb_changes = 0, nb_wrong = 0;
	struct rverbs_qp *qp;

	TEST_SKIP_IF(lcore == RTE_MAX_LCORE, "one lcore alone");
	__atomic_store_n(&is_done, 0, __ATOMIC_RELAXED);
	TEST_OK(rte_eal_remote_launch(fill_and_empty, NULL, lcore));
	for (i = 0; i < MAX_LOOKUPS && nb_changes < CHANGES; i++) {
		gen = __atomic_load_n(&slot.gen, __ATOMIC_RELAXED) | 1u;
		nb_changes += gen != last;
		last = gen;
		qp = rverbs_slot_qp(&slot, gen);
		nb_wrong += qp != NULL && qp != qp_of_generation(gen);
	}
	__atomic_store_n(&is_done, 1, __ATOMIC_RELAXED);
	TEST_EQ(rte_eal_wait_lcore(lcore), 0);
	TEST_EQ(nb_wrong, 0);
}

TEST_SUITE(verbs_slot, vt_setup_fake, vt_teardown);
