/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Channels of a port=shm from its peers: accepted, and freed when their packets were received after
 * the end of the peer. Up to SHM_IN_POLLED channels are polled; of more, those without packets are
 * asleep until a doorbell, so that a poll costs no more with each peer that is silent.
 *
 * Invariant: a channel has a ring once the peer was admitted at the address that it claims, which
 * is referred to until it is freed (rwire_owner.h). All of them are protected by rwire::rx_lock.
 */

#ifndef RWIRE_SHM_IN_H
#define RWIRE_SHM_IN_H

#include "rwire_region.h"
#include "rwire_shm.h"

#define SHM_IN_POLLED 64u

/* A channel from a peer. */
struct shm_in {
	uint32_t number;
	uint32_t active_at; /* its place in shm_ins::active; UINT32_MAX: it is asleep */
	uint32_t seen_pos;  /* at the last check for packets */
	struct shm_in *next_free;
	int fd;                    /* -1: free */
	struct rwire_ring_end end; /* without a ring until its message is there */
	struct rwire_regions regions;
	struct rwire_addr addr;
	uint32_t uid;                    /* of the peer */
	uint64_t opened_at;              /* TSC */
	bool is_held;                    /* addr is one of uid */
	struct rsoft_grant_peer *direct; /* NULL until it requested a grant */
	bool is_closed;
	uint32_t left; /* is_closed: packets that may still be received */
};

struct shm_ins {
	const char *name;            /* of the port */
	struct rwire_owners *owners; /* NULL: of a port=shm:NAME */
	struct rwire_addr addr;
	bool is_sharing;
	uint64_t check_cycles; /* between two services, TSC */
	int epoll;             /* readable when the thread must wake up */
	int listener;
	uint32_t uid;             /* that listens */
	bool is_listener_off;     /* the listener is not in the epoll instance, since */
	uint64_t listener_off_at; /* TSC */
	struct shm_in **in;       /* by number, nb of max; not freed before the port is closed */
	uint32_t nb, max;
	struct shm_in *free;
	struct shm_in **active; /* that have a ring and are polled */
	uint32_t nb_active;
	struct shm_users users;
	uint32_t next;           /* the channel to check next */
	uint64_t serviced_at;    /* TSC */
	uint64_t pause;          /* from then to the next service */
	uint64_t rested_at;      /* channels without packets were searched, TSC */
	uint32_t logged_reasons; /* bit n: refusals with reason n are logged */
};

/* Takes over the listener, if it succeeds: 0, or -ENOMEM; logged. */
int rwire_shm_ins_open(struct shm_ins *ins, int listener);
void rwire_shm_ins_close(struct shm_ins *ins);

/* Connections, doorbells and ends of peers; now is the TSC. Not while slots are read. */
void rwire_shm_ins_service(struct shm_ins *ins, uint64_t now);

/* Return the slots of the last burst; free the channels whose packets were all received. */
void rwire_shm_ins_release(struct shm_ins *ins);

#endif /* RWIRE_SHM_IN_H */
