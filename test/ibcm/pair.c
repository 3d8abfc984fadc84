/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* See pair.h. */

#include <string.h>

#include "../test.h"
#include "pair.h"

struct pair_hooks pair_hooks;

static void
side_send(void *arg, const struct ibcm_path *path, const uint8_t mad[IBCM_MAD_LEN])
{
	struct pair_side *side = arg;
	struct pair *pair = side->pair;
	struct pair_mad *entry = &pair->net[pair->nb_net];

	if (pair->nb_net == PAIR_MAX_NET) {
		pair->nb_lost++;
		return;
	}
	pair->nb_net++;
	memcpy(entry->mad, mad, IBCM_MAD_LEN);
	entry->path = *path;
	memcpy(entry->path.local_gid, path->remote_gid, sizeof(path->remote_gid));
	memcpy(entry->path.remote_gid, path->local_gid, sizeof(path->local_gid));
	entry->to = memcmp(path->remote_gid, pair->side[1].gid, sizeof(path->remote_gid)) == 0;
	if (path->link == 0)
		return;
	entry->to = side == &pair->side[0];
	memcpy(entry->path.local_gid, pair->side[entry->to].gid, sizeof(side->gid));
}

static void
side_event(void *arg, const struct ibcm_event *event)
{
	struct pair_side *side = arg;
	struct pair_event *to = &side->events[side->nb_events++ % PAIR_MAX_EVENTS];

	memset(to, 0, sizeof(*to));
	to->type = event->type;
	to->id = event->id;
	to->reason = event->reason;
	to->has_ip = event->ip != NULL;
	if (event->ip != NULL)
		to->ip = *event->ip;
	if (event->msg != NULL)
		to->msg = *event->msg;
	to->data_len = event->data_len;
	if (event->data_len != 0)
		memcpy(to->data, event->data, event->data_len);
	if (side->event != NULL)
		side->event(side, event);
}

static uint64_t
side_random(void *arg)
{
	struct pair_side *side = arg;

	side->random = side->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return side->random ^ side->random >> 32;
}

void
pair_open(struct pair *pair, uint32_t max_ids, uint32_t max_half_open)
{
	uint32_t i;

	memset(pair, 0, offsetof(struct pair, net));
	for (i = 0; i < RTE_DIM(pair->side); i++) {
		struct pair_side *side = &pair->side[i];
		const struct ibcm_conf conf = {
				.ca_guid = UINT64_C(0x0200000000000001) + i,
				.max_ids = max_ids,
				.max_half_open = max_half_open,
				.arg = side,
				.send = side_send,
				.event = side_event,
				.random = side_random,
				.trace = pair_hooks.trace,
				.log = pair_hooks.logs != NULL ? &pair_hooks.logs[i] : NULL,
		};

		side->pair = pair;
		side->random = i + 1;
		side->gid[10] = side->gid[11] = 0xff;
		side->gid[12] = 127;
		side->gid[15] = (uint8_t)(i + 1);
		if (ibcm_create(&conf, &side->cm) != 0)
			rte_panic("pair_open: no memory\n");
	}
}

void
pair_close(struct pair *pair)
{
	uint32_t i;

	for (i = 0; i < RTE_DIM(pair->side); i++)
		ibcm_destroy(pair->side[i].cm);
}

int
pair_listen(struct pair *pair, uint32_t side, uint32_t backlog)
{
	const struct ibcm_listen_conf conf = {
			.service_id = PAIR_SERVICE, .backlog = backlog, .arg = pair};

	return ibcm_listen(pair->side[side].cm, &conf, &pair->side[side].listener);
}

struct ibcm_qp_conf
pair_qp(uint32_t side)
{
	return (struct ibcm_qp_conf){
			.qpn = side != 0 ? 0x100000 + PAIR_QPN : PAIR_QPN,
			.psn = side != 0 ? 0xabcdef : 0x123456,
			.responder_resources = side != 0 ? 8 : 16,
			.initiator_depth = side != 0 ? 12 : 4,
			.rnr_retry_count = side != 0 ? 6 : 7,
			.has_srq = side != 0,
	};
}

struct ibcm_req_conf
pair_req(const struct pair *pair, uint32_t side)
{
	struct ibcm_req_conf conf = {
			.path = {.hop_limit = 64, .traffic_class = 0x20, .flow_label = 0x12345},
			.service_id = PAIR_SERVICE,
			.qp = pair_qp(side),
			.mtu = 3,
			.retry_count = 7,
			.ack_timeout = PAIR_ACK,
			.cm_timeout = PAIR_TIMEOUT,
			.max_cm_retries = PAIR_RETRIES,
	};

	memcpy(conf.path.local_gid, pair->side[side].gid, sizeof(conf.path.local_gid));
	memcpy(conf.path.remote_gid, pair->side[!side].gid, sizeof(conf.path.remote_gid));
	return conf;
}

int
pair_connect(struct pair *pair, uint32_t side, struct ibcm_id **id)
{
	struct ibcm_req_conf conf = pair_req(pair, side);

	return ibcm_connect(pair->side[side].cm, pair->side[side].now, &conf, id);
}

void
pair_drop(struct pair *pair, uint32_t at)
{
	pair->nb_net--;
	memmove(&pair->net[at], &pair->net[at + 1], (pair->nb_net - at) * sizeof(pair->net[0]));
}

void
pair_deliver(struct pair *pair, uint32_t at)
{
	struct pair_mad entry = pair->net[at];
	struct pair_side *side = &pair->side[entry.to];

	pair_drop(pair, at);
	ibcm_input(side->cm, side->now, &entry.path, entry.mad);
}

void
pair_deliver_all(struct pair *pair)
{
	while (pair->nb_net != 0)
		pair_deliver(pair, 0);
}

bool
pair_expire(struct pair *pair, uint32_t side)
{
	uint64_t next = ibcm_next(pair->side[side].cm);

	if (next == IBCM_NEVER)
		return false;
	pair->side[side].now = next;
	ibcm_timeout(pair->side[side].cm, next);
	return true;
}

struct ibcm_msg
pair_msg(const struct pair *pair, uint32_t at)
{
	struct ibcm_msg msg = {.type = 0};

	(void)ibcm_mad_decode(pair->net[at].mad, &msg);
	return msg;
}

const struct pair_event *
pair_last(const struct pair *pair, uint32_t side)
{
	static const struct pair_event none = {.type = (enum ibcm_event_type)UINT32_MAX};
	const struct pair_side *s = &pair->side[side];

	return s->nb_events != 0 ? &s->events[(s->nb_events - 1) % PAIR_MAX_EVENTS] : &none;
}

int
pair_request(struct pair *pair, struct ibcm_id **a, struct ibcm_id **b)
{
	int ret = pair_connect(pair, 0, a);

	if (ret != 0)
		return ret;
	pair_deliver_all(pair);
	*b = pair_last(pair, 1)->id;
	return 0;
}

int
pair_establish(struct pair *pair, struct ibcm_id *ids[2])
{
	const struct ibcm_qp_conf qp = pair_qp(1);
	int ret;

	ret = pair_request(pair, &ids[0], &ids[1]);
	if (ret != 0)
		return ret;
	ret = ibcm_accept(ids[1], pair->side[1].now, &qp, NULL);
	if (ret != 0)
		return ret;
	pair_deliver_all(pair);
	ret = ibcm_ready(ids[0], NULL);
	pair_deliver_all(pair);
	return ret == 0 && ibcm_state(ids[1]) != IBCM_ESTABLISHED ? -EIO : ret;
}
