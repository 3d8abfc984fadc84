/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Protection domains are counted, limited, and released only when nothing belongs to them. */

#include "fixture.h"
#include "test.h"

TEST(pd, domains_of_a_device_have_different_handles)
{
	struct rmem_pd *a = fx_pd(fx.a.dev);
	struct rmem_pd *b = fx_pd(fx.a.dev);

	TEST_ASSERT(a != NULL && b != NULL && a != b);
	TEST_ASSERT(a->handle != b->handle);
}

TEST(pd, device_of_a_domain_is_known)
{
	struct rmem_pd *own = fx_pd(fx.a.dev), *other = fx_pd(fx_dev("soft1", NULL));
	static uint64_t zeros[64] __rte_cache_aligned;

	TEST_ASSERT(rmem_pd_dev(own) == fx.a.dev);
	TEST_ASSERT(rmem_pd_dev(other) == rmem_dev_get_by_name("soft1"));
	TEST_ASSERT(rmem_pd_dev(NULL) == NULL);
	TEST_ASSERT(rmem_pd_dev((const struct rmem_pd *)zeros) == NULL);
}

TEST(pd, alloc_refuses_null_and_wrong_handles)
{
	static uint64_t zeros[64] __rte_cache_aligned;
	struct rmem_pd *pd = NULL;
	struct rmem_pd *other = fx_pd(fx.a.dev);

	TEST_ERR(rmem_pd_alloc(NULL, &pd), EINVAL);
	TEST_ERR(rmem_pd_alloc((struct rmem_dev *)zeros, &pd), EINVAL);
	TEST_ERR(rmem_pd_alloc((struct rmem_dev *)other, &pd), EINVAL);
	TEST_ERR(rmem_pd_alloc(fx.a.dev, NULL), EINVAL);
	TEST_ASSERT(pd == NULL);
}

TEST(pd, one_domain_too_many_is_enospc_until_one_is_deallocated)
{
	struct rmem_dev *dev = fx_dev("soft1", "max_pd=3");
	struct rmem_pd *pd = NULL;
	struct rmem_pd *last = NULL;
	int i;

	TEST_ASSERT(dev != NULL);
	for (i = 0; i < 3; i++) {
		last = fx_pd(dev);
		TEST_ASSERT(last != NULL);
	}
	TEST_ERR(rmem_pd_alloc(dev, &pd), ENOSPC);
	TEST_ASSERT(pd == NULL);
	TEST_OK(fx_release(last));
	TEST_ASSERT(fx_pd(dev) != NULL);
}

static int
make_pd(void **pd)
{
	return rmem_pd_alloc(fx.a.dev, (struct rmem_pd **)pd);
}

TEST(pd, no_memory_is_enomem_and_nothing_stays)
{
	fx_expect_enomem(make_pd);
}

TEST(pd, dealloc_of_null_does_nothing)
{
	TEST_OK(rmem_pd_dealloc(NULL));
}

TEST(pd, dealloc_of_another_object_is_refused)
{
	static uint64_t zeros[64] __rte_cache_aligned;

	TEST_ERR(rmem_pd_dealloc((struct rmem_pd *)zeros), EINVAL);
	TEST_ERR(rmem_pd_dealloc((struct rmem_pd *)fx.a.dev), EINVAL);
}

static void
expect_busy(struct rmem_pd *pd, void *object)
{
	TEST_ASSERT(object != NULL);
	TEST_ERR(rmem_pd_dealloc(pd), EBUSY);
	TEST_OK(fx_release(object));
}

/* IBTA C10-10 */
TEST_WITH(pd, dealloc_of_a_pd_in_use_is_ebusy, fx_setup)
{
	struct rmem_pd *pd = fx_pd(fx.a.dev);
	uint8_t *buf = fx_mem(64, 64);

	TEST_ASSERT(pd != NULL);
	expect_busy(pd, fx_mr(pd, buf, 64, 0));
	expect_busy(pd, fx_fast_mr(pd, 1));
	expect_busy(pd, fx_qp(pd, fx.a.cq, 1));
	TEST_OK(fx_release(pd));
}

TEST_WITH(pd, domain_is_usable_after_a_refused_dealloc, fx_setup)
{
	TEST_ERR(rmem_pd_dealloc(fx.a.pd), EBUSY);
	TEST_ASSERT(fx_mr(fx.a.pd, fx.a.buf, 1, 0) != NULL);
}

TEST_SUITE(pd, fx_setup_dev, fx_teardown);
