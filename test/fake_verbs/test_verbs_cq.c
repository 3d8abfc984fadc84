/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* CQs over the fakes are resized below what the device and the driver hold. */

#include "setup.h"

static void
expect(uint64_t first, uint32_t n)
{
	struct rmem_wc wc;
	uint32_t i;

	for (i = 0; i < n; i++) {
		TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_SUCCESS);
		TEST_EQ(wc.wr_id, first + i);
	}
}

/* The device has three of them, and the driver those of before the reset. */
TEST(verbs_cq, resize_below_the_sum_of_completions_is_refused)
{
	TEST_OK(vt_open());
	vt_post_writes(0, 3);
	TEST_OK(rmem_qp_reset(vt.a));
	TEST_OK(rmem_qp_reset(vt.b));
	TEST_OK(vt_connect());
	vt_post_writes(3, 3);
	TEST_ERR(rmem_cq_resize(vt.cq_a, 5), EINVAL);
	TEST_OK(rmem_cq_resize(vt.cq_a, 6));
	TEST_EQ(vt.cq_a->nb_cqe, 6);
	TEST_OK(rmem_qp_reset(vt.a));
	expect(0, 6);
}

/* The device completes a request after the driver began to destroy its QP. */
TEST(verbs_cq, completions_of_a_qp_that_ends_are_polled)
{
	struct rmem_sge sge;
	struct rmem_send_wr wr;

	TEST_OK(vt_open());
	sge = vt_sge(0, 8);
	wr = vt_wr(RMEM_WR_RDMA_WRITE, &sge);
	wr.flags = RMEM_SEND_SIGNALED;
	wr.wr_id = 7;
	fake.is_held = true;
	fake.is_run_at_end = true;
	TEST_EQ(rmem_post_send(vt.a, &wr, 1), 1);
	TEST_OK(rmem_qp_destroy(vt.a));
	vt.a = NULL;
	expect(7, 1);
}

TEST_SUITE(verbs_cq, vt_setup_fake, vt_teardown);
