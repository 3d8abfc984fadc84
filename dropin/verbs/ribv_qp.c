/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Queue pairs: create, modify, query, destroy.
 *
 * Invariant: a QP is counted in its CQs and its SRQ from before the QP of the class is created
 * until after it is destroyed, so these can't be destroyed in between.
 * Invariant: a QP is in the list of its number while its QP of the class exists and the program
 * knows it.
 * Invariant: lock order: the lock of this file, then the lock of a CQ; send_lock, then recv_lock.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_branch_prediction.h>

#include "ribv.h"

#define NB_LISTS 1024

/* Held while lists are searched or changed. Held also from the destruction of a QP until its
 * completions are removed, so that no new QP gets its number before. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* QPs that are not destroyed, hashed by number. */
static LIST_HEAD(ribv_qps, ribv_qp) qps[NB_LISTS];

/* Add n to the reference counts of the QP's CQs and SRQ. */
static void
count_queues(const struct ibv_qp_init_attr *init, int n)
{
	if (init->send_cq != NULL)
		__atomic_fetch_add(&((struct ribv_cq *)init->send_cq)->refs, (uint32_t)n,
				__ATOMIC_ACQ_REL);
	if (init->recv_cq != NULL)
		__atomic_fetch_add(&((struct ribv_cq *)init->recv_cq)->refs, (uint32_t)n,
				__ATOMIC_ACQ_REL);
	if (init->srq != NULL)
		__atomic_fetch_add(&((struct ribv_srq *)init->srq)->refs, (uint32_t)n,
				__ATOMIC_ACQ_REL);
}

/*
 * Inline data that a QP accepts: at least the space of its SGEs, as on devices that store it there.
 * Programs such as rdma_xclient rely on it.
 */
static uint32_t
inline_of(const struct ibv_pd *pd, const struct ibv_qp_cap *cap)
{
	struct rmem_dev_info info;

	if (rmem_dev_info_get(ribv_dev_of(((const struct ribv_pd *)pd)->context), &info) != 0)
		return cap->max_inline_data;
	return RTE_MAX(cap->max_inline_data,
			(uint32_t)RTE_MIN(cap->max_send_sge * sizeof(struct ibv_sge),
					info.max_inline_data));
}

static int
check_init(const struct ibv_context *context, const struct ibv_qp_init_attr *init)
{
	switch ((int)init->qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
	case IBV_QPT_XRC_SEND:
		break;
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_DRIVER:
		return -EOPNOTSUPP;
	default:
		return -EINVAL;
	}
	if (init->send_cq == NULL || init->recv_cq == NULL)
		return -EINVAL;
	if (!ribv_is_cq(init->send_cq) || !ribv_is_cq(init->recv_cq))
		return -ENOENT;
	if (init->srq != NULL && !ribv_is_srq(init->srq))
		return -ENOENT;
	if (init->send_cq->context != context || init->recv_cq->context != context ||
			(init->srq != NULL && init->srq->context != context))
		return -EINVAL;
	return 0;
}

static int
qp_make(struct ribv_qp *qp, struct ibv_pd *pd, const struct ibv_qp_init_attr *init)
{
	struct rmem_qp_conf conf = {.max_send_wr = init->cap.max_send_wr,
			.max_recv_wr = init->cap.max_recv_wr,
			.max_send_sge = (uint16_t)RTE_MIN(init->cap.max_send_sge, UINT16_MAX),
			.max_recv_sge = (uint16_t)RTE_MIN(init->cap.max_recv_sge, UINT16_MAX),
			.max_inline_data = inline_of(pd, &init->cap),
			.type = (uint16_t)init->qp_type,
			.flags = RMEM_QP_LATE_ERRORS | (init->sq_sig_all ? RMEM_QP_SIG_ALL : 0)};
	int ret;

	ret = check_init(pd->context, init);
	if (ret != 0)
		return ret;
	conf.send_cq = ((struct ribv_cq *)init->send_cq)->cq;
	conf.recv_cq = ((struct ribv_cq *)init->recv_cq)->cq;
	if (init->srq != NULL)
		conf.srq = ((struct ribv_srq *)init->srq)->srq;
	conf.async_channel = ribv_async_of(pd->context);
	conf.context = qp;
	count_queues(init, 1);
	pthread_mutex_lock(&lock);
	ret = rmem_qp_create(((struct ribv_pd *)pd)->pd, &conf, &qp->qp);
	pthread_mutex_unlock(&lock);
	if (ret != 0)
		count_queues(init, -1);
	return ret;
}

/* Add a new QP to the list; init has the program's parameters. */
static struct ibv_qp *
qp_enter(struct ribv_qp *qp, struct ibv_context *context, const struct ibv_qp_init_attr *init)
{
	pthread_mutex_init(&qp->ibv.mutex, NULL);
	pthread_cond_init(&qp->ibv.cond, NULL);
	qp->init = *init;
	qp->context = context;
	qp->is_ud = init->qp_type == IBV_QPT_UD;
	qp->is_xrc = init->qp_type == IBV_QPT_XRC_SEND;
	qp->send_cq = (struct ribv_cq *)init->send_cq;
	qp->recv_cq = (struct ribv_cq *)init->recv_cq;
	qp->ibv.context = context;
	qp->ibv.qp_context = init->qp_context;
	qp->ibv.pd = (struct ibv_pd *)qp->pd;
	qp->ibv.send_cq = init->send_cq;
	qp->ibv.recv_cq = init->recv_cq;
	qp->ibv.srq = init->srq;
	qp->ibv.qp_num = qp->qp->qp_num;
	qp->ibv.state = IBV_QPS_RESET;
	qp->ibv.qp_type = init->qp_type;
	ribv_watch_begin(qp);
	qp->ibv.handle = ribv_enter(qp, RIBV_QP);
	pthread_mutex_lock(&lock);
	LIST_INSERT_HEAD(&qps[qp->ibv.qp_num % NB_LISTS], qp, next);
	pthread_mutex_unlock(&lock);
	return &qp->ibv;
}

/* Create an XRC_RECV QP, or a handle of one of this process; -EAGAIN: it has none of the number. */
static int
xrc_recv_own(const struct ibv_xrcd *ibv, uint32_t qp_num, struct rmem_qp **own)
{
	const struct rmem_qp_ext ext = {.xrcd = ((const struct ribv_xrcd *)ibv)->xrcd};
	const struct rmem_qp_conf conf = {.type = RMEM_QPT_XRC_RECV,
			.async_channel = ribv_async_of(ibv->context),
			.ext = &ext};
	const struct rmem_dev *dev = ribv_dev_of(ibv->context);
	const struct ribv_qp *qp;
	int ret = -EAGAIN;

	pthread_mutex_lock(&lock);
	LIST_FOREACH(qp, &qps[qp_num % NB_LISTS], next) {
		if (qp->qp->qp_num == qp_num && qp->ibv.qp_type == IBV_QPT_XRC_RECV &&
				!qp->is_opened && ribv_dev_of(qp->context) == dev)
			break;
	}
	if (qp_num == 0)
		ret = rmem_qp_create(NULL, &conf, own);
	else if (qp != NULL)
		ret = rmem_qp_get(ext.xrcd, qp_num, own);
	pthread_mutex_unlock(&lock);
	return ret;
}

/*
 * Create a handle of an XRC_RECV QP; a new QP if qp_num is 0. Events name no handle: that which
 * created the QP may be destroyed before the others, and one of another process's QP may have
 * events before it is entered.
 */
static struct ibv_qp *
xrc_recv_enter(const struct ibv_xrcd *ibv, uint32_t qp_num, void *context)
{
	const struct ibv_qp_init_attr init = {.qp_context = context, .qp_type = IBV_QPT_XRC_RECV};
	struct rmem_qp_shared_conf conf = {.qp_num = qp_num};
	struct ribv_qp *qp = ribv_new();
	int ret;

	if (qp == NULL)
		return NULL;
	ret = xrc_recv_own(ibv, qp_num, &qp->qp);
	if (ret == -EAGAIN) {
		conf.async_channel = ribv_async_of(ibv->context);
		qp->is_opened = true;
		ret = rmem_qp_get_shared(((const struct ribv_xrcd *)ibv)->xrcd, &conf, &qp->qp);
	}
	if (ret == 0)
		return qp_enter(qp, ibv->context, &init);
	ribv_leave(qp);
	return ribv_fail(ret == -ENOENT ? EINVAL : ribv_errno(ret));
}

struct ibv_qp *
ribv_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	const uint32_t needed =
			IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	void *qp_context;

	if (!ribv_is_context(context))
		return ribv_fail(ENOENT);
	if (attr == NULL || (attr->comp_mask & ~IBV_QP_OPEN_ATTR_CONTEXT) != needed ||
			attr->qp_type != IBV_QPT_XRC_RECV || attr->qp_num == 0)
		return ribv_fail(EINVAL);
	if (!ribv_is_xrcd(attr->xrcd))
		return ribv_fail(ENOENT);
	if (attr->xrcd->context != context)
		return ribv_fail(EINVAL);
	qp_context = (attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT) != 0 ? attr->qp_context : NULL;
	return xrc_recv_enter(attr->xrcd, attr->qp_num, qp_context);
}

static struct ibv_qp *
qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr plain;
	struct ribv_qp *qp;
	int ret;

	if (!ribv_is_pd(pd))
		return ribv_fail(ENOENT);
	if (init == NULL)
		return ribv_fail(EINVAL);
	qp = ribv_new();
	if (qp == NULL)
		return NULL;
	plain = *init;
	/* An XRC_SEND QP has no receives. */
	if (init->qp_type == IBV_QPT_XRC_SEND) {
		plain.recv_cq = init->send_cq;
		plain.srq = NULL;
	}
	ret = qp_make(qp, pd, &plain);
	if (ret != 0) {
		ribv_leave(qp);
		return ribv_fail(ribv_errno(ret));
	}
	init->cap.max_inline_data = inline_of(pd, &init->cap);
	plain.cap = init->cap;
	if (init->srq != NULL || init->qp_type == IBV_QPT_XRC_SEND)
		plain.cap.max_recv_wr = plain.cap.max_recv_sge = 0;
	qp->pd = (struct ribv_pd *)pd;
	return qp_enter(qp, pd->context, &plain);
}

/* Create a QP of a real device. Its kernel would mistake handles of rmem for its own. */
static struct ibv_qp *
create_real(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	if (init != NULL &&
			(ribv_is_own(init->send_cq) || ribv_is_own(init->recv_cq) ||
					ribv_is_own(init->srq)))
		return ribv_fail(EINVAL);
	return RIBV_NEXT(ibv_create_qp)(pd, init);
}

struct ibv_qp *
ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	if (ribv_is_real(pd))
		return create_real(pd, init);
	return qp_create(pd, init);
}

/* rdma_create_qp_ex(3) adds the PD of its ID, which is ignored, as by the kernel. */
static struct ibv_qp *
create_xrc_recv(struct ibv_context *context, const struct ibv_qp_init_attr_ex *init)
{
	if ((init->comp_mask & ~IBV_QP_INIT_ATTR_PD) != IBV_QP_INIT_ATTR_XRCD)
		return ribv_fail(EINVAL);
	if (!ribv_is_xrcd(init->xrcd))
		return ribv_fail(ENOENT);
	if (init->xrcd->context != context)
		return ribv_fail(EINVAL);
	return xrc_recv_enter(init->xrcd, 0, init->qp_context);
}

struct ibv_qp *
ribv_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *init)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
			IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	struct ibv_qp_init_attr plain;
	struct ibv_qp *qp;
	int err;

	if (!ribv_is_context(context))
		return ribv_fail(ENOENT);
	if (init != NULL && init->qp_type == IBV_QPT_XRC_RECV)
		return create_xrc_recv(context, init);
	if (init == NULL || (init->comp_mask & IBV_QP_INIT_ATTR_PD) == 0)
		return ribv_fail(EINVAL);
	if ((init->comp_mask & ~known) != 0)
		return ribv_fail(EOPNOTSUPP);
	if ((init->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && init->create_flags != 0)
		return ribv_fail(EOPNOTSUPP);
	if (ribv_is_pd(init->pd) && init->pd->context != context)
		return ribv_fail(EINVAL);
	/* The extended struct begins with the plain struct. */
	memcpy(&plain, init, sizeof(plain));
	/* A request of ibv_wr_* has its inline data, or the value of an ATOMIC_WRITE, in an SGE. */
	if ((init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0)
		plain.cap.max_send_sge = RTE_MAX(plain.cap.max_send_sge, 1u);
	qp = qp_create(init->pd, &plain);
	if (qp != NULL)
		init->cap = plain.cap;
	if (qp == NULL || (init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) == 0)
		return qp;
	err = ribv_batch_create((struct ribv_qp *)qp, init->send_ops_flags);
	if (err == 0)
		return qp;
	ibv_destroy_qp(qp);
	return ribv_fail(err);
}

uint32_t
ribv_flush_rights(const struct rmem_dev *dev)
{
	struct rmem_dev_info info;

	return rmem_dev_info_get(dev, &info) == 0 ? info.access & RMEM_ACCESS_FLUSH : 0;
}

static void
attr_of_ibv(const struct ribv_qp *qp, const struct ibv_qp_attr *ibv, int mask,
		struct rmem_qp_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->state = ibv->qp_state;
	attr->cur_state = ibv->cur_qp_state;
	attr->access = ibv->qp_access_flags &
			(RMEM_ACCESS_REMOTE | ribv_flush_rights(ribv_dev_of(qp->context)));
	attr->path_mtu = ibv->path_mtu;
	attr->dest_qp_num = ibv->dest_qp_num;
	attr->rq_psn = ibv->rq_psn;
	attr->sq_psn = ibv->sq_psn;
	attr->qkey = ibv->qkey;
	attr->rate_limit = ibv->rate_limit;
	attr->pkey_index = ibv->pkey_index;
	attr->port_num = ibv->port_num;
	attr->timeout = ibv->timeout;
	attr->retry_cnt = ibv->retry_cnt;
	attr->rnr_retry = ibv->rnr_retry;
	attr->min_rnr_timer = ibv->min_rnr_timer;
	attr->max_rd_atomic = ibv->max_rd_atomic;
	attr->max_dest_rd_atomic = ibv->max_dest_rd_atomic;
	attr->en_sqd_async_notify = ibv->en_sqd_async_notify;
	if ((mask & IBV_QP_AV) != 0)
		ribv_ah_attr(&ibv->ah_attr, &attr->ah);
}

/* Remove the completions of a QP from its CQs. */
static void
forget(struct ribv_cq *send, struct ribv_cq *recv, uint32_t qp_num)
{
	if (send != NULL)
		ribv_cq_forget(send, qp_num);
	if (recv != NULL && recv != send)
		ribv_cq_forget(recv, qp_num);
}

/* Attributes of verbs that the class does not have. */
#define LACKING (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_CAP)

/*
 * Attributes that the kernel ignores for XRC and perftest sets: they belong to the half that the QP
 * does not have.
 */
static int
lacking_of_xrc(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_XRC_SEND:
		return IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	case IBV_QPT_XRC_RECV:
		return IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
	default:
		return 0;
	}
}

/*
 * Check the attributes that the class does not have, and remove the ignored ones from the mask; 0
 * or an errno. As the kernel: alternate paths only on InfiniBand, EINVAL on RoCE.
 */
static int
attr_check(const struct ribv_qp *qp, const struct ibv_qp_attr *attr, int *mask)
{
	bool is_roce = ribv_roce_header(ribv_context_of(qp->context)->dev) != 0;

	if ((*mask & (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)) != 0)
		return (*mask & IBV_QP_ALT_PATH) != 0 && is_roce ? EINVAL : EOPNOTSUPP;
	if ((*mask & LACKING) != 0)
		return EINVAL;
	*mask &= ~lacking_of_xrc(qp->ibv.qp_type);
	return (*mask & IBV_QP_RATE_LIMIT) != 0 && attr->rate_limit > RIBV_MAX_RATE ? EINVAL : 0;
}

int
ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
	struct ribv_qp *qp = (struct ribv_qp *)ibv;
	struct rmem_qp_attr own;
	int ret;

	if (ribv_is_real(ibv))
		return RIBV_NEXT(ibv_modify_qp)(ibv, attr, mask);
	if (!ribv_is_qp(ibv))
		return ENOENT;
	if (attr == NULL)
		return EINVAL;
	ret = attr_check(qp, attr, &mask);
	if (ret != 0)
		return ret;
	attr_of_ibv(qp, attr, mask, &own);
	/* Other threads of the program may post, which the class does not allow during a modify. */
	if (!qp->is_opened) {
		ribv_lock(&qp->send_lock);
		ribv_lock(&qp->recv_lock);
	}
	ret = rmem_qp_modify(qp->qp, &own, (uint32_t)mask);
	if (!qp->is_opened) {
		ribv_unlock(&qp->recv_lock);
		ribv_unlock(&qp->send_lock);
	}
	if (ret != 0)
		return ribv_errno(ret);
	if ((mask & IBV_QP_AV) != 0)
		qp->ah = attr->ah_attr;
	if ((mask & IBV_QP_ACCESS_FLAGS) != 0)
		qp->access = attr->qp_access_flags;
	if ((mask & IBV_QP_STATE) == 0)
		return 0;
	ibv->state = attr->qp_state;
	if (qp->watch != NULL)
		ribv_watch_state(qp->watch, attr->qp_state);
	if (attr->qp_state == IBV_QPS_RESET)
		forget(qp->send_cq, qp->recv_cq, qp->qp->qp_num);
	return 0;
}

int
ribv_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr)
{
	struct ibv_qp_attr own;

	if (!ribv_is_qp(qp))
		return ENOENT;
	if (attr == NULL || attr->comp_mask != 0)
		return EINVAL;
	memset(&own, 0, sizeof(own));
	own.rate_limit = attr->rate_limit;
	return ibv_modify_qp(qp, &own, IBV_QP_RATE_LIMIT);
}

int
ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	struct ribv_qp *qp = (struct ribv_qp *)ibv;
	struct rmem_qp_attr own;
	int ret;

	if (ribv_is_real(ibv))
		return RIBV_NEXT(ibv_query_qp)(ibv, attr, mask, init);
	if (!ribv_is_qp(ibv))
		return ENOENT;
	if (attr == NULL)
		return EINVAL;
	ret = rmem_qp_query(qp->qp, &own);
	if (ret != 0)
		return ribv_errno(ret);
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = attr->cur_qp_state = ibv->state = (enum ibv_qp_state)own.state;
	if (qp->watch != NULL && attr->qp_state == IBV_QPS_ERR)
		ribv_watch_state(qp->watch, IBV_QPS_ERR);
	attr->path_mtu = (enum ibv_mtu)own.path_mtu;
	attr->path_mig_state = IBV_MIG_MIGRATED;
	attr->rq_psn = own.rq_psn;
	attr->sq_psn = own.sq_psn;
	attr->qkey = own.qkey;
	attr->dest_qp_num = own.dest_qp_num;
	attr->qp_access_flags = qp->access;
	attr->cap = qp->init.cap;
	attr->ah_attr = qp->ah;
	/* Also as set by other handles. */
	if (qp->ibv.qp_type == IBV_QPT_XRC_RECV) {
		attr->qp_access_flags = own.access;
		ribv_ah_attr_back(&own.ah, &attr->ah_attr);
	}
	attr->pkey_index = own.pkey_index;
	attr->sq_draining = own.sq_draining;
	attr->max_rd_atomic = own.max_rd_atomic;
	attr->max_dest_rd_atomic = own.max_dest_rd_atomic;
	attr->min_rnr_timer = own.min_rnr_timer;
	attr->port_num = own.port_num;
	attr->timeout = own.timeout;
	attr->retry_cnt = own.retry_cnt;
	attr->rnr_retry = own.rnr_retry;
	attr->rate_limit = own.rate_limit;
	if (init != NULL)
		*init = qp->init;
	return 0;
}

struct ribv_qp *
ribv_qp_take_event(const struct ibv_context *context, const struct rmem_qp *own)
{
	struct ribv_qp *qp, *oldest = NULL;

	pthread_mutex_lock(&lock);
	LIST_FOREACH(qp, &qps[own->qp_num % NB_LISTS], next) {
		if (qp->qp == own &&
				(oldest == NULL || oldest->context != context ||
						qp->context == context))
			oldest = qp;
	}
	if (oldest != NULL)
		__atomic_fetch_add(&oldest->nb_events, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
	return oldest;
}

/* Destroy the QP of the class, and remove its completions. Under qp->ibv.mutex. */
static int
destroy(struct ribv_qp *qp)
{
	uint32_t qp_num;
	int ret = -EBUSY;

	pthread_mutex_lock(&lock);
	qp_num = qp->qp->qp_num;
	/* An event of a QP with several handles is acknowledged by the one that has it. */
	if (__atomic_load_n(&qp->nb_events, __ATOMIC_RELAXED) == qp->ibv.events_completed)
		ret = rmem_qp_destroy(qp->qp);
	if (ret == 0) {
		LIST_REMOVE(qp, next);
		forget(qp->send_cq, qp->recv_cq, qp_num);
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

/* Wait only for references: these are events, which will be acknowledged. A bound window also gives
 * -EBUSY, and holds no reference. */
static int
destroy_acked(struct ribv_qp *qp)
{
	int ret;

	pthread_mutex_lock(&qp->ibv.mutex);
	while ((ret = destroy(qp)) == -EBUSY &&
			__atomic_load_n(&qp->qp->obj.refs, __ATOMIC_ACQUIRE) != 0)
		ribv_sanitize_wait(&qp->ibv.cond, &qp->ibv.mutex, "QP");
	pthread_mutex_unlock(&qp->ibv.mutex);
	return ret;
}

int
ibv_destroy_qp(struct ibv_qp *qp)
{
	struct ribv_qp *own = (struct ribv_qp *)qp;
	int ret;

	if (ribv_is_real(qp))
		return RIBV_NEXT(ibv_destroy_qp)(qp);
	if (!ribv_is_qp(qp))
		return ribv_leave_inherited(qp, RIBV_QP);
	ret = destroy_acked(own);
	if (ret != 0)
		return -ret;
	count_queues(&own->init, -1);
	if (own->watch != NULL)
		ribv_watch_end(own->watch);
	free(own->batch);
	ribv_leave(qp);
	return 0;
}

bool
ribv_qp_has_wc(const struct rmem_dev *dev, uint32_t qp_num)
{
	const struct ribv_qp *qp;
	bool has_wc = false;

	if (!ribv_env_attach())
		return false;
	/* Don't wait: the holder may wait for a CQ whose lock another thread holds, which waits for
	 * a lock of the caller. */
	if (pthread_mutex_trylock(&lock) != 0)
		return true;
	LIST_FOREACH(qp, &qps[qp_num % NB_LISTS], next) {
		/* QPs of other processes may have numbers of this one's. */
		if (qp->qp->qp_num != qp_num || ribv_dev_of(qp->context) != dev ||
				qp->send_cq == NULL)
			continue;
		has_wc = ribv_cq_has_wc(qp->recv_cq) || ribv_cq_has_wc(qp->send_cq);
		break;
	}
	pthread_mutex_unlock(&lock);
	return has_wc;
}

/*
 * Report no enhancements, as providers without them do. Fails, because rdma_set_local_ece() of
 * librdmacm refuses an ECE without a vendor.
 */
int
ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (ribv_is_real(qp))
		return RIBV_NEXT(ibv_query_ece)(qp, ece);
	return ribv_is_qp(qp) ? EOPNOTSUPP : ENOENT;
}

int
ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (ribv_is_real(qp))
		return RIBV_NEXT(ibv_set_ece)(qp, ece);
	return ribv_is_qp(qp) ? EOPNOTSUPP : ENOENT;
}

/*
 * memcpy() or the kernel copies the bytes of a message, and neither guarantees an order. The 8
 * bytes of an atomic are one access. With the flag of verbs.h 56 the result is a bit mask: whole
 * message, and blocks of 128 bytes.
 */
int
ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	const uint32_t return_caps = 1u << 0, all_caps = 1u << 0 | 1u << 1;

	if (ribv_is_real(qp))
		return RIBV_NEXT(ibv_query_qp_data_in_order)(qp, op, flags);
	if (!ribv_is_qp(qp) || qp->qp_type != IBV_QPT_RC || (flags & ~return_caps) != 0)
		return 0;
	switch ((int)op) {
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
	case IBV_WR_ATOMIC_WRITE:
		return flags == 0 ? 1 : (int)all_caps;
	default:
		return 0;
	}
}
