/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Leases over on-demand MRs: pages come and go below them as below the MR, by every backend, and no
 * access raises a signal.
 */

#include <sys/mman.h>

#include "soft/fixture_odp.h"
#include "lease.h"

static void
setup_odp(void (*setup)(void))
{
	struct rmem_dev_info info;
	int result = TEST_TRY(setup());

	if (result != TEST_SUCCESS) {
		TEST_RUN(result);
		return;
	}
	TEST_OK(rmem_dev_info_get(fx.a.dev, &info));
	if ((info.odp.general & RMEM_ODP_SUPPORT) == 0)
		test_skip("this system has no on-demand paging");
	fx_odp.mem = fx_map(FX_ODP_SIZE);
	TEST_OK(mprotect(fx_odp.mem, FX_ODP_SIZE, PROT_READ | PROT_WRITE));
	fx_odp.mr = fx_mr(fx.a.pd, fx_odp.mem, FX_ODP_SIZE, fx_odp_access() | RMEM_ACCESS_MW_BIND);
}

static void
setup_fast_reg(void)
{
	setup_odp(lx_setup_fast_reg);
}

static void
setup_mw(void)
{
	setup_odp(lx_setup_mw);
}

static void
setup_umr(void)
{
	setup_odp(lx_setup_umr);
}

static void
lease_all(struct rmem_lease **lease)
{
	const struct rmem_lease_req req = {.mr = fx_odp.mr,
			.addr = fx_odp.mem,
			.length = FX_ODP_SIZE,
			.access = RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_READ};

	TEST_EQ(rmem_lease_grant(lx.ctx, &req, 1, lease), 1);
	lx_wait_granted(*lease);
}

/* Pages never touched, pages that were written, and pages evicted since. */
TEST(lease_odp, evicted_leased_page_gives_an_error)
{
	static const uint32_t sizes[] = {8, 64, 500, 2000, 2 * FX_PAGE};
	struct rmem_lease *lease;
	uint32_t i;

	for (i = 0; i < RTE_DIM(sizes); i++) {
		lease_all(&lease);
		fx_fill(fx.b.buf, sizes[i], i);
		TEST_STATUS(lx_write(lease, 2 * FX_PAGE, sizes[i]), RMEM_WC_SUCCESS);
		TEST_MEM(fx_odp_page(2), fx.b.buf, sizes[i]);
		TEST_OK(fx_odp_protect(3, PROT_NONE));
		TEST_STATUS(lx_write(lease, 4 * FX_PAGE - 8, sizes[i]), RMEM_WC_REM_ACCESS_ERR);
		lx_recover();
		TEST_OK(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX) == 1 ? 0 : -ENOENT);
		lease_all(&lease);
		TEST_OK(fx_odp_unmap(5));
		TEST_STATUS(lx_write(lease, 5 * FX_PAGE, sizes[i]), RMEM_WC_REM_ACCESS_ERR);
		TEST_OK(fx_odp_map(5));
		TEST_OK(fx_odp_map(3));
		lx_recover();
		TEST_OK(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX) == 1 ? 0 : -ENOENT);
	}
}

struct test_case *test_cases_lease_odp;
TEST_SUITE_OF(lease_odp_fast_reg, setup_fast_reg, lx_teardown, lease_odp);
TEST_SUITE_OF(lease_odp_mw, setup_mw, lx_teardown, lease_odp);
TEST_SUITE_OF(lease_odp_umr, setup_umr, lx_teardown, lease_odp);
