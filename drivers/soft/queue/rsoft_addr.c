/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Addresses of QPs; see rsoft_addr.h. */

#include <stddef.h>
#include <string.h>

#include <rte_byteorder.h>

#include "rsoft_addr.h"
#include "rsoft_xrc.h"
#include "../wire/codec/rwire_addr.h"

static void
first_gid(const struct rsoft_dev *dev, uint8_t gid[16])
{
	struct rsoft_gid local = rsoft_gid_local;

	local.dev_id = (uint8_t)dev->dev_id;
	local.cookie = rte_cpu_to_be_32(dev->cookie);
	memcpy(gid, &local, sizeof(local));
	if (dev->wire != NULL)
		memcpy(gid, dev->address.gid, sizeof(dev->address.gid));
}

bool
rsoft_addr_slot(const struct rsoft_dev *dev, uint32_t port_num, uint32_t index, uint8_t *slot)
{
	if (port_num == 0 || port_num > dev->tables.nb_ports || index >= RSOFT_MAX_GIDS)
		return false;
	*slot = rsoft_gid_slot(port_num, index);
	return true;
}

bool
rsoft_addr_gid_at(const struct rsoft_dev *dev, uint32_t slot, uint8_t gid[16])
{
	static const uint8_t none[16];

	first_gid(dev, gid);
	if (slot == 0)
		return true;
	if (slot >= dev->tables.nb_slots || memcmp(dev->tables.gid[slot], none, 16) == 0)
		return false;
	memcpy(gid, dev->tables.gid[slot], 16);
	return true;
}

bool
rsoft_addr_gid(const struct rsoft_dev *dev, uint32_t slot, uint8_t gid[16])
{
	bool has_gid;

	if (likely(slot == 0)) {
		first_gid(dev, gid);
		return true;
	}
	rsoft_lock(&rsoft_domain->lock);
	has_gid = rsoft_addr_gid_at(dev, slot, gid);
	rte_ticketlock_unlock(&rsoft_domain->lock);
	return has_gid;
}

void
rsoft_addr_guid(const struct rsoft_dev *dev, uint8_t guid[8])
{
	struct rsoft_gid local = rsoft_gid_local;
	uint32_t words[4];

	local.dev_id = (uint8_t)dev->dev_id;
	local.cookie = rte_cpu_to_be_32(dev->cookie);
	if (dev->wire != NULL) {
		/* Other processes use the same dev_id, so the address is part of the GUID. */
		memcpy(words, dev->address.gid, sizeof(words));
		local.dev_id = RSOFT_GUID_WIRE;
		local.cookie = words[0] ^ words[1] ^ words[2] ^ words[3];
	}
	memcpy(guid, (const uint8_t *)&local + offsetof(struct rsoft_gid, tag), 8);
}

uint16_t
rsoft_addr_lid(const struct rsoft_dev *dev, uint32_t port_num)
{
	struct rwire_addr addr;

	if (dev->address.lid == 0 || port_num == 1)
		return dev->address.lid;
	memcpy(addr.gid, dev->tables.gid[rsoft_gid_slot(port_num, 0)], sizeof(addr.gid));
	return rwire_addr_lid(&addr);
}

void
rsoft_addr_get(const struct rsoft_qp *qp, struct rmem_qp_addr *addr)
{
	uint32_t first = qp->gid_slot / RSOFT_MAX_GIDS * RSOFT_MAX_GIDS;

	memset(addr, 0, sizeof(*addr));
	first_gid(qp->dev, addr->gid);
	/* The first GID of a port does not change. */
	if (unlikely(first != 0))
		memcpy(addr->gid, qp->dev->tables.gid[first], sizeof(addr->gid));
	addr->qp_num = qp->qp.qp_num;
	if (qp->dev->wire != NULL) {
		addr->lid = rsoft_addr_lid(qp->dev, rsoft_gid_port(first));
		addr->mtu = rsoft_addr_mtu_code(qp->dev->address.mtu);
		addr->psn = qp->psn;
	}
}

/* Find the GID of a LID; false if the port is not an InfiniBand port, or no port has the LID. */
static bool
gid_of_lid(const struct rsoft_dev *dev, uint16_t lid, uint8_t gid[16])
{
	struct rwire_addr addr;

	if (dev->address.lid == 0 || lid == 0 || lid > RWIRE_MAX_LID)
		return false;
	rwire_addr_of_lid(lid, &addr);
	memcpy(gid, addr.gid, sizeof(addr.gid));
	return true;
}

bool
rsoft_addr_of_ah(const struct rsoft_dev *dev, const struct rmem_ah_attr *ah,
		struct rmem_qp_addr *addr)
{
	addr->lid = ah->dlid;
	if (ah->is_global) {
		memcpy(addr->gid, ah->dgid, sizeof(addr->gid));
		return true;
	}
	/* On InfiniBand a LID is sufficient; without a wire, only the LID of the device itself is
	 * valid. */
	first_gid(dev, addr->gid);
	return dev->wire == NULL ? ah->dlid == RSOFT_LID : gid_of_lid(dev, ah->dlid, addr->gid);
}

bool
rsoft_addr_can_reach(const struct rsoft_dev *dev, uint32_t slot, const uint8_t gid[16])
{
	struct rwire_addr from, to;

	memcpy(to.gid, gid, sizeof(to.gid));
	/* Only devices without a wire have local GIDs. */
	return rsoft_addr_gid_at(dev, slot, from.gid) && !rsoft_gid_is_local(gid) &&
			rwire_addr_is_unicast(&to) &&
			rwire_addr_is_ipv4(&to) == rwire_addr_is_ipv4(&from);
}

bool
rsoft_addr_has_group(const struct rsoft_dev *dev, const uint8_t gid[16])
{
	struct rwire_addr own, group;

	memcpy(own.gid, dev->address.gid, sizeof(own.gid));
	memcpy(group.gid, gid, sizeof(group.gid));
	return dev->wire == NULL || dev->address.lid != 0 ||
			rwire_addr_is_ipv4(&group) == rwire_addr_is_ipv4(&own);
}

/* Slot of a GID of the device; RSOFT_GID_SLOTS: it has no such GID. */
static uint32_t
slot_of_gid(const struct rsoft_dev *dev, const uint8_t gid[16])
{
	uint32_t i;

	if (memcmp(dev->address.gid, gid, 16) == 0)
		return 0;
	for (i = 1; i < dev->tables.nb_slots; i++) {
		if (memcmp(dev->tables.gid[i], gid, 16) == 0)
			return i;
	}
	return RSOFT_GID_SLOTS;
}

bool
rsoft_addr_has_gid(const struct rsoft_dev *dev, const uint8_t gid[16])
{
	return slot_of_gid(dev, gid) != RSOFT_GID_SLOTS;
}

struct rsoft_dev *
rsoft_addr_wire_dev(const uint8_t gid[16])
{
	unsigned int i;

	for (i = 0; i < RMEM_MAX_DEVS; i++) {
		struct rsoft_dev *dev = rsoft_domain->dev[i];

		if (dev != NULL && dev->wire != NULL && rsoft_addr_has_gid(dev, gid))
			return dev;
	}
	return NULL;
}

bool
rsoft_addr_is_reachable(const struct rsoft_dev *dev, uint32_t slot, const struct rmem_qp_addr *addr)
{
	bool is_reachable;

	if (rsoft_gid_is_local(addr->gid))
		return true;
	rsoft_lock(&rsoft_domain->lock);
	is_reachable = rsoft_addr_wire_dev(addr->gid) != NULL ||
			(dev->wire != NULL && rsoft_addr_can_reach(dev, slot, addr->gid));
	rte_ticketlock_unlock(&rsoft_domain->lock);
	return is_reachable;
}

/* Find the device of an address; NULL if there is none. Under the domain's lock. */
static struct rsoft_dev *
addr_dev(const struct rmem_qp_addr *addr)
{
	struct rsoft_gid gid;
	struct rsoft_dev *dev;

	dev = rsoft_addr_wire_dev(addr->gid);
	if (dev != NULL)
		return dev;
	if (!rsoft_gid_is_local(addr->gid))
		return NULL;
	memcpy(&gid, addr->gid, sizeof(gid));
	dev = rsoft_domain->dev[gid.dev_id];
	return dev != NULL && rte_cpu_to_be_32(dev->cookie) == gid.cookie ? dev : NULL;
}

struct rsoft_qp *
rsoft_addr_qp(const struct rmem_qp_addr *addr)
{
	struct rsoft_dev *dev = addr_dev(addr);
	struct rsoft_qp *qp;

	if (dev == NULL)
		return NULL;
	qp = dev->qps[addr->qp_num & dev->qp_mask];
	if (qp == NULL || qp->qp.qp_num != addr->qp_num)
		return NULL;
	if (unlikely(dev->tables.nb_ports > 1) && addr->qp_num != RSOFT_GSI_QP &&
			rsoft_gid_port(slot_of_gid(dev, addr->gid)) != rsoft_gid_port(qp->gid_slot))
		return NULL;
	return qp;
}

bool
rsoft_addr_has_packets(const struct rsoft_qp *qp, const struct rmem_qp_addr *addr)
{
	const struct rsoft_dev *dev = addr_dev(addr);
	const struct rsoft_qp *peer;

	if (dev == NULL)
		return true;
	if (qp->dev->wire == NULL)
		return false;
	if (qp->dev->args.loop != 0)
		return true;
	/* Its port is not known before it is connected, too. */
	peer = dev->qps[addr->qp_num & dev->qp_mask];
	return (dev == qp->dev || rsoft_addr_can_reach(qp->dev, qp->gid_slot, addr->gid)) &&
			(rsoft_xrc_is_shared(qp) ||
					(rsoft_xrc_is_shared(peer) &&
							peer->qp.qp_num == addr->qp_num));
}
