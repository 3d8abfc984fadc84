/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Completion queues. A lock serialises the polling threads, because a CQ of the class has one
 * consumer.
 *
 * Invariant: a CQ of the class is polled only under the lock, which also protects kept and its
 * indexes. The completions kept[first_kept .. last_kept) are older than those in the CQ, and are
 * returned first.
 * Invariant: with timestamps, kept_times is the memory after kept, with as many entries.
 * Invariant: kept has as many entries as the CQ, so completions moved there fit, unless the program
 * lets its CQ overrun.
 */

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_branch_prediction.h>

#include "ribv.h"

#define BURST 32
/* A thread yields its CPU after so many polls of an empty CQ (a few microseconds). */
#define POLLS_PER_YIELD 256

static size_t
kept_size(const struct ribv_cq *cq)
{
	return sizeof(*cq->kept) + (cq->cq->timestamps != NULL ? sizeof(*cq->kept_times) : 0);
}

/* Set the arrays; kept has kept_size() bytes for each of n entries. */
static void
set_kept(struct ribv_cq *cq, struct rmem_wc *kept, uint32_t n)
{
	cq->kept = kept;
	cq->max_kept = n;
	if (cq->cq->timestamps != NULL)
		cq->kept_times = (uint64_t *)(kept + n);
}

/* Entries of a CQ, as the program gets them: it may pass them to ibv_resize_cq(), so not more than
 * the limit, although the device has a power of two. */
static int
cqe_of(const struct ribv_cq *cq)
{
	struct rmem_dev_info info;

	if (rmem_dev_info_get(ribv_dev_of(cq->context), &info) != 0)
		return (int)cq->cq->nb_cqe;
	return (int)RTE_MIN(cq->cq->nb_cqe, info.max_cqe);
}

struct ibv_cq *
ribv_cq_create(struct ibv_context *context, uint32_t cqe, void *cq_context,
		struct ibv_comp_channel *channel, int comp_vector, uint32_t flags)
{
	struct rmem_cq_conf conf = {.nb_cqe = cqe, .flags = flags};
	struct ribv_cq *cq;
	int ret;

	if (!ribv_is_context(context))
		return ribv_fail(ENOENT);
	if (channel != NULL && (!ribv_is_channel(channel) || channel->context != context))
		return ribv_fail(EINVAL);
	if (channel != NULL)
		conf.channel = ((struct ribv_channel *)channel)->channel;
	if (cqe < 1 || cqe > INT32_MAX || comp_vector < 0 ||
			comp_vector >= context->num_comp_vectors)
		return ribv_fail(EINVAL);
	cq = ribv_new();
	if (cq == NULL)
		return NULL;
	conf.context = cq;
	conf.async_channel = ribv_async_of(context);
	ret = rmem_cq_create(ribv_dev_of(context), &conf, &cq->cq);
	if (ret != 0) {
		ribv_leave(cq);
		return ribv_fail(ribv_errno(ret));
	}
	set_kept(cq, calloc(cq->cq->nb_cqe, kept_size(cq)), cq->cq->nb_cqe);
	if (cq->kept == NULL) {
		rmem_cq_destroy(cq->cq);
		ribv_leave(cq);
		return ribv_fail(ENOMEM);
	}
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	cq->channel = (struct ribv_channel *)channel;
	cq->ibv.context = cq->context = context;
	cq->roce_header = ribv_roce_header(ribv_context_of(context)->dev);
	cq->ibv.channel = channel;
	cq->ibv.cq_context = cq_context;
	cq->ibv.cqe = cqe_of(cq);
	cq->ibv.handle = ribv_enter(cq, RIBV_CQ);
	return &cq->ibv;
}

struct ibv_cq *
ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
		struct ibv_comp_channel *channel, int comp_vector)
{
	if (ribv_is_real(context))
		return ribv_is_own(channel) ? ribv_fail(EINVAL)
					    : RIBV_NEXT(ibv_create_cq)(context, cqe, cq_context,
							      channel, comp_vector);
	return ribv_cq_create(context, (uint32_t)cqe, cq_context, channel, comp_vector, 0);
}

/* Destroy a CQ without QPs: only events that will be acknowledged still refer to it. */
static int
destroy_acked(struct ribv_cq *cq)
{
	int ret;

	pthread_mutex_lock(&cq->ibv.mutex);
	while ((ret = rmem_cq_destroy(cq->cq)) == -EBUSY &&
			__atomic_load_n(&cq->refs, __ATOMIC_ACQUIRE) == 0)
		ribv_sanitize_wait(&cq->ibv.cond, &cq->ibv.mutex, "CQ");
	pthread_mutex_unlock(&cq->ibv.mutex);
	return ret;
}

int
ibv_destroy_cq(struct ibv_cq *cq)
{
	int ret;

	if (ribv_is_real(cq))
		return RIBV_NEXT(ibv_destroy_cq)(cq);
	if (!ribv_is_cq(cq))
		return ribv_leave_inherited(cq, RIBV_CQ);
	ret = destroy_acked((struct ribv_cq *)cq);
	if (ret != 0)
		return -ret;
	ribv_sanitize_cq_end((struct ribv_cq *)cq);
	free(((struct ribv_cq *)cq)->kept);
	ribv_leave(cq);
	return 0;
}

/* Resize under the lock. *kept has space for the new size; it becomes the array to free. */
static int
resize_locked(struct ribv_cq *cq, uint32_t nb_cqe, struct rmem_wc **kept)
{
	const uint64_t *times = cq->kept_times;
	struct rmem_wc *old = cq->kept;
	uint32_t nb = cq->last_kept - cq->first_kept;
	int ret = nb > nb_cqe ? -EINVAL : rmem_cq_resize(cq->cq, nb_cqe);

	if (ret != 0)
		return ret;
	set_kept(cq, *kept, rte_align32pow2(nb_cqe));
	memcpy(cq->kept, &old[cq->first_kept], nb * sizeof(*old));
	if (times != NULL)
		memcpy(cq->kept_times, &times[cq->first_kept], nb * sizeof(*times));
	*kept = old;
	cq->first_kept = 0;
	cq->last_kept = nb;
	cq->ibv.cqe = cqe_of(cq);
	return 0;
}

int
ibv_resize_cq(struct ibv_cq *ibv, int cqe)
{
	struct ribv_cq *cq = (struct ribv_cq *)ibv;
	struct rmem_dev_info info;
	struct rmem_wc *kept;
	int ret;

	if (ribv_is_real(ibv))
		return RIBV_NEXT(ibv_resize_cq)(ibv, cqe);
	if (!ribv_is_cq(ibv))
		return ENOENT;
	ret = rmem_dev_info_get(ribv_dev_of(cq->context), &info);
	if (ret != 0 || cqe < 1 || (uint32_t)cqe > info.max_cqe)
		return ret != 0 ? -ret : EINVAL;
	kept = calloc(rte_align32pow2((uint32_t)cqe), kept_size(cq));
	if (kept == NULL)
		return ENOMEM;
	ribv_lock(&cq->lock);
	ret = resize_locked(cq, (uint32_t)cqe, &kept);
	ribv_unlock(&cq->lock);
	free(kept);
	return ribv_errno(ret);
}

/* Convert a WC; statuses have the values of verbs. */
static void
wc_to_ibv(const struct ribv_cq *cq, const struct rmem_wc *wc, struct ibv_wc *ibv)
{
	ibv->wr_id = wc->wr_id;
	ibv->status = (enum ibv_wc_status)wc->status;
	ibv->opcode = ribv_wc_opcode(wc);
	ibv->vendor_err = ribv_has_src_qp(wc) ? 0 : wc->vendor_err;
	ibv->byte_len = wc->byte_len;
	ibv->imm_data = wc->imm_data;
	ibv->qp_num = wc->qp_num;
	ibv->src_qp = ribv_has_src_qp(wc) ? wc->src_qp : 0;
	ibv->wc_flags = wc->flags & (RMEM_WC_GRH | RMEM_WC_WITH_IMM | RMEM_WC_WITH_INV);
	ibv->pkey_index = 0;
	ibv->slid = 0;
	ibv->sl = ribv_sl(cq, wc);
	ibv->dlid_path_bits = 0;
}

/* Return the kept completions first. With timestamps, now_time is the time of the last one. */
int
ribv_poll_locked(struct ribv_cq *cq, struct rmem_wc *wc, int n)
{
	int i;

	if (likely(cq->first_kept == cq->last_kept)) {
		n = rmem_poll_cq(cq->cq, wc, (uint16_t)n);
		ribv_watch_polled(cq, wc, n);
		if (unlikely(cq->kept_times != NULL) && n > 0)
			cq->now_time = cq->cq->timestamps[n - 1];
		return n;
	}
	for (i = 0; i < n && cq->first_kept != cq->last_kept; i++) {
		if (cq->kept_times != NULL)
			cq->now_time = cq->kept_times[cq->first_kept];
		wc[i] = cq->kept[cq->first_kept++];
	}
	ribv_watch_polled(cq, wc, i);
	return i;
}

/*
 * Yield the CPU, which the peer may need to answer. Yield before the poll: a program that finds no
 * completion, and then that its peer has disconnected, considers its requests lost. Under the lock.
 */
static void
yield_after_empty(struct ribv_cq *cq)
{
	if (likely(cq->nb_empty < POLLS_PER_YIELD))
		return;
	cq->nb_empty = 0;
	ribv_unlock(&cq->lock);
	sched_yield();
	ribv_lock(&cq->lock);
}

int
ribv_poll_cq(struct ibv_cq *ibv, int num_entries, struct ibv_wc *wc)
{
	struct ribv_cq *cq = (struct ribv_cq *)ibv;
	struct rmem_wc own[BURST];
	int i, n, done = 0;

	if (!ribv_may_poll(ibv) || num_entries < 0 || (wc == NULL && num_entries != 0))
		return -EINVAL;
	if (num_entries == 0)
		return 0;
	if (!ribv_env_attach())
		return -ENOMEM;
	ribv_lock(&cq->lock);
	yield_after_empty(cq);
	do {
		n = ribv_poll_locked(cq, own, RTE_MIN(num_entries - done, BURST));
		for (i = 0; i < n; i++)
			wc_to_ibv(cq, &own[i], &wc[done + i]);
		done += RTE_MAX(n, 0);
	} while (n == BURST && done < num_entries);
	cq->nb_empty += done == 0;
	ribv_unlock(&cq->lock);
	return done != 0 ? done : n;
}

/* Keep a completion in entry `end`, or drop it if it is of the QP; return the next free entry. */
static uint32_t
keep_other(struct ribv_cq *cq, uint32_t end, const struct rmem_wc *wc, const uint64_t *times,
		uint32_t qp_num)
{
	if (wc->qp_num == qp_num) {
		cq->nb_lost += wc->status != RMEM_WC_WR_FLUSH_ERR;
		return end;
	}
	if (end == cq->max_kept)
		return end; /* more than nb_cqe: it is lost, as in a CQ that is full */
	cq->kept[end] = *wc;
	if (times != NULL)
		cq->kept_times[end] = *times;
	return end + 1;
}

/*
 * Drop the completions of a QP, as providers of libibverbs do; the class leaves them in the CQ. All
 * others are kept in order. If the program does not poll more than nb_cqe completions, its CQ
 * overruns.
 */
void
ribv_cq_forget(struct ribv_cq *cq, uint32_t qp_num)
{
	struct rmem_wc wc[BURST];
	uint32_t i, end = 0;
	int n, polled;

	if (!ribv_env_attach())
		return;
	ribv_lock(&cq->lock);
	for (i = cq->first_kept; i < cq->last_kept; i++)
		end = keep_other(cq, end, &cq->kept[i],
				cq->kept_times != NULL ? &cq->kept_times[i] : NULL, qp_num);
	do {
		polled = rmem_poll_cq(cq->cq, wc, BURST);
		for (n = 0; n < polled; n++)
			end = keep_other(cq, end, &wc[n],
					cq->kept_times != NULL ? &cq->cq->timestamps[n] : NULL,
					qp_num);
	} while (polled > 0);
	cq->first_kept = 0;
	cq->last_kept = end;
	ribv_unlock(&cq->lock);
}
