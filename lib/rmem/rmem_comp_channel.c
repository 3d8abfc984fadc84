/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Completion channels. A channel refers to its device; CQs refer to the channel.
 *
 * A driver has operations of its own, or calls rmem_cq_notify() for each completion of a CQ with a
 * channel. Then events are counted in the CQ (nb_unread), and a CQ with events is in the list of
 * its channel.
 *
 * Invariant: the eventfd is readable while the list has a CQ and no waiter is between its read and
 * restore(). Both change under events::lock. So an event never needs memory, and none is lost.
 *
 * While a CQ is being destroyed a reader may remove it from the list, with its events: if the
 * destruction is refused, it is listed again.
 *
 * An event that was returned holds a reference to its CQ until it is acknowledged.
 */

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "rmem_priv.h"

struct events {
	struct rmem_comp_channel channel;
	pthread_mutex_t lock; /* protects the list, nb_unread of its CQs, and the eventfd */
	uint32_t nb_waiting;  /* threads that may read the eventfd; under the lock */
	TAILQ_HEAD(cq_events_list, rmem_cq_events) cqs;
};

static struct events *
events_of(struct rmem_comp_channel *channel)
{
	return (struct events *)channel;
}

int
rmem_own_comp_channel_create(struct rmem_comp_channel *channel)
{
	return rmem_eventfd_open(&channel->obj, &channel->fd);
}

int
rmem_own_comp_channel_destroy(struct rmem_comp_channel *channel)
{
	close(channel->fd);
	return 0;
}

int
rmem_comp_channel_create(struct rmem_dev *dev, struct rmem_comp_channel **channel)
{
	RMEM_CALL(dev);
	struct rmem_comp_channel *new_channel;
	int ret;

	ret = rmem_obj_check(dev, RMEM_OBJ_DEV);
	if (ret == 0)
		ret = rmem_check_arg(channel, "channel pointer");
	if (ret != 0)
		return ret;
	if ((rmem_obj_info(&dev->obj)->capa & RMEM_DEV_CAPA_COMP_CHANNEL) == 0)
		return RMEM_FAIL(EOPNOTSUPP, "%s: no completion channels", dev->name);
	new_channel = rmem_obj_create(
			&dev->obj, RMEM_OBJ_COMP_CHANNEL, sizeof(struct events), &ret);
	if (new_channel == NULL)
		return ret;
	pthread_mutex_init(&events_of(new_channel)->lock, NULL);
	TAILQ_INIT(&events_of(new_channel)->cqs);
	ret = RMEM_OP(dev, comp_channel_create, new_channel);
	if (ret != 0) {
		rmem_obj_drop(&new_channel->obj, &dev->obj);
		return ret;
	}
	*channel = new_channel;
	return 0;
}

/* Under the lock. */
static void
list(struct events *events, struct rmem_cq_events *cq_events)
{
	if (TAILQ_EMPTY(&events->cqs))
		rmem_eventfd_set(events->channel.fd, true, false);
	TAILQ_INSERT_TAIL(&events->cqs, cq_events, entry);
	cq_events->is_listed = true;
}

/* Under the lock. */
static void
unlist(struct events *events, struct rmem_cq_events *cq_events)
{
	TAILQ_REMOVE(&events->cqs, cq_events, entry);
	cq_events->is_listed = false;
	if (TAILQ_EMPTY(&events->cqs))
		rmem_eventfd_set(events->channel.fd, false, events->nb_waiting != 0);
}

void
rmem_comp_channel_put(struct rmem_comp_channel *channel, struct rmem_cq_events *cq_events)
{
	struct events *events = events_of(channel);

	pthread_mutex_lock(&events->lock);
	cq_events->nb_unread++;
	if (!cq_events->is_listed)
		list(events, cq_events);
	pthread_mutex_unlock(&events->lock);
}

/* Under the lock, so that no reader finds the CQ dead after it was listed. */
void
rmem_comp_channel_revive(struct rmem_comp_channel *channel, struct rmem_cq_events *cq_events)
{
	struct events *events = events_of(channel);

	pthread_mutex_lock(&events->lock);
	rmem_async_channel_revive(cq_events->async, &cq_events->cq->obj);
	if (cq_events->nb_unread != 0 && !cq_events->is_listed)
		list(events, cq_events);
	pthread_mutex_unlock(&events->lock);
}

void
rmem_comp_channel_remove(struct rmem_comp_channel *channel, struct rmem_cq_events *cq_events)
{
	struct events *events = events_of(channel);

	pthread_mutex_lock(&events->lock);
	if (cq_events->is_listed)
		unlist(events, cq_events);
	pthread_mutex_unlock(&events->lock);
}

/* Return the CQ of the oldest event, with a reference; NULL: the caller waits, then restore(). */
static struct rmem_cq *
next(struct events *events)
{
	struct rmem_cq_events *cq_events;
	struct rmem_cq *cq = NULL;

	pthread_mutex_lock(&events->lock);
	while (cq == NULL && (cq_events = TAILQ_FIRST(&events->cqs)) != NULL) {
		if (rmem_obj_hold(&cq_events->cq->obj))
			cq = cq_events->cq;
		if (cq == NULL || --cq_events->nb_unread == 0) {
			unlist(events, cq_events);
		} else {
			TAILQ_REMOVE(&events->cqs, cq_events, entry);
			TAILQ_INSERT_TAIL(&events->cqs, cq_events, entry);
		}
	}
	events->nb_waiting += cq == NULL;
	pthread_mutex_unlock(&events->lock);
	return cq;
}

static void
restore(void *arg)
{
	struct events *events = arg;

	pthread_mutex_lock(&events->lock);
	events->nb_waiting--;
	if (!TAILQ_EMPTY(&events->cqs))
		rmem_eventfd_set(events->channel.fd, true, false);
	pthread_mutex_unlock(&events->lock);
}

int
rmem_own_comp_channel_get_event(struct rmem_comp_channel *channel, struct rmem_cq **cq)
{
	int ret = 0;

	while (ret == 0 && (*cq = next(events_of(channel))) == NULL)
		ret = rmem_eventfd_wait(channel->fd, restore, events_of(channel));
	return ret;
}

int
rmem_comp_channel_get_event(struct rmem_comp_channel *channel, struct rmem_cq **cq, void **context)
{
	RMEM_CALL(channel);
	struct rmem_cq *found;
	int ret;

	ret = rmem_obj_check(channel, RMEM_OBJ_COMP_CHANNEL);
	if (ret == 0)
		ret = rmem_check_arg(cq, "CQ pointer");
	if (ret != 0)
		return ret;
	/* No event is not an error: neither logged nor traced. */
	ret = rmem_obj_driver(&channel->obj)->ops.comp_channel_get_event(channel, &found);
	if (ret != 0)
		return ret;
	__atomic_fetch_add(&found->events->nb_unacked, 1, __ATOMIC_RELAXED);
	*cq = found;
	if (context != NULL)
		*context = found->context;
	return 0;
}

int
rmem_comp_channel_destroy(struct rmem_comp_channel *channel)
{
	RMEM_CALL(channel);
	int ret;

	if (channel == NULL)
		return 0;
	ret = rmem_obj_check(channel, RMEM_OBJ_COMP_CHANNEL);
	if (ret == 0)
		ret = rmem_obj_kill(&channel->obj);
	if (ret != 0)
		return ret;
	ret = RMEM_OP(channel, comp_channel_destroy, channel);
	return rmem_obj_end(&channel->obj, &rmem_obj_dev(&channel->obj)->obj, ret);
}
