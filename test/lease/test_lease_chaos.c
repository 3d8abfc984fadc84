/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Leases whose requests fail by rules of chaos= are lost, and recovered; none is granted after. */

#include <stdlib.h>

#include "lease.h"

/* The second revocation fails, then the fourth grant. */
static void
setup(void)
{
	setenv("RMEM_TEST_ARGS",
			"chaos=LOCAL_INV:LOC_QP_OP_ERR@qp:1@nth:2+REG_MR:MW_BIND_ERR@qp:1@nth:4",
			1);
	lx_setup_fast_reg();
}

static void
teardown(void)
{
	unsetenv("RMEM_TEST_ARGS");
	lx_teardown();
}

/* Recover, and reclaim all leases; the peer has no access by the last of them. */
static void
recover(uint16_t nb)
{
	const struct rmem_lease last = *lx.lease[nb - 1];

	lx_recover();
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), nb);
	TEST_EQ(lx_stats().nb_leases, 0);
	lx_expect_denied(last.remote_addr, 8, last.rkey);
}

TEST(lease_chaos, lease_whose_request_fails_is_lost_until_it_is_recovered)
{
	lx_granted(2);
	TEST_OK(rmem_lease_revoke(lx.ctx, lx.lease, 2));
	lx_wait_state(lx.lease[1], RMEM_LEASE_LOST);
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_ERR);
	recover(2);
	lx_grant(2, RMEM_ACCESS_REMOTE_WRITE);
	lx_wait_state(lx.lease[1], RMEM_LEASE_LOST);
	recover(2);
	lx_granted(2);
	lx_expect_granted(lx.lease[1]);
	lx_revoke(2);
}

TEST_SUITE(lease_chaos, setup, teardown);
