/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * QPs of UD and address handles: SEND of a packet to any QP, whose receive begins with the GRH. A
 * message may be lost in flight, so a case that waits for one sends it until it arrives.
 */

#include <string.h>

#include "conf.h"

#define QKEY 0x11111111u
#define DATA 64u

static struct rmem_qp *mine, *peer;
static struct rmem_ah *ah; /* of the port, which is that of both */
static uint32_t mtu;

static int
move(struct rmem_qp *qp, uint32_t state, uint32_t mask)
{
	const struct rmem_qp_attr attr = {.state = state, .port_num = 1, .qkey = QKEY};

	return rmem_qp_modify(qp, &attr, RMEM_QP_STATE | mask);
}

static struct rmem_ah_attr
path_to(struct rmem_qp *qp)
{
	struct rmem_ah_attr path = fx_path_to(qp);

	path.sgid_index = conf_gid_index(path.dgid);
	return path;
}

static struct rmem_ah *
make_ah(struct rmem_pd *pd, const struct rmem_ah_attr *path)
{
	struct rmem_ah *made;

	TEST_OK(rmem_ah_create(pd, path, &made));
	fx_track(made);
	return made;
}

/* Two QPs of UD: mine completes to b's CQ, its peer to a's. */
static void
setup(void)
{
	struct rmem_port_attr port;
	struct rmem_ah_attr path;

	conf_setup();
	if ((conf.info.capa & RMEM_DEV_CAPA_UD) == 0)
		return;
	TEST_OK(rmem_dev_port_query(conf.dev, 1, &port));
	mtu = UINT32_C(128) << port.active_mtu;
	peer = conf_qp_of(fx.a.pd, fx.a.cq, 0, RMEM_QPT_UD);
	mine = conf_qp_of(fx.b.pd, fx.b.cq, 0, RMEM_QPT_UD);
	TEST_OK(fx_ud_ready(mine, QKEY));
	TEST_OK(fx_ud_ready(peer, QKEY));
	path = path_to(peer);
	ah = make_ah(fx.b.pd, &path);
}

static struct rmem_send_wr
wr_to(const struct rmem_qp *qp, uint8_t opcode, const struct rmem_sge *sge)
{
	struct rmem_send_wr wr = fx_wr(opcode, sge, sge != NULL);

	wr.ud.ah = ah;
	wr.ud.remote_qpn = qp->qp_num;
	wr.ud.remote_qkey = QKEY;
	return wr;
}

static int
deliver(const struct rmem_send_wr *wr)
{
	return conf_deliver(mine, wr, fx.a.cq);
}

/* A receive for DATA bytes at the beginning of a's buffer. */
static int
post_recv(struct rmem_qp *qp, uint64_t wr_id)
{
	const struct rmem_sge to = fx_sge(fx.a.mr, 0, RMEM_GRH_SIZE + DATA);

	return fx_post_recv(qp, wr_id, &to, 1);
}

/* A message that follows shows that preceding ones have been processed. */
static void
expect_next(void)
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, DATA);
	const struct rmem_send_wr wr = wr_to(peer, RMEM_WR_SEND, &from);

	TEST_EQ(post_recv(peer, 99), 1);
	TEST_STATUS(deliver(&wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.byte_len, RMEM_GRH_SIZE + DATA);
	TEST_EQ(fx_state(peer), RMEM_QPS_RTS);
}

CONF_TEST(ud, send_reaches_the_receive_after_the_grh, RMEM_DEV_CAPA_UD, 0,
		"IBTA 9.8.3, 11.4.2.1; ibv_post_recv(3)")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, DATA);
	struct rmem_send_wr wr = wr_to(peer, RMEM_WR_SEND, &from);

	fx_fill(fx.b.buf, DATA, 3);
	TEST_EQ(post_recv(peer, 1), 1);
	TEST_STATUS(deliver(&wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 1);
	TEST_EQ(fx.wc.opcode, RMEM_WC_RECV);
	TEST_EQ(fx.wc.byte_len, RMEM_GRH_SIZE + DATA);
	TEST_EQ(fx.wc.qp_num, peer->qp_num);
	TEST_EQ(fx.wc.src_qp, mine->qp_num);
	TEST_EQ(fx.wc.flags & (RMEM_WC_GRH | RMEM_WC_WITH_IMM), RMEM_WC_GRH);
	TEST_MEM(fx.a.buf + RMEM_GRH_SIZE, fx.b.buf, DATA);
	wr.opcode = RMEM_WR_SEND_WITH_IMM;
	wr.imm_data = 42;
	do { /* the first one may have been late */
		TEST_EQ(post_recv(peer, 2), 1);
		TEST_STATUS(deliver(&wr), RMEM_WC_SUCCESS);
	} while ((fx.wc.flags & RMEM_WC_WITH_IMM) == 0);
	TEST_EQ(fx.wc.imm_data, 42);
}

CONF_TEST(ud, grh_has_the_address_of_the_sender, RMEM_DEV_CAPA_UD, 0,
		"ibv_create_ah_from_wc(3); IBTA 11.2.2.1")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, DATA), to = fx_sge(fx.b.mr, 4096, 4096);
	struct rmem_send_wr wr = wr_to(peer, RMEM_WR_SEND, &from);
	struct rmem_ah_attr back, path = path_to(mine);

	TEST_EQ(post_recv(peer, 1), 1);
	TEST_STATUS(deliver(&wr), RMEM_WC_SUCCESS);
	TEST_OK(rmem_ah_attr_from_wc(conf.dev, 1, &fx.wc, fx.a.buf, &back));
	TEST_EQ(back.is_global, 1);
	TEST_EQ(back.port_num, 1);
	TEST_MEM(back.dgid, path.dgid, sizeof(path.dgid));
	TEST_EQ(fx_post_recv(mine, 2, &to, 1), 1);
	wr = wr_to(mine, RMEM_WR_SEND, &from);
	wr.ud.remote_qpn = fx.wc.src_qp;
	wr.ud.ah = make_ah(fx.a.pd, &back);
	TEST_STATUS(conf_deliver(peer, &wr, fx.b.cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 2);
	TEST_EQ(fx.wc.src_qp, peer->qp_num);
}

CONF_TEST(ud, grh_has_the_traffic_class_of_the_ah, RMEM_DEV_CAPA_UD, 0,
		"IBTA 8.3; ibv_create_ah(3); RFC 2474: 6 bits of DSCP, 2 of ECN")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, DATA);
	struct rmem_send_wr wr = wr_to(peer, RMEM_WR_SEND, &from);
	struct rmem_ah_attr back, path = path_to(peer);

	path.traffic_class = 0xfc;
	wr.ud.ah = make_ah(fx.b.pd, &path);
	TEST_EQ(post_recv(peer, 1), 1);
	TEST_STATUS(deliver(&wr), RMEM_WC_SUCCESS);
	TEST_OK(rmem_ah_attr_from_wc(conf.dev, 1, &fx.wc, fx.a.buf, &back));
	TEST_EQ(back.traffic_class, 0xfc);
}

CONF_TEST(ud, message_has_at_most_the_path_mtu, RMEM_DEV_CAPA_UD, 0,
		"IBTA 9.8.3: a message is one packet")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, mtu);
	const struct rmem_sge to = fx_sge(fx.a.mr, 0, RMEM_GRH_SIZE + mtu);
	const struct rmem_sge more = fx_sge(fx.b.mr, 0, mtu + 1);
	struct rmem_send_wr wr = wr_to(peer, RMEM_WR_SEND, &from);
	int status;

	fx_fill(fx.b.buf, mtu, 7);
	TEST_EQ(fx_post_recv(peer, 1, &to, 1), 1);
	TEST_STATUS(deliver(&wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.byte_len, RMEM_GRH_SIZE + mtu);
	TEST_MEM(fx.a.buf + RMEM_GRH_SIZE, fx.b.buf, mtu);
	wr.sg_list = &more;
	status = fx_send(mine, &wr);
	if (status == RMEM_WC_SUCCESS && conf_deviates("ud_mtu")) {
		expect_next();
		return;
	}
	TEST_STATUS(status, RMEM_WC_LOC_LEN_ERR);
	TEST_EQ(fx_state(mine), RMEM_QPS_SQE);
}

CONF_TEST(ud, empty_and_scattered_messages_arrive, RMEM_DEV_CAPA_UD, 0, "IBTA 9.8.3")
{
	const struct rmem_sge from[2] = {fx_sge(fx.b.mr, 100, 30), fx_sge(fx.b.mr, 300, 34)};
	const struct rmem_sge to[2] = {fx_sge(fx.a.mr, 0, 33), fx_sge(fx.a.mr, 512, 71)};
	struct rmem_send_wr wr = wr_to(peer, RMEM_WR_SEND, NULL);

	TEST_EQ(post_recv(peer, 1), 1);
	TEST_STATUS(deliver(&wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.byte_len, RMEM_GRH_SIZE);
	fx_drain(fx.a.cq);
	fx_fill(fx.b.buf, 512, 5);
	wr.sg_list = from;
	wr.num_sge = 2;
	do { /* an empty one may have been late */
		TEST_EQ(fx_post_recv(peer, 2, to, 2), 1);
		TEST_STATUS(deliver(&wr), RMEM_WC_SUCCESS);
	} while (fx.wc.byte_len == RMEM_GRH_SIZE);
	TEST_EQ(fx.wc.byte_len, RMEM_GRH_SIZE + DATA);
	TEST_MEM(fx.a.buf + 512 + 7, fx.b.buf + 100, 30);
	TEST_MEM(fx.a.buf + 512 + 37, fx.b.buf + 300, 34);
}

CONF_TEST(ud, message_with_another_qkey_is_dropped, RMEM_DEV_CAPA_UD, 0,
		"IBTA 9.6.1.3.3, C9-47: Q_Key validation")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, DATA);
	struct rmem_send_wr wr = wr_to(peer, RMEM_WR_SEND, &from);

	memset(fx.a.buf, 0, DATA);
	memset(fx.b.buf, 0x77, DATA);
	TEST_EQ(post_recv(peer, 1), 1);
	wr.ud.remote_qkey = QKEY + 1;
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	wr = wr_to(peer, RMEM_WR_SEND_WITH_IMM, &from);
	wr.imm_data = 7;
	TEST_STATUS(deliver(&wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 1);
	TEST_EQ(fx.wc.flags & RMEM_WC_WITH_IMM, RMEM_WC_WITH_IMM);
}

CONF_TEST(ud, controlled_qkey_of_a_request_is_that_of_the_qp, RMEM_DEV_CAPA_UD, 0,
		"IBTA 10.2.5, 11.4.1.1: the high bit of the Q_Key")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, DATA);
	struct rmem_send_wr wr = wr_to(peer, RMEM_WR_SEND, &from);

	TEST_EQ(post_recv(peer, 1), 1);
	wr.ud.remote_qkey = UINT32_C(0x80000000) | 5;
	if (conf_is_known_deviation("ud_qkey")) {
		TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
		wr = wr_to(peer, RMEM_WR_SEND_WITH_IMM, &from);
	}
	TEST_STATUS(deliver(&wr), RMEM_WC_SUCCESS);
	if ((fx.wc.flags & RMEM_WC_WITH_IMM) != 0)
		TEST_ASSERT(conf_deviates("ud_qkey"));
	TEST_EQ(fx.wc.wr_id, 1);
}

CONF_TEST(ud, qkey_of_a_qp_can_change, RMEM_DEV_CAPA_UD, 0, "ibv_modify_qp(3): UD, RTS to RTS")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, DATA);
	struct rmem_send_wr wr = wr_to(peer, RMEM_WR_SEND, &from);
	struct rmem_qp_attr attr = {.qkey = 77};

	TEST_OK(rmem_qp_modify(peer, &attr, RMEM_QP_QKEY));
	TEST_OK(rmem_qp_query(peer, &attr));
	TEST_EQ(attr.qkey, 77);
	TEST_EQ(post_recv(peer, 1), 1);
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	wr.ud.remote_qkey = 77;
	wr.opcode = RMEM_WR_SEND_WITH_IMM;
	TEST_STATUS(deliver(&wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.flags & RMEM_WC_WITH_IMM, RMEM_WC_WITH_IMM);
}

/* The receive is not consumed (class D of IBTA 9.9.3). */
CONF_TEST(ud, message_longer_than_the_receive_is_dropped, RMEM_DEV_CAPA_UD, 0, "IBTA 9.8.3, 9.9.3")
{
	const struct rmem_sge more = fx_sge(fx.b.mr, 0, DATA + 1), from = fx_sge(fx.b.mr, 0, DATA);
	struct rmem_send_wr wr = wr_to(peer, RMEM_WR_SEND, &more);
	int status;

	TEST_EQ(post_recv(peer, 9), 1);
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	wr.sg_list = &from;
	status = deliver(&wr);
	if (status == RMEM_WC_LOC_QP_OP_ERR && conf_deviates("uc_long"))
		return;
	TEST_STATUS(status, RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 9);
	TEST_EQ(fx.wc.byte_len, RMEM_GRH_SIZE + DATA);
}

CONF_TEST(ud, message_without_a_receive_is_dropped, RMEM_DEV_CAPA_UD, 0, "IBTA 9.8.3, 9.9.3")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 8);
	const struct rmem_send_wr wr = wr_to(peer, RMEM_WR_SEND, &from);

	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx_state(mine), RMEM_QPS_RTS);
	TEST_EQ(fx_state(peer), RMEM_QPS_RTS);
}

CONF_TEST(ud, message_to_no_qp_of_ud_is_lost, RMEM_DEV_CAPA_UD, 0, "IBTA 9.6.1.1.1: BTH checks")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, DATA);
	struct rmem_send_wr wr = wr_to(fx.a.qp, RMEM_WR_SEND, &from);

	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS); /* of RC */
	wr.ud.remote_qpn = 0xfffffe;
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx_state(mine), RMEM_QPS_RTS);
	expect_next();
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_RTS);
}

CONF_TEST(ud, message_to_a_reset_qp_is_lost, RMEM_DEV_CAPA_UD, 0, "IBTA 9.6.1.1.1")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, DATA);
	const struct rmem_send_wr wr = wr_to(peer, RMEM_WR_SEND, &from);

	TEST_EQ(post_recv(peer, 1), 1);
	TEST_OK(rmem_qp_reset(peer));
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx_state(mine), RMEM_QPS_RTS);
	TEST_EQ(rmem_poll_cq(fx.a.cq, &fx.wc, 1), 0);
	TEST_OK(fx_ud_ready(peer, QKEY));
	expect_next();
}

CONF_TEST(ud, one_qp_sends_to_several, RMEM_DEV_CAPA_UD, 0, "IBTA 9.8.3")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, DATA);
	struct rmem_qp *other = conf_qp_of(fx.a.pd, fx.a.cq, 0, RMEM_QPT_UD);
	struct rmem_send_wr wr = wr_to(peer, RMEM_WR_SEND, &from);

	TEST_OK(fx_ud_ready(other, QKEY));
	TEST_EQ(post_recv(peer, 1), 1);
	TEST_EQ(post_recv(other, 2), 1);
	TEST_STATUS(deliver(&wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 1);
	TEST_EQ(fx.wc.qp_num, peer->qp_num);
	wr = wr_to(other, RMEM_WR_SEND, &from);
	TEST_STATUS(deliver(&wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 2);
	TEST_EQ(fx.wc.qp_num, other->qp_num);
	TEST_EQ(fx.wc.src_qp, mine->qp_num);
}

CONF_TEST(ud, qp_sends_to_itself, RMEM_DEV_CAPA_UD, 0, "IBTA 9.8.3, 17.2.1: loopback")
{
	struct rmem_qp *self = conf_qp_of(fx.a.pd, fx.a.cq, 0, RMEM_QPT_UD);
	const struct rmem_sge from = fx_sge(fx.a.mr, 4096, DATA);
	struct rmem_send_wr wr;
	unsigned int i, spins = 0;

	TEST_OK(fx_ud_ready(self, QKEY));
	fx_fill(fx.a.buf + 4096, DATA, 9);
	TEST_EQ(post_recv(self, 5), 1);
	wr = wr_to(self, RMEM_WR_SEND, &from);
	do { /* both complete to the same CQ */
		TEST_EQ(rmem_post_send(self, &wr, 1), 1);
		for (i = 0; i < 8000 && rmem_poll_cq(fx.a.cq, &fx.wc, 1) == 0; i++)
			fx_relax(&spins);
		TEST_EQ(fx.wc.status, RMEM_WC_SUCCESS);
	} while (fx.wc.opcode != RMEM_WC_RECV);
	TEST_EQ(fx.wc.wr_id, 5);
	TEST_EQ(fx.wc.src_qp, self->qp_num);
	TEST_MEM(fx.a.buf + RMEM_GRH_SIZE, fx.a.buf + 4096, DATA);
}

CONF_TEST(ud, inline_data_is_sent, RMEM_DEV_CAPA_UD, 0, "ibv_post_send(3): IBV_SEND_INLINE")
{
	uint8_t bytes[24] = {0};
	const struct rmem_sge from = {.addr = fx_addr(bytes), .length = sizeof(bytes)};
	struct rmem_send_wr wr = wr_to(peer, RMEM_WR_SEND, &from);

	if (conf.info.max_inline_data < sizeof(bytes))
		test_stop(TEST_SKIPPED);
	fx_fill(bytes, sizeof(bytes), 4);
	wr.flags |= RMEM_SEND_INLINE;
	TEST_EQ(post_recv(peer, 1), 1);
	TEST_STATUS(deliver(&wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.byte_len, RMEM_GRH_SIZE + sizeof(bytes));
	TEST_MEM(fx.a.buf + RMEM_GRH_SIZE, bytes, sizeof(bytes));
}

CONF_TEST(ud, ah_can_be_destroyed_after_the_post, RMEM_DEV_CAPA_UD, 0,
		"IBTA 11.2.2.5; ibv_post_send(3)")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, DATA);
	struct rmem_send_wr wr = wr_to(peer, RMEM_WR_SEND, &from);
	uint64_t deadline = fx_deadline();
	unsigned int i, spins = 0;
	struct rmem_ah_attr path = path_to(peer);

	wr.flags |= RMEM_SEND_SIGNALED;
	TEST_EQ(post_recv(peer, 1), 1);
	do {
		TEST_OK(rmem_ah_create(fx.b.pd, &path, &wr.ud.ah));
		fx_track(wr.ud.ah);
		TEST_EQ(rmem_post_send(mine, &wr, 1), 1);
		TEST_OK(fx_release(wr.ud.ah));
		TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
		for (i = 0; i < 8000 && rmem_poll_cq(fx.a.cq, &fx.wc, 1) == 0; i++)
			fx_relax(&spins);
	} while (i == 8000 && !fx_is_late(deadline));
	TEST_EQ(fx.wc.wr_id, 1);
	TEST_EQ(fx.wc.opcode, RMEM_WC_RECV);
}

CONF_TEST(ud, receives_of_an_srq_are_consumed, RMEM_DEV_CAPA_UD | RMEM_DEV_CAPA_SRQ, 0,
		"IBTA 10.2.9: SRQ and UD")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, DATA);
	const struct rmem_sge to = fx_sge(fx.a.mr, 0, RMEM_GRH_SIZE + DATA);
	const struct rmem_recv_wr recv = {.wr_id = 7, .sg_list = &to, .num_sge = 1};
	const struct rmem_srq_conf conf_srq = {.max_wr = 8, .max_sge = 1};
	struct rmem_qp_conf conf_qp = fx_qp_conf(fx.a.cq, 8);
	struct rmem_send_wr wr;
	struct rmem_srq *srq;
	struct rmem_qp *qp;

	TEST_OK(rmem_srq_create(fx.a.pd, &conf_srq, &srq));
	fx_track(srq);
	conf_qp.max_inline_data = 0;
	conf_qp.type = RMEM_QPT_UD;
	conf_qp.srq = srq;
	qp = fx_qp_by(fx.a.pd, &conf_qp);
	TEST_OK(fx_ud_ready(qp, QKEY));
	TEST_EQ(rmem_srq_post_recv(srq, &recv, 1), 1);
	wr = wr_to(qp, RMEM_WR_SEND, &from);
	TEST_STATUS(deliver(&wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.wr_id, 7);
	TEST_EQ(fx.wc.qp_num, qp->qp_num);
	TEST_EQ(fx.wc.flags & RMEM_WC_GRH, RMEM_WC_GRH);
	TEST_EQ(fx.wc.byte_len, RMEM_GRH_SIZE + DATA);
}

CONF_TEST(ud, other_requests_are_refused, RMEM_DEV_CAPA_UD, 0,
		"IBTA table 38: opcodes of UD; ibv_post_send(3)")
{
	static const uint8_t opcodes[] = {RMEM_WR_RDMA_WRITE, RMEM_WR_RDMA_WRITE_WITH_IMM,
			RMEM_WR_RDMA_READ, RMEM_WR_ATOMIC_CMP_AND_SWP, RMEM_WR_ATOMIC_FETCH_AND_ADD,
			RMEM_WR_SEND_WITH_INV};
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr;
	size_t i;

	for (i = 0; i < RTE_DIM(opcodes); i++) {
		wr = wr_to(peer, opcodes[i], &sge);
		TEST_ERR(rmem_post_send(mine, &wr, 1), EOPNOTSUPP);
	}
}

CONF_TEST(ud, request_without_its_ah_is_refused, RMEM_DEV_CAPA_UD, 0,
		"IBTA 11.4.1.1: invalid address handle")
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	struct rmem_send_wr wr = wr_to(peer, RMEM_WR_SEND, &sge);
	struct rmem_pd *pd = fx_pd(conf.dev);
	struct rmem_ah_attr path = path_to(peer);

	wr.ud.ah = NULL;
	TEST_ERR(rmem_post_send(mine, &wr, 1), EINVAL);
	wr.ud.ah = (struct rmem_ah *)fx.b.mr;
	TEST_ERR(rmem_post_send(mine, &wr, 1), EINVAL);
	wr.ud.ah = make_ah(pd, &path);
	TEST_ERR(rmem_post_send(mine, &wr, 1), EPERM);
	wr.ud.ah = ah;
	wr.ud.remote_qpn = 0x1000000;
	TEST_ERR(rmem_post_send(mine, &wr, 1), EINVAL);
}

CONF_TEST(ud, failed_request_moves_to_sqe, RMEM_DEV_CAPA_UD, 0, "IBTA 10.3.1.6: Send Queue Error")
{
	const struct rmem_sge bad = {.addr = fx_addr(fx.b.buf), .length = 8, .lkey = 1};
	const struct rmem_send_wr wr = wr_to(peer, RMEM_WR_SEND, &bad);

	conf_status(CONF_LOCAL_KEY, fx_send(mine, &wr));
	if (fx_state(mine) == RMEM_QPS_ERR && conf_deviates("uc_sqe"))
		return;
	TEST_EQ(fx_state(mine), RMEM_QPS_SQE);
	TEST_OK(move(mine, RMEM_QPS_RTS, 0));
	expect_next();
}

CONF_TEST(ud, attributes_of_a_connection_are_refused, RMEM_DEV_CAPA_UD, 0,
		"ibv_modify_qp(3): attributes required and permitted for UD")
{
	const uint32_t init = RMEM_QP_PKEY_INDEX | RMEM_QP_PORT | RMEM_QP_QKEY;
	const struct rmem_qp_conn conn = fx_conn();

	TEST_OK(rmem_qp_reset(mine));
	TEST_ERR(rmem_qp_connect(mine, &conn), EINVAL);
	TEST_ERR(move(mine, RMEM_QPS_INIT, init & ~RMEM_QP_QKEY), EINVAL);
	TEST_ERR(move(mine, RMEM_QPS_INIT, init | RMEM_QP_ACCESS_FLAGS), EINVAL);
	TEST_OK(move(mine, RMEM_QPS_INIT, init));
	TEST_ERR(move(mine, RMEM_QPS_RTR, RMEM_QP_AV), EINVAL);
	TEST_ERR(move(mine, RMEM_QPS_RTR, RMEM_QP_DEST_QPN), EINVAL);
	TEST_OK(move(mine, RMEM_QPS_RTR, RMEM_QP_QKEY));
	TEST_ERR(move(mine, RMEM_QPS_RTS, 0), EINVAL);
	TEST_ERR(move(mine, RMEM_QPS_RTS, RMEM_QP_SQ_PSN | RMEM_QP_TIMEOUT), EINVAL);
	TEST_OK(move(mine, RMEM_QPS_RTS, RMEM_QP_SQ_PSN));
	TEST_ERR(rmem_qp_modify(fx.a.qp, &(const struct rmem_qp_attr){.qkey = 1}, RMEM_QP_QKEY),
			EINVAL);
}

CONF_TEST(ud, paths_are_checked, RMEM_DEV_CAPA_UD, 0, "ibv_create_ah(3)")
{
	const struct rmem_ah_attr good = path_to(peer);
	struct rmem_ah_attr path = good;
	struct rmem_ah *made;

	TEST_ERR(rmem_ah_create(NULL, &path, &made), EINVAL);
	TEST_ERR(rmem_ah_create(fx.a.pd, NULL, &made), EINVAL);
	TEST_ERR(rmem_ah_create(fx.a.pd, &path, NULL), EINVAL);
	path.port_num = 0;
	TEST_ERR(rmem_ah_create(fx.a.pd, &path, &made), EINVAL);
	path.port_num = 200;
	TEST_ERR(rmem_ah_create(fx.a.pd, &path, &made), EINVAL);
	path = good;
	path.is_global = 2;
	TEST_ERR(rmem_ah_create(fx.a.pd, &path, &made), EINVAL);
	path = good;
	path.reserved[1] = 1;
	TEST_ERR(rmem_ah_create(fx.a.pd, &path, &made), EINVAL);
	TEST_ERR(rmem_ah_destroy((struct rmem_ah *)fx.a.pd), EINVAL);
	TEST_OK(rmem_ah_destroy(NULL));
}

CONF_TEST(ud, header_of_no_message_is_refused, RMEM_DEV_CAPA_UD, 0, "ibv_init_ah_from_wc(3)")
{
	struct rmem_wc wc = {.flags = RMEM_WC_GRH};
	uint8_t grh[RMEM_GRH_SIZE] = {0};
	struct rmem_ah_attr attr;

	TEST_ERR(rmem_ah_attr_from_wc(conf.dev, 1, &wc, grh, &attr), EINVAL);
	grh[0] = 0x60; /* of IPv6, to another host */
	TEST_ERR(rmem_ah_attr_from_wc(conf.dev, 1, &wc, grh, &attr), ENOENT);
	grh[0] = 0;
	grh[20] = 0x45; /* of IPv4, without a checksum */
	TEST_ERR(rmem_ah_attr_from_wc(conf.dev, 1, &wc, grh, &attr), ENOENT);
	TEST_ERR(rmem_ah_attr_from_wc(conf.dev, 1, NULL, grh, &attr), EINVAL);
	TEST_ERR(rmem_ah_attr_from_wc(conf.dev, 1, &wc, NULL, &attr), EINVAL);
	TEST_ERR(rmem_ah_attr_from_wc(conf.dev, 1, &wc, grh, NULL), EINVAL);
	wc.flags = 0;
	TEST_ERR(rmem_ah_attr_from_wc(conf.dev, 1, &wc, grh, &attr), EOPNOTSUPP);
}

TEST_SUITE(ud, setup, conf_teardown);
