/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A program of rdma_cm, without any call of rmem, that is killed while it connects; and its peer,
 * which prints the events that it gets. The QPs are not connected.
 *
 * usage: cm_states listen|connect ADDRESS PORT STATE
 *
 * STATE is req, rep or established: there it prints "stopped", and waits for a signal. Or
 * wait-req and wait-rep: before it answers that message it prints "waiting", and reads a line from
 * standard input. Or run. A peer ends with the connection, after it has released all objects; with
 * status 1 if there was no listener.
 */

#include <netdb.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "../holds.h"

static const char *state;
static struct rdma_event_channel *channel;
static struct rdma_cm_event *event;

static void
print(const char *text)
{
	printf("%s\n", text);
	fflush(stdout);
}

static void
stop_at(const char *name)
{
	if (strcmp(state, name) != 0)
		return;
	print("stopped");
	for (;;)
		pause();
}

static void
wait_at(const char *name)
{
	char line[16];

	if (strcmp(state, name) != 0)
		return;
	print("waiting");
	HOLDS(fgets(line, sizeof(line), stdin) != NULL);
}

/* The next event is printed; its data belongs to it until rdma_ack_cm_event(). */
static enum rdma_cm_event_type
next_event(void)
{
	HOLDS(rdma_get_cm_event(channel, &event) == 0);
	printf("%s, status %d\n", rdma_event_str(event->event), event->status);
	fflush(stdout);
	return event->event;
}

/* A QP whose number the messages have. */
struct objects {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static struct objects
create_objects(struct ibv_context *verbs)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
			.cap = {.max_send_wr = 1,
					.max_recv_wr = 1,
					.max_send_sge = 1,
					.max_recv_sge = 1}};
	struct objects objects = {.pd = ibv_alloc_pd(verbs)};

	HOLDS(objects.pd != NULL);
	objects.cq = ibv_create_cq(verbs, 2, NULL, NULL, 0);
	HOLDS(objects.cq != NULL);
	init.send_cq = init.recv_cq = objects.cq;
	objects.qp = ibv_create_qp(objects.pd, &init);
	HOLDS(objects.qp != NULL);
	return objects;
}

static void
destroy_objects(struct objects *objects)
{
	HOLDS(ibv_destroy_qp(objects->qp) == 0);
	HOLDS(ibv_destroy_cq(objects->cq) == 0);
	HOLDS(ibv_dealloc_pd(objects->pd) == 0);
}

static struct rdma_conn_param
param_of(const struct ibv_qp *qp, const char *data)
{
	return (struct rdma_conn_param){.private_data = data,
			.private_data_len = (uint8_t)strlen(data),
			.retry_count = 7,
			.rnr_retry_count = 7,
			.qp_num = qp->qp_num};
}

/* The connection has ended, or will: until its last event but that of time-wait. */
static void
wait_end(void)
{
	enum rdma_cm_event_type type;

	do {
		type = next_event();
		rdma_ack_cm_event(event);
	} while (type == RDMA_CM_EVENT_ESTABLISHED);
}

static void
run_listen(struct sockaddr *addr)
{
	struct rdma_cm_id *listener, *id;
	struct rdma_conn_param param;
	struct objects objects;

	HOLDS(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) == 0);
	HOLDS(rdma_bind_addr(listener, addr) == 0);
	HOLDS(rdma_listen(listener, 4) == 0);
	print("listening");
	HOLDS(next_event() == RDMA_CM_EVENT_CONNECT_REQUEST);
	HOLDS(memcmp(event->param.conn.private_data, "request", 7) == 0);
	id = event->id;
	rdma_ack_cm_event(event);
	stop_at("req");
	wait_at("wait-req");
	objects = create_objects(id->verbs);
	param = param_of(objects.qp, "reply");
	if (rdma_accept(id, &param) != 0) {
		print("rdma_accept failed");
	} else {
		stop_at("rep");
		if (strcmp(state, "established") == 0) {
			HOLDS(next_event() == RDMA_CM_EVENT_ESTABLISHED);
			rdma_ack_cm_event(event);
			stop_at("established");
		}
		wait_end();
	}
	HOLDS(rdma_destroy_id(id) == 0);
	HOLDS(rdma_destroy_id(listener) == 0);
	destroy_objects(&objects);
}

static void
expect(enum rdma_cm_event_type type)
{
	HOLDS(rdma_get_cm_event(channel, &event) == 0);
	HOLDS(event->event == type);
	rdma_ack_cm_event(event);
}

/* Returns true if there is no listener. */
static bool
run_connect(struct sockaddr *addr)
{
	struct rdma_conn_param param;
	enum rdma_cm_event_type type;
	struct objects objects;
	struct rdma_cm_id *id;
	bool is_absent = false;

	HOLDS(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
	HOLDS(rdma_resolve_addr(id, NULL, addr, 60000) == 0);
	expect(RDMA_CM_EVENT_ADDR_RESOLVED);
	HOLDS(rdma_resolve_route(id, 60000) == 0);
	expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
	objects = create_objects(id->verbs);
	param = param_of(objects.qp, "request");
	HOLDS(rdma_connect(id, &param) == 0);
	stop_at("req");
	type = next_event();
	if (type == RDMA_CM_EVENT_CONNECT_RESPONSE) {
		HOLDS(memcmp(event->param.conn.private_data, "reply", 5) == 0);
		rdma_ack_cm_event(event);
		stop_at("rep");
		wait_at("wait-rep");
		if (rdma_establish(id) != 0)
			print("rdma_establish failed");
		stop_at("established");
		wait_end();
	} else {
		is_absent = type == RDMA_CM_EVENT_REJECTED && event->status == 8;
		rdma_ack_cm_event(event);
	}
	HOLDS(rdma_destroy_id(id) == 0);
	destroy_objects(&objects);
	return is_absent;
}

int
main(int argc, char **argv)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV}, *to;
	bool is_absent = false;

	if (argc != 5 || getaddrinfo(argv[2], argv[3], &hints, &to) != 0)
		return 2;
	state = argv[4];
	channel = rdma_create_event_channel();
	HOLDS(channel != NULL);
	if (strcmp(argv[1], "listen") == 0)
		run_listen(to->ai_addr);
	else
		is_absent = run_connect(to->ai_addr);
	rdma_destroy_event_channel(channel);
	freeaddrinfo(to);
	print("released");
	return is_absent;
}
