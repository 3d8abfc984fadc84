/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Forwards packets between two ports, and swaps their addresses: a program of DPDK alone. */

#include <stdio.h>
#include <stdlib.h>

#include <rte_debug.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_mbuf.h>

#define BURST      32
#define NB_PACKETS 100000

static struct rte_mempool *
create_mbufs(int socket)
{
	struct rte_mempool *mp;

	mp = rte_pktmbuf_pool_create("mbufs", 8191, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, socket);
	return mp;
}

static int
start_port(uint16_t port, struct rte_mempool *mp)
{
	const struct rte_eth_conf conf = {0};

	return rte_eth_dev_configure(port, 1, 1, &conf) != 0 ||
			rte_eth_rx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL, mp) != 0 ||
			rte_eth_tx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL) != 0 ||
			rte_eth_dev_start(port) != 0;
}

static uint16_t
forward(uint16_t port)
{
	struct rte_mbuf *mbufs[BURST];
	uint16_t i, nb, sent;

	nb = rte_eth_rx_burst(port, 0, mbufs, BURST);
	for (i = 0; i < nb; i++) {
		struct rte_ether_hdr *eth = rte_pktmbuf_mtod(mbufs[i], struct rte_ether_hdr *);
		struct rte_ether_addr addr = eth->src_addr;

		eth->src_addr = eth->dst_addr;
		eth->dst_addr = addr;
	}
	sent = rte_eth_tx_burst(port ^ 1, 0, mbufs, nb);
	for (i = sent; i < nb; i++)
		rte_pktmbuf_free(mbufs[i]);
	return sent;
}

int
main(int argc, char **argv)
{
	struct rte_mempool *mp;
	uint32_t nb = 0;
	uint16_t port;

	if (rte_eal_init(argc, argv) < 0 || rte_eth_dev_count_avail() != 2)
		rte_exit(EXIT_FAILURE, "two ports wanted: --vdev net_null0 --vdev net_null1\n");
	mp = create_mbufs(SOCKET_ID_ANY);
	if (mp == NULL)
		rte_exit(EXIT_FAILURE, "no mbufs\n");
	for (port = 0; port < 2; port++) {
		if (start_port(port, mp) != 0)
			rte_exit(EXIT_FAILURE, "port %u does not start\n", port);
	}
	while (nb < NB_PACKETS)
		nb += forward(0) + forward(1);
	printf("packets are forwarded\n");
	for (port = 0; port < 2; port++) {
		if (rte_eth_dev_stop(port) != 0 || rte_eth_dev_close(port) != 0)
			rte_exit(EXIT_FAILURE, "port %u does not stop\n", port);
	}
	rte_mempool_free(mp);
	return rte_eal_cleanup();
}
