/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Completion channels: an armed CQ reports its next completion, once, by a file descriptor.
 */

#include <fcntl.h>

#include "conf.h"

#define CAPA RMEM_DEV_CAPA_COMP_CHANNEL

static struct {
	struct rmem_comp_channel *channel;
	struct rmem_cq *cq; /* of qp, bound to the channel */
	struct rmem_qp *qp;
	struct rmem_qp *peer; /* completes to fx.b.cq, without channel */
} ch;

static struct rmem_cq *
channel_cq(void *context)
{
	const struct rmem_cq_conf cq = {.nb_cqe = 64, .channel = ch.channel, .context = context};

	return fx_cq_by(fx.a.dev, &cq);
}

static void
setup(void)
{
	conf_setup();
	if ((conf.info.capa & CAPA) == 0)
		return;
	ch.channel = fx_channel(fx.a.dev);
	ch.cq = channel_cq(&ch);
	ch.qp = conf_qp(fx.a.pd, ch.cq, RMEM_ACCESS_REMOTE);
	ch.peer = conf_qp(fx.b.pd, fx.b.cq, RMEM_ACCESS_REMOTE);
	TEST_OK(conf_connect(ch.qp, ch.peer));
}

/* The next event is of that CQ; acknowledge it. */
static void
expect_event(struct rmem_cq *cq)
{
	struct rmem_cq *found = NULL;
	void *context = NULL;

	TEST_ASSERT(fx_is_readable(ch.channel->fd, 30000));
	TEST_OK(rmem_comp_channel_get_event(ch.channel, &found, &context));
	TEST_ASSERT(found == cq);
	TEST_ASSERT(context == cq->context);
	TEST_OK(rmem_cq_ack_events(cq, 1));
}

/* A message of the peer completes a receive of ch.qp; the completion is polled. */
static void
message(uint8_t opcode, uint8_t flags)
{
	const struct rmem_sge from = fx_sge(fx.b.mr, 0, 8), to = fx_sge(fx.a.mr, 0, 8);
	struct rmem_send_wr wr = fx_rdma_to(opcode, &from, &fx.a);

	if (opcode == RMEM_WR_SEND)
		wr = fx_wr(opcode, &from, 1);
	wr.flags |= RMEM_SEND_SIGNALED | flags;
	TEST_EQ(fx_post_recv(ch.qp, 1, &to, 1), 1);
	TEST_EQ(fx_post(ch.peer, &wr), 1);
	TEST_STATUS(fx_wait(fx.b.cq), RMEM_WC_SUCCESS);
	TEST_STATUS(fx_wait(ch.cq), RMEM_WC_SUCCESS);
}

CONF_TEST(channel, armed_cq_reports_the_next_completion_once, CAPA, 0,
		"IBTA 11.4.2.2; ibv_req_notify_cq(3)")
{
	unsigned int i;

	message(RMEM_WR_SEND, 0);
	TEST_ASSERT(!fx_is_readable(ch.channel->fd, 0));
	for (i = 0; i < 3; i++) {
		TEST_OK(rmem_cq_req_notify(ch.cq, false));
		TEST_ASSERT(!fx_is_readable(ch.channel->fd, 0));
		message(RMEM_WR_SEND, 0);
		expect_event(ch.cq);
		message(RMEM_WR_SEND, 0);
		TEST_ASSERT(!fx_is_readable(ch.channel->fd, 0));
	}
}

CONF_TEST(channel, send_completion_wakes_the_waiter, CAPA, 0, "ibv_get_cq_event(3)")
{
	const struct rmem_sge sge = fx_sge(fx.a.mr, 0, 8);
	struct rmem_send_wr wr = fx_rdma_to(RMEM_WR_RDMA_WRITE, &sge, &fx.b);
	unsigned int i;

	wr.flags |= RMEM_SEND_SIGNALED;
	for (i = 0; i < 10; i++) {
		TEST_OK(rmem_cq_req_notify(ch.cq, false));
		TEST_EQ(fx_post(ch.qp, &wr), 1);
		expect_event(ch.cq);
		TEST_STATUS(fx_wait(ch.cq), RMEM_WC_SUCCESS);
	}
}

CONF_TEST(channel, solicited_only_ignores_other_messages, CAPA, 0,
		"IBTA 11.4.2.2; ibv_req_notify_cq(3): solicited_only")
{
	TEST_OK(rmem_cq_req_notify(ch.cq, true));
	message(RMEM_WR_SEND, 0);
	message(RMEM_WR_RDMA_WRITE_WITH_IMM, 0);
	TEST_ASSERT(!fx_is_readable(ch.channel->fd, 0));
	message(RMEM_WR_SEND, RMEM_SEND_SOLICITED);
	expect_event(ch.cq);
	TEST_OK(rmem_cq_req_notify(ch.cq, true));
	message(RMEM_WR_RDMA_WRITE_WITH_IMM, RMEM_SEND_SOLICITED);
	expect_event(ch.cq);
}

CONF_TEST(channel, flushed_receive_is_solicited, CAPA, 0,
		"IBTA 11.4.2.2: completions in error are solicited")
{
	TEST_OK(rmem_cq_req_notify(ch.cq, true));
	TEST_EQ(fx_post_recv(ch.qp, 7, NULL, 0), 1);
	TEST_OK(rmem_qp_set_error(ch.qp));
	fx_expect_flush(ch.cq, 7, 1);
	if (fx_is_readable(ch.channel->fd,
			    conf_is_known_deviation("flush_solicited") ? 3000 : 30000)) {
		expect_event(ch.cq);
		return;
	}
	TEST_ASSERT(conf_deviates("flush_solicited"));
}

CONF_TEST(channel, request_for_all_completions_is_not_narrowed, CAPA, 0,
		"IBTA 11.4.2.2: a request for solicited completions leaves one for the next")
{
	TEST_OK(rmem_cq_req_notify(ch.cq, false));
	TEST_OK(rmem_cq_req_notify(ch.cq, true));
	message(RMEM_WR_SEND, 0);
	expect_event(ch.cq);
	TEST_OK(rmem_cq_req_notify(ch.cq, true));
	TEST_OK(rmem_cq_req_notify(ch.cq, false));
	message(RMEM_WR_SEND, 0);
	expect_event(ch.cq);
}

CONF_TEST(channel, cqs_share_a_channel, CAPA, 0, "ibv_create_cq(3): channel")
{
	struct rmem_cq *other = channel_cq(NULL);
	struct rmem_qp *qp, *peer;

	qp = conf_qp(fx.a.pd, other, RMEM_ACCESS_REMOTE);
	peer = conf_qp(fx.b.pd, fx.b.cq, RMEM_ACCESS_REMOTE);
	TEST_OK(conf_connect(qp, peer));
	TEST_OK(rmem_cq_req_notify(ch.cq, false));
	TEST_OK(rmem_cq_req_notify(other, false));
	TEST_EQ(fx_post_recv(qp, 7, NULL, 0), 1);
	TEST_OK(rmem_qp_set_error(qp));
	expect_event(other);
	TEST_ASSERT(!fx_is_readable(ch.channel->fd, 0));
	message(RMEM_WR_SEND, 0);
	expect_event(ch.cq);
}

/* Get an event, and leave it to the caller to acknowledge it. */
static void
get_event(void)
{
	struct rmem_cq *found;

	TEST_OK(rmem_cq_req_notify(ch.cq, false));
	message(RMEM_WR_SEND, 0);
	TEST_ASSERT(fx_is_readable(ch.channel->fd, 30000));
	TEST_OK(rmem_comp_channel_get_event(ch.channel, &found, NULL));
}

CONF_TEST(channel, cq_is_destroyed_when_its_events_are_acknowledged, CAPA, 0,
		"ibv_ack_cq_events(3)")
{
	int result;

	get_event();
	result = TEST_TRY(get_event());
	if (result != TEST_SUCCESS)
		rmem_cq_ack_events(ch.cq, 1);
	TEST_RUN(result);
	TEST_OK(fx_release(ch.qp));
	TEST_ERR(rmem_cq_destroy(ch.cq), EBUSY);
	TEST_ERR(rmem_cq_ack_events(ch.cq, 3), EINVAL);
	TEST_OK(rmem_cq_ack_events(ch.cq, 1));
	TEST_ERR(rmem_cq_destroy(ch.cq), EBUSY);
	TEST_OK(rmem_cq_ack_events(ch.cq, 1));
	TEST_OK(rmem_cq_ack_events(ch.cq, 0));
	TEST_RUN(fx_release(ch.cq));
}

CONF_TEST(channel, event_of_a_destroyed_cq_is_dropped, CAPA, 0,
		"ibv_destroy_cq(3): no event of it is returned later")
{
	TEST_OK(rmem_cq_req_notify(ch.cq, false));
	message(RMEM_WR_SEND, 0);
	TEST_ASSERT(fx_is_readable(ch.channel->fd, 30000));
	TEST_OK(fx_release(ch.qp));
	TEST_OK(fx_release(ch.cq));
	TEST_ASSERT(!fx_is_readable(ch.channel->fd, 0));
}

CONF_TEST(channel, channel_with_a_cq_is_ebusy, CAPA, 0, "ibv_create_comp_channel(3): EBUSY")
{
	TEST_ERR(rmem_comp_channel_destroy(ch.channel), EBUSY);
	TEST_OK(fx_release(ch.qp));
	TEST_OK(fx_release(ch.cq));
	TEST_RUN(fx_release(ch.channel));
}

CONF_TEST(channel, nonblocking_channel_without_events_is_eagain, CAPA, 0,
		"ibv_get_cq_event(3): O_NONBLOCK")
{
	struct rmem_cq *cq;
	int flags = fcntl(ch.channel->fd, F_GETFL);

	TEST_ASSERT(flags >= 0);
	TEST_OK(fcntl(ch.channel->fd, F_SETFL, flags | O_NONBLOCK));
	TEST_ERR(rmem_comp_channel_get_event(ch.channel, &cq, NULL), EAGAIN);
	TEST_OK(rmem_cq_req_notify(ch.cq, false));
	message(RMEM_WR_SEND, 0);
	expect_event(ch.cq);
	TEST_ERR(rmem_comp_channel_get_event(ch.channel, &cq, NULL), EAGAIN);
}

TEST_SUITE(channel, setup, conf_teardown);
