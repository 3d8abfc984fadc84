/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Requests of soft and of rdma_rxe cross each other, many at a time, also while packets of soft are
 * lost, duplicated, reordered and corrupted: bytes are transferred, SENDs and atomics once each.
 *
 * Each request has a slot of its own in the memory of either end.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "pair.h"

#define SLOTS     12
#define SLOT_SIZE 16384
#define NB_RECV   8

struct flow {
	struct pair_end *end;
	uint8_t opcode[SLOTS];
	uint32_t length[SLOTS];
	uint32_t posted, done, nb_ops;
	uint32_t sent;     /* SENDs */
	uint32_t received; /* SENDs of the peer */
	uint64_t added;    /* by FETCH_ADDs, to the last 8 bytes of the peer's target area */
};

static struct flow flows[2];
/*
 * rdma_rxe completes a READ without its last bytes if an acknowledgement overtakes a response, so
 * it WRITEs instead where packets are reordered.
 */
static bool has_rxe_reads;

static void
fill(uint8_t *to, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		to[i] = (uint8_t)rand();
}

static int
post_recv(struct pair_end *end, uint32_t i)
{
	return pair_post_recv(end, i, i % NB_RECV * SLOT_SIZE, SLOT_SIZE);
}

static int
post_one(struct flow *flow)
{
	static const uint8_t opcodes[] = {RMEM_WR_RDMA_WRITE, RMEM_WR_RDMA_READ, RMEM_WR_SEND,
			RMEM_WR_RDMA_WRITE, RMEM_WR_RDMA_READ, RMEM_WR_ATOMIC_FETCH_AND_ADD};
	uint32_t slot = flow->posted % SLOTS, offset = slot * SLOT_SIZE;
	uint32_t length = rand() % 2 == 0 ? (uint32_t)rand() % SLOT_SIZE : (uint32_t)rand() % 100;
	uint8_t opcode = opcodes[(unsigned int)rand() % RTE_DIM(opcodes)];
	uint8_t *local = flow->end->memory + PAIR_LOCAL + offset;
	struct pair_end *peer = pair_peer(flow->end);
	struct rmem_send_wr wr;
	struct rmem_sge sge;

	if (opcode == RMEM_WR_RDMA_READ && flow->end == &pair_rxe && !has_rxe_reads)
		opcode = RMEM_WR_RDMA_WRITE;
	if (opcode == RMEM_WR_ATOMIC_FETCH_AND_ADD)
		length = sizeof(uint64_t);
	else if (opcode == RMEM_WR_SEND)
		length = RTE_MAX(length, (uint32_t)sizeof(flow->sent));
	wr = pair_wr(flow->end, opcode, offset, length, &sge);
	wr.wr_id = flow->posted;
	fill(local, length);
	if (opcode == RMEM_WR_RDMA_READ)
		fill(peer->memory + PAIR_TARGET + offset, length);
	if (opcode == RMEM_WR_SEND)
		memcpy(local, &flow->sent, sizeof(flow->sent));
	flow->sent += opcode == RMEM_WR_SEND;
	if (opcode == RMEM_WR_ATOMIC_FETCH_AND_ADD) {
		wr.atomic.remote_addr = (uintptr_t)peer->memory + PAIR_TARGET + PAIR_AREA - 8;
		wr.atomic.compare_add = flow->posted;
	}
	flow->opcode[slot] = opcode;
	flow->length[slot] = length;
	flow->posted++;
	return flow->end->post_send(&wr);
}

static void
check_done(struct flow *flow, const struct rmem_wc *wc)
{
	uint32_t slot = flow->done % SLOTS, offset = slot * SLOT_SIZE;
	const uint8_t *local = flow->end->memory + PAIR_LOCAL + offset;

	TEST_EQ(wc->wr_id, flow->done);
	TEST_STATUS(wc->status, RMEM_WC_SUCCESS);
	switch (flow->opcode[slot]) {
	case RMEM_WR_RDMA_WRITE:
	case RMEM_WR_RDMA_READ:
		TEST_MEM(local, pair_peer(flow->end)->memory + PAIR_TARGET + offset,
				flow->length[slot]);
		break;
	case RMEM_WR_ATOMIC_FETCH_AND_ADD:
		TEST_MEM(local, &flow->added, sizeof(flow->added));
		flow->added += flow->done;
		break;
	default:
		break;
	}
	flow->done++;
}

/* A SEND of the peer: the next one. */
static void
check_received(struct flow *flow, const struct rmem_wc *wc)
{
	const uint8_t *got = flow->end->memory + PAIR_RECV + wc->wr_id % NB_RECV * SLOT_SIZE;
	uint32_t number;

	TEST_EQ(wc->wr_id, flow->received);
	TEST_STATUS(wc->status, RMEM_WC_SUCCESS);
	memcpy(&number, got, sizeof(number));
	TEST_EQ(number, flow->received);
	flow->received++;
	TEST_RUN(post_recv(flow->end, flow->received + NB_RECV - 1));
}

/* Post up to a random number of requests, and poll; whether a completion arrived in *is_idle. */
static void
step(struct flow *flow, uint32_t nb_ops, bool *is_idle)
{
	struct rmem_wc wc;

	while (flow->posted < nb_ops && flow->posted - flow->done < SLOTS && rand() % 4 != 0)
		TEST_RUN(post_one(flow));
	while (flow->end->poll(false, &wc) == 1) {
		if (TEST_TRY(check_done(flow, &wc)) != TEST_SUCCESS) {
			test_note("request %u of %s, opcode %u, %u bytes", flow->done,
					flow->end->name, flow->opcode[flow->done % SLOTS],
					flow->length[flow->done % SLOTS]);
			test_stop(TEST_FAILED);
		}
		*is_idle = false;
	}
	while (flow->end->poll(true, &wc) == 1) {
		check_received(flow, &wc);
		*is_idle = false;
	}
}

static void
run(uint32_t nb_ops)
{
	uint64_t last = rte_rdtsc();
	unsigned int i, j;
	bool is_idle;

	memset(flows, 0, sizeof(flows));
	for (i = 0; i < 2; i++) {
		flows[i].end = i == 0 ? &pair_soft : &pair_rxe;
		memset(flows[i].end->memory + PAIR_TARGET + PAIR_AREA - 8, 0, 8);
		for (j = 0; j < NB_RECV; j++)
			TEST_RUN(post_recv(flows[i].end, j));
	}
	while (flows[0].done < nb_ops || flows[1].done < nb_ops ||
			flows[0].received != flows[1].sent || flows[1].received != flows[0].sent) {
		is_idle = true;
		for (i = 0; i < 2; i++)
			step(&flows[i], nb_ops, &is_idle);
		if (!is_idle)
			last = rte_rdtsc();
		TEST_ASSERT(rte_rdtsc() - last < 600 * rte_get_tsc_hz());
	}
	for (i = 0; i < 2; i++)
		TEST_MEM(pair_peer(flows[i].end)->memory + PAIR_TARGET + PAIR_AREA - 8,
				&flows[i].added, 8);
}

static void
run_with(const char *faults, uint32_t mtu, uint32_t nb_ops)
{
	struct pair_conf conf = PAIR_CONF;
	struct rmem_dev_stats stats;

	conf.args = faults;
	conf.mtu = mtu;
	has_rxe_reads = faults == NULL || strstr(faults, "reorder") == NULL;
	if (faults != NULL)
		conf.timeout = 15; /* 134 ms */
	pair_open(&conf);
	run(nb_ops);
	TEST_OK(pair_stats(&stats));
	test_note("MTU %u: %" PRIu64 " packets sent, %" PRIu64 " received, %" PRIu64
		  " retransmissions, %" PRIu64 " timeouts, %" PRIu64 " duplicates, %" PRIu64
		  " NAKs sent, %" PRIu64 " received, %" PRIu64 " ICRC errors",
			mtu, stats.wire_tx_packets, stats.wire_rx_packets, stats.wire_retransmits,
			stats.wire_timeouts, stats.wire_duplicates, stats.wire_naks_sent,
			stats.wire_naks_received, stats.wire_icrc_errors);
	TEST_EQ(stats.wire_icrc_errors, 0);
	TEST_EQ(stats.wire_malformed, 0);
}

TEST(interop, both_sides_post_concurrently)
{
	run_with(NULL, 1024, 400);
	pair_close();
	run_with(NULL, 4096, 400);
}

TEST(interop, packets_of_soft_are_lost)
{
	run_with(",fault=loss:0.03;seed:3", 1024, 100);
}

TEST(interop, packets_of_soft_are_duplicated_and_reordered)
{
	run_with(",fault=dup:0.1;reorder:4;seed:5", 1024, 100);
}

TEST(interop, packets_of_soft_are_corrupted_and_truncated)
{
	run_with(",fault=corrupt:0.02;trunc:0.02;seed:7", 1024, 100);
}
