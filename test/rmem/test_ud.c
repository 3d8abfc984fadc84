/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * QPs of UD on the software device: counters of dropped messages, memory that is refused, events,
 * paths that the device does not have, and QPs that end while messages are sent to them.
 */

#include <sched.h>
#include <string.h>

#include <rte_byteorder.h>

#include "soft/fixture_odp.h"

#define QKEY        7u
#define DATA        64u
#define SLOT        256u
#define MAX_WORKERS 4u

static struct rmem_qp *mine, *peer;
static struct rmem_ah *ah;

static struct rmem_qp *
make_qp(const struct fx_side *side, struct rmem_cq *cq)
{
	struct rmem_qp_conf conf = fx_qp_conf(cq, 16);

	conf.type = RMEM_QPT_UD;
	return fx_qp_by(side->pd, &conf);
}

static void
setup(void)
{
	fx_setup_odp();
	fx_need_soft();
	peer = make_qp(&fx.a, fx.a.cq);
	mine = make_qp(&fx.b, fx.b.cq);
	TEST_OK(fx_ud_ready(mine, QKEY));
	TEST_OK(fx_ud_ready(peer, QKEY));
	ah = fx_ah_to(fx.b.pd, peer);
}

static struct rmem_send_wr
wr_to(const struct rmem_qp *qp, const struct rmem_sge *sge)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, sge, 1);

	wr.ud.ah = ah;
	wr.ud.remote_qpn = qp->qp_num;
	wr.ud.remote_qkey = QKEY;
	return wr;
}

/* Send DATA bytes; the status of the receive of the peer, which fx.wc has then. */
static int
send_to_peer(void)
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, DATA);
	const struct rmem_send_wr wr = wr_to(peer, &from);

	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	return fx_wait(peer->recv_cq);
}

TEST(ud, fields_of_the_ah_are_in_the_grh_and_in_the_path_back)
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, DATA);
	const struct rmem_sge to = fx_sge(fx.a.mr, 0, RMEM_GRH_SIZE + DATA);
	struct rmem_ah_attr path = fx_path_to(peer);
	struct rmem_send_wr wr = wr_to(peer, &from);
	struct rmem_ah_attr back;
	uint32_t first;

	path.traffic_class = 0xfd;
	path.flow_label = 0xabcde;
	path.hop_limit = 3;
	TEST_OK(rmem_ah_create(fx.b.pd, &path, &wr.ud.ah));
	TEST_EQ(fx_post_recv(peer, 1, &to, 1), 1);
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(peer->recv_cq), RMEM_WC_SUCCESS);
	memcpy(&first, fx.a.buf, sizeof(first));
	TEST_EQ(rte_be_to_cpu_32(first), UINT32_C(0x6fdabcde));
	TEST_EQ(fx.a.buf[7], 3);
	TEST_OK(rmem_ah_attr_from_wc(fx.a.dev, 1, &fx.wc, fx.a.buf, &back));
	TEST_EQ(back.traffic_class, 0xfd);
	TEST_EQ(back.flow_label, 0xabcde);
	TEST_EQ(back.hop_limit, UINT8_MAX);
	TEST_OK(rmem_ah_destroy(wr.ud.ah));
}

TEST(ud, dropped_messages_are_counted)
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, DATA), to = fx_sge(fx.a.mr, 0, DATA);
	struct rmem_send_wr wr = wr_to(peer, &from);
	struct rmem_dev_stats before, after;

	TEST_OK(rmem_dev_stats_get(fx.b.dev, &before));
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	TEST_EQ(fx_post_recv(peer, 1, &to, 1), 1);
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	wr.ud.remote_qkey++;
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	wr = wr_to(fx.a.qp, &from);
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	TEST_OK(rmem_dev_stats_get(fx.b.dev, &after));
	TEST_EQ(after.drop_no_recv, before.drop_no_recv + 1);
	TEST_EQ(after.drop_length, before.drop_length + 1);
	TEST_EQ(after.drop_qkey, before.drop_qkey + 1);
	TEST_EQ(after.drop_no_peer, before.drop_no_peer + 1);
	TEST_EQ(after.drop_access, before.drop_access);
	TEST_EQ(rmem_poll_cq(fx.a.cq, &fx.wc, 1), 0);
}

TEST(ud, dropped_message_leaves_its_receive_in_the_srq)
{
	const struct rmem_srq_conf srq_conf = {.max_wr = 2, .max_sge = 1};
	const struct rmem_sge to = fx_sge(fx.b.mr, FX_PAGE, RMEM_GRH_SIZE + DATA - 1);
	const struct rmem_recv_wr recv = {.wr_id = 1, .sg_list = &to, .num_sge = 1};
	const struct rmem_sge unmapped = fx_sge(fx_odp.mr, FX_PAGE, DATA - 1);
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, DATA);
	struct rmem_qp_conf conf = fx_qp_conf(fx.b.cq, 4);
	struct rmem_srq_attr attr = {.srq_limit = 1};
	struct rmem_send_wr wr;
	struct rmem_qp *other;

	TEST_OK(rmem_srq_create(fx.b.pd, &srq_conf, &conf.srq));
	fx_track(conf.srq);
	conf.type = RMEM_QPT_UD;
	other = fx_qp_by(fx.b.pd, &conf);
	TEST_OK(fx_ud_ready(other, QKEY));
	TEST_EQ(rmem_srq_post_recv(conf.srq, &recv, 1), 1);
	TEST_OK(rmem_srq_modify(conf.srq, &attr, RMEM_SRQ_LIMIT));
	wr = wr_to(other, &from);
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	TEST_OK(rmem_srq_query(conf.srq, &attr));
	TEST_EQ(attr.nb_wr, 1);
	TEST_EQ(attr.srq_limit, 1);
	TEST_OK(fx_odp_unmap(1));
	wr = wr_to(other, &unmapped);
	TEST_STATUS(fx_send(peer, &wr), RMEM_WC_LOC_PROT_ERR);
	TEST_OK(rmem_srq_query(conf.srq, &attr));
	TEST_EQ(attr.nb_wr, 1);
	TEST_OK(rmem_qp_reset(other));
	TEST_OK(rmem_srq_query(conf.srq, &attr));
	TEST_EQ(attr.nb_wr, 1);
}

TEST(ud, receive_on_demand_is_faulted_in)
{
	const struct rmem_sge to = fx_sge(fx_odp.mr, FX_PAGE - RMEM_GRH_SIZE, 2 * DATA);

	fx_fill(fx.b.buf, DATA, 6);
	TEST_ASSERT(!fx_odp_is_resident(0) && !fx_odp_is_resident(1));
	TEST_EQ(fx_post_recv(peer, 1, &to, 1), 1);
	TEST_STATUS(send_to_peer(), RMEM_WC_SUCCESS);
	TEST_ASSERT(fx_odp_is_resident(0) && fx_odp_is_resident(1));
	TEST_MEM(fx_odp_page(1), fx.b.buf, DATA);
}

TEST(ud, refused_receive_fails_and_the_request_succeeds)
{
	const struct rmem_sge to = fx_sge(fx_odp.mr, FX_PAGE, RMEM_GRH_SIZE + DATA);
	struct rmem_sge bad = fx_sge(fx.a.mr, 0, RMEM_GRH_SIZE + DATA);

	TEST_EQ(fx_odp_unmap(1), 0);
	TEST_EQ(fx_post_recv(peer, 1, &to, 1), 1);
	TEST_STATUS(send_to_peer(), RMEM_WC_LOC_PROT_ERR);
	TEST_EQ(fx.wc.vendor_err, FX_ODP_WHY);
	TEST_EQ(fx_state(peer), RMEM_QPS_ERR);
	TEST_EQ(fx_state(mine), RMEM_QPS_RTS);
	TEST_OK(rmem_qp_reset(peer));
	TEST_OK(fx_ud_ready(peer, QKEY));
	bad.lkey ^= 1;
	TEST_EQ(fx_post_recv(peer, 2, &bad, 1), 1);
	TEST_STATUS(send_to_peer(), RMEM_WC_LOC_PROT_ERR);
	TEST_EQ(fx.wc.wr_id, 2);
}

TEST(ud, unmapped_data_fails_the_request_and_no_receive)
{
	const struct rmem_sge from = fx_sge(fx_odp.mr, FX_PAGE, DATA);
	const struct rmem_sge to = fx_sge(fx.b.mr, 0, RMEM_GRH_SIZE + DATA);
	struct rmem_send_wr wr = wr_to(mine, &from);

	TEST_OK(fx_odp_unmap(1));
	TEST_EQ(fx_post_recv(mine, 1, &to, 1), 1);
	TEST_STATUS(fx_send(peer, &wr), RMEM_WC_LOC_PROT_ERR);
	TEST_EQ(fx_state(peer), RMEM_QPS_SQE);
	TEST_EQ(rmem_poll_cq(fx.b.cq, &fx.wc, 1), 0);
}

/* The QP has inline receive, as all have. */
TEST(ud, solicited_message_generates_an_event)
{
	struct rmem_comp_channel *channel = fx_channel(fx.a.dev);
	const struct rmem_cq_conf conf = {.nb_cqe = 64, .channel = channel};
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 8), to = fx_sge(fx.a.mr, 0, DATA);
	struct rmem_cq *cq, *of_event;
	struct rmem_send_wr wr;

	cq = fx_cq_by(fx.a.dev, &conf);
	peer = make_qp(&fx.a, cq);
	TEST_OK(fx_ud_ready(peer, QKEY));
	TEST_EQ(fx_post_recv(peer, 1, &to, 1), 1);
	TEST_OK(rmem_cq_req_notify(cq, true));
	wr = wr_to(peer, &from);
	wr.flags |= RMEM_SEND_SOLICITED;
	TEST_STATUS(fx_send(mine, &wr), RMEM_WC_SUCCESS);
	TEST_OK(rmem_comp_channel_get_event(channel, &of_event, NULL));
	TEST_ASSERT(of_event == cq);
	TEST_OK(rmem_cq_ack_events(cq, 1));
	TEST_STATUS(fx_wait(cq), RMEM_WC_SUCCESS);
	TEST_EQ(fx.wc.flags & RMEM_WC_SOLICITED, RMEM_WC_SOLICITED);
}

TEST(ud, path_that_the_device_lacks_is_refused)
{
	struct rmem_ah_attr path = fx_path_to(peer);
	struct rmem_ah *made = NULL;

	path.dgid[0] = 0x20; /* of another host */
	TEST_ERR(rmem_ah_create(fx.b.pd, &path, &made), EINVAL);
	path = fx_path_to(peer);
	path.sgid_index = 1;
	TEST_ERR(rmem_ah_create(fx.b.pd, &path, &made), EINVAL);
	path.sgid_index = 0;
	path.is_global = 0; /* by LID */
	TEST_ERR(rmem_ah_create(fx.b.pd, &path, &made), EINVAL);
	TEST_ASSERT(made == NULL);
	path.dlid = 1;
	TEST_OK(rmem_ah_create(fx.b.pd, &path, &made));
	TEST_OK(rmem_ah_destroy(made));
}

TEST(ud, messages_of_a_queue_are_sent_in_order)
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, DATA);
	struct rmem_send_wr wr[8];
	unsigned int i;

	for (i = 0; i < RTE_DIM(wr); i++) {
		const struct rmem_sge to = fx_sge(fx.a.mr, i * 256, RMEM_GRH_SIZE + DATA);

		TEST_EQ(fx_post_recv(peer, i, &to, 1), 1);
		wr[i] = wr_to(peer, &from);
		wr[i].opcode = RMEM_WR_SEND_WITH_IMM;
		wr[i].imm_data = i;
	}
	TEST_EQ(rmem_post_send(mine, wr, RTE_DIM(wr)), (int)RTE_DIM(wr));
	for (i = 0; i < RTE_DIM(wr); i++) {
		TEST_STATUS(fx_wait(fx.a.cq), RMEM_WC_SUCCESS);
		TEST_EQ(fx.wc.wr_id, i);
		TEST_EQ(fx.wc.imm_data, i);
	}
}

/* A worker sends to the peer, each message by an AH of its own. */
struct worker {
	struct rmem_qp *qp;
	struct rmem_cq *cq;
	uint32_t index;
};

static struct worker workers[MAX_WORKERS];
static uint32_t target;  /* number of the peer; atomic */
static uint32_t is_over; /* atomic */

static void
run_worker(void *arg)
{
	const struct worker *worker = arg;
	const struct rmem_sge from = fx_sge(fx.b.mr, worker->index * FX_PAGE, DATA);
	struct rmem_send_wr wr = wr_to(worker->qp, &from);
	struct rmem_ah_attr path = fx_path_to(worker->qp);
	struct rmem_wc wc;
	uint8_t seq;

	wr.flags = RMEM_SEND_SIGNALED;
	for (seq = 0; !__atomic_load_n(&is_over, __ATOMIC_ACQUIRE); seq++) {
		memset(fx.b.buf + worker->index * FX_PAGE, seq, DATA);
		wr.ud.remote_qpn = __atomic_load_n(&target, __ATOMIC_ACQUIRE);
		TEST_OK(rmem_ah_create(fx.b.pd, &path, &wr.ud.ah));
		TEST_EQ(rmem_post_send(worker->qp, &wr, 1), 1);
		TEST_OK(rmem_ah_destroy(wr.ud.ah));
		FX_AWAIT(rmem_poll_cq(worker->cq, &wc, 1) != 0);
		TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
	}
}

/* Each polled message is whole and of a worker. */
static void
check_messages(unsigned int nb, uint32_t *nb_messages)
{
	const uint8_t *got;
	struct rmem_wc wc;
	unsigned int i;

	while (rmem_poll_cq(fx.a.cq, &wc, 1) == 1) {
		TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
		TEST_EQ(wc.byte_len, RMEM_GRH_SIZE + DATA);
		for (i = 0; i < nb && workers[i].qp->qp_num != wc.src_qp; i++)
			;
		TEST_ASSERT(i < nb);
		got = fx.a.buf + wc.wr_id * SLOT + RMEM_GRH_SIZE;
		for (i = 1; i < DATA; i++)
			TEST_EQ(got[i], got[0]);
		++*nb_messages;
	}
}

/* The peer gets receives, then is reset or another QP, while messages are sent to it. */
static void
replace_peer(uint32_t round)
{
	struct rmem_sge to;
	uint32_t i;

	if (round % 4 == 0) {
		TEST_OK(fx_release(peer));
		peer = make_qp(&fx.a, fx.a.cq);
		__atomic_store_n(&target, peer->qp_num, __ATOMIC_RELEASE);
	} else {
		TEST_OK(rmem_qp_reset(peer));
	}
	TEST_OK(fx_ud_ready(peer, QKEY));
	for (i = 0; i < 8; i++) {
		to = fx_sge(fx.a.mr, (round % 4 * 8 + i) * SLOT, RMEM_GRH_SIZE + DATA);
		TEST_EQ(fx_post_recv(peer, round % 4 * 8 + i, &to, 1), 1);
	}
}

TEST(ud, messages_to_a_qp_that_is_replaced_are_whole_or_lost)
{
	unsigned int i, nb = RTE_MIN(fx_nb_workers(), MAX_WORKERS);
	uint64_t deadline = fx_deadline();
	uint32_t round, nb_messages = 0;
	int ret = TEST_SUCCESS;

	fx_need_workers(1);
	is_over = 0;
	target = peer->qp_num;
	for (i = 0; i < nb; i++) {
		workers[i].index = i;
		workers[i].cq = fx_cq(fx.b.dev, 16);
		workers[i].qp = make_qp(&fx.b, workers[i].cq);
		TEST_OK(fx_ud_ready(workers[i].qp, QKEY));
	}
	fx_launch(run_worker, workers, sizeof(workers[0]), nb);
	for (round = 0; ret == TEST_SUCCESS && !fx_is_late(deadline) &&
			(round < 200 || nb_messages < 200);
			round++) {
		ret = TEST_TRY(replace_peer(round));
		sched_yield();
		if (ret == TEST_SUCCESS)
			ret = TEST_TRY(check_messages(nb, &nb_messages));
	}
	__atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
	fx_join(nb);
	TEST_EQ(ret, TEST_SUCCESS);
	TEST_ASSERT(nb_messages >= 200);
	TEST_OK(rmem_dev_audit(fx.a.dev));
}

TEST_SUITE(ud, setup, fx_teardown);
