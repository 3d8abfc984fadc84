/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Mode atomic: FETCH_AND_ADD of one to counters among the targets; in the end their sum is the
 * number of operations. Finally a COMPARE_AND_SWAP is tested. Of two hosts the listening one has
 * the counters and adds them up; the connecting one swaps the first one and restores it.
 */

#include <inttypes.h>
#include <string.h>
#include <errno.h>

#include "remote.h"

static int
atomic_setup(struct testrmem_pair *pair)
{
	uint32_t i;
	int ret;

	ret = testrmem_pair_ring_alloc(pair);
	if (ret != 0)
		return ret;
	for (i = 0; i < pair->depth; i++) {
		pair->wr[i].opcode = RMEM_WR_ATOMIC_FETCH_AND_ADD;
		pair->wr[i].atomic.compare_add = 1;
	}
	return 0;
}

static int
atomic_burst(struct testrmem_pair *pair, bool is_draining)
{
	uint32_t n = is_draining ? 0 : testrmem_pair_nb_free(pair);
	struct rmem_send_wr *wr = &pair->wr[pair->slot];
	uint32_t i;
	int ret;

	for (i = 0; i < n; i++) {
		const struct testrmem_target *target = testrmem_pair_target(pair);

		wr[i].atomic.remote_addr = target->addr;
		wr[i].atomic.rkey = target->rkey;
	}
	ret = testrmem_pair_post(pair, n);
	return ret != 0 ? ret : testrmem_pair_poll(pair);
}

static uint64_t
counter_at(uint64_t addr)
{
	return __atomic_load_n((uint64_t *)testrmem_ptr(addr), __ATOMIC_ACQUIRE);
}

/* Swap the first counter for its complement, after the run. */
static int
try_swap(struct testrmem_pair *pair)
{
	struct rmem_send_wr *wr = &pair->wr[pair->slot];
	uint64_t old = counter_at(pair->targets[0].addr);
	uint64_t result, now;
	int ret;

	wr->opcode = RMEM_WR_ATOMIC_CMP_AND_SWP;
	wr->atomic.remote_addr = pair->targets[0].addr;
	wr->atomic.rkey = pair->targets[0].rkey;
	wr->atomic.compare_add = old;
	wr->atomic.swap = ~old;
	memset(testrmem_ptr(wr->sg_list->addr), 0xa5, sizeof(result));
	ret = testrmem_pair_post(pair, 1);
	if (ret == 0)
		ret = testrmem_pair_drain(pair);
	if (ret != 0)
		return ret;
	memcpy(&result, testrmem_ptr(wr->sg_list->addr), sizeof(result));
	now = counter_at(pair->targets[0].addr);
	if (result == old && now == ~old)
		return 0;
	testrmem_fail(pair->worker->session,
			"QP pair %" PRIu32 ": swap of %" PRIu64 " gave %" PRIu64
			" and left %" PRIu64,
			pair->id, old, result, now);
	return -EIO;
}

static int
check_sum(struct testrmem_pair *pair)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < pair->nb_targets; i++)
		sum += counter_at(pair->targets[i].addr);
	if (sum == pair->completed)
		return 0;
	testrmem_count(&pair->worker->cnt.errors, 1);
	testrmem_fail(pair->worker->session,
			"QP pair %" PRIu32 ": its counters hold %" PRIu64 " after %" PRIu64
			" additions of 1",
			pair->id, sum, pair->completed);
	return -EIO;
}

static int
atomic_verify(struct testrmem_pair *pair)
{
	int ret = check_sum(pair);

	return ret != 0 ? ret : try_swap(pair);
}

static int
listener_verify(struct testrmem_pair *pair)
{
	int ret = testrmem_remote_check(pair);

	return ret != 0 ? ret : check_sum(pair);
}

/*
 * Execute a request to the first counter of the other host; returns the previous value, or -errno
 * with a message.
 */
static int
execute(struct testrmem_pair *pair, uint8_t opcode, uint64_t compare_add, uint64_t swap,
		uint64_t *old)
{
	struct rmem_send_wr *wr = &pair->wr[pair->slot];
	int ret;

	wr->opcode = opcode;
	wr->atomic.remote_addr = pair->targets[0].addr;
	wr->atomic.rkey = pair->targets[0].rkey;
	wr->atomic.compare_add = compare_add;
	wr->atomic.swap = swap;
	ret = testrmem_remote_execute(pair, wr);
	if (ret > 0) {
		testrmem_fail(pair->worker->session, "QP pair %" PRIu32 ": atomic failed: %s",
				pair->id, rmem_wc_status_str(ret));
		ret = -EIO;
	}
	memcpy(old, testrmem_ptr(wr->sg_list->addr), sizeof(*old));
	return ret;
}

static int
connector_verify(struct testrmem_pair *pair)
{
	uint64_t first, second = 0, third = 0;
	int ret;

	ret = execute(pair, RMEM_WR_ATOMIC_FETCH_AND_ADD, 0, 0, &first);
	if (ret == 0)
		ret = execute(pair, RMEM_WR_ATOMIC_CMP_AND_SWP, first, ~first, &second);
	if (ret == 0)
		ret = execute(pair, RMEM_WR_ATOMIC_CMP_AND_SWP, ~first, first, &third);
	if (ret != 0)
		return ret;
	if (second == first && third == ~first)
		return testrmem_remote_report(pair);
	testrmem_fail(pair->worker->session,
			"QP pair %" PRIu32 ": swaps of %" PRIu64 " gave %" PRIu64 " and %" PRIu64,
			pair->id, first, second, third);
	return -EIO;
}

const struct testrmem_engine testrmem_listener_atomic = {
		.name = "atomic",
		.verified = "the counters hold the number of operations of the other host",
		.capa = RMEM_DEV_CAPA_ATOMIC,
		.default_size = sizeof(uint64_t),
		.max_size = sizeof(uint64_t),
		.bufs_per_op = 1,
		.target_access = RMEM_ACCESS_REMOTE_ATOMIC,
		.flags = ENGINE_PEER_COUNTED,
		.setup = testrmem_passive_setup,
		.burst = testrmem_passive_burst,
		.verify = listener_verify,
		.teardown = testrmem_pair_ring_free,
};

const struct testrmem_engine testrmem_connector_atomic = {
		.name = "atomic",
		.verified = "COMPARE_AND_SWAP works, and the other host adds its counters up",
		.capa = RMEM_DEV_CAPA_ATOMIC,
		.default_size = sizeof(uint64_t),
		.max_size = sizeof(uint64_t),
		.bufs_per_op = 1,
		.setup = atomic_setup,
		.burst = atomic_burst,
		.verify = connector_verify,
		.teardown = testrmem_pair_ring_free,
};

const struct testrmem_engine testrmem_engine_atomic = {
		.name = "atomic",
		.help = "FETCH_AND_ADD to random counters, 8 bytes",
		.verified = "the counters hold the number of operations, and a COMPARE_AND_SWAP works",
		.capa = RMEM_DEV_CAPA_ATOMIC,
		.default_size = sizeof(uint64_t),
		.max_size = sizeof(uint64_t),
		.bufs_per_op = 1,
		.target_access = RMEM_ACCESS_REMOTE_ATOMIC,
		.listener = &testrmem_listener_atomic,
		.connector = &testrmem_connector_atomic,
		.setup = atomic_setup,
		.burst = atomic_burst,
		.verify = atomic_verify,
		.teardown = testrmem_pair_ring_free,
};
