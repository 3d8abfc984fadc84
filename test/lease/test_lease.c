/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Leases are valid for one buffer and the requested rights, until they end; with each backend. */

#include <string.h>

#include "lease.h"

#define WRITE RMEM_ACCESS_REMOTE_WRITE
#define READ  RMEM_ACCESS_REMOTE_READ

TEST(lease, lease_grants_access_to_its_buffer)
{
	lx_grant(1, WRITE);
	TEST_ASSERT(lx.lease[0]->addr == fx.a.buf && lx.lease[0]->user == fx.a.buf);
	TEST_EQ(lx.lease[0]->length, FX_PAGE);
	TEST_EQ(lx.lease[0]->access, WRITE);
	TEST_EQ(lx.lease[0]->end, RMEM_LEASE_END_NONE);
	lx_wait_state(lx.lease[0], RMEM_LEASE_GRANTED);
	lx_expect_granted(lx.lease[0]);
}

/* No page and no cache line is a border. */
TEST(lease, lease_grants_no_byte_before_its_buffer)
{
	const struct rmem_lease_req req = lx_req(1001, 777, WRITE);

	lx_need_bounds();
	TEST_EQ(rmem_lease_grant(lx.ctx, &req, 1, lx.lease), 1);
	lx_expect_granted(lx.lease[0]);
	lx_expect_denied(lx.lease[0]->remote_addr - 1, 777, lx.lease[0]->rkey);
}

TEST(lease, lease_covers_no_byte_after_its_buffer)
{
	const struct rmem_lease_req req = lx_req(1001, 777, WRITE);

	lx_need_bounds();
	TEST_EQ(rmem_lease_grant(lx.ctx, &req, 1, lx.lease), 1);
	lx_expect_denied(lx.lease[0]->remote_addr + 776, 2, lx.lease[0]->rkey);
}

TEST(lease, lease_of_any_length_is_exact)
{
	static const uint32_t length[] = {1, 4095, 4097, 8193, 40000, 65536 - 13};
	uint32_t i;

	for (i = 0; i < RTE_DIM(length); i++) {
		const struct rmem_lease_req req = lx_req(13, length[i], WRITE);

		memset(fx.a.buf, 0, FX_BUF_SIZE);
		TEST_EQ(rmem_lease_grant(lx.ctx, &req, 1, lx.lease), 1);
		lx_expect_granted(lx.lease[0]);
		TEST_ASSERT(fx_is_zero(fx.a.buf, 13));
		TEST_ASSERT(fx_is_zero(fx.a.buf + 13 + length[i], FX_BUF_SIZE - 13 - length[i]));
		lx_expect_outside(lx.lease[0]->remote_addr, length[i] + 1, lx.lease[0]->rkey);
		lx_take(1, RMEM_LEASE_END_FAILED);
	}
}

TEST(lease, lease_to_read_refuses_a_write)
{
	lx_grant(1, READ);
	lx_wait_granted(lx.lease[0]);
	lx_expect_denied(lx.lease[0]->remote_addr, 8, lx.lease[0]->rkey);
}

static int
peer_read(const struct rmem_lease *lease, uint32_t length)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, length);
	struct rmem_send_wr wr = fx_rdma(RMEM_WR_RDMA_READ, &sge, lease->remote_addr, lease->rkey);

	return fx_send(fx.b.qp, &wr);
}

TEST(lease, lease_to_read_permits_a_read)
{
	fx_fill(fx.a.buf, FX_PAGE, 5);
	lx_grant(1, READ);
	lx_wait_granted(lx.lease[0]);
	TEST_STATUS(peer_read(lx.lease[0], FX_PAGE), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf, fx.a.buf, FX_PAGE);
}

TEST(lease, lease_to_write_refuses_a_read)
{
	lx_grant(1, WRITE);
	lx_wait_granted(lx.lease[0]);
	TEST_STATUS(peer_read(lx.lease[0], 8), RMEM_WC_REM_ACCESS_ERR);
}

TEST(lease, lease_of_atomics_permits_only_atomics)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr;
	uint64_t value = 40;

	TEST_SKIP_IF(!fx_has_capa(fx.a.dev, RMEM_DEV_CAPA_ATOMIC), "no atomics");
	memcpy(fx.a.buf, &value, sizeof(value));
	lx_grant(1, RMEM_ACCESS_REMOTE_ATOMIC);
	lx_wait_granted(lx.lease[0]);
	wr = fx_atomic(RMEM_WR_ATOMIC_FETCH_AND_ADD, &sge, lx.lease[0]->remote_addr,
			lx.lease[0]->rkey, 2);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	memcpy(&value, fx.a.buf, sizeof(value));
	TEST_EQ(value, 42);
	lx_expect_denied(lx.lease[0]->remote_addr, 8, lx.lease[0]->rkey);
}

TEST(lease, each_lease_of_a_burst_has_its_own_key)
{
	uint16_t i, j;

	lx_grant(LX_MAX, WRITE);
	for (i = 0; i < LX_MAX; i++) {
		for (j = 0; j < i; j++) {
			TEST_ASSERT(lx.lease[i]->rkey != lx.lease[j]->rkey);
			TEST_ASSERT(lx.lease[i]->id != lx.lease[j]->id);
		}
		lx_expect_granted(lx.lease[i]);
	}
	/* The rkey of one grants no access to the buffer of another. */
	lx_expect_outside(lx.lease[1]->remote_addr, 8, lx.lease[0]->rkey);
}

TEST(lease, burst_takes_one_completion)
{
	struct rmem_wc wc[4];

	lx_granted(LX_MAX);
	TEST_EQ(lx.lease[0]->state, RMEM_LEASE_GRANTED);
	TEST_OK(rmem_lease_revoke(lx.ctx, lx.lease, LX_MAX));
	TEST_EQ(fx_poll(fx.a.cq, wc, 1), 1);
	TEST_EQ(wc[0].opcode, RMEM_WC_LOCAL_INV);
	TEST_EQ(rmem_poll_cq(fx.a.cq, &wc[1], 3), 0);
	TEST_EQ(rmem_lease_process_wcs(lx.ctx, wc, 1), 0);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), LX_MAX);
	TEST_EQ(lx_stats().local_invs, LX_MAX);
	TEST_EQ(lx_stats().granted, LX_MAX);
}

/* Like frwr: the grant and the message to the peer are one post. */
TEST(lease, prepared_lease_is_posted_with_its_message)
{
	const struct rmem_lease_req req = lx_req(0, FX_PAGE, WRITE);
	struct rmem_sge to = fx_sge(fx.b.mr, 0, 64), from = {0};
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);
	uint64_t deadline = fx_deadline();
	uint32_t rkey;
	int nb;

	TEST_OK(fx_post_recv(fx.b.qp, 1, &to, 1) == 1 ? 0 : -EIO);
	TEST_EQ(rmem_lease_prepare(lx.ctx, &req, 1, lx.lease), 1);
	TEST_EQ(lx.lease[0]->state, RMEM_LEASE_PREPARED);
	rkey = lx.lease[0]->rkey;
	memcpy(fx.a.buf + FX_PAGE, &rkey, sizeof(rkey));
	from = fx_sge(fx.a.mr, FX_PAGE, sizeof(rkey));
	wr.flags = RMEM_SEND_SIGNALED;
	TEST_EQ(rmem_lease_post(lx.ctx, &wr, 1), 1);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf, &rkey, sizeof(rkey));
	/* Valid, although no completion was polled. */
	fx_fill(fx.b.buf, 64, 1);
	TEST_STATUS(lx_write(lx.lease[0], 0, 64), RMEM_WC_SUCCESS);
	TEST_MEM(lx.lease[0]->addr, fx.b.buf, 64);
	/* The SEND's completion is the application's, and is returned by the same poll. */
	TEST_EQ(rmem_lease_poll(lx.ctx, &fx.wc, 1), 0);
	while ((nb = rmem_lease_poll(lx.ctx, &fx.wc, 1)) == 0)
		TEST_ASSERT(!fx_is_late(deadline));
	TEST_EQ(nb, 1);
	TEST_EQ(fx.wc.wr_id, wr.wr_id);
	TEST_EQ(lx.lease[0]->state, RMEM_LEASE_GRANTED);
}

TEST(lease, prepared_lease_grants_no_access_until_posted)
{
	const struct rmem_lease_req req = lx_req(0, FX_PAGE, WRITE);

	TEST_EQ(rmem_lease_prepare(lx.ctx, &req, 1, lx.lease), 1);
	TEST_ERR(rmem_lease_grant(lx.ctx, &req, 1, &lx.lease[1]), EBUSY);
	lx_expect_denied(lx.lease[0]->remote_addr, 8, lx.lease[0]->rkey);
}

TEST(lease, other_completions_are_returned_in_order)
{
	const struct rmem_sge from = fx_sge(fx.a.mr, 0, 8);
	struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &from, &fx.b);
	struct rmem_wc wc[8];
	uint16_t i;

	wr.flags = RMEM_SEND_SIGNALED;
	for (i = 0; i < 3; i++) {
		wr.wr_id = 100 + i;
		lx_grant(2, WRITE);
		TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	}
	TEST_EQ(fx_poll(fx.a.cq, wc, 6), 6);
	TEST_EQ(rmem_lease_process_wcs(lx.ctx, wc, 6), 3);
	for (i = 0; i < 3; i++)
		TEST_EQ(wc[i].wr_id, 100 + i);
	TEST_EQ(lx.lease[1]->state, RMEM_LEASE_GRANTED);
}

TEST(lease, lease_is_found_by_its_number)
{
	uint64_t id;

	lx_grant(2, WRITE);
	id = lx.lease[0]->id;
	TEST_ASSERT(rmem_lease_lookup(lx.ctx, id) == lx.lease[0]);
	TEST_ASSERT(rmem_lease_lookup(lx.ctx, lx.lease[1]->id) == lx.lease[1]);
	TEST_ASSERT(rmem_lease_lookup(lx.ctx, id + 77 * (UINT64_C(1) << 24)) == NULL);
	TEST_ASSERT(rmem_lease_lookup(lx.ctx, LX_MAX) == NULL);
	TEST_ASSERT(rmem_lease_lookup(NULL, id) == NULL);
	lx_revoke(1);
	TEST_ASSERT(rmem_lease_lookup(lx.ctx, id) == NULL);
	/* The same key again is another lease. */
	lx_grant(1, WRITE);
	TEST_ASSERT(rmem_lease_lookup(lx.ctx, id) == NULL);
}

TEST(lease, statistics_count_all_events)
{
	struct rmem_lease_stats stats;

	lx_grant(5, WRITE);
	lx_revoke(3);
	stats = lx_stats();
	TEST_EQ(stats.granted, 5);
	TEST_EQ(stats.revoked, 3);
	TEST_EQ(stats.nb_leases, 2);
	TEST_EQ(stats.peak_leases, 5);
	TEST_EQ(stats.nb_keys, stats.nb_free + 2);
	TEST_EQ(stats.peak_keys, stats.nb_keys);
	TEST_EQ(stats.keys_allocated, stats.nb_keys);
	TEST_EQ(stats.backend, lx.conf.backend);
}

LEASE_SUITES(lease);
