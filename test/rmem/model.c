/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The model's rules; see model.h. */

#include <stddef.h>
#include <string.h>

#include <rte_common.h>

#include "model.h"

#define RIGHT_MODIFY                                                                               \
	(RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_ATOMIC)

struct model_region *
model_find(struct model *model, uint32_t key, bool is_lkey)
{
	unsigned int i;

	for (i = 0; i < MODEL_REGIONS; i++) {
		struct model_region *region = &model->regions[i];

		if (region->kind == MODEL_NONE || !region->is_valid || region->is_disabled)
			continue;
		if (is_lkey && region->mw != NULL)
			continue;
		if (key == (is_lkey ? region->lkey : region->rkey))
			return region;
	}
	return NULL;
}

/* Place of byte n of a region that is no list. */
static uint32_t
place_of(const struct model_region *region, uint64_t n)
{
	uint64_t at;

	if (region->kind != MODEL_FAST)
		return (uint32_t)(region->start + n);
	at = region->offset + n;
	return (uint32_t)(region->pages[at / MODEL_PAGE] * MODEL_PAGE + at % MODEL_PAGE);
}

static bool
is_inside(const struct model_region *region, uint64_t addr, uint32_t length)
{
	uint32_t i;

	/* A byte at a time: nothing can overflow but the address, and then it is out. */
	for (i = 0; i < length; i++) {
		uint64_t byte = addr + i;

		if (byte < addr || byte < region->iova || byte - region->iova >= region->length)
			return false;
	}
	return true;
}

static bool open_region(struct model *model, const struct model_region *region, unsigned int depth,
		uint64_t addr, uint32_t length, uint32_t need, struct model_span *span);

/* Modifications by a peer or a result need LOCAL_WRITE below; the rest needs no right. */
static uint32_t
need_below(uint32_t need)
{
	return (need & RIGHT_MODIFY) != 0 ? RMEM_ACCESS_LOCAL_WRITE : 0;
}

/* Block by block, each through the key of its entry. */
static bool
open_list(struct model *model, const struct model_region *list, unsigned int depth, uint64_t n,
		uint32_t length, uint32_t need, struct model_span *span)
{
	uint64_t at = 0;
	uint32_t round, i;

	if (depth == 0)
		return false;
	for (round = 0; round < list->repeat_count && length != 0; round++) {
		for (i = 0; i < list->nb_entries && length != 0; i++) {
			const struct rmem_mkey_entry *entry = &list->entries[i];
			uint64_t skip = n - at, step = entry->length + entry->skip;
			const struct model_region *below;
			uint32_t take;

			at += entry->length;
			if (n >= at)
				continue;
			take = (uint32_t)RTE_MIN(entry->length - skip, (uint64_t)length);
			below = model_find(model, entry->lkey, true);
			if (below == NULL || below->pd != list->pd ||
					!open_region(model, below, depth - 1,
							entry->addr + round * step + skip, take,
							need_below(need), span))
				return false;
			n += take;
			length -= take;
		}
	}
	return length == 0;
}

static bool
open_region(struct model *model, const struct model_region *region, unsigned int depth,
		uint64_t addr, uint32_t length, uint32_t need, struct model_span *span)
{
	uint32_t i;

	if ((region->access & need) != need || !is_inside(region, addr, length))
		return false;
	if (region->kind == MODEL_LIST)
		return open_list(model, region, depth, addr - region->iova, length, need, span);
	for (i = 0; i < length; i++)
		span->places[span->length++] = place_of(region, addr + i - region->iova);
	span->nb_pieces++;
	return true;
}

bool
model_open_rkey(struct model *model, const struct model_side *side, uint32_t rkey, uint64_t addr,
		uint32_t length, uint32_t need, struct model_span *span)
{
	const struct model_region *region = model_find(model, rkey, false);

	if (region == NULL || region->pd != side->pd)
		return false;
	if (region->kind == MODEL_MW2 && region->qp != side->qp)
		return false;
	return open_region(model, region, MODEL_DEPTH, addr, length, need, span);
}

bool
model_open_sges(struct model *model, const struct model_side *side, const struct rmem_sge *sge,
		uint32_t num_sge, uint32_t need, struct model_span *span)
{
	uint32_t i;

	for (i = 0; i < num_sge; i++) {
		const struct model_region *region;

		if (sge[i].length == 0)
			continue;
		region = model_find(model, sge[i].lkey, true);
		if (region == NULL || region->pd != side->pd ||
				!open_region(model, region, MODEL_DEPTH, sge[i].addr, sge[i].length,
						need, span))
			return false;
	}
	return true;
}

bool
model_overlaps(struct model *model, const struct model_span *from, const struct model_span *to)
{
	uint32_t i;

	memset(model->seen, 0, sizeof(model->seen));
	for (i = 0; i < from->length; i++)
		model->seen[from->places[i]] = 1;
	for (i = 0; i < to->length; i++) {
		if (model->seen[to->places[i]] != 0)
			return true;
		model->seen[to->places[i]] = 1;
	}
	return false;
}

void
model_copy(struct model *model, const struct model_span *to, const struct model_span *from,
		uint32_t length)
{
	uint32_t i;

	for (i = 0; i < length; i++)
		model->bytes[to->places[i]] = model->bytes[from->places[i]];
}

/* Rights that a request may give an MR. */
static bool
is_access(uint32_t access)
{
	if ((access & ~(RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE)) != 0)
		return false;
	return (access & (RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_ATOMIC)) == 0 ||
			(access & RMEM_ACCESS_LOCAL_WRITE) != 0;
}

bool
model_may_reg(const struct model_region *region, const struct model_side *side,
		const struct rmem_send_wr *wr)
{
	uint64_t room = (uint64_t)wr->reg_mr.page_list_len * MODEL_PAGE;
	uint64_t last = wr->reg_mr.iova + wr->reg_mr.length - 1;
	uint32_t i;

	if (region->kind != MODEL_FAST || region->is_valid || region->pd != side->pd)
		return false;
	if (wr->reg_mr.page_list_len == 0 || wr->reg_mr.page_list_len > MODEL_MR_PAGES)
		return false;
	if (wr->reg_mr.length == 0 || last < wr->reg_mr.iova)
		return false;
	if (wr->reg_mr.first_byte_offset >= MODEL_PAGE ||
			wr->reg_mr.first_byte_offset + (uint64_t)wr->reg_mr.length > room)
		return false;
	if (!is_access(wr->reg_mr.access))
		return false;
	for (i = 0; i < wr->reg_mr.page_list_len; i++) {
		if (wr->reg_mr.page_list->page_list[i] == 0 ||
				wr->reg_mr.page_list->page_list[i] % MODEL_PAGE != 0)
			return false;
	}
	return true;
}

uint32_t
model_levels(struct model *model, const struct rmem_mkey_entry *entries, uint32_t nb)
{
	uint32_t i, levels = 0;

	for (i = 0; i < nb; i++) {
		const struct model_region *below = model_find(model, entries[i].lkey, true);

		if (below != NULL && below->kind == MODEL_LIST && below->levels > levels)
			levels = below->levels;
	}
	return levels + 1;
}

/* Whether the key index, with any tag, is below, at most that many levels down. */
static bool
is_below(struct model *model, const struct rmem_mkey_entry *entries, uint32_t nb, uint32_t index,
		unsigned int depth)
{
	uint32_t i;

	for (i = 0; i < nb; i++) {
		const struct model_region *below = model_find(model, entries[i].lkey, true);

		if (entries[i].lkey >> 8 == index)
			return true;
		if (depth > 1 && below != NULL && below->kind == MODEL_LIST &&
				is_below(model, below->entries, below->nb_entries, index,
						depth - 1))
			return true;
	}
	return false;
}

/* Whether the key of an entry is valid for all its blocks. */
static bool
is_entry(struct model *model, const struct rmem_mkey_entry *entry, uint32_t repeat_count,
		unsigned int pd, uint32_t access)
{
	const struct model_region *below = model_find(model, entry->lkey, true);
	uint64_t step = entry->length + entry->skip;
	uint32_t round, need = need_below(access & RIGHT_MODIFY);

	if (entry->length == 0 || entry->reserved != 0 || below == NULL || below->pd != pd ||
			(below->access & need) != need)
		return false;
	for (round = 0; round < repeat_count; round++) {
		if (!is_inside(below, entry->addr + round * step, (uint32_t)entry->length))
			return false;
	}
	return true;
}

bool
model_may_umr(struct model *model, const struct model_region *region, const struct model_side *side,
		const struct rmem_send_wr *wr)
{
	uint64_t length = 0;
	uint32_t i, levels;

	if (region->kind != MODEL_LIST || region->is_valid || region->pd != side->pd)
		return false;
	if (wr->umr.nb_entries == 0 || wr->umr.nb_entries > MODEL_ENTRIES ||
			wr->umr.repeat_count == 0 || !is_access(wr->umr.access))
		return false;
	for (i = 0; i < wr->umr.nb_entries; i++) {
		if (!is_entry(model, &wr->umr.entries[i], wr->umr.repeat_count, side->pd,
				    wr->umr.access))
			return false;
		length += wr->umr.entries[i].length * wr->umr.repeat_count;
	}
	if (wr->umr.iova + length - 1 < wr->umr.iova)
		return false;
	levels = model_levels(model, wr->umr.entries, wr->umr.nb_entries);
	if (levels > MODEL_DEPTH)
		return false;
	return !is_below(
			model, wr->umr.entries, wr->umr.nb_entries, region->lkey >> 8, MODEL_DEPTH);
}

bool
model_may_bind(const struct model_region *window, const struct model_region *below,
		const struct model_side *side, const struct rmem_mw_bind_info *info)
{
	uint32_t known = RMEM_ACCESS_REMOTE;

	if (window->kind == MODEL_MW2)
		known |= RMEM_ACCESS_ZERO_BASED;
	if (window->kind == MODEL_MW2 && window->is_valid)
		return false;
	if ((info->access & ~known) != 0 || window->pd != side->pd || below->pd != side->pd)
		return false;
	if (below->kind != MODEL_USER || below->is_disabled ||
			(below->access & RMEM_ACCESS_MW_BIND) == 0)
		return false;
	if ((info->access & RIGHT_MODIFY) != 0 && (below->access & RMEM_ACCESS_LOCAL_WRITE) == 0)
		return false;
	return info->length != 0 && info->length <= MODEL_BYTES &&
			is_inside(below, info->addr, (uint32_t)info->length);
}

bool
model_may_invalidate(const struct model_region *region, const struct model_side *side)
{
	if (region == NULL || region->pd != side->pd)
		return false;
	if (region->kind == MODEL_MW2)
		return region->qp == side->qp;
	return region->kind == MODEL_FAST || region->kind == MODEL_LIST;
}

void
model_unbind(struct model_region *window)
{
	if (window->below != NULL)
		window->below->nb_windows--;
	window->below = NULL;
	window->is_valid = false;
}
