/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Queue pairs; see rsoft_qp.h. Transitions to RTR, RTS and SQD are by compare-and-swap from the
 * state that the class checked, because an error may move the QP to ERR at any time.
 *
 * A connection of a QP lasts from its connect to its reset. Invariant: receives and requests of a
 * connection are flushed or dropped only during this connection. Each flush is ordered before the
 * next connect:
 * - an lcore that executes requests is inside (rsoft_grace.h), and a reset stores RESET first and
 *   then waits for the lcore;
 * - rmem_qp_set_error() holds ctl_lock, which reset and connect also take;
 * - rmem_post_recv() flushes in the posting thread, which does not post during a reset or a connect
 *   (rmem_qp_reset()).
 * ctl_lock also serialises two resets, and a reset and a connect.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_malloc.h>

#include "chaos/rsoft_chaos.h"
#include "queue/rsoft_addr.h"
#include "queue/rsoft_count.h"
#include "queue/rsoft_cq.h"
#include "rsoft_engine.h"
#include "mem/rsoft_grace.h"
#include "base/rsoft_ids.h"
#include "queue/rsoft_inline.h"
#include "mem/rsoft_mw.h"
#include "base/rsoft_profile.h"
#include "rsoft_qp.h"
#include "queue/rsoft_req.h"
#include "queue/rsoft_rq.h"
#include "queue/rsoft_sq.h"
#include "rsoft_stats.h"
#include "queue/rsoft_ud.h"
#include "wire/rwire.h"

static struct rsoft_qp *
qp_of(struct rmem_qp *qp)
{
	return (struct rsoft_qp *)qp;
}

/* Entry of the device's table for a new QP; 0 if there is none. Under the domain's lock. */
static uint32_t
qp_entry(struct rsoft_dev *dev, bool is_gsi)
{
	uint32_t id;

	if (is_gsi)
		return dev->qps[RSOFT_GSI_QP] == NULL ? RSOFT_GSI_QP : 0;
	id = rsoft_ids_get(&dev->qp_ids);
	return id != 0 ? id + RSOFT_FIRST_QP - 1 : 0;
}

/*
 * Set the number of a QP in an entry of the device's table, different from that of the previous QP
 * there. Under the domain's lock.
 */
static void
qp_number(struct rsoft_qp *qp, uint32_t index)
{
	struct rsoft_dev *dev = qp->dev;

	do {
		dev->qp_generation += dev->qp_mask + 1;
		qp->serial = dev->qp_generation | index;
	} while ((qp->serial & 0xffffff) == RMEM_MCAST_QPN);
	qp->qp.qp_num = (uint32_t)qp->serial & 0xffffff;
}

void
rsoft_qp_renumber(struct rsoft_qp *qp)
{
	rsoft_lock(&rsoft_domain->lock);
	qp_number(qp, qp->qp.qp_num & qp->dev->qp_mask);
	rte_ticketlock_unlock(&rsoft_domain->lock);
}

/* Assign a number and an entry of the device's table to the QP. */
static int
qp_enter(struct rsoft_qp *qp, bool is_gsi)
{
	struct rsoft_dev *dev = qp->dev;
	uint32_t index;

	rsoft_lock(&rsoft_domain->lock);
	index = qp_entry(dev, is_gsi);
	if (index != 0) {
		qp_number(qp, index);
		if (is_gsi)
			qp->qp.qp_num = RSOFT_GSI_QP;
		__atomic_store_n(&dev->qps[index], qp, __ATOMIC_RELEASE);
		dev->nb_qp++;
	}
	rte_ticketlock_unlock(&rsoft_domain->lock);
	if (index != 0)
		return 0;
	if (is_gsi) {
		RSOFT_LOG(ERR, "QP 1: in use");
		return -EBUSY;
	}
	RSOFT_LOG(ERR, "QP: all entries are in use (max_qp=%" PRIu64 ")", dev->args.max_qp);
	return -ENOSPC;
}

/*
 * As mlx5's MLX5_SCATTER_TO_CQE: on, unless the variable is 0 or the QP disables it; 1 also
 * includes messages that are slower with it.
 */
static enum rsoft_inline_recv
qp_inline_recv(const struct rsoft_dev *dev, const struct rmem_qp_conf *conf)
{
	const char *env = getenv("RMEM_SCATTER_TO_CQE");

	if (!(rsoft_profile_of(dev)->capa & RMEM_DEV_CAPA_INLINE_RECV) ||
			(conf->max_recv_wr == 0 && conf->srq == NULL) ||
			(conf->flags & RMEM_QP_NO_INLINE_RECV) ||
			(env != NULL && strcmp(env, "0") == 0))
		return RSOFT_INLINE_NONE;
	return env != NULL && strcmp(env, "1") == 0 ? RSOFT_INLINE_ALL : RSOFT_INLINE_OWN;
}

/* Collect the rules of chaos= that apply to a QP; none apply to the GSI QP and to XRC_RECV. */
static int
qp_init_chaos(struct rsoft_qp *qp, const struct rmem_qp_conf *conf)
{
	int ret;

	if (qp->dev->chaos == NULL || (conf->flags & RMEM_QP_GSI) != 0 || qp->xrcd != 0)
		return 0;
	ret = rsoft_chaos_qp_init(qp->dev->chaos, &qp->qp, qp->sq.mask + 1, &qp->chaos);
	qp->has_late_recv = ret == 0 && qp->chaos != NULL && qp->chaos->has_recv;
	return ret;
}

/* Attach the QP to its CQs; an XRC_RECV QP has none, and is noted by the wire. */
static void
qp_attach_cqs(struct rsoft_qp *qp)
{
	if (qp->xrcd != 0) {
		if (qp->dev->wire != NULL)
			rwire_qp_note_xrc(qp->dev->wire);
		return;
	}
	rsoft_cq_attach(rsoft_cq_of(qp->qp.send_cq));
	rsoft_cq_attach(rsoft_cq_of(qp->qp.recv_cq));
	if (qp->inline_recv != RSOFT_INLINE_NONE)
		rsoft_cq_add_messages(rsoft_cq_of(qp->qp.recv_cq));
}

int
rsoft_qp_create(struct rmem_qp *base, const struct rmem_qp_conf *conf)
{
	struct rsoft_dev *dev = rsoft_dev_of(&base->obj);
	struct rsoft_qp *qp = qp_of(base);
	int ret;

	qp->dev = dev;
	rte_ticketlock_init(&qp->ctl_lock);
	qp->state = RMEM_QPS_RESET;
	qp->access = qp->conf_access = conf->access;
	if (base->pd != NULL)
		qp->pd = base->pd->handle;
	else {
		qp->domain = conf->ext->xrcd;
		qp->xrcd = qp->domain->handle;
	}
	qp->sig_all = (conf->flags & RMEM_QP_SIG_ALL) != 0;
	rmem_wr_limits_set(&qp->limits, conf, rsoft_profile_of(dev)->capa);
	qp->max_recv_sge = conf->max_recv_sge;
	qp->max_msg_size = conf->type == RMEM_QPT_UD ? rsoft_ud_max_msg_size(dev)
						     : rsoft_profile_of(dev)->max_msg_size;
	qp->inline_recv = qp_inline_recv(dev, conf);
	qp->is_queued = dev->nb_engines != 0;
	qp->psn = rsoft_random() & 0xffffff;
	ret = rsoft_sq_init(&qp->sq, conf, (int)(int64_t)dev->args.socket);
	if (ret != 0)
		goto fail;
	ret = rsoft_rq_init(&qp->rq, conf, (int)(int64_t)dev->args.socket);
	if (ret != 0)
		goto fini_sq;
	ret = qp_init_chaos(qp, conf);
	if (ret != 0)
		goto free_rq;
	ret = qp_enter(qp, (conf->flags & RMEM_QP_GSI) != 0);
	if (ret != 0)
		goto fini_chaos;
	qp_attach_cqs(qp);
	rsoft_engine_add_qp(qp);
	return 0;

fini_chaos:
	rsoft_chaos_qp_fini(qp->chaos);
free_rq:
	rte_free(qp->rq.ring);
fini_sq:
	rsoft_sq_fini(&qp->sq);
fail:
	if (ret == -ENOMEM)
		RSOFT_LOG(ERR, "QP: no memory for queues: %u and %u requests", conf->max_send_wr,
				conf->max_recv_wr);
	return ret;
}

/* Connect to the peer's device in this process, or through the wire. Under the domain's lock. */
static int
qp_reach(struct rsoft_qp *qp, const struct rmem_qp_conn *conn)
{
	int ret = 0;

	if (qp->qp.type == RMEM_QPT_UD) {
		ret = qp->dev->wire != NULL ? rwire_ud_start(qp) : 0;
		qp->is_queued = qp->dev->nb_engines != 0 || qp->wire != NULL;
		return ret;
	}
	if (conn->remote.qp_num >> 24 != 0)
		return -EINVAL;
	if (rsoft_addr_has_packets(qp, &conn->remote))
		ret = rwire_qp_connect(qp, conn);
	if (ret == 0) {
		qp->conn = *conn;
		qp->is_queued = qp->dev->nb_engines != 0 || qp->wire != NULL;
	}
	return ret;
}

/* Set all attributes of a connection. */
static void
qp_set_conn(struct rsoft_qp *qp, const struct rmem_qp_conn *conn)
{
	struct rmem_qp_attr *set = &qp->set;

	memcpy(set->ah.dgid, conn->remote.gid, sizeof(set->ah.dgid));
	set->ah.dlid = conn->remote.lid;
	set->ah.is_global = 1;
	set->ah.hop_limit = 64;
	set->ah.traffic_class = conn->traffic_class;
	set->ah.port_num = set->port_num = 1;
	set->path_mtu = conn->remote.mtu != 0 ? conn->remote.mtu : RSOFT_MTU_NONE;
	set->dest_qp_num = conn->remote.qp_num;
	set->rq_psn = conn->remote.psn;
	set->timeout = conn->timeout;
	set->retry_cnt = conn->retry_cnt;
	set->rnr_retry = conn->rnr_retry;
	set->min_rnr_timer = conn->min_rnr_timer;
	set->max_rd_atomic = set->max_dest_rd_atomic = RSOFT_MAX_RD_ATOMIC;
}

static void
log_unreachable(const struct rmem_qp *base, const struct rmem_qp_conn *conn, int ret)
{
	if (ret == -EINVAL)
		RSOFT_LOG(ERR, "QP 0x%06x%s: not connected: QP number 0x%x over 0xffffff, or GID not of a soft device of this process and not reachable with ip=",
				base->qp_num, RSOFT_QP_NAME(base), conn->remote.qp_num);
}

int
rsoft_qp_connect(struct rmem_qp *base, const struct rmem_qp_conn *conn)
{
	struct rsoft_qp *qp = qp_of(base);
	int ret = -EBUSY;

	rte_ticketlock_lock(&qp->ctl_lock);
	rsoft_lock(&rsoft_domain->lock);
	if (qp->state == RMEM_QPS_RESET)
		ret = qp_reach(qp, conn);
	if (ret == 0) {
		qp_set_conn(qp, conn);
		__atomic_store_n(&qp->state, RMEM_QPS_RTS, __ATOMIC_RELEASE);
	}
	rte_ticketlock_unlock(&rsoft_domain->lock);
	rte_ticketlock_unlock(&qp->ctl_lock);
	if (ret == -EBUSY)
		RSOFT_LOG(ERR, "QP 0x%06x%s: not connected: not in RESET", base->qp_num,
				RSOFT_QP_NAME(base));
	log_unreachable(base, conn, ret);
	return ret;
}

static bool
modify_has_pkey(const struct rsoft_dev *dev, uint32_t port_num, uint32_t index)
{
	if (dev->wire == NULL)
		return index == 0;
	return index < dev->tables.nb_pkeys &&
			__atomic_load_n(&dev->tables.pkey[rsoft_pkey_slot(port_num, index)],
					__ATOMIC_RELAXED) != 0;
}

/* Port of a QP after a change of the attributes in mask. */
static uint32_t
modify_port(const struct rsoft_qp *qp, const struct rmem_qp_attr *attr, uint32_t mask)
{
	return (mask & RMEM_QP_PORT) != 0 ? attr->port_num : rsoft_gid_port(qp->gid_slot);
}

/* Refuse a port that the device does not have, another port than the QP's, or a change of it after
 * INIT. */
static int
modify_check_port(const struct rsoft_qp *qp, const struct rmem_qp_attr *attr, uint32_t mask)
{
	const uint32_t nb = qp->dev->tables.nb_ports, port_num = modify_port(qp, attr, mask);
	const uint32_t path = (mask & RMEM_QP_AV) != 0 ? attr->ah.port_num : port_num;

	if (port_num == 0 || port_num > nb || path == 0 || path > nb) {
		RSOFT_LOG(ERR, "QP 0x%06x%s: port_num %u, of the path %u: no such port (1 to %u)",
				qp->qp.qp_num, RSOFT_QP_NAME(&qp->qp), port_num, path, nb);
		return -EINVAL;
	}
	if (path == port_num &&
			(attr->state == RMEM_QPS_INIT || port_num == rsoft_gid_port(qp->gid_slot)))
		return 0;
	RSOFT_LOG(ERR, "QP 0x%06x%s: port_num %u, of the path %u: the port is set in INIT (%u)",
			qp->qp.qp_num, RSOFT_QP_NAME(&qp->qp), port_num, path,
			rsoft_gid_port(qp->gid_slot));
	return -EINVAL;
}

/* Refuse attributes that the device does not have or can't change. */
static int
modify_check(const struct rsoft_qp *qp, const struct rmem_qp_attr *attr, uint32_t mask)
{
	struct rmem_qp_addr addr;
	const uint32_t port_num = modify_port(qp, attr, mask);
	uint8_t own[16], slot;
	int ret = modify_check_port(qp, attr, mask);

	if (ret != 0)
		return ret;
	if ((mask & RMEM_QP_PKEY_INDEX) != 0 &&
			!modify_has_pkey(qp->dev, port_num, attr->pkey_index)) {
		RSOFT_LOG(ERR, "QP 0x%06x%s: pkey_index %u: no such P_Key (an index with one, below %u)",
				qp->qp.qp_num, RSOFT_QP_NAME(&qp->qp), attr->pkey_index,
				RTE_MAX(qp->dev->tables.nb_pkeys, 1u));
		return -EINVAL;
	}
	if ((mask & RMEM_QP_AV) != 0 &&
			(!rsoft_addr_slot(qp->dev, port_num, attr->ah.sgid_index, &slot) ||
					!rsoft_addr_gid(qp->dev, slot, own) ||
					!rsoft_addr_of_ah(qp->dev, &attr->ah, &addr))) {
		RSOFT_LOG(ERR, "QP 0x%06x%s: no such path: is_global %u, sgid_index %u, dlid %u (a GID, from an index with one%s)",
				qp->qp.qp_num, RSOFT_QP_NAME(&qp->qp), attr->ah.is_global,
				attr->ah.sgid_index, attr->ah.dlid,
				qp->dev->wire == NULL ? ", or dlid 1"
						: qp->dev->address.lid != 0
						? ", or the dlid of a process"
						: "");
		return -EINVAL;
	}
	if ((mask & RMEM_QP_AV) != 0 && attr->cur_state == RMEM_QPS_SQD) {
		RSOFT_LOG(ERR, "QP 0x%06x%s: the path of a connected QP can't change",
				qp->qp.qp_num, RSOFT_QP_NAME(&qp->qp));
		return -EOPNOTSUPP;
	}
	return 0;
}

/* Fill the connection parameters from the attributes in mask. */
static void
modify_conn(const struct rsoft_dev *dev, const struct rmem_qp_attr *attr, uint32_t mask,
		struct rmem_qp_conn *conn)
{
	if ((mask & RMEM_QP_AV) != 0) {
		rsoft_addr_of_ah(dev, &attr->ah, &conn->remote);
		conn->traffic_class = attr->ah.traffic_class;
	}
	if ((mask & RMEM_QP_DEST_QPN) != 0)
		conn->remote.qp_num = attr->dest_qp_num;
	if ((mask & RMEM_QP_RQ_PSN) != 0)
		conn->remote.psn = attr->rq_psn;
	if ((mask & RMEM_QP_PATH_MTU) != 0)
		conn->remote.mtu = (uint8_t)attr->path_mtu;
	if ((mask & RMEM_QP_TIMEOUT) != 0)
		conn->timeout = attr->timeout;
	if ((mask & RMEM_QP_RETRY_CNT) != 0)
		conn->retry_cnt = attr->retry_cnt;
	if ((mask & RMEM_QP_RNR_RETRY) != 0)
		conn->rnr_retry = attr->rnr_retry;
	if ((mask & RMEM_QP_MIN_RNR_TIMER) != 0)
		conn->min_rnr_timer = attr->min_rnr_timer;
}

/* Store the attributes in mask for queries. */
static void
modify_set(struct rmem_qp_attr *set, const struct rmem_qp_attr *attr, uint32_t mask)
{
	if ((mask & RMEM_QP_AV) != 0)
		set->ah = attr->ah;
	if ((mask & RMEM_QP_PORT) != 0)
		set->port_num = attr->port_num;
	if ((mask & RMEM_QP_PKEY_INDEX) != 0)
		set->pkey_index = attr->pkey_index;
	if ((mask & RMEM_QP_DEST_QPN) != 0)
		set->dest_qp_num = attr->dest_qp_num;
	if ((mask & RMEM_QP_RQ_PSN) != 0)
		set->rq_psn = attr->rq_psn;
	if ((mask & RMEM_QP_PATH_MTU) != 0)
		set->path_mtu = attr->path_mtu;
	if ((mask & RMEM_QP_TIMEOUT) != 0)
		set->timeout = attr->timeout;
	if ((mask & RMEM_QP_RETRY_CNT) != 0)
		set->retry_cnt = attr->retry_cnt;
	if ((mask & RMEM_QP_RNR_RETRY) != 0)
		set->rnr_retry = attr->rnr_retry;
	if ((mask & RMEM_QP_MIN_RNR_TIMER) != 0)
		set->min_rnr_timer = attr->min_rnr_timer;
	if ((mask & RMEM_QP_MAX_QP_RD_ATOMIC) != 0)
		set->max_rd_atomic = attr->max_rd_atomic;
	if ((mask & RMEM_QP_MAX_DEST_RD_ATOMIC) != 0)
		set->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if ((mask & RMEM_QP_EN_SQD_ASYNC_NOTIFY) != 0)
		set->en_sqd_async_notify = attr->en_sqd_async_notify;
	if ((mask & RMEM_QP_RATE_LIMIT) != 0)
		set->rate_limit = attr->rate_limit;
}

/* Set the rights of the peer; return the previous ones. Under ctl_lock. */
static uint32_t
qp_set_access(struct rsoft_qp *qp, uint32_t access)
{
	uint32_t old = __atomic_load_n(&qp->access, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(&qp->access, &old, (old & RSOFT_QP_NO_RIGHTS) | access,
			false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return old & ~RSOFT_QP_NO_RIGHTS;
}

/*
 * Under ctl_lock and the domain's lock; in SQE also under qp_lock_sq(). -EBUSY if an error has
 * moved the QP to ERR.
 */
static int
modify_do(struct rsoft_qp *qp, const struct rmem_qp_attr *attr, uint32_t mask)
{
	const uint8_t gid_slot = qp->gid_slot, pkey_slot = qp->pkey_slot;
	struct rmem_qp_conn conn = qp->conn;
	uint32_t state = attr->cur_state;
	int ret = 0;

	if ((mask & RMEM_QP_PORT) != 0 && attr->state == RMEM_QPS_INIT) {
		qp->gid_slot = rsoft_gid_slot(attr->port_num, 0);
		qp->pkey_slot = rsoft_pkey_slot(attr->port_num, qp->pkey_slot % RSOFT_MAX_PKEYS);
	}
	if ((mask & RMEM_QP_PKEY_INDEX) != 0)
		qp->pkey_slot = rsoft_pkey_slot(rsoft_gid_port(qp->gid_slot), attr->pkey_index);
	if ((mask & RMEM_QP_AV) != 0)
		qp->gid_slot = rsoft_gid_slot(attr->ah.port_num, attr->ah.sgid_index);
	if (attr->state == RMEM_QPS_RTR) {
		modify_conn(qp->dev, attr, mask, &conn);
		ret = qp_reach(qp, &conn);
	} else {
		modify_conn(qp->dev, attr, mask, &qp->conn);
	}
	if (ret != 0) {
		qp->gid_slot = gid_slot;
		qp->pkey_slot = pkey_slot;
		return ret;
	}
	if ((mask & RMEM_QP_PKEY_INDEX) != 0)
		rwire_qp_set_pkey(qp);
	/* No error can happen in INIT, so in RTR the peer has these rights from the start. */
	if (attr->state == RMEM_QPS_RTR && (mask & RMEM_QP_ACCESS_FLAGS) != 0)
		qp_set_access(qp, attr->access);
	if ((mask & RMEM_QP_SQ_PSN) != 0)
		qp->psn = attr->sq_psn;
	if ((mask & RMEM_QP_QKEY) != 0)
		__atomic_store_n(&qp->qkey, attr->qkey, __ATOMIC_RELAXED);
	if (attr->state == RMEM_QPS_RTS && state == RMEM_QPS_RTR)
		rwire_qp_start(qp);
	else if (attr->state == RMEM_QPS_RTS && state == RMEM_QPS_SQE)
		rwire_qp_restart(qp);
	if (!__atomic_compare_exchange_n(&qp->state, &state, attr->state, false, __ATOMIC_SEQ_CST,
			    __ATOMIC_RELAXED))
		return -EBUSY;
	modify_set(&qp->set, attr, mask);
	return 0;
}

/* A request that waits for its peer starts to wait again, with the new timeouts and counts. */
static void
qp_set_retries(struct rsoft_qp *qp)
{
	rsoft_engine_lock_sq(qp);
	if (qp->sq.wait == RSOFT_WAIT_PEER || qp->sq.wait == RSOFT_WAIT_RNR)
		qp->sq.wait = RSOFT_WAIT_NONE;
	rwire_qp_set_retries(qp);
	rsoft_engine_unlock_sq(qp);
}

static void
qp_set_rate(struct rsoft_qp *qp, uint32_t kbps)
{
	rsoft_engine_lock_sq(qp);
	rwire_qp_set_rate(qp, kbps);
	rsoft_engine_unlock_sq(qp);
}

/* Generate the event at the end of draining, now or when the begun requests complete. */
static void
qp_report_drained(struct rsoft_qp *qp, bool has_to_report)
{
	rsoft_engine_lock_sq(qp);
	qp->sq.has_to_report = has_to_report;
	if (has_to_report)
		rsoft_sq_report_drained(qp, rwire_qp_is_draining(qp));
	rsoft_engine_unlock_sq(qp);
}

/* Before SQD: cancel the request for an event of an earlier SQD. */
static void
qp_forget_drained(struct rsoft_qp *qp)
{
	rsoft_engine_lock_sq(qp);
	qp->sq.has_to_report = false;
	rsoft_engine_unlock_sq(qp);
}

/* Finish a modify: the part under locks that are taken before the domain's lock. */
static void
modify_end(struct rsoft_qp *qp, const struct rmem_qp_attr *attr, uint32_t mask)
{
	uint32_t removed = 0;

	if ((mask & RMEM_QP_ACCESS_FLAGS) != 0)
		removed = qp_set_access(qp, attr->access) & ~attr->access;
	if ((mask & (RMEM_QP_TIMEOUT | RMEM_QP_RETRY_CNT | RMEM_QP_RNR_RETRY)) != 0)
		qp_set_retries(qp);
	if ((mask & RMEM_QP_RATE_LIMIT) != 0)
		qp_set_rate(qp, attr->rate_limit);
	/* Afterwards no lcore starts another request, or executes a request of the peer with a
	 * removed right. */
	if (attr->state == RMEM_QPS_SQD || removed != 0)
		rsoft_grace_wait();
	if (attr->state == RMEM_QPS_SQD && attr->cur_state == RMEM_QPS_RTS)
		qp_report_drained(qp,
				(mask & RMEM_QP_EN_SQD_ASYNC_NOTIFY) != 0 &&
						attr->en_sqd_async_notify != 0);
}

/*
 * From SQE to RTS: flush the queued requests. Until qp_unlock_sq() no thread flushes or executes
 * requests. Under ctl_lock; these locks are taken before the domain's.
 */
static void
qp_lock_sq(struct rsoft_qp *qp)
{
	/* This thread, which need not be an lcore, also completes to the CQ (rsoft_cq.h). */
	rsoft_cq_attach(rsoft_cq_of(qp->qp.send_cq));
	rte_ticketlock_lock(&rsoft_cq_of(qp->qp.send_cq)->ctl_lock);
	rsoft_engine_lock_sq(qp);
	/* In SQE no request is executed, and the QP can move only to ERR here. */
	rsoft_req_drain(qp, rte_lcore_id());
}

static void
qp_unlock_sq(struct rsoft_qp *qp)
{
	rsoft_engine_unlock_sq(qp);
	rte_ticketlock_unlock(&rsoft_cq_of(qp->qp.send_cq)->ctl_lock);
	rsoft_cq_detach(rsoft_cq_of(qp->qp.send_cq));
}

int
rsoft_qp_modify(struct rmem_qp *base, const struct rmem_qp_attr *attr, uint32_t mask)
{
	struct rsoft_qp *qp = qp_of(base);
	bool is_sqe;
	int ret;

	ret = modify_check(qp, attr, mask);
	if (ret != 0)
		return ret;
	rte_ticketlock_lock(&qp->ctl_lock);
	is_sqe = attr->state == RMEM_QPS_RTS &&
			__atomic_load_n(&qp->state, __ATOMIC_ACQUIRE) == RMEM_QPS_SQE;
	if (is_sqe)
		qp_lock_sq(qp);
	if (attr->state == RMEM_QPS_SQD && attr->cur_state == RMEM_QPS_RTS)
		qp_forget_drained(qp);
	rsoft_lock(&rsoft_domain->lock);
	ret = -EBUSY;
	if (__atomic_load_n(&qp->state, __ATOMIC_RELAXED) == attr->cur_state)
		ret = modify_do(qp, attr, mask);
	rte_ticketlock_unlock(&rsoft_domain->lock);
	if (is_sqe)
		qp_unlock_sq(qp);
	if (ret == 0)
		modify_end(qp, attr, mask);
	rte_ticketlock_unlock(&qp->ctl_lock);
	if (ret == -EBUSY)
		RSOFT_LOG(ERR, "QP 0x%06x%s: not modified: no longer in state %u", base->qp_num,
				RSOFT_QP_NAME(base), attr->cur_state);
	if (attr->state == RMEM_QPS_RTR)
		log_unreachable(base, &qp->conn, ret);
	return ret;
}

/* Whether begun requests are in progress in SQD. */
static bool
qp_is_draining(struct rsoft_qp *qp)
{
	bool is_draining;

	rte_ticketlock_lock(&qp->ctl_lock);
	rsoft_engine_lock_sq(qp);
	is_draining = rwire_qp_is_draining(qp);
	rsoft_engine_unlock_sq(qp);
	rte_ticketlock_unlock(&qp->ctl_lock);
	return is_draining;
}

int
rsoft_qp_query(struct rmem_qp *base, struct rmem_qp_attr *attr)
{
	struct rsoft_qp *qp = qp_of(base);

	rsoft_lock(&rsoft_domain->lock);
	*attr = qp->set;
	attr->sq_psn = qp->psn;
	attr->qkey = qp->qkey;
	attr->state = attr->cur_state = __atomic_load_n(&qp->state, __ATOMIC_RELAXED);
	attr->remote = qp->conn.remote;
	rte_ticketlock_unlock(&rsoft_domain->lock);
	attr->sq_draining = attr->state == RMEM_QPS_SQD && qp_is_draining(qp);
	attr->access = __atomic_load_n(&qp->access, __ATOMIC_RELAXED) & RSOFT_ACCESS;
	rsoft_addr_get(qp, &attr->addr);
	attr->max_send_wr = qp->sq.depth;
	attr->max_recv_wr = qp->rq.depth;
	attr->max_send_sge = qp->limits.max_send_sge;
	attr->max_recv_sge = qp->max_recv_sge;
	attr->max_inline_data = qp->limits.max_inline_data;
	attr->bad_rkeys = __atomic_load_n(&qp->bad_rkeys, __ATOMIC_RELAXED);
	attr->send_queued = __atomic_load_n(&qp->sq.prod, __ATOMIC_RELAXED) -
			__atomic_load_n(&qp->sq.cons, __ATOMIC_RELAXED);
	attr->recv_queued = __atomic_load_n(&qp->rq.prod, __ATOMIC_RELAXED) -
			__atomic_load_n(&qp->rq.cons, __ATOMIC_RELAXED);
	return 0;
}

int
rsoft_qp_set_error(struct rmem_qp *base)
{
	struct rsoft_qp *qp = qp_of(base);
	bool is_reset;

	/* Requests whose acknowledgement has arrived succeed. */
	if (qp->dev->wire != NULL &&
			rwire_state_is_requesting(__atomic_load_n(&qp->state, __ATOMIC_ACQUIRE)))
		rwire_catch_up(qp->dev->wire);
	rte_ticketlock_lock(&qp->ctl_lock);
	is_reset = __atomic_load_n(&qp->state, __ATOMIC_ACQUIRE) == RMEM_QPS_RESET;
	if (!is_reset) {
		rsoft_rq_fail(qp);
		rsoft_grace_wait();
	}
	rte_ticketlock_unlock(&qp->ctl_lock);
	if (is_reset)
		RSOFT_LOG(ERR, "QP 0x%06x%s: wrong state: RESET", base->qp_num,
				RSOFT_QP_NAME(base));
	return is_reset ? -EBUSY : 0;
}

/*
 * Remove the QP from the QP that has it as its peer. Its device may no longer have the GID of that
 * connection. Under the domain's lock.
 */
static void
qp_leave_peer(const struct rsoft_qp *qp)
{
	const uint32_t num = qp->conn.remote.qp_num;
	struct rsoft_qp *peer;
	uint32_t i;

	for (i = 0; i < RMEM_MAX_DEVS; i++) {
		if (rsoft_domain->dev[i] == NULL)
			continue;
		peer = rsoft_domain->dev[i]->qps[num & rsoft_domain->dev[i]->qp_mask];
		if (peer != NULL && __atomic_load_n(&peer->peer, __ATOMIC_RELAXED) == qp)
			__atomic_store_n(&peer->peer, NULL, __ATOMIC_RELEASE);
	}
}

/* Completions of a QP are not delayed any more. The QP completes nothing from here on. */
static void
qp_drain_chaos(const struct rsoft_qp *qp)
{
	struct rsoft_cq *send_cq, *recv_cq;

	if (qp->dev->chaos == NULL || qp->xrcd != 0)
		return;
	send_cq = rsoft_cq_of(qp->qp.send_cq);
	recv_cq = rsoft_cq_of(qp->qp.recv_cq);
	rsoft_chaos_cq_drain(send_cq->chaos, __atomic_load_n(&send_cq->prod, __ATOMIC_ACQUIRE));
	rsoft_chaos_cq_drain(recv_cq->chaos, __atomic_load_n(&recv_cq->prod, __ATOMIC_ACQUIRE));
}

/*
 * Move a QP to RESET, and wait until no thread uses it as a peer; is_dying also removes it from the
 * table.
 */
static void
qp_quiesce(struct rsoft_qp *qp, bool is_dying)
{
	struct rsoft_dev *dev = qp->dev;
	struct rmem_qp_addr remote;

	rte_ticketlock_lock(&qp->ctl_lock);
	rsoft_lock(&rsoft_domain->lock);
	remote = qp->conn.remote;
	__atomic_store_n(&qp->state, RMEM_QPS_RESET, __ATOMIC_SEQ_CST);
	qp_leave_peer(qp);
	__atomic_store_n(&qp->peer, NULL, __ATOMIC_RELEASE);
	memset(&qp->conn.remote, 0, sizeof(qp->conn.remote));
	memset(&qp->set, 0, sizeof(qp->set));
	qp->gid_slot = qp->pkey_slot = 0;
	__atomic_store_n(&qp->qkey, 0, __ATOMIC_RELAXED);
	if (is_dying)
		__atomic_store_n(&dev->qps[qp->qp.qp_num & dev->qp_mask], NULL, __ATOMIC_RELEASE);
	rte_ticketlock_unlock(&rsoft_domain->lock);
	rsoft_grace_wait();
	rwire_qp_stop(qp);
	rsoft_engine_lock_qp(qp);
	rsoft_sq_leave_pending(qp);
	rsoft_req_end_send(qp, &remote);
	rsoft_sq_drop(qp);
	rsoft_engine_unlock_qp(qp);
	rwire_qp_free(qp);
	qp->is_queued = dev->nb_engines != 0;
	qp->psn = rsoft_random() & 0xffffff;
	rsoft_inline_drop(qp);
	qp_drain_chaos(qp);
	qp_set_access(qp, qp->conf_access);
	qp->rq.is_established = false;
	/* A poll may have found the QP by a message that has been cancelled since. */
	if (is_dying && qp->inline_recv != RSOFT_INLINE_NONE)
		rsoft_grace_wait();
	rte_ticketlock_unlock(&qp->ctl_lock);
}

int
rsoft_qp_reset(struct rmem_qp *base)
{
	qp_quiesce(qp_of(base), false);
	return 0;
}

int
rsoft_qp_destroy(struct rmem_qp *base)
{
	struct rsoft_qp *qp = qp_of(base);
	struct rsoft_dev *dev = qp->dev;

	if (qp->nb_groups != 0) {
		RSOFT_LOG(ERR, "QP 0x%06x%s: in use: attached to %u multicast groups", base->qp_num,
				RSOFT_QP_NAME(base), qp->nb_groups);
		return -EBUSY;
	}
	if (rsoft_has_profile(dev) && rsoft_mw_is_bound_by(qp)) {
		RSOFT_LOG(ERR, "QP 0x%06x%s: in use: a type 2 window is bound on it (IBTA 11.2.5.4)",
				base->qp_num, RSOFT_QP_NAME(base));
		return -EBUSY;
	}
	rsoft_lock(&rsoft_domain->lock);
	LIST_INSERT_HEAD(&dev->dying_qps, qp, dying);
	rte_ticketlock_unlock(&rsoft_domain->lock);
	rsoft_engine_remove_qp(qp);
	qp_quiesce(qp, true);
	if (qp->xrcd == 0) {
		rsoft_cq_detach(rsoft_cq_of(base->send_cq));
		rsoft_cq_detach(rsoft_cq_of(base->recv_cq));
	}
	rsoft_lock(&rsoft_domain->lock);
	rsoft_stats_add(&dev->stats_destroyed, qp);
	LIST_REMOVE(qp, dying);
	if (base->qp_num != RSOFT_GSI_QP)
		rsoft_ids_put(&dev->qp_ids, (base->qp_num & dev->qp_mask) - RSOFT_FIRST_QP + 1);
	dev->nb_qp--;
	rte_ticketlock_unlock(&rsoft_domain->lock);
	rsoft_chaos_qp_fini(qp->chaos);
	rte_free(qp->rq.ring);
	rsoft_sq_fini(&qp->sq);
	return 0;
}
