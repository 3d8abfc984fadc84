/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Invalid mbuf pools and registrations are refused, and leave no object. */

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <rmem_mbuf.h>

#include "fixture.h"
#include "test.h"

#define NB_MBUFS 256u

static struct rmem_mempool *pool;

static struct rmem_pktmbuf_pool_conf
good_conf(void)
{
	const struct rmem_pktmbuf_pool_conf conf = {
			.name = "mbuf_bad",
			.nb_mbufs = NB_MBUFS,
			.cache_size = 32,
			.data_room_size = RTE_MBUF_DEFAULT_BUF_SIZE,
			.access = FX_ACCESS,
			.socket_id = SOCKET_ID_ANY,
	};

	return conf;
}

static void
setup(void)
{
	pool = NULL;
	fx_setup();
}

static void
teardown(void)
{
	bool is_ok = rmem_pktmbuf_pool_destroy(pool) == 0;

	TEST_ASSERT(TEST_TRY(fx_teardown()) == TEST_SUCCESS && is_ok);
}

static void
expect_refused_by(struct rmem_pd *pd, const struct rmem_pktmbuf_pool_conf *conf, int error)
{
	struct rmem_pool_report report;
	struct rmem_dev_info info;

	TEST_ERR(rmem_pktmbuf_pool_create(pd, conf, &pool), error);
	TEST_ASSERT(pool == NULL);
	TEST_ASSERT(rte_mempool_lookup("mbuf_bad") == NULL);
	TEST_OK(rmem_dev_info_get(fx.a.dev, &info));
	TEST_EQ(info.nb_mr, 2);
	if (error == EINVAL)
		TEST_ERR(rmem_pktmbuf_pool_check(pd, conf, &report), EINVAL);
}

static int
create(const void *conf)
{
	return TEST_TRY(expect_refused_by(fx.a.pd, conf, EINVAL)) == TEST_SUCCESS ? -EINVAL : 0;
}

TEST(mbuf_bad, null_and_wrong_handles_are_refused)
{
	const struct rmem_pktmbuf_pool_conf conf = good_conf();
	struct rmem_mempool *reg = NULL;
	static uint64_t zeros[64] __rte_cache_aligned;

	expect_refused_by(NULL, &conf, EINVAL);
	expect_refused_by((struct rmem_pd *)fx.a.dev, &conf, EINVAL);
	expect_refused_by(fx.a.pd, NULL, EINVAL);
	TEST_ERR(rmem_pktmbuf_pool_create(fx.a.pd, &conf, NULL), EINVAL);
	TEST_ERR(rmem_pktmbuf_pool_check(fx.a.pd, &conf, NULL), EINVAL);
	TEST_OK(rmem_pktmbuf_pool_destroy(NULL));
	TEST_ERR(rmem_pktmbuf_pool_destroy((struct rmem_mempool *)zeros), EINVAL);
	TEST_ERR(rmem_pktmbuf_pool_destroy((struct rmem_mempool *)fx.a.pd), EINVAL);
	TEST_OK(rmem_pktmbuf_pool_create(fx.a.pd, &conf, &pool));
	TEST_ERR(rmem_mempool_unregister(pool), EINVAL);
	TEST_OK(rmem_mempool_unregister(NULL));
	TEST_ERR(rmem_mempool_unregister((struct rmem_mempool *)zeros), EINVAL);
	TEST_ERR(rmem_mempool_register(NULL, fx.a.pd, FX_ACCESS, &reg), EINVAL);
	TEST_ERR(rmem_mempool_register(pool->mp, NULL, FX_ACCESS, &reg), EINVAL);
	TEST_ERR(rmem_mempool_register(pool->mp, fx_pd(fx.a.dev), FX_ACCESS, NULL), EINVAL);
	TEST_ASSERT(reg == NULL);
}

TEST(mbuf_bad, bad_fields_are_refused)
{
	static const struct fx_bad_field rows[] = {
			FX_BAD(rmem_pktmbuf_pool_conf, name, NULL, EINVAL),
			FX_BAD(rmem_pktmbuf_pool_conf, name, "", EINVAL),
			FX_BAD(rmem_pktmbuf_pool_conf, name, "a_name_that_is_longer_than_25",
					EINVAL),
			FX_BAD(rmem_pktmbuf_pool_conf, nb_mbufs, 0, EINVAL),
			FX_BAD(rmem_pktmbuf_pool_conf, nb_mbufs, 47, EINVAL),
			FX_BAD(rmem_pktmbuf_pool_conf, cache_size, RTE_MEMPOOL_CACHE_MAX_SIZE + 1,
					EINVAL),
			FX_BAD(rmem_pktmbuf_pool_conf, priv_size, RTE_MBUF_PRIV_ALIGN + 1, EINVAL),
			FX_BAD(rmem_pktmbuf_pool_conf, access, FX_ACCESS | RMEM_ACCESS_ALLOCATE_MR,
					EINVAL),
			FX_BAD(rmem_pktmbuf_pool_conf, access, FX_ACCESS | RMEM_ACCESS_ZERO_BASED,
					EINVAL),
			FX_BAD(rmem_pktmbuf_pool_conf, flags, 1, EINVAL),
			FX_BAD(rmem_pktmbuf_pool_conf, reserved[1], 1, EINVAL),
			FX_BAD(rmem_pktmbuf_pool_conf, socket_id, 77, EINVAL),
	};
	const struct rmem_pktmbuf_pool_conf good = good_conf();
	struct rmem_pktmbuf_pool_conf conf = good;

	fx_expect_bad_fields(&good, sizeof(good), rows, RTE_DIM(rows), create);
	/* rmem_pktmbuf_pool_check() does not check these. */
	conf.ops_name = "no_such_ops";
	TEST_ERR(rmem_pktmbuf_pool_create(fx.a.pd, &conf, &pool), EINVAL);
	conf = good;
	conf.access = RMEM_ACCESS_REMOTE_WRITE;
	TEST_ERR(rmem_pktmbuf_pool_create(fx.a.pd, &conf, &pool), EINVAL);
	conf.access = FX_ACCESS | UINT32_C(1) << 31;
	TEST_ERR(rmem_pktmbuf_pool_create(fx.a.pd, &conf, &pool), EINVAL);
	TEST_ASSERT(pool == NULL && rte_mempool_lookup("mbuf_bad") == NULL);
}

TEST(mbuf_bad, access_that_the_device_lacks_is_eopnotsupp)
{
	struct rmem_pktmbuf_pool_conf conf = good_conf();
	struct rmem_mempool *reg = NULL;
	struct rmem_dev_info info;
	uint32_t lacking;

	TEST_OK(rmem_dev_info_get(fx.a.dev, &info));
	/* Verbs' bits 4 to 7: those that this device has not. */
	lacking = UINT32_C(0xf0) & ~info.access;
	if (lacking == 0)
		test_skip("the device has all access bits");
	conf.access = FX_ACCESS | lacking;
	expect_refused_by(fx.a.pd, &conf, EOPNOTSUPP);
	conf.access = FX_ACCESS;
	TEST_OK(rmem_pktmbuf_pool_create(fx.a.pd, &conf, &pool));
	TEST_ERR(rmem_mempool_register(pool->mp, fx_pd(fx.a.dev), FX_ACCESS | lacking, &reg),
			EOPNOTSUPP);
	TEST_ERR(rmem_mempool_register(pool->mp, fx_pd(fx.a.dev),
				 FX_ACCESS | RMEM_ACCESS_ALLOCATE_MR, &reg),
			EINVAL);
	TEST_ERR(rmem_mempool_register(pool->mp, fx_pd(fx.a.dev),
				 FX_ACCESS | RMEM_ACCESS_ZERO_BASED, &reg),
			EINVAL);
}

TEST(mbuf_bad, name_in_use_is_eexist)
{
	const struct rmem_pktmbuf_pool_conf conf = good_conf();
	struct rmem_mempool *again = NULL;

	TEST_OK(rmem_pktmbuf_pool_create(fx.a.pd, &conf, &pool));
	TEST_ERR(rmem_pktmbuf_pool_create(fx.a.pd, &conf, &again), EEXIST);
	TEST_ASSERT(again == NULL);
	TEST_EQ(rte_mempool_avail_count(pool->mp), NB_MBUFS);
}

TEST(mbuf_bad, mbuf_larger_than_an_mr_is_refused)
{
	struct rmem_pd *pd = fx_pd(fx_dev("soft1", "max_mr_size=4096"));
	struct rmem_pktmbuf_pool_conf conf = good_conf();
	struct rmem_pool_report report;
	struct rmem_mempool *reg = NULL;

	conf.data_room_size = 4096;
	expect_refused_by(pd, &conf, EINVAL);
	TEST_OK(rmem_pktmbuf_pool_create(fx.a.pd, &conf, &pool));
	TEST_ERR(rmem_mempool_register(pool->mp, pd, FX_ACCESS, &reg), EINVAL);
	TEST_ERR(rmem_mempool_check(pool->mp, pd, &report), EINVAL);
	TEST_EQ(report.limits, RMEM_POOL_LIMIT_MR_SIZE);
	TEST_EQ(report.max_mr_size, 4096);
	TEST_EQ(report.buf_size, pool->mp->elt_size);
}

TEST(mbuf_bad, too_few_mrs_is_enospc)
{
	struct rmem_pd *pd = fx_pd(fx_dev("soft1", "max_mr_size=16384,max_mr=4"));
	struct rmem_pktmbuf_pool_conf conf = good_conf();
	struct rmem_mempool *reg = NULL;
	struct rmem_pool_report report;
	const char *log;
	int ret;

	fx_log_begin();
	ret = rmem_pktmbuf_pool_create(pd, &conf, &pool);
	log = fx_log_end();
	TEST_ERR(ret, ENOSPC);
	TEST_ASSERT(strstr(log, "mbuf_bad: short of MRs") != NULL);
	TEST_ASSERT(rte_mempool_lookup("mbuf_bad") == NULL);
	TEST_ERR(rmem_pktmbuf_pool_check(pd, &conf, &report), ENOSPC);
	TEST_OK(rmem_pktmbuf_pool_create(fx.a.pd, &conf, &pool));
	TEST_ERR(rmem_mempool_register(pool->mp, pd, FX_ACCESS, &reg), ENOSPC);
	TEST_ERR(rmem_mempool_check(pool->mp, pd, &report), ENOSPC);
	TEST_ASSERT(reg == NULL);
}

TEST(mbuf_bad, mempool_without_all_objects_is_ebusy)
{
	struct rmem_mempool *reg = NULL;
	struct rmem_dev_info before, after;
	struct rmem_pool_report report;
	struct rte_mempool *mp;
	uint32_t i;
	size_t size;

	mp = rte_mempool_create_empty("mbuf_part", 8, 256, 0, 0, SOCKET_ID_ANY, 0);
	TEST_ASSERT(mp != NULL);
	TEST_OK(rte_mempool_set_ops_byname(mp, "ring_mp_mc", NULL));
	TEST_ERR(rmem_mempool_register(mp, fx.a.pd, FX_ACCESS, &reg), EBUSY);
	size = rte_mempool_calc_obj_size(256, 0, NULL);
	TEST_EQ(rte_mempool_populate_iova(
				mp, fx_mem(4096, 5 * size), RTE_BAD_IOVA, 5 * size, NULL, NULL),
			5);
	TEST_ERR(rmem_mempool_register(mp, fx.a.pd, FX_ACCESS, &reg), EBUSY);
	TEST_ERR(rmem_mempool_check(mp, fx.a.pd, &report), EBUSY);
	TEST_EQ(rte_mempool_populate_iova(
				mp, fx_mem(4096, 5 * size), RTE_BAD_IOVA, 5 * size, NULL, NULL),
			3);
	TEST_OK(rmem_mempool_register(mp, fx.a.pd, FX_ACCESS, &reg));
	TEST_ERR(rmem_mempool_check(NULL, fx.a.pd, &report), EINVAL);
	TEST_ERR(rmem_mempool_check(mp, NULL, &report), EINVAL);
	TEST_ERR(rmem_mempool_check(mp, fx.a.pd, NULL), EINVAL);
	/* One of its MRs is in use: none is deregistered. */
	TEST_EQ(reg->nb_mrs, 2);
	TEST_OK(rmem_dev_info_get(fx.a.dev, &before));
	for (i = 0; i < reg->nb_mrs; i++) {
		__atomic_fetch_add(&reg->mrs[i]->obj.refs, 1, __ATOMIC_SEQ_CST);
		TEST_ERR(rmem_mempool_unregister(reg), EBUSY);
		TEST_OK(rmem_dev_info_get(fx.a.dev, &after));
		TEST_EQ(after.nb_mr, before.nb_mr);
		__atomic_fetch_sub(&reg->mrs[i]->obj.refs, 1, __ATOMIC_SEQ_CST);
	}
	TEST_OK(rmem_mempool_unregister(reg));
	rte_mempool_free(mp);
}

/* The second of two extents can't be registered: the first one is released. */
TEST(mbuf_bad, memory_that_cannot_be_written_is_efault)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct rmem_mempool *reg = NULL;
	struct rmem_dev_info info;
	struct rte_mempool *mp;
	uint8_t *mem;

	mem = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT(mem != MAP_FAILED);
	mp = rte_mempool_create_empty("mbuf_part", 2, (unsigned int)page - 512, 0, 0, SOCKET_ID_ANY,
			RTE_MEMPOOL_F_NO_IOVA_CONTIG);
	TEST_ASSERT(mp != NULL);
	TEST_OK(rte_mempool_set_ops_byname(mp, "ring_mp_mc", NULL));
	TEST_EQ(rte_mempool_populate_iova(mp, (char *)mem, RTE_BAD_IOVA, page, NULL, NULL), 1);
	TEST_EQ(rte_mempool_populate_iova(
				mp, (char *)mem + 2 * page, RTE_BAD_IOVA, page, NULL, NULL),
			1);
	TEST_OK(mprotect(mem + 2 * page, page, PROT_READ));
	TEST_ERR(rmem_mempool_register(mp, fx.a.pd, FX_ACCESS, &reg), EFAULT);
	TEST_ASSERT(reg == NULL);
	TEST_OK(rmem_dev_info_get(fx.a.dev, &info));
	TEST_EQ(info.nb_mr, 2);
	TEST_OK(mprotect(mem + 2 * page, page, PROT_READ | PROT_WRITE));
	TEST_OK(rmem_mempool_register(mp, fx.a.pd, FX_ACCESS, &reg));
	TEST_OK(rmem_mempool_unregister(reg));
	rte_mempool_free(mp);
	TEST_OK(munmap(mem, 3 * page));
}

/* With too little memory for each step in turn. */
TEST(mbuf_bad, no_memory_is_enomem_and_nothing_stays)
{
	const struct rmem_pktmbuf_pool_conf conf = good_conf();
	struct rmem_mempool *reg = NULL;
	struct rmem_dev_info info;
	size_t size;
	int ret = -1;

	for (size = 0; ret != 0; size = size * 3 / 2 + 1024) {
		fx_leave_memory(size);
		ret = rmem_pktmbuf_pool_create(fx.a.pd, &conf, &pool);
		fx_free_memory();
		TEST_ASSERT(ret == 0 || ret == -ENOMEM);
		TEST_OK(rmem_dev_info_get(fx.a.dev, &info));
		TEST_EQ(info.nb_mr, ret == 0 ? 3 : 2);
		TEST_ASSERT((rte_mempool_lookup("mbuf_bad") == NULL) == (ret != 0));
	}
	for (ret = -1, size = 0; ret != 0; size += 64) {
		fx_leave_memory(size);
		ret = rmem_mempool_register(pool->mp, fx.b.pd, FX_ACCESS, &reg);
		if (ret == -EEXIST)
			ret = 0; /* There was memory for all but its place in the map. */
		fx_free_memory();
		TEST_ASSERT(ret == 0 || ret == -ENOMEM);
		TEST_OK(rmem_dev_info_get(fx.a.dev, &info));
		TEST_EQ(info.nb_mr, 3);
	}
}

/* The first MR of a PD to be known to lookups needs a map. */
TEST(mbuf_bad, no_memory_for_the_map_is_enomem)
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx_mem(4096, 4096), 4096, FX_ACCESS);

	fx_leave_memory(0);
	TEST_ERR(rmem_extbuf_mr_add(mr), ENOMEM);
	fx_free_memory();
	TEST_OK(rmem_extbuf_mr_add(mr));
	TEST_OK(rmem_extbuf_mr_del(mr));
	TEST_ERR(rmem_extbuf_mr_del(mr), ENOENT);
}

TEST_SUITE(mbuf_bad, setup, teardown);
