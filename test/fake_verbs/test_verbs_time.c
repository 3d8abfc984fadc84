/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Timestamps of completions: each has that of the device, also when it is kept by the driver. And
 * the clock of the device.
 */

#include "setup.h"

#define NB 5u

static struct rmem_cq *cq;

static void
setup(void)
{
	vt_setup_fake();
	fake.timestamp_mask = UINT64_MAX;
	cq = NULL;
}

static void
teardown(void)
{
	if (cq != NULL && vt.a != NULL && vt.a->send_cq == cq) {
		vt_qp_destroy(&vt.a);
	}
	TEST_OK(rmem_cq_destroy(cq));
	vt_teardown();
}

/* The sends of a complete to a CQ with timestamps. */
static void
open_timed(void)
{
	const struct rmem_cq_conf conf = {.nb_cqe = 16, .flags = RMEM_CQ_TIMESTAMP};
	struct rmem_qp_conf qp_conf;

	TEST_OK(vt_open());
	TEST_OK(rmem_cq_create(vt.dev, &conf, &cq));
	TEST_ASSERT(cq->timestamps != NULL && vt.cq_a->timestamps == NULL);
	qp_conf = vt_qp_conf(vt.cq_a, RMEM_QPT_RC);
	qp_conf.send_cq = cq;
	vt_replace_qp(&vt.a, &qp_conf);
	TEST_OK(rmem_qp_reset(vt.b));
	TEST_OK(vt_connect());
}

/* A poll returns n completions, with their requests' numbers and times. */
static void
expect(uint32_t first, uint16_t max, int n)
{
	struct rmem_wc wc[32];
	int i;

	TEST_EQ(rmem_poll_cq(cq, wc, max), n);
	for (i = 0; i < n; i++) {
		TEST_STATUS(wc[i].status, RMEM_WC_SUCCESS);
		TEST_EQ(wc[i].wr_id, first + (uint32_t)i);
		TEST_EQ(wc[i].qp_num, vt.a->qp_num);
		TEST_EQ(cq->timestamps[i], FAKE_TIME + first + (uint32_t)i);
	}
}

TEST(verbs_time, each_completion_has_the_time_of_the_device)
{
	struct rmem_dev_attr attr;
	struct rmem_dev_info info;
	uint64_t ticks = 0;

	open_timed();
	TEST_OK(rmem_dev_info_get(vt.dev, &info));
	TEST_ASSERT((info.capa & RMEM_DEV_CAPA_CQ_TIMESTAMP) != 0);
	TEST_OK(rmem_dev_attr_get(vt.dev, &attr));
	TEST_EQ(attr.timestamp_mask, UINT64_MAX);
	TEST_EQ(attr.core_clock_khz, 156250);
	TEST_OK(rmem_dev_clock_get(vt.dev, &ticks));
	TEST_EQ(ticks, 1000000002);
	expect(0, 4, 0);
	vt_post_writes(0, NB);
	expect(0, 2, 2);
	expect(2, 32, 3);
	expect(5, 4, 0);
}

/* Those that the driver keeps come first, with those of the device after them. */
TEST(verbs_time, resize_keeps_the_times)
{
	open_timed();
	vt_post_writes(0, NB);
	TEST_OK(rmem_cq_resize(cq, NB));
	expect(0, 1, 1);
	vt_post_writes(NB, 1);
	TEST_OK(rmem_cq_resize(cq, 8));
	vt_post_writes(NB + 1, 2);
	expect(1, 32, 7);
}

TEST(verbs_time, completion_of_a_failure_has_its_status)
{
	struct rmem_send_wr wr;
	struct rmem_sge sge;
	struct rmem_wc wc;

	open_timed();
	sge = vt_sge(0, 8);
	wr = vt_wr(RMEM_WR_RDMA_WRITE, &sge);
	wr.rdma.rkey++;
	TEST_EQ(rmem_post_send(vt.a, &wr, 1), 1);
	TEST_EQ(rmem_poll_cq(cq, &wc, 1), 1);
	TEST_STATUS(wc.status, RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(wc.vendor_err, FAKE_VENDOR_ERR);
	TEST_EQ(cq->timestamps[0], FAKE_TIME);
}

TEST(verbs_time, failed_poll_is_eio)
{
	struct rmem_wc wc;

	open_timed();
	fake.is_poll_bad = true;
	TEST_ERR(rmem_poll_cq(cq, &wc, 1), EIO);
	fake.is_poll_bad = false;
}

/* A post of 5 WRITEs to a CQ of 3 entries, with those flags. */
static void
overrun(uint32_t flags)
{
	const struct rmem_cq_conf conf = {.nb_cqe = 3, .flags = flags};
	struct rmem_qp_conf qp_conf;
	struct rmem_wc wc[32];
	int i;

	TEST_OK(rmem_cq_create(vt.dev, &conf, &cq));
	qp_conf = vt_qp_conf(vt.cq_a, RMEM_QPT_RC);
	qp_conf.send_cq = cq;
	vt_replace_qp(&vt.a, &qp_conf);
	TEST_OK(rmem_qp_reset(vt.b));
	TEST_OK(vt_connect());
	vt_post_writes(0, NB);
	TEST_EQ(rmem_poll_cq(cq, wc, 32), 3);
	for (i = 0; i < 3; i++)
		TEST_EQ(wc[i].wr_id, (uint32_t)i);
}

static void
destroy(void)
{
	vt_qp_destroy(&vt.a);
	TEST_OK(rmem_cq_destroy(cq));
	cq = NULL;
}

TEST(verbs_time, overrun_is_ignored_by_devices_that_can)
{
	static const uint32_t flags[] = {
			RMEM_CQ_IGNORE_OVERRUN, RMEM_CQ_IGNORE_OVERRUN | RMEM_CQ_TIMESTAMP};
	struct rmem_qp_conf qp_conf;
	struct rmem_wc wc;
	unsigned int i;

	fake.has_ignore_overrun = true;
	TEST_OK(vt_open());
	qp_conf = vt_qp_conf(vt.cq_a, RMEM_QPT_RC);
	for (i = 0; i < RTE_DIM(flags); i++) {
		overrun(flags[i]);
		TEST_EQ(cq->timestamps != NULL, (flags[i] & RMEM_CQ_TIMESTAMP) != 0);
		TEST_EQ(rmem_poll_cq(cq, &wc, 1), 0);
		vt_post_writes(NB, 1);
		TEST_EQ(rmem_poll_cq(cq, &wc, 1), 1);
		TEST_EQ(wc.wr_id, NB);
		destroy();
		TEST_OK(rmem_qp_create(vt.pd, &qp_conf, &vt.a));
	}
}

TEST(verbs_time, overrun_is_reported_by_devices_that_cannot_ignore_it)
{
	struct rmem_wc wc;

	TEST_OK(vt_open());
	overrun(RMEM_CQ_IGNORE_OVERRUN);
	TEST_ERR(rmem_poll_cq(cq, &wc, 1), EIO);
}

/* Those that the driver keeps of a QP in reset, and those of the device, are more than it holds. */
TEST(verbs_time, saved_completions_are_lost_without_an_error)
{
	struct rmem_wc wc[32];
	int i;

	fake.has_ignore_overrun = true;
	TEST_OK(vt_open());
	overrun(RMEM_CQ_IGNORE_OVERRUN);
	for (i = 0; i < 2; i++) {
		vt_post_writes(0, 2);
		TEST_OK(rmem_qp_reset(vt.a));
		TEST_OK(rmem_qp_reset(vt.b));
		TEST_OK(vt_connect());
	}
	TEST_EQ(rmem_poll_cq(cq, wc, 32), 3);
	TEST_EQ(rmem_poll_cq(cq, wc, 32), 0);
}

TEST_SUITE(verbs_time, setup, teardown);
