/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Leases of windows on a verbs device without the quirk: no driver tracks the windows, so the
 * library replaces each whose request was flushed.
 */

#include <string.h>

#include <rte_memory.h>

#include <rmem_lease.h>

#include "setup.h"

#define NB_LEASES 4u

static struct rmem_lease_ctx *ctx;

static void
vl_setup(void)
{
	const struct rmem_lease_conf conf = {.backend = RMEM_LEASE_MW,
			.max_leases = NB_LEASES,
			.max_length = 64,
			.socket_id = SOCKET_ID_ANY};

	vt_setup_mw_plain();
	TEST_OK(rmem_lease_ctx_create(vt.a, &conf, &ctx));
}

static void
vl_teardown(void)
{
	TEST_OK(rmem_lease_ctx_destroy(ctx));
	vt_teardown();
}

static void
vl_grant(struct rmem_lease **lease)
{
	struct rmem_lease_req req[NB_LEASES];
	unsigned int i;

	memset(req, 0, sizeof(req));
	for (i = 0; i < NB_LEASES; i++) {
		req[i].mr = vt.mw_mr;
		req[i].addr = vt.buf + VT_HALF + i * 64;
		req[i].length = 64;
		req[i].access = RMEM_ACCESS_REMOTE_WRITE;
	}
	TEST_EQ(rmem_lease_grant(ctx, req, NB_LEASES, lease), (int)NB_LEASES);
}

static void
vl_poll(void)
{
	struct rmem_wc wc[8];

	TEST_EQ(rmem_lease_poll(ctx, wc, 8), 0);
}

/* b writes 8 bytes to the buffer of a lease. */
static int
vl_write(const struct rmem_lease *lease)
{
	struct rmem_sge sge = vt_sge(0, 8);
	struct rmem_send_wr wr = vt_wr(RMEM_WR_RDMA_WRITE, &sge);
	struct rmem_wc wc;

	wr.rdma.remote_addr = lease->remote_addr;
	wr.rdma.rkey = lease->rkey;
	return rmem_post_send(vt.b, &wr, 1) == 1 ? vt_wait(vt.cq_b, &wc) : -EBADMSG;
}

static void
vl_reclaim(struct rmem_lease **lease)
{
	TEST_EQ(rmem_lease_reclaim(ctx, lease, NB_LEASES), (int)NB_LEASES);
}

/* Grant, use, revoke; after that the keys are refused. */
static void
vl_round(void)
{
	struct rmem_lease *lease[NB_LEASES];
	unsigned int i;

	vl_grant(lease);
	vl_poll();
	for (i = 0; i < NB_LEASES; i++)
		TEST_STATUS(vl_write(lease[i]), RMEM_WC_SUCCESS);
	TEST_OK(rmem_lease_revoke(ctx, lease, NB_LEASES));
	vl_poll();
	vl_reclaim(lease);
	TEST_STATUS(vl_write(lease[0]), RMEM_WC_REM_ACCESS_ERR);
	vt_reconnect();
}

TEST(verbs_lease, leases_are_granted_and_revoked)
{
	unsigned int i;

	for (i = 0; i < 100; i++)
		vl_round();
}

/* The QP fails with requests in flight, which it has executed or not. */
static void
vl_fail(bool is_run, bool is_revoking)
{
	struct rmem_lease *lease[NB_LEASES];

	fake.is_flush_run = is_run;
	fake.is_held = !is_revoking;
	vl_grant(lease);
	if (is_revoking) {
		vl_poll();
		fake.is_held = true;
		TEST_OK(rmem_lease_revoke(ctx, lease, NB_LEASES));
	}
	fake.is_held = false;
	TEST_OK(rmem_qp_set_error(vt.a));
	vl_poll();
	TEST_OK(rmem_qp_reset(vt.a));
	TEST_OK(rmem_lease_recover(ctx));
	vl_reclaim(lease);
	vt_reconnect();
	TEST_STATUS(vl_write(lease[0]), RMEM_WC_REM_ACCESS_ERR);
	vt_reconnect();
}

TEST(verbs_lease, keys_of_flushed_requests_are_replaced)
{
	struct rmem_lease_stats stats;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		vl_fail((i & 1) != 0, (i & 2) != 0);
		vl_round();
	}
	TEST_OK(rmem_lease_stats_get(ctx, &stats));
	TEST_EQ(stats.keys_replaced, 4 * NB_LEASES);
}

TEST_SUITE(verbs_lease, vl_setup, vl_teardown);
