/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Completion channels. A channel refers to its device; CQs refer to the channel.
 *
 * A driver has its own channel operations, or calls rmem_cq_notify() for each completion of a CQ
 * with a channel. In the latter case the CQ counts its events, and rmem_eventfd.c lists the CQs
 * with events.
 *
 * An event that was returned holds a reference to its CQ until it is acknowledged.
 */

#include <errno.h>
#include <pthread.h>

#include "rmem_priv.h"

struct channel {
	union {
		struct rmem_comp_channel channel;
		struct rmem_comp_channel_drv drv;
	};
	struct rmem_eventfd efd; /* open if the driver has no channel operations */
};

static struct rmem_eventfd *
efd_of(struct rmem_comp_channel *channel)
{
	return &((struct channel *)channel)->efd;
}

int
rmem_own_comp_channel_create(struct rmem_comp_channel *channel)
{
	int ret = rmem_eventfd_open(efd_of(channel), &channel->obj);

	channel->fd = efd_of(channel)->fd;
	return ret;
}

int
rmem_own_comp_channel_destroy(struct rmem_comp_channel *channel)
{
	rmem_eventfd_close(efd_of(channel));
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
			&dev->obj, RMEM_OBJ_COMP_CHANNEL, sizeof(struct channel), &ret);
	if (new_channel == NULL)
		return ret;
	rmem_eventfd_init(efd_of(new_channel));
	ret = RMEM_OP(dev, comp_channel_create, new_channel);
	if (ret != 0) {
		rmem_obj_drop(&new_channel->obj, &dev->obj);
		return ret;
	}
	*channel = new_channel;
	return 0;
}

void
rmem_comp_channel_put(struct rmem_comp_channel *channel, struct rmem_cq_events *events)
{
	struct rmem_eventfd *efd = efd_of(channel);

	pthread_mutex_lock(&efd->lock);
	events->base.pending++;
	rmem_eventfd_list(efd, &events->base);
	pthread_mutex_unlock(&efd->lock);
}

/* Revive and list the CQ under one lock, so that no reader finds it listed but dead. */
void
rmem_comp_channel_revive(struct rmem_comp_channel *channel, struct rmem_cq_events *events)
{
	struct rmem_eventfd *efd = efd_of(channel);

	pthread_mutex_lock(&efd->lock);
	rmem_async_channel_revive(events->async, events->base.obj);
	rmem_eventfd_list(efd, &events->base);
	pthread_mutex_unlock(&efd->lock);
}

void
rmem_comp_channel_remove(struct rmem_comp_channel *channel, struct rmem_cq_events *events)
{
	rmem_eventfd_remove(efd_of(channel), &events->base);
}

static void
take(struct rmem_eventfd_obj *events, void *arg)
{
	*(struct rmem_cq **)arg = (struct rmem_cq *)events->obj;
	events->pending--;
}

int
rmem_own_comp_channel_get_event(struct rmem_comp_channel *channel, struct rmem_cq **cq)
{
	return rmem_eventfd_get(efd_of(channel), take, cq);
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
	/* The absence of an event is not an error: it is neither logged nor traced. */
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
