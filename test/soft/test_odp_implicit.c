/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Implicit on-demand MRs (seed-0, "Implicit ODP"): one key for all of the address space, within
 * its rights, mapped now or later.
 */

#include <string.h>
#include <sys/mman.h>

#include "fixture_odp.h"

static struct rmem_mr *all;

/* The explicit MR gives way: the steps of fx_odp go through the implicit one. */
static void
setup(void)
{
	fx_setup_odp();
	TEST_OK(fx_release(fx_odp.mr));
	all = fx_mr(fx.a.pd, NULL, SIZE_MAX, fx_odp_access());
	fx_odp.mr = all;
}

TEST(odp_implicit, implicit_mr_reports_the_address_space)
{
	struct rmem_mr_info info = fx_query(all);

	TEST_ASSERT(info.addr == NULL);
	TEST_EQ(info.iova, 0);
	TEST_EQ(info.length, SIZE_MAX);
	TEST_EQ(info.access, fx_odp_access());
	TEST_EQ(info.nb_extents, 1);
}

TEST(odp_implicit, every_opcode_reaches_any_memory)
{
	static uint8_t data[FX_PAGE] __attribute__((aligned(64)));
	uint8_t stack[256] __attribute__((aligned(64)));
	enum fx_odp_op op;

	memset(stack, 0, sizeof(stack));
	for (op = 0; op < FX_ODP_NB; op++) {
		if (!fx_odp_can(op))
			continue;
		TEST_STATUS(fx_odp_do(op, fx_addr(fx_odp_page(op % FX_ODP_PAGES)), 64),
				RMEM_WC_SUCCESS);
		TEST_STATUS(fx_odp_do(op, fx_addr(data), sizeof(data)), RMEM_WC_SUCCESS);
		TEST_STATUS(fx_odp_do(op, fx_addr(stack), sizeof(stack)), RMEM_WC_SUCCESS);
	}
	fx_fill(fx.b.buf, sizeof(stack), 1);
	TEST_STATUS(fx_odp_do(FX_ODP_WRITE_TO, fx_addr(stack), sizeof(stack)), RMEM_WC_SUCCESS);
	TEST_MEM(stack, fx.b.buf, sizeof(stack));
}

TEST(odp_implicit, memory_that_is_mapped_later_is_covered)
{
	uint8_t *later = fx_map(FX_PAGE);

	TEST_STATUS(fx_odp_do(FX_ODP_WRITE_TO, fx_addr(later), 64), RMEM_WC_REM_ACCESS_ERR);
	fx_reconnect();
	TEST_OK(mprotect(later, FX_PAGE, PROT_READ | PROT_WRITE));
	fx_fill(fx.b.buf, 64, 2);
	TEST_STATUS(fx_odp_do(FX_ODP_WRITE_TO, fx_addr(later), 64), RMEM_WC_SUCCESS);
	TEST_MEM(later, fx.b.buf, 64);
}

static void
expect_error(enum fx_odp_op op, uint64_t addr, uint32_t length)
{
	TEST_STATUS(fx_odp_do(op, addr, length), fx_odp_refusal(op));
	fx_reconnect();
}

/* NULL, what is not mapped, and the half of the addresses that no process has. */
TEST(odp_implicit, addresses_without_memory_give_an_error)
{
	static const uint64_t addrs[] = {0, 4096, UINT64_C(0x7fffffffe000), UINT64_C(1) << 47,
			UINT64_C(1) << 63, UINT64_MAX - 127};
	enum fx_odp_op op;
	uint32_t i;

	for (op = 0; op < FX_ODP_NB; op++) {
		for (i = 0; fx_odp_can(op) && i < RTE_DIM(addrs); i++)
			expect_error(op, addrs[i], 64);
	}
	expect_error(FX_ODP_WRITE_TO, (UINT64_C(1) << 47) - 32, 64);
}

/* Far from each other in the table. */
TEST(odp_implicit, implicit_mr_counts_its_pages)
{
	static uint8_t data[2 * FX_PAGE] __attribute__((aligned(FX_PAGE)));

	TEST_STATUS(fx_odp_write(0, FX_PAGE), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_odp_do(FX_ODP_WRITE_TO, fx_addr(data), sizeof(data)), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_odp_write(0, FX_PAGE), RMEM_WC_SUCCESS);
	TEST_EQ(fx_stats(all).page_faults, 3);
	TEST_EQ(fx_stats(all).pages, 3);
	TEST_OK(madvise(fx_odp_page(0), FX_PAGE, MADV_DONTNEED));
	TEST_EQ(fx_stats(all).pages, 2);
	TEST_EQ(fx_stats(all).invalidations, 1);
}

/* One beyond is inside the MR, whose length is SIZE_MAX, but where no process has memory. */
TEST(odp_implicit, window_of_an_implicit_mr_covers_its_range)
{
	const uint64_t at = fx_addr(fx_odp_page(1));

	fx.mw.mr = all;
	fx.mw.one = fx_mw(fx.a.pd, RMEM_MW_TYPE_1);
	TEST_STATUS(fx_mw_bind_1(at, FX_PAGE, RMEM_ACCESS_REMOTE_WRITE), RMEM_WC_SUCCESS);
	fx_fill(fx.b.buf, FX_PAGE, 3);
	TEST_STATUS(fx_peer_write(at, FX_PAGE, fx.mw.one->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx_odp_page(1), fx.b.buf, FX_PAGE);
	TEST_STATUS(fx_peer_write(at + FX_PAGE, 64, fx.mw.one->rkey), RMEM_WC_REM_ACCESS_ERR);
	fx_reconnect();
	TEST_STATUS(fx_mw_bind_1(UINT64_C(1) << 60, FX_PAGE, RMEM_ACCESS_REMOTE_WRITE),
			RMEM_WC_MW_BIND_ERR);
}

TEST(odp_implicit, implicit_mr_has_no_other_iova)
{
	struct rmem_mr *mr;

	TEST_ERR(rmem_mr_reg(fx.a.pd, NULL, SIZE_MAX, 4096, FX_ODP_ACCESS, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg(fx.a.pd, NULL, SIZE_MAX, 0, FX_ODP_ACCESS | RMEM_ACCESS_ZERO_BASED,
				 &mr),
			EINVAL);
	TEST_ERR(rmem_mr_reg(fx.a.pd, NULL, SIZE_MAX, 0, FX_ACCESS, &mr), EINVAL);
}

TEST_SUITE(odp_implicit, setup, fx_teardown);
