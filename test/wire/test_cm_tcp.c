/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Connections over TCP: peers that send nothing, or a part of a request, delay no other. */

#include <arpa/inet.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rmem_cm.h>

#include "../perf.h"
#include "../test.h"

#define IP         "127.0.19.1"
#define PORT       7175
#define TIMEOUT_MS 10000

static struct rmem_cm_listener *listener;
static struct perf_pair pair;
static struct sockaddr_in addr;

static int
conf_of(struct rmem_qp *qp, struct rmem_cm_conf *conf)
{
	memset(conf, 0, sizeof(*conf));
	conf->qp = qp;
	conf->timeout_ms = TIMEOUT_MS;
	conf->timeout = 14;
	conf->retry_cnt = 7;
	conf->rnr_retry = 7;
	return rmem_qp_reset(qp);
}

static void *
connect_one(void *arg)
{
	struct rmem_cm_conn **conn = arg;
	struct rmem_cm_conf conf;

	if (conf_of(pair.a, &conf) != 0 ||
			rmem_cm_connect((struct sockaddr *)&addr, &conf, NULL, conn) != 0)
		*conn = NULL;
	return NULL;
}

/* A connection that sends n bytes of a request, and no more. */
static int
connect_silent(size_t n, int *fd)
{
	static const uint8_t head[4] = {1, 56, 0, 0};

	*fd = socket(AF_INET, SOCK_STREAM, 0);
	TEST_ASSERT(*fd >= 0);
	TEST_EQ(connect(*fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	TEST_EQ(send(*fd, head, n, MSG_NOSIGNAL), n);
	return TEST_SUCCESS;
}

static int
connect_beside(unsigned int nb_silent)
{
	struct rmem_cm_conn *connected, *accepted;
	struct rmem_cm_conf conf;
	pthread_t thread;
	int fds[32], ret;
	unsigned int i;

	for (i = 0; i < nb_silent; i++)
		TEST_RUN(connect_silent(i % 5, &fds[i]));
	TEST_OK(conf_of(pair.b, &conf));
	TEST_EQ(pthread_create(&thread, NULL, connect_one, &connected), 0);
	ret = rmem_cm_accept(listener, &conf, NULL, &accepted);
	TEST_EQ(pthread_join(thread, NULL), 0);
	for (i = 0; i < nb_silent; i++)
		close(fds[i]);
	TEST_OK(ret);
	TEST_ASSERT(connected != NULL);
	rmem_cm_disconnect(connected);
	rmem_cm_disconnect(accepted);
	return TEST_SUCCESS;
}

TEST(cm_tcp, peers_that_send_nothing_delay_no_other)
{
	return connect_beside(2);
}

TEST(cm_tcp, a_part_of_a_request_delays_no_other)
{
	return connect_beside(5);
}

/* More than a listener keeps: the oldest are closed. The backlog has these and one more. */
TEST(cm_tcp, many_silent_peers_delay_no_other)
{
	TEST_RUN(connect_beside(15));
	return connect_beside(15);
}

TEST(cm_tcp, a_message_that_is_not_a_request_is_refused)
{
	static const uint8_t bad[4] = {9, 0, 0, 0};
	struct rmem_cm_conn *conn;
	struct rmem_cm_conf conf;
	int fd;

	TEST_RUN(connect_silent(0, &fd));
	TEST_EQ(send(fd, bad, sizeof(bad), MSG_NOSIGNAL), sizeof(bad));
	TEST_OK(conf_of(pair.b, &conf));
	TEST_ERR(rmem_cm_accept(listener, &conf, NULL, &conn), EBADMSG);
	close(fd);
	return TEST_SUCCESS;
}

static int
setup(void)
{
	addr = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(PORT)};
	TEST_EQ(inet_pton(AF_INET, IP, &addr.sin_addr), 1);
	TEST_RUN(perf_pair_open(&pair, "ip=" IP ",loop=1"));
	return rmem_cm_listener_create((struct sockaddr *)&addr, &listener) == 0 ? TEST_SUCCESS
										 : TEST_FAILED;
}

static int
teardown(void)
{
	rmem_cm_listener_destroy(listener);
	return perf_pair_close(&pair);
}

TEST_SUITE(cm_tcp, setup, teardown);
