/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Two devices with ip= and loop=1, soft0 and soft1, and QPs that they connect by GIDs. */

#ifndef TWO_SIDES_H
#define TWO_SIDES_H

#include <arpa/inet.h>

#include "own_qp.h"

#define QKEY 0x11111111

/* A device, and what a QP of it needs. */
struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	_Alignas(64) uint8_t buf[256];
};

/* Where a QP is: a port of its device, and entries of the port's tables. */
struct place {
	uint8_t port_num;
	uint8_t sgid_index;
	uint16_t pkey_index;
};

static struct side sides[2];

static inline union ibv_gid
gid_of(const char *ip)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	HOLDS(inet_pton(AF_INET, ip, gid.raw + 12) == 1);
	return gid;
}

static inline void
open_side(struct side *side, const char *name)
{
	side->context = open_device(name);
	side->pd = ibv_alloc_pd(side->context);
	HOLDS(side->pd != NULL);
	side->mr = ibv_reg_mr(side->pd, side->buf, sizeof(side->buf), WRITABLE);
	side->cq = ibv_create_cq(side->context, 8, NULL, NULL, 0);
	HOLDS(side->mr != NULL && side->cq != NULL);
}

static inline void
close_side(struct side *side)
{
	HOLDS(ibv_destroy_cq(side->cq) == 0 && ibv_dereg_mr(side->mr) == 0);
	HOLDS(ibv_dealloc_pd(side->pd) == 0 && ibv_close_device(side->context) == 0);
}

static inline struct ibv_qp *
create_qp(const struct side *side, enum ibv_qp_type type)
{
	struct ibv_qp *qp = create_qp_of(
			type, side->pd, side->cq, NULL, (struct ibv_qp_cap){4, 4, 1, 1, 0});

	HOLDS(qp != NULL);
	return qp;
}

/* Whether requests of QPs that are connected from now on fail in 10 ms, and not after seconds. */
static bool is_loss_expected;

/* Connect a QP of RC with a QP at that GID; 0 or an errno. */
static inline int
connect_rc(struct ibv_qp *qp, const struct ibv_qp *peer, const char *to, struct place from)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
			.port_num = from.port_num,
			.pkey_index = from.pkey_index,
			.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
			.path_mtu = IBV_MTU_256,
			.dest_qp_num = peer->qp_num,
			.timeout = is_loss_expected ? 10 : 18,
			.retry_cnt = is_loss_expected ? 1 : 7,
			.ah_attr = {.port_num = from.port_num,
					.is_global = 1,
					.grh = {.dgid = gid_of(to),
							.sgid_index = from.sgid_index}}};
	int ret = ibv_modify_qp(qp, &attr, INIT_MASK);

	attr.qp_state = IBV_QPS_RTR;
	if (ret == 0)
		ret = ibv_modify_qp(qp, &attr, RTR_MASK);
	attr.qp_state = IBV_QPS_RTS;
	if (ret == 0)
		ret = ibv_modify_qp(qp, &attr, RTS_MASK);
	return ret;
}

/* Send an empty datagram to a QP by an AH. */
static inline void
send_to(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t qpn)
{
	struct ibv_send_wr *bad,
			wr = {.opcode = IBV_WR_SEND,
					.send_flags = IBV_SEND_SIGNALED,
					.wr.ud = {.ah = ah,
							.remote_qpn = qpn,
							.remote_qkey = QKEY}};

	HOLDS(ibv_post_send(qp, &wr, &bad) == 0);
}

static inline void
post_recv(struct ibv_qp *qp, struct side *side)
{
	struct ibv_sge sge = {(uintptr_t)side->buf, 128, side->mr->lkey};
	struct ibv_recv_wr *bad, recv = {.sg_list = &sge, .num_sge = 1};

	HOLDS(ibv_post_recv(qp, &recv, &bad) == 0);
}

/*
 * A datagram of peer, of the second side, to a GID of qp, and the answer, which has the entry of
 * the table of GIDs that the datagram was sent to.
 */
static inline void
exchange_datagrams(struct ibv_qp *qp, struct ibv_qp *peer, const char *to, struct place at)
{
	struct ibv_ah_attr attr = {.port_num = 1,
			.is_global = 1,
			.grh = {.dgid = gid_of(to), .hop_limit = 64}};
	struct ibv_ah *ah = ibv_create_ah(sides[1].pd, &attr), *back;
	struct ibv_wc wc;

	post_recv(qp, &sides[0]);
	post_recv(peer, &sides[1]);
	HOLDS(ah != NULL);
	send_to(peer, ah, qp->qp_num);
	HOLDS(wait_wc(sides[1].cq).opcode == IBV_WC_SEND);
	wc = wait_wc(sides[0].cq);
	HOLDS(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV);
	HOLDS(ibv_init_ah_from_wc(sides[0].context, at.port_num, &wc, (void *)sides[0].buf,
			      &attr) == 0);
	HOLDS(attr.port_num == at.port_num && attr.grh.sgid_index == at.sgid_index);
	back = ibv_create_ah(sides[0].pd, &attr);
	HOLDS(back != NULL);
	send_to(qp, back, peer->qp_num);
	HOLDS(wait_wc(sides[0].cq).opcode == IBV_WC_SEND);
	HOLDS(wait_wc(sides[1].cq).opcode == IBV_WC_RECV);
	/* The source in the IPv4 header, at the end of the GRH, or in an InfiniBand header. */
	HOLDS(memcmp(sides[1].buf + 32, gid_of(to).raw + 12, 4) == 0 ||
			memcmp(sides[1].buf + 8, gid_of(to).raw, 16) == 0);
	HOLDS(ibv_destroy_ah(ah) == 0 && ibv_destroy_ah(back) == 0);
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_destroy_qp(peer) == 0);
}

#endif /* TWO_SIDES_H */
