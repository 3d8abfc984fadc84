/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Modes fastreg, mw and umr: the peer gets access to single buffers of the pool, with REG_MR,
 * BIND_MW of a type 2 window, or UMR, writes to them, and LOCAL_INV revokes it before the buffers
 * are put back (cycle.h). One operation is one such cycle.
 */

#include <errno.h>

#include "cycle.h"
#include "remote.h"

#define VERIFIED "a last burst of each QP pair arrived"

static int
grant_fill(struct testrmem_pair *pair, struct cycle_train *train, uint32_t nb)
{
	RTE_SET_USED(pair);
	RTE_SET_USED(train);
	/* The sources are the buffers of the ring. */
	return (int)nb;
}

static const struct cycle_ops grant_cycle_ops = {
		.announce = NULL,
		.arrived = NULL,
		.fill = grant_fill,
		.is_held = NULL,
		.received = NULL,
};

static int
grant_setup(struct testrmem_pair *pair)
{
	return cycle_setup(pair, &grant_cycle_ops);
}

static int
grant_finish(struct testrmem_session *session)
{
	int ret = cycle_try_revoked(session);

	if (ret < 0)
		return ret;
	printf("revoked key refused: %s\n", ret == 1 ? "yes" : "NO");
	if (ret == 1)
		return 0;
	testrmem_fail(session, "a WRITE through a revoked rkey was not refused as REM_ACCESS_ERR");
	return -EIO;
}

const struct testrmem_engine testrmem_engine_fastreg = {
		.name = "fastreg",
		.help = "REG_MR, WRITE by the peer and LOCAL_INV for each buffer",
		.verified = VERIFIED,
		.default_size = 64,
		.max_size = UINT32_MAX,
		.bufs_per_op = 2,
		.grant = &testrmem_grant_fast_reg,
		.listener = &testrmem_listener_fastreg,
		.connector = &testrmem_connector_mw,
		.setup = grant_setup,
		.burst = cycle_burst,
		.verify = cycle_verify,
		.finish = grant_finish,
		.disconnect = cycle_disconnect,
		.teardown = cycle_teardown,
};

const struct testrmem_engine testrmem_engine_mw = {
		.name = "mw",
		.help = "the same with a memory window of type 2 and BIND_MW",
		.verified = VERIFIED,
		.default_size = 64,
		.max_size = UINT32_MAX,
		.bufs_per_op = 2,
		.grant = &testrmem_grant_window,
		.listener = &testrmem_listener_mw,
		.connector = &testrmem_connector_mw,
		.setup = grant_setup,
		.burst = cycle_burst,
		.verify = cycle_verify,
		.finish = grant_finish,
		.disconnect = cycle_disconnect,
		.teardown = cycle_teardown,
};

const struct testrmem_engine testrmem_engine_umr = {
		.name = "umr",
		.help = "the same with an indirect key over four parts and UMR",
		.verified = VERIFIED,
		.default_size = 64,
		.max_size = UINT32_MAX,
		.bufs_per_op = 2,
		.grant = &testrmem_grant_umr,
		.listener = &testrmem_listener_umr,
		.connector = &testrmem_connector_mw,
		.setup = grant_setup,
		.burst = cycle_burst,
		.verify = cycle_verify,
		.finish = grant_finish,
		.disconnect = cycle_disconnect,
		.teardown = cycle_teardown,
};
