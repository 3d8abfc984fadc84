/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * QP 1 of a device; see rmem_gsi.h.
 *
 * Invariant: each slot of the receive buffer is posted, except the one whose MAD is being passed to
 * the callback. Slots of the send buffer are used in turn; a slot is free again when its request
 * has completed. Sends have their own CQ, so rmem_gsi_send() can poll it without passing on
 * received MADs.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include <rmem_ah.h>
#include <rmem_comp_channel.h>
#include <rmem_cq.h>
#include <rmem_dev.h>
#include <rmem_dev_attr.h>
#include <rmem_fp.h>
#include <rmem_mr.h>
#include <rmem_pd.h>
#include <rmem_qp.h>

#include "rmem_gsi.h"

#define MAX_RECV 256
#define MAX_SEND 64
#define BURST    16

#define CLOSE_MS 100 /* limit of the wait for unsent messages in rmem_gsi_close() */

#define MAD_VERSION 1 /* base version, byte 0 */

struct recv_slot {
	uint8_t grh[RMEM_GRH_SIZE];
	uint8_t mad[IBCM_MAD_LEN];
};

struct buffers {
	struct recv_slot recv[MAX_RECV];
	uint8_t send[MAX_SEND][IBCM_MAD_LEN];
};

struct rmem_gsi {
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_comp_channel *channel;
	struct rmem_cq *cq; /* CQ of receives; uses the channel */
	struct rmem_cq *send_cq;
	struct rmem_qp *qp;
	struct rmem_mr *mr;
	struct buffers *buffers;
	uint8_t gid[16];
	rmem_gsi_recv_t recv;
	void *arg;
	uint32_t next_send;
	uint32_t nb_sends; /* outstanding sends */
	struct rmem_gsi_stats stats;
};

uint64_t
rmem_gsi_random(void *arg)
{
	uint64_t value = 0;

	RTE_SET_USED(arg);
	while (getrandom(&value, sizeof(value), 0) != (ssize_t)sizeof(value))
		;
	return value;
}

static void
post_recv(struct rmem_gsi *gsi, uint64_t slot)
{
	const struct rmem_sge sge = {.addr = (uintptr_t)&gsi->buffers->recv[slot],
			.length = sizeof(struct recv_slot),
			.lkey = gsi->mr->lkey};
	const struct rmem_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};

	(void)rmem_post_recv(gsi->qp, &wr, 1);
}

static int
move(struct rmem_qp *qp, uint32_t state, uint32_t mask)
{
	const struct rmem_qp_attr attr = {.state = state, .port_num = 1, .qkey = RMEM_GSI_QKEY};

	return rmem_qp_modify(qp, &attr, RMEM_QP_STATE | mask);
}

static int
make_ready(struct rmem_gsi *gsi)
{
	struct rmem_qp_attr attr;
	uint64_t i;
	int ret;

	ret = move(gsi->qp, RMEM_QPS_INIT, RMEM_QP_PKEY_INDEX | RMEM_QP_PORT | RMEM_QP_QKEY);
	for (i = 0; ret == 0 && i < MAX_RECV; i++)
		post_recv(gsi, i);
	if (ret == 0)
		ret = move(gsi->qp, RMEM_QPS_RTR, 0);
	if (ret == 0)
		ret = move(gsi->qp, RMEM_QPS_RTS, RMEM_QP_SQ_PSN);
	if (ret == 0)
		ret = rmem_qp_query(gsi->qp, &attr);
	if (ret == 0)
		memcpy(gsi->gid, attr.addr.gid, sizeof(gsi->gid));
	return ret;
}

static int
make_channel(struct rmem_gsi *gsi)
{
	struct rmem_dev_info info;
	int ret = rmem_dev_info_get(gsi->dev, &info);

	if (ret != 0 || (info.capa & RMEM_DEV_CAPA_COMP_CHANNEL) == 0)
		return ret;
	ret = rmem_comp_channel_create(gsi->dev, &gsi->channel);
	if (ret == 0 && fcntl(gsi->channel->fd, F_SETFL, O_NONBLOCK) != 0)
		ret = -EIO;
	return ret;
}

/* Consume events and arm the CQ. Must precede polling, so that no completion is missed. */
static void
arm(struct rmem_gsi *gsi)
{
	struct rmem_cq *cq;

	if (gsi->channel == NULL)
		return;
	while (rmem_comp_channel_get_event(gsi->channel, &cq, NULL) == 0)
		(void)rmem_cq_ack_events(cq, 1);
	(void)rmem_cq_req_notify(gsi->cq, false);
}

static int
make_qp(struct rmem_gsi *gsi)
{
	const struct rmem_cq_conf send_conf = {.nb_cqe = MAX_SEND};
	struct rmem_cq_conf cq_conf = {.nb_cqe = MAX_RECV};
	struct rmem_qp_conf conf = {.type = RMEM_QPT_UD,
			.flags = RMEM_QP_GSI | RMEM_QP_SIG_ALL,
			.max_send_wr = MAX_SEND,
			.max_recv_wr = MAX_RECV,
			.max_send_sge = 1,
			.max_recv_sge = 1};
	int ret;

	ret = rmem_pd_alloc(gsi->dev, &gsi->pd);
	if (ret == 0)
		ret = make_channel(gsi);
	if (ret != 0)
		return ret;
	cq_conf.channel = gsi->channel;
	ret = rmem_cq_create(gsi->dev, &cq_conf, &gsi->cq);
	if (ret == 0)
		ret = rmem_cq_create(gsi->dev, &send_conf, &gsi->send_cq);
	if (ret != 0)
		return ret;
	conf.send_cq = gsi->send_cq;
	conf.recv_cq = gsi->cq;
	ret = rmem_qp_create(gsi->pd, &conf, &gsi->qp);
	if (ret == 0)
		ret = rmem_mr_reg(gsi->pd, gsi->buffers, sizeof(*gsi->buffers), 0,
				RMEM_ACCESS_LOCAL_WRITE, &gsi->mr);
	return ret;
}

int
rmem_gsi_open(struct rmem_dev *dev, rmem_gsi_recv_t recv, void *arg, struct rmem_gsi **out)
{
	struct rmem_gsi *gsi = calloc(1, sizeof(*gsi));
	int ret = -ENOMEM;

	if (gsi == NULL)
		return -ENOMEM;
	gsi->dev = dev;
	gsi->recv = recv;
	gsi->arg = arg;
	gsi->buffers = calloc(1, sizeof(*gsi->buffers));
	if (gsi->buffers != NULL)
		ret = make_qp(gsi);
	if (ret == 0)
		ret = make_ready(gsi);
	if (ret != 0) {
		rmem_gsi_close(gsi);
		return ret;
	}
	arm(gsi);
	*out = gsi;
	return 0;
}

/* Free the slots of completed sends. */
static void
reap_sends(struct rmem_gsi *gsi)
{
	struct rmem_wc wc[BURST];
	int n;

	do {
		n = rmem_poll_cq(gsi->send_cq, wc, BURST);
		gsi->nb_sends -= n > 0 ? (uint32_t)n : 0;
	} while (n > 0);
}

static int64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Wait for outstanding sends: a MAD may wait for the link address of a neighbour. */
static void
finish_sends(struct rmem_gsi *gsi)
{
	int64_t end_ms = now_ms() + CLOSE_MS;

	for (;;) {
		reap_sends(gsi);
		if (gsi->nb_sends == 0 || now_ms() >= end_ms)
			return;
		sched_yield();
	}
}

/* Destroy everything except the channel. */
static void
destroy_qp(struct rmem_gsi *gsi)
{
	if (gsi->qp != NULL)
		(void)rmem_qp_destroy(gsi->qp);
	(void)rmem_mr_dereg(gsi->mr);
	if (gsi->cq != NULL)
		(void)rmem_cq_destroy(gsi->cq);
	if (gsi->send_cq != NULL)
		(void)rmem_cq_destroy(gsi->send_cq);
	(void)rmem_pd_dealloc(gsi->pd);
	free(gsi->buffers);
}

void
rmem_gsi_close(struct rmem_gsi *gsi)
{
	if (gsi->send_cq != NULL)
		finish_sends(gsi);
	if (gsi->cq != NULL)
		arm(gsi);
	destroy_qp(gsi);
	(void)rmem_comp_channel_destroy(gsi->channel);
	free(gsi);
}

void
rmem_gsi_abandon(struct rmem_gsi *gsi)
{
	destroy_qp(gsi);
	free(gsi);
}

int
rmem_gsi_fd(const struct rmem_gsi *gsi)
{
	return gsi->channel != NULL ? gsi->channel->fd : -1;
}

const uint8_t *
rmem_gsi_gid(const struct rmem_gsi *gsi)
{
	return gsi->gid;
}

const struct rmem_gsi_stats *
rmem_gsi_stats(const struct rmem_gsi *gsi)
{
	return &gsi->stats;
}

static uint32_t
nb_ports(const struct rmem_gsi *gsi)
{
	struct rmem_dev_attr attr;

	return rmem_dev_attr_get(gsi->dev, &attr) == 0 ? attr.nb_ports : 1;
}

/* Whether a GID is the destination in a GRH, or in its IPv4 header. */
static bool
is_destination(const uint8_t grh[RMEM_GRH_SIZE], const uint8_t gid[16])
{
	static const uint8_t ipv4_prefix[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(grh + 24, gid, 16) == 0 ||
			(grh[20] == 0x45 && memcmp(gid, ipv4_prefix, sizeof(ipv4_prefix)) == 0 &&
					memcmp(grh + 36, gid + 12, 4) == 0);
}

/* Port of the GID that a message was sent to; 1 if it is unknown. */
static uint32_t
port_of(const struct rmem_gsi *gsi, const uint8_t grh[RMEM_GRH_SIZE])
{
	const uint32_t nb = nb_ports(gsi);
	struct rmem_gid_entry own;
	struct rmem_port_attr port;
	uint32_t i, port_num;

	for (port_num = 2; port_num <= nb; port_num++) {
		if (rmem_dev_port_query(gsi->dev, port_num, &port) != 0)
			continue;
		for (i = 0; i < port.gid_tbl_len; i++) {
			if (rmem_dev_gid_query(gsi->dev, port_num, i, &own) == 0 &&
					is_destination(grh, own.gid))
				return port_num;
		}
	}
	return 1;
}

static void
received(struct rmem_gsi *gsi, const struct rmem_wc *wc)
{
	const struct recv_slot *slot = &gsi->buffers->recv[wc->wr_id];
	struct ibcm_path path = {0};
	struct rmem_gid_entry own;
	struct rmem_ah_attr ah;

	if (wc->byte_len != sizeof(*slot) || wc->src_qp != 1 || slot->mad[0] != MAD_VERSION ||
			slot->mad[1] != IBCM_MAD_CLASS ||
			rmem_ah_attr_from_wc(gsi->dev, port_of(gsi, slot->grh), wc, slot->grh,
					&ah) != 0) {
		gsi->stats.foreign++;
		return;
	}
	gsi->stats.rx++;
	memcpy(path.local_gid, gsi->gid, sizeof(path.local_gid));
	if ((ah.sgid_index != 0 || ah.port_num != 1) &&
			rmem_dev_gid_query(gsi->dev, ah.port_num, ah.sgid_index, &own) == 0)
		memcpy(path.local_gid, own.gid, sizeof(path.local_gid));
	memcpy(path.remote_gid, ah.dgid, sizeof(path.remote_gid));
	path.flow_label = ah.flow_label;
	path.traffic_class = ah.traffic_class;
	path.hop_limit = ah.hop_limit;
	gsi->recv(gsi->arg, &path, slot->mad);
}

/* Process completions; return their number. A flushed receive is not posted again, because the
 * device has failed. */
static int
poll_once(struct rmem_gsi *gsi)
{
	struct rmem_wc wc[BURST];
	int i, n = rmem_poll_cq(gsi->cq, wc, BURST);

	for (i = 0; i < n; i++) {
		if (wc[i].status != RMEM_WC_SUCCESS)
			continue;
		received(gsi, &wc[i]);
		post_recv(gsi, wc[i].wr_id);
	}
	return n;
}

bool
rmem_gsi_poll(struct rmem_gsi *gsi)
{
	int n = 1, nb = 0;

	arm(gsi);
	for (; n > 0 && nb < RMEM_GSI_MAX_POLL; nb += n)
		n = poll_once(gsi);
	return n > 0;
}

/* Find the index of a GID of a port. */
static bool
find_index(const struct rmem_gsi *gsi, const uint8_t gid[16], struct rmem_ah_attr *to)
{
	struct rmem_gid_entry entry;
	struct rmem_port_attr port;
	uint32_t i;

	if (rmem_dev_port_query(gsi->dev, to->port_num, &port) != 0)
		return false;
	for (i = 0; i < port.gid_tbl_len; i++) {
		to->sgid_index = (uint8_t)i;
		if (rmem_dev_gid_query(gsi->dev, to->port_num, i, &entry) == 0 &&
				memcmp(entry.gid, gid, sizeof(entry.gid)) == 0)
			return true;
	}
	return false;
}

/* Set the port and index of a GID of the device; false if it no longer exists. */
static bool
find_gid(const struct rmem_gsi *gsi, const uint8_t gid[16], struct rmem_ah_attr *to)
{
	const uint32_t nb = nb_ports(gsi);

	to->port_num = 1;
	to->sgid_index = 0;
	if (memcmp(gid, gsi->gid, sizeof(gsi->gid)) == 0)
		return true;
	for (; to->port_num <= nb; to->port_num++) {
		if (find_index(gsi, gid, to))
			return true;
	}
	return false;
}

void
rmem_gsi_send(struct rmem_gsi *gsi, const struct ibcm_path *path, const uint8_t mad[IBCM_MAD_LEN])
{
	struct rmem_ah_attr to = {.is_global = 1,
			.flow_label = path->flow_label,
			.traffic_class = path->traffic_class,
			.hop_limit = path->hop_limit};
	uint8_t *slot = gsi->buffers->send[gsi->next_send % MAX_SEND];
	const struct rmem_sge sge = {
			.addr = (uintptr_t)slot, .length = IBCM_MAD_LEN, .lkey = gsi->mr->lkey};
	struct rmem_send_wr wr = {.opcode = RMEM_WR_SEND,
			.sg_list = &sge,
			.num_sge = 1,
			.ud.remote_qpn = 1,
			.ud.remote_qkey = RMEM_GSI_QKEY};
	bool is_posted;

	memcpy(to.dgid, path->remote_gid, sizeof(to.dgid));
	reap_sends(gsi);
	if (!find_gid(gsi, path->local_gid, &to) || gsi->nb_sends == MAX_SEND ||
			rmem_ah_create(gsi->pd, &to, &wr.ud.ah) != 0) {
		gsi->stats.lost++;
		return;
	}
	memcpy(slot, mad, IBCM_MAD_LEN);
	is_posted = rmem_post_send(gsi->qp, &wr, 1) == 1;
	(void)rmem_ah_destroy(wr.ud.ah); /* not needed after the post */
	gsi->next_send += is_posted;
	gsi->nb_sends += is_posted;
	gsi->stats.tx += is_posted;
	gsi->stats.lost += !is_posted;
}
