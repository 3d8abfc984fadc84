/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Bursts of WRITEs and ATOMIC_WRITEs; see rsoft_write_burst.h.
 *
 * The states of both QPs, and the keys cached by rsoft_key_cache.h, are loaded once per burst: a
 * burst is short, and a thread that changes them waits for its end.
 */

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "../mem/rsoft_list.h"
#include "rsoft_resp.h"
#include "rsoft_write_burst.h"

/* Maximum number of blocks of a list whose addresses are kept from the check to the copy. */
#define WRITE_MAX_PARTS 8

/* Result, in addition to enum rsoft_side, for a WRITE that rsoft_resp_write() must execute. */
#define WRITE_LEFT 4u

/* One side of a burst. */
struct write_side {
	struct rsoft_key_cache key;
	uint64_t below_lkey; /* indirect key: last key below it without RSOFT_SLOW */
	const struct rsoft_key *below;
};

/* A translation with RSOFT_PEEK, or a list of contiguous parts that cover the whole range. */
struct write_span {
	struct rsoft_span span;
	uint32_t nb_parts;
	struct {
		uint8_t *ptr;
		uint64_t length;
	} part[WRITE_MAX_PARTS];
};

/*
 * Check a range of several blocks within one round of a list, and keep their addresses. False: too
 * many blocks, or one is not contiguous or is refused.
 */
static __rte_always_inline bool
write_open_parts(struct write_side *side, const struct rsoft_qp *qp, uint64_t offset,
		uint64_t length, uint32_t need, struct write_span *to)
{
	const struct rsoft_list *list = side->key.key->list;
	const struct rsoft_list_entry *entry;
	uint64_t n, done, addr, at_key;
	struct rsoft_list_at at;
	uint32_t i, rights;

	rsoft_list_seek(list, offset + side->key.key->map_offset, &at);
	entry = &list->entry[at.entry];
	done = at.done;
	if (list->is_memory || length <= entry->length - done ||
			length > list->round - entry->start - done)
		return false;
	for (i = 0; length != 0; i++, length -= n, entry++, done = 0) {
		n = RTE_MIN(entry->length - done, length);
		if (unlikely(entry->lkey != side->below_lkey)) {
			side->below_lkey = RSOFT_KEY_CACHE_NONE;
			side->below = rsoft_access_find(
					qp, qp->dev->lkey_xor, entry->lkey, need, &rights);
			if (unlikely(side->below == NULL || (rights & RSOFT_SLOW) != 0))
				return false;
			side->below_lkey = entry->lkey;
		}
		addr = entry->addr + at.round * entry->step + done;
		at_key = addr - side->below->iova;
		if (unlikely(i == WRITE_MAX_PARTS || at_key > side->below->length ||
				    n > side->below->length - at_key))
			return false;
		to->part[i].ptr = side->below->base + at_key;
		to->part[i].length = n;
	}
	to->nb_parts = i;
	to->span.kind = RSOFT_SPAN_PIECES;
	to->span.key = side->key.key;
	to->span.offset = offset;
	return true;
}

/* Translate a range of the key of a side. */
static __rte_always_inline bool
write_open(struct write_side *side, const struct rsoft_qp *qp, uint64_t offset, uint64_t length,
		uint32_t need, struct write_span *to)
{
	const struct rsoft_key *key = side->key.key;

	to->nb_parts = 0;
	to->span.length = length;
	to->span.kind = RSOFT_SPAN_FLAT;
	to->span.ptr = (uint8_t *)((uintptr_t)key->base + offset);
	if (!side->key.is_slow)
		return true;
	if (key->kind == RSOFT_KIND_LIST && rsoft_key_is_for(key, qp) &&
			write_open_parts(side, qp, offset, length, rsoft_list_need(need), to))
		return true;
	return rsoft_access_slow(qp, key, offset, length, need | RSOFT_PEEK, &to->span);
}

static __rte_always_inline unsigned int
write_copy_parts(const struct write_span *parts, uint8_t *flat, bool is_to_parts)
{
	uint32_t i;

	for (i = 0; i < parts->nb_parts; i++) {
		uint8_t *ptr = parts->part[i].ptr;
		uint64_t n = parts->part[i].length;
		unsigned int side =
				rsoft_copy(is_to_parts ? ptr : flat, is_to_parts ? flat : ptr, n);

		if (unlikely(side != RSOFT_SIDE_NONE))
			return side;
		flat += n;
	}
	return RSOFT_SIDE_NONE;
}

/* Copy if one side is not contiguous or has a counter. */
static __rte_noinline unsigned int
write_wide(struct write_side *from, const struct rsoft_qp *qp, uint64_t from_offset,
		struct write_side *to, const struct rsoft_qp *peer, uint64_t to_offset,
		uint32_t length)
{
	struct write_span in, out;
	unsigned int side;

	if (!write_open(from, qp, from_offset, length, RSOFT_NEED_READ, &in) ||
			!write_open(to, peer, to_offset, length,
					RSOFT_VALID | RMEM_ACCESS_REMOTE_WRITE, &out))
		return WRITE_LEFT;
	if (out.nb_parts != 0 && in.span.kind == RSOFT_SPAN_FLAT)
		side = write_copy_parts(&out, in.span.ptr, true);
	else if (in.nb_parts != 0 && out.span.kind == RSOFT_SPAN_FLAT)
		side = write_copy_parts(&in, out.span.ptr, false);
	else
		side = rsoft_copy_all(&out.span, &in.span, length);
	if (likely(side == RSOFT_SIDE_NONE) && out.span.kind != RSOFT_SPAN_FLAT)
		rsoft_access_count(&out.span);
	return side;
}

/* Copy between contiguous memory, which may be on demand. */
static __rte_always_inline unsigned int
write_near(const struct rsoft_key_cache *from, const uint8_t *from_ptr,
		const struct rsoft_key_cache *to, uint8_t *to_ptr, uint32_t length)
{
	struct rsoft_guarded end;

	if (likely(!from->is_slow && !to->is_slow))
		return rsoft_copy(to_ptr, from_ptr, length);
	end = rsoft_guard_copy_fast(to_ptr, from_ptr, length);
	if (likely(end.side == RSOFT_SIDE_NONE))
		return RSOFT_SIDE_NONE;
	return rsoft_odp_copy_failed(end, to->odp, from->odp);
}

/* Whether the keys of both sides are valid for the range; returns the offset in each. */
static __rte_always_inline bool
write_check(struct write_side *from, const struct rsoft_qp *qp, uint32_t lkey_xor,
		struct write_side *to, const struct rsoft_qp *peer, const struct rmem_send_wr *wr,
		uint32_t length, uint64_t *from_offset, uint64_t *to_offset)
{
	const struct rmem_sge *sge = wr->sg_list;

	return likely(rsoft_key_cache_check(&from->key, qp, lkey_xor, sge->lkey, sge->addr, length,
				      RSOFT_NEED_READ, from_offset) &&
			rsoft_key_cache_check(&to->key, peer, 0, wr->rdma.rkey,
					wr->rdma.remote_addr, length,
					RSOFT_VALID | RMEM_ACCESS_REMOTE_WRITE, to_offset));
}

/* Copy a WRITE that passed write_check(); return an enum rsoft_side or WRITE_LEFT. */
static __rte_always_inline unsigned int
write_one(struct write_side *from, const struct rsoft_qp *qp, uint64_t from_offset,
		struct write_side *to, const struct rsoft_qp *peer, uint64_t to_offset,
		uint32_t length)
{
	uint8_t *from_ptr, *to_ptr;

	if (likely(rsoft_key_cache_near(
				   &from->key, from_offset, length, RSOFT_NEED_READ, &from_ptr) &&
			    rsoft_key_cache_near(&to->key, to_offset, length,
					    RMEM_ACCESS_REMOTE_WRITE, &to_ptr)))
		return write_near(&from->key, from_ptr, &to->key, to_ptr, length);
	return write_wide(from, qp, from_offset, to, peer, to_offset, length);
}

/*
 * The same for an ATOMIC_WRITE, whose word is stored at once. rsoft_resp_atomic_write() handles
 * on-demand pages, keys with other rules, and failures.
 */
static __rte_always_inline unsigned int
write_word(const struct write_side *from, uint64_t from_offset, const struct write_side *to,
		uint64_t to_offset, uint32_t length)
{
	const struct rsoft_key *key = to->key.key;
	uint64_t at = (uintptr_t)key->base + to_offset, remote = key->iova + to_offset;

	if (unlikely(length != sizeof(uint64_t) || from->key.is_slow || to->key.is_slow ||
			    (remote | at) % sizeof(uint64_t) != 0))
		return WRITE_LEFT;
	return likely(rsoft_guard_move_fast((uint64_t *)(uintptr_t)at,
			       (const uint8_t *)from->key.key->base + from_offset))
			? RSOFT_SIDE_NONE
			: WRITE_LEFT;
}

/* num_sge, opcode and flags of a request, which are checked at once. */
union write_head {
	struct {
		uint16_t num_sge;
		uint8_t opcode;
		uint8_t flags;
	} of;
	uint32_t word;
};

static_assert(offsetof(struct rmem_send_wr, opcode) == offsetof(struct rmem_send_wr, num_sge) + 2 &&
				offsetof(struct rmem_send_wr, flags) ==
						offsetof(struct rmem_send_wr, num_sge) + 3,
		"in the order of union write_head");

/* Whether a request has the opcode and num_sge of a head, and no special flag. */
static __rte_always_inline bool
write_is_simple(const struct rmem_send_wr *wr, union write_head want)
{
	const union write_head mask = {
			.of = {UINT16_MAX, UINT8_MAX,
					(uint8_t) ~(RMEM_SEND_SIGNALED | RMEM_SEND_FENCE |
							RMEM_SEND_SOLICITED)}};
	union write_head head;

	memcpy(&head, &wr->num_sge, sizeof(head));
	return (head.word & mask.word) == want.word;
}

/* is_word: these are ATOMIC_WRITEs; a constant, so that the loop has no test of it. */
static __rte_always_inline uint32_t
write_run(struct rsoft_batch *batch, const uint8_t *wrs, size_t stride, uint32_t n, int *status,
		const bool is_word)
{
	const struct rsoft_qp *qp = batch->qp;
	const struct rsoft_qp *peer = rsoft_resp_peek_peer(batch->qp);
	const union write_head want = {
			.of = {1, is_word ? RMEM_WR_ATOMIC_WRITE : RMEM_WR_RDMA_WRITE, 0}};
	const uint8_t always = qp->sig_all ? RMEM_SEND_SIGNALED : 0;
	const uint32_t done = batch->done, lkey_xor = qp->dev->lkey_xor;
	struct write_side from = {
			.key.num = RSOFT_KEY_CACHE_NONE, .below_lkey = RSOFT_KEY_CACHE_NONE};
	struct write_side to = from;
	unsigned int side = RSOFT_SIDE_NONE;
	uint64_t bytes = 0;
	uint32_t i = 0;

	if (unlikely(peer == NULL || !rsoft_resp_takes_writes(peer) || batch->is_counted))
		n = 0;
	for (; i < n; i++, wrs += stride) {
		const struct rmem_send_wr *wr = (const void *)wrs;
		uint64_t from_offset, to_offset;
		uint32_t length;

		if (unlikely(!write_is_simple(wr, want)))
			break;
		length = wr->sg_list->length;
		if (unlikely((uint64_t)length - 1 >= qp->max_msg_size))
			break; /* also if it is 0 */
		if (unlikely(!write_check(&from, qp, lkey_xor, &to, peer, wr, length, &from_offset,
				    &to_offset)))
			break;
		side = is_word ? write_word(&from, from_offset, &to, to_offset, length)
			       : write_one(&from, qp, from_offset, &to, peer, to_offset, length);
		if (unlikely(side != RSOFT_SIDE_NONE))
			break;
		bytes += length;
		if ((wr->flags | always) & RMEM_SEND_SIGNALED) {
			batch->done = done + i + 1;
			rsoft_batch_add_wc(batch, wr, RMEM_WC_SUCCESS, length);
		}
	}
	batch->done = done + i;
	batch->bytes += bytes;
	*status = side == WRITE_LEFT ? RMEM_WC_SUCCESS
				     : rsoft_copy_status(side, RSOFT_SIDE_FROM, &batch->vendor_err);
	return i;
}

/* Aligned to a cache line: by where its loop starts, WRITEs of 8 bytes take up to 10 % longer. */
__attribute__((aligned(RTE_CACHE_LINE_SIZE))) uint32_t
rsoft_write_burst(struct rsoft_batch *batch, const uint8_t *wrs, size_t stride, uint32_t n,
		int *status)
{
	if (likely(((const struct rmem_send_wr *)wrs)->opcode == RMEM_WR_RDMA_WRITE))
		return write_run(batch, wrs, stride, n, status, false);
	return write_run(batch, wrs, stride, n, status, true);
}
