/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The port over an ethdev port: Ethernet, IP and UDP headers, and neighbours.
 *
 * The ethdev port is configured, started and closed here; the application must not use it.
 * - A packet for an address that is not resolved yet is dropped; the engine sends it again.
 * - Invariant: the lock of the port protects the table of neighbours and the transmit queue, which
 *   the sender uses, and also the receiver, for replies to neighbours.
 * - Only packets whose lengths agree with the received data are accepted, and only without IP
 *   options, extension headers and fragments.
 */

#include <errno.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_flow.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "../../base/rsoft.h"
#include "rwire_neigh.h"
#include "rwire_port.h"

#define ETH_BURST   32
#define ETH_DESC    512
#define ETH_MBUFS   4095
#define ETH_UDP     sizeof(struct rte_udp_hdr)
#define ETH_MAX_MTU (sizeof(struct rte_ipv6_hdr) + ETH_UDP + RWIRE_MAX_PKT)
#define ETH_FRAME   (RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN + RTE_ETHER_CRC_LEN)
#define ETH_ROOM    (RTE_PKTMBUF_HEADROOM + ETH_FRAME + ETH_MAX_MTU)
#define ETH_EXTRA   (ETH_UDP + RWIRE_BTH_LEN + RWIRE_MAX_EXT_LEN + 3 + RWIRE_ICRC_LEN)
#define ETH_TTL     64

struct eth_port {
	struct rwire_port port;
	uint16_t id;
	bool is_ipv4;
	uint16_t ip_len; /* length of the IP header */
	rte_be16_t ether_type;
	struct rte_mempool *pool;
	struct rte_flow *flow;     /* NULL: none */
	struct rwire_addr *groups; /* multicast groups */
	uint32_t nb_groups;
	bool is_joined; /* joined by Ethernet multicast addresses, now or earlier */

	rte_ticketlock_t lock; /* protects neighbours and the transmit queue; taken last */
	struct rwire_neighs neighs;

	/* Used by the sender. */
	struct rwire_frame tx_frame;
	struct rte_mbuf *tx_mbuf; /* mbuf of the last tx_get() */
	struct rte_mbuf *tx[ETH_BURST];
	uint16_t nb_tx;

	/* Used by the receiver. */
	struct rwire_frame rx_frame[RWIRE_RX_BURST];
	struct rte_mbuf *rx[RWIRE_RX_BURST]; /* mbufs of the last burst */
	uint16_t nb_rx;
};

/* Length of the headers before the BTH. */
static uint16_t
eth_headers(const struct eth_port *port)
{
	return (uint16_t)(RTE_ETHER_HDR_LEN + port->ip_len + ETH_UDP);
}

/* Send a frame for neighbours; if it is lost, the request is repeated. Under lock. */
static void
eth_send_frame(struct eth_port *port, const uint8_t *frame, uint32_t len)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(port->pool);

	if (mbuf == NULL)
		return;
	memcpy(rte_pktmbuf_append(mbuf, (uint16_t)len), frame, len);
	if (rte_eth_tx_burst(port->id, 0, &mbuf, 1) == 0)
		rte_pktmbuf_free(mbuf);
}

/* Get the MAC address for an address; false if it is being requested. */
static bool
eth_resolve(struct eth_port *port, const struct rwire_addr *addr, struct rte_ether_addr *mac)
{
	uint8_t request[RWIRE_NEIGH_FRAME];
	bool is_resolved;
	uint32_t len;

	rte_ticketlock_lock(&port->lock);
	is_resolved = rwire_neigh_resolve(&port->neighs, addr, rte_rdtsc(), mac, request, &len);
	if (len != 0)
		eth_send_frame(port, request, len);
	rte_ticketlock_unlock(&port->lock);
	return is_resolved;
}

/* Handle a frame that is not for the engine. */
static void
eth_receive_neigh(struct eth_port *port, const struct rte_mbuf *mbuf)
{
	uint8_t reply[RWIRE_NEIGH_FRAME];
	uint32_t len;

	rte_ticketlock_lock(&port->lock);
	len = rwire_neigh_receive(&port->neighs, rte_pktmbuf_mtod(mbuf, const uint8_t *),
			mbuf->data_len, rte_rdtsc(), reply);
	if (len != 0)
		eth_send_frame(port, reply, len);
	rte_ticketlock_unlock(&port->lock);
}

/* Whether the packet is for the port's address, or for a group. */
static bool
eth_is_to(const struct eth_port *port, const void *dst, bool is_own, struct rwire_frame *frame)
{
	const size_t at = port->is_ipv4 ? 12 : 0;
	struct rwire_addr group = port->port.addr; /* for its prefix */
	uint32_t i;

	if (likely(is_own)) {
		if (unlikely(frame->is_mcast))
			frame->flow.dst = port->port.addr;
		frame->is_mcast = false;
		return true;
	}
	memcpy(group.gid + at, dst, sizeof(group.gid) - at);
	for (i = 0; i < port->nb_groups && !rwire_addr_is_equal(&port->groups[i], &group); i++)
		;
	if (i == port->nb_groups)
		return false;
	frame->is_mcast = true;
	frame->flow.dst = group;
	return true;
}

/* Check an IPv4 header and store its source. Return the length of the packet, or 0 to drop it. */
static uint32_t
eth_check_ipv4(const struct eth_port *port, const void *header, struct rwire_frame *frame)
{
	struct rwire_flow *flow = &frame->flow;
	const struct rte_ipv4_hdr *ip = header;
	bool is_own;

	if (ip->version_ihl != RTE_IPV4_VHL_DEF || ip->next_proto_id != IPPROTO_UDP ||
			(ip->fragment_offset & RTE_BE16((uint16_t)~RTE_IPV4_HDR_DF_FLAG)) != 0 ||
			rte_ipv4_cksum(ip) != 0)
		return 0;
	is_own = memcmp(&ip->dst_addr, port->port.addr.gid + 12, 4) == 0;
	if (!eth_is_to(port, &ip->dst_addr, is_own, frame))
		return 0;
	flow->src = port->port.addr; /* for its prefix */
	memcpy(flow->src.gid + 12, &ip->src_addr, sizeof(ip->src_addr));
	flow->ip_id = rte_be_to_cpu_16(ip->packet_id);
	frame->grh = (struct rsoft_grh){
			.traffic_class = ip->type_of_service, .hop_limit = ip->time_to_live};
	return rte_be_to_cpu_16(ip->total_length);
}

static uint32_t
eth_check_ipv6(const struct eth_port *port, const void *header, struct rwire_frame *frame)
{
	const struct rte_ipv6_hdr *ip = header;
	bool is_own;

	if ((ip->vtc_flow & RTE_BE32(UINT32_C(0xf) << 28)) != RTE_BE32(UINT32_C(6) << 28) ||
			ip->proto != IPPROTO_UDP)
		return 0;
	is_own = memcmp(&ip->dst_addr, port->port.addr.gid, sizeof(ip->dst_addr)) == 0;
	if (!eth_is_to(port, &ip->dst_addr, is_own, frame))
		return 0;
	memcpy(frame->flow.src.gid, &ip->src_addr, sizeof(ip->src_addr));
	frame->grh = (struct rsoft_grh){
			.flow_label = rte_be_to_cpu_32(ip->vtc_flow) & RSOFT_GRH_FLOW_LABEL,
			.traffic_class = (uint8_t)(rte_be_to_cpu_32(ip->vtc_flow) >> 20),
			.hop_limit = ip->hop_limits};
	return rte_be_to_cpu_16(ip->payload_len) + (uint32_t)sizeof(*ip);
}

/* Check the headers of a packet and describe it; false if it is not for the engine. */
static bool
eth_receive(struct eth_port *port, struct rte_mbuf *mbuf, struct rwire_frame *frame)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(mbuf, const struct rte_ether_hdr *);
	const void *ip = eth + 1;
	const struct rte_udp_hdr *udp = RTE_PTR_ADD(ip, port->ip_len);
	uint32_t total = 0, len;

	if (mbuf->nb_segs != 1 || mbuf->data_len < RTE_ETHER_HDR_LEN)
		return false;
	if (eth->ether_type == port->ether_type && mbuf->data_len >= eth_headers(port))
		total = port->is_ipv4 ? eth_check_ipv4(port, ip, frame)
				      : eth_check_ipv6(port, ip, frame);
	if (total == 0) {
		eth_receive_neigh(port, mbuf);
		return false;
	}
	len = rte_be_to_cpu_16(udp->dgram_len);
	if (total < port->ip_len + ETH_UDP || udp->dst_port != RTE_BE16(RWIRE_UDP_PORT) ||
			RTE_ETHER_HDR_LEN + total > mbuf->data_len || len != total - port->ip_len)
		return false;
	frame->bth = frame->data = (uint8_t *)(uintptr_t)(udp + 1);
	frame->len = len - (uint32_t)sizeof(*udp);
	frame->flow.src_port = rte_be_to_cpu_16(udp->src_port);
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
	/* Reuse an mbuf that was not sent, such as the mbuf of a dropped packet. */
	if (port->tx_mbuf == NULL)
		port->tx_mbuf = rte_pktmbuf_alloc(port->pool);
	if (port->tx_mbuf == NULL)
		return NULL;
	port->tx_frame.bth = rte_pktmbuf_mtod_offset(port->tx_mbuf, uint8_t *, eth_headers(port));
	port->tx_frame.flow.src = base->addr;
	port->tx_frame.flow.dst = *dst;
	port->tx_frame.flow.src_port = RWIRE_UDP_PORT;
	port->tx_frame.flow.ip_id = 0;
	port->tx_frame.grh = (struct rsoft_grh){0};
	return &port->tx_frame;
}

/* Multicast packets with hop limit 0 get 1, so they stay on the link, as with a socket. */
static uint8_t
eth_ttl(const struct rwire_frame *frame)
{
	if (likely(!frame->is_mcast))
		return ETH_TTL;
	return frame->grh.hop_limit != 0 ? frame->grh.hop_limit : 1;
}

/* The Ethernet address of a multicast group (RFC 1112, RFC 2464). */
static struct rte_ether_addr
eth_group_mac(const struct rwire_addr *group)
{
	struct rte_ether_addr mac = {{0x01, 0x00, 0x5e, group->gid[13] & 0x7f}};

	if (rwire_addr_is_ipv4(group)) {
		memcpy(mac.addr_bytes + 4, group->gid + 14, 2);
		return mac;
	}
	mac.addr_bytes[0] = mac.addr_bytes[1] = 0x33;
	memcpy(mac.addr_bytes + 2, group->gid + 12, 4);
	return mac;
}

static void
eth_build_ipv4(const struct rwire_frame *frame, uint16_t udp_len, struct rte_ipv4_hdr *ip)
{
	*ip = (struct rte_ipv4_hdr){.version_ihl = RTE_IPV4_VHL_DEF,
			.type_of_service = frame->grh.traffic_class,
			.total_length = rte_cpu_to_be_16((uint16_t)(sizeof(*ip) + udp_len)),
			.fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG),
			.time_to_live = eth_ttl(frame),
			.next_proto_id = IPPROTO_UDP};
	memcpy(&ip->src_addr, frame->flow.src.gid + 12, sizeof(ip->src_addr));
	memcpy(&ip->dst_addr, frame->flow.dst.gid + 12, sizeof(ip->dst_addr));
	ip->hdr_checksum = rte_ipv4_cksum(ip);
}

static void
eth_build_ipv6(const struct rwire_frame *frame, uint16_t udp_len, struct rte_ipv6_hdr *ip)
{
	*ip = (struct rte_ipv6_hdr){.vtc_flow = rsoft_grh_vtc_flow(&frame->grh),
			.payload_len = rte_cpu_to_be_16(udp_len),
			.proto = IPPROTO_UDP,
			.hop_limits = eth_ttl(frame)};
	memcpy(&ip->src_addr, frame->flow.src.gid, sizeof(ip->src_addr));
	memcpy(&ip->dst_addr, frame->flow.dst.gid, sizeof(ip->dst_addr));
}

/* Store the headers before the BTH. */
static void
eth_build(struct eth_port *port, const struct rwire_frame *frame, const struct rte_ether_addr *mac)
{
	uint16_t udp_len = (uint16_t)(ETH_UDP + frame->len);
	struct rte_ether_hdr *eth = rte_pktmbuf_mtod(port->tx_mbuf, struct rte_ether_hdr *);
	void *ip = eth + 1;
	struct rte_udp_hdr *udp = RTE_PTR_ADD(ip, port->ip_len);

	eth->dst_addr = *mac;
	eth->src_addr = port->neighs.mac;
	eth->ether_type = port->ether_type;
	if (port->is_ipv4)
		eth_build_ipv4(frame, udp_len, ip);
	else
		eth_build_ipv6(frame, udp_len, ip);
	/* No checksum (IBTA A17.4.4, RFC 6935): the ICRC covers the packet. */
	*udp = (struct rte_udp_hdr){.src_port = rte_cpu_to_be_16(frame->flow.src_port),
			.dst_port = RTE_BE16(RWIRE_UDP_PORT),
			.dgram_len = rte_cpu_to_be_16(udp_len)};
}

static void
eth_tx_put(struct rwire_port *base, struct rwire_frame *frame)
{
	struct eth_port *port = (struct eth_port *)base;
	struct rte_ether_addr mac;

	if (unlikely(frame->is_mcast)) {
		mac = eth_group_mac(&frame->flow.dst);
	} else if (!eth_resolve(port, &frame->flow.dst, &mac)) {
		RSOFT_COUNT(base->stats.tx_dropped, 1);
		return;
	}
	eth_build(port, frame, &mac);
	port->tx_mbuf->data_len = (uint16_t)(eth_headers(port) + frame->len);
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

/* An ethdev port has no descriptor to sleep on: the thread polls. */
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
	free(port->groups);
	free(port);
}

/* Drop waiting packets: their mbufs are from this pool, and the next user of the port would receive
 * them. */
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

/* Steer packets of the wire to the queue, if the driver has flow rules. */
static void
eth_add_flow(struct eth_port *port)
{
	const struct rte_flow_attr attr = {.ingress = 1};
	const struct rte_flow_item_udp udp = {.hdr.dst_port = RTE_BE16(RWIRE_UDP_PORT)};
	const struct rte_flow_item_udp udp_mask = {.hdr.dst_port = RTE_BE16(UINT16_MAX)};
	struct rte_flow_item_ipv4 ipv4 = {0}, ipv4_mask = {.hdr.dst_addr = UINT32_MAX};
	struct rte_flow_item_ipv6 ipv6 = {0}, ipv6_mask = {0};
	const struct rte_flow_action_queue queue = {.index = 0};
	const struct rte_flow_action actions[] = {
			{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &queue},
			{.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_flow_item items[] = {{.type = RTE_FLOW_ITEM_TYPE_ETH},
			{.type = RTE_FLOW_ITEM_TYPE_IPV4, .spec = &ipv4, .mask = &ipv4_mask},
			{.type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &udp, .mask = &udp_mask},
			{.type = RTE_FLOW_ITEM_TYPE_END}};
	struct rte_flow_error error = {0};

	memcpy(&ipv4.hdr.dst_addr, port->port.addr.gid + 12, sizeof(ipv4.hdr.dst_addr));
	memcpy(&ipv6.hdr.dst_addr, port->port.addr.gid, sizeof(ipv6.hdr.dst_addr));
	memset(&ipv6_mask.hdr.dst_addr, 0xff, sizeof(ipv6_mask.hdr.dst_addr));
	if (!port->is_ipv4)
		items[1] = (struct rte_flow_item){
				.type = RTE_FLOW_ITEM_TYPE_IPV6, .spec = &ipv6, .mask = &ipv6_mask};
	port->flow = rte_flow_create(port->id, &attr, items, actions, &error);
	if (port->flow == NULL)
		RSOFT_LOG(INFO, "port=eth:%u: no flow rule for UDP port %u: %s", port->id,
				RWIRE_UDP_PORT, error.message != NULL ? error.message : "refused");
}

/* Receive neighbour solicitations and packets of groups. */
static void
eth_join(struct eth_port *port)
{
	struct rte_ether_addr *macs;
	uint32_t i, nb = 0;

	port->is_joined |= !port->is_ipv4 || port->nb_groups != 0;
	if (!port->is_joined)
		return;
	macs = calloc(port->nb_groups + 1, sizeof(*macs));
	if (macs != NULL) {
		if (!port->is_ipv4)
			macs[nb++] = rwire_neigh_group(&port->port.addr);
		for (i = 0; i < port->nb_groups; i++)
			macs[nb++] = eth_group_mac(&port->groups[i]);
	}
	if ((macs != NULL && rte_eth_dev_set_mc_addr_list(port->id, macs, nb) == 0) || nb == 0 ||
			rte_eth_allmulticast_enable(port->id) == 0 ||
			rte_eth_promiscuous_enable(port->id) == 0) {
		free(macs);
		return;
	}
	free(macs);
	RSOFT_LOG(INFO,
			"port=eth:%u: its driver has no multicast addresses: it may not receive "
			"neighbour solicitations and multicast",
			port->id);
}

static int
eth_mcast_join(struct rwire_port *base, const struct rwire_addr *group)
{
	struct eth_port *port = (struct eth_port *)base;
	struct rwire_addr *groups =
			reallocarray(port->groups, port->nb_groups + 1, sizeof(port->groups[0]));

	if (groups == NULL)
		return -ENOMEM;
	port->groups = groups;
	groups[port->nb_groups++] = *group;
	eth_join(port);
	return 0;
}

static void
eth_mcast_leave(struct rwire_port *base, const struct rwire_addr *group)
{
	struct eth_port *port = (struct eth_port *)base;
	uint32_t i;

	for (i = 0; !rwire_addr_is_equal(&port->groups[i], group); i++)
		;
	port->groups[i] = port->groups[--port->nb_groups];
	eth_join(port);
}

/* Undo eth_join() and eth_add_flow(). */
static void
eth_leave(struct eth_port *port)
{
	if (port->flow != NULL)
		(void)rte_flow_destroy(port->id, port->flow, NULL);
	if (!port->is_joined)
		return;
	(void)rte_eth_dev_set_mc_addr_list(port->id, NULL, 0);
	(void)rte_eth_allmulticast_disable(port->id);
	(void)rte_eth_promiscuous_disable(port->id);
}

static void
eth_close(struct rwire_port *base)
{
	struct eth_port *port = (struct eth_port *)base;

	rte_pktmbuf_free_bulk(port->rx, port->nb_rx);
	rte_pktmbuf_free_bulk(port->tx, port->nb_tx);
	rte_pktmbuf_free(port->tx_mbuf);
	eth_drain(port);
	eth_leave(port);
	(void)rte_eth_dev_stop(port->id);
	eth_free(port);
}

static bool
eth_link_is_up(const struct rwire_port *base)
{
	const struct eth_port *port = (const struct eth_port *)base;
	struct rte_eth_link link;

	return rte_eth_link_get_nowait(port->id, &link) != 0 || link.link_status == RTE_ETH_LINK_UP;
}

static const struct rwire_port_ops eth_ops = {
		.close = eth_close,
		.link_is_up = eth_link_is_up,
		.mcast_join = eth_mcast_join,
		.mcast_leave = eth_mcast_leave,
		.mcast_members = rwire_port_mcast_members,
		.rx_burst = eth_rx_burst,
		.rx_grant = rwire_port_rx_grant,
		.rx_release = rwire_port_rx_release,
		.rx_sleep = eth_rx_sleep,
		.tx_count = rwire_port_tx_count,
		.tx_direct = rwire_port_tx_direct,
		.tx_flush = eth_tx_flush,
		.tx_get = eth_tx_get,
		.tx_idle = rwire_port_tx_idle,
		.tx_is_late = rwire_port_tx_is_late,
		.tx_put = eth_tx_put,
		.tx_share = rwire_port_tx_share,
};

static int
eth_fail(const struct eth_port *port, const char *what, int rc)
{
	RSOFT_LOG(ERR, "port=eth:%u: %s: %s", port->id, what, strerror(-rc));
	switch (rc) {
	case -EBUSY: /* started already */
		return -EEXIST;
	case -EPERM:
	case -EACCES:
		return -EPERM;
	default:
		return rc == -ENOMEM ? -ENOMEM : -EIO;
	}
}

/* Set up one queue per direction, and start. */
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

/* Create the mbuf pool of an ethdev port, or reuse the pool of an earlier device if the port still
 * has mbufs of it. */
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

static void
eth_init(struct eth_port *port, const struct rwire_addr *addr)
{
	uint16_t i;

	port->port.ops = &eth_ops;
	port->port.addr = *addr;
	port->port.fd = -1;
	port->port.has_icrc = true;
	port->is_ipv4 = rwire_addr_is_ipv4(addr);
	port->ip_len = port->is_ipv4 ? sizeof(struct rte_ipv4_hdr) : sizeof(struct rte_ipv6_hdr);
	port->ether_type = port->is_ipv4 ? RTE_BE16(RTE_ETHER_TYPE_IPV4)
					 : RTE_BE16(RTE_ETHER_TYPE_IPV6);
	rte_ticketlock_init(&port->lock);
	for (i = 0; i < RWIRE_RX_BURST; i++) {
		port->rx_frame[i].is_id_known = port->rx_frame[i].has_icrc = true;
		port->rx_frame[i].flow.dst = *addr;
	}
}

/* Raise the MTU of the ethdev port for a path MTU if its driver supports it; return its MTU. */
static uint16_t
eth_raise_mtu(const struct eth_port *port, uint32_t path_mtu, uint16_t mtu)
{
	uint16_t wanted = (uint16_t)(path_mtu + port->ip_len + ETH_EXTRA);
	int rc;

	if (wanted <= mtu)
		return mtu;
	rc = rte_eth_dev_set_mtu(port->id, wanted);
	if (rc == 0)
		return wanted;
	RSOFT_LOG(INFO, "port=eth:%u: MTU %u not set: %s", port->id, wanted, strerror(-rc));
	return mtu;
}

static int
eth_open(struct eth_port *port, const char *neighs, uint32_t path_mtu)
{
	struct rte_eth_conf conf = {0};
	struct rte_ether_addr mac;
	uint16_t mtu = 0;
	int rc;

	rc = rte_eth_macaddr_get(port->id, &mac);
	if (rc == 0)
		rc = rte_eth_dev_get_mtu(port->id, &mtu);
	if (rc != 0)
		return eth_fail(port, "no MAC address or MTU", rc);
	rc = rwire_neighs_init(&port->neighs, &port->port.addr, &mac, neighs);
	if (rc != 0)
		return rc;
	/* 0 would mean 1500. Drivers check that it does not exceed the size of the mbufs. */
	conf.rxmode.mtu = RTE_MIN(mtu, (uint16_t)ETH_MAX_MTU);
	rc = rte_eth_dev_configure(port->id, 1, 1, &conf);
	if (rc != 0)
		return eth_fail(port, "rte_eth_dev_configure()", rc);
	mtu = eth_raise_mtu(port, path_mtu, mtu);
	port->port.max_mtu = RWIRE_MAX_MTU;
	while (port->port.max_mtu > 256 && port->port.max_mtu + port->ip_len + ETH_EXTRA > mtu)
		port->port.max_mtu /= 2;
	rc = eth_open_pool(port);
	if (rc == 0)
		rc = eth_start(port);
	if (rc != 0)
		return rc;
	eth_join(port);
	eth_add_flow(port);
	return 0;
}

/* Parse the number of an ethdev port; return an errno, logged. */
static int
eth_parse(const char *text, uint16_t *id)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end != '\0' || number >= RTE_MAX_ETHPORTS) {
		RSOFT_LOG(ERR, "port=eth:%s: not the number of an ethdev port, 0 to %u", text,
				RTE_MAX_ETHPORTS - 1);
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
rwire_port_eth_open(const struct rwire_addr *addr, const char *text, const char *neighs,
		uint32_t path_mtu, struct rwire_port **out)
{
	struct eth_port *port;
	uint16_t id = 0;
	int rc;

	rc = eth_parse(text, &id);
	if (rc != 0)
		return rc;
	port = calloc(1, sizeof(*port));
	if (port == NULL)
		return -ENOMEM;
	port->id = id;
	eth_init(port, addr);
	rc = eth_open(port, neighs, path_mtu);
	if (rc != 0) {
		eth_free(port);
		return rc;
	}
	*out = &port->port;
	return 0;
}
