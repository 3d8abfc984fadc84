/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Control calls wait for an lcore that executes requests: one is held in the midst of a copy, by a
 * page that it may not read until it is released. A call that has to wait does not return before;
 * keys whose invalidation waited for the lcore, and was dropped by a reset, are FREE again.
 */

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_cycles.h>

#include "fixture.h"

/* How long a call is watched that must not return. */
#define WATCH_MS 100u

static struct {
	struct fx_side side; /* of the lcore, connected to peer */
	struct fx_side peer;
	uint8_t *page; /* it copies from here */
	struct rmem_mr *page_mr;
	uint32_t is_held;     /* atomic */
	uint32_t is_released; /* atomic */
	uint32_t is_early;    /* the call returned while it was held; atomic */
	uint32_t is_back;     /* the call has returned; atomic */
	int (*call)(void);
	int result;
	struct rmem_dev_stats stats; /* of the device, after the call was watched */
	struct sigaction old;
} held;

/* The lcore reads the page: it waits here. Another fault is none of ours. */
static void
hold(int sig, siginfo_t *info, void *context)
{
	RTE_SET_USED(context);
	if ((uintptr_t)info->si_addr - (uintptr_t)held.page >= FX_PAGE) {
		sigaction(sig, &held.old, NULL);
		return;
	}
	__atomic_store_n(&held.is_held, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&held.is_released, __ATOMIC_ACQUIRE))
		sched_yield();
	mprotect(held.page, FX_PAGE, PROT_READ | PROT_WRITE);
}

static void
setup(void)
{
	memset(&held, 0, sizeof(held));
	fx_setup_fast();
	fx_need_workers(1);
	fx_side_open(&held.side, fx.a.dev, fx.a.pd);
	fx_side_open(&held.peer, fx.a.dev, fx.a.pd);
	TEST_OK(fx_connect_pair(held.side.qp, held.peer.qp));
	held.page = fx_mem(FX_PAGE, FX_PAGE);
	held.page_mr = fx_mr(fx.a.pd, held.page, FX_PAGE, FX_ACCESS);
}

/* WRITE from the page to the peer; its result does not matter. */
static void
run_write(void *arg)
{
	const struct rmem_sge sge = fx_sge(held.page_mr, 0, FX_PAGE);
	struct rmem_send_wr wr = fx_rdma(
			RMEM_WR_RDMA_WRITE, &sge, fx_addr(held.peer.buf), held.peer.mr->rkey);

	RTE_SET_USED(arg);
	TEST_EQ(rmem_post_send(held.side.qp, &wr, 1), 1);
}

static void
start_held(void)
{
	struct sigaction action = {.sa_sigaction = hold, .sa_flags = SA_SIGINFO};

	sigemptyset(&action.sa_mask);
	held.is_held = held.is_released = held.is_early = held.is_back = 0;
	TEST_OK(sigaction(SIGSEGV, &action, &held.old));
	TEST_OK(mprotect(held.page, FX_PAGE, PROT_NONE));
	fx_launch(run_write, NULL, 0, 1);
	fx_wait_until(&held.is_held, 1);
}

static int
release(void)
{
	int result;

	__atomic_store_n(&held.is_released, 1, __ATOMIC_RELEASE);
	result = TEST_TRY(fx_join(1));
	sigaction(SIGSEGV, &held.old, NULL);
	return result;
}

static void *
run_call(void *arg)
{
	RTE_SET_USED(arg);
	held.result = held.call();
	if (!__atomic_load_n(&held.is_released, __ATOMIC_ACQUIRE))
		__atomic_store_n(&held.is_early, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&held.is_back, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Whether the call returns while it is watched. One that has to wait never does. */
static void
watch(void)
{
	uint64_t end = rte_get_timer_cycles() + rte_get_timer_hz() / 1000 * WATCH_MS;
	unsigned int spins = 0;

	while (!__atomic_load_n(&held.is_back, __ATOMIC_ACQUIRE) && rte_get_timer_cycles() < end)
		fx_relax(&spins);
}

/* With an lcore inside, the call returns 0, and not before the lcore has left. */
static void
expect_wait(int (*call)(void))
{
	pthread_t thread;

	held.call = call;
	TEST_OK(pthread_create(&thread, NULL, run_call, NULL));
	watch();
	held.stats = fx_dev_stats(fx.a.dev);
	TEST_RUN(release());
	TEST_OK(pthread_join(thread, NULL));
	TEST_EQ(held.is_early, 0);
	TEST_OK(held.result);
}

#define WAITS(rule, action)                                                                        \
	static int call_##rule(void)                                                               \
	{                                                                                          \
		return action;                                                                     \
	}                                                                                          \
	TEST(grace, rule)                                                                          \
	{                                                                                          \
		start_held();                                                                      \
		expect_wait(call_##rule);                                                          \
	}

WAITS(reset_waits_for_lcores, rmem_qp_reset(held.peer.qp))
WAITS(destroy_waits_for_lcores, fx_release(held.peer.qp))
WAITS(set_error_waits_for_lcores, rmem_qp_set_error(held.peer.qp))
WAITS(another_producer_of_a_cq_waits_for_lcores, fx_qp(fx.a.pd, held.side.cq, 4) == NULL ? -1 : 0)

/* Until the call returns, and later, the counters of the device have the requests of the QP. */
TEST(grace, qp_that_is_being_destroyed_is_counted)
{
	const struct rmem_sge sge = fx_sge(held.peer.mr, 0, 8);
	const struct rmem_send_wr wr = fx_rdma(
			RMEM_WR_RDMA_WRITE, &sge, fx_addr(held.side.buf), held.side.mr->rkey);
	uint64_t before;
	unsigned int i;

	for (i = 0; i < 4; i++)
		TEST_STATUS(fx_send(held.peer.qp, &wr), RMEM_WC_SUCCESS);
	before = fx_dev_stats(fx.a.dev).bytes;
	start_held();
	expect_wait(call_destroy_waits_for_lcores);
	TEST_ASSERT(held.stats.bytes >= before);
	TEST_ASSERT(fx_dev_stats(fx.a.dev).bytes >= before);
	TEST_ASSERT(fx_dev_stats(fx.a.dev).bytes <= before + FX_PAGE);
}

static int
unbind_counter(void)
{
	return rmem_mr_bind_counter(held.peer.mr, NULL, RMEM_COUNTER_REMOTE_WRITE);
}

TEST(grace, unbinding_a_counter_waits_for_lcores)
{
	struct rmem_counter *counter = fx_counter(fx.a.dev);

	TEST_OK(rmem_mr_bind_counter(held.peer.mr, counter, RMEM_COUNTER_REMOTE_WRITE));
	start_held();
	expect_wait(unbind_counter);
}

static int
reset_a(void)
{
	return rmem_qp_reset(fx.a.qp);
}

static int
reset_b(void)
{
	return rmem_qp_reset(fx.b.qp);
}

/* The request of a's invalidates and waits for the lcore; then a reset drops it. */
static void
drop_by_reset(const struct rmem_send_wr *wr)
{
	struct rmem_wc wc;

	start_held();
	TEST_EQ(rmem_post_send(fx.a.qp, wr, 1), 1);
	TEST_EQ(rmem_poll_cq(fx.a.cq, &wc, 1), 0);
	expect_wait(reset_a);
}

TEST(grace, invalidation_dropped_by_a_reset_leaves_the_key_free)
{
	static const uint8_t opcodes[] = {RMEM_WR_LOCAL_INV, RMEM_WR_RDMA_READ_WITH_INV};
	struct rmem_send_wr wr;
	unsigned int i;

	for (i = 0; i < RTE_DIM(opcodes); i++) {
		TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
		wr = fx_inv(fx.fast.mr->rkey);
		wr.opcode = opcodes[i];
		drop_by_reset(&wr);
		TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_FREE);
		fx_reconnect();
	}
	TEST_OK(fx_release(fx.fast.mr));
}

/* The key is the receiver's, the request that waits the sender's. The message has arrived. */
TEST(grace, send_with_inv_of_a_qp_that_is_reset_completes_its_receive)
{
	struct rmem_sge to = {(uintptr_t)fx.a.buf, 8, fx.a.mr->lkey};
	struct rmem_sge from = {(uintptr_t)fx.b.buf, 8, fx.b.mr->lkey};
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND_WITH_INV, &from, 1);
	struct rmem_wc wc;

	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	TEST_EQ(fx_post_recv(fx.a.qp, 1, &to, 1), 1);
	wr.invalidate_rkey = fx.fast.mr->rkey;
	start_held();
	TEST_EQ(rmem_post_send(fx.b.qp, &wr, 1), 1);
	TEST_EQ(rmem_poll_cq(fx.b.cq, &wc, 1), 0);
	expect_wait(reset_b);
	TEST_EQ(fx_mr_state(fx.fast.mr), RMEM_MR_STATE_FREE);
	TEST_EQ(rmem_poll_cq(fx.a.cq, &wc, 1), 1);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	TEST_EQ(wc.flags, RMEM_WC_WITH_INV);
	TEST_EQ(wc.invalidated_rkey, wr.invalidate_rkey);
	TEST_EQ(wc.byte_len, 8);
	TEST_OK(fx_release(fx.fast.mr));
}

/* A type 1 window is bound again when its previous range is not in use. */
TEST(grace, mw_bind_dropped_by_a_reset_leaves_the_window)
{
	struct rmem_mw_bind bind;
	struct rmem_mw *mw = NULL;
	struct rmem_wc wc;

	TEST_OK(rmem_mw_alloc(fx.a.pd, RMEM_MW_TYPE_1, &mw));
	fx_track(mw);
	fx.mw.mr = fx_mr(fx.a.pd, fx.a.buf, FX_BUF_SIZE, FX_ACCESS | RMEM_ACCESS_MW_BIND);
	bind = fx_mw_bind(0, 64, RMEM_ACCESS_REMOTE_WRITE);
	TEST_OK(rmem_mw_bind(fx.a.qp, mw, &bind));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	start_held();
	bind = fx_mw_bind(64, 64, RMEM_ACCESS_REMOTE_WRITE);
	TEST_OK(rmem_mw_bind(fx.a.qp, mw, &bind));
	TEST_EQ(rmem_poll_cq(fx.a.cq, &wc, 1), 0);
	expect_wait(reset_a);
	TEST_OK(fx_release(mw));
	TEST_OK(fx_release(fx.mw.mr));
}

static struct rmem_qp *drained;

static int
drain(void)
{
	const struct rmem_qp_attr attr = {.state = RMEM_QPS_SQD, .en_sqd_async_notify = 1};

	return rmem_qp_modify(drained, &attr, RMEM_QP_STATE | RMEM_QP_EN_SQD_ASYNC_NOTIFY);
}

/* IBTA 11.6.3.1: Send Queue Drained. */
TEST(grace, invalidation_that_waits_is_drained_when_it_completes)
{
	struct rmem_qp_conf conf = fx_qp_conf(fx.a.cq, 4);
	struct rmem_async_event event;
	struct rmem_send_wr wr;
	struct rmem_qp_attr attr;
	struct rmem_wc wc;

	TEST_OK(rmem_async_channel_create(fx.a.dev, &conf.async_channel));
	fx_track(conf.async_channel);
	TEST_OK(fcntl(conf.async_channel->fd, F_SETFL, O_NONBLOCK));
	drained = fx_qp_by(fx.a.pd, &conf);
	TEST_OK(fx_connect(drained, fx.b.qp));
	TEST_STATUS(fx_bind(), RMEM_WC_SUCCESS);
	wr = fx_inv(fx.fast.mr->rkey);
	wr.flags = RMEM_SEND_SIGNALED;
	start_held();
	TEST_EQ(rmem_post_send(drained, &wr, 1), 1);
	TEST_EQ(rmem_poll_cq(fx.a.cq, &wc, 1), 0);
	expect_wait(drain);
	TEST_EQ(rmem_async_channel_get_event(conf.async_channel, &event), -EAGAIN);
	TEST_OK(rmem_qp_query(drained, &attr));
	TEST_EQ(attr.sq_draining, 1);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_OK(rmem_qp_query(drained, &attr));
	TEST_EQ(attr.sq_draining, 0);
	TEST_OK(rmem_async_channel_get_event(conf.async_channel, &event));
	TEST_EQ(event.type, RMEM_ASYNC_SQ_DRAINED);
	TEST_ASSERT(event.qp == drained);
	TEST_OK(rmem_async_event_ack(&event));
	TEST_OK(fx_release(drained));
	TEST_OK(fx_release(fx.fast.mr));
}

/* After a failure the lcore may still be held. */
static void
teardown(void)
{
	if (__atomic_load_n(&held.is_held, __ATOMIC_ACQUIRE) && !held.is_released)
		release();
	fx_teardown();
}

TEST_SUITE(grace, setup, teardown);
