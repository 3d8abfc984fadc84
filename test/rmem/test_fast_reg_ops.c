/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Every opcode works through scattered fast-register MRs, on either end. */

#include <string.h>

#include "fixture.h"
#include "test.h"

#define IOVA   UINT64_C(0x345600f01) /* an odd place in its page */
#define LENGTH (2u * FX_PAGE + 100u) /* over three pages */

/* Pages 6, 1 and 4 in this order. */
static const uint8_t order[] = {6, 1, 4};

static uint8_t *
byte_at(uint32_t n)
{
	uint32_t at = (uint32_t)(IOVA % FX_PAGE) + n;

	return fx.fast.pages + order[at / FX_PAGE] * FX_PAGE + at % FX_PAGE;
}

static void
scatter(const uint8_t *from, uint32_t length)
{
	uint32_t i;

	for (i = 0; i < length; i++)
		*byte_at(i) = from[i];
}

static void
expect_bytes(const uint8_t *want, uint32_t first, uint32_t length)
{
	uint32_t i;

	for (i = 0; i < length; i++)
		TEST_EQ(*byte_at(first + i), want[i]);
}

static void
setup_bound(void)
{
	struct rmem_send_wr wr;
	unsigned int i;

	fx_setup_fast();
	for (i = 0; i < RTE_DIM(order); i++)
		fx.fast.list->page_list[i] = fx_addr(fx.fast.pages + order[i] * FX_PAGE);
	wr = fx_reg(fx.fast.mr, fx.fast.list, RTE_DIM(order), IOVA, LENGTH);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	fx_fill(fx.b.buf, LENGTH, 11);
}

static struct rmem_sge
fast_sge(uint32_t first, uint32_t length)
{
	const struct rmem_sge sge = {
			.addr = IOVA + first,
			.length = length,
			.lkey = fx.fast.mr->lkey,
	};

	return sge;
}

TEST(fastreg_ops, peer_writes_by_rkey)
{
	TEST_STATUS(fx_peer_write(IOVA, LENGTH, fx.fast.mr->rkey), RMEM_WC_SUCCESS);
	expect_bytes(fx.b.buf, 0, LENGTH);
}

TEST(fastreg_ops, peer_writes_with_immediate_by_rkey)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, LENGTH);
	struct rmem_send_wr wr = fx_rdma(RMEM_WR_RDMA_WRITE_WITH_IMM, &sge, IOVA, fx.fast.mr->rkey);

	wr.imm_data = 0x1234;
	TEST_EQ(fx_post_recv(fx.a.qp, 5, NULL, 0), 1);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.imm_data, 0x1234);
	expect_bytes(fx.b.buf, 0, LENGTH);
}

TEST(fastreg_ops, peer_reads_by_rkey)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, LENGTH, LENGTH);
	const struct rmem_send_wr wr = fx_rdma(RMEM_WR_RDMA_READ, &sge, IOVA, fx.fast.mr->rkey);

	scatter(fx.b.buf, LENGTH);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf + LENGTH, fx.b.buf, LENGTH);
}

/* On both sides of the border between the first and the second page. */
TEST(fastreg_ops, peer_uses_atomics_by_rkey)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	const uint32_t border = FX_PAGE - (uint32_t)(IOVA % FX_PAGE);
	uint64_t value;
	uint32_t i;

	for (i = 0; i < 2; i++) {
		uint32_t at = border - 8 + 8 * i;
		struct rmem_send_wr wr = fx_atomic(RMEM_WR_ATOMIC_FETCH_AND_ADD, &sge, IOVA + at,
				fx.fast.mr->rkey, 5 + i);

		memset(byte_at(at), 0, 8);
		TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
		memcpy(&value, byte_at(at), 8);
		TEST_EQ(value, 5 + i);
		wr = fx_atomic(RMEM_WR_ATOMIC_CMP_AND_SWP, &sge, IOVA + at, fx.fast.mr->rkey,
				5 + i);
		wr.atomic.swap = UINT64_C(0x1122334455667788);
		TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
		memcpy(&value, byte_at(at), 8);
		TEST_EQ(value, UINT64_C(0x1122334455667788));
	}
}

TEST(fastreg_ops, write_gathers_by_lkey)
{
	const struct rmem_sge sge = fast_sge(1, LENGTH - 1);
	const struct rmem_send_wr wr =
			fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.b.buf), fx.b.mr->rkey);
	uint8_t *want = fx.a.buf;

	fx_fill(want, LENGTH, 12);
	scatter(want, LENGTH);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf, want + 1, LENGTH - 1);
}

TEST(fastreg_ops, read_scatters_by_lkey)
{
	const struct rmem_sge sge = fast_sge(0, LENGTH);
	const struct rmem_send_wr wr =
			fx_rdma(RMEM_WR_RDMA_READ, &sge, fx_addr(fx.b.buf), fx.b.mr->rkey);

	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	expect_bytes(fx.b.buf, 0, LENGTH);
}

TEST(fastreg_ops, send_gathers_by_lkey)
{
	const struct rmem_sge sge = fast_sge(0, LENGTH);
	const struct rmem_sge to = fx_sge(fx.b.mr, LENGTH, LENGTH);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &sge, 1);

	scatter(fx.b.buf, LENGTH);
	TEST_EQ(fx_post_recv(fx.b.qp, 1, &to, 1), 1);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.byte_len, LENGTH);
	TEST_MEM(fx.b.buf + LENGTH, fx.b.buf, LENGTH);
}

TEST(fastreg_ops, receive_scatters_by_lkey)
{
	const struct rmem_sge to = fast_sge(3, LENGTH - 3);
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, LENGTH - 3);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &sge, 1);

	TEST_EQ(fx_post_recv(fx.a.qp, 1, &to, 1), 1);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	expect_bytes(fx.b.buf, 3, LENGTH - 3);
}

/* The value before lands across a page border. */
TEST(fastreg_ops, atomic_result_is_stored_by_lkey)
{
	const uint32_t border = FX_PAGE - (uint32_t)(IOVA % FX_PAGE);
	const struct rmem_sge sge = fast_sge(border - 3, 8);
	const struct rmem_send_wr wr = fx_atomic(
			RMEM_WR_ATOMIC_FETCH_AND_ADD, &sge, fx_addr(fx.b.buf), fx.b.mr->rkey, 1);
	uint8_t before[8];

	memcpy(before, fx.b.buf, 8);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	expect_bytes(before, border - 3, 8);
}

TEST(fastreg_ops, both_sides_use_page_lists)
{
	struct rmem_mr *mr = fx_fast_mr(fx.b.pd, 3);
	struct rmem_fast_reg_page_list *list = fx_page_list(fx.b.dev, 3);
	const struct rmem_sge sge = fast_sge(0, LENGTH);
	uint8_t *pages = fx_mem(FX_PAGE, 3 * FX_PAGE);
	struct rmem_send_wr wr;

	TEST_ASSERT(mr != NULL && list != NULL);
	list->page_list[0] = fx_addr(pages + 2 * FX_PAGE);
	list->page_list[1] = fx_addr(pages);
	list->page_list[2] = fx_addr(pages + FX_PAGE);
	wr = fx_reg(mr, list, 3, 0x1010, LENGTH);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	scatter(fx.b.buf, LENGTH);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, 0x1010, mr->rkey);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(pages + 2 * FX_PAGE + 0x10, fx.b.buf, FX_PAGE - 0x10);
	TEST_MEM(pages, fx.b.buf + FX_PAGE - 0x10, FX_PAGE);
	TEST_MEM(pages + FX_PAGE, fx.b.buf + 2 * FX_PAGE - 0x10, LENGTH - 2 * FX_PAGE + 0x10);
}

TEST(fastreg_ops, one_request_mixes_both_kinds_of_sges)
{
	const struct rmem_sge sges[] = {
			fx_sge(fx.a.mr, 0, 100),
			fast_sge(FX_PAGE - 300, 600),
			fx_sge(fx.a.mr, 100, 1),
	};
	struct rmem_send_wr wr =
			fx_rdma(RMEM_WR_RDMA_WRITE, &sges[0], fx_addr(fx.b.buf), fx.b.mr->rkey);
	uint8_t *want = fx.a.buf + FX_PAGE;

	fx_fill(fx.a.buf, FX_PAGE, 13);
	fx_fill(want, LENGTH, 14);
	scatter(want, LENGTH);
	wr.num_sge = 3;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf, fx.a.buf, 100);
	TEST_MEM(fx.b.buf + 100, want + FX_PAGE - 300, 600);
	TEST_MEM(fx.b.buf + 700, fx.a.buf + 100, 1);
}

/* All is checked before any byte is copied: the message ends after the last page. */
TEST(fastreg_ops, refused_access_moves_no_byte_of_any_page)
{
	const struct rmem_sge sge = fast_sge(0, LENGTH + 1);
	struct rmem_send_wr wr = fx_rdma(RMEM_WR_RDMA_READ, &sge, fx_addr(fx.b.buf), fx.b.mr->rkey);

	TEST_STATUS(fx_peer_write(IOVA, LENGTH + 1, fx.fast.mr->rkey), RMEM_WC_REM_ACCESS_ERR);
	fx_reconnect();
	fx_expect_refusal(&wr, RMEM_WC_LOC_PROT_ERR, RMEM_QPS_RTS);
	TEST_ASSERT(fx_is_zero(fx.fast.pages, FX_FAST_PAGES * FX_PAGE));
}

TEST_SUITE(fastreg_ops, setup_bound, fx_teardown);
