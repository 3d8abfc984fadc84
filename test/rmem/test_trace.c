/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Control calls and errors are traced. The cases only make them happen and print what has to be in
 * the trace, as "wanted: NAME FIELD=VALUE..."; app/test_trace.py reads the trace. With traces off
 * nothing is traced, and all calls work as before.
 */

#define ALLOW_EXPERIMENTAL_API /* trace points in DPDK 22.11 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mempool.h>
#include <rte_trace.h>
#include <rte_trace_point.h>

#include <rmem_driver.h>
#include <rmem_mbuf.h>
#include <rmem_pool.h>

#include "lease/lease.h"

#define SIZE     4096u
#define NB_MBUFS 63u
#define USES     255u /* leases of a key before its quarantine */
#define BAD_KEY  UINT32_C(0xdead00)

static void expect(const char *format, ...) __rte_format_printf(1, 2);

/* An event of this name and these fields has to be there. */
static void
expect(const char *format, ...)
{
	va_list args;

	printf("wanted: ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

static uint64_t
at(const void *ptr)
{
	return (uintptr_t)ptr;
}

TEST_WITH(trace, trace_points_are_enabled_on_request, fx_setup_none)
{
	static const char *const names[] = {"lib.rmem.mr.reg", "lib.rmem.error.call",
			"lib.rmem.error.wc", "lib.rmem.pool.create", "lib.rmem.lease.quarantine"};
	const char *enabled = getenv("RMEM_TEST_TRACE");
	rte_trace_point_t *point;
	size_t i;

	/* Part of the names that --trace enables, "lib.rmem" or "error". */
	TEST_EQ(rte_trace_is_enabled(), enabled != NULL);
	for (i = 0; i < RTE_DIM(names); i++) {
		point = rte_trace_point_lookup(names[i]);
		TEST_ASSERT(point != NULL);
		TEST_EQ(rte_trace_point_is_enabled(point),
				enabled != NULL && strstr(names[i], enabled) != NULL);
	}
}

TEST(trace, registrations_are_traced)
{
	struct rmem_mr *mr = fx_mr(fx.a.pd, fx.a.buf, SIZE, FX_ACCESS), *other;
	enum rmem_rereg_result result;

	expect("lib.rmem.mr.reg pd=%" PRIu64 " mr=%" PRIu64 " addr=%" PRIu64
	       " length=%u iova=%" PRIu64 " access=%u lkey=%u rkey=%u",
			at(fx.a.pd), at(mr), at(fx.a.buf), SIZE, mr->iova, FX_ACCESS, mr->lkey,
			mr->rkey);
	TEST_OK(rmem_mr_reg_shared(mr, fx.a.pd, 0, RMEM_ACCESS_LOCAL_WRITE, &other));
	expect("lib.rmem.mr.share from=%" PRIu64 " mr=%" PRIu64 " access=1 lkey=%u", at(mr),
			at(other), other->lkey);
	TEST_OK(rmem_mr_dereg(other));
	TEST_OK(rmem_mr_rereg(mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, RMEM_ACCESS_LOCAL_WRITE,
			&result));
	expect("lib.rmem.mr.rereg mr=%" PRIu64 " flags=%u result=%d access=1 lkey=%u", at(mr),
			RMEM_REREG_CHANGE_ACCESS, result, mr->lkey);
	expect("lib.rmem.mr.dereg mr=%" PRIu64 " lkey=%u rkey=%u", at(mr), mr->lkey, mr->rkey);
	TEST_OK(fx_release(mr));
}

TEST(trace, registrations_of_other_kinds_are_traced)
{
	struct rmem_mr *fast = fx_fast_mr(fx.a.pd, 3), *mkey = fx_mkey(fx.a.pd, 5), *mr;
	struct rmem_mr_attr attr = {.addr = fx.a.buf, .length = SIZE, .access = FX_ACCESS};
	struct rmem_event event;

	expect("lib.rmem.mr.alloc mr=%" PRIu64 " type=%d size=3", at(fast), RMEM_MR_TYPE_FAST_REG);
	expect("lib.rmem.mr.alloc mr=%" PRIu64 " type=%d size=5", at(mkey), RMEM_MR_TYPE_INDIRECT);
	attr.flags = RMEM_MR_DISABLED;
	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	TEST_OK(rmem_mr_enable(mr));
	expect("lib.rmem.mr.enable mr=%" PRIu64 " rkey=%u", at(mr), mr->rkey);
	attr.flags = 0;
	attr.eq = fx_eq(fx.a.dev, 1);
	TEST_OK(fx_reg_attr(fx.a.pd, &attr, &mr));
	event = fx_event(attr.eq);
	TEST_EQ(event.status, 0);
	expect("lib.rmem.mr.start mr=%" PRIu64 " length=%u", at(mr), SIZE);
	expect("lib.rmem.mr.complete mr=%" PRIu64 " status=0 lkey=%u", at(mr), mr->lkey);
}

TEST_WITH(trace, windows_are_traced, fx_setup_mw)
{
	expect("lib.rmem.mw.alloc mw=%" PRIu64 " type=2 rkey=%u", at(fx.mw.two), fx.mw.two->rkey);
	expect("lib.rmem.mw.dealloc mw=%" PRIu64 " rkey=%u", at(fx.mw.two), fx.mw.two->rkey);
	TEST_OK(fx_release(fx.mw.two));
}

TEST(trace, qps_are_traced)
{
	struct rmem_cq *cq = fx_cq(fx.a.dev, 77);
	struct rmem_qp *qp = fx_qp(fx.a.pd, cq, 7);
	uint32_t number;

	number = qp->qp_num;
	expect("lib.rmem.cq.create dev=soft0 cq=%" PRIu64 " nb_cqe=%u", at(cq), cq->nb_cqe);
	expect("lib.rmem.qp.create pd=%" PRIu64 " qp=%" PRIu64 " qp_num=%u send_cq=%" PRIu64
	       " max_send_wr=7",
			at(fx.a.pd), at(qp), number, at(cq));
	TEST_OK(fx_connect(qp, qp));
	expect("lib.rmem.qp.connect qp=%" PRIu64 " remote_qp_num=%u", at(qp), number);
	TEST_OK(rmem_qp_set_error(qp));
	expect("lib.rmem.qp.state qp_num=%u state=%d", number, RMEM_QPS_ERR);
	TEST_OK(rmem_qp_reset(qp));
	expect("lib.rmem.qp.state qp_num=%u state=%d", number, RMEM_QPS_RESET);
	TEST_OK(fx_release(qp));
	expect("lib.rmem.qp.destroy qp_num=%u", number);
	TEST_OK(rmem_cq_resize(cq, 200));
	expect("lib.rmem.cq.resize cq=%" PRIu64 " nb_cqe=%u", at(cq), cq->nb_cqe);
	TEST_OK(fx_release(cq));
	expect("lib.rmem.cq.destroy cq=%" PRIu64, at(cq));
}

TEST(trace, ahs_are_traced)
{
	const struct rmem_ah_attr path = {.dlid = 1, .port_num = 1};
	struct rmem_ah *ah;

	TEST_OK(rmem_ah_create(fx.a.pd, &path, &ah));
	expect("lib.rmem.ah.create pd=%" PRIu64 " ah=%" PRIu64 " dlid=1", at(fx.a.pd), at(ah));
	expect("lib.rmem.ah.destroy ah=%" PRIu64, at(ah));
	TEST_OK(rmem_ah_destroy(ah));
}

TEST(trace, multicast_is_traced)
{
	static const uint8_t group[16] = {0xff, 0x12};
	struct rmem_qp_conf conf = fx_qp_conf(fx.a.cq, 1);
	struct rmem_qp *qp;

	conf.type = RMEM_QPT_UD;
	qp = fx_qp_by(fx.a.pd, &conf);
	TEST_OK(rmem_qp_attach_mcast(qp, group, 0xc000));
	expect("lib.rmem.qp.mcast qp=%" PRIu64 " qp_num=%u is_attached=1", at(qp), qp->qp_num);
	TEST_OK(rmem_qp_detach_mcast(qp, group, 0xc000));
	expect("lib.rmem.qp.mcast qp=%" PRIu64 " qp_num=%u is_attached=0", at(qp), qp->qp_num);
}

TEST(trace, srqs_are_traced)
{
	const struct rmem_srq_conf conf = {.max_wr = 9, .max_sge = 2};
	const struct rmem_srq_attr attr = {.srq_limit = 3};
	struct rmem_srq *srq;

	TEST_OK(rmem_srq_create(fx.a.pd, &conf, &srq));
	expect("lib.rmem.srq.create pd=%" PRIu64 " srq=%" PRIu64 " max_wr=9 max_sge=2", at(fx.a.pd),
			at(srq));
	TEST_OK(rmem_srq_modify(srq, &attr, RMEM_SRQ_LIMIT));
	expect("lib.rmem.srq.modify srq=%" PRIu64 " mask=%u srq_limit=3", at(srq), RMEM_SRQ_LIMIT);
	expect("lib.rmem.srq.destroy srq=%" PRIu64, at(srq));
	TEST_OK(rmem_srq_destroy(srq));
}

TEST(trace, device_memory_is_traced)
{
	const struct rmem_dm_conf conf = {.length = 100};
	struct rmem_dm *dm;

	TEST_OK(rmem_dm_alloc(fx.a.dev, &conf, &dm));
	expect("lib.rmem.dm.alloc dev=soft0 dm=%" PRIu64 " length=100", at(dm));
	expect("lib.rmem.dm.free dm=%" PRIu64, at(dm));
	TEST_OK(rmem_dm_free(dm));
}

TEST(trace, xrc_domains_are_traced)
{
	const struct rmem_xrcd_conf conf = {.flags = 0};
	struct rmem_xrcd *xrcd;

	TEST_OK(rmem_xrcd_alloc(fx.a.dev, &conf, &xrcd));
	expect("lib.rmem.xrcd.alloc dev=soft0 xrcd=%" PRIu64 " handle=%u", at(xrcd), xrcd->handle);
	expect("lib.rmem.xrcd.dealloc xrcd=%" PRIu64, at(xrcd));
	TEST_OK(rmem_xrcd_dealloc(xrcd));
}

TEST_WITH(trace, devices_and_pds_are_traced, fx_setup_none)
{
	struct rmem_dev *dev = fx_dev("soft77", NULL);
	struct rmem_pd *pd = fx_pd(dev);

	expect("lib.rmem.dev.create dev=soft77 dev_id=%u", dev->obj.dev_id);
	expect("lib.rmem.pd.alloc dev=soft77 pd=%" PRIu64, at(pd));
	TEST_OK(fx_release(pd));
	expect("lib.rmem.pd.dealloc pd=%" PRIu64, at(pd));
	TEST_OK(fx_release(dev));
	expect("lib.rmem.dev.close dev=soft77");
}

TEST(trace, refused_calls_are_traced)
{
	struct rmem_dev *dev;
	struct rmem_mr *mr;

	TEST_ERR(rmem_pd_dealloc(fx.a.pd), EBUSY);
	expect("lib.rmem.error.call call=rmem_pd_dealloc obj=%" PRIu64 " error=%d", at(fx.a.pd),
			EBUSY);
	TEST_ERR(rmem_mr_reg(fx.a.pd, NULL, 64, 0, FX_ACCESS, &mr), EINVAL);
	expect("lib.rmem.error.call call=rmem_mr_reg_attr obj=%" PRIu64 " error=%d", at(fx.a.pd),
			EINVAL);
	TEST_ERR(rmem_dev_create("hard0", NULL, &dev), ENODEV);
	expect("lib.rmem.error.call call=rmem_dev_create obj=0 error=%d", ENODEV);
	TEST_ERR(rmem_qp_connect(fx.a.qp, NULL), EINVAL);
	expect("lib.rmem.error.call call=rmem_qp_connect obj=%" PRIu64 " error=%d", at(fx.a.qp),
			EINVAL);
}

TEST(trace, failed_requests_are_traced)
{
	struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_send_wr wr = fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.b.buf), BAD_KEY);

	wr.wr_id = 4711;
	TEST_EQ(fx_post_recv(fx.a.qp, 4712, &sge, 1), 1);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_REM_ACCESS_ERR);
	expect("lib.rmem.error.wc dev=soft0 qp_num=%u wr_id=4711 status=%d", fx.a.qp->qp_num,
			RMEM_WC_REM_ACCESS_ERR);
	expect("lib.rmem.error.wc dev=soft0 qp_num=%u wr_id=4712 status=%d", fx.a.qp->qp_num,
			RMEM_WC_WR_FLUSH_ERR);
	/* Trace points of an external driver. */
	rmem_wc_trace_error(fx.a.dev->obj.dev_id, 99, 4713, RMEM_WC_GENERAL_ERR, 98);
	expect("lib.rmem.error.wc dev=soft0 qp_num=99 wr_id=4713 status=%d vendor_err=98",
			RMEM_WC_GENERAL_ERR);
}

/* The receive fails, and with it the request. */
TEST(trace, failed_receives_are_traced)
{
	struct rmem_sge from = fx_sge(fx.a.mr, 0, 200), to = fx_sge(fx.b.mr, 0, 100);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);

	wr.wr_id = 4714;
	TEST_EQ(fx_post_recv(fx.b.qp, 4715, &to, 1), 1);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_REM_INV_REQ_ERR);
	expect("lib.rmem.error.wc qp_num=%u wr_id=4714 status=%d", fx.a.qp->qp_num,
			RMEM_WC_REM_INV_REQ_ERR);
	expect("lib.rmem.error.wc qp_num=%u wr_id=4715 status=%d", fx.b.qp->qp_num,
			RMEM_WC_LOC_LEN_ERR);
}

TEST(trace, pools_are_traced)
{
	const struct rmem_pool_conf conf = {.name = "trace_pool",
			.nb_bufs = 31,
			.buf_size = SIZE,
			.access = RMEM_ACCESS_LOCAL_WRITE,
			.socket_id = SOCKET_ID_ANY};
	struct rmem_pool *pool;
	struct rmem_sge sge;

	TEST_OK(rmem_pool_create(fx.a.pd, &conf, &pool));
	expect("lib.rmem.pool.create name=trace_pool pd=%" PRIu64 " pool=%" PRIu64
	       " nb_bufs=31 buf_size=%u access=1 nb_mrs=1",
			at(fx.a.pd), at(pool), SIZE);
	TEST_OK(rmem_pool_get_sges(pool, &sge, 1));
	TEST_ERR(rmem_pool_destroy(pool), EBUSY);
	expect("lib.rmem.error.call call=rmem_pool_destroy obj=%" PRIu64 " error=%d", at(pool),
			EBUSY);
	rmem_pool_put_sges(pool, &sge, 1);
	TEST_OK(rmem_pool_destroy(pool));
	expect("lib.rmem.pool.destroy pool=%" PRIu64, at(pool));
}

TEST(trace, mempools_are_traced)
{
	const struct rmem_pktmbuf_pool_conf conf = {.name = "trace_mbufs",
			.nb_mbufs = NB_MBUFS,
			.data_room_size = RTE_MBUF_DEFAULT_BUF_SIZE,
			.access = RMEM_ACCESS_LOCAL_WRITE,
			.socket_id = SOCKET_ID_ANY};
	struct rmem_pd *pd = fx_pd(fx.a.dev);
	struct rmem_mempool *mbufs, *reg;

	TEST_OK(rmem_pktmbuf_pool_create(fx.a.pd, &conf, &mbufs));
	expect("lib.rmem.pktmbuf.create name=trace_mbufs pd=%" PRIu64 " reg=%" PRIu64
	       " nb_mbufs=%u data_room_size=%u",
			at(fx.a.pd), at(mbufs), NB_MBUFS, RTE_MBUF_DEFAULT_BUF_SIZE);
	TEST_OK(rmem_mempool_register(mbufs->mp, pd, RMEM_ACCESS_LOCAL_WRITE, &reg));
	expect("lib.rmem.mempool.register name=trace_mbufs pd=%" PRIu64 " reg=%" PRIu64
	       " nb_mrs=1 registered=%" PRIu64,
			at(pd), at(reg), reg->registered);
	TEST_OK(rmem_mempool_unregister(reg));
	expect("lib.rmem.mempool.unregister reg=%" PRIu64, at(reg));
	TEST_OK(rmem_pktmbuf_pool_destroy(mbufs));
	expect("lib.rmem.pktmbuf.destroy reg=%" PRIu64, at(mbufs));
	TEST_OK(rmem_extbuf_mr_add(fx.a.mr));
	TEST_OK(rmem_extbuf_mr_del(fx.a.mr));
	expect("lib.rmem.extbuf.add mr=%" PRIu64 " addr=%" PRIu64 " length=%u", at(fx.a.mr),
			at(fx.a.buf), FX_BUF_SIZE);
	expect("lib.rmem.extbuf.del mr=%" PRIu64, at(fx.a.mr));
}

TEST(trace_lease, leases_are_traced)
{
	const struct rmem_lease_req req = lx_req(0, 0, RMEM_ACCESS_REMOTE_WRITE);
	uint32_t i;

	lx.conf.max_leases = 1;
	lx.conf.quarantine_us = 1;
	lx_remake();
	expect("lib.rmem.lease.create ctx=%" PRIu64 " qp_num=%u max_leases=1", at(lx.ctx),
			fx.a.qp->qp_num);
	for (i = 0; i < USES; i++) {
		lx_grant(1, RMEM_ACCESS_REMOTE_WRITE);
		lx_revoke(1);
	}
	expect("lib.rmem.lease.quarantine ctx=%" PRIu64 " rkey=%u quarantines=1", at(lx.ctx),
			lx.ended[0]->rkey);
	TEST_ERR(rmem_lease_grant(lx.ctx, &req, 1, lx.lease), EINVAL);
	expect("lib.rmem.lease.refuse ctx=%" PRIu64 " mr=%" PRIu64 " addr=%" PRIu64
	       " length=0 access=%u error=%d",
			at(lx.ctx), at(req.mr), at(req.addr), req.access, EINVAL);
	TEST_ASSERT(rmem_lease_trim(lx.ctx) >= 0);
	expect("lib.rmem.lease.trim ctx=%" PRIu64, at(lx.ctx));
}

TEST(trace_lease, lost_leases_are_traced)
{
	lx_grant(1, RMEM_ACCESS_REMOTE_WRITE);
	TEST_OK(rmem_qp_set_error(fx.a.qp));
	TEST_OK(rmem_lease_revoke(lx.ctx, lx.lease, 1));
	lx_wait_state(lx.lease[0], RMEM_LEASE_LOST);
	expect("lib.rmem.lease.lose ctx=%" PRIu64 " rkey=%u status=%d", at(lx.ctx),
			lx.lease[0]->rkey, RMEM_WC_WR_FLUSH_ERR);
	TEST_ERR(rmem_lease_recover(lx.ctx), EBUSY);
	expect("lib.rmem.error.call call=rmem_lease_recover obj=%" PRIu64 " error=%d", at(lx.ctx),
			EBUSY);
	lx_recover();
	expect("lib.rmem.lease.recover ctx=%" PRIu64 " qp_num=%u nb_lost=1", at(lx.ctx),
			fx.a.qp->qp_num);
	expect("lib.rmem.lease.destroy ctx=%" PRIu64, at(lx.ctx));
	lx_take(1, RMEM_LEASE_END_REVOKED);
}

/* Also where nothing is traced. */
TEST_WITH(trace, trace_is_saved, fx_setup_none)
{
	TEST_OK(rte_trace_save());
}

TEST_SUITE(trace, fx_setup, fx_teardown);

TEST_SUITE(trace_lease, lx_setup_auto, lx_teardown);
