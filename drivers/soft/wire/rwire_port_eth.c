/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The port over an ethdev port, IPv4: Ethernet, IP and UDP headers, and ARP.
 *
 * The port is configured, started and closed here: no other code of the application uses it.
 * - Neighbours are learned from the ARP packets received, and requested with ARP. A packet for an
 *   address that is not resolved yet is dropped; the engine sends it again.
 * - The lock of the port protects the table of neighbours and the transmit queue, which both the
 *   sender and the receiver, for ARP, use.
 * - Only packets whose lengths agree with what was received, without IP options and fragments, are
 *   passed on.
 */

#include <errno.h>
#include <stdlib.h>

#include <rte_arp.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "../rsoft.h"
#include "rwire_port.h"

#define ETH_BURST      32
#define ETH_DESC       512
#define ETH_MBUFS      4095
#define ETH_HEADERS    (RTE_ETHER_HDR_LEN + ETH_IP_UDP)
#define ETH_IP_UDP     (sizeof(struct rte_ipv4_hdr) + sizeof(struct rte_udp_hdr))
#define ETH_ROOM       (RTE_PKTMBUF_HEADROOM + ETH_HEADERS + RWIRE_MAX_PKT)
#define ETH_OVERHEAD   (ETH_IP_UDP + RWIRE_BTH_LEN + RWIRE_MAX_EXT_LEN + 3 + RWIRE_ICRC_LEN)
#define ETH_NEIGHBOURS 256 /* a power of two */
#define ETH_ARP_MS     100 /* between two requests for an address */

struct eth_neighbour {
	rte_be32_t ip; /* 0: unused */
	bool is_resolved;
	struct rte_ether_addr mac;
	uint64_t asked_at; /* TSC */
};

struct eth_port {
	struct rwire_port port;
	uint16_t id;
	rte_be32_t ip;
	struct rte_ether_addr mac;
	struct rte_mempool *pool;
	uint64_t arp_cycles;

	rte_ticketlock_t lock; /* of neighbours, and to transmit; the innermost */
	struct eth_neighbour neighbours[ETH_NEIGHBOURS];

	/* Of the sender. */
	struct rwire_frame tx_frame;
	struct rte_mbuf *tx_mbuf; /* of the last tx_get() */
	struct rte_mbuf *tx[ETH_BURST];
	uint16_t nb_tx;

	/* Of the receiver. */
	struct rwire_frame rx_frame[RWIRE_RX_BURST];
	struct rte_mbuf *rx[RWIRE_RX_BURST]; /* of the last burst */
	uint16_t nb_rx;
};

static rte_be32_t
eth_ip_of(const struct rwire_addr *addr)
{
	rte_be32_t ip;

	memcpy(&ip, addr->gid + 12, sizeof(ip));
	return ip;
}

/* The entry of an address: its own, or the one that it takes. Under lock. */
static struct eth_neighbour *
eth_neighbour_of(struct eth_port *port, rte_be32_t ip)
{
	struct eth_neighbour *one = &port->neighbours[rte_be_to_cpu_32(ip) & (ETH_NEIGHBOURS - 1)];

	if (one->ip != ip)
		*one = (struct eth_neighbour){.ip = ip};
	return one;
}

/* Send an ARP packet. Under lock. */
static void
eth_send_arp(struct eth_port *port, uint16_t opcode, const struct rte_ether_addr *mac,
		rte_be32_t ip)
{
	struct rte_ether_hdr *eth;
	struct rte_arp_hdr *arp;
	struct rte_mbuf *mbuf;

	mbuf = rte_pktmbuf_alloc(port->pool);
	if (mbuf == NULL)
		return;
	eth = (struct rte_ether_hdr *)rte_pktmbuf_append(mbuf, sizeof(*eth) + sizeof(*arp));
	arp = (struct rte_arp_hdr *)(eth + 1);
	eth->dst_addr = *mac;
	eth->src_addr = port->mac;
	eth->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_ARP);
	arp->arp_hardware = rte_cpu_to_be_16(RTE_ARP_HRD_ETHER);
	arp->arp_protocol = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
	arp->arp_hlen = RTE_ETHER_ADDR_LEN;
	arp->arp_plen = sizeof(ip);
	arp->arp_opcode = rte_cpu_to_be_16(opcode);
	arp->arp_data.arp_sha = port->mac;
	arp->arp_data.arp_sip = port->ip;
	if (opcode == RTE_ARP_OP_REPLY)
		arp->arp_data.arp_tha = *mac;
	else
		memset(&arp->arp_data.arp_tha, 0, sizeof(arp->arp_data.arp_tha));
	arp->arp_data.arp_tip = ip;
	/* If it is lost, it will be requested again. */
	if (rte_eth_tx_burst(port->id, 0, &mbuf, 1) == 0)
		rte_pktmbuf_free(mbuf);
}

/* The MAC of an address; false: it is requested. */
static bool
eth_resolve(struct eth_port *port, rte_be32_t ip, struct rte_ether_addr *mac)
{
	static const struct rte_ether_addr all = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
	struct eth_neighbour *one;
	uint64_t now = rte_rdtsc();
	bool is_resolved;

	rte_ticketlock_lock(&port->lock);
	one = eth_neighbour_of(port, ip);
	if (ip == port->ip) {
		one->mac = port->mac;
		one->is_resolved = true;
	}
	is_resolved = one->is_resolved;
	*mac = one->mac;
	if (!is_resolved && (one->asked_at == 0 || now - one->asked_at > port->arp_cycles)) {
		one->asked_at = now;
		eth_send_arp(port, RTE_ARP_OP_REQUEST, &all, ip);
	}
	rte_ticketlock_unlock(&port->lock);
	return is_resolved;
}

/* Learn the sender of an ARP packet that is for this address, and answer a request. */
static void
eth_receive_arp(struct eth_port *port, const struct rte_mbuf *mbuf)
{
	const struct rte_arp_hdr *arp = rte_pktmbuf_mtod_offset(
			mbuf, const struct rte_arp_hdr *, RTE_ETHER_HDR_LEN);
	struct eth_neighbour *one;

	if (mbuf->data_len < RTE_ETHER_HDR_LEN + sizeof(*arp) ||
			arp->arp_hardware != rte_cpu_to_be_16(RTE_ARP_HRD_ETHER) ||
			arp->arp_protocol != rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4) ||
			arp->arp_hlen != RTE_ETHER_ADDR_LEN || arp->arp_plen != 4 ||
			arp->arp_data.arp_tip != port->ip || arp->arp_data.arp_sip == 0 ||
			arp->arp_data.arp_sip == port->ip)
		return;
	rte_ticketlock_lock(&port->lock);
	one = eth_neighbour_of(port, arp->arp_data.arp_sip);
	one->mac = arp->arp_data.arp_sha;
	one->is_resolved = true;
	if (arp->arp_opcode == rte_cpu_to_be_16(RTE_ARP_OP_REQUEST))
		eth_send_arp(port, RTE_ARP_OP_REPLY, &arp->arp_data.arp_sha, arp->arp_data.arp_sip);
	rte_ticketlock_unlock(&port->lock);
}

/* Check the headers of a packet and describe it; false: it is not for the engine. */
static bool
eth_receive(struct eth_port *port, struct rte_mbuf *mbuf, struct rwire_frame *frame)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(mbuf, const struct rte_ether_hdr *);
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)(eth + 1);
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)(ip + 1);
	uint32_t total, len;

	if (mbuf->nb_segs != 1 || mbuf->data_len < RTE_ETHER_HDR_LEN)
		return false;
	if (eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_ARP)) {
		eth_receive_arp(port, mbuf);
		return false;
	}
	if (eth->ether_type != rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4) ||
			mbuf->data_len < ETH_HEADERS)
		return false;
	total = rte_be_to_cpu_16(ip->total_length);
	len = rte_be_to_cpu_16(udp->dgram_len);
	if (ip->version_ihl != RTE_IPV4_VHL_DEF || ip->next_proto_id != IPPROTO_UDP ||
			(ip->fragment_offset & rte_cpu_to_be_16((uint16_t)~RTE_IPV4_HDR_DF_FLAG)) !=
					0 ||
			ip->dst_addr != port->ip || rte_ipv4_cksum(ip) != 0 ||
			udp->dst_port != rte_cpu_to_be_16(RWIRE_UDP_PORT) ||
			RTE_ETHER_HDR_LEN + total > mbuf->data_len || len < sizeof(*udp) ||
			len != total - sizeof(*ip))
		return false;
	frame->bth = frame->data = (uint8_t *)(uintptr_t)(udp + 1);
	frame->len = len - (uint32_t)sizeof(*udp);
	frame->flow.src = port->port.addr; /* its prefix */
	memcpy(frame->flow.src.gid + 12, &ip->src_addr, sizeof(ip->src_addr));
	frame->flow.src_port = rte_be_to_cpu_16(udp->src_port);
	frame->flow.ip_id = rte_be_to_cpu_16(ip->packet_id);
	return true;
}

static void
eth_tx_flush(struct rwire_port *base)
{
	struct eth_port *port = (struct eth_port *)base;
	uint16_t i, n;

	if (port->nb_tx == 0)
		return;
	rte_ticketlock_lock(&port->lock);
	n = rte_eth_tx_burst(port->id, 0, port->tx, port->nb_tx);
	rte_ticketlock_unlock(&port->lock);
	port->nb_tx = (uint16_t)(port->nb_tx - n);
	for (i = 0; i < port->nb_tx; i++)
		port->tx[i] = port->tx[n + i];
}

static struct rwire_frame *
eth_tx_get(struct rwire_port *base, const struct rwire_addr *dst)
{
	struct eth_port *port = (struct eth_port *)base;

	if (port->nb_tx == ETH_BURST)
		eth_tx_flush(base);
	if (port->nb_tx == ETH_BURST)
		return NULL;
	/* One that was not sent, such as that of a lost packet, is used again. */
	if (port->tx_mbuf == NULL)
		port->tx_mbuf = rte_pktmbuf_alloc(port->pool);
	if (port->tx_mbuf == NULL)
		return NULL;
	port->tx_frame.bth = rte_pktmbuf_mtod_offset(port->tx_mbuf, uint8_t *, ETH_HEADERS);
	port->tx_frame.flow.src = base->addr;
	port->tx_frame.flow.dst = *dst;
	port->tx_frame.flow.src_port = RWIRE_UDP_PORT;
	port->tx_frame.flow.ip_id = 0;
	return &port->tx_frame;
}

/* Store the headers that precede the BTH. */
static void
eth_build(struct eth_port *port, const struct rwire_frame *frame, const struct rte_ether_addr *mac)
{
	uint16_t udp_len = (uint16_t)(sizeof(struct rte_udp_hdr) + frame->len);
	struct rte_ether_hdr *eth = rte_pktmbuf_mtod(port->tx_mbuf, struct rte_ether_hdr *);
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(eth + 1);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);

	eth->dst_addr = *mac;
	eth->src_addr = port->mac;
	eth->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
	*ip = (struct rte_ipv4_hdr){.version_ihl = RTE_IPV4_VHL_DEF,
			.total_length = rte_cpu_to_be_16((uint16_t)(sizeof(*ip) + udp_len)),
			.fragment_offset = rte_cpu_to_be_16(RTE_IPV4_HDR_DF_FLAG),
			.time_to_live = 64,
			.next_proto_id = IPPROTO_UDP,
			.src_addr = port->ip,
			.dst_addr = eth_ip_of(&frame->flow.dst)};
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	/* Without a checksum (RFC 768): the ICRC covers the packet. */
	*udp = (struct rte_udp_hdr){.src_port = rte_cpu_to_be_16(frame->flow.src_port),
			.dst_port = rte_cpu_to_be_16(RWIRE_UDP_PORT),
			.dgram_len = rte_cpu_to_be_16(udp_len)};
}

static void
eth_tx_put(struct rwire_port *base, struct rwire_frame *frame)
{
	struct eth_port *port = (struct eth_port *)base;
	struct rte_ether_addr mac;

	if (!eth_resolve(port, eth_ip_of(&frame->flow.dst), &mac)) {
		RSOFT_COUNT(base->stats.tx_dropped, 1);
		return;
	}
	eth_build(port, frame, &mac);
	port->tx_mbuf->data_len = (uint16_t)(ETH_HEADERS + frame->len);
	port->tx_mbuf->pkt_len = port->tx_mbuf->data_len;
	port->tx[port->nb_tx++] = port->tx_mbuf;
	port->tx_mbuf = NULL;
	RSOFT_COUNT(base->stats.tx_packets, 1);
	RSOFT_COUNT(base->stats.tx_bytes, frame->len);
}

static uint32_t
eth_rx_burst(struct rwire_port *base, struct rwire_frame *frames[], uint32_t n)
{
	struct eth_port *port = (struct eth_port *)base;
	struct rte_mbuf *mbufs[RWIRE_RX_BURST];
	uint16_t i, got;

	rte_pktmbuf_free_bulk(port->rx, port->nb_rx);
	port->nb_rx = 0;
	got = rte_eth_rx_burst(port->id, 0, mbufs, (uint16_t)n);
	for (i = 0; i < got; i++) {
		struct rwire_frame *frame = &port->rx_frame[port->nb_rx];

		if (!eth_receive(port, mbufs[i], frame)) {
			rte_pktmbuf_free(mbufs[i]);
			continue;
		}
		RSOFT_COUNT(base->stats.rx_packets, 1);
		RSOFT_COUNT(base->stats.rx_bytes, frame->len);
		frames[port->nb_rx] = frame;
		port->rx[port->nb_rx++] = mbufs[i];
	}
	return port->nb_rx;
}

/* An ethdev port has no descriptor to sleep in: the thread polls. */
static bool
eth_rx_sleep(struct rwire_port *base)
{
	RTE_SET_USED(base);
	return false;
}

static void
eth_free(struct eth_port *port)
{
	/* The ethdev port may keep mbufs in its queues until it is closed. */
	if (port->pool != NULL && rte_mempool_full(port->pool))
		rte_mempool_free(port->pool);
	free(port);
}

/* Drop the packets that wait: they are of this pool, or would be received by its next user. */
static void
eth_drain(struct eth_port *port)
{
	struct rte_mbuf *mbufs[ETH_BURST];
	unsigned int i;
	uint16_t n;

	for (i = 0; i < ETH_DESC; i++) {
		n = rte_eth_rx_burst(port->id, 0, mbufs, ETH_BURST);
		if (n == 0)
			break;
		rte_pktmbuf_free_bulk(mbufs, n);
	}
}

static void
eth_close(struct rwire_port *base)
{
	struct eth_port *port = (struct eth_port *)base;

	rte_pktmbuf_free_bulk(port->rx, port->nb_rx);
	rte_pktmbuf_free_bulk(port->tx, port->nb_tx);
	rte_pktmbuf_free(port->tx_mbuf);
	eth_drain(port);
	(void)rte_eth_dev_stop(port->id);
	eth_free(port);
}

static const struct rwire_port_ops eth_ops = {
		.close = eth_close,
		.rx_burst = eth_rx_burst,
		.rx_sleep = eth_rx_sleep,
		.tx_flush = eth_tx_flush,
		.tx_get = eth_tx_get,
		.tx_put = eth_tx_put,
};

static int
eth_fail(const struct eth_port *port, const char *what, int rc)
{
	RSOFT_LOG(ERR, "port=eth:%u: %s: %s", port->id, what, strerror(-rc));
	switch (rc) {
	case -EBUSY: /* it is started */
		return -EEXIST;
	case -EPERM:
	case -EACCES:
		return -EPERM;
	default:
		return rc == -ENOMEM ? -ENOMEM : -EIO;
	}
}

/* Set up one queue in each direction, and start. */
static int
eth_start(struct eth_port *port)
{
	uint16_t nb_rx = ETH_DESC, nb_tx = ETH_DESC;
	int rc, socket = rte_eth_dev_socket_id(port->id);

	rc = rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &nb_rx, &nb_tx);
	if (rc == 0)
		rc = rte_eth_rx_queue_setup(
				port->id, 0, nb_rx, (unsigned int)socket, NULL, port->pool);
	if (rc == 0)
		rc = rte_eth_tx_queue_setup(port->id, 0, nb_tx, (unsigned int)socket, NULL);
	if (rc != 0)
		return eth_fail(port, "the queues can't be set up", rc);
	rc = rte_eth_dev_start(port->id);
	return rc == 0 ? 0 : eth_fail(port, "rte_eth_dev_start()", rc);
}

/* The pool of an ethdev port: that of an earlier device, if the port has kept some mbufs. */
static int
eth_open_pool(struct eth_port *port)
{
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "rmem_wire_%u", port->id);
	port->pool = rte_mempool_lookup(name);
	if (port->pool == NULL)
		port->pool = rte_pktmbuf_pool_create(
				name, ETH_MBUFS, 128, 0, ETH_ROOM, rte_eth_dev_socket_id(port->id));
	if (port->pool != NULL)
		return 0;
	RSOFT_LOG(ERR, "port=eth:%u: no memory for %u mbufs of %zu bytes", port->id, ETH_MBUFS,
			(size_t)ETH_ROOM);
	return -ENOMEM;
}

static int
eth_init(struct eth_port *port, const struct rwire_addr *addr)
{
	const struct rte_eth_conf conf = {0};
	uint16_t mtu = 0, i;
	int rc;

	port->port.ops = &eth_ops;
	port->port.addr = *addr;
	port->port.fd = -1;
	port->port.has_icrc = true;
	port->ip = eth_ip_of(addr);
	port->arp_cycles = rte_get_tsc_hz() / 1000 * ETH_ARP_MS;
	rte_ticketlock_init(&port->lock);
	for (i = 0; i < RWIRE_RX_BURST; i++) {
		port->rx_frame[i].is_id_known = port->rx_frame[i].has_icrc = true;
		port->rx_frame[i].flow.dst = *addr;
	}
	rc = rte_eth_macaddr_get(port->id, &port->mac);
	if (rc == 0)
		rc = rte_eth_dev_get_mtu(port->id, &mtu);
	if (rc != 0)
		return eth_fail(port, "no MAC address or MTU", rc);
	port->port.max_mtu = RWIRE_MAX_MTU;
	while (port->port.max_mtu > 256 && port->port.max_mtu + ETH_OVERHEAD > mtu)
		port->port.max_mtu /= 2;
	rc = rte_eth_dev_configure(port->id, 1, 1, &conf);
	if (rc != 0)
		return eth_fail(port, "rte_eth_dev_configure()", rc);
	rc = eth_open_pool(port);
	if (rc != 0)
		return rc;
	return eth_start(port);
}

/* The ethdev port of a text; an errno, logged. */
static int
eth_parse(const struct rwire_addr *addr, const char *text, uint16_t *id)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end != '\0' || number >= RTE_MAX_ETHPORTS) {
		RSOFT_LOG(ERR, "port=eth:%s: not the number of an ethdev port, 0 to %u", text,
				RTE_MAX_ETHPORTS - 1);
		return -EINVAL;
	}
	if (!rwire_addr_is_ipv4(addr)) {
		RSOFT_LOG(ERR, "port=eth:%s: ip= is not an IPv4 address", text);
		return -EINVAL;
	}
	*id = (uint16_t)number;
	if (!rte_eth_dev_is_valid_port(*id)) {
		RSOFT_LOG(ERR, "port=eth:%s: no such ethdev port; there are %u", text,
				rte_eth_dev_count_avail());
		return -ENODEV;
	}
	return 0;
}

int
rwire_port_eth_open(const struct rwire_addr *addr, const char *text, struct rwire_port **out)
{
	struct eth_port *port;
	uint16_t id = 0;
	int rc;

	rc = eth_parse(addr, text, &id);
	if (rc != 0)
		return rc;
	port = calloc(1, sizeof(*port));
	if (port == NULL)
		return -ENOMEM;
	port->id = id;
	rc = eth_init(port, addr);
	if (rc != 0) {
		eth_free(port);
		return rc;
	}
	*out = &port->port;
	return 0;
}
