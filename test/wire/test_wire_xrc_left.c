/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* XRC_RECV QPs whose handles are destroyed while other processes hold them. */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <rmem_async_channel.h>
#include <rmem_driver.h>

#include "xrc_link.h"

TEST(wire_sim, qp_without_handles_remains_while_it_is_held)
{
	struct rmem_qp_call call = {.op = RMEM_QP_CALL_QUERY};
	struct rmem_qp *qp, *again;

	link_open();
	TEST_EQ(rmem_qp_hold(link_.domain, link_.recv->qp_num ^ 1, &qp), -ENOENT);
	TEST_OK(rmem_qp_hold(link_.domain, link_.recv->qp_num, &qp));
	TEST_ASSERT(qp == link_.recv && !rmem_qp_is_left(qp));
	TEST_OK(rmem_qp_destroy(qp));
	TEST_ASSERT(rmem_qp_is_left(qp));
	/* Not the reference of the other process. */
	TEST_ERR(rmem_qp_destroy(qp), EINVAL);
	TEST_OK(rmem_qp_execute(qp, &call));
	TEST_EQ(call.attr.state, RMEM_QPS_RTS);
	call.op = UINT32_MAX;
	TEST_ERR(rmem_qp_execute(qp, &call), EINVAL);
	/* The process may open it again. */
	TEST_OK(rmem_qp_get(link_.domain, qp->qp_num, &again));
	TEST_ASSERT(again == qp && !rmem_qp_is_left(qp));
	TEST_ERR(rmem_xrcd_dealloc(link_.domain), EBUSY);
	rmem_qp_unhold(qp);
	TEST_EQ(link_state_of(link_.recv), RMEM_QPS_RTS);
	link_close();
}

/* Create a QP with a channel that another process holds. */
static struct rmem_qp *
create_with_channel(struct rmem_async_channel *channel)
{
	const struct rmem_qp_ext ext = {.xrcd = link_.domain};
	const struct rmem_qp_conf conf = {
			.type = RMEM_QPT_XRC_RECV, .async_channel = channel, .ext = &ext};
	struct rmem_qp *qp, *held;

	TEST_OK(rmem_qp_create(NULL, &conf, &qp));
	TEST_OK(rmem_qp_hold(link_.domain, qp->qp_num, &held));
	return qp;
}

TEST(wire_sim, qp_without_handles_has_no_channel)
{
	struct rmem_async_channel *channel;
	struct rmem_async_event event;
	struct rmem_qp *qp;

	link_open();
	TEST_OK(rmem_async_channel_create(sides[1].dev, &channel));
	qp = create_with_channel(channel);
	rmem_qp_async_event(qp, RMEM_ASYNC_COMM_EST);
	TEST_OK(rmem_async_channel_get_event(channel, &event));
	/* Not while an event is not acknowledged: the handle remains, and its channel. */
	TEST_ERR(rmem_qp_destroy(qp), EBUSY);
	TEST_ASSERT(!rmem_qp_is_left(qp));
	TEST_OK(rmem_async_event_ack(&event));
	rmem_qp_async_event(qp, RMEM_ASYNC_COMM_EST);
	TEST_OK(rmem_async_channel_get_event(channel, &event));
	TEST_OK(rmem_async_event_ack(&event));
	TEST_ERR(rmem_async_channel_destroy(channel), EBUSY);
	rmem_qp_async_event(qp, RMEM_ASYNC_COMM_EST);
	TEST_OK(rmem_qp_destroy(qp));
	TEST_ASSERT(rmem_qp_is_left(qp));
	rmem_qp_async_event(qp, RMEM_ASYNC_QP_FATAL);
	TEST_OK(rmem_async_channel_destroy(channel));
	rmem_qp_async_event(qp, RMEM_ASYNC_COMM_EST);
	rmem_qp_unhold(qp);
	link_close();
}

/* Generate an event of a QP in a thread whose cancellation is requested; NULL: it returned. */
static void *
run_cancelled(void *qp)
{
	int state;

	pthread_cancel(pthread_self());
	rmem_qp_async_event(qp, RMEM_ASYNC_COMM_EST);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return NULL;
}

/* A post generates events, with locks held. */
TEST(wire_sim, event_of_a_qp_that_others_hold_is_no_cancellation_point)
{
	struct rmem_qp *qp;
	pthread_t thread;
	void *result;

	link_open();
	TEST_OK(rmem_qp_hold(link_.domain, link_.recv->qp_num, &qp));
	TEST_EQ(pthread_create(&thread, NULL, run_cancelled, qp), 0);
	TEST_EQ(pthread_join(thread, &result), 0);
	TEST_ASSERT(result == NULL);
	rmem_qp_unhold(qp);
	link_close();
}

/* Get and acknowledge events until one of the device. */
static void *
run_reader(void *arg)
{
	struct rmem_async_event event;

	do {
		TEST_OK(rmem_async_channel_get_event(arg, &event));
		TEST_OK(rmem_async_event_ack(&event));
	} while (event.type != RMEM_ASYNC_CLIENT_REREGISTER);
	return NULL;
}

struct reporter {
	struct rmem_qp *qp; /* NULL: none; atomic */
	bool is_ending;     /* atomic */
};

/* Generate events of each QP. */
static void *
run_reporter(void *arg)
{
	struct reporter *reporter = arg;
	struct rmem_qp *qp;
	unsigned int i;

	while (!__atomic_load_n(&reporter->is_ending, __ATOMIC_ACQUIRE)) {
		qp = __atomic_load_n(&reporter->qp, __ATOMIC_ACQUIRE);
		for (i = 0; qp != NULL && i < 4; i++)
			rmem_qp_async_event(qp, RMEM_ASYNC_COMM_EST);
		if (qp != NULL)
			__atomic_store_n(&reporter->qp, NULL, __ATOMIC_RELEASE);
		sched_yield();
	}
	return NULL;
}

/* A QP is left to others, or EBUSY, and never has an event that can't be acknowledged. */
TEST(wire_sim, events_while_a_qp_loses_its_handles)
{
	struct reporter reporter = {NULL, false};
	struct rmem_async_channel *channel;
	pthread_t threads[2];
	struct rmem_qp *qp;
	unsigned int i;

	link_open();
	TEST_OK(rmem_async_channel_create(sides[1].dev, &channel));
	TEST_EQ(pthread_create(&threads[0], NULL, run_reader, channel), 0);
	TEST_EQ(pthread_create(&threads[1], NULL, run_reporter, &reporter), 0);
	for (i = 0; i < 200; i++) {
		qp = create_with_channel(channel);
		__atomic_store_n(&reporter.qp, qp, __ATOMIC_RELEASE);
		while (rmem_qp_destroy(qp) != 0)
			sched_yield();
		while (__atomic_load_n(&reporter.qp, __ATOMIC_ACQUIRE) != NULL)
			sched_yield();
		TEST_ASSERT(rmem_qp_is_left(qp));
		rmem_qp_unhold(qp);
	}
	__atomic_store_n(&reporter.is_ending, true, __ATOMIC_RELEASE);
	rmem_dev_async_event(sides[1].dev, RMEM_ASYNC_CLIENT_REREGISTER, 1);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	TEST_OK(rmem_async_channel_destroy(channel));
	link_close();
}

/* The handle of the domain is released with the QP. */
TEST(wire_sim, domain_of_a_qp_that_others_hold_can_be_closed)
{
	struct rmem_qp *qp;

	link_open();
	TEST_OK(rmem_qp_hold(link_.domain, link_.recv->qp_num, &qp));
	TEST_OK(rmem_qp_destroy(link_.send));
	TEST_OK(rmem_qp_destroy(link_.recv));
	TEST_ERR(rmem_xrcd_dealloc(link_.domain), EBUSY);
	TEST_OK(rmem_srq_destroy(link_.srq));
	TEST_OK(rmem_xrcd_dealloc(link_.domain));
	TEST_ERR(rmem_dev_close(sides[1].dev), EBUSY);
	TEST_EQ(link_state_of(qp), RMEM_QPS_RTS);
	rmem_qp_unhold(qp);
	close(link_.file);
	close_sides();
}
