/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The events of a CQ are moderated: late by its period at most, and none is lost. */

#include <fcntl.h>
#include <time.h>

#include "fixture.h"

#define DEPTH 64u
#define LONG  RMEM_CQ_MAX_PERIOD_US

static struct {
	struct rmem_comp_channel *channel;
	struct rmem_cq *cq; /* of both QPs */
	struct rmem_qp *qp;
} mm;

static uint64_t
now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void
setup(void)
{
	struct rmem_cq_conf conf = {.nb_cqe = DEPTH};
	struct rmem_qp *peer;

	fx_setup();
	mm.channel = conf.channel = fx_channel(fx.a.dev);
	mm.cq = fx_cq_by(fx.a.dev, &conf);
	mm.qp = fx_qp(fx.a.pd, mm.cq, DEPTH);
	peer = fx_qp(fx.a.pd, mm.cq, DEPTH);
	TEST_OK(fx_connect_pair(mm.qp, peer));
	TEST_ASSERT(fcntl(mm.channel->fd, F_SETFL, O_NONBLOCK) == 0);
}

static void
moderate(uint32_t count, uint32_t period_us)
{
	const struct rmem_cq_attr attr = {.count = count, .period_us = period_us};

	TEST_OK(rmem_cq_modify(mm.cq, &attr));
}

static void
post(void)
{
	struct rmem_send_wr wr = fx_wr(RMEM_WR_RDMA_WRITE, NULL, 0);

	wr.flags = RMEM_SEND_SIGNALED;
	TEST_EQ(fx_post(mm.qp, &wr), 1);
}

/* Exactly one event, and all n completions. */
static void
take(uint32_t n)
{
	struct rmem_cq *found;

	TEST_ASSERT(fx_is_readable(mm.channel->fd, FX_EVENT_MS));
	TEST_OK(rmem_comp_channel_get_event(mm.channel, &found, NULL));
	TEST_ASSERT(found == mm.cq);
	TEST_OK(rmem_cq_ack_events(mm.cq, 1));
	TEST_ERR(rmem_comp_channel_get_event(mm.channel, &found, NULL), EAGAIN);
	TEST_ASSERT(!fx_is_readable(mm.channel->fd, 0));
	for (; n > 0; n--)
		TEST_STATUS(fx_wait(mm.cq), RMEM_WC_SUCCESS);
	TEST_ASSERT(fx_is_idle(mm.cq));
}

TEST(cq_moder, count_of_completions_generates_one_event)
{
	unsigned int i, round;
	uint64_t start;

	moderate(4, LONG);
	for (round = 0; round < 20; round++) {
		TEST_OK(rmem_cq_req_notify(mm.cq, false));
		start = now_us();
		for (i = 0; i < 4; i++) {
			/* If this thread was without a CPU for the period, it is over. */
			TEST_ASSERT(!fx_is_readable(mm.channel->fd, 0) || now_us() - start >= LONG);
			post();
		}
		take(4);
	}
}

TEST(cq_moder, event_follows_after_the_period)
{
	static const uint32_t periods[] = {1, 1000, 20000, LONG};
	unsigned int i;
	uint64_t start;

	for (i = 0; i < RTE_DIM(periods); i++) {
		moderate(i % 2 == 0 ? 4 : 0, periods[i]);
		TEST_OK(rmem_cq_req_notify(mm.cq, false));
		start = now_us();
		post();
		post();
		TEST_ASSERT(fx_is_readable(mm.channel->fd, FX_EVENT_MS));
		TEST_ASSERT(now_us() - start >= periods[i]);
		take(2);
	}
}

TEST(cq_moder, cq_that_is_not_armed_has_no_event)
{
	unsigned int i;

	moderate(2, 1);
	for (i = 0; i < 8; i++)
		post();
	TEST_ASSERT(!fx_is_readable(mm.channel->fd, 10));
	for (i = 0; i < 8; i++)
		TEST_STATUS(fx_wait(mm.cq), RMEM_WC_SUCCESS);
	TEST_OK(rmem_cq_req_notify(mm.cq, false));
	post();
	take(1);
}

/* WRITEs are not solicited. */
TEST(cq_moder, completions_that_generate_no_event_do_not_count)
{
	unsigned int i;

	moderate(4, LONG);
	TEST_OK(rmem_cq_req_notify(mm.cq, true));
	for (i = 0; i < 8; i++)
		post();
	TEST_ASSERT(!fx_is_readable(mm.channel->fd, 0));
	TEST_OK(rmem_cq_req_notify(mm.cq, false));
	for (i = 0; i < 4; i++)
		post();
	take(12);
}

TEST(cq_moder, event_that_waits_is_generated_by_a_change)
{
	const struct rmem_cq_attr off[] = {{.count = 1, .period_us = LONG}, {.count = 9}, {0}};
	unsigned int i;

	for (i = 0; i < RTE_DIM(off); i++) {
		moderate(4, LONG);
		TEST_OK(rmem_cq_req_notify(mm.cq, false));
		post();
		TEST_OK(rmem_cq_modify(mm.cq, &off[i]));
		TEST_ASSERT(fx_is_readable(mm.channel->fd, 0));
		take(1);
		TEST_OK(rmem_cq_req_notify(mm.cq, false));
		post();
		TEST_ASSERT(fx_is_readable(mm.channel->fd, 0));
		take(1);
	}
}

TEST(cq_moder, cq_is_destroyed_while_its_event_waits)
{
	const struct rmem_cq_conf conf = {.nb_cqe = DEPTH, .channel = mm.channel};
	struct rmem_cq *kept = mm.cq;
	struct rmem_qp *peer;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		mm.cq = fx_cq_by(fx.a.dev, &conf);
		mm.qp = fx_qp(fx.a.pd, mm.cq, DEPTH);
		peer = fx_qp(fx.a.pd, mm.cq, DEPTH);
		TEST_OK(fx_connect_pair(mm.qp, peer));
		moderate(4, 1000);
		TEST_OK(rmem_cq_req_notify(mm.cq, false));
		post();
		TEST_OK(fx_release(mm.qp));
		TEST_OK(fx_release(peer));
		TEST_OK(fx_release(mm.cq));
	}
	mm.cq = kept;
	TEST_ASSERT(!fx_is_readable(mm.channel->fd, 5));
}

TEST(cq_moder, modify_checks_its_arguments)
{
	struct rmem_cq_attr attr = {.count = RMEM_CQ_MAX_COUNT, .period_us = LONG};
	struct rmem_dev *dev = fx_dev("soft1", "profile=verbs");

	TEST_ERR(rmem_cq_modify(NULL, &attr), EINVAL);
	TEST_ERR(rmem_cq_modify((void *)mm.qp, &attr), EINVAL);
	TEST_ERR(rmem_cq_modify(mm.cq, NULL), EINVAL);
	TEST_OK(rmem_cq_modify(mm.cq, &attr));
	/* Without a channel there is nothing to moderate. */
	TEST_OK(rmem_cq_modify(fx.a.cq, &attr));
	TEST_ERR(rmem_cq_modify(fx_cq(dev, 1), &attr), EOPNOTSUPP);
	attr.count++;
	TEST_ERR(rmem_cq_modify(mm.cq, &attr), EINVAL);
	attr.count--;
	attr.period_us++;
	TEST_ERR(rmem_cq_modify(mm.cq, &attr), EINVAL);
	attr.period_us--;
	attr.reserved[1] = 1;
	TEST_ERR(rmem_cq_modify(mm.cq, &attr), EINVAL);
}

TEST_SUITE(cq_moder, setup, fx_teardown);
