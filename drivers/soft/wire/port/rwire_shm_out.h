/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Channels of a port=shm to its peers: connected when the first packet is sent, and again after
 * their peer has ended. Each check of the channel in use also checks another one, so that those of
 * ended peers are closed; without packets, rwire_port_ops::tx_idle does. Users share them as those
 * from peers (rwire_shm_in.h).
 *
 * Invariant: a channel has a ring while its fd is not negative. All of them are protected by
 * rwire::tx_lock.
 */

#ifndef RWIRE_SHM_OUT_H
#define RWIRE_SHM_OUT_H

#include "rwire_copy.h"
#include "rwire_region.h"
#include "rwire_shm.h"

#define SHM_OUT_LISTS 256u
#define SHM_OUT_GROUP 4u /* slots whose pages are allocated at a time */

/* A channel to a peer. */
struct shm_out {
	struct rwire_addr addr;
	struct shm_out *next;       /* in the list of its address */
	struct shm_out *next_dirty; /* that has packets since the last flush */
	bool is_dirty;
	int fd; /* -1: not connected */
	struct rwire_ring_end end;
	uint32_t ready;     /* bit n: group n of slots has its pages */
	uint32_t empty_pos; /* the ring was empty there, at the check of */
	uint64_t empty_at;  /* TSC */
	struct rwire_regions regions;
	uint64_t checked_at; /* connection checked, or attempt to connect, TSC */
	uint64_t pause;      /* from then to the next one; 0: now */
	uint32_t uid;        /* of the peer */
	struct rwire_copy_peer peer;
	uint64_t full_at;  /* a datagram began to wait for space, TSC; 0: none did */
	uint32_t full_pos; /* packets sent until then */
	int logged_reason; /* reason of the last refusal that was logged; 0: none */
};

struct shm_outs {
	const char *name;            /* of the port */
	struct rwire_owners *owners; /* NULL: of a port=shm:NAME */
	struct rwire_addr addr;
	uint64_t check_cycles; /* between two checks of a channel, TSC */
	struct shm_out **out;  /* nb of max; not freed before the port is closed */
	uint32_t nb, max;
	struct shm_out *list[SHM_OUT_LISTS]; /* by the address */
	struct shm_out *dirty;
	struct shm_users users;
	uint32_t next;         /* the channel to sweep next */
	uint32_t next_unused;  /* the channel to check next for another address */
	uint64_t cleaned_at;   /* all channels were checked for a free one, TSC */
	bool is_share_logged;  /* a user has its share of them: logged */
	bool is_full_logged;   /* all of them have peers: logged */
	bool is_memory_logged; /* no memory or descriptor for a channel: logged */
};

/* Those of a port; zeroes at first. 0, or -ENOMEM. */
int rwire_shm_outs_open(struct shm_outs *outs);

/* The channel to an address that was used before, or NULL. */
struct shm_out *rwire_shm_out_find(const struct shm_outs *outs, const struct rwire_addr *addr);

/*
 * The channel to an address; NULL: all of them have peers, or no memory is left, logged once. now
 * is the TSC.
 */
struct shm_out *rwire_shm_out_of(
		struct shm_outs *outs, const struct rwire_addr *addr, uint64_t now);

/* Connect, reconnect, and detect the end of the peer. Periodically; now is the TSC. */
void rwire_shm_out_check(struct shm_outs *outs, struct shm_out *out, uint64_t now);

/* The next slot, whose pages exist; NULL: the ring is full, or no memory is left. */
struct rwire_slot *rwire_shm_out_get(struct shm_out *out);

/* Close the next channels whose peers have ended, up to one whose peer has not. Periodically. */
void rwire_shm_outs_sweep(struct shm_outs *outs, uint64_t now);

void rwire_shm_outs_close(struct shm_outs *outs);

#endif /* RWIRE_SHM_OUT_H */
