/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Event channels of rdma_cm: one that poll() finds readable has an event. Channels whose
 * descriptors are closed without close() leave nothing. Runs with --ip, too.
 */

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include "cm_cmd.h"
#include "count_entries.h"

#define REJ_INVALID_SERVICE_ID 8
#define PASSED_FDS             32

static int server, client; /* channels, which never block */

/* Wait until the channel is readable; then it must have an event of that type. */
static struct rdma_ucm_event_resp
expect_polled(int fd, uint32_t type)
{
	struct pollfd one = {.fd = fd, .events = POLLIN};

	HOLDS(poll(&one, 1, -1) == 1);
	return cm_expect(fd, type);
}

static int
open_channel(void)
{
	int fd = cm_open();

	HOLDS(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	return fd;
}

/* A connection to the port, by a program of its own, without a request. */
static int
half_open(uint16_t port)
{
	struct sockaddr_un name;
	socklen_t len = cm_name(RDMA_PS_TCP, port, &name);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	HOLDS(fd >= 0 && connect(fd, (struct sockaddr *)&name, len) == 0);
	return fd;
}

/* Each of these states is reported, and only these. */
static void
each_wakeup_has_an_event(void)
{
	const struct rdma_ucm_conn_param param = cm_param(1, 0);
	uint32_t listener, active, passive;

	active = cm_request(server, client, RDMA_PS_TCP, &param, &listener);
	passive = expect_polled(server, CONNECT_REQUEST).id;
	HOLDS(cm_accept(server, passive, 1000, &param) == 0);
	HOLDS(expect_polled(client, CONNECT_RESPONSE).id == active);
	HOLDS(cm_accept(client, active, 0, NULL) == 0);
	expect_polled(server, ESTABLISHED);
	HOLDS(cm_disconnect(client, active) == 0);
	expect_polled(client, DISCONNECTED);
	expect_polled(server, DISCONNECTED);
	HOLDS(!is_readable(client) && !is_readable(server));
	cm_destroy(client, active);
	cm_destroy(server, passive);
	cm_destroy(server, listener);
}

static void
half_open_peer_is_no_event(void)
{
	uint32_t listener, active, passive;
	int fds[2];
	uint16_t port;

	listener = cm_listener(server, RDMA_PS_TCP, &port);
	fds[0] = half_open(port);
	HOLDS(!is_readable(server));
	fds[1] = half_open(port);
	close(fds[0]);
	HOLDS(!is_readable(server));
	/* A peer that sends all of it is one. */
	active = cm_create(client, RDMA_PS_TCP);
	cm_resolve(client, active, port);
	HOLDS(cm_connect(client, active, &(struct rdma_ucm_conn_param){.valid = 1}) == 0);
	passive = expect_polled(server, CONNECT_REQUEST).id;
	cm_destroy(server, passive);
	expect_polled(client, REJECTED);
	close(fds[1]);
	HOLDS(!is_readable(server));
	cm_destroy(client, active);
	cm_destroy(server, listener);
}

static void
request_is_an_event_of_one_channel(void)
{
	const struct rdma_ucm_conn_param param = cm_param(1, 0);
	int other = open_channel();
	uint32_t listeners[2], active;
	uint16_t port;

	listeners[0] = cm_listener(other, RDMA_PS_TCP, &port);
	active = cm_request(server, client, RDMA_PS_TCP, &param, &listeners[1]);
	HOLDS(!is_readable(other));
	cm_destroy(server, expect_polled(server, CONNECT_REQUEST).id);
	HOLDS(!is_readable(other));
	expect_polled(client, REJECTED);
	cm_destroy(client, active);
	cm_destroy(server, listeners[1]);
	HOLDS(close(other) == 0);
}

static void
retried_connection_is_an_event_when_it_fails(void)
{
	const struct rdma_ucm_conn_param param = cm_param(1, 0);
	uint32_t active = cm_create(client, RDMA_PS_TCP);

	cm_resolve(client, active, 1);
	HOLDS(cm_connect(client, active, &param) == 0);
	HOLDS(expect_polled(client, REJECTED).status != 0);
	cm_destroy(client, active);
}

/* A connection to a port at which none listens is tried again, in whichever channel it is. */
static void
retried_connection_migrates(void)
{
	const struct rdma_ucm_conn_param param = cm_param(1, 0);
	struct rdma_ucm_migrate_resp resp;
	struct rdma_ucm_migrate_id in = {.response = (uintptr_t)&resp, .fd = (uint32_t)client};
	uint32_t active = cm_create(client, RDMA_PS_TCP);
	struct rdma_ucm_event_resp event;
	int to = open_channel();

	cm_resolve(client, active, 1);
	HOLDS(cm_connect(client, active, &param) == 0);
	in.id = active;
	HOLDS(cm_run(to, RDMA_USER_CM_CMD_MIGRATE_ID, &in, sizeof(in), sizeof(resp)) == 0);
	event = expect_polled(to, REJECTED);
	/* That of a port without a listener, not of a connection that was lost. */
	HOLDS(event.id == active && event.status == REJ_INVALID_SERVICE_ID);
	HOLDS(!is_readable(client));
	cm_destroy(to, active);
	HOLDS(close(to) == 0);
}

/* Connect an ID of one channel to a listening one of the other. */
static void
connects(void)
{
	const struct rdma_ucm_conn_param param = cm_param(1, 0);
	uint32_t listener, active, passive;

	active = cm_request(server, client, RDMA_PS_TCP, &param, &listener);
	passive = expect_polled(server, CONNECT_REQUEST).id;
	HOLDS(cm_accept(server, passive, 1000, &param) == 0);
	HOLDS(expect_polled(client, CONNECT_RESPONSE).id == active);
	cm_destroy(client, active);
	cm_destroy(server, passive);
	cm_destroy(server, listener);
}

static void
replaced_channel_is_closed(void)
{
	uint32_t listener, again;
	int n, channel;
	uint16_t port;

	n = count_entries("/proc/self/fd");
	channel = open_channel();
	listener = cm_listener(channel, RDMA_PS_TCP, &port);
	if (!cm_has_address())
		close(half_open(port));
	HOLDS(dup2(STDERR_FILENO, channel) == channel);
	HOLDS(close(channel) == 0);
	/* The port is free, and so are the sockets. */
	channel = open_channel();
	again = cm_create(channel, RDMA_PS_TCP);
	HOLDS(again == listener && cm_bind(channel, again, LOOPBACK, port) == 0);
	HOLDS(close(channel) == 0);
	/* The thread closes a connection that it has accepted when it finds its end. */
	while (count_entries("/proc/self/fd") > n)
		poll(NULL, 0, 1);
}

/* Close all descriptors but the standard ones, as daemons do, and use rdma_cm again. */
static int
close_all(void)
{
	int i, pairs[PASSED_FDS][2];
	uint16_t port;
	char byte;

	server = open_channel();
	client = open_channel();
	connects();
	cm_listener(server, RDMA_PS_TCP, &port);
	HOLDS(syscall(SYS_close_range, 3, ~0U, 0) == 0);
	/* Files of the program with the numbers of those. */
	for (i = 0; i < PASSED_FDS; i++)
		HOLDS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pairs[i]) == 0);
	for (i = 0; i < 2; i++) {
		server = open_channel();
		client = open_channel();
		connects();
	}
	for (i = 0; i < PASSED_FDS; i++) {
		HOLDS(read(pairs[i][0], &byte, 1) == -1 && errno == EAGAIN);
		HOLDS(read(pairs[i][1], &byte, 1) == -1 && errno == EAGAIN);
	}
	return 0;
}

/* Whether an epoll waits for that file. */
static bool
waits_for(int epoll_fd, int fd)
{
	char path[64], line[256];
	FILE *file;
	bool is_found = false;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", epoll_fd);
	file = fopen(path, "r");
	while (file != NULL && !is_found && fgets(line, sizeof(line), file) != NULL)
		is_found = strncmp(line, "tfd:", 4) == 0 && strtol(line + 4, NULL, 10) == fd;
	if (file != NULL)
		fclose(file);
	return is_found;
}

/* The first descriptor with that file. */
static int
find_file(const char *expected)
{
	char path[64], name[64];
	ssize_t n;
	int fd;

	for (fd = 3; fd < 256; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, name, sizeof(name) - 1);
		name[n > 0 ? n : 0] = '\0';
		if (strcmp(name, expected) == 0)
			return fd;
	}
	return -1;
}

/* A connection that the thread has accepted, and that sends no request. */
static int
accepted_connection(void)
{
	int n, half;
	uint16_t port;

	cm_listener(server, RDMA_PS_TCP, &port);
	n = count_entries("/proc/self/fd");
	half = half_open(port);
	while (count_entries("/proc/self/fd") < n + 2)
		poll(NULL, 0, 1);
	return half;
}

/* The program has an epoll and a timer with the numbers of those of the thread: the library takes
 * no event for one of its own, and changes nothing. It ends what it can no longer watch. */
static int
replace_agent(void)
{
	struct pollfd half = {.fd = -1, .events = POLLIN};
	struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = 0x7fffffff7fffffff};
	struct itimerspec set = {.it_value.tv_sec = 1000000};
	int own, ready = eventfd(1, 0), timer, timer_fd, epoll_fd = 3;
	struct rdma_ucm_event_resp resp;

	server = open_channel();
	client = open_channel();
	timer_fd = find_file("anon_inode:[timerfd]");
	while (epoll_fd < 256 && !waits_for(epoll_fd, timer_fd))
		epoll_fd++;
	HOLDS(ready >= 0 && timer_fd >= 0 && epoll_fd < 256);
	connects();
	if (!cm_has_address())
		half.fd = accepted_connection();
	own = epoll_create1(0);
	timer = timerfd_create(CLOCK_MONOTONIC, 0);
	HOLDS(dup2(own, epoll_fd) == epoll_fd && dup2(timer, timer_fd) == timer_fd);
	HOLDS(timerfd_settime(timer, 0, &set, NULL) == 0);
	HOLDS(epoll_ctl(own, EPOLL_CTL_ADD, timer_fd, &event) == 0);
	HOLDS(epoll_ctl(own, EPOLL_CTL_ADD, ready, &event) == 0);
	HOLDS(cm_event(server, &resp) == EAGAIN);
	connects();
	HOLDS(half.fd < 0 || (poll(&half, 1, 30000) == 1 && (half.revents & POLLHUP) != 0));
	HOLDS(epoll_wait(own, &event, 1, 0) == 1 && event.data.u64 == 0x7fffffff7fffffff);
	HOLDS(timerfd_gettime(timer, &set) == 0 && set.it_value.tv_sec > 900000);
	return 0;
}

static sigjmp_buf before_wait;

static void
leave_wait(int no)
{
	HOLDS(no == SIGUSR1);
	siglongjmp(before_wait, 1);
}

static int waiting; /* a channel without events */
static pid_t waiter;
static bool has_returned; /* atomic */

static void *
wait_for_event(void *arg)
{
	struct rdma_ucm_event_resp event;

	__atomic_store_n(&waiter, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	if (sigsetjmp(before_wait, 1) == 0)
		(void)cm_event(waiting, &event);
	__atomic_store_n(&has_returned, true, __ATOMIC_RELEASE);
	for (;;)
		pause();
	return arg;
}

/* A thread waits in one of these; arm64 has the newer ones only. */
static bool
is_wait(long call)
{
#ifdef SYS_poll
	if (call == SYS_poll || call == SYS_epoll_wait)
		return true;
#endif
	return call == SYS_ppoll || call == SYS_epoll_pwait;
}

/* Wait until the thread sleeps in poll(), or epoll_wait(). */
static void
wait_in_poll(void)
{
	char path[64], line[16];
	long call = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall",
			__atomic_load_n(&waiter, __ATOMIC_ACQUIRE));
	while (!is_wait(call)) {
		file = fopen(path, "r");
		line[0] = '\0';
		HOLDS(file != NULL && fgets(line, sizeof(line), file) != NULL);
		fclose(file);
		call = strtol(line, NULL, 10);
	}
}

static pthread_t
start_waiter(void)
{
	pthread_t thread;

	waiting = cm_open();
	waiter = 0;
	HOLDS(pthread_create(&thread, NULL, wait_for_event, NULL) == 0);
	while (__atomic_load_n(&waiter, __ATOMIC_ACQUIRE) == 0)
		sched_yield();
	wait_in_poll();
	return thread;
}

/* A thread that waits for an event of one channel serves the sockets of all; another one does after
 * it is cancelled. */
static void
cancelled_thread_does_not_delay_others(void)
{
	pthread_t thread = start_waiter();

	each_wakeup_has_an_event();
	HOLDS(pthread_cancel(thread) == 0 && pthread_join(thread, NULL) == 0);
	HOLDS(close(waiting) == 0);
	each_wakeup_has_an_event();
}

/* As in the kernel, the close of a channel does not end the wait of another thread in it: rping's
 * thread would exit with an error. */
static void
close_ends_no_wait(void)
{
	pthread_t thread = start_waiter();

	HOLDS(close(waiting) == 0);
	each_wakeup_has_an_event();
	HOLDS(!__atomic_load_n(&has_returned, __ATOMIC_ACQUIRE));
	HOLDS(pthread_cancel(thread) == 0 && pthread_join(thread, NULL) == 0);
	each_wakeup_has_an_event();
}

/* The same for one that leaves by siglongjmp(). Nothing else happens then: the signal arrives while
 * it sleeps. */
static int
leave_by_signal(void)
{
	struct sigaction action = {.sa_handler = leave_wait};
	pthread_t thread;
	uint16_t port;

	server = open_channel();
	client = open_channel();
	cm_listener(server, RDMA_PS_TCP, &port);
	HOLDS(sigaction(SIGUSR1, &action, NULL) == 0);
	thread = start_waiter();
	HOLDS(pthread_kill(thread, SIGUSR1) == 0);
	each_wakeup_has_an_event();
	HOLDS(pthread_cancel(thread) == 0 && pthread_join(thread, NULL) == 0);
	return 0;
}

static void
in_child(int (*run)(void))
{
	pid_t pid = fork();

	if (pid == 0)
		exit(run());
	wait_child(pid);
}

int
main(void)
{
	/* In a child, which has the address of a device first. */
	in_child(close_all);
	in_child(replace_agent);
	in_child(leave_by_signal);
	server = open_channel();
	client = open_channel();
	/* With the first command that needs time. */
	retried_connection_is_an_event_when_it_fails();
	each_wakeup_has_an_event();
	if (!cm_has_address())
		half_open_peer_is_no_event();
	request_is_an_event_of_one_channel();
	retried_connection_migrates();
	cancelled_thread_does_not_delay_others();
	close_ends_no_wait();
	replaced_channel_is_closed();
	HOLDS(close(server) == 0 && close(client) == 0);
	return 0;
}
