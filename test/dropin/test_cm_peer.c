/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Peers of rdma_cm: hostile ones, killed ones, and children of fork(). */

#include <sched.h>
#include <signal.h>

#include "cm_cmd.h"
#include "cm_raw.h"
#include "count_entries.h"

#define MAX_PENDING 64
#define ROUNDS      2000

static int server, client; /* channels */

/* A request that passes most checks, or another message. */
static void
almost_message(struct raw_packet *packet, uint16_t port, unsigned int *seed)
{
	int i;

	raw_req(packet, port, (uint32_t)rand_r(seed), (uint32_t)rand_r(seed) & 0xffffff);
	if (rand_r(seed) % 4 == 0)
		packet->mad[17] = (uint8_t)(0x10 + rand_r(seed) % 9); /* the attribute */
	for (i = rand_r(seed) % 4; i > 0; i--)
		packet->mad[(size_t)rand_r(seed) % sizeof(packet->mad)] = (uint8_t)rand_r(seed);
}

/* Fetch and destroy what the attackers requested. */
static void
drain(void)
{
	struct rdma_ucm_event_resp event;

	HOLDS(fcntl(server, F_SETFL, O_NONBLOCK) == 0);
	while (cm_event(server, &event) == 0) {
		HOLDS(event.event == CONNECT_REQUEST && event.param.conn.private_data_len == 56);
		HOLDS(cm_destroy(server, event.id) == 0);
	}
	HOLDS(errno == EAGAIN && fcntl(server, F_SETFL, 0) == 0);
}

/* The server still serves others. */
static void
serves(uint16_t port)
{
	uint32_t active, passive;

	cm_establish(server, client, port, &passive, &active);
	HOLDS(cm_destroy(server, passive) == 1);
	HOLDS(cm_expect(client, DISCONNECTED).id == active);
	HOLDS(cm_destroy(client, active) == 4);
}

static void
garbage_is_dropped_by_a_listener(void)
{
	unsigned int seed = (unsigned int)getpid();
	struct raw_packet packets[2];
	uint8_t *bytes = (uint8_t *)packets;
	uint32_t listener;
	size_t i, j, size;
	uint16_t port;
	int fd;

	printf("seed %u\n", seed);
	listener = cm_listener(server, RDMA_PS_TCP, &port);
	for (i = 0; i < ROUNDS; i++) {
		fd = raw_connect(port);
		for (j = 0; j < sizeof(packets); j++)
			bytes[j] = (uint8_t)rand_r(&seed);
		if (i % 4 != 0)
			almost_message(packets, port, &seed);
		size = i % 8 < 4 ? sizeof(*packets) : 1 + (size_t)rand_r(&seed) % sizeof(packets);
		HOLDS(send(fd, packets, size, MSG_NOSIGNAL) == (ssize_t)size);
		if (i % 2 == 0)
			drain();
		close(fd);
		drain();
	}
	serves(port);
	cm_destroy(server, listener);
}

static void
silent_connections_are_bounded(void)
{
	uint32_t listener;
	int i, n, fds[3 * MAX_PENDING];
	uint16_t port;

	listener = cm_listener(server, RDMA_PS_TCP, &port);
	n = count_entries("/proc/self/fd");
	for (i = 0; i < 3 * MAX_PENDING; i++) {
		fds[i] = raw_connect(port);
		drain();
	}
	HOLDS(count_entries("/proc/self/fd") <= n + 4 * MAX_PENDING);
	serves(port);
	for (i = 0; i < 3 * MAX_PENDING; i++)
		close(fds[i]);
	while (count_entries("/proc/self/fd") > n)
		drain();
	cm_destroy(server, listener);
}

/* A listener at a free port, by a program of its own. */
static int
raw_listener(uint16_t *port)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	uint32_t bound = cm_create(server, RDMA_PS_TCP);
	struct sockaddr_un name;
	socklen_t len;

	HOLDS(cm_bind(server, bound, LOOPBACK, 0) == 0);
	*port = cm_port(server, bound);
	HOLDS(cm_destroy(server, bound) == 0);
	len = cm_name(RDMA_PS_TCP, *port, &name);
	HOLDS(fd >= 0 && bind(fd, (struct sockaddr *)&name, len) == 0 && listen(fd, 1) == 0);
	return fd;
}

/* Answer a request with bytes that are no message. */
static void
answer(const void *data, size_t size)
{
	const struct rdma_ucm_conn_param param = cm_param(1, 0);
	uint32_t active = cm_create(client, RDMA_PS_TCP);
	struct raw_packet req;
	uint16_t port;
	int fd = raw_listener(&port), peer;

	cm_resolve(client, active, port);
	HOLDS(cm_connect(client, active, &param) == 0);
	peer = accept(fd, NULL, NULL);
	raw_recv(peer, RAW_REQ, &req);
	HOLDS(send(peer, data, size, MSG_NOSIGNAL) == (ssize_t)size);
	HOLDS(cm_expect(client, REJECTED).status == RAW_REJ_CONSUMER);
	close(fd);
	close(peer);
	cm_destroy(client, active);
}

static void
garbage_ends_a_connection(void)
{
	struct raw_packet packet;

	memset(&packet, 0xa5, sizeof(packet));
	answer(&packet, sizeof(packet));
	answer(&packet, 4);
	raw_req(&packet, 1, 1, 2);
	answer(&packet, sizeof(packet) - 1);
	packet.mad[17] = 0x19; /* LAP */
	answer(&packet, sizeof(packet));
}

/* They are of no connection, or not for its state. */
static void
other_messages_change_nothing(void)
{
	static const uint16_t types[] = {
			RAW_REQ, RAW_MRA, RAW_RTU, RAW_DREQ, RAW_DREP, RAW_SIDR_REQ, RAW_SIDR_REP};
	const struct rdma_ucm_conn_param param = cm_param(1, 0);
	uint32_t active = cm_create(client, RDMA_PS_TCP);
	struct raw_packet req, packet;
	uint16_t port;
	int fd = raw_listener(&port), peer;
	size_t i;

	cm_resolve(client, active, port);
	HOLDS(cm_connect(client, active, &param) == 0);
	peer = accept(fd, NULL, NULL);
	raw_recv(peer, RAW_REQ, &req);
	for (i = 0; i < sizeof(types) / sizeof(*types); i++) {
		raw_answer(&packet, types[i], &req);
		raw_send(peer, &packet);
		raw_answer(&packet, RAW_REP, &req);
		packet.mad[8 + i] ^= 1; /* another transaction */
		raw_send(peer, &packet);
	}
	/* The answer is the first event. */
	raw_answer(&packet, RAW_REJ, &req);
	raw_send(peer, &packet);
	HOLDS(cm_expect(client, REJECTED).status == RAW_REJ_CONSUMER);
	close(fd);
	close(peer);
	cm_destroy(client, active);
}

/* A process with both comm IDs and the QP number of a connection of others. */
static void
connection_is_ended_by_its_peer_alone(void)
{
	const struct rdma_ucm_conn_param param = cm_param(1, 0);
	struct raw_packet req, rep, packet;
	struct rdma_ucm_event_resp event;
	uint32_t listener, passive;
	uint16_t port;
	int fd, other;

	listener = cm_listener(server, RDMA_PS_TCP, &port);
	fd = raw_connect(port);
	raw_req(&req, port, 17, 18);
	raw_send(fd, &req);
	passive = cm_expect(server, CONNECT_REQUEST).id;
	HOLDS(cm_accept(server, passive, 1, &param) == 0);
	raw_recv(fd, RAW_REP, &rep);
	raw_answer(&packet, RAW_RTU, &rep);
	raw_send(fd, &packet);
	HOLDS(cm_expect(server, ESTABLISHED).id == passive);
	other = raw_connect(port);
	raw_answer(&packet, RAW_DREQ, &rep);
	memcpy(packet.mad + RAW_DATA + 8, rep.mad + RAW_DATA + 12, 3); /* its QP number */
	raw_send(other, &packet);
	HOLDS(recv(other, &rep, sizeof(rep), 0) == 0); /* the server has read it */
	HOLDS(fcntl(server, F_SETFL, O_NONBLOCK) == 0);
	HOLDS(cm_event(server, &event) == EAGAIN && fcntl(server, F_SETFL, 0) == 0);
	raw_send(fd, &packet);
	HOLDS(cm_expect(server, DISCONNECTED).id == passive);
	raw_recv(fd, RAW_DREP, &rep);
	HOLDS(close(fd) == 0 && close(other) == 0);
	HOLDS(cm_destroy(server, passive) == 2 && cm_destroy(server, listener) == 1);
}

/* Run in a child: connect to the port or listen, and wait to be killed; writes a byte when it is
 * connected. */
static pid_t
child(uint16_t *port, bool is_server)
{
	uint32_t active, passive, id;
	int fds[2];
	pid_t pid;

	HOLDS(pipe(fds) == 0);
	pid = fork();
	HOLDS(pid >= 0);
	if (pid != 0) {
		if (is_server)
			HOLDS(read(fds[0], port, sizeof(*port)) == sizeof(*port));
		close(fds[0]);
		close(fds[1]);
		return pid;
	}
	HOLDS(write(client, fds, sizeof(fds)) == -1 && errno == EINVAL); /* the parent's */
	if (is_server) {
		struct rdma_ucm_conn_param param = cm_param(1, 0);

		server = cm_open();
		cm_listener(server, RDMA_PS_TCP, port);
		HOLDS(write(fds[1], port, sizeof(*port)) == sizeof(*port));
		id = cm_expect(server, CONNECT_REQUEST).id;
		HOLDS(cm_accept(server, id, 1, &param) == 0);
		cm_expect(server, ESTABLISHED);
	} else {
		client = cm_open();
		active = cm_create(client, RDMA_PS_TCP);
		cm_resolve(client, active, *port);
		passive = active;
		HOLDS(cm_connect(client, passive, &(struct rdma_ucm_conn_param){.valid = 1}) == 0);
		cm_expect(client, CONNECT_RESPONSE);
		HOLDS(cm_accept(client, active, 0, NULL) == 0);
	}
	for (;;)
		pause();
}

static void
kill_child(pid_t pid)
{
	HOLDS(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
}

static void
killed_client_disconnects(void)
{
	const struct rdma_ucm_conn_param param = cm_param(1, 0);
	uint32_t listener, passive;
	uint16_t port;
	pid_t pid;

	listener = cm_listener(server, RDMA_PS_TCP, &port);
	pid = child(&port, false);
	passive = cm_expect(server, CONNECT_REQUEST).id;
	HOLDS(cm_accept(server, passive, 1, &param) == 0);
	HOLDS(cm_expect(server, ESTABLISHED).id == passive);
	kill_child(pid);
	HOLDS(cm_expect(server, DISCONNECTED).id == passive);
	cm_destroy(server, passive);
	/* One that is killed while its request waits. */
	pid = child(&port, false);
	passive = cm_expect(server, CONNECT_REQUEST).id;
	kill_child(pid);
	(void)cm_accept(server, passive, 1, &param);
	cm_destroy(server, passive);
	serves(port);
	cm_destroy(server, listener);
}

static void
killed_server_disconnects(void)
{
	const struct rdma_ucm_conn_param param = cm_param(1, 0);
	uint32_t active = cm_create(client, RDMA_PS_TCP), again;
	uint16_t port;
	pid_t pid = child(&port, true);

	cm_resolve(client, active, port);
	HOLDS(cm_connect(client, active, &param) == 0);
	cm_expect(client, CONNECT_RESPONSE);
	HOLDS(cm_accept(client, active, 0, NULL) == 0);
	kill_child(pid);
	HOLDS(cm_expect(client, DISCONNECTED).id == active);
	HOLDS(cm_destroy(client, active) == 4);
	/* Its port is free. */
	again = cm_create(server, RDMA_PS_TCP);
	HOLDS(cm_bind(server, again, LOOPBACK, port) == 0 && cm_destroy(server, again) == 0);
}

/* In a child: the kernel would destroy that of the parent. */
static void
destroy_inherited(uint32_t active, uint32_t passive)
{
	struct rdma_ucm_event_resp event;
	int own = cm_open();

	HOLDS(cm_disconnect(client, active) == EINVAL);
	HOLDS(cm_destroy(client, active) == 0 && cm_destroy(server, passive) == 0);
	HOLDS(close(server) == 0 && close(client) == 0 && close(own) == 0);
	HOLDS(cm_event(server, &event) == EBADF);
}

/* A child has no connection of its parent: its end ends none. */
static void
child_leaves_connections_alone(void)
{
	uint32_t listener, active, passive;
	struct rdma_ucm_event_resp event;
	uint16_t port;
	pid_t pid;

	listener = cm_listener(server, RDMA_PS_TCP, &port);
	cm_establish(server, client, port, &passive, &active);
	pid = fork();
	if (pid == 0) {
		destroy_inherited(active, passive);
		_exit(0);
	}
	wait_child(pid);
	HOLDS(fcntl(server, F_SETFL, O_NONBLOCK) == 0);
	HOLDS(cm_event(server, &event) == EAGAIN && fcntl(server, F_SETFL, 0) == 0);
	serves(port);
	/* Nor does a child keep a connection. */
	pid = fork();
	HOLDS(pid >= 0);
	if (pid == 0) {
		for (;;)
			pause();
	}
	HOLDS(cm_disconnect(client, active) == 0);
	HOLDS(cm_expect(server, DISCONNECTED).id == passive);
	kill_child(pid);
	HOLDS(cm_expect(client, DISCONNECTED).id == active);
	cm_destroy(client, active);
	cm_destroy(server, passive);
	cm_destroy(server, listener);
}

static int
close_channels(void *fds)
{
	const int *fd = fds;

	return close(fd[0]) != 0 || close(fd[1]) != 0;
}

/* As a program that is started by vfork() closes them before exec(). */
static void
child_that_shares_memory_closes_its_descriptors_alone(void)
{
	static uint8_t stack[1 << 16] __attribute__((aligned(16)));
	int fds[2] = {server, client};
	uint16_t port;
	pid_t pid;

	cm_listener(server, RDMA_PS_TCP, &port);
	pid = clone(close_channels, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, fds);
	wait_child(pid);
	serves(port);
}

int
main(void)
{
	int n;

	server = cm_open();
	client = cm_open();
	garbage_is_dropped_by_a_listener();
	silent_connections_are_bounded();
	n = count_entries("/proc/self/fd");
	garbage_ends_a_connection();
	other_messages_change_nothing();
	connection_is_ended_by_its_peer_alone();
	killed_client_disconnects();
	killed_server_disconnects();
	child_leaves_connections_alone();
	while (count_entries("/proc/self/fd") > n)
		drain();
	child_that_shares_memory_closes_its_descriptors_alone();
	return 0;
}
