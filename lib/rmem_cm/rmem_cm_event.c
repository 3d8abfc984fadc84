/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Events of rdma_cm: waiting with a timeout, and mapping of events and errors for the callers. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include <rte_common.h>

#include "rmem_cm_priv.h"

#define MIN_ANSWER_MS UINT32_C(9000) /* answers are sent again for 8.6 s */

/* Map an errno of rdma_cm to an -errno of rmem_cm_connect(). */
static int
cm_error(int error)
{
	switch (error) {
	case ENODEV:
	case ENOENT:
	case ENXIO:
	case EADDRNOTAVAIL:
		return -ENODEV;
	case EADDRINUSE:
		return -EEXIST;
	case EACCES:
	case EPERM:
		return -EPERM;
	case ENOMEM:
		return -ENOMEM;
	case ENETUNREACH:
	case EHOSTUNREACH:
		return -EHOSTUNREACH;
	default:
		return -EIO;
	}
}

int
rmem_cm_errno(const char *call)
{
	int error = errno;

	CM_LOG(ERR, "%s: error %d, %s", call, error, strerror(error));
	return cm_error(error);
}

uint64_t
rmem_cm_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t
rmem_cm_answer_end_ms(const struct rmem_cm_conf *conf)
{
	return rmem_cm_now_ms() + RTE_MAX(conf->timeout_ms, MIN_ANSWER_MS);
}

int
rmem_cm_channel_create(const char *subject, struct rdma_event_channel **out)
{
	struct rdma_event_channel *channel;
	int flags, ret;

	channel = rdma_create_event_channel();
	if (channel == NULL) {
		int error = errno;

		CM_LOG(ERR, "%s, and rdma_cm is not available (is rdma_ucm loaded?): error %d, %s",
				subject, error, strerror(error));
		return cm_error(error);
	}
	flags = fcntl(channel->fd, F_GETFL);
	if (flags == -1 || fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
		ret = rmem_cm_errno("fcntl");
		rdma_destroy_event_channel(channel);
		return ret;
	}
	*out = channel;
	return 0;
}

static void
cm_copy(const struct rdma_cm_event *from, struct cm_event *to)
{
	memset(to, 0, sizeof(*to));
	to->id = from->id;
	to->type = from->event;
	to->status = from->status;
	if (from->param.conn.private_data == NULL)
		return;
	to->size = from->param.conn.private_data_len;
	memcpy(to->data, from->param.conn.private_data, to->size);
}

int
rmem_cm_next(struct rdma_event_channel *channel, uint64_t end_ms, struct cm_event *event)
{
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
	struct rdma_cm_event *got;
	uint64_t now;

	while (rdma_get_cm_event(channel, &got) != 0) {
		if (errno != EAGAIN && errno != EINTR)
			return rmem_cm_errno("rdma_get_cm_event");
		now = rmem_cm_now_ms();
		if (now >= end_ms)
			return -ETIMEDOUT;
		if (poll(&fd, 1, (int)(end_ms - now)) < 0 && errno != EINTR)
			return rmem_cm_errno("poll");
	}
	cm_copy(got, event);
	rdma_ack_cm_event(got);
	return 0;
}

/* Map an event that ends the connection setup to an -errno; 0 for all other events. */
static int
cm_refusal(const struct cm_event *event)
{
	switch (event->type) {
	case RDMA_CM_EVENT_ADDR_ERROR:
		return event->status == -ENODEV ? -ENODEV : -EHOSTUNREACH;
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		return -EHOSTUNREACH;
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DISCONNECTED:
		return -ECONNREFUSED;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return -EIO;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return -ENODEV;
	default:
		return 0;
	}
}

int
rmem_cm_expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type, uint64_t end_ms,
		struct cm_event *event)
{
	int ret;

	do {
		ret = rmem_cm_next(channel, end_ms, event);
		/* A timeout without a peer is not logged as an error. */
		if (ret == -ETIMEDOUT && type != RDMA_CM_EVENT_CONNECT_REQUEST)
			CM_LOG(ERR, "rdma_cm: timeout: no %s", rdma_event_str(type));
		if (ret != 0)
			return ret;
		if (event->type == type && event->status == 0)
			return 0;
		ret = event->type == type ? cm_error(-event->status) : cm_refusal(event);
	} while (ret == 0);
	CM_LOG(ERR, "rdma_cm: unexpected event: %s, status %d (expected %s)",
			rdma_event_str(event->type), event->status, rdma_event_str(type));
	return ret;
}
