/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Counters of completed requests of QPs: what is counted, when, and which counters are refused. */

#include <string.h>

#include "conf.h"

#define CAPA RMEM_DEV_CAPA_QP_COUNTER
#define BAD  0xffffff00u /* an rkey that no device has */

static struct rmem_qp *qp, *peer;

static struct rmem_counter *
counter_by(uint32_t flags)
{
	const struct rmem_counter_conf counter_conf = {.flags = flags};
	struct rmem_counter *counter = NULL;

	TEST_OK(rmem_counter_create(conf.dev, &counter_conf, &counter));
	fx_track(counter);
	return counter;
}

/* A QP of each side, not connected; they are destroyed before the counters of the case. */
static void
make_pair(void)
{
	qp = conf_qp(fx.a.pd, fx.a.cq, RMEM_ACCESS_REMOTE);
	peer = conf_qp(fx.b.pd, fx.b.cq, RMEM_ACCESS_REMOTE);
}

/* A device may count after the completion. */
static void
expect(const struct rmem_counter *counter, uint64_t value, uint64_t errors)
{
	uint64_t deadline = fx_deadline();
	unsigned int spins = 0;

	while ((rmem_counter_read(counter) < value || rmem_counter_read_errors(counter) < errors) &&
			!fx_is_late(deadline))
		fx_relax(&spins);
	TEST_EQ(rmem_counter_read(counter), value);
	TEST_EQ(rmem_counter_read_errors(counter), errors);
}

/* A request of the QP to the buffer of b; a status. */
static int
request(uint8_t opcode, uint32_t length, uint32_t rkey)
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, length);
	struct rmem_send_wr wr = fx_rdma(opcode, &sge, fx_addr(fx.b.buf), rkey);

	return fx_send(qp, &wr);
}

static int
message(uint32_t length)
{
	const struct rmem_sge to = fx_sge(fx.b.mr, 0, length), from = fx_sge(fx.a.mr, 0, length);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &from, 1);

	if (fx_post_recv(peer, 1, &to, 1) != 1)
		return -EIO;
	return fx_send(qp, &wr);
}

CONF_TEST(count, each_kind_of_request_has_its_counter, CAPA, 0, "ibv_qp_attach_comp_cntr(3)")
{
	struct rmem_counter *mine[RMEM_QP_NB_COUNTS], *its[RMEM_QP_NB_COUNTS];
	static const uint64_t wanted[RMEM_QP_NB_COUNTS] = {1, 0, 2, 0, 4, 0};
	static const uint64_t wanted_of_peer[RMEM_QP_NB_COUNTS] = {0, 2, 0, 2, 0, 4};
	unsigned int i;

	for (i = 0; i < RMEM_QP_NB_COUNTS; i++) {
		mine[i] = fx_counter(conf.dev);
		its[i] = fx_counter(conf.dev);
	}
	make_pair();
	for (i = 0; i < RMEM_QP_NB_COUNTS; i++) {
		TEST_OK(rmem_qp_attach_counter(qp, mine[i], UINT32_C(1) << i));
		TEST_OK(rmem_qp_attach_counter(peer, its[i], UINT32_C(1) << i));
	}
	TEST_OK(conf_connect(qp, peer));
	TEST_STATUS(message(64), RMEM_WC_SUCCESS);
	for (i = 0; i < 2; i++)
		TEST_STATUS(request(RMEM_WR_RDMA_READ, 64, fx.b.mr->rkey), RMEM_WC_SUCCESS);
	for (i = 0; i < 3; i++)
		TEST_STATUS(request(RMEM_WR_RDMA_WRITE, 64, fx.b.mr->rkey), RMEM_WC_SUCCESS);
	/* A WRITE with immediate data is a WRITE, and a receive of the peer. */
	TEST_EQ(fx_post_recv(peer, 2, NULL, 0), 1);
	TEST_STATUS(request(RMEM_WR_RDMA_WRITE_WITH_IMM, 0, fx.b.mr->rkey), RMEM_WC_SUCCESS);
	for (i = 0; i < RMEM_QP_NB_COUNTS; i++) {
		expect(mine[i], wanted[i], 0);
		expect(its[i], wanted_of_peer[i], 0);
	}
}

CONF_TEST(count, requests_that_are_not_signaled_are_counted, CAPA, 0,
		"ibv_create_comp_cntr(3): completed work requests")
{
	struct rmem_counter *counter = fx_counter(conf.dev);
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 64);
	struct rmem_send_wr wr;
	unsigned int i;

	make_pair();
	TEST_OK(rmem_qp_attach_counter(qp, counter, RMEM_QP_COUNT_RDMA_WRITE));
	TEST_OK(conf_connect(qp, peer));
	wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
	wr.flags = 0;
	for (i = 0; i < 3; i++)
		TEST_EQ(fx_post(qp, &wr), 1);
	TEST_STATUS(request(RMEM_WR_RDMA_WRITE, 64, fx.b.mr->rkey), RMEM_WC_SUCCESS);
	expect(counter, 4, 0);
}

CONF_TEST(count, bytes_are_those_of_successful_requests, CAPA, 0,
		"ibv_create_comp_cntr(3): IBV_COMP_CNTR_TYPE_BYTES")
{
	struct rmem_counter *mine = counter_by(RMEM_COUNTER_BYTES);
	struct rmem_counter *its = counter_by(RMEM_COUNTER_BYTES);

	make_pair();
	TEST_OK(rmem_qp_attach_counter(qp, mine, RMEM_QP_COUNT_ALL));
	TEST_OK(rmem_qp_attach_counter(peer, its, RMEM_QP_COUNT_ALL));
	TEST_OK(conf_connect(qp, peer));
	TEST_STATUS(message(10), RMEM_WC_SUCCESS);
	expect(mine, 10, 0);
	expect(its, 10, 0);
	TEST_STATUS(request(RMEM_WR_RDMA_WRITE, 9000, fx.b.mr->rkey), RMEM_WC_SUCCESS);
	expect(mine, 9010, 0);
	expect(its, 9010, 0);
	TEST_STATUS(request(RMEM_WR_RDMA_READ, 9000, fx.b.mr->rkey), RMEM_WC_SUCCESS);
	expect(mine, 18010, 0);
	expect(its, 18010, 0);
	TEST_ASSERT(request(RMEM_WR_RDMA_READ, 9000, BAD) != RMEM_WC_SUCCESS);
	expect(mine, 18010, 1);
	expect(its, 18010, 1);
}

CONF_TEST(count, failed_and_flushed_requests_are_errors, CAPA, 0,
		"ibv_create_comp_cntr(3): operations that complete in error")
{
	struct rmem_counter *mine = fx_counter(conf.dev), *its = fx_counter(conf.dev);
	struct rmem_counter *recvs = fx_counter(conf.dev);

	make_pair();
	TEST_OK(rmem_qp_attach_counter(qp, mine, RMEM_QP_COUNT_RDMA_WRITE));
	TEST_OK(rmem_qp_attach_counter(peer, its, RMEM_QP_COUNT_REMOTE_RDMA_WRITE));
	TEST_OK(rmem_qp_attach_counter(peer, recvs, RMEM_QP_COUNT_RECV));
	TEST_OK(conf_connect(qp, peer));
	TEST_EQ(fx_post_recv(peer, 1, NULL, 0), 1);
	TEST_EQ(fx_post_recv(peer, 2, NULL, 0), 1);
	TEST_ASSERT(request(RMEM_WR_RDMA_WRITE, 64, BAD) != RMEM_WC_SUCCESS);
	conf_expect_err(qp);
	conf_expect_err(peer);
	expect(mine, 0, 1);
	expect(its, 0, 1);
	expect(recvs, 0, 2);
	TEST_STATUS(request(RMEM_WR_RDMA_WRITE, 64, fx.b.mr->rkey), RMEM_WC_WR_FLUSH_ERR);
	expect(mine, 0, 2);
}

CONF_TEST(count, counter_stays_attached_after_a_reset, CAPA, 0,
		"ibv_qp_attach_comp_cntr(3): no explicit detach")
{
	struct rmem_counter *counter = fx_counter(conf.dev);

	make_pair();
	TEST_OK(rmem_qp_attach_counter(qp, counter, RMEM_QP_COUNT_SEND | RMEM_QP_COUNT_RDMA_READ));
	TEST_OK(rmem_qp_attach_counter(
			peer, counter, RMEM_QP_COUNT_REMOTE_RDMA_WRITE | RMEM_QP_COUNT_RECV));
	TEST_OK(conf_connect(qp, peer));
	TEST_STATUS(message(64), RMEM_WC_SUCCESS);
	expect(counter, 2, 0);
	conf_reconnect_pair(qp, peer);
	TEST_STATUS(message(64), RMEM_WC_SUCCESS);
	TEST_STATUS(request(RMEM_WR_RDMA_READ, 64, fx.b.mr->rkey), RMEM_WC_SUCCESS);
	TEST_STATUS(request(RMEM_WR_RDMA_WRITE, 64, fx.b.mr->rkey), RMEM_WC_SUCCESS);
	expect(counter, 6, 0);
	rmem_counter_set(counter, UINT64_MAX);
	rmem_counter_set_errors(counter, 7);
	rmem_counter_inc_errors(counter, 3);
	TEST_STATUS(request(RMEM_WR_RDMA_READ, 64, fx.b.mr->rkey), RMEM_WC_SUCCESS);
	rmem_counter_inc(counter, 5);
	TEST_EQ(rmem_counter_read(counter), 5);
	TEST_EQ(rmem_counter_read_errors(counter), 10);
}

CONF_TEST(count, attach_of_a_second_counter_or_after_init_is_refused, CAPA, 0,
		"ibv_qp_attach_comp_cntr(3): EBUSY, EINVAL")
{
	struct rmem_counter *counter = fx_counter(conf.dev), *other = fx_counter(conf.dev);

	make_pair();
	TEST_ERR(rmem_qp_attach_counter(fx.a.qp, counter, RMEM_QP_COUNT_SEND), EBUSY);
	TEST_ERR(rmem_qp_attach_counter(qp, counter, 0), EINVAL);
	TEST_ERR(rmem_qp_attach_counter(qp, counter, RMEM_QP_COUNT_ALL + 1), EINVAL);
	TEST_ERR(rmem_qp_attach_counter(NULL, counter, 1), EINVAL);
	TEST_ERR(rmem_qp_attach_counter(qp, NULL, 1), EINVAL);
	TEST_OK(rmem_qp_attach_counter(qp, counter, RMEM_QP_COUNT_SEND | RMEM_QP_COUNT_RECV));
	TEST_ERR(rmem_qp_attach_counter(qp, other, RMEM_QP_COUNT_RECV | RMEM_QP_COUNT_RDMA_READ),
			EEXIST);
	TEST_OK(fx_release(other));
	TEST_ERR(rmem_counter_destroy(counter), EBUSY);
	TEST_OK(fx_release(qp));
	TEST_OK(fx_release(counter));
}

/* Send until a receive of b completes: a message of an unreliable service may be lost. */
static uint64_t
deliver(const struct rmem_send_wr *wr)
{
	uint64_t deadline = fx_deadline(), nb = 0;
	unsigned int i, spins = 0;

	while (!fx_is_late(deadline)) {
		TEST_STATUS(fx_send(qp, wr), RMEM_WC_SUCCESS);
		nb++;
		for (i = 0; i < 8000; i++) {
			if (rmem_poll_cq(fx.b.cq, &fx.wc, 1) == 1) {
				TEST_STATUS(fx.wc.status, RMEM_WC_SUCCESS);
				return nb;
			}
			fx_relax(&spins);
		}
	}
	TEST_ASSERT(!"no message has arrived");
	return 0;
}

CONF_TEST(count, requests_of_uc_are_counted, CAPA | RMEM_DEV_CAPA_UC, 0,
		"ibv_qp_attach_comp_cntr(3)")
{
	struct rmem_counter *sends = fx_counter(conf.dev), *recvs = fx_counter(conf.dev);
	struct rmem_counter *writes = fx_counter(conf.dev), *its = fx_counter(conf.dev);
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 64), to = fx_sge(fx.b.mr, 0, 64);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &sge, 1);
	uint64_t nb;

	qp = conf_qp_of(fx.a.pd, fx.a.cq, RMEM_ACCESS_REMOTE, RMEM_QPT_UC);
	peer = conf_qp_of(fx.b.pd, fx.b.cq, RMEM_ACCESS_REMOTE, RMEM_QPT_UC);
	TEST_OK(rmem_qp_attach_counter(qp, sends, RMEM_QP_COUNT_SEND));
	TEST_OK(rmem_qp_attach_counter(qp, writes, RMEM_QP_COUNT_RDMA_WRITE));
	TEST_OK(rmem_qp_attach_counter(peer, recvs, RMEM_QP_COUNT_RECV));
	TEST_OK(rmem_qp_attach_counter(peer, its, RMEM_QP_COUNT_REMOTE_RDMA_WRITE));
	TEST_OK(conf_connect(qp, peer));
	TEST_EQ(fx_post_recv(peer, 1, &to, 1), 1);
	expect(sends, deliver(&wr), 0);
	expect(recvs, 1, 0);
	wr = fx_rdma_to(RMEM_WR_RDMA_WRITE_WITH_IMM, &sge, &fx.b);
	TEST_EQ(fx_post_recv(peer, 2, &to, 1), 1);
	nb = deliver(&wr);
	expect(writes, nb, 0);
	expect(recvs, 2, 0);
	TEST_ASSERT(rmem_counter_read(its) >= 1 && rmem_counter_read(its) <= nb);
}

CONF_TEST(count, messages_of_ud_are_counted, CAPA | RMEM_DEV_CAPA_UD, 0,
		"ibv_qp_attach_comp_cntr(3)")
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 64);
	const struct rmem_sge to = fx_sge(fx.b.mr, 0, 64 + RMEM_GRH_SIZE);
	struct rmem_counter *sends = fx_counter(conf.dev), *recvs = fx_counter(conf.dev);
	struct rmem_ah_attr path = {.is_global = 1, .hop_limit = 64, .port_num = 1};
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &sge, 1);
	struct rmem_qp_attr attr;

	qp = conf_qp_of(fx.a.pd, fx.a.cq, 0, RMEM_QPT_UD);
	peer = conf_qp_of(fx.b.pd, fx.b.cq, 0, RMEM_QPT_UD);
	TEST_OK(rmem_qp_attach_counter(qp, sends, RMEM_QP_COUNT_SEND));
	TEST_OK(rmem_qp_attach_counter(peer, recvs, RMEM_QP_COUNT_RECV));
	TEST_OK(fx_ud_ready(qp, 5));
	TEST_OK(fx_ud_ready(peer, 5));
	TEST_OK(rmem_qp_query(peer, &attr));
	memcpy(path.dgid, attr.addr.gid, sizeof(path.dgid));
	path.dlid = attr.addr.lid;
	path.sgid_index = conf_gid_index(attr.addr.gid);
	TEST_OK(rmem_ah_create(fx.a.pd, &path, &wr.ud.ah));
	fx_track(wr.ud.ah);
	wr.ud.remote_qpn = peer->qp_num;
	wr.ud.remote_qkey = 5;
	TEST_EQ(fx_post_recv(peer, 1, &to, 1), 1);
	expect(sends, deliver(&wr), 0);
	expect(recvs, 1, 0);
}

/* The receives of an SRQ are counted by the QP that takes them. */
CONF_TEST(count, receives_of_an_srq_are_counted, CAPA | RMEM_DEV_CAPA_SRQ, 0,
		"ibv_qp_attach_comp_cntr(3)")
{
	const struct rmem_srq_conf srq_conf = {.max_wr = 4};
	const struct rmem_recv_wr recv = {.wr_id = 1};
	struct rmem_counter *recvs = fx_counter(conf.dev);
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	struct rmem_qp_conf qp_conf;
	struct rmem_srq *srq = NULL;
	unsigned int i;

	TEST_OK(rmem_srq_create(fx.b.pd, &srq_conf, &srq));
	fx_track(srq);
	qp_conf = fx_qp_conf(fx.b.cq, 4);
	qp_conf.max_inline_data = 0;
	qp_conf.access &= conf.info.access;
	qp_conf.srq = srq;
	qp = conf_qp(fx.a.pd, fx.a.cq, RMEM_ACCESS_REMOTE);
	peer = fx_qp_by(fx.b.pd, &qp_conf);
	TEST_OK(rmem_qp_attach_counter(peer, recvs, RMEM_QP_COUNT_RECV));
	TEST_OK(conf_connect(qp, peer));
	for (i = 0; i < 3; i++)
		TEST_EQ(rmem_srq_post_recv(srq, &recv, 1), 1);
	for (i = 0; i < 2; i++)
		TEST_STATUS(fx_send(qp, &wr), RMEM_WC_SUCCESS);
	expect(recvs, 2, 0);
}

/* An XRC_RECV QP counts the receives of each SRQ, and requests of the peer. */
CONF_TEST(count, requests_of_xrc_are_counted, CAPA | RMEM_DEV_CAPA_XRC, 0,
		"ibv_qp_attach_comp_cntr(3)")
{
	struct rmem_counter *sends = fx_counter(conf.dev), *recvs = fx_counter(conf.dev);
	struct rmem_counter *its = fx_counter(conf.dev);
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 64);
	const struct rmem_xrcd_conf xrcd_conf = {.flags = 0};
	struct rmem_srq_ext srq_ext = {.cq = fx.b.cq};
	const struct rmem_srq_conf srq_conf = {.max_wr = 4, .ext = &srq_ext};
	const struct rmem_recv_wr recv = {.wr_id = 1};
	struct rmem_qp_ext ext = {.xrcd = NULL};
	const struct rmem_qp_conf qp_conf = {.type = RMEM_QPT_XRC_RECV,
			.access = RMEM_ACCESS_REMOTE & conf.info.access,
			.ext = &ext};
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	struct rmem_srq *srq = NULL;

	TEST_OK(rmem_xrcd_alloc(conf.dev, &xrcd_conf, &ext.xrcd));
	fx_track(ext.xrcd);
	srq_ext.xrcd = ext.xrcd;
	TEST_OK(rmem_srq_create(fx.b.pd, &srq_conf, &srq));
	fx_track(srq);
	TEST_OK(rmem_srq_num_get(srq, &wr.xrc.remote_srqn));
	qp = conf_qp_of(fx.a.pd, fx.a.cq, 0, RMEM_QPT_XRC_SEND);
	peer = fx_qp_by(NULL, &qp_conf);
	TEST_OK(rmem_qp_attach_counter(qp, sends, RMEM_QP_COUNT_SEND));
	TEST_OK(rmem_qp_attach_counter(peer, recvs, RMEM_QP_COUNT_RECV));
	TEST_OK(rmem_qp_attach_counter(peer, its, RMEM_QP_COUNT_REMOTE_RDMA_WRITE));
	TEST_OK(conf_connect(qp, peer));
	TEST_EQ(rmem_srq_post_recv(srq, &recv, 1), 1);
	TEST_STATUS(fx_send(qp, &wr), RMEM_WC_SUCCESS);
	expect(sends, 1, 0);
	expect(recvs, 1, 0);
	wr.rdma.remote_addr = fx_addr(fx.b.buf);
	wr.rdma.rkey = fx.b.mr->rkey;
	wr.opcode = RMEM_WR_RDMA_WRITE;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	TEST_STATUS(fx_send(qp, &wr), RMEM_WC_SUCCESS);
	expect(its, 1, 0);
	expect(sends, 1, 0);
}

TEST_SUITE(count, conf_setup, conf_teardown);
