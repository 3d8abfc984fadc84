/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * userfaultfd reports evicted pages of on-demand MRs to the device, if the kernel
 * permits it: the device's counter changes without a query of the MR.
 */

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fixture_odp.h"

#define LARGE_SIZE (UINT32_C(64) << 20)

/* All pages are known. */
static void
setup(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	fx_setup_odp();
	TEST_SKIP_IF(fd < 0, "the kernel gives this user no userfaultfd");
	close(fd);
	TEST_STATUS(fx_odp_write(0, FX_ODP_SIZE), RMEM_WC_SUCCESS);
}

static void
expect_news(uint64_t want)
{
	FX_AWAIT(fx_dev_stats(fx.a.dev).odp_invalidations >= want);
	TEST_EQ(fx_dev_stats(fx.a.dev).odp_invalidations, want);
}

TEST(odp_uffd, discarded_pages_are_reported)
{
	TEST_OK(madvise(fx_odp_page(2), 3 * FX_PAGE, MADV_DONTNEED));
	expect_news(3);
	TEST_STATUS(fx_odp_write(2, 3 * FX_PAGE), RMEM_WC_SUCCESS);
	TEST_EQ(fx_stats(fx_odp.mr).page_faults, FX_ODP_PAGES + 3);
}

TEST(odp_uffd, unmapped_and_moved_pages_are_reported)
{
	void *to = fx_map(FX_PAGE);

	TEST_OK(fx_odp_unmap(1));
	expect_news(1);
	TEST_OK(fx_odp_map(1));
	TEST_OK(fx_odp_map(3));
	expect_news(2);
	TEST_ASSERT(mremap(fx_odp_page(5), FX_PAGE, FX_PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) ==
			to);
	expect_news(3);
	TEST_OK(fx_odp_map(5));
}

/* Memory not mapped at the registration, or replaced, is watched from its fault on. */
TEST(odp_uffd, pages_that_are_mapped_later_are_reported)
{
	TEST_OK(fx_odp_map(4));
	expect_news(1);
	TEST_STATUS(fx_odp_write(4, FX_PAGE), RMEM_WC_SUCCESS);
	TEST_OK(madvise(fx_odp_page(4), FX_PAGE, MADV_DONTNEED));
	expect_news(2);
	TEST_OK(fx_odp_map(4));
	TEST_STATUS(fx_odp_write(4, FX_PAGE), RMEM_WC_SUCCESS);
	TEST_OK(fx_odp_unmap(4));
	expect_news(3);
	TEST_OK(fx_odp_map(4));
}

TEST(odp_uffd, all_mrs_over_a_page_are_reported)
{
	struct rmem_mr *other = fx_mr(fx.a.pd, fx_odp.mem, FX_ODP_SIZE, fx_odp_access());

	TEST_STATUS(fx_peer_write(fx_addr(fx_odp_page(1)), 64, other->rkey), RMEM_WC_SUCCESS);
	TEST_OK(madvise(fx_odp_page(1), FX_PAGE, MADV_DONTNEED));
	expect_news(2);
	/* A released one does not affect the others. */
	TEST_OK(fx_release(other));
	TEST_OK(madvise(fx_odp_page(2), FX_PAGE, MADV_DONTNEED));
	expect_news(3);
}

/* It is detected by a query of the MR's counters. */
TEST(odp_uffd, device_without_events_scans_its_pages)
{
	struct rmem_dev *dev = fx_dev("soft8", "odp_uffd=0");
	struct rmem_mr *mr = fx_mr(fx_pd(dev), fx_odp.mem, FX_ODP_SIZE, fx_odp_access());
	struct rmem_sge sge = {.addr = fx_addr(fx_odp.mem), .length = FX_ODP_SIZE};

	sge.lkey = mr->lkey;
	TEST_OK(rmem_mr_advise(mr->pd, RMEM_ADVISE_PREFETCH, RMEM_ADVISE_FLUSH, &sge, 1));
	TEST_OK(madvise(fx_odp_page(1), 2 * FX_PAGE, MADV_DONTNEED));
	expect_news(2); /* of the other device */
	TEST_EQ(fx_dev_stats(dev).odp_invalidations, 0);
	TEST_EQ(fx_stats(mr).invalidations, 2);
	TEST_EQ(fx_dev_stats(dev).odp_invalidations, 2);
}

/* The range is not watched: userfaultfd permits one descriptor per mapping. */
static void
expect_not_watched(void *start, size_t length)
{
	struct uffdio_register reg = {
			.range = {(uintptr_t)start, length}, .mode = UFFDIO_REGISTER_MODE_WP};
	struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP};
	int ret, fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	TEST_ASSERT(fd >= 0);
	ret = ioctl(fd, UFFDIO_API, &api);
	if (ret == 0)
		ret = ioctl(fd, UFFDIO_REGISTER, &reg);
	close(fd);
	TEST_EQ(ret, 0);
}

/* The MR has a hole, so that each step of the advice watches its pages again. */
TEST(odp_uffd, advice_on_a_freed_mr_does_not_watch)
{
	uint8_t *large = fx_map(LARGE_SIZE);
	struct rmem_sge sge = {.addr = fx_addr(large), .length = LARGE_SIZE - FX_PAGE};
	struct rmem_mr *mr;
	uint32_t i;

	TEST_OK(munmap(large + sge.length, FX_PAGE));
	for (i = 0; i < 20; i++) {
		TEST_OK(madvise(large, sge.length, MADV_DONTNEED));
		mr = fx_mr(fx.a.pd, large, LARGE_SIZE,
				RMEM_ACCESS_ON_DEMAND | RMEM_ACCESS_REMOTE_READ);
		sge.lkey = mr->lkey;
		TEST_OK(rmem_mr_advise(fx.a.pd, RMEM_ADVISE_PREFETCH, 0, &sge, 1));
		TEST_OK(fx_release(mr));
		expect_not_watched(large, sge.length);
	}
}

TEST_SUITE(odp_uffd, setup, fx_teardown);
