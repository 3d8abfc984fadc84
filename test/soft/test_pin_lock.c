/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* With pin=lock, memory is locked while an MR covers it; locks of the program remain. */

#include <string.h>
#include <sys/mman.h>

#include "fixture_pin.h"

TEST(pin_lock, pages_of_a_region_are_locked_until_dereg)
{
	struct rmem_mr *mr = pin_reg(PIN_LOCK, FX_PAGE + 8, 2 * FX_PAGE);

	TEST_ASSERT(mr != NULL);
	TEST_EQ(pin_locked(), 101110000);
	TEST_EQ(fx_query(mr).is_pinned, 1);
	TEST_OK(fx_release(mr));
	TEST_EQ(pin_locked(), 100000000);
}

/* Dereg of one must not unpin the other, in either order. */
TEST(pin_lock, regions_over_a_page_count)
{
	struct rmem_mr *mr[4];

	mr[0] = pin_reg(PIN_LOCK, 0, 100);
	mr[1] = pin_reg(PIN_LOCK, 200, 100);
	mr[2] = pin_reg(PIN_LOCK, FX_PAGE - 1, 2);
	TEST_ASSERT(mr[0] != NULL && mr[1] != NULL && mr[2] != NULL);
	TEST_EQ(pin_locked(), 111000000);
	TEST_OK(fx_release(mr[0]));
	TEST_EQ(pin_locked(), 111000000);
	TEST_OK(fx_release(mr[2]));
	TEST_EQ(pin_locked(), 110000000);
	mr[3] = pin_reg(PIN_LOCK, 0, 8);
	TEST_OK(fx_release(mr[1]));
	TEST_EQ(pin_locked(), 110000000);
	TEST_OK(fx_release(mr[3]));
	TEST_EQ(pin_locked(), 100000000);
}

TEST(pin_lock, overlaps_of_every_kind_count)
{
	struct rmem_mr *mid = pin_reg(PIN_LOCK, 2 * FX_PAGE, 2 * FX_PAGE);
	struct rmem_mr *all = pin_reg(PIN_LOCK, 0, 6 * FX_PAGE);
	struct rmem_mr *low = pin_reg(PIN_LOCK, FX_PAGE, 2 * FX_PAGE);
	struct rmem_mr *high = pin_reg(PIN_LOCK, 3 * FX_PAGE, 5 * FX_PAGE);

	TEST_ASSERT(mid != NULL && all != NULL && low != NULL && high != NULL);
	TEST_EQ(pin_locked(), 111111111);
	TEST_OK(fx_release(all));
	TEST_EQ(pin_locked(), 101111111);
	TEST_OK(fx_release(mid));
	TEST_EQ(pin_locked(), 101111111);
	TEST_OK(fx_release(low));
	TEST_EQ(pin_locked(), 100011111);
	TEST_OK(fx_release(high));
	TEST_EQ(pin_locked(), 100000000);
}

/* At random, against a count for each page. */
TEST(pin_lock, random_regions_match_the_model)
{
	struct {
		struct rmem_mr *mr;
		size_t first;
		size_t last;
	} mrs[12] = {{NULL, 0, 0}};
	unsigned int count[PIN_NB_PAGES] = {0};
	uint64_t random = UINT64_C(88172645463325252), want;
	unsigned int i, j, round;

	for (round = 0; round < 3000; round++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		i = (unsigned int)(random % RTE_DIM(mrs));
		if (mrs[i].mr != NULL) {
			TEST_OK(fx_release(mrs[i].mr));
			mrs[i].mr = NULL;
		} else {
			mrs[i].first = (random >> 8) % PIN_NB_PAGES;
			mrs[i].last = mrs[i].first + (random >> 16) % (PIN_NB_PAGES - mrs[i].first);
			mrs[i].mr = pin_reg(PIN_LOCK, mrs[i].first * FX_PAGE,
					(mrs[i].last - mrs[i].first + 1) * FX_PAGE);
			TEST_ASSERT(mrs[i].mr != NULL);
		}
		for (j = (unsigned int)mrs[i].first; j <= mrs[i].last; j++)
			count[j] += mrs[i].mr != NULL ? 1 : -1u;
		for (want = 1, j = 0; j < PIN_NB_PAGES; j++)
			want = want * 10 + (count[j] != 0);
		TEST_EQ(pin_locked(), want);
	}
}

/* Memory locked by the application remains locked. */
TEST(pin_lock, locks_of_the_program_stay)
{
	struct rmem_mr *one, *all;

	TEST_OK(mlock(pin_pages + 2 * FX_PAGE, 2 * FX_PAGE));
	one = pin_reg(PIN_LOCK, 2 * FX_PAGE, 8);
	TEST_ASSERT(one != NULL);
	TEST_EQ(fx_query(one).is_pinned, 1);
	all = pin_reg(PIN_LOCK, 0, PIN_SIZE);
	TEST_ASSERT(all != NULL);
	TEST_EQ(pin_locked(), 111111111);
	TEST_OK(fx_release(all));
	TEST_EQ(pin_locked(), 100110000);
	TEST_OK(fx_release(one));
	TEST_EQ(pin_locked(), 100110000);
	TEST_OK(munlock(pin_pages + 2 * FX_PAGE, 2 * FX_PAGE));
	TEST_EQ(pin_locked(), 100000000);
}

TEST(pin_lock, range_of_many_mappings_is_pinned)
{
	struct rmem_mr *mr;

	TEST_OK(mprotect(pin_pages + FX_PAGE, FX_PAGE, PROT_READ | PROT_WRITE | PROT_EXEC));
	TEST_OK(mlock(pin_pages, 2 * FX_PAGE));
	TEST_OK(mlock(pin_pages + 5 * FX_PAGE, FX_PAGE));
	mr = pin_reg(PIN_LOCK, 8, PIN_SIZE - 16);
	TEST_ASSERT(mr != NULL);
	TEST_EQ(pin_locked(), 111111111);
	TEST_OK(fx_release(mr));
	TEST_EQ(pin_locked(), 111000100);
}

TEST(pin_lock, all_ranges_of_a_list_are_pinned)
{
	const struct iovec iov[] = {{pin_pages + 5 * FX_PAGE, 8}, {pin_pages, FX_PAGE + 1},
			{pin_pages + 8, FX_PAGE}};
	const struct rmem_mr_attr attr = {
			.iov = iov, .iov_count = RTE_DIM(iov), .access = FX_ACCESS};
	struct rmem_mr *mr = NULL;

	TEST_OK(fx_reg_attr(pin_pds[PIN_LOCK], &attr, &mr));
	TEST_EQ(pin_locked(), 111000100);
	TEST_EQ(fx_query(mr).is_pinned, 1);
	TEST_OK(fx_release(mr));
	TEST_EQ(pin_locked(), 100000000);
}

TEST(pin_lock, sharers_pin_again)
{
	struct rmem_mr *mr = pin_reg(PIN_LOCK, 0, 8), *other = NULL;

	TEST_ASSERT(mr != NULL);
	TEST_OK(rmem_mr_reg_shared(mr, pin_pds[PIN_LOCK], 0, FX_ACCESS, &other));
	fx_track(other);
	TEST_EQ(fx_query(other).is_pinned, 1);
	TEST_OK(fx_release(mr));
	TEST_EQ(pin_locked(), 110000000);
	TEST_OK(fx_release(other));
	TEST_EQ(pin_locked(), 100000000);
}

TEST(pin_lock, rereg_pins_the_new_and_unpins_the_old)
{
	struct rmem_mr *mr = pin_reg(PIN_LOCK, 0, 2 * FX_PAGE);
	enum rmem_rereg_result result;

	TEST_ASSERT(mr != NULL);
	TEST_OK(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_TRANSLATION, NULL, pin_pages + FX_PAGE,
			2 * FX_PAGE, 0, &result));
	TEST_EQ(result, RMEM_REREG_OK);
	TEST_EQ(pin_locked(), 101100000);
	TEST_OK(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, RMEM_ACCESS_REMOTE_READ,
			NULL));
	TEST_EQ(pin_locked(), 101100000);
	TEST_EQ(fx_query(mr).is_pinned, 1);
	TEST_OK(fx_release(mr));
	TEST_EQ(pin_locked(), 100000000);
}

/* Of locked memory alone. The class DO_FORK_OLD of ibv_rereg_mr: the new MR is valid. */
TEST(pin_lock, rereg_reports_unmapped_old_memory)
{
	struct rmem_mr *mr = pin_reg(PIN_LOCK, 0, FX_PAGE);
	enum rmem_rereg_result result;

	TEST_ASSERT(mr != NULL);
	TEST_OK(munmap(pin_pages, FX_PAGE));
	TEST_ERR(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_TRANSLATION, NULL, pin_pages + FX_PAGE,
				 FX_PAGE, 0, &result),
			EFAULT);
	TEST_EQ(result, RMEM_REREG_ERR_DO_FORK_OLD);
	TEST_ASSERT(mr->addr == pin_pages + FX_PAGE);
	TEST_EQ(fx_mr_state(mr), RMEM_MR_STATE_VALID);
	TEST_EQ(fx_query(mr).is_pinned, 1);
	TEST_OK(fx_release(mr));
	TEST_ASSERT(!pin_is_locked(1));
}

/* A failed registration leaves no page pinned. */
TEST(pin_lock, failed_registration_unpins)
{
	struct rmem_mr_attr attr = {.addr = pin_pages,
			.length = PIN_SIZE,
			.access = FX_ACCESS,
			.flags = RMEM_MR_REQUESTED_KEY};
	struct rmem_mr *taken = pin_reg(PIN_LOCK, 0, 8);
	struct rmem_mr *mr = NULL;

	TEST_ASSERT(taken != NULL);
	attr.requested_key = taken->rkey;
	TEST_ERR(rmem_mr_reg_attr(pin_pds[PIN_LOCK], &attr, &mr), EEXIST);
	TEST_EQ(pin_locked(), 110000000);
	attr.length = PIN_SIZE + FX_PAGE;
	TEST_ERR(rmem_mr_reg_attr(pin_pds[PIN_LOCK], &attr, &mr), EFAULT);
	TEST_EQ(pin_locked(), 110000000);
}

/* The first page is pinned all the time. */
static void
expect_locked(size_t page)
{
	TEST_ASSERT(pin_is_locked(page) && pin_is_locked(0));
}

static void
race(void *seed)
{
	pin_race(seed, PIN_LOCK, 1, expect_locked);
}

TEST(pin_lock, regions_of_several_lcores_count)
{
	struct rmem_mr *mr = pin_reg(PIN_LOCK, 0, 8);

	TEST_ASSERT(mr != NULL);
	pin_on_lcores(race);
	TEST_EQ(pin_locked(), 110000000);
	TEST_OK(fx_release(mr));
	TEST_EQ(pin_locked(), 100000000);
}

/* The kernel discards no locked page. */
TEST(pin_lock, locked_pages_are_not_discarded)
{
	struct rmem_mr *mr = pin_reg(PIN_LOCK, 0, PIN_SIZE);

	TEST_ASSERT(mr != NULL);
	TEST_EQ(madvise(pin_pages, PIN_SIZE, MADV_DONTNEED), -1);
	TEST_EQ(errno, EINVAL);
	TEST_OK(fx_release(mr));
	TEST_OK(madvise(pin_pages, PIN_SIZE, MADV_DONTNEED));
}

TEST_SUITE(pin_lock, pin_setup_lock, pin_teardown);
