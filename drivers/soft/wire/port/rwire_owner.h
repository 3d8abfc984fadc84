/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Users of the addresses of ip=host.
 *
 * Invariant: while a QP is connected to an address, or a channel to or from it is open, the device
 * exchanges packets with one user at it, the first that it met there in either direction. Its own
 * user may take over any address, which then is of no other user.
 *
 * No lock is taken while rwire_owners::lock is held.
 */

#ifndef RWIRE_OWNER_H
#define RWIRE_OWNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_ticketlock.h>

#include "../codec/rwire_addr.h"

struct rwire_owner {
	LIST_ENTRY(rwire_owner) next;
	uint32_t user; /* plus 1; 0: none yet */
	uint32_t nb_refs;
	uint16_t lid; /* of the address */
};

#define RWIRE_OWNER_LISTS 256u

/* Those of addresses that are referred to. Zeroes at first. */
struct rwire_owners {
	rte_ticketlock_t lock;
	LIST_HEAD(rwire_owner_list, rwire_owner) list[RWIRE_OWNER_LISTS]; /* by the LID */
};

/* Refer to an address: 0, or -ENOMEM. */
int rwire_owners_hold(struct rwire_owners *owners, const struct rwire_addr *addr);

/*
 * Refer to an address as one of that user. False: it is of another one, or no memory is left.
 * Without owners (NULL) each address is of each user.
 */
bool rwire_owners_admit(struct rwire_owners *owners, const struct rwire_addr *addr, uint32_t uid);

/* End a reference. */
void rwire_owners_put(struct rwire_owners *owners, const struct rwire_addr *addr);

/* End all references, when no thread uses them. */
void rwire_owners_end(struct rwire_owners *owners);

/* The user that is admitted at an address. */
uint32_t rwire_owners_get(struct rwire_owners *owners, const struct rwire_addr *addr);

#endif /* RWIRE_OWNER_H */
