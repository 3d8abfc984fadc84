/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Rules of chaos= on completions, in combination: which completion is the n-th, and QPs that end
 * while one is delayed.
 */

#include <sys/mman.h>

#include "chaos_rules.h"

/* More polls than a test makes. */
#define LONG "polls:100000000"

/* A second pair of QPs, with the CQs of the first one. */
static struct rmem_qp *qp2, *peer2;

static void
open_pairs(const char *rules)
{
	chaos_sides_open(rules);
	chaos_pair(&qp2, &peer2);
}

/* The rule hits the completion that a rule of another kind lets others overtake, or does not. */
TEST(chaos_cq, completion_that_is_overtaken_is_counted)
{
	chaos_sides_open("cq:REORDER@cq:2@nth:1@" LONG "+recv:LATE@cq:2@nth:3@polls:9");
	chaos_send(fx.a.qp, fx.b.qp, 1);
	TEST_ASSERT(fx_is_idle(fx.b.cq));
	chaos_send(fx.a.qp, fx.b.qp, 2);
	chaos_send(fx.a.qp, fx.b.qp, 3);
	TEST_ASSERT(chaos_polls_before(fx.b.cq, 1) < 9);
	TEST_ASSERT(chaos_polls_before(fx.b.cq, 2) < 9);
	TEST_ASSERT(chaos_polls_before(fx.b.cq, 3) >= 9);
}

TEST(chaos_cq, completion_that_a_rule_hits_overtakes_none)
{
	open_pairs("recv:LATE@cq:2@nth:1@" LONG "+cq:LATE@cq:2@nth:3@polls:9");
	chaos_send(fx.a.qp, fx.b.qp, 1);
	TEST_ASSERT(fx_is_idle(fx.b.cq));
	chaos_send(qp2, peer2, 2);
	TEST_ASSERT(chaos_polls_before(fx.b.cq, 2) < 9);
	chaos_send(qp2, peer2, 3);
	TEST_ASSERT(chaos_polls_before(fx.b.cq, 1) < 9);
	TEST_ASSERT(chaos_polls_before(fx.b.cq, 3) >= 9);
}

/* A poll for many ends before the one that is late, each time. */
TEST(chaos_cq, every_late_receive_is_counted_once)
{
	struct rmem_wc wc[8];
	unsigned int i, nb = 0;
	uint64_t deadline = fx_deadline();
	int ret;

	chaos_sides_open("recv:LATE@cq:2@every:2@polls:9");
	for (i = 1; i <= 5; i++)
		chaos_send(fx.a.qp, fx.b.qp, i);
	TEST_EQ(rmem_poll_cq(fx.b.cq, wc, 8), 1);
	TEST_EQ(wc[0].wr_id, 1);
	TEST_ASSERT(chaos_polls_before(fx.b.cq, 2) >= 9);
	TEST_EQ(rmem_poll_cq(fx.b.cq, wc, 8), 1);
	TEST_EQ(wc[0].wr_id, 3);
	while ((ret = rmem_poll_cq(fx.b.cq, wc, 8)) == 0 && !fx_is_late(deadline))
		nb++;
	TEST_EQ(ret, 1);
	TEST_EQ(wc[0].wr_id, 4);
	TEST_ASSERT(nb >= 9);
}

/*
 * A message whose sender can't read its memory leaves an entry in the CQ that is no completion, and
 * is not counted, also if nb_polls find only this entry.
 */
static void
expect_nth(const char *rule, unsigned int nb_polls)
{
	const size_t size = 4096;
	struct rmem_wc wc;
	struct rmem_send_wr wr;
	struct rmem_sge from, into;
	struct rmem_mr *mr;
	uint8_t *mem;

#if !defined(__x86_64__) && !defined(__aarch64__)
	test_skip("nothing is guarded by a signal handler here");
#endif
	open_pairs(rule);
	mem = fx_map(size);
	TEST_OK(mprotect(mem, size, PROT_READ | PROT_WRITE));
	mr = fx_mr(fx.a.pd, mem, size, FX_ACCESS);
	TEST_OK(mprotect(mem, size, PROT_NONE));
	from = fx_sge(mr, 0, 8);
	into = fx_sge(fx.b.mr, 0, 8);
	TEST_EQ(fx_post_recv(fx.b.qp, 9, &into, 1), 1);
	wr = fx_wr(RMEM_WR_SEND, &from, 1);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_LOC_PROT_ERR);
	for (; nb_polls != 0; nb_polls--)
		TEST_EQ(rmem_poll_cq(fx.b.cq, &wc, 1), 0);
	chaos_send(qp2, peer2, 1);
	TEST_ASSERT(chaos_polls_before(fx.b.cq, 1) >= 9);
}

TEST_CALL(chaos_cq, entry_that_is_no_receive_is_not_counted,
		expect_nth("recv:LATE@cq:2@nth:1@polls:9", 0));
TEST_CALL(chaos_cq, entry_that_is_no_completion_is_not_late,
		expect_nth("cq:LATE@cq:2@nth:1@polls:9", 20));
TEST_CALL(chaos_cq, entry_that_is_no_completion_is_not_overtaken,
		expect_nth("cq:REORDER@cq:2@nth:1@polls:9", 20));

/* Its completions are returned by the next polls, and those of other QPs are delayed. */
static void
expect_prompt(const char *rule, unsigned int nb, bool is_destroyed)
{
	struct rmem_wc wc;
	unsigned int i;

	open_pairs(rule);
	chaos_send(fx.a.qp, fx.b.qp, 1);
	TEST_ASSERT(fx_is_idle(fx.b.cq));
	for (i = 2; i <= nb; i++)
		chaos_send(fx.a.qp, fx.b.qp, i);
	if (is_destroyed) {
		fx_untrack(fx.b.qp);
		TEST_OK(rmem_qp_destroy(fx.b.qp));
	} else {
		TEST_OK(rmem_qp_reset(fx.b.qp));
	}
	for (i = 1; i <= nb; i++) {
		TEST_EQ(rmem_poll_cq(fx.b.cq, &wc, 1), 1);
		TEST_EQ(wc.wr_id, i);
	}
	chaos_send(qp2, peer2, 3);
	TEST_ASSERT(fx_is_idle(fx.b.cq));
}

/* IBTA 10.2.4.4: a QP that is destroyed; its completions may no longer be of use. */
TEST_CALL(chaos_cq, receives_of_a_destroyed_qp_are_not_late,
		expect_prompt("recv:LATE@cq:2@" LONG, 3, true));
TEST_CALL(chaos_cq, completions_of_a_destroyed_qp_are_not_late,
		expect_prompt("cq:LATE@cq:2@" LONG, 3, true));
TEST_CALL(chaos_cq, completions_of_a_destroyed_qp_are_not_overtaken,
		expect_prompt("cq:REORDER@cq:2@" LONG, 1, true));
TEST_CALL(chaos_cq, completions_of_a_qp_that_is_reset_are_not_late,
		expect_prompt("recv:LATE@cq:2@" LONG, 3, false));

TEST_SUITE(chaos_cq, fx_setup_none, fx_teardown);
