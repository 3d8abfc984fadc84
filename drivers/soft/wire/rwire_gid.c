/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The GID and P_Key tables of the ports. The first GID of a port is its address in ip=. Each GID
 * but the first one of port 1 is an address with its own socket, so only port=udp has several of a
 * port.
 *
 * QPs and AHs keep the index of a removed GID: their packets are lost, as with NICs, and requests
 * of RC fail with RETRY_EXC_ERR. The index is free again when none of them has it, as in the
 * kernel's table, and for the same GID at any time. QPs whose P_Key is removed have none, so no
 * packet of a peer matches.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../chaos/rsoft_chaos.h"
#include "../queue/rsoft_addr.h"
#include "port/rwire_interface.h"
#include "rwire.h"

static const uint8_t none[16];

/* Whether a QP or an AH has that GID. Under the domain's lock. */
static bool
is_in_use(const struct rsoft_dev *dev, uint32_t slot)
{
	uint32_t i;

	if (dev->tables.nb_ahs[slot] != 0)
		return true;
	for (i = 0; i <= dev->qp_mask; i++) {
		if (dev->qps[i] != NULL && dev->qps[i]->gid_slot == slot)
			return true;
	}
	return false;
}

/*
 * Slot of a port for a GID, which is not its first one: the one that the GID had, whose QPs and AHs
 * then have it again, or a free one; RSOFT_GID_SLOTS if there is none. Under the domain's lock.
 */
static uint32_t
free_slot(const struct rsoft_dev *dev, uint32_t port_num, const uint8_t gid[16])
{
	const struct rsoft_tables *tables = &dev->tables;
	uint32_t i, slot, found = RSOFT_GID_SLOTS;

	for (i = 1; i < tables->nb_gids; i++) {
		slot = rsoft_gid_slot(port_num, i);
		if (memcmp(tables->gid[slot], none, sizeof(none)) != 0)
			continue;
		if (memcmp(tables->removed[slot], gid, sizeof(none)) == 0)
			return slot;
		if (found == RSOFT_GID_SLOTS && !is_in_use(dev, slot))
			found = slot;
	}
	return found;
}

/* Slot of a further GID of a port; RSOFT_GID_SLOTS if there is none. */
static uint32_t
slot_of(const struct rsoft_tables *tables, uint32_t port_num, const uint8_t gid[16])
{
	uint32_t i, slot;

	for (i = 1; i < tables->nb_gids; i++) {
		slot = rsoft_gid_slot(port_num, i);
		if (memcmp(tables->gid[slot], gid, 16) == 0)
			return slot;
	}
	return RSOFT_GID_SLOTS;
}

/* Under rx_lock. */
static int
set_address(struct rwire *wire, uint32_t slot, const struct rwire_addr *addr)
{
	int rc;

	rsoft_lock(&wire->tx_lock);
	rc = rwire_port_udp_gid(wire->inner, slot, addr);
	rte_ticketlock_unlock(&wire->tx_lock);
	return rc;
}

static void
set_entry(struct rsoft_dev *dev, uint32_t slot, const uint8_t gid[16], uint32_t ifindex)
{
	rsoft_lock(&rsoft_domain->lock);
	memcpy(dev->tables.removed[slot], dev->tables.gid[slot], 16);
	memcpy(dev->tables.gid[slot], gid, 16);
	dev->tables.ifindex[slot] = ifindex;
	rte_ticketlock_unlock(&rsoft_domain->lock);
}

/* Report an event, if the device is open. */
static void
report(struct rwire *wire, uint32_t type, uint32_t port_num)
{
	if (wire->dev->wire != NULL)
		rmem_dev_async_event(wire->base_dev, type, port_num);
}

/* Whether this device, or another one of the process, has the GID. Under the domain's lock. */
static bool
is_known(const struct rwire *wire, const struct rwire_addr *addr)
{
	/* While this device is opened, the domain does not have it. */
	return rsoft_addr_has_gid(wire->dev, addr->gid) || rsoft_addr_wire_dev(addr->gid) != NULL;
}

/* Add the GID in a slot. Under rx_lock. */
static int
set_slot(struct rwire *wire, uint32_t slot, const struct rwire_addr *addr)
{
	struct rwire_interface interface;
	uint32_t ifindex = 0;
	int rc = set_address(wire, slot, addr);

	if (rc != 0)
		return rc;
	if (rwire_interface_find(addr, &interface) == 0)
		ifindex = if_nametoindex(interface.name);
	set_entry(wire->dev, slot, addr->gid, ifindex);
	return 0;
}

/* Under rx_lock. */
static int
add_addr(struct rwire *wire, uint32_t port_num, const struct rwire_addr *addr)
{
	bool has_it;
	uint32_t slot;
	int rc;

	rsoft_lock(&rsoft_domain->lock);
	has_it = is_known(wire, addr);
	slot = free_slot(wire->dev, port_num, addr->gid);
	rte_ticketlock_unlock(&rsoft_domain->lock);
	if (has_it || slot == RSOFT_GID_SLOTS)
		return has_it ? -EEXIST : -ENOSPC;
	rc = set_slot(wire, slot, addr);
	if (rc == 0)
		report(wire, RMEM_ASYNC_GID_CHANGE, port_num);
	return rc;
}

int
rwire_gid_add(struct rwire *wire, uint32_t port_num, const char *text)
{
	struct rwire_addr addr;
	int rc;

	if (!wire->inner->has_gids)
		return -EOPNOTSUPP;
	if (!rwire_addr_parse(text, &addr))
		return -EINVAL;
	rsoft_lock(&wire->rx_lock);
	rc = add_addr(wire, port_num, &addr);
	rte_ticketlock_unlock(&wire->rx_lock);
	return rc;
}

/* Under rx_lock. */
static void
remove_slot(struct rwire *wire, uint32_t slot)
{
	set_entry(wire->dev, slot, none, 0);
	(void)set_address(wire, slot, NULL);
	report(wire, RMEM_ASYNC_GID_CHANGE, rsoft_gid_port(slot));
}

int
rwire_gid_del(struct rwire *wire, uint32_t port_num, const char *text)
{
	struct rwire_addr addr;
	uint32_t slot;

	if (!rwire_addr_parse(text, &addr))
		return -EINVAL;
	if (rwire_addr_is_equal(&addr, &wire->netif[port_num - 1].addr))
		return -EBUSY;
	rsoft_lock(&wire->rx_lock);
	slot = slot_of(&wire->dev->tables, port_num, addr.gid);
	if (slot != RSOFT_GID_SLOTS)
		remove_slot(wire, slot);
	rte_ticketlock_unlock(&wire->rx_lock);
	return slot != RSOFT_GID_SLOTS ? 0 : -ENOENT;
}

void
rwire_gid_change(struct rwire *wire, bool is_removed)
{
	const struct rsoft_tables *tables = &wire->dev->tables;
	uint32_t i;

	if (!is_removed) {
		/* Fails if rmem-ctl has added the address, or another process has it now. */
		if (wire->has_rule_gid)
			(void)add_addr(wire, 1, &wire->rule_gid);
		wire->has_rule_gid = false;
		return;
	}
	for (i = 1; i < tables->nb_gids && memcmp(tables->gid[i], none, sizeof(none)) == 0; i++)
		;
	if (i == tables->nb_gids)
		return;
	wire->rule_gid = wire->inner->srcs[i];
	wire->has_rule_gid = true;
	remove_slot(wire, i);
}

/* Index of a P_Key of a port; for 0 the first free index. nb_pkeys if there is none. */
static uint32_t
pkey_index(const struct rsoft_tables *tables, uint32_t port_num, uint16_t pkey)
{
	const uint16_t *table = &tables->pkey[rsoft_pkey_slot(port_num, 0)];
	uint32_t i;

	for (i = 0; i < tables->nb_pkeys && table[i] != pkey; i++)
		;
	return i;
}

/* Update the QPs that use the entry. */
static void
set_pkey(struct rwire *wire, uint32_t port_num, uint32_t index, uint16_t pkey)
{
	const uint8_t slot = rsoft_pkey_slot(port_num, index);
	struct rsoft_dev *dev = wire->dev;
	struct rsoft_qp *qp;
	uint32_t i;

	__atomic_store_n(&dev->tables.pkey[slot], pkey, __ATOMIC_RELAXED);
	rsoft_lock(&rsoft_domain->lock);
	for (i = 0; i <= dev->qp_mask; i++) {
		qp = dev->qps[i];
		if (qp != NULL && qp->pkey_slot == slot)
			rwire_qp_set_pkey(qp);
	}
	rte_ticketlock_unlock(&rsoft_domain->lock);
	report(wire, RMEM_ASYNC_PKEY_CHANGE, port_num);
}

int
rwire_pkey_add(struct rwire *wire, uint32_t port_num, uint16_t pkey)
{
	struct rsoft_tables *tables = &wire->dev->tables;
	uint32_t index = pkey_index(tables, port_num, 0);

	/* 0 is not a valid P_Key, with or without full membership (IBTA 10.9.2). */
	if ((pkey & 0x7fff) == 0)
		return -EINVAL;
	if (pkey_index(tables, port_num, pkey) < tables->nb_pkeys)
		return -EEXIST;
	if (index == tables->nb_pkeys)
		return -ENOSPC;
	set_pkey(wire, port_num, index, pkey);
	return 0;
}

int
rwire_pkey_del(struct rwire *wire, uint32_t port_num, uint16_t pkey)
{
	uint32_t index = pkey_index(&wire->dev->tables, port_num, pkey);

	if ((pkey & 0x7fff) == 0)
		return -EINVAL;
	if (index == wire->dev->tables.nb_pkeys)
		return -ENOENT;
	set_pkey(wire, port_num, index, 0);
	return 0;
}

/* Add a port after the first, with its address; return its error, logged. */
static int
add_port(struct rwire *wire, const struct rwire_addr *addr)
{
	struct rsoft_tables *tables = &wire->dev->tables;
	const uint8_t slot = rsoft_gid_slot(tables->nb_ports + 1, 0);
	char text[RWIRE_ADDR_TEXT];
	bool has_it;

	tables->nb_ports++;
	tables->nb_slots = tables->nb_ports * RSOFT_MAX_GIDS;
	rsoft_lock(&rsoft_domain->lock);
	has_it = is_known(wire, addr);
	rte_ticketlock_unlock(&rsoft_domain->lock);
	if (has_it) {
		RSOFT_LOG(ERR, "ip=: a port or device of this process has the address %s",
				rwire_addr_text(addr, text));
		return -EEXIST;
	}
	if (wire->inner->has_gids)
		return set_slot(wire, slot, addr);
	set_entry(wire->dev, slot, addr->gid, 0);
	return 0;
}

/* Open a port of port=udp after the first; return its error, logged. */
static int
open_port(struct rwire *wire, const char *text)
{
	struct rwire_addr addr;

	if (wire->dev->tables.nb_ports == RSOFT_MAX_PORTS) {
		RSOFT_LOG(ERR, "ip=: '%s': more than %u ports", text, RSOFT_MAX_PORTS);
		return -EINVAL;
	}
	if (rwire_addr_parse(text, &addr))
		return add_port(wire, &addr);
	RSOFT_LOG(ERR, "ip=: '%s' is not an IPv4 or IPv6 address", text);
	return -EINVAL;
}

int
rwire_ports_open(struct rwire *wire, const char *ip)
{
	char copy[sizeof(wire->dev->args.ip)], *rest = copy, *text;
	uint32_t i;
	int rc = 0;

	for (i = 1; rc == 0 && i < wire->inner->nb_parts; i++)
		rc = add_port(wire, &wire->inner->parts[i]->addr);
	if (wire->inner->nb_parts != 0)
		return rc;
	memcpy(copy, ip, sizeof(copy));
	(void)strsep(&rest, ";");
	while (rc == 0 && (text = strsep(&rest, ";")) != NULL)
		rc = open_port(wire, text);
	return rc;
}

static int
add_gids(struct rwire *wire, char *list)
{
	char *text;
	int rc = 0;

	while (rc == 0 && (text = strsep(&list, ";")) != NULL) {
		rc = rwire_gid_add(wire, 1, text);
		if (rc == -EINVAL)
			RSOFT_LOG(ERR, "gids=: '%s' is not an IPv4 or IPv6 address", text);
		else if (rc == -EEXIST)
			RSOFT_LOG(ERR, "gids=: a device has the address %s, or its UDP port", text);
		else if (rc == -ENOSPC)
			RSOFT_LOG(ERR, "gids=: more than %u addresses, including ip=",
					RSOFT_MAX_GIDS);
	}
	return rc;
}

/* Add a P_Key to the table of each port. */
static int
add_pkey(struct rwire *wire, uint16_t pkey)
{
	uint32_t i;
	int rc = 0;

	for (i = 1; rc == 0 && i <= wire->dev->tables.nb_ports; i++)
		rc = rwire_pkey_add(wire, i, pkey);
	return rc;
}

static int
add_pkeys(struct rwire *wire, char *list)
{
	unsigned long pkey;
	char *text, *end;
	int rc = 0;

	while (rc == 0 && (text = strsep(&list, ";")) != NULL) {
		pkey = strtoul(text, &end, 0);
		rc = text[0] < '0' || text[0] > '9' || *end != '\0' || pkey > UINT16_MAX
				? -EINVAL
				: add_pkey(wire, (uint16_t)pkey);
		if (rc == -EINVAL)
			RSOFT_LOG(ERR, "pkeys=: '%s' is not a P_Key: 1 to 0xffff, but 0x8000",
					text);
		else if (rc != 0)
			RSOFT_LOG(ERR, "pkeys=: %s is given twice, or there are more than %u", text,
					RSOFT_MAX_PKEYS);
	}
	return rc;
}

int
rwire_gids_open(struct rwire *wire, const struct rsoft_args *args)
{
	struct rsoft_tables *tables = &wire->dev->tables;
	char gids[sizeof(args->gids)], pkeys[sizeof(args->pkeys)];
	bool has_gids = args->gids[0] != '\0' || (args->control != 0 && wire->inner->has_gids);
	bool has_pkeys = args->pkeys[0] != '\0' || args->control != 0;
	int rc;

	if (args->gids[0] != '\0' && !wire->inner->has_gids) {
		RSOFT_LOG(ERR, "gids=%s: only port=udp has several GIDs; others have several ports (ip=)",
				args->gids);
		return -EINVAL;
	}
	if (args->gids[0] == '\0' && wire->dev->chaos != NULL &&
			rsoft_chaos_has_gid(wire->dev->chaos)) {
		RSOFT_LOG(ERR, "chaos=: 'port:GID_CHANGE': no GID to remove without gids=");
		return -EINVAL;
	}
	if (wire->dev->chaos != NULL && rsoft_chaos_max_port(wire->dev->chaos) > tables->nb_ports) {
		RSOFT_LOG(ERR, "chaos=: 'port:%u': no such port (1 to %u)",
				rsoft_chaos_max_port(wire->dev->chaos), tables->nb_ports);
		return -EINVAL;
	}
	tables->nb_gids = has_gids ? RSOFT_MAX_GIDS : 1;
	tables->nb_slots =
			tables->nb_ports > 1 ? tables->nb_ports * RSOFT_MAX_GIDS : tables->nb_gids;
	tables->nb_pkeys = has_pkeys ? RSOFT_MAX_PKEYS : 1;
	memcpy(gids, args->gids, sizeof(gids));
	memcpy(pkeys, args->pkeys, sizeof(pkeys));
	rc = pkeys[0] == '\0' ? add_pkey(wire, RWIRE_PKEY) : add_pkeys(wire, pkeys);
	return rc == 0 && gids[0] != '\0' ? add_gids(wire, gids) : rc;
}
