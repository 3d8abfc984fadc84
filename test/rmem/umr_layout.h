/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * A plain model of what keys cover: for each byte of a key, its place in a's buffer. Keys are
 * bound and modelled in one step, over keys that are modelled already; then any operation
 * through a key is done on the device and on a copy of the buffer.
 */

#ifndef UMR_LAYOUT_H
#define UMR_LAYOUT_H

#include <rmem.h>

#define LAYOUT_MAX     12288u /* bytes of a modelled key */
#define LAYOUT_ENTRIES 8u

struct layout {
	struct rmem_mr *mr;
	uint64_t iova;
	uint32_t length;
	uint32_t place[LAYOUT_MAX]; /* in fx.a.buf */
};

/* The key of a is used locally by a request of a, or remotely by one of b. */
enum layout_side {
	LAYOUT_LOCAL,
	LAYOUT_REMOTE,
};

/* Model a contiguous range of an MR over the buffer of a. */
void layout_plain(struct layout *layout, struct rmem_mr *mr, uint32_t first, uint32_t length);

/* Bind a fast-register MR of a to pages of its buffer, in that order, and model it. */
void layout_pages(struct layout *layout, struct rmem_mr *mr, const uint8_t *order,
		uint32_t nb_pages, uint64_t iova, uint32_t length);

/* Bind an indirect MR of a to entries of modelled keys, and model it; a status. */
int layout_bind(struct layout *layout, struct rmem_mr *mr, const struct layout *const *below,
		unsigned int nb_below, const struct rmem_mkey_entry *entries, uint32_t nb_entries,
		uint32_t repeat_count, uint64_t iova);

/* The same with random entries, which are determined by *random; advances it. */
int layout_bind_random(struct layout *layout, struct rmem_mr *mr, const struct layout *const *below,
		unsigned int nb_below, uint64_t *random);

/*
 * Transfer length bytes at offset of a key from or to the buffer of b, and compare both whole
 * buffers with the model.
 */
void layout_check(const struct layout *layout, uint8_t opcode, enum layout_side side,
		uint32_t offset, uint32_t length);

/* All of the key, within one piece, and across each border; the same by every opcode that moves. */
void layout_check_borders(const struct layout *layout, uint8_t opcode, enum layout_side side);
void layout_check_all(const struct layout *layout);

/* Opcodes that layout_check() takes. */
#define LAYOUT_NB_MOVERS 5u
extern const uint8_t layout_movers[LAYOUT_NB_MOVERS];

/* Up to limit - 1; *random must not be 0. */
uint32_t layout_random(uint64_t *random, uint32_t limit);

/* RMEM_SEED, or derived from the time; printed. */
uint64_t layout_seed(void);

#endif /* UMR_LAYOUT_H */
