/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Memory regions of the software device: limits, handles, and what no other device has. Their rules
 * are cases of conformance.
 */

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fixture.h"

TEST(mr, iova_0_remains_after_rereg)
{
	struct rmem_mr_attr attr = {.addr = fx.a.buf,
			.length = 100,
			.access = FX_ACCESS,
			.flags = RMEM_MR_IOVA};
	struct rmem_mr *mr;

	TEST_OK(rmem_mr_reg_attr(fx.a.pd, &attr, &mr));
	fx_track(mr);
	TEST_OK(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, FX_ACCESS, NULL));
	TEST_EQ(mr->iova, 0);
	TEST_STATUS(fx_peer_write(0, 100, mr->rkey), RMEM_WC_SUCCESS);
	/* Other memory begins at its address, as with ibv_rereg_mr(3). */
	TEST_OK(rmem_mr_rereg(
			mr, RMEM_REREG_CHANGE_TRANSLATION, NULL, fx.a.buf + 200, 100, 0, NULL));
	TEST_EQ(mr->iova, fx_addr(fx.a.buf + 200));
	TEST_STATUS(fx_peer_write(mr->iova, 100, mr->rkey), RMEM_WC_SUCCESS);
}

TEST(mr, allocated_region_may_be_zero_based)
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, NULL, 100,
			FX_ACCESS | RMEM_ACCESS_ZERO_BASED | RMEM_ACCESS_ALLOCATE_MR);

	TEST_EQ(mr->iova, 0);
	fx_fill(fx.b.buf, 100, 4);
	TEST_STATUS(fx_peer_write(0, 100, mr->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(mr->addr, fx.b.buf, 100);
}

/* The address may be one that is not mapped. */
TEST(mr, region_of_no_bytes_touches_no_memory)
{
	static const uint32_t more[] = {0, RMEM_ACCESS_ZERO_BASED, RMEM_ACCESS_ON_DEMAND,
			RMEM_ACCESS_HUGETLB, RMEM_ACCESS_MW_BIND};
	uint8_t *page = fx_map(FX_PAGE);
	void *const places[] = {NULL, fx.a.buf, fx.a.buf + 1, page + 7, (void *)UINTPTR_MAX};
	struct rmem_mr_info info;
	unsigned int i;

	TEST_OK(mprotect(page, FX_PAGE, PROT_NONE));
	for (i = 0; i < RTE_DIM(places) * RTE_DIM(more); i++) {
		struct rmem_mr *mr = NULL;
		int ret = rmem_mr_reg(fx.a.pd, places[i / RTE_DIM(more)], 0, 0,
				FX_ACCESS | more[i % RTE_DIM(more)], &mr);

		if (ret == -EOPNOTSUPP && more[i % RTE_DIM(more)] != 0)
			continue;
		TEST_OK(ret);
		TEST_OK(rmem_mr_query(mr, &info));
		TEST_EQ(info.length + info.page_size + info.nb_pages + info.nb_extents, 0);
		TEST_OK(rmem_mr_dereg(mr));
	}
}

TEST(mr, no_bytes_are_neither_allocated_nor_mapped)
{
	struct rmem_mr_attr attr = {.access = FX_ACCESS, .flags = RMEM_MR_FD};
	struct rmem_mr *mr = NULL;

	attr.fd = memfd_create("rmem_test", MFD_CLOEXEC);
	TEST_ASSERT(attr.fd >= 0);
	TEST_ERR(rmem_mr_reg_attr(fx.a.pd, &attr, &mr), EINVAL);
	close(attr.fd);
	TEST_ERR(rmem_mr_reg(fx.a.pd, NULL, 0, 0, FX_ACCESS | RMEM_ACCESS_ALLOCATE_MR, &mr),
			EINVAL);
	TEST_ASSERT(mr == NULL);
}

TEST(mr, zero_based_region_takes_no_iova)
{
	const uint32_t access = FX_ACCESS | RMEM_ACCESS_ZERO_BASED;
	struct rmem_mr *mr = NULL;

	TEST_ERR(rmem_mr_reg(fx.a.pd, NULL, 0, 8, access, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg(fx.a.pd, fx.a.buf, 64, 0x7000, access, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg(fx.a.pd, fx.a.buf, 64, fx_addr(fx.a.buf), access, &mr), EINVAL);
	TEST_ASSERT(mr == NULL);
}

TEST(mr, region_of_no_bytes_is_shared)
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, NULL, 0, FX_ACCESS), *view = NULL;

	TEST_OK(rmem_mr_reg_shared(mr, fx.a.pd, 0, FX_ACCESS, &view));
	fx_track(view);
	TEST_EQ(view->length, 0);
	TEST_STATUS(fx_peer_write(fx_addr(fx.a.buf), 1, view->rkey), RMEM_WC_REM_ACCESS_ERR);
}

/* From a range to none, on demand and not, and back. */
TEST(mr, rereg_changes_to_and_from_no_bytes)
{
	const uint32_t flags = RMEM_REREG_CHANGE_TRANSLATION | RMEM_REREG_CHANGE_ACCESS;
	static const struct {
		uint32_t length;
		uint32_t more;
	} steps[] = {{0, 0}, {100, 0}, {0, RMEM_ACCESS_ON_DEMAND}, {100, RMEM_ACCESS_ON_DEMAND},
			{0, RMEM_ACCESS_ON_DEMAND}, {0, 0}, {100, 0}};
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, 100, FX_ACCESS);
	enum rmem_rereg_result result;
	unsigned int i;
	int ret;

	for (i = 0; i < RTE_DIM(steps); i++) {
		uint32_t length = steps[i].length;

		ret = rmem_mr_rereg(mr, flags, NULL, length != 0 ? fx.a.buf : NULL, length,
				FX_ACCESS | steps[i].more, &result);
		if (ret == -EOPNOTSUPP && steps[i].more != 0)
			continue;
		TEST_OK(ret);
		TEST_EQ(mr->length, length);
		TEST_STATUS(fx_peer_write(fx_addr(fx.a.buf), length, mr->rkey), RMEM_WC_SUCCESS);
		TEST_STATUS(fx_peer_write(fx_addr(fx.a.buf), length + 1, mr->rkey),
				RMEM_WC_REM_ACCESS_ERR);
		fx_reconnect();
	}
}

/* The kernel pins it for a provider without write access. */
TEST(mr, memory_without_access_is_efault)
{
	uint8_t *page = fx_map(FX_PAGE);
	struct rmem_mr *mr = NULL;

	TEST_OK(mprotect(page, FX_PAGE, PROT_NONE));
	TEST_ERR(rmem_mr_reg(fx.a.pd, page, FX_PAGE, 0, 0, &mr), EFAULT);
	TEST_ASSERT(mr == NULL);
}

TEST(mr, length_is_limited)
{
	struct rmem_dev *dev = fx_dev("soft1", "max_mr_size=8192");
	struct rmem_pd *pd = fx_pd(dev);
	struct rmem_mr *mr = NULL;

	TEST_ERR(rmem_mr_reg(pd, NULL, 64, 0, 0, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg(pd, fx.a.buf, 64, 0, RMEM_ACCESS_ALLOCATE_MR, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg(pd, fx.a.buf, 8193, 0, 0, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg(pd, NULL, 8193, 0, RMEM_ACCESS_ALLOCATE_MR, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg(pd, NULL, 0, 0, RMEM_ACCESS_ALLOCATE_MR, &mr), EINVAL);
	TEST_ASSERT(mr == NULL);
	fx_mr(pd, fx.a.buf, 8192, 0);
}

TEST(mr, query_refuses_null_and_wrong_handles)
{
	static uint64_t zeros[64] __rte_cache_aligned;
	struct rmem_mr_info info;

	TEST_ERR(rmem_mr_query(NULL, &info), EINVAL);
	TEST_ERR(rmem_mr_query((struct rmem_mr *)zeros, &info), EINVAL);
	TEST_ERR(rmem_mr_query((struct rmem_mr *)fx.a.pd, &info), EINVAL);
	TEST_ERR(rmem_mr_query(fx.a.mr, NULL), EINVAL);
}

TEST(mr, enable_refuses_null_and_wrong_handles)
{
	static uint64_t zeros[64] __rte_cache_aligned;

	TEST_ERR(rmem_mr_enable(NULL), EINVAL);
	TEST_ERR(rmem_mr_enable((struct rmem_mr *)zeros), EINVAL);
	TEST_ERR(rmem_mr_enable((struct rmem_mr *)fx.a.pd), EINVAL);
}

/* Those bound by requests, of device memory, and null MRs. */
TEST(mr, calls_for_registered_memory_refuse_other_mrs)
{
	const struct rmem_dm_conf conf = {.length = 64};
	struct rmem_mr_ext ext = {.dm = NULL};
	const struct rmem_mr_attr attr = {
			.length = 64, .access = FX_ACCESS | RMEM_ACCESS_ZERO_BASED, .ext = &ext};
	struct rmem_mr *mrs[4] = {fx_fast_mr(fx.a.pd, 1), fx_mkey(fx.a.pd, 1)}, *shared = NULL;
	struct rmem_counter *counter = fx_counter(fx.a.dev);
	struct rmem_sge sge = {.length = 8};
	unsigned int i;

	TEST_OK(rmem_dm_alloc(fx.a.dev, &conf, &ext.dm));
	fx_track(ext.dm);
	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mrs[2]));
	TEST_OK(rmem_null_mr_alloc(fx.a.pd, &mrs[3]));
	fx_track(mrs[3]);
	for (i = 0; i < RTE_DIM(mrs); i++) {
		enum rmem_rereg_result result = RMEM_REREG_OK;
		uint32_t change = RMEM_REREG_CHANGE_PD;

		TEST_ERR(rmem_mr_enable(mrs[i]), EINVAL);
		TEST_ERR(rmem_mr_reg_shared(mrs[i], fx.a.pd, 0, 0, &shared), EINVAL);
		TEST_ERR(rmem_mr_rereg(mrs[i], change, fx.b.pd, NULL, 0, 0, &result), EINVAL);
		TEST_EQ(result, RMEM_REREG_ERR_INPUT);
		TEST_ERR(rmem_mr_bind_counter(mrs[i], counter, RMEM_COUNTER_REMOTE_WRITE), EINVAL);
	}
	sge.lkey = mrs[3]->lkey;
	TEST_ERR(rmem_mr_advise(fx.a.pd, RMEM_ADVISE_PREFETCH, 0, &sge, 1), EINVAL);
	TEST_ASSERT(shared == NULL);
}

#define ALLOCATE (FX_ACCESS | RMEM_ACCESS_ALLOCATE_MR)

static struct rmem_mr *
share(struct rmem_mr *from, uint32_t access)
{
	struct rmem_mr *mr = NULL;

	if (rmem_mr_reg_shared(from, fx.a.pd, 0, access, &mr) != 0)
		return NULL;
	fx_track(mr);
	return mr;
}

TEST(mr, sharing_with_bad_arguments_is_refused)
{
	struct rmem_mr *const from = fx.a.mr;
	struct rmem_pd *far = fx_pd(fx_dev("soft7", NULL)), *const pd = fx.a.pd;
	/* A device without atomics on demand. */
	struct rmem_pd *plain = fx_pd(fx_dev("soft8", "odp_guard=0"));
	const struct {
		struct rmem_mr *from;
		struct rmem_pd *pd;
		uint64_t iova;
		uint32_t access;
		int error;
	} bad[] = {{NULL, pd, 0, 0, EINVAL}, {(struct rmem_mr *)pd, pd, 0, 0, EINVAL},
			{from, far, 0, 0, EINVAL}, {from, pd, 0, ALLOCATE, EINVAL},
			{from, pd, 0, RMEM_ACCESS_REMOTE_WRITE, EINVAL},
			{from, pd, 0, UINT32_C(1) << 31, EINVAL}, {from, pd, UINT64_MAX, 0, EINVAL},
			{from, pd, 1, RMEM_ACCESS_ZERO_BASED, EINVAL},
			{fx_mr(plain, fx.a.buf, 64, FX_ACCESS), plain, 0,
					FX_ACCESS | RMEM_ACCESS_ON_DEMAND, EOPNOTSUPP}};
	struct rmem_mr *mr = NULL;
	unsigned int i;

	for (i = 0; i < RTE_DIM(bad); i++)
		TEST_ERR(rmem_mr_reg_shared(
					 bad[i].from, bad[i].pd, bad[i].iova, bad[i].access, &mr),
				bad[i].error);
	TEST_ASSERT(mr == NULL);
	TEST_OK(fx_release(far));
}

/* A refused request holds no reference: the MR can be released. */
TEST(mr, sharing_memory_without_the_right_is_efault)
{
	struct rmem_mr *from = fx_mr(fx.a.pd, fx_map(FX_PAGE), FX_PAGE, RMEM_ACCESS_REMOTE_READ);
	struct rmem_mr *mr = NULL;

	TEST_ERR(rmem_mr_reg_shared(from, fx.a.pd, 0, FX_ACCESS, &mr), EFAULT);
	TEST_ASSERT(mr == NULL && share(from, RMEM_ACCESS_REMOTE_READ) != NULL);
	TEST_OK(fx_release(from));
}

TEST(mr, sharing_full_table_is_enospc)
{
	struct rmem_pd *pd = fx_pd(fx_dev("soft8", "max_mr=1"));
	struct rmem_mr *from = fx_mr(pd, NULL, 64, ALLOCATE), *mr = NULL;

	TEST_ERR(rmem_mr_reg_shared(from, pd, 0, FX_ACCESS, &mr), ENOSPC);
	TEST_OK(fx_release(from));
	TEST_OK(fx_release(pd));
}

TEST_SUITE(mr, fx_setup, fx_teardown);
