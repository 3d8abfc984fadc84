/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A pair of QPs connected to each other, and the ring of requests on it.
 *
 * The wr_id of a signaled request is the number of operations posted up to it, so that one
 * completion frees all slots up to its own (ibv_post_send(3)).
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_malloc.h>

#include <rmem_pool.h>

#include "remote.h"

#define POLL_BURST    32
#define DRAIN_SECONDS 10

static int
create_cq(struct testrmem_pair *pair, uint32_t nb_cqe, struct rmem_cq **cq)
{
	const struct rmem_cq_conf conf = {.nb_cqe = nb_cqe};

	return rmem_cq_create(pair->dev->dev, &conf, cq);
}

/* The configuration has CQs, numbers of requests and rights; the rest is set here. */
static int
create_qp(struct testrmem_pair *pair, struct rmem_qp_conf conf, struct rmem_qp **qp)
{
	const struct testrmem_engine *engine = pair->worker->session->engine;
	uint32_t nb_sges = engine->flags & ENGINE_MBUF ? testrmem_nb_segs(pair->size) : 1;

	conf.max_send_sge = nb_sges;
	conf.max_recv_sge = conf.max_recv_wr != 0 ? nb_sges : 0;
	conf.max_inline_data = engine->flags & ENGINE_INLINE ? pair->size : 0;
	conf.type = RMEM_QPT_RC;
	return rmem_qp_create(pair->dev->pd, &conf, qp);
}

/* Create one end of a pair, with a CQ of its own. */
static int
create_end(struct testrmem_pair *pair, struct rmem_qp_conf conf, struct rmem_cq **cq,
		struct rmem_qp **qp)
{
	int ret;

	ret = create_cq(pair, conf.max_send_wr + conf.max_recv_wr, cq);
	if (ret != 0)
		return ret;
	conf.send_cq = *cq;
	conf.recv_cq = *cq;
	return create_qp(pair, conf, qp);
}

static int
connect_qp(struct rmem_qp *qp, struct rmem_qp *peer)
{
	struct rmem_qp_conn conn = {
			.timeout = 14, /* 67 ms */
			.retry_cnt = 7,
			.rnr_retry = 7,
			.min_rnr_timer = 12, /* 0.64 ms */
	};
	struct rmem_qp_attr attr;
	int ret;

	ret = rmem_qp_query(peer, &attr);
	if (ret != 0)
		return ret;
	conn.remote = attr.addr;
	return rmem_qp_connect(qp, &conn);
}

/* Create the requester; of two hosts the other one tests the connection to it. */
static int
open_a(struct testrmem_pair *pair, const struct testrmem_session *session)
{
	bool is_remote = testrmem_is_remote(session);
	uint32_t send_wr = pair->depth + (is_remote ? 1 : 0);
	uint32_t recv_wr = session->engine->flags & ENGINE_MBUF ? pair->depth : 0;
	struct rmem_qp_conf conf = {.max_send_wr = send_wr, .max_recv_wr = recv_wr};

	if (is_remote)
		conf.access = RMEM_ACCESS_REMOTE_WRITE;
	if (session->engine->flags & ENGINE_GRANTED)
		conf.max_recv_wr = pair->depth / pair->burst;
	return create_end(pair, conf, &pair->cq_a, &pair->qp_a);
}

/*
 * Create its peer; of two hosts it receives a report, and messages for the bursts that it grants.
 */
static int
open_b(struct testrmem_pair *pair, const struct testrmem_session *session)
{
	const struct testrmem_engine *engine = session->engine;
	uint32_t send_wr = engine->grant != NULL || (engine->flags & ENGINE_MBUF) ? pair->depth : 1;
	uint32_t recv_wr = engine->flags & ENGINE_RECV ? pair->depth : 0;
	struct rmem_qp_conf conf = {.access = engine->target_access};

	if (engine->grant != NULL || testrmem_is_remote(session))
		conf.access |= RMEM_ACCESS_REMOTE_WRITE;
	if (testrmem_is_remote(session))
		send_wr++;
	if (testrmem_is_remote(session) && engine->grant != NULL) {
		send_wr += pair->depth / pair->burst;
		recv_wr += pair->depth / pair->burst;
	}
	conf.max_send_wr = send_wr;
	conf.max_recv_wr = recv_wr;
	return create_end(pair, conf, &pair->cq_b, &pair->qp_b);
}

/*
 * Create the QPs of two directions. Each posts requests of one pair and receives those of its twin,
 * and has a CQ for the completions of either.
 */
static int
open_twins(struct testrmem_pair *pair, const struct testrmem_session *session)
{
	struct testrmem_pair *twin = pair->twin;
	struct rmem_qp_conf conf = {
			.max_send_wr = pair->depth,
			.max_recv_wr = session->engine->flags & ENGINE_RECV ? pair->depth : 0,
			.access = session->engine->target_access,
	};
	int ret;

	ret = create_cq(pair, pair->depth, &pair->cq_a);
	if (ret == 0)
		ret = create_cq(pair, pair->depth, &pair->cq_b);
	if (ret == 0)
		ret = create_cq(pair, pair->depth, &twin->cq_a);
	if (ret == 0)
		ret = create_cq(pair, pair->depth, &twin->cq_b);
	conf.send_cq = pair->cq_a;
	conf.recv_cq = twin->cq_b;
	if (ret == 0)
		ret = create_qp(pair, conf, &pair->qp_a);
	conf.send_cq = twin->cq_a;
	conf.recv_cq = pair->cq_b;
	if (ret == 0)
		ret = create_qp(pair, conf, &pair->qp_b);
	twin->qp_a = pair->qp_b;
	twin->qp_b = pair->qp_a;
	return ret;
}

/* Create the QPs of this host. */
static int
open_ends(struct testrmem_pair *pair, const struct testrmem_session *session)
{
	int ret = 0;

	if (pair->twin != NULL)
		return open_twins(pair, session);
	/* Of two hosts each has one. */
	if (session->conf.listen[0] == '\0')
		ret = open_a(pair, session);
	if (ret == 0 && session->conf.connect[0] == '\0')
		ret = open_b(pair, session);
	return ret;
}

int
testrmem_pair_open(struct testrmem_pair *pair, const struct testrmem_session *session)
{
	int ret;

	pair->depth = (uint32_t)session->conf.depth;
	pair->burst = (uint32_t)session->conf.burst;
	pair->size = (uint32_t)session->conf.size;
	/* The twin has opened and connected the QPs of both. */
	if (pair->is_reverse)
		return 0;
	ret = open_ends(pair, session);
	if (ret == 0 && !testrmem_is_remote(session)) {
		ret = connect_qp(pair->qp_a, pair->qp_b);
		if (ret == 0)
			ret = connect_qp(pair->qp_b, pair->qp_a);
	}
	if (ret != 0)
		testrmem_err("cannot connect QPs on '%s': %s", pair->dev->spec, rte_strerror(-ret));
	return ret;
}

void
testrmem_pair_close(struct testrmem_pair *pair)
{
	int ret;

	if (pair->is_reverse)
		return;
	ret = rmem_qp_destroy(pair->qp_a);
	ret |= rmem_qp_destroy(pair->qp_b);
	if (pair->twin != NULL) {
		ret |= rmem_cq_destroy(pair->twin->cq_a);
		ret |= rmem_cq_destroy(pair->twin->cq_b);
	}
	ret |= rmem_cq_destroy(pair->cq_a);
	ret |= rmem_cq_destroy(pair->cq_b);
	if (ret != 0)
		testrmem_err("a QP or CQ of '%s' is still in use", pair->dev->spec);
	pair->qp_a = NULL;
	pair->qp_b = NULL;
	pair->cq_a = NULL;
	pair->cq_b = NULL;
}

int
testrmem_pair_bufs_get(struct testrmem_pair *pair, struct rmem_sge *sge, uint32_t n)
{
	uint32_t i;
	int ret;

	ret = rmem_pool_get_sges(pair->dev->pool, sge, n);
	if (ret < 0) {
		testrmem_fail(pair->worker->session,
				"the pool of '%s' has no %" PRIu32 " buffers left", pair->dev->spec,
				n);
		return ret;
	}
	for (i = 0; i < n; i++)
		sge[i].length = pair->size;
	return 0;
}

void
testrmem_pair_bufs_put(struct testrmem_pair *pair, struct rmem_sge *sge, uint32_t n)
{
	rmem_pool_put_sges(pair->dev->pool, sge, n);
}

int
testrmem_pair_ring_alloc(struct testrmem_pair *pair)
{
	uint32_t i;
	int ret;

	pair->wr = testrmem_alloc(pair->depth, sizeof(*pair->wr));
	pair->sge = testrmem_alloc(pair->depth, sizeof(*pair->sge));
	if (pair->wr == NULL || pair->sge == NULL)
		return -ENOMEM;
	ret = testrmem_pair_bufs_get(pair, pair->sge, pair->depth);
	if (ret != 0) {
		/* There are no buffers to put back. */
		rte_free(pair->sge);
		pair->sge = NULL;
		return ret;
	}
	for (i = 0; i < pair->depth; i++) {
		testrmem_fill(testrmem_ptr(pair->sge[i].addr), pair->size,
				((uint64_t)pair->id << 32) + i + 1);
		pair->wr[i].sg_list = &pair->sge[i];
		pair->wr[i].num_sge = 1;
	}
	return 0;
}

void
testrmem_pair_ring_free(struct testrmem_pair *pair)
{
	if (pair->sge != NULL && pair->wr != NULL)
		testrmem_pair_bufs_put(pair, pair->sge, pair->depth);
	rte_free(pair->sge);
	rte_free(pair->wr);
	pair->sge = NULL;
	pair->wr = NULL;
}

int
testrmem_pair_post(struct testrmem_pair *pair, uint32_t n)
{
	struct rmem_send_wr *wr = &pair->wr[pair->slot];
	int ret;

	if (n == 0)
		return 0;
	wr[n - 1].wr_id = pair->posted + n;
	wr[n - 1].flags |= RMEM_SEND_SIGNALED;
	ret = rmem_post_send(pair->qp_a, wr, (uint16_t)n);
	wr[n - 1].flags &= (uint8_t)~RMEM_SEND_SIGNALED;
	if (unlikely(ret != (int)n))
		return testrmem_pair_refused(pair, "post", ret);
	pair->posted += n;
	pair->slot += n;
	if (pair->slot == pair->depth)
		pair->slot = 0;
	if (pair->posted == pair->ops_limit)
		pair->is_done = true;
	return 0;
}

int
testrmem_pair_poll(struct testrmem_pair *pair)
{
	struct testrmem_counters *cnt = &pair->worker->cnt;
	struct rmem_wc wc[POLL_BURST];
	uint64_t before = pair->completed;
	int i, ret;

	ret = testrmem_remote_poll(pair, pair->cq_a, wc, POLL_BURST);
	if (unlikely(ret < 0))
		return testrmem_pair_refused(pair, "poll", ret);
	for (i = 0; i < ret; i++) {
		if (unlikely(wc[i].status != RMEM_WC_SUCCESS))
			return testrmem_pair_failed(
					pair, pair->worker->session->engine->name, &wc[i]);
		pair->completed = wc[i].wr_id;
	}
	if (pair->completed != before) {
		testrmem_count(&cnt->ops, pair->completed - before);
		testrmem_count(&cnt->bytes, (pair->completed - before) * pair->size);
	}
	return (int)(pair->posted - pair->completed);
}

int
testrmem_pair_drain(struct testrmem_pair *pair)
{
	uint64_t deadline = rte_rdtsc() + DRAIN_SECONDS * rte_get_tsc_hz();
	int ret;

	do {
		ret = pair->worker->session->engine->burst(pair, true);
		if (ret <= 0)
			return ret;
	} while (rte_rdtsc() < deadline);
	testrmem_fail(pair->worker->session,
			"lcore %u, QP pair %" PRIu32 ": %d requests did not complete in %d s",
			pair->worker->lcore_id, pair->id, ret, DRAIN_SECONDS);
	return -ETIMEDOUT;
}

int
testrmem_pair_compare(struct testrmem_pair *pair, uint32_t slot)
{
	const struct rmem_send_wr *wr = &pair->wr[slot];
	uint64_t local = pair->sge[slot].addr;
	uint64_t remote = wr->rdma.remote_addr;

	if (memcmp(testrmem_ptr(local), testrmem_ptr(remote), pair->size) == 0)
		return 0;
	testrmem_count(&pair->worker->cnt.errors, 1);
	testrmem_fail(pair->worker->session,
			"QP pair %" PRIu32 ": %" PRIu32 " bytes at 0x%" PRIx64
			" differ from those at 0x%" PRIx64,
			pair->id, pair->size, local, remote);
	return -EIO;
}

int
testrmem_pair_rdma_setup(struct testrmem_pair *pair, uint8_t opcode)
{
	uint32_t i;
	int ret;

	ret = testrmem_pair_ring_alloc(pair);
	if (ret != 0)
		return ret;
	for (i = 0; i < pair->depth; i++)
		pair->wr[i].opcode = opcode;
	return 0;
}

int
testrmem_pair_rdma_burst(struct testrmem_pair *pair, bool is_draining)
{
	uint32_t n = is_draining ? 0 : testrmem_pair_nb_free(pair);
	struct rmem_send_wr *wr = &pair->wr[pair->slot];
	uint32_t i;
	int ret;

	for (i = 0; i < n; i++) {
		const struct testrmem_target *target = testrmem_pair_target(pair);

		wr[i].rdma.remote_addr = target->addr;
		wr[i].rdma.rkey = target->rkey;
	}
	ret = testrmem_pair_post(pair, n);
	return ret != 0 ? ret : testrmem_pair_poll(pair);
}
