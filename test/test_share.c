/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* MRs that share memory: each has its own PD and rights, and memory goes when nobody uses it. */

#include <string.h>
#include <sys/mman.h>

#include "fixture.h"
#include "test.h"

#define READ_ONLY (RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_READ)
#define ALLOCATE  (FX_ACCESS | RMEM_ACCESS_ALLOCATE_MR)

static struct rmem_mr *
share(struct rmem_mr *from, uint32_t access)
{
	struct rmem_mr *mr = NULL;

	if (rmem_mr_reg_shared(from, fx.a.pd, 0, access, &mr) != 0)
		return NULL;
	fx_track(mr);
	return mr;
}

/* The peer may write there, or is refused; the sides are connected afterwards. */
static int
expect_write(const struct rmem_mr *mr, bool is_open)
{
	int status = fx_peer_write(mr->iova, 64, mr->rkey);

	TEST_STATUS(status, is_open ? RMEM_WC_SUCCESS : RMEM_WC_REM_ACCESS_ERR);
	return is_open ? TEST_SUCCESS : fx_reconnect();
}

TEST(share, shared_mr_has_its_own_keys_and_rights)
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf + 5, 100, FX_ACCESS);
	struct rmem_mr *other = share(mr, READ_ONLY);
	struct rmem_mr_info info;

	TEST_ASSERT(mr != NULL && other != NULL);
	TEST_ASSERT(other->rkey != mr->rkey && other->lkey != mr->lkey);
	TEST_ASSERT(other->addr == mr->addr);
	TEST_EQ(other->length, 100);
	TEST_EQ(other->iova, mr->iova);
	info = fx_query(other);
	TEST_EQ(info.is_shared, 1);
	TEST_EQ(info.state, RMEM_MR_STATE_VALID);
	TEST_EQ(info.access, READ_ONLY);
	TEST_EQ(fx_query(mr).is_shared, 0);
	TEST_RUN(expect_write(other, false));
	return expect_write(mr, true);
}

TEST(share, shared_mr_may_be_of_another_pd)
{
	struct rmem_pd *pd = fx_pd(fx.a.dev);
	struct rmem_mr *mr = fx_mr(pd, fx.a.buf, 100, FX_ACCESS);
	struct rmem_mr *other = share(mr, FX_ACCESS);

	TEST_ASSERT(other != NULL);
	TEST_RUN(expect_write(mr, false));
	TEST_RUN(expect_write(other, true));
	TEST_OK(fx_release(mr));
	TEST_OK(fx_release(pd));
	return expect_write(other, true);
}

TEST(share, shared_mr_takes_an_iova)
{
	struct rmem_mr *mr = NULL;

	TEST_OK(rmem_mr_reg_shared(fx.a.mr, fx.a.pd, 0x123, FX_ACCESS, &mr));
	fx_track(mr);
	TEST_EQ(mr->iova, 0x123);
	TEST_RUN(expect_write(mr, true));
	mr = share(fx.a.mr, FX_ACCESS | RMEM_ACCESS_ZERO_BASED);
	TEST_ASSERT(mr != NULL);
	TEST_EQ(mr->iova, 0);
	return expect_write(mr, true);
}

TEST(share, memory_of_the_user_is_shared_by_equals)
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, 100, FX_ACCESS);
	struct rmem_mr *second = share(mr, FX_ACCESS), *third = share(second, FX_ACCESS);

	TEST_ASSERT(third != NULL);
	TEST_OK(fx_release(mr));
	TEST_OK(fx_release(second));
	return expect_write(third, true);
}

/* Sharers of sharers too count as users of the memory. */
TEST(share, owner_of_allocated_memory_goes_last)
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, NULL, 100, ALLOCATE);
	struct rmem_mr *second = share(mr, FX_ACCESS), *third = share(second, FX_ACCESS);
	enum rmem_rereg_result result = RMEM_REREG_OK;

	TEST_ASSERT(third != NULL);
	TEST_OK(fx_release(second));
	TEST_ERR(rmem_mr_dereg(mr), EBUSY);
	TEST_ERR(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_TRANSLATION, NULL, fx.a.buf, 64, 0, &result),
			EBUSY);
	TEST_EQ(result, RMEM_REREG_ERR_INPUT);
	TEST_RUN(expect_write(third, true));
	TEST_OK(fx_release(third));
	TEST_OK(fx_release(mr));
	return TEST_SUCCESS;
}

TEST(share, other_memory_ends_the_sharing)
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, NULL, 100, ALLOCATE);
	struct rmem_mr *other = share(mr, FX_ACCESS);

	TEST_ASSERT(other != NULL);
	TEST_OK(rmem_mr_rereg(other, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, READ_ONLY, NULL));
	TEST_EQ(fx_query(other).is_shared, 1);
	TEST_ERR(rmem_mr_dereg(mr), EBUSY);
	/* A change that fails ends nothing. */
	TEST_ERR(rmem_mr_rereg(other, RMEM_REREG_CHANGE_TRANSLATION, NULL, NULL, (size_t)1 << 45,
				 ALLOCATE, NULL),
			ENOMEM);
	TEST_ERR(rmem_mr_dereg(mr), EBUSY);
	TEST_OK(rmem_mr_rereg(other, RMEM_REREG_CHANGE_TRANSLATION, NULL, fx.a.buf, 64, 0, NULL));
	TEST_EQ(fx_query(other).is_shared, 0);
	TEST_OK(fx_release(mr));
	return TEST_SUCCESS;
}

TEST(share, bad_handles_are_refused)
{
	struct rmem_mr *fast = fx_fast_mr(fx.a.pd, 1), *mr = NULL;
	struct rmem_pd *pd = fx_pd(fx_dev("soft7", NULL));
	struct rmem_mr *from = fx.a.mr;

	TEST_ASSERT(fast != NULL && pd != NULL);
	TEST_ERR(rmem_mr_reg_shared(NULL, fx.a.pd, 0, 0, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg_shared((struct rmem_mr *)fx.a.pd, fx.a.pd, 0, 0, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg_shared(fast, fx.a.pd, 0, 0, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg_shared(from, NULL, 0, 0, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg_shared(from, (struct rmem_pd *)from, 0, 0, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg_shared(from, pd, 0, 0, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg_shared(from, fx.a.pd, 0, 0, NULL), EINVAL);
	TEST_ASSERT(mr == NULL);
	TEST_OK(fx_release(pd));
	return TEST_SUCCESS;
}

/* A device without atomics on demand. */
static int
expect_lacking_access(void)
{
	const uint32_t access = FX_ACCESS | RMEM_ACCESS_ON_DEMAND;
	struct rmem_pd *pd = fx_pd(fx_dev("soft8", "odp_guard=0"));
	struct rmem_mr *from = fx_mr(pd, fx.a.buf, 64, FX_ACCESS), *mr;

	TEST_ASSERT(from != NULL);
	TEST_ERR(rmem_mr_reg_shared(from, pd, 0, access, &mr), EOPNOTSUPP);
	return TEST_SUCCESS;
}

TEST(share, bad_access_and_iova_are_refused)
{
	struct rmem_mr *mr = NULL;

	TEST_ERR(rmem_mr_reg_shared(fx.a.mr, fx.a.pd, 0, ALLOCATE, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg_shared(fx.a.mr, fx.a.pd, 0, RMEM_ACCESS_REMOTE_WRITE, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg_shared(fx.a.mr, fx.a.pd, 0, UINT32_C(1) << 31, &mr), EINVAL);
	TEST_RUN(expect_lacking_access());
	TEST_ERR(rmem_mr_reg_shared(fx.a.mr, fx.a.pd, UINT64_MAX, 0, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg_shared(fx.a.mr, fx.a.pd, 1, RMEM_ACCESS_ZERO_BASED, &mr), EINVAL);
	TEST_ASSERT(mr == NULL);
	return TEST_SUCCESS;
}

/* What was refused counts nowhere: the MR can go. */
TEST(share, memory_without_the_right_is_efault)
{
	struct rmem_mr *from = fx_mr(fx.a.pd, fx_map(FX_PAGE), FX_PAGE, RMEM_ACCESS_REMOTE_READ);
	struct rmem_mr *mr = NULL;

	TEST_ASSERT(from != NULL);
	TEST_ERR(rmem_mr_reg_shared(from, fx.a.pd, 0, FX_ACCESS, &mr), EFAULT);
	TEST_ASSERT(mr == NULL && share(from, RMEM_ACCESS_REMOTE_READ) != NULL);
	TEST_OK(fx_release(from));
	return TEST_SUCCESS;
}

TEST(share, full_table_is_enospc)
{
	struct rmem_pd *pd = fx_pd(fx_dev("soft8", "max_mr=1"));
	struct rmem_mr *from = fx_mr(pd, NULL, 64, ALLOCATE), *mr = NULL;

	TEST_ASSERT(from != NULL);
	TEST_ERR(rmem_mr_reg_shared(from, pd, 0, FX_ACCESS, &mr), ENOSPC);
	TEST_OK(fx_release(from));
	TEST_OK(fx_release(pd));
	return TEST_SUCCESS;
}

static int
make_shared(void **mr)
{
	return rmem_mr_reg_shared(fx.a.mr, fx.a.pd, 0, FX_ACCESS, (struct rmem_mr **)mr);
}

TEST(share, too_little_memory_is_enomem)
{
	return fx_expect_enomem(make_shared);
}

TEST_SUITE(share, fx_setup, fx_teardown);
