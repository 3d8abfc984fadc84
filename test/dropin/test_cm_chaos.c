/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Rules of chaos= about rdma_cm: the event of each, what the peer gets, and that the next
 * connection is made; between processes of the host and over the wire. The log of each replays.
 */

#include "cm_cmd.h"

#define ADDR0 "127.0.16.92"
#define ADDR1 "127.0.16.93"

static char log_path[] = "/tmp/rmem-cm-chaos.XXXXXX";
static bool has_wire;
static int server, client;
static uint16_t port_of_next;

static int
resolve_addr(uint32_t id, uint16_t port)
{
	return cm_resolve_addr(client, id, has_wire ? ADDR1 : LOOPBACK, port);
}

static int
resolve_route(uint32_t id)
{
	struct rdma_ucm_resolve_route in = {.id = id, .timeout_ms = 60000};

	return cm_run(client, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &in, sizeof(in), 0);
}

static uint32_t
listener(uint16_t ps, uint16_t *port)
{
	uint32_t id = cm_create(server, ps);

	HOLDS(cm_bind(server, id, has_wire ? ADDR1 : LOOPBACK, 0) == 0);
	HOLDS(cm_listen(server, id, 0) == 0);
	*port = cm_port(server, id);
	return id;
}

static uint32_t
bound(uint16_t ps)
{
	uint32_t id = cm_create(client, ps);

	HOLDS(cm_bind(client, id, has_wire ? ADDR0 : LOOPBACK, 0) == 0);
	return id;
}

/* An ID that has sent a request to the port. */
static uint32_t
request(uint16_t ps, uint16_t port)
{
	const struct rdma_ucm_conn_param param = cm_param(1, 4);
	uint32_t id = bound(ps);

	HOLDS(resolve_addr(id, port) == 0);
	HOLDS(cm_expect_next(client, ADDR_RESOLVED).status == 0);
	HOLDS(resolve_route(id) == 0);
	HOLDS(cm_expect_next(client, ROUTE_RESOLVED).status == 0);
	HOLDS(cm_connect(client, id, &param) == 0);
	return id;
}

/* Its request is accepted: the ID of the server. Private data of a reply exceed those of a REJ. */
static uint32_t
accept_request(void)
{
	const struct rdma_ucm_conn_param reply = cm_param(1, 196);
	uint32_t id = cm_expect_next(server, CONNECT_REQUEST).id;

	HOLDS(cm_accept(server, id, 1000, &reply) == 0);
	return id;
}

static void
answer(uint32_t active)
{
	HOLDS(cm_expect_next(client, CONNECT_RESPONSE).id == active);
	HOLDS(cm_accept(client, active, 0, NULL) == 0);
}

/* No rule hits the next one. */
static void
connect_well(uint16_t port)
{
	uint32_t active = request(RDMA_PS_TCP, port), passive = accept_request();

	answer(active);
	HOLDS(cm_expect_next(server, ESTABLISHED).id == passive);
	HOLDS(cm_disconnect(client, active) == 0);
	HOLDS(cm_expect_next(client, DISCONNECTED).id == active);
	HOLDS(cm_expect_next(server, DISCONNECTED).id == passive);
	HOLDS(cm_destroy(client, active) >= 0 && cm_destroy(server, passive) >= 0);
}

/* rdma_resolve_addr(3): an address that is not resolved may be resolved again. */
static void
address_times_out(uint16_t port)
{
	uint32_t id = bound(RDMA_PS_TCP);

	HOLDS(resolve_addr(id, port) == 0);
	HOLDS((int)cm_expect_next(client, ADDR_ERROR).status == -ETIMEDOUT);
	HOLDS(resolve_addr(id, port) == 0);
	HOLDS(cm_expect_next(client, ADDR_RESOLVED).status == 0);
	HOLDS(cm_destroy(client, id) == 2);
	connect_well(port);
}

static void
route_times_out(uint16_t port)
{
	uint32_t id = bound(RDMA_PS_TCP);

	HOLDS(resolve_addr(id, port) == 0);
	HOLDS(cm_expect_next(client, ADDR_RESOLVED).status == 0);
	HOLDS(resolve_route(id) == 0);
	HOLDS((int)cm_expect_next(client, ROUTE_ERROR).status == -ETIMEDOUT);
	HOLDS(resolve_route(id) == 0);
	HOLDS(cm_expect_next(client, ROUTE_RESOLVED).status == 0);
	HOLDS(cm_destroy(client, id) == 3);
	connect_well(port);
}

/* As with the kernel, a step that has not ended is not begun again; the ID may be destroyed. */
static void
step_in_progress_is_not_repeated(uint16_t port)
{
	uint32_t id = bound(RDMA_PS_TCP), other = bound(RDMA_PS_TCP);

	HOLDS(resolve_addr(id, port) == 0);
	HOLDS(resolve_addr(id, port) == EINVAL);
	HOLDS(cm_destroy(client, id) == 0);
	HOLDS(resolve_addr(other, port) == 0);
	HOLDS(cm_expect_next(client, ADDR_RESOLVED).status == 0);
	HOLDS(resolve_route(other) == 0);
	HOLDS(resolve_route(other) == EINVAL);
	HOLDS(cm_destroy(client, other) == 1);
	connect_well(port);
}

/* IBTA 12.6.7: the event has the reason, and 148 bytes of private data. */
static void
request_is_rejected(uint16_t port)
{
	uint32_t id = request(RDMA_PS_TCP, port);
	struct rdma_ucm_event_resp event = cm_expect_next(client, REJECTED);

	HOLDS(event.id == id && event.status == 10 && event.param.conn.private_data_len == 148);
	HOLDS(!is_readable(server));
	HOLDS(cm_destroy(client, id) == 3);
	connect_well(port);
}

static void
request_is_not_answered(uint16_t port)
{
	uint32_t id = request(RDMA_PS_TCP, port);

	HOLDS((int)cm_expect_next(client, UNREACHABLE).status == -ETIMEDOUT);
	HOLDS(!is_readable(server));
	HOLDS(cm_destroy(client, id) == 3);
	connect_well(port);
}

/* The IDs of a connection that has ended, and a new connection. */
static void
destroy_both(uint16_t port, uint32_t active, uint32_t passive)
{
	HOLDS(cm_destroy(client, active) >= 0 && cm_destroy(server, passive) >= 0);
	connect_well(port);
}

/* Both sides get it. */
static void
reply_is_rejected(uint16_t port)
{
	uint32_t active = request(RDMA_PS_TCP, port), passive = accept_request();

	HOLDS(cm_expect_next(server, REJECTED).status == 28);
	HOLDS(cm_expect_next(client, REJECTED).status == 28);
	destroy_both(port, active, passive);
}

/* IBTA 12.6.7.2, reason 4: the peer is informed. */
static void
reply_is_not_answered(uint16_t port)
{
	uint32_t active = request(RDMA_PS_TCP, port), passive = accept_request();

	HOLDS((int)cm_expect_next(server, UNREACHABLE).status == -ETIMEDOUT);
	HOLDS(cm_expect_next(client, REJECTED).status == 4);
	destroy_both(port, active, passive);
}

/* The server never gets ESTABLISHED. */
static void
reply_is_followed_by_disconnect(uint16_t port)
{
	uint32_t active = request(RDMA_PS_TCP, port), passive = accept_request();

	answer(active);
	HOLDS(cm_expect_next(server, DISCONNECTED).id == passive);
	HOLDS(cm_expect_next(client, DISCONNECTED).id == active);
	destroy_both(port, active, passive);
}

/* Of either side; programs disconnect after the event, too. */
static void
connection_is_disconnected(uint16_t port)
{
	uint32_t active = request(RDMA_PS_TCP, port), passive = accept_request();

	answer(active);
	HOLDS(cm_expect_next(server, ESTABLISHED).id == passive);
	HOLDS(cm_expect_next(client, DISCONNECTED).id == active);
	HOLDS(cm_disconnect(client, active) == 0);
	HOLDS(cm_expect_next(server, DISCONNECTED).id == passive);
	HOLDS(cm_disconnect(server, passive) == 0);
	destroy_both(port, active, passive);
}

/* The DREQ of the rule never arrives: it is not in the log. */
static void
peer_rejects_before_the_fault(uint16_t port)
{
	uint32_t active = request(RDMA_PS_TCP, port), passive = accept_request();

	HOLDS(cm_expect_next(client, CONNECT_RESPONSE).id == active);
	HOLDS(cm_reject(client, active, "", 0) == 0);
	HOLDS(cm_expect_next(server, REJECTED).id == passive);
	destroy_both(port, active, passive);
}

/*
 * Each ID of the device, which is that of the client, or of both, gets the event once, and can be
 * destroyed alone. The device is there again.
 */
static void
is_removed(uint32_t active, uint32_t passive, int events)
{
	uint32_t listening = NO_ID;

	HOLDS(cm_expect_next(client, DEVICE_REMOVAL).id == active);
	HOLDS(cm_disconnect(client, active) == ENXIO && resolve_route(active) == ENXIO);
	HOLDS(!is_readable(client));
	if (!has_wire)
		listening = cm_expect_next(server, DEVICE_REMOVAL).id;
	if (passive != NO_ID)
		HOLDS(cm_expect_next(server, has_wire ? DISCONNECTED : DEVICE_REMOVAL).id ==
				passive);
	HOLDS(cm_destroy(client, active) == events);
	HOLDS(listening == NO_ID || cm_destroy(server, listening) > 0);
	HOLDS(passive == NO_ID || cm_destroy(server, passive) >= 0);
	HOLDS(!is_readable(server));
	(void)listener(RDMA_PS_TCP, &port_of_next);
	connect_well(port_of_next);
}

static void
device_of_route_is_removed(uint16_t port)
{
	uint32_t id = bound(RDMA_PS_TCP);

	HOLDS(resolve_addr(id, port) == 0);
	HOLDS(cm_expect_next(client, ADDR_RESOLVED).status == 0);
	HOLDS(resolve_route(id) == 0);
	is_removed(id, NO_ID, 2);
}

static void
device_of_request_is_removed(uint16_t port)
{
	is_removed(request(RDMA_PS_TCP, port), NO_ID, 3);
}

static void
device_of_connection_is_removed(uint16_t port)
{
	uint32_t active = request(RDMA_PS_TCP, port), passive = accept_request();

	answer(active);
	HOLDS(cm_expect_next(server, ESTABLISHED).id == passive);
	is_removed(active, passive, 4);
}

/* Of the server, which has accepted, but not sent the reply: the client's request is rejected. */
static void
device_of_reply_is_removed(uint16_t port)
{
	uint32_t active = request(RDMA_PS_TCP, port), passive = accept_request();
	uint32_t listening = cm_expect_next(server, DEVICE_REMOVAL).id;

	HOLDS(cm_expect_next(server, DEVICE_REMOVAL).id == passive);
	(void)cm_expect_next(client, has_wire ? REJECTED : DEVICE_REMOVAL);
	HOLDS(cm_destroy(server, listening) > 0 && cm_destroy(server, passive) >= 0);
	HOLDS(cm_destroy(client, active) == 3);
	(void)listener(RDMA_PS_TCP, &port_of_next);
	connect_well(port_of_next);
}

/* rdma_get_cm_event(3): of UD the status of the SIDR REP; 2: rejected. */
static void
datagram_request_is_rejected(uint16_t port)
{
	uint16_t udp_port;
	uint32_t of_udp = listener(RDMA_PS_UDP, &udp_port), id = request(RDMA_PS_UDP, udp_port);

	HOLDS(cm_expect_next(client, UNREACHABLE).status == 2);
	HOLDS(!is_readable(server));
	HOLDS(cm_destroy(client, id) == 3 && cm_destroy(server, of_udp) == 0);
	connect_well(port);
}

/* Rules of the client's device, or of the server's; the line that the log has, NULL: none. */
static const struct {
	const char *rule;
	const char *line;
	bool is_server;
	void (*run)(uint16_t port);
} cases[] = {
		{"cm_resolve_addr:TIMEOUT@nth:1@ms:5",
				" cm_resolve_addr:TIMEOUT@ms:5@nth:1 # rdma_cm ID ", false,
				address_times_out},
		{"cm_resolve_route:TIMEOUT@nth:1@ms:5", " cm_resolve_route:TIMEOUT@ms:5@nth:1 # ",
				false, route_times_out},
		{"cm_resolve_addr:TIMEOUT@nth:1@ms:600000+cm_resolve_route:TIMEOUT@nth:1@ms:600000",
				NULL, false, step_in_progress_is_not_repeated},
		{"cm_connect:REJECT@times:1@reason:10",
				" cm_connect:REJECT@ms:1@reason:10@nth:1 # ", false,
				request_is_rejected},
		{"cm_connect:REJECT@nth:1", " cm_connect:REJECT@ms:1@reason:28@nth:1 # ", false,
				datagram_request_is_rejected},
		{"cm_connect:UNREACHABLE@nth:1", " cm_connect:UNREACHABLE@ms:1@nth:1 # ", false,
				request_is_not_answered},
		{"cm_connect:TIMEOUT@nth:1@ms:20", " cm_connect:TIMEOUT@ms:20@nth:1 # ", false,
				request_is_not_answered},
		{"cm_accept:REJECT@nth:1", " cm_accept:REJECT@ms:1@reason:28@nth:1 # ", true,
				reply_is_rejected},
		{"cm_accept:TIMEOUT@nth:1@ms:20", " cm_accept:TIMEOUT@ms:20@nth:1 # ", true,
				reply_is_not_answered},
		{"cm_accept:DISCONNECTED@nth:1", " cm_accept:DISCONNECTED@nth:1 # ", true,
				reply_is_followed_by_disconnect},
		{"cm_established:DISCONNECTED@nth:1@ms:20",
				" cm_established:DISCONNECTED@ms:20@nth:1 # ", false,
				connection_is_disconnected},
		{"cm_established:DISCONNECTED@nth:1@ms:20",
				" cm_established:DISCONNECTED@ms:20@nth:1 # ", true,
				connection_is_disconnected},
		{"cm_accept:DISCONNECTED@nth:1", NULL, true, peer_rejects_before_the_fault},
		{"cm_resolve_route:DEVICE_REMOVAL@nth:1",
				" cm_resolve_route:DEVICE_REMOVAL@ms:1@nth:1 # ", false,
				device_of_route_is_removed},
		{"cm_connect:DEVICE_REMOVAL@nth:1@ms:5", " cm_connect:DEVICE_REMOVAL@ms:5@nth:1 # ",
				false, device_of_request_is_removed},
		{"cm_accept:DEVICE_REMOVAL@nth:1", " cm_accept:DEVICE_REMOVAL@ms:1@nth:1 # ", true,
				device_of_reply_is_removed},
		{"cm_established:DEVICE_REMOVAL@nth:1@ms:20",
				" cm_established:DEVICE_REMOVAL@ms:20@nth:1 # ", false,
				device_of_connection_is_removed},
};

/* In a process of its own, which has its own devices. */
static void
run_case(unsigned int i, const char *rules)
{
	char devices[256];
	uint16_t port;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	HOLDS(pid >= 0);
	if (pid == 0) {
		if (has_wire)
			snprintf(devices, sizeof(devices),
					"soft0,ip=" ADDR0 "%s%s|soft1,ip=" ADDR1 "%s%s",
					cases[i].is_server ? "" : ",chaos=",
					cases[i].is_server ? "" : rules,
					cases[i].is_server ? ",chaos=" : "",
					cases[i].is_server ? rules : "");
		else
			snprintf(devices, sizeof(devices), "soft0,chaos=%s", rules);
		HOLDS(setenv("RMEM_IBV", devices, 1) == 0);
		server = cm_open();
		client = cm_open();
		(void)listener(RDMA_PS_TCP, &port);
		cases[i].run(port);
		_exit(0);
	}
	HOLDS(waitpid(pid, &status, 0) == pid);
	if (status != 0)
		printf("%s, with%s wire: status %d\n", rules, has_wire ? "" : "out", status);
	HOLDS(status == 0);
}

static void
expect_line(const char *line)
{
	FILE *f = fopen(log_path, "r");
	char text[1024] = "";
	size_t n;

	HOLDS(f != NULL);
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	/* A fault that has not happened: the log has its first line alone. */
	if (line == NULL) {
		HOLDS(strchr(text, '\n') == text + n - 1);
		return;
	}
	if (strstr(text, line) == NULL)
		printf("'%s' is not in: %s\n", line, text);
	HOLDS(strstr(text, line) != NULL);
}

int
main(void)
{
	char rules[192];
	int fd = mkstemp(log_path), wire;
	unsigned int i;

	HOLDS(fd >= 0 && close(fd) == 0);
	for (wire = 0; wire < 2; wire++) {
		has_wire = wire != 0;
		for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			snprintf(rules, sizeof(rules), "%s+log:%s", cases[i].rule, log_path);
			run_case(i, rules);
			expect_line(cases[i].line);
			if (cases[i].line == NULL)
				continue;
			snprintf(rules, sizeof(rules), "replay:%s", log_path);
			run_case(i, rules);
		}
	}
	HOLDS(unlink(log_path) == 0);
	return 0;
}
