/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Completion channels over the fakes: events and their CQs, and each call that fails. */

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>

#include <rmem_driver.h>

#include "setup.h"

static struct {
	struct rmem_comp_channel *channel; /* O_NONBLOCK */
	struct rmem_cq *cq;                /* of vt.a */
} ch;

/* vt.a completes to a CQ with a channel. */
static void
open_channel(void)
{
	struct rmem_cq_conf conf = {.nb_cqe = 64, .context = &ch};
	struct rmem_qp_conf qp_conf;

	TEST_OK(vt_open());
	TEST_OK(rmem_comp_channel_create(vt.dev, &ch.channel));
	TEST_OK(fcntl(ch.channel->fd, F_SETFL, O_NONBLOCK));
	conf.channel = ch.channel;
	TEST_OK(rmem_cq_create(vt.dev, &conf, &ch.cq));
	qp_conf = vt_qp_conf(ch.cq, RMEM_QPT_RC);
	vt_replace_qp(&vt.a, &qp_conf);
	TEST_OK(rmem_qp_reset(vt.b));
	TEST_OK(vt_connect());
}

static void
setup(void)
{
	ch.channel = NULL;
	ch.cq = NULL;
	vt_setup_fake();
}

static void
teardown(void)
{
	fake.fail_name = NULL;
	fake.on_cq_event = NULL;
	if (ch.channel != NULL) {
		vt_qp_destroy(&vt.a);
		TEST_OK(rmem_cq_destroy(ch.cq));
		TEST_OK(rmem_comp_channel_destroy(ch.channel));
	}
	vt_teardown();
}

static void
write_one(void)
{
	struct rmem_send_wr wr = vt_wr(RMEM_WR_RDMA_WRITE, NULL);

	wr.num_sge = 0;
	TEST_EQ(rmem_post_send(vt.a, &wr, 1), 1);
}

static int
get_event(void)
{
	struct rmem_cq *cq = NULL;
	void *context = NULL;
	int ret = rmem_comp_channel_get_event(ch.channel, &cq, &context);

	if (ret != 0)
		return ret;
	TEST_ASSERT(cq == ch.cq);
	TEST_ASSERT(context == &ch);
	return 0;
}

/* Else ibv_destroy_cq() would wait for the application. */
TEST(verbs_channel, device_waits_for_no_acknowledgement_of_the_application)
{
	open_channel();
	TEST_OK(rmem_cq_req_notify(ch.cq, false));
	write_one();
	TEST_OK(get_event());
	TEST_EQ(((struct fake_cq *)fake_last_cq())->nb_reported, 1);
	TEST_EQ(((struct fake_cq *)fake_last_cq())->nb_acked, 1);
	vt_qp_destroy(&vt.a);
	TEST_ERR(rmem_cq_destroy(ch.cq), EBUSY);
	TEST_ERR(rmem_comp_channel_destroy(ch.channel), EBUSY);
	TEST_OK(rmem_cq_ack_events(ch.cq, 1));
}

TEST(verbs_channel, completions_saved_by_a_reset_keep_their_event)
{
	struct rmem_wc wc;

	open_channel();
	TEST_OK(rmem_cq_req_notify(ch.cq, false));
	write_one();
	TEST_OK(rmem_qp_reset(vt.a));
	TEST_OK(get_event());
	TEST_OK(rmem_cq_ack_events(ch.cq, 1));
	TEST_STATUS(vt_wait(ch.cq, &wc), RMEM_WC_SUCCESS);
}

static void *
destroy(void *arg)
{
	*(int *)arg = rmem_cq_destroy(ch.cq);
	return NULL;
}

static pthread_t destroyer;
static int destroyed;

/* A thread has the event when another one begins to destroy its CQ. */
static void
begin_destroy(void)
{
	const uint32_t *refs = &ch.cq->obj.refs;

	fake.on_cq_event = NULL;
	if (pthread_create(&destroyer, NULL, destroy, &destroyed) != 0)
		return;
	while ((__atomic_load_n(refs, __ATOMIC_ACQUIRE) & RMEM_OBJ_REFS_DEAD) == 0)
		sched_yield();
}

TEST(verbs_channel, event_of_a_cq_being_destroyed_is_dropped)
{
	struct rmem_cq *cq;

	open_channel();
	TEST_OK(rmem_cq_req_notify(ch.cq, false));
	write_one();
	vt_qp_destroy(&vt.a);
	destroyed = 1;
	fake.on_cq_event = begin_destroy;
	TEST_ERR(rmem_comp_channel_get_event(ch.channel, &cq, NULL), EAGAIN);
	TEST_OK(pthread_join(destroyer, NULL));
	TEST_OK(destroyed);
	ch.cq = NULL;
}

TEST(verbs_channel, moderation_has_the_limits_of_the_device)
{
	struct rmem_cq_attr attr = {.count = 0, .period_us = 100};

	fake.max_cq_period = 4095;
	open_channel();
	TEST_OK(rmem_cq_modify(ch.cq, &attr));
	TEST_EQ(fake.moderation.cq_count, 4095);
	TEST_EQ(fake.moderation.cq_period, 100);
	attr = (struct rmem_cq_attr){.count = 7, .period_us = RMEM_CQ_MAX_PERIOD_US};
	TEST_OK(rmem_cq_modify(ch.cq, &attr));
	TEST_EQ(fake.moderation.cq_count, 7);
	TEST_EQ(fake.moderation.cq_period, 4095);
	/* Off. */
	attr.period_us = 0;
	TEST_OK(rmem_cq_modify(ch.cq, &attr));
	TEST_EQ(fake.moderation.cq_count, 0);
	TEST_EQ(fake.moderation.cq_period, 0);
	VT_FAILS("modify_cq", ENOMEM, rmem_cq_modify(ch.cq, &attr), ENOMEM);
}

TEST(verbs_channel, errnos_of_the_device_are_mapped)
{
	static const struct {
		int kernel;
		int create;
		int get;
		int arm;
		int destroy;
	} rows[] = {{EINVAL, EINVAL, EINVAL, EINVAL, EINVAL}, {ENOMEM, ENOMEM, EIO, EIO, EIO},
			{EMFILE, ENOMEM, EIO, EIO, EIO}, {EAGAIN, ENOMEM, EAGAIN, EIO, EIO},
			{EINTR, EIO, EINTR, EIO, EIO}, {EBUSY, EIO, EIO, EIO, EBUSY},
			{EIO, EIO, EIO, EIO, EIO}};
	struct rmem_comp_channel *other;
	unsigned int i;

	open_channel();
	for (i = 0; i < RTE_DIM(rows); i++) {
		fake.fail_errno = rows[i].kernel;
		fake.fail_name = "create_comp_channel";
		TEST_ERR(rmem_comp_channel_create(vt.dev, &other), rows[i].create);
		fake.fail_name = "get_cq_event";
		TEST_ERR(get_event(), rows[i].get);
		fake.fail_name = "req_notify_cq";
		TEST_ERR(rmem_cq_req_notify(ch.cq, false), rows[i].arm);
		fake.fail_name = NULL;
		TEST_OK(rmem_comp_channel_create(vt.dev, &other));
		fake.fail_name = "destroy_comp_channel";
		TEST_ERR(rmem_comp_channel_destroy(other), rows[i].destroy);
		fake.fail_name = NULL;
		TEST_OK(rmem_comp_channel_destroy(other));
	}
}

TEST(verbs_channel, failed_creation_of_a_cq_leaves_the_channel_free)
{
	struct rmem_cq_conf conf = {.nb_cqe = 4};
	struct rmem_comp_channel *other;
	struct rmem_cq *cq;

	open_channel();
	TEST_OK(rmem_comp_channel_create(vt.dev, &other));
	conf.channel = other;
	VT_FAILS("create_cq", ENOMEM, rmem_cq_create(vt.dev, &conf, &cq), ENOMEM);
	TEST_OK(rmem_comp_channel_destroy(other));
}

TEST_SUITE(verbs_channel, setup, teardown);
