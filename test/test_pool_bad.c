/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Invalid pools are refused, and leave no object. */

#include <string.h>

#include <rte_mempool.h>

#include <rmem_pool.h>

#include "fixture.h"
#include "test.h"

#define NB_BUFS 1024u
#define SIZE    2048u

static struct rmem_pool *pool;

static struct rmem_pool_conf
good_conf(void)
{
	const struct rmem_pool_conf conf = {
			.name = "pool_test",
			.nb_bufs = NB_BUFS,
			.buf_size = SIZE,
			.cache_size = 64,
			.access = FX_ACCESS,
			.socket_id = SOCKET_ID_ANY,
	};

	return conf;
}

static void
open_pool(const struct rmem_pool_conf *conf)
{
	TEST_OK(rmem_pool_create(fx.a.pd, conf, &pool));
}

static void
setup_none(void)
{
	pool = NULL;
	fx_setup();
}

static void
setup(void)
{
	const struct rmem_pool_conf conf = good_conf();

	setup_none();
	open_pool(&conf);
}

static void
teardown(void)
{
	bool is_ok = rmem_pool_destroy(pool) == 0;

	pool = NULL;
	TEST_ASSERT(TEST_TRY(fx_teardown()) == TEST_SUCCESS && is_ok);
}

TEST(pool_bad, too_few_regions_for_the_slices_is_enospc)
{
	struct rmem_dev *dev = fx_dev("soft1", "max_mr_size=131072,max_mr=4");
	struct rmem_pool_conf conf = good_conf();
	struct rmem_pd *pd = fx_pd(dev);

	TEST_ERR(rmem_pool_create(pd, &conf, &pool), ENOSPC);
	TEST_ASSERT(pool == NULL);
	TEST_ASSERT(rte_mempool_lookup("pool_test") == NULL);
}

TEST(pool_bad, no_region_left_is_enospc)
{
	struct rmem_pd *pd = fx_pd(fx_dev("soft1", "max_mr=1"));
	struct rmem_pool_conf conf = good_conf();
	struct rmem_mr *mr = fx_fast_mr(pd, 1);

	TEST_ERR(rmem_pool_create(pd, &conf, &pool), ENOSPC);
	TEST_ASSERT(pool == NULL);
	TEST_OK(fx_release(mr));
	TEST_OK(rmem_pool_create(pd, &conf, &pool));
	TEST_OK(rmem_pool_destroy(pool));
	pool = NULL;
}

static int
create(const void *conf)
{
	int ret = rmem_pool_create(fx.a.pd, conf, &pool);

	return pool == NULL && rte_mempool_lookup("pool_test") == NULL ? ret : 0;
}

TEST(pool_bad, null_and_wrong_handles_are_refused)
{
	static uint64_t zeros[64] __rte_cache_aligned;
	const struct rmem_pool_conf conf = good_conf();

	TEST_ERR(rmem_pool_create(NULL, &conf, &pool), EINVAL);
	TEST_ERR(rmem_pool_create((struct rmem_pd *)zeros, &conf, &pool), EINVAL);
	TEST_ERR(rmem_pool_create((struct rmem_pd *)fx.a.dev, &conf, &pool), EINVAL);
	TEST_ERR(rmem_pool_create(fx.a.pd, NULL, &pool), EINVAL);
	TEST_ERR(rmem_pool_create(fx.a.pd, &conf, NULL), EINVAL);
	TEST_OK(rmem_pool_destroy(NULL));
	TEST_ERR(rmem_pool_destroy((struct rmem_pool *)zeros), EINVAL);
	TEST_ERR(rmem_pool_destroy((struct rmem_pool *)fx.a.pd), EINVAL);
	TEST_ASSERT(pool == NULL);
}

TEST(pool_bad, bad_names_and_ops_are_refused)
{
	struct rmem_pool_conf conf = good_conf();
	char name[RTE_MEMPOOL_NAMESIZE + 1];

	conf.name = "";
	TEST_ERR(create(&conf), EINVAL);
	memset(name, 'x', sizeof(name));
	name[RTE_MEMPOOL_NAMESIZE] = '\0';
	conf.name = name;
	TEST_ERR(create(&conf), EINVAL);
	name[RTE_MEMPOOL_NAMESIZE - 1] = '\0';
	open_pool(&conf);
	TEST_OK(rmem_pool_destroy(pool));
	pool = NULL;
	conf = good_conf();
	conf.ops_name = "no_such_ops";
	TEST_ERR(create(&conf), EINVAL);
}

TEST(pool_bad, bad_fields_are_refused)
{
	static const struct fx_bad_field rows[] = {
			FX_BAD(rmem_pool_conf, name, NULL, EINVAL),
			FX_BAD(rmem_pool_conf, nb_bufs, 0, EINVAL),
			FX_BAD(rmem_pool_conf, nb_bufs, 95, EINVAL), /* of a cache of 64 */
			FX_BAD(rmem_pool_conf, buf_size, 0, EINVAL),
			FX_BAD(rmem_pool_conf, buf_size, RMEM_POOL_MAX_BUF_SIZE + 1, EINVAL),
			FX_BAD(rmem_pool_conf, cache_size, RTE_MEMPOOL_CACHE_MAX_SIZE + 1, EINVAL),
			FX_BAD(rmem_pool_conf, access, RMEM_ACCESS_REMOTE_WRITE, EINVAL),
			FX_BAD(rmem_pool_conf, access, FX_ACCESS | RMEM_ACCESS_ALLOCATE_MR, EINVAL),
			FX_BAD(rmem_pool_conf, access, FX_ACCESS | RMEM_ACCESS_ZERO_BASED, EINVAL),
			FX_BAD(rmem_pool_conf, access, FX_ACCESS | UINT32_C(1) << 31, EINVAL),
			FX_BAD(rmem_pool_conf, flags, 4, EINVAL),
			FX_BAD(rmem_pool_conf, ops_name, "rmem_puts", EINVAL),
			FX_BAD(rmem_pool_conf, reserved[0], 1, EINVAL),
			FX_BAD(rmem_pool_conf, reserved[1], 1, EINVAL),
			FX_BAD(rmem_pool_conf, socket_id, 77, EINVAL),
	};
	struct rmem_pool_conf conf = good_conf();

	fx_expect_bad_fields(&conf, sizeof(conf), rows, RTE_DIM(rows), create);
	conf.nb_bufs = 96;
	open_pool(&conf);
}

TEST(pool_bad, buffer_over_max_mr_size_is_refused)
{
	struct rmem_pd *pd = fx_pd(fx_dev("soft1", "max_mr_size=4096"));
	struct rmem_pool_conf conf = good_conf();

	conf.buf_size = 4097;
	TEST_ERR(rmem_pool_create(pd, &conf, &pool), EINVAL);
	TEST_ASSERT(pool == NULL);
	conf.buf_size = 4096;
	conf.nb_bufs = 100;
	TEST_OK(rmem_pool_create(pd, &conf, &pool));
	TEST_EQ(pool->nb_mrs, 100);
	TEST_OK(rmem_pool_destroy(pool));
	pool = NULL;
}

TEST_WITH(pool_bad, name_in_use_is_eexist, setup)
{
	const struct rmem_pool_conf conf = good_conf();
	struct rmem_pool *other = NULL;

	TEST_ERR(rmem_pool_create(fx.a.pd, &conf, &other), EEXIST);
	TEST_ASSERT(other == NULL);
	TEST_EQ(rte_mempool_avail_count(pool->mp), NB_BUFS);
}

/* The log has the amount missing. */
TEST(pool_bad, more_memory_than_there_is_is_enomem)
{
	struct rmem_pool_conf conf = good_conf();
	const char *log;
	int ret;

	conf.buf_size = RMEM_POOL_MAX_BUF_SIZE;
	conf.nb_bufs = 4096;
	fx_log_begin();
	ret = rmem_pool_create(fx.a.pd, &conf, &pool);
	log = fx_log_end();
	TEST_ERR(ret, ENOMEM);
	TEST_ASSERT(pool == NULL);
	TEST_ASSERT(rte_mempool_lookup("pool_test") == NULL);
	TEST_ASSERT(strstr(log, "missing") != NULL || strstr(log, "are needed") != NULL);
}

/* With too little memory for each step in turn. */
TEST(pool_bad, no_memory_is_enomem_and_nothing_stays)
{
	struct rmem_pool_conf conf = good_conf();
	struct rmem_dev_info info;
	size_t size;
	int ret = -1;

	conf.nb_bufs = 128;
	for (size = 0; ret != 0; size = size * 3 / 2 + 1024) {
		fx_leave_memory(size);
		ret = rmem_pool_create(fx.a.pd, &conf, &pool);
		fx_free_memory();
		TEST_ASSERT(ret == 0 || ret == -ENOMEM);
		TEST_OK(rmem_dev_info_get(fx.a.dev, &info));
		TEST_EQ(info.nb_mr, ret == 0 ? 3 : 2);
	}
}

TEST_SUITE(pool_bad, setup_none, teardown);
