/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* rdma_cm with several devices: an ID has the one of its address, or of the route, as by cma.c. */

#include <infiniband/verbs.h>

#include "cm_cmd.h"

#define ADDR0 "127.0.16.24"
#define ADDR1 "127.0.16.25"

static __be64 guids[3];

/* Of soft0, soft1 and soft2. */
static void
find_guids(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	HOLDS(list != NULL);
	for (i = 0; list[i] != NULL; i++)
		guids[i] = ibv_get_device_guid(list[i]);
	HOLDS(i == 3 && guids[0] != guids[1] && guids[1] != guids[2]);
	ibv_free_device_list(list);
}

static void
bound_id_has_device_of_address(int fd)
{
	static const char *const addresses[] = {ADDR0, ADDR1, LOOPBACK};
	uint32_t id, i;

	for (i = 0; i < 3; i++) {
		id = cm_create(fd, RDMA_PS_TCP);
		HOLDS(cm_bind(fd, id, addresses[i], 0) == 0);
		HOLDS(cm_query(fd, id).node_guid == guids[i]);
		HOLDS(cm_destroy(fd, id) == 0);
	}
	id = cm_create(fd, RDMA_PS_TCP);
	HOLDS(cm_bind(fd, id, "203.0.113.9", 0) == EADDRNOTAVAIL);
	HOLDS(cm_bind(fd, id, "0.0.0.0", 0) == 0);
	HOLDS(cm_query(fd, id).node_guid == 0);
	HOLDS(cm_destroy(fd, id) == 0);
}

/* From that address, or any; the device, or 0 and the status. */
static __be64
resolved(int fd, const char *from, const char *to, int *status)
{
	uint32_t id = cm_create(fd, RDMA_PS_TCP);
	struct rdma_ucm_event_resp event;
	__be64 guid = 0;

	if (from != NULL)
		HOLDS(cm_bind(fd, id, from, 0) == 0);
	HOLDS(cm_resolve_addr(fd, id, to, 7) == 0 && cm_event(fd, &event) == 0);
	*status = (int)event.status;
	if (event.event == ADDR_RESOLVED)
		guid = cm_query(fd, id).node_guid;
	HOLDS(cm_destroy(fd, id) == 1);
	return guid;
}

static void
resolved_id_has_device_of_route(int fd)
{
	int status;

	HOLDS(resolved(fd, ADDR1, ADDR0, &status) == guids[1] && status == 0);
	HOLDS(resolved(fd, ADDR0, ADDR0, &status) == guids[0] && status == 0);
	/* All addresses of the host, and no others, are those of the device of its processes. */
	HOLDS(resolved(fd, NULL, LOOPBACK, &status) == guids[2] && status == 0);
	HOLDS(resolved(fd, LOOPBACK, "203.0.113.9", &status) == 0 && status == -EHOSTUNREACH);
	HOLDS(resolved(fd, ADDR1, "203.0.113.9", &status) == 0 && status == -EHOSTUNREACH);
}

/* From a device to the port of a listener, at the address of another device. */
static void
request_has_device_of_its_address(int fd, const char *from, const char *to, __be64 device)
{
	const struct rdma_ucm_conn_param param = cm_param(1, 4);
	uint32_t listener = cm_create(fd, RDMA_PS_TCP), active = cm_create(fd, RDMA_PS_TCP);
	struct rdma_ucm_resolve_route route = {.id = active, .timeout_ms = 60000};
	struct rdma_ucm_event_resp event;

	HOLDS(cm_bind(fd, listener, "0.0.0.0", 0) == 0 && cm_listen(fd, listener, 8) == 0);
	HOLDS(cm_bind(fd, active, from, 0) == 0);
	HOLDS(cm_resolve_addr(fd, active, to, cm_port(fd, listener)) == 0);
	HOLDS(cm_expect(fd, ADDR_RESOLVED).status == 0);
	HOLDS(cm_run(fd, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &route, sizeof(route), 0) == 0);
	HOLDS(cm_expect(fd, ROUTE_RESOLVED).status == 0);
	HOLDS(cm_connect(fd, active, &param) == 0);
	event = cm_expect(fd, CONNECT_REQUEST);
	HOLDS(event.param.conn.private_data[3] == 4);
	HOLDS(cm_query(fd, event.id).node_guid == device);
	HOLDS(cm_reject(fd, event.id, "no", 2) == 0);
	HOLDS(cm_expect(fd, REJECTED).status == 28);
	HOLDS(cm_destroy(fd, event.id) == 0 && cm_destroy(fd, active) == 3);
	HOLDS(cm_destroy(fd, listener) == 1);
}

int
main(void)
{
	int fd;

	HOLDS(setenv("RMEM_IBV", "soft0,ip=" ADDR0 "|soft1,ip=" ADDR1 "|soft2", 1) == 0);
	find_guids();
	fd = cm_open();
	bound_id_has_device_of_address(fd);
	resolved_id_has_device_of_route(fd);
	request_has_device_of_its_address(fd, ADDR0, ADDR1, guids[1]);
	request_has_device_of_its_address(fd, ADDR1, ADDR0, guids[0]);
	request_has_device_of_its_address(fd, LOOPBACK, LOOPBACK, guids[2]);
	HOLDS(close(fd) == 0);
	return 0;
}
