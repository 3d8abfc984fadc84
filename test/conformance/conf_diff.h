/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * A random program that runs on two devices, for conf_diff.c and conf_diff_ops.c.
 *
 * An operation refers to objects by number; each device has its own object of that number.
 */

#ifndef CONF_DIFF_H
#define CONF_DIFF_H

#include "conf.h"

#define DIFF_ITEMS 12u
#define DIFF_MW_CAPA                                                                               \
	(RMEM_DEV_CAPA_MW_TYPE_1 | RMEM_DEV_CAPA_MW_TYPE_2B | RMEM_DEV_CAPA_LOCAL_INV |            \
			RMEM_DEV_CAPA_SEND_WITH_INV)

enum diff_kind {
	DIFF_NONE,
	DIFF_MR,
	DIFF_MW1,
	DIFF_MW2,
};

enum diff_type {
	DIFF_REG,
	DIFF_DEREG,
	DIFF_ALLOC_MW,
	DIFF_DEALLOC_MW,
	DIFF_BIND_1,
	DIFF_BIND_2,
	DIFF_INV,
	DIFF_SEND_INV,
	DIFF_WRITE,
	DIFF_READ,
	DIFF_ATOMIC,
	DIFF_SEND,
	DIFF_TYPES,
};

extern const char *const diff_names[DIFF_TYPES];

struct diff_op {
	enum diff_type type;
	int item;
	int below; /* MR to bind to; of ALLOC_MW: 1 for type 2 */
	uint32_t pd;
	uint32_t start; /* in a's buffer */
	uint32_t length;
	uint64_t offset; /* from the item's first byte */
	uint32_t access;
	uint32_t seed; /* of what b's buffer holds before */
	uint8_t tag_flip;
	bool has_iova;
	bool is_local_bad;
};

/* Objects of both devices with one number. */
struct diff_item {
	enum diff_kind kind;
	bool is_bound; /* type 2 window */
	bool is_zero_based;
	uint32_t start;
	uint32_t length;
	uint32_t access;
};

struct diff_world {
	struct rmem_dev *dev;
	struct rmem_dev_info info;
	struct rmem_pd *pds[2];
	struct fx_side a; /* a owns the memory of the keys, b is the peer */
	struct fx_side b;
	struct rmem_mr *mrs[DIFF_ITEMS];
	struct rmem_mw *mws[DIFF_ITEMS];
	uint64_t iovas[DIFF_ITEMS]; /* of a window: of its first byte */
	uint32_t rkeys[DIFF_ITEMS]; /* in force */
};

struct diff_outcome {
	int ret;
	int status;
	int recv_status;
	uint32_t byte_len;
	int states[2];
};

struct diff {
	struct diff_world worlds[2];
	struct diff_item items[DIFF_ITEMS];
	uint64_t random;
	bool has_mw;
	uint32_t nb_done[DIFF_TYPES];
	uint32_t nb_refused[DIFF_TYPES];
};

extern struct diff diff;

uint32_t diff_below(uint32_t limit);

/*
 * Execute the operation on one device, with the result of the other one (NULL for the first). Not
 * TEST_SUCCESS if the results can't be compared.
 */
void diff_do(struct diff_world *world, const struct diff_op *op, struct diff_outcome *outcome,
		const struct diff_outcome *other);
/* It succeeded on both: what is there now. */
void diff_note(const struct diff_op *op);
void diff_print(uint32_t number, const struct diff_op *op, const struct diff_outcome outcomes[2]);

#endif /* CONF_DIFF_H */
