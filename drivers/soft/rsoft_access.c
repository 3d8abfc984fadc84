/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Keys that take more than one addition, why an access was refused, and the copy between lists
 * of spans, piece by piece where a key is not one stretch.
 */

#include "rsoft_list.h"

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
	struct rsoft_list_at at;

	switch (key->kind) {
	case RSOFT_KIND_PAGES:
		return rsoft_page(key, offset, run);
	case RSOFT_KIND_LIST:
		rsoft_list_seek(key->list, offset + key->map_offset, &at);
		return rsoft_list_run(&at, run);
	default:
		*run = key->length - offset;
		return key->base + offset;
	}
}

uint8_t *
rsoft_list_run(const struct rsoft_list_at *at, uint64_t *run)
{
	const struct rsoft_list_entry *entry = &at->list->entry[at->entry];
	uint64_t addr = rsoft_list_addr(at);
	const struct rsoft_key *key;
	uint8_t *ptr;

	*run = entry->length - at->done;
	if (at->list->is_memory)
		return (uint8_t *)(uintptr_t)addr;
	key = &at->list->keys[entry->lkey >> 8];
	if (likely(key->kind == RSOFT_KIND_BASE)) {
		ptr = key->base + (addr - key->iova);
	} else {
		uint64_t below;

		ptr = rsoft_key_run(key, addr - key->iova, &below);
		*run = RTE_MIN(*run, below);
	}
	return ptr;
}

bool
rsoft_access_slow(const struct rsoft_qp *qp, const struct rsoft_key *key, uint64_t offset,
		uint64_t length, uint32_t need, uint32_t depth, struct rsoft_span *span)
{
	uint64_t run;

	if (unlikely(!rsoft_key_is_for(key, qp)))
		return false;
	if (key->kind == RSOFT_KIND_LIST)
		return rsoft_list_open(qp, key, offset, length, need, depth, span);
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
	uint64_t done;           /* of the span */
	struct rsoft_list_at at; /* in its key's list; at.list is NULL until sought */
};

/* The next byte of a cursor, and how many go on from there; the list is not at its end. */
static inline uint8_t *
rsoft_cursor_run(struct rsoft_cursor *cur, uint64_t *run)
{
	const struct rsoft_span *span;
	uint64_t left;
	uint8_t *ptr;

	while (cur->done == cur->span->length) {
		cur->span++;
		cur->done = 0;
		cur->at.list = NULL;
	}
	span = cur->span;
	left = span->length - cur->done;
	if (span->key == NULL) {
		*run = left;
		return span->ptr + cur->done;
	}
	if (span->key->kind == RSOFT_KIND_LIST) {
		if (cur->at.list == NULL)
			rsoft_list_seek(span->key->list,
					span->offset + cur->done + span->key->map_offset, &cur->at);
		ptr = rsoft_list_run(&cur->at, run);
	} else {
		ptr = rsoft_key_run(span->key, span->offset + cur->done, run);
	}
	*run = RTE_MIN(*run, left);
	return ptr;
}

static inline void
rsoft_cursor_move(struct rsoft_cursor *cur, uint64_t n)
{
	cur->done += n;
	if (cur->at.list != NULL)
		rsoft_list_move(&cur->at, n);
}

/*
 * Copy between a list and one stretch. Entries that follow each other are often of one key, so
 * what was found of it is kept.
 */
static __rte_always_inline void
rsoft_copy_list(const struct rsoft_span *span, uint8_t *flat, uint64_t length, bool is_to_list)
{
	const struct rsoft_list *list = span->key->list;
	struct rsoft_list_at at;
	uintptr_t to_memory = 0; /* from an address of the key that lkey names */
	bool is_one_stretch = true;
	uint32_t lkey = 0;

	rsoft_list_seek(list, span->offset + span->key->map_offset, &at);
	while (length != 0) {
		const struct rsoft_list_entry *entry = &list->entry[at.entry];
		uint64_t run, n = RTE_MIN(entry->length - at.done, length);
		uint8_t *ptr;

		if (entry->lkey != lkey) {
			const struct rsoft_key *key = &list->keys[entry->lkey >> 8];

			lkey = entry->lkey;
			is_one_stretch = key->kind == RSOFT_KIND_BASE;
			to_memory = (uintptr_t)key->base - key->iova;
		}
		if (likely(is_one_stretch)) {
			ptr = (uint8_t *)(to_memory + rsoft_list_addr(&at));
		} else {
			ptr = rsoft_list_run(&at, &run);
			n = RTE_MIN(n, run);
		}
		rsoft_copy(is_to_list ? ptr : flat, is_to_list ? flat : ptr, n);
		flat += n;
		length -= n;
		rsoft_list_move(&at, n);
	}
}

/* Whether a span is a list's, and holds length bytes. */
static inline bool
rsoft_span_is_list(const struct rsoft_span *span, uint64_t length)
{
	return span->length >= length && span->key != NULL && span->key->kind == RSOFT_KIND_LIST;
}

static inline bool
rsoft_span_is_flat(const struct rsoft_span *span, uint64_t length)
{
	return span->length >= length && span->key == NULL;
}

void
rsoft_copy_spans(const struct rsoft_span *to, const struct rsoft_span *from, uint64_t length)
{
	struct rsoft_cursor dst = {.span = to}, src = {.span = from};
	uint64_t n, src_run;
	const uint8_t *in;
	uint8_t *out;

	if (rsoft_span_is_list(to, length) && rsoft_span_is_flat(from, length)) {
		rsoft_copy_list(to, from->ptr, length, true);
		return;
	}
	if (rsoft_span_is_list(from, length) && rsoft_span_is_flat(to, length)) {
		rsoft_copy_list(from, to->ptr, length, false);
		return;
	}
	while (length != 0) {
		out = rsoft_cursor_run(&dst, &n);
		in = rsoft_cursor_run(&src, &src_run);
		n = RTE_MIN(RTE_MIN(n, src_run), length);
		rsoft_copy(out, in, n);
		rsoft_cursor_move(&dst, n);
		rsoft_cursor_move(&src, n);
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
	struct rsoft_span span = {.length = length};
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
	if ((rsoft_word_rights(word) & RSOFT_SLOW) &&
			!rsoft_access_slow(qp, key, offset, length, need,
					(uint32_t)dev->args.max_mkey_depth, &span))
		return RSOFT_WHY_BELOW;
	return RSOFT_WHY_NONE;
}
