/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Queue pairs. A QP refers to its PD and to both of its CQs.
 */

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include <rmem_priv.h>
#include <rmem_trace_priv.h>

#define QP_FLAGS (RMEM_QP_SIG_ALL | RMEM_QP_NO_INLINE_RECV)

LIST_HEAD(qp_list, rmem_qp);

/* All QPs that are neither being created nor destroyed. */
static pthread_mutex_t qps_lock = PTHREAD_MUTEX_INITIALIZER;
static struct qp_list qps = LIST_HEAD_INITIALIZER(qps);

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
		if (bounds[i].value < bounds[i].min || bounds[i].value > bounds[i].max) {
			RMEM_LOG(ERR, "%s: %s %u is not %u to %u", dev->name, bounds[i].what,
					bounds[i].value, bounds[i].min, bounds[i].max);
			return -EINVAL;
		}
	}
	return 0;
}

static int
check_limits(struct rmem_dev *dev, const struct rmem_qp_conf *conf)
{
	struct rmem_dev_info info;
	int ret;

	ret = rmem_dev_info_fill(dev, &info);
	if (ret != 0)
		return ret;
	const struct bound bounds[] = {
			{"max_send_wr", conf->max_send_wr, 0, info.max_send_wr},
			{"max_recv_wr", conf->max_recv_wr, 0, info.max_recv_wr},
			{"max_send_sge", conf->max_send_sge, 0, info.max_send_sge},
			{"max_recv_sge", conf->max_recv_sge, 0, info.max_recv_sge},
			{"max_inline_data", conf->max_inline_data, 0, info.max_inline_data},
	};
	return check_bounds(dev, bounds, RTE_DIM(bounds));
}

static int
check_conf(struct rmem_dev *dev, const struct rmem_qp_conf *conf)
{
	const char *func = "rmem_qp_create";
	int ret;

	ret = rmem_obj_check(conf->send_cq, RMEM_OBJ_CQ, func);
	if (ret == 0)
		ret = rmem_obj_check(conf->recv_cq, RMEM_OBJ_CQ, func);
	if (ret == 0)
		ret = rmem_check_reserved(conf->reserved, sizeof(conf->reserved), func);
	if (ret != 0)
		return ret;
	if (conf->send_cq->obj.dev_id != dev->obj.dev_id ||
			conf->recv_cq->obj.dev_id != dev->obj.dev_id) {
		RMEM_LOG(ERR, "%s: a CQ belongs to another device", dev->name);
		return -EINVAL;
	}
	if (conf->type != RMEM_QPT_RC) {
		RMEM_LOG(ERR, "%s: unknown QP type %u", dev->name, conf->type);
		return -EINVAL;
	}
	if ((conf->flags & ~QP_FLAGS) != 0) {
		RMEM_LOG(ERR, "%s: unknown QP flags 0x%x", dev->name, conf->flags & ~QP_FLAGS);
		return -EINVAL;
	}
	if ((conf->access & ~RMEM_ACCESS_REMOTE) != 0) {
		RMEM_LOG(ERR, "%s: access 0x%x of a QP is not of 0x%x", dev->name, conf->access,
				RMEM_ACCESS_REMOTE);
		return -EINVAL;
	}
	return check_limits(dev, conf);
}

/* All three or none. */
static int
get_parents(struct rmem_pd *pd, const struct rmem_qp_conf *conf)
{
	const char *func = "rmem_qp_create";
	int ret;

	ret = rmem_obj_get(&pd->obj, func);
	if (ret != 0)
		return ret;
	ret = rmem_obj_get(&conf->send_cq->obj, func);
	if (ret != 0)
		goto put_pd;
	ret = rmem_obj_get(&conf->recv_cq->obj, func);
	if (ret != 0)
		goto put_send_cq;
	return 0;

put_send_cq:
	rmem_obj_put(&conf->send_cq->obj);
put_pd:
	rmem_obj_put(&pd->obj);
	return ret;
}

static void
put_parents(struct rmem_pd *pd, struct rmem_cq *send_cq, struct rmem_cq *recv_cq)
{
	rmem_obj_put(&recv_cq->obj);
	rmem_obj_put(&send_cq->obj);
	rmem_obj_put(&pd->obj);
}

static void
list(struct rmem_qp *qp)
{
	pthread_mutex_lock(&qps_lock);
	LIST_INSERT_HEAD(&qps, qp, entry);
	pthread_mutex_unlock(&qps_lock);
}

static void
unlist(struct rmem_qp *qp)
{
	pthread_mutex_lock(&qps_lock);
	LIST_REMOVE(qp, entry);
	pthread_mutex_unlock(&qps_lock);
}

int
rmem_qp_visit(int (*func)(struct rmem_qp *qp, void *arg), void *arg)
{
	struct rmem_qp *qp;
	int ret = 0;

	pthread_mutex_lock(&qps_lock);
	LIST_FOREACH(qp, &qps, entry) {
		ret = func(qp, arg);
		if (ret != 0)
			break;
	}
	pthread_mutex_unlock(&qps_lock);
	return ret;
}

static int
qp_create(struct rmem_pd *pd, const struct rmem_qp_conf *conf, struct rmem_qp **qp)
{
	struct rmem_dev *dev;
	struct rmem_qp *new_qp;
	int ret;

	ret = rmem_obj_check(pd, RMEM_OBJ_PD, "rmem_qp_create");
	if (ret != 0)
		return ret;
	dev = rmem_obj_dev(&pd->obj);
	if (conf == NULL || qp == NULL) {
		RMEM_LOG(ERR, "%s: got NULL for the %s", dev->name,
				conf == NULL ? "configuration" : "QP pointer");
		return -EINVAL;
	}
	ret = check_conf(dev, conf);
	if (ret != 0)
		return ret;
	ret = get_parents(pd, conf);
	if (ret != 0)
		return ret;
	new_qp = rmem_obj_alloc(dev, RMEM_OBJ_QP, rmem_dev_driver(dev)->qp_size);
	if (new_qp == NULL) {
		ret = -ENOMEM;
		goto put;
	}
	new_qp->pd = pd;
	new_qp->send_cq = conf->send_cq;
	new_qp->recv_cq = conf->recv_cq;
	ret = rmem_dev_ops(dev)->qp_create(new_qp, conf);
	if (ret != 0)
		goto free_qp;
	list(new_qp);
	*qp = new_qp;
	rmem_trace_qp_create(pd, new_qp, new_qp->qp_num, conf->send_cq, conf->recv_cq,
			conf->max_send_wr, conf->max_recv_wr, conf->access);
	return 0;

free_qp:
	rmem_obj_free(&new_qp->obj);
put:
	put_parents(pd, conf->send_cq, conf->recv_cq);
	return ret;
}

int
rmem_qp_create(struct rmem_pd *pd, const struct rmem_qp_conf *conf, struct rmem_qp **qp)
{
	return rmem_trace_call(__func__, pd, qp_create(pd, conf, qp));
}

static int
check_conn(const struct rmem_dev *dev, const struct rmem_qp_conn *conn)
{
	const char *func = "rmem_qp_connect";
	const struct bound bounds[] = {
			{"timeout", conn->timeout, 0, 31},
			{"retry_cnt", conn->retry_cnt, 0, 7},
			{"rnr_retry", conn->rnr_retry, 0, 7},
			{"min_rnr_timer", conn->min_rnr_timer, 0, 31},
	};
	int ret;

	ret = check_bounds(dev, bounds, RTE_DIM(bounds));
	if (ret == 0)
		ret = rmem_check_reserved(conn->reserved, sizeof(conn->reserved), func);
	if (ret == 0)
		ret = rmem_check_reserved(
				conn->remote.reserved, sizeof(conn->remote.reserved), func);
	return ret;
}

/* Ask the driver for the state; what it does not tell is left to it to check. */
static int
check_state(struct rmem_qp *qp, bool want_reset, const char *func)
{
	struct rmem_dev *dev = rmem_obj_dev(&qp->obj);
	struct rmem_qp_attr attr;

	memset(&attr, 0, sizeof(attr));
	if (rmem_dev_ops(dev)->qp_query(qp, &attr) != 0)
		return 0;
	if ((attr.state == RMEM_QPS_RESET) == want_reset)
		return 0;
	RMEM_LOG(ERR, "%s: %s: QP %u is in state %u, which must %sbe RESET (%d)", func, dev->name,
			qp->qp_num, attr.state, want_reset ? "" : "not ", RMEM_QPS_RESET);
	return -EBUSY;
}

static int
qp_connect(struct rmem_qp *qp, const struct rmem_qp_conn *conn)
{
	struct rmem_dev *dev;
	int ret;

	ret = rmem_obj_check(qp, RMEM_OBJ_QP, "rmem_qp_connect");
	if (ret != 0)
		return ret;
	dev = rmem_obj_dev(&qp->obj);
	if (conn == NULL) {
		RMEM_LOG(ERR, "%s: got NULL for the connection", dev->name);
		return -EINVAL;
	}
	ret = check_conn(dev, conn);
	if (ret == 0)
		ret = check_state(qp, true, "rmem_qp_connect");
	if (ret != 0)
		return ret;
	ret = rmem_dev_ops(dev)->qp_connect(qp, conn);
	if (ret == 0)
		rmem_trace_qp_connect(qp, qp->qp_num, conn->remote.qp_num);
	return ret;
}

int
rmem_qp_connect(struct rmem_qp *qp, const struct rmem_qp_conn *conn)
{
	return rmem_trace_call(__func__, qp, qp_connect(qp, conn));
}

static int
qp_query(struct rmem_qp *qp, struct rmem_qp_attr *attr)
{
	struct rmem_qp_attr tmp;
	int ret;

	ret = rmem_obj_check(qp, RMEM_OBJ_QP, "rmem_qp_query");
	if (ret != 0)
		return ret;
	if (attr == NULL) {
		RMEM_LOG(ERR, "got NULL for the answer");
		return -EINVAL;
	}
	memset(&tmp, 0, sizeof(tmp));
	ret = rmem_dev_ops(rmem_obj_dev(&qp->obj))->qp_query(qp, &tmp);
	if (ret == 0)
		*attr = tmp;
	return ret;
}

int
rmem_qp_query(struct rmem_qp *qp, struct rmem_qp_attr *attr)
{
	return rmem_trace_call(__func__, qp, qp_query(qp, attr));
}

static int
qp_set_error(struct rmem_qp *qp)
{
	int ret;

	ret = rmem_obj_check(qp, RMEM_OBJ_QP, "rmem_qp_set_error");
	if (ret == 0)
		ret = check_state(qp, false, "rmem_qp_set_error");
	if (ret == 0)
		ret = rmem_dev_ops(rmem_obj_dev(&qp->obj))->qp_set_error(qp);
	if (ret == 0)
		rmem_trace_qp_state(qp, qp->qp_num, RMEM_QPS_ERR);
	return ret;
}

int
rmem_qp_set_error(struct rmem_qp *qp)
{
	return rmem_trace_call(__func__, qp, qp_set_error(qp));
}

static int
qp_reset(struct rmem_qp *qp)
{
	int ret;

	ret = rmem_obj_check(qp, RMEM_OBJ_QP, "rmem_qp_reset");
	if (ret == 0)
		ret = rmem_dev_ops(rmem_obj_dev(&qp->obj))->qp_reset(qp);
	if (ret == 0)
		rmem_trace_qp_state(qp, qp->qp_num, RMEM_QPS_RESET);
	return ret;
}

int
rmem_qp_reset(struct rmem_qp *qp)
{
	return rmem_trace_call(__func__, qp, qp_reset(qp));
}

static int
qp_destroy(struct rmem_qp *qp)
{
	struct rmem_cq *send_cq, *recv_cq;
	struct rmem_pd *pd;
	int ret;

	if (qp == NULL)
		return 0;
	ret = rmem_obj_check(qp, RMEM_OBJ_QP, "rmem_qp_destroy");
	if (ret != 0)
		return ret;
	ret = rmem_obj_kill(&qp->obj, "rmem_qp_destroy");
	if (ret != 0)
		return ret;
	pd = qp->pd;
	send_cq = qp->send_cq;
	recv_cq = qp->recv_cq;
	unlist(qp);
	ret = rmem_dev_ops(rmem_obj_dev(&qp->obj))->qp_destroy(qp);
	if (ret != 0) {
		list(qp);
		rmem_obj_revive(&qp->obj);
		return ret;
	}
	rmem_trace_qp_destroy(qp, qp->qp_num);
	rmem_obj_free(&qp->obj);
	put_parents(pd, send_cq, recv_cq);
	return 0;
}

int
rmem_qp_destroy(struct rmem_qp *qp)
{
	return rmem_trace_call(__func__, qp, qp_destroy(qp));
}
