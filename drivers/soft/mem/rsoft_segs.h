/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Segments of the address space that do not overlap, in order: a treap, which is a search tree by
 * address and a heap by random priorities, and so about as deep as a balanced one.
 */

#ifndef RSOFT_SEGS_H
#define RSOFT_SEGS_H

#include <stdbool.h>
#include <stdint.h>

struct rsoft_seg {
	struct rsoft_seg *left;
	struct rsoft_seg *right;
	uintptr_t first;
	uintptr_t end;
	uint64_t nb_pins;
	uint32_t priority;
	bool is_ours; /* locked by this driver; else by the program */
};

/* The segment that holds the byte, or else the next one; NULL if there is none. */
struct rsoft_seg *rsoft_segs_find(struct rsoft_seg *root, uintptr_t at);

/* Add a segment of the heap; NULL when there is no memory. */
struct rsoft_seg *rsoft_segs_add(struct rsoft_seg **root, uintptr_t first, uintptr_t end);

/* Remove a segment and free it. */
void rsoft_segs_remove(struct rsoft_seg **root, struct rsoft_seg *seg);

#endif /* RSOFT_SEGS_H */
