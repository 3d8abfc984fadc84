/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Connections between processes, with rmem_cm. The server accepts them in a thread of its own,
 * since rmem_cm_accept() waits. Each side sends the other its settings, so that both detect a
 * mismatch.
 *
 * Invariant: kv_conn.cm of a server is used by this thread only, that of a client by its lcore.
 */

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_lcore.h>
#include <rte_random.h>

#include <rmem_cm.h>
#include <rmem_thread.h>

#include "kv.h"

#define HELLO_MAGIC  0x6b760001 /* "kv", version 1 */
#define ACCEPT_MS    1000
#define CONNECT_MS   10000 /* an accept may wait 9 s for a silent peer */
#define WATCH_MS     10
#define MIN_PAUSE_US 50000
#define MAX_PAUSE_US 500000
/*
 * A client posts a receive before each request, so its answer needs no retry. One that has none
 * would stop the server's queue, and with it the end of its leases: up to 5 s, by the largest RNR
 * timer.
 */
#define SERVER_RNR_RETRY 6
#define CLIENT_RNR_RETRY 7 /* unlimited */

/* The settings of a side. */
struct hello {
	rte_be32_t magic;
	rte_be32_t number; /* request: 0 if the client has none; answer: one that is free */
	rte_be32_t keys;
	rte_be32_t value_size;
	rte_be32_t lease_ms;
	rte_be32_t is_sealed;
};

static_assert(sizeof(struct hello) <= RMEM_CM_MAX_REQUEST, "fits a request");

struct kv_listener {
	const struct kv_conf *conf;
	struct kv_conn *conns;
	uint32_t nb_conns;
	uint32_t number; /* of the next new client */
	struct rmem_cm_listener *cm;
	struct rmem_thread thread;
	int ret;
};

static const char *
why(int ret)
{
	switch (ret) {
	case -EEXIST:
		return "its port is in use";
	case -ENODEV:
		return "the device has no such address, or no route to it";
	case -ECONNREFUSED:
		return "no listener, or connection refused";
	case -EHOSTUNREACH:
		return "no such host";
	case -EBADMSG:
		return "the peer is not this program";
	default:
		return rte_strerror(-ret);
	}
}

static struct hello
make_hello(const struct kv_conf *conf, uint32_t number)
{
	return (struct hello){
			.magic = RTE_BE32(HELLO_MAGIC),
			.number = rte_cpu_to_be_32(number),
			.keys = rte_cpu_to_be_32((uint32_t)conf->keys),
			.value_size = rte_cpu_to_be_32((uint32_t)conf->value_size),
			.lease_ms = rte_cpu_to_be_32((uint32_t)conf->lease_ms),
			.is_sealed = rte_cpu_to_be_32(conf->seal != NULL),
	};
}

/* Compare the settings, and get the number: 0, or -EINVAL with a message. */
static int
check_hello(const struct hello *mine, const struct rmem_cm_peer *peer, uint32_t *number)
{
	struct hello hello;

	memcpy(&hello, peer->data, sizeof(hello));
	const struct {
		const char *name;
		rte_be32_t here, there;
	} table[] = {
			{"keys", mine->keys, hello.keys},
			{"value-size", mine->value_size, hello.value_size},
			{"lease-ms", mine->lease_ms, hello.lease_ms},
			{"seal", mine->is_sealed, hello.is_sealed},
	};
	size_t i;

	if (peer->data_size != sizeof(hello) || hello.magic != mine->magic) {
		KV_ERR("%s", "the peer is not this program, or of another version");
		return -EINVAL;
	}
	for (i = 0; i < RTE_DIM(table); i++) {
		if (table[i].here == table[i].there)
			continue;
		KV_ERR("client and server differ: %s is %" PRIu32 " here, %" PRIu32 " on the peer",
				table[i].name, rte_be_to_cpu_32(table[i].here),
				rte_be_to_cpu_32(table[i].there));
		return -EINVAL;
	}
	*number = rte_be_to_cpu_32(hello.number);
	return 0;
}

static struct rmem_cm_conf
make_conf(struct rmem_qp *qp, const struct hello *hello, uint32_t timeout_ms, uint8_t rnr_retry)
{
	return (struct rmem_cm_conf){
			.qp = qp,
			.data = hello,
			.data_size = sizeof(*hello),
			.timeout_ms = timeout_ms,
			.timeout = 16,  /* 0.27 s, for hosts that are busy */
			.retry_cnt = 6, /* rdma_rxe treats 7 as unlimited */
			.rnr_retry = rnr_retry,
			.min_rnr_timer = 12, /* 0.64 ms */
	};
}

static void
set_qps(struct kv_conn *conn, uint32_t server_qp, uint32_t client_qp)
{
	conn->qps.server_qp = rte_cpu_to_be_32(server_qp);
	conn->qps.client_qp = rte_cpu_to_be_32(client_qp);
}

/* Whether the server is not running yet, or has no QP to offer. */
static bool
is_temporary(int ret)
{
	return ret == -ECONNREFUSED || ret == -ETIMEDOUT || ret == -EHOSTUNREACH;
}

/* Connect within the time limit; a restarted server needs some time. */
static int
connect_in_time(const struct kv_conf *conf, struct kv_conn *conn, const struct rmem_cm_conf *cm,
		struct rmem_cm_peer *peer)
{
	uint64_t end = rte_rdtsc() + conf->wait_s * rte_get_tsc_hz();
	uint32_t pause_us = MIN_PAUSE_US;
	int ret;

	while (true) {
		ret = rmem_cm_connect((const struct sockaddr *)&conf->addr, cm, peer, &conn->cm);
		if (ret == 0 || !is_temporary(ret))
			return ret;
		if (kv_is_interrupted(conf))
			return -EINTR;
		if (rte_rdtsc() >= end)
			return ret;
		rte_delay_us_sleep(pause_us);
		pause_us = RTE_MIN(2 * pause_us, (uint32_t)MAX_PAUSE_US);
	}
}

int
kv_cm_connect(const struct kv_conf *conf, struct kv_conn *conn, struct rmem_qp *qp)
{
	struct hello hello = make_hello(conf, conn->number);
	struct rmem_cm_conf cm_conf = make_conf(qp, &hello, CONNECT_MS, CLIENT_RNR_RETRY);
	struct rmem_cm_peer peer;
	uint32_t number;
	int ret;

	ret = connect_in_time(conf, conn, &cm_conf, &peer);
	if (ret != 0) {
		KV_ERR("cannot connect to %s port %d: %s", conf->connect, KV_PORT, why(ret));
		return ret;
	}
	ret = check_hello(&hello, &peer, &number);
	if (ret != 0)
		return ret;
	if (conn->number == 0)
		conn->number = number;
	set_qps(conn, peer.addr.qp_num, qp->qp_num);
	return 0;
}

/* Called in a loop; checks the connection periodically. */
bool
kv_cm_is_up(struct kv_conn *conn)
{
	uint64_t now = rte_rdtsc();

	if (conn->cm != NULL && now < conn->check_tsc)
		return true;
	conn->check_tsc = now + WATCH_MS * rte_get_tsc_hz() / 1000;
	return conn->cm != NULL && rmem_cm_wait_disconnect(conn->cm, 0) == -ETIMEDOUT;
}

void
kv_cm_close(struct kv_conn *conn)
{
	rmem_cm_disconnect(conn->cm);
	conn->cm = NULL;
}

/* Accept a client for an offered QP: 0 also without one, or -errno if there will be none. */
static int
accept_client(struct kv_listener *listener, struct kv_conn *conn)
{
	struct hello hello = make_hello(listener->conf, listener->number);
	struct rmem_cm_conf cm_conf =
			make_conf(conn->server_qp, &hello, ACCEPT_MS, SERVER_RNR_RETRY);
	struct rmem_cm_peer peer;
	uint32_t number;
	int ret;

	ret = rmem_cm_accept(listener->cm, &cm_conf, &peer, &conn->cm);
	if (ret == -ETIMEDOUT)
		return 0;
	if (ret != 0 || check_hello(&hello, &peer, &number) != 0) {
		kv_cm_close(conn);
		/* rdma_cm may have used the number of the QP: the server offers another QP. */
		kv_conn_move(conn, KV_OFFERED, KV_LOST);
		return is_temporary(ret) || ret == -EBADMSG ? 0 : ret;
	}
	if (number == 0)
		listener->number = listener->number % KV_CHECK_KEYS + 1;
	set_qps(conn, conn->server_qp->qp_num, peer.addr.qp_num);
	kv_conn_move(conn, KV_OFFERED, KV_MADE);
	return 0;
}

/* Close connections that either side has ended. */
static void
watch(struct kv_conn *conn)
{
	int state = kv_conn_state(conn);

	if (conn->cm == NULL || state == KV_MADE)
		return;
	if (state == KV_UP && rmem_cm_wait_disconnect(conn->cm, 0) == -ETIMEDOUT)
		return;
	kv_conn_move(conn, KV_UP, KV_LOST);
	kv_cm_close(conn);
}

static void
accept_clients(void *arg)
{
	struct kv_listener *listener = arg;
	struct kv_conn *conn, *offered;
	struct kv_conn *end = listener->conns + listener->nb_conns;

	while (listener->ret == 0 && !kv_is_interrupted(listener->conf)) {
		offered = NULL;
		for (conn = listener->conns; conn < end; conn++) {
			watch(conn);
			if (kv_conn_state(conn) == KV_OFFERED && conn->cm == NULL)
				offered = conn;
		}
		if (offered != NULL)
			listener->ret = accept_client(listener, offered);
		else
			rte_delay_us_sleep(WATCH_MS * 1000);
	}
	if (listener->ret != 0)
		KV_ERR("server: no more clients at %s port %d: %s", listener->conf->listen, KV_PORT,
				why(listener->ret));
	for (conn = listener->conns; conn < end; conn++) {
		kv_conn_set_closed(conn);
		kv_cm_close(conn);
	}
}

int
kv_listen(const struct kv_conf *conf, struct kv_conn *conns, uint32_t nb_conns,
		struct kv_listener **listener)
{
	struct kv_listener *new_listener = calloc(1, sizeof(*new_listener));
	int ret = -ENOMEM;

	if (new_listener != NULL) {
		new_listener->conf = conf;
		new_listener->conns = conns;
		new_listener->nb_conns = nb_conns;
		new_listener->thread.run = accept_clients;
		new_listener->thread.arg = new_listener;
		new_listener->number = 1 + (uint32_t)rte_rand_max(KV_CHECK_KEYS);
		ret = rmem_cm_listener_create(
				(const struct sockaddr *)&conf->addr, &new_listener->cm);
	}
	if (ret == 0)
		ret = rmem_thread_start(&new_listener->thread, "kv-listen");
	if (ret != 0) {
		KV_ERR("cannot listen at %s port %d: %s", conf->listen, KV_PORT, why(ret));
		if (new_listener != NULL)
			rmem_cm_listener_destroy(new_listener->cm);
		free(new_listener);
		return ret;
	}
	printf("server: listening at %s port %d for %" PRIu32 " clients\n", conf->listen, KV_PORT,
			nb_conns);
	*listener = new_listener;
	return 0;
}

int
kv_unlisten(struct kv_listener *listener)
{
	int ret;

	pthread_join(listener->thread.id, NULL);
	ret = listener->ret;
	rmem_cm_listener_destroy(listener->cm);
	free(listener);
	return ret;
}
