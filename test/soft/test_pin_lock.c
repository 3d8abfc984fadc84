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
			/* Not of whole pages. */
			mrs[i].mr = pin_reg(PIN_LOCK, mrs[i].first * FX_PAGE + 8 * i,
					(mrs[i].last - mrs[i].first + 1) * FX_PAGE - 16 * i);
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

	TEST_EQ(pin_nb_ranges(), 0);
	TEST_OK(fx_reg_attr(pin_pds[PIN_LOCK], &attr, &mr));
	TEST_EQ(pin_locked(), 111000100);
	TEST_EQ(pin_nb_ranges(), 2);
	TEST_EQ(fx_query(mr).is_pinned, 1);
	TEST_OK(fx_release(mr));
	TEST_EQ(pin_locked(), 100000000);
	TEST_EQ(pin_nb_ranges(), 0);
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

static void
map_over(size_t page, size_t nb)
{
	void *at = pin_pages + page * FX_PAGE;

	TEST_ASSERT(mmap(at, nb * FX_PAGE, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
}

/* An MR of the old memory that is still held, as by a cache of another device, does not matter. */
TEST(pin_lock, memory_mapped_over_a_region_is_locked)
{
	struct rmem_pd *pd = fx_pd(fx_dev("soft20", "pin=lock"));
	struct rmem_mr *old, *mr;

	TEST_OK(mlock(pin_pages + 4 * FX_PAGE, 2 * FX_PAGE));
	old = pin_reg(PIN_LOCK, 0, 6 * FX_PAGE);
	TEST_EQ(pin_locked(), 111111100);
	map_over(1, 2);
	map_over(4, 1);
	TEST_EQ(pin_locked(), 110010100);
	mr = fx_mr(pd, pin_pages, 6 * FX_PAGE, FX_ACCESS);
	TEST_EQ(pin_locked(), 111111100);
	TEST_OK(fx_release(old));
	TEST_EQ(pin_locked(), 111111100);
	TEST_OK(fx_release(mr));
	TEST_EQ(pin_locked(), 100000100);
}

TEST_SUITE(pin_lock, pin_setup_lock, pin_teardown);
