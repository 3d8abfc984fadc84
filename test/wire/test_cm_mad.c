/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Connections by the communication manager of a device: their data, their end, and refusals. */

#define ALLOW_EXPERIMENTAL_API /* trace points in DPDK 22.11 */

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_log.h>
#include <rte_trace.h>

#include <rmem_cm.h>
#include <rmem_dev.h>
#include <rmem_pd.h>

#include "../perf/perf_row.h"
#include "../rc.h"
#include "../slow_stream.h"
#include "cm_peer.h"

#define IP         "127.0.19.1"
#define PORT       7175
#define TIMEOUT_MS 60000
#define NB_THREADS 4

static struct rmem_cm_listener *server;
static struct perf_pair pair;
static struct rmem_mr *mr_a;
static struct sockaddr_in addr;

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

/* A thread that connects a QP. */
struct caller {
	struct rmem_qp *qp;
	struct sockaddr_in to;
	struct rmem_cm_conn *conn;
	int ret;
	pthread_t thread;
};

static void *
run_caller(void *arg)
{
	struct caller *caller = arg;

	caller->ret = connect_peer((struct sockaddr *)&caller->to, caller->qp, mr_a, &caller->conn);
	return NULL;
}

static void
start_caller(struct caller *caller, struct rmem_qp *qp, const struct sockaddr_in *to)
{
	*caller = (struct caller){.qp = qp, .to = *to};
	TEST_OK(rmem_qp_reset(qp));
	TEST_EQ(pthread_create(&caller->thread, NULL, run_caller, caller), 0);
}

static void
connect_pair(struct rmem_cm_listener *listener, struct rmem_cm_conn **connected,
		struct rmem_cm_conn **accepted)
{
	struct rmem_cm_peer peer;
	struct caller caller;
	uint32_t rkey;

	TEST_OK(rmem_qp_reset(pair.b));
	start_caller(&caller, pair.a, &addr);
	TEST_OK(accept_peer(listener, pair.b, &peer, accepted));
	TEST_EQ(pthread_join(caller.thread, NULL), 0);
	TEST_OK(caller.ret);
	*connected = caller.conn;
	TEST_EQ(peer.addr.qp_num, pair.a->qp_num);
	TEST_EQ(peer.data_size, sizeof(rkey));
	memcpy(&rkey, peer.data, sizeof(rkey));
	TEST_EQ(ntohl(rkey), mr_a->rkey);
}

static struct rmem_cm_conf
conf_of(struct rmem_qp *qp, uint32_t timeout_ms)
{
	return (struct rmem_cm_conf){.qp = qp, .timeout_ms = timeout_ms, .timeout = 14};
}

static void
write_one(struct rmem_qp *qp, struct rmem_cq *cq, struct rmem_mr *mr, uint8_t value)
{
	uint8_t *at = mr->addr;
	const struct rmem_sge sge = {.addr = (uintptr_t)at, .length = 64, .lkey = mr->lkey};
	const struct rmem_send_wr wr =
			rc_rdma(RMEM_WR_RDMA_WRITE, &sge, (uintptr_t)at + 1024, mr->rkey);
	struct rmem_wc wc;

	memset(at, value, 64);
	TEST_EQ(rmem_post_send(qp, &wr, 1), 1);
	TEST_EQ(rc_wait(cq, &wc), 1);
	TEST_EQ(wc.status, RMEM_WC_SUCCESS);
	TEST_MEM(at + 1024, at, 64);
}

static void
end_pair(struct rmem_cm_conn *first, struct rmem_cm_conn *second)
{
	TEST_ERR(rmem_cm_wait_disconnect(second, 0), ETIMEDOUT);
	rmem_cm_disconnect(first);
	TEST_OK(rmem_cm_wait_disconnect(second, TIMEOUT_MS));
	rmem_cm_disconnect(second);
}

TEST(cm_mad, data_in_both_directions_and_end)
{
	struct rmem_cm_conn *connected, *accepted;

	connect_pair(server, &connected, &accepted);
	write_one(pair.a, pair.cq_a, mr_a, 1);
	write_one(pair.b, pair.cq_b, mr_a, 2);
	end_pair(connected, accepted);
	connect_pair(server, &connected, &accepted);
	write_one(pair.b, pair.cq_b, mr_a, 3);
	end_pair(accepted, connected);
}

/* The peer is another port of the device, which answers after all that was sent before. */
static void
sync_with_port(void)
{
	struct sockaddr_in closed = addr;
	struct rmem_cm_conn *conn;

	closed.sin_port = htons(PORT + 1);
	TEST_ERR(connect_peer((struct sockaddr *)&closed, pair.a, mr_a, &conn), ECONNREFUSED);
}

/* Whether rmem_cm_dump() prints these lines, one after the other, in one connection. */
static bool
dump_has(const char *const *lines, size_t nb)
{
	char *text = NULL, *at;
	size_t size = 0, i;
	FILE *file = open_memstream(&text, &size);
	bool is_there = false;

	TEST_ASSERT(file != NULL);
	TEST_OK(rmem_cm_dump(file));
	fclose(file);
	for (at = strstr(text, "\nconnection "); at != NULL && !is_there;) {
		char *end = strstr(at + 1, "\nconnection "), *line = at;

		if (end != NULL)
			*end = '\0';
		for (i = 0; i < nb && (line = strstr(line, lines[i])) != NULL; i++)
			;
		is_there = i == nb;
		if (end != NULL)
			*end = '\n';
		at = end;
	}
	free(text);
	return is_there;
}

TEST(cm_mad, dump_has_both_sides_and_why_they_ended)
{
	static const char peer[] = "  peer: " IP "\n";
	static const char *const up[] = {"  state: ESTABLISHED\n", "  side: active\n", peer,
			"  port_space: TCP\n", "  port: 7175\n"};
	static const char *const end[] = {"  side: passive\n", "  end: disconnected by peer\n"};
	struct rmem_cm_conn *connected, *accepted;
	char qp_num[64], remote_qp_num[64];
	const char *const qps[] = {"  side: passive\n", qp_num, remote_qp_num};

	connect_pair(server, &connected, &accepted);
	snprintf(qp_num, sizeof(qp_num), "  qp_num: %u\n", pair.b->qp_num);
	snprintf(remote_qp_num, sizeof(remote_qp_num), "  remote_qp_num: %u\n", pair.a->qp_num);
	TEST_ASSERT(dump_has(up, RTE_DIM(up)));
	TEST_ASSERT(dump_has(qps, RTE_DIM(qps)));
	end_pair(connected, accepted);
	TEST_ASSERT(dump_has(end, RTE_DIM(end)));
	TEST_ERR(rmem_cm_dump(NULL), EINVAL);
}

static int
dump(const void *obj, FILE *f)
{
	RTE_SET_USED(obj);
	return rmem_cm_dump(f);
}

TEST(cm_mad, dump_to_a_stream_that_is_not_read_makes_no_other_thread_wait)
{
	struct rmem_cm_conn *connected, *accepted;

	connect_pair(server, &connected, &accepted);
	test_dump_slowly(dump, NULL);
	end_pair(connected, accepted);
}

/* The CM of the device has ended with its last connection. */
TEST(cm_mad, dump_has_a_connect_that_was_rejected)
{
	static const char *const lines[] = {
			"  port: 7176\n", "  end: rejected by peer\n", "  reason: 8\n"};

	rmem_cm_listener_destroy(server);
	server = NULL;
	TEST_OK(rmem_qp_reset(pair.a));
	sync_with_port();
	TEST_ASSERT(dump_has(lines, RTE_DIM(lines)));
}

/* Lines that are logged between the two, also by the thread of the device. */
static char *log_text;
static size_t log_size;
static FILE *log_file;
static int log_level;

static void
log_begin(void)
{
	uint32_t type = (uint32_t)rte_log_register("lib.rmem.cm");

	log_file = open_memstream(&log_text, &log_size);
	TEST_ASSERT(log_file != NULL);
	log_level = rte_log_get_level(type);
	rte_log_set_level(type, RTE_LOG_INFO);
	rte_openlog_stream(log_file);
}

static bool
log_end_has(const char *text)
{
	bool has_text;

	rte_openlog_stream(NULL);
	rte_log_set_level((uint32_t)rte_log_register("lib.rmem.cm"), (uint32_t)log_level);
	fclose(log_file);
	has_text = strstr(log_text, text) != NULL;
	free(log_text);
	return has_text;
}

TEST(cm_mad, no_listener_is_refused)
{
	struct sockaddr_in closed = addr;
	struct rmem_cm_conn *conn;
	int ret;

	closed.sin_port = htons(PORT + 1);
	TEST_OK(rmem_qp_reset(pair.a));
	log_begin();
	ret = connect_peer((struct sockaddr *)&closed, pair.a, mr_a, &conn);
	TEST_ASSERT(log_end_has("peer: rejected the connection, reason 8 (IBTA 12.6.7.2)"));
	TEST_ERR(ret, ECONNREFUSED);
}

TEST(cm_mad, request_that_timed_out_is_forgotten)
{
	const struct rmem_cm_conf conf = conf_of(pair.a, 100), wait = conf_of(pair.b, 1);
	struct rmem_cm_conn *conn, *accepted;

	TEST_OK(rmem_qp_reset(pair.a));
	TEST_OK(rmem_qp_reset(pair.b));
	TEST_ERR(rmem_cm_connect((struct sockaddr *)&addr, &conf, NULL, &conn), ETIMEDOUT);
	sync_with_port();
	TEST_ERR(rmem_cm_accept(server, &wait, NULL, &accepted), ETIMEDOUT);
	connect_pair(server, &conn, &accepted);
	end_pair(conn, accepted);
}

TEST(cm_mad, peer_without_the_device_does_not_answer)
{
	const struct rmem_cm_conf conf = conf_of(pair.a, 100);
	struct sockaddr_in nobody = addr;
	struct rmem_cm_conn *conn;

	int ret;

	TEST_EQ(inet_pton(AF_INET, "127.0.19.77", &nobody.sin_addr), 1);
	TEST_OK(rmem_qp_reset(pair.a));
	log_begin();
	ret = rmem_cm_connect((struct sockaddr *)&nobody, &conf, NULL, &conn);
	TEST_ASSERT(log_end_has("peer 127.0.19.77: no answer to a request"));
	TEST_ERR(ret, ETIMEDOUT);
}

TEST(cm_mad, other_family_than_the_device_is_refused)
{
	const struct rmem_cm_conf conf = conf_of(pair.a, 100);
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(PORT)};
	struct rmem_cm_conn *conn;

	six.sin6_addr.s6_addr[15] = 1;
	TEST_OK(rmem_qp_reset(pair.a));
	TEST_ERR(rmem_cm_connect((struct sockaddr *)&six, &conf, NULL, &conn), ENODEV);
}

TEST(cm_mad, one_listener_at_a_port)
{
	struct rmem_cm_listener *second;
	struct sockaddr_in other = addr;

	TEST_ERR(rmem_cm_listener_create((struct sockaddr *)&addr, &second), EEXIST);
	other.sin_port = htons(PORT + 2);
	TEST_OK(rmem_cm_listener_create((struct sockaddr *)&other, &second));
	rmem_cm_listener_destroy(second);
	TEST_OK(rmem_cm_listener_create((struct sockaddr *)&other, &second));
	rmem_cm_listener_destroy(second);
}

TEST(cm_mad, qp_of_another_device_is_refused)
{
	struct rmem_cm_conf conf;
	struct perf_pair other;
	struct rmem_cm_conn *conn;

	perf_pair_open(&other, "ip=127.0.19.3,loop=1");
	TEST_OK(rmem_qp_reset(other.a));
	conf = conf_of(other.a, 100);
	TEST_ERR(rmem_cm_accept(server, &conf, NULL, &conn), ENODEV);
	perf_pair_close(&other);
}

TEST(cm_mad, listener_keeps_its_device)
{
	struct rmem_cm_listener *listener;
	struct sockaddr_in other = addr;
	struct rmem_dev *dev;

	TEST_EQ(inet_pton(AF_INET, "127.0.19.4", &other.sin_addr), 1);
	TEST_ERR(rmem_cm_listener_create((struct sockaddr *)&other, &listener), ENODEV);
	TEST_OK(rmem_dev_create("soft29", "ip=127.0.19.4", &dev));
	TEST_OK(rmem_cm_listener_create((struct sockaddr *)&other, &listener));
	TEST_ERR(rmem_dev_close(dev), EBUSY);
	rmem_cm_listener_destroy(listener);
	TEST_OK(rmem_dev_close(dev));
}

/* QP 1 of an application: the device has no other. */
TEST(cm_mad, qp_1_in_use_is_refused)
{
	struct rmem_cm_listener *listener;
	struct sockaddr_in other = addr;
	struct cm_peer peer;

	TEST_EQ(inet_pton(AF_INET, "127.0.19.4", &other.sin_addr), 1);
	cm_peer_open(&peer, "soft29", "127.0.19.4", IP);
	TEST_ERR(rmem_cm_listener_create((struct sockaddr *)&other, &listener), EIO);
	cm_peer_close(&peer);
}

/* Without completion channels the thread polls. */
TEST(cm_mad, device_without_thread_connects)
{
	struct rmem_cm_conn *connected, *accepted;
	const struct perf_pair saved = pair;
	const struct sockaddr_in saved_addr = addr;
	struct rmem_cm_listener *listener;

	TEST_EQ(inet_pton(AF_INET, "127.0.19.5", &addr.sin_addr), 1);
	perf_pair_open(&pair, "ip=127.0.19.5,loop=1,progress=poll");
	TEST_OK(rmem_cm_listener_create((struct sockaddr *)&addr, &listener));
	connect_pair(listener, &connected, &accepted);
	end_pair(connected, accepted);
	rmem_cm_listener_destroy(listener);
	perf_pair_close(&pair);
	pair = saved;
	addr = saved_addr;
}

/* More QPs of the pair's device. */
static void
open_qps(struct rmem_qp **qps, unsigned int nb)
{
	const struct rmem_qp_conf conf = rc_conf(pair.cq_a, 1, 1);
	unsigned int i;

	for (i = 0; i < nb; i++)
		TEST_OK(rmem_qp_create(pair.pd, &conf, &qps[i]));
}

TEST(cm_mad, threads_connect_concurrently)
{
	struct rmem_cm_conn *accepted[NB_THREADS];
	struct rmem_qp *qps[2 * NB_THREADS];
	struct caller callers[NB_THREADS];
	int i;

	open_qps(qps, RTE_DIM(qps));
	for (i = 0; i < NB_THREADS; i++)
		start_caller(&callers[i], qps[i], &addr);
	for (i = 0; i < NB_THREADS; i++)
		TEST_OK(accept_peer(server, qps[NB_THREADS + i], NULL, &accepted[i]));
	for (i = 0; i < NB_THREADS; i++) {
		TEST_EQ(pthread_join(callers[i].thread, NULL), 0);
		TEST_OK(callers[i].ret);
		rmem_cm_disconnect(callers[i].conn);
	}
	for (i = 0; i < NB_THREADS; i++) {
		TEST_OK(rmem_cm_wait_disconnect(accepted[i], TIMEOUT_MS));
		rmem_cm_disconnect(accepted[i]);
	}
	for (i = 0; i < 2 * NB_THREADS; i++)
		TEST_OK(rmem_qp_destroy(qps[i]));
}

static void
setup(void)
{
	addr = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(PORT)};
	TEST_EQ(inet_pton(AF_INET, IP, &addr.sin_addr), 1);
	perf_pair_open(&pair, "ip=" IP ",loop=1");
	mr_a = perf_mr(pair.pd, 4096);
	TEST_ASSERT(mr_a != NULL);
	TEST_OK(rmem_cm_listener_create((struct sockaddr *)&addr, &server));
}

static void
teardown(void)
{
	rmem_cm_listener_destroy(server);
	server = NULL;
	TEST_OK(rmem_mr_dereg(mr_a));
	perf_pair_close(&pair);
}

TEST_SUITE(cm_mad, setup, teardown);

/* Prints the events that app/test_trace.py finds in the trace. */
TEST(cm_trace, changes_of_states_are_traced)
{
	static const char *const states[][2] = {{"IDLE", "REQ_SENT"}, {"REQ_SENT", "REP_RCVD"},
			{"REP_RCVD", "ESTABLISHED"}, {"ESTABLISHED", "DREQ_SENT"},
			{"DREQ_SENT", "TIMEWAIT"}};
	struct rmem_cm_conn *connected, *accepted;
	size_t i;

	connect_pair(server, &connected, &accepted);
	end_pair(connected, accepted);
	/* Until the DREP is received. */
	TEST_OK(rmem_qp_reset(pair.a));
	sync_with_port();
	/* The trace of the device's thread is lost when the thread ends. */
	TEST_OK(rte_trace_save());
	for (i = 0; i < RTE_DIM(states); i++)
		printf("wanted: lib.rmem.cm.state dev=%s qp_num=%u from=%s state=%s\n",
				rmem_pd_dev(pair.pd)->name, pair.a->qp_num, states[i][0],
				states[i][1]);
	printf("wanted: lib.rmem.cm.state qp_num=%u remote_qp_num=%u end=disconnected reason=0\n",
			pair.a->qp_num, pair.b->qp_num);
}

TEST_SUITE(cm_trace, setup, teardown);
