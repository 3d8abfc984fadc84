/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Leases on a QP that takes its receives from an SRQ: the invalidations of the peer complete shared
 * receives, also when other QPs are destroyed and the SRQ is resized.
 */

#include <fcntl.h>

#include "lease.h"

#define WRITE RMEM_ACCESS_REMOTE_WRITE

/* The second QP of a is connected to the second of b. */
static struct {
	struct rmem_async_channel *channel; /* of the SRQ */
	struct rmem_srq *srq;
	struct rmem_qp *other;
	struct rmem_qp *other_peer;
} ls;

static struct rmem_qp *
make_qp(struct fx_side *side, struct rmem_srq *srq)
{
	struct rmem_qp_conf conf = fx_qp_conf(side->cq, FX_DEPTH);

	conf.srq = srq;
	return fx_qp_by(side->pd, &conf);
}

/* Replace the QP of the leases by one on an SRQ. */
static void
use_srq(uint32_t max_wr)
{
	struct rmem_srq_conf conf = {.max_wr = max_wr, .max_sge = 1};

	if (!fx_has_capa(fx.a.dev, RMEM_DEV_CAPA_SRQ | RMEM_DEV_CAPA_SEND_WITH_INV))
		test_skip("no SRQs, or no SEND_WITH_INV");
	ls.channel = fx_async_channel(fx.a.dev);
	TEST_OK(fcntl(ls.channel->fd, F_SETFL, O_NONBLOCK));
	conf.async_channel = ls.channel;
	TEST_OK(rmem_srq_create(fx.a.pd, &conf, &ls.srq));
	fx_track(ls.srq);
	lx_destroy();
	TEST_OK(fx_release(fx.a.qp));
	TEST_OK(rmem_qp_reset(fx.b.qp));
	fx.a.qp = make_qp(&fx.a, ls.srq);
	ls.other = make_qp(&fx.a, ls.srq);
	ls.other_peer = make_qp(&fx.b, NULL);
	TEST_OK(fx_connect_pair(fx.a.qp, fx.b.qp));
	TEST_OK(fx_connect_pair(ls.other, ls.other_peer));
	lx_remake();
}

static void
post(uint64_t wr_id)
{
	const struct rmem_sge to = fx_sge(fx.a.mr, FX_BUF_SIZE - 8, 8);
	const struct rmem_recv_wr wr = {.wr_id = wr_id, .sg_list = &to, .num_sge = 1};

	TEST_EQ(rmem_srq_post_recv(ls.srq, &wr, 1), 1);
}

/* The next receive of a has that wr_id, and was taken by that QP. */
static void
expect_recv(const struct rmem_qp *qp, uint64_t wr_id)
{
	uint64_t deadline = fx_deadline();
	int n;

	do {
		n = rmem_lease_poll(lx.ctx, &fx.wc, 1);
		TEST_ASSERT(n >= 0 && !fx_is_late(deadline));
	} while (n == 0);
	TEST_EQ(fx.wc.wr_id, wr_id);
	TEST_EQ(fx.wc.qp_num, qp->qp_num);
}

/* b invalidates a lease; its receive has that wr_id, and the lease ends. */
static void
invalidate(const struct rmem_lease *lease, uint64_t wr_id)
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND_WITH_INV, &from, 1);
	uint32_t rkey = lease->rkey;

	wr.invalidate_rkey = rkey;
	lx_wait_granted(lease);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	expect_recv(fx.a.qp, wr_id);
	TEST_EQ(fx.wc.invalidated_rkey, rkey);
	lx_take(1, RMEM_LEASE_END_PEER_INV);
	TEST_ASSERT(lx.ended[0] == lease);
}

TEST(lease_srq, peer_ends_leases_with_receives_of_the_srq)
{
	uint32_t i;

	use_srq(8);
	lx_grant(4, WRITE);
	for (i = 0; i < 4; i++)
		post(i);
	for (i = 0; i < 4; i++)
		invalidate(lx.lease[3 - i], i);
	TEST_EQ(lx_stats().peer_invs, 4);
	TEST_EQ(lx_stats().local_invs, 0);
	lx_grant(1, WRITE);
	lx_expect_granted(lx.lease[0]);
}

/* The other QP takes the first receive; its failure and its end leave the others. */
TEST(lease_srq, reset_and_destroy_of_another_qp_leave_lease_and_receives)
{
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);

	use_srq(8);
	lx_grant(2, WRITE);
	lx_wait_granted(lx.lease[1]);
	post(1);
	post(2);
	post(3);
	TEST_STATUS(fx_send(ls.other_peer, &wr), RMEM_WC_SUCCESS);
	expect_recv(ls.other, 1);
	TEST_OK(rmem_qp_set_error(ls.other));
	TEST_OK(rmem_qp_reset(ls.other));
	invalidate(lx.lease[0], 2);
	TEST_OK(fx_release(ls.other));
	invalidate(lx.lease[1], 3);
}

TEST(lease_srq, reset_of_the_qp_ends_leases_and_leaves_receives)
{
	use_srq(8);
	lx_grant(1, WRITE);
	post(1);
	lx_recover();
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 1);
	lx_grant(1, WRITE);
	invalidate(lx.lease[0], 1);
}

TEST(lease_srq, srq_is_resized_between_grant_and_invalidation)
{
	const struct rmem_srq_attr more = {.max_wr = 32}, less = {.max_wr = 2};

	use_srq(2);
	TEST_SKIP_IF(!fx_has_capa(fx.a.dev, RMEM_DEV_CAPA_SRQ_RESIZE), "no resize of SRQs");
	lx_grant(3, WRITE);
	post(1);
	post(2);
	TEST_OK(rmem_srq_modify(ls.srq, &more, RMEM_SRQ_MAX_WR));
	post(3);
	invalidate(lx.lease[0], 1);
	TEST_OK(rmem_srq_modify(ls.srq, &less, RMEM_SRQ_MAX_WR));
	invalidate(lx.lease[1], 2);
	invalidate(lx.lease[2], 3);
}

TEST(lease_srq, invalidations_of_the_peer_reach_the_limit)
{
	const struct rmem_srq_attr attr = {.srq_limit = 2};
	uint64_t deadline = fx_deadline();
	struct rmem_async_event event;
	int ret;

	use_srq(8);
	lx_grant(2, WRITE);
	post(1);
	post(2);
	post(3);
	TEST_OK(rmem_srq_modify(ls.srq, &attr, RMEM_SRQ_LIMIT));
	invalidate(lx.lease[0], 1);
	TEST_EQ(rmem_async_channel_get_event(ls.channel, &event), -EAGAIN);
	invalidate(lx.lease[1], 2);
	do {
		ret = rmem_async_channel_get_event(ls.channel, &event);
	} while (ret == -EAGAIN && !fx_is_late(deadline));
	TEST_OK(ret);
	TEST_EQ(event.type, RMEM_ASYNC_SRQ_LIMIT_REACHED);
	TEST_ASSERT(event.srq == ls.srq);
	TEST_OK(rmem_async_event_ack(&event));
}

LEASE_SUITES(lease_srq);
