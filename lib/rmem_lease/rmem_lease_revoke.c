/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* End of leases: revoked, expired, invalidated by the peer; and processing of completions. */

#include <string.h>

#include "rmem_lease_priv.h"
#include "rmem_lease_trace_priv.h"

/* Count the end of a lease, for this reason unless it has one. */
static __rte_noinline void
count_end(struct rmem_lease_ctx *ctx, struct lease_slot *slot, uint8_t why)
{
	if (slot->heap_at != LEASE_NOWHERE)
		rmem_lease_heap_del(ctx, slot);
	if (slot->lease.end == RMEM_LEASE_END_NONE)
		slot->lease.end = why;
	switch (slot->lease.end) {
	case RMEM_LEASE_END_REVOKED:
		LEASE_COUNT(ctx->stats.revoked, 1);
		break;
	case RMEM_LEASE_END_EXPIRED:
		LEASE_COUNT(ctx->stats.expired, 1);
		break;
	case RMEM_LEASE_END_PEER_INV:
		LEASE_COUNT(ctx->stats.peer_invs, 1);
		break;
	default:
		LEASE_COUNT(ctx->stats.failed, 1);
		break;
	}
}

void
rmem_lease_slot_end(struct rmem_lease_ctx *ctx, struct lease_slot *slot, uint8_t why)
{
	count_end(ctx, slot, why);
	LEASE_SET_STATE(&slot->lease, RMEM_LEASE_ENDED);
	lease_fifo_put(&ctx->ended, lease_number(ctx, slot));
}

/* Remove a prepared lease from the staged ones. */
static void
unstage(struct rmem_lease_ctx *ctx, struct lease_slot *slot)
{
	uint32_t i = 0, nb_after;

	while (ctx->staged[i] != lease_number(ctx, slot))
		i++;
	nb_after = --ctx->nb_staged - i;
	memmove(&ctx->staged[i], &ctx->staged[i + 1], nb_after * sizeof(ctx->staged[0]));
}

/* Fill the unsignaled LOCAL_INV of a slot, and its entry of `ops`; its opcode is set. */
static inline void
fill_inv(struct rmem_lease_ctx *ctx, const struct lease_slot *slot, uint32_t place,
		struct rmem_send_wr *wr)
{
	wr->wr_id = (uint64_t)ctx->wr_tag << 32 | place;
	wr->flags = 0;
	wr->invalidate_rkey = slot->lease.rkey;
	ctx->ops[place & ctx->ops_mask] = lease_op(slot, true);
}

/*
 * The peer has ended the last lease whose LOCAL_INV was deferred, but unsignaled requests need a
 * signaled one after them to complete. Bind the key of this lease again, with a tag that was never
 * sent, and invalidate it with a signaled request, which ends the lease.
 *
 * Invariant: such a tag exists, because a key has LEASE_USES leases between two quarantines, and
 * each lease is bound again once at most.
 */
static void
bind_again(struct rmem_lease_ctx *ctx, struct lease_slot *slot)
{
	const uint32_t rkey = slot->lease.rkey, number = lease_number(ctx, slot);
	struct rmem_send_wr wr[2] = {ctx->wr[0], ctx->inv[0]};
	uint8_t tag = lease_take_tag(ctx, slot);
	int ret;

	LEASE_SET(slot->lease.rkey, rmem_rkey_of_tag(rkey, tag));
	ctx->backend->fill(ctx, &number, 1, wr);
	fill_inv(ctx, slot, ctx->ops_tail + 1, &wr[1]);
	lease_signal(ctx, wr, 2);
	ret = rmem_post_send(ctx->qp, wr, 2);
	if (ret <= 0) {
		LEASE_SET(slot->lease.rkey, rkey);
		lease_return_tag(slot);
		ctx->revokes.head--;
		return;
	}
	slot->lease.end = RMEM_LEASE_END_PEER_INV;
	slot->is_peer_inv = false;
	ctx->ops_tail += (uint32_t)ret;
	if (ret == 1)
		ctx->revokes.head--;
	else
		LEASE_COUNT(ctx->stats.local_invs, 1);
	lease_posted(ctx, (uint32_t)ret, 2);
}

/*
 * Whether a lease that waits for its revocation was ended by the peer. A key that is bound again is
 * invalidated in any case: the peer does not have its tag, and can only guess it.
 */
static bool
is_ended_by_peer(const struct lease_slot *slot)
{
	return slot->is_peer_inv && slot->lease.end != RMEM_LEASE_END_PEER_INV;
}

/* Collect LOCAL_INVs of leases that wait for their revocation. Return their number. */
static uint32_t
collect(struct rmem_lease_ctx *ctx)
{
	uint32_t n = 0;

	while (n < LEASE_BURST && !lease_fifo_is_empty(&ctx->revokes)) {
		struct lease_slot *slot = &ctx->slots[lease_fifo_get(&ctx->revokes)];

		if (unlikely(slot->lease.state != RMEM_LEASE_REVOKING))
			continue; /* lost since it was added */
		if (unlikely(is_ended_by_peer(slot))) {
			if (n == 0 && ctx->nb_unsignaled != 0 &&
					lease_fifo_is_empty(&ctx->revokes)) {
				bind_again(ctx, slot);
				return 0;
			}
			slot->lease.end = RMEM_LEASE_END_NONE;
			rmem_lease_slot_end(ctx, slot, RMEM_LEASE_END_PEER_INV);
			continue;
		}
		fill_inv(ctx, slot, ctx->ops_tail + n, &ctx->inv[n]);
		n++;
	}
	return n;
}

/* Let the leases of n LOCAL_INVs after ops_tail, which were not posted, wait again. */
static void
put_back(struct rmem_lease_ctx *ctx, uint32_t n)
{
	while (n-- > 0)
		ctx->revokes.ring[--ctx->revokes.head & ctx->revokes.mask] =
				lease_op_number(ctx->ops[(ctx->ops_tail + n) & ctx->ops_mask]);
}

/*
 * Post n LOCAL_INVs that were filled. False: the send queue is full, and the leases that were not
 * posted wait.
 */
static bool
post_invs(struct rmem_lease_ctx *ctx, uint32_t n)
{
	uint32_t done;
	int ret;

	lease_signal(ctx, ctx->inv, n);
	ret = rmem_post_send(ctx->qp, ctx->inv, (uint16_t)n);
	done = RTE_MIN((uint32_t)RTE_MAX(ret, 0), n);
	ctx->ops_tail += done;
	LEASE_COUNT(ctx->stats.local_invs, done);
	lease_posted(ctx, done, n);
	if (likely(done == n))
		return true;
	if (ret >= 0 || ret == -ENOSPC)
		LEASE_COUNT(ctx->stats.queue_full, 1);
	put_back(ctx, n - done);
	return false;
}

/* Post deferred LOCAL_INVs, up to the free entries of the send queue. */
static __rte_noinline void
post_revokes(struct rmem_lease_ctx *ctx)
{
	uint32_t n;

	do {
		n = collect(ctx);
	} while (n != 0 && post_invs(ctx, n) && !lease_fifo_is_empty(&ctx->revokes));
}

/* Revoke a lease that is not in the send queue. */
static __rte_noinline void
revoke_other(struct rmem_lease_ctx *ctx, struct lease_slot *slot, uint8_t why)
{
	if (slot->lease.state == RMEM_LEASE_PREPARED) {
		unstage(ctx, slot);
		rmem_lease_slot_end(ctx, slot, why);
	} else if (slot->lease.state == RMEM_LEASE_LOST && slot->lease.end == RMEM_LEASE_END_NONE) {
		slot->lease.end = why;
	}
}

/* Start the revocation of a lease. */
static inline void
revoke_one(struct rmem_lease_ctx *ctx, struct lease_slot *slot, uint8_t why)
{
	if (unlikely(slot->lease.state != RMEM_LEASE_GRANTING &&
			    slot->lease.state != RMEM_LEASE_GRANTED)) {
		revoke_other(ctx, slot, why);
		return;
	}
	if (unlikely(slot->heap_at != LEASE_NOWHERE))
		rmem_lease_heap_del(ctx, slot);
	LEASE_SET_STATE(&slot->lease, RMEM_LEASE_REVOKING);
	slot->lease.end = why;
	lease_fifo_put(&ctx->revokes, lease_number(ctx, slot));
}

/*
 * Fill LOCAL_INVs for the first of n leases that are in the send queue or granted, without a
 * deadline. Return their number.
 */
static __rte_noinline uint32_t
revoke_run(struct rmem_lease_ctx *ctx, struct rmem_lease *const *lease, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		struct lease_slot *slot = (struct lease_slot *)lease[i];

		if (unlikely((slot->lease.state != RMEM_LEASE_GRANTING &&
					     slot->lease.state != RMEM_LEASE_GRANTED) ||
				    slot->lease.deadline != 0))
			break;
		LEASE_SET_STATE(&slot->lease, RMEM_LEASE_REVOKING);
		slot->lease.end = RMEM_LEASE_END_REVOKED;
		fill_inv(ctx, slot, ctx->ops_tail + i, &ctx->inv[i]);
	}
	return i;
}

int
rmem_lease_revoke(struct rmem_lease_ctx *ctx, struct rmem_lease *const *lease, uint16_t nb)
{
	bool is_full = false;
	uint32_t i, n;

	if (unlikely(!lease_is_ctx(ctx)))
		return -EINVAL;
	for (i = 0; i < nb; i++) {
		size_t at = (uintptr_t)lease[i] - (uintptr_t)ctx->slots;

		if (unlikely(at >= ctx->nb_slots * sizeof(ctx->slots[0]) ||
				    at % sizeof(ctx->slots[0]) != 0 ||
				    lease[i]->state == RMEM_LEASE_FREE))
			return -EINVAL;
	}
	for (i = 0; i < nb && likely(lease_fifo_is_empty(&ctx->revokes)); i += n) {
		n = revoke_run(ctx, &lease[i], RTE_MIN(nb - i, LEASE_BURST));
		if (unlikely(n == 0))
			break;
		is_full = !post_invs(ctx, n);
	}
	for (; i < nb; i++)
		revoke_one(ctx, (struct lease_slot *)lease[i], RMEM_LEASE_END_REVOKED);
	if (unlikely(!is_full && !lease_fifo_is_empty(&ctx->revokes)))
		post_revokes(ctx);
	return 0;
}

/* Process the requests before an entry of the send queue: they have succeeded. */
static void
complete_until(struct rmem_lease_ctx *ctx, uint32_t place)
{
	const uint32_t *ops = ctx->ops;
	const uint32_t mask = ctx->ops_mask;
	struct lease_slot *const slots = ctx->slots;
	struct lease_fifo ended = ctx->ended;
	uint32_t head = ctx->ops_head, nb_revoked = 0;

	for (; head != place; head++) {
		uint32_t op = ops[head & mask];
		struct lease_slot *slot = &slots[lease_op_number(op)];

		if ((op & LEASE_OP_INV) == 0) {
			if (slot->lease.state == RMEM_LEASE_GRANTING && lease_op(slot, false) == op)
				LEASE_SET_STATE(&slot->lease, RMEM_LEASE_GRANTED);
			continue;
		}
		if (likely(slot->lease.end == RMEM_LEASE_END_REVOKED))
			nb_revoked++; /* its deadline, if any, was removed by its revocation */
		else
			count_end(ctx, slot, RMEM_LEASE_END_REVOKED);
		LEASE_SET_STATE(&slot->lease, RMEM_LEASE_ENDED);
		lease_fifo_put(&ended, lease_op_number(op));
	}
	ctx->ops_head = head;
	ctx->ended.tail = ended.tail;
	LEASE_COUNT(ctx->stats.revoked, nb_revoked);
}

/*
 * A request failed: the state of its key is unknown, unless the peer has invalidated the key. If
 * the peer has ended the lease of the request, the failure does not concern the current lease of
 * the slot.
 */
static void
fail(struct rmem_lease_ctx *ctx, uint32_t op, uint8_t status)
{
	struct lease_slot *slot = lease_op_slot(ctx, op);

	if (slot->lease.state == RMEM_LEASE_LOST)
		return;
	if ((op & LEASE_OP_INV) == 0 &&
			(lease_op(slot, false) != op ||
					(slot->lease.state != RMEM_LEASE_GRANTING &&
							slot->lease.state !=
									RMEM_LEASE_REVOKING))) {
		slot->has_bind_failed = true;
		return;
	}
	if ((op & LEASE_OP_INV) != 0 && slot->is_peer_inv) {
		slot->lease.end = RMEM_LEASE_END_NONE;
		rmem_lease_slot_end(ctx, slot, RMEM_LEASE_END_PEER_INV);
		return;
	}
	if (slot->heap_at != LEASE_NOWHERE)
		rmem_lease_heap_del(ctx, slot);
	LEASE_SET_STATE(&slot->lease, RMEM_LEASE_LOST);
	rmem_lease_trace_lose(ctx, slot->lease.rkey, status);
}

static void
take_wc(struct rmem_lease_ctx *ctx, const struct rmem_wc *wc)
{
	uint32_t place = (uint32_t)wc->wr_id;

	/* A completion from before a reset. */
	if (unlikely(place - ctx->ops_head >= ctx->ops_tail - ctx->ops_head))
		return;
	if (likely(wc->status == RMEM_WC_SUCCESS)) {
		complete_until(ctx, place + 1);
		return;
	}
	complete_until(ctx, place);
	fail(ctx, ctx->ops[ctx->ops_head++ & ctx->ops_mask], wc->status);
}

/* The peer has invalidated a key, which may belong to the application. */
static void
take_peer_inv(struct rmem_lease_ctx *ctx, uint32_t rkey)
{
	struct lease_slot *slot = rmem_lease_map_find(ctx, rkey);

	if (slot == NULL)
		return;
	if (slot->lease.state == RMEM_LEASE_GRANTING || slot->lease.state == RMEM_LEASE_GRANTED)
		rmem_lease_slot_end(ctx, slot, RMEM_LEASE_END_PEER_INV);
	else if (slot->lease.state == RMEM_LEASE_REVOKING)
		slot->is_peer_inv = true;
}

/* Revoke overdue leases. */
static void
expire(struct rmem_lease_ctx *ctx)
{
	uint64_t now = rte_rdtsc();

	while (ctx->nb_due != 0 && ctx->heap[0].deadline <= now)
		revoke_one(ctx, &ctx->slots[ctx->heap[0].slot], RMEM_LEASE_END_EXPIRED);
}

int
rmem_lease_process_wcs(struct rmem_lease_ctx *ctx, struct rmem_wc *wc, uint16_t nb_wc)
{
	uint16_t i, left = 0;

	if (unlikely(!lease_is_ctx(ctx)))
		return -EINVAL;
	for (i = 0; i < nb_wc; i++) {
		if (wc[i].wr_id >> 32 == ctx->wr_tag && wc[i].qp_num == ctx->qp->qp_num) {
			take_wc(ctx, &wc[i]);
			continue;
		}
		if (unlikely((wc[i].flags & RMEM_WC_WITH_INV) != 0 &&
				    wc[i].status == RMEM_WC_SUCCESS))
			take_peer_inv(ctx, wc[i].invalidated_rkey);
		if (left != i)
			wc[left] = wc[i];
		left++;
	}
	if (ctx->nb_due != 0)
		expire(ctx);
	if (unlikely(!lease_fifo_is_empty(&ctx->revokes)))
		post_revokes(ctx);
	return left;
}

int
rmem_lease_poll(struct rmem_lease_ctx *ctx, struct rmem_wc *wc, uint16_t nb_wc)
{
	int n;

	if (unlikely(!lease_is_ctx(ctx)))
		return -EINVAL;
	n = rmem_poll_cq(ctx->qp->send_cq, wc, nb_wc);
	return likely(n >= 0) ? rmem_lease_process_wcs(ctx, wc, (uint16_t)n) : n;
}

/*
 * Reclaim the first of n ended leases whose key can be granted again, and following ones that have
 * the same hold. Return their number. The loop calls no function: its variables are in registers.
 */
static __rte_noinline uint32_t
reclaim_run(struct rmem_lease_ctx *ctx, struct rmem_lease **lease, uint32_t n)
{
	struct lease_slot *const slots = ctx->slots;
	const uint32_t *ended = ctx->ended.ring;
	const uint32_t head = ctx->ended.head, mask = ctx->ended.mask;
	struct lease_hold *const hold = slots[ended[head & mask]].hold;
	uint32_t *unused = &ctx->free[ctx->nb_free];
	uint32_t i;

	for (i = 0; i < n; i++) {
		uint32_t number = ended[(head + i) & mask];
		struct lease_slot *slot = &slots[number];

		if (unlikely(slot->hold != hold || !lease_is_reusable(slot)))
			break;
		lease[i] = &slot->lease;
		LEASE_SET_STATE(&slot->lease, RMEM_LEASE_FREE);
		unused[i] = number;
	}
	ctx->ended.head = head + i;
	ctx->nb_free += i;
	lease_share(ctx, hold, -(int32_t)i);
	return i;
}

int
rmem_lease_reclaim(struct rmem_lease_ctx *ctx, struct rmem_lease **lease, uint16_t nb)
{
	uint32_t n, i = 0;

	if (unlikely(!lease_is_ctx(ctx)))
		return -EINVAL;
	n = RTE_MIN(ctx->ended.tail - ctx->ended.head, (uint32_t)nb);
	while (i < n) {
		struct lease_slot *slot =
				&ctx->slots[ctx->ended.ring[ctx->ended.head & ctx->ended.mask]];

		if (likely(lease_is_reusable(slot))) {
			i += reclaim_run(ctx, &lease[i], n - i);
			continue;
		}
		lease[i++] = &slot->lease;
		ctx->ended.head++;
		rmem_lease_put(ctx, slot);
	}
	LEASE_SET(ctx->stats.nb_leases, ctx->stats.nb_leases - n);
	lease_gauge(ctx);
	return (int)n;
}

struct rmem_lease *
rmem_lease_lookup(const struct rmem_lease_ctx *ctx, uint64_t id)
{
	uint64_t number = id & ((UINT64_C(1) << LEASE_ID_BITS) - 1);
	struct lease_slot *slot;

	if (!lease_is_ctx(ctx) || number >= ctx->nb_slots)
		return NULL;
	slot = &ctx->slots[number];
	if (slot->lease.id != id || slot->lease.state == RMEM_LEASE_FREE)
		return NULL;
	return &slot->lease;
}
