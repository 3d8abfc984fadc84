/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Channels of asynchronous events. A channel refers to its device; QPs, CQs and SRQs refer to the
 * channel.
 *
 * Each object that is bound to a channel has a struct rmem_async_events, and each channel has one
 * for its device. It has a bit for each type of event that has occurred and was not returned. The
 * driver sets bits and a reader clears them, both under rmem_eventfd::lock; rmem_eventfd.c lists
 * the objects with a bit set.
 *
 * An event that was returned holds a reference to its object until it is acknowledged.
 */

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include <rte_malloc.h>

#include "rmem_priv.h"

#define RMEM_ASYNC_NB (RMEM_ASYNC_GID_CHANGE + 1)
#define BIT(type)     (UINT32_C(1) << RMEM_ASYNC_##type)

struct channel {
	struct rmem_async_channel channel;
	LIST_ENTRY(channel) entry; /* in the list of its device; under channels_lock */
	struct rmem_eventfd efd;
	struct rmem_async_events own; /* events of the device; base.obj is NULL */
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

/* Held while a QP generates an event, or is detached. */
static pthread_mutex_t qps_lock = PTHREAD_MUTEX_INITIALIZER;

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
	rmem_eventfd_init(&new_channel->efd);
	ret = rmem_eventfd_open(&new_channel->efd, &dev->obj);
	if (ret != 0) {
		rmem_obj_drop(&new_channel->channel.obj, &dev->obj);
		return ret;
	}
	new_channel->channel.fd = new_channel->efd.fd;
	new_channel->own.channel = &new_channel->channel;
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
	bound->base.obj = obj;
	bound->context = context;
	*events = bound;
	return 0;
}

/* Revive and list the object under one lock, so that no reader finds it listed but dead. */
void
rmem_async_channel_revive(struct rmem_async_events *events, struct rmem_obj *obj)
{
	struct rmem_eventfd *efd;

	if (events == NULL) {
		rmem_obj_revive(obj);
		return;
	}
	efd = &channel_of(events->channel)->efd;
	pthread_mutex_lock(&efd->lock);
	rmem_obj_revive(obj);
	rmem_eventfd_list(efd, &events->base);
	pthread_mutex_unlock(&efd->lock);
}

void
rmem_async_channel_unbind(struct rmem_async_events *events)
{
	struct rmem_async_channel *channel;

	if (events == NULL)
		return;
	channel = events->channel;
	rmem_eventfd_remove(&channel_of(channel)->efd, &events->base);
	rte_free(events);
	rmem_obj_unhold(&channel->obj);
}

void
rmem_async_channel_detach(struct rmem_async_events **events)
{
	struct rmem_async_events *detached;

	pthread_mutex_lock(&qps_lock);
	detached = *events;
	*events = NULL;
	pthread_mutex_unlock(&qps_lock);
	rmem_async_channel_unbind(detached);
}

/* Add an event; NULL has no effect. */
static void
channel_put(struct rmem_async_events *events, uint32_t type, uint32_t port_num)
{
	struct rmem_eventfd *efd;

	if (events == NULL)
		return;
	efd = &channel_of(events->channel)->efd;
	pthread_mutex_lock(&efd->lock);
	if (port_num != 0)
		events->port_num = port_num;
	if (type == RMEM_ASYNC_PORT_ACTIVE || type == RMEM_ASYNC_PORT_ERR)
		events->is_port_active = type == RMEM_ASYNC_PORT_ACTIVE;
	events->base.pending |= UINT32_C(1) << type;
	rmem_eventfd_list(efd, &events->base);
	pthread_mutex_unlock(&efd->lock);
}

void
rmem_cq_async_event(struct rmem_cq *cq, uint32_t type)
{
	if (cq->events != NULL)
		channel_put(cq->events->async, type, 0);
}

void
rmem_qp_async_event(struct rmem_qp *qp, uint32_t type)
{
	struct rmem_qp_drv *drv = (struct rmem_qp_drv *)qp;

	pthread_mutex_lock(&qps_lock);
	channel_put(drv->async, type, 0);
	pthread_mutex_unlock(&qps_lock);
	if (__atomic_load_n(&drv->has_openers, __ATOMIC_ACQUIRE) != 0)
		rmem_obj_driver(&qp->obj)->ops.xrc->share->qp_event(qp, type);
}

void
rmem_srq_async_event(struct rmem_srq *srq, uint32_t type)
{
	channel_put(srq->async, type, 0);
}

void
rmem_dev_async_event(struct rmem_dev *dev, uint32_t type, uint32_t port_num)
{
	void (*failed)(struct rmem_dev * dev) = NULL;
	struct channel *channel;

	if (type == RMEM_ASYNC_DEVICE_FATAL) {
		rmem_dev_fail(dev);
		failed = __atomic_load_n(&rmem_dev_drv(dev)->failed, __ATOMIC_ACQUIRE);
	}
	pthread_mutex_lock(&channels_lock);
	LIST_FOREACH(channel, &rmem_devs[dev->obj.dev_id].async_channels, entry)
		channel_put(&channel->own, type, port_num);
	pthread_mutex_unlock(&channels_lock);
	if (failed != NULL)
		failed(dev);
}

/*
 * Get the pending event with the lowest type. If both states of a port are pending, the state that
 * was reported last is returned last.
 */
static uint32_t
next_type(const struct rmem_async_events *events)
{
	const uint32_t ports = BIT(PORT_ACTIVE) | BIT(PORT_ERR);
	uint32_t type = (uint32_t)__builtin_ctz(events->base.pending);

	if (type == RMEM_ASYNC_PORT_ACTIVE && events->is_port_active &&
			(events->base.pending & ports) == ports)
		return RMEM_ASYNC_PORT_ERR;
	return type;
}

static void
take(struct rmem_eventfd_obj *obj_events, void *arg)
{
	struct rmem_async_events *events = (struct rmem_async_events *)obj_events;
	struct rmem_async_event *event = arg;

	memset(event, 0, sizeof(*event));
	event->type = next_type(events);
	event->context = events->context;
	event->dev = (struct rmem_dev *)events->base.obj;
	if (types[event->type].obj == RMEM_OBJ_DEV) {
		event->dev = rmem_obj_dev(&events->channel->obj);
		if (event->type != RMEM_ASYNC_DEVICE_FATAL)
			event->port_num = events->port_num;
	}
	__atomic_fetch_add(&events->nb_unacked, 1, __ATOMIC_RELAXED);
	events->base.pending &= ~(UINT32_C(1) << event->type);
}

int
rmem_async_channel_get_event(struct rmem_async_channel *base, struct rmem_async_event *event)
{
	RMEM_CALL(base);
	struct rmem_async_event found;
	int ret;

	ret = rmem_obj_check(base, RMEM_OBJ_ASYNC_CHANNEL);
	if (ret == 0)
		ret = rmem_check_arg(event, "event");
	if (ret != 0)
		return ret;
	/* The absence of an event is not an error: it is neither logged nor traced. */
	ret = rmem_eventfd_get(&channel_of(base)->efd, take, &found);
	if (ret == 0)
		*event = found;
	return ret;
}

/* Get the events of the object that an event is for; NULL if it is not bound to a channel. */
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
	rmem_obj_unhold(events->base.obj);
	return 0;
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
	rmem_eventfd_close(&channel_of(base)->efd);
	rmem_obj_drop(&base->obj, &rmem_obj_dev(&base->obj)->obj);
	return 0;
}
