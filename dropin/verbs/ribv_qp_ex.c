/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * ibv_wr_*: requests are collected in a batch of the QP, and posted by ibv_wr_complete().
 *
 * Invariant: the thread holds the send lock from ibv_wr_start() until ibv_wr_complete() or
 * ibv_wr_abort().
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_branch_prediction.h>

#include "ribv.h"

#define SEND_OPS                                                                                   \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |    \
			IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |                  \
			IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |  \
			IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |                        \
			IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_ATOMIC_WRITE)

#ifdef RIBV_HAS_WR_FLUSH
#define FLUSH_OPS ((uint64_t)IBV_QP_EX_WITH_FLUSH)
#else
#define FLUSH_OPS UINT64_C(0)
#endif

#define UD_OPS (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)

/* A window to bind, and its previous rkey. */
struct window {
	struct ibv_mw *mw;
	uint32_t old_rkey;
};

/*
 * Used by the thread that holds the send lock. Each array has max + 1 entries: requests that exceed
 * max all use the last entry, and wr_complete() refuses them. So the functions that add requests
 * need not check for space.
 */
struct ribv_batch {
	uint32_t nb;         /* requests added */
	uint32_t max;        /* entries of the send queue; the arrays have one more */
	uint32_t max_sge;    /* per request */
	uint32_t max_inline; /* bytes per request */
	int err;             /* of the first bad request, or 0 */
	struct rmem_send_wr *wrs;
	struct rmem_sge *sges;
	struct window *windows; /* by request, if it is a bind */
	uint8_t *data;
};

/* The batch of a QP; NULL if it has none, or the pointer is not a QP. */
static struct ribv_batch *
batch_of(struct ibv_qp_ex *ex)
{
	return ribv_may_post(&ex->qp_base) ? ((struct ribv_qp *)ex)->batch : NULL;
}

static uint32_t
last(const struct ribv_batch *batch)
{
	return RTE_MIN(batch->nb - 1, batch->max);
}

/* Add a request; NULL without a batch. */
static struct rmem_send_wr *
begin(struct ibv_qp_ex *ex, uint8_t opcode)
{
	struct ribv_batch *batch = batch_of(ex);
	struct rmem_send_wr *wr;

	if (batch == NULL)
		return NULL;
	batch->nb++;
	wr = &batch->wrs[last(batch)];
	memset(wr, 0, sizeof(*wr));
	/* Read here and not at the post: the program sets them before each request. */
	wr->wr_id = ex->wr_id;
	wr->opcode = opcode;
	wr->flags = (uint8_t)(ex->wr_flags & ~(unsigned int)IBV_SEND_INLINE);
	if (batch->nb > batch->max && batch->err == 0)
		batch->err = ENOMEM;
	if (ex->wr_flags > UINT8_MAX && batch->err == 0)
		batch->err = EINVAL;
	return wr;
}

/* imm_data and invalidate_rkey share a union, so one function serves both. */
static void
rdma(struct ibv_qp_ex *ex, uint8_t opcode, uint32_t rkey, uint64_t remote_addr, uint32_t imm_data)
{
	struct rmem_send_wr *wr = begin(ex, opcode);

	if (wr == NULL)
		return;
	wr->rdma.remote_addr = remote_addr;
	wr->rdma.rkey = rkey;
	wr->imm_data = imm_data;
}

static void
wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	rdma(ex, RMEM_WR_RDMA_READ, rkey, remote_addr, 0);
}

static void
wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	rdma(ex, RMEM_WR_RDMA_WRITE, rkey, remote_addr, 0);
}

static void
wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, __be32 imm_data)
{
	rdma(ex, RMEM_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr, imm_data);
}

static void
wr_send(struct ibv_qp_ex *ex)
{
	begin(ex, RMEM_WR_SEND);
}

static void
wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	rdma(ex, RMEM_WR_SEND_WITH_IMM, 0, 0, imm_data);
}

static void
wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	rdma(ex, RMEM_WR_SEND_WITH_INV, 0, 0, invalidate_rkey);
}

static void
wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	rdma(ex, RMEM_WR_LOCAL_INV, 0, 0, invalidate_rkey);
}

static void
atomic(struct ibv_qp_ex *ex, uint8_t opcode, uint32_t rkey, uint64_t remote_addr,
		uint64_t compare_add, uint64_t swap)
{
	struct rmem_send_wr *wr = begin(ex, opcode);

	if (wr == NULL)
		return;
	wr->atomic.remote_addr = remote_addr;
	wr->atomic.compare_add = compare_add;
	wr->atomic.swap = swap;
	wr->atomic.rkey = rkey;
}

static void
wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t compare,
		uint64_t swap)
{
	atomic(ex, RMEM_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr, compare, swap);
}

static void
wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t add)
{
	atomic(ex, RMEM_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr, add, 0);
}

/* Record the first error of the batch. Later requests are added, but none is posted. */
static void
refuse(struct ribv_batch *batch, int err)
{
	if (batch->err == 0)
		batch->err = err;
}

static void
wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		const struct ibv_mw_bind_info *info)
{
	struct rmem_send_wr *wr = begin(ex, RMEM_WR_BIND_MW);
	struct ribv_batch *batch = batch_of(ex);

	if (wr == NULL)
		return;
	batch->windows[last(batch)].mw = mw;
	if (ribv_bind_wr((struct ribv_qp *)ex, mw, rkey, info, wr) != 0)
		refuse(batch, EINVAL);
}

static void
wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct ribv_batch *batch = batch_of(ex);

	if (batch != NULL && batch->nb != 0 &&
			ribv_ud_wr((struct ribv_qp *)ex, ah, remote_qpn, remote_qkey,
					&batch->wrs[last(batch)]) != 0)
		refuse(batch, EINVAL);
}

static void
wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	struct ribv_batch *batch = batch_of(ex);

	if (batch != NULL && batch->nb != 0)
		batch->wrs[last(batch)].xrc.remote_srqn = remote_srqn;
}

static void
wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *list)
{
	struct ribv_batch *batch = batch_of(ex);
	struct rmem_sge *sges;

	if (batch == NULL || batch->nb == 0)
		return;
	if (num_sge > batch->max_sge || (list == NULL && num_sge != 0)) {
		refuse(batch, EINVAL);
		return;
	}
	/* Copy the list, which need not outlive the call. */
	sges = &batch->sges[(size_t)last(batch) * batch->max_sge];
	if (num_sge != 0)
		memcpy(sges, list, num_sge * sizeof(*sges));
	batch->wrs[last(batch)].sg_list = sges;
	batch->wrs[last(batch)].num_sge = (uint16_t)num_sge;
}

static void
wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = {addr, length, lkey};

	wr_set_sge_list(ex, 1, &sge);
}

static void
wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf, const struct ibv_data_buf *list)
{
	struct ribv_batch *batch = batch_of(ex);
	size_t i, length = 0;
	uint8_t *data;

	if (batch == NULL || batch->nb == 0)
		return;
	/* Copy the data, which is read by this call and not by the post. */
	data = &batch->data[(size_t)last(batch) * batch->max_inline];
	for (i = 0; i < num_buf; i++) {
		if (list[i].length > batch->max_inline - length) {
			refuse(batch, EINVAL);
			return;
		}
		if (list[i].length != 0)
			memcpy(data + length, list[i].addr, list[i].length);
		length += list[i].length;
	}
	wr_set_sge(ex, 0, (uintptr_t)data, (uint32_t)length);
	batch->wrs[last(batch)].flags |= RMEM_SEND_INLINE;
}

static void
wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf buf = {addr, length};

	wr_set_inline_data_list(ex, 1, &buf);
}

/* The value is copied by the call. */
static void
wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, const void *value)
{
	const struct ibv_data_buf buf = {(void *)(uintptr_t)value, sizeof(uint64_t)};

	rdma(ex, RMEM_WR_ATOMIC_WRITE, rkey, remote_addr, 0);
	wr_set_inline_data_list(ex, 1, &buf);
}

#ifdef RIBV_HAS_WR_FLUSH
static void
wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, size_t len, uint8_t type,
		uint8_t level)
{
	struct rmem_send_wr *wr = begin(ex, RMEM_WR_FLUSH);

	if (wr == NULL)
		return;
	wr->flush.remote_addr = remote_addr;
	wr->flush.rkey = rkey;
	wr->flush.length = (uint32_t)len;
	wr->flush.type = type;
	wr->flush.level = level;
	if (len > UINT32_MAX)
		refuse(batch_of(ex), EINVAL);
}
#endif

static void
wr_start(struct ibv_qp_ex *ex)
{
	struct ribv_batch *batch = batch_of(ex);

	if (batch == NULL)
		return;
	ribv_lock(&((struct ribv_qp *)ex)->send_lock);
	batch->nb = 0;
	batch->err = ribv_env_attach() ? 0 : ENOMEM;
}

/*
 * Post the batch; 0 or an errno. Windows get their new rkey before the post, because a bind may
 * complete during it. Refused requests are undone in reverse order, to restore the first rkey if a
 * window is bound twice.
 */
static int
post_batch(struct ribv_qp *qp, struct ribv_batch *batch)
{
	unsigned int i, done, n = batch->nb;
	int err = 0;

	for (i = 0; i < n; i++) {
		if (unlikely(batch->wrs[i].opcode == RMEM_WR_BIND_MW))
			batch->windows[i].old_rkey = ribv_bind_begin(
					batch->windows[i].mw, batch->wrs[i].bind_mw.key_tag);
	}
	done = ribv_post_burst(qp, batch->wrs, n, &err);
	for (i = n; i-- > done;) {
		if (batch->wrs[i].opcode == RMEM_WR_BIND_MW)
			batch->windows[i].mw->rkey = batch->windows[i].old_rkey;
	}
	return err;
}

static int
wr_complete(struct ibv_qp_ex *ex)
{
	struct ribv_qp *qp = (struct ribv_qp *)ex;
	struct ribv_batch *batch = batch_of(ex);
	int err;

	if (batch == NULL)
		return ribv_post_fail(EINVAL);
	err = batch->err;
	if (unlikely(qp->watch != NULL))
		ribv_caller = __builtin_return_address(0);
	if (err == 0)
		err = post_batch(qp, batch);
	ribv_unlock(&qp->send_lock);
	return ribv_post_fail(err);
}

static void
wr_abort(struct ibv_qp_ex *ex)
{
	if (batch_of(ex) != NULL)
		ribv_unlock(&((struct ribv_qp *)ex)->send_lock);
}

int
ribv_batch_create(struct ribv_qp *qp, uint64_t send_ops)
{
	const struct ibv_qp_cap *cap = &qp->init.cap;
	struct ibv_qp_ex *ex = &qp->ex;
	struct ribv_batch *batch;
	size_t n = (size_t)cap->max_send_wr + 1;
	uint64_t ops = qp->init.qp_type == IBV_QPT_UD ? UD_OPS : SEND_OPS | FLUSH_OPS;

	if ((send_ops & ~ops) != 0)
		return EOPNOTSUPP;
	batch = calloc(1,
			sizeof(*batch) + n * sizeof(*batch->wrs) +
					n * cap->max_send_sge * sizeof(*batch->sges) +
					n * sizeof(*batch->windows) + n * cap->max_inline_data);
	if (batch == NULL)
		return ENOMEM;
	batch->max = cap->max_send_wr;
	batch->max_sge = RTE_MIN(cap->max_send_sge, (uint32_t)UINT16_MAX);
	batch->max_inline = cap->max_inline_data;
	/* One allocation, ordered by decreasing alignment. */
	batch->wrs = (struct rmem_send_wr *)(batch + 1);
	batch->sges = (struct rmem_sge *)(batch->wrs + n);
	batch->windows = (struct window *)(batch->sges + n * cap->max_send_sge);
	batch->data = (uint8_t *)(batch->windows + n);
	qp->batch = batch;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_atomic_write = wr_atomic_write;
	ex->wr_bind_mw = wr_bind_mw;
#ifdef RIBV_HAS_WR_FLUSH
	ex->wr_flush = wr_flush;
#endif
	ex->wr_local_inv = wr_local_inv;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	return 0;
}

struct ibv_qp_ex *
ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	if (ribv_is_real(qp))
		return RIBV_NEXT(ibv_qp_to_qp_ex)(qp);
	return ribv_is_qp(qp) && ((struct ribv_qp *)qp)->batch != NULL ? &((struct ribv_qp *)qp)->ex
								       : NULL;
}
