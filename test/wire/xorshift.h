/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Random numbers that a seed repeats, for programs without test.h: xorshift64*. */

#ifndef XORSHIFT_H
#define XORSHIFT_H

#include <stdint.h>

static inline uint64_t
xorshift_state(uint64_t seed)
{
	return seed * 2 + 1;
}

static inline uint32_t
xorshift32(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (uint32_t)(*state * UINT64_C(0x2545f4914f6cdd1d) >> 32);
}

#endif /* XORSHIFT_H */
