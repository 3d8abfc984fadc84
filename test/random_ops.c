/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The random operations; see random_ops.h. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "random_ops.h"
#include "test.h"

struct random_run run;

/* xorshift64* */
uint32_t
random_below(uint32_t limit)
{
	run.random ^= run.random >> 12;
	run.random ^= run.random << 25;
	run.random ^= run.random >> 27;
	return (uint32_t)((run.random * UINT64_C(2685821657736338717)) >> 32) % limit;
}

static bool
one_in(uint32_t n)
{
	return random_below(n) == 0;
}

static void
remember(uint32_t key)
{
	run.former[random_below(NB_FORMER)] = key;
}

/* Post one request on a side of a pair; its status or -errno. A failed pair is connected again. */
static int
send_on(struct pair *pair, struct fx_side *side, const struct rmem_send_wr *wr)
{
	int status = fx_send(side->qp, wr);
	struct rmem_wc wc;

	if (status == RMEM_WC_SUCCESS) {
		run.nb_succeeded++;
		return status;
	}
	run.nb_refused++;
	if (status < 0 || fx_state(side->qp) != RMEM_QPS_ERR)
		return -EPROTO;
	if (rmem_qp_reset(pair->a.qp) != 0 || rmem_qp_reset(pair->b.qp) != 0)
		return -EPROTO;
	while (rmem_poll_cq(pair->b.cq, &wc, 1) > 0)
		;
	return fx_connect_pair(pair->a.qp, pair->b.qp) == 0 ? status : -EPROTO;
}

/* The same by any side of any pair; *pd is the domain of that side. */
static int
send_anywhere(const struct rmem_send_wr *wr, unsigned int want_pd, unsigned int *pd)
{
	struct pair *pair = &run.pairs[random_below(NB_DOMAINS)];

	if (want_pd != 0 && !one_in(8)) {
		*pd = 1;
		return send_on(&run.pairs[1], &run.pairs[1].b, wr);
	}
	*pd = 0;
	return send_on(pair, &pair->a, wr);
}

static struct model_region *
random_region(void)
{
	return &run.model.regions[random_below(MODEL_REGIONS)];
}

/* Mostly one that opens something for these rights in this domain. */
static struct model_region *
fitting_region(unsigned int pd, uint32_t need)
{
	struct model_region *region = random_region();
	int i;

	for (i = 0; i < 32 && !one_in(64); i++) {
		if (region->mr != NULL && region->is_valid && region->pd == pd &&
				(region->access & need) == need)
			break;
		region = random_region();
	}
	return region;
}

/* Mostly the key of a region, else one of the past, one of the wrong kind, or noise. */
static uint32_t
random_key(const struct model_region *region, bool is_lkey)
{
	switch (random_below(64)) {
	case 0:
	case 1:
		return run.former[random_below(NB_FORMER)];
	case 2:
		return is_lkey ? region->rkey : region->lkey;
	case 3:
		return random_below(UINT32_MAX);
	case 4:
		return (is_lkey ? region->lkey : region->rkey) ^ UINT32_C(1) << random_below(32);
	default:
		return is_lkey ? region->lkey : region->rkey;
	}
}

/* Address of so many bytes, which are mostly inside the region. */
static uint64_t
random_addr(const struct model_region *region, uint32_t length)
{
	uint64_t room = region->length > length ? region->length - length : 0;

	switch (random_below(64)) {
	case 0:
		return region->iova - random_below(64) - 1;
	case 1:
		return region->iova + region->length - random_below(64);
	case 2:
		return UINT64_MAX - random_below(64);
	default:
		return region->iova + random_below((uint32_t)room + 1);
	}
}

/* At most three SGEs that fit these rights; together they are no longer than a span. */
static uint16_t
random_sges(struct rmem_sge *sge, unsigned int pd, uint32_t need)
{
	uint16_t num_sge = (uint16_t)random_below(4);
	uint16_t i;

	for (i = 0; i < num_sge; i++) {
		const struct model_region *region = fitting_region(pd, need);
		uint64_t room = RTE_MIN(region->length, MODEL_MAX_LEN / 4);

		sge[i].length = random_below((one_in(64) ? MODEL_MAX_LEN / 4 : (uint32_t)room) + 1);
		sge[i].addr = random_addr(region, sge[i].length);
		sge[i].lkey = random_key(region, true);
	}
	return num_sge;
}

static int
reg_user(void)
{
	static const uint32_t access[] = {0, 1, 3, 4, 5, 7, 9, 11, 13, 15};
	struct model_region *region = random_region();
	unsigned int pd = random_below(NB_DOMAINS);
	uint32_t start = random_below(MODEL_BYTES - 1);
	uint32_t length = 1 + random_below(RTE_MIN(MODEL_BYTES - start, 3 * MODEL_PAGE));
	uint64_t iova = one_in(2) ? 0 : (uint64_t)random_below(UINT32_MAX) << random_below(24);
	uint32_t rights = access[random_below(RTE_DIM(access))];

	if (region->mr != NULL)
		return 0;
	snprintf(run.what, sizeof(run.what), "reg of %u bytes, access %u", length, rights);
	if (rmem_mr_reg(run.pds[pd], run.arena + start, length, iova, rights, &region->mr) != 0)
		return -1;
	fx_track(region->mr);
	region->is_fast = false;
	region->is_valid = true;
	region->pd = pd;
	region->access = rights;
	region->lkey = region->mr->lkey;
	region->rkey = region->mr->rkey;
	region->iova = iova != 0 ? iova : fx_addr(run.arena + start);
	region->length = length;
	region->start = start;
	return 0;
}

static int
alloc_fast(void)
{
	struct model_region *region = random_region();
	unsigned int pd = random_below(NB_DOMAINS);

	if (region->mr != NULL)
		return 0;
	snprintf(run.what, sizeof(run.what), "alloc of a fast-register MR");
	if (rmem_fast_reg_mr_alloc(run.pds[pd], MODEL_MR_PAGES, &region->mr) != 0)
		return -1;
	fx_track(region->mr);
	region->is_fast = true;
	region->is_valid = false;
	region->pd = pd;
	region->lkey = region->mr->lkey;
	region->rkey = region->mr->rkey;
	region->length = 0;
	return 0;
}

static int
dereg(void)
{
	struct model_region *region = random_region();

	if (region->mr == NULL || !one_in(8))
		return 0;
	snprintf(run.what, sizeof(run.what), "dereg of key 0x%x", region->rkey);
	remember(region->rkey);
	remember(region->lkey);
	if (fx_release(region->mr) != 0)
		return -1;
	region->mr = NULL;
	region->is_valid = false;
	return 0;
}

/* A REG_MR that is right, or wrong in one of its fields. */
static void
random_binding(struct rmem_send_wr *wr, uint32_t *pages)
{
	uint16_t nb = (uint16_t)(1 + random_below(MODEL_MR_PAGES));
	uint64_t iova = (uint64_t)random_below(UINT32_MAX) << random_below(30);
	uint32_t offset = (uint32_t)(iova % MODEL_PAGE);
	uint32_t length = 1 + random_below(nb * MODEL_PAGE - offset);
	uint16_t i;

	for (i = 0; i < nb; i++) {
		pages[i] = random_below(MODEL_PAGES);
		run.list->page_list[i] = fx_addr(run.arena + (size_t)pages[i] * MODEL_PAGE);
	}
	wr->reg_mr.page_list_len = nb;
	wr->reg_mr.iova = iova;
	wr->reg_mr.length = length;
	wr->reg_mr.first_byte_offset = offset;
	wr->reg_mr.access = one_in(4) ? random_below(32) : FX_ACCESS;
	wr->reg_mr.key_tag = (uint8_t)random_below(256);
	switch (random_below(24)) {
	case 0:
		wr->reg_mr.length = nb * MODEL_PAGE - offset + random_below(2);
		break;
	case 1:
		wr->reg_mr.length = 0;
		break;
	case 2:
		wr->reg_mr.first_byte_offset ^= 1;
		break;
	case 3:
		run.list->page_list[random_below(nb)] += random_below(2);
		break;
	case 4:
		wr->reg_mr.iova = UINT64_MAX - offset;
		wr->reg_mr.first_byte_offset = (uint32_t)(wr->reg_mr.iova % MODEL_PAGE);
		wr->reg_mr.length = offset + 2;
		break;
	case 5:
		wr->reg_mr.page_list_len = (uint16_t)(random_below(2) * (MODEL_MR_PAGES + 1));
		break;
	default:
		break;
	}
}

static int
bind_region(void)
{
	struct model_region *region = random_region();
	uint32_t pages[MODEL_MR_PAGES + 1] = {0};
	struct rmem_send_wr wr;
	unsigned int pd;
	int status;

	if (region->mr == NULL || ((!region->is_fast || region->is_valid) && !one_in(8)))
		return 0;
	wr = fx_reg(region->mr, run.list, 0, 0, 0);
	random_binding(&wr, pages);
	run.list->page_list[MODEL_MR_PAGES] = fx_addr(run.arena);
	snprintf(run.what, sizeof(run.what), "REG_MR of %u pages, length %u, access %u",
			wr.reg_mr.page_list_len, wr.reg_mr.length, wr.reg_mr.access);
	remember(region->rkey);
	remember(region->lkey);
	status = send_anywhere(&wr, region->pd, &pd);
	if (!model_may_bind(region, pd, &wr))
		return status == RMEM_WC_MW_BIND_ERR ? 0 : -1;
	region->is_valid = true;
	region->access = wr.reg_mr.access;
	region->lkey = region->mr->lkey;
	region->rkey = region->mr->rkey;
	region->iova = wr.reg_mr.iova;
	region->length = wr.reg_mr.length;
	memcpy(region->pages, pages, sizeof(region->pages));
	return status == RMEM_WC_SUCCESS ? 0 : -1;
}

static int
invalidate(void)
{
	struct rmem_send_wr wr =
			fx_inv(random_key(fitting_region(random_below(NB_DOMAINS), 0), false));
	struct model_region *target = model_find(&run.model, wr.invalidate_rkey, false);
	unsigned int pd;
	int status;

	snprintf(run.what, sizeof(run.what), "LOCAL_INV of 0x%x", wr.invalidate_rkey);
	status = send_anywhere(&wr, target != NULL ? target->pd : 0, &pd);
	if (target == NULL || !target->is_fast || target->pd != pd)
		return status == RMEM_WC_MW_BIND_ERR ? 0 : -1;
	target->is_valid = false;
	return status == RMEM_WC_SUCCESS ? 0 : -1;
}

/* WRITE and READ: what local and remote rules allow, and the bytes. */
static int
move(uint8_t opcode, uint32_t local_need, uint32_t remote_need)
{
	static struct model_span local, remote;
	struct pair *pair = &run.pairs[random_below(NB_DOMAINS)];
	const struct model_region *region = fitting_region(pair->pd_b, remote_need);
	struct rmem_sge sge[4] = {{0}};
	struct rmem_send_wr wr = fx_wr(opcode, sge, random_sges(sge, 0, local_need));
	uint32_t length = 0, want;
	int i, status;

	for (i = 0; i < wr.num_sge; i++)
		length += sge[i].length;
	wr.rdma.remote_addr = random_addr(region, length);
	wr.rdma.rkey = random_key(region, false);
	local.length = 0;
	remote.length = 0;
	want = RMEM_WC_SUCCESS;
	if (!model_open_sges(&run.model, 0, sge, wr.num_sge, local_need, &local))
		want = RMEM_WC_LOC_PROT_ERR;
	else if (length != 0 &&
			!model_open(&run.model, wr.rdma.rkey, false, pair->pd_b,
					wr.rdma.remote_addr, length, remote_need, &remote))
		want = RMEM_WC_REM_ACCESS_ERR;
	if (want == RMEM_WC_SUCCESS && model_overlaps(&local, &remote))
		return 0;
	if (want == RMEM_WC_SUCCESS && opcode == RMEM_WR_RDMA_READ &&
			model_overlaps(&remote, &local))
		return 0;
	snprintf(run.what, sizeof(run.what), "opcode %u, %u SGEs, %u bytes, rkey 0x%x", opcode,
			wr.num_sge, length, wr.rdma.rkey);
	status = send_on(pair, &pair->a, &wr);
	if (want == RMEM_WC_SUCCESS && opcode == RMEM_WR_RDMA_READ)
		model_copy(&run.model, &local, &remote, length);
	else if (want == RMEM_WC_SUCCESS)
		model_copy(&run.model, &remote, &local, length);
	return status == (int)want ? 0 : -1;
}

/* What a SEND with these SGEs into a receive with those may end with. */
static uint32_t
allowed_of_send(const struct pair *pair, const struct rmem_sge *from, uint16_t nb_from,
		const struct rmem_sge *to, uint16_t nb_to, struct model_span spans[2])
{
	uint32_t allowed = 0, room = 0, length = 0;
	struct rmem_sge used[4];
	uint16_t i;

	if (!model_open_sges(&run.model, 0, from, nb_from, 0, &spans[0]))
		return MODEL_STATUS(RMEM_WC_LOC_PROT_ERR);
	length = spans[0].length;
	/* Only the bytes that the message fills need to be opened. */
	for (i = 0; i < nb_to; i++) {
		used[i] = to[i];
		used[i].length = RTE_MIN(to[i].length, length - RTE_MIN(room, length));
		room += to[i].length;
	}
	if (room < length)
		allowed |= MODEL_STATUS(RMEM_WC_REM_INV_REQ_ERR);
	if (!model_open_sges(&run.model, pair->pd_b, used, nb_to, RMEM_ACCESS_LOCAL_WRITE,
			    &spans[1]))
		allowed |= MODEL_STATUS(RMEM_WC_REM_OP_ERR);
	if (allowed != 0)
		return allowed;
	spans[1].length = 0;
	if (!model_open_sges(&run.model, pair->pd_b, to, nb_to, RMEM_ACCESS_LOCAL_WRITE, &spans[1]))
		allowed |= MODEL_STATUS(RMEM_WC_REM_OP_ERR);
	spans[1].length = 0;
	model_open_sges(&run.model, pair->pd_b, used, nb_to, RMEM_ACCESS_LOCAL_WRITE, &spans[1]);
	return allowed | MODEL_STATUS(RMEM_WC_SUCCESS);
}

static int
send_message(void)
{
	static struct model_span spans[2];
	struct pair *pair = &run.pairs[random_below(NB_DOMAINS)];
	struct rmem_sge from[4], to[4];
	uint16_t nb_from = random_sges(from, 0, 0);
	uint16_t nb_to = random_sges(to, pair->pd_b, RMEM_ACCESS_LOCAL_WRITE);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, from, nb_from);
	struct rmem_wc wc;
	uint32_t allowed;
	int status;

	spans[0].length = 0;
	spans[1].length = 0;
	allowed = allowed_of_send(pair, from, nb_from, to, nb_to, spans);
	if ((allowed & MODEL_STATUS(RMEM_WC_SUCCESS)) != 0 && model_overlaps(&spans[0], &spans[1]))
		return 0;
	snprintf(run.what, sizeof(run.what), "SEND of %u SGEs into %u", nb_from, nb_to);
	if (fx_post_recv(pair->b.qp, 1, to, nb_to) != 1)
		return -1;
	status = send_on(pair, &pair->a, &wr);
	if (status < 0 || (allowed & MODEL_STATUS(status)) == 0)
		return -1;
	if (status != RMEM_WC_SUCCESS)
		return 0;
	model_copy(&run.model, &spans[1], &spans[0], spans[0].length);
	return fx_poll(pair->b.cq, &wc, 1) == 1 && wc.byte_len == spans[0].length ? 0 : -1;
}

static uint64_t
model_load(const struct model_span *span)
{
	uint64_t value = 0;
	int i;

	for (i = 7; i >= 0; i--)
		value = value << 8 | run.model.bytes[span->places[i]];
	return value;
}

static void
model_store(const struct model_span *span, uint64_t value)
{
	int i;

	for (i = 0; i < 8; i++)
		run.model.bytes[span->places[i]] = (uint8_t)(value >> 8 * i);
}

static int
use_atomic(void)
{
	static struct model_span local, remote;
	struct pair *pair = &run.pairs[random_below(NB_DOMAINS)];
	const struct model_region *target = fitting_region(pair->pd_b, RMEM_ACCESS_REMOTE_ATOMIC);
	const struct model_region *result = fitting_region(0, RMEM_ACCESS_LOCAL_WRITE);
	bool is_add = one_in(2);
	uint32_t allowed = 0;
	struct rmem_sge sge = {.length = 8};
	struct rmem_send_wr wr = fx_atomic(
			is_add ? RMEM_WR_ATOMIC_FETCH_AND_ADD : RMEM_WR_ATOMIC_CMP_AND_SWP, &sge, 0,
			random_key(target, false), random_below(UINT32_MAX));
	uint64_t before;
	int status;

	sge.addr = random_addr(result, 8);
	sge.lkey = random_key(result, true);
	wr.atomic.remote_addr = random_addr(target, 8);
	if (!one_in(8)) /* up to the next multiple of 8 */
		wr.atomic.remote_addr = (wr.atomic.remote_addr + 7) & ~UINT64_C(7);
	wr.atomic.swap = random_below(UINT32_MAX);
	local.length = 0;
	remote.length = 0;
	if (!model_open_sges(&run.model, 0, &sge, 1, RMEM_ACCESS_LOCAL_WRITE, &local)) {
		allowed = MODEL_STATUS(RMEM_WC_LOC_PROT_ERR);
	} else {
		if (!model_open(&run.model, wr.atomic.rkey, false, pair->pd_b,
				    wr.atomic.remote_addr, 8, RMEM_ACCESS_REMOTE_ATOMIC, &remote))
			allowed = MODEL_STATUS(RMEM_WC_REM_ACCESS_ERR);
		if (wr.atomic.remote_addr % 8 != 0 || (allowed == 0 && remote.places[0] % 8 != 0))
			allowed |= MODEL_STATUS(RMEM_WC_REM_INV_REQ_ERR);
	}
	if (allowed == 0) {
		if (model_overlaps(&remote, &local))
			return 0;
		allowed = MODEL_STATUS(RMEM_WC_SUCCESS);
		before = model_load(&remote);
		if (one_in(2) && !is_add)
			wr.atomic.compare_add = before;
		if (is_add)
			model_store(&remote, before + wr.atomic.compare_add);
		else if (before == wr.atomic.compare_add)
			model_store(&remote, wr.atomic.swap);
		model_store(&local, before);
	}
	snprintf(run.what, sizeof(run.what), "atomic %u of 0x%" PRIx64 ", rkey 0x%x", wr.opcode,
			wr.atomic.remote_addr, wr.atomic.rkey);
	status = send_on(pair, &pair->a, &wr);
	return status >= 0 && (allowed & MODEL_STATUS(status)) != 0 ? 0 : -1;
}

int
random_op(void)
{
	switch (random_below(16)) {
	case 0:
		return reg_user();
	case 1:
		return alloc_fast();
	case 2:
		return dereg();
	case 3:
	case 4:
		return bind_region();
	case 5:
		return invalidate();
	case 6:
	case 7:
	case 8:
		return move(RMEM_WR_RDMA_WRITE, 0, RMEM_ACCESS_REMOTE_WRITE);
	case 9:
	case 10:
	case 11:
		return move(RMEM_WR_RDMA_READ, RMEM_ACCESS_LOCAL_WRITE, RMEM_ACCESS_REMOTE_READ);
	case 12:
	case 13:
		return send_message();
	default:
		return use_atomic();
	}
}
