/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Re-registration changes what its flags name, all else stays, and what is refused changes
 * nothing.
 */

#include <string.h>
#include <sys/mman.h>

#include <rte_lcore.h>

#include <rmem_driver.h>

#include "fixture.h"

#define TRANSLATION RMEM_REREG_CHANGE_TRANSLATION
#define PD          RMEM_REREG_CHANGE_PD
#define ACCESS      RMEM_REREG_CHANGE_ACCESS
#define ALL         (TRANSLATION | PD | ACCESS)

#define OLD_SIZE   4096u
#define NEW_OFFSET 8193u
#define NEW_SIZE   5000u
#define READ_ONLY  (RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_READ)
#define ALLOCATE   (FX_ACCESS | RMEM_ACCESS_ALLOCATE_MR)

/* The arguments of a change, initially valid. */
struct change {
	uint32_t flags;
	struct rmem_pd *pd;
	void *addr;
	size_t length;
	uint32_t access;
};

static struct change
good_change(uint32_t flags, struct rmem_pd *pd)
{
	return (struct change){flags, pd, fx.a.buf + NEW_OFFSET, NEW_SIZE, READ_ONLY};
}

static int
rereg(struct rmem_mr *mr, const struct change *change, enum rmem_rereg_result *result)
{
	return rmem_mr_rereg(mr, change->flags, change->pd, change->addr, change->length,
			change->access, result);
}

/* A change of the MR's memory alone. */
static int
move(struct rmem_mr *mr, void *addr, size_t length, uint32_t access, enum rmem_rereg_result *result)
{
	return rmem_mr_rereg(mr, TRANSLATION, NULL, addr, length, access, result);
}

/* Whether the peer's request succeeds, with the sides connected afterwards. */
static void
expect_remote(uint8_t opcode, uint64_t addr, uint32_t rkey, bool is_open)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 64);
	struct rmem_send_wr wr = fx_rdma(opcode, &sge, addr, rkey);

	TEST_STATUS(fx_send(fx.b.qp, &wr), is_open ? RMEM_WC_SUCCESS : RMEM_WC_REM_ACCESS_ERR);
	if (!is_open)
		fx_reconnect();
}

/* Refused; the MR is as it was, and the PDs count as before. */
static void
expect_refused(struct rmem_mr *mr, const struct change *change, int error)
{
	enum rmem_rereg_result result = RMEM_REREG_OK;
	const struct rmem_mr_drv before = *rmem_mr_drv(mr);

	TEST_ERR(rereg(mr, change, &result), error);
	TEST_EQ(result, error == EFAULT ? RMEM_REREG_ERR_DONT_FORK_NEW : RMEM_REREG_ERR_INPUT);
	TEST_EQ(memcmp(&before, mr, sizeof(before)), 0);
	expect_remote(RMEM_WR_RDMA_WRITE, fx_addr(fx.a.buf), mr->rkey, true);
}

/* One invalid argument, with each combination of flags that uses it. */
static void
expect_bad(struct rmem_mr *mr, uint32_t flag, const struct change *bad, int error)
{
	struct change change = *bad;
	uint32_t flags;

	for (flags = 1; flags <= ALL; flags++) {
		if ((flags & flag) == 0)
			continue;
		change.flags = flags;
		expect_refused(mr, &change, error);
	}
}

TEST(rereg, bad_argument_is_refused_and_the_old_stays)
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, OLD_SIZE, FX_ACCESS);
	struct rmem_pd *pd = fx_pd(fx.a.dev), *far = fx_pd(fx_dev("soft7", NULL));
	uint8_t *pages = fx_map(2 * FX_PAGE), *buf = fx.a.buf;
	const uint32_t allocate = READ_ONLY | RMEM_ACCESS_ALLOCATE_MR;
	/* The flag that uses the bad argument. */
	const struct change bad[] = {{TRANSLATION, pd, NULL, NEW_SIZE, READ_ONLY},
			{TRANSLATION, pd, (void *)(UINTPTR_MAX - 100), NEW_SIZE, READ_ONLY},
			{TRANSLATION, pd, buf, SIZE_MAX, READ_ONLY},
			{TRANSLATION, pd, buf, NEW_SIZE, allocate},
			{TRANSLATION, pd, pages, FX_PAGE + 1, READ_ONLY},
			{PD, NULL, buf, NEW_SIZE, READ_ONLY},
			{PD, (struct rmem_pd *)fx.a.cq, buf, NEW_SIZE, READ_ONLY},
			{PD, far, buf, NEW_SIZE, READ_ONLY},
			{ACCESS, pd, buf, NEW_SIZE, UINT32_C(1) << 31},
			{ACCESS, pd, buf, NEW_SIZE, RMEM_ACCESS_REMOTE_WRITE},
			{ACCESS, pd, buf, NEW_SIZE, RMEM_ACCESS_REMOTE_ATOMIC}};
	/* With all flags that are set. */
	const struct change whole[] = {{0, pd, buf, NEW_SIZE, READ_ONLY},
			{ALL + 1, pd, buf, NEW_SIZE, READ_ONLY},
			{ACCESS, pd, buf, NEW_SIZE, allocate},
			{ACCESS | PD, pd, buf, NEW_SIZE, allocate},
			{ACCESS | PD, pd, buf, NEW_SIZE, READ_ONLY | RMEM_ACCESS_ZERO_BASED}};
	unsigned int i;

	TEST_OK(mprotect(pages, FX_PAGE, PROT_READ | PROT_WRITE));
	TEST_OK(munmap(pages + FX_PAGE, FX_PAGE));
	for (i = 0; i < RTE_DIM(bad); i++)
		expect_bad(mr, bad[i].flags, &bad[i], bad[i].addr == pages ? EFAULT : EINVAL);
	for (i = 0; i < RTE_DIM(whole); i++)
		expect_refused(mr, &whole[i], EINVAL);
	TEST_OK(fx_release(pd));
	TEST_OK(fx_release(far));
}

TEST(rereg, right_to_write_needs_memory_that_can_be_written)
{
	uint8_t *page = fx_map(FX_PAGE);
	struct rmem_mr *mr = fx_mr(fx.a.pd, page, FX_PAGE, RMEM_ACCESS_REMOTE_READ);
	const struct change change = {.flags = ACCESS, .access = READ_ONLY};
	enum rmem_rereg_result result;

	TEST_ERR(rereg(mr, &change, &result), EFAULT);
	TEST_EQ(result, RMEM_REREG_ERR_DONT_FORK_NEW);
	expect_remote(RMEM_WR_RDMA_READ, fx_addr(page), mr->rkey, true);
	TEST_OK(mprotect(page, FX_PAGE, PROT_READ | PROT_WRITE));
	TEST_OK(rereg(mr, &change, &result));
}

TEST(rereg, access_that_the_device_lacks_is_eopnotsupp)
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, OLD_SIZE, FX_ACCESS);
	struct change bad = good_change(0, fx.a.pd);
	struct rmem_dev_info info = fx_dev_info(fx.a.dev);
	uint32_t bit;

	/* Verbs' bits. */
	for (bit = 1 << 4; bit <= 1 << 7; bit <<= 1) {
		if (info.access & bit)
			continue;
		bad.access = READ_ONLY | bit;
		expect_bad(mr, ACCESS, &bad, EOPNOTSUPP);
	}
}

TEST(rereg, bad_handles_are_refused)
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, OLD_SIZE, FX_ACCESS);
	const struct change bad = good_change(ACCESS, fx.a.pd);
	enum rmem_rereg_result result = RMEM_REREG_OK;

	TEST_ERR(rereg(NULL, &bad, &result), EINVAL);
	TEST_EQ(result, RMEM_REREG_ERR_INPUT);
	TEST_ERR(rereg((struct rmem_mr *)fx.a.pd, &bad, &result), EINVAL);
	/* Without a result argument the errno is returned too. */
	TEST_ERR(rereg(NULL, &bad, NULL), EINVAL);
	TEST_OK(rereg(mr, &bad, NULL));
}

/* From memory of the user to that of the library, twice, and back: all is freed. */
TEST(rereg, translation_allocates_and_frees)
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, OLD_SIZE, FX_ACCESS);
	const size_t sizes[] = {8u << 20, 16u << 20, 4u << 20};
	size_t before = test_heap().heap_allocsz_bytes;
	unsigned int i;

	for (i = 0; i < RTE_DIM(sizes); i++) {
		TEST_OK(move(mr, NULL, sizes[i] - 1, ALLOCATE, NULL));
		TEST_EQ(mr->access, ALLOCATE);
		TEST_EQ(mr->length, sizes[i]);
		TEST_EQ(mr->iova, fx_addr(mr->addr));
		TEST_ASSERT(test_heap().heap_allocsz_bytes >= before + sizes[i]);
		TEST_ASSERT(test_heap().heap_allocsz_bytes < before + sizes[i] + (1u << 20));
		expect_remote(RMEM_WR_RDMA_WRITE, mr->iova + mr->length - 64, mr->rkey, true);
	}
	TEST_OK(rmem_mr_rereg(mr, ACCESS, NULL, NULL, 0, READ_ONLY, NULL));
	TEST_EQ(mr->access, READ_ONLY | RMEM_ACCESS_ALLOCATE_MR);
	TEST_OK(rmem_mr_rereg(mr, ACCESS, NULL, NULL, 0, ALLOCATE, NULL));
	TEST_OK(move(mr, fx.a.buf, OLD_SIZE, 0, NULL));
	TEST_EQ(mr->access, FX_ACCESS);
	TEST_EQ(test_heap().heap_allocsz_bytes, before);
	expect_remote(RMEM_WR_RDMA_WRITE, mr->iova, mr->rkey, true);
	TEST_OK(move(mr, NULL, 1, ALLOCATE, NULL));
	TEST_OK(fx_release(mr));
	TEST_ASSERT(test_heap().heap_allocsz_bytes <= before);
}

TEST(rereg, too_little_memory_is_enomem_and_the_old_stays)
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, OLD_SIZE, FX_ACCESS);
	enum rmem_rereg_result result = RMEM_REREG_OK;
	int i;

	for (i = 0; i < 2; i++) {
		TEST_ERR(move(mr, NULL, (size_t)1 << 45, ALLOCATE, &result), ENOMEM);
		TEST_EQ(result, RMEM_REREG_ERR_DONT_FORK_NEW);
		expect_remote(RMEM_WR_RDMA_WRITE, mr->iova, mr->rkey, true);
		TEST_OK(move(mr, NULL, 64, ALLOCATE, NULL));
	}
}

/* A zero-based MR remains so, for each change; a change of memory can set it. */
TEST(rereg, zero_based_mr_stays_zero_based)
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, OLD_SIZE, FX_ACCESS | RMEM_ACCESS_ZERO_BASED);
	const struct change to = {TRANSLATION | ACCESS, NULL, fx.a.buf, OLD_SIZE,
			FX_ACCESS | RMEM_ACCESS_ZERO_BASED};
	struct rmem_mr *late = fx_mr(fx.a.pd, fx.a.buf, OLD_SIZE, FX_ACCESS);

	TEST_OK(rmem_mr_rereg(mr, ACCESS, NULL, NULL, 0, READ_ONLY, NULL));
	TEST_EQ(mr->access, READ_ONLY | RMEM_ACCESS_ZERO_BASED);
	TEST_OK(move(mr, fx.a.buf + NEW_OFFSET, 64, 0, NULL));
	TEST_EQ(mr->iova, 0);
	expect_remote(RMEM_WR_RDMA_READ, 0, mr->rkey, true);
	TEST_OK(move(mr, NULL, 64, RMEM_ACCESS_ALLOCATE_MR, NULL));
	TEST_EQ(mr->iova, 0);
	expect_remote(RMEM_WR_RDMA_READ, 0, mr->rkey, true);
	TEST_OK(rereg(late, &to, NULL));
	TEST_EQ(late->iova, 0);
	expect_remote(RMEM_WR_RDMA_WRITE, 0, late->rkey, true);
}

/* Its rights are those of the last change when it is enabled. */
TEST(rereg, disabled_mr_stays_disabled)
{
	const struct rmem_mr_attr attr = {.addr = fx.a.buf,
			.length = OLD_SIZE,
			.access = FX_ACCESS,
			.flags = RMEM_MR_DISABLED};
	struct rmem_mr *mr = NULL;

	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	TEST_OK(rmem_mr_rereg(mr, ACCESS, NULL, NULL, 0, READ_ONLY, NULL));
	TEST_OK(move(mr, fx.a.buf + NEW_OFFSET, 64, 0, NULL));
	TEST_EQ(fx_mr_state(mr), RMEM_MR_STATE_DISABLED);
	expect_remote(RMEM_WR_RDMA_READ, mr->iova, mr->rkey, false);
	TEST_OK(rmem_mr_enable(mr));
	expect_remote(RMEM_WR_RDMA_READ, mr->iova, mr->rkey, true);
	expect_remote(RMEM_WR_RDMA_WRITE, mr->iova, mr->rkey, false);
}

/* An object bound to an MR prevents every change of it. */
static void
expect_bound(struct rmem_mr *mr)
{
	enum rmem_rereg_result result;
	uint32_t flags;

	for (flags = 1; flags <= ALL; flags++) {
		const struct change change = good_change(flags, fx.b.pd);

		TEST_ERR(rereg(mr, &change, &result), EBUSY);
		TEST_EQ(result, RMEM_REREG_ERR_INPUT);
	}
}

TEST(rereg, attributes_can_grow_and_choose_a_socket)
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, 64, FX_ACCESS);
	struct rmem_mr_rereg_attr attr = {
			.flags = RMEM_REREG_CHANGE_TRANSLATION,
			.access = RMEM_ACCESS_ALLOCATE_MR,
			.length = 64,
			.socket_id = 4711,
	};
	enum rmem_rereg_result result = RMEM_REREG_OK;

	TEST_ERR(rmem_mr_rereg_attr(mr, NULL, &result), EINVAL);
	TEST_ERR(rmem_mr_rereg_attr(mr, &attr, &result), EINVAL);
	TEST_EQ(result, RMEM_REREG_ERR_INPUT);
	attr.socket_id = SOCKET_ID_ANY;
	attr.reserved[1] = 1;
	TEST_ERR(rmem_mr_rereg_attr(mr, &attr, NULL), EINVAL);
	attr.reserved[1] = 0;
	TEST_OK(rmem_mr_rereg_attr(mr, &attr, &result));
	TEST_ASSERT(result >= RMEM_REREG_OK && mr->addr != fx.a.buf);
}

TEST_WITH(rereg, bound_counter_forbids_a_change, fx_setup_mw)
{
	struct rmem_counter *counter = fx_counter(fx.a.dev);

	TEST_OK(rmem_mr_bind_counter(fx.mw.mr, counter, RMEM_COUNTER_REMOTE_WRITE));
	expect_bound(fx.mw.mr);
	TEST_OK(rmem_mr_bind_counter(fx.mw.mr, NULL, RMEM_COUNTER_REMOTE_WRITE));
	TEST_OK(move(fx.mw.mr, fx.a.buf + NEW_OFFSET, NEW_SIZE, 0, NULL));
	TEST_OK(rmem_mr_bind_counter(fx.mw.mr, counter, RMEM_COUNTER_REMOTE_WRITE));
	expect_remote(RMEM_WR_RDMA_WRITE, fx.mw.mr->iova, fx.mw.mr->rkey, true);
	TEST_EQ(rmem_counter_read(counter), 1);
	TEST_OK(rmem_mr_bind_counter(fx.mw.mr, NULL, RMEM_COUNTER_REMOTE_WRITE));
}

TEST_SUITE(rereg, fx_setup, fx_teardown);
