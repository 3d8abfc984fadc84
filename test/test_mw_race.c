/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * No access outlives the end of a type 2 window (design.md, 4): an lcore goes on writing through
 * it while the owner invalidates it, uses the memory again at once, and binds the window anew.
 * Each round the writer ends on its refusal, and the owner connects the QPs again.
 */

#include <string.h>

#include "fixture.h"
#include "test.h"

#define ROUNDS   100u
#define SCRIBBLE 0x5c
#define PAYLOAD  0xa9
/* What a message fills: the whole of a's buffer, so that the key goes in the midst of a copy. */
#define SIZE FX_BUF_SIZE

static struct {
	uint32_t rkey;       /* what to write through; 0: wait; atomic */
	uint32_t nb_written; /* atomic */
	uint32_t is_refused; /* the writer waits for the next key; atomic */
	uint32_t is_stopped; /* atomic */
} race;

static int
write_until_refused(uint32_t rkey)
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, SIZE);
	struct rmem_send_wr wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.a.buf), rkey);
	struct rmem_wc wc;

	wr.flags = RMEM_SEND_SIGNALED;
	do {
		TEST_EQ(rmem_post_send(fx.b.qp, &wr, 1), 1);
		TEST_EQ(fx_poll(fx.b.cq, &wc, 1), 1);
		__atomic_fetch_add(&race.nb_written, 1, __ATOMIC_RELEASE);
	} while (wc.status == RMEM_WC_SUCCESS);
	TEST_STATUS(wc.status, RMEM_WC_REM_ACCESS_ERR);
	return TEST_SUCCESS;
}

static int
run_writer(void *arg)
{
	unsigned int spins = 0;

	RTE_SET_USED(arg);
	while (!__atomic_load_n(&race.is_stopped, __ATOMIC_ACQUIRE)) {
		uint32_t rkey = __atomic_exchange_n(&race.rkey, 0, __ATOMIC_ACQ_REL);

		if (rkey == 0) {
			fx_relax(&spins);
			continue;
		}
		TEST_RUN(write_until_refused(rkey));
		__atomic_store_n(&race.is_refused, 1, __ATOMIC_RELEASE);
	}
	return TEST_SUCCESS;
}

/* Until *value is at least want. */
static int
wait_until(const uint32_t *value, uint32_t want)
{
	uint64_t deadline = fx_deadline();
	unsigned int spins = 0;

	while (__atomic_load_n(value, __ATOMIC_ACQUIRE) < want) {
		TEST_ASSERT(!fx_is_late(deadline));
		fx_relax(&spins);
	}
	return TEST_SUCCESS;
}

static bool
is_scribbled(void)
{
	return fx.a.buf[0] == SCRIBBLE && memcmp(fx.a.buf, fx.a.buf + 1, SIZE - 1) == 0;
}

/* From the end to the start, page by page: a copy comes last where we were first. */
static void
scribble(void)
{
	uint32_t page;

	for (page = SIZE / FX_PAGE; page-- > 0;)
		memset(fx.a.buf + page * FX_PAGE, SCRIBBLE, FX_PAGE);
}

static int
bind_and_start(void)
{
	TEST_STATUS(fx_mw_bind_2(0, SIZE, RMEM_ACCESS_REMOTE_WRITE), RMEM_WC_SUCCESS);
	race.nb_written = 0;
	race.is_refused = 0;
	__atomic_store_n(&race.rkey, fx.mw.two->rkey, __ATOMIC_RELEASE);
	return wait_until(&race.nb_written, 2);
}

static int
run_rounds(bool is_release)
{
	uint32_t i;

	for (i = 0; i < ROUNDS; i++) {
		TEST_RUN(bind_and_start());
		if (is_release) {
			TEST_OK(fx_release(fx.mw.two));
		} else {
			const struct rmem_send_wr inv = fx_inv(fx.mw.two->rkey);

			TEST_STATUS(fx_send(fx.a.qp, &inv), RMEM_WC_SUCCESS);
		}
		scribble();
		TEST_RUN(wait_until(&race.is_refused, 1));
		TEST_ASSERT(is_scribbled());
		TEST_RUN(fx_reconnect());
		if (is_release) {
			fx.mw.two = fx_mw(fx.a.pd, RMEM_MW_TYPE_2);
			TEST_ASSERT(fx.mw.two != NULL);
		}
	}
	return TEST_SUCCESS;
}

static int
race_with(bool is_release)
{
	int result;

	if (fx_nb_workers() == 0)
		return test_skip("it takes a worker lcore");
	memset(&race, 0, sizeof(race));
	memset(fx.b.buf, PAYLOAD, SIZE);
	TEST_RUN(fx_launch(run_writer, &race, sizeof(race), 1));
	result = run_rounds(is_release);
	__atomic_store_n(&race.is_stopped, 1, __ATOMIC_RELEASE);
	return fx_join(1) == TEST_SUCCESS ? result : TEST_FAILED;
}

static int
no_write_comes_after_local_inv_of_a_window(void)
{
	return race_with(false);
}

static int
no_write_comes_after_release_of_a_window(void)
{
	return race_with(true);
}

static const struct test_case mw_race_cases[] = {
		TEST_CASE(no_write_comes_after_local_inv_of_a_window),
		TEST_CASE(no_write_comes_after_release_of_a_window),
};

REGISTER_RMEM_SUITE(mw_race, fx_setup_mw, fx_teardown, mw_race_cases);
