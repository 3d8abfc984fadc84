/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Multicast: messages to a group reach each QP of UD that is attached to it, with the GID of the
 * group in the GRH. A message may be lost in flight, so a case that waits for one sends it until it
 * arrives.
 */

#include <string.h>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conf.h"

#define QKEY 0x11111111u
#define DATA 64u
#define SLOT 256u
#define LID  0xc001

static struct rmem_qp *mine, *peers[2];
static struct rmem_ah *ah; /* of the group */
static uint8_t group[16];
static int host = -1; /* a socket that is in the group */

/* The host itself must be in the group, as rdma_join_multicast() lets it be. */
static void
join_by_host(uint32_t ifindex)
{
	struct ip_mreqn req = {.imr_ifindex = (int)ifindex};

	memcpy(&req.imr_multiaddr, group + 12, sizeof(req.imr_multiaddr));
	host = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	TEST_ASSERT(host >= 0);
	TEST_OK(setsockopt(host, IPPROTO_IP, IP_ADD_MEMBERSHIP, &req, sizeof(req)));
}

/* A path to the group, which is of the family of the port's GID. */
static struct rmem_ah_attr
path_to_group(void)
{
	static const uint8_t ipv4[16] = {[10] = 0xff, [11] = 0xff, [12] = 239, 1, 2, 3};
	static const uint8_t ipv6[16] = {0xff, 0x05, [14] = 0x76, [15] = 0x43};
	struct rmem_ah_attr path = {
			.is_global = 1, .hop_limit = 1, .port_num = 1, .dlid = LID, .sl = 0};
	struct rmem_gid_entry entry;
	struct rmem_qp_attr attr;

	TEST_OK(rmem_qp_query(mine, &attr));
	path.sgid_index = conf_gid_index(attr.addr.gid);
	memcpy(group, memcmp(attr.addr.gid, ipv4, 12) == 0 ? ipv4 : ipv6, sizeof(group));
	memcpy(path.dgid, group, sizeof(path.dgid));
	if (conf_is_known_deviation("mcast_join") && group[0] != 0xff) {
		TEST_OK(rmem_dev_gid_query(conf.dev, 1, path.sgid_index, &entry));
		join_by_host(entry.ifindex);
	}
	return path;
}

static void
setup(void)
{
	struct rmem_ah_attr path;
	unsigned int i;

	mine = peers[0] = peers[1] = NULL;
	conf_setup();
	if ((conf.info.capa & RMEM_DEV_CAPA_MCAST) == 0)
		return;
	mine = conf_qp_of(fx.b.pd, fx.b.cq, 0, RMEM_QPT_UD);
	TEST_OK(fx_ud_ready(mine, QKEY));
	for (i = 0; i < RTE_DIM(peers); i++) {
		peers[i] = conf_qp_of(fx.a.pd, fx.a.cq, 0, RMEM_QPT_UD);
		TEST_OK(fx_ud_ready(peers[i], QKEY));
	}
	path = path_to_group();
	TEST_OK(rmem_ah_create(fx.b.pd, &path, &ah));
	fx_track(ah);
}

/* Before the QPs are destroyed. */
static void
teardown(void)
{
	unsigned int i;

	if (conf.info.capa & RMEM_DEV_CAPA_MCAST) {
		for (i = 0; i < RTE_DIM(peers); i++)
			(void)rmem_qp_detach_mcast(peers[i], group, LID);
		(void)rmem_qp_detach_mcast(mine, group, LID);
	}
	if (host >= 0)
		close(host);
	host = -1;
	conf_teardown();
}

static struct rmem_send_wr
wr_to_group(const struct rmem_sge *sge)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, sge, sge != NULL);

	wr.ud.ah = ah;
	wr.ud.remote_qpn = RMEM_MCAST_QPN;
	wr.ud.remote_qkey = QKEY;
	return wr;
}

/* A receive in a slot of a's buffer, or of b's. */
static int
post_recv(struct rmem_qp *qp, uint64_t slot)
{
	const struct rmem_mr *mr = qp == mine ? fx.b.mr : fx.a.mr;
	const struct rmem_sge to = fx_sge(mr, slot * SLOT, RMEM_GRH_SIZE + DATA);

	return fx_post_recv(qp, slot, &to, 1);
}

/* Send until each QP of a mask has a message, by the bits of their indexes; the last is fx.wc. */
static int
deliver_to(const struct rmem_send_wr *wr, uint32_t wanted, uint32_t *got)
{
	uint64_t deadline = fx_deadline();
	unsigned int i, spins = 0;

	for (*got = 0; (*got & wanted) != wanted && !fx_is_late(deadline);) {
		TEST_STATUS(fx_send(mine, wr), RMEM_WC_SUCCESS);
		for (i = 0; i < 8000 && (*got & wanted) != wanted; i++) {
			if (rmem_poll_cq(fx.a.cq, &fx.wc, 1) == 1) {
				TEST_STATUS(fx.wc.status, RMEM_WC_SUCCESS);
				*got |= fx.wc.qp_num == peers[0]->qp_num ? 1u : 2u;
			}
			fx_relax(&spins);
		}
	}
	return (*got & wanted) == wanted ? 0 : -1;
}

CONF_TEST(mcast, message_reaches_each_attached_qp, RMEM_DEV_CAPA_MCAST, 0,
		"IBTA 10.5.2, 9.6.1.1.1: QP number 0xffffff; ibv_attach_mcast(3)")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, DATA);
	struct rmem_send_wr wr = wr_to_group(&from);
	uint32_t got;

	fx_fill(fx.b.buf, DATA, 3);
	TEST_OK(rmem_qp_attach_mcast(peers[0], group, LID));
	TEST_OK(rmem_qp_attach_mcast(peers[1], group, LID));
	TEST_EQ(post_recv(peers[0], 1), 1);
	TEST_EQ(post_recv(peers[1], 2), 1);
	TEST_OK(deliver_to(&wr, 3, &got));
	TEST_EQ(fx.wc.opcode, RMEM_WC_RECV);
	TEST_EQ(fx.wc.byte_len, RMEM_GRH_SIZE + DATA);
	TEST_EQ(fx.wc.src_qp, mine->qp_num);
	TEST_EQ(fx.wc.flags & RMEM_WC_GRH, RMEM_WC_GRH);
	TEST_MEM(fx.a.buf + SLOT + RMEM_GRH_SIZE, fx.b.buf, DATA);
	TEST_MEM(fx.a.buf + 2 * SLOT + RMEM_GRH_SIZE, fx.b.buf, DATA);
}

CONF_TEST(mcast, grh_has_the_gid_of_the_group, RMEM_DEV_CAPA_MCAST, 0,
		"IBTA 8.3: GRH; A17.4.5.2: header of IPv4")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, DATA);
	struct rmem_send_wr wr = wr_to_group(&from);
	struct rmem_ah_attr back;
	uint32_t got;

	TEST_OK(rmem_qp_attach_mcast(peers[0], group, LID));
	TEST_EQ(post_recv(peers[0], 0), 1);
	TEST_OK(deliver_to(&wr, 1, &got));
	if (group[0] == 0xff)
		TEST_MEM(fx.a.buf + 24, group, sizeof(group));
	else
		TEST_MEM(fx.a.buf + 36, group + 12, 4);
	/* It is no path back: the device does not have that GID. */
	TEST_ERR(rmem_ah_attr_from_wc(conf.dev, 1, &fx.wc, fx.a.buf, &back), ENOENT);
}

CONF_TEST(mcast, message_reaches_no_other_qp, RMEM_DEV_CAPA_MCAST, 0, "IBTA 10.5.2.1")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, DATA);
	struct rmem_send_wr wr = wr_to_group(&from);
	struct rmem_qp_attr attr = {.qkey = QKEY + 1};
	uint32_t got;

	TEST_OK(rmem_qp_attach_mcast(peers[0], group, LID));
	TEST_EQ(post_recv(peers[0], 1), 1);
	TEST_EQ(post_recv(peers[1], 2), 1); /* not attached */
	TEST_OK(deliver_to(&wr, 1, &got));
	TEST_EQ(got, 1);
	fx_drain(fx.a.cq);
	TEST_OK(rmem_qp_modify(peers[1], &attr, RMEM_QP_QKEY));
	TEST_OK(rmem_qp_attach_mcast(peers[1], group, LID));
	TEST_EQ(post_recv(peers[0], 3), 1);
	TEST_OK(deliver_to(&wr, 1, &got));
	TEST_EQ(got, 1);
	TEST_EQ(fx_state(peers[1]), RMEM_QPS_RTS);
}

CONF_TEST(mcast, sender_that_is_attached_receives_its_message, RMEM_DEV_CAPA_MCAST, 0,
		"ibv_create_qp_ex(3): IBV_QP_CREATE_BLOCK_SELF_MCAST_LB is the exception")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 4 * SLOT, DATA);
	struct rmem_send_wr wr = wr_to_group(&from);
	uint64_t deadline = fx_deadline();
	unsigned int i, spins = 0;

	wr.flags |= RMEM_SEND_SIGNALED;
	fx_fill(fx.b.buf + 4 * SLOT, DATA, 9);
	TEST_OK(rmem_qp_attach_mcast(mine, group, LID));
	TEST_EQ(post_recv(mine, 5), 1);
	do { /* both complete to the same CQ */
		TEST_EQ(rmem_post_send(mine, &wr, 1), 1);
		for (i = 0; i < 8000 && rmem_poll_cq(fx.b.cq, &fx.wc, 1) == 0; i++)
			fx_relax(&spins);
		TEST_EQ(fx.wc.status, RMEM_WC_SUCCESS);
	} while (fx.wc.opcode != RMEM_WC_RECV && !fx_is_late(deadline));
	TEST_EQ(fx.wc.opcode, RMEM_WC_RECV);
	TEST_EQ(fx.wc.wr_id, 5);
	TEST_EQ(fx.wc.src_qp, mine->qp_num);
	TEST_MEM(fx.b.buf + 5 * SLOT + RMEM_GRH_SIZE, fx.b.buf + 4 * SLOT, DATA);
}

CONF_TEST(mcast, qp_is_attached_once, RMEM_DEV_CAPA_MCAST, 0,
		"IBTA 11.2.7.1, 11.2.7.2; ibv_detach_mcast(3)")
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, DATA);
	struct rmem_send_wr wr = wr_to_group(&from);
	uint32_t got;

	TEST_ERR(rmem_qp_detach_mcast(peers[0], group, LID), EINVAL);
	TEST_OK(rmem_qp_attach_mcast(peers[0], group, LID));
	TEST_OK(rmem_qp_attach_mcast(peers[0], group, LID));
	TEST_OK(rmem_qp_detach_mcast(peers[0], group, LID));
	TEST_ERR(rmem_qp_detach_mcast(peers[0], group, LID), EINVAL);
	/* A message that follows shows that no other was delivered. */
	TEST_OK(rmem_qp_attach_mcast(peers[1], group, LID));
	TEST_EQ(post_recv(peers[0], 1), 1);
	TEST_EQ(post_recv(peers[1], 2), 1);
	TEST_OK(deliver_to(&wr, 2, &got));
	TEST_EQ(got, 2);
}

CONF_TEST(mcast, qp_that_is_attached_cannot_be_destroyed, RMEM_DEV_CAPA_MCAST, 0,
		"ibv_destroy_qp(3): fails if the QP is attached to a multicast group")
{
	struct rmem_qp *qp = conf_qp_of(fx.a.pd, fx.a.cq, 0, RMEM_QPT_UD);

	TEST_OK(rmem_qp_attach_mcast(qp, group, LID)); /* in RESET */
	TEST_ERR(rmem_qp_destroy(qp), EBUSY);
	TEST_OK(rmem_qp_reset(qp));
	TEST_ERR(rmem_qp_destroy(qp), EBUSY);
	TEST_OK(rmem_qp_detach_mcast(qp, group, LID));
	TEST_OK(fx_release(qp));
}

CONF_TEST(mcast, no_group_or_no_qp_of_ud_is_refused, RMEM_DEV_CAPA_MCAST, 0,
		"IBTA 11.2.7.1; ib_attach_mcast() of the kernel")
{
	const uint8_t bad[][16] = {{0xfe, 0x80, [15] = 1}, {[10] = 0xff, [11] = 0xff, 223, 1, 1, 1},
			{[9] = 1, [10] = 0xff, [11] = 0xff, 239, 1, 1, 1},
			{[10] = 0xff, [11] = 0xff, 240, 1, 1, 1}};
	struct rmem_port_attr port;
	unsigned int i;

	for (i = 0; i < RTE_DIM(bad); i++) {
		TEST_ERR(rmem_qp_attach_mcast(peers[0], bad[i], LID), EINVAL);
		TEST_ERR(rmem_qp_detach_mcast(peers[0], bad[i], LID), EINVAL);
	}
	TEST_ERR(rmem_qp_attach_mcast(peers[0], NULL, LID), EINVAL);
	TEST_ERR(rmem_qp_attach_mcast(NULL, group, LID), EINVAL);
	TEST_ERR(rmem_qp_detach_mcast(NULL, group, LID), EINVAL);
	TEST_ERR(rmem_qp_attach_mcast(fx.a.qp, group, LID), EINVAL); /* of RC */
	TEST_ERR(rmem_qp_detach_mcast(fx.a.qp, group, LID), EINVAL);
	TEST_OK(rmem_dev_port_query(conf.dev, 1, &port));
	if (port.link_layer == RMEM_LINK_LAYER_ETHERNET)
		return;
	TEST_ERR(rmem_qp_attach_mcast(peers[0], group, 0xbfff), EINVAL);
	TEST_ERR(rmem_qp_attach_mcast(peers[0], group, 0xffff), EINVAL);
}

TEST_SUITE(mcast, setup, teardown);
