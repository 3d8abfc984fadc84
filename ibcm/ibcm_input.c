/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Received messages, with one function per type. A message belongs to an ID if it has the ID's comm
 * IDs, link and peer address and, while the comm ID of the peer is not known, the TID of the REQ.
 * All other messages change nothing.
 *
 * Invariant: nothing is allocated before a REQ is valid, has a listener, and is within the limits.
 */

#include <string.h>

#include "ibcm_priv.h"

/* Service timeout of an MRA: 68.7 s, as in rdma_cm of the kernel. */
#define MRA_TIMEOUT 24
/* Time-wait of an answered SIDR_REQ, during which duplicates get the same answer: 2.1 s. */
#define SIDR_TIMEOUT 19

/* Zeros: not known yet. A peer on a link is reached without its address. */
static bool
is_unknown(const uint8_t gid[16])
{
	static const uint8_t unknown[16];

	return memcmp(gid, unknown, sizeof(unknown)) == 0;
}

static bool
is_path(const struct ibcm_id *id, const struct ibcm_path *path)
{
	return id->path.link == path->link &&
			(memcmp(id->path.remote_gid, path->remote_gid, sizeof(path->remote_gid)) ==
							0 ||
					is_unknown(id->path.remote_gid)) &&
			memcmp(id->path.local_gid, path->local_gid, sizeof(path->local_gid)) == 0;
}

/* Find the ID of a message with two comm IDs, or NULL. */
static struct ibcm_id *
id_of(struct ibcm *cm, const struct ibcm_path *path, const struct ibcm_msg *msg)
{
	struct ibcm_id *id = ibcm_id_by_id(cm, msg->remote_id);

	if (id != NULL && !id->is_sidr && is_path(id, path) &&
			(id->state == IBCM_REQ_SENT ? id->tid == msg->tid
						    : id->remote_id == msg->local_id))
		return id;
	cm->log->stats.unknown_id++;
	return NULL;
}

static void
count_duplicate(struct ibcm *cm, const struct ibcm_msg *msg)
{
	cm->log->stats.duplicates[msg->type - IBCM_REQ]++;
}

static void
send_mra(struct ibcm_id *id, enum ibcm_subject subject)
{
	struct ibcm_msg mra = ibcm_msg_of(id, IBCM_MRA);

	mra.subject = (uint8_t)subject;
	mra.service_timeout = MRA_TIMEOUT;
	ibcm_send(id->cm, &id->path, &mra);
}

static void
refuse(struct ibcm *cm, const struct ibcm_path *path, const struct ibcm_msg *msg, uint16_t reason)
{
	cm->log->stats.refused++;
	ibcm_reject_to(cm, path, msg, reason);
}

/* End a connection whose comm ID or QP the peer uses for a new one: the peer has lost the old
 * one. */
static void
end_stale(struct ibcm_id *id, uint64_t now)
{
	if (id->state != IBCM_ESTABLISHED)
		return;
	ibcm_info_end(id, IBCM_END_STALE, 0);
	ibcm_end_dreq(id, now, NULL);
}

/* Handle a REQ with a known comm ID. */
static void
req_again(struct ibcm_id *id, uint64_t now, const struct ibcm_path *path,
		const struct ibcm_msg *msg)
{
	if (id->tid != msg->tid || id->attr.peer_qpn != msg->qpn) {
		refuse(id->cm, path, msg, IBCM_REJ_STALE_CONN);
		end_stale(id, now);
		return;
	}
	count_duplicate(id->cm, msg);
	if (id->state == IBCM_REQ_RCVD)
		send_mra(id, IBCM_OF_REQ);
	else if (id->state == IBCM_REP_SENT)
		ibcm_send_again(id);
	else if (id->mad_type == IBCM_REJ)
		/*
		 * The peer has no REP; without one, the kernel finds its ID only by a REJ of the
		 * REQ.
		 */
		ibcm_reject_again(id, IBCM_OF_REQ);
	else if (id->state == IBCM_TIMEWAIT)
		ibcm_reject_to(id->cm, path, msg, IBCM_REJ_STALE_CONN); /* as the kernel */
}

/* Check a request, except its service ID. Return 0 or an enum ibcm_reason. */
static uint16_t
req_reason(const struct ibcm_path *path, const struct ibcm_msg *req)
{
	if (req->service != IBCM_RC && req->service != IBCM_UC)
		return IBCM_REJ_INVALID_TRANSPORT;
	/* The QPs would send to these addresses, so they must be the addresses of the packet. */
	if (memcmp(req->local_gid, path->remote_gid, sizeof(path->remote_gid)) != 0 ||
			(memcmp(req->remote_gid, path->local_gid, sizeof(path->local_gid)) != 0 &&
					!is_unknown(req->remote_gid)))
		return IBCM_REJ_INVALID_GID;
	if (req->mtu < 1 || req->mtu > 5)
		return IBCM_REJ_INVALID_MTU;
	/* Full and limited members of the default partition. */
	if ((req->pkey | 0x8000) != IBCM_PKEY)
		return IBCM_REJ_UNSUPPORTED;
	return 0;
}

/*
 * Check that one more request is within the limits of the listener and the source. Return 0 or an
 * enum ibcm_reason.
 */
static uint16_t
limit_reason(struct ibcm *cm, const struct ibcm_path *path, const struct ibcm_listener *listener)
{
	if (listener == NULL)
		return IBCM_REJ_INVALID_SERVICE_ID;
	if (listener->nb_pending >= listener->conf.backlog)
		return IBCM_REJ_CONSUMER; /* as in rdma_cm of the kernel */
	if (*ibcm_half_open(cm, path->remote_gid) >= cm->conf.max_half_open)
		return IBCM_REJ_NO_RESOURCES;
	return 0;
}

/* Report the request of a new ID, without the header of annex A11. */
static void
report_request(struct ibcm_id *id, enum ibcm_event_type type, const struct ibcm_msg *msg,
		const struct ibcm_ip *ip)
{
	const struct ibcm_listen_conf *conf = &id->listener->conf;
	uint32_t skip = conf->family != IBCM_NO_IP ? IBCM_IP_LEN : 0;
	const struct ibcm_event event = {
			.type = type,
			.id = id,
			.listener_arg = conf->arg,
			.msg = msg,
			.ip = skip != 0 ? ip : NULL,
			.data = msg->data + skip,
			.data_len = msg->data_len - skip,
	};

	id->cm->conf.event(id->cm->conf.arg, &event);
}

/* Store the parameters of a REQ. The initiator depth of one side is the responder resources of the
 * other. */
static void
set_peer(struct ibcm_id *id, const struct ibcm_msg *req)
{
	id->is_passive = true;
	id->service_id = req->service_id;
	id->tid = req->tid;
	id->remote_id = req->local_id;
	id->ca_guid = req->ca_guid;
	id->interval = ibcm_wait_ns(req->local_timeout);
	id->max_retries = req->max_cm_retries;
	id->attr = (struct ibcm_qp_attr){
			.peer_qpn = req->qpn,
			.peer_psn = req->psn,
			.mtu = req->mtu,
			.service = req->service,
			.responder_resources = req->initiator_depth,
			.initiator_depth = req->responder_resources,
			.retry_count = req->retry_count,
			.rnr_retry_count = req->rnr_retry_count,
			.ack_timeout = req->ack_timeout,
			.peer_has_srq = req->has_srq,
	};
}

/* Find an earlier connection of the peer's QP; the peer has lost it, or would not send a REQ. */
static struct ibcm_id *
stale_id(struct ibcm *cm, const struct ibcm_path *path, const struct ibcm_msg *msg)
{
	if (cm->conf.is_end_seen && path->link != 0)
		return NULL;
	return ibcm_id_by_qpn(cm, path->remote_gid, msg->ca_guid, msg->qpn);
}

static void
input_req(struct ibcm *cm, uint64_t now, const struct ibcm_path *path, const struct ibcm_msg *msg)
{
	struct ibcm_listener *listener;
	struct ibcm_id *id;
	struct ibcm_ip ip;
	bool has_ip;
	uint16_t reason;
	int ret;

	id = ibcm_id_by_peer(cm, path, msg->ca_guid, msg->local_id, false);
	if (id != NULL) {
		req_again(id, now, path, msg);
		return;
	}
	reason = req_reason(path, msg);
	if (reason != 0) {
		refuse(cm, path, msg, reason);
		return;
	}
	id = stale_id(cm, path, msg);
	if (id != NULL) {
		refuse(cm, path, msg, IBCM_REJ_STALE_CONN);
		end_stale(id, now);
		return;
	}
	has_ip = ibcm_ip_decode(msg->data, msg->data_len, &ip);
	listener = ibcm_listener_lookup(cm, msg->service_id, has_ip ? &ip : NULL);
	reason = limit_reason(cm, path, listener);
	id = reason == 0 ? ibcm_id_alloc(cm, path, &ret) : NULL;
	if (id == NULL) {
		refuse(cm, path, msg, reason != 0 ? reason : IBCM_REJ_NO_RESOURCES);
		return;
	}
	set_peer(id, msg);
	id->listener = listener;
	ibcm_id_insert(id, IBCM_BY_PEER);
	ibcm_id_insert(id, IBCM_BY_QPN);
	ibcm_id_state(id, IBCM_REQ_RCVD);
	report_request(id, IBCM_EVENT_REQ, msg, &ip);
}

/* Add the ACK delay of the peer to the timeout of the path, rounded up as in the kernel. */
static uint8_t
add_ack_delay(uint8_t timeout, uint8_t delay)
{
	uint8_t larger = timeout > delay ? timeout : delay;
	uint8_t smaller = timeout > delay ? delay : timeout;

	if (timeout == 0 || larger == IBCM_MAX_TIME) /* 0: no timeout */
		return timeout == 0 ? 0 : IBCM_MAX_TIME;
	return (uint8_t)(larger + (smaller + 1 >= larger));
}

static void
input_rep_first(struct ibcm_id *id, uint64_t now, const struct ibcm_path *path,
		const struct ibcm_msg *msg)
{
	struct ibcm_qp_attr *attr = &id->attr;
	struct ibcm_id *stale = stale_id(id->cm, path, msg);

	memcpy(id->path.remote_gid, path->remote_gid, sizeof(id->path.remote_gid));
	ibcm_id_timer(id, IBCM_NEVER);
	id->remote_id = msg->local_id;
	id->ca_guid = msg->ca_guid;
	attr->peer_qpn = msg->qpn;
	attr->peer_psn = msg->psn;
	/* Limit requests in flight to the resources of the other side. */
	if (attr->responder_resources > msg->initiator_depth)
		attr->responder_resources = msg->initiator_depth;
	if (attr->initiator_depth > msg->responder_resources)
		attr->initiator_depth = msg->responder_resources;
	attr->ack_timeout = add_ack_delay(attr->ack_timeout, msg->ack_delay);
	attr->rnr_retry_count = msg->rnr_retry_count;
	attr->peer_has_srq = msg->has_srq;
	id->mad_type = 0;
	ibcm_id_state(id, IBCM_REP_RCVD);
	if (stale == NULL) {
		ibcm_id_insert(id, IBCM_BY_QPN);
		ibcm_end_event(id, IBCM_EVENT_REP, msg, 0);
		return;
	}
	end_stale(stale, now);
	ibcm_reject_end(id, now, IBCM_REJ_STALE_CONN, NULL);
	ibcm_end_event(id, IBCM_EVENT_REJECTED, NULL, IBCM_REJ_STALE_CONN);
}

static void
input_rep(struct ibcm *cm, uint64_t now, const struct ibcm_path *path, const struct ibcm_msg *msg)
{
	struct ibcm_id *id;

	if (ibcm_id_by_id(cm, msg->remote_id) == NULL) {
		cm->log->stats.unknown_id++;
		ibcm_reject_to(cm, path, msg, IBCM_REJ_INVALID_COMM_ID);
		return;
	}
	id = id_of(cm, path, msg);
	if (id == NULL)
		return;
	if (id->state == IBCM_REQ_SENT) {
		input_rep_first(id, now, path, msg);
		return;
	}
	count_duplicate(cm, msg);
	if (id->state == IBCM_REP_RCVD)
		send_mra(id, IBCM_OF_REP);
	else if (id->mad_type == IBCM_RTU || id->mad_type == IBCM_REJ)
		ibcm_send_again(id);
}

static void
input_mra(struct ibcm *cm, uint64_t now, const struct ibcm_path *path, const struct ibcm_msg *msg)
{
	struct ibcm_id *id = id_of(cm, path, msg);
	uint64_t wait = ibcm_wait_ns(msg->service_timeout);

	if (id == NULL)
		return;
	if (!(id->state == IBCM_REQ_SENT && msg->subject == IBCM_OF_REQ) &&
			!(id->state == IBCM_REP_SENT && msg->subject == IBCM_OF_REP)) {
		cm->log->stats.wrong_state++;
		return;
	}
	if (id->has_mra) { /* the peer can delay the timeout of a message only once */
		count_duplicate(cm, msg);
		return;
	}
	id->has_mra = true;
	if (id->wait < wait)
		id->wait = wait;
	ibcm_id_timer(id, now + id->wait);
}

/* Find the ID of a REJ, by its comm IDs, or by the CA GUID if the peer does not know the comm ID of
 * this side. */
static struct ibcm_id *
rej_id_of(struct ibcm *cm, const struct ibcm_path *path, const struct ibcm_msg *msg)
{
	uint64_t ca_guid = 0;
	struct ibcm_id *id;
	uint32_t i;

	if (msg->remote_id != 0 || msg->reason != IBCM_REJ_TIMEOUT ||
			msg->ari_len != sizeof(ca_guid))
		return id_of(cm, path, msg);
	for (i = 0; i < sizeof(ca_guid); i++)
		ca_guid = ca_guid << 8 | msg->ari[i];
	id = ibcm_id_by_peer(cm, path, ca_guid, msg->local_id, false);
	if (id != NULL && is_path(id, path))
		return id;
	cm->log->stats.unknown_id++;
	return NULL;
}

static void
input_rej(struct ibcm *cm, uint64_t now, const struct ibcm_path *path, const struct ibcm_msg *msg)
{
	struct ibcm_id *id = rej_id_of(cm, path, msg);

	if (id == NULL)
		return;
	switch (id->state) {
	case IBCM_REQ_SENT:
		ibcm_info_end(id, IBCM_END_PEER_REJ, msg->reason);
		ibcm_end_idle(id, IBCM_EVENT_REJECTED, msg, msg->reason);
		break;
	case IBCM_REQ_RCVD:
	case IBCM_REP_SENT:
	case IBCM_REP_RCVD:
	case IBCM_ESTABLISHED:
		ibcm_info_end(id, IBCM_END_PEER_REJ, msg->reason);
		ibcm_end_timewait(id, now);
		ibcm_end_event(id, IBCM_EVENT_REJECTED, msg, msg->reason);
		break;
	case IBCM_DREQ_SENT:
		ibcm_info_end(id, IBCM_END_DREQ, 0);
		ibcm_end_timewait(id, now);
		ibcm_end_event(id, IBCM_EVENT_DISCONNECTED, msg, 0);
		break;
	default: /* TIMEWAIT */
		count_duplicate(cm, msg);
		break;
	}
}

static void
input_rtu(struct ibcm *cm, const struct ibcm_path *path, const struct ibcm_msg *msg)
{
	struct ibcm_id *id = id_of(cm, path, msg);

	if (id == NULL)
		return;
	if (id->state == IBCM_REP_SENT) {
		ibcm_id_timer(id, IBCM_NEVER);
		ibcm_id_state(id, IBCM_ESTABLISHED);
		ibcm_end_event(id, IBCM_EVENT_ESTABLISHED, msg, 0);
	} else if (id->state == IBCM_ESTABLISHED) {
		count_duplicate(cm, msg);
	} else {
		cm->log->stats.wrong_state++;
	}
}

static void
send_drep(struct ibcm *cm, const struct ibcm_path *path, const struct ibcm_msg *dreq)
{
	const struct ibcm_msg drep = {
			.type = IBCM_DREP,
			.tid = dreq->tid,
			.local_id = dreq->remote_id,
			.remote_id = dreq->local_id,
	};

	ibcm_send(cm, path, &drep);
}

static void
input_dreq(struct ibcm *cm, uint64_t now, const struct ibcm_path *path, const struct ibcm_msg *msg)
{
	struct ibcm_id *id;

	if (ibcm_id_by_id(cm, msg->remote_id) == NULL) { /* the connection has ended */
		cm->log->stats.unknown_id++;
		send_drep(cm, path, msg);
		return;
	}
	id = id_of(cm, path, msg);
	if (id == NULL)
		return;
	if (id->attr.qpn != msg->qpn) {
		cm->log->stats.unknown_id++;
		return;
	}
	switch (id->state) {
	case IBCM_REP_SENT:
	case IBCM_REP_RCVD:
	case IBCM_ESTABLISHED:
	case IBCM_DREQ_SENT:
		send_drep(cm, path, msg);
		ibcm_info_end(id, id->state == IBCM_DREQ_SENT ? IBCM_END_DREQ : IBCM_END_PEER_DREQ,
				0);
		ibcm_end_timewait(id, now);
		ibcm_end_event(id, IBCM_EVENT_DISCONNECTED, msg, 0);
		break;
	case IBCM_TIMEWAIT:
		count_duplicate(cm, msg);
		send_drep(cm, path, msg);
		break;
	default:
		cm->log->stats.wrong_state++;
		break;
	}
}

static void
input_drep(struct ibcm *cm, uint64_t now, const struct ibcm_path *path, const struct ibcm_msg *msg)
{
	struct ibcm_id *id = id_of(cm, path, msg);

	if (id == NULL)
		return;
	if (id->state != IBCM_DREQ_SENT) {
		cm->log->stats.wrong_state++;
		return;
	}
	ibcm_info_end(id, IBCM_END_DREQ, 0);
	ibcm_end_timewait(id, now);
	ibcm_end_event(id, IBCM_EVENT_DISCONNECTED, msg, 0);
}

static void
input_sidr_req(struct ibcm *cm, const struct ibcm_path *path, const struct ibcm_msg *msg)
{
	struct ibcm_id *id = ibcm_id_by_peer(cm, path, 0, msg->local_id, true);
	struct ibcm_listener *listener;
	struct ibcm_ip ip;
	bool has_ip;
	int ret;

	if (id != NULL) {
		count_duplicate(cm, msg);
		if (id->state == IBCM_TIMEWAIT)
			ibcm_send_again(id);
		return;
	}
	has_ip = ibcm_ip_decode(msg->data, msg->data_len, &ip);
	listener = ibcm_listener_lookup(cm, msg->service_id, has_ip ? &ip : NULL);
	id = limit_reason(cm, path, listener) == 0 ? ibcm_id_alloc(cm, path, &ret) : NULL;
	if (id == NULL) {
		cm->log->stats.refused++;
		ibcm_send_sidr_rep(cm, path, msg,
				listener == NULL ? IBCM_SIDR_NO_SERVICE : IBCM_SIDR_REJECTED);
		return;
	}
	id->is_passive = true;
	id->is_sidr = true;
	id->tid = msg->tid;
	id->remote_id = msg->local_id;
	id->service_id = msg->service_id;
	id->attr.ack_timeout = SIDR_TIMEOUT;
	id->listener = listener;
	ibcm_id_insert(id, IBCM_BY_PEER);
	ibcm_id_state(id, IBCM_SIDR_REQ_RCVD);
	report_request(id, IBCM_EVENT_SIDR_REQ, msg, &ip);
}

static void
input_sidr_rep(struct ibcm *cm, const struct ibcm_path *path, const struct ibcm_msg *msg)
{
	struct ibcm_id *id = ibcm_id_by_id(cm, msg->local_id);

	if (id == NULL || id->state != IBCM_SIDR_REQ_SENT || !is_path(id, path) ||
			id->tid != msg->tid || id->service_id != msg->service_id) {
		cm->log->stats.unknown_id++;
		return;
	}
	memcpy(id->path.remote_gid, path->remote_gid, sizeof(id->path.remote_gid));
	ibcm_info_end(id, IBCM_END_SIDR, 0);
	ibcm_end_idle(id, IBCM_EVENT_SIDR_REP, msg, 0);
}

void
ibcm_input(struct ibcm *cm, uint64_t now, const struct ibcm_path *path,
		const uint8_t mad[IBCM_MAD_LEN])
{
	struct ibcm_msg msg;

	if (!ibcm_mad_decode(mad, &msg)) {
		cm->log->stats.malformed++;
		return;
	}
	cm->log->stats.rx[msg.type - IBCM_REQ]++;
	if (msg.type == IBCM_REJ)
		ibcm_info_count_rej(cm->log->stats.rej_rx, msg.reason);
	switch (msg.type) {
	case IBCM_REQ:
		input_req(cm, now, path, &msg);
		break;
	case IBCM_MRA:
		input_mra(cm, now, path, &msg);
		break;
	case IBCM_REJ:
		input_rej(cm, now, path, &msg);
		break;
	case IBCM_REP:
		input_rep(cm, now, path, &msg);
		break;
	case IBCM_RTU:
		input_rtu(cm, path, &msg);
		break;
	case IBCM_DREQ:
		input_dreq(cm, now, path, &msg);
		break;
	case IBCM_DREP:
		input_drep(cm, now, path, &msg);
		break;
	case IBCM_SIDR_REQ:
		input_sidr_req(cm, path, &msg);
		break;
	default:
		input_sidr_rep(cm, path, &msg);
		break;
	}
}
