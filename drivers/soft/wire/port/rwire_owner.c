/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Users of the addresses of ip=host; see rwire_owner.h. */

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "rwire_owner.h"

static struct rwire_owner *
owner_find(const struct rwire_owners *owners, uint16_t lid)
{
	struct rwire_owner *owner;

	LIST_FOREACH(owner, &owners->list[lid % RWIRE_OWNER_LISTS], next) {
		if (owner->lid == lid)
			break;
	}
	return owner;
}

/* Take a reference to an address, as owned by user - 1; 0: by any user. Return 0, -ENOMEM, or
 * -EPERM. */
static int
owner_hold(struct rwire_owners *owners, uint16_t lid, uint32_t user)
{
	bool is_own = user == geteuid() + 1;
	struct rwire_owner *owner, *new_owner = calloc(1, sizeof(*new_owner));
	int ret = 0;

	if (new_owner == NULL)
		return -ENOMEM;
	rte_ticketlock_lock(&owners->lock);
	owner = owner_find(owners, lid);
	if (owner == NULL) {
		owner = new_owner;
		owner->lid = lid;
		LIST_INSERT_HEAD(&owners->list[lid % RWIRE_OWNER_LISTS], owner, next);
	}
	if (user != 0 && (owner->user == 0 || is_own))
		owner->user = user;
	if (user == 0 || owner->user == user)
		owner->nb_refs++;
	else
		ret = -EPERM;
	rte_ticketlock_unlock(&owners->lock);
	if (owner != new_owner)
		free(new_owner);
	return ret;
}

int
rwire_owners_hold(struct rwire_owners *owners, const struct rwire_addr *addr)
{
	uint16_t lid = rwire_addr_lid(addr);

	return lid == 0 ? 0 : owner_hold(owners, lid, 0);
}

bool
rwire_owners_admit(struct rwire_owners *owners, const struct rwire_addr *addr, uint32_t uid)
{
	uint16_t lid = rwire_addr_lid(addr);

	if (owners == NULL)
		return true;
	return lid == 0 ? uid == geteuid() : owner_hold(owners, lid, uid + 1) == 0;
}

void
rwire_owners_put(struct rwire_owners *owners, const struct rwire_addr *addr)
{
	struct rwire_owner *owner = NULL;

	if (owners == NULL || rwire_addr_lid(addr) == 0)
		return;
	rte_ticketlock_lock(&owners->lock);
	owner = owner_find(owners, rwire_addr_lid(addr));
	if (--owner->nb_refs == 0)
		LIST_REMOVE(owner, next);
	else
		owner = NULL;
	rte_ticketlock_unlock(&owners->lock);
	free(owner);
}

void
rwire_owners_end(struct rwire_owners *owners)
{
	struct rwire_owner *owner;
	unsigned int i;

	for (i = 0; i < RWIRE_OWNER_LISTS; i++) {
		while ((owner = LIST_FIRST(&owners->list[i])) != NULL) {
			LIST_REMOVE(owner, next);
			free(owner);
		}
	}
}

uint32_t
rwire_owners_get(struct rwire_owners *owners, const struct rwire_addr *addr)
{
	const struct rwire_owner *owner;
	uint32_t user;

	if (owners == NULL)
		return geteuid();
	rte_ticketlock_lock(&owners->lock);
	owner = owner_find(owners, rwire_addr_lid(addr));
	user = owner != NULL && owner->user != 0 ? owner->user - 1 : geteuid();
	rte_ticketlock_unlock(&owners->lock);
	return user;
}
