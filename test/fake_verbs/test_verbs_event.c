/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Asynchronous events of libibverbs reach the channels of the application. */

#include "setup.h"

static struct {
	struct rmem_async_channel *channel;
	struct rmem_cq *cq;
	struct rmem_qp *qp;
} ev;

/* vt.dev has a channel, to which a CQ and a QP are bound. */
static void
open_channel(void)
{
	struct rmem_cq_conf cq = {.nb_cqe = 8, .context = &ev.cq};
	struct rmem_qp_conf qp = {.max_send_wr = 4, .type = RMEM_QPT_RC, .context = &ev.qp};

	TEST_OK(vt_open());
	TEST_OK(rmem_async_channel_create(vt.dev, &ev.channel));
	cq.async_channel = qp.async_channel = ev.channel;
	TEST_OK(rmem_cq_create(vt.dev, &cq, &ev.cq));
	qp.send_cq = qp.recv_cq = ev.cq;
	TEST_OK(rmem_qp_create(vt.pd, &qp, &ev.qp));
}

static void
close_channel(void)
{
	TEST_OK(rmem_qp_destroy(ev.qp));
	TEST_OK(rmem_cq_destroy(ev.cq));
	TEST_OK(rmem_async_channel_destroy(ev.channel));
}

/* Waits for the thread that reads events; acknowledges the event. */
static void
expect(uint32_t type, const void *obj, const void *context, uint32_t port_num)
{
	struct rmem_async_event event;

	TEST_OK(rmem_async_channel_get_event(ev.channel, &event));
	TEST_EQ(event.type, type);
	TEST_ASSERT(event.qp == obj && event.context == context);
	TEST_EQ(event.port_num, port_num);
	TEST_OK(rmem_async_event_ack(&event));
}

TEST(verbs_event, events_of_objects_reach_their_channel)
{
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	open_channel();
	qp = &fake_qp_find(ev.qp->qp_num)->ex.qp_base;
	cq = fake_last_cq();
	fake_event(IBV_EVENT_QP_LAST_WQE_REACHED, NULL, qp, 0);
	expect(RMEM_ASYNC_QP_LAST_WQE_REACHED, ev.qp, &ev.qp, 0);
	fake_event(IBV_EVENT_QP_ACCESS_ERR, NULL, qp, 0);
	expect(RMEM_ASYNC_QP_ACCESS_ERR, ev.qp, &ev.qp, 0);
	fake_event(IBV_EVENT_PATH_MIG, NULL, qp, 0); /* unknown to the class */
	fake_event(IBV_EVENT_CQ_ERR, cq, NULL, 0);
	expect(RMEM_ASYNC_CQ_ERR, ev.cq, &ev.cq, 0);
	close_channel();
}

TEST(verbs_event, limit_of_an_srq_reaches_its_channel)
{
	struct rmem_srq_conf conf = {.max_wr = 4, .max_sge = 1, .context = &conf};
	struct rmem_srq *srq;

	fake.has_srq = true;
	open_channel();
	conf.async_channel = ev.channel;
	TEST_OK(rmem_srq_create(vt.pd, &conf, &srq));
	fake_event(IBV_EVENT_SRQ_LIMIT_REACHED, NULL, (void *)fake_last_srq(), 0);
	expect(RMEM_ASYNC_SRQ_LIMIT_REACHED, srq, &conf, 0);
	TEST_OK(rmem_srq_destroy(srq));
	close_channel();
}

TEST(verbs_event, events_of_device_and_port_reach_the_channel)
{
	open_channel();
	fake_event(IBV_EVENT_PORT_ERR, NULL, NULL, 2); /* not the port in use */
	fake_event(IBV_EVENT_GID_CHANGE, NULL, NULL, 1);
	expect(RMEM_ASYNC_GID_CHANGE, vt.dev, NULL, 1);
	fake_event(IBV_EVENT_CLIENT_REREGISTER, NULL, NULL, 1);
	expect(RMEM_ASYNC_CLIENT_REREGISTER, vt.dev, NULL, 1);
	fake_event(IBV_EVENT_DEVICE_FATAL, NULL, NULL, 1);
	expect(RMEM_ASYNC_DEVICE_FATAL, vt.dev, NULL, 0);
	close_channel();
}

TEST_SUITE(verbs_event, vt_setup_fake, vt_teardown);
