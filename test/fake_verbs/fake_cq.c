/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The fake of a resize of CQs; see fake.h. */

#include <errno.h>
#include <stdlib.h>

#include "fake.h"

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
