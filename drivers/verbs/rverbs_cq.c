/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Completion queues, and the update of the request queues by completions; see rverbs.h.
 *
 * Invariant: a CQ's lock is held from ibv_poll_cq() until its results are processed. A thread that
 * removes a QP from the table then takes the locks of its CQs once, so that afterwards no poll uses
 * the QP.
 */

#include <errno.h>

#include <rte_malloc.h>

#include "rverbs_mw.h"
#include "rverbs_mwq.h"
#include "rverbs_ud.h"

#define RVERBS_POLL_BURST 32

/* The fields that cq_read() reads. */
#define CQ_READ                                                                                    \
	(IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM |                    \
			IBV_WC_EX_WITH_SRC_QP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)

/* Create a CQ. Providers without IGNORE_OVERRUN refuse it; then the device reports an overrun. */
static struct ibv_cq_ex *
cq_create_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr, uint32_t flags)
{
	struct ibv_cq_ex *ex = NULL;

	attr->wc_flags = flags & RMEM_CQ_TIMESTAMP ? CQ_READ : 0;
	if (flags & RMEM_CQ_IGNORE_OVERRUN) {
		attr->comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
		attr->flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
		ex = ibv_create_cq_ex(context, attr);
		attr->comp_mask = 0;
		attr->flags = 0;
	}
	if (ex == NULL && (flags & RMEM_CQ_TIMESTAMP) != 0)
		ex = ibv_create_cq_ex(context, attr);
	return ex;
}

bool
rverbs_cq_probe_times(struct rverbs_dev *dev, bool *is_held)
{
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	struct ibv_cq_init_attr_ex attr = {.cqe = 1};
	struct ibv_cq_ex *ex;

	if (dev->attr.completion_timestamp_mask == 0 ||
			ibv_query_rt_values_ex(dev->context, &values) != 0 ||
			(values.comp_mask & IBV_VALUES_MASK_RAW_CLOCK) == 0)
		return false;
	ex = cq_create_ex(dev->context, &attr, RMEM_CQ_TIMESTAMP);
	if (ex != NULL && ibv_destroy_cq(ibv_cq_ex_to_cq(ex)) != 0)
		*is_held = true;
	return ex != NULL;
}

static int
cq_create(struct rverbs_cq *cq, const struct rmem_cq_conf *conf)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = conf->nb_cqe, .cq_context = cq};
	struct ibv_context *context = cq->dev->context;
	struct ibv_cq_ex *ex;

	if (conf->channel != NULL)
		attr.channel = ((struct rmem_comp_channel_drv *)conf->channel)->priv;
	cq->is_overrun_ignored = (conf->flags & RMEM_CQ_IGNORE_OVERRUN) != 0;
	ex = cq_create_ex(context, &attr, conf->flags);
	if (ex != NULL || (conf->flags & RMEM_CQ_TIMESTAMP) != 0) {
		/* Without timestamps, ibv_poll_cq() polls it as any other CQ. */
		cq->ex = conf->flags & RMEM_CQ_TIMESTAMP ? ex : NULL;
		cq->ibv = ex != NULL ? ibv_cq_ex_to_cq(ex) : NULL;
		return rverbs_err_null(cq->ibv, "ibv_create_cq_ex");
	}
	cq->ibv = ibv_create_cq(context, (int)conf->nb_cqe, cq, attr.channel, 0);
	return rverbs_err_null(cq->ibv, "ibv_create_cq");
}

/* Allocate memory for nb_cqe completions and, with timestamps, their times; -ENOMEM. */
static int
cq_alloc(const struct rverbs_cq *cq, uint32_t nb_cqe, struct rmem_wc **saved, uint64_t **times)
{
	*saved = rte_malloc("rverbs_saved", nb_cqe * sizeof(**saved), 0);
	*times = NULL;
	if (cq->ex != NULL)
		*times = rte_zmalloc("rverbs_times", 2 * (size_t)nb_cqe * sizeof(**times), 0);
	if (*saved != NULL && (cq->ex == NULL || *times != NULL))
		return 0;
	RVERBS_LOG(ERR, "CQ: no memory: %u completions", nb_cqe);
	rte_free(*saved);
	rte_free(*times);
	return -ENOMEM;
}

int
rverbs_cq_create(struct rmem_cq *base, const struct rmem_cq_conf *conf)
{
	struct rverbs_cq *cq = rverbs_cq_of(base);
	int ret;

	rte_ticketlock_init(&cq->lock);
	cq->dev = rverbs_dev_of(&base->obj);
	ret = cq_create(cq, conf);
	if (ret != 0)
		return ret;
	base->nb_cqe = RTE_MAX((uint32_t)cq->ibv->cqe, conf->nb_cqe);
	ret = cq_alloc(cq, base->nb_cqe, &cq->saved, &cq->times);
	if (ret != 0)
		ibv_destroy_cq(cq->ibv);
	base->timestamps = cq->times;
	return ret;
}

int
rverbs_cq_destroy(struct rmem_cq *base)
{
	struct rverbs_cq *cq = rverbs_cq_of(base);
	int ret = rverbs_err_code(ibv_destroy_cq(cq->ibv), RVERBS_ERR_RELEASE, "ibv_destroy_cq");

	if (ret != 0)
		return ret;
	rte_free(cq->saved);
	rte_free(cq->times);
	return 0;
}

/* Find the QP of a wr_id of the driver; NULL if it was destroyed or reset since. */
static struct rverbs_qp *
cq_qp(const struct rverbs_dev *dev, uint64_t id)
{
	return rverbs_slot_qp(&dev->slots[id >> 16 & (RVERBS_MAX_QP - 1)], (uint32_t)(id >> 32));
}

static void
cq_count(struct rverbs_done_stats *stats, uint8_t status)
{
	if (status == RMEM_WC_WR_FLUSH_ERR) {
		stats->flushed++;
		return;
	}
	stats->errors++;
	if (status == RMEM_WC_LOC_PROT_ERR)
		stats->local_prot_errors++;
	else if (status == RMEM_WC_REM_ACCESS_ERR)
		stats->rem_access_errors++;
}

/* Free the entries of a ring up to the one that completed. */
static const struct rverbs_wqe *
cq_retire(struct rverbs_ring *ring, uint64_t id, uint32_t *nb)
{
	uint32_t cons = ring->cons;

	/* Acquire the stores of the posting thread that precede prod. */
	(void)__atomic_load_n(&ring->prod, __ATOMIC_ACQUIRE);
	*nb = (uint16_t)((uint16_t)id - (uint16_t)cons) + 1u;
	return &ring->wqe[(cons + *nb - 1) & ring->mask];
}

/* Find a QP by number. It has a completion in a locked CQ, so it can't be destroyed. */
static struct rverbs_qp *
cq_qp_of_num(struct rverbs_dev *dev, uint32_t qp_num)
{
	struct rverbs_qp *qp = NULL;
	uint32_t i;

	rte_ticketlock_lock(&dev->lock);
	for (i = 0; i < RVERBS_MAX_QP && qp == NULL; i++) {
		if (dev->slots[i].qp != NULL && dev->slots[i].qp->qp.qp_num == qp_num)
			qp = dev->slots[i].qp;
	}
	rte_ticketlock_unlock(&dev->lock);
	return qp;
}

/* Some devices, such as rdma_rxe, report a GRH for each receive, also for RC. */
static void
cq_fill_recv(struct rverbs_dev *dev, struct rverbs_qp *qp, struct rmem_wc *wc,
		const struct ibv_wc *ibv, uint32_t wc_flags)
{
	bool has_grh = (ibv->wc_flags & wc_flags & IBV_WC_GRH) != 0;

	if (qp == NULL && (has_grh || dev->has_mw_quirk))
		qp = cq_qp_of_num(dev, ibv->qp_num);
	if (has_grh && qp != NULL && qp->ahs != NULL)
		wc->flags |= RMEM_WC_GRH;
	if ((ibv->wc_flags & dev->inv_flag) == 0)
		return;
	wc->flags |= RMEM_WC_WITH_INV;
	wc->invalidated_rkey = ibv->invalidated_rkey;
	if (dev->has_mw_quirk && qp != NULL)
		rverbs_mwq_invalidated(qp, ibv->invalidated_rkey);
}

/* The QP of a shared receive is NULL; then wc_flags are the SRQ's. */
static void
cq_fill(struct rverbs_dev *dev, struct rverbs_qp *qp, struct rmem_wc *wc, const struct ibv_wc *ibv,
		uint32_t wc_flags)
{
	wc->opcode = rverbs_map_wc_opcode(ibv->opcode);
	wc->flags = ibv->wc_flags & IBV_WC_WITH_IMM ? RMEM_WC_WITH_IMM : 0;
	wc->byte_len = ibv->byte_len;
	wc->imm_data = ibv->imm_data;
	wc->src_qp = ibv->src_qp;
	if (unlikely((ibv->wc_flags & wc_flags) != 0))
		cq_fill_recv(dev, qp, wc, ibv, wc_flags);
}

static void
cq_trace(const struct rverbs_cq *cq, const struct rmem_wc *wc)
{
	rmem_wc_trace_error(cq->cq.obj.dev_id, wc->qp_num, wc->wr_id, wc->status, wc->vendor_err);
}

/* Record the last error of a QP; the device reports neither key nor address. */
static void
cq_note(struct rverbs_qp *qp, const struct rmem_wc *wc, enum rmem_qp_error_side side)
{
	const struct rmem_qp_error error = {.wr_id = wc->wr_id,
			.status = wc->status,
			.side = (uint8_t)side,
			.vendor_err = wc->vendor_err};

	if (wc->status != RMEM_WC_WR_FLUSH_ERR)
		rmem_qp_note_error(&qp->qp, &error);
}

/* Bytes of the last of nb requests that are not freed yet. */
static uint32_t
cq_bytes(const struct rverbs_qp *qp, uint32_t nb)
{
	const struct rverbs_ring *sq = &qp->sq;
	uint64_t note = sq->wqe[(sq->cons + nb - 1) & sq->mask].note, before = qp->windows_done;

	if (nb > 1)
		before = RVERBS_NOTE_WINDOWS(sq->wqe[(sq->cons + nb - 2) & sq->mask].note);
	return note - before >= RVERBS_NOTE_BIND ? 0 : RVERBS_NOTE_LOW(note);
}

/* Handle a failed send request, with which the QP fails. */
static void
cq_failed(struct rverbs_cq *cq, struct rverbs_qp *qp, const struct rmem_wc *wc, uint32_t bytes)
{
	cq_trace(cq, wc);
	cq_note(qp, wc, RMEM_QP_ERROR_SEND);
	cq_count(&qp->send_done, wc->status);
	qp->send_done.bytes_failed += bytes;
	__atomic_store_n(&qp->has_failed, 1, __ATOMIC_RELAXED);
}

static void
cq_recv_failed(const struct rverbs_cq *cq, struct rverbs_qp *qp, const struct rmem_wc *wc)
{
	cq_trace(cq, wc);
	cq_note(qp, wc, RMEM_QP_ERROR_RECV);
}

/* Set the fields that do not depend on the request. */
static void
cq_begin(struct rmem_wc *wc, const struct ibv_wc *ibv, uint64_t wr_id, uint32_t qp_num)
{
	wc->wr_id = wr_id;
	wc->status = rverbs_map_status(ibv->status);
	wc->opcode = 0;
	wc->flags = 0;
	wc->qp_num = qp_num;
	wc->byte_len = 0;
	wc->imm_data = 0;
	wc->vendor_err = ibv->vendor_err;
	wc->reserved = 0;
}

/*
 * Free the entry of a polled receive of an SRQ (rverbs_srq.c); return the wr_id of the application,
 * and wc_flags of the SRQ. Under the lock of the CQ.
 */
static uint64_t
srq_take(struct rverbs_dev *dev, uint64_t id, bool is_ok, uint32_t *wc_flags)
{
	struct rverbs_srq *srq = dev->srqs[id >> 16 & (RVERBS_MAX_SRQ - 1)];
	uint64_t wr_id;

	*wc_flags = __atomic_load_n(&srq->wc_flags, __ATOMIC_RELAXED);
	rte_ticketlock_lock(&srq->lock);
	wr_id = srq->wr_ids[(uint16_t)id];
	srq->free[srq->nb_free++] = (uint16_t)id;
	srq->recv_wrs += is_ok;
	rte_ticketlock_unlock(&srq->lock);
	return wr_id;
}

/* Convert the completion of a shared receive. */
static bool
cq_translate_srq(struct rverbs_cq *cq, const struct ibv_wc *ibv, struct rmem_wc *wc)
{
	bool is_ok = ibv->status == IBV_WC_SUCCESS;
	uint32_t wc_flags;

	cq_begin(wc, ibv, srq_take(cq->dev, ibv->wr_id, is_ok, &wc_flags), ibv->qp_num);
	if (is_ok)
		cq_fill(cq->dev, NULL, wc, ibv, wc_flags);
	else
		cq_trace(cq, wc);
	return true;
}

/* Handle completed requests that refer to windows, or are of UD. */
static void
cq_requests_done(struct rverbs_qp *qp, uint32_t cons, uint32_t end, struct rmem_wc *wc)
{
	if (qp->ahs != NULL)
		rverbs_ud_release(qp, cons, end);
	else
		rverbs_mw_done(qp, end, wc);
}

/* Convert a completion of the device; false when its request was dropped. */
static bool
cq_translate(struct rverbs_cq *cq, const struct ibv_wc *ibv, struct rmem_wc *wc)
{
	const struct rverbs_wqe *wqe;
	struct rverbs_ring *ring;
	struct rverbs_qp *qp;
	uint32_t nb, bytes = 0;

	if (unlikely((ibv->wr_id & RVERBS_ID_SRQ) != 0))
		return cq_translate_srq(cq, ibv, wc);
	qp = cq_qp(cq->dev, ibv->wr_id);
	if (unlikely(qp == NULL))
		return false;
	ring = ibv->wr_id & RVERBS_ID_RECV ? &qp->rq : &qp->sq;
	wqe = cq_retire(ring, ibv->wr_id, &nb);
	cq_begin(wc, ibv, wqe->wr_id, qp->qp.qp_num);
	if (likely(ibv->status == IBV_WC_SUCCESS))
		cq_fill(cq->dev, qp, wc, ibv, qp->wc_flags);
	else if (ring == &qp->rq)
		cq_recv_failed(cq, qp, wc);
	if (ring == &qp->rq) {
		qp->recv_done.recv_wrs += ibv->status == IBV_WC_SUCCESS;
	} else {
		qp->send_done.send_wrs += nb;
		if (unlikely(ibv->status != IBV_WC_SUCCESS))
			bytes = cq_bytes(qp, nb);
		if (unlikely(RVERBS_NOTE_WINDOWS(wqe->note) != qp->windows_done))
			cq_requests_done(qp, ring->cons, ring->cons + nb, wc);
		if (unlikely(ibv->status != IBV_WC_SUCCESS))
			cq_failed(cq, qp, wc, bytes);
	}
	__atomic_store_n(&ring->cons, ring->cons + nb, __ATOMIC_RELEASE);
	return true;
}

/* Read the current completion of an extended CQ. */
static void
cq_read(struct ibv_cq_ex *ex, struct ibv_wc *ibv)
{
	ibv->wr_id = ex->wr_id;
	ibv->status = ex->status;
	ibv->vendor_err = 0;
	ibv->qp_num = ibv_wc_read_qp_num(ex);
	if (unlikely(ex->status != IBV_WC_SUCCESS)) {
		ibv->vendor_err = ibv_wc_read_vendor_err(ex);
		return;
	}
	ibv->opcode = ibv_wc_read_opcode(ex);
	ibv->wc_flags = ibv_wc_read_wc_flags(ex);
	ibv->byte_len = ibv_wc_read_byte_len(ex);
	ibv->imm_data = ibv_wc_read_imm_data(ex); /* or the invalidated rkey */
	ibv->src_qp = ibv_wc_read_src_qp(ex);
}

/* cq_poll() of a CQ with timestamps. */
static __rte_noinline int
cq_poll_ex(struct rverbs_cq *cq, struct rmem_wc *wc, uint64_t *times, uint32_t nb_wc)
{
	struct ibv_poll_cq_attr attr = {.comp_mask = 0};
	struct ibv_cq_ex *ex = cq->ex;
	uint32_t done = 0;
	struct ibv_wc ibv;
	int ret;

	ret = ibv_start_poll(ex, &attr);
	if (ret == 0) {
		do {
			cq_read(ex, &ibv);
			times[done] = ibv_wc_read_completion_ts(ex);
			done += cq_translate(cq, &ibv, &wc[done]);
		} while (done < nb_wc && (ret = ibv_next_poll(ex)) == 0);
		ibv_end_poll(ex);
	}
	if (unlikely(ret != 0 && ret != ENOENT))
		__atomic_store_n(&cq->has_overrun, 1, __ATOMIC_RELAXED);
	return (int)done;
}

/* Poll at most nb_wc completions of the device. Under the lock of the CQ. */
static int
cq_poll(struct rverbs_cq *cq, struct rmem_wc *wc, uint32_t nb_wc)
{
	struct ibv_wc ibv[RVERBS_POLL_BURST];
	uint32_t done = 0;
	int i, n, wanted;

	do {
		wanted = (int)RTE_MIN(nb_wc - done, (uint32_t)RVERBS_POLL_BURST);
		n = ibv_poll_cq(cq->ibv, wanted, ibv);
		if (unlikely(n < 0)) {
			__atomic_store_n(&cq->has_overrun, 1, __ATOMIC_RELAXED);
			break;
		}
		for (i = 0; i < n; i++)
			done += cq_translate(cq, &ibv[i], &wc[done]);
	} while (n == wanted && done < nb_wc);
	return (int)done;
}

int
rverbs_poll_cq(struct rmem_cq *base, struct rmem_wc *wc, uint16_t nb_wc)
{
	struct rverbs_cq *cq = rverbs_cq_of(base);
	int n = 0;

	if (unlikely(nb_wc == 0))
		return 0;
	rte_ticketlock_lock(&cq->lock);
	/* times has space for nb_cqe entries. */
	if (unlikely(cq->ex != NULL))
		nb_wc = (uint16_t)RTE_MIN(nb_wc, base->nb_cqe);
	while (unlikely(cq->nb_saved != 0) && n < nb_wc) {
		if (cq->ex != NULL)
			cq->times[n] = cq->times[base->nb_cqe + cq->first_saved];
		wc[n++] = cq->saved[cq->first_saved];
		cq->first_saved = (cq->first_saved + 1) % base->nb_cqe;
		cq->nb_saved--;
	}
	if (n < nb_wc && likely(cq->ex == NULL))
		n += cq_poll(cq, wc + n, (uint32_t)(nb_wc - n));
	else if (n < nb_wc)
		n += cq_poll_ex(cq, wc + n, cq->times + n, (uint32_t)(nb_wc - n));
	rte_ticketlock_unlock(&cq->lock);
	if (unlikely(n == 0 &&
			    (__atomic_load_n(&cq->has_overrun, __ATOMIC_RELAXED) ||
					    __atomic_load_n(&cq->dev->is_removed,
							    __ATOMIC_RELAXED))))
		return -EIO;
	return n;
}

/* Move the completions of the device to the saved ones. Under the lock of the CQ. */
static void
cq_save(struct rverbs_cq *cq)
{
	struct rmem_wc wc;
	uint64_t time = 0;
	uint32_t at;

	while ((cq->ex == NULL ? cq_poll(cq, &wc, 1) : cq_poll_ex(cq, &wc, &time, 1)) == 1) {
		if (cq->nb_saved == cq->cq.nb_cqe) {
			/* The program has not polled more completions than the CQ can hold. */
			if (cq->is_overrun_ignored)
				continue;
			__atomic_store_n(&cq->has_overrun, 1, __ATOMIC_RELAXED);
			break;
		}
		at = (cq->first_saved + cq->nb_saved++) % cq->cq.nb_cqe;
		cq->saved[at] = wc;
		if (cq->ex != NULL)
			cq->times[cq->cq.nb_cqe + at] = time;
	}
}

void
rverbs_cq_save(struct rverbs_cq *cq)
{
	rte_ticketlock_lock(&cq->lock);
	cq_save(cq);
	rte_ticketlock_unlock(&cq->lock);
}

/* Move the saved completions to new arrays for nb_cqe of them, and exchange the arrays. */
static void
cq_move_saved(struct rverbs_cq *cq, uint32_t nb_cqe, struct rmem_wc **saved, uint64_t **times)
{
	uint32_t i, at;

	for (i = 0; i < cq->nb_saved; i++) {
		at = (cq->first_saved + i) % cq->cq.nb_cqe;
		(*saved)[i] = cq->saved[at];
		if (*times != NULL)
			(*times)[nb_cqe + i] = cq->times[cq->cq.nb_cqe + at];
	}
	RTE_SWAP(*saved, cq->saved);
	RTE_SWAP(*times, cq->times);
	cq->first_saved = 0;
	cq->cq.nb_cqe = nb_cqe;
	cq->cq.timestamps = cq->times;
}

/* The device counts only completions in its CQ, so first save all of them. */
int
rverbs_cq_resize(struct rmem_cq *base, uint32_t nb_cqe)
{
	struct rverbs_cq *cq = rverbs_cq_of(base);
	struct rmem_wc *saved;
	uint64_t *times;
	int ret;

	ret = cq_alloc(cq, nb_cqe, &saved, &times);
	if (ret != 0)
		return ret;
	ret = -EINVAL;
	rte_ticketlock_lock(&cq->lock);
	cq_save(cq);
	if (cq->nb_saved > nb_cqe)
		RVERBS_LOG(ERR, "CQ: nb_cqe out of range: %u (%u completions outstanding)", nb_cqe,
				cq->nb_saved);
	else
		ret = rverbs_err_code(ibv_resize_cq(cq->ibv, (int)nb_cqe), RVERBS_ERR_RESIZE,
				"ibv_resize_cq");
	if (ret == 0)
		cq_move_saved(cq, nb_cqe, &saved, &times);
	rte_ticketlock_unlock(&cq->lock);
	rte_free(saved);
	rte_free(times);
	return ret;
}
