/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Every opcode uses an indirect key on either side, byte for byte as in the model. */

#include <string.h>

#include "fixture.h"
#include "umr_layout.h"

#define IOVA      UINT64_C(0x123457)
#define NB_RANDOM 300u
#define NB_MOVES  6u

static struct layout plain, whole, scattered, list;

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
	layout_plain(&plain, fx.a.mr, 0, LAYOUT_MAX);
}

static void
setup_list(void)
{
	setup();
	TEST_STATUS(bind_list(), RMEM_WC_SUCCESS);
}

TEST(umr, every_opcode_uses_lists_and_strided_blocks)
{
	layout_check_all(&list);
	TEST_STATUS(fx_invalidate(list.mr->rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(bind_blocks(), RMEM_WC_SUCCESS);
	TEST_EQ(list.length, 16 * 13);
	layout_check_all(&list);
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

	TEST_ASSERT(nb <= RTE_DIM(to));
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

	for (nb = 2; nb <= 12; nb += 2)
		check_two_lists(nb, second, RMEM_WC_SUCCESS);
	check_two_lists(8, second, RMEM_WC_REM_ACCESS_ERR);
	second = fx_mr(fx.b.pd, fx.b.buf, FX_BUF_SIZE, FX_ACCESS);
	check_two_lists(12, second, RMEM_WC_REM_ACCESS_ERR);
}

/* Place 72 of the key is at 2083 of the buffer: 8-aligned in the key only. */
TEST(umr, atomic_needs_eight_aligned_bytes_of_one_entry)
{
	struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	uint64_t *word = (uint64_t *)(void *)(fx.a.buf + 1024);
	struct rmem_mkey_entry entries[] = {fx_entry(fx.a.mr, 4, 4), fx_entry(fx.a.mr, 8, 4),
			fx_entry(fx.a.mr, 1024, 16), fx_entry(fx.a.mr, 2001, 16)};
	struct rmem_send_wr wr;

	TEST_STATUS(fx_invalidate(list.mr->rkey), RMEM_WC_SUCCESS);
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

TEST_WITH(umr, random_keys_match_the_model, setup)
{
	static const uint8_t order[] = {9, 7, 5, 3};
	const struct layout *const below[] = {&plain, &whole, &scattered};
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf + 40000, LAYOUT_MAX, FX_ACCESS);
	uint64_t random = layout_seed();
	uint32_t i, j;

	layout_plain(&whole, mr, 40000, LAYOUT_MAX);
	layout_pages(&scattered, fx_fast_mr(fx.a.pd, 4), order, 4, 100 + 2048, LAYOUT_MAX);
	for (i = 0; i < NB_RANDOM; i++) {
		TEST_STATUS(layout_bind_random(&list, list.mr, below, RTE_DIM(below), &random),
				RMEM_WC_SUCCESS);
		for (j = 0; j < NB_MOVES; j++) {
			uint32_t offset = layout_random(&random, list.length);
			uint32_t length = 1 + layout_random(&random, list.length - offset);

			layout_check(&list, layout_movers[layout_random(&random, 5)],
					layout_random(&random, 2) ? LAYOUT_LOCAL : LAYOUT_REMOTE,
					offset, length);
		}
		TEST_STATUS(fx_invalidate(list.mr->rkey), RMEM_WC_SUCCESS);
	}
}

/* An error below an indirect key is the status of the access, which then copies no byte. */

#define NB_ENTRIES 4u
#define PIECE      40u
#define ALL        (NB_ENTRIES * PIECE)
#define WHY_BELOW  8u

static struct rmem_mr *mkey;
static struct rmem_mkey_entry entries[NB_ENTRIES];

/* The third entry is of fx.fast, which cases invalidate. */
static void
setup_below(void)
{
	uint32_t i;

	fx_setup_fast();
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	mkey = fx_mkey(fx.a.pd, NB_ENTRIES);
	for (i = 0; i < NB_ENTRIES; i++)
		entries[i] = fx_entry(fx.a.mr, i * 100, PIECE);
	entries[2].addr = fx_addr(fx.fast.pages) + 7;
	entries[2].lkey = fx.fast.mr->lkey;
}

static int
bind_good(void)
{
	const struct rmem_send_wr wr = fx_umr(mkey, entries, NB_ENTRIES, IOVA);

	return fx_send(fx.a.qp, &wr);
}

/* One byte more, of an MR that is as large as one may be. */
TEST_WITH(umr, umr_beyond_max_mr_size_is_refused, setup_below)
{
	struct rmem_dev *dev = fx_dev("soft79", "max_mr_size=65536");
	struct rmem_pd *pd = dev == NULL ? NULL : fx_pd(dev);
	struct rmem_mkey_entry parts[2];
	struct fx_side a, b;
	struct rmem_mr *mr;
	struct rmem_send_wr wr;

	TEST_ASSERT(pd != NULL);
	fx_side_open(&a, dev, pd);
	fx_side_open(&b, dev, pd);
	TEST_OK(fx_connect_pair(a.qp, b.qp));
	mr = fx_mkey(pd, 2);
	parts[0] = fx_entry(a.mr, 0, FX_BUF_SIZE - 1);
	parts[1] = fx_entry(a.mr, 0, 1);
	wr = fx_umr(mr, parts, 2, 0);
	TEST_STATUS(fx_send(a.qp, &wr), RMEM_WC_SUCCESS);
	wr = fx_inv(mr->rkey);
	TEST_STATUS(fx_send(a.qp, &wr), RMEM_WC_SUCCESS);
	parts[1].length = 2;
	wr = fx_umr(mr, parts, 2, 0);
	TEST_STATUS(fx_send(a.qp, &wr), RMEM_WC_MW_BIND_ERR);
}

/* Neither a WRITE of the peer nor a local READ copies a byte, and vendor_err has the reason. */
static void
expect_refused_below(void)
{
	const struct rmem_sge sge = {IOVA, ALL, mkey->lkey};
	const struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_READ, &sge, &fx.b);

	fx_fill(fx.b.buf, FX_BUF_SIZE, 9);
	memset(fx.a.buf, 0, FX_BUF_SIZE);
	TEST_STATUS(fx_peer_write(IOVA, ALL, mkey->rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(fx.wc.vendor_err, WHY_BELOW);
	fx_reconnect();
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_LOC_PROT_ERR);
	TEST_EQ(fx.wc.vendor_err, WHY_BELOW);
	fx_reconnect();
	TEST_ASSERT(fx_is_zero(fx.a.buf, FX_BUF_SIZE));
}

TEST_WITH(umr, released_key_of_an_entry_refuses_its_range, setup_below)
{
	TEST_STATUS(bind_good(), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	expect_refused_below();
	/* Under another tag it is another key. */
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	expect_refused_below();
	TEST_OK(fx_release(fx.fast.mr));
	expect_refused_below();
	/* Requests without a byte of the third piece still succeed. */
	TEST_STATUS(fx_peer_write(IOVA, 2 * PIECE, mkey->rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(IOVA + 3 * PIECE, PIECE, mkey->rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(IOVA, 2 * PIECE + 1, mkey->rkey), RMEM_WC_REM_ACCESS_ERR);
	fx_reconnect();
	TEST_STATUS(fx_peer_write(IOVA + 3 * PIECE - 1, 1, mkey->rkey), RMEM_WC_REM_ACCESS_ERR);
}

/* The same key again, but without LOCAL_WRITE, or shorter. */
TEST_WITH(umr, reduced_key_of_an_entry_refuses_its_range, setup_below)
{
	struct rmem_send_wr wr = fx_reg(fx.fast.mr, fx.fast.list, FX_FAST_PAGES,
			fx_addr(fx.fast.pages), FX_FAST_PAGES * FX_PAGE);

	TEST_STATUS(bind_good(), RMEM_WC_SUCCESS);
	wr.reg_mr.key_tag = (uint8_t)fx.fast.mr->rkey;
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	wr.reg_mr.access = RMEM_ACCESS_REMOTE_READ;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	expect_refused_below();
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	wr.reg_mr.access = FX_ACCESS;
	wr.reg_mr.length = 46;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	expect_refused_below();
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	wr.reg_mr.length = 47;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(IOVA, ALL, mkey->rkey), RMEM_WC_SUCCESS);
}

/* Of a range over several rounds, the last byte counts as well. */
TEST_WITH(umr, strided_entry_beyond_its_key_by_one_byte_is_refused, setup_below)
{
	enum {
		ROUNDS = 3,
		LENGTH = ROUNDS * PIECE
	};
	struct rmem_send_wr reg = fx_reg(fx.fast.mr, fx.fast.list, FX_FAST_PAGES,
			fx_addr(fx.fast.pages), FX_FAST_PAGES * FX_PAGE);
	struct rmem_send_wr wr = fx_umr(mkey, &entries[2], 1, IOVA);

	wr.umr.repeat_count = ROUNDS;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(IOVA, LENGTH, mkey->rkey), RMEM_WC_SUCCESS);
	reg.reg_mr.key_tag = (uint8_t)fx.fast.mr->rkey;
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	reg.reg_mr.length = 7 + LENGTH - 1;
	TEST_STATUS(fx_send(fx.a.qp, &reg), RMEM_WC_SUCCESS);
	fx_fill(fx.b.buf, FX_BUF_SIZE, 9);
	memset(fx.fast.pages, 0, LENGTH + 8);
	TEST_STATUS(fx_peer_write(IOVA, LENGTH, mkey->rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_ASSERT(fx_is_zero(fx.fast.pages, LENGTH + 8));
	fx_reconnect();
	TEST_STATUS(fx_peer_write(IOVA, LENGTH - 1, mkey->rkey), RMEM_WC_SUCCESS);
}

/* A receive with such an SGE fails like with any invalid one. */
TEST_WITH(umr, receive_through_a_released_key_fails, setup_below)
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, ALL);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);
	struct rmem_sge to;

	TEST_STATUS(bind_good(), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_unbind(), RMEM_WC_SUCCESS);
	to = (struct rmem_sge){IOVA, ALL, mkey->lkey};
	TEST_EQ(fx_post_recv(fx.a.qp, 1, &to, 1), 1);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_REM_OP_ERR);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_LOC_PROT_ERR);
	TEST_EQ(fx.wc.vendor_err, WHY_BELOW);
	TEST_ASSERT(fx_is_zero(fx.a.buf, FX_BUF_SIZE));
}

TEST_SUITE(umr, setup_list, fx_teardown);
