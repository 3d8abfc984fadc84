/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Control threads: MRs of all kinds over their slots, registered, changed and deregistered while
 * lcores use their keys, and while allocations fail.
 */

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "chaos.h"

#define FAIL_ONE_IN 12u

enum mr_kind {
	USER,
	IOVA,
	ZERO_BASED,
	IOV,
	FD,
	SHARED,
	ON_DEMAND,
	REQUESTED,
	DISABLED,
	ASYNC,
	NB_KINDS,
};

static const char *const names[] = {"MR", "MR with iova", "zero-based MR", "MR of ranges",
		"MR of fd", "shared MR", "on-demand MR", "MR with requested key",
		"MR once disabled", "MR registered in the background"};

struct region {
	struct ch_slot *slot;
	struct rmem_mr *mr;
	struct rmem_mr *below; /* whose memory it shares */
	struct rmem_counter *counter;
	enum mr_kind kind;
	struct ch_grant grant;
	uint32_t visited; /* slots of the thread that its key was for */
	bool is_pending;
	bool is_disabled;
};

struct control {
	struct ch_thread *t;
	struct rmem_eq *eq;
	struct rmem_counter *counter;
	struct region regions[CH_NB_SLOTS - 1]; /* one slot is left for memory to change to */
};

static void
arm(struct ch_thread *t)
{
	ch_fail_allocs(ch_one_in(t, 2) ? FAIL_ONE_IN : 0, t->random);
}

static void
disarm(struct ch_thread *t)
{
	ch_fail_allocs(0, 0);
	t->nb_failed_allocs = ch_failed_allocs();
}

static uint32_t
some_access(struct ch_thread *t)
{
	return RMEM_ACCESS_LOCAL_WRITE |
			(ch_one_in(t, 3) ? RMEM_ACCESS_REMOTE_WRITE << ch_below(t, 3)
					 : RMEM_ACCESS_REMOTE) |
			(ch_one_in(t, 2) ? RMEM_ACCESS_MW_BIND : 0);
}

/* An rkey that no MR is likely to have, and none had not long ago. */
static uint32_t
some_key(struct ch_thread *t)
{
	return (1 + ch_below(t, 0xfffffe)) << 8 | ch_below(t, 256);
}

static uint32_t
bit_of(const struct ch_slot *slot)
{
	return UINT32_C(1) << slot->index % CH_NB_SLOTS;
}

static void
fill_attr(struct control *c, struct region *r, struct rmem_mr_attr *attr, struct iovec *iov)
{
	struct ch_thread *t = c->t;
	struct ch_slot *slot = r->slot;
	size_t offset, length;

	ch_part(t, &offset, &length);
	attr->access = some_access(t);
	attr->socket_id = -1;
	if (r->kind == IOV) {
		iov[0] = (struct iovec){slot->mem + CH_PAGE, CH_GRAIN * (1 + ch_below(t, 400))};
		iov[1] = (struct iovec){slot->mem + 8, CH_GRAIN * (1 + ch_below(t, 400))};
		ch_slot_open(slot, CH_PAGE, iov[0].iov_len);
		ch_slot_open(slot, 8, iov[1].iov_len);
		attr->iov = iov;
		attr->iov_count = 2;
		attr->length = iov[0].iov_len + iov[1].iov_len;
		return;
	}
	if (r->kind == FD) {
		/* Whole pages from the offset on; the guard page is the first of the file. */
		attr->flags |= RMEM_MR_FD;
		attr->fd = slot->fd;
		attr->fd_offset = CH_PAGE;
		ch_slot_open(slot, 0, length);
		attr->length = length;
		return;
	}
	attr->addr = slot->mem + offset;
	attr->length = length;
	ch_slot_open(slot, offset, length);
	if (r->kind == IOVA)
		attr->iova = (uint64_t)(1 + ch_below(t, UINT32_MAX)) * CH_GRAIN << 20;
	if (r->kind == ZERO_BASED)
		attr->access |= RMEM_ACCESS_ZERO_BASED;
	if (r->kind == ON_DEMAND)
		attr->access |= RMEM_ACCESS_ON_DEMAND;
	if (r->kind == REQUESTED) {
		attr->flags |= RMEM_MR_REQUESTED_KEY;
		attr->requested_key = some_key(t);
	}
	if (r->kind == DISABLED)
		attr->flags |= RMEM_MR_DISABLED;
	if (r->kind == ASYNC) {
		attr->eq = c->eq;
		attr->context = r;
	}
}

static void
publish(struct ch_thread *t, struct region *r, uint32_t state)
{
	r->grant.addr = r->mr->iova;
	r->grant.length = (uint32_t)r->mr->length;
	r->grant.rkey = r->mr->rkey;
	r->grant.access = r->mr->access & RMEM_ACCESS_REMOTE;
	r->grant.only_qp = CH_NO_QP;
	r->grant.inv_qp = CH_NO_QP;
	r->grant.pd = r->mr->pd == ch.pds[1];
	r->grant.state = state;
	r->grant.kind = names[r->kind];
	ch_publish(t, r->slot, &r->grant);
}

static bool
share(struct ch_thread *t, struct region *r)
{
	struct rmem_mr *mr;
	int ret = rmem_mr_reg_shared(r->mr, ch.pds[ch_one_in(t, 8)], 0, some_access(t), &mr);

	disarm(t);
	if (ret == 0) {
		r->below = r->mr;
		r->mr = mr;
	}
	return CH_ALLOWED(t, ret, ENOMEM, ENOSPC);
}

static bool
reg(struct control *c, struct region *r)
{
	struct rmem_mr_attr attr = {0};
	struct ch_thread *t = c->t;
	struct iovec iov[2];
	int ret;

	r->slot = ch_slot_find(t);
	if (r->slot == NULL)
		return true;
	r->kind = ch_below(t, NB_KINDS);
	r->visited = bit_of(r->slot);
	r->is_disabled = r->kind == DISABLED;
	if (!ch_slot_begin(t, r->slot))
		return false;
	fill_attr(c, r, &attr, iov);
	ch_note(t, "register kind %d, slot %u, grant %" PRIu64 ", key 0x%x", r->kind,
			r->slot->index, r->slot->id, attr.requested_key);
	arm(t);
	ret = rmem_mr_reg_attr(ch.pds[ch_one_in(t, 8)], &attr, &r->mr);
	disarm(t);
	if (ret != 0) {
		r->mr = NULL;
		return CH_ALLOWED(t, ret, ENOMEM, ENOSPC, EEXIST) && ch_slot_end(t, r->slot);
	}
	if (r->kind == ASYNC) {
		r->is_pending = true;
		return true;
	}
	if (r->kind == SHARED) {
		arm(t);
		if (!share(t, r))
			return false;
	}
	publish(t, r, r->is_disabled ? CH_ENDED : CH_LIVE);
	return true;
}

static bool
dereg(struct ch_thread *t, struct region *r)
{
	int ret = 0;

	if (r->is_pending)
		return true;
	ch_set_state(r->slot, CH_UNSURE);
	ch_note(t, "deregister kind %d, slot %u, grant %" PRIu64 " rkey 0x%x", r->kind,
			r->slot->index, r->slot->id, r->mr->rkey);
	if (r->counter != NULL) {
		ret = rmem_mr_bind_counter(r->mr, NULL, RMEM_COUNTER_REMOTE_WRITE);
		if (ret != 0)
			return CH_FAIL(t, "unbinding a counter: %s", strerror(-ret));
	}
	arm(t);
	ret = rmem_mr_dereg(r->mr);
	if (ret == 0 && r->below != NULL)
		ret = rmem_mr_dereg(r->below);
	disarm(t);
	if (ret != 0)
		return CH_FAIL(t, "rmem_mr_dereg: %s", strerror(-ret));
	r->mr = NULL;
	r->below = NULL;
	r->counter = NULL;
	return ch_slot_end(t, r->slot);
}

/* Rights or PD; no thread relies on the key during the change. */
static bool
change_rights(struct ch_thread *t, struct region *r)
{
	const uint32_t flags = ch_one_in(t, 3) ? RMEM_REREG_CHANGE_PD | RMEM_REREG_CHANGE_ACCESS
					       : RMEM_REREG_CHANGE_ACCESS;
	const uint32_t kept = r->mr->access & (RMEM_ACCESS_ZERO_BASED | RMEM_ACCESS_ON_DEMAND);
	enum rmem_rereg_result result;
	int ret;

	ch_set_state(r->slot, CH_CHANGING);
	ch_note(t, "rereg 0x%x of slot %u, grant %" PRIu64, flags, r->slot->index, r->slot->id);
	arm(t);
	ret = rmem_mr_rereg(r->mr, flags, ch.pds[ch_one_in(t, 4)], NULL, 0, some_access(t) | kept,
			&result);
	disarm(t);
	if (!CH_ALLOWED(t, ret, EBUSY, ENOMEM))
		return false;
	publish(t, r, r->is_disabled ? CH_ENDED : CH_LIVE);
	return true;
}

/* The MR moves to another slot: the grant of this one ends. */
static bool
change_memory(struct ch_thread *t, struct region *r)
{
	struct ch_slot *old = r->slot, *slot = ch_slot_find(t);
	enum rmem_rereg_result result;
	size_t offset, length;
	int ret;

	/* Never back to where its key was for before: old grants would be valid again. */
	if (slot == NULL || r->kind == FD || r->kind == ZERO_BASED ||
			(r->visited & bit_of(slot)) != 0)
		return true;
	if (!ch_slot_begin(t, slot))
		return false;
	ch_part(t, &offset, &length);
	ch_slot_open(slot, offset, length);
	ch_set_state(old, CH_UNSURE);
	ch_note(t, "rereg kind %d of slot %u, grant %" PRIu64 ", to slot %u, grant %" PRIu64,
			r->kind, old->index, old->id, slot->index, slot->id);
	arm(t);
	ret = rmem_mr_rereg(r->mr, RMEM_REREG_CHANGE_TRANSLATION, NULL, slot->mem + offset, length,
			0, &result);
	disarm(t);
	if (!CH_ALLOWED(t, ret, EBUSY, ENOMEM))
		return false;
	if (ret != 0) {
		publish(t, r, r->is_disabled ? CH_ENDED : CH_LIVE);
		return ch_slot_end(t, slot);
	}
	r->slot = slot;
	r->visited |= bit_of(slot);
	publish(t, r, r->is_disabled ? CH_ENDED : CH_LIVE);
	return ch_slot_end(t, old);
}

static bool
change(struct control *c, struct region *r)
{
	struct rmem_sge sge = {r->mr->iova, (uint32_t)r->mr->length, r->mr->lkey};
	struct ch_thread *t = c->t;
	int ret;

	if (r->is_pending)
		return true;
	switch (ch_below(t, 5)) {
	case 0:
		return change_rights(t, r);
	case 1:
		return change_memory(t, r);
	case 2:
		if (!r->is_disabled)
			return true;
		ch_set_state(r->slot, CH_UNSURE);
		ret = rmem_mr_enable(r->mr);
		r->is_disabled = false;
		publish(t, r, CH_LIVE);
		return CH_CHECK(t, ret == 0, "rmem_mr_enable: %s", strerror(-ret));
	case 3:
		if (r->counter != NULL || ch_one_in(t, 2))
			return true;
		/* It is sent over another path: the key is valid throughout. */
		ret = rmem_mr_bind_counter(r->mr, c->counter, RMEM_COUNTER_REMOTE_WRITE);
		if (ret == 0)
			r->counter = c->counter;
		return CH_CHECK(t, ret == 0, "rmem_mr_bind_counter: %s", strerror(-ret));
	default:
		if ((r->mr->access & RMEM_ACCESS_ON_DEMAND) == 0 || r->is_disabled)
			return true;
		arm(t);
		ret = rmem_mr_advise(r->mr->pd, (int)ch_below(t, 3),
				ch_one_in(t, 2) ? RMEM_ADVISE_FLUSH : 0, &sge, 1);
		disarm(t);
		return CH_ALLOWED(t, ret, ENOMEM);
	}
}

static bool
read_events(struct control *c)
{
	struct rmem_event event;
	int n;

	while ((n = rmem_eq_read(c->eq, &event, 1)) == 1) {
		struct region *r = event.context;
		int ret;

		if (r->mr != event.mr || !r->is_pending)
			return CH_FAIL(c->t, "an event is of no registration in progress");
		r->is_pending = false;
		if (event.status == 0) {
			publish(c->t, r, CH_LIVE);
			continue;
		}
		ret = rmem_mr_dereg(r->mr);
		r->mr = NULL;
		if (ret != 0 || !CH_ALLOWED(c->t, event.status, ENOMEM, ENOSPC) ||
				!ch_slot_end(c->t, r->slot))
			return CH_FAIL(c->t, "a registration that failed: %s", strerror(-ret));
	}
	return CH_CHECK(c->t, n == 0, "rmem_eq_read: %d", n);
}

static bool
tick(struct control *c)
{
	struct region *r = &c->regions[ch_below(c->t, RTE_DIM(c->regions))];

	if (!read_events(c))
		return false;
	if (r->mr == NULL)
		return reg(c, r);
	return ch_one_in(c->t, 4) ? dereg(c->t, r) : change(c, r);
}

static bool
close_control(struct control *c)
{
	const uint64_t deadline = ch_deadline();
	unsigned int i;
	int ret;

	for (i = 0; i < RTE_DIM(c->regions); i++) {
		struct region *r = &c->regions[i];

		while (r->mr != NULL && r->is_pending) {
			if (!read_events(c))
				return false;
			if (ch_is_late(deadline))
				return CH_FAIL(c->t, "a registration does not end");
			sched_yield();
		}
		if (r->mr != NULL && !dereg(c->t, r))
			return false;
	}
	ret = rmem_eq_destroy(c->eq);
	if (ret == 0)
		ret = rmem_counter_destroy(c->counter);
	return CH_CHECK(c->t, ret == 0, "EQ or counter: %s", strerror(-ret));
}

void *
ch_control(void *arg)
{
	struct control c = {.t = arg};

	if (rmem_eq_create(ch.dev, &(struct rmem_eq_conf){.nb_events = 64}, &c.eq) != 0 ||
			rmem_counter_create(ch.dev, NULL, &c.counter) != 0) {
		CH_FAIL(c.t, "no EQ or counter");
		return NULL;
	}
	while (!ch_is_stopped()) {
		if (!tick(&c) || (ch_one_in(c.t, 10) && !ch_objects_tick(c.t)))
			return NULL;
		if (ch_one_in(c.t, 8))
			sched_yield();
	}
	if (!ch.is_failed)
		close_control(&c);
	return NULL;
}
