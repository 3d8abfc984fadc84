/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Asynchronous events: errors and changes of state of QPs, CQs and SRQs are reported by a file
 * descriptor, and an event that is not acknowledged keeps its object.
 */

#include <fcntl.h>
#include <string.h>

#include "conf.h"

#define CAPA RMEM_DEV_CAPA_ASYNC_EVENT

#define INIT_MASK (RMEM_QP_PKEY_INDEX | RMEM_QP_PORT | RMEM_QP_ACCESS_FLAGS)
#define RTR_MASK                                                                                   \
	(RMEM_QP_AV | RMEM_QP_PATH_MTU | RMEM_QP_DEST_QPN | RMEM_QP_RQ_PSN |                       \
			RMEM_QP_MAX_DEST_RD_ATOMIC | RMEM_QP_MIN_RNR_TIMER)

/* The QP, its CQ and its SRQ are bound to the channel; the peer is b's. */
static struct {
	struct rmem_async_channel *channel;
	struct rmem_cq *cq;
	struct rmem_srq *srq; /* NULL: qp has a receive queue */
	struct rmem_qp *qp;
	struct rmem_qp *peer;
} as;

static void
make_qp(void)
{
	struct rmem_qp_conf qp = fx_qp_conf(as.cq, RTE_MIN(16u, conf.info.max_send_wr));

	qp.max_send_sge = (uint16_t)RTE_MIN(qp.max_send_sge, conf.info.max_send_sge);
	qp.max_inline_data = 0;
	qp.access &= conf.info.access;
	qp.srq = as.srq;
	qp.async_channel = as.channel;
	qp.context = &as.qp;
	as.qp = fx_qp_by(fx.a.pd, &qp);
	TEST_RUN(conf_connect(as.qp, as.peer));
}

static void
setup(void)
{
	struct rmem_cq_conf cq = {.nb_cqe = 4, .context = &as.cq};

	memset(&as, 0, sizeof(as));
	conf_setup();
	if ((conf.info.capa & CAPA) == 0)
		return;
	as.channel = fx_async_channel(fx.a.dev);
	cq.async_channel = as.channel;
	as.cq = fx_cq_by(fx.a.dev, &cq);
	as.peer = conf_qp(fx.b.pd, fx.b.cq, RMEM_ACCESS_REMOTE);
	make_qp();
}

/* Replace the QP by one with an SRQ. */
static void
use_srq(void)
{
	const struct rmem_srq_conf srq = {
			.max_wr = 16, .async_channel = as.channel, .context = &as.srq};

	TEST_OK(rmem_srq_create(fx.a.pd, &srq, &as.srq));
	fx_track(as.srq);
	TEST_OK(fx_release(as.qp));
	TEST_OK(rmem_qp_reset(as.peer));
	make_qp();
}

/* Check type, object and context of the next event, which is acknowledged if it is another one. */
static void
get_event(uint32_t type, const void *obj, const void *context, struct rmem_async_event *event)
{
	TEST_ASSERT(fx_is_readable(as.channel->fd, 30000));
	TEST_OK(rmem_async_channel_get_event(as.channel, event));
	if (event->type != type || event->qp != obj)
		TEST_OK(rmem_async_event_ack(event));
	TEST_EQ(event->type, type);
	TEST_ASSERT(event->qp == obj);
	TEST_ASSERT(event->context == context);
	TEST_EQ(event->port_num, 0);
}

/* The same, acknowledged. */
static void
expect_event(uint32_t type, const void *obj, const void *context)
{
	struct rmem_async_event event;

	get_event(type, obj, context, &event);
	TEST_OK(rmem_async_event_ack(&event));
}

/* An event of the QP, unless its absence is a known deviation. */
static void
expect_known(const char *deviation, uint32_t type)
{
	if (fx_is_readable(as.channel->fd, conf_is_known_deviation(deviation) ? 1000 : 30000)) {
		expect_event(type, as.qp, &as.qp);
		return;
	}
	TEST_ASSERT(conf_deviates(deviation));
}

/* Some NICs do not report them all, and nothing reports which ones; rdma_rxe was seen. */
static void
need_no_nic(void)
{
	if (strcmp(conf.info.driver_name, "verbs") == 0 && conf.profile == NULL)
		test_skip("NICs differ in this event");
}

static void
post_srq(uint32_t nb)
{
	const struct rmem_recv_wr wr = {.wr_id = 1};

	while (nb-- > 0)
		TEST_EQ(rmem_srq_post_recv(as.srq, &wr, 1), 1);
}

static int
send_empty(void)
{
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);

	return fx_send(as.peer, &wr);
}

/* Send a message; its completion is reported by the CQ. */
static void
receive_empty(void)
{
	TEST_STATUS(send_empty(), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(as.cq), RMEM_WC_SUCCESS);
}

static int
set_limit(uint32_t limit)
{
	const struct rmem_srq_attr attr = {.srq_limit = limit};

	return rmem_srq_modify(as.srq, &attr, RMEM_SRQ_LIMIT);
}

CONF_TEST(async, limit_of_an_srq_is_reported_once, CAPA | RMEM_DEV_CAPA_SRQ, 0,
		"IBTA 10.2.9.3, 11.6.3.1; ibv_modify_srq(3)")
{
	unsigned int i;

	use_srq();
	post_srq(4);
	TEST_OK(set_limit(3));
	receive_empty();
	TEST_ASSERT(!fx_is_readable(as.channel->fd, 0));
	for (i = 0; i < 2; i++)
		receive_empty();
	expect_event(RMEM_ASYNC_SRQ_LIMIT_REACHED, as.srq, &as.srq);
	TEST_ASSERT(!fx_is_readable(as.channel->fd, 0));
	post_srq(3);
	TEST_OK(set_limit(4));
	receive_empty();
	expect_event(RMEM_ASYNC_SRQ_LIMIT_REACHED, as.srq, &as.srq);
}

CONF_TEST(async, event_keeps_its_object_until_acknowledged, CAPA | RMEM_DEV_CAPA_SRQ, 0,
		"ibv_ack_async_event(3)")
{
	struct rmem_async_event event;

	use_srq();
	post_srq(1);
	TEST_OK(set_limit(1));
	receive_empty();
	get_event(RMEM_ASYNC_SRQ_LIMIT_REACHED, as.srq, &as.srq, &event);
	TEST_OK(fx_release(as.qp));
	TEST_EQ(rmem_srq_destroy(as.srq), -EBUSY);
	TEST_EQ(rmem_async_channel_destroy(as.channel), -EBUSY);
	TEST_OK(rmem_async_event_ack(&event));
	TEST_ERR(rmem_async_event_ack(&event), EINVAL);
	TEST_RUN(fx_release(as.srq));
}

CONF_TEST(async, event_not_returned_is_dropped_with_its_object, CAPA | RMEM_DEV_CAPA_SRQ, 0,
		"ibv_destroy_srq(3)")
{
	use_srq();
	post_srq(1);
	TEST_OK(set_limit(1));
	receive_empty();
	TEST_ASSERT(fx_is_readable(as.channel->fd, 30000));
	TEST_OK(fx_release(as.qp));
	TEST_OK(fx_release(as.srq));
	TEST_ASSERT(!fx_is_readable(as.channel->fd, 0));
}

CONF_TEST(async, channel_without_an_event_is_eagain, CAPA, 0, "ibv_get_async_event(3): O_NONBLOCK")
{
	struct rmem_async_event event;
	int flags = fcntl(as.channel->fd, F_GETFL);

	TEST_ASSERT(!fx_is_readable(as.channel->fd, 0));
	TEST_OK(fcntl(as.channel->fd, F_SETFL, flags | O_NONBLOCK));
	TEST_EQ(rmem_async_channel_get_event(as.channel, &event), -EAGAIN);
}

CONF_TEST(async, last_receive_of_an_srq_is_reported_in_err, CAPA | RMEM_DEV_CAPA_SRQ, 0,
		"IBTA 10.2.9.4, 11.6.3.1: Last WQE Reached")
{
	need_no_nic();
	use_srq();
	post_srq(2);
	TEST_OK(rmem_qp_set_error(as.qp));
	expect_known("event_last_wqe", RMEM_ASYNC_QP_LAST_WQE_REACHED);
	TEST_OK(rmem_qp_set_error(as.qp));
	TEST_ASSERT(!fx_is_readable(as.channel->fd, 0) || conf_deviates("event_last_wqe_again"));
}

CONF_TEST(async, event_of_a_qp_remains_after_a_reset, CAPA | RMEM_DEV_CAPA_SRQ, 0,
		"IBTA 10.3.1: RESET concerns the QP, not events that occurred")
{
	need_no_nic();
	use_srq();
	TEST_OK(rmem_qp_set_error(as.qp));
	TEST_OK(rmem_qp_reset(as.qp));
	expect_known("event_last_wqe", RMEM_ASYNC_QP_LAST_WQE_REACHED);
}

/* Check that a request of the peer is refused with that status and event. */
static void
refuse(const struct rmem_send_wr *wr, uint32_t event, const char *deviation)
{
	TEST_ASSERT(fx_send(as.peer, wr) != RMEM_WC_SUCCESS);
	expect_known(deviation, event);
	TEST_ASSERT(!fx_is_readable(as.channel->fd, 0));
	conf_expect_err(as.qp);
}

CONF_TEST(async, access_violation_of_the_peer_is_reported, CAPA, RMEM_ACCESS_REMOTE_WRITE,
		"IBTA 11.6.3.2: Local Access Violation Work Queue Error")
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	const struct rmem_send_wr wr =
			fx_rdma(RMEM_WR_RDMA_WRITE, &sge, fx_addr(fx.a.buf), fx.a.mr->rkey ^ 1);

	need_no_nic();
	refuse(&wr, RMEM_ASYNC_QP_ACCESS_ERR, "event_access");
}

CONF_TEST(async, invalid_request_of_the_peer_is_reported, CAPA, RMEM_ACCESS_REMOTE_WRITE,
		"IBTA 11.6.3.2: Invalid Request Local Work Queue Error")
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	const struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.a);
	const struct rmem_qp_attr attr = {.access = 0};

	need_no_nic();
	TEST_OK(rmem_qp_modify(as.qp, &attr, RMEM_QP_ACCESS_FLAGS));
	refuse(&wr, RMEM_ASYNC_QP_REQ_ERR, "event_req");
}

/* The receive reports it, with a completion. */
CONF_TEST(async, error_of_a_receive_has_no_event, CAPA, 0, "IBTA 9.9.3: class E errors")
{
	const struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, &sge, 1);

	TEST_EQ(fx_post_recv(as.qp, 1, NULL, 0), 1);
	TEST_ASSERT(fx_send(as.peer, &wr) != RMEM_WC_SUCCESS);
	TEST_ASSERT(fx_wait(as.cq) != RMEM_WC_SUCCESS);
	TEST_ASSERT(!fx_is_readable(as.channel->fd, 0));
}

CONF_TEST(async, overrun_of_a_cq_is_reported, CAPA, 0,
		"IBTA 11.6.3.2: CQ Error, Local Work Queue Catastrophic Error")
{
	const struct rmem_send_wr wr = fx_wr(RMEM_WR_SEND, NULL, 0);
	uint32_t i;

	need_no_nic();
	for (i = 0; i <= as.cq->nb_cqe; i++)
		TEST_EQ(fx_post_recv(as.qp, i, NULL, 0), 1);
	for (i = 0; i < as.cq->nb_cqe; i++)
		TEST_STATUS(send_empty(), RMEM_WC_SUCCESS);
	TEST_EQ(fx_post(as.peer, &wr), 1); /* some devices do not acknowledge it */
	expect_event(RMEM_ASYNC_CQ_ERR, as.cq, &as.cq);
	expect_known("event_fatal", RMEM_ASYNC_QP_FATAL);
}

CONF_TEST(async, first_message_in_rtr_establishes_communication, CAPA, 0,
		"IBTA 11.6.3.1: Communication Established")
{
	struct rmem_qp_attr attr;

	need_no_nic();
	TEST_OK(rmem_qp_query(as.qp, &attr));
	TEST_OK(rmem_qp_reset(as.qp));
	attr.state = RMEM_QPS_INIT;
	TEST_OK(rmem_qp_modify(as.qp, &attr, RMEM_QP_STATE | INIT_MASK));
	TEST_EQ(fx_post_recv(as.qp, 1, NULL, 0), 1);
	TEST_EQ(fx_post_recv(as.qp, 2, NULL, 0), 1);
	attr.state = RMEM_QPS_RTR;
	TEST_OK(rmem_qp_modify(as.qp, &attr, RMEM_QP_STATE | RTR_MASK));
	TEST_ASSERT(!fx_is_readable(as.channel->fd, 0));
	TEST_STATUS(send_empty(), RMEM_WC_SUCCESS);
	expect_known("event_comm_est", RMEM_ASYNC_COMM_EST);
	TEST_STATUS(send_empty(), RMEM_WC_SUCCESS);
	TEST_ASSERT(!fx_is_readable(as.channel->fd, 0));
}

CONF_TEST(async, refused_request_establishes_no_communication, CAPA, 0,
		"IBTA 11.6.3.1: Communication Established")
{
	struct rmem_sge sge = fx_sge(fx.b.mr, 0, 8);
	const struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.a);
	struct rmem_qp_attr attr;

	need_no_nic();
	TEST_OK(rmem_qp_query(as.qp, &attr));
	TEST_OK(rmem_qp_reset(as.qp));
	attr.state = RMEM_QPS_INIT;
	TEST_OK(rmem_qp_modify(as.qp, &attr, RMEM_QP_STATE | INIT_MASK));
	attr.state = RMEM_QPS_RTR;
	TEST_OK(rmem_qp_modify(as.qp, &attr, RMEM_QP_STATE | RTR_MASK));
	sge.lkey ^= 0x5500;
	conf_status(CONF_LOCAL_KEY, fx_send(as.peer, &wr));
	TEST_ASSERT(!fx_is_readable(as.channel->fd, 0));
}

CONF_TEST(async, end_of_draining_is_reported_on_request, CAPA, 0,
		"IBTA 11.6.3.1: Send Queue Drained; ibv_modify_qp(3): IBV_QP_EN_SQD_ASYNC_NOTIFY")
{
	struct rmem_qp_attr attr = {.state = RMEM_QPS_SQD};

	need_no_nic();
	TEST_OK(rmem_qp_modify(as.qp, &attr, RMEM_QP_STATE));
	if (fx_is_readable(as.channel->fd, conf_is_known_deviation("event_drained") ? 1000 : 0)) {
		TEST_ASSERT(conf_deviates("event_drained"));
		expect_event(RMEM_ASYNC_SQ_DRAINED, as.qp, &as.qp);
	}
	attr.state = RMEM_QPS_RTS;
	TEST_OK(rmem_qp_modify(as.qp, &attr, RMEM_QP_STATE));
	attr.state = RMEM_QPS_SQD;
	attr.en_sqd_async_notify = 1;
	TEST_OK(rmem_qp_modify(as.qp, &attr, RMEM_QP_STATE | RMEM_QP_EN_SQD_ASYNC_NOTIFY));
	expect_event(RMEM_ASYNC_SQ_DRAINED, as.qp, &as.qp);
}

TEST_SUITE(async, setup, conf_teardown);
