/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Receives of random messages: of the receive queue of their QP, or of the SRQ of the run, which is
 * a queue in the model too: resets of its QPs leave it as it is, and messages take the oldest
 * receive, whose keys are those of its PD.
 */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "random_ops.h"

/* The QP of a side takes receives of the SRQ from now on. */
static void
replace_qp(struct random_run *run, struct fx_side *side)
{
	struct rmem_qp_conf conf = fx_qp_conf(side->cq, FX_DEPTH);

	conf.srq = run->srq.srq;
	TEST_OK(fx_release(side->qp));
	side->qp = fx_qp_by(side->pd, &conf);
}

void
random_srq_open(struct random_run *run)
{
	struct rmem_srq_conf conf = {.max_wr = 8, .max_sge = RANDOM_MAX_SGE};
	struct random_srq *srq = &run->srq;
	unsigned int i;

	srq->channel = fx_async_channel(fx.a.dev);
	TEST_OK(fcntl(srq->channel->fd, F_SETFL, O_NONBLOCK));
	conf.async_channel = srq->channel;
	srq->max_wr = conf.max_wr;
	srq->pd = NB_DOMAINS - 1;
	TEST_OK(rmem_srq_create(run->pds[srq->pd], &conf, &srq->srq));
	fx_track(srq->srq);
	for (i = 0; i < NB_DOMAINS; i++) {
		replace_qp(run, &run->pairs[i].a);
		replace_qp(run, &run->pairs[i].b);
	}
}

/* An event is there if the model has one; both disarm the limit. */
static int
check_limit(struct random_srq *srq)
{
	bool is_below = srq->nb < srq->limit;
	struct rmem_async_event event;
	int ret;

	ret = rmem_async_channel_get_event(srq->channel, &event);
	if (!is_below)
		return ret == -EAGAIN ? 0 : -1;
	srq->limit = 0;
	if (ret != 0 || event.type != RMEM_ASYNC_SRQ_LIMIT_REACHED || event.srq != srq->srq)
		return -1;
	return rmem_async_event_ack(&event);
}

/* The receive that a message to that QP takes, if it arrives; NULL: the device refused its post. */
const struct random_recv *
random_recv_post(struct random_run *run, struct rmem_qp *qp, const struct random_recv *recv)
{
	struct random_srq *srq = &run->srq;
	struct rmem_recv_wr wr = {.wr_id = srq->next_id, .sg_list = recv->sge, .num_sge = recv->nb};

	if (srq->srq == NULL)
		return random_post_recv(run, qp, recv) == 1 ? recv : NULL;
	if (srq->nb != 0)
		return &srq->recv[0];
	if (rmem_srq_post_recv(srq->srq, &wr, 1) != 1)
		return NULL;
	srq->recv[srq->nb] = *recv;
	srq->recv[srq->nb++].wr_id = srq->next_id++;
	return &srq->recv[0];
}

int
random_recv_taken(struct random_run *run)
{
	struct random_srq *srq = &run->srq;

	if (srq->srq == NULL)
		return 0;
	srq->nb--;
	memmove(&srq->recv[0], &srq->recv[1], srq->nb * sizeof(srq->recv[0]));
	return check_limit(srq);
}

/* One more receive, or the SRQ is full. */
static int
post(struct random_run *run)
{
	struct random_srq *srq = &run->srq;
	struct random_recv recv = {.wr_id = srq->next_id++};
	struct rmem_recv_wr wr = {.wr_id = recv.wr_id, .sg_list = recv.sge};

	recv.nb = wr.num_sge = random_sges(run, recv.sge, srq->pd, RMEM_ACCESS_LOCAL_WRITE);
	snprintf(run->what, sizeof(run->what), "receive %u of %u of the SRQ", srq->nb, srq->max_wr);
	if (srq->nb == srq->max_wr)
		return rmem_srq_post_recv(srq->srq, &wr, 1) == -ENOSPC ? 0 : -1;
	srq->recv[srq->nb++] = recv;
	return rmem_srq_post_recv(srq->srq, &wr, 1) == 1 ? 0 : -1;
}

static int
modify(struct random_run *run)
{
	struct random_srq *srq = &run->srq;
	struct rmem_srq_attr attr = {.max_wr = 1 + random_below(run, RANDOM_MAX_RECV),
			.srq_limit = random_below(run, RANDOM_MAX_RECV)};
	uint32_t mask = 1 + random_below(run, RMEM_SRQ_MAX_WR | RMEM_SRQ_LIMIT);
	uint32_t max_wr = (mask & RMEM_SRQ_MAX_WR) != 0 ? attr.max_wr : srq->max_wr;
	uint32_t limit = (mask & RMEM_SRQ_LIMIT) != 0 ? attr.srq_limit : srq->limit;
	int ret;

	snprintf(run->what, sizeof(run->what), "SRQ of %u receives: max_wr %u, limit %u", srq->nb,
			max_wr, limit);
	ret = rmem_srq_modify(srq->srq, &attr, mask);
	if (srq->nb > max_wr || limit > max_wr)
		return ret == -EINVAL ? 0 : -1;
	srq->max_wr = max_wr;
	srq->limit = limit;
	return ret == 0 ? check_limit(srq) : -1;
}

int
random_srq(struct random_run *run)
{
	struct random_srq *srq = &run->srq;
	struct rmem_srq_attr attr;

	if (srq->srq == NULL)
		return 0;
	if (random_one_in(run, 2))
		return post(run);
	if (random_one_in(run, 2))
		return modify(run);
	snprintf(run->what, sizeof(run->what), "query of the SRQ");
	if (rmem_srq_query(srq->srq, &attr) != 0)
		return -1;
	return attr.max_wr == srq->max_wr && attr.srq_limit == srq->limit && attr.nb_wr == srq->nb
			? 0
			: -1;
}
