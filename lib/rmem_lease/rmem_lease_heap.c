/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Deadlines: a binary heap with the next deadline at the top. Each slot stores its position, so a
 * revoked lease is removed without a search. Deadlines added in ascending order need no move.
 */

#include "rmem_lease_priv.h"

static void
set(struct rmem_lease_ctx *ctx, uint32_t at, struct lease_due due)
{
	ctx->heap[at] = due;
	ctx->slots[due.slot].heap_at = at;
}

/* Move due upwards from the free position at. Return its final position. */
static uint32_t
sift_up(struct rmem_lease_ctx *ctx, uint32_t at, struct lease_due due)
{
	while (at > 0 && due.deadline < ctx->heap[(at - 1) / 2].deadline) {
		set(ctx, at, ctx->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	set(ctx, at, due);
	return at;
}

static void
sift_down(struct rmem_lease_ctx *ctx, uint32_t at, struct lease_due due)
{
	uint32_t child;

	for (;;) {
		child = 2 * at + 1;
		if (child >= ctx->nb_due)
			break;
		if (child + 1 < ctx->nb_due &&
				ctx->heap[child + 1].deadline < ctx->heap[child].deadline)
			child++;
		if (due.deadline <= ctx->heap[child].deadline)
			break;
		set(ctx, at, ctx->heap[child]);
		at = child;
	}
	set(ctx, at, due);
}

void
rmem_lease_heap_add(struct rmem_lease_ctx *ctx, struct lease_slot *slot)
{
	const struct lease_due due = {
			.deadline = slot->lease.deadline, .slot = lease_number(ctx, slot)};

	sift_up(ctx, ctx->nb_due++, due);
}

void
rmem_lease_heap_del(struct rmem_lease_ctx *ctx, struct lease_slot *slot)
{
	uint32_t at = slot->heap_at;
	struct lease_due last;

	slot->heap_at = LEASE_NOWHERE;
	last = ctx->heap[--ctx->nb_due];
	if (at != ctx->nb_due && sift_up(ctx, at, last) == at)
		sift_down(ctx, at, last);
}
