/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Create and destroy an engine, and query its IDs. */

#include <errno.h>
#include <stdlib.h>

#include "ibcm_priv.h"

#define MIN_BUCKETS 64

int
ibcm_create(const struct ibcm_conf *conf, struct ibcm **out)
{
	struct ibcm *cm;
	uint32_t key;

	if (conf->max_ids == 0 || conf->max_half_open == 0 || conf->send == NULL ||
			conf->event == NULL || conf->random == NULL)
		return -EINVAL;
	cm = calloc(1, sizeof(*cm));
	if (cm == NULL)
		return -ENOMEM;
	cm->conf = *conf;
	cm->log = conf->log != NULL ? conf->log : &cm->own_log;
	cm->secret = conf->random(conf->arg);
	for (key = 0; key < IBCM_SERVICES; key++)
		TAILQ_INIT(&cm->listeners[key]);
	TAILQ_INIT(&cm->ids);
	TAILQ_INIT(&cm->spare);
	for (key = 0; key < IBCM_NB_KEYS; key++) {
		cm->tables[key].buckets = calloc(MIN_BUCKETS, sizeof(struct ibcm_id *));
		cm->tables[key].mask = MIN_BUCKETS - 1;
		if (cm->tables[key].buckets == NULL) {
			ibcm_destroy(cm);
			return -ENOMEM;
		}
	}
	*out = cm;
	return 0;
}

void
ibcm_destroy(struct ibcm *cm)
{
	struct ibcm_listener *listener;
	struct ibcm_id *id;
	uint32_t key;

	while ((id = TAILQ_FIRST(&cm->ids)) != NULL) {
		ibcm_info_end(id, IBCM_END_DESTROYED, 0);
		ibcm_id_free(id);
	}
	for (key = 0; key < IBCM_SERVICES; key++) {
		while ((listener = TAILQ_FIRST(&cm->listeners[key])) != NULL) {
			TAILQ_REMOVE(&cm->listeners[key], listener, next);
			free(listener);
		}
	}
	for (key = 0; key < IBCM_NB_KEYS; key++)
		free(cm->tables[key].buckets);
	ibcm_heap_free(&cm->timers);
	free(cm);
}

enum ibcm_state
ibcm_state(const struct ibcm_id *id)
{
	return id->state;
}

const char *
ibcm_state_name(enum ibcm_state state)
{
	static const char *const names[IBCM_STATE_END] = {"IDLE", "REQ_SENT", "REQ_RCVD",
			"REP_SENT", "REP_RCVD", "ESTABLISHED", "DREQ_SENT", "TIMEWAIT",
			"SIDR_REQ_SENT", "SIDR_REQ_RCVD"};

	return state < IBCM_STATE_END ? names[state] : "?";
}

void *
ibcm_arg(const struct ibcm_id *id)
{
	return id->arg;
}

void
ibcm_arg_set(struct ibcm_id *id, void *arg)
{
	id->arg = arg;
}

const struct ibcm_path *
ibcm_path(const struct ibcm_id *id)
{
	return &id->path;
}

void
ibcm_link_set(struct ibcm_id *id, uint64_t link)
{
	id->path.link = link;
}

void
ibcm_qp_attr(const struct ibcm_id *id, struct ibcm_qp_attr *attr)
{
	*attr = id->attr;
}

uint32_t
ibcm_nb_ids(const struct ibcm *cm)
{
	return cm->nb_ids;
}

uint32_t
ibcm_nb_in(const struct ibcm *cm, enum ibcm_state state)
{
	const struct ibcm_id *id;
	uint32_t nb = 0;

	TAILQ_FOREACH(id, &cm->ids, all)
		nb += id->state == state;
	return nb;
}

const struct ibcm_stats *
ibcm_stats(const struct ibcm *cm)
{
	return &cm->log->stats;
}
