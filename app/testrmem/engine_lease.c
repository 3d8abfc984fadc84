/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Mode lease: buffers of the pool are leased to the peer in bursts, written to, revoked, and put
 * back to the pool when their leases have ended. One operation is one lease. The library selects
 * the backend.
 *
 * The leases are on QP b, the peer is QP a. A burst is processed together, as a train; a pair
 * has depth / burst of them.
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_malloc.h>

#include <rmem_lease.h>
#include <rmem_pool.h>

#include "grant.h"

#define POLL_BURST    32
#define TRIAL_SECONDS 10
/* Keys for each buffer in flight; some are quarantined. */
#define KEYS_PER_BUF  4
#define QUARANTINE_US 1000

enum stage {
	STAGE_IDLE,
	STAGE_GRANT,
	STAGE_WRITE,
	STAGE_REVOKE,
};

struct lease_train {
	uint32_t stage;
	uint32_t nb;      /* Buffers in it. */
	uint32_t nb_left; /* Leases that have not ended. */
	struct rmem_sge *src;
	struct rmem_sge *dst;
	struct rmem_lease **lease;
	struct rmem_send_wr *write;
};

struct lease_pair {
	struct rmem_lease_ctx *ctx;
	struct lease_train *trains;
	uint32_t nb_trains;
	uint32_t nb_active;
	uint64_t started; /* Operations. */
	bool is_checking; /* Compare the train that arrives. */
	struct rmem_sge *dst;
	struct rmem_lease **lease;
	struct rmem_lease_req *req; /* Of a train. */
};

static int
alloc_none(const struct testrmem_pair *pair, struct testrmem_grant *grant)
{
	RTE_SET_USED(pair);
	RTE_SET_USED(grant);
	return 0;
}

/* The context has its own keys; this is only for their number. */
static const struct testrmem_grant_kind lease_kind = {
		.name = "lease",
		.request = "GRANT",
		.capa = RMEM_DEV_CAPA_LOCAL_INV,
		.pool_access = RMEM_ACCESS_MW_BIND,
		.alloc = alloc_none,
};

static int
open_ctx(struct testrmem_pair *pair, struct rmem_lease_ctx **ctx)
{
	const struct rmem_lease_conf conf = {
			.max_leases = KEYS_PER_BUF * pair->depth,
			.min_leases = pair->depth,
			.max_length = pair->size,
			.quarantine_us = QUARANTINE_US,
			.socket_id = pair->dev->dev->socket_id,
	};
	int ret = rmem_lease_ctx_create(pair->qp_b, &conf, ctx);

	if (ret != 0)
		testrmem_err("cannot lease %" PRIu32 " bytes on '%s': %s", pair->size,
				pair->dev->spec, rte_strerror(-ret));
	return ret;
}

static void
init_trains(struct testrmem_pair *pair, struct lease_pair *leases)
{
	uint32_t i;

	for (i = 0; i < leases->nb_trains; i++) {
		struct lease_train *train = &leases->trains[i];
		size_t first = (size_t)i * pair->burst;

		train->src = &pair->sge[first];
		train->write = &pair->wr[first];
		train->dst = &leases->dst[first];
		train->lease = &leases->lease[first];
	}
}

static int
lease_setup(struct testrmem_pair *pair)
{
	struct lease_pair *leases;
	int ret;

	ret = testrmem_pair_rdma_setup(pair, RMEM_WR_RDMA_WRITE);
	if (ret != 0)
		return ret;
	leases = testrmem_alloc(1, sizeof(*leases));
	if (leases == NULL)
		return -ENOMEM;
	pair->priv = leases;
	leases->nb_trains = pair->depth / pair->burst;
	leases->trains = testrmem_alloc(leases->nb_trains, sizeof(*leases->trains));
	leases->dst = testrmem_alloc(pair->depth, sizeof(*leases->dst));
	leases->lease = testrmem_alloc(pair->depth, sizeof(void *));
	leases->req = testrmem_alloc(pair->burst, sizeof(*leases->req));
	if (leases->trains == NULL || leases->dst == NULL || leases->lease == NULL ||
			leases->req == NULL)
		return -ENOMEM;
	init_trains(pair, leases);
	return open_ctx(pair, &leases->ctx);
}

/* The reset of the QP ends all leases. */
static void
close_ctx(struct testrmem_pair *pair, struct rmem_lease_ctx *ctx)
{
	struct rmem_lease *ended[POLL_BURST];

	if (ctx == NULL)
		return;
	rmem_qp_reset(pair->qp_b);
	rmem_lease_recover(ctx);
	while (rmem_lease_reclaim(ctx, ended, POLL_BURST) > 0)
		;
	if (rmem_lease_ctx_destroy(ctx) != 0)
		testrmem_err("leases on '%s' are still in use", pair->dev->spec);
}

static void
lease_disconnect(struct testrmem_pair *pair)
{
	struct lease_pair *leases = pair->priv;

	if (leases == NULL)
		return;
	close_ctx(pair, leases->ctx);
	leases->ctx = NULL;
}

static void
lease_teardown(struct testrmem_pair *pair)
{
	struct lease_pair *leases = pair->priv;
	uint32_t i;

	if (leases != NULL) {
		for (i = 0; leases->trains != NULL && i < leases->nb_trains; i++) {
			if (leases->trains[i].stage != STAGE_IDLE)
				testrmem_pair_bufs_put(
						pair, leases->trains[i].dst, leases->trains[i].nb);
		}
		rte_free(leases->req);
		rte_free(leases->lease);
		rte_free(leases->dst);
		rte_free(leases->trains);
		rte_free(leases);
		pair->priv = NULL;
	}
	testrmem_pair_ring_free(pair);
}

/* Lease the buffers of a train; put back those that cannot be leased now. */
static int
grant_train(struct testrmem_pair *pair, struct lease_train *train, uint32_t nb)
{
	struct lease_pair *leases = pair->priv;
	uint32_t i;
	int ret;

	for (i = 0; i < nb; i++) {
		struct rmem_lease_req *req = &leases->req[i];

		if (unlikely(leases->is_checking))
			memset(testrmem_ptr(train->dst[i].addr), 0, pair->size);
		req->mr = rmem_pool_mr(pair->dev->pool, testrmem_ptr(train->dst[i].addr));
		req->addr = testrmem_ptr(train->dst[i].addr);
		req->length = pair->size;
		req->access = RMEM_ACCESS_REMOTE_WRITE;
		req->user = train;
	}
	ret = rmem_lease_grant(leases->ctx, leases->req, (uint16_t)nb, train->lease);
	train->nb = (uint32_t)RTE_MAX(ret, 0);
	testrmem_pair_bufs_put(pair, &train->dst[train->nb], nb - train->nb);
	if (unlikely(ret < 0))
		/* All keys are quarantined, or wait for their completions. */
		return ret == -ENOSPC ? 0 : testrmem_pair_refused(pair, "grant", ret);
	train->nb_left = train->nb;
	train->stage = STAGE_GRANT;
	leases->started += train->nb;
	leases->nb_active++;
	return 0;
}

static int
start_train(struct testrmem_pair *pair, struct lease_train *train)
{
	struct lease_pair *leases = pair->priv;
	uint32_t nb = (uint32_t)RTE_MIN((uint64_t)pair->burst, pair->ops_limit - leases->started);
	int ret;

	if (nb == 0) {
		pair->is_done = true;
		return 0;
	}
	ret = testrmem_pair_bufs_get(pair, train->dst, nb);
	return ret != 0 ? ret : grant_train(pair, train, nb);
}

/* All leases of a train are granted: the peer writes. */
static int
write_train(struct testrmem_pair *pair, struct lease_train *train)
{
	struct lease_pair *leases = pair->priv;
	uint32_t i;
	int ret;

	testrmem_count(&pair->worker->cnt.binds, train->nb);
	for (i = 0; i < train->nb; i++) {
		train->write[i].wr_id = (uint64_t)(train - leases->trains);
		train->write[i].flags = 0;
		train->write[i].rdma.remote_addr = train->lease[i]->remote_addr;
		train->write[i].rdma.rkey = train->lease[i]->rkey;
	}
	train->write[train->nb - 1].flags = RMEM_SEND_SIGNALED;
	train->stage = STAGE_WRITE;
	ret = rmem_post_send(pair->qp_a, train->write, (uint16_t)train->nb);
	return likely(ret == (int)train->nb) ? 0 : testrmem_pair_refused(pair, "WRITE", ret);
}

/* All buffers of a train were reclaimed. */
static int
end_train(struct testrmem_pair *pair, struct lease_train *train)
{
	struct testrmem_counters *cnt = &pair->worker->cnt;
	struct lease_pair *leases = pair->priv;
	uint32_t i;
	int ret = 0;

	for (i = 0; i < train->nb && unlikely(leases->is_checking) && ret == 0; i++)
		ret = memcmp(testrmem_ptr(train->src[i].addr), testrmem_ptr(train->dst[i].addr),
				pair->size);
	testrmem_pair_bufs_put(pair, train->dst, train->nb);
	train->stage = STAGE_IDLE;
	leases->nb_active--;
	testrmem_count(&cnt->invs, train->nb);
	if (ret != 0) {
		testrmem_count(&cnt->errors, 1);
		testrmem_fail(pair->worker->session,
				"QP pair %" PRIu32
				": a buffer differs from the data that the peer wrote",
				pair->id);
		return -EIO;
	}
	testrmem_count(&cnt->ops, train->nb);
	testrmem_count(&cnt->bytes, (uint64_t)train->nb * pair->size);
	return 0;
}

/* Poll the peer's QP: the WRITEs of a train have completed. */
static int
poll_peer(struct testrmem_pair *pair)
{
	struct lease_pair *leases = pair->priv;
	struct rmem_wc wc[POLL_BURST];
	int i, n;

	n = rmem_poll_cq(pair->cq_a, wc, POLL_BURST);
	if (unlikely(n < 0))
		return testrmem_pair_refused(pair, "poll", n);
	for (i = 0; i < n; i++) {
		struct lease_train *train = &leases->trains[wc[i].wr_id];

		if (unlikely(wc[i].status != RMEM_WC_SUCCESS))
			return testrmem_pair_failed(pair, "WRITE", &wc[i]);
		train->stage = STAGE_REVOKE;
		rmem_lease_revoke(leases->ctx, train->lease, (uint16_t)train->nb);
	}
	return 0;
}

/* Poll the context: leases are granted, or have ended. */
static int
poll_leases(struct testrmem_pair *pair)
{
	struct lease_pair *leases = pair->priv;
	struct rmem_lease *ended[POLL_BURST];
	struct rmem_wc wc[POLL_BURST];
	uint32_t i;
	int n, ret = 0;

	n = rmem_lease_poll(leases->ctx, wc, POLL_BURST);
	if (unlikely(n < 0))
		return testrmem_pair_refused(pair, "poll", n);
	n = rmem_lease_reclaim(leases->ctx, ended, POLL_BURST);
	for (i = 0; i < (uint32_t)n && ret == 0; i++) {
		struct lease_train *train = ended[i]->user;

		if (--train->nb_left == 0)
			ret = end_train(pair, train);
	}
	for (i = 0; i < leases->nb_trains && ret == 0; i++) {
		struct lease_train *train = &leases->trains[i];

		if (train->stage == STAGE_GRANT &&
				train->lease[train->nb - 1]->state == RMEM_LEASE_GRANTED)
			ret = write_train(pair, train);
	}
	return ret;
}

static int
lease_burst(struct testrmem_pair *pair, bool is_draining)
{
	struct lease_pair *leases = pair->priv;
	uint32_t i;
	int ret = 0;

	for (i = 0; i < leases->nb_trains && !is_draining && !pair->is_done && ret == 0; i++) {
		if (leases->trains[i].stage == STAGE_IDLE)
			ret = start_train(pair, &leases->trains[i]);
	}
	if (likely(ret == 0))
		ret = poll_leases(pair);
	if (likely(ret == 0))
		ret = poll_peer(pair);
	return ret != 0 ? ret : (int)leases->nb_active;
}

/* Send one more train and compare what arrived. */
static int
lease_verify(struct testrmem_pair *pair)
{
	uint64_t deadline = rte_rdtsc() + TRIAL_SECONDS * rte_get_tsc_hz();
	struct lease_pair *leases = pair->priv;
	int ret = 0;

	leases->is_checking = true;
	pair->ops_limit = UINT64_MAX;
	/* Keys may still be quarantined. */
	while (ret == 0 && leases->nb_active == 0 && rte_rdtsc() < deadline)
		ret = start_train(pair, &leases->trains[0]);
	return ret != 0 ? ret : testrmem_pair_drain(pair);
}

/* A lease of a separate buffer, and the WRITEs of the peer to it. */
struct trial {
	struct testrmem_pair pair;
	struct rmem_lease_ctx *ctx;
	struct rmem_sge sge[2]; /* Source and target. */
	struct rmem_send_wr write;
	bool has_bufs;
};

static int
grant_trial(struct trial *trial, uint64_t deadline)
{
	const struct rmem_lease_req req = {
			.mr = rmem_pool_mr(trial->pair.dev->pool, testrmem_ptr(trial->sge[1].addr)),
			.addr = testrmem_ptr(trial->sge[1].addr),
			.length = trial->pair.size,
			.access = RMEM_ACCESS_REMOTE_WRITE,
			.deadline = deadline,
	};
	struct rmem_lease *lease;
	int ret = rmem_lease_grant(trial->ctx, &req, 1, &lease);

	if (ret != 1)
		return testrmem_pair_refused(&trial->pair, "grant", ret);
	trial->write.opcode = RMEM_WR_RDMA_WRITE;
	trial->write.sg_list = &trial->sge[0];
	trial->write.num_sge = 1;
	trial->write.flags = RMEM_SEND_SIGNALED;
	trial->write.rdma.remote_addr = lease->remote_addr;
	trial->write.rdma.rkey = lease->rkey;
	return deadline == 0 ? rmem_lease_revoke(trial->ctx, &lease, 1) : 0;
}

/* Wait until the lease has ended, then write: the status of the WRITE, or -errno. */
static int
write_after_end(struct trial *trial)
{
	uint64_t deadline = rte_rdtsc() + TRIAL_SECONDS * rte_get_tsc_hz();
	struct rmem_lease *lease;
	struct rmem_wc wc;
	int ret;

	do {
		ret = rmem_lease_poll(trial->ctx, &wc, 1);
		if (ret == 0)
			ret = rmem_lease_reclaim(trial->ctx, &lease, 1);
	} while (ret == 0 && rte_rdtsc() < deadline);
	if (ret != 1)
		return testrmem_pair_refused(&trial->pair, "end of a lease", ret);
	ret = rmem_post_send(trial->pair.qp_a, &trial->write, 1);
	while (ret == 1) {
		ret = rmem_poll_cq(trial->pair.cq_a, &wc, 1);
		if (ret == 1)
			return wc.status;
		ret = ret == 0 && rte_rdtsc() < deadline ? 1 : ret;
	}
	return testrmem_pair_refused(&trial->pair, "WRITE after the end of a lease", ret);
}

/* On separate QPs, since a refusal moves them to ERR: 1 if refused, 0 if not, or -errno. */
static int
try_ended(struct testrmem_session *session, bool is_expired)
{
	struct trial trial = {0};
	struct testrmem_pair *pair = &trial.pair;
	int ret;

	pair->worker = &session->workers[0];
	pair->dev = pair->worker->pairs[0].dev;
	ret = testrmem_pair_open(pair, session);
	if (ret == 0)
		ret = testrmem_pair_bufs_get(pair, trial.sge, RTE_DIM(trial.sge));
	trial.has_bufs = ret == 0;
	if (ret == 0) {
		memset(testrmem_ptr(trial.sge[0].addr), 0xa5, pair->size);
		memset(testrmem_ptr(trial.sge[1].addr), 0x5a, pair->size);
		pair->depth = 1;
		ret = open_ctx(pair, &trial.ctx);
	}
	if (ret == 0)
		ret = grant_trial(&trial, is_expired ? rte_rdtsc() + 1 : 0);
	if (ret == 0)
		ret = write_after_end(&trial);
	if (ret >= 0)
		ret = ret == RMEM_WC_REM_ACCESS_ERR &&
				*(uint8_t *)testrmem_ptr(trial.sge[1].addr) == 0x5a;
	close_ctx(pair, trial.ctx);
	testrmem_pair_close(pair);
	if (trial.has_bufs)
		testrmem_pair_bufs_put(pair, trial.sge, RTE_DIM(trial.sge));
	return ret;
}

static int
lease_finish(struct testrmem_session *session)
{
	static const char *const what[] = {"revoked", "expired"};
	int i, ret;

	for (i = 0; i < 2; i++) {
		ret = try_ended(session, i == 1);
		if (ret < 0)
			return ret;
		printf("%s lease refused: %s\n", what[i], ret == 1 ? "yes" : "NO");
		if (ret == 1)
			continue;
		testrmem_fail(session,
				"a WRITE through the rkey of a lease that was %s was not refused as "
				"REM_ACCESS_ERR",
				what[i]);
		return -EIO;
	}
	return 0;
}

const struct testrmem_engine testrmem_engine_lease = {
		.name = "lease",
		.help = "grant, WRITE by the peer and revocation of a lease for each buffer",
		.verified = "a last burst of each QP pair arrived",
		.default_size = 64,
		.max_size = UINT32_MAX,
		.bufs_per_op = 2,
		.grant = &lease_kind,
		.setup = lease_setup,
		.burst = lease_burst,
		.verify = lease_verify,
		.finish = lease_finish,
		.disconnect = lease_disconnect,
		.teardown = lease_teardown,
};
