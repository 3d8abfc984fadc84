/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The engines of two devices agree with a model of both memories on a network that loses,
 * duplicates, reorders, corrupts and truncates packets.
 *
 * Each request in flight has a slot of its own in the memory of either side, so that requests do
 * not overlap. A side sends to the other, both concurrently, on a virtual clock.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include <rmem_driver.h>

#include "sides.h"

#define MAX_IDLE 200000

static void
fill(uint8_t *to, uint32_t length)
{
	uint32_t i;

	for (i = 0; i < length; i++)
		to[i] = (uint8_t)sim_random(256);
}

static uint32_t
random_length(void)
{
	switch (sim_random(4)) {
	case 0:
		return sim_random(64);
	case 1:
		return 4096;
	default:
		return sim_random(SLOT_SIZE);
	}
}

static void
post_one(struct side *side)
{
	static const uint8_t opcodes[] = {RMEM_WR_RDMA_WRITE, RMEM_WR_RDMA_READ, RMEM_WR_SEND,
			RMEM_WR_RDMA_WRITE_WITH_IMM, RMEM_WR_ATOMIC_FETCH_AND_ADD,
			RMEM_WR_ATOMIC_CMP_AND_SWP, RMEM_WR_ATOMIC_WRITE};
	const struct side *peer = peer_of(side);
	uint32_t slot = (uint32_t)(side->posted % SLOTS);
	uint8_t *local = side->local + (size_t)slot * SLOT_SIZE;
	uint64_t remote = (uintptr_t)peer->target + (uint64_t)slot * SLOT_SIZE;
	struct rmem_send_wr *wr = &side->wr[slot];
	struct rmem_sge *sge = &side->sge[slot];

	*wr = (struct rmem_send_wr){.wr_id = side->posted,
			.opcode = opcodes[sim_random(RTE_DIM(opcodes))],
			.flags = RMEM_SEND_SIGNALED,
			.sg_list = sge,
			.num_sge = 1};
	*sge = (struct rmem_sge){.addr = (uintptr_t)local,
			.length = random_length(),
			.lkey = side->mr->lkey};
	fill(local, sge->length);
	if (wr->opcode == RMEM_WR_ATOMIC_FETCH_AND_ADD ||
			wr->opcode == RMEM_WR_ATOMIC_CMP_AND_SWP) {
		sge->length = sizeof(uint64_t);
		wr->atomic.remote_addr = remote;
		wr->atomic.rkey = peer->mr->rkey;
		wr->atomic.compare_add = sim_random(1000);
		wr->atomic.swap = sim_random(1000);
		if (sim_random(2) == 0)
			memcpy(&wr->atomic.compare_add, peer->model + (size_t)slot * SLOT_SIZE, 8);
	} else {
		if (wr->opcode == RMEM_WR_ATOMIC_WRITE)
			sge->length = sizeof(uint64_t);
		wr->rdma.remote_addr = remote;
		wr->rdma.rkey = peer->mr->rkey;
	}
	if (wr->opcode == RMEM_WR_SEND || wr->opcode == RMEM_WR_RDMA_WRITE_WITH_IMM)
		wr->imm_data = (uint32_t)side->sent;
	if (wr->opcode == RMEM_WR_SEND) {
		sge->length = RTE_MAX(sge->length, (uint32_t)sizeof(side->sent));
		memcpy(local, &side->sent, sizeof(side->sent));
	}
	side->sent += wr->opcode == RMEM_WR_SEND || wr->opcode == RMEM_WR_RDMA_WRITE_WITH_IMM;
	side->posted++;
	TEST_ASSERT(rmem_post_send(side->qp, wr, 1) == 1);
}

/* A request has succeeded: apply it to the model, and compare. */
static void
check_done(struct side *side, uint32_t slot)
{
	const struct rmem_send_wr *wr = &side->wr[slot];
	struct side *peer = peer_of(side);
	uint8_t *local = side->local + (size_t)slot * SLOT_SIZE;
	uint8_t *model = peer->model + (size_t)slot * SLOT_SIZE;
	uint64_t before, after;

	switch (wr->opcode) {
	case RMEM_WR_RDMA_WRITE:
	case RMEM_WR_RDMA_WRITE_WITH_IMM:
	case RMEM_WR_ATOMIC_WRITE:
		memcpy(model, local, side->sge[slot].length);
		break;
	case RMEM_WR_RDMA_READ:
		TEST_MEM(local, model, side->sge[slot].length);
		break;
	case RMEM_WR_ATOMIC_FETCH_AND_ADD:
	case RMEM_WR_ATOMIC_CMP_AND_SWP:
		TEST_MEM(local, model, sizeof(before));
		memcpy(&before, model, sizeof(before));
		after = wr->opcode == RMEM_WR_ATOMIC_FETCH_AND_ADD ? before + wr->atomic.compare_add
				: before == wr->atomic.compare_add ? wr->atomic.swap
								   : before;
		memcpy(model, &after, sizeof(after));
		break;
	default:
		break;
	}
	TEST_MEM(peer->target + (size_t)slot * SLOT_SIZE, model, SLOT_SIZE);
}

/* Messages arrive once each, in order, with their bytes. */
static void
check_message(struct side *side, const struct rmem_wc *wc)
{
	const uint8_t *got = recv_buf(side, wc->wr_id);
	uint64_t number;

	TEST_EQ(wc->wr_id, side->received);
	if (wc->opcode == RMEM_WC_RECV_RDMA_WITH_IMM) {
		TEST_EQ(wc->imm_data, (uint32_t)side->received);
	} else {
		memcpy(&number, got, sizeof(number));
		TEST_EQ(number, side->received);
	}
	side->received++;
	TEST_RUN(post_recv(side, side->received + NB_RECV - 1));
}

/* Poll both CQs of a side: the number of completions, or -1. */
static int
poll_side(struct side *side, bool *has_failed)
{
	struct rmem_wc wc;
	int n = 0;

	while (!*has_failed && rmem_poll_cq(side->recv_cq, &wc, 1) == 1) {
		if (wc.status == RMEM_WC_WR_FLUSH_ERR)
			*has_failed = true;
		else if (wc.status != RMEM_WC_SUCCESS ||
				TEST_TRY(check_message(side, &wc)) != TEST_SUCCESS)
			return -1;
		n++;
	}
	while (!*has_failed && rmem_poll_cq(side->send_cq, &wc, 1) == 1) {
		if (wc.status == RMEM_WC_RETRY_EXC_ERR) {
			side->failures++;
			*has_failed = true;
		} else if (wc.status != RMEM_WC_SUCCESS || wc.wr_id != side->done ||
				TEST_TRY(check_done(side, (uint32_t)(side->done % SLOTS))) !=
						TEST_SUCCESS) {
			test_note("request %" PRIu64 ": status %d, request %" PRIu64 " expected",
					wc.wr_id, wc.status, side->done);
			return -1;
		} else {
			side->done++;
		}
		n++;
	}
	return n;
}

static void
run(uint64_t nb_ops)
{
	bool has_failed = false;
	uint32_t idle = 0;
	unsigned int i;
	int n = 0;

	connect_sides();
	while (sides[0].nb_ops + sides[1].nb_ops < 2 * nb_ops || sides[0].done != sides[0].posted ||
			sides[1].done != sides[1].posted) {
		idle = n == 0 ? idle + 1 : 0;
		TEST_ASSERT(idle < MAX_IDLE);
		n = 0;
		for (i = 0; i < 2; i++) {
			struct side *side = &sides[i];
			int got;

			while (side->nb_ops < nb_ops && side->posted - side->done < SLOTS &&
					sim_random(4) != 0) {
				post_one(side);
				side->nb_ops++;
				n++;
			}
			got = poll_side(side, &has_failed);
			TEST_ASSERT(got >= 0);
			n += got;
		}
		if (has_failed)
			connect_sides();
		has_failed = false;
		sim_step(idle > 100);
	}
	for (i = 0; i < 2; i++)
		TEST_MEM(sides[i].target, sides[i].model, SIZE);
}

static uint64_t
env_or(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text != NULL ? strtoull(text, NULL, 0) : otherwise;
}

static void
run_all(const struct sim_faults *faults, bool is_failure_ok)
{
	uint64_t seed = env_or("RMEM_SEED", rte_rdtsc() % 1000000);
	uint64_t nb_ops = env_or("RMEM_TEST_WIRE_OPS", 40);
	uint64_t rewinds = 0, icrc_errors = 0, duplicates = 0;
	struct rmem_dev_stats stats;
	uint32_t mtu;
	unsigned int i;

	test_note("RMEM_SEED=%" PRIu64, seed);
	for (mtu = 256; mtu <= RWIRE_MAX_MTU; mtu *= 2) {
		memset(&sim_counts, 0, sizeof(sim_counts));
		sim_start(seed + mtu, faults);
		for (i = 0; i < 2; i++)
			open_side(&sides[i], i, mtu);
		run(nb_ops);
		TEST_OK(rmem_dev_stats_get(sides[0].dev, &stats));
		test_note("MTU %u: %" PRIu64 " packets, %" PRIu64 " lost, %" PRIu64
			  " duplicated, %" PRIu64 " damaged; %" PRIu64 " rewinds, %" PRIu64
			  " timeouts; %" PRIu64 " and %" PRIu64 " failures",
				mtu, sim_counts.sent, sim_counts.lost, sim_counts.dups,
				sim_counts.damaged, stats.wire_retransmits, stats.wire_timeouts,
				sides[0].failures, sides[1].failures);
		TEST_ASSERT(sim_counts.sent_of[SIDE_CLASS(0)] != 0);
		TEST_ASSERT(sim_counts.sent_of[SIDE_CLASS(1)] != 0);
		TEST_EQ(sim_counts.sent_of[SIDE_CLASS(0)] + sim_counts.sent_of[SIDE_CLASS(1)],
				sim_counts.sent);
		TEST_ASSERT(is_failure_ok || sides[0].failures + sides[1].failures == 0);
		rewinds += stats.wire_retransmits;
		icrc_errors += stats.wire_icrc_errors;
		duplicates += stats.wire_duplicates;
		for (i = 0; i < 2; i++)
			close_side(&sides[i]);
	}
	TEST_ASSERT(faults->loss == 0 || rewinds != 0);
	TEST_ASSERT(faults->corrupt == 0 || icrc_errors != 0);
	TEST_ASSERT(faults->dup == 0 || duplicates != 0);
}

#define SHARE(percent) ((uint32_t)((percent) * (double)UINT32_MAX / 100))

TEST(wire_sim, network_without_faults_changes_no_result)
{
	const struct sim_faults faults = {0};

	run_all(&faults, false);
}

TEST(wire_sim, duplicated_and_reordered_packets_change_no_result)
{
	const struct sim_faults faults = {.dup = SHARE(10), .delay_us = 30};

	run_all(&faults, false);
}

TEST(wire_sim, lost_and_corrupted_packets_change_no_result)
{
	const struct sim_faults faults = {.loss = SHARE(2),
			.dup = SHARE(2),
			.corrupt = SHARE(1),
			.trunc = SHARE(1),
			.delay_us = 4};

	run_all(&faults, true);
}

TEST(wire_sim, loss_of_a_third_of_the_packets_changes_no_result)
{
	const struct sim_faults faults = {.loss = SHARE(30), .delay_us = 16};

	run_all(&faults, true);
}

static void
setup(void)
{
}

TEST_SUITE(wire_sim, setup, setup);
