/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Every opcode uses an indirect key on either side, byte for byte as in the model. */

#include <string.h>

#include "fixture.h"
#include "test.h"
#include "umr_layout.h"

#define IOVA      UINT64_C(0x123457)
#define NB_RANDOM 300u
#define NB_MOVES  6u

static struct layout plain, whole, scattered, list;

static const uint8_t movers[] = {RMEM_WR_RDMA_WRITE, RMEM_WR_RDMA_WRITE_WITH_IMM, RMEM_WR_SEND,
		RMEM_WR_SEND_WITH_IMM, RMEM_WR_RDMA_READ};

/* A list of odd pieces, out of order. */
static int
bind_list(void)
{
	const struct layout *const below = &plain;
	const struct rmem_mkey_entry entries[] = {
			fx_entry(fx.a.mr, 2011, 77),
			fx_entry(fx.a.mr, 3, 1),
			fx_entry(fx.a.mr, 1024, 64),
			fx_entry(fx.a.mr, 4000, 13),
	};

	return layout_bind(&list, list.mr, &below, 1, entries, RTE_DIM(entries), 1, IOVA);
}

/* Blocks of 8 and of 5 bytes in turn, each 16 times, at a distance. */
static int
bind_blocks(void)
{
	const struct layout *const below = &plain;
	struct rmem_mkey_entry entries[] = {
			fx_entry(fx.a.mr, 8, 8),
			fx_entry(fx.a.mr, 2001, 5),
	};

	entries[0].skip = 24;
	entries[1].skip = 3;
	return layout_bind(&list, list.mr, &below, 1, entries, RTE_DIM(entries), 16, IOVA);
}

static void
setup(void)
{
	fx_setup();
	list.mr = fx_mkey(fx.a.pd, LAYOUT_ENTRIES);
	TEST_ASSERT(list.mr != NULL);
	layout_plain(&plain, fx.a.mr, 0, LAYOUT_MAX);
}

static void
setup_list(void)
{
	setup();
	TEST_STATUS(bind_list(), RMEM_WC_SUCCESS);
}

/* All of it, within one piece, and across each border. */
static void
check_all(uint8_t opcode, enum layout_side side)
{
	uint32_t length = list.length;

	layout_check(&list, opcode, side, 0, length);
	layout_check(&list, opcode, side, 5, 9);
	layout_check(&list, opcode, side, 76, 2);
	layout_check(&list, opcode, side, 77, 1);
	layout_check(&list, opcode, side, length - 1, 1);
	layout_check(&list, opcode, side, 1, length - 2);
}

TEST(umr, write_uses_a_list)
{
	check_all(RMEM_WR_RDMA_WRITE, LAYOUT_LOCAL);
	check_all(RMEM_WR_RDMA_WRITE, LAYOUT_REMOTE);
}

TEST(umr, write_with_imm_uses_a_list)
{
	check_all(RMEM_WR_RDMA_WRITE_WITH_IMM, LAYOUT_LOCAL);
	check_all(RMEM_WR_RDMA_WRITE_WITH_IMM, LAYOUT_REMOTE);
}

TEST(umr, send_uses_a_list)
{
	check_all(RMEM_WR_SEND, LAYOUT_LOCAL);
	check_all(RMEM_WR_SEND, LAYOUT_REMOTE);
	check_all(RMEM_WR_SEND_WITH_IMM, LAYOUT_LOCAL);
	check_all(RMEM_WR_SEND_WITH_IMM, LAYOUT_REMOTE);
}

TEST(umr, read_uses_a_list)
{
	check_all(RMEM_WR_RDMA_READ, LAYOUT_LOCAL);
	check_all(RMEM_WR_RDMA_READ, LAYOUT_REMOTE);
}

TEST_WITH(umr, every_opcode_uses_strided_blocks, setup)
{
	unsigned int i;

	TEST_STATUS(bind_blocks(), RMEM_WC_SUCCESS);
	TEST_EQ(list.length, 16 * 13);
	for (i = 0; i < RTE_DIM(movers); i++) {
		check_all(movers[i], LAYOUT_LOCAL);
		check_all(movers[i], LAYOUT_REMOTE);
	}
}

/* Between two indirect keys, one of them a part of an SGE list. */
TEST(umr, write_from_key_to_key)
{
	const struct rmem_mkey_entry to[] = {
			fx_entry(fx.b.mr, 500, 31), fx_entry(fx.b.mr, 100, 59)};
	struct rmem_mr *mr = fx_mkey(fx.b.pd, 2);
	struct rmem_sge sges[3];
	struct rmem_send_wr wr;
	uint8_t want[90];
	uint32_t i;

	TEST_ASSERT(mr != NULL);
	wr = fx_umr(mr, to, 2, 0);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	fx_fill(fx.a.buf, LAYOUT_MAX, 6);
	sges[0] = fx_sge(fx.a.mr, 3000, 3);
	sges[1] = (struct rmem_sge){IOVA + 2, 80, list.mr->lkey};
	sges[2] = fx_sge(fx.a.mr, 3100, 7);
	memcpy(want, fx.a.buf + 3000, 3);
	for (i = 0; i < 80; i++)
		want[3 + i] = fx.a.buf[list.place[2 + i]];
	memcpy(want + 83, fx.a.buf + 3100, 7);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, sges, 0, mr->rkey);
	wr.num_sge = 3;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf + 500, want, 31);
	TEST_MEM(fx.b.buf + 100, want + 31, 59);
}

/* Lists of nb entries of 16 bytes, of two MRs in turn, on both sides of a burst of two WRITEs. */
static void
check_two_lists(uint32_t nb, struct rmem_mr *second, int status)
{
	struct rmem_mr *mkeys[] = {fx_mkey(fx.a.pd, nb), fx_mkey(fx.b.pd, nb)};
	struct rmem_mkey_entry from[16], to[16];
	struct rmem_send_wr wrs[2], wr;
	struct rmem_sge sges[2];
	uint32_t i;

	TEST_ASSERT(mkeys[0] != NULL && mkeys[1] != NULL && nb <= RTE_DIM(to));
	for (i = 0; i < nb; i++) {
		from[i] = fx_entry(fx.a.mr, 1000 + 64 * i, 16);
		to[i] = fx_entry(i % 2 == 0 ? fx.b.mr : second, 32 * i, 16);
	}
	wr = fx_umr(mkeys[0], from, nb, 0);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	wr = fx_umr(mkeys[1], to, nb, 0);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	if (status != RMEM_WC_SUCCESS)
		TEST_OK(fx_release(second));
	memset(fx.b.buf, 0, FX_BUF_SIZE);
	fx_fill(fx.a.buf, LAYOUT_MAX, nb);
	sges[0] = (struct rmem_sge){0, 16 * nb, mkeys[0]->lkey};
	sges[1] = fx_sge(fx.a.mr, 0, 16 * nb);
	wrs[0] = fx_rdma(RMEM_WR_RDMA_WRITE, &sges[0], 0, mkeys[1]->rkey);
	wrs[1] = fx_rdma(RMEM_WR_RDMA_WRITE, &sges[1], 0, mkeys[1]->rkey);
	wrs[0].flags = wrs[1].flags = RMEM_SEND_SIGNALED;
	TEST_EQ(rmem_post_send(fx.a.qp, &wrs[0], 1), 1);
	TEST_STATUS(fx_wait(fx.a.cq), status);
	if (status != RMEM_WC_SUCCESS) {
		TEST_ASSERT(fx_is_zero(fx.b.buf, FX_BUF_SIZE));
		fx_reconnect();
		return;
	}
	for (i = 0; i < nb; i++)
		TEST_MEM(fx.b.buf + 32 * i, fx.a.buf + 1000 + 64 * i, 16);
	TEST_EQ(rmem_post_send(fx.a.qp, wrs, 2), 2);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	for (i = 0; i < nb; i++)
		TEST_MEM(fx.b.buf + 32 * i, fx.a.buf + 16 * i, 16);
}

TEST(umr, keys_below_a_list_are_checked_before_any_copy)
{
	struct rmem_mr *second = fx_mr(fx.b.pd, fx.b.buf, FX_BUF_SIZE, FX_ACCESS);
	uint32_t nb;

	TEST_ASSERT(second != NULL);
	for (nb = 2; nb <= 12; nb += 2)
		check_two_lists(nb, second, RMEM_WC_SUCCESS);
	check_two_lists(8, second, RMEM_WC_REM_ACCESS_ERR);
	second = fx_mr(fx.b.pd, fx.b.buf, FX_BUF_SIZE, FX_ACCESS);
	TEST_ASSERT(second != NULL);
	check_two_lists(12, second, RMEM_WC_REM_ACCESS_ERR);
}

/* Place 72 of the key is at 2083 of the buffer: 8-aligned in the key only. */
TEST(umr, atomic_needs_eight_aligned_bytes_of_one_entry)
{
	struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	uint64_t *word = (uint64_t *)(void *)(fx.a.buf + 1024);
	struct rmem_mkey_entry entries[] = {fx_entry(fx.a.mr, 4, 4), fx_entry(fx.a.mr, 8, 4),
			fx_entry(fx.a.mr, 1024, 16), fx_entry(fx.a.mr, 2001, 16)};
	struct rmem_send_wr wr = fx_inv(list.mr->rkey);

	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	wr = fx_umr(list.mr, entries, RTE_DIM(entries), 0);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	*word = 5;
	wr = fx_atomic(RMEM_WR_ATOMIC_FETCH_AND_ADD, &sge, 8, list.mr->rkey, 3);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(*word, 8);
	wr = fx_atomic(RMEM_WR_ATOMIC_CMP_AND_SWP, &sge, 8, list.mr->rkey, 8);
	wr.atomic.swap = 11;
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(*word, 11);
	/* In two pieces, and at an odd address. */
	wr = fx_atomic(RMEM_WR_ATOMIC_FETCH_AND_ADD, &sge, 0, list.mr->rkey, 3);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_REM_INV_REQ_ERR);
	fx_reconnect();
	wr = fx_atomic(RMEM_WR_ATOMIC_FETCH_AND_ADD, &sge, 24, list.mr->rkey, 3);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_REM_INV_REQ_ERR);
	TEST_ASSERT(fx_is_zero(fx.a.buf, 16) && fx_is_zero(fx.a.buf + 2000, 20));
}

TEST(umr, result_of_an_atomic_uses_a_list)
{
	const struct rmem_sge sge = {IOVA + 74, 8, list.mr->lkey};
	const uint64_t before = UINT64_C(0x1122334455667788);
	const struct rmem_send_wr wr = fx_atomic(
			RMEM_WR_ATOMIC_FETCH_AND_ADD, &sge, fx_addr(fx.b.buf), fx.b.mr->rkey, 1);
	uint32_t i;

	memcpy(fx.b.buf, &before, sizeof(before));
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	for (i = 0; i < 8; i++)
		TEST_EQ(fx.a.buf[list.place[74 + i]], ((const uint8_t *)&before)[i]);
}

/* Pages in another order than in the buffer, by a fast-register MR. */
static void
bind_scattered(void)
{
	struct rmem_mr *mr = fx_fast_mr(fx.a.pd, 4);
	struct rmem_fast_reg_page_list *pages = fx_page_list(fx.a.dev, 4);
	struct rmem_send_wr wr;
	uint32_t i;

	TEST_ASSERT(mr != NULL && pages != NULL);
	for (i = 0; i < 4; i++)
		pages->page_list[i] = fx_addr(fx.a.buf) + (9 - 2 * i) * FX_PAGE;
	wr = fx_reg(mr, pages, 4, 100 + 2048, LAYOUT_MAX);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	scattered.mr = mr;
	scattered.iova = 100 + 2048;
	scattered.length = LAYOUT_MAX;
	for (i = 0; i < LAYOUT_MAX; i++)
		scattered.place[i] =
				(9 - 2 * ((i + 2148) / FX_PAGE)) * FX_PAGE + (i + 2148) % FX_PAGE;
}

TEST_WITH(umr, random_keys_match_the_model, setup)
{
	const struct layout *const below[] = {&plain, &whole, &scattered};
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf + 40000, LAYOUT_MAX, FX_ACCESS);
	uint64_t random = layout_seed();
	uint32_t i, j;

	TEST_ASSERT(mr != NULL);
	layout_plain(&whole, mr, 40000, LAYOUT_MAX);
	bind_scattered();
	for (i = 0; i < NB_RANDOM; i++) {
		struct rmem_send_wr inv;

		TEST_STATUS(layout_bind_random(&list, list.mr, below, RTE_DIM(below), &random),
				RMEM_WC_SUCCESS);
		for (j = 0; j < NB_MOVES; j++) {
			uint32_t offset = layout_random(&random, list.length);
			uint32_t length = 1 + layout_random(&random, list.length - offset);

			layout_check(&list, movers[layout_random(&random, 5)],
					layout_random(&random, 2) ? LAYOUT_LOCAL : LAYOUT_REMOTE,
					offset, length);
		}
		inv = fx_inv(list.mr->rkey);
		TEST_STATUS(fx_send(fx.a.qp, &inv), RMEM_WC_SUCCESS);
	}
}

TEST_SUITE(umr, setup_list, fx_teardown);
