/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * rmem-ctl removes the GID of a connection of rdma_cm: its messages are lost, so that it ends by
 * timeouts; with the GID again the next connection is made. An ID has the port of its address.
 *
 * usage: test-cm_gids RMEM-CTL
 */

#include "cm_cmd.h"
#include "run_control.h"

#define GID0  "127.0.16.96"
#define GID1  "127.0.16.97"
#define OWN2  "127.0.16.113"
#define PEER  "127.0.16.98"
#define PEER2 "127.0.16.109"

static const char *program;
static int server, client;

/* A connection from an address of soft0 to one of soft1. */
static void
establish_from(const char *from, const char *to, uint16_t port, uint32_t *active, uint32_t *passive)
{
	struct rdma_ucm_resolve_route route = {.timeout_ms = 60000};
	const struct rdma_ucm_conn_param param = cm_param(1, 0);

	*active = cm_create(client, RDMA_PS_TCP);
	route.id = *active;
	HOLDS(cm_bind(client, *active, from, 0) == 0);
	HOLDS(cm_resolve_addr(client, *active, to, port) == 0);
	HOLDS(cm_expect_next(client, ADDR_RESOLVED).status == 0);
	HOLDS(cm_run(client, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &route, sizeof(route), 0) == 0);
	HOLDS(cm_expect_next(client, ROUTE_RESOLVED).status == 0);
	HOLDS(cm_connect(client, *active, &param) == 0);
	*passive = cm_expect_next(server, CONNECT_REQUEST).id;
	HOLDS(cm_accept(server, *passive, 1000, &param) == 0);
	HOLDS(cm_expect_next(client, CONNECT_RESPONSE).id == *active);
	HOLDS(cm_accept(client, *active, 0, NULL) == 0);
	HOLDS(cm_expect_next(server, ESTABLISHED).id == *passive);
}

static void
establish(const char *to, uint16_t port, uint32_t *active, uint32_t *passive)
{
	establish_from(GID1, to, port, active, passive);
}

static void
release(uint32_t active, uint32_t passive)
{
	HOLDS(cm_destroy(client, active) >= 0 && cm_destroy(server, passive) >= 0);
}

/* Of the DREQs none arrives: the event follows after 17 s, and the peer has none. */
static void
connection_without_its_gid_ends_by_timeouts(uint16_t port)
{
	uint32_t active, passive;

	establish(PEER, port, &active, &passive);
	control_prints(program, "gid soft0 del " GID1, "");
	HOLDS(cm_disconnect(client, active) == 0);
	HOLDS(cm_expect_next(client, DISCONNECTED).id == active);
	release(active, passive);
}

/* The address is no longer one of a device. */
static void
address_without_its_gid_is_not_bound(void)
{
	uint32_t id = cm_create(client, RDMA_PS_TCP);

	HOLDS(cm_bind(client, id, GID1, 0) == ENODEV);
	HOLDS(cm_destroy(client, id) == 0);
}

static void
next_connection_is_made(uint16_t port)
{
	uint32_t active, passive;

	control_prints(program, "gid soft0 add " GID1, "");
	establish(PEER, port, &active, &passive);
	HOLDS(cm_disconnect(client, active) == 0);
	HOLDS(cm_expect_next(client, DISCONNECTED).id == active);
	HOLDS(cm_expect_next(server, DISCONNECTED).id == passive);
	release(active, passive);
}

/* Its messages have the GID of the port, which the peer compares. */
static void
connection_has_the_port_of_its_address(void)
{
	uint32_t listener = cm_create(server, RDMA_PS_TCP), active, passive;

	HOLDS(cm_bind(server, listener, PEER2, 0) == 0 && cm_listen(server, listener, 0) == 0);
	HOLDS(cm_query(server, listener).port_num == 2);
	establish(PEER2, cm_port(server, listener), &active, &passive);
	HOLDS(cm_query(server, passive).port_num == 2 && cm_query(client, active).port_num == 1);
	HOLDS(cm_disconnect(server, passive) == 0);
	HOLDS(cm_expect_next(client, DISCONNECTED).id == active);
	HOLDS(cm_expect_next(server, DISCONNECTED).id == passive);
	release(active, passive);
	HOLDS(cm_destroy(server, listener) >= 0);
}

/* Messages have the P_Key of the port that they are sent by, not of port 1. */
static void
connection_has_the_pkey_of_its_port(uint16_t port)
{
	uint32_t active, passive;

	control_prints(program, "pkey soft0:1 del 0xffff", "");
	control_prints(program, "pkey soft0:1 add 0x8001", "");
	establish_from(OWN2, PEER, port, &active, &passive);
	HOLDS(cm_query(client, active).port_num == 2);
	HOLDS(cm_disconnect(server, passive) == 0);
	HOLDS(cm_expect_next(client, DISCONNECTED).id == active);
	HOLDS(cm_expect_next(server, DISCONNECTED).id == passive);
	release(active, passive);
}

int
main(int argc, char **argv)
{
	uint32_t listener;
	uint16_t port;

	HOLDS(argc == 2);
	program = argv[1];
	HOLDS(setenv("RMEM_IBV",
			      "soft0,ip=" GID0 ";" OWN2 ",gids=" GID1 ",control=1,loop=1"
			      "|soft1,ip=" PEER ";" PEER2 ",loop=1",
			      1) == 0);
	server = cm_open();
	client = cm_open();
	listener = cm_create(server, RDMA_PS_TCP);
	HOLDS(cm_bind(server, listener, PEER, 0) == 0 && cm_listen(server, listener, 0) == 0);
	port = cm_port(server, listener);
	connection_has_the_port_of_its_address();
	connection_without_its_gid_ends_by_timeouts(port);
	address_without_its_gid_is_not_bound();
	next_connection_is_made(port);
	connection_has_the_pkey_of_its_port(port);
	HOLDS(close(client) == 0 && close(server) == 0);
	return 0;
}
