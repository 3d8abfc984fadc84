/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Keys that take more than one addition, why an access was refused, and the copy between lists
 * of spans, piece by piece where a key is not one stretch.
 */

#include "rsoft_access.h"

/* Where byte offset of a key's pages is, and how many bytes go on from there. */
static uint8_t *
rsoft_page(const struct rsoft_key *key, uint64_t offset, uint64_t *run)
{
	uint64_t at = offset + key->map_offset;
	uint64_t in_page = at & ((UINT64_C(1) << key->log2_page_size) - 1);

	*run = (UINT64_C(1) << key->log2_page_size) - in_page;
	return (uint8_t *)(uintptr_t)key->pages[at >> key->log2_page_size] + in_page;
}

/* Where byte offset of a key is, and how many bytes go on from there. */
static uint8_t *
rsoft_key_run(const struct rsoft_key *key, uint64_t offset, uint64_t *run)
{
	switch (key->kind) {
	case RSOFT_KIND_PAGES:
		return rsoft_page(key, offset, run);
	default:
		*run = key->length - offset;
		return key->base + offset;
	}
}

bool
rsoft_access_slow(const struct rsoft_qp *qp, const struct rsoft_key *key, uint64_t offset,
		uint64_t length, struct rsoft_span *span)
{
	uint64_t run;

	if (unlikely(!rsoft_key_is_for(key, qp)))
		return false;
	span->ptr = rsoft_key_run(key, offset, &run);
	if (run < length || __atomic_load_n(&key->mr->counter, __ATOMIC_RELAXED) != NULL) {
		span->key = key;
		span->offset = offset;
	}
	return true;
}

void
rsoft_access_count(const struct rsoft_key *key)
{
	struct rmem_counter *counter = __atomic_load_n(&key->mr->counter, __ATOMIC_ACQUIRE);

	if (counter != NULL)
		__atomic_fetch_add(&counter->value, 1, __ATOMIC_RELEASE);
}

uint8_t *
rsoft_access_again(const struct rsoft_dev *dev, uint32_t pd, uint32_t lkey, uint64_t addr,
		uint64_t length)
{
	const struct rsoft_key *key = &dev->keys[lkey >> 8];
	uint64_t word = __atomic_load_n(&key->word, __ATOMIC_ACQUIRE);
	uint64_t offset, run;
	uint8_t *to;

	if (rsoft_word_rkey(word) != (lkey ^ RSOFT_LKEY_XOR) ||
			(rsoft_word_rights(word) & RSOFT_NEED_WRITE) != RSOFT_NEED_WRITE)
		return NULL;
	offset = addr - key->iova;
	if (key->pd != pd || offset > key->length || length > key->length - offset ||
			key->kind > RSOFT_KIND_PAGES)
		return NULL;
	to = rsoft_key_run(key, offset, &run);
	return run >= length ? to : NULL;
}

/* A place in a list of spans. */
struct rsoft_cursor {
	const struct rsoft_span *span;
	uint64_t done; /* of the span */
};

/* The next byte of a cursor, and how many go on from there; the list is not at its end. */
static uint8_t *
rsoft_cursor_run(struct rsoft_cursor *at, uint64_t *run)
{
	uint8_t *ptr;

	while (at->done == at->span->length) {
		at->span++;
		at->done = 0;
	}
	if (at->span->key == NULL) {
		*run = at->span->length - at->done;
		return at->span->ptr + at->done;
	}
	ptr = rsoft_key_run(at->span->key, at->span->offset + at->done, run);
	*run = RTE_MIN(*run, at->span->length - at->done);
	return ptr;
}

void
rsoft_copy_spans(const struct rsoft_span *to, const struct rsoft_span *from, uint64_t length)
{
	struct rsoft_cursor dst = {.span = to}, src = {.span = from};
	uint64_t n, src_run;
	const uint8_t *in;
	uint8_t *out;

	while (length != 0) {
		out = rsoft_cursor_run(&dst, &n);
		in = rsoft_cursor_run(&src, &src_run);
		n = RTE_MIN(RTE_MIN(n, src_run), length);
		memmove(out, in, n);
		dst.done += n;
		src.done += n;
		length -= n;
	}
}

enum rsoft_why
rsoft_access_why(const struct rsoft_qp *qp, uint32_t key_xor, uint32_t key_num, uint64_t addr,
		uint64_t length, uint32_t need)
{
	const struct rsoft_dev *dev = qp->dev;
	uint32_t index = key_num >> 8;
	const struct rsoft_key *key;
	uint64_t word, offset;

	if (index == 0 || index >= dev->nb_keys)
		return RSOFT_WHY_INDEX;
	key = &dev->keys[index];
	word = __atomic_load_n(&key->word, __ATOMIC_ACQUIRE);
	if (rsoft_word_rkey(word) != (key_num ^ key_xor))
		return RSOFT_WHY_TAG;
	if ((rsoft_word_rights(word) & RSOFT_VALID) == 0)
		return RSOFT_WHY_STATE;
	if (key->pd != qp->pd)
		return RSOFT_WHY_PD;
	if (!rsoft_key_is_for(key, qp))
		return RSOFT_WHY_QP;
	if ((rsoft_word_rights(word) & need) != need)
		return RSOFT_WHY_RIGHT;
	offset = addr - key->iova;
	if (offset > key->length || length > key->length - offset)
		return RSOFT_WHY_RANGE;
	return RSOFT_WHY_NONE;
}
