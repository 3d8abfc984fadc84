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
#include "test.h"

TEST(odp, device_reports_its_odp_support)
{
	const uint32_t rc_caps = RMEM_ODP_SEND | RMEM_ODP_RECV | RMEM_ODP_SRQ_RECV |
			RMEM_ODP_WRITE | RMEM_ODP_READ;
	struct rmem_dev_info info;

	TEST_OK(rmem_dev_info_get(fx.a.dev, &info));
	TEST_EQ(info.odp.general, RMEM_ODP_SUPPORT | RMEM_ODP_SUPPORT_IMPLICIT);
	TEST_EQ(info.odp.rc & ~RMEM_ODP_ATOMIC, rc_caps);
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
	TEST_EQ(info.nb_extents, 1);
}

TEST(odp, memory_need_not_be_mapped_at_registration)
{
	struct rmem_mr *mr;

	TEST_OK(fx_odp_unmap(2));
	mr = fx_mr(fx.a.pd, fx_odp_page(2), FX_PAGE, fx_odp_access());
	TEST_OK(fx_odp_map(2));
	TEST_ASSERT(mr != NULL);
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

TEST(odp, read_of_unwritten_pages_gives_zeros)
{
	fx_fill(fx.b.buf, FX_PAGE, 2);
	TEST_STATUS(fx_odp_do(FX_ODP_READ_FROM, fx_addr(fx_odp_page(1)), FX_PAGE), RMEM_WC_SUCCESS);
	TEST_ASSERT(fx_is_zero(fx.b.buf, FX_PAGE));
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

	memcpy(old_peer, fx.b.buf, FX_ODP_SIZE);
	memcpy(old, fx_odp.mem, FX_ODP_SIZE);
	TEST_STATUS(fx_odp_do(op, fx_addr(mem), length), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_odp.recv_status, RMEM_WC_SUCCESS);
	check_bytes(op, mem, old + (mem - fx_odp.mem), old_peer, length);
	if (op == FX_ODP_ADD || op == FX_ODP_SWAP || op == FX_ODP_ADD_RESULT)
		length = sizeof(uint64_t);
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

	TEST_ASSERT(mr != NULL);
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

	TEST_ASSERT(mr != NULL);
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

	if (fx_odp_has_atomics())
		test_skip("the device has atomics on demand");
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

TEST_SUITE(odp, fx_setup_odp, fx_teardown);
