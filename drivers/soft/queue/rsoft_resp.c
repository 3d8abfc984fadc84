/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The responder; see rsoft_resp.h. */

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_prefetch.h>

#include "rsoft_addr.h"
#include "rsoft_error.h"
#include "rsoft_inline.h"
#include "../mem/rsoft_odp.h"
#include "rsoft_resp.h"

/* Longest message for which the entry in the CQ is reserved before the copy. */
#define RSOFT_RESERVE_EARLY 1024

/* IBTA table 45: RNR timer codes, in units of 10 us. */
static const uint16_t rsoft_rnr_10us[32] = {65535, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96,
		128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
		16384, 24576, 32768, 49152};

uint64_t
rsoft_rnr_ns(uint8_t code)
{
	return rsoft_rnr_10us[code & 31] * UINT64_C(10000);
}

uint64_t
rsoft_resp_rnr_ns(const struct rsoft_qp *peer)
{
	return rsoft_rnr_ns(peer->conn.min_rnr_timer);
}

bool
rsoft_resp_has_recv(const struct rsoft_qp *peer)
{
	if (__atomic_load_n(&peer->rq.prod, __ATOMIC_ACQUIRE) !=
			__atomic_load_n(&peer->rq.cons, __ATOMIC_ACQUIRE))
		return true;
	return peer->rq.srq != NULL && rsoft_srq_has_recv(peer->rq.srq);
}

/* Whether the QPs are connected to each other. */
static bool
resp_is_peer(const struct rsoft_qp *qp, const struct rsoft_qp *peer)
{
	uint16_t type = qp->qp.type;

	return peer->qp.type == (type == RMEM_QPT_XRC_SEND ? RMEM_QPT_XRC_RECV : type);
}

struct rsoft_qp *
rsoft_resp_resolve(struct rsoft_qp *qp)
{
	struct rsoft_qp *peer;

	if (qp->wire != NULL || qp->qp.type == RMEM_QPT_UD)
		return NULL;
	rsoft_lock(&rsoft_domain->lock);
	peer = rsoft_addr_qp(&qp->conn.remote);
	if (peer != NULL &&
			(!rsoft_state_is_responding(
					 __atomic_load_n(&peer->state, __ATOMIC_ACQUIRE)) ||
					rsoft_addr_qp(&peer->conn.remote) != qp ||
					!resp_is_peer(qp, peer)))
		peer = NULL;
	if (peer != NULL)
		__atomic_store_n(&qp->peer, peer, __ATOMIC_RELEASE);
	rte_ticketlock_unlock(&rsoft_domain->lock);
	return peer;
}

void
rsoft_resp_prefetch(const struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint32_t n)
{
	const struct rsoft_qp *peer = __atomic_load_n(&qp->peer, __ATOMIC_ACQUIRE);
	const uint32_t rdma = RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_READ;
	const struct rsoft_dev *dev = qp->dev;
	uint32_t i;

	if (peer == NULL)
		return;
	for (i = 0; i < n; i++) {
		if (!(rmem_wr_info[wr[i].opcode].remote_access & rdma) || wr[i].num_sge == 0)
			continue;
		rte_prefetch0(rsoft_key_at(dev, wr[i].sg_list[0].lkey));
		rte_prefetch0(rsoft_key_at(peer->dev, wr[i].rdma.rkey));
	}
	for (i = 0; i < n; i++) {
		const struct rsoft_key *key;

		if (!(rmem_wr_info[wr[i].opcode].remote_access & rdma))
			continue;
		key = rsoft_key_at(peer->dev, wr[i].rdma.rkey);
		if ((rsoft_word_rights(__atomic_load_n(&key->word, __ATOMIC_ACQUIRE)) &
				    (RSOFT_VALID | RSOFT_SLOW)) == RSOFT_VALID)
			__builtin_prefetch((const void *)((uintptr_t)key->base +
							   (wr[i].rdma.remote_addr - key->iova)),
					1);
	}
}

/*
 * Report the event of a request that was refused, and whose receive, if any, is not in error (IBTA
 * 11.6.3.2). A receive in error has already moved the QP to ERR.
 */
void
rsoft_resp_fail(struct rsoft_qp *peer, int status)
{
	rsoft_rq_fail_event(peer,
			status == RMEM_WC_REM_ACCESS_ERR ? RMEM_ASYNC_QP_ACCESS_ERR
					: status == RMEM_WC_REM_INV_REQ_ERR ? RMEM_ASYNC_QP_REQ_ERR
									    : RMEM_ASYNC_QP_FATAL);
}

bool
rsoft_resp_is_ready_slow(struct rsoft_qp *peer, uint32_t state, bool is_peek)
{
	/* Communication established (IBTA o11-5.1.1), not for UD. */
	if (state == RMEM_QPS_RTR && peer->qp.type != RMEM_QPT_UD && !peer->rq.is_established) {
		if (is_peek)
			return false;
		peer->rq.is_established = true;
		rmem_qp_async_event(&peer->qp, RMEM_ASYNC_COMM_EST);
	}
	return rsoft_state_is_responding(state);
}

void
rsoft_resp_note_rkey(struct rsoft_qp *peer, uint32_t rkey, uint32_t vendor_err)
{
	uint64_t nb;

	if (vendor_err > RMEM_VENDOR_ERR_KEY_PD && vendor_err != RMEM_VENDOR_ERR_KEY_QP)
		return; /* the key is valid for the QP, so it is no guess */
	__atomic_fetch_add(&peer->bad_rkeys, 1, __ATOMIC_RELAXED);
	nb = __atomic_add_fetch(&peer->dev->nb_bad_rkeys, 1, __ATOMIC_RELAXED);
	if ((nb & (nb - 1)) == 0)
		RSOFT_LOG(WARNING,
				"QP 0x%06x%s: rkey of the peer is not valid: 0x%08x (vendor_err %u, request %" PRIu64
				" of this kind)",
				peer->qp.qp_num, RSOFT_QP_NAME(&peer->qp), rkey, vendor_err, nb);
}

bool
rsoft_resp_open_slow(struct rsoft_qp *peer, uint32_t right)
{
	if (peer->access & RSOFT_QP_INLINE)
		rsoft_inline_flush(peer);
	return (peer->access & right) != 0;
}

/* Execute an atomic; *is_modified: the word has changed. False: it is not mapped. */
static bool
resp_do_atomic(const struct rmem_send_wr *wr, const struct rsoft_span *span, uint64_t *before,
		bool *is_modified)
{
	struct rsoft_odp *odp = rsoft_span_odp(span);
	uint64_t *word = (uint64_t *)(void *)span->ptr;
	struct rsoft_guarded end;

	/* Only the kernel may copy, and it has no atomics. */
	if (odp != NULL && !odp->is_guarded)
		return false;
	*is_modified = true;
	if (wr->opcode == RMEM_WR_ATOMIC_FETCH_AND_ADD) {
		end = rsoft_guard_add_fast(word, wr->atomic.compare_add, before);
	} else {
		*before = wr->atomic.compare_add;
		end = rsoft_guard_swap_fast(word, before, wr->atomic.swap);
		*is_modified = *before == wr->atomic.compare_add;
	}
	if (likely(end.side == RSOFT_SIDE_NONE))
		return true;
	rsoft_odp_access_failed(odp, end.addr);
	return false;
}

/* Translate the address of a word; return an enum rmem_wc_status. */
static int
resp_open_word(struct rsoft_qp *peer, uint32_t right, uint64_t addr, uint32_t rkey,
		struct rsoft_span *span, uint32_t *vendor_err)
{
	int status;

	if (addr % sizeof(uint64_t) != 0) { /* IBTA C9-182 */
		*vendor_err = RMEM_VENDOR_ERR_ALIGNMENT;
		return RMEM_WC_REM_INV_REQ_ERR;
	}
	status = rsoft_resp_open(peer, right, addr, rkey, sizeof(uint64_t), span, vendor_err);
	if (status != RMEM_WC_SUCCESS)
		return status;
	/*
	 * The address is aligned, but with a chosen iova the memory may not be, and with an
	 * indirect key it may not be contiguous.
	 */
	if (span->kind == RSOFT_SPAN_PIECES || (uintptr_t)span->ptr % sizeof(uint64_t) != 0) {
		*vendor_err = RMEM_VENDOR_ERR_ALIGNMENT;
		return RMEM_WC_REM_INV_REQ_ERR;
	}
	return RMEM_WC_SUCCESS;
}

int
rsoft_resp_atomic_open(struct rsoft_qp *peer, const struct rmem_send_wr *wr,
		struct rsoft_span *span, uint32_t *vendor_err)
{
	return resp_open_word(peer, RMEM_ACCESS_REMOTE_ATOMIC, wr->atomic.remote_addr,
			wr->atomic.rkey, span, vendor_err);
}

int
rsoft_resp_atomic_write(struct rsoft_qp *peer, const struct rmem_send_wr *wr, uint64_t value,
		uint32_t *vendor_err)
{
	struct rsoft_odp *odp;
	struct rsoft_span to;
	uint64_t *word;
	int status;

	status = resp_open_word(peer, RMEM_ACCESS_REMOTE_WRITE, wr->rdma.remote_addr, wr->rdma.rkey,
			&to, vendor_err);
	if (status != RMEM_WC_SUCCESS)
		return status;
	odp = rsoft_span_odp(&to);
	word = (uint64_t *)(void *)to.ptr;
	/* A copy by the kernel would not be atomic. */
	if (unlikely((odp != NULL && !odp->is_guarded) || !rsoft_guard_store_fast(word, value))) {
		if (odp != NULL && odp->is_guarded)
			rsoft_odp_access_failed(odp, (uintptr_t)word);
		*vendor_err = RMEM_VENDOR_ERR_PAGE_FAULT;
		return RMEM_WC_REM_ACCESS_ERR;
	}
	if (to.kind != RSOFT_SPAN_FLAT)
		rsoft_access_count(&to);
	return RMEM_WC_SUCCESS;
}

int
rsoft_resp_atomic(const struct rmem_send_wr *wr, const struct rsoft_span *span, uint64_t *before,
		uint32_t *vendor_err)
{
	bool is_modified;

	if (!resp_do_atomic(wr, span, before, &is_modified)) {
		*vendor_err = RMEM_VENDOR_ERR_PAGE_FAULT;
		return RMEM_WC_REM_ACCESS_ERR;
	}
	if (is_modified && span->kind != RSOFT_SPAN_FLAT)
		rsoft_access_count(span);
	return RMEM_WC_SUCCESS;
}

/* Write the pages of a range to their file; return an enum rmem_wc_status. */
static int
resp_persist(const struct rsoft_key *key, uint64_t offset, uint64_t length, uint32_t *vendor_err)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t first = (uintptr_t)key->base + offset;
	uintptr_t end = first + length;

	first = RTE_ALIGN_FLOOR(first, page);
	/* Don't use msync() of libc, which is a cancellation point: the thread holds locks. */
	if (length == 0 ||
			(key->kind == RSOFT_KIND_BASE &&
					syscall(SYS_msync, first, end - first, MS_SYNC) == 0))
		return RMEM_WC_SUCCESS;
	*vendor_err = RMEM_VENDOR_ERR_PAGE_FAULT;
	return RMEM_WC_REM_OP_ERR;
}

/*
 * The copies of preceding WRITEs are stores to coherent memory, or finished system calls, so a
 * fence makes them visible. Keys below an indirect key are not checked, since nothing is accessed.
 */
int
rsoft_resp_flush(struct rsoft_qp *peer, const struct rmem_send_wr *wr, uint32_t *vendor_err)
{
	const uint32_t right = rsoft_flush_rights(wr->flush.type);
	bool is_range = wr->flush.level == RMEM_FLUSH_RANGE;
	uint64_t offset = 0, length = is_range ? wr->flush.length : 0;
	const struct rsoft_key *key;
	uint32_t rights;

	if (peer->access & RSOFT_QP_INLINE)
		rsoft_inline_flush(peer);
	if ((peer->access & right) != right) {
		*vendor_err = RMEM_VENDOR_ERR_QP_RIGHT;
		return RMEM_WC_REM_INV_REQ_ERR;
	}
	if (is_range)
		key = rsoft_access_key(peer, 0, wr->flush.rkey, wr->flush.remote_addr, length,
				RSOFT_VALID | right, &offset, &rights);
	else
		key = rsoft_access_find(peer, 0, wr->flush.rkey, RSOFT_VALID | right, &rights);
	if (key == NULL || !rsoft_key_is_for(key, peer)) {
		*vendor_err = rsoft_access_vendor_err(peer, 0, wr->flush.rkey,
				wr->flush.remote_addr, length, RSOFT_VALID | right);
		rsoft_resp_note_rkey(peer, wr->flush.rkey, *vendor_err);
		return RMEM_WC_REM_ACCESS_ERR;
	}
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if ((wr->flush.type & RMEM_FLUSH_PERSISTENT) == 0)
		return RMEM_WC_SUCCESS;
	return resp_persist(key, offset, is_range ? length : key->length, vendor_err);
}

/* Build the completion of the receive that a message consumes. */
static void
resp_cqe(const struct rsoft_qp *peer, const struct rsoft_rqe *rqe, const struct rmem_send_wr *wr,
		uint64_t length, uint8_t status, struct rsoft_cqe *cqe)
{
	const struct rmem_wr_info *info = &rmem_wr_info[wr->opcode];
	uint16_t flags = info->recv_flags;

	cqe->wr_id = rqe->wr_id;
	/* imm_data and the invalidated rkey are the same field in request and completion. */
	cqe->data = rsoft_cqe_data((uint32_t)length, flags != 0 ? wr->imm_data : 0);
	if (wr->flags & RMEM_SEND_SOLICITED)
		flags |= RMEM_WC_SOLICITED;
	cqe->info = rsoft_cqe_info(status, info->recv_opcode, flags, peer->qp.qp_num);
}

/* Lock the receive queue and find the receive for a message; otherwise return the cause. */
static int
resp_take(struct rsoft_qp *peer, uint64_t length, struct rsoft_rqe **rqe)
{
	rte_ticketlock_lock(&peer->rq.lock);
	/* Checked under the lock: after a flush, no receive may be consumed. */
	if (unlikely(!rsoft_state_is_responding(__atomic_load_n(&peer->state, __ATOMIC_ACQUIRE)))) {
		rte_ticketlock_unlock(&peer->rq.lock);
		return RSOFT_WAIT_PEER;
	}
	*rqe = rsoft_rq_take(peer, length);
	if (unlikely(*rqe == NULL)) {
		rte_ticketlock_unlock(&peer->rq.lock);
		return RSOFT_WAIT_RNR;
	}
	return 0;
}

/* Complete the receive in the reserved entry of the CQ, and unlock. */
static void
resp_give(struct rsoft_qp *peer, uint32_t cq_pos, const struct rsoft_cqe *cqe)
{
	RSOFT_COUNT(peer->rq.consumed, 1);
	rsoft_rq_complete(peer, cq_pos, cqe);
	rsoft_rq_prefetch(&peer->rq);
	rte_ticketlock_unlock(&peer->rq.lock);
}

void
rsoft_resp_fail_imm(struct rsoft_qp *qp, uint32_t vendor_err)
{
	struct rsoft_cqe cqe = {.vendor_err = vendor_err};
	struct rsoft_rqe *rqe;
	bool is_first;

	if (resp_take(qp, 0, &rqe) != 0) {
		rsoft_resp_fail(qp, RMEM_WC_REM_ACCESS_ERR);
		return;
	}
	cqe.wr_id = rqe->wr_id;
	cqe.info = rsoft_cqe_info(
			RMEM_WC_LOC_ACCESS_ERR, RMEM_WC_RECV_RDMA_WITH_IMM, 0, qp->qp.qp_num);
	rmem_wc_trace_error(qp->qp.obj.dev_id, qp->qp.qp_num, rqe->wr_id, RMEM_WC_LOC_ACCESS_ERR,
			vendor_err);
	is_first = rsoft_qp_to_err(qp); /* before the completion is visible */
	resp_give(qp, rsoft_rq_reserve(qp), &cqe);
	if (is_first)
		rsoft_rq_flush(qp);
}

int
rsoft_resp_write_imm(struct rsoft_qp *peer, const struct rmem_send_wr *wr,
		const struct rsoft_span *from, uint64_t length, uint32_t *vendor_err)
{
	struct rsoft_span to;
	struct rsoft_rqe *rqe;
	struct rsoft_cqe cqe = {0};
	int status;

	status = rsoft_resp_open(peer, RMEM_ACCESS_REMOTE_WRITE, wr->rdma.remote_addr,
			wr->rdma.rkey, length, &to, vendor_err);
	if (status != RMEM_WC_SUCCESS)
		return status;
	status = resp_take(peer, 0, &rqe);
	if (status != 0)
		return status;
	if (length != 0)
		status = rsoft_copy_status(
				rsoft_copy_all(&to, from, length), RSOFT_SIDE_FROM, vendor_err);
	if (unlikely(status != RMEM_WC_SUCCESS)) {
		rsoft_rq_keep(peer);
		rte_ticketlock_unlock(&peer->rq.lock);
		return status;
	}
	if (to.kind != RSOFT_SPAN_FLAT)
		rsoft_access_count(&to);
	rsoft_resp_count(peer, wr->opcode, length);
	resp_cqe(peer, rqe, wr, length, RMEM_WC_SUCCESS, &cqe);
	resp_give(peer, rsoft_rq_reserve(peer), &cqe);
	return RMEM_WC_SUCCESS;
}

/* Result of placing a message in a receive. */
struct rsoft_placed {
	bool is_early;       /* in: a CQ entry may be reserved early; out: it is reserved */
	bool is_inline;      /* the message is delivered inline */
	bool is_broken;      /* a pending message was refused: flush the receives */
	uint8_t recv_status; /* status of the receive */
	uint32_t cq_pos;     /* if is_early */
	uint32_t vendor_err; /* vendor error of the receive */
};

/*
 * Write a message to a receive; return the status of the sender. With LOC_PROT_ERR the receive is
 * unchanged.
 */
static int
resp_place(struct rsoft_qp *peer, const struct rsoft_rqe *rqe, const struct rsoft_span *from,
		uint64_t length, struct rsoft_placed *placed)
{
	bool is_early = placed->is_early;
	struct rsoft_span to[RSOFT_MAX_SGE];
	unsigned int side = RSOFT_SIDE_NONE;
	uint64_t room;

	placed->is_early = false;
	/* Check the length before the translation, which populates on-demand pages. */
	if (unlikely(rsoft_sges_length(rqe->sge, rqe->num_sge, length) < length)) {
		placed->recv_status = RMEM_WC_LOC_LEN_ERR;
		placed->vendor_err = RMEM_VENDOR_ERR_RECV_SIZE;
		return RMEM_WC_REM_INV_REQ_ERR;
	}
	if (!rsoft_access_sges(rsoft_rq_owner(peer), rqe->sge, rqe->num_sge, RSOFT_NEED_WRITE,
			    length, to, &room, &placed->vendor_err)) {
		placed->recv_status = RMEM_WC_LOC_PROT_ERR;
		return RMEM_WC_REM_OP_ERR;
	}
	if (is_early) {
		placed->cq_pos = rsoft_rq_reserve(peer);
		placed->is_early = true;
		if (peer->inline_recv != RSOFT_INLINE_NONE)
			placed->is_inline = rsoft_inline_put(
					peer, rqe, to, from, length, placed->cq_pos, &side);
	}
	if (unlikely(peer->rq.nb_inline != 0) && !placed->is_inline)
		placed->is_broken = rsoft_inline_deliver(peer);
	if (length != 0 && !placed->is_inline && side == RSOFT_SIDE_NONE)
		side = rsoft_copy_all(to, from, length);
	if (likely(side == RSOFT_SIDE_NONE))
		return RMEM_WC_SUCCESS;
	if (side == RSOFT_SIDE_FROM)
		return RMEM_WC_LOC_PROT_ERR;
	placed->recv_status = RMEM_WC_LOC_PROT_ERR;
	placed->vendor_err = RMEM_VENDOR_ERR_PAGE_FAULT;
	return RMEM_WC_REM_OP_ERR;
}

/* Complete the receive of a message that was accepted or refused. */
static void
resp_complete(struct rsoft_qp *peer, const struct rsoft_rqe *rqe, const struct rmem_send_wr *wr,
		uint64_t length, const struct rsoft_placed *placed)
{
	struct rsoft_cqe cqe = {.vendor_err = placed->vendor_err};
	uint32_t cq_pos = placed->cq_pos;
	bool is_first = false;

	if (!placed->is_early)
		cq_pos = rsoft_rq_reserve(peer);
	resp_cqe(peer, rqe, wr, length, placed->recv_status, &cqe);
	if (placed->is_inline)
		cqe.info |= (uint64_t)RSOFT_WC_INLINE << RSOFT_WC_SHIFT(flags);
	if (unlikely(placed->recv_status != RMEM_WC_SUCCESS)) {
		rmem_wc_trace_error(peer->qp.obj.dev_id, peer->qp.qp_num, rqe->wr_id,
				placed->recv_status, placed->vendor_err);
		rsoft_error_recv(peer, rqe->sge, rqe->num_sge, rqe->wr_id, placed->recv_status,
				placed->vendor_err,
				placed->recv_status == RMEM_WC_REM_INV_REQ_ERR ? wr->invalidate_rkey
									       : 0);
		if (placed->vendor_err == RMEM_VENDOR_ERR_PAGE_FAULT)
			RSOFT_COUNT(peer->rq.faults, 1);
		is_first = rsoft_qp_to_err(peer); /* before the completion is visible */
	}
	resp_give(peer, cq_pos, &cqe);
	if (unlikely(is_first))
		rsoft_rq_flush(peer);
}

/*
 * Whether the receive of a failed message stays posted: if the sender's memory failed, or an
 * unreliable service drops a message that is too long (IBTA 9.8.3).
 */
static bool
resp_keeps_recv(const struct rsoft_qp *peer, int status)
{
	return status == RMEM_WC_LOC_PROT_ERR ||
			(status == RMEM_WC_REM_INV_REQ_ERR && !rsoft_qp_is_reliable(peer));
}

int
rsoft_resp_send(struct rsoft_qp *peer, const struct rmem_send_wr *wr, const struct rsoft_span *from,
		uint64_t length, struct rsoft_key **inv_key, uint32_t *rq_pos)
{
	/*
	 * For a short message, reserve the entry of the CQ before the copy: a locked instruction
	 * after the copy would delay the completion until the cache line of the payload has
	 * arrived.
	 */
	struct rsoft_placed placed = {.is_early = length <= RSOFT_RESERVE_EARLY &&
					wr->opcode != RMEM_WR_SEND_WITH_INV};
	struct rsoft_rqe *rqe;
	int status;

	status = resp_take(peer, length, &rqe);
	if (unlikely(status != 0))
		return status;
	status = resp_place(peer, rqe, from, length, &placed);
	if (unlikely(status != RMEM_WC_SUCCESS && resp_keeps_recv(peer, status))) {
		if (placed.is_early)
			rsoft_rq_unreserve(peer, placed.cq_pos);
		rsoft_rq_keep(peer);
		rte_ticketlock_unlock(&peer->rq.lock);
		goto out;
	}
	if (status == RMEM_WC_SUCCESS && wr->opcode == RMEM_WR_SEND_WITH_INV) {
		*inv_key = rsoft_key_invalidate(peer, wr->invalidate_rkey, NULL);
		if (*inv_key != NULL) {
			/*
			 * The receive stays at the head until the end of the grace period of the
			 * key.
			 */
			*rq_pos = peer->rq.cons;
			rte_ticketlock_unlock(&peer->rq.lock);
			status = RSOFT_WAIT_GRACE;
			goto out;
		}
		rsoft_resp_note_rkey(peer, wr->invalidate_rkey, RMEM_VENDOR_ERR_KEY_STATE);
		/* IBTA class J: the data arrived, only the receive fails. */
		placed.recv_status = RMEM_WC_REM_INV_REQ_ERR;
		placed.vendor_err = rsoft_key_inv_vendor_err(peer, wr->invalidate_rkey);
	}
	resp_complete(peer, rqe, wr, length, &placed);
out:
	if (unlikely(placed.is_broken))
		rsoft_rq_flush(peer);
	return status;
}

int
rsoft_resp_send_end(struct rsoft_qp *peer, const struct rmem_send_wr *wr, uint64_t length,
		struct rsoft_key *inv_key, uint32_t rq_pos)
{
	struct rsoft_rqe *rqe;
	struct rsoft_cqe cqe = {0};

	rsoft_key_release(inv_key);
	if (peer == NULL || resp_take(peer, RSOFT_RQ_CONTINUED, &rqe) != 0)
		return RMEM_WC_RETRY_EXC_ERR;
	if (peer->rq.cons != rq_pos) {
		rte_ticketlock_unlock(&peer->rq.lock);
		return RMEM_WC_RETRY_EXC_ERR;
	}
	resp_cqe(peer, rqe, wr, length, RMEM_WC_SUCCESS, &cqe);
	resp_give(peer, rsoft_rq_reserve(peer), &cqe);
	return RMEM_WC_SUCCESS;
}
