/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Shared receive queues of the fake device. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <rte_common.h>

#include "fake.h"

struct fake_srq {
	struct ibv_srq ibv;
	struct ibv_srq_attr attr;
	struct fake_wqe recv[FAKE_QUEUE];
	uint32_t prod;
	uint32_t cons;
	/* Of XRC. */
	uint32_t number;
	const struct fake_xrcd *xrcd; /* NULL: not of XRC */
	struct ibv_cq *cq;
	struct fake_srq *next;
};

/* Those of one file are one domain. */
struct fake_xrcd {
	struct ibv_xrcd ibv;
	uint64_t inode; /* 0: no file */
	struct fake_xrcd *next;
};

static struct fake_srq *fake_xrc_srqs;
static struct fake_xrcd *fake_xrcds;

static struct fake_srq *fake_srq_last;

struct ibv_srq *
fake_last_srq(void)
{
	return &fake_srq_last->ibv;
}

struct ibv_srq *
ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	struct fake_srq *srq = fake_new("create_srq", sizeof(*srq));

	if (srq == NULL)
		return NULL;
	srq->ibv.context = pd->context;
	srq->ibv.pd = pd;
	srq->ibv.srq_context = init->srq_context;
	srq->attr = init->attr;
	fake_srq_last = srq;
	return &srq->ibv;
}

int
ibv_destroy_srq(struct ibv_srq *ibv)
{
	struct fake_srq **at = &fake_xrc_srqs;

	if (fake_keeps("destroy_srq", ibv))
		return errno;
	while (*at != NULL && &(*at)->ibv != ibv)
		at = &(*at)->next;
	if (*at != NULL) {
		struct fake_cq *cq = (struct fake_cq *)(*at)->cq;

		cq->cons = cq->prod; /* as mlx4 drops the completions of the SRQ */
		*at = (*at)->next;
	}
	return fake_delete(ibv);
}

int
ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
	struct fake_srq *srq = (struct fake_srq *)ibv;

	if (fake_fails("modify_srq"))
		return errno;
	if ((mask & IBV_SRQ_MAX_WR) != 0 && attr->max_wr < srq->prod - srq->cons)
		return EINVAL;
	if ((mask & IBV_SRQ_LIMIT) != 0 && attr->srq_limit > srq->attr.max_wr)
		return EINVAL;
	if ((mask & IBV_SRQ_MAX_WR) != 0)
		srq->attr.max_wr = attr->max_wr;
	if ((mask & IBV_SRQ_LIMIT) != 0)
		srq->attr.srq_limit = attr->srq_limit;
	return 0;
}

int
ibv_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	if (fake_fails("query_srq"))
		return errno;
	*attr = ((struct fake_srq *)ibv)->attr;
	return 0;
}

static int
fake_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_srq *srq = (struct fake_srq *)ibv;
	unsigned int n;

	for (n = 0; wr != NULL; wr = wr->next, n++) {
		*bad = wr;
		if (fake.post_errno != 0 && n == fake.post_take)
			return fake.post_errno;
		if (srq->prod - srq->cons >= srq->attr.max_wr)
			return ENOMEM;
		fake_fill_recv(&srq->recv[srq->prod++ % FAKE_QUEUE], wr);
	}
	return 0;
}

void
fake_srq_take(struct fake_qp *qp)
{
	struct fake_srq *srq = (struct fake_srq *)qp->init.srq;

	if (srq == NULL || srq->prod == srq->cons || qp->recv_prod != qp->recv_cons)
		return;
	qp->recv[qp->recv_prod++ % FAKE_QUEUE] = srq->recv[srq->cons++ % FAKE_QUEUE];
	if (srq->prod - srq->cons < srq->attr.srq_limit)
		srq->attr.srq_limit = 0;
}

static struct ibv_srq *
fake_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq_init_attr init = {.srq_context = attr->srq_context, .attr = attr->attr};
	struct ibv_srq *ibv = ibv_create_srq(attr->pd, &init);
	struct fake_srq *srq = (struct fake_srq *)ibv;
	static uint32_t last;

	RTE_SET_USED(context);
	if (srq == NULL)
		return NULL;
	srq->number = ++last;
	srq->xrcd = (struct fake_xrcd *)attr->xrcd;
	srq->cq = attr->cq;
	srq->next = fake_xrc_srqs;
	fake_xrc_srqs = srq;
	return ibv;
}

static int
fake_get_srq_num(struct ibv_srq *ibv, uint32_t *number)
{
	if (fake_fails("get_srq_num"))
		return errno;
	*number = ((struct fake_srq *)ibv)->number;
	return 0;
}

static struct ibv_xrcd *
fake_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	struct fake_xrcd *other, *xrcd = fake_new("open_xrcd", sizeof(*xrcd));
	struct stat st = {.st_ino = 0};
	bool is_known;

	if (xrcd == NULL)
		return NULL;
	if (attr->fd >= 0)
		fstat(attr->fd, &st);
	for (other = fake_xrcds; other != NULL && other->inode != st.st_ino; other = other->next)
		;
	is_known = st.st_ino != 0 && (other != NULL || fake.other_inode == st.st_ino);
	if (is_known ? (attr->oflags & O_EXCL) != 0 : (attr->oflags & O_CREAT) == 0) {
		free(xrcd);
		fake.nb_live--;
		errno = is_known ? EINVAL : EAGAIN;
		return NULL;
	}
	xrcd->ibv.context = context;
	xrcd->inode = st.st_ino;
	xrcd->next = fake_xrcds;
	fake_xrcds = xrcd;
	return &xrcd->ibv;
}

static int
fake_close_xrcd(struct ibv_xrcd *ibv)
{
	struct fake_xrcd **at = &fake_xrcds;

	if (fake_keeps("close_xrcd", ibv))
		return errno;
	while (&(*at)->ibv != ibv)
		at = &(*at)->next;
	*at = (*at)->next;
	return fake_delete(ibv);
}

static bool
fake_is_domain(const struct ibv_xrcd *a, const struct ibv_xrcd *b)
{
	return a != NULL &&
			(a == b ||
					(((const struct fake_xrcd *)a)->inode != 0 &&
							((const struct fake_xrcd *)a)->inode ==
									((const struct fake_xrcd *)b)
											->inode));
}

/* As ib_uverbs_open_qp() of the kernel, and the providers. */
static struct ibv_qp *
fake_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	struct fake_qp *handle, *qp = fake_qp_find(attr->qp_num);

	if (attr->comp_mask != IBV_QP_OPEN_ATTR_RESERVED - 1 || attr->qp_type != IBV_QPT_XRC_RECV ||
			qp == NULL || !fake_is_domain(qp->init.xrcd, attr->xrcd)) {
		errno = EINVAL;
		return NULL;
	}
	handle = fake_new("open_qp", sizeof(*handle));
	if (handle == NULL)
		return NULL;
	handle->ex.qp_base.context = context;
	handle->ex.qp_base.qp_context = attr->qp_context;
	handle->ex.qp_base.qp_num = attr->qp_num;
	handle->ex.qp_base.qp_type = attr->qp_type;
	handle->opened = qp;
	qp->init.xrcd = attr->xrcd; /* the owner may close its own */
	qp->opener = handle;
	qp->nb_openers++;
	return &handle->ex.qp_base;
}

bool
fake_srq_select(struct fake_qp *qp, uint32_t number)
{
	struct fake_srq *srq = fake_xrc_srqs;

	while (srq != NULL && srq->number != number)
		srq = srq->next;
	if (srq == NULL || !fake_is_domain(qp->init.xrcd, &srq->xrcd->ibv))
		return false;
	qp->init.srq = &srq->ibv;
	qp->ex.qp_base.recv_cq = srq->cq;
	return true;
}

void
fake_xrc_ops(struct verbs_context *context)
{
	if (!fake.has_xrc)
		return;
	context->create_srq_ex = fake_create_srq_ex;
	context->get_srq_num = fake_get_srq_num;
	context->open_xrcd = fake_open_xrcd;
	if (!fake.has_no_open_qp)
		context->open_qp = fake_open_qp;
	context->close_xrcd = fake_close_xrcd;
}

void
fake_srq_ops(struct ibv_context *context)
{
	context->ops.post_srq_recv = fake_post_srq_recv;
}
