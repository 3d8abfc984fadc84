/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A send queue that accepts part of a burst: the rest is posted later, and all leases end. */

#include "lease_stub.h"

/* Of a burst cut short the last is unsignaled: it ends by what is posted later, and no sooner. */
TEST(lease_short, rest_of_a_short_post_is_posted_later)
{
	leaser_granted(4);
	TEST_EQ(leaser.posted[3].flags, RMEM_SEND_SIGNALED);
	leaser.room = 2;
	TEST_OK(rmem_lease_revoke(lx.ctx, lx.lease, 4));
	TEST_EQ(leaser.nb_posted, 6);
	TEST_EQ(leaser.posted[5].flags, 0);
	TEST_EQ(leaser_complete(3), 0);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 0);
	leaser.room = 2;
	TEST_EQ(rmem_lease_process_wcs(lx.ctx, NULL, 0), 0);
	TEST_EQ(leaser.nb_posted, 8);
	TEST_EQ(leaser.posted[6].flags, 0);
	TEST_EQ(leaser.posted[7].flags, RMEM_SEND_SIGNALED);
	TEST_EQ(leaser.posted[7].invalidate_rkey, lx.lease[3]->rkey);
	TEST_EQ(leaser_complete(7), 0);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 4);
}

/* A CQ of several QPs: a wr_id of the application's may equal that of a lease. */
TEST(lease_short, completions_of_another_qp_are_left_alone)
{
	struct rmem_wc wc[2] = {{.status = RMEM_WC_SUCCESS, .qp_num = 18}};

	leaser_granted(2);
	wc[0].wr_id = leaser.posted[1].wr_id;
	wc[1] = wc[0];
	wc[1].status = RMEM_WC_WR_FLUSH_ERR;
	TEST_EQ(rmem_lease_process_wcs(lx.ctx, wc, 2), 2);
	TEST_EQ(wc[0].status, RMEM_WC_SUCCESS);
	TEST_EQ(wc[1].status, RMEM_WC_WR_FLUSH_ERR);
	TEST_EQ(lx.lease[0]->state, RMEM_LEASE_GRANTING);
	TEST_EQ(lx.lease[1]->state, RMEM_LEASE_GRANTING);
	TEST_EQ(leaser_complete(1), 0);
	TEST_EQ(lx.lease[1]->state, RMEM_LEASE_GRANTED);
}

/* A LOCAL_INV that waits for an entry is not needed after an invalidation of the peer. */
TEST(lease_short, invalidation_by_the_peer_replaces_a_waiting_local_inv)
{
	leaser_granted(2);
	TEST_EQ(leaser_complete(1), 0);
	leaser.room = 0;
	TEST_OK(rmem_lease_revoke(lx.ctx, lx.lease, 2));
	TEST_EQ(leaser_peer_inv(lx.lease[0]->rkey), 1);
	leaser.room = 8;
	TEST_EQ(rmem_lease_process_wcs(lx.ctx, NULL, 0), 0);
	TEST_EQ(leaser.nb_posted, 3);
	TEST_EQ(leaser.posted[2].invalidate_rkey, lx.lease[1]->rkey);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 1);
	TEST_ASSERT(lx.ended[0] == lx.lease[0]);
	TEST_EQ(lx.ended[0]->end, RMEM_LEASE_END_PEER_INV);
}

TEST(lease_short, unsignaled_requests_do_not_fill_the_queue)
{
	uint16_t i;

	leaser.depth = leaser.room = 8;
	TEST_OK(leaser_make());
	TEST_EQ(leaser_grant(LX_MAX), 8);
	for (i = 0; i < 8; i++)
		TEST_EQ(leaser.posted[i].flags, i % 4 == 3 ? RMEM_SEND_SIGNALED : 0);
	TEST_EQ(leaser_complete(7), 0);
	leaser.room = 3;
	TEST_OK(rmem_lease_revoke(lx.ctx, lx.lease, 8));
	leaser.room = 8;
	TEST_EQ(rmem_lease_process_wcs(lx.ctx, NULL, 0), 0);
	TEST_EQ(leaser.nb_posted, 16);
	for (i = 8; i < 16; i++)
		TEST_EQ(leaser.posted[i].flags, i % 4 == 3 ? RMEM_SEND_SIGNALED : 0);
	TEST_EQ(leaser_complete(15), 0);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 8);
}

/* Of three leases, two LOCAL_INVs are posted unsignaled, and the peer invalidates the last one. */
static void
revoke_in_part(void)
{
	TEST_EQ(leaser_complete(2), 0);
	leaser.room = 2;
	TEST_OK(rmem_lease_revoke(lx.ctx, lx.lease, 3));
	TEST_EQ(leaser.nb_posted, 5);
	TEST_EQ(leaser_peer_inv(lx.lease[2]->rkey), 1);
	TEST_EQ(leaser.nb_posted, 5);
}

static void
leave_unsignaled(void)
{
	leaser_granted(3);
	revoke_in_part();
}

static void
expect_all_end(uint32_t old_rkey, uint16_t open, uint16_t inv)
{
	TEST_EQ(leaser.posted[open].opcode, RMEM_WR_BIND_MW);
	TEST_ASSERT(lx.lease[2]->rkey != old_rkey);
	TEST_EQ(leaser.posted[open].bind_mw.key_tag, lx.lease[2]->rkey & 0xff);
	TEST_EQ(leaser.posted[inv].opcode, RMEM_WR_LOCAL_INV);
	TEST_EQ(leaser.posted[inv].flags, RMEM_SEND_SIGNALED);
	TEST_EQ(leaser.posted[inv].invalidate_rkey, lx.lease[2]->rkey);
	TEST_EQ(leaser_complete(inv), 0);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 3);
	TEST_EQ(lx.ended[0]->end, RMEM_LEASE_END_REVOKED);
	TEST_EQ(lx.ended[2]->end, RMEM_LEASE_END_PEER_INV);
}

/* Something signaled must follow, and no key is invalidated twice. */
TEST(lease_short, unsignaled_revocations_end_with_a_key_bound_again)
{
	uint32_t rkey;

	leave_unsignaled();
	rkey = lx.lease[2]->rkey;
	leaser.room = 8;
	TEST_EQ(rmem_lease_process_wcs(lx.ctx, NULL, 0), 0);
	TEST_EQ(leaser.nb_posted, 7);
	expect_all_end(rkey, 5, 6);
}

TEST(lease_short, key_is_bound_again_one_request_at_a_time)
{
	uint32_t rkey;

	leave_unsignaled();
	rkey = lx.lease[2]->rkey;
	leaser.room = 1;
	TEST_EQ(rmem_lease_process_wcs(lx.ctx, NULL, 0), 0);
	TEST_EQ(leaser.nb_posted, 6);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 0);
	leaser.room = 1;
	TEST_EQ(rmem_lease_process_wcs(lx.ctx, NULL, 0), 0);
	TEST_EQ(leaser.nb_posted, 7);
	expect_all_end(rkey, 5, 6);
}

/* The request fails, and its QP; those before have succeeded. */
TEST(lease_short, key_bound_again_is_invalidated_although_the_peer_guessed_it)
{
	leave_unsignaled();
	leaser.room = 1;
	TEST_EQ(rmem_lease_process_wcs(lx.ctx, NULL, 0), 0);
	TEST_EQ(leaser.nb_posted, 6);
	TEST_EQ(leaser_peer_inv(lx.lease[2]->rkey), 1);
	leaser.room = 8;
	TEST_EQ(rmem_lease_process_wcs(lx.ctx, NULL, 0), 0);
	TEST_EQ(leaser.nb_posted, 7);
	TEST_EQ(leaser.posted[6].opcode, RMEM_WR_LOCAL_INV);
	TEST_EQ(leaser.posted[6].flags, RMEM_SEND_SIGNALED);
	TEST_EQ(leaser_complete_as(6, RMEM_WC_MW_BIND_ERR), 0);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 3);
	TEST_EQ(lx.ended[1]->end, RMEM_LEASE_END_REVOKED);
	TEST_EQ(lx.ended[2]->end, RMEM_LEASE_END_PEER_INV);
}

/* Use a key, which is granted first each time. */
static void
use_key(uint32_t nb)
{
	uint32_t i;

	for (i = 0; i < nb; i++) {
		leaser.nb_posted = 0;
		leaser.room = 64;
		TEST_EQ(leaser_grant(1), 1);
		TEST_OK(rmem_lease_revoke(lx.ctx, lx.lease, 1));
		TEST_EQ(leaser_complete(1), 0);
		TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, 1), 1);
	}
	leaser.nb_posted = 0;
	leaser.room = 64;
}

/* Then grant it and two others, whose revocations are posted in part. */
static void
expect_end_after(uint32_t nb_uses)
{
	struct rmem_lease *last;

	TEST_OK(leaser_make());
	use_key(nb_uses);
	TEST_EQ(leaser_grant(3), 3);
	last = lx.lease[0];
	lx.lease[0] = lx.lease[2];
	lx.lease[2] = last;
	revoke_in_part();
	leaser.room = 8;
	TEST_EQ(rmem_lease_process_wcs(lx.ctx, NULL, 0), 0);
	TEST_EQ(leaser.nb_posted, 7);
	TEST_EQ(leaser.posted[6].flags, RMEM_SEND_SIGNALED);
	TEST_EQ(leaser_complete(6), 0);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 3);
	TEST_OK(rmem_lease_ctx_destroy(lx.ctx));
	lx.ctx = NULL;
}

/* A key always has a tag to be bound again with, also for its last lease before the quarantine. */
TEST(lease_short, unsignaled_revocations_end_although_a_key_was_used_often)
{
	uint32_t i;

	lx.conf.quarantine_us = 3600u * 1000000;
	for (i = 253; i < 258; i++)
		expect_end_after(i);
}

TEST_SUITE(lease_short, leaser_setup, leaser_teardown);
