/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Modes fastreg, mw and umr: the peer gets access to single buffers of the pool, with REG_MR,
 * BIND_MW of a type 2 window, or UMR, writes to them, and LOCAL_INV revokes it before the buffers
 * are put back (cycle.h). One operation is one such cycle.
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cycle.h"
#include "remote.h"
#include <rte_cycles.h>
#include <rte_errno.h>

#define TIMEOUT_SECONDS 120

/* A buffer, its key, and the pair that accesses it. */
struct trial {
	struct testrmem_pair pair;
	struct rmem_sge sge[2]; /* Source and target. */
	struct testrmem_grant grant;
	bool has_bufs;
};

static int
open_trial(struct testrmem_session *session, struct trial *trial)
{
	struct testrmem_pair *pair = &trial->pair;
	int ret;

	pair->worker = &session->workers[0];
	pair->dev = pair->worker->pairs[0].dev;
	ret = testrmem_pair_open(pair, session);
	if (ret != 0)
		return ret;
	ret = testrmem_pair_bufs_get(pair, trial->sge, RTE_DIM(trial->sge));
	if (ret != 0)
		return ret;
	trial->has_bufs = true;
	return session->engine->grant->alloc(pair, &trial->grant);
}

static void
close_trial(struct trial *trial)
{
	testrmem_pair_close(&trial->pair);
	testrmem_grant_free(&trial->grant);
	if (trial->has_bufs)
		testrmem_pair_bufs_put(&trial->pair, trial->sge, RTE_DIM(trial->sge));
}

/* Post one signaled request and wait for it: its status, or -errno. */
static int
execute(struct trial *trial, struct rmem_qp *qp, struct rmem_send_wr *wr)
{
	uint64_t deadline = rte_rdtsc() + TIMEOUT_SECONDS * rte_get_tsc_hz();
	struct rmem_wc wc;
	int ret;

	wr->flags = RMEM_SEND_SIGNALED;
	ret = rmem_post_send(qp, wr, 1);
	if (ret != 1)
		return testrmem_pair_refused(&trial->pair, "post", ret);
	do {
		ret = rmem_poll_cq(qp->send_cq, &wc, 1);
		if (ret < 0)
			return testrmem_pair_refused(&trial->pair, "poll", ret);
		if (ret == 1)
			return wc.status;
	} while (rte_rdtsc() < deadline);
	testrmem_err("a request did not complete in %d s", TIMEOUT_SECONDS);
	return -ETIMEDOUT;
}

/* The same for a request that must succeed. */
static int
succeed(struct trial *trial, struct rmem_qp *qp, struct rmem_send_wr *wr, const char *what)
{
	int ret = execute(trial, qp, wr);

	if (ret > 0) {
		testrmem_err("%s failed: %s", what, rmem_wc_status_str(ret));
		return -EIO;
	}
	return ret;
}

static int
try(struct trial *trial)
{
	struct testrmem_pair *pair = &trial->pair;
	uint8_t *src = testrmem_ptr(trial->sge[0].addr);
	uint8_t *dst = testrmem_ptr(trial->sge[1].addr);
	struct rmem_send_wr bind = {0}, inv = {.opcode = RMEM_WR_LOCAL_INV};
	struct rmem_send_wr write = {
			.opcode = RMEM_WR_RDMA_WRITE,
			.sg_list = &trial->sge[0],
			.num_sge = 1,
	};
	int ret;

	pair->worker->session->engine->grant->fill(pair, &trial->grant, &trial->sge[1], &bind);
	ret = succeed(trial, pair->qp_b, &bind, "bind");
	if (ret != 0)
		return ret;
	write.rdma.remote_addr = trial->grant.remote_addr;
	write.rdma.rkey = testrmem_grant_rkey(&trial->grant);
	inv.invalidate_rkey = testrmem_grant_rkey(&trial->grant);
	memset(src, 0x5a, pair->size);
	memset(dst, 0, pair->size);
	ret = succeed(trial, pair->qp_a, &write, "WRITE");
	if (ret != 0)
		return ret;
	ret = succeed(trial, pair->qp_b, &inv, "LOCAL_INV");
	if (ret != 0)
		return ret;
	/* The WRITE with the valid key arrived, the other did not. */
	if (memcmp(src, dst, pair->size) != 0)
		return 0;
	memset(src, 0xa5, pair->size);
	ret = execute(trial, pair->qp_a, &write);
	if (ret < 0)
		return ret;
	return ret == RMEM_WC_REM_ACCESS_ERR && dst[0] == 0x5a && dst[pair->size - 1] == 0x5a;
}

/**
 * On separate QPs: grant a buffer, write to it, revoke the key, write again. 1 if that was refused
 * with REM_ACCESS_ERR, 0 if not, -errno if the test failed.
 */
static int
try_revoked(struct testrmem_session *session)
{
	struct trial trial = {0};
	int ret;

	ret = open_trial(session, &trial);
	if (ret == 0)
		ret = try(&trial);
	close_trial(&trial);
	return ret;
}

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
	int ret = try_revoked(session);

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
