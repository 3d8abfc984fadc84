/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Pools of a device with sanitize=1, or with RMEM_POOL_CHECK_PUTS: wrong puts are reported and
 * ignored, and no others are.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rte_lcore.h>

#include <rmem_pool.h>

#include "fixture.h"

#define NB_BUFS 96u
#define SIZE    192u

static struct rmem_pool *pool, *other;

static struct rmem_pool_conf
conf_of(const char *name)
{
	return (struct rmem_pool_conf){.name = name,
			.nb_bufs = NB_BUFS,
			.buf_size = SIZE,
			.cache_size = 32,
			.access = RMEM_ACCESS_LOCAL_WRITE,
			.socket_id = SOCKET_ID_ANY};
}

static void
setup(void)
{
	struct rmem_pool_conf conf = conf_of("checked");

	pool = other = NULL;
	fx.a.dev = fx_dev("soft0", "sanitize=1");
	fx.a.pd = fx_pd(fx.a.dev);
	TEST_OK(rmem_pool_create(fx.a.pd, &conf, &pool));
	conf.name = "other";
	TEST_OK(rmem_pool_create(fx.a.pd, &conf, &other));
}

/* All buffers are back: no report has lost one. */
static void
teardown(void)
{
	TEST_OK(rmem_pool_destroy(pool));
	TEST_OK(rmem_pool_destroy(other));
	fx_teardown();
}

static const char *
log_of_put(struct rmem_pool *to, const struct rmem_sge *sge, unsigned int n)
{
	fx_log_begin();
	rmem_pool_put_sges(to, sge, n);
	return fx_log_end();
}

static void
expect_none(const char *log)
{
	if (strstr(log, "sanitize") != NULL)
		printf("logged: %s", log);
	TEST_ASSERT(strstr(log, "sanitize") == NULL);
}

/* All buffers can be got, once each. */
static void
expect_whole(struct rmem_pool *of)
{
	struct rmem_sge sge[NB_BUFS + 1];
	unsigned int i, k;

	TEST_EQ(rte_mempool_avail_count(of->mp), NB_BUFS);
	TEST_ERR(rmem_pool_get_sges(of, sge, NB_BUFS + 1), ENOENT);
	TEST_OK(rmem_pool_get_sges(of, sge, NB_BUFS));
	for (i = 0; i < NB_BUFS; i++) {
		for (k = 0; k < i; k++)
			TEST_ASSERT(sge[i].addr != sge[k].addr);
	}
	rmem_pool_put_sges(of, sge, NB_BUFS);
}

TEST(sanitize_pool, buffer_that_is_put_twice)
{
	const char *log;
	struct rmem_sge sge;
	char text[128];

	TEST_OK(rmem_pool_get_sges(pool, &sge, 1));
	expect_none(log_of_put(pool, &sge, 1));
	log = log_of_put(pool, &sge, 1);
	TEST_TEXT(log, "sanitize: pool \"checked\": put of buffer ");
	snprintf(text, sizeof(text), "(0x%" PRIx64 ") by lcore %u: put twice, previously ",
			sge.addr, rte_lcore_id());
	TEST_TEXT(log, text);
	snprintf(text, sizeof(text), " us ago by lcore %u: ignored", rte_lcore_id());
	TEST_TEXT(log, text);
	expect_whole(pool);
}

TEST(sanitize_pool, buffer_that_is_put_twice_by_the_mempool)
{
	struct rmem_sge sge;
	const char *log;

	TEST_OK(rmem_pool_get_sges(pool, &sge, 1));
	rte_mempool_put(pool->mp, (void *)(uintptr_t)sge.addr);
	fx_log_begin();
	rte_mempool_put(pool->mp, (void *)(uintptr_t)sge.addr);
	log = fx_log_end();
	TEST_TEXT(log, ": put twice, previously ");
	expect_whole(pool);
}

/* The others of the burst are put. */
TEST(sanitize_pool, buffers_that_are_put_twice_in_a_burst)
{
	struct rmem_sge sge[40], left;
	unsigned int at;

	for (at = 0; at < RTE_DIM(sge); at += 13) {
		TEST_OK(rmem_pool_get_sges(pool, sge, RTE_DIM(sge)));
		left = sge[at];
		sge[at] = sge[(at + 1) % RTE_DIM(sge)];
		rmem_pool_put_sges(pool, sge, RTE_DIM(sge));
		TEST_EQ(rte_mempool_in_use_count(pool->mp), 1);
		rmem_pool_put_sges(pool, &left, 1);
		expect_whole(pool);
	}
}

TEST(sanitize_pool, buffer_of_another_pool)
{
	struct rmem_sge sge;
	const char *log;

	TEST_OK(rmem_pool_get_sges(other, &sge, 1));
	log = log_of_put(pool, &sge, 1);
	TEST_TEXT(log, "sanitize: pool \"checked\": put of 0x");
	TEST_TEXT(log, ": not a buffer of it: memory of pool \"other\": ignored");
	expect_none(log_of_put(other, &sge, 1));
	expect_whole(pool);
	expect_whole(other);
}

TEST(sanitize_pool, address_within_a_buffer)
{
	struct rmem_sge sge, moved;
	const char *log;

	TEST_OK(rmem_pool_get_sges(pool, &sge, 1));
	moved = sge;
	moved.addr += 64;
	log = log_of_put(pool, &moved, 1);
	TEST_TEXT(log, ": not a buffer of it: 64 bytes after the start of buffer ");
	expect_none(log_of_put(pool, &sge, 1));
	expect_whole(pool);
}

TEST(sanitize_pool, memory_of_no_pool)
{
	const struct rmem_sge sge = {.addr = (uintptr_t)&pool, .length = SIZE}, none = {0};

	TEST_TEXT(log_of_put(pool, &sge, 1), ": not a buffer of it: other memory: ignored");
	TEST_TEXT(log_of_put(pool, &none, 1), ": other memory: ignored (found 2 times)");
	expect_whole(pool);
}

/* Gets and puts of both libraries, with a cache of the application. */
TEST(sanitize_pool, mixed_calls_are_not_reported)
{
	struct rte_mempool_cache *cache = rte_mempool_cache_create(32, SOCKET_ID_ANY);
	struct rmem_sge sge[2];
	void *objs[8];
	const char *log;
	int i;

	TEST_ASSERT(cache != NULL);
	fx_log_begin();
	for (i = 0; i < 100; i++) {
		TEST_OK(rmem_pool_get_sges(pool, sge, 2));
		TEST_OK(rte_mempool_generic_get(pool->mp, objs, 8, cache));
		rte_mempool_put(pool->mp, (void *)(uintptr_t)sge[0].addr);
		sge[0].addr = (uintptr_t)objs[0];
		rmem_pool_put_sges(pool, sge, 2);
		rte_mempool_generic_put(pool->mp, &objs[1], 7, cache);
	}
	rte_mempool_cache_flush(cache, pool->mp);
	log = fx_log_end();
	rte_mempool_cache_free(cache);
	expect_none(log);
	expect_whole(pool);
}

static struct rmem_sge passed[16];

/* Put what the other lcore got. */
static void
put_passed(void *arg)
{
	RTE_SET_USED(arg);
	rmem_pool_put_sges(pool, passed, RTE_DIM(passed));
}

TEST(sanitize_pool, buffers_of_another_lcore_are_not_reported)
{
	const char *log;
	int i;

	TEST_SKIP_IF(fx_nb_workers() == 0, "it needs two lcores");
	fx_log_begin();
	for (i = 0; i < 100; i++) {
		TEST_OK(rmem_pool_get_sges(pool, passed, RTE_DIM(passed)));
		fx_launch(put_passed, NULL, 0, 1);
		fx_join(1);
	}
	log = fx_log_end();
	expect_none(log);
	expect_whole(pool);
}

/* Gets and puts of few buffers; a ring with more lcores than processors takes seconds for many. */
static void
get_and_put(void *arg)
{
	struct rmem_sge sge[8];
	unsigned int i, n;

	RTE_SET_USED(arg);
	for (i = 0; i < 2000; i++) {
		n = 1 + i % RTE_DIM(sge);
		if (rmem_pool_get_sges(pool, sge, n) == 0)
			rmem_pool_put_sges(pool, sge, n);
	}
}

TEST(sanitize_pool, concurrent_gets_and_puts_are_not_reported)
{
	unsigned int nb = RTE_MIN(fx_nb_workers(), 1u);
	const char *log;

	fx_log_begin();
	fx_launch(get_and_put, NULL, 0, nb);
	get_and_put(NULL);
	fx_join(nb);
	log = fx_log_end();
	expect_none(log);
	expect_whole(pool);
}

/* Ops of a configuration, and slices. */
static void
check_pool(struct rmem_pd *pd, const struct rmem_pool_conf *conf)
{
	struct rmem_pool *made;
	struct rmem_sge sge[9];

	TEST_OK(rmem_pool_create(pd, conf, &made));
	TEST_OK(rmem_pool_get_sges(made, sge, RTE_DIM(sge)));
	expect_none(log_of_put(made, sge, RTE_DIM(sge)));
	TEST_TEXT(log_of_put(made, &sge[4], 1), "put twice");
	expect_whole(made);
	TEST_OK(rmem_pool_destroy(made));
}

TEST(sanitize_pool, flag_on_an_ordinary_device)
{
	struct rmem_dev *dev = fx_dev("soft1", "max_mr_size=4096");
	struct rmem_pool_conf conf = conf_of("flagged");
	struct rmem_pool *made;
	struct rmem_pd *pd;

	pd = fx_pd(dev);
	TEST_OK(rmem_pool_create(pd, &conf, &made));
	TEST_ASSERT(strcmp(rte_mempool_get_ops(made->mp->ops_index)->name, "ring_mp_mc") == 0);
	TEST_EQ(made->mp->cache_size, 32);
	TEST_OK(rmem_pool_destroy(made));
	conf.flags = RMEM_POOL_CHECK_PUTS;
	check_pool(pd, &conf);
	conf.ops_name = "stack";
	check_pool(pd, &conf);
}

/* Whether tracked pools can have a slot for ops: DPDK 24.11 has 15 drivers, and 16 slots. */
static bool
has_slot(void)
{
	uint32_t i;

	for (i = 0; i < rte_mempool_ops_table.num_ops; i++) {
		if (strcmp(rte_mempool_ops_table.ops[i].name, "rmem_tracked") == 0)
			return true;
	}
	return i < RTE_MEMPOOL_MAX_OPS_IDX;
}

/* Tracked pools have checks of their own. */
TEST(sanitize_pool, tracked_pool)
{
	struct rmem_pool_conf conf = conf_of("tracked");
	struct rmem_pool *made;
	struct rmem_sge sge;

	conf.flags = RMEM_POOL_TRACKED | RMEM_POOL_CHECK_PUTS;
	conf.cache_size = 0;
	if (!has_slot()) {
		TEST_ERR(rmem_pool_create(fx.a.pd, &conf, &made), ENOSPC);
		test_skip("no slot for the ops of tracked pools");
	}
	TEST_OK(rmem_pool_create(fx.a.pd, &conf, &made));
	TEST_OK(rmem_pool_get_sges(made, &sge, 1));
	rmem_pool_put_sges(made, &sge, 1);
	TEST_TEXT(log_of_put(made, &sge, 1), "tracked: put refused: 1 buffers that are free");
	expect_whole(made);
	TEST_OK(rmem_pool_destroy(made));
}

TEST(sanitize_pool, refusals_are_those_of_other_pools)
{
	struct rmem_pool_conf conf = conf_of("bad");
	struct rmem_pool *made;

	conf.ops_name = "none such";
	TEST_ERR(rmem_pool_create(fx.a.pd, &conf, &made), EINVAL);
	conf = conf_of("bad");
	conf.cache_size = NB_BUFS;
	TEST_ERR(rmem_pool_create(fx.a.pd, &conf, &made), EINVAL);
	conf = conf_of("checked");
	TEST_ERR(rmem_pool_create(fx.a.pd, &conf, &made), EEXIST);
}

TEST_SUITE(sanitize_pool, setup, teardown);
