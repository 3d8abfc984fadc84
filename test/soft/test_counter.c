/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A counter counts modifications of an MR by peers, never before the bytes are written. */

#include <string.h>

#include "fixture.h"

#define NB_WRITES 5000u
#define WORDS     64u

static struct rmem_counter *counter;

/* b's buffer counts. */
static void
setup(void)
{
	fx_setup();
	counter = fx_counter(fx.b.dev);
	TEST_OK(rmem_mr_bind_counter(fx.b.mr, counter, RMEM_COUNTER_REMOTE_WRITE));
}

/* Objects that are still bound after a failed case are not released. */
static void
teardown(void)
{
	if (fx.b.mr != NULL)
		rmem_mr_bind_counter(fx.b.mr, NULL, RMEM_COUNTER_REMOTE_WRITE);
	fx_teardown();
}

static uint64_t
b_addr(void)
{
	return fx_addr(fx.b.buf);
}

/* a sends a request of this opcode on 8 bytes of b's; a status. */
static int
request(uint8_t opcode, uint32_t length)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, length);
	struct rmem_send_wr wr = fx_rdma(opcode, &sge, b_addr(), fx.b.mr->rkey);

	return fx_send(fx.a.qp, &wr);
}

TEST(counter, one_counter_counts_for_several_regions)
{
	struct rmem_mr *mr = fx_mr(fx.b.pd, fx.b.buf, 64, FX_ACCESS);
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_send_wr wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, b_addr(), mr->rkey);

	TEST_OK(rmem_mr_bind_counter(mr, counter, RMEM_COUNTER_REMOTE_WRITE));
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(request(RMEM_WR_RDMA_WRITE, 64), RMEM_WC_SUCCESS);
	TEST_EQ(rmem_counter_read(counter), 2);
	TEST_OK(rmem_mr_bind_counter(mr, NULL, RMEM_COUNTER_REMOTE_WRITE));
}

TEST(counter, region_bound_while_disabled_counts_from_the_first_write)
{
	const struct rmem_mr_attr attr = {.addr = fx.b.buf,
			.length = 64,
			.access = FX_ACCESS,
			.flags = RMEM_MR_DISABLED};
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_send_wr wr;
	struct rmem_mr *mr = NULL;

	TEST_OK(fx_reg_attr(fx.b.pd, &attr, &mr));
	TEST_OK(rmem_mr_bind_counter(mr, counter, RMEM_COUNTER_REMOTE_WRITE));
	TEST_OK(rmem_mr_enable(mr));
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, b_addr(), mr->rkey);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(rmem_counter_read(counter), 1);
	TEST_OK(rmem_mr_bind_counter(mr, NULL, RMEM_COUNTER_REMOTE_WRITE));
}

TEST(counter, bind_refuses_wrong_arguments)
{
	const uint32_t flags = RMEM_COUNTER_REMOTE_WRITE;
	const struct rmem_counter_conf bytes = {.flags = RMEM_COUNTER_BYTES};
	struct rmem_counter *other = fx_counter(fx_dev("soft1", NULL)), *wrong = NULL;
	static uint64_t zeros[64] __rte_cache_aligned;

	TEST_ERR(rmem_mr_bind_counter(NULL, counter, flags), EINVAL);
	TEST_ERR(rmem_mr_bind_counter((struct rmem_mr *)zeros, counter, flags), EINVAL);
	TEST_ERR(rmem_mr_bind_counter(fx.a.mr, (struct rmem_counter *)zeros, flags), EINVAL);
	TEST_ERR(rmem_mr_bind_counter(fx.a.mr, other, flags), EINVAL);
	TEST_OK(rmem_counter_create(fx.a.dev, &bytes, &wrong));
	fx_track(wrong);
	TEST_ERR(rmem_mr_bind_counter(fx.a.mr, wrong, flags), EINVAL);
	TEST_ERR(rmem_mr_bind_counter(fx.a.mr, counter, 0), EINVAL);
	TEST_ERR(rmem_mr_bind_counter(fx.a.mr, counter, flags | 2), EINVAL);
	TEST_ERR(rmem_mr_bind_counter(fx.a.mr, NULL, 0), EINVAL);
	TEST_ERR(rmem_mr_bind_counter(fx_fast_mr(fx.a.pd, 1), counter, flags), EINVAL);
}

TEST(counter, failed_region_is_busy)
{
	const struct rmem_mr_attr attr = {.addr = fx_map(FX_PAGE),
			.length = FX_PAGE,
			.access = FX_ACCESS,
			.eq = fx_eq(fx.a.dev, 1)};
	struct rmem_mr *mr = NULL;

	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	TEST_ERR(fx_event(attr.eq).status, EFAULT);
	TEST_ERR(rmem_mr_bind_counter(mr, counter, RMEM_COUNTER_REMOTE_WRITE), EBUSY);
}

TEST(counter, create_refuses_wrong_arguments)
{
	const struct rmem_counter_conf bad_flags = {.flags = RMEM_COUNTER_BYTES << 1};
	const struct rmem_counter_conf bad_reserved = {.reserved = {0, 1}};
	struct rmem_counter *other = NULL;

	TEST_ERR(rmem_counter_create(fx.a.dev, &bad_flags, &other), EINVAL);
	TEST_ERR(rmem_counter_create(fx.a.dev, &bad_reserved, &other), EINVAL);
	TEST_ASSERT(other == NULL);
}

static uint32_t nb_seen; /* writes that the watcher has checked; atomic */

/* Write number n stores n in every word: after its count was loaded, plain loads return all. */
static void
watch(void *arg)
{
	const uint64_t *words = (const uint64_t *)(const void *)fx.b.buf;
	unsigned int i, spins = 0;
	uint64_t n;

	RTE_SET_USED(arg);
	for (n = 1; n <= NB_WRITES; n++) {
		uint64_t deadline = fx_deadline();

		while (rmem_counter_read(counter) < n && !fx_is_late(deadline))
			fx_relax(&spins);
		for (i = 0; i < WORDS; i++)
			TEST_EQ(words[i], n);
		__atomic_store_n(&nb_seen, (uint32_t)n, __ATOMIC_RELEASE);
	}
}

TEST(counter, counted_data_is_visible)
{
	uint64_t *words = (uint64_t *)(void *)fx.a.buf;
	unsigned int i, spins = 0;
	int status = RMEM_WC_SUCCESS;
	char none = 0;
	uint32_t n;

	fx_need_workers(1);
	nb_seen = 0;
	fx_launch(watch, &none, 0, 1);
	for (n = 1; n <= NB_WRITES && status == RMEM_WC_SUCCESS; n++) {
		uint64_t deadline = fx_deadline();

		for (i = 0; i < WORDS; i++)
			words[i] = n;
		status = request(RMEM_WR_RDMA_WRITE, WORDS * 8);
		while (__atomic_load_n(&nb_seen, __ATOMIC_ACQUIRE) < n && !fx_is_late(deadline))
			fx_relax(&spins);
	}
	fx_join(1);
	TEST_STATUS(status, RMEM_WC_SUCCESS);
}

/* With a range of one piece, and of two. */
TEST(counter, indirect_key_counts_nothing)
{
	const struct rmem_mkey_entry entries[] = {
			fx_entry(fx.b.mr, 64, 32),
			fx_entry(fx.b.mr, 8, 32),
	};
	struct rmem_mr *mr = fx_mkey(fx.b.pd, RTE_DIM(entries));
	struct rmem_send_wr wr;
	struct rmem_sge sge = fx_sge(fx.a.mr, 0, 64);

	wr = fx_umr(mr, entries, RTE_DIM(entries), 0);
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	fx_fill(fx.a.buf, 64, 7);
	wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, 0, mr->rkey);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.b.buf + 64, fx.a.buf, 32);
	TEST_MEM(fx.b.buf + 8, fx.a.buf + 32, 32);
	sge.length = 32;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	wr = fx_atomic(RMEM_WR_ATOMIC_FETCH_AND_ADD, &sge, 0, mr->rkey, 1);
	sge.length = 8;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(rmem_counter_read(counter), 0);
}

TEST_SUITE(counter, setup, teardown);
