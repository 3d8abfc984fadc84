/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Shared receive queues. SRQs for tag matching are refused. */

#include <errno.h>

#include "ribv.h"

static struct ibv_srq *
srq_create(struct ibv_pd *pd, const struct ibv_srq_attr *attr, void *srq_context,
		const struct ibv_srq_init_attr_ex *xrc)
{
	struct rmem_srq_conf conf = {.max_wr = attr->max_wr, .max_sge = attr->max_sge};
	struct rmem_srq_ext ext = {0};
	struct ribv_srq *srq = ribv_new();
	int ret;

	if (srq == NULL)
		return NULL;
	conf.async_channel = ribv_async_of(pd->context);
	conf.context = srq;
	if (xrc != NULL) {
		ext.xrcd = ((struct ribv_xrcd *)xrc->xrcd)->xrcd;
		ext.cq = ((struct ribv_cq *)xrc->cq)->cq;
		conf.ext = &ext;
	}
	ret = rmem_srq_create(((struct ribv_pd *)pd)->pd, &conf, &srq->srq);
	if (ret != 0) {
		ribv_leave(srq);
		return ribv_fail(ribv_errno(ret));
	}
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	srq->pd = (struct ribv_pd *)pd;
	srq->ibv.context = pd->context;
	srq->ibv.srq_context = srq_context;
	srq->ibv.pd = pd;
	if (xrc != NULL) {
		srq->cq = (struct ribv_cq *)xrc->cq;
		__atomic_fetch_add(&srq->cq->refs, 1, __ATOMIC_ACQ_REL);
	}
	srq->ibv.handle = ribv_enter(srq, RIBV_SRQ);
	return &srq->ibv;
}

struct ibv_srq *
ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	if (ribv_is_real(pd))
		return RIBV_NEXT(ibv_create_srq)(pd, init);
	if (!ribv_is_pd(pd))
		return ribv_fail(ENOENT);
	if (init == NULL)
		return ribv_fail(EINVAL);
	return srq_create(pd, &init->attr, init->srq_context, NULL);
}

struct ibv_srq *
ribv_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *init)
{
	const uint32_t xrc = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	const uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | xrc;
	bool is_xrc;

	if (!ribv_is_context(context))
		return ribv_fail(ENOENT);
	if (init == NULL || (init->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0)
		return ribv_fail(EINVAL);
	if ((init->comp_mask & ~known) != 0)
		return ribv_fail(EOPNOTSUPP);
	is_xrc = (init->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0 && init->srq_type == IBV_SRQT_XRC;
	if (!is_xrc && (init->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0 &&
			init->srq_type != IBV_SRQT_BASIC)
		return ribv_fail(EOPNOTSUPP);
	if (!ribv_is_pd(init->pd))
		return ribv_fail(ENOENT);
	if (init->pd->context != context)
		return ribv_fail(EINVAL);
	if (is_xrc && (init->comp_mask & xrc) != xrc)
		return ribv_fail(EINVAL);
	if (is_xrc && (!ribv_is_xrcd(init->xrcd) || !ribv_is_cq(init->cq)))
		return ribv_fail(ENOENT);
	if (is_xrc && (init->xrcd->context != context || init->cq->context != context))
		return ribv_fail(EINVAL);
	return srq_create(init->pd, &init->attr, init->srq_context, is_xrc ? init : NULL);
}

int
ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct rmem_srq_attr own = {0};

	if (ribv_is_real(srq))
		return RIBV_NEXT(ibv_modify_srq)(srq, attr, mask);
	if (!ribv_is_srq(srq))
		return ENOENT;
	if (attr == NULL)
		return EINVAL;
	own.max_wr = attr->max_wr;
	own.srq_limit = attr->srq_limit;
	return ribv_errno(rmem_srq_modify(((struct ribv_srq *)srq)->srq, &own, (uint32_t)mask));
}

int
ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct rmem_srq_attr own;
	int ret;

	if (ribv_is_real(srq))
		return RIBV_NEXT(ibv_query_srq)(srq, attr);
	if (!ribv_is_srq(srq))
		return ENOENT;
	if (attr == NULL)
		return EINVAL;
	ret = rmem_srq_query(((struct ribv_srq *)srq)->srq, &own);
	if (ret != 0)
		return ribv_errno(ret);
	attr->max_wr = own.max_wr;
	attr->max_sge = own.max_sge;
	attr->srq_limit = own.srq_limit;
	return 0;
}

/* Destroy an SRQ without QPs: only events that will be acknowledged still refer to it. */
static int
destroy_acked(struct ribv_srq *srq)
{
	int ret;

	pthread_mutex_lock(&srq->ibv.mutex);
	while ((ret = rmem_srq_destroy(srq->srq)) == -EBUSY &&
			__atomic_load_n(&srq->refs, __ATOMIC_ACQUIRE) == 0)
		ribv_sanitize_wait(&srq->ibv.cond, &srq->ibv.mutex, "SRQ");
	pthread_mutex_unlock(&srq->ibv.mutex);
	return ret;
}

int
ibv_destroy_srq(struct ibv_srq *srq)
{
	int ret;

	if (ribv_is_real(srq))
		return RIBV_NEXT(ibv_destroy_srq)(srq);
	if (!ribv_is_srq(srq))
		return ribv_leave_inherited(srq, RIBV_SRQ);
	ret = destroy_acked((struct ribv_srq *)srq);
	if (ret != 0)
		return -ret;
	if (((struct ribv_srq *)srq)->cq != NULL)
		__atomic_fetch_sub(&((struct ribv_srq *)srq)->cq->refs, 1, __ATOMIC_ACQ_REL);
	ribv_leave(srq);
	return 0;
}

/* No lock: the class allows several threads to post to an SRQ. */
int
ribv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct rmem_recv_wr own;
	int ret = 1;

	if (bad_wr == NULL)
		return ribv_post_fail(EINVAL);
	if (!ribv_may_post_srq(srq))
		return ribv_recv_result(bad_wr, wr, EINVAL);
	for (; wr != NULL && ret == 1; wr = ret == 1 ? wr->next : wr) {
		ret = ribv_recv_wr(wr, &own);
		if (ret == 0)
			ret = rmem_srq_post_recv(((struct ribv_srq *)srq)->srq, &own, 1);
	}
	return ribv_recv_result(bad_wr, wr, ribv_post_errno(ret));
}
