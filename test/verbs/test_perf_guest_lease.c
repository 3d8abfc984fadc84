/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Cost of a lease on an RDMA device, in bursts of 32: granted, revoked and reclaimed. The
 * baseline is a burst of bindings and one of LOCAL_INVs, posted with ibv_wr_*, the last of each
 * signaled, on windows that the driver does not know.
 */

#include <rte_memory.h>

#include <rmem_lease.h>

#include "guest.h"

static struct {
	struct rmem_lease_ctx *ctx;
	struct rmem_lease_req req[PERF_BURST];
	struct rmem_lease *lease[PERF_BURST];
	struct ibv_mw *ibv_mw[PERF_BURST];
} gl;

static int
gl_burst_by_hand(void)
{
	struct ibv_qp_ex *ex = rverbs_qp_of(guest.qp)->ex;
	unsigned int i;

	ibv_wr_start(ex);
	for (i = 0; i < PERF_BURST; i++)
		guest_bind(gl.ibv_mw[i], i, i == PERF_BURST - 1 ? IBV_SEND_SIGNALED : 0);
	if (ibv_wr_complete(ex) != 0)
		return -1;
	ibv_wr_start(ex);
	for (i = 0; i < PERF_BURST; i++) {
		ex->wr_id = i;
		ex->wr_flags = i == PERF_BURST - 1 ? IBV_SEND_SIGNALED : 0;
		ibv_wr_local_inv(ex, gl.ibv_mw[i]->rkey);
	}
	return ibv_wr_complete(ex) == 0 ? guest_wait(2) : -1;
}

static double
leases_by_hand(void *arg)
{
	RTE_SET_USED(arg);
	return guest_best(gl_burst_by_hand);
}

static int
gl_burst(void)
{
	uint64_t end = rte_get_timer_cycles() + 30 * rte_get_timer_hz();
	struct rmem_lease *ended[PERF_BURST];
	struct rmem_wc wc[4];
	uint16_t nb = 0;

	if (rmem_lease_grant(gl.ctx, gl.req, PERF_BURST, gl.lease) != (int)PERF_BURST)
		return -1;
	if (rmem_lease_revoke(gl.ctx, gl.lease, PERF_BURST) != 0)
		return -1;
	while (nb < PERF_BURST && rte_get_timer_cycles() < end) {
		if (rmem_lease_poll(gl.ctx, wc, RTE_DIM(wc)) != 0)
			return -1;
		nb += (uint16_t)rmem_lease_reclaim(gl.ctx, &ended[nb], (uint16_t)(PERF_BURST - nb));
	}
	return nb == PERF_BURST ? 0 : -1;
}

static double
leases(void *arg)
{
	RTE_SET_USED(arg);
	return guest_best(gl_burst);
}

static void
gl_open(void)
{
	const struct rmem_lease_conf conf = {
			.backend = RMEM_LEASE_MW,
			.max_leases = 256,
			.min_leases = 256,
			.max_length = GUEST_PAGE,
			.socket_id = SOCKET_ID_ANY,
			.quarantine_us = 1000,
	};
	unsigned int i;

	TEST_OK(rmem_lease_ctx_create(guest.qp, &conf, &gl.ctx));
	for (i = 0; i < PERF_BURST; i++) {
		gl.req[i].mr = guest.mr;
		gl.req[i].addr = guest.buf + i * GUEST_PAGE;
		gl.req[i].length = GUEST_PAGE;
		gl.req[i].access = RMEM_ACCESS_REMOTE_WRITE;
		gl.ibv_mw[i] = guest_ibv_mw();
		TEST_ASSERT(gl.ibv_mw[i] != NULL);
	}
}

static void
guest_lease_mw_burst32(void)
{
	struct perf_row row = {.name = "guest_lease_mw_burst32",
			.unit = "ns/lease",
			.yardstick = "by hand",
			.bar = "none"};
	unsigned int i;

	guest_open();
	gl_open();
	perf_measure(&row, leases_by_hand, leases, NULL);
	for (i = 0; i < PERF_BURST; i++)
		TEST_ASSERT(ibv_dealloc_mw(gl.ibv_mw[i]) == 0);
	TEST_OK(rmem_lease_ctx_destroy(gl.ctx));
	guest_close();
}

REGISTER_RMEM_TEST(guest_lease_mw_burst32_perf_autotest, guest_lease_mw_burst32);
