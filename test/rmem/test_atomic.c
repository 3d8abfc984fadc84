/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Atomics exclude each other, and add up in a burst. The rules of a single one are in conformance.
 */

#include <string.h>

#include "fixture.h"

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

TEST(atomic, result_and_target_may_be_the_same_bytes)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	const struct rmem_send_wr wr = fadd(&sge, 3);

	fx.b.buf[0] = 7;
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(load(fx.b.buf), 7);
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
}

/* The address is aligned, the memory is not. */
TEST(atomic, atomic_write_to_unaligned_memory_is_refused)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_mr *mr;
	struct rmem_send_wr wr;

	TEST_OK(rmem_mr_reg(fx.b.pd, fx.b.buf + 4, 64, 4096, FX_ACCESS, &mr));
	fx_track(mr);
	fx_fill(fx.a.buf, 8, 1);
	wr = fx_rdma(RMEM_WR_ATOMIC_WRITE, &sge, 4096, mr->rkey);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_REM_INV_REQ_ERR);
	TEST_EQ(fx.wc.vendor_err, RMEM_VENDOR_ERR_ALIGNMENT);
	TEST_ASSERT(fx_is_zero(fx.b.buf, 64));
}

/* An ATOMIC_WRITE of b to an address of a window of a; its status. */
static int
write_word_by(uint64_t addr, uint32_t rkey)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	const struct rmem_send_wr wr = fx_rdma(RMEM_WR_ATOMIC_WRITE, &sge, addr, rkey);
	int status = fx_send(fx.b.qp, &wr);

	if (status != RMEM_WC_SUCCESS)
		fx_reconnect();
	return status;
}

/* Address and memory of a zero-based window are aligned differently. */
TEST_WITH(atomic, atomic_write_through_a_zero_based_window_needs_both_aligned, fx_setup_mw)
{
	const uint32_t access = RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_ZERO_BASED;

	TEST_STATUS(fx_mw_bind_2(16, 16, access), RMEM_WC_SUCCESS);
	TEST_STATUS(write_word_by(8, fx.mw.two->rkey), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf + 24, fx.b.buf, 8);
	TEST_STATUS(fx_invalidate(fx.mw.two->rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_mw_bind_2(20, 16, access), RMEM_WC_SUCCESS);
	TEST_STATUS(write_word_by(8, fx.mw.two->rkey), RMEM_WC_REM_INV_REQ_ERR);
	TEST_STATUS(write_word_by(4, fx.mw.two->rkey), RMEM_WC_REM_INV_REQ_ERR);
}

/* The right REMOTE_ATOMIC does not permit it, and it needs all 8 bytes in the window. */
TEST_WITH(atomic, atomic_write_through_a_window_needs_its_right_and_range, fx_setup_mw)
{
	static const struct {
		uint32_t access;
		uint32_t length;
		int32_t at;
		int status;
	} rows[] = {
			{RMEM_ACCESS_REMOTE_WRITE, 8, 0, RMEM_WC_SUCCESS},
			{RMEM_ACCESS_REMOTE_WRITE, 16, 8, RMEM_WC_SUCCESS},
			{RMEM_ACCESS_REMOTE_ATOMIC, 8, 0, RMEM_WC_REM_ACCESS_ERR},
			{RMEM_ACCESS_REMOTE_READ, 8, 0, RMEM_WC_REM_ACCESS_ERR},
			{RMEM_ACCESS_REMOTE_WRITE, 7, 0, RMEM_WC_REM_ACCESS_ERR},
			{RMEM_ACCESS_REMOTE_WRITE, 15, 8, RMEM_WC_REM_ACCESS_ERR},
			{RMEM_ACCESS_REMOTE_WRITE, 16, -8, RMEM_WC_REM_ACCESS_ERR},
			{RMEM_ACCESS_REMOTE_WRITE, 16, 16, RMEM_WC_REM_ACCESS_ERR},
			{RMEM_ACCESS_REMOTE_WRITE, 16, 4, RMEM_WC_REM_INV_REQ_ERR},
	};
	const uint64_t addr = fx.mw.mr->iova + 64;
	unsigned int i;

	for (i = 0; i < RTE_DIM(rows); i++) {
		TEST_STATUS(fx_mw_bind_1(64, rows[i].length, rows[i].access), RMEM_WC_SUCCESS);
		TEST_STATUS(write_word_by(addr + (uint64_t)rows[i].at, fx.mw.one->rkey),
				rows[i].status);
		TEST_STATUS(fx_mw_bind_2(64, rows[i].length, rows[i].access), RMEM_WC_SUCCESS);
		TEST_STATUS(write_word_by(addr + (uint64_t)rows[i].at, fx.mw.two->rkey),
				rows[i].status);
		TEST_STATUS(fx_invalidate(fx.mw.two->rkey), RMEM_WC_SUCCESS);
		TEST_STATUS(write_word_by(addr, fx.mw.two->rkey), RMEM_WC_REM_ACCESS_ERR);
	}
}

/* A QP connected to itself: requests of one post bind the window, use it and invalidate it. */
TEST_WITH(atomic, atomic_write_between_bind_and_invalidation_of_a_burst, fx_setup_mw)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	const uint64_t addr = fx.mw.mr->iova + 64;
	struct rmem_send_wr wr[4];
	uint32_t rkey;

	fx_fill(fx.a.buf, 8, 1);
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(fx_connect(fx.a.qp, fx.a.qp));
	wr[0] = fx_mw_wr(fx.mw.two, 64, 8, RMEM_ACCESS_REMOTE_WRITE);
	rkey = rmem_rkey_of_tag(fx.mw.two->rkey, wr[0].bind_mw.key_tag);
	wr[1] = wr[3] = fx_rdma(RMEM_WR_ATOMIC_WRITE, &sge, addr, rkey);
	wr[2] = fx_inv(rkey);
	wr[3].flags = RMEM_SEND_SIGNALED;
	TEST_EQ(rmem_post_send(fx.a.qp, wr, RTE_DIM(wr)), RTE_DIM(wr));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_REM_ACCESS_ERR);
	TEST_MEM(fx.a.buf + 64, fx.a.buf, 8);
}

#define ROUNDS 5000u

static struct fx_side adders[4];

/* Adds one ROUNDS times, by FETCH_AND_ADD and by loops of CMP_AND_SWP in turns. */
static void
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
			test_stop(TEST_FAILED);
		if (fx_poll(side->cq, &wc, 1) != 1 || wc.status != RMEM_WC_SUCCESS)
			test_stop(TEST_FAILED);
		/* A swap that met another value is tried again with that. */
		if (i % 2 != 0 && load(side->buf) != seen)
			i--;
		seen = load(side->buf);
	}
}

TEST(atomic, atomics_of_several_lcores_lose_none)
{
	unsigned int nb = RTE_MIN(fx_nb_workers(), RTE_DIM(adders));
	unsigned int i;

	fx_need_workers(2);
	for (i = 0; i < nb; i++) {
		fx_side_open(&adders[i], fx.a.dev, fx.a.pd);
		TEST_OK(fx_connect(adders[i].qp, adders[i].qp));
	}
	fx_launch(add_by_atomics, adders, sizeof(adders[0]), nb);
	fx_join(nb);
	TEST_EQ(load(fx.b.buf), (uint64_t)nb * ROUNDS);
}

/* Writes words of eight equal bytes, ROUNDS times. */
static void
write_words(void *arg)
{
	struct fx_side *side = arg;
	const struct rmem_sge sge = fx_sge(side->mr, 0, 8);
	struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_ATOMIC_WRITE, &sge, &fx.b);
	bool is_ok = true;
	struct rmem_wc wc;
	uint32_t i;

	wr.flags = RMEM_SEND_SIGNALED;
	for (i = 0; i < ROUNDS && is_ok; i++) {
		memset(side->buf, (int)(i & 0xff), 8);
		is_ok = fx_post(side->qp, &wr) == 1 && fx_poll(side->cq, &wc, 1) == 1 &&
				wc.status == RMEM_WC_SUCCESS;
	}
	__atomic_fetch_add((uint32_t *)(void *)(fx.b.buf + 64), 1, __ATOMIC_RELEASE);
	if (!is_ok)
		test_stop(TEST_FAILED);
}

TEST(atomic, atomic_writes_are_never_seen_in_part)
{
	unsigned int i, nb = RTE_MIN(fx_nb_workers(), RTE_DIM(adders)), spins = 0;
	uint64_t *word = (uint64_t *)(void *)fx.b.buf, value;
	uint32_t *nb_done = (uint32_t *)(void *)(fx.b.buf + 64);

	fx_need_workers(2);
	for (i = 0; i < nb; i++) {
		fx_side_open(&adders[i], fx.a.dev, fx.a.pd);
		TEST_OK(fx_connect(adders[i].qp, adders[i].qp));
	}
	fx_launch(write_words, adders, sizeof(adders[0]), nb);
	do {
		value = __atomic_load_n(word, __ATOMIC_ACQUIRE);
		TEST_EQ(value, (value & 0xff) * UINT64_C(0x0101010101010101));
		fx_relax(&spins);
	} while (__atomic_load_n(nb_done, __ATOMIC_ACQUIRE) != nb);
	fx_join(nb);
}

TEST_SUITE(atomic, fx_setup, fx_teardown);
