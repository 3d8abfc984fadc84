/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Queue pairs. A QP refers to its PD, to both of its CQs, and to its SRQ; an XRC_RECV QP
 * refers to its domain only.
 */

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "rmem_obj_priv.h"
#include "rmem_priv.h"
#include "rmem_qp_priv.h"
#include "rmem_trace_priv.h"

#define QP_FLAGS (RMEM_QP_SIG_ALL | RMEM_QP_NO_INLINE_RECV | RMEM_QP_LATE_ERRORS | RMEM_QP_GSI)

/* A number of a configuration and its bounds. */
struct bound {
	const char *what;
	uint32_t value;
	uint32_t min;
	uint32_t max;
};

static int
check_bounds(const struct rmem_dev *dev, const struct bound *bounds, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (bounds[i].value < bounds[i].min || bounds[i].value > bounds[i].max)
			return RMEM_FAIL(EINVAL, "%s: %s out of range: %u (%u to %u)", dev->name,
					bounds[i].what, bounds[i].value, bounds[i].min,
					bounds[i].max);
	}
	return 0;
}

static int
check_type(const struct rmem_dev *dev, uint16_t type)
{
	static const struct {
		uint64_t capa;
		uint16_t type;
		const char *name;
	} types[] = {
			{0, RMEM_QPT_RC, "RC"},
			{RMEM_DEV_CAPA_UC, RMEM_QPT_UC, "UC"},
			{RMEM_DEV_CAPA_UD, RMEM_QPT_UD, "UD"},
			{RMEM_DEV_CAPA_XRC, RMEM_QPT_XRC_SEND, "XRC_SEND"},
			{RMEM_DEV_CAPA_XRC, RMEM_QPT_XRC_RECV, "XRC_RECV"},
	};
	size_t i;

	for (i = 0; i < RTE_DIM(types) && types[i].type != type; i++)
		;
	if (i == RTE_DIM(types))
		return RMEM_FAIL(EINVAL, "%s: unknown QP type: %u", dev->name, type);
	if ((types[i].capa & ~rmem_obj_info(&dev->obj)->capa) != 0)
		return RMEM_FAIL(EOPNOTSUPP, "%s: no QPs of type %s", dev->name, types[i].name);
	return 0;
}

static int
check_gsi(const struct rmem_dev *dev, const struct rmem_qp_conf *conf)
{
	if ((conf->flags & RMEM_QP_GSI) == 0)
		return 0;
	if ((rmem_obj_info(&dev->obj)->capa & RMEM_DEV_CAPA_GSI) == 0)
		return RMEM_FAIL(EOPNOTSUPP, "%s: no QP 1 (RMEM_QP_GSI)", dev->name);
	if (conf->type != RMEM_QPT_UD)
		return RMEM_FAIL(EINVAL, "%s: QP 1 (RMEM_QP_GSI): type %u, not UD", dev->name,
				conf->type);
	return 0;
}

static struct rmem_xrcd *
xrcd_of(const struct rmem_qp_conf *conf)
{
	return conf->ext != NULL ? conf->ext->xrcd : NULL;
}

static int
check_queues(const struct rmem_dev *dev, const struct rmem_qp_conf *conf)
{
	int ret;

	if (conf->type == RMEM_QPT_XRC_RECV)
		return 0;
	ret = rmem_obj_check_of(conf->send_cq, RMEM_OBJ_CQ, &dev->obj);
	if (ret == 0)
		ret = rmem_obj_check_of(conf->recv_cq, RMEM_OBJ_CQ, &dev->obj);
	if (ret == 0 && conf->srq != NULL)
		ret = rmem_obj_check_of(conf->srq, RMEM_OBJ_SRQ, &dev->obj);
	return ret;
}

/* Check that only an XRC_RECV QP has a domain, and that the SRQ fits the type. */
static int
check_xrc(const struct rmem_dev *dev, const struct rmem_qp_conf *conf)
{
	if ((xrcd_of(conf) != NULL) != (conf->type == RMEM_QPT_XRC_RECV))
		return RMEM_FAIL(EINVAL, "%s: QP of type %u: %s XRC domain", dev->name, conf->type,
				xrcd_of(conf) != NULL ? "has an" : "has no");
	if (conf->srq != NULL && (conf->type == RMEM_QPT_XRC_SEND || rmem_srq_is_xrc(conf->srq)))
		return RMEM_FAIL(EINVAL, "%s: QP of type %u: has an SRQ%s", dev->name, conf->type,
				rmem_srq_is_xrc(conf->srq) ? " of XRC" : "");
	return 0;
}

static int
check_conf(const struct rmem_dev *dev, const struct rmem_qp_conf *conf)
{
	const struct rmem_dev_info *info = rmem_obj_info(&dev->obj);
	const struct bound bounds[] = {
			{"max_send_wr", conf->max_send_wr, 0, info->max_send_wr},
			{"max_recv_wr", conf->max_recv_wr, 0, info->max_recv_wr},
			{"max_send_sge", conf->max_send_sge, 0, info->max_send_sge},
			{"max_recv_sge", conf->max_recv_sge, 0, info->max_recv_sge},
			{"max_inline_data", conf->max_inline_data, 0, info->max_inline_data},
	};
	int ret;

	ret = check_queues(dev, conf);
	if (ret == 0 && conf->ext != NULL)
		ret = rmem_check_reserved(conf->ext->reserved, sizeof(conf->ext->reserved));
	if (ret == 0)
		ret = rmem_async_channel_check(conf->async_channel, dev);
	if (ret == 0)
		ret = rmem_name_check(conf->name);
	if (ret == 0)
		ret = check_type(dev, conf->type);
	if (ret == 0)
		ret = check_xrc(dev, conf);
	if (ret != 0)
		return ret;
	if ((conf->flags & ~QP_FLAGS) != 0)
		return RMEM_FAIL(EINVAL, "%s: unknown QP flags: 0x%x", dev->name,
				conf->flags & ~QP_FLAGS);
	ret = check_gsi(dev, conf);
	if (ret != 0)
		return ret;
	if ((conf->access &
			    ~(RMEM_ACCESS_REMOTE |
					    (rmem_obj_info(&dev->obj)->access &
							    RMEM_ACCESS_FLUSH))) != 0)
		return RMEM_FAIL(EINVAL, "%s: unknown access bits of a QP: 0x%x (0x%x)", dev->name,
				conf->access, RMEM_ACCESS_REMOTE);
	return check_bounds(dev, bounds, RTE_DIM(bounds));
}

/* Take references to the CQs and the SRQ; an XRC_RECV QP has none. */
static int
get_queues(const struct rmem_qp_conf *conf)
{
	int ret;

	if (conf->send_cq == NULL)
		return 0;
	ret = rmem_obj_get(&conf->send_cq->obj);
	if (ret != 0)
		return ret;
	ret = rmem_obj_get(&conf->recv_cq->obj);
	if (ret != 0)
		goto put_send_cq;
	if (conf->srq != NULL)
		ret = rmem_obj_get(&conf->srq->obj);
	if (ret == 0)
		return 0;
	rmem_obj_unhold(&conf->recv_cq->obj);
put_send_cq:
	rmem_obj_unhold(&conf->send_cq->obj);
	return ret;
}

static void
put_queues(struct rmem_cq *send_cq, struct rmem_cq *recv_cq, struct rmem_srq *srq)
{
	if (send_cq == NULL)
		return;
	if (srq != NULL)
		rmem_obj_unhold(&srq->obj);
	rmem_obj_unhold(&recv_cq->obj);
	rmem_obj_unhold(&send_cq->obj);
}

/* Fill and check the configuration for the driver, and take references to its queues. */
static int
get_conf(const struct rmem_dev *dev, const struct rmem_qp_conf *conf, struct rmem_qp_conf *own)
{
	int ret;

	*own = *conf;
	if (own->type == RMEM_QPT_XRC_RECV) {
		own->send_cq = own->recv_cq = NULL;
		own->srq = NULL;
		own->max_send_wr = own->max_inline_data = 0;
		own->max_send_sge = 0;
	}
	if (own->type == RMEM_QPT_XRC_SEND)
		own->recv_cq = own->send_cq;
	if (own->srq != NULL || own->type == RMEM_QPT_XRC_SEND || own->type == RMEM_QPT_XRC_RECV)
		own->max_recv_wr = own->max_recv_sge = 0;
	ret = check_conf(dev, own);
	return ret != 0 ? ret : get_queues(own);
}

static struct rmem_async_events **
async_of(struct rmem_qp *qp)
{
	return &((struct rmem_qp_drv *)qp)->async;
}

static struct rmem_qp *
alloc(struct rmem_obj *parent, int *ret)
{
	size_t size = RTE_CACHE_LINE_ROUNDUP(rmem_obj_driver(parent)->qp_size);
	struct rmem_qp *qp;

	qp = rmem_obj_create(parent, RMEM_OBJ_QP, size + sizeof(struct rmem_qp_more), ret);
	if (qp == NULL)
		return NULL;
	((struct rmem_qp_drv *)qp)->last_error = RTE_PTR_ADD(qp, size);
	rmem_qp_more_of(qp)->parent = parent;
	if (parent->type == RMEM_OBJ_XRCD) {
		rmem_qp_more_of(qp)->xrcd = ((struct rmem_xrcd *)parent)->handle;
		rmem_qp_more_of(qp)->nb_opens = 1;
	} else {
		qp->pd = (struct rmem_pd *)parent;
	}
	return qp;
}

/* Get the parent of a new QP: its PD, or the domain of an XRC_RECV QP, which has no PD. */
static int
get_parent(struct rmem_pd *pd, const struct rmem_qp_conf *conf, struct rmem_obj **parent)
{
	int ret;

	if (conf == NULL || conf->type != RMEM_QPT_XRC_RECV) {
		ret = rmem_obj_check(pd, RMEM_OBJ_PD);
		*parent = (struct rmem_obj *)pd;
		return ret;
	}
	ret = rmem_obj_check(xrcd_of(conf), RMEM_OBJ_XRCD);
	*parent = (struct rmem_obj *)xrcd_of(conf);
	if (ret == 0 && pd != NULL)
		ret = RMEM_FAIL(EINVAL, "%s: QP of type XRC_RECV: has a PD",
				rmem_obj_dev(*parent)->name);
	return ret;
}

int
rmem_qp_create(struct rmem_pd *pd, const struct rmem_qp_conf *conf, struct rmem_qp **qp)
{
	RMEM_CALL(pd);
	struct rmem_qp_conf own;
	struct rmem_obj *parent;
	struct rmem_qp *new_qp;
	int ret;

	ret = get_parent(pd, conf, &parent);
	if (ret == 0)
		ret = rmem_check_arg(conf, "configuration");
	if (ret == 0)
		ret = rmem_check_arg(qp, "QP pointer");
	if (ret == 0)
		ret = get_conf(rmem_obj_dev(parent), conf, &own);
	if (ret != 0)
		return ret;
	new_qp = alloc(parent, &ret);
	if (new_qp == NULL)
		goto put_queues;
	new_qp->type = conf->type;
	((struct rmem_qp_drv *)new_qp)->flags = conf->flags;
	new_qp->send_cq = own.send_cq;
	new_qp->recv_cq = own.recv_cq;
	new_qp->srq = own.srq;
	ret = rmem_async_channel_bind(
			own.async_channel, &new_qp->obj, own.context, async_of(new_qp));
	if (ret != 0)
		goto drop_qp;
	ret = RMEM_OP(new_qp, qp_create, new_qp, &own);
	if (ret != 0)
		goto unbind;
	rmem_obj_set_name(&new_qp->obj, own.name);
	rmem_obj_list(&new_qp->obj);
	*qp = new_qp;
	rmem_trace_qp_create(pd, new_qp, new_qp->qp_num, own.send_cq, own.recv_cq, own.max_send_wr,
			own.max_recv_wr, own.access);
	return 0;

unbind:
	rmem_async_channel_unbind(*async_of(new_qp));
drop_qp:
	rmem_obj_drop(&new_qp->obj, parent);
put_queues:
	put_queues(own.send_cq, own.recv_cq, own.srq);
	return ret;
}

static int
check_conn(const struct rmem_dev *dev, const struct rmem_qp_conn *conn)
{
	const struct bound bounds[] = {
			{"timeout", conn->timeout, 0, 31},
			{"retry_cnt", conn->retry_cnt, 0, 7},
			{"rnr_retry", conn->rnr_retry, 0, 7},
			{"min_rnr_timer", conn->min_rnr_timer, 0, 31},
	};
	int ret;

	ret = check_bounds(dev, bounds, RTE_DIM(bounds));
	if (ret == 0)
		ret = rmem_check_reserved(conn->reserved, sizeof(conn->reserved));
	if (ret == 0)
		ret = rmem_check_reserved(conn->remote.reserved, sizeof(conn->remote.reserved));
	return ret;
}

/* Check that the state is, or is not, RESET. A driver that reports no state checks it itself. */
static int
check_state(struct rmem_qp *qp, bool is_reset)
{
	struct rmem_name_text text;
	struct rmem_qp_attr attr;

	memset(&attr, 0, sizeof(attr));
	if (rmem_obj_driver(&qp->obj)->ops.qp_query(qp, &attr) != 0)
		return 0;
	if ((attr.state == RMEM_QPS_RESET) == is_reset)
		return 0;
	return RMEM_FAIL(EBUSY, "%s: QP %u%s: wrong state: %u (must %sbe RESET, %d)",
			rmem_obj_dev(&qp->obj)->name, qp->qp_num,
			rmem_name_text(rmem_qp_name(qp), &text), attr.state, is_reset ? "" : "not ",
			RMEM_QPS_RESET);
}

int
rmem_qp_connect(struct rmem_qp *qp, const struct rmem_qp_conn *conn)
{
	RMEM_CALL(qp);
	struct rmem_qp_call call = {.op = RMEM_QP_CALL_CONNECT};
	int ret;

	ret = rmem_obj_check(qp, RMEM_OBJ_QP);
	if (ret == 0)
		ret = rmem_check_arg(conn, "connection");
	if (ret == 0 && rmem_qp_is_opened(qp)) {
		call.conn = *conn;
		return rmem_qp_forward(qp, &call);
	}
	if (ret == 0 && qp->type == RMEM_QPT_UD)
		ret = RMEM_FAIL(EINVAL, "%s: QP %u: a UD QP has no peer (use rmem_qp_modify())",
				rmem_obj_dev(&qp->obj)->name, qp->qp_num);
	if (ret == 0)
		ret = check_conn(rmem_obj_dev(&qp->obj), conn);
	if (ret == 0)
		ret = check_state(qp, true);
	if (ret == 0)
		ret = rmem_check_live(&qp->obj);
	if (ret == 0)
		ret = RMEM_OP(qp, qp_connect, qp, conn);
	if (ret == 0)
		rmem_trace_qp_connect(qp, qp->qp_num, conn->remote.qp_num);
	return ret;
}

int
rmem_qp_query(const struct rmem_qp *qp, struct rmem_qp_attr *attr)
{
	RMEM_CALL(qp);
	struct rmem_qp_call call = {.op = RMEM_QP_CALL_QUERY};
	int ret;

	ret = rmem_obj_check(qp, RMEM_OBJ_QP);
	if (ret == 0)
		ret = rmem_check_arg(attr, "result");
	if (ret != 0)
		return ret;
	if (rmem_qp_is_opened(qp))
		ret = rmem_qp_forward(qp, &call);
	else
		ret = RMEM_OP(qp, qp_query, (struct rmem_qp *)(uintptr_t)qp, &call.attr);
	if (ret == 0)
		*attr = call.attr;
	return ret;
}

int
rmem_qp_set_error(struct rmem_qp *qp)
{
	RMEM_CALL(qp);
	struct rmem_qp_call call = {.op = RMEM_QP_CALL_SET_ERROR};
	int ret;

	ret = rmem_obj_check(qp, RMEM_OBJ_QP);
	if (ret == 0 && rmem_qp_is_opened(qp))
		return rmem_qp_forward(qp, &call);
	if (ret == 0)
		ret = check_state(qp, false);
	if (ret == 0)
		ret = RMEM_OP(qp, qp_set_error, qp);
	if (ret == 0)
		rmem_trace_qp_state(qp, qp->qp_num, RMEM_QPS_ERR);
	return ret;
}

int
rmem_qp_reset(struct rmem_qp *qp)
{
	RMEM_CALL(qp);
	struct rmem_qp_call call = {.op = RMEM_QP_CALL_RESET};
	int ret;

	ret = rmem_obj_check(qp, RMEM_OBJ_QP);
	if (ret == 0 && rmem_qp_is_opened(qp))
		return rmem_qp_forward(qp, &call);
	if (ret == 0)
		ret = RMEM_OP(qp, qp_reset, qp);
	if (ret == 0)
		rmem_trace_qp_state(qp, qp->qp_num, RMEM_QPS_RESET);
	return ret;
}

/* A search for an XRC_RECV QP. */
struct qp_search {
	uint16_t dev_id;
	uint32_t xrcd;
	uint32_t qp_num;
	bool is_hold; /* for another process */
	bool is_left; /* this process had destroyed all of its handles */
	struct rmem_qp *qp;
};

static int
open_again(struct rmem_obj *obj, void *arg)
{
	struct rmem_qp *qp = (struct rmem_qp *)obj;
	struct rmem_qp_more *more = rmem_qp_more_of(qp);
	struct qp_search *search = arg;
	uint32_t *nb = search->is_hold ? &more->nb_holds : &more->nb_opens;

	if (obj->dev_id != search->dev_id || qp->qp_num != search->qp_num ||
			more->xrcd != search->xrcd || rmem_qp_is_opened(qp) ||
			(more->nb_opens == 0 && more->nb_holds == 0))
		return 0;
	search->qp = qp;
	/* The first handle is that of rmem_qp_create(). */
	if (*nb == (search->is_hold ? UINT16_MAX : UINT16_MAX + UINT32_C(1)))
		return -ENOSPC;
	search->is_left = more->nb_opens == 0;
	++*nb;
	__atomic_store_n(&((struct rmem_qp_drv *)qp)->has_openers, more->nb_holds != 0,
			__ATOMIC_RELEASE);
	return 1;
}

/* Results of close_one(). */
enum close_result {
	CLOSE_NONE,    /* the process has no handle */
	CLOSE_REMAINS, /* the process has other handles */
	CLOSE_LEFT,    /* other processes hold the QP */
	CLOSE_LAST,
};

/* Close a handle of this process. */
static int
close_one(struct rmem_obj *obj, void *arg)
{
	struct rmem_qp_more *more = rmem_qp_more_of((struct rmem_qp *)obj);

	if (obj != arg || more->nb_opens == 0)
		return CLOSE_NONE;
	more->nb_opens--;
	if (more->nb_opens != 0)
		return CLOSE_REMAINS;
	if (more->nb_holds == 0)
		return CLOSE_LAST;
	more->nb_holds++; /* until leave() has finished */
	return CLOSE_LEFT;
}

/* The last handle was not destroyed. */
static int
reopen(struct rmem_obj *obj, void *arg)
{
	if (obj != arg)
		return 0;
	rmem_qp_more_of((struct rmem_qp *)obj)->nb_opens++;
	return 1;
}

/* Release a reference of another process: 1 if it was not the last one. */
static int
unhold(struct rmem_obj *obj, void *arg)
{
	struct rmem_qp_more *more = rmem_qp_more_of((struct rmem_qp *)obj);

	if (obj != arg)
		return 0;
	more->nb_holds--;
	if (more->nb_holds == 0)
		__atomic_store_n(&((struct rmem_qp_drv *)arg)->has_openers, 0, __ATOMIC_RELEASE);
	return more->nb_holds != 0 || more->nb_opens != 0;
}

static int
is_left(struct rmem_obj *obj, void *arg)
{
	return obj == arg && rmem_qp_more_of((struct rmem_qp *)obj)->nb_opens == 0;
}

int
rmem_qp_get(struct rmem_xrcd *xrcd, uint32_t qp_num, struct rmem_qp **qp)
{
	RMEM_CALL(xrcd);
	struct qp_search search = {.qp_num = qp_num};
	int ret;

	ret = rmem_obj_check(xrcd, RMEM_OBJ_XRCD);
	if (ret == 0)
		ret = rmem_check_arg(qp, "QP pointer");
	if (ret != 0)
		return ret;
	search.dev_id = xrcd->obj.dev_id;
	search.xrcd = xrcd->handle;
	ret = rmem_obj_visit(RMEM_OBJ_QP, open_again, &search);
	if (ret == 0)
		return RMEM_FAIL(ENOENT, "%s: QP %u: not an XRC_RECV QP of the domain",
				rmem_obj_dev(&xrcd->obj)->name, qp_num);
	if (ret < 0)
		return RMEM_FAIL(ENOSPC, "%s: QP %u: opened %u times",
				rmem_obj_dev(&xrcd->obj)->name, qp_num, UINT16_MAX);
	if (search.is_left)
		rmem_xrcd_reopen_qp((struct rmem_xrcd *)rmem_qp_more_of(search.qp)->parent);
	*qp = search.qp;
	return 0;
}

static int
check_open(struct rmem_xrcd *xrcd, const struct rmem_qp_shared_conf *conf)
{
	const struct rmem_dev *dev;
	int ret;

	ret = rmem_obj_check(xrcd, RMEM_OBJ_XRCD);
	if (ret == 0)
		ret = rmem_check_arg(conf, "configuration");
	if (ret != 0)
		return ret;
	dev = rmem_obj_dev(&xrcd->obj);
	ret = rmem_check_reserved(conf->reserved, sizeof(conf->reserved));
	if (ret == 0 && (conf->pad != 0 || conf->qp_num >> 24 != 0))
		ret = RMEM_FAIL(EINVAL,
				"%s: QP number 0x%x over 0xffffff, or a pad that is not zero",
				dev->name, conf->qp_num);
	if (ret == 0)
		ret = rmem_async_channel_check(conf->async_channel, dev);
	if (ret == 0)
		ret = rmem_name_check(conf->name);
	if (ret == 0 && rmem_obj_driver(&xrcd->obj)->ops.xrc->share == NULL)
		ret = RMEM_FAIL(EOPNOTSUPP, "%s: no QPs of other processes", dev->name);
	if (ret == 0 && xrcd->fd < 0)
		ret = RMEM_FAIL(ENOENT, "%s: QP %u: the XRC domain has no file", dev->name,
				conf->qp_num);
	return ret;
}

int
rmem_qp_get_shared(
		struct rmem_xrcd *xrcd, const struct rmem_qp_shared_conf *conf, struct rmem_qp **qp)
{
	RMEM_CALL(xrcd);
	struct rmem_qp *new_qp;
	int ret;

	ret = check_open(xrcd, conf);
	if (ret == 0)
		ret = rmem_check_arg(qp, "QP pointer");
	if (ret != 0)
		return ret;
	new_qp = alloc(&xrcd->obj, &ret);
	if (new_qp == NULL)
		return ret;
	new_qp->type = RMEM_QPT_XRC_RECV;
	new_qp->qp_num = conf->qp_num;
	((struct rmem_qp_drv *)new_qp)->is_opened = 1;
	ret = rmem_async_channel_bind(
			conf->async_channel, &new_qp->obj, conf->context, async_of(new_qp));
	if (ret != 0)
		goto drop_qp;
	ret = RMEM_OP(new_qp, xrc->share->qp_open, new_qp, xrcd);
	if (ret != 0)
		goto unbind;
	rmem_obj_set_name(&new_qp->obj, conf->name);
	rmem_obj_list(&new_qp->obj);
	*qp = new_qp;
	return 0;

unbind:
	rmem_async_channel_unbind(*async_of(new_qp));
drop_qp:
	rmem_obj_drop(&new_qp->obj, &xrcd->obj);
	return ret;
}

int
rmem_qp_hold(const struct rmem_xrcd *xrcd, uint32_t qp_num, struct rmem_qp **qp)
{
	struct qp_search search = {.dev_id = xrcd->obj.dev_id,
			.xrcd = xrcd->handle,
			.qp_num = qp_num,
			.is_hold = true};
	int ret = rmem_obj_visit(RMEM_OBJ_QP, open_again, &search);

	if (ret <= 0)
		return ret == 0 ? -ENOENT : ret;
	*qp = search.qp;
	return 0;
}

bool
rmem_qp_is_left(const struct rmem_qp *qp)
{
	return rmem_obj_visit(RMEM_OBJ_QP, is_left, (void *)(uintptr_t)qp) != 0;
}

/* Destroy a QP without handles. is_left: only other processes held it. */
static int
do_destroy(struct rmem_qp *qp, bool is_left)
{
	struct rmem_obj *parent = rmem_qp_more_of(qp)->parent;
	int ret;

	ret = rmem_obj_kill(&qp->obj);
	if (ret != 0)
		return ret;
	if (rmem_qp_is_opened(qp))
		rmem_obj_driver(&qp->obj)->ops.xrc->share->qp_close(qp);
	else
		ret = RMEM_OP(qp, qp_destroy, qp);
	if (ret != 0) {
		rmem_async_channel_revive(*async_of(qp), &qp->obj);
		return ret;
	}
	rmem_trace_qp_destroy(qp, qp->qp_num);
	rmem_async_channel_unbind(*async_of(qp));
	put_queues(qp->send_cq, qp->recv_cq, qp->srq);
	rmem_qp_counter_put(qp);
	if (parent->type == RMEM_OBJ_XRCD)
		rmem_xrcd_drop_qp((struct rmem_xrcd *)parent, &qp->obj, is_left);
	else
		rmem_obj_drop(&qp->obj, parent);
	return 0;
}

void
rmem_qp_unhold(struct rmem_qp *qp)
{
	RMEM_CALL(qp);

	if (rmem_obj_visit(RMEM_OBJ_QP, unhold, qp) == 0)
		(void)do_destroy(qp, true);
}

/*
 * Leave a QP to the other processes. It is detached from its channel while it is dead: an event
 * that was got then would hold it, and could not be acknowledged.
 */
static int
leave(struct rmem_qp *qp)
{
	int ret;

	if (rmem_obj_kill_quietly(&qp->obj) != 0) {
		(void)rmem_obj_visit(RMEM_OBJ_QP, reopen, qp);
		ret = RMEM_FAIL(EBUSY, "QP %u: in use: its events are not acknowledged",
				qp->qp_num);
		rmem_qp_unhold(qp);
		return ret;
	}
	rmem_async_channel_detach(async_of(qp));
	rmem_obj_revive(&qp->obj);
	if (!rmem_xrcd_leave((struct rmem_xrcd *)rmem_qp_more_of(qp)->parent, qp, unhold))
		(void)do_destroy(qp, false);
	return 0;
}

/* Destroy a handle of an XRC_RECV QP, and the QP with the last one. */
static int
destroy_shared(struct rmem_qp *qp)
{
	int ret;

	switch (rmem_obj_visit(RMEM_OBJ_QP, close_one, qp)) {
	case CLOSE_NONE: /* other processes may hold it, or a thread is destroying it */
		return RMEM_FAIL(EINVAL, "QP %u: its handles are destroyed", qp->qp_num);
	case CLOSE_REMAINS:
		return 0;
	case CLOSE_LEFT:
		return leave(qp);
	default:
		break;
	}
	ret = do_destroy(qp, false);
	if (ret != 0)
		(void)rmem_obj_visit(RMEM_OBJ_QP, reopen, qp);
	return ret;
}

int
rmem_qp_destroy(struct rmem_qp *qp)
{
	RMEM_CALL(qp);
	int ret;

	if (qp == NULL)
		return 0;
	ret = rmem_obj_check(qp, RMEM_OBJ_QP);
	if (ret != 0)
		return ret;
	return rmem_qp_more_of(qp)->xrcd != 0 ? destroy_shared(qp) : do_destroy(qp, false);
}

const char *
rmem_qp_name(const struct rmem_qp *qp)
{
	return qp != NULL ? rmem_obj_name(&qp->obj, RMEM_OBJ_QP) : "";
}
