/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Connections of rdma_cm between two processes of a host, run by rmem-run. Prints the best of many
 * rounds, in us, alternately measured:
 * tcp: one TCP connection: connect, accept, a byte from the accepting side, close;
 * connect: one connection: resolve, connect, accept, disconnect, destroy;
 * parallel: NB_PARALLEL connections at once, from the first request to the last ESTABLISHED.
 * QPs are not part of it.
 */

#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include "cm_cmd.h"

#define ROUNDS      7
#define NB_SERIAL   200
#define NB_PARALLEL 1000

/* The server reports its ports first, then the time of each NB_PARALLEL-th ESTABLISHED of
 * those since the last DISCONNECTED. */
struct ports {
	uint16_t tcp;
	uint16_t cm;
};

static void *
serve_tcp(void *arg)
{
	const int *listen_fd = arg;
	char byte = 0;
	int fd;

	for (;;) {
		fd = accept(*listen_fd, NULL, NULL);
		HOLDS(fd >= 0 && send(fd, &byte, 1, MSG_NOSIGNAL) == 1);
		HOLDS(recv(fd, &byte, 1, 0) == 0);
		close(fd);
	}
	return NULL;
}

static uint16_t
listen_tcp(int *fd)
{
	struct sockaddr_in addr = cm_addr(LOOPBACK, 0);
	socklen_t len = sizeof(addr);

	*fd = socket(AF_INET, SOCK_STREAM, 0);
	HOLDS(*fd >= 0 && bind(*fd, (struct sockaddr *)&addr, len) == 0 && listen(*fd, 1) == 0);
	HOLDS(getsockname(*fd, (struct sockaddr *)&addr, &len) == 0);
	return ntohs(addr.sin_port);
}

/* The server, until it is killed. */
static void
serve(int report_fd)
{
	const struct rdma_ucm_conn_param param = cm_param(1, 0);
	struct rdma_ucm_event_resp event;
	int channel = cm_open(), nb = 0;
	static int listen_fd;
	struct ports ports;
	pthread_t thread;
	uint64_t now;

	ports.tcp = listen_tcp(&listen_fd);
	HOLDS(pthread_create(&thread, NULL, serve_tcp, &listen_fd) == 0);
	cm_listener(channel, RDMA_PS_TCP, &ports.cm);
	HOLDS(write(report_fd, &ports, sizeof(ports)) == sizeof(ports));
	for (;;) {
		HOLDS(cm_event(channel, &event) == 0);
		if (event.event == CONNECT_REQUEST) {
			HOLDS(cm_accept(channel, event.id, 1, &param) == 0);
		} else if (event.event == ESTABLISHED) {
			now = now_ns();
			if (++nb == NB_PARALLEL)
				HOLDS(write(report_fd, &now, sizeof(now)) == sizeof(now));
		} else {
			HOLDS(event.event == DISCONNECTED && cm_destroy(channel, event.id) >= 0);
			nb = 0;
		}
	}
}

static void
connect_tcp(uint16_t port)
{
	struct sockaddr_in addr = cm_addr(LOOPBACK, port);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char byte;

	HOLDS(fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	HOLDS(recv(fd, &byte, 1, 0) == 1);
	close(fd);
}

static void
end(int channel, uint32_t id)
{
	HOLDS(cm_disconnect(channel, id) == 0);
	cm_expect(channel, DISCONNECTED);
	cm_destroy(channel, id);
}

static void
connect_cm(int channel, uint16_t port)
{
	const struct rdma_ucm_conn_param param = cm_param(1, 0);
	uint32_t id = cm_create(channel, RDMA_PS_TCP);

	cm_resolve(channel, id, port);
	HOLDS(cm_connect(channel, id, &param) == 0);
	HOLDS(cm_expect(channel, CONNECT_RESPONSE).id == id);
	HOLDS(cm_accept(channel, id, 0, NULL) == 0);
	end(channel, id);
}

/* us of one, of many one after the other. */
static double
serial_us(int channel, const struct ports *ports)
{
	uint64_t begin = now_ns();
	int i;

	for (i = 0; i < NB_SERIAL; i++) {
		if (channel < 0)
			connect_tcp(ports->tcp);
		else
			connect_cm(channel, ports->cm);
	}
	return (double)(now_ns() - begin) / NB_SERIAL / 1000;
}

static double
parallel_us(int channel, uint16_t port, int report_fd)
{
	const struct rdma_ucm_conn_param param = cm_param(1, 0);
	static uint32_t ids[NB_PARALLEL];
	uint64_t begin, end_ns;
	int i;

	for (i = 0; i < NB_PARALLEL; i++) {
		ids[i] = cm_create(channel, RDMA_PS_TCP);
		cm_resolve(channel, ids[i], port);
	}
	begin = now_ns();
	for (i = 0; i < NB_PARALLEL; i++)
		HOLDS(cm_connect(channel, ids[i], &param) == 0);
	for (i = 0; i < NB_PARALLEL; i++)
		HOLDS(cm_accept(channel, cm_expect(channel, CONNECT_RESPONSE).id, 0, NULL) == 0);
	HOLDS(read(report_fd, &end_ns, sizeof(end_ns)) == sizeof(end_ns));
	for (i = 0; i < NB_PARALLEL; i++)
		end(channel, ids[i]);
	return (double)(end_ns - begin) / 1000;
}

static double
min(double a, double b)
{
	return a < b ? a : b;
}

/* Each connection has a descriptor in each process. */
static void
raise_limit(void)
{
	struct rlimit limit;

	HOLDS(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = limit.rlim_max;
	HOLDS(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

int
main(void)
{
	double tcp = 1e9, one = 1e9, parallel = 1e9;
	struct ports ports;
	int i, fds[2], channel;
	pid_t pid;

	raise_limit();
	HOLDS(pipe(fds) == 0);
	pid = fork();
	HOLDS(pid >= 0);
	if (pid == 0)
		serve(fds[1]);
	HOLDS(read(fds[0], &ports, sizeof(ports)) == sizeof(ports));
	channel = cm_open();
	for (i = 0; i < ROUNDS; i++) {
		tcp = min(tcp, serial_us(-1, &ports));
		one = min(one, serial_us(channel, &ports));
		parallel = min(parallel, parallel_us(channel, ports.cm, fds[0]));
	}
	printf("tcp %.1f\nconnect %.1f\nparallel %.1f\n", tcp, one, parallel);
	HOLDS(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	return 0;
}
