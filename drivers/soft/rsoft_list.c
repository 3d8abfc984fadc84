/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Lists of ranges below a key; see rsoft_list.h. */

#include <rte_malloc.h>

#include "rsoft_list.h"

struct rsoft_list *
rsoft_list_alloc(const struct rsoft_dev *dev, uint32_t max_entries)
{
	struct rsoft_list *list;

	list = rte_zmalloc_socket("rsoft_list",
			sizeof(*list) + max_entries * sizeof(list->entry[0]), RTE_CACHE_LINE_SIZE,
			(int)(int64_t)dev->args.socket);
	if (list == NULL)
		RSOFT_LOG(ERR, "no memory for %u entries", max_entries);
	else
		list->dev = dev;
	return list;
}

struct rsoft_list *
rsoft_list_of_iov(const struct rsoft_dev *dev, const struct iovec *iov, uint32_t nb_iov)
{
	struct rsoft_list *list = rsoft_list_alloc(dev, nb_iov);
	uint32_t i;

	if (list == NULL)
		return NULL;
	for (i = 0; i < nb_iov; i++) {
		list->entry[i].start = list->round;
		list->entry[i].addr = (uintptr_t)iov[i].iov_base;
		list->entry[i].length = iov[i].iov_len;
		list->round += iov[i].iov_len;
	}
	list->nb_entries = nb_iov;
	list->is_memory = 1;
	return list;
}

void
rsoft_list_free(struct rsoft_list *list)
{
	rte_free(list);
}

uint32_t
rsoft_list_nb_pieces(const struct rsoft_list *list, uint64_t length)
{
	uint64_t nb = length / list->round * list->nb_entries;

	return (uint32_t)RTE_MIN(nb, (uint64_t)UINT32_MAX);
}

/* What rsoft_list_open() hands down. */
struct rsoft_list_opener {
	const struct rsoft_qp *qp;
	uint32_t need;
	uint32_t depth;
};

/*
 * Open by the key of an entry what its blocks have from byte from on, and to byte to of the
 * last, in rounds first to last.
 */
static bool
rsoft_list_open_entry(const struct rsoft_list_opener *by, const struct rsoft_list_entry *entry,
		uint64_t first, uint64_t last, uint64_t from, uint64_t to)
{
	uint64_t addr = entry->addr + first * entry->step + from;
	uint64_t length = (last - first) * entry->step + to - from;
	const struct rsoft_key *key;
	struct rsoft_span span;
	uint64_t offset, round;
	uint32_t rights;

	/* A key's bytes follow each other: what holds the first and the last block holds all. */
	key = rsoft_access_key(by->qp, RSOFT_LKEY_XOR, entry->lkey, addr, length, by->need, &offset,
			&rights);
	if (key == NULL)
		return false;
	if (likely((rights & RSOFT_SLOW) == 0))
		return true;
	for (round = first; round <= last; round++) {
		uint64_t end = round == last ? to : entry->length;

		span.length = end - from;
		span.key = NULL;
		if (!rsoft_access_below(
				    by->qp, key, offset, end - from, by->need, by->depth, &span))
			return false;
		offset += entry->step - from;
		from = 0;
	}
	return true;
}

/* Open the range between two places of different rounds, the second place included. */
static bool
rsoft_list_open_range(const struct rsoft_list_opener *by, const struct rsoft_list_at *first,
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
		if (!rsoft_list_open_entry(by, entry, round, last->round - skipped,
				    i == first->entry ? first->done : 0,
				    i == last->entry ? last->done + 1 : entry->length))
			return false;
	}
	return true;
}

/*
 * Open a range that ends in the round of its first place. A key that was seen valid stays as
 * it is in this section, so that of entries of one key in a row only the range is looked at.
 */
static bool
rsoft_list_open_round(const struct rsoft_list_opener *by, const struct rsoft_list_at *first,
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
			key = rsoft_access_key(by->qp, RSOFT_LKEY_XOR, entry->lkey, addr, n,
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
		span.key = NULL;
		if (!rsoft_access_below(by->qp, key, offset, n, by->need, by->depth, &span))
			return false;
	}
	return true;
}

/* Whether a key is one of memory, whose MR may have a counter. */
static bool
rsoft_list_may_count(const struct rsoft_key *key)
{
	return key->kind == RSOFT_KIND_BASE ||
			(key->kind == RSOFT_KIND_LIST && key->list->is_memory);
}

/*
 * Open a range of one block by its key: the span may turn out one stretch, or that key's. An
 * MR below counts nothing, as in ranges of several blocks: its key is not left in the span. That
 * it is the upper key's shows in the pages on demand too.
 */
static bool
rsoft_list_open_block(const struct rsoft_list_opener *by, const struct rsoft_list_at *at,
		uint64_t length, struct rsoft_span *span)
{
	const struct rsoft_span above = *span;
	const struct rsoft_key *key;
	uint64_t offset;
	uint32_t rights;

	key = rsoft_access_key(by->qp, RSOFT_LKEY_XOR, at->list->entry[at->entry].lkey,
			rsoft_list_addr(at), length, by->need, &offset, &rights);
	if (key == NULL)
		return false;
	span->key = NULL;
	if ((rights & RSOFT_SLOW) == 0) {
		span->ptr = key->base + offset;
		return true;
	}
	if (!rsoft_access_below(by->qp, key, offset, length, by->need, by->depth, span))
		return false;
	if (span->key != NULL && span->odp != NULL) {
		span->key = above.key;
		return true;
	}
	if (span->key == NULL || !rsoft_list_may_count(span->key))
		return true;
	if (span->ptr != NULL)
		span->key = NULL;
	else
		*span = above;
	return true;
}

bool
rsoft_list_open(const struct rsoft_qp *qp, const struct rsoft_key *key, uint64_t offset,
		uint64_t length, uint32_t need, uint32_t depth, struct rsoft_span *span)
{
	const struct rsoft_list *list = key->list;
	const struct rsoft_list_opener by = {qp, rsoft_list_need(need), depth - 1};
	struct rsoft_list_at first, last;
	bool is_one_block;

	rsoft_list_seek(list, offset + key->map_offset, &first);
	is_one_block = length <= list->entry[first.entry].length - first.done;
	if (is_one_block && list->is_memory) {
		span->ptr = (uint8_t *)(uintptr_t)rsoft_list_addr(&first);
		if (likely(__atomic_load_n(&key->mr->counter, __ATOMIC_RELAXED) == NULL))
			return true;
		span->key = key;
		span->offset = offset;
		return true;
	}
	if (!list->is_memory && depth == 0)
		return false;
	span->ptr = NULL;
	span->key = key;
	span->offset = offset;
	if (is_one_block)
		return rsoft_list_open_block(&by, &first, length, span);
	if (list->is_memory)
		return true;
	if (length <= list->round - list->entry[first.entry].start - first.done)
		return rsoft_list_open_round(&by, &first, length);
	rsoft_list_seek(list, offset + key->map_offset + length - 1, &last);
	return rsoft_list_open_range(&by, &first, &last);
}
