/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Ends of an ID: disconnect, time-wait and IDLE, and the events that report them. */

#include <string.h>

#include "ibcm_priv.h"

/* Limit of the exponent of the time-wait, which the peer chooses: 8.6 s. */
#define MAX_TIMEWAIT 21

void
ibcm_end_event(struct ibcm_id *id, enum ibcm_event_type type, const struct ibcm_msg *msg,
		uint16_t reason)
{
	const struct ibcm_event event = {
			.type = type,
			.id = id,
			.msg = msg,
			.data = msg != NULL ? msg->data : NULL,
			.data_len = msg != NULL ? msg->data_len : 0,
			.reason = reason,
	};

	if (!id->is_released)
		id->cm->conf.event(id->cm->conf.arg, &event);
}

void
ibcm_end_timewait(struct ibcm_id *id, uint64_t now)
{
	uint32_t n = id->attr.ack_timeout;

	ibcm_id_state(id, IBCM_TIMEWAIT);
	ibcm_id_timer(id, now + ibcm_wait_ns(n < MAX_TIMEWAIT ? n : MAX_TIMEWAIT));
	ibcm_id_released(id);
}

void
ibcm_end_idle(struct ibcm_id *id, enum ibcm_event_type type, const struct ibcm_msg *msg,
		uint16_t reason)
{
	if (id->is_released) {
		ibcm_id_free(id);
		return;
	}
	ibcm_id_state(id, IBCM_IDLE);
	ibcm_end_event(id, type, msg, reason);
}

void
ibcm_end_dreq(struct ibcm_id *id, uint64_t now, const struct ibcm_data *data)
{
	struct ibcm_msg dreq = ibcm_msg_of(id, IBCM_DREQ);

	dreq.qpn = id->attr.peer_qpn;
	if (data != NULL) {
		dreq.data = data->data;
		dreq.data_len = data->len;
	}
	ibcm_id_state(id, IBCM_DREQ_SENT);
	ibcm_send_until(id, now, &dreq);
}
