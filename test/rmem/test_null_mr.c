/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A null MR is below other keys, and takes the result of an atomic. */

#include <string.h>

#include "fixture.h"

#define SKIP UINT64_C(40000)
#define IOVA UINT64_C(0x4000000)

static struct rmem_mr *null;

static void
setup(void)
{
	fx_setup();
	null = NULL;
	TEST_OK(rmem_null_mr_alloc(fx.a.pd, &null));
	fx_track(null);
}

/* Bytes of a, of the null MR, and of a. */
static struct rmem_mr *
bind_three(void)
{
	struct rmem_mkey_entry entries[3];
	struct rmem_mr *mkey = fx_mkey(fx.a.pd, 3);
	struct rmem_send_wr wr;

	entries[0] = fx_entry(fx.a.mr, 0, 100);
	entries[1] = (struct rmem_mkey_entry){.addr = 5, .length = SKIP, .lkey = null->lkey};
	entries[2] = fx_entry(fx.a.mr, 100, 100);
	wr = fx_umr(mkey, entries, 3, IOVA);
	return fx_send(fx.a.qp, &wr) == RMEM_WC_SUCCESS ? mkey : NULL;
}

TEST(null_mr, key_over_it_has_a_gap)
{
	struct rmem_mr *mkey = bind_three();
	struct rmem_sge sge = fx_sge(fx.b.mr, 0, SKIP + 200);
	struct rmem_send_wr wr;

	TEST_ASSERT(mkey != NULL);
	memset(fx.a.buf, 0, 201);
	fx_fill(fx.b.buf, SKIP + 200, 1);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, IOVA, mkey->rkey);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf, fx.b.buf, 100);
	TEST_MEM(fx.a.buf + 100, fx.b.buf + 100 + SKIP, 100);
	TEST_EQ(fx.a.buf[200], 0);
	wr = fx_rdma(RMEM_WR_RDMA_READ, &sge, IOVA, mkey->rkey);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf, fx.a.buf, 100);
	TEST_ASSERT(fx_is_zero(fx.b.buf + 100, SKIP));
	TEST_MEM(fx.b.buf + 100 + SKIP, fx.a.buf + 100, 100);
}

/* Within the gap, and within what one piece of the null MR has. */
TEST(null_mr, access_inside_of_the_gap_is_zero_and_discarded)
{
	struct rmem_mr *mkey = bind_three();
	struct rmem_sge sge = fx_sge(fx.b.mr, 0, 64);
	struct rmem_send_wr wr;

	TEST_ASSERT(mkey != NULL);
	fx_fill(fx.b.buf, 64, 2);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, IOVA + 1000, mkey->rkey);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	wr = fx_rdma(RMEM_WR_RDMA_READ, &sge, IOVA + 1000, mkey->rkey);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_ASSERT(fx_is_zero(fx.b.buf, 64));
}

/* From one null MR to another, of two PDs. */
TEST(null_mr, read_of_a_gap_into_a_null_mr_succeeds)
{
	struct rmem_mr *mkey = bind_three(), *other = NULL;
	struct rmem_sge sge = {.addr = 3, .length = SKIP + 200};
	struct rmem_send_wr wr;

	TEST_ASSERT(mkey != NULL);
	TEST_OK(rmem_null_mr_alloc(fx.b.pd, &other));
	fx_track(other);
	sge.lkey = other->lkey;
	wr = fx_rdma(RMEM_WR_RDMA_READ, &sge, IOVA, mkey->rkey);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.a);
	sge.length = 100;
	fx_fill(fx.a.buf, 101, 3);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_ASSERT(fx_is_zero(fx.a.buf, 100));
	TEST_ASSERT(fx.a.buf[100] != 0);
}

TEST(null_mr, result_of_an_atomic_is_discarded)
{
	struct rmem_sge sge = {.addr = 0, .length = 8};
	struct rmem_mr *other = NULL;
	struct rmem_send_wr wr;
	uint64_t word = 41;

	TEST_OK(rmem_null_mr_alloc(fx.b.pd, &other));
	fx_track(other);
	sge.lkey = other->lkey;
	memcpy(fx.a.buf, &word, sizeof(word));
	wr = fx_atomic(RMEM_WR_ATOMIC_FETCH_AND_ADD, &sge, fx_addr(fx.a.buf), fx.a.mr->rkey, 1);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	memcpy(&word, fx.a.buf, sizeof(word));
	TEST_EQ(word, 42);
}

TEST_SUITE(null_mr, setup, fx_teardown);
