/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Pseudo-random permutations keyed by a secret. */

#ifndef RSOFT_PRF_H
#define RSOFT_PRF_H

#include <stdint.h>

/*
 * Permute a number x of the given bits, 0 to 24, with the permutation that the secret and a tweak
 * below 2^24 select.
 */
uint32_t rsoft_permute(const uint64_t secret[2], uint32_t tweak, uint32_t bits, uint32_t x);

#endif /* RSOFT_PRF_H */
