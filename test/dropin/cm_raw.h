/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Packets of rdma_cm's sockets, byte by byte: what a program without the library could send. */

#ifndef CM_RAW_H
#define CM_RAW_H

#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <rdma/rdma_user_cm.h>

#include "../holds.h"

#define RAW_DATA         24 /* of a MAD: where its data begin */
#define RAW_REJ_CONSUMER 28

/* Attributes. */
#define RAW_REQ      0x10
#define RAW_MRA      0x11
#define RAW_REJ      0x12
#define RAW_REP      0x13
#define RAW_RTU      0x14
#define RAW_DREQ     0x15
#define RAW_DREP     0x16
#define RAW_SIDR_REQ 0x17
#define RAW_SIDR_REP 0x18

struct raw_packet {
	uint8_t gid[16];
	uint8_t lid[2];
	uint8_t mtu;
	uint8_t reserved;
	uint8_t mad[256];
};

static inline void
raw_put(uint8_t *to, uint64_t value, int size)
{
	int i;

	for (i = size - 1; i >= 0; i--, value >>= 8)
		to[i] = (uint8_t)value;
}

static inline void
raw_begin(struct raw_packet *packet, uint16_t type)
{
	memset(packet, 0, sizeof(*packet));
	packet->gid[0] = 0xfe;
	packet->gid[15] = 1;
	packet->lid[1] = 1;
	packet->mtu = 3;
	packet->mad[0] = 1;
	packet->mad[1] = 7;
	packet->mad[2] = 2;
	packet->mad[3] = 3;
	raw_put(packet->mad + 16, type, 2);
}

/* A connection to a port of 127.0.0.1, by a program of its own. */
static inline int
raw_connect(uint16_t port)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un name;
	socklen_t len = cm_name(RDMA_PS_TCP, port, &name);

	HOLDS(fd >= 0 && connect(fd, (struct sockaddr *)&name, len) == 0);
	return fd;
}

/* A valid request to a port of 127.0.0.1. */
static inline void
raw_req(struct raw_packet *packet, uint16_t port, uint32_t comm_id, uint32_t qpn)
{
	uint8_t *data = packet->mad + RAW_DATA;

	raw_begin(packet, RAW_REQ);
	raw_put(packet->mad + 8, comm_id, 8);
	raw_put(data, comm_id, 4);
	raw_put(data + 8, (uint64_t)RDMA_PS_TCP << 16 | port, 8);
	raw_put(data + 32, qpn, 3);
	data[43] = data[47] = 20 << 3;
	raw_put(data + 48, 0xffff, 2);
	data[50] = 3 << 4;
	memcpy(data + 56, packet->gid, 16);
	data += 140; /* the addresses of annex A11 */
	data[1] = 4 << 4;
	raw_put(data + 2, 7, 2);
	raw_put(data + 16, 0x7f000001, 4);
	raw_put(data + 32, 0x7f000001, 4);
}

/* A message that answers another one, with the QP number 5 of a REP. */
static inline void
raw_answer(struct raw_packet *packet, uint16_t type, const struct raw_packet *to)
{
	raw_begin(packet, type);
	memcpy(packet->mad + 8, to->mad + 8, 8);
	if (to->mad[17] == RAW_REP)
		memcpy(packet->mad + RAW_DATA, to->mad + RAW_DATA + 4, 4);
	memcpy(packet->mad + RAW_DATA + 4, to->mad + RAW_DATA, 4);
	if (type == RAW_REP)
		packet->mad[RAW_DATA + 14] = 5;
	if (type == RAW_REJ)
		packet->mad[RAW_DATA + 11] = RAW_REJ_CONSUMER;
}

static inline void
raw_send(int fd, const struct raw_packet *packet)
{
	HOLDS(send(fd, packet, sizeof(*packet), MSG_NOSIGNAL) == sizeof(*packet));
}

/* Receive a message of that type. */
static inline void
raw_recv(int fd, uint16_t type, struct raw_packet *packet)
{
	HOLDS(fd >= 0 && recv(fd, packet, sizeof(*packet), 0) == sizeof(*packet));
	HOLDS(packet->mad[17] == type);
}

#endif
