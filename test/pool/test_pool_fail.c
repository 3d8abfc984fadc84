/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A device that fails to release an MR may still access its memory: no pool frees it, and its
 * release can be tried again.
 */

#include <stdio.h>
#include <string.h>

#include <rte_mbuf.h>
#include <rte_memzone.h>

#include <rmem_mbuf.h>
#include <rmem_pool.h>

#include "fixture.h"
#include "rmem/stub_driver.h"

/* MRs of the device: limit, current number, and result of a deregistration. */
static struct {
	unsigned int max;
	unsigned int nb;
	struct rmem_mr *mr[64];
	int dereg_ret;
} keeper;

static struct {
	struct rmem_pd *pd;
	struct rte_mempool *mp;
	struct rmem_mempool *reg;
	struct rmem_pool *pool;
} at;

static int
keeper_dev_info_get(struct rmem_dev *dev, struct rmem_dev_info *info)
{
	int ret = stub_dev_info_get(dev, info);

	info->max_mr_size = 512 * 1024;
	return ret;
}

static int
keeper_mr_reg(struct rmem_mr *mr, const struct rmem_mr_attr *attr)
{
	RTE_SET_USED(attr);
	if (keeper.nb == keeper.max)
		return -EIO;
	mr->lkey = mr->rkey = ++stub.next_key << 8;
	keeper.mr[keeper.nb++] = mr;
	return 0;
}

static int
keeper_mr_dereg(struct rmem_mr *mr)
{
	RTE_SET_USED(mr);
	if (keeper.dereg_ret == 0)
		keeper.nb--;
	return keeper.dereg_ret;
}

static void
setup(void)
{
	static struct rmem_driver driver;

	fx_setup_none();
	memset(&stub, 0, sizeof(stub));
	memset(&keeper, 0, sizeof(keeper));
	memset(&at, 0, sizeof(at));
	stub.access = FX_ACCESS;
	keeper.max = 64;
	if (driver.name == NULL) {
		driver = stub_driver_full("keeper");
		driver.ops.dev_info_get = keeper_dev_info_get;
		driver.ops.mr_reg = keeper_mr_reg;
		driver.ops.mr_dereg = keeper_mr_dereg;
		TEST_OK(rmem_driver_register(&driver));
	}
	at.pd = fx_pd(fx_dev("keeper0", NULL));
}

static void
teardown(void)
{
	keeper.dereg_ret = 0;
	rmem_mempool_unregister(at.reg);
	rte_mempool_free(at.mp);
	rmem_pool_destroy(at.pool);
	fx_teardown();
}

static struct rmem_pktmbuf_pool_conf
mbuf_conf(const char *name)
{
	return (struct rmem_pktmbuf_pool_conf){.name = name,
			.nb_mbufs = 512,
			.data_room_size = RTE_MBUF_DEFAULT_BUF_SIZE,
			.access = FX_ACCESS,
			.socket_id = SOCKET_ID_ANY};
}

TEST(pool_fail, mbuf_pool_keeps_registered_memory)
{
	const struct rmem_pktmbuf_pool_conf conf = mbuf_conf("kept_mbufs");
	const int errors[] = {-EBUSY, -EIO};
	struct rmem_mempool *reg;
	unsigned int i;

	TEST_OK(rmem_pktmbuf_pool_create(at.pd, &conf, &reg));
	TEST_ASSERT(keeper.nb > 1 && keeper.nb == reg->nb_mrs);
	for (i = 0; i < RTE_DIM(errors); i++) {
		keeper.dereg_ret = errors[i];
		TEST_ERR(rmem_pktmbuf_pool_destroy(reg), -errors[i]);
		TEST_ASSERT(rte_mempool_lookup("kept_mbufs") == reg->mp);
		TEST_EQ(reg->nb_mrs, keeper.nb);
	}
	keeper.dereg_ret = 0;
	TEST_OK(rmem_pktmbuf_pool_destroy(reg));
	TEST_EQ(keeper.nb, 0);
	TEST_ASSERT(rte_mempool_lookup("kept_mbufs") == NULL);
}

/* Of several MRs one fails, and the previous ones can't be deregistered. */
TEST(pool_fail, failed_creation_keeps_registered_memory)
{
	const struct rmem_pktmbuf_pool_conf conf = mbuf_conf("half_mbufs");
	struct rmem_mempool *reg = NULL;
	char name[RTE_MEMZONE_NAMESIZE];

	keeper.max = 2;
	keeper.dereg_ret = -EIO;
	TEST_ERR(rmem_pktmbuf_pool_create(at.pd, &conf, &reg), EIO);
	TEST_ASSERT(reg == NULL);
	TEST_EQ(keeper.nb, 2);
	at.mp = rte_mempool_lookup("half_mbufs");
	TEST_ASSERT(at.mp != NULL);
	snprintf(name, sizeof(name), "rmem_mbuf_%p", (void *)at.mp);
	TEST_ASSERT(rte_memzone_lookup(name) != NULL);
	/* No device accesses it in this test. */
	keeper.dereg_ret = 0;
	TEST_OK(rmem_mr_dereg(keeper.mr[1]));
	TEST_OK(rmem_mr_dereg(keeper.mr[0]));
	rte_mempool_free(at.mp);
	at.mp = NULL;
	TEST_OK(rte_memzone_free(rte_memzone_lookup(name)));
}

TEST(pool_fail, registration_can_be_released_again)
{
	at.mp = rte_pktmbuf_pool_create(
			"other_mbufs", 512, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	TEST_ASSERT(at.mp != NULL);
	keeper.max = 0;
	TEST_ERR(rmem_mempool_register(at.mp, at.pd, FX_ACCESS, &at.reg), EIO);
	keeper.max = 64;
	TEST_OK(rmem_mempool_register(at.mp, at.pd, FX_ACCESS, &at.reg));
	keeper.dereg_ret = -EIO;
	TEST_ERR(rmem_mempool_unregister(at.reg), EIO);
	TEST_EQ(at.reg->nb_mrs, keeper.nb);
	keeper.dereg_ret = 0;
	TEST_OK(rmem_mempool_unregister(at.reg));
	at.reg = NULL;
	TEST_EQ(keeper.nb, 0);
}

static void
destroy_again(uint32_t flags)
{
	const struct rmem_pool_conf conf = {.name = "kept_bufs",
			.flags = flags,
			.nb_bufs = 64,
			.buf_size = 64 * 1024,
			.access = FX_ACCESS,
			.socket_id = SOCKET_ID_ANY};

	keeper.max = 0;
	TEST_ERR(rmem_pool_create(at.pd, &conf, &at.pool), EIO);
	keeper.max = 64;
	TEST_OK(rmem_pool_create(at.pd, &conf, &at.pool));
	TEST_ASSERT(keeper.nb > 1);
	keeper.dereg_ret = -EIO;
	TEST_ERR(rmem_pool_destroy(at.pool), EIO);
	TEST_ERR(rmem_pool_destroy(at.pool), EIO);
	TEST_EQ(at.pool->nb_mrs, keeper.nb);
	keeper.dereg_ret = 0;
	TEST_OK(rmem_pool_destroy(at.pool));
	at.pool = NULL;
	TEST_EQ(keeper.nb, 0);
}

TEST(pool_fail, buffer_pool_can_be_destroyed_again)
{
	destroy_again(0);
	destroy_again(RMEM_POOL_CHECK_PUTS);
}

TEST_SUITE(pool_fail, setup, teardown);
