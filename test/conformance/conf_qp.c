/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Transitions of a QP one by one: rmem_qp_modify() has the rules of ibv_modify_qp(3). */

#include <string.h>

#include "conf.h"

#define INIT_MASK (RMEM_QP_STATE | RMEM_QP_PKEY_INDEX | RMEM_QP_PORT | RMEM_QP_ACCESS_FLAGS)
#define RTR_MASK                                                                                   \
	(RMEM_QP_STATE | RMEM_QP_AV | RMEM_QP_PATH_MTU | RMEM_QP_DEST_QPN | RMEM_QP_RQ_PSN |       \
			RMEM_QP_MAX_DEST_RD_ATOMIC | RMEM_QP_MIN_RNR_TIMER)
#define RTS_MASK                                                                                   \
	(RMEM_QP_STATE | RMEM_QP_TIMEOUT | RMEM_QP_RETRY_CNT | RMEM_QP_RNR_RETRY |                 \
			RMEM_QP_SQ_PSN | RMEM_QP_MAX_QP_RD_ATOMIC)

/* Attributes of a's and b's QP as connected by rmem_qp_connect(). */
static struct rmem_qp_attr of_a, of_b;

/* Both in RESET again. */
static void
setup(void)
{
	conf_setup();
	TEST_OK(rmem_qp_query(fx.a.qp, &of_a));
	TEST_OK(rmem_qp_query(fx.b.qp, &of_b));
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(rmem_qp_reset(fx.b.qp));
}

static int
move(struct rmem_qp *qp, struct rmem_qp_attr attr, uint32_t state, uint32_t mask)
{
	attr.state = state;
	return rmem_qp_modify(qp, &attr, mask | RMEM_QP_STATE);
}

static int
move_to_rtr(struct rmem_qp *qp, const struct rmem_qp_attr *attr)
{
	int ret = move(qp, *attr, RMEM_QPS_INIT, INIT_MASK);

	return ret != 0 ? ret : move(qp, *attr, RMEM_QPS_RTR, RTR_MASK);
}

static int
move_to_rts(struct rmem_qp *qp, const struct rmem_qp_attr *attr)
{
	int ret = move_to_rtr(qp, attr);

	return ret != 0 ? ret : move(qp, *attr, RMEM_QPS_RTS, RTS_MASK);
}

CONF_TEST(qp, rate_limit_is_set_in_rts, RMEM_DEV_CAPA_RATE_LIMIT, 0,
		"ibv_modify_qp(3), ibv_modify_qp_rate_limit(3)")
{
	struct rmem_qp_attr attr = {.rate_limit = 100000}, got;

	TEST_OK(move_to_rtr(fx.a.qp, &of_a));
	TEST_ERR(rmem_qp_modify(fx.a.qp, &attr, RMEM_QP_RATE_LIMIT), EBUSY);
	of_a.rate_limit = 200000;
	TEST_OK(move(fx.a.qp, of_a, RMEM_QPS_RTS, RTS_MASK | RMEM_QP_RATE_LIMIT));
	TEST_OK(rmem_qp_query(fx.a.qp, &got));
	TEST_EQ(got.rate_limit, 200000);
	TEST_OK(rmem_qp_modify(fx.a.qp, &attr, RMEM_QP_RATE_LIMIT));
	TEST_OK(rmem_qp_query(fx.a.qp, &got));
	TEST_EQ(got.rate_limit, 100000);
	TEST_ERR(move(fx.a.qp, attr, RMEM_QPS_SQD, RMEM_QP_RATE_LIMIT), EINVAL);
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_OK(rmem_qp_query(fx.a.qp, &got));
	TEST_EQ(got.rate_limit, 0);
}

/* Attributes of a QP that reaches its peer by a port of both. */
static struct rmem_qp_attr
at_port(const struct rmem_qp_attr *of, const struct rmem_gid_entry *gid, uint16_t lid)
{
	struct rmem_qp_attr attr = *of;

	attr.port_num = attr.ah.port_num = (uint8_t)gid->port_num;
	attr.ah.is_global = 1;
	attr.ah.sgid_index = 0;
	attr.ah.dlid = lid;
	memcpy(attr.ah.dgid, gid->gid, sizeof(attr.ah.dgid));
	return attr;
}

CONF_TEST(qp, requests_are_executed_by_each_port, 0, 0, "ibv_modify_qp(3): port_num")
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	const struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
	struct rmem_gid_entry gid;
	struct rmem_port_attr port;
	struct rmem_dev_attr dev;
	struct rmem_qp_attr attr;
	uint32_t i;

	TEST_OK(rmem_dev_attr_get(conf.dev, &dev));
	TEST_SKIP_IF(dev.nb_ports == 1, "the device has one port");
	for (i = 1; i <= dev.nb_ports; i++) {
		TEST_OK(rmem_dev_port_query(conf.dev, i, &port));
		if (port.state != RMEM_PORT_ACTIVE)
			continue;
		TEST_OK(rmem_dev_gid_query(conf.dev, i, 0, &gid));
		attr = at_port(&of_b, &gid, port.lid);
		TEST_OK(move_to_rts(fx.b.qp, &attr));
		attr = at_port(&of_a, &gid, port.lid);
		TEST_OK(move_to_rts(fx.a.qp, &attr));
		TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
		TEST_OK(rmem_qp_query(fx.a.qp, &attr));
		TEST_EQ(attr.port_num, i);
		TEST_OK(rmem_qp_reset(fx.a.qp));
		TEST_OK(rmem_qp_reset(fx.b.qp));
	}
}

CONF_TEST(qp, query_returns_the_attributes_that_were_set, 0, 0,
		"ibv_query_qp(3); IBTA 11.2.5.3: Query Queue Pair")
{
	struct rmem_qp_attr got, want = of_a;

	want.timeout = 17;
	want.retry_cnt = 5;
	want.rnr_retry = 4;
	want.min_rnr_timer = 9;
	want.sq_psn = 0x123456;
	want.access = RMEM_ACCESS_REMOTE_READ;
	TEST_OK(move_to_rts(fx.a.qp, &want));
	TEST_OK(rmem_qp_query(fx.a.qp, &got));
	TEST_EQ(got.state, RMEM_QPS_RTS);
	TEST_EQ(got.access, want.access);
	TEST_EQ(got.timeout, want.timeout);
	TEST_EQ(got.retry_cnt, want.retry_cnt);
	TEST_EQ(got.rnr_retry, want.rnr_retry);
	TEST_EQ(got.min_rnr_timer, want.min_rnr_timer);
	TEST_EQ(got.sq_psn, want.sq_psn);
	TEST_EQ(got.dest_qp_num, fx.b.qp->qp_num);
	TEST_EQ(got.remote.qp_num, fx.b.qp->qp_num);
	TEST_EQ(got.port_num, want.port_num);
	TEST_MEM(got.ah.dgid, want.ah.dgid, sizeof(want.ah.dgid));
}

/* IBTA 10.3.1: INIT accepts receives, RTR responds, RTS requests. */
CONF_TEST(qp, each_state_permits_the_requests_of_verbs, 0, RMEM_ACCESS_REMOTE_WRITE,
		"IBTA 10.3.1.2 to 10.3.1.4; ibv_post_send(3)")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 64);
	const struct rmem_sge to = fx_sge(fx.a.mr, 0, 64);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);

	TEST_ERR(fx_post_recv(fx.a.qp, 1, &to, 1), EBUSY);
	TEST_OK(move(fx.a.qp, of_a, RMEM_QPS_INIT, INIT_MASK));
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_INIT);
	TEST_EQ(fx_post_recv(fx.a.qp, 1, &to, 1), 1);
	TEST_ERR(fx_post(fx.a.qp, &wr), EBUSY);
	TEST_OK(move(fx.a.qp, of_a, RMEM_QPS_RTR, RTR_MASK));
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_RTR);
	TEST_ERR(fx_post(fx.a.qp, &wr), EBUSY);
	TEST_OK(move_to_rts(fx.b.qp, &of_b));
	fx_fill(fx.b.buf, 64, 7);
	fx_deliver(&fx.b, &fx.a, &wr);
	TEST_EQ(fx.wc.wr_id, 1);
	TEST_MEM(fx.a.buf, fx.b.buf, 64);
	TEST_OK(move(fx.a.qp, of_a, RMEM_QPS_RTS, RTS_MASK));
	TEST_EQ(fx_post_recv(fx.b.qp, 2, &from, 1), 1);
	wr = fx_wr(RMEM_WR_SEND, &to, 1);
	fx_deliver(&fx.a, &fx.b, &wr);
}

CONF_TEST(qp, error_in_init_flushes_the_receives, 0, 0, "IBTA 10.3.1.7: Error")
{
	TEST_OK(move(fx.a.qp, of_a, RMEM_QPS_INIT, INIT_MASK));
	TEST_EQ(fx_post_recv(fx.a.qp, 5, NULL, 0), 1);
	TEST_OK(move(fx.a.qp, of_a, RMEM_QPS_ERR, 0));
	TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_WR_FLUSH_ERR);
	TEST_EQ(fx.wc.wr_id, 5);
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_ERR);
}

CONF_TEST(qp, missing_and_superfluous_attributes_are_refused, 0, 0,
		"ibv_modify_qp(3): required and optional attributes")
{
	uint32_t bit;

	for (bit = 2; bit <= RMEM_QP_DEST_QPN; bit <<= 1) {
		if ((INIT_MASK & bit) != 0)
			TEST_ERR(move(fx.a.qp, of_a, RMEM_QPS_INIT, INIT_MASK & ~bit), EINVAL);
		else if (bit != RMEM_QP_CUR_STATE)
			TEST_ERR(move(fx.a.qp, of_a, RMEM_QPS_INIT, INIT_MASK | bit), EINVAL);
	}
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_RESET);
	TEST_OK(move(fx.a.qp, of_a, RMEM_QPS_INIT, INIT_MASK));
	for (bit = 2; bit <= RMEM_QP_DEST_QPN; bit <<= 1) {
		if ((RTR_MASK & bit) != 0)
			TEST_ERR(move(fx.a.qp, of_a, RMEM_QPS_RTR, RTR_MASK & ~bit), EINVAL);
	}
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_INIT);
	TEST_OK(move(fx.a.qp, of_a, RMEM_QPS_RTR, RTR_MASK));
	for (bit = 2; bit <= RMEM_QP_DEST_QPN; bit <<= 1) {
		if ((RTS_MASK & bit) != 0)
			TEST_ERR(move(fx.a.qp, of_a, RMEM_QPS_RTS, RTS_MASK & ~bit), EINVAL);
	}
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_RTR);
}

CONF_TEST(qp, reads_and_atomics_beyond_the_limits_are_refused, 0, 0,
		"ibv_modify_qp(3): max_rd_atomic, max_dest_rd_atomic")
{
	struct rmem_qp_attr attr = of_a;
	struct rmem_dev_attr limits;

	TEST_OK(rmem_dev_attr_get(conf.dev, &limits));
	if (limits.max_rd_atomic >= UINT8_MAX || limits.max_dest_rd_atomic >= UINT8_MAX)
		test_skip("the limits of the device are those of the field");
	attr.max_dest_rd_atomic = (uint8_t)(limits.max_dest_rd_atomic + 1);
	TEST_ERR(move_to_rtr(fx.a.qp, &attr), EINVAL);
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_INIT);
	attr.max_dest_rd_atomic--;
	TEST_OK(move(fx.a.qp, attr, RMEM_QPS_RTR, RTR_MASK));
	attr.max_rd_atomic = (uint8_t)(limits.max_rd_atomic + 1);
	TEST_ERR(move(fx.a.qp, attr, RMEM_QPS_RTS, RTS_MASK), EINVAL);
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_RTR);
	attr.max_rd_atomic--;
	TEST_ASSERT(move(fx.a.qp, attr, RMEM_QPS_RTS, RTS_MASK) == 0);
}

CONF_TEST(qp, transitions_that_do_not_exist_are_refused, 0, 0, "IBTA 10.3.1: the state diagram")
{
	TEST_ERR(move(fx.a.qp, of_a, RMEM_QPS_RTR, RTR_MASK), EBUSY);
	TEST_ERR(move(fx.a.qp, of_a, RMEM_QPS_RTS, RTS_MASK), EBUSY);
	TEST_ERR(move(fx.a.qp, of_a, RMEM_QPS_ERR, 0), EBUSY);
	TEST_ERR(move(fx.a.qp, of_a, RMEM_QPS_SQD, 0), EBUSY);
	TEST_OK(move_to_rts(fx.a.qp, &of_a));
	TEST_ERR(move(fx.a.qp, of_a, RMEM_QPS_INIT, INIT_MASK), EBUSY);
	TEST_ERR(move(fx.a.qp, of_a, RMEM_QPS_SQE, 0), EBUSY);
	TEST_ERR(move(fx.a.qp, of_a, RMEM_QPS_ERR + 1, 0), EINVAL);
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_RTS);
}

CONF_TEST(qp, unexpected_current_state_is_refused, 0, 0, "ibv_modify_qp(3): IBV_QP_CUR_STATE")
{
	struct rmem_qp_attr attr = {.state = RMEM_QPS_RTS, .cur_state = RMEM_QPS_SQD};

	TEST_OK(move_to_rts(fx.a.qp, &of_a));
	TEST_ERR(rmem_qp_modify(fx.a.qp, &attr, RMEM_QP_STATE | RMEM_QP_CUR_STATE), EBUSY);
	attr.cur_state = RMEM_QPS_RTS;
	TEST_OK(rmem_qp_modify(fx.a.qp, &attr, RMEM_QP_STATE | RMEM_QP_CUR_STATE));
}

/* A right revoked while connected is refused from then on. */
CONF_TEST(qp, rights_of_a_connected_qp_change, 0, RMEM_ACCESS_REMOTE_WRITE,
		"ibv_modify_qp(3): IBV_QP_ACCESS_FLAGS of RTS to RTS")
{
	struct rmem_qp_attr attr = {.access = RMEM_ACCESS_REMOTE_READ};
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.a);

	TEST_OK(move_to_rts(fx.a.qp, &of_a));
	TEST_OK(move_to_rts(fx.b.qp, &of_b));
	TEST_STATUS(fx_send(fx.b.qp, &wr), RMEM_WC_SUCCESS);
	TEST_OK(rmem_qp_modify(fx.a.qp, &attr, RMEM_QP_ACCESS_FLAGS));
	conf_status(CONF_QP_RIGHT, fx_send(fx.b.qp, &wr));
}

/* The rights of INIT are never in force. */
CONF_TEST(qp, rights_set_with_rtr_replace_those_of_init, 0, RMEM_ACCESS_REMOTE_WRITE,
		"ibv_modify_qp(3): IBV_QP_ACCESS_FLAGS of INIT to RTR")
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.a);
	struct rmem_qp_attr attr = of_a;

	TEST_OK(move(fx.a.qp, attr, RMEM_QPS_INIT, INIT_MASK));
	attr.access = RMEM_ACCESS_REMOTE_READ;
	TEST_OK(move(fx.a.qp, attr, RMEM_QPS_RTR, RTR_MASK | RMEM_QP_ACCESS_FLAGS));
	TEST_OK(move_to_rts(fx.b.qp, &of_b));
	conf_status(CONF_QP_RIGHT, fx_send(fx.b.qp, &wr));
}

TEST_SUITE(qp, setup, conf_teardown);
