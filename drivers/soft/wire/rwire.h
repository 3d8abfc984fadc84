/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The engine of RC, UC, UD and XRC: requester, completer and responder of QPs whose peer is reached
 * with packets. A packet of UC needs no acknowledgement: once sent, its PSN counts as acknowledged.
 * UD has a requester and a responder of its own, in rwire_ud.c. Each request packet of XRC names an
 * SRQ, which its responder selects (rsoft_xrc.h); an XRC_SEND QP has no responder, and an
 * XRC_RECV QP no requester.
 *
 * Inside: requester, completer and responder of QPs whose peer is reached with packets.
 * Callers: drivers/soft; env, in a child of fork().
 * Not known here: the sockets, rings and devices of a port, and the operations of the driver.
 *
 * Ownership of the state:
 * - struct rwire_req (requester and completer) is protected by the QP's sq.lock.
 * - struct rwire_rsp (responder), rwire::reply_list and the receive side of the port are protected
 *   by rwire::rx_lock. Its holder is the only receiver of the device.
 * - The send side of the port is protected by rwire::tx_lock.
 * - Lock order: rx_lock, then sq.lock or rq.lock, then tx_lock. No grace period is awaited with one
 *   of them held.
 *
 * Lifetime: rwire_qp_connect() allocates a struct rwire_qp. A reset stores RMEM_QPS_RESET, waits
 * for a grace period, detaches the QP from the receiver (rwire_qp_stop()) and from the list of
 * pending QPs, and then frees it (rwire_qp_free()). A receiver finds it through rsoft_dev::qps and
 * checks the state first; it may pass a grace point while it holds rx_lock, which
 * rwire_qp_stop() takes.
 *
 * Invariant: addresses resolved from a key are not cached across packets. Each packet is checked
 * again, so an invalidated key refuses the next packet.
 *
 * All of it is memory of this process, not DPDK shared memory.
 *
 * Each source file calls only those after it: rwire_dev.c, rwire_control.c, rwire_gid.c,
 * rwire_port_fault.c, (rsoft_post.c), rwire_rx.c, rwire_req.c, rwire_comp.c, rwire_timer.c,
 * rwire_req_copy.c; rwire_resp.c, rwire_reply.c; rwire_ud.c; rwire_fail.c, rwire_sge.c,
 * rwire_tx.c, rwire_netif.c.
 */

#ifndef RWIRE_H
#define RWIRE_H

#include <pthread.h>
#include <semaphore.h>
#include <sys/uio.h>

#include "../mem/rsoft_access.h"
#include "../queue/rsoft_batch.h"
#include "rwire_allow.h"
#include "rwire_netif.h"
#include "port/rwire_port.h"

#define RWIRE_MAX_WINDOW    64           /* PSNs in flight */
#define RWIRE_WINDOW_BYTES  (128 * 1024) /* in flight; default socket buffers hold that */
#define RWIRE_ACK_EVERY     16           /* packets without AckReq, at most */
#define RWIRE_REPLY_BURST   64           /* packets of READ data that one call sends, at most */
#define RWIRE_DIRECT_BUDGET (UINT64_C(1) << 20) /* bytes that a call copies directly */
#define RWIRE_MAX_RD_ATOMIC 16                  /* READs and atomics in flight */
/*
 * A READ is sent in pieces of a quarter of the window: with those, no more than RWIRE_MAX_RD_ATOMIC
 * requests are in flight.
 */
#define RWIRE_READ_PIECES 4
/*
 * A payload that the peer copies has up to half of the window. Invariant: such a piece fits into
 * the window when all packets that requested an acknowledgement have it, since no more than
 * RWIRE_ACK_EVERY - 1 others are in flight.
 */
#define RWIRE_SHARED_PIECES 2
#define RWIRE_MIN_SHARED    1024 /* bytes */
#define RWIRE_MAX_RD_WRS    (RWIRE_MAX_RD_ATOMIC - RWIRE_READ_PIECES)

/* PSNs of a request in the send queue. */
struct rwire_wqe {
	uint64_t length;
	uint32_t first_psn;
	uint32_t nb_psn;
};

/* How the next request of a QP is expected to be executed. */
enum rwire_direct_state {
	RWIRE_DIRECT_UNKNOWN = 0,
	RWIRE_DIRECT_ASKED,  /* a packet requested a grant */
	RWIRE_DIRECT_WORKS,  /* the last one was executed directly */
	RWIRE_DIRECT_FAILED, /* the request for a grant had no effect */
};

/* Packets that wait for the peer's device when a timer expires; see rwire_timer.c. */
struct rwire_unread {
	uint32_t una;   /* the oldest PSN then */
	uint32_t sent;  /* packets of the port to the peer's address until then */
	uint32_t taken; /* of these, as last seen, received */
	uint8_t left;   /* times that the timer may start again; 0: not waiting */
};

struct rwire_req {
	struct rwire_wqe *wqe; /* indexed by slot of the send queue */
	uint32_t sq_pos;       /* request that the next packet belongs to */
	uint32_t begun;        /* requests preceding it have PSNs */
	uint32_t psn;          /* of the next packet */
	uint32_t next_psn;     /* first PSN that no request has */
	uint32_t end_psn;      /* first PSN that was never sent */
	uint32_t una;          /* oldest PSN not acknowledged */
	uint32_t nb_rd;        /* with responses, in [cons, begun) */
	uint32_t since_ack;    /* packets sent since the last AckReq */
	uint8_t retry_left;
	uint8_t rnr_left;
	bool is_rewound;         /* since una last advanced */
	bool has_more;           /* the last call stopped before the end, and the next can go on */
	bool is_grant_requested; /* for the request at the head; rwire_copy.h */
	uint8_t direct;          /* enum rwire_direct_state */
	uint64_t direct_done;    /* bytes of the request at the head that are copied directly */
	uint64_t copied;         /* bytes that the last call copied directly */
	uint64_t deferred_at;    /* the oldest request was deferred, TSC; 0: it was not */
	uint32_t nb_undeferred_posts; /* posts to send before the next one may wait */
	uint8_t nb_long_waits;        /* consecutive, up to DIRECT_MAX_LONG_WAITS */
	uint64_t deadline;            /* of the retransmission timer, TSC; 0: not running */
	uint64_t rnr_until;           /* nothing is sent earlier, TSC; 0: not waiting */
	uint64_t timeout;             /* local ACK timeout, TSC cycles; 0: infinite */
	/* sq.cons + 1 of a message that QPs of this process have; 0: none */
	uint32_t looped;
	struct rwire_unread unread;
};

/* The reply to a READ, an atomic, an ATOMIC_WRITE or a FLUSH. */
struct rwire_reply {
	uint8_t opcode; /* of the request */
	uint32_t psn;   /* of the first response */
	uint32_t nb_psn;
	uint32_t sent; /* responses */
	uint32_t rkey;
	uint32_t length;
	uint32_t pd; /* of a READ of XRC: that of its SRQ */
	uint64_t addr;
	uint64_t value; /* of an atomic: the value before */
};

struct rwire_rsp {
	uint32_t psn; /* expected */
	uint32_t msn;
	/*
	 * PSN of the last SEND or WRITE executed. Invariant: an ACK has no PSN of a READ, an
	 * atomic or an ATOMIC_WRITE, for which a requester may take it: their responses have
	 * other opcodes.
	 */
	uint32_t done_psn;
	bool is_nak_sent; /* for the gap that precedes psn */
	bool has_dropped; /* requests while it was busy */
	uint8_t message;  /* RWIRE_IS_SEND or RWIRE_IS_WRITE within a message of several packets */
	uint32_t rkey;    /* of the WRITE */
	uint64_t addr;    /* of the WRITE's next byte */
	uint64_t left;    /* bytes of the WRITE not yet received */
	uint64_t done;    /* bytes of the message placed */

	/* Ring: replies to send, and the results of the last atomics for duplicates. */
	struct rwire_reply reply[RWIRE_MAX_RD_ATOMIC];
	uint32_t reply_head;          /* next to send */
	uint32_t reply_tail;          /* next to fill */
	struct rwire_reply dup_reply; /* to a duplicate */
	bool has_dup_reply;

	bool has_failed; /* the QP is in ERR; syndrome, the cause, answers every request */
	bool is_acked;   /* the packet that is executed, by rwire_reply_ack_now() */
	bool has_ack;    /* ack_psn and syndrome must be sent, after the replies */
	uint8_t syndrome;
	uint32_t ack_psn;

	bool is_inv_waiting; /* a SEND_WITH_INV, for its grace period */
	uint64_t inv_token;
	struct rsoft_key *inv_key;
	struct rsoft_cqe inv_cqe;
};

struct rwire_qp {
	struct rsoft_qp *qp;
	struct rwire *wire;
	struct rwire_addr addr; /* of the peer; not of UD */
	uint32_t qpn;           /* of the peer; not of UD */
	uint8_t service;        /* RWIRE_RC, RWIRE_UC, RWIRE_UD or RWIRE_XRC */
	uint16_t pkey;          /* bits that differ from RWIRE_PKEY; atomic */
	struct rsoft_grh grh;   /* of packets to the peer; not of UD */
	uint32_t mtu;
	uint32_t window; /* PSNs in flight */
	struct rwire_req req;
	struct rwire_rsp rsp;
	uint64_t cnp_at;            /* the last CNP was sent, TSC; 0: none; rx_lock */
	bool is_busy;               /* a reply or a grace period blocks the responder; rx_lock */
	bool is_listed;             /* in rwire::reply_list; rx_lock */
	TAILQ_ENTRY(rwire_qp) next; /* in rwire::reply_list */
};

TAILQ_HEAD(rwire_qp_list, rwire_qp);

/* Counters of the engine; atomic. */
struct rwire_stats {
	uint64_t retransmits; /* times that a QP sent again from its oldest packet */
	uint64_t timeouts;
	uint64_t duplicates; /* requests received again */
	uint64_t gaps;       /* requests ahead of the expected PSN */
	uint64_t naks_sent;
	uint64_t naks_received;
	uint64_t rnr_sent;
	uint64_t rnr_received;
	uint64_t icrc_errors;
	uint64_t malformed;
	uint64_t wrong_peer; /* from an address other than that of the QP's peer */
	uint64_t no_qp;
	uint64_t busy_drops;
	uint64_t drop_no_recv; /* messages of an unreliable service */
	uint64_t drop_length;
	uint64_t drop_access;
	uint64_t drop_qkey;
	uint64_t drop_pkey;
	uint64_t ecn_marked; /* packets of RC and UC received with Congestion Experienced */
	uint64_t cnps_sent;
	uint64_t cnps_received;
};

struct rwire {
	struct rsoft_dev *dev;
	struct rmem_dev *base_dev;
	struct rwire_port *port;
	struct rwire_port *inner; /* the innermost port */
	struct rwire_netif netif;
	int control_fd;             /* rwire_control.c; -1: none */
	bool is_frozen, has_failed; /* the same; of the thread */
	bool has_rule_gid;          /* a rule has removed rule_gid; rx_lock */
	struct rwire_addr rule_gid;
	struct rwire_owners owners; /* with ip=host */
	struct rwire_allow allow;   /* packets of other addresses are dropped */
	rte_ticketlock_t tx_lock;
	rte_ticketlock_t rx_lock;
	struct rwire_qp_list reply_list; /* QPs whose responder has packets to send */
	uint64_t nb_polls;               /* times that rx_lock was taken to receive; atomic */
	uint32_t nb_idle;                /* calls of rwire_yield(); atomic */
	bool has_waiting;                /* a post left its requests to a later call; atomic */
	struct rwire_stats stats;
	uint64_t now; /* the last attempt to receive began, TSC; atomic */
	/* A time at which all packets that had arrived were processed, TSC; atomic. */
	uint64_t quiet_at;
	uint64_t idle_at;     /* rwire_port_ops::tx_idle was called, TSC; rx_lock */
	uint64_t idle_cycles; /* between two calls */
	int wake_fd;          /* eventfd: the thread must make progress, or end */
	bool is_stopping;     /* the thread must end; atomic */
	int start_rc;         /* of the thread */
	sem_t started;        /* start_rc is valid */
	struct rmem_thread thread;
	bool (*progress)(struct rsoft_dev *dev); /* one step of the thread */
};

/* The clock of timers, TSC cycles; tests replace it. */
extern uint64_t (*rwire_clock)(void);

#define RWIRE_COUNT(counter) __atomic_fetch_add(&(counter), 1, __ATOMIC_RELAXED)

/* rwire_req.c; under sq.lock. is_copying: requests may be, not under rx_lock. */
void rwire_req_run(struct rwire_qp *q, unsigned int lcore, bool is_copying);

/* rwire_comp.c; under sq.lock. */
void rwire_comp_pkt(struct rwire_qp *q, unsigned int lcore, const struct rwire_pkt *pkt);
/* Complete the requests of an unreliable service that were sent; false: no further packet was. */
bool rwire_comp_sent(struct rwire_qp *q, unsigned int lcore);

/* rwire_timer.c; under sq.lock. */
/* Retry when the timer has expired: RMEM_WC_SUCCESS, or RMEM_WC_RETRY_EXC_ERR. */
int rwire_timer_check(struct rwire_qp *q);
/* Whether that would do nothing, as of rwire::now. */
bool rwire_timer_is_early(const struct rwire_qp *q);
/* Rewind, as often as retry_cnt allows: RMEM_WC_SUCCESS, or RMEM_WC_RETRY_EXC_ERR. */
int rwire_retry(struct rwire_qp *q);
/* Send again from the oldest packet that is not acknowledged. */
void rwire_rewind(struct rwire_qp *q);

/* rwire_req_copy.c; under sq.lock. */
/* Execute the requests at the head that need no packet. False: more of them are left. */
bool rwire_req_copy_run(struct rwire_qp *q, unsigned int lcore);
/* Whether that would try to. */
bool rwire_req_copy_is_possible(const struct rwire_qp *q);
/*
 * Leave the queue to later posts, a poll, or a tick of the thread, so that one call copies more.
 * False: the program does not leave completions in the CQ, or sleeps until the next one.
 */
bool rwire_req_copy_defer(struct rwire_qp *q);
/* Whether a request should wait until no packet is in flight, since it may need none then. */
bool rwire_req_copy_is_near(const struct rwire_qp *q, uint32_t pos);

/* rwire_resp.c; under rx_lock. */
/* The rkey in the completion of a receive. */
#define RWIRE_CQE_RKEY(cqe) ((uint32_t)((cqe)->data >> RSOFT_WC_SHIFT(invalidated_rkey)))
void rwire_resp_pkt(struct rwire_qp *q, unsigned int lcore, const struct rwire_pkt *pkt);
/* End a SEND_WITH_INV whose grace period is over, and send what is owed; true: all was sent. */
bool rwire_resp_run(struct rwire_qp *q, unsigned int lcore);

/* rwire_reply.c; under rx_lock. */
/* Send the packets that the responder owes; true: all of them were sent. */
bool rwire_reply_run(struct rwire_qp *q);
/* The responder has something to send, or to wait for. */
void rwire_reply_schedule(struct rwire_qp *q);
/* Owe an acknowledgement, after the replies. */
void rwire_reply_ack(struct rwire_qp *q, uint32_t psn, uint8_t syndrome);
/* Acknowledge the message that is executed, up to psn; false: the port is full. */
bool rwire_reply_ack_now(struct rwire_qp *q, uint32_t psn);
/* Owe the reply to a duplicate. */
void rwire_reply_dup(struct rwire_qp *q, const struct rwire_reply *reply);

/* rwire_sge.c. */
/*
 * The SGEs of the bytes [offset, offset + n) of a list. Returns their number; 0: n is 0, or the
 * list is shorter.
 */
uint32_t rwire_sge_trim(const struct rmem_sge *sge, uint32_t num_sge, uint64_t offset, uint64_t n,
		struct rmem_sge *out);

/*
 * Check the SGEs of the bytes [offset, offset + n) of a request, which are read: an enum
 * rmem_wc_status. span->length is 0 unless all of them are contiguous in plain memory.
 */
int rwire_sge_span(const struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint64_t offset,
		uint32_t n, struct rsoft_span *span, uint32_t *vendor_err);

/*
 * The memory of the bytes [offset, offset + n) of a request, for the kernel to copy. Returns its
 * number of elements, up to RSOFT_MAX_SGE; 0: a key is not valid, or not of plain memory.
 */
uint32_t rwire_sge_iov(const struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint64_t offset,
		uint32_t n, bool is_to_sges, struct iovec *iov);

/* Copy n bytes between data and the SGEs of a request, from byte offset of these. */
int rwire_sge_copy(const struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint64_t offset,
		uint8_t *data, uint32_t n, bool is_to_sges, uint32_t *vendor_err);

/* rwire_tx.c; under tx_lock: a frame to fill, or NULL; and send it. */
struct rwire_frame *rwire_tx_get(struct rwire_qp *q);
void rwire_tx_put(struct rwire_qp *q, struct rwire_frame *frame, struct rwire_pkt *pkt);
/* The same of a packet that has its service and destination. */
void rwire_tx_send(struct rwire *wire, struct rwire_frame *frame, struct rwire_pkt *pkt);

/* rwire_ud.c. */
/* A QP of UD moves to RTR: allocate its struct rwire_qp, or -ENOMEM. */
int rwire_ud_start(struct rsoft_qp *qp);
/* Send what is queued. Under sq.lock. */
void rwire_ud_run(struct rwire_qp *q, unsigned int lcore);
/* Place a packet in a receive, or drop it. Under rx_lock. */
void rwire_ud_pkt(struct rwire_qp *q, const struct rwire_frame *frame, const struct rwire_pkt *pkt);
/* The same of a packet to a multicast group, for each attached QP. */
void rwire_ud_group_pkt(
		struct rwire *wire, const struct rwire_frame *frame, const struct rwire_pkt *pkt);
/* Receive the packets of a group, and no longer: 0, or -ENOMEM, -EIO; logged. */
int rwire_ud_join(struct rwire *wire, const uint8_t gid[16]);
void rwire_ud_leave(struct rwire *wire, const uint8_t gid[16]);

/* rwire_rx.c. */
/*
 * Receive and answer, unless another thread does. From inside of rsoft_grace_enter(). Returns
 * whether packets were received, or are left to send.
 */
bool rwire_progress(struct rwire *wire, unsigned int lcore);
/*
 * Process the packets that have arrived, unless the caller is no lcore. Outside of
 * rsoft_grace_enter(); may wait for the thread that receives.
 */
void rwire_catch_up(struct rwire *wire);
/*
 * Before rwire_progress(): let another thread run, which may be that of the peer, once in a number
 * of calls of rwire_idle(). Without locks, outside of rsoft_grace_enter().
 */
void rwire_yield(struct rwire *wire);
/* Let the thread, if there is one, make progress now. */
void rwire_wake(struct rwire *wire);
/* After rwire_progress() that returned false. */
void rwire_idle(struct rwire *wire);

/* rwire_dev.c. */
/* Its thread, if it has one, calls progress(): true if there were packets, or some are left. */
int rwire_open(struct rsoft_dev *dev, struct rmem_dev *base, bool (*progress)(struct rsoft_dev *));
void rwire_close(struct rsoft_dev *dev);
void rwire_stats_get(const struct rwire *wire, struct rmem_dev_stats *stats);

/* rwire_control.c: commands of rmem-ctl, with control=1. */
/* 0, or -EADDRINUSE, -ENOMEM; logged. */
int rwire_control_open(struct rwire *wire);
void rwire_control_close(struct rwire *wire);
/* Execute the commands that wait; of the thread. */
void rwire_control_serve(struct rwire *wire);

/* rwire_fail.c */
/* The requests of the QP end; those that need no packet are of an engine alone, if there is one. */
void rwire_fail_qp(struct rsoft_qp *qp, unsigned int lcore);
/*
 * As a NIC that is reset: all requests end with errors, and DEVICE_FATAL is reported, after which
 * the class refuses posts. A request that is posted concurrently finds its QP in ERR, and its post
 * ends it. Under rx_lock, from inside of rsoft_grace_enter().
 */
void rwire_fail_dev(struct rwire *wire, unsigned int lcore);

/* Whether packets of a service are acknowledged. */
static inline bool
rwire_service_is_reliable(uint8_t service)
{
	return service == RWIRE_RC || service == RWIRE_XRC;
}

/* Whether a QP in that state sends packets: in SQD those of begun requests. */
static inline bool
rwire_state_is_requesting(uint32_t state)
{
	return state == RMEM_QPS_RTS || state == RMEM_QPS_SQD;
}

/* Whether packets are in memory until they are received: none is lost, or held by the port. */
static inline bool
rwire_is_lossless(const struct rwire *wire)
{
	return !wire->port->has_icrc;
}

/* An open port counts as a pending QP: each poll makes progress, unless engines do. */
static inline uint32_t
rwire_nb_pending(const struct rsoft_dev *dev)
{
	return dev->wire != NULL && dev->args.progress != RSOFT_PROGRESS_ENGINE;
}

/* rwire_gid.c: tables of GIDs and P_Keys. */
/* Those of the arguments; 0, or -EINVAL, -EEXIST, -ENODEV, -EPERM, -ENOMEM, -EIO; logged. */
int rwire_gids_open(struct rwire *wire, const struct rsoft_args *args);
/*
 * Add an entry, and remove one; an event reports it. 0, or a negative errno: -EINVAL, -EEXIST (a
 * device of this process has it), -ENOSPC, -ENOENT (no such entry), -EOPNOTSUPP, -EBUSY (the first
 * one), and those of the port; not logged, but for those.
 */
int rwire_gid_add(struct rwire *wire, const char *text);
int rwire_gid_del(struct rwire *wire, const char *text);
/* A rule removes the first one but that of ip=, or adds it again. Under rx_lock. */
void rwire_gid_change(struct rwire *wire, bool is_removed);
int rwire_pkey_add(struct rwire *wire, uint16_t pkey);
int rwire_pkey_del(struct rwire *wire, uint16_t pkey);

/* rwire_qp.c. */
/* Of the packets of a QP, as struct rwire_qp has it. */
uint16_t rwire_qp_pkey(const struct rsoft_qp *qp);
/* Of a QP that may be connected: its index, or the entry of the table, has changed. */
void rwire_qp_set_pkey(struct rsoft_qp *qp);
/* -EINVAL: the device has no wire, or its port can't reach the GID; -ENOMEM. */
int rwire_qp_connect(struct rsoft_qp *qp, const struct rmem_qp_conn *conn);
/* The QP moves to RTS: take over its initial PSN, timeout and retries. Not while it sends. */
void rwire_qp_start(struct rsoft_qp *qp);
/* The QP moves from SQE to RTS, no request is left: continue with the next PSN. Under sq.lock. */
void rwire_qp_restart(struct rsoft_qp *qp);
/* Take over the timeout and the retries, also for packets in flight. Under sq.lock. */
void rwire_qp_set_retries(struct rsoft_qp *qp);
/* Whether requests have begun, and are not completed yet. Under sq.lock. */
bool rwire_qp_is_draining(const struct rsoft_qp *qp);
/* Whether it stopped sending, and can go on. Under sq.lock. */
bool rwire_qp_has_more(const struct rsoft_qp *qp);
/* Bytes that the last call copied directly. Under sq.lock. */
uint64_t rwire_qp_copied(const struct rsoft_qp *qp);
/* Detach the QP from the receiver, then free its struct rwire_qp; see Lifetime. */
void rwire_qp_stop(struct rsoft_qp *qp);
void rwire_qp_free(struct rsoft_qp *qp);

static inline bool
rwire_wr_is_read(const struct rmem_send_wr *wr)
{
	return wr->opcode == RMEM_WR_RDMA_READ || wr->opcode == RMEM_WR_RDMA_READ_WITH_INV;
}

static inline bool
rwire_wr_is_atomic(const struct rmem_send_wr *wr)
{
	return wr->opcode == RMEM_WR_ATOMIC_CMP_AND_SWP ||
			wr->opcode == RMEM_WR_ATOMIC_FETCH_AND_ADD;
}

/* Whether its answer is a response, as that of a READ: the peer keeps these in a ring. */
static inline bool
rwire_wr_has_response(const struct rmem_send_wr *wr)
{
	return rwire_wr_is_read(wr) || rwire_wr_is_atomic(wr) ||
			wr->opcode == RMEM_WR_ATOMIC_WRITE || wr->opcode == RMEM_WR_FLUSH;
}

#endif /* RWIRE_H */
