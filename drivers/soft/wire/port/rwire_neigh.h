/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Neighbours on an Ethernet and their MAC addresses, resolved with ARP (RFC 826) and, for IPv6,
 * neighbour discovery (RFC 4861). Frames are passed as bytes; the port sends them.
 *
 * - A neighbour is learned from requests for this address, and from replies to own requests. It is
 *   requested again if nothing was received from it for some time; its MAC address stays in use
 *   until a reply changes it.
 * - Invariant: static neighbours of neigh= are neither requested nor replaced.
 * Not thread-safe: the lock of the port protects it.
 */

#ifndef RWIRE_NEIGH_H
#define RWIRE_NEIGH_H

#include <rte_ether.h>

#include "../codec/rwire_addr.h"

#define RWIRE_NEIGH_FRAME  86  /* bytes of the longest request or reply */
#define RWIRE_NEIGH_NB     256 /* a power of two */
#define RWIRE_NEIGH_STATIC 16

struct rwire_neigh {
	struct rwire_addr addr; /* all 0: unused */
	bool is_resolved;
	struct rte_ether_addr mac;
	uint64_t used_at;      /* time of the last packet to it, TSC; 0: never */
	uint64_t requested_at; /* time of the last request, TSC; 0: never */
	uint64_t answered_at;  /* time of the last answer, TSC */
};

struct rwire_neighs {
	struct rwire_addr addr;    /* address of the port */
	struct rte_ether_addr mac; /* MAC address of the port */
	uint64_t request_cycles;   /* minimum time between two requests for an address */
	uint64_t stale_cycles;     /* time from answered_at to the next request */
	uint32_t nb_static;
	struct rwire_neigh fixed[RWIRE_NEIGH_STATIC];
	struct rwire_neigh learned[RWIRE_NEIGH_NB];
};

/*
 * Initialize, with static neighbours in a text ADDRESS@MAC;ADDRESS@MAC, or "". Return 0, or
 * -EINVAL, which is logged.
 */
int rwire_neighs_init(struct rwire_neighs *neighs, const struct rwire_addr *addr,
		const struct rte_ether_addr *mac, const char *text);

/*
 * Get the MAC address of a neighbour at time now; false if it is not resolved. *len is the length
 * of a request to send; 0 if none is needed, or one was sent a short time ago.
 */
bool rwire_neigh_resolve(struct rwire_neighs *neighs, const struct rwire_addr *addr, uint64_t now,
		struct rte_ether_addr *mac, uint8_t request[RWIRE_NEIGH_FRAME], uint32_t *len);

/*
 * Learn from a received frame of ARP or neighbour discovery, aligned to 2 bytes. Return the length
 * of the reply to send; 0: none. Malformed frames, and frames of other protocols, have no effect.
 */
uint32_t rwire_neigh_receive(struct rwire_neighs *neighs, const uint8_t *frame, uint32_t len,
		uint64_t now, uint8_t reply[RWIRE_NEIGH_FRAME]);

/* Ethernet multicast address of neighbour solicitations for an IPv6 address. */
struct rte_ether_addr rwire_neigh_group(const struct rwire_addr *addr);

#endif /* RWIRE_NEIGH_H */
