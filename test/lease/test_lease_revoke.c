/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The end of a lease: revoked by its owner or by its deadline, or invalidated by the peer. It is
 * invalid when it is reclaimed, and its key is reused; each backend.
 */

#include <string.h>

#include <rte_cycles.h>

#include "lease.h"

#define WRITE RMEM_ACCESS_REMOTE_WRITE

/* A SEND for which the peer has no receive: requests posted after it wait. */
static void
block_queue(void)
{
	const struct rmem_sge from = fx_sge(fx.a.mr, FX_BUF_SIZE - 8, 8);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);

	TEST_EQ(fx_post(fx.a.qp, &wr), 1);
}

static void
unblock_queue(void)
{
	const struct rmem_sge to = fx_sge(fx.b.mr, FX_BUF_SIZE - 8, 8);

	TEST_EQ(fx_post_recv(fx.b.qp, 7, &to, 1), 1);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
}

TEST(lease_revoke, revoked_lease_is_invalid)
{
	lx_grant(1, WRITE);
	lx_revoke(1);
	TEST_ASSERT(lx.ended[0] == lx.lease[0]);
	TEST_ASSERT(lx.ended[0]->user == fx.a.buf);
	lx_expect_denied(lx.ended[0]->remote_addr, 1, lx.ended[0]->rkey);
}

TEST(lease_revoke, prepared_lease_can_be_revoked)
{
	struct rmem_lease_req req[3];
	uint16_t i;

	for (i = 0; i < 3; i++)
		req[i] = lx_req(i * FX_PAGE, FX_PAGE, WRITE);
	TEST_EQ(rmem_lease_prepare(lx.ctx, req, 3, lx.lease), 3);
	TEST_OK(rmem_lease_revoke(lx.ctx, &lx.lease[1], 1));
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 1);
	TEST_ASSERT(lx.ended[0] == lx.lease[1]);
	TEST_EQ(rmem_lease_post(lx.ctx, NULL, 0), 0);
	lx_expect_granted(lx.lease[0]);
	lx_expect_granted(lx.lease[2]);
	TEST_EQ(lx_stats().local_invs, 0);
	lx_expect_denied(lx.ended[0]->remote_addr, 8, lx.ended[0]->rkey);
}

/* Revoked twice, or after its end: no further effect. */
TEST(lease_revoke, second_revoke_has_no_effect)
{
	struct rmem_lease *twice[2];

	lx_grant(2, WRITE);
	twice[0] = twice[1] = lx.lease[0];
	TEST_OK(rmem_lease_revoke(lx.ctx, twice, 2));
	lx_wait_state(lx.lease[0], RMEM_LEASE_ENDED);
	TEST_OK(rmem_lease_revoke(lx.ctx, twice, 1));
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 1);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 0);
	TEST_EQ(lx_stats().local_invs, 1);
	TEST_EQ(lx_stats().nb_leases, 1);
	lx_expect_granted(lx.lease[1]);
}

/* Revoked by one call: granted, granted until a deadline, prepared, and granted, in that order. */
TEST(lease_revoke, leases_of_all_kinds_are_revoked_at_once)
{
	struct rmem_lease_req req[4];
	uint32_t i, nb = 0;

	for (i = 0; i < RTE_DIM(req); i++)
		req[i] = lx_req(i * FX_PAGE, FX_PAGE, WRITE);
	req[1].deadline = UINT64_MAX;
	TEST_EQ(rmem_lease_grant(lx.ctx, req, 2, lx.lease), 2);
	TEST_EQ(rmem_lease_grant(lx.ctx, &req[3], 1, &lx.lease[3]), 1);
	TEST_EQ(rmem_lease_prepare(lx.ctx, &req[2], 1, &lx.lease[2]), 1);
	TEST_OK(rmem_lease_revoke(lx.ctx, lx.lease, RTE_DIM(req)));
	for (i = 0; i < RTE_DIM(req); i++)
		lx_wait_state(lx.lease[i], RMEM_LEASE_ENDED);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), RTE_DIM(req));
	TEST_EQ(lx_stats().local_invs, 3);
	TEST_EQ(lx_stats().revoked, 4);
	TEST_EQ(lx_stats().nb_leases, 0);
	for (i = 0; i < RTE_DIM(req); i++) {
		TEST_EQ(lx.lease[i]->end, RMEM_LEASE_END_REVOKED);
		nb += lx.ended[i] != lx.lease[2];
		lx_expect_denied(lx.lease[i]->remote_addr, 8, lx.lease[i]->rkey);
	}
	TEST_EQ(nb, 3);
}

TEST(lease_revoke, revoke_of_another_object_is_refused)
{
	struct rmem_lease copy, *lease[2];

	lx_grant(1, WRITE);
	lease[0] = lx.lease[0];
	lease[1] = NULL;
	TEST_ERR(rmem_lease_revoke(lx.ctx, lease, 2), EINVAL);
	copy = *lx.lease[0];
	lease[1] = &copy;
	TEST_ERR(rmem_lease_revoke(lx.ctx, lease, 2), EINVAL);
	lease[1] = (struct rmem_lease *)((uintptr_t)lx.lease[0] + 8);
	TEST_ERR(rmem_lease_revoke(lx.ctx, lease, 2), EINVAL);
	/* Nothing was revoked. */
	lx_expect_granted(lx.lease[0]);
	lx_revoke(1);
	TEST_ERR(rmem_lease_revoke(lx.ctx, lx.lease, 1), EINVAL);
}

TEST(lease_revoke, buffer_is_kept_until_its_key_is_released)
{
	struct rmem_wc wc[4];

	lx_granted(1);
	block_queue();
	TEST_OK(rmem_lease_revoke(lx.ctx, lx.lease, 1));
	TEST_EQ(rmem_lease_poll(lx.ctx, wc, RTE_DIM(wc)), 0);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, 1), 0);
	TEST_EQ(lx.lease[0]->state, RMEM_LEASE_REVOKING);
	/* A buffer reused now would contain this. */
	lx_expect_granted(lx.lease[0]);
	unblock_queue();
	lx_take(1, RMEM_LEASE_END_REVOKED);
}

TEST(lease_revoke, revocations_wait_for_free_entries_of_the_queue)
{
	const uint64_t full = lx_stats().queue_full;
	uint32_t i;

	lx_granted(4);
	for (i = 0; i < FX_DEPTH - 2; i++)
		block_queue();
	TEST_OK(rmem_lease_revoke(lx.ctx, lx.lease, 4));
	TEST_EQ(lx_stats().local_invs, 2);
	TEST_EQ(lx_stats().queue_full, full + 1);
	for (i = 0; i < FX_DEPTH - 2; i++)
		unblock_queue();
	/* Two of them are unsignaled: a completion of the application frees entries. */
	TEST_EQ(lx_stats().local_invs, 2);
}

/* The same, with entries freed by a signaled request of the application. */
TEST(lease_revoke, revocations_continue_when_entries_are_free)
{
	const struct rmem_sge from = fx_sge(fx.a.mr, FX_BUF_SIZE - 8, 8);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);
	struct rmem_wc wc[4];
	uint32_t i;

	lx_granted(4);
	for (i = 0; i < FX_DEPTH - 3; i++)
		block_queue();
	wr.flags = RMEM_SEND_SIGNALED;
	TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	TEST_OK(rmem_lease_revoke(lx.ctx, lx.lease, 4));
	TEST_EQ(lx_stats().local_invs, 2);
	for (i = 0; i < FX_DEPTH - 2; i++)
		unblock_queue();
	TEST_EQ(fx_poll(fx.a.cq, wc, 1), 1);
	TEST_EQ(rmem_lease_process_wcs(lx.ctx, wc, 1), 1);
	lx_take(4, RMEM_LEASE_END_REVOKED);
}

/*
 * rdma_rxe executes a binding at once, and once more when what was posted before it is sent again:
 * that fails, and the QP with it (6.1: nothing more is sent; 7.3: all is flushed).
 */
static void
skip_repeated_binding(void)
{
	test_skip("rdma_rxe repeats a binding after a request that it retransmits");
}

/* Keys that requests have opened on the device. */
static uint64_t
nb_opened(void)
{
	struct rmem_dev_stats stats;

	if (rmem_dev_stats_get(fx.a.dev, &stats) != 0)
		return 0;
	return stats.reg_mrs + stats.mw_binds + stats.umrs;
}

TEST(lease_revoke, grants_stop_at_a_full_queue)
{
	const uint64_t deadline = fx_deadline(), before = nb_opened();
	struct rmem_lease_req req[4];
	uint32_t i;

	if (fx_is_rxe()) {
		skip_repeated_binding();
		return;
	}
	for (i = 0; i < 4; i++)
		req[i] = lx_req(i * FX_PAGE, FX_PAGE, WRITE);
	for (i = 0; i < FX_DEPTH - 3; i++)
		block_queue();
	TEST_EQ(rmem_lease_grant(lx.ctx, req, 4, lx.lease), 3);
	TEST_ERR(rmem_lease_grant(lx.ctx, req, 4, &lx.lease[3]), ENOSPC);
	TEST_EQ(lx_stats().nb_leases, 3);
	for (i = 0; i < FX_DEPTH - 3; i++)
		unblock_queue();
	/* No signaled request follows them: they remain GRANTING. */
	while (fx_is_soft() && nb_opened() < before + 3)
		TEST_ASSERT(!fx_is_late(deadline));
	for (i = 0; i < 3; i++)
		lx_expect_write(lx.lease[i]);
}

TEST(lease_revoke, prepared_leases_stay_at_a_full_queue)
{
	const struct rmem_sge from = fx_sge(fx.a.mr, FX_BUF_SIZE - 8, 8);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);
	struct rmem_lease_req req[2];
	uint32_t i;

	if (fx_is_rxe()) {
		skip_repeated_binding();
		return;
	}
	req[0] = lx_req(0, FX_PAGE, WRITE);
	req[1] = lx_req(FX_PAGE, FX_PAGE, WRITE);
	for (i = 0; i < FX_DEPTH - 2; i++)
		block_queue();
	wr.flags = RMEM_SEND_SIGNALED;
	TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	TEST_EQ(rmem_lease_prepare(lx.ctx, req, 2, lx.lease), 2);
	TEST_ERR(rmem_lease_post(lx.ctx, &wr, 1), ENOSPC);
	TEST_EQ(lx.lease[0]->state, RMEM_LEASE_GRANTING);
	TEST_EQ(lx.lease[1]->state, RMEM_LEASE_PREPARED);
	TEST_ERR(rmem_lease_post(lx.ctx, &wr, 1), ENOSPC);
	for (i = 0; i < FX_DEPTH - 1; i++)
		unblock_queue();
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(rmem_lease_post(lx.ctx, &wr, 1), 1);
	/* The message after them notifies the peer. */
	unblock_queue();
	lx_expect_write(lx.lease[0]);
	lx_expect_write(lx.lease[1]);
}

TEST(lease_revoke, overdue_lease_is_revoked_by_the_poll)
{
	struct rmem_lease_req req = lx_req(0, FX_PAGE, WRITE);
	uint64_t hour = rte_get_tsc_hz() * 3600;

	req.deadline = rte_rdtsc() + hour;
	TEST_EQ(rmem_lease_grant(lx.ctx, &req, 1, &lx.lease[0]), 1);
	req.deadline = rte_rdtsc() + 1;
	TEST_EQ(rmem_lease_grant(lx.ctx, &req, 1, &lx.lease[1]), 1);
	req.deadline = rte_rdtsc() + 2 * hour;
	TEST_EQ(rmem_lease_grant(lx.ctx, &req, 1, &lx.lease[2]), 1);
	lx_take(1, RMEM_LEASE_END_EXPIRED);
	TEST_ASSERT(lx.ended[0] == lx.lease[1]);
	TEST_EQ(lx_stats().expired, 1);
	lx_expect_granted(lx.lease[0]);
	lx_expect_granted(lx.lease[2]);
	lx_expect_denied(lx.ended[0]->remote_addr, 8, lx.ended[0]->rkey);
}

/* Deadlines in no order, some leases revoked before theirs. */
TEST(lease_revoke, leases_expire_in_the_order_of_their_deadlines)
{
	static const uint8_t order[] = {5, 9, 1, 7, 3, 8, 2, 6, 4, 0};
	uint64_t base = rte_rdtsc() + rte_get_tsc_hz() / 1000;
	uint32_t i, j = 0;

	for (i = 0; i < RTE_DIM(order); i++) {
		struct rmem_lease_req req = lx_req(i * FX_PAGE, FX_PAGE, WRITE);

		req.deadline = base + order[i];
		TEST_EQ(rmem_lease_grant(lx.ctx, &req, 1, &lx.lease[order[i]]), 1);
	}
	TEST_OK(rmem_lease_revoke(lx.ctx, &lx.lease[0], 1));
	TEST_OK(rmem_lease_revoke(lx.ctx, &lx.lease[6], 1));
	lx_wait_state(lx.lease[9], RMEM_LEASE_ENDED);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), RTE_DIM(order));
	TEST_ASSERT(lx.ended[0] == lx.lease[0] && lx.ended[1] == lx.lease[6]);
	TEST_EQ(lx.ended[0]->end, RMEM_LEASE_END_REVOKED);
	for (i = 2; i < RTE_DIM(order); i++) {
		do
			j++;
		while (j == 6);
		TEST_ASSERT(lx.ended[i] == lx.lease[j]);
		TEST_EQ(lx.ended[i]->end, RMEM_LEASE_END_EXPIRED);
	}
}

TEST(lease_revoke, overdue_prepared_lease_revokes)
{
	struct rmem_lease_req req = lx_req(0, FX_PAGE, WRITE);

	req.deadline = 1;
	TEST_EQ(rmem_lease_prepare(lx.ctx, &req, 1, lx.lease), 1);
	lx_take(1, RMEM_LEASE_END_EXPIRED);
	TEST_EQ(rmem_lease_post(lx.ctx, NULL, 0), 0);
	TEST_EQ(lx_stats().granted, 0);
}

static void
send_with_inv(uint32_t rkey)
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 8),
			      to = fx_sge(fx.a.mr, FX_BUF_SIZE - 8, 8);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND_WITH_INV, &from, 1);

	wr.invalidate_rkey = rkey;
	TEST_EQ(fx_post_recv(fx.a.qp, 77, &to, 1), 1);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
}

/* Poll a's CQ for the receive of the invalidation: the application sees it too. */
static void
expect_peer_inv(uint32_t rkey)
{
	uint64_t deadline = fx_deadline();
	int n;

	do {
		n = rmem_lease_poll(lx.ctx, &fx.wc, 1);
		TEST_ASSERT(n >= 0 && !fx_is_late(deadline));
	} while (n == 0);
	TEST_EQ(fx.wc.wr_id, 77);
	TEST_ASSERT(fx.wc.flags & RMEM_WC_WITH_INV);
	TEST_EQ(fx.wc.invalidated_rkey, rkey);
}

TEST(lease_revoke, invalidation_by_the_peer_replaces_the_local_inv)
{
	uint32_t rkey;

	TEST_SKIP_IF(!fx_has_capa(fx.a.dev, RMEM_DEV_CAPA_SEND_WITH_INV), "no SEND_WITH_INV");
	lx_grant(2, WRITE);
	rkey = lx.lease[0]->rkey;
	lx_wait_granted(lx.lease[0]);
	send_with_inv(rkey);
	expect_peer_inv(rkey);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 1);
	TEST_ASSERT(lx.ended[0] == lx.lease[0]);
	TEST_EQ(lx.ended[0]->end, RMEM_LEASE_END_PEER_INV);
	TEST_EQ(lx_stats().peer_invs, 1);
	TEST_EQ(lx_stats().local_invs, 0);
	/* The key can be granted again. */
	lx_grant(1, WRITE);
	TEST_ASSERT(lx.lease[0] == lx.ended[0] && lx.lease[0]->rkey != rkey);
	lx_expect_granted(lx.lease[0]);
	lx_expect_granted(lx.lease[1]);
}

/* Keys were made and released until the table of rkeys was full, and was filled again. */
TEST(lease_revoke, invalidation_by_the_peer_is_known_after_many_keys)
{
	unsigned int i, round;

	TEST_SKIP_IF(!fx_has_capa(fx.a.dev, RMEM_DEV_CAPA_SEND_WITH_INV), "no SEND_WITH_INV");
	lx.conf.max_leases = 8;
	lx.conf.min_leases = 1;
	lx_remake();
	for (round = 1; round <= 20; round++) {
		lx_grant(8, WRITE);
		for (i = 0; i < 8; i++) {
			lx_wait_granted(lx.lease[i]);
			send_with_inv(lx.lease[i]->rkey);
			expect_peer_inv(lx.lease[i]->rkey);
		}
		TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 8);
		TEST_EQ(lx_stats().peer_invs, 8 * round);
		while (lx_stats().nb_keys != 1)
			TEST_ASSERT(rmem_lease_trim(lx.ctx) >= 0);
	}
}

/* Otherwise the application would poll the completion of a request that it has not posted. */
TEST(lease_revoke, context_waits_for_the_completion_of_a_grant)
{
	struct rmem_wc wc;

	TEST_SKIP_IF(!fx_has_capa(fx.a.dev, RMEM_DEV_CAPA_SEND_WITH_INV), "no SEND_WITH_INV");
	lx_grant(1, WRITE);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	wc = fx.wc;
	TEST_EQ(wc.wr_id >> 48, RMEM_LEASE_WR_ID);
	send_with_inv(lx.lease[0]->rkey);
	expect_peer_inv(lx.lease[0]->rkey);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 1);
	TEST_ERR(rmem_lease_ctx_destroy(lx.ctx), EBUSY);
	TEST_EQ(rmem_lease_process_wcs(lx.ctx, &wc, 1), 0);
	lx_destroy();
}

TEST(lease_revoke, invalidation_of_another_key_is_ignored)
{
	lx_grant(1, WRITE);
	fx.wc = (struct rmem_wc){.flags = RMEM_WC_WITH_INV, .opcode = RMEM_WC_RECV};
	fx.wc.invalidated_rkey = lx.lease[0]->rkey ^ 1;
	TEST_EQ(rmem_lease_process_wcs(lx.ctx, &fx.wc, 1), 1);
	fx.wc.invalidated_rkey = fx.a.mr->rkey;
	TEST_EQ(rmem_lease_process_wcs(lx.ctx, &fx.wc, 1), 1);
	TEST_EQ(lx_stats().peer_invs, 0);
	lx_expect_granted(lx.lease[0]);
}

/* Both sides at once: the queue fails, as verbs have it, and the lease ends once. */
TEST(lease_revoke, lease_invalidated_by_both_sides_ends_once)
{
	TEST_SKIP_IF(!fx_has_capa(fx.a.dev, RMEM_DEV_CAPA_SEND_WITH_INV), "no SEND_WITH_INV");
	lx_granted(1);
	send_with_inv(lx.lease[0]->rkey);
	TEST_OK(rmem_lease_revoke(lx.ctx, lx.lease, 1));
	expect_peer_inv(lx.lease[0]->rkey);
	lx_take(1, RMEM_LEASE_END_PEER_INV);
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_ERR);
	lx_recover();
	TEST_EQ(lx_stats().keys_replaced, 0);
	lx_grant(1, WRITE);
	lx_expect_granted(lx.lease[0]);
}

LEASE_SUITES(lease_revoke);
