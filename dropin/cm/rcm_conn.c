/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Connections: the states of IDs and the events of the program, driven by events of the engine
 * (rcm_mad.c).
 * RC: a REQ is answered by REP or REJ, and a REP by RTU; with links, the end of the socket ends the
 * connection. UD: a request is answered by REP with the QP to send to, or by REJ; then the socket
 * is closed.
 *
 * Invariant: an ID has an ID of the engine only from RCM_CONNECT on. An ID in RCM_ENDED has no
 * socket, no port and no timer.
 * Invariant: the program knows an ID of a request (is_child) only after it has taken the event. The
 * ID gets its uid, without which it has no further events, when the program accepts.
 * Invariant: the program gets DISCONNECTED of a connection before TIMEWAIT_EXIT.
 * Invariant: an ID has one timer. Its use depends on fault and state (rcm_conn_time()): a fault, a
 * delayed DISCONNECTED, or a retry of a refused connection.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include <rmem_log.h>

#include "../verbs/ribv.h"
#include "rcm.h"

RTE_LOG_REGISTER(rcm_conn_logtype, lib.rmem.ibv.cm.conn, NOTICE)

#define RETRY_NS         5000000              /* between attempts to connect */
#define CONNECT_RETRY_NS UINT64_C(2000000000) /* retry a refused connection for this time */

/* DISCONNECTED is delayed until the program has polled its completions, for 1 s at most. */
#define MAX_HOLDS 66
#define HOLD_NS   UINT64_C(1000000) /* interval of the checks, doubled up to 4 times */

/* Private data of a message of RC and UD, in bytes (IBTA 12.6, 12.11, less the header of IP
 * addressing). Events always report this length. */
static const uint8_t max_private[][2] = {
		[RCM_REQ] = {56, 180},
		[RCM_REP] = {196, 136},
		[RCM_REJ] = {148, 136},
};

/* Copy private data, padded with zeros; -EINVAL: the message has less space. */
static int
set_private(struct rcm_id *id, enum rcm_type type, const uint8_t *data, uint8_t len)
{
	if (len > max_private[type][rcm_is_ud(id)])
		return -EINVAL;
	memset(id->own.private_data, 0, sizeof(id->own.private_data));
	memcpy(id->own.private_data, data, len);
	id->own.private_len = len;
	return 0;
}

/* Set this side's parameters for its next message. A message has 3 bits for each retry count. */
static void
set_param(struct rcm_id *id, const struct rdma_ucm_conn_param *param,
		const struct rdma_ucm_ece *ece)
{
	struct rcm_side *own = &id->own;

	own->qpn = param->qp_num & 0xffffff;
	own->qkey = param->qkey != 0 ? param->qkey : id->qkey;
	own->has_srq = param->srq != 0;
	own->has_flow_control = param->flow_control != 0;
	own->responder_resources = param->responder_resources;
	own->initiator_depth = param->initiator_depth;
	own->retry_count = RTE_MIN(param->retry_count, 7);
	own->rnr_retry_count = RTE_MIN(param->rnr_retry_count, 7);
	own->ece_vendor[0] = (uint8_t)(ece->vendor_id >> 16);
	own->ece_vendor[1] = (uint8_t)(ece->vendor_id >> 8);
	own->ece_vendor[2] = (uint8_t)ece->vendor_id;
	own->ece_options = ece->attr_mod;
}

/* Choose a random PSN, so that packets of an earlier connection are outside of the window. */
static void
set_psn(struct rcm_id *id)
{
	uint32_t psn;

	if (getrandom(&psn, sizeof(psn), GRND_NONBLOCK) != sizeof(psn))
		psn = (uint32_t)getpid() + id->handle;
	id->own.psn = psn & 0xffffff;
}

/* Report the parameters of the peer's last message. The initiator depth of one side is the
 * responder resources of the other. */
static void
event_param(const struct rcm_id *id, struct rdma_ucm_event_resp *resp)
{
	const struct rcm_side *peer = &id->peer;
	uint8_t len = max_private[peer->type][rcm_is_ud(id)];

	if (rcm_is_ud(id)) {
		resp->param.ud.qp_num = peer->qpn;
		resp->param.ud.qkey = peer->qkey;
		rcm_ah_attr(id, &resp->param.ud.ah_attr);
		resp->param.ud.private_data_len = len;
		memcpy(resp->param.ud.private_data, peer->private_data,
				RTE_MIN(len, peer->private_len));
		return;
	}
	resp->param.conn.qp_num = peer->qpn;
	resp->param.conn.srq = peer->has_srq;
	resp->param.conn.responder_resources = peer->initiator_depth;
	resp->param.conn.initiator_depth = peer->responder_resources;
	resp->param.conn.flow_control = peer->has_flow_control;
	resp->param.conn.retry_count = peer->retry_count;
	resp->param.conn.rnr_retry_count = peer->rnr_retry_count;
	resp->param.conn.private_data_len = len;
	memcpy(resp->param.conn.private_data, peer->private_data, RTE_MIN(len, peer->private_len));
	resp->ece.vendor_id = (uint32_t)peer->ece_vendor[0] << 16 |
			(uint32_t)peer->ece_vendor[1] << 8 | peer->ece_vendor[2];
	resp->ece.attr_mod = peer->ece_options;
}

/* Post an event with the current parameters, because a later message of the peer replaces them. */
static void
post_with_param(struct rcm_id *id, enum rcm_event_type type, int status)
{
	struct rcm_event *event = rcm_event_new(id, type, status);

	if (event == NULL)
		return;
	event_param(id, &event->resp);
	rcm_event_queue(id->channel, event);
}

/* Close the socket, which ends the engine's ID, and release the port. */
static void
close_port(struct rcm_id *id)
{
	rcm_mad_drop(id);
	rcm_port_close(id);
}

/* Enter RCM_ENDED; all callers but the destruction of an ID use this. Keeps the first invariant
 * above. */
static void
end(struct rcm_id *id)
{
	close_port(id);
	id->state = RCM_ENDED;
	id->fault.type = 0;
	rcm_id_timer(id, IBCM_NEVER);
}

static void
log_silent(const struct rcm_addr *peer)
{
	bool is_four = peer->family == AF_INET;
	char text[INET6_ADDRSTRLEN] = "";

	inet_ntop(peer->family, peer->ip + (is_four ? 12 : 0), text, sizeof(text));
	RMEM_LOG_LINE(ERR, rcm_conn_logtype, "rmem_ibv", "rdma_cm: peer %s, port %u: no answer",
			text, peer->port);
}

/* Report a failed connection attempt with the event and status of the kernel. */
static void
fail(struct rcm_id *id, int err)
{
	bool is_absent = err == -ECONNREFUSED;

	if (err == -ETIMEDOUT)
		log_silent(&id->dst);
	end(id);
	if (!is_absent && err != -EAGAIN && err != -ECONNRESET && err != -EPROTO)
		rcm_event_post(id, RCM_UNREACHABLE_EVENT, err);
	else if (rcm_is_ud(id))
		rcm_event_post(id, RCM_UNREACHABLE_EVENT,
				is_absent ? RCM_SIDR_UNSUPPORTED : RCM_SIDR_REJECT);
	else
		rcm_event_post(id, RCM_REJECTED_EVENT,
				is_absent ? RCM_REJ_INVALID_SERVICE_ID : RCM_REJ_CONSUMER);
}

/*
 * Whether to delay the event DISCONNECTED. An event thread of the program may get it before another
 * thread has polled the last completions: libfabric then destroys the QP and reports the requests
 * as lost.
 */
static bool
is_held(struct rcm_id *id)
{
	if (id->is_disconnecting || id->nb_holds == MAX_HOLDS ||
			!ribv_qp_has_wc(ribv_devs[id->dev], id->own.qpn))
		return false;
	/* The socket stays readable at its end and would wake the agent again at once. */
	rcm_agent_unwatch(id->fd);
	rcm_id_timer(id, rcm_now() + (HOLD_NS << RTE_MIN(id->nb_holds, 4u)));
	id->nb_holds++;
	return true;
}

static void connect_result(struct rcm_id *id, int ret);

/* The connection has ended: the peer sent a DREQ (err is 0), or its socket has ended. */
static void
ended(struct rcm_id *id, int err)
{
	switch (id->state) {
	case RCM_CONNECT:
		/* No answer: the listener has ended. */
		close_port(id);
		connect_result(id, err == -ECONNRESET ? -ECONNREFUSED : err);
		break;
	case RCM_REP_SENT:
		if (err != 0) {
			fail(id, err);
			break;
		}
		/* The peer sent a DREQ, so its RTU was lost. */
		end(id);
		rcm_event_post(id, RCM_DISCONNECTED_EVENT, 0);
		break;
	case RCM_REP_RECEIVED:
		/* DISCONNECTED is reported when the program accepts. */
		close_port(id);
		break;
	case RCM_ESTABLISHED:
		if (is_held(id))
			break;
		/*
		 * The engine may have left time-wait while DISCONNECTED was delayed; keep the
		 * order.
		 */
		end(id);
		rcm_event_post(id, RCM_DISCONNECTED_EVENT, 0);
		if (id->has_left_timewait)
			rcm_event_post(id, RCM_TIMEWAIT_EXIT_EVENT, 0);
		break;
	default:
		end(id);
		break;
	}
}

/* Listen in the engine, and at a socket if peers are processes of this host. */
static int
listen_id(struct rcm_id *id)
{
	int ret = rcm_port_unshare(id);

	if (ret == 0)
		ret = rcm_mad_listen(id);
	if (ret != 0 || !rcm_has_links(id))
		return ret;
	ret = rcm_link_listen(id);
	if (ret != 0)
		rcm_mad_close(id);
	return ret;
}

int
rcm_listen(const struct rcm_cmd *cmd)
{
	const struct rdma_ucm_listen *in = &cmd->in.listen;
	struct rcm_id *id;
	int ret;

	id = rcm_id_of(cmd, in->id, &ret);
	if (id == NULL)
		return ret;
	ret = rcm_bind_any(id, AF_INET);
	if (ret != 0)
		return ret;
	if (id->state != RCM_BOUND)
		return -EINVAL;
	id->backlog = in->backlog == 0 || in->backlog > RCM_MAX_BACKLOG ? RCM_MAX_BACKLOG
									: in->backlog;
	ret = listen_id(id);
	if (ret != 0)
		return ret;
	id->state = RCM_LISTEN;
	return 0;
}

/* The answer can't be missed: the lock is held until the socket is watched. */
static void
send_request(struct rcm_id *id)
{
	int ret = rcm_mad_send(id, RCM_REQ);

	if (ret == -EPIPE || ret == -ECONNRESET || ret == -ECONNREFUSED)
		ended(id, -ECONNRESET);
	else if (ret != 0 || (id->fd >= 0 && rcm_agent_watch(id->fd, id->handle, EPOLLIN) != 0))
		fail(id, -ECONNRESET);
}

/* Continue after an attempt to connect the socket. If there is no listener, or its queue is full,
 * try again later: a program may listen again after each connection. */
static void
connect_result(struct rcm_id *id, int ret)
{
	uint64_t now = rcm_now();

	if (ret == 0)
		send_request(id);
	else if ((ret == -ECONNREFUSED || ret == -EAGAIN) && now < id->retry_until_ns)
		rcm_id_timer(id, now + RETRY_NS);
	else
		fail(id, ret);
}

/* Connect again, with another socket and another ID of the engine; 0 or a negative errno. */
static int
reconnect(struct rcm_id *id)
{
	int ret;

	rcm_mad_drop(id);
	ret = rcm_port_reopen(id);
	return ret == 0 ? rcm_link_connect(id) : ret;
}

static void received_rej(struct rcm_id *id);
static int send_reject(struct rcm_id *id, uint8_t reason);

/*
 * Disconnect. The ID stays in RCM_ESTABLISHED until the peer answers with a DREP or its socket
 * ends; ended() then posts the event without delay.
 */
static void
disconnect(struct rcm_id *id)
{
	if (id->cm != NULL && rcm_mad_disconnect(id) == 0) {
		id->is_disconnecting = true;
		return;
	}
	end(id);
	rcm_event_post(id, RCM_DISCONNECTED_EVENT, 0);
}

/* A rule has suppressed the REP: send a REJ instead. */
static void
reject_unsent(struct rcm_id *id, uint8_t reason)
{
	id->own.private_len = 0;
	if (id->state == RCM_REP_SENT)
		(void)send_reject(id, reason);
}

/* A rule rejects the REQ or the REP. */
static void
rejected(struct rcm_id *id, uint8_t reason)
{
	reject_unsent(id, reason);
	if (rcm_is_ud(id))
		reason = reason == RCM_REJ_INVALID_SERVICE_ID ? RCM_SIDR_UNSUPPORTED
							      : RCM_SIDR_REJECT;
	id->peer = (struct rcm_side){.type = RCM_REJ, .reason = reason};
	received_rej(id);
}

/* A rule drops the answer. */
static void
unanswered(struct rcm_id *id)
{
	if (id->fault_step == RMEM_RDMA_CM_RESOLVE_ADDR) {
		rcm_event_post(id, RCM_ADDR_ERROR_EVENT, -ETIMEDOUT);
		return;
	}
	if (id->fault_step == RMEM_RDMA_CM_RESOLVE_ROUTE) {
		rcm_event_post(id, RCM_ROUTE_ERROR_EVENT, -ETIMEDOUT);
		return;
	}
	reject_unsent(id, RCM_REJ_TIMEOUT);
	end(id);
	rcm_event_post(id, RCM_UNREACHABLE_EVENT, -ETIMEDOUT);
}

/* Inject the fault of the ID now. */
static void
run_fault(struct rcm_id *id)
{
	const struct rmem_rdma_cm_fault fault = id->fault;

	rcm_chaos_happens(id);
	id->fault.type = 0;
	if (fault.type == RMEM_RDMA_CM_DISCONNECTED)
		disconnect(id);
	else if (fault.type == RMEM_RDMA_CM_REJECT)
		rejected(id, (uint8_t)fault.reason);
	else
		unanswered(id);
}

/* The connection is established: post the event, unless a rule drops the message. */
static void
establish(struct rcm_id *id)
{
	id->state = RCM_ESTABLISHED;
	if (id->fault.type != 0) {
		rcm_id_timer(id, rcm_now());
		return;
	}
	rcm_event_post(id, RCM_ESTABLISHED_EVENT, 0);
	(void)rcm_chaos_hit(id, RMEM_RDMA_CM_ESTABLISHED);
}

/*
 * The timer of an ID has expired: inject the fault, end a connection whose DISCONNECTED was
 * delayed, or retry to connect.
 */
void
rcm_conn_time(struct rcm_id *id)
{
	if (id->fault.type != 0 && id->nb_holds == 0)
		run_fault(id);
	else if (id->state == RCM_ESTABLISHED)
		ended(id, -ECONNRESET);
	else if (id->state == RCM_CONNECT)
		connect_result(id, reconnect(id));
}

int
rcm_connect(const struct rcm_cmd *cmd)
{
	const struct rdma_ucm_connect *in = &cmd->in.connect;
	struct rcm_id *id;
	int ret;

	id = rcm_id_of(cmd, in->id, &ret);
	if (id == NULL)
		return ret;
	if (id->state != RCM_ROUTE_RESOLVED || in->conn_param.valid == 0)
		return -EINVAL;
	ret = set_private(
			id, RCM_REQ, in->conn_param.private_data, in->conn_param.private_data_len);
	if (ret != 0)
		return ret;
	ret = rcm_agent_start();
	if (ret != 0)
		return ret;
	set_param(id, &in->conn_param, &in->ece);
	set_psn(id);
	/* From here on failures are reported by events, and the call succeeds, as in the kernel. */
	id->state = RCM_CONNECT;
	id->retry_until_ns = rcm_now() + CONNECT_RETRY_NS;
	if (!rcm_chaos_hit(id, RMEM_RDMA_CM_CONNECT))
		connect_result(id, rcm_link_connect(id));
	return 0;
}

/* Handle a REP. The depth of one side limits the resources of the other. UD has no RTU, so the
 * exchange ends here. */
static void
received_rep(struct rcm_id *id)
{
	id->own.responder_resources = id->peer.initiator_depth;
	id->own.initiator_depth = id->peer.responder_resources;
	if (rcm_is_ud(id)) {
		post_with_param(id, RCM_ESTABLISHED_EVENT, 0);
		close_port(id);
		id->state = RCM_ESTABLISHED;
		return;
	}
	id->state = RCM_REP_RECEIVED;
	post_with_param(id, RCM_CONNECT_RESPONSE_EVENT, 0);
}

/* Handle a REJ. An ID without uid was not accepted by the program, and has no event. */
static void
received_rej(struct rcm_id *id)
{
	uint8_t reason = id->peer.reason;

	end(id);
	if (rcm_is_ud(id))
		post_with_param(id, RCM_UNREACHABLE_EVENT, reason);
	else if (id->uid != 0)
		post_with_param(id, RCM_REJECTED_EVENT, reason);
}

/* Handle a message of the peer. A message that is invalid in this state ends the connection. */
static void
received(struct rcm_id *id, const struct rcm_side *peer)
{
	enum rcm_type type = peer->type;

	if (type == RCM_RTU && id->state == RCM_ESTABLISHED && id->is_child)
		return; /* established by rdma_notify() */
	if (type == RCM_RTU && id->state == RCM_REP_SENT) {
		establish(id);
	} else if (type == RCM_REP && id->state == RCM_CONNECT) {
		id->peer = *peer;
		received_rep(id);
	} else if (type == RCM_REJ &&
			(id->state == RCM_CONNECT || id->state == RCM_REP_SENT ||
					id->state == RCM_REP_RECEIVED)) {
		id->peer = *peer;
		received_rej(id);
	} else {
		ended(id, -EPROTO);
	}
}

static void
timewait_exit(struct rcm_id *id)
{
	/* DISCONNECTED is reported first. */
	if (id->state == RCM_ESTABLISHED || id->state == RCM_REP_RECEIVED)
		id->has_left_timewait = true;
	else if (id->uid != 0)
		rcm_event_post(id, RCM_TIMEWAIT_EXIT_EVENT, 0);
}

void
rcm_conn_ready(struct rcm_id *id)
{
	struct rcm_packet packet;
	int ret;

	/*
	 * The ID may have changed since epoll_wait(): an earlier handler may have closed its
	 * socket.
	 */
	if (id->fd < 0 || id->state < RCM_CONNECT)
		return;
	ret = rcm_link_receive(rcm_link_of(id), &packet);
	if (ret == 1)
		ret = rcm_mad_packet(rcm_link_of(id), &packet);
	if (ret != 0)
		ended(id, ret);
}

/*
 * Create the ID of a request and the event that reports both; NULL: no memory, or too many
 * requests. The backlog limits requests that the program has not taken, not connections:
 * nb_requests decreases when the program takes the event (pop() in rcm_channel.c). The event is
 * allocated first, so that every such ID has one.
 */
static struct rcm_event *
request_new(struct rcm_id *listener)
{
	struct rcm_event *event = rcm_event_new(listener, RCM_CONNECT_REQUEST_EVENT, 0);

	if (event == NULL)
		return NULL;
	if (listener->nb_requests < listener->backlog)
		event->child = rcm_id_new(listener->channel, listener->ps, listener->qp_type);
	if (event->child != NULL)
		return event;
	free(event);
	return NULL;
}

/*
 * Report a request to the program. The event owns the new ID until it is taken, so destroying the
 * listener destroys both.
 */
static void
request_report(struct rcm_id *listener, struct rcm_event *event)
{
	struct rcm_id *id = event->child;

	id->is_child = true;
	id->state = RCM_REQ_RECEIVED;
	id->own.responder_resources = id->peer.initiator_depth;
	id->own.initiator_depth = id->peer.responder_resources;
	set_psn(id);
	event->resp.id = id->handle;
	event_param(id, &event->resp);
	id->is_queued = true;
	listener->nb_requests++;
	rcm_event_queue(listener->channel, event);
}

/* Handle a request for a listening ID, from src to dst of a device; false if no ID can be
 * created. */
static bool
requested(struct rcm_id *listener, const struct rcm_side *peer, const struct rcm_addr *src,
		const struct rcm_addr *dst, uint32_t dev, struct ibcm_id *of_cm)
{
	struct rcm_event *event = request_new(listener);
	uint64_t link = ibcm_path(of_cm)->link;

	if (event == NULL)
		return false;
	if (link != 0 && rcm_link_take(event->child, link) != 0) {
		rcm_id_free(event->child);
		free(event);
		return false;
	}
	(void)rcm_watch_dev(dev);
	/* Nothing fails from here on: after rcm_mad_take() the engine's events find the ID. */
	event->child->has_dev = true;
	event->child->dev = dev;
	event->child->peer = *peer;
	event->child->src = *dst;
	event->child->dst = *src;
	rcm_mad_take(event->child, of_cm);
	request_report(listener, event);
	return true;
}

static const struct rcm_mad_handlers handlers = {
		.ended = ended,
		.received = received,
		.request = requested,
		.timewait_exit = timewait_exit,
};

RTE_INIT(rcm_conn_init)
{
	rcm_mad_handle(&handlers);
}

/* The program accepts a request: send the REP. */
static int
accept_request(struct rcm_id *id, const struct rdma_ucm_accept *in)
{
	int ret;

	if (id->state != RCM_REQ_RECEIVED)
		return -EINVAL;
	ret = set_private(
			id, RCM_REP, in->conn_param.private_data, in->conn_param.private_data_len);
	if (ret != 0)
		return ret;
	set_param(id, &in->conn_param, &in->ece);
	/* If a rule rejects or drops the reply, the REP is not sent. */
	if (!rcm_is_ud(id) && rcm_chaos_hit(id, RMEM_RDMA_CM_ACCEPT) && id->fault.delay_ms != 0)
		ret = 0;
	else
		ret = rcm_mad_send(id, RCM_REP);
	if (ret != 0) {
		end(id);
		return -ECONNRESET;
	}
	/* Set the state after sending: the RTU can't be read before the lock is released. */
	id->uid = in->uid;
	id->state = RCM_REP_SENT;
	if (rcm_is_ud(id)) {
		close_port(id);
		id->state = RCM_ESTABLISHED;
	}
	return 0;
}

/* With parameters, accept a request; without, send the RTU of an active connection. */
int
rcm_accept(const struct rcm_cmd *cmd)
{
	const struct rdma_ucm_accept *in = &cmd->in.accept;
	struct rcm_id *id;
	int ret;

	id = rcm_id_of(cmd, in->id, &ret);
	if (id == NULL)
		return ret;
	if (in->conn_param.valid != 0)
		return accept_request(id, in);
	if (id->state != RCM_REP_RECEIVED)
		return -EINVAL;
	id->state = RCM_ESTABLISHED;
	id->own.private_len = 0;
	/* Sending fails if the peer has ended: by the end of its socket, a REJ or a DREQ. */
	if (rcm_mad_send(id, RCM_RTU) != 0)
		ended(id, -ECONNRESET);
	else
		(void)rcm_chaos_hit(id, RMEM_RDMA_CM_ESTABLISHED);
	return 0;
}

/* Send a REJ and end the connection, also if sending fails. */
static int
send_reject(struct rcm_id *id, uint8_t reason)
{
	int ret;

	id->own.reason = rcm_is_ud(id) ? RCM_SIDR_REJECT : reason;
	ret = id->cm != NULL ? rcm_mad_send(id, RCM_REJ) : 0;
	end(id);
	return ret;
}

int
rcm_reject(const struct rcm_cmd *cmd)
{
	const struct rdma_ucm_reject *in = &cmd->in.reject;
	uint8_t reason = in->reason != 0 ? in->reason : RCM_REJ_CONSUMER;
	struct rcm_id *id;
	int ret;

	id = rcm_id_of(cmd, in->id, &ret);
	if (id == NULL)
		return ret;
	if ((id->state != RCM_REQ_RECEIVED && id->state != RCM_REP_RECEIVED) ||
			(reason != RCM_REJ_CONSUMER && reason != RCM_REJ_VENDOR_OPTION))
		return -EINVAL;
	ret = set_private(id, RCM_REJ, in->private_data, in->private_data_len);
	if (ret == 0)
		(void)send_reject(id, reason);
	return ret;
}

int
rcm_disconnect(const struct rcm_cmd *cmd)
{
	struct rcm_id *id;
	int ret;

	id = rcm_id_of(cmd, cmd->in.disconnect.id, &ret);
	if (id == NULL)
		return ret;
	/* The kernel succeeds here: it passes the call to the CM, where a listener with a device
	 * has an ID. */
	if (id->state == RCM_LISTEN && id->has_dev && !rcm_is_ud(id))
		return 0;
	if (rcm_is_ud(id) || id->state < RCM_CONNECT || id->state == RCM_REQ_RECEIVED)
		return -EINVAL;
	if (id->state == RCM_CONNECT || id->state == RCM_ENDED)
		return 0;
	disconnect(id);
	return 0;
}

/* The program reports a completion before the RTU. An RTU that follows is ignored by received(). */
int
rcm_notify(const struct rcm_cmd *cmd)
{
	struct rcm_id *id;
	int ret;

	id = rcm_id_of(cmd, cmd->in.notify.id, &ret);
	if (id == NULL)
		return ret;
	if (cmd->in.notify.event != IBV_EVENT_COMM_EST)
		return -EINVAL;
	if (id->state == RCM_ESTABLISHED)
		return 0;
	if (id->state != RCM_REP_SENT)
		return -EINVAL;
	if (id->cm != NULL)
		rcm_mad_notify(id);
	establish(id);
	return 0;
}

/* First forget a socket that the program has closed, because its number may refer to another
 * file. */
void
rcm_conn_close(struct rcm_id *id)
{
	rcm_sock_check(id);
	if (id->state == RCM_REQ_RECEIVED || id->state == RCM_REP_RECEIVED) {
		id->own.private_len = 0;
		(void)send_reject(id, RCM_REJ_CONSUMER);
	}
	rcm_mad_close(id);
	rcm_port_close(id);
}

/* Destroys untaken requests too; their IDs have no events. */
void
rcm_destroy(struct rcm_id *id)
{
	struct rcm_events taken;
	struct rcm_event *event;

	rcm_conn_close(id);
	rcm_mcast_drop(id);
	rcm_events_take(id, &taken);
	while ((event = TAILQ_FIRST(&taken)) != NULL) {
		TAILQ_REMOVE(&taken, event, own);
		if (event->child != NULL)
			rcm_destroy(event->child);
		free(event);
	}
	rcm_id_free(id);
}

int
rcm_destroy_id(const struct rcm_cmd *cmd)
{
	const struct rdma_ucm_destroy_id *in = &cmd->in.destroy_id;
	struct rdma_ucm_destroy_id_resp resp;
	struct rcm_id *id;
	int ret;

	if (cmd->out_len < sizeof(resp))
		return -ENOSPC;
	id = rcm_id_find(cmd, in->id, &ret);
	if (id == NULL)
		return ret;
	resp.events_reported = id->nb_reported;
	rcm_destroy(id);
	return rcm_respond(cmd, in->response, &resp, sizeof(resp));
}
