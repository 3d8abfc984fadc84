/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Channels of asynchronous events: refused arguments, waiting and destruction, and no event is lost
 * between drivers that generate it and threads that read it.
 */

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fixture.h"
#include "stub_driver.h"

static struct rmem_srq *
srq_of(struct rmem_async_channel *channel, void *context)
{
	const struct rmem_srq_conf conf = {
			.max_wr = 4, .async_channel = channel, .context = context};
	struct rmem_srq *srq = NULL;

	if (rmem_srq_create(fx.a.pd, &conf, &srq) != 0)
		return NULL;
	fx_track(srq);
	return srq;
}

static struct rmem_qp *
qp_of(struct rmem_async_channel *channel)
{
	struct rmem_qp_conf conf = fx_qp_conf(fx.a.cq, 4);

	conf.async_channel = channel;
	conf.context = channel;
	return fx_qp_by(fx.a.pd, &conf);
}

TEST(async_channel, calls_refuse_bad_arguments)
{
	struct rmem_async_channel *channel = fx_async_channel(fx.a.dev);
	struct rmem_async_event event = {.qp = fx.a.qp, .type = RMEM_ASYNC_QP_FATAL};

	TEST_ERR(rmem_async_channel_get_event(NULL, &event), EINVAL);
	TEST_ERR(rmem_async_channel_get_event((void *)fx.a.cq, &event), EINVAL);
	TEST_ERR(rmem_async_channel_get_event(channel, NULL), EINVAL);
	TEST_ERR(rmem_async_event_ack(NULL), EINVAL);
	TEST_ERR(rmem_async_event_ack(&event), EINVAL);
	event.type = RMEM_ASYNC_CQ_ERR;
	TEST_ERR(rmem_async_event_ack(&event), EINVAL);
	event.cq = fx.a.cq;
	TEST_ERR(rmem_async_event_ack(&event), EINVAL);
	event.type = RMEM_ASYNC_COMM_EST + 2;
	TEST_ERR(rmem_async_event_ack(&event), EINVAL);
	event.type = UINT32_MAX;
	TEST_ERR(rmem_async_event_ack(&event), EINVAL);
}

TEST(async_channel, objects_refuse_channels_of_others)
{
	struct rmem_dev *dev = fx_dev("soft1", NULL);
	struct rmem_cq_conf cq_conf = {.nb_cqe = 1};
	struct rmem_srq_conf srq_conf = {.max_wr = 1};
	struct rmem_qp_conf qp_conf = fx_qp_conf(fx.a.cq, 4);
	struct rmem_async_channel *channel = fx_async_channel(dev);
	void *made = NULL;

	cq_conf.async_channel = srq_conf.async_channel = qp_conf.async_channel = channel;
	TEST_ERR(rmem_cq_create(fx.a.dev, &cq_conf, (struct rmem_cq **)&made), EINVAL);
	TEST_ERR(rmem_srq_create(fx.a.pd, &srq_conf, (struct rmem_srq **)&made), EINVAL);
	TEST_ERR(rmem_qp_create(fx.a.pd, &qp_conf, (struct rmem_qp **)&made), EINVAL);
	TEST_ASSERT(made == NULL);
	TEST_ERR(rmem_dev_close(dev), EBUSY);
	TEST_RUN(fx_release(channel));
}

TEST(async_channel, types_have_names)
{
	TEST_STATUS(strcmp(rmem_async_event_type_str(RMEM_ASYNC_GID_CHANGE), "GID_CHANGE"), 0);
	TEST_STATUS(strcmp(rmem_async_event_type_str(RMEM_ASYNC_CQ_ERR), "CQ_ERR"), 0);
	TEST_STATUS(strcmp(rmem_async_event_type_str(6), "unknown"), 0);
	TEST_STATUS(strcmp(rmem_async_event_type_str(UINT32_MAX), "unknown"), 0);
}

/* Objects take turns, so that one with many events delays no other. */
TEST(async_channel, event_is_returned_once_until_it_occurs_again)
{
	struct rmem_async_channel *channel = fx_async_channel(fx.a.dev);
	const struct rmem_cq_conf conf = {.nb_cqe = 1, .async_channel = channel};
	struct rmem_cq *cq = fx_cq_by(fx.a.dev, &conf);
	struct rmem_srq *srq = srq_of(channel, NULL);
	struct rmem_qp *qp = qp_of(channel);

	TEST_ASSERT(srq != NULL);
	rmem_qp_async_event(qp, RMEM_ASYNC_QP_LAST_WQE_REACHED);
	rmem_qp_async_event(qp, RMEM_ASYNC_QP_FATAL);
	rmem_qp_async_event(qp, RMEM_ASYNC_QP_LAST_WQE_REACHED);
	rmem_srq_async_event(srq, RMEM_ASYNC_SRQ_LIMIT_REACHED);
	rmem_cq_async_event(cq, RMEM_ASYNC_CQ_ERR);
	fx_expect_async(channel, RMEM_ASYNC_QP_FATAL, qp);
	fx_expect_async(channel, RMEM_ASYNC_SRQ_LIMIT_REACHED, srq);
	rmem_srq_async_event(srq, RMEM_ASYNC_SRQ_LIMIT_REACHED);
	fx_expect_async(channel, RMEM_ASYNC_CQ_ERR, cq);
	fx_expect_async(channel, RMEM_ASYNC_QP_LAST_WQE_REACHED, qp);
	fx_expect_async(channel, RMEM_ASYNC_SRQ_LIMIT_REACHED, srq);
	TEST_ASSERT(!fx_is_readable(channel->fd, 0));
}

TEST(async_channel, objects_without_a_channel_generate_no_event)
{
	const struct rmem_srq_conf conf = {.max_wr = 4};
	struct rmem_srq *srq;

	rmem_qp_async_event(fx.a.qp, RMEM_ASYNC_QP_FATAL);
	rmem_cq_async_event(fx.a.cq, RMEM_ASYNC_CQ_ERR);
	TEST_OK(rmem_srq_create(fx.a.pd, &conf, &srq));
	rmem_srq_async_event(srq, RMEM_ASYNC_SRQ_LIMIT_REACHED);
	TEST_OK(rmem_srq_destroy(srq));
}

/* The device is not kept by them, and a channel with such events is destroyed. */
TEST(async_channel, events_of_the_device_reach_each_of_its_channels)
{
	struct rmem_async_channel *channels[2];
	struct rmem_async_event event;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		channels[i] = fx_async_channel(fx.a.dev);
	}
	rmem_dev_async_event(fx.a.dev, RMEM_ASYNC_PORT_ERR, 1);
	rmem_dev_async_event(fx.a.dev, RMEM_ASYNC_DEVICE_FATAL, 0);
	for (i = 0; i < 2; i++) {
		TEST_OK(rmem_async_channel_get_event(channels[i], &event));
		TEST_EQ(event.type, RMEM_ASYNC_DEVICE_FATAL);
		TEST_EQ(event.port_num, 0);
		TEST_ASSERT(event.dev == fx.a.dev && event.context == NULL);
		TEST_OK(rmem_async_event_ack(&event));
	}
	TEST_OK(rmem_async_channel_get_event(channels[0], &event));
	TEST_EQ(event.type, RMEM_ASYNC_PORT_ERR);
	TEST_EQ(event.port_num, 1);
	TEST_ASSERT(!fx_is_readable(channels[0]->fd, 0));
	TEST_OK(fx_release(channels[1]));
}

/* The last state is returned last, for any values of the types. */
TEST(async_channel, states_of_the_port_are_returned_in_order)
{
	static const uint32_t types[] = {
			RMEM_ASYNC_PORT_ERR, RMEM_ASYNC_PORT_ACTIVE, RMEM_ASYNC_PORT_ERR};
	struct rmem_async_channel *channel = fx_async_channel(fx.a.dev);
	struct rmem_async_event event;
	unsigned int i, j;

	for (i = 0; i < 2; i++) {
		for (j = i; j < i + 2; j++)
			rmem_dev_async_event(fx.a.dev, types[j], 1);
		for (j = i; j < i + 2; j++) {
			TEST_OK(rmem_async_channel_get_event(channel, &event));
			TEST_EQ(event.type, types[j]);
		}
	}
}

TEST(async_channel, limit_above_receives_is_reported_after_each_arming)
{
	struct rmem_srq_attr attr = {.max_wr = 64, .srq_limit = 2};
	struct rmem_async_channel *channel = fx_async_channel(fx.a.dev);
	struct rmem_srq *srq = srq_of(channel, NULL);
	unsigned int i;

	TEST_ASSERT(srq != NULL);
	for (i = 0; i < 3; i++) {
		TEST_OK(rmem_srq_modify(
				srq, &attr, RMEM_SRQ_LIMIT | (i == 1 ? RMEM_SRQ_MAX_WR : 0)));
		fx_expect_async(channel, RMEM_ASYNC_SRQ_LIMIT_REACHED, srq);
		TEST_ASSERT(!fx_is_readable(channel->fd, 0));
	}
	/* A resize alone generates none. */
	TEST_OK(rmem_srq_modify(srq, &attr, RMEM_SRQ_MAX_WR));
	TEST_ASSERT(!fx_is_readable(channel->fd, 0));
}

struct waiter {
	struct rmem_async_channel *channel;
	pthread_t thread;
	uint32_t tid; /* atomic */
	uint32_t is_done;
	int result;
};

static void *
wait_for_event(void *arg)
{
	struct waiter *waiter = arg;
	struct rmem_async_event event;

	__atomic_store_n(&waiter->tid, (uint32_t)gettid(), __ATOMIC_RELEASE);
	waiter->result = rmem_async_channel_get_event(waiter->channel, &event);
	__atomic_store_n(&waiter->is_done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void
on_signal(int sig)
{
	RTE_SET_USED(sig);
}

TEST(async_channel, signal_interrupts_the_wait)
{
	struct waiter waiter = {.channel = fx_async_channel(fx.a.dev)};
	struct sigaction action = {.sa_handler = on_signal}, old;

	TEST_ASSERT(waiter.channel != NULL);
	TEST_OK(sigaction(SIGUSR1, &action, &old));
	TEST_OK(pthread_create(&waiter.thread, NULL, wait_for_event, &waiter));
	/* A signal that precedes the wait does not end it. */
	while (__atomic_load_n(&waiter.is_done, __ATOMIC_ACQUIRE) == 0) {
		if (__atomic_load_n(&waiter.tid, __ATOMIC_ACQUIRE) != 0)
			pthread_kill(waiter.thread, SIGUSR1);
		sched_yield();
	}
	TEST_OK(pthread_join(waiter.thread, NULL));
	TEST_OK(sigaction(SIGUSR1, &old, NULL));
	TEST_ERR(waiter.result, EINTR);
}

#define NB_WAITERS 3

/* Whether the thread sleeps: after it has set tid, that is in poll(). */
static bool
sleeps(const struct waiter *waiter)
{
	uint32_t tid = __atomic_load_n(&waiter->tid, __ATOMIC_ACQUIRE);
	char path[64], state = '\0';
	FILE *f;

	if (tid == 0)
		return false;
	snprintf(path, sizeof(path), "/proc/self/task/%u/stat", tid);
	f = fopen(path, "r");
	if (f == NULL)
		return false;
	if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = '\0';
	fclose(f);
	return state == 'S';
}

TEST(async_channel, destruction_ends_the_waits)
{
	struct rmem_async_channel *channel = fx_async_channel(fx.a.dev);
	struct waiter waiters[NB_WAITERS] = {0};
	unsigned int i;

	for (i = 0; i < NB_WAITERS; i++) {
		waiters[i].channel = channel;
		TEST_OK(pthread_create(&waiters[i].thread, NULL, wait_for_event, &waiters[i]));
		while (!sleeps(&waiters[i]))
			sched_yield();
	}
	TEST_OK(fx_release(channel));
	for (i = 0; i < NB_WAITERS; i++) {
		TEST_OK(pthread_join(waiters[i].thread, NULL));
		TEST_ERR(waiters[i].result, ENODEV);
	}
}

/* Threads held in a signal handler, in their read of the eventfd, until they are released. */
static struct {
	uint32_t nb_held;      /* atomic */
	uint32_t released_tid; /* atomic */
} hold;

/* Whether the library waits in read(), and a handler with SA_RESTART runs within it. */
static bool
handler_runs_in_read(int fd)
{
#ifdef __SANITIZE_THREAD__
	RTE_SET_USED(fd);
	return false; /* the sanitizer runs it after the read */
#else
	uint64_t value;
	const struct iovec iov = {&value, sizeof(value)};

	return preadv2(fd, &iov, 1, -1, RWF_NOWAIT) < 0 && errno == EAGAIN;
#endif
}

static void
hold_thread(int sig)
{
	on_signal(sig);
	__atomic_fetch_add(&hold.nb_held, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&hold.released_tid, __ATOMIC_ACQUIRE) != (uint32_t)gettid())
		sched_yield();
}

static void *
destroy_channel(void *arg)
{
	struct waiter *waiter = arg;

	__atomic_store_n(&waiter->tid, (uint32_t)gettid(), __ATOMIC_RELEASE);
	waiter->result = fx_release(waiter->channel);
	return NULL;
}

/* Start waiters, and hold each when it waits. */
static void
hold_waiters(struct waiter *waiters, unsigned int nb)
{
	unsigned int i;

	memset(&hold, 0, sizeof(hold));
	for (i = 0; i < nb; i++) {
		TEST_OK(pthread_create(&waiters[i].thread, NULL, wait_for_event, &waiters[i]));
		while (!sleeps(&waiters[i]))
			sched_yield();
		TEST_OK(pthread_kill(waiters[i].thread, SIGUSR1));
		while (__atomic_load_n(&hold.nb_held, __ATOMIC_ACQUIRE) != i + 1)
			sched_yield();
	}
}

/* Let a waiter continue, to its end. */
static int
release_waiter(const struct waiter *waiter)
{
	__atomic_store_n(&hold.released_tid, waiter->tid, __ATOMIC_RELEASE);
	return pthread_join(waiter->thread, NULL);
}

/* The first waiter returns the only event, which must not make the others wait again. */
TEST(async_channel, destruction_ends_the_waits_after_an_event)
{
	struct rmem_async_channel *channel = fx_async_channel(fx.a.dev);
	struct waiter waiters[2] = {{.channel = channel}, {.channel = channel}};
	struct waiter destroyer = {.channel = channel};
	struct sigaction action = {.sa_handler = hold_thread, .sa_flags = SA_RESTART}, old;
	bool is_readable;

	if (!handler_runs_in_read(channel->fd)) {
		TEST_OK(fx_release(channel));
		test_stop(TEST_SKIPPED);
	}
	TEST_OK(sigaction(SIGUSR1, &action, &old));
	hold_waiters(waiters, 2);
	rmem_dev_async_event(fx.a.dev, RMEM_ASYNC_PORT_ERR, 1);
	TEST_OK(pthread_create(&destroyer.thread, NULL, destroy_channel, &destroyer));
	while (!sleeps(&destroyer))
		sched_yield();
	TEST_OK(release_waiter(&waiters[0]));
	is_readable = fx_is_readable(channel->fd, 0);
	TEST_OK(eventfd_write(channel->fd, 1)); /* so that a failure ends */
	TEST_OK(release_waiter(&waiters[1]));
	TEST_OK(pthread_join(destroyer.thread, NULL));
	TEST_OK(sigaction(SIGUSR1, &old, NULL));
	TEST_OK(waiters[0].result);
	TEST_ASSERT(is_readable);
	TEST_ERR(waiters[1].result, ENODEV);
	TEST_OK(destroyer.result);
}

#define NB_OBJS   4
#define NB_ROUNDS 5000u

static struct {
	struct rmem_async_channel *channel;
	struct rmem_srq *srq[NB_OBJS];
	uint32_t generated[NB_OBJS]; /* number of the last event; atomic */
	uint32_t seen[NB_OBJS];      /* last number found after an event; atomic */
	uint32_t is_done;
	uint32_t has_failed;
} race;

/* Stores the largest value. */
static void
raise_to(uint32_t *to, uint32_t value)
{
	uint32_t old = __atomic_load_n(to, __ATOMIC_RELAXED);

	while (old < value &&
			!__atomic_compare_exchange_n(
					to, &old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void *
generate(void *arg)
{
	unsigned int i = *(unsigned int *)arg;
	uint32_t n;

	for (n = 1; n <= NB_ROUNDS; n++) {
		__atomic_store_n(&race.generated[i], n, __ATOMIC_RELAXED);
		rmem_srq_async_event(race.srq[i], RMEM_ASYNC_SRQ_LIMIT_REACHED);
	}
	return NULL;
}

static void
take(const struct rmem_async_event *event)
{
	unsigned int i = (unsigned int)((struct rmem_srq **)event->context - race.srq);

	if (i >= NB_OBJS || event->srq != race.srq[i])
		__atomic_store_n(&race.has_failed, 1, __ATOMIC_RELAXED);
	else
		raise_to(&race.seen[i], __atomic_load_n(&race.generated[i], __ATOMIC_RELAXED));
	if (rmem_async_event_ack(event) != 0)
		__atomic_store_n(&race.has_failed, 1, __ATOMIC_RELAXED);
}

static void *
read_events(void *arg)
{
	struct pollfd fd = {.fd = race.channel->fd, .events = POLLIN};
	struct rmem_async_event event;
	bool is_done;
	int ret;

	do {
		is_done = __atomic_load_n(&race.is_done, __ATOMIC_ACQUIRE) != 0;
		ret = rmem_async_channel_get_event(race.channel, &event);
		if (ret == 0)
			take(&event);
		else if (ret == -EAGAIN)
			poll(&fd, 1, 1);
		else
			__atomic_store_n(&race.has_failed, 1, __ATOMIC_RELAXED);
	} while (ret == 0 || !is_done);
	return arg;
}

/* The last event of each object is returned after it was generated. */
TEST(async_channel, no_event_is_lost_between_threads)
{
	unsigned int index[NB_OBJS], i;
	pthread_t producers[NB_OBJS], readers[2];

	memset(&race, 0, sizeof(race));
	race.channel = fx_async_channel(fx.a.dev);
	TEST_OK(fcntl(race.channel->fd, F_SETFL, O_NONBLOCK));
	for (i = 0; i < NB_OBJS; i++) {
		race.srq[i] = srq_of(race.channel, &race.srq[i]);
		TEST_ASSERT(race.srq[i] != NULL);
	}
	for (i = 0; i < RTE_DIM(readers); i++)
		TEST_OK(pthread_create(&readers[i], NULL, read_events, NULL));
	for (i = 0; i < NB_OBJS; i++) {
		index[i] = i;
		TEST_OK(pthread_create(&producers[i], NULL, generate, &index[i]));
	}
	for (i = 0; i < NB_OBJS; i++)
		TEST_OK(pthread_join(producers[i], NULL));
	__atomic_store_n(&race.is_done, 1, __ATOMIC_RELEASE);
	for (i = 0; i < RTE_DIM(readers); i++)
		TEST_OK(pthread_join(readers[i], NULL));
	TEST_EQ(race.has_failed, 0);
	for (i = 0; i < NB_OBJS; i++)
		TEST_EQ(race.seen[i], NB_ROUNDS);
	TEST_ASSERT(!fx_is_readable(race.channel->fd, 0));
}

/* Objects are destroyed while readers find their events. */
TEST(async_channel, destruction_of_an_object_races_with_its_events)
{
	pthread_t reader;
	unsigned int i;
	int ret;

	memset(&race, 0, sizeof(race));
	race.channel = fx_async_channel(fx.a.dev);
	TEST_OK(fcntl(race.channel->fd, F_SETFL, O_NONBLOCK));
	TEST_OK(pthread_create(&reader, NULL, read_events, NULL));
	for (i = 0; i < 500; i++) {
		const struct rmem_srq_conf conf = {.max_wr = 4,
				.async_channel = race.channel,
				.context = &race.srq[0]};

		TEST_OK(rmem_srq_create(fx.a.pd, &conf, &race.srq[0]));
		rmem_srq_async_event(race.srq[0], RMEM_ASYNC_SRQ_LIMIT_REACHED);
		while ((ret = rmem_srq_destroy(race.srq[0])) == -EBUSY)
			sched_yield();
		TEST_OK(ret);
	}
	__atomic_store_n(&race.is_done, 1, __ATOMIC_RELEASE);
	TEST_OK(pthread_join(reader, NULL));
	TEST_EQ(race.has_failed, 0);
	TEST_ASSERT(!fx_is_readable(race.channel->fd, 0));
}

TEST_SUITE(async_channel, fx_setup, fx_teardown);
