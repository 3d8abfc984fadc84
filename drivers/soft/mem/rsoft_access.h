/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Translation of a key, an address, a length and rights into memory, or a refusal, for all kinds of
 * keys; and copies between the results. No other code translates keys.
 *
 * Inside: keys, MRs, windows, on-demand paging, pins, grace periods, grants and the guard.
 * Callers: queue, wire, wire/port and drivers/soft; accesses to memory begin in this header.
 * Not known here: queues of requests, packets and ports.
 *
 * Functions may only be called between rsoft_grace_enter() and rsoft_grace_leave().
 */

#ifndef RSOFT_ACCESS_H
#define RSOFT_ACCESS_H

#include "rsoft_key_hash.h"
#include "rsoft_odp.h"

enum rsoft_span_kind {
	RSOFT_SPAN_FLAT = 0, /* contiguous; also memory without a key */
	RSOFT_SPAN_COUNTED,  /* contiguous, and modifications are counted */
	RSOFT_SPAN_ODP,      /* contiguous, on demand; modifications may be counted */
	RSOFT_SPAN_PIECES,   /* not contiguous; modifications may be counted */
};

/* The result of a translation: length bytes. */
struct rsoft_span {
	uint8_t *ptr; /* first byte, unless PIECES */
	uint64_t length;
	uint32_t kind;               /* enum rsoft_span_kind */
	const struct rsoft_key *key; /* unless FLAT */
	union {
		struct rsoft_odp *odp; /* ODP: page table */
		uint64_t offset;       /* PIECES: offset of the first byte in the key */
	};
};

/* First cause of a refusal; arguments as of rsoft_access(). */
enum rmem_vendor_err rsoft_access_vendor_err(const struct rsoft_qp *qp, uint32_t key_xor,
		uint32_t key_num, uint64_t addr, uint64_t length, uint32_t need);

/*
 * The part of rsoft_access() for a key with RSOFT_SLOW, after the checks of rights, PD and range:
 * check the rules of its kind and find the addresses. span has only its length.
 */
bool rsoft_access_slow(const struct rsoft_qp *qp, const struct rsoft_key *key, uint64_t offset,
		uint64_t length, uint32_t need, struct rsoft_span *span);

/* Count a modification of a span, which is not FLAT, by a request of a peer, if its MR has a
 * counter. */
static inline void
rsoft_access_count(const struct rsoft_span *span)
{
	struct rmem_counter *counter = __atomic_load_n(&span->key->mr->counter, __ATOMIC_ACQUIRE);

	if (unlikely(counter != NULL))
		__atomic_fetch_add(&counter->value, 1, __ATOMIC_RELEASE);
}

/* The part of rsoft_copy_all() for spans that are not both FLAT and long enough. */
unsigned int rsoft_copy_spans(
		const struct rsoft_span *to, const struct rsoft_span *from, uint64_t length);

/* Find a key of the QP's PD with these rights, or NULL. *rights are the rights in its word. */
static __rte_always_inline const struct rsoft_key *
rsoft_access_find(const struct rsoft_qp *qp, uint32_t key_xor, uint32_t key_num, uint32_t need,
		uint32_t *rights)
{
	const struct rsoft_dev *dev = qp->dev;
	const uint64_t mask = rsoft_key_word(UINT32_MAX, need & ~RSOFT_PEEK);
	const uint64_t want = rsoft_key_word(key_num ^ key_xor, need);
	const struct rsoft_key *key = rsoft_key_at(dev, key_num);
	/* The fields of a valid key do not change while this lcore is inside. */
	uint64_t word = __atomic_load_n(&key->word, __ATOMIC_ACQUIRE);

	if (unlikely(((word ^ want) & mask) != 0)) {
		key = rsoft_key_hash_find(dev, key_num ^ key_xor);
		if (key == NULL)
			return NULL;
		word = __atomic_load_n(&key->word, __ATOMIC_ACQUIRE);
		if (((word ^ want) & mask) != 0)
			return NULL;
	}
	*rights = rsoft_word_rights(word);
	return likely(key->pd == qp->pd) ? key : NULL;
}

/*
 * Find the key that, by its word, PD and range, is valid for [addr, addr + length) as for
 * rsoft_access(), and the offset of the first byte; or NULL. *rights are the rights in its word.
 */
static __rte_always_inline const struct rsoft_key *
rsoft_access_key(const struct rsoft_qp *qp, uint32_t key_xor, uint32_t key_num, uint64_t addr,
		uint64_t length, uint32_t need, uint64_t *offset, uint32_t *rights)
{
	const struct rsoft_key *key = rsoft_access_find(qp, key_xor, key_num, need, rights);

	if (unlikely(key == NULL))
		return NULL;
	*offset = addr - key->iova;
	if (unlikely(*offset > key->length || length > key->length - *offset))
		return NULL;
	return key;
}

/* Table of a key with RSOFT_SLOW if copies need only that; else NULL. */
struct rsoft_odp *rsoft_access_table(const struct rsoft_key *key);

/* Translate to pages on demand. The base may be NULL for an implicit MR. */
static __rte_always_inline bool
rsoft_access_odp(const struct rsoft_key *key, uint64_t offset, uint64_t length, uint32_t need,
		struct rsoft_span *span)
{
	span->ptr = (uint8_t *)((uintptr_t)key->base + offset);
	span->kind = RSOFT_SPAN_ODP;
	span->key = key;
	span->odp = key->odp;
	return rsoft_odp_open(key->odp, span->ptr, length, need);
}

/*
 * Translate [addr, addr + length) with a key, for a request that the QP executes or answers. need
 * is RSOFT_NEED_* for an lkey, and RSOFT_VALID with RMEM_ACCESS_* bits for an rkey; key_xor is
 * rsoft_dev::lkey_xor for an lkey, 0 for an rkey; length is not 0. Return false if the key is not
 * valid for the access or, with RSOFT_PEEK, an on-demand page is not in the table.
 */
static __rte_always_inline bool
rsoft_access(const struct rsoft_qp *qp, uint32_t key_xor, uint32_t key_num, uint64_t addr,
		uint64_t length, uint32_t need, struct rsoft_span *span)
{
	const struct rsoft_key *key;
	uint64_t offset;
	uint32_t rights;

	key = rsoft_access_key(qp, key_xor, key_num, addr, length, need, &offset, &rights);
	if (unlikely(key == NULL))
		return false;
	span->length = length;
	span->kind = RSOFT_SPAN_FLAT;
	if (unlikely(rights & RSOFT_SLOW))
		return rsoft_access_slow(qp, key, offset, length, need, span);
	span->ptr = key->base + offset;
	return true;
}

/*
 * Copy between ranges that may overlap. Return an enum rsoft_side: the side that is not mapped, if
 * the handler of rsoft_guard.h is installed.
 */
static __rte_always_inline unsigned int
rsoft_copy(uint8_t *to, const uint8_t *from, uint64_t length)
{
	rsoft_guard_announce(to, from, length);
	return (unsigned int)rsoft_guard_copy_fast(to, from, length).side;
}

/* Whether a span is contiguous: memory of a plain MR, or on-demand pages. */
static __rte_always_inline bool
rsoft_span_is_near(const struct rsoft_span *span, uint64_t length)
{
	return span->length >= length && span->kind != RSOFT_SPAN_PIECES;
}

static __rte_always_inline struct rsoft_odp *
rsoft_span_odp(const struct rsoft_span *span)
{
	return span->kind == RSOFT_SPAN_ODP ? span->odp : NULL;
}

/* Copy between spans that are rsoft_span_is_near(). */
static __rte_always_inline unsigned int
rsoft_copy_near(const struct rsoft_span *to, const struct rsoft_span *from, uint64_t length)
{
	struct rsoft_odp *to_odp = rsoft_span_odp(to), *from_odp = rsoft_span_odp(from);

	if (to_odp == NULL && from_odp == NULL)
		return rsoft_copy(to->ptr, from->ptr, length);
	return rsoft_odp_copy(to_odp, to->ptr, from_odp, from->ptr, length);
}

/*
 * Copy length bytes between two lists of nb spans, which hold at least as many. Return an enum
 * rsoft_side: memory is not mapped, or on-demand pages were evicted since the check. A part of the
 * bytes may then have been copied.
 */
static __rte_always_inline unsigned int
rsoft_copy_all(const struct rsoft_span *to, const struct rsoft_span *from, uint64_t length)
{
	if (likely(to->kind == RSOFT_SPAN_FLAT && from->kind == RSOFT_SPAN_FLAT &&
			    to->length >= length && from->length >= length))
		return rsoft_copy(to->ptr, from->ptr, length);
	return rsoft_copy_spans(to, from, length);
}

/* Status of a request whose copy failed; local is the side of the requester. */
static inline int
rsoft_copy_status(unsigned int side, unsigned int local, uint32_t *vendor_err)
{
	if (likely(side == RSOFT_SIDE_NONE))
		return RMEM_WC_SUCCESS;
	*vendor_err = RMEM_VENDOR_ERR_PAGE_FAULT;
	return side == local ? RMEM_WC_LOC_PROT_ERR : RMEM_WC_REM_ACCESS_ERR;
}

/* Sum of the lengths of SGEs; stops at `enough`. */
static __rte_always_inline uint64_t
rsoft_sges_length(const struct rmem_sge *sge, uint32_t num_sge, uint64_t enough)
{
	uint64_t length = 0;
	uint32_t i;

	for (i = 0; i < num_sge && length < enough; i++)
		length += sge[i].length;
	return length;
}

/*
 * Translate the SGEs of a list, up to length bytes. Return false if an lkey is not valid, with the
 * cause in *why. *total is the number of bytes, at most length. spans has RSOFT_MAX_SGE elements;
 * an empty list gives one empty span.
 */
static __rte_always_inline bool
rsoft_access_sges(const struct rsoft_qp *qp, const struct rmem_sge *sge, uint32_t num_sge,
		uint32_t need, uint64_t length, struct rsoft_span *spans, uint64_t *total,
		uint32_t *vendor_err)
{
	uint64_t left = length;
	uint32_t i, n = 0;

	spans[0].length = 0;
	spans[0].kind = RSOFT_SPAN_FLAT;
	for (i = 0; i < num_sge && left != 0; i++) {
		uint64_t len = RTE_MIN((uint64_t)sge[i].length, left);

		if (unlikely(len == 0))
			continue;
		if (unlikely(!rsoft_access(qp, qp->dev->lkey_xor, sge[i].lkey, sge[i].addr, len,
				    need, &spans[n]))) {
			*vendor_err = rsoft_access_vendor_err(
					qp, qp->dev->lkey_xor, sge[i].lkey, sge[i].addr, len, need);
			return false;
		}
		n++;
		left -= len;
	}
	*total = length - left;
	return true;
}

#endif /* RSOFT_ACCESS_H */
