/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A Feistel network (Luby and Rackoff) whose round function is SipHash-2-4 (Aumasson and
 * Bernstein, 2012) of one word: the halves need not be equal, and each round changes one.
 */

#include "rsoft_prf.h"

#define RSOFT_PRF_ROUNDS 4u /* of both halves */

static inline uint64_t
rotl(uint64_t x, unsigned int n)
{
	return x << n | x >> (64 - n);
}

static inline void
sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotl(v[1], 13) ^ v[0];
	v[3] = rotl(v[3], 16) ^ v[2];
	v[0] = rotl(v[0], 32) + v[3];
	v[2] += v[1];
	v[1] = rotl(v[1], 17) ^ v[2];
	v[3] = rotl(v[3], 21) ^ v[0];
	v[2] = rotl(v[2], 32);
}

/* SipHash-2-4 of the eight bytes of a word. */
static uint64_t
siphash(const uint64_t secret[2], uint64_t word)
{
	const uint64_t last = UINT64_C(8) << 56; /* the length, and no bytes left */
	uint64_t v[4] = {
			secret[0] ^ UINT64_C(0x736f6d6570736575),
			secret[1] ^ UINT64_C(0x646f72616e646f6d),
			secret[0] ^ UINT64_C(0x6c7967656e657261),
			secret[1] ^ UINT64_C(0x7465646279746573),
	};
	unsigned int i;

	v[3] ^= word;
	sip_round(v);
	sip_round(v);
	v[0] ^= word;
	v[3] ^= last;
	sip_round(v);
	sip_round(v);
	v[0] ^= last;
	v[2] ^= 0xff;
	for (i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint32_t
rsoft_permute(const uint64_t secret[2], uint32_t tweak, uint32_t bits, uint32_t x)
{
	const uint32_t low_bits = bits / 2;
	const uint32_t low_mask = (UINT32_C(1) << low_bits) - 1;
	const uint32_t high_mask = (UINT32_C(1) << (bits - low_bits)) - 1;
	uint32_t low = x & low_mask, high = x >> low_bits;
	uint64_t round;

	for (round = 0; round < UINT64_C(2) * RSOFT_PRF_ROUNDS; round += 2) {
		uint64_t head = (uint64_t)tweak << 40 | round << 32;

		high ^= (uint32_t)siphash(secret, head | low) & high_mask;
		head |= UINT64_C(1) << 32;
		low ^= (uint32_t)siphash(secret, head | high) & low_mask;
	}
	return high << low_bits | low;
}
