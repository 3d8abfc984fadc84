/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Indirect MRs are made, bound by UMR, asked, invalidated and released. */

#include <string.h>

#include "fixture.h"

#define NB_ENTRIES 4u
#define IOVA       UINT64_C(0x7000000)

static struct rmem_mr *mkey;
static struct rmem_mkey_entry entries[NB_ENTRIES];

static void
setup(void)
{
	uint32_t i;

	fx_setup();
	mkey = fx_mkey(fx.a.pd, NB_ENTRIES);
	for (i = 0; i < NB_ENTRIES; i++)
		entries[i] = fx_entry(fx.a.mr, i * 1000 + 1, 10 + i);
}

static struct rmem_send_wr
good_umr(void)
{
	return fx_umr(mkey, entries, NB_ENTRIES, IOVA);
}

static int
bind(void)
{
	const struct rmem_send_wr wr = good_umr();

	return fx_send(fx.a.qp, &wr);
}

TEST(mkey, number_of_entries_is_limited)
{
	struct rmem_mr *mr = NULL;
	struct rmem_dev_info info = fx_dev_info(fx.a.dev);

	TEST_ASSERT(info.capa & RMEM_DEV_CAPA_UMR);
	TEST_ERR(rmem_mkey_alloc(fx.a.pd, 0, &mr), EINVAL);
	TEST_ERR(rmem_mkey_alloc(fx.a.pd, info.max_mkey_entries + 1, &mr), EINVAL);
	TEST_ASSERT(mr == NULL);
	fx_mkey(fx.a.pd, info.max_mkey_entries);
}

TEST(mkey, query_counts_the_extents_of_all_repetitions)
{
	struct rmem_send_wr wr = fx_umr(mkey, entries, 2, IOVA);
	struct rmem_mr_info info;

	wr.umr.repeat_count = 5;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	info = fx_query(mkey);
	TEST_EQ(info.length, 5 * (10 + 11));
	TEST_EQ(info.nb_extents, 10);
}

/* The key was used by the request for all of its bytes, and then invalidated. */
static void
expect_used(uint32_t rkey)
{
	TEST_MEM(fx.a.buf + 1001, fx.b.buf + 10, 11);
	TEST_MEM(fx.a.buf + 3001, fx.b.buf + 33, 13);
	TEST_EQ(fx_mr_state(mkey), RMEM_MR_STATE_FREE);
	TEST_STATUS(fx_peer_write(IOVA, 1, rkey), RMEM_WC_REM_ACCESS_ERR);
	fx_reconnect();
}

TEST(mkey, send_and_read_with_inv_invalidate_the_mkey)
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 46);
	struct rmem_sge to = {IOVA, 46, 0};
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND_WITH_INV, &from, 1);

	TEST_STATUS(bind(), RMEM_WC_SUCCESS);
	fx_fill(fx.b.buf, 46, 4);
	to.lkey = mkey->lkey;
	TEST_EQ(fx_post_recv(fx.a.qp, 9, &to, 1), 1);
	wr.invalidate_rkey = mkey->rkey;
	fx_deliver(&fx.b, &fx.a, &wr);
	TEST_EQ(fx.wc.flags, RMEM_WC_WITH_INV);
	TEST_EQ(fx.wc.invalidated_rkey, wr.invalidate_rkey);
	expect_used(wr.invalidate_rkey);
	TEST_STATUS(bind(), RMEM_WC_SUCCESS);
	fx_fill(fx.b.buf, 46, 5);
	to.lkey = mkey->lkey;
	wr = fx_rdma_to(RMEM_WR_RDMA_READ_WITH_INV, &to, &fx.b);
	wr.invalidate_rkey = mkey->rkey;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	expect_used(wr.invalidate_rkey);
}

/* A UMR that waits after a SEND without a receive. */
static void
post_waiting_umr(void)
{
	struct rmem_send_wr wrs[2];

	wrs[0] = fx_wr(RMEM_WR_SEND, NULL, 0);
	wrs[1] = good_umr();
	wrs[1].flags = RMEM_SEND_SIGNALED;
	TEST_EQ(rmem_post_send(fx.a.qp, wrs, 2), 2);
	TEST_ERR(rmem_mr_dereg(mkey), EBUSY);
}

/* Until it is executed, reset or flushed. */
TEST(mkey, waiting_umr_holds_its_mr)
{
	post_waiting_umr();
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_EQ(fx_mr_state(mkey), RMEM_MR_STATE_FREE);
	fx_reconnect();
	post_waiting_umr();
	TEST_OK(rmem_qp_set_error(fx.a.qp));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_WR_FLUSH_ERR);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_WR_FLUSH_ERR);
	fx_reconnect();
	post_waiting_umr();
	TEST_EQ(fx_post_recv(fx.b.qp, 1, NULL, 0), 1);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_UMR);
	TEST_EQ(fx_mr_state(mkey), RMEM_MR_STATE_VALID);
	TEST_OK(fx_release(mkey));
}

TEST(mkey, stats_count_umrs)
{
	struct rmem_dev_stats stats;

	TEST_OK(rmem_dev_stats_reset(fx.a.dev));
	TEST_STATUS(bind(), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_invalidate(mkey->rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(bind(), RMEM_WC_SUCCESS);
	TEST_STATUS(bind(), RMEM_WC_MW_BIND_ERR);
	TEST_OK(rmem_dev_stats_get(fx.a.dev, &stats));
	TEST_EQ(stats.umrs, 2);
	TEST_EQ(stats.invalidates, 1);
	TEST_EQ(stats.errors, 1);
	TEST_EQ(stats.reg_mrs, 0);
}

TEST_SUITE(mkey, setup, fx_teardown);
