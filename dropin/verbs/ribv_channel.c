/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Completion channels, and the events of CQs.
 *
 * Invariant: a CQ is destroyed only after all events returned by ibv_get_cq_event() are
 * acknowledged; the class counts them, and returns -EBUSY until then. The mutex of the CQ orders
 * the last acknowledgement and the thread that waits for it.
 */

#include <errno.h>

#include "ribv.h"

bool
ribv_is_channel(const struct ibv_comp_channel *channel)
{
	return ribv_slot(channel, RIBV_CHANNEL) != 0 &&
			channel->context == ((const struct ribv_channel *)channel)->context;
}

struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *context)
{
	struct ribv_channel *channel;
	int ret;

	if (ribv_is_real(context))
		return RIBV_NEXT(ibv_create_comp_channel)(context);
	if (!ribv_is_context(context))
		return ribv_fail(ENOENT);
	channel = ribv_new();
	if (channel == NULL)
		return NULL;
	ret = rmem_comp_channel_create(ribv_dev_of(context), &channel->channel);
	if (ret != 0) {
		ribv_leave(channel);
		return ribv_fail(ribv_errno(ret));
	}
	channel->ibv.context = channel->context = context;
	channel->ibv.fd = channel->channel->fd;
	ribv_enter(channel, RIBV_CHANNEL);
	return &channel->ibv;
}

int
ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	int ret;

	if (ribv_is_real(channel))
		return RIBV_NEXT(ibv_destroy_comp_channel)(channel);
	if (!ribv_is_channel(channel))
		return ribv_leave_inherited(channel, RIBV_CHANNEL);
	ret = rmem_comp_channel_destroy(((struct ribv_channel *)channel)->channel);
	if (ret == 0)
		ribv_leave(channel);
	return -ret;
}

int
ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct rmem_cq *found;
	void *context;
	int ret;

	if (ribv_is_real(channel))
		return RIBV_NEXT(ibv_get_cq_event)(channel, cq, cq_context);
	ret = ribv_is_channel(channel) && cq != NULL && cq_context != NULL
			? rmem_comp_channel_get_event(((struct ribv_channel *)channel)->channel,
					  &found, &context)
			: -EINVAL;
	if (ret != 0) {
		errno = -ret;
		return -1;
	}
	*cq = context;
	__atomic_fetch_add(&((struct ribv_cq *)*cq)->nb_events, 1, __ATOMIC_RELAXED);
	*cq_context = (*cq)->cq_context;
	return 0;
}

void
ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	if (ribv_is_real(cq)) {
		RIBV_NEXT(ibv_ack_cq_events)(cq, nevents);
		return;
	}
	if (!ribv_is_cq(cq) || nevents == 0 || ((struct ribv_cq *)cq)->channel == NULL)
		return;
	/* Under the mutex, for which ibv_destroy_cq() waits. */
	pthread_mutex_lock(&cq->mutex);
	if (rmem_cq_ack_events(((struct ribv_cq *)cq)->cq, nevents) == 0)
		cq->comp_events_completed += nevents;
	pthread_cond_broadcast(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}

int
ribv_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	struct rmem_cq_attr own = {.count = 0};

	if (!ribv_is_cq(cq))
		return ENOENT;
	if (attr == NULL || (attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE) != 0)
		return EINVAL;
	if (attr->attr_mask == 0)
		return 0;
	own.count = attr->moderate.cq_count;
	own.period_us = attr->moderate.cq_period;
	return ribv_errno(rmem_cq_modify(((struct ribv_cq *)cq)->cq, &own));
}

int
ribv_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	/* As providers that pass this call to the kernel: it finds the CQ by its handle. */
	if (!ribv_may_poll(cq) || cq->handle != ribv_slot(cq, RIBV_CQ))
		return ENOENT;
	/* Without a channel there is nothing to notify. */
	return ((struct ribv_cq *)cq)->channel == NULL
			? 0
			: -rmem_cq_req_notify(((struct ribv_cq *)cq)->cq, solicited_only != 0);
}
