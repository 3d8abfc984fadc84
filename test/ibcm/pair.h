/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Two engines, each with a clock of its own, and a network that a test controls. */

#ifndef PAIR_H
#define PAIR_H

#include "ibcm.h"

#define PAIR_MAX_NET    64u
#define PAIR_MAX_EVENTS 4u
#define PAIR_SERVICE    UINT64_C(0x0106000012345678)
#define PAIR_QPN        0x11u /* of the first connection of side 0; of side 1: 0x100011 */
#define PAIR_TIMEOUT    20
#define PAIR_RETRIES    2
#define PAIR_ACK        16

struct pair_mad {
	uint8_t to;            /* the side that receives it */
	struct ibcm_path path; /* as its receiver has it */
	uint8_t mad[IBCM_MAD_LEN];
};

/* An event, and what was copied of it. */
struct pair_event {
	enum ibcm_event_type type;
	struct ibcm_id *id;
	uint16_t reason;
	bool has_ip;
	struct ibcm_ip ip;
	struct ibcm_msg msg;
	uint8_t data[IBCM_MAX_DATA];
	uint32_t data_len;
};

struct pair;

struct pair_side {
	struct pair *pair;
	struct ibcm *cm;
	struct ibcm_listener *listener;
	uint8_t gid[16];
	uint64_t now;
	uint64_t random;
	uint32_t nb_events; /* also those that are not in the ring any more */
	struct pair_event events[PAIR_MAX_EVENTS];
	/* Called for each event as well, from inside the engine; NULL: nothing is. */
	void (*event)(struct pair_side *side, const struct ibcm_event *event);
};

struct pair {
	struct pair_side side[2];
	uint32_t nb_net;
	uint32_t nb_lost;                  /* the network was full */
	struct pair_mad net[PAIR_MAX_NET]; /* the last member: pair_open() does not set it */
};

/* For the engines of pair_open(): both may be NULL. */
struct pair_hooks {
	void (*trace)(void *side, const struct ibcm_info *info, enum ibcm_state from);
	struct ibcm_log *logs; /* one of each side */
};

extern struct pair_hooks pair_hooks;

void pair_open(struct pair *pair, uint32_t max_ids, uint32_t max_half_open);
void pair_close(struct pair *pair);
/* The listener of a side for PAIR_SERVICE, without addresses. */
int pair_listen(struct pair *pair, uint32_t side, uint32_t backlog);
/* A valid request from a side to the other. */
struct ibcm_req_conf pair_req(const struct pair *pair, uint32_t side);
struct ibcm_qp_conf pair_qp(uint32_t side);
int pair_connect(struct pair *pair, uint32_t side, struct ibcm_id **id);

/* The network: deliver, or drop, a MAD; the others keep their order. */
void pair_deliver(struct pair *pair, uint32_t at);
void pair_drop(struct pair *pair, uint32_t at);
/* Deliver all of them in order, and those that follow. */
void pair_deliver_all(struct pair *pair);
/* Let the earliest timer of a side expire; false: it has none. */
bool pair_expire(struct pair *pair, uint32_t side);
/* Decode a MAD in the network. */
struct ibcm_msg pair_msg(const struct pair *pair, uint32_t at);
/* The last event of a side; its type is UINT32_MAX if there was none. */
const struct pair_event *pair_last(const struct pair *pair, uint32_t side);

/* Request a connection from side 0; the IDs of both sides, of which side 1 has the request. */
int pair_request(struct pair *pair, struct ibcm_id **a, struct ibcm_id **b);
/* Establish a connection from side 0 to side 1, which listens. */
int pair_establish(struct pair *pair, struct ibcm_id *ids[2]);

#endif /* PAIR_H */
