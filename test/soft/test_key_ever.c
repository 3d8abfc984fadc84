/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * No key that a device chooses was ever another owner's: every key that was given out is kept, on
 * a device of so few MRs and windows that each slot has hundreds of owners.
 */

#include <stdlib.h>
#include <string.h>

#include "rmem/key_log.h"
#include "lease/lease.h"

#define NB_OWNERS 600u
#define WRITE     RMEM_ACCESS_REMOTE_WRITE

static struct key_log log_of_keys;
static uint32_t former[64]; /* keys of the past, some of them */
static uint64_t random_state;

static uint32_t
below(uint32_t limit)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1;
	return (uint32_t)(random_state >> 33) % limit;
}

static void
setup(void)
{
	memset(&lx, 0, sizeof(lx));
	fx_setup_none();
	fx_sides_open(fx_dev("soft0", "max_mr=6,max_mw=3"));
	lx.mr = fx_mr(fx.a.pd, fx.a.buf, FX_BUF_SIZE, FX_ACCESS | RMEM_ACCESS_MW_BIND);
	fx.mw.mr = lx.mr;
	memset(former, 0, sizeof(former));
	random_state = 1;
}

static void
teardown(void)
{
	key_log_free(&log_of_keys);
	lx_teardown();
}

/* A key that is valid now: no other owner had it. */
static void
note(uint32_t rkey, uint32_t owner)
{
	TEST_ASSERT(key_log_add(&log_of_keys, rkey, owner));
	former[below(RTE_DIM(former))] = rkey;
}

/* Earlier keys, except that of mr, grant no access to it. */
static void
expect_former_refused(const struct rmem_mr *mr)
{
	unsigned int i;

	for (i = 0; i < RTE_DIM(former); i++) {
		if (former[i] == 0 || former[i] == mr->rkey)
			continue;
		TEST_STATUS(fx_peer_write(fx_addr(fx.a.buf), 8, former[i]), RMEM_WC_REM_ACCESS_ERR);
		fx_reconnect();
	}
}

TEST(key_ever, ordinary_mrs)
{
	uint32_t owner;

	for (owner = 1; owner <= NB_OWNERS; owner++) {
		struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, 8, FX_ACCESS);

		note(mr->rkey, owner);
		if (owner % 100 == 0)
			expect_former_refused(mr);
		TEST_OK(fx_release(mr));
	}
}

/* Some bindings by tags in any order, then the next owner. */
TEST(key_ever, fast_register_mrs_by_any_tags)
{
	struct rmem_fast_reg_page_list *list = fx_page_list(fx.a.dev, 1);
	uint32_t owner, i;

	fx_list_pages(list, fx.a.buf, 1);
	for (owner = 1; owner <= NB_OWNERS; owner++) {
		struct rmem_mr *mr = fx_fast_mr(fx.a.pd, 1);

		for (i = 0; i < 8; i++) {
			struct rmem_send_wr wr = fx_reg(mr, list, 1, fx_addr(fx.a.buf), 8);

			wr.reg_mr.key_tag = (uint8_t)below(256);
			TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
			note(mr->rkey, owner);
			if (i == 7 && owner % 100 == 0)
				expect_former_refused(mr);
			TEST_STATUS(fx_invalidate(mr->rkey), RMEM_WC_SUCCESS);
		}
		TEST_OK(fx_release(mr));
	}
}

TEST(key_ever, indirect_keys_by_any_tags)
{
	const struct rmem_mkey_entry entry = fx_entry(fx.a.mr, 0, 8);
	uint32_t owner, i;

	for (owner = 1; owner <= NB_OWNERS; owner++) {
		struct rmem_mr *mr = NULL;

		TEST_OK(rmem_mkey_alloc(fx.a.pd, 1, &mr));
		fx_track(mr);
		for (i = 0; i < 8; i++) {
			struct rmem_send_wr wr = fx_umr(mr, &entry, 1, 0);

			wr.umr.key_tag = (uint8_t)below(256);
			TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
			note(mr->rkey, owner);
			TEST_STATUS(fx_invalidate(mr->rkey), RMEM_WC_SUCCESS);
		}
		TEST_OK(fx_release(mr));
	}
}

/* Windows of both types in turn. */
TEST(key_ever, windows_by_any_tags)
{
	uint32_t owner, i;

	for (owner = 1; owner <= NB_OWNERS; owner += 2) {
		fx.mw.one = fx_mw(fx.a.pd, RMEM_MW_TYPE_1);
		fx.mw.two = fx_mw(fx.a.pd, RMEM_MW_TYPE_2);
		for (i = 0; i < 8; i++) {
			struct rmem_send_wr wr = fx_mw_wr(fx.mw.two, 0, 8, WRITE);

			wr.bind_mw.key_tag = (uint8_t)below(256);
			TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
			note(fx.mw.two->rkey, owner);
			TEST_STATUS(fx_mw_bind_1(0, 8, WRITE), RMEM_WC_SUCCESS);
			note(fx.mw.one->rkey, owner + 1);
			TEST_STATUS(fx_invalidate(fx.mw.two->rkey), RMEM_WC_SUCCESS);
		}
		TEST_OK(fx_release(fx.mw.one));
		TEST_OK(fx_release(fx.mw.two));
	}
}

/* Earlier keys, adjacent and random numbers are requested between ordinary MRs. */
TEST(key_ever, ordinary_mrs_after_requested_keys)
{
	struct rmem_mr_attr attr = {.addr = fx.a.buf,
			.length = 8,
			.access = FX_ACCESS,
			.flags = RMEM_MR_REQUESTED_KEY};
	struct rmem_mr *mr;
	uint32_t owner, rkey;

	for (owner = 1; owner <= 4 * NB_OWNERS; owner++) {
		mr = fx_mr(fx.a.pd, fx.a.buf, 8, FX_ACCESS);
		note(mr->rkey, owner);
		rkey = mr->rkey;
		TEST_OK(fx_release(mr));
		/* On the tree of one tag after the other, the next but one. */
		attr.requested_key = below(4) == 0
				? former[below(RTE_DIM(former))]
				: rmem_rkey_of_tag(rkey, (uint8_t)(rkey - below(9)));
		if (rmem_mr_reg_attr(fx.a.pd, &attr, &mr) != 0)
			continue; /* it is that of the other MRs */
		key_log_add(&log_of_keys, mr->rkey, UINT32_MAX);
		TEST_OK(rmem_mr_dereg(mr));
	}
}

/* Grant all keys of the context, and record the rkeys. */
static void
lease_some(void)
{
	static uint32_t owner;
	uint32_t i;

	lx_granted(3);
	for (i = 0; i < 3; i++)
		note(lx.lease[i]->rkey, ++owner);
}

static void
leases(uint32_t backend)
{
	unsigned int i;

	lx.conf.backend = backend;
	lx.conf.max_leases = 3;
	lx.conf.max_length = FX_BUF_SIZE;
	lx.conf.socket_id = SOCKET_ID_ANY;
	lx.conf.quarantine_us = 3600u * 1000000;
	lx_remake();
	for (i = 0; i < 300; i++) {
		lease_some();
		if (i % 4 == 3) {
			lx_recover();
			TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 3);
			continue;
		}
		lx_revoke(3);
		if (i % 4 == 1)
			lx_remake();
		TEST_ASSERT(rmem_lease_trim(lx.ctx) >= 0);
		TEST_ASSERT(rmem_lease_trim(lx.ctx) >= 0);
	}
}

TEST_CALL(key_ever, leases_by_fast_register_mrs, leases(RMEM_LEASE_FAST_REG));
TEST_CALL(key_ever, leases_with_windows, leases(RMEM_LEASE_MW));
TEST_CALL(key_ever, leases_by_indirect_keys, leases(RMEM_LEASE_UMR));

/*
 * A slot that has used all of its indexes is quarantined while others have indexes left. Windows
 * of four fifths of all indexes are allocated one after the other: no index is repeated.
 */
TEST(key_ever, exhausted_slots_are_quarantined_until_all_are)
{
	enum {
		NB_MW = 64,
		NB_INDEXES = 16
	};
	struct rmem_dev *dev = fx_dev("soft1", "max_mr=1000000,max_mw=64");
	struct rmem_pd *pd = fx_pd(dev);
	uint32_t owner;

	for (owner = 1; owner <= NB_MW * NB_INDEXES / 5 * 4; owner++) {
		struct rmem_mw *mw = NULL;

		TEST_OK(rmem_mw_alloc(pd, RMEM_MW_TYPE_2, &mw));
		note(mw->rkey & ~UINT32_C(0xff), owner);
		TEST_OK(rmem_mw_dealloc(mw));
	}
}

TEST_SUITE(key_ever, setup, teardown);
