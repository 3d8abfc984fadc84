/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Advice on the pages of on-demand MRs (seed-0; ibv_advise_mr(3)): at once and in the background.
 */

#include <sys/mman.h>

#include "fixture_odp.h"

#define LARGE_SIZE (UINT32_C(64) << 20)

/* Part of the MR, in pages. */
static struct rmem_sge
pages(uint32_t first, uint32_t nb)
{
	return (struct rmem_sge){.addr = fx_odp.mr->iova + (uint64_t)first * FX_PAGE,
			.length = nb * FX_PAGE,
			.lkey = fx_odp.mr->lkey};
}

static int
advise(int advice, uint32_t first, uint32_t nb)
{
	const struct rmem_sge sge = pages(first, nb);

	return rmem_mr_advise(fx.a.pd, advice, RMEM_ADVISE_FLUSH, &sge, 1);
}

TEST(odp_advise, prefetch_brings_the_pages_of_a_range)
{
	uint32_t i;

	TEST_OK(advise(RMEM_ADVISE_PREFETCH, 2, 3));
	for (i = 0; i < FX_ODP_PAGES; i++)
		TEST_EQ(fx_odp_is_resident(i), i >= 2 && i < 5);
	TEST_EQ(fx_stats(fx_odp.mr).prefetches, 3);
	TEST_EQ(fx_stats(fx_odp.mr).pages, 3);
	TEST_EQ(fx_stats(fx_odp.mr).page_faults, 0);
	TEST_STATUS(fx_odp_do(FX_ODP_READ_FROM, fx_addr(fx_odp_page(2)), 3 * FX_PAGE),
			RMEM_WC_SUCCESS);
	TEST_EQ(fx_stats(fx_odp.mr).page_faults, 0);
	/* They are had for reading only. */
	TEST_STATUS(fx_odp_write(2, 3 * FX_PAGE), RMEM_WC_SUCCESS);
	TEST_EQ(fx_stats(fx_odp.mr).page_faults, 3);
}

TEST(odp_advise, prefetch_for_writing_saves_the_fault_of_a_write)
{
	TEST_OK(advise(RMEM_ADVISE_PREFETCH, 0, 2));
	TEST_OK(advise(RMEM_ADVISE_PREFETCH_WRITE, 1, 2));
	TEST_EQ(fx_stats(fx_odp.mr).prefetches, 4);
	TEST_OK(advise(RMEM_ADVISE_PREFETCH_WRITE, 1, 2));
	TEST_EQ(fx_stats(fx_odp.mr).prefetches, 4);
	TEST_STATUS(fx_odp_write(1, 2 * FX_PAGE), RMEM_WC_SUCCESS);
	TEST_EQ(fx_stats(fx_odp.mr).page_faults, 0);
	TEST_EQ(fx_dev_stats(fx.a.dev).odp_prefetches, 4);
}

TEST(odp_advise, prefetch_without_fault_knows_what_is_there)
{
	*fx_odp_page(1) = 1;
	*fx_odp_page(6) = 1;
	TEST_OK(advise(RMEM_ADVISE_PREFETCH_NO_FAULT, 0, FX_ODP_PAGES));
	TEST_EQ(fx_stats(fx_odp.mr).prefetches, 2);
	TEST_ASSERT(!fx_odp_is_resident(0));
	TEST_STATUS(fx_odp_do(FX_ODP_READ_FROM, fx_addr(fx_odp_page(1)), 64), RMEM_WC_SUCCESS);
	TEST_EQ(fx_stats(fx_odp.mr).page_faults, 0);
	TEST_STATUS(fx_odp_do(FX_ODP_READ_FROM, fx_addr(fx_odp_page(2)), 64), RMEM_WC_SUCCESS);
	TEST_EQ(fx_stats(fx_odp.mr).page_faults, 1);
}

/* Several parts, of two MRs, one of no bytes. */
TEST(odp_advise, advice_covers_all_of_a_list)
{
	struct rmem_mr *all = fx_mr(fx.a.pd, NULL, SIZE_MAX, fx_odp_access());
	struct rmem_sge list[] = {pages(0, 1), pages(3, 1), pages(5, 0), pages(7, 1)};

	list[3].lkey = all->lkey;
	TEST_OK(rmem_mr_advise(fx.a.pd, RMEM_ADVISE_PREFETCH, RMEM_ADVISE_FLUSH, list, 4));
	TEST_EQ(fx_stats(fx_odp.mr).prefetches, 2);
	TEST_EQ(fx_stats(all).prefetches, 1);
	TEST_ASSERT(fx_odp_is_resident(7) && !fx_odp_is_resident(5));
}

static void
wait_for_prefetches(struct rmem_mr *mr, uint64_t want)
{
	FX_AWAIT(fx_stats(mr).prefetches >= want);
	TEST_EQ(fx_stats(mr).prefetches, want);
}

TEST(odp_advise, advice_is_followed_in_the_background)
{
	const struct rmem_sge list[] = {pages(0, 1), pages(4, 2)};
	uint32_t round;

	for (round = 1; round <= 3; round++) {
		TEST_OK(rmem_mr_advise(fx.a.pd, RMEM_ADVISE_PREFETCH_WRITE, 0, list, 2));
		wait_for_prefetches(fx_odp.mr, 3 * round);
		TEST_ASSERT(fx_odp_is_resident(0) && fx_odp_is_resident(5));
		TEST_ASSERT(!fx_odp_is_resident(1));
		TEST_OK(madvise(fx_odp.mem, FX_ODP_SIZE, MADV_DONTNEED));
		TEST_EQ(fx_stats(fx_odp.mr).pages, 0);
	}
}

/* Missing pages are not reported, and following ones are populated. */
TEST(odp_advise, advice_in_the_background_passes_over_holes)
{
	const struct rmem_sge list[] = {pages(1, 1), pages(3, 1)};

	TEST_OK(fx_odp_protect(1, PROT_NONE));
	TEST_OK(rmem_mr_advise(fx.a.pd, RMEM_ADVISE_PREFETCH, 0, list, 2));
	wait_for_prefetches(fx_odp.mr, 1);
	TEST_ASSERT(fx_odp_is_resident(3));
	TEST_EQ(fx_stats(fx_odp.mr).failed_faults, 0);
}

/* The MR is released, or changes its memory, while advice is in progress. */
TEST(odp_advise, advice_ends_with_its_mr)
{
	uint8_t *large = fx_map(LARGE_SIZE);
	struct rmem_sge sge = {.addr = fx_addr(large), .length = LARGE_SIZE};
	struct rmem_mr *mr;
	uint32_t i;

	for (i = 0; i < 6; i++) {
		TEST_OK(madvise(large, LARGE_SIZE, MADV_DONTNEED));
		mr = fx_mr(fx.a.pd, large, LARGE_SIZE,
				RMEM_ACCESS_ON_DEMAND | RMEM_ACCESS_REMOTE_READ);
		sge.lkey = mr->lkey;
		TEST_OK(rmem_mr_advise(fx.a.pd, RMEM_ADVISE_PREFETCH, 0, &sge, 1));
		if (i & 1)
			TEST_OK(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_TRANSLATION, NULL, fx_odp.mem,
					FX_ODP_SIZE, 0, NULL));
		TEST_EQ(fx_stats(mr).prefetches == 0 || !(i & 1), true);
		TEST_OK(fx_release(mr));
	}
}

/* Also with valid preceding parts: all of them are checked first. */
TEST(odp_advise, advice_on_invalid_keys_is_refused)
{
	struct rmem_mr *read = fx_mr(fx.a.pd, fx_odp.mem, FX_PAGE, RMEM_ACCESS_ON_DEMAND);
	struct rmem_pd *pd = fx_pd(fx.a.dev);
	struct rmem_sge list[] = {pages(0, 1), pages(0, 1)};

	TEST_ERR(rmem_mr_advise(pd, RMEM_ADVISE_PREFETCH, 0, list, 1), EPERM);
	list[1].lkey = read->lkey;
	TEST_ERR(rmem_mr_advise(fx.a.pd, RMEM_ADVISE_PREFETCH_WRITE, RMEM_ADVISE_FLUSH, list, 2),
			EPERM);
	list[1].lkey = fx_odp.mr->rkey;
	TEST_ERR(rmem_mr_advise(fx.a.pd, RMEM_ADVISE_PREFETCH, RMEM_ADVISE_FLUSH, list, 2), ENOENT);
	list[1].lkey = UINT32_MAX;
	TEST_ERR(rmem_mr_advise(fx.a.pd, RMEM_ADVISE_PREFETCH, 0, list, 2), ENOENT);
	list[1] = pages(FX_ODP_PAGES - 1, 2);
	TEST_ERR(rmem_mr_advise(fx.a.pd, RMEM_ADVISE_PREFETCH, RMEM_ADVISE_FLUSH, list, 2), EFAULT);
	TEST_EQ(fx_stats(fx_odp.mr).prefetches, 0);
}

TEST(odp_advise, advice_on_memory_that_is_not_there_is_efault)
{
	TEST_OK(fx_odp_protect(1, PROT_NONE));
	TEST_ERR(advise(RMEM_ADVISE_PREFETCH, 0, 3), EFAULT);
	TEST_OK(fx_odp_protect(1, PROT_READ));
	TEST_OK(advise(RMEM_ADVISE_PREFETCH, 0, 3));
	TEST_ERR(advise(RMEM_ADVISE_PREFETCH_WRITE, 0, 3), EFAULT);
	TEST_OK(fx_odp_unmap(2));
	TEST_ERR(advise(RMEM_ADVISE_PREFETCH_NO_FAULT, 0, 3), EFAULT);
	TEST_OK(fx_odp_map(2));
}

TEST(odp_advise, advice_without_memory_is_enomem)
{
	const struct rmem_sge sge = pages(0, 1);
	int ret;

	fx_leave_memory(0);
	ret = rmem_mr_advise(fx.a.pd, RMEM_ADVISE_PREFETCH, 0, &sge, 1);
	fx_free_memory();
	TEST_ERR(ret, ENOMEM);
}

TEST_SUITE(odp_advise, fx_setup_odp, fx_teardown);
