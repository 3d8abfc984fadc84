/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Processes that end while they are connected to another address: one that exits disconnects, and a
 * child of fork() that exits does not disconnect its parent. Needs --ip 127.0.0.1; the other
 * process, which is this program with the port as its argument, has 127.0.0.2.
 */

#include "cm_cmd.h"

/* A process that connects to the port, and exits when byte arrives. */
struct peer {
	pid_t pid;
	int byte;
};

static int
connect_to(uint16_t port)
{
	const struct rdma_ucm_conn_param param = cm_param(1, 0);
	int fd = cm_open();
	uint32_t id = cm_create(fd, RDMA_PS_TCP);
	struct rdma_ucm_event_resp event;
	char byte;

	cm_resolve(fd, id, port);
	HOLDS(cm_connect(fd, id, &param) == 0);
	HOLDS(cm_expect(fd, CONNECT_RESPONSE).id == id);
	HOLDS(cm_accept(fd, id, 0, NULL) == 0);
	HOLDS(read(STDIN_FILENO, &byte, 1) == 1);
	HOLDS(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	HOLDS(cm_event(fd, &event) == EAGAIN); /* it is connected */
	return 0;
}

static struct peer
start_peer(uint16_t port)
{
	struct peer peer;
	int fds[2];
	char text[8];

	HOLDS(pipe(fds) == 0);
	snprintf(text, sizeof(text), "%u", port);
	peer.pid = fork();
	HOLDS(peer.pid >= 0);
	if (peer.pid == 0) {
		HOLDS(dup2(fds[0], STDIN_FILENO) == STDIN_FILENO && close(fds[1]) == 0);
		HOLDS(setenv("RMEM_IBV", "soft0,ip=127.0.0.2", 1) == 0);
		execl("/proc/self/exe", "test-cm_exit", text, NULL);
		_exit(127);
	}
	HOLDS(close(fds[0]) == 0);
	peer.byte = fds[1];
	return peer;
}

static void
end_child(pid_t pid)
{

	wait_child(pid);
}

int
main(int argc, char **argv)
{
	const struct rdma_ucm_conn_param param = cm_param(1, 0);
	uint32_t listener, passive;
	struct peer peer;
	uint16_t port;
	int server;
	pid_t child;

	if (argc == 2)
		return connect_to((uint16_t)strtoul(argv[1], NULL, 10));
	HOLDS(cm_has_address());
	server = cm_open();
	listener = cm_listener(server, RDMA_PS_TCP, &port);
	peer = start_peer(port);
	passive = cm_expect(server, CONNECT_REQUEST).id;
	HOLDS(cm_accept(server, passive, 1000, &param) == 0);
	HOLDS(cm_expect(server, ESTABLISHED).id == passive);
	/* It has inherited the connection, and ends as a program does. */
	child = fork();
	HOLDS(child >= 0);
	if (child == 0)
		exit(0);
	end_child(child);
	HOLDS(!is_readable(server));
	HOLDS(write(peer.byte, "", 1) == 1);
	end_child(peer.pid);
	HOLDS(cm_expect(server, DISCONNECTED).id == passive);
	HOLDS(cm_destroy(server, passive) >= 2 && cm_destroy(server, listener) == 1);
	HOLDS(close(server) == 0 && close(peer.byte) == 0);
	return 0;
}
