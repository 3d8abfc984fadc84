/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Objects of the engine, for its files. Each file only calls files after it in this list:
 * ibcm_input.c, ibcm_timer.c and ibcm_call.c; ibcm_reject.c; ibcm_end.c; ibcm_send.c;
 * ibcm_listener.c; ibcm_id.c; ibcm_info.c; ibcm_mad.c.
 */

#ifndef IBCM_PRIV_H
#define IBCM_PRIV_H

#include <stddef.h>
#include <sys/queue.h>

#include "ibcm.h"

#define IBCM_SOURCES  1024 /* counters of half-open requests, hashed by source */
#define IBCM_SERVICES 256  /* lists of listeners, hashed by service ID */

/* Keys by which the ID of a MAD is found. */
enum ibcm_key {
	IBCM_BY_ID,   /* comm ID or request ID of this side */
	IBCM_BY_PEER, /* received requests: GID, CA GUID and comm or request ID of the peer */
	IBCM_BY_QPN,  /* GID, CA GUID and QP number of the peer */
	IBCM_NB_KEYS,
};

struct ibcm_id {
	struct ibcm *cm;
	void *arg;
	struct ibcm_listener *listener; /* while the ID is counted in its backlog */
	TAILQ_ENTRY(ibcm_id) pending;   /* in ibcm_listener::pending while listener is set */
	enum ibcm_state state;
	bool is_passive;
	bool is_sidr;
	bool is_released;
	bool has_mra; /* the peer has delayed its answer */
	uint32_t local_id;
	uint32_t remote_id;
	uint64_t tid;
	uint64_t service_id;
	uint64_t ca_guid; /* CA GUID of the peer */
	enum ibcm_end end;
	uint16_t end_reason;
	uint32_t nb_retries; /* total */
	struct ibcm_path path;
	struct ibcm_qp_attr attr;

	struct ibcm_timer timer;
	uint64_t interval; /* timeout of messages of this ID */
	uint64_t wait;     /* timeout of this message; longer after an MRA */
	uint8_t retries;   /* retries left */
	uint8_t max_retries;

	/*
	 * The last message, if it may be sent again: after a timeout, or to answer a duplicate.
	 */
	uint8_t mad[IBCM_MAD_LEN];
	uint32_t mad_type; /* 0: none */

	bool is_in[IBCM_NB_KEYS];
	struct ibcm_id *next[IBCM_NB_KEYS];
	TAILQ_ENTRY(ibcm_id) all; /* in ibcm::ids until it is freed */
	bool is_spare;            /* in ibcm::spare */
	TAILQ_ENTRY(ibcm_id) spare;
};

struct ibcm_listener {
	struct ibcm *cm;
	struct ibcm_listen_conf conf;
	uint32_t nb_pending;
	TAILQ_HEAD(ibcm_pending, ibcm_id) pending;
	TAILQ_ENTRY(ibcm_listener) next;
};

struct ibcm_table {
	struct ibcm_id **buckets;
	uint32_t mask;
	uint32_t nb;
};

struct ibcm {
	struct ibcm_conf conf;
	TAILQ_HEAD(ibcm_listeners, ibcm_listener) listeners[IBCM_SERVICES];
	struct ibcm_table tables[IBCM_NB_KEYS];
	TAILQ_HEAD(ibcm_ids, ibcm_id) ids;
	uint32_t nb_ids;
	/* Released IDs in time-wait without a QP, oldest first; freed when max_ids is reached. */
	TAILQ_HEAD(ibcm_spare, ibcm_id) spare;
	struct ibcm_heap timers; /* memory is reserved for each ID */
	uint64_t secret;         /* secret of the hashes */
	uint32_t half_open[IBCM_SOURCES];
	struct ibcm_log *log; /* the caller's, or own_log */
	struct ibcm_log own_log;
};

/* ibcm_id.c: tables, the timer and the state of an ID. */
/* Allocate an ID and insert it in the table IBCM_BY_ID. NULL: *error is -ENOSPC or -ENOMEM. */
struct ibcm_id *ibcm_id_alloc(struct ibcm *cm, const struct ibcm_path *path, int *error);
void ibcm_id_free(struct ibcm_id *id);
/* Insert an ID by a key of the peer, remote_id or attr.peer_qpn; it must not be in this table
 * yet. */
void ibcm_id_insert(struct ibcm_id *id, enum ibcm_key key);
struct ibcm_id *ibcm_id_by_id(const struct ibcm *cm, uint32_t local_id);
/*
 * Find the ID of a REQ or, with is_sidr, of a SIDR_REQ, on the link of the path; comm_id is the
 * peer's. GID, GUID and comm ID are values that a sender claims.
 */
struct ibcm_id *ibcm_id_by_peer(const struct ibcm *cm, const struct ibcm_path *path,
		uint64_t ca_guid, uint32_t comm_id, bool is_sidr);
/* Find an ID that has, or had, this QP as its peer, and is not in time-wait. */
struct ibcm_id *ibcm_id_by_qpn(
		const struct ibcm *cm, const uint8_t gid[16], uint64_t ca_guid, uint32_t qpn);
void ibcm_id_state(struct ibcm_id *id, enum ibcm_state state);
/* Make an ID spare if it is released, in time-wait and without a QP. */
void ibcm_id_released(struct ibcm_id *id);
static inline struct ibcm_id *
ibcm_id_of_timer(struct ibcm_timer *timer)
{
	return (struct ibcm_id *)((char *)timer - offsetof(struct ibcm_id, timer));
}
/* Start the timer, or stop it with IBCM_NEVER. */
void ibcm_id_timer(struct ibcm_id *id, uint64_t deadline);
/* Counter of half-open requests of the source. */
uint32_t *ibcm_half_open(struct ibcm *cm, const uint8_t gid[16]);

/* ibcm_listener.c. */
/* Find a listener; ip is from the private data, or NULL. */
struct ibcm_listener *ibcm_listener_lookup(
		const struct ibcm *cm, uint64_t service_id, const struct ibcm_ip *ip);

/* ibcm_send.c. */
/* 4.096 us * 2^n, where n is limited to the engine's minimum and maximum wait. */
uint64_t ibcm_wait_ns(uint32_t n);
/* Fill the fields common to all messages of an ID. */
struct ibcm_msg ibcm_msg_of(const struct ibcm_id *id, enum ibcm_type type);
/* Send a message without keeping it. */
void ibcm_send(struct ibcm *cm, const struct ibcm_path *path, const struct ibcm_msg *msg);
/* Send a message and keep it. */
void ibcm_send_keep(struct ibcm_id *id, const struct ibcm_msg *msg);
/* Send the kept message again. */
void ibcm_send_again(struct ibcm_id *id);
/* Keep and send a message, and repeat it until an answer stops the timer. */
void ibcm_send_until(struct ibcm_id *id, uint64_t now, const struct ibcm_msg *msg);
void ibcm_send_sidr_rep(struct ibcm *cm, const struct ibcm_path *path, const struct ibcm_msg *to,
		enum ibcm_sidr_status status);

/* ibcm_info.c: the reported values of an ID. */
/* Record why an ID ends; the first cause counts. Called before its state changes. */
void ibcm_info_end(struct ibcm_id *id, enum ibcm_end end, uint16_t reason);
/* Report a change of state. */
void ibcm_info_trace(const struct ibcm_id *id, enum ibcm_state from);
/* Record an ID that is freed. */
void ibcm_info_log(const struct ibcm_id *id);
void ibcm_info_count_rej(uint64_t counters[IBCM_NB_REASONS], uint16_t reason);

/* ibcm_end.c: ends of an ID. They may free the ID or run a callback, so the caller must return
 * after them, except after ibcm_end_timewait(). */
/* Report an event, unless the consumer has released the ID. Must be the last action of a call. */
void ibcm_end_event(struct ibcm_id *id, enum ibcm_event_type type, const struct ibcm_msg *msg,
		uint16_t reason);
/* Enter TIMEWAIT; the kept message still answers duplicates. */
void ibcm_end_timewait(struct ibcm_id *id, uint64_t now);
/* Enter IDLE, or free a released ID; then report the event. */
void ibcm_end_idle(struct ibcm_id *id, enum ibcm_event_type type, const struct ibcm_msg *msg,
		uint16_t reason);
/* Send a DREQ and enter DREQ_SENT. */
void ibcm_end_dreq(struct ibcm_id *id, uint64_t now, const struct ibcm_data *data);

/* ibcm_reject.c. */
/* Send a REJ and enter TIMEWAIT. */
void ibcm_reject_end(
		struct ibcm_id *id, uint64_t now, uint16_t reason, const struct ibcm_data *data);
/* Send a REJ with reason timeout, which a peer can match without knowing the comm ID of this
 * side. */
void ibcm_reject_timeout(struct ibcm_id *id);
/* Send the kept REJ as an answer to this message. */
void ibcm_reject_again(const struct ibcm_id *id, enum ibcm_subject subject);
/* Reject a REQ or REP that belongs to no ID. */
void ibcm_reject_to(struct ibcm *cm, const struct ibcm_path *path, const struct ibcm_msg *to,
		uint16_t reason);

#endif /* IBCM_PRIV_H */
