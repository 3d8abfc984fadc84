/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The ICRC; see rwire_icrc.h. */

#include <rte_byteorder.h>

#include "rwire_crc.h"
#include "rwire_icrc.h"

#define ONES_LEN  8
#define IPV4_LEN  20
#define IPV6_LEN  40
#define UDP_LEN   8
#define IPV4_DF   0x40
#define IP_UDP    17
#define ID_OFFSET 4 /* of the id in an IPv4 header */

static void
put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* Store the 8 bytes of ones and the masked headers before the BTH at p; return their start. */
static uint8_t *
put_headers(uint8_t *p, uint32_t len, const struct rwire_flow *flow)
{
	bool is_ipv4 = rwire_addr_is_ipv4(&flow->dst);
	uint8_t *udp = p - UDP_LEN;
	uint8_t *ip = udp - (is_ipv4 ? IPV4_LEN : IPV6_LEN);

	memset(ip - ONES_LEN, 0xff, (size_t)(p - ip) + ONES_LEN);
	put16(udp, flow->src_port);
	put16(udp + 2, RWIRE_UDP_PORT);
	put16(udp + 4, UDP_LEN + len);
	if (is_ipv4) {
		ip[0] = 0x45;
		put16(ip + 2, IPV4_LEN + UDP_LEN + len);
		put16(ip + ID_OFFSET, flow->ip_id);
		ip[6] = IPV4_DF;
		ip[7] = 0;
		ip[9] = IP_UDP;
		memcpy(ip + 12, flow->src.gid + 12, 4);
		memcpy(ip + 16, flow->dst.gid + 12, 4);
	} else {
		ip[0] = 0x6f;
		put16(ip + 4, UDP_LEN + len);
		ip[6] = IP_UDP;
		memcpy(ip + 8, flow->src.gid, 16);
		memcpy(ip + 24, flow->dst.gid, 16);
	}
	return ip - ONES_LEN;
}

/* Calculate the ICRC of a packet whose last 4 bytes are reserved for it. */
static uint32_t
icrc(uint8_t *bth, uint32_t len, const struct rwire_flow *flow)
{
	uint8_t *from = put_headers(bth, len, flow);
	uint8_t reserved = bth[4];
	uint32_t crc;

	bth[4] = 0xff; /* FECN, BECN and reserved bits */
	crc = rwire_crc(from, (uint32_t)(bth - from) + len - RWIRE_ICRC_LEN);
	bth[4] = reserved;
	return crc;
}

void
rwire_icrc_set(uint8_t *bth, uint32_t len, const struct rwire_flow *flow)
{
	uint32_t crc = rte_cpu_to_le_32(icrc(bth, len, flow));

	memcpy(bth + len - RWIRE_ICRC_LEN, &crc, sizeof(crc));
}

/* a * b modulo the polynomial, all bit-reflected. */
static uint32_t
gf_mul(uint32_t a, uint32_t b)
{
	uint32_t p = 0, bit;

	for (bit = UINT32_C(1) << 31; bit != 0; bit >>= 1) {
		if (a & bit)
			p ^= b;
		b = b & 1 ? b >> 1 ^ RWIRE_CRC_POLY : b >> 1;
	}
	return p;
}

/* x^n modulo the polynomial, bit-reflected. */
static uint32_t
gf_xpow(uint64_t n)
{
	uint32_t p = UINT32_C(1) << 31, square = UINT32_C(1) << 30;

	for (; n != 0; n >>= 1) {
		if (n & 1)
			p = gf_mul(p, square);
		square = gf_mul(square, square);
	}
	return p;
}

void
rwire_icrc_ids_init(struct rwire_icrc_ids *ids, uint32_t len)
{
	uint32_t nb_after = IPV4_LEN - ID_OFFSET - 2 + UDP_LEN + len - RWIRE_ICRC_LEN;
	/* For the bit processed last, the highest of the second byte. */
	uint32_t word = gf_xpow(8 * (uint64_t)nb_after + 32);
	unsigned int i;

	ids->len = len;
	for (i = 0; i < 16; i++) {
		ids->word[i ^ 7] = word;
		word = gf_mul(word, UINT32_C(1) << 30);
	}
}

void
rwire_icrc_change_id(uint8_t *bth, const struct rwire_icrc_ids *ids, uint32_t bits)
{
	uint8_t *at = bth + ids->len - RWIRE_ICRC_LEN;
	uint32_t crc;

	memcpy(&crc, at, sizeof(crc));
	for (; bits != 0; bits &= bits - 1)
		crc ^= rte_cpu_to_le_32(ids->word[__builtin_ctz(bits)]);
	memcpy(at, &crc, sizeof(crc));
}

/*
 * Whether diff is a sum of contributions of the 16 bits of the id to the ICRC of a packet. Gaussian
 * elimination, with one word per bit.
 */
static bool
is_sum_of_id_bits(uint32_t diff, uint32_t len)
{
	uint32_t pivot[32] = {0};
	struct rwire_icrc_ids ids;
	unsigned int i, at;

	rwire_icrc_ids_init(&ids, len);
	for (i = 0; i < 16; i++) {
		uint32_t left = ids.word[i];

		while (left != 0) {
			at = (unsigned int)__builtin_ctz(left);
			if (pivot[at] == 0) {
				pivot[at] = left;
				break;
			}
			left ^= pivot[at];
		}
	}
	while (diff != 0) {
		at = (unsigned int)__builtin_ctz(diff);
		if (pivot[at] == 0)
			return false;
		diff ^= pivot[at];
	}
	return true;
}

bool
rwire_icrc_is_good(uint8_t *bth, uint32_t len, const struct rwire_flow *flow, bool is_id_known)
{
	uint32_t crc;

	memcpy(&crc, bth + len - RWIRE_ICRC_LEN, sizeof(crc));
	crc = rte_le_to_cpu_32(crc) ^ icrc(bth, len, flow);
	if (crc == 0)
		return true;
	if (is_id_known || !rwire_addr_is_ipv4(&flow->dst))
		return false;
	return is_sum_of_id_bits(crc, len);
}
