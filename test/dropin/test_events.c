/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A verbs program, without any call of rmem, that sleeps until an event: completion
 * channels. */

#include <fcntl.h>
#include <pthread.h>

#include "own_qp.h"

#define NB 1000

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;

/* A QP, connected to another, with a CQ of its own. */
static struct side {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
} sides[2];

static void
create_side(struct side *side)
{
	struct ibv_qp_init_attr init = {
			.qp_type = IBV_QPT_RC, .sq_sig_all = 1, .cap = {16, 16, 1, 1, 0}};

	side->cq = ibv_create_cq(context, 64, side, channel, 0);
	HOLDS(side->cq != NULL && side->cq->channel == channel);
	init.send_cq = init.recv_cq = side->cq;
	side->qp = ibv_create_qp(pd, &init);
	HOLDS(side->qp != NULL);
}

static void
connect_sides(void)
{
	struct ibv_qp_attr attr = {.path_mtu = IBV_MTU_1024,
			.min_rnr_timer = 1,
			.timeout = 14,
			.retry_cnt = 7,
			.rnr_retry = 7};
	int i;

	for (i = 0; i < 2; i++) {
		attr.dest_qp_num = sides[1 - i].qp->qp_num;
		connect_qp(sides[i].qp, attr);
	}
}

static void
create(void)
{
	int i;

	channel = ibv_create_comp_channel(context);
	HOLDS(channel != NULL && channel->fd >= 0);
	for (i = 0; i < 2; i++)
		create_side(&sides[i]);
	connect_sides();
	HOLDS(ibv_destroy_comp_channel(channel) == EBUSY);
}

static void
post_recv(struct side *side)
{
	struct ibv_recv_wr wr = {.num_sge = 0}, *bad;

	HOLDS(ibv_post_recv(side->qp, &wr, &bad) == 0);
}

static void
post_send(struct side *side, unsigned int flags)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = flags}, *bad;

	HOLDS(ibv_post_send(side->qp, &wr, &bad) == 0);
}

/* An event of that side, acknowledged. */
static void
expect_event(struct side *side)
{
	struct ibv_cq *cq = NULL;
	void *cq_context = NULL;

	HOLDS(ibv_get_cq_event(channel, &cq, &cq_context) == 0);
	HOLDS(cq == side->cq && cq_context == side);
	ibv_ack_cq_events(cq, 1);
}

static int
drain(struct side *side)
{
	struct ibv_wc wc[4];
	int i, n, total = 0;

	while ((n = ibv_poll_cq(side->cq, 4, wc)) > 0) {
		for (i = 0; i < n; i++)
			HOLDS(wc[i].status == IBV_WC_SUCCESS);
		total += n;
	}
	HOLDS(n == 0);
	return total;
}

static void
events(void)
{
	struct ibv_cq *cq;
	void *cq_context;
	int flags;

	post_recv(&sides[1]);
	HOLDS(ibv_req_notify_cq(sides[1].cq, 1) == 0);
	post_send(&sides[0], 0);
	HOLDS(!is_readable(channel->fd));
	post_recv(&sides[1]);
	post_send(&sides[0], IBV_SEND_SOLICITED);
	HOLDS(is_readable(channel->fd));
	expect_event(&sides[1]);
	HOLDS(ibv_req_notify_cq(sides[1].cq, 0) == 0);
	HOLDS(!is_readable(channel->fd) && drain(&sides[1]) == 2 && drain(&sides[0]) == 2);
	flags = fcntl(channel->fd, F_GETFL);
	HOLDS(fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) == 0);
	HOLDS(ibv_get_cq_event(channel, &cq, &cq_context) == -1 && errno == EAGAIN);
	HOLDS(fcntl(channel->fd, F_SETFL, flags) == 0);
	post_recv(&sides[1]);
	post_send(&sides[0], 0);
	expect_event(&sides[1]);
	HOLDS(drain(&sides[1]) == 1 && drain(&sides[0]) == 1);
}

/* The event of a moderated CQ follows after its period, or a number of completions. */
static void
moderated(void)
{
	struct ibv_modify_cq_attr attr = {
			.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {2, UINT16_MAX}};
	struct ibv_device_attr_ex device;
	int i, n;

	HOLDS(ibv_query_device_ex(context, NULL, &device) == 0);
	HOLDS(device.cq_mod_caps.max_cq_count == UINT16_MAX);
	HOLDS(device.cq_mod_caps.max_cq_period == UINT16_MAX);
	HOLDS(ibv_modify_cq(sides[1].cq, &attr) == 0);
	for (n = 1; n <= 2; n++) {
		HOLDS(ibv_req_notify_cq(sides[1].cq, 0) == 0);
		for (i = 0; i < n; i++) {
			post_recv(&sides[1]);
			post_send(&sides[0], 0);
		}
		expect_event(&sides[1]);
		HOLDS(drain(&sides[1]) == n && drain(&sides[0]) == n && !is_readable(channel->fd));
	}
	attr.attr_mask = 2;
	HOLDS(ibv_modify_cq(sides[1].cq, &attr) == EINVAL && errno == EINVAL);
	attr = (struct ibv_modify_cq_attr){.attr_mask = IBV_CQ_ATTR_MODERATE};
	HOLDS(ibv_modify_cq(sides[1].cq, &attr) == 0);
}

/* Wait until side has one more completion, as ibv_rc_pingpong -e does. */
static void
sleep_until(struct side *side)
{
	HOLDS(ibv_req_notify_cq(side->cq, 0) == 0);
	while (drain(side) == 0) {
		expect_event(side);
		HOLDS(ibv_req_notify_cq(side->cq, 0) == 0);
	}
}

static void *
receive(void *arg)
{
	int i;

	for (i = 0; i < NB; i++) {
		post_recv(&sides[1]);
		sleep_until(&sides[1]);
	}
	return arg;
}

/* The receive is posted late: the request waits while the sender sleeps. */
static void
two_threads(void)
{
	struct ibv_comp_channel *other = ibv_create_comp_channel(context), *first = channel;
	pthread_t thread;
	int i;

	HOLDS(other != NULL);
	HOLDS(ibv_destroy_qp(sides[0].qp) == 0 && ibv_destroy_cq(sides[0].cq) == 0);
	channel = other;
	create_side(&sides[0]);
	channel = first;
	reset_qp(sides[1].qp);
	connect_sides();
	HOLDS(pthread_create(&thread, NULL, receive, NULL) == 0);
	for (i = 0; i < NB; i++) {
		struct ibv_cq *cq;
		void *cq_context;

		HOLDS(ibv_req_notify_cq(sides[0].cq, 0) == 0);
		post_send(&sides[0], 0);
		HOLDS(ibv_get_cq_event(other, &cq, &cq_context) == 0 && cq_context == &sides[0]);
		ibv_ack_cq_events(cq, 1);
		HOLDS(drain(&sides[0]) == 1);
	}
	HOLDS(pthread_join(thread, NULL) == 0);
	HOLDS(ibv_destroy_qp(sides[0].qp) == 0 && ibv_destroy_cq(sides[0].cq) == 0);
	HOLDS(ibv_destroy_comp_channel(other) == 0);
}

static void *
destroy_cq(void *cq)
{
	HOLDS(ibv_destroy_cq(cq) == 0);
	return NULL;
}

/* ibv_ack_cq_events(3): the destruction of a CQ waits for its acknowledgements. */
static void
destroy(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_cq *cq;
	pthread_t thread;
	void *cq_context;

	post_recv(&sides[1]);
	HOLDS(ibv_req_notify_cq(sides[1].cq, 1) == 0);
	HOLDS(ibv_modify_qp(sides[1].qp, &attr, IBV_QP_STATE) == 0);
	HOLDS(ibv_get_cq_event(channel, &cq, &cq_context) == 0 && cq == sides[1].cq);
	HOLDS(ibv_destroy_cq(cq) == EBUSY);
	HOLDS(ibv_destroy_qp(sides[1].qp) == 0);
	HOLDS(pthread_create(&thread, NULL, destroy_cq, cq) == 0);
	ibv_ack_cq_events(cq, 1);
	HOLDS(pthread_join(thread, NULL) == 0);
	HOLDS(ibv_destroy_comp_channel(channel) == 0);
	HOLDS(ibv_destroy_comp_channel(channel) == ENOENT);
	HOLDS(ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
}

int
main(void)
{
	context = open_device("soft0");
	pd = ibv_alloc_pd(context);
	HOLDS(pd != NULL);
	create();
	events();
	moderated();
	two_threads();
	destroy();
	return 0;
}
