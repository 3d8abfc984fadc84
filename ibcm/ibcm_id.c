/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * IDs: the tables that find the ID of a MAD, timers, and actions on state changes. The tables grow
 * with the number of IDs; a table that can't grow makes lookups slower.
 *
 * Invariant: an ID is counted in ibcm_listener::nb_pending while it is in REQ_RCVD or SIDR_REQ_RCVD
 * and its listener exists, and in half_open[] while it is in one of these states or in REP_SENT.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ibcm_priv.h"

static uint64_t
mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

static uint64_t
hash_gid(const struct ibcm *cm, const uint8_t gid[16])
{
	uint64_t words[2];

	memcpy(words, gid, sizeof(words));
	return mix(mix(cm->secret, words[0]), words[1]);
}

static uint32_t
hash_peer(const struct ibcm *cm, const uint8_t gid[16], uint64_t ca_guid, uint32_t number)
{
	return (uint32_t)(mix(mix(hash_gid(cm, gid), ca_guid), number) >> 32);
}

static uint32_t
hash_id(const struct ibcm_id *id, uint32_t key)
{
	switch (key) {
	case IBCM_BY_ID:
		return id->local_id; /* a random number */
	case IBCM_BY_PEER:
		return hash_peer(id->cm, id->path.remote_gid, id->ca_guid, id->remote_id);
	default:
		return hash_peer(id->cm, id->path.remote_gid, id->ca_guid, id->attr.peer_qpn);
	}
}

static struct ibcm_id **
bucket_of(const struct ibcm_table *table, uint32_t hash)
{
	return &table->buckets[hash & table->mask];
}

/* Double the number of buckets. */
static void
table_grow(struct ibcm_table *table, uint32_t key)
{
	struct ibcm_table to = {.mask = table->mask * 2 + 1, .nb = table->nb};
	uint32_t i;

	to.buckets = calloc((size_t)to.mask + 1, sizeof(struct ibcm_id *));
	if (to.buckets == NULL)
		return;
	for (i = 0; i <= table->mask; i++) {
		while (table->buckets[i] != NULL) {
			struct ibcm_id *id = table->buckets[i], **head;

			table->buckets[i] = id->next[key];
			head = bucket_of(&to, hash_id(id, key));
			id->next[key] = *head;
			*head = id;
		}
	}
	free(table->buckets);
	*table = to;
}

void
ibcm_id_insert(struct ibcm_id *id, enum ibcm_key key)
{
	struct ibcm_table *table = &id->cm->tables[key];
	struct ibcm_id **head;

	if (table->nb > table->mask)
		table_grow(table, key);
	head = bucket_of(table, hash_id(id, key));
	id->next[key] = *head;
	*head = id;
	id->is_in[key] = true;
	table->nb++;
}

static void
table_remove(struct ibcm_id *id, uint32_t key)
{
	struct ibcm_table *table = &id->cm->tables[key];
	struct ibcm_id **at = bucket_of(table, hash_id(id, key));

	if (!id->is_in[key])
		return;
	while (*at != id)
		at = &(*at)->next[key];
	*at = id->next[key];
	id->is_in[key] = false;
	table->nb--;
}

struct ibcm_id *
ibcm_id_by_id(const struct ibcm *cm, uint32_t local_id)
{
	struct ibcm_id *id = *bucket_of(&cm->tables[IBCM_BY_ID], local_id);

	while (id != NULL && id->local_id != local_id)
		id = id->next[IBCM_BY_ID];
	return id;
}

static bool
is_peer(const struct ibcm_id *id, const uint8_t gid[16], uint64_t ca_guid)
{
	return id->ca_guid == ca_guid &&
			memcmp(id->path.remote_gid, gid, sizeof(id->path.remote_gid)) == 0;
}

struct ibcm_id *
ibcm_id_by_peer(const struct ibcm *cm, const struct ibcm_path *path, uint64_t ca_guid,
		uint32_t comm_id, bool is_sidr)
{
	struct ibcm_id *id = *bucket_of(&cm->tables[IBCM_BY_PEER],
			hash_peer(cm, path->remote_gid, ca_guid, comm_id));

	while (id != NULL &&
			!(id->remote_id == comm_id && id->is_sidr == is_sidr &&
					id->path.link == path->link &&
					is_peer(id, path->remote_gid, ca_guid)))
		id = id->next[IBCM_BY_PEER];
	return id;
}

struct ibcm_id *
ibcm_id_by_qpn(const struct ibcm *cm, const uint8_t gid[16], uint64_t ca_guid, uint32_t qpn)
{
	struct ibcm_id *id = *bucket_of(&cm->tables[IBCM_BY_QPN], hash_peer(cm, gid, ca_guid, qpn));

	while (id != NULL &&
			!(id->attr.peer_qpn == qpn && id->state != IBCM_TIMEWAIT &&
					is_peer(id, gid, ca_guid)))
		id = id->next[IBCM_BY_QPN];
	return id;
}

uint32_t *
ibcm_half_open(struct ibcm *cm, const uint8_t gid[16])
{
	return &cm->half_open[hash_gid(cm, gid) >> 32 & (IBCM_SOURCES - 1)];
}

void
ibcm_id_timer(struct ibcm_id *id, uint64_t deadline)
{
	ibcm_heap_set(&id->cm->timers, &id->timer, deadline);
}

void
ibcm_id_released(struct ibcm_id *id)
{
	if (!id->is_released || id->is_spare || id->state != IBCM_TIMEWAIT || id->attr.qpn != 0)
		return;
	id->is_spare = true;
	TAILQ_INSERT_TAIL(&id->cm->spare, id, spare);
}

struct ibcm_id *
ibcm_id_alloc(struct ibcm *cm, const struct ibcm_path *path, int *error)
{
	struct ibcm_id *id;

	*error = -ENOSPC;
	if (cm->nb_ids >= cm->conf.max_ids && !TAILQ_EMPTY(&cm->spare))
		ibcm_id_free(TAILQ_FIRST(&cm->spare));
	if (cm->nb_ids >= cm->conf.max_ids)
		return NULL;
	*error = -ENOMEM;
	id = ibcm_heap_reserve(&cm->timers, cm->nb_ids + 1) ? calloc(1, sizeof(*id)) : NULL;
	if (id == NULL)
		return NULL;
	id->cm = cm;
	id->path = *path;
	id->timer.deadline = IBCM_NEVER;
	id->tid = cm->conf.random(cm->conf.arg);
	do
		id->local_id = (uint32_t)cm->conf.random(cm->conf.arg);
	while (id->local_id == 0 || ibcm_id_by_id(cm, id->local_id) != NULL);
	ibcm_id_insert(id, IBCM_BY_ID);
	TAILQ_INSERT_TAIL(&cm->ids, id, all);
	cm->nb_ids++;
	return id;
}

void
ibcm_id_free(struct ibcm_id *id)
{
	struct ibcm *cm = id->cm;

	ibcm_id_state(id, IBCM_IDLE);
	ibcm_info_log(id);
	if (id->is_spare)
		TAILQ_REMOVE(&cm->spare, id, spare);
	TAILQ_REMOVE(&cm->ids, id, all);
	cm->nb_ids--;
	free(id);
}

static bool
is_pending(enum ibcm_state state)
{
	return state == IBCM_REQ_RCVD || state == IBCM_SIDR_REQ_RCVD;
}

void
ibcm_id_state(struct ibcm_id *id, enum ibcm_state state)
{
	uint32_t *half_open = ibcm_half_open(id->cm, id->path.remote_gid);
	enum ibcm_state from = id->state;
	uint32_t key;

	*half_open -= is_pending(id->state) || id->state == IBCM_REP_SENT;
	*half_open += is_pending(state) || state == IBCM_REP_SENT;
	if (id->listener != NULL && !is_pending(id->state)) {
		id->listener->nb_pending++;
		TAILQ_INSERT_TAIL(&id->listener->pending, id, pending);
	} else if (id->listener != NULL && !is_pending(state)) {
		id->listener->nb_pending--;
		TAILQ_REMOVE(&id->listener->pending, id, pending);
		id->listener = NULL;
	}
	id->state = state;
	if (from != state)
		ibcm_info_trace(id, from);
	if (state != IBCM_IDLE)
		return;
	ibcm_id_timer(id, IBCM_NEVER);
	for (key = 0; key < IBCM_NB_KEYS; key++)
		table_remove(id, key);
}
