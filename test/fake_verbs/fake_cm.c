/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The fakes of librdmacm; see fake_cm.h. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_common.h>

#include "fake.h"
#include "fake_cm.h"

#define FAKE_CM_EVENTS 16

struct fake_channel {
	struct rdma_event_channel channel;
	struct rdma_cm_event queue[FAKE_CM_EVENTS];
	unsigned int prod;
	unsigned int cons;
};

struct fake_event {
	struct rdma_cm_event event;
	uint8_t data[256];
};

struct fake_cm fake_cm;

static struct rdma_cm_id *fake_listener;
static struct rdma_cm_id *fake_conn;
static struct ibv_context fake_cm_verbs;

void
fake_cm_reset(void)
{
	memset(&fake_cm, 0, sizeof(fake_cm));
	fake_cm.on_addr = RDMA_CM_EVENT_ADDR_RESOLVED;
	fake_cm.on_route = RDMA_CM_EVENT_ROUTE_RESOLVED;
	fake_cm.on_connect = RDMA_CM_EVENT_CONNECT_RESPONSE;
	fake_cm.on_accept = RDMA_CM_EVENT_ESTABLISHED;
}

static void
fake_push(struct rdma_cm_id *id, int type, int status)
{
	struct fake_channel *channel = (struct fake_channel *)id->channel;
	struct rdma_cm_event *event;

	if (type == FAKE_CM_NONE)
		return;
	event = &channel->queue[channel->prod++ % FAKE_CM_EVENTS];
	memset(event, 0, sizeof(*event));
	event->id = id;
	event->event = (enum rdma_cm_event_type)type;
	event->status = status;
	(void)eventfd_write(channel->channel.fd, 1);
}

void
fake_cm_request(void)
{
	fake_push(fake_listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
}

void
fake_cm_event(enum rdma_cm_event_type type)
{
	fake_push(fake_conn, (int)type, 0);
}

const char *
rdma_event_str(enum rdma_cm_event_type type)
{
	return type == RDMA_CM_EVENT_REJECTED ? "rejected" : "event";
}

struct rdma_event_channel *
rdma_create_event_channel(void)
{
	struct fake_channel *channel = fake_new("rdma_create_event_channel", sizeof(*channel));

	if (channel == NULL)
		return NULL;
	channel->channel.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	return &channel->channel;
}

void
rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	close(channel->fd);
	free(channel);
	fake.nb_live--;
}

int
rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context,
		enum rdma_port_space ps)
{
	struct rdma_cm_id *id = fake_new("rdma_create_id", sizeof(*id));

	if (id == NULL)
		return -1;
	id->channel = channel;
	id->context = context;
	id->ps = ps;
	id->verbs = &fake_cm_verbs;
	*out = id;
	return 0;
}

int
rdma_destroy_id(struct rdma_cm_id *id)
{
	if (id == fake_listener)
		fake_listener = NULL;
	if (id == fake_conn)
		fake_conn = NULL;
	return fake_delete(id);
}

int
rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	RTE_SET_USED(id);
	RTE_SET_USED(addr);
	return fake_fails("rdma_bind_addr") ? -1 : 0;
}

int
rdma_listen(struct rdma_cm_id *id, int backlog)
{
	RTE_SET_USED(backlog);
	if (fake_fails("rdma_listen"))
		return -1;
	fake_listener = id;
	return 0;
}

/* The call's event, with a status where it is not the one that is good. */
static int
fake_step(const char *name, struct rdma_cm_id *id, int type, enum rdma_cm_event_type good)
{
	if (fake_fails(name))
		return -1;
	fake_conn = id;
	fake_push(id, type, type == (int)good ? 0 : fake_cm.status);
	return 0;
}

static void
fake_send(const struct rdma_conn_param *param)
{
	memcpy(fake_cm.sent, param->private_data, param->private_data_len);
	fake_cm.sent_size = param->private_data_len;
	fake_cm.sent_qp = param->qp_num;
}

int
rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to, int timeout_ms)
{
	RTE_SET_USED(from);
	RTE_SET_USED(to);
	RTE_SET_USED(timeout_ms);
	return fake_step("rdma_resolve_addr", id, fake_cm.on_addr, RDMA_CM_EVENT_ADDR_RESOLVED);
}

int
rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	RTE_SET_USED(timeout_ms);
	return fake_step("rdma_resolve_route", id, fake_cm.on_route, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

int
rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	if (param->private_data_len > 56) {
		errno = EINVAL;
		return -1;
	}
	fake_send(param);
	return fake_step("rdma_connect", id, fake_cm.on_connect, RDMA_CM_EVENT_CONNECT_RESPONSE);
}

int
rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	if (param->private_data_len > 196) {
		errno = EINVAL;
		return -1;
	}
	fake_send(param);
	return fake_step("rdma_accept", id, fake_cm.on_accept, RDMA_CM_EVENT_ESTABLISHED);
}

int
rdma_establish(struct rdma_cm_id *id)
{
	RTE_SET_USED(id);
	if (fake_fails("rdma_establish"))
		return -1;
	fake_cm.nb_established++;
	return 0;
}

int
rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	if (fake_fails("rdma_migrate_id"))
		return -1;
	id->channel = channel;
	return 0;
}

int
rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t size)
{
	RTE_SET_USED(id);
	RTE_SET_USED(data);
	RTE_SET_USED(size);
	fake_cm.nb_rejects++;
	return 0;
}

int
rdma_disconnect(struct rdma_cm_id *id)
{
	RTE_SET_USED(id);
	fake_cm.nb_disconnects++;
	return 0;
}

int
rdma_get_cm_event(struct rdma_event_channel *base, struct rdma_cm_event **out)
{
	struct fake_channel *channel = (struct fake_channel *)base;
	struct fake_event *event;
	eventfd_t count;

	if (fake_fails("rdma_get_cm_event") || eventfd_read(base->fd, &count) != 0)
		return -1;
	event = calloc(1, sizeof(*event));
	if (event == NULL)
		return -1;
	fake.nb_live++;
	event->event = channel->queue[channel->cons++ % FAKE_CM_EVENTS];
	memcpy(event->data, fake_cm.data, sizeof(event->data));
	if (event->event.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		event->event.listen_id = event->event.id;
		event->event.id = calloc(1, sizeof(*event->event.id));
		event->event.id->channel = base;
		event->event.id->verbs = &fake_cm_verbs;
		fake.nb_live++;
	}
	if (event->event.event == RDMA_CM_EVENT_CONNECT_REQUEST ||
			event->event.event == RDMA_CM_EVENT_CONNECT_RESPONSE) {
		event->event.param.conn.private_data = event->data;
		event->event.param.conn.private_data_len = fake_cm.size;
	}
	*out = &event->event;
	return 0;
}

int
rdma_ack_cm_event(struct rdma_cm_event *event)
{
	return fake_delete(event);
}
