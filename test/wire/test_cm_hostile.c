/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A peer of rmem_cm that sends what none of rmem sends: others are served, and nothing is left. */

#include <arpa/inet.h>
#include <pthread.h>
#include <string.h>

#include <rmem_cm.h>

#include "../perf/perf_row.h"
#include "../rc.h"
#include "cm_peer.h"

#define IP         "127.0.23.1"
#define PEER_IP    "127.0.23.2"
#define CLOSED_IP  "127.0.23.3"
#define PORT       7175
#define TIMEOUT_MS 60000
#define SHORT_MS   2

/* Reasons of a REJ. */
#define INVALID_SERVICE_ID 8
#define CONSUMER           28

#define PS_IB 0x013f /* another port space of rdma_cm */

#define NB_REQUESTS  10000
#define MAX_REQUESTS 64 /* of one source, that a listener keeps */

static struct rmem_cm_listener *server;
static struct perf_pair pair;
static struct sockaddr_in addr;
static struct cm_peer peer;

/* A thread that accepts, or connects. */
struct caller {
	bool is_accept;
	uint32_t timeout_ms;
	struct rmem_qp *qp;
	struct rmem_cm_conn *conn;
	int ret;
	pthread_t thread;
};

static void *
run_caller(void *arg)
{
	struct caller *caller = arg;
	const struct rmem_cm_conf conf = {.qp = caller->qp,
			.timeout_ms = caller->timeout_ms,
			.timeout = 14,
			.retry_cnt = 7};

	if (caller->is_accept)
		caller->ret = rmem_cm_accept(server, &conf, NULL, &caller->conn);
	else
		caller->ret = rmem_cm_connect((struct sockaddr *)&addr, &conf, NULL, &caller->conn);
	return NULL;
}

static void
start_caller(struct caller *caller, struct rmem_qp *qp, bool is_accept, uint32_t timeout_ms)
{
	*caller = (struct caller){.is_accept = is_accept, .qp = qp, .timeout_ms = timeout_ms};
	TEST_OK(rmem_qp_reset(qp));
	TEST_EQ(pthread_create(&caller->thread, NULL, run_caller, caller), 0);
}

static int
end_caller(struct caller *caller)
{
	TEST_EQ(pthread_join(caller->thread, NULL), 0);
	return caller->ret;
}

static int
accept_within(uint32_t timeout_ms, struct rmem_cm_conn **conn)
{
	const struct rmem_cm_conf conf = {.qp = pair.b, .timeout_ms = timeout_ms, .timeout = 14};

	TEST_OK(rmem_qp_reset(pair.b));
	return rmem_cm_accept(server, &conf, NULL, conn);
}

/* Two QPs of the device connect and disconnect, after requests that are refused. */
static void
others_are_served(void)
{
	struct rmem_cm_conn *conn;
	struct caller caller;
	int ret;

	start_caller(&caller, pair.a, false, TIMEOUT_MS);
	do {
		ret = accept_within(TIMEOUT_MS, &conn);
	} while (ret == -EBADMSG);
	TEST_OK(ret);
	TEST_OK(end_caller(&caller));
	rmem_cm_disconnect(caller.conn);
	TEST_OK(rmem_cm_wait_disconnect(conn, TIMEOUT_MS));
	rmem_cm_disconnect(conn);
}

/* The next rmem_cm_accept() refuses a request. */
static void
is_refused(const struct ibcm_msg *req)
{
	uint32_t nb = cm_peer_nb(&peer, IBCM_REJ);
	struct rmem_cm_conn *conn;

	TEST_ERR(accept_within(TIMEOUT_MS, &conn), EBADMSG);
	cm_peer_wait(&peer, IBCM_REJ, nb + 1);
	TEST_EQ(cm_peer_last(&peer, IBCM_REJ)->remote_id, req->local_id);
	TEST_EQ(cm_peer_last(&peer, IBCM_REJ)->reason, CONSUMER);
	others_are_served();
}

TEST(cm_hostile, message_that_is_not_of_rmem_is_refused)
{
	static const uint8_t text[] = "another protocol, of 56 bytes or less";
	struct ibcm_msg req;

	cm_peer_request(&peer, PORT, text, sizeof(text), &req);
	is_refused(&req);
	cm_peer_request(&peer, PORT, NULL, 0, &req);
	is_refused(&req);
}

TEST(cm_hostile, message_of_another_version_is_refused)
{
	uint8_t message[CM_PEER_MESSAGE];
	struct ibcm_msg req;

	cm_peer_message(peer.path.local_gid, 77, message);
	message[2]++;
	cm_peer_request(&peer, PORT, message, sizeof(message), &req);
	is_refused(&req);
}

TEST(cm_hostile, request_of_another_port_space_has_no_listener)
{
	uint32_t nb = cm_peer_nb(&peer, IBCM_REJ);
	uint64_t tcp = peer.port_space;
	struct ibcm_msg req;

	peer.port_space = PS_IB;
	cm_peer_connect(&peer, PORT, &req);
	peer.port_space = tcp;
	cm_peer_wait(&peer, IBCM_REJ, nb + 1);
	TEST_EQ(cm_peer_last(&peer, IBCM_REJ)->remote_id, req.local_id);
	TEST_EQ(cm_peer_last(&peer, IBCM_REJ)->reason, INVALID_SERVICE_ID);
	others_are_served();
}

/* The QP would send to a third host. */
TEST(cm_hostile, address_of_another_host_is_refused)
{
	uint8_t message[CM_PEER_MESSAGE], gid[16];
	struct ibcm_msg req;

	memcpy(gid, peer.path.local_gid, sizeof(gid));
	gid[15]++;
	cm_peer_message(gid, 77, message);
	cm_peer_request(&peer, PORT, message, sizeof(message), &req);
	is_refused(&req);
}

/* More than the queues between the two hold would be lost. */
static void
send_requests(void)
{
	struct ibcm_msg req;
	int i;

	for (i = 0; i < NB_REQUESTS; i++) {
		cm_peer_request(&peer, PORT, NULL, 0, &req);
		if (i % 16 == 0)
			cm_peer_sync(&peer);
	}
	cm_peer_sync(&peer);
}

TEST(cm_hostile, requests_of_one_source_are_bounded)
{
	struct rmem_cm_conn *conn;
	int nb_kept = 0;

	send_requests();
	TEST_ASSERT(cm_peer_nb(&peer, IBCM_REJ) >= NB_REQUESTS - MAX_REQUESTS);
	others_are_served();
	send_requests();
	while (accept_within(1, &conn) == -EBADMSG)
		nb_kept++;
	TEST_ASSERT(nb_kept <= MAX_REQUESTS);
	others_are_served();
}

/* A MAD that is no message, between those of a connection. */
static void
send_bytes(uint8_t version, uint8_t class, uint8_t fill)
{
	uint8_t mad[IBCM_MAD_LEN];

	memset(mad, fill, sizeof(mad));
	mad[0] = version;
	mad[1] = class;
	rmem_gsi_send(peer.gsi, &peer.path, mad);
}

TEST(cm_hostile, foreign_mads_are_ignored)
{
	int i;

	for (i = 0; i < 256; i++) {
		send_bytes(1, (uint8_t)i, (uint8_t)i);
		send_bytes((uint8_t)i, IBCM_MAD_CLASS, 0xff);
		if (i % 16 == 0)
			cm_peer_sync(&peer);
	}
	others_are_served();
}

/* Connect the peer; accepted by the caller. */
static void
establish(struct caller *caller, struct ibcm_msg *req)
{
	uint32_t nb = cm_peer_nb(&peer, IBCM_REP);
	struct ibcm_msg rtu;

	start_caller(caller, pair.b, true, TIMEOUT_MS);
	cm_peer_connect(&peer, PORT, req);
	cm_peer_wait(&peer, IBCM_REP, nb + 1);
	rtu = cm_peer_reply(&peer, req, IBCM_RTU);
	cm_peer_send(&peer, &rtu);
	TEST_OK(end_caller(caller));
}

TEST(cm_hostile, wrong_ids_change_nothing)
{
	struct ibcm_msg req, dreq, msg;
	struct caller caller;

	establish(&caller, &req);
	dreq = cm_peer_reply(&peer, &req, IBCM_DREQ);
	msg = dreq;
	msg.remote_id++;
	cm_peer_send(&peer, &msg);
	msg = dreq;
	msg.local_id++;
	cm_peer_send(&peer, &msg);
	msg = dreq;
	msg.qpn++;
	cm_peer_send(&peer, &msg);
	msg = dreq;
	msg.type = IBCM_REJ;
	msg.reason = CONSUMER;
	msg.local_id++;
	cm_peer_send(&peer, &msg);
	cm_peer_sync(&peer);
	TEST_ERR(rmem_cm_wait_disconnect(caller.conn, 0), ETIMEDOUT);
	cm_peer_send(&peer, &dreq);
	TEST_OK(rmem_cm_wait_disconnect(caller.conn, TIMEOUT_MS));
	rmem_cm_disconnect(caller.conn);
}

TEST(cm_hostile, duplicates_change_nothing)
{
	struct ibcm_msg req, msg;
	struct caller caller;
	uint32_t nb;

	establish(&caller, &req);
	msg = cm_peer_reply(&peer, &req, IBCM_RTU);
	cm_peer_send(&peer, &msg);
	cm_peer_send(&peer, &req);
	cm_peer_sync(&peer);
	TEST_ERR(rmem_cm_wait_disconnect(caller.conn, 0), ETIMEDOUT);
	nb = cm_peer_nb(&peer, IBCM_DREP);
	msg = cm_peer_reply(&peer, &req, IBCM_DREQ);
	cm_peer_send(&peer, &msg);
	cm_peer_send(&peer, &msg);
	cm_peer_wait(&peer, IBCM_DREP, nb + 2);
	TEST_OK(rmem_cm_wait_disconnect(caller.conn, TIMEOUT_MS));
	rmem_cm_disconnect(caller.conn);
	others_are_served();
}

/* The peer ends between its request and its confirmation. */
TEST(cm_hostile, peer_that_rejects_the_answer_is_econnrefused)
{
	struct ibcm_msg req, rej;
	struct caller caller;

	start_caller(&caller, pair.b, true, TIMEOUT_MS);
	cm_peer_connect(&peer, PORT, &req);
	cm_peer_wait(&peer, IBCM_REP, 1);
	rej = cm_peer_reply(&peer, &req, IBCM_REJ);
	rej.reason = CONSUMER;
	cm_peer_send(&peer, &rej);
	TEST_ERR(end_caller(&caller), ECONNREFUSED);
	others_are_served();
}

/* The peer is connected when it has the answer: the timeout, which has expired, does not apply. */
TEST(cm_hostile, late_confirmation_connects)
{
	struct ibcm_msg req, rtu;
	struct caller caller;

	cm_peer_connect(&peer, PORT, &req);
	cm_peer_sync(&peer);
	start_caller(&caller, pair.b, true, SHORT_MS);
	cm_peer_wait(&peer, IBCM_REP, 1);
	rte_delay_ms(10 * SHORT_MS);
	rtu = cm_peer_reply(&peer, &req, IBCM_RTU);
	cm_peer_send(&peer, &rtu);
	TEST_OK(end_caller(&caller));
	rmem_cm_disconnect(caller.conn);
}

TEST(cm_hostile, listener_that_ends_rejects_its_requests)
{
	struct ibcm_msg req;

	cm_peer_connect(&peer, PORT, &req);
	cm_peer_sync(&peer);
	rmem_cm_listener_destroy(server);
	server = NULL;
	cm_peer_wait(&peer, IBCM_REJ, 2);
	TEST_EQ(cm_peer_last(&peer, IBCM_REJ)->remote_id, req.local_id);
	TEST_EQ(cm_peer_last(&peer, IBCM_REJ)->reason, CONSUMER);
}

/* The device can be closed at once, whether the peer has answered or not. */
TEST(cm_hostile, silent_peer_delays_the_end_for_a_time)
{
	struct ibcm_msg req;
	struct caller caller;

	establish(&caller, &req);
	rmem_cm_listener_destroy(server);
	server = NULL;
	rmem_cm_disconnect(caller.conn);
	cm_peer_wait(&peer, IBCM_DREQ, 1);
	TEST_EQ(cm_peer_last(&peer, IBCM_DREQ)->remote_id, req.local_id);
}

static struct rmem_qp *
open_ud(void)
{
	static const uint32_t masks[] = {
			[RMEM_QPS_INIT] = RMEM_QP_PKEY_INDEX | RMEM_QP_PORT | RMEM_QP_QKEY,
			[RMEM_QPS_RTS] = RMEM_QP_SQ_PSN};
	struct rmem_qp_conf conf = rc_conf(pair.cq_a, 2, 1);
	struct rmem_qp_attr attr = {.port_num = 1, .qkey = RMEM_GSI_QKEY};
	struct rmem_qp *qp;

	conf.type = RMEM_QPT_UD;
	conf.flags = RMEM_QP_SIG_ALL;
	TEST_OK(rmem_qp_create(pair.pd, &conf, &qp));
	for (attr.state = RMEM_QPS_INIT; attr.state <= RMEM_QPS_RTS; attr.state++)
		TEST_OK(rmem_qp_modify(qp, &attr, RMEM_QP_STATE | masks[attr.state]));
	return qp;
}

/* A device that a thread closes while requests arrive. */
struct closing {
	struct rmem_dev *dev;
	struct rmem_cm_listener *listener;
	int ret;
	bool is_done;
};

static void *
close_device(void *arg)
{
	struct closing *closing = arg;

	rmem_cm_listener_destroy(closing->listener);
	closing->ret = rmem_dev_close(closing->dev);
	__atomic_store_n(&closing->is_done, true, __ATOMIC_RELEASE);
	return NULL;
}

TEST(cm_hostile, device_closes_while_requests_arrive)
{
	struct sockaddr_in own = addr;
	struct closing closing;
	struct cm_peer other;
	struct ibcm_msg req;
	pthread_t thread;
	int i;

	TEST_EQ(inet_pton(AF_INET, CLOSED_IP, &own.sin_addr), 1);
	cm_peer_open(&other, "soft31", "127.0.23.4", CLOSED_IP);
	for (i = 0; i < 20; i++) {
		closing = (struct closing){.is_done = false};
		TEST_OK(rmem_dev_create("soft32", "ip=" CLOSED_IP, &closing.dev));
		TEST_OK(rmem_cm_listener_create((struct sockaddr *)&own, &closing.listener));
		cm_peer_connect(&other, PORT, &req);
		cm_peer_sync(&other); /* the listener has a request */
		TEST_EQ(pthread_create(&thread, NULL, close_device, &closing), 0);
		while (!__atomic_load_n(&closing.is_done, __ATOMIC_ACQUIRE)) {
			cm_peer_connect(&other, PORT, &req);
			rmem_gsi_poll(other.gsi);
		}
		TEST_EQ(pthread_join(thread, NULL), 0);
		TEST_OK(closing.ret);
	}
	cm_peer_close(&other);
}

/* A MAD of a QP that is not QP 1, and one of another length. */
TEST(cm_hostile, datagrams_that_are_no_mads_are_counted)
{
	const struct rmem_ah_attr path = {.is_global = 1,
			.port_num = 1,
			.hop_limit = 64,
			.dgid = {[10] = 0xff, 0xff, 127, 0, 23, 2}};
	struct rmem_mr *mr = perf_mr(pair.pd, 4096);
	struct rmem_qp *qp = open_ud();
	struct rmem_send_wr wr = {.opcode = RMEM_WR_SEND, .num_sge = 1};
	struct rmem_sge sge;

	TEST_ASSERT(mr != NULL);
	TEST_OK(rmem_ah_create(pair.pd, &path, &wr.ud.ah));
	wr.ud.remote_qpn = 1;
	wr.ud.remote_qkey = RMEM_GSI_QKEY;
	wr.sg_list = &sge;
	sge = (struct rmem_sge){.addr = (uintptr_t)mr->addr, .length = 256, .lkey = mr->lkey};
	memcpy(mr->addr, (const uint8_t[]){1, IBCM_MAD_CLASS}, 2);
	TEST_EQ(rmem_post_send(qp, &wr, 1), 1);
	sge.length = 100;
	TEST_EQ(rmem_post_send(qp, &wr, 1), 1);
	while (rmem_gsi_stats(peer.gsi)->foreign < 2)
		rmem_gsi_poll(peer.gsi);
	TEST_EQ(rmem_gsi_stats(peer.gsi)->rx, 0);
	TEST_OK(rmem_ah_destroy(wr.ud.ah));
	TEST_OK(rmem_qp_destroy(qp));
	TEST_OK(rmem_mr_dereg(mr));
}

#define FLOOD_IP    "127.0.23.5"
#define FLOOD_LIMIT (3 * RMEM_GSI_MAX_POLL)

/* QP 1 of a device that sends a MAD to itself for each one that it receives. */
static struct {
	struct rmem_dev *dev;
	struct rmem_gsi *gsi;
	int nb;
} flood;

static void
flooded(void *arg, const struct ibcm_path *path, const uint8_t mad[IBCM_MAD_LEN])
{
	RTE_SET_USED(arg);
	if (++flood.nb < FLOOD_LIMIT)
		rmem_gsi_send(flood.gsi, path, mad);
}

/* A poll ends though another MAD has arrived whenever one was received. */
TEST(cm_hostile, flood_of_mads_does_not_keep_a_poll)
{
	const uint8_t mad[IBCM_MAD_LEN] = {1, IBCM_MAD_CLASS};
	struct ibcm_path path = {.hop_limit = 64};
	bool has_more;
	int nb;

	flood.nb = 0;
	TEST_OK(rmem_dev_create("soft32", "ip=" FLOOD_IP, &flood.dev));
	TEST_OK(rmem_gsi_open(flood.dev, flooded, NULL, &flood.gsi));
	memcpy(path.local_gid, rmem_gsi_gid(flood.gsi), sizeof(path.local_gid));
	memcpy(path.remote_gid, path.local_gid, sizeof(path.remote_gid));
	rmem_gsi_send(flood.gsi, &path, mad);
	while (flood.nb < FLOOD_LIMIT) {
		nb = flood.nb;
		has_more = rmem_gsi_poll(flood.gsi);
		nb = flood.nb - nb;
		TEST_ASSERT(nb < 2 * RMEM_GSI_MAX_POLL);
		TEST_ASSERT(has_more || nb < RMEM_GSI_MAX_POLL);
	}
	rmem_gsi_close(flood.gsi);
	TEST_OK(rmem_dev_close(flood.dev));
}

static void
setup(void)
{
	addr = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(PORT)};
	TEST_EQ(inet_pton(AF_INET, IP, &addr.sin_addr), 1);
	perf_pair_open(&pair, "ip=" IP ",loop=1");
	TEST_OK(rmem_cm_listener_create((struct sockaddr *)&addr, &server));
	cm_peer_open(&peer, "soft29", PEER_IP, IP);
}

static void
teardown(void)
{
	rmem_cm_listener_destroy(server);
	server = NULL;
	cm_peer_close(&peer);
	perf_pair_close(&pair);
}

TEST_SUITE(cm_hostile, setup, teardown);
