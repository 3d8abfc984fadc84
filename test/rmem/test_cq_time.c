/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Completions have the times at which they were generated. */

#include "fixture.h"

#define DEPTH 16u

static struct {
	struct rmem_cq *cq; /* of both QPs */
	struct rmem_qp *qp;
	uint64_t before[DEPTH]; /* times at which requests were posted */
	uint64_t after[DEPTH];  /* and when the post had returned */
} tt;

static void
setup(void)
{
	const struct rmem_cq_conf conf = {.nb_cqe = DEPTH, .flags = RMEM_CQ_TIMESTAMP};
	struct rmem_qp *peer;

	fx_setup();
	tt.cq = fx_cq_by(fx.a.dev, &conf);
	tt.qp = fx_qp(fx.a.pd, tt.cq, DEPTH);
	peer = fx_qp(fx.a.pd, tt.cq, DEPTH);
	TEST_OK(fx_connect_pair(tt.qp, peer));
}

/* Requests numbered from first on; odd ones are not signaled. */
static void
post(uint32_t first, uint32_t n)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_RDMA_WRITE, NULL, 0);
	uint32_t i;

	for (i = first; i < first + n; i++) {
		wr.wr_id = i;
		wr.flags = i % 2 == 0 ? RMEM_SEND_SIGNALED : 0;
		TEST_OK(rmem_dev_clock_get(fx.a.dev, &tt.before[i]));
		TEST_EQ(fx_post(tt.qp, &wr), 1);
		TEST_OK(rmem_dev_clock_get(fx.a.dev, &tt.after[i]));
	}
}

/* Poll n completions in bursts, numbered from first on in steps of 2. */
static void
expect(uint32_t first, int n, uint16_t burst)
{
	struct rmem_wc wc[DEPTH];
	int i, polled;

	while (n > 0) {
		polled = rmem_poll_cq(tt.cq, wc, burst);
		TEST_ASSERT(polled > 0 && polled <= n);
		for (i = 0; i < polled; i++, first += 2) {
			TEST_STATUS(wc[i].status, RMEM_WC_SUCCESS);
			TEST_EQ(wc[i].wr_id, first);
			TEST_ASSERT(tt.cq->timestamps[i] >= tt.before[first]);
			TEST_ASSERT(tt.cq->timestamps[i] <= tt.after[first]);
		}
		n -= polled;
	}
}

TEST(cq_time, completions_have_the_time_of_their_request)
{
	unsigned int round;

	/* The ring has 16 entries, so the positions wrap. */
	for (round = 0; round < 10; round++) {
		post(0, 12);
		TEST_ASSERT(tt.after[11] > tt.before[0]);
		expect(0, 6, (uint16_t)(1 + round % 7));
	}
	TEST_EQ(rmem_poll_cq(tt.cq, &fx.wc, 1), 0);
}

TEST(cq_time, times_are_kept_by_a_resize)
{
	static const uint32_t sizes[] = {64, 8, 16};
	unsigned int i;

	for (i = 0; i < RTE_DIM(sizes); i++) {
		post(0, 10);
		TEST_OK(rmem_cq_resize(tt.cq, sizes[i]));
		expect(0, 5, 2);
		TEST_OK(rmem_dev_audit(fx.a.dev));
	}
}

TEST(cq_time, flushed_requests_have_times)
{
	const struct rmem_sge to = fx_sge(fx.a.mr, 0, 8);
	uint64_t before;

	TEST_EQ(fx_post_recv(tt.qp, 7, &to, 1), 1);
	TEST_OK(rmem_dev_clock_get(fx.a.dev, &before));
	TEST_OK(rmem_qp_set_error(tt.qp));
	TEST_EQ(rmem_poll_cq(tt.cq, &fx.wc, 1), 1);
	TEST_STATUS(fx.wc.status, RMEM_WC_WR_FLUSH_ERR);
	TEST_ASSERT(tt.cq->timestamps[0] >= before);
}

TEST_WITH(cq_time, without_the_flag_there_are_none, fx_setup)
{
	struct rmem_dev_attr attr;

	TEST_ASSERT(fx.a.cq->timestamps == NULL);
	TEST_OK(rmem_dev_attr_get(fx.a.dev, &attr));
	TEST_EQ(attr.timestamp_mask, UINT64_MAX);
	TEST_EQ(attr.core_clock_khz, 1000000);
}

TEST(cq_time, device_without_timestamps_refuses_them)
{
	struct rmem_dev *dev = fx_dev("soft1", "profile=verbs");
	struct rmem_cq_conf conf = {.nb_cqe = DEPTH, .flags = RMEM_CQ_TIMESTAMP};
	struct rmem_dev_attr attr;
	struct rmem_cq *cq = NULL;
	uint64_t ticks;

	TEST_ASSERT(!fx_has_capa(dev, RMEM_DEV_CAPA_CQ_TIMESTAMP));
	TEST_ERR(rmem_cq_create(dev, &conf, &cq), EOPNOTSUPP);
	TEST_ERR(rmem_dev_clock_get(dev, &ticks), EOPNOTSUPP);
	TEST_OK(rmem_dev_attr_get(dev, &attr));
	TEST_EQ(attr.timestamp_mask, 0);
	TEST_EQ(attr.core_clock_khz, 0);
	conf.flags = RMEM_CQ_IGNORE_OVERRUN;
	TEST_ASSERT(fx_cq_by(dev, &conf)->timestamps == NULL);
}

TEST_WITH(cq_time, clock_refuses_null, fx_setup)
{
	uint64_t ticks = 1;

	TEST_ERR(rmem_dev_clock_get(NULL, &ticks), EINVAL);
	TEST_ERR(rmem_dev_clock_get(fx.a.dev, NULL), EINVAL);
	TEST_EQ(ticks, 1);
}

TEST_SUITE(cq_time, setup, fx_teardown);
