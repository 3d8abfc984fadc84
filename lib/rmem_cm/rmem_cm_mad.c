/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Connections of devices without rdma_cm: the port of the device sends and receives the messages of
 * rdma_cm on QP 1 (rmem_cm_port_priv.h). The peer may use rdma_cm of the kernel.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include <rmem_dev.h>
#include <rmem_pd.h>

#include "rmem_cm_port_priv.h"

#define PS_TCP         UINT64_C(0x0106) /* RDMA_PS_TCP */
#define BACKLOG        256              /* above MAX_HALF_OPEN, so one source can't fill it */
#define MAX_RD_ATOMIC  16
#define CM_TIMEOUT     17 /* 0.54 s until a message is sent again */
#define MAX_CM_RETRIES 15
#define HOP_LIMIT      64

/* Address and port of a listener or peer, in the format of messages. */
struct mad_addr {
	uint64_t service_id;
	uint8_t version; /* 4 or 6 */
	uint8_t gid[16];
	uint8_t ip[16]; /* as in struct ibcm_ip */
};

static void
ip_of_gid(const uint8_t gid[16], uint8_t version, uint8_t ip[16])
{
	memcpy(ip, gid, 16);
	if (version == 4)
		memset(ip, 0, 12);
}

static uint8_t
version_of_gid(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(gid, mapped, sizeof(mapped)) == 0 ? 4 : 6;
}

static void
addr_of(const struct sockaddr *addr, struct mad_addr *to)
{
	struct sockaddr_storage copy;
	uint16_t port;

	rmem_cm_copy_sockaddr(addr, &copy);
	rmem_cm_sockaddr_gid(addr, to->gid);
	port = copy.ss_family == AF_INET ? ((struct sockaddr_in *)(void *)&copy)->sin_port
					 : ((struct sockaddr_in6 *)(void *)&copy)->sin6_port;
	to->version = version_of_gid(to->gid);
	to->service_id = PS_TCP << 16 | ntohs(port);
	ip_of_gid(to->gid, to->version, to->ip);
}

static int
mad_listen(struct rmem_cm_listener *listener, const struct sockaddr *addr)
{
	struct ibcm_listen_conf conf = {.backlog = BACKLOG};
	struct mad_addr local;
	struct rmem_dev *dev;
	struct ibcm *cm;
	int ret;

	addr_of(addr, &local);
	dev = rmem_cm_gsi_dev(local.gid);
	if (dev == NULL)
		return CM_FAIL(ENODEV, "address: its device was closed");
	listener->queue = calloc(1, sizeof(*listener->queue));
	if (listener->queue == NULL)
		return -ENOMEM;
	TAILQ_INIT(listener->queue);
	ret = rmem_cm_port_get(dev, &listener->port);
	if (ret != 0)
		return ret;
	conf.service_id = local.service_id;
	conf.family = local.version == 4 ? IBCM_IP_V4 : IBCM_IP_V6;
	memcpy(conf.addr, local.ip, sizeof(conf.addr));
	conf.arg = listener->queue;
	cm = rmem_cm_port_lock(listener->port);
	ret = ibcm_listen(cm, &conf, &listener->of_cm);
	rmem_cm_port_unlock(listener->port);
	if (ret == -EEXIST)
		CM_LOG(ERR, "address: in use by another listener");
	return ret;
}

static void
mad_unlisten(struct rmem_cm_listener *listener)
{
	struct cm_link *link;

	if (listener->port != NULL) {
		(void)rmem_cm_port_lock(listener->port);
		if (listener->of_cm != NULL)
			ibcm_unlisten(listener->of_cm);
		while ((link = TAILQ_FIRST(listener->queue)) != NULL) {
			TAILQ_REMOVE(listener->queue, link, next);
			ibcm_arg_set(link->id, NULL);
			ibcm_release(link->id, rmem_cm_port_now());
			free(link);
		}
		rmem_cm_port_unlock(listener->port);
		rmem_cm_port_put(listener->port);
	}
	free(listener->queue);
}

/* Parse the peer's message. The address in it must be the source address of the peer's MADs. */
static int
unpack(const struct cm_link *link, struct rmem_cm_peer *from)
{
	int ret = rmem_cm_unpack(link->data, link->length, from);

	if (ret != 0 ||
			memcmp(from->addr.gid, ibcm_path(link->id)->remote_gid,
					sizeof(from->addr.gid)) == 0)
		return ret;
	return CM_FAIL(EBADMSG, "peer: the address of its QP is not its source address");
}

static struct ibcm_qp_conf
qp_conf_of(const struct rmem_cm_conf *conf, const struct rmem_qp_addr *addr)
{
	return (struct ibcm_qp_conf){.qpn = addr->qp_num,
			.psn = addr->psn,
			.responder_resources = MAX_RD_ATOMIC,
			.initiator_depth = MAX_RD_ATOMIC,
			.rnr_retry_count = conf->rnr_retry,
			.has_srq = conf->qp->srq != NULL};
}

/* Wait for the next request, and move it from the listener to the connection. */
static int
take_request(struct rmem_cm_listener *listener, struct rmem_cm_conn *conn, uint64_t end_ms)
{
	struct cm_links *links = listener->queue;
	struct cm_link *link;
	bool is_time_left = true;

	while ((link = TAILQ_FIRST(links)) == NULL && is_time_left)
		is_time_left = rmem_cm_port_wait(listener->port, end_ms);
	if (link == NULL)
		return -ETIMEDOUT;
	TAILQ_REMOVE(links, link, next);
	link->queue = NULL;
	conn->link = link;
	return 0;
}

/* Wait until a flag of the link is set, or it ends. */
static int
wait_for(struct rmem_cm_conn *conn, const bool *is_set, uint64_t end_ms)
{
	bool is_time_left = true;

	while (!*is_set && !conn->link->is_ended && is_time_left)
		is_time_left = rmem_cm_port_wait(conn->port, end_ms);
	if (*is_set)
		return 0;
	return conn->link->is_ended ? conn->link->error : -ETIMEDOUT;
}

static int
answer(struct rmem_cm_conn *conn, const struct rmem_cm_conf *conf, const struct rmem_qp_addr *addr,
		const struct rmem_cm_peer *from)
{
	uint64_t end_ms = rmem_cm_answer_end_ms(conf);
	const struct ibcm_qp_conf qp = qp_conf_of(conf, addr);
	uint8_t message[CM_MAX_SIZE];
	struct ibcm_data data = {.data = message};
	int ret;

	ret = rmem_cm_connect_qp(conf, &from->addr);
	if (ret != 0)
		return ret;
	data.len = rmem_cm_pack(addr, conf->data, conf->data_size, message);
	/* Fails if the peer has ended the connection. */
	if (ibcm_accept(conn->link->id, rmem_cm_port_now(), &qp, &data) != 0)
		ret = conn->link->is_ended ? conn->link->error : -EIO;
	if (ret == 0)
		ret = wait_for(conn, &conn->link->is_established, end_ms);
	if (ret != 0)
		(void)rmem_qp_reset(conf->qp);
	return ret;
}

static int
mad_accept(struct rmem_cm_listener *listener, const struct rmem_cm_conf *conf,
		const struct rmem_qp_addr *addr, struct rmem_cm_conn *conn,
		struct rmem_cm_peer *from)
{
	struct rmem_dev *dev = rmem_cm_port_dev(listener->port);
	int ret;

	if (rmem_pd_dev(conf->qp->pd) != dev)
		return CM_FAIL(ENODEV, "IP address: not an address of the QP's device");
	ret = rmem_cm_port_get(dev, &conn->port);
	if (ret != 0)
		return ret;
	(void)rmem_cm_port_lock(conn->port);
	ret = take_request(listener, conn, rmem_cm_now_ms() + conf->timeout_ms);
	if (ret == 0)
		ret = unpack(conn->link, from);
	if (ret == 0)
		ret = answer(conn, conf, addr, from);
	rmem_cm_port_unlock(conn->port);
	return ret;
}

/* Send a REQ. Return 0, -ENOMEM, or -EIO (the table of IDs is full). */
static int
request(struct ibcm *cm, struct rmem_cm_conn *conn, const struct mad_addr *to,
		const struct rmem_cm_conf *conf, const struct rmem_qp_addr *addr)
{
	uint8_t message[CM_MAX_SIZE];
	struct ibcm_ip ip = {0};
	struct ibcm_req_conf req = {.qp = qp_conf_of(conf, addr),
			.service = conf->qp->type == RMEM_QPT_UC ? IBCM_UC : IBCM_RC,
			.mtu = addr->mtu,
			.retry_count = conf->retry_cnt,
			.ack_timeout = conf->timeout,
			.cm_timeout = CM_TIMEOUT,
			.max_cm_retries = MAX_CM_RETRIES,
			.ip = &ip,
			.data.data = message,
			.arg = conn->link};
	int ret;

	ip.version = to->version;
	ip.src_port = (uint16_t)(0x8000 | addr->qp_num); /* an ephemeral port */
	memcpy(ip.dst, to->ip, sizeof(ip.dst));
	ip_of_gid(addr->gid, to->version, ip.src);
	memcpy(req.path.local_gid, addr->gid, sizeof(req.path.local_gid));
	memcpy(req.path.remote_gid, to->gid, sizeof(req.path.remote_gid));
	req.path.hop_limit = HOP_LIMIT;
	req.service_id = to->service_id;
	req.data.len = rmem_cm_pack(addr, conf->data, conf->data_size, message);
	ret = ibcm_connect(cm, rmem_cm_port_now(), &req, &conn->link->id);
	if (ret == 0 || ret == -ENOMEM)
		return ret;
	return CM_FAIL(EIO, "request: not sent: %s", strerror(-ret));
}

static void
log_silent(const struct mad_addr *peer)
{
	bool is_four = peer->version == 4;
	char text[INET6_ADDRSTRLEN] = "";

	inet_ntop(is_four ? AF_INET : AF_INET6, peer->ip + (is_four ? 12 : 0), text, sizeof(text));
	CM_LOG(ERR, "peer %s: no answer to a request", text);
}

static int
mad_connect(struct rmem_cm_conn *conn, const struct sockaddr *remote,
		const struct rmem_cm_conf *conf, const struct rmem_qp_addr *addr,
		struct rmem_cm_peer *from)
{
	uint64_t end_ms = rmem_cm_now_ms() + conf->timeout_ms;
	struct mad_addr to;
	struct ibcm *cm;
	int ret;

	addr_of(remote, &to);
	if (to.version != version_of_gid(addr->gid))
		return CM_FAIL(ENODEV, "IP address: IPv%u (the QP's device has the other version)",
				to.version);
	ret = rmem_cm_port_get(rmem_pd_dev(conf->qp->pd), &conn->port);
	if (ret != 0)
		return ret;
	conn->link = calloc(1, sizeof(*conn->link));
	if (conn->link == NULL)
		return -ENOMEM;
	cm = rmem_cm_port_lock(conn->port);
	ret = request(cm, conn, &to, conf, addr);
	if (ret == 0)
		ret = wait_for(conn, &conn->link->has_reply, end_ms);
	if (ret == -ETIMEDOUT)
		log_silent(&to);
	if (ret == 0)
		ret = unpack(conn->link, from);
	if (ret == 0)
		ret = rmem_cm_connect_qp(conf, &from->addr);
	if (ret == 0 && ibcm_ready(conn->link->id, NULL) != 0) {
		(void)rmem_qp_reset(conf->qp);
		ret = conn->link->is_ended ? conn->link->error : -EIO;
	}
	rmem_cm_port_unlock(conn->port);
	return ret;
}

static int
mad_wait_end(struct rmem_cm_conn *conn, uint64_t end_ms)
{
	int ret;

	(void)rmem_cm_port_lock(conn->port);
	ret = wait_for(conn, &conn->link->is_ended, end_ms);
	rmem_cm_port_unlock(conn->port);
	return ret;
}

static void
mad_close(struct rmem_cm_conn *conn, bool is_connected)
{
	RTE_SET_USED(is_connected); /* ibcm_release() chooses the message by the ID's state */
	if (conn->port == NULL)
		return;
	if (conn->link != NULL) {
		(void)rmem_cm_port_lock(conn->port);
		if (conn->link->id != NULL) {
			ibcm_arg_set(conn->link->id, NULL);
			ibcm_release(conn->link->id, rmem_cm_port_now());
		}
		rmem_cm_port_unlock(conn->port);
		free(conn->link);
	}
	rmem_cm_port_put(conn->port);
}

const struct cm_ops rmem_cm_mad_ops = {
		.accept = mad_accept,
		.close = mad_close,
		.connect = mad_connect,
		.listen = mad_listen,
		.unlisten = mad_unlisten,
		.wait_end = mad_wait_end,
};
