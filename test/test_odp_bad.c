/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * On-demand memory that is not there ends requests with an access error and never with a signal
 * and its replacement is visible to the next access.
 */

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fixture_odp.h"
#include "test.h"

/* Changes of a page after which the device can't access it. */
enum loss {
	LOSS_PROT_NONE,
	LOSS_UNMAP,
	LOSS_NB,
};

static int
lose(enum loss loss, uint32_t page)
{
	return loss == LOSS_UNMAP ? fx_odp_unmap(page) : fx_odp_protect(page, PROT_NONE);
}

static int
get_back(enum loss loss, uint32_t page)
{
	return loss == LOSS_UNMAP ? fx_odp_map(page) : fx_odp_protect(page, PROT_READ | PROT_WRITE);
}

/* The access is refused, on the side that the MR is on, and the sides are connected again. */
static void
expect_loss(enum fx_odp_op op, uint32_t page)
{
	uint64_t failed = fx_stats(fx_odp.mr).failed_faults;

	TEST_STATUS(fx_odp_do(op, fx_addr(fx_odp_page(page)), 64), fx_odp_refusal(op));
	if (op == FX_ODP_RECV)
		TEST_STATUS(fx_odp.recv_status, RMEM_WC_LOC_PROT_ERR);
	TEST_EQ(fx.wc.vendor_err, FX_ODP_WHY);
	TEST_EQ(fx_stats(fx_odp.mr).failed_faults, failed + 1);
	fx_reconnect();
}

/* By every opcode, at the first access and when the device has had the page. */
static void
expect_losses(enum loss loss, bool is_warm)
{
	enum fx_odp_op op;
	int result;

	for (op = 0; op < FX_ODP_NB; op++) {
		if (!fx_odp_can(op))
			continue;
		TEST_OK(madvise(fx_odp_page(2), FX_PAGE, MADV_DONTNEED));
		TEST_EQ(fx_stats(fx_odp.mr).pages, 0);
		if (is_warm)
			TEST_STATUS(fx_odp_do(op, fx_addr(fx_odp_page(2)), 64), RMEM_WC_SUCCESS);
		TEST_OK(lose(loss, 2));
		result = TEST_TRY(expect_loss(op, 2));
		TEST_OK(get_back(loss, 2));
		TEST_EQ(result, TEST_SUCCESS);
		TEST_STATUS(fx_odp_do(op, fx_addr(fx_odp_page(2)), 64), RMEM_WC_SUCCESS);
	}
}

TEST(odp_bad, page_that_is_protected_gives_an_error)
{
	expect_losses(LOSS_PROT_NONE, false);
}

TEST(odp_bad, page_that_is_not_mapped_gives_an_error)
{
	expect_losses(LOSS_UNMAP, false);
}

TEST(odp_bad, known_page_that_is_protected_gives_an_error)
{
	expect_losses(LOSS_PROT_NONE, true);
}

TEST(odp_bad, known_page_that_is_unmapped_gives_an_error)
{
	expect_losses(LOSS_UNMAP, true);
}

/* As rxe: READ succeeds, WRITE is refused. */
TEST(odp_bad, page_that_is_read_only_can_be_read_only)
{
	enum fx_odp_op op;

	for (op = 0; op < FX_ODP_NB; op++) {
		if (!fx_odp_can(op))
			continue;
		TEST_OK(fx_odp_protect(1, PROT_READ));
		if (fx_odp_modifies(op))
			expect_loss(op, 1);
		else
			TEST_STATUS(fx_odp_do(op, fx_addr(fx_odp_page(1)), 64), RMEM_WC_SUCCESS);
		TEST_OK(fx_odp_protect(1, PROT_READ | PROT_WRITE));
		TEST_STATUS(fx_odp_write(1, 64), RMEM_WC_SUCCESS);
	}
}

/* All pages of a request are had before a byte of it moves. */
TEST(odp_bad, request_over_unmapped_memory_transfers_no_byte)
{
	TEST_OK(fx_odp_unmap(2));
	fx_fill(fx.b.buf, 4 * FX_PAGE, 5);
	TEST_STATUS(fx_odp_write(1, 3 * FX_PAGE), RMEM_WC_REM_ACCESS_ERR);
	TEST_OK(fx_odp_map(2));
	TEST_ASSERT(fx_is_zero(fx_odp.mem, FX_ODP_SIZE));
}

TEST(odp_bad, discarded_page_is_zero_at_the_next_access)
{
	fx_fill(fx.b.buf, FX_BUF_SIZE, 6);
	TEST_STATUS(fx_odp_write(0, FX_ODP_SIZE), RMEM_WC_SUCCESS);
	TEST_OK(madvise(fx_odp_page(3), FX_PAGE, MADV_DONTNEED));
	TEST_EQ(fx_stats(fx_odp.mr).invalidations, 1);
	TEST_EQ(fx_stats(fx_odp.mr).pages, FX_ODP_PAGES - 1);
	TEST_STATUS(fx_odp_do(FX_ODP_READ_FROM, fx_addr(fx_odp_page(3)), FX_PAGE), RMEM_WC_SUCCESS);
	TEST_ASSERT(fx_is_zero(fx.b.buf, FX_PAGE));
	TEST_EQ(fx_stats(fx_odp.mr).page_faults, FX_ODP_PAGES + 1);
	/* As rxe: FETCH_AND_ADD counts from 0, a WRITE lands. */
	TEST_OK(madvise(fx_odp_page(3), FX_PAGE, MADV_DONTNEED));
	fx_fill(fx.b.buf, 64, 7);
	TEST_STATUS(fx_odp_write(3, 64), RMEM_WC_SUCCESS);
	TEST_MEM(fx_odp_page(3), fx.b.buf, 64);
}

TEST(odp_bad, remapped_page_is_visible_to_the_next_access)
{
	fx_fill(fx.b.buf, 64, 8);
	TEST_STATUS(fx_odp_write(2, 64), RMEM_WC_SUCCESS);
	TEST_OK(fx_odp_map(2));
	TEST_ASSERT(fx_is_zero(fx_odp_page(2), FX_PAGE));
	TEST_STATUS(fx_odp_write(2, 64), RMEM_WC_SUCCESS);
	TEST_MEM(fx_odp_page(2), fx.b.buf, 64);
}

TEST(odp_bad, page_moved_by_mremap_is_not_followed)
{
	void *to = fx_map(FX_PAGE);

	fx_fill(fx.b.buf, 64, 9);
	TEST_STATUS(fx_odp_write(2, 64), RMEM_WC_SUCCESS);
	TEST_ASSERT(mremap(fx_odp_page(2), FX_PAGE, FX_PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) ==
			to);
	TEST_STATUS(fx_odp_write(2, 64), RMEM_WC_REM_ACCESS_ERR);
	fx_reconnect();
	TEST_OK(fx_odp_map(2));
	TEST_MEM(to, fx.b.buf, 64);
	fx_fill(fx.b.buf, 64, 10);
	TEST_STATUS(fx_odp_write(2, 64), RMEM_WC_SUCCESS);
	TEST_MEM(fx_odp_page(2), fx.b.buf, 64);
	TEST_ASSERT(memcmp(to, fx.b.buf, 64) != 0);
}

/* Accesses that raise SIGBUS: beyond the end of the file. */
static void
expect_truncated(int fd)
{
	void *at = fx_odp_page(0);

	TEST_OK(ftruncate(fd, FX_ODP_SIZE));
	TEST_ASSERT(mmap(at, FX_ODP_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
			at);
	TEST_STATUS(fx_odp_write(0, 2 * FX_PAGE), RMEM_WC_SUCCESS);
	TEST_OK(ftruncate(fd, FX_PAGE));
	expect_loss(FX_ODP_WRITE_TO, 1); /* known */
	expect_loss(FX_ODP_READ_FROM, 3);
	TEST_STATUS(fx_odp_write(0, FX_PAGE), RMEM_WC_SUCCESS);
	TEST_OK(ftruncate(fd, FX_ODP_SIZE));
	TEST_STATUS(fx_odp_write(1, FX_PAGE), RMEM_WC_SUCCESS);
}

TEST(odp_bad, page_beyond_the_end_of_a_file_gives_an_error)
{
	fx_with_memfd(expect_truncated);
}

/* The receive was not consumed: it waits for another message. */
TEST(odp_bad, send_of_an_unmapped_page_leaves_the_receive)
{
	const struct rmem_sge own = {fx_addr(fx_odp_page(0)), 64, fx_odp.mr->lkey};
	const struct rmem_sge peer = fx_sge(fx.b.mr, 0, 64);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &own, 1);

	TEST_STATUS(fx_odp_do(FX_ODP_SEND, own.addr, 64), RMEM_WC_SUCCESS);
	TEST_EQ(fx_post_recv(fx.b.qp, 5, &peer, 1), 1);
	TEST_OK(fx_odp_protect(0, PROT_NONE));
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_LOC_PROT_ERR);
	TEST_EQ(fx.wc.vendor_err, FX_ODP_WHY);
	TEST_ASSERT(fx_is_idle(fx.b.cq));
	TEST_EQ(fx_state(fx.b.qp), RMEM_QPS_RTS);
	TEST_OK(rmem_qp_set_error(fx.b.qp));
	fx_expect_flush(fx.b.cq, 5, 1);
}

/* A burst ends where the page is lost; what was posted before is done, the rest is flushed. */
TEST(odp_bad, burst_ends_at_an_unmapped_page)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 64);
	struct rmem_send_wr wr[4];
	struct rmem_wc wc[4];
	uint32_t i;

	TEST_STATUS(fx_odp_write(0, 4 * FX_PAGE), RMEM_WC_SUCCESS);
	TEST_OK(fx_odp_protect(2, PROT_NONE));
	for (i = 0; i < 4; i++) {
		wr[i] = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx_odp_page(i)), fx_odp.mr->rkey);
		wr[i].wr_id = i;
		wr[i].flags = RMEM_SEND_SIGNALED;
	}
	TEST_EQ(rmem_post_send(fx.b.qp, wr, 4), 4);
	TEST_EQ(fx_poll(fx.b.cq, wc, 4), 4);
	for (i = 0; i < 4; i++)
		TEST_EQ(wc[i].wr_id, i);
	TEST_STATUS(wc[0].status, RMEM_WC_SUCCESS);
	TEST_STATUS(wc[1].status, RMEM_WC_SUCCESS);
	TEST_STATUS(wc[2].status, RMEM_WC_REM_ACCESS_ERR);
	TEST_STATUS(wc[3].status, RMEM_WC_WR_FLUSH_ERR);
	TEST_EQ(fx_stats(fx_odp.mr).failed_faults, 1);
}

/* The checks of keys and ranges come first and are unchanged. */
TEST(odp_bad, range_outside_of_the_mr_is_no_page_fault)
{
	TEST_STATUS(fx_peer_write(fx_odp.mr->iova + FX_ODP_SIZE - 32, 64, fx_odp.mr->rkey),
			RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(fx.wc.vendor_err, 6);
	TEST_EQ(fx_stats(fx_odp.mr).failed_faults, 0);
}

/* The table forgets it: the next access asks the kernel again, and counts a fault. */
TEST(odp_bad, page_that_fails_a_copy_is_removed_from_the_table)
{
	TEST_STATUS(fx_odp_write(1, 2 * FX_PAGE), RMEM_WC_SUCCESS);
	TEST_EQ(fx_stats(fx_odp.mr).pages, 2);
	TEST_OK(fx_odp_protect(1, PROT_NONE)); /* it stays resident */
	TEST_STATUS(fx_odp_write(1, 64), RMEM_WC_REM_ACCESS_ERR);
	fx_reconnect();
	TEST_EQ(fx_stats(fx_odp.mr).pages, 1);
	TEST_EQ(fx_stats(fx_odp.mr).invalidations, 1);
	TEST_OK(fx_odp_protect(1, PROT_READ | PROT_WRITE));
	TEST_STATUS(fx_odp_write(1, 2 * FX_PAGE), RMEM_WC_SUCCESS);
	TEST_EQ(fx_stats(fx_odp.mr).page_faults, 3);
}

/* More than a message may be, in two SGEs; of the second nothing is mapped. */
TEST(odp_bad, request_beyond_the_limit_faults_no_page)
{
	const uint32_t opcodes[] = {RMEM_WR_SEND, RMEM_WR_RDMA_WRITE, RMEM_WR_RDMA_READ};
	struct rmem_mr *all = fx_mr(fx.a.pd, NULL, SIZE_MAX, fx_odp_access());
	struct rmem_sge sge[] = {{fx_addr(fx_odp.mem), 2 * FX_PAGE, 0}, {FX_PAGE, 1U << 31, 0}};
	struct rmem_send_wr wr;
	uint32_t i;

	TEST_ASSERT(all != NULL);
	sge[0].lkey = sge[1].lkey = all->lkey;
	for (i = 0; i < RTE_DIM(opcodes); i++) {
		wr = fx_rdma((uint8_t)opcodes[i], sge, fx.b.mr->iova, fx.b.mr->rkey);
		wr.num_sge = 2;
		TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_LOC_LEN_ERR);
		fx_reconnect();
		TEST_EQ(fx_stats(all).page_faults, 0);
		TEST_ASSERT(!fx_odp_is_resident(0));
	}
}

TEST(odp_bad, message_longer_than_the_receive_faults_no_page)
{
	const struct rmem_sge own = {fx_addr(fx_odp.mem), FX_PAGE, fx_odp.mr->lkey};
	const struct rmem_sge peer = fx_sge(fx.b.mr, 0, FX_PAGE + 1);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &peer, 1);

	TEST_EQ(fx_post_recv(fx.a.qp, 1, &own, 1), 1);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_REM_INV_REQ_ERR);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_LOC_LEN_ERR);
	TEST_EQ(fx_stats(fx_odp.mr).page_faults, 0);
	TEST_ASSERT(!fx_odp_is_resident(0));
}

TEST_SUITE(odp_bad, fx_setup_odp, fx_teardown);
