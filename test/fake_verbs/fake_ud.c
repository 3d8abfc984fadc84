/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Address handles of the fake device, and messages of UD; see fake.h. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

#define FAKE_GRH 40

struct fake_ah {
	struct ibv_ah ibv;
	struct fake_ah *next;
};

static struct fake_ah *fake_ahs;

struct ibv_ah *
ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct fake_ah *ah;

	if (attr->port_num != 1 || !attr->is_global) {
		errno = EINVAL;
		return NULL;
	}
	ah = fake_new("create_ah", sizeof(*ah));
	if (ah == NULL)
		return NULL;
	ah->ibv.context = pd->context;
	ah->ibv.pd = pd;
	ah->next = fake_ahs;
	fake_ahs = ah;
	return &ah->ibv;
}

int
ibv_destroy_ah(struct ibv_ah *ibv)
{
	struct fake_ah **at = &fake_ahs;

	if (fake_keeps("destroy_ah", ibv))
		return errno;
	while (&(*at)->ibv != ibv)
		at = &(*at)->next;
	*at = (*at)->next;
	return fake_delete(ibv);
}

static bool
fake_ah_exists(const struct ibv_ah *ibv)
{
	const struct fake_ah *ah = fake_ahs;

	while (ah != NULL && &ah->ibv != ibv)
		ah = ah->next;
	return ah != NULL;
}

/* As the kernel: a second attachment has no effect. */
static unsigned int
fake_group_at(const struct fake_qp *qp, const union ibv_gid *gid)
{
	unsigned int i;

	for (i = 0; i < qp->nb_groups && memcmp(&qp->group[i], gid, sizeof(*gid)) != 0; i++)
		;
	return i;
}

int
ibv_attach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid)
{
	struct fake_qp *qp = (struct fake_qp *)ibv;

	if (fake_fails("attach_mcast"))
		return errno;
	if (fake_group_at(qp, gid) < qp->nb_groups)
		return 0;
	if (qp->nb_groups == FAKE_GROUPS)
		return ENOMEM;
	qp->group[qp->nb_groups++] = *gid;
	fake.mcast_lid = lid;
	return 0;
}

int
ibv_detach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid)
{
	struct fake_qp *qp = (struct fake_qp *)ibv;
	unsigned int i = fake_group_at(qp, gid);

	if (fake_keeps("detach_mcast", qp))
		return errno;
	if (i == qp->nb_groups)
		return EINVAL;
	qp->group[i] = qp->group[--qp->nb_groups];
	fake.mcast_lid = lid;
	return 0;
}

/* Each receive has a GRH of the fake, all bytes of which are 0x60. */
int
fake_run_ud(struct fake_qp *qp, struct fake_wqe *wqe, struct ibv_wc *wc)
{
	const struct ibv_send_wr *wr = &wqe->wr;
	struct fake_qp *peer = fake_qp_find(wr->wr.ud.remote_qpn);
	struct ibv_wc recv = {.opcode = IBV_WC_RECV, .wc_flags = IBV_WC_GRH};
	uint8_t bytes[FAKE_GRH + 4096];
	struct fake_wqe *to;
	uint32_t got;

	wc->opcode = IBV_WC_SEND;
	if (!fake_ah_exists(wr->wr.ud.ah))
		fake_crash("a request has an AH that was destroyed");
	memset(bytes, 0x60, FAKE_GRH);
	if (!fake_copy(wqe, bytes + FAKE_GRH, sizeof(bytes) - FAKE_GRH, false, &got))
		return IBV_WC_LOC_PROT_ERR;
	if (peer == NULL || peer->ex.qp_base.qp_type != IBV_QPT_UD ||
			peer->qkey != wr->wr.ud.remote_qkey)
		return IBV_WC_SUCCESS;
	fake_srq_take(peer);
	to = &peer->recv[peer->recv_cons % FAKE_QUEUE];
	if (peer->recv_cons == peer->recv_prod || FAKE_GRH + got > fake_total(to))
		return IBV_WC_SUCCESS;
	if (!fake_copy(to, bytes, FAKE_GRH + got, true, &recv.byte_len))
		return IBV_WC_SUCCESS;
	recv.src_qp = qp->ex.qp_base.qp_num;
	if (wr->opcode == IBV_WR_SEND_WITH_IMM) {
		recv.wc_flags |= IBV_WC_WITH_IMM;
		recv.imm_data = wr->imm_data;
	}
	fake_complete_recv(peer, recv, (wr->send_flags & IBV_SEND_SOLICITED) != 0);
	return IBV_WC_SUCCESS;
}
