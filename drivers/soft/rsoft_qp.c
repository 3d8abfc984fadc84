/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Queue pairs; see rsoft_qp.h.
 *
 * A life of a QP is from its connect to its reset. Invariant: receives and requests of one life are
 * flushed or dropped in that life only. Whatever flushes is ordered against the next connect:
 * - an lcore that executes requests is inside (rsoft_grace.h), and a reset stores RESET first and
 *   then waits for it;
 * - rmem_qp_set_error() has ctl_lock, which reset and connect take;
 * - rmem_post_recv() flushes in the thread that posts, which does not post during a reset or a
 *   connect (rmem_qp_reset()).
 * Two resets, or a reset and a connect, exclude each other by ctl_lock too.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_malloc.h>

#include "rsoft_addr.h"
#include "rsoft_cq.h"
#include "rsoft_engine.h"
#include "rsoft_grace.h"
#include "rsoft_ids.h"
#include "rsoft_inline.h"
#include "rsoft_mw.h"
#include "rsoft_profile.h"
#include "rsoft_qp.h"
#include "rsoft_rq.h"
#include "rsoft_sq.h"
#include "rsoft_stats.h"
#include "wire/rwire.h"

static struct rsoft_qp *
qp_of(struct rmem_qp *qp)
{
	return (struct rsoft_qp *)qp;
}

/* Give the QP a number and a place in its device's table. */
static int
qp_enter(struct rsoft_qp *qp)
{
	struct rsoft_dev *dev = qp->dev;
	uint32_t index;

	rte_ticketlock_lock(&rsoft_domain->lock);
	index = rsoft_ids_get(&dev->qp_ids);
	if (index != 0) {
		/* Not the number of the QP that had the index before. */
		dev->qp_generation += dev->qp_mask + 1;
		qp->serial = dev->qp_generation | index;
		qp->qp.qp_num = (uint32_t)qp->serial & 0xffffff;
		__atomic_store_n(&dev->qps[index], qp, __ATOMIC_RELEASE);
		dev->nb_qp++;
	}
	rte_ticketlock_unlock(&rsoft_domain->lock);
	if (index == 0) {
		RSOFT_LOG(ERR, "QP: all entries are in use (max_qp=%" PRIu64 ")", dev->args.max_qp);
		return -ENOSPC;
	}
	return 0;
}

/* As mlx5's MLX5_SCATTER_TO_CQE: on, unless the variable is 0 or the QP disables it. */
static bool
qp_wants_inline_recv(const struct rmem_qp_conf *conf)
{
	const char *env = getenv("RMEM_SCATTER_TO_CQE");

	if (env != NULL && strcmp(env, "0") == 0)
		return false;
	return conf->max_recv_wr != 0 && (conf->flags & RMEM_QP_NO_INLINE_RECV) == 0;
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
	qp->access = conf->access;
	qp->pd = base->pd->handle;
	qp->sig_all = (conf->flags & RMEM_QP_SIG_ALL) != 0;
	qp->limits.capa = rsoft_profile_of(dev)->capa;
	qp->limits.max_send_sge = conf->max_send_sge;
	qp->limits.max_inline_data = conf->max_inline_data;
	qp->max_recv_sge = conf->max_recv_sge;
	qp->max_msg_size = rsoft_profile_of(dev)->max_msg_size;
	qp->is_inline_recv = (rsoft_profile_of(dev)->capa & RMEM_DEV_CAPA_INLINE_RECV) != 0 &&
			qp_wants_inline_recv(conf);
	qp->is_queued = dev->nb_engines != 0;
	qp->psn = rsoft_random() & 0xffffff;
	ret = rsoft_sq_init(&qp->sq, conf, (int)(int64_t)dev->args.socket);
	if (ret != 0)
		goto fail;
	ret = rsoft_rq_init(&qp->rq, conf, (int)(int64_t)dev->args.socket);
	if (ret != 0)
		goto fini_sq;
	ret = qp_enter(qp);
	if (ret != 0)
		goto free_rq;
	rsoft_cq_attach(rsoft_cq_of(base->send_cq));
	rsoft_cq_attach(rsoft_cq_of(base->recv_cq));
	if (qp->is_inline_recv)
		rsoft_cq_add_messages(rsoft_cq_of(base->recv_cq));
	rsoft_engine_add_qp(qp);
	return 0;

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

int
rsoft_qp_connect(struct rmem_qp *base, const struct rmem_qp_conn *conn)
{
	struct rsoft_qp *qp = qp_of(base);
	int ret = 0;

	rte_ticketlock_lock(&qp->ctl_lock);
	rte_ticketlock_lock(&rsoft_domain->lock);
	if (qp->state != RMEM_QPS_RESET) {
		ret = -EBUSY;
	} else if (conn->remote.qp_num >> 24 != 0) {
		ret = -EINVAL;
	} else if (rsoft_addr_dev(&conn->remote) == NULL ||
			(qp->dev->args.loop != 0 && qp->dev->wire != NULL)) {
		ret = rwire_qp_connect(qp, conn);
	}
	if (ret == 0) {
		qp->conn = *conn;
		qp->is_queued = qp->dev->nb_engines != 0 || qp->wire != NULL;
		__atomic_store_n(&qp->state, RMEM_QPS_RTS, __ATOMIC_RELEASE);
	}
	rte_ticketlock_unlock(&rsoft_domain->lock);
	rte_ticketlock_unlock(&qp->ctl_lock);
	if (ret == -EBUSY)
		RSOFT_LOG(ERR, "QP 0x%06x: not connected: not in RESET", base->qp_num);
	if (ret == -EINVAL)
		RSOFT_LOG(ERR, "QP 0x%06x: not connected: QP number 0x%x over 0xffffff, or GID not of a soft device of this process and not reachable with ip=",
				base->qp_num, conn->remote.qp_num);
	return ret;
}

int
rsoft_qp_query(struct rmem_qp *base, struct rmem_qp_attr *attr)
{
	struct rsoft_qp *qp = qp_of(base);

	memset(attr, 0, sizeof(*attr));
	rte_ticketlock_lock(&rsoft_domain->lock);
	attr->state = __atomic_load_n(&qp->state, __ATOMIC_RELAXED);
	attr->remote = qp->conn.remote;
	rte_ticketlock_unlock(&rsoft_domain->lock);
	attr->access = __atomic_load_n(&qp->access, __ATOMIC_RELAXED) & RMEM_ACCESS_REMOTE;
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

	rte_ticketlock_lock(&qp->ctl_lock);
	is_reset = __atomic_load_n(&qp->state, __ATOMIC_ACQUIRE) == RMEM_QPS_RESET;
	if (!is_reset) {
		rsoft_rq_fail(qp);
		rsoft_grace_wait();
	}
	rte_ticketlock_unlock(&qp->ctl_lock);
	if (is_reset)
		RSOFT_LOG(ERR, "QP 0x%06x: wrong state: RESET", base->qp_num);
	return is_reset ? -EBUSY : 0;
}

/* To RESET, when no thread uses the QP as a peer any more; removed from the table if it dies. */
static void
qp_quiesce(struct rsoft_qp *qp, bool is_dying)
{
	struct rsoft_dev *dev = qp->dev;
	struct rsoft_qp *peer;

	rte_ticketlock_lock(&qp->ctl_lock);
	rte_ticketlock_lock(&rsoft_domain->lock);
	__atomic_store_n(&qp->state, RMEM_QPS_RESET, __ATOMIC_SEQ_CST);
	peer = rsoft_addr_qp(&qp->conn.remote);
	if (peer != NULL && __atomic_load_n(&peer->peer, __ATOMIC_RELAXED) == qp)
		__atomic_store_n(&peer->peer, NULL, __ATOMIC_RELEASE);
	__atomic_store_n(&qp->peer, NULL, __ATOMIC_RELEASE);
	memset(&qp->conn.remote, 0, sizeof(qp->conn.remote));
	if (is_dying)
		__atomic_store_n(&dev->qps[qp->qp.qp_num & dev->qp_mask], NULL, __ATOMIC_RELEASE);
	rte_ticketlock_unlock(&rsoft_domain->lock);
	rsoft_grace_wait();
	rwire_qp_stop(qp);
	rsoft_engine_lock_qp(qp);
	rsoft_sq_drop(qp);
	rsoft_engine_unlock_qp(qp);
	rwire_qp_free(qp);
	qp->is_queued = dev->nb_engines != 0;
	qp->psn = rsoft_random() & 0xffffff;
	rsoft_inline_drop(qp);
	/* A poll may have found the QP by a message that is cancelled now. */
	if (is_dying && qp->is_inline_recv)
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

	if (rsoft_has_profile(dev) && rsoft_mw_is_bound_by(qp)) {
		RSOFT_LOG(ERR, "QP 0x%06x: in use: a type 2 window is bound on it (IBTA 11.2.5.4)",
				base->qp_num);
		return -EBUSY;
	}
	rsoft_engine_remove_qp(qp);
	qp_quiesce(qp, true);
	rsoft_cq_detach(rsoft_cq_of(base->send_cq));
	rsoft_cq_detach(rsoft_cq_of(base->recv_cq));
	rte_ticketlock_lock(&rsoft_domain->lock);
	rsoft_stats_add(&dev->stats_gone, qp);
	rsoft_ids_put(&dev->qp_ids, base->qp_num & dev->qp_mask);
	dev->nb_qp--;
	rte_ticketlock_unlock(&rsoft_domain->lock);
	rte_free(qp->rq.ring);
	rsoft_sq_fini(&qp->sq);
	return 0;
}
