/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Atomics exclude each other, and add up in a burst. The rules of a single one are in conformance.
 */

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

	if (nb < 2)
		test_skip("it takes two worker lcores");
	for (i = 0; i < nb; i++) {
		fx_side_open(&adders[i], fx.a.dev, fx.a.pd);
		TEST_OK(fx_connect(adders[i].qp, adders[i].qp));
	}
	fx_launch(add_by_atomics, adders, sizeof(adders[0]), nb);
	fx_join(nb);
	TEST_EQ(load(fx.b.buf), (uint64_t)nb * ROUNDS);
}

TEST_SUITE(atomic, fx_setup, fx_teardown);
