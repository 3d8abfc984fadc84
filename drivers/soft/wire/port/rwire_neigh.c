/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Neighbours; see rwire_neigh.h. */

#include <errno.h>
#include <stdio.h>

#include <rte_arp.h>
#include <rte_cycles.h>
#include <rte_ip.h>

#include "../../base/rsoft.h"
#include "rwire_neigh.h"

#define NEIGH_ASK_MS   100
#define NEIGH_STALE_MS 10000
#define NEIGH_WAYS     8

/* Neighbour solicitation and advertisement (RFC 4861, 4.3 and 4.4), with one option. */
#define ND_SOLICIT    135
#define ND_ADVERTISE  136
#define ND_SOLICITED  0x40
#define ND_OVERRIDE   0x20
#define ND_SOURCE_MAC 1
#define ND_TARGET_MAC 2
#define ND_HOP_LIMIT  255 /* proves that no router forwarded the packet */

struct nd_option {
	uint8_t type;
	uint8_t len; /* in units of 8 bytes */
	struct rte_ether_addr mac;
};

struct nd_packet {
	uint8_t type;
	uint8_t code;
	rte_be16_t cksum;
	uint8_t flags;
	uint8_t reserved[3];
	struct rwire_addr target;
};

static_assert(sizeof(struct nd_option) == 8 && sizeof(struct nd_packet) == 24, "RFC 4861");

static const struct rte_ether_addr neigh_broadcast = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
static const struct rwire_addr nd_any;
static const struct rwire_addr nd_all_nodes = {{0xff, 0x02, [15] = 1}};

/* Solicited-node multicast address: ff02::1:ff00:0/104 with the last 24 bits of the address (RFC
 * 4291, 2.7.1). */
static struct rwire_addr
nd_group(const struct rwire_addr *addr)
{
	struct rwire_addr group = {{0xff, 0x02, [11] = 1, [12] = 0xff}};

	memcpy(group.gid + 13, addr->gid + 13, 3);
	return group;
}

struct rte_ether_addr
rwire_neigh_group(const struct rwire_addr *addr)
{
	struct rte_ether_addr mac = {{0x33, 0x33, 0xff}};

	memcpy(mac.addr_bytes + 3, addr->gid + 13, 3);
	return mac;
}

static struct rwire_neigh *
neigh_static(struct rwire_neighs *neighs, const struct rwire_addr *addr)
{
	uint32_t i;

	for (i = 0; i < neighs->nb_static; i++) {
		if (rwire_addr_is_equal(&neighs->fixed[i].addr, addr))
			return &neighs->fixed[i];
	}
	return NULL;
}

/* Slot of an address; if it is not in the table, the least recently used of its slots. */
static struct rwire_neigh *
neigh_slot(struct rwire_neighs *neighs, const struct rwire_addr *addr)
{
	uint32_t i, hash = addr->gid[15] ^ (addr->gid[14] * 31u) ^ (addr->gid[13] * 131u);
	struct rwire_neigh *one, *oldest = NULL;

	for (i = 0; i < NEIGH_WAYS; i++) {
		one = &neighs->learned[(hash + i) & (RWIRE_NEIGH_NB - 1)];
		if (rwire_addr_is_equal(&one->addr, addr))
			return one;
		if (oldest == NULL || one->used_at < oldest->used_at)
			oldest = one;
	}
	return oldest;
}

/* Whether the address was requested. */
static bool
neigh_is_requested(struct rwire_neighs *neighs, const struct rwire_addr *addr)
{
	const struct rwire_neigh *one = neigh_slot(neighs, addr);

	return rwire_addr_is_equal(&one->addr, addr) && one->requested_at != 0;
}

static void
neigh_learn(struct rwire_neighs *neighs, const struct rwire_addr *addr,
		const struct rte_ether_addr *mac, uint64_t now)
{
	struct rwire_neigh *one = neigh_slot(neighs, addr);
	uint64_t used_at = rwire_addr_is_equal(&one->addr, addr) ? one->used_at : 0;

	if (neigh_static(neighs, addr) != NULL || rwire_addr_is_equal(addr, &neighs->addr) ||
			!rwire_addr_is_unicast(addr) || !rte_is_unicast_ether_addr(mac))
		return;
	*one = (struct rwire_neigh){.addr = *addr,
			.is_resolved = true,
			.mac = *mac,
			.used_at = used_at,
			.answered_at = now};
}

static uint32_t
arp_build(const struct rwire_neighs *neighs, uint16_t opcode, const struct rte_ether_addr *mac,
		rte_be32_t ip, uint8_t *frame)
{
	struct rte_ether_hdr eth = {.dst_addr = *mac,
			.src_addr = neighs->mac,
			.ether_type = RTE_BE16(RTE_ETHER_TYPE_ARP)};
	struct rte_arp_hdr arp = {.arp_hardware = RTE_BE16(RTE_ARP_HRD_ETHER),
			.arp_protocol = RTE_BE16(RTE_ETHER_TYPE_IPV4),
			.arp_hlen = RTE_ETHER_ADDR_LEN,
			.arp_plen = sizeof(ip),
			.arp_opcode = rte_cpu_to_be_16(opcode)};

	arp.arp_data.arp_sha = neighs->mac;
	memcpy(&arp.arp_data.arp_sip, neighs->addr.gid + 12, sizeof(ip));
	if (opcode == RTE_ARP_OP_REPLY)
		arp.arp_data.arp_tha = *mac;
	arp.arp_data.arp_tip = ip;
	memcpy(frame, &eth, sizeof(eth));
	memcpy(frame + sizeof(eth), &arp, sizeof(arp));
	return sizeof(eth) + sizeof(arp);
}

static uint32_t
nd_build(const struct rwire_neighs *neighs, const struct nd_packet *packet,
		const struct rte_ether_addr *mac, const struct rwire_addr *dst, uint8_t *frame)
{
	struct rte_ether_hdr eth = {.dst_addr = *mac,
			.src_addr = neighs->mac,
			.ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV6)};
	struct nd_option option = {
			.type = packet->type == ND_SOLICIT ? ND_SOURCE_MAC : ND_TARGET_MAC,
			.len = 1,
			.mac = neighs->mac};
	struct rte_ipv6_hdr ip = {.vtc_flow = RTE_BE32(UINT32_C(6) << 28),
			.payload_len = RTE_BE16(sizeof(*packet) + sizeof(option)),
			.proto = IPPROTO_ICMPV6,
			.hop_limits = ND_HOP_LIMIT};
	uint8_t *at = frame + sizeof(eth) + sizeof(ip);
	rte_be16_t cksum;

	memcpy(&ip.src_addr, neighs->addr.gid, sizeof(ip.src_addr));
	memcpy(&ip.dst_addr, dst->gid, sizeof(ip.dst_addr));
	memcpy(frame, &eth, sizeof(eth));
	memcpy(frame + sizeof(eth), &ip, sizeof(ip));
	memcpy(at, packet, sizeof(*packet));
	memcpy(at + sizeof(*packet), &option, sizeof(option));
	cksum = rte_ipv6_udptcp_cksum(&ip, at);
	memcpy(at + offsetof(struct nd_packet, cksum), &cksum, sizeof(cksum));
	return RWIRE_NEIGH_FRAME;
}

/* Build a request for the address of a slot, unless one was sent a short time ago. */
static uint32_t
neigh_request(struct rwire_neighs *neighs, struct rwire_neigh *one, uint64_t now, uint8_t *frame)
{
	const struct nd_packet packet = {.type = ND_SOLICIT, .target = one->addr};
	struct rte_ether_addr mac = rwire_neigh_group(&one->addr);
	struct rwire_addr group = nd_group(&one->addr);
	rte_be32_t ip;

	if (one->requested_at != 0 && now - one->requested_at <= neighs->request_cycles)
		return 0;
	one->requested_at = now;
	if (!rwire_addr_is_ipv4(&one->addr))
		return nd_build(neighs, &packet, &mac, &group, frame);
	memcpy(&ip, one->addr.gid + 12, sizeof(ip));
	return arp_build(neighs, RTE_ARP_OP_REQUEST, &neigh_broadcast, ip, frame);
}

bool
rwire_neigh_resolve(struct rwire_neighs *neighs, const struct rwire_addr *addr, uint64_t now,
		struct rte_ether_addr *mac, uint8_t request[RWIRE_NEIGH_FRAME], uint32_t *len)
{
	const struct rwire_neigh *fixed = neigh_static(neighs, addr);
	struct rwire_neigh *one = neigh_slot(neighs, addr);

	*len = 0;
	if (fixed != NULL || rwire_addr_is_equal(addr, &neighs->addr)) {
		*mac = fixed != NULL ? fixed->mac : neighs->mac;
		return true;
	}
	if (!rwire_addr_is_equal(&one->addr, addr))
		*one = (struct rwire_neigh){.addr = *addr};
	one->used_at = now;
	if (!one->is_resolved || now - one->answered_at > neighs->stale_cycles)
		*len = neigh_request(neighs, one, now, request);
	*mac = one->mac;
	return one->is_resolved;
}

/* Handle an ARP packet for this address: learn its sender, and answer a request. */
static uint32_t
arp_receive(struct rwire_neighs *neighs, const struct rte_arp_hdr *arp, uint64_t now,
		uint8_t *reply)
{
	bool is_request = arp->arp_opcode == RTE_BE16(RTE_ARP_OP_REQUEST);
	struct rwire_addr from = neighs->addr; /* for its prefix */
	struct rte_ether_addr mac = arp->arp_data.arp_sha;

	if (arp->arp_hardware != RTE_BE16(RTE_ARP_HRD_ETHER) ||
			arp->arp_protocol != RTE_BE16(RTE_ETHER_TYPE_IPV4) ||
			arp->arp_hlen != RTE_ETHER_ADDR_LEN || arp->arp_plen != 4 ||
			memcmp(&arp->arp_data.arp_tip, neighs->addr.gid + 12, 4) != 0 ||
			memcmp(&arp->arp_data.arp_sip, neighs->addr.gid + 12, 4) == 0)
		return 0;
	memcpy(from.gid + 12, &arp->arp_data.arp_sip, 4);
	if (is_request || neigh_is_requested(neighs, &from))
		neigh_learn(neighs, &from, &mac, now);
	if (!is_request)
		return 0;
	return arp_build(neighs, RTE_ARP_OP_REPLY, &mac, arp->arp_data.arp_sip, reply);
}

/* Find the MAC address in an option, if any; false if the options are malformed. */
static bool
nd_parse_options(const uint8_t *at, uint32_t len, uint8_t type, struct rte_ether_addr *mac,
		bool *has_mac)
{
	uint32_t n;

	for (*has_mac = false; len != 0; at += n, len -= n) {
		n = len >= 2 ? at[1] * 8u : 0;
		if (n == 0 || n > len)
			return false;
		if (at[0] != type || *has_mac)
			continue;
		memcpy(mac, at + offsetof(struct nd_option, mac), sizeof(*mac));
		*has_mac = true;
	}
	return true;
}

/* Build the advertisement that answers a solicitation (RFC 4861, 7.2.4): to the sender, or to all
 * nodes if the sender has no address yet. */
static uint32_t
nd_answer(const struct rwire_neighs *neighs, const struct rwire_addr *from,
		const struct rte_ether_addr *mac, uint8_t *reply)
{
	static const struct rte_ether_addr all = {{0x33, 0x33, 0, 0, 0, 1}};
	struct nd_packet packet = {
			.type = ND_ADVERTISE, .flags = ND_OVERRIDE, .target = neighs->addr};

	if (rwire_addr_is_equal(from, &nd_any))
		return nd_build(neighs, &packet, &all, &nd_all_nodes, reply);
	packet.flags |= ND_SOLICITED;
	return nd_build(neighs, &packet, mac, from, reply);
}

/* Handle an ICMPv6 packet of len bytes; ip and eth precede it. */
static uint32_t
nd_receive(struct rwire_neighs *neighs, const struct rte_ether_hdr *eth,
		const struct rte_ipv6_hdr *ip, uint32_t len, uint64_t now, uint8_t *reply)
{
	const struct nd_packet *packet = (const struct nd_packet *)(ip + 1);
	struct rte_ether_addr mac = eth->src_addr;
	struct rwire_addr from;
	bool has_mac;

	/* RFC 4861, 7.1. */
	if (ip->hop_limits != ND_HOP_LIMIT || len < sizeof(*packet) || packet->code != 0 ||
			rte_ipv6_udptcp_cksum(ip, packet) != 0 ||
			!nd_parse_options((const uint8_t *)(packet + 1),
					len - (uint32_t)sizeof(*packet),
					packet->type == ND_SOLICIT ? ND_SOURCE_MAC : ND_TARGET_MAC,
					&mac, &has_mac))
		return 0;
	memcpy(from.gid, &ip->src_addr, sizeof(from.gid));
	if (packet->type == ND_SOLICIT && rwire_addr_is_equal(&packet->target, &neighs->addr) &&
			!rwire_addr_is_equal(&from, &neighs->addr)) {
		if (has_mac)
			neigh_learn(neighs, &from, &mac, now);
		return nd_answer(neighs, &from, &mac, reply);
	}
	/* Accept advertisements only of requested neighbours (7.2.5). */
	if (packet->type == ND_ADVERTISE && has_mac && neigh_is_requested(neighs, &packet->target))
		neigh_learn(neighs, &packet->target, &mac, now);
	return 0;
}

uint32_t
rwire_neigh_receive(struct rwire_neighs *neighs, const uint8_t *frame, uint32_t len, uint64_t now,
		uint8_t reply[RWIRE_NEIGH_FRAME])
{
	const struct rte_ether_hdr *eth = (const struct rte_ether_hdr *)frame;
	const struct rte_ipv6_hdr *ip = (const struct rte_ipv6_hdr *)(eth + 1);
	bool is_ipv4 = rwire_addr_is_ipv4(&neighs->addr);
	uint32_t size;

	if (eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_ARP) && is_ipv4 &&
			len >= sizeof(*eth) + sizeof(struct rte_arp_hdr))
		return arp_receive(neighs, (const struct rte_arp_hdr *)(eth + 1), now, reply);
	if (eth->ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV6) || is_ipv4 ||
			len < sizeof(*eth) + sizeof(*ip) || ip->proto != IPPROTO_ICMPV6)
		return 0;
	size = rte_be_to_cpu_16(ip->payload_len);
	if (size > len - sizeof(*eth) - sizeof(*ip))
		return 0;
	return nd_receive(neighs, eth, ip, size, now, reply);
}

/* Parse a neighbour of neigh=, ADDRESS@MAC. */
static bool
neigh_parse(struct rwire_neighs *neighs, const char *text, size_t len)
{
	struct rwire_neigh *one = &neighs->fixed[neighs->nb_static];
	char copy[RWIRE_ADDR_TEXT + RTE_ETHER_ADDR_FMT_SIZE], *at;

	if (len >= sizeof(copy) || neighs->nb_static == RWIRE_NEIGH_STATIC)
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	at = strchr(copy, '@');
	if (at == NULL)
		return false;
	*at++ = '\0';
	if (!rwire_addr_parse(copy, &one->addr) || rte_ether_unformat_addr(at, &one->mac) != 0 ||
			!rte_is_unicast_ether_addr(&one->mac) ||
			rwire_addr_is_ipv4(&one->addr) != rwire_addr_is_ipv4(&neighs->addr) ||
			neigh_static(neighs, &one->addr) != NULL)
		return false;
	one->is_resolved = true;
	neighs->nb_static++;
	return true;
}

int
rwire_neighs_init(struct rwire_neighs *neighs, const struct rwire_addr *addr,
		const struct rte_ether_addr *mac, const char *text)
{
	size_t len;

	neighs->addr = *addr;
	neighs->mac = *mac;
	neighs->request_cycles = rte_get_tsc_hz() / 1000 * NEIGH_ASK_MS;
	neighs->stale_cycles = rte_get_tsc_hz() / 1000 * NEIGH_STALE_MS;
	for (; *text != '\0'; text += len + (text[len] == ';')) {
		len = strcspn(text, ";");
		if (neigh_parse(neighs, text, len))
			continue;
		RSOFT_LOG(ERR,
				"neigh=: '%.*s' is not ADDRESS@MAC of another neighbour with the "
				"family of ip=, or there are more than %u",
				(int)len, text, RWIRE_NEIGH_STATIC);
		return -EINVAL;
	}
	return 0;
}
