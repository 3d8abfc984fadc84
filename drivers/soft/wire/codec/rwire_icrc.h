/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The invariant CRC of RoCEv2 (IBTA annex A17.3.2): CRC-32 of 8 bytes of ones, the IP and UDP
 * headers and the BTH with their variant fields replaced by ones, and the rest of the packet.
 *
 * The RWIRE_HEADROOM bytes before the BTH are overwritten with the masked headers. The BTH is
 * masked in place during the calculation, then restored.
 */

#ifndef RWIRE_ICRC_H
#define RWIRE_ICRC_H

#include "rwire_addr.h"
#include "rwire_hdr.h"

#define RWIRE_HEADROOM 64 /* 8 ones, an IPv6 and a UDP header, rounded */

/* Fields of the IP and UDP headers that the ICRC covers. */
struct rwire_flow {
	struct rwire_addr src;
	struct rwire_addr dst;
	uint16_t src_port;
	uint16_t ip_id; /* IPv4 only */
};

/* Set the ICRC, the last 4 of the len bytes at bth. */
void rwire_icrc_set(uint8_t *bth, uint32_t len, const struct rwire_flow *flow);

/* Contributions of the bits of the IPv4 id to the ICRC of packets of a given length. */
struct rwire_icrc_ids {
	uint32_t len;
	uint32_t word[16]; /* by bit of the id in host order */
};

void rwire_icrc_ids_init(struct rwire_icrc_ids *ids, uint32_t len);

/* Invert bits of the id of a packet with an ICRC; the packet has the length of ids. */
void rwire_icrc_change_id(uint8_t *bth, const struct rwire_icrc_ids *ids, uint32_t bits);

/*
 * Check the ICRC of a received packet.
 *
 * If the IPv4 id is not known (is_id_known is false), because a socket does not report it, the
 * packet is good if the ICRC matches for flow->ip_id or any other id. The CRC is linear, so the ids
 * contribute the sums of 16 words: 2^16 of the 2^32 values are accepted, which leaves a check of 16
 * bits.
 */
bool rwire_icrc_is_good(
		uint8_t *bth, uint32_t len, const struct rwire_flow *flow, bool is_id_known);

#endif /* RWIRE_ICRC_H */
