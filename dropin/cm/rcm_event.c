/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Events, and the event queues of channels.
 *
 * Invariant: a channel whose queue has changed is in the list of rcm_channels_signal() until the
 * lock is released.
 * Invariant: a queued event is in the list of its channel (queued) and of its ID (own), in the same
 * order.
 */

#include <stdlib.h>
#include <sys/eventfd.h>

#include "rcm.h"

static TAILQ_HEAD(rcm_changed, rcm_channel) changed = TAILQ_HEAD_INITIALIZER(changed);

/* The queue of the channel has changed: update its eventfd when the lock is released. */
static void
events_changed(struct rcm_channel *channel)
{
	if (channel->is_changed)
		return;
	channel->is_changed = true;
	TAILQ_INSERT_TAIL(&changed, channel, changed);
}

void
rcm_events_forget(struct rcm_channel *channel)
{
	if (channel->is_changed)
		TAILQ_REMOVE(&changed, channel, changed);
	channel->is_changed = false;
}

void
rcm_channels_signal(void)
{
	struct rcm_channel *channel;
	eventfd_t count;

	while ((channel = TAILQ_FIRST(&changed)) != NULL) {
		rcm_events_forget(channel);
		if (channel->is_readable == !TAILQ_EMPTY(&channel->events))
			continue;
		channel->is_readable = !TAILQ_EMPTY(&channel->events);
		if (channel->is_readable)
			eventfd_write(channel->event_fd, 1);
		else
			eventfd_read(channel->event_fd, &count);
	}
}

struct rcm_event *
rcm_event_new(struct rcm_id *id, enum rcm_event_type type, int status)
{
	struct rcm_event *event = calloc(1, sizeof(*event));

	if (event == NULL)
		return NULL;
	event->id = id;
	event->resp.uid = id->uid;
	event->resp.id = id->handle;
	event->resp.event = type;
	event->resp.status = (uint32_t)status;
	return event;
}

void
rcm_event_queue(struct rcm_channel *channel, struct rcm_event *event)
{
	TAILQ_INSERT_TAIL(&channel->events, event, queued);
	TAILQ_INSERT_TAIL(&event->id->events, event, own);
	events_changed(channel);
}

void
rcm_event_post(struct rcm_id *id, enum rcm_event_type type, int status)
{
	struct rcm_event *event = rcm_event_new(id, type, status);

	if (event != NULL)
		rcm_event_queue(id->channel, event);
}

struct rcm_event *
rcm_event_pop(struct rcm_channel *channel)
{
	struct rcm_event *event = TAILQ_FIRST(&channel->events);

	TAILQ_REMOVE(&channel->events, event, queued);
	TAILQ_REMOVE(&event->id->events, event, own);
	events_changed(channel);
	return event;
}

void
rcm_events_take(struct rcm_id *id, struct rcm_events *taken)
{
	struct rcm_event *event;

	TAILQ_INIT(taken);
	TAILQ_CONCAT(taken, &id->events, own);
	TAILQ_FOREACH(event, taken, own)
		TAILQ_REMOVE(&id->channel->events, event, queued);
	events_changed(id->channel);
}

void
rcm_events_drop_mcast(struct rcm_id *id, const struct rcm_mcast *mcast)
{
	struct rcm_events taken;
	struct rcm_event *event;

	rcm_events_take(id, &taken);
	while ((event = TAILQ_FIRST(&taken)) != NULL) {
		TAILQ_REMOVE(&taken, event, own);
		if (event->mcast == mcast)
			free(event);
		else
			rcm_event_queue(id->channel, event);
	}
}
