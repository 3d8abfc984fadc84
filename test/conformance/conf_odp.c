/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * On-demand paging: pages are faulted in at the first access, may be evicted, and fail if unmapped.
 * Requests are whole pages, which all known devices transfer correctly.
 */

#include <string.h>
#include <sys/mman.h>

#include "conf.h"

#define ODP RMEM_ACCESS_ON_DEMAND

#define NB_PAGES 8u
#define SIZE     (NB_PAGES * FX_PAGE)
#define ALL                                                                                        \
	(RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_READ |            \
			RMEM_ACCESS_ON_DEMAND)

static uint8_t *mem;
static struct rmem_mr *mr;

static void
setup(void)
{
	conf_setup();
	mr = NULL;
	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT(mem != MAP_FAILED);
	if ((conf.info.access & RMEM_ACCESS_ON_DEMAND) == 0)
		return;
	mr = fx_mr(fx.a.pd, mem, SIZE, ALL);
}

static void
teardown(void)
{
	int result = TEST_TRY(conf_teardown());

	if (mem != MAP_FAILED)
		munmap(mem, SIZE);
	TEST_RUN(result);
}

/* A request of b to a page of the MR; its status. */
static int
use_page(uint8_t opcode, unsigned int page)
{
	return conf_do(opcode, mr->iova + page * FX_PAGE, FX_PAGE, mr->rkey);
}

CONF_TEST(odp, pages_are_faulted_in_at_the_first_access, 0, ODP,
		"ibv_reg_mr(3): IBV_ACCESS_ON_DEMAND, pages are faulted in on access")
{
	unsigned int i;

	for (i = 0; i < NB_PAGES; i++) {
		fx_fill(fx.b.buf, FX_PAGE, i);
		TEST_STATUS(use_page(RMEM_WR_RDMA_WRITE, i), RMEM_WC_SUCCESS);
		TEST_MEM(mem + i * FX_PAGE, fx.b.buf, FX_PAGE);
		memset(fx.b.buf, 0, FX_PAGE);
		TEST_STATUS(use_page(RMEM_WR_RDMA_READ, i), RMEM_WC_SUCCESS);
		TEST_MEM(fx.b.buf, mem + i * FX_PAGE, FX_PAGE);
	}
}

CONF_TEST(odp, access_after_a_discard_uses_new_pages, 0, ODP,
		"Optimized Memory Access: ODP, evicted pages are no longer used")
{
	fx_fill(fx.b.buf, FX_PAGE, 1);
	TEST_STATUS(use_page(RMEM_WR_RDMA_WRITE, 2), RMEM_WC_SUCCESS);
	TEST_OK(madvise(mem, SIZE, MADV_DONTNEED));
	TEST_STATUS(use_page(RMEM_WR_RDMA_READ, 2), RMEM_WC_SUCCESS);
	TEST_ASSERT(fx_is_zero(fx.b.buf, FX_PAGE));
	fx_fill(fx.b.buf, FX_PAGE, 2);
	TEST_STATUS(use_page(RMEM_WR_RDMA_WRITE, 2), RMEM_WC_SUCCESS);
	TEST_MEM(mem + 2 * FX_PAGE, fx.b.buf, FX_PAGE);
}

CONF_TEST(odp, access_to_unmapped_pages_is_refused, 0, ODP,
		"Optimized Memory Access: ODP, an unmapped page is an access error")
{
	TEST_STATUS(use_page(RMEM_WR_RDMA_WRITE, 3), RMEM_WC_SUCCESS);
	TEST_OK(munmap(mem + 3 * FX_PAGE, FX_PAGE));
	conf_status(CONF_REMOTE_KEY, use_page(RMEM_WR_RDMA_WRITE, 3));
	conf_reconnect();
	TEST_STATUS(use_page(RMEM_WR_RDMA_WRITE, 4), RMEM_WC_SUCCESS);
	TEST_ASSERT(mmap(mem + 3 * FX_PAGE, FX_PAGE, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
	fx_fill(fx.b.buf, FX_PAGE, 1);
	TEST_STATUS(use_page(RMEM_WR_RDMA_WRITE, 3), RMEM_WC_SUCCESS);
	TEST_MEM(mem + 3 * FX_PAGE, fx.b.buf, FX_PAGE);
}

CONF_TEST(odp, write_to_protected_pages_is_refused, 0, ODP,
		"Optimized Memory Access: ODP, the protection of the mapping applies")
{
	fx_fill(fx.b.buf, FX_PAGE, 1);
	TEST_STATUS(use_page(RMEM_WR_RDMA_WRITE, 1), RMEM_WC_SUCCESS);
	TEST_OK(mprotect(mem + FX_PAGE, FX_PAGE, PROT_READ));
	fx_fill(fx.b.buf, FX_PAGE, 2);
	conf_status(CONF_REMOTE_KEY, use_page(RMEM_WR_RDMA_WRITE, 1));
	conf_reconnect();
	TEST_STATUS(use_page(RMEM_WR_RDMA_READ, 1), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf, mem + FX_PAGE, FX_PAGE);
	TEST_OK(mprotect(mem + FX_PAGE, FX_PAGE, PROT_READ | PROT_WRITE));
	fx_fill(fx.b.buf, FX_PAGE, 3);
	TEST_STATUS(use_page(RMEM_WR_RDMA_WRITE, 1), RMEM_WC_SUCCESS);
	TEST_MEM(mem + FX_PAGE, fx.b.buf, FX_PAGE);
}

CONF_TEST(odp, on_demand_keys_are_checked, 0, ODP, "IBTA 10.6.3: rights, range and PD of the MR")
{
	struct rmem_mr *readable =
			fx_mr(fx.a.pd, mem, SIZE, RMEM_ACCESS_REMOTE_READ | RMEM_ACCESS_ON_DEMAND);
	struct rmem_pd *pd = fx_pd(conf.dev);
	struct rmem_mr *foreign = fx_mr(pd, mem, SIZE, ALL);

	conf_denied(readable->iova, FX_PAGE, readable->rkey);
	conf_denied(foreign->iova, FX_PAGE, foreign->rkey);
	conf_denied(mr->iova + SIZE, FX_PAGE, mr->rkey);
	conf_denied(mr->iova, FX_PAGE, mr->rkey ^ 1);
	TEST_ASSERT(fx_is_zero(mem, SIZE));
}

CONF_TEST(odp, advice_is_checked, 0, ODP, "ibv_advise_mr(3): EINVAL and EFAULT")
{
	struct rmem_sge sge = fx_sge(mr, 0, SIZE);
	int ret = rmem_mr_advise(fx.a.pd, RMEM_ADVISE_PREFETCH_WRITE, RMEM_ADVISE_FLUSH, &sge, 1);

	TEST_SKIP_IF(ret == -EOPNOTSUPP, "the device does not support advice");
	TEST_OK(ret);
	TEST_ERR(rmem_mr_advise(NULL, RMEM_ADVISE_PREFETCH, 0, &sge, 1), EINVAL);
	TEST_ERR(rmem_mr_advise((void *)mr, RMEM_ADVISE_PREFETCH, 0, &sge, 1), EINVAL);
	TEST_ERR(rmem_mr_advise(fx.a.pd, RMEM_ADVISE_PREFETCH_NO_FAULT + 1, 0, &sge, 1), EINVAL);
	TEST_ERR(rmem_mr_advise(fx.a.pd, -1, 0, &sge, 1), EINVAL);
	TEST_ERR(rmem_mr_advise(fx.a.pd, RMEM_ADVISE_PREFETCH, 0, &sge, 0), EINVAL);
	TEST_ERR(rmem_mr_advise(fx.a.pd, RMEM_ADVISE_PREFETCH, UINT32_C(1) << 1, &sge, 1), EINVAL);
	TEST_ERR(rmem_mr_advise(fx.a.pd, RMEM_ADVISE_PREFETCH, 0, NULL, 1), EINVAL);
	sge.length = SIZE + 1;
	TEST_ERR(rmem_mr_advise(fx.a.pd, RMEM_ADVISE_PREFETCH, 0, &sge, 1), EFAULT);
	sge = fx_sge(fx.a.mr, 0, FX_PAGE);
	TEST_ERR(rmem_mr_advise(fx.a.pd, RMEM_ADVISE_PREFETCH, 0, &sge, 1), EINVAL);
}

TEST_SUITE(odp, setup, teardown);
