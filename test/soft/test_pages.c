/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Helpers of the class for drivers: pages, threads, ranges; and the version of the library. */

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_memzone.h>

#include <rmem_driver.h>

#include "fixture.h"

static void
run(void *arg)
{
	__atomic_store_n((bool *)arg, true, __ATOMIC_RELEASE);
}

TEST(pages, header_and_library_are_of_one_version)
{
	TEST_EQ(rmem_version(), RMEM_VERSION);
	TEST_EQ(RMEM_VERSION_NUM(1, 2, 3), 0x010203);
}

TEST(pages, range_is_held_by_whole_pages)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	struct iovec range = {.iov_base = (void *)(page + 1), .iov_len = page};
	uintptr_t first, end;

	rmem_pages_of(&range, &first, &end);
	TEST_EQ(first, page);
	TEST_EQ(end, 3 * page);
	range.iov_len = page - 1;
	rmem_pages_of(&range, &first, &end);
	TEST_EQ(end, 2 * page);
}

TEST(pages, only_mapped_pages_are_populated)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *mem = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t at = (uintptr_t)mem;

	TEST_ASSERT(mem != MAP_FAILED);
	TEST_OK(rmem_pages_populate(at, at + page, false));
	if (rmem_pages_can_populate())
		TEST_ERR(rmem_pages_populate(at, at + page, true), EINVAL);
	TEST_EQ(munmap(mem, page), 0);
	if (rmem_pages_can_populate())
		TEST_ERR(rmem_pages_populate(at, at + page, false), EFAULT);
}

TEST(pages, only_memory_of_eal_has_pages_of_eal)
{
	/* Not rte_malloc(), whose memory may be that of an address sanitizer. */
	const struct rte_memzone *mz = rte_memzone_reserve("pages", 64, SOCKET_ID_ANY, 0);
	struct iovec range = {.iov_len = 64};
	uint64_t size;

	TEST_ASSERT(mz != NULL);
	range.iov_base = mz->addr;
	size = rmem_pages_eal_size(&range);
	TEST_OK(rte_memzone_free(mz));
	TEST_ASSERT(size >= (uint64_t)sysconf(_SC_PAGESIZE));
	range.iov_base = &range;
	TEST_EQ(rmem_pages_eal_size(&range), 0);
}

TEST(pages, maps_line_is_parsed)
{
	uintptr_t first, end;

	TEST_ASSERT(rmem_pages_parse("1000-fff000 r--p 0 00:00 0\n", &first, &end));
	TEST_EQ(first, 0x1000);
	TEST_EQ(end, 0xfff000);
	TEST_ASSERT(!rmem_pages_parse("KernelPageSize: 4 kB\n", &first, &end));
}

TEST(pages, control_thread_runs_its_function)
{
	bool has_run = false; /* atomic */
	struct rmem_thread thread = {.run = run, .arg = &has_run};

	TEST_OK(rmem_thread_start(&thread, "rmem-test"));
	TEST_EQ(pthread_join(thread.id, NULL), 0);
	TEST_ASSERT(__atomic_load_n(&has_run, __ATOMIC_ACQUIRE));
}

TEST(pages, ranges_of_an_mr_are_returned)
{
	const struct iovec *iov;
	struct iovec one;

	TEST_EQ(rmem_mr_ranges(fx.a.mr, &one, &iov), 1);
	TEST_ASSERT(iov == &one && one.iov_base == fx.a.mr->addr && one.iov_len == fx.a.mr->length);
}

TEST_SUITE(pages, fx_setup, fx_teardown);
