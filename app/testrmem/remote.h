/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Two hosts: with --listen a program has the QPs b of all pairs, with --connect the QPs a. They
 * are connected by rdma_cm in the order of the pairs' ids (remote.c, or remote_none.c where
 * librdmacm is not installed). At the end the connecting host WRITEs a report for each pair, which
 * confirms success to the listening one (remote_end.c).
 */

#ifndef REMOTE_H
#define REMOTE_H

#include <rte_byteorder.h>

#include "testrmem.h"

#define REMOTE_PORT 7174

struct remote_mail;
struct rmem_cm_conn;

/** Work of the connecting host on a pair. */
struct remote_report {
	rte_be32_t magic; /**< REMOTE_REPORT when it is there. */
	rte_be32_t reserved;
	rte_be64_t ops;
	rte_be64_t bytes;
	rte_be64_t us; /**< How long it worked. */
};

#define REMOTE_REPORT 0x72657054 /* "repT" */

/** The other host of a pair. */
struct testrmem_remote {
	struct rmem_cm_conn *conn;
	struct remote_mail *mail;     /**< Messages of mode mw. */
	struct remote_report *report; /**< Of the connecting host, here. */
	struct rmem_mr *mr;           /**< Of the report. */
	struct testrmem_target peer;  /**< Target of the report at the listening host. */
	uint64_t watch_tsc;           /**< Time of the next check of the connection. */
	uint64_t probe_tsc;           /**< Time of the next test request. */
	bool is_probing;              /**< A test request is in flight. */
};

/* remote.c; all report errors */
/** Start as one of two hosts. */
int testrmem_remote_open(struct testrmem_session *session);
void testrmem_remote_close(struct testrmem_session *session);
/** Connect the QP of a pair, and get the targets of the other host. */
int testrmem_remote_connect(struct testrmem_pair *pair, struct testrmem_session *session);
/** End the connection. */
void testrmem_remote_disconnect(struct testrmem_pair *pair);
/**
 * Check the connection periodically: 0 or -errno. The pair is done when the connecting host has
 * ended. Called by the worker of the pair.
 */
int testrmem_remote_watch(struct testrmem_pair *pair);

/* remote_end.c */
/** Allocate the report; reports errors, and created objects are left to free. */
int testrmem_remote_make(struct testrmem_pair *pair);
/** Release it, after the QPs were destroyed. */
void testrmem_remote_free(struct testrmem_pair *pair);
/** rmem_poll_cq() without completions that are of this file, or come after the peer's report. */
int testrmem_remote_poll(
		struct testrmem_pair *pair, struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb);
/** Post a signaled request and wait for it: its status, or -errno with a message. */
int testrmem_remote_execute(struct testrmem_pair *pair, struct rmem_send_wr *wr);
/** Test the connection to the peer, periodically: 0 or -errno with a message. */
int testrmem_remote_probe(struct testrmem_pair *pair);
/** Send the report to the listening host. */
int testrmem_remote_report(struct testrmem_pair *pair);
/** Operations reported by the connecting host, UINT64_MAX before. */
uint64_t testrmem_remote_ops(const struct testrmem_pair *pair);
/** The connecting host has ended: the pair is done, and counts the reported work if needed. */
void testrmem_remote_ended(struct testrmem_pair *pair);
/** Listening host: check that both have counted the same. */
int testrmem_remote_check(struct testrmem_pair *pair);

/* remote_rdma.c */
/** Setup of the host that only has targets. */
int testrmem_passive_setup(struct testrmem_pair *pair);
int testrmem_passive_burst(struct testrmem_pair *pair, bool is_draining);

/*
 * engine_atomic.c, engine_send.c, engine_write.c, remote_mw.c, remote_rdma.c: modes of one host.
 * Modes fastreg and umr use those of mw, mode odp those of write.
 */
extern const struct testrmem_engine testrmem_listener_atomic;
extern const struct testrmem_engine testrmem_listener_fastreg;
extern const struct testrmem_engine testrmem_listener_inline;
extern const struct testrmem_engine testrmem_listener_mw;
extern const struct testrmem_engine testrmem_listener_odp;
extern const struct testrmem_engine testrmem_listener_read;
extern const struct testrmem_engine testrmem_listener_send;
extern const struct testrmem_engine testrmem_listener_umr;
extern const struct testrmem_engine testrmem_listener_write;
extern const struct testrmem_engine testrmem_connector_atomic;
extern const struct testrmem_engine testrmem_connector_inline;
extern const struct testrmem_engine testrmem_connector_mw;
extern const struct testrmem_engine testrmem_connector_read;
extern const struct testrmem_engine testrmem_connector_send;
extern const struct testrmem_engine testrmem_connector_write;

#endif /* REMOTE_H */
