/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* rdma_cm among the processes of a host: what other processes and users do with names of ports, and
 * connections that end early. */

#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

#include "cm_cmd.h"
#include "cm_raw.h"
#include "count_entries.h"

#define REJ_INVALID_SERVICE_ID 8
#define OTHER_USER             65534
#define MAX_FDS                256 /* of this process */
#define NB_REQUESTS            (MAX_FDS - 32)

static int server, client; /* channels */
static int replaced = -1;  /* a listener that another one replaces before the next send() */

/* A socket with a name of the port: rmem_rdma_cm/0106/PORT, and then the text. */
static int
hold(uint16_t port, const char *text)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int len = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "rmem_rdma_cm/0106/%u%s",
			port, text);

	HOLDS(fd >= 0 &&
			bind(fd, (struct sockaddr *)&name,
					(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1) +
							(socklen_t)len) == 0);
	return fd;
}

/* A listener that checks no rules of ports. */
static int
hold_listening(uint16_t port, const char *text)
{
	int fd = hold(port, text);

	HOLDS(listen(fd, 8) == 0);
	return fd;
}

#define AT_LOOPBACK "/l/400000000000000000000ffff7f000001"
#define AT_ALL      "/l/4any"

static uint16_t
free_port(void)
{
	uint32_t id = cm_create(server, RDMA_PS_TCP);
	uint16_t port;

	HOLDS(cm_bind(server, id, LOOPBACK, 0) == 0);
	port = cm_port(server, id);
	HOLDS(cm_destroy(server, id) == 0);
	return port;
}

static void
disconnect_without_rtu_is_reported(void)
{
	const struct rdma_ucm_conn_param param = cm_param(1, 0);
	struct raw_packet packet, rep;
	uint32_t listener, passive;
	uint16_t port;
	int fd;

	listener = cm_listener(server, RDMA_PS_TCP, &port);
	fd = raw_connect(port);
	raw_req(&packet, port, 17, 18);
	raw_send(fd, &packet);
	passive = cm_expect(server, CONNECT_REQUEST).id;
	HOLDS(cm_accept(server, passive, 1, &param) == 0);
	raw_recv(fd, RAW_REP, &rep);
	raw_answer(&packet, RAW_DREQ, &rep);
	memcpy(packet.mad + RAW_DATA + 8, rep.mad + RAW_DATA + 12, 3); /* its QP number */
	raw_send(fd, &packet);
	HOLDS(cm_expect(server, DISCONNECTED).status == 0);
	close(fd);
	HOLDS(cm_destroy(server, passive) == 1 && cm_destroy(server, listener) == 1);
}

/* Of the library, too. */
ssize_t
send(int fd, const void *data, size_t size, int flags)
{
	struct sockaddr_un name;
	socklen_t len = sizeof(name);

	if (replaced >= 0) {
		HOLDS(getsockname(replaced, (struct sockaddr *)&name, &len) == 0);
		HOLDS(close(replaced) == 0);
		HOLDS(socket(AF_UNIX, SOCK_SEQPACKET, 0) == replaced);
		HOLDS(bind(replaced, (struct sockaddr *)&name, len) == 0);
		HOLDS(listen(replaced, 8) == 0);
		replaced = -1;
	}
	return sendto(fd, data, size, flags, NULL, 0);
}

/* False: this thread had no CPU for the 2 s in which the client tries again. */
static bool
request_after_replacement(void)
{
	const struct rdma_ucm_conn_param param = cm_param(1, 0);
	uint32_t active = cm_create(client, RDMA_PS_TCP);
	struct raw_packet req, packet;
	struct rdma_ucm_event_resp event;
	uint16_t port = free_port();
	int fd = hold_listening(port, AT_LOOPBACK), peer, ret = EAGAIN;

	cm_resolve(client, active, port);
	replaced = fd;
	HOLDS(cm_connect(client, active, &param) == 0 && replaced == -1);
	HOLDS(fcntl(client, F_SETFL, O_NONBLOCK) == 0);
	while (ret == EAGAIN && poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 1) == 0)
		ret = cm_event(client, &event);
	HOLDS(fcntl(client, F_SETFL, 0) == 0);
	if (ret == 0) {
		HOLDS(event.event == REJECTED && event.status == REJ_INVALID_SERVICE_ID);
		HOLDS(close(fd) == 0 && cm_destroy(client, active) == 3);
		return false;
	}
	HOLDS(ret == EAGAIN);
	peer = accept(fd, NULL, NULL);
	raw_recv(peer, RAW_REQ, &req);
	raw_answer(&packet, RAW_REJ, &req);
	raw_send(peer, &packet);
	HOLDS(cm_expect(client, REJECTED).status == RAW_REJ_CONSUMER);
	HOLDS(close(peer) == 0 && close(fd) == 0 && cm_destroy(client, active) == 3);
	return true;
}

/* The listener ends after a client has connected to it, and before that sends its request. */
static void
listener_may_be_replaced_before_the_request(void)
{
	while (!request_after_replacement())
		;
}

/* Request as often as a process has descriptors, and wait until the last request is rejected. */
static void
flood(uint16_t port)
{
	struct raw_packet packet;
	int i, fd = -1;

	for (i = 0; i < NB_REQUESTS; i++) {
		fd = raw_connect(port);
		raw_req(&packet, port, (uint32_t)i + 1, (uint32_t)i + 2);
		raw_send(fd, &packet);
	}
	raw_recv(fd, RAW_REJ, &packet);
	HOLDS(packet.mad[RAW_DATA + 11] == RAW_REJ_CONSUMER);
}

static void
requests_leave_half_of_the_descriptors(void)
{
	struct rlimit limit, few;
	uint32_t listener;
	uint16_t port;
	pid_t pid;

	HOLDS(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	few = limit;
	few.rlim_cur = MAX_FDS;
	HOLDS(setrlimit(RLIMIT_NOFILE, &few) == 0);
	listener = cm_listener(server, RDMA_PS_TCP, &port);
	HOLDS(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	pid = fork();
	if (pid == 0) {
		flood(port);
		_exit(0);
	}
	wait_child(pid);
	HOLDS(cm_destroy(server, listener) == 0);
}

/* Bind in a thread to a port that is locked. */
struct binding {
	uint16_t port;
	int ret;
	bool has_begun;
};

static void *
bind_port(void *arg)
{
	struct binding *binding = arg;
	uint32_t id = cm_create(client, RDMA_PS_TCP);

	__atomic_store_n(&binding->has_begun, true, __ATOMIC_RELEASE);
	binding->ret = cm_bind(client, id, LOOPBACK, binding->port);
	cm_destroy(client, id);
	return NULL;
}

/* Whether a command ended while the other thread waited for the lock, for a second; it may also
 * have had no CPU. */
static bool
command_passes_a_bind(void)
{
	struct binding binding = {.port = free_port()};
	int lock = hold(binding.port, "/lock");
	pthread_t thread;
	bool has_passed;
	uint64_t begin;

	HOLDS(pthread_create(&thread, NULL, bind_port, &binding) == 0);
	while (!__atomic_load_n(&binding.has_begun, __ATOMIC_ACQUIRE))
		sched_yield();
	begin = now_ns();
	while (now_ns() - begin < 200000000)
		sched_yield();
	HOLDS(cm_destroy(server, cm_create(server, RDMA_PS_TCP)) == 0);
	has_passed = now_ns() - begin < 900000000;
	HOLDS(pthread_join(thread, NULL) == 0 && binding.ret == 0);
	close(lock);
	return has_passed;
}

static void
locked_port_does_not_delay_other_commands(void)
{
	int tries = 0;

	while (!command_passes_a_bind())
		HOLDS(++tries < 20);
}

/* In a child, of the user: hold two names of the port. It writes a byte for each request. */
static pid_t
squat(uid_t user, uint16_t port, const char *first, const char *second, int *requests)
{
	struct raw_packet packet;
	int ready[2], fds[2], peer;
	pid_t pid;
	char byte;

	HOLDS(pipe(ready) == 0);
	pid = fork();
	HOLDS(pid >= 0);
	if (pid != 0) {
		close(ready[1]);
		*requests = ready[0];
		HOLDS(read(*requests, &byte, 1) == 1);
		return pid;
	}
	HOLDS(user == getuid() ||
			(setgroups(0, NULL) == 0 && setresgid(user, user, user) == 0 &&
					setresuid(user, user, user) == 0));
	fds[0] = hold_listening(port, first);
	fds[1] = second != NULL ? hold(port, second) : -1;
	HOLDS(write(ready[1], "", 1) == 1);
	for (;;) {
		peer = accept(fds[0], NULL, NULL);
		HOLDS(peer >= 0);
		if (recv(peer, &packet, sizeof(packet), 0) > 0)
			HOLDS(write(ready[1], "", 1) == 1);
		else
			close(peer);
	}
}

static void
end_squatter(pid_t pid, int requests)
{
	HOLDS(close(requests) == 0);
	HOLDS(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
}

/* A listener here at the address gets the connection, not the listener of the user. */
static void
request_reaches_owner(const char *ip, uid_t user, const char *other)
{
	const struct rdma_ucm_conn_param param = cm_param(1, 0);
	uint32_t listener = cm_create(server, RDMA_PS_TCP), active, passive;
	struct pollfd fds[2] = {{.fd = server, .events = POLLIN}, {.events = POLLIN}};
	uint16_t port;
	pid_t pid;

	HOLDS(cm_bind(server, listener, ip, 0) == 0);
	HOLDS(cm_listen(server, listener, 4) == 0);
	port = cm_port(server, listener);
	pid = squat(user, port, other, NULL, &fds[1].fd);
	active = cm_create(client, RDMA_PS_TCP);
	cm_resolve(client, active, port);
	HOLDS(cm_connect(client, active, &param) == 0);
	HOLDS(poll(fds, 2, -1) == 1 && fds[0].revents == POLLIN);
	passive = cm_expect(server, CONNECT_REQUEST).id;
	HOLDS(cm_destroy(server, passive) == 0);
	HOLDS(cm_expect(client, REJECTED).status == RAW_REJ_CONSUMER);
	HOLDS(cm_destroy(client, active) == 3 && cm_destroy(server, listener) == 1);
	end_squatter(pid, fds[1].fd);
}

/* Bind to all addresses of IPv4 at a port that a process of the user has for IPv6. */
static int
bind_beside(uid_t user)
{
	uint32_t id = cm_create(server, RDMA_PS_TCP);
	uint16_t port = free_port();
	int requests, ret;
	pid_t pid = squat(user, port, "", "/b/3/00000000000000000000000000000000/1", &requests);

	ret = cm_bind(server, id, "0.0.0.0", port);
	HOLDS(cm_destroy(server, id) == 0);
	end_squatter(pid, requests);
	return ret;
}

static void
ports_have_owners(void)
{
	request_reaches_owner(LOOPBACK, getuid(), AT_ALL);
	HOLDS(bind_beside(getuid()) == 0);
	if (getuid() != 0) {
		printf("skipped: no other user without root\n");
		return;
	}
	request_reaches_owner("0.0.0.0", OTHER_USER, AT_LOOPBACK);
	request_reaches_owner(LOOPBACK, OTHER_USER, AT_ALL);
	HOLDS(bind_beside(OTHER_USER) == EADDRNOTAVAIL);
}

int
main(void)
{
	int n;

	server = cm_open();
	client = cm_open();
	disconnect_without_rtu_is_reported();
	n = count_entries("/proc/self/fd");
	listener_may_be_replaced_before_the_request();
	locked_port_does_not_delay_other_commands();
	ports_have_owners();
	requests_leave_half_of_the_descriptors();
	HOLDS(count_entries("/proc/self/fd") <= n + 1); /* a spare one */
	return 0;
}
