/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* State of the server, used only by the main lcore. */

#ifndef SERVER_H
#define SERVER_H

#include <sys/queue.h>

#include <rte_hash.h>

#include <rmem_pool.h>

#include "kv.h"

/* A lease of a value. */
struct grant {
	LIST_ENTRY(grant) entry; /* in the list of the value, or of unused grants */
	struct rmem_lease *lease;
	struct item *item;
	struct peer *peer;
	rte_be32_t tag; /* of the request */
};

LIST_HEAD(grants, grant);

/* Head of a buffer of the pool. A value follows its request. */
struct item {
	struct grants grants;
	struct peer *putter; /* client that replaced it, or NULL */
	uint32_t put_conn;   /* connection and request of that PUT */
	rte_be32_t put_tag;
	uint32_t nb_revoked;
	uint32_t length; /* bytes of the value */
	struct kv_request request;
};

/* The server's side of a connection. */
struct peer {
	struct kv_server *server;
	struct kv_conn *conn;
	struct rmem_cq *cq;
	struct rmem_qp *qp;
	struct rmem_lease_ctx *ctx; /* NULL: there is no QP */
	uint32_t nb_conns;          /* number of connections so far */
	uint64_t probe_tsc;         /* time of the next test of the connection */
	uint32_t nb_gets, nb_answers;
	struct rmem_lease_req gets[KV_BURST]; /* to grant */
	struct kv_answer answers[KV_BURST];   /* to post */
	struct item *recvs[KV_RECVS];         /* posted, by their wr_id */
	struct grants spare;
	struct grant grants[KV_LEASES];
};

struct kv_server {
	const struct kv_conf *conf;
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_pool *pool;
	struct rte_hash *hash; /* key as in the request -> struct item */
	struct rmem_lease_sealer *sealer;
	struct peer *peers;
	uint32_t nb_peers;
	struct rmem_lease_stats sum; /* of the lease contexts that were destroyed */
	uint64_t nb_puts;
	bool has_run;
};

/* Create the QP, its CQ and its lease context, with the QP in RESET. */
int peer_open_qp(struct peer *peer);
/* End all leases, so that the client can't reach any value, and destroy the QP. */
int peer_close_qp(struct peer *peer);

#endif /* SERVER_H */
