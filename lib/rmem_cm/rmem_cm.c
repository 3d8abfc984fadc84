/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Connections: both sides, their QPs connected before the peer can know of it. */

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include <rmem_driver.h>

#include "rmem_cm_priv.h"

RTE_LOG_REGISTER(rmem_cm_logtype, lib.rmem.cm, NOTICE)

#define CM_BACKLOG 16
/* Of a device: most have fewer than the first. */
#define CM_GIDS     256
#define CM_MAX_GIDS 65536

static bool
cm_is_zero(const uint8_t *bytes, size_t nb)
{
	size_t i;

	for (i = 0; i < nb && bytes[i] == 0; i++)
		;
	return i == nb;
}

static int
cm_check_given(const void *pointer, const char *what)
{
	if (pointer != NULL)
		return 0;
	CM_LOG(ERR, "got NULL for %s", what);
	return -EINVAL;
}

static int
cm_check_addr(const struct sockaddr *addr)
{
	struct sockaddr_storage room;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)&room;
	const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)&room;
	int rc;

	rc = cm_check_given(addr, "the address");
	if (rc != 0)
		return rc;
	if (addr->sa_family != AF_INET && addr->sa_family != AF_INET6) {
		CM_LOG(ERR, "address family %u is neither IPv4 nor IPv6", addr->sa_family);
		return -EINVAL;
	}
	memcpy(&room, addr, addr->sa_family == AF_INET ? sizeof(*four) : sizeof(*six));
	if ((addr->sa_family == AF_INET ? four->sin_port : six->sin6_port) == 0) {
		CM_LOG(ERR, "an address without a port");
		return -EINVAL;
	}
	return 0;
}

/* A number of a caller and its limits. */
struct cm_number {
	const char *name;
	uint64_t value;
	uint64_t low;
	uint64_t high;
};

static int
cm_check_numbers(const struct cm_number *numbers, size_t nb)
{
	size_t i;

	for (i = 0; i < nb; i++) {
		if (numbers[i].value >= numbers[i].low && numbers[i].value <= numbers[i].high)
			continue;
		CM_LOG(ERR, "%s is %" PRIu64 ", not %" PRIu64 " to %" PRIu64, numbers[i].name,
				numbers[i].value, numbers[i].low, numbers[i].high);
		return -EINVAL;
	}
	return 0;
}

/* The QP's address, when all else is as it must be. */
static int
cm_check_conf(const struct rmem_cm_conf *conf, uint32_t max_size, struct rmem_qp_addr *addr)
{
	struct rmem_qp_attr attr;
	int rc;

	rc = cm_check_given(conf, "the configuration");
	if (rc != 0)
		return rc;
	const struct cm_number numbers[] = {
			{"data_size", conf->data_size, 0, max_size},
			{"timeout_ms", conf->timeout_ms, 1, RMEM_CM_MAX_TIMEOUT_MS},
			{"timeout", conf->timeout, 0, 31},
			{"retry_cnt", conf->retry_cnt, 0, 7},
			{"rnr_retry", conf->rnr_retry, 0, 7},
			{"min_rnr_timer", conf->min_rnr_timer, 0, 31},
	};

	rc = cm_check_numbers(numbers, RTE_DIM(numbers));
	if (rc != 0)
		return rc;
	if (conf->data_size != 0 && conf->data == NULL) {
		CM_LOG(ERR, "%u bytes for the peer at NULL", conf->data_size);
		return -EINVAL;
	}
	if (!cm_is_zero(conf->reserved, sizeof(conf->reserved))) {
		CM_LOG(ERR, "a reserved field of rmem_cm_conf is not zero");
		return -EINVAL;
	}
	rc = rmem_qp_query(conf->qp, &attr);
	if (rc != 0)
		return rc == -EINVAL ? -EINVAL : -EIO;
	if (attr.state != RMEM_QPS_RESET) {
		CM_LOG(ERR, "QP %u is in state %u, not in RESET", conf->qp->qp_num, attr.state);
		return -EBUSY;
	}
	*addr = attr.addr;
	return 0;
}

/* Whether a device has a GID. The kernel gives all there are, or -EINVAL for too little room. */
static int
cm_has_gid(struct ibv_context *verbs, const uint8_t gid[16], bool *is_here)
{
	struct ibv_gid_entry *table;
	ssize_t i, nb = -EINVAL;
	size_t room;

	*is_here = false;
	for (room = CM_GIDS; nb == -EINVAL && room <= CM_MAX_GIDS; room *= 2) {
		table = calloc(room, sizeof(*table));
		if (table == NULL)
			return -ENOMEM;
		nb = ibv_query_gid_table(verbs, table, room, 0);
		for (i = 0; i < nb && !*is_here; i++)
			*is_here = memcmp(table[i].gid.raw, gid, sizeof(table[i].gid.raw)) == 0;
		free(table);
	}
	return 0;
}

/* The QP is of the device that rdma_cm found: one of its GIDs is that of the QP. */
static int
cm_check_device(const struct rdma_cm_id *id, const struct rmem_qp_addr *addr)
{
	bool is_here = false;
	int rc = 0;

	if (id->verbs != NULL)
		rc = cm_has_gid(id->verbs, addr->gid, &is_here);
	if (rc != 0 || is_here)
		return rc;
	CM_LOG(ERR, "the IP address is not one of the QP's device");
	return -ENODEV;
}

static int
cm_connect_qp(const struct rmem_cm_conf *conf, const struct rmem_qp_addr *remote)
{
	struct rmem_qp_conn conn;
	int rc;

	memset(&conn, 0, sizeof(conn));
	conn.remote = *remote;
	conn.timeout = conf->timeout;
	conn.retry_cnt = conf->retry_cnt;
	conn.rnr_retry = conf->rnr_retry;
	conn.min_rnr_timer = conf->min_rnr_timer;
	rc = rmem_qp_connect(conf->qp, &conn);
	if (rc == -EINVAL) /* all but the peer's part was checked */
		return -EBADMSG;
	return rc == 0 || rc == -EBUSY || rc == -ENOMEM || rc == -ENODEV ? rc : -EIO;
}

static struct rdma_conn_param
cm_param(const struct rmem_cm_conf *conf, const uint8_t *message, uint8_t size)
{
	struct rdma_conn_param param;

	memset(&param, 0, sizeof(param));
	param.private_data = message;
	param.private_data_len = size;
	param.retry_count = conf->retry_cnt;
	param.rnr_retry_count = conf->rnr_retry;
	param.qp_num = conf->qp->qp_num;
	return param;
}

static void
cm_release(struct rmem_cm_conn *conn)
{
	if (conn->id != NULL)
		rdma_destroy_id(conn->id);
	if (conn->channel != NULL)
		rdma_destroy_event_channel(conn->channel);
	free(conn);
}

static int
cm_conn_create(struct rmem_cm_conn **out)
{
	struct rmem_cm_conn *conn = calloc(1, sizeof(*conn));
	int rc;

	if (conn == NULL)
		return -ENOMEM;
	rc = cm_channel_create(&conn->channel);
	if (rc != 0) {
		free(conn);
		return rc;
	}
	*out = conn;
	return 0;
}

int
rmem_cm_listen(const struct sockaddr *addr, struct rmem_cm_listener **out)
{
	struct sockaddr_storage local;
	struct rmem_cm_listener *listener;
	int rc;

	rc = rmem_process_check("rmem_cm_listen");
	if (rc == 0)
		rc = cm_check_given(out, "the new listener");
	if (rc == 0)
		rc = cm_check_addr(addr);
	if (rc != 0)
		return rc;
	listener = calloc(1, sizeof(*listener));
	if (listener == NULL)
		return -ENOMEM;
	rc = cm_channel_create(&listener->channel);
	if (rc == 0 && rdma_create_id(listener->channel, &listener->id, NULL, RDMA_PS_TCP) != 0) {
		listener->id = NULL;
		rc = cm_errno("rdma_create_id");
	}
	memcpy(&local, addr,
			addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
						   : sizeof(struct sockaddr_in6));
	if (rc == 0 && rdma_bind_addr(listener->id, (struct sockaddr *)(void *)&local) != 0)
		rc = cm_errno("rdma_bind_addr");
	if (rc == 0 && rdma_listen(listener->id, CM_BACKLOG) != 0)
		rc = cm_errno("rdma_listen");
	if (rc == 0)
		*out = listener;
	else
		rmem_cm_unlisten(listener);
	return rc;
}

void
rmem_cm_unlisten(struct rmem_cm_listener *listener)
{
	if (listener == NULL)
		return;
	if (listener->id != NULL)
		rdma_destroy_id(listener->id);
	if (listener->channel != NULL)
		rdma_destroy_event_channel(listener->channel);
	free(listener);
}

/* Up to a request that is good; the id is the connection's, also when it is refused. */
static int
cm_take_request(struct rmem_cm_listener *listener, const struct rmem_qp_addr *addr, uint64_t end_ms,
		struct rmem_cm_conn *conn, struct rmem_cm_peer *from)
{
	struct cm_event event;
	int rc;

	rc = cm_expect(listener->channel, RDMA_CM_EVENT_CONNECT_REQUEST, end_ms, &event);
	if (rc != 0)
		return rc;
	conn->id = event.id;
	rc = cm_unpack(event.data, event.size, from);
	if (rc == 0)
		rc = cm_check_device(conn->id, addr);
	if (rc == 0 && rdma_migrate_id(conn->id, conn->channel) != 0)
		rc = cm_errno("rdma_migrate_id");
	if (rc != 0)
		(void)rdma_reject(conn->id, NULL, 0);
	return rc;
}

static int
cm_answer(struct rmem_cm_conn *conn, const struct rmem_cm_conf *conf,
		const struct rmem_qp_addr *addr, const struct rmem_cm_peer *from, uint64_t end_ms)
{
	uint8_t message[CM_MAX_SIZE];
	struct rdma_conn_param param;
	struct cm_event event;
	int rc;

	rc = cm_connect_qp(conf, &from->addr);
	if (rc != 0) {
		(void)rdma_reject(conn->id, NULL, 0);
		return rc;
	}
	param = cm_param(conf, message, cm_pack(addr, conf->data, conf->data_size, message));
	if (rdma_accept(conn->id, &param) != 0) {
		/* The kernel's word for an id whose peer went meanwhile. */
		bool is_gone = errno == EINVAL;

		rc = cm_errno("rdma_accept");
		if (is_gone)
			rc = -ECONNREFUSED;
	}
	if (rc == 0)
		rc = cm_expect(conn->channel, RDMA_CM_EVENT_ESTABLISHED, end_ms, &event);
	if (rc != 0)
		(void)rmem_qp_reset(conf->qp);
	return rc;
}

int
rmem_cm_accept(struct rmem_cm_listener *listener, const struct rmem_cm_conf *conf,
		struct rmem_cm_peer *peer, struct rmem_cm_conn **out)
{
	struct rmem_cm_conn *conn;
	struct rmem_cm_peer from;
	struct rmem_qp_addr addr;
	int rc;

	rc = rmem_process_check("rmem_cm_accept");
	if (rc == 0)
		rc = cm_check_given(listener, "the listener");
	if (rc == 0)
		rc = cm_check_given(out, "the new connection");
	if (rc == 0)
		rc = cm_check_conf(conf, RMEM_CM_MAX_ANSWER, &addr);
	if (rc == 0)
		rc = cm_conn_create(&conn);
	if (rc != 0)
		return rc;
	rc = cm_take_request(listener, &addr, cm_now_ms() + conf->timeout_ms, conn, &from);
	/* A peer that comes at the end of the wait has all of the time to answer. */
	if (rc == 0)
		rc = cm_answer(conn, conf, &addr, &from, cm_now_ms() + conf->timeout_ms);
	if (rc != 0) {
		cm_release(conn);
		return rc;
	}
	if (peer != NULL)
		*peer = from;
	*out = conn;
	return 0;
}

/* The way to the peer, through the device of the QP. */
static int
cm_resolve(struct rmem_cm_conn *conn, const struct sockaddr *remote,
		const struct rmem_cm_conf *conf, const struct rmem_qp_addr *addr, uint64_t end_ms)
{
	struct sockaddr_storage to;
	struct cm_event event;
	int rc;

	memcpy(&to, remote,
			remote->sa_family == AF_INET ? sizeof(struct sockaddr_in)
						     : sizeof(struct sockaddr_in6));
	if (rdma_create_id(conn->channel, &conn->id, NULL, RDMA_PS_TCP) != 0) {
		conn->id = NULL;
		return cm_errno("rdma_create_id");
	}
	/* Half of the time: no host's answer is told from that of a host which keeps silent. */
	if (rdma_resolve_addr(conn->id, NULL, (struct sockaddr *)(void *)&to,
			    (int)(conf->timeout_ms + 1) / 2) != 0)
		return cm_errno("rdma_resolve_addr");
	rc = cm_expect(conn->channel, RDMA_CM_EVENT_ADDR_RESOLVED, end_ms, &event);
	if (rc == 0)
		rc = cm_check_device(conn->id, addr);
	if (rc == 0 && rdma_resolve_route(conn->id, (int)conf->timeout_ms) != 0)
		rc = cm_errno("rdma_resolve_route");
	if (rc == 0)
		rc = cm_expect(conn->channel, RDMA_CM_EVENT_ROUTE_RESOLVED, end_ms, &event);
	return rc;
}

static int
cm_request(struct rmem_cm_conn *conn, const struct rmem_cm_conf *conf,
		const struct rmem_qp_addr *addr, uint64_t end_ms, struct rmem_cm_peer *from)
{
	uint8_t message[CM_MAX_SIZE];
	struct rdma_conn_param param;
	struct cm_event event;
	int rc;

	param = cm_param(conf, message, cm_pack(addr, conf->data, conf->data_size, message));
	if (rdma_connect(conn->id, &param) != 0)
		return cm_errno("rdma_connect");
	rc = cm_expect(conn->channel, RDMA_CM_EVENT_CONNECT_RESPONSE, end_ms, &event);
	if (rc != 0)
		return rc;
	rc = cm_unpack(event.data, event.size, from);
	if (rc == 0)
		rc = cm_connect_qp(conf, &from->addr);
	if (rc != 0) {
		(void)rdma_reject(conn->id, NULL, 0);
		return rc;
	}
	if (rdma_establish(conn->id) != 0) {
		rc = cm_errno("rdma_establish");
		(void)rmem_qp_reset(conf->qp);
	}
	return rc;
}

int
rmem_cm_connect(const struct sockaddr *remote, const struct rmem_cm_conf *conf,
		struct rmem_cm_peer *peer, struct rmem_cm_conn **out)
{
	struct rmem_cm_conn *conn;
	struct rmem_cm_peer from;
	struct rmem_qp_addr addr;
	uint64_t end_ms;
	int rc;

	rc = rmem_process_check("rmem_cm_connect");
	if (rc == 0)
		rc = cm_check_given(out, "the new connection");
	if (rc == 0)
		rc = cm_check_addr(remote);
	if (rc == 0)
		rc = cm_check_conf(conf, RMEM_CM_MAX_REQUEST, &addr);
	if (rc == 0)
		rc = cm_conn_create(&conn);
	if (rc != 0)
		return rc;
	end_ms = cm_now_ms() + conf->timeout_ms;
	rc = cm_resolve(conn, remote, conf, &addr, end_ms);
	if (rc == 0)
		rc = cm_request(conn, conf, &addr, end_ms, &from);
	if (rc != 0) {
		cm_release(conn);
		return rc;
	}
	if (peer != NULL)
		*peer = from;
	*out = conn;
	return 0;
}

int
rmem_cm_wait_end(struct rmem_cm_conn *conn, uint32_t timeout_ms)
{
	const struct cm_number number = {"timeout_ms", timeout_ms, 0, RMEM_CM_MAX_TIMEOUT_MS};
	uint64_t end_ms = cm_now_ms() + timeout_ms;
	struct cm_event event;
	int rc;

	rc = cm_check_given(conn, "the connection");
	if (rc == 0)
		rc = cm_check_numbers(&number, 1);
	if (rc != 0)
		return rc;
	while (!conn->is_ended) {
		rc = cm_next(conn->channel, end_ms, &event);
		if (rc != 0)
			return rc == -ETIMEDOUT || rc == -ENODEV ? rc : -EIO;
		if (event.type == RDMA_CM_EVENT_DEVICE_REMOVAL)
			return -ENODEV;
		conn->is_ended = event.type == RDMA_CM_EVENT_DISCONNECTED;
	}
	return 0;
}

void
rmem_cm_close(struct rmem_cm_conn *conn)
{
	if (conn == NULL)
		return;
	(void)rdma_disconnect(conn->id);
	cm_release(conn);
}
