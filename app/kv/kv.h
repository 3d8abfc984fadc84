/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Shared by the files of dpdk-rmem-kv. In one process the main lcore is the server, and each worker
 * lcore is a client with a connection of its own. With --listen the process is the server alone,
 * with --connect each lcore is a client. See doc/kv.md.
 *
 * Inside: dpdk-rmem-kv: server, clients, their messages and connections.
 * Callers: no other folder: a program.
 * Not known here: drivers, and private headers of the libraries.
 */

#ifndef KV_H
#define KV_H

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

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
/** With --listen: keys for the checks of new clients, which get them in turn. */
#define KV_CHECK_KEYS 64
/** Port of --listen. */
#define KV_PORT 7174

#define KV_EXIT_START 1 /**< Exit status: invalid options, or it could not start. */
#define KV_EXIT_CHECK 2 /**< Exit status: a check failed, or a value was wrong. */

#define KV_ERR(format, ...) fprintf(stderr, "rmem-kv: " format "\n", __VA_ARGS__)

struct kv_conf {
	const char *dev; /**< Name, or name,args. */
	const char *seal;
	const char *listen;           /**< Address of the server; NULL without --listen. */
	const char *connect;          /**< Address to connect to; NULL without --connect. */
	struct sockaddr_storage addr; /**< Either one, with the port. */
	uint64_t clients;             /**< Maximum number of clients connected to --listen. */
	uint64_t wait_s;              /**< Time that a client waits for its server, in seconds. */
	uint64_t keys;                /**< Of the values, which all clients share. */
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

/**
 * State of a connection. Each change but that to CLOSED is a compare-and-exchange:
 *
 *   OFFERED -> MADE     connector: both QPs are connected
 *   MADE    -> UP       server: its receives are posted
 *   UP      -> LOST     either, the first one that detects the end
 *   LOST    -> OFFERED  server: it has no lease of the lost connection, and a new QP
 *   OFFERED -> LOST     connector: it failed to connect the QP
 *   any     -> CLOSED   connector: it has ended; server: it has no QP to offer
 *
 * The connector is the client's lcore, or with --listen the thread that accepts connections.
 *
 * Invariant: the QP of the server, its CQ and its lease context are used by the connector in state
 * OFFERED, and by the lcore of the server in all other states.
 */
enum kv_conn_state {
	KV_LOST,
	KV_OFFERED,
	KV_MADE,
	KV_UP,
	KV_CLOSED,
};

/** A connection. Client and server share it if they are in one process. */
struct kv_conn {
	int state;                 /**< One of enum kv_conn_state; atomic. Not of --connect. */
	uint32_t number;           /**< Selects the key of the client's checks; 0: none so far. */
	struct rmem_qp *server_qp; /**< NULL with --connect. */
	struct kv_seal_with qps;   /**< Numbers of both QPs. Written by the connector. */
	struct rmem_cm_conn *cm;   /**< NULL in one process, or if not connected. */
	uint64_t check_tsc;        /**< Time of the next check of cm, with --connect. */
};

static inline int
kv_conn_state(const struct kv_conn *conn)
{
	return __atomic_load_n(&conn->state, __ATOMIC_ACQUIRE);
}

/** Change the state; no effect if it is not from. */
static inline void
kv_conn_move(struct kv_conn *conn, int from, int to)
{
	__atomic_compare_exchange_n(
			&conn->state, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static inline void
kv_conn_set_closed(struct kv_conn *conn)
{
	__atomic_store_n(&conn->state, KV_CLOSED, __ATOMIC_RELEASE);
}

struct kv_listener;
struct kv_client;
struct kv_server;

/* conn.c */
/**
 * Create a QP, and a CQ for both of its queues. That of a client permits RDMA WRITE, with which the
 * server tests the connection, but no MR does. On failure destroy releases the created objects.
 */
int kv_qp_create(struct rmem_pd *pd, uint32_t access, struct rmem_cq **cq, struct rmem_qp **qp);
/** Destroy both, and set them to NULL. */
void kv_qp_destroy(struct rmem_cq **cq, struct rmem_qp **qp);
/** Client: connect its QP, in RESET, to a QP that the server offers. Reports errors. */
int kv_conn_connect(const struct kv_conf *conf, struct kv_conn *conn, struct rmem_qp *qp);
/** Client: whether the server is still there. */
bool kv_conn_is_up(const struct kv_conf *conf, struct kv_conn *conn);
/** Client: report that the connection is lost. */
void kv_conn_lose(const struct kv_conf *conf, struct kv_conn *conn);
/** Client: close the connection; it does not connect again. */
void kv_conn_close(const struct kv_conf *conf, struct kv_conn *conn);

/* conn_cm.c, or conn_none.c without librdmacm; all report errors */
int kv_cm_connect(const struct kv_conf *conf, struct kv_conn *conn, struct rmem_qp *qp);
bool kv_cm_is_up(struct kv_conn *conn);
void kv_cm_close(struct kv_conn *conn);
/** Accept clients for the connections, in a thread, until Ctrl-C. */
int kv_listen(const struct kv_conf *conf, struct kv_conn *conns, uint32_t nb_conns,
		struct kv_listener **listener);
/** Wait for the thread, and release it: 0, or the -errno of the thread. */
int kv_unlisten(struct kv_listener *listener);

/* server.c */
int kv_server_open(const struct kv_conf *conf, struct rmem_dev *dev, struct kv_conn *conns,
		uint32_t nb_conns, struct kv_server **server);
/** Serve until all connections are closed. */
void kv_server_run(struct kv_server *server);
/** Print the counts if it has run, and release all objects; 0, or -errno if one is in use. */
int kv_server_close(struct kv_server *server);

/* client.c */
int kv_client_open(const struct kv_conf *conf, struct rmem_dev *dev, struct kv_conn *conn,
		uint32_t number, struct kv_client **client);
int kv_client_close(struct kv_client *client);

/* check.c */
/** Make the checks, then GET values: 0 when each check held, or the exit status. By its lcore. */
int kv_client_run(void *client);

/* option.c */
int kv_option_parse(int argc, char **argv, struct kv_conf *conf);
void kv_option_usage(const char *program);
#endif /* KV_H */
