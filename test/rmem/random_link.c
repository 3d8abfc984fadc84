/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Random messages of UC, UD and XRC, with receives or without; CQs that are resized with
 * completions in them; and events of CQs. The rules of keys are those of all other requests.
 */

#include <stdio.h>
#include <string.h>

#include "random_ops.h"

#define LINK_DEPTH  16u
#define LINK_MTU    4096u /* of datagrams */
#define MAX_POSTED  4u
#define MAX_RESIZED 100u

/* Side a gets a channel for its completions. */
static void
open_side(struct fx_side *side, struct rmem_pd *pd, struct rmem_comp_channel *channel, uint8_t type)
{
	const struct rmem_cq_conf conf = {.nb_cqe = LINK_DEPTH, .channel = channel};
	struct rmem_qp_conf qp_conf;

	side->dev = fx.a.dev;
	side->pd = pd;
	side->cq = fx_cq_by(side->dev, &conf);
	qp_conf = fx_qp_conf(side->cq, LINK_DEPTH);
	qp_conf.type = type;
	if (type == RMEM_QPT_XRC_SEND) {
		qp_conf.recv_cq = NULL;
		qp_conf.max_recv_wr = qp_conf.max_recv_sge = 0;
	}
	side->qp = fx_qp_by(pd, &qp_conf);
}

/* The receiving side of XRC: a QP of a new domain, and an SRQ. */
static void
open_domain(struct pair *pair, struct rmem_pd *pd)
{
	const struct rmem_xrcd_conf conf = {.flags = 0};
	struct rmem_qp_ext qp_ext = {.xrcd = NULL};
	struct rmem_qp_conf qp_conf = {.type = RMEM_QPT_XRC_RECV, .access = RMEM_ACCESS_REMOTE};
	struct rmem_srq_ext ext = {.cq = fx_cq(fx.a.dev, LINK_DEPTH)};
	struct rmem_srq_conf srq_conf = {.max_wr = LINK_DEPTH, .max_sge = RANDOM_MAX_SGE};

	TEST_OK(rmem_xrcd_alloc(fx.a.dev, &conf, &qp_ext.xrcd));
	fx_track(qp_ext.xrcd);
	ext.xrcd = qp_ext.xrcd;
	srq_conf.ext = &ext;
	TEST_OK(rmem_srq_create(pd, &srq_conf, &pair->srq));
	fx_track(pair->srq);
	TEST_OK(rmem_srq_num_get(pair->srq, &pair->srq_num));
	qp_conf.ext = &qp_ext;
	pair->b = (struct fx_side){
			.dev = fx.a.dev, .pd = pd, .cq = ext.cq, .qp = fx_qp_by(NULL, &qp_conf)};
}

void
random_links_open(struct random_run *run)
{
	static const uint8_t types[NB_LINKS] = {RMEM_QPT_UC, RMEM_QPT_UD, RMEM_QPT_XRC_SEND};
	struct pair *ud = &run->links[RANDOM_UD];
	unsigned int i;

	for (i = 0; i < NB_LINKS; i++) {
		struct pair *pair = &run->links[i];

		pair->type = types[i];
		pair->pd_b = NB_DOMAINS - 1;
		open_side(&pair->a, run->pds[0], fx_channel(fx.a.dev), types[i]);
		if (types[i] == RMEM_QPT_XRC_SEND)
			open_domain(pair, run->pds[pair->pd_b]);
		else
			open_side(&pair->b, run->pds[pair->pd_b], NULL, types[i]);
		TEST_OK(random_reconnect(pair));
	}
	ud->ah = fx_ah_to(ud->a.pd, ud->b.qp);
}

bool
random_event_matches(struct pair *pair, const struct fx_side *side)
{
	struct rmem_comp_channel *channel = side->cq->channel;
	struct rmem_cq *cq;

	if (channel == NULL)
		return true;
	if (!pair->is_armed)
		return !fx_is_readable(channel->fd, 0);
	pair->is_armed = false;
	return fx_is_readable(channel->fd, FX_EVENT_MS) &&
			rmem_comp_channel_get_event(channel, &cq, NULL) == 0 && cq == side->cq &&
			rmem_cq_ack_events(cq, 1) == 0;
}

int
random_arm(struct random_run *run)
{
	struct pair *pair = &run->links[random_below(run, NB_LINKS)];

	snprintf(run->what, sizeof(run->what), "CQ of QP type %u is armed", pair->type);
	pair->is_armed = true;
	return rmem_cq_req_notify(pair->a.cq, false);
}

/* A random receive for a message of this length; false: it does not fit. */
static bool
open_recv(struct random_run *run, const struct pair *pair, struct random_recv *recv,
		uint32_t length)
{
	const struct model_side b = {pair->pd_b, pair->b.qp};
	uint32_t need = RMEM_ACCESS_LOCAL_WRITE, room = 0;
	uint16_t i;

	recv->nb = random_sges(run, recv->sge, pair->pd_b, need);
	for (i = 0; i < recv->nb; i++)
		room += recv->sge[i].length;
	random_clear(&run->remote);
	return room >= length &&
			model_open_sges(&run->model, &b, recv->sge, recv->nb, need, &run->remote);
}

static int
post_recv(struct random_run *run, struct pair *pair, const struct random_recv *recv)
{
	const struct rmem_recv_wr wr = {
			.wr_id = recv->wr_id, .sg_list = recv->sge, .num_sge = recv->nb};

	return pair->srq != NULL ? rmem_srq_post_recv(pair->srq, &wr, 1)
				 : random_post_recv(run, pair->b.qp, recv);
}

/* The header of a datagram is the device's; then the message. */
static void
copy_received(struct random_run *run, uint32_t header)
{
	uint32_t i, length = run->local.length;

	for (i = 0; i < header; i++)
		run->model.bytes[run->remote.places[i]] = run->arena[run->remote.places[i]];
	memmove(&run->remote.places[0], &run->remote.places[header],
			length * sizeof(run->remote.places[0]));
	model_copy(&run->model, &run->remote, &run->local, length);
}

/* A message with data that can be read, to a receive that fits, or to none. */
static int
deliver(struct random_run *run, struct pair *pair, struct rmem_send_wr *wr)
{
	uint32_t header = pair->type == RMEM_QPT_UD ? RMEM_GRH_SIZE : 0;
	struct random_recv recv = {.wr_id = random_below(run, UINT32_MAX)};
	bool has_recv = open_recv(run, pair, &recv, header + run->local.length);
	struct rmem_wc wc;

	if (has_recv &&
			(model_overlaps(&run->model, &run->local, &run->remote) ||
					model_overlaps(&run->model, &run->remote, &run->local)))
		return 0;
	/* A receive is only missing where the message is dropped then. */
	if (!has_recv && pair->type == RMEM_QPT_XRC_SEND)
		return 0;
	if (has_recv && post_recv(run, pair, &recv) != 1)
		return -1;
	if (random_send(run, pair, &pair->a, wr) != RMEM_WC_SUCCESS)
		return -1;
	if (!has_recv)
		return rmem_poll_cq(pair->b.cq, &wc, 1) == 0 ? 0 : -1;
	copy_received(run, header);
	run->nb_taken[pair - run->links]++;
	return fx_poll(pair->b.cq, &wc, 1) == 1 && wc.status == RMEM_WC_SUCCESS &&
					wc.byte_len == header + run->local.length &&
					wc.wr_id == recv.wr_id
			? 0
			: -1;
}

int
random_message(struct random_run *run)
{
	struct pair *pair = &run->links[random_below(run, NB_LINKS)];
	const struct model_side a = {0, pair->a.qp};
	struct rmem_sge sge[RANDOM_MAX_SGE];
	uint16_t i, nb = random_sges(run, sge, 0, 0);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, sge, nb);
	uint32_t length = 0, allowed = 0;
	int status;

	for (i = 0; i < nb; i++)
		length += sge[i].length;
	if (pair->type == RMEM_QPT_UD) {
		wr.ud.ah = pair->ah;
		wr.ud.remote_qpn = pair->b.qp->qp_num;
		wr.ud.remote_qkey = RANDOM_QKEY;
		if (length > LINK_MTU)
			allowed |= MODEL_STATUS(RMEM_WC_LOC_LEN_ERR);
	}
	random_clear(&run->local);
	if (!model_open_sges(&run->model, &a, sge, nb, 0, &run->local))
		allowed |= MODEL_STATUS(RMEM_WC_LOC_PROT_ERR);
	snprintf(run->what, sizeof(run->what), "message of QP type %u, %u SGEs, %u bytes",
			pair->type, nb, length);
	if (allowed == 0)
		return deliver(run, pair, &wr);
	/* An unreliable message whose data cannot be read fails also without a receive. */
	if (pair->type == RMEM_QPT_XRC_SEND)
		return 0;
	status = random_send(run, pair, &pair->a, &wr);
	return status >= 0 && (allowed & MODEL_STATUS(status)) != 0 ? 0 : -1;
}

/* Resize a CQ with completions in it: it keeps them, and their order. */
int
random_resize(struct random_run *run)
{
	struct pair *pair = &run->pairs[random_below(run, NB_DOMAINS)];
	struct fx_side *side = random_one_in(run, 2) ? &pair->a : &pair->b;
	uint32_t i, nb = random_below(run, MAX_POSTED + 1);
	uint32_t size = MAX_POSTED + random_below(run, MAX_RESIZED);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_RDMA_WRITE, NULL, 0);
	struct rmem_wc wc;
	int ret;

	snprintf(run->what, sizeof(run->what), "CQ with %u completions gets size %u", nb, size);
	wr.flags = RMEM_SEND_SIGNALED;
	for (wr.wr_id = 0; wr.wr_id < nb; wr.wr_id += ret == 1) {
		ret = fx_post(side->qp, &wr);
		if (ret != 1 && !(run->has_chaos && ret == -ENOSPC))
			return -1;
	}
	ret = rmem_cq_resize(side->cq, size);
	if (ret == 0 ? side->cq->nb_cqe < size : !(run->has_chaos && ret == -ENOMEM))
		return -1;
	for (i = 0; i < nb; i++) {
		if (fx_poll(side->cq, &wc, 1) != 1 || wc.wr_id != i)
			return -1;
		if (random_is_injected(run, &wc))
			return random_reconnect(pair);
		if (wc.status != RMEM_WC_SUCCESS)
			return -1;
	}
	return rmem_poll_cq(side->cq, &wc, 1) == 0 ? 0 : -1;
}
