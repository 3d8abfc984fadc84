/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* At the limit of pinned memory pin=require and pin=lock fail like a NIC, pin=auto continues. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <rmem_cache.h>

#include "fixture_pin.h"

static struct rlimit old_limit;

/* The limit holds for this thread, at a sum of bytes and nb pages more. */
static void
limit_at(uint64_t used, uint64_t nb)
{
	struct rlimit limit;

	TEST_OK(getrlimit(RLIMIT_MEMLOCK, &old_limit));
	limit = old_limit;
	limit.rlim_cur = RTE_MIN(used + nb * FX_PAGE, (uint64_t)limit.rlim_max);
	TEST_OK(setrlimit(RLIMIT_MEMLOCK, &limit));
	TEST_OK(pin_set_may_lock(false));
}

/* At what the MRs of the process count. */
static void
limit_begin(uint64_t nb)
{
	static uint8_t large[1u << 20];
	struct rmem_mr *mr = NULL;

	limit_at(pin_counted(), nb);
	/* A limit that was lowered is noticed by the next MR of more than 256 KiB. */
	FX_ERR_LOG(rmem_mr_reg(pin_pds[PIN_REQUIRE], large, sizeof(large), 0, FX_ACCESS, &mr),
			ENOMEM, "RLIMIT_MEMLOCK is");
}

/* At what the process has locked. */
static void
limit_begin_locked(uint64_t nb)
{
	char line[256];
	uint64_t used = 0;
	FILE *f = fopen("/proc/self/status", "r");

	TEST_ASSERT(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, "VmLck:", 6) == 0)
			used = strtoull(line + 6, NULL, 10);
	fclose(f);
	limit_at(used * 1024, nb);
}

static void
limit_end(void)
{
	TEST_OK(pin_set_may_lock(true));
	TEST_OK(setrlimit(RLIMIT_MEMLOCK, &old_limit));
}

/* A NIC's answer: -ENOMEM, with the numbers, and nothing is kept. */
TEST(pin_limit, require_fails_at_the_limit)
{
	uint64_t before = pin_counted();
	struct rmem_mr *mr = NULL;
	const char *log;
	int small, large;

	limit_begin(2);
	small = rmem_mr_reg(pin_pds[PIN_REQUIRE], pin_pages, 2 * FX_PAGE, 0, FX_ACCESS, &mr);
	if (small == 0)
		fx_track(mr);
	fx_log_begin();
	large = rmem_mr_reg(pin_pds[PIN_REQUIRE], pin_pages, 3 * FX_PAGE, 0, FX_ACCESS, &mr);
	log = fx_log_end();
	limit_end();
	TEST_OK(small);
	TEST_ERR(large, ENOMEM);
	TEST_TEXT(log, "MR: not pinned: 12288 bytes");
	TEST_ASSERT(strstr(log, "RLIMIT_MEMLOCK is") != NULL && strstr(log, "are used") != NULL);
	TEST_ASSERT(strstr(log, "ulimit -l") != NULL && strstr(log, "CAP_IPC_LOCK") != NULL);
	TEST_EQ(pin_counted(), before + 2 * FX_PAGE);
	TEST_OK(fx_release(mr));
	TEST_EQ(pin_counted(), before);
}

/* Logs it once, and continues. */
TEST(pin_limit, auto_continues_at_the_limit)
{
	uint64_t before = pin_counted();
	struct rmem_mr *mr[3];
	const char *log;
	bool is_told, is_told_again;

	limit_begin(2);
	fx_log_begin();
	mr[0] = pin_reg(PIN_AUTO, 0, 3 * FX_PAGE);
	log = fx_log_end();
	is_told = strstr(log, "MR: not pinned: 12288 bytes (RLIMIT_MEMLOCK is") != NULL;
	fx_log_begin();
	mr[1] = pin_reg(PIN_AUTO, 0, 3 * FX_PAGE);
	is_told_again = fx_log_end()[0] != '\0';
	/* Memory within the limit is pinned. */
	mr[2] = pin_reg(PIN_AUTO, 0, FX_PAGE);
	limit_end();
	TEST_ASSERT(mr[0] != NULL && mr[1] != NULL && mr[2] != NULL);
	TEST_ASSERT(is_told && !is_told_again);
	TEST_EQ(fx_query(mr[0]).is_pinned, 0);
	TEST_EQ(fx_query(mr[2]).is_pinned, 1);
	TEST_EQ(pin_counted(), before + FX_PAGE);
	TEST_OK(fx_release(mr[0]));
	TEST_EQ(pin_counted(), before + FX_PAGE);
	TEST_OK(fx_release(mr[2]));
	TEST_EQ(pin_counted(), before);
}

TEST(pin_limit, off_needs_no_limit)
{
	struct rmem_mr *off;

	limit_begin(0);
	off = pin_reg(PIN_OFF, 0, PIN_SIZE);
	limit_end();
	TEST_ASSERT(off != NULL);
	TEST_EQ(fx_query(off).is_pinned, 0);
}

TEST(pin_limit, locked_memory_needs_no_limit)
{
	struct rmem_mr *again, *first;

	pin_need_lock();
	first = pin_reg(PIN_LOCK, 0, PIN_SIZE);
	TEST_ASSERT(first != NULL);
	limit_begin_locked(0);
	again = pin_reg(PIN_LOCK, 0, PIN_SIZE);
	limit_end();
	TEST_ASSERT(again != NULL);
	TEST_EQ(fx_query(again).is_pinned, 1);
}

/* As the kernel counts for a NIC: the pages of MRs over the same memory count for each. */
static void
count_in_full(struct rmem_pd *pd)
{
	uint64_t before = pin_counted();
	struct rmem_mr *mr[8], *more = NULL;
	unsigned int nb = 0;
	const char *log;
	int ret = 0;

	TEST_ASSERT(pd != NULL);
	limit_begin(6);
	fx_log_begin();
	while (nb < RTE_DIM(mr) && ret == 0) {
		ret = rmem_mr_reg(pd, pin_pages, 2 * FX_PAGE, 0, FX_ACCESS, &mr[nb]);
		nb += ret == 0;
	}
	log = fx_log_end();
	if (nb != 0 && rmem_mr_dereg(mr[nb - 1]) == 0)
		TEST_OK(rmem_mr_reg(pd, pin_pages, 2 * FX_PAGE, 0, FX_ACCESS, &more));
	limit_end();
	TEST_EQ(nb, 3);
	TEST_ERR(ret, ENOMEM);
	TEST_TEXT(log, "MR: not pinned: 8192 bytes");
	mr[nb - 1] = more;
	while (nb > 0)
		TEST_OK(rmem_mr_dereg(mr[--nb]));
	TEST_EQ(pin_counted(), before);
}

TEST(pin_limit, each_mr_counts_in_full)
{
	count_in_full(pin_pds[PIN_REQUIRE]);
	count_in_full(fx_pd(fx_dev("soft9", "profile=rxe")));
}

/* The class DONT_FORK_NEW of ibv_rereg_mr: the old MR is valid, and pinned. */
TEST(pin_limit, rereg_that_cannot_pin_keeps_the_old)
{
	uint64_t before = pin_counted();
	struct rmem_mr *mr = pin_reg(PIN_REQUIRE, 0, FX_PAGE);
	enum rmem_rereg_result result;
	int ret;

	TEST_ASSERT(mr != NULL);
	limit_begin(1);
	ret = rmem_mr_rereg(mr, RMEM_REREG_CHANGE_TRANSLATION, NULL, pin_pages, 3 * FX_PAGE, 0,
			&result);
	limit_end();
	TEST_ERR(ret, ENOMEM);
	TEST_EQ(result, RMEM_REREG_ERR_DONT_FORK_NEW);
	TEST_EQ(mr->length, FX_PAGE);
	TEST_EQ(pin_counted(), before + FX_PAGE);
	TEST_OK(fx_release(mr));
	TEST_EQ(pin_counted(), before);
}

static const struct rmem_mr_attr *
two_ranges(void)
{
	static struct iovec iov[2];
	static const struct rmem_mr_attr attr = {
			.iov = iov, .iov_count = RTE_DIM(iov), .access = FX_ACCESS};

	iov[0] = (struct iovec){pin_pages, 8};
	iov[1] = (struct iovec){pin_pages + 2 * FX_PAGE, 4 * FX_PAGE};
	return &attr;
}

/* A list whose second range does not fit leaves nothing of the first. */
TEST(pin_limit, list_is_pinned_as_a_whole)
{
	uint64_t before = pin_counted();
	struct rmem_mr *mr = NULL;
	int ret;

	limit_begin(3);
	ret = rmem_mr_reg_attr(pin_pds[PIN_REQUIRE], two_ranges(), &mr);
	limit_end();
	TEST_ERR(ret, ENOMEM);
	TEST_EQ(pin_counted(), before);
}

TEST(pin_limit, list_is_locked_as_a_whole)
{
	struct rmem_mr *mr = NULL;
	const char *log;
	int ret;

	pin_need_lock();
	limit_begin_locked(3);
	fx_log_begin();
	ret = rmem_mr_reg_attr(pin_pds[PIN_LOCK], two_ranges(), &mr);
	log = fx_log_end();
	limit_end();
	TEST_ERR(ret, ENOMEM);
	TEST_TEXT(log, "MR: not pinned: 20480 bytes (RLIMIT_MEMLOCK is");
	TEST_EQ(pin_locked(), 100000000);
}

TEST(pin_limit, hugepages_count_as_pinned)
{
	const size_t size = (size_t)2 << 20;
	struct rmem_mr *mr;
	void *mem;
	int ret = -1;

	mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 21 << MAP_HUGE_SHIFT, -1, 0);
	TEST_SKIP_IF(mem == MAP_FAILED, "no hugepage of 2 MiB is free");
	limit_begin(0);
	mr = fx_mr(pin_pds[PIN_REQUIRE], mem, size, FX_ACCESS | RMEM_ACCESS_HUGETLB);
	if (mr != NULL)
		ret = rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, FX_ACCESS, NULL);
	limit_end();
	TEST_OK(ret);
	TEST_EQ(fx_query(mr).is_pinned, 1);
	TEST_OK(fx_release(mr));
	TEST_OK(munmap(mem, size));
}

/* Stretches that lie apart: each costs mappings, of which the kernel gives a process so many. */
TEST(pin_limit, locking_stops_before_the_mapping_limit)
{
	static struct rmem_mr *mrs[20000];
	struct rmem_pd *pd = fx_pd(fx_dev("soft14", "pin=lock,max_mr=20001"));
	const size_t size = (2 * RTE_DIM(mrs) + 1) * FX_PAGE;
	uint8_t *mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct rmem_mr *last = NULL;
	const char *log;
	unsigned int nb = 0;
	int ret = 0, joined, again;

	TEST_ASSERT(mem != MAP_FAILED);
	fx_log_begin();
	for (; nb < RTE_DIM(mrs) && ret == 0; nb += ret == 0)
		ret = rmem_mr_reg(pd, mem + 2 * nb * FX_PAGE, 1, 0, FX_ACCESS, &mrs[nb]);
	log = fx_log_end();
	/* A range that joins two takes none. */
	joined = rmem_mr_reg(pd, mem + FX_PAGE, 1, 0, FX_ACCESS, &last);
	/* Its end splits them, which is one too many; memory that is locked takes none. */
	if (joined == 0 && ret != 0 &&
			rmem_mr_reg(pd, mem + 2 * nb * FX_PAGE, 1, 0, FX_ACCESS, &mrs[nb]) == 0)
		nb++;
	TEST_OK(rmem_mr_dereg(last));
	again = rmem_mr_reg(pd, mem, 1, 0, FX_ACCESS, &last);
	TEST_OK(again == 0 ? rmem_mr_dereg(last) : 0);
	while (nb > 0)
		TEST_OK(rmem_mr_dereg(mrs[--nb]));
	TEST_OK(munmap(mem, size));
	TEST_SKIP_IF(ret == 0, "vm.max_map_count is large");
	TEST_ERR(ret, ENOMEM);
	if (strstr(log, "RLIMIT_MEMLOCK is") != NULL)
		test_skip("RLIMIT_MEMLOCK is less than so many pages");
	TEST_TEXT(log, "vm.max_map_count");
	TEST_OK(joined);
	TEST_OK(again);
}

/* Two pages at a time: the MR that is not held is evicted, and its pages count no more. */
TEST(pin_limit, cache_evicts_at_the_limit)
{
	const struct rmem_cache_conf conf = {.max_size = UINT64_MAX,
			.monitor = RMEM_CACHE_MONITOR_CALLER,
			.socket_id = SOCKET_ID_ANY};
	uint64_t before = pin_counted();
	struct rmem_cache *cache;
	struct rmem_mr *mr, *held;

	TEST_OK(rmem_cache_create(pin_pds[PIN_REQUIRE], &conf, &cache));
	limit_begin(2);
	TEST_OK(rmem_cache_get(cache, pin_pages, FX_PAGE, 0, &held));
	TEST_OK(rmem_cache_get(cache, pin_pages + 2 * FX_PAGE, FX_PAGE, 0, &mr));
	TEST_OK(rmem_cache_put(cache, mr));
	TEST_OK(rmem_cache_get(cache, pin_pages + 4 * FX_PAGE, FX_PAGE, 0, &mr));
	TEST_EQ(pin_counted(), before + 2 * FX_PAGE);
	TEST_ERR(rmem_cache_get(cache, pin_pages + 6 * FX_PAGE, FX_PAGE, 0, &held), ENOMEM);
	limit_end();
	TEST_OK(rmem_cache_put(cache, mr));
	TEST_OK(rmem_cache_put(cache, held));
	TEST_OK(rmem_cache_destroy(cache));
}

TEST_SUITE(pin_limit, pin_setup, pin_teardown);
