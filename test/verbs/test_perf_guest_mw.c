/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * What binding a type 2 window and invalidating it costs through the driver, against the same by
 * ibv_wr_* by hand: bursts of 32 such pairs on a QP that is connected to itself, of which the last
 * request is signaled. Both use that one QP, by hand with a window that the driver does not know.
 *
 * On rdma_rxe in an emulated guest the times mean nothing, their ratio does. Each burst finds an
 * idle device: newer kernels send from a thread that is still awake for who posts again at once,
 * and must be woken for who takes a little longer.
 */

#include <rte_cycles.h>
#include <rte_malloc.h>

#include "../../drivers/verbs/rverbs_mw.h"
#include "../perf.h"
#include "../test.h"

#define BURSTS  100
#define IDLE_US 100
#define BUF     4096

static struct {
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_cq *cq;
	struct rmem_qp *qp;
	struct rmem_mr *mr;
	struct rmem_mw *mw;
	struct ibv_mw *ibv_mw;
	void *buf;
	struct rmem_send_wr wr[2 * PERF_BURST]; /* but for the keys */
} gm;

static int
gm_wait(struct ibv_cq *cq)
{
	uint64_t end = rte_get_timer_cycles() + 30 * rte_get_timer_hz();
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(cq, 1, &wc);
	} while (n == 0 && rte_get_timer_cycles() < end);
	return n == 1 ? (int)wc.status : -1;
}

static int
gm_burst_by_hand(void)
{
	struct ibv_qp_ex *ex = rverbs_qp_of(gm.qp)->ex;
	struct ibv_mw_bind_info info = {.mr = rverbs_mr_of(gm.mr)->ibv,
			.addr = (uintptr_t)gm.buf,
			.length = BUF,
			.mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	unsigned int i;

	ibv_wr_start(ex);
	for (i = 0; i < PERF_BURST; i++) {
		uint32_t rkey = ibv_inc_rkey(gm.ibv_mw->rkey);

		ex->wr_id = i;
		ex->wr_flags = 0;
		ibv_wr_bind_mw(ex, gm.ibv_mw, rkey, &info);
		gm.ibv_mw->rkey = rkey;
		ex->wr_flags = i == PERF_BURST - 1 ? IBV_SEND_SIGNALED : 0;
		ibv_wr_local_inv(ex, rkey);
	}
	if (ibv_wr_complete(ex) != 0)
		return -1;
	return gm_wait(rverbs_cq_of(gm.cq)->ibv);
}

/* The best of some bursts: the guest's processors are taken away for longer than a burst. */
static double
gm_best(int (*burst)(void))
{
	uint64_t start, took, best = UINT64_MAX;
	unsigned int i;

	for (i = 0; i < BURSTS; i++) {
		rte_delay_us_block(IDLE_US);
		start = rte_rdtsc_precise();
		if (burst() != IBV_WC_SUCCESS)
			return -1.0;
		took = rte_rdtsc_precise() - start;
		best = RTE_MIN(best, took);
	}
	return perf_ns(best, PERF_BURST);
}

static double
pairs_by_hand(void *arg)
{
	RTE_SET_USED(arg);
	return gm_best(gm_burst_by_hand);
}

static int
gm_burst_by_driver(void)
{
	uint64_t end = rte_get_timer_cycles() + 30 * rte_get_timer_hz();
	struct rmem_send_wr *wr = gm.wr;
	uint32_t rkey = gm.mw->rkey;
	struct rmem_wc wc;
	unsigned int i;
	int n;

	for (i = 0; i < 2 * PERF_BURST; i += 2) {
		uint8_t tag = rmem_rkey_next_tag(rkey);

		wr[i].bind_mw.key_tag = tag;
		rkey = rmem_rkey_of_tag(rkey, tag);
		wr[i + 1].invalidate_rkey = rkey;
	}
	if (rmem_post_send(gm.qp, wr, 2 * PERF_BURST) != (int)(2 * PERF_BURST))
		return -1;
	do {
		n = rmem_poll_cq(gm.cq, &wc, 1);
	} while (n == 0 && rte_get_timer_cycles() < end);
	return n == 1 ? wc.status : -1;
}

static double
pairs_by_driver(void *arg)
{
	RTE_SET_USED(arg);
	return gm_best(gm_burst_by_driver);
}

static int
gm_open_qp(void)
{
	struct rmem_cq_conf cq_conf = {.nb_cqe = 4 * PERF_BURST};
	struct rmem_qp_conf conf = {.max_send_wr = 4 * PERF_BURST,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.type = RMEM_QPT_RC};
	struct rmem_qp_conn conn = {.timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
	struct rmem_qp_attr attr;

	TEST_OK(rmem_cq_create(gm.dev, &cq_conf, &gm.cq));
	conf.send_cq = conf.recv_cq = gm.cq;
	TEST_OK(rmem_qp_create(gm.pd, &conf, &gm.qp));
	TEST_OK(rmem_qp_query(gm.qp, &attr));
	conn.remote = attr.addr;
	TEST_OK(rmem_qp_connect(gm.qp, &conn));
	TEST_ASSERT(rverbs_qp_of(gm.qp)->ex != NULL);
	return TEST_SUCCESS;
}

static void
gm_fill(void)
{
	struct rmem_send_wr *wr = gm.wr;
	unsigned int i;

	for (i = 0; i < 2 * PERF_BURST; i += 2) {
		wr[i].opcode = RMEM_WR_BIND_MW;
		wr[i].bind_mw.mw = gm.mw;
		wr[i].bind_mw.mr = gm.mr;
		wr[i].bind_mw.addr = (uintptr_t)gm.buf;
		wr[i].bind_mw.length = BUF;
		wr[i].bind_mw.access = RMEM_ACCESS_REMOTE_WRITE;
		wr[i + 1].opcode = RMEM_WR_LOCAL_INV;
	}
	wr[2 * PERF_BURST - 1].flags = RMEM_SEND_SIGNALED;
}

static int
gm_open(void)
{
	const char *args = getenv("RMEM_TEST_ARGS");

	TEST_OK(rmem_dev_create("verbs0", args, &gm.dev));
	TEST_OK(rmem_pd_alloc(gm.dev, &gm.pd));
	gm.buf = rte_malloc(NULL, BUF, BUF);
	TEST_ASSERT(gm.buf != NULL);
	TEST_OK(rmem_mr_reg(gm.pd, gm.buf, BUF, 0,
			RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_MW_BIND,
			&gm.mr));
	TEST_RUN(gm_open_qp());
	TEST_OK(rmem_mw_alloc(gm.pd, RMEM_MW_TYPE_2, &gm.mw));
	gm.ibv_mw = ibv_alloc_mw(rverbs_pd_of(gm.pd)->ibv, IBV_MW_TYPE_2);
	TEST_ASSERT(gm.ibv_mw != NULL);
	gm_fill();
	return TEST_SUCCESS;
}

static int
gm_close(void)
{
	TEST_ASSERT(ibv_dealloc_mw(gm.ibv_mw) == 0);
	TEST_OK(rmem_mw_dealloc(gm.mw));
	TEST_OK(rmem_qp_destroy(gm.qp));
	TEST_OK(rmem_cq_destroy(gm.cq));
	TEST_OK(rmem_mr_dereg(gm.mr));
	rte_free(gm.buf);
	TEST_OK(rmem_pd_dealloc(gm.pd));
	TEST_OK(rmem_dev_close(gm.dev));
	return TEST_SUCCESS;
}

static int
guest_mw_pair(void)
{
	struct perf_row row = {.name = "guest_mw_pair",
			.unit = "ns/pair",
			.yardstick = "by hand",
			.bar = "ratio <= 1.11"};

	TEST_RUN(gm_open());
	TEST_OK(perf_compare(pairs_by_hand, pairs_by_driver, NULL, &row.baseline, &row.value));
	row.ratio = row.value / row.baseline;
	TEST_RUN(perf_report(&row));
	return gm_close();
}

REGISTER_RMEM_TEST(guest_mw_pair_perf_autotest, guest_mw_pair);
