/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Registered mempools: get and put of all buffers, with their keys; invalid pools are refused. */

#include <stdlib.h>
#include <string.h>

#include <rte_mempool.h>

#include <rmem_pool.h>
#include <rmem_pool_check.h>

#include "fixture_pool.h"

#define NB_BUFS 1024u
#define SIZE    2048u

static struct rmem_pool *pool;

static struct rmem_pool_conf
good_conf(void)
{
	return (struct rmem_pool_conf){.name = "pool_test",
			.nb_bufs = NB_BUFS,
			.buf_size = SIZE,
			.cache_size = 64,
			.access = FX_ACCESS,
			.socket_id = SOCKET_ID_ANY};
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
destroy_pool(void)
{
	TEST_OK(rmem_pool_destroy(pool));
	pool = NULL;
}

static void
teardown(void)
{
	bool is_ok = rmem_pool_destroy(pool) == 0;

	pool = NULL;
	TEST_ASSERT(TEST_TRY(fx_teardown()) == TEST_SUCCESS && is_ok);
}

TEST(pool, pool_has_its_configuration)
{
	struct rmem_dev_info info;

	TEST_EQ(pool->buf_size, SIZE);
	TEST_EQ(pool->nb_bufs, NB_BUFS);
	TEST_EQ(pool->nb_mrs, 1);
	TEST_ASSERT(pool->pd == fx.a.pd);
	TEST_EQ(strcmp(pool->mp->name, "pool_test"), 0);
	TEST_EQ(pool->mp->size, NB_BUFS);
	TEST_EQ(rte_mempool_avail_count(pool->mp), NB_BUFS);
	TEST_OK(rmem_dev_info_get(fx.a.dev, &info));
	TEST_EQ(info.nb_mr, 3);
}

TEST(pool, sges_are_ready_to_post)
{
	static struct rmem_sge sge[NB_BUFS];
	struct rmem_send_wr wr;
	unsigned int i;

	TEST_OK(rmem_pool_get_sges(pool, sge, 16));
	for (i = 0; i < 16; i++) {
		void *buf = (void *)(uintptr_t)sge[i].addr;

		TEST_EQ(sge[i].length, SIZE);
		TEST_EQ(sge[i].lkey, rmem_pool_lkey(pool, buf));
		TEST_EQ(sge[i].addr, rmem_pool_iova(pool, buf));
		fx_fill(buf, SIZE, i);
		wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge[i], &fx.b);
		TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
		TEST_MEM(fx.b.buf, buf, SIZE);
		fx_fill(fx.b.buf, SIZE, 100 + i);
		TEST_STATUS(fx_peer_write(rmem_pool_iova(pool, buf), SIZE,
					    rmem_pool_rkey(pool, buf)),
				RMEM_WC_SUCCESS);
		TEST_MEM(buf, fx.b.buf, SIZE);
	}
	rmem_pool_put_sges(pool, sge, 16);
}

TEST(pool, every_buffer_is_allocated_once_in_any_burst)
{
	fx_every_buffer_in_any_burst(pool);
}

TEST_WITH(pool, every_buffer_is_allocated_once_without_a_cache, setup_none)
{
	struct rmem_pool_conf conf = good_conf();

	conf.cache_size = 0;
	open_pool(&conf);
	every_buffer_is_allocated_once_in_any_burst();
}

TEST_WITH(pool, other_mempool_ops_are_used, setup_none)
{
	struct rmem_pool_conf conf = good_conf();

	conf.ops_name = "stack";
	open_pool(&conf);
	every_buffer_is_allocated_once_in_any_burst();
}

TEST(pool, get_beyond_the_pool_takes_none)
{
	static struct rmem_sge sge[NB_BUFS + 1];

	TEST_ERR(rmem_pool_get_sges(pool, sge, NB_BUFS + 1), ENOENT);
	TEST_OK(rmem_pool_get_sges(pool, sge, NB_BUFS));
	TEST_ERR(rmem_pool_get_sges(pool, sge, 1), ENOENT);
	TEST_ERR(rmem_pool_get_sges(pool, sge, 8), ENOENT);
	rmem_pool_put_sges(pool, sge, NB_BUFS);
	TEST_EQ(rte_mempool_avail_count(pool->mp), NB_BUFS);
}

TEST(pool, get_and_put_of_none_do_nothing)
{
	TEST_OK(rmem_pool_get_sges(pool, NULL, 0));
	TEST_OK(rmem_pool_get_sges_bulk(pool, NULL, 0));
	rmem_pool_put_sges(pool, NULL, 0);
	rmem_pool_put_sges_bulk(pool, NULL, 0);
	TEST_EQ(rte_mempool_avail_count(pool->mp), NB_BUFS);
}

/* Only addr counts: an SGE may come back shortened for its last use. */
TEST(pool, put_ignores_the_length_and_lkey_of_an_sge)
{
	struct rmem_sge sge[9];
	unsigned int i;

	TEST_OK(rmem_pool_get_sges(pool, sge, 9));
	for (i = 0; i < 9; i++) {
		sge[i].length = 1;
		sge[i].lkey = 0;
	}
	rmem_pool_put_sges(pool, sge, 9);
	TEST_OK(rmem_pool_get_sges(pool, sge, 9));
	for (i = 0; i < 9; i++) {
		TEST_EQ(sge[i].length, SIZE);
		TEST_ASSERT(sge[i].lkey != 0);
	}
	rmem_pool_put_sges(pool, sge, 9);
}

TEST(pool, mempool_calls_work_on_the_pool)
{
	struct rmem_sge sge;
	void *buf = NULL;

	TEST_OK(rte_mempool_get(pool->mp, &buf));
	sge.addr = rmem_pool_iova(pool, buf);
	fx_fill(fx.b.buf, SIZE, 3);
	TEST_STATUS(fx_peer_write(sge.addr, SIZE, rmem_pool_rkey(pool, buf)), RMEM_WC_SUCCESS);
	TEST_MEM(buf, fx.b.buf, SIZE);
	rmem_pool_put_sges(pool, &sge, 1);
	TEST_OK(rmem_pool_get_sges(pool, &sge, 1));
	rte_mempool_put(pool->mp, (void *)(uintptr_t)sge.addr);
	TEST_EQ(rte_mempool_avail_count(pool->mp), NB_BUFS);
}

/* One page, one slice: a key is valid for the pool, not for the byte after its memory. */
TEST(pool, keys_cover_no_byte_after_the_pool)
{
	struct rmem_mr_info info = fx_query(pool->mrs[0]);
	uint32_t rkey = info.rkey;

	TEST_STATUS(fx_peer_write(info.iova + info.length - 8, 9, rkey), RMEM_WC_REM_ACCESS_ERR);
	fx_reconnect();
	TEST_STATUS(fx_peer_write(info.iova - 1, 1, rkey), RMEM_WC_REM_ACCESS_ERR);
}

/* Larger than max_mr_size: several MRs, and each buffer has the keys of its own. */
TEST_WITH(pool, large_pool_is_registered_in_slices, setup_none)
{
	struct rmem_dev *dev = fx_dev("soft1", "max_mr_size=131072,max_mr=64");
	struct rmem_pool_conf conf = good_conf();
	static struct rmem_sge sge[NB_BUFS];
	struct fx_side c = {0};
	struct rmem_send_wr wr;
	unsigned int i;

	fx_side_open(&c, dev, fx_pd(dev));
	TEST_OK(fx_connect(c.qp, c.qp));
	TEST_OK(rmem_pool_create(c.pd, &conf, &pool));
	TEST_ASSERT(pool->nb_mrs >= NB_BUFS * SIZE / 131072);
	for (i = 0; i < pool->nb_mrs; i++)
		TEST_ASSERT(pool->mrs[i]->length <= 131072);
	for (i = 0; i < NB_BUFS; i += 5)
		TEST_OK(rmem_pool_get_sges(pool, &sge[i], RTE_MIN(5u, NB_BUFS - i)));
	for (i = 0; i < NB_BUFS; i++) {
		const void *buf = (const void *)(uintptr_t)sge[i].addr;

		wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge[i], rmem_pool_iova(pool, buf),
				rmem_pool_rkey(pool, buf));
		TEST_EQ(sge[i].lkey, rmem_pool_lkey(pool, buf));
		TEST_STATUS(fx_send(c.qp, &wr), RMEM_WC_SUCCESS);
	}
	rmem_pool_put_sges(pool, sge, NB_BUFS);
	destroy_pool();
}

/* Whether all buffers of a pool of at least so many MRs are in the MR of rmem_pool_mr(). */
static void
check_mrs(struct rmem_pd *pd, const struct rmem_pool_conf *conf, uint32_t nb_mrs)
{
	static struct rmem_sge sge[NB_BUFS];
	uint32_t i;

	TEST_OK(rmem_pool_create(pd, conf, &pool));
	TEST_ASSERT(pool->nb_mrs >= nb_mrs);
	TEST_OK(rmem_pool_get_sges(pool, sge, conf->nb_bufs));
	for (i = 0; i < conf->nb_bufs; i++) {
		const struct rmem_mr *mr = rmem_pool_mr(pool, (void *)(uintptr_t)sge[i].addr);

		TEST_EQ(mr->lkey, sge[i].lkey);
		TEST_ASSERT(sge[i].addr - mr->iova <= mr->length - conf->buf_size);
	}
	rmem_pool_put_sges(pool, sge, conf->nb_bufs);
	destroy_pool();
}

/* One MR, several, and fewer MRs than slices: in most of those no buffer starts. */
TEST_WITH(pool, mr_of_a_buffer_is_known, setup_none)
{
	struct rmem_pd *pd = fx_pd(fx_dev("soft1", "max_mr_size=131072,max_mr=64"));
	struct rmem_pool_conf conf = good_conf();

	check_mrs(fx.a.pd, &conf, 1);
	check_mrs(pd, &conf, NB_BUFS * SIZE / 131072);
	conf.nb_bufs = 20;
	conf.cache_size = 0;
	conf.buf_size = 120000;
	check_mrs(pd, &conf, 20);
}

TEST(pool, destroy_while_buffers_are_out_is_ebusy)
{
	struct rmem_sge sge[3];

	TEST_OK(rmem_pool_get_sges(pool, sge, 3));
	FX_ERR_LOG(rmem_pool_destroy(pool), EBUSY, "pool_test");
	TEST_TEXT(fx_log_end(), "3 buffers");
	TEST_STATUS(fx_peer_write(sge[0].addr, 8,
				    rmem_pool_rkey(pool, (void *)(uintptr_t)sge[0].addr)),
			RMEM_WC_SUCCESS);
	rmem_pool_put_sges(pool, sge, 3);
}

/* Nothing binds to an MR yet, so the count is set here. */
TEST(pool, destroy_while_a_registration_is_referred_to_is_ebusy)
{
	struct rmem_obj *obj = &pool->mrs[0]->obj;

	__atomic_fetch_add(&obj->refs, 1, __ATOMIC_SEQ_CST);
	TEST_ERR(rmem_pool_destroy(pool), EBUSY);
	__atomic_fetch_sub(&obj->refs, 1, __ATOMIC_SEQ_CST);
	TEST_ERR(rmem_pd_dealloc(fx.a.pd), EBUSY);
}

TEST(pool, keys_of_a_destroyed_pool_are_refused)
{
	uint64_t addr = pool->base;
	uint32_t rkey = rmem_pool_rkey(pool, (void *)(uintptr_t)addr);
	const struct rmem_pool_conf conf = good_conf();

	destroy_pool();
	TEST_STATUS(fx_peer_write(addr, 8, rkey), RMEM_WC_REM_ACCESS_ERR);
	fx_reconnect();
	open_pool(&conf);
	TEST_ASSERT(rmem_pool_rkey(pool, (void *)pool->base) != rkey);
	TEST_STATUS(fx_peer_write(addr, 8, rkey), RMEM_WC_REM_ACCESS_ERR);
}

/* Each worker gets, marks, checks and puts its own buffers. */
static void
churn(void *arg)
{
	uint8_t mark = *(uint8_t *)arg;
	struct rmem_sge sge[32];
	unsigned int round, i;

	for (round = 0; round < 2000; round++) {
		unsigned int n = 1 + round % 32;

		if (rmem_pool_get_sges(pool, sge, n) != 0)
			continue;
		for (i = 0; i < n; i++)
			memset((void *)(uintptr_t)sge[i].addr, mark, 64);
		for (i = 0; i < n; i++) {
			const uint8_t *buf = (const uint8_t *)(uintptr_t)sge[i].addr;

			TEST_ASSERT(buf[0] == mark && buf[63] == mark);
			TEST_EQ(sge[i].length, SIZE);
		}
		rmem_pool_put_sges(pool, sge, n);
	}
}

TEST(pool, lcores_never_share_a_buffer)
{
	static uint8_t marks[] = {1, 2, 3};
	unsigned int nb = RTE_MIN(fx_nb_workers(), RTE_DIM(marks));

	fx_need_workers(2);
	fx_launch(churn, marks, 1, nb);
	fx_join(nb);
	TEST_EQ(rte_mempool_avail_count(pool->mp), NB_BUFS);
}

/* In any DPDK: what its own calls allow above that is not used. */
TEST(pool, cache_never_holds_more_than_its_size)
{
	const struct rte_mempool_cache *cache = &pool->mp->local_cache[rte_lcore_id()];
	static struct rmem_sge sge[NB_BUFS];
	unsigned int burst, i, n;

	for (burst = 1; burst <= 32; burst++) {
		for (i = 0; i < NB_BUFS; i += n) {
			n = RTE_MIN(burst, NB_BUFS - i);
			TEST_OK(rmem_pool_get_sges(pool, &sge[i], n));
		}
		for (i = 0; i < NB_BUFS; i += n) {
			n = RTE_MIN(burst, NB_BUFS - i);
			rmem_pool_put_sges(pool, &sge[i], n);
			TEST_ASSERT(cache->len <= cache->size);
		}
		TEST_EQ(rte_mempool_avail_count(pool->mp), NB_BUFS);
	}
}

/* Memory outside of the pool, on either side, is in no MR of it. */
TEST_WITH(pool, mr_of_another_address_is_null, setup_none)
{
	struct rmem_pool_conf conf = good_conf();
	struct rmem_pd *pd = fx_pd(fx_dev("soft1", "max_mr_size=131072,max_mr=64"));
	const uint8_t *first, *end;
	uint8_t round;
	int on_stack = 0;

	for (round = 0; round < 2; round++) { /* one MR, then several */
		if (round == 1)
			TEST_OK(rmem_pool_create(pd, &conf, &pool));
		else
			open_pool(&conf);
		first = pool->mrs[0]->addr;
		end = (const uint8_t *)pool->mrs[pool->nb_mrs - 1]->addr +
				pool->mrs[pool->nb_mrs - 1]->length;
		TEST_ASSERT(rmem_pool_mr(pool, first) == pool->mrs[0]);
		TEST_ASSERT(rmem_pool_mr(pool, end - 1) == pool->mrs[pool->nb_mrs - 1]);
		TEST_ASSERT(rmem_pool_mr(pool, first - 1) == NULL);
		TEST_ASSERT(rmem_pool_mr(pool, end) == NULL);
		TEST_ASSERT(rmem_pool_mr(pool, NULL) == NULL);
		TEST_ASSERT(rmem_pool_mr(pool, &on_stack) == NULL);
		TEST_ASSERT(rmem_pool_mr(pool, (const void *)UINTPTR_MAX) == NULL);
		destroy_pool();
	}
}

/* Without a buffer or a list of them: its memory is deregistered all the same. */
TEST(pool, pool_whose_mempool_was_freed_can_be_destroyed)
{
	struct rmem_dev_info info = fx_dev_info(fx.a.dev);
	uint32_t nb_mr;

	nb_mr = info.nb_mr;
	rte_mempool_free(pool->mp);
	destroy_pool();
	TEST_OK(rmem_dev_info_get(fx.a.dev, &info));
	TEST_EQ(info.nb_mr, nb_mr - 1);
}

static uint32_t is_stopped; /* atomic */

static void
create_and_close_devices(void *arg)
{
	struct rmem_dev *dev;
	uint32_t nb = 0;

	RTE_SET_USED(arg);
	while (__atomic_load_n(&is_stopped, __ATOMIC_RELAXED) == 0 || nb < 10) {
		TEST_OK(rmem_dev_create("soft1", NULL, &dev));
		TEST_OK(rmem_dev_close(dev));
		nb++;
	}
}

/* Calls of a pool access only its own device. TSan detects other accesses. */
TEST(pool, pool_check_races_with_devices_created_and_closed)
{
	struct rmem_pool_conf conf = good_conf();
	struct rmem_pool_report report;
	int ret = TEST_SUCCESS;
	unsigned int i;

	fx_need_workers(1);
	__atomic_store_n(&is_stopped, 0, __ATOMIC_RELAXED);
	fx_launch(create_and_close_devices, NULL, 0, 1);
	for (i = 0; i < 100 && ret == TEST_SUCCESS; i++) {
		if (rmem_pool_check(fx.a.pd, &conf, &report) != 0)
			ret = TEST_FAILED;
	}
	__atomic_store_n(&is_stopped, 1, __ATOMIC_RELAXED);
	fx_join(1);
	TEST_RUN(ret);
}

/* Invalid pools are refused, and leave no object. */

TEST_WITH(pool, too_few_regions_for_the_slices_is_enospc, setup_none)
{
	struct rmem_dev *dev = fx_dev("soft1", "max_mr_size=131072,max_mr=4");
	struct rmem_pool_conf conf = good_conf();
	struct rmem_pd *pd = fx_pd(dev);

	TEST_ERR(rmem_pool_create(pd, &conf, &pool), ENOSPC);
	TEST_ASSERT(pool == NULL);
	TEST_ASSERT(rte_mempool_lookup("pool_test") == NULL);
}

TEST_WITH(pool, no_region_left_is_enospc, setup_none)
{
	struct rmem_pd *pd = fx_pd(fx_dev("soft1", "max_mr=1"));
	struct rmem_pool_conf conf = good_conf();
	struct rmem_mr *mr = fx_fast_mr(pd, 1);

	TEST_ERR(rmem_pool_create(pd, &conf, &pool), ENOSPC);
	TEST_ASSERT(pool == NULL);
	TEST_OK(fx_release(mr));
	TEST_OK(rmem_pool_create(pd, &conf, &pool));
	destroy_pool();
}

static int
create(const void *conf)
{
	int ret = rmem_pool_create(fx.a.pd, conf, &pool);

	return pool == NULL && rte_mempool_lookup("pool_test") == NULL ? ret : 0;
}

TEST_WITH(pool, null_and_wrong_handles_are_refused, setup_none)
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

TEST_WITH(pool, bad_names_and_ops_are_refused, setup_none)
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
	destroy_pool();
	conf = good_conf();
	conf.ops_name = "no_such_ops";
	TEST_ERR(create(&conf), EINVAL);
}

TEST_WITH(pool, bad_fields_are_refused, setup_none)
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

TEST_WITH(pool, buffer_over_max_mr_size_is_refused, setup_none)
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
	destroy_pool();
}

TEST(pool, name_in_use_is_eexist)
{
	const struct rmem_pool_conf conf = good_conf();
	struct rmem_pool *other = NULL;

	TEST_ERR(rmem_pool_create(fx.a.pd, &conf, &other), EEXIST);
	TEST_ASSERT(other == NULL);
	TEST_EQ(rte_mempool_avail_count(pool->mp), NB_BUFS);
}

/* The log has the amount missing. */
TEST_WITH(pool, more_memory_than_there_is_is_enomem, setup_none)
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
TEST_WITH(pool, no_memory_is_enomem_and_nothing_stays, setup_none)
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

TEST_SUITE(pool, setup, teardown);
