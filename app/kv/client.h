/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * State and calls of a client, used only by its lcore. Calls return 0, -errno, or
 * the status (RMEM_WC_*, above 0) of the first request that failed: the connection is lost then.
 */

#ifndef CLIENT_H
#define CLIENT_H

#include "kv.h"

struct kv_client {
	const struct kv_conf *conf;
	struct kv_conn *conn;
	uint32_t number; /* from 1 */
	struct rmem_pd *pd;
	struct rmem_cq *cq;
	struct rmem_qp *qp;
	struct rmem_mr *mr;         /* of the following */
	struct kv_answer *answers;  /* KV_BURST */
	uint8_t *values;            /* KV_BURST: what READs fetch */
	struct kv_request *put;     /* followed by a value */
	uint32_t arrived[KV_BURST]; /* indexes of the answers, in order of arrival */
	struct rmem_lease_desc desc[KV_BURST];
	uint64_t half_time[KV_BURST]; /* TSC when half of the lease is over */
	uint64_t probe_tsc;           /* when to test the connection; 0: not known yet */
	bool is_probing;              /* a test has not completed */
	struct rmem_lease_sealer *sealer;
	uint64_t nb_gets, nb_released, nb_left, nb_lost, nb_stored, cycles;
};

/* client.c */
/** Get a connection. Reports errors. */
int client_connect(struct kv_client *client);
/** Get another connection, with another QP. Reports errors. */
int client_reconnect(struct kv_client *client);
/** Store a value of this version; returns how many leases of the previous one were revoked. */
int client_put(struct kv_client *client, uint64_t key, uint32_t version, uint32_t *nb_revoked);
/** Get leases of n values, into desc. */
int client_get(struct kv_client *client, const uint64_t *keys, uint32_t n);
/** READ the n values of desc. */
int client_read(struct kv_client *client, uint32_t n);
/** Release n leases; those that end soon are left to expire. */
int client_release(struct kv_client *client, uint32_t n);
/** Whether value i of the client is the value of this key and version. */
bool client_has(const struct kv_client *client, uint32_t i, uint64_t key, uint32_t version);
/** Unpack a descriptor from an answer, and verify it. */
int client_open_desc(const struct kv_client *client, const struct kv_answer *answer,
		struct rmem_lease_desc *desc);

#endif /* CLIENT_H */
