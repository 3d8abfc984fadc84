/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Leases of zero-based keys: those of mlx5dv, over its fakes. */

#include <string.h>

#include <rte_memory.h>

#include <rmem_lease.h>

#include "fake_mlx5.h"
#include "setup.h"

#define NB_LEASES 4u

static void
vz_setup(void)
{
	fake_reset();
	fake_mlx5_reset();
	TEST_RUN(vt_open_mw());
}

static int
vz_ctx(uint32_t backend, struct rmem_lease_ctx **ctx)
{
	const struct rmem_lease_conf conf = {.backend = backend,
			.max_leases = NB_LEASES,
			.max_length = 64,
			.socket_id = SOCKET_ID_ANY};

	return rmem_lease_ctx_create(vt.a, &conf, ctx);
}

static void
vz_grant(struct rmem_lease_ctx *ctx, struct rmem_lease **lease)
{
	struct rmem_lease_req req[NB_LEASES];
	unsigned int i;

	memset(req, 0, sizeof(req));
	for (i = 0; i < NB_LEASES; i++) {
		req[i].mr = vt.mr;
		req[i].addr = vt.buf + VT_HALF + 100 + i * 64;
		req[i].length = 64;
		req[i].access = RMEM_ACCESS_REMOTE_WRITE;
	}
	TEST_EQ(rmem_lease_grant(ctx, req, NB_LEASES, lease), (int)NB_LEASES);
}

/* b writes the first 64 bytes of the buffer to that of a lease. */
static int
vz_write(const struct rmem_lease *lease, uint64_t offset)
{
	struct rmem_sge sge = vt_sge(0, 64);
	struct rmem_send_wr wr = vt_wr(RMEM_WR_RDMA_WRITE, &sge);
	struct rmem_wc wc;

	wr.rdma.remote_addr = lease->remote_addr + offset;
	wr.rdma.rkey = lease->rkey;
	return rmem_post_send(vt.b, &wr, 1) == 1 ? vt_wait(vt.cq_b, &wc) : -EBADMSG;
}

/* Grant, use, revoke; after that the keys are refused. */
static void
vz_round(struct rmem_lease_ctx *ctx)
{
	struct rmem_lease *lease[NB_LEASES];
	struct rmem_wc wc[8];
	unsigned int i;

	memset(vt.buf, 0xa5, 64);
	memset(vt.buf + VT_HALF, 0, VT_HALF);
	vz_grant(ctx, lease);
	TEST_EQ(rmem_lease_poll(ctx, wc, 8), 0);
	for (i = 0; i < NB_LEASES; i++) {
		TEST_EQ(lease[i]->remote_addr, 0);
		TEST_STATUS(vz_write(lease[i], 0), RMEM_WC_SUCCESS);
		TEST_MEM(vt.buf + VT_HALF + 100 + i * 64, vt.buf, 64);
	}
	TEST_OK(rmem_lease_revoke(ctx, lease, NB_LEASES));
	TEST_EQ(rmem_lease_poll(ctx, wc, 8), 0);
	TEST_EQ(rmem_lease_reclaim(ctx, lease, NB_LEASES), (int)NB_LEASES);
	TEST_STATUS(vz_write(lease[0], 0), RMEM_WC_REM_ACCESS_ERR);
	vt_reconnect();
}

static void
vz_rounds(uint32_t backend)
{
	struct rmem_lease_ctx *ctx;
	unsigned int i;

	TEST_OK(vz_ctx(backend, &ctx));
	for (i = 0; i < 100; i++)
		vz_round(ctx);
	TEST_OK(rmem_lease_ctx_destroy(ctx));
}

TEST_CALL(verbs_mlx5_lease, leases_of_fast_register_mrs_begin_at_0, vz_rounds(RMEM_LEASE_FAST_REG));
TEST_CALL(verbs_mlx5_lease, leases_of_indirect_keys_begin_at_0, vz_rounds(RMEM_LEASE_UMR));

/* The byte after the lease, which is in the MR. */
TEST(verbs_mlx5_lease, end_of_a_lease_is_enforced)
{
	struct rmem_lease *lease[NB_LEASES];
	struct rmem_lease_ctx *ctx;
	struct rmem_wc wc[8];

	TEST_OK(vz_ctx(RMEM_LEASE_UMR, &ctx));
	vz_grant(ctx, lease);
	TEST_EQ(rmem_lease_poll(ctx, wc, 8), 0);
	TEST_STATUS(vz_write(lease[0], 1), RMEM_WC_REM_ACCESS_ERR);
	TEST_OK(rmem_lease_revoke(ctx, lease, NB_LEASES));
	TEST_EQ(rmem_lease_poll(ctx, wc, 8), 0);
	TEST_EQ(rmem_lease_reclaim(ctx, lease, NB_LEASES), (int)NB_LEASES);
	TEST_OK(rmem_lease_ctx_destroy(ctx));
}

static void
vz_is_auto(uint32_t backend)
{
	struct rmem_lease_stats stats;
	struct rmem_lease_ctx *ctx;

	TEST_OK(vz_ctx(RMEM_LEASE_AUTO, &ctx));
	TEST_OK(rmem_lease_stats_get(ctx, &stats));
	TEST_EQ(stats.backend, backend);
	TEST_OK(rmem_lease_ctx_destroy(ctx));
}

/* Windows are preferred, which keep the addresses; without them the order is as ever. */
TEST(verbs_mlx5_lease, windows_are_preferred_to_zero_based_keys)
{
	vz_is_auto(RMEM_LEASE_MW);
	TEST_OK(vt_close());
	fake.has_no_mw[IBV_MW_TYPE_1] = fake.has_no_mw[IBV_MW_TYPE_2] = true;
	TEST_OK(vt_open());
	vz_is_auto(RMEM_LEASE_FAST_REG);
}

TEST_SUITE(verbs_mlx5_lease, vz_setup, vt_teardown);
