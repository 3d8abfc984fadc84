/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Calls of the consumer. Each checks its arguments and the state, and then sends a message. */

#include <errno.h>
#include <string.h>

#include "ibcm_priv.h"

/* Private data of a REQ or SIDR_REQ: the addresses of annex A11, then the caller's data. */
struct request_data {
	uint8_t bytes[IBCM_MAX_DATA];
	uint32_t len;
};

static bool
is_data_valid(const struct ibcm_data *data, enum ibcm_type type)
{
	return data == NULL || data->len == 0 ||
			(data->data != NULL && data->len <= ibcm_data_len(type));
}

static bool
is_qp_valid(const struct ibcm_qp_conf *qp)
{
	return qp->qpn <= IBCM_QPN_MASK && qp->psn <= IBCM_PSN_MASK && qp->rnr_retry_count <= 7;
}

static bool
is_timing_valid(uint8_t cm_timeout, uint8_t max_cm_retries)
{
	return cm_timeout <= IBCM_MAX_TIME && max_cm_retries <= IBCM_MAX_RETRY;
}

static bool
join_data(struct request_data *to, const struct ibcm_ip *ip, const struct ibcm_data *data,
		enum ibcm_type type)
{
	to->len = 0;
	if (ip != NULL) {
		if (ip->version != 4 && ip->version != 6)
			return false;
		ibcm_ip_encode(ip, to->bytes);
		to->len = IBCM_IP_LEN;
	}
	if (data->len > ibcm_data_len(type) - to->len || (data->len != 0 && data->data == NULL))
		return false;
	if (data->len != 0)
		memcpy(to->bytes + to->len, data->data, data->len);
	to->len += data->len;
	return true;
}

static void
set_data(struct ibcm_msg *msg, const struct ibcm_data *data)
{
	if (data != NULL) {
		msg->data = data->data;
		msg->data_len = data->len;
	}
}

static bool
is_req_valid(const struct ibcm_req_conf *conf)
{
	return is_qp_valid(&conf->qp) && is_timing_valid(conf->cm_timeout, conf->max_cm_retries) &&
			(conf->service == IBCM_RC || conf->service == IBCM_UC) && conf->mtu >= 1 &&
			conf->mtu <= 5 && conf->retry_count <= 7 &&
			conf->ack_timeout <= IBCM_MAX_TIME && conf->path.flow_label <= 0xfffff;
}

static void
set_req(struct ibcm_msg *req, const struct ibcm_req_conf *conf, const struct request_data *data)
{
	const struct ibcm_path *path = &conf->path;

	req->service_id = conf->service_id;
	req->qpn = conf->qp.qpn;
	req->psn = conf->qp.psn;
	req->responder_resources = conf->qp.responder_resources;
	req->initiator_depth = conf->qp.initiator_depth;
	req->rnr_retry_count = conf->qp.rnr_retry_count;
	req->has_srq = conf->qp.has_srq;
	req->has_flow_control = conf->qp.has_flow_control;
	memcpy(req->ece_vendor, conf->qp.ece_vendor, sizeof(req->ece_vendor));
	req->ece_options = conf->qp.ece_options;
	req->service = (uint8_t)conf->service;
	req->mtu = conf->mtu;
	req->retry_count = conf->retry_count;
	req->ack_timeout = conf->ack_timeout;
	req->remote_timeout = req->local_timeout = conf->cm_timeout;
	req->max_cm_retries = conf->max_cm_retries;
	req->pkey = IBCM_PKEY;
	memcpy(req->local_gid, path->local_gid, sizeof(req->local_gid));
	memcpy(req->remote_gid, path->remote_gid, sizeof(req->remote_gid));
	req->flow_label = path->flow_label;
	req->traffic_class = path->traffic_class;
	req->hop_limit = path->hop_limit;
	req->is_subnet_local = path->hop_limit <= 1;
	if (!req->is_subnet_local) /* as the kernel does: receivers use the packet's addresses */
		req->local_lid = req->remote_lid = IBCM_ANY_LID;
	req->data = data->bytes;
	req->data_len = data->len;
}

/* Allocate an ID for a request, which is repeated until it is answered. */
static int
request_begin(struct ibcm *cm, const struct ibcm_path *path, uint64_t service_id,
		uint8_t cm_timeout, uint8_t max_cm_retries, void *arg, struct ibcm_id **id)
{
	int ret;

	*id = ibcm_id_alloc(cm, path, &ret);
	if (*id == NULL)
		return ret;
	(*id)->service_id = service_id;
	(*id)->interval = ibcm_wait_ns(cm_timeout);
	(*id)->max_retries = max_cm_retries;
	(*id)->arg = arg;
	return 0;
}

int
ibcm_connect(struct ibcm *cm, uint64_t now, const struct ibcm_req_conf *conf, struct ibcm_id **out)
{
	struct request_data data;
	struct ibcm_msg req;
	struct ibcm_id *id;
	int ret;

	if (!is_req_valid(conf) || !join_data(&data, conf->ip, &conf->data, IBCM_REQ))
		return -EINVAL;
	ret = request_begin(cm, &conf->path, conf->service_id, conf->cm_timeout,
			conf->max_cm_retries, conf->arg, &id);
	if (ret != 0)
		return ret;
	id->attr = (struct ibcm_qp_attr){
			.qpn = conf->qp.qpn,
			.psn = conf->qp.psn,
			.mtu = conf->mtu,
			.service = (uint8_t)conf->service,
			.responder_resources = conf->qp.responder_resources,
			.initiator_depth = conf->qp.initiator_depth,
			.retry_count = conf->retry_count,
			.ack_timeout = conf->ack_timeout,
	};
	req = ibcm_msg_of(id, IBCM_REQ);
	set_req(&req, conf, &data);
	ibcm_id_state(id, IBCM_REQ_SENT);
	*out = id;
	ibcm_send_until(id, now, &req);
	return 0;
}

int
ibcm_resolve(struct ibcm *cm, uint64_t now, const struct ibcm_sidr_conf *conf, struct ibcm_id **out)
{
	struct request_data data;
	struct ibcm_msg req;
	struct ibcm_id *id;
	int ret;

	if (!is_timing_valid(conf->cm_timeout, conf->max_cm_retries) ||
			!join_data(&data, conf->ip, &conf->data, IBCM_SIDR_REQ))
		return -EINVAL;
	ret = request_begin(cm, &conf->path, conf->service_id, conf->cm_timeout,
			conf->max_cm_retries, conf->arg, &id);
	if (ret != 0)
		return ret;
	id->is_sidr = true;
	req = ibcm_msg_of(id, IBCM_SIDR_REQ);
	req.service_id = conf->service_id;
	req.pkey = IBCM_PKEY;
	req.data = data.bytes;
	req.data_len = data.len;
	ibcm_id_state(id, IBCM_SIDR_REQ_SENT);
	*out = id;
	ibcm_send_until(id, now, &req);
	return 0;
}

static uint8_t
min8(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

int
ibcm_accept(struct ibcm_id *id, uint64_t now, const struct ibcm_qp_conf *qp,
		const struct ibcm_data *data)
{
	struct ibcm_msg rep = ibcm_msg_of(id, IBCM_REP);

	if (!is_qp_valid(qp) || !is_data_valid(data, IBCM_REP))
		return -EINVAL;
	if (id->state != IBCM_REQ_RCVD)
		return -EBUSY;
	id->attr.qpn = qp->qpn;
	id->attr.psn = qp->psn;
	id->attr.responder_resources = min8(id->attr.responder_resources, qp->responder_resources);
	id->attr.initiator_depth = min8(id->attr.initiator_depth, qp->initiator_depth);
	rep.qpn = qp->qpn;
	rep.psn = qp->psn;
	rep.responder_resources = id->attr.responder_resources;
	rep.initiator_depth = id->attr.initiator_depth;
	rep.rnr_retry_count = qp->rnr_retry_count;
	rep.has_srq = qp->has_srq;
	rep.has_flow_control = qp->has_flow_control;
	memcpy(rep.ece_vendor, qp->ece_vendor, sizeof(rep.ece_vendor));
	rep.ece_options = qp->ece_options;
	rep.failover = 1;
	set_data(&rep, data);
	ibcm_id_state(id, IBCM_REP_SENT);
	ibcm_send_until(id, now, &rep);
	return 0;
}

int
ibcm_ready(struct ibcm_id *id, const struct ibcm_data *data)
{
	struct ibcm_msg rtu = ibcm_msg_of(id, IBCM_RTU);

	if (!is_data_valid(data, IBCM_RTU))
		return -EINVAL;
	if (id->state != IBCM_REP_RCVD)
		return -EBUSY;
	set_data(&rtu, data);
	ibcm_id_state(id, IBCM_ESTABLISHED);
	ibcm_send_keep(id, &rtu);
	return 0;
}

int
ibcm_notify(struct ibcm_id *id)
{
	if (id->state != IBCM_REP_SENT)
		return -EBUSY;
	ibcm_id_timer(id, IBCM_NEVER);
	ibcm_id_state(id, IBCM_ESTABLISHED);
	return 0;
}

int
ibcm_reject(struct ibcm_id *id, uint64_t now, uint16_t reason, const struct ibcm_data *data)
{
	if (!is_data_valid(data, IBCM_REJ))
		return -EINVAL;
	if (id->state != IBCM_REQ_RCVD && id->state != IBCM_REP_SENT && id->state != IBCM_REP_RCVD)
		return -EBUSY;
	ibcm_reject_end(id, now, reason, data);
	return 0;
}

int
ibcm_disconnect(struct ibcm_id *id, uint64_t now, const struct ibcm_data *data)
{
	if (!is_data_valid(data, IBCM_DREQ))
		return -EINVAL;
	if (id->state != IBCM_ESTABLISHED)
		return -EBUSY;
	ibcm_end_dreq(id, now, data);
	return 0;
}

int
ibcm_answer(struct ibcm_id *id, uint64_t now, enum ibcm_sidr_status status, uint32_t qpn,
		uint32_t qkey, const struct ibcm_data *data)
{
	struct ibcm_msg rep = ibcm_msg_of(id, IBCM_SIDR_REP);

	if (qpn > IBCM_QPN_MASK || !is_data_valid(data, IBCM_SIDR_REP))
		return -EINVAL;
	if (id->state != IBCM_SIDR_REQ_RCVD)
		return -EBUSY;
	rep.local_id = id->remote_id; /* request ID of the peer */
	rep.service_id = id->service_id;
	rep.status = (uint8_t)status;
	rep.qpn = qpn;
	rep.qkey = qkey;
	set_data(&rep, data);
	ibcm_send_keep(id, &rep);
	ibcm_info_end(id, IBCM_END_SIDR, 0);
	ibcm_end_timewait(id, now);
	return 0;
}

void
ibcm_release(struct ibcm_id *id, uint64_t now)
{
	id->is_released = true;
	switch (id->state) {
	case IBCM_REQ_SENT:
		ibcm_reject_timeout(id);
		ibcm_info_end(id, IBCM_END_RELEASED, 0);
		ibcm_id_free(id);
		break;
	case IBCM_REQ_RCVD:
	case IBCM_REP_SENT:
	case IBCM_REP_RCVD:
		ibcm_reject_end(id, now, IBCM_REJ_CONSUMER, NULL);
		break;
	case IBCM_ESTABLISHED:
		ibcm_end_dreq(id, now, NULL);
		break;
	case IBCM_SIDR_REQ_RCVD:
		(void)ibcm_answer(id, now, IBCM_SIDR_REJECTED, 0, 0, NULL);
		break;
	case IBCM_DREQ_SENT:
		break; /* freed when the timer expires */
	case IBCM_TIMEWAIT:
		ibcm_id_released(id);
		break; /* freed when the timer expires */
	default:       /* IDLE, SIDR_REQ_SENT */
		ibcm_info_end(id, IBCM_END_RELEASED, 0);
		ibcm_id_free(id);
		break;
	}
}

void
ibcm_drop(struct ibcm_id *id)
{
	ibcm_info_end(id, IBCM_END_LINK, 0);
	ibcm_id_free(id);
}
