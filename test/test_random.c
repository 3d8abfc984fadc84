/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Random operations against a plain model: every status must be one that the model allows, and
 * every byte of the arena as the model has it. RMEM_SEED=number replays a run. Corruptions
 * show that the check can fail.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "fixture.h"
#include "random_ops.h"
#include "test.h"

#define NB_OPS 20000u

static uint64_t
get_seed(void)
{
	const char *text = getenv("RMEM_SEED");
	uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : rte_rdtsc();

	return seed != 0 ? seed : 1;
}

static int
setup(void)
{
	unsigned int i;

	TEST_RUN(fx_setup_dev());
	memset(&run, 0, sizeof(run));
	run.arena = fx_mem(MODEL_PAGE, MODEL_BYTES);
	run.list = fx_page_list(fx.a.dev, MODEL_MR_PAGES + 1);
	TEST_ASSERT(run.list != NULL);
	for (i = 0; i < NB_DOMAINS; i++) {
		run.pds[i] = fx_pd(fx.a.dev);
		TEST_ASSERT(run.pds[i] != NULL);
	}
	for (i = 0; i < NB_DOMAINS; i++) {
		struct pair *pair = &run.pairs[i];

		pair->pd_b = i;
		TEST_RUN(fx_side_open(&pair->a, fx.a.dev, run.pds[0]));
		TEST_RUN(fx_side_open(&pair->b, fx.a.dev, run.pds[i]));
		TEST_OK(fx_connect_pair(pair->a.qp, pair->b.qp));
	}
	return TEST_SUCCESS;
}

/* Whether the device did something else than the model within nb operations. */
static bool
finds_difference(uint32_t nb)
{
	uint32_t i;

	for (i = 0; i < nb; i++) {
		run.what[0] = '\0';
		if (random_op() != 0)
			return true;
		if (memcmp(run.arena, run.model.bytes, MODEL_BYTES) != 0)
			return true;
	}
	return false;
}

static void
start(uint64_t seed)
{
	run.random = seed;
	fx_fill(run.arena, MODEL_BYTES, (uint32_t)seed);
	memcpy(run.model.bytes, run.arena, MODEL_BYTES);
}

static int
device_does_as_the_model_does(void)
{
	uint64_t seed = get_seed();
	bool is_different;

	start(seed);
	is_different = finds_difference(NB_OPS);
	test_note("seed 0x%" PRIx64 ": %" PRIu64 " requests succeeded, %" PRIu64 " were refused",
			seed, run.nb_succeeded, run.nb_refused);
	if (is_different)
		test_note("replay with RMEM_SEED=0x%" PRIx64 "; differs at: %s", seed, run.what);
	TEST_ASSERT(!is_different);
	/* Neither all nor nothing: else this would prove little. */
	TEST_ASSERT(run.nb_succeeded > NB_OPS / 20);
	TEST_ASSERT(run.nb_refused > NB_OPS / 20);
	return TEST_SUCCESS;
}

static int
checker_notices_a_byte_changed_behind_its_back(void)
{
	start(1);
	TEST_ASSERT(!finds_difference(1000));
	run.arena[random_below(MODEL_BYTES)] ^= 0x10;
	TEST_ASSERT(finds_difference(1));
	return TEST_SUCCESS;
}

/* Some region that can be used on both pairs' requester side. */
static struct model_region *
find_used(bool is_fast)
{
	unsigned int i;

	for (i = 0; i < MODEL_REGIONS; i++) {
		struct model_region *region = &run.model.regions[i];

		if (region->mr != NULL && region->is_valid && region->is_fast == is_fast)
			return region;
	}
	return NULL;
}

/* Run until there is such a region. */
static struct model_region *
run_until_used(bool is_fast)
{
	struct model_region *region = NULL;
	int i;

	start(1);
	for (i = 0; i < 100 && region == NULL; i++) {
		if (finds_difference(200))
			return NULL;
		region = find_used(is_fast);
	}
	return region;
}

static int
checker_notices_rights_that_differ(void)
{
	struct model_region *region = run_until_used(false);

	TEST_ASSERT(region != NULL);
	region->access ^= RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE;
	TEST_ASSERT(finds_difference(NB_OPS));
	return TEST_SUCCESS;
}

static int
checker_notices_a_range_that_differs(void)
{
	struct model_region *region = run_until_used(false);

	TEST_ASSERT(region != NULL);
	region->length += 1;
	region->iova -= 1;
	TEST_ASSERT(finds_difference(NB_OPS));
	return TEST_SUCCESS;
}

static int
checker_notices_a_key_taken_away_behind_its_back(void)
{
	struct model_region *region = run_until_used(true);
	struct rmem_send_wr wr;
	unsigned int pair;

	TEST_ASSERT(region != NULL);
	wr = fx_inv(region->rkey);
	pair = region->pd == 0 ? 0 : 1;
	TEST_STATUS(fx_send(region->pd == 0 ? run.pairs[pair].a.qp : run.pairs[pair].b.qp, &wr),
			RMEM_WC_SUCCESS);
	TEST_ASSERT(finds_difference(NB_OPS));
	return TEST_SUCCESS;
}

static const struct test_case random_cases[] = {
		TEST_CASE(device_does_as_the_model_does),
		TEST_CASE(checker_notices_a_byte_changed_behind_its_back),
		TEST_CASE(checker_notices_rights_that_differ),
		TEST_CASE(checker_notices_a_range_that_differs),
		TEST_CASE(checker_notices_a_key_taken_away_behind_its_back),
};

REGISTER_RMEM_SUITE(random, setup, fx_teardown, random_cases);
