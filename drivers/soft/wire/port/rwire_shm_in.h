/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Channels of a port=shm from its peers: accepted, and freed after the peer has ended and all of
 * its packets were received. Up to SHM_IN_POLLED channels are all polled; if there are more,
 * channels without packets sleep until a doorbell, so silent peers do not make a poll slower.
 *
 * Invariant: a channel gets its ring after the peer was admitted at the address that it claims; the
 * address is referenced until the channel is freed (rwire_owner.h). All channels are protected by
 * rwire::rx_lock.
 */

#ifndef RWIRE_SHM_IN_H
#define RWIRE_SHM_IN_H

#include "rwire_region.h"
#include "rwire_shm.h"

#define SHM_IN_POLLED 64u

/* A channel from a peer. */
struct shm_in {
	uint32_t number;
	uint32_t active_at; /* index in shm_ins::active; UINT32_MAX: asleep */
	uint32_t seen_pos;  /* position at the last check for packets */
	struct shm_in *next_free;
	int fd;                    /* -1: free */
	struct rwire_ring_end end; /* no ring until it was received */
	struct rwire_regions regions;
	struct rwire_addr addr;
	uint32_t uid;                    /* user of the peer */
	uint64_t opened_at;              /* time of the connection, TSC */
	bool is_held;                    /* owners has a reference to addr for uid */
	struct rsoft_grant_peer *direct; /* NULL until the peer requests a grant */
	bool is_closed;
	uint32_t left; /* is_closed: packets that may still be received */
};

struct shm_ins {
	const char *name;            /* name of the port */
	struct rwire_owners *owners; /* NULL for port=shm:NAME */
	struct rwire_addr addr;
	bool is_sharing;
	uint64_t check_cycles; /* time between two services, TSC */
	int epoll;             /* readable when the thread must wake up */
	int listener;
	uint32_t uid;             /* user that listens */
	bool is_listener_off;     /* the listener is not in the epoll instance */
	uint64_t listener_off_at; /* since then, TSC */
	struct shm_in **in;       /* by number, nb of max; freed when the port is closed */
	uint32_t nb, max;
	struct shm_in *free;
	struct shm_in **active; /* channels with a ring that are polled */
	uint32_t nb_active;
	struct shm_users users;
	uint32_t next;           /* the channel to check next */
	uint64_t serviced_at;    /* time of the last service, TSC */
	uint64_t pause;          /* time until the next service */
	uint64_t rested_at;      /* time of the last search for channels without packets, TSC */
	uint32_t logged_reasons; /* bit n: refusals with reason n are logged */
};

/* Take over the listener, unless it fails. Return 0, or -ENOMEM; logged. */
int rwire_shm_ins_open(struct shm_ins *ins, int listener);
void rwire_shm_ins_close(struct shm_ins *ins);

/* Handle connections, doorbells and ends of peers; now is the TSC. Not while slots are read. */
void rwire_shm_ins_service(struct shm_ins *ins, uint64_t now);

/* Return the slots of the last burst, and free ended channels whose packets were all received. */
void rwire_shm_ins_release(struct shm_ins *ins);

#endif /* RWIRE_SHM_IN_H */
