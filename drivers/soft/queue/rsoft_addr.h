/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Addresses of QPs, and the devices and QPs of this process that have them. */

#ifndef RSOFT_ADDR_H
#define RSOFT_ADDR_H

#include "rsoft_gid.h"

/*
 * The GID of the device's port at an index; false: there is none. rsoft_addr_gid_at() is called
 * under the domain's lock, since rmem-ctl changes all but the first.
 */
bool rsoft_addr_gid(const struct rsoft_dev *dev, uint32_t index, uint8_t gid[16]);
bool rsoft_addr_gid_at(const struct rsoft_dev *dev, uint32_t index, uint8_t gid[16]);

/* The GUID of the port. */
void rsoft_addr_guid(const struct rsoft_dev *dev, uint8_t guid[8]);

/* The port that a path leads to: GID and LID of an address. False: the device lacks the path. */
bool rsoft_addr_of_ah(const struct rsoft_dev *dev, const struct rmem_ah_attr *ah,
		struct rmem_qp_addr *addr);

/*
 * Whether the device can send to an address from its GID of an index: of a device of this process,
 * or by its wire.
 */
bool rsoft_addr_is_reachable(
		const struct rsoft_dev *dev, uint32_t index, const struct rmem_qp_addr *addr);

/*
 * Whether the wire of the device, which has one, can send to a GID from that of an index. Under the
 * domain's lock.
 */
bool rsoft_addr_can_reach(const struct rsoft_dev *dev, uint32_t index, const uint8_t gid[16]);

/*
 * Whether the device can have a multicast group: of the family of its IP address, and any on
 * InfiniBand.
 */
bool rsoft_addr_has_group(const struct rsoft_dev *dev, const uint8_t gid[16]);

/* The device of this process with a wire that has the GID, or NULL. Under the domain's lock. */
struct rsoft_dev *rsoft_addr_wire_dev(const uint8_t gid[16]);

/* The address of a QP. */
void rsoft_addr_get(const struct rsoft_qp *qp, struct rmem_qp_addr *addr);

/* The device of an address; NULL when there is none. Under the domain's lock. */
struct rsoft_dev *rsoft_addr_dev(const struct rmem_qp_addr *addr);

/* The QP at an address; NULL when there is none. Under the domain's lock. */
struct rsoft_qp *rsoft_addr_qp(const struct rmem_qp_addr *addr);

/* The code of a path MTU in verbs: 1 for 256 bytes to 5 for 4096. */
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
