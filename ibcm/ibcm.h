/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The communication manager of IBTA volume 1, chapter 12: connections (REQ, REP, RTU, ...) and
 * service ID resolution (SIDR). doc/ibcm.md describes its states, timers and limits.
 *
 * Inside: messages, states and timers of the communication manager (IBTA chapter 12), and
 *   their codec.
 * Callers: lib/rmem_cm, dropin/cm, and any other program.
 * Not known here: threads, sockets, clocks, verbs, rmem and DPDK.
 *
 * An engine is pure: it has no thread, lock, socket or clock, and uses no verbs object. Its input
 * is received MADs, the time and calls; its output is MADs to send, events, and the next time at
 * which ibcm_timeout() must be called. Callers serialise all calls of an engine.
 *
 * Callbacks run inside a call; an event is its last action. The callback of an event may call all
 * functions of the engine except ibcm_destroy(); the callback that sends may call none.
 *
 * Times are in nanoseconds of a monotonic clock.
 */

#ifndef IBCM_H
#define IBCM_H

#include "ibcm_heap.h"
#include "ibcm_mad.h"

struct ibcm;
struct ibcm_id;
struct ibcm_listener;

/*
 * The path of MADs and of the packets of the connection. A caller with several links, such as a
 * socket for each peer, numbers them: messages of an ID are sent and received only by its link.
 */
struct ibcm_path {
	uint8_t local_gid[16];
	uint8_t remote_gid[16]; /* zeros in a request on a link: set by the answer */
	uint64_t link;          /* 0: the network */
	uint32_t flow_label;
	uint8_t traffic_class;
	uint8_t hop_limit;
};

enum ibcm_state {
	IBCM_IDLE, /* the ID has ended, and waits for ibcm_release() */
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
	IBCM_EVENT_REQ,           /* a new ID: call ibcm_accept() or ibcm_reject() */
	IBCM_EVENT_REP,           /* call ibcm_ready() or ibcm_reject() */
	IBCM_EVENT_ESTABLISHED,   /* on the accepting side */
	IBCM_EVENT_REJECTED,      /* by the peer, or as stale; with reason */
	IBCM_EVENT_UNREACHABLE,   /* no answer to a REQ, REP or SIDR_REQ */
	IBCM_EVENT_DISCONNECTED,  /* by the peer, or ibcm_disconnect() is complete */
	IBCM_EVENT_TIMEWAIT_EXIT, /* the QP number may be used again; the ID is IDLE */
	IBCM_EVENT_SIDR_REQ,      /* a new ID: call ibcm_answer() */
	IBCM_EVENT_SIDR_REP,
};

struct ibcm_event {
	enum ibcm_event_type type;
	struct ibcm_id *id;
	void *listener_arg;         /* for REQ and SIDR_REQ */
	const struct ibcm_msg *msg; /* the message that caused it, or NULL */
	const struct ibcm_ip *ip;   /* for REQ or SIDR_REQ to a listener with addresses; or NULL */
	const uint8_t *data;        /* private data after ip */
	uint32_t data_len;
	uint16_t reason; /* for REJECTED: enum ibcm_reason */
};

/* Cause of the end of an ID. */
enum ibcm_end {
	IBCM_END_NONE,      /* not ended */
	IBCM_END_REJ,       /* this side sent a REJ */
	IBCM_END_PEER_REJ,  /* the peer sent a REJ */
	IBCM_END_NO_ANSWER, /* no answer to a REQ, REP or SIDR_REQ */
	IBCM_END_DREQ,      /* this side sent a DREQ */
	IBCM_END_PEER_DREQ, /* the peer sent a DREQ */
	IBCM_END_STALE,     /* the peer has restarted */
	IBCM_END_RELEASED,  /* released by the consumer before the peer answered */
	IBCM_END_SIDR,      /* a SIDR_REQ was answered */
	IBCM_END_LINK,      /* its link ended */
	IBCM_END_DESTROYED, /* the engine was destroyed */
	IBCM_END_END,
};

/* Information about an ID, current or ended. */
struct ibcm_info {
	enum ibcm_state state;
	enum ibcm_end end;
	uint16_t reason; /* reason of the REJ */
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

/* Counters; arrays are indexed by type - IBCM_REQ. */
struct ibcm_stats {
	uint64_t rx[IBCM_NB_TYPES];
	uint64_t tx[IBCM_NB_TYPES];
	uint64_t retries[IBCM_NB_TYPES];    /* part of tx: sent again after a timeout */
	uint64_t timeouts[IBCM_NB_TYPES];   /* messages without an answer after all retries */
	uint64_t duplicates[IBCM_NB_TYPES]; /* part of rx */
	uint64_t rej_rx[IBCM_NB_REASONS];   /* by reason; 0: reasons not in the table */
	uint64_t rej_tx[IBCM_NB_REASONS];
	uint64_t malformed;  /* not counted in rx */
	uint64_t unknown_id; /* unknown comm ID, or the comm ID of another peer */
	uint64_t wrong_state;
	uint64_t refused; /* REQ and SIDR_REQ refused without a consumer */
};

#define IBCM_LOG_LEN 32

/* Record of IDs that were freed. */
struct ibcm_log {
	struct ibcm_stats stats;
	uint64_t nb_ended;
	struct ibcm_info ended[IBCM_LOG_LEN]; /* ring of the last ones */
};

struct ibcm_conf {
	uint64_t ca_guid;
	uint32_t max_ids;       /* IDs in time-wait count, unless released without a QP */
	uint32_t max_half_open; /* received requests per source that are not established yet */
	bool is_end_seen;       /* the caller drops the IDs of an ended link, so none is stale */
	void *arg;              /* for the callbacks */
	void (*send)(void *arg, const struct ibcm_path *path, const uint8_t mad[IBCM_MAD_LEN]);
	void (*event)(void *arg, const struct ibcm_event *event);
	uint64_t (*random)(void *arg); /* peers must not be able to guess it */
	/* Called when the state of an ID has changed; must not call the engine. NULL: none. */
	void (*trace)(void *arg, const struct ibcm_info *info, enum ibcm_state from);
	struct ibcm_log *log; /* memory of the caller, initially zero; NULL: in the engine */
};

/* Address families of a listener. */
enum ibcm_family {
	IBCM_NO_IP,  /* no addresses in the private data */
	IBCM_IP_ANY, /* IPv4 and IPv6; address 0 */
	IBCM_IP_V4 = 4,
	IBCM_IP_V6 = 6,
};

struct ibcm_listen_conf {
	uint64_t service_id;
	enum ibcm_family family;
	uint8_t addr[16]; /* as in struct ibcm_ip; 0: all addresses */
	uint32_t backlog; /* maximum of requests not yet accepted or rejected */
	void *arg;        /* ibcm_event::listener_arg */
};

/* QP of this side, and limits that ibcm_qp_attr() negotiates. */
struct ibcm_qp_conf {
	uint32_t qpn;
	uint32_t psn;                /* PSN of the first packet that the QP receives */
	uint8_t responder_resources; /* READs and atomics answered concurrently */
	uint8_t initiator_depth;     /* READs and atomics in flight */
	uint8_t rnr_retry_count;     /* for the peer's QP */
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
	uint8_t retry_count;       /* for both QPs */
	uint8_t ack_timeout;       /* for both QPs, exponent; time-wait depends on it */
	uint8_t cm_timeout;        /* timeout of a message, exponent */
	uint8_t max_cm_retries;    /* up to IBCM_MAX_RETRY */
	const struct ibcm_ip *ip;  /* sent before the private data; or NULL */
	struct ibcm_data data;
	void *arg; /* returned by ibcm_arg() */
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

/* Attributes for the QP of this side; valid when both sides are known. */
struct ibcm_qp_attr {
	uint32_t qpn; /* QP of this side */
	uint32_t peer_qpn;
	uint32_t psn;      /* PSN of the first received packet (verbs: rq_psn) */
	uint32_t peer_psn; /* PSN of the first sent packet (verbs: sq_psn) */
	uint8_t mtu;
	uint8_t service;
	uint8_t responder_resources; /* verbs: max_dest_rd_atomic */
	uint8_t initiator_depth;     /* verbs: max_rd_atomic */
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t ack_timeout;
	bool peer_has_srq;
};

/* Create an engine. Return 0, -EINVAL (conf) or -ENOMEM. */
int ibcm_create(const struct ibcm_conf *conf, struct ibcm **cm);
/* Free the engine with its listeners and IDs; nothing is sent. */
void ibcm_destroy(struct ibcm *cm);

/* Add a listener. Return 0, -EINVAL, -EEXIST (such a listener exists) or -ENOMEM. */
int ibcm_listen(struct ibcm *cm, const struct ibcm_listen_conf *conf,
		struct ibcm_listener **listener);
/* Remove a listener. Requests that were reported stay valid. */
void ibcm_unlisten(struct ibcm_listener *listener);

/* Process a received MAD of class 7. Local and remote in path are as seen from this side. */
void ibcm_input(struct ibcm *cm, uint64_t now, const struct ibcm_path *path,
		const uint8_t mad[IBCM_MAD_LEN]);
/* Time at which ibcm_timeout() must be called, or IBCM_NEVER. */
uint64_t ibcm_next(const struct ibcm *cm);
/* Process all timers whose deadline is now or earlier. */
void ibcm_timeout(struct ibcm *cm, uint64_t now);

/*
 * Send a REQ. REP, REJECTED or UNREACHABLE follows. Return 0, -EINVAL, -ENOSPC (max_ids) or
 * -ENOMEM.
 */
int ibcm_connect(struct ibcm *cm, uint64_t now, const struct ibcm_req_conf *conf,
		struct ibcm_id **id);
/*
 * The following calls need an ID in a given state. They return 0, -EBUSY (another state) or -EINVAL
 * (too much private data, or a number out of range), and report no event.
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
 * Release an ID in any state; no further events are reported. The engine rejects, disconnects and
 * waits as needed, and then frees the ID.
 */
void ibcm_release(struct ibcm_id *id, uint64_t now);
/*
 * Free an ID, in any state, whose link has ended. Nothing is sent, and no message of the link may
 * be passed to ibcm_input() afterwards.
 */
void ibcm_drop(struct ibcm_id *id);

enum ibcm_state ibcm_state(const struct ibcm_id *id);
const char *ibcm_state_name(enum ibcm_state state);
void *ibcm_arg(const struct ibcm_id *id);
void ibcm_arg_set(struct ibcm_id *id, void *arg);
const struct ibcm_path *ibcm_path(const struct ibcm_id *id);
/* Change the number of the ID's link. */
void ibcm_link_set(struct ibcm_id *id, uint64_t link);
/*
 * Return the negotiated attributes, from REP_RCVD or ibcm_accept() on; in REQ_RCVD the peer's
 * offer.
 */
void ibcm_qp_attr(const struct ibcm_id *id, struct ibcm_qp_attr *attr);
/* Number of IDs, including released ones. */
uint32_t ibcm_nb_ids(const struct ibcm *cm);
/* Number of IDs in a state. */
uint32_t ibcm_nb_in(const struct ibcm *cm, enum ibcm_state state);
const struct ibcm_stats *ibcm_stats(const struct ibcm *cm);

typedef void (*ibcm_visit_t)(void *arg, const struct ibcm_info *info);
/* Visit all IDs. */
void ibcm_visit(const struct ibcm *cm, ibcm_visit_t visit, void *arg);
/* Visit ended IDs, oldest first. */
void ibcm_log_visit(const struct ibcm_log *log, ibcm_visit_t visit, void *arg);
const char *ibcm_end_name(enum ibcm_end end);

#endif /* IBCM_H */
