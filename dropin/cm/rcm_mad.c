/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The communication manager of IBTA chapter 12: an engine of ibcm.h. MADs are sent and received by
 * links between processes (rcm_link.c) or, with --ip, by QP 1 of the device, and translated to and
 * from struct rcm_side, which the rest of the folder uses.
 *
 * Invariant: the engine is created when an ID first listens or connects. QP 1 of a device is opened
 * when an ID of the device first does, or an ID without a device first listens. Both stay open, for
 * ended connections.
 * Invariant: this file keeps no state of connections; the handlers change it.
 * Invariant: each call of the engine is followed by rcm_timer_set(), unless the agent makes it.
 */

#include <endian.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "rmem_gsi.h"

#include "../verbs/ribv.h"
#include "rcm.h"

#define MAX_HALF_OPEN 1024 /* requests of other hosts; descriptors limit links */
#define EXIT_TRIES    1000
#define FLOOD_NS      UINT64_C(1000000) /* pause of QP 1 after a poll that left MADs */

/* Timeout of a message, as exponent (4.096 us * 2^n), and its retries. With --ip 1.07 s, 17 s in
 * all; with links 4.3 s, 60 s in all, for a peer that gets no CPU time. */
#define CM_TIMEOUT      18
#define CM_RETRIES      15
#define CM_TIMEOUT_LINK 20
#define CM_RETRIES_LINK 13

/*
 * All variables are protected by rcm_lock(), which commands and the agent hold when they call this
 * file. arrived and send_error are valid during one call of the engine, which calls back before it
 * returns.
 */
static const struct rcm_mad_handlers *handlers;
static struct ibcm *cm; /* NULL: not created yet */
static struct ibcm_log cm_log;
static int report_fd = -1; /* listening socket for rmem-top, or -1 */
static struct rmem_gsi *gsis[RCM_MAX_DEVS];
static uint32_t pausing; /* bitmap of devices whose QP 1 pauses, until again_ns */
static uint64_t again_ns;
static const struct rcm_packet *arrived; /* packet of a link in ibcm_input(); else NULL */
static int send_error;                   /* error of a link since rcm_mad_send() was called */

void
rcm_mad_handle(const struct rcm_mad_handlers *of)
{
	handlers = of;
}

/* QP 1 of the device that has the GID; NULL if there is none. */
static struct rmem_gsi *
gsi_of(const uint8_t gid[16])
{
	struct rcm_dev dev;
	uint32_t number;

	return rcm_dev_find(gid, &number, &dev) && !dev.is_host ? gsis[number] : NULL;
}

/*
 * Send a MAD for the engine. A link fails at once, and the command returns its error. Sending by QP
 * 1 does not fail: the engine repeats unanswered messages.
 */
static void
send_mad(void *arg, const struct ibcm_path *path, const uint8_t mad[IBCM_MAD_LEN])
{
	struct rmem_gsi *gsi;
	int ret;

	RTE_SET_USED(arg);
	if (path->link != 0) {
		ret = rcm_link_send(path->link, mad);
		send_error = ret != 0 ? ret : send_error;
		return;
	}
	gsi = gsi_of(path->local_gid);
	/* Without an EAL thread slot the MAD is lost here; the agent sends it again. */
	if (gsi != NULL && ribv_env_attach())
		rmem_gsi_send(gsi, path, mad);
}

/* Called by rmem_gsi_poll() for each MAD of QP 1. rcm_mad_ready() sets the timer afterwards. */
static void
received_mad(void *arg, const struct ibcm_path *path, const uint8_t mad[IBCM_MAD_LEN])
{
	RTE_SET_USED(arg);
	ibcm_input(cm, rcm_now(), path, mad);
}

int
rcm_mad_packet(uint64_t link, const struct rcm_packet *packet)
{
	struct ibcm_path path = {.hop_limit = RCM_HOP_LIMIT, .link = link};
	uint64_t malformed = ibcm_stats(cm)->malformed;
	struct rcm_dev dev;
	uint32_t number;

	if (!rcm_dev_host(&number, &dev))
		return -ENODEV;
	memcpy(path.local_gid, dev.gid, sizeof(path.local_gid));
	memcpy(path.remote_gid, packet->gid, sizeof(path.remote_gid));
	/* side_of() takes LID and MTU from the packet; MADs do not have them. */
	arrived = packet;
	ibcm_input(cm, rcm_now(), &path, packet->mad);
	arrived = NULL;
	rcm_timer_set();
	/* The engine returns no error: it drops and counts malformed messages. */
	return ibcm_stats(cm)->malformed == malformed ? 0 : -EPROTO;
}

/* Convert the parameters of the peer. */
static void
side_of(const struct ibcm_event *event, enum rcm_type type, struct rcm_side *to)
{
	const struct ibcm_msg *msg = event->msg;

	memset(to, 0, sizeof(*to));
	to->type = type;
	to->reason = (uint8_t)event->reason;
	memcpy(to->gid, ibcm_path(event->id)->remote_gid, sizeof(to->gid));
	if (msg == NULL)
		return;
	to->qpn = msg->qpn;
	to->psn = msg->psn;
	to->qkey = msg->qkey;
	to->lid = arrived != NULL ? be16toh(arrived->lid) : 0;
	to->mtu = arrived != NULL ? arrived->mtu : msg->mtu;
	to->has_srq = msg->has_srq;
	to->has_flow_control = msg->has_flow_control;
	to->responder_resources = msg->responder_resources;
	to->initiator_depth = msg->initiator_depth;
	to->retry_count = msg->retry_count;
	to->rnr_retry_count = msg->rnr_retry_count;
	memcpy(to->ece_vendor, msg->ece_vendor, sizeof(to->ece_vendor));
	to->ece_options = msg->ece_options;
	to->private_len = (uint8_t)RTE_MIN(event->data_len, (uint32_t)RCM_MAX_PRIVATE);
	if (to->private_len != 0)
		memcpy(to->private_data, event->data, to->private_len);
	if (msg->type == IBCM_SIDR_REP)
		to->reason = msg->status;
}

static void
addr_of(const struct ibcm_ip *ip, const uint8_t *from, uint16_t port, struct rcm_addr *to)
{
	*to = (struct rcm_addr){.family = ip->version == 4 ? AF_INET : AF_INET6, .port = port};
	memcpy(to->ip, from, sizeof(to->ip));
	if (to->family == AF_INET)
		to->ip[10] = to->ip[11] = 0xff;
}

/*
 * Handle a request for a listening ID. If the handler creates an ID, it takes the engine's ID;
 * otherwise the engine's ID is released here. A link does not repeat the request, so no state is
 * kept to recognise duplicates.
 */
static void
requested(const struct ibcm_event *event)
{
	const struct ibcm_path *path = ibcm_path(event->id);
	uint64_t link = path->link;
	struct rcm_addr src, dst;
	struct rcm_side peer;
	struct rcm_dev dev;
	uint32_t number;
	bool has_dev;

	side_of(event, RCM_REQ, &peer);
	addr_of(event->ip, event->ip->src, event->ip->src_port, &src);
	addr_of(event->ip, event->ip->dst, (uint16_t)event->msg->service_id, &dst);
	has_dev = link != 0 ? rcm_dev_host(&number, &dev)
			    : rcm_dev_find(path->local_gid, &number, &dev);
	if (has_dev && handlers->request(event->listener_arg, &peer, &src, &dst, number, event->id))
		return;
	/* Reject the request, and keep the engine's ID to answer duplicates. */
	ibcm_release(event->id, rcm_now());
	if (link != 0)
		ibcm_drop(event->id);
}

static void
received(const struct ibcm_event *event, enum rcm_type type)
{
	struct rcm_side peer;

	side_of(event, type, &peer);
	handlers->received(ibcm_arg(event->id), &peer);
}

/*
 * Handle a state change of the engine. Called within ibcm_input(), ibcm_timeout() or a command, so
 * under rcm_lock(). The handlers change the state of the ID and post the events of the program.
 */
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
		handlers->ended(id, -ETIMEDOUT);
		break;
	case IBCM_EVENT_DISCONNECTED:
		handlers->ended(id, 0);
		break;
	case IBCM_EVENT_TIMEWAIT_EXIT:
		/* The program knows no time-wait of a link, which has no use for it. */
		if (ibcm_path(event->id)->link == 0)
			handlers->timewait_exit(id);
		break;
	}
}

/* At exit, after end_all(), with RMEM_IBV_CM: report the current and ended connections of the
 * process. */
static void
report_all(void)
{
	size_t len;
	char *text;

	if (cm == NULL || !rcm_trylock())
		return;
	text = rcm_report(cm, &cm_log, &len);
	rcm_unlock();
	if (text != NULL)
		ribv_report_append("RMEM_IBV_CM", text, len);
	free(text);
}

static void
listen_for_reports(void)
{
	report_fd = rcm_report_listen();
	if (report_fd >= 0 && rcm_agent_watch(report_fd, RCM_REPORT, EPOLLIN) != 0) {
		rcm_close(report_fd);
		report_fd = -1;
	}
}

/* At exit: end the connections that the program has not ended, as the kernel does for a process. */
static void
end_all(void)
{
	uint32_t handle = 0, i;
	struct rcm_id *id;
	bool is_locked;

	if (cm == NULL)
		return;
	/* A signal handler that interrupted the holder may call exit(), so don't wait forever. */
	for (i = 0; !(is_locked = rcm_trylock()) && i < EXIT_TRIES; i++)
		sched_yield();
	if (!is_locked)
		return;
	for (; (id = rcm_id_next(&handle)) != NULL; handle++)
		rcm_mad_close(id);
	rcm_unlock();
}

/* Whether any device has peers on other hosts. */
static bool
has_net(void)
{
	struct rcm_dev dev;
	uint32_t i;

	for (i = 0; ribv_devs[i] != NULL; i++) {
		if (rcm_dev_get(i, &dev) && !dev.is_host)
			return true;
	}
	return false;
}

/*
 * Open QP 1 of a device once, and watch it until the process ends. The calling thread posts
 * receives, so it must be an EAL thread.
 */
static int
have_gsi(uint32_t number)
{
	int ret;

	if (!ribv_env_attach())
		return -ENOMEM;
	if (gsis[number] == NULL) {
		ret = rmem_gsi_open(ribv_devs[number], received_mad, NULL, &gsis[number]);
		if (ret != 0)
			return ret;
	}
	return rcm_agent_watch(rmem_gsi_fd(gsis[number]), RCM_GSI + number, EPOLLIN);
}

/* Open QP 1 of the ID's devices whose peers are on other hosts; 0 or a negative errno. */
static int
have_gsis(const struct rcm_id *id)
{
	struct rcm_dev dev;
	uint32_t i;
	int ret = 0;

	for (i = 0; ret == 0 && ribv_devs[i] != NULL; i++) {
		if ((!id->has_dev || id->dev == i) && rcm_dev_get(i, &dev) && !dev.is_host)
			ret = have_gsi(i);
	}
	return ret;
}

/* Create the engine, and the QPs that the ID needs; 0 or a negative errno. */
static int
have_cm(const struct rcm_id *id)
{
	struct ibcm_conf conf = {.ca_guid = be64toh(ribv_node_guid(ribv_devs[0])),
			.max_ids = RCM_MAX_IDS,
			.max_half_open = MAX_HALF_OPEN,
			.is_end_seen = true, /* of links */
			.send = send_mad,
			.event = on_event,
			.random = rmem_gsi_random,
			.log = &cm_log};
	int ret;

	if (cm == NULL) {
		if (!has_net())
			conf.max_half_open = RCM_MAX_IDS;
		ret = ibcm_create(&conf, &cm);
		if (ret != 0)
			return ret;
		/* atexit() runs in reverse order: the report is made after end_all(). */
		if (getenv("RMEM_IBV_CM") != NULL) {
			(void)atexit(report_all);
			listen_for_reports();
		}
		if (has_net())
			(void)atexit(end_all);
	}
	return have_gsis(id);
}

/* Form the service ID as rdma_cm in the kernel does: port space, then port. */
static uint64_t
service_id(const struct rcm_id *id, uint16_t port)
{
	return (uint64_t)id->ps << 16 | port;
}

/* Format an address as in messages: an IPv4 address is in the last four bytes. */
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
			.backlog = RCM_MAX_IDS, /* the handler checks the ID's backlog */
			.arg = id};
	int ret = have_cm(id);

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
	struct rcm_dev dev;

	if (rcm_dev_of(id, &dev))
		memcpy(path.local_gid, dev.gid, sizeof(path.local_gid));
	if (rcm_has_links(id))
		path.link = rcm_link_of(id);
	else
		memcpy(path.remote_gid, id->dst.ip, sizeof(path.remote_gid));
	return path;
}

static struct ibcm_qp_conf
qp_of(const struct rcm_id *id)
{
	const struct rcm_side *own = &id->own;
	struct ibcm_qp_conf qp = {.qpn = own->qpn,
			.psn = own->psn,
			.responder_resources = own->responder_resources,
			.initiator_depth = own->initiator_depth,
			.rnr_retry_count = own->rnr_retry_count,
			.has_srq = own->has_srq,
			.has_flow_control = own->has_flow_control,
			.ece_options = own->ece_options};

	memcpy(qp.ece_vendor, own->ece_vendor, sizeof(qp.ece_vendor));
	return qp;
}

/* UD: request the address of the service (SIDR). One message in each direction, no connection. */
static int
resolve(struct rcm_id *id)
{
	const bool has_links = rcm_has_links(id);
	struct ibcm_ip ip = {0};
	const struct ibcm_sidr_conf conf = {.path = path_of(id),
			.service_id = service_id(id, id->dst.port),
			.cm_timeout = has_links ? CM_TIMEOUT_LINK : CM_TIMEOUT,
			.max_cm_retries = has_links ? CM_RETRIES_LINK : CM_RETRIES,
			.ip = &ip,
			.data = {id->own.private_data, id->own.private_len},
			.arg = id};

	fill_ip(id, &ip);
	return ibcm_resolve(cm, rcm_now(), &conf, &id->cm);
}

/* RC and UC: request a connection. The engine repeats the REQ until its timeout, which ended()
 * reports. */
static int
request(struct rcm_id *id)
{
	const bool has_links = rcm_has_links(id);
	struct rcm_dev dev;
	struct ibcm_ip ip = {0};
	struct ibcm_req_conf conf = {.path = path_of(id),
			.service_id = service_id(id, id->dst.port),
			.qp = qp_of(id),
			.service = id->qp_type == IBV_QPT_UC ? IBCM_UC : IBCM_RC,
			.retry_count = id->own.retry_count,
			.ack_timeout = id->ack_timeout,
			.cm_timeout = has_links ? CM_TIMEOUT_LINK : CM_TIMEOUT,
			.max_cm_retries = has_links ? CM_RETRIES_LINK : CM_RETRIES,
			.ip = &ip,
			.data = {id->own.private_data, id->own.private_len},
			.arg = id};

	if (!rcm_dev_of(id, &dev))
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
		return ibcm_answer(id->cm, rcm_now(), IBCM_SIDR_VALID, id->own.qpn, id->own.qkey,
				&data);
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

	/* Clear an error of an earlier call: the agent sends too. */
	send_error = 0;
	if (type == RCM_REQ) {
		ret = have_cm(id);
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
	return ret != 0 ? ret : send_error;
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

/*
 * Make the engine's ID belong to the ID: from here on, events of the engine find it. Its link,
 * which was pending, now has the number of the ID, with which the engine sends.
 */
void
rcm_mad_take(struct rcm_id *id, struct ibcm_id *of_cm)
{
	id->cm = of_cm;
	ibcm_arg_set(of_cm, id);
	if (ibcm_path(of_cm)->link != 0)
		ibcm_link_set(of_cm, rcm_link_of(id));
}

/*
 * Links only: the end of a link ends the connection for both sides, and nothing is repeated. With
 * --ip the engine's ID remains in time-wait until rcm_mad_close().
 */
void
rcm_mad_drop(struct rcm_id *id)
{
	if (id->cm == NULL || ibcm_path(id->cm)->link == 0)
		return;
	ibcm_drop(id->cm);
	id->cm = NULL;
}

/* Release the listener first, so that no request finds an ID that is being destroyed. */
void
rcm_mad_close(struct rcm_id *id)
{
	if (id->cm_listener != NULL)
		ibcm_unlisten(id->cm_listener);
	id->cm_listener = NULL;
	rcm_mad_drop(id);
	if (id->cm != NULL) {
		ibcm_release(id->cm, rcm_now());
		id->cm = NULL;
		rcm_timer_set();
	}
}

/* Don't watch QP 1 of a device until the end of a pause. */
static void
pause_gsi(uint32_t number)
{
	rcm_agent_unwatch(rmem_gsi_fd(gsis[number]));
	pausing |= UINT32_C(1) << number;
	again_ns = rcm_now() + FLOOD_NS;
}

/*
 * Pass the MADs that have arrived to the engine. If some are left, there is a flood of them, which
 * must not keep the lock from the program.
 */
void
rcm_mad_ready(uint32_t number)
{
	if (gsis[number] == NULL || !ribv_env_attach())
		return;
	if (rmem_gsi_poll(gsis[number]))
		pause_gsi(number);
	rcm_timer_set();
}

uint64_t
rcm_mad_next(void)
{
	uint64_t next = cm != NULL ? ibcm_next(cm) : IBCM_NEVER;

	return pausing != 0 ? RTE_MIN(next, again_ns) : next;
}

/* The pause is over. */
static void
poll_again(void)
{
	uint32_t left = pausing, number;

	for (pausing = 0; left != 0; left &= left - 1) {
		number = (uint32_t)__builtin_ctz(left);
		if (have_gsi(number) == 0)
			rcm_mad_ready(number);
		else
			pause_gsi(number);
	}
}

void
rcm_mad_time(uint64_t now)
{
	if (cm != NULL && ibcm_next(cm) <= now)
		ibcm_timeout(cm, now);
	if (pausing != 0 && again_ns <= now)
		poll_again();
}

void
rcm_mad_check(void)
{
	uint32_t i;

	/* The old socket may still be open; it then keeps the name. */
	if (report_fd >= 0)
		listen_for_reports();
	pausing = 0;
	for (i = 0; i < RCM_MAX_DEVS; i++) {
		if (gsis[i] == NULL || !ribv_env_attach())
			continue;
		/*
		 * The descriptors of QP 1 are closed, or refer to other files: don't use them.
		 */
		rmem_gsi_abandon(gsis[i]);
		gsis[i] = NULL;
		(void)have_gsi(i);
	}
}

void
rcm_mad_report(void)
{
	rcm_report_send(report_fd, cm, &cm_log);
}

/* Close descriptors of the parent's files. */
void
rcm_mad_forked(void)
{
	uint32_t i;

	if (report_fd >= 0 && rcm_agent_has(report_fd, RCM_REPORT))
		rcm_close(report_fd);
	for (i = 0; i < RCM_MAX_DEVS; i++) {
		if (gsis[i] != NULL && rcm_agent_has(rmem_gsi_fd(gsis[i]), RCM_GSI + i))
			rcm_close(rmem_gsi_fd(gsis[i]));
	}
}
