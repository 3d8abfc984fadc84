/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The caller requests the key of an MR; each reason for a refusal has its errno. */

#include <string.h>

#include "fixture.h"

static int
reg_key(struct rmem_pd *pd, uint32_t rkey, struct rmem_mr **mr)
{
	const struct rmem_mr_attr attr = {.addr = fx.a.buf,
			.length = 4096,
			.access = FX_ACCESS,
			.flags = RMEM_MR_REQUESTED_KEY,
			.requested_key = rkey};
	return fx_reg_attr(pd, &attr, mr);
}

/* A device of so many MRs, and the PD on it. */
static struct rmem_pd *
small_dev(const char *args)
{
	return fx_pd(fx_dev("soft1", args));
}

/* An index that no MR has: there are far more than MRs. */
static uint32_t
free_key(uint8_t tag)
{
	uint32_t index = 1;

	while (index == fx.a.mr->rkey >> 8 || index == fx.b.mr->rkey >> 8)
		index++;
	return index << 8 | tag;
}

/* Requests choose their tags, so that any of these may be theirs. */
TEST(requested_key, keys_of_an_index_that_requests_bind_are_eexist)
{
	struct rmem_mr *fast = fx_fast_mr(fx.a.pd, 1);
	struct rmem_mw *mw = fx_mw(fx.a.pd, RMEM_MW_TYPE_2);
	struct rmem_mr *list = NULL, *mr = NULL;
	uint32_t tag;

	TEST_OK(rmem_mkey_alloc(fx.a.pd, 1, &list));
	fx_track(list);
	for (tag = 0; tag < 256; tag++) {
		TEST_ERR(reg_key(fx.a.pd, fast->rkey ^ tag, &mr), EEXIST);
		TEST_ERR(reg_key(fx.a.pd, mw->rkey ^ tag, &mr), EEXIST);
		TEST_ERR(reg_key(fx.a.pd, list->rkey ^ tag, &mr), EEXIST);
	}
	TEST_ASSERT(mr == NULL);
}

/* The keys of each MR are valid for its own part of the buffer only. */
static void
expect_own(struct rmem_mr **mrs, unsigned int nb)
{
	struct rmem_sge sge;
	struct rmem_send_wr wr;
	unsigned int i;

	for (i = 0; i < nb; i++) {
		fx_fill(fx.b.buf, 8, mrs[i]->rkey + 1);
		memset(mrs[i]->addr, 0, 8);
		TEST_STATUS(fx_peer_write(mrs[i]->iova, 8, mrs[i]->rkey), RMEM_WC_SUCCESS);
		TEST_MEM(mrs[i]->addr, fx.b.buf, 8);
		memset(fx.b.buf, 0, 8);
		sge = fx_sge(mrs[i], 0, 8);
		wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
		TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
		TEST_MEM(mrs[i]->addr, fx.b.buf, 8);
	}
}

/* Applications request 0, 1, 2 and so on; and the neighbours of their keys. */
TEST(requested_key, any_key_can_be_requested)
{
	static const uint32_t more[] = {
			256, 257, 0x7fffffff, 0x80000000, UINT32_MAX - 1, UINT32_MAX};
	struct rmem_mr *mrs[256 + RTE_DIM(more) + 16] = {NULL};
	unsigned int i, nb = RTE_DIM(mrs);
	uint32_t rkey;

	for (i = 0; i < nb; i++) {
		struct rmem_mr_attr attr = {.addr = fx.a.buf + i * 8,
				.length = 8,
				.access = FX_ACCESS,
				.flags = RMEM_MR_REQUESTED_KEY,
				.requested_key = i};

		if (i >= 256)
			attr.requested_key = i < 256 + RTE_DIM(more)
					? more[i - 256]
					: fx.a.mr->rkey ^ (i - 255 - (uint32_t)RTE_DIM(more));
		TEST_OK(rmem_mr_reg_attr(fx.a.pd, &attr, &mrs[i]));
		fx_track(mrs[i]);
		TEST_EQ(mrs[i]->rkey, attr.requested_key);
		TEST_EQ(fx_query(mrs[i]).rkey, attr.requested_key);
		TEST_ASSERT(mrs[i]->lkey != mrs[i]->rkey);
		TEST_EQ(mrs[i]->lkey >> 8, mrs[i]->rkey >> 8);
	}
	expect_own(mrs, nb);
	/* Every second one: the others are unchanged. */
	for (i = 0; i < nb / 2; i++) {
		rkey = mrs[i]->rkey;
		TEST_OK(fx_release(mrs[i]));
		TEST_STATUS(fx_peer_write(fx_addr(fx.a.buf), 8, rkey), RMEM_WC_REM_ACCESS_ERR);
		fx_reconnect();
		mrs[i] = mrs[--nb];
	}
	expect_own(mrs, nb);
	TEST_STATUS(fx_peer_write(fx.a.mr->iova, 8, fx.a.mr->rkey), RMEM_WC_SUCCESS);
}

/* lkey 0 is that of rkey 0xff: no end of a list, and not what was there before. */
TEST(requested_key, list_over_requested_keys_uses_them)
{
	static const uint32_t rkeys[] = {0xff, 0, 0xff00ff, 0xff, 1};
	struct rmem_mkey_entry entries[RTE_DIM(rkeys)];
	struct rmem_mr *mrs[RTE_DIM(rkeys)] = {NULL}, *list = NULL;
	struct rmem_send_wr wr;
	unsigned int i;

	for (i = 0; i < RTE_DIM(rkeys); i++) {
		if (i == 3)
			mrs[i] = mrs[0];
		else
			TEST_OK(reg_key(fx.a.pd, rkeys[i], &mrs[i]));
		entries[i] = fx_entry(mrs[i], i * 64, 8);
	}
	TEST_OK(rmem_mkey_alloc(fx.a.pd, RTE_DIM(rkeys), &list));
	fx_track(list);
	wr = fx_umr(list, entries, RTE_DIM(rkeys), 0);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	fx_fill(fx.b.buf, 8 * RTE_DIM(rkeys), 1);
	TEST_STATUS(fx_peer_write(0, 8 * RTE_DIM(rkeys), list->rkey), RMEM_WC_SUCCESS);
	for (i = 0; i < RTE_DIM(rkeys); i++)
		TEST_MEM(fx.a.buf + i * 64, fx.b.buf + i * 8, 8);
}

/* Its index is in the slot of a window, which no MR can use. */
TEST(requested_key, key_of_a_former_window_can_be_requested)
{
	struct rmem_mw *mw = fx_mw(fx.a.pd, RMEM_MW_TYPE_2);
	struct rmem_mr_attr attr = {.addr = fx.a.buf,
			.length = 4096,
			.iova = 0x5000,
			.access = FX_ACCESS,
			.flags = RMEM_MR_REQUESTED_KEY};
	struct rmem_mr *mr = NULL, *list = NULL;
	struct rmem_mkey_entry entry;
	struct rmem_send_wr wr;

	attr.requested_key = mw->rkey;
	TEST_OK(fx_release(mw));
	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	expect_own(&mr, 1);
	/* Below a list, whose parts are looked up again by their keys when they are copied. */
	TEST_OK(rmem_mkey_alloc(fx.a.pd, 1, &list));
	fx_track(list);
	entry = fx_entry(mr, 64, 8);
	wr = fx_umr(list, &entry, 1, 0);
	wr.umr.repeat_count = 2;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	fx_fill(fx.b.buf, 16, 1);
	TEST_STATUS(fx_peer_write(0, 16, list->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf + 64, fx.b.buf, 16);
}

/* An ordinary registration never gets a number that a caller chose, now or before. */
TEST(requested_key, other_keys_never_equal_a_requested_one)
{
	struct rmem_pd *pd = small_dev("max_mr=1,max_mw=65535");
	uint32_t first = 0, i, j;
	struct rmem_mr *mr = NULL;

	for (i = 0; i < 4; i++) {
		mr = fx_mr(pd, fx.a.buf, 64, 0);
		first = mr->rkey >> 8;
		TEST_OK(fx_release(mr));
	}
	/* Of the 255 indexes that the slot has, this is due after 254 others, and then passed. */
	TEST_OK(reg_key(pd, first << 8 | 9, &mr));
	TEST_OK(fx_release(mr));
	for (j = 0; j < 2 * 254; j++) {
		mr = fx_mr(pd, fx.a.buf, 64, 0);
		TEST_ASSERT(mr->rkey >> 8 != first);
		TEST_OK(fx_release(mr));
	}
}

TEST(requested_key, the_same_key_can_be_requested_forever)
{
	uint32_t rkey = free_key(3);
	struct rmem_mr *mr = NULL;
	int i;

	for (i = 0; i < 1000; i++) {
		TEST_OK(reg_key(fx.a.pd, rkey, &mr));
		TEST_OK(fx_release(mr));
	}
}

/* All MRs of a device have requested keys; then there is no free MR. */
TEST(requested_key, every_mr_of_a_device_can_have_a_requested_key)
{
	struct rmem_pd *pd = small_dev("max_mr=64");
	struct rmem_mr *mr = NULL;
	struct rmem_mr *last = NULL;
	uint32_t i;

	for (i = 0; i < 64; i++) {
		TEST_OK(reg_key(pd, i * UINT32_C(0x9e3779b1), &mr));
		TEST_EQ(mr->rkey, i * UINT32_C(0x9e3779b1));
	}
	TEST_ERR(rmem_mr_reg(pd, fx.a.buf, 64, 0, 0, &last), ENOSPC);
	TEST_ERR(reg_key(pd, 1, &last), ENOSPC);
	TEST_ASSERT(last == NULL);
	TEST_OK(fx_release(mr));
	fx_mr(pd, fx.a.buf, 64, 0);
}

#define MAX_WORKERS 3u

static struct worker {
	struct fx_side side;
	struct fx_side peer;
	unsigned int index;
} workers[MAX_WORKERS];

/* WRITEs through keys of one slot of the table: all of its MRs but one are in other slots. */
static void
use_keys_of_one_slot(void *arg)
{
	struct worker *worker = arg;
	struct fx_side *side = &worker->side;
	const struct rmem_sge sge = fx_sge(side->mr, 0, 64);
	struct rmem_mr_attr attr = {.addr = worker->peer.buf,
			.length = 64,
			.access = FX_ACCESS,
			.flags = RMEM_MR_REQUESTED_KEY};
	struct rmem_send_wr wr;
	struct rmem_mr *mr;
	struct rmem_wc wc;
	uint32_t i;

	for (i = 0; i < 300; i++) {
		/* The low half of the index decides the slot. */
		attr.requested_key = (worker->index * 64 + i % 64 + 1) << 24 | 5 << 8;
		TEST_OK(rmem_mr_reg_attr(side->pd, &attr, &mr));
		wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, mr->iova, attr.requested_key);
		wr.flags = RMEM_SEND_SIGNALED;
		TEST_EQ(fx_post(side->qp, &wr), 1);
		TEST_EQ(fx_poll(side->cq, &wc, 1), 1);
		TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
		TEST_OK(rmem_mr_dereg(mr));
	}
}

TEST(requested_key, requested_keys_are_registered_and_released_on_every_lcore)
{
	unsigned int i, nb = RTE_MIN(fx_nb_workers(), MAX_WORKERS);

	fx_need_workers(2);
	for (i = 0; i < nb; i++) {
		workers[i] = (struct worker){.index = i};
		fx_side_open(&workers[i].side, fx.a.dev, fx.a.pd);
		fx_side_open(&workers[i].peer, fx.a.dev, fx.a.pd);
		TEST_OK(fx_connect_pair(workers[i].side.qp, workers[i].peer.qp));
	}
	fx_launch(use_keys_of_one_slot, workers, sizeof(workers[0]), nb);
	fx_join(nb);
}

TEST(requested_key, disabled_region_takes_a_requested_key)
{
	struct rmem_mr_attr attr = {.addr = fx.a.buf,
			.length = 4096,
			.access = FX_ACCESS,
			.flags = RMEM_MR_DISABLED | RMEM_MR_REQUESTED_KEY};
	uint32_t rkey = fx.a.mr->rkey;
	struct rmem_mr *mr;

	TEST_OK(fx_release(fx.a.mr));
	attr.requested_key = rkey;
	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	TEST_EQ(mr->rkey, rkey);
	TEST_STATUS(fx_peer_write(mr->iova, 64, rkey), RMEM_WC_REM_ACCESS_ERR);
	fx_reconnect();
	TEST_OK(rmem_mr_enable(mr));
	TEST_STATUS(fx_peer_write(mr->iova, 64, rkey), RMEM_WC_SUCCESS);
}

TEST_SUITE(requested_key, fx_setup, fx_teardown);
