/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * XRC domains of several processes: requests that name an SRQ of another process.
 *
 * The process with the XRC_RECV QP (the forwarder) connects to the socket of the SRQ
 * (port/rwire_xrc_socket.h), by one link for each pair of QP and SRQ, and sends it the packets of
 * requests. The process with the SRQ (the owner) executes them as if they had arrived on its wire,
 * with a responder of its own for the link, and returns their status, and the data of a READ or the
 * result of an atomic, which the forwarder sends to the peer.
 *
 * - Each end first sends a hello with a descriptor of the domain's file. The forwarder keeps the
 *   first packet until the hello of the owner.
 * - The owner answers each packet that requests an answer: the first and last packet of a message,
 *   and every RWIRE_XRC_WINDOW-th one in between. Until the answer, the forwarder holds the next
 *   packets of the QP (rwire_rsp::nb_away, nb_held), and answers the peer only then. It drops those
 *   beyond RWIRE_XRC_HELD, and requests them afterwards, as after any wait of the responder.
 * - A READ is answered with RWIRE_XRC_CHUNK bytes. The forwarder requests the rest when these are
 *   sent (rwire_rsp::fetch), so it holds no more of them, and the owner checks the key each time.
 *   Later packets of the QP are held until the last response is sent. A duplicate READ is read
 *   again from the owner; the result of an atomic is repeated by the forwarder.
 * - If the link ends, the SRQ no longer exists: the forwarder refuses the request. If the forwarder
 *   resets its QP or ends, the owner returns the receive of an unfinished message to the SRQ.
 *
 * Invariants:
 * - All state is protected by rwire::rx_lock; no system call on a socket waits.
 * - Each end copies a message before it checks it. The owner executes it with the checks of a
 *   packet of the wire: SGEs, keys, PD and lengths are its own; the rights of the QP are the
 *   forwarder's, which is a process of the same user with the file open.
 * - A link with an unfinished message, an outstanding answer, or the data of a reply, is not closed
 *   to make space.
 */

#ifndef RWIRE_XRC_H
#define RWIRE_XRC_H

#include "../queue/rsoft_xrc.h"
#include "rwire.h"

#define RWIRE_XRC_VERSION 1
#define RWIRE_XRC_HELD    (256 * 1024) /* bytes of the packets that a QP holds */
#define RWIRE_XRC_WINDOW  8            /* packets per answer; a socket of Linux holds 10 messages */
#define RWIRE_XRC_CHUNK   (32 * 1024)  /* bytes of a READ per answer: whole packets */

/* First message of each end. */
struct rwire_xrc_hello {
	char magic[8];
	uint32_t version;
	int32_t status;  /* of the owner: 0, or why it refuses the link, as in an answer */
	uint32_t qp_num; /* of the forwarder: its XRC_RECV QP */
	uint32_t mtu;    /* of the forwarder: path MTU of the QP */
};

/* Bits of rwire_xrc_request::flags. */
#define RWIRE_XRC_SOLICITED (1u << 0)
#define RWIRE_XRC_SHARED    (1u << 1) /* the payload spans several PSNs */
#define RWIRE_XRC_ANSWERED  (1u << 2) /* the owner answers */
#define RWIRE_XRC_AGAIN     (1u << 3) /* the rest, or a duplicate, of a READ that was accepted */

/* Rights of the peer that a request may need. */
#define RWIRE_XRC_ACCESS (RMEM_ACCESS_REMOTE | RMEM_ACCESS_FLUSH)

/* A packet of the forwarder; its payload follows. */
struct rwire_xrc_request {
	uint32_t seq;
	uint8_t opcode; /* enum rwire_opcode of a request */
	uint8_t flags;
	uint8_t type; /* FLUSH */
	uint8_t level;
	uint32_t access; /* rights of the peer */
	uint32_t imm;
	uint32_t rkey;
	uint32_t dma_len;
	uint64_t addr;
	uint64_t compare; /* atomic */
	uint64_t swap_add;
};

/* With RMEM_WC_SUCCESS, rwire_xrc_data_len() bytes of data follow. */
struct rwire_xrc_answer {
	uint32_t seq;
	int32_t status; /* enum rmem_wc_status, or RSOFT_WAIT_RNR */
	uint32_t vendor_err;
};

/* The object of an event of the epoll descriptor; first member of the structs below. */
struct rwire_xrc_end {
	enum {
		RWIRE_XRC_LISTENER,
		RWIRE_XRC_IN,
		RWIRE_XRC_OUT,
	} kind;
	int fd; /* -1: closed */
};

/* The socket of an SRQ of this process. */
struct rwire_xrc_listener {
	struct rwire_xrc_end end;
	struct rsoft_srq *srq;
	bool is_off; /* not watched: no descriptor was free */
	LIST_ENTRY(rwire_xrc_listener) next;
};

/* A link to an SRQ of this process, with its responder. */
struct rwire_xrc_in {
	struct rwire_xrc_end end;
	struct rsoft_srq *srq;
	bool is_open;   /* the hello was received */
	bool is_ending; /* close it after the grace period of a SEND_WITH_INV */
	int status;     /* of the first request that failed; RMEM_WC_SUCCESS: none */
	uint32_t vendor_err;
	uint32_t seq; /* of a SEND_WITH_INV that waits */
	struct rmem_qp_error last_error;
	LIST_ENTRY(rwire_xrc_in) next;
	struct rwire_qp q;
	struct rsoft_qp qp;
};

LIST_HEAD(rwire_xrc_in_list, rwire_xrc_in);

/* A link from an XRC_RECV QP to an SRQ of another process. */
struct rwire_xrc_out {
	struct rwire_xrc_end end;
	struct rwire_qp *q;
	uint32_t srqn;
	uint32_t seq;           /* of the last request */
	uint32_t nb_unanswered; /* packets of the message since the last answer */
	bool is_open;           /* the hello was received */
	struct rwire_pkt pkt;   /* with rwire_rsp::nb_away: the packet that waits */
	uint8_t *data;          /* of the answer that is outstanding, or was received last */
	uint32_t data_len;      /* 0: data is NULL */
	uint32_t data_at;       /* offset of the first byte in the READ */
	uint8_t *held;          /* the first request, until the hello */
	uint32_t held_len;
	TAILQ_ENTRY(rwire_xrc_out) lru;
	LIST_ENTRY(rwire_xrc_out) next; /* in rwire_qp::away */
};

/* A packet that is executed after the answer for another one. */
struct rwire_xrc_held {
	STAILQ_ENTRY(rwire_xrc_held) next; /* in rwire_qp::held */
	struct rwire_pkt pkt;
	uint8_t payload[];
};

struct rwire_xrc {
	int epoll;
	uint32_t max; /* links; so many descriptors are left to the application */
	uint32_t nb;
	uint32_t nb_waiting; /* links in with a SEND_WITH_INV that waits */
	uint32_t nb_off;     /* listeners that are not watched */
	uint64_t off_at;     /* since this time, TSC */
	bool is_refusal_logged;
	LIST_HEAD(rwire_xrc_listener_list, rwire_xrc_listener) listeners;
	struct rwire_xrc_in_list ins;
	TAILQ_HEAD(rwire_xrc_out_lru, rwire_xrc_out) outs; /* least recently used first */
	struct rwire_xrc_request request;                  /* being received; its payload follows */
	uint8_t payload[RWIRE_MAX_SHARED];                 /* or the data of the answer */
};

/* rwire_xrc_ctl.c: control path. */
/*
 * Open the domain of a file, so that other processes find it. *is_known: whether the domain is
 * known to exist; with is_probing, set if it exists in another process. Return 0, or -ENOMEM;
 * logged.
 */
int rwire_xrc_domain_open(struct rsoft_xrcd *xrcd, bool *is_known, bool is_probing);
/* Reserve the number of an SRQ, and accept requests for it: as rsoft_xrc_claim::open. */
int rwire_xrc_srq_open(struct rsoft_srq *srq);
void rwire_xrc_srq_close(struct rsoft_srq *srq);
void rwire_xrc_close(struct rwire *wire);
/* Close the descriptors of the parent, in a child of fork(). */
void rwire_xrc_forked(const struct rsoft_dev *dev);

/* rwire_xrc.c */
/*
 * Process the messages of all links; return their number, or 1 if more work is left. Under rx_lock,
 * from inside of rsoft_grace_enter().
 */
uint32_t rwire_xrc_poll(struct rwire *wire, unsigned int lcore);

/* rwire_xrc_in.c; under rx_lock. */
void rwire_xrc_in_accept(struct rwire *wire, struct rwire_xrc_listener *listener);
void rwire_xrc_in_receive(struct rwire *wire, struct rwire_xrc_in *in, unsigned int lcore);
/* End SENDs with invalidation whose grace period is over. */
void rwire_xrc_in_run(struct rwire *wire, unsigned int lcore);
/* Unlink the links to an SRQ, to be freed after a grace period. */
struct rwire_xrc_in *rwire_xrc_in_take(struct rwire *wire, const struct rsoft_srq *srq);
void rwire_xrc_in_free(struct rwire_xrc_in *in);
/* The device has failed: close all links to its SRQs, and accept no other ones. */
void rwire_xrc_in_fail(struct rwire *wire);

/* rwire_xrc_out.c; under rx_lock. */
/* Connections that a process may have for XRC domains: a quarter of its descriptors. */
uint32_t rwire_xrc_max_links(void);
/* Create rwire::xrc: 0, or -ENOMEM; logged. */
int rwire_xrc_begin(struct rwire *wire);
/* Bytes of data in the answer to a request: of a READ, or the previous value of an atomic. */
uint32_t rwire_xrc_data_len(uint8_t opcode, uint32_t dma_len);
bool rwire_xrc_watch(struct rwire_xrc *xrc, struct rwire_xrc_end *end);
struct rwire_xrc_hello rwire_xrc_hello_of(int status);
bool rwire_xrc_hello_is_valid(const struct rwire_xrc_hello *hello, ssize_t len, bool is_truncated);
/*
 * Send a packet to the process of its SRQ. Return RSOFT_WAIT_AWAY; RMEM_WC_SUCCESS: it needs no
 * answer; RSOFT_WAIT_PEER: handle it as lost; or an enum rmem_wc_status.
 */
int rwire_xrc_forward(struct rwire_qp *q, const struct rwire_pkt *pkt);
/*
 * Whether the data of the next response of a reply was received. If not, it is requested; or, if
 * that is not possible now, the rest of the reply is handled as lost, and reply->nb_psn is what was
 * sent.
 */
bool rwire_xrc_fetch(struct rwire_qp *q, struct rwire_reply *reply);
/* Copy that data, or the first n bytes of any other answer. */
void rwire_xrc_fetched(const struct rwire_qp *q, const struct rwire_reply *reply, uint8_t *data,
		uint32_t n);
/* The data was sent, and none is outstanding. */
void rwire_xrc_fetch_end(struct rwire_qp *q);
/* Hold a packet that follows the one that waits, or those held; false: not such a one, or full. */
bool rwire_xrc_hold(struct rwire_qp *q, const struct rwire_pkt *pkt);
/* Remove the first packet that is held, with those of its message; the caller frees it. */
struct rwire_xrc_held *rwire_xrc_take_held(struct rwire_qp *q);
void rwire_xrc_drop_held(struct rwire_qp *q);
/* The hello of the owner was received: send the packet that waits for it. */
void rwire_xrc_out_open(struct rwire_xrc_out *out);
void rwire_xrc_out_close(struct rwire_xrc_out *out);

#endif /* RWIRE_XRC_H */
