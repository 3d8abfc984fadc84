/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* ALLOCATE_MR, registration by attributes, and the chunks they use. */

#include <string.h>

#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_memory.h>

#include <rmem_chunk.h>

#include "fixture.h"

#define ALLOCATE (FX_ACCESS | RMEM_ACCESS_ALLOCATE_MR)

static void
check_pages(size_t length, size_t page_size)
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, NULL, length, ALLOCATE);
	struct rmem_mr_info info;

	TEST_ASSERT(mr->addr != NULL);
	TEST_OK(rmem_mr_query(mr, &info));
	TEST_ASSERT(info.page_size >= FX_PAGE);
	TEST_ASSERT(mr->length >= length);
	TEST_EQ(mr->length % page_size, 0);
	TEST_EQ(fx_addr(mr->addr) % page_size, 0);
	TEST_ASSERT(mr->length - page_size < length);
	TEST_EQ(mr->iova, fx_addr(mr->addr));
	TEST_EQ(info.length, mr->length);
	TEST_ASSERT(info.nb_extents >= 1);
	memset(mr->addr, 0xa5, mr->length);
}

TEST(mr_alloc, allocated_memory_is_whole_pages_and_writable)
{
	size_t page_size = rmem_chunk_page_size();

	check_pages(5000, FX_PAGE);
	check_pages(page_size / 2, FX_PAGE);
	check_pages(page_size / 2 + 1, page_size);
}

/* Many small MRs share hugepages: each takes its page, and what EAL and the class keep of it. */
TEST(mr_alloc, small_mr_costs_little_more_than_its_page)
{
	size_t before = test_heap().heap_allocsz_bytes;
	struct rmem_mr *mr[64];
	unsigned int i;

	for (i = 0; i < RTE_DIM(mr); i++) {
		TEST_OK(rmem_mr_reg(fx.a.pd, NULL, 4096, 0, ALLOCATE, &mr[i]));
		TEST_EQ(mr[i]->length, FX_PAGE);
		memset(mr[i]->addr, (int)i, FX_PAGE);
	}
	TEST_ASSERT(test_heap().heap_allocsz_bytes - before < RTE_DIM(mr) * (FX_PAGE + 1024));
	for (i = 0; i < RTE_DIM(mr); i++) {
		TEST_EQ(((uint8_t *)mr[i]->addr)[0], i);
		TEST_EQ(((uint8_t *)mr[i]->addr)[FX_PAGE - 1], i);
		TEST_OK(rmem_mr_dereg(mr[i]));
	}
	TEST_EQ(test_heap().heap_allocsz_bytes, before);
}

TEST(mr_alloc, allocated_memory_takes_a_chosen_iova)
{
	struct rmem_mr *mr = NULL;

	TEST_OK(rmem_mr_reg(fx.a.pd, NULL, 1, 0x10000, ALLOCATE, &mr));
	fx_track(mr);
	TEST_EQ(mr->iova, 0x10000);
	fx_fill(fx.b.buf, 16, 4);
	TEST_STATUS(fx_peer_write(0x10000, 16, mr->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(mr->addr, fx.b.buf, 16);
}

/* The log has the amount that is missing. */
TEST(mr_alloc, more_memory_than_there_is_is_enomem)
{
	struct rmem_mr *mr = NULL;
	const char *log;

	FX_ERR_LOG(rmem_mr_reg(fx.a.pd, NULL, (size_t)1 << 45, 0, ALLOCATE, &mr), ENOMEM,
			"35184372088832");
	TEST_ASSERT(mr == NULL);
	log = fx_log_end();
	TEST_ASSERT(strstr(log, "missing") != NULL || strstr(log, "are needed") != NULL);
}

/* Rounded up to whole pages it wraps, though as asked it would not. */
TEST(mr_alloc, allocated_iova_that_wraps_is_refused)
{
	struct rmem_mr *mr = NULL;

	TEST_ERR(rmem_mr_reg(fx.a.pd, NULL, 64, UINT64_MAX - 63, ALLOCATE, &mr), EINVAL);
	TEST_ASSERT(mr == NULL);
}

TEST(mr_alloc, attr_refuses_null_and_reserved_fields)
{
	struct rmem_mr_ext ext = {.dm = NULL};
	struct rmem_mr_attr attr = {.addr = fx.a.buf, .length = 100, .ext = &ext};
	struct rmem_mr *mr = NULL;
	unsigned int i;

	TEST_ERR(rmem_mr_reg_attr(fx.a.pd, NULL, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg_attr(NULL, &attr, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg_attr(fx.a.pd, &attr, NULL), EINVAL);
	for (i = 0; i < RTE_DIM(ext.reserved); i++) {
		ext.reserved[i] = 1;
		TEST_ERR(rmem_mr_reg_attr(fx.a.pd, &attr, &mr), EINVAL);
		ext.reserved[i] = 0;
	}
	TEST_ASSERT(mr == NULL);
}

TEST(mr_alloc, allocation_on_a_socket_there_is_not_is_refused)
{
	struct rmem_mr_attr attr = {.length = 100, .access = ALLOCATE, .socket_id = 77};
	struct rmem_mr *mr = NULL;

	TEST_ERR(rmem_mr_reg_attr(fx.a.pd, &attr, &mr), EINVAL);
	attr.socket_id = -2;
	TEST_ERR(rmem_mr_reg_attr(fx.a.pd, &attr, &mr), EINVAL);
	TEST_ASSERT(mr == NULL);
	attr.socket_id = (int)rte_socket_id();
	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
}

TEST(mr_alloc, chunk_is_contiguous_whole_pages)
{
	const struct rte_memzone *mz = NULL;

	TEST_OK(rmem_chunk_reserve("test_chunk", 100000, SOCKET_ID_ANY, &mz));
	TEST_ASSERT(mz != NULL && mz->hugepage_sz >= FX_PAGE);
	TEST_ASSERT(mz->len >= 100000);
	TEST_EQ(mz->len % mz->hugepage_sz, 0);
	TEST_EQ(fx_addr(mz->addr) % mz->hugepage_sz, 0);
	memset(mz->addr, 1, mz->len);
	TEST_OK(rte_memzone_free(mz));
}

TEST(mr_alloc, chunk_refuses_bad_arguments)
{
	static const char *const name = "test_chunk";
	static const char long_name[] = "a name of thirty-two characters.";
	const struct rte_memzone *mz = NULL;
	int any = SOCKET_ID_ANY;

	TEST_EQ(strlen(long_name), RTE_MEMZONE_NAMESIZE);
	TEST_ERR(rmem_chunk_reserve(NULL, 1, any, &mz), EINVAL);
	TEST_ERR(rmem_chunk_reserve(long_name, 1, any, &mz), EINVAL);
	TEST_ERR(rmem_chunk_reserve(name, 1, any, NULL), EINVAL);
	TEST_ERR(rmem_chunk_reserve(name, 0, any, &mz), EINVAL);
	TEST_ERR(rmem_chunk_reserve(name, SIZE_MAX, any, &mz), EINVAL);
	TEST_ERR(rmem_chunk_reserve(name, 1, 77, &mz), EINVAL);
	TEST_ERR(rmem_chunk_reserve(name, (size_t)1 << 45, any, &mz), ENOMEM);
	TEST_ASSERT(mz == NULL);
}

TEST(mr_alloc, chunk_of_a_name_in_use_is_eexist)
{
	const struct rte_memzone *mz = NULL;
	const struct rte_memzone *other = NULL;

	TEST_OK(rmem_chunk_reserve("test_chunk", 1, SOCKET_ID_ANY, &mz));
	TEST_ERR(rmem_chunk_reserve("test_chunk", 1, SOCKET_ID_ANY, &other), EEXIST);
	TEST_ASSERT(other == NULL);
	TEST_OK(rte_memzone_free(mz));
}

/* With hugepages, other processes take and free them too. */
TEST(mr_alloc, chunk_takes_free_pages)
{
	size_t page_size = rmem_chunk_page_size();
	size_t nb = rmem_chunk_free_pages(page_size, SOCKET_ID_ANY), left;
	size_t half = rte_eal_has_hugepages() ? 1 : nb / 2;
	const struct rte_memzone *mz = NULL;

	TEST_ASSERT(nb > 1);
	TEST_OK(rmem_chunk_reserve("test_chunk", half * page_size, SOCKET_ID_ANY, &mz));
	left = rmem_chunk_free_pages(page_size, SOCKET_ID_ANY);
	TEST_EQ(mz->hugepage_sz, page_size);
	TEST_OK(rte_memzone_free(mz));
	if (!rte_eal_has_hugepages()) {
		TEST_ASSERT(left <= nb - half);
		TEST_EQ(rmem_chunk_free_pages(page_size, SOCKET_ID_ANY), nb);
	}
}

TEST_SUITE(mr_alloc, fx_setup, fx_teardown);
