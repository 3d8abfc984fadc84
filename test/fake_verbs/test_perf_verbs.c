/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* What a post costs through the driver, against the same requests written by ibv_wr_* by hand,
 * on a fake that completes at once and moves nothing. Only the last of a burst is signaled; its
 * poll is in both times.
 */

#include <rte_cycles.h>

#include "../perf.h"
#include "../test.h"
#include "setup.h"

#define BURSTS 20000

static double
post_by_hand(void *arg)
{
	struct fake_qp *qp = fake_qp_find(vt.a->qp_num);
	struct ibv_qp_ex *ex = &qp->ex;
	struct rmem_send_wr *wr = arg;
	struct ibv_wc wc;
	uint64_t start;
	int i, j;

	start = rte_rdtsc_precise();
	for (i = 0; i < BURSTS; i++) {
		ibv_wr_start(ex);
		for (j = 0; j < (int)PERF_BURST; j++) {
			ex->wr_id = wr[j].wr_id;
			ex->wr_flags = wr[j].flags;
			ibv_wr_rdma_write(ex, wr[j].rdma.rkey, wr[j].rdma.remote_addr);
			ibv_wr_set_sge(ex, wr[j].sg_list[0].lkey, wr[j].sg_list[0].addr,
					wr[j].sg_list[0].length);
		}
		if (ibv_wr_complete(ex) != 0 || ibv_poll_cq(ex->qp_base.send_cq, 1, &wc) != 1)
			return -1.0;
	}
	return perf_ns(rte_rdtsc_precise() - start, (double)BURSTS * PERF_BURST);
}

static double
post_by_driver(void *arg)
{
	struct rmem_wc wc;
	uint64_t start;
	int i;

	start = rte_rdtsc_precise();
	for (i = 0; i < BURSTS; i++) {
		if (rmem_post_send(vt.a, arg, PERF_BURST) != (int)PERF_BURST ||
				rmem_poll_cq(vt.cq_a, &wc, 1) != 1)
			return -1.0;
	}
	return perf_ns(rte_rdtsc_precise() - start, (double)BURSTS * PERF_BURST);
}

static int
verbs_post32(void)
{
	struct perf_row row = {.name = "verbs_post32",
			.unit = "ns",
			.yardstick = "by hand",
			.bar = "8 ns more"};
	struct rmem_send_wr wr[PERF_BURST];
	struct rmem_sge sge;
	unsigned int i;

	TEST_OK(vt_setup());
	fake.is_quick = true;
	sge = vt_sge(0, 64);
	for (i = 0; i < PERF_BURST; i++) {
		wr[i] = vt_wr(RMEM_WR_RDMA_WRITE, &sge);
		wr[i].flags = i == PERF_BURST - 1 ? RMEM_SEND_SIGNALED : 0;
	}
	TEST_OK(perf_compare(post_by_hand, post_by_driver, wr, &row.baseline, &row.value));
	row.ratio = row.value / row.baseline;
	TEST_RUN(perf_report(&row));
	return vt_teardown();
}

REGISTER_RMEM_TEST(verbs_post32_perf_autotest, verbs_post32);
