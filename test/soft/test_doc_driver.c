/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The driver of doc/writing_a_driver.md: registered, and used through the class. See
 * test_doc_examples.c for what the marks mean.
 */

#include <string.h>

#include "fixture.h"
#include "test.h"

/* example: null_state */
#include <errno.h>
#include <stdint.h>

#include <rte_bitops.h>
#include <rte_common.h>
#include <rte_log.h>
#include <rte_malloc.h>
#include <rte_spinlock.h>

#include <rmem_driver.h>

#define NULL_MAX 64 /* objects of each kind */

struct null_dev {
	uint32_t next_number; /* atomic */
};

struct null_cq {
	struct rmem_cq cq; /* first */
	rte_spinlock_t lock;
	uint32_t prod;
	uint32_t cons;
	struct rmem_wc *ring;
};

struct null_qp {
	struct rmem_qp_drv drv; /* first */
	struct rmem_qp_conf conf;
	struct rmem_qp_conn conn;
	struct rmem_wr_limits limits;
	uint32_t state; /* enum rmem_qp_state; atomic */
};

static struct null_dev *
null_of(const struct rmem_obj *obj)
{
	return rmem_dev_drv(rmem_obj_dev(obj))->priv;
}
/* end of example */

/* example: null_dev */
static int
null_dev_create(struct rmem_dev *dev, const char *args)
{
	struct null_dev *null;

	if (args != NULL && args[0] != '\0') {
		RTE_LOG(ERR, USER1, "%s takes no arguments, got \"%s\"\n", dev->name, args);
		return -EINVAL;
	}
	null = rte_zmalloc("null_dev", sizeof(*null), 0);
	if (null == NULL) {
		RTE_LOG(ERR, USER1, "%s: no memory for %zu bytes\n", dev->name, sizeof(*null));
		return -ENOMEM;
	}
	rmem_dev_drv(dev)->priv = null;
	return 0;
}

static void
null_dev_close(struct rmem_dev *dev)
{
	rte_free(rmem_dev_drv(dev)->priv);
	rmem_dev_drv(dev)->priv = NULL;
}

static int
null_dev_info_get(struct rmem_dev *dev, struct rmem_dev_info *info)
{
	RTE_SET_USED(dev);
	info->max_mr_size = UINT64_C(1) << 40;
	info->max_msg_size = UINT64_C(1) << 31;
	info->access = RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE;
	info->max_pd = info->max_mr = info->max_cq = info->max_qp = NULL_MAX;
	info->max_cqe = info->max_send_wr = 4096;
	info->max_send_sge = 4;
	return 0;
}
/* end of example */

/* example: null_objects */
static uint32_t
null_number(const struct rmem_obj *obj)
{
	return __atomic_add_fetch(&null_of(obj)->next_number, 1, __ATOMIC_RELAXED);
}

static int
null_pd_alloc(struct rmem_pd *pd)
{
	pd->handle = null_number(&pd->obj);
	return 0;
}

static int
null_pd_dealloc(struct rmem_pd *pd)
{
	RTE_SET_USED(pd);
	return 0;
}

static int
null_mr_reg(struct rmem_mr *mr, const struct rmem_mr_attr *attr)
{
	RTE_SET_USED(attr);
	mr->lkey = mr->rkey = null_number(&mr->obj);
	return 0;
}

static int
null_mr_dereg(struct rmem_mr *mr)
{
	RTE_SET_USED(mr);
	return 0;
}

static int
null_cq_create(struct rmem_cq *base, const struct rmem_cq_conf *conf)
{
	struct null_cq *cq = (struct null_cq *)base;

	rte_spinlock_init(&cq->lock);
	base->nb_cqe = rte_align32pow2(conf->nb_cqe);
	cq->ring = rte_malloc("null_cq", base->nb_cqe * sizeof(*cq->ring), 0);
	if (cq->ring == NULL) {
		RTE_LOG(ERR, USER1, "no memory for a CQ of %u\n", base->nb_cqe);
		return -ENOMEM;
	}
	return 0;
}

static int
null_cq_destroy(struct rmem_cq *base)
{
	rte_free(((struct null_cq *)base)->ring);
	return 0;
}
/* end of example */

/* example: null_qp */
static int
null_qp_create(struct rmem_qp *base, const struct rmem_qp_conf *conf)
{
	struct null_qp *qp = (struct null_qp *)base;

	base->qp_num = null_number(&base->obj);
	qp->conf = *conf;
	rmem_wr_limits_set(&qp->limits, conf, 0);
	return 0; /* zeroed: in RMEM_QPS_RESET */
}

static int
null_qp_connect(struct rmem_qp *base, const struct rmem_qp_conn *conn)
{
	struct null_qp *qp = (struct null_qp *)base;

	qp->conn = *conn;
	__atomic_store_n(&qp->state, RMEM_QPS_RTS, __ATOMIC_RELEASE);
	return 0;
}

static int
null_qp_query(struct rmem_qp *base, struct rmem_qp_attr *attr)
{
	struct null_qp *qp = (struct null_qp *)base;

	attr->state = __atomic_load_n(&qp->state, __ATOMIC_ACQUIRE);
	attr->access = qp->conf.access;
	attr->addr.qp_num = base->qp_num;
	attr->remote = qp->conn.remote;
	attr->max_send_wr = qp->conf.max_send_wr;
	attr->max_send_sge = qp->conf.max_send_sge;
	return 0;
}

static int
null_qp_set_error(struct rmem_qp *base)
{
	__atomic_store_n(&((struct null_qp *)base)->state, RMEM_QPS_ERR, __ATOMIC_RELEASE);
	return 0;
}

static int
null_qp_reset(struct rmem_qp *base)
{
	struct null_qp *qp = (struct null_qp *)base;

	__atomic_store_n(&qp->state, RMEM_QPS_RESET, __ATOMIC_RELEASE);
	memset(&qp->conn, 0, sizeof(qp->conn));
	return 0;
}

static int
null_qp_destroy(struct rmem_qp *base)
{
	RTE_SET_USED(base);
	return 0;
}
/* end of example */

/* example: null_fp */
static int
null_check(const struct null_qp *qp, const struct rmem_send_wr *wr)
{
	int ret = rmem_wr_check(&qp->drv.qp, &qp->limits, wr);

	return ret == 0 && wr->opcode != RMEM_WR_RDMA_WRITE ? -EOPNOTSUPP : ret;
}

static int
null_post_send(struct rmem_qp *base, const struct rmem_send_wr *wr, uint16_t nb_wr)
{
	struct null_qp *qp = (struct null_qp *)base;
	struct null_cq *cq = (struct null_cq *)base->send_cq;
	uint32_t state = __atomic_load_n(&qp->state, __ATOMIC_ACQUIRE);
	struct rmem_wc wc = {.qp_num = base->qp_num, .opcode = RMEM_WC_RDMA_WRITE};
	int i, ret = 0;

	if (state == RMEM_QPS_RESET)
		return -EBUSY;
	wc.status = state == RMEM_QPS_ERR ? RMEM_WC_WR_FLUSH_ERR : RMEM_WC_SUCCESS;
	rte_spinlock_lock(&cq->lock); /* QPs of several threads may share the CQ */
	for (i = 0; i < nb_wr; i++) {
		ret = null_check(qp, &wr[i]);
		if (ret == 0 && cq->prod - cq->cons == cq->cq.nb_cqe)
			ret = -ENOSPC;
		if (ret != 0)
			break;
		if (wc.status == RMEM_WC_SUCCESS && (wr[i].flags & RMEM_SEND_SIGNALED) == 0 &&
				(qp->conf.flags & RMEM_QP_SIG_ALL) == 0)
			continue;
		wc.wr_id = wr[i].wr_id;
		cq->ring[cq->prod++ % cq->cq.nb_cqe] = wc;
	}
	rte_spinlock_unlock(&cq->lock);
	return i != 0 ? i : ret;
}

/* max_recv_wr is 0: the receive queue is always full. */
static int
null_post_recv(struct rmem_qp *base, const struct rmem_recv_wr *wr, uint16_t nb_wr)
{
	RTE_SET_USED(wr);
	if (__atomic_load_n(&((struct null_qp *)base)->state, __ATOMIC_ACQUIRE) == RMEM_QPS_RESET)
		return -EBUSY;
	return nb_wr == 0 ? 0 : -ENOSPC;
}

static int
null_poll_cq(struct rmem_cq *base, struct rmem_wc *wc, uint16_t nb_wc)
{
	struct null_cq *cq = (struct null_cq *)base;
	int n;

	rte_spinlock_lock(&cq->lock);
	for (n = 0; n < nb_wc && cq->cons != cq->prod; n++)
		wc[n] = cq->ring[cq->cons++ % cq->cq.nb_cqe];
	rte_spinlock_unlock(&cq->lock);
	return n;
}
/* end of example */

/* example: null_driver */
static const struct rmem_driver null_driver = {
		.version = RMEM_DRIVER_VERSION,
		.name = "null",
		.pd_size = sizeof(struct rmem_pd),
		.mr_size = sizeof(struct rmem_mr_drv),
		.page_list_size = sizeof(struct rmem_fast_reg_page_list),
		.cq_size = sizeof(struct null_cq),
		.qp_size = sizeof(struct null_qp),
		.ops.dev_create = null_dev_create,
		.ops.dev_close = null_dev_close,
		.ops.dev_info_get = null_dev_info_get,
		.ops.pd_alloc = null_pd_alloc,
		.ops.pd_dealloc = null_pd_dealloc,
		.ops.mr_reg = null_mr_reg,
		.ops.mr_dereg = null_mr_dereg,
		.ops.cq_create = null_cq_create,
		.ops.cq_destroy = null_cq_destroy,
		.ops.qp_create = null_qp_create,
		.ops.qp_connect = null_qp_connect,
		.ops.qp_query = null_qp_query,
		.ops.qp_set_error = null_qp_set_error,
		.ops.qp_reset = null_qp_reset,
		.ops.qp_destroy = null_qp_destroy,
		.fp.post_send = null_post_send,
		.fp.post_recv = null_post_recv,
		.fp.poll_cq = null_poll_cq,
};

/* Call once per process; rmem_dev_create("null0", NULL, &dev) then uses the driver. */
static int
null_register(void)
{
	return rmem_driver_register(&null_driver);
}
/* end of example */

static void
setup(void)
{
	struct rmem_pd *pd;
	int ret = null_register();

	if (ret == -ENOSPC)
		test_skip("other tests registered all the drivers there can be");
	/* Known already when the test runs again. */
	TEST_ASSERT(ret == 0 || ret == -EEXIST);
	fx_setup_none();
	fx.a.dev = fx_dev("null0", NULL);
	pd = fx_pd(fx.a.dev);
	fx.a.pd = pd;
	fx.a.buf = fx_mem(FX_PAGE, FX_PAGE);
	fx.a.mr = fx_mr(pd, fx.a.buf, FX_PAGE, RMEM_ACCESS_LOCAL_WRITE);
	fx.a.cq = fx_cq(fx.a.dev, 8);
}

static struct rmem_qp *
make_qp(void)
{
	const struct rmem_qp_conf conf = {
			.send_cq = fx.a.cq,
			.recv_cq = fx.a.cq,
			.max_send_wr = 8,
			.max_send_sge = 1,
			.type = RMEM_QPT_RC,
	};

	return fx_qp_by(fx.a.pd, &conf);
}

TEST(doc_driver, requests_succeed_and_are_flushed_after_an_error)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_send_wr wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, 0, 0);
	struct rmem_qp *qp = make_qp(), *peer = make_qp();

	TEST_ERR(fx_post(qp, &wr), EBUSY);
	TEST_OK(fx_connect(qp, peer));
	wr.wr_id = 7;
	wr.flags = RMEM_SEND_SIGNALED;
	TEST_EQ(fx_post(qp, &wr), 1);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 7);
	TEST_OK(rmem_qp_set_error(qp));
	TEST_EQ(fx_post(qp, &wr), 1);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_WR_FLUSH_ERR);
	TEST_OK(rmem_qp_reset(qp));
	TEST_OK(fx_connect(qp, peer));
}

TEST(doc_driver, post_stops_at_what_is_refused)
{
	struct rmem_send_wr wrs[10];
	struct rmem_qp *qp = make_qp();
	struct rmem_recv_wr recv = {0};
	unsigned int i;

	TEST_OK(fx_connect(qp, qp));
	for (i = 0; i < RTE_DIM(wrs); i++) {
		wrs[i] = fx_rdma(RMEM_WR_RDMA_WRITE, NULL, 0, 0);
		wrs[i].flags = i != 0 ? RMEM_SEND_SIGNALED : 0;
	}
	/* One without a completion, and as many as the CQ holds. */
	TEST_EQ(rmem_post_send(qp, wrs, 10), 9);
	TEST_ERR(rmem_post_send(qp, &wrs[9], 1), ENOSPC);
	TEST_ERR(rmem_post_recv(qp, &recv, 1), ENOSPC);
	wrs[0].opcode = RMEM_WR_SEND;
	TEST_ERR(rmem_post_send(qp, wrs, 1), EOPNOTSUPP);
	wrs[0].opcode = RMEM_WR_OPCODE_NB;
	TEST_ERR(rmem_post_send(qp, wrs, 1), EINVAL);
}

/* doc/driver_rules.md: results of an operation that is NULL and of a missing capability. */
TEST(doc_driver, class_refuses_operations_without_an_op)
{
	struct rmem_fast_reg_page_list *list = NULL;
	struct rmem_dev_stats stats;
	struct rmem_mr *mr = NULL;

	TEST_ERR(rmem_dev_stats_get(fx.a.dev, &stats), EOPNOTSUPP);
	TEST_ERR(rmem_fast_reg_mr_alloc(fx.a.pd, 1, &mr), EOPNOTSUPP);
	TEST_ERR(rmem_fast_reg_page_list_alloc(fx.a.dev, 1, &list), EOPNOTSUPP);
	TEST_ERR(rmem_mr_reg(fx.a.pd, fx.a.buf, 8, 0, RMEM_ACCESS_REMOTE_READ, &mr), EOPNOTSUPP);
}

TEST(doc_driver, one_object_too_many_is_enospc)
{
	struct rmem_cq_conf conf = {.nb_cqe = 1};
	struct rmem_cq *cq = NULL;
	unsigned int i;

	for (i = 1; i < NULL_MAX; i++)
		TEST_ASSERT(fx_cq(fx.a.dev, 1) != NULL);
	TEST_ERR(rmem_cq_create(fx.a.dev, &conf, &cq), ENOSPC);
}

TEST_SUITE(doc_driver, setup, fx_teardown);
