/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Page size and tables of MRs: the arithmetic against a plain model, queries, and HUGETLB. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_eal.h>
#include <rte_cycles.h>
#include <rte_memory.h>
#include <rte_random.h>

#include "rmem_mr_pages_priv.h"

#include "fixture.h"

#define KIB    (UINT64_C(1) << 10)
#define MIB    (UINT64_C(1) << 20)
#define GIB    (UINT64_C(1) << 30)
#define CAP    (4 * KIB | 64 * KIB | 2 * MIB | GIB)
#define HUGE   (2 * MIB)
#define ROUNDS 20000

/* Of one stretch of physical memory. */
static struct rmem_mr_pages
one_stretch(uint64_t iova, uint64_t io_addr, uint64_t length)
{
	struct rmem_mr_pages pages;

	rmem_mr_pages_start(&pages, iova);
	rmem_mr_pages_add(&pages, io_addr, length, true);
	rmem_mr_pages_end(&pages, CAP, UINT64_MAX);
	return pages;
}

static void
expect(const struct rmem_mr_pages *pages, uint64_t page_size, uint64_t nb_pages, uint32_t nb_levels)
{
	TEST_EQ(pages->page_size, page_size);
	TEST_EQ(pages->nb_pages, nb_pages);
	TEST_EQ(pages->nb_levels, nb_levels);
}

TEST(mr_pages, page_is_the_smallest_of_those_that_need_the_fewest)
{
	struct rmem_mr_pages pages = one_stretch(2 * GIB, 5 * GIB, 100);

	expect(&pages, 4 * KIB, 1, 0);
	pages = one_stretch(2 * GIB + 4 * KIB - 50, 5 * GIB + 4 * KIB - 50, 100);
	expect(&pages, 64 * KIB, 1, 0);
	pages = one_stretch(2 * GIB, 5 * GIB, 4 * MIB);
	expect(&pages, GIB, 1, 0);
	pages = one_stretch(2 * GIB, 5 * GIB, 2 * MIB);
	expect(&pages, 2 * MIB, 1, 0);
	pages = one_stretch(2 * GIB - 1, 5 * GIB - 1, 2);
	expect(&pages, 4 * KIB, 2, 1);
}

TEST(mr_pages, iova_and_address_agree_modulo_the_page)
{
	struct rmem_mr_pages pages = one_stretch(2 * GIB, 5 * GIB + 2 * MIB, GIB);

	expect(&pages, 2 * MIB, 512, 1);
	pages = one_stretch(0, 5 * GIB + 64 * KIB, GIB);
	expect(&pages, 64 * KIB, 16384, 2);
	pages = one_stretch(0x5000, 5 * GIB, 8 * KIB);
	expect(&pages, 4 * KIB, 2, 1);
	/* None fits. */
	pages = one_stretch(1, 5 * GIB, 8 * KIB);
	expect(&pages, 0, 0, 0);
}

TEST(mr_pages, extents_begin_at_page_boundaries)
{
	struct rmem_mr_pages pages;

	rmem_mr_pages_start(&pages, GIB);
	rmem_mr_pages_add(&pages, 5 * GIB, 2 * MIB, true);
	rmem_mr_pages_add(&pages, 7 * GIB + 2 * MIB, 64 * KIB, true);
	/* Contiguous with the previous one: no boundary. The end of the last one is none either. */
	rmem_mr_pages_add(&pages, 7 * GIB + 2 * MIB + 64 * KIB, 100, true);
	rmem_mr_pages_end(&pages, CAP, UINT64_MAX);
	TEST_EQ(pages.nb_extents, 2);
	expect(&pages, 2 * MIB, 2, 1);

	rmem_mr_pages_start(&pages, GIB);
	rmem_mr_pages_add(&pages, 5 * GIB, 2 * MIB + 4 * KIB, true);
	rmem_mr_pages_add(&pages, 7 * GIB + 2 * MIB + 4 * KIB, 2 * MIB, true);
	rmem_mr_pages_end(&pages, CAP, UINT64_MAX);
	TEST_EQ(pages.nb_extents, 2);
	expect(&pages, 4 * KIB, 1025, 2);
}

TEST(mr_pages, unknown_addresses_extend_no_extent)
{
	struct rmem_mr_pages pages;

	rmem_mr_pages_start(&pages, GIB);
	rmem_mr_pages_add(&pages, GIB, 4 * KIB, false);
	rmem_mr_pages_add(&pages, GIB + 4 * KIB, 4 * KIB, false);
	rmem_mr_pages_add(&pages, GIB + 8 * KIB, 4 * KIB, true);
	rmem_mr_pages_end(&pages, CAP, UINT64_MAX);
	TEST_EQ(pages.nb_extents, 3);
	expect(&pages, 4 * KIB, 3, 1);
}

TEST(mr_pages, no_page_is_larger_than_the_memory_has)
{
	struct rmem_mr_pages pages;

	rmem_mr_pages_start(&pages, 2 * GIB);
	rmem_mr_pages_add(&pages, 2 * GIB, GIB, true);
	rmem_mr_pages_end(&pages, CAP, 64 * KIB);
	expect(&pages, 64 * KIB, 16384, 2);
}

TEST(mr_pages, tables_have_512_entries)
{
	static const struct {
		uint64_t nb_pages;
		uint32_t nb_levels;
	} cases[] = {{1, 0}, {2, 1}, {512, 1}, {513, 2}, {512 * 512, 2}, {512 * 512 + 1, 3},
			{UINT64_C(512) * 512 * 512, 3}};
	struct rmem_mr_pages pages;
	unsigned int i;

	for (i = 0; i < RTE_DIM(cases); i++) {
		rmem_mr_pages_start(&pages, 0);
		rmem_mr_pages_add(&pages, 0, cases[i].nb_pages * 4 * KIB, true);
		rmem_mr_pages_end(&pages, 4 * KIB, UINT64_MAX);
		expect(&pages, 4 * KIB, cases[i].nb_pages, cases[i].nb_levels);
	}
}

/* A small MR, byte by byte: io[i] is where byte i is. */
struct model {
	uint64_t iova;
	uint64_t io[512];
	unsigned int length;
};

/* Bytes of one page of iova are in one page of the same size, at the same places. */
static bool
model_fits(const struct model *model, uint64_t size)
{
	unsigned int i;

	for (i = 0; i < model->length; i++) {
		uint64_t iova = model->iova + i;

		if ((iova ^ model->io[i]) & (size - 1))
			return false;
		if (i > 0 && iova % size != 0 && model->io[i] != model->io[i - 1] + 1)
			return false;
	}
	return true;
}

static uint64_t
model_pages(const struct model *model, uint64_t size)
{
	return (model->iova + model->length - 1) / size - model->iova / size + 1;
}

static uint64_t
model_best(const struct model *model, uint64_t cap)
{
	uint64_t size, best = 0;

	for (size = 1; size <= 128; size <<= 1) {
		if ((cap & size) == 0 || !model_fits(model, size))
			continue;
		if (best == 0 || model_pages(model, size) < model_pages(model, best))
			best = size;
	}
	return best;
}

static void
model_draw(struct model *model, struct rmem_mr_pages *pages)
{
	uint64_t align = UINT64_C(1) << rte_rand_max(8);
	unsigned int i, j, n;

	model->iova = rte_rand_max(8) * align + rte_rand_max(2) * rte_rand_max(8);
	model->length = 0;
	rmem_mr_pages_start(pages, model->iova);
	for (i = 0; i < 3; i++) {
		uint64_t io = rte_rand_max(8) * 512 + (model->iova + model->length) % align;

		n = (unsigned int)(1 + rte_rand_max(80));
		if (rte_rand_max(2) == 0)
			n = (unsigned int)RTE_ALIGN_CEIL(n, RTE_MIN(align, UINT64_C(64)));
		for (j = 0; j < n; j++)
			model->io[model->length++] = io + j;
		rmem_mr_pages_add(pages, io, n, true);
	}
}

TEST(mr_pages, page_size_matches_the_model)
{
	uint64_t seed = rte_rdtsc();
	struct rmem_mr_pages pages;
	struct model model;
	unsigned int i;

	rte_srand(seed);
	for (i = 0; i < ROUNDS; i++) {
		uint64_t cap = rte_rand_max(256), best;

		model_draw(&model, &pages);
		rmem_mr_pages_end(&pages, cap, UINT64_MAX);
		best = model_best(&model, cap);
		if (pages.page_size != best)
			printf("seed %" PRIu64 ", round %u\n", seed, i);
		TEST_EQ(pages.page_size, best);
		TEST_EQ(pages.nb_pages, best != 0 ? model_pages(&model, best) : 0);
	}
}

TEST(mr_pages, query_reports_pages_and_levels)
{
	/* The bit of FX_PAGE differs from the IO address: no larger page fits, wherever buf is. */
	uint64_t iova = rte_mem_virt2iova(fx.a.buf) ^ FX_PAGE;
	struct rmem_mr *mr = NULL;
	struct rmem_mr_info info;

	TEST_OK(rmem_mr_reg(fx.a.pd, fx.a.buf, 3 * FX_PAGE, iova, FX_ACCESS, &mr));
	fx_track(mr);
	info = fx_query(mr);
	TEST_EQ(info.page_size, FX_PAGE);
	TEST_EQ(info.nb_pages, 3);
	TEST_EQ(info.nb_levels, 1);
	if (rte_eal_iova_mode() == RTE_IOVA_VA)
		TEST_EQ(info.nb_extents, 1);
	mr = fx_mr(fx.a.pd, fx.a.buf + 8, 8, FX_ACCESS);
	info = fx_query(mr);
	TEST_EQ(info.nb_pages, 1);
	TEST_EQ(info.nb_levels, 0);
}

/* The pages of the memory, whose number depends on the address. */
TEST(mr_pages, iova_with_another_page_offset_uses_base_pages)
{
	struct rmem_mr *mr = NULL;
	struct rmem_mr_info info;

	TEST_OK(rmem_mr_reg(fx.a.pd, fx.a.buf + 100, FX_PAGE, 1, FX_ACCESS, &mr));
	fx_track(mr);
	info = fx_query(mr);
	TEST_EQ(info.page_size, FX_PAGE);
	TEST_EQ(info.nb_pages, 2);
	TEST_EQ(info.nb_levels, 1);
}

TEST_WITH(mr_pages, query_reports_bound_pages, fx_setup_fast)
{
	struct rmem_mr_info info;

	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	info = fx_query(fx.fast.mr);
	TEST_EQ(info.page_size, FX_PAGE);
	TEST_EQ(info.nb_pages, FX_FAST_PAGES);
	TEST_EQ(info.nb_levels, 1);
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	info = fx_query(fx.fast.mr);
	TEST_EQ(info.nb_pages, 0);
}

/* Hugepages outside of EAL; NULL if there are none. */
static uint8_t *
map_huge(size_t nb)
{
	void *mem = mmap(NULL, nb * HUGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 21 << MAP_HUGE_SHIFT, -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

TEST(mr_pages, hugetlb_refuses_small_pages)
{
	const uint32_t access = FX_ACCESS | RMEM_ACCESS_HUGETLB;
	struct rmem_mr *mr = NULL;

	FX_ERR_LOG(rmem_mr_reg(fx.a.pd, fx.a.buf, 64, 0, access, &mr), EINVAL, "HUGETLB");
	TEST_TEXT(fx_log_end(), "4096 bytes");
	TEST_ASSERT(mr == NULL);
	TEST_ERR(rmem_mr_reg_shared(fx.a.mr, fx.a.pd, 0, access, &mr), EINVAL);
}

TEST(mr_pages, hugetlb_refuses_what_is_not_mapped)
{
	struct rmem_mr *mr = NULL;
	uint8_t *mem = fx_map(2 * FX_PAGE);

	TEST_OK(munmap(mem + FX_PAGE, FX_PAGE));
	TEST_ERR(rmem_mr_reg(fx.a.pd, mem, 2 * FX_PAGE, 0, RMEM_ACCESS_HUGETLB, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg(fx.a.pd, mem + FX_PAGE, 1, 0, RMEM_ACCESS_HUGETLB, &mr), EINVAL);
	TEST_ASSERT(mr == NULL);
}

TEST(mr_pages, hugetlb_requires_and_reports_hugepages)
{
	uint8_t *mem = map_huge(3);
	struct rmem_mr *mr = NULL;
	struct rmem_mr_info info;

	TEST_SKIP_IF(mem == NULL, "no 3 hugepages of 2 MiB are free");
	TEST_OK(rmem_mr_reg(fx.a.pd, mem, 2 * HUGE, 0, FX_ACCESS | RMEM_ACCESS_HUGETLB, &mr));
	fx_track(mr);
	info = fx_query(mr);
	TEST_EQ(info.access, FX_ACCESS | RMEM_ACCESS_HUGETLB);
	if (rte_eal_iova_mode() == RTE_IOVA_VA) {
		TEST_EQ(info.page_size, HUGE);
		TEST_EQ(info.nb_pages, 2);
	}
	TEST_STATUS(fx_peer_write(fx_addr(mem), 64, mr->rkey), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(mr));
	/* A range that only begins with one. */
	TEST_OK(munmap(mem + HUGE, HUGE));
	TEST_ASSERT(mmap(mem + HUGE, FX_PAGE, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == mem + HUGE);
	TEST_ERR(rmem_mr_reg(fx.a.pd, mem + HUGE - 8, 16, 0, RMEM_ACCESS_HUGETLB, &mr), EINVAL);
	TEST_OK(munmap(mem, 3 * HUGE));
}

TEST(mr_pages, hugetlb_of_allocated_memory_needs_hugepages_of_eal)
{
	const uint32_t access = FX_ACCESS | RMEM_ACCESS_ALLOCATE_MR | RMEM_ACCESS_HUGETLB;
	struct rmem_mr *mr = NULL;

	if (!rte_eal_has_hugepages()) {
		TEST_ERR(rmem_mr_reg(fx.a.pd, NULL, 100, 0, access, &mr), EINVAL);
		TEST_ASSERT(mr == NULL);
		return;
	}
	TEST_OK(rmem_mr_reg(fx.a.pd, NULL, 100, 0, access, &mr));
	fx_track(mr);
	TEST_ASSERT(fx_query(mr).page_size > FX_PAGE);
}

/* The bit remains when the memory changes, and applies to the new memory. */
TEST(mr_pages, rereg_checks_hugetlb)
{
	const uint32_t access = FX_ACCESS | RMEM_ACCESS_HUGETLB;
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, 64, FX_ACCESS);
	enum rmem_rereg_result result = RMEM_REREG_OK;
	uint8_t *mem = map_huge(1);

	TEST_ERR(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, access, &result),
			EINVAL);
	TEST_EQ(result, RMEM_REREG_ERR_INPUT);
	TEST_STATUS(fx_peer_write(fx_addr(fx.a.buf), 64, mr->rkey), RMEM_WC_SUCCESS);
	TEST_SKIP_IF(mem == NULL, "no hugepage of 2 MiB is free");
	TEST_OK(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS | RMEM_REREG_CHANGE_TRANSLATION, NULL,
			mem, HUGE, access, &result));
	TEST_EQ(result, RMEM_REREG_OK);
	TEST_EQ(fx_query(mr).nb_pages, 1);
	TEST_ERR(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_TRANSLATION, NULL, fx.a.buf, 64, 0, &result),
			EINVAL);
	TEST_EQ(result, RMEM_REREG_ERR_INPUT);
	TEST_STATUS(fx_peer_write(fx_addr(mem), 64, mr->rkey), RMEM_WC_SUCCESS);
	TEST_OK(fx_release(mr));
	TEST_OK(munmap(mem, HUGE));
}

/* Verbs' optional range is a hint: what the device has no use for is not in force. */
TEST(mr_pages, optional_bits_are_masked_by_every_call)
{
	const uint32_t access = FX_ACCESS | RMEM_ACCESS_OPTIONAL_RANGE;
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, 64, access);
	struct rmem_mr *other = NULL;

	TEST_EQ(fx_query(mr).access, FX_ACCESS);
	TEST_OK(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0,
			RMEM_ACCESS_REMOTE_READ | RMEM_ACCESS_RELAXED_ORDERING, NULL));
	TEST_EQ(fx_query(mr).access, RMEM_ACCESS_REMOTE_READ);
	TEST_OK(rmem_mr_reg_shared(mr, fx.a.pd, 0, access, &other));
	fx_track(other);
	TEST_EQ(fx_query(other).access, FX_ACCESS);
}

TEST_SUITE(mr_pages, fx_setup, fx_teardown);
