/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Connections to other hosts, by the communication manager of IBTA chapter 12: an engine of ibcm.h,
 * whose MADs QP 1 of the device sends and receives. Their content is translated from and to
 * struct rcm_msg, which the rest of the folder has.
 *
 * QP 1 is created when an ID listens or connects, and then stays: it answers for ended connections.
 */

#include <endian.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "ibcm.h"
#include "rmem_gsi.h"

#include "../verbs/ribv.h"
#include "rcm.h"

#define MAX_HALF_OPEN 1024
#define CM_TIMEOUT    18 /* 1.07 s until a message is sent again */
#define CM_RETRIES    15
#define EXIT_TRIES    1000

static struct ibcm *cm; /* NULL: none yet */
static struct rmem_gsi *gsi;

static void
send_mad(void *arg, const struct ibcm_path *path, const uint8_t mad[IBCM_MAD_LEN])
{
	RTE_SET_USED(arg);
	/* A thread that can't post loses the MAD, which the agent sends again. */
	if (gsi != NULL && ribv_env_attach())
		rmem_gsi_send(gsi, path, mad);
}

static void
received_mad(void *arg, const struct ibcm_path *path, const uint8_t mad[IBCM_MAD_LEN])
{
	RTE_SET_USED(arg);
	ibcm_input(cm, rcm_now(), path, mad);
}

/* The content of a message, as the folder has it. */
static void
msg_of(const struct ibcm_event *event, enum rcm_type type, struct rcm_msg *to)
{
	const struct ibcm_msg *msg = event->msg;

	memset(to, 0, sizeof(*to));
	to->magic = RCM_MAGIC;
	to->type = (uint8_t)type;
	to->reason = (uint8_t)event->reason;
	memcpy(to->gid, ibcm_path(event->id)->remote_gid, sizeof(to->gid));
	if (msg == NULL)
		return;
	to->qpn = htobe32(msg->qpn);
	to->psn = htobe32(msg->psn);
	to->qkey = htobe32(msg->qkey);
	to->mtu = msg->mtu;
	to->srq = msg->has_srq;
	to->responder_resources = msg->responder_resources;
	to->initiator_depth = msg->initiator_depth;
	to->flow_control = msg->has_flow_control;
	to->retry_count = msg->retry_count;
	to->rnr_retry_count = msg->rnr_retry_count;
	to->private_len = (uint8_t)RTE_MIN(event->data_len, (uint32_t)RCM_MAX_PRIVATE);
	if (to->private_len != 0)
		memcpy(to->private_data, event->data, to->private_len);
	if (msg->type == IBCM_SIDR_REP)
		to->reason = msg->status;
}

static void
msg_addr(const struct ibcm_ip *ip, const uint8_t *from, uint16_t port, struct rcm_msg_addr *to)
{
	memset(to, 0, sizeof(*to));
	to->is_ipv4 = ip->version == 4;
	to->port = htobe16(port);
	memcpy(to->ip, from, sizeof(to->ip));
	if (to->is_ipv4)
		to->ip[10] = to->ip[11] = 0xff;
}

static void
requested(const struct ibcm_event *event)
{
	struct rcm_id *listener = event->listener_arg;
	uint16_t port = (uint16_t)event->msg->service_id;
	struct rcm_msg msg;

	msg_of(event, RCM_REQ, &msg);
	msg.ps = htobe16(listener->ps);
	msg_addr(event->ip, event->ip->src, event->ip->src_port, &msg.src);
	msg_addr(event->ip, event->ip->dst, port, &msg.dst);
	if (!rcm_conn_request_mad(listener, &msg, event->id))
		ibcm_release(event->id, rcm_now());
}

static void
received(const struct ibcm_event *event, enum rcm_type type)
{
	struct rcm_msg msg;

	msg_of(event, type, &msg);
	rcm_conn_received(ibcm_arg(event->id), &msg);
}

static void
on_event(void *arg, const struct ibcm_event *event)
{
	struct rcm_id *id = ibcm_arg(event->id);

	RTE_SET_USED(arg);
	switch (event->type) {
	case IBCM_EVENT_REQ:
	case IBCM_EVENT_SIDR_REQ:
		requested(event);
		break;
	case IBCM_EVENT_REP:
		received(event, RCM_REP);
		break;
	case IBCM_EVENT_SIDR_REP:
		received(event, event->msg->status == IBCM_SIDR_VALID ? RCM_REP : RCM_REJ);
		break;
	case IBCM_EVENT_ESTABLISHED:
		received(event, RCM_RTU);
		break;
	case IBCM_EVENT_REJECTED:
		received(event, RCM_REJ);
		break;
	case IBCM_EVENT_UNREACHABLE:
		rcm_conn_ended(id, -ETIMEDOUT);
		break;
	case IBCM_EVENT_DISCONNECTED:
		rcm_conn_ended(id, 0);
		break;
	case IBCM_EVENT_TIMEWAIT_EXIT:
		rcm_conn_timewait_exit(id);
		break;
	}
}

/* At exit: end what the program has not ended, as the kernel does for a process. */
static void
end_all(void)
{
	uint32_t handle = 0, i;
	struct rcm_id *id;
	bool is_locked;

	if (cm == NULL)
		return;
	/* A handler of a signal that has interrupted the holder may exit. */
	for (i = 0; !(is_locked = rcm_trylock()) && i < EXIT_TRIES; i++)
		sched_yield();
	if (!is_locked)
		return;
	for (; (id = rcm_id_next(&handle)) != NULL; handle++)
		rcm_mad_close(id);
	rcm_unlock();
}

/* Have an engine and QP 1; 0 or a negative errno. */
static int
have_cm(void)
{
	const struct ibcm_conf conf = {.ca_guid = be64toh(ribv_node_guid(ribv_devs[0])),
			.max_ids = RCM_MAX_IDS,
			.max_half_open = MAX_HALF_OPEN,
			.send = send_mad,
			.event = on_event,
			.random = rmem_gsi_random};
	int ret;

	if (!ribv_env_attach())
		return -ENOMEM;
	if (cm == NULL) {
		ret = ibcm_create(&conf, &cm);
		if (ret != 0)
			return ret;
		(void)atexit(end_all);
	}
	if (gsi == NULL) {
		ret = rmem_gsi_open(ribv_devs[0], received_mad, NULL, &gsi);
		if (ret != 0)
			return ret;
	}
	return rcm_agent_watch(rmem_gsi_fd(gsi), RCM_GSI, EPOLLIN);
}

static uint64_t
service_id(const struct rcm_id *id, uint16_t port)
{
	return (uint64_t)id->ps << 16 | port;
}

/* An address as messages have it: that of IPv4 is in the last four bytes. */
static void
ip_of(const struct rcm_addr *addr, uint8_t ip[16])
{
	memcpy(ip, addr->ip, 16);
	if (addr->family == AF_INET)
		memset(ip, 0, 12);
}

int
rcm_mad_listen(struct rcm_id *id)
{
	bool is_any = rcm_is_any(&id->src);
	struct ibcm_listen_conf conf = {.service_id = service_id(id, id->src.port),
			.family = id->src.family == AF_INET        ? IBCM_IP_V4
					: is_any && !id->is_afonly ? IBCM_IP_ANY
								   : IBCM_IP_V6,
			.backlog = id->backlog,
			.arg = id};
	int ret = have_cm();

	if (ret != 0)
		return ret;
	if (!is_any)
		ip_of(&id->src, conf.addr);
	ret = ibcm_listen(cm, &conf, &id->cm_listener);
	return ret == -EEXIST ? -EADDRINUSE : ret;
}

static void
fill_ip(const struct rcm_id *id, struct ibcm_ip *ip)
{
	ip->version = id->src.family == AF_INET ? 4 : 6;
	ip->src_port = id->src.port;
	ip_of(&id->src, ip->src);
	ip_of(&id->dst, ip->dst);
}

static struct ibcm_path
path_of(const struct rcm_id *id)
{
	struct ibcm_path path = {.hop_limit = RCM_HOP_LIMIT, .traffic_class = id->tos};

	memcpy(path.local_gid, rmem_gsi_gid(gsi), sizeof(path.local_gid));
	memcpy(path.remote_gid, id->dst.ip, sizeof(path.remote_gid));
	return path;
}

static struct ibcm_qp_conf
qp_of(const struct rcm_id *id)
{
	const struct rcm_msg *own = &id->own;

	return (struct ibcm_qp_conf){.qpn = be32toh(own->qpn),
			.psn = be32toh(own->psn),
			.responder_resources = own->responder_resources,
			.initiator_depth = own->initiator_depth,
			.rnr_retry_count = own->rnr_retry_count,
			.has_srq = own->srq != 0};
}

static int
resolve(struct rcm_id *id)
{
	struct ibcm_ip ip = {0};
	const struct ibcm_sidr_conf conf = {.path = path_of(id),
			.service_id = service_id(id, id->dst.port),
			.cm_timeout = CM_TIMEOUT,
			.max_cm_retries = CM_RETRIES,
			.ip = &ip,
			.data = {id->own.private_data, id->own.private_len},
			.arg = id};

	fill_ip(id, &ip);
	return ibcm_resolve(cm, rcm_now(), &conf, &id->cm);
}

static int
request(struct rcm_id *id)
{
	struct rcm_dev dev;
	struct ibcm_ip ip = {0};
	struct ibcm_req_conf conf = {.path = path_of(id),
			.service_id = service_id(id, id->dst.port),
			.qp = qp_of(id),
			.service = id->qp_type == IBV_QPT_UC ? IBCM_UC : IBCM_RC,
			.retry_count = id->own.retry_count,
			.ack_timeout = id->ack_timeout,
			.cm_timeout = CM_TIMEOUT,
			.max_cm_retries = CM_RETRIES,
			.ip = &ip,
			.data = {id->own.private_data, id->own.private_len},
			.arg = id};

	if (!rcm_dev_get(&dev))
		return -ENODEV;
	conf.mtu = dev.mtu;
	fill_ip(id, &ip);
	return ibcm_connect(cm, rcm_now(), &conf, &id->cm);
}

static int
accept_request(struct rcm_id *id)
{
	const struct ibcm_data data = {id->own.private_data, id->own.private_len};
	const struct ibcm_qp_conf qp = qp_of(id);

	if (rcm_is_ud(id))
		return ibcm_answer(id->cm, rcm_now(), IBCM_SIDR_VALID, be32toh(id->own.qpn),
				be32toh(id->own.qkey), &data);
	return ibcm_accept(id->cm, rcm_now(), &qp, &data);
}

static int
reject(struct rcm_id *id)
{
	const struct ibcm_data data = {id->own.private_data, id->own.private_len};

	if (rcm_is_ud(id))
		return ibcm_answer(id->cm, rcm_now(), IBCM_SIDR_REJECTED, 0, 0, &data);
	return ibcm_reject(id->cm, rcm_now(), id->own.reason, &data);
}

int
rcm_mad_send(struct rcm_id *id, enum rcm_type type)
{
	int ret = -EINVAL;

	if (type == RCM_REQ) {
		ret = have_cm();
		if (ret == 0)
			ret = rcm_is_ud(id) ? resolve(id) : request(id);
	} else if (id->cm == NULL) {
		ret = -ECONNRESET;
	} else if (type == RCM_REP) {
		ret = accept_request(id);
	} else if (type == RCM_RTU) {
		ret = ibcm_ready(id->cm, NULL);
	} else {
		ret = reject(id);
	}
	rcm_timer_set();
	return ret;
}

int
rcm_mad_disconnect(struct rcm_id *id)
{
	int ret = ibcm_disconnect(id->cm, rcm_now(), NULL);

	rcm_timer_set();
	return ret;
}

void
rcm_mad_notify(struct rcm_id *id)
{
	(void)ibcm_notify(id->cm);
	rcm_timer_set();
}

void
rcm_mad_take(struct rcm_id *id, struct ibcm_id *of_cm)
{
	id->cm = of_cm;
	ibcm_arg_set(of_cm, id);
}

void
rcm_mad_close(struct rcm_id *id)
{
	if (id->cm_listener != NULL)
		ibcm_unlisten(id->cm_listener);
	id->cm_listener = NULL;
	if (id->cm != NULL) {
		ibcm_release(id->cm, rcm_now());
		id->cm = NULL;
		rcm_timer_set();
	}
}

void
rcm_mad_ready(void)
{
	if (gsi == NULL || !ribv_env_attach())
		return;
	rmem_gsi_poll(gsi);
	rcm_timer_set();
}

uint64_t
rcm_mad_next(void)
{
	uint64_t next = cm != NULL ? ibcm_next(cm) : IBCM_NEVER;

	return next == IBCM_NEVER ? 0 : next;
}

void
rcm_mad_time(uint64_t now)
{
	if (cm != NULL && ibcm_next(cm) <= now)
		ibcm_timeout(cm, now);
}

void
rcm_mad_check(void)
{
	if (gsi == NULL || !ribv_env_attach())
		return;
	rmem_gsi_abandon(gsi);
	gsi = NULL;
	(void)have_cm();
}

void
rcm_mad_forked(void)
{
	if (gsi != NULL && rcm_agent_has_gsi(rmem_gsi_fd(gsi)))
		rcm_close(rmem_gsi_fd(gsi));
}
