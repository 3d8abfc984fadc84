/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Keys of each backend: allocation, binding and release; tags and quarantine.
 *
 * A fast-register MR is bound to pages; a window is bound to the MR of the buffer; an indirect key
 * uses the lkey of that MR.
 */

#include <string.h>

#include "rmem_lease_priv.h"
#include "rmem_lease_trace_priv.h"

/* Number of keys created at once on demand. */
#define LEASE_MAKE 32u

static int
make_fast_reg(struct rmem_lease_ctx *ctx, struct lease_slot *slot)
{
	struct rmem_fast_reg_page_list *list;
	int ret;

	ret = rmem_fast_reg_page_list_alloc(ctx->dev, ctx->max_page_list_len, &list);
	if (ret != 0)
		return ret;
	ret = rmem_fast_reg_mr_alloc(ctx->qp->pd, ctx->max_page_list_len, &slot->mr);
	if (ret != 0) {
		rmem_fast_reg_page_list_free(list);
		return ret;
	}
	slot->list = list;
	LEASE_SET(slot->lease.rkey, slot->mr->rkey);
	return 0;
}

static int
release_fast_reg(struct lease_slot *slot)
{
	int ret = rmem_mr_dereg(slot->mr);

	if (ret != 0)
		return ret;
	slot->mr = NULL; /* a repeated release must not deregister it again */
	ret = rmem_fast_reg_page_list_free(slot->list);
	return ret != 0 ? -EIO : 0;
}

/* IBTA C10-74: a right of the peer to modify needs LOCAL_WRITE. */
static inline uint32_t
with_local_write(uint32_t access)
{
	return (access & LEASE_MODIFY) != 0 ? access | RMEM_ACCESS_LOCAL_WRITE : access;
}

/*
 * Fill requests by a function that fills one, which is inlined: so what the requests of a burst
 * have in common is loaded once.
 */
static __rte_always_inline void
fill_all(struct rmem_lease_ctx *ctx, const uint32_t *number, uint32_t nb, struct rmem_send_wr *wr,
		void (*fill)(uint64_t page_size, const struct lease_slot *slot,
				struct rmem_send_wr *wr))
{
	const uint64_t wr_id = (uint64_t)ctx->wr_tag << 32;
	const uint64_t page_size = UINT64_C(1) << ctx->log2_page_size;
	const uint32_t mask = ctx->ops_mask;
	struct lease_slot *const slots = ctx->slots;
	uint32_t *const ops = ctx->ops;
	uint32_t i, place = ctx->ops_tail;

	for (i = 0; i < nb; i++, place++) {
		const struct lease_slot *slot = &slots[number[i]];

		wr[i].wr_id = wr_id | place;
		wr[i].flags = 0;
		fill(page_size, slot, &wr[i]);
		ops[place & mask] = lease_op(slot, false);
	}
}

/* Add the pages after the first, up to the size of all; return their number. */
static __rte_noinline uint16_t
add_pages(struct rmem_fast_reg_page_list *list, uint64_t page_size, uint64_t size)
{
	uint16_t nb;

	for (nb = 1; nb * page_size < size; nb++)
		list->page_list[nb] = list->page_list[0] + nb * page_size;
	return nb;
}

static __rte_always_inline void
fill_one_fast_reg(uint64_t page_size, const struct lease_slot *slot, struct rmem_send_wr *wr)
{
	struct rmem_fast_reg_page_list *list = slot->list;
	uint64_t addr = (uintptr_t)slot->lease.addr;
	uint64_t offset = addr & (page_size - 1);

	wr->reg_mr.page_list_len = 1;
	list->page_list[0] = addr - offset;
	if (unlikely(offset + slot->lease.length > page_size))
		wr->reg_mr.page_list_len = add_pages(list, page_size, offset + slot->lease.length);
	wr->reg_mr.mr = slot->mr;
	wr->reg_mr.page_list = list;
	wr->reg_mr.iova = slot->lease.remote_addr;
	wr->reg_mr.length = slot->lease.length;
	wr->reg_mr.first_byte_offset = (uint32_t)offset;
	wr->reg_mr.access = with_local_write(slot->lease.access);
	wr->reg_mr.key_tag = (uint8_t)slot->lease.rkey;
}

static void
fill_fast_reg(struct rmem_lease_ctx *ctx, const uint32_t *number, uint32_t nb,
		struct rmem_send_wr *wr)
{
	fill_all(ctx, number, nb, wr, fill_one_fast_reg);
}

static int
make_mw(struct rmem_lease_ctx *ctx, struct lease_slot *slot)
{
	int ret = rmem_mw_alloc(ctx->qp->pd, RMEM_MW_TYPE_2, &slot->mw);

	if (ret == 0)
		LEASE_SET(slot->lease.rkey, slot->mw->rkey);
	return ret;
}

static int
release_mw(struct lease_slot *slot)
{
	return rmem_mw_dealloc(slot->mw);
}

static __rte_always_inline void
fill_one_mw(uint64_t page_size, const struct lease_slot *slot, struct rmem_send_wr *wr)
{
	RTE_SET_USED(page_size);
	wr->bind_mw.mw = slot->mw;
	wr->bind_mw.mr = slot->hold->mr;
	wr->bind_mw.addr = slot->lease.remote_addr;
	wr->bind_mw.length = slot->lease.length;
	wr->bind_mw.access = slot->lease.access;
	wr->bind_mw.key_tag = (uint8_t)slot->lease.rkey;
}

static void
fill_mw(struct rmem_lease_ctx *ctx, const uint32_t *number, uint32_t nb, struct rmem_send_wr *wr)
{
	fill_all(ctx, number, nb, wr, fill_one_mw);
}

static int
make_umr(struct rmem_lease_ctx *ctx, struct lease_slot *slot)
{
	int ret = rmem_mkey_alloc(ctx->qp->pd, 1, &slot->mr);

	if (ret != 0)
		return ret;
	slot->entry = &ctx->entries[lease_number(ctx, slot)];
	LEASE_SET(slot->lease.rkey, slot->mr->rkey);
	return 0;
}

static int
release_umr(struct lease_slot *slot)
{
	return rmem_mr_dereg(slot->mr);
}

static __rte_always_inline void
fill_one_umr(uint64_t page_size, const struct lease_slot *slot, struct rmem_send_wr *wr)
{
	RTE_SET_USED(page_size);
	slot->entry->addr = (uintptr_t)slot->lease.addr + slot->hold->to_iova;
	slot->entry->length = slot->lease.length;
	slot->entry->lkey = slot->lease.mr->lkey;
	wr->umr.mr = slot->mr;
	wr->umr.entries = slot->entry;
	wr->umr.iova = slot->lease.remote_addr;
	wr->umr.nb_entries = 1;
	wr->umr.repeat_count = 1;
	wr->umr.access = with_local_write(slot->lease.access);
	wr->umr.key_tag = (uint8_t)slot->lease.rkey;
}

static void
fill_umr(struct rmem_lease_ctx *ctx, const uint32_t *number, uint32_t nb, struct rmem_send_wr *wr)
{
	fill_all(ctx, number, nb, wr, fill_one_umr);
}

/* By enum rmem_lease_backend - 1; AUTO selects the first that the device supports. */
static const struct lease_ops lease_backends[] = {
		{"fast-register MRs", RMEM_DEV_CAPA_FAST_REG | RMEM_DEV_CAPA_LOCAL_INV,
				RMEM_WR_REG_MR, make_fast_reg, release_fast_reg, fill_fast_reg},
		{"windows of type 2B", RMEM_DEV_CAPA_MW_TYPE_2B | RMEM_DEV_CAPA_LOCAL_INV,
				RMEM_WR_BIND_MW, make_mw, release_mw, fill_mw},
		{"indirect keys", RMEM_DEV_CAPA_UMR | RMEM_DEV_CAPA_LOCAL_INV, RMEM_WR_UMR,
				make_umr, release_umr, fill_umr},
};

/* AUTO prefers windows to zero-based keys: they are bound to their QP, and keep the addresses. */
const struct lease_ops *
rmem_lease_ops_find(uint32_t backend, uint64_t capa)
{
	const struct lease_ops *mw = &lease_backends[RMEM_LEASE_MW - 1];
	uint32_t i;

	if (backend == RMEM_LEASE_AUTO && (capa & RMEM_DEV_CAPA_REG_ZERO_BASED) != 0 &&
			(capa & mw->capa) == mw->capa)
		return mw;

	for (i = 0; i < RTE_DIM(lease_backends); i++) {
		const struct lease_ops *ops = &lease_backends[i];

		if ((backend == RMEM_LEASE_AUTO || backend == i + 1) &&
				(capa & ops->capa) == ops->capa)
			return ops;
	}
	return NULL;
}

const struct lease_ops *
rmem_lease_ops_of(uint32_t backend)
{
	return backend - 1 < RTE_DIM(lease_backends) ? &lease_backends[backend - 1] : NULL;
}

uint32_t
rmem_lease_ops_number(const struct lease_ops *ops)
{
	return (uint32_t)(ops - lease_backends) + 1;
}

static uint32_t
map_hash(uint32_t rkey)
{
	return (rkey >> 8) * UINT32_C(0x9e3779b1) >> 7;
}

static void
map_insert(struct rmem_lease_ctx *ctx, uint32_t number)
{
	uint32_t at = map_hash(ctx->slots[number].lease.rkey);

	while (ctx->map[at & ctx->map_mask] != 0)
		at++;
	ctx->map[at & ctx->map_mask] = number + 1;
	ctx->map_used++;
}

/*
 * Add a key. Entries of released keys stay until the map is three quarters full, and then rebuilt.
 */
static void
map_add(struct rmem_lease_ctx *ctx, const struct lease_slot *slot)
{
	uint32_t i;

	if (ctx->map_used < ctx->map_mask / 4 * 3) {
		map_insert(ctx, lease_number(ctx, slot));
		return;
	}
	memset(ctx->map, 0, (ctx->map_mask + UINT64_C(1)) * sizeof(*ctx->map));
	ctx->map_used = 0;
	for (i = 0; i < ctx->nb_slots; i++) {
		if (ctx->slots[i].has_key)
			map_insert(ctx, i);
	}
}

struct lease_slot *
rmem_lease_map_find(const struct rmem_lease_ctx *ctx, uint32_t rkey)
{
	uint32_t number, at;

	for (at = map_hash(rkey); (number = ctx->map[at & ctx->map_mask]) != 0; at++) {
		struct lease_slot *slot = &ctx->slots[number - 1];

		if (slot->has_key && slot->lease.rkey == rkey)
			return slot;
	}
	return NULL;
}

/* Create the key of a slot. */
static int
make_one(struct rmem_lease_ctx *ctx, struct lease_slot *slot)
{
	int ret = ctx->backend->make(ctx, slot);

	if (ret != 0)
		return ret;
	slot->has_key = true;
	slot->nb_tags = 0;
	map_add(ctx, slot);
	LEASE_COUNT(ctx->stats.keys_allocated, 1);
	LEASE_COUNT(ctx->stats.nb_keys, 1);
	if (ctx->stats.peak_keys < ctx->stats.nb_keys)
		LEASE_SET(ctx->stats.peak_keys, ctx->stats.nb_keys);
	return 0;
}

int
rmem_lease_make(struct rmem_lease_ctx *ctx, uint32_t nb)
{
	int ret;

	while (nb-- > 0) {
		if (ctx->nb_empty == 0)
			return -ENOSPC;
		ret = make_one(ctx, &ctx->slots[ctx->empty[ctx->nb_empty - 1]]);
		if (ret != 0)
			return ret;
		ctx->free[ctx->nb_free++] = ctx->empty[--ctx->nb_empty];
	}
	return 0;
}

int
rmem_lease_refill(struct rmem_lease_ctx *ctx)
{
	struct lease_fifo *quarantined = &ctx->quarantined;
	int ret;

	if (!lease_fifo_is_empty(quarantined)) {
		uint32_t number = quarantined->ring[quarantined->head & quarantined->mask];
		struct lease_slot *slot = &ctx->slots[number];

		if (rte_rdtsc() - slot->quarantined_at >= ctx->quarantine) {
			quarantined->head++;
			slot->nb_tags = 0;
			ctx->free[ctx->nb_free++] = number;
			return 0;
		}
	}
	ret = rmem_lease_make(ctx, RTE_MIN(LEASE_MAKE, RTE_MAX(ctx->nb_empty, 1u)));
	if (ctx->nb_free > 0)
		return 0;
	if (!lease_fifo_is_empty(quarantined))
		LEASE_COUNT(ctx->stats.quarantine_refused, 1);
	return ret;
}

int
rmem_lease_release(struct rmem_lease_ctx *ctx, struct lease_slot *slot)
{
	int ret = ctx->backend->release(slot);

	if (ret == -EBUSY)
		return ret;
	if (ret != 0) {
		LEASE_LOG(ERR, "key of rkey 0x%08x: cannot be released: error %d", slot->lease.rkey,
				-ret);
		slot->is_stuck = true;
		return -EIO;
	}
	slot->is_stuck = false;
	slot->has_key = false;
	LEASE_COUNT(ctx->stats.nb_keys, -1);
	return 0;
}

void
rmem_lease_prune_lists(struct rmem_lease_ctx *ctx)
{
	uint32_t i, number, nb = ctx->nb_free, left = ctx->quarantined.tail - ctx->quarantined.head;

	ctx->nb_free = 0;
	for (i = 0; i < nb; i++) {
		number = ctx->free[i];
		if (!ctx->slots[number].has_key)
			ctx->empty[ctx->nb_empty++] = number;
		else if (!ctx->slots[number].is_stuck)
			ctx->free[ctx->nb_free++] = number;
	}
	for (; left > 0; left--) {
		number = lease_fifo_get(&ctx->quarantined);
		if (!ctx->slots[number].has_key)
			ctx->empty[ctx->nb_empty++] = number;
		else if (!ctx->slots[number].is_stuck)
			lease_fifo_put(&ctx->quarantined, number);
	}
	ctx->low_free = RTE_MIN(ctx->low_free, ctx->nb_free);
	lease_gauge(ctx);
}

int
rmem_lease_replace(struct rmem_lease_ctx *ctx, struct lease_slot *slot)
{
	int ret = rmem_lease_release(ctx, slot);

	if (ret != 0)
		return ret;
	LEASE_COUNT(ctx->stats.keys_replaced, 1);
	ret = make_one(ctx, slot);
	if (ret != 0)
		LEASE_LOG(WARNING,
				"context: key not replaced: error %d (the context has one key less)",
				-ret);
	return 0;
}

/* Return a slot that can't be granted next: its key is stuck, missing, or out of uses. */
static void
put_aside(struct rmem_lease_ctx *ctx, struct lease_slot *slot)
{
	uint32_t number = lease_number(ctx, slot);

	if (slot->is_stuck)
		return;
	if (!slot->has_key) {
		ctx->empty[ctx->nb_empty++] = number;
		return;
	}
	slot->quarantined_at = rte_rdtsc();
	lease_fifo_put(&ctx->quarantined, number);
	LEASE_COUNT(ctx->stats.quarantines, 1);
	rmem_lease_trace_quarantine(ctx, slot->lease.rkey, ctx->stats.quarantines);
}

void
rmem_lease_put(struct rmem_lease_ctx *ctx, struct lease_slot *slot)
{
	LEASE_SET_STATE(&slot->lease, RMEM_LEASE_FREE);
	if (likely(lease_is_reusable(slot)))
		ctx->free[ctx->nb_free++] = lease_number(ctx, slot);
	else
		put_aside(ctx, slot);
	lease_share(ctx, slot->hold, -1);
}
