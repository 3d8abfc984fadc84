/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * The audit of lease contexts, as a part of rmem_dev_audit().
 */

#include <errno.h>
#include <stdlib.h>

#include "rmem_lease_priv.h"

/* Set a bit; false when it is set already. */
static bool
note_bit(uint8_t *bits, uint32_t i)
{
	uint8_t bit = (uint8_t)(1u << i % 8);

	if ((bits[i / 8] & bit) != 0)
		return false;
	bits[i / 8] |= bit;
	return true;
}

/* Mark a slot as listed; false if there is no such slot, or it is in another list. */
static bool
note(const struct rmem_lease_ctx *ctx, uint8_t *bits, uint32_t slot)
{
	return slot < ctx->nb_slots && note_bit(bits, slot);
}

/* Check that slots without a lease are in at most one list. */
static bool
lists_are_valid(const struct rmem_lease_ctx *ctx)
{
	uint8_t *bits = calloc(ctx->nb_slots / 8 + 1, 1);
	bool is_valid = bits != NULL && ctx->nb_free <= ctx->nb_slots &&
			ctx->nb_empty <= ctx->nb_slots &&
			ctx->quarantined.tail - ctx->quarantined.head <= ctx->quarantined.mask + 1;
	uint32_t i;

	for (i = 0; is_valid && i < ctx->nb_free; i++)
		is_valid = note(ctx, bits, ctx->free[i]) && ctx->slots[ctx->free[i]].has_key;
	for (i = 0; is_valid && i < ctx->nb_empty; i++)
		is_valid = note(ctx, bits, ctx->empty[i]) && !ctx->slots[ctx->empty[i]].has_key;
	for (i = ctx->quarantined.head; is_valid && i != ctx->quarantined.tail; i++)
		is_valid = note(ctx, bits, ctx->quarantined.ring[i & ctx->quarantined.mask]);
	free(bits);
	return is_valid;
}

/* Check that each slot has its deadline, and that the heap is ordered. */
static bool
heap_is_valid(const struct rmem_lease_ctx *ctx)
{
	uint32_t i;

	if (ctx->nb_due > ctx->nb_slots)
		return false;
	for (i = 0; i < ctx->nb_due; i++) {
		const struct lease_due *due = &ctx->heap[i];

		if (due->slot >= ctx->nb_slots || ctx->slots[due->slot].heap_at != i ||
				(i > 0 && ctx->heap[(i - 1) / 2].deadline > due->deadline))
			return false;
	}
	return true;
}

/* Check that each key has each of its tags once. */
static bool
tags_are_valid(const struct rmem_lease_ctx *ctx)
{
	uint32_t i, tag;

	for (i = 0; i < ctx->nb_slots; i++) {
		uint8_t bits[LEASE_TAGS / 8] = {0};

		for (tag = 0; tag < LEASE_TAGS; tag++) {
			if (!note_bit(bits, ctx->tags[i][tag]))
				return false;
		}
		if (ctx->slots[i].nb_tags > LEASE_TAGS)
			return false;
	}
	return true;
}

int
rmem_lease_audit_ctx(const struct rmem_lease_ctx *ctx, const struct rmem_dev *dev)
{
	const char *flaw = NULL;

	if (ctx->obj.type != LEASE_TAG || ctx->dev != dev || ctx->qp->obj.type != RMEM_OBJ_QP)
		flaw = "tag or QP";
	else if (ctx->ops_tail - ctx->ops_head > ctx->ops_mask + 1 || ctx->nb_staged > LEASE_BURST)
		flaw = "number of requests";
	else if (!lists_are_valid(ctx))
		flaw = "list of slots";
	else if (!heap_is_valid(ctx))
		flaw = "heap of deadlines";
	else if (!tags_are_valid(ctx))
		flaw = "order of tags";
	if (flaw == NULL)
		return 0;
	return LEASE_FAIL(EIO, "audit: %s: lease context %p: wrong %s", dev->name,
			(const void *)ctx, flaw);
}
