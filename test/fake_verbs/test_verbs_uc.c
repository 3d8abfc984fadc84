/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* QPs of UC over the fakes: type, attributes, posts. */

#include "setup.h"

#define RC_ATTRIBUTES                                                                              \
	(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |          \
			IBV_QP_MIN_RNR_TIMER | IBV_QP_MAX_DEST_RD_ATOMIC)

static void
open_uc(void)
{
	struct rmem_qp_conf conf;

	TEST_OK(vt_open());
	conf = vt_qp_conf(vt.cq_a, RMEM_QPT_UC);
	vt_replace_qp(&vt.a, &conf);
	conf = vt_qp_conf(vt.cq_b, RMEM_QPT_UC);
	vt_replace_qp(&vt.b, &conf);
	TEST_OK(vt_connect());
}

TEST(verbs_uc, attributes_of_rc_are_not_set)
{
	const struct fake_qp *qp;

	open_uc();
	qp = fake_qp_find(vt.a->qp_num);
	TEST_EQ(qp->init.qp_type, IBV_QPT_UC);
	TEST_EQ(qp->mask, IBV_QP_STATE | IBV_QP_SQ_PSN);
	TEST_EQ(qp->mask & RC_ATTRIBUTES, 0);
}

/* Only extended posts of RC were probed. */
TEST(verbs_uc, requests_are_posted_by_ibv_post_send)
{
	struct rmem_sge sge;
	struct rmem_send_wr wr;

	open_uc();
	sge = vt_sge(0, 8);
	wr = vt_wr(RMEM_WR_RDMA_WRITE, &sge);
	fake.nb_classic = fake.nb_ex = 0;
	TEST_STATUS(vt_run(&wr), RMEM_WC_SUCCESS);
	TEST_EQ(fake.nb_classic, 1);
	TEST_EQ(fake.nb_ex, 0);
	wr = vt_wr(RMEM_WR_RDMA_READ, &sge);
	TEST_ERR(rmem_post_send(vt.a, &wr, 1), EOPNOTSUPP);
}

TEST(verbs_uc, failed_transition_is_reported_and_undone)
{
	open_uc();
	TEST_OK(rmem_qp_reset(vt.a));
	VT_FAILS("modify_qp", EINVAL, vt_connect(), EINVAL);
	TEST_OK(rmem_qp_reset(vt.b));
	TEST_OK(vt_connect());
}

TEST_SUITE(verbs_uc, vt_setup_fake, vt_teardown);
