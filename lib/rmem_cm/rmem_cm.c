/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Connections: checks common to all transports, and the choice of the transport: QP 1 for devices
 * that have a QP 1 and an IP address, rdma_cm for all others.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include <rmem_dev.h>
#include <rmem_obj_ref.h>
#include <rmem_pd.h>

#include "rmem_cm_priv.h"

RTE_LOG_REGISTER(rmem_cm_logtype, lib.rmem.cm, NOTICE)

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
	return CM_FAIL(EINVAL, "%s: NULL", what);
}

static int
cm_check_addr(const struct sockaddr *addr)
{
	struct sockaddr_storage copy;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)&copy;
	const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)&copy;
	int ret;

	ret = cm_check_given(addr, "the address");
	if (ret != 0)
		return ret;
	if (addr->sa_family != AF_INET && addr->sa_family != AF_INET6)
		return CM_FAIL(EINVAL, "address: neither IPv4 nor IPv6: family %u",
				addr->sa_family);
	memcpy(&copy, addr, addr->sa_family == AF_INET ? sizeof(*four) : sizeof(*six));
	if ((addr->sa_family == AF_INET ? four->sin_port : six->sin6_port) == 0)
		return CM_FAIL(EINVAL, "address: no port");
	return 0;
}

/* A number passed by the caller, and its limits. */
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
		return CM_FAIL(EINVAL, "%s: out of range: %" PRIu64 " (%" PRIu64 " to %" PRIu64 ")",
				numbers[i].name, numbers[i].value, numbers[i].low, numbers[i].high);
	}
	return 0;
}

/* Check a configuration, and return the address of its QP. */
static int
cm_check_conf(const struct rmem_cm_conf *conf, uint32_t max_size, struct rmem_qp_addr *addr)
{
	struct rmem_qp_attr attr;
	int ret;

	ret = cm_check_given(conf, "the configuration");
	if (ret != 0)
		return ret;
	const struct cm_number numbers[] = {
			{"data_size", conf->data_size, 0, max_size},
			{"timeout_ms", conf->timeout_ms, 1, RMEM_CM_MAX_TIMEOUT_MS},
			{"timeout", conf->timeout, 0, 31},
			{"retry_cnt", conf->retry_cnt, 0, 7},
			{"rnr_retry", conf->rnr_retry, 0, 7},
			{"min_rnr_timer", conf->min_rnr_timer, 0, 31},
	};

	ret = cm_check_numbers(numbers, RTE_DIM(numbers));
	if (ret != 0)
		return ret;
	if (conf->data_size != 0 && conf->data == NULL)
		return CM_FAIL(EINVAL, "private data: NULL with a size: %u bytes", conf->data_size);
	if (!cm_is_zero(conf->reserved, sizeof(conf->reserved)))
		return CM_FAIL(EINVAL, "rmem_cm_conf: a reserved field is not zero");
	ret = rmem_qp_query(conf->qp, &attr);
	if (ret != 0)
		return ret == -EINVAL ? -EINVAL : -EIO;
	if (attr.state != RMEM_QPS_RESET)
		return CM_FAIL(EBUSY, "QP %u: wrong state: %u (must be RESET)", conf->qp->qp_num,
				attr.state);
	*addr = attr.addr;
	return 0;
}

static const struct cm_ops *
cm_ops_of_addr(const struct sockaddr *addr)
{
	uint8_t gid[16];

	rmem_cm_sockaddr_gid(addr, gid);
	return rmem_cm_gsi_dev(gid) != NULL ? &rmem_cm_mad_ops : &rmem_cm_rdma_ops;
}

static const struct cm_ops *
cm_ops_of_qp(const struct rmem_qp *qp)
{
	return rmem_cm_has_gsi(rmem_pd_dev(qp->pd), NULL) ? &rmem_cm_mad_ops : &rmem_cm_rdma_ops;
}

int
rmem_cm_listener_create(const struct sockaddr *addr, struct rmem_cm_listener **out)
{
	RMEM_CALL(NULL);
	struct rmem_cm_listener *listener;
	int ret;

	ret = rmem_process_check();
	if (ret == 0)
		ret = cm_check_given(out, "the new listener");
	if (ret == 0)
		ret = cm_check_addr(addr);
	if (ret != 0)
		return ret;
	listener = calloc(1, sizeof(*listener));
	if (listener == NULL)
		return -ENOMEM;
	listener->ops = cm_ops_of_addr(addr);
	ret = listener->ops->listen(listener, addr);
	if (ret == 0)
		*out = listener;
	else
		rmem_cm_listener_destroy(listener);
	return ret;
}

void
rmem_cm_listener_destroy(struct rmem_cm_listener *listener)
{
	if (listener == NULL)
		return;
	listener->ops->unlisten(listener);
	free(listener);
}

static int
cm_conn_create(const struct cm_ops *ops, struct rmem_cm_conn **out)
{
	struct rmem_cm_conn *conn = calloc(1, sizeof(*conn));

	if (conn == NULL)
		return -ENOMEM;
	conn->ops = ops;
	*out = conn;
	return 0;
}

/* End an attempt: return the connection to the caller, or release it. */
static int
cm_conn_end(int ret, struct rmem_cm_conn *conn, const struct rmem_cm_peer *from,
		struct rmem_cm_peer *peer, struct rmem_cm_conn **out)
{
	if (ret != 0) {
		conn->ops->close(conn, false);
		free(conn);
		return ret;
	}
	if (peer != NULL)
		*peer = *from;
	*out = conn;
	return 0;
}

int
rmem_cm_accept(struct rmem_cm_listener *listener, const struct rmem_cm_conf *conf,
		struct rmem_cm_peer *peer, struct rmem_cm_conn **out)
{
	RMEM_CALL(listener);
	struct rmem_cm_conn *conn;
	struct rmem_cm_peer from;
	struct rmem_qp_addr addr;
	int ret;

	ret = rmem_process_check();
	if (ret == 0)
		ret = cm_check_given(listener, "the listener");
	if (ret == 0)
		ret = cm_check_given(out, "the new connection");
	if (ret == 0)
		ret = cm_check_conf(conf, RMEM_CM_MAX_ANSWER, &addr);
	if (ret == 0)
		ret = cm_conn_create(listener->ops, &conn);
	if (ret != 0)
		return ret;
	ret = listener->ops->accept(listener, conf, &addr, conn, &from);
	return cm_conn_end(ret, conn, &from, peer, out);
}

int
rmem_cm_connect(const struct sockaddr *remote, const struct rmem_cm_conf *conf,
		struct rmem_cm_peer *peer, struct rmem_cm_conn **out)
{
	RMEM_CALL(NULL);
	struct rmem_cm_conn *conn;
	struct rmem_cm_peer from;
	struct rmem_qp_addr addr;
	int ret;

	ret = rmem_process_check();
	if (ret == 0)
		ret = cm_check_given(out, "the new connection");
	if (ret == 0)
		ret = cm_check_addr(remote);
	if (ret == 0)
		ret = cm_check_conf(conf, RMEM_CM_MAX_REQUEST, &addr);
	if (ret == 0)
		ret = cm_conn_create(cm_ops_of_qp(conf->qp), &conn);
	if (ret != 0)
		return ret;
	ret = conn->ops->connect(conn, remote, conf, &addr, &from);
	return cm_conn_end(ret, conn, &from, peer, out);
}

int
rmem_cm_wait_disconnect(struct rmem_cm_conn *conn, uint32_t timeout_ms)
{
	RMEM_CALL(conn);
	const struct cm_number number = {"timeout_ms", timeout_ms, 0, RMEM_CM_MAX_TIMEOUT_MS};
	uint64_t end_ms = rmem_cm_now_ms() + timeout_ms;
	int ret;

	ret = cm_check_given(conn, "the connection");
	if (ret == 0)
		ret = cm_check_numbers(&number, 1);
	return ret == 0 ? conn->ops->wait_end(conn, end_ms) : ret;
}

void
rmem_cm_disconnect(struct rmem_cm_conn *conn)
{
	if (conn == NULL)
		return;
	conn->ops->close(conn, true);
	free(conn);
}

/* In this file, because the linker drops a file of a static library that nothing refers to. */
RTE_INIT(rmem_cm_init)
{
	rmem_cm_telemetry_init();
}
