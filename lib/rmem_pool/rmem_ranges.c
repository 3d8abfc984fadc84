/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Ranges of a mempool to register.
 *
 * The ranges are the chunks of the mempool; adjacent chunks are joined. If a chunk exceeds the
 * limit of an MR, the ranges are the objects of the mempool, joined within a chunk up to that
 * limit. For a pool with pinned external buffers they are these buffers, joined if less than a page
 * is between them.
 */

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include "rmem_pool_priv.h"

/* A walk over a mempool. */
struct walk {
	struct rmem_ranges *ranges;
	bool is_pinned;
	bool is_checked; /* is_pinned is known from an object */
	uint64_t limit;  /* maximum bytes of a range */
	int ret;
};

void
rmem_ranges_free(struct rmem_ranges *ranges)
{
	free(ranges->range);
	ranges->range = NULL;
}

/* Add a range; if it begins at the end of the last range, join the two, up to the limit. */
static int
add(struct rmem_ranges *ranges, uint8_t *begin, size_t length, uint64_t limit)
{
	struct rmem_range *range;
	uint32_t cap;

	if (ranges->nb > 0) {
		range = &ranges->range[ranges->nb - 1];
		if (range->end == begin && (uint64_t)(begin - range->begin) + length <= limit) {
			range->end += length;
			return 0;
		}
	}
	if (ranges->nb == ranges->cap) {
		cap = RTE_MAX(16u, 2 * ranges->cap);
		range = realloc(ranges->range, cap * sizeof(*range));
		if (range == NULL)
			return -ENOMEM;
		ranges->range = range;
		ranges->cap = cap;
	}
	ranges->range[ranges->nb].begin = begin;
	ranges->range[ranges->nb++].end = begin + length;
	return 0;
}

static void
walk_chunk(struct rte_mempool *mp, void *opaque, struct rte_mempool_memhdr *chunk, unsigned int idx)
{
	struct walk *walk = opaque;

	RTE_SET_USED(mp);
	RTE_SET_USED(idx);
	if (walk->ret == 0 && chunk->len != 0)
		walk->ret = add(walk->ranges, chunk->addr, chunk->len, walk->limit);
}

static void
walk_obj(struct rte_mempool *mp, void *opaque, void *obj, unsigned int idx)
{
	struct walk *walk = opaque;
	struct rte_mbuf *m = obj;
	size_t length = mp->elt_size;

	RTE_SET_USED(idx);
	if (walk->ret != 0)
		return;
	if (walk->is_pinned) {
		obj = m->buf_addr;
		length = m->buf_len;
	}
	walk->ranges->buf_size = RTE_MAX(walk->ranges->buf_size, (uint64_t)length);
	if (length != 0)
		walk->ret = add(walk->ranges, obj, length, walk->limit);
}

/* Check with the first object whether a pool of mbufs has external buffers. */
static void
walk_first(struct rte_mempool *mp, void *opaque, void *obj, unsigned int idx)
{
	const struct rte_mbuf *m = obj;
	struct walk *walk = opaque;

	RTE_SET_USED(idx);
	if (walk->is_checked)
		return;
	walk->is_checked = true;
	walk->is_pinned = m->pool == mp && RTE_MBUF_HAS_EXTBUF(m);
}

bool
rmem_mempool_is_pinned(struct rte_mempool *mp)
{
	struct walk walk = {.is_pinned = false};

	if (mp->private_data_size < sizeof(struct rte_pktmbuf_pool_private) ||
			mp->elt_size < sizeof(struct rte_mbuf) ||
			(rte_pktmbuf_priv_flags(mp) & RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF) == 0)
		return false;
	rte_mempool_obj_iter(mp, walk_first, &walk);
	return walk.is_pinned;
}

static int
compare(const void *a, const void *b)
{
	const struct rmem_range *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static void
sort(struct rmem_ranges *ranges)
{
	uint32_t i;

	/* The ranges are usually sorted already, for which qsort() is slow. */
	for (i = 1; i < ranges->nb; i++) {
		if (ranges->range[i].begin < ranges->range[i - 1].begin) {
			qsort(ranges->range, ranges->nb, sizeof(ranges->range[0]), compare);
			return;
		}
	}
}

/* Find the chunk that contains the last byte before end; chunks are sorted by address. */
static const struct rmem_range *
chunk_of(const struct rmem_ranges *chunks, const struct rmem_range *range, uint32_t *at)
{
	while (*at < chunks->nb && chunks->range[*at].end < range->end)
		(*at)++;
	return *at < chunks->nb ? &chunks->range[*at] : NULL;
}

/*
 * Join ranges that are less than gap bytes apart, or, with chunks, ranges in the same chunk. The
 * bytes between joined ranges belong to the pool, or are padding between its buffers.
 */
static void
join(struct rmem_ranges *ranges, const struct rmem_ranges *chunks, size_t gap, uint64_t limit)
{
	const struct rmem_range *chunk;
	struct rmem_range *last, *range;
	uint32_t i, at = 0, nb = 0;
	uint8_t *end;
	bool is_close;

	for (i = 0; i < ranges->nb; i++) {
		range = &ranges->range[i];
		if (nb == 0) {
			nb++;
			continue;
		}
		last = &ranges->range[nb - 1];
		end = RTE_MAX(range->end, last->end);
		if (chunks != NULL) {
			chunk = chunk_of(chunks, range, &at);
			is_close = chunk != NULL && last->begin >= chunk->begin;
		} else {
			is_close = range->begin < last->end ||
					(size_t)(range->begin - last->end) < gap;
		}
		if (is_close && (uint64_t)(end - last->begin) <= limit)
			last->end = end;
		else
			ranges->range[nb++] = *range;
	}
	ranges->nb = nb;
}

static bool
is_too_large(const struct rmem_ranges *ranges, uint64_t max_mr_size)
{
	uint32_t i;

	for (i = 0; i < ranges->nb; i++) {
		if ((uint64_t)(ranges->range[i].end - ranges->range[i].begin) > max_mr_size)
			return true;
	}
	return false;
}

/* Get the ranges from objects or external buffers. */
static int
get_by_objs(struct rte_mempool *mp, bool is_pinned, uint64_t max_mr_size,
		const struct rmem_ranges *chunks, struct rmem_ranges *ranges)
{
	struct walk walk = {.ranges = ranges, .is_pinned = is_pinned, .limit = max_mr_size};

	rte_mempool_obj_iter(mp, walk_obj, &walk);
	if (walk.ret != 0)
		return walk.ret;
	if (ranges->buf_size > max_mr_size)
		return 0;
	sort(ranges);
	join(ranges, chunks, (size_t)sysconf(_SC_PAGESIZE), max_mr_size);
	return 0;
}

/* Get the ranges from chunks, or from objects if a chunk is too large for an MR. */
static int
get_by_chunks(struct rte_mempool *mp, uint64_t max_mr_size, struct rmem_ranges *ranges)
{
	struct rmem_ranges chunks = {.range = NULL};
	struct walk walk = {.ranges = &chunks, .limit = UINT64_MAX};
	int ret;

	rte_mempool_mem_iter(mp, walk_chunk, &walk);
	ret = walk.ret;
	if (ret == 0) {
		sort(&chunks);
		join(&chunks, NULL, 1, UINT64_MAX);
	}
	if (ret == 0 && is_too_large(&chunks, max_mr_size)) {
		ret = get_by_objs(mp, false, max_mr_size, &chunks, ranges);
	} else if (ret == 0) {
		*ranges = chunks;
		ranges->buf_size = mp->elt_size;
		return 0;
	}
	rmem_ranges_free(&chunks);
	return ret;
}

int
rmem_ranges_get(struct rte_mempool *mp, uint64_t max_mr_size, struct rmem_ranges *ranges)
{
	int ret;

	*ranges = (struct rmem_ranges){.range = NULL};
	if (rmem_mempool_is_pinned(mp))
		ret = get_by_objs(mp, true, max_mr_size, NULL, ranges);
	else
		ret = get_by_chunks(mp, max_mr_size, ranges);
	if (ret != 0)
		return POOL_FAIL(-ret, "%s: no memory: %u objects", mp->name, mp->populated_size);
	return 0;
}
