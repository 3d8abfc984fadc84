/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * A plain model of keys, rights, ranges and states, for test_random.c.
 *
 * It knows nothing of the device: regions are a short array that is searched, bytes are
 * translated one by one, and what a request may end with is the set of all rules it breaks.
 */

#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include <rmem.h>

#define MODEL_PAGE     4096u
#define MODEL_PAGES    16u
#define MODEL_BYTES    (MODEL_PAGES * MODEL_PAGE)
#define MODEL_REGIONS  12u
#define MODEL_MR_PAGES 4u
#define MODEL_MAX_LEN  (2u * MODEL_PAGE)

/* A set of completion statuses. */
#define MODEL_STATUS(status) (UINT32_C(1) << (status))

/* A region, of either kind, over bytes of the arena. */
struct model_region {
	struct rmem_mr *mr; /* NULL: there is none */
	bool is_fast;
	bool is_valid;
	unsigned int pd;
	uint32_t access;
	uint32_t lkey;
	uint32_t rkey;
	uint64_t iova;
	uint64_t length;
	uint32_t start;                 /* user MR: place in the arena */
	uint32_t pages[MODEL_MR_PAGES]; /* fast MR: number of each page */
};

struct model {
	struct model_region regions[MODEL_REGIONS];
	uint8_t bytes[MODEL_BYTES];
};

/* A list of places in the arena: the bytes of a message, one by one. */
struct model_span {
	uint32_t length;
	uint32_t places[MODEL_MAX_LEN];
};

/* The region that a key of either kind opens, or NULL. */
struct model_region *model_find(struct model *model, uint32_t key, bool is_lkey);

/* Append the bytes that a key opens for these rights; false when it does not open them. */
bool model_open(struct model *model, uint32_t key, bool is_lkey, unsigned int pd, uint64_t addr,
		uint32_t length, uint32_t need, struct model_span *span);

/* The same for a list of SGEs. */
bool model_open_sges(struct model *model, unsigned int pd, const struct rmem_sge *sge,
		uint32_t num_sge, uint32_t need, struct model_span *span);

/* Whether a byte is in both spans, or twice in the second. */
bool model_overlaps(const struct model_span *from, const struct model_span *to);

/* Copy length bytes. */
void model_copy(struct model *model, const struct model_span *to, const struct model_span *from,
		uint32_t length);

/* Whether REG_MR of the region is right; region is NULL for one that is not fast. */
bool model_may_bind(
		const struct model_region *region, unsigned int pd, const struct rmem_send_wr *wr);

#endif /* MODEL_H */
