/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Memory regions cover what they were asked to, refuse bad ranges and rights, and end. */

#include <string.h>
#include <sys/mman.h>

#include <rte_malloc.h>
#include <rte_memory.h>

#include "fixture.h"
#include "test.h"

TEST(mr, mr_tells_what_was_registered)
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf + 3, 1001, FX_ACCESS);
	struct rmem_mr_info info;

	TEST_ASSERT(mr != NULL);
	TEST_ASSERT(mr->addr == fx.a.buf + 3 && mr->pd == fx.a.pd);
	TEST_EQ(mr->length, 1001);
	TEST_EQ(mr->iova, fx_addr(fx.a.buf + 3));
	TEST_EQ(mr->access, FX_ACCESS);
	TEST_EQ(mr->type, RMEM_MR_TYPE_USER);
	TEST_OK(rmem_mr_query(mr, &info));
	TEST_EQ(info.type, RMEM_MR_TYPE_USER);
	TEST_EQ(info.state, RMEM_MR_STATE_VALID);
	TEST_EQ(info.access, FX_ACCESS);
	TEST_EQ(info.lkey, mr->lkey);
	TEST_EQ(info.rkey, mr->rkey);
	TEST_ASSERT(info.addr == mr->addr);
	TEST_EQ(info.iova, mr->iova);
	TEST_EQ(info.length, 1001);
	TEST_ASSERT(info.page_size >= FX_PAGE && info.nb_extents >= 1);
	TEST_EQ(info.max_page_list_len, 0);
	return TEST_SUCCESS;
}

TEST(mr, any_alignment_and_length_is_registered)
{
	static const size_t offsets[] = {0, 1, 7, FX_PAGE - 1};
	static const size_t lengths[] = {1, 2, FX_PAGE - 1, FX_PAGE, FX_PAGE + 1};
	unsigned int i, j;

	for (i = 0; i < RTE_DIM(offsets); i++) {
		for (j = 0; j < RTE_DIM(lengths); j++) {
			uint8_t *addr = fx.a.buf + offsets[i];
			struct rmem_mr *mr = fx_mr(fx.a.pd, addr, lengths[j], FX_ACCESS);

			TEST_ASSERT(mr != NULL);
			TEST_STATUS(fx_peer_write(fx_addr(addr), (uint32_t)lengths[j], mr->rkey),
					RMEM_WC_SUCCESS);
		}
	}
	return TEST_SUCCESS;
}

TEST(mr, stack_heap_and_eal_memory_is_registered)
{
	uint8_t *eal = rte_zmalloc("mr_test", 100, 0);
	uint8_t stack[100] = {0};
	uint8_t *const places[] = {stack, eal, fx_mem(8, 100)};
	unsigned int i;

	fx_fill(fx.b.buf, 100, 5);
	for (i = 0; i < RTE_DIM(places); i++) {
		struct rmem_mr *mr = fx_mr(fx.a.pd, places[i], 100, FX_ACCESS);

		TEST_ASSERT(mr != NULL);
		TEST_STATUS(fx_peer_write(fx_addr(places[i]), 100, mr->rkey), RMEM_WC_SUCCESS);
		TEST_MEM(places[i], fx.b.buf, 100);
		TEST_OK(fx_release(mr));
	}
	rte_free(eal);
	return TEST_SUCCESS;
}

TEST(mr, many_regions_share_a_page)
{
	struct rmem_mr *mr = NULL;
	int i;

	for (i = 0; i < 4096; i++) {
		mr = fx_mr(fx.a.pd, fx.a.buf + i, 1, FX_ACCESS);
		TEST_ASSERT(mr != NULL);
	}
	fx.b.buf[0] = 0x5a;
	TEST_STATUS(fx_peer_write(fx_addr(fx.a.buf + 4095), 1, mr->rkey), RMEM_WC_SUCCESS);
	TEST_EQ(fx.a.buf[4095], 0x5a);
	return TEST_SUCCESS;
}

/* Requests name the bytes by the iova; the address itself is then out of range. */
TEST(mr, chosen_iova_is_what_requests_use)
{
	const uint64_t iova = UINT64_C(0x123450001);
	struct rmem_mr *mr = NULL;

	TEST_OK(rmem_mr_reg(fx.a.pd, fx.a.buf, 100, iova, FX_ACCESS, &mr));
	fx_track(mr);
	TEST_EQ(mr->iova, iova);
	fx_fill(fx.b.buf, 50, 3);
	TEST_STATUS(fx_peer_write(iova + 10, 50, mr->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf + 10, fx.b.buf, 50);
	TEST_STATUS(fx_peer_write(fx_addr(fx.a.buf), 50, mr->rkey), RMEM_WC_REM_ACCESS_ERR);
	return TEST_SUCCESS;
}

TEST(mr, chosen_iova_is_what_sges_use)
{
	const uint64_t iova = UINT64_C(0x7000);
	struct rmem_mr *mr = NULL;
	struct rmem_send_wr wr;
	struct rmem_sge sge;

	TEST_OK(rmem_mr_reg(fx.a.pd, fx.a.buf, 100, iova, FX_ACCESS, &mr));
	fx_track(mr);
	fx_fill(fx.a.buf, 100, 3);
	sge = fx_sge(mr, 20, 80);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.b.buf), fx.b.mr->rkey);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf, fx.a.buf + 20, 80);
	sge.addr = fx_addr(fx.a.buf);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_LOC_PROT_ERR);
	return TEST_SUCCESS;
}

TEST(mr, iova_may_end_at_the_last_byte)
{
	const uint64_t iova = UINT64_MAX - 99;
	struct rmem_mr *mr = NULL;

	TEST_OK(rmem_mr_reg(fx.a.pd, fx.a.buf, 100, iova, FX_ACCESS, &mr));
	fx_track(mr);
	fx_fill(fx.b.buf, 100, 3);
	TEST_STATUS(fx_peer_write(iova, 100, mr->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf, fx.b.buf, 100);
	TEST_STATUS(fx_peer_write(iova + 1, 100, mr->rkey), RMEM_WC_REM_ACCESS_ERR);
	return TEST_SUCCESS;
}

/* Requests of both sides count from the first byte on; its address opens nothing. */
TEST(mr, zero_based_region_is_named_by_offsets)
{
	struct rmem_mr *mr =
			fx_mr(fx.a.pd, fx.a.buf + 128, 100, FX_ACCESS | RMEM_ACCESS_ZERO_BASED);
	struct rmem_send_wr wr;
	struct rmem_sge sge;

	TEST_ASSERT(mr != NULL);
	TEST_EQ(mr->iova, 0);
	TEST_EQ(fx_query(mr).iova, 0);
	TEST_EQ(fx_query(mr).access, FX_ACCESS | RMEM_ACCESS_ZERO_BASED);
	fx_fill(fx.b.buf, 100, 3);
	TEST_STATUS(fx_peer_write(0, 100, mr->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf + 128, fx.b.buf, 100);
	sge = fx_sge(mr, 20, 80);
	TEST_EQ(sge.addr, 20);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.b.buf), fx.b.mr->rkey);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf, fx.a.buf + 148, 80);
	TEST_STATUS(fx_peer_write(1, 100, mr->rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_OK(fx_reconnect());
	TEST_STATUS(fx_peer_write(fx_addr(fx.a.buf + 128), 8, mr->rkey), RMEM_WC_REM_ACCESS_ERR);
	return TEST_SUCCESS;
}

TEST(mr, allocated_region_may_be_zero_based)
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, NULL, 100,
			FX_ACCESS | RMEM_ACCESS_ZERO_BASED | RMEM_ACCESS_ALLOCATE_MR);

	TEST_ASSERT(mr != NULL);
	TEST_EQ(mr->iova, 0);
	fx_fill(fx.b.buf, 100, 4);
	TEST_STATUS(fx_peer_write(0, 100, mr->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(mr->addr, fx.b.buf, 100);
	return TEST_SUCCESS;
}

TEST(mr, zero_based_region_takes_no_iova)
{
	const uint32_t access = FX_ACCESS | RMEM_ACCESS_ZERO_BASED;
	struct rmem_mr *mr = NULL;

	TEST_ERR(rmem_mr_reg(fx.a.pd, fx.a.buf, 64, 0x7000, access, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg(fx.a.pd, fx.a.buf, 64, fx_addr(fx.a.buf), access, &mr), EINVAL);
	TEST_ASSERT(mr == NULL);
	return TEST_SUCCESS;
}

/* IBTA C10-72: of the sixteen sums, those that let peers modify need LOCAL_WRITE. */
TEST(mr, remote_rights_to_modify_need_local_write)
{
	uint32_t access;

	for (access = 0; access < 16; access++) {
		bool is_modifying =
				(access & (RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_ATOMIC)) !=
				0;
		bool is_bad = is_modifying && (access & RMEM_ACCESS_LOCAL_WRITE) == 0;
		struct rmem_mr *mr = NULL;
		int ret = rmem_mr_reg(fx.a.pd, fx.a.buf, 64, 0, access, &mr);

		TEST_EQ(ret, is_bad ? -EINVAL : 0);
		TEST_EQ(mr == NULL, is_bad);
		if (mr != NULL)
			fx_track(mr);
	}
	return TEST_SUCCESS;
}

/* Verbs' optional range is a hint: a device without a use for a bit ignores it. */
TEST(mr, optional_access_bits_are_ignored)
{
	uint32_t bit;

	for (bit = 20; bit < 30; bit++) {
		struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, 64, FX_ACCESS | UINT32_C(1) << bit);

		TEST_ASSERT(mr != NULL);
		TEST_STATUS(fx_peer_write(fx_addr(fx.a.buf), 64, mr->rkey), RMEM_WC_SUCCESS);
	}
	TEST_ASSERT(fx_mr(fx.a.pd, fx.a.buf, 64, RMEM_ACCESS_OPTIONAL_RANGE) != NULL);
	return TEST_SUCCESS;
}

TEST(mr, unknown_access_bits_are_refused)
{
	struct rmem_mr *mr = NULL;
	uint32_t bit;

	for (bit = 8; bit < 32; bit++) {
		uint32_t access = RMEM_ACCESS_LOCAL_WRITE | UINT32_C(1) << bit;

		if ((access & (RMEM_ACCESS_OPTIONAL_RANGE | RMEM_ACCESS_ALLOCATE_MR)) != 0)
			continue;
		TEST_ERR(rmem_mr_reg(fx.a.pd, fx.a.buf, 64, 0, access, &mr), EINVAL);
		TEST_ASSERT(mr == NULL);
	}
	return TEST_SUCCESS;
}

TEST(mr, reg_refuses_null_and_wrong_handles)
{
	static uint64_t zeros[64];
	struct rmem_mr *mr = NULL;
	void *buf = fx.a.buf;

	TEST_ERR(rmem_mr_reg(NULL, buf, 64, 0, 0, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg((struct rmem_pd *)zeros, buf, 64, 0, 0, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg((struct rmem_pd *)fx.a.cq, buf, 64, 0, 0, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg(fx.a.pd, buf, 64, 0, 0, NULL), EINVAL);
	TEST_ERR(rmem_mr_reg(fx.a.pd, NULL, 64, 0, 0, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg(fx.a.pd, buf, 64, 0, RMEM_ACCESS_ALLOCATE_MR, &mr), EINVAL);
	TEST_ASSERT(mr == NULL);
	return TEST_SUCCESS;
}

TEST(mr, reg_refuses_bad_lengths)
{
	struct rmem_dev *dev = fx_dev("soft1", "max_mr_size=8192");
	struct rmem_pd *pd = fx_pd(dev);
	struct rmem_mr *mr = NULL;

	TEST_ERR(rmem_mr_reg(fx.a.pd, fx.a.buf, 0, 0, 0, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg(fx.a.pd, fx.a.buf, SIZE_MAX, 0, 0, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg(pd, fx.a.buf, 8193, 0, 0, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg(pd, NULL, 8193, 0, RMEM_ACCESS_ALLOCATE_MR, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg(pd, NULL, 0, 0, RMEM_ACCESS_ALLOCATE_MR, &mr), EINVAL);
	TEST_ASSERT(mr == NULL);
	TEST_ASSERT(fx_mr(pd, fx.a.buf, 8192, 0) != NULL);
	return TEST_SUCCESS;
}

TEST(mr, reg_refuses_ranges_that_wrap)
{
	void *high = (void *)(UINTPTR_MAX - 62);
	struct rmem_mr *mr = NULL;

	TEST_ERR(rmem_mr_reg(fx.a.pd, high, 64, 0, 0, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg(fx.a.pd, fx.a.buf, 64, UINT64_MAX - 62, 0, &mr), EINVAL);
	TEST_ASSERT(mr == NULL);
	return TEST_SUCCESS;
}

static uint8_t *
map_pages(size_t nb_pages, int prot)
{
	void *addr = mmap(NULL, nb_pages * FX_PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return addr == MAP_FAILED ? NULL : addr;
}

TEST(mr, memory_that_is_not_mapped_is_efault)
{
	uint8_t *pages = map_pages(4, PROT_READ | PROT_WRITE);
	struct rmem_mr *mr = NULL;
	uint32_t access;

	TEST_ASSERT(pages != NULL);
	/* A hole after the first page, and nothing after the third. */
	TEST_OK(munmap(pages + FX_PAGE, FX_PAGE));
	TEST_OK(munmap(pages + 3 * FX_PAGE, FX_PAGE));
	for (access = 0; access <= RMEM_ACCESS_LOCAL_WRITE; access++) {
		uint8_t *third = pages + 2 * FX_PAGE;

		TEST_ERR(rmem_mr_reg(fx.a.pd, pages + FX_PAGE, 1, 0, access, &mr), EFAULT);
		TEST_ERR(rmem_mr_reg(fx.a.pd, pages, 3 * FX_PAGE, 0, access, &mr), EFAULT);
		TEST_ERR(rmem_mr_reg(fx.a.pd, third, FX_PAGE + 1, 0, access, &mr), EFAULT);
		TEST_ERR(rmem_mr_reg(fx.a.pd, (void *)FX_PAGE, 1, 0, access, &mr), EFAULT);
		TEST_ASSERT(mr == NULL);
		TEST_ASSERT(fx_mr(fx.a.pd, third, FX_PAGE, access) != NULL);
	}
	munmap(pages, 4 * FX_PAGE);
	return TEST_SUCCESS;
}

TEST(mr, read_only_memory_is_efault_with_local_write)
{
	uint8_t *page = map_pages(1, PROT_READ);
	struct rmem_mr *mr = NULL;

	TEST_ASSERT(page != NULL);
	TEST_ERR(rmem_mr_reg(fx.a.pd, page, 1, 0, RMEM_ACCESS_LOCAL_WRITE, &mr), EFAULT);
	TEST_ERR(rmem_mr_reg(fx.a.pd, page, FX_PAGE, 0, FX_ACCESS, &mr), EFAULT);
	TEST_ASSERT(mr == NULL);
	TEST_ASSERT(fx_mr(fx.a.pd, page, FX_PAGE, 0) != NULL);
	TEST_ASSERT(fx_mr(fx.a.pd, page, FX_PAGE, RMEM_ACCESS_REMOTE_READ) != NULL);
	munmap(page, FX_PAGE);
	return TEST_SUCCESS;
}

/* Every key gives the right to be read locally. */
TEST(mr, memory_without_access_is_efault)
{
	uint8_t *page = map_pages(1, PROT_NONE);
	struct rmem_mr *mr = NULL;

	TEST_ASSERT(page != NULL);
	TEST_ERR(rmem_mr_reg(fx.a.pd, page, FX_PAGE, 0, 0, &mr), EFAULT);
	TEST_ERR(rmem_mr_reg(fx.a.pd, page, FX_PAGE, 0, FX_ACCESS, &mr), EFAULT);
	TEST_ASSERT(mr == NULL);
	munmap(page, FX_PAGE);
	return TEST_SUCCESS;
}

TEST(mr, one_region_too_many_is_enospc_and_dereg_makes_room)
{
	struct rmem_dev *dev = fx_dev("soft1", "max_mr=3");
	struct rmem_pd *pd = fx_pd(dev);
	struct rmem_mr *mr = NULL;
	struct rmem_mr *last;

	TEST_ASSERT(fx_mr(pd, fx.a.buf, 64, 0) != NULL);
	TEST_ASSERT(fx_fast_mr(pd, 1) != NULL);
	last = fx_mr(pd, fx.a.buf, 64, 0);
	TEST_ASSERT(last != NULL);
	TEST_ERR(rmem_mr_reg(pd, fx.a.buf, 64, 0, 0, &mr), ENOSPC);
	TEST_ERR(rmem_mr_reg(pd, NULL, 64, 0, RMEM_ACCESS_ALLOCATE_MR, &mr), ENOSPC);
	TEST_ERR(rmem_fast_reg_mr_alloc(pd, 1, &mr), ENOSPC);
	TEST_ASSERT(mr == NULL);
	TEST_OK(fx_release(last));
	TEST_ASSERT(fx_mr(pd, fx.a.buf, 64, 0) != NULL);
	return TEST_SUCCESS;
}

static int
make_mr(void **mr)
{
	return rmem_mr_reg(fx.a.pd, fx.a.buf, 64, 0, 0, (struct rmem_mr **)mr);
}

static int
make_allocated_mr(void **mr)
{
	return rmem_mr_reg(fx.a.pd, NULL, 64, 0, RMEM_ACCESS_ALLOCATE_MR, (struct rmem_mr **)mr);
}

TEST(mr, no_memory_is_enomem_and_nothing_stays)
{
	TEST_RUN(fx_expect_enomem(make_mr));
	TEST_RUN(fx_expect_enomem(make_allocated_mr));
	return TEST_SUCCESS;
}

TEST(mr, dereg_refuses_what_is_no_region)
{
	static uint64_t zeros[64];

	TEST_OK(rmem_mr_dereg(NULL));
	TEST_ERR(rmem_mr_dereg((struct rmem_mr *)zeros), EINVAL);
	TEST_ERR(rmem_mr_dereg((struct rmem_mr *)fx.a.pd), EINVAL);
	return TEST_SUCCESS;
}

/* fi_mr(3): not closed while bound. Nothing binds to an MR yet, so the count is set here. */
TEST(mr, dereg_of_what_is_referred_to_is_ebusy)
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, 64, FX_ACCESS);

	TEST_ASSERT(mr != NULL);
	__atomic_fetch_add(&mr->obj.refs, 1, __ATOMIC_SEQ_CST);
	TEST_ERR(rmem_mr_dereg(mr), EBUSY);
	TEST_STATUS(fx_peer_write(fx_addr(fx.a.buf), 64, mr->rkey), RMEM_WC_SUCCESS);
	__atomic_fetch_sub(&mr->obj.refs, 1, __ATOMIC_SEQ_CST);
	TEST_OK(fx_release(mr));
	return TEST_SUCCESS;
}

TEST(mr, query_refuses_null_and_wrong_handles)
{
	static uint64_t zeros[64];
	struct rmem_mr_info info;

	TEST_ERR(rmem_mr_query(NULL, &info), EINVAL);
	TEST_ERR(rmem_mr_query((struct rmem_mr *)zeros, &info), EINVAL);
	TEST_ERR(rmem_mr_query((struct rmem_mr *)fx.a.pd, &info), EINVAL);
	TEST_ERR(rmem_mr_query(fx.a.mr, NULL), EINVAL);
	return TEST_SUCCESS;
}

TEST_SUITE(mr, fx_setup, fx_teardown);
