/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Completion queues. A lock orders the threads that poll; the class has one consumer. */

#include <errno.h>
#include <stdlib.h>

#include "ribv.h"

#define BURST 32

struct ibv_cq *
ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
		struct ibv_comp_channel *channel, int comp_vector)
{
	struct rmem_cq_conf conf = {.nb_cqe = (uint32_t)cqe};
	struct ribv_cq *cq;
	int ret;

	if (!ribv_is_ours(context))
		return RIBV_NEXT(ibv_create_cq)(context, cqe, cq_context, channel, comp_vector);
	if (channel != NULL)
		return ribv_fail(EOPNOTSUPP);
	if (cqe < 1 || comp_vector < 0 || comp_vector >= context->num_comp_vectors)
		return ribv_fail(EINVAL);
	cq = calloc(1, sizeof(*cq));
	if (cq == NULL || !ribv_enter(cq, RIBV_CQ, &cq->ibv.handle)) {
		free(cq);
		return ribv_fail(ENOMEM);
	}
	ret = rmem_cq_create(ribv_dev, &conf, &cq->cq);
	if (ret != 0) {
		ribv_leave(cq->ibv.handle);
		free(cq);
		return ribv_fail(ribv_errno(ret));
	}
	pthread_spin_init(&cq->lock, PTHREAD_PROCESS_PRIVATE);
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	cq->ibv.context = context;
	cq->ibv.cq_context = cq_context;
	cq->ibv.cqe = (int)cq->cq->nb_cqe;
	return &cq->ibv;
}

int
ibv_destroy_cq(struct ibv_cq *cq)
{
	int ret;

	if (!ribv_is_ours(cq->context))
		return RIBV_NEXT(ibv_destroy_cq)(cq);
	if (!ribv_is(cq, RIBV_CQ, cq->handle))
		return ENOENT;
	ret = rmem_cq_destroy(((struct ribv_cq *)cq)->cq);
	if (ret != 0)
		return -ret;
	ribv_leave(cq->handle);
	free(cq);
	return 0;
}

/* Opcodes and statuses have the values of verbs, except that a WC of a window is BIND_MW. */
static void
wc_to_ibv(const struct rmem_wc *wc, struct ibv_wc *ibv)
{
	ibv->wr_id = wc->wr_id;
	ibv->status = (enum ibv_wc_status)wc->status;
	ibv->opcode = (enum ibv_wc_opcode)wc->opcode;
	ibv->vendor_err = wc->vendor_err;
	ibv->byte_len = wc->byte_len;
	ibv->imm_data = wc->imm_data;
	ibv->qp_num = wc->qp_num;
	ibv->src_qp = 0;
	ibv->wc_flags = wc->flags & (RMEM_WC_WITH_IMM | RMEM_WC_WITH_INV);
	ibv->pkey_index = 0;
	ibv->slid = 0;
	ibv->sl = 0;
	ibv->dlid_path_bits = 0;
}

int
ribv_poll_cq(struct ibv_cq *ibv, int num_entries, struct ibv_wc *wc)
{
	struct ribv_cq *cq = (struct ribv_cq *)ibv;
	struct rmem_wc own[BURST];
	int i, n, done = 0;

	if (!ribv_is(ibv, RIBV_CQ, ibv->handle) || num_entries < 0)
		return -EINVAL;
	if (!ribv_env_attach())
		return -ENOMEM;
	pthread_spin_lock(&cq->lock);
	do {
		n = rmem_poll_cq(cq->cq, own, (uint16_t)RTE_MIN(num_entries - done, BURST));
		for (i = 0; i < n; i++)
			wc_to_ibv(&own[i], &wc[done + i]);
		done += RTE_MAX(n, 0);
	} while (n == BURST && done < num_entries);
	pthread_spin_unlock(&cq->lock);
	return done != 0 ? done : n;
}

int
ribv_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	RTE_SET_USED(solicited_only);
	/* Without a channel there is nobody to notify. */
	return ribv_is(cq, RIBV_CQ, cq->handle) ? 0 : ENOENT;
}
