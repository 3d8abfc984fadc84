/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* MRs over several ranges: one key, byte for byte as in the model, for every use of a key. */

#include <string.h>
#include <sys/mman.h>

#include <rmem_counter.h>
#include <rmem_driver.h>

#include "fixture.h"
#include "umr_layout.h"

#define NB     4u
#define LENGTH (77u + 1u + 64u + 24u)

static struct iovec ranges[NB];
static struct rmem_mr_attr attr;
static struct layout layout;
static struct rmem_mr *shared;

static int
reg(struct rmem_mr **mr)
{
	return fx_reg_attr(fx.a.pd, &attr, mr);
}

/* Of odd pieces of a's buffer, out of order. */
static void
setup(void)
{
	fx_setup();
	ranges[0] = (struct iovec){fx.a.buf + 2011, 77};
	ranges[1] = (struct iovec){fx.a.buf + 3, 1};
	ranges[2] = (struct iovec){fx.a.buf + 1024, 64};
	ranges[3] = (struct iovec){fx.a.buf + 4000, 24};
	memset(&attr, 0, sizeof(attr));
	attr.iov = ranges;
	attr.iov_count = NB;
	attr.access = FX_ACCESS | RMEM_ACCESS_MW_BIND;
}

/* Model an MR over the ranges. */
static void
model(struct rmem_mr *mr)
{
	uint32_t i, j;

	layout.mr = mr;
	layout.iova = mr->iova;
	layout.length = 0;
	for (i = 0; i < attr.iov_count; i++) {
		size_t place = (size_t)((uint8_t *)ranges[i].iov_base - fx.a.buf);

		for (j = 0; j < ranges[i].iov_len; j++)
			layout.place[layout.length++] = (uint32_t)(place + j);
	}
}

TEST(iov, every_opcode_crosses_range_borders)
{
	struct rmem_mr *mr = NULL;

	TEST_OK(reg(&mr));
	model(mr);
	layout_check_all(&layout);
}

TEST(iov, query_reports_the_ranges)
{
	struct rmem_mr_info info;
	struct rmem_mr *mr = NULL;

	attr.length = LENGTH;
	TEST_OK(reg(&mr));
	TEST_ASSERT(mr->addr == NULL);
	TEST_EQ(rmem_mr_drv(mr)->iov_count, NB);
	TEST_MEM(rmem_mr_drv(mr)->iov, ranges, sizeof(ranges));
	info = fx_query(mr);
	TEST_ASSERT(info.addr == NULL);
	TEST_EQ(info.type, RMEM_MR_TYPE_USER);
	TEST_EQ(info.state, RMEM_MR_STATE_VALID);
	TEST_EQ(info.length, LENGTH);
	TEST_EQ(info.iova, fx_addr(ranges[0].iov_base));
	TEST_EQ(info.nb_extents, NB);
	/* No page fits: one page of memory for each range. */
	TEST_EQ(info.page_size, FX_PAGE);
	TEST_EQ(info.nb_pages, NB);
	TEST_EQ(info.nb_levels, 1);
}

TEST(iov, ranges_of_separate_pages_are_registered)
{
	struct rmem_mr_info info;
	struct rmem_mr *mr = NULL;

	ranges[0] = (struct iovec){fx.a.buf + 2 * FX_PAGE - 8, 8};
	ranges[1] = (struct iovec){fx.a.buf + 7 * FX_PAGE, FX_PAGE};
	ranges[2] = (struct iovec){fx.a.buf + 3 * FX_PAGE, 100};
	attr.iov_count = 3;
	TEST_OK(reg(&mr));
	info = fx_query(mr);
	TEST_EQ(info.nb_extents, 3);
	TEST_EQ(info.page_size, FX_PAGE);
	TEST_EQ(info.nb_pages, 3);
}

TEST(iov, iova_is_that_of_the_first_range_or_the_requested_one)
{
	struct rmem_mr *mr = NULL;

	attr.iova = UINT64_C(0x7001);
	TEST_OK(reg(&mr));
	TEST_EQ(mr->iova, 0x7001);
	model(mr);
	layout_check_borders(&layout, RMEM_WR_RDMA_WRITE, LAYOUT_REMOTE);
	attr.iova = 0;
	attr.access |= RMEM_ACCESS_ZERO_BASED;
	TEST_OK(reg(&mr));
	TEST_EQ(mr->iova, 0);
	model(mr);
	layout_check_borders(&layout, RMEM_WR_RDMA_WRITE, LAYOUT_REMOTE);
}

TEST(iov, one_range_equals_an_address)
{
	struct rmem_mr *mr = NULL;

	attr.iov_count = 1;
	TEST_OK(reg(&mr));
	TEST_ASSERT(mr->addr == ranges[0].iov_base);
	TEST_ASSERT(rmem_mr_drv(mr)->iov == NULL);
	TEST_EQ(mr->length, 77);
	model(mr);
	layout_check(&layout, RMEM_WR_RDMA_WRITE, LAYOUT_REMOTE, 3, 70);
}

/* Bytes written through one range are read through the other. */
TEST(iov, ranges_may_overlap)
{
	struct rmem_mr *mr = NULL;

	ranges[1] = (struct iovec){fx.a.buf + 2011 + 7, 70};
	ranges[2] = ranges[0];
	attr.iov_count = 3;
	TEST_OK(reg(&mr));
	fx_fill(fx.b.buf, 77, 3);
	TEST_STATUS(fx_peer_write(mr->iova + 77 + 70, 77, mr->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf + 2011, fx.b.buf, 77);
}

TEST(iov, rights_apply_to_all_ranges)
{
	struct rmem_mr *mr = NULL;

	attr.access = RMEM_ACCESS_REMOTE_READ;
	TEST_OK(reg(&mr));
	model(mr);
	layout_check_borders(&layout, RMEM_WR_RDMA_READ, LAYOUT_REMOTE);
	TEST_STATUS(fx_peer_write(mr->iova, 8, mr->rkey), RMEM_WC_REM_ACCESS_ERR);
	fx_reconnect();
	TEST_STATUS(fx_peer_write(mr->iova + 70, 80, mr->rkey), RMEM_WC_REM_ACCESS_ERR);
}

/* b adds to 8 bytes at an offset; a status. */
static int
add(const struct rmem_mr *mr, uint64_t offset)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	const struct rmem_send_wr wr = fx_atomic(
			RMEM_WR_ATOMIC_FETCH_AND_ADD, &sge, mr->iova + offset, mr->rkey, 5);

	return fx_send(fx.b.qp, &wr);
}

TEST(iov, atomics_stay_within_a_range)
{
	struct rmem_mr *mr = NULL;
	uint64_t got = 0;

	ranges[0] = (struct iovec){fx.a.buf, 12};
	ranges[1] = (struct iovec){fx.a.buf + 1020, 20};
	attr.iov_count = 2;
	TEST_OK(reg(&mr));
	memset(fx.a.buf, 0, FX_BUF_SIZE);
	TEST_STATUS(add(mr, 0), RMEM_WC_SUCCESS);
	TEST_STATUS(add(mr, 16), RMEM_WC_SUCCESS);
	memcpy(&got, fx.a.buf, sizeof(got));
	TEST_EQ(got, 5);
	memcpy(&got, fx.a.buf + 1024, sizeof(got));
	TEST_EQ(got, 5);
	/* Over the border, as over that of any stretch. */
	TEST_STATUS(add(mr, 8), RMEM_WC_REM_INV_REQ_ERR);
}

/* The result of an atomic is scattered like that of a READ. */
TEST(iov, atomic_results_cross_borders)
{
	struct rmem_mr *mr = NULL;
	struct rmem_send_wr wr;
	struct rmem_sge sge;
	uint64_t before = UINT64_C(0x1122334455667788);

	TEST_OK(reg(&mr));
	sge = fx_sge(mr, 74, 8);
	memcpy(fx.b.buf, &before, sizeof(before));
	wr = fx_atomic(RMEM_WR_ATOMIC_FETCH_AND_ADD, &sge, fx_addr(fx.b.buf), fx.b.mr->rkey, 1);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf + 2011 + 74, &before, 3);
	TEST_MEM(fx.a.buf + 3, (uint8_t *)&before + 3, 1);
	TEST_MEM(fx.a.buf + 1024, (uint8_t *)&before + 4, 4);
}

TEST(iov, windows_cover_borders)
{
	struct rmem_mr *mr = NULL;

	TEST_OK(reg(&mr));
	fx.mw.mr = mr;
	fx.mw.one = fx_mw(fx.a.pd, RMEM_MW_TYPE_1);
	fx.mw.two = fx_mw(fx.a.pd, RMEM_MW_TYPE_2);
	TEST_STATUS(fx_mw_bind_2(70, 80, RMEM_ACCESS_REMOTE_WRITE), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_mw_bind_1(70, 80, RMEM_ACCESS_REMOTE_WRITE), RMEM_WC_SUCCESS);
	fx_fill(fx.b.buf, 80, 8);
	TEST_STATUS(fx_peer_write(mr->iova + 70, 80, fx.mw.two->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf + 2011 + 70, fx.b.buf, 7);
	TEST_MEM(fx.a.buf + 3, fx.b.buf + 7, 1);
	TEST_MEM(fx.a.buf + 1024, fx.b.buf + 8, 64);
	TEST_MEM(fx.a.buf + 4000, fx.b.buf + 72, 8);
	fx_fill(fx.b.buf, 80, 9);
	TEST_STATUS(fx_peer_write(mr->iova + 72, 72, fx.mw.one->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf + 1024, fx.b.buf + 6, 64);
	TEST_STATUS(fx_peer_write(mr->iova + 72, 79, fx.mw.one->rkey), RMEM_WC_REM_ACCESS_ERR);
	fx_reconnect();
}

/* Changes of PD and rights keep the ranges; other memory ends them. */
TEST(iov, rereg_of_the_memory_ends_the_list)
{
	struct rmem_pd *pd = fx_pd(fx.a.dev);
	enum rmem_rereg_result result;
	struct rmem_mr *mr = NULL;
	uint32_t rkey;

	TEST_OK(reg(&mr));
	rkey = mr->rkey;
	TEST_OK(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_PD | RMEM_REREG_CHANGE_ACCESS, pd, NULL, 0,
			RMEM_ACCESS_REMOTE_READ, NULL));
	TEST_OK(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_PD, fx.a.pd, NULL, 0, 0, NULL));
	TEST_OK(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, FX_ACCESS, NULL));
	TEST_EQ(rmem_mr_drv(mr)->iov_count, NB);
	TEST_EQ(mr->rkey, rkey);
	model(mr);
	layout_check_all(&layout);
	TEST_OK(rmem_mr_rereg(
			mr, RMEM_REREG_CHANGE_TRANSLATION, NULL, fx.a.buf + 64, 512, 0, &result));
	TEST_EQ(result, RMEM_REREG_OK);
	TEST_ASSERT(mr->addr == fx.a.buf + 64 && rmem_mr_drv(mr)->iov == NULL);
	TEST_EQ(rmem_mr_drv(mr)->iov_count, 0);
	TEST_EQ(fx_query(mr).nb_extents, 1);
	fx_mw_expect_write(mr->iova + 2, 510, rkey, fx.a.buf + 66);
}

TEST(iov, failed_rereg_keeps_the_list)
{
	struct rmem_mr *mr = NULL;
	uint8_t *mem = fx_map(FX_PAGE);

	TEST_OK(reg(&mr));
	TEST_ERR(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_TRANSLATION, NULL, mem, 8, 0, NULL), EFAULT);
	TEST_EQ(rmem_mr_drv(mr)->iov_count, NB);
	model(mr);
	layout_check_borders(&layout, RMEM_WR_RDMA_WRITE, LAYOUT_REMOTE);
}

TEST(iov, sharers_have_their_own_list)
{
	struct rmem_mr *mr = NULL, *other = NULL;

	TEST_OK(reg(&mr));
	TEST_OK(rmem_mr_reg_shared(mr, fx.a.pd, 0, FX_ACCESS, &other));
	fx_track(other);
	TEST_EQ(other->iova, mr->iova);
	TEST_OK(fx_release(mr));
	model(other);
	TEST_EQ(fx_query(other).is_shared, 1);
	layout_check_borders(&layout, RMEM_WR_RDMA_WRITE, LAYOUT_REMOTE);
}

TEST(iov, disabled_list_is_valid_when_enabled)
{
	struct rmem_mr *mr = NULL;

	attr.flags = RMEM_MR_DISABLED;
	TEST_OK(reg(&mr));
	TEST_STATUS(fx_peer_write(mr->iova, 8, mr->rkey), RMEM_WC_REM_ACCESS_ERR);
	fx_reconnect();
	TEST_OK(rmem_mr_enable(mr));
	model(mr);
	layout_check_all(&layout);
}

/* The caller's array is its own again when the call returned. */
TEST(iov, background_registration_copies_the_ranges)
{
	struct rmem_mr *mr = NULL;
	struct iovec saved[NB];
	struct rmem_event event;

	attr.eq = fx_eq(fx.a.dev, 2);
	memcpy(saved, ranges, sizeof(saved));
	TEST_OK(reg(&mr));
	memset(ranges, 0xff, sizeof(ranges));
	event = fx_event(attr.eq);
	memcpy(ranges, saved, sizeof(saved));
	TEST_OK(event.status);
	TEST_ASSERT(event.mr == mr);
	model(mr);
	layout_check_borders(&layout, RMEM_WR_RDMA_WRITE, LAYOUT_REMOTE);
	attr.iov_count = 1;
	TEST_OK(reg(&mr));
	TEST_OK(fx_event(attr.eq).status);
	TEST_ASSERT(mr->addr == ranges[0].iov_base);
}

TEST(iov, background_registration_populates_every_range)
{
	const size_t size = 64 * FX_PAGE;
	unsigned char resident[64];
	struct rmem_mr *mr = NULL;
	unsigned int i, j;
	uint8_t *mem;

	mem = mmap(NULL, NB * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT(mem != MAP_FAILED);
	for (i = 0; i < NB; i++)
		ranges[i] = (struct iovec){mem + (NB - 1 - i) * size, size};
	attr.eq = fx_eq(fx.a.dev, 2);
	TEST_OK(reg(&mr));
	TEST_OK(fx_event(attr.eq).status);
	for (i = 0; i < NB; i++) {
		TEST_OK(mincore(ranges[i].iov_base, size, resident));
		for (j = 0; j < RTE_DIM(resident); j++)
			TEST_ASSERT(resident[j] & 1);
	}
	TEST_OK(fx_release(mr));
	/* An unmapped one is detected at any position. */
	for (i = 0; i < NB; i++) {
		TEST_OK(munmap(ranges[i].iov_base, size));
		TEST_OK(reg(&mr));
		TEST_ERR(fx_event(attr.eq).status, EFAULT);
		TEST_EQ(fx_mr_state(mr), RMEM_MR_STATE_ERROR);
		TEST_OK(fx_release(mr));
		ranges[i].iov_base = fx.a.buf;
	}
}

TEST(iov, counter_counts_each_request_once)
{
	struct rmem_counter *counter = fx_counter(fx.a.dev);
	struct rmem_mr *mr = NULL;

	TEST_OK(reg(&mr));
	TEST_OK(rmem_mr_bind_counter(mr, counter, RMEM_COUNTER_REMOTE_WRITE));
	model(mr);
	TEST_STATUS(fx_peer_write(mr->iova + 3, 8, mr->rkey), RMEM_WC_SUCCESS);
	TEST_EQ(rmem_counter_read(counter), 1);
	TEST_STATUS(fx_peer_write(mr->iova, LENGTH, mr->rkey), RMEM_WC_SUCCESS);
	TEST_EQ(rmem_counter_read(counter), 2);
	layout_check_all(&layout);
	/* Those of b's requests that write: six each of WRITE and WRITE_WITH_IMM. */
	TEST_EQ(rmem_counter_read(counter), 2 + 12);
	TEST_OK(rmem_mr_bind_counter(mr, NULL, RMEM_COUNTER_REMOTE_WRITE));
	TEST_STATUS(fx_peer_write(mr->iova + 3, 8, mr->rkey), RMEM_WC_SUCCESS);
	TEST_EQ(rmem_counter_read(counter), 14);
}

/* An indirect key over it has its bytes in order; the MR counts as one piece. */
TEST(iov, indirect_keys_cover_range_lists)
{
	struct rmem_counter *counter = fx_counter(fx.a.dev);
	struct rmem_mr *list = fx_mkey(fx.a.pd, 4), *mr = NULL;
	struct rmem_mkey_entry entries[2];
	struct rmem_send_wr wr;

	TEST_OK(reg(&mr));
	TEST_OK(rmem_mr_bind_counter(mr, counter, RMEM_COUNTER_REMOTE_WRITE));
	entries[0] = fx_entry(mr, 70, 80);
	entries[1] = fx_entry(mr, 3, 20);
	wr = fx_umr(list, entries, 2, 0x5000);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	fx_fill(fx.b.buf, 100, 8);
	TEST_STATUS(fx_peer_write(0x5000, 100, list->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf + 2011 + 70, fx.b.buf, 7);
	TEST_MEM(fx.a.buf + 3, fx.b.buf + 7, 1);
	TEST_MEM(fx.a.buf + 1024, fx.b.buf + 8, 64);
	TEST_MEM(fx.a.buf + 4000, fx.b.buf + 72, 8);
	TEST_MEM(fx.a.buf + 2011 + 3, fx.b.buf + 80, 20);
	/* Within a range, and over a border, of a single entry. */
	TEST_STATUS(fx_peer_write(0x5000 + 8, 60, list->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf + 1024, fx.b.buf, 60);
	fx_fill(fx.b.buf, 100, 9);
	TEST_STATUS(fx_peer_write(0x5000 + 2, 70, list->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf + 2011 + 72, fx.b.buf, 5);
	TEST_MEM(fx.a.buf + 1024, fx.b.buf + 6, 64);
	TEST_EQ(rmem_counter_read(counter), 0);
	TEST_OK(rmem_mr_bind_counter(mr, NULL, RMEM_COUNTER_REMOTE_WRITE));
}

/* Invalid ranges: each error is refused, and the log line has the reason. */

static int
reg_conf(const void *conf)
{
	struct rmem_mr *mr = NULL;
	int ret = rmem_mr_reg_attr(fx.a.pd, conf, &mr);

	return mr == NULL ? ret : 0;
}

TEST(iov, bad_forms_are_refused)
{
	const uint64_t high = UINT64_MAX - LENGTH + 2;
	const struct fx_bad_field rows[] = {
			{"iov = NULL", offsetof(struct rmem_mr_attr, iov), sizeof(void *), 0,
					EINVAL},
			FX_BAD(rmem_mr_attr, iov_count, 0, EINVAL),
			FX_BAD(rmem_mr_attr, addr, fx.a.buf, EINVAL),
			FX_BAD(rmem_mr_attr, access, FX_ACCESS | RMEM_ACCESS_ALLOCATE_MR, EINVAL),
			FX_BAD(rmem_mr_attr, length, LENGTH - 1, EINVAL),
			FX_BAD(rmem_mr_attr, flags, RMEM_MR_FD, EINVAL),
			FX_BAD(rmem_mr_attr, iova, high, EINVAL),
	};
	struct rmem_mr *mr = NULL;

	fx_expect_bad_fields(&attr, sizeof(attr), rows, RTE_DIM(rows), reg_conf);
	attr.iova = high - 1;
	TEST_OK(reg(&mr));
}

/* One range is invalid; the log line has the range and the reason. */
static void
expect_bad_range(void *base, size_t length, const char *what)
{
	struct rmem_mr *mr = NULL;

	ranges[2] = (struct iovec){base, length};
	FX_ERR_LOG(reg(&mr), EINVAL, what);
}

TEST(iov, invalid_ranges_are_refused)
{
	expect_bad_range(fx.a.buf, 0, "range 2 is NULL, empty or wraps around: 0 bytes");
	expect_bad_range(NULL, 8, "range 2 is NULL, empty or wraps around: 8 bytes");
	expect_bad_range((void *)(UINTPTR_MAX - 62), 64, "wraps around");
	/* Each is possible, their sum is not. */
	ranges[1] = (struct iovec){(void *)1, SIZE_MAX - 8};
	expect_bad_range((void *)1, SIZE_MAX - 8, "out of range");
}

TEST(iov, limits_hold)
{
	struct rmem_dev *dev = fx_dev("soft1", "max_iov=3,max_mr_size=8192");
	struct rmem_pd *pd = fx_pd(dev);
	struct rmem_mr *mr = NULL;
	struct rmem_dev_info info = fx_dev_info(dev);

	TEST_EQ(info.max_iov, 3);
	TEST_ASSERT(info.capa & RMEM_DEV_CAPA_MR_IOV);
	FX_ERR_LOG(rmem_mr_reg_attr(pd, &attr, &mr), EINVAL, "iov_count out of range: 4 (1 to 3)");
	attr.iov_count = 3;
	ranges[2].iov_len = 8192 - 78 + 1;
	TEST_ERR(rmem_mr_reg_attr(pd, &attr, &mr), EINVAL);
	TEST_ASSERT(mr == NULL);
	ranges[2].iov_len--;
	TEST_OK(fx_reg_attr(pd, &attr, &mr));
}

TEST(iov, each_range_must_be_mapped_as_needed)
{
	uint8_t *mem = fx_map(2 * FX_PAGE);
	struct rmem_mr *mr = NULL;

	ranges[2] = (struct iovec){mem, 8};
	TEST_ERR(reg(&mr), EFAULT);
	attr.access = RMEM_ACCESS_REMOTE_READ;
	TEST_OK(reg(&mr));
	TEST_ERR(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, FX_ACCESS, NULL),
			EFAULT);
	TEST_OK(munmap(mem + FX_PAGE, FX_PAGE));
	ranges[2] = (struct iovec){mem + FX_PAGE - 1, 2};
	TEST_ERR(reg(&mr), EFAULT);
}

static int
make_list(void **mr)
{
	return rmem_mr_reg_attr(fx.a.pd, &attr, (struct rmem_mr **)mr);
}

static int
make_shared_list(void **mr)
{
	return rmem_mr_reg_shared(shared, fx.a.pd, 0, FX_ACCESS, (struct rmem_mr **)mr);
}

TEST(iov, no_memory_is_enomem_and_nothing_stays)
{
	fx_expect_enomem(make_list);
	TEST_OK(reg(&shared));
	fx_expect_enomem(make_shared_list);
}

TEST_SUITE(iov, setup, fx_teardown);
