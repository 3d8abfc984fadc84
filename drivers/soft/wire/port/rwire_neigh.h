/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Neighbours on an Ethernet and their MAC addresses, resolved with ARP (RFC 826) and, for IPv6,
 * neighbour discovery (RFC 4861). It knows frames as bytes; the port sends them.
 *
 * - A neighbour is learned from the requests received for this address, and from the replies to
 *   own requests. It is requested again when it was not heard of for some time, and used until
 *   another one replies.
 * - Invariant: static neighbours, those of neigh=, are neither requested nor replaced.
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
	uint64_t used_at;      /* a packet was sent to it, TSC; 0: never */
	uint64_t requested_at; /* TSC; 0: never */
	uint64_t answered_at;  /* TSC */
};

struct rwire_neighs {
	struct rwire_addr addr;    /* of the port */
	struct rte_ether_addr mac; /* of the port */
	uint64_t request_cycles;   /* between two requests for an address */
	uint64_t stale_cycles;     /* from answered_at to the next request */
	uint32_t nb_static;
	struct rwire_neigh fixed[RWIRE_NEIGH_STATIC];
	struct rwire_neigh learned[RWIRE_NEIGH_NB];
};

/*
 * Initialize, with static neighbours of the text ADDRESS@MAC;ADDRESS@MAC, or "". 0, or -EINVAL,
 * which is logged.
 */
int rwire_neighs_init(struct rwire_neighs *neighs, const struct rwire_addr *addr,
		const struct rte_ether_addr *mac, const char *text);

/*
 * The MAC address of a neighbour at time now; false: it is not resolved. *len is the length of a
 * request to send, or 0: none is needed, or one was sent a short time ago.
 */
bool rwire_neigh_resolve(struct rwire_neighs *neighs, const struct rwire_addr *addr, uint64_t now,
		struct rte_ether_addr *mac, uint8_t request[RWIRE_NEIGH_FRAME], uint32_t *len);

/*
 * Learn from a frame of ARP or neighbour discovery received at time now, which is aligned to 2
 * bytes. The length of the reply to send; 0: none. A frame that is malformed, or of another
 * protocol, has no effect.
 */
uint32_t rwire_neigh_receive(struct rwire_neighs *neighs, const uint8_t *frame, uint32_t len,
		uint64_t now, uint8_t reply[RWIRE_NEIGH_FRAME]);

/* The Ethernet multicast address of neighbour solicitations for an IPv6 address. */
struct rte_ether_addr rwire_neigh_group(const struct rwire_addr *addr);

#endif /* RWIRE_NEIGH_H */
