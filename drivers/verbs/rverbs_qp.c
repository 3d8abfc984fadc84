/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Queue pairs: slots of the device's table, rings, and state transitions. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_malloc.h>
#include <rte_random.h>

#include "rverbs_mlx5.h"
#include "rverbs_mw.h"
#include "rverbs_mwq.h"
#include "rverbs_ud.h"

#define RVERBS_PSN_MASK      0xffffffu
#define RVERBS_HOP_LIMIT     64
#define RVERBS_MAX_RD_ATOMIC 16
#define RVERBS_RESET_TRIES   4

/* Attributes to query: all that rmem_qp_modify() sets. */
#define RVERBS_QUERY                                                                               \
	(IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_AV | IBV_QP_PATH_MTU |            \
			IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_RQ_PSN |     \
			IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN |           \
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_DEST_QPN | IBV_QP_QKEY)

/* Attributes of RC that UC does not have. */
#define RVERBS_RC_ONLY                                                                             \
	(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |          \
			IBV_QP_MIN_RNR_TIMER | IBV_QP_MAX_DEST_RD_ATOMIC)

static int
ring_init(struct rverbs_ring *ring, uint32_t depth)
{
	uint32_t size = rte_align32pow2(RTE_MAX(depth, 1u));

	ring->depth = depth;
	ring->mask = size - 1;
	ring->wqe = rte_zmalloc("rverbs_ring", size * sizeof(*ring->wqe), RTE_CACHE_LINE_SIZE);
	if (ring->wqe != NULL)
		return 0;
	RVERBS_LOG(ERR, "queue: no memory: %u entries", depth);
	return -ENOMEM;
}

/* Free the rings; no request is outstanding. */
static void
free_rings(struct rverbs_qp *qp)
{
	rte_free(qp->ahs);
	rte_free(qp->mw_ops.ops);
	rte_free(qp->rq.wqe);
	rte_free(qp->sq.wqe);
}

/* Drop the requests, as the device does; no thread polls their completions. */
static void
drop_requests(struct rverbs_qp *qp)
{
	if (qp->ahs != NULL)
		rverbs_ud_release(qp, qp->sq.cons, qp->sq.prod);
	qp->sq.prod = qp->sq.cons = 0;
	qp->rq.prod = qp->rq.cons = 0;
}

/* Allocate a slot of the table, which determines the wr_ids of the QP. */
static int
slot_take(struct rverbs_dev *dev, struct rverbs_qp *qp)
{
	uint32_t i;

	rte_ticketlock_lock(&dev->lock);
	for (i = 0; i < RVERBS_MAX_QP && dev->slots[i].qp != NULL; i++)
		;
	if (i < RVERBS_MAX_QP) {
		struct rverbs_slot *slot = &dev->slots[i];

		rverbs_slot_fill(slot, qp);
		qp->slot = i;
		qp->id = (uint64_t)slot->gen << 32 | (uint64_t)i << 16;
	}
	rte_ticketlock_unlock(&dev->lock);
	if (i < RVERBS_MAX_QP)
		return 0;
	RVERBS_LOG(ERR, "QP: all entries are in use (%u)", RVERBS_MAX_QP);
	return -ENOSPC;
}

/* Free the slot; later completions of the QP are dropped. */
static void
slot_give(struct rverbs_dev *dev, struct rverbs_qp *qp)
{
	rte_ticketlock_lock(&dev->lock);
	rverbs_slot_empty(&dev->slots[qp->slot]);
	rverbs_stats_keep(dev, qp);
	rte_ticketlock_unlock(&dev->lock);
}

/* Wait until every thread that polls a CQ of the QP uses the current table. */
static void
qp_wait_polls(const struct rverbs_qp *qp)
{
	struct rverbs_cq *cqs[] = {rverbs_cq_of(qp->qp.send_cq), rverbs_cq_of(qp->qp.recv_cq)};
	size_t i;

	/* An XRC_RECV QP has no CQs, and its receives are those of SRQs. */
	for (i = 0; i < RTE_DIM(cqs) && cqs[i] != NULL; i++) {
		rte_ticketlock_lock(&cqs[i]->lock);
		rte_ticketlock_unlock(&cqs[i]->lock);
	}
}

static void
qp_save(const struct rverbs_qp *qp)
{
	if (qp->qp.send_cq == NULL)
		return;
	rverbs_cq_save(rverbs_cq_of(qp->qp.send_cq));
	if (qp->qp.recv_cq != qp->qp.send_cq)
		rverbs_cq_save(rverbs_cq_of(qp->qp.recv_cq));
}

struct ibv_qp *
rverbs_ibv_qp(struct rverbs_dev *dev, struct ibv_pd *pd, struct ibv_cq *send_cq,
		struct ibv_cq *recv_cq, const struct rmem_qp_conf *conf)
{
	struct ibv_qp_init_attr_ex attr;
	struct ibv_qp *qp = NULL;

	memset(&attr, 0, sizeof(attr));
	attr.send_cq = send_cq;
	attr.recv_cq = recv_cq;
	attr.cap.max_send_wr = conf->max_send_wr;
	attr.cap.max_recv_wr = conf->max_recv_wr;
	attr.cap.max_send_sge = conf->max_send_sge;
	attr.cap.max_recv_sge = conf->max_recv_sge;
	attr.cap.max_inline_data = conf->max_inline_data;
	attr.srq = conf->srq != NULL ? rverbs_srq_of(conf->srq)->ibv : NULL;
	attr.qp_type = (enum ibv_qp_type)conf->type;
	attr.sq_sig_all = (conf->flags & RMEM_QP_SIG_ALL) != 0;
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	attr.pd = pd;
	if (conf->type == RMEM_QPT_XRC_RECV) {
		attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
		attr.xrcd = rverbs_xrcd_of(conf->ext->xrcd)->ibv;
	}
	if (dev->send_ops != 0 && conf->type == RMEM_QPT_RC) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = dev->send_ops;
	}
	if (rverbs_mlx5_is_on(dev) && conf->type == RMEM_QPT_RC)
		qp = rverbs_mlx5_create_qp(dev, &attr);
	return qp != NULL ? qp : ibv_create_qp_ex(dev->context, &attr);
}

/* An XRC_SEND QP has no CQ for receives, an XRC_RECV QP neither CQs nor PD. */
static struct ibv_qp *
create(const struct rverbs_qp *qp, const struct rmem_qp_conf *conf)
{
	struct ibv_cq *send_cq = NULL, *recv_cq = NULL;
	struct ibv_pd *pd = NULL;

	if (conf->type != RMEM_QPT_XRC_RECV) {
		pd = rverbs_pd_of(qp->qp.pd)->ibv;
		send_cq = rverbs_cq_of(qp->qp.send_cq)->ibv;
		if (conf->type != RMEM_QPT_XRC_SEND)
			recv_cq = rverbs_cq_of(qp->qp.recv_cq)->ibv;
	}
	return rverbs_ibv_qp(qp->dev, pd, send_cq, recv_cq, conf);
}

/* Set up the driver's part of a QP; free_rings() undoes it, also if it fails. */
static int
qp_init(struct rverbs_qp *qp, const struct rmem_qp_conf *conf)
{
	struct rverbs_dev *dev = rverbs_dev_of(&qp->qp.obj);
	int ret;

	qp->dev = dev;
	qp->conf = *conf;
	qp->conf.ext = NULL; /* it is the caller's */
	qp->access = conf->access;
	qp->max_recv_sge = conf->max_recv_sge;
	qp->wc_flags = dev->inv_flag;
	qp->has_mw_quirk = dev->has_mw_quirk;
	qp->is_list_bad = dev->is_list_bad;
	qp->peer_dev_id = -1;
	qp->psn = (uint32_t)rte_rand() & RVERBS_PSN_MASK;
	ret = ring_init(&qp->sq, conf->max_send_wr);
	if (ret == 0)
		ret = ring_init(&qp->rq, conf->max_recv_wr);
	if (ret == 0 && conf->type == RMEM_QPT_UD)
		ret = rverbs_ud_create(qp);
	if (ret == 0 && rverbs_has_mw_ops(dev->capa))
		ret = rverbs_mw_ops_init(&qp->mw_ops, conf->max_send_wr);
	return ret;
}

int
rverbs_qp_create(struct rmem_qp *base, const struct rmem_qp_conf *conf)
{
	struct rverbs_dev *dev = rverbs_dev_of(&base->obj);
	struct rverbs_qp *qp = rverbs_qp_of(base);
	int ret;

	if ((conf->flags & RMEM_QP_LATE_ERRORS) != 0) {
		RVERBS_LOG(ERR, "RMEM_QP_LATE_ERRORS: not supported: the NIC decides");
		return -EOPNOTSUPP;
	}
	ret = qp_init(qp, conf);
	if (ret != 0)
		goto free_rings;
	qp->ibv = create(qp, conf);
	ret = rverbs_err_null(qp->ibv, "ibv_create_qp");
	if (ret != 0)
		goto free_rings;
	/* Only extended posts of RC were probed. */
	qp->ex = dev->send_ops != 0 && conf->type == RMEM_QPT_RC ? ibv_qp_to_qp_ex(qp->ibv) : NULL;
	rverbs_mlx5_set_qp(qp);
	qp->ibv->qp_context = qp;
	base->qp_num = qp->ibv->qp_num;
	ret = slot_take(dev, qp);
	if (ret == 0)
		return 0;
	ibv_destroy_qp(qp->ibv);
free_rings:
	free_rings(qp);
	return ret;
}

/* Open a QP of the kernel, whose handle has the events of all of them. */
static int
open_ibv(struct rverbs_qp *qp, const struct rmem_xrcd *xrcd)
{
	struct ibv_qp_open_attr attr = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
					IBV_QP_OPEN_ATTR_CONTEXT | IBV_QP_OPEN_ATTR_TYPE,
			.qp_num = qp->qp.qp_num,
			.xrcd = rverbs_xrcd_of((struct rmem_xrcd *)(uintptr_t)xrcd)->ibv,
			.qp_context = qp,
			.qp_type = IBV_QPT_XRC_RECV};

	qp->ibv = ibv_open_qp(qp->dev->context, &attr);
	if (qp->ibv != NULL)
		return 0;
	if (errno != EINVAL)
		return rverbs_err_code(errno, RVERBS_ERR_SHARE, "ibv_open_qp");
	RVERBS_LOG(ERR, "QP %u: not an XRC_RECV QP of the XRC domain", qp->qp.qp_num);
	return -ENOENT;
}

/* The device has the QP, which other processes may modify: query its attributes at each call. */
int
rverbs_qp_open(struct rmem_qp *base, struct rmem_xrcd *xrcd)
{
	const struct rmem_qp_conf conf = {.type = RMEM_QPT_XRC_RECV};
	struct rverbs_qp *qp = rverbs_qp_of(base);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int ret;

	ret = qp_init(qp, &conf);
	if (ret == 0)
		ret = open_ibv(qp, xrcd);
	if (ret != 0)
		goto free_rings;
	memset(&attr, 0, sizeof(attr));
	ret = rverbs_err_code(ibv_query_qp(qp->ibv, &attr, IBV_QP_ACCESS_FLAGS, &init),
			RVERBS_ERR_MAKE, "ibv_query_qp");
	qp->conf.access = attr.qp_access_flags & RMEM_ACCESS_REMOTE;
	qp->ibv->qp_context = qp;
	qp->drv.is_opened = RMEM_QP_OPENED_DEVICE;
	if (ret == 0)
		ret = slot_take(qp->dev, qp);
	if (ret == 0)
		return 0;
	ibv_destroy_qp(qp->ibv);
free_rings:
	free_rings(qp);
	return ret;
}

/* Modify a QP; return 0 or an errno, and the step that failed. */
static int
qp_modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, const char *name,
		const char **what)
{
	int ret;

	if (qp->qp_type == IBV_QPT_UC)
		mask &= ~RVERBS_RC_ONLY;
	ret = ibv_modify_qp(qp, attr, mask);
	*what = name;
	return ret == -1 ? errno : abs(ret);
}

static int
qp_init_state(const struct rverbs_dev *dev, struct ibv_qp *qp, uint32_t access, const char **what)
{
	struct ibv_qp_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = dev->port.num;
	attr.qp_access_flags = access;
	return qp_modify(qp, &attr,
			IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
			"ibv_modify_qp to INIT", what);
}

static int
qp_rtr_state(const struct rverbs_dev *dev, struct ibv_qp *qp, const struct rmem_qp_conn *conn,
		const char **what)
{
	const struct rmem_qp_addr *remote = &conn->remote;
	struct ibv_qp_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = (enum ibv_mtu)RTE_MIN(dev->port.mtu, remote->mtu);
	attr.dest_qp_num = remote->qp_num;
	attr.rq_psn = remote->psn;
	attr.max_dest_rd_atomic =
			(uint8_t)RTE_MIN(dev->attr.orig_attr.max_qp_rd_atom, RVERBS_MAX_RD_ATOMIC);
	attr.min_rnr_timer = conn->min_rnr_timer;
	attr.ah_attr.port_num = dev->port.num;
	attr.ah_attr.dlid = remote->lid;
	if (dev->port.link_layer == IBV_LINK_LAYER_ETHERNET || remote->lid == 0) {
		attr.ah_attr.is_global = 1;
		memcpy(attr.ah_attr.grh.dgid.raw, remote->gid, sizeof(remote->gid));
		attr.ah_attr.grh.sgid_index = dev->port.gid_index;
		attr.ah_attr.grh.hop_limit = RVERBS_HOP_LIMIT;
		attr.ah_attr.grh.traffic_class = conn->traffic_class;
	}
	return qp_modify(qp, &attr,
			IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					IBV_QP_MIN_RNR_TIMER,
			"ibv_modify_qp to RTR", what);
}

static int
qp_rts_state(const struct rverbs_dev *dev, struct ibv_qp *qp, uint32_t psn,
		const struct rmem_qp_conn *conn, const char **what)
{
	struct ibv_qp_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = psn;
	attr.timeout = conn->timeout;
	attr.retry_cnt = conn->retry_cnt;
	attr.rnr_retry = conn->rnr_retry;
	attr.max_rd_atomic = (uint8_t)RTE_MIN(
			dev->attr.orig_attr.max_qp_init_rd_atom, RVERBS_MAX_RD_ATOMIC);
	return qp_modify(qp, &attr,
			IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
			"ibv_modify_qp to RTS", what);
}

static int
qp_to(struct ibv_qp *qp, enum ibv_qp_state state, const char *what)
{
	struct ibv_qp_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.qp_state = state;
	return rverbs_err_code(ibv_modify_qp(qp, &attr, IBV_QP_STATE), RVERBS_ERR_CHANGE, what);
}

int
rverbs_ibv_connect(struct rverbs_dev *dev, struct ibv_qp *qp, uint32_t access, uint32_t psn,
		const struct rmem_qp_conn *conn, const char **what)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	int err;

	err = qp_init_state(dev, qp, access, what);
	if (err == 0)
		err = qp_rtr_state(dev, qp, conn, what);
	if (err == 0)
		err = qp_rts_state(dev, qp, psn, conn, what);
	if (err != 0) /* restore the state; keep the errno of the failed transition */
		(void)ibv_modify_qp(qp, &reset, IBV_QP_STATE);
	return err;
}

static int
qp_check_addr(const struct rverbs_dev *dev, const struct rmem_qp_addr *remote)
{
	static const uint8_t none[16];

	if (remote->mtu < IBV_MTU_256 || remote->mtu > IBV_MTU_4096 ||
			remote->qp_num > RVERBS_PSN_MASK || remote->psn > RVERBS_PSN_MASK) {
		RVERBS_LOG(ERR, "peer: not an address of a verbs device: QP %u, PSN %u, MTU code %u",
				remote->qp_num, remote->psn, remote->mtu);
		return -EINVAL;
	}
	if (memcmp(remote->gid, none, sizeof(none)) == 0 &&
			(remote->lid == 0 || dev->port.link_layer == IBV_LINK_LAYER_ETHERNET)) {
		RVERBS_LOG(ERR, "peer: address without GID");
		return -EINVAL;
	}
	return 0;
}

static void
qp_set_remote(struct rverbs_qp *qp, const struct rmem_qp_addr *remote)
{
	qp->remote = *remote;
	qp->peer_dev_id = qp->has_mw_quirk ? rverbs_devs_find(remote) : -1;
}

/* Under the lock, which is also held by the thread that detects the removal of the device. */
static void
qp_set_gate(struct rverbs_qp *qp, uint32_t gate)
{
	struct rverbs_dev *dev = qp->dev;

	rte_ticketlock_lock(&dev->lock);
	__atomic_store_n(&qp->gate, dev->is_removed ? RVERBS_GATE_REMOVED : gate, __ATOMIC_RELEASE);
	rte_ticketlock_unlock(&dev->lock);
}

/* The state of an XRC_RECV QP, which others may modify, is that which the class has queried. */
static bool
gate_is_reset(const struct rverbs_qp *qp)
{
	const uint32_t gate = __atomic_load_n(&qp->gate, __ATOMIC_RELAXED);

	return gate == RVERBS_GATE_RESET ||
			(qp->qp.type == RMEM_QPT_XRC_RECV && gate != RVERBS_GATE_REMOVED);
}

int
rverbs_qp_connect(struct rmem_qp *base, const struct rmem_qp_conn *conn)
{
	struct rverbs_qp *qp = rverbs_qp_of(base);
	struct rverbs_dev *dev = qp->dev;
	const char *what;
	int ret;

	ret = qp_check_addr(dev, &conn->remote);
	if (ret == 0 && !gate_is_reset(qp))
		ret = -EBUSY;
	if (ret == 0) {
		ret = rverbs_ibv_connect(dev, qp->ibv, qp->conf.access, qp->psn, conn, &what);
		ret = rverbs_err_code(ret, RVERBS_ERR_CHANGE, what);
	}
	if (ret != 0)
		return ret;
	qp_set_remote(qp, &conn->remote);
	qp_set_gate(qp, RVERBS_GATE_OPEN);
	return 0;
}

/* Convert the attributes in mask; the bits of both masks are equal. */
static void
attr_to_ibv(const struct rmem_qp_attr *attr, struct ibv_qp_attr *ibv)
{
	memset(ibv, 0, sizeof(*ibv));
	ibv->qp_state = (enum ibv_qp_state)attr->state;
	ibv->cur_qp_state = (enum ibv_qp_state)attr->cur_state;
	ibv->path_mtu = (enum ibv_mtu)attr->path_mtu;
	ibv->rq_psn = attr->rq_psn;
	ibv->sq_psn = attr->sq_psn;
	ibv->dest_qp_num = attr->dest_qp_num;
	ibv->qp_access_flags = attr->access;
	ibv->pkey_index = attr->pkey_index;
	ibv->max_rd_atomic = attr->max_rd_atomic;
	ibv->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	ibv->en_sqd_async_notify = attr->en_sqd_async_notify;
	ibv->min_rnr_timer = attr->min_rnr_timer;
	ibv->port_num = attr->port_num;
	ibv->timeout = attr->timeout;
	ibv->retry_cnt = attr->retry_cnt;
	ibv->rnr_retry = attr->rnr_retry;
	ibv->qkey = attr->qkey;
	ibv->rate_limit = attr->rate_limit;
	rverbs_ah_attr(&attr->ah, &ibv->ah_attr);
}

static void
attr_of_ibv(const struct ibv_qp_attr *ibv, struct rmem_qp_attr *attr)
{
	attr->state = attr->cur_state = rverbs_map_state(ibv->qp_state);
	attr->path_mtu = ibv->path_mtu;
	attr->rq_psn = ibv->rq_psn;
	attr->sq_psn = ibv->sq_psn;
	attr->dest_qp_num = ibv->dest_qp_num;
	attr->pkey_index = ibv->pkey_index;
	attr->max_rd_atomic = ibv->max_rd_atomic;
	attr->max_dest_rd_atomic = ibv->max_dest_rd_atomic;
	attr->min_rnr_timer = ibv->min_rnr_timer;
	attr->port_num = ibv->port_num;
	attr->timeout = ibv->timeout;
	attr->retry_cnt = ibv->retry_cnt;
	attr->rnr_retry = ibv->rnr_retry;
	attr->sq_draining = ibv->sq_draining;
	attr->qkey = ibv->qkey;
	attr->ah.is_global = ibv->ah_attr.is_global;
	attr->ah.dlid = ibv->ah_attr.dlid;
	attr->ah.sl = ibv->ah_attr.sl;
	attr->ah.src_path_bits = ibv->ah_attr.src_path_bits;
	attr->ah.static_rate = ibv->ah_attr.static_rate;
	attr->ah.port_num = ibv->ah_attr.port_num;
	memcpy(attr->ah.dgid, ibv->ah_attr.grh.dgid.raw, sizeof(attr->ah.dgid));
	attr->ah.flow_label = ibv->ah_attr.grh.flow_label;
	attr->ah.sgid_index = ibv->ah_attr.grh.sgid_index;
	attr->ah.hop_limit = ibv->ah_attr.grh.hop_limit;
	attr->ah.traffic_class = ibv->ah_attr.grh.traffic_class;
}

/* Store the peer's address, as a connect does. */
static void
modify_remote(struct rverbs_qp *qp, const struct rmem_qp_attr *attr)
{
	struct rmem_qp_addr remote = {.qp_num = attr->dest_qp_num,
			.psn = attr->rq_psn,
			.lid = attr->ah.dlid,
			.mtu = (uint8_t)attr->path_mtu};

	memcpy(remote.gid, attr->ah.dgid, sizeof(remote.gid));
	qp_set_remote(qp, &remote);
}

int
rverbs_qp_modify(struct rmem_qp *base, const struct rmem_qp_attr *attr, uint32_t mask)
{
	struct rverbs_qp *qp = rverbs_qp_of(base);
	struct ibv_qp_attr ibv;
	int ret;

	attr_to_ibv(attr, &ibv);
	/* The class has checked it; the kernel permits it only in transitions to RTS. */
	if (attr->state != RMEM_QPS_RTS)
		mask &= ~RMEM_QP_CUR_STATE;
	ret = rverbs_err_code(ibv_modify_qp(qp->ibv, &ibv, (int)mask), RVERBS_ERR_CHANGE,
			"ibv_modify_qp");
	if (ret != 0)
		return ret;
	if ((mask & RMEM_QP_ACCESS_FLAGS) != 0)
		qp->access = attr->access;
	if ((mask & RMEM_QP_SQ_PSN) != 0)
		qp->psn = attr->sq_psn;
	if ((mask & RMEM_QP_RATE_LIMIT) != 0)
		qp->rate_limit = attr->rate_limit;
	if (attr->state == RMEM_QPS_RTR && qp->ahs == NULL)
		modify_remote(qp, attr);
	if (attr->state != attr->cur_state && attr->state != RMEM_QPS_SQD)
		qp_set_gate(qp, attr->state == RMEM_QPS_RTS ? RVERBS_GATE_OPEN : RVERBS_GATE_INIT);
	return 0;
}

/* Attributes that another process may have set: as the device reports them. */
static void
attr_of_shared(const struct ibv_qp_attr *ibv, struct rmem_qp_attr *attr)
{
	memset(&attr->remote, 0, sizeof(attr->remote));
	if (ibv->qp_state == IBV_QPS_RESET)
		return;
	attr->access = ibv->qp_access_flags & RMEM_ACCESS_REMOTE;
	if (ibv->qp_state == IBV_QPS_INIT)
		return;
	attr->remote.qp_num = ibv->dest_qp_num;
	attr->remote.psn = ibv->rq_psn;
	attr->remote.lid = ibv->ah_attr.dlid;
	attr->remote.mtu = (uint8_t)ibv->path_mtu;
	memcpy(attr->remote.gid, ibv->ah_attr.grh.dgid.raw, sizeof(attr->remote.gid));
}

int
rverbs_qp_query(struct rmem_qp *base, struct rmem_qp_attr *attr)
{
	struct rverbs_qp *qp = rverbs_qp_of(base);
	const bool is_shared = base->type == RMEM_QPT_XRC_RECV;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr ibv;
	int ret;

	memset(&ibv, 0, sizeof(ibv));
	ret = rverbs_err_code(ibv_query_qp(qp->ibv, &ibv,
					      RVERBS_QUERY | (is_shared ? IBV_QP_ACCESS_FLAGS : 0),
					      &init),
			RVERBS_ERR_CHANGE, "ibv_query_qp");
	if (ret != 0)
		return ret;
	attr_of_ibv(&ibv, attr);
	attr->access = qp->access;
	attr->rate_limit = qp->rate_limit;
	memcpy(attr->addr.gid, qp->dev->port.gid.raw, sizeof(attr->addr.gid));
	attr->addr.qp_num = base->qp_num;
	attr->addr.psn = qp->psn;
	attr->addr.lid = qp->dev->port.lid;
	attr->addr.mtu = qp->dev->port.mtu;
	attr->remote = qp->remote;
	if (is_shared)
		attr_of_shared(&ibv, attr);
	attr->max_send_wr = qp->conf.max_send_wr;
	attr->max_recv_wr = qp->conf.max_recv_wr;
	attr->max_send_sge = qp->conf.max_send_sge;
	attr->max_recv_sge = qp->conf.max_recv_sge;
	attr->max_inline_data = qp->conf.max_inline_data;
	attr->send_queued = qp->sq.prod - __atomic_load_n(&qp->sq.cons, __ATOMIC_RELAXED);
	attr->recv_queued = qp->rq.prod - __atomic_load_n(&qp->rq.cons, __ATOMIC_RELAXED);
	return 0;
}

int
rverbs_qp_set_error(struct rmem_qp *base)
{
	struct rverbs_qp *qp = rverbs_qp_of(base);
	int ret = qp_to(qp->ibv, IBV_QPS_ERR, "ibv_modify_qp to ERR");

	if (ret != 0)
		return ret;
	__atomic_store_n(&qp->has_failed, 1, __ATOMIC_RELAXED);
	/* In INIT or RTR, requests are then accepted and flushed. */
	qp_set_gate(qp, RVERBS_GATE_OPEN);
	return 0;
}

/*
 * Reset a QP. rdma_rxe sets the state, then waits for its tasks, one of which may move the QP to
 * ERR (7.3, if the peer's completion is polled before this side has finished). A second reset has
 * no such task.
 */
static int
qp_to_reset(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int i, ret;

	for (i = 0; i < RVERBS_RESET_TRIES; i++) {
		memset(&attr, 0, sizeof(attr));
		ret = qp_to(qp, IBV_QPS_RESET, "ibv_modify_qp to RESET");
		if (ret == 0)
			ret = rverbs_err_code(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init),
					RVERBS_ERR_CHANGE, "ibv_query_qp");
		if (ret != 0 || attr.qp_state == IBV_QPS_RESET)
			return ret;
	}
	RVERBS_LOG(ERR, "QP %u: does not stay in RESET", qp->qp_num);
	return -EIO;
}

/*
 * Completions stay in the CQs (IBTA C10-97). Some providers remove them at RESET, others do not, so
 * poll them both before and after.
 */
int
rverbs_qp_reset(struct rmem_qp *base)
{
	struct rverbs_qp *qp = rverbs_qp_of(base);
	struct rverbs_slot *slot = &qp->dev->slots[qp->slot];
	int ret;

	qp_save(qp);
	ret = qp_to_reset(qp->ibv);
	if (ret != 0)
		return ret;
	qp_save(qp);
	rte_ticketlock_lock(&qp->dev->lock);
	__atomic_store_n(&slot->gen, slot->gen + 2, __ATOMIC_RELEASE);
	if (qp->gate != RVERBS_GATE_REMOVED)
		__atomic_store_n(&qp->gate, RVERBS_GATE_RESET, __ATOMIC_RELEASE);
	rte_ticketlock_unlock(&qp->dev->lock);
	qp_wait_polls(qp);
	rverbs_mw_forget(qp);
	qp->has_failed = 0;
	qp->access = qp->conf.access;
	qp->rate_limit = 0;
	qp->id = (uint64_t)slot->gen << 32 | (uint64_t)qp->slot << 16;
	drop_requests(qp);
	qp->windows = 0;
	qp->windows_done = qp->ahs != NULL ? RVERBS_WINDOWS_NONE : 0;
	memset(&qp->remote, 0, sizeof(qp->remote));
	qp->peer_dev_id = -1;
	return qp->has_mw_quirk ? rverbs_mwq_renew_qp(qp) : 0;
}

/*
 * Check the windows of a QP. A QP with a bound type 2 window can't be destroyed (IBTA 11.2.5.4),
 * which the device enforces. With the quirk the driver enforces it: rdma_rxe waits for 50 s, then
 * frees objects that the window still refers to. A window whose bind or invalidation has not
 * completed may also be bound, and is allocated again first.
 */
static int
qp_unbind(struct rverbs_qp *qp)
{
	if (qp->has_mw_quirk && rverbs_mwq_is_bound_on(qp)) {
		RVERBS_LOG(ERR, "QP %u: in use: a window is bound on it (invalidate or release it first)",
				qp->qp.qp_num);
		return -EBUSY;
	}
	rverbs_mw_forget(qp);
	return qp->has_mw_quirk ? rverbs_mwq_renew_qp(qp) : 0;
}

int
rverbs_qp_destroy(struct rmem_qp *base)
{
	struct rverbs_qp *qp = rverbs_qp_of(base);
	struct rverbs_dev *dev = qp->dev;
	int ret;

	qp_save(qp);
	ret = qp_unbind(qp);
	if (ret != 0)
		return ret;
	ret = rverbs_err_code(ibv_destroy_qp(qp->ibv), RVERBS_ERR_RELEASE, "ibv_destroy_qp");
	if (ret != 0)
		return ret;
	qp_save(qp);
	slot_give(dev, qp);
	qp_wait_polls(qp);
	drop_requests(qp);
	free_rings(qp);
	return 0;
}
