/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Random requests that bind and invalidate keys; see random_ops.h. */

#include <stdio.h>
#include <string.h>

#include "random_ops.h"

/* A valid REG_MR, or one with an invalid field. */
static void
random_pages(struct random_run *run, struct rmem_send_wr *wr, uint32_t *pages)
{
	uint16_t nb = (uint16_t)(1 + random_below(run, MODEL_MR_PAGES));
	uint64_t iova = (uint64_t)random_below(run, UINT32_MAX) << random_below(run, 30);
	uint32_t offset = random_below(run, MODEL_PAGE);
	uint16_t i;

	for (i = 0; i < nb; i++) {
		pages[i] = random_below(run, MODEL_PAGES);
		run->list->page_list[i] = fx_addr(run->arena + (size_t)pages[i] * MODEL_PAGE);
	}
	wr->reg_mr.page_list_len = nb;
	wr->reg_mr.iova = iova;
	wr->reg_mr.length = 1 + random_below(run, nb * MODEL_PAGE - offset);
	wr->reg_mr.first_byte_offset = offset;
	wr->reg_mr.access = random_one_in(run, 4) ? random_below(run, 32) : FX_ACCESS;
	wr->reg_mr.key_tag = (uint8_t)random_below(run, 256);
	switch (random_below(run, 24)) {
	case 0:
		wr->reg_mr.length = nb * MODEL_PAGE - offset + random_below(run, 2);
		break;
	case 1:
		wr->reg_mr.length = 0;
		break;
	case 2:
		wr->reg_mr.first_byte_offset += MODEL_PAGE;
		break;
	case 3:
		run->list->page_list[random_below(run, nb)] += random_below(run, 2);
		break;
	case 4:
		wr->reg_mr.iova = UINT64_MAX - offset;
		wr->reg_mr.length = offset + 2;
		break;
	case 5:
		wr->reg_mr.page_list_len = (uint16_t)(random_below(run, 2) * (MODEL_MR_PAGES + 1));
		break;
	default:
		break;
	}
}

/* The keys of an MR that a request has bound. */
static void
take_keys(struct random_run *run, struct model_region *region)
{
	region->is_valid = true;
	region->lkey = region->mr->lkey;
	region->rkey = region->mr->rkey;
	run->nb_bound++;
}

static void
remember_both(struct random_run *run, const struct model_region *region)
{
	random_remember(run, region->rkey);
	random_remember(run, region->lkey);
}

int
random_reg_mr(struct random_run *run)
{
	struct model_region *region = random_of_kind(run, 1u << MODEL_FAST, false);
	uint32_t pages[MODEL_MR_PAGES + 1] = {0};
	struct model_side who;
	struct rmem_send_wr wr;
	struct fx_side *side;
	struct pair *pair;
	int status;

	if (region->mr == NULL || region->kind == MODEL_NONE)
		return 0;
	if ((region->kind != MODEL_FAST || region->is_valid) && !random_one_in(run, 8))
		return 0;
	wr = fx_reg(region->mr, run->list, 0, 0, 0);
	random_pages(run, &wr, pages);
	run->list->page_list[MODEL_MR_PAGES] = fx_addr(run->arena);
	snprintf(run->what, sizeof(run->what), "REG_MR of %u pages, length %u, access %u",
			wr.reg_mr.page_list_len, wr.reg_mr.length, wr.reg_mr.access);
	remember_both(run, region);
	side = random_side(run, region->pd, NULL, &pair, &who);
	status = random_send(run, pair, side, &wr);
	if (!model_may_reg(region, &who, &wr))
		return status == RMEM_WC_MW_BIND_ERR ? 0 : -1;
	take_keys(run, region);
	region->access = wr.reg_mr.access;
	region->iova = wr.reg_mr.iova;
	region->length = wr.reg_mr.length;
	region->offset = wr.reg_mr.first_byte_offset;
	memcpy(region->pages, pages, sizeof(region->pages));
	return status == RMEM_WC_SUCCESS ? random_note_key(run, region) : -1;
}

/* A valid UMR, or one with an invalid field. */
static void
random_entries(struct random_run *run, unsigned int pd, struct rmem_send_wr *wr,
		struct rmem_mkey_entry *entries)
{
	uint32_t nb = 1 + random_below(run, MODEL_ENTRIES);
	uint32_t rounds = random_one_in(run, 2) ? 1 : 1 + random_below(run, 5);
	uint32_t i, need;

	wr->umr.access = random_one_in(run, 4) ? random_below(run, 32) : FX_ACCESS;
	need = wr->umr.access != 0 ? RMEM_ACCESS_LOCAL_WRITE : 0;
	for (i = 0; i < nb; i++) {
		const struct model_region *below = random_fitting(run, pd, need, true);
		uint32_t room = (uint32_t)RTE_MIN(below->length, 2048u) / rounds;
		uint32_t length = 1 + random_below(run, RTE_MAX(room, 1u));

		entries[i].length = length;
		entries[i].skip = rounds > 1 ? random_below(run, RTE_MAX(room, length) - length + 1)
					     : random_below(run, 99);
		entries[i].addr = random_addr(run, below,
				(uint32_t)((length + entries[i].skip) * (rounds - 1)) + length);
		entries[i].lkey = random_key(run, below, true);
		entries[i].reserved = 0;
	}
	wr->umr.entries = entries;
	wr->umr.nb_entries = nb;
	wr->umr.repeat_count = rounds;
	wr->umr.iova = (uint64_t)random_below(run, UINT32_MAX) << random_below(run, 30);
	wr->umr.key_tag = (uint8_t)random_below(run, 256);
	i = random_below(run, nb);
	switch (random_below(run, 32)) {
	case 0:
		entries[i].length = 0;
		break;
	case 1:
		entries[i].reserved = 1;
		break;
	case 2:
		wr->umr.nb_entries = random_below(run, 2) * (MODEL_ENTRIES + 1);
		break;
	case 3:
		wr->umr.repeat_count = 0;
		break;
	case 4:
		wr->umr.iova = UINT64_MAX;
		break;
	default:
		break;
	}
}

int
random_umr(struct random_run *run)
{
	struct rmem_mkey_entry entries[MODEL_ENTRIES + 1] = {{0}};
	struct model_region *region = random_of_kind(run, 1u << MODEL_LIST, false);
	struct model_side who;
	struct rmem_send_wr wr;
	struct fx_side *side;
	struct pair *pair;
	int status;
	bool is_allowed;

	if (region->mr == NULL || region->kind == MODEL_NONE)
		return 0;
	if ((region->kind != MODEL_LIST || region->is_valid) && !random_one_in(run, 8))
		return 0;
	wr = fx_umr(region->mr, entries, 0, 0);
	random_entries(run, region->pd, &wr, entries);
	snprintf(run->what, sizeof(run->what), "UMR of 0x%x, %u entries, %u rounds, access %u",
			region->rkey, wr.umr.nb_entries, wr.umr.repeat_count, wr.umr.access);
	remember_both(run, region);
	side = random_side(run, region->pd, NULL, &pair, &who);
	is_allowed = model_may_umr(&run->model, region, &who, &wr);
	status = random_send(run, pair, side, &wr);
	if (!is_allowed)
		return status == RMEM_WC_MW_BIND_ERR ? 0 : -1;
	region->levels = model_levels(&run->model, entries, wr.umr.nb_entries);
	take_keys(run, region);
	region->access = wr.umr.access;
	region->iova = wr.umr.iova;
	region->nb_entries = wr.umr.nb_entries;
	region->repeat_count = wr.umr.repeat_count;
	memcpy(region->entries, entries, sizeof(region->entries));
	for (region->length = 0; wr.umr.nb_entries > 0; wr.umr.nb_entries--)
		region->length += entries[wr.umr.nb_entries - 1].length * wr.umr.repeat_count;
	return status == RMEM_WC_SUCCESS ? random_note_key(run, region) : -1;
}

/* The model's window as the binding made it. */
static void
bound(struct random_run *run, struct model_region *window, struct model_region *below,
		const struct model_side *who, const struct rmem_mw_bind_info *info, uint32_t rkey)
{
	model_unbind(window);
	window->rkey = rkey;
	run->nb_bound++;
	window->is_valid = true;
	window->below = below;
	below->nb_windows++;
	window->qp = who->qp;
	window->access = info->access & RMEM_ACCESS_REMOTE;
	window->iova = (info->access & RMEM_ACCESS_ZERO_BASED) != 0 ? 0 : info->addr;
	window->length = info->length;
	window->start = below->start + (uint32_t)(info->addr - below->iova);
}

/* The call refuses all but an MR that is not enabled. */
static int
bind_type_1(struct random_run *run, struct pair *pair, struct fx_side *side,
		struct model_region *window, const struct rmem_mw_bind_info *info, bool is_allowed)
{
	const struct rmem_mw_bind bind = {
			.wr_id = 0xa0a0, .flags = RMEM_SEND_SIGNALED, .bind_info = *info};
	int ret = rmem_mw_bind(side->qp, window->mw, &bind);

	if (ret == 0)
		ret = random_wait(run, pair, side);
	if (is_allowed)
		return ret == RMEM_WC_SUCCESS ? 0 : -1;
	if (window->mw->rkey != window->rkey)
		return -1;
	return ret == -EINVAL || ret == -EPERM || ret == -EBUSY || ret == RMEM_WC_MW_BIND_ERR ? 0
											      : -1;
}

static int
bind_type_2(struct random_run *run, struct pair *pair, struct fx_side *side,
		struct model_region *window, const struct rmem_mw_bind_info *info, bool is_allowed)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_BIND_MW, NULL, 0);
	uint8_t tag = (uint8_t)random_below(run, 256);
	int status;

	wr.bind_mw.mw = window->mw;
	wr.bind_mw.mr = info->mr;
	wr.bind_mw.addr = info->addr;
	wr.bind_mw.length = info->length;
	wr.bind_mw.access = info->access;
	wr.bind_mw.key_tag = tag;
	status = random_send(run, pair, side, &wr);
	if (!is_allowed)
		return status == RMEM_WC_MW_BIND_ERR ? 0 : -1;
	if (window->mw->rkey != rmem_rkey_of_tag(window->rkey, tag))
		return -1;
	return status == RMEM_WC_SUCCESS ? 0 : -1;
}

int
random_bind(struct random_run *run)
{
	const uint32_t kinds = 1u << MODEL_MW1 | 1u << MODEL_MW2;
	struct model_region *window = random_of_kind(run, kinds, false);
	struct model_region *below = NULL;
	struct rmem_mw_bind_info info;
	struct model_side who;
	struct fx_side *side;
	struct pair *pair;
	bool is_allowed;
	int ret, i;

	if (window->kind != MODEL_MW1 && window->kind != MODEL_MW2)
		return 0;
	if (window->kind == MODEL_MW2 && window->is_valid && !random_one_in(run, 8))
		return 0;
	for (i = 0; i < 8 && (below == NULL || below->mr == NULL); i++)
		below = random_fitting(run, window->pd, RMEM_ACCESS_MW_BIND, true);
	if (below->kind == MODEL_NONE || below->mr == NULL)
		return 0;
	memset(&info, 0, sizeof(info));
	info.mr = below->mr;
	info.length = random_below(run, (uint32_t)RTE_MIN(below->length, 4096u) + 1);
	info.addr = random_addr(run, below, (uint32_t)info.length);
	info.access = (below->access & RMEM_ACCESS_LOCAL_WRITE) != 0 && !random_one_in(run, 4)
			? RMEM_ACCESS_REMOTE
			: random_below(run, 64);
	if (window->kind == MODEL_MW1 && info.length == 0)
		return 0; /* random_unbind() */
	snprintf(run->what, sizeof(run->what), "bind of type %u, %u bytes, access 0x%x",
			window->mw->type, (uint32_t)info.length, info.access);
	random_remember(run, window->rkey);
	side = random_side(run, window->pd, NULL, &pair, &who);
	is_allowed = model_may_bind(window, below, &who, &info);
	if (window->kind == MODEL_MW1)
		ret = bind_type_1(run, pair, side, window, &info, is_allowed);
	else
		ret = bind_type_2(run, pair, side, window, &info, is_allowed);
	if (!is_allowed)
		return ret;
	bound(run, window, below, &who, &info, window->mw->rkey);
	return ret == 0 ? random_note_key(run, window) : ret;
}

/* A binding of length 0: a new key that is not valid. */
int
random_unbind(struct random_run *run)
{
	const struct rmem_mw_bind bind = {.wr_id = 0xa0a0, .flags = RMEM_SEND_SIGNALED};
	struct model_region *window = random_of_kind(run, 1u << MODEL_MW1, true);
	struct model_side who;
	struct fx_side *side;
	struct pair *pair;
	int ret;

	if (window->kind != MODEL_MW1)
		return 0;
	snprintf(run->what, sizeof(run->what), "unbind of 0x%x", window->rkey);
	random_remember(run, window->rkey);
	side = random_side(run, window->pd, NULL, &pair, &who);
	ret = rmem_mw_bind(side->qp, window->mw, &bind);
	if (who.pd != window->pd)
		return ret == -EPERM ? 0 : -1;
	if (ret != 0 || random_wait(run, pair, side) != RMEM_WC_SUCCESS)
		return -1;
	model_unbind(window);
	window->rkey = window->mw->rkey;
	return 0;
}

/* Invalidate a key in the model; windows release their MR. */
static void
invalidated(struct model_region *region)
{
	region->is_valid = false;
	if (region->mw != NULL)
		model_unbind(region);
}

int
random_local_inv(struct random_run *run)
{
	struct model_region *region = random_fitting(run, random_below(run, NB_DOMAINS), 0, false);
	const struct rmem_send_wr wr = fx_inv(random_key(run, region, false));
	struct model_region *target = model_find(&run->model, wr.invalidate_rkey, false);
	struct model_side who;
	struct fx_side *side;
	struct pair *pair;
	int status;

	snprintf(run->what, sizeof(run->what), "LOCAL_INV of 0x%x", wr.invalidate_rkey);
	side = random_side(run, region->pd,
			region->kind == MODEL_MW2 && region->is_valid ? region->qp : NULL, &pair,
			&who);
	status = random_send(run, pair, side, &wr);
	if (!model_may_invalidate(target, &who))
		return status == RMEM_WC_MW_BIND_ERR ? 0 : -1;
	invalidated(target);
	return status == RMEM_WC_SUCCESS ? 0 : -1;
}

/* The message arrives; whether its receive ends well is a matter of the key. */
int
random_send_inv(struct random_run *run)
{
	struct model_region *region = random_fitting(run, random_below(run, NB_DOMAINS), 0, false);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND_WITH_INV, NULL, 0);
	struct model_region *target;
	const struct random_recv empty = {.wr_id = run->srq.next_id};
	struct fx_side *side, *peer;
	struct model_side who;
	struct rmem_wc wc;
	struct pair *pair;

	if (run->srq.nb != 0)
		return 0; /* its receive may have SGEs */
	wr.invalidate_rkey = random_key(run, region, false);
	target = model_find(&run->model, wr.invalidate_rkey, false);
	snprintf(run->what, sizeof(run->what), "SEND_WITH_INV of 0x%x", wr.invalidate_rkey);
	side = random_side(run, region->pd,
			region->kind == MODEL_MW2 && region->is_valid ? region->qp : NULL, &pair,
			&who);
	peer = side == &pair->a ? &pair->b : &pair->a;
	if (random_recv_post(run, side->qp, &empty) == NULL)
		return -1;
	if (random_send(run, pair, peer, &wr) != RMEM_WC_SUCCESS || random_recv_taken(run) != 0)
		return -1;
	if (fx_poll(side->cq, &wc, 1) != 1)
		return -1;
	if (!model_may_invalidate(target, &who))
		return wc.status == RMEM_WC_REM_INV_REQ_ERR ? random_reconnect(pair) : -1;
	invalidated(target);
	return wc.status == RMEM_WC_SUCCESS && wc.invalidated_rkey == wr.invalidate_rkey ? 0 : -1;
}
