/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* QPs of UD and address handles over the fakes: the life of AHs, groups. */

#include <string.h>

#include <rmem_ah.h>

#include "setup.h"

#define QKEY 0x1234u

static struct rmem_ah *ah;
static const struct rmem_ah_attr path = {.is_global = 1, .port_num = 1, .dgid = {0xfe, 0x80}};

static void
make_qp(struct rmem_cq *cq, struct rmem_qp **qp)
{
	struct rmem_qp_conf conf = vt_qp_conf(cq, RMEM_QPT_UD);
	struct rmem_qp_attr attr = {.state = RMEM_QPS_INIT, .port_num = 1, .qkey = QKEY};

	vt_replace_qp(qp, &conf);
	TEST_OK(rmem_qp_modify(*qp, &attr,
			RMEM_QP_STATE | RMEM_QP_PKEY_INDEX | RMEM_QP_PORT | RMEM_QP_QKEY));
	attr.state = RMEM_QPS_RTR;
	TEST_OK(rmem_qp_modify(*qp, &attr, RMEM_QP_STATE));
	attr.state = RMEM_QPS_RTS;
	TEST_OK(rmem_qp_modify(*qp, &attr, RMEM_QP_STATE | RMEM_QP_SQ_PSN));
}

/* vt.a sends to vt.b. */
static void
open_ud(void)
{
	TEST_OK(vt_open());
	make_qp(vt.cq_a, &vt.a);
	make_qp(vt.cq_b, &vt.b);
	TEST_OK(rmem_ah_create(vt.pd, &path, &ah));
	fake.nb_classic = fake.nb_ex = 0;
}

static void
setup(void)
{
	ah = NULL;
	vt_setup_fake();
}

static void
teardown(void)
{
	fake.fail_name = NULL;
	TEST_OK(rmem_ah_destroy(ah));
	vt_teardown();
}

static struct rmem_send_wr
wr_to(const struct rmem_qp *qp, const struct rmem_sge *sge)
{
	struct rmem_send_wr wr = vt_wr(RMEM_WR_SEND, sge);

	memset(&wr.ud, 0, sizeof(wr.ud));
	wr.ud.ah = ah;
	wr.ud.remote_qpn = qp->qp_num;
	wr.ud.remote_qkey = QKEY;
	return wr;
}

TEST(verbs_ud, ah_exists_until_its_requests_have_completed)
{
	struct rmem_send_wr wr;
	struct rmem_wc wc;
	int nb_live;

	open_ud();
	nb_live = fake.nb_live;
	fake.is_held = true;
	wr = wr_to(vt.b, NULL);
	wr.num_sge = 0;
	wr.flags = 0;
	TEST_EQ(rmem_post_send(vt.a, &wr, 1), 1);
	wr.flags = RMEM_SEND_SIGNALED;
	TEST_EQ(rmem_post_send(vt.a, &wr, 1), 1);
	TEST_OK(rmem_ah_destroy(ah));
	ah = NULL;
	TEST_EQ(fake.nb_live, nb_live);
	fake_run_held(vt.a->qp_num, 2);
	TEST_STATUS(vt_wait(vt.cq_a, &wc), RMEM_WC_SUCCESS);
	TEST_EQ(fake.nb_live, nb_live - 1);
	TEST_EQ(fake.nb_classic, 2);
	TEST_EQ(fake.nb_ex, 0);
}

TEST(verbs_ud, ah_of_dropped_requests_is_destroyed)
{
	struct rmem_send_wr wr;
	unsigned int i;
	int nb_live;

	open_ud();
	fake.is_held = true;
	for (i = 0; i < 2; i++) {
		nb_live = fake.nb_live;
		wr = wr_to(vt.b, NULL);
		wr.num_sge = 0;
		TEST_EQ(rmem_post_send(vt.a, &wr, 1), 1);
		TEST_OK(rmem_ah_destroy(ah));
		ah = NULL;
		TEST_EQ(fake.nb_live, nb_live);
		if (i == 0) {
			TEST_OK(rmem_qp_reset(vt.a));
			TEST_EQ(fake.nb_live, nb_live - 1);
			make_qp(vt.cq_a, &vt.a);
			TEST_OK(rmem_ah_create(vt.pd, &path, &ah));
		}
	}
	vt_qp_destroy(&vt.a);
	TEST_EQ(fake.nb_live, nb_live - 2);
}

/* The device accepts two of three. */
TEST(verbs_ud, refused_requests_do_not_use_their_ah)
{
	struct rmem_send_wr wr[3];
	struct rmem_wc wc[3];
	unsigned int i;

	open_ud();
	for (i = 0; i < RTE_DIM(wr); i++) {
		wr[i] = wr_to(vt.b, NULL);
		wr[i].num_sge = 0;
	}
	fake.post_errno = ENOMEM;
	fake.post_take = 2;
	TEST_EQ(rmem_post_send(vt.a, wr, 3), 2);
	fake.post_errno = 0;
	TEST_EQ(rmem_poll_cq(vt.cq_a, wc, 3), 2);
	TEST_OK(rmem_ah_destroy(ah)); /* the teardown finds one that is left */
	ah = NULL;
}

TEST(verbs_ud, qp_is_attached_to_groups)
{
	static const uint8_t group[16] = {0xff, 0x0e, [15] = 9};
	struct rmem_ah_attr to = path;
	struct rmem_dev_attr attr;
	struct rmem_ah *other;

	open_ud();
	TEST_OK(rmem_dev_attr_get(vt.dev, &attr));
	TEST_EQ(attr.max_mcast_grp, FAKE_GROUPS);
	TEST_EQ(attr.max_mcast_qp_attach, 2);
	TEST_EQ(attr.max_total_mcast_qp_attach, 2 * FAKE_GROUPS);
	TEST_OK(rmem_qp_attach_mcast(vt.b, group, 0xc003));
	TEST_EQ(fake.mcast_lid, 0xc003);
	TEST_EQ(fake_qp_find(vt.b->qp_num)->nb_groups, 1);
	TEST_MEM(fake_qp_find(vt.b->qp_num)->group[0].raw, group, sizeof(group));
	TEST_OK(rmem_qp_attach_mcast(vt.b, group, 0xc003));
	TEST_EQ(fake_qp_find(vt.b->qp_num)->nb_groups, 1);
	TEST_ERR(rmem_qp_destroy(vt.b), EBUSY);
	memcpy(to.dgid, group, sizeof(group));
	TEST_OK(rmem_ah_create(vt.pd, &to, &other));
	TEST_OK(rmem_ah_destroy(other));
	TEST_OK(rmem_qp_detach_mcast(vt.b, group, 0xc003));
	TEST_ERR(rmem_qp_detach_mcast(vt.b, group, 0xc003), EINVAL);
}

TEST(verbs_ud, device_without_multicast_has_no_groups)
{
	static const uint8_t group[16] = {0xff, 0x0e};
	struct rmem_ah_attr to = path;
	struct rmem_dev_info info;
	struct rmem_ah *other;

	fake.has_no_mcast = true;
	open_ud();
	TEST_OK(rmem_dev_info_get(vt.dev, &info));
	TEST_EQ(info.capa & (RMEM_DEV_CAPA_MCAST | RMEM_DEV_CAPA_UD), RMEM_DEV_CAPA_UD);
	memcpy(to.dgid, group, sizeof(group));
	TEST_ERR(rmem_ah_create(vt.pd, &to, &other), EINVAL);
}

TEST_SUITE(verbs_ud, setup, teardown);
