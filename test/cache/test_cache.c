/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The registration cache returns MRs that cover a buffer, and none of memory that was replaced. */

#include <rmem_mw.h>
#include <rmem_pages.h>
#include <rmem_pd.h>
#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "test_cache.h"

struct cache_fixture cx;

void
cx_create(uint32_t monitor, uint32_t max_mrs, uint64_t max_size)
{
	const struct rmem_cache_conf conf = {.name = "cx",
			.max_mrs = max_mrs,
			.max_size = max_size,
			.monitor = monitor,
			.socket_id = SOCKET_ID_ANY};

	if (cx.cache != NULL)
		TEST_OK(rmem_cache_destroy(cx.cache));
	cx.cache = NULL;
	TEST_OK(rmem_cache_create(fx.a.pd, &conf, &cx.cache));
}

struct rmem_cache_stats
cx_stats(void)
{
	struct rmem_cache_stats stats = {.nb_mrs = UINT32_MAX};

	rmem_cache_stats_get(cx.cache, &stats);
	return stats;
}

void *
cx_map(void *at, size_t size, int flags)
{
	void *mem = mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1,
			0);

	return mem != MAP_FAILED ? mem : NULL;
}

static void
setup_any(uint32_t monitor)
{
	memset(&cx, 0, sizeof(cx));
	fx_setup();
	cx.mem = cx_map(NULL, CX_SIZE, 0);
	TEST_ASSERT(cx.mem != NULL);
	memset(cx.mem, 0, CX_SIZE);
	cx_create(monitor, 0, UINT64_MAX);
}

void
cx_setup(void)
{
	setup_any(RMEM_CACHE_MONITOR_CALLER);
}

/* With the events of the kernel. */
void
cx_setup_uffd(void)
{
	int ret = TEST_TRY(setup_any(RMEM_CACHE_MONITOR_AUTO));

	if (ret == TEST_SUCCESS && cx_stats().monitor != RMEM_CACHE_MONITOR_UFFD)
		test_skip("the kernel gives this user no userfaultfd");
	TEST_RUN(ret);
}

struct cache_hooks *
cx_hooks(void)
{
	return dlsym(RTLD_DEFAULT, CACHE_HOOKS_SYMBOL);
}

/* With the preloaded object. */
void
cx_setup_hooks(void)
{
	bool is_loaded = cx_hooks() != NULL;

	setup_any(is_loaded ? RMEM_CACHE_MONITOR_HOOKS : RMEM_CACHE_MONITOR_NONE);
	TEST_SKIP_IF(!(is_loaded), "librmem_cache_hooks.so is not preloaded");
}

void
cx_teardown(void)
{
	int ret = rmem_cache_destroy(cx.cache);

	if (cx.mem != NULL)
		munmap(cx.mem, CX_SIZE);
	fx_teardown();
	TEST_OK(ret);
}

TEST(cache, second_get_of_a_buffer_is_a_hit)
{
	struct rmem_mr *mr, *again, *part;

	TEST_OK(rmem_cache_get(cx.cache, cx.mem + 5, 100, CX_WRITE, &mr));
	TEST_ASSERT(mr->addr == cx.mem + 5 && mr->length == 100 && mr->access == CX_WRITE);
	TEST_OK(rmem_cache_get(cx.cache, cx.mem + 5, 100, CX_WRITE, &again));
	TEST_OK(rmem_cache_get(cx.cache, cx.mem + 104, 1, 0, &part));
	TEST_ASSERT(again == mr && part == mr);
	TEST_EQ(cx_stats().hits, 2);
	TEST_EQ(cx_stats().misses, 1);
	TEST_OK(rmem_cache_put(cx.cache, mr));
	TEST_OK(rmem_cache_put(cx.cache, mr));
	TEST_OK(rmem_cache_put(cx.cache, mr));
	TEST_EQ(cx_stats().nb_mrs, 1);
	TEST_EQ(cx_stats().size, 100);
}

TEST(cache, byte_outside_of_an_mr_is_a_miss)
{
	struct rmem_mr *mr, *before, *after;

	TEST_OK(rmem_cache_get(cx.cache, cx.mem + 100, 100, 0, &mr));
	TEST_OK(rmem_cache_get(cx.cache, cx.mem + 99, 1, 0, &before));
	TEST_OK(rmem_cache_get(cx.cache, cx.mem + 200, 1, 0, &after));
	TEST_EQ(cx_stats().misses, 3);
	TEST_EQ(cx_stats().merges, 0);
	TEST_OK(rmem_cache_put(cx.cache, mr));
	TEST_OK(rmem_cache_put(cx.cache, before));
	TEST_OK(rmem_cache_put(cx.cache, after));
}

/* An SGE of a buffer; after its completion: rmem_cache_put(cache, *mr). */
static int
get_sge(struct rmem_cache *cache, void *buf, uint32_t length, struct rmem_sge *sge,
		struct rmem_mr **mr)
{
	if (rmem_cache_get(cache, buf, length, RMEM_ACCESS_LOCAL_WRITE, mr) != 0)
		return -1; /* the log has the reason */
	*sge = (struct rmem_sge){(uintptr_t)buf, length, (*mr)->lkey};
	return 0;
}

TEST(cache, keys_of_a_cached_mr_are_valid)
{
	struct rmem_mr *mr, *hit;
	struct rmem_sge sge = {0};

	TEST_OK(rmem_cache_get(cx.cache, cx.mem + 64, 256, CX_WRITE, &mr));
	TEST_STATUS(fx_peer_write(fx_addr(cx.mem + 64), 256, mr->rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(fx_addr(cx.mem + 65), 256, mr->rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_OK(get_sge(cx.cache, cx.mem + 80, 8, &sge, &hit));
	TEST_ASSERT(hit == mr && sge.lkey == mr->lkey && sge.addr == fx_addr(cx.mem + 80));
	TEST_OK(rmem_cache_put(cx.cache, hit));
	TEST_OK(rmem_cache_put(cx.cache, mr));
}

TEST(cache, overlapping_buffers_are_merged)
{
	struct rmem_mr *first, *second, *both, *hit;

	TEST_OK(rmem_cache_get(cx.cache, cx.mem, 100, CX_WRITE, &first));
	TEST_OK(rmem_cache_get(cx.cache, cx.mem + 200, 100, 0, &second));
	TEST_OK(rmem_cache_put(cx.cache, second));
	TEST_OK(rmem_cache_get(cx.cache, cx.mem + 50, 200, 0, &both));
	TEST_ASSERT(both->addr == cx.mem && both->length == 300 && both->access == CX_WRITE);
	TEST_EQ(cx_stats().merges, 1);
	/* The first is held: it is still registered, and not returned any more. */
	TEST_EQ(cx_stats().nb_mrs, 2);
	TEST_EQ(cx_stats().nb_stale, 1);
	TEST_EQ(fx_mr_state(first), RMEM_MR_STATE_VALID);
	TEST_OK(rmem_cache_get(cx.cache, cx.mem, 100, CX_WRITE, &hit));
	TEST_ASSERT(hit == both);
	TEST_OK(rmem_cache_put(cx.cache, first));
	TEST_EQ(cx_stats().nb_mrs, 1);
	TEST_OK(rmem_cache_put(cx.cache, hit));
	TEST_OK(rmem_cache_put(cx.cache, both));
}

TEST(cache, missing_right_is_added)
{
	struct rmem_mr *mr, *more;

	TEST_OK(rmem_cache_get(cx.cache, cx.mem, 100, RMEM_ACCESS_REMOTE_READ, &mr));
	TEST_OK(rmem_cache_put(cx.cache, mr));
	TEST_OK(rmem_cache_get(cx.cache, cx.mem, 10, RMEM_ACCESS_LOCAL_WRITE, &more));
	TEST_EQ(more->access, RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_READ);
	TEST_EQ(more->length, 100);
	TEST_OK(rmem_cache_put(cx.cache, more));
	TEST_EQ(cx_stats().nb_mrs, 1);
}

/* Part of a cached buffer was protected: a merge would fail, the buffer itself does not. */
TEST(cache, merge_that_fails_does_not_fail_the_get)
{
	struct rmem_mr *mr;

	TEST_OK(rmem_cache_get(cx.cache, cx.mem, 2 * CX_PAGE, 0, &mr));
	TEST_OK(rmem_cache_put(cx.cache, mr));
	TEST_OK(mprotect(cx.mem, CX_PAGE, PROT_READ));
	TEST_OK(rmem_cache_get(cx.cache, cx.mem + CX_PAGE, CX_PAGE, CX_WRITE, &mr));
	TEST_ASSERT(mr->addr == cx.mem + CX_PAGE && mr->length == CX_PAGE);
	TEST_OK(rmem_cache_put(cx.cache, mr));
	TEST_EQ(cx_stats().merges, 0);
	TEST_EQ(cx_stats().nb_mrs, 1);
}

/* Get and put a page; whether it was a hit. */
bool
cx_touch(uint32_t page)
{
	uint64_t hits = cx_stats().hits;
	struct rmem_mr *mr;

	if (rmem_cache_get(cx.cache, cx.mem + page * CX_PAGE, CX_PAGE, 0, &mr) != 0 ||
			rmem_cache_put(cx.cache, mr) != 0)
		return false;
	return cx_stats().hits == hits + 1;
}

TEST(cache, least_recently_used_mr_is_evicted)
{
	cx_create(RMEM_CACHE_MONITOR_CALLER, 3, UINT64_MAX);
	TEST_ASSERT(!cx_touch(0) && !cx_touch(1) && !cx_touch(2));
	TEST_ASSERT(cx_touch(0));
	TEST_ASSERT(!cx_touch(3));
	TEST_EQ(cx_stats().evictions, 1);
	TEST_EQ(cx_stats().nb_mrs, 3);
	TEST_ASSERT(cx_touch(0) && cx_touch(2) && cx_touch(3));
	TEST_ASSERT(!cx_touch(1));
}

TEST(cache, bytes_of_all_mrs_are_bounded)
{
	struct rmem_mr *held, *mr;

	cx_create(RMEM_CACHE_MONITOR_CALLER, 0, 3 * CX_PAGE);
	TEST_OK(rmem_cache_get(cx.cache, cx.mem, CX_PAGE, 0, &held));
	TEST_ASSERT(!cx_touch(2) && !cx_touch(4) && !cx_touch(6));
	TEST_EQ(cx_stats().size, 3 * CX_PAGE);
	TEST_EQ(cx_stats().peak_size, 3 * CX_PAGE);
	TEST_EQ(cx_stats().evictions, 1);
	TEST_ERR(rmem_cache_get(cx.cache, cx.mem + 8 * CX_PAGE, 2 * CX_PAGE + 1, 0, &mr), ENOSPC);
	TEST_ERR(rmem_cache_get(cx.cache, cx.mem, 3 * CX_PAGE + 1, 0, &mr), ENOSPC);
	TEST_EQ(cx_stats().failures, 2);
	TEST_ASSERT(cx_touch(0));
	TEST_OK(rmem_cache_put(cx.cache, held));
}

TEST(cache, held_mrs_are_not_evicted)
{
	struct rmem_mr *one, *two, *mr;

	cx_create(RMEM_CACHE_MONITOR_CALLER, 2, UINT64_MAX);
	TEST_OK(rmem_cache_get(cx.cache, cx.mem, CX_PAGE, 0, &one));
	TEST_OK(rmem_cache_get(cx.cache, cx.mem + CX_PAGE, CX_PAGE, 0, &two));
	TEST_ERR(rmem_cache_get(cx.cache, cx.mem + 2 * CX_PAGE, CX_PAGE, 0, &mr), ENOSPC);
	TEST_OK(rmem_cache_put(cx.cache, one));
	TEST_ASSERT(!cx_touch(2));
	TEST_ASSERT(cx_touch(2));
	TEST_OK(rmem_cache_put(cx.cache, two));
}

TEST(cache, flush_removes_the_mrs_of_a_range)
{
	struct rmem_mr *held;

	TEST_ASSERT(!cx_touch(0) && !cx_touch(2));
	TEST_OK(rmem_cache_get(cx.cache, cx.mem + 4 * CX_PAGE, CX_PAGE, 0, &held));
	TEST_EQ(rmem_cache_flush(cx.cache, cx.mem + CX_PAGE - 1, 1), 0);
	TEST_EQ(cx_stats().nb_mrs, 2);
	TEST_EQ(rmem_cache_flush(cx.cache, NULL, SIZE_MAX), 1);
	TEST_EQ(cx_stats().nb_mrs, 1);
	TEST_EQ(cx_stats().nb_stale, 1);
	TEST_OK(rmem_cache_put(cx.cache, held));
	TEST_EQ(cx_stats().nb_mrs, 0);
	TEST_EQ(rmem_cache_flush(cx.cache, NULL, SIZE_MAX), 0);
}

TEST(cache, invalidated_mr_is_not_returned)
{
	struct rmem_mr *old, *mr;

	TEST_OK(rmem_cache_get(cx.cache, cx.mem, 2 * CX_PAGE, CX_WRITE, &old));
	rmem_cache_invalidate(cx.mem + 2 * CX_PAGE, CX_PAGE);
	rmem_cache_invalidate(cx.mem, 0);
	TEST_EQ(cx_stats().invalidations, 0);
	rmem_cache_invalidate(cx.mem + CX_PAGE, SIZE_MAX);
	TEST_EQ(cx_stats().invalidations, 1);
	TEST_OK(rmem_cache_get(cx.cache, cx.mem, CX_PAGE, 0, &mr));
	TEST_ASSERT(mr->lkey != old->lkey);
	TEST_EQ(fx_mr_state(old), RMEM_MR_STATE_VALID);
	TEST_OK(rmem_cache_put(cx.cache, old));
	TEST_OK(rmem_cache_put(cx.cache, mr));
}

/* The thread of the cache deregisters stale MRs without holders. */
void
cx_expect_no_mrs(void)
{
	FX_AWAIT(cx_stats().nb_mrs == 0);
}

TEST(cache, invalidated_mr_without_holder_is_deregistered)
{
	TEST_ASSERT(!cx_touch(0));
	rmem_cache_invalidate(cx.mem, 1);
	cx_expect_no_mrs();
}

TEST(cache, without_a_monitor_each_put_deregisters)
{
	struct rmem_mr *one, *two;

	cx_create(RMEM_CACHE_MONITOR_NONE, 2, UINT64_MAX);
	TEST_OK(rmem_cache_get(cx.cache, cx.mem, CX_PAGE, 0, &one));
	TEST_OK(rmem_cache_get(cx.cache, cx.mem, CX_PAGE, 0, &two));
	TEST_ASSERT(one != two);
	TEST_EQ(cx_stats().single_use, 2);
	TEST_OK(rmem_cache_put(cx.cache, two));
	TEST_EQ(cx_stats().nb_mrs, 1);
	TEST_OK(rmem_cache_put(cx.cache, one));
	TEST_EQ(cx_stats().nb_mrs, 0);
}

TEST(cache, dump_shows_the_mrs)
{
	char text[1024] = "";
	FILE *f = fmemopen(text, sizeof(text), "w");
	struct rmem_mr *mr;

	TEST_ASSERT(f != NULL);
	TEST_OK(rmem_cache_get(cx.cache, cx.mem, CX_PAGE, 0, &mr));
	TEST_OK(rmem_cache_dump(cx.cache, f));
	fclose(f);
	TEST_TEXT(text, "cache cx on soft0: monitor caller, 1 of 1024 MRs");
	TEST_TEXT(text, "cached, 1 holders");
	TEST_OK(rmem_cache_put(cx.cache, mr));
}

/* Calls with bad arguments, in bad states, and without memory. */

static int
create(const void *conf)
{
	struct rmem_cache *cache;

	return rmem_cache_create(fx.a.pd, conf, &cache);
}

TEST(cache, bad_configuration_is_refused)
{
	static const struct rmem_cache_conf good = {.socket_id = SOCKET_ID_ANY};
	static const struct fx_bad_field rows[] = {
			FX_BAD(rmem_cache_conf, monitor, 5, EINVAL),
			FX_BAD(rmem_cache_conf, max_mrs, RMEM_CACHE_MAX_MRS + 1, EINVAL),
			FX_BAD(rmem_cache_conf, flags, 1, EINVAL),
			FX_BAD(rmem_cache_conf, reserved[3], 1, EINVAL),
			FX_BAD(rmem_cache_conf, socket_id, 4096, EINVAL),
	};

	fx_expect_bad_fields(&good, sizeof(good), rows, RTE_DIM(rows), create);
}

TEST(cache, hooks_without_the_preloaded_object_are_refused)
{
	struct rmem_cache_conf conf = {
			.monitor = RMEM_CACHE_MONITOR_HOOKS, .socket_id = SOCKET_ID_ANY};

	TEST_SKIP_IF(cx_hooks() != NULL, "librmem_cache_hooks.so is preloaded");
	TEST_ERR(create(&conf), EOPNOTSUPP);
}

TEST(cache, bad_names_are_refused)
{
	struct rmem_cache_conf conf = {.socket_id = SOCKET_ID_ANY};

	conf.name = "";
	TEST_ERR(create(&conf), EINVAL);
	conf.name = "01234567890123456789012345678901";
	TEST_ERR(create(&conf), EINVAL);
	conf.name = "cx";
	TEST_ERR(create(&conf), EEXIST);
}

TEST(cache, bad_handles_are_refused)
{
	const struct rmem_cache_conf conf = {.socket_id = SOCKET_ID_ANY};
	uint64_t stray[32] __rte_cache_aligned = {0};
	struct rmem_cache *bad = (struct rmem_cache *)stray, *cache;
	struct rmem_pd *bad_pd = (struct rmem_pd *)stray;
	struct rmem_cache_stats stats;
	struct rmem_mr *mr;

	TEST_ERR(rmem_cache_create(NULL, &conf, &cache), EINVAL);
	TEST_ERR(rmem_cache_create(bad_pd, &conf, &cache), EINVAL);
	TEST_ERR(rmem_cache_create(fx.a.pd, NULL, &cache), EINVAL);
	TEST_ERR(rmem_cache_create(fx.a.pd, &conf, NULL), EINVAL);
	TEST_ERR(rmem_cache_get(NULL, cx.mem, 1, 0, &mr), EINVAL);
	TEST_ERR(rmem_cache_get(bad, cx.mem, 1, 0, &mr), EINVAL);
	TEST_ERR(rmem_cache_get(cx.cache, cx.mem, 1, 0, NULL), EINVAL);
	TEST_ERR(rmem_cache_put(bad, fx.a.mr), EINVAL);
	TEST_ERR(rmem_cache_flush(bad, cx.mem, 1), EINVAL);
	TEST_ERR(rmem_cache_stats_get(bad, &stats), EINVAL);
	TEST_ERR(rmem_cache_stats_get(cx.cache, NULL), EINVAL);
	TEST_ERR(rmem_cache_dump(bad, stdout), EINVAL);
	TEST_ERR(rmem_cache_dump(cx.cache, NULL), EINVAL);
	TEST_ERR(rmem_cache_destroy(bad), EINVAL);
	TEST_OK(rmem_cache_destroy(NULL));
}

TEST(cache, bad_buffers_and_rights_are_refused)
{
	void *high = (void *)(UINTPTR_MAX - 10);
	struct rmem_mr *mr;

	TEST_ERR(rmem_cache_get(cx.cache, cx.mem, 0, 0, &mr), EINVAL);
	TEST_ERR(rmem_cache_get(cx.cache, NULL, 1, 0, &mr), EINVAL);
	TEST_ERR(rmem_cache_get(cx.cache, high, 100, 0, &mr), EINVAL);
	TEST_ERR(rmem_cache_get(cx.cache, cx.mem, 1, RMEM_ACCESS_REMOTE_WRITE, &mr), EINVAL);
	TEST_ERR(rmem_cache_get(cx.cache, cx.mem, 1, RMEM_ACCESS_ALLOCATE_MR, &mr), EINVAL);
	TEST_ERR(rmem_cache_get(cx.cache, cx.mem, 1, RMEM_ACCESS_ZERO_BASED, &mr), EINVAL);
	TEST_ERR(rmem_cache_get(cx.cache, cx.mem, 1, RMEM_ACCESS_ON_DEMAND, &mr), EINVAL);
	TEST_ERR(rmem_cache_get(cx.cache, cx.mem, 1, UINT32_C(1) << 31, &mr), EINVAL);
	TEST_ERR(rmem_cache_flush(cx.cache, cx.mem, 0), EINVAL);
	TEST_ERR(rmem_cache_flush(cx.cache, high, 100), EINVAL);
	TEST_OK(munmap(cx.mem + CX_SIZE - CX_PAGE, CX_PAGE));
	TEST_ERR(rmem_cache_get(cx.cache, cx.mem, CX_SIZE, 0, &mr), EFAULT);
	TEST_EQ(cx_stats().nb_mrs, 0);
}

TEST(cache, mr_that_is_not_held_cannot_be_put)
{
	struct rmem_mr *mr;

	TEST_OK(rmem_cache_get(cx.cache, cx.mem, CX_PAGE, 0, &mr));
	TEST_ERR(rmem_cache_put(cx.cache, NULL), EINVAL);
	TEST_ERR(rmem_cache_put(cx.cache, fx.a.mr), EINVAL);
	TEST_OK(rmem_cache_put(cx.cache, mr));
	TEST_ERR(rmem_cache_put(cx.cache, mr), EINVAL);
	TEST_OK(rmem_cache_get(cx.cache, cx.mem, CX_PAGE, 0, &mr));
	TEST_OK(rmem_cache_put(cx.cache, mr));
	TEST_EQ(cx_stats().hits, 1);
}

TEST(cache, cache_with_held_mrs_is_busy)
{
	struct rmem_mr *mr;

	TEST_OK(rmem_cache_get(cx.cache, cx.mem, CX_PAGE, 0, &mr));
	TEST_ERR(rmem_cache_destroy(cx.cache), EBUSY);
	TEST_OK(rmem_cache_put(cx.cache, mr));
	TEST_ERR(rmem_pd_dealloc(fx.a.pd), EBUSY);
}

/* A window keeps the MR registered until it is freed. */
TEST(cache, mr_with_a_window_is_deregistered_later)
{
	struct rmem_mw *mw = fx_mw(fx.a.pd, RMEM_MW_TYPE_1);
	struct rmem_mw_bind bind = {.flags = RMEM_SEND_SIGNALED,
			.bind_info = {.addr = fx_addr(cx.mem),
					.length = CX_PAGE,
					.access = RMEM_ACCESS_REMOTE_READ}};
	struct rmem_mr *mr;

	TEST_OK(rmem_cache_get(cx.cache, cx.mem, CX_PAGE, RMEM_ACCESS_MW_BIND, &mr));
	bind.bind_info.mr = mr;
	TEST_OK(rmem_mw_bind(fx.a.qp, mw, &bind));
	TEST_OK(rmem_cache_put(cx.cache, mr));
	TEST_EQ(rmem_cache_flush(cx.cache, cx.mem, CX_PAGE), 1);
	TEST_ERR(rmem_cache_destroy(cx.cache), EBUSY);
	TEST_OK(fx_release(mw));
	TEST_EQ(rmem_cache_flush(cx.cache, cx.mem, CX_PAGE), 0);
	TEST_EQ(cx_stats().nb_mrs, 0);
}

TEST(cache, too_many_caches_are_refused)
{
	const struct rmem_cache_conf conf = {.max_mrs = 1, .socket_id = SOCKET_ID_ANY};
	struct rmem_cache *caches[RMEM_CACHE_MAX], *more;
	uint32_t i;

	for (i = 1; i < RMEM_CACHE_MAX; i++)
		TEST_OK(rmem_cache_create(fx.a.pd, &conf, &caches[i]));
	TEST_ERR(rmem_cache_create(fx.a.pd, &conf, &more), ENOSPC);
	for (i = 1; i < RMEM_CACHE_MAX; i++)
		TEST_OK(rmem_cache_destroy(caches[i]));
}

TEST(cache, creation_without_memory_fails)
{
	const struct rmem_cache_conf conf = {.socket_id = SOCKET_ID_ANY};
	struct rmem_cache *cache;
	int ret;

	fx_leave_memory(1024);
	ret = rmem_cache_create(fx.a.pd, &conf, &cache);
	fx_free_memory();
	TEST_ERR(ret, ENOMEM);
	TEST_OK(rmem_cache_create(fx.a.pd, &conf, &cache));
	TEST_OK(rmem_cache_destroy(cache));
}

/* The device has fewer MRs than the cache. */
TEST(cache, full_device_evicts)
{
	struct rmem_dev *dev = fx_dev("soft9", "max_mr=4");
	const struct rmem_cache_conf conf = {.max_mrs = 16,
			.socket_id = SOCKET_ID_ANY,
			.monitor = RMEM_CACHE_MONITOR_CALLER};
	struct rmem_cache *cache;
	struct rmem_mr *mr[5];
	uint32_t i;

	TEST_OK(rmem_cache_create(fx_pd(dev), &conf, &cache));
	for (i = 0; i < 8; i++) {
		TEST_OK(rmem_cache_get(cache, cx.mem + i * CX_PAGE, CX_PAGE, 0, &mr[0]));
		TEST_OK(rmem_cache_put(cache, mr[0]));
	}
	for (i = 0; i < 4; i++)
		TEST_OK(rmem_cache_get(cache, cx.mem + i * CX_PAGE, CX_PAGE, 0, &mr[i]));
	TEST_ERR(rmem_cache_get(cache, cx.mem + 4 * CX_PAGE, CX_PAGE, 0, &mr[4]), ENOSPC);
	for (i = 0; i < 4; i++)
		TEST_OK(rmem_cache_put(cache, mr[i]));
	TEST_OK(rmem_cache_destroy(cache));
}

TEST(cache, limit_of_locked_memory_is_the_default_size)
{
	struct rlimit limit;

	TEST_OK(getrlimit(RLIMIT_MEMLOCK, &limit));
	cx_create(RMEM_CACHE_MONITOR_CALLER, 0, 0);
	TEST_EQ(cx_stats().max_size, rmem_pages_lock_limit());
	TEST_ASSERT(cx_stats().max_size == UINT64_MAX || cx_stats().max_size == limit.rlim_cur);
}

TEST_SUITE(cache, cx_setup, cx_teardown);
