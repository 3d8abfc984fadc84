/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Completion channels: refused arguments, and no completion is lost between arming and polling.
 */

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_debug.h>
#include <rte_lcore.h>

#include "../../drivers/soft/queue/rsoft_cq.h"

#include "soft/fixture_odp.h"
#include "stub_driver.h"

/* Bytes of a message, small enough that its entry of the CQ is reserved before the copy. */
#define EARLY 512u

static struct rmem_cq *
cq_of(struct rmem_comp_channel *channel)
{
	const struct rmem_cq_conf conf = {.nb_cqe = 256, .channel = channel};

	return fx_cq_by(fx.a.dev, &conf);
}

TEST(comp_channel, cq_refuses_channels_of_others)
{
	struct rmem_dev *dev = fx_dev("soft1", NULL);
	struct rmem_cq_conf conf = {.nb_cqe = 1};
	struct rmem_cq *cq = NULL;

	conf.channel = fx_channel(dev);
	TEST_ERR(rmem_cq_create(fx.a.dev, &conf, &cq), EINVAL);
	conf.channel = (struct rmem_comp_channel *)fx.a.pd;
	TEST_ERR(rmem_cq_create(fx.a.dev, &conf, &cq), EINVAL);
	TEST_ASSERT(cq == NULL);
}

TEST(comp_channel, calls_refuse_bad_arguments)
{
	struct rmem_comp_channel *channel = fx_channel(fx.a.dev);
	struct rmem_cq *cq;

	TEST_ERR(rmem_comp_channel_get_event(NULL, &cq, NULL), EINVAL);
	TEST_ERR(rmem_comp_channel_get_event((struct rmem_comp_channel *)fx.a.cq, &cq, NULL),
			EINVAL);
	TEST_ERR(rmem_comp_channel_get_event(channel, NULL, NULL), EINVAL);
	TEST_ERR(rmem_cq_req_notify(NULL, false), EINVAL);
	TEST_ERR(rmem_cq_req_notify(fx.a.cq, false), EINVAL);
	TEST_ERR(rmem_cq_ack_events(NULL, 0), EINVAL);
	TEST_ERR(rmem_cq_ack_events(fx.a.cq, 0), EINVAL);
}

/* Each event is that of one arming, though it is read late. */
TEST(comp_channel, events_of_a_cq_are_counted)
{
	struct rmem_comp_channel *channel = fx_channel(fx.a.dev);
	struct rmem_cq *cq = cq_of(channel), *found;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		TEST_OK(rmem_cq_req_notify(cq, false));
		rmem_cq_notify(cq, false);
	}
	for (i = 0; i < 3; i++) {
		TEST_ASSERT(fx_is_readable(channel->fd, 0));
		TEST_OK(rmem_comp_channel_get_event(channel, &found, NULL));
		TEST_ASSERT(found == cq);
	}
	TEST_ASSERT(!fx_is_readable(channel->fd, 0));
	TEST_OK(rmem_cq_ack_events(cq, 3));
}

/*
 * One producer reserves the entry before that of another, which writes first: the consumer armed
 * the CQ again after the event of the second, and found nothing. The write of the first generates
 * an event.
 */
static void
expect_event_of_first(const struct rmem_send_wr *wr, int status, bool is_solicited_only, int nb)
{
	const struct rsoft_cqe second = {
			.info = rsoft_cqe_info(0, RMEM_WC_RECV, RMEM_WC_SOLICITED, 1)};
	struct rmem_comp_channel *channel = fx_channel(fx.a.dev);
	struct rmem_cq *cq = cq_of(channel), *found;
	struct rmem_qp *qp = fx_qp(fx.a.pd, fx.a.cq, 16), *peer = fx_qp(fx.a.pd, cq, 16);
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, FX_PAGE);
	struct rmem_wc wc[4];

	TEST_OK(fx_connect_pair(qp, peer));
	TEST_EQ(fx_post_recv(peer, 1, &sge, 1), 1);
	rsoft_cq_store(rsoft_cq_of(cq), 1, &second);
	TEST_OK(rmem_cq_req_notify(cq, is_solicited_only));
	TEST_EQ(rmem_poll_cq(cq, wc, RTE_DIM(wc)), 0);
	TEST_STATUS(fx_send(qp, wr), status);
	TEST_EQ(rsoft_cq_reserve_shared(rsoft_cq_of(cq), 1), 1);
	TEST_ASSERT(fx_is_readable(channel->fd, FX_EVENT_MS));
	TEST_OK(rmem_comp_channel_get_event(channel, &found, NULL));
	TEST_OK(rmem_cq_ack_events(found, 1));
	TEST_EQ(rmem_poll_cq(cq, wc, RTE_DIM(wc)), nb);
}

TEST(comp_channel, completion_after_an_unsolicited_one_generates_an_event)
{
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);

	TEST_SKIP_IF(!fx_is_soft(), "it writes a CQ of the software device");
	expect_event_of_first(&wr, RMEM_WC_SUCCESS, true, 2);
}

/* The source of the first message is lost, which releases its entry and keeps the receive. */
TEST(comp_channel, completion_after_a_released_entry_generates_an_event)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	struct rmem_sge sge;
	struct rmem_mr *mr;
	uint8_t *mem;

	if (!fx_is_soft() || !fx_odp_has_atomics())
		test_skip("nothing is guarded by a signal handler here");
	mem = fx_map(FX_PAGE);
	TEST_OK(mprotect(mem, FX_PAGE, PROT_READ | PROT_WRITE));
	mr = fx_mr(fx.a.pd, mem, FX_PAGE, FX_ACCESS);
	sge = fx_sge(mr, 0, EARLY);
	wr.sg_list = &sge;
	wr.num_sge = 1;
	TEST_OK(mprotect(mem, FX_PAGE, PROT_NONE));
	expect_event_of_first(&wr, RMEM_WC_LOC_PROT_ERR, false, 1);
}

TEST(comp_channel, overrun_generates_an_event)
{
	const struct rmem_cq_conf conf = {.nb_cqe = 1, .channel = fx_channel(fx.a.dev)};
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	struct rmem_cq *cq = fx_cq_by(fx.a.dev, &conf), *found;
	struct rmem_qp *qp = fx_qp(fx.a.pd, fx.a.cq, 16), *peer = fx_qp(fx.a.pd, cq, 16);
	struct rmem_wc wc;
	uint32_t i;

	TEST_ASSERT(conf.channel != NULL);
	TEST_OK(fx_connect_pair(qp, peer));
	for (i = 0; i <= cq->nb_cqe; i++)
		TEST_EQ(fx_post_recv(peer, i, NULL, 0), 1);
	TEST_OK(rmem_cq_req_notify(cq, true));
	for (i = 0; i <= cq->nb_cqe; i++)
		TEST_EQ(fx_post(qp, &wr), 1);
	TEST_ASSERT(fx_is_readable(conf.channel->fd, FX_EVENT_MS));
	TEST_OK(rmem_comp_channel_get_event(conf.channel, &found, NULL));
	TEST_OK(rmem_cq_ack_events(found, 1));
	for (i = 0; i < cq->nb_cqe; i++)
		TEST_EQ(rmem_poll_cq(cq, &wc, 1), 1);
	TEST_EQ(rmem_poll_cq(cq, &wc, 1), -EIO);
}

struct cancelled {
	struct rmem_comp_channel *channel;
	struct rmem_cq *cq;
	bool has_read;
	bool is_enabled;
};

static void *
notify_and_read(void *arg)
{
	struct cancelled *cancelled = arg;
	struct rmem_cq *cq;
	int state;

	pthread_cancel(pthread_self());
	rmem_cq_notify(cancelled->cq, false);
	cancelled->has_read = rmem_comp_channel_get_event(cancelled->channel, &cq, NULL) == 0;
	/* It could be cancelled again; not done, since a sanitizer does not unwind the stack. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	cancelled->is_enabled = state == PTHREAD_CANCEL_ENABLE;
	return NULL;
}

/* Posts and polls notify under locks. */
TEST(comp_channel, notification_is_no_cancellation_point)
{
	struct cancelled cancelled = {.channel = fx_channel(fx.a.dev)};
	pthread_t thread;

	TEST_ASSERT(cancelled.channel != NULL);
	cancelled.cq = cq_of(cancelled.channel);
	TEST_OK(rmem_cq_req_notify(cancelled.cq, false));
	TEST_OK(pthread_create(&thread, NULL, notify_and_read, &cancelled));
	TEST_OK(pthread_join(thread, NULL));
	if (!cancelled.has_read)
		rte_panic("cancelled with the lock of the channel\n");
	TEST_ASSERT(cancelled.is_enabled);
	TEST_OK(rmem_cq_ack_events(cancelled.cq, 1));
}

#define NB_TAKEN 2000u /* events of a waiter */

static uint32_t nb_signals, nb_taken; /* atomic */

static void
on_signal(int sig)
{
	RTE_SET_USED(sig);
	__atomic_fetch_add(&nb_signals, 1, __ATOMIC_RELEASE);
}

struct waiter {
	struct rmem_comp_channel *channel;
	uint32_t is_waiting;
	int result;
	struct rmem_cq *cq;
	pid_t tid;
};

static void *
wait_for_event(void *arg)
{
	struct waiter *waiter = arg;

	waiter->tid = (pid_t)syscall(SYS_gettid);
	__atomic_store_n(&waiter->is_waiting, 1, __ATOMIC_RELEASE);
	waiter->result = rmem_comp_channel_get_event(waiter->channel, &waiter->cq, NULL);
	__atomic_store_n(&waiter->is_waiting, 2, __ATOMIC_RELEASE);
	return NULL;
}

TEST(comp_channel, signal_interrupts_the_wait)
{
	struct waiter waiter = {.channel = fx_channel(fx.a.dev)};
	struct sigaction action = {.sa_handler = on_signal}, old;
	pthread_t thread;

	TEST_ASSERT(waiter.channel != NULL);
	TEST_OK(sigaction(SIGUSR1, &action, &old));
	TEST_OK(pthread_create(&thread, NULL, wait_for_event, &waiter));
	/* A signal that precedes the wait does not end it. */
	while (__atomic_load_n(&waiter.is_waiting, __ATOMIC_ACQUIRE) != 2) {
		if (__atomic_load_n(&waiter.is_waiting, __ATOMIC_ACQUIRE) == 1)
			pthread_kill(thread, SIGUSR1);
		sched_yield();
	}
	TEST_OK(pthread_join(thread, NULL));
	TEST_OK(sigaction(SIGUSR1, &old, NULL));
	TEST_ERR(waiter.result, EINTR);
}

/* Wait until the thread sleeps. */
static void
wait_asleep(pid_t tid)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	while (state != 'S') {
		sched_yield();
		file = fopen(path, "r");
		TEST_ASSERT(file != NULL);
		if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
			state = 'S';
		fclose(file);
	}
}

/* As a read of libibverbs. */
TEST(comp_channel, signal_with_sa_restart_continues_the_wait)
{
	struct waiter waiter = {.channel = fx_channel(fx.a.dev)};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, old;
	struct rmem_cq *cq;
	pthread_t thread;

	TEST_ASSERT(waiter.channel != NULL);
	cq = cq_of(waiter.channel);
	TEST_OK(rmem_cq_req_notify(cq, false));
	TEST_OK(sigaction(SIGUSR1, &action, &old));
	__atomic_store_n(&nb_signals, 0, __ATOMIC_RELAXED);
	TEST_OK(pthread_create(&thread, NULL, wait_for_event, &waiter));
	while (__atomic_load_n(&waiter.is_waiting, __ATOMIC_ACQUIRE) == 0)
		sched_yield();
	wait_asleep(waiter.tid);
	TEST_OK(pthread_kill(thread, SIGUSR1));
	while (__atomic_load_n(&nb_signals, __ATOMIC_ACQUIRE) == 0)
		sched_yield();
	rmem_cq_notify(cq, false);
	TEST_OK(pthread_join(thread, NULL));
	TEST_OK(sigaction(SIGUSR1, &old, NULL));
	TEST_EQ(waiter.result, 0);
	TEST_ASSERT(waiter.cq == cq);
	TEST_OK(rmem_cq_ack_events(cq, 1));
}

static void *
take_events(void *arg)
{
	struct waiter *waiter = arg;
	unsigned int i;

	for (i = 0; i < NB_TAKEN; i++) {
		waiter->result = rmem_comp_channel_get_event(waiter->channel, &waiter->cq, NULL);
		if (waiter->result != 0 || rmem_cq_ack_events(waiter->cq, 1) != 0)
			rte_panic("an event was lost\n");
		__atomic_fetch_add(&nb_taken, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* One may read the value of an event that another one takes from the list. */
TEST(comp_channel, waiters_share_the_events_of_a_channel)
{
	struct waiter waiters[3];
	pthread_t threads[RTE_DIM(waiters)];
	struct rmem_comp_channel *channel = fx_channel(fx.a.dev);
	struct rmem_cq *cqs[2];
	uint32_t i, nb;

	cqs[0] = cq_of(channel);
	cqs[1] = cq_of(channel);
	__atomic_store_n(&nb_taken, 0, __ATOMIC_RELAXED);
	for (i = 0; i < RTE_DIM(waiters); i++) {
		waiters[i] = (struct waiter){.channel = channel};
		TEST_OK(pthread_create(&threads[i], NULL, take_events, &waiters[i]));
	}
	for (nb = 0; nb < NB_TAKEN * RTE_DIM(waiters); nb++) {
		TEST_OK(rmem_cq_req_notify(cqs[nb % 2], false));
		rmem_cq_notify(cqs[nb % 2], false);
		/* Two at a time. */
		while (__atomic_load_n(&nb_taken, __ATOMIC_ACQUIRE) + 1 < nb)
			sched_yield();
	}
	for (i = 0; i < RTE_DIM(waiters); i++)
		TEST_OK(pthread_join(threads[i], NULL));
}

#define RACE_WRITES 20000u

struct race {
	struct rmem_comp_channel *channel;
	struct rmem_cq *cq;
	struct rmem_qp *qp; /* posts; its peer, which receives, completes to cq */
	struct rmem_qp *peer;
	uint32_t nb_polled; /* atomic */
	uint32_t has_failed;
};

/* One message at a time: the consumer sleeps unless its poll after arming finds the message. */
static void *
consume(void *arg)
{
	struct race *race = arg;
	struct rmem_wc wc[4];
	struct rmem_cq *cq;
	uint32_t nb = 0;
	int n;

	if (rte_thread_register() != 0)
		race->has_failed = 1;
	while (nb < RACE_WRITES && !race->has_failed) {
		if (rmem_cq_req_notify(race->cq, false) != 0)
			race->has_failed = 1;
		n = rmem_poll_cq(race->cq, wc, RTE_DIM(wc));
		if (n > 0) {
			nb += (uint32_t)n;
			__atomic_store_n(&race->nb_polled, nb, __ATOMIC_RELEASE);
			continue;
		}
		if (n < 0 || !fx_is_readable(race->channel->fd, FX_EVENT_MS) ||
				rmem_comp_channel_get_event(race->channel, &cq, NULL) != 0 ||
				rmem_cq_ack_events(cq, 1) != 0)
			race->has_failed = 1;
	}
	if (race->has_failed)
		__atomic_store_n(&race->nb_polled, UINT32_MAX, __ATOMIC_RELEASE);
	rte_thread_unregister();
	return NULL;
}

static void
produce(struct race *race)
{
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	uint32_t i;

	for (i = 0; i < RACE_WRITES; i++) {
		TEST_EQ(fx_post_recv(race->peer, i, NULL, 0), 1);
		TEST_STATUS(fx_send(race->qp, &wr), RMEM_WC_SUCCESS);
		fx_wait_until(&race->nb_polled, i + 1);
		TEST_ASSERT(!race->has_failed);
	}
}

static void
run_race(const struct rmem_cq_attr *moderation)
{
	struct race race = {.channel = fx_channel(fx.a.dev)};
	pthread_t thread;
	int ret;

	TEST_ASSERT(race.channel != NULL);
	race.cq = cq_of(race.channel);
	TEST_OK(rmem_cq_modify(race.cq, moderation));
	race.qp = fx_qp(fx.a.pd, fx.a.cq, 16);
	race.peer = fx_qp(fx.a.pd, race.cq, 16);
	TEST_OK(fx_connect_pair(race.qp, race.peer));
	TEST_OK(pthread_create(&thread, NULL, consume, &race));
	ret = TEST_TRY(produce(&race));
	if (ret != TEST_SUCCESS)
		__atomic_store_n(&race.has_failed, 1, __ATOMIC_RELAXED);
	TEST_OK(pthread_join(thread, NULL));
	TEST_RUN(ret);
}

/* The invariant of rmem_cq_notify.c. */
TEST(comp_channel, completion_after_req_notify_is_polled_or_generates_an_event)
{
	const struct rmem_cq_attr none = {.count = 0};

	run_race(&none);
}

/* The same of rmem_cq_moder.c: each event is generated by its thread. */
TEST(comp_channel, completion_of_a_moderated_cq_is_polled_or_generates_an_event)
{
	const struct rmem_cq_attr attr = {.count = 4, .period_us = 10};

	run_race(&attr);
}

TEST_SUITE(comp_channel, fx_setup, fx_teardown);
