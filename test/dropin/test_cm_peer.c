/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Peers of rdma_cm: hostile ones, killed ones, and children of fork(). */

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "cm_cmd.h"
#include "count_entries.h"

#define MSG_SIZE     292
#define MAX_PENDING  64
#define REJ_CONSUMER 28
#define ROUNDS       2000

static int server, client; /* channels */

/* A connection to the port, by a program of its own. */
static int
attack(uint16_t port)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un name;
	socklen_t len = cm_name(RDMA_PS_TCP, port, &name);

	HOLDS(fd >= 0 && connect(fd, (struct sockaddr *)&name, len) == 0);
	return fd;
}

/* A message that passes most checks: magic, a type, and small numbers. */
static void
almost_message(uint8_t msg[MSG_SIZE], uint16_t port, unsigned int *seed)
{
	static const uint8_t head[] = {0x72, 0x6d, 0x63, 0x31};
	static const uint8_t ip[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};
	int i;

	memset(msg, 0, MSG_SIZE);
	memcpy(msg, head, sizeof(head));
	msg[4] = (uint8_t)(1 + rand_r(seed) % 4);
	msg[6] = RDMA_PS_TCP >> 8;
	msg[7] = RDMA_PS_TCP & 0xff;
	msg[30] = 3; /* MTU */
	msg[56] = 1;
	msg[76] = 1;
	msg[78] = (uint8_t)(port >> 8);
	msg[79] = (uint8_t)port;
	memcpy(msg + 80, ip, sizeof(ip));
	for (i = rand_r(seed) % 4; i > 0; i--)
		msg[(size_t)rand_r(seed) % MSG_SIZE] = (uint8_t)rand_r(seed);
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
	uint8_t msg[2 * MSG_SIZE];
	uint32_t listener;
	size_t i, j, size;
	uint16_t port;
	int fd;

	printf("seed %u\n", seed);
	listener = cm_listener(server, RDMA_PS_TCP, &port);
	for (i = 0; i < ROUNDS; i++) {
		fd = attack(port);
		for (j = 0; j < sizeof(msg); j++)
			msg[j] = (uint8_t)rand_r(&seed);
		if (i % 4 != 0)
			almost_message(msg, port, &seed);
		size = i % 8 < 4 ? MSG_SIZE : 1 + (size_t)rand_r(&seed) % sizeof(msg);
		HOLDS(send(fd, msg, size, MSG_NOSIGNAL) == (ssize_t)size);
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
		fds[i] = attack(port);
		HOLDS(send(fds[i], "rmc1", 4, MSG_NOSIGNAL) == 4);
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

/* A listener that answers each request with that. */
static void
answer(const uint8_t *data, size_t size, uint32_t type)
{
	const struct rdma_ucm_conn_param param = cm_param(1, 0);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), peer;
	uint32_t active = cm_create(client, RDMA_PS_TCP), bound;
	uint8_t msg[MSG_SIZE];
	struct sockaddr_un name;
	socklen_t len;
	uint16_t port;

	/* A free port. */
	bound = cm_create(server, RDMA_PS_TCP);
	HOLDS(cm_bind(server, bound, LOOPBACK, 0) == 0);
	port = cm_port(server, bound);
	HOLDS(cm_destroy(server, bound) == 0);
	len = cm_name(RDMA_PS_TCP, port, &name);
	HOLDS(bind(fd, (struct sockaddr *)&name, len) == 0 && listen(fd, 1) == 0);
	cm_resolve(client, active, port);
	HOLDS(cm_connect(client, active, &param) == 0);
	peer = accept(fd, NULL, NULL);
	HOLDS(peer >= 0 && recv(peer, msg, sizeof(msg), MSG_WAITALL) == MSG_SIZE);
	HOLDS(send(peer, data, size, MSG_NOSIGNAL) == (ssize_t)size);
	cm_expect(client, type);
	close(fd);
	close(peer);
	cm_destroy(client, active);
}

static void
garbage_is_dropped_by_a_client(void)
{
	unsigned int seed = (unsigned int)getpid();
	uint8_t msg[MSG_SIZE];
	int i;

	memset(msg, 0xa5, sizeof(msg));
	answer(msg, sizeof(msg), REJECTED);
	for (i = 0; i < 8; i++) {
		almost_message(msg, 1, &seed);
		msg[4] = (uint8_t)(i % 2 == 0 ? 1 : 3); /* a request, RTU */
		answer(msg, sizeof(msg), REJECTED);
	}
	almost_message(msg, 1, &seed);
	msg[4] = 4;
	msg[53] = 255; /* private data */
	answer(msg, sizeof(msg), REJECTED);
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

/* A child has no connection of its parent: its end ends none. */
static void
child_leaves_connections_alone(void)
{
	uint32_t listener, active, passive;
	struct rdma_ucm_event_resp event;
	uint16_t port;
	int status;
	pid_t pid;

	listener = cm_listener(server, RDMA_PS_TCP, &port);
	cm_establish(server, client, port, &passive, &active);
	pid = fork();
	HOLDS(pid >= 0);
	if (pid == 0) {
		close(server);
		close(client);
		_exit(0);
	}
	HOLDS(waitpid(pid, &status, 0) == pid && status == 0);
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
	int status, fds[2] = {server, client};
	uint16_t port;
	pid_t pid;

	cm_listener(server, RDMA_PS_TCP, &port);
	pid = clone(close_channels, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, fds);
	HOLDS(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
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
	garbage_is_dropped_by_a_client();
	killed_client_disconnects();
	killed_server_disconnects();
	child_leaves_connections_alone();
	while (count_entries("/proc/self/fd") > n)
		drain();
	child_that_shares_memory_closes_its_descriptors_alone();
	return 0;
}
