/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Common to all transports: the private data of a message, which is the address of a QP and bytes
 * of the caller; conversion of addresses; and connecting the QP.
 */

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <rte_byteorder.h>

#include <rmem_dev.h>

#include "rmem_cm_priv.h"

#define CM_MAGIC   0x724d /* "rM" */
#define CM_VERSION 1

/* Wire format. */
struct cm_head {
	rte_be16_t magic;
	uint8_t version;
	uint8_t data_size;
	uint8_t mtu;
	uint8_t reserved; /* 0 */
	rte_be16_t lid;
	rte_be32_t qp_num;
	rte_be32_t psn;
	uint8_t gid[16];
};

static_assert(sizeof(struct cm_head) == CM_HEAD_SIZE, "no holes");

uint8_t
rmem_cm_pack(const struct rmem_qp_addr *addr, const void *data, uint32_t data_size,
		uint8_t message[CM_MAX_SIZE])
{
	struct cm_head head = {.magic = rte_cpu_to_be_16(CM_MAGIC),
			.version = CM_VERSION,
			.data_size = (uint8_t)data_size,
			.mtu = addr->mtu,
			.lid = rte_cpu_to_be_16(addr->lid),
			.qp_num = rte_cpu_to_be_32(addr->qp_num),
			.psn = rte_cpu_to_be_32(addr->psn)};

	memcpy(head.gid, addr->gid, sizeof(head.gid));
	memcpy(message, &head, sizeof(head));
	if (data_size != 0)
		memcpy(message + sizeof(head), data, data_size);
	return (uint8_t)(sizeof(head) + data_size);
}

int
rmem_cm_unpack(const uint8_t *message, uint32_t size, struct rmem_cm_peer *peer)
{
	struct cm_head head;

	if (size < sizeof(head))
		return CM_FAIL(EBADMSG, "peer: message too short: %u bytes (%zu)", size,
				sizeof(head));
	memcpy(&head, message, sizeof(head));
	if (head.magic != rte_cpu_to_be_16(CM_MAGIC))
		return CM_FAIL(EBADMSG,
				"peer: not a message of rmem: magic 0x%04x (expected 0x%04x)",
				rte_be_to_cpu_16(head.magic), CM_MAGIC);
	if (head.version != CM_VERSION || head.reserved != 0)
		return CM_FAIL(EBADMSG, "peer: wrong version: %u (expected %u)", head.version,
				CM_VERSION);
	if (head.data_size > RMEM_CM_MAX_ANSWER || head.data_size > size - sizeof(head))
		return CM_FAIL(EBADMSG,
				"peer: message truncated: %u bytes announced (%zu received)",
				head.data_size, size - sizeof(head));
	memset(peer, 0, sizeof(*peer));
	memcpy(peer->addr.gid, head.gid, sizeof(head.gid));
	peer->addr.qp_num = rte_be_to_cpu_32(head.qp_num);
	peer->addr.psn = rte_be_to_cpu_32(head.psn);
	peer->addr.lid = rte_be_to_cpu_16(head.lid);
	peer->addr.mtu = head.mtu;
	peer->data_size = head.data_size;
	memcpy(peer->data, message + sizeof(head), head.data_size);
	return 0;
}

bool
rmem_cm_has_gsi(struct rmem_dev *dev, const uint8_t *gid)
{
	static const uint8_t none[16];
	struct rmem_dev_info info;

	return rmem_dev_info_get(dev, &info) == 0 && (info.capa & RMEM_DEV_CAPA_GSI) != 0 &&
			memcmp(info.gid, none, sizeof(none)) != 0 &&
			(gid == NULL || memcmp(info.gid, gid, sizeof(info.gid)) == 0);
}

struct rmem_dev *
rmem_cm_gsi_dev(const uint8_t gid[16])
{
	struct rmem_dev *dev;

	RMEM_DEV_FOREACH(dev) {
		if (rmem_cm_has_gsi(dev, gid))
			return dev;
	}
	return NULL;
}

int
rmem_cm_connect_qp(const struct rmem_cm_conf *conf, const struct rmem_qp_addr *remote)
{
	struct rmem_qp_conn conn;
	int ret;

	memset(&conn, 0, sizeof(conn));
	conn.remote = *remote;
	conn.timeout = conf->timeout;
	conn.retry_cnt = conf->retry_cnt;
	conn.rnr_retry = conf->rnr_retry;
	conn.min_rnr_timer = conf->min_rnr_timer;
	ret = rmem_qp_connect(conf->qp, &conn);
	if (ret == -EINVAL) /* only the peer's address was not checked yet */
		return -EBADMSG;
	return ret == 0 || ret == -EBUSY || ret == -ENOMEM || ret == -ENODEV ? ret : -EIO;
}

void
rmem_cm_copy_sockaddr(const struct sockaddr *from, struct sockaddr_storage *to)
{
	memset(to, 0, sizeof(*to));
	memcpy(to, from,
			from->sa_family == AF_INET ? sizeof(struct sockaddr_in)
						   : sizeof(struct sockaddr_in6));
}

void
rmem_cm_sockaddr_gid(const struct sockaddr *addr, uint8_t gid[16])
{
	static const uint8_t four[12] = {[10] = 0xff, [11] = 0xff};
	struct sockaddr_storage copy;

	rmem_cm_copy_sockaddr(addr, &copy);
	if (copy.ss_family == AF_INET) {
		memcpy(gid, four, sizeof(four));
		memcpy(gid + sizeof(four), &((struct sockaddr_in *)(void *)&copy)->sin_addr, 4);
	} else {
		memcpy(gid, &((struct sockaddr_in6 *)(void *)&copy)->sin6_addr, 16);
	}
}
