/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Fields of a GRH that an address handle has and packets carry; 0 by default; no padding. */

#ifndef RSOFT_GRH_H
#define RSOFT_GRH_H

#include <stdint.h>

#include <rte_byteorder.h>

#define RSOFT_GRH_FLOW_LABEL UINT32_C(0xfffff)
/* ECN bits of a traffic class: Congestion Experienced (RFC 3168). */
#define RSOFT_GRH_CE 3

struct rsoft_grh {
	uint32_t flow_label;
	uint8_t traffic_class;
	uint8_t hop_limit; /* 0 selects 64 */
	/* Slot of the own GID (struct rsoft_tables): the source, or the destination of a received
	 * packet; not in the packet. */
	uint8_t gid_slot;
	uint8_t reserved;
};

/* The first word of an IPv6 header. */
static inline rte_be32_t
rsoft_grh_vtc_flow(const struct rsoft_grh *grh)
{
	return rte_cpu_to_be_32(UINT32_C(6) << 28 | (uint32_t)grh->traffic_class << 20 |
			(grh->flow_label & RSOFT_GRH_FLOW_LABEL));
}

#endif /* RSOFT_GRH_H */
