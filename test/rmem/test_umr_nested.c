/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Indirect keys over indirect keys: byte for byte as in the model, to the depth that the
 * device has and no further, without cycles, and refused when any key below is invalid.
 */

#include <string.h>

#include "fixture.h"
#include "umr_layout.h"

#define DEPTH     4u /* max_mkey_depth of the device, unless set by RMEM_TEST_ARGS */
#define NB_RANDOM 60u
#define NB_MOVES  6u
#define WHY_BELOW 8u

static struct layout plain, level[DEPTH];
static struct rmem_mr *mkeys[DEPTH + 1]; /* [0] over memory's MR, each over the one before */

static void
setup(void)
{
	unsigned int i;

	fx_setup();
	for (i = 0; i <= DEPTH; i++) {
		mkeys[i] = fx_mkey(fx.a.pd, LAYOUT_ENTRIES);
	}
	layout_plain(&plain, fx.a.mr, 0, LAYOUT_MAX);
}

/* Bind over 64 bytes of an MR at address 0; a status. The tag is the next one. */
static int
bind_over(struct rmem_mr *mr, const struct rmem_mr *below, uint64_t addr)
{
	const struct rmem_mkey_entry entries[] = {
			{.addr = addr + 32, .length = 32, .lkey = below->lkey},
			{.addr = addr, .length = 32, .lkey = below->lkey},
	};
	const struct rmem_send_wr wr = fx_umr(mr, entries, 2, 0);

	return fx_send(fx.a.qp, &wr);
}

static void
bind_tower(unsigned int nb)
{
	unsigned int i;

	TEST_STATUS(bind_over(mkeys[0], fx.a.mr, fx.a.mr->iova), RMEM_WC_SUCCESS);
	for (i = 1; i < nb; i++)
		TEST_STATUS(bind_over(mkeys[i], mkeys[i - 1], 0), RMEM_WC_SUCCESS);
}

static int
unbind(const struct rmem_mr *mr)
{
	return fx_invalidate(mr->rkey);
}

static void
expect_refused(const struct rmem_mr *mr)
{
	memset(fx.a.buf, 0, 64);
	fx_fill(fx.b.buf, 64, 3);
	TEST_STATUS(fx_peer_write(0, 64, mr->rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(fx.wc.vendor_err, WHY_BELOW);
	fx_reconnect();
	TEST_ASSERT(fx_is_zero(fx.a.buf, 64));
}

/* Each level swaps the halves. */
TEST(umr_nested, keys_nest_up_to_the_limit_of_the_device)
{
	struct rmem_dev_info info = fx_dev_info(fx.a.dev);

	TEST_EQ(info.max_mkey_depth, DEPTH);
	bind_tower(DEPTH);
	fx_fill(fx.b.buf, 64, 1);
	TEST_STATUS(fx_peer_write(0, 64, mkeys[DEPTH - 1]->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf, fx.b.buf, 64);
	TEST_STATUS(fx_peer_write(0, 64, mkeys[DEPTH - 2]->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf, fx.b.buf + 32, 32);
	TEST_MEM(fx.a.buf + 32, fx.b.buf, 32);
	TEST_STATUS(bind_over(mkeys[DEPTH], mkeys[DEPTH - 1], 0), RMEM_WC_MW_BIND_ERR);
	TEST_EQ(fx_mr_state(mkeys[DEPTH]), RMEM_MR_STATE_FREE);
}

/* Bound when it was allowed, and below it something deeper since, under the same key. */
TEST(umr_nested, key_that_became_too_deep_is_refused_at_access)
{
	struct rmem_mkey_entry entry;
	struct rmem_send_wr wr;

	bind_tower(DEPTH - 1);
	/* mkeys[DEPTH - 1] is level 1, and below mkeys[DEPTH]. */
	TEST_STATUS(bind_over(mkeys[DEPTH - 1], fx.a.mr, fx.a.mr->iova), RMEM_WC_SUCCESS);
	TEST_STATUS(bind_over(mkeys[DEPTH], mkeys[DEPTH - 1], 0), RMEM_WC_SUCCESS);
	TEST_STATUS(unbind(mkeys[DEPTH - 1]), RMEM_WC_SUCCESS);
	expect_refused(mkeys[DEPTH]);
	entry = (struct rmem_mkey_entry){.length = 64, .lkey = mkeys[DEPTH - 2]->lkey};
	wr = fx_umr(mkeys[DEPTH - 1], &entry, 1, 0);
	wr.umr.key_tag = (uint8_t)mkeys[DEPTH - 1]->rkey;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(0, 64, mkeys[DEPTH - 1]->rkey), RMEM_WC_SUCCESS);
	expect_refused(mkeys[DEPTH]);
}

/* 0 below 1 below 2, and then 2 below 0, under the key that 0 had and has again. */
TEST(umr_nested, cycles_are_refused_when_they_are_bound)
{
	struct rmem_mkey_entry entry;
	struct rmem_send_wr wr;
	unsigned int i;

	bind_tower(3);
	for (i = 1; i < 3; i++) {
		TEST_STATUS(unbind(mkeys[0]), RMEM_WC_SUCCESS);
		entry = (struct rmem_mkey_entry){.length = 64, .lkey = mkeys[i]->lkey};
		wr = fx_umr(mkeys[0], &entry, 1, 0);
		wr.umr.key_tag = (uint8_t)mkeys[0]->rkey;
		fx_expect_refusal(&wr, RMEM_WC_MW_BIND_ERR, RMEM_QPS_RTS);
		TEST_EQ(fx_mr_state(mkeys[0]), RMEM_MR_STATE_FREE);
		expect_refused(mkeys[i]);
		TEST_STATUS(bind_over(mkeys[0], fx.a.mr, fx.a.mr->iova), RMEM_WC_SUCCESS);
	}
}

#define WEB_DEPTH   16u
#define WEB_ENTRIES 16u

/* Bind over single bytes of two keys in turn, of which each is met again and again. */
static int
bind_web(struct rmem_qp *qp, struct rmem_mr *mr, const struct rmem_sge below[2])
{
	struct rmem_mkey_entry entries[WEB_ENTRIES];
	struct rmem_send_wr wr;
	unsigned int i;

	for (i = 0; i < WEB_ENTRIES; i++)
		entries[i] = (struct rmem_mkey_entry){
				.addr = below[i % 2].addr, .length = 1, .lkey = below[i % 2].lkey};
	wr = fx_umr(mr, entries, WEB_ENTRIES, 0);
	wr.umr.key_tag = (uint8_t)mr->rkey;
	return fx_send(qp, &wr);
}

/* There are 16 ^ 14 paths over these 32 keys: a binding checks each key once. */
TEST(umr_nested, binding_checks_each_nested_key_once)
{
	struct rmem_dev *dev = fx_dev("soft76", "max_mkey_depth=16,max_mkey_entries=16");
	struct rmem_pd *pd = dev == NULL ? NULL : fx_pd(dev);
	struct rmem_mr *web[WEB_DEPTH][2];
	struct rmem_send_wr inv;
	struct rmem_sge below[2];
	struct fx_side a, b;
	unsigned int i, j;

	TEST_ASSERT(pd != NULL);
	fx_side_open(&a, dev, pd);
	fx_side_open(&b, dev, pd);
	TEST_OK(fx_connect_pair(a.qp, b.qp));
	below[0] = fx_sge(a.mr, 0, 1);
	below[1] = fx_sge(a.mr, 1, 1);
	for (i = 0; i < WEB_DEPTH; i++) {
		for (j = 0; j < 2; j++) {
			web[i][j] = fx_mkey(pd, WEB_ENTRIES);
			TEST_STATUS(bind_web(a.qp, web[i][j], below), RMEM_WC_SUCCESS);
		}
		for (j = 0; j < 2; j++)
			below[j] = (struct rmem_sge){.lkey = web[i][j]->lkey};
	}
	/* The lowest key over the last but one: the cycle is detected on any path. */
	for (j = 0; j < 2; j++)
		below[j].lkey = web[WEB_DEPTH - 2][j]->lkey;
	inv = fx_inv(web[0][1]->rkey);
	TEST_STATUS(fx_send(a.qp, &inv), RMEM_WC_SUCCESS);
	TEST_STATUS(bind_web(a.qp, web[0][1], below), RMEM_WC_MW_BIND_ERR);
}

TEST(umr_nested, key_released_at_any_level_refuses_all_above)
{
	unsigned int i;

	for (i = 0; i < DEPTH - 1; i++) {
		unsigned int j;

		bind_tower(DEPTH);
		TEST_STATUS(unbind(mkeys[i]), RMEM_WC_SUCCESS);
		for (j = i + 1; j < DEPTH; j++)
			expect_refused(mkeys[j]);
		for (j = 0; j < DEPTH; j++)
			TEST_STATUS(j == i ? RMEM_WC_SUCCESS : unbind(mkeys[j]), RMEM_WC_SUCCESS);
	}
	bind_tower(DEPTH);
	TEST_OK(fx_release(mkeys[1]));
	expect_refused(mkeys[2]);
	TEST_OK(fx_release(fx.a.mr));
	for (i = 0; i < DEPTH; i++) {
		if (i != 1)
			expect_refused(mkeys[i]);
	}
}

/* Blocks over blocks: every other byte of every other byte. */
TEST(umr_nested, blocks_of_blocks_match_the_model)
{
	const struct layout *below = &plain;
	struct rmem_mkey_entry entry = fx_entry(fx.a.mr, 0, 1);
	unsigned int i;

	entry.skip = 1;
	TEST_STATUS(layout_bind(&level[0], mkeys[0], &below, 1, &entry, 1, 512, 77),
			RMEM_WC_SUCCESS);
	below = &level[0];
	entry = (struct rmem_mkey_entry){
			.addr = 78, .length = 1, .skip = 1, .lkey = mkeys[0]->lkey};
	TEST_STATUS(layout_bind(&level[1], mkeys[1], &below, 1, &entry, 1, 255, 99),
			RMEM_WC_SUCCESS);
	for (i = 0; i < LAYOUT_NB_MOVERS; i++) {
		layout_check(&level[1], layout_movers[i], LAYOUT_LOCAL, 0, 255);
		layout_check(&level[1], layout_movers[i], LAYOUT_REMOTE, 3, 200);
	}
}

/* One round of the random case: a tower of random keys over all that lie below them. */
static void
check_random_tower(uint64_t *random)
{
	const struct layout *below[DEPTH + 1] = {&plain};
	unsigned int i;

	for (i = 0; i < DEPTH; i++) {
		TEST_STATUS(layout_bind_random(&level[i], mkeys[i], below, i + 1, random),
				RMEM_WC_SUCCESS);
		below[i + 1] = &level[i];
	}
	for (i = 0; i < NB_MOVES; i++) {
		const struct layout *key = &level[layout_random(random, DEPTH)];
		uint32_t offset = layout_random(random, key->length);
		uint32_t length = 1 + layout_random(random, key->length - offset);

		layout_check(key, layout_movers[layout_random(random, 5)],
				layout_random(random, 2) ? LAYOUT_LOCAL : LAYOUT_REMOTE, offset,
				length);
	}
	for (i = 0; i < DEPTH; i++)
		TEST_STATUS(unbind(mkeys[i]), RMEM_WC_SUCCESS);
}

TEST(umr_nested, random_nested_keys_match_the_model)
{
	uint64_t random = layout_seed();
	unsigned int i;

	for (i = 0; i < NB_RANDOM; i++)
		check_random_tower(&random);
}

TEST_SUITE(umr_nested, setup, fx_teardown);
