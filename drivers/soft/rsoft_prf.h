/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Numbers that are pseudo-random without knowledge of the secret. */

#ifndef RSOFT_PRF_H
#define RSOFT_PRF_H

#include <stdint.h>

/*
 * The image of x under a permutation of the numbers of so many bits, 0 to 24, that the secret and
 * a tweak below 2^24 choose.
 */
uint32_t rsoft_permute(const uint64_t secret[2], uint32_t tweak, uint32_t bits, uint32_t x);

#endif /* RSOFT_PRF_H */
