/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Connections of RDMA devices, through rdma_cm(7). */

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "rmem_cm_priv.h"

#define CM_BACKLOG 16
/* Initial size for the GIDs of a device; most have fewer. */
#define CM_GIDS     256
#define CM_MAX_GIDS 65536

/* Whether a device has a GID. The kernel returns all GIDs, or -EINVAL if the array is too small. */
static int
cm_has_gid(struct ibv_context *verbs, const uint8_t gid[16], bool *is_here)
{
	struct ibv_gid_entry *table;
	ssize_t i, nb = -EINVAL;
	size_t max;

	*is_here = false;
	for (max = CM_GIDS; nb == -EINVAL && max <= CM_MAX_GIDS; max *= 2) {
		table = calloc(max, sizeof(*table));
		if (table == NULL)
			return -ENOMEM;
		nb = ibv_query_gid_table(verbs, table, max, 0);
		for (i = 0; i < nb && !*is_here; i++)
			*is_here = memcmp(table[i].gid.raw, gid, sizeof(table[i].gid.raw)) == 0;
		free(table);
	}
	return 0;
}

/* Check that the QP's device is the device that rdma_cm found: it must have the QP's GID. */
static int
cm_check_device(const struct rdma_cm_id *id, const struct rmem_qp_addr *addr)
{
	bool is_here = false;
	int ret = 0;

	if (id->verbs != NULL)
		ret = cm_has_gid(id->verbs, addr->gid, &is_here);
	if (ret != 0 || is_here)
		return ret;
	return CM_FAIL(ENODEV, "IP address: not an address of the QP's device");
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

/* Create the channel of a listener at an address that no device with a QP 1 has. */
static int
cm_listener_channel(const struct sockaddr_storage *addr, struct rdma_event_channel **channel)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *four = (const struct sockaddr_in *)addr;
	bool is_four = addr->ss_family == AF_INET;
	char text[INET6_ADDRSTRLEN] = "";
	char subject[128];

	inet_ntop(addr->ss_family, is_four ? (const void *)&four->sin_addr : &six->sin6_addr, text,
			sizeof(text));
	snprintf(subject, sizeof(subject),
			"address %s: not the ip= of a soft device of this process", text);
	return rmem_cm_channel_create(subject, channel);
}

static int
rdma_listener_open(struct rmem_cm_listener *listener, const struct sockaddr *addr)
{
	struct sockaddr_storage local;
	int ret;

	rmem_cm_copy_sockaddr(addr, &local);
	ret = cm_listener_channel(&local, &listener->channel);
	if (ret == 0 && rdma_create_id(listener->channel, &listener->id, NULL, RDMA_PS_TCP) != 0) {
		listener->id = NULL;
		ret = rmem_cm_errno("rdma_create_id");
	}
	if (ret == 0 && rdma_bind_addr(listener->id, (struct sockaddr *)(void *)&local) != 0)
		ret = rmem_cm_errno("rdma_bind_addr");
	if (ret == 0 && rdma_listen(listener->id, CM_BACKLOG) != 0)
		ret = rmem_cm_errno("rdma_listen");
	return ret;
}

static void
rdma_listener_close(struct rmem_cm_listener *listener)
{
	if (listener->id != NULL)
		rdma_destroy_id(listener->id);
	if (listener->channel != NULL)
		rdma_destroy_event_channel(listener->channel);
}

/* Wait for a request, and check it. Its ID belongs to conn then, even if it is rejected. */
static int
cm_take_request(struct rmem_cm_listener *listener, const struct rmem_qp_addr *addr, uint64_t end_ms,
		struct rmem_cm_conn *conn, struct rmem_cm_peer *from)
{
	struct cm_event event;
	int ret;

	ret = rmem_cm_expect(listener->channel, RDMA_CM_EVENT_CONNECT_REQUEST, end_ms, &event);
	if (ret != 0)
		return ret;
	conn->id = event.id;
	ret = rmem_cm_unpack(event.data, event.size, from);
	if (ret == 0)
		ret = cm_check_device(conn->id, addr);
	if (ret == 0 && rdma_migrate_id(conn->id, conn->channel) != 0)
		ret = rmem_cm_errno("rdma_migrate_id");
	if (ret != 0)
		(void)rdma_reject(conn->id, NULL, 0);
	return ret;
}

static int
cm_answer(struct rmem_cm_conn *conn, const struct rmem_cm_conf *conf,
		const struct rmem_qp_addr *addr, const struct rmem_cm_peer *from, uint64_t end_ms)
{
	uint8_t message[CM_MAX_SIZE];
	struct rdma_conn_param param;
	struct cm_event event;
	int ret;

	ret = rmem_cm_connect_qp(conf, &from->addr);
	if (ret != 0) {
		(void)rdma_reject(conn->id, NULL, 0);
		return ret;
	}
	param = cm_param(conf, message, rmem_cm_pack(addr, conf->data, conf->data_size, message));
	if (rdma_accept(conn->id, &param) != 0) {
		/* The kernel's errno for an id whose peer has disconnected. */
		bool is_disconnected = errno == EINVAL;

		ret = rmem_cm_errno("rdma_accept");
		if (is_disconnected)
			ret = -ECONNREFUSED;
	}
	if (ret == 0)
		ret = rmem_cm_expect(conn->channel, RDMA_CM_EVENT_ESTABLISHED, end_ms, &event);
	if (ret != 0)
		(void)rmem_qp_reset(conf->qp);
	return ret;
}

static int
rdma_accept_conn(struct rmem_cm_listener *listener, const struct rmem_cm_conf *conf,
		const struct rmem_qp_addr *addr, struct rmem_cm_conn *conn,
		struct rmem_cm_peer *from)
{
	int ret = rmem_cm_channel_create("listener: not of a soft device with ip=", &conn->channel);

	if (ret == 0)
		ret = cm_take_request(
				listener, addr, rmem_cm_now_ms() + conf->timeout_ms, conn, from);
	if (ret == 0)
		ret = cm_answer(conn, conf, addr, from, rmem_cm_answer_end_ms(conf));
	return ret;
}

/* Resolve the address and the route of the peer, which must use the device of the QP. */
static int
cm_resolve(struct rmem_cm_conn *conn, const struct sockaddr *remote,
		const struct rmem_cm_conf *conf, const struct rmem_qp_addr *addr, uint64_t end_ms)
{
	struct sockaddr_storage to;
	struct cm_event event;
	int ret;

	rmem_cm_copy_sockaddr(remote, &to);
	if (rdma_create_id(conn->channel, &conn->id, NULL, RDMA_PS_TCP) != 0) {
		conn->id = NULL;
		return rmem_cm_errno("rdma_create_id");
	}
	/* Half of the timeout, to distinguish an unknown host from one that does not answer. */
	if (rdma_resolve_addr(conn->id, NULL, (struct sockaddr *)(void *)&to,
			    (int)(conf->timeout_ms + 1) / 2) != 0)
		return rmem_cm_errno("rdma_resolve_addr");
	ret = rmem_cm_expect(conn->channel, RDMA_CM_EVENT_ADDR_RESOLVED, end_ms, &event);
	if (ret == 0)
		ret = cm_check_device(conn->id, addr);
	if (ret == 0 && rdma_resolve_route(conn->id, (int)conf->timeout_ms) != 0)
		ret = rmem_cm_errno("rdma_resolve_route");
	if (ret == 0)
		ret = rmem_cm_expect(conn->channel, RDMA_CM_EVENT_ROUTE_RESOLVED, end_ms, &event);
	return ret;
}

static int
cm_request(struct rmem_cm_conn *conn, const struct rmem_cm_conf *conf,
		const struct rmem_qp_addr *addr, uint64_t end_ms, struct rmem_cm_peer *from)
{
	uint8_t message[CM_MAX_SIZE];
	struct rdma_conn_param param;
	struct cm_event event;
	int ret;

	param = cm_param(conf, message, rmem_cm_pack(addr, conf->data, conf->data_size, message));
	if (rdma_connect(conn->id, &param) != 0)
		return rmem_cm_errno("rdma_connect");
	ret = rmem_cm_expect(conn->channel, RDMA_CM_EVENT_CONNECT_RESPONSE, end_ms, &event);
	if (ret != 0)
		return ret;
	ret = rmem_cm_unpack(event.data, event.size, from);
	if (ret == 0)
		ret = rmem_cm_connect_qp(conf, &from->addr);
	if (ret != 0) {
		(void)rdma_reject(conn->id, NULL, 0);
		return ret;
	}
	if (rdma_establish(conn->id) != 0) {
		ret = rmem_cm_errno("rdma_establish");
		(void)rmem_qp_reset(conf->qp);
	}
	return ret;
}

static int
rdma_connect_conn(struct rmem_cm_conn *conn, const struct sockaddr *remote,
		const struct rmem_cm_conf *conf, const struct rmem_qp_addr *addr,
		struct rmem_cm_peer *from)
{
	uint64_t end_ms = rmem_cm_now_ms() + conf->timeout_ms;
	int ret = rmem_cm_channel_create("QP: its device has no ip=", &conn->channel);

	if (ret == 0)
		ret = cm_resolve(conn, remote, conf, addr, end_ms);
	if (ret == 0)
		ret = cm_request(conn, conf, addr, end_ms, from);
	return ret;
}

static int
rdma_wait_end(struct rmem_cm_conn *conn, uint64_t end_ms)
{
	struct cm_event event;
	int ret;

	while (!conn->is_ended) {
		ret = rmem_cm_next(conn->channel, end_ms, &event);
		if (ret != 0)
			return ret == -ETIMEDOUT || ret == -ENODEV ? ret : -EIO;
		if (event.type == RDMA_CM_EVENT_DEVICE_REMOVAL)
			return -ENODEV;
		conn->is_ended = event.type == RDMA_CM_EVENT_DISCONNECTED;
	}
	return 0;
}

static void
rdma_close_conn(struct rmem_cm_conn *conn, bool is_connected)
{
	if (is_connected)
		(void)rdma_disconnect(conn->id);
	if (conn->id != NULL)
		rdma_destroy_id(conn->id);
	if (conn->channel != NULL)
		rdma_destroy_event_channel(conn->channel);
}

const struct cm_ops rmem_cm_rdma_ops = {
		.accept = rdma_accept_conn,
		.close = rdma_close_conn,
		.connect = rdma_connect_conn,
		.listen = rdma_listener_open,
		.unlisten = rdma_listener_close,
		.wait_end = rdma_wait_end,
};
