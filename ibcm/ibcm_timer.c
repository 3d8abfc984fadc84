/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Timeouts: send again, end, or leave time-wait. */

#include "ibcm_priv.h"

uint64_t
ibcm_next(const struct ibcm *cm)
{
	const struct ibcm_timer *first = ibcm_heap_first(&cm->timers);

	return first != NULL ? first->deadline : IBCM_NEVER;
}

/* End an ID whose last message has no answer after all retries. */
static void
give_up(struct ibcm_id *id, uint64_t now)
{
	id->cm->log->stats.timeouts[id->mad_type - IBCM_REQ]++;
	ibcm_info_end(id, id->state == IBCM_DREQ_SENT ? IBCM_END_DREQ : IBCM_END_NO_ANSWER, 0);
	switch (id->state) {
	case IBCM_REQ_SENT:
		ibcm_reject_timeout(id);
		ibcm_end_idle(id, IBCM_EVENT_UNREACHABLE, NULL, 0);
		break;
	case IBCM_REP_SENT:
		ibcm_reject_timeout(id);
		ibcm_end_timewait(id, now);
		ibcm_end_event(id, IBCM_EVENT_UNREACHABLE, NULL, 0);
		break;
	case IBCM_DREQ_SENT:
		ibcm_end_timewait(id, now);
		ibcm_end_event(id, IBCM_EVENT_DISCONNECTED, NULL, 0);
		break;
	default: /* SIDR_REQ_SENT */
		ibcm_end_idle(id, IBCM_EVENT_UNREACHABLE, NULL, 0);
		break;
	}
}

void
ibcm_timeout(struct ibcm *cm, uint64_t now)
{
	struct ibcm_timer *first;
	struct ibcm_id *id;

	while ((first = ibcm_heap_first(&cm->timers)) != NULL && first->deadline <= now) {
		id = ibcm_id_of_timer(first);
		if (id->state == IBCM_TIMEWAIT) {
			ibcm_end_idle(id, IBCM_EVENT_TIMEWAIT_EXIT, NULL, 0);
		} else if (id->retries == 0) {
			give_up(id, now);
		} else {
			id->retries--;
			id->nb_retries++;
			cm->log->stats.retries[id->mad_type - IBCM_REQ]++;
			ibcm_id_timer(id, now + id->wait);
			ibcm_send_again(id);
		}
	}
}
