/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Locked instructions of the software device for each burst: the table in doc/performance.md. They
 * are counted by single-stepping the calls, where the processor can do that.
 */

#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "fixture.h"

#define BURST 32u
#define SIZE  64u

static struct {
	volatile sig_atomic_t is_stepping;
	volatile sig_atomic_t is_counting;
	unsigned int nb_locked;
	struct rmem_qp *qp; /* of a's; has CQs of its own, one for each queue, as peer has */
	struct rmem_qp *peer;
	struct rmem_sge sge[BURST];
	struct rmem_send_wr wr[BURST];
} lk;

#ifdef __x86_64__
/* A LOCK prefix, an XCHG with memory, or the MFENCE that clang emits for a fence. */
static bool
is_locked(const uint8_t *at)
{
	static const uint8_t fence[3] = {0x0f, 0xae, 0xf0};

	while (*at == 0x66 || *at == 0xf2 || *at == 0xf3 || *at == 0x3e)
		at++;
	if (*at == 0xf0 || memcmp(at, fence, sizeof(fence)) == 0)
		return true;
	if ((*at & 0xf0) == 0x40) /* REX */
		at++;
	return (at[0] == 0x86 || at[0] == 0x87) && (at[1] & 0xc0) != 0xc0;
}

static void
step(int sig, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	const greg_t trap = 0x100;

	RTE_SET_USED(sig);
	RTE_SET_USED(info);
	regs[REG_EFL] = lk.is_stepping ? regs[REG_EFL] | trap : regs[REG_EFL] & ~trap;
	if (lk.is_counting && is_locked((const uint8_t *)(uintptr_t)regs[REG_RIP]))
		lk.nb_locked++;
}

static int
count(void (*call)(void), unsigned int *nb)
{
	struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO}, old;
	int result;

	lk.nb_locked = 0;
	sigemptyset(&action.sa_mask);
	TEST_OK(sigaction(SIGTRAP, &action, &old));
	lk.is_stepping = 1;
	raise(SIGTRAP);
	lk.is_counting = 1;
	result = TEST_TRY(call());
	lk.is_counting = 0;
	lk.is_stepping = 0;
	TEST_OK(sigaction(SIGTRAP, &old, NULL));
	*nb = lk.nb_locked;
	return result;
}
#else
static int
count(void (*call)(void), unsigned int *nb)
{
	RTE_SET_USED(call);
	RTE_SET_USED(nb);
	return TEST_SKIPPED;
}
#endif

static struct rmem_qp *
make_qp(const struct fx_side *side, uint32_t flags)
{
	struct rmem_qp_conf conf = fx_qp_conf(fx_cq(side->dev, 2 * BURST), BURST);

	conf.flags = flags;
	conf.recv_cq = fx_cq(side->dev, 2 * BURST);
	return fx_qp_by(side->pd, &conf);
}

static void
lk_setup(void)
{
#ifndef __x86_64__
	test_skip("single-stepping is done on x86-64");
#endif
	fx_setup();
	TEST_SKIP_IF(!fx_is_soft(), "the table is of the software device");
	lk.qp = make_qp(&fx.a, 0);
	lk.peer = make_qp(&fx.b, 0);
	TEST_OK(fx_connect_pair(lk.qp, lk.peer));
}

static void
fill(uint8_t opcode, bool is_last_signaled)
{
	uint32_t i;

	for (i = 0; i < BURST; i++) {
		lk.sge[i] = fx_sge(fx.a.mr, i * SIZE, SIZE);
		lk.wr[i] = fx_rdma(opcode, &lk.sge[i], fx.b.mr->iova + i * SIZE, fx.b.mr->rkey);
		lk.wr[i].flags = is_last_signaled && i != BURST - 1 ? 0 : RMEM_SEND_SIGNALED;
	}
}

/* Post the burst, and poll it. */
static void
post(void)
{
	struct rmem_wc wc[BURST];
	int i, n;

	TEST_EQ(rmem_post_send(lk.qp, lk.wr, BURST), BURST);
	n = rmem_poll_cq(lk.qp->send_cq, wc, BURST);
	for (i = 0; i < n; i++)
		TEST_STATUS(wc[i].status, RMEM_WC_SUCCESS);
	TEST_ASSERT(n > 0);
}

static void
post_one(void)
{
	struct rmem_wc wc;

	TEST_EQ(rmem_post_send(lk.qp, lk.wr, 1), 1);
	TEST_EQ(rmem_poll_cq(lk.qp->send_cq, &wc, 1), 1);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
}

static void
poll_empty(void)
{
	struct rmem_wc wc[BURST];

	TEST_EQ(rmem_poll_cq(lk.qp->send_cq, wc, BURST), 0);
}

/* The peer consumes its last receives, and posts others. */
static void
post_receives(void)
{
	static struct rmem_sge sge[BURST];
	static struct rmem_recv_wr recv[BURST];
	struct rmem_wc wc[BURST];
	uint32_t i;

	TEST_ASSERT(rmem_poll_cq(lk.peer->recv_cq, wc, BURST) >= 0);
	for (i = 0; i < BURST; i++) {
		sge[i] = fx_sge(fx.b.mr, i * SIZE, SIZE);
		recv[i] = (struct rmem_recv_wr){.wr_id = i, .sg_list = &sge[i], .num_sge = 1};
	}
	TEST_EQ(rmem_post_recv(lk.peer, recv, BURST), BURST);
}

static void
expect(void (*call)(void), unsigned int want)
{
	unsigned int nb;

	TEST_RUN(count(call, &nb));
	TEST_EQ(nb, want);
}

TEST(locked, write_burst)
{
	fill(RMEM_WR_RDMA_WRITE, false);
	post();
	expect(post, 1);
}

TEST(locked, send_burst)
{
	fill(RMEM_WR_SEND, false);
	post_receives();
	post();
	post_receives();
	expect(post, 1 + BURST);
}

/* Messages that are not inline share the lock of the receive queue. */
TEST(locked, send_burst_to_memory)
{
	TEST_OK(rmem_qp_reset(lk.qp));
	lk.peer = make_qp(&fx.b, RMEM_QP_NO_INLINE_RECV);
	TEST_OK(fx_connect_pair(lk.qp, lk.peer));
	fill(RMEM_WR_SEND, false);
	post_receives();
	post();
	post_receives();
	expect(post, 2);
	post_receives();
	expect(post_one, 2);
}

TEST_CALL(locked, receive_burst, expect(post_receives, 1));
TEST_CALL(locked, poll_of_an_empty_cq, expect(poll_empty, 0));

/* REG_MR, then LOCAL_INV of what it made. */
TEST(locked, reg_mr_and_local_inv)
{
	struct rmem_fast_reg_page_list *list = fx_page_list(fx.a.dev, 1);
	uint32_t i;

	fx_list_pages(list, fx.a.buf, 1);
	for (i = 0; i < BURST; i++) {
		lk.wr[i] = fx_reg(fx_fast_mr(fx.a.pd, 1), list, 1, (uintptr_t)fx.a.buf, SIZE);
		lk.wr[i].flags = i == BURST - 1 ? RMEM_SEND_SIGNALED : 0;
	}
	expect(post, 1 + BURST);
	for (i = 0; i < BURST; i++) {
		lk.wr[i] = fx_inv(lk.wr[i].reg_mr.mr->rkey);
		lk.wr[i].flags = i == BURST - 1 ? RMEM_SEND_SIGNALED : 0;
	}
	expect(post, 1 + BURST);
}

/* Bindings also take references to the MR, and invalidations release them: all at once. */
TEST(locked, mw_bind_and_local_inv)
{
	struct rmem_mw *mw[BURST];
	uint32_t i;

	fx.mw.mr = fx_mr(fx.a.pd, fx.a.buf, SIZE, FX_ACCESS | RMEM_ACCESS_MW_BIND);
	for (i = 0; i < BURST; i++) {
		mw[i] = fx_mw(fx.a.pd, RMEM_MW_TYPE_2);
		lk.wr[i] = fx_mw_wr(mw[i], 0, SIZE, RMEM_ACCESS_REMOTE);
		lk.wr[i].flags = i == BURST - 1 ? RMEM_SEND_SIGNALED : 0;
	}
	expect(post, 1 + BURST + 1);
	for (i = 0; i < BURST; i++) {
		lk.wr[i] = fx_inv(mw[i]->rkey);
		lk.wr[i].flags = i == BURST - 1 ? RMEM_SEND_SIGNALED : 0;
	}
	expect(post, 1 + BURST + 1);
}

TEST_SUITE(locked, lk_setup, fx_teardown);
