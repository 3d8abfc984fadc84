/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Channels of a port=shm to its peers. A channel is connected when the first packet is sent, and
 * again after its peer has ended. Each check of the channel in use also checks another channel, so
 * that channels of ended peers are closed; without packets, rwire_port_ops::tx_idle does so. Users
 * share them in the same way as channels from peers (rwire_shm_in.h).
 *
 * Invariant: a channel has a ring while its fd is not negative. All channels are protected by
 * rwire::tx_lock.
 */

#ifndef RWIRE_SHM_OUT_H
#define RWIRE_SHM_OUT_H

#include "rwire_copy.h"
#include "rwire_region.h"
#include "rwire_shm.h"

#define SHM_OUT_LISTS 256u
#define SHM_OUT_GROUP 4u /* slots whose pages are allocated together */

/* A channel to a peer. */
struct shm_out {
	struct rwire_addr addr;
	struct shm_out *next;       /* next in the list of its address */
	struct shm_out *next_dirty; /* next channel with packets since the last flush */
	bool is_dirty;
	int fd; /* -1: not connected */
	struct rwire_ring_end end;
	uint32_t ready;     /* bit n: group n of slots has its pages */
	uint32_t empty_pos; /* position at which the ring was found empty */
	uint64_t empty_at;  /* time of that check, TSC */
	struct rwire_regions regions;
	uint64_t checked_at; /* time of the last check or attempt to connect, TSC */
	uint64_t pause;      /* time until the next one; 0: now */
	uint32_t uid;        /* user of the peer */
	struct rwire_copy_peer peer;
	uint64_t full_at;  /* time at which a datagram began to wait, TSC; 0: none waits */
	uint32_t full_pos; /* packets sent until then */
	int logged_reason; /* reason of the last refusal that was logged; 0: none */
};

struct shm_outs {
	const char *name;            /* name of the port */
	struct rwire_owners *owners; /* NULL for port=shm:NAME */
	struct rwire_addr addr;
	uint64_t check_cycles; /* time between two checks of a channel, TSC */
	struct shm_out **out;  /* nb of max; freed when the port is closed */
	uint32_t nb, max;
	struct shm_out *list[SHM_OUT_LISTS]; /* hashed by address */
	struct shm_out *dirty;
	struct shm_users users;
	uint32_t next;         /* the channel to sweep next */
	uint32_t next_unused;  /* the channel to check next for another address */
	uint64_t cleaned_at;   /* time of the last search in all channels, TSC */
	bool is_mapping;       /* memory of peers may be mapped: the handler for it is permitted */
	bool is_share_logged;  /* logged: a user has its share */
	bool is_full_logged;   /* logged: all channels have peers */
	bool is_memory_logged; /* logged: no memory or descriptor */
};

/* Initialize the channels of a port, which are zero. Return 0, or -ENOMEM. */
int rwire_shm_outs_open(struct shm_outs *outs);

/* Find the channel to an address that was used before; NULL if there is none. */
struct shm_out *rwire_shm_out_find(const struct shm_outs *outs, const struct rwire_addr *addr);

/*
 * Get the channel to an address. NULL: all channels have peers, or no memory; logged once. now is
 * the TSC.
 */
struct shm_out *rwire_shm_out_of(
		struct shm_outs *outs, const struct rwire_addr *addr, uint64_t now);

/* Connect, reconnect, and detect the end of the peer. Called periodically; now is the TSC. */
void rwire_shm_out_check(struct shm_outs *outs, struct shm_out *out, uint64_t now);

/* Get the next slot, with its pages allocated; NULL: the ring is full, or no memory. */
struct rwire_slot *rwire_shm_out_get(struct shm_out *out);

/* Close the next channels whose peers have ended, until one whose peer has not. Called
 * periodically. */
void rwire_shm_outs_sweep(struct shm_outs *outs, uint64_t now);

void rwire_shm_outs_close(struct shm_outs *outs);

#endif /* RWIRE_SHM_OUT_H */
