/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Accesses with keys that are not contiguous, causes of refused accesses, and the copy between
 * lists of spans, piece by piece.
 */

#include "rsoft_access.h"
#include "rsoft_list.h"
#include "rsoft_odp.h"

/* A contiguous range of bytes. */
struct rsoft_piece {
	uint8_t *ptr;
	uint64_t length;
	struct rsoft_odp *odp; /* table of their pages, or NULL */
	bool is_null;          /* of a null MR: writes are discarded */
};

/* Contiguous bytes at a position of a list that was checked in this grace section. */
static void list_piece(const struct rsoft_list_at *at, struct rsoft_piece *piece);

/* Contiguous bytes at an offset of a KIND_PAGES key. */
static void
page_piece(const struct rsoft_key *key, uint64_t offset, struct rsoft_piece *piece)
{
	uint64_t at = offset + key->map_offset;
	uint64_t in_page = at & ((UINT64_C(1) << key->log2_page_size) - 1);

	piece->ptr = (uint8_t *)(uintptr_t)key->pages[at >> key->log2_page_size] + in_page;
	piece->length = (UINT64_C(1) << key->log2_page_size) - in_page;
	piece->odp = key->mr->odp; /* rsoft_odp_raw or NULL */
	piece->is_null = false;
}

/* Contiguous bytes at an offset of a key. */
static void
key_piece(const struct rsoft_key *key, uint64_t offset, struct rsoft_piece *piece)
{
	struct rsoft_list_at at;

	switch (key->kind) {
	case RSOFT_KIND_PAGES:
		page_piece(key, offset, piece);
		break;
	case RSOFT_KIND_LIST:
		rsoft_list_seek(key->list, offset + key->map_offset, &at);
		list_piece(&at, piece);
		break;
	default:
		piece->ptr = (uint8_t *)((uintptr_t)key->base + offset);
		piece->length = key->length - offset;
		piece->odp = key->kind == RSOFT_KIND_ODP ? key->odp : NULL;
		piece->is_null = false;
		break;
	}
}

static void
list_piece(const struct rsoft_list_at *at, struct rsoft_piece *piece)
{
	const struct rsoft_list_entry *entry = &at->list->entry[at->entry];
	uint64_t left = entry->length - at->done;
	uint64_t addr = rsoft_list_addr(at);
	const struct rsoft_key *key;

	piece->length = left;
	piece->odp = NULL;
	piece->is_null = at->list->is_null;
	if (at->list->is_memory) {
		piece->ptr = (uint8_t *)(uintptr_t)addr;
		return;
	}
	key = rsoft_list_key(at->list, entry);
	if (likely(key->kind == RSOFT_KIND_BASE)) {
		piece->ptr = key->base + (addr - key->iova);
		return;
	}
	key_piece(key, addr - key->iova, piece);
	piece->length = RTE_MIN(piece->length, left);
}

/* rsoft_access_slow() for a key below others; depth is the number of levels still allowed. */
static bool access_below(const struct rsoft_qp *qp, const struct rsoft_key *key, uint64_t offset,
		uint64_t length, uint32_t need, uint32_t depth, struct rsoft_span *span);

/* Arguments of list_open() for its callbacks. */
struct rsoft_list_opener {
	const struct rsoft_qp *qp;
	uint32_t need;
	uint32_t depth;
};

/*
 * Check the key of an entry for the range from byte `from` of its block in round `first` to byte
 * `to` of its block in round `last`.
 */
static bool
list_open_entry(const struct rsoft_list_opener *by, const struct rsoft_list_entry *entry,
		uint64_t first, uint64_t last, uint64_t from, uint64_t to)
{
	uint64_t addr = entry->addr + first * entry->step + from;
	uint64_t length = (last - first) * entry->step + to - from;
	const struct rsoft_key *key;
	struct rsoft_span span;
	uint64_t offset, round;
	uint32_t rights;

	/*
	 * The range of a key is contiguous, so a key that is valid for the first and the last block
	 * is valid for all blocks between.
	 */
	key = rsoft_access_key(by->qp, by->qp->dev->lkey_xor, entry->lkey, addr, length, by->need,
			&offset, &rights);
	if (key == NULL)
		return false;
	if (likely((rights & RSOFT_SLOW) == 0))
		return true;
	for (round = first; round <= last; round++) {
		uint64_t end = round == last ? to : entry->length;

		span.length = end - from;
		if (!access_below(by->qp, key, offset, end - from, by->need, by->depth, &span))
			return false;
		offset += entry->step - from;
		from = 0;
	}
	return true;
}

/* Check the range between two positions in different rounds, including the second. */
static bool
list_open_range(const struct rsoft_list_opener *by, const struct rsoft_list_at *first,
		const struct rsoft_list_at *last)
{
	const struct rsoft_list *list = first->list;
	uint32_t i;

	for (i = 0; i < list->nb_entries; i++) {
		const struct rsoft_list_entry *entry = &list->entry[i];
		uint64_t round = first->round + (i < first->entry);
		uint64_t skipped = i > last->entry;

		if (round + skipped > last->round)
			continue;
		if (!list_open_entry(by, entry, round, last->round - skipped,
				    i == first->entry ? first->done : 0,
				    i == last->entry ? last->done + 1 : entry->length))
			return false;
	}
	return true;
}

/*
 * Check a range within one round. A key that was loaded as valid does not change in this grace
 * section, so for consecutive entries of one key only the range is checked again.
 */
static bool
list_open_round(const struct rsoft_list_opener *by, const struct rsoft_list_at *first,
		uint64_t length)
{
	const struct rsoft_list_entry *entry = &first->list->entry[first->entry];
	uint64_t n, offset, done = first->done;
	const struct rsoft_key *key = NULL;
	struct rsoft_span span;
	uint32_t rights = 0;

	for (; length != 0; length -= n, entry++, done = 0) {
		uint64_t addr = entry->addr + first->round * entry->step + done;

		n = RTE_MIN(entry->length - done, length);
		if (key == NULL || entry->lkey != entry[-1].lkey) {
			key = rsoft_access_key(by->qp, by->qp->dev->lkey_xor, entry->lkey, addr, n,
					by->need, &offset, &rights);
			if (key == NULL)
				return false;
		} else {
			offset = addr - key->iova;
			if (offset > key->length || n > key->length - offset)
				return false;
		}
		if (likely((rights & RSOFT_SLOW) == 0))
			continue;
		span.length = n;
		if (!access_below(by->qp, key, offset, n, by->need, by->depth, &span))
			return false;
	}
	return true;
}

/* Whether the MR of a key may have a counter: the key maps memory, not other keys. */
static bool
list_may_count(const struct rsoft_key *key)
{
	return key->kind == RSOFT_KIND_BASE ||
			(key->kind == RSOFT_KIND_LIST && key->list->is_memory);
}

/*
 * Check a range within one block with its key. The span may then be contiguous, or the span of the
 * key below. MRs below are not counted, as in ranges of several blocks, so the span keeps its key
 * only if that is a list.
 */
static bool
list_open_block(const struct rsoft_list_opener *by, const struct rsoft_list_at *at, uint64_t length,
		struct rsoft_span *span)
{
	const struct rsoft_span above = *span;
	const struct rsoft_key *key;
	uint64_t offset;
	uint32_t rights;

	key = rsoft_access_key(by->qp, by->qp->dev->lkey_xor, at->list->entry[at->entry].lkey,
			rsoft_list_addr(at), length, by->need, &offset, &rights);
	if (key == NULL)
		return false;
	if ((rights & RSOFT_SLOW) == 0) {
		span->kind = RSOFT_SPAN_FLAT;
		span->ptr = key->base + offset;
		return true;
	}
	if (!access_below(by->qp, key, offset, length, by->need, by->depth, span))
		return false;
	if (span->kind == RSOFT_SPAN_ODP)
		span->key = above.key;
	else if (span->kind == RSOFT_SPAN_COUNTED)
		span->kind = RSOFT_SPAN_FLAT;
	else if (span->kind == RSOFT_SPAN_PIECES && list_may_count(span->key))
		*span = above;
	return true;
}

/* Span kind of contiguous memory that is not on demand. */
static inline uint32_t
span_kind_near(const struct rsoft_key *key)
{
	bool is_counted = __atomic_load_n(&key->mr->counter, __ATOMIC_RELAXED) != NULL;

	return unlikely(is_counted) ? RSOFT_SPAN_COUNTED : RSOFT_SPAN_FLAT;
}

/* access_below() for a KIND_LIST key. */
static bool
list_open(const struct rsoft_qp *qp, const struct rsoft_key *key, uint64_t offset, uint64_t length,
		uint32_t need, uint32_t depth, struct rsoft_span *span)
{
	const struct rsoft_list *list = key->list;
	const struct rsoft_list_opener by = {qp, rsoft_list_need(need), depth - 1};
	struct rsoft_list_at first, last;
	bool is_one_block;

	rsoft_list_seek(list, offset + key->map_offset, &first);
	is_one_block = length <= list->entry[first.entry].length - first.done;
	span->key = key;
	if (is_one_block && list->is_memory && !list->is_null) {
		span->ptr = (uint8_t *)(uintptr_t)rsoft_list_addr(&first);
		span->kind = span_kind_near(key);
		return true;
	}
	if (!list->is_memory && depth == 0)
		return false;
	span->kind = RSOFT_SPAN_PIECES;
	span->offset = offset;
	if (list->is_memory)
		return true;
	if (is_one_block)
		return list_open_block(&by, &first, length, span);
	if (length <= list->round - list->entry[first.entry].start - first.done)
		return list_open_round(&by, &first, length);
	rsoft_list_seek(list, offset + key->map_offset + length - 1, &last);
	return list_open_range(&by, &first, &last);
}

static bool
access_below(const struct rsoft_qp *qp, const struct rsoft_key *key, uint64_t offset,
		uint64_t length, uint32_t need, uint32_t depth, struct rsoft_span *span)
{
	struct rsoft_piece piece;

	if (unlikely(!rsoft_key_is_for(key, qp)))
		return false;
	if (key->kind == RSOFT_KIND_ODP)
		return rsoft_access_odp(key, offset, length, need, span);
	if (key->kind == RSOFT_KIND_LIST)
		return list_open(qp, key, offset, length, need, depth, span);
	key_piece(key, offset, &piece);
	span->ptr = piece.ptr;
	span->key = key;
	if (piece.length < length) {
		span->kind = RSOFT_SPAN_PIECES;
		span->offset = offset;
	} else if (unlikely(piece.odp != NULL)) {
		span->kind = RSOFT_SPAN_ODP;
		span->odp = piece.odp;
	} else {
		span->kind = span_kind_near(key);
	}
	return true;
}

bool
rsoft_access_slow(const struct rsoft_qp *qp, const struct rsoft_key *key, uint64_t offset,
		uint64_t length, uint32_t need, struct rsoft_span *span)
{
	return access_below(qp, key, offset, length, need, (uint32_t)qp->dev->args.max_mkey_depth,
			span);
}

/* A position in a list of spans. */
struct rsoft_cursor {
	const struct rsoft_span *span;
	uint64_t done;           /* bytes done of the span */
	struct rsoft_list_at at; /* position in its list; at.list is NULL until looked up */
};

/* Contiguous bytes at a cursor, which is not at the end of the spans. */
static inline void
cursor_piece(struct rsoft_cursor *cur, struct rsoft_piece *piece)
{
	const struct rsoft_span *span;
	uint64_t left;

	while (cur->done == cur->span->length) {
		cur->span++;
		cur->done = 0;
		cur->at.list = NULL;
	}
	span = cur->span;
	left = span->length - cur->done;
	if (span->kind != RSOFT_SPAN_PIECES) {
		piece->ptr = span->ptr + cur->done;
		piece->length = left;
		piece->odp = rsoft_span_odp(span);
		piece->is_null = false;
		return;
	}
	if (span->key->kind == RSOFT_KIND_LIST) {
		if (cur->at.list == NULL)
			rsoft_list_seek(span->key->list,
					span->offset + cur->done + span->key->map_offset, &cur->at);
		list_piece(&cur->at, piece);
	} else {
		key_piece(span->key, span->offset + cur->done, piece);
	}
	piece->length = RTE_MIN(piece->length, left);
}

static inline void
cursor_move(struct rsoft_cursor *cur, uint64_t n)
{
	cur->done += n;
	if (cur->at.list != NULL)
		rsoft_list_move(&cur->at, n);
}

static __rte_always_inline unsigned int
copy_piece(const struct rsoft_piece *to, const struct rsoft_piece *from, uint64_t length)
{
	if (unlikely(to->is_null))
		return RSOFT_SIDE_NONE;
	if (likely(to->odp == NULL && from->odp == NULL))
		return rsoft_copy(to->ptr, from->ptr, length);
	return rsoft_odp_copy(to->odp, to->ptr, from->odp, from->ptr, length);
}

/* Copy between a contiguous range and a list from a position on, at most *n bytes. */
static __rte_noinline unsigned int
copy_block(struct rsoft_list_at at, uint8_t *flat, uint64_t *n, bool is_to_list)
{
	struct rsoft_piece piece, other = {.ptr = flat};

	list_piece(&at, &piece);
	*n = RTE_MIN(*n, piece.length);
	return is_to_list ? copy_piece(&piece, &other, *n) : copy_piece(&other, &piece, *n);
}

/*
 * Copy between a list and a contiguous range. Consecutive entries often have the same key, so the
 * last lookup is kept.
 */
static __rte_always_inline unsigned int
copy_list(const struct rsoft_span *span, uint8_t *flat, uint64_t length, bool is_to_list)
{
	const struct rsoft_list *list = span->key->list;
	uintptr_t to_memory = 0; /* difference between memory and addresses of the key lkey */
	bool is_one_stretch = true;
	struct rsoft_list_at at;
	uint32_t lkey;

	if (list->is_null && is_to_list)
		return RSOFT_SIDE_NONE;
	rsoft_list_seek(list, span->offset + span->key->map_offset, &at);
	lkey = list->is_memory ? 0 : ~list->entry[at.entry].lkey;
	while (length != 0) {
		const struct rsoft_list_entry *entry = &list->entry[at.entry];
		uint64_t n = RTE_MIN(entry->length - at.done, length);
		unsigned int side;

		if (entry->lkey != lkey) {
			const struct rsoft_key *key = rsoft_list_key(list, entry);

			lkey = entry->lkey;
			is_one_stretch = key->kind == RSOFT_KIND_BASE;
			to_memory = (uintptr_t)key->base - key->iova;
		}
		if (likely(is_one_stretch)) {
			uint8_t *ptr = (uint8_t *)(to_memory + rsoft_list_addr(&at));

			side = rsoft_copy(is_to_list ? ptr : flat, is_to_list ? flat : ptr, n);
		} else {
			uint64_t block = n;

			side = copy_block(at, flat, &block, is_to_list);
			n = block;
		}
		if (unlikely(side != RSOFT_SIDE_NONE))
			return side;
		flat += n;
		length -= n;
		rsoft_list_move(&at, n);
	}
	return RSOFT_SIDE_NONE;
}

/* Whether a span is a list of at least length bytes. */
static inline bool
span_is_list(const struct rsoft_span *span, uint64_t length)
{
	return span->length >= length && span->kind == RSOFT_SPAN_PIECES &&
			span->key->kind == RSOFT_KIND_LIST;
}

static inline bool
span_is_flat(const struct rsoft_span *span, uint64_t length)
{
	return span->length >= length && span->kind <= RSOFT_SPAN_COUNTED;
}

/* Copy piece by piece. */
static __rte_noinline unsigned int
copy_pieces(const struct rsoft_span *to, const struct rsoft_span *from, uint64_t length)
{
	struct rsoft_cursor dst = {.span = to}, src = {.span = from};
	struct rsoft_piece in, out;
	unsigned int side;
	uint64_t n;

	while (length != 0) {
		cursor_piece(&dst, &out);
		cursor_piece(&src, &in);
		n = RTE_MIN(RTE_MIN(out.length, in.length), length);
		side = copy_piece(&out, &in, n);
		if (unlikely(side != RSOFT_SIDE_NONE))
			return side;
		cursor_move(&dst, n);
		cursor_move(&src, n);
		length -= n;
	}
	return RSOFT_SIDE_NONE;
}

unsigned int
rsoft_copy_spans(const struct rsoft_span *to, const struct rsoft_span *from, uint64_t length)
{
	if (likely(rsoft_span_is_near(to, length) && rsoft_span_is_near(from, length)))
		return rsoft_copy_near(to, from, length);
	if (span_is_list(to, length) && span_is_flat(from, length))
		return copy_list(to, from->ptr, length, true);
	if (span_is_list(from, length) && span_is_flat(to, length))
		return copy_list(from, to->ptr, length, false);
	return copy_pieces(to, from, length);
}

enum rmem_vendor_err
rsoft_access_vendor_err(const struct rsoft_qp *qp, uint32_t key_xor, uint32_t key_num,
		uint64_t addr, uint64_t length, uint32_t need)
{
	const struct rsoft_key *key = rsoft_key_of(qp->dev, key_num ^ key_xor);
	uint64_t word, offset;

	if (key == NULL)
		key = rsoft_key_at(qp->dev, key_num);
	word = __atomic_load_n(&key->word, __ATOMIC_ACQUIRE);
	if (rsoft_word_rkey(word) >> 8 != key_num >> 8)
		return RMEM_VENDOR_ERR_KEY_INDEX;
	if (rsoft_word_rkey(word) != (key_num ^ key_xor))
		return RMEM_VENDOR_ERR_KEY_TAG;
	if ((rsoft_word_rights(word) & RSOFT_VALID) == 0)
		return RMEM_VENDOR_ERR_KEY_STATE;
	if (key->pd != qp->pd)
		return RMEM_VENDOR_ERR_KEY_PD;
	if (!rsoft_key_is_for(key, qp))
		return RMEM_VENDOR_ERR_KEY_QP;
	if ((rsoft_word_rights(word) & need) != need)
		return RMEM_VENDOR_ERR_KEY_RIGHT;
	offset = addr - key->iova;
	if (offset > key->length || length > key->length - offset)
		return RMEM_VENDOR_ERR_KEY_RANGE;
	/* All other causes are excluded. Don't check again: it would repeat a page fault. */
	if (key->kind == RSOFT_KIND_LIST)
		return RMEM_VENDOR_ERR_KEY_BELOW;
	return key->kind == RSOFT_KIND_ODP ? RMEM_VENDOR_ERR_PAGE_FAULT : RMEM_VENDOR_ERR_KEY_STATE;
}

struct rsoft_odp *
rsoft_access_table(const struct rsoft_key *key)
{
	/* Binding a counter later waits for the end of this grace section. */
	if (key->kind != RSOFT_KIND_ODP || key->qp_serial != 0 || !key->odp->is_guarded ||
			__atomic_load_n(&key->mr->counter, __ATOMIC_ACQUIRE) != NULL)
		return NULL;
	return key->odp;
}
