/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Sending messages: once, kept to answer duplicates, or repeated until there is an answer. */

#include "ibcm_priv.h"

/*
 * Limits of the exponent of a timeout: a shorter one would flood the peer, a longer one would hold
 * memory for minutes.
 */
#define MIN_WAIT 12 /* 16.8 ms */
#define MAX_WAIT 24 /* 68.7 s, which the kernel requests with an MRA */

uint64_t
ibcm_wait_ns(uint32_t n)
{
	if (n < MIN_WAIT)
		n = MIN_WAIT;
	return UINT64_C(4096) << (n > MAX_WAIT ? MAX_WAIT : n);
}

struct ibcm_msg
ibcm_msg_of(const struct ibcm_id *id, enum ibcm_type type)
{
	return (struct ibcm_msg){
			.type = type,
			.tid = id->tid,
			.local_id = id->local_id,
			.remote_id = id->remote_id,
			.ca_guid = id->cm->conf.ca_guid,
	};
}

void
ibcm_send(struct ibcm *cm, const struct ibcm_path *path, const struct ibcm_msg *msg)
{
	uint8_t mad[IBCM_MAD_LEN];

	if (!ibcm_mad_encode(msg, mad))
		return; /* not reached: callers have checked the private data */
	cm->log->stats.tx[msg->type - IBCM_REQ]++;
	if (msg->type == IBCM_REJ)
		ibcm_info_count_rej(cm->log->stats.rej_tx, msg->reason);
	cm->conf.send(cm->conf.arg, path, mad);
}

void
ibcm_send_again(struct ibcm_id *id)
{
	struct ibcm *cm = id->cm;

	cm->log->stats.tx[id->mad_type - IBCM_REQ]++;
	if (id->mad_type == IBCM_REJ)
		ibcm_info_count_rej(cm->log->stats.rej_tx, id->end_reason);
	cm->conf.send(cm->conf.arg, &id->path, id->mad);
}

void
ibcm_send_keep(struct ibcm_id *id, const struct ibcm_msg *msg)
{
	id->mad_type = 0;
	if (!ibcm_mad_encode(msg, id->mad))
		return; /* not reached: see ibcm_send() */
	id->mad_type = msg->type;
	ibcm_send_again(id);
}

void
ibcm_send_until(struct ibcm_id *id, uint64_t now, const struct ibcm_msg *msg)
{
	id->has_mra = false;
	id->wait = id->interval;
	id->retries = id->max_retries;
	ibcm_id_timer(id, now + id->wait);
	ibcm_send_keep(id, msg);
}

void
ibcm_send_sidr_rep(struct ibcm *cm, const struct ibcm_path *path, const struct ibcm_msg *to,
		enum ibcm_sidr_status status)
{
	const struct ibcm_msg rep = {
			.type = IBCM_SIDR_REP,
			.tid = to->tid,
			.local_id = to->local_id,
			.service_id = to->service_id,
			.status = (uint8_t)status,
	};

	ibcm_send(cm, path, &rep);
}
