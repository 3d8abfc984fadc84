/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A peer of rmem_cm that sends any MAD: QP 1 of a device, without an engine. All calls are those of
 * one lcore.
 */

#ifndef CM_PEER_H
#define CM_PEER_H

#include <rmem.h>
#include "rmem_gsi.h"

#define CM_PEER_MESSAGE 32 /* bytes of a message of rmem without private data */

struct cm_peer {
	struct rmem_dev *dev;
	struct rmem_gsi *gsi;
	struct ibcm_path path;               /* to the other side */
	uint64_t port_space;                 /* of requests; of rdma_cm's TCP at first */
	uint32_t nb_ids;                     /* comm IDs, TIDs and QP numbers that were used */
	uint32_t nb[IBCM_NB_TYPES];          /* of received messages */
	struct ibcm_msg last[IBCM_NB_TYPES]; /* of each type; without data */
};

/* Device name of address ip, and its QP 1; the other side has the address remote. */
void cm_peer_open(struct cm_peer *peer, const char *name, const char *ip, const char *remote);
void cm_peer_close(struct cm_peer *peer);

/* Messages of a type that were received; the last one. */
uint32_t cm_peer_nb(const struct cm_peer *peer, enum ibcm_type type);
const struct ibcm_msg *cm_peer_last(const struct cm_peer *peer, enum ibcm_type type);
/* Wait until that many were received. */
void cm_peer_wait(struct cm_peer *peer, enum ibcm_type type, uint32_t nb);

void cm_peer_send(struct cm_peer *peer, const struct ibcm_msg *msg);
/* A message of rmem, in the name of a QP of this address. */
void cm_peer_message(const uint8_t gid[16], uint32_t qpn, uint8_t message[CM_PEER_MESSAGE]);
/* Send a request of a new ID to a port, with private data; it is *req, without that. */
void cm_peer_request(struct cm_peer *peer, uint16_t port, const void *data, uint32_t len,
		struct ibcm_msg *req);
/* The same with a message of rmem. */
void cm_peer_connect(struct cm_peer *peer, uint16_t port, struct ibcm_msg *req);
/* RTU or DREQ of an ID that was answered by the last REP. */
struct ibcm_msg cm_peer_reply(
		const struct cm_peer *peer, const struct ibcm_msg *req, enum ibcm_type type);
/* Return when the other side has processed all that was sent. */
void cm_peer_sync(struct cm_peer *peer);

#endif /* CM_PEER_H */
