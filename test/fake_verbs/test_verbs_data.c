/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Requests go through the verbs driver as they were posted, and come back as what they were. */

#include <string.h>

#include "setup.h"

/* Lengths that add up to little in 32 bits: as inline data they would be copied to the stack. */
TEST(verbs_data, sge_lengths_are_added_without_overflow)
{
	struct rmem_sge sge[3] = {vt_sge(0, 0x80000000), vt_sge(0, 0x80000008), vt_sge(0, 8)};
	struct rmem_send_wr wr = vt_wr(RMEM_WR_RDMA_WRITE, sge);

	wr.flags |= RMEM_SEND_INLINE;
	for (wr.num_sge = 2; wr.num_sge <= 3; wr.num_sge++)
		TEST_ERR(rmem_post_send(vt.a, &wr, 1), EINVAL);
	wr.num_sge = 2;
	wr.opcode = RMEM_WR_SEND_WITH_INV;
	TEST_ERR(rmem_post_send(vt.a, &wr, 1), EINVAL);
	/* Not inline either: no provider sends so much. */
	wr = vt_wr(RMEM_WR_RDMA_WRITE, sge);
	wr.num_sge = 2;
	TEST_ERR(rmem_post_send(vt.a, &wr, 1), EINVAL);
	TEST_EQ(fake.nb_ex, 0);
	TEST_EQ(fake.nb_classic, 0);
}

/* Fill wr with n valid requests; wr_ids count from 0. */
static void
vt_fill(struct rmem_send_wr *wr, const struct rmem_sge *sge, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		wr[i] = vt_wr(RMEM_WR_RDMA_WRITE, sge);
		wr[i].wr_id = i;
	}
}

static void
vt_polled(unsigned int n)
{
	struct rmem_wc wc[2 * VT_DEPTH];
	unsigned int i;

	TEST_EQ(rmem_poll_cq(vt.cq_a, wc, 2 * VT_DEPTH), n);
	for (i = 0; i < n; i++) {
		TEST_EQ(wc[i].status, RMEM_WC_SUCCESS);
		TEST_EQ(wc[i].wr_id, i);
	}
}

/* The device accepts 5 of 20: bad_wr is in the middle, or the whole extended burst is refused. */
TEST(verbs_data, partly_accepted_burst_is_counted)
{
	struct rmem_sge sge = vt_sge(0, 8), to = vt_sge(VT_HALF, 8);
	struct rmem_recv_wr recv[3] = {{1, &to, 1, 0}, {2, &to, 1, 0}, {3, &to, 1, 0}};
	struct rmem_send_wr wr[20];

	vt_fill(wr, &sge, 20);
	fake.post_take = 5;
	fake.post_errno = ENOMEM;
	TEST_EQ(rmem_post_send(vt.a, wr, 20), 5);
	vt_polled(5);
	fake.post_take = 0;
	TEST_ERR(rmem_post_send(vt.a, wr, 20), ENOSPC);
	fake.post_errno = EINVAL;
	TEST_ERR(rmem_post_send(vt.a, wr, 20), EINVAL);
	fake.post_errno = EIO;
	TEST_ERR(rmem_post_send(vt.a, wr, 1), ENODEV);
	fake.post_take = 2;
	fake.post_errno = ENOMEM;
	TEST_EQ(rmem_post_recv(vt.a, recv, 3), 2);
	fake.post_errno = 0;
	TEST_EQ(rmem_post_send(vt.a, wr, 20), 20);
	vt_polled(20);
}

/* ibv_post_send(3): an entry is free when its completion or a later one was polled. */
TEST(verbs_data, queue_has_the_requested_depth)
{
	struct rmem_sge sge = vt_sge(0, 8), to = vt_sge(VT_HALF, 8);
	struct rmem_recv_wr recv[VT_DEPTH + 1];
	struct rmem_send_wr wr[VT_DEPTH + 1];
	struct rmem_wc wc[VT_DEPTH];
	unsigned int i, round;

	for (round = 0; round < 3000; round++) {
		vt_fill(wr, &sge, VT_DEPTH + 1);
		for (i = 0; i < VT_DEPTH - 1; i++)
			wr[i].flags = 0;
		TEST_EQ(rmem_post_send(vt.a, wr, VT_DEPTH + 1), VT_DEPTH);
		TEST_ERR(rmem_post_send(vt.a, wr, 1), ENOSPC);
		TEST_EQ(rmem_poll_cq(vt.cq_a, wc, VT_DEPTH), 1);
		TEST_EQ(wc[0].wr_id, VT_DEPTH - 1);
	}
	for (i = 0; i <= VT_DEPTH; i++)
		recv[i] = (struct rmem_recv_wr){i, &to, 1, 0};
	TEST_EQ(rmem_post_recv(vt.b, recv, VT_DEPTH + 1), VT_DEPTH);
	TEST_ERR(rmem_post_recv(vt.b, recv, 1), ENOSPC);
}

TEST(verbs_data, failed_request_flushes_the_later_ones)
{
	struct rmem_sge sge = vt_sge(0, 8), to = vt_sge(VT_HALF, 8);
	struct rmem_recv_wr recv = {.wr_id = 5, .sg_list = &to, .num_sge = 1};
	struct rmem_dev_stats stats;
	struct rmem_send_wr wr[4];
	struct rmem_qp_attr attr;
	struct rmem_wc wc[8];

	TEST_OK(rmem_dev_stats_reset(vt.dev));
	TEST_EQ(rmem_post_recv(vt.a, &recv, 1), 1);
	vt_fill(wr, &sge, 4);
	wr[0].flags = 0;
	wr[1].rdma.rkey ^= 0x55;
	wr[1].flags = 0;
	TEST_EQ(rmem_post_send(vt.a, wr, 4), 4);
	TEST_EQ(rmem_poll_cq(vt.cq_a, wc, 8), 4);
	TEST_EQ(wc[0].wr_id, 1);
	TEST_EQ(wc[0].status, RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(wc[1].wr_id, 5); /* the receive */
	TEST_EQ(wc[1].status, RMEM_WC_WR_FLUSH_ERR);
	TEST_EQ(wc[3].wr_id, 3);
	TEST_EQ(wc[3].status, RMEM_WC_WR_FLUSH_ERR);
	TEST_OK(rmem_qp_query(vt.a, &attr));
	TEST_EQ(attr.state, RMEM_QPS_ERR);
	TEST_OK(rmem_dev_stats_get(vt.dev, &stats));
	TEST_EQ(stats.send_wrs, 4);
	TEST_EQ(stats.errors, 1);
	TEST_EQ(stats.rem_access_errors, 1);
	TEST_EQ(stats.flushed, 2);
	TEST_EQ(stats.bytes, 8);
}

/* Tag matching has two, and later versions may have more. */
TEST(verbs_data, unknown_status_is_general_err)
{
	static const int statuses[] = {IBV_WC_TM_ERR, IBV_WC_TM_RNDV_INCOMPLETE, 1000};
	struct rmem_sge sge = vt_sge(0, 8);
	struct rmem_send_wr wr[1];
	struct rmem_wc wc;
	unsigned int i;

	for (i = 0; i < RTE_DIM(statuses); i++) {
		fake.failure_status = statuses[i];
		vt_fill(wr, &sge, 1);
		wr[0].rdma.rkey ^= 0x55;
		TEST_EQ(rmem_post_send(vt.a, wr, 1), 1);
		TEST_EQ(rmem_poll_cq(vt.cq_a, &wc, 1), 1);
		TEST_EQ(wc.status, RMEM_WC_GENERAL_ERR);
		vt_reconnect();
	}
}

/* As of rdma_rxe, whose tasks end after the state was set. */
TEST(verbs_data, reset_is_repeated_after_a_late_error)
{
	struct rmem_sge sge = vt_sge(0, 8);
	struct rmem_send_wr wr;

	fake.nb_late_errors = 1;
	TEST_OK(rmem_qp_reset(vt.a));
	fake.nb_late_errors = 3;
	TEST_OK(rmem_qp_reset(vt.b));
	TEST_EQ(fake.nb_late_errors, 0);
	TEST_OK(vt_connect());
	vt_fill(&wr, &sge, 1);
	TEST_EQ(rmem_post_send(vt.a, &wr, 1), 1);
	vt_polled(1);
	fake.nb_late_errors = 100;
	TEST_ERR(rmem_qp_reset(vt.a), EIO);
	fake.nb_late_errors = 0;
}

TEST(verbs_data, connect_checks_the_address_of_the_peer)
{
	struct rmem_qp_conn conn = {.timeout = 14};
	struct rmem_qp_attr attr;
	struct rmem_send_wr wr;
	struct rmem_sge sge = vt_sge(0, 8);

	TEST_OK(rmem_qp_query(vt.b, &attr));
	conn.remote = attr.addr;
	TEST_ERR(rmem_qp_connect(vt.a, &conn), EBUSY);
	TEST_OK(rmem_qp_reset(vt.a));
	conn.remote.mtu = 0;
	TEST_ERR(rmem_qp_connect(vt.a, &conn), EINVAL);
	conn.remote = attr.addr;
	memset(conn.remote.gid, 0, sizeof(conn.remote.gid));
	TEST_ERR(rmem_qp_connect(vt.a, &conn), EINVAL);
	conn.remote = attr.addr;
	VT_FAILS("modify_qp", EINVAL, rmem_qp_connect(vt.a, &conn), EINVAL);
	conn.remote.qp_num = 0xfffff; /* no such peer */
	TEST_OK(rmem_qp_connect(vt.a, &conn));
	wr = vt_wr(RMEM_WR_RDMA_WRITE, &sge);
	TEST_STATUS(vt_run(&wr), RMEM_WC_RETRY_EXC_ERR);
}

/* Attributes pass through; the gate of posts follows the states. */
TEST(verbs_data, transitions_reach_the_device)
{
	const uint32_t init =
			RMEM_QP_STATE | RMEM_QP_PKEY_INDEX | RMEM_QP_PORT | RMEM_QP_ACCESS_FLAGS;
	const uint32_t rtr = RMEM_QP_STATE | RMEM_QP_AV | RMEM_QP_PATH_MTU | RMEM_QP_DEST_QPN |
			RMEM_QP_RQ_PSN | RMEM_QP_MAX_DEST_RD_ATOMIC | RMEM_QP_MIN_RNR_TIMER;
	const uint32_t rts = RMEM_QP_STATE | RMEM_QP_TIMEOUT | RMEM_QP_RETRY_CNT |
			RMEM_QP_RNR_RETRY | RMEM_QP_SQ_PSN | RMEM_QP_MAX_QP_RD_ATOMIC;
	struct rmem_qp_attr attr = {.state = RMEM_QPS_INIT, .port_num = 1, .access = 2};
	const struct rmem_recv_wr recv = {.wr_id = 5};
	struct rmem_sge sge = vt_sge(0, 8);
	struct rmem_send_wr wr = vt_wr(RMEM_WR_RDMA_WRITE, &sge);
	struct fake_qp *qp = fake_qp_find(vt.a->qp_num);

	TEST_OK(rmem_qp_reset(vt.a));
	VT_FAILS("modify_qp", EINVAL, rmem_qp_modify(vt.a, &attr, init), EINVAL);
	TEST_OK(rmem_qp_modify(vt.a, &attr, init));
	TEST_EQ(qp->mask, (int)init);
	TEST_EQ(qp->attr.qp_access_flags, 2);
	TEST_ERR(rmem_post_send(vt.a, &wr, 1), EBUSY);
	TEST_EQ(rmem_post_recv(vt.a, &recv, 1), 1);
	attr.state = RMEM_QPS_RTR;
	attr.path_mtu = 3;
	attr.dest_qp_num = vt.b->qp_num;
	attr.ah.port_num = 1;
	attr.ah.is_global = 1;
	attr.ah.dgid[15] = 9;
	TEST_OK(rmem_qp_modify(vt.a, &attr, rtr));
	TEST_EQ(qp->mask, (int)rtr);
	TEST_EQ(qp->attr.ah_attr.grh.dgid.raw[15], 9);
	TEST_ERR(rmem_post_send(vt.a, &wr, 1), EBUSY);
	attr.state = RMEM_QPS_RTS;
	attr.sq_psn = 77;
	TEST_OK(rmem_qp_modify(vt.a, &attr, rts));
	TEST_EQ(qp->attr.sq_psn, 77);
	TEST_STATUS(vt_run(&wr), RMEM_WC_SUCCESS);
	TEST_OK(rmem_qp_query(vt.a, &attr));
	TEST_EQ(attr.sq_psn, 77);
	TEST_EQ(attr.access, 2);
	TEST_EQ(attr.remote.qp_num, vt.b->qp_num);
}

TEST(verbs_data, rate_limit_reaches_devices_that_have_it)
{
	struct rmem_qp_attr attr = {.state = RMEM_QPS_RTS, .rate_limit = 5000};
	struct fake_qp *qp;

	TEST_ERR(rmem_qp_modify(vt.a, &attr, RMEM_QP_RATE_LIMIT), EOPNOTSUPP);
	TEST_OK(vt_close());
	fake.max_rate = 100000;
	TEST_OK(vt_open());
	qp = fake_qp_find(vt.a->qp_num);
	TEST_OK(rmem_qp_modify(vt.a, &attr, RMEM_QP_RATE_LIMIT));
	TEST_ASSERT((qp->mask & IBV_QP_RATE_LIMIT) != 0);
	TEST_EQ(qp->attr.rate_limit, 5000);
	TEST_OK(rmem_qp_query(vt.a, &attr));
	TEST_EQ(attr.rate_limit, 5000);
	TEST_OK(rmem_qp_reset(vt.a));
	TEST_OK(rmem_qp_query(vt.a, &attr));
	TEST_EQ(attr.rate_limit, 0);
}

/* The kernel refuses it in other transitions; the class checks it in all of them. */
TEST(verbs_data, cur_state_reaches_the_device_only_with_rts)
{
	const uint32_t init = RMEM_QP_STATE | RMEM_QP_CUR_STATE | RMEM_QP_PKEY_INDEX |
			RMEM_QP_PORT | RMEM_QP_ACCESS_FLAGS;
	struct rmem_qp_attr attr = {
			.state = RMEM_QPS_RTS, .cur_state = RMEM_QPS_RTS, .port_num = 1};

	TEST_OK(rmem_qp_modify(vt.a, &attr, RMEM_QP_STATE | RMEM_QP_CUR_STATE));
	TEST_ASSERT((fake_qp_find(vt.a->qp_num)->mask & IBV_QP_CUR_STATE) != 0);
	attr.state = RMEM_QPS_SQD;
	TEST_OK(rmem_qp_modify(vt.a, &attr, RMEM_QP_STATE | RMEM_QP_CUR_STATE));
	TEST_OK(rmem_qp_reset(vt.a));
	attr.state = RMEM_QPS_INIT;
	attr.cur_state = RMEM_QPS_RESET;
	TEST_OK(rmem_qp_modify(vt.a, &attr, init));
	attr.cur_state = RMEM_QPS_INIT;
	TEST_OK(rmem_qp_modify(vt.a, &attr, RMEM_QP_STATE | RMEM_QP_CUR_STATE));
	TEST_EQ(fake_qp_find(vt.a->qp_num)->mask, IBV_QP_STATE);
}

/* Moved by a call, or by the device after a request of the peer that it refuses. */
TEST(verbs_data, requests_posted_after_init_to_err_are_flushed)
{
	const uint32_t init =
			RMEM_QP_STATE | RMEM_QP_PKEY_INDEX | RMEM_QP_PORT | RMEM_QP_ACCESS_FLAGS;
	struct rmem_qp_attr attr = {.state = RMEM_QPS_INIT, .port_num = 1};
	struct rmem_sge sge = vt_sge(0, 8);
	struct rmem_send_wr wr = vt_wr(RMEM_WR_RDMA_WRITE, &sge);
	unsigned int i;

	for (i = 0; i < 2; i++) {
		TEST_OK(rmem_qp_reset(vt.a));
		TEST_OK(rmem_qp_modify(vt.a, &attr, init));
		TEST_ERR(rmem_post_send(vt.a, &wr, 1), EBUSY);
		if (i == 0)
			TEST_OK(rmem_qp_set_error(vt.a));
		else
			fake_qp_error(fake_qp_find(vt.a->qp_num));
		TEST_STATUS(vt_run(&wr), RMEM_WC_WR_FLUSH_ERR);
	}
}

TEST(verbs_data, failed_poll_ends_the_cq)
{
	struct rmem_sge sge = vt_sge(0, 8);
	struct rmem_send_wr wr = vt_wr(RMEM_WR_RDMA_WRITE, &sge);
	struct rmem_wc wc;

	TEST_STATUS(vt_run(&wr), RMEM_WC_SUCCESS);
	TEST_EQ(rmem_poll_cq(vt.cq_a, &wc, 0), 0);
	fake.is_poll_bad = true;
	TEST_ERR(rmem_poll_cq(vt.cq_a, &wc, 1), EIO);
	fake.is_poll_bad = false;
	TEST_ERR(rmem_poll_cq(vt.cq_a, &wc, 1), EIO);
}

TEST_SUITE(verbs_data, vt_setup, vt_teardown);
/* The same with the classic calls of libibverbs. */
TEST_SUITE_OF(verbs_data_classic, vt_setup_classic, vt_teardown, verbs_data);
