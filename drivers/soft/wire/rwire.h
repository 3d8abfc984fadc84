/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The engine for RC, UC, UD and XRC: requester, completer and responder of QPs whose peer is
 * reached with packets. UC packets need no acknowledgement: once sent, their PSN counts as
 * acknowledged. UD has its own requester and responder in rwire_ud.c. Each XRC request packet names
 * an SRQ, which its responder selects (rsoft_xrc.h); an XRC_SEND QP has no responder, and an
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
 * - Lock order: rx_lock, then sq.lock or rq.lock, then tx_lock. No thread waits for a grace period
 *   while it holds one of them.
 *
 * Lifetime: rwire_qp_connect() allocates a struct rwire_qp. A reset stores RMEM_QPS_RESET, waits
 * for a grace period, detaches the QP from the receiver (rwire_qp_stop()) and from the list of
 * pending QPs, and then frees it (rwire_qp_free()). A receiver finds it through rsoft_dev::qps and
 * checks the state first; it may pass a grace point while it holds rx_lock, which rwire_qp_stop()
 * takes.
 *
 * Invariant: addresses resolved from a key are not cached across packets. The key is checked for
 * each packet, so an invalidated key refuses the next packet.
 *
 * All of this is memory of the process, not DPDK shared memory.
 *
 * Each source file only calls files after it in this list: rwire_dev.c, rwire_control.c,
 * rwire_gid.c, rwire_port_fault.c, (rsoft_post.c), rwire_rx.c, rwire_xrc.c, rwire_req.c,
 * rwire_comp.c, rwire_timer.c, rwire_req_copy.c; rwire_fail.c, rwire_xrc_ctl.c, rwire_xrc_in.c,
 * rwire_resp.c, rwire_resp_dup.c, rwire_resp_error.c, rwire_reply.c; rwire_ud.c; rwire_qp.c;
 * rwire_xrc_qp_thread.c, rwire_xrc_qp_in.c, rwire_xrc_qp_out.c; rwire_xrc_out.c; rwire_pace.c,
 * rwire_sge.c, rwire_tx.c, rwire_netif.c.
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
#define RWIRE_WINDOW_BYTES  (128 * 1024) /* bytes in flight; fits in default socket buffers */
#define RWIRE_ACK_EVERY     16           /* packets per AckReq */
#define RWIRE_REPLY_BURST   64           /* packets of READ data sent per call */
#define RWIRE_DIRECT_BUDGET (UINT64_C(1) << 20) /* bytes copied directly per call */
#define RWIRE_MAX_RD_ATOMIC 16                  /* READs and atomics in flight */
/*
 * A READ is sent in pieces of a quarter of the window, so that at most RWIRE_MAX_RD_ATOMIC requests
 * are in flight, including these pieces.
 */
#define RWIRE_READ_PIECES 4
/*
 * A payload that the peer copies spans up to half of the window. Invariant: such a piece fits in
 * the window when all packets that requested an acknowledgement have got it, because at most
 * RWIRE_ACK_EVERY - 1 other packets are in flight.
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
	RWIRE_DIRECT_ASKED,  /* a packet has requested a grant */
	RWIRE_DIRECT_WORKS,  /* the last request was executed directly */
	RWIRE_DIRECT_FAILED, /* the request for a grant had no effect */
};

/* State of a packet that waits in the peer's device when its timer expires; see rwire_timer.c. */
struct rwire_unread {
	uint32_t una;   /* oldest PSN at that time */
	uint32_t sent;  /* packets sent to the peer's address until that time */
	uint32_t taken; /* packets of these received, as last reported */
	uint8_t left;   /* remaining restarts of the timer; 0: not waiting */
	bool is_asked;  /* late acknowledgements were requested after that */
};

struct rwire_req {
	struct rwire_wqe *wqe; /* indexed by slot of the send queue */
	uint32_t sq_pos;       /* request of the next packet */
	uint32_t begun;        /* requests before this position have PSNs */
	uint32_t psn;          /* PSN of the next packet */
	uint32_t next_psn;     /* first PSN not assigned to a request */
	uint32_t end_psn;      /* first PSN not sent yet */
	uint32_t una;          /* oldest PSN not acknowledged */
	uint32_t nb_rd;        /* requests with responses in [cons, begun) */
	uint32_t since_ack;    /* packets sent since the last AckReq */
	uint32_t asked_psn;    /* PSN after the last packet with an AckReq */
	/* The window is below rwire_qp::window after a loss (rwire_timer.c). */
	uint32_t window;    /* PSNs in flight at the start of a packet, at most */
	uint32_t threshold; /* window from which on it grows slowly */
	uint32_t grown;     /* PSNs acknowledged since it grew */
	uint32_t ack_every; /* packets per AckReq, at most RWIRE_ACK_EVERY */
	uint8_t retry_left;
	uint8_t rnr_left;
	bool is_rewound;         /* rewound since una last advanced */
	bool has_more;           /* the last call stopped early; the next can continue */
	bool is_quiet;           /* the last call found that only the peer, or a timer, can go on */
	bool is_grant_requested; /* grant requested for the request at the head */
	uint8_t direct;          /* enum rwire_direct_state */
	bool is_mapped;          /* the last direct copy needed no system call */
	uint8_t nb_unmapped;     /* DIRECT_UNMAPPED for each one that did, or had no grant */
	uint64_t direct_done;    /* bytes of the head that are copied directly */
	uint64_t copied;         /* bytes copied directly by the last call */
	uint64_t deferred_at;    /* time at which the oldest request was deferred, TSC; 0: none */
	uint32_t nb_undeferred_posts; /* posts to send without deferral */
	uint8_t nb_long_waits;        /* consecutive deferrals that timed out */
	uint64_t deadline;            /* retransmission timer, TSC; 0: not running */
	uint64_t rnr_until;           /* send nothing before this time, TSC; 0: not waiting */
	uint64_t timeout;             /* local ACK timeout, TSC cycles; 0: infinite */
	/* Rate limit (rwire_pace.c): TSC cycles per KiB; 0: none. */
	uint64_t pace;
	uint64_t pace_at;   /* send nothing before this time, TSC */
	uint64_t pace_cost; /* cycles of the last packet, after which pace_at is */
	/* sq.cons + 1 of a multicast message that was delivered to QPs of this process; 0: none */
	uint32_t looped;
	struct rwire_unread unread;
};

/* Reply to a READ, an atomic, an ATOMIC_WRITE or a FLUSH. */
struct rwire_reply {
	uint8_t opcode;  /* opcode of the request */
	bool is_away;    /* READ: another process has the memory (rwire_xrc.h) */
	bool has_failed; /* READ: the memory is not readable */
	uint32_t psn;    /* PSN of the first response */
	uint32_t nb_psn;
	uint32_t sent; /* responses sent */
	uint32_t rkey;
	uint32_t length;
	uint32_t pd;   /* XRC READ: PD of its SRQ */
	uint32_t srqn; /* is_away: its SRQ */
	uint64_t addr;
	uint64_t value; /* atomic: previous value */
};

struct rwire_rsp {
	uint32_t psn; /* expected PSN */
	uint32_t msn;
	/*
	 * PSN of the last executed SEND or WRITE. Invariant: an ACK never has the PSN of a READ, an
	 * atomic or an ATOMIC_WRITE, because a requester may take it for their response, which has
	 * another opcode.
	 */
	uint32_t done_psn;
	bool is_nak_sent; /* a NAK was sent for the gap before psn */
	bool has_dropped; /* requests were dropped while busy */
	uint8_t message;  /* RWIRE_IS_SEND or RWIRE_IS_WRITE within a message of several packets */
	uint32_t rkey;    /* rkey of the WRITE */
	uint64_t addr;    /* address of the next byte of the WRITE */
	uint64_t left;    /* bytes of the WRITE not yet received */
	uint64_t done;    /* bytes of the message placed so far */
	uint32_t vendor_err; /* cause of the last refused access to memory */

	/* Ring of replies to send, and of results of the last atomics for duplicates. */
	struct rwire_reply reply[RWIRE_MAX_RD_ATOMIC];
	uint32_t reply_head;          /* next to send */
	uint32_t reply_tail;          /* next to fill */
	struct rwire_reply dup_reply; /* reply to a duplicate, or the READ that failed */
	bool has_dup_reply;

	bool has_failed; /* the QP is in ERR; syndrome answers each request */
	bool is_acked;   /* the current packet, by rwire_reply_ack_now() */
	bool has_ack;    /* ack_psn and syndrome must be sent, after the replies */
	uint8_t syndrome;
	uint32_t ack_psn;

	/* XRC: requests that another process executes (rwire_xrc.h). */
	struct rwire_xrc_out *away; /* link of the message in progress; NULL: none */
	uint32_t nb_away;           /* PSNs of the packet that waits for an answer; 0: none */
	uint32_t nb_held;           /* PSNs of the packets that are held until then */
	bool is_away;               /* the message in progress is one of them */
	/* Link with the data of the reply that is being sent; NULL: none. No answer is outstanding
	 * with both, nb_away and is_fetching. */
	struct rwire_xrc_out *fetch;
	bool is_fetching; /* the data was requested */

	bool is_inv_waiting; /* a SEND_WITH_INV waits for its grace period */
	uint64_t inv_token;
	struct rsoft_key *inv_key;
	struct rsoft_cqe inv_cqe;
};

LIST_HEAD(rwire_xrc_out_list, rwire_xrc_out);
STAILQ_HEAD(rwire_xrc_held_list, rwire_xrc_held);

struct rwire_qp {
	struct rsoft_qp *qp;
	struct rwire *wire;
	struct rwire_addr addr; /* address of the peer; unused by UD */
	uint32_t qpn;           /* QP number of the peer; unused by UD */
	uint8_t service;        /* RWIRE_RC, RWIRE_UC, RWIRE_UD or RWIRE_XRC */
	uint16_t pkey;          /* bits that differ from RWIRE_PKEY; atomic */
	/* GRH fields of packets to the peer; of UD only gid_slot is used, for its port. */
	struct rsoft_grh grh;
	uint32_t mtu;
	uint32_t window; /* PSNs in flight, at most */
	struct rwire_req req;
	struct rwire_rsp rsp;
	uint64_t cnp_at;                 /* time of the last CNP, TSC; 0: none; rx_lock */
	struct rwire_xrc_out_list away;  /* links to SRQs of other processes; rx_lock */
	struct rwire_xrc_held_list held; /* packets of rwire_rsp::nb_held; rx_lock */
	uint32_t held_bytes;
	bool is_busy;               /* a reply or a wait blocks the responder; rx_lock */
	bool is_listed;             /* in rwire::reply_list; rx_lock */
	TAILQ_ENTRY(rwire_qp) next; /* next in rwire::reply_list */
	bool is_late;               /* in rwire::late_list; rx_lock */
	uint64_t late_at;           /* since then, TSC */
	TAILQ_ENTRY(rwire_qp) next_late;
};

TAILQ_HEAD(rwire_qp_list, rwire_qp);

/* Counters of the engine; atomic. */
struct rwire_stats {
	uint64_t retransmits; /* times that a QP sent again from its oldest packet */
	uint64_t timeouts;
	uint64_t duplicates; /* requests received again */
	uint64_t gaps;       /* requests after a PSN gap */
	uint64_t naks_sent;
	uint64_t naks_received;
	uint64_t rnr_sent;
	uint64_t icrc_errors;
	uint64_t malformed;
	uint64_t wrong_peer; /* source address is not the QP's peer */
	uint64_t no_qp;
	uint64_t busy_drops;
	uint64_t drop_no_recv; /* messages of unreliable services */
	uint64_t drop_length;
	uint64_t drop_access;
	uint64_t drop_qkey;
	uint64_t drop_pkey;
	uint64_t ecn_marked; /* RC and UC packets received with Congestion Experienced */
	uint64_t cnps_sent;
	uint64_t cnps_received;
	uint64_t link_recvs; /* of links to SRQs, as of QPs: rwire_xrc_in.c */
	uint64_t link_bad_rkeys;
	uint64_t link_faults;
};

struct rwire {
	struct rsoft_dev *dev;
	struct rmem_dev *base_dev;
	struct rwire_port *port;
	struct rwire_port *inner; /* the innermost port */
	struct rwire_netif netif[RSOFT_MAX_PORTS];
	int control_fd;                  /* socket of rwire_control.c; -1: none */
	bool is_frozen[RSOFT_MAX_PORTS]; /* by rwire_control.c; used by the thread */
	bool has_failed;                 /* the same */
	bool has_rule_gid;               /* a rule has removed rule_gid; rx_lock */
	struct rwire_addr rule_gid;
	struct rwire_owners owners; /* with ip=host */
	struct rwire_allow allow;   /* packets from other addresses are dropped */
	rte_ticketlock_t tx_lock;
	rte_ticketlock_t rx_lock;
	struct rwire_qp_list reply_list; /* QPs whose responder has packets to send */
	/* QPs that have executed messages which they acknowledge after late_cycles; rx_lock. */
	struct rwire_qp_list late_list;
	uint64_t late_cycles;
	uint64_t full_at; /* an ending QP had waited in vain for space, TSC; 0: none; rx_lock */
	uint64_t quiet_cycles; /* time for which a poll relies on rsoft_cq::quiet_at */
	uint64_t rare_cycles;  /* time between two polls that is long for the port */
	bool has_unflushed;    /* the port has packets of responders to flush; rx_lock */
	struct rwire_xrc *xrc; /* NULL: no XRC domain is shared; written under rx_lock, atomic */
	bool has_xrc;          /* xrc is set, or there was an XRC_RECV QP; the same */
	struct rwire_xrc_qps *xrc_qps; /* NULL: no XRC_RECV QP is shared; set once */
	uint64_t nb_polls;             /* number of attempts to receive; atomic */
	uint32_t nb_idle;              /* calls of rwire_idle(); atomic */
	bool has_waiting;              /* a post has deferred requests; atomic */
	struct rwire_stats stats;
	uint64_t now;        /* the clock as of one of the last attempts to receive, TSC; atomic */
	uint32_t nb_untimed; /* attempts since then; rx_lock */
	/* A time at which all packets that had arrived were processed, TSC; atomic. */
	uint64_t quiet_at;
	uint64_t idle_at;     /* last call of rwire_port_ops::tx_idle, TSC; rx_lock */
	uint64_t idle_cycles; /* time between two such calls */
	int wake_fd;          /* eventfd: the thread must make progress, or end */
	bool is_stopping;     /* the thread must end; atomic */
	int start_rc;         /* result of starting the thread */
	sem_t started;        /* start_rc is valid */
	struct rmem_thread thread;
	bool (*progress)(struct rsoft_dev *dev); /* makes progress, for the thread */
	pid_t process;                           /* process of the thread */
	LIST_ENTRY(rwire) entry;                 /* wires with a thread (rwire_dev.c) */
};

/* The clock of timers in TSC cycles; tests replace it. */
extern uint64_t (*rwire_clock)(void);

#define RWIRE_COUNT(counter) __atomic_fetch_add(&(counter), 1, __ATOMIC_RELAXED)

/* rwire_req.c; under sq.lock. is_copying: direct copies are allowed; false under rx_lock. */
void rwire_req_run(struct rwire_qp *q, unsigned int lcore, bool is_copying);

/* rwire_comp.c; under sq.lock. */
void rwire_comp_pkt(struct rwire_qp *q, unsigned int lcore, const struct rwire_pkt *pkt);
/* Complete the sent requests of an unreliable service; false if nothing more was sent. */
bool rwire_comp_sent(struct rwire_qp *q, unsigned int lcore);

/* rwire_timer.c; under sq.lock. */
/* Check the timer, and retry if it has expired: RMEM_WC_SUCCESS, or RMEM_WC_RETRY_EXC_ERR. */
int rwire_timer_check(struct rwire_qp *q);
/* Whether the check would do nothing, as of rwire::now. */
bool rwire_timer_is_early(const struct rwire_qp *q);
/* Rewind, if retry_cnt permits: RMEM_WC_SUCCESS, or RMEM_WC_RETRY_EXC_ERR. */
int rwire_retry(struct rwire_qp *q);
/* Packets were lost: reduce the window to so many PSNs; acknowledgements let it grow. */
void rwire_shrink(struct rwire_qp *q, uint32_t window);
/* Send again from the oldest unacknowledged packet. */
void rwire_rewind(struct rwire_qp *q);

/* rwire_pace.c: QPs with a rate limit; under sq.lock. */
/* Whether the next packet must wait. */
bool rwire_pace_is_waiting(struct rwire_qp *q);
/* A packet with so many bytes of payload was sent. */
void rwire_pace_count(struct rwire_qp *q, uint64_t bytes);

/* rwire_req_copy.c; under sq.lock. */
/* Execute the requests at the head that need no packet; false if more of them are left. */
bool rwire_req_copy_run(struct rwire_qp *q, unsigned int lcore);
/* Whether rwire_req_copy_run() would try to. */
bool rwire_req_copy_is_possible(const struct rwire_qp *q);
/*
 * Leave the queue to later posts, a poll, or the thread, so that one call copies more. False if the
 * program does not leave completions in the CQ, or sleeps until the next completion.
 */
bool rwire_req_copy_defer(struct rwire_qp *q);
/* Whether a request should wait until no packet is in flight, because it may then need none. */
bool rwire_req_copy_is_near(const struct rwire_qp *q, uint32_t pos);

/* Number of PSNs of a packet; more than one only for a READ, or a payload in shared memory. */
static inline uint32_t
rwire_pkt_nb_psn(const struct rwire_qp *q, const struct rwire_pkt *pkt)
{
	if (pkt->opcode == RWIRE_READ_REQUEST)
		return rwire_nb_pkts(pkt->dma_len, q->mtu);
	return pkt->is_shared ? rwire_nb_pkts(pkt->payload_len, q->mtu) : 1;
}

/* rwire_resp.c; under rx_lock. */
/* Rkey in the completion of a receive. */
#define RWIRE_CQE_RKEY(cqe) ((uint32_t)((cqe)->data >> RSOFT_WC_SHIFT(invalidated_rkey)))
void rwire_resp_pkt(struct rwire_qp *q, unsigned int lcore, const struct rwire_pkt *pkt);
/* End a SEND_WITH_INV whose grace period is over, and send pending replies; true if all are
 * sent. */
bool rwire_resp_run(struct rwire_qp *q, unsigned int lcore);
/* The process of the SRQ has executed the packet of rwire_rsp::nb_away, or not. */
void rwire_resp_answered(
		struct rwire_qp *q, const struct rwire_pkt *pkt, int status, uint32_t vendor_err);
/* It has sent the data of rwire_rsp::fetch, or not. */
void rwire_resp_fetched(struct rwire_qp *q, int status, uint32_t vendor_err);
/*
 * Execute a packet for the XRC_RECV QP of another process. Return an enum rmem_wc_status or
 * rsoft_wait; with success, *reply is that of a READ or an atomic. After RSOFT_WAIT_GRACE,
 * rwire_resp_serve_end() ends it: RSOFT_WAIT_GRACE, too, or the status.
 */
int rwire_resp_serve(struct rwire_qp *q, unsigned int lcore, const struct rwire_pkt *pkt,
		uint32_t *vendor_err, struct rwire_reply *reply);
int rwire_resp_serve_end(struct rwire_qp *q, unsigned int lcore);

/* rwire_resp_error.c; under rx_lock. */
/* Opcode of a request; for WRITEs and SENDs without immediate data or invalidation. */
uint8_t rwire_resp_opcode(const struct rwire_pkt *pkt);
/* Record the error of a request of the peer. */
void rwire_resp_note(const struct rwire_qp *q, const struct rmem_send_wr *wr, int status,
		uint32_t vendor_err);
/* Record the error of a request that was refused without consuming a receive; return an enum
 * rmem_vendor_err. */
uint32_t rwire_resp_note_error(const struct rwire_qp *q, const struct rwire_pkt *pkt, int status);

/* Whether the packet is an ATOMIC_WRITE with its only valid length. */
static inline bool
rwire_pkt_is_word(const struct rwire_pkt *pkt)
{
	return pkt->opcode == RWIRE_ATOMIC_WRITE && pkt->payload_len == sizeof(uint64_t) &&
			pkt->dma_len == sizeof(uint64_t);
}

/* rwire_resp_dup.c; under rx_lock. Answer a request again that was already executed (IBTA
 * 9.7.4.5.1). */
void rwire_resp_duplicate(struct rwire_qp *q, const struct rwire_pkt *pkt);

/* rwire_reply.c; under rx_lock. */
/* Send the pending packets of the responder; true if all are sent. */
bool rwire_reply_run(struct rwire_qp *q);
/* The responder has packets to send, or must wait. */
void rwire_reply_schedule(struct rwire_qp *q);
/* Request an acknowledgement after the pending replies. */
void rwire_reply_ack(struct rwire_qp *q, uint32_t psn, uint8_t syndrome);
/* Acknowledge the executed messages within rwire::late_cycles. */
void rwire_reply_later(struct rwire_qp *q);
/* Request the acknowledgements for which that time is over; now is the TSC. */
void rwire_reply_late(struct rwire *wire, uint64_t now);
/* The QP is detached: send its acknowledgement now. */
void rwire_reply_end_late(struct rwire_qp *q);
/* Acknowledge the current message, up to psn; false if the port is full. */
bool rwire_reply_ack_now(struct rwire_qp *q, uint32_t psn);
/* Copy the bytes of the next READ response; false if the key is not valid for them. */
bool rwire_reply_data(
		struct rwire_qp *q, const struct rwire_reply *reply, uint8_t *data, uint32_t n);
/* Discard the replies that are not sent. */
void rwire_reply_drop(struct rwire_qp *q);
/* Request the reply to a duplicate. */
void rwire_reply_dup(struct rwire_qp *q, const struct rwire_reply *reply);

/* rwire_sge.c. */
/*
 * Get the SGEs of the bytes [offset, offset + n) of a list. Return their number; 0 if n is 0, or
 * the list is shorter.
 */
uint32_t rwire_sge_trim(const struct rmem_sge *sge, uint32_t num_sge, uint64_t offset, uint64_t n,
		struct rmem_sge *out);

/*
 * Check the SGEs of the bytes [offset, offset + n) of a request, for reading; return an enum
 * rmem_wc_status. span->length is 0 unless they are all contiguous in plain memory.
 */
int rwire_sge_span(const struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint64_t offset,
		uint32_t n, struct rsoft_span *span, uint32_t *vendor_err);

/*
 * Get the memory of the bytes [offset, offset + n) of a request, to be copied by the kernel. Return
 * the number of elements, up to RSOFT_MAX_SGE; 0 if a key is not valid, or not for plain memory.
 */
uint32_t rwire_sge_iov(const struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint64_t offset,
		uint32_t n, bool is_to_sges, struct iovec *iov);

/* Copy n bytes between data and the SGEs of a request, from byte offset of the SGEs on. */
int rwire_sge_copy(const struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint64_t offset,
		uint8_t *data, uint32_t n, bool is_to_sges, uint32_t *vendor_err);

/* rwire_tx.c; under tx_lock. Get a frame to fill, or NULL; and send it. */
struct rwire_frame *rwire_tx_get(struct rwire_qp *q);
/*
 * After rwire_tx_get() returned NULL, of an unreliable service: whether the port has been full for
 * this time. Then the message is dropped, and counted.
 */
bool rwire_tx_is_late(struct rwire_qp *q, uint32_t wait_ms);
void rwire_tx_put(struct rwire_qp *q, struct rwire_frame *frame, struct rwire_pkt *pkt);
/* Send a packet that already has its service and destination. */
void rwire_tx_send(struct rwire *wire, struct rwire_frame *frame, struct rwire_pkt *pkt);
/* Send a frame that has its headers and length, but no ICRC. */
void rwire_tx_frame(struct rwire *wire, struct rwire_frame *frame);

/* rwire_ud.c. */
/* Allocate the struct rwire_qp of a UD QP that moves to RTR; 0, or -ENOMEM. */
int rwire_ud_start(struct rsoft_qp *qp);
/* Send queued requests. Under sq.lock. */
void rwire_ud_run(struct rwire_qp *q, unsigned int lcore);
/* Place a packet in a receive, or drop it. Under rx_lock. */
void rwire_ud_pkt(struct rwire_qp *q, const struct rwire_frame *frame, const struct rwire_pkt *pkt);
/* The same for a packet to a multicast group, for each attached QP. */
void rwire_ud_group_pkt(
		struct rwire *wire, const struct rwire_frame *frame, const struct rwire_pkt *pkt);
/* Join or leave a multicast group: 0, or -ENOMEM, -EIO; logged. */
int rwire_ud_join(struct rwire *wire, const uint8_t gid[16]);
void rwire_ud_leave(struct rwire *wire, const uint8_t gid[16]);

/* rwire_rx.c. */
/*
 * Receive and answer, unless another thread does. From inside of rsoft_grace_enter(). Return
 * whether packets were received, or are left to send.
 */
bool rwire_progress(struct rwire *wire, unsigned int lcore);
/*
 * Process the packets that have arrived, unless the caller is not an lcore. Outside of
 * rsoft_grace_enter(); may wait for the receiving thread.
 */
void rwire_catch_up(struct rwire *wire);
/*
 * Called before rwire_progress(): once in a number of calls of rwire_idle(), yield to another
 * thread, which may be the peer's. Without locks, outside of rsoft_grace_enter().
 */
void rwire_yield(struct rwire *wire);
/* Wake the thread, if there is one, to make progress now. */
void rwire_wake(struct rwire *wire);
/* Called after rwire_progress() has returned false. */
void rwire_idle(struct rwire *wire);

/* rwire_dev.c. */
/* Open the wire. Its thread, if any, calls progress(), which returns true if there were packets, or
 * some are left. */
int rwire_open(struct rsoft_dev *dev, struct rmem_dev *base, bool (*progress)(struct rsoft_dev *));
void rwire_close(struct rsoft_dev *dev);
void rwire_stats_get(const struct rwire *wire, struct rmem_dev_stats *stats);

/* rwire_control.c: commands of rmem-ctl, with control=1. */
/* Open the socket: 0, or -EADDRINUSE, -ENOMEM; logged. */
int rwire_control_open(struct rwire *wire);
void rwire_control_close(struct rwire *wire);
/* Execute the waiting commands; called by the thread. */
void rwire_control_serve(struct rwire *wire);

/* rwire_fail.c */
/* End all requests of the QP, which is in ERR; if it has an engine, local requests are left to
 * it. */
void rwire_fail_qp(struct rsoft_qp *qp, unsigned int lcore);
/*
 * Fail the device like a NIC that is reset: all requests end with errors, and DEVICE_FATAL is
 * reported, after which the class refuses posts. A request posted concurrently finds its QP in ERR,
 * and its post ends it. Under rx_lock, from inside of rsoft_grace_enter().
 */
void rwire_fail_dev(struct rwire *wire, unsigned int lcore);

/* Whether packets of a service are acknowledged. */
static inline bool
rwire_service_is_reliable(uint8_t service)
{
	return service == RWIRE_RC || service == RWIRE_XRC;
}

/* Whether a QP in that state sends packets; in SQD only packets of begun requests. */
static inline bool
rwire_state_is_requesting(uint32_t state)
{
	return state == RMEM_QPS_RTS || state == RMEM_QPS_SQD;
}

/* Whether packets are in memory until they are received, so that none is lost, or held by the
 * port. */
static inline bool
rwire_is_lossless(const struct rwire *wire)
{
	return !wire->port->has_icrc;
}

/*
 * Whether a thread with locks of the wire need not disable its cancellation: the port does so for
 * its system calls, which are few, and there are no others.
 */
static inline bool
rwire_is_uncancellable(const struct rwire *wire)
{
	return rwire_is_lossless(wire) && !__atomic_load_n(&wire->has_xrc, __ATOMIC_RELAXED);
}

/* Half of a small window is acknowledged while the other half is in flight. */
static inline void
rwire_set_window(struct rwire_qp *q, uint32_t window)
{
	q->req.window = window;
	q->req.ack_every = window == q->window
			? RWIRE_ACK_EVERY
			: RTE_MIN((window + 1) / 2, (uint32_t)RWIRE_ACK_EVERY);
}

/* Number of pending entries for an open port: it counts as a pending QP, so that each poll makes
 * progress, unless engines do. */
static inline uint32_t
rwire_nb_pending(const struct rsoft_dev *dev)
{
	return dev->wire != NULL && dev->args.progress != RSOFT_PROGRESS_ENGINE;
}

/* rwire_gid.c: tables of GIDs and P_Keys. */
/* Open the ports of ip= after the first; errors as below. Before the wire has its threads. */
int rwire_ports_open(struct rwire *wire, const char *ip);
/* Set the GIDs and P_Keys of the arguments; 0, or -EINVAL, -EEXIST, -ENODEV, -EPERM, -ENOMEM, -EIO;
 * logged. */
int rwire_gids_open(struct rwire *wire, const struct rsoft_args *args);
/*
 * Add or remove an entry, and report that by an event. Return 0, or an error that is not logged:
 * -EINVAL, -EEXIST (a device of this process has it), -ENOSPC, -ENOENT (no such entry),
 * -EOPNOTSUPP, -EBUSY (the first entry); or a logged error of the port.
 */
int rwire_gid_add(struct rwire *wire, uint32_t port_num, const char *text);
int rwire_gid_del(struct rwire *wire, uint32_t port_num, const char *text);
/* A rule removes the first GID of port 1 other than the one of ip=, or adds it again. Under
 * rx_lock. */
void rwire_gid_change(struct rwire *wire, bool is_removed);
int rwire_pkey_add(struct rwire *wire, uint32_t port_num, uint16_t pkey);
int rwire_pkey_del(struct rwire *wire, uint32_t port_num, uint16_t pkey);

/* rwire_qp.c. */
/* P_Key for the packets of a QP, as in struct rwire_qp. */
uint16_t rwire_qp_pkey(const struct rsoft_qp *qp);
/* Update the P_Key of a QP, which may be connected, after its index or the table entry has
 * changed. */
void rwire_qp_set_pkey(struct rsoft_qp *qp);
/* The device has an XRC_RECV QP, which is not connected yet: rwire::has_xrc. */
void rwire_qp_note_xrc(struct rwire *wire);
/* Connect a QP. -EINVAL: the device has no wire, or its port can't reach the GID; -ENOMEM. */
int rwire_qp_connect(struct rsoft_qp *qp, const struct rmem_qp_conn *conn);
/* The QP moves to RTS: apply its initial PSN, timeout and retries. Not while it sends. */
void rwire_qp_start(struct rsoft_qp *qp);
/* The QP moves from SQE to RTS without requests: continue with the next PSN. Under sq.lock. */
void rwire_qp_restart(struct rsoft_qp *qp);
/* Apply the timeout and retries, also to packets in flight. Under sq.lock. */
void rwire_qp_set_retries(struct rsoft_qp *qp);
/* Limit the rate of sends to kbit/s; 0: no limit. Under sq.lock. */
void rwire_qp_set_rate(struct rsoft_qp *qp, uint32_t kbps);
/* Whether begun requests are not completed yet. Under sq.lock. */
bool rwire_qp_is_draining(const struct rsoft_qp *qp);
/* Whether it stopped sending early, and can continue. Under sq.lock. */
bool rwire_qp_has_more(const struct rsoft_qp *qp);
/* Whether only a packet, or a timer, lets it go on. Under sq.lock. */
bool rwire_qp_is_quiet(const struct rsoft_qp *qp);
/* Bytes copied directly by the last call. Under sq.lock. */
uint64_t rwire_qp_copied(const struct rsoft_qp *qp);
/* Detach the QP from the receiver; then free its struct rwire_qp. See Lifetime. */
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

/* Whether the request is answered by a response, like a READ; the peer keeps these in a ring. */
static inline bool
rwire_wr_has_response(const struct rmem_send_wr *wr)
{
	return rwire_wr_is_read(wr) || rwire_wr_is_atomic(wr) ||
			wr->opcode == RMEM_WR_ATOMIC_WRITE || wr->opcode == RMEM_WR_FLUSH;
}

#endif /* RWIRE_H */
