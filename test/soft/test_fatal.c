/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A device that fails (fault=fatal): DEVICE_FATAL is reported, each accepted request completes
 * once, other calls are refused, and all objects can be released.
 */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_service.h>

#include "fixture.h"

#define NB_RECV 8
#define NB_SEND 16

static struct rmem_async_channel *channel;

/* Two sides of a device that fails after a number of packets, with receives. */
static void
open_sides_with(const char *more, unsigned int nb_packets)
{
	struct rmem_qp_conn conn = fx_conn();
	char args[128];
	unsigned int i;

	snprintf(args, sizeof(args), "ip=192.0.2.1,port=shm:fatal%d,loop=1,%s,fault=fatal:%u",
			(int)getpid(), more, nb_packets);
	fx.a.dev = fx_dev("soft0", args);
	channel = fx_async_channel(fx.a.dev);
	fx_side_open(&fx.a, fx.a.dev, fx_pd(fx.a.dev));
	fx_side_open(&fx.b, fx.a.dev, fx.a.pd);
	conn.timeout = 0; /* infinite: no request fails earlier */
	TEST_OK(fx_connect_by(fx.a.qp, fx.b.qp, &conn));
	TEST_OK(fx_connect_by(fx.b.qp, fx.a.qp, &conn));
	for (i = 0; i < NB_RECV; i++)
		TEST_EQ(fx_post_recv(fx.b.qp, i, NULL, 0), 1);
}

static void
open_sides(unsigned int nb_packets)
{
	open_sides_with("progress=thread", nb_packets);
}

static void
expect_fatal(void)
{
	struct rmem_async_event event;

	TEST_ASSERT(fx_is_readable(channel->fd, FX_EVENT_MS));
	TEST_OK(rmem_async_channel_get_event(channel, &event));
	TEST_EQ(event.type, RMEM_ASYNC_DEVICE_FATAL);
	TEST_ASSERT(event.dev == fx.a.dev && event.port_num == 0);
	TEST_OK(rmem_async_event_ack(&event));
}

/* The first message takes two packets: the request and its acknowledgement. */
TEST(fatal, device_that_fails_ends_its_requests)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	struct rmem_wc wc;
	uint32_t i;

	open_sides(2);
	fx_deliver(&fx.a, &fx.b, &wr);
	for (i = 0; i < 4; i++) {
		wr.wr_id = 100 + i;
		TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	}
	expect_fatal();
	TEST_EQ(fx_state(fx.a.qp), RMEM_QPS_ERR);
	TEST_EQ(fx_state(fx.b.qp), RMEM_QPS_ERR);
	fx_expect_flush(fx.a.cq, 100, 4);
	fx_expect_flush(fx.b.cq, 1, NB_RECV - 1);
	TEST_EQ(rmem_poll_cq(fx.a.cq, &wc, 1), -EIO);
	TEST_EQ(rmem_poll_cq(fx.b.cq, &wc, 1), -EIO);
}

TEST(fatal, posts_to_a_failed_device_are_refused)
{
	const struct rmem_mw_bind bind = {.wr_id = 1};
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	const struct rmem_srq_conf srq_conf = {.max_wr = 4};
	const struct rmem_recv_wr recv = {.wr_id = 1};
	struct rmem_mw *mw;
	struct rmem_srq *srq;

	open_sides(0);
	mw = fx_mw(fx.a.pd, RMEM_MW_TYPE_1);
	TEST_OK(rmem_srq_create(fx.a.pd, &srq_conf, &srq));
	fx_track(srq);
	TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	expect_fatal();
	TEST_EQ(rmem_post_send(fx.a.qp, &wr, 1), -ENODEV);
	TEST_EQ(rmem_post_recv(fx.a.qp, &recv, 1), -ENODEV);
	TEST_EQ(rmem_srq_post_recv(srq, &recv, 1), -ENODEV);
	TEST_ERR(rmem_mw_bind(fx.a.qp, mw, &bind), ENODEV);
}

TEST(fatal, objects_of_a_failed_device_are_released_and_not_created)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	const struct rmem_qp_attr init = {.state = RMEM_QPS_INIT, .port_num = 1};
	const struct rmem_srq_attr limit = {.srq_limit = 1};
	const struct rmem_srq_conf srq_conf = {.max_wr = 4};
	const struct rmem_cq_conf cq_conf = {.nb_cqe = 4};
	struct rmem_qp_conf conf;
	enum rmem_rereg_result result;
	struct rmem_srq *srq;
	struct rmem_cq *cq;
	struct rmem_mr *mr;
	struct rmem_pd *pd;
	struct rmem_qp *qp;

	open_sides(0);
	TEST_OK(rmem_srq_create(fx.a.pd, &srq_conf, &srq));
	fx_track(srq);
	TEST_EQ(fx_post(fx.a.qp, &wr), 1);
	expect_fatal();
	conf = fx_qp_conf(fx.a.cq, 4);
	TEST_ERR(rmem_pd_alloc(fx.a.dev, &pd), EIO);
	TEST_ERR(rmem_cq_create(fx.a.dev, &cq_conf, &cq), EIO);
	TEST_ERR(rmem_qp_create(fx.a.pd, &conf, &qp), EIO);
	TEST_ERR(rmem_mr_reg(fx.a.pd, fx.a.buf, 64, (uintptr_t)fx.a.buf, 0, &mr), EIO);
	TEST_ERR(rmem_mr_rereg(fx.a.mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, 0, &result), EIO);
	TEST_ERR(rmem_cq_resize(fx.a.cq, 128), EIO);
	TEST_ERR(rmem_srq_modify(srq, &limit, RMEM_SRQ_LIMIT), EIO);
	TEST_OK(rmem_qp_reset(fx.a.qp));
	TEST_ERR(rmem_qp_modify(fx.a.qp, &init,
				 RMEM_QP_STATE | RMEM_QP_PKEY_INDEX | RMEM_QP_PORT |
						 RMEM_QP_ACCESS_FLAGS),
			EIO);
	TEST_ERR(fx_connect(fx.a.qp, fx.b.qp), EIO);
	/* The tear-down releases all objects; a device of that name is a new one. */
	fx_teardown();
	open_sides(2);
	TEST_STATUS(fx_send(fx.a.qp, &wr), RMEM_WC_SUCCESS);
}

/* Requests are posted until the device fails: each one that was accepted completes once. */
TEST(fatal, requests_posted_concurrently_complete_once)
{
	struct rmem_send_wr wr;
	struct rmem_sge sge;
	struct rmem_wc wc;
	uint64_t nb_posted = 0, nb_done = 0;
	int posted, polled;

	open_sides(1000);
	sge = fx_sge(fx.a.mr, 0, 64);
	wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
	wr.flags = RMEM_SEND_SIGNALED;
	do {
		posted = rmem_post_send(fx.a.qp, &wr, 1);
		TEST_ASSERT(posted == 1 || posted == -ENOSPC || posted == -ENODEV);
		nb_posted += posted == 1;
		polled = rmem_poll_cq(fx.a.cq, &wc, 1);
		nb_done += polled == 1;
	} while (posted != -ENODEV || polled != -EIO);
	TEST_EQ(nb_done, nb_posted);
}

/* Before the event, and before a poll finds nothing left. */
static void
expect_all_flushed(void)
{
	struct rmem_send_wr wr[NB_SEND];
	struct rmem_wc wc;
	uint32_t i, nb_done = 0;
	int polled;

	open_sides_with("progress=engine,engine=1", 0);
	for (i = 0; i < NB_SEND; i++)
		wr[i] = fx_wr(RMEM_WR_SEND, NULL, 0);
	TEST_EQ(rmem_post_send(fx.a.qp, wr, NB_SEND), NB_SEND);
	do {
		polled = rmem_poll_cq(fx.a.cq, &wc, 1);
		nb_done += polled == 1;
	} while (polled != -EIO);
	TEST_EQ(nb_done, NB_SEND);
}

TEST(fatal, engine_ends_requests_before_the_event)
{
	unsigned int lcore = rte_get_next_lcore(-1, 1, 0);
	int result;

	if (lcore >= RTE_MAX_LCORE || rte_service_lcore_add(lcore) != 0)
		test_skip("it takes a worker lcore to serve");
	result = TEST_TRY(expect_all_flushed());
	if (TEST_TRY(fx_teardown()) != TEST_SUCCESS)
		result = TEST_FAILED;
	rte_service_lcore_stop(lcore);
	rte_eal_wait_lcore(lcore);
	TEST_OK(rte_service_lcore_del(lcore));
	TEST_RUN(result);
}

TEST_SUITE(fatal, fx_setup_none, fx_teardown);
