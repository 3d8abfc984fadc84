/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Throughput of the wire over two ports of net_ring, compared with two lcores that forward frames
 * of the same size between two such ports, as testpmd does in mode io.
 */

#include <stdio.h>

#include <rte_cycles.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "perf_wire.h"
#include "test.h"

#define BURST      32u
#define NB_FRAMES  256u  /* in flight */
#define FRAME_SIZE 1098u /* of a WRITE of 1024 bytes */
#define NB_PORTS   4u    /* of the devices, and of the yardstick */

static struct rte_mempool *pool;
static struct rte_ring *rings[NB_PORTS];
static uint16_t ports[NB_PORTS];

static void
forward(uint16_t port, uint32_t *nb)
{
	struct rte_mbuf *frames[BURST];
	uint16_t n = rte_eth_rx_burst(port, 0, frames, BURST);

	/* All of them fit into a ring. */
	*nb += rte_eth_tx_burst(port, 0, frames, n);
}

static int
forward_back(void *arg)
{
	struct wire_job *job = arg;
	uint32_t nb = 0;

	while (__atomic_load_n(&job->stop, __ATOMIC_ACQUIRE) == 0)
		forward(ports[3], &nb);
	return 0;
}

/* Frames that pass one of the two ports. */
static double
run_forward(void *arg)
{
	struct wire_job *job = arg;
	uint64_t start;
	uint32_t nb = 0;

	__atomic_store_n(&job->stop, 0, __ATOMIC_RELEASE);
	if (rte_eal_remote_launch(forward_back, job, job->lcore) != 0)
		return -1.0;
	start = rte_rdtsc_precise();
	while (nb < job->nb_bursts * PERF_WIRE_BURST)
		forward(ports[2], &nb);
	start = rte_rdtsc_precise() - start;
	__atomic_store_n(&job->stop, 1, __ATOMIC_RELEASE);
	rte_eal_wait_lcore(job->lcore);
	return perf_ns(start, nb);
}

static int
start_port(uint16_t port)
{
	const struct rte_eth_conf conf = {0};

	TEST_OK(rte_eth_dev_configure(port, 1, 1, &conf));
	TEST_OK(rte_eth_rx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL, pool));
	TEST_OK(rte_eth_tx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL));
	return rte_eth_dev_start(port) == 0 ? TEST_SUCCESS : TEST_FAILED;
}

/* Two pairs of ports: what one sends, the other receives. */
static int
create_ports(void)
{
	struct rte_mbuf *frames[NB_FRAMES];
	unsigned int i;
	char name[16];
	int id;

	pool = rte_pktmbuf_pool_create("perf_eth", 1023, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, -1);
	TEST_ASSERT(pool != NULL);
	for (i = 0; i < NB_PORTS; i++) {
		snprintf(name, sizeof(name), "perf_eth%u", i);
		rings[i] = rte_ring_create(name, 1024, -1, RING_F_SP_ENQ | RING_F_SC_DEQ);
		TEST_ASSERT(rings[i] != NULL);
	}
	for (i = 0; i < NB_PORTS; i++) {
		snprintf(name, sizeof(name), "perf_eth%u", i);
		id = rte_eth_from_rings(name, &rings[i], 1, &rings[i ^ 1], 1, 0);
		TEST_ASSERT(id >= 0);
		ports[i] = (uint16_t)id;
	}
	TEST_RUN(start_port(ports[2]));
	TEST_RUN(start_port(ports[3]));
	TEST_OK(rte_pktmbuf_alloc_bulk(pool, frames, NB_FRAMES));
	for (i = 0; i < NB_FRAMES; i++)
		frames[i]->pkt_len = frames[i]->data_len = FRAME_SIZE;
	TEST_EQ(rte_eth_tx_burst(ports[2], 0, frames, NB_FRAMES), NB_FRAMES);
	return TEST_SUCCESS;
}

static int
test_wire_eth_write1k(void)
{
	static struct wire_job job = {
			.size = 1024, .nb_bursts = 5000, .opcode = RMEM_WR_RDMA_WRITE};
	struct perf_row row = {.name = "wire_eth_write1k",
			.unit = "ns",
			.yardstick = "io forwarding",
			.bar = "ratio >= 0.5"};
	char args[64], args_b[64];

	if (rte_get_next_lcore(-1, 1, 0) >= RTE_MAX_LCORE)
		return test_skip("two lcores are needed");
	TEST_RUN(create_ports());
	snprintf(args, sizeof(args), "ip=192.0.2.1,port=eth:%u,loop=1", ports[0]);
	snprintf(args_b, sizeof(args_b), "ip=192.0.2.2,port=eth:%u,loop=1", ports[1]);
	TEST_RUN(perf_wire_open(&job, args, args_b));
	return perf_wire_report(&job, run_forward, &row);
}

REGISTER_RMEM_TEST(wire_eth_write1k_perf_autotest, test_wire_eth_write1k);
