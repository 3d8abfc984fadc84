/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Shared by the files of dpdk-rmem-kv. The main lcore is the server, each worker lcore is a
 * client with a connection of its own. See doc/kv.md.
 */

#ifndef KV_H
#define KV_H

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <rte_errno.h>

#include <rmem.h>
#include <rmem_lease.h>

#include "wire.h"

/** Maximum number of requests in flight of a client. */
#define KV_BURST 32
/** Receives that the server has posted for a client: a burst, and one of KV_DONE before it. */
#define KV_RECVS (2 * KV_BURST)
/** Leases that a client has at most. */
#define KV_LEASES 128
/** Requests of one side in its send queue. */
#define KV_SENDS (4 * KV_LEASES)

#define KV_ERR(format, ...) fprintf(stderr, "rmem-kv: " format "\n", __VA_ARGS__)

struct kv_conf {
	const char *dev; /**< Name, or name,args. */
	const char *seal;
	uint64_t keys; /**< Of the values, which all clients share. */
	uint64_t value_size;
	uint64_t gets; /**< Of each client; 0 for no limit. */
	uint64_t lease_ms;
	uint32_t backend; /**< One of enum rmem_lease_backend. */
	bool is_help;
	const volatile sig_atomic_t *is_interrupted; /**< SIGINT or SIGTERM was received. */
	uint8_t seal_key[RMEM_LEASE_SEAL_KEY_SIZE];
};

static inline bool
kv_is_interrupted(const struct kv_conf *conf)
{
	return *conf->is_interrupted != 0;
}

/** Where a connection is. */
enum kv_conn_state {
	KV_LOST,  /**< Not connected, or not any more. Set by the server. */
	KV_ASKED, /**< The client's QP is in RESET, and requests a connection. Set by the client. */
	KV_UP,    /**< The server's QP is connected. By the server. */
	KV_CLOSED, /**< Permanently closed. Set by either. */
};

/**
 * A connection. Each side knows this much of the other; between hosts, librdmacm or a TCP
 * connection has it.
 */
struct kv_conn {
	struct rmem_qp *server_qp;
	struct rmem_qp *client_qp;
	int state; /**< One of enum kv_conn_state; atomic. */
};

struct kv_client;
struct kv_server;

/* conn.c */
/** Create a QP, and a CQ for all that it does. On failure what was made stays for destroy. */
int kv_qp_create(struct rmem_dev *dev, struct rmem_pd *pd, uint32_t access, struct rmem_cq **cq,
		struct rmem_qp **qp);
void kv_qp_destroy(struct rmem_cq *cq, struct rmem_qp *qp);
/** Connect a QP that is in RESET to its peer. */
int kv_qp_connect(struct rmem_qp *qp, struct rmem_qp *peer);

static inline struct kv_seal_with
kv_seal_with(const struct kv_conn *conn)
{
	return (struct kv_seal_with){
			.server_qp = rte_cpu_to_be_32(conn->server_qp->qp_num),
			.client_qp = rte_cpu_to_be_32(conn->client_qp->qp_num),
	};
}

/* server.c */
int kv_server_open(const struct kv_conf *conf, struct rmem_dev *dev, struct kv_conn *conns,
		uint32_t nb_conns, struct kv_server **server);
/** Serve until all connections are closed. */
void kv_server_run(struct kv_server *server);
/** Print the counts if it has run, and release all; 0, or -errno of what is still in use. */
int kv_server_close(struct kv_server *server);

/* client.c */
int kv_client_open(const struct kv_conf *conf, struct rmem_dev *dev, struct kv_conn *conn,
		uint32_t number, struct kv_client **client);
int kv_client_close(struct kv_client *client);

/* check.c */
/** Make the checks, then GET values: 0 when each check held, or -errno. By a worker lcore. */
int kv_client_run(void *client);

/* option.c */
int kv_option_parse(int argc, char **argv, struct kv_conf *conf);
void kv_option_usage(const char *program);
#endif /* KV_H */
