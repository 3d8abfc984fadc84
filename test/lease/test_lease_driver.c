/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Leases with all capabilities, refusals and failures of a device: a programmable driver.
 */

#include <string.h>

#include "lease_stub.h"

#define INV RMEM_DEV_CAPA_LOCAL_INV
#define MW  (RMEM_DEV_CAPA_MW_TYPE_2B | INV)

static void
expect_backend(uint64_t capa, uint32_t wanted, int want)
{
	leaser_open(capa);
	lx.conf.backend = wanted;
	if (want < 0) {
		TEST_ERR(leaser_make(), -want);
		return;
	}
	TEST_OK(leaser_make());
	TEST_EQ(lx_stats().backend, want);
	lx_destroy();
}

TEST(lease_driver, backend_follows_the_capabilities)
{
	expect_backend(0, RMEM_LEASE_AUTO, -EOPNOTSUPP);
	expect_backend(RMEM_DEV_CAPA_MW_TYPE_2B, RMEM_LEASE_AUTO, -EOPNOTSUPP);
	expect_backend(MW, RMEM_LEASE_AUTO, RMEM_LEASE_MW);
	expect_backend(MW, RMEM_LEASE_MW, RMEM_LEASE_MW);
	expect_backend(MW, RMEM_LEASE_FAST_REG, -EOPNOTSUPP);
	expect_backend(MW, RMEM_LEASE_UMR, -EOPNOTSUPP);
	expect_backend(RMEM_DEV_CAPA_UMR | INV, RMEM_LEASE_AUTO, RMEM_LEASE_UMR);
	expect_backend(MW | RMEM_DEV_CAPA_UMR, RMEM_LEASE_UMR, RMEM_LEASE_UMR);
}

/* Which one it is, and what the device lacks for those that would be better. */
TEST(lease_driver, choice_of_a_backend_is_logged)
{
	const char *log;

	fx_log_begin();
	expect_backend(MW, RMEM_LEASE_AUTO, RMEM_LEASE_MW);
	log = fx_log_end();
	TEST_TEXT(log, "leases are made of windows of type 2B");
	TEST_TEXT(log, "need RMEM_ACCESS_MW_BIND of the MRs");
	TEST_TEXT(log, "no fast-register MRs: the device lacks RMEM_DEV_CAPA_FAST_REG\n");
	fx_log_begin();
	expect_backend(MW, RMEM_LEASE_MW, RMEM_LEASE_MW);
	TEST_TEXT(fx_log_end(), "as configured");
	fx_log_begin();
	expect_backend(RMEM_DEV_CAPA_UMR, RMEM_LEASE_UMR, -EOPNOTSUPP);
	log = fx_log_end();
	TEST_TEXT(log, "indirect keys: the device lacks RMEM_DEV_CAPA_LOCAL_INV\n");
	TEST_ASSERT(strstr(log, "FAST_REG") == NULL);
}

TEST(lease_driver, failed_allocations_are_reported)
{
	TEST_OK(leaser_make());
	leaser.alloc_ret = -ENOMEM;
	TEST_ERR(leaser_grant(1), ENOMEM);
	leaser.alloc_ret = -ENOSPC;
	TEST_ERR(leaser_grant(1), ENOSPC);
	leaser.alloc_ret = -EIO;
	TEST_ERR(leaser_grant(1), EIO);
	leaser.alloc_ret = 0;
	TEST_EQ(leaser_grant(1), 1);
	TEST_OK(rmem_lease_revoke(lx.ctx, lx.lease, 1));
}

TEST(lease_driver, context_whose_keys_fail_is_not_created)
{
	lx.conf.min_leases = 2;
	leaser.alloc_ret = -EIO;
	TEST_ERR(leaser_make(), EIO);
	TEST_EQ(leaser.nb_mw, 0);
}

TEST(lease_driver, failed_device_is_reported)
{
	struct rmem_lease *lease;
	struct rmem_wc wc;

	leaser_granted(1);
	lease = lx.lease[0];
	leaser.post_ret = -ENODEV;
	TEST_ERR(leaser_grant(2), ENODEV);
	TEST_ERR(rmem_lease_poll(lx.ctx, &wc, 1), ENODEV);
	TEST_EQ(lx_stats().nb_leases, 1);
	/* Nothing is proven about what could not be posted. */
	TEST_OK(rmem_lease_revoke(lx.ctx, &lease, 1));
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 0);
}

TEST(lease_driver, unreleased_key_ends_no_lease)
{
	leaser_granted(3);
	leaser.state = RMEM_QPS_RESET;
	leaser.dealloc_ret = -EIO;
	TEST_ERR(rmem_lease_recover(lx.ctx), EIO);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 0);
	leaser.dealloc_ret = 0;
	TEST_OK(rmem_lease_recover(lx.ctx));
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 3);
	TEST_EQ(rmem_lease_trim(lx.ctx), 0); /* from here on */
	leaser.dealloc_ret = -EIO;
	TEST_ERR(rmem_lease_trim(lx.ctx), EIO);
	TEST_ERR(rmem_lease_ctx_destroy(lx.ctx), EIO);
	leaser.dealloc_ret = 0;
	lx_destroy();
	TEST_EQ(leaser.nb_mw, 0);
}

TEST(lease_driver, failed_replacement_removes_the_key)
{
	uint32_t nb_keys;

	leaser_granted(3);
	nb_keys = lx_stats().nb_keys;
	leaser.state = RMEM_QPS_RESET;
	leaser.alloc_ret = -ENOSPC;
	TEST_OK(rmem_lease_recover(lx.ctx));
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 3);
	TEST_EQ(lx_stats().nb_keys, nb_keys - 3);
	leaser.alloc_ret = 0;
	TEST_EQ(leaser_grant(LX_MAX), LX_MAX);
}

/* Granted again before the completion of the first grant was polled: that one has no effect. */
TEST(lease_driver, late_completion_of_a_grant_affects_no_later_lease)
{
	lx.conf.max_leases = 1;
	leaser_granted(1);
	TEST_EQ(leaser_peer_inv(lx.lease[0]->rkey), 1);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 1);
	TEST_EQ(leaser_grant(1), 1);
	TEST_EQ(leaser_complete(0), 0);
	TEST_EQ(lx.lease[0]->state, RMEM_LEASE_GRANTING);
	TEST_EQ(leaser_complete(1), 0);
	TEST_EQ(lx.lease[0]->state, RMEM_LEASE_GRANTED);
}

/* The same where that completion is of a failure: the lease has ended, and the key is replaced. */
TEST(lease_driver, late_failure_of_a_grant_affects_no_later_lease)
{
	leaser_granted(1);
	TEST_EQ(leaser_peer_inv(lx.lease[0]->rkey), 1);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 1);
	TEST_EQ(leaser_complete_as(0, RMEM_WC_WR_FLUSH_ERR), 0);
	TEST_EQ(lx.lease[0]->state, RMEM_LEASE_FREE);
	leaser.state = RMEM_QPS_RESET;
	TEST_OK(rmem_lease_recover(lx.ctx));
	TEST_EQ(lx_stats().keys_replaced, 1);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 0);
	TEST_EQ(lx_stats().nb_leases, 0);
	/* No slot is there twice. */
	TEST_EQ(leaser_grant(LX_MAX), LX_MAX);
	TEST_ERR(leaser_grant(1), ENOSPC);
}

/* A key that can't be replaced after that is in no list. */
TEST(lease_driver, failed_replacement_of_a_doubtful_key_removes_it)
{
	leaser_granted(1);
	TEST_EQ(leaser_peer_inv(lx.lease[0]->rkey), 1);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 1);
	leaser.state = RMEM_QPS_RESET;
	leaser.alloc_ret = -ENOSPC;
	TEST_OK(rmem_lease_recover(lx.ctx));
	TEST_EQ(lx_stats().nb_free, lx_stats().nb_keys);
	leaser.alloc_ret = 0;
	TEST_EQ(leaser_grant(LX_MAX), LX_MAX);
	TEST_EQ(lx_stats().nb_keys, leaser.nb_mw);
}

/* Some keys are released then, and no lease is made of those. */
TEST(lease_driver, context_is_usable_after_a_failed_destruction)
{
	lx.conf.min_leases = 4;
	TEST_OK(leaser_make());
	leaser.dealloc_ret = -EIO;
	leaser.nb_deallocs = 2;
	TEST_ERR(rmem_lease_ctx_destroy(lx.ctx), EIO);
	TEST_EQ(leaser.nb_mw, 2);
	TEST_EQ(lx_stats().nb_keys, 2);
	TEST_EQ(lx_stats().nb_free, 1);
	leaser.dealloc_ret = 0;
	/* All but the one that is stuck. */
	TEST_EQ(leaser_grant(LX_MAX), LX_MAX - 1);
	TEST_EQ(lx_stats().nb_keys, leaser.nb_mw);
	leaser.state = RMEM_QPS_RESET;
	TEST_OK(rmem_lease_recover(lx.ctx));
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), LX_MAX - 1);
	lx_destroy();
	TEST_EQ(leaser.nb_mw, 0);
}

/* Its request has not completed: not a failure of the device, and not released. */
TEST(lease_driver, busy_key_is_kept)
{
	leaser_granted(1);
	TEST_EQ(leaser_peer_inv(lx.lease[0]->rkey), 1);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 1);
	leaser.dealloc_ret = -EBUSY;
	TEST_EQ(rmem_lease_trim(lx.ctx), 0); /* from here on */
	TEST_EQ(rmem_lease_trim(lx.ctx), 0);
	TEST_ERR(rmem_lease_ctx_destroy(lx.ctx), EBUSY);
	leaser.dealloc_ret = 0;
	TEST_EQ(leaser_grant(LX_MAX), LX_MAX);
}

/* Its MR was released, and only its page list could not be. */
TEST(lease_driver, half_released_key_is_not_used)
{
	uint16_t i;

	leaser_open(RMEM_DEV_CAPA_FAST_REG | INV);
	lx.conf.min_leases = 2;
	leaser_granted(4);
	TEST_EQ(leaser_complete(3), 0);
	TEST_OK(rmem_lease_revoke(lx.ctx, lx.lease, 4));
	TEST_EQ(leaser_complete(7), 0);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 4);
	TEST_EQ(rmem_lease_trim(lx.ctx), 0); /* from here on */
	leaser.list_ret = -EBUSY;
	TEST_ERR(rmem_lease_trim(lx.ctx), EIO);
	leaser.list_ret = 0;
	TEST_EQ(leaser_grant(LX_MAX), LX_MAX - 1);
	for (i = 8; i < leaser.nb_posted; i++)
		TEST_ASSERT(leaser.posted[i].reg_mr.mr != NULL);
}

TEST_SUITE(lease_driver, leaser_setup, leaser_teardown);
