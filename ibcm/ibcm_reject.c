/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * REJ for an ID that ends, for an ID that times out, and for messages that belong to no ID.
 * ibcm_input.c chooses the reason for messages of a peer; in ibcm_reject() the program does.
 */

#include "ibcm_priv.h"

/* Set the CA GUID, by which a peer finds its ID if it does not know the comm ID of this side. */
static void
set_guid(struct ibcm_msg *rej)
{
	uint32_t i;

	rej->ari_len = sizeof(rej->ca_guid);
	for (i = 0; i < rej->ari_len; i++)
		rej->ari[i] = (uint8_t)(rej->ca_guid >> (56 - 8 * i));
}

void
ibcm_reject_end(struct ibcm_id *id, uint64_t now, uint16_t reason, const struct ibcm_data *data)
{
	struct ibcm_msg rej = ibcm_msg_of(id, IBCM_REJ);

	rej.subject = IBCM_OF_OTHER;
	if (id->state == IBCM_REQ_RCVD)
		rej.subject = IBCM_OF_REQ;
	else if (id->state == IBCM_REP_RCVD)
		rej.subject = IBCM_OF_REP;
	rej.reason = reason;
	if (reason == IBCM_REJ_TIMEOUT)
		set_guid(&rej);
	if (data != NULL) {
		rej.data = data->data;
		rej.data_len = data->len;
	}
	ibcm_info_end(id, IBCM_END_REJ, reason);
	ibcm_send_keep(id, &rej);
	ibcm_end_timewait(id, now);
}

void
ibcm_reject_timeout(struct ibcm_id *id)
{
	struct ibcm_msg rej = ibcm_msg_of(id, IBCM_REJ);

	rej.subject = IBCM_OF_OTHER;
	rej.reason = IBCM_REJ_TIMEOUT;
	set_guid(&rej);
	ibcm_send(id->cm, &id->path, &rej);
}

void
ibcm_reject_to(struct ibcm *cm, const struct ibcm_path *path, const struct ibcm_msg *to,
		uint16_t reason)
{
	const struct ibcm_msg rej = {
			.type = IBCM_REJ,
			.tid = to->tid,
			.local_id = to->remote_id, /* 0 for a REQ */
			.remote_id = to->local_id,
			.subject = to->type == IBCM_REQ ? IBCM_OF_REQ : IBCM_OF_REP,
			.reason = reason,
	};

	ibcm_send(cm, path, &rej);
}

void
ibcm_reject_again(const struct ibcm_id *id, enum ibcm_subject subject)
{
	struct ibcm_msg rej;

	if (!ibcm_mad_decode(id->mad, &rej))
		return; /* not reached */
	rej.subject = (uint8_t)subject;
	ibcm_send(id->cm, &id->path, &rej);
}
