/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Address handles; see rsoft_ud.h. */

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "rsoft_addr.h"
#include "rsoft_ud.h"

/* Offset of the part of a request that depends on its opcode. */
#define UD_AT offsetof(struct rmem_send_wr, ud)

static_assert(UD_AT + sizeof(struct rsoft_ud_dest) <= sizeof(struct rmem_send_wr),
		"a request can hold its destination");

/*
 * Let an AH have the GID of a slot, which another GID does not get until the AH is destroyed;
 * false: there is none. The first GID never changes.
 */
static bool
hold_gid(struct rsoft_dev *dev, uint32_t slot)
{
	uint8_t gid[16];
	bool has_gid;

	if (likely(slot == 0))
		return true;
	rsoft_lock(&rsoft_domain->lock);
	has_gid = rsoft_addr_gid_at(dev, slot, gid);
	dev->tables.nb_ahs[slot] += has_gid;
	rte_ticketlock_unlock(&rsoft_domain->lock);
	return has_gid;
}

int
rsoft_ah_create(struct rmem_ah *base, const struct rmem_ah_attr *attr)
{
	struct rsoft_dev *dev = rsoft_dev_of(&base->obj);
	struct rsoft_ah *ah = (struct rsoft_ah *)base;
	bool is_group = attr->is_global && rmem_gid_is_mcast(attr->dgid);
	struct rmem_qp_addr addr = {.qp_num = 0};
	uint8_t slot;

	/* Multicast groups belong to the first GID. */
	if (!rsoft_addr_slot(dev, attr->port_num, attr->sgid_index, &slot) ||
			!rsoft_addr_of_ah(dev, attr, &addr) ||
			!(is_group ? slot == 0 && rsoft_addr_has_group(dev, addr.gid)
				   : rsoft_addr_is_reachable(dev, slot, &addr)) ||
			!hold_gid(dev, slot)) {
		RSOFT_LOG(ERR, "AH: no such path: port_num %u, is_global %u, sgid_index %u, dlid %u (a port, an index with a GID, a GID of a soft device of this process or reachable with ip=, or of a multicast group)",
				attr->port_num, attr->is_global, attr->sgid_index, attr->dlid);
		return -EINVAL;
	}
	ah->is_group = is_group;
	memcpy(ah->gid, addr.gid, sizeof(addr.gid));
	ah->grh.flow_label = attr->flow_label & RSOFT_GRH_FLOW_LABEL;
	ah->grh.traffic_class = attr->traffic_class;
	ah->grh.gid_slot = slot;
	/* With RoCE, kernels set the hop limit from the route (ib_resolve_eth_dmac()). */
	if (is_group || !rsoft_addr_is_roce(dev))
		ah->grh.hop_limit = attr->hop_limit;
	return 0;
}

int
rsoft_ah_destroy(struct rmem_ah *base)
{
	const struct rsoft_ah *ah = (const struct rsoft_ah *)base;
	const uint32_t slot = ah->grh.gid_slot;

	if (likely(slot == 0))
		return 0;
	rsoft_lock(&rsoft_domain->lock);
	rsoft_dev_of(&base->obj)->tables.nb_ahs[slot]--;
	rte_ticketlock_unlock(&rsoft_domain->lock);
	return 0;
}

void
rsoft_ud_dest_of(const struct rsoft_qp *qp, const struct rmem_send_wr *wr, bool is_queued,
		struct rsoft_ud_dest *dest)
{
	const struct rsoft_ah *ah = (const struct rsoft_ah *)wr->ud.ah;

	if (is_queued) {
		memcpy(dest, (const uint8_t *)wr + UD_AT, sizeof(*dest));
		return;
	}
	memcpy(dest->gid, ah->gid, sizeof(dest->gid));
	dest->grh = ah->grh;
	dest->qpn = wr->ud.remote_qpn;
	if (unlikely(ah->is_group))
		dest->qpn = dest->qpn == RMEM_MCAST_QPN ? RSOFT_UD_GROUP : RSOFT_UD_NO_QP;
	/* QP 1 belongs to all ports. */
	if (unlikely(rsoft_gid_port(ah->grh.gid_slot) != rsoft_gid_port(qp->gid_slot)) &&
			qp->qp.qp_num != RSOFT_GSI_QP)
		dest->qpn = RSOFT_UD_OTHER_PORT;
	if (unlikely(ah->ah.pd != qp->qp.pd))
		dest->qpn = RSOFT_UD_OTHER_PD;
	dest->qkey = wr->ud.remote_qkey;
}

void
rsoft_ud_keep(const struct rsoft_qp *qp, struct rmem_send_wr *slot)
{
	struct rsoft_ud_dest dest;

	rsoft_ud_dest_of(qp, slot, false, &dest);
	memcpy((uint8_t *)slot + UD_AT, &dest, sizeof(dest));
}

uint32_t
rsoft_ud_max_msg_size(const struct rsoft_dev *dev)
{
	return dev->wire != NULL ? dev->address.mtu : UINT32_C(128) << RSOFT_MTU_NONE;
}
