/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Listeners, found by service ID, and by the destination in the header of annex A11. A listener for
 * that destination is preferred to a listener for all addresses.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ibcm_priv.h"

static const uint8_t any_addr[16];

/* The low bits of the service ID are the port of rdma_cm, with the port space above them. */
static uint32_t
bucket_of(uint64_t service_id)
{
	return (uint32_t)(service_id ^ service_id >> 8 ^ service_id >> 16) % IBCM_SERVICES;
}

static bool
is_any(const struct ibcm_listen_conf *conf)
{
	return memcmp(conf->addr, any_addr, sizeof(any_addr)) == 0;
}

static bool
is_family(const struct ibcm_listen_conf *conf, const struct ibcm_ip *ip)
{
	if (conf->family == IBCM_NO_IP)
		return true;
	return ip != NULL && (conf->family == IBCM_IP_ANY || conf->family == ip->version);
}

struct ibcm_listener *
ibcm_listener_lookup(const struct ibcm *cm, uint64_t service_id, const struct ibcm_ip *ip)
{
	struct ibcm_listener *listener, *found = NULL;

	TAILQ_FOREACH(listener, &cm->listeners[bucket_of(service_id)], next) {
		const struct ibcm_listen_conf *conf = &listener->conf;

		if (conf->service_id != service_id || !is_family(conf, ip))
			continue;
		if (is_any(conf))
			found = listener;
		else if (ip != NULL && memcmp(conf->addr, ip->dst, sizeof(ip->dst)) == 0)
			return listener;
	}
	return found;
}

/* Whether a request exists that would match both listeners with the same preference. */
static bool
is_same(const struct ibcm_listen_conf *a, const struct ibcm_listen_conf *b)
{
	if (a->service_id != b->service_id || memcmp(a->addr, b->addr, sizeof(a->addr)) != 0)
		return false;
	return a->family == b->family || a->family < IBCM_IP_V4 || b->family < IBCM_IP_V4;
}

static bool
is_conf_valid(const struct ibcm_listen_conf *conf)
{
	switch (conf->family) {
	case IBCM_NO_IP:
	case IBCM_IP_ANY:
		return is_any(conf);
	case IBCM_IP_V4:
		return memcmp(conf->addr, any_addr, 12) == 0;
	case IBCM_IP_V6:
		return true;
	default:
		return false;
	}
}

int
ibcm_listen(struct ibcm *cm, const struct ibcm_listen_conf *conf, struct ibcm_listener **listener)
{
	struct ibcm_listeners *bucket = &cm->listeners[bucket_of(conf->service_id)];
	struct ibcm_listener *other, *l;

	if (!is_conf_valid(conf))
		return -EINVAL;
	TAILQ_FOREACH(other, bucket, next) {
		if (is_same(&other->conf, conf))
			return -EEXIST;
	}
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return -ENOMEM;
	l->cm = cm;
	l->conf = *conf;
	TAILQ_INIT(&l->pending);
	TAILQ_INSERT_TAIL(bucket, l, next);
	*listener = l;
	return 0;
}

void
ibcm_unlisten(struct ibcm_listener *listener)
{
	struct ibcm *cm = listener->cm;
	struct ibcm_id *id;

	while ((id = TAILQ_FIRST(&listener->pending)) != NULL) {
		TAILQ_REMOVE(&listener->pending, id, pending);
		id->listener = NULL;
	}
	TAILQ_REMOVE(&cm->listeners[bucket_of(listener->conf.service_id)], listener, next);
	free(listener);
}
