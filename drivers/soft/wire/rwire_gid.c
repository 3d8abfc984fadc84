/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The GID and P_Key tables of a port. GID 0 is the address of the device. Each further GID is an
 * address with its own socket, so only port=udp has them.
 *
 * QPs keep the index of a removed GID: their packets are lost, as with NICs, and RC requests fail
 * with RETRY_EXC_ERR. The index is free again when no QP uses it, as in the kernel's table. QPs
 * whose P_Key is removed have none, so no packet of a peer matches.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../chaos/rsoft_chaos.h"
#include "../queue/rsoft_addr.h"
#include "port/rwire_interface.h"
#include "rwire.h"

#define PORT_NUM 1

static const uint8_t none[16];

/* Whether a QP sends from that GID. Under the domain's lock. */
static bool
is_in_use(const struct rsoft_dev *dev, uint32_t index)
{
	uint32_t i;

	for (i = 0; i <= dev->qp_mask; i++) {
		if (dev->qps[i] != NULL && dev->qps[i]->sgid_index == index)
			return true;
	}
	return false;
}

/* Free index; RSOFT_MAX_GIDS if there is none. Under the domain's lock. */
static uint32_t
free_index(const struct rsoft_dev *dev)
{
	uint32_t i;

	for (i = 1; i < dev->tables.nb_gids; i++) {
		if (memcmp(dev->tables.gid[i], none, sizeof(none)) == 0 && !is_in_use(dev, i))
			return i;
	}
	return RSOFT_MAX_GIDS;
}

/* Index of a further GID; RSOFT_MAX_GIDS if there is none. */
static uint32_t
index_of(const struct rsoft_tables *tables, const uint8_t gid[16])
{
	uint32_t i;

	for (i = 1; i < tables->nb_gids; i++) {
		if (memcmp(tables->gid[i], gid, 16) == 0)
			return i;
	}
	return RSOFT_MAX_GIDS;
}

/* Under rx_lock. */
static int
set_address(struct rwire *wire, uint32_t index, const struct rwire_addr *addr)
{
	int rc;

	rsoft_lock(&wire->tx_lock);
	rc = rwire_port_udp_gid(wire->inner, index, addr);
	rte_ticketlock_unlock(&wire->tx_lock);
	return rc;
}

static void
set_entry(struct rsoft_dev *dev, uint32_t index, const uint8_t gid[16], uint32_t ifindex)
{
	rsoft_lock(&rsoft_domain->lock);
	memcpy(dev->tables.gid[index], gid, 16);
	dev->tables.ifindex[index] = ifindex;
	rte_ticketlock_unlock(&rsoft_domain->lock);
}

/* Report an event, if the device is open. */
static void
report(struct rwire *wire, uint32_t type)
{
	if (wire->dev->wire != NULL)
		rmem_dev_async_event(wire->base_dev, type, PORT_NUM);
}

/* Under rx_lock. */
static int
add_addr(struct rwire *wire, const struct rwire_addr *addr)
{
	struct rwire_interface interface;
	uint32_t index, ifindex = 0;
	bool is_known;
	int rc;

	rsoft_lock(&rsoft_domain->lock);
	is_known = rwire_addr_is_equal(addr, &wire->port->addr) ||
			index_of(&wire->dev->tables, addr->gid) != RSOFT_MAX_GIDS ||
			rsoft_addr_wire_dev(addr->gid) != NULL;
	index = free_index(wire->dev);
	rte_ticketlock_unlock(&rsoft_domain->lock);
	if (is_known || index == RSOFT_MAX_GIDS)
		return is_known ? -EEXIST : -ENOSPC;
	rc = set_address(wire, index, addr);
	if (rc != 0)
		return rc;
	if (rwire_interface_find(addr, &interface) == 0)
		ifindex = if_nametoindex(interface.name);
	set_entry(wire->dev, index, addr->gid, ifindex);
	report(wire, RMEM_ASYNC_GID_CHANGE);
	return 0;
}

int
rwire_gid_add(struct rwire *wire, const char *text)
{
	struct rwire_addr addr;
	int rc;

	if (!wire->inner->has_gids)
		return -EOPNOTSUPP;
	if (!rwire_addr_parse(text, &addr))
		return -EINVAL;
	rsoft_lock(&wire->rx_lock);
	rc = add_addr(wire, &addr);
	rte_ticketlock_unlock(&wire->rx_lock);
	return rc;
}

/* Under rx_lock. */
static void
remove_index(struct rwire *wire, uint32_t index)
{
	set_entry(wire->dev, index, none, 0);
	(void)set_address(wire, index, NULL);
	report(wire, RMEM_ASYNC_GID_CHANGE);
}

int
rwire_gid_del(struct rwire *wire, const char *text)
{
	struct rwire_addr addr;
	uint32_t index;

	if (!rwire_addr_parse(text, &addr))
		return -EINVAL;
	if (rwire_addr_is_equal(&addr, &wire->port->addr))
		return -EBUSY;
	rsoft_lock(&wire->rx_lock);
	index = index_of(&wire->dev->tables, addr.gid);
	if (index != RSOFT_MAX_GIDS)
		remove_index(wire, index);
	rte_ticketlock_unlock(&wire->rx_lock);
	return index != RSOFT_MAX_GIDS ? 0 : -ENOENT;
}

void
rwire_gid_change(struct rwire *wire, bool is_removed)
{
	const struct rsoft_tables *tables = &wire->dev->tables;
	uint32_t i;

	if (!is_removed) {
		/* Fails if rmem-ctl has added the address, or another process has it now. */
		if (wire->has_rule_gid)
			(void)add_addr(wire, &wire->rule_gid);
		wire->has_rule_gid = false;
		return;
	}
	for (i = 1; i < tables->nb_gids && memcmp(tables->gid[i], none, sizeof(none)) == 0; i++)
		;
	if (i == tables->nb_gids)
		return;
	wire->rule_gid = wire->inner->srcs[i];
	wire->has_rule_gid = true;
	remove_index(wire, i);
}

/* Index of a P_Key; for 0 the first free index. nb_pkeys if there is none. */
static uint32_t
pkey_index(const struct rsoft_tables *tables, uint16_t pkey)
{
	uint32_t i;

	for (i = 0; i < tables->nb_pkeys && tables->pkey[i] != pkey; i++)
		;
	return i;
}

/* Update the QPs that use the index. */
static void
set_pkey(struct rwire *wire, uint32_t index, uint16_t pkey)
{
	struct rsoft_dev *dev = wire->dev;
	struct rsoft_qp *qp;
	uint32_t i;

	__atomic_store_n(&dev->tables.pkey[index], pkey, __ATOMIC_RELAXED);
	rsoft_lock(&rsoft_domain->lock);
	for (i = 0; i <= dev->qp_mask; i++) {
		qp = dev->qps[i];
		if (qp != NULL && qp->pkey_index == index)
			rwire_qp_set_pkey(qp);
	}
	rte_ticketlock_unlock(&rsoft_domain->lock);
	report(wire, RMEM_ASYNC_PKEY_CHANGE);
}

int
rwire_pkey_add(struct rwire *wire, uint16_t pkey)
{
	struct rsoft_tables *tables = &wire->dev->tables;
	uint32_t index = pkey_index(tables, 0);

	/* 0 is not a valid P_Key, with or without full membership (IBTA 10.9.2). */
	if ((pkey & 0x7fff) == 0)
		return -EINVAL;
	if (pkey_index(tables, pkey) < tables->nb_pkeys)
		return -EEXIST;
	if (index == tables->nb_pkeys)
		return -ENOSPC;
	set_pkey(wire, index, pkey);
	return 0;
}

int
rwire_pkey_del(struct rwire *wire, uint16_t pkey)
{
	uint32_t index = pkey_index(&wire->dev->tables, pkey);

	if ((pkey & 0x7fff) == 0)
		return -EINVAL;
	if (index == wire->dev->tables.nb_pkeys)
		return -ENOENT;
	set_pkey(wire, index, 0);
	return 0;
}

static int
add_gids(struct rwire *wire, char *list)
{
	char *text;
	int rc = 0;

	while (rc == 0 && (text = strsep(&list, ";")) != NULL) {
		rc = rwire_gid_add(wire, text);
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
				: rwire_pkey_add(wire, (uint16_t)pkey);
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
	int rc = 0;

	if (args->gids[0] != '\0' && !wire->inner->has_gids) {
		RSOFT_LOG(ERR, "gids=%s: only port=udp has several addresses", args->gids);
		return -EINVAL;
	}
	if (args->gids[0] == '\0' && wire->dev->chaos != NULL &&
			rsoft_chaos_has_gid(wire->dev->chaos)) {
		RSOFT_LOG(ERR, "chaos=: 'port:GID_CHANGE': no GID to remove without gids=");
		return -EINVAL;
	}
	tables->nb_gids = has_gids ? RSOFT_MAX_GIDS : 1;
	tables->nb_pkeys = has_pkeys ? RSOFT_MAX_PKEYS : 1;
	memcpy(gids, args->gids, sizeof(gids));
	memcpy(pkeys, args->pkeys, sizeof(pkeys));
	if (pkeys[0] == '\0')
		tables->pkey[0] = RWIRE_PKEY;
	else
		rc = add_pkeys(wire, pkeys);
	return rc == 0 && gids[0] != '\0' ? add_gids(wire, gids) : rc;
}
