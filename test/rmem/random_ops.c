/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Random requests that transfer bytes, and code shared by all operations; see random_ops.h. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "random_ops.h"

struct random_extra random_extra;

/* xorshift64* */
uint32_t
random_below(struct random_run *run, uint32_t limit)
{
	run->random ^= run->random >> 12;
	run->random ^= run->random << 25;
	run->random ^= run->random >> 27;
	return (uint32_t)((run->random * UINT64_C(2685821657736338717)) >> 32) % limit;
}

bool
random_one_in(struct random_run *run, uint32_t n)
{
	return random_below(run, n) == 0;
}

void
random_remember(struct random_run *run, uint32_t key)
{
	run->former[random_below(run, NB_FORMER)] = key;
}

int
random_reconnect(struct pair *pair)
{
	if (rmem_qp_reset(pair->a.qp) != 0 || rmem_qp_reset(pair->b.qp) != 0)
		return -EPROTO;
	fx_drain(pair->a.cq);
	fx_drain(pair->b.cq);
	if (pair->type == RMEM_QPT_UD)
		return fx_ud_ready(pair->a.qp, RANDOM_QKEY) == 0 &&
						fx_ud_ready(pair->b.qp, RANDOM_QKEY) == 0
				? 0
				: -EPROTO;
	return fx_connect_pair(pair->a.qp, pair->b.qp) == 0 ? 0 : -EPROTO;
}

static bool
is_reliable(const struct pair *pair)
{
	return pair->type != RMEM_QPT_UC && pair->type != RMEM_QPT_UD;
}

bool
random_is_injected(const struct random_run *run, const struct rmem_wc *wc)
{
	return run->has_chaos && wc->status != RMEM_WC_SUCCESS &&
			wc->vendor_err == RMEM_VENDOR_ERR_CHAOS;
}

int
random_post_recv(struct random_run *run, struct rmem_qp *qp, const struct random_recv *recv)
{
	const struct rmem_recv_wr wr = {
			.wr_id = recv->wr_id, .sg_list = recv->sge, .num_sge = recv->nb};

	run->posted = *recv;
	run->posted_to = qp;
	return rmem_post_recv(qp, &wr, 1);
}

/* After a request that a rule failed: all as before it. */
static int
undo(struct random_run *run, struct pair *pair)
{
	const struct random_recv recv = run->posted;
	struct rmem_qp *qp = run->posted_to;

	run->nb_injected++;
	if (random_reconnect(pair) != 0)
		return -EPROTO;
	if (qp == NULL || random_post_recv(run, qp, &recv) == 1)
		return -EAGAIN;
	return -EPROTO;
}

int
random_wait(struct random_run *run, struct pair *pair, struct fx_side *side)
{
	struct rmem_wc wc;
	int ret = fx_poll(side->cq, &wc, 1);

	if (ret != 1 || wc.wr_id != 0xa0a0 || wc.qp_num != side->qp->qp_num ||
			!random_event_matches(pair, side))
		return -EPROTO;
	if (random_is_injected(run, &wc))
		return undo(run, pair);
	run->posted_to = NULL;
	if (wc.status == RMEM_WC_SUCCESS) {
		run->nb_succeeded++;
		return RMEM_WC_SUCCESS;
	}
	run->nb_refused++;
	if (fx_state(side->qp) != (is_reliable(pair) ? RMEM_QPS_ERR : RMEM_QPS_SQE))
		return -EPROTO;
	return random_reconnect(pair) == 0 ? wc.status : -EPROTO;
}

int
random_send(struct random_run *run, struct pair *pair, struct fx_side *side,
		const struct rmem_send_wr *wr)
{
	struct rmem_send_wr signaled = *wr;
	int ret;

	signaled.flags |= RMEM_SEND_SIGNALED;
	if (pair->type == RMEM_QPT_XRC_SEND)
		signaled.xrc.remote_srqn = pair->srq_num;
	do {
		ret = fx_post(side->qp, &signaled);
		if (ret == 1)
			ret = random_wait(run, pair, side);
		else
			ret = ret == -ENOSPC && run->has_chaos ? -EAGAIN : -EPROTO;
	} while (ret == -EAGAIN);
	return ret;
}

struct fx_side *
random_side(struct random_run *run, unsigned int pd, const struct rmem_qp *qp, struct pair **pair,
		struct model_side *who)
{
	bool is_any = random_one_in(run, 8);
	struct fx_side *side;
	int i;

	for (i = 0;; i++) {
		*pair = &run->pairs[random_below(run, NB_DOMAINS)];
		side = random_one_in(run, 2) ? &(*pair)->a : &(*pair)->b;
		who->pd = side == &(*pair)->a ? 0 : (*pair)->pd_b;
		who->qp = side->qp;
		if (is_any || i == 64 || (qp != NULL ? qp == side->qp : who->pd == pd))
			return side;
	}
}

struct model_region *
random_region(struct random_run *run)
{
	return &run->model.regions[random_below(run, MODEL_REGIONS)];
}

struct model_region *
random_of_kind(struct random_run *run, uint32_t kinds, bool is_valid)
{
	struct model_region *region = random_region(run);
	int i;

	for (i = 0; i < 32 && !random_one_in(run, 64); i++) {
		if ((1u << region->kind & kinds) != 0 && region->is_valid == is_valid)
			break;
		region = random_region(run);
	}
	return region;
}

struct model_region *
random_place(struct random_run *run)
{
	struct model_region *region = random_region(run);

	return region->kind == MODEL_NONE ? region : NULL;
}

struct model_region *
random_fitting(struct random_run *run, unsigned int pd, uint32_t need, bool is_local)
{
	struct model_region *region = random_region(run);
	int i;

	for (i = 0; i < 32 && !random_one_in(run, 64); i++) {
		if (region->kind != MODEL_NONE && region->is_valid && !region->is_disabled &&
				region->pd == pd && (region->access & need) == need &&
				(!is_local || region->mw == NULL))
			break;
		region = random_region(run);
	}
	return region;
}

uint32_t
random_key(struct random_run *run, const struct model_region *region, bool is_lkey)
{
	uint32_t key = is_lkey ? region->lkey : region->rkey;

	switch (random_below(run, 64)) {
	case 0:
	case 1:
		return run->former[random_below(run, NB_FORMER)];
	case 2:
		return is_lkey ? region->rkey : region->lkey;
	case 3:
		return random_below(run, UINT32_MAX);
	case 4:
		return key ^ UINT32_C(1) << random_below(run, 32);
	default:
		return key;
	}
}

uint64_t
random_addr(struct random_run *run, const struct model_region *region, uint32_t length)
{
	uint64_t room = region->length > length ? region->length - length : 0;

	switch (random_below(run, 64)) {
	case 0:
		return region->iova - random_below(run, 64) - 1;
	case 1:
		return region->iova + region->length - random_below(run, 64);
	case 2:
		return UINT64_MAX - random_below(run, 64);
	default:
		return region->iova + random_below(run, (uint32_t)room + 1);
	}
}

/* Together they are no longer than a span. */
uint16_t
random_sges(struct random_run *run, struct rmem_sge *sge, unsigned int pd, uint32_t need)
{
	uint16_t num_sge = (uint16_t)random_below(run, RANDOM_MAX_SGE + 1);
	uint16_t i;

	for (i = 0; i < num_sge; i++) {
		const struct model_region *region = random_fitting(run, pd, need, true);
		uint32_t room = (uint32_t)RTE_MIN(region->length, MODEL_MAX_LEN / 4);

		if (random_one_in(run, 64))
			room = MODEL_MAX_LEN / 4;
		sge[i].length = random_below(run, room + 1);
		sge[i].addr = random_addr(run, region, sge[i].length);
		sge[i].lkey = random_key(run, region, true);
	}
	return num_sge;
}

void
random_clear(struct model_span *span)
{
	span->length = 0;
	span->nb_pieces = 0;
}

/* A peer has changed something through the key. */
static void
count_change(struct random_run *run, uint32_t rkey)
{
	const struct model_region *region = model_find(&run->model, rkey, false);

	if (region->mw != NULL)
		region = region->below;
	if (region->kind == MODEL_USER && region->counter >= 0)
		run->counts[region->counter]++;
}

static struct model_side
side_a(const struct pair *pair)
{
	return (struct model_side){0, pair->a.qp};
}

static struct model_side
side_b(const struct pair *pair)
{
	return (struct model_side){pair->pd_b, pair->b.qp};
}

/* A pair of RC, or of another service with READs and atomics, or also without them. */
static struct pair *
random_pair(struct random_run *run, bool is_read)
{
	switch (random_below(run, 6)) {
	case 0:
		return &run->links[RANDOM_XRC];
	case 1:
		return is_read ? &run->links[RANDOM_XRC] : &run->links[RANDOM_UC];
	default:
		return &run->pairs[random_below(run, NB_DOMAINS)];
	}
}

/*
 * Status of a WRITE or a READ; a READ checks the local side after the response. UC reports no error
 * of the peer.
 */
static int
status_of_move(const struct pair *pair, uint8_t opcode, bool is_local_good, bool is_remote_good)
{
	is_remote_good |= !is_reliable(pair);
	if (opcode == RMEM_WR_RDMA_READ && !is_remote_good)
		return RMEM_WC_REM_ACCESS_ERR;
	if (!is_local_good)
		return RMEM_WC_LOC_PROT_ERR;
	return is_remote_good ? RMEM_WC_SUCCESS : RMEM_WC_REM_ACCESS_ERR;
}

/* WRITE and READ: what local and remote rules allow, and the bytes. */
static int
move(struct random_run *run, uint8_t opcode, uint32_t local_need, uint32_t remote_need)
{
	struct pair *pair = random_pair(run, opcode == RMEM_WR_RDMA_READ);
	const struct model_region *region = random_fitting(run, pair->pd_b, remote_need, false);
	const struct model_side a = side_a(pair), b = side_b(pair);
	struct model_span *local = &run->local, *remote = &run->remote;
	struct rmem_sge sge[4] = {{0}};
	struct rmem_send_wr wr = fx_wr(opcode, sge, random_sges(run, sge, 0, local_need));
	bool is_remote_good;
	uint32_t length = 0;
	int i, status, want;

	for (i = 0; i < wr.num_sge; i++)
		length += sge[i].length;
	wr.rdma.remote_addr = random_addr(run, region, length);
	wr.rdma.rkey = random_key(run, region, false);
	random_clear(local);
	random_clear(remote);
	is_remote_good = length == 0 ||
			model_open_rkey(&run->model, &b, wr.rdma.rkey, wr.rdma.remote_addr, length,
					remote_need, remote);
	want = status_of_move(pair, opcode,
			model_open_sges(&run->model, &a, sge, wr.num_sge, local_need, local),
			is_remote_good);
	if (want == RMEM_WC_SUCCESS && is_remote_good &&
			(model_overlaps(&run->model, local, remote) ||
					model_overlaps(&run->model, remote, local)))
		return 0;
	snprintf(run->what, sizeof(run->what),
			"opcode %u, QP type %u, %u SGEs, %u bytes, rkey 0x%x", opcode, pair->type,
			wr.num_sge, length, wr.rdma.rkey);
	status = random_send(run, pair, &pair->a, &wr);
	if (want != RMEM_WC_SUCCESS || !is_remote_good)
		return status == want ? 0 : -1;
	if (opcode == RMEM_WR_RDMA_READ)
		model_copy(&run->model, local, remote, length);
	else
		model_copy(&run->model, remote, local, length);
	if (opcode == RMEM_WR_RDMA_WRITE && length != 0)
		count_change(run, wr.rdma.rkey);
	return status == want ? 0 : -1;
}

/* Permitted statuses of a SEND with these SGEs into a receive with those. */
static uint32_t
allowed_of_send(struct random_run *run, const struct pair *pair, const struct rmem_sge *from,
		uint16_t nb_from, const struct random_recv *recv)
{
	const struct rmem_sge *to = recv->sge;
	struct model_side a = side_a(pair), b = side_b(pair);
	struct model *model = &run->model;
	uint32_t allowed = 0, room = 0, length;
	struct rmem_sge used[RANDOM_MAX_SGE];
	uint16_t i, nb_to = recv->nb;

	if (run->srq.srq != NULL)
		b.pd = run->srq.pd;

	if (!model_open_sges(model, &a, from, nb_from, 0, &run->local))
		return MODEL_STATUS(RMEM_WC_LOC_PROT_ERR);
	length = run->local.length;
	/* Only the bytes that the message fills need to be opened. */
	for (i = 0; i < nb_to; i++) {
		used[i] = to[i];
		used[i].length = RTE_MIN(to[i].length, length - RTE_MIN(room, length));
		room += to[i].length;
	}
	if (room < length)
		allowed |= MODEL_STATUS(RMEM_WC_REM_INV_REQ_ERR);
	if (!model_open_sges(model, &b, used, nb_to, RMEM_ACCESS_LOCAL_WRITE, &run->remote))
		allowed |= MODEL_STATUS(RMEM_WC_REM_OP_ERR);
	if (allowed != 0)
		return allowed;
	random_clear(&run->remote);
	if (!model_open_sges(model, &b, to, nb_to, RMEM_ACCESS_LOCAL_WRITE, &run->remote))
		allowed |= MODEL_STATUS(RMEM_WC_REM_OP_ERR);
	random_clear(&run->remote);
	model_open_sges(model, &b, used, nb_to, RMEM_ACCESS_LOCAL_WRITE, &run->remote);
	return allowed | MODEL_STATUS(RMEM_WC_SUCCESS);
}

static int
send_message(struct random_run *run)
{
	struct pair *pair = &run->pairs[random_below(run, NB_DOMAINS)];
	unsigned int pd = run->srq.srq != NULL ? run->srq.pd : pair->pd_b;
	const struct random_recv *to = &run->srq.recv[0];
	struct random_recv recv = {.wr_id = run->srq.next_id};
	struct rmem_sge from[RANDOM_MAX_SGE];
	uint16_t nb_from = random_sges(run, from, 0, 0);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, from, nb_from);
	struct rmem_wc wc;
	uint32_t allowed;
	uint64_t wr_id;
	int status;

	recv.nb = random_sges(run, recv.sge, pd, RMEM_ACCESS_LOCAL_WRITE);
	if (run->srq.nb == 0)
		to = &recv;
	random_clear(&run->local);
	random_clear(&run->remote);
	allowed = allowed_of_send(run, pair, from, nb_from, to);
	if ((allowed & MODEL_STATUS(RMEM_WC_SUCCESS)) != 0 &&
			model_overlaps(&run->model, &run->local, &run->remote))
		return 0;
	snprintf(run->what, sizeof(run->what), "SEND of %u SGEs into %u", nb_from, to->nb);
	to = random_recv_post(run, pair->b.qp, &recv);
	if (to == NULL)
		return -1;
	wr_id = to->wr_id;
	status = random_send(run, pair, &pair->a, &wr);
	if (status < 0 || (allowed & MODEL_STATUS(status)) == 0)
		return -1;
	/* A message whose data cannot be read is not sent. */
	if (status != RMEM_WC_LOC_PROT_ERR && random_recv_taken(run) != 0)
		return -1;
	if (status != RMEM_WC_SUCCESS)
		return 0;
	model_copy(&run->model, &run->remote, &run->local, run->local.length);
	return fx_poll(pair->b.cq, &wc, 1) == 1 && wc.byte_len == run->local.length &&
					wc.wr_id == wr_id
			? 0
			: -1;
}

static uint64_t
model_load(const struct model *model, const struct model_span *span)
{
	uint64_t value = 0;
	int i;

	for (i = 7; i >= 0; i--)
		value = value << 8 | model->bytes[span->places[i]];
	return value;
}

static void
model_store(struct model *model, const struct model_span *span, uint64_t value)
{
	int i;

	for (i = 0; i < 8; i++)
		model->bytes[span->places[i]] = (uint8_t)(value >> 8 * i);
}

/* Permitted statuses of the atomic; sets both spans. */
static uint32_t
allowed_of_atomic(struct random_run *run, const struct pair *pair, const struct rmem_send_wr *wr)
{
	const struct model_side a = side_a(pair), b = side_b(pair);
	const struct model_span *remote = &run->remote;
	uint32_t allowed = 0;

	random_clear(&run->local);
	random_clear(&run->remote);
	if (!model_open_rkey(&run->model, &b, wr->atomic.rkey, wr->atomic.remote_addr, 8,
			    RMEM_ACCESS_REMOTE_ATOMIC, &run->remote))
		allowed = MODEL_STATUS(RMEM_WC_REM_ACCESS_ERR);
	if (wr->atomic.remote_addr % 8 != 0)
		return allowed | MODEL_STATUS(RMEM_WC_REM_INV_REQ_ERR);
	/* Eight bytes that lie together, and aligned. */
	if (allowed == 0 && (remote->places[0] % 8 != 0 || remote->nb_pieces != 1))
		allowed = MODEL_STATUS(RMEM_WC_REM_INV_REQ_ERR);
	/* The local side is checked after the response. */
	if (allowed == 0 &&
			!model_open_sges(&run->model, &a, wr->sg_list, 1, RMEM_ACCESS_LOCAL_WRITE,
					&run->local))
		allowed = MODEL_STATUS(RMEM_WC_LOC_PROT_ERR);
	return allowed;
}

/* The model's side of an atomic that is allowed. */
static void
do_atomic(struct random_run *run, struct rmem_send_wr *wr)
{
	uint64_t before = model_load(&run->model, &run->remote);
	bool is_add = wr->opcode == RMEM_WR_ATOMIC_FETCH_AND_ADD;

	if (!is_add && random_one_in(run, 2))
		wr->atomic.compare_add = before;
	if (is_add)
		model_store(&run->model, &run->remote, before + wr->atomic.compare_add);
	else if (before == wr->atomic.compare_add)
		model_store(&run->model, &run->remote, wr->atomic.swap);
	if (is_add || before == wr->atomic.compare_add)
		count_change(run, wr->atomic.rkey);
	model_store(&run->model, &run->local, before);
}

static int
use_atomic(struct random_run *run)
{
	struct pair *pair = random_pair(run, true);
	const struct model_region *target =
			random_fitting(run, pair->pd_b, RMEM_ACCESS_REMOTE_ATOMIC, false);
	const struct model_region *result = random_fitting(run, 0, RMEM_ACCESS_LOCAL_WRITE, true);
	bool is_add = random_one_in(run, 2);
	struct rmem_sge sge = {.length = 8};
	struct rmem_send_wr wr = fx_atomic(
			is_add ? RMEM_WR_ATOMIC_FETCH_AND_ADD : RMEM_WR_ATOMIC_CMP_AND_SWP, &sge, 0,
			random_key(run, target, false), random_below(run, UINT32_MAX));
	uint32_t allowed;
	int status;

	sge.addr = random_addr(run, result, 8);
	sge.lkey = random_key(run, result, true);
	wr.atomic.remote_addr = random_addr(run, target, 8);
	if (!random_one_in(run, 8)) /* up to the next multiple of 8 */
		wr.atomic.remote_addr = (wr.atomic.remote_addr + 7) & ~UINT64_C(7);
	wr.atomic.swap = random_below(run, UINT32_MAX);
	allowed = allowed_of_atomic(run, pair, &wr);
	if (allowed == 0) {
		if (model_overlaps(&run->model, &run->remote, &run->local) ||
				model_overlaps(&run->model, &run->local, &run->remote))
			return 0;
		allowed = MODEL_STATUS(RMEM_WC_SUCCESS);
		do_atomic(run, &wr);
	}
	snprintf(run->what, sizeof(run->what), "atomic %u of 0x%" PRIx64 ", rkey 0x%x", wr.opcode,
			wr.atomic.remote_addr, wr.atomic.rkey);
	status = random_send(run, pair, &pair->a, &wr);
	return status >= 0 && (allowed & MODEL_STATUS(status)) != 0 ? 0 : -1;
}

static int
use_extra(struct random_run *run)
{
	return random_extra.op != NULL ? random_extra.op(run) : 0;
}

int
random_op(struct random_run *run)
{
	static int (*const rare[])(struct random_run * run) = {random_reg, random_reg, random_reg,
			random_alloc, random_alloc, random_release, random_release, random_rereg,
			random_enable, random_count, random_reg_mr, random_reg_mr, random_umr,
			random_umr, random_bind, random_bind, random_unbind, random_local_inv,
			random_send_inv, random_srq, random_resize, random_arm, use_extra};

	switch (random_below(run, 22)) {
	case 0:
	case 1:
	case 2:
	case 3:
	case 4:
		return move(run, RMEM_WR_RDMA_WRITE, 0, RMEM_ACCESS_REMOTE_WRITE);
	case 5:
	case 6:
	case 7:
	case 8:
		return move(run, RMEM_WR_RDMA_READ, RMEM_ACCESS_LOCAL_WRITE,
				RMEM_ACCESS_REMOTE_READ);
	case 9:
	case 10:
		return send_message(run);
	case 11:
	case 12:
		return use_atomic(run);
	case 13:
	case 14:
		return random_message(run);
	default:
		return rare[random_below(run, RTE_DIM(rare))](run);
	}
}
