/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The responder: execution of the requests of a peer.
 *
 * This is the interface between the two sides. The requester passes the contents of a packet and
 * the bytes to transfer; it never dereferences the struct rsoft_qp of the peer. (Peers in other
 * processes have an engine of their own: wire/.) Invariant: only rsoft_resp.c, rsoft_send_burst.c,
 * rsoft_ud.c and this header dereference a peer.
 *
 * Only between rsoft_grace_enter() and rsoft_grace_leave(); a peer pointer is valid until the lcore
 * passes the next grace point.
 */

#ifndef RSOFT_RESP_H
#define RSOFT_RESP_H

#include "rsoft_inline.h"
#include "../mem/rsoft_key_cache.h"
#include "rsoft_count.h"
#include "rsoft_rq.h"

/* Find the peer that a QP is connected to; NULL if the peer is not connected back. */
struct rsoft_qp *rsoft_resp_resolve(struct rsoft_qp *qp);

/* Time between attempts while this peer has no receive, in nanoseconds. */
uint64_t rsoft_resp_rnr_ns(const struct rsoft_qp *peer);

/* Time of an RNR timer code in nanoseconds (IBTA table 45). */
uint64_t rsoft_rnr_ns(uint8_t code);

/* Whether a receive is posted. */
bool rsoft_resp_has_recv(const struct rsoft_qp *peer);

/*
 * Prefetch for a burst if there are many MRs: first the keys, then the memory of the rkeys. Only
 * follows valid keys; all checks are made later.
 */
void rsoft_resp_prefetch(const struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint32_t n);

/* Translate the address of an atomic; return an enum rmem_wc_status. */
int rsoft_resp_atomic_open(struct rsoft_qp *peer, const struct rmem_send_wr *wr,
		struct rsoft_span *span, uint32_t *vendor_err);

/* Execute an atomic; *before is the previous value. Return an enum rmem_wc_status. */
int rsoft_resp_atomic(const struct rmem_send_wr *wr, const struct rsoft_span *span,
		uint64_t *before, uint32_t *vendor_err);

/* Execute an ATOMIC_WRITE of a word; return an enum rmem_wc_status. */
int rsoft_resp_atomic_write(struct rsoft_qp *peer, const struct rmem_send_wr *wr, uint64_t value,
		uint32_t *vendor_err);

/* Execute a FLUSH after all preceding requests; return an enum rmem_wc_status. May wait for the
 * disk. */
int rsoft_resp_flush(struct rsoft_qp *peer, const struct rmem_send_wr *wr, uint32_t *vendor_err);

/* Rights that a FLUSH of a type needs. */
static inline uint32_t
rsoft_flush_rights(uint8_t type)
{
	return ((type & RMEM_FLUSH_GLOBAL) ? RMEM_ACCESS_FLUSH_GLOBAL : 0) |
			((type & RMEM_FLUSH_PERSISTENT) ? RMEM_ACCESS_FLUSH_PERSISTENT : 0);
}

/* Execute a WRITE_WITH_IMM; return an enum rmem_wc_status or rsoft_wait. */
int rsoft_resp_write_imm(struct rsoft_qp *peer, const struct rmem_send_wr *wr,
		const struct rsoft_span *from, uint64_t length, uint32_t *vendor_err);

/*
 * Execute a SEND of any kind; return an enum rmem_wc_status or rsoft_wait. RSOFT_WAIT_GRACE: a
 * SEND_WITH_INV was executed and waits for its grace period, after which rsoft_resp_send_end()
 * releases the key and completes the receive.
 */
int rsoft_resp_send(struct rsoft_qp *peer, const struct rmem_send_wr *wr,
		const struct rsoft_span *from, uint64_t length, struct rsoft_key **inv_key,
		uint32_t *rq_pos);

/*
 * End a SEND_WITH_INV after its grace period; peer is NULL if it no longer responds. Invariant:
 * RMEM_WC_SUCCESS is returned only if this call completed the receive. If the receive was flushed
 * or dropped during the grace period, the peer does not acknowledge the request:
 * RMEM_WC_RETRY_EXC_ERR.
 */
int rsoft_resp_send_end(struct rsoft_qp *peer, const struct rmem_send_wr *wr, uint64_t length,
		struct rsoft_key *inv_key, uint32_t rq_pos);

/* The peer has refused a request with that status, and moves to ERR (IBTA 9.9.3, class B to D). */
void rsoft_resp_fail(struct rsoft_qp *peer, int status);

/*
 * The same for a WRITE_WITH_IMM whose memory was refused for that cause: if there is a receive, it
 * completes with RMEM_WC_LOC_ACCESS_ERR (IBTA 11.6.2).
 */
void rsoft_resp_fail_imm(struct rsoft_qp *qp, uint32_t vendor_err);

/*
 * Count a refused rkey, and log it if it may be a guess; the 1st, 2nd, 4th, 8th and so on are
 * logged.
 */
void rsoft_resp_note_rkey(struct rsoft_qp *peer, uint32_t rkey, uint32_t vendor_err);

/* Slow path of rsoft_resp_is_ready(), for a QP that is not in RTS. */
bool rsoft_resp_is_ready_slow(struct rsoft_qp *peer, uint32_t state, bool is_peek);

/*
 * Whether a QP executes a request of its peer. In RTR the first request establishes communication;
 * with is_peek no request has arrived, and the result is false.
 */
static __rte_always_inline bool
rsoft_resp_is_ready(struct rsoft_qp *peer, bool is_peek)
{
	uint32_t state = __atomic_load_n(&peer->state, __ATOMIC_ACQUIRE);

	return likely(state == RMEM_QPS_RTS) || rsoft_resp_is_ready_slow(peer, state, is_peek);
}

/* Find the peer that responds, or NULL; is_peek as above. */
static __rte_always_inline struct rsoft_qp *
rsoft_resp_find_peer(struct rsoft_qp *qp, bool is_peek)
{
	struct rsoft_qp *peer = __atomic_load_n(&qp->peer, __ATOMIC_ACQUIRE);

	if (unlikely(peer == NULL)) {
		peer = rsoft_resp_resolve(qp);
		if (peer == NULL)
			return NULL;
	}
	return likely(rsoft_resp_is_ready(peer, is_peek)) ? peer : NULL;
}

/* Find the peer that responds to a request, or NULL. */
static inline struct rsoft_qp *
rsoft_resp_peer(struct rsoft_qp *qp)
{
	return rsoft_resp_find_peer(qp, false);
}

/* The same before the checks of the local side, which may refuse the request. */
static inline struct rsoft_qp *
rsoft_resp_peek_peer(struct rsoft_qp *qp)
{
	return rsoft_resp_find_peer(qp, true);
}

/* Slow path of rsoft_resp_open(): the QP lacks the right, or has pending messages. */
bool rsoft_resp_open_slow(struct rsoft_qp *peer, uint32_t right);

/* Translate the remote range of a WRITE, READ or atomic; return an enum rmem_wc_status. */
static __rte_always_inline int
rsoft_resp_open(struct rsoft_qp *peer, uint32_t right, uint64_t addr, uint32_t rkey,
		uint64_t length, struct rsoft_span *span, uint32_t *vendor_err)
{
	if (unlikely((peer->access & (right | RSOFT_QP_INLINE)) != right) &&
			!rsoft_resp_open_slow(peer, right)) {
		*vendor_err = RMEM_VENDOR_ERR_QP_RIGHT;
		return RMEM_WC_REM_INV_REQ_ERR;
	}
	span->length = 0;
	span->kind = RSOFT_SPAN_FLAT;
	if (unlikely(length == 0)) /* IBTA C9-88: the rkey is not checked */
		return RMEM_WC_SUCCESS;
	if (unlikely(!rsoft_access(peer, 0, rkey, addr, length, RSOFT_VALID | right, span))) {
		*vendor_err = rsoft_access_vendor_err(
				peer, 0, rkey, addr, length, RSOFT_VALID | right);
		rsoft_resp_note_rkey(peer, rkey, *vendor_err);
		return RMEM_WC_REM_ACCESS_ERR;
	}
	return RMEM_WC_SUCCESS;
}

/* Whether the peer permits WRITEs, does not count them, and has no pending messages. */
static inline bool
rsoft_resp_takes_writes(const struct rsoft_qp *peer)
{
	return (peer->access & (RMEM_ACCESS_REMOTE_WRITE | RSOFT_QP_NO_RIGHTS)) ==
			RMEM_ACCESS_REMOTE_WRITE;
}

/* A READ or WRITE of that opcode has succeeded. */
static inline void
rsoft_resp_count(const struct rsoft_qp *peer, uint8_t opcode, uint64_t length)
{
	if (unlikely((peer->access & RSOFT_QP_COUNTED) != 0))
		rsoft_count_remote(peer, opcode, true, length);
}

/* WRITE length bytes; return an enum rmem_wc_status. */
static __rte_always_inline int
rsoft_resp_write(struct rsoft_qp *peer, const struct rmem_send_wr *wr,
		const struct rsoft_span *from, uint64_t length, uint32_t *vendor_err)
{
	struct rsoft_span to;
	int status;

	status = rsoft_resp_open(peer, RMEM_ACCESS_REMOTE_WRITE, wr->rdma.remote_addr,
			wr->rdma.rkey, length, &to, vendor_err);
	if (likely(status == RMEM_WC_SUCCESS && length != 0)) {
		status = rsoft_copy_status(
				rsoft_copy_all(&to, from, length), RSOFT_SIDE_FROM, vendor_err);
		if (unlikely(to.kind != RSOFT_SPAN_FLAT) && status == RMEM_WC_SUCCESS)
			rsoft_access_count(&to);
	}
	if (likely(status == RMEM_WC_SUCCESS))
		rsoft_resp_count(peer, wr->opcode, length);
	return status;
}

#endif /* RSOFT_RESP_H */
