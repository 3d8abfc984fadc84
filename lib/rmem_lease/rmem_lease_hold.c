/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * References to the MRs of leases. Taking a reference needs an atomic operation. Leases of a
 * recently leased MR share one, so a burst takes a reference for each MR, not for each buffer. An
 * MR does not change while it is referenced, so checks that depend only on the MR are made once.
 *
 * Invariant: a hold whose mr is not NULL has a reference to it, which nb leases share. Several
 * holds may refer to one MR. An entry of `recent` is only a hint: its hold may be of this MR, of
 * another MR, or unused.
 */

#include <rmem_obj_ref.h>

#include "rmem_lease_priv.h"

void
rmem_lease_hold_init(struct rmem_lease_ctx *ctx, uint32_t nb)
{
	uint32_t i;

	for (i = 0; i < nb; i++)
		ctx->holds[i].next = i + 1;
}

/* Rights that a lease of any part of an MR may have; 0: check_req() must check each part. */
static uint32_t
access_of(const struct rmem_lease_ctx *ctx, const struct rmem_mr *mr)
{
	if (mr->type != RMEM_MR_TYPE_USER || rmem_mr_state(mr) != RMEM_MR_STATE_VALID ||
			mr->pd != ctx->qp->pd || (uintptr_t)mr->addr < RTE_MAX(ctx->min_addr, 1u) ||
			(ctx->mr_needs & ~mr->access) != 0 ||
			(rmem_mr_drv(mr)->flags & ctx->mr_flags_bad) != 0)
		return 0;
	if ((mr->access & RMEM_ACCESS_LOCAL_WRITE) == 0)
		return ctx->access & RMEM_ACCESS_REMOTE & ~LEASE_MODIFY;
	return ctx->access & RMEM_ACCESS_REMOTE;
}

struct lease_hold *
rmem_lease_hold_new(struct rmem_lease_ctx *ctx, struct rmem_mr *mr, uint32_t *recent)
{
	struct lease_hold *hold = &ctx->holds[ctx->free_hold];

	if (!rmem_obj_hold(&mr->obj))
		return NULL;
	*recent = ctx->free_hold;
	ctx->free_hold = hold->next;
	hold->mr = mr;
	LEASE_SET(hold->nb, 1);
	hold->access = access_of(ctx, mr);
	LEASE_SET(hold->rkey, mr->rkey);
	hold->to_iova = ctx->has_iova ? mr->iova - (uintptr_t)mr->addr : 0;
	return hold;
}

void
rmem_lease_hold_end(struct rmem_lease_ctx *ctx, struct lease_hold *hold)
{
	rmem_obj_unhold(&hold->mr->obj);
	hold->mr = NULL;
	hold->next = ctx->free_hold;
	ctx->free_hold = (uint32_t)(hold - ctx->holds);
}
