/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Asynchronous events. Each context has a channel to which its CQs, QPs and SRQs are bound.
 *
 * Invariant: an object is destroyed only after its events that the program has got are
 * acknowledged; the object's mutex and condition order the last acknowledgement and the waiting
 * thread. */

#include <errno.h>

#include "ribv.h"

/* Kinds of objects that have events. */
enum element {
	ELEMENT_PORT, /* the port, the device, or an object that rmem does not have */
	ELEMENT_CQ,
	ELEMENT_QP,
	ELEMENT_SRQ,
};

static enum element
element_of(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_CQ_ERR:
		return ELEMENT_CQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return ELEMENT_QP;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return ELEMENT_SRQ;
	default:
		return ELEMENT_PORT;
	}
}

static void
count(uint32_t *nb_events)
{
	__atomic_fetch_add(nb_events, 1, __ATOMIC_RELAXED);
}

/* The event reports to the program that the QP is in ERR. */
static void
notice(struct ribv_qp *qp, enum ibv_event_type type)
{
	if (qp->watch != NULL && type != IBV_EVENT_COMM_EST && type != IBV_EVENT_SQ_DRAINED)
		ribv_watch_state(qp->watch, IBV_QPS_ERR);
}

/* Get an event of an object that the program has, in its terms. Return 0, or a negative errno. */
static int
get(struct ibv_context *context, struct rmem_async_event *own, struct ibv_async_event *event)
{
	int ret;

	do {
		ret = rmem_async_channel_get_event(ribv_async_of(context), own);
		if (ret != 0)
			return ret;
		event->event_type = (enum ibv_event_type)own->type;
		if (element_of(event->event_type) != ELEMENT_QP)
			return 0;
		if (own->context != NULL) {
			count(&((struct ribv_qp *)own->context)->nb_events);
			return 0;
		}
		own->context = ribv_qp_take_event(context, own->qp);
	} while (own->context == NULL && rmem_async_event_ack(own) == 0);
	return 0;
}

int
ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct rmem_async_event own;
	int ret;

	if (ribv_is_real(context))
		return RIBV_NEXT(ibv_get_async_event)(context, event);
	if (!ribv_is_context(context))
		return ribv_minus_one(ENOENT);
	if (event == NULL)
		return ribv_minus_one(EINVAL);
	ret = get(context, &own, event);
	if (ret != 0)
		return ribv_minus_one(-ret);
	switch (element_of(event->event_type)) {
	case ELEMENT_CQ:
		event->element.cq = own.context;
		count(&((struct ribv_cq *)own.context)->nb_events);
		break;
	case ELEMENT_QP:
		event->element.qp = own.context;
		notice(own.context, event->event_type);
		break;
	case ELEMENT_SRQ:
		event->element.srq = own.context;
		count(&((struct ribv_srq *)own.context)->nb_events);
		break;
	default:
		event->element.port_num = (int)own.port_num;
		break;
	}
	return 0;
}

/* Count the acknowledgement, and wake a thread that waits to destroy the object. */
static void
ack(const struct rmem_async_event *own, uint32_t *nb_completed, pthread_mutex_t *mutex,
		pthread_cond_t *cond)
{
	pthread_mutex_lock(mutex);
	if (rmem_async_event_ack(own) == 0)
		++*nb_completed;
	pthread_cond_broadcast(cond);
	pthread_mutex_unlock(mutex);
}

void
ibv_ack_async_event(struct ibv_async_event *event)
{
	struct rmem_async_event own = {.type = (uint32_t)event->event_type};
	enum element element = element_of(event->event_type);
	struct ibv_srq *srq = event->element.srq;
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;

	if (element == ELEMENT_PORT || ribv_is_real(cq)) {
		RIBV_NEXT(ibv_ack_async_event)(event);
	} else if (element == ELEMENT_CQ && ribv_is_cq(cq)) {
		own.cq = ((struct ribv_cq *)cq)->cq;
		ack(&own, &cq->async_events_completed, &cq->mutex, &cq->cond);
	} else if (element == ELEMENT_QP && ribv_is_qp(qp)) {
		own.qp = ((struct ribv_qp *)qp)->qp;
		ack(&own, &qp->events_completed, &qp->mutex, &qp->cond);
	} else if (element == ELEMENT_SRQ && ribv_is_srq(srq)) {
		own.srq = ((struct ribv_srq *)srq)->srq;
		ack(&own, &srq->events_completed, &srq->mutex, &srq->cond);
	}
}
