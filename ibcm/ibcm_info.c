/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Reports of IDs: existing IDs, recently ended IDs, and changes of state. */

#include <string.h>

#include "ibcm_priv.h"

static void
info_get(const struct ibcm_id *id, struct ibcm_info *info)
{
	*info = (struct ibcm_info){
			.state = id->state,
			.end = id->end,
			.reason = id->end_reason,
			.is_passive = id->is_passive,
			.is_sidr = id->is_sidr,
			.local_id = id->local_id,
			.remote_id = id->remote_id,
			.qpn = id->attr.qpn,
			.peer_qpn = id->attr.peer_qpn,
			.retries = id->nb_retries,
			.service_id = id->service_id,
	};
	memcpy(info->local_gid, id->path.local_gid, sizeof(info->local_gid));
	memcpy(info->remote_gid, id->path.remote_gid, sizeof(info->remote_gid));
}

void
ibcm_info_end(struct ibcm_id *id, enum ibcm_end end, uint16_t reason)
{
	if (id->end != IBCM_END_NONE)
		return;
	id->end = end;
	id->end_reason = reason;
}

void
ibcm_info_trace(const struct ibcm_id *id, enum ibcm_state from)
{
	const struct ibcm_conf *conf = &id->cm->conf;
	struct ibcm_info info;

	if (conf->trace == NULL)
		return;
	info_get(id, &info);
	conf->trace(conf->arg, &info, from);
}

void
ibcm_info_log(const struct ibcm_id *id)
{
	struct ibcm_log *log = id->cm->log;

	info_get(id, &log->ended[log->nb_ended++ % IBCM_LOG_LEN]);
}

void
ibcm_info_count_rej(uint64_t counters[IBCM_NB_REASONS], uint16_t reason)
{
	counters[reason < IBCM_NB_REASONS ? reason : 0]++;
}

void
ibcm_visit(const struct ibcm *cm, ibcm_visit_t visit, void *arg)
{
	const struct ibcm_id *id;
	struct ibcm_info info;

	TAILQ_FOREACH(id, &cm->ids, all) {
		info_get(id, &info);
		visit(arg, &info);
	}
}

void
ibcm_log_visit(const struct ibcm_log *log, ibcm_visit_t visit, void *arg)
{
	uint64_t i = log->nb_ended > IBCM_LOG_LEN ? log->nb_ended - IBCM_LOG_LEN : 0;

	for (; i < log->nb_ended; i++)
		visit(arg, &log->ended[i % IBCM_LOG_LEN]);
}

const char *
ibcm_end_name(enum ibcm_end end)
{
	static const char *const names[IBCM_END_END] = {
			[IBCM_END_NONE] = "",
			[IBCM_END_REJ] = "rejected",
			[IBCM_END_PEER_REJ] = "rejected by peer",
			[IBCM_END_NO_ANSWER] = "no answer",
			[IBCM_END_DREQ] = "disconnected",
			[IBCM_END_PEER_DREQ] = "disconnected by peer",
			[IBCM_END_STALE] = "peer restarted",
			[IBCM_END_RELEASED] = "released",
			[IBCM_END_SIDR] = "answered",
			[IBCM_END_LINK] = "link ended",
			[IBCM_END_DESTROYED] = "destroyed",
	};

	return end < IBCM_END_END ? names[end] : "?";
}
