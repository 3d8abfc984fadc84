/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The model's rules; see model.h. */

#include <stddef.h>
#include <string.h>

#include "model.h"

struct model_region *
model_find(struct model *model, uint32_t key, bool is_lkey)
{
	unsigned int i;

	for (i = 0; i < MODEL_REGIONS; i++) {
		struct model_region *region = &model->regions[i];

		if (region->mr != NULL && region->is_valid &&
				key == (is_lkey ? region->lkey : region->rkey))
			return region;
	}
	return NULL;
}

/* Place of byte n of a region. */
static uint32_t
place_of(const struct model_region *region, uint64_t n)
{
	uint64_t at;

	if (!region->is_fast)
		return (uint32_t)(region->start + n);
	at = region->iova % MODEL_PAGE + n;
	return (uint32_t)(region->pages[at / MODEL_PAGE] * MODEL_PAGE + at % MODEL_PAGE);
}

bool
model_open(struct model *model, uint32_t key, bool is_lkey, unsigned int pd, uint64_t addr,
		uint32_t length, uint32_t need, struct model_span *span)
{
	const struct model_region *region = model_find(model, key, is_lkey);
	uint32_t i;

	if (region == NULL || region->pd != pd || (region->access & need) != need)
		return false;
	for (i = 0; i < length; i++) {
		/* A byte at a time: nothing can overflow but the address, and then it is out. */
		uint64_t byte = addr + i;

		if (byte < addr || byte < region->iova || byte - region->iova >= region->length)
			return false;
		span->places[span->length++] = place_of(region, byte - region->iova);
	}
	return true;
}

bool
model_open_sges(struct model *model, unsigned int pd, const struct rmem_sge *sge, uint32_t num_sge,
		uint32_t need, struct model_span *span)
{
	uint32_t i;

	for (i = 0; i < num_sge; i++) {
		if (sge[i].length != 0 &&
				!model_open(model, sge[i].lkey, true, pd, sge[i].addr,
						sge[i].length, need, span))
			return false;
	}
	return true;
}

bool
model_overlaps(const struct model_span *from, const struct model_span *to)
{
	static uint8_t seen[MODEL_BYTES];
	uint32_t i;

	memset(seen, 0, sizeof(seen));
	for (i = 0; i < from->length; i++)
		seen[from->places[i]] = 1;
	for (i = 0; i < to->length; i++) {
		if (seen[to->places[i]] != 0)
			return true;
		seen[to->places[i]] = 1;
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

bool
model_may_bind(const struct model_region *region, unsigned int pd, const struct rmem_send_wr *wr)
{
	uint64_t room = (uint64_t)wr->reg_mr.page_list_len * MODEL_PAGE;
	uint64_t last = wr->reg_mr.iova + wr->reg_mr.length - 1;
	uint32_t access = wr->reg_mr.access;
	uint32_t i;

	if (!region->is_fast || region->is_valid || region->pd != pd)
		return false;
	if (wr->reg_mr.page_list_len == 0 || wr->reg_mr.page_list_len > MODEL_MR_PAGES)
		return false;
	if (wr->reg_mr.length == 0 || last < wr->reg_mr.iova)
		return false;
	if (wr->reg_mr.first_byte_offset != wr->reg_mr.iova % MODEL_PAGE ||
			wr->reg_mr.first_byte_offset + (uint64_t)wr->reg_mr.length > room)
		return false;
	if ((access & ~(RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE)) != 0 ||
			((access & (RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_ATOMIC)) != 0 &&
					(access & RMEM_ACCESS_LOCAL_WRITE) == 0))
		return false;
	for (i = 0; i < wr->reg_mr.page_list_len; i++) {
		if (wr->reg_mr.page_list->page_list[i] == 0 ||
				wr->reg_mr.page_list->page_list[i] % MODEL_PAGE != 0)
			return false;
	}
	return true;
}
