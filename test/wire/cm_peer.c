/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* See cm_peer.h. */

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>

#include "../test.h"
#include "cm_peer.h"

#define PS_TCP      UINT64_C(0x0106)
#define CM_TIMEOUT  24 /* 68.7 s: the other side sends nothing again */
#define CLOSED_PORT 9

static void
received(void *arg, const struct ibcm_path *path, const uint8_t mad[IBCM_MAD_LEN])
{
	struct cm_peer *peer = arg;
	struct ibcm_msg msg;

	RTE_SET_USED(path);
	TEST_ASSERT(ibcm_mad_decode(mad, &msg));
	msg.data = NULL;
	msg.data_len = 0;
	peer->nb[msg.type - IBCM_REQ]++;
	peer->last[msg.type - IBCM_REQ] = msg;
}

static void
gid_of(const char *ip, uint8_t gid[16])
{
	static const uint8_t four[12] = {[10] = 0xff, [11] = 0xff};

	memcpy(gid, four, sizeof(four));
	TEST_EQ(inet_pton(AF_INET, ip, gid + sizeof(four)), 1);
}

void
cm_peer_open(struct cm_peer *peer, const char *name, const char *ip, const char *remote)
{
	char args[64];

	memset(peer, 0, sizeof(*peer));
	snprintf(args, sizeof(args), "ip=%s", ip);
	TEST_OK(rmem_dev_create(name, args, &peer->dev));
	TEST_OK(rmem_gsi_open(peer->dev, received, peer, &peer->gsi));
	gid_of(ip, peer->path.local_gid);
	gid_of(remote, peer->path.remote_gid);
	peer->path.hop_limit = 64;
	peer->port_space = PS_TCP;
	TEST_MEM(rmem_gsi_gid(peer->gsi), peer->path.local_gid, 16);
}

void
cm_peer_close(struct cm_peer *peer)
{
	rmem_gsi_close(peer->gsi);
	TEST_OK(rmem_dev_close(peer->dev));
}

uint32_t
cm_peer_nb(const struct cm_peer *peer, enum ibcm_type type)
{
	return peer->nb[type - IBCM_REQ];
}

const struct ibcm_msg *
cm_peer_last(const struct cm_peer *peer, enum ibcm_type type)
{
	return &peer->last[type - IBCM_REQ];
}

void
cm_peer_wait(struct cm_peer *peer, enum ibcm_type type, uint32_t nb)
{
	while (cm_peer_nb(peer, type) < nb)
		rmem_gsi_poll(peer->gsi);
}

void
cm_peer_send(struct cm_peer *peer, const struct ibcm_msg *msg)
{
	uint8_t mad[IBCM_MAD_LEN];

	TEST_ASSERT(ibcm_mad_encode(msg, mad));
	rmem_gsi_send(peer->gsi, &peer->path, mad);
}

void
cm_peer_message(const uint8_t gid[16], uint32_t qpn, uint8_t message[CM_PEER_MESSAGE])
{
	const uint32_t qpn_be = htonl(qpn);

	memset(message, 0, CM_PEER_MESSAGE);
	memcpy(message, (const uint8_t[]){0x72, 0x4d, 1, 0, 3}, 5);
	memcpy(message + 8, &qpn_be, sizeof(qpn_be));
	memcpy(message + 16, gid, 16);
}

void
cm_peer_request(struct cm_peer *peer, uint16_t port, const void *data, uint32_t len,
		struct ibcm_msg *req)
{
	struct ibcm_ip ip = {.version = 4, .src_port = 0x9000};
	uint32_t number = 2 + peer->nb_ids++;
	uint8_t bytes[IBCM_MAX_DATA];

	*req = (struct ibcm_msg){.type = IBCM_REQ,
			.tid = number,
			.local_id = number,
			.service_id = peer->port_space << 16 | port,
			.ca_guid = 0x1234,
			.qpn = number,
			.pkey = IBCM_PKEY,
			.responder_resources = 1,
			.initiator_depth = 1,
			.mtu = 3,
			.retry_count = 7,
			.rnr_retry_count = 7,
			.ack_timeout = 1,
			.remote_timeout = CM_TIMEOUT,
			.local_timeout = CM_TIMEOUT,
			.hop_limit = 64};
	memcpy(req->local_gid, peer->path.local_gid, sizeof(req->local_gid));
	memcpy(req->remote_gid, peer->path.remote_gid, sizeof(req->remote_gid));
	memcpy(ip.src + 12, peer->path.local_gid + 12, 4);
	memcpy(ip.dst + 12, peer->path.remote_gid + 12, 4);
	ibcm_ip_encode(&ip, bytes);
	if (len != 0)
		memcpy(bytes + IBCM_IP_LEN, data, len);
	req->data = bytes;
	req->data_len = IBCM_IP_LEN + len;
	cm_peer_send(peer, req);
	req->data = NULL;
	req->data_len = 0;
}

void
cm_peer_connect(struct cm_peer *peer, uint16_t port, struct ibcm_msg *req)
{
	uint8_t message[CM_PEER_MESSAGE];

	cm_peer_message(peer->path.local_gid, 2 + peer->nb_ids, message);
	cm_peer_request(peer, port, message, sizeof(message), req);
}

struct ibcm_msg
cm_peer_reply(const struct cm_peer *peer, const struct ibcm_msg *req, enum ibcm_type type)
{
	const struct ibcm_msg *rep = cm_peer_last(peer, IBCM_REP);

	return (struct ibcm_msg){.type = type,
			.tid = req->tid,
			.local_id = req->local_id,
			.remote_id = rep->local_id,
			.qpn = type == IBCM_DREQ ? rep->qpn : 0};
}

/*
 * The network keeps the order, and the other side answers this one without its consumer. A message
 * that a full queue lost is sent again.
 */
void
cm_peer_sync(struct cm_peer *peer)
{
	const struct ibcm_msg *rej = cm_peer_last(peer, IBCM_REJ);
	uint64_t now, next = 0;
	struct ibcm_msg req;

	cm_peer_request(peer, CLOSED_PORT, NULL, 0, &req);
	do {
		now = rte_rdtsc();
		if (next != 0 && now >= next)
			cm_peer_send(peer, &req);
		if (now >= next)
			next = now + rte_get_tsc_hz();
		rmem_gsi_poll(peer->gsi);
	} while (rej->remote_id != req.local_id);
}
