/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* An MR that starts disabled has keys that open nothing before it is enabled. */

#include <string.h>

#include "fixture.h"
#include "test.h"

/* Of a's, over its buffer; NULL with a message on failure. */
static struct rmem_mr *
disabled_mr(uint32_t flags, uint32_t rkey)
{
	const struct rmem_mr_attr attr = {
			.addr = fx.a.buf,
			.length = 4096,
			.access = FX_ACCESS,
			.flags = RMEM_MR_DISABLED | flags,
			.requested_key = rkey,
	};
	struct rmem_mr *mr = NULL;

	if (rmem_mr_reg_attr(fx.a.pd, &attr, &mr) != 0)
		return NULL;
	fx_track(mr);
	return mr;
}

/* a writes from the MR to b; a status. */
static int
write_from(const struct rmem_mr *mr)
{
	const struct rmem_sge sge = fx_sge(mr, 0, 64);
	struct rmem_send_wr wr =
			fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.b.buf + 4096), fx.b.mr->rkey);

	return fx_send(fx.a.qp, &wr);
}

TEST(mr_enable, disabled_region_opens_to_nobody)
{
	struct rmem_mr *mr = disabled_mr(0, 0);

	TEST_ASSERT(mr != NULL);
	TEST_EQ(fx_mr_state(mr), RMEM_MR_STATE_DISABLED);
	TEST_ASSERT(mr->rkey != 0 && mr->lkey != 0);
	fx_fill(fx.b.buf, 64, 1);
	TEST_STATUS(fx_peer_write(mr->iova, 64, mr->rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(fx.wc.vendor_err, 3);
	TEST_OK(fx_reconnect());
	TEST_STATUS(write_from(mr), RMEM_WC_LOC_PROT_ERR);
	TEST_EQ(fx.wc.vendor_err, 3);
	TEST_ASSERT(fx_is_zero(fx.a.buf, 64));
	TEST_OK(fx_release(mr));
	return TEST_SUCCESS;
}

TEST(mr_enable, enabled_region_opens_under_the_same_keys)
{
	struct rmem_mr *mr = disabled_mr(0, 0);
	uint32_t lkey, rkey;

	TEST_ASSERT(mr != NULL);
	lkey = mr->lkey;
	rkey = mr->rkey;
	TEST_OK(rmem_mr_enable(mr));
	TEST_EQ(fx_mr_state(mr), RMEM_MR_STATE_VALID);
	TEST_EQ(mr->lkey, lkey);
	TEST_EQ(mr->rkey, rkey);
	fx_fill(fx.b.buf, 64, 1);
	TEST_STATUS(fx_peer_write(mr->iova, 64, rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf, fx.b.buf, 64);
	TEST_STATUS(write_from(mr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf + 4096, fx.a.buf, 64);
	return TEST_SUCCESS;
}

/* What the access lacks, no enabling gives. */
TEST(mr_enable, enabling_gives_the_rights_asked_for)
{
	struct rmem_mr_attr attr = {.addr = fx.a.buf,
			.length = 64,
			.access = RMEM_ACCESS_REMOTE_READ,
			.flags = RMEM_MR_DISABLED};
	struct rmem_mr *mr = NULL;

	TEST_OK(rmem_mr_reg_attr(fx.a.pd, &attr, &mr));
	fx_track(mr);
	TEST_OK(rmem_mr_enable(mr));
	TEST_STATUS(fx_peer_write(mr->iova, 64, mr->rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(fx.wc.vendor_err, 5);
	return TEST_SUCCESS;
}

TEST(mr_enable, enabling_what_is_enabled_does_nothing)
{
	struct rmem_mr *mr = disabled_mr(0, 0);

	TEST_ASSERT(mr != NULL);
	TEST_OK(rmem_mr_enable(mr));
	TEST_OK(rmem_mr_enable(mr));
	TEST_OK(rmem_mr_enable(fx.a.mr));
	TEST_STATUS(fx_peer_write(mr->iova, 64, mr->rkey), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

TEST(mr_enable, disabled_region_takes_a_requested_key)
{
	uint32_t rkey = fx.a.mr->rkey;
	struct rmem_mr *mr;

	TEST_OK(fx_release(fx.a.mr));
	mr = disabled_mr(RMEM_MR_REQUESTED_KEY, rkey);
	TEST_ASSERT(mr != NULL);
	TEST_EQ(mr->rkey, rkey);
	TEST_STATUS(fx_peer_write(mr->iova, 64, rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_OK(fx_reconnect());
	TEST_OK(rmem_mr_enable(mr));
	TEST_STATUS(fx_peer_write(mr->iova, 64, rkey), RMEM_WC_SUCCESS);
	return TEST_SUCCESS;
}

TEST_WITH(mr_enable, enable_refuses_what_is_no_user_region, fx_setup_fast)
{
	static uint64_t zeros[64];

	TEST_ERR(rmem_mr_enable(NULL), EINVAL);
	TEST_ERR(rmem_mr_enable((struct rmem_mr *)zeros), EINVAL);
	TEST_ERR(rmem_mr_enable((struct rmem_mr *)fx.a.pd), EINVAL);
	TEST_ERR(rmem_mr_enable(fx.fast.mr), EINVAL);
	return TEST_SUCCESS;
}

TEST_SUITE(mr_enable, fx_setup, fx_teardown);
