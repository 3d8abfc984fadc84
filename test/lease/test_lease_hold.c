/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A lease holds the MR of its buffer from the grant until it is reclaimed; with each backend. */

#include <string.h>

#include <rmem_mbuf.h>
#include <rmem_pool.h>

#include "lease.h"

#define WRITE  RMEM_ACCESS_REMOTE_WRITE
#define NB_MRS LX_MAX /* more than a context looks up without a search */

static int
change_memory(struct rmem_mr *mr)
{
	return rmem_mr_rereg(
			mr, RMEM_REREG_CHANGE_TRANSLATION, NULL, fx.b.buf, FX_BUF_SIZE, 0, NULL);
}

static void
expect_held(struct rmem_mr *mr)
{
	TEST_ERR(change_memory(mr), EBUSY);
	TEST_ERR(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, 0, NULL), EBUSY);
	TEST_ERR(rmem_mr_dereg(mr), EBUSY);
}

/* The peer would write to memory that the application has freed. */
TEST(lease_hold, leased_memory_cannot_be_exchanged)
{
	lx_grant(2, WRITE);
	expect_held(lx.mr);
	lx_expect_granted(lx.lease[0]);
	lx_revoke(1);
	expect_held(lx.mr);
	TEST_OK(rmem_lease_revoke(lx.ctx, &lx.lease[1], 1));
	lx_wait_state(lx.lease[1], RMEM_LEASE_ENDED);
	expect_held(lx.mr);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, 1), 1);
	TEST_OK(change_memory(lx.mr));
	TEST_EQ(lx.mr->obj.refs, 0);
}

TEST(lease_hold, prepared_lease_holds_its_mr)
{
	const struct rmem_lease_req req = lx_req(0, 8, WRITE);

	TEST_EQ(rmem_lease_prepare(lx.ctx, &req, 1, lx.lease), 1);
	expect_held(lx.mr);
	lx_revoke(1);
	TEST_RUN(change_memory(lx.mr));
}

TEST(lease_hold, lost_lease_holds_its_mr)
{
	lx_grant(1, WRITE);
	TEST_OK(rmem_qp_set_error(fx.a.qp));
	TEST_OK(rmem_lease_revoke(lx.ctx, lx.lease, 1));
	lx_wait_state(lx.lease[0], RMEM_LEASE_LOST);
	expect_held(lx.mr);
	lx_recover();
	expect_held(lx.mr);
	lx_take(1, RMEM_LEASE_END_REVOKED);
	TEST_RUN(change_memory(lx.mr));
}

/* Neither one that was refused, nor one that could not be posted. */
TEST(lease_hold, failed_grant_holds_no_mr)
{
	struct rmem_lease_req req[2] = {lx_req(0, 8, WRITE), lx_req(0, 0, WRITE)};

	TEST_ERR(rmem_lease_grant(lx.ctx, &req[1], 1, lx.lease), EINVAL);
	TEST_EQ(lx.mr->obj.refs, 0);
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_ERR(rmem_lease_grant(lx.ctx, req, 1, lx.lease), EBUSY);
	TEST_EQ(lx.mr->obj.refs, 0);
	TEST_RUN(change_memory(lx.mr));
}

/* Any order of more MRs than a context remembers, and each is held as long as one lease of it. */
TEST(lease_hold, each_of_many_mrs_is_held)
{
	struct rmem_mr *mrs[NB_MRS];
	struct rmem_lease_req req;
	uint32_t i, round;

	for (i = 0; i < NB_MRS; i++) {
		mrs[i] = fx_mr(fx.a.pd, fx.a.buf, FX_BUF_SIZE, FX_ACCESS | RMEM_ACCESS_MW_BIND);
	}
	for (round = 0; round < 20; round++) {
		for (i = 0; i < NB_MRS; i++) {
			req = lx_req(0, 8, WRITE);
			req.mr = mrs[i * (round + 1) % NB_MRS];
			TEST_EQ(rmem_lease_grant(lx.ctx, &req, 1, &lx.lease[i]), 1);
			TEST_ASSERT(req.mr->obj.refs > 0);
		}
		for (i = 0; i < NB_MRS; i++) {
			TEST_OK(rmem_lease_revoke(lx.ctx, &lx.lease[i * 7 % NB_MRS], 1));
			lx_take(1, RMEM_LEASE_END_REVOKED);
		}
		for (i = 0; i < NB_MRS; i++)
			TEST_EQ(mrs[i]->obj.refs, 0);
	}
}

/* Of a burst, and reclaimed at once: neighbours of one MR, and of different ones. */
TEST(lease_hold, burst_holds_each_of_its_mrs)
{
	static const uint8_t of[] = {0, 0, 1, 0, 2, 2, 1};
	struct rmem_lease_req req[RTE_DIM(of)];
	struct rmem_mr *mrs[3];
	uint32_t i;

	for (i = 0; i < RTE_DIM(mrs); i++)
		mrs[i] = fx_mr(fx.a.pd, fx.a.buf, FX_BUF_SIZE, FX_ACCESS | RMEM_ACCESS_MW_BIND);
	for (i = 0; i < RTE_DIM(of); i++) {
		req[i] = lx_req(0, 8, WRITE);
		req[i].mr = mrs[of[i]];
	}
	TEST_EQ(rmem_lease_grant(lx.ctx, req, RTE_DIM(of), lx.lease), RTE_DIM(of));
	for (i = 0; i < RTE_DIM(mrs); i++)
		TEST_ERR(rmem_mr_dereg(mrs[i]), EBUSY);
	TEST_OK(rmem_lease_revoke(lx.ctx, lx.lease, RTE_DIM(of)));
	lx_wait_state(lx.lease[RTE_DIM(of) - 1], RMEM_LEASE_ENDED);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, 5), 5);
	TEST_EQ(mrs[0]->obj.refs, 0);
	TEST_ASSERT(mrs[1]->obj.refs > 0 && mrs[2]->obj.refs > 0);
	TEST_EQ(rmem_lease_reclaim(lx.ctx, lx.ended, LX_MAX), 2);
	TEST_ASSERT(mrs[1]->obj.refs == 0 && mrs[2]->obj.refs == 0);
}

/* With other holders of its memory: a sharer, the lookups of external buffers. */
TEST(lease_hold, leased_mr_may_be_held_by_others)
{
	struct rmem_lease_req req = lx_req(0, 8, WRITE);
	struct rmem_mr *shared;

	TEST_SKIP_IF(!fx_has_capa(fx.a.dev, RMEM_DEV_CAPA_SHARED_MR), "no shared MRs");
	TEST_OK(rmem_mr_reg_shared(lx.mr, fx.a.pd, 0, lx.mr->access, &shared));
	fx_track(shared);
	TEST_OK(rmem_extbuf_mr_add(shared));
	req.mr = shared;
	TEST_EQ(rmem_lease_grant(lx.ctx, &req, 1, lx.lease), 1);
	TEST_OK(rmem_extbuf_mr_del(shared));
	expect_held(shared);
	lx_revoke(1);
	TEST_RUN(fx_release(shared));
}

static void
lease_of_pool(uint32_t flags)
{
	const struct rmem_pool_conf conf = {.name = "lease_pool",
			.nb_bufs = 31,
			.buf_size = 2048,
			.access = FX_ACCESS | RMEM_ACCESS_MW_BIND,
			.socket_id = SOCKET_ID_ANY,
			.flags = flags};
	struct rmem_lease_req req = lx_req(0, 2048, WRITE);
	struct rmem_pool *pool;
	struct rmem_sge sge;

	TEST_OK(rmem_pool_create(fx.a.pd, &conf, &pool));
	TEST_OK(rmem_pool_get_sges(pool, &sge, 1));
	req.addr = (void *)(uintptr_t)sge.addr;
	req.mr = rmem_pool_mr(pool, req.addr);
	TEST_EQ(rmem_lease_grant(lx.ctx, &req, 1, lx.lease), 1);
	/* Put back too early: the peer may still write to it. */
	rmem_pool_put_sges(pool, &sge, 1);
	TEST_ERR(rmem_pool_destroy(pool), EBUSY);
	lx_expect_granted(lx.lease[0]);
	lx_revoke(1);
	TEST_OK(rmem_pool_destroy(pool));
}

TEST(lease_hold, pool_of_a_leased_buffer_is_not_destroyed)
{
	lease_of_pool(0);
	lease_of_pool(RMEM_POOL_TRACKED);
}

LEASE_SUITES(lease_hold);
