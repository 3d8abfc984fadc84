/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * On-demand MRs over explicit ranges (seed-0, "Explicit ODP"): pages come at the first access
 * of the device, every opcode accesses them, and page faults are counted.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fixture_odp.h"

TEST(odp, device_reports_its_odp_support)
{
	const uint32_t rc_caps = RMEM_ODP_SEND | RMEM_ODP_RECV | RMEM_ODP_SRQ_RECV |
			RMEM_ODP_WRITE | RMEM_ODP_READ;
	struct rmem_dev_info info = fx_dev_info(fx.a.dev);

	TEST_EQ(info.odp.general, RMEM_ODP_SUPPORT | RMEM_ODP_SUPPORT_IMPLICIT);
	TEST_EQ(info.odp.rc & ~(RMEM_ODP_ATOMIC | RMEM_ODP_ATOMIC_WRITE), rc_caps);
	TEST_EQ(info.odp.uc, RMEM_ODP_SEND | RMEM_ODP_RECV | RMEM_ODP_WRITE);
	TEST_EQ(info.odp.ud, RMEM_ODP_SEND | RMEM_ODP_RECV);
	TEST_ASSERT((info.access & RMEM_ACCESS_ON_DEMAND) != 0);
}

TEST(odp, registration_touches_nothing)
{
	struct rmem_mr_info info = fx_query(fx_odp.mr);
	uint32_t i;

	for (i = 0; i < FX_ODP_PAGES; i++)
		TEST_ASSERT(!fx_odp_is_resident(i));
	TEST_EQ(fx_stats(fx_odp.mr).pages, 0);
	TEST_ASSERT((info.access & RMEM_ACCESS_ON_DEMAND) != 0);
	TEST_EQ(info.page_size, FX_PAGE);
	TEST_EQ(info.nb_pages, FX_ODP_PAGES);
	TEST_EQ(info.nb_extents, 1);
}

TEST(odp, memory_need_not_be_mapped_at_registration)
{
	struct rmem_mr *mr;

	TEST_OK(fx_odp_unmap(2));
	mr = fx_mr(fx.a.pd, fx_odp_page(2), FX_PAGE, fx_odp_access());
	TEST_OK(fx_odp_map(2));
	TEST_STATUS(fx_peer_write(mr->iova, 64, mr->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx_odp_page(2), fx.b.buf, 64);
}

TEST(odp, write_faults_only_the_pages_it_touches)
{
	uint32_t i;

	fx_fill(fx.b.buf, 64, 1);
	TEST_STATUS(fx_odp_write(3, 64), RMEM_WC_SUCCESS);
	TEST_MEM(fx_odp_page(3), fx.b.buf, 64);
	for (i = 0; i < FX_ODP_PAGES; i++)
		TEST_EQ(fx_odp_is_resident(i), i == 3);
}

/* Check the bytes at the two ends of an opcode. */
static void
check_bytes(enum fx_odp_op op, const uint8_t *mem, const uint8_t *old, const uint8_t *old_peer,
		uint32_t length)
{
	uint64_t word, before;

	switch (op) {
	case FX_ODP_ADD:
	case FX_ODP_SWAP:
		memcpy(&before, old, sizeof(before));
		memcpy(&word, mem, sizeof(word));
		TEST_EQ(word, op == FX_ODP_ADD ? before + 5 : before == 0 ? 7 : before);
		TEST_MEM(fx.b.buf, old, sizeof(before));
		return;
	case FX_ODP_ADD_RESULT:
		TEST_MEM(mem, old_peer, sizeof(before));
		return;
	default:
		if (fx_odp_modifies(op))
			TEST_MEM(mem, fx.b.buf, length);
		else
			TEST_MEM(fx.b.buf, old, length);
		return;
	}
}

static void
expect_op(enum fx_odp_op op, uint8_t *mem, uint32_t length)
{
	static uint8_t old[FX_ODP_SIZE], old_peer[FX_ODP_SIZE];

	if (fx_odp_is_word(op))
		length = sizeof(uint64_t);
	memcpy(old_peer, fx.b.buf, FX_ODP_SIZE);
	memcpy(old, fx_odp.mem, FX_ODP_SIZE);
	TEST_STATUS(fx_odp_do(op, fx_addr(mem), length), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_odp.recv_status, RMEM_WC_SUCCESS);
	check_bytes(op, mem, old + (mem - fx_odp.mem), old_peer, length);
	if (fx_odp_modifies(op)) {
		TEST_MEM(fx_odp.mem, old, (size_t)(mem - fx_odp.mem));
		TEST_MEM(mem + length, old + (mem - fx_odp.mem) + length,
				(size_t)(fx_odp.mem + FX_ODP_SIZE - mem) - length);
	}
}

/* Over a page's end and start, and a second time over pages that are known. */
TEST(odp, every_opcode_reaches_pages_on_demand)
{
	enum fx_odp_op op;
	uint32_t i;

	for (op = 0; op < FX_ODP_NB; op++) {
		for (i = 0; fx_odp_can(op) && i < 2; i++) {
			fx_fill(fx.b.buf, FX_BUF_SIZE, 10 + op + i);
			expect_op(op, fx_odp_page(1) - 8 * (i + 1), 5000);
			expect_op(op, fx_odp_page(4), 64);
		}
	}
}

/* The copy has a case for each size, and may not touch adjacent bytes. */
TEST(odp, copies_of_every_size_are_exact)
{
	static const uint32_t large[] = {255, 256, 511, 1000, 1023, 1024, 1025, 4095, 4097, 9000};
	uint32_t length, i;

	fx_fill(fx.b.buf, FX_BUF_SIZE, 3);
	fx_fill(fx_odp.mem, FX_ODP_SIZE, 4);
	for (length = 1; length <= 200; length++) {
		expect_op(FX_ODP_WRITE_TO, fx_odp_page(1) - length / 2, length);
		expect_op(FX_ODP_READ_FROM, fx_odp_page(2) - length / 3, length);
	}
	for (i = 0; i < RTE_DIM(large); i++) {
		expect_op(FX_ODP_WRITE_TO, fx_odp_page(1) - 13, large[i]);
		expect_op(FX_ODP_WRITE_FROM, fx_odp_page(1) - 31, large[i]);
	}
}

/* As a memmove(): both ranges are of one MR. */
TEST(odp, copies_between_ranges_that_overlap_are_exact)
{
	static const int32_t shifts[] = {
			-4000, -100, -64, -63, -8, -1, 1, 7, 63, 64, 65, 1000, 5000};
	static const uint32_t lengths[] = {
			3, 15, 33, 64, 65, 130, 256, 330, 700, 1024, 3000, 8191, 9000};
	static uint8_t want[FX_ODP_SIZE];
	struct rmem_mr *mr = fx_mr(fx.b.pd, fx_odp.mem, FX_ODP_SIZE, fx_odp_access());
	struct rmem_send_wr wr;
	struct rmem_sge sge;
	uint32_t i, j;

	for (i = 0; i < RTE_DIM(shifts); i++) {
		for (j = 0; j < RTE_DIM(lengths); j++) {
			fx_fill(fx_odp.mem, FX_ODP_SIZE, i * 100 + j);
			memcpy(want, fx_odp.mem, FX_ODP_SIZE);
			memmove(want + 10000 + shifts[i], want + 10000, lengths[j]);
			sge = fx_sge(mr, 10000, lengths[j]);
			wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge,
					fx_odp.mr->iova + 10000 + (uint64_t)(int64_t)shifts[i],
					fx_odp.mr->rkey);
			TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
			TEST_MEM(fx_odp.mem, want, FX_ODP_SIZE);
		}
	}
}

/* Each page once for reading, and again at the first write. */
TEST(odp, first_accesses_are_page_faults)
{
	TEST_STATUS(fx_odp_do(FX_ODP_READ_FROM, fx_addr(fx_odp_page(0)), 3 * FX_PAGE),
			RMEM_WC_SUCCESS);
	TEST_EQ(fx_stats(fx_odp.mr).page_faults, 3);
	TEST_STATUS(fx_odp_do(FX_ODP_READ_FROM, fx_addr(fx_odp_page(0)), 3 * FX_PAGE),
			RMEM_WC_SUCCESS);
	TEST_EQ(fx_stats(fx_odp.mr).page_faults, 3);
	TEST_STATUS(fx_odp_write(1, 64), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_odp_write(1, 64), RMEM_WC_SUCCESS);
	TEST_EQ(fx_stats(fx_odp.mr).page_faults, 4);
	TEST_EQ(fx_stats(fx_odp.mr).pages, 3);
	TEST_STATUS(fx_odp_write(5, 2 * FX_PAGE), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_odp_do(FX_ODP_READ_FROM, fx_addr(fx_odp_page(5)), FX_PAGE), RMEM_WC_SUCCESS);
	TEST_EQ(fx_stats(fx_odp.mr).page_faults, 6);
	TEST_EQ(fx_stats(fx_odp.mr).pages, 5);
	TEST_EQ(fx_stats(fx_odp.mr).failed_faults, 0);
	TEST_EQ(fx_stats(fx_odp.mr).invalidations, 0);
}

/* The counters of the device include those of released MRs, the pages do not. */
TEST(odp, device_statistics_sum_all_mrs)
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx_odp.mem, FX_ODP_SIZE, fx_odp_access());
	struct rmem_dev_stats stats;

	TEST_STATUS(fx_odp_write(0, 2 * FX_PAGE), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_peer_write(mr->iova, 64, mr->rkey), RMEM_WC_SUCCESS);
	TEST_OK(rmem_dev_stats_get(fx.a.dev, &stats));
	TEST_EQ(stats.odp_page_faults, 3);
	TEST_EQ(stats.odp_pages, 3);
	TEST_OK(fx_release(mr));
	TEST_OK(rmem_dev_stats_reset(fx.a.dev));
	TEST_OK(rmem_dev_stats_get(fx.a.dev, &stats));
	TEST_EQ(stats.odp_page_faults, 0);
	TEST_EQ(stats.odp_pages, 2);
}

TEST(odp, plain_mr_counts_nothing)
{
	struct rmem_mr_stats stats = fx_stats(fx.a.mr);

	TEST_ASSERT(fx_is_zero(&stats, sizeof(stats)));
}

TEST(odp, stats_get_refuses_null_and_wrong_handles)
{
	struct rmem_mr *mkey = fx_mkey(fx.a.pd, 1);
	struct rmem_mr_stats stats;

	TEST_ERR(rmem_mr_stats_get(NULL, &stats), EINVAL);
	TEST_ERR(rmem_mr_stats_get((struct rmem_mr *)fx.a.pd, &stats), EINVAL);
	TEST_ERR(rmem_mr_stats_get(fx_odp.mr, NULL), EINVAL);
	TEST_ERR(rmem_mr_stats_get(mkey, &stats), EINVAL);
}

TEST(odp, allocated_memory_is_not_on_demand)
{
	struct rmem_mr *mr;

	TEST_ERR(rmem_mr_reg(fx.a.pd, NULL, FX_PAGE, 0, FX_ODP_ACCESS | RMEM_ACCESS_ALLOCATE_MR,
				 &mr),
			EINVAL);
	TEST_ERR(rmem_mr_reg(fx.a.pd, NULL, FX_PAGE, 0, FX_ODP_ACCESS, &mr), EINVAL);
	TEST_ERR(rmem_mr_reg(fx.a.pd, fx_odp.mem, FX_PAGE, 0, FX_ODP_ACCESS | RMEM_ACCESS_HUGETLB,
				 &mr),
			EINVAL);
}

/* Nor does one that is of ranges become one. */
TEST(odp, ranges_are_not_on_demand)
{
	const struct iovec iov[] = {{fx_odp_page(0), FX_PAGE}, {fx_odp_page(2), FX_PAGE}};
	struct rmem_mr_attr attr = {.iov = iov, .iov_count = 2, .access = FX_ODP_ACCESS};
	struct rmem_mr *mr;

	TEST_ERR(rmem_mr_reg_attr(fx.a.pd, &attr, &mr), EINVAL);
	attr.access = FX_ACCESS;
	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	TEST_ERR(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, FX_ODP_ACCESS, NULL),
			EINVAL);
	/* With other memory it can. */
	TEST_OK(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS | RMEM_REREG_CHANGE_TRANSLATION, NULL,
			fx_odp_page(4), FX_PAGE, fx_odp_access(), NULL));
	TEST_STATUS(fx_peer_write(fx_addr(fx_odp_page(4)), 64, mr->rkey), RMEM_WC_SUCCESS);
	TEST_EQ(fx_stats(mr).pages, 1);
}

TEST(odp, atomics_on_demand_are_refused_where_there_are_none)
{
	const uint32_t flags = RMEM_REREG_CHANGE_ACCESS;
	struct rmem_mr *mr;

	TEST_SKIP_IF(fx_odp_has_atomics(), "the device has atomics on demand");
	TEST_ERR(rmem_mr_reg(fx.a.pd, fx_odp.mem, FX_PAGE, 0, FX_ODP_ACCESS, &mr), EOPNOTSUPP);
	TEST_ERR(rmem_mr_rereg(fx_odp.mr, flags, NULL, NULL, 0, FX_ODP_ACCESS, NULL), EOPNOTSUPP);
	TEST_STATUS(fx_odp_write(0, 64), RMEM_WC_SUCCESS);
}

/* Bytes of addresses that the process uses. */
static rlim_t
used_addresses(void)
{
	char line[128] = "";
	FILE *f = fopen("/proc/self/statm", "r");

	if (f == NULL)
		return 0;
	if (fgets(line, sizeof(line), f) == NULL)
		line[0] = '\0';
	fclose(f);
	return (rlim_t)strtoul(line, NULL, 10) * (rlim_t)sysconf(_SC_PAGESIZE);
}

/*
 * A table for a range that takes more addresses than a process may have. The limit allows for
 * what a sanitizer maps at any time.
 */
TEST(odp, mr_without_memory_for_its_table_is_refused)
{
	struct rlimit old, none;
	struct rmem_mr *mr;
	int ret;

	TEST_OK(getrlimit(RLIMIT_AS, &old));
	none = old;
	none.rlim_cur = used_addresses() + (64 << 20);
	TEST_ASSERT(none.rlim_cur > 64 << 20);
	TEST_OK(setrlimit(RLIMIT_AS, &none));
	ret = rmem_mr_reg(fx.a.pd, NULL, SIZE_MAX, 0, fx_odp_access(), &mr);
	TEST_OK(setrlimit(RLIMIT_AS, &old));
	TEST_ERR(ret, ENOMEM);
}

/*
 * Memory that is not there ends requests with an access error and never with a signal, and its
 * replacement is visible to the next access.
 */

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

TEST_CALL(odp, page_that_is_protected_gives_an_error, expect_losses(LOSS_PROT_NONE, false));
TEST_CALL(odp, page_that_is_not_mapped_gives_an_error, expect_losses(LOSS_UNMAP, false));
TEST_CALL(odp, known_page_that_is_protected_gives_an_error, expect_losses(LOSS_PROT_NONE, true));
TEST_CALL(odp, known_page_that_is_unmapped_gives_an_error, expect_losses(LOSS_UNMAP, true));

/* As rxe: READ succeeds, WRITE is refused. */
TEST(odp, page_that_is_read_only_can_be_read_only)
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
TEST(odp, request_over_unmapped_memory_transfers_no_byte)
{
	TEST_OK(fx_odp_unmap(2));
	fx_fill(fx.b.buf, 4 * FX_PAGE, 5);
	TEST_STATUS(fx_odp_write(1, 3 * FX_PAGE), RMEM_WC_REM_ACCESS_ERR);
	TEST_OK(fx_odp_map(2));
	TEST_ASSERT(fx_is_zero(fx_odp.mem, FX_ODP_SIZE));
}

TEST(odp, discarded_page_is_zero_at_the_next_access)
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

TEST(odp, page_moved_by_mremap_is_not_followed)
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

TEST_CALL(odp, page_beyond_the_end_of_a_file_gives_an_error, fx_with_memfd(expect_truncated));

/* The receive was not consumed: it waits for another message. */
TEST(odp, send_of_an_unmapped_page_leaves_the_receive)
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
TEST(odp, burst_ends_at_an_unmapped_page)
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
TEST(odp, range_outside_of_the_mr_is_no_page_fault)
{
	TEST_STATUS(fx_peer_write(fx_odp.mr->iova + FX_ODP_SIZE - 32, 64, fx_odp.mr->rkey),
			RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(fx.wc.vendor_err, 6);
	TEST_EQ(fx_stats(fx_odp.mr).failed_faults, 0);
}

/* The table forgets it: the next access asks the kernel again, and counts a fault. */
TEST(odp, page_that_fails_a_copy_is_removed_from_the_table)
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
TEST(odp, request_beyond_the_limit_faults_no_page)
{
	const uint32_t opcodes[] = {RMEM_WR_SEND, RMEM_WR_RDMA_WRITE, RMEM_WR_RDMA_READ};
	struct rmem_mr *all = fx_mr(fx.a.pd, NULL, SIZE_MAX, fx_odp_access());
	struct rmem_sge sge[] = {{fx_addr(fx_odp.mem), 2 * FX_PAGE, 0}, {FX_PAGE, 1U << 31, 0}};
	struct rmem_send_wr wr;
	uint32_t i;

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

TEST(odp, message_longer_than_the_receive_faults_no_page)
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

TEST_SUITE(odp, fx_setup_odp, fx_teardown);
