/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Keys of leases: their tags, their rest, their age, and what a failed QP leaves; each backend. */

#include <string.h>

#include <rte_cycles.h>

#include "lease.h"

#define WRITE RMEM_ACCESS_REMOTE_WRITE
#define TAGS  256u
#define USES  (TAGS - 1) /* leases of a key between quarantines: one tag is left */

/* One lease of the only key, granted and reclaimed. */
static void
use_once(uint32_t *rkey)
{
	lx_grant(1, WRITE);
	*rkey = lx.lease[0]->rkey;
	lx_revoke(1);
}

/* One key, until it is quarantined; the last element is the tag that is left. */
static void
use_all(uint32_t rkey[TAGS])
{
	uint32_t i;

	rkey[USES] = 0;
	for (i = 0; i < USES; i++) {
		use_once(&rkey[i]);
		rkey[USES] ^= rkey[i] & 0xff;
	}
}

static void
one_key(uint32_t quarantine_us)
{
	lx.conf.max_leases = 1;
	lx.conf.quarantine_us = quarantine_us;
	lx_remake();
}

TEST(lease_key, each_tag_is_used_once)
{
	bool is_seen[TAGS] = {false};
	uint32_t rkey[TAGS], i;

	one_key(1);
	use_all(rkey);
	for (i = 0; i < USES; i++) {
		TEST_EQ(rkey[i] >> 8, rkey[0] >> 8);
		TEST_ASSERT(!is_seen[rkey[i] & 0xff]);
		is_seen[rkey[i] & 0xff] = true;
	}
}

/* A repeated step would disclose the next key. */
TEST(lease_key, tags_have_no_constant_step)
{
	uint32_t rkey[TAGS], i, nb[TAGS] = {0}, most = 0;

	one_key(1);
	use_all(rkey);
	for (i = 1; i < USES; i++) {
		uint8_t step = (uint8_t)(rkey[i] - rkey[i - 1]);

		nb[step]++;
		most = RTE_MAX(most, nb[step]);
	}
	/* By chance, one step occurs 10 times in a billionth of the cases. */
	TEST_ASSERT(most < 32);
}

/* Whether an odd number of exchanges makes the tags' order of 0 to 255. */
static bool
is_odd(const uint32_t rkey[TAGS])
{
	bool is_seen[TAGS] = {false}, odd = false;
	uint32_t i, at;

	for (i = 0; i < TAGS; i++) {
		for (at = i; !is_seen[at]; at = rkey[at] & 0xff) {
			is_seen[at] = true;
			odd ^= (rkey[at] & 0xff) != i;
		}
	}
	return odd;
}

/*
 * Of all orders half are odd, but none that a network of rounds over halves of a tag makes, such
 * as can be computed from some of its results: by chance all are even in one of 2^40 runs.
 */
TEST(lease_key, tag_order_is_random)
{
	uint32_t rkey[TAGS], i, nb_odd = 0;

	for (i = 0; i < 40; i++) {
		one_key(1);
		use_all(rkey);
		nb_odd += is_odd(rkey);
	}
	TEST_ASSERT(nb_odd > 0);
}

/* The first 128 tags of an order: each draw is from the remaining ones, no half is preferred. */
TEST(lease_key, every_tag_value_may_occur_early)
{
	uint32_t rkey[TAGS], nb[TAGS] = {0}, i, j;

	for (i = 0; i < 60; i++) {
		one_key(1);
		for (j = 0; j < TAGS / 2; j++) {
			use_once(&rkey[j]);
			nb[rkey[j] & 0xff]++;
		}
	}
	/* Each occurs half of the time: never, or always, in one of 2^52 runs. */
	for (i = 0; i < TAGS; i++)
		TEST_ASSERT(nb[i] > 0 && nb[i] < 60);
}

TEST(lease_key, key_is_quarantined_when_its_tags_are_used_up)
{
	const struct rmem_lease_req req = lx_req(0, FX_PAGE, WRITE);
	uint32_t rkey[TAGS];

	one_key(3600u * 1000000);
	use_all(rkey);
	TEST_EQ(lx_stats().nb_quarantined, 1);
	TEST_EQ(lx_stats().nb_free, 0);
	TEST_EQ(lx_stats().quarantines, 1);
	TEST_ERR(rmem_lease_grant(lx.ctx, &req, 1, lx.lease), ENOSPC);
	TEST_EQ(lx_stats().quarantine_refused, 1);
}

TEST(lease_key, key_is_reused_after_its_quarantine)
{
	const struct rmem_lease_req req = lx_req(0, FX_PAGE, WRITE);
	uint32_t rkey[TAGS];
	uint64_t begin, took;
	int ret;

	one_key(2000);
	begin = rte_rdtsc();
	use_all(rkey);
	do {
		ret = rmem_lease_grant(lx.ctx, &req, 1, lx.lease);
		took = rte_rdtsc() - begin;
	} while (ret == -ENOSPC);
	TEST_EQ(ret, 1);
	/* It was quarantined after begin. */
	TEST_ASSERT(took >= rte_get_tsc_hz() / 500);
	TEST_EQ(lx.lease[0]->rkey >> 8, rkey[0] >> 8);
	TEST_ASSERT(lx.lease[0]->rkey != rkey[USES - 1]);
	lx_expect_granted(lx.lease[0]);
}

TEST(lease_key, another_key_is_used_while_one_is_quarantined)
{
	uint32_t rkey[TAGS], next;

	lx.conf.max_leases = 2;
	lx.conf.quarantine_us = 3600u * 1000000;
	lx_remake();
	use_all(rkey);
	use_once(&next);
	TEST_ASSERT(next >> 8 != rkey[0] >> 8);
}

TEST(lease_key, minimum_of_keys_is_allocated_at_once_and_others_as_needed)
{
	struct rmem_dev_info before, after;

	lx_destroy();
	TEST_OK(rmem_dev_info_get(fx.a.dev, &before));
	lx.conf.min_leases = 5;
	TEST_OK(rmem_lease_ctx_create(fx.a.qp, &lx.conf, &lx.ctx));
	TEST_OK(rmem_dev_info_get(fx.a.dev, &after));
	TEST_EQ(after.nb_mr + after.nb_mw - before.nb_mr - before.nb_mw, 5);
	TEST_EQ(lx_stats().nb_keys, 5);
	lx_grant(5, WRITE);
	TEST_EQ(lx_stats().nb_keys, 5);
	lx_grant(6, WRITE);
	TEST_ASSERT(lx_stats().nb_keys >= 11);
	TEST_EQ(lx_stats().peak_keys, lx_stats().nb_keys);
}

TEST(lease_key, idle_keys_are_released_down_to_the_minimum)
{
	lx.conf.min_leases = 3;
	lx_remake();
	lx_grant(8, WRITE);
	/* All that are free were made a moment ago, but are needed no more. */
	TEST_ASSERT(rmem_lease_trim(lx.ctx) >= 0);
	TEST_ASSERT(lx_stats().nb_keys >= 8);
	lx_revoke(8);
	/* They were in use since the call before. */
	TEST_ASSERT(rmem_lease_trim(lx.ctx) >= 0);
	TEST_ASSERT(lx_stats().nb_keys >= 8);
	lx_grant(4, WRITE);
	lx_revoke(4);
	/* Four of them were. */
	TEST_ASSERT(rmem_lease_trim(lx.ctx) > 0);
	TEST_EQ(lx_stats().nb_keys, 4);
	TEST_EQ(rmem_lease_trim(lx.ctx), 1);
	TEST_EQ(rmem_lease_trim(lx.ctx), 0);
	TEST_EQ(lx_stats().nb_keys, 3);
	TEST_EQ(lx_stats().nb_free, 3);
	TEST_ASSERT(lx_stats().peak_keys >= 8);
	lx_grant(8, WRITE);
	lx_expect_granted(lx.lease[7]);
}

/* No rkey granted before the reset is valid after it; the number of keys is unchanged. */
static void
expect_recovered(uint16_t nb, uint32_t nb_keys)
{
	struct rmem_lease old[LX_MAX];
	uint16_t i;

	for (i = 0; i < nb; i++)
		old[i] = *lx.lease[i];
	lx_recover();
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), nb);
	TEST_EQ(lx_stats().nb_keys, nb_keys);
	TEST_EQ(lx_stats().nb_leases, 0);
	for (i = 0; i < nb; i++)
		lx_expect_denied(old[i].remote_addr, 8, old[i].rkey);
	lx_grant(nb, WRITE);
	for (i = 0; i < nb; i++)
		lx_expect_granted(lx.lease[i]);
}

TEST(lease_key, leases_end_with_their_connection)
{
	lx_granted(4);
	expect_recovered(4, lx_stats().nb_keys);
}

TEST(lease_key, flushed_grants_are_recovered)
{
	const uint32_t nb_keys = 8;

	lx.conf.min_leases = nb_keys;
	lx_remake();
	TEST_OK(rmem_qp_set_error(fx.a.qp));
	lx_grant(4, WRITE);
	lx_wait_state(lx.lease[3], RMEM_LEASE_LOST);
	TEST_EQ(lx.lease[0]->state, RMEM_LEASE_LOST);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 0);
	expect_recovered(4, nb_keys);
	TEST_EQ(lx_stats().failed, 4);
}

TEST(lease_key, flushed_revocations_are_recovered)
{
	lx_granted(4);
	TEST_OK(rmem_qp_set_error(fx.a.qp));
	TEST_OK(rmem_lease_revoke(lx.ctx, lx.lease, 2));
	lx_wait_state(lx.lease[1], RMEM_LEASE_LOST);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 0);
	expect_recovered(4, lx_stats().nb_keys);
	TEST_EQ(lx_stats().revoked, 2);
	TEST_EQ(lx_stats().failed, 2);
}

/* Requests that a reset drops complete never. */
TEST(lease_key, dropped_requests_are_recovered)
{
	const struct rmem_sge from = fx_sge(fx.a.mr, FX_BUF_SIZE - 8, 8);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);

	TEST_SKIP_IF(fx_is_rxe(), "rdma_rxe can stop executing after a reset in an RNR wait");
	lx_granted(2);
	TEST_EQ(fx_post(fx.a.qp, &wr), 1); /* waits for a receive, and so do all after it */
	TEST_OK(rmem_lease_revoke(lx.ctx, lx.lease, 1));
	expect_recovered(2, lx_stats().nb_keys);
	TEST_EQ(lx_stats().keys_replaced, 2);
}

/* Completions from before a reset are still in the CQ (IBTA C10-97), and have no effect. */
TEST(lease_key, old_completions_are_ignored)
{
	struct rmem_wc wc[4];
	int n;

	lx_grant(2, WRITE);
	n = fx_poll(fx.a.cq, wc, 1);
	TEST_EQ(n, 1);
	lx_recover();
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 2);
	TEST_OK(rmem_qp_set_error(fx.a.qp));
	lx_grant(2, WRITE);
	TEST_EQ(rmem_lease_process_wcs(lx.ctx, wc, 1), 0);
	TEST_EQ(lx.lease[1]->state, RMEM_LEASE_GRANTING);
	lx_wait_state(lx.lease[1], RMEM_LEASE_LOST);
}

TEST(lease_key, prepared_leases_end_with_a_reset)
{
	const struct rmem_lease_req req = lx_req(0, FX_PAGE, WRITE);

	TEST_EQ(rmem_lease_prepare(lx.ctx, &req, 1, lx.lease), 1);
	lx_recover();
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 1);
	TEST_EQ(lx.ended[0]->end, RMEM_LEASE_END_FAILED);
	lx_grant(1, WRITE);
	lx_expect_granted(lx.lease[0]);
}

/* The completion of one covers those before it, and itself. */
TEST(lease_key, failed_grant_loses_only_its_lease)
{
	struct rmem_wc wc;

	lx_grant(3, WRITE);
	TEST_EQ(fx_poll(fx.a.cq, &wc, 1), 1);
	wc.status = RMEM_WC_MW_BIND_ERR;
	TEST_EQ(rmem_lease_process_wcs(lx.ctx, &wc, 1), 0);
	TEST_EQ(lx.lease[0]->state, RMEM_LEASE_GRANTED);
	TEST_EQ(lx.lease[1]->state, RMEM_LEASE_GRANTED);
	TEST_EQ(lx.lease[2]->state, RMEM_LEASE_LOST);
	TEST_OK(rmem_lease_revoke(lx.ctx, &lx.lease[2], 1));
	TEST_EQ(lx_stats().local_invs, 0);
	expect_recovered(3, lx_stats().nb_keys);
}

/* Its MR is held until the request that refers to it was executed, and its lease has ended. */
TEST(lease_key, queued_grant_holds_its_mr)
{
	const struct rmem_sge from = fx_sge(fx.a.mr, FX_BUF_SIZE - 8, 8),
			      to = fx_sge(fx.b.mr, FX_BUF_SIZE - 8, 8);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);
	struct rmem_lease_req req = lx_req(0, FX_PAGE, WRITE);
	struct rmem_mr *other;

	/* See test_lease_end.c: there, what waits before a binding ends the QP. */
	TEST_SKIP_IF(fx_is_rxe(), "rdma_rxe repeats a binding after a request that it retransmits");
	other = fx_mr(fx.a.pd, fx.a.buf, FX_PAGE, FX_ACCESS | RMEM_ACCESS_MW_BIND);
	TEST_EQ(fx_post(fx.a.qp, &wr), 1); /* waits for a receive, and all after it */
	req.mr = other;
	TEST_EQ(rmem_lease_grant(lx.ctx, &req, 1, lx.lease), 1);
	TEST_ERR(rmem_mr_dereg(other), EBUSY);
	TEST_EQ(fx_post_recv(fx.b.qp, 7, &to, 1), 1);
	lx_wait_state(lx.lease[0], RMEM_LEASE_GRANTED);
	lx_revoke(1);
	TEST_RUN(fx_release(other));
}

LEASE_SUITES(lease_key);
