/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The general services QP of the software device: number 1. */

#include <string.h>

#include "fixture.h"

#define MAD 256u

static int
modify(struct rmem_qp *qp, uint32_t state, uint32_t qkey, uint32_t mask)
{
	const struct rmem_qp_attr attr = {.state = state, .port_num = 1, .qkey = qkey};

	return rmem_qp_modify(qp, &attr, RMEM_QP_STATE | mask);
}

static int
init(struct rmem_qp *qp, uint32_t qkey)
{
	return modify(qp, RMEM_QPS_INIT, qkey, RMEM_QP_PKEY_INDEX | RMEM_QP_PORT | RMEM_QP_QKEY);
}

static struct rmem_qp_conf
ud_conf(uint32_t flags)
{
	struct rmem_qp_conf conf = fx_qp_conf(fx.a.cq, 16);

	conf.type = RMEM_QPT_UD;
	conf.flags |= flags;
	return conf;
}

static void
setup(void)
{
	fx_setup();
	TEST_SKIP_IF(!fx_is_soft(), "the kernel has QP 1 of other devices");
}

TEST(gsi, there_is_one)
{
	const struct rmem_qp_conf conf = ud_conf(RMEM_QP_GSI);
	struct rmem_qp *qp = fx_qp_by(fx.a.pd, &conf), *second;
	struct rmem_dev_info before, after;

	TEST_EQ(qp->qp_num, 1);
	TEST_ERR(rmem_qp_create(fx.a.pd, &conf, &second), EBUSY);
	TEST_OK(rmem_dev_info_get(fx.a.dev, &before));
	TEST_OK(fx_release(qp));
	qp = fx_qp_by(fx.a.pd, &conf);
	TEST_EQ(qp->qp_num, 1);
	TEST_OK(rmem_dev_info_get(fx.a.dev, &after));
	TEST_EQ(after.nb_qp, before.nb_qp);
	TEST_EQ(rmem_dev_audit(fx.a.dev), 0);
}

TEST(gsi, wrong_attributes_are_refused)
{
	struct rmem_qp_conf conf = ud_conf(RMEM_QP_GSI);
	struct rmem_qp *qp = fx_qp_by(fx.a.pd, &conf), *other;

	TEST_ERR(init(qp, RMEM_GSI_QKEY + 1), EINVAL);
	TEST_EQ(fx_state(qp), RMEM_QPS_RESET);
	TEST_OK(fx_ud_ready(qp, RMEM_GSI_QKEY));
	TEST_ERR(modify(qp, RMEM_QPS_RTS, 7, RMEM_QP_QKEY), EINVAL);
	TEST_OK(fx_release(qp));
	conf.type = RMEM_QPT_RC;
	TEST_ERR(rmem_qp_create(fx.a.pd, &conf, &other), EINVAL);
}

/* All QPs that the device can have, several times: QP 0 and 1 are not among them. */
TEST(gsi, other_qps_have_other_numbers)
{
	struct rmem_dev *dev = fx_dev("soft1", "max_qp=7");
	struct rmem_qp_conf conf = ud_conf(0);
	struct rmem_qp *qp[7], *one_more;
	struct rmem_pd *pd;
	unsigned int i, j;

	pd = fx_pd(dev);
	conf.send_cq = conf.recv_cq = fx_cq(dev, 16);
	for (i = 0; i < 4; i++) {
		for (j = 0; j < 7; j++) {
			conf.flags = j == 3 ? RMEM_QP_GSI : 0;
			TEST_OK(rmem_qp_create(pd, &conf, &qp[j]));
			TEST_ASSERT(j == 3 ? qp[j]->qp_num == 1 : qp[j]->qp_num > 1);
		}
		conf.flags = 0;
		TEST_ERR(rmem_qp_create(pd, &conf, &one_more), ENOSPC);
		TEST_EQ(rmem_dev_audit(dev), 0);
		for (j = 0; j < 7; j++)
			TEST_OK(rmem_qp_destroy(qp[j]));
	}
}

TEST(gsi, receives_mads_of_its_qkey_only)
{
	const struct rmem_sge to = fx_sge(fx.a.mr, 0, RMEM_GRH_SIZE + MAD);
	const struct rmem_sge from = fx_sge(fx.a.mr, 1024, MAD);
	struct rmem_qp_conf conf = ud_conf(RMEM_QP_GSI);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);
	struct rmem_dev_stats before;
	struct rmem_qp *gsi, *qp;

	gsi = fx_qp_by(fx.a.pd, &conf);
	conf.flags &= ~RMEM_QP_GSI;
	qp = fx_qp_by(fx.a.pd, &conf);
	TEST_OK(fx_ud_ready(gsi, RMEM_GSI_QKEY));
	TEST_OK(fx_ud_ready(qp, RMEM_GSI_QKEY));
	wr.ud.ah = fx_ah_to(fx.a.pd, gsi);
	wr.ud.remote_qpn = 1;
	wr.ud.remote_qkey = 7;
	wr.flags |= RMEM_SEND_SIGNALED;
	fx_fill(fx.a.buf + 1024, MAD, 3);
	TEST_OK(rmem_dev_stats_get(fx.a.dev, &before));
	TEST_EQ(fx_post_recv(gsi, 1, &to, 1), 1);
	TEST_STATUS(fx_send(qp, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx_dev_stats(fx.a.dev).drop_qkey, before.drop_qkey + 1);
	wr.ud.remote_qkey = RMEM_GSI_QKEY; /* that of the QP, by its upper bit */
	TEST_EQ(rmem_post_send(gsi, &wr, 1), 1);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS); /* in the same process it is first */
	TEST_EQ(fx.wc.opcode, RMEM_WC_RECV);
	TEST_EQ(fx.wc.byte_len, RMEM_GRH_SIZE + MAD);
	TEST_EQ(fx.wc.src_qp, 1);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_MEM(fx.a.buf + RMEM_GRH_SIZE, fx.a.buf + 1024, MAD);
}

TEST_SUITE(gsi, setup, fx_teardown);
