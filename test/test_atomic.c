/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Atomics change eight bytes at once, give the value before, and exclude each other. */

#include <string.h>

#include "fixture.h"
#include "test.h"

static struct rmem_send_wr
fadd(const struct rmem_sge *sge, uint64_t add)
{
	return fx_atomic(RMEM_WR_ATOMIC_FETCH_AND_ADD, sge, fx_addr(fx.b.buf), fx.b.mr->rkey, add);
}

static struct rmem_send_wr
cas(const struct rmem_sge *sge, uint64_t compare, uint64_t swap)
{
	struct rmem_send_wr wr = fx_atomic(
			RMEM_WR_ATOMIC_CMP_AND_SWP, sge, fx_addr(fx.b.buf), fx.b.mr->rkey, compare);

	wr.atomic.swap = swap;
	return wr;
}

static uint64_t
load(const uint8_t *from)
{
	uint64_t value;

	memcpy(&value, from, sizeof(value));
	return value;
}

TEST(atomic, fetch_and_add_adds_and_gives_the_value_before)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 8, 8);
	struct rmem_send_wr wr = fadd(&sge, 5);

	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_FETCH_ADD);
	TEST_EQ(load(fx.a.buf + 8), 0);
	TEST_EQ(load(fx.b.buf), 5);
	wr.atomic.compare_add = UINT64_C(0x100000000);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(load(fx.a.buf + 8), 5);
	TEST_EQ(load(fx.b.buf), UINT64_C(0x100000005));
	TEST_ASSERT(fx_is_zero(fx.b.buf + 8, 64));
	TEST_ASSERT(fx_is_zero(fx.a.buf, 8) && fx_is_zero(fx.a.buf + 16, 64));
	return TEST_SUCCESS;
}

TEST(atomic, fetch_and_add_wraps_around)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_send_wr wr = fadd(&sge, UINT64_MAX);

	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(load(fx.b.buf), UINT64_MAX);
	wr.atomic.compare_add = 2;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(load(fx.a.buf), UINT64_MAX);
	TEST_EQ(load(fx.b.buf), 1);
	return TEST_SUCCESS;
}

TEST(atomic, compare_and_swap_stores_when_equal_only)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_send_wr wr = cas(&sge, 0, UINT64_C(0x1122334455667788));

	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.opcode, RMEM_WC_COMP_SWAP);
	TEST_EQ(load(fx.a.buf), 0);
	TEST_EQ(load(fx.b.buf), UINT64_C(0x1122334455667788));
	wr.atomic.compare_add = UINT64_C(0x1122334455667789);
	wr.atomic.swap = 1;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(load(fx.a.buf), UINT64_C(0x1122334455667788));
	TEST_EQ(load(fx.b.buf), UINT64_C(0x1122334455667788));
	wr.atomic.compare_add = UINT64_C(0x1122334455667788);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(load(fx.b.buf), 1);
	return TEST_SUCCESS;
}

TEST(atomic, result_and_target_may_be_the_same_bytes)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	const struct rmem_send_wr wr = fadd(&sge, 3);

	fx.b.buf[0] = 7;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(load(fx.b.buf), 7);
	return TEST_SUCCESS;
}

TEST(atomic, result_needs_no_alignment)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 3, 8);
	const struct rmem_send_wr wr = fadd(&sge, 1);

	fx_fill(fx.b.buf, 8, 4);
	memcpy(fx.b.buf + 8, fx.b.buf, 8);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf + 3, fx.b.buf + 8, 8);
	return TEST_SUCCESS;
}

/* What counts is the address as the request names it. */
TEST(atomic, target_is_aligned_by_its_iova)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_send_wr wr = fadd(&sge, 1);
	int i;

	for (i = 1; i < 8; i++) {
		wr.atomic.remote_addr = fx_addr(fx.b.buf + i);
		TEST_RUN(fx_expect_refusal(&wr, RMEM_WC_REM_INV_REQ_ERR, RMEM_QPS_ERR));
		wr.opcode ^= RMEM_WR_ATOMIC_CMP_AND_SWP ^ RMEM_WR_ATOMIC_FETCH_AND_ADD;
	}
	TEST_ASSERT(fx_is_zero(fx.b.buf, 64));
	return TEST_SUCCESS;
}

TEST(atomic, all_eight_bytes_must_be_in_the_region)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_mr *mr = fx_mr(fx.b.pd, fx.b.buf, 12, FX_ACCESS);
	struct rmem_send_wr wr = fadd(&sge, 1);

	TEST_ASSERT(mr != NULL);
	wr.atomic.rkey = mr->rkey;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	wr.atomic.remote_addr += 8;
	TEST_RUN(fx_expect_refusal(&wr, RMEM_WC_REM_ACCESS_ERR, RMEM_QPS_ERR));
	TEST_ASSERT(fx_is_zero(fx.b.buf + 8, 8));
	return TEST_SUCCESS;
}

TEST(atomic, refused_atomic_leaves_target_and_result)
{
	struct rmem_mr *no_atomic = fx_mr(fx.b.pd, fx.b.buf, 64,
			RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE |
					RMEM_ACCESS_REMOTE_READ);
	struct rmem_mr *read_only = fx_mr(fx.a.pd, fx.a.buf, 64, 0);
	struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_send_wr wr = fadd(&sge, 1);

	TEST_ASSERT(no_atomic != NULL && read_only != NULL);
	memset(fx.a.buf, 0x33, 8);
	wr.atomic.rkey = no_atomic->rkey;
	TEST_RUN(fx_expect_refusal(&wr, RMEM_WC_REM_ACCESS_ERR, RMEM_QPS_ERR));
	wr.atomic.rkey = fx.b.mr->rkey;
	sge = fx_sge(read_only, 0, 8);
	TEST_RUN(fx_expect_refusal(&wr, RMEM_WC_LOC_PROT_ERR, RMEM_QPS_RTS));
	TEST_ASSERT(fx_is_zero(fx.b.buf, 8));
	TEST_EQ(load(fx.a.buf), UINT64_C(0x3333333333333333));
	return TEST_SUCCESS;
}

TEST(atomic, atomics_of_a_burst_add_up)
{
	enum {
		NB = 32
	};
	struct rmem_send_wr wrs[NB];
	struct rmem_sge sges[NB];
	uint64_t i;

	for (i = 0; i < NB; i++) {
		sges[i] = fx_sge(fx.a.mr, 8 * i, 8);
		wrs[i] = fadd(&sges[i], i);
	}
	wrs[NB - 1].flags = RMEM_SEND_SIGNALED;
	TEST_EQ(rmem_post_send(fx.a.qp, wrs, NB), NB);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	for (i = 0; i < NB; i++)
		TEST_EQ(load(fx.a.buf + 8 * i), i * (i - (i != 0)) / 2);
	TEST_EQ(load(fx.b.buf), NB * (NB - 1) / 2);
	return TEST_SUCCESS;
}

#define ROUNDS 5000u

static struct fx_side adders[4];

/* Adds one ROUNDS times, by FETCH_AND_ADD and by loops of CMP_AND_SWP in turns. */
static int
add_by_atomics(void *arg)
{
	struct fx_side *side = arg;
	const struct rmem_sge sge = fx_sge(side->mr, 0, 8);
	struct rmem_send_wr add = fadd(&sge, 1);
	struct rmem_send_wr swap;
	uint64_t seen = 0;
	struct rmem_wc wc;
	uint32_t i;

	add.flags = RMEM_SEND_SIGNALED;
	for (i = 0; i < ROUNDS; i++) {
		swap = cas(&sge, seen, seen + 1);
		swap.flags = RMEM_SEND_SIGNALED;
		if (fx_post(side->qp, i % 2 == 0 ? &add : &swap) != 1)
			return TEST_FAILED;
		if (fx_poll(side->cq, &wc, 1) != 1 || wc.status != RMEM_WC_SUCCESS)
			return TEST_FAILED;
		/* A swap that met another value is tried again with that. */
		if (i % 2 != 0 && load(side->buf) != seen)
			i--;
		seen = load(side->buf);
	}
	return TEST_SUCCESS;
}

TEST(atomic, atomics_of_several_lcores_lose_none)
{
	unsigned int nb = RTE_MIN(fx_nb_workers(), RTE_DIM(adders));
	unsigned int i;

	if (nb < 2)
		return test_skip("it takes two worker lcores");
	for (i = 0; i < nb; i++) {
		TEST_RUN(fx_side_open(&adders[i], fx.a.dev, fx.a.pd));
		TEST_OK(fx_connect(adders[i].qp, adders[i].qp));
	}
	TEST_RUN(fx_launch(add_by_atomics, adders, sizeof(adders[0]), nb));
	TEST_RUN(fx_join(nb));
	TEST_EQ(load(fx.b.buf), (uint64_t)nb * ROUNDS);
	return TEST_SUCCESS;
}

TEST_SUITE(atomic, fx_setup, fx_teardown);
