/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Random numbers for the tags of keys: the ChaCha20 key stream (RFC 8439) of a key that is drawn
 * from the system for each fill, which is faster than drawing all numbers from the system. Four
 * blocks are computed at once, one in each lane.
 */

#include <string.h>
#include <sys/random.h>

#include <rte_random.h>

#include "rmem_lease_priv.h"

#define CHACHA_WORDS         16u
#define CHACHA_LANES         4u
#define CHACHA_DOUBLE_ROUNDS 10

typedef uint32_t lanes_t __attribute__((vector_size(4 * CHACHA_LANES)));

static inline lanes_t
rotl(lanes_t x, int n)
{
	return x << n | x >> (32 - n);
}

static inline void
quarter_round(lanes_t x[CHACHA_WORDS], int a, int b, int c, int d)
{
	x[a] += x[b];
	x[d] = rotl(x[d] ^ x[a], 16);
	x[c] += x[d];
	x[b] = rotl(x[b] ^ x[c], 12);
	x[a] += x[b];
	x[d] = rotl(x[d] ^ x[a], 8);
	x[c] += x[d];
	x[b] = rotl(x[b] ^ x[c], 7);
}

/* Compute blocks counter to counter + 3 of the key, with a nonce of 0. */
static void
chacha20(const uint32_t key[8], uint32_t counter, uint32_t *out)
{
	static const uint32_t constants[4] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
	lanes_t start[CHACHA_WORDS] = {{0}}, x[CHACHA_WORDS];
	uint32_t i, lane;

	for (i = 0; i < 4; i++)
		start[i] += constants[i];
	for (i = 0; i < 8; i++)
		start[4 + i] += key[i];
	start[12] = (lanes_t){counter, counter + 1, counter + 2, counter + 3};
	memcpy(x, start, sizeof(x));
	for (i = 0; i < CHACHA_DOUBLE_ROUNDS; i++) {
		quarter_round(x, 0, 4, 8, 12);
		quarter_round(x, 1, 5, 9, 13);
		quarter_round(x, 2, 6, 10, 14);
		quarter_round(x, 3, 7, 11, 15);
		quarter_round(x, 0, 5, 10, 15);
		quarter_round(x, 1, 6, 11, 12);
		quarter_round(x, 2, 7, 8, 13);
		quarter_round(x, 3, 4, 9, 14);
	}
	for (i = 0; i < CHACHA_WORDS; i++) {
		x[i] += start[i];
		for (lane = 0; lane < CHACHA_LANES; lane++)
			out[lane * CHACHA_WORDS + i] = x[i][lane];
	}
}

/* Draw a key from the system, or, without getrandom(), from DPDK's generator. */
static void
draw_key(uint32_t key[8])
{
	ssize_t n;
	size_t i;

	do {
		n = getrandom(key, 8 * sizeof(key[0]), 0);
	} while (n < 0 && errno == EINTR);
	for (i = 0; n < (ssize_t)(8 * sizeof(key[0])) && i < 8; i++)
		key[i] = (uint32_t)rte_rand();
}

void
rmem_lease_random_fill(uint32_t random[LEASE_RANDOM])
{
	uint32_t key[8], i;

	draw_key(key);
	for (i = 0; i < LEASE_RANDOM / CHACHA_WORDS; i += CHACHA_LANES)
		chacha20(key, i, &random[(size_t)i * CHACHA_WORDS]);
}

/* Move the current tag of a key to the end, which the first draw does not reach. */
static void
put_last(uint8_t tags[LEASE_TAGS], uint8_t tag)
{
	uint8_t *at = memchr(tags, tag, LEASE_TAGS);

	*at = tags[LEASE_TAGS - 1];
	tags[LEASE_TAGS - 1] = tag;
}

/*
 * A Fisher-Yates shuffle. Each random word yields three positions: the high word of its product
 * with the number of positions is the position, and the low word is used for the next one. So a
 * position may be up to 1/256 more likely than others.
 */
static void
draw_tags(struct rmem_lease_ctx *ctx, uint8_t tags[LEASE_TAGS], uint8_t tag)
{
	uint32_t i = 0, n, at;
	uint64_t product;

	if (ctx->nb_random < LEASE_SHUFFLE) {
		rmem_lease_random_fill(ctx->random);
		ctx->nb_random = LEASE_RANDOM;
	}
	put_last(tags, tag);
	while (i < LEASE_TAGS - 1) {
		product = ctx->random[--ctx->nb_random];
		for (n = 0; n < 3; n++, i++) {
			product = (uint32_t)product * (uint64_t)(LEASE_TAGS - RTE_MAX(i, 1u));
			at = i + (uint32_t)(product >> 32);
			tag = tags[at];
			tags[at] = tags[i];
			tags[i] = tag;
		}
	}
}

void
rmem_lease_next_tags(struct rmem_lease_ctx *ctx, struct lease_slot *slot, uint8_t tags[LEASE_TAGS])
{
	if (slot->nb_tags == 0)
		draw_tags(ctx, tags, (uint8_t)slot->lease.rkey);
	memcpy(slot->next, &tags[slot->nb_tags], LEASE_NEXT);
}
