/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The communication manager of IBTA volume 1, chapter 12: connections (REQ, REP, RTU, ...) and
 * service ID resolution (SIDR). doc/ibcm.md has its states, timers and limits.
 *
 * Inside: messages, states and timers of the communication manager (IBTA chapter 12), and
 *   their codec.
 * Callers: lib/rmem_cm, dropin/cm, and any other program.
 * Not known here: threads, sockets, clocks, verbs, rmem and DPDK.
 *
 * An engine is pure: it has no thread, no lock, no socket and no clock, and knows no verbs object.
 * Its input are received MADs, the time and calls; its output are MADs to send, events, and the
 * next time at which ibcm_timeout() must be called. Callers serialise all calls of an engine.
 *
 * Callbacks run inside of a call, the event as its last action. An event's callback may call all
 * functions of the engine but ibcm_destroy(); one that sends, none.
 *
 * Time is in nanoseconds of a clock that does not go back.
 */

#ifndef IBCM_H
#define IBCM_H

#include "ibcm_heap.h"
#include "ibcm_mad.h"

struct ibcm;
struct ibcm_id;
struct ibcm_listener;

/*
 * Where MADs, and the packets of the connection, are sent. A caller that has several links, such as
 * a socket to each peer, numbers them: messages of an ID are sent and received by its link alone.
 */
struct ibcm_path {
	uint8_t local_gid[16];
	uint8_t remote_gid[16]; /* of a request by a link: zeros, if the answer shows it first */
	uint64_t link;          /* 0: the network */
	uint32_t flow_label;
	uint8_t traffic_class;
	uint8_t hop_limit;
};

enum ibcm_state {
	IBCM_IDLE, /* the end of each ID; it waits for ibcm_release() */
	IBCM_REQ_SENT,
	IBCM_REQ_RCVD,
	IBCM_REP_SENT,
	IBCM_REP_RCVD,
	IBCM_ESTABLISHED,
	IBCM_DREQ_SENT,
	IBCM_TIMEWAIT,
	IBCM_SIDR_REQ_SENT,
	IBCM_SIDR_REQ_RCVD,
	IBCM_STATE_END,
};

enum ibcm_event_type {
	IBCM_EVENT_REQ,           /* a new ID: ibcm_accept() or ibcm_reject() */
	IBCM_EVENT_REP,           /* ibcm_ready() or ibcm_reject() */
	IBCM_EVENT_ESTABLISHED,   /* of the accepting side */
	IBCM_EVENT_REJECTED,      /* reason; by the peer */
	IBCM_EVENT_UNREACHABLE,   /* no answer to a REQ, REP or SIDR_REQ */
	IBCM_EVENT_DISCONNECTED,  /* by the peer, or ibcm_disconnect() has ended */
	IBCM_EVENT_TIMEWAIT_EXIT, /* the QP number may be used again; the ID is IDLE */
	IBCM_EVENT_SIDR_REQ,      /* a new ID: ibcm_answer() */
	IBCM_EVENT_SIDR_REP,
};

struct ibcm_event {
	enum ibcm_event_type type;
	struct ibcm_id *id;
	void *listener_arg;         /* of REQ and SIDR_REQ */
	const struct ibcm_msg *msg; /* the message that caused it, or NULL */
	const struct ibcm_ip *ip;   /* of a REQ or SIDR_REQ to a listener with addresses; or NULL */
	const uint8_t *data;        /* private data after that */
	uint32_t data_len;
	uint16_t reason; /* of REJECTED: enum ibcm_reason */
};

/* Why an ID ended. */
enum ibcm_end {
	IBCM_END_NONE,      /* it has not */
	IBCM_END_REJ,       /* this side sent a REJ */
	IBCM_END_PEER_REJ,  /* the peer did */
	IBCM_END_NO_ANSWER, /* to a REQ, REP or SIDR_REQ */
	IBCM_END_DREQ,      /* this side sent a DREQ */
	IBCM_END_PEER_DREQ, /* the peer did */
	IBCM_END_STALE,     /* the peer has restarted */
	IBCM_END_RELEASED,  /* the consumer released it while the peer had not answered */
	IBCM_END_SIDR,      /* a SIDR_REQ was answered */
	IBCM_END_LINK,      /* its link ended */
	IBCM_END_DESTROYED, /* with the engine */
	IBCM_END_END,
};

/* An ID, current or ended. */
struct ibcm_info {
	enum ibcm_state state;
	enum ibcm_end end;
	uint16_t reason; /* of the REJ */
	bool is_passive; /* the peer sent the request */
	bool is_sidr;
	uint32_t local_id;
	uint32_t remote_id; /* 0: not known */
	uint32_t qpn;       /* 0: none */
	uint32_t peer_qpn;  /* 0: not known */
	uint32_t retries;   /* messages sent again because of timeouts */
	uint64_t service_id;
	uint8_t local_gid[16];
	uint8_t remote_gid[16];
};

/* Counters: by type, less IBCM_REQ; and the rest of the MADs. */
struct ibcm_stats {
	uint64_t rx[IBCM_NB_TYPES];
	uint64_t tx[IBCM_NB_TYPES];
	uint64_t retries[IBCM_NB_TYPES];    /* of tx: by a timeout */
	uint64_t timeouts[IBCM_NB_TYPES];   /* messages that had no answer after all retries */
	uint64_t duplicates[IBCM_NB_TYPES]; /* of rx */
	uint64_t rej_rx[IBCM_NB_REASONS];   /* by reason; 0: one that is not in the table */
	uint64_t rej_tx[IBCM_NB_REASONS];
	uint64_t malformed;  /* not in rx */
	uint64_t unknown_id; /* no such comm ID, or it is of another peer */
	uint64_t wrong_state;
	uint64_t refused; /* REQ and SIDR_REQ that no consumer has seen */
};

#define IBCM_LOG_LEN 32

/* The record of IDs that were freed. */
struct ibcm_log {
	struct ibcm_stats stats;
	uint64_t nb_ended;
	struct ibcm_info ended[IBCM_LOG_LEN]; /* the last ones: a ring */
};

struct ibcm_conf {
	uint64_t ca_guid;
	uint32_t max_ids;       /* those in time-wait are included, if they have or had a QP */
	uint32_t max_half_open; /* requests of a source that it, or the consumer, has not ended */
	bool is_end_seen;       /* IDs of a link that ends are dropped, so that none is stale */
	void *arg;              /* of the callbacks */
	void (*send)(void *arg, const struct ibcm_path *path, const uint8_t mad[IBCM_MAD_LEN]);
	void (*event)(void *arg, const struct ibcm_event *event);
	uint64_t (*random)(void *arg); /* not to be guessed by peers */
	/* The state of an ID has changed; may call no function of the engine. NULL: none. */
	void (*trace)(void *arg, const struct ibcm_info *info, enum ibcm_state from);
	struct ibcm_log *log; /* of the caller, zeroed at first; NULL: of the engine */
};

/* Families of a listener. */
enum ibcm_family {
	IBCM_NO_IP,  /* private data has no addresses */
	IBCM_IP_ANY, /* both versions; address 0 */
	IBCM_IP_V4 = 4,
	IBCM_IP_V6 = 6,
};

struct ibcm_listen_conf {
	uint64_t service_id;
	enum ibcm_family family;
	uint8_t addr[16]; /* as in struct ibcm_ip; 0: all */
	uint32_t backlog; /* requests without ibcm_accept() or ibcm_reject() */
	void *arg;        /* ibcm_event::listener_arg */
};

/* The QP of this side, and limits that ibcm_qp_attr() negotiates. */
struct ibcm_qp_conf {
	uint32_t qpn;
	uint32_t psn;                /* of the first packet that it receives */
	uint8_t responder_resources; /* READs and atomics that the QP answers at a time */
	uint8_t initiator_depth;     /* those that it has in flight */
	uint8_t rnr_retry_count;     /* of the peer's QP */
	bool has_srq;
	bool has_flow_control;
	uint8_t ece_vendor[3]; /* 0: the QP has no ECE */
	uint32_t ece_options;
};

struct ibcm_data {
	const void *data;
	uint32_t len;
};

struct ibcm_req_conf {
	struct ibcm_path path;
	uint64_t service_id;
	struct ibcm_qp_conf qp;
	enum ibcm_service service; /* IBCM_RC or IBCM_UC */
	uint8_t mtu;               /* 1 for 256 bytes to 5 for 4096 */
	uint8_t retry_count;       /* of both QPs */
	uint8_t ack_timeout;       /* of both QPs, exponent; time-wait depends on it */
	uint8_t cm_timeout;        /* until a message is sent again, exponent */
	uint8_t max_cm_retries;    /* up to IBCM_MAX_RETRY */
	const struct ibcm_ip *ip;  /* precedes the private data; or NULL */
	struct ibcm_data data;
	void *arg; /* ibcm_arg() */
};

struct ibcm_sidr_conf {
	struct ibcm_path path;
	uint64_t service_id;
	uint8_t cm_timeout;
	uint8_t max_cm_retries;
	const struct ibcm_ip *ip;
	struct ibcm_data data;
	void *arg;
};

/* Attributes for the QP of this side, once both sides are known. */
struct ibcm_qp_attr {
	uint32_t qpn; /* of this side */
	uint32_t peer_qpn;
	uint32_t psn;      /* of the first packet that it receives (verbs: rq_psn) */
	uint32_t peer_psn; /* of the first packet that it sends (verbs: sq_psn) */
	uint8_t mtu;
	uint8_t service;
	uint8_t responder_resources; /* verbs: max_dest_rd_atomic */
	uint8_t initiator_depth;     /* verbs: max_rd_atomic */
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t ack_timeout;
	bool peer_has_srq;
};

/* Returns 0, -EINVAL (conf) or -ENOMEM. */
int ibcm_create(const struct ibcm_conf *conf, struct ibcm **cm);
/* Free the engine, its listeners and IDs; sends nothing. */
void ibcm_destroy(struct ibcm *cm);

/* Returns 0, -EINVAL, -EEXIST (such a listener is there) or -ENOMEM. */
int ibcm_listen(struct ibcm *cm, const struct ibcm_listen_conf *conf,
		struct ibcm_listener **listener);
/* Requests that were reported stay. */
void ibcm_unlisten(struct ibcm_listener *listener);

/* A MAD of class 7 was received; path: as an answer has it. */
void ibcm_input(struct ibcm *cm, uint64_t now, const struct ibcm_path *path,
		const uint8_t mad[IBCM_MAD_LEN]);
/* The time at which ibcm_timeout() has something to do; IBCM_NEVER. */
uint64_t ibcm_next(const struct ibcm *cm);
void ibcm_timeout(struct ibcm *cm, uint64_t now);

/*
 * Send a REQ. REP, REJECTED or UNREACHABLE follows. Returns 0, -EINVAL, -ENOSPC (max_ids) or
 * -ENOMEM.
 */
int ibcm_connect(struct ibcm *cm, uint64_t now, const struct ibcm_req_conf *conf,
		struct ibcm_id **id);
/*
 * Calls on an ID in a state return 0, -EBUSY (another state) or -EINVAL (too much private data, or
 * a number out of range). They report no event.
 */
/* REQ_RCVD: send a REP. ESTABLISHED, REJECTED, UNREACHABLE or DISCONNECTED follows. */
int ibcm_accept(struct ibcm_id *id, uint64_t now, const struct ibcm_qp_conf *qp,
		const struct ibcm_data *data);
/* REP_RCVD: send an RTU; the connection is established. */
int ibcm_ready(struct ibcm_id *id, const struct ibcm_data *data);
/* REP_SENT: a packet of the peer's QP was received, so the connection is established. */
int ibcm_notify(struct ibcm_id *id);
/* REQ_RCVD, REP_SENT or REP_RCVD: send a REJ. TIMEWAIT_EXIT follows. */
int ibcm_reject(struct ibcm_id *id, uint64_t now, uint16_t reason, const struct ibcm_data *data);
/* ESTABLISHED: send a DREQ. DISCONNECTED follows. */
int ibcm_disconnect(struct ibcm_id *id, uint64_t now, const struct ibcm_data *data);

/* Send a SIDR_REQ. SIDR_REP or UNREACHABLE follows. Returns as ibcm_connect(). */
int ibcm_resolve(struct ibcm *cm, uint64_t now, const struct ibcm_sidr_conf *conf,
		struct ibcm_id **id);
/* SIDR_REQ_RCVD: send a SIDR_REP. */
int ibcm_answer(struct ibcm_id *id, uint64_t now, enum ibcm_sidr_status status, uint32_t qpn,
		uint32_t qkey, const struct ibcm_data *data);

/*
 * The consumer has no use for the ID, and gets no event of it. In each state: the engine rejects,
 * disconnects and waits as needed, and then frees it.
 */
void ibcm_release(struct ibcm_id *id, uint64_t now);
/*
 * The same for an ID whose link ends, in each state: nothing is sent, and nothing of it can arrive.
 * It is freed.
 */
void ibcm_drop(struct ibcm_id *id);

enum ibcm_state ibcm_state(const struct ibcm_id *id);
const char *ibcm_state_name(enum ibcm_state state);
void *ibcm_arg(const struct ibcm_id *id);
void ibcm_arg_set(struct ibcm_id *id, void *arg);
const struct ibcm_path *ibcm_path(const struct ibcm_id *id);
/* The link of the ID has another number from now on. */
void ibcm_link_set(struct ibcm_id *id, uint64_t link);
/* Valid from REP_RCVD, or ibcm_accept(), on. In REQ_RCVD: what the peer offers. */
void ibcm_qp_attr(const struct ibcm_id *id, struct ibcm_qp_attr *attr);
/* IDs, those that are released included. */
uint32_t ibcm_nb_ids(const struct ibcm *cm);
/* Those in a state. */
uint32_t ibcm_nb_in(const struct ibcm *cm, enum ibcm_state state);
const struct ibcm_stats *ibcm_stats(const struct ibcm *cm);

typedef void (*ibcm_visit_t)(void *arg, const struct ibcm_info *info);
/* Visit all IDs. */
void ibcm_visit(const struct ibcm *cm, ibcm_visit_t visit, void *arg);
/* Visit ended IDs, the oldest one first. */
void ibcm_log_visit(const struct ibcm_log *log, ibcm_visit_t visit, void *arg);
const char *ibcm_end_name(enum ibcm_end end);

#endif /* IBCM_H */
