/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A program of librdmacm that connects to itself, again after each failure; for recipe.sh. */

#include <arpa/inet.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "../holds.h"

#define MAX_ATTEMPTS 10

static struct rdma_event_channel *channel;

/* The next event: 0 if it is the wanted one, and its ID. */
static int
next_event(enum rdma_cm_event_type wanted, struct rdma_cm_id **id)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	HOLDS(rdma_get_cm_event(channel, &event) == 0);
	type = event->event;
	*id = event->id;
	if (type != wanted)
		printf("%s, status %d\n", rdma_event_str(type), event->status);
	HOLDS(rdma_ack_cm_event(event) == 0);
	return type == wanted ? 0 : -1;
}

static int
attempt(struct rdma_cm_id *id, struct sockaddr *addr, struct rdma_cm_id **passive)
{
	struct rdma_conn_param param = {.qp_num = 0x800001, .retry_count = 7};
	struct rdma_cm_id *of;

	if (rdma_resolve_addr(id, NULL, addr, 1000) != 0 ||
			next_event(RDMA_CM_EVENT_ADDR_RESOLVED, &of) != 0 ||
			rdma_resolve_route(id, 1000) != 0 ||
			next_event(RDMA_CM_EVENT_ROUTE_RESOLVED, &of) != 0 ||
			rdma_connect(id, &param) != 0 ||
			next_event(RDMA_CM_EVENT_CONNECT_REQUEST, passive) != 0)
		return -1;
	param.qp_num++;
	HOLDS(rdma_accept(*passive, &param) == 0);
	return next_event(RDMA_CM_EVENT_CONNECT_RESPONSE, &of);
}

int
main(void)
{
	struct sockaddr_in addr = {
			.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rdma_cm_id *listener, *id, *passive = NULL;
	int i, ret = -1;

	channel = rdma_create_event_channel();
	HOLDS(channel != NULL && rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) == 0);
	HOLDS(rdma_bind_addr(listener, (struct sockaddr *)&addr) == 0);
	HOLDS(rdma_listen(listener, 0) == 0);
	addr.sin_port = rdma_get_src_port(listener);
	for (i = 0; i < MAX_ATTEMPTS && ret != 0; i++) {
		HOLDS(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
		ret = attempt(id, (struct sockaddr *)&addr, &passive);
		HOLDS(rdma_destroy_id(id) == 0);
	}
	printf("%d attempts\n", i);
	HOLDS(ret == 0 && rdma_destroy_id(passive) == 0 && rdma_destroy_id(listener) == 0);
	rdma_destroy_event_channel(channel);
	return 0;
}
