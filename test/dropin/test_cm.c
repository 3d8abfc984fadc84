/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The commands of rdma_cm: connections, states, errors, and the descriptor of a channel. */

#include <pthread.h>
#include <sys/stat.h>

#include <infiniband/sa.h>

#include "cm_cmd.h"
#include "own_qp.h"

#define REJ_INVALID_SERVICE_ID 8
#define REJ_CONSUMER           28
#define SIDR_UNSUPPORTED       1
#define SIDR_REJECT            2
#define QKEY                   0x01234567
#define REQUESTS               16

static int server, client; /* channels */

static bool
is_param(const struct rdma_ucm_conn_param *param, uint8_t len, uint8_t max)
{
	const struct rdma_ucm_conn_param sent = cm_param(0, len);

	return param->private_data_len == max &&
			memcmp(param->private_data, sent.private_data, max) == 0;
}

/* The other side's depth is this one's resources. */
static bool
has_depths(const struct rdma_ucm_conn_param *param, uint8_t resources, uint8_t depth)
{
	return param->responder_resources == resources && param->initiator_depth == depth;
}

static void
rc_connects_and_disconnects(void)
{
	struct rdma_ucm_conn_param request = cm_param(7, 56), reply = cm_param(8, 196);
	struct rdma_ucm_event_resp event;
	uint32_t listener, active, passive;

	active = cm_request(server, client, RDMA_PS_TCP, &request, &listener);
	event = cm_expect(server, CONNECT_REQUEST);
	passive = event.id;
	HOLDS(passive != listener && event.param.conn.qp_num == 7);
	HOLDS(is_param(&event.param.conn, 56, 56) && has_depths(&event.param.conn, 2, 3));
	/* No more than the request permits. */
	reply.responder_resources = 2;
	reply.initiator_depth = 3;
	HOLDS(cm_accept(server, passive, 1000, &reply) == 0);
	event = cm_expect(client, CONNECT_RESPONSE);
	HOLDS(event.id == active && event.param.conn.qp_num == 8);
	HOLDS(is_param(&event.param.conn, 196, 196) && has_depths(&event.param.conn, 3, 2));
	HOLDS(cm_accept(client, active, 0, NULL) == 0);
	event = cm_expect(server, ESTABLISHED);
	HOLDS(event.uid == 1000 && event.id == passive);
	HOLDS(cm_disconnect(client, active) == 0);
	HOLDS(cm_expect(client, DISCONNECTED).id == active);
	HOLDS(cm_expect(server, DISCONNECTED).id == passive);
	HOLDS(cm_disconnect(server, passive) == 0);
	HOLDS(cm_destroy(client, active) == 4 && cm_destroy(server, passive) == 2);
	HOLDS(cm_destroy(server, listener) == 1);
}

/* Enhanced connection establishment: numbers of the vendor that the CM passes on. */
static void
ece_is_passed_on(void)
{
	struct rdma_ucm_connect req = {.conn_param = cm_param(0x800001, 0), .ece = {0x102c9, 7}};
	struct rdma_ucm_accept rep = {.conn_param = cm_param(0x800002, 0), .ece = {0xa00001, 9}};
	struct rdma_ucm_event_resp event;
	uint32_t listener, active = cm_create(client, RDMA_PS_TCP);
	uint16_t port;

	listener = cm_listener(server, RDMA_PS_TCP, &port);
	cm_resolve(client, active, port);
	req.id = active;
	HOLDS(cm_run(client, RDMA_USER_CM_CMD_CONNECT, &req, sizeof(req), 0) == 0);
	event = cm_expect(server, CONNECT_REQUEST);
	HOLDS(event.ece.vendor_id == 0x102c9 && event.ece.attr_mod == 7);
	rep.id = event.id;
	rep.uid = 1000;
	HOLDS(cm_run(server, RDMA_USER_CM_CMD_ACCEPT, &rep, sizeof(rep), 0) == 0);
	event = cm_expect(client, CONNECT_RESPONSE);
	HOLDS(event.ece.vendor_id == 0xa00001 && event.ece.attr_mod == 9);
	HOLDS(cm_destroy(client, active) == 3);
	cm_expect(server, REJECTED);
	HOLDS(cm_destroy(server, rep.id) == 1 && cm_destroy(server, listener) == 1);
}

/* As records of a subnet manager, which librdmacm returns to the program. */
static void
route_has_a_path(void)
{
	struct rdma_ucm_query_route_resp route = {.num_paths = 0};
	struct {
		uint32_t num_paths, reserved; /* as in struct rdma_ucm_query_path_resp */
		struct ibv_path_data data;
	} resp = {.num_paths = 0};
	struct rdma_ucm_query in = {.response = (uintptr_t)&route};
	const struct ib_user_path_rec *path = &route.ib_route[0];
	const struct ibv_path_record *record = &resp.data.path;
	uint32_t active = cm_create(client, RDMA_PS_TCP);

	cm_resolve(client, active, 1);
	in.id = active;
	HOLDS(cm_run(client, RDMA_USER_CM_CMD_QUERY_ROUTE, &in, sizeof(in), sizeof(route)) == 0);
	HOLDS(route.num_paths == 1 && route.port_num == 1 && path->pkey == 0xffff);
	HOLDS(path->reversible == 1 && path->numb_path == 1 && path->hop_limit == 64);
	HOLDS(path->mtu >= 1 && path->mtu <= 5 && path->rate != 0);
	HOLDS(path->packet_life_time != 0 && path->mtu_selector == 2);
	HOLDS(path->rate_selector == 2 && path->packet_life_time_selector == 2);
	in.response = (uintptr_t)&resp;
	in.option = RDMA_USER_CM_QUERY_PATH;
	HOLDS(cm_run(client, RDMA_USER_CM_CMD_QUERY, &in, sizeof(in), sizeof(resp)) == 0);
	HOLDS(resp.num_paths == 1 && record->pkey == 0xffff && record->mtu >> 6 == 2);
	HOLDS((record->mtu & 0x3f) == path->mtu && (record->rate & 0x3f) == path->rate);
	HOLDS(memcmp(&record->dgid, path->dgid, sizeof(path->dgid)) == 0);
	HOLDS(memcmp(&record->sgid, path->sgid, sizeof(path->sgid)) == 0);
	HOLDS(record->dlid == path->dlid && record->slid == path->slid);
	HOLDS(cm_destroy(client, active) == 2);
}

static void
attributes_connect_a_qp(void)
{
	struct ib_uverbs_qp_attr a, b;
	struct rdma_ucm_init_qp_attr in = {.response = (uintptr_t)&a, .qp_state = 2 /* RTR */};
	uint32_t listener, active, passive;
	uint16_t port;

	listener = cm_listener(server, RDMA_PS_TCP, &port);
	cm_establish(server, client, port, &passive, &active);
	in.id = active;
	HOLDS(cm_run(client, RDMA_USER_CM_CMD_INIT_QP_ATTR, &in, sizeof(in), sizeof(a)) == 0);
	HOLDS(a.dest_qp_num > 0x800000 && a.path_mtu >= 1 && a.path_mtu <= 5);
	HOLDS(a.max_dest_rd_atomic == 2 && a.ah_attr.is_global == 1 && a.ah_attr.port_num == 1);
	in = (struct rdma_ucm_init_qp_attr){(uintptr_t)&b, passive, 3 /* RTS */};
	HOLDS(cm_run(server, RDMA_USER_CM_CMD_INIT_QP_ATTR, &in, sizeof(in), sizeof(b)) == 0);
	HOLDS(b.sq_psn == a.rq_psn && b.max_rd_atomic == 2 && b.retry_cnt == 7);
	HOLDS(b.rnr_retry == 6 && b.timeout != 0);
	in.qp_state = 6; /* ERR */
	HOLDS(cm_run(server, RDMA_USER_CM_CMD_INIT_QP_ATTR, &in, sizeof(in), sizeof(b)) == EINVAL);
	HOLDS(cm_destroy(server, passive) == 1 && cm_destroy(server, listener) == 1);
	HOLDS(cm_expect(client, DISCONNECTED).id == active);
	HOLDS(cm_destroy(client, active) == 4);
}

/* A QP with a receive that is flushed: its completion is in the CQ. */
static struct ibv_qp *
qp_with_completion(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
			.send_cq = cq,
			.recv_cq = cq,
			.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_recv_sge = 1}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_recv_wr wr = {.wr_id = 5}, *bad;
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	HOLDS(qp != NULL);
	HOLDS(ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					      IBV_QP_ACCESS_FLAGS) == 0);
	HOLDS(ibv_post_recv(qp, &wr, &bad) == 0);
	attr.qp_state = IBV_QPS_ERR;
	HOLDS(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
	return qp;
}

/* The peer disconnects: the event is held back until the CQ is empty, but not forever. */
static void
completions_precede_the_end_of_the_connection(void)
{
	struct ibv_context *context = open_device("soft0");
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	struct rdma_ucm_event_resp event;
	uint32_t listener, active, passive;
	struct ibv_qp *qp;
	struct ibv_wc wc;
	uint16_t port;
	time_t begin;
	int i, err, flags = fcntl(client, F_GETFL);

	HOLDS(pd != NULL && cq != NULL);
	listener = cm_listener(server, RDMA_PS_TCP, &port);
	for (i = 0; i < 2; i++) {
		qp = qp_with_completion(pd, cq);
		cm_establish_qp(server, client, port, qp->qp_num, &passive, &active);
		HOLDS(fcntl(client, F_SETFL, flags | O_NONBLOCK) == 0);
		begin = time(NULL);
		HOLDS(cm_disconnect(server, passive) == 0);
		err = cm_event(client, &event);
		/* Without a CPU for a second it is not held any more. */
		HOLDS(err == EAGAIN || time(NULL) != begin);
		HOLDS(fcntl(client, F_SETFL, flags) == 0);
		/* The second time they are not polled before. */
		if (i == 0)
			HOLDS(ibv_poll_cq(cq, 1, &wc) == 1 && wc.wr_id == 5);
		HOLDS(err == 0 || cm_expect(client, DISCONNECTED).id == active);
		HOLDS(ibv_poll_cq(cq, 1, &wc) == i);
		/* Time-wait, which is over by now the second time, is not reported on one host. */
		HOLDS(fcntl(client, F_SETFL, flags | O_NONBLOCK) == 0);
		err = cm_event(client, &event);
		HOLDS(err == EAGAIN || (cm_has_address() && event.event == TIMEWAIT_EXIT));
		HOLDS(fcntl(client, F_SETFL, flags) == 0);
		HOLDS(cm_expect_next(server, DISCONNECTED).id == passive);
		HOLDS(cm_destroy(server, passive) == 2);
		HOLDS(cm_destroy(client, active) == (err == 0 ? 5 : 4) && ibv_destroy_qp(qp) == 0);
	}
	HOLDS(cm_destroy(server, listener) == 2);
	HOLDS(ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0);
	HOLDS(ibv_close_device(context) == 0);
}

/* Disconnect a connection whose QP has completions; the seconds until the event. */
static double
disconnect_with_completions(void)
{
	struct ibv_context *context = open_device("soft0");
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	struct ibv_qp *qp = qp_with_completion(pd, cq);
	uint32_t listener, active, passive;
	uint64_t begin, end;
	uint16_t port;

	listener = cm_listener(server, RDMA_PS_TCP, &port);
	cm_establish_qp(server, client, port, qp->qp_num, &passive, &active);
	begin = now_ns();
	HOLDS(cm_disconnect(client, active) == 0);
	HOLDS(cm_expect(client, DISCONNECTED).id == active);
	end = now_ns();
	HOLDS(cm_expect(server, DISCONNECTED).id == passive);
	HOLDS(cm_destroy(server, passive) == 2 && cm_destroy(client, active) == 4);
	HOLDS(cm_destroy(server, listener) == 1 && ibv_destroy_qp(qp) == 0);
	HOLDS(ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0);
	HOLDS(ibv_close_device(context) == 0);
	return (double)(end - begin) / 1e9;
}

/* A program that disconnects has no use for them. Held back, the event takes a second. */
static void
own_end_does_not_wait_for_completions(void)
{
	while (disconnect_with_completions() > 0.9)
		;
}

/* A thread that has the CQ, from ibv_start_poll() on, can run commands while a peer disconnects. */
static void
commands_do_not_wait_for_the_end_of_a_poll(void)
{
	struct ibv_context *context = open_device("soft0");
	struct ibv_cq_init_attr_ex init = {.cqe = 4, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(context, &init);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_poll_cq_attr poll_attr = {0};
	struct rdma_ucm_event_resp event;
	uint32_t listener, active, passive;
	int err, flags = fcntl(client, F_GETFL);
	struct ibv_qp *qp;
	uint16_t port;

	HOLDS(pd != NULL && cq != NULL);
	listener = cm_listener(server, RDMA_PS_TCP, &port);
	qp = qp_with_completion(pd, ibv_cq_ex_to_cq(cq));
	cm_establish_qp(server, client, port, qp->qp_num, &passive, &active);
	HOLDS(ibv_start_poll(cq, &poll_attr) == 0 && cq->wr_id == 5);
	HOLDS(fcntl(client, F_SETFL, flags | O_NONBLOCK) == 0);
	HOLDS(cm_destroy(server, passive) == 1);
	err = cm_event(client, &event);
	HOLDS(err == 0 || err == EAGAIN);
	HOLDS(fcntl(client, F_SETFL, flags) == 0);
	ibv_end_poll(cq);
	HOLDS(err == 0 || cm_expect(client, DISCONNECTED).id == active);
	HOLDS(cm_destroy(client, active) == 4 && ibv_destroy_qp(qp) == 0);
	HOLDS(cm_destroy(server, listener) == 1);
	HOLDS(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0 && ibv_dealloc_pd(pd) == 0);
	HOLDS(ibv_close_device(context) == 0);
}

static void
reject_has_private_data(void)
{
	const struct rdma_ucm_conn_param param = cm_param(1, 0), data = cm_param(0, 148);
	struct rdma_ucm_event_resp event;
	uint32_t listener, active, passive;

	active = cm_request(server, client, RDMA_PS_TCP, &param, &listener);
	passive = cm_expect(server, CONNECT_REQUEST).id;
	HOLDS(cm_reject(server, passive, data.private_data, 149) == EINVAL);
	HOLDS(cm_reject(server, passive, data.private_data, 148) == 0);
	HOLDS(cm_accept(server, passive, 1000, &param) == EINVAL);
	event = cm_expect(client, REJECTED);
	HOLDS(event.status == REJ_CONSUMER && event.param.conn.private_data_len == 148);
	HOLDS(memcmp(event.param.conn.private_data, data.private_data, 148) == 0);
	HOLDS(cm_accept(client, active, 0, NULL) == EINVAL);
	HOLDS(cm_destroy(client, active) == 3 && cm_destroy(server, passive) == 0);
	HOLDS(cm_destroy(server, listener) == 1);
}

static void
ud_resolves_a_qp(void)
{
	struct rdma_ucm_conn_param request = cm_param(0, 180), reply = cm_param(9, 136);
	struct rdma_ucm_event_resp event;
	uint32_t listener, active, passive;
	uint16_t port;

	active = cm_request(server, client, RDMA_PS_UDP, &request, &listener);
	port = cm_port(server, listener);
	event = cm_expect(server, CONNECT_REQUEST);
	HOLDS(event.param.ud.private_data_len == 180);
	HOLDS(memcmp(event.param.ud.private_data, request.private_data, 180) == 0);
	passive = event.id;
	HOLDS(cm_accept(server, passive, 1000, &reply) == 0);
	event = cm_expect(client, ESTABLISHED);
	HOLDS(event.param.ud.qp_num == 9 && event.param.ud.qkey == QKEY);
	HOLDS(event.param.ud.ah_attr.is_global == 1);
	HOLDS(memcmp(event.param.ud.private_data, reply.private_data, 136) == 0);
	HOLDS(cm_disconnect(client, active) == EINVAL);
	HOLDS(cm_destroy(client, active) == 3 && cm_destroy(server, passive) == 0);

	active = cm_create(client, RDMA_PS_UDP);
	cm_resolve(client, active, port);
	HOLDS(cm_connect(client, active, &request) == 0);
	passive = cm_expect(server, CONNECT_REQUEST).id;
	HOLDS(cm_reject(server, passive, "", 0) == 0);
	HOLDS(cm_expect(client, UNREACHABLE).status == SIDR_REJECT);
	cm_destroy(client, active);
	cm_destroy(server, passive);
	HOLDS(cm_destroy(server, listener) == 2);
}

static void
connect_without_listener_is_rejected(void)
{
	const struct rdma_ucm_conn_param param = cm_param(1, 0);
	uint32_t tcp = cm_create(client, RDMA_PS_TCP), ud = cm_create(client, RDMA_PS_UDP);
	struct rdma_ucm_event_resp event;
	uint32_t bound = cm_create(server, RDMA_PS_TCP);
	int i;

	/* A port that is bound, not listened at. */
	HOLDS(cm_bind(server, bound, LOOPBACK, 0) == 0);
	cm_resolve(client, tcp, cm_port(server, bound));
	cm_resolve(client, ud, cm_port(server, bound));
	HOLDS(cm_connect(client, tcp, &param) == 0 && cm_connect(client, ud, &param) == 0);
	for (i = 0; i < 2; i++) {
		HOLDS(cm_event(client, &event) == 0);
		if (event.id == tcp)
			HOLDS(event.event == REJECTED && event.status == REJ_INVALID_SERVICE_ID);
		else
			HOLDS(event.event == UNREACHABLE && event.status == SIDR_UNSUPPORTED);
	}
	HOLDS(cm_destroy(client, tcp) == 3 && cm_destroy(client, ud) == 3);
	HOLDS(cm_destroy(server, bound) == 0);
}

/* A listener for TCP is none for UDP. */
static void
port_spaces_are_apart(void)
{
	const struct rdma_ucm_conn_param param = cm_param(1, 0);
	uint32_t listener, active = cm_create(client, RDMA_PS_UDP);
	uint16_t port;

	listener = cm_listener(server, RDMA_PS_TCP, &port);
	cm_resolve(client, active, port);
	HOLDS(cm_connect(client, active, &param) == 0);
	HOLDS(cm_expect(client, UNREACHABLE).status == SIDR_UNSUPPORTED);
	HOLDS(cm_destroy(client, active) == 3 && cm_destroy(server, listener) == 0);
}

/* A listener with one request that it has not got. */
static void
full_backlog_rejects(void)
{
	const struct rdma_ucm_conn_param param = cm_param(1, 0);
	uint32_t listener = cm_create(server, RDMA_PS_TCP), active[2], i;

	HOLDS(cm_bind(server, listener, LOOPBACK, 0) == 0);
	HOLDS(cm_listen(server, listener, 1) == 0);
	for (i = 0; i < 2; i++) {
		active[i] = cm_create(client, RDMA_PS_TCP);
		cm_resolve(client, active[i], cm_port(server, listener));
	}
	HOLDS(cm_connect(client, active[0], &param) == 0);
	HOLDS(poll(&(struct pollfd){.fd = server, .events = POLLIN}, 1, -1) == 1);
	HOLDS(cm_connect(client, active[1], &param) == 0);
	HOLDS(cm_expect(client, REJECTED).id == active[1]);
	HOLDS(cm_destroy(client, active[1]) == 3);
	cm_destroy(server, cm_expect(server, CONNECT_REQUEST).id);
	HOLDS(cm_expect(client, REJECTED).id == active[0]);
	HOLDS(cm_destroy(client, active[0]) == 3 && cm_destroy(server, listener) == 1);
}

/* Connect to a port at which a server listens afterwards; false: this thread had no CPU for the 2 s
 * in which the client tries again. */
static bool
connect_and_listen(void)
{
	const struct rdma_ucm_conn_param param = cm_param(1, 0);
	uint32_t active = cm_create(client, RDMA_PS_TCP);
	uint32_t listener = cm_create(server, RDMA_PS_TCP);
	struct rdma_ucm_event_resp event;
	int ret = EAGAIN;

	HOLDS(cm_bind(server, listener, LOOPBACK, 0) == 0);
	cm_resolve(client, active, cm_port(server, listener));
	HOLDS(cm_connect(client, active, &param) == 0);
	HOLDS(cm_listen(server, listener, 1) == 0);
	/* The client tries again when it looks for events. */
	HOLDS(fcntl(client, F_SETFL, O_NONBLOCK) == 0);
	while (ret == EAGAIN && poll(&(struct pollfd){.fd = server, .events = POLLIN}, 1, 1) == 0)
		ret = cm_event(client, &event);
	HOLDS(fcntl(client, F_SETFL, 0) == 0);
	if (ret == 0) {
		HOLDS(event.event == REJECTED && event.status == REJ_INVALID_SERVICE_ID);
		HOLDS(cm_destroy(client, active) == 3 && cm_destroy(server, listener) == 0);
		return false;
	}
	HOLDS(ret == EAGAIN);
	cm_destroy(server, cm_expect(server, CONNECT_REQUEST).id);
	HOLDS(cm_expect(client, REJECTED).status == REJ_CONSUMER);
	HOLDS(cm_destroy(client, active) == 3 && cm_destroy(server, listener) == 1);
	return true;
}

static void
listener_may_follow_the_request(void)
{
	while (!connect_and_listen())
		;
}

static void
addresses_are_checked(void)
{
	uint32_t a = cm_create(server, RDMA_PS_TCP), b = cm_create(client, RDMA_PS_TCP);
	uint32_t ud = cm_create(client, RDMA_PS_UDP);
	struct rdma_ucm_bind in = {.id = b, .addr_size = 8};
	uint16_t port;

	HOLDS(cm_bind(server, a, "203.0.113.9", 0) == EADDRNOTAVAIL);
	HOLDS(cm_bind(server, a, LOOPBACK, 0) == 0);
	HOLDS(cm_bind(server, a, LOOPBACK, 0) == EINVAL);
	port = cm_port(server, a);
	HOLDS(port >= 32768);
	HOLDS(cm_bind(client, b, LOOPBACK, port) == EADDRINUSE);
	HOLDS(cm_run(client, RDMA_USER_CM_CMD_BIND, &in, sizeof(in), 0) == EINVAL);
	in.addr_size = sizeof(in.addr);
	in.addr.ss_family = AF_IB;
	HOLDS(cm_run(client, RDMA_USER_CM_CMD_BIND, &in, sizeof(in), 0) == EAFNOSUPPORT);
	/* Ports of UD are others. */
	HOLDS(cm_bind(client, ud, LOOPBACK, port) == 0);
	HOLDS(cm_destroy(server, a) == 0);
	HOLDS(cm_bind(client, b, LOOPBACK, port) == 0);
	HOLDS(cm_resolve_addr(client, b, "203.0.113.9", 7) == 0);
	HOLDS((int)cm_expect(client, ADDR_ERROR).status == -EHOSTUNREACH);
	HOLDS(cm_resolve_addr(client, b, LOOPBACK, 7) == 0);
	HOLDS(cm_expect(client, ADDR_RESOLVED).status == 0);
	HOLDS(cm_destroy(client, b) == 2 && cm_destroy(client, ud) == 0);
}

static void
wrong_commands_are_refused(void)
{
	const struct rdma_ucm_conn_param param = cm_param(1, 57);
	struct rdma_ucm_create_id_resp resp;
	struct rdma_ucm_create_id in = {.uid = 1, .response = (uintptr_t)&resp, .ps = 1};
	uint32_t id = cm_create(client, RDMA_PS_TCP);
	uint32_t words[4] = {RDMA_USER_CM_CMD_DISCONNECT, 8};
	size_t i;

	HOLDS(cm_run(client, RDMA_USER_CM_CMD_CREATE_ID, &in, sizeof(in), 4) == EINVAL);
	in.ps = RDMA_PS_TCP;
	HOLDS(cm_run(client, RDMA_USER_CM_CMD_CREATE_ID, &in, sizeof(in), 3) == ENOSPC);
	in.response = 0;
	HOLDS(cm_run(client, RDMA_USER_CM_CMD_CREATE_ID, &in, sizeof(in), 4) == EFAULT);
	for (i = RDMA_USER_CM_CMD_JOIN_MCAST + 1; i < 40; i++)
		HOLDS(cm_run(client, (uint32_t)i, &in, sizeof(in), 0) == ENOSYS);
	HOLDS(cm_run(client, RDMA_USER_CM_CMD_JOIN_MCAST, &in, sizeof(in), 0) == EINVAL);
	for (i = 0; i < 8; i++)
		HOLDS(write(client, words, i) == -1 && errno == EINVAL);
	HOLDS(write(client, words, 15) == -1 && errno == EINVAL);
	HOLDS(cm_destroy(client, 4711) == -1 && errno == ENOENT);
	HOLDS(cm_destroy(server, id) == -1 && errno == EINVAL);
	HOLDS(cm_connect(client, id, &param) == EINVAL && cm_disconnect(client, id) == EINVAL);
	HOLDS(cm_accept(client, id, 1, &param) == EINVAL &&
			cm_accept(client, id, 1, NULL) == EINVAL);
	HOLDS(cm_reject(client, id, "", 0) == EINVAL);
	cm_resolve(client, id, 1);
	HOLDS(cm_connect(client, id, &param) == EINVAL); /* 56 bytes of private data */
	HOLDS(cm_listen(client, id, 0) == EINVAL);
	HOLDS(cm_destroy(client, id) == 2);
	HOLDS(cm_destroy(client, id) == -1 && errno == ENOENT);
}

static void
descriptor_is_polled_and_duplicated(void)
{
	struct rdma_ucm_event_resp event;
	uint32_t id = cm_create(client, RDMA_PS_TCP);
	struct stat st;
	int copy;

	HOLDS(fstat(client, &st) == 0 && S_ISCHR(st.st_mode) && !is_readable(client));
	HOLDS(fcntl(client, F_SETFL, O_NONBLOCK) == 0);
	HOLDS(cm_event(client, &event) == EAGAIN);
	HOLDS(cm_resolve_addr(client, id, LOOPBACK, 1) == 0 && is_readable(client));
	copy = dup(client);
	HOLDS(copy >= 0 && is_readable(copy));
	HOLDS(cm_event(copy, &event) == 0 && event.event == ADDR_RESOLVED);
	HOLDS(!is_readable(client) && cm_event(client, &event) == EAGAIN);
	HOLDS(close(client) == 0);
	HOLDS(cm_destroy(copy, id) == 1);
	cm_create(copy, RDMA_PS_TCP);
	/* Another file with the same number is not a channel. */
	HOLDS(dup2(STDERR_FILENO, copy) == copy);
	HOLDS(fstat(STDERR_FILENO, &st) == 0 && write(copy, "", 0) == 0);
	HOLDS(close(copy) == 0 && write(copy, "", 0) == -1 && errno == EBADF);
	client = cm_open();
}

static void
id_and_its_events_migrate(void)
{
	struct rdma_ucm_migrate_resp resp;
	struct rdma_ucm_migrate_id in = {.response = (uintptr_t)&resp, .fd = (uint32_t)server};
	uint32_t listener, active, passive, other;
	int channel = cm_open();
	uint16_t port;

	listener = cm_listener(server, RDMA_PS_TCP, &port);
	cm_establish(server, client, port, &passive, &active);
	in.id = passive;
	HOLDS(cm_run(channel, RDMA_USER_CM_CMD_MIGRATE_ID, &in, sizeof(in), sizeof(resp)) == 0);
	HOLDS(resp.events_reported == 1);
	HOLDS(cm_disconnect(client, active) == 0);
	HOLDS(cm_expect(channel, DISCONNECTED).id == passive && !is_readable(server));
	in.id = listener;
	HOLDS(cm_run(channel, RDMA_USER_CM_CMD_MIGRATE_ID, &in, sizeof(in), sizeof(resp)) == 0);
	HOLDS(cm_run(channel, RDMA_USER_CM_CMD_MIGRATE_ID, &in, sizeof(in), sizeof(resp)) ==
			EINVAL);
	cm_expect(client, DISCONNECTED);
	HOLDS(cm_destroy(client, active) == 4);
	cm_establish(channel, client, port, &other, &active);
	HOLDS(close(channel) == 0);
	/* All IDs of the channel are freed, and their ports. */
	HOLDS(cm_expect(client, DISCONNECTED).id == active);
	HOLDS(cm_destroy(client, active) == 4);
	active = cm_create(client, RDMA_PS_TCP);
	HOLDS(cm_bind(client, active, LOOPBACK, port) == 0 && cm_destroy(client, active) == 0);
}

static void *
get_requests(void *arg)
{
	int i, *count = arg;

	for (i = 0; i < REQUESTS; i++) {
		HOLDS(cm_destroy(server, cm_expect(server, CONNECT_REQUEST).id) == 0);
		++*count;
	}
	return NULL;
}

static void *
wait_for_event(void *arg)
{
	struct rdma_ucm_event_resp event;

	*(int *)arg = 1;
	(void)cm_event(client, &event);
	return NULL;
}

static void
threads_share_a_channel(void)
{
	const struct rdma_ucm_conn_param param = cm_param(1, 0);
	uint32_t listener, active[2 * REQUESTS];
	int i, counts[2] = {0};
	pthread_t threads[3];
	uint16_t port;
	void *ret;

	listener = cm_listener(server, RDMA_PS_TCP, &port);
	for (i = 0; i < 2; i++)
		HOLDS(pthread_create(&threads[i], NULL, get_requests, &counts[i]) == 0);
	for (i = 0; i < 2 * REQUESTS; i++) {
		active[i] = cm_create(client, RDMA_PS_TCP);
		cm_resolve(client, active[i], port);
		HOLDS(cm_connect(client, active[i], &param) == 0);
		HOLDS(cm_expect(client, REJECTED).status == REJ_CONSUMER);
		HOLDS(cm_destroy(client, active[i]) == 3);
	}
	for (i = 0; i < 2; i++)
		HOLDS(pthread_join(threads[i], NULL) == 0);
	HOLDS(counts[0] + counts[1] == 2 * REQUESTS);
	/* One that waits can be cancelled, and leaves no lock. */
	HOLDS(pthread_create(&threads[2], NULL, wait_for_event, &counts[0]) == 0);
	HOLDS(pthread_cancel(threads[2]) == 0 && pthread_join(threads[2], &ret) == 0);
	HOLDS(ret == PTHREAD_CANCELED);
	HOLDS(cm_destroy(server, listener) == 2 * REQUESTS);
}

int
main(void)
{
	server = cm_open();
	client = cm_open();
	rc_connects_and_disconnects();
	ece_is_passed_on();
	route_has_a_path();
	attributes_connect_a_qp();
	completions_precede_the_end_of_the_connection();
	own_end_does_not_wait_for_completions();
	commands_do_not_wait_for_the_end_of_a_poll();
	reject_has_private_data();
	ud_resolves_a_qp();
	connect_without_listener_is_rejected();
	port_spaces_are_apart();
	full_backlog_rejects();
	listener_may_follow_the_request();
	addresses_are_checked();
	wrong_commands_are_refused();
	descriptor_is_polled_and_duplicated();
	id_and_its_events_migrate();
	threads_share_a_channel();
	HOLDS(close(server) == 0 && close(client) == 0);
	return 0;
}
