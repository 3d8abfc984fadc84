/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Shared receive queues of the fake device. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

struct fake_srq {
	struct ibv_srq ibv;
	struct ibv_srq_attr attr;
	struct fake_wqe recv[FAKE_QUEUE];
	uint32_t prod;
	uint32_t cons;
};

static struct fake_srq *fake_srq_last;

struct ibv_srq *
fake_last_srq(void)
{
	return &fake_srq_last->ibv;
}

struct ibv_srq *
ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	struct fake_srq *srq = fake_new("create_srq", sizeof(*srq));

	if (srq == NULL)
		return NULL;
	srq->ibv.context = pd->context;
	srq->ibv.pd = pd;
	srq->ibv.srq_context = init->srq_context;
	srq->attr = init->attr;
	fake_srq_last = srq;
	return &srq->ibv;
}

int
ibv_destroy_srq(struct ibv_srq *ibv)
{
	if (fake_keeps("destroy_srq", ibv))
		return errno;
	free(ibv);
	fake.nb_live--;
	return 0;
}

int
ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
	struct fake_srq *srq = (struct fake_srq *)ibv;

	if (fake_fails("modify_srq"))
		return errno;
	if ((mask & IBV_SRQ_MAX_WR) != 0 && attr->max_wr < srq->prod - srq->cons)
		return EINVAL;
	if ((mask & IBV_SRQ_MAX_WR) != 0)
		srq->attr.max_wr = attr->max_wr;
	if ((mask & IBV_SRQ_LIMIT) != 0)
		srq->attr.srq_limit = attr->srq_limit;
	return 0;
}

int
ibv_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	if (fake_fails("query_srq"))
		return errno;
	*attr = ((struct fake_srq *)ibv)->attr;
	return 0;
}

static int
fake_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_srq *srq = (struct fake_srq *)ibv;

	for (; wr != NULL; wr = wr->next) {
		*bad = wr;
		if (srq->prod - srq->cons >= srq->attr.max_wr)
			return ENOMEM;
		fake_fill_recv(&srq->recv[srq->prod++ % FAKE_QUEUE], wr);
	}
	return 0;
}

void
fake_srq_take(struct fake_qp *qp)
{
	struct fake_srq *srq = (struct fake_srq *)qp->init.srq;

	if (srq == NULL || srq->prod == srq->cons || qp->recv_prod != qp->recv_cons)
		return;
	qp->recv[qp->recv_prod++ % FAKE_QUEUE] = srq->recv[srq->cons++ % FAKE_QUEUE];
	if (srq->prod - srq->cons < srq->attr.srq_limit)
		srq->attr.srq_limit = 0;
}

void
fake_srq_ops(struct ibv_context *context)
{
	context->ops.post_srq_recv = fake_post_srq_recv;
}
