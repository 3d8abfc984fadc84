/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The fakes of CQs; see fake.h. */

#include <errno.h>
#include <stdlib.h>

#include <rte_common.h>

#include "fake.h"

static struct fake_cq *fake_cq_last;

struct ibv_cq *
ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
		struct ibv_comp_channel *channel, int comp_vector)
{
	struct fake_cq *cq = fake_new("create_cq", sizeof(*cq));

	RTE_SET_USED(comp_vector);
	if (cq == NULL)
		return NULL;
	cq->ibv.context = context;
	cq->ibv.cq_context = cq_context;
	cq->ibv.channel = channel;
	cq->ibv.cqe = cqe;
	cq->ring = calloc((size_t)cqe, sizeof(*cq->ring));
	fake_cq_last = cq;
	return &cq->ibv;
}

int
ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct fake_cq *cq = (struct fake_cq *)ibv;

	if (fake_keeps("destroy_cq", cq))
		return errno;
	fake_withdraw(cq);
	free(cq->ring);
	free(cq);
	fake.nb_live--;
	return 0;
}

struct ibv_cq *
fake_last_cq(void)
{
	return &fake_cq_last->ibv;
}

int
ibv_resize_cq(struct ibv_cq *ibv, int cqe)
{
	struct fake_cq *cq = (struct fake_cq *)ibv;
	struct ibv_wc *ring;
	uint32_t i;

	if (fake_fails("resize_cq"))
		return errno;
	if (fake.has_no_resize)
		return EOPNOTSUPP;
	if (cq->prod - cq->cons > (uint32_t)cqe)
		return EINVAL;
	ring = calloc((size_t)cqe, sizeof(*ring));
	if (ring == NULL)
		return ENOMEM;
	for (i = cq->cons; i != cq->prod; i++)
		ring[i % (uint32_t)cqe] = cq->ring[i % (uint32_t)ibv->cqe];
	free(cq->ring);
	cq->ring = ring;
	ibv->cqe = cqe;
	return 0;
}
