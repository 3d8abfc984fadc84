/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Step 3: l2fwd-plain.c, with mbufs that a peer writes to while they are forwarded. */

#include <stdio.h>
#include <stdlib.h>

#include <rte_debug.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_mbuf.h>

#include <rmem_mbuf.h>

#include "pair.h"

#define BURST      32
#define NB_PACKETS 100000

static struct pair pair;
static struct rmem_pd *pd;
static struct rmem_mempool *reg;
static struct rmem_mr *peer_mr;
static uint32_t nb_written;

static struct rte_mempool *
create_mbufs(int socket)
{
	const uint32_t access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE;
	struct rte_mempool *mp;

	mp = rte_pktmbuf_pool_create("mbufs", 8191, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, socket);
	if (mp != NULL && rmem_mempool_register(mp, pd, access, &reg) != 0)
		return NULL;
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

/* The peer WRITEs a number after the addresses. It gets the key and the address of the mbuf. */
static void
write_by_peer(struct rte_mbuf *m)
{
	const uint32_t offset = sizeof(struct rte_ether_hdr);
	struct rmem_sge from = {peer_mr->iova, sizeof(nb_written), peer_mr->lkey};

	memcpy(peer_mr->addr, &nb_written, sizeof(nb_written));
	if (pair_peer(&pair, RMEM_WR_RDMA_WRITE, from, rmem_mbuf_iova(reg, m) + offset,
			    rmem_mbuf_rkey(reg, m)) != RMEM_WC_SUCCESS ||
			memcmp(rte_pktmbuf_mtod_offset(m, char *, offset), &nb_written,
					sizeof(nb_written)) != 0)
		rte_exit(EXIT_FAILURE, "the peer did not write to an mbuf\n");
	nb_written++;
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
		write_by_peer(mbufs[i]);
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
	pair_open(&pair);
	pd = pair.pd;
	peer_mr = pair_peer_memory(&pair);
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
	expect("the peer writes to each mbuf", nb_written >= NB_PACKETS);
	for (port = 0; port < 2; port++) {
		if (rte_eth_dev_stop(port) != 0 || rte_eth_dev_close(port) != 0)
			rte_exit(EXIT_FAILURE, "port %u does not stop\n", port);
	}
	check("rmem_mempool_unregister", rmem_mempool_unregister(reg));
	rte_mempool_free(mp);
	check("rmem_mr_dereg", rmem_mr_dereg(peer_mr));
	pair_close(&pair);
	return rte_eal_cleanup();
}
