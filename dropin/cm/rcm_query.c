/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Queries of IDs: addresses, paths, and the attributes for a QP to be connected.
 *
 * Invariant: a query changes no ID, and writes at most the out_len bytes of its command.
 */

#include <endian.h>
#include <errno.h>
#include <string.h>

#include <infiniband/sa.h>

#include "../verbs/ribv.h"
#include "rcm.h"

#define PKEY          0xffff
#define PATH_RATE     3 /* 10 Gb/s */
#define EXACTLY       2 /* selector for MTU, rate and lifetime */
#define MIN_RNR_TIMER 0 /* 655 ms as in the kernel, for a peer that gets no CPU time */

/* The layout in <infiniband/ib.h> of librdmacm. */
struct sockaddr_ib {
	uint16_t family;
	uint16_t pkey;
	uint32_t flow_info;
	uint8_t gid[16];
	uint64_t sid;
	uint64_t sid_mask;
	uint64_t scope_id;
};

/* GID of the peer, from its last message or from the address. */
static const uint8_t *
peer_gid(const struct rcm_id *id)
{
	return id->peer.type != 0 ? id->peer.gid : id->dst.ip;
}

/*
 * GID of a path. All processes of this host share its addresses, so a path on it has a GID but no
 * LID until the connection is established. A zero GID belongs to no device: rsockets of SOCK_DGRAM
 * then fail to create an address handle, and use their UDP sockets.
 */
static const uint8_t *
path_gid(const struct rcm_id *id, const struct rcm_dev *dev)
{
	static const uint8_t none[16];

	return dev->is_host && id->peer.type == 0 ? none : peer_gid(id);
}

/* The smaller MTU of both ports; the peer's is known after its first message. */
static uint8_t
path_mtu(const struct rcm_id *id, const struct rcm_dev *dev)
{
	return id->peer.mtu != 0 ? RTE_MIN(id->peer.mtu, dev->mtu) : dev->mtu;
}

void
rcm_ah_attr(const struct rcm_id *id, struct ib_uverbs_ah_attr *attr)
{
	struct rcm_dev dev;

	memset(attr, 0, sizeof(*attr));
	attr->port_num = RIBV_PORT;
	if (rcm_dev_of(id, &dev)) {
		attr->grh.sgid_index = dev.sgid_index;
		attr->port_num = dev.port_num;
	}
	memcpy(attr->grh.dgid, peer_gid(id), sizeof(attr->grh.dgid));
	attr->grh.hop_limit = RCM_HOP_LIMIT;
	attr->grh.traffic_class = id->tos;
	attr->dlid = id->peer.lid;
	attr->is_global = 1;
}

static int
query_addr(const struct rcm_cmd *cmd, const struct rcm_id *id, const struct rcm_dev *dev)
{
	struct rdma_ucm_query_addr_resp resp = {.ibdev_index = UINT32_MAX};

	if (id->has_dev) {
		resp.node_guid = dev->node_guid;
		resp.port_num = dev->port_num;
		resp.pkey = htobe16(PKEY);
	}
	resp.src_size = (uint16_t)rcm_sockaddr(&id->src, &resp.src_addr);
	resp.dst_size = (uint16_t)rcm_sockaddr(&id->dst, &resp.dst_addr);
	if (cmd->out_len < offsetof(struct rdma_ucm_query_addr_resp, ibdev_index))
		return -ENOSPC;
	return rcm_respond(cmd, cmd->in.query.response, &resp,
			RTE_MIN(sizeof(resp), (size_t)cmd->out_len));
}

static void
sockaddr_ib(const uint8_t *gid, const struct rcm_id *id, struct __kernel_sockaddr_storage *to)
{
	struct sockaddr_ib sib = {.family = AF_IB, .pkey = htobe16(PKEY)};

	memcpy(sib.gid, gid, sizeof(sib.gid));
	sib.sid = htobe64((uint64_t)id->ps << 16 | id->src.port);
	sib.sid_mask = UINT64_MAX;
	memcpy(to, &sib, sizeof(sib));
}

static int
query_gid(const struct rcm_cmd *cmd, const struct rcm_id *id, const struct rcm_dev *dev)
{
	struct rdma_ucm_query_addr_resp resp = {.ibdev_index = UINT32_MAX};

	resp.pkey = htobe16(PKEY);
	resp.src_size = sizeof(struct sockaddr_ib);
	resp.dst_size = sizeof(struct sockaddr_ib);
	sockaddr_ib(id->has_dev ? dev->gid : id->src.ip, id, &resp.src_addr);
	sockaddr_ib(peer_gid(id), id, &resp.dst_addr);
	if (id->has_dev) {
		resp.node_guid = dev->node_guid;
		resp.port_num = dev->port_num;
	}
	if (cmd->out_len < offsetof(struct rdma_ucm_query_addr_resp, ibdev_index))
		return -ENOSPC;
	return rcm_respond(cmd, cmd->in.query.response, &resp,
			RTE_MIN(sizeof(resp), (size_t)cmd->out_len));
}

/*
 * Whether the route is resolved. A listening ID has no route, though its state has a higher value.
 */
static bool
has_path(const struct rcm_id *id)
{
	return id->state >= RCM_ROUTE_RESOLVED && id->state != RCM_LISTEN;
}

static int
query_path(const struct rcm_cmd *cmd, const struct rcm_id *id, const struct rcm_dev *dev)
{
	struct ibv_path_data path = {
			.flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL};
	struct {
		uint32_t num_paths; /* as in struct rdma_ucm_query_path_resp */
		uint32_t reserved;
		struct ibv_path_data path;
	} resp = {.num_paths = has_path(id)};

	memcpy(&path.path.dgid, path_gid(id, dev), sizeof(path.path.dgid));
	memcpy(&path.path.sgid, dev->gid, sizeof(path.path.sgid));
	path.path.dlid = htobe16(id->peer.lid);
	path.path.slid = htobe16(dev->lid);
	path.path.flowlabel_hoplimit = htobe32(RCM_HOP_LIMIT);
	path.path.reversible_numpath = IBV_PATH_RECORD_REVERSIBLE | 1;
	path.path.pkey = htobe16(PKEY);
	path.path.mtu = (uint8_t)(EXACTLY << 6 | path_mtu(id, dev));
	path.path.rate = EXACTLY << 6 | PATH_RATE;
	path.path.packetlifetime = EXACTLY << 6 | (RCM_ACK_TIMEOUT - 1);
	resp.path = path;
	/* Return as many paths as fit. */
	return rcm_respond(cmd, cmd->in.query.response, &resp,
			has_path(id) && cmd->out_len >= sizeof(resp)
					? sizeof(resp)
					: sizeof(struct rdma_ucm_query_path_resp));
}

int
rcm_query(const struct rcm_cmd *cmd)
{
	struct rcm_dev dev;
	struct rcm_id *id;
	int ret;

	id = rcm_id_of(cmd, cmd->in.query.id, &ret);
	if (id == NULL)
		return ret;
	if (!rcm_dev_of(id, &dev))
		return -ENODEV;
	switch (cmd->in.query.option) {
	case RDMA_USER_CM_QUERY_ADDR:
		return query_addr(cmd, id, &dev);
	case RDMA_USER_CM_QUERY_PATH:
		return query_path(cmd, id, &dev);
	case RDMA_USER_CM_QUERY_GID:
		return query_gid(cmd, id, &dev);
	default:
		return -ENOSYS;
	}
}

static void
fill_path(const struct rcm_id *id, const struct rcm_dev *dev, struct ib_user_path_rec *path)
{
	memcpy(path->dgid, path_gid(id, dev), sizeof(path->dgid));
	memcpy(path->sgid, dev->gid, sizeof(path->sgid));
	path->pkey = htobe16(PKEY);
	path->dlid = htobe16(id->peer.lid);
	path->slid = htobe16(dev->lid);
	path->reversible = 1;
	path->hop_limit = RCM_HOP_LIMIT;
	path->numb_path = 1;
	path->mtu_selector = EXACTLY;
	path->mtu = path_mtu(id, dev);
	path->rate_selector = EXACTLY;
	path->rate = PATH_RATE;
	path->packet_life_time_selector = EXACTLY;
	path->packet_life_time = RCM_ACK_TIMEOUT - 1;
}

int
rcm_query_route(const struct rcm_cmd *cmd)
{
	struct rdma_ucm_query_route_resp resp = {.ibdev_index = UINT32_MAX};
	struct rcm_dev dev;
	struct rcm_id *id;
	int ret;

	if (cmd->out_len < offsetof(struct rdma_ucm_query_route_resp, ibdev_index))
		return -ENOSPC;
	id = rcm_id_of(cmd, cmd->in.query.id, &ret);
	if (id == NULL)
		return ret;
	if (!rcm_dev_of(id, &dev))
		return -ENODEV;
	rcm_sockaddr(&id->src, &resp.src_addr);
	rcm_sockaddr(&id->dst, &resp.dst_addr);
	if (id->has_dev) {
		resp.node_guid = dev.node_guid;
		resp.port_num = dev.port_num;
		fill_path(id, &dev, &resp.ib_route[0]);
		resp.num_paths = has_path(id);
	}
	return rcm_respond(cmd, cmd->in.query.response, &resp,
			RTE_MIN(sizeof(resp), (size_t)cmd->out_len));
}

/*
 * Set the rights that the connection parameters promise: READs, atomics and FLUSHes of the peer
 * only with responder resources.
 */
static void
attr_init(const struct rcm_id *id, const struct rcm_dev *dev, struct ib_uverbs_qp_attr *attr)
{
	attr->qp_attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	attr->port_num = dev->port_num;
	if (rcm_is_ud(id)) {
		attr->qp_attr_mask |= IBV_QP_QKEY;
		attr->qkey = id->qkey;
		return;
	}
	attr->qp_attr_mask |= IBV_QP_ACCESS_FLAGS;
	if (id->state < RCM_CONNECT)
		return;
	attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	if (id->own.responder_resources != 0)
		attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
				ribv_flush_rights(ribv_devs[id->dev]);
}

static int
attr_rtr(const struct rcm_id *id, const struct rcm_dev *dev, struct ib_uverbs_qp_attr *attr)
{
	if (rcm_is_ud(id)) {
		attr->qp_attr_mask = IBV_QP_STATE;
		return 0;
	}
	/* The peer's QP is not known before its message has arrived. */
	if (id->peer.type == 0)
		return -EINVAL;
	attr->qp_attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	rcm_ah_attr(id, &attr->ah_attr);
	attr->path_mtu = path_mtu(id, dev);
	attr->dest_qp_num = id->peer.qpn;
	attr->rq_psn = id->own.psn;
	attr->max_dest_rd_atomic = id->own.responder_resources;
	attr->min_rnr_timer = MIN_RNR_TIMER;
	return 0;
}

static int
attr_rts(const struct rcm_id *id, struct ib_uverbs_qp_attr *attr)
{
	attr->qp_attr_mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	/*
	 * Each side chooses the PSN that it receives, so the peer's PSN is the first that this side
	 * sends.
	 */
	attr->sq_psn = rcm_is_ud(id) ? id->own.psn : id->peer.psn;
	if (rcm_is_ud(id))
		return 0;
	if (id->peer.type == 0)
		return -EINVAL;
	attr->qp_attr_mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	attr->timeout = id->ack_timeout;
	/* The active side chooses retry_count of both sides; each side chooses rnr_retry of the
	 * other. */
	attr->retry_cnt = id->is_child ? id->peer.retry_count : id->own.retry_count;
	attr->rnr_retry = id->peer.rnr_retry_count;
	attr->max_rd_atomic = id->own.initiator_depth;
	return 0;
}

int
rcm_init_qp_attr(const struct rcm_cmd *cmd)
{
	const struct rdma_ucm_init_qp_attr *in = &cmd->in.init_qp_attr;
	struct ib_uverbs_qp_attr attr = {.qp_state = in->qp_state};
	struct rcm_dev dev;
	struct rcm_id *id;
	int ret;

	id = rcm_id_of(cmd, in->id, &ret);
	if (id == NULL)
		return ret;
	if (!id->has_dev || !rcm_dev_of(id, &dev))
		return -EINVAL;
	if (in->qp_state == IBV_QPS_INIT)
		attr_init(id, &dev, &attr);
	else if (in->qp_state == IBV_QPS_RTR)
		ret = attr_rtr(id, &dev, &attr);
	else if (in->qp_state == IBV_QPS_RTS)
		ret = attr_rts(id, &attr);
	else
		ret = -EINVAL;
	return ret != 0 ? ret : rcm_respond(cmd, in->response, &attr, sizeof(attr));
}
