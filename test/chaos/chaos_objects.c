/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Objects created and destroyed concurrently with the lcores: PDs, CQs, QPs, windows, lists, pools,
 * devices.
 */

#include <stdio.h>
#include <string.h>

#include <rte_mempool.h>

#include <rmem_mbuf.h>
#include <rmem_mempool.h>
#include <rmem_pool.h>

#include "chaos.h"

static void
arm(struct ch_thread *t)
{
	ch_fail_allocs(ch_one_in(t, 2) ? 6 : 0, t->random);
}

static void
disarm(struct ch_thread *t)
{
	ch_fail_allocs(0, 0);
	t->nb_failed_allocs = ch_failed_allocs();
}

/* A PD with a QP that is connected to itself and one CQ, and all of it away again. */
static bool
use_queues(struct ch_thread *t)
{
	const struct rmem_cq_conf cq_conf = {.nb_cqe = 1 + ch_below(t, 64)};
	struct rmem_qp_conf conf = {.max_send_wr = 4,
			.max_recv_wr = 4,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.type = RMEM_QPT_RC,
			.access = RMEM_ACCESS_REMOTE};
	struct rmem_qp_conn conn = {.timeout = 1};
	struct rmem_qp_attr attr;
	struct rmem_cq *cq = NULL;
	struct rmem_qp *qp = NULL;
	struct rmem_pd *pd = NULL;
	int ret;

	arm(t);
	ret = rmem_pd_alloc(ch.dev, &pd);
	if (ret == 0)
		ret = rmem_cq_create(ch.dev, &cq_conf, &cq);
	if (ret == 0) {
		conf.send_cq = cq;
		conf.recv_cq = cq;
		ret = rmem_qp_create(pd, &conf, &qp);
	}
	disarm(t);
	if (!CH_ALLOWED(t, ret, ENOMEM))
		return false;
	if (ret == 0) {
		ret = rmem_qp_query(qp, &attr);
		conn.remote = attr.addr;
		if (ret == 0)
			ret = rmem_qp_connect(qp, &conn);
		if (ret == 0)
			ret = rmem_qp_set_error(qp);
		if (ret != 0)
			return CH_FAIL(t, "a QP of its own: %s", strerror(-ret));
	}
	ret = rmem_qp_destroy(qp);
	if (ret == 0)
		ret = rmem_cq_destroy(cq);
	if (ret == 0)
		ret = rmem_pd_dealloc(pd);
	return CH_CHECK(t, ret == 0, "release of a QP, CQ and PD: %s", strerror(-ret));
}

static bool
use_keys(struct ch_thread *t)
{
	struct rmem_fast_reg_page_list *list = NULL;
	struct rmem_mr *fast = NULL, *mkey = NULL, *mr = NULL;
	struct rmem_mw *mw = NULL;
	struct rmem_eq *eq = NULL;
	int ret;

	arm(t);
	ret = rmem_fast_reg_mr_alloc(ch.pds[0], 16, &fast);
	if (ret == 0)
		ret = rmem_mkey_alloc(ch.pds[0], 16, &mkey);
	if (ret == 0)
		ret = rmem_mw_alloc(ch.pds[0], RMEM_MW_TYPE_1 + ch_below(t, 2), &mw);
	if (ret == 0)
		ret = rmem_fast_reg_page_list_alloc(ch.dev, 16, &list);
	if (ret == 0)
		ret = rmem_eq_create(ch.dev, &(struct rmem_eq_conf){.nb_events = 4}, &eq);
	if (ret == 0)
		ret = rmem_mr_reg(ch.pds[0], NULL, CH_PAGE, 0, CH_ACCESS | RMEM_ACCESS_ALLOCATE_MR,
				&mr);
	disarm(t);
	if (!CH_ALLOWED(t, ret, ENOMEM))
		return false;
	ret = rmem_mr_dereg(fast);
	if (ret == 0)
		ret = rmem_mr_dereg(mkey);
	if (ret == 0)
		ret = rmem_mr_dereg(mr);
	if (ret == 0)
		ret = rmem_mw_dealloc(mw);
	if (ret == 0)
		ret = rmem_fast_reg_page_list_free(list);
	if (ret == 0)
		ret = rmem_eq_destroy(eq);
	return CH_CHECK(t, ret == 0, "release of what has keys: %s", strerror(-ret));
}

static bool
use_pool(struct ch_thread *t)
{
	struct rmem_pool_conf conf = {.nb_bufs = 8,
			.buf_size = 64 + ch_below(t, 2000),
			.access = CH_ACCESS,
			.socket_id = SOCKET_ID_ANY};
	struct rmem_mempool *reg = NULL;
	struct rmem_pool *pool;
	struct rmem_sge sge[4];
	char name[16];
	int ret;

	snprintf(name, sizeof(name), "chaos%u", t->index);
	conf.name = name;
	arm(t);
	ret = rmem_pool_create(ch.pds[0], &conf, &pool);
	if (ret == 0) {
		ret = rmem_mempool_register(pool->mp, ch.pds[1], CH_ACCESS, &reg);
		disarm(t);
		if (!CH_ALLOWED(t, ret, ENOMEM))
			return false;
		ret = rmem_pool_get_sges(pool, sge, 4);
		if (ret == 0 && reg != NULL)
			ret = rmem_mempool_audit(reg);
		if (ret == 0)
			rmem_pool_put_sges(pool, sge, 4);
		if (ret == 0)
			ret = rmem_mempool_unregister(reg);
		if (ret == 0)
			ret = rmem_pool_destroy(pool);
		return CH_CHECK(t, ret == 0, "a pool: %s", strerror(-ret));
	}
	disarm(t);
	return CH_ALLOWED(t, ret, ENOMEM);
}

static bool
use_mbufs(struct ch_thread *t)
{
	struct rmem_pktmbuf_pool_conf conf = {.nb_mbufs = 8,
			.data_room_size = 512,
			.access = CH_ACCESS,
			.socket_id = SOCKET_ID_ANY};
	struct rmem_mempool *reg;
	struct rmem_sge sge;
	struct rte_mbuf *m;
	char name[16];
	int ret;

	snprintf(name, sizeof(name), "mbufs%u", t->index);
	conf.name = name;
	arm(t);
	ret = rmem_pktmbuf_pool_create(ch.pds[0], &conf, &reg);
	disarm(t);
	if (ret != 0)
		return CH_ALLOWED(t, ret, ENOMEM);
	m = rte_pktmbuf_alloc(reg->mp);
	if (m == NULL || rmem_mbuf_tailroom_sges(reg, m, &sge, 1) != 1)
		return CH_FAIL(t, "an mbuf has no key");
	rte_pktmbuf_free(m);
	ret = rmem_pktmbuf_pool_destroy(reg);
	return CH_CHECK(t, ret == 0, "rmem_pktmbuf_pool_destroy: %s", strerror(-ret));
}

static bool
use_device(struct ch_thread *t)
{
	struct rmem_dev *dev = NULL;
	char name[16];
	int ret;

	snprintf(name, sizeof(name), "soft%u", 10 + t->index);
	arm(t);
	ret = rmem_dev_create(name, "max_mr=16,max_mw=16,max_qp=4", &dev);
	disarm(t);
	if (!CH_ALLOWED(t, ret, ENOMEM))
		return false;
	ret = rmem_dev_close(dev);
	return CH_CHECK(t, ret == 0, "rmem_dev_close: %s", strerror(-ret));
}

/* Calls that any thread may make on the QPs of lcores. */
static bool
disturb(struct ch_thread *t)
{
	struct ch_qp *q = &ch.qps[ch_below(t, ch.nb_qps)];
	struct rmem_dev_stats stats;
	struct rmem_qp_attr attr;
	int ret = 0;

	ch_note(t, "set_error of QP %u", q->index);
	ch_lock(&q->lock);
	if (q->qp != NULL && ch_one_in(t, 8))
		ret = rmem_qp_set_error(q->qp);
	if (q->qp != NULL && (ret == 0 || ret == -EBUSY))
		ret = rmem_qp_query(q->qp, &attr);
	ch_unlock(&q->lock);
	if (ret == 0)
		ret = rmem_dev_stats_get(ch.dev, &stats);
	return CH_CHECK(t, ret == 0, "a QP of another thread: %s", strerror(-ret));
}

bool
ch_objects_tick(struct ch_thread *t)
{
	const uint32_t what = ch_below(t, 12);

	ch_note(t, "objects %u", what);
	switch (what) {
	case 0:
	case 1:
		return use_queues(t);
	case 2:
	case 3:
		return use_keys(t);
	case 4:
		return use_pool(t);
	case 5:
		return use_mbufs(t);
	case 6:
		return use_device(t);
	default:
		return disturb(t);
	}
}
