/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Asynchronous events. Reading them needs a system call, which posts and polls must not make. So
 * each device has a thread that reads them, sets flags that posts and polls load, and reports them
 * to the channels of the class. An object is not destroyed before the thread has acknowledged its
 * events.
 *
 * The kernel withdraws the events of an object that is destroyed, even between poll() and read().
 * So reads must not block, or the thread could not be stopped.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rverbs.h"

static void
event_set_removed(struct rverbs_dev *dev)
{
	uint32_t i;

	rte_ticketlock_lock(&dev->lock);
	__atomic_store_n(&dev->is_removed, 1, __ATOMIC_RELEASE);
	for (i = 0; i < RVERBS_MAX_QP; i++) {
		if (dev->slots[i].qp != NULL)
			__atomic_store_n(&dev->slots[i].qp->gate, RVERBS_GATE_REMOVED,
					__ATOMIC_RELEASE);
	}
	rte_ticketlock_unlock(&dev->lock);
}

/* Report an event to the channels of the application. Objects of probes have no context. */
static void
event_report(struct rverbs_dev *dev, const struct ibv_async_event *event)
{
	const uint32_t type = (uint32_t)event->event_type;
	struct rverbs_srq *srq;
	struct rverbs_cq *cq;
	struct rverbs_qp *qp;

	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		cq = event->element.cq->cq_context;
		if (cq != NULL)
			rmem_cq_async_event(&cq->cq, type);
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		qp = event->element.qp->qp_context;
		if (qp != NULL)
			rmem_qp_async_event(&qp->qp, type);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		srq = event->element.srq->srq_context;
		if (srq != NULL)
			rmem_srq_async_event(&srq->srq, type);
		break;
	case IBV_EVENT_DEVICE_FATAL:
		rmem_dev_async_event(dev->base_dev, type, 0);
		break;
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_GID_CHANGE:
		if (event->element.port_num == dev->port.num)
			rmem_dev_async_event(dev->base_dev, type, dev->port.num);
		break;
	default:
		break; /* alternate paths and work queues, which the class does not have */
	}
}

/* Handle and log an event; each event is logged once. */
static void
event_take(struct rverbs_dev *dev, const struct ibv_async_event *event)
{
	const char *name = dev->context->device->name;
	struct rverbs_cq *cq;

	__atomic_add_fetch(&dev->nb_events, 1, __ATOMIC_RELAXED);
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		cq = event->element.cq->cq_context;
		if (cq != NULL)
			__atomic_store_n(&cq->has_overrun, 1, __ATOMIC_RELAXED);
		RVERBS_LOG(ERR, "%s: CQ overrun", name);
		break;
	case IBV_EVENT_DEVICE_FATAL:
		RVERBS_LOG(ERR, "%s: the device failed or is being removed", name);
		event_set_removed(dev);
		break;
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_PORT_ACTIVE:
		if (event->element.port_num != dev->port.num)
			break;
		__atomic_store_n(&dev->port_down, event->event_type == IBV_EVENT_PORT_ERR,
				__ATOMIC_RELAXED);
		RVERBS_LOG(NOTICE, "%s: port %u is %s", name, dev->port.num,
				event->event_type == IBV_EVENT_PORT_ERR ? "down" : "active");
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		RVERBS_LOG(NOTICE, "%s: QP %u: %s", name, event->element.qp->qp_num,
				ibv_event_type_str(event->event_type));
		break;
	default:
		RVERBS_LOG(DEBUG, "%s: %s", name, ibv_event_type_str(event->event_type));
		break;
	}
}

static void *
event_loop(void *arg)
{
	struct rverbs_dev *dev = arg;
	struct pollfd fds[] = {
			{.fd = dev->stop_fd, .events = POLLIN},
			{.fd = dev->context->async_fd, .events = POLLIN},
	};
	struct ibv_async_event event;

	for (;;) {
		if (poll(fds, RTE_DIM(fds), -1) < 0) {
			if (errno == EINTR)
				continue;
			break;
		}
		if (fds[0].revents != 0)
			break;
		if (fds[1].revents == 0)
			continue;
		if (ibv_get_async_event(dev->context, &event) != 0) {
			if ((fds[1].revents & (POLLERR | POLLHUP | POLLNVAL)) == 0)
				continue;
			event_set_removed(dev);
			break;
		}
		event_take(dev, &event);
		event_report(dev, &event);
		ibv_ack_async_event(&event);
	}
	return NULL;
}

int
rverbs_events_start(struct rverbs_dev *dev)
{
	const int flags = fcntl(dev->context->async_fd, F_GETFL);
	sigset_t all, old;
	int err;

	if (flags < 0 || fcntl(dev->context->async_fd, F_SETFL, flags | O_NONBLOCK) != 0)
		return rverbs_err_minus(-1, "fcntl");
	dev->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (dev->stop_fd < 0)
		return rverbs_err_minus(-1, "eventfd");
	/* Block all signals: threads of the application handle them. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&dev->event_thread, NULL, event_loop, dev);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err != 0)
		close(dev->stop_fd);
	return rverbs_err_code(err, RVERBS_ERR_OPEN, "a thread for asynchronous events");
}

void
rverbs_events_stop(struct rverbs_dev *dev)
{
	uint64_t one = 1;

	while (write(dev->stop_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	pthread_join(dev->event_thread, NULL);
	close(dev->stop_fd);
}
