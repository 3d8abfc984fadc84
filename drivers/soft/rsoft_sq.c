/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The send queue: acceptance and queueing; see rsoft_sq.h. */

#include <errno.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_malloc.h>

#include "rsoft_mr.h"
#include "rsoft_mw.h"
#include "rsoft_sq.h"

#define RSOFT_SEND_FLAGS                                                                           \
	(RMEM_SEND_FENCE | RMEM_SEND_SIGNALED | RMEM_SEND_SOLICITED | RMEM_SEND_INLINE)

/* Opcodes whose payload can be inline. */
#define RSOFT_INLINE_OPCODES                                                                       \
	(1u << RMEM_WR_RDMA_WRITE | 1u << RMEM_WR_RDMA_WRITE_WITH_IMM | 1u << RMEM_WR_SEND |       \
			1u << RMEM_WR_SEND_WITH_IMM | 1u << RMEM_WR_SEND_WITH_INV)

int
rsoft_sq_init(struct rsoft_sq *sq, const struct rmem_qp_conf *conf, int socket_id)
{
	/* Twice: completed requests stay in the ring until the executor pops them. */
	uint32_t size = rte_align32pow2(RTE_MAX(2 * conf->max_send_wr, 1u));

	rte_ticketlock_init(&sq->lock);
	sq->depth = conf->max_send_wr;
	sq->mask = size - 1;
	sq->sig_mask = size - 1;
	sq->stride = RTE_ALIGN_CEIL((uint32_t)(sizeof(struct rmem_send_wr) +
						    conf->max_send_sge * sizeof(struct rmem_sge)) +
					conf->max_inline_data,
			RTE_CACHE_LINE_SIZE);
	sq->ring = rte_zmalloc_socket(
			"rsoft_sq", (size_t)size * sq->stride, RTE_CACHE_LINE_SIZE, socket_id);
	sq->sig = rte_zmalloc_socket(
			"rsoft_sig", size * sizeof(*sq->sig), RTE_CACHE_LINE_SIZE, socket_id);
	if (sq->ring == NULL || sq->sig == NULL) {
		rsoft_sq_fini(sq);
		return -ENOMEM;
	}
	return 0;
}

void
rsoft_sq_fini(struct rsoft_sq *sq)
{
	rte_free(sq->sig);
	rte_free(sq->ring);
	sq->sig = NULL;
	sq->ring = NULL;
}

/* Free the places of requests whose completion was polled. */
static void
rsoft_sq_reclaim(struct rsoft_qp *qp)
{
	struct rsoft_cq *cq = rsoft_cq_of(qp->qp.send_cq);
	uint32_t tail = __atomic_load_n(&qp->sq.sig_tail, __ATOMIC_ACQUIRE);

	while (qp->sq.sig_head != tail) {
		const struct rsoft_sig *sig = &qp->sq.sig[qp->sq.sig_head & qp->sq.sig_mask];

		if (!rsoft_cq_is_polled(cq, sig->cq_pos))
			break;
		qp->sq.retired = sig->sq_pos;
		qp->sq.sig_head++;
	}
}

static bool
rsoft_sq_check_inline(const struct rsoft_qp *qp, const struct rmem_send_wr *wr)
{
	uint64_t length = 0;
	uint32_t i;

	if ((RSOFT_INLINE_OPCODES & 1u << wr->opcode) == 0)
		return false;
	for (i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	return length <= qp->max_inline;
}

/* The rules of the less common requests. */
static bool
rsoft_sq_check_special(const struct rsoft_qp *qp, const struct rmem_send_wr *wr)
{
	if ((qp->opcodes & 1u << wr->opcode) == 0)
		return false;
	switch (wr->opcode) {
	case RMEM_WR_ATOMIC_CMP_AND_SWP:
	case RMEM_WR_ATOMIC_FETCH_AND_ADD:
		if (wr->num_sge != 1 || wr->sg_list[0].length != sizeof(uint64_t))
			return false;
		break;
	case RMEM_WR_REG_MR:
	case RMEM_WR_UMR:
	case RMEM_WR_BIND_MW: /* of type 1 by rmem_mw_bind() only, which has checked it */
		if (wr != qp->sq.call && !rmem_wr_check_handles(&qp->qp, wr))
			return false;
		break;
	default:
		break;
	}
	return !(wr->flags & RMEM_SEND_INLINE) || rsoft_sq_check_inline(qp, wr);
}

static __rte_always_inline bool
rsoft_sq_check(const struct rsoft_qp *qp, const struct rmem_send_wr *wr)
{
	if (unlikely(wr->opcode >= RMEM_WR_OPCODE_NB || (wr->flags & ~RSOFT_SEND_FLAGS) != 0 ||
			    (wr->num_sge > qp->max_send_sge && rmem_wr_has_sges(wr))))
		return false;
	if (likely(wr->opcode <= RMEM_WR_RDMA_READ && !(wr->flags & RMEM_SEND_INLINE)))
		return true;
	return rsoft_sq_check_special(qp, wr);
}

/* Why a request failed the check: a profile lacks its opcode, or it is wrong. */
static int
rsoft_sq_refusal(const struct rsoft_qp *qp, const struct rmem_send_wr *wr)
{
	return wr->opcode < RMEM_WR_OPCODE_NB && (qp->opcodes & 1u << wr->opcode) == 0 ? -EOPNOTSUPP
										       : -EINVAL;
}

/* The keys of a handle are those of the REG_MR, UMR or BIND_MW posted last. */
static inline void
rsoft_sq_set_tag(const struct rmem_send_wr *wr)
{
	if (wr->opcode == RMEM_WR_REG_MR && wr->reg_mr.mr->type == RMEM_MR_TYPE_FAST_REG)
		rsoft_mr_set_tag(wr->reg_mr.mr, wr->reg_mr.key_tag);
	if (wr->opcode == RMEM_WR_UMR && wr->umr.mr->type == RMEM_MR_TYPE_INDIRECT)
		rsoft_mr_set_tag(wr->umr.mr, wr->umr.key_tag);
	if (wr->opcode == RMEM_WR_BIND_MW)
		rsoft_mw_set_tag(wr->bind_mw.mw, wr->bind_mw.key_tag);
}

uint32_t
rsoft_sq_accept(struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint32_t nb_wr, int *rc)
{
	struct rsoft_sq *sq = &qp->sq;
	uint32_t room = sq->depth - (sq->posted - sq->retired);
	uint32_t i;

	if (unlikely(room < nb_wr)) {
		rsoft_sq_reclaim(qp);
		room = sq->depth - (sq->posted - sq->retired);
	}
	*rc = 0;
	for (i = 0; i < nb_wr; i++) {
		if (unlikely(!rsoft_sq_check(qp, &wr[i]))) {
			*rc = rsoft_sq_refusal(qp, &wr[i]);
			break;
		}
		if (unlikely(i == room)) {
			*rc = -ENOSPC;
			break;
		}
		if (unlikely(wr[i].opcode >= RMEM_WR_REG_MR))
			rsoft_sq_set_tag(&wr[i]);
	}
	sq->posted += i;
	return i;
}

/* What a request names by pointer can't be released while it is queued. */
static void
rsoft_sq_hold(const struct rmem_send_wr *wr)
{
	if (wr->opcode == RMEM_WR_REG_MR) {
		__atomic_fetch_add(&wr->reg_mr.mr->obj.refs, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&wr->reg_mr.page_list->obj.refs, 1, __ATOMIC_RELAXED);
	}
	if (wr->opcode == RMEM_WR_BIND_MW) {
		__atomic_fetch_add(&wr->bind_mw.mw->obj.refs, 1, __ATOMIC_RELAXED);
		if (wr->bind_mw.mr != NULL)
			__atomic_fetch_add(&wr->bind_mw.mr->obj.refs, 1, __ATOMIC_RELAXED);
	}
	if (wr->opcode == RMEM_WR_UMR)
		__atomic_fetch_add(&wr->umr.mr->obj.refs, 1, __ATOMIC_RELAXED);
}

void
rsoft_sq_unhold(const struct rmem_send_wr *wr)
{
	if (wr->opcode == RMEM_WR_REG_MR) {
		rmem_obj_unhold(&wr->reg_mr.mr->obj);
		rmem_obj_unhold(&wr->reg_mr.page_list->obj);
	}
	if (wr->opcode == RMEM_WR_BIND_MW) {
		if (wr->bind_mw.mr != NULL)
			rmem_obj_unhold(&wr->bind_mw.mr->obj);
		rmem_obj_unhold(&wr->bind_mw.mw->obj);
	}
	if (wr->opcode == RMEM_WR_UMR)
		rmem_obj_unhold(&wr->umr.mr->obj);
}

void
rsoft_sq_cancel(const struct rmem_send_wr *wr, bool is_queued)
{
	if (wr->opcode == RMEM_WR_BIND_MW)
		rsoft_mw_bind_undo(wr);
	if (is_queued)
		rsoft_sq_unhold(wr);
}

static void
rsoft_sq_push_one(struct rsoft_qp *qp, struct rmem_send_wr *slot, const struct rmem_send_wr *wr)
{
	struct rmem_sge *sge = (struct rmem_sge *)(void *)(slot + 1);
	uint8_t *data = (uint8_t *)(sge + qp->max_send_sge);
	uint32_t i;

	*slot = *wr;
	slot->sg_list = sge;
	if (!rmem_wr_has_sges(wr)) {
		slot->num_sge = 0;
		return;
	}
	for (i = 0; i < wr->num_sge; i++) {
		sge[i] = wr->sg_list[i];
		if (wr->flags & RMEM_SEND_INLINE) {
			memcpy(data, (const void *)(uintptr_t)sge[i].addr, sge[i].length);
			sge[i].addr = (uintptr_t)data;
			data += sge[i].length;
		}
	}
}

void
rsoft_sq_push(struct rsoft_qp *qp, const struct rmem_send_wr *wr, uint32_t nb_wr)
{
	uint32_t i;

	for (i = 0; i < nb_wr; i++) {
		rsoft_sq_hold(&wr[i]);
		rsoft_sq_push_one(qp, rsoft_sq_slot(&qp->sq, qp->sq.prod + i), &wr[i]);
	}
	__atomic_store_n(&qp->sq.prod, qp->sq.prod + nb_wr, __ATOMIC_RELEASE);
}
