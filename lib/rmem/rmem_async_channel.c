/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Channels of asynchronous events. A channel refers to its device; QPs, CQs and SRQs refer to the
 * channel.
 *
 * Each object that is bound to a channel has a struct rmem_async_events, and each channel has one
 * for its device: a bit for each type of event that has occurred and was not returned. The driver
 * sets bits, a reader clears them. With a bit set it is in the list of its channel, in the order in
 * which the first bit was set. While the object is being destroyed a reader may remove it from the
 * list, with its bits: if the destruction is refused, it is listed again.
 *
 * Invariants, under the lock of the channel:
 * - the eventfd is readable while the list is not empty, or the channel is being destroyed, and no
 *   waiter is between its read and restore();
 * - an object is in the list while it has a bit set, unless it is being destroyed.
 * So an event needs no memory and is not lost. The lock is the innermost one: drivers generate
 * events under locks of their queues.
 *
 * An event that was returned holds a reference to its object until it is acknowledged.
 */

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <rte_malloc.h>

#include "rmem_priv.h"

#define RMEM_ASYNC_NB (RMEM_ASYNC_GID_CHANGE + 1)

struct channel {
	struct rmem_async_channel channel;
	LIST_ENTRY(channel) entry;    /* in the list of its device; under channels_lock */
	pthread_mutex_t lock;         /* protects all below, and what the list refers to */
	pthread_cond_t has_left;      /* nb_waiters became 0 */
	uint32_t nb_waiters;          /* threads in rmem_async_channel_get_event() */
	bool is_closing;              /* they return */
	struct rmem_async_events own; /* events of the device */
	TAILQ_HEAD(async_list, rmem_async_events) list;
};

static const struct {
	const char *name;
	uint32_t obj; /* enum rmem_obj_type; 0: no such event */
} types[RMEM_ASYNC_NB] = {
		[RMEM_ASYNC_CQ_ERR] = {"CQ_ERR", RMEM_OBJ_CQ},
		[RMEM_ASYNC_QP_FATAL] = {"QP_FATAL", RMEM_OBJ_QP},
		[RMEM_ASYNC_QP_REQ_ERR] = {"QP_REQ_ERR", RMEM_OBJ_QP},
		[RMEM_ASYNC_QP_ACCESS_ERR] = {"QP_ACCESS_ERR", RMEM_OBJ_QP},
		[RMEM_ASYNC_COMM_EST] = {"COMM_EST", RMEM_OBJ_QP},
		[RMEM_ASYNC_SQ_DRAINED] = {"SQ_DRAINED", RMEM_OBJ_QP},
		[RMEM_ASYNC_DEVICE_FATAL] = {"DEVICE_FATAL", RMEM_OBJ_DEV},
		[RMEM_ASYNC_PORT_ACTIVE] = {"PORT_ACTIVE", RMEM_OBJ_DEV},
		[RMEM_ASYNC_PORT_ERR] = {"PORT_ERR", RMEM_OBJ_DEV},
		[RMEM_ASYNC_LID_CHANGE] = {"LID_CHANGE", RMEM_OBJ_DEV},
		[RMEM_ASYNC_PKEY_CHANGE] = {"PKEY_CHANGE", RMEM_OBJ_DEV},
		[RMEM_ASYNC_SM_CHANGE] = {"SM_CHANGE", RMEM_OBJ_DEV},
		[RMEM_ASYNC_SRQ_ERR] = {"SRQ_ERR", RMEM_OBJ_SRQ},
		[RMEM_ASYNC_SRQ_LIMIT_REACHED] = {"SRQ_LIMIT_REACHED", RMEM_OBJ_SRQ},
		[RMEM_ASYNC_QP_LAST_WQE_REACHED] = {"QP_LAST_WQE_REACHED", RMEM_OBJ_QP},
		[RMEM_ASYNC_CLIENT_REREGISTER] = {"CLIENT_REREGISTER", RMEM_OBJ_DEV},
		[RMEM_ASYNC_GID_CHANGE] = {"GID_CHANGE", RMEM_OBJ_DEV},
};

/* Protects rmem_dev_slot::async_channels. */
static pthread_mutex_t channels_lock = PTHREAD_MUTEX_INITIALIZER;

static struct channel *
channel_of(struct rmem_async_channel *channel)
{
	return (struct channel *)channel;
}

const char *
rmem_async_event_type_str(uint32_t type)
{
	return type < RMEM_ASYNC_NB && types[type].name != NULL ? types[type].name : "unknown";
}

int
rmem_async_channel_create(struct rmem_dev *dev, struct rmem_async_channel **channel)
{
	RMEM_CALL(dev);
	struct channel *new_channel;
	int ret;

	ret = rmem_obj_check(dev, RMEM_OBJ_DEV);
	if (ret == 0)
		ret = rmem_check_arg(channel, "channel pointer");
	if (ret != 0)
		return ret;
	if ((rmem_obj_info(&dev->obj)->capa & RMEM_DEV_CAPA_ASYNC_EVENT) == 0)
		return RMEM_FAIL(EOPNOTSUPP, "%s: no asynchronous events", dev->name);
	new_channel = rmem_obj_create(
			&dev->obj, RMEM_OBJ_ASYNC_CHANNEL, sizeof(*new_channel), &ret);
	if (new_channel == NULL)
		return ret;
	ret = rmem_eventfd_open(&dev->obj, &new_channel->channel.fd);
	if (ret != 0) {
		rmem_obj_drop(&new_channel->channel.obj, &dev->obj);
		return ret;
	}
	pthread_mutex_init(&new_channel->lock, NULL);
	pthread_cond_init(&new_channel->has_left, NULL);
	TAILQ_INIT(&new_channel->list);
	new_channel->own.channel = &new_channel->channel;
	new_channel->own.obj = &dev->obj;
	pthread_mutex_lock(&channels_lock);
	LIST_INSERT_HEAD(&rmem_devs[dev->obj.dev_id].async_channels, new_channel, entry);
	pthread_mutex_unlock(&channels_lock);
	*channel = &new_channel->channel;
	return 0;
}

int
rmem_async_channel_check(struct rmem_async_channel *channel, const struct rmem_dev *dev)
{
	if (channel == NULL)
		return 0;
	return rmem_obj_check_of(channel, RMEM_OBJ_ASYNC_CHANNEL, &dev->obj);
}

int
rmem_async_channel_bind(struct rmem_async_channel *channel, struct rmem_obj *obj, void *context,
		struct rmem_async_events **events)
{
	struct rmem_async_events *bound;
	int ret;

	*events = NULL;
	if (channel == NULL)
		return 0;
	ret = rmem_obj_get(&channel->obj);
	if (ret != 0)
		return ret;
	bound = rte_zmalloc("rmem_async_events", sizeof(*bound), RTE_CACHE_LINE_SIZE);
	if (bound == NULL) {
		rmem_obj_unhold(&channel->obj);
		return RMEM_FAIL(ENOMEM, "%s: no memory for asynchronous events",
				rmem_obj_dev(&channel->obj)->name);
	}
	bound->channel = channel;
	bound->obj = obj;
	bound->context = context;
	*events = bound;
	return 0;
}

/* Under the lock. */
static void
list(struct channel *channel, struct rmem_async_events *events)
{
	if (TAILQ_EMPTY(&channel->list))
		rmem_eventfd_set(channel->channel.fd, true, false);
	TAILQ_INSERT_TAIL(&channel->list, events, entry);
	events->is_listed = true;
}

/* Under the lock. */
static void
unlist(struct channel *channel, struct rmem_async_events *events)
{
	TAILQ_REMOVE(&channel->list, events, entry);
	events->is_listed = false;
	if (TAILQ_EMPTY(&channel->list) && !channel->is_closing)
		rmem_eventfd_set(channel->channel.fd, false, channel->nb_waiters != 0);
}

/* Under the lock, so that no reader finds the object dead after it was listed. */
void
rmem_async_channel_revive(struct rmem_async_events *events, struct rmem_obj *obj)
{
	struct channel *channel;

	if (events == NULL) {
		rmem_obj_revive(obj);
		return;
	}
	channel = channel_of(events->channel);
	pthread_mutex_lock(&channel->lock);
	rmem_obj_revive(obj);
	if (events->pending != 0 && !events->is_listed)
		list(channel, events);
	pthread_mutex_unlock(&channel->lock);
}

void
rmem_async_channel_unbind(struct rmem_async_events *events)
{
	struct channel *channel;

	if (events == NULL)
		return;
	channel = channel_of(events->channel);
	pthread_mutex_lock(&channel->lock);
	if (events->is_listed)
		unlist(channel, events);
	pthread_mutex_unlock(&channel->lock);
	rte_free(events);
	rmem_obj_unhold(&channel->channel.obj);
}

void
rmem_async_channel_put(struct rmem_async_events *events, uint32_t type, uint32_t port_num)
{
	struct channel *channel;

	if (events == NULL)
		return;
	channel = channel_of(events->channel);
	pthread_mutex_lock(&channel->lock);
	if (port_num != 0)
		events->port_num = port_num;
	if (!events->is_listed)
		list(channel, events);
	events->pending |= UINT32_C(1) << type;
	pthread_mutex_unlock(&channel->lock);
}

void
rmem_cq_async_event(struct rmem_cq *cq, uint32_t type)
{
	if (cq->events != NULL)
		rmem_async_channel_put(cq->events->async, type, 0);
}

void
rmem_qp_async_event(struct rmem_qp *qp, uint32_t type)
{
	rmem_async_channel_put(((struct rmem_qp_drv *)qp)->async, type, 0);
}

void
rmem_srq_async_event(struct rmem_srq *srq, uint32_t type)
{
	rmem_async_channel_put(srq->async, type, 0);
}

void
rmem_dev_async_event(struct rmem_dev *dev, uint32_t type, uint32_t port_num)
{
	struct channel *channel;

	pthread_mutex_lock(&channels_lock);
	LIST_FOREACH(channel, &rmem_devs[dev->obj.dev_id].async_channels, entry)
		rmem_async_channel_put(&channel->own, type, port_num);
	pthread_mutex_unlock(&channels_lock);
}

/* Fill an event of the first object of the list. Under the lock. */
static void
take(struct channel *channel, struct rmem_async_events *events, struct rmem_async_event *event)
{
	uint32_t type = (uint32_t)__builtin_ctz(events->pending);

	memset(event, 0, sizeof(*event));
	event->type = type;
	event->context = events->context;
	event->dev = (struct rmem_dev *)events->obj;
	if (types[type].obj == RMEM_OBJ_DEV && type != RMEM_ASYNC_DEVICE_FATAL)
		event->port_num = events->port_num;
	__atomic_fetch_add(&events->nb_unacked, 1, __ATOMIC_RELAXED);
	events->pending &= events->pending - 1;
	if (events->pending == 0) {
		unlist(channel, events);
	} else {
		TAILQ_REMOVE(&channel->list, events, entry);
		TAILQ_INSERT_TAIL(&channel->list, events, entry);
	}
}

/* Return the oldest event, with a reference to its object; false: there is none. */
static bool
next(struct channel *channel, struct rmem_async_event *event)
{
	struct rmem_async_events *events;
	bool is_found = false;

	pthread_mutex_lock(&channel->lock);
	while (!is_found && (events = TAILQ_FIRST(&channel->list)) != NULL) {
		/* The channel refers to the device. */
		is_found = events == &channel->own || rmem_obj_hold(events->obj);
		if (is_found)
			take(channel, events, event);
		else
			unlist(channel, events);
	}
	pthread_mutex_unlock(&channel->lock);
	return is_found;
}

static void
restore(void *arg)
{
	struct channel *channel = arg;

	pthread_mutex_lock(&channel->lock);
	if (!TAILQ_EMPTY(&channel->list) || channel->is_closing)
		rmem_eventfd_set(channel->channel.fd, true, false);
	pthread_mutex_unlock(&channel->lock);
}

static int
wait_event(struct channel *channel, struct rmem_async_event *event)
{
	int ret = 0;

	while (ret == 0 && !next(channel, event)) {
		if (__atomic_load_n(&channel->is_closing, __ATOMIC_RELAXED))
			return -ENODEV;
		ret = rmem_eventfd_wait(channel->channel.fd, restore, channel);
	}
	return ret;
}

/* The thread of a waiter returns, or is cancelled. */
static void
leave(void *arg)
{
	struct channel *channel = arg;

	pthread_mutex_lock(&channel->lock);
	if (--channel->nb_waiters == 0 && channel->is_closing)
		pthread_cond_signal(&channel->has_left);
	pthread_mutex_unlock(&channel->lock);
}

int
rmem_async_channel_get_event(struct rmem_async_channel *base, struct rmem_async_event *event)
{
	RMEM_CALL(base);
	struct channel *channel = channel_of(base);
	struct rmem_async_event found;
	int ret;

	ret = rmem_obj_check(base, RMEM_OBJ_ASYNC_CHANNEL);
	if (ret == 0)
		ret = rmem_check_arg(event, "event");
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&channel->lock);
	channel->nb_waiters++;
	pthread_mutex_unlock(&channel->lock);
	pthread_cleanup_push(leave, channel);
	/* No event is not an error: neither logged nor traced. */
	ret = wait_event(channel, &found);
	pthread_cleanup_pop(1);
	if (ret == 0)
		*event = found;
	return ret;
}

/* The events of an object that one of the types is of; NULL if it is not bound to a channel. */
static struct rmem_async_events *
events_of(const struct rmem_async_event *event)
{
	switch (types[event->type].obj) {
	case RMEM_OBJ_CQ:
		return event->cq->events != NULL ? event->cq->events->async : NULL;
	case RMEM_OBJ_QP:
		return ((struct rmem_qp_drv *)event->qp)->async;
	default:
		return event->srq->async;
	}
}

int
rmem_async_event_ack(const struct rmem_async_event *event)
{
	struct rmem_async_events *events;
	uint32_t nb;
	int ret;

	ret = rmem_check_arg(event, "event");
	if (ret != 0)
		return ret;
	if (event->type >= RMEM_ASYNC_NB || types[event->type].obj == 0)
		return RMEM_FAIL(EINVAL, "unknown type of asynchronous events: %u", event->type);
	ret = rmem_obj_check(event->dev, types[event->type].obj);
	if (ret != 0 || types[event->type].obj == RMEM_OBJ_DEV)
		return ret;
	events = events_of(event);
	nb = events != NULL ? __atomic_load_n(&events->nb_unacked, __ATOMIC_RELAXED) : 0;
	do {
		if (nb == 0)
			return RMEM_FAIL(EINVAL, "%p: all events are acknowledged",
					(const void *)event->dev);
	} while (!__atomic_compare_exchange_n(&events->nb_unacked, &nb, nb - 1, false,
			__ATOMIC_RELAXED, __ATOMIC_RELAXED));
	rmem_obj_unhold(events->obj);
	return 0;
}

/* Wake the waiters and wait until they have left. */
static void
close_channel(struct channel *channel)
{
	pthread_mutex_lock(&channel->lock);
	__atomic_store_n(&channel->is_closing, true, __ATOMIC_RELAXED);
	rmem_eventfd_set(channel->channel.fd, true, false);
	while (channel->nb_waiters != 0)
		pthread_cond_wait(&channel->has_left, &channel->lock);
	pthread_mutex_unlock(&channel->lock);
	close(channel->channel.fd);
	pthread_cond_destroy(&channel->has_left);
	pthread_mutex_destroy(&channel->lock);
}

int
rmem_async_channel_destroy(struct rmem_async_channel *base)
{
	RMEM_CALL(base);
	int ret;

	if (base == NULL)
		return 0;
	ret = rmem_obj_check(base, RMEM_OBJ_ASYNC_CHANNEL);
	if (ret == 0)
		ret = rmem_obj_kill(&base->obj);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&channels_lock);
	LIST_REMOVE(channel_of(base), entry);
	pthread_mutex_unlock(&channels_lock);
	close_channel(channel_of(base));
	rmem_obj_drop(&base->obj, &rmem_obj_dev(&base->obj)->obj);
	return 0;
}
