/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Memory counts as pinned while an MR covers it, each MR in full, and the kernel locks none. */

#include <string.h>

#include <rte_eal.h>
#include <rte_malloc.h>

#include "fixture_pin.h"

/* Register, and check what counts. */
static void
expect(unsigned int how, size_t first, size_t length, uint64_t pages)
{
	uint64_t before = pin_counted();
	struct rmem_mr *mr = pin_reg(how, first, length);

	TEST_ASSERT(mr != NULL);
	TEST_EQ(pin_counted(), before + pages * FX_PAGE);
	TEST_EQ(pin_locked(), 100000000);
	TEST_EQ(fx_query(mr).is_pinned, pages != 0);
	TEST_OK(fx_release(mr));
	TEST_EQ(pin_counted(), before);
}

TEST(pin, pages_of_a_region_count_until_dereg)
{
	expect(PIN_AUTO, FX_PAGE + 8, 2 * FX_PAGE, 3);
	expect(PIN_REQUIRE, FX_PAGE + 8, 2 * FX_PAGE, 3);
	expect(PIN_REQUIRE, 0, PIN_SIZE, PIN_NB_PAGES);
	expect(PIN_AUTO, 8, 1, 1);
}

TEST_CALL(pin, off_counts_nothing, expect(PIN_OFF, 0, PIN_SIZE, 0));

TEST(pin, regions_over_a_page_count_in_full)
{
	uint64_t before = pin_counted();
	struct rmem_mr *mr = pin_reg(PIN_AUTO, 0, 100), *other;

	TEST_ASSERT(mr != NULL);
	expect(PIN_REQUIRE, 200, 100, 1);
	other = pin_reg(PIN_AUTO, FX_PAGE - 1, 2);
	TEST_ASSERT(other != NULL);
	TEST_EQ(pin_counted(), before + 3 * FX_PAGE);
	TEST_OK(fx_release(mr));
	TEST_EQ(pin_counted(), before + 2 * FX_PAGE);
	TEST_OK(fx_release(other));
	TEST_EQ(pin_counted(), before);
}

TEST(pin, ranges_of_a_list_count)
{
	const struct iovec iov[] = {{pin_pages + 5 * FX_PAGE, 8}, {pin_pages, FX_PAGE + 1},
			{pin_pages + 8, FX_PAGE}};
	const struct rmem_mr_attr attr = {
			.iov = iov, .iov_count = RTE_DIM(iov), .access = FX_ACCESS};
	uint64_t before = pin_counted();
	struct rmem_mr *mr = NULL;

	TEST_OK(fx_reg_attr(pin_pds[PIN_AUTO], &attr, &mr));
	TEST_EQ(pin_counted(), before + 5 * FX_PAGE);
	TEST_EQ(fx_query(mr).is_pinned, 1);
	TEST_OK(fx_release(mr));
	TEST_EQ(pin_counted(), before);
}

/* Hugepages do not: the kernel never swaps them. */
TEST(pin, plain_pages_of_eal_count)
{
	uint64_t before = pin_counted();
	struct rmem_mr *mr;
	void *mem;

	TEST_SKIP_IF(rte_eal_has_hugepages(), "EAL has hugepages");
	mem = rte_malloc(NULL, 2 * FX_PAGE, FX_PAGE);
	mr = fx_mr(pin_pds[PIN_AUTO], mem, 2 * FX_PAGE, FX_ACCESS);
	TEST_EQ(pin_counted(), before + 2 * FX_PAGE);
	TEST_OK(fx_release(mr));
	TEST_EQ(pin_counted(), before);
	rte_free(mem);
}

TEST(pin, sharers_count_again)
{
	struct rmem_mr *mr = pin_reg(PIN_AUTO, 0, 8), *other = NULL;
	uint64_t one = pin_counted();

	TEST_ASSERT(mr != NULL);
	TEST_OK(rmem_mr_reg_shared(mr, pin_pds[PIN_AUTO], 0, FX_ACCESS, &other));
	fx_track(other);
	TEST_EQ(fx_query(other).is_pinned, 1);
	TEST_EQ(pin_counted(), one + FX_PAGE);
	TEST_OK(fx_release(mr));
	TEST_EQ(pin_counted(), one);
	TEST_OK(fx_release(other));
	TEST_EQ(pin_counted(), one - FX_PAGE);
}

TEST(pin, rereg_counts_the_new_memory)
{
	uint64_t before = pin_counted();
	struct rmem_mr *mr = pin_reg(PIN_AUTO, 0, 2 * FX_PAGE);
	enum rmem_rereg_result result;

	TEST_ASSERT(mr != NULL);
	TEST_OK(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_TRANSLATION, NULL, pin_pages + FX_PAGE,
			3 * FX_PAGE, 0, &result));
	TEST_EQ(result, RMEM_REREG_OK);
	TEST_EQ(pin_counted(), before + 3 * FX_PAGE);
	TEST_OK(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, RMEM_ACCESS_REMOTE_READ,
			NULL));
	TEST_EQ(pin_counted(), before + 3 * FX_PAGE);
	TEST_EQ(fx_query(mr).is_pinned, 1);
	TEST_OK(fx_release(mr));
	TEST_EQ(pin_counted(), before);
}

TEST(pin, objects_bound_by_requests_are_not_pinned)
{
	TEST_EQ(fx_query(fx_fast_mr(pin_pds[PIN_REQUIRE], 4)).is_pinned, 0);
	TEST_EQ(fx_query(fx_mkey(pin_pds[PIN_REQUIRE], 4)).is_pinned, 0);
}

TEST(pin, background_registration_counts)
{
	const struct rmem_mr_attr attr = {.addr = pin_pages,
			.length = PIN_SIZE,
			.access = FX_ACCESS,
			.eq = fx_eq(fx.a.dev, 1)};
	uint64_t before = pin_counted();
	struct rmem_mr *mr = NULL;

	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	TEST_OK(fx_event(attr.eq).status);
	TEST_EQ(pin_counted(), before + PIN_SIZE);
	TEST_EQ(fx_query(mr).is_pinned, 1);
	TEST_OK(fx_release(mr));
	TEST_EQ(pin_counted(), before);
}

TEST(pin, failed_registration_counts_nothing)
{
	struct rmem_mr_attr attr = {.addr = pin_pages,
			.length = PIN_SIZE,
			.access = FX_ACCESS,
			.flags = RMEM_MR_REQUESTED_KEY};
	struct rmem_mr *taken = pin_reg(PIN_AUTO, 0, 8);
	uint64_t before = pin_counted();
	struct rmem_mr *mr = NULL;

	TEST_ASSERT(taken != NULL);
	attr.requested_key = taken->rkey;
	TEST_ERR(rmem_mr_reg_attr(pin_pds[PIN_AUTO], &attr, &mr), EEXIST);
	TEST_EQ(pin_counted(), before);
	attr.length = PIN_SIZE + FX_PAGE;
	TEST_ERR(rmem_mr_reg_attr(pin_pds[PIN_AUTO], &attr, &mr), EFAULT);
	TEST_EQ(pin_counted(), before);
}

static void
race(void *seed)
{
	pin_race(seed, 0, 2, NULL);
}

TEST(pin, regions_of_several_lcores_count)
{
	uint64_t before = pin_counted();

	pin_on_lcores(race);
	TEST_EQ(pin_counted(), before);
}

TEST_SUITE(pin, pin_setup, pin_teardown);
