/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_malloc.h>

#include "cycle.h"
#include "remote.h"

#define POLL_BURST 32

/* Which request of a train is in flight; part of the wr_id. */
enum stage {
	STAGE_IDLE,
	STAGE_BIND,
	STAGE_WRITE,
	STAGE_INV,
};

#define STAGE_BITS 2
#define STAGE_MASK ((UINT64_C(1) << STAGE_BITS) - 1)

struct testrmem_cycle {
	const struct cycle_ops *ops;
	struct cycle_train *trains;
	uint32_t nb_trains;
	uint32_t nb_active; /* Not idle. */
	uint64_t started;   /* Operations. */
	bool is_checking;   /* Compare the next train that arrives. */
	struct rmem_sge *dst;
	struct testrmem_grant *grants;
	struct rmem_send_wr *wr;
};

static const char *
stage_name(uint64_t stage)
{
	static const char *const names[] = {"request", "bind", "WRITE", "LOCAL_INV"};

	return names[stage & STAGE_MASK];
}

static const struct testrmem_grant_kind *
kind_of(const struct testrmem_pair *pair)
{
	return pair->worker->session->engine->grant;
}

static int
alloc_grants(struct testrmem_pair *pair, struct testrmem_cycle *cycle)
{
	uint32_t i;
	int ret = 0;

	for (i = 0; i < pair->depth && ret == 0; i++)
		ret = kind_of(pair)->alloc(pair, &cycle->grants[i]);
	return ret;
}

/* Divide the arrays of the cycle into trains. */
static void
init_trains(struct testrmem_pair *pair, struct testrmem_cycle *cycle)
{
	size_t first;
	uint32_t i;

	for (i = 0; i < cycle->nb_trains; i++) {
		struct cycle_train *train = &cycle->trains[i];

		first = (size_t)i * pair->burst;
		train->index = i;
		train->src = &pair->sge[first];
		train->dst = &cycle->dst[first];
		train->grant = &cycle->grants[first];
		train->bind = &cycle->wr[3 * first];
		train->write = train->bind + pair->burst;
		train->inv = train->write + pair->burst;
	}
}

int
cycle_setup(struct testrmem_pair *pair, const struct cycle_ops *ops)
{
	struct testrmem_cycle *cycle;
	int ret;

	ret = testrmem_pair_ring_alloc(pair);
	if (ret != 0)
		return ret;
	cycle = testrmem_alloc(1, sizeof(*cycle));
	if (cycle == NULL)
		return -ENOMEM;
	pair->priv = cycle;
	cycle->ops = ops;
	cycle->is_checking = ops->is_checked;
	cycle->nb_trains = pair->depth / pair->burst;
	cycle->trains = testrmem_alloc(cycle->nb_trains, sizeof(*cycle->trains));
	cycle->dst = testrmem_alloc(pair->depth, sizeof(*cycle->dst));
	cycle->grants = testrmem_alloc(pair->depth, sizeof(*cycle->grants));
	cycle->wr = testrmem_alloc(pair->depth, 3 * sizeof(*cycle->wr));
	if (cycle->trains == NULL || cycle->dst == NULL || cycle->grants == NULL ||
			cycle->wr == NULL)
		return -ENOMEM;
	init_trains(pair, cycle);
	return alloc_grants(pair, cycle);
}

/* The buffers of trains in progress. */
static void
put_trains(struct testrmem_pair *pair, struct testrmem_cycle *cycle)
{
	uint32_t i;

	for (i = 0; cycle->trains != NULL && i < cycle->nb_trains; i++) {
		if (cycle->trains[i].stage != STAGE_IDLE)
			testrmem_pair_bufs_put(pair, cycle->trains[i].dst, cycle->trains[i].nb);
	}
}

void
cycle_disconnect(struct testrmem_pair *pair)
{
	struct testrmem_cycle *cycle = pair->priv;
	uint32_t i;

	if (cycle == NULL || cycle->grants == NULL)
		return;
	/* Posted requests refer to them until then. */
	(void)rmem_qp_reset(pair->qp_b);
	for (i = 0; i < pair->depth; i++)
		testrmem_grant_free(&cycle->grants[i]);
	rte_free(cycle->grants);
	cycle->grants = NULL;
}

void
cycle_teardown(struct testrmem_pair *pair)
{
	struct testrmem_cycle *cycle = pair->priv;

	if (cycle != NULL) {
		put_trains(pair, cycle);
		rte_free(cycle->wr);
		rte_free(cycle->dst);
		rte_free(cycle->trains);
		rte_free(cycle);
		pair->priv = NULL;
	}
	testrmem_pair_ring_free(pair);
}

static void
fill_write(struct cycle_train *train, uint32_t i)
{
	struct rmem_send_wr *wr = &train->write[i];

	wr->opcode = RMEM_WR_RDMA_WRITE;
	wr->sg_list = &train->src[i];
	wr->num_sge = 1;
	wr->rdma.remote_addr = train->grant[i].remote_addr;
	wr->rdma.rkey = testrmem_grant_rkey(&train->grant[i]);
}

static void
fill_inv(struct cycle_train *train, uint32_t i)
{
	train->inv[i].opcode = RMEM_WR_LOCAL_INV;
	train->inv[i].invalidate_rkey = testrmem_grant_rkey(&train->grant[i]);
}

/* Post the requests of one stage in one call, the last one signaled. */
static int
post_stage(struct testrmem_pair *pair, struct cycle_train *train, enum stage stage)
{
	struct rmem_qp *qp = stage == STAGE_WRITE ? pair->qp_a : pair->qp_b;
	struct rmem_send_wr *wr = stage == STAGE_BIND ? train->bind
			: stage == STAGE_WRITE        ? train->write
						      : train->inv;
	uint64_t wr_id = ((uint64_t)train->index << STAGE_BITS) | stage;
	uint32_t i;
	int ret;

	for (i = 0; i < train->nb; i++) {
		wr[i].wr_id = wr_id;
		wr[i].flags = 0;
	}
	wr[train->nb - 1].flags = RMEM_SEND_SIGNALED;
	train->stage = stage;
	ret = rmem_post_send(qp, wr, (uint16_t)train->nb);
	if (unlikely(ret != (int)train->nb))
		return testrmem_pair_refused(pair, stage_name(stage), ret);
	return 0;
}

/* Take buffers from the pool and grant access to them. */
static int
start_train(struct testrmem_pair *pair, struct cycle_train *train)
{
	struct testrmem_cycle *cycle = pair->priv;
	uint32_t nb = (uint32_t)RTE_MIN((uint64_t)pair->burst, pair->ops_limit - cycle->started);
	uint32_t i;
	int ret;

	if (nb == 0) {
		pair->is_done = true;
		return 0;
	}
	ret = cycle->ops->fill(pair, train, nb);
	if (ret <= 0) {
		pair->is_done = true;
		return ret;
	}
	nb = (uint32_t)ret;
	ret = testrmem_pair_bufs_get(pair, train->dst, nb);
	if (ret != 0)
		return ret;
	train->nb = nb;
	train->nb_written = nb;
	cycle->started += nb;
	cycle->nb_active++;
	for (i = 0; i < nb; i++) {
		if (unlikely(cycle->is_checking))
			memset(testrmem_ptr(train->dst[i].addr), 0, pair->size);
		train->dst[i].length = train->src[i].length;
		kind_of(pair)->fill(pair, &train->grant[i], &train->dst[i], &train->bind[i]);
	}
	return post_stage(pair, train, STAGE_BIND);
}

static int
compare_train(struct testrmem_pair *pair, const struct cycle_train *train)
{
	uint32_t i;

	for (i = 0; i < train->nb_written; i++) {
		if (memcmp(testrmem_ptr(train->src[i].addr), testrmem_ptr(train->dst[i].addr),
				    train->src[i].length) == 0)
			continue;
		testrmem_count(&pair->worker->cnt.errors, 1);
		testrmem_fail(pair->worker->session,
				"QP pair %" PRIu32 ": buffer at 0x%" PRIx64
				" differs from the data that the peer wrote",
				pair->id, train->dst[i].addr);
		return -EIO;
	}
	return 0;
}

/* Count the buffers and put them back, after their keys were revoked. */
static int
end_train(struct testrmem_pair *pair, struct cycle_train *train)
{
	struct testrmem_counters *cnt = &pair->worker->cnt;
	struct testrmem_cycle *cycle = pair->priv;
	uint64_t bytes = 0;
	uint32_t i;
	int ret;

	for (i = 0; i < train->nb_written; i++)
		bytes += train->src[i].length;
	ret = cycle->ops->arrived != NULL ? cycle->ops->arrived(pair, train) : 0;
	if (ret == 0 && unlikely(cycle->is_checking))
		ret = compare_train(pair, train);
	testrmem_pair_bufs_put(pair, train->dst, train->nb);
	train->stage = STAGE_IDLE;
	cycle->nb_active--;
	testrmem_count(&cnt->invs, train->nb);
	if (ret != 0)
		return ret;
	pair->completed += train->nb_written;
	testrmem_count(&cnt->ops, train->nb_written);
	testrmem_count(&cnt->bytes, bytes);
	return 0;
}

static int
advance_train(struct testrmem_pair *pair, struct cycle_train *train)
{
	const struct testrmem_cycle *cycle = pair->priv;
	uint32_t i;

	switch (train->stage) {
	case STAGE_BIND:
		testrmem_count(&pair->worker->cnt.binds, train->nb);
		if (cycle->ops->announce != NULL) {
			train->stage = STAGE_WRITE;
			return cycle->ops->announce(pair, train);
		}
		for (i = 0; i < train->nb; i++)
			fill_write(train, i);
		return post_stage(pair, train, STAGE_WRITE);
	case STAGE_WRITE:
		for (i = 0; i < train->nb; i++)
			fill_inv(train, i);
		return post_stage(pair, train, STAGE_INV);
	default:
		return end_train(pair, train);
	}
}

static int
poll_trains(struct testrmem_pair *pair, struct rmem_cq *cq)
{
	struct testrmem_cycle *cycle = pair->priv;
	struct rmem_wc wc[POLL_BURST];
	int i, n, ret;

	n = testrmem_remote_poll(pair, cq, wc, POLL_BURST);
	if (unlikely(n < 0))
		return testrmem_pair_refused(pair, "poll", n);
	for (i = 0; i < n; i++) {
		if (unlikely(wc[i].status != RMEM_WC_SUCCESS))
			return testrmem_pair_failed(pair, stage_name(wc[i].wr_id), &wc[i]);
		if (wc[i].opcode == RMEM_WC_RECV_RDMA_WITH_IMM || wc[i].opcode == RMEM_WC_SEND)
			ret = cycle->ops->received(pair, &wc[i]);
		else
			ret = advance_train(pair, &cycle->trains[wc[i].wr_id >> STAGE_BITS]);
		if (unlikely(ret != 0))
			return ret;
	}
	return 0;
}

int
cycle_written(struct testrmem_pair *pair, uint32_t index, uint32_t nb)
{
	struct testrmem_cycle *cycle = pair->priv;

	if (index >= cycle->nb_trains || cycle->trains[index].stage != STAGE_WRITE ||
			nb > cycle->trains[index].nb) {
		testrmem_count(&pair->worker->cnt.errors, 1);
		testrmem_fail(pair->worker->session,
				"QP pair %" PRIu32 ": the other host reports %" PRIu32
				" WRITEs to burst %" PRIu32 ", which it was not granted",
				pair->id, nb, index);
		return -EIO;
	}
	cycle->trains[index].nb_written = nb;
	return advance_train(pair, &cycle->trains[index]);
}

int
cycle_burst(struct testrmem_pair *pair, bool is_draining)
{
	struct testrmem_cycle *cycle = pair->priv;
	uint32_t i;
	int ret = 0;

	if (cycle->ops->is_held != NULL && cycle->ops->is_held(pair))
		is_draining = true;
	for (i = 0; i < cycle->nb_trains && !is_draining && !pair->is_done; i++) {
		if (cycle->trains[i].stage == STAGE_IDLE)
			ret = start_train(pair, &cycle->trains[i]);
		if (unlikely(ret != 0))
			return ret;
	}
	ret = poll_trains(pair, pair->cq_b);
	if (likely(ret == 0) && likely(pair->cq_a != NULL))
		ret = poll_trains(pair, pair->cq_a);
	return ret != 0 ? ret : (int)cycle->nb_active;
}

int
cycle_verify(struct testrmem_pair *pair)
{
	struct testrmem_cycle *cycle = pair->priv;
	int ret;

	cycle->is_checking = true;
	pair->ops_limit = UINT64_MAX;
	ret = start_train(pair, &cycle->trains[0]);
	return ret != 0 ? ret : testrmem_pair_drain(pair);
}
