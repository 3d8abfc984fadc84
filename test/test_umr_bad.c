/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * An error below an indirect key is the status of the access, which then copies no byte.
 * The checks of a UMR are in conformance.
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

/* The third entry is of fx.fast, which cases invalidate. */
static void
setup(void)
{
	uint32_t i;

	fx_setup_fast();
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	mkey = fx_mkey(fx.a.pd, NB_ENTRIES);
	TEST_ASSERT(mkey != NULL);
	for (i = 0; i < NB_ENTRIES; i++)
		entries[i] = fx_entry(fx.a.mr, i * 100, PIECE);
	entries[2].addr = fx_addr(fx.fast.pages) + 7;
	entries[2].lkey = fx.fast.mr->lkey;
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
	fx_side_open(&a, dev, pd);
	fx_side_open(&b, dev, pd);
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
}

/* Neither a WRITE of the peer nor a local READ copies a byte, and vendor_err has the reason. */
static void
expect_refused_below(void)
{
	const struct rmem_sge sge = {IOVA, ALL, mkey->lkey};
	const struct rmem_send_wr wr =
			fx_rdma(RMEM_WR_RDMA_READ, &sge, fx_addr(fx.b.buf), fx.b.mr->rkey);

	fx_fill(fx.b.buf, FX_BUF_SIZE, 9);
	memset(fx.a.buf, 0, FX_BUF_SIZE);
	TEST_STATUS(fx_peer_write(IOVA, ALL, mkey->rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(fx.wc.vendor_err, WHY_BELOW);
	fx_reconnect();
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_LOC_PROT_ERR);
	TEST_EQ(fx.wc.vendor_err, WHY_BELOW);
	fx_reconnect();
	TEST_ASSERT(fx_is_zero(fx.a.buf, FX_BUF_SIZE));
}

/* Requests without a byte of the third piece still succeed. */
static void
expect_rest_opens(void)
{
	TEST_STATUS(fx_peer_write(IOVA, 2 * PIECE, mkey->rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(IOVA + 3 * PIECE, PIECE, mkey->rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(IOVA, 2 * PIECE + 1, mkey->rkey), RMEM_WC_REM_ACCESS_ERR);
	fx_reconnect();
	TEST_STATUS(fx_peer_write(IOVA + 3 * PIECE - 1, 1, mkey->rkey), RMEM_WC_REM_ACCESS_ERR);
	fx_reconnect();
}

TEST(umr_bad, invalidated_key_of_an_entry_refuses_its_range)
{
	TEST_STATUS(bind_good(), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	expect_refused_below();
	expect_rest_opens();
	/* Under another tag it is another key. */
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	expect_refused_below();
}

TEST(umr_bad, deregistered_key_of_an_entry_refuses_its_range)
{
	TEST_STATUS(bind_good(), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(fx.fast.mr));
	expect_refused_below();
	expect_rest_opens();
}

/* The same key again, but without LOCAL_WRITE, or shorter. */
TEST(umr_bad, reduced_key_of_an_entry_refuses_its_range)
{
	struct rmem_send_wr wr = fx_reg(fx.fast.mr, fx.fast.list, FX_FAST_PAGES,
			fx_addr(fx.fast.pages), FX_FAST_PAGES * FX_PAGE);

	TEST_STATUS(bind_good(), RMEM_WC_SUCCESS);
	wr.reg_mr.key_tag = (uint8_t)fx.fast.mr->rkey;
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	wr.reg_mr.access = RMEM_ACCESS_REMOTE_READ;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	expect_refused_below();
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	wr.reg_mr.access = FX_ACCESS;
	wr.reg_mr.length = 46;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	expect_refused_below();
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	wr.reg_mr.length = 47;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(IOVA, ALL, mkey->rkey), RMEM_WC_SUCCESS);
}

/* Of a range over several rounds, the last byte counts as well. */
TEST(umr_bad, strided_entry_beyond_its_key_by_one_byte_is_refused)
{
	enum {
		ROUNDS = 3,
		LENGTH = ROUNDS * PIECE
	};
	struct rmem_send_wr reg = fx_reg(fx.fast.mr, fx.fast.list, FX_FAST_PAGES,
			fx_addr(fx.fast.pages), FX_FAST_PAGES * FX_PAGE);
	struct rmem_send_wr wr = fx_umr(mkey, &entries[2], 1, IOVA);

	wr.umr.repeat_count = ROUNDS;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(IOVA, LENGTH, mkey->rkey), RMEM_WC_SUCCESS);
	reg.reg_mr.key_tag = (uint8_t)fx.fast.mr->rkey;
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	reg.reg_mr.length = 7 + LENGTH - 1;
	TEST_STATUS(fx_send(fx.a.qp, &reg), RMEM_WC_SUCCESS);
	fx_fill(fx.b.buf, FX_BUF_SIZE, 9);
	memset(fx.fast.pages, 0, LENGTH + 8);
	TEST_STATUS(fx_peer_write(IOVA, LENGTH, mkey->rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_ASSERT(fx_is_zero(fx.fast.pages, LENGTH + 8));
	fx_reconnect();
	TEST_STATUS(fx_peer_write(IOVA, LENGTH - 1, mkey->rkey), RMEM_WC_SUCCESS);
}

/* The key's own word, PD, rights and range come first. */
TEST(umr_bad, access_beyond_the_indirect_key_is_refused)
{
	struct rmem_send_wr wr = good_umr();

	wr.umr.access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_READ;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(IOVA, 1, mkey->rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(fx.wc.vendor_err, 5);
	fx_reconnect();
	TEST_STATUS(fx_invalidate(mkey->rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(bind_good(), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(IOVA, ALL + 1, mkey->rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(fx.wc.vendor_err, 6);
	fx_reconnect();
	TEST_STATUS(fx_peer_write(IOVA - 1, 2, mkey->rkey), RMEM_WC_REM_ACCESS_ERR);
	fx_reconnect();
	TEST_STATUS(fx_peer_write(IOVA, 1, mkey->lkey), RMEM_WC_REM_ACCESS_ERR);
}

/* A receive with such an SGE fails like with any invalid one. */
TEST(umr_bad, receive_through_a_released_key_fails)
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
}

TEST_SUITE(umr_bad, setup, fx_teardown);
