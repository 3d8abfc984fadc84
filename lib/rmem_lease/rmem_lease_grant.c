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

/* The hold of consecutive requests of a burst; the burst has a share of it. */
struct burst_hold {
	struct lease_hold *hold; /* or NULL */
	int32_t nb;              /* leases of the burst whose shares are not counted yet */
};

/* Count the shares of the leases, and end that of the burst. */
static inline void
end_mr(struct rmem_lease_ctx *ctx, struct burst_hold *burst)
{
	if (likely(burst->hold != NULL))
		lease_share(ctx, burst->hold, burst->nb - 1);
	*burst = (struct burst_hold){.hold = NULL, .nb = 0};
}

/*
 * Hold the request's MR. It is held before it is checked, so that it cannot change before the lease
 * ends.
 */
static inline int
take_mr(struct rmem_lease_ctx *ctx, const struct rmem_lease_req *req, struct burst_hold *burst)
{
	if (likely(burst->hold != NULL && burst->hold->mr == req->mr))
		return 0;
	end_mr(ctx, burst);
	if (likely(req->mr != NULL && req->mr->obj.type == RMEM_OBJ_MR))
		burst->hold = lease_hold(ctx, req->mr);
	return likely(burst->hold != NULL) ? 0 : -EINVAL;
}

/*
 * Create the lease of a request that was checked, with a share in its hold, in that state. The
 * number of leases before it is serial.
 */
static inline void
fill_lease(struct rmem_lease_ctx *ctx, struct lease_slot *slot, const struct rmem_lease_req *req,
		struct lease_hold *hold, uint64_t serial, uint8_t state)
{
	struct rmem_lease *lease = &slot->lease;
	uint8_t tag = lease_take_tag(ctx, slot);

	slot->hold = hold;
	__atomic_store_n(&lease->id, lease->id + (UINT64_C(1) << LEASE_ID_BITS), __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_RELEASE); /* before the fields: see struct lease_slot */
	LEASE_SET(slot->serial, serial);
	LEASE_SET(lease->addr, req->addr);
	lease->remote_addr = ctx->is_zero_based ? 0 : (uintptr_t)req->addr + hold->to_iova;
	lease->user = req->user;
	lease->deadline = req->deadline;
	lease->mr = req->mr;
	LEASE_SET(lease->length, req->length);
	LEASE_SET(lease->rkey, rmem_rkey_of_tag(lease->rkey, tag));
	lease->access = req->access;
	LEASE_SET_STATE(lease, state);
	lease->end = RMEM_LEASE_END_NONE;
	slot->is_peer_inv = false;
	if (req->deadline != 0)
		rmem_lease_heap_add(ctx, slot);
}

/*
 * Stage requests, up to the limit, as leases in that state. Return their number, or the -errno of
 * the first.
 */
static int
prepare(struct rmem_lease_ctx *ctx, const struct rmem_lease_req *req, uint16_t nb,
		struct rmem_lease **lease, uint8_t state)
{
	const uint64_t serial = ctx->stats.granted + ctx->nb_staged;
	const uint32_t max = LEASE_BURST - ctx->nb_staged;
	struct burst_hold burst = {.hold = NULL, .nb = 0};
	uint32_t *staged = &ctx->staged[ctx->nb_staged];
	uint32_t i;
	int ret = 0;

	for (i = 0; i < nb; i++) {
		struct lease_slot *slot;

		ret = take_mr(ctx, &req[i], &burst);
		if (likely(ret == 0) && unlikely(!is_valid(ctx, &req[i], burst.hold)))
			ret = check_req(ctx, &req[i]);
		if (unlikely(ret != 0)) {
			rmem_lease_refuse(ctx, &req[i], ret);
			break;
		}
		if (unlikely(i == max || ctx->nb_free == 0))
			ret = i == max ? -ENOSPC : rmem_lease_refill(ctx);
		if (unlikely(ret != 0))
			break;
		staged[i] = ctx->free[--ctx->nb_free];
		slot = &ctx->slots[staged[i]];
		lease[i] = &slot->lease;
		fill_lease(ctx, slot, &req[i], burst.hold, serial + i, state);
		burst.nb++;
	}
	ctx->nb_staged += i;
	end_mr(ctx, &burst);
	if (ctx->nb_free < ctx->low_free)
		ctx->low_free = ctx->nb_free;
	LEASE_SET(ctx->stats.nb_leases, ctx->stats.nb_leases + i);
	if (ctx->stats.peak_leases < ctx->stats.nb_leases)
		LEASE_SET(ctx->stats.peak_leases, ctx->stats.nb_leases);
	lease_gauge(ctx);
	return i != 0 ? (int)i : ret;
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
	LEASE_COUNT(ctx->stats.queue_full, 1);
}

/* Set the state of the staged leases from n on. */
static void
set_staged(struct rmem_lease_ctx *ctx, uint32_t n, uint8_t state)
{
	for (; n < ctx->nb_staged; n++)
		LEASE_SET_STATE(&ctx->slots[ctx->staged[n]].lease, state);
}

/*
 * Post the requests of the staged leases, which are GRANTING, then nb_wr requests of the
 * application. Return as rmem_post_send().
 */
static int
post_staged(struct rmem_lease_ctx *ctx, uint32_t nb_wr)
{
	uint32_t n, nb = ctx->nb_staged;
	struct rmem_send_wr *wr = &ctx->wr[LEASE_BURST - nb];
	int ret;

	ctx->backend->fill(ctx, ctx->staged, nb, wr);
	lease_signal(ctx, wr, nb);
	ret = rmem_post_send(ctx->qp, wr, (uint16_t)(nb + nb_wr));
	n = RTE_MIN((uint32_t)RTE_MAX(ret, 0), nb);
	if (unlikely(n < nb))
		set_staged(ctx, n, RMEM_LEASE_PREPARED);
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
				(uint16_t)RTE_MIN(nb - granted, LEASE_BURST), &lease[granted],
				RMEM_LEASE_GRANTING);
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
	return prepare(ctx, req, nb, lease, RMEM_LEASE_PREPARED);
}

int
rmem_lease_post(struct rmem_lease_ctx *ctx, const struct rmem_send_wr *wr, uint16_t nb_wr)
{
	uint32_t nb, chained;
	int ret, more;

	if (unlikely(!lease_is_ctx(ctx)))
		return -EINVAL;
	nb = ctx->nb_staged;
	chained = RTE_MIN((uint32_t)nb_wr, LEASE_BURST);
	if (likely(chained != 0))
		memcpy(&ctx->wr[LEASE_BURST], wr, chained * sizeof(*wr));
	set_staged(ctx, 0, RMEM_LEASE_GRANTING);
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
