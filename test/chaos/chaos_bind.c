/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Objects bound by requests: fast-register MRs, windows of both types and indirect keys, each over
 * a slot of its lcore. Objects in an unknown state after a QP failure are released and created
 * again.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chaos.h"

#define NB_BINDS 8u
#define PATIENCE 20000u /* ticks */

enum bind_kind {
	FAST,
	WINDOW_1,
	WINDOW_2,
	LIST,
	STRIDED,
};

static const enum bind_kind kinds[NB_BINDS] = {
		FAST, FAST, WINDOW_2, WINDOW_2, WINDOW_1, LIST, STRIDED, FAST};

enum bind_state {
	IDLE,
	BINDING,
	OPEN,
	ENDING,
	LOST, /* for release, in any state */
};

struct bind {
	enum bind_kind kind;
	enum bind_state state;
	struct ch_slot *slot;
	struct ch_qp *q; /* it was bound by */
	struct rmem_mr *base;
	struct rmem_mr *mr;
	struct rmem_mw *mw;
	struct rmem_fast_reg_page_list *list;
	struct rmem_mkey_entry entries[2];
	struct ch_grant grant;
	uint32_t nb_ticks; /* in this state */
};

static const char *const names[] = {
		"REG_MR", "type 1 window", "type 2 window", "UMR list", "UMR strided"};

struct ch_binds {
	struct bind all[NB_BINDS];
};

static bool
is_window(const struct bind *b)
{
	return b->kind == WINDOW_1 || b->kind == WINDOW_2;
}

static void
set_state(struct bind *b, enum bind_state state)
{
	b->state = state;
	b->nb_ticks = 0;
}

static bool
make(struct ch_thread *t, struct bind *b)
{
	int ret = 0;

	if (b->mr != NULL || b->mw != NULL)
		return true;
	if (is_window(b))
		ret = rmem_mw_alloc(ch.pds[0],
				b->kind == WINDOW_1 ? RMEM_MW_TYPE_1 : RMEM_MW_TYPE_2, &b->mw);
	else if (b->kind == FAST)
		ret = rmem_fast_reg_mr_alloc(ch.pds[0], 2, &b->mr);
	else
		ret = rmem_mkey_alloc(ch.pds[0], 2, &b->mr);
	return CH_CHECK(t, ret == 0, "an object of kind %d: %s", b->kind, strerror(-ret));
}

bool
ch_binds_open(struct ch_thread *t)
{
	unsigned int i;
	int ret = 0;

	t->binds = calloc(1, sizeof(*t->binds));
	if (t->binds == NULL)
		return CH_FAIL(t, "no memory");
	for (i = 0; i < NB_BINDS && ret == 0; i++) {
		struct bind *b = &t->binds->all[i];

		b->kind = kinds[i];
		b->slot = &t->slots[i];
		ret = rmem_mr_reg(ch.pds[0], b->slot->mem, CH_DATA, 0,
				RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_MW_BIND |
						(i % 2 == 0 ? RMEM_ACCESS_ON_DEMAND : 0),
				&b->base);
		if (ret == 0 && b->kind == FAST)
			ret = rmem_fast_reg_page_list_alloc(ch.dev, 2, &b->list);
	}
	return CH_CHECK(t, ret == 0, "a base: %s", strerror(-ret));
}

static uint32_t
some_access(struct ch_thread *t)
{
	const uint32_t access = RMEM_ACCESS_REMOTE_WRITE << ch_below(t, 3);

	return ch_one_in(t, 3) ? access : RMEM_ACCESS_REMOTE;
}

static void
fill_reg_mr(struct ch_thread *t, struct bind *b, struct rmem_send_wr *wr, size_t offset,
		size_t length)
{
	const size_t page = offset / CH_PAGE;
	const uint64_t iova = (uint64_t)ch_below(t, UINT32_MAX) * CH_PAGE + offset % CH_PAGE;

	b->list->page_list[0] = (uintptr_t)b->slot->mem + page * CH_PAGE;
	b->list->page_list[1] = (uintptr_t)b->slot->mem + CH_PAGE;
	wr->opcode = RMEM_WR_REG_MR;
	wr->reg_mr.mr = b->mr;
	wr->reg_mr.page_list = b->list;
	wr->reg_mr.page_list_len = (uint16_t)(2 - page);
	wr->reg_mr.iova = iova;
	wr->reg_mr.first_byte_offset = (uint32_t)(offset % CH_PAGE);
	wr->reg_mr.length = (uint32_t)length;
	wr->reg_mr.access = RMEM_ACCESS_LOCAL_WRITE | b->grant.access;
	wr->reg_mr.log2_page_size = 12;
	wr->reg_mr.key_tag = rmem_rkey_next_tag(b->mr->rkey);
	b->grant.addr = iova;
	b->grant.rkey = rmem_rkey_of_tag(b->mr->rkey, wr->reg_mr.key_tag);
	ch_slot_open(b->slot, offset, length);
	b->grant.length = (uint32_t)length;
}

static void
fill_bind_mw(struct bind *b, struct rmem_send_wr *wr, size_t offset, size_t length)
{
	wr->opcode = RMEM_WR_BIND_MW;
	wr->bind_mw.mw = b->mw;
	wr->bind_mw.mr = b->base;
	wr->bind_mw.addr = b->base->iova + offset;
	wr->bind_mw.length = length;
	wr->bind_mw.access = b->grant.access;
	wr->bind_mw.key_tag = rmem_rkey_next_tag(b->mw->rkey);
	b->grant.addr = wr->bind_mw.addr;
	b->grant.rkey = rmem_rkey_of_tag(b->mw->rkey, wr->bind_mw.key_tag);
	b->grant.only_qp = b->q->index;
	ch_slot_open(b->slot, offset, length);
	b->grant.length = (uint32_t)length;
}

/* Two stretches, the second maybe before the first; or every other stretch of some bytes. */
static void
fill_umr(struct ch_thread *t, struct bind *b, struct rmem_send_wr *wr)
{
	uint64_t first = CH_GRAIN * (1 + ch_below(t, 64)),
		 second = CH_GRAIN * (1 + ch_below(t, 64));
	uint32_t rounds = 1, i;

	wr->opcode = RMEM_WR_UMR;
	b->entries[0] = (struct rmem_mkey_entry){
			b->base->iova + CH_PAGE, first, 0, b->base->lkey, 0};
	b->entries[1] = (struct rmem_mkey_entry){b->base->iova + 16, second, 0, b->base->lkey, 0};
	if (b->kind == STRIDED) {
		rounds = 1 + ch_below(t, 8);
		b->entries[0].skip = CH_GRAIN * ch_below(t, 4);
		b->entries[1].skip = CH_GRAIN * ch_below(t, 4);
		b->entries[0].length = first = first % 128 + CH_GRAIN;
		b->entries[1].length = second = second % 128 + CH_GRAIN;
	}
	for (i = 0; i < rounds; i++) {
		ch_slot_open(b->slot, CH_PAGE + i * (first + b->entries[0].skip), first);
		ch_slot_open(b->slot, 16 + i * (second + b->entries[1].skip), second);
	}
	b->grant.length = (uint32_t)(rounds * (first + second));
	b->grant.addr = (uint64_t)ch_below(t, UINT32_MAX) * CH_GRAIN;
	wr->umr.mr = b->mr;
	wr->umr.entries = b->entries;
	wr->umr.nb_entries = 2;
	wr->umr.repeat_count = rounds;
	wr->umr.iova = b->grant.addr;
	wr->umr.access = RMEM_ACCESS_LOCAL_WRITE | b->grant.access;
	wr->umr.key_tag = rmem_rkey_next_tag(b->mr->rkey);
	b->grant.rkey = rmem_rkey_of_tag(b->mr->rkey, wr->umr.key_tag);
}

/* Post rmem_mw_bind() as ch_post() does; its completion has the number that a request would. */
static bool
bind_type_1(struct ch_thread *t, struct bind *b, int index, size_t offset, size_t length)
{
	struct ch_queue *queue = &b->q->sends;
	struct rmem_mw_bind bind = {.flags = RMEM_SEND_SIGNALED};
	int ret;

	if (queue->tail - queue->head == CH_NB_PENDING)
		return false;
	bind.wr_id = (uint64_t)b->q->index << 48 | queue->tail;
	bind.bind_info.mr = b->base;
	bind.bind_info.addr = b->base->iova + offset;
	bind.bind_info.length = length;
	bind.bind_info.access = length != 0 ? b->grant.access : 0;
	ret = rmem_mw_bind(b->q->qp, b->mw, &bind);
	if (ret != 0) {
		if (ret != -ENOSPC && ret != -EBUSY)
			CH_FAIL(t, "rmem_mw_bind: %s", strerror(-ret));
		return false;
	}
	queue->pending[queue->tail % CH_NB_PENDING] = (struct ch_pending){.seq = queue->tail,
			.epoch = b->q->epoch,
			.opcode = RMEM_WR_BIND_MW,
			.is_signaled = true,
			.bind = index};
	queue->tail++;
	return true;
}

static bool
begin(struct ch_thread *t, struct bind *b, int index)
{
	struct rmem_send_wr wr = {.flags = RMEM_SEND_SIGNALED};
	const struct ch_pending p = {.bind = index};
	struct ch_qp *q = t->qps[ch_below(t, CH_NB_QPS)];
	size_t offset, length;
	bool is_ok = true, is_posted;

	if (q->pd != 0 || q->qp == NULL || !ch_is_connected(q))
		return true;
	if (!make(t, b) || !ch_slot_begin(t, b->slot))
		return false;
	b->q = q;
	b->grant = (struct ch_grant){.access = some_access(t),
			.kind = names[b->kind],
			.only_qp = CH_NO_QP,
			.inv_qp = b->kind == WINDOW_1 ? CH_NO_QP : q->index};
	ch_part(t, &offset, &length);
	ch_note(t, "bind %d of kind %d on QP %u, slot %u", index, b->kind, q->index,
			b->slot->index);
	if (b->kind == WINDOW_1) {
		ch_slot_open(b->slot, offset, length);
		b->grant.addr = b->base->iova + offset;
		b->grant.length = (uint32_t)length;
		is_posted = bind_type_1(t, b, index, offset, length);
		b->grant.rkey = b->mw->rkey;
	} else {
		if (b->kind == FAST)
			fill_reg_mr(t, b, &wr, offset, length);
		else if (b->kind == WINDOW_2)
			fill_bind_mw(b, &wr, offset, length);
		else
			fill_umr(t, b, &wr);
		is_posted = ch_post(t, q, &wr, &p, &is_ok);
	}
	set_state(b, BINDING);
	if (!is_posted)
		set_state(b, LOST);
	return is_ok && !ch_is_stopped();
}

/* By LOCAL_INV, a READ_WITH_INV of nothing, or the release of the object. */
static bool
end(struct ch_thread *t, struct bind *b, int index)
{
	struct rmem_send_wr wr = {.opcode = RMEM_WR_LOCAL_INV, .flags = RMEM_SEND_SIGNALED};
	const struct ch_pending p = {.bind = index};
	bool is_ok = true, is_posted;

	if (!ch_claim(b->slot->entry, b->slot->id) || b->q->qp == NULL || ch_one_in(t, 8)) {
		set_state(b, LOST);
		return true;
	}
	ch_note(t, "end bind %d of kind %d on QP %u, grant %" PRIu64, index, b->kind, b->q->index,
			b->slot->id);
	wr.invalidate_rkey = b->grant.rkey;
	if (b->kind == WINDOW_1) {
		is_posted = bind_type_1(t, b, index, 0, 0);
	} else {
		if (ch_one_in(t, 4))
			wr.opcode = RMEM_WR_RDMA_READ_WITH_INV;
		is_posted = ch_post(t, b->q, &wr, &p, &is_ok);
	}
	set_state(b, is_posted ? ENDING : LOST);
	return is_ok;
}

static bool
release(struct ch_thread *t, struct bind *b)
{
	int ret = is_window(b) ? rmem_mw_dealloc(b->mw) : rmem_mr_dereg(b->mr);

	if (ret == -EBUSY && b->nb_ticks++ < PATIENCE)
		return true;
	if (ret != 0)
		return CH_FAIL(t,
				"an object of kind %d, grant %" PRIu64 " on QP %u, rkey 0x%x, "
				"can't be released: %s",
				b->kind, b->slot->id, b->q != NULL ? b->q->index : 0, b->grant.rkey,
				strerror(-ret));
	b->mr = NULL;
	b->mw = NULL;
	set_state(b, IDLE);
	return b->slot->id == 0 || ch_slot_end(t, b->slot);
}

bool
ch_binds_tick(struct ch_thread *t)
{
	unsigned int i;

	for (i = 0; i < NB_BINDS; i++) {
		struct bind *b = &t->binds->all[i];
		bool is_ok = true;

		if (b->state == IDLE)
			is_ok = begin(t, b, (int)i);
		else if (b->state == OPEN && (ch_one_in(t, 50) || b->nb_ticks++ > 2000))
			is_ok = end(t, b, (int)i);
		else if (b->state == LOST)
			is_ok = release(t, b);
		if (!is_ok)
			return false;
	}
	return true;
}

bool
ch_bind_done(struct ch_thread *t, int bind, int status)
{
	struct bind *b = &t->binds->all[bind];

	if (status != RMEM_WC_SUCCESS) {
		/* It may have been invalidated by a peer, or the QP has failed. */
		if (b->state == BINDING && status != RMEM_WC_WR_FLUSH_ERR)
			return CH_FAIL(t, "bind %d of kind %d on QP %u: %s", bind, b->kind,
					b->q->index, rmem_wc_status_str(status));
		if (status != RMEM_WC_WR_FLUSH_ERR && status != RMEM_WC_RETRY_EXC_ERR)
			return CH_FAIL(t, "end of bind %d of kind %d on QP %u: %s", bind, b->kind,
					b->q->index, rmem_wc_status_str(status));
		if (b->state == BINDING || b->state == ENDING)
			set_state(b, LOST);
		return true;
	}
	if (b->state == BINDING) {
		b->grant.state = CH_LIVE;
		ch_publish(t, b->slot, &b->grant);
		set_state(b, OPEN);
	} else if (b->state == ENDING) {
		set_state(b, IDLE);
		return ch_slot_end(t, b->slot);
	}
	return true;
}

bool
ch_bind_invalidated(struct ch_thread *t, uint32_t rkey)
{
	unsigned int i;

	for (i = 0; i < NB_BINDS; i++) {
		struct bind *b = &t->binds->all[i];

		if (b->state != OPEN || b->grant.rkey != rkey)
			continue;
		ch_note(t, "bind %u of kind %d invalidated by the peer, grant %" PRIu64, i, b->kind,
				b->slot->id);
		set_state(b, IDLE);
		return ch_slot_end(t, b->slot);
	}
	return true;
}

void
ch_bind_lost(struct ch_thread *t, const struct ch_qp *q, bool is_destroyed)
{
	unsigned int i;

	for (i = 0; i < NB_BINDS; i++) {
		struct bind *b = &t->binds->all[i];

		if (b->q != q || b->state == IDLE || b->state == LOST)
			continue;
		if (b->state != OPEN || (is_destroyed && b->kind == WINDOW_2)) {
			if (b->slot->id != 0)
				ch_set_state(b->slot, CH_UNSURE);
			set_state(b, LOST);
		}
	}
}

bool
ch_binds_close(struct ch_thread *t)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < NB_BINDS && ret == 0; i++) {
		struct bind *b = &t->binds->all[i];

		if (b->slot->id != 0)
			ch_set_state(b->slot, CH_UNSURE);
		b->nb_ticks = PATIENCE;
		if ((b->mr != NULL || b->mw != NULL) && !release(t, b))
			return false;
		ret = rmem_fast_reg_page_list_free(b->list);
		if (ret == 0)
			ret = rmem_mr_dereg(b->base);
	}
	free(t->binds);
	return CH_CHECK(t, ret == 0, "a base or a page list: %s", strerror(-ret));
}
