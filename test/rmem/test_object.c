/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Objects of every type are created and released alike: handles, limits, memory. */

#include <string.h>

#include "fixture.h"
#include "object.h"

/* QPs, SRQs and CQs are created with these, or with NULL: with the CQ of a, without a channel. */
static struct rmem_cq *cq;
static struct rmem_comp_channel *comp_channel;
static struct rmem_async_channel *async_channel;

int
object_make_pd(void *dev, void **pd)
{
	return rmem_pd_alloc(dev, (struct rmem_pd **)pd);
}

int
object_make_cq(void *dev, void **made)
{
	const struct rmem_cq_conf conf = {
			.nb_cqe = 64, .channel = comp_channel, .async_channel = async_channel};

	return rmem_cq_create(dev, &conf, (struct rmem_cq **)made);
}

static int
make_list(void *dev, void **list)
{
	return rmem_fast_reg_page_list_alloc(dev, 64, (struct rmem_fast_reg_page_list **)list);
}

static int
make_eq(void *dev, void **eq)
{
	const struct rmem_eq_conf conf = {.nb_events = 1};

	return rmem_eq_create(dev, &conf, (struct rmem_eq **)eq);
}

static int
make_counter(void *dev, void **counter)
{
	return rmem_counter_create(dev, NULL, (struct rmem_counter **)counter);
}

static int
make_comp_channel(void *dev, void **channel)
{
	return rmem_comp_channel_create(dev, (struct rmem_comp_channel **)channel);
}

static int
make_async_channel(void *dev, void **channel)
{
	return rmem_async_channel_create(dev, (struct rmem_async_channel **)channel);
}

static int
make_dm(void *dev, void **dm)
{
	const struct rmem_dm_conf conf = {.length = 64};

	return rmem_dm_alloc(dev, &conf, (struct rmem_dm **)dm);
}

int
object_make_mr(void *pd, void **mr)
{
	return rmem_mr_reg(pd, fx.a.buf, 64, 0, 0, (struct rmem_mr **)mr);
}

static int
make_allocated_mr(void *pd, void **mr)
{
	return rmem_mr_reg(pd, NULL, 64, 0, RMEM_ACCESS_ALLOCATE_MR, (struct rmem_mr **)mr);
}

static int
make_shared_mr(void *pd, void **mr)
{
	return rmem_mr_reg_shared(fx.a.mr, pd, 0, FX_ACCESS, (struct rmem_mr **)mr);
}

int
object_make_fast_mr(void *pd, void **mr)
{
	return rmem_fast_reg_mr_alloc(pd, 64, (struct rmem_mr **)mr);
}

int
object_make_mkey(void *pd, void **mr)
{
	return rmem_mkey_alloc(pd, 64, (struct rmem_mr **)mr);
}

static int
make_null_mr(void *pd, void **mr)
{
	return rmem_null_mr_alloc(pd, (struct rmem_mr **)mr);
}

int
object_make_mw(void *pd, void **mw)
{
	return rmem_mw_alloc(pd, RMEM_MW_TYPE_2, (struct rmem_mw **)mw);
}

int
object_make_srq(void *pd, void **srq)
{
	const struct rmem_srq_conf conf = {.max_wr = 4, .async_channel = async_channel};

	return rmem_srq_create(pd, &conf, (struct rmem_srq **)srq);
}

int
object_make_qp(void *pd, void **qp)
{
	struct rmem_qp_conf conf = fx_qp_conf(cq != NULL ? cq : fx.a.cq, 16);

	conf.async_channel = async_channel;
	return rmem_qp_create(pd, &conf, (struct rmem_qp **)qp);
}

#define RELEASE(call)                                                                              \
	static int call##_of(void *object)                                                         \
	{                                                                                          \
		return call(object);                                                               \
	}

RELEASE(rmem_pd_dealloc)
RELEASE(rmem_cq_destroy)
RELEASE(rmem_fast_reg_page_list_free)
RELEASE(rmem_eq_destroy)
RELEASE(rmem_counter_destroy)
RELEASE(rmem_comp_channel_destroy)
RELEASE(rmem_async_channel_destroy)
RELEASE(rmem_dm_free)
RELEASE(rmem_mr_dereg)
RELEASE(rmem_mw_dealloc)
RELEASE(rmem_srq_destroy)
RELEASE(rmem_qp_destroy)

/* Those of a device, and then those of a PD. A device with the limit has two of them, or any. */
static const struct kind {
	int (*make)(void *parent, void **object);
	int (*release)(void *object);
	const char *limit;
	bool is_of_pd;
} kinds[] = {
		{object_make_pd, rmem_pd_dealloc_of, "max_pd=2", false},
		{object_make_cq, rmem_cq_destroy_of, "max_cq=3", false},
		{make_list, rmem_fast_reg_page_list_free_of, NULL, false},
		{make_eq, rmem_eq_destroy_of, NULL, false},
		{make_counter, rmem_counter_destroy_of, NULL, false},
		{make_comp_channel, rmem_comp_channel_destroy_of, NULL, false},
		{make_async_channel, rmem_async_channel_destroy_of, NULL, false},
		{make_dm, rmem_dm_free_of, "max_dm=2", false},
		{object_make_mr, rmem_mr_dereg_of, "max_mr=2", true},
		{make_allocated_mr, rmem_mr_dereg_of, "max_mr=2", true},
		{make_shared_mr, rmem_mr_dereg_of, NULL, true},
		{object_make_fast_mr, rmem_mr_dereg_of, "max_mr=2", true},
		{object_make_mkey, rmem_mr_dereg_of, "max_mr=2", true},
		{make_null_mr, rmem_mr_dereg_of, "max_mr=2", true},
		{object_make_mw, rmem_mw_dealloc_of, "max_mw=2", true},
		{object_make_srq, rmem_srq_destroy_of, "max_srq=2", true},
		{object_make_qp, rmem_qp_destroy_of, "max_qp=2", true},
};

static const struct kind *kind;
static void *parent;

static int
make(void **object)
{
	return kind->make(parent, object);
}

static void
setup(void)
{
	fx_setup();
	cq = NULL;
	comp_channel = NULL;
	async_channel = NULL;
}

/* Each is shown to be a handle of another type to the other calls. */
TEST(object, null_and_wrong_handles_are_refused)
{
	static uint64_t zeros[64] __rte_cache_aligned;
	void *made = NULL;

	for (kind = kinds; kind < kinds + RTE_DIM(kinds); kind++) {
		TEST_ERR(kind->make(NULL, &made), EINVAL);
		TEST_ERR(kind->make(zeros, &made), EINVAL);
		TEST_ERR(kind->make(fx.a.qp, &made), EINVAL);
		TEST_ERR(kind->make(kind->is_of_pd ? (void *)fx.a.dev : (void *)fx.a.pd, &made),
				EINVAL);
		TEST_ERR(kind->make(kind->is_of_pd ? (void *)fx.a.pd : (void *)fx.a.dev, NULL),
				EINVAL);
		TEST_ASSERT(made == NULL);
		TEST_OK(kind->release(NULL));
		TEST_ERR(kind->release(zeros), EINVAL);
		TEST_ERR(kind->release(fx.a.dev), EINVAL);
	}
}

/* IBTA C10-10 for those of a PD. */
TEST(object, parent_of_an_object_is_ebusy)
{
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	void *made = NULL;

	for (kind = kinds; kind < kinds + RTE_DIM(kinds); kind++) {
		if (kind->is_of_pd) {
			pd = fx_pd(fx.a.dev);
			TEST_OK(kind->make(pd, &made));
			TEST_ERR(rmem_pd_dealloc(pd), EBUSY);
			TEST_OK(kind->release(made));
			TEST_OK(fx_release(pd));
		} else {
			dev = fx_dev("soft1", "max_mr=8");
			TEST_OK(kind->make(dev, &made));
			FX_ERR_LOG(rmem_dev_close(dev), EBUSY, "soft1");
			TEST_OK(kind->release(made));
			TEST_OK(fx_release(dev));
		}
	}
}

TEST(object, one_too_many_is_enospc_until_one_is_released)
{
	void *first = NULL, *made = NULL, *none = NULL;
	struct rmem_dev *dev;

	for (kind = kinds; kind < kinds + RTE_DIM(kinds); kind++) {
		if (kind->limit == NULL)
			continue;
		dev = fx_dev("soft1", kind->limit);
		cq = fx_cq(dev, 1);
		parent = kind->is_of_pd ? (void *)fx_pd(dev) : (void *)dev;
		TEST_ASSERT(parent != NULL);
		TEST_OK(make(&first));
		TEST_OK(make(&made));
		TEST_ERR(make(&none), ENOSPC);
		TEST_ASSERT(none == NULL);
		TEST_OK(kind->release(first));
		TEST_OK(make(&first));
		TEST_OK(kind->release(first));
		TEST_OK(kind->release(made));
		if (kind->is_of_pd)
			TEST_OK(fx_release(parent));
		TEST_OK(fx_release(cq));
		cq = NULL;
		TEST_OK(fx_release(dev));
	}
}

static void
expect_enomem(void)
{
	for (kind = kinds; kind < kinds + RTE_DIM(kinds); kind++) {
		parent = kind->is_of_pd ? (void *)fx.a.pd : (void *)fx.a.dev;
		fx_expect_enomem(make);
	}
}

/* No parent is held either, nor a channel. */
TEST(object, no_memory_is_enomem_and_nothing_stays)
{
	expect_enomem();
	comp_channel = fx_channel(fx.a.dev);
	async_channel = fx_async_channel(fx.a.dev);
	expect_enomem();
	TEST_OK(fx_release(comp_channel));
	TEST_OK(fx_release(async_channel));
	TEST_OK(fx_release(fx.a.qp));
	TEST_OK(fx_release(fx.a.cq));
}

TEST(object, domains_have_their_device_and_a_handle)
{
	struct rmem_pd *other = fx_pd(fx_dev("soft1", NULL));
	static uint64_t zeros[64] __rte_cache_aligned;

	TEST_ASSERT(rmem_pd_dev(fx.a.pd) == fx.a.dev);
	TEST_ASSERT(rmem_pd_dev(other) == rmem_dev_get_by_name("soft1"));
	TEST_ASSERT(rmem_pd_dev(NULL) == NULL);
	TEST_ASSERT(rmem_pd_dev((const struct rmem_pd *)zeros) == NULL);
	TEST_ASSERT(fx_pd(fx.a.dev)->handle != fx.a.pd->handle);
	/* It is usable after a refused release. */
	TEST_ERR(rmem_pd_dealloc(fx.a.pd), EBUSY);
	fx_mr(fx.a.pd, fx.a.buf, 1, 0);
}

TEST_SUITE(object, setup, fx_teardown);
