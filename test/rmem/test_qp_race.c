/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * rmem_qp_set_error() of one thread against reset, connect and post of another: it flushes the
 * receives of the life of the QP that it ended, all of them, and none of the next.
 *
 * The thread that calls it is single-stepped, where the processor can do that, and stopped a
 * given number of instructions after the QP moved to ERR, until the other has begun the next life,
 * or for a limited time if that has to wait for it.
 */

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "fixture.h"

#define LIVES    16u
#define RECEIVES 4u
/* How often the stepped thread yields at each instruction, and where it stops, at the most. */
#define STEP_YIELDS 3u
#define STOP_YIELDS 300u

static struct {
	uint32_t life;    /* set_error may be called in it; atomic */
	uint32_t looks;   /* at the state of the QP; atomic */
	uint32_t ended;   /* the QP is in ERR; atomic */
	uint32_t reborn;  /* the next one has begun; atomic */
	uint32_t done;    /* set_error has returned in it; atomic */
	uint32_t is_over; /* atomic */
	uint32_t is_bad;  /* set_error failed; atomic */
	uint32_t steps;   /* after the QP was seen in ERR */
} race;

/* Whether to go on stepping. */
static bool
set_stepping(void *context, bool is_on)
{
#ifdef __x86_64__
	greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];
	const greg_t trap = 0x100;

	*flags = is_on ? *flags | trap : *flags & ~trap;
	return true;
#else
	RTE_SET_USED(context);
	RTE_SET_USED(is_on);
	return false;
#endif
}

/* Until the other thread has read the state after the last instruction, or can't. */
static bool
is_ended(uint32_t life)
{
	uint32_t i, looks = __atomic_load_n(&race.looks, __ATOMIC_ACQUIRE);

	for (i = 0; i < STEP_YIELDS; i++) {
		if (__atomic_load_n(&race.ended, __ATOMIC_ACQUIRE) == life)
			return true;
		if (__atomic_load_n(&race.looks, __ATOMIC_ACQUIRE) - looks >= 2)
			return false;
		sched_yield();
	}
	return false;
}

static void
step(int sig, siginfo_t *info, void *context)
{
	uint32_t i, life = __atomic_load_n(&race.life, __ATOMIC_ACQUIRE);

	RTE_SET_USED(sig);
	RTE_SET_USED(info);
	if (__atomic_load_n(&race.is_over, __ATOMIC_ACQUIRE) ||
			__atomic_load_n(&race.done, __ATOMIC_ACQUIRE) == life) {
		set_stepping(context, false);
		return;
	}
	if (!set_stepping(context, true) || !is_ended(life) || race.steps++ < life)
		return;
	for (i = 0; i < STOP_YIELDS; i++) {
		if (__atomic_load_n(&race.reborn, __ATOMIC_ACQUIRE) == life)
			break;
		sched_yield();
	}
	set_stepping(context, false);
}

static void *
run_set_error(void *arg)
{
	unsigned int spins = 0;
	uint32_t life;

	RTE_SET_USED(arg);
	while (!__atomic_load_n(&race.is_over, __ATOMIC_ACQUIRE)) {
		life = __atomic_load_n(&race.life, __ATOMIC_ACQUIRE);
		if (life == __atomic_load_n(&race.done, __ATOMIC_RELAXED)) {
			fx_relax(&spins);
			continue;
		}
		race.steps = 0;
		raise(SIGTRAP);
		if (rmem_qp_set_error(fx.a.qp) != 0)
			__atomic_store_n(&race.is_bad, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&race.done, life, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void
begin_life(void)
{
	uint32_t i;

	TEST_OK(fx_connect(fx.a.qp, fx.b.qp));
	for (i = 0; i < RECEIVES; i++)
		TEST_EQ(fx_post_recv(fx.a.qp, i, NULL, 0), 1);
}

/* The QP is in ERR: reset it. All receives were flushed by then. */
static void
end_life(void)
{
	struct rmem_wc wc;
	uint32_t i;

	TEST_OK(rmem_qp_reset(fx.a.qp));
	for (i = 0; i < RECEIVES; i++) {
		TEST_EQ(rmem_poll_cq(fx.a.cq, &wc, 1), 1);
		TEST_STATUS(wc.status, RMEM_WC_WR_FLUSH_ERR);
		TEST_EQ(wc.wr_id, i);
	}
}

static void
run_life(uint32_t life)
{
	uint64_t deadline = fx_deadline();
	unsigned int spins = 0;
	struct rmem_wc wc;

	__atomic_store_n(&race.life, life, __ATOMIC_RELEASE);
	while (fx_state(fx.a.qp) != RMEM_QPS_ERR) {
		__atomic_fetch_add(&race.looks, 1, __ATOMIC_RELEASE);
		TEST_ASSERT(!fx_is_late(deadline));
		fx_relax(&spins);
	}
	__atomic_store_n(&race.ended, life, __ATOMIC_RELEASE);
	end_life();
	begin_life();
	__atomic_store_n(&race.reborn, life, __ATOMIC_RELEASE);
	fx_wait_until(&race.done, life);
	/* No thread may access the new generation. */
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_RTS);
	TEST_EQ(rmem_poll_cq(fx.a.cq, &wc, 1), 0);
}

static void
run_lives(void)
{
	uint32_t life;

	TEST_OK(rmem_qp_reset(fx.a.qp));
	begin_life();
	for (life = 1; life <= LIVES; life++)
		run_life(life);
	TEST_EQ(race.is_bad, 0);
}

TEST(qp_race, set_error_flushes_no_receive_posted_after_a_reset)
{
	struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO}, old;
	pthread_t thread;
	int result;

	memset(&race, 0, sizeof(race));
	sigemptyset(&action.sa_mask);
	TEST_OK(sigaction(SIGTRAP, &action, &old));
	TEST_OK(pthread_create(&thread, NULL, run_set_error, NULL));
	result = TEST_TRY(run_lives());
	__atomic_store_n(&race.is_over, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	sigaction(SIGTRAP, &old, NULL);
	TEST_RUN(result);
}

TEST_SUITE(qp_race, fx_setup, fx_teardown);
