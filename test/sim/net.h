/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A modelled network: hosts with one link each to a switch, in virtual time.
 *
 * A link carries one packet at a time in each direction. The switch has an output queue of finite
 * size for each host, and drops the packets that exceed it. A host's own queue is not limited. Time
 * is in ns. Events at the same time are processed in the order in which they were added, so a seed
 * repeats a run.
 */

#ifndef NET_H
#define NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a packet on a link without those from the BTH to the ICRC: Ethernet, IPv4 and UDP. */
#define NET_OVERHEAD (8 + 14 + 20 + 8 + 4 + 12)

struct net_packet {
	struct net_packet *next; /* in the list of free packets */
	uint32_t src;
	uint32_t dst; /* hosts */
	uint32_t len; /* bytes on a link */
	uint32_t flow;
	uint32_t psn;
	uint32_t ack; /* of the model: next PSN expected */
	bool is_data; /* has a payload */
	bool is_ack_req;
	bool is_back; /* from the responder to the requester */
	bool is_at_host;
	_Alignas(16) uint8_t body[];
};

struct net_conf {
	uint32_t nb_hosts;
	uint32_t mbps;        /* of a link */
	uint32_t latency_ns;  /* of a link */
	uint32_t queue_bytes; /* of an output of the switch */
	double loss;          /* probability, 0 to 1 */
	double reorder;       /* probability that a packet is delayed */
	uint32_t reorder_ns;  /* maximum of that delay */
	uint64_t seed;
	/* The link of this host is down in [down_ns, up_ns). */
	uint32_t flap_host;
	uint64_t down_ns;
	uint64_t up_ns;
	size_t body_size;
	/* Whether this packet is lost; NULL: none is chosen. */
	bool (*is_chosen)(const struct net_packet *packet);
	/* A packet arrives; the callee frees it with net_put(). */
	void (*deliver)(void *user, struct net_packet *packet);
	void (*timer)(void *user, uint32_t id);
	void *user;
};

/* Packets. Invariant: without events, sent is the sum of the others. */
struct net_counts {
	uint64_t sent;
	uint64_t delivered;
	uint64_t lost;   /* at random, or chosen */
	uint64_t queue;  /* dropped: the output queue was full */
	uint64_t down;   /* dropped: the link was down */
	uint64_t events; /* processed */
};

struct net_link;
struct net_event;

struct net {
	struct net_conf conf;
	struct net_counts counts;
	uint64_t now;
	uint64_t state; /* of the random numbers */
	struct net_link *links;
	struct net_event *heap;
	size_t nb_events, max_events;
	uint64_t nb_pushed;
	struct net_packet *free;
	uint64_t nb_packets, nb_allocated;
};

/* False: no memory. */
bool net_open(struct net *net, const struct net_conf *conf);
void net_close(struct net *net);
struct net_packet *net_get(struct net *net);
void net_put(struct net *net, struct net_packet *packet);
/* Send the packet, which belongs to the network then. */
void net_send(struct net *net, struct net_packet *packet);
/* Call net_conf::timer at a time. */
void net_timer(struct net *net, uint64_t at, uint32_t id);
/* Process all events before a time, and set the clock to it. False: none is left. */
bool net_run(struct net *net, uint64_t until);
uint32_t net_random(struct net *net, uint32_t below);

#endif /* NET_H */
