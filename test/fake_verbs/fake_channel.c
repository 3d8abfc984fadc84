/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The fakes of completion channels; see fake.h. */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fake.h"

#define FAKE_NB_EVENTS 16

/* Its descriptor counts the events. */
struct fake_channel {
	struct ibv_comp_channel ibv;
	struct fake_cq *events[FAKE_NB_EVENTS];
	unsigned int nb_events;
};

static pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;

struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *context)
{
	struct fake_channel *channel = fake_new("create_comp_channel", sizeof(*channel));

	if (channel == NULL)
		return NULL;
	channel->ibv.context = context;
	channel->ibv.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	return &channel->ibv;
}

int
ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	if (fake_keeps("destroy_comp_channel", channel))
		return errno;
	close(channel->fd);
	return fake_delete(channel);
}

static void
fake_count(int fd, bool is_more)
{
	uint64_t one = 1;
	ssize_t n = is_more ? write(fd, &one, sizeof(one)) : read(fd, &one, sizeof(one));

	if (n != sizeof(one))
		abort();
}

/* The first event, or the first one of a CQ. Under the lock. */
static struct fake_cq *
fake_unlist(struct fake_channel *channel, const struct fake_cq *cq)
{
	struct fake_cq **events = channel->events, *found;
	unsigned int i = 0;

	while (i < channel->nb_events && cq != NULL && events[i] != cq)
		i++;
	if (i == channel->nb_events)
		return NULL;
	found = events[i];
	channel->nb_events--;
	for (; i < channel->nb_events; i++)
		events[i] = events[i + 1];
	return found;
}

void
fake_notify(struct ibv_cq *ibv, bool is_solicited)
{
	struct fake_channel *channel = (struct fake_channel *)ibv->channel;
	struct fake_cq *cq = (struct fake_cq *)ibv;

	pthread_mutex_lock(&fake_lock);
	if (cq->armed == 2 || (cq->armed == 1 && is_solicited)) {
		cq->armed = 0;
		if (channel->nb_events == FAKE_NB_EVENTS)
			abort();
		channel->events[channel->nb_events++] = cq;
		fake_count(ibv->channel->fd, true);
	}
	pthread_mutex_unlock(&fake_lock);
}

void
fake_withdraw(struct fake_cq *cq)
{
	if (cq->ibv.channel == NULL)
		return;
	pthread_mutex_lock(&fake_lock);
	while (fake_unlist((struct fake_channel *)cq->ibv.channel, cq) != NULL)
		fake_count(cq->ibv.channel->fd, false);
	pthread_mutex_unlock(&fake_lock);
	while (__atomic_load_n(&cq->nb_reported, __ATOMIC_ACQUIRE) !=
			__atomic_load_n(&cq->nb_acked, __ATOMIC_ACQUIRE))
		sched_yield();
}

static int
fake_req_notify_cq(struct ibv_cq *ibv, int is_solicited_only)
{
	struct fake_cq *cq = (struct fake_cq *)ibv;

	if (fake_fails("req_notify_cq"))
		return errno;
	pthread_mutex_lock(&fake_lock);
	if (!is_solicited_only || cq->armed == 0)
		cq->armed = is_solicited_only ? 1 : 2;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int
ibv_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **context)
{
	struct fake_cq *found;
	uint64_t one;

	if (fake_fails("get_cq_event") || read(ibv->fd, &one, sizeof(one)) != sizeof(one))
		return -1;
	pthread_mutex_lock(&fake_lock);
	found = fake_unlist((struct fake_channel *)ibv, NULL);
	if (found == NULL) /* the descriptor counts them */
		abort();
	__atomic_add_fetch(&found->nb_reported, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&fake_lock);
	*cq = &found->ibv;
	*context = found->ibv.cq_context;
	if (fake.on_cq_event != NULL)
		fake.on_cq_event();
	return 0;
}

void
ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nb)
{
	__atomic_add_fetch(&((struct fake_cq *)cq)->nb_acked, nb, __ATOMIC_RELEASE);
}

void
fake_channel_ops(struct ibv_context *context)
{
	context->ops.req_notify_cq = fake_req_notify_cq;
}
