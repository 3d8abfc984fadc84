/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Connections over TCP: peers that send nothing, or a part of a request, delay no other, and errors
 * of one connection end no listener. accept4() is replaced.
 */

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rmem_cm.h>

#include "../perf.h"
#include "../test.h"

#define IP         "127.0.19.1"
#define PEER_IP    "127.0.19.2"
#define PORT       7175
#define TIMEOUT_MS 10000

static struct rmem_cm_listener *server;
static struct perf_pair pair;
static struct rmem_mr *mr_a;
static struct sockaddr_in addr;
static int accept_errno; /* of the next call of accept4(); 0: none */

/* That of the C library has a union for its argument, with which ISO C permits no definition. */
int replaced_accept4(int fd, struct sockaddr *peer, socklen_t *len, int flags) __asm__("accept4");

int
replaced_accept4(int fd, struct sockaddr *peer, socklen_t *len, int flags)
{
	int error = accept_errno;

	accept_errno = 0;
	if (error == 0)
		return (int)syscall(SYS_accept4, fd, peer, len, flags);
	errno = error;
	return -1;
}

/* Connect a QP in RESET to the QP of the next peer. */
static int
accept_peer(struct rmem_cm_listener *listener, struct rmem_qp *qp, struct rmem_cm_peer *peer,
		struct rmem_cm_conn **conn)
{
	const struct rmem_cm_conf conf = {
			.qp = qp,
			.timeout_ms = 10000,
			.timeout = 14, /* 67 ms; with 0 a lost packet is never sent again */
			.retry_cnt = 7,
			.rnr_retry = 7, /* until the peer has posted a receive */
	};

	return rmem_cm_accept(listener, &conf, peer, conn);
}

/* The same from the other host; the peer gets the rkey of an MR. */
static int
connect_peer(const struct sockaddr *remote, struct rmem_qp *qp, const struct rmem_mr *mr,
		struct rmem_cm_conn **conn)
{
	const uint32_t rkey = htonl(mr->rkey);
	const struct rmem_cm_conf conf = {
			.qp = qp,
			.data = &rkey,
			.data_size = sizeof(rkey),
			.timeout_ms = 10000,
			.timeout = 14,
			.retry_cnt = 7,
			.rnr_retry = 7,
	};

	return rmem_cm_connect(remote, &conf, NULL, conn);
}

static void *
connect_one(void *arg)
{
	struct rmem_cm_conn **conn = arg;

	if (rmem_qp_reset(pair.a) != 0 ||
			connect_peer((struct sockaddr *)&addr, pair.a, mr_a, conn) != 0)
		*conn = NULL;
	return NULL;
}

/* A connection that sends n bytes of a request, and no more. */
static void
connect_silent(size_t n, int *fd)
{
	static const uint8_t head[4] = {1, 56, 0, 0};

	*fd = socket(AF_INET, SOCK_STREAM, 0);
	TEST_ASSERT(*fd >= 0);
	TEST_EQ(connect(*fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	TEST_EQ(send(*fd, head, n, MSG_NOSIGNAL), n);
}

static void
connect_beside(unsigned int nb_silent)
{
	struct rmem_cm_conn *connected, *accepted;
	struct rmem_cm_peer peer;
	uint32_t rkey;
	pthread_t thread;
	int fds[32], ret;
	unsigned int i;

	for (i = 0; i < nb_silent; i++)
		connect_silent(i % 5, &fds[i]);
	TEST_OK(rmem_qp_reset(pair.b));
	TEST_EQ(pthread_create(&thread, NULL, connect_one, &connected), 0);
	ret = accept_peer(server, pair.b, &peer, &accepted);
	TEST_EQ(pthread_join(thread, NULL), 0);
	for (i = 0; i < nb_silent; i++)
		close(fds[i]);
	TEST_OK(ret);
	TEST_ASSERT(connected != NULL);
	TEST_EQ(peer.data_size, sizeof(rkey));
	memcpy(&rkey, peer.data, sizeof(rkey));
	TEST_EQ(ntohl(rkey), mr_a->rkey);
	rmem_cm_disconnect(connected);
	rmem_cm_disconnect(accepted);
}

TEST(cm_tcp, silent_peers_delay_no_other)
{
	connect_beside(2);
}

TEST(cm_tcp, partial_request_delays_no_other)
{
	connect_beside(5);
}

/* More than a listener keeps: the oldest are closed. The backlog has these and one more. */
TEST(cm_tcp, many_silent_peers_delay_no_other)
{
	connect_beside(15);
	connect_beside(15);
}

/* Send what is not a request; the next rmem_cm_accept() returns it. */
static void
accept_bad(uint32_t timeout_ms)
{
	static const uint8_t bad[4] = {9, 0, 0, 0};
	struct rmem_cm_conn *conn;
	const struct rmem_cm_conf conf = {.qp = pair.b, .timeout_ms = timeout_ms, .timeout = 14};
	int fd;

	connect_silent(0, &fd);
	TEST_EQ(send(fd, bad, sizeof(bad), MSG_NOSIGNAL), sizeof(bad));
	TEST_OK(rmem_qp_reset(pair.b));
	TEST_ERR(rmem_cm_accept(server, &conf, NULL, &conn), EBADMSG);
	close(fd);
}

TEST(cm_tcp, message_that_is_not_a_request_is_refused)
{
	accept_bad(TIMEOUT_MS);
}

/* A request, and then a reset in place of an end. */
TEST(cm_tcp, reset_by_the_peer_is_econnrefused)
{
	static const uint8_t request[4 + 32] = {1, 32, 0, 0, 0x72, 0x4d, 1, 0, 5, 0, 0, 0, 0, 0, 0,
			9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 19, 2};
	const struct linger linger = {.l_onoff = 1};
	struct sockaddr_in from = {.sin_family = AF_INET};
	struct rmem_cm_conn *conn;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	TEST_ASSERT(fd >= 0);
	TEST_EQ(inet_pton(AF_INET, PEER_IP, &from.sin_addr), 1);
	TEST_EQ(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	TEST_EQ(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	TEST_EQ(send(fd, request, sizeof(request), MSG_NOSIGNAL), sizeof(request));
	TEST_EQ(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	close(fd);
	TEST_OK(rmem_qp_reset(pair.b));
	TEST_ERR(accept_peer(server, pair.b, NULL, &conn), ECONNREFUSED);
}

/* accept(2): treat these like EAGAIN, by retrying. */
TEST(cm_tcp, network_errors_end_no_listener)
{
	static const int errors[] = {EINTR, ECONNABORTED, ENETDOWN, EPROTO, ENOPROTOOPT, EHOSTDOWN,
			ENONET, EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH};
	size_t i;

	for (i = 0; i < RTE_DIM(errors); i++) {
		accept_errno = errors[i];
		accept_bad(TIMEOUT_MS);
	}
}

/* Whether the listener has closed a connection, which is waited for. */
static bool
is_closed(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	return poll(&pfd, 1, TIMEOUT_MS) == 1;
}

TEST(cm_tcp, silent_peer_yields_its_file_descriptor)
{
	int fd;

	connect_silent(0, &fd);
	accept_bad(TIMEOUT_MS);
	accept_errno = EMFILE;
	accept_bad(TIMEOUT_MS);
	TEST_ASSERT(is_closed(fd));
	close(fd);
}

/* Also if the timeout of the call that accepted it was longer. */
TEST(cm_tcp, oldest_silent_peer_is_closed_first)
{
	int fds[16], i;

	connect_silent(0, &fds[0]);
	accept_bad(3 * TIMEOUT_MS);
	for (i = 1; i < 16; i++)
		connect_silent(0, &fds[i]);
	accept_bad(2 * TIMEOUT_MS);
	TEST_ASSERT(is_closed(fds[0]));
	for (i = 0; i < 16; i++)
		close(fds[i]);
}

static void
setup(void)
{
	addr = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(PORT)};
	TEST_EQ(inet_pton(AF_INET, IP, &addr.sin_addr), 1);
	perf_pair_open(&pair, "ip=" IP ",loop=1");
	mr_a = perf_mr(pair.pd, 4096);
	TEST_ASSERT(mr_a != NULL);
	TEST_ASSERT(rmem_cm_listener_create((struct sockaddr *)&addr, &server) == 0);
}

static void
teardown(void)
{
	rmem_cm_listener_destroy(server);
	TEST_OK(rmem_mr_dereg(mr_a));
	perf_pair_close(&pair);
}

TEST_SUITE(cm_tcp, setup, teardown);
