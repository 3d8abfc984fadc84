/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Random operations against a plain model: every status must be one that the model allows, and
 * every byte of the arena and every counter as the model has it, and no key may be valid that was
 * another owner's at any time; on one lcore, and on several at a time. RMEM_SEED=number replays a
 * run, RMEM_TEST_OPS=number makes it longer. Corruptions show that the check can fail.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "random_ops.h"

#define NB_OPS  20000u
#define NB_RUNS 3u /* of half as many */

static struct random_run runs[NB_RUNS];
static struct random_keys keys;
static struct random_run *const run = &runs[0];
static unsigned int nb_runs;

static uint64_t
get_seed(void)
{
	const char *text = getenv("RMEM_SEED");
	uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : rte_rdtsc();

	return seed != 0 ? seed : 1;
}

static uint32_t
get_nb_ops(void)
{
	const char *text = getenv("RMEM_TEST_OPS");

	return text != NULL ? (uint32_t)strtoul(text, NULL, 0) : NB_OPS;
}

/* State of a run, on the common device. */
static void
open_run(struct random_run *one, bool has_srq)
{
	struct rmem_dev_info info;
	unsigned int i;

	memset(one, 0, sizeof(*one));
	one->keys = &keys;
	TEST_OK(rmem_dev_info_get(fx.a.dev, &info));
	if ((info.odp.rc & RMEM_ODP_ATOMIC) != 0)
		one->on_demand = RMEM_ACCESS_ON_DEMAND;
	one->arena = fx_mem(MODEL_PAGE, MODEL_BYTES);
	one->list = fx_page_list(fx.a.dev, MODEL_MR_PAGES + 1);
	for (i = 0; i < NB_COUNTERS; i++) {
		one->counters[i] = fx_counter(fx.a.dev);
	}
	for (i = 0; i < NB_DOMAINS; i++) {
		one->pds[i] = fx_pd(fx.a.dev);
	}
	for (i = 0; i < NB_DOMAINS; i++) {
		struct pair *pair = &one->pairs[i];

		pair->pd_b = i;
		pair->type = RMEM_QPT_RC;
		fx_side_open(&pair->a, fx.a.dev, one->pds[0]);
		fx_side_open(&pair->b, fx.a.dev, one->pds[i]);
	}
	if (has_srq)
		random_srq_open(one);
	for (i = 0; i < NB_DOMAINS; i++)
		TEST_OK(fx_connect_pair(one->pairs[i].a.qp, one->pairs[i].b.qp));
	random_links_open(one);
	if (random_extra.open != NULL)
		random_extra.open(one, nb_runs);
}

/* Every second run has an SRQ, from the first or the second on. */
static void
setup_by(unsigned int nb, bool has_srq, const char *chaos)
{
	char args[256];
	const char *more = getenv("RMEM_TEST_ARGS");
	unsigned int i;

	fx_setup_none();
	rte_ticketlock_init(&keys.lock);
	keys.nb_owners = 0;
	snprintf(args, sizeof(args), "max_mkey_depth=%u%s%s%s", MODEL_DEPTH, chaos,
			more != NULL ? "," : "", more != NULL ? more : "");
	fx.a.dev = fx_dev("soft0", args);
	fx.b.dev = fx.a.dev;
	for (nb_runs = 0; nb_runs < nb; nb_runs++, has_srq = !has_srq)
		open_run(&runs[nb_runs], has_srq);
	for (i = 0; i < nb_runs; i++) {
		runs[i].random = 1;
		runs[i].has_chaos = chaos[0] != '\0';
	}
}

static void
setup_runs(unsigned int nb, bool has_srq)
{
	setup_by(nb, has_srq, "");
}

static void
setup(void)
{
	setup_runs(1, false);
}

static void
setup_srq(void)
{
	setup_runs(1, true);
}

static void
teardown(void)
{
	int result = TEST_SUCCESS;
	unsigned int i;

	for (i = 0; i < nb_runs; i++) {
		if ((random_extra.close != NULL && random_extra.close(&runs[i]) != 0) ||
				random_end(&runs[i]) != 0) {
			test_note("what the operations made could not be released");
			result = TEST_FAILED;
		}
	}
	nb_runs = 0;
	key_log_free(&keys.log);
	TEST_RUN(TEST_TRY(fx_teardown()) == TEST_SUCCESS ? result : TEST_FAILED);
}

static bool
is_counted(const struct random_run *one)
{
	unsigned int i;

	for (i = 0; i < NB_COUNTERS; i++) {
		if (rmem_counter_read(one->counters[i]) != one->counts[i])
			return false;
	}
	return true;
}

/* Whether the device did something else than the model within nb operations. */
static bool
finds_difference(struct random_run *one, uint32_t nb)
{
	uint32_t i;

	for (i = 0; i < nb; i++) {
		one->what[0] = '\0';
		if (random_op(one) != 0)
			return true;
		if (memcmp(one->arena, one->model.bytes, MODEL_BYTES) != 0 || !is_counted(one))
			return true;
	}
	return false;
}

static void
start(struct random_run *one, uint64_t seed)
{
	one->random = seed;
	fx_fill(one->arena, MODEL_BYTES, (uint32_t)seed);
	memcpy(one->model.bytes, one->arena, MODEL_BYTES);
}

/* Whether runs may take the last MRs and windows from each other. */
static bool
is_crowded(void)
{
	struct rmem_dev_info info;

	return rmem_dev_info_get(fx.a.dev, &info) == 0 && nb_runs > 1 &&
			(info.max_mr < nb_runs * (MODEL_REGIONS + 4) ||
					info.max_mw < nb_runs * MODEL_REGIONS);
}

/* Some requests succeeded and some failed: else this would prove little. */
static void
judge(const struct random_run *one, uint64_t seed, bool is_different)
{
	unsigned int i;

	test_note("seed 0x%" PRIx64 ": %" PRIu64 " requests succeeded, %" PRIu64
		  " were refused, %" PRIu64 " bound something",
			seed, one->nb_succeeded, one->nb_refused, one->nb_bound);
	test_note("messages received by UC, UD, XRC: %" PRIu64 ", %" PRIu64 ", %" PRIu64,
			one->nb_taken[RANDOM_UC], one->nb_taken[RANDOM_UD],
			one->nb_taken[RANDOM_XRC]);
	if (is_different)
		test_note("replay with RMEM_SEED=0x%" PRIx64 "; differs at: %s", seed, one->what);
	TEST_ASSERT(!is_different);
	TEST_ASSERT(one->nb_succeeded > NB_OPS / 40);
	TEST_ASSERT(one->nb_refused > NB_OPS / 40);
	for (i = 0; i < NB_LINKS; i++)
		TEST_ASSERT(one->nb_taken[i] > NB_OPS / 4000 || is_crowded());
	TEST_ASSERT(one->nb_leased > NB_OPS / 2000 || one->leases == NULL || one->has_chaos ||
			is_crowded());
	/* Of 200 runs the fewest had 47: what is free and fits is a matter of luck. */
	TEST_ASSERT(one->nb_bound > NB_OPS / 4000 || is_crowded());
}

TEST(random, device_matches_the_model)
{
	uint64_t seed = get_seed();

	start(run, seed);
	judge(run, seed, finds_difference(run, get_nb_ops()));
}

TEST_WITH(random, device_with_an_srq_matches_the_model, setup_srq)
{
	uint64_t seed = get_seed();

	start(run, seed);
	judge(run, seed, finds_difference(run, get_nb_ops()));
}

/* Statuses without an effect on the peer, full queues, and completions that are late. */
#define CHAOS                                                                                      \
	",chaos=any:LOC_QP_OP_ERR@every:29+any:RETRY_EXC_ERR@every:41+any:MW_BIND_ERR@every:7"     \
	"+post_send:ENOMEM@every:31+cq_resize:ENOMEM@every:3+recv:LATE@every:5@polls:2"            \
	"+cq:LATE@every:13@polls:3"

static void
setup_chaos(void)
{
	setup_by(1, false, CHAOS);
}

static void
setup_chaos_srq(void)
{
	setup_by(1, true, CHAOS);
}

static void
expect_injected(void)
{
	uint64_t seed = get_seed();

	start(run, seed);
	judge(run, seed, finds_difference(run, get_nb_ops()));
	TEST_ASSERT(run->nb_injected > NB_OPS / 200);
}

/* A request that a rule fails changes nothing, and can be repeated. */
TEST_WITH(random, device_with_chaos_matches_the_model, setup_chaos)
{
	expect_injected();
}

TEST_WITH(random, device_with_chaos_and_an_srq_matches_the_model, setup_chaos_srq)
{
	expect_injected();
}

struct job {
	struct random_run *one;
	bool is_different;
};

static void
run_beside_others(void *arg)
{
	struct job *job = arg;

	job->is_different = finds_difference(job->one, NB_OPS / 2);
}

static void
setup_lcores(void)
{
	unsigned int nb = RTE_MIN(fx_nb_workers(), NB_RUNS);

	nb_runs = 0;
	fx_setup_none();
	fx_need_workers(2);
	setup_runs(nb, false);
}

/* One device, its keys and its grace periods; lcore n replays with the seed that it printed. */
TEST_WITH(random, lcores_match_their_models, setup_lcores)
{
	uint64_t seed = get_seed();
	struct job jobs[NB_RUNS];
	unsigned int i;

	for (i = 0; i < nb_runs; i++) {
		start(&runs[i], seed + i);
		jobs[i].one = &runs[i];
	}
	fx_launch(run_beside_others, jobs, sizeof(jobs[0]), nb_runs);
	fx_join(nb_runs);
	for (i = 0; i < nb_runs; i++)
		judge(&runs[i], seed + i, jobs[i].is_different);
}

TEST(random, checker_notices_a_byte_changed_without_the_model)
{
	start(run, 1);
	TEST_ASSERT(!finds_difference(run, 1000));
	run->arena[random_below(run, MODEL_BYTES)] ^= 0x10;
	TEST_ASSERT(finds_difference(run, 1));
}

/* Run until a region of that kind has a valid key; NULL with *is_noticed: a difference. */
static struct model_region *
run_until_used(enum model_kind kind, bool *is_noticed)
{
	unsigned int i, j;

	for (i = 0; i < 2000; i++) {
		for (j = 0; j < MODEL_REGIONS; j++) {
			struct model_region *region = &run->model.regions[j];

			if (region->kind == kind && region->is_valid && !region->is_disabled)
				return region;
		}
		*is_noticed = finds_difference(run, 50);
		if (*is_noticed)
			return NULL;
	}
	return NULL;
}

/* Change only the model, or only the device; whether the change was made. */
typedef bool (*corrupt_t)(struct model_region *region);

/* A state overwritten before its use is not detected: so, several times. */
static void
expect_noticed(corrupt_t corrupt, const enum model_kind *kinds, unsigned int nb_kinds)
{
	unsigned int i, tries;
	bool is_corrupt, is_noticed;

	for (i = 0; i < nb_kinds; i++) {
		start(run, 1);
		is_corrupt = false;
		is_noticed = false;
		for (tries = 0; tries < 100 && !is_noticed; tries++) {
			struct model_region *region = run_until_used(kinds[i], &is_noticed);

			TEST_ASSERT(region != NULL || is_noticed);
			if (region != NULL) {
				is_corrupt |= corrupt(region);
				is_noticed = finds_difference(run, 500);
			}
			TEST_ASSERT(is_corrupt || !is_noticed);
		}
		TEST_ASSERT(is_noticed);
		teardown();
		setup();
	}
}

static bool
change_rights(struct model_region *region)
{
	region->access ^= FX_ACCESS;
	return true;
}

TEST(random, checker_notices_rights_that_differ)
{
	static const enum model_kind kinds[] = {
			MODEL_USER, MODEL_FAST, MODEL_LIST, MODEL_MW1, MODEL_MW2};

	expect_noticed(change_rights, kinds, RTE_DIM(kinds));
}

static bool
change_range(struct model_region *region)
{
	region->length -= region->length / 2;
	return true;
}

TEST(random, checker_notices_a_range_that_differs)
{
	static const enum model_kind kinds[] = {
			MODEL_USER, MODEL_FAST, MODEL_LIST, MODEL_MW1, MODEL_MW2};

	expect_noticed(change_range, kinds, RTE_DIM(kinds));
}

/* By a request of a side that may. */
static bool
take_key_away(struct model_region *region)
{
	struct rmem_send_wr wr = fx_inv(region->rkey);
	struct model_side who = {0, NULL};
	struct fx_side *side = NULL;
	struct pair *pair = NULL;
	unsigned int i;

	for (i = 0; i < 100 && !model_may_invalidate(region, &who); i++)
		side = random_side(run, region->pd, region->mw != NULL ? region->qp : NULL, &pair,
				&who);
	return side != NULL && random_send(run, pair, side, &wr) == RMEM_WC_SUCCESS;
}

TEST(random, checker_notices_a_key_revoked_without_the_model)
{
	static const enum model_kind kinds[] = {MODEL_FAST, MODEL_LIST, MODEL_MW2};

	expect_noticed(take_key_away, kinds, RTE_DIM(kinds));
}

/* In what is known of the past: its keys were another's. */
static bool
give_tags_to_another(struct model_region *region)
{
	uint32_t tag;

	for (tag = 0; tag < 256; tag++)
		key_log_add(&keys.log, rmem_rkey_of_tag(region->rkey, (uint8_t)tag), UINT32_MAX);
	return true;
}

TEST(random, checker_notices_a_former_key_of_another_owner)
{
	static const enum model_kind kinds[] = {MODEL_FAST, MODEL_LIST, MODEL_MW1, MODEL_MW2};

	expect_noticed(give_tags_to_another, kinds, RTE_DIM(kinds));
}

static bool
move_to_another_pd(struct model_region *region)
{
	return rmem_mr_rereg(region->mr, RMEM_REREG_CHANGE_PD, run->pds[1 - region->pd], NULL, 0, 0,
			       NULL) == 0;
}

TEST(random, checker_notices_an_mr_changed_without_the_model)
{
	static const enum model_kind kind = MODEL_USER;

	expect_noticed(move_to_another_pd, &kind, 1);
}

TEST(random, checker_notices_a_count_that_differs)
{
	start(run, 1);
	TEST_ASSERT(!finds_difference(run, 100));
	run->counts[1]++;
	TEST_ASSERT(finds_difference(run, 1));
}

TEST_WITH(random, checker_notices_a_receive_posted_without_the_model, setup_srq)
{
	const struct rmem_recv_wr wr = {.wr_id = UINT64_MAX};

	start(run, 1);
	TEST_ASSERT(!finds_difference(run, 1000));
	run->srq.max_wr = RANDOM_MAX_RECV;
	TEST_OK(rmem_srq_modify(run->srq.srq,
			&(const struct rmem_srq_attr){.max_wr = RANDOM_MAX_RECV}, RMEM_SRQ_MAX_WR));
	if (run->srq.nb < RANDOM_MAX_RECV)
		TEST_EQ(rmem_srq_post_recv(run->srq.srq, &wr, 1), 1);
	TEST_ASSERT(finds_difference(run, 2000));
}

TEST(random, checker_notices_a_receive_of_uc_posted_without_the_model)
{
	struct rmem_sge sge = {.length = UINT32_MAX / 2};
	const struct rmem_recv_wr wr = {.wr_id = UINT64_MAX, .sg_list = &sge, .num_sge = 1};
	struct rmem_mr *mr = NULL;
	bool is_noticed = false;
	unsigned int i;

	/* For messages of any length: one that is dropped would be waited for. */
	TEST_OK(rmem_null_mr_alloc(run->links[RANDOM_UC].b.pd, &mr));
	fx_track(mr);
	sge.lkey = mr->lkey;
	start(run, 1);
	TEST_ASSERT(!finds_difference(run, 1000));
	/* A reset of the QP drops it. */
	for (i = 0; i < 50 && !is_noticed; i++) {
		TEST_EQ(rmem_post_recv(run->links[RANDOM_UC].b.qp, &wr, 1), 1);
		is_noticed = finds_difference(run, 200);
	}
	TEST_ASSERT(is_noticed);
}

TEST(random, checker_notices_an_event_without_the_model)
{
	struct pair *pair = &run->links[RANDOM_XRC];

	start(run, 1);
	TEST_ASSERT(!finds_difference(run, 1000));
	TEST_OK(rmem_cq_req_notify(pair->a.cq, false));
	pair->is_armed = false;
	TEST_ASSERT(finds_difference(run, 2000));
}

TEST_SUITE(random, setup, teardown);
