/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Protection domains are counted, limited, and released only when nothing belongs to them. */

#include "fixture.h"
#include "test.h"

static int
domains_of_a_device_have_different_handles(void)
{
	struct rmem_pd *a = fx_pd(fx.a.dev);
	struct rmem_pd *b = fx_pd(fx.a.dev);

	TEST_ASSERT(a != NULL && b != NULL && a != b);
	TEST_ASSERT(a->handle != b->handle);
	return TEST_SUCCESS;
}

static int
device_of_a_domain_is_known(void)
{
	struct rmem_pd *own = fx_pd(fx.a.dev), *other = fx_pd(fx_dev("soft1", NULL));
	static uint64_t zeros[64];

	TEST_ASSERT(rmem_pd_dev(own) == fx.a.dev);
	TEST_ASSERT(rmem_pd_dev(other) == rmem_dev_get_by_name("soft1"));
	TEST_ASSERT(rmem_pd_dev(NULL) == NULL);
	TEST_ASSERT(rmem_pd_dev((const struct rmem_pd *)zeros) == NULL);
	return TEST_SUCCESS;
}

static int
alloc_refuses_null_and_wrong_handles(void)
{
	static uint64_t zeros[64];
	struct rmem_pd *pd = NULL;
	struct rmem_pd *other = fx_pd(fx.a.dev);

	TEST_ERR(rmem_pd_alloc(NULL, &pd), EINVAL);
	TEST_ERR(rmem_pd_alloc((struct rmem_dev *)zeros, &pd), EINVAL);
	TEST_ERR(rmem_pd_alloc((struct rmem_dev *)other, &pd), EINVAL);
	TEST_ERR(rmem_pd_alloc(fx.a.dev, NULL), EINVAL);
	TEST_ASSERT(pd == NULL);
	return TEST_SUCCESS;
}

static int
one_domain_too_many_is_enospc_and_dealloc_makes_room(void)
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
	return TEST_SUCCESS;
}

static int
make_pd(void **pd)
{
	return rmem_pd_alloc(fx.a.dev, (struct rmem_pd **)pd);
}

static int
no_memory_is_enomem_and_nothing_stays(void)
{
	return fx_expect_enomem(make_pd);
}

static int
dealloc_of_null_does_nothing(void)
{
	TEST_OK(rmem_pd_dealloc(NULL));
	return TEST_SUCCESS;
}

static int
dealloc_of_what_is_no_domain_is_refused(void)
{
	static uint64_t zeros[64];

	TEST_ERR(rmem_pd_dealloc((struct rmem_pd *)zeros), EINVAL);
	TEST_ERR(rmem_pd_dealloc((struct rmem_pd *)fx.a.dev), EINVAL);
	return TEST_SUCCESS;
}

static int
expect_busy(struct rmem_pd *pd, void *object)
{
	TEST_ASSERT(object != NULL);
	TEST_ERR(rmem_pd_dealloc(pd), EBUSY);
	TEST_OK(fx_release(object));
	return TEST_SUCCESS;
}

/* IBTA C10-10 */
static int
dealloc_while_something_belongs_to_it_is_ebusy(void)
{
	struct rmem_pd *pd = fx_pd(fx.a.dev);
	uint8_t *buf = fx_mem(64, 64);

	TEST_ASSERT(pd != NULL);
	TEST_RUN(expect_busy(pd, fx_mr(pd, buf, 64, 0)));
	TEST_RUN(expect_busy(pd, fx_fast_mr(pd, 1)));
	TEST_RUN(expect_busy(pd, fx_qp(pd, fx.a.cq, 1)));
	TEST_OK(fx_release(pd));
	return TEST_SUCCESS;
}

static int
domain_works_on_after_a_refused_dealloc(void)
{
	TEST_ERR(rmem_pd_dealloc(fx.a.pd), EBUSY);
	TEST_ASSERT(fx_mr(fx.a.pd, fx.a.buf, 1, 0) != NULL);
	return TEST_SUCCESS;
}

static const struct test_case pd_cases[] = {
		TEST_CASE(domains_of_a_device_have_different_handles),
		TEST_CASE(device_of_a_domain_is_known),
		TEST_CASE(alloc_refuses_null_and_wrong_handles),
		TEST_CASE(one_domain_too_many_is_enospc_and_dealloc_makes_room),
		TEST_CASE(no_memory_is_enomem_and_nothing_stays),
		TEST_CASE(dealloc_of_null_does_nothing),
		TEST_CASE(dealloc_of_what_is_no_domain_is_refused),
		TEST_CASE_WITH(fx_setup, dealloc_while_something_belongs_to_it_is_ebusy),
		TEST_CASE_WITH(fx_setup, domain_works_on_after_a_refused_dealloc),
};

REGISTER_RMEM_SUITE(pd, fx_setup_dev, fx_teardown, pd_cases);
