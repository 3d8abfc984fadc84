/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * No access outlives the end of a type 2 window, of an indirect key, or of an MR below one: an
 * lcore keeps writing through it while the owner ends it, reuses the memory immediately, and
 * grants it again. Each round the writer ends on its refusal, and the owner connects the QPs again.
 */

#include <string.h>

#include "fixture.h"
#include "test.h"

#define ROUNDS   100u
#define SCRIBBLE 0x5c
#define PAYLOAD  0xa9
/* Size of a message: a's whole buffer, so that the key is invalidated during a copy. */
#define SIZE FX_BUF_SIZE

static struct {
	uint32_t rkey;       /* what to write through; 0: wait; atomic */
	uint32_t nb_written; /* atomic */
	uint32_t is_refused; /* the writer waits for the next key; atomic */
	uint32_t is_stopped; /* atomic */
	struct rmem_mr *indirect;
	struct rmem_mr *below; /* it */
} race;

static void
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
}

static void
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
		write_until_refused(rkey);
		__atomic_store_n(&race.is_refused, 1, __ATOMIC_RELEASE);
	}
}

static bool
is_scribbled(void)
{
	return fx.a.buf[0] == SCRIBBLE && memcmp(fx.a.buf, fx.a.buf + 1, SIZE - 1) == 0;
}

/* From the end to the start, page by page: a copy is last where the check was first. */
static void
scribble(void)
{
	uint32_t page;

	for (page = SIZE / FX_PAGE; page-- > 0;)
		memset(fx.a.buf + page * FX_PAGE, SCRIBBLE, FX_PAGE);
}

static void
open_window(uint32_t *rkey)
{
	TEST_STATUS(fx_mw_bind_2(0, SIZE, RMEM_ACCESS_REMOTE_WRITE), RMEM_WC_SUCCESS);
	*rkey = fx.mw.two->rkey;
}

static void
invalidate_window(void)
{
	const struct rmem_send_wr inv = fx_inv(fx.mw.two->rkey);

	TEST_STATUS(fx_send(fx.a.qp, &inv), RMEM_WC_SUCCESS);
}

static void
release_window(void)
{
	TEST_OK(fx_release(fx.mw.two));
}

static void
new_window(void)
{
	fx.mw.two = fx_mw(fx.a.pd, RMEM_MW_TYPE_2);
	TEST_ASSERT(fx.mw.two != NULL);
}

/* Over the two halves of the buffer by an MR of their own. */
static void
open_indirect(uint32_t *rkey)
{
	struct rmem_mkey_entry entries[2];
	struct rmem_send_wr wr;

	entries[0] = fx_entry(race.below, 0, SIZE / 2);
	entries[1] = fx_entry(race.below, SIZE / 2, SIZE / 2);
	wr = fx_umr(race.indirect, entries, RTE_DIM(entries), fx_addr(fx.a.buf));
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
	*rkey = race.indirect->rkey;
}

static void
invalidate_indirect(void)
{
	const struct rmem_send_wr inv = fx_inv(race.indirect->rkey);

	TEST_STATUS(fx_send(fx.a.qp, &inv), RMEM_WC_SUCCESS);
}

static void
release_below(void)
{
	TEST_OK(fx_release(race.below));
}

/* The indirect key is valid still, over a key that is not. */
static void
new_below(void)
{
	invalidate_indirect();
	race.below = fx_mr(fx.a.pd, fx.a.buf, SIZE, FX_ACCESS);
	TEST_ASSERT(race.below != NULL);
}

static void
same_again(void)
{
}

/* Functions to grant access to the buffer, to revoke it, and to prepare the next grant. */
struct way {
	void (*open)(uint32_t *rkey);
	void (*end)(void);
	void (*renew)(void);
};

static void
open_and_start(const struct way *way)
{
	uint32_t rkey;

	way->open(&rkey);
	race.nb_written = 0;
	race.is_refused = 0;
	__atomic_store_n(&race.rkey, rkey, __ATOMIC_RELEASE);
	fx_wait_until(&race.nb_written, 2);
}

static void
run_rounds(const struct way *way)
{
	uint32_t i;

	for (i = 0; i < ROUNDS; i++) {
		open_and_start(way);
		way->end();
		scribble();
		fx_wait_until(&race.is_refused, 1);
		TEST_ASSERT(is_scribbled());
		fx_reconnect();
		way->renew();
	}
}

static void
race_with(const struct way *way)
{
	int result;

	if (fx_nb_workers() == 0)
		test_skip("it takes a worker lcore");
	memset(&race, 0, sizeof(race));
	race.below = fx_mr(fx.a.pd, fx.a.buf, SIZE, FX_ACCESS);
	race.indirect = fx_mkey(fx.a.pd, 2);
	TEST_ASSERT(race.below != NULL && race.indirect != NULL);
	memset(fx.b.buf, PAYLOAD, SIZE);
	fx_launch(run_writer, &race, sizeof(race), 1);
	result = TEST_TRY(run_rounds(way));
	__atomic_store_n(&race.is_stopped, 1, __ATOMIC_RELEASE);
	TEST_RUN(TEST_TRY(fx_join(1)) == TEST_SUCCESS ? result : TEST_FAILED);
}

TEST(revoke_race, no_write_arrives_after_local_inv_of_a_window)
{
	const struct way way = {open_window, invalidate_window, same_again};

	race_with(&way);
}

TEST(revoke_race, no_write_arrives_after_release_of_a_window)
{
	const struct way way = {open_window, release_window, new_window};

	race_with(&way);
}

TEST(revoke_race, no_write_arrives_after_local_inv_of_an_indirect_key)
{
	const struct way way = {open_indirect, invalidate_indirect, same_again};

	race_with(&way);
}

TEST(revoke_race, no_write_arrives_after_release_of_a_key_of_an_entry)
{
	const struct way way = {open_indirect, release_below, new_below};

	race_with(&way);
}

TEST_SUITE(revoke_race, fx_setup_mw, fx_teardown);
