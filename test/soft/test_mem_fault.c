/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Memory that is unmapped or protected under a valid key ends requests with an access error, over
 * every kind of key, and never raises a signal; nothing else changes.
 */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_memory.h>

#include "fixture_odp.h"

#define LOST 5u /* the evicted page */

/* Processors with a guard of plain memory (rsoft_guard.h). */
#if defined(__x86_64__) || defined(__aarch64__)
#define HAS_GUARD true
#else
#define HAS_GUARD false
#endif

/* Each key is over all of fx_odp.mem, whose address is its iova. */
enum kind {
	KIND_MR,
	KIND_SHARED,
	KIND_IOV,
	KIND_WINDOW,
	KIND_MKEY,
	KIND_MKEY_OF_PIECES,
	KIND_FAST,
	KIND_FAST_SCATTERED,
	KIND_NB,
};

enum loss {
	LOSS_PROT_NONE,
	LOSS_UNMAP,
	LOSS_READ_ONLY,
	LOSS_NB,
};

/* Source of the keys for fx_odp_do(). */
static struct rmem_mr view;
static struct rmem_mr *base;
static struct rmem_fast_reg_page_list *list;

/* Messages in completions are copied by the poll: that is another suite's matter. */
static void
setup(void)
{
	setenv("RMEM_SCATTER_TO_CQE", "0", 1);
	fx_setup();
	TEST_SKIP_IF(!HAS_GUARD, "nothing is guarded by a signal handler here");
	fx_odp.mem = fx_map(FX_ODP_SIZE);
	TEST_OK(mprotect(fx_odp.mem, FX_ODP_SIZE, PROT_READ | PROT_WRITE));
	base = fx_mr(fx.a.pd, fx_odp.mem, FX_ODP_SIZE, FX_ACCESS | RMEM_ACCESS_MW_BIND);
	list = fx_page_list(fx.a.dev, FX_ODP_PAGES);
}

static void
teardown(void)
{
	unsetenv("RMEM_SCATTER_TO_CQE");
	fx_teardown();
}

static void
see(const struct rmem_mr *mr)
{
	TEST_ASSERT(mr != NULL);
	view.lkey = mr->lkey;
	view.rkey = mr->rkey;
	view.iova = fx_addr(fx_odp.mem);
	fx_odp.mr = &view;
}

static void
open_iov(void)
{
	const struct iovec iov[] = {{fx_odp.mem, 3 * FX_PAGE},
			{fx_odp.mem + 3 * FX_PAGE, FX_ODP_SIZE - 3 * FX_PAGE}};
	const struct rmem_mr_attr attr = {.iov = iov,
			.iov_count = 2,
			.iova = fx_addr(fx_odp.mem),
			.access = FX_ACCESS};
	struct rmem_mr *mr;

	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	see(mr);
}

static void
open_window(void)
{
	fx.mw.mr = base;
	fx.mw.two = fx_mw(fx.a.pd, RMEM_MW_TYPE_2);
	TEST_STATUS(fx_mw_bind_2(0, FX_ODP_SIZE, RMEM_ACCESS_REMOTE), RMEM_WC_SUCCESS);
	see(base);
	view.rkey = fx.mw.two->rkey;
}

/* One entry, or an entry for each page. */
static void
open_mkey(uint32_t nb)
{
	struct rmem_mkey_entry entries[FX_ODP_PAGES];
	struct rmem_mr *mkey = fx_mkey(fx.a.pd, nb);
	struct rmem_send_wr wr;
	uint32_t i;

	for (i = 0; i < nb; i++)
		entries[i] = fx_entry(base, i * FX_ODP_SIZE / nb, FX_ODP_SIZE / nb);
	wr = fx_umr(mkey, entries, nb, fx_addr(fx_odp.mem));
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	see(mkey);
}

/* Bind the page list. */
static void
open_list(void)
{
	struct rmem_mr *mr = fx_fast_mr(fx.a.pd, FX_ODP_PAGES);
	struct rmem_send_wr wr;

	wr = fx_reg(mr, list, FX_ODP_PAGES, fx_addr(fx_odp.mem), FX_ODP_SIZE);
	wr.reg_mr.access = FX_ACCESS;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	see(mr);
}

static void
open_fast(bool is_scattered)
{
	fx_list_pages(list, fx_odp.mem, FX_ODP_PAGES);
	if (is_scattered) {
		list->page_list[0] = fx_addr(fx_odp_page(1));
		list->page_list[1] = fx_addr(fx_odp_page(0));
	}
	open_list();
}

static void
open_key(enum kind kind)
{
	struct rmem_mr *mr;

	switch (kind) {
	case KIND_SHARED:
		TEST_OK(rmem_mr_reg_shared(base, fx.a.pd, 0, FX_ACCESS, &mr));
		fx_track(mr);
		see(mr);
		return;
	case KIND_IOV:
		open_iov();
		return;
	case KIND_WINDOW:
		open_window();
		return;
	case KIND_MKEY:
		open_mkey(1);
		return;
	case KIND_MKEY_OF_PIECES:
		open_mkey(FX_ODP_PAGES);
		return;
	case KIND_FAST:
		open_fast(false);
		return;
	case KIND_FAST_SCATTERED:
		open_fast(true);
		return;
	default:
		see(base);
		return;
	}
}

static int
lose(enum loss loss)
{
	if (loss == LOSS_UNMAP)
		return fx_odp_unmap(LOST);
	return fx_odp_protect(LOST, loss == LOSS_READ_ONLY ? PROT_READ : PROT_NONE);
}

/* The request is refused on the side of the key, and counted; the sides are connected again. */
static void
expect_fault(enum fx_odp_op op, uint64_t addr, uint32_t length)
{
	uint64_t before = fx_dev_stats(fx.a.dev).mem_faults;

	TEST_STATUS(fx_odp_do(op, addr, length), fx_odp_refusal(op));
	TEST_EQ(fx.wc.vendor_err, FX_ODP_WHY);
	if (op == FX_ODP_RECV)
		TEST_STATUS(fx_odp.recv_status, RMEM_WC_LOC_PROT_ERR);
	TEST_EQ(fx_dev_stats(fx.a.dev).mem_faults, before + 1);
	fx_reconnect();
}

/* Each way to copy: within the page, from the one before it on, and over all of it. */
static void
expect_faults(enum fx_odp_op op, enum loss loss)
{
	static const uint32_t sizes[] = {1, 8, 20, 64, 100, 500, 2000, 9000};
	uint64_t page = fx_addr(fx_odp_page(LOST));
	uint32_t i;

	if (loss == LOSS_READ_ONLY && !fx_odp_modifies(op))
		return;
	if (fx_odp_is_word(op)) {
		expect_fault(op, page + 8, 8);
		return;
	}
	for (i = 0; i < RTE_DIM(sizes); i++) {
		expect_fault(op, page - (sizes[i] > FX_PAGE ? FX_PAGE : 0), sizes[i]);
		if (sizes[i] > 1)
			expect_fault(op, page - sizes[i] / 2, sizes[i]);
	}
}

static void
run_kind(enum kind kind, enum loss loss)
{
	enum fx_odp_op op;
	int result;

	open_key(kind);
	for (op = 0; op < FX_ODP_NB; op++) {
		/* The window's MR has been tried. */
		if (kind == KIND_WINDOW && fx_odp_is_local(op))
			continue;
		TEST_OK(lose(loss));
		result = TEST_TRY(expect_faults(op, loss));
		TEST_OK(fx_odp_map(LOST));
		TEST_EQ(result, TEST_SUCCESS);
		TEST_STATUS(fx_odp_do(op, fx_addr(fx_odp_page(LOST)), 64), RMEM_WC_SUCCESS);
	}
}

static void
run_kinds(enum loss loss)
{
	enum kind kind;

	for (kind = 0; kind < KIND_NB; kind++)
		run_kind(kind, loss);
}

TEST_CALL(mem_fault, unmapped_memory_is_an_access_error, run_kinds(LOSS_UNMAP));
TEST_CALL(mem_fault, protected_memory_is_an_access_error, run_kinds(LOSS_PROT_NONE));
TEST_CALL(mem_fault, write_to_read_only_memory_is_an_access_error, run_kinds(LOSS_READ_ONLY));

/* Pages of a page list are trusted to be the program's own, not to be there. */
TEST(mem_fault, unmapped_page_of_a_page_list_is_an_access_error)
{
	static const uint64_t pages[] = {
			FX_PAGE, UINT64_C(0xdead000000000000), UINT64_C(0xffff800000000000)};
	enum fx_odp_op op;
	uint32_t i;

	for (i = 0; i < RTE_DIM(pages); i++) {
		fx_list_pages(list, fx_odp.mem, FX_ODP_PAGES);
		list->page_list[0] = pages[i];
		open_list();
		for (op = 0; op < FX_ODP_NB; op++)
			expect_fault(op, view.iova + 64, 8);
		for (op = 0; op < FX_ODP_ADD; op++) {
			expect_fault(op, view.iova, 64);
			expect_fault(op, view.iova + 100, 2000);
			expect_fault(op, view.iova, FX_ODP_SIZE);
		}
	}
}

/* Beyond the end of the file the kernel raises SIGBUS. */
static void
expect_truncated(int fd)
{
	struct rmem_mr_attr attr = {
			.flags = RMEM_MR_FD, .fd = fd, .length = FX_ODP_SIZE, .access = FX_ACCESS};
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 64);
	struct rmem_send_wr wr;
	struct rmem_mr *mr;

	TEST_OK(ftruncate(fd, FX_ODP_SIZE));
	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	TEST_STATUS(fx_peer_write(mr->iova, FX_ODP_SIZE, mr->rkey), RMEM_WC_SUCCESS);
	TEST_OK(ftruncate(fd, FX_PAGE));
	TEST_STATUS(fx_peer_write(mr->iova, FX_PAGE, mr->rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(mr->iova, FX_ODP_SIZE, mr->rkey), RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(fx.wc.vendor_err, FX_ODP_WHY);
	fx_reconnect();
	TEST_STATUS(fx_peer_write(mr->iova + FX_PAGE, 64, mr->rkey), RMEM_WC_REM_ACCESS_ERR);
	fx_reconnect();
	wr = fx_rdma(RMEM_WR_RDMA_READ, &sge, mr->iova + FX_PAGE, mr->rkey);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_REM_ACCESS_ERR);
	fx_reconnect();
	TEST_OK(ftruncate(fd, FX_ODP_SIZE));
	TEST_STATUS(fx_peer_write(mr->iova + FX_PAGE, 64, mr->rkey), RMEM_WC_SUCCESS);
}

TEST_CALL(mem_fault, truncated_file_is_an_access_error, fx_with_memfd(expect_truncated));

/* Of each request, on either side of it; and the pages that are left. */
static void
expect_truncated_by_each(int fd)
{
	struct rmem_mr_attr attr = {
			.flags = RMEM_MR_FD, .fd = fd, .length = FX_ODP_SIZE, .access = FX_ACCESS};
	uint8_t *pages = fx_odp.mem;
	struct rmem_mr *mr;
	enum fx_odp_op op;

	TEST_OK(ftruncate(fd, FX_ODP_SIZE));
	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	fx_odp.mem = mr->addr;
	fx_odp.mr = mr;
	for (op = 0; op < FX_ODP_NB; op++) {
		TEST_OK(ftruncate(fd, LOST * FX_PAGE));
		expect_faults(op, LOSS_UNMAP);
		TEST_STATUS(fx_odp_do(op, mr->iova, 64), RMEM_WC_SUCCESS);
	}
	fx_odp.mem = pages;
}

TEST_CALL(mem_fault, truncated_file_fails_each_request, fx_with_memfd(expect_truncated_by_each));

/* Its reserved entry of the CQ is released: the next completion is visible. */
TEST(mem_fault, send_of_unmapped_memory_leaves_the_receive)
{
	const struct rmem_sge own = {fx_addr(fx_odp_page(LOST)), 64, base->lkey};
	const struct rmem_sge peer = fx_sge(fx.b.mr, 0, 64);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &own, 1);
	uint32_t i;

	TEST_EQ(fx_post_recv(fx.b.qp, 5, &peer, 1), 1);
	TEST_OK(fx_odp_protect(LOST, PROT_NONE));
	/* More often than the CQ is deep. */
	for (i = 0; i < 3 * FX_DEPTH; i++) {
		TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_LOC_PROT_ERR);
		TEST_ASSERT(fx_is_idle(fx.b.cq));
		TEST_EQ(fx_state(fx.b.qp), RMEM_QPS_RTS);
		TEST_OK(rmem_qp_reset(fx.a.qp));
		TEST_OK(fx_connect(fx.a.qp, fx.b.qp));
	}
	TEST_OK(fx_odp_protect(LOST, PROT_READ));
	fx_deliver(&fx.a, &fx.b, &wr);
	TEST_EQ(fx.wc.wr_id, 5);
}

/* Requests that precede the loss of the page have completed, the others are flushed. */
TEST(mem_fault, burst_ends_at_an_unmapped_page)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 64);
	struct rmem_send_wr wr[4];
	struct rmem_wc wc[4];
	uint32_t i;

	TEST_OK(fx_odp_unmap(LOST));
	for (i = 0; i < 4; i++) {
		wr[i] = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx_odp_page(LOST - 2 + i)),
				base->rkey);
		wr[i].wr_id = i;
		wr[i].flags = RMEM_SEND_SIGNALED;
	}
	fx_fill(fx.b.buf, 64, 9);
	TEST_EQ(rmem_post_send(fx.b.qp, wr, 4), 4);
	TEST_EQ(fx_poll(fx.b.cq, wc, 4), 4);
	TEST_OK(fx_odp_map(LOST));
	TEST_STATUS(wc[1].status, RMEM_WC_SUCCESS);
	TEST_STATUS(wc[2].status, RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(wc[2].vendor_err, FX_ODP_WHY);
	TEST_STATUS(wc[3].status, RMEM_WC_WR_FLUSH_ERR);
	TEST_MEM(fx_odp_page(LOST - 1), fx.b.buf, 64);
	TEST_ASSERT(fx_is_zero(fx_odp_page(LOST + 1), 64));
}

/* An unreliable service drops the message, by each path (IBTA 9.8.3). */
TEST(mem_fault, write_of_uc_to_lost_memory_is_dropped)
{
	const struct rmem_sge sge[] = {fx_sge(fx.b.mr, 0, 32), fx_sge(fx.b.mr, 32, 32)};
	struct rmem_qp_conf conf = fx_qp_conf(fx.b.cq, FX_DEPTH);
	struct rmem_send_wr wr =
			fx_rdma(RMEM_WR_RDMA_WRITE, sge, fx_addr(fx_odp_page(LOST)), base->rkey);
	struct rmem_dev_stats before, after;
	struct rmem_qp *qp, *peer;

	conf.type = RMEM_QPT_UC;
	conf.access = RMEM_ACCESS_REMOTE;
	qp = fx_qp_by(fx.b.pd, &conf);
	peer = fx_qp_by(fx.a.pd, &conf);
	TEST_OK(fx_connect_pair(qp, peer));
	TEST_OK(fx_odp_unmap(LOST));
	TEST_OK(rmem_dev_stats_get(fx.a.dev, &before));
	for (wr.num_sge = 1; wr.num_sge <= 2; wr.num_sge++)
		TEST_STATUS(fx_send(qp, &wr), RMEM_WC_SUCCESS);
	TEST_OK(rmem_dev_stats_get(fx.a.dev, &after));
	TEST_OK(fx_odp_map(LOST));
	TEST_EQ(after.drop_access, before.drop_access + 2);
	TEST_EQ(after.errors, before.errors);
	TEST_EQ(fx_state(qp), RMEM_QPS_RTS);
	TEST_EQ(fx_state(peer), RMEM_QPS_RTS);
}

TEST_SUITE(mem_fault, setup, teardown);
