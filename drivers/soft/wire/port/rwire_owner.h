/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Users of the addresses of ip=host.
 *
 * Invariant: while a QP is connected to an address, or a channel to or from it is open, the device
 * exchanges packets with only one user at this address: the first one in either direction. The
 * device's own user may take over any address; the previous user then loses it.
 * Invariant: rwire_owners::lock is taken last.
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
	uint32_t user; /* user id + 1; 0: none yet */
	uint32_t nb_refs;
	uint16_t lid; /* LID of the address */
};

#define RWIRE_OWNER_LISTS 256u

/* Addresses with references and their users. Initially all zero. */
struct rwire_owners {
	rte_ticketlock_t lock;
	LIST_HEAD(rwire_owner_list, rwire_owner) list[RWIRE_OWNER_LISTS]; /* hashed by LID */
};

/* Take a reference to an address: 0, or -ENOMEM. */
int rwire_owners_hold(struct rwire_owners *owners, const struct rwire_addr *addr);

/*
 * Take a reference to an address of that user. False: another user has the address, or no memory.
 * Without owners (NULL) every user may have every address.
 */
bool rwire_owners_admit(struct rwire_owners *owners, const struct rwire_addr *addr, uint32_t uid);

/* Release a reference. */
void rwire_owners_put(struct rwire_owners *owners, const struct rwire_addr *addr);

/* Release all references, when no thread uses them. */
void rwire_owners_end(struct rwire_owners *owners);

/* User that is admitted at an address; without owners, the device's own. */
uint32_t rwire_owners_get(struct rwire_owners *owners, const struct rwire_addr *addr);

#endif /* RWIRE_OWNER_H */
