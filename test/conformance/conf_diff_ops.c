/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The operations of conf_diff.c on one of the devices. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "conf_diff.h"

#define IOVA (UINT64_C(0x33) << 40)

const char *const diff_names[DIFF_TYPES] = {"reg", "dereg", "alloc_mw", "dealloc_mw", "bind_1",
		"bind_2", "local_inv", "send_inv", "write", "read", "atomic", "send"};

/* The status of a completion, or the error instead of one. */
static int
wait_one(struct diff_world *world, struct rmem_cq *cq, struct rmem_wc *wc)
{
	int ret = fx_poll(cq, wc, 1);

	RTE_SET_USED(world);
	return ret == 1 ? wc->status : -ETIMEDOUT;
}

static void
post_and_wait(struct diff_world *world, struct rmem_qp *qp, const struct rmem_send_wr *wr,
		struct diff_outcome *outcome)
{
	struct rmem_send_wr signaled = *wr;
	struct rmem_wc wc;
	int ret;

	signaled.flags |= RMEM_SEND_SIGNALED;
	ret = fx_post(qp, &signaled);
	outcome->ret = ret == 1 ? 0 : ret;
	if (ret == 1)
		outcome->status = wait_one(world, qp->send_cq, &wc);
}

static void
do_reg(struct diff_world *world, const struct diff_op *op, struct diff_outcome *outcome)
{
	/* The same offset in its page: some devices require that. */
	uint64_t iova = op->has_iova ? IOVA + op->start : 0;
	uint8_t *addr = world->a.buf + op->start;

	outcome->ret = rmem_mr_reg(world->pds[op->pd], addr, op->length, iova, op->access,
			&world->mrs[op->item]);
	world->iovas[op->item] = iova != 0 ? iova : fx_addr(addr);
	if (outcome->ret == 0)
		world->rkeys[op->item] = world->mrs[op->item]->rkey;
}

static void
do_dereg(struct diff_world *world, const struct diff_op *op, struct diff_outcome *outcome)
{
	outcome->ret = rmem_mr_dereg(world->mrs[op->item]);
	if (outcome->ret == 0)
		world->mrs[op->item] = NULL;
}

static void
do_alloc_mw(struct diff_world *world, const struct diff_op *op, struct diff_outcome *outcome)
{
	outcome->ret = rmem_mw_alloc(world->pds[0], op->below ? RMEM_MW_TYPE_2 : RMEM_MW_TYPE_1,
			&world->mws[op->item]);
	world->iovas[op->item] = fx_addr(world->a.buf);
	if (outcome->ret == 0)
		world->rkeys[op->item] = world->mws[op->item]->rkey;
}

static void
do_dealloc_mw(struct diff_world *world, const struct diff_op *op, struct diff_outcome *outcome)
{
	outcome->ret = rmem_mw_dealloc(world->mws[op->item]);
	if (outcome->ret == 0)
		world->mws[op->item] = NULL;
}

static void
do_bind_1(struct diff_world *world, const struct diff_op *op, struct diff_outcome *outcome)
{
	const struct rmem_mw_bind bind = {.flags = RMEM_SEND_SIGNALED,
			.bind_info = {.mr = world->mrs[op->below],
					.addr = world->iovas[op->below] + op->offset,
					.length = op->length,
					.access = op->access}};
	struct rmem_wc wc;

	outcome->ret = rmem_mw_bind(world->a.qp, world->mws[op->item], &bind);
	if (outcome->ret == 0)
		outcome->status = wait_one(world, world->a.cq, &wc);
	if (outcome->ret != 0 || outcome->status != RMEM_WC_SUCCESS)
		return;
	world->iovas[op->item] = bind.bind_info.addr;
	world->rkeys[op->item] = world->mws[op->item]->rkey;
}

static void
do_bind_2(struct diff_world *world, const struct diff_op *op, struct diff_outcome *outcome)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_BIND_MW, NULL, 0);

	wr.bind_mw.mw = world->mws[op->item];
	wr.bind_mw.mr = world->mrs[op->below];
	wr.bind_mw.addr = world->iovas[op->below] + op->offset;
	wr.bind_mw.length = op->length;
	wr.bind_mw.access = op->access;
	wr.bind_mw.key_tag = rmem_rkey_next_tag(world->rkeys[op->item]);
	post_and_wait(world, world->a.qp, &wr, outcome);
	if (outcome->ret != 0 || outcome->status != RMEM_WC_SUCCESS)
		return;
	world->iovas[op->item] = wr.bind_mw.addr;
	world->rkeys[op->item] = world->mws[op->item]->rkey;
	if ((op->access & RMEM_ACCESS_ZERO_BASED) != 0)
		world->iovas[op->item] = 0;
}

static void
do_inv(struct diff_world *world, const struct diff_op *op, struct diff_outcome *outcome)
{
	const struct rmem_send_wr wr = fx_inv(world->rkeys[op->item] ^ op->tag_flip);

	post_and_wait(world, world->a.qp, &wr, outcome);
}

/* b's message invalidates a's key, and a's receive reports it. */
static void
do_send_inv(struct diff_world *world, const struct diff_op *op, struct diff_outcome *outcome)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND_WITH_INV, NULL, 0);
	struct rmem_wc wc;

	wr.invalidate_rkey = world->rkeys[op->item] ^ op->tag_flip;
	fx_post_recv(world->a.qp, 1, NULL, 0);
	post_and_wait(world, world->b.qp, &wr, outcome);
	if (outcome->ret == 0)
		outcome->recv_status = wait_one(world, world->a.cq, &wc);
}

static void
do_access(struct diff_world *world, const struct diff_op *op, struct diff_outcome *outcome)
{
	static const uint8_t opcodes[DIFF_TYPES] = {[DIFF_WRITE] = RMEM_WR_RDMA_WRITE,
			[DIFF_READ] = RMEM_WR_RDMA_READ,
			[DIFF_ATOMIC] = RMEM_WR_ATOMIC_FETCH_AND_ADD};
	struct rmem_sge sge = fx_sge(world->b.mr, 64, op->length);
	uint64_t addr = world->iovas[op->item] + op->offset;
	struct rmem_send_wr wr;

	if (op->is_local_bad)
		sge.addr += FX_BUF_SIZE;
	wr = conf_request(opcodes[op->type], &sge, addr, world->rkeys[op->item] ^ op->tag_flip);
	if (op->type == DIFF_ATOMIC)
		wr.atomic.compare_add = op->seed;
	post_and_wait(world, world->b.qp, &wr, outcome);
}

/* Into an MR of a's by its lkey; a window has none. */
static void
do_send(struct diff_world *world, const struct diff_op *op, struct diff_outcome *outcome)
{
	const struct rmem_sge from = fx_sge(world->b.mr, 64, op->length);
	const struct rmem_mr *mr =
			world->mrs[op->item] != NULL ? world->mrs[op->item] : world->a.mr;
	struct rmem_sge to = {.addr = world->iovas[op->item] + op->offset,
			.length = op->length + (op->is_local_bad ? 0 : op->seed % 7),
			.lkey = mr->lkey ^ op->tag_flip};
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);
	struct rmem_wc wc;

	if (op->is_local_bad && to.length != 0)
		to.length--;
	fx_post_recv(world->a.qp, 1, &to, 1);
	post_and_wait(world, world->b.qp, &wr, outcome);
	outcome->recv_status = wait_one(world, world->a.cq, &wc);
	if (outcome->recv_status == RMEM_WC_SUCCESS)
		outcome->byte_len = wc.byte_len;
}

static void
get_states(struct diff_world *world, struct diff_outcome *outcome)
{
	outcome->states[0] = fx_state(world->a.qp);
	outcome->states[1] = fx_state(world->b.qp);
}

/* A QP may fail after the completion of its peer: wait, if all other results are equal. */
static void
wait_states(struct diff_world *world, struct diff_outcome *outcome,
		const struct diff_outcome *other)
{
	uint64_t deadline = fx_deadline();
	unsigned int spins = 0;

	get_states(world, outcome);
	if (other == NULL || outcome->ret != other->ret ||
			(outcome->status == RMEM_WC_SUCCESS) != (other->status == RMEM_WC_SUCCESS))
		return;
	while (memcmp(outcome->states, other->states, sizeof(outcome->states)) != 0 &&
			!fx_is_late(deadline)) {
		fx_relax(&spins);
		get_states(world, outcome);
	}
}

void
diff_do(struct diff_world *world, const struct diff_op *op, struct diff_outcome *outcome,
		const struct diff_outcome *other)
{
	static void (*const steps[DIFF_TYPES])(struct diff_world * world, const struct diff_op *op,
			struct diff_outcome *outcome) = {do_reg, do_dereg, do_alloc_mw,
			do_dealloc_mw, do_bind_1, do_bind_2, do_inv, do_send_inv, do_access,
			do_access, do_access, do_send};

	memset(outcome, 0, sizeof(*outcome));
	fx_fill(world->b.buf, FX_BUF_SIZE, op->seed);
	steps[op->type](world, op, outcome);
	TEST_ASSERT(outcome->status != -ETIMEDOUT && outcome->recv_status != -ETIMEDOUT);
	if (op->type == DIFF_READ && op->is_local_bad)
		other = NULL; /* on either side */
	wait_states(world, outcome, other);
	if (outcome->ret != 0 || outcome->status != RMEM_WC_SUCCESS ||
			outcome->recv_status != RMEM_WC_SUCCESS)
		conf_reconnect_pair(world->a.qp, world->b.qp);
}

void
diff_note(const struct diff_op *op)
{
	struct diff_item *item = &diff.items[op->item];

	item->is_bound = op->type == DIFF_BIND_2 ||
			(item->is_bound && op->type != DIFF_INV && op->type != DIFF_SEND_INV &&
					op->type != DIFF_DEALLOC_MW);
	switch (op->type) {
	case DIFF_REG:
		item->kind = DIFF_MR;
		item->start = op->start;
		item->length = op->length;
		item->access = op->access;
		item->is_zero_based = false;
		break;
	case DIFF_ALLOC_MW:
		item->kind = op->below ? DIFF_MW2 : DIFF_MW1;
		item->start = 0;
		item->length = 64;
		item->is_zero_based = false;
		break;
	case DIFF_BIND_1:
	case DIFF_BIND_2:
		item->start = diff.items[op->below].start + (uint32_t)op->offset;
		item->length = op->length;
		item->is_zero_based = (op->access & RMEM_ACCESS_ZERO_BASED) != 0;
		break;
	case DIFF_DEREG:
	case DIFF_DEALLOC_MW:
		item->kind = DIFF_NONE;
		break;
	default:
		break;
	}
}

void
diff_print(uint32_t number, const struct diff_op *op, const struct diff_outcome outcomes[2])
{
	int w;

	printf("operation %u, %s: item %d (kind %d) below %d offset 0x%" PRIx64
	       " length %u access 0x%x pd %u iova %d tag flip 0x%x bad local %d\n",
			number, diff_names[op->type], op->item, (int)diff.items[op->item].kind,
			op->below, op->offset, op->length, op->access, op->pd, op->has_iova,
			op->tag_flip, op->is_local_bad);
	for (w = 0; w < 2; w++)
		printf("  %s: return %d, %s, receive %s, %u bytes, states %d %d\n",
				diff.worlds[w].dev->name, outcomes[w].ret,
				rmem_wc_status_str(outcomes[w].status),
				rmem_wc_status_str(outcomes[w].recv_status), outcomes[w].byte_len,
				outcomes[w].states[0], outcomes[w].states[1]);
}
