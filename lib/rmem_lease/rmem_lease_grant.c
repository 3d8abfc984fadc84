/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Grants: check, allocation of a slot and a tag, staging, post. */

#include <string.h>

#include "rmem_lease_priv.h"

/* Whether a request is valid, given the checks made when its MR was held. */
static inline bool
is_valid(const struct rmem_lease_ctx *ctx, const struct rmem_lease_req *req,
		const struct lease_hold *hold)
{
	const struct rmem_mr *mr = hold->mr;
	uint64_t offset = (uintptr_t)req->addr - (uintptr_t)mr->addr; /* wraps below mr */

	return req->length - 1 < ctx->max_length && offset < mr->length &&
			req->length <= mr->length - offset && req->access != 0 &&
			((req->access & ~hold->access) | req->reserved) == 0;
}

/* Whether the buffer is inside its MR, which is held. */
static bool
check_range(const struct rmem_lease_ctx *ctx, const struct rmem_lease_req *req)
{
	const struct rmem_mr *mr = req->mr;
	uint64_t offset;

	if (mr->type != RMEM_MR_TYPE_USER || rmem_mr_state(mr) != RMEM_MR_STATE_VALID ||
			mr->pd != ctx->qp->pd || mr->addr == NULL)
		return false;
	offset = (uintptr_t)req->addr - (uintptr_t)mr->addr; /* wraps below mr */
	return req->length != 0 && req->length <= ctx->max_length && offset < mr->length &&
			req->length <= mr->length - offset && (uintptr_t)req->addr >= ctx->min_addr;
}

/* Check a request that is_valid() did not accept: 0, or the -errno of its refusal. */
static __rte_noinline int
check_req(const struct rmem_lease_ctx *ctx, const struct rmem_lease_req *req)
{
	uint32_t need = ctx->mr_needs;

	if (!check_range(ctx, req) || req->access == 0 ||
			((req->access & ~RMEM_ACCESS_REMOTE) | req->reserved) != 0)
		return -EINVAL;
	if (req->access & LEASE_MODIFY)
		need |= RMEM_ACCESS_LOCAL_WRITE; /* IBTA C10-74 */
	if ((rmem_mr_drv(req->mr)->flags & ctx->mr_flags_bad) != 0)
		return -EOPNOTSUPP;
	if ((req->access & ~ctx->access) != 0 || (need & ~req->mr->access) != 0)
		return -EPERM;
	return 0;
}

/*
 * Set *hold to the hold of the request's MR. The MR is held before it is checked, so that it cannot
 * change before the lease ends. The burst has a share of the hold, and so has each of its leases.
 */
static inline int
take_mr(struct rmem_lease_ctx *ctx, const struct rmem_lease_req *req, struct lease_hold **hold)
{
	if (likely(*hold != NULL && (*hold)->mr == req->mr))
		return 0;
	if (*hold != NULL)
		lease_unhold(ctx, *hold);
	*hold = NULL;
	if (likely(req->mr != NULL && req->mr->obj.type == RMEM_OBJ_MR))
		*hold = lease_hold(ctx, req->mr);
	return likely(*hold != NULL) ? 0 : -EINVAL;
}

/* Ensure a free slot, and a free entry among the staged ones. */
static inline int
have_slot(struct rmem_lease_ctx *ctx)
{
	if (unlikely(ctx->nb_staged == LEASE_BURST))
		return -ENOSPC;
	return likely(ctx->nb_free != 0) ? 0 : rmem_lease_refill(ctx);
}

/* Stage a request that was checked, with a share in its hold; the free stack is not empty. */
static inline struct lease_slot *
stage(struct rmem_lease_ctx *ctx, const struct rmem_lease_req *req, struct lease_hold *hold)
{
	uint32_t number = ctx->free[--ctx->nb_free];
	struct lease_slot *slot = &ctx->slots[number];
	struct rmem_send_wr *wr = &ctx->wr[ctx->nb_staged];
	struct rmem_lease *lease = &slot->lease;
	uint8_t tag = lease_take_tag(ctx, slot);

	LEASE_COUNT(hold->nb, 1);
	slot->hold = hold;
	__atomic_store_n(&lease->id, lease->id + (UINT64_C(1) << LEASE_ID_BITS), __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_RELEASE); /* before the fields: see struct lease_slot */
	LEASE_SET(slot->serial, ctx->stats.granted + ctx->nb_staged);
	LEASE_SET(lease->addr, req->addr);
	lease->user = req->user;
	lease->deadline = req->deadline;
	lease->mr = req->mr;
	LEASE_SET(lease->length, req->length);
	LEASE_SET(lease->rkey, rmem_rkey_of_tag(lease->rkey, tag));
	lease->access = req->access;
	LEASE_SET_STATE(lease, RMEM_LEASE_PREPARED);
	lease->end = RMEM_LEASE_END_NONE;
	slot->is_peer_inv = false;
	ctx->backend->fill(ctx, slot, wr, tag);
	ctx->staged[ctx->nb_staged++] = number;
	if (req->deadline != 0)
		rmem_lease_heap_add(ctx, slot);
	return slot;
}

/* Stage requests, up to the limit. Return their number, or the -errno of the first. */
static int
prepare(struct rmem_lease_ctx *ctx, const struct rmem_lease_req *req, uint16_t nb,
		struct rmem_lease **lease)
{
	struct lease_hold *hold = NULL;
	int ret = 0;
	uint16_t i;

	for (i = 0; i < nb; i++) {
		ret = take_mr(ctx, &req[i], &hold);
		if (likely(ret == 0) && unlikely(!is_valid(ctx, &req[i], hold)))
			ret = check_req(ctx, &req[i]);
		if (unlikely(ret != 0)) {
			rmem_lease_refuse(ctx, &req[i], ret);
			break;
		}
		ret = have_slot(ctx);
		if (unlikely(ret != 0))
			break;
		lease[i] = &stage(ctx, &req[i], hold)->lease;
	}
	if (likely(hold != NULL))
		lease_unhold(ctx, hold);
	if (ctx->nb_free < ctx->low_free)
		ctx->low_free = ctx->nb_free;
	LEASE_SET(ctx->stats.nb_leases, ctx->stats.nb_leases + i);
	if (ctx->stats.peak_leases < ctx->stats.nb_leases)
		LEASE_SET(ctx->stats.peak_leases, ctx->stats.nb_leases);
	lease_gauge(ctx);
	return i != 0 ? i : ret;
}

/* Remove the first n staged leases, which are in the send queue. */
static void
staged_are_posted(struct rmem_lease_ctx *ctx, uint32_t n)
{
	ctx->ops_tail += n;
	LEASE_COUNT(ctx->stats.granted, n);
	lease_posted(ctx, n, ctx->nb_staged);
	ctx->nb_staged -= n;
	if (likely(ctx->nb_staged == 0))
		return;
	memmove(ctx->staged, &ctx->staged[n], ctx->nb_staged * sizeof(ctx->staged[0]));
	memmove(ctx->wr, &ctx->wr[n], ctx->nb_staged * sizeof(ctx->wr[0]));
	LEASE_COUNT(ctx->stats.queue_full, 1);
}

/* Set the staged leases from n on to PREPARED again: they were not posted. */
static void
not_posted(struct rmem_lease_ctx *ctx, uint32_t n)
{
	for (; n < ctx->nb_staged; n++)
		LEASE_SET_STATE(&ctx->slots[ctx->staged[n]].lease, RMEM_LEASE_PREPARED);
}

/* Post the staged requests, then nb_wr requests of the application. Return as rmem_post_send(). */
static int
post_staged(struct rmem_lease_ctx *ctx, uint32_t nb_wr)
{
	uint32_t i, n, nb = ctx->nb_staged, run = ctx->nb_unsignaled, place = ctx->ops_tail;
	const uint64_t wr_id = (uint64_t)ctx->wr_tag << 32;
	int ret;

	for (i = 0; i < nb; i++, place++) {
		struct lease_slot *slot = &ctx->slots[ctx->staged[i]];

		LEASE_SET_STATE(&slot->lease, RMEM_LEASE_GRANTING);
		ctx->ops[place & ctx->ops_mask] = lease_op(ctx, slot, false);
		ctx->wr[i].wr_id = wr_id | place;
		ctx->wr[i].flags = lease_flags(ctx, i == nb - 1, &run);
	}
	ret = rmem_post_send(ctx->qp, ctx->wr, (uint16_t)(nb + nb_wr));
	n = RTE_MIN((uint32_t)RTE_MAX(ret, 0), nb);
	if (unlikely(n < nb))
		not_posted(ctx, n);
	if (likely(ret >= 0))
		staged_are_posted(ctx, n);
	return ret;
}

/* Undo the staged requests that were not posted. */
static void
roll_back(struct rmem_lease_ctx *ctx)
{
	LEASE_SET(ctx->stats.nb_leases, ctx->stats.nb_leases - ctx->nb_staged);
	while (ctx->nb_staged > 0) {
		struct lease_slot *slot = &ctx->slots[ctx->staged[--ctx->nb_staged]];

		if (slot->heap_at != LEASE_NOWHERE)
			rmem_lease_heap_del(ctx, slot);
		rmem_lease_put(ctx, slot);
	}
	lease_gauge(ctx);
}

int
rmem_lease_grant(struct rmem_lease_ctx *ctx, const struct rmem_lease_req *req, uint16_t nb,
		struct rmem_lease **lease)
{
	uint16_t granted = 0;
	int nb_staged, ret;

	if (unlikely(!lease_is_ctx(ctx)))
		return -EINVAL;
	if (unlikely(ctx->nb_staged != 0))
		return -EBUSY;
	while (granted < nb) {
		nb_staged = prepare(ctx, &req[granted],
				(uint16_t)RTE_MIN(nb - granted, LEASE_BURST), &lease[granted]);
		if (unlikely(nb_staged < 0))
			return granted != 0 ? granted : nb_staged;
		ret = post_staged(ctx, 0);
		if (unlikely(ret != nb_staged)) {
			roll_back(ctx);
			granted += (uint16_t)RTE_MAX(ret, 0);
			return granted != 0 ? granted : ret;
		}
		granted += (uint16_t)nb_staged;
	}
	return granted;
}

int
rmem_lease_prepare(struct rmem_lease_ctx *ctx, const struct rmem_lease_req *req, uint16_t nb,
		struct rmem_lease **lease)
{
	if (unlikely(!lease_is_ctx(ctx)))
		return -EINVAL;
	return prepare(ctx, req, nb, lease);
}

int
rmem_lease_post(struct rmem_lease_ctx *ctx, const struct rmem_send_wr *wr, uint16_t nb_wr)
{
	uint32_t nb, chained;
	int ret, more;

	if (unlikely(!lease_is_ctx(ctx)))
		return -EINVAL;
	nb = ctx->nb_staged;
	chained = RTE_MIN((uint32_t)nb_wr, RTE_DIM(ctx->wr) - nb);
	if (likely(chained != 0))
		memcpy(&ctx->wr[nb], wr, chained * sizeof(*wr));
	ret = post_staged(ctx, chained);
	if (unlikely(ret < 0))
		return ret;
	if (unlikely((uint32_t)ret < nb))
		return -ENOSPC;
	ret -= (int)nb;
	if (unlikely((uint32_t)ret < chained || chained == nb_wr)) {
		/* Post again for the error, if the first request of the application was refused. */
		if (ret != 0 || nb_wr == 0)
			return ret;
		return rmem_post_send(ctx->qp, wr, nb_wr);
	}
	more = rmem_post_send(ctx->qp, &wr[chained], (uint16_t)(nb_wr - chained));
	return ret + RTE_MAX(more, 0);
}
