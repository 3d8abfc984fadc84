/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Messages of UD QPs, from a QP of this process or from the wire; see rsoft_ud.h. */

#include <netinet/in.h>

#include <rte_ip.h>

#include "rsoft_addr.h"
#include "rsoft_error.h"
#include "rsoft_group.h"
#include "rsoft_resp.h"
#include "rsoft_rq.h"
#include "rsoft_ud.h"
#include "../wire/codec/rwire_addr.h"
#include "../wire/codec/rwire_hdr.h"

#define UD_HOP_LIMIT 64
#define UD_NEXT_HDR  0x1b /* next header of a GRH: BTH (IBTA 8.3) */
#define UD_UDP_LEN   8
#define UD_IPV4_AT   (RMEM_GRH_SIZE - sizeof(struct rte_ipv4_hdr))
#define UD_BTH_LEN   (RWIRE_BTH_LEN + RWIRE_DETH_LEN + RWIRE_ICRC_LEN)

/*
 * Build the GRH of a message; with RoCE v2 an IPv6 header, or an IPv4 header after 20 bytes (IBTA
 * A17.4.5.2).
 */
static void
ud_grh(const struct rsoft_dev *dev, const struct rsoft_ud_msg *msg, uint8_t grh[RMEM_GRH_SIZE])
{
	bool is_roce = rsoft_addr_is_roce(dev);
	uint8_t hop_limit = msg->grh.hop_limit != 0 ? msg->grh.hop_limit : UD_HOP_LIMIT;
	uint16_t len = (uint16_t)(UD_BTH_LEN +
			((msg->flags & RMEM_WC_WITH_IMM) ? sizeof(msg->imm_data) : 0) +
			RTE_ALIGN_CEIL(msg->length, 4));
	struct rte_ipv6_hdr ip6 = {.vtc_flow = rsoft_grh_vtc_flow(&msg->grh),
			.payload_len = rte_cpu_to_be_16(len),
			.proto = UD_NEXT_HDR,
			.hop_limits = hop_limit};
	struct rte_ipv4_hdr ip4 = {.version_ihl = RTE_IPV4_VHL_DEF,
			.type_of_service = msg->grh.traffic_class,
			.total_length = rte_cpu_to_be_16(
					(uint16_t)(sizeof(ip4) + UD_UDP_LEN + len)),
			.fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG),
			.time_to_live = hop_limit,
			.next_proto_id = IPPROTO_UDP};
	struct rwire_addr src, dst;

	memcpy(src.gid, msg->src_gid, sizeof(src.gid));
	memcpy(dst.gid, msg->dst_gid, sizeof(dst.gid));
	/* The source may be a device without a wire, whose GID is not an IPv4 address. */
	if (is_roce && rwire_addr_is_ipv4(&src) && rwire_addr_is_ipv4(&dst)) {
		memcpy(&ip4.src_addr, msg->src_gid + 12, sizeof(ip4.src_addr));
		memcpy(&ip4.dst_addr, msg->dst_gid + 12, sizeof(ip4.dst_addr));
		ip4.hdr_checksum = rte_ipv4_cksum(&ip4);
		memset(grh, 0, UD_IPV4_AT);
		memcpy(grh + UD_IPV4_AT, &ip4, sizeof(ip4));
		return;
	}
	if (is_roce) {
		ip6.proto = IPPROTO_UDP;
		ip6.payload_len = rte_cpu_to_be_16((uint16_t)(UD_UDP_LEN + len));
	}
	memcpy(&ip6.src_addr, msg->src_gid, 16);
	memcpy(&ip6.dst_addr, msg->dst_gid, 16);
	memcpy(grh, &ip6, sizeof(ip6));
}

/* Copy header and data to the receive; return its status, or RSOFT_WAIT_RNR to leave it posted. */
static int
ud_place(struct rsoft_qp *qp, const struct rsoft_rqe *rqe, const struct rsoft_ud_msg *msg,
		const struct rsoft_span *from, uint32_t *vendor_err)
{
	struct rsoft_span to[RSOFT_MAX_SGE], all[RSOFT_MAX_SGE + 1];
	uint64_t room, left = msg->length, total = RMEM_GRH_SIZE + msg->length;
	uint8_t grh[RMEM_GRH_SIZE];
	unsigned int i, side;

	to[0] = (struct rsoft_span){.length = 0}; /* the list may be empty */
	if (!rsoft_access_sges(rsoft_rq_owner(qp), rqe->sge, rqe->num_sge, RSOFT_NEED_WRITE, total,
			    to, &room, vendor_err))
		return RMEM_WC_LOC_PROT_ERR;
	ud_grh(qp->dev, msg, grh);
	all[0] = (struct rsoft_span){.ptr = grh, .length = sizeof(grh), .kind = RSOFT_SPAN_FLAT};
	for (i = 0; left != 0; i++) {
		all[i + 1] = from[i];
		left -= RTE_MIN(left, from[i].length);
	}
	side = rsoft_copy_all(to, all, total);
	if (side == RSOFT_SIDE_NONE)
		return RMEM_WC_SUCCESS;
	if (side == RSOFT_SIDE_FROM)
		return RSOFT_WAIT_RNR;
	*vendor_err = RMEM_VENDOR_ERR_PAGE_FAULT;
	return RMEM_WC_LOC_PROT_ERR;
}

/* Complete the receive at the head, and unlock. A failed receive moves the QP to ERR first. */
static void
ud_complete(struct rsoft_qp *qp, const struct rsoft_rqe *rqe, const struct rsoft_ud_msg *msg,
		uint8_t status, uint32_t vendor_err)
{
	struct rsoft_cqe cqe = {.wr_id = rqe->wr_id,
			.info = rsoft_cqe_info(status, RMEM_WC_RECV, msg->flags | RMEM_WC_GRH,
					qp->qp.qp_num),
			.data = rsoft_cqe_data(
					(uint32_t)(RMEM_GRH_SIZE + msg->length), msg->imm_data),
			.vendor_err = msg->src_qp};
	bool is_first = false;

	if (status != RMEM_WC_SUCCESS) {
		cqe.vendor_err = vendor_err;
		rmem_wc_trace_error(
				qp->qp.obj.dev_id, qp->qp.qp_num, rqe->wr_id, status, vendor_err);
		rsoft_error_recv(qp, rqe->sge, rqe->num_sge, rqe->wr_id, status, vendor_err, 0);
		if (vendor_err == RMEM_VENDOR_ERR_PAGE_FAULT)
			RSOFT_COUNT(qp->rq.faults, 1);
		is_first = rsoft_qp_to_err(qp);
	}
	RSOFT_COUNT(qp->rq.consumed, 1);
	rsoft_rq_complete(qp, rsoft_rq_reserve(qp), &cqe);
	rte_ticketlock_unlock(&qp->rq.lock);
	if (is_first)
		rsoft_rq_flush(qp);
}

int
rsoft_ud_deliver(struct rsoft_qp *qp, const struct rsoft_ud_msg *msg, const struct rsoft_span *from)
{
	uint64_t total = RMEM_GRH_SIZE + msg->length;
	struct rsoft_rqe *rqe;
	uint32_t vendor_err = RMEM_VENDOR_ERR_NONE;
	int status = RSOFT_WAIT_PEER;

	if (msg->qkey != __atomic_load_n(&qp->qkey, __ATOMIC_RELAXED)) /* IBTA 9.6.1.3.3 */
		return RMEM_WC_REM_ACCESS_ERR;
	if (msg->length > qp->max_msg_size) /* the limit of the sender may be larger */
		return RMEM_WC_REM_INV_REQ_ERR;
	rte_ticketlock_lock(&qp->rq.lock);
	/* Checked under the lock: after a flush, no receive may be consumed. */
	if (!rsoft_state_is_responding(__atomic_load_n(&qp->state, __ATOMIC_ACQUIRE)))
		goto unlock;
	rqe = rsoft_rq_take(qp, total);
	status = RSOFT_WAIT_RNR;
	if (rqe == NULL)
		goto unlock;
	/* Check the length before the translation, which populates on-demand pages. */
	status = RMEM_WC_REM_INV_REQ_ERR;
	if (rsoft_sges_length(rqe->sge, rqe->num_sge, total) < total)
		goto unlock;
	status = ud_place(qp, rqe, msg, from, &vendor_err);
	if (status == RSOFT_WAIT_RNR) {
		rsoft_rq_keep(qp);
		status = RMEM_WC_LOC_PROT_ERR;
		goto unlock;
	}
	ud_complete(qp, rqe, msg, (uint8_t)status, vendor_err);
	return status == RMEM_WC_SUCCESS ? RMEM_WC_SUCCESS : RMEM_WC_REM_OP_ERR;

unlock:
	rte_ticketlock_unlock(&qp->rq.lock);
	return status;
}

/* Find the QP of this process at a destination, valid until the lcore leaves; or NULL. */
static struct rsoft_qp *
ud_find(const struct rsoft_ud_dest *dest)
{
	struct rmem_qp_addr addr = {.qp_num = dest->qpn};
	struct rsoft_qp *qp;

	memcpy(addr.gid, dest->gid, sizeof(addr.gid));
	rsoft_lock(&rsoft_domain->lock);
	qp = rsoft_addr_qp(&addr);
	if (qp != NULL &&
			(qp->qp.type != RMEM_QPT_UD ||
					!rsoft_state_is_responding(__atomic_load_n(
							&qp->state, __ATOMIC_ACQUIRE))))
		qp = NULL;
	rte_ticketlock_unlock(&rsoft_domain->lock);
	return qp;
}

/* Count a message that a QP of a group has dropped. */
static void
ud_count_drop(struct rmem_dev_stats *stats, int status)
{
	switch (status) {
	case RMEM_WC_SUCCESS:
		break;
	case RSOFT_WAIT_PEER:
		RSOFT_COUNT(stats->drop_no_peer, 1);
		break;
	case RSOFT_WAIT_RNR:
		RSOFT_COUNT(stats->drop_no_recv, 1);
		break;
	case RMEM_WC_REM_INV_REQ_ERR:
		RSOFT_COUNT(stats->drop_length, 1);
		break;
	case RMEM_WC_REM_ACCESS_ERR:
		RSOFT_COUNT(stats->drop_qkey, 1);
		break;
	default:
		RSOFT_COUNT(stats->drop_access, 1);
		break;
	}
}

int
rsoft_ud_deliver_group(struct rsoft_qp *qp, const struct rsoft_ud_msg *msg,
		const struct rsoft_span *from, bool has_wire, uint32_t *nb)
{
	struct rsoft_qp *peers[RSOFT_MAX_GROUP_QPS];
	unsigned int dev_id = 0;
	uint32_t i, n;
	int status;

	for (*nb = 0; (n = rsoft_group_next(msg->dst_gid, has_wire, &dev_id, peers)) != 0;
			*nb += n) {
		for (i = 0; i < n; i++) {
			status = rsoft_ud_deliver(peers[i], msg, from);
			if (status == RMEM_WC_LOC_PROT_ERR)
				return status;
			ud_count_drop(&qp->stats, status);
		}
	}
	return RMEM_WC_SUCCESS;
}

int
rsoft_ud_send(struct rsoft_batch *batch, const struct rmem_send_wr *wr,
		const struct rsoft_span *from, uint64_t length)
{
	struct rsoft_qp *peer, *qp = batch->qp;
	struct rsoft_ud_dest dest;
	struct rsoft_ud_msg msg;
	uint8_t gid[16];
	uint32_t nb = 1;
	int status;

	if (length > qp->max_msg_size) /* inline data */
		return RMEM_WC_LOC_LEN_ERR;
	rsoft_ud_dest_of(qp, wr, batch->is_queued, &dest);
	batch->vendor_err = rsoft_ud_vendor_err(wr, &dest);
	if (batch->vendor_err != RMEM_VENDOR_ERR_NONE)
		return RMEM_WC_LOC_QP_OP_ERR;
	peer = ud_find(&dest);
	if (peer == NULL && dest.qpn != RSOFT_UD_GROUP)
		return RSOFT_WAIT_PEER;
	if (!rsoft_addr_gid(qp->dev, dest.grh.gid_slot, gid))
		return RMEM_WC_SUCCESS; /* dropped, as by a NIC */
	msg = (struct rsoft_ud_msg){.src_gid = gid,
			.dst_gid = dest.gid,
			.src_qp = qp->qp.qp_num,
			.qkey = rsoft_ud_qkey(qp, &dest),
			.grh = dest.grh,
			.length = length};
	if (wr->flags & RMEM_SEND_SOLICITED)
		msg.flags |= RMEM_WC_SOLICITED;
	if (wr->opcode == RMEM_WR_SEND_WITH_IMM) {
		msg.flags |= RMEM_WC_WITH_IMM;
		msg.imm_data = wr->imm_data;
	}
	if (unlikely(peer == NULL))
		status = rsoft_ud_deliver_group(qp, &msg, from, true, &nb);
	else
		status = rsoft_ud_deliver(peer, &msg, from);
	if (status == RMEM_WC_LOC_PROT_ERR)
		batch->vendor_err = RMEM_VENDOR_ERR_PAGE_FAULT;
	if (nb == 0 && status == RMEM_WC_SUCCESS) /* the group has no QP */
		return RSOFT_WAIT_PEER;
	if (status != RMEM_WC_REM_ACCESS_ERR)
		return status;
	RSOFT_COUNT(qp->stats.drop_qkey, 1);
	return RMEM_WC_SUCCESS;
}
