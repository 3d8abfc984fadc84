/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Shared by perf tests on an RDMA device; see guest.h. */

#include <stdlib.h>

#include "guest.h"

#define BURSTS  100
#define IDLE_US 100
#define LIMIT_S 300 /* for a completion to come */

struct guest guest;

static void
guest_open_qp(void)
{
	struct rmem_cq_conf cq_conf = {.nb_cqe = 4 * PERF_BURST};
	struct rmem_qp_conf conf = {.max_send_wr = 4 * PERF_BURST,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.access = RMEM_ACCESS_REMOTE_WRITE,
			.type = RMEM_QPT_RC};
	struct rmem_qp_conn conn = {.timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
	struct rmem_qp_attr attr;

	TEST_OK(rmem_cq_create(guest.dev, &cq_conf, &guest.cq));
	conf.send_cq = conf.recv_cq = guest.cq;
	TEST_OK(rmem_qp_create(guest.pd, &conf, &guest.qp));
	TEST_OK(rmem_qp_query(guest.qp, &attr));
	conn.remote = attr.addr;
	TEST_OK(rmem_qp_connect(guest.qp, &conn));
	TEST_ASSERT(rverbs_qp_of(guest.qp)->ex != NULL);
}

void
guest_open(void)
{
	const size_t size = PERF_BURST * GUEST_PAGE;

	TEST_OK(rmem_dev_create("verbs0", getenv("RMEM_TEST_ARGS"), &guest.dev));
	TEST_OK(rmem_pd_alloc(guest.dev, &guest.pd));
	guest.buf = rte_malloc(NULL, size, GUEST_PAGE);
	TEST_ASSERT(guest.buf != NULL);
	TEST_OK(rmem_mr_reg(guest.pd, guest.buf, size, 0,
			RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_MW_BIND,
			&guest.mr));
	guest_open_qp();
}

void
guest_close(void)
{
	TEST_OK(rmem_qp_destroy(guest.qp));
	TEST_OK(rmem_cq_destroy(guest.cq));
	TEST_OK(rmem_mr_dereg(guest.mr));
	rte_free(guest.buf);
	TEST_OK(rmem_pd_dealloc(guest.pd));
	TEST_OK(rmem_dev_close(guest.dev));
}

struct ibv_mw *
guest_ibv_mw(void)
{
	return ibv_alloc_mw(rverbs_pd_of(guest.pd)->ibv, IBV_MW_TYPE_2);
}

uint32_t
guest_bind(struct ibv_mw *mw, unsigned int page, unsigned int flags)
{
	struct ibv_qp_ex *ex = rverbs_qp_of(guest.qp)->ex;
	const struct ibv_mw_bind_info info = {.mr = rverbs_mr_of(guest.mr)->ibv,
			.addr = (uintptr_t)guest.buf + page * GUEST_PAGE,
			.length = GUEST_PAGE,
			.mw_access_flags = IBV_ACCESS_REMOTE_WRITE};

	ex->wr_id = page;
	ex->wr_flags = flags;
	ibv_wr_bind_mw(ex, mw, ibv_inc_rkey(mw->rkey), &info);
	mw->rkey = ibv_inc_rkey(mw->rkey);
	return mw->rkey;
}

int
guest_wait(unsigned int nb)
{
	uint64_t end = rte_get_timer_cycles() + LIMIT_S * rte_get_timer_hz();
	struct ibv_cq *cq = rverbs_cq_of(guest.cq)->ibv;
	struct ibv_wc wc;
	int n = 0, status = 0;

	while (nb > 0 && n >= 0 && rte_get_timer_cycles() < end) {
		n = ibv_poll_cq(cq, 1, &wc);
		if (n == 1) {
			status = RTE_MAX(status, (int)wc.status);
			nb--;
		}
	}
	return nb == 0 ? status : -1;
}

double
guest_best(int (*burst)(void))
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
