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
#define MODEL_REGIONS  20u
#define MODEL_MR_PAGES 4u
#define MODEL_ENTRIES  4u
#define MODEL_MAX_LEN  (2u * MODEL_PAGE)
#define MODEL_DEPTH    3u /* the device's max_mkey_depth */

/* A set of completion statuses. */
#define MODEL_STATUS(status) (UINT32_C(1) << (status))

/* Objects that have a key. */
enum model_kind {
	MODEL_NONE = 0,
	MODEL_USER, /* rmem_mr_reg() */
	MODEL_FAST, /* REG_MR */
	MODEL_LIST, /* UMR */
	MODEL_MW1,  /* rmem_mw_bind() */
	MODEL_MW2,  /* BIND_MW */
};

/* An object with a key for bytes of the arena. */
struct model_region {
	enum model_kind kind;
	struct rmem_mr *mr; /* NULL for a window */
	struct rmem_mw *mw;
	bool is_valid;
	bool is_disabled; /* user MR */
	bool is_zero_based;
	uint32_t owner; /* unique number, never reused */
	unsigned int pd;
	uint32_t access;
	uint32_t lkey; /* not of a window */
	uint32_t rkey;
	uint64_t iova;
	uint64_t length;
	uint32_t start;                 /* user MR and window: place in the arena */
	uint32_t pages[MODEL_MR_PAGES]; /* fast MR: number of each page */
	uint32_t offset;                /* fast MR: of the first byte in the first page */
	const struct rmem_qp *qp;       /* type 2 window: QP of the BIND_MW */
	struct model_region *below;     /* window: its MR */
	unsigned int nb_windows;        /* user MR: windows bound to it */
	int counter;                    /* user MR: index of its counter, or -1 */
	struct rmem_mkey_entry entries[MODEL_ENTRIES];
	uint32_t nb_entries;
	uint32_t repeat_count;
	uint32_t levels; /* of a list when it was bound */
};

struct model {
	struct model_region regions[MODEL_REGIONS];
	uint8_t bytes[MODEL_BYTES];
	uint8_t seen[MODEL_BYTES]; /* scratch */
};

/* The offsets in the arena of each byte of a message. */
struct model_span {
	uint32_t length;
	uint32_t nb_pieces; /* blocks and ranges that it consists of */
	uint32_t places[MODEL_MAX_LEN];
};

/* An accessor of memory: a QP in a protection domain. */
struct model_side {
	unsigned int pd;
	const struct rmem_qp *qp;
};

/* The region of an lkey or rkey, or NULL. */
struct model_region *model_find(struct model *model, uint32_t key, bool is_lkey);

/* Append the bytes of a remote access; false if the key does not permit it. */
bool model_open_rkey(struct model *model, const struct model_side *side, uint32_t rkey,
		uint64_t addr, uint32_t length, uint32_t need, struct model_span *span);

/* The same for a list of SGEs. */
bool model_open_sges(struct model *model, const struct model_side *side, const struct rmem_sge *sge,
		uint32_t num_sge, uint32_t need, struct model_span *span);

/* Whether a byte is in both spans, or twice in the second. */
bool model_overlaps(
		struct model *model, const struct model_span *from, const struct model_span *to);

void model_copy(struct model *model, const struct model_span *to, const struct model_span *from,
		uint32_t length);

/* Whether a request may bind the region; model_may_bind() is for both types of windows. */
bool model_may_reg(const struct model_region *region, const struct model_side *side,
		const struct rmem_send_wr *wr);
bool model_may_umr(struct model *model, const struct model_region *region,
		const struct model_side *side, const struct rmem_send_wr *wr);
bool model_may_bind(const struct model_region *window, const struct model_region *below,
		const struct model_side *side, const struct rmem_mw_bind_info *info);

/* Number of levels of a list with these entries. */
uint32_t model_levels(struct model *model, const struct rmem_mkey_entry *entries, uint32_t nb);

/* Whether a request of that side may invalidate the key. */
bool model_may_invalidate(const struct model_region *region, const struct model_side *side);

/* Mark a window as unbound. */
void model_unbind(struct model_region *window);

#endif /* MODEL_H */
