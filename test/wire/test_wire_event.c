/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* SQD with packets in flight: the end of draining is reported when they are acknowledged. */

#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#include "../../drivers/soft/mem/rsoft_grace.h"
#include "../../drivers/soft/rsoft_post.h"
#include "../rc.h"
#include "sides.h"

static struct rmem_async_channel *channel;

/* Two sides; the QP of side 0 is bound to a channel whose calls do not wait. */
static void
open_channel(void)
{
	static const struct sim_faults none;
	struct rmem_qp_conf conf = rc_conf(NULL, SLOTS, NB_RECV);
	unsigned int i;

	sim_start(1, &none);
	for (i = 0; i < 2; i++)
		open_side(&sides[i], i, 1024);
	TEST_OK(rmem_async_channel_create(sides[0].dev, &channel));
	TEST_OK(fcntl(channel->fd, F_SETFL, O_NONBLOCK));
	TEST_OK(rmem_qp_destroy(sides[0].qp));
	conf.send_cq = sides[0].send_cq;
	conf.recv_cq = sides[0].recv_cq;
	conf.async_channel = channel;
	TEST_OK(rmem_qp_create(sides[0].pd, &conf, &sides[0].qp));
	connect_sides();
}

static void
close_channel(void)
{
	TEST_OK(rmem_qp_destroy(sides[0].qp));
	sides[0].qp = NULL;
	TEST_OK(rmem_async_channel_destroy(channel));
	close_sides();
}

static int
to_state(uint32_t state, uint8_t notify)
{
	const struct rmem_qp_attr attr = {.state = state, .en_sqd_async_notify = notify};

	return rmem_qp_modify(sides[0].qp, &attr,
			RMEM_QP_STATE | (notify != 0 ? RMEM_QP_EN_SQD_ASYNC_NOTIFY : 0));
}

/* Both sides run until side 0 has a completion. */
static void
run(void)
{
	struct rmem_wc wc = {.status = RMEM_WC_GENERAL_ERR};
	int n;

	do {
		sim_step(false);
		n = rmem_poll_cq(sides[0].send_cq, &wc, 1);
		TEST_EQ(rmem_poll_cq(sides[1].send_cq, &(struct rmem_wc){0}, 1), 0);
	} while (n == 0);
	TEST_EQ(n, 1);
	TEST_STATUS(wc.status, RMEM_WC_SUCCESS);
}

/* The first packet is lost: the request is in progress until its timer has expired. */
TEST(wire_sim, draining_ends_with_the_last_acknowledgement)
{
	struct rmem_async_event event;
	unsigned int notify;

	open_channel();
	for (notify = 0; notify < 2; notify++) {
		post_write(&sides[0], 8);
		sim_clear();
		TEST_OK(to_state(RMEM_QPS_SQD, (uint8_t)notify));
		TEST_EQ(rmem_async_channel_get_event(channel, &event), -EAGAIN);
		run();
		if (notify != 0) {
			TEST_OK(rmem_async_channel_get_event(channel, &event));
			TEST_EQ(event.type, RMEM_ASYNC_SQ_DRAINED);
			TEST_ASSERT(event.qp == sides[0].qp);
			TEST_OK(rmem_async_event_ack(&event));
		}
		TEST_EQ(rmem_async_channel_get_event(channel, &event), -EAGAIN);
		TEST_OK(to_state(RMEM_QPS_RTS, 0));
	}
	close_channel();
}

/* The acknowledgement of the first of two requests has arrived, and no thread has received it. */
TEST(wire_sim, acknowledged_request_succeeds_before_the_flush)
{
	struct rmem_wc wc[2];

	open_sides(1024);
	post_write(&sides[0], 8);
	sim_step(false);
	TEST_EQ(rmem_poll_cq(sides[1].send_cq, wc, 1), 0);
	post_write(&sides[0], 8);
	sim_step(false);
	TEST_OK(rmem_qp_set_error(sides[0].qp));
	TEST_EQ(rmem_poll_cq(sides[0].send_cq, wc, 2), 2);
	TEST_STATUS(wc[0].status, RMEM_WC_SUCCESS);
	TEST_STATUS(wc[1].status, RMEM_WC_WR_FLUSH_ERR);
	close_sides();
}

/* A QP that leaves SQD before the end has no event. */
TEST(wire_sim, draining_that_is_ended_by_rts_has_no_event)
{
	struct rmem_async_event event;

	open_channel();
	post_write(&sides[0], 8);
	sim_clear();
	TEST_OK(to_state(RMEM_QPS_SQD, 1));
	TEST_OK(to_state(RMEM_QPS_RTS, 0));
	run();
	TEST_EQ(rmem_async_channel_get_event(channel, &event), -EAGAIN);
	close_channel();
}

/* Progress of the QP by a thread that is inside before and after it enters SQD. */
static struct {
	uint32_t is_inside;
	uint32_t has_failed;
} mid;

static void *
drain_in_sqd(void *arg)
{
	struct rsoft_qp *qp = (struct rsoft_qp *)sides[0].qp;
	unsigned int lcore;

	if (rte_thread_register() != 0) {
		mid.has_failed = 1;
		__atomic_store_n(&mid.is_inside, 1, __ATOMIC_RELEASE);
		return arg;
	}
	lcore = rsoft_grace_enter();
	__atomic_store_n(&mid.is_inside, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&qp->state, __ATOMIC_ACQUIRE) != RMEM_QPS_SQD)
		sched_yield();
	rte_ticketlock_lock(&qp->sq.lock);
	rsoft_post_drain(qp, lcore);
	rte_ticketlock_unlock(&qp->sq.lock);
	rsoft_grace_leave(lcore);
	rte_thread_unregister();
	return arg;
}

/* A request for the event ends with the connection. */
TEST(wire_sim, draining_without_a_request_has_no_event_after_one_with)
{
	const struct rmem_qp_conn conn = {
			.timeout = 8, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 1};
	struct rmem_async_event event;
	pthread_t thread;

	open_channel();
	post_write(&sides[0], 8);
	sim_clear();
	TEST_OK(to_state(RMEM_QPS_SQD, 1));
	TEST_OK(rmem_qp_reset(sides[0].qp));
	rc_connect(sides[0].qp, sides[1].qp, conn);
	memset(&mid, 0, sizeof(mid));
	TEST_OK(pthread_create(&thread, NULL, drain_in_sqd, NULL));
	while (__atomic_load_n(&mid.is_inside, __ATOMIC_ACQUIRE) == 0)
		sched_yield();
	TEST_OK(to_state(RMEM_QPS_SQD, 0));
	TEST_OK(pthread_join(thread, NULL));
	TEST_EQ(mid.has_failed, 0);
	TEST_EQ(rmem_async_channel_get_event(channel, &event), -EAGAIN);
	close_channel();
}
