/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Why an access was refused, and the copy between lists of spans, page by page where a key is paged. */

#include "rsoft_access.h"

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
	if (at->span->paged == NULL) {
		*run = at->span->length - at->done;
		return at->span->ptr + at->done;
	}
	ptr = rsoft_page(at->span->paged, at->span->offset + at->done, run);
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
rsoft_access_why(const struct rsoft_dev *dev, uint32_t pd, uint32_t key_xor, uint32_t key_num,
		uint64_t addr, uint64_t length, uint32_t need)
{
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
	if (key->pd != pd)
		return RSOFT_WHY_PD;
	if ((rsoft_word_rights(word) & need) != need)
		return RSOFT_WHY_RIGHT;
	offset = addr - key->iova;
	if (offset > key->length || length > key->length - offset)
		return RSOFT_WHY_RANGE;
	return RSOFT_WHY_NONE;
}
