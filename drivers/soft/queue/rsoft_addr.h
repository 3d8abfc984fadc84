/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Addresses of QPs, and lookup of the devices and QPs of this process by address. */

#ifndef RSOFT_ADDR_H
#define RSOFT_ADDR_H

#include "rsoft_gid.h"

/* Slot of the GID of a port at an index; false if there is no such port or index. */
bool rsoft_addr_slot(const struct rsoft_dev *dev, uint32_t port_num, uint32_t index, uint8_t *slot);

/*
 * GID in a slot (struct rsoft_tables); false if there is none. rsoft_addr_gid_at() must be called
 * under the domain's lock, because rmem-ctl changes all GIDs except the first of each port.
 */
bool rsoft_addr_gid(const struct rsoft_dev *dev, uint32_t slot, uint8_t gid[16]);
bool rsoft_addr_gid_at(const struct rsoft_dev *dev, uint32_t slot, uint8_t gid[16]);

/* The GUID of the port. */
void rsoft_addr_guid(const struct rsoft_dev *dev, uint8_t guid[8]);

/* Find GID and LID of the port to which a path leads; false if the device does not have the
 * path. */
bool rsoft_addr_of_ah(const struct rsoft_dev *dev, const struct rmem_ah_attr *ah,
		struct rmem_qp_addr *addr);

/*
 * Whether the device can send from its GID in a slot to an address: of a device of this process,
 * or reachable by its wire.
 */
bool rsoft_addr_is_reachable(
		const struct rsoft_dev *dev, uint32_t slot, const struct rmem_qp_addr *addr);

/*
 * Whether the device, which has a wire, can send from its GID in a slot to a GID. Under the
 * domain's lock.
 */
bool rsoft_addr_can_reach(const struct rsoft_dev *dev, uint32_t slot, const uint8_t gid[16]);

/*
 * Whether the device can join a multicast group: a group of the address family of its IP address,
 * or any group on InfiniBand.
 */
bool rsoft_addr_has_group(const struct rsoft_dev *dev, const uint8_t gid[16]);

/* Whether a GID is one of the device's. Under the domain's lock. */
bool rsoft_addr_has_gid(const struct rsoft_dev *dev, const uint8_t gid[16]);

/* Find the device with a wire in this process that has the GID, or NULL. Under the domain's
 * lock. */
struct rsoft_dev *rsoft_addr_wire_dev(const uint8_t gid[16]);

/* The LID of a port of a device with a wire; 0 unless it has ip=host. */
uint16_t rsoft_addr_lid(const struct rsoft_dev *dev, uint32_t port_num);

/* The address of a QP. */
void rsoft_addr_get(const struct rsoft_qp *qp, struct rmem_qp_addr *addr);

/* Find the QP at an address, whose GID is one of the QP's port; NULL if there is none. Under the
 * domain's lock. */
struct rsoft_qp *rsoft_addr_qp(const struct rmem_qp_addr *addr);

/*
 * Whether a QP exchanges packets with a peer at an address. QPs of one process do if the domain of
 * the XRC_RECV QP is of a file, since a request may be for another process or device. Under the
 * domain's lock.
 */
bool rsoft_addr_has_packets(const struct rsoft_qp *qp, const struct rmem_qp_addr *addr);

/* Path MTU as enum of verbs: 1 for 256 bytes to 5 for 4096. */
static inline uint8_t
rsoft_addr_mtu_code(uint32_t mtu)
{
	return (uint8_t)(__builtin_ctz(mtu) - 7);
}

/* Whether packets of a device have headers of RoCE v2. */
static inline bool
rsoft_addr_is_roce(const struct rsoft_dev *dev)
{
	return dev->wire != NULL && dev->address.lid == 0;
}

#endif /* RSOFT_ADDR_H */
