/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Leases of the cases; see lease.h. */

#include <string.h>

#include "lease.h"

struct lease_fixture lx;

static void
setup(uint32_t backend, uint64_t capa, const char *reason)
{
	memset(&lx, 0, sizeof(lx));
	fx_setup();
	if (!fx_has_capa(fx.a.dev, capa | RMEM_DEV_CAPA_LOCAL_INV))
		test_skip(reason);
	lx.conf.backend = backend;
	lx.conf.max_leases = LX_MAX;
	lx.conf.max_length = FX_BUF_SIZE;
	lx.conf.socket_id = SOCKET_ID_ANY;
	lx.mr = fx_mr(fx.a.pd, fx.a.buf, FX_BUF_SIZE, FX_ACCESS | RMEM_ACCESS_MW_BIND);
	lx_remake();
}

void
lx_setup_fast_reg(void)
{
	setup(RMEM_LEASE_FAST_REG, RMEM_DEV_CAPA_FAST_REG, "no fast registration");
}

void
lx_setup_mw(void)
{
	setup(RMEM_LEASE_MW, RMEM_DEV_CAPA_MW_TYPE_2B, "no windows of type 2B");
}

void
lx_setup_umr(void)
{
	setup(RMEM_LEASE_UMR, RMEM_DEV_CAPA_UMR, "no indirect keys");
}

void
lx_setup_auto(void)
{
	setup(RMEM_LEASE_AUTO, 0, "");
}

/* Leases that remain end when the QP is reset. */
static void
close_ctx(void)
{
	struct rmem_lease_ctx *ctx = lx.ctx;

	lx.ctx = NULL;
	if (ctx == NULL)
		return;
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(rmem_lease_recover(ctx));
	while (rmem_lease_reclaim(ctx, lx.ended, LX_MAX) > 0)
		;
	TEST_OK(rmem_lease_ctx_destroy(ctx));
}

void
lx_teardown(void)
{
	int result = TEST_TRY(close_ctx());

	TEST_RUN(TEST_TRY(fx_teardown()) == TEST_SUCCESS ? result : TEST_FAILED);
}

void
lx_destroy(void)
{
	TEST_OK(rmem_lease_ctx_destroy(lx.ctx));
	lx.ctx = NULL;
}

void
lx_remake(void)
{
	if (lx.ctx != NULL) {
		close_ctx();
		fx_reconnect();
	}
	TEST_OK(rmem_lease_ctx_create(fx.a.qp, &lx.conf, &lx.ctx));
}

struct rmem_lease_req
lx_req(size_t offset, uint32_t length, uint32_t access)
{
	return (struct rmem_lease_req){.mr = lx.mr,
			.addr = fx.a.buf + offset,
			.length = length,
			.access = access,
			.user = fx.a.buf + offset};
}

void
lx_grant(uint16_t nb, uint32_t access)
{
	struct rmem_lease_req req[LX_MAX];
	uint16_t i;

	for (i = 0; i < nb; i++)
		req[i] = lx_req(i * FX_PAGE, FX_PAGE, access);
	TEST_EQ(rmem_lease_grant(lx.ctx, req, nb, lx.lease), nb);
}

void
lx_granted(uint16_t nb)
{
	lx_grant(nb, RMEM_ACCESS_REMOTE_WRITE);
	lx_wait_state(lx.lease[nb - 1], RMEM_LEASE_GRANTED);
}

/* Completions of the application are not expected. */
static void
poll_none(void)
{
	struct rmem_wc wc[8];

	TEST_EQ(rmem_lease_poll(lx.ctx, wc, RTE_DIM(wc)), 0);
}

void
lx_take(uint16_t nb, uint8_t how)
{
	uint64_t deadline = fx_deadline();
	unsigned int spins = 0;
	uint16_t i, got = 0;

	while (got < nb) {
		poll_none();
		got += (uint16_t)rmem_lease_reclaim(lx.ctx, &lx.ended[got], (uint16_t)(nb - got));
		TEST_ASSERT(!fx_is_late(deadline));
		fx_relax(&spins);
	}
	for (i = 0; i < nb; i++)
		TEST_EQ(lx.ended[i]->end, how);
}

void
lx_revoke(uint16_t nb)
{
	TEST_OK(rmem_lease_revoke(lx.ctx, lx.lease, nb));
	lx_take(nb, RMEM_LEASE_END_REVOKED);
}

void
lx_wait_state(const struct rmem_lease *lease, uint8_t state)
{
	uint64_t deadline = fx_deadline();
	unsigned int spins = 0;

	while (lease->state != state) {
		poll_none();
		TEST_ASSERT(!fx_is_late(deadline));
		fx_relax(&spins);
	}
}

void
lx_wait_granted(const struct rmem_lease *lease)
{
	bool is_at_post = fx_is_soft() && !fx_has_capa(fx.a.dev, RMEM_DEV_CAPA_ENGINE);

	if (is_at_post || lease->state != RMEM_LEASE_GRANTING)
		return;
	lx_wait_state(lease, RMEM_LEASE_GRANTED);
}

int
lx_write(const struct rmem_lease *lease, uint32_t offset, uint32_t length)
{
	return fx_peer_write(lease->remote_addr + offset, length, lease->rkey);
}

void
lx_expect_granted(const struct rmem_lease *lease)
{
	lx_wait_granted(lease);
	lx_expect_write(lease);
}

void
lx_expect_write(const struct rmem_lease *lease)
{
	fx_fill(fx.b.buf, lease->length, lease->rkey);
	TEST_STATUS(lx_write(lease, 0, lease->length), RMEM_WC_SUCCESS);
	TEST_MEM(lease->addr, fx.b.buf, lease->length);
}

void
lx_expect_denied(uint64_t remote_addr, uint32_t length, uint32_t rkey)
{
	TEST_STATUS(fx_peer_write(remote_addr, length, rkey), RMEM_WC_REM_ACCESS_ERR);
	lx_recover();
}

bool
lx_has_bounds(void)
{
	return lx_stats().backend != RMEM_LEASE_MW || !fx_is_rxe();
}

void
lx_need_bounds(void)
{
	TEST_SKIP_IF(!lx_has_bounds(), "rdma_rxe does not check the bounds of windows");
}

void
lx_expect_outside(uint64_t remote_addr, uint32_t length, uint32_t rkey)
{
	if (lx_has_bounds())
		lx_expect_denied(remote_addr, length, rkey);
	else
		lx_recover();
}

void
lx_recover(void)
{
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(rmem_lease_recover(lx.ctx));
	fx_reconnect();
}

struct rmem_lease_stats
lx_stats(void)
{
	struct rmem_lease_stats stats;

	if (rmem_lease_stats_get(lx.ctx, &stats) != 0)
		memset(&stats, 0xff, sizeof(stats));
	return stats;
}
