/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Datagrams as single packets: those that a QP must not accept are dropped and counted, and the
 * fields of those that it sends are those of the request.
 */

#include <string.h>

#include <rmem_ah.h>
#include <rmem_dev_attr.h>
#include <rmem_driver.h>

#include "soft/mem/rsoft_grace.h"

#include "../rc.h"
#include "sides.h"

#define QKEY 0x1234u
#define DATA 8u

static struct rmem_qp *qp; /* of UD, on side 1 */
static struct rwire_addr peer;

static int
move(uint32_t state, uint32_t mask)
{
	const struct rmem_qp_attr attr = {
			.state = state, .port_num = 1, .qkey = QKEY, .sq_psn = 0xffffff};

	return rmem_qp_modify(qp, &attr, RMEM_QP_STATE | mask);
}

static void
open_both(void)
{
	struct rmem_qp_conf conf = rc_conf(NULL, 4, 4);

	open_sides(1024);
	TEST_ASSERT(rwire_addr_parse("127.0.7.1", &peer));
	conf.type = RMEM_QPT_UD;
	conf.send_cq = sides[1].send_cq;
	conf.recv_cq = sides[1].recv_cq;
	TEST_OK(rmem_qp_create(sides[1].pd, &conf, &qp));
	TEST_OK(move(RMEM_QPS_INIT, RMEM_QP_PKEY_INDEX | RMEM_QP_PORT | RMEM_QP_QKEY));
}

static void
close_both(void)
{
	TEST_OK(rmem_qp_destroy(qp));
	close_sides();
}

/* A receive for DATA bytes in the memory of side 1. */
static void
post_one(void)
{
	const struct rmem_sge sge = {.addr = (uintptr_t)sides[1].local,
			.length = RMEM_GRH_SIZE + DATA,
			.lkey = sides[1].mr->lkey};
	const struct rmem_recv_wr wr = {.wr_id = 7, .sg_list = &sge, .num_sge = 1};

	TEST_ASSERT(rmem_post_recv(qp, &wr, 1) == 1);
}

static struct rwire_pkt
datagram(void)
{
	return (struct rwire_pkt){.service = RWIRE_UD,
			.opcode = RWIRE_SEND_ONLY_WITH_IMM,
			.qpn = qp->qp_num,
			.psn = 99,
			.qkey = QKEY,
			.src_qp = 0x654321,
			.imm = 11,
			.payload_len = DATA};
}

/* How many receives complete when that packet arrives; in *wc, one of them. */
static int
inject(struct rwire_pkt pkt, struct rmem_wc *wc)
{
	static const uint8_t payload[RWIRE_MAX_MTU] = {1, 2, 3, 4, 5, 6, 7, 8};

	sim_inject(1, &peer, &pkt, payload, true);
	return rmem_poll_cq(sides[1].recv_cq, wc, 1);
}

TEST(wire_sim, datagrams_not_for_the_qp_are_dropped_and_counted)
{
	struct rmem_dev_stats stats;
	struct rmem_port_attr port;
	struct rwire_pkt pkt;
	struct rmem_wc wc;

	open_both();
	post_one();
	pkt = datagram();
	TEST_EQ(inject(pkt, &wc), 0); /* in INIT */
	TEST_OK(move(RMEM_QPS_RTR, 0));
	pkt.qkey ^= 0x80000000;
	TEST_EQ(inject(pkt, &wc), 0);
	pkt = datagram();
	pkt.payload_len = DATA + 1;
	TEST_EQ(inject(pkt, &wc), 0);
	pkt.payload_len = 1025; /* above the path MTU */
	TEST_EQ(inject(pkt, &wc), 0);
	pkt = datagram();
	pkt.service = RWIRE_RC;
	pkt.opcode = RWIRE_SEND_ONLY;
	TEST_EQ(inject(pkt, &wc), 0);
	pkt = datagram();
	pkt.qpn = sides[1].qp->qp_num; /* of RC */
	TEST_EQ(inject(pkt, &wc), 0);
	pkt = datagram();
	pkt.qpn = RMEM_MCAST_QPN; /* to the address of the device */
	TEST_EQ(inject(pkt, &wc), 0);
	TEST_EQ(inject(datagram(), &wc), 1);
	TEST_EQ(inject(datagram(), &wc), 0); /* no receive */
	post_one();
	TEST_OK(rmem_qp_set_error(qp));
	TEST_EQ(inject(datagram(), &wc), 1);
	TEST_EQ(wc.status, RMEM_WC_WR_FLUSH_ERR);
	TEST_OK(rmem_dev_stats_get(sides[1].dev, &stats));
	TEST_EQ(stats.drop_qkey, 1);
	TEST_EQ(stats.drop_length, 2);
	TEST_EQ(stats.drop_no_recv, 1);
	TEST_EQ(stats.wire_malformed, 3);
	TEST_EQ(stats.wire_unknown_qps, 2);
	TEST_EQ(((struct rsoft_qp *)sides[1].qp)->state, RMEM_QPS_RTS);
	TEST_OK(rmem_dev_port_query(sides[1].dev, 1, &port));
	TEST_EQ(port.bad_qkeys, 1);
	close_both();
}

/* How many receives complete when that packet to a group arrives; in *wc, one of them. */
static int
inject_to(const struct rwire_addr *group, const struct rwire_addr *src, struct rwire_pkt pkt,
		struct rmem_wc *wc)
{
	struct rsoft_dev *dev = rmem_dev_drv(sides[1].dev)->priv;
	uint8_t data[RWIRE_HEADROOM + RWIRE_MAX_PKT] = {0};
	struct rwire_frame frame = {.bth = data + RWIRE_HEADROOM,
			.is_mcast = true,
			.flow = {.src = *src, .dst = *group}};
	struct rwire_pkt got;
	unsigned int lcore;

	frame.len = rwire_pkt_build(frame.bth, &pkt);
	TEST_ASSERT(rwire_pkt_parse(frame.bth, frame.len, &got));
	lcore = rsoft_grace_enter();
	TEST_ASSERT(lcore != LCORE_ID_ANY);
	rwire_ud_group_pkt(dev->wire, &frame, &got);
	rsoft_grace_leave(lcore);
	return rmem_poll_cq(sides[1].recv_cq, wc, 1);
}

TEST(wire_sim, packets_to_a_group_reach_its_qps_alone)
{
	struct rsoft_dev *dev;
	struct rwire_addr group, other, far;
	struct rmem_dev_stats stats;
	struct rwire_pkt pkt;
	struct rmem_wc wc;

	open_both();
	dev = rmem_dev_drv(sides[1].dev)->priv;
	TEST_ASSERT(rwire_addr_from_text("239.7.0.1", &group));
	TEST_ASSERT(rwire_addr_from_text("239.7.0.2", &other));
	TEST_ASSERT(rwire_addr_from_text("192.0.2.7", &far));
	post_one();
	TEST_OK(move(RMEM_QPS_RTR, 0));
	TEST_OK(rmem_qp_attach_mcast(qp, group.gid, 0));
	pkt = datagram(); /* its QP number is not that of groups */
	TEST_EQ(inject_to(&group, &far, pkt, &wc), 0);
	pkt.qpn = RMEM_MCAST_QPN;
	TEST_EQ(inject_to(&other, &far, pkt, &wc), 0);
	pkt.service = RWIRE_RC;
	pkt.opcode = RWIRE_SEND_ONLY;
	TEST_EQ(inject_to(&group, &far, pkt, &wc), 0);
	pkt = datagram();
	pkt.qpn = RMEM_MCAST_QPN;
	pkt.qkey++;
	TEST_EQ(inject_to(&group, &far, pkt, &wc), 0);
	pkt.qkey--;
	dev->args.loop = 0; /* the sender has delivered it */
	TEST_EQ(inject_to(&group, &peer, pkt, &wc), 0);
	dev->args.loop = 1;
	TEST_OK(rwire_allow_parse(&dev->wire->allow, "192.0.2.7"));
	TEST_EQ(inject_to(&group, &peer, pkt, &wc), 0);
	TEST_EQ(inject_to(&group, &far, pkt, &wc), 1);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	TEST_MEM(sides[1].local + 36, group.gid + 12, 4);
	TEST_OK(rmem_dev_stats_get(sides[1].dev, &stats));
	TEST_EQ(stats.wire_malformed, 2);
	TEST_EQ(stats.wire_unknown_qps, 1);
	TEST_EQ(stats.wire_wrong_peers, 1);
	TEST_EQ(stats.drop_qkey, 1);
	TEST_OK(rmem_qp_detach_mcast(qp, group.gid, 0));
	close_both();
}

/* From any address: the header has it. */
TEST(wire_sim, datagrams_of_other_sources_than_allow_names_are_dropped)
{
	struct rwire_allow *allow;
	struct rmem_dev_stats stats;
	struct rmem_wc wc;

	open_both();
	allow = &((struct rsoft_dev *)rmem_dev_drv(sides[1].dev)->priv)->wire->allow;
	post_one();
	TEST_OK(move(RMEM_QPS_RTR, 0));
	TEST_OK(rwire_allow_parse(allow, "127.0.7.2"));
	TEST_EQ(inject(datagram(), &wc), 0);
	TEST_OK(rmem_dev_stats_get(sides[1].dev, &stats));
	TEST_EQ(stats.wire_wrong_peers, 1);
	TEST_OK(rwire_allow_parse(allow, "127.0.7.0/31"));
	TEST_EQ(inject(datagram(), &wc), 1);
	close_both();
}

TEST(wire_sim, datagram_completes_a_receive_with_its_source)
{
	struct rmem_ah_attr path;
	struct rmem_wc wc;

	open_both();
	TEST_OK(move(RMEM_QPS_RTR, 0));
	post_one();
	TEST_ASSERT(rwire_addr_parse("127.0.6.3", &peer));
	TEST_EQ(inject(datagram(), &wc), 1);
	TEST_EQ(wc.status, RMEM_WC_SUCCESS);
	TEST_EQ(wc.wr_id, 7);
	TEST_EQ(wc.src_qp, 0x654321);
	TEST_EQ(wc.byte_len, RMEM_GRH_SIZE + DATA);
	TEST_EQ(wc.flags, RMEM_WC_GRH | RMEM_WC_WITH_IMM);
	TEST_EQ(wc.imm_data, 11);
	/* Total length of the IPv4 header: headers, immediate data and ICRC. */
	TEST_EQ(sides[1].local[22] << 8 | sides[1].local[23], 20 + 8 + 12 + 8 + 4 + DATA + 4);
	TEST_EQ(sides[1].local[RMEM_GRH_SIZE + 7], 8);
	TEST_OK(rmem_ah_attr_from_wc(sides[1].dev, 1, &wc, sides[1].local, &path));
	TEST_MEM(path.dgid, peer.gid, sizeof(path.dgid));
	close_both();
}

/* A device without packets: its path MTU is longer, and its GID is no IPv4 address. */
static struct {
	uint8_t data[2048];
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_cq *cq;
	struct rmem_mr *mr;
	struct rmem_qp *qp;
	struct rmem_ah *ah;
} plain;

static void
open_plain(void)
{
	const struct rmem_cq_conf cq_conf = {.nb_cqe = 4};
	struct rmem_qp_conf conf = {.type = RMEM_QPT_UD, .max_send_wr = 4, .max_send_sge = 1};
	struct rmem_qp_attr attr = {.state = RMEM_QPS_INIT, .port_num = 1, .qkey = QKEY};
	struct rmem_ah_attr path = {.is_global = 1, .port_num = 1};

	TEST_OK(rmem_dev_create("soft2", "", &plain.dev));
	TEST_OK(rmem_pd_alloc(plain.dev, &plain.pd));
	TEST_OK(rmem_cq_create(plain.dev, &cq_conf, &plain.cq));
	TEST_OK(rmem_mr_reg(plain.pd, plain.data, sizeof(plain.data), 0, 0, &plain.mr));
	conf.send_cq = conf.recv_cq = plain.cq;
	TEST_OK(rmem_qp_create(plain.pd, &conf, &plain.qp));
	TEST_OK(rmem_qp_modify(plain.qp, &attr,
			RMEM_QP_STATE | RMEM_QP_PKEY_INDEX | RMEM_QP_PORT | RMEM_QP_QKEY));
	attr.state = RMEM_QPS_RTR;
	TEST_OK(rmem_qp_modify(plain.qp, &attr, RMEM_QP_STATE));
	attr.state = RMEM_QPS_RTS;
	TEST_OK(rmem_qp_modify(plain.qp, &attr, RMEM_QP_STATE | RMEM_QP_SQ_PSN));
	TEST_OK(rmem_qp_query(qp, &attr));
	memcpy(path.dgid, attr.addr.gid, sizeof(path.dgid));
	TEST_OK(rmem_ah_create(plain.pd, &path, &plain.ah));
}

static void
close_plain(void)
{
	TEST_OK(rmem_ah_destroy(plain.ah));
	TEST_OK(rmem_qp_destroy(plain.qp));
	TEST_OK(rmem_mr_dereg(plain.mr));
	TEST_OK(rmem_cq_destroy(plain.cq));
	TEST_OK(rmem_pd_dealloc(plain.pd));
	TEST_OK(rmem_dev_close(plain.dev));
}

static void
send_plain(uint32_t length)
{
	const struct rmem_sge from = {
			.addr = (uintptr_t)plain.data, .length = length, .lkey = plain.mr->lkey};
	const struct rmem_send_wr wr = {.opcode = RMEM_WR_SEND,
			.sg_list = &from,
			.num_sge = 1,
			.ud = {.ah = plain.ah, .remote_qpn = qp->qp_num, .remote_qkey = QKEY}};

	TEST_ASSERT(rmem_post_send(plain.qp, &wr, 1) == 1);
}

TEST(wire_sim, datagram_of_a_device_without_packets_has_its_gid)
{
	struct rmem_sge to = {.length = RMEM_GRH_SIZE + sizeof(plain.data)};
	const struct rmem_recv_wr recv = {.sg_list = &to, .num_sge = 1};
	struct rmem_qp_attr attr;
	struct rmem_ah_attr path;
	struct rmem_wc wc;

	open_both();
	TEST_OK(move(RMEM_QPS_RTR, 0));
	open_plain();
	to.addr = (uintptr_t)sides[1].local;
	to.lkey = sides[1].mr->lkey;
	TEST_EQ(rmem_post_recv(qp, &recv, 1), 1);
	send_plain(1025); /* above the path MTU of the receiver */
	TEST_EQ(rmem_poll_cq(sides[1].recv_cq, &wc, 1), 0);
	send_plain(1024);
	TEST_EQ(rmem_poll_cq(sides[1].recv_cq, &wc, 1), 1);
	TEST_EQ(wc.status, RMEM_WC_SUCCESS);
	TEST_EQ(wc.byte_len, RMEM_GRH_SIZE + 1024);
	TEST_OK(rmem_ah_attr_from_wc(sides[1].dev, 1, &wc, sides[1].local, &path));
	TEST_OK(rmem_qp_query(plain.qp, &attr));
	TEST_MEM(path.dgid, attr.addr.gid, sizeof(path.dgid));
	close_plain();
	close_both();
}

TEST(wire_sim, datagram_has_the_fields_of_its_request)
{
	struct rmem_ah_attr path = {.is_global = 1, .port_num = 1};
	struct rmem_sge from = {.length = 3};
	struct rmem_send_wr wr = rc_wr(RMEM_WR_SEND, &from);
	struct rwire_pkt pkt;
	struct rmem_wc wc;

	open_both();
	TEST_OK(move(RMEM_QPS_RTR, 0));
	TEST_OK(move(RMEM_QPS_RTS, RMEM_QP_SQ_PSN));
	memcpy(path.dgid, peer.gid, sizeof(path.dgid));
	from.addr = (uintptr_t)sides[1].local;
	from.lkey = sides[1].mr->lkey;
	wr.flags |= RMEM_SEND_SOLICITED;
	wr.ud.remote_qpn = 0x777777;
	wr.ud.remote_qkey = 5;
	TEST_OK(rmem_ah_create(sides[1].pd, &path, &wr.ud.ah));
	TEST_EQ(rmem_post_send(qp, &wr, 1), 1);
	wr.ud.remote_qkey = UINT32_C(1) << 31;
	TEST_EQ(rmem_post_send(qp, &wr, 1), 1);
	TEST_OK(rmem_ah_destroy(wr.ud.ah));
	TEST_EQ(rmem_poll_cq(sides[1].send_cq, &wc, 1), 1);
	TEST_EQ(wc.status, RMEM_WC_SUCCESS);
	TEST_ASSERT(sim_take(0, &pkt));
	TEST_EQ(pkt.service, RWIRE_UD);
	TEST_EQ(pkt.opcode, RWIRE_SEND_ONLY);
	TEST_EQ(pkt.qpn, 0x777777);
	TEST_EQ(pkt.qkey, 5);
	TEST_EQ(pkt.src_qp, qp->qp_num);
	TEST_EQ(pkt.psn, 0xffffff);
	TEST_EQ(pkt.payload_len, 3);
	TEST_ASSERT(pkt.is_solicited && !pkt.is_ack_req);
	TEST_ASSERT(sim_take(0, &pkt));
	TEST_EQ(pkt.qkey, QKEY);
	TEST_EQ(pkt.psn, 0);
	close_both();
}
