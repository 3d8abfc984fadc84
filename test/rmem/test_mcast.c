/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Multicast on the software device, between QPs of one process: one copy for each attached QP of
 * all devices, counters of dropped copies, limits, and QPs that are attached and detached while
 * messages are sent.
 */

#include <string.h>

#include "soft/fixture_odp.h"

#define QKEY       7u
#define DATA       64u
#define SLOT       256u
#define LID        0xc000
#define MAX_GROUPS 256u
#define MAX_QPS    240u

static const uint8_t group[16] = {0xff, 0x12, [15] = 7};
static struct rmem_qp *mine, *peer;
static struct rmem_ah *ah; /* of the group */

static struct rmem_qp *
make_qp(struct rmem_pd *pd, struct rmem_cq *cq)
{
	struct rmem_qp_conf conf = fx_qp_conf(cq, 16);
	struct rmem_qp *qp;

	conf.type = RMEM_QPT_UD;
	qp = fx_qp_by(pd, &conf);
	TEST_OK(fx_ud_ready(qp, QKEY));
	return qp;
}

static void
attach(struct rmem_qp *qp)
{
	TEST_OK(rmem_qp_attach_mcast(qp, group, LID));
}

static void
detach(struct rmem_qp *qp)
{
	TEST_OK(rmem_qp_detach_mcast(qp, group, LID));
}

static void
setup(void)
{
	struct rmem_ah_attr path = {.is_global = 1, .hop_limit = 1, .port_num = 1};

	fx_setup_odp();
	fx_need_soft();
	memcpy(path.dgid, group, sizeof(group));
	peer = make_qp(fx.a.pd, fx.a.cq);
	mine = make_qp(fx.b.pd, fx.b.cq);
	TEST_OK(rmem_ah_create(fx.b.pd, &path, &ah));
	fx_track(ah);
}

static struct rmem_send_wr
wr_to_group(const struct rmem_sge *sge)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, sge, 1);

	wr.ud.ah = ah;
	wr.ud.remote_qpn = RMEM_MCAST_QPN;
	wr.ud.remote_qkey = QKEY;
	return wr;
}

static void
post_recv(struct rmem_qp *qp, uint64_t slot)
{
	const struct rmem_mr *mr = qp == mine ? fx.b.mr : fx.a.mr;
	const struct rmem_sge to = fx_sge(mr, slot * SLOT, RMEM_GRH_SIZE + DATA);

	TEST_EQ(fx_post_recv(qp, slot, &to, 1), 1);
}

/* How much each counter of dropped messages grew. */
static void
expect_drops(const struct rmem_dev_stats *before, uint64_t no_recv, uint64_t length, uint64_t qkey,
		uint64_t no_peer)
{
	struct rmem_dev_stats after;

	TEST_OK(rmem_dev_stats_get(fx.b.dev, &after));
	TEST_EQ(after.drop_no_recv, before->drop_no_recv + no_recv);
	TEST_EQ(after.drop_length, before->drop_length + length);
	TEST_EQ(after.drop_qkey, before->drop_qkey + qkey);
	TEST_EQ(after.drop_no_peer, before->drop_no_peer + no_peer);
	TEST_EQ(after.drop_access, before->drop_access);
}

TEST(mcast, qps_of_all_devices_are_reached)
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, DATA);
	struct rmem_send_wr wr = wr_to_group(&from);
	struct rmem_dev *dev = fx_dev("soft7", NULL);
	struct fx_side side = {.dev = NULL};
	struct rmem_sge to;
	struct rmem_qp *qp;

	fx_side_open(&side, dev, fx_pd(dev));
	qp = make_qp(side.pd, side.cq);
	attach(qp);
	attach(peer);
	fx_fill(fx.b.buf, DATA, 8);
	to = fx_sge(side.mr, 0, RMEM_GRH_SIZE + DATA);
	TEST_EQ(fx_post_recv(qp, 3, &to, 1), 1);
	post_recv(peer, 4);
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(side.cq), RMEM_WC_SUCCESS);
	TEST_MEM(side.buf + RMEM_GRH_SIZE, fx.b.buf, DATA);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 4);
	detach(qp);
	detach(peer);
}

TEST(mcast, copy_for_a_receive_without_key_is_counted)
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, DATA);
	struct rmem_sge to = fx_sge(fx.a.mr, 0, RMEM_GRH_SIZE + DATA);
	struct rmem_send_wr wr = wr_to_group(&from);
	struct rmem_dev_stats before, after;

	to.lkey ^= 0x100;
	TEST_OK(rmem_dev_stats_get(fx.b.dev, &before));
	attach(peer);
	TEST_EQ(fx_post_recv(peer, 1, &to, 1), 1);
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_LOC_PROT_ERR);
	TEST_OK(rmem_dev_stats_get(fx.b.dev, &after));
	TEST_EQ(after.drop_access, before.drop_access + 1);
	detach(peer);
}

TEST(mcast, dropped_copies_are_counted)
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, DATA), to = fx_sge(fx.a.mr, 0, DATA);
	struct rmem_send_wr wr = wr_to_group(&from);
	struct rmem_qp *other = make_qp(fx.a.pd, fx.a.cq), *reset = make_qp(fx.a.pd, fx.a.cq);
	struct rmem_dev_stats before;

	TEST_OK(rmem_dev_stats_get(fx.b.dev, &before));
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS); /* an empty group */
	expect_drops(&before, 0, 0, 0, 1);
	attach(peer);
	attach(other);
	attach(reset);
	TEST_OK(rmem_qp_reset(reset)); /* and without a Q_Key */
	TEST_EQ(fx_post_recv(other, 1, &to, 1), 1);
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	expect_drops(&before, 1, 1, 1, 1);
	wr.ud.remote_qkey++;
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	expect_drops(&before, 1, 1, 4, 1);
	TEST_EQ(rmem_poll_cq(fx.a.cq, &fx.wc, 1), 0);
	TEST_EQ(fx_state(mine), RMEM_QPS_RTS);
	detach(peer);
	detach(other);
	detach(reset);
}

TEST(mcast, group_is_reached_by_its_qp_number_alone)
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, DATA);
	struct rmem_send_wr wr = wr_to_group(&from);
	struct rmem_ah_attr path = {.is_global = 1, .hop_limit = 1, .port_num = 1};
	struct rmem_dev_stats before;
	struct rmem_qp_attr attr;

	attach(peer);
	post_recv(peer, 1);
	TEST_OK(rmem_dev_stats_get(fx.b.dev, &before));
	wr.ud.remote_qpn = peer->qp_num; /* by the AH of the group */
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	TEST_OK(rmem_qp_query(peer, &attr));
	memcpy(path.dgid, attr.addr.gid, sizeof(path.dgid));
	TEST_OK(rmem_ah_create(fx.b.pd, &path, &wr.ud.ah));
	wr.ud.remote_qpn = RMEM_MCAST_QPN; /* by the AH of a device */
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	TEST_OK(rmem_ah_destroy(wr.ud.ah));
	expect_drops(&before, 0, 0, 0, 2);
	TEST_EQ(rmem_poll_cq(fx.a.cq, &fx.wc, 1), 0);
	detach(peer);
}

TEST(mcast, unmapped_data_fails_the_request)
{
	const struct rmem_sge from = fx_sge(fx_odp.mr, FX_PAGE, DATA);
	struct rmem_send_wr wr = wr_to_group(&from);

	attach(peer);
	post_recv(peer, 1);
	TEST_OK(fx_odp_unmap(1));
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_LOC_PROT_ERR);
	TEST_EQ(fx_state(mine), RMEM_QPS_SQE);
	TEST_EQ(rmem_poll_cq(fx.a.cq, &fx.wc, 1), 0);
	detach(peer);
}

TEST(mcast, groups_of_a_device_are_limited)
{
	struct rmem_dev_attr attr;
	uint8_t gid[16] = {0xff, 0x12};
	unsigned int i;

	TEST_OK(rmem_dev_attr_get(fx.a.dev, &attr));
	TEST_EQ(attr.max_mcast_grp, MAX_GROUPS);
	TEST_EQ(attr.max_mcast_qp_attach, MAX_QPS);
	TEST_EQ(attr.max_total_mcast_qp_attach, MAX_GROUPS * MAX_QPS);
	for (i = 0; i < MAX_GROUPS; i++) {
		gid[15] = (uint8_t)i;
		TEST_OK(rmem_qp_attach_mcast(peer, gid, LID));
	}
	gid[14] = 1;
	TEST_ERR(rmem_qp_attach_mcast(peer, gid, LID), ENOSPC);
	TEST_OK(rmem_dev_audit(fx.a.dev));
	for (gid[14] = 0, i = 0; i < MAX_GROUPS; i++) {
		gid[15] = (uint8_t)i;
		TEST_OK(rmem_qp_detach_mcast(peer, gid, LID));
	}
}

TEST(mcast, qps_of_a_group_are_limited)
{
	struct rmem_qp_conf conf = fx_qp_conf(fx.a.cq, 1);
	struct rmem_qp *qps[MAX_QPS];
	unsigned int i;

	conf.type = RMEM_QPT_UD;
	for (i = 0; i < MAX_QPS; i++) {
		TEST_OK(rmem_qp_create(fx.a.pd, &conf, &qps[i]));
		attach(qps[i]);
	}
	TEST_ERR(rmem_qp_attach_mcast(peer, group, LID), ENOSPC);
	attach(qps[0]); /* it is already */
	detach(qps[0]);
	attach(peer);
	detach(peer);
	TEST_OK(rmem_qp_destroy(qps[0]));
	for (i = 1; i < MAX_QPS; i++) {
		detach(qps[i]);
		TEST_OK(rmem_qp_destroy(qps[i]));
	}
}

static uint32_t is_over; /* atomic */

static void
run_sender(void *arg)
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, DATA);
	struct rmem_send_wr wr = wr_to_group(&from);
	struct rmem_wc wc;

	RTE_SET_USED(arg);
	wr.flags = RMEM_SEND_SIGNALED;
	while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
		TEST_EQ(rmem_post_send(mine, &wr, 1), 1);
		FX_AWAIT(rmem_poll_cq(fx.b.cq, &wc, 1) != 0);
		TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	}
}

/* Detached, and then destroyed, while a message may be in flight. */
static void
attach_for_a_while(unsigned int round)
{
	struct rmem_qp *qp = make_qp(fx.a.pd, fx.a.cq);
	unsigned int i;

	attach(qp);
	attach(peer);
	for (i = 0; i < 4; i++)
		post_recv(qp, i);
	if (round % 2 == 0)
		fx_wait(fx.a.cq);
	detach(qp);
	fx_drain(fx.a.cq);
	TEST_EQ(rmem_poll_cq(fx.a.cq, &fx.wc, 1), 0); /* none after the detach */
	TEST_OK(fx_release(qp));
	detach(peer);
}

static void
reset_for_a_while(unsigned int round)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		post_recv(peer, i);
	if (round % 2 == 0)
		fx_wait(fx.a.cq);
	TEST_OK(rmem_qp_reset(peer));
	fx_drain(fx.a.cq);
	TEST_EQ(rmem_poll_cq(fx.a.cq, &fx.wc, 1), 0); /* none after the reset */
	TEST_OK(fx_ud_ready(peer, QKEY));
}

/* Rounds, while another lcore sends to the group. */
static void
run_rounds(void (*run)(unsigned int round))
{
	int ret = TEST_SUCCESS;
	unsigned int round;
	char none;

	is_over = 0;
	fx_launch(run_sender, &none, sizeof(none), 1);
	for (round = 0; ret == TEST_SUCCESS && round < 100; round++)
		ret = TEST_TRY(run(round));
	__atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
	fx_join(1);
	TEST_EQ(ret, TEST_SUCCESS);
	TEST_OK(rmem_dev_audit(fx.a.dev));
}

TEST(mcast, qp_is_detached_while_messages_are_sent)
{
	fx_need_workers(1);
	run_rounds(attach_for_a_while);
}

TEST(mcast, qp_is_reset_while_messages_are_sent)
{
	fx_need_workers(1);
	attach(peer);
	run_rounds(reset_for_a_while);
	detach(peer);
}

/* IBTA 10.5.2.1: only a detach ends the membership. In RESET the QP receives nothing. */
TEST(mcast, qp_that_is_reset_stays_attached)
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, DATA);
	const struct rmem_send_wr wr = wr_to_group(&from);
	struct rmem_dev_stats before;

	attach(peer);
	post_recv(peer, 0);
	TEST_OK(rmem_dev_stats_get(fx.b.dev, &before));
	TEST_OK(rmem_qp_reset(peer));
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	expect_drops(&before, 0, 0, 1, 0); /* it has no Q_Key */
	TEST_OK(fx_ud_ready(peer, QKEY));
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	expect_drops(&before, 1, 0, 1, 0); /* the receive ended with the reset */
	post_recv(peer, 1);
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 1);
	TEST_OK(rmem_qp_reset(peer));
	TEST_ERR(rmem_qp_destroy(peer), EBUSY);
	detach(peer);
}

TEST_SUITE(mcast, setup, fx_teardown);
