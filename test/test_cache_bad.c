/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Calls of caches with bad arguments, in bad states, and without memory. */

#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <rmem_mw.h>
#include <rmem_pages.h>
#include <rmem_pd.h>

#include "test_cache.h"

static int
create(const void *conf)
{
	struct rmem_cache *cache;

	return rmem_cache_create(fx.a.pd, conf, &cache);
}

TEST(cache_bad, bad_configuration_is_refused)
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

TEST(cache_bad, hooks_without_the_preloaded_object_are_refused)
{
	struct rmem_cache_conf conf = {
			.monitor = RMEM_CACHE_MONITOR_HOOKS, .socket_id = SOCKET_ID_ANY};

	if (cx_hooks() != NULL)
		test_skip("librmem_cache_hooks.so is preloaded");
	TEST_ERR(create(&conf), EOPNOTSUPP);
}

TEST(cache_bad, bad_names_are_refused)
{
	struct rmem_cache_conf conf = {.socket_id = SOCKET_ID_ANY};

	conf.name = "";
	TEST_ERR(create(&conf), EINVAL);
	conf.name = "01234567890123456789012345678901";
	TEST_ERR(create(&conf), EINVAL);
	conf.name = "cx";
	TEST_ERR(create(&conf), EEXIST);
}

TEST(cache_bad, bad_handles_are_refused)
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

TEST(cache_bad, bad_buffers_and_rights_are_refused)
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

TEST(cache_bad, mr_that_is_not_held_cannot_be_put)
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

TEST(cache_bad, cache_with_held_mrs_is_busy)
{
	struct rmem_mr *mr;

	TEST_OK(rmem_cache_get(cx.cache, cx.mem, CX_PAGE, 0, &mr));
	TEST_ERR(rmem_cache_destroy(cx.cache), EBUSY);
	TEST_OK(rmem_cache_put(cx.cache, mr));
	TEST_ERR(rmem_pd_dealloc(fx.a.pd), EBUSY);
}

/* A window keeps the MR registered until it is freed. */
TEST(cache_bad, mr_with_a_window_is_deregistered_later)
{
	struct rmem_mw *mw = fx_mw(fx.a.pd, RMEM_MW_TYPE_1);
	struct rmem_mw_bind bind = {.flags = RMEM_SEND_SIGNALED,
			.bind_info = {.addr = fx_addr(cx.mem),
					.length = CX_PAGE,
					.access = RMEM_ACCESS_REMOTE_READ}};
	struct rmem_mr *mr;

	TEST_ASSERT(mw != NULL);
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

TEST(cache_bad, too_many_caches_are_refused)
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

TEST(cache_bad, creation_without_memory_fails)
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
TEST(cache_bad, full_device_evicts)
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

TEST(cache_bad, limit_of_locked_memory_is_the_default_size)
{
	struct rlimit limit;

	TEST_OK(getrlimit(RLIMIT_MEMLOCK, &limit));
	cx_create(RMEM_CACHE_MONITOR_CALLER, 0, 0);
	TEST_EQ(cx_stats().max_size, rmem_pages_lock_limit());
	TEST_ASSERT(cx_stats().max_size == UINT64_MAX || cx_stats().max_size == limit.rlim_cur);
}

TEST_SUITE(cache_bad, cx_setup, cx_teardown);
