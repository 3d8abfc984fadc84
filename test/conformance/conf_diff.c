/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The same random program on two devices: MRs are registered and released, windows are bound and
 * invalidated, and a peer writes, reads, adds and sends, with valid and invalid keys. Every return
 * value, status, state and byte must be the same; a known deviation is printed and counted. The
 * operations themselves are in conf_diff_ops.c.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "conf_diff.h"

struct diff diff;

/* xorshift64* */
uint32_t
diff_below(uint32_t limit)
{
	diff.random ^= diff.random >> 12;
	diff.random ^= diff.random << 25;
	diff.random ^= diff.random >> 27;
	return (uint32_t)((diff.random * UINT64_C(2685821657736338717)) >> 32) % limit;
}

static bool
one_in(uint32_t n)
{
	return diff_below(n) == 0;
}

static void
open_side(struct diff_world *world, struct fx_side *side, struct rmem_pd *pd)
{
	side->dev = world->dev;
	side->pd = pd;
	side->buf = fx_mem(FX_PAGE, FX_BUF_SIZE);
	side->mr = fx_mr(pd, side->buf, FX_BUF_SIZE, FX_ACCESS & world->info.access);
	side->cq = fx_cq(world->dev, 256);
	side->qp = fx_qp(pd, side->cq, 64);
}

static void
open_world(struct diff_world *world, struct rmem_dev *dev)
{
	unsigned int i;

	memset(world, 0, sizeof(*world));
	world->dev = dev;
	TEST_OK(rmem_dev_info_get(dev, &world->info));
	for (i = 0; i < RTE_DIM(world->pds); i++) {
		world->pds[i] = fx_pd(dev);
	}
	open_side(world, &world->a, world->pds[0]);
	open_side(world, &world->b, world->pds[0]);
	TEST_OK(conf_connect(world->a.qp, world->b.qp));
}

/* Windows first: they keep their MRs. */
static int
close_world(struct diff_world *world)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < DIFF_ITEMS; i++) {
		if (world->mws[i] != NULL && rmem_mw_dealloc(world->mws[i]) != 0)
			ret = -1;
		world->mws[i] = NULL;
	}
	for (i = 0; i < DIFF_ITEMS; i++) {
		if (world->mrs[i] != NULL && rmem_mr_dereg(world->mrs[i]) != 0)
			ret = -1;
		world->mrs[i] = NULL;
	}
	return ret;
}

static int
find_item(enum diff_kind kind)
{
	int i, n = (int)diff_below(DIFF_ITEMS);

	for (i = 0; i < (int)DIFF_ITEMS; i++, n++) {
		if (diff.items[(unsigned int)n % DIFF_ITEMS].kind == kind)
			return (int)((unsigned int)n % DIFF_ITEMS);
	}
	return -1;
}

/* A range that is mostly inside of length bytes. */
static uint64_t
random_offset(uint64_t room, uint32_t length)
{
	switch (diff_below(24)) {
	case 0:
		return (uint64_t)0 - 1 - diff_below(16);
	case 1:
		return room - diff_below(8);
	case 2:
		return (uint64_t)0 - room - 100000;
	case 3: /* one byte past the end */
		return room - length + 1;
	default:
		return diff_below((uint32_t)(room > length ? room - length : 0) + 1);
	}
}

static void
random_mr(struct diff_op *op)
{
	static const uint32_t access[] = {1, 3, 4, 5, 7, 9, 11, 13, 15, 0};

	op->item = find_item(DIFF_NONE);
	op->pd = one_in(8);
	op->start = diff_below(FX_BUF_SIZE - 64);
	op->length = 1 + diff_below(RTE_MIN(FX_BUF_SIZE - op->start, 9000u));
	op->access = access[diff_below(RTE_DIM(access))];
	if (diff.has_mw && !one_in(4))
		op->access |= RMEM_ACCESS_MW_BIND;
	op->has_iova = one_in(3);
}

static void
random_window(struct diff_op *op, enum diff_kind kind)
{
	const struct diff_item *below;

	op->item = find_item(kind);
	op->below = find_item(DIFF_MR);
	if (op->item < 0 || op->below < 0) {
		op->item = -1;
		return;
	}
	below = &diff.items[op->below];
	op->length = 1 + diff_below(RTE_MIN(below->length, 4000u));
	op->offset = random_offset(below->length, op->length);
	op->access = one_in(4) ? diff_below(16) & ~1u
			       : RMEM_ACCESS_REMOTE_READ |
					(below->access &
							(RMEM_ACCESS_REMOTE_WRITE |
									RMEM_ACCESS_REMOTE_ATOMIC));
	if (kind == DIFF_MW2 && one_in(4))
		op->access |= RMEM_ACCESS_ZERO_BASED;
}

/* A request of b with a key of a. */
static void
random_access(struct diff_op *op)
{
	const struct diff_item *item;

	op->item = one_in(3) && diff.has_mw ? find_item(one_in(2) ? DIFF_MW1 : DIFF_MW2)
					    : find_item(DIFF_MR);
	if (op->item < 0)
		return;
	item = &diff.items[op->item];
	op->length = diff_below(RTE_MIN(item->length, 4000u) + 2);
	op->offset = random_offset(item->length, op->length);
	op->tag_flip = one_in(16) ? (uint8_t)(1u << diff_below(8)) : 0;
	op->is_local_bad = one_in(24);
	if (op->type == DIFF_ATOMIC) {
		op->is_local_bad = false; /* seen before the peer changed its memory, or after */
		op->length = 8;
		op->offset &= ~UINT64_C(7);
		if (!item->is_zero_based)
			op->offset += (8 - (item->start & 7)) & 7;
		else if (item->start % 8 != 0)
			op->item = -1; /* no address is valid */
	}
}

static void
random_op(struct diff_op *op)
{
	static const enum diff_type types[] = {DIFF_REG, DIFF_REG, DIFF_DEREG, DIFF_WRITE,
			DIFF_WRITE, DIFF_WRITE, DIFF_WRITE, DIFF_READ, DIFF_READ, DIFF_READ,
			DIFF_ATOMIC, DIFF_ATOMIC, DIFF_SEND, DIFF_SEND, DIFF_ALLOC_MW,
			DIFF_DEALLOC_MW, DIFF_BIND_1, DIFF_BIND_2, DIFF_BIND_2, DIFF_INV,
			DIFF_SEND_INV};

	memset(op, 0, sizeof(*op));
	op->type = types[diff_below(diff.has_mw ? RTE_DIM(types) : 14)];
	op->seed = diff_below(UINT32_MAX);
	switch (op->type) {
	case DIFF_REG:
		random_mr(op);
		break;
	case DIFF_DEREG:
		op->item = one_in(3) ? find_item(DIFF_MR) : -1;
		break;
	case DIFF_ALLOC_MW:
		op->item = find_item(DIFF_NONE);
		op->below = one_in(2);
		break;
	case DIFF_DEALLOC_MW:
		op->item = one_in(4) ? find_item(one_in(2) ? DIFF_MW1 : DIFF_MW2) : -1;
		break;
	case DIFF_BIND_1:
		random_window(op, DIFF_MW1);
		break;
	case DIFF_BIND_2:
		random_window(op, DIFF_MW2);
		if (op->item >= 0 && diff.items[op->item].is_bound && !one_in(6))
			op->type = one_in(2) ? DIFF_INV : DIFF_SEND_INV;
		break;
	case DIFF_INV:
	case DIFF_SEND_INV:
		op->item = find_item(one_in(8) ? DIFF_MR : DIFF_MW2);
		op->tag_flip = one_in(8) ? 1 : 0;
		break;
	default:
		random_access(op);
		break;
	}
}

/* Whether the second status is what the first may be on a device of that profile. */
static bool
is_same_status(int first, int second, bool is_recv)
{
	return first == second || conf_deviates_from(first, second, is_recv);
}

/* Whether only the first device refused it, because of the bounds of a window. */
static bool
is_window_bounds(const struct diff_op *op, const struct diff_outcome *first,
		const struct diff_outcome *second)
{
	if (op->item < 0 ||
			(op->type != DIFF_WRITE && op->type != DIFF_READ &&
					op->type != DIFF_ATOMIC))
		return false;
	return diff.items[op->item].kind >= DIFF_MW1 && first->status == RMEM_WC_REM_ACCESS_ERR &&
			second->status == RMEM_WC_SUCCESS && conf_deviates("window_bounds");
}

static void
compare(const struct diff_op *op, const struct diff_outcome *first,
		const struct diff_outcome *second)
{
	struct diff_world *one = &diff.worlds[0], *two = &diff.worlds[1];

	if (is_window_bounds(op, first, second)) {
		memcpy(two->a.buf, one->a.buf, FX_BUF_SIZE);
		memcpy(two->b.buf, one->b.buf, FX_BUF_SIZE);
		return;
	}
	TEST_EQ(second->ret, first->ret);
	if (op->type == DIFF_READ && op->is_local_bad) {
		/*
		 * The local memory is checked before the peer, or with the response.
		 */
		TEST_EQ(second->status == RMEM_WC_SUCCESS, first->status == RMEM_WC_SUCCESS);
	} else {
		TEST_ASSERT(is_same_status(first->status, second->status, false));
		TEST_ASSERT(is_same_status(first->recv_status, second->recv_status, true));
		TEST_EQ(second->states[0], first->states[0]);
		TEST_EQ(second->states[1], first->states[1]);
	}
	TEST_EQ(second->byte_len, first->byte_len);
	TEST_MEM(two->a.buf, one->a.buf, FX_BUF_SIZE);
	TEST_MEM(two->b.buf, one->b.buf, FX_BUF_SIZE);
}

static void
run_program(uint32_t nb_ops)
{
	struct diff_outcome outcomes[2];
	struct diff_op op;
	uint32_t i;
	int w;

	for (i = 0; i < nb_ops; i++) {
		random_op(&op);
		if (op.item < 0)
			continue;
		for (w = 0; w < 2; w++)
			diff_do(&diff.worlds[w], &op, &outcomes[w], w == 0 ? NULL : &outcomes[0]);
		if (TEST_TRY(compare(&op, &outcomes[0], &outcomes[1])) != TEST_SUCCESS) {
			diff_print(i, &op, outcomes);
			test_stop(TEST_FAILED);
		}
		if (outcomes[0].status == RMEM_WC_SUCCESS && outcomes[0].ret == 0) {
			diff_note(&op);
			diff.nb_done[op.type]++;
		} else {
			diff.nb_refused[op.type]++;
		}
	}
}

static void
print_numbers(void)
{
	unsigned int i;

	for (i = 0; i < DIFF_TYPES; i++)
		printf("  %-12s %6u done alike, %6u refused alike\n", diff_names[i],
				diff.nb_done[i], diff.nb_refused[i]);
}

void
conf_diff(struct rmem_dev *reference, uint64_t seed, uint32_t nb_ops)
{
	int result, w;

	test_set_running("differential");
	fx_setup_none();
	memset(&diff, 0, sizeof(diff));
	diff.random = seed != 0 ? seed : 1;
	result = TEST_TRY(open_world(&diff.worlds[0], reference));
	if (result == TEST_SUCCESS)
		result = TEST_TRY(open_world(&diff.worlds[1], conf.dev));
	diff.has_mw = true;
	for (w = 0; w < 2; w++)
		diff.has_mw &= (diff.worlds[w].info.capa & DIFF_MW_CAPA) == DIFF_MW_CAPA;
	if (result == TEST_SUCCESS)
		result = TEST_TRY(run_program(nb_ops));
	if (close_world(&diff.worlds[0]) != 0 || close_world(&diff.worlds[1]) != 0)
		result = TEST_FAILED;
	if (TEST_TRY(fx_teardown()) != TEST_SUCCESS)
		result = TEST_FAILED;
	printf("seed 0x%" PRIx64 "\n", seed);
	print_numbers();
	TEST_RUN(result);
}
