/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Throughput of the wire over two ports of net_af_packet, compared with two lcores that forward
 * frames of the same size between two such ports, as testpmd does in mode io. perf.sh creates two
 * virtual Ethernet cables, with the interfaces perf0 to perf3; the kernel copies each frame.
 */

#include <stdio.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "perf_wire.h"
#include "test.h"

#define BURST      32u
#define NB_FRAMES  256u   /* in flight */
#define FRAME_SIZE 1098u  /* of a WRITE of 1024 bytes */
#define TIMEOUT_S  20     /* without all frames, the run fails */
#define ETHER_TYPE 0x88b5 /* for experiments: of no protocol of the kernel */
#define NB_PORTS   4u     /* of the devices, and of the yardstick */

static struct rte_mempool *pool;
static uint16_t ports[NB_PORTS];

/* Frames that one side holds; those that were not sent wait for the next burst. */
struct side {
	uint16_t port;
	uint16_t nb;
	struct rte_mbuf *frames[NB_FRAMES];
};

/* Receive a burst and send it back; returns how many were sent. */
static uint32_t
forward(struct side *side)
{
	uint16_t n = (uint16_t)RTE_MIN(NB_FRAMES - side->nb, BURST);

	side->nb += rte_eth_rx_burst(side->port, 0, &side->frames[side->nb], n);
	n = rte_eth_tx_burst(side->port, 0, side->frames, RTE_MIN(side->nb, (uint16_t)BURST));
	side->nb = (uint16_t)(side->nb - n);
	memmove(side->frames, &side->frames[n], side->nb * sizeof(struct rte_mbuf *));
	return n;
}

static int
forward_back(void *arg)
{
	static struct side side;
	struct wire_job *job = arg;

	side.port = ports[3];
	while (__atomic_load_n(&job->stop, __ATOMIC_ACQUIRE) == 0)
		forward(&side);
	return 0;
}

/* Let more frames pass between the two ports; the kernel may have dropped some. */
static void
inject(struct side *side)
{
	uint32_t n = RTE_MIN(NB_FRAMES - side->nb, BURST), i;

	if (n == 0 || rte_pktmbuf_alloc_bulk(pool, &side->frames[side->nb], n) != 0)
		return;
	for (i = 0; i < n; i++) {
		struct rte_mbuf *frame = side->frames[side->nb++];

		frame->pkt_len = frame->data_len = FRAME_SIZE;
		*rte_pktmbuf_mtod(frame, struct rte_ether_hdr *) =
				(struct rte_ether_hdr){.ether_type = RTE_BE16(ETHER_TYPE)};
	}
}

/* Frames that pass one of the two ports; a negative value if they stop for seconds. */
static double
run_forward(void *arg)
{
	static struct side side;
	struct wire_job *job = arg;
	uint64_t start, idle, now;
	uint32_t n, nb = 0, all = job->nb_bursts * PERF_WIRE_BURST;

	side.port = ports[2];
	__atomic_store_n(&job->stop, 0, __ATOMIC_RELEASE);
	if (rte_eal_remote_launch(forward_back, job, job->lcore) != 0)
		return -1.0;
	for (n = 0; n < NB_FRAMES / BURST; n++)
		inject(&side);
	start = idle = now = rte_rdtsc_precise();
	for (; nb < all && now - start < TIMEOUT_S * rte_get_tsc_hz(); nb += n) {
		n = forward(&side);
		now = rte_rdtsc();
		if (n != 0)
			idle = now;
		else if (now - idle > rte_get_tsc_hz() / 100)
			inject(&side);
	}
	__atomic_store_n(&job->stop, 1, __ATOMIC_RELEASE);
	rte_eal_wait_lcore(job->lcore);
	return nb < all ? -1.0 : perf_ns(now - start, nb);
}

static void
start_port(uint16_t port)
{
	const struct rte_eth_conf conf = {0};

	TEST_OK(rte_eth_dev_configure(port, 1, 1, &conf));
	TEST_OK(rte_eth_rx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL, pool));
	TEST_OK(rte_eth_tx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL));
	TEST_ASSERT(rte_eth_dev_start(port) == 0);
}

/* Create port i; its peer is i ^ 1. False: there is no interface, or no permission. */
static bool
create_port(unsigned int i)
{
	char name[32], args[96];

	snprintf(name, sizeof(name), "net_af_packet%u", i);
	snprintf(args, sizeof(args), "iface=perf%u,blocksz=65536,framecnt=1024", i);
	return rte_eal_hotplug_add("vdev", name, args) == 0 &&
			rte_eth_dev_get_port_by_name(name, &ports[i]) == 0;
}

PERF_TEST(wire_eth_write1k)
{
	static struct wire_job job = {
			.size = 1024, .nb_bursts = 1000, .opcode = RMEM_WR_RDMA_WRITE};
	struct perf_row row = PERF_ROW("wire_eth_write1k", "ns", "io forwarding", "ratio >= 0.5");
	char args[64], args_b[64];
	unsigned int i;

	perf_peer_lcore();
	for (i = 0; i < NB_PORTS; i++) {
		TEST_SKIP_IF(!create_port(i), "no interfaces perf0 to perf3, or no permission");
	}
	pool = rte_pktmbuf_pool_create("perf_eth", 8191, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, -1);
	TEST_ASSERT(pool != NULL);
	start_port(ports[2]);
	start_port(ports[3]);
	snprintf(args, sizeof(args), "ip=192.0.2.1,port=eth:%u,loop=1", ports[0]);
	snprintf(args_b, sizeof(args_b), "ip=192.0.2.2,port=eth:%u,loop=1", ports[1]);
	perf_wire_open(&job, args, args_b);
	perf_wire_report(&job, run_forward, &row);
}
