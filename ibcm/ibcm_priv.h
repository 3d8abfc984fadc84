/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Objects of the engine, for its files. Each calls only those after it: ibcm_input.c, ibcm_timer.c
 * and ibcm_call.c; ibcm_reject.c; ibcm_end.c; ibcm_send.c; ibcm_listener.c; ibcm_id.c; ibcm_info.c;
 * ibcm_mad.c.
 */

#ifndef IBCM_PRIV_H
#define IBCM_PRIV_H

#include <stddef.h>
#include <sys/queue.h>

#include "ibcm.h"

#define IBCM_SOURCES  1024 /* counters of half-open requests, by a hash of the source */
#define IBCM_SERVICES 256  /* lists of listeners, by a hash of the service ID */

/* By which MADs find an ID. */
enum ibcm_key {
	IBCM_BY_ID,   /* comm ID of this side, or request ID */
	IBCM_BY_PEER, /* of a received request: GID, CA GUID and comm or request ID of the peer */
	IBCM_BY_QPN,  /* GID, CA GUID and QP number of the peer */
	IBCM_NB_KEYS,
};

struct ibcm_id {
	struct ibcm *cm;
	void *arg;
	struct ibcm_listener *listener; /* while the ID counts in its backlog */
	TAILQ_ENTRY(ibcm_id) pending;   /* in ibcm_listener::pending, then */
	enum ibcm_state state;
	bool is_passive;
	bool is_sidr;
	bool is_released;
	bool has_mra; /* the peer delayed its answer */
	uint32_t local_id;
	uint32_t remote_id;
	uint64_t tid;
	uint64_t service_id;
	uint64_t ca_guid; /* of the peer */
	enum ibcm_end end;
	uint16_t end_reason;
	uint32_t nb_retries; /* in all */
	struct ibcm_path path;
	struct ibcm_qp_attr attr;

	struct ibcm_timer timer;
	uint64_t interval; /* until a message is sent again; of this ID */
	uint64_t wait;     /* of this message: longer after an MRA */
	uint8_t retries;   /* left */
	uint8_t max_retries;

	/*
	 * The last message, if it may have to be sent again: because of a timeout, or to answer a
	 * duplicate.
	 */
	uint8_t mad[IBCM_MAD_LEN];
	uint32_t mad_type; /* 0: none */

	bool is_in[IBCM_NB_KEYS];
	struct ibcm_id *next[IBCM_NB_KEYS];
	TAILQ_ENTRY(ibcm_id) all; /* in ibcm::ids, also when no MAD finds it any more */
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
	/* Released, in time-wait, without a QP: freed if max_ids is reached; oldest first. */
	TAILQ_HEAD(ibcm_spare, ibcm_id) spare;
	struct ibcm_heap timers; /* each ID has memory in it */
	uint64_t secret;         /* of the hashes */
	uint32_t half_open[IBCM_SOURCES];
	struct ibcm_log *log; /* of the caller, or own_log */
	struct ibcm_log own_log;
};

/* ibcm_id.c: tables, the timer and the state of an ID. */
/* NULL: *error is -ENOSPC or -ENOMEM. In the table IBCM_BY_ID. */
struct ibcm_id *ibcm_id_alloc(struct ibcm *cm, const struct ibcm_path *path, int *error);
void ibcm_id_free(struct ibcm_id *id);
/* The keys that are known of the peer: remote_id, or attr.peer_qpn. It must not be there yet. */
void ibcm_id_insert(struct ibcm_id *id, enum ibcm_key key);
struct ibcm_id *ibcm_id_by_id(const struct ibcm *cm, uint32_t local_id);
/*
 * A REQ's, or with is_sidr a SIDR_REQ's; comm_id is that of the peer. Of the path's link: GID, GUID
 * and comm ID are what a sender claims.
 */
struct ibcm_id *ibcm_id_by_peer(const struct ibcm *cm, const struct ibcm_path *path,
		uint64_t ca_guid, uint32_t comm_id, bool is_sidr);
/* One that has, or had, this QP as its peer, and is not in time-wait. */
struct ibcm_id *ibcm_id_by_qpn(
		const struct ibcm *cm, const uint8_t gid[16], uint64_t ca_guid, uint32_t qpn);
void ibcm_id_state(struct ibcm_id *id, enum ibcm_state state);
/* The consumer has released the ID, or a released one is in time-wait now. */
void ibcm_id_released(struct ibcm_id *id);
static inline struct ibcm_id *
ibcm_id_of_timer(struct ibcm_timer *timer)
{
	return (struct ibcm_id *)((char *)timer - offsetof(struct ibcm_id, timer));
}
/* Start the timer, or stop it with IBCM_NEVER. */
void ibcm_id_timer(struct ibcm_id *id, uint64_t deadline);
/* Half-open requests of the source, for its limit. */
uint32_t *ibcm_half_open(struct ibcm *cm, const uint8_t gid[16]);

/* ibcm_listener.c. */
/* ip: of the private data, or NULL. */
struct ibcm_listener *ibcm_listener_lookup(
		const struct ibcm *cm, uint64_t service_id, const struct ibcm_ip *ip);

/* ibcm_send.c. */
/* 4.096 us * 2^n, n limited to what an engine waits at most, and at least. */
uint64_t ibcm_wait_ns(uint32_t n);
/* Fill what all messages of an ID have. */
struct ibcm_msg ibcm_msg_of(const struct ibcm_id *id, enum ibcm_type type);
/* Send a message that is not kept. */
void ibcm_send(struct ibcm *cm, const struct ibcm_path *path, const struct ibcm_msg *msg);
/* Send a message, and keep it. */
void ibcm_send_keep(struct ibcm_id *id, const struct ibcm_msg *msg);
/* Send the message that is kept. */
void ibcm_send_again(struct ibcm_id *id);
/* Keep, send, and send again until an answer stops the timer. */
void ibcm_send_until(struct ibcm_id *id, uint64_t now, const struct ibcm_msg *msg);
void ibcm_send_sidr_rep(struct ibcm *cm, const struct ibcm_path *path, const struct ibcm_msg *to,
		enum ibcm_sidr_status status);

/* ibcm_info.c: the reported values of an ID. */
/* Why an ID ends; the first cause counts. Precedes the change of its state. */
void ibcm_info_end(struct ibcm_id *id, enum ibcm_end end, uint16_t reason);
/* Its state has changed. */
void ibcm_info_trace(const struct ibcm_id *id, enum ibcm_state from);
/* It is freed. */
void ibcm_info_log(const struct ibcm_id *id);
void ibcm_info_count_rej(uint64_t counters[IBCM_NB_REASONS], uint16_t reason);

/* ibcm_end.c: the ends of an ID. The caller returns after them, but for ibcm_end_timewait(). */
/* Report an event, unless the consumer has released the ID. The last action of a call. */
void ibcm_end_event(struct ibcm_id *id, enum ibcm_event_type type, const struct ibcm_msg *msg,
		uint16_t reason);
/* To TIMEWAIT; the kept message still answers duplicates. */
void ibcm_end_timewait(struct ibcm_id *id, uint64_t now);
/* To IDLE, or free it if it is released; then the event. */
void ibcm_end_idle(struct ibcm_id *id, enum ibcm_event_type type, const struct ibcm_msg *msg,
		uint16_t reason);
/* Send a DREQ, to DREQ_SENT. */
void ibcm_end_dreq(struct ibcm_id *id, uint64_t now, const struct ibcm_data *data);

/* ibcm_reject.c. */
/* Send a REJ, to TIMEWAIT. */
void ibcm_reject_end(
		struct ibcm_id *id, uint64_t now, uint16_t reason, const struct ibcm_data *data);
/* Send a REJ with reason timeout, which the peer can match without the comm ID of this side. */
void ibcm_reject_timeout(struct ibcm_id *id);
/* Send the REJ that is kept, as an answer to this message. */
void ibcm_reject_again(const struct ibcm_id *id, enum ibcm_subject subject);
/* Answer a REQ or a REP that no ID belongs to. */
void ibcm_reject_to(struct ibcm *cm, const struct ibcm_path *path, const struct ibcm_msg *to,
		uint16_t reason);

#endif /* IBCM_PRIV_H */
