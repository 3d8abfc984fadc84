/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Commands of rdma_cm, written as librdmacm does. */

#ifndef CM_CMD_H
#define CM_CMD_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rdma/rdma_user_cm.h>

#include "../holds.h"

#define LOOPBACK "127.0.0.1"
#define NO_ID    UINT32_MAX

enum {
	ADDR_RESOLVED,
	ADDR_ERROR,
	ROUTE_RESOLVED,
	ROUTE_ERROR,
	CONNECT_REQUEST,
	CONNECT_RESPONSE,
	UNREACHABLE = 7,
	REJECTED,
	ESTABLISHED,
	DISCONNECTED,
	DEVICE_REMOVAL,
	TIMEWAIT_EXIT = 15,
};

/* Run a command: 0 or an errno. */
static inline int
cm_run(int fd, uint32_t cmd, const void *in, size_t in_len, size_t out_len)
{
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		uint8_t in[sizeof(struct rdma_ucm_accept)];
	} data = {.hdr = {cmd, (uint16_t)in_len, (uint16_t)out_len}};
	size_t size = sizeof(data.hdr) + in_len;
	ssize_t n;

	HOLDS(in_len <= sizeof(data.in));
	memcpy(data.in, in, in_len);
	n = write(fd, &data, size);
	return n == (ssize_t)size ? 0 : errno;
}

static inline int
cm_open(void)
{
	int fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);

	HOLDS(fd >= 0);
	return fd;
}

static inline uint32_t
cm_create(int fd, uint16_t ps)
{
	static uint64_t last_uid;
	struct rdma_ucm_create_id_resp resp;
	struct rdma_ucm_create_id in = {.uid = ++last_uid, .response = (uintptr_t)&resp, .ps = ps};

	HOLDS(cm_run(fd, RDMA_USER_CM_CMD_CREATE_ID, &in, sizeof(in), sizeof(resp)) == 0);
	return resp.id;
}

/* Events that were reported, or -1 with errno set. */
static inline int
cm_destroy(int fd, uint32_t id)
{
	struct rdma_ucm_destroy_id_resp resp;
	struct rdma_ucm_destroy_id in = {.response = (uintptr_t)&resp, .id = id};

	errno = cm_run(fd, RDMA_USER_CM_CMD_DESTROY_ID, &in, sizeof(in), sizeof(resp));
	return errno == 0 ? (int)resp.events_reported : -1;
}

static inline struct sockaddr_in
cm_addr(const char *ip, uint16_t port)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(port)};

	HOLDS(inet_pton(AF_INET, ip, &addr.sin_addr) == 1);
	return addr;
}

static inline int
cm_bind(int fd, uint32_t id, const char *ip, uint16_t port)
{
	struct sockaddr_in addr = cm_addr(ip, port);
	struct rdma_ucm_bind_ip in = {.id = id};

	memcpy(&in.addr, &addr, sizeof(addr));
	return cm_run(fd, RDMA_USER_CM_CMD_BIND_IP, &in, sizeof(in), 0);
}

/* The device and the port of an ID; 0 before it has one. */
static inline struct rdma_ucm_query_addr_resp
cm_query(int fd, uint32_t id)
{
	struct rdma_ucm_query_addr_resp resp = {.node_guid = 0};
	struct rdma_ucm_query in = {.response = (uintptr_t)&resp, .id = id};

	HOLDS(cm_run(fd, RDMA_USER_CM_CMD_QUERY, &in, sizeof(in), sizeof(resp)) == 0);
	return resp;
}

static inline int
cm_listen(int fd, uint32_t id, uint32_t backlog)
{
	struct rdma_ucm_listen in = {.id = id, .backlog = backlog};

	return cm_run(fd, RDMA_USER_CM_CMD_LISTEN, &in, sizeof(in), 0);
}

static inline uint16_t
cm_port(int fd, uint32_t id)
{
	struct rdma_ucm_query_addr_resp resp;
	struct rdma_ucm_query in = {.response = (uintptr_t)&resp, .id = id};
	struct sockaddr_in addr;

	HOLDS(cm_run(fd, RDMA_USER_CM_CMD_QUERY, &in, sizeof(in), sizeof(resp)) == 0);
	memcpy(&addr, &resp.src_addr, sizeof(addr));
	return ntohs(addr.sin_port);
}

/* Get an event: 0 or an errno. */
static inline int
cm_event(int fd, struct rdma_ucm_event_resp *resp)
{
	struct rdma_ucm_get_event in = {.response = (uintptr_t)resp};

	memset(resp, 0, sizeof(*resp));
	return cm_run(fd, RDMA_USER_CM_CMD_GET_EVENT, &in, sizeof(in), sizeof(*resp));
}

/* Get an event of that type. */
static inline struct rdma_ucm_event_resp
cm_expect(int fd, uint32_t type)
{
	struct rdma_ucm_event_resp resp;

	HOLDS(cm_event(fd, &resp) == 0);
	HOLDS(resp.event == type);
	return resp;
}

/* The same; the end of time-wait of an earlier connection may precede it. */
static inline struct rdma_ucm_event_resp
cm_expect_next(int fd, uint32_t type)
{
	struct rdma_ucm_event_resp resp;

	do {
		HOLDS(cm_event(fd, &resp) == 0);
	} while (resp.event == TIMEWAIT_EXIT);
	if (resp.event != type)
		printf("event %u, status %d, instead of %u\n", resp.event, (int)resp.status, type);
	HOLDS(resp.event == type);
	return resp;
}

static inline int
cm_resolve_addr(int fd, uint32_t id, const char *ip, uint16_t port)
{
	struct sockaddr_in addr = cm_addr(ip, port);
	struct rdma_ucm_resolve_ip in = {.id = id, .timeout_ms = 60000};

	memcpy(&in.dst_addr, &addr, sizeof(addr));
	return cm_run(fd, RDMA_USER_CM_CMD_RESOLVE_IP, &in, sizeof(in), 0);
}

/* Resolve address and route. */
static inline void
cm_resolve(int fd, uint32_t id, uint16_t port)
{
	struct rdma_ucm_resolve_route in = {.id = id, .timeout_ms = 60000};

	HOLDS(cm_resolve_addr(fd, id, LOOPBACK, port) == 0);
	HOLDS(cm_expect(fd, ADDR_RESOLVED).status == 0);
	HOLDS(cm_run(fd, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &in, sizeof(in), 0) == 0);
	HOLDS(cm_expect(fd, ROUTE_RESOLVED).status == 0);
}

/* Whether peers are other hosts: messages are MADs, and no Unix sockets have names of ports. */
static inline bool
cm_has_address(void)
{
	const char *device = getenv("RMEM_IBV");

	return device != NULL && strstr(device, ",ip=") != NULL;
}

/* Parameters with that much private data: bytes 1, 2, 3 and on. */
static inline struct rdma_ucm_conn_param
cm_param(uint32_t qp_num, uint8_t len)
{
	struct rdma_ucm_conn_param param = {.qp_num = qp_num,
			.responder_resources = 3,
			.initiator_depth = 2,
			.retry_count = 7,
			.rnr_retry_count = 6,
			.private_data_len = len,
			.valid = 1};
	int i;

	for (i = 0; i < len; i++)
		param.private_data[i] = (uint8_t)(i + 1);
	return param;
}

/* The number of a QP: param's, or one that no other connection has, and no QP of the process. */
static inline uint32_t
cm_qp_num(const struct rdma_ucm_conn_param *param)
{
	static uint32_t last = 0x800000;

	return param->qp_num > 1 ? param->qp_num : ++last;
}

static inline int
cm_connect(int fd, uint32_t id, const struct rdma_ucm_conn_param *param)
{
	struct rdma_ucm_connect in = {.conn_param = *param, .id = id};

	in.conn_param.qp_num = cm_qp_num(param);
	return cm_run(fd, RDMA_USER_CM_CMD_CONNECT, &in, sizeof(in), 0);
}

/* Accept a request, or a response if param is NULL. */
static inline int
cm_accept(int fd, uint32_t id, uint64_t uid, const struct rdma_ucm_conn_param *param)
{
	struct rdma_ucm_accept in = {.uid = uid, .id = id};

	if (param != NULL) {
		in.conn_param = *param;
		in.conn_param.qp_num = cm_qp_num(param);
	}
	return cm_run(fd, RDMA_USER_CM_CMD_ACCEPT, &in, sizeof(in), 0);
}

static inline int
cm_reject(int fd, uint32_t id, const void *data, uint8_t len)
{
	struct rdma_ucm_reject in = {.id = id, .private_data_len = len};

	memcpy(in.private_data, data, len);
	return cm_run(fd, RDMA_USER_CM_CMD_REJECT, &in, sizeof(in), 0);
}

static inline int
cm_disconnect(int fd, uint32_t id)
{
	struct rdma_ucm_disconnect in = {.id = id};

	return cm_run(fd, RDMA_USER_CM_CMD_DISCONNECT, &in, sizeof(in), 0);
}

/* A listening ID of 127.0.0.1 at any port. */
static inline uint32_t
cm_listener(int fd, uint16_t ps, uint16_t *port)
{
	uint32_t id = cm_create(fd, ps);

	HOLDS(cm_bind(fd, id, LOOPBACK, 0) == 0);
	HOLDS(cm_listen(fd, id, 0) == 0);
	*port = cm_port(fd, id);
	return id;
}

/* An ID of the client's channel that connects to one of the server's, which listens. */
static inline uint32_t
cm_request(int server, int client, uint16_t ps, const struct rdma_ucm_conn_param *param,
		uint32_t *listener)
{
	uint32_t active;
	uint16_t port;

	*listener = cm_listener(server, ps, &port);
	active = cm_create(client, ps);
	cm_resolve(client, active, port);
	HOLDS(cm_connect(client, active, param) == 0);
	return active;
}

/* Connect an ID of the client's channel, with that QP, to the port, where one of the server's
 * listens. */
static inline void
cm_establish_qp(int server, int client, uint16_t port, uint32_t qp_num, uint32_t *passive,
		uint32_t *active)
{
	struct rdma_ucm_conn_param param = cm_param(qp_num, 0);
	const struct rdma_ucm_conn_param reply = cm_param(1, 0);

	*active = cm_create(client, RDMA_PS_TCP);
	cm_resolve(client, *active, port);
	HOLDS(cm_connect(client, *active, &param) == 0);
	*passive = cm_expect(server, CONNECT_REQUEST).id;
	HOLDS(cm_accept(server, *passive, 1000, &reply) == 0);
	HOLDS(cm_expect(client, CONNECT_RESPONSE).id == *active);
	HOLDS(cm_accept(client, *active, 0, NULL) == 0);
	HOLDS(cm_expect(server, ESTABLISHED).id == *passive);
}

/* The same, without a QP of this process. */
static inline void
cm_establish(int server, int client, uint16_t port, uint32_t *passive, uint32_t *active)
{
	cm_establish_qp(server, client, port, 1, passive, active);
}

/* The name at which an ID listens that is bound to a port of 127.0.0.1, doc/dropin.md. */
static inline socklen_t
cm_name(uint16_t ps, uint16_t port, struct sockaddr_un *name)
{
	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			(size_t)snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1,
					"rmem_rdma_cm/%04x/%u/l/400000000000000000000ffff7f000001",
					ps, port));
}

#endif
