/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* No event is lost when it is read while its object is destroyed, and the driver refuses that. */

#include <fcntl.h>
#include <string.h>

#include "fixture.h"
#include "rmem/stub_driver.h"

/* A driver that refuses to destroy; an event is read concurrently. */
static struct {
	struct rmem_comp_channel *comp;
	struct rmem_async_channel *async;
	bool is_busy;
} refusal;

static int
refuse(void)
{
	struct rmem_async_event event;
	struct rmem_cq *cq;

	if (!refusal.is_busy)
		return 0;
	TEST_ERR(rmem_async_channel_get_event(refusal.async, &event), EAGAIN);
	TEST_ERR(rmem_comp_channel_get_event(refusal.comp, &cq, NULL), EAGAIN);
	return -EBUSY;
}

static int
refuse_cq(struct rmem_cq *cq)
{
	RTE_SET_USED(cq);
	return refuse();
}

static int
refuse_qp(struct rmem_qp *qp)
{
	RTE_SET_USED(qp);
	return refuse();
}

static void
setup(void)
{
	struct rmem_driver driver = stub_driver_full("busy");

	driver.ops.cq_destroy = refuse_cq;
	driver.ops.qp_destroy = refuse_qp;
	stub_register(&driver);
	stub.capa = RMEM_DEV_CAPA_ASYNC_EVENT | RMEM_DEV_CAPA_COMP_CHANNEL;
	fx_setup_none();
	fx.a.dev = fx_dev("busy0", NULL);
	fx.a.pd = fx_pd(fx.a.dev);
	refusal.comp = fx_channel(fx.a.dev);
	refusal.async = fx_async_channel(fx.a.dev);
	TEST_OK(fcntl(refusal.comp->fd, F_SETFL, O_NONBLOCK));
	TEST_OK(fcntl(refusal.async->fd, F_SETFL, O_NONBLOCK));
}

TEST(event_refusal, destruction_of_a_cq_loses_no_event)
{
	const struct rmem_cq_conf conf = {
			.nb_cqe = 1, .channel = refusal.comp, .async_channel = refusal.async};
	struct rmem_cq *cq = fx_cq_by(fx.a.dev, &conf), *found = NULL;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		TEST_OK(rmem_cq_req_notify(cq, false));
		rmem_cq_notify(cq, false);
	}
	rmem_cq_async_event(cq, RMEM_ASYNC_CQ_ERR);
	refusal.is_busy = true;
	TEST_ERR(rmem_cq_destroy(cq), EBUSY);
	refusal.is_busy = false;
	for (i = 0; i < 2; i++) {
		TEST_OK(rmem_comp_channel_get_event(refusal.comp, &found, NULL));
		TEST_ASSERT(found == cq);
	}
	TEST_OK(rmem_cq_ack_events(cq, 2));
	fx_expect_async(refusal.async, RMEM_ASYNC_CQ_ERR, cq);
	TEST_ASSERT(!fx_is_readable(refusal.async->fd, 0));
	rmem_cq_async_event(cq, RMEM_ASYNC_CQ_ERR);
	TEST_OK(fx_release(cq));
	TEST_ASSERT(!fx_is_readable(refusal.async->fd, 0));
}

TEST(event_refusal, destruction_of_a_qp_loses_no_event)
{
	struct rmem_qp_conf conf;
	struct rmem_qp *qp;

	fx.a.cq = fx_cq(fx.a.dev, 1);
	conf = fx_qp_conf(fx.a.cq, 4);
	conf.async_channel = refusal.async;
	qp = fx_qp_by(fx.a.pd, &conf);
	rmem_qp_async_event(qp, RMEM_ASYNC_QP_FATAL);
	refusal.is_busy = true;
	TEST_ERR(rmem_qp_destroy(qp), EBUSY);
	rmem_qp_async_event(qp, RMEM_ASYNC_COMM_EST);
	refusal.is_busy = false;
	fx_expect_async(refusal.async, RMEM_ASYNC_QP_FATAL, qp);
	fx_expect_async(refusal.async, RMEM_ASYNC_COMM_EST, qp);
	TEST_ASSERT(!fx_is_readable(refusal.async->fd, 0));
}

TEST_SUITE(event_refusal, setup, fx_teardown);
