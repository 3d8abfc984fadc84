/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Connections by the communication manager, one after the other, compared with those of TCP. */

#include <arpa/inet.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rmem_cm.h>

#include "../perf/perf_row.h"
#include "../test.h"

#define IP         "127.0.23.9"
#define PORT       7175
#define TIMEOUT_MS 60000
#define NB         100

struct bench {
	struct perf_pair pair;
	struct sockaddr_in addr;
	struct rmem_cm_listener *listener;
	int listen_fd;
};

static struct rmem_cm_conf
conf_of(struct rmem_qp *qp)
{
	return (struct rmem_cm_conf){.qp = qp, .timeout_ms = TIMEOUT_MS, .timeout = 14};
}

/* Accept, and wait for the end, of each connection. */
static void *
accept_by_cm(void *arg)
{
	const struct bench *bench = arg;
	const struct rmem_cm_conf conf = conf_of(bench->pair.b);
	struct rmem_cm_conn *conn;
	int i;

	for (i = 0; i < NB; i++) {
		TEST_OK(rmem_cm_accept(bench->listener, &conf, NULL, &conn));
		TEST_OK(rmem_cm_wait_disconnect(conn, TIMEOUT_MS));
		rmem_cm_disconnect(conn);
		TEST_OK(rmem_qp_reset(bench->pair.b));
	}
	return NULL;
}

static void
connect_by_cm(const struct bench *bench)
{
	const struct rmem_cm_conf conf = conf_of(bench->pair.a);
	struct rmem_cm_conn *conn;

	TEST_OK(rmem_cm_connect((const struct sockaddr *)&bench->addr, &conf, NULL, &conn));
	rmem_cm_disconnect(conn);
	TEST_OK(rmem_qp_reset(bench->pair.a));
}

static void *
accept_by_tcp(void *arg)
{
	const struct bench *bench = arg;
	char byte = 0;
	int i, fd;

	for (i = 0; i < NB; i++) {
		fd = accept(bench->listen_fd, NULL, NULL);
		TEST_ASSERT(fd >= 0);
		TEST_EQ(send(fd, &byte, 1, MSG_NOSIGNAL), 1);
		TEST_EQ(recv(fd, &byte, 1, 0), 0);
		close(fd);
	}
	return NULL;
}

/* The byte is what the answer is for the CM: the other side has accepted. */
static void
connect_by_tcp(const struct bench *bench)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char byte;

	TEST_ASSERT(fd >= 0);
	TEST_EQ(connect(fd, (const struct sockaddr *)&bench->addr, sizeof(bench->addr)), 0);
	TEST_EQ(recv(fd, &byte, 1, 0), 1);
	close(fd);
}

static double
measure(struct bench *bench, void *(*acceptor)(void *), void (*connector)(const struct bench *))
{
	pthread_t thread;
	uint64_t begin;
	int i;

	begin = rte_rdtsc();
	TEST_EQ(pthread_create(&thread, NULL, acceptor, bench), 0);
	for (i = 0; i < NB; i++)
		connector(bench);
	TEST_EQ(pthread_join(thread, NULL), 0);
	return perf_ns(rte_rdtsc() - begin, NB * 1000.0);
}

static double
tcp_us(void *arg)
{
	return measure(arg, accept_by_tcp, connect_by_tcp);
}

static double
cm_us(void *arg)
{
	return measure(arg, accept_by_cm, connect_by_cm);
}

PERF_TEST(cm_connect_udp)
{
	struct perf_row row = PERF_ROW(
			"cm_connect_udp", "us", "TCP: connect, accept, close", "ratio <= 5");
	struct bench bench = {.addr = {.sin_family = AF_INET, .sin_port = htons(PORT)}};

	TEST_EQ(inet_pton(AF_INET, IP, &bench.addr.sin_addr), 1);
	bench.listen_fd = socket(AF_INET, SOCK_STREAM, 0);
	TEST_ASSERT(bench.listen_fd >= 0);
	TEST_EQ(bind(bench.listen_fd, (struct sockaddr *)&bench.addr, sizeof(bench.addr)), 0);
	TEST_EQ(listen(bench.listen_fd, 1), 0);
	perf_pair_open(&bench.pair, "ip=" IP ",loop=1");
	TEST_OK(rmem_qp_reset(bench.pair.a));
	TEST_OK(rmem_qp_reset(bench.pair.b));
	TEST_OK(rmem_cm_listener_create((struct sockaddr *)&bench.addr, &bench.listener));
	perf_measure(&row, tcp_us, cm_us, &bench);
	rmem_cm_listener_destroy(bench.listener);
	perf_pair_close(&bench.pair);
	close(bench.listen_fd);
}
