/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * sanitize=1: two threads in one queue at the same time are reported, and threads not registered
 * with EAL; queues that change hands are not.
 *
 * A thread calls again and again. A signal stops it; if that is inside of a call, it stays there
 * until the other thread was reported.
 */

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_lcore.h>

#include "../../drivers/soft/base/rsoft.h"
#include "fixture.h"

#define HAND_OVERS 2000u

static struct {
	int (*call)(void);
	const struct rsoft_thread_check *users;
	unsigned int lcore;  /* of the thread */
	uint32_t is_ready;   /* it calls; atomic */
	uint32_t is_over;    /* atomic */
	uint32_t is_parked;  /* it is stopped inside; atomic */
	uint32_t is_free;    /* it may go on without a report; atomic */
	uint32_t nb_signals; /* handled; atomic */
} race;

static void
open_sides(const char *args)
{
	memset(&race, 0, sizeof(race));
	fx_sides_open(fx_dev("soft0", args));
}

static struct rsoft_qp *
soft_qp(void)
{
	return (struct rsoft_qp *)fx.a.qp;
}

static int
call_post_send(void)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	const struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);

	return rmem_post_send(fx.a.qp, &wr, 1);
}

static int
call_post_recv(void)
{
	return fx_post_recv(fx.a.qp, 0, NULL, 0);
}

static int
call_poll_cq(void)
{
	struct rmem_wc wc;

	return rmem_poll_cq(fx.a.cq, &wc, 1);
}

static void
park(int sig)
{
	RTE_SET_USED(sig);
	if (__atomic_load_n(&race.users->entry, __ATOMIC_RELAXED) != 0) {
		__atomic_store_n(&race.is_parked, 1, __ATOMIC_RELEASE);
		while (__atomic_load_n(&race.users->nb_overlaps, __ATOMIC_ACQUIRE) == 0 &&
				!__atomic_load_n(&race.is_free, __ATOMIC_ACQUIRE))
			sched_yield();
	}
	__atomic_add_fetch(&race.nb_signals, 1, __ATOMIC_RELEASE);
}

static void *
call_often(void *arg)
{
	RTE_SET_USED(arg);
	if (rte_thread_register() != 0)
		abort();
	race.lcore = rte_lcore_id();
	__atomic_store_n(&race.is_ready, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&race.is_over, __ATOMIC_ACQUIRE))
		race.call();
	rte_thread_unregister();
	return NULL;
}

/* Start a thread that calls, and stop it inside. */
static void
start_inside(int (*call)(void), const struct rsoft_thread_check *users, pthread_t *thread)
{
	uint32_t nb = 0;

	race.call = call;
	race.users = users;
	TEST_OK(pthread_create(thread, NULL, call_often, NULL));
	while (!__atomic_load_n(&race.is_ready, __ATOMIC_ACQUIRE))
		sched_yield();
	while (!__atomic_load_n(&race.is_parked, __ATOMIC_ACQUIRE)) {
		TEST_OK(pthread_kill(*thread, SIGUSR1));
		while (__atomic_load_n(&race.nb_signals, __ATOMIC_ACQUIRE) == nb &&
				!__atomic_load_n(&race.is_parked, __ATOMIC_ACQUIRE))
			sched_yield();
		nb++;
	}
}

/* Let the thread go, and wait for it. */
static int
end_inside(pthread_t thread)
{
	__atomic_store_n(&race.is_free, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&race.is_over, 1, __ATOMIC_RELEASE);
	return pthread_join(thread, NULL);
}

static struct rmem_mw *window;

static int
call_bind_mw(void)
{
	struct rmem_mw_bind bind = {.bind_info = {.mr = fx.a.mr}};

	return rmem_mw_bind(fx.a.qp, window, &bind);
}

/* A call, and what is logged of it. */
struct call {
	int (*func)(void);
	const char *name;
};

static const struct call post_send = {call_post_send, "rmem_post_send"};
static const struct call post_recv = {call_post_recv, "rmem_post_recv"};
static const struct call poll = {call_poll_cq, "rmem_poll_cq"};
static const struct call bind_mw = {call_bind_mw, "rmem_mw_bind"};

/*
 * A call is reported that is made during one of another thread. Both queues of the QP are full, so
 * the calls change nothing.
 */
static void
expect_overlap(const char *queue, const struct call *call, const struct call *inside,
		const struct rsoft_thread_check *users)
{
	const struct sigaction action = {.sa_handler = park};
	struct sigaction old;
	pthread_t thread = 0;
	const char *log;
	char text[160];

	while (call_post_send() == 1)
		;
	while (call_post_recv() == 1)
		;
	TEST_OK(sigaction(SIGUSR1, &action, &old));
	start_inside(inside->func, users, &thread);
	fx_log_begin();
	call->func();
	/* Until then it may find an overlap, too. */
	end_inside(thread);
	log = fx_log_end();
	sigaction(SIGUSR1, &old, NULL);
	snprintf(text, sizeof(text), "sanitize: %s: %s() by lcore %u during %s() by lcore %u: one",
			queue, call->name, rte_lcore_id(), inside->name, race.lcore);
	TEST_TEXT(log, text);
}

TEST(sanitize_users, two_threads_that_post)
{
	char queue[64];

	open_sides("sanitize=1");
	window = fx_mw(fx.a.pd, RMEM_MW_TYPE_1);
	snprintf(queue, sizeof(queue), "QP 0x%06x", fx.a.qp->qp_num);
	expect_overlap(queue, &post_send, &post_send, &soft_qp()->senders);
	fx_reconnect();
	memset(&race, 0, sizeof(race));
	soft_qp()->senders.nb_overlaps = 0;
	expect_overlap(queue, &bind_mw, &post_send, &soft_qp()->senders);
}

TEST(sanitize_users, two_threads_that_poll)
{
	char queue[64];

	open_sides("sanitize=1");
	snprintf(queue, sizeof(queue), "CQ %p", (void *)fx.a.cq);
	expect_overlap(queue, &poll, &poll, &((struct rsoft_cq *)fx.a.cq)->pollers);
}

/* The name of the configuration is in the line. */
TEST(sanitize_users, two_threads_that_post_receives)
{
	struct rmem_qp_conf conf;
	char queue[64];

	open_sides("sanitize=1");
	conf = fx_qp_conf(fx.a.cq, 4);
	conf.name = "twice";
	fx.a.qp = fx_qp_by(fx.a.pd, &conf);
	TEST_RUN(fx_connect(fx.a.qp, fx.a.qp));
	snprintf(queue, sizeof(queue), "QP 0x%06x \"twice\"", fx.a.qp->qp_num);
	expect_overlap(queue, &post_recv, &post_recv, &soft_qp()->receivers);
}

static uint32_t
nb_reports(void)
{
	const struct rsoft_qp *qps[] = {soft_qp(), (struct rsoft_qp *)fx.b.qp};
	uint32_t i, nb = ((struct rsoft_cq *)fx.a.cq)->pollers.nb_overlaps;

	for (i = 0; i < RTE_DIM(qps); i++)
		nb += qps[i]->senders.nb_overlaps + qps[i]->receivers.nb_overlaps;
	return nb;
}

static uint32_t turn; /* atomic */

/* All calls of a QP, whenever it is the turn of this thread. */
static void *
take_turns(void *arg)
{
	const uint32_t own = arg != NULL;
	uint32_t i;

	if (own != 0 && rte_thread_register() != 0)
		abort();
	for (i = 0; i < HAND_OVERS; i++) {
		FX_AWAIT(__atomic_load_n(&turn, __ATOMIC_ACQUIRE) % 2 == own);
		call_post_recv();
		call_post_send();
		call_poll_cq();
		__atomic_add_fetch(&turn, 1, __ATOMIC_RELEASE);
	}
	if (own != 0)
		rte_thread_unregister();
	return NULL;
}

TEST(sanitize_users, handing_over_is_not_reported)
{
	pthread_t thread = 0;

	open_sides("sanitize=1");
	turn = 0;
	TEST_OK(pthread_create(&thread, NULL, take_turns, &turn));
	take_turns(NULL);
	TEST_OK(pthread_join(thread, NULL));
	TEST_EQ(nb_reports(), 0);
}

/* One thread posts sends, one receives, one polls. */
TEST(sanitize_users, queues_of_different_threads_are_not_reported)
{
	const struct sigaction action = {.sa_handler = park};
	struct sigaction old;
	pthread_t thread = 0;

	open_sides("sanitize=1");
	TEST_OK(sigaction(SIGUSR1, &action, &old));
	start_inside(call_poll_cq, &((struct rsoft_cq *)fx.a.cq)->pollers, &thread);
	TEST_EQ(call_post_recv(), 1);
	TEST_EQ(call_post_send(), 1);
	TEST_OK(end_inside(thread));
	memset(&race, 0, sizeof(race));
	start_inside(call_post_recv, &soft_qp()->receivers, &thread);
	TEST_EQ(call_post_send(), 1);
	TEST_EQ(call_poll_cq(), 0);
	TEST_OK(end_inside(thread));
	TEST_OK(sigaction(SIGUSR1, &old, NULL));
	TEST_EQ(nb_reports(), 0);
}

/* The thread that is inside at a fork() is not in the child. */
TEST(sanitize_users, thread_of_the_parent_is_not_reported)
{
	const struct sigaction action = {.sa_handler = park};
	struct sigaction old;
	pthread_t thread = 0;
	int status = -1;
	pid_t pid;

	open_sides("sanitize=1");
	TEST_OK(sigaction(SIGUSR1, &action, &old));
	start_inside(call_post_recv, &soft_qp()->receivers, &thread);
	pid = fork();
	if (pid == 0) {
		call_post_recv();
		_exit(nb_reports() == 0 ? 0 : 1);
	}
	TEST_ASSERT(pid > 0 && waitpid(pid, &status, 0) == pid);
	TEST_OK(end_inside(thread));
	TEST_OK(sigaction(SIGUSR1, &old, NULL));
	TEST_EQ(status, 0);
}

static void
expect_stranger(const char *log, const char *call)
{
	char text[128];

	snprintf(text, sizeof(text), ": %s() by thread %d, which has no lcore id: refused", call,
			(int)gettid());
	TEST_TEXT(log, text);
}

static void
call_as_stranger(void)
{
	fx_log_begin();
	TEST_ERR(call_post_send(), EINVAL);
	expect_stranger(fx_log_end(), "rmem_post_send");
	fx_log_begin();
	TEST_ERR(call_post_recv(), EINVAL);
	expect_stranger(fx_log_end(), "rmem_post_recv");
	fx_log_begin();
	TEST_ERR(call_poll_cq(), EINVAL);
	expect_stranger(fx_log_end(), "rmem_poll_cq");
}

static void *
run_stranger(void *arg)
{
	*(int *)arg = TEST_TRY(call_as_stranger());
	return NULL;
}

TEST(sanitize_users, thread_without_an_lcore_id)
{
	int result = TEST_FAILED;
	pthread_t thread = 0;

	open_sides("sanitize=1");
	TEST_OK(pthread_create(&thread, NULL, run_stranger, &result));
	TEST_OK(pthread_join(thread, NULL));
	TEST_EQ(nb_reports(), 0);
	TEST_RUN(result);
}

TEST(sanitize_users, other_devices_have_the_ordinary_functions)
{
	struct rmem_dev *ordinary = fx_dev("soft1", NULL), *checked;

	open_sides(NULL);
	checked = fx_dev("soft2", "sanitize=1");
	TEST_ASSERT(rmem_fp[fx.a.dev->obj.dev_id].post_send ==
			rmem_fp[ordinary->obj.dev_id].post_send);
	TEST_ASSERT(rmem_fp[fx.a.dev->obj.dev_id].post_send !=
			rmem_fp[checked->obj.dev_id].post_send);
}

/* A device of that number may have been another. */
TEST(sanitize_users, functions_of_a_closed_device_are_not_kept)
{
	struct rmem_dev *dev;
	rmem_post_send_t checked;

	TEST_OK(rmem_dev_create("soft0", "sanitize=1", &dev));
	checked = rmem_fp[dev->obj.dev_id].post_send;
	TEST_OK(rmem_dev_close(dev));
	TEST_OK(rmem_dev_create("soft0", NULL, &dev));
	TEST_ASSERT(rmem_fp[dev->obj.dev_id].post_send != checked);
	TEST_OK(rmem_dev_close(dev));
}

TEST_SUITE(sanitize_users, fx_setup_none, fx_teardown);
