/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * What is wrong with a UMR is told by MW_BIND_ERR and leaves the MR FREE; what is wrong below
 * an indirect key, by the status of the access, which then moved no byte.
 */

#include <string.h>

#include "fixture.h"
#include "test.h"

#define NB_ENTRIES 4u
#define IOVA       UINT64_C(0x9000001)
#define PIECE      40u
#define ALL        (NB_ENTRIES * PIECE)
#define WHY_BELOW  8u

static struct rmem_mr *mkey;
static struct rmem_mkey_entry entries[NB_ENTRIES];

/* The third entry is of fx.fast, which cases take away. */
static int
setup(void)
{
	uint32_t i;

	TEST_RUN(fx_setup_fast());
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	mkey = fx_mkey(fx.a.pd, NB_ENTRIES);
	TEST_ASSERT(mkey != NULL);
	for (i = 0; i < NB_ENTRIES; i++)
		entries[i] = fx_entry(fx.a.mr, i * 100, PIECE);
	entries[2].addr = fx_addr(fx.fast.pages) + 7;
	entries[2].lkey = fx.fast.mr->lkey;
	return TEST_SUCCESS;
}

static struct rmem_send_wr
good_umr(void)
{
	return fx_umr(mkey, entries, NB_ENTRIES, IOVA);
}

static int
bind_good(void)
{
	const struct rmem_send_wr wr = good_umr();

	return fx_send(fx.a.qp, &wr);
}

/* The MR stays FREE, its keys open nothing, and a good UMR binds it still. */
static int
expect_umr_refused(const struct rmem_send_wr *wr)
{
	struct rmem_mkey_entry good = fx_entry(fx.a.mr, 0, PIECE);
	struct rmem_send_wr again;

	TEST_RUN(fx_expect_refusal(wr, RMEM_WC_MW_BIND_ERR, RMEM_QPS_RTS));
	TEST_EQ(fx_mr_state(mkey), RMEM_MR_STATE_FREE);
	TEST_STATUS(fx_peer_write(IOVA, 1, mkey->rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_RUN(fx_reconnect());
	again = fx_umr(mkey, &good, 1, IOVA);
	TEST_STATUS(fx_send(fx.a.qp, &again), RMEM_WC_SUCCESS);
	again = fx_inv(mkey->rkey);
	TEST_STATUS(fx_send(fx.a.qp, &again), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

TEST(umr_bad, umr_of_no_entry_is_refused)
{
	struct rmem_send_wr wr = good_umr();

	wr.umr.nb_entries = 0;
	return expect_umr_refused(&wr);
}

TEST(umr_bad, umr_of_more_entries_than_the_mr_takes_is_refused)
{
	struct rmem_mkey_entry many[NB_ENTRIES + 1] = {0};
	struct rmem_send_wr wr = fx_umr(mkey, many, NB_ENTRIES + 1, IOVA);
	uint32_t i;

	for (i = 0; i <= NB_ENTRIES; i++)
		many[i] = fx_entry(fx.a.mr, i, 1);
	TEST_RUN(expect_umr_refused(&wr));
	wr.umr.nb_entries = UINT32_MAX;
	return expect_umr_refused(&wr);
}

TEST(umr_bad, umr_of_no_round_is_refused)
{
	struct rmem_send_wr wr = good_umr();

	wr.umr.repeat_count = 0;
	return expect_umr_refused(&wr);
}

TEST(umr_bad, umr_of_an_entry_of_length_zero_is_refused)
{
	struct rmem_send_wr wr = good_umr();

	entries[3].length = 0;
	TEST_RUN(expect_umr_refused(&wr));
	entries[3].length = PIECE;
	entries[0].length = 0;
	return expect_umr_refused(&wr);
}

TEST(umr_bad, umr_with_a_reserved_field_set_is_refused)
{
	struct rmem_send_wr wr = good_umr();

	entries[1].reserved = 1;
	return expect_umr_refused(&wr);
}

/* Sums and products that wrap would look small. */
TEST(umr_bad, umr_of_blocks_that_wrap_is_refused)
{
	struct rmem_send_wr wr = good_umr();

	entries[0].addr = UINT64_MAX - 5;
	TEST_RUN(expect_umr_refused(&wr));
	entries[0] = fx_entry(fx.a.mr, 0, UINT64_MAX - 50);
	TEST_RUN(expect_umr_refused(&wr));
	entries[0] = fx_entry(fx.a.mr, 0, 8);
	entries[0].skip = UINT64_MAX - 8;
	wr.umr.repeat_count = 2;
	TEST_RUN(expect_umr_refused(&wr));
	entries[0].skip = UINT64_MAX - 7;
	TEST_RUN(expect_umr_refused(&wr));
	entries[0].skip = (UINT64_C(1) << 63) - 8;
	wr.umr.repeat_count = 3;
	TEST_RUN(expect_umr_refused(&wr));
	wr.umr.repeat_count = UINT32_MAX;
	entries[0].skip = UINT64_C(1) << 40;
	return expect_umr_refused(&wr);
}

TEST(umr_bad, umr_of_blocks_outside_their_mr_is_refused)
{
	struct rmem_send_wr wr = good_umr();

	entries[1] = fx_entry(fx.a.mr, FX_BUF_SIZE - PIECE + 1, PIECE);
	TEST_RUN(expect_umr_refused(&wr));
	entries[1] = fx_entry(fx.a.mr, 0, PIECE);
	entries[1].addr--;
	TEST_RUN(expect_umr_refused(&wr));
	/* The last of the blocks. */
	entries[1] = fx_entry(fx.a.mr, 0, 16);
	entries[1].skip = FX_BUF_SIZE / 4;
	wr.umr.repeat_count = 5;
	wr.umr.entries = &entries[1];
	wr.umr.nb_entries = 1;
	TEST_RUN(expect_umr_refused(&wr));
	entries[1].skip = FX_BUF_SIZE / 4 - 20;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

/* One byte more, of an MR that is as large as one may be. */
TEST(umr_bad, umr_beyond_max_mr_size_is_refused)
{
	struct rmem_dev *dev = fx_dev("soft79", "max_mr_size=65536");
	struct rmem_pd *pd = dev == NULL ? NULL : fx_pd(dev);
	struct rmem_mkey_entry parts[2];
	struct fx_side a, b;
	struct rmem_mr *mr;
	struct rmem_send_wr wr;

	TEST_ASSERT(pd != NULL);
	TEST_RUN(fx_side_open(&a, dev, pd));
	TEST_RUN(fx_side_open(&b, dev, pd));
	TEST_OK(fx_connect_pair(a.qp, b.qp));
	mr = fx_mkey(pd, 2);
	TEST_ASSERT(mr != NULL);
	parts[0] = fx_entry(a.mr, 0, FX_BUF_SIZE - 1);
	parts[1] = fx_entry(a.mr, 0, 1);
	wr = fx_umr(mr, parts, 2, 0);
	TEST_STATUS(fx_send(a.qp, &wr), RMEM_WC_SUCCESS);
	wr = fx_inv(mr->rkey);
	TEST_STATUS(fx_send(a.qp, &wr), RMEM_WC_SUCCESS);
	parts[1].length = 2;
	wr = fx_umr(mr, parts, 2, 0);
	TEST_STATUS(fx_send(a.qp, &wr), RMEM_WC_MW_BIND_ERR);
	return TEST_SUCCESS;
}

TEST(umr_bad, umr_whose_iova_wraps_is_refused)
{
	struct rmem_send_wr wr = good_umr();

	wr.umr.iova = UINT64_MAX - ALL + 2;
	TEST_RUN(expect_umr_refused(&wr));
	wr.umr.iova--;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(wr.umr.iova, ALL, mkey->rkey), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

/* IBTA C10-72 */
TEST(umr_bad, umr_with_bad_access_is_refused)
{
	struct rmem_send_wr wr = good_umr();

	wr.umr.access = RMEM_ACCESS_REMOTE_WRITE;
	TEST_RUN(expect_umr_refused(&wr));
	wr.umr.access = RMEM_ACCESS_REMOTE_ATOMIC;
	TEST_RUN(expect_umr_refused(&wr));
	wr.umr.access = FX_ACCESS | 1u << 15;
	TEST_RUN(expect_umr_refused(&wr));
	wr.umr.access = FX_ACCESS | RMEM_ACCESS_ALLOCATE_MR;
	return expect_umr_refused(&wr);
}

TEST(umr_bad, umr_of_a_bad_lkey_is_refused)
{
	uint32_t bad[6];
	struct rmem_send_wr wr = good_umr();
	unsigned int i;

	bad[0] = 0;
	bad[1] = fx.a.mr->rkey;
	bad[2] = fx.a.mr->lkey ^ 1;
	bad[3] = UINT32_MAX;
	bad[4] = mkey->lkey;        /* of itself, as it is */
	bad[5] = mkey->lkey ^ 0xff; /* or is about to be */
	for (i = 0; i < RTE_DIM(bad); i++) {
		entries[3].lkey = bad[i];
		TEST_RUN(expect_umr_refused(&wr));
	}
	wr.umr.key_tag = (uint8_t)(mkey->rkey + 1);
	entries[3].lkey = rmem_rkey_of_tag(mkey->rkey, wr.umr.key_tag) ^ 0xff;
	return expect_umr_refused(&wr);
}

TEST(umr_bad, umr_over_a_key_of_another_pd_is_refused)
{
	struct rmem_pd *pd = fx_pd(fx.a.dev);
	struct rmem_mr *mr = pd == NULL ? NULL : fx_mr(pd, fx.a.buf, FX_BUF_SIZE, FX_ACCESS);
	struct rmem_send_wr wr = good_umr();

	TEST_ASSERT(mr != NULL);
	entries[0] = fx_entry(mr, 0, PIECE);
	return expect_umr_refused(&wr);
}

TEST(umr_bad, umr_over_what_is_free_is_refused)
{
	struct rmem_send_wr wr = good_umr();

	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	return expect_umr_refused(&wr);
}

/* The rights of a key are no more than what those below allow locally. */
TEST(umr_bad, umr_to_modify_what_may_only_be_read_is_refused)
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, FX_BUF_SIZE, RMEM_ACCESS_REMOTE_READ);
	struct rmem_send_wr wr = good_umr();

	TEST_ASSERT(mr != NULL);
	entries[1] = fx_entry(mr, 0, PIECE);
	TEST_RUN(expect_umr_refused(&wr));
	wr.umr.access = RMEM_ACCESS_LOCAL_WRITE;
	TEST_RUN(expect_umr_refused(&wr));
	wr.umr.access = RMEM_ACCESS_REMOTE_READ;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

TEST(umr_bad, umr_of_another_kind_of_mr_is_refused)
{
	struct rmem_send_wr wr = good_umr();

	wr.umr.mr = fx.b.mr;
	TEST_RUN(fx_expect_refusal(&wr, RMEM_WC_MW_BIND_ERR, RMEM_QPS_RTS));
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	wr.umr.entries = entries;
	wr.umr.nb_entries = 1;
	wr.umr.mr = fx.fast.mr;
	TEST_RUN(fx_expect_refusal(&wr, RMEM_WC_MW_BIND_ERR, RMEM_QPS_RTS));
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_FREE);
	wr = fx_reg(mkey, fx.fast.list, 1, 0, FX_PAGE);
	TEST_RUN(fx_expect_refusal(&wr, RMEM_WC_MW_BIND_ERR, RMEM_QPS_RTS));
	TEST_EQ(fx_mr_state(mkey), RMEM_MR_STATE_FREE);
	return TEST_SUCCESS;
}

TEST(umr_bad, umr_of_another_pd_is_refused)
{
	struct rmem_pd *pd = fx_pd(fx.a.dev);
	struct rmem_send_wr wr = good_umr();

	TEST_ASSERT(pd != NULL);
	wr.umr.mr = fx_mkey(pd, NB_ENTRIES);
	TEST_ASSERT(wr.umr.mr != NULL);
	return fx_expect_refusal(&wr, RMEM_WC_MW_BIND_ERR, RMEM_QPS_RTS);
}

TEST(umr_bad, umr_of_a_valid_mr_is_refused_and_changes_nothing)
{
	const struct rmem_mkey_entry other = fx_entry(fx.a.mr, 5000, PIECE);
	struct rmem_send_wr wr;
	uint32_t rkey;

	TEST_STATUS(bind_good(), RMEM_WC_SUCCESS);
	rkey = mkey->rkey;
	wr = fx_umr(mkey, &other, 1, 0);
	TEST_RUN(fx_expect_refusal(&wr, RMEM_WC_MW_BIND_ERR, RMEM_QPS_RTS));
	fx_fill(fx.b.buf, ALL, 8);
	TEST_STATUS(fx_peer_write(IOVA, ALL, rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf + 300, fx.b.buf + 3 * PIECE, PIECE);
	return TEST_SUCCESS;
}

/* Neither a WRITE of the peer nor a READ of ours moves a byte, and vendor_err says why. */
static int
expect_refused_below(void)
{
	const struct rmem_sge sge = {IOVA, ALL, mkey->lkey};
	const struct rmem_send_wr wr =
			fx_rdma(RMEM_WR_RDMA_READ, &sge, fx_addr(fx.b.buf), fx.b.mr->rkey);

	fx_fill(fx.b.buf, FX_BUF_SIZE, 9);
	memset(fx.a.buf, 0, FX_BUF_SIZE);
	TEST_STATUS(fx_peer_write(IOVA, ALL, mkey->rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(fx.wc.vendor_err, WHY_BELOW);
	TEST_RUN(fx_reconnect());
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_LOC_PROT_ERR);
	TEST_EQ(fx.wc.vendor_err, WHY_BELOW);
	TEST_RUN(fx_reconnect());
	TEST_ASSERT(fx_is_zero(fx.a.buf, FX_BUF_SIZE));
	return TEST_SUCCESS;
}

/* What touches no byte of the third piece still goes through. */
static int
expect_rest_opens(void)
{
	TEST_STATUS(fx_peer_write(IOVA, 2 * PIECE, mkey->rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(IOVA + 3 * PIECE, PIECE, mkey->rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(IOVA, 2 * PIECE + 1, mkey->rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_RUN(fx_reconnect());
	TEST_STATUS(fx_peer_write(IOVA + 3 * PIECE - 1, 1, mkey->rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_RUN(fx_reconnect());
	return TEST_SUCCESS;
}

TEST(umr_bad, key_below_that_was_invalidated_refuses_its_part)
{
	TEST_STATUS(bind_good(), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	TEST_RUN(expect_refused_below());
	TEST_RUN(expect_rest_opens());
	/* Under another tag it is another key. */
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	TEST_RUN(expect_refused_below());
	return TEST_SUCCESS;
}

TEST(umr_bad, key_below_that_was_deregistered_refuses_its_part)
{
	TEST_STATUS(bind_good(), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(fx.fast.mr));
	TEST_RUN(expect_refused_below());
	return expect_rest_opens();
}

/* The same key again, but without LOCAL_WRITE, or shorter. */
TEST(umr_bad, key_below_that_gives_less_than_before_refuses)
{
	struct rmem_send_wr wr = fx_reg(fx.fast.mr, fx.fast.list, FX_FAST_PAGES,
			fx_addr(fx.fast.pages), FX_FAST_PAGES * FX_PAGE);

	TEST_STATUS(bind_good(), RMEM_WC_SUCCESS);
	wr.reg_mr.key_tag = (uint8_t)fx.fast.mr->rkey;
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	wr.reg_mr.access = RMEM_ACCESS_REMOTE_READ;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_RUN(expect_refused_below());
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	wr.reg_mr.access = FX_ACCESS;
	wr.reg_mr.length = 46;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_RUN(expect_refused_below());
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	wr.reg_mr.length = 47;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(IOVA, ALL, mkey->rkey), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

/* The key's own word, PD, rights and range come first. */
TEST(umr_bad, access_beyond_the_key_itself_is_refused)
{
	struct rmem_send_wr wr = good_umr();

	wr.umr.access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_READ;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(IOVA, 1, mkey->rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(fx.wc.vendor_err, 5);
	TEST_RUN(fx_reconnect());
	wr = fx_inv(mkey->rkey);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(bind_good(), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(IOVA, ALL + 1, mkey->rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(fx.wc.vendor_err, 6);
	TEST_RUN(fx_reconnect());
	TEST_STATUS(fx_peer_write(IOVA - 1, 2, mkey->rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_RUN(fx_reconnect());
	TEST_STATUS(fx_peer_write(IOVA, 1, mkey->lkey), RMEM_WC_REM_ACCESS_ERR);
	return TEST_SUCCESS;
}

/* A receive with such an SGE fails as with any bad one. */
TEST(umr_bad, receive_over_a_key_that_is_gone_fails)
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, ALL);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);
	struct rmem_sge to;

	TEST_STATUS(bind_good(), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	to = (struct rmem_sge){IOVA, ALL, mkey->lkey};
	TEST_EQ(fx_post_recv(fx.a.qp, 1, &to, 1), 1);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_REM_OP_ERR);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_LOC_PROT_ERR);
	TEST_EQ(fx.wc.vendor_err, WHY_BELOW);
	TEST_ASSERT(fx_is_zero(fx.a.buf, FX_BUF_SIZE));
	return TEST_SUCCESS;
}

TEST_SUITE(umr_bad, setup, fx_teardown);
